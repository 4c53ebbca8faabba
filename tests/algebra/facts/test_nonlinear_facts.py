"""Facts about softmax, masks, norms and activations: they hold on numbers, and no more is said.

The exact numbers are those of functions with rational values that satisfy the same axioms
(`exact_matrices`); the functions themselves are evaluated by NumPy and SciPy.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.special
import sympy
from sympy import HadamardProduct, Identity, Inverse, MatrixSymbol, OneMatrix, ZeroMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.facts import Fact, attention_pattern, facts, nonlinear, rules
from otimes.algebra.facts.normalise import normalise
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.unicode import unicode_text
from tests.algebra import exact_matrices as em
from tests.algebra.facts.test_facts import WORLDS, H, check, expression, h, m, n, setting

d, k = sympy.symbols("d k", integer=True, positive=True)
eps = sympy.Symbol("epsilon", positive=True)
S, T, mask = (MatrixSymbol(name, n, n) for name in ("S", "T", "mask"))
v, R = MatrixSymbol("v", n, 1), MatrixSymbol("R", n, d)
W_QK, W_V, W_O = MatrixSymbol("W_QK", d, d), MatrixSymbol("W_V", d, k), MatrixSymbol("W_O", k, d)
scores = R * W_QK * R.T
pattern = RowSoftmax(scores, CausalMask(n))
F_QK = Family("W_QK", (H,), d, d)


def applied(draw: random.Random, e: Any, others: Callable[[Any], Any]) -> Any:
    """Return a function of an expression, or something around one."""
    choices = [
        RowSoftmax(e),
        RMSNorm(e, 1),
        LayerNorm(e, 1),
        *[Activation(name, e) for name in em.ACTIVATIONS],
    ]
    rows, cols = e.shape
    if rows == cols:
        masks = [CausalMask(rows), matadd(CausalMask(rows), OneMatrix(rows, rows)), Identity(rows)]
        choices += [RowSoftmax(e, each) for each in (*masks, masks[0])]
        choices += [CausalMask(rows), RowSoftmax(ZeroMatrix(rows, cols))]
        skew = matadd(e, matmul(-1, sympy.Transpose(e)))
        choices += [Activation(name, skew) for name in ("tanh", "silu")]
    one = draw.choice(choices)
    around = [
        one,
        one,
        one,
        matmul(one, others((cols, cols))),
        matadd(one, others((rows, cols))),
        matmul(sympy.Transpose(one), one),
        matadd(one, matmul(-1, one)),
        kron(one, others((m, m))),
        HadamardProduct(one, others((rows, cols)), evaluate=False),
        Activation("tanh", one),
        RMSNorm(matmul(one, others((cols, cols))), 1),
        DiagMatrix(Activation(draw.choice(["exp", "tanh"]), matmul(one, OneMatrix(cols, 1)))),
    ]
    return draw.choice(around)


def inferred(settings: int) -> tuple[Counter[str], Counter[str]]:
    """Return which rules and functions were met, each fact having been checked on numbers."""
    draw = random.Random(20_27)
    named: Counter[str] = Counter()
    kinds: Counter[str] = Counter()

    def count(fact: Fact) -> None:
        named[fact.rule.partition(",")[0]] += 1
        for premise in fact.premises:
            count(premise)

    for _ in range(settings):
        given, worlds, can_invert = setting(draw)

        def small(shape: Any, invertible: list[Any] = can_invert) -> Any:
            return expression(draw, shape, draw.choice([0, 0, 1]), invertible)

        for _ in range(8):
            e = applied(draw, small(draw.choice([(n, n), (n, n), (n, m), (m, m)])), small)
            known = facts(e, given)
            for numbers in draw.sample(worlds, 2):
                check(known, numbers)
            for fact in known:
                count(fact)
            kinds.update(type(part).__name__ for part in sympy.preorder_traversal(e))
    return named, kinds


def test_each_inferred_fact_holds_on_numbers() -> None:
    assert len(WORLDS) > 5
    named, kinds = inferred(60)
    for name in ("softmax_sum", "softmax_constant", "softmax_mask", "activation_odd"):
        assert named[f"the axiom {name}"] > 0, name
    for name in ("rms_norm_definition", "layer_norm_definition", "activation_transpose"):
        assert named[f"the axiom {name}"] > 0, name
    for function in (RowSoftmax, CausalMask, Activation, RMSNorm, LayerNorm):
        assert kinds[function.__name__] > 20


def _known(name: str, **wrong: Any) -> Callable[[pytest.MonkeyPatch], None]:
    function = replace(nonlinear.KNOWN[name], **wrong)
    return lambda patch: patch.setitem(nonlinear.KNOWN, name, function)


def _table(name: str, more: str) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(nonlinear, name, (*getattr(nonlinear, name), more))


def _leaking(kind: type, fact: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Let a function have a fact that its argument has."""
    rule = rules.RULES[kind]

    def leaks(walk: Any, e: Any, found: Any) -> None:
        rule(walk, e, found)
        argument = next(a for a in e.args if getattr(a, "is_Matrix", False))
        known = walk.known(argument)
        if fact in known:
            found.add(fact, "leaks", [known[fact]], known[fact].value)

    return lambda patch: patch.setitem(rules.RULES, kind, leaks)


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "tanh is positive": _table("POSITIVE", "tanh"),
    "norms and masks keep symmetry": _table("TRIANGLES", "symmetric"),
    "norms keep orthonormal columns": _table("TRIANGLES", "orthonormal_columns"),
    "exp of zero is zero": _known("exp", at_zero=0),
    "gelu is nowhere negative": _known("gelu", nonnegative=True),
    "silu is odd": _table("ODD", "silu"),
    "a softmax has the rank of its scores": _leaking(RowSoftmax, "rank_at_most"),
    "a softmax is triangular where its scores are": _leaking(RowSoftmax, "lower_triangular"),
    "a softmax is symmetric where its scores are": _leaking(RowSoftmax, "symmetric"),
    "an activation keeps the rank": _leaking(Activation, "rank_at_most"),
    "an activation keeps sums of rows": _leaking(Activation, "rows_sum_to"),
    "an activation keeps an inverse": _leaking(Activation, "invertible"),
    "RMSNorm keeps sums of columns": _leaking(RMSNorm, "columns_sum_to"),
    "LayerNorm keeps triangles": _leaking(LayerNorm, "lower_triangular"),
    "LayerNorm keeps signs": _leaking(LayerNorm, "nonnegative"),
}


