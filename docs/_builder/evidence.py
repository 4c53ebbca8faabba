"""The one run of the checks behind all pages of a build."""

from __future__ import annotations

import logging
from functools import cache

from proofs import verify
from proofs.evidence import Report

log = logging.getLogger("mkdocs.hooks.otimes")


@cache
def report() -> Report:
    """Return the report of all checks on the whole catalogue; later calls return the same one."""
    log.info("Checking the theorems of the catalogue ...")
    return verify()
