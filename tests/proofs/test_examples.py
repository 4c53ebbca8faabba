"""Examples among hypotheses: tried where they fit, refused where they break what is given."""

from __future__ import annotations

from sympy import Identity, MatrixSymbol, Transpose

from otimes.algebra.language.linear import matmul
from otimes.proofs.catalogue.symbols import d, m, n
from otimes.proofs.claims import Example, equations
from otimes.proofs.hypotheses import assignments
from otimes.proofs.mutants import check_mutants

A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", m, d)
ORTHONORMAL = (matmul(Transpose(A), A), Identity(m))
TALL = Example({"A": [[1, 0], [0, 1], [0, 0], [0, 0]]})


def test_an_example_is_met_and_the_rest_is_drawn() -> None:
    met = list(assignments([ORTHONORMAL, TALL], A, B, count=20))
    tall = [each for each in met if each.sizes["n"] == 4]
    assert len(tall) > 10
    assert all(each.sizes["m"] == 2 for each in tall)
    assert len({each.arrays["B"].tobytes() for each in tall}) > 5


def test_an_example_that_breaks_a_hypothesis_is_not_used() -> None:
    stretched = Example({"A": [[2, 0], [0, 1], [0, 0], [0, 0]]})
    met = assignments([ORTHONORMAL, stretched], A, B, count=5)
    assert all(each.sizes["n"] < 4 for each in met)


def test_an_example_says_nothing_and_is_no_hypothesis_to_lose() -> None:
    assert equations([ORTHONORMAL, TALL]) == (ORTHONORMAL,)
    claim = matmul(Transpose(A), A, B), B
    assert check_mutants(*claim, [ORTHONORMAL, TALL]).escaped == ()


def test_what_holds_without_a_hypothesis_is_told_beside_an_example() -> None:
    claim = matmul(Transpose(A), matmul(A, B)), matmul(matmul(Transpose(A), A), B)
    (escaped,) = check_mutants(*claim, [ORTHONORMAL, TALL]).escaped
    assert "without hypothesis 1" in escaped
