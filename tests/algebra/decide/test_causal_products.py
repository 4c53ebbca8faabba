"""Products of causal matrices are causal: what attention patterns have in common."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import HadamardProduct, MatrixSymbol

import otimes as ot
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import Claim, fault_of, rejected

n = sympy.Symbol("n", integer=True, positive=True)
A, B = (MatrixSymbol(name, n, n) for name in "AB")
MASK = ot.CausalMask(n)


def masked(e: Any, mask: Any = MASK) -> Any:
    return HadamardProduct(e, mask)


def causal(*matrices: Any, mask: Any = MASK) -> list[Any]:
    return [(masked(e, mask), e) for e in matrices]


patterns = ot.RowSoftmax(A, MASK) * ot.RowSoftmax(B, MASK)
TRUE: dict[str, tuple[Any, ...]] = {
    "two": (masked(A * B), A * B, causal(A, B)),
    "a square": (masked(A * A), A * A, causal(A)),
    "later positions": (masked(A * B, MASK.T), A * B, causal(A, B, mask=MASK.T)),
    "patterns": (masked(patterns), patterns),
    "what is masked": (masked(masked(A) * masked(B)), masked(A) * masked(B)),
}
FALSE: dict[str, tuple[Any, ...]] = {
    "one of two": (masked(A * B), A * B, causal(A)),
    "one is transposed": (masked(A * B.T), A * B.T, causal(A, B)),
    "masked before": (masked(A * B), masked(A) * masked(B)),
    "a pattern and any matrix": (masked(ot.RowSoftmax(A, MASK) * B), ot.RowSoftmax(A, MASK) * B),
    "the other mask": (masked(A * B, MASK.T), A * B, causal(A, B)),
}


@pytest.mark.parametrize("claim", TRUE.values(), ids=TRUE)
def test_a_product_is_causal(claim: Any) -> None:
    verdict = decide(*claim)
    assert verdict.status == "proved"
    assert rejected(verdict) is None


@pytest.mark.parametrize("claim", FALSE.values(), ids=FALSE)
def test_a_near_miss_is_refuted(claim: Any) -> None:
    verdict = decide(*claim)
    assert verdict.status == "refuted"
    if len(claim) > 2:
        assert fault_of(Claim(*claim), verdict.counterexample) is None
