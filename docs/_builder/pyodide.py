"""Fetches Pyodide, Python for browsers, from the npm registry, and refuses any other bytes.

`python docs/_builder/pyodide.py` puts its files into .venv/pyodide; `make docs` does it once. The
site is built without the judge in the browser where they are missing.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "314.0.7"
SHA256 = "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"
"""The checksum of the registry's archive of this version."""

FILES = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
"""What a browser loads; the archive also has a console, types and source maps."""

FOLDER = Path(__file__).parents[2] / ".venv" / "pyodide"

NO_NPM = (
    "npm is not installed, so Pyodide cannot be fetched and the site is built without the judge in"
    " the browser: install npm, on Debian and Ubuntu with: apt install npm"
)


def there() -> bool:
    """Return whether the files of this version have been fetched."""
    stamp = FOLDER / "version"
    return stamp.is_file() and stamp.read_text("utf-8") == f"{VERSION} {SHA256}\n"


def fetch() -> None:
    """Fetch the archive with npm, check it, and unpack what a browser loads.

    Raises ValueError if the archive is not the one that is expected.
    """
    npm = shutil.which("npm")
    assert npm is not None
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"pyodide@{VERSION}", "--silent", "--ignore-scripts"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        unpack(Path(folder) / f"pyodide-{VERSION}.tgz")


def unpack(archive: Path) -> None:
    """Unpack the files of an archive whose checksum is right; raise ValueError if it is not."""
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"the archive of Pyodide {VERSION} has the SHA-256 {found}, and {SHA256} is expected:"
            " it is not used"
        )
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as contents:
        for name in FILES:
            member = contents.extractfile(f"package/{name}")
            assert member is not None
            (FOLDER / name).write_bytes(member.read())
    (FOLDER / "version").write_text(f"{VERSION} {SHA256}\n", "utf-8")


def main() -> int:
    """Fetch it unless it is there: 1 for other bytes than expected, else 0.

    Without npm or without a network there is a site, too.
    """
    if there():
        return 0
    if shutil.which("npm") is None:
        print(NO_NPM, file=sys.stderr)
        return 0
    try:
        fetch()
    except ValueError as error:
        print(f"Pyodide is refused: {error}", file=sys.stderr)
        return 1
    except (subprocess.CalledProcessError, OSError) as error:
        print(
            f"Pyodide cannot be fetched, so the site has no judge in the browser: {error}",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
