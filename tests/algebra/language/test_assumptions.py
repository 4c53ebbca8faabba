"""Assumptions on scalars are honoured or refused, in proofs and in counterexamples.

The random part has an oracle of its own: polynomials as nested tuples, evaluated by plain Python on
a grid of small numbers. A refutation must be a point that meets everything assumed, and a proof
must hold at every such point of the grid.
"""

from __future__ import annotations

import itertools
import json
import operator
import os
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
import sympy
from sympy import Identity, MatrixSymbol, Ne, Symbol, Trace, ZeroMatrix, sqrt, symbols

from otimes.algebra.decide.claim import Claim
from otimes.algebra.errors import LanguageError
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.roots import exact_root
from otimes.algebra.verdict import Verdict, decide

n, m, H, L, h, i = symbols("n m H L h l")
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
O = ZeroMatrix(n, n)  # noqa: E741
a, b, c = symbols("a b c")
nonzero, positive = Symbol("z", nonzero=True), Symbol("p", positive=True)
negative, nonnegative = Symbol("q", negative=True), Symbol("r", nonnegative=True)
other = Symbol("s", nonnegative=True)
even, odd = Symbol("e", even=True), Symbol("o", odd=True)
F, G = Family("F", (L,), n, n), Family("G", (H,), n, n)

PROVED = {
    "a nonzero factor": (A, B, [(nonzero * A, nonzero * B)]),
    "a negative factor": (A, B, [(negative * A, negative * B)]),
    "a power of it": (A, B, [(nonzero**3 * A, nonzero**3 * B)]),
    "a product of such": (A, B, [(nonzero * negative * A, nonzero * negative * B)]),
    "an odd factor": (A, B, [(odd * A, odd * B)]),
    "said not to be zero": (A, B, [Ne(a, 0), (a * A, a * B)]),
    "positive by hypothesis": (A, B, [a > 0, (a * A, a * B)]),
    "reversed": (A, B, [sympy.Integer(0) < a, (a * A, a * B)]),
    "above one": (A, B, [a > 1, (a * A, a * B)]),
    "at least one": (A, B, [a >= 1, (a * A, a * B)]),
    "below minus two": (A, B, [a <= -2, (a * A, a * B)]),
    "a product that is not zero": (A, B, [Ne(a * b, 0), (b * A, b * B)]),
    "a factor of what is not zero": (A, B, [Ne(a**2 - a, 0), ((a - 1) * A, (a - 1) * B)]),
    "two numbers that differ": (a, b, [Ne(a, c), ((a - c) * (a - b), sympy.Integer(0))]),
    "a polynomial": (A, O, [((a * b - 1) * A, O), Ne(a * b, 1)]),
    "a polynomial, all on one side": (A, O, [((a * b - 1) * A, O), Ne(a * b - 1, 0)]),
    "what is divided by": (A, O, [Ne(1 / a, b), ((a * b - 1) * A, O)]),
    "below one": (A, B, [((1 - a) * A, (1 - a) * B), a < 1]),
    "both together": (A, B, [((1 - a) * A, (1 - a) * B), sympy.And(a > 0, a < 1)]),
    "two polynomials": (
        A,
        B,
        [((a - 1) * (b - 2) * A, (a - 1) * (b - 2) * B), Ne(a, 1), Ne(b, 2)],
    ),
    "one more than a square": (A, B, [((1 + a**2) * A, (1 + a**2) * B)]),
    "one more than a positive": (A, B, [((1 + positive) * A, (1 + positive) * B)]),
    "one more than a nonnegative": (
        A,
        B,
        [((1 + nonnegative) * A, (1 + nonnegative) * B)],
    ),
    "two positives": (A, B, [((b + positive) * A, (b + positive) * B), b > 0]),
    "a size": (A, O, [((n - 1) * A, O), n > 1]),
    "an inverse": (A, B, [(a * A, a * B), (a * b, sympy.Integer(1))]),
    "two inverses": (
        A,
        B,
        [(a * c * A, a * c * B), (a * b, sympy.Integer(2)), (c * c, sympy.Integer(3))],
    ),
    "entries": (A[0, 0], sympy.Integer(0), [(nonzero * A[0, 0], sympy.Integer(0))]),
    "a root of a product": (sqrt(nonnegative) * sqrt(other) * A, sqrt(nonnegative * other) * A, []),
    "a root by hypothesis": (sqrt(a) * sqrt(b) * A, sqrt(a * b) * A, [a >= 0, b > 0]),
    "a positive factor in relu": (
        Activation("relu", a * A),
        a * Activation("relu", A),
        [a > 0],
    ),
    "every depth": (
        a * LayerProduct(F[i], (i, L)).T,
        a * LayerProduct(F[i].T, (i, L), reverse=True),
        [Ne(a, 0), L > 2],
    ),
    "every depth, with a division": (
        LayerProduct(F[i], (i, L)) * A,
        LayerProduct(F[i], (i, L)) * B,
        [Ne(a, 0), (a * A, a * B)],
    ),
    "true says nothing": (a * A, A * a, [Ne(1, 0), sympy.true]),
}