@pytest.mark.parametrize("wrong", MUTANTS)
def test_a_false_rule_would_be_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[wrong](monkeypatch)
    with pytest.raises(AssertionError, match="has|is"):
        inferred(200)


# -- what must be said, and what must not ------------------------------------------------------

lower = Fact("causal", S)
zeros_and_ones = (HadamardProduct(mask, mask), mask)
heads = RowSoftmax(R * F_QK[h] * R.T, CausalMask(n))

SAID: list[tuple[str, Any, list[Any]]] = [
    ("row_stochastic", RowSoftmax(S), []),
    ("row_stochastic", RowSoftmax(R), []),
    ("row_stochastic", pattern, []),
    ("causal", pattern, []),
    ("invertible", pattern, []),
    ("upper_triangular", pattern.T, []),
    ("causal", matmul(pattern, RowSoftmax(S, CausalMask(n))), []),
    ("causal", kron(pattern, RowSoftmax(MatrixSymbol("U", m, m), CausalMask(m))), []),
    ("causal", HeadSum(heads, (h, H)), []),
    ("row_stochastic", HeadSum(heads, (h, H)) / H, []),
    ("rows_sum_to_one", Inverse(pattern), []),
    ("causal", RowSoftmax(S, mask), [Fact("causal", mask)]),
    ("rows_sum_to_one", RowSoftmax(S, mask), []),
    ("row_stochastic", RowSoftmax(S, mask), [zeros_and_ones]),
    ("row_stochastic", RowSoftmax(S, mask), [Fact("nonnegative", mask)]),
    ("identity", RowSoftmax(S, Identity(n)), []),
    ("column_stochastic", RowSoftmax(S), [(S, ZeroMatrix(n, n))]),
    ("row_stochastic", RowSoftmax(S), list(attention_pattern(RowSoftmax(S), causal=False))),
    ("causal", CausalMask(n), []),
    ("nonnegative", CausalMask(n), []),
    ("invertible", CausalMask(n), []),
    ("rows_sum_to_one", DiagonalOf(CausalMask(n)), []),
    ("nonnegative", Activation("relu", R), []),
    ("nonnegative", Activation("exp", R), []),
    ("nonnegative", Activation("gelu", R), [Fact("nonnegative", R)]),
    ("row_stochastic", Activation("relu", S), [Fact("row_stochastic", S)]),
    ("causal", Activation("gelu", S), [lower]),
    ("diagonal", Activation("silu", Identity(n)), []),
    ("zero", Activation("tanh", S), [(S, ZeroMatrix(n, n))]),
    ("symmetric", Activation("g", S), [(S.T, S)]),
    ("symmetric", Activation("g", R * R.T), []),
    ("antisymmetric", Activation("tanh", S), [(S.T, -S)]),
    ("invertible", DiagMatrix(Activation("exp", v)), []),
    ("causal", RMSNorm(S, eps), [lower]),
    ("invertible", RMSNorm(S), [Fact("invertible", S)]),
    ("rows_sum_to", LayerNorm(R, eps), []),
    ("rows_sum_to", RMSNorm(S), [(S * OneMatrix(n, 1), ZeroMatrix(n, 1))]),
    ("nonnegative", RMSNorm(R), [Fact("nonnegative", R)]),
    ("symmetric", matadd(Activation("g", S), Activation("g", S.T)), []),
]  # fmt: skip

