"""The files of the judge in the browser: Pyodide, and zip archives of the prover and of SymPy.

They are copied into the site, and a page loads them only when its reader asks the judge.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pyodide

ROOT = Path(__file__).parents[2]
BROWSER = Path(__file__).parent / "browser"
LEFT_OUT = frozenset(("tests", "benchmarks", "physics", "__pycache__"))
"""Folders of SymPy and mpmath that the prover does not import."""

WHEN = (1980, 1, 1, 0, 0, 0)  # the date of all files in an archive, so that equal ones are equal

NOTICE = f"""\
The judge in the browser consists of

Pyodide {pyodide.VERSION}, Mozilla Public License 2.0 (https://mozilla.org/MPL/2.0/): the files \
pyodide*,
    unchanged, from the package `pyodide` of the npm registry. Its source is at
    https://github.com/pyodide/pyodide. SHA-256 of the package: {pyodide.SHA256}
Python, Python Software Foundation License 2 (https://docs.python.org/3/license.html):
    python_stdlib.zip and a part of pyodide.asm.wasm, as Pyodide builds them
SymPy {version("sympy")} (BSD-3-Clause) and mpmath {version("mpmath")} (BSD-3-Clause): \
libraries-*.zip, without
    their tests and without sympy.physics, compiled without docstrings;
    with their licences
otimes (MIT): prover-*.zip, compiled, and otimes-*.zip, with the source of the checker
"""


def write(site: Path) -> None:
    """Write the files into a built site; nothing where Pyodide has not been fetched."""
    if not pyodide.there():
        return
    folder = site / "assets" / "judge"
    folder.mkdir(parents=True, exist_ok=True)
    for name in pyodide.FILES:
        shutil.copyfile(pyodide.FOLDER / name, folder / name)
    archives = {
        "libraries": _compiled("libraries", _library_files(), "--no-docstrings"),
        "prover": _compiled("prover", _prover()),
        "otimes": archive(_checker()),
    }
    named = {name: f"{name}-{_digest(content)}.zip" for name, content in archives.items()}
    for name, file in named.items():
        (folder / file).write_bytes(archives[name])
    (folder / "files.json").write_text(json.dumps(named) + "\n", "utf-8")
    (folder / "NOTICE.txt").write_text(NOTICE, "utf-8")


def archive(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a zip archive of files; the same files make the same bytes."""
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, content in sorted(files):
            out.writestr(zipfile.ZipInfo(name, WHEN), content, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def _prover() -> Iterator[tuple[str, bytes]]:
    """Yield the prover, and what the browser asks of it."""
    for path in _files(ROOT / "algebra"):
        yield f"otimes/algebra/{path.relative_to(ROOT / 'algebra').as_posix()}", path.read_bytes()
    for name in ("answers.py", "typed.py"):
        yield name, (BROWSER / name).read_bytes()


def _checker() -> Iterator[tuple[str, bytes]]:
    """Yield the checker, as its source."""
    yield "otimes/proofs/replay.py", (ROOT / "proofs" / "replay.py").read_bytes()
    yield "otimes/proofs/__init__.py", b""
    yield "otimes/__init__.py", b""


def _compiled(name: str, files: Iterable[tuple[str, bytes]], *options: str) -> bytes:
    """Return the archive of compiled modules, kept beside Pyodide by the digest of the sources."""
    sources = sorted(files)
    kept = pyodide.FOLDER / f"{name}-{_digest_of(sources, options)}.zip"
    if not kept.is_file():
        for old in pyodide.FOLDER.glob(f"{name}-*.zip"):
            old.unlink()
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "in.zip", Path(folder) / "out.zip"
            given.write_bytes(archive(sources))
            paths = (BROWSER / "compile.mjs", pyodide.FOLDER, given, made)
            command = ["node", *map(str, paths), *options]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
            shutil.copyfile(made, kept)
    return kept.read_bytes()


def _library_files() -> Iterator[tuple[str, bytes]]:
    for name in ("sympy", "mpmath"):
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        for path in _files(package):
            yield f"{name}/{path.relative_to(package).as_posix()}", path.read_bytes()
        for path in package.parent.glob(f"{name}-*.dist-info/**/LICENSE*"):
            yield f"{name}/{path.name}", path.read_bytes()


def _files(folder: Path) -> Iterator[Path]:
    """Yield the modules and data of a package, without what is left out."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.suffix in (".py", ".json") and not LEFT_OUT.intersection(inside):
            yield path


def _digest_of(sources: Iterable[tuple[str, bytes]], options: Sequence[str]) -> str:
    """Return the digest of the files of an archive, and of how they are compiled."""
    compiler = (BROWSER / "compile.mjs").read_bytes()
    every = [("", compiler), (" ".join(options), b""), *sources]
    return _digest(json.dumps([[name, _digest(content)] for name, content in every]).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
