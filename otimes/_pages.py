"""The implementation of `otimes pages --html`: a site of theorems, built as this project's is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import otimes as ot
from otimes.numeric.files import check_writable

BUILDER = Path(__file__).parents[1] / "docs" / "_builder" / "own_site.py"
NEEDS = ("mkdocs", "material", "mkdocstrings", "py_mini_racer")
"""Modules of the extra `docs`."""

MARK = ".otimes-site"
"""A file in each folder that was written: a build empties its folder, and should no other."""


def build_site(theorems: Sequence[str], keyword: str | None, out: Path, quick: bool) -> int:
    """Build a site with a page for each theorem: 0 if all passed, 1 if not, 2 if there is none.

    Raises OtimesError where the repository or the extra `docs` is missing, or if the folder has
    other files.
    """
    if not BUILDER.is_file():
        raise ot.OtimesError(
            "pages in HTML are built by what builds the site of otimes, which is in a clone of the"
            " repository and not in this installation: clone it, or leave out --html"
        )
    if missing := [name for name in NEEDS if find_spec(name) is None]:
        raise ot.OtimesError(
            f"pages in HTML need the extra `docs`, and {missing[0]} is not installed: pip install"
            " -e '.[docs]' in the repository, or leave out --html"
        )
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise ot.OtimesError(
            f"{out} has files that `otimes pages --html` did not write, and a build empties its"
            " folder: name another one with --out"
        )
    check_writable(out, folder=True)
    asked = {"theorems": list(theorems), "keyword": keyword, "out": str(out), "quick": quick}
    command = [sys.executable, str(BUILDER), json.dumps(asked)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    status = subprocess.run(command, env=quiet, check=False).returncode  # noqa: S603 (of ours)
    if status in (0, 1):
        (out / MARK).write_text("", "utf-8")
    return status