@pytest.mark.parametrize("name", PROVED)
def test_it_is_proved(name: str) -> None:
    lhs, rhs, given = PROVED[name]
    verdict = decide(lhs, rhs, given)
    assert verdict.status == "proved", verdict
    assert "no numbers were found" not in verdict.reason or name == "two inverses"
    json.dumps(verdict.certificate)
    verdict.steps  # noqa: B018 (nothing is raised)


NOT_PROVED = {
    "a factor without a sign": (A, B, [(a * A, a * B)]),
    "a nonnegative factor": (A, B, [(nonnegative * A, nonnegative * B)]),
    "an even factor": (A, B, [(even * A, even * B)]),
    "nonnegative by hypothesis": (A, B, [a >= 0, (a * A, a * B)]),
    "above minus one": (A, B, [a > -1, (a * A, a * B)]),
    "below one": (A, B, [a < 1, (a * A, a * B)]),
    "another symbol": (A, B, [Ne(b, 0), (a * A, a * B)]),
    "a sum that is not zero": (A, B, [Ne(a + b, 0), (a * A, a * B)]),
    "another polynomial": (A, O, [((a * b - 1) * A, O), Ne(a * b, 2)]),
    "a square less one": (A, B, [((a**2 - 1) * A, (a**2 - 1) * B)]),
    "a positive less one": (A, B, [((positive - 1) * A, (positive - 1) * B)]),
    "two of opposite signs": (
        A,
        B,
        [((positive + negative) * A, (positive + negative) * B)],
    ),
    "nonnegatives": (A, B, [((nonnegative + other) * A, (nonnegative + other) * B)]),
    "a size": (A, O, [((n - 1) * A, O)]),
    "an inverse of another": (A, B, [(a * A, a * B), (c * b, sympy.Integer(1))]),
    "a product that is zero": (A, B, [(a * A, a * B), (a * b, sympy.Integer(0))]),
    "a negative factor in relu": (
        Activation("relu", a * A),
        a * Activation("relu", A),
        [a < 0],
    ),
}


@pytest.mark.parametrize("name", NOT_PROVED)
def test_what_may_vanish_is_not_divided_by(name: str) -> None:
    lhs, rhs, given = NOT_PROVED[name]
    verdict = decide(lhs, rhs, given)
    assert verdict.status == "refuted", verdict
    assert verdict.counterexample is not None


