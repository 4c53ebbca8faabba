"""Inverses of layers such as (I + F[l])⁻¹: members of a family of inverses."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import Inverse, Sum, Trace

from otimes.algebra.language.index_arithmetic import elaborated
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import Claim, fault_of, rejected
from tests.algebra.decide.unrolled import F, G, I, L, S, i, j, l, prod, tot

TRUE: dict[str, Any] = {
    "of a residual stack": (Inverse(prod(I + F[l])), prod(Inverse(I + F[l]), L, True)),
    "of a transposed stack": (Inverse(prod(F[l]).T), prod(Inverse(F[l].T))),
    "of products": (Inverse(prod(F[l] * G[l]).T), prod(Inverse(F[l]).T * Inverse(G[l]).T)),
    "undone layer by layer": (prod(Inverse(I + F[l]), L, True) * prod(I + F[l]), I),
    "up to a free layer": (prod(I + F[l], i) * prod(Inverse(I + F[l]), i, True), I),
    "a resolvent": (tot(Inverse(I + F[l])), L * I - tot(Inverse(I + F[l]) * F[l])),
    "of what commutes": (
        prod(Inverse(I - F[l]) * (I + F[l])),
        prod((I + F[l]) * Inverse(I - F[l])),
    ),
    "under a gauge": (
        prod(Inverse(S) * Inverse(I + F[l]) * S),
        Inverse(S) * prod(Inverse(I + F[l])) * S,
    ),
}
FALSE: dict[str, Any] = {
    "in the same order": (Inverse(prod(I + F[l])), prod(Inverse(I + F[l]))),
    "of a transposed stack in reverse": (
        Inverse(prod(F[l]).T),
        prod(Inverse(F[l].T), L, True),
    ),
    "undone in the same order": (prod(Inverse(I + F[l])) * prod(I + F[l]), I),
    "a resolvent without its number": (
        tot(Inverse(I + F[l])),
        I - tot(Inverse(I + F[l]) * F[l]),
    ),
    "of another layer": (
        prod(Inverse(I - F[l]) * (I + F[l])),
        prod((I - F[l]) * Inverse(I + F[l])),
    ),
}


@pytest.mark.parametrize("claim", TRUE.values(), ids=TRUE)
def test_it_is_proved_with_a_certificate(claim: Any) -> None:
    verdict = decide(*claim)
    assert verdict.status == "proved"
    assert rejected(verdict) is None


@pytest.mark.parametrize("claim", FALSE.values(), ids=FALSE)
def test_a_near_miss_is_refuted_without_the_inverse(claim: Any) -> None:
    """The family of inverses, which only the proof has, is not among the numbers."""
    verdict = decide(*claim)
    assert verdict.status == "refuted"
    found = verdict.counterexample
    assert found is not None
    assert {*found.arrays} == {"F"}
    assert fault_of(Claim(*claim), found) is None


def test_only_what_is_inverted_for_all_layers_is_assumed_to_have_an_inverse() -> None:
    """Where only some are evaluated, that all have one would say more than the claim does."""
    some = (
        tot(Inverse(I + F[l]), l, i),
        Sum(Trace(Inverse(I + F[j])), (j, 0, i)),
        prod(Inverse(I + F[l]), i),
    )
    for e in some:
        assert not elaborated([e, e])[1]
    _, (after, before) = elaborated([prod(Inverse(I + F[l])), I])
    assert {len(pair[0].args) for pair in (after, before)} == {2}
    assert after[1] == before[1] == I
