r"""What words say of a row or a column of a matrix: `column $i$ of $H$ is $W_O \sum_j A_{ij} v_j$`.

It is a claim where H is defined. A row may be written as a column, so the part counts as it is and
transposed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from otimes.algebra.notation.tree import Name
from otimes.proofs.documents.prose.declared_in_words import Prose
from otimes.proofs.documents.symbols.members import Part

SAID = re.compile(
    r"(?:\b|(?=⟦))(?:(?P<nth>⟦\d+⟧|[a-z])(?:\s*-?\s*th|\^\{th\})?[\s-]+)?(?P<side>row|column)"
    r"(?:\s+(?P<at>⟦\d+⟧|[a-z]))?\s+of\s+(?P<whole>⟦\d+⟧)\s+(?:is|equals|reads)\s+"
    r"(?:then\s+|therefore\s+|the\s+vector\s+)?(?P<value>⟦\d+⟧)",
    re.IGNORECASE,
)


def parts_in(prose: Prose) -> Mapping[int, Part]:
    """Return what words say that formulas are parts of, by the offset of the formula."""
    found = {}
    for match in SAID.finditer(prose.text):
        at = match["at"] or match["nth"]
        whole, value = prose.node(_number(match["whole"])), int(_number(match["value"]))
        index = prose.node(_number(at)) if at and at[0] == "⟦" else None
        letter = index.base if isinstance(index, Name) and not index.sub else at
        if isinstance(whole, Name) and whole.base.isupper() and letter and len(letter) == 1:
            side = match["side"].lower()
            found[prose.formulas[value].start] = Part(whole, side, letter)
    return found


def _number(mark: str) -> str:
    return mark.strip("⟦⟧")