REFUSED = {
    "complex": (lambda: decide(Symbol("w", complex=True) * A, A), "declared complex: a scalar is"),
    "imaginary": (lambda: decide(Symbol("w", imaginary=True) * A, A), "declared imaginary"),
    "real=False": (lambda: decide(Symbol("w", real=False) * A, A), "declared real=False"),
    "infinite": (lambda: decide(Symbol("w", infinite=True) * A, A), "declared infinite"),
    "extended": (lambda: decide(Symbol("w", extended_positive=True) * A, A), "extended_real"),
    "prime": (lambda: decide(Symbol("w", prime=True) * A, A), "w is declared prime, which"),
    "irrational": (lambda: decide(Symbol("w", irrational=True) * A, A), "declared irrational"),
    "integer=False": (lambda: decide(Symbol("w", integer=False) * A, A), "declared noninteger"),
    "even=False": (lambda: decide(Symbol("w", even=False) * A, A), "declared even=False"),
    "zero": (lambda: decide(Symbol("w", zero=True), a), "declared zero: write 0 instead"),
    "a zero size": (
        lambda: decide(Identity(Symbol("w", zero=True)), Identity(3)),
        "declared zero: a size is an integer from 1 on",
    ),
    "a negative count": (
        lambda: decide(HeadSum(A, (h, Symbol("w", negative=True))), A),
        "declared negative: a size is an integer from 1 on",
    ),
    "an index without 0": (lambda: decide(G[Symbol("k", positive=True)], A), "leaves out values"),
    "an even index": (lambda: decide(G[Symbol("k", even=True)], A), "leaves out values"),
    "a negative root": (lambda: decide(sqrt(negative) * A, A), "q stands under a root and is nev"),
    "a root of what is said to be negative": (
        lambda: decide(sqrt(a) * A, A, [a < 0]),
        "a stands under a root and is never positive",
    ),
    "a root of a product": (lambda: decide(sqrt(a * b), a, [a >= 0]), "positive or nonnegative"),
    "matrices": (lambda: decide(A, B, [Ne(A, B)]), "A != B is about a matrix"),
    "a trace": (lambda: decide(A, B, [Trace(A) > 0]), r"tr\(A\) > 0 is about a matrix"),
    "an entry": (lambda: decide(A, B, [A[0, 0] >= 1]), r"A\[0, 0\] >= 1 is about a matrix"),
    "infinity": (lambda: decide(a, b, [sympy.Lt(a, sympy.oo)]), "Infinity"),
    "a power": (lambda: decide(a, b, [sympy.Gt(2**a, 1)]), "not in the language"),
    "an index": (lambda: decide(G[h], A, [h > 0]), "h is used both as an index and as a number"),
    "false": (lambda: decide(A, B, [Ne(1, 1)]), "a hypothesis is false"),
    "false, unevaluated": (
        lambda: decide(A, B, [Ne(a * (b + c), a * b + a * c)]),
        "a hypothesis is false",
    ),
    "a comparison by Python": (lambda: decide(A, B, [a != 0]), "the Python value True"),
    "or": (lambda: decide(a, b, [sympy.Or(a > 0, b > 0)]), "a hypothesis is a pair"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_honoured_is_refused(name: str) -> None:
    question, message = REFUSED[name]
    with pytest.raises(LanguageError, match=message):
        question()


def test_harmless_assumptions_are_accepted() -> None:
    for flags in ({"real": True}, {"rational": True}, {"finite": True}, {"positive": False}):
        x = Symbol("x", **flags)
        assert decide(x * A, A * x).status == "proved"
        assert decide(x * A, A).status == "refuted"
    for flags in ({"nonnegative": True}, {"real": True}, {"odd": True}, {}):
        size = Symbol("k", **flags)
        assert decide(Identity(size), 2 * Identity(size)).status == "refuted"


SIGNED = {
    "positive": lambda x: x > 0,
    "negative": lambda x: x < 0,
    "nonnegative": lambda x: x >= 0,
    "nonpositive": lambda x: x <= 0,
    "nonzero": lambda x: x != 0,
    "integer": lambda x: Fraction(x).denominator == 1,
    "even": lambda x: Fraction(x, 2).denominator == 1,
    "odd": lambda x: Fraction(x, 2).denominator == 2,
}


@pytest.mark.parametrize("flag", SIGNED)
def test_a_counterexample_has_the_signs(flag: str) -> None:
    """False claims whose smallest counterexample would be a scalar that is not allowed."""
    x = Symbol("x", **{flag: True})
    for claim, expected in ((x * A, A), (x * A, O), (x * A, 2 * A), (x * A, -A), (x, x**2)):
        verdict = decide(claim, expected)
        assert verdict.status == "refuted"
        assert verdict.counterexample is not None
        assert SIGNED[flag](verdict.counterexample.scalars[x])


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ([a > 1000], lambda a, b: a > 1000),
        ([a > 0, a < 1], lambda a, b: 0 < a < 1),
        ([Ne(a, 0), Ne(a, 1), Ne(a, 2)], lambda a, b: a not in (0, 1, 2)),
        ([a < b, b < 0], lambda a, b: a < b < 0),
        ([a >= 5, a <= 5], lambda a, b: a == 5),
        ([sympy.Eq(a + b, 1), a > 0, b > 0], lambda a, b: a + b == 1 and a > 0 and b > 0),
        ([sympy.Eq(a * b, 1), a > 1], lambda a, b: a * b == 1 and a > 1),
        ([a**2 > 20, b >= a], lambda a, b: a**2 > 20 and b >= a),
    ],
)
def test_a_counterexample_meets_inequalities(given: Any, holds: Any) -> None:
    verdict = decide(a * A + b * A, 3 * A * a, given)
    assert verdict.status == "refuted", verdict
    assert verdict.counterexample is not None
    scalars = verdict.counterexample.scalars
    assert holds(scalars[a], scalars.get(b, Fraction(0)))


