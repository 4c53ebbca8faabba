"""Builds the site unless what it is made of, and the site itself, are as the last build left them.

`make docs` calls it. What a site is made of is compared by content: the sources, the pages, the
versions of Python and of all packages. So are the files of the site, so that one that was changed
or removed by hand is made anew. Where anything differs, MkDocs builds the whole site; what has not
changed in it is then taken from the cache of the checks (`evidence`).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("algebra", "docs", "mkdocs.yml", "numeric", "otimes", "proofs", ".venv/pyodide/version")
VARIABLES = ("OTIMES_DOCS", "OTIMES_LONG")
"""Environment variables that change what is built."""

BUILD = ("-m", "mkdocs", "build", "--strict", "--quiet")
STAMP = Path(".venv", "site.json")
"""Where the digests of the last build are, from the root."""


def made_of(root: Path) -> str:
    """Return a digest of all that a site is made of."""
    about = [sys.version, platform.platform(), *(os.environ.get(name, "") for name in VARIABLES)]
    about += sorted(f"{each.name} {each.version}" for each in distributions())
    files = {name: digest for source in SOURCES for name, digest in _digests(root, root / source)}
    return hashlib.sha256(json.dumps([about, files]).encode()).hexdigest()


def files_of(site: Path) -> dict[str, str]:
    """Return the digest of each file of a site."""
    return dict(_digests(site, site))


def _digests(root: Path, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the files below a path, or the file that it is, in order, each with its digest."""
    below = sorted(path.rglob("*")) if path.is_dir() else [path]
    for each in below:
        if each.is_file() and "__pycache__" not in each.parts:
            yield (
                each.relative_to(root).as_posix(),
                hashlib.sha256(each.read_bytes()).hexdigest(),
            )


def is_current(root: Path) -> bool:
    """Return whether a build would make the site that is there."""
    try:
        stamp = json.loads((root / STAMP).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(stamp, Mapping) and stamp == _stamp(root)


def _stamp(root: Path) -> dict[str, object]:
    return {"made of": made_of(root), "files": files_of(root / "site")}


def make(root: Path, build: Sequence[str]) -> int:
    """Run a command that builds the site, unless it is current; return its exit status."""
    if is_current(root):
        print("the site is as the last build left it, and so is all that it is made of")
        return 0
    before = made_of(root)
    (root / STAMP).unlink(missing_ok=True)
    status = subprocess.run(build, cwd=root, check=False).returncode  # noqa: S603 (of ours)
    # What changed while the site was built is not in it for certain.
    if status == 0 and made_of(root) == before:
        (root / STAMP).write_text(json.dumps(_stamp(root)), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(make(ROOT, [sys.executable, *BUILD]))
