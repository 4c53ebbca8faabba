"""Proofs from equations that the text supposes in another place, where these need not hold.

“Suppose that $A X = I$” counts in its section from there on, and in its paragraph. In a section
about notation it counts everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from otimes.algebra.notation.tree import Node
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.verdicts.judge import Judge

SAID = re.compile(r"\(line (\d+)\)")


def unless_said_elsewhere(judge: Judge, found: Found, sides: Sequence[Node], line: int) -> Found:
    """Return a proof, without what is supposed in other sections and later."""
    context = judge.context
    rows = {int(row) for each in found.hypotheses for row in SAID.findall(each)}
    apart = {row for row in rows if not _counts(context, row, line)}
    if found.verdict != "proved" or not apart:
        return found
    known = context.hypotheses
    context.hypotheses = [h for h in known if h.line not in apart]
    try:
        anew = judge.claim(sides[0], sides[1], line, "")
    finally:
        context.hypotheses = known
    if anew.verdict == "proved":
        return anew
    why = f"true given {'; '.join(found.hypotheses)}, which is said in another place"
    return replace(found, verdict="needs-hypothesis", why=why)


def _counts(context: Context, said: int, line: int) -> bool:
    if context.together(said, line) or context.is_general(said):
        return True
    return said <= line and context.in_scope(said, line)
