"""A coarse rule: two expressions with one normal form, where single steps would fill a page."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy

from otimes.algebra.budget import STEPS, Exhausted, limited
from otimes.algebra.decide.claim import Claim
from otimes.algebra.diagrams.sums import difference
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.defined import Rotation
from otimes.algebra.language.linear import ConcatHeads, StackHeads, vec_cols, vec_rows
from otimes.algebra.reading.read import read
from otimes.algebra.rules.rule import MATRICES, OF_MATRICES, Rule, product, register, total
from otimes.algebra.rules.symbols import A, B

NORMAL_FORM = "same_normal_form"
KINDS = (
    *MATRICES,
    *OF_MATRICES,
    *(sympy.Add, sympy.Mul, sympy.Pow),
    *(sympy.BlockMatrix, sympy.BlockDiagMatrix, sympy.KroneckerProduct),
    Rotation,
    *(ConcatHeads, StackHeads, vec_cols, vec_rows),
)
UNITS = 0.5  # of work, for reading both sides


@lru_cache(maxsize=4096)
def same_normal_form(before: Any, after: Any) -> bool:
    """Return whether two expressions are the same sum of diagrams, without any equation."""
    try:
        with limited(UNITS * STEPS):
            claim = Claim(before, after)
            _, ((left, right),) = read(claim.signature, claim.sides)
    except (OtimesError, Exhausted):
        return False
    return not difference(left.terms, right.terms)


register(
    Rule(
        NORMAL_FORM,
        product(total(A, B), total(A, B)),
        KINDS,
        relate=same_normal_form,
        after=total(product(A, A), product(A, B), product(B, A), product(B, B)),
        coarse=True,
    )
)
