"""Inequalities of ranks and norms, ≠ and ≈: true ones are proved, near-misses never."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from otimes.proofs.documents.check import check_text

SHAPES = (
    "$W_V \\in \\mathbb{R}^{d \\times h}$, $W_O \\in \\mathbb{R}^{h \\times d}$, "
    "$X \\in \\mathbb{R}^{n \\times d}$, $B, C \\in \\mathbb{R}^{d \\times d}$.\n\n"
)


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
    ],
)
def test_what_holds_is_proved(statement: str) -> None:
    assert verdict(statement) == "proved"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (r"\operatorname{rank}(W_V W_O) \le n", "refuted"),
        (r"\operatorname{rank}(X) \le n - 1", "refuted"),
        (r"\operatorname{rank}(B W_V W_O + W_V W_O C) \le h", "undecided"),
        (r"\operatorname{rank}(B C) \le \operatorname{rank}(B C B)", "undecided"),
        (
            r"\operatorname{rank}(B) + \operatorname{rank}(C) \le \operatorname{rank}(B + C)",
            "undecided",
        ),
        (r"\operatorname{rank}(B + B) \le 0", "undecided"),
        (r"\|B\|_F \|C\|_F \le \|BC\|_F", "refuted"),
        (r"\|BC\|_F \le \|B\|_2 \|C\|_2", "undecided"),
        (r"\|BC\|_F \le \|C\|_F \|B\|_F", "undecided"),
        (r"\|BC\|_F \le \|B\|_F", "undecided"),
        (r"\|B + C\|_F \le \|B\|_F \|C\|_F", "refuted"),
        (r"\|B + C\|_F \le \|B\|_F + \|B\|_F", "undecided"),
        (r"(BC)^\top \ne C^\top B^\top", "refuted"),
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