NOT_SAID: list[tuple[str, Any, list[Any]]] = [
    ("causal", RowSoftmax(S), []),
    ("causal", RowSoftmax(S), [lower]),
    ("symmetric", RowSoftmax(S), [(S.T, S)]),
    ("column_stochastic", RowSoftmax(S), [(S.T, S)]),
    ("nonnegative", RowSoftmax(S, mask), []),
    ("nonnegative", RowSoftmax(S, mask), [Fact("causal", mask)]),
    ("causal", RowSoftmax(S, mask), [zeros_and_ones]),
    ("causal", RowSoftmax(S, CausalMask(n).T), []),
    ("invertible", RowSoftmax(S, mask), [Fact("causal", mask), zeros_and_ones]),
    ("invertible", RowSoftmax(S, mask), [Fact("invertible", mask)]),
    ("invertible", RowSoftmax(S), [Fact("invertible", S)]),
    ("causal", matmul(pattern, RowSoftmax(S)), []),
    ("nonnegative", Activation("gelu", R), []),
    ("nonnegative", Activation("g", R), [Fact("nonnegative", R)]),
    ("causal", Activation("exp", S), [lower]),
    ("causal", Activation("g", S), [lower]),
    ("antisymmetric", Activation("gelu", S), [(S.T, -S)]),
    ("positive_semidefinite", Activation("relu", S), [Fact("positive_semidefinite", S)]),
    ("row_stochastic", Activation("gelu", S), [Fact("row_stochastic", S)]),
    ("invertible", Activation("relu", S), [Fact("invertible", S)]),
    ("invertible", DiagMatrix(Activation("tanh", v)), []),
    ("symmetric", RMSNorm(S), [(S.T, S)]),
    ("rows_sum_to_one", RMSNorm(S), [Fact("rows_sum_to_one", S)]),
    ("causal", LayerNorm(S), [lower]),
    ("nonnegative", LayerNorm(R), [Fact("nonnegative", R)]),
    ("rows_sum_to", RMSNorm(R), []),
    ("identity", CausalMask(n), []),
]  # fmt: skip


def _ids(said: list[tuple[str, Any, list[Any]]]) -> list[str]:
    return [f"{name} {unicode_text(e)}" for name, e, _ in said]


