"""The verification report of a build, computed once; and pages that are kept between builds."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from otimes.proofs.cache import Cache

CACHE = Cache()  # before the code that the keys are digests of is imported
# isort: split
from otimes.proofs.evidence import Report, TheoremReport  # noqa: E402
from otimes.proofs.verification import verify  # noqa: E402

ONLY = "OTIMES_DOCS"
"""The environment variable with the names of the theorems whose pages are built; all by default."""

log = logging.getLogger("mkdocs.hooks.otimes")


@cache
def report() -> Report:
    """Return the report of all checks on the whole catalogue; later calls return the same one."""
    log.info("Checking the theorems of the catalogue ...")
    found = verify(os.environ.get(ONLY, "").split() or None, cache=CACHE)
    for note in CACHE.notes:
        log.info(note)
    return found


def kept(each: TheoremReport, number: str, write: Callable[[], str]) -> str:
    """Return the page of a theorem: that of an earlier build if all it depends on is the same."""
    theorem = each.theorem
    seen = {**each.to_json(), "seconds": None, "from_cache": None}
    key = CACHE.key("page", number, seen, _builder(), module=theorem.state.__module__)
    stored = CACHE.load(key)
    if stored is None:
        stored = {"text": write()}
        CACHE.store(key, stored)
    return str(stored["text"])


@cache
def _builder() -> str:
    """Return a digest of the modules that write pages."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
