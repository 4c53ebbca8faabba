r"""Transposes that are written with a small t: `A^t`.

A power `t` may be an exponent, or the number of a step. It is read as the transpose where a text
transposes a bracket so, `(X W)^t`, and has no other use for the letter: no `t` by itself, as an
index or in a sum.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

TRANSPOSED = re.compile(r"(?<=\^)t(?![A-Za-z])|(?<=\^\{)t(?=\})")
OF_BRACKET = re.compile(r"(?:[)\]]|\\end\{\w*matrix\})\s*\^(?:t\b|\{t\})")
LETTER = re.compile(r"(?<![A-Za-z\\])t(?![A-Za-z])")
WORDS = re.compile(r"\\(?:text|mathrm|operatorname|mbox|label|begin|end)\*?\{[^{}]*\}|\\[A-Za-z]+")


def transposes_by_t(formulas: Sequence[str]) -> bool:
    r"""Return whether `^t` stands for the transpose in the formulas of a text.

    >>> transposes_by_t([r"S = Q K^t", r"(A B)^t = B^t A^t"])
    True
    >>> transposes_by_t([r"(I - \eta H)^t x_0", r"x_{t+1} = x_t"]), transposes_by_t(["A^t"])
    (False, False)
    """
    if not any(OF_BRACKET.search(tex) for tex in formulas):
        return False
    return not any(LETTER.search(WORDS.sub(" ", TRANSPOSED.sub("", tex))) for tex in formulas)


def with_capital_t(tex: str) -> str:
    r"""Return a formula of the same length with `^T` in place of `^t`.

    >>> with_capital_t(r"(X W)^t + e_1^{t}")
    '(X W)^T + e_1^{T}'
    """
    return TRANSPOSED.sub("T", tex)