@pytest.mark.parametrize(("name", "e", "given"), SAID, ids=_ids(SAID))
def test_what_must_be_said(name: str, e: Any, given: list[Any]) -> None:
    known = facts(e, given)
    assert known.holds(name)
    assert not known.unused
    assert "Activation(" not in str(known)  # a derivation is written as statements are


@pytest.mark.parametrize(("name", "e", "given"), NOT_SAID, ids=_ids(NOT_SAID))
def test_what_must_not_be_said(name: str, e: Any, given: list[Any]) -> None:
    assert not facts(e, given).holds(name)


@pytest.mark.parametrize(
    ("e", "given", "bound"),
    [
        (pattern * R * W_V * W_O, [], sympy.Min(n, d, k)),
        (RowSoftmax(scores), [Fact("rank_at_most", scores, 1)], n),
        (RowSoftmax(S), [(S, ZeroMatrix(n, n))], 1),
        (LayerNorm(R, eps), [], sympy.Min(n, d - 1)),
        (RMSNorm(W_V * W_O), [], sympy.Min(d, k)),
        (Activation("relu", W_V * W_O), [], d),
        (Activation("g", S), [(S, ZeroMatrix(n, n))], 1),
        (LayerNorm(MatrixSymbol("one", n, 1), eps), [], 0),
    ],
)
def test_ranks(e: Any, given: list[Any], bound: Any) -> None:
    assert facts(e, given).rank_at_most == bound


def test_a_derivation_names_its_axioms() -> None:
    why = "the axiom softmax_mask, masked entries are zero"
    assert facts(pattern).get("causal").why.splitlines() == [  # type: ignore[union-attr]
        f"softmax(R W_QK Rᵀ, M_n) is lower triangular: {why}",
        "  M_n is lower triangular: by definition",
    ]
    assert "the axiom layer_norm_definition" in facts(LayerNorm(R)).get("rows_sum_to").why  # type: ignore[union-attr]


@pytest.mark.parametrize("e", [e for _, e, given in SAID if not given and not e.has(F_QK, Inverse)])
def test_facts_hold_of_the_functions_themselves(e: Any) -> None:
    """On intervals that hold their values, where no fact is certainly false: no tolerance."""
    draw = random.Random(5)
    symbols = e.atoms(MatrixSymbol)
    sizes = {"n": 3, "m": 2, "d": 4, "k": 1, "H": 2}
    empty = Assignment(sizes, {})
    arrays = {s.name: em.integers(draw, *map(empty.size, s.shape)) for s in symbols}
    if e.has(Activation("g", S), Activation("g", R * R.T)):
        return  # any function has no value
    world = Assignment(sizes, arrays, scalars={"epsilon": 1})
    value = tree_value(e, world)
    known = facts(e)
    for side, axis in (("rows_sum_to", 1), ("columns_sum_to", 0)):
        if known.holds(side):
            for total in value.sum(axis=axis):
                differs = total != int(known.get(side).value)  # type: ignore[union-attr]
                assert not differs
    for i, j in np.ndindex(*value.shape):
        apart = value[i, j] != 0
        assert not (known.holds("lower_triangular") and j > i and apart)
        assert not (known.holds("upper_triangular") and j < i and apart)
        assert not known.holds("nonnegative") or float(value[i, j]) >= 0
        assert not (known.holds("symmetric") and bool(value[i, j] != value[j, i]))


TRUE_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: (abs(x) + x) / 2,
    "gelu": lambda x: x * scipy.special.ndtr(x),
    "gelu_tanh": lambda x: x * scipy.special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)),
    "silu": lambda x: x * scipy.special.expit(x),
    "quick_gelu": lambda x: x * scipy.special.expit(1.702 * x),
    "tanh": np.tanh,
    "sigmoid": scipy.special.expit,
    "exp": np.exp,
    "rsqrt": lambda x: x**-0.5,
    "sqrt": np.sqrt,
    "reciprocal": lambda x: 1 / x,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "abs": lambda x: np.maximum(x, -x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "erf": lambda x: 2 * scipy.special.ndtr(np.sqrt(2) * x) - 1,
}
DOMAINS = {
    "rsqrt": lambda x: x > 0,
    "sqrt": lambda x: x >= 0,
    "reciprocal": lambda x: x != 0,
    "log": lambda x: x > 0,
}


