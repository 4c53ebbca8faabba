"""Inequalities of ranks and norms, ≠ and ≈: true ones are proved, near-misses never."""

from __future__ import annotations

import os
import random
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest

from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.tree import Apply, Name, Node, Norm, Power, Product, Sum, bare
from otimes.proofs.documents.check import check_text
from otimes.proofs.documents.proving.bounds import norm_at_most, rank_at_most

SHAPES = (
    "$W_V \\in \\mathbb{R}^{d \\times h}$, $W_O \\in \\mathbb{R}^{h \\times d}$, "
    "$X \\in \\mathbb{R}^{n \\times d}$, $B, C \\in \\mathbb{R}^{d \\times d}$, "
    "$u, v \\in \\mathbb{R}^d$.\n\n"
)


LONG = 3000 * bool(os.environ.get("OTIMES_LONG"))


def verdict(statement: str, before: str = "") -> str:
    return check_text(f"{SHAPES}{before} ${statement}$").equations[-1].verdict


@pytest.mark.parametrize(
    "statement",
    [
        r"\operatorname{rank}(W_V W_O) \le h",
        r"\operatorname{rank}(W_V W_O) \le \min(d, h)",
        r"h \ge \mathrm{rank}(X W_V)",
        r"\operatorname{rank}(BC) \le \min(\operatorname{rank}(B), \operatorname{rank}(C))",
        r"\operatorname{rank}(B + C) \le \operatorname{rank}(B) + \operatorname{rank}(C)",
        r"\operatorname{rank}(B W_V W_O + W_V W_O C) \le 2h",
        r"\|BC\|_F \le \|B\|_F \|C\|_F",
        r"\|B C^\top\|_F \le \|B\|_2 \|C\|_F",
        r"\|B + C\|_F \le \|B\|_F + \|C\|_F",
        r"\|BC\|_F \le \|C\|_F \|B\|_F",
        r"\|B - X^\top X\|_F \le \|B\|_F + \|X\|_F \|X\|_2",
        r"\operatorname{rank}(B + W_V W_O) \le \operatorname{rank}(B) + h",
        r"\operatorname{rank}((W_V W_O)^\top) \le \operatorname{rank}(W_V)",
        r"|u^\top v| \le \|u\| \|v\|",
        r"|u^\top B v| \le \|u\| \|B\| \|v\|",
    ],
)
def test_what_holds_is_proved(statement: str) -> None:
    assert verdict(statement) == "proved"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (r"\operatorname{rank}(W_V W_O) \le n", "refuted"),
        (r"\operatorname{rank}(X) \le n - 1", "refuted"),
        (r"\operatorname{rank}(B W_V W_O + W_V W_O C) \le h", "refuted"),
        (r"\operatorname{rank}(B C) \le \operatorname{rank}(B C B)", "undecided"),
        (
            r"\operatorname{rank}(B) + \operatorname{rank}(C) \le \operatorname{rank}(B + C)",
            "refuted",
        ),
        (r"\operatorname{rank}(B + B) \le 0", "refuted"),
        (r"\|B\|_F \|C\|_F \le \|BC\|_F", "refuted"),
        (r"\|BC\|_F \le \|B\|_2 \|C\|_2", "refuted"),
        (r"\|BC\|_F \le \|B\|_F", "refuted"),
        (r"\|B + C\|_F \le \|B\|_F \|C\|_F", "refuted"),
        (r"\|B + C\|_F \le \|B\|_F + \|B\|_F", "refuted"),
        (r"(BC)^\top \ne C^\top B^\top", "refuted"),
        (r"\operatorname{rank}(B^\top C) \le \operatorname{rank}(BC)", "undecided"),
        (r"\|B^\top C B\|_F \le \|B C\|_F \|B\|_F", "refuted"),
        (r"|B^\top C| \le \|B\| \|C\|", "undecided"),
        (r"BC \ne CB", "undecided"),
        (r"1/3 \approx 0.4", "undecided"),
        (r"B \approx C", "undecided"),
    ],
)
def test_near_misses_are_not(statement: str, expected: str) -> None:
    assert verdict(statement) == expected


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (r"13.8/0.32 \approx 43", "the digits that are shown"),
        (r"1/3 \approx 0.34", "an approximation"),
        (r"(B + C) X^\top \approx B X^\top + C X^\top", "even equal"),
    ],
)
def test_an_approximation_is_never_proved(statement: str, why: str) -> None:
    found = check_text(f"{SHAPES} ${statement}$").equations[-1]
    assert found.verdict == "undecided"
    assert why in found.why


