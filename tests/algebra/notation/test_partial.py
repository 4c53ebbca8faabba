r"""Sums up to an index: verdicts agree with loops over random whole numbers, counted from 1."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from otimes.proofs.documents.check import check_text

SHAPES = (
    "$A \\in \\mathbb{R}^{n \\times n}$, $W \\in \\mathbb{R}^{d \\times d}$, "
    "$x_j, y_j \\in \\mathbb{R}^{1 \\times d}$.\n\n"
)
Side = Callable[["Values", int], int]


class Values:
    """Numbers for the symbols, with d = 1, as functions of indices that count from 1."""

    def __init__(self, draw: random.Random, causal: bool) -> None:
        self.n = 3
        table = {(i, j): draw.randint(1, 9) for i in range(1, 4) for j in range(1, 4)}
        self.A = lambda i, j: table[i, j] if j <= i or not causal else 0
        rows = {name: [draw.randint(1, 9) for _ in range(3)] for name in "xy"}
        self.x, self.y = (lambda j, row=rows[name]: row[j - 1] for name in "xy")


def up_to(last: int, term: Callable[[int], int]) -> int:
    return sum(term(j) for j in range(1, last + 1))


CLAIMS: list[tuple[str, Side, Side]] = [
    (r"\sum_{j \le i} x_j = \sum_{j < i} x_j + x_i",
     lambda v, i: up_to(i, v.x), lambda v, i: up_to(i - 1, v.x) + v.x(i)),
    (r"\sum_{j=1}^{i} x_j = \sum_{j=1}^{i-1} x_j + x_i",
     lambda v, i: up_to(i, v.x), lambda v, i: up_to(i - 1, v.x) + v.x(i)),
    (r"\sum_{j \le i} x_j = \sum_{j < i} x_j",
     lambda v, i: up_to(i, v.x), lambda v, i: up_to(i - 1, v.x)),
    (r"\sum_{j \le i} x_j = \sum_{j < i} x_j - x_i",
     lambda v, i: up_to(i, v.x), lambda v, i: up_to(i - 1, v.x) - v.x(i)),
    (r"\sum_{j \le i} A_{ij} x_j = \sum_{j < i} A_{ij} x_j + A_{ii} x_i",
     lambda v, i: up_to(i, lambda j: v.A(i, j) * v.x(j)),
     lambda v, i: up_to(i - 1, lambda j: v.A(i, j) * v.x(j)) + v.A(i, i) * v.x(i)),
    (r"\sum_{j \le i} A_{ij} x_j = \sum_{j < i} A_{ij} x_j + A_{ij} x_i",
     lambda v, i: up_to(i, lambda j: v.A(i, j) * v.x(j)), lambda v, i: -1),
    (r"\sum_{j \le i} (x_j + y_j) = \sum_{j \le i} x_j + \sum_{j < i} y_j",
     lambda v, i: up_to(i, lambda j: v.x(j) + v.y(j)),
     lambda v, i: up_to(i, v.x) + up_to(i - 1, v.y)),
    (r"\sum_{i=1}^n \sum_{j \le i} A_{ij} = \sum_{i=1}^n A_{ii} + \sum_{i=1}^n \sum_{j < i} A_{ij}",
     lambda v, i: up_to(v.n, lambda i: up_to(i, lambda j: v.A(i, j))),
     lambda v, i: up_to(v.n, lambda i: v.A(i, i))
     + up_to(v.n, lambda i: up_to(i - 1, lambda j: v.A(i, j)))),
    (r"\sum_{j \le i} A_{ij} x_j = \sum_{j=1}^n A_{ij} x_j",
     lambda v, i: up_to(i, lambda j: v.A(i, j) * v.x(j)),
     lambda v, i: up_to(v.n, lambda j: v.A(i, j) * v.x(j))),
    (r"\sum_{i=1}^n \sum_{j < i} A_{ij} = \sum_{i=1}^n \sum_{j=1}^n A_{ij}",
     lambda v, i: up_to(v.n, lambda i: up_to(i - 1, lambda j: v.A(i, j))),
     lambda v, i: up_to(v.n, lambda i: up_to(v.n, lambda j: v.A(i, j)))),
]  # fmt: skip


def holds(left: Side, right: Side, causal: bool) -> bool:
    draw = random.Random(7)
    worlds = [Values(draw, causal) for _ in range(5)]
    return all(left(v, i) == right(v, i) for v in worlds for i in range(1, 4))


@pytest.mark.parametrize(("claim", "left", "right"), CLAIMS)
def test_verdicts_agree_with_loops(claim: str, left: Side, right: Side) -> None:
    found = check_text(f"{SHAPES}${claim}$").equations[-1]
    if holds(left, right, causal=False):
        assert found.verdict == "proved"
    elif holds(left, right, causal=True):
        assert found.verdict == "needs-hypothesis"
        assert "causal" in found.why
    else:
        assert found.verdict in ("refuted", "undecided")


def test_an_end_that_is_a_size_is_no_index() -> None:
    claim = "$\\sum_{j=1}^n x_j W = (\\sum_{j \\le n} x_j) W$"
    text = f"{SHAPES} Let $n$ be the number of tokens. {claim}"
    assert check_text(text).equations[-1].verdict != "refuted"