def test_inequalities_of_sizes() -> None:
    found = decide(Identity(n), 2 * Identity(n), [n >= 4]).counterexample
    assert found is not None
    assert found.sizes == {n: 4}
    verdict = decide((n - 1) * (n - 2) * A, O, [n <= 2])
    assert verdict.status == "undecided"
    found = decide(Identity(n), a * Identity(n), [a > n, n > 2]).counterexample
    assert found is not None
    assert found.scalars[a] > found.sizes[n] > 2


def test_contradictions_are_said() -> None:
    reason = decide(a * A, A, [a > 0, a < 0]).reason
    assert "no numbers were found that satisfy the hypotheses" in reason
    verdict = decide(A, B, [a > 0, a < 0, (a * A, a * B)])
    assert verdict.status == "proved"
    assert "no numbers were found that satisfy the hypotheses" in verdict.reason


def test_used_counts_all_hypotheses() -> None:
    verdict = decide(A, B, [Ne(a, 0), a > -5, (a * A, a * B)])
    assert verdict.used == (2,)
    assert "hypothesis 3" in verdict.reason


def test_facts_are_plain_data() -> None:
    given = [Ne(a * b, 1), a > 0, b >= c, (a * A, a * B)]
    known = Claim(nonzero * A, nonzero * B, given).assumptions
    assert known.signs == {"z": frozenset({"nonzero"})}
    assert known.of_kind("nonzero") == [a * b - 1]
    assert known.of_kind("positive") == [a]
    assert [sympy.expand(e) for e in known.of_kind("nonnegative")] == [b - c]
    assert known.named("nonzero") >= {"a", "z", "n"}
    assert "b" not in known.named("nonzero")


def test_a_root_of_zero_is_zero() -> None:
    assert exact_root(0, Fraction(1, 2)) == 0
    found = decide(sqrt(nonnegative) * A, nonnegative * A).counterexample
    assert found is not None
    assert found.scalars[nonnegative] >= 0


# -- admissible sizes ------------------------------------------------------------------------------


def sizes_of(lhs: Any, rhs: Any, *given: Any) -> Any:
    verdict = decide(lhs, rhs, given)
    assert verdict.status == "refuted", verdict
    assert verdict.counterexample is not None
    return verdict.counterexample


def test_a_number_of_heads_is_at_least_one() -> None:
    found = sizes_of(HeadSum(A, (h, H - 2)), (H - 1) * A)
    assert found.sizes[H] == 3
    assert "# presupposes H - 2 >= 1" in str(found)
    true = decide(HeadSum(A, (h, H - 2)), (H - 2) * A)
    assert (true.status, list(map(str, true.presupposes))) == ("proved", ["H - 2 >= 1"])


@pytest.mark.parametrize("less", [1, 3, 10, 100])
def test_a_dimension_is_at_least_one(less: int) -> None:
    found = sizes_of(Identity(n - less), ZeroMatrix(n - less, n - less))
    assert found.sizes == {n: less + 1}
    assert f"# presupposes n - {less} >= 1" in str(found)


