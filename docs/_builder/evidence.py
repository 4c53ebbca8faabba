"""The verification report of a build, computed once; and what is kept between builds."""

from __future__ import annotations

import ast
import hashlib
import logging
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from otimes.proofs.cache import Cache

CACHE = Cache()  # before the code that the keys are digests of is imported
# isort: split
from otimes.proofs.evidence import Report  # noqa: E402
from otimes.proofs.theorem import Theorem  # noqa: E402
from otimes.proofs.verification import verify  # noqa: E402
from otimes.proofs.workers import process_pool  # noqa: E402

ONLY = "OTIMES_DOCS"
"""The environment variable with the names of the theorems whose pages are built; all by default."""

FEW = 4
"""So few pages are made in this process; more than these in several."""

log = logging.getLogger("mkdocs.hooks.otimes")

chosen: tuple[Theorem, ...] = ()
"""Theorems of a user, whose pages are built in place of those of the catalogue (`own_site`)."""

quick = False
"""Whether the theorems of a user are checked without models and mutants."""

Kept = dict[str, Any]


@cache
def report() -> Report:
    """Return the report of all checks on the whole catalogue; later calls return the same one."""
    log.info("Checking the theorems ...")
    found = verify(
        chosen or os.environ.get(ONLY, "").split() or None,
        cache=CACHE,
        on_progress=lambda done, of, _: tell("checked", done, of),
        quick=quick,
    )
    for note in CACHE.notes:
        log.info(note)
    return found


def tell(what: str, done: int, of: int) -> None:
    """Show how far the build is, on a terminal."""
    if sys.stderr.isatty():
        end = "\n" if done == of else ""
        print(f"\r{what}: {done} of {of}", end=end, file=sys.stderr, flush=True)


def kept(module: str, *asked: Any, make: Callable[[], str]) -> str:
    """Return a text of a module: that of an earlier build if all it depends on is the same."""
    key = CACHE.key("site", builder(module), *asked)
    stored = CACHE.load(key)
    if stored is None:
        stored = {"text": make()}
        CACHE.store(key, stored)
    return str(stored["text"])


def kept_all(
    what: str, keys: Mapping[str, str], make: Callable[[Any], Kept], asked: Mapping[str, Any]
) -> dict[str, Kept]:
    """Return what `make` gives for each name in `keys`, from an earlier build if it is the same.

    The others are made in several processes; `make` is a function of a module. `what` they are is
    told while they are made. What has an empty key is made anew each time.
    """
    found = {name: (key and CACHE.load(key)) or None for name, key in keys.items()}
    missing = [name for name, each in found.items() if each is None]
    for done, (name, made) in enumerate(_made(make, missing, asked), 1):
        found[name] = made
        if keys[name]:
            CACHE.store(keys[name], made)
        tell(what, done, len(missing))
    return {name: each for name, each in found.items() if each is not None}


def _made(make: Callable[[Any], Kept], names: list[str], asked: Mapping[str, Any]) -> Any:
    if len(names) <= FEW:
        for name in names:
            yield name, make(asked[name])
        return
    with process_pool() as pool:
        yield from zip(
            names, pool.map(make, [asked[name] for name in names], chunksize=2), strict=True
        )


@cache
def builder(*modules: str) -> str:
    """Return a digest of what writes pages: modules, those here that they import, and KaTeX."""
    folder = Path(__file__).parent
    files = set(folder.glob("katex/*"))
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        for path in (folder / f"{name}.py", folder / "browser" / f"{name}.py"):
            if path.is_file() and path not in files:
                files.add(path)
                waiting += _imported(path)
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(files))).hexdigest()


def _imported(path: Path) -> list[str]:
    """Return the modules that a file imports."""
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


def key_of(theorem: Theorem, *asked: Any) -> str:
    """Return the key of what depends on a theorem; empty for one of a user.

    A file of a user may depend on anything.
    """
    return "" if theorem.own else CACHE.key(*asked, module=theorem.state.__module__)
