"""A symbol that is named like a weight or an activation stands for that array of the model."""

import pytest
from sympy import MatrixSymbol

from otimes.numeric.binding import Source
from otimes.proofs.checks import check
from otimes.proofs.checks.names import misnamed
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import find, theorem


def of_bound(name: str, source: str) -> Statement:
    """Return an identity of a matrix that is bound to an array."""
    W = MatrixSymbol(name, 4, 4)
    return Statement((W + W).doit(), W * 2, bind=({name: Source(source)},))


@pytest.mark.parametrize(("name", "source"), [("W_Q", "W_K"), ("resid_pre", "final")])
def test_another_array_under_the_name_of_one_is_refused(name: str, source: str) -> None:
    assert misnamed(of_bound(name, source)).startswith(f"the symbol {name} is bound to {source}: ")
    found = check(theorem(title="wrong")(lambda: of_bound(name, source)), ())
    assert found.proof.status == "error"
    assert found.proof.detail == misnamed(of_bound(name, source))


@pytest.mark.parametrize(("name", "source"), [("W_Q", "W_Q"), ("v", "W_V"), ("C", "W_V")])
def test_its_own_array_and_names_of_no_array_are_not(name: str, source: str) -> None:
    assert not misnamed(of_bound(name, source))


def test_a_theorem_of_the_catalogue_with_its_bindings_exchanged_is_refused() -> None:
    claim = find("additive_alignment_scores").claim()
    bind = [{**each, "W_V": Source("W_K")} for each in claim.bind]
    assert not misnamed(claim)
    assert misnamed(Statement(claim.value, claim.value, bind=bind))
