"""Claims about every depth: the true ones are proved with a certificate, the others never."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import sympy
from sympy import Identity, Inverse, MatrixSymbol, Transpose

from otimes.algebra.decide.certificate import certificate_of, to_json
from otimes.algebra.decide.decide import decided
from otimes.algebra.decide.layer_laws import LAWS
from otimes.algebra.decide.layers_as_matrices import law
from otimes.algebra.errors import LanguageError
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, matmul
from otimes.algebra.verdict import decide
from otimes.proofs import replay
from tests.algebra.decide.attack import false_at, fault_of, proof_alone
from tests.algebra.decide.depth_claims import (
    COMMUTING,
    FALSE,
    LEMMAS,
    TRUE,
    B,
    L,
    S,
    X,
    Y,
    claim,
    commute,
    conjugate,
    l,
    n,
    prod,
)

LONG = os.environ.get("OTIMES_LONG") == "1"
SOME = [*FALSE] if LONG else [*FALSE][::4]  # for which nothing stops the search for a proof early


def accepted(made: Any) -> bool:
    """Return whether the checker accepts a certificate; it raises where not."""
    return bool(replay.check(json.loads(to_json(made))))


@pytest.mark.parametrize("name", TRUE)
def test_true(name: str) -> None:
    """Nothing tries numbers, so that what is proved is proved by proof alone."""
    with proof_alone():
        verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict
    assert accepted(verdict.certificate)
    if len(TRUE[name]) == 2:
        assert false_at(claim(*TRUE[name]), 0) is None


@pytest.mark.parametrize("name", SOME)
def test_false(name: str) -> None:
    with proof_alone():
        assert decide(*FALSE[name], budget=0.3).status == "undecided"
    if len(FALSE[name]) == 2:
        assert false_at(claim(*FALSE[name]), 0, 12) is not None


@pytest.mark.parametrize("name", FALSE)
def test_false_is_refuted(name: str) -> None:
    verdict = decide(*FALSE[name])
    assert verdict.status == "refuted", verdict
    assert fault_of(claim(*FALSE[name]), verdict.counterexample) is None


@pytest.mark.parametrize("name", LEMMAS)
def test_with_lemmas(name: str) -> None:
    lhs, rhs, given, lemmas = LEMMAS[name]
    verdict = decide(lhs, rhs, given, lemma=lemmas)
    assert verdict.status == "proved", verdict
    assert accepted(verdict.certificate)
    assert [one.status for one in verdict.lemmas] == ["proved"] * len(lemmas)
    assert all(accepted(one.certificate) for one in verdict.lemmas)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", LAWS)
def test_each_law_is_proved(name: str, reverse: bool) -> None:
    for ordered in (False, True) if LAWS[name][2] else (False,):
        found = law(name, ordered, reverse, decided)
        assert found is not None
        assert accepted(certificate_of(found.claim, found.proof))


def test_a_law_is_proved_once_for_all_claims() -> None:
    found = law("what passes each layer", False, False, decided)

    def of_another_claim(claim: Any) -> Any:
        raise AssertionError(f"{claim} was decided again")

    assert law("what passes each layer", False, False, of_another_claim) is found


def test_a_lemma_that_is_false_proves_nothing() -> None:
    verdict = decide(*commute(X, Y), lemma=commute(X, Y))
    assert verdict.status == "undecided"
    assert verdict.reason.startswith("lemma 1, X Y = Y X, is false")


def test_a_lemma_is_for_every_depth() -> None:
    """At each single depth a lemma would be proved by what is to be shown."""
    lhs, rhs = prod(B[l]), prod(B[l], True)
    verdict = decide(lhs, rhs, lemma=(lhs, rhs))
    assert verdict.status == "undecided"
    assert "is false" in verdict.reason
    verdict = decide(lhs, rhs, [COMMUTING], lemma=(rhs, lhs))
    assert verdict.status == "proved"
    assert accepted(verdict.certificate)


def test_what_a_lemma_presupposes() -> None:
    lemma = prod(conjugate(B[l])), conjugate(prod(B[l]))
    verdict = decide(matmul(X, lemma[0]), matmul(X, lemma[1]), lemma=lemma)
    assert verdict.status == "proved"  # the claim presupposes it as well
    assert accepted(verdict.certificate)
    same = matmul(MatrixSymbol("S", n, n), prod(B[l]))
    verdict = decide(same, same, lemma=lemma)
    assert verdict.status == "undecided"
    assert "presupposes that S⁻¹ is defined" in verdict.reason


def test_a_lemma_of_other_matrices() -> None:
    Z = MatrixSymbol("Z", n, n)
    with pytest.raises(LanguageError, match="contains Z, of which the claim"):
        decide(X, X, lemma=(matmul(Z, Identity(n)), Z))


def test_a_lemma_as_a_string() -> None:
    verdict = decide("X^4 = X", given=["X X = X"], lemma="X X X = X", shapes="X: n n")
    assert verdict.status == "proved"
    assert [one.status for one in verdict.lemmas] == ["proved"]


def test_the_number_of_layers_may_be_large() -> None:
    many = Family("B", (96,), n, n)
    lhs = Transpose(LayerProduct(many[l], (l, 96)))
    assert decide(lhs, LayerProduct(Transpose(many[l]), (l, 96), True)).status == "proved"
    assert decide(lhs, LayerProduct(Transpose(many[l]), (l, 96))).status != "proved"


def test_a_million_layers_are_refused_at_once() -> None:
    many = Family("B", (10**6,), n, n)
    verdict = decide(LayerProduct(many[l], (l, 10**6)), LayerProduct(many[l], (l, 10**6), True))
    assert verdict.status == "undecided"
    assert verdict.work < 5_000
    assert verdict.reason == (
        "a product over 1000000 layers is not written out: for more than 1000, write a symbol for "
        "the number of layers"
    )


def test_an_inverse_is_that_of_the_statement() -> None:
    """What a law says of an inverse holds where the claim has one."""
    verdict = decide(matmul(Inverse(S), S, prod(B[l])), prod(B[l]))
    assert verdict.status == "proved"
    assert accepted(verdict.certificate)
    zero = sympy.ZeroMatrix(n, n)
    singular = decide(matmul(X, prod(B[l])), zero, [(matmul(X, B[l]), zero)])
    assert singular.status == "proved"
    assert decide(prod(B[l]), zero, [(matmul(X, B[l]), zero)]).status == "refuted"
    assert L.is_positive


def test_no_gram_matrix_is_formed_where_nothing_is_said_of_transposes() -> None:
    """It vanishes only where its root does, and laws that do not hold are asked for often."""
    verdict = decide(*TRUE["layers that commute"])
    assert verdict.status == "proved"
    assert verdict.work < 20_000