def test_every_kind_of_length() -> None:
    k = symbols("k")
    few = Family("K", (H - 3,), n, n)
    assert sizes_of(few[h], 2 * few[h]).sizes[H] >= 4
    assert sizes_of(LayerProduct(A, (i, L - 1)), A).sizes[L] >= 3  # one layer is A itself
    assert sizes_of(OrderSum(F[i], (i, L), k - 1), O).sizes[k] == 1  # an order may be 0
    assert sizes_of(OrderSum(F[i], (i, L), k - 2), O).sizes[k] >= 2
    assert sizes_of(sympy.Sum(A[k, k], (k, 0, n - 1)), sympy.Integer(0)).sizes[n] >= 1
    found = sizes_of(Identity(n - m), 2 * Identity(n - m))
    assert found.sizes[n] > found.sizes[m]
    cut = MatrixSymbol("C", n - 2, m)
    found = sizes_of(sympy.BlockMatrix([[cut], [cut]]), ZeroMatrix(2 * n - 4, m))
    assert found.sizes[n] == 3


def test_no_layers_may_be_written() -> None:
    assert decide(LayerProduct(A, (i, 0)), Identity(n)).status == "proved"
    assert sizes_of(LayerProduct(A, (i, 0)), 2 * Identity(n)).presupposes == ()


def test_what_is_always_a_size_is_not_mentioned() -> None:
    found = sizes_of(Identity(2 * n - 1), 2 * Identity(2 * n - 1))
    assert found.sizes == {n: 1}
    assert found.presupposes == ()
    assert sizes_of(Identity(n * m + 1), 2 * Identity(n * m + 1)).presupposes == ()
    assert "# presupposes H >= 4" in str(sizes_of(G[3], G[0]))


def test_parity_of_sizes() -> None:
    for flag, smallest in (("even", 2), ("odd", 1)):
        k = Symbol("k", positive=True, **{flag: True})
        assert sizes_of(Identity(k), 2 * Identity(k)).sizes == {k: smallest}
        found = sizes_of(Identity(k - 2), 2 * Identity(k - 2))
        assert found.sizes == {k: smallest + 2}
    k = Symbol("k", positive=True, odd=True)
    assert sizes_of(Identity(k), k * Identity(k)).sizes == {k: 3}


def test_an_even_depth_has_no_induction() -> None:
    """One layer more than an even number is none: what SymPy knows of L is not true of L + 1."""
    depth = Symbol("L", even=True, positive=True)
    claim = LayerProduct(A, (i, depth)), LayerProduct(-A, (i, depth))
    assert decide(*claim).status == "undecided"
    assert decide(LayerProduct(A, (i, L)), LayerProduct(-A, (i, L))).status == "refuted"


# -- random claims, and an oracle that knows nothing of the project --------------------------------

Tree = Any  # a number, a name, or (operation, tree, tree)
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
COMPARED = {
    "!=": (operator.ne, sympy.Ne),
    ">": (operator.gt, sympy.Gt),
    ">=": (operator.ge, sympy.Ge),
    "<": (operator.lt, sympy.Lt),
    "<=": (operator.le, sympy.Le),
}
KINDS: list[dict[str, bool]] = [{}, {}, *[{flag: True} for flag in SIGNED]]
GRID = [Fraction(k, 2) for k in range(-6, 7)]


def value(tree: Tree, at: dict[str, Fraction]) -> Fraction:
    if isinstance(tree, tuple):
        return OPERATIONS[tree[0]](value(tree[1], at), value(tree[2], at))
    return at[tree] if isinstance(tree, str) else Fraction(tree)


def expression(tree: Tree, symbol: dict[str, Symbol]) -> Any:
    if isinstance(tree, tuple):
        return OPERATIONS[tree[0]](expression(tree[1], symbol), expression(tree[2], symbol))
    return symbol[tree] if isinstance(tree, str) else sympy.Integer(tree)


