"""Inverses of members at a free index: a claim for each value of it is one about any matrix."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import Identity, Inverse, MatrixSymbol, Trace

import otimes as ot
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import Claim, fault_of, rejected

n, L = sympy.symbols("n L", integer=True, positive=True)
h, i, j = sympy.symbols("h i j", integer=True)
A, I = MatrixSymbol("A", n, n), Identity(n)  # noqa: E741
F, G = ot.Family("F", (L,), n, n), ot.Family("G", (L, L), n, n)
n_layers = sympy.Symbol("n_layers", integer=True, positive=True)
H = ot.Family("H", (L, n_layers), n, n)
TRUE: dict[str, tuple[Any, ...]] = {
    "of a product": (Inverse(F[i] * A), Inverse(A) * Inverse(F[i])),
    "of two members": (Inverse(F[i] * F[j]), Inverse(F[j]) * Inverse(F[i])),
    "turned": (Inverse(F[i]).T, Inverse(F[i].T)),
    "pushed through": (Inverse(I + F[i] * A) * F[i], F[i] * Inverse(I + A * F[i])),
    "a conjugate's trace": (Trace(Inverse(F[i]) * A * F[i]), Trace(A)),
    "beside a sum": (
        Inverse(F[h] * A) * ot.HeadSum(F[h], (h, L)),
        Inverse(A) * Inverse(F[h]) * ot.HeadSum(F[i], (i, L)),
    ),
    # no layer depends on the index of the layers, and j has as many values as there are layers
    "in each layer": (
        ot.LayerProduct(F[h] + H[h, j], (i, n_layers)),
        ot.LayerProduct(F[h].T + H[h, j].T, (i, n_layers), reverse=True).T,
    ),
    "under a hypothesis": (Inverse(F[i] * A), A * Inverse(F[i]), [(A * A, I)]),
}
FALSE: dict[str, tuple[Any, ...]] = {
    "in order": (Inverse(F[i] * F[j]), Inverse(F[i]) * Inverse(F[j])),
    "of another member": (Inverse(F[i] * F[j]), Inverse(F[i] * F[i])),
    "pushed on one side": (Inverse(I + F[i] * A) * F[i], F[i] * Inverse(I + F[i] * A)),
    "by another": (Trace(Inverse(F[i]) * A * F[j]), Trace(A)),
    "an index that is bound": (
        Inverse(F[h] * A) * ot.HeadSum(F[h], (h, L)),
        L * Inverse(F[h] * A) * F[h],
    ),
    "one index of two is bound": (
        ot.HeadSum(Inverse(G[i, h] * A), (h, L)),
        L * Inverse(G[i, h] * A),
    ),
}


@pytest.mark.parametrize("claim", TRUE.values(), ids=TRUE)
def test_it_is_proved_with_a_certificate(claim: Any) -> None:
    verdict = decide(*claim)
    assert verdict.status == "proved"
    assert rejected(verdict) is None


@pytest.mark.parametrize("claim", FALSE.values(), ids=FALSE)
def test_a_near_miss_is_refuted(claim: Any) -> None:
    verdict = decide(*claim)
    assert verdict.status == "refuted"
    assert fault_of(Claim(*claim), verdict.counterexample) is None