def test_words_before_a_false_statement_take_it_back() -> None:
    assert verdict(r"(BC)^\top \ne C^\top B^\top", "It is not true that") == "undecided"


def rank(rows: list[list[Fraction]]) -> int:
    """Return the rank by elimination."""
    found = 0
    for column in range(len(rows[0])):
        pivot = next((r for r in range(found, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for r in range(found + 1, len(rows)):
            factor = rows[r][column] / rows[found][column]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[found], strict=True)]
        found += 1
    return found


def test_the_sizes_that_refute_a_bound_on_a_rank_do_so_by_elimination() -> None:
    found = check_text(f"{SHAPES} $\\operatorname{{rank}}(W_V W_O) \\le n$").equations[-1]
    assert "the rank is 2 and the bound 1 for d = 2, h = 2, n = 1" in found.why
    draw = random.Random(1)
    V, out = ([[Fraction(draw.randint(-3, 3)) for _ in range(2)] for _ in range(2)] for _ in "VO")
    made = [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*out, strict=True)]
        for row in V
    ]
    assert rank(made) == 2


def test_no_bound_by_a_law_is_exceeded_by_random_matrices() -> None:
    """Random products and sums, with bounds of random groups of their factors, by floats."""
    draw, numbers = random.Random(7), np.random.default_rng(7)
    given = [
        {name: numbers.integers(-2, 3, (3, 3)) * (numbers.random((3, 3)) < 0.4) for name in "ABC"}
        for _ in range(10)
    ]
    proved = 0
    for _ in range(LONG or 150):
        run = [draw.choice(("A", "B", "C", "A^T", "B^T", "C^T")) for _ in range(draw.randint(1, 3))]
        groups = [draw.choice(("A", "B", "C", "A^T B", "A B", "C B^T")) for _ in run]
        other = [*run] if draw.random() < 0.5 else groups
        draw.shuffle(other)
        kinds = [draw.choice("F2") for _ in other]
        product = " ".join(rf"\|{part}\|_{kind}" for part, kind in zip(other, kinds, strict=True))
        ranks = [rf"\operatorname{{rank}}({part})" for part in other]
        least = ranks[0] if len(ranks) == 1 else rf"\min({', '.join(ranks)})"
        for inside, bound in ((" ".join(run), least), (" + ".join(run), " + ".join(ranks))):
            (claim,) = parse_formula(rf"{inside} \le {bound}")
            if rank_at_most(*claim.terms, lambda part, size: None) is not None:
                proved += 1
                assert all(rank_of(claim.terms[0], at) <= value(claim.terms[1], at) for at in given)
        (claim,) = parse_formula(rf"\|{' '.join(run)}\|_{draw.choice('F2')} \le {product}")
        if norm_at_most(*claim.terms) is not None:
            proved += 1
            values = [[value(side, at) for side in claim.terms] for at in given]
            assert all(left <= right * (1 + 1e-9) for left, right in values)
    assert proved > 40


def rank_of(node: Node, given: dict[str, Any]) -> int:
    return int(np.linalg.matrix_rank(value(node, given)))


def value(node: Node, given: dict[str, Any]) -> Any:
    """Return the value of a term by floats, which shares nothing with the laws."""
    node = bare(node)
    if isinstance(node, Name):
        return given[node.base].astype(float)
    if isinstance(node, Power):
        return value(node.base, given).T
    if isinstance(node, Norm):
        return np.linalg.norm(value(node.argument, given), "fro" if node.kind == "F" else 2)
    if isinstance(node, Apply):
        least = node.function.base == "min"
        of = value if least else rank_of
        return min(of(each, given) for each in node.arguments)
    assert isinstance(node, Sum | Product)
    parts = [value(each, given) for each in (node.terms if isinstance(node, Sum) else node.factors)]
    join = np.add if isinstance(node, Sum) else np.matmul if np.ndim(parts[0]) else np.multiply
    return reduce(join, parts)


def test_an_inequality_names_the_facts_that_it_rests_on() -> None:
    found = check_text(f"{SHAPES} $\\|B + C\\|_F \\le \\|B\\|_F + \\|C\\|_F$").equations[-1]
    assert found.facts == ("the norm of a sum is at most the sum of the norms",)
    assert "without certificate" in found.why
    assert found.to_json()["facts"] == [*found.facts]
