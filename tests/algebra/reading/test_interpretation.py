"""Reading an expression: which diagrams it becomes, how sizes split, and where reading stops."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import HadamardProduct, Identity, MatrixSymbol, OneMatrix, Trace, symbols

from otimes.algebra.diagrams.diagram import Diagram
from otimes.algebra.diagrams.sums import DiagramSum, difference
from otimes.algebra.errors import LanguageError, Undecided
from otimes.algebra.language import coefficients
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.shapes import inspect
from otimes.algebra.reading.interpretation import Interpretation
from otimes.algebra.reading.read import READERS

n, d, p, H = symbols("n d p H")
h, i = symbols("h i")
A, B, W = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n), MatrixSymbol("W", d, d)
M = MatrixSymbol("M", n * d, n * d)
F = Family("F", (H,), n, d)


def read(*expressions: Any) -> tuple[Interpretation, tuple[DiagramSum, ...]]:
    reading = Interpretation(inspect(*expressions), READERS)
    return reading, reading.read(expressions)[0]


def only(expression: Any) -> Diagram:
    _, (value,) = read(expression)
    (diagram,) = value.terms
    return diagram


def test_the_diagrams_of_the_operations() -> None:
    """Rows, columns and boxes by hand; wires are numbered rows first, then columns, then inside."""
    assert only(A) == Diagram((0,), (1,), (), ((0, 0, 1),), only(A).sorts)
    assert only(A.T).boxes == ((0, 1, 0),)
    assert only(matmul(A, B)).boxes == ((0, 0, 2), (1, 2, 1))
    assert only(HadamardProduct(A, B)).boxes == ((0, 0, 1), (1, 0, 1))
    assert only(Trace(A)).boxes == ((0, 0, 0),)
    assert only(Trace(A)).rows == ()
    assert only(kron(A, W))[:4] == ((0, 1), (2, 3), (), ((0, 0, 2), (1, 1, 3)))
    assert only(Identity(n))[:4] == ((0,), (0,), (), ())
    assert only(OneMatrix(n, d))[:4] == ((0,), (1,), (), ())
    assert only(vec_rows(F[i]))[:4] == ((0, 1), (), (("i", 2),), ((0, 2, 0, 1),))
    assert only(vec_cols(F[i])).boxes == ((0, 2, 1, 0),)
    assert only(HeadSum(F[h], (h, H)))[:4] == ((0,), (1,), (), ((0, 2, 0, 1),))
    assert only(ConcatHeads(F[h], (h, H)))[:4] == ((0,), (1, 2), (), ((0, 1, 0, 2),))
    assert only(StackHeads(F[h], (h, H)))[:4] == ((0, 1), (2,), (), ((0, 0, 1, 2),))


def test_loops_are_sizes() -> None:
    _, (value,) = read(Trace(kron(Identity(n), A, Identity(d))))
    ((diagram, coefficient),) = value.terms.items()
    assert diagram.boxes == ((0, 0, 0),)
    assert coefficients.value_at(coefficient, {"n": 3, "d": 5}, lambda *_: None) == 15


def test_size_one_is_no_leg() -> None:
    u = MatrixSymbol("u", n, 1)
    assert only(u).cols == ()
    assert only(kron(u, u.T)).boxes == ((0, 0), (0, 1))


def test_a_size_is_split_when_a_product_asks_for_it() -> None:
    alone, _ = read(M)
    assert len(alone.labels[0].rows) == 1
    together, _ = read(matmul(M, kron(A, W)))
    label = next(label for label in together.labels if label.name == "M")
    assert len(label.rows) == len(label.cols) == 2
    assert [str(together.dimensions.expressions[s]) for s in label.rows] == ["n", "d"]


def test_both_sides_are_split_alike() -> None:
    _, (left, right) = read(OneMatrix(n * d, 1), kron(OneMatrix(n, 1), OneMatrix(d, 1)))
    assert left.rows == right.rows
    assert not difference(left.terms, right.terms)


def test_a_split_of_three() -> None:
    V = MatrixSymbol("V", p, p)
    N = MatrixSymbol("N", n * d * p, n * d * p)
    _, (left, right) = read(
        matmul(N, kron(A, W, V)), matmul(N, kron(A, kron(W, Identity(p))), kron(Identity(n * d), V))
    )
    assert not difference(left.terms, right.terms)


def test_two_orders_of_one_size_do_not_fit() -> None:
    with pytest.raises(Undecided, match=r"legs of sizes \(n, d\) meet legs of sizes \(d, n\)"):
        read(matmul(kron(A, W), kron(W, A)))


def test_a_split_range_of_an_index_is_undecided() -> None:
    G = Family("G", (n * d,), n * d, n * d)
    with pytest.raises(Undecided, match=r"the index h runs over d\*n, which is split elsewhere"):
        read(HeadSum(matmul(G[h], kron(A, W)), (h, n * d)))


def test_coefficients_are_collected() -> None:
    c = symbols("c")
    _, (value,) = read(matadd(matmul(c, A), matmul(2, A), matmul(-c, A)))
    assert list(value.terms.values()) == [2]
    _, (value,) = read(matadd(A, matmul(-1, A)))
    assert not value.terms


def test_too_many_terms_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otimes.algebra.reading.interpretation.MAX_TERMS", 100)
    with pytest.raises(Undecided, match="more than 100 path terms: too many to expand"):
        read(sympy.MatPow(matadd(A, B), 8))


def test_powers_of_traces() -> None:
    assert only(Trace(A) ** 3).boxes == ((0, 0, 0), (0, 1, 1), (0, 2, 2))
    with pytest.raises(LanguageError, match="the power 1/2 of a trace"):
        read(sympy.sqrt(Trace(A)))


def test_one_over_a_trace_is_the_inverse_of_one_entry() -> None:
    reading, (left, right) = read(A / Trace(A * B) ** 2, A / Trace(B * A) ** 2)
    assert not difference(left.terms, right.terms)
    assert len(reading.inverses) == 1


def test_sums_that_do_not_meet_are_not_collected() -> None:
    reading, (left, right) = read(matmul(A, B), matmul(B, A))
    assert len(difference(left.terms, right.terms)) == 2
    assert [label.name for label in reading.labels] == ["A", "B"]
