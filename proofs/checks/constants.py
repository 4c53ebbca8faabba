"""That no hypothesis makes a symbol constant, unless the words say so.

A claim about rotations holds for the identity, and a claim about what two components share holds if
one of them is zero. Such a hypothesis is stronger than it reads: the symbol stands for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sympy import Identity, MatMul, MatrixSymbol, OneMatrix, Transpose, ZeroMatrix

from otimes.algebra.language.linear import FamilyMember
from otimes.algebra.language.unicode import unicode_text
from otimes.proofs.claims import Claim, equations

SAID: dict[type, str] = {
    Identity: r"\bidentity\b|= [−-]\s?Id?\b",
    ZeroMatrix: r"switched off|\bis zero\b|\bset to zero\b|\bwithout\b",
    OneMatrix: r"\bones\b",
}
"""Constant matrices, and the words that say that something is one."""


def constant(words: str, claim: Claim) -> str:
    """Return which hypotheses make a symbol constant that the words do not say; empty if none.

    >>> from otimes.proofs.catalogue.symbols import X, d, row
    >>> from otimes.proofs.claims import Statement
    >>> stated = Statement(X * row.W_V, X, given=((row.W_V, Identity(d)),))
    >>> constant("A head that reads all", stated)
    'hypothesis 1 makes W_V constant: put its value into the claim, or ask for less'
    """
    return "; ".join(_constant(words, claim))


def _constant(words: str, claim: Claim) -> Iterator[str]:
    for number, (left, right) in enumerate(equations(getattr(claim, "given", ())), start=1):
        for one, other in ((left, right), (right, left)):
            fixed, value = _bare(one), _bare(other)
            said = next((text for kind, text in SAID.items() if isinstance(value, kind)), None)
            if not isinstance(fixed, MatrixSymbol | FamilyMember) or said is None:
                continue
            if not re.search(said, words):
                yield (
                    f"hypothesis {number} makes {unicode_text(fixed)} constant: put its value "
                    "into the claim, or ask for less"
                )


def _bare(e: Any) -> Any:
    """Return a matrix without a number before it, and not transposed."""
    if isinstance(e, Transpose):
        return _bare(e.arg)
    if isinstance(e, MatMul):
        matrices = [each for each in e.args if getattr(each, "is_Matrix", False)]
        return _bare(matrices[0]) if len(matrices) == 1 else e
    return e