@pytest.mark.parametrize("name", TRUE_FUNCTIONS)
def test_signs_and_zeros_of_functions(name: str) -> None:
    """What the tables say, on SciPy's values, which have the right sign where they are rounded."""
    assert set(TRUE_FUNCTIONS) == set(nonlinear.KNOWN)
    function, known = TRUE_FUNCTIONS[name], nonlinear.KNOWN[name]
    grid = np.linspace(-6, 6, 1001)
    positive = grid[grid > 0]
    here = grid[DOMAINS.get(name, np.isfinite)(grid)]
    values = function(here)
    assert known.nonnegative == bool((values >= 0).all())
    assert (name in nonlinear.POSITIVE) == bool((values > 0).all())
    if 0 in here:
        assert (known.at_zero == 0) == (function(np.zeros(1))[0] == 0)
    if set(here) == set(-here):
        assert (name in nonlinear.ODD) == bool((function(-here) == -values).all())
    if name in nonlinear.KEEPS_SIGN:
        assert (function(positive) >= 0).all()


@pytest.mark.parametrize(
    ("e", "normal"),
    [
        (RowSoftmax((S * T).T, CausalMask(n)), RowSoftmax(T.T * S.T, CausalMask(n))),
        (Activation("g", S).T, Activation("g", S.T)),
        (Activation("g", (S * T).T).T, Activation("g", S * T)),
        (RMSNorm(matmul(Identity(n), R), eps), RMSNorm(R, eps)),
        (LayerNorm(R.T.T), LayerNorm(R)),
        (RowSoftmax(S).T.T, RowSoftmax(S)),
        (CausalMask(n), CausalMask(n)),
    ],
)
def test_normalise(e: Any, normal: Any) -> None:
    assert normalise(e) == normal


def _over_tangent(of: Any, minus: Any, times: int = -1, ones: int = 1) -> Any:
    """Return exp(of) + times minus - ones 1."""
    return matadd(Activation("exp", of), matmul(times, minus), matmul(-ones, OneMatrix(n, n)))


@pytest.mark.parametrize(
    ("e", "holds"),
    [
        (_over_tangent(S, S), True),
        (_over_tangent(matadd(S, matmul(-2, T)), matadd(S, matmul(-2, T))), True),
        (_over_tangent(S.T, S.T), True),
        (_over_tangent(S, S.T), False),
        (_over_tangent(S, T), False),
        (_over_tangent(S, S, times=1), False),
        (_over_tangent(S, S, times=-2), False),
        (_over_tangent(S, S, ones=2), False),
        (_over_tangent(matmul(2, S), S), False),
        (matmul(-1, _over_tangent(S, S)), False),
        (matadd(*[Activation("exp", S)] * 2, matmul(-1, S), matmul(-3, OneMatrix(n, n))), False),
    ],
)
def test_exp_is_above_its_tangent_and_no_other_line(e: Any, holds: bool) -> None:
    """What is not said is false at some of the numbers, so none of it may be said."""
    assert facts(e).holds("nonnegative") is holds
    rng = np.random.default_rng(3)
    lowest = min(_in_numpy(e, *rng.normal(size=(2, 3, 3))).min() for _ in range(20))
    assert bool(lowest >= 0) is holds


def _in_numpy(e: Any, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the value of sums, multiples, transposes and exp, evaluated by NumPy."""
    if isinstance(e, MatrixSymbol | OneMatrix):
        return {"S": s, "T": t}.get(str(e), np.ones((3, 3)))
    if isinstance(e, Activation):
        return np.exp(_in_numpy(e.argument, s, t))
    if isinstance(e, sympy.Transpose):
        return _in_numpy(e.arg, s, t).T
    if isinstance(e, sympy.MatAdd):
        return sum(_in_numpy(part, s, t) for part in e.args)
    number, factor = e.args
    return float(number) * _in_numpy(factor, s, t)
