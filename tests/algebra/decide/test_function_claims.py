"""Random claims about functions, masks, positions, powers, layers and signs: no verdict is wrong.

Half of them are decided without trials, so that a wrong proof has nothing that hides it.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import pytest
import sympy
from mpmath import mp
from sympy import ZeroMatrix

from otimes.algebra.decide.trials import without_trials
from otimes.algebra.errors import LanguageError, ShapeError
from otimes.algebra.language.linear import Family, matadd, matmul
from otimes.algebra.language.nonlinear import RMSNorm, RowSoftmax
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.verdict import Verdict, decide
from otimes.proofs import replay
from tests.algebra.decide import real_values
from tests.algebra.decide.function_claims import (
    A,
    Claim,
    Claims,
    L,
    M,
    N,
    X,
    a,
    b,
    d,
    f,
    i,
    j,
    m,
    minus,
    n,
    ones,
    x,
    y,
)
from tests.algebra.decide.real_values import DIGITS, Rows, UndefinedError, Values, apart

LONG = os.environ.get("OTIMES_LONG") == "1"
PARTS = 200 if LONG else 2
EACH = 100 if LONG else 10
BUDGET = 0.06
WORLDS, TRIES = 3, 24
CONDITIONAL = 5  # times as many under hypotheses, which hold at few numbers


def drawn(claim: Claim, draw: random.Random) -> Iterator[tuple[dict[Any, Any], dict[Any, Rows]]]:
    """Yield numbers and matrices at which the hypotheses hold."""
    sides = [claim.lhs, claim.rhs, *[e for e in claim.given if isinstance(e, tuple) for e in e]]
    conditions = [e for e in claim.given if not isinstance(e, tuple)]
    for _ in range(TRIES * CONDITIONAL if claim.given else TRIES):
        at: dict[Any, Any] = {size: draw.choice((1, 2, 2, 3)) for size in (n, d, m, L)}
        at |= {index: draw.randrange(at[n]) for index in (i, j)}
        at |= {s: Fraction(draw.randint(-4, 4), draw.choice((1, 1, 2))) for s in (a, b)}
        if not all(e.subs({s: sympy.Rational(at[s]) for s in (a, b)}) for e in conditions):
            continue
        arrays = matrices(sides, Values(at, {}), draw)
        try:
            with mp.workdps(max(DIGITS)):
                for target, e in draw.choice(claim.models):
                    put(target, e, Values(at, arrays), draw)
            if holds(claim, at, arrays):
                yield at, arrays
        except UndefinedError:
            continue


def matrices(sides: list[Any], values: Values, draw: random.Random) -> dict[Any, Rows]:
    """Return random entries for the matrices in expressions; half of the time they are positive."""
    least = draw.choice((-4, 1))

    def made(shape: Any) -> Rows:
        rows, cols = map(values.number, shape)
        return [[Fraction(draw.randint(least, 4), 2) for _ in range(cols)] for _ in range(rows)]

    arrays: dict[Any, Rows] = {}
    for e in sides:
        for tensor in sorted(e.atoms(sympy.MatrixSymbol), key=str):
            arrays.setdefault(tensor.name, made(tensor.shape))
        for family in sorted(e.atoms(Family), key=str):
            begin, count = values.number(family.firsts[0]), values.number(family.counts[0])
            for place in range(begin, begin + count):
                arrays.setdefault((family.name, place), made(family.shape))
    return arrays


def put(target: Any, e: Any, values: Values, draw: random.Random) -> None:
    """Give a matrix, or each member of a family, the value of an expression."""
    arrays: Any = values.arrays
    if not isinstance(target, Family):
        arrays[target.name] = values.value(e)
        return
    for place in range(values.number(target.counts[0])):
        arrays[target.name, place] = values.value(e(sympy.Integer(draw.randint(-2, 2))))


def holds(claim: Claim, at: dict[Any, Any], arrays: dict[Any, Rows]) -> bool:
    """Return whether the equations among the hypotheses hold, at every layer."""
    for e in claim.given:
        if isinstance(e, tuple):
            free = [s for s in e[0].free_symbols | e[1].free_symbols if s.name == "l"]
            places: list[dict[Any, int]] = [{s: k} for s in free for k in range(at[L])] or [{}]
            if any(apart(*e, {**at, **place}, arrays) for place in places):
                return False
    return True


def counted(claim: Claim, quick: bool, draw: random.Random) -> str:
    """Return what was said of a claim, once it is found to be right."""
    trials = nullcontext() if quick else without_trials()
    try:
        with trials:
            verdict = decide(claim.lhs, claim.rhs, claim.given, BUDGET, lemma=claim.lemmas)
    except (LanguageError, ShapeError):  # such as an index that an alteration put out of range
        return "no claim"
    if verdict.status == "refuted":
        assert is_confirmed(claim, verdict), told(claim, verdict)
    if verdict.status == "proved":
        replay.check(verdict.certificate)
        return hold_together(claim, verdict, draw)
    return verdict.status


def hold_together(claim: Claim, verdict: Verdict, draw: random.Random) -> str:
    """Return whether a proved claim was tried at numbers, at none of which its sides differ."""
    tried = 0
    for at, arrays in drawn(claim, draw):
        try:
            wrong = apart(claim.lhs, claim.rhs, at, arrays)
        except UndefinedError:
            continue
        assert not wrong, f"{told(claim, verdict)}\n{at}\n{arrays}"
        tried += 1
        if tried == (WORLDS * CONDITIONAL if claim.given else WORLDS):
            break
    return "proved" if tried else "proved, and nowhere defined"


def is_confirmed(claim: Claim, verdict: Verdict) -> bool:
    """Return whether the sides differ, and the hypotheses hold, at a counterexample."""
    found = verdict.counterexample
    assert found is not None
    at: dict[Any, Any] = {**found.sizes, **found.indices}
    at |= {s: Fraction(value) for s, value in found.scalars.items()}
    missing = [size for size in (L, n, d, m) if size not in at]
    at |= dict.fromkeys(missing, 1)
    arrays: dict[Any, Rows] = {}
    for name, array in found.arrays.items():
        rows = array.tolist()
        if len(array.shape) == 2:
            arrays[name] = exact(rows)
        else:
            begin = Values(at, {}).number(1 - n) if name == "R" else 0
            arrays |= {(name, begin + place): exact(one) for place, one in enumerate(rows)}
    for name, polynomial in found.functions.items():
        real_values.FUNCTIONS[name] = polynomial
    conditions = [e for e in claim.given if not isinstance(e, tuple)]
    kept = all(e.subs({s: sympy.Rational(v) for s, v in found.scalars.items()}) for e in conditions)
    return bool(kept) and holds(claim, at, arrays) and apart(claim.lhs, claim.rhs, at, arrays)


def exact(rows: Any) -> Rows:
    return [[Fraction(entry) for entry in row] for row in rows]


def told(claim: Claim, verdict: Verdict) -> str:
    sides = " = ".join(map(unicode_text, (claim.lhs, claim.rhs)))
    return (
        f"{claim.law}: {sides}\n{claim.given} {claim.lemmas}\n{verdict!r}\n{verdict.counterexample}"
    )


def verdicts(seed: int, count: int) -> Counter[tuple[bool, str]]:
    """Return how often what was said of claims, by whether they were meant to be true."""
    claims, draw = Claims(seed), random.Random(seed)
    said: Counter[tuple[bool, str]] = Counter()
    for number in range(count):
        true = number % 2 == 0
        claim = claims.identity() if true else claims.near_miss()
        said[true and not claim.open, counted(claim, number % 4 < 2, draw)] += 1
    return said


def test_an_irrational_hypothesis_is_no_linear_system() -> None:
    """Its solutions are no fractions; the numbers are looked for among integers."""
    known = f("log", f("exp", matadd(x, x)))
    given = (matmul(a * b + 1, known), matmul(a * b + 1, y))
    verdict = decide(known, y, (given, a > b, b >= 0), BUDGET)
    assert verdict.status in ("proved", "undecided")


@pytest.mark.parametrize(
    ("lhs", "rhs", "says"),
    [
        (matmul(RowSoftmax(A, N), ones(n)), ones(n), True),  # the first row of the mask is zero
        (matmul(RowSoftmax(A, M), ones(n)), ones(n), False),
        (matadd(f("log", minus(x, x)), y), matadd(y, f("log", minus(x, x))), True),
        (matadd(f("log", x), y), matadd(y, f("log", x)), False),
        (matadd(RMSNorm(ZeroMatrix(n, d)), X), matadd(X, RMSNorm(ZeroMatrix(n, d))), True),
        (matadd(RMSNorm(X), X), matadd(X, RMSNorm(X)), False),
    ],
)
def test_a_claim_that_is_never_defined_says_so(lhs: Any, rhs: Any, says: bool) -> None:
    verdict = decide(lhs, rhs)
    assert verdict.status == "proved"
    assert ("no numbers were found that give both sides an exact value" in verdict.reason) is says


@pytest.mark.parametrize("part", range(PARTS))
def test_no_verdict_is_wrong(part: int) -> None:
    said = verdicts(part, EACH)
    assert said[True, "refuted"] == 0
    assert said[True, "proved"] >= EACH // 8, said