def factor(draw: random.Random) -> Tree:
    x, y = draw.choice("xy"), draw.choice("xy")
    whole = draw.choice([1, 1, -1, 2, 3])
    return draw.choice(
        [
            x,
            x,
            ("*", x, y),
            ("+", x, whole),
            ("-", ("*", x, y), whole),
            ("+", ("*", x, x), whole),
            ("+", x, y),
            ("+", x, ("*", 2, "y")),
        ]
    )


def random_claim(draw: random.Random) -> tuple[Tree, Tree, list[Any], list[Any]]:
    """Return (left, right, equations, inequalities) in x, y and the unknowns u, v."""
    f, g = factor(draw), factor(draw)
    equation = draw.choice(
        [
            (("*", f, "u"), ("*", f, "v")),
            (("*", f, "u"), 0),
            (("*", f, "u"), g),
            (("*", ("*", f, g), "u"), ("*", ("*", f, g), "v")),
        ]
    )
    left, right = draw.choice(
        [
            ("u", "v"),
            ("u", 0),
            (("*", g, "u"), ("*", g, "v")),
            (("*", "x", "u"), ("*", "x", "v")),
        ]
    )
    inequalities = [
        (draw.choice(list(COMPARED)), draw.choice([f, g, "x", "y"]), draw.choice([0, 0, 0, 1, "y"]))
        for _ in range(draw.choice([0, 1, 1, 2]))
    ]
    return left, right, [equation], inequalities


LONG = os.environ.get("OTIMES_LONG") == "1"


@pytest.mark.parametrize("seed", range(6 if LONG else 1))
def test_random_claims_agree_with_brute_force(seed: int) -> None:
    draw, seen = random.Random(seed), Counter[str]()
    values = itertools.product(GRID, GRID, GRID[::3], GRID[::3])
    points = [dict(zip("xyuv", numbers, strict=True)) for numbers in values]
    for _ in range(200):
        flags = {name: draw.choice(KINDS) for name in "xy"}
        symbol = {name: Symbol(name, **flags.get(name, {})) for name in "xyuv"}
        left, right, equations, inequalities = random_claim(draw)

        def assumed(
            at: dict[str, Fraction],
            flags: Any = flags,
            equations: Any = equations,
            inequalities: Any = inequalities,
        ) -> bool:
            return (
                all(SIGNED[flag](at[name]) for name in "xy" for flag in flags[name])
                and all(value(e, at) == value(f, at) for e, f in equations)
                and all(COMPARED[o][0](value(e, at), value(f, at)) for o, e, f in inequalities)
            )

        given = [tuple(expression(e, symbol) for e in pair) for pair in equations]
        given += [
            COMPARED[o][1](expression(e, symbol), expression(f, symbol)) for o, e, f in inequalities
        ]
        sides = [expression(side, symbol) for side in (left, right)]
        told = (flags, left, right, equations, inequalities)
        verdict = unless_false(*sides, given)
        if verdict is None:
            assert not any(assumed(at) for at in points), told
            continue
        seen[verdict.status] += 1
        if verdict.status == "refuted":
            assert verdict.counterexample is not None
            found = {s.name: Fraction(v) for s, v in verdict.counterexample.scalars.items()}
            at = {name: Fraction(1) for name in "xyuv"} | found
            met = [at | dict(zip("xyuv", more, strict=True)) for more in _free(found)]
            assert any(assumed(one) and value(left, one) != value(right, one) for one in met), told
        if verdict.status == "proved":
            assert all(value(left, at) == value(right, at) for at in points if assumed(at)), told
    assert seen["proved"] > 15
    assert seen["refuted"] > 60


def unless_false(lhs: Any, rhs: Any, given: Any) -> Verdict | None:
    """Return the verdict, or None where a hypothesis was found to be false."""
    try:
        return decide(lhs, rhs, given)
    except LanguageError as error:
        if "a hypothesis is false" not in str(error):
            raise
        return None


def _free(found: dict[str, Fraction]) -> Any:
    """Return values of x, y, u, v: those found, and any for a symbol that SymPy made vanish."""
    return itertools.product(*[[found[x]] if x in found else GRID for x in "xyuv"])
