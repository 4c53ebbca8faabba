"""Entries `u_i` of a declared vector u: true equations are proved, and false ones never."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from otimes.proofs.documents.check import check_text

SAID = r"Let $p, u \in \mathbb{R}^n$ and $A \in \mathbb{R}^{n \times n}$."
Vector = list[int]
N = range(3)


def dot(p: Vector, u: Vector) -> int:
    return sum(p[i] * u[i] for i in N)


CLAIMS: dict[str, Callable[[Vector, Vector, list[Vector]], bool]] = {
    r"p^\top u = \sum_{i=1}^n p_i u_i": lambda p, u, A: dot(p, u) == sum(p[i] * u[i] for i in N),
    r"u^\top u = \sum_i u_i^2": lambda p, u, A: dot(u, u) == sum(u[i] ** 2 for i in N),
    r"u^\top u = \sum_i u_i": lambda p, u, A: dot(u, u) == sum(u),
    r"u^\top \mathrm{diag}(p) u = \sum_i p_i u_i^2": lambda p, u, A: (
        sum(u[i] * p[i] * u[i] for i in N) == sum(p[i] * u[i] ** 2 for i in N)
    ),
    r"u^\top \mathrm{diag}(p) u = \sum_i p_i^2 u_i": lambda p, u, A: (
        sum(u[i] * p[i] * u[i] for i in N) == sum(p[i] ** 2 * u[i] for i in N)
    ),
    r"(A u)_i = \sum_j A_{ij} u_j": lambda p, u, A: (
        [dot(row, u) for row in A] == [sum(A[i][j] * u[j] for j in N) for i in N]
    ),
    r"(A u)_i = \sum_j A_{ji} u_j": lambda p, u, A: (
        [dot(row, u) for row in A] == [sum(A[j][i] * u[j] for j in N) for i in N]
    ),
    r"p^\top A u = \sum_{i,j} A_{ij} p_i u_j": lambda p, u, A: (
        dot(p, [dot(row, u) for row in A]) == sum(A[i][j] * p[i] * u[j] for i in N for j in N)
    ),
    r"p^\top A u = \sum_{i,j} A_{ij} p_j u_i": lambda p, u, A: (
        dot(p, [dot(row, u) for row in A]) == sum(A[i][j] * p[j] * u[i] for i in N for j in N)
    ),
    r"u^\top (\mathrm{diag}(p) - p p^\top) u = \sum_i p_i u_i^2 - \Big(\sum_i p_i u_i\Big)^2": (
        lambda p, u, A: (
            sum(u[i] * ((i == j) * p[i] - p[i] * p[j]) * u[j] for i in N for j in N)
            == sum(p[i] * u[i] ** 2 for i in N) - sum(p[i] * u[i] for i in N) ** 2
        )
    ),
    r"u^\top (\mathrm{diag}(p) - p p^\top) u = \sum_i p_i u_i^2 - \sum_i p_i^2 u_i^2": (
        lambda p, u, A: (
            sum(u[i] * ((i == j) * p[i] - p[i] * p[j]) * u[j] for i in N for j in N)
            == sum(p[i] * u[i] ** 2 for i in N) - sum(p[i] ** 2 * u[i] ** 2 for i in N)
        )
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_an_equation_with_entries_is_proved_if_it_is_true(claim: str) -> None:
    draw = random.Random(7)
    p, u, *A = ([draw.randint(2, 9) for _ in N] for _ in range(5))
    for said in (SAID, SAID.replace(r"\mathbb{R}^n", r"\mathbb{R}^{n \times 1}")):
        found = check_text(f"{said} Then ${claim}$.").equations[-1]
        true = CLAIMS[claim](p, u, A)
        assert (found.verdict == "proved") == true, found.why
        assert not (true and found.is_wrong)


def test_what_is_said_of_entries_in_words_is_no_reason_to_accuse() -> None:
    said = r"The entries of $p$ sum to one. Write $c = p^\top u$."
    claim = r"u^\top (\mathrm{diag}(p) - p p^\top) u = \sum_{i=1}^n p_i (u_i - c)^2"
    assert check_text(f"{SAID} {said} Then ${claim}$.").equations[-1].verdict == "undecided"
    said = said.replace("The entries of $p$ sum to one", r"$\sum_{i=1}^n p_i = 1$")
    found = check_text(f"{SAID} {said} Then ${claim}$.").equations[-1]
    assert (found.verdict, "true given" in found.why) == ("needs-hypothesis", True)


def test_members_of_a_family_of_vectors_are_no_entries() -> None:
    shapes = r"$x \in \mathbb{R}^d$, $W \in \mathbb{R}^{d \times d}$."
    for text in (
        r"Let $x_i \in \mathbb{R}^d$. $\sum_i x_i^\top x_i = \sum_i \|x_i\|^2$",
        rf"{shapes} $x_i^\top W x_j = x_j^\top W^\top x_i$",
    ):
        found = check_text(text).equations[-1]
        assert (found.verdict, "entry" in found.why) == ("proved", False)
