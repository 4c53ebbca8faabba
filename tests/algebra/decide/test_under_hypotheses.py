"""Slips under hypotheses are refuted, by numbers that a second evaluator confirms."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from otimes.algebra.decide.congruence import congruences, solved
from otimes.algebra.evaluate.exact_arrays import ExactArray
from otimes.algebra.language.functions import Polynomial, interpolated
from otimes.algebra.notation.text import read_claim
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import Claim, fault_of
from tests.algebra.decide.under_hypotheses import FALSE, SHAPES, TRUE

LARGE = {"n": "40", "d": "36", "r": "33"}  # of which lists of numbers are multiplied in time
FEW = FALSE[::9]


def said(text: str, sizes: dict[str, str]) -> str:
    """Return a statement or declarations with numbers for sizes."""
    text = text.replace("n - 2", f"{int(sizes['n']) - 2}") if sizes else text
    return re.sub(r"(?<=[ {])[ndr]\b", lambda m: sizes.get(m[0], m[0]), text)


def asked(entry: tuple[str, str, str], sizes: dict[str, str]) -> Claim:
    """Return the claim of an entry, in SymPy."""
    claim, given, shapes = (said(text, sizes) for text in entry)
    read = read_claim(claim, None, given.split("; "), said(shapes or SHAPES, sizes))
    return Claim(read.lhs, read.rhs, [each.args for each in read.given])


@pytest.mark.parametrize("sizes", [{}, LARGE], ids=["symbols", "large"])
def test_a_slip_under_hypotheses_is_refuted(sizes: dict[str, str]) -> None:
    wrong = []
    for entry in FEW if sizes else FALSE:
        claim = asked(entry, sizes)
        found = decide(claim.lhs, claim.rhs, claim.given).counterexample
        why = "not refuted" if found is None else fault_of(claim, found)
        wrong += [(entry, why)] * bool(why)
    assert not wrong


def test_at_real_sizes_it_is_refuted_in_little_work() -> None:
    sizes = {"n": "768", "d": "64", "r": "12"}
    undecided = []
    for entry in FALSE[::2]:
        claim = asked(entry, sizes)
        verdict = decide(claim.lhs, claim.rhs, claim.given, budget=2)
        undecided += [entry[0]] * (verdict.status != "refuted")
    assert len(undecided) <= 2, undecided


@pytest.mark.parametrize("sizes", [{}, {"n": "768", "d": "64", "r": "12"}, LARGE])
def test_what_follows_is_never_refuted(sizes: dict[str, str]) -> None:
    for entry in TRUE:
        claim = asked(entry, sizes)
        verdict = decide(claim.lhs, claim.rhs, claim.given, budget=1)
        assert verdict.status == "proved" or (sizes and "relu" in entry[0]), entry
        assert verdict.status != "refuted"


def test_a_polynomial_takes_the_values_it_is_given() -> None:
    values: dict[Any, Any] = {0: 3, 2: 5, -1: 5, 7: 0}
    found = interpolated(values, Polynomial((2, 0, 1)))
    assert {x: found(x) for x in values} == values
    assert found(1) != interpolated(values, Polynomial((1,)))(1)


def test_columns_have_the_inner_products_they_are_given() -> None:
    """At C = S Sᵀ, whose pivots 5 and 9/5 are no squares."""
    middle = ExactArray((2, 2), [5, -4, -4, 5])
    draw = random.Random(0)
    found = [solved(middle, ExactArray((1, 1), [1]), 2, draw) for _ in range(20)]
    w = next(w for w in found if w is not None)
    x, y = w.flat
    assert 5 * x * x - 8 * x * y + 5 * y * y == 1


def test_a_congruence_is_read_on_either_side() -> None:
    claim = asked(("W = W", "Wᵀ C W = K; W C Wᵀ = K; K = Wᵀ W; Wᵀ C = I", ""), {})
    names = [[(e.name, e.by_rows) for e in congruences(pair)] for pair in claim.given]
    assert names == [[("W", False)], [("W", True)], [("W", False)], []]
