"""Facts hold on numbers: each rule, thousands of random expressions, and what must not be said."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import (
    BlockDiagMatrix,
    BlockMatrix,
    Eq,
    HadamardPower,
    HadamardProduct,
    Identity,
    Inverse,
    MatPow,
    MatrixSymbol,
    Min,
    OneMatrix,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.errors import LanguageError, OtimesError, ShapeError, Undecided
from otimes.algebra.facts import PROPERTIES, Fact, Facts, attention_pattern, bounds, facts
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from tests.algebra import exact_matrices as em
from tests.algebra.exact_matrices import CHECKS, Numbers

n, m, H = sympy.symbols("n m H", integer=True, positive=True)
h, i = sympy.symbols("h i", integer=True)
a, b = sympy.symbols("a b")
A, B, C = (MatrixSymbol(name, n, n) for name in "ABC")
X, Y = MatrixSymbol("X", n, m), MatrixSymbol("Y", n, m)
Z = MatrixSymbol("Z", m, n)
M = MatrixSymbol("M", m, m)
F = Family("F", (H,), n, n)
WORLDS = [(3, 2, 2), (2, 3, 3), (1, 2, 1), (2, 1, 2), (2, 2, 2), (1, 1, 3)]


def check(found: Facts, numbers: Numbers) -> None:
    """Each fact, premises included at the top, holds on the numbers by its definition."""
    value = numbers.matrix(found.subject)
    for fact in found:
        said = None if fact.value is None else numbers.scalar(fact.value, {})
        assert CHECKS[fact.name](value, said), f"{fact}, on {value}\n{found}"


# -- random hypotheses, and matrices that satisfy them -----------------------------------------

Kind = tuple[Callable[[Any], list[Any]], Callable[[random.Random, int], Any]]
one = OneMatrix(n, 1)


def _causal_pattern(draw: random.Random, size: int) -> Any:
    return em.stochastic(draw, size, size, causal=True)


KINDS: dict[str, Kind] = {
    "generic": (lambda s: [], lambda r, k: em.integers(r, k, k)),
    "pattern": (lambda s: list(attention_pattern(s)), _causal_pattern),
    "declared pattern": (
        lambda s: [Fact("row_stochastic", s), Fact("causal", s)],
        _causal_pattern,
    ),
    "stochastic": (
        lambda s: [Fact("row_stochastic", s)],
        lambda r, k: em.stochastic(r, k, k),
    ),
    "rows sum to one": (
        lambda s: [Eq(OneMatrix(1, s.shape[0]) * s.T, OneMatrix(1, s.shape[0]))],
        lambda r, k: em.stochastic(r, k, k) + em.antisymmetric(r, k).dot(_centring(k)),
    ),
    "centred": (
        lambda s: [(s * OneMatrix(s.shape[0], 1), ZeroMatrix(s.shape[0], 1))],
        lambda r, k: em.integers(r, k, k).dot(_centring(k)),
    ),
    "symmetric": (lambda s: [Eq(s.T, s)], em.symmetric),
    "antisymmetric": (lambda s: [(s.T, -s)], em.antisymmetric),
    "declared symmetric": (lambda s: [Fact("symmetric", s)], em.symmetric),
    "projection": (lambda s: [Eq(s * s, s)], em.projection),
    "symmetric projection": (
        lambda s: [Eq(s, s**2), Fact("symmetric", s)],
        em.symmetric_projection,
    ),
    "orthogonal": (lambda s: [Eq(s.T * s, Identity(s.shape[0]))], em.orthogonal),
    "permutation": (lambda s: [Fact("permutation", s)], em.permutation),
    "stated permutation": (
        lambda s: [Eq(s * s.T, Identity(s.shape[0])), Fact("nonnegative", s)],
        em.permutation,
    ),
    "invertible": (lambda s: [Fact("invertible", s)], em.invertible),
    "lower": (lambda s: [Fact("lower_triangular", s)], lambda r, k: np.tril(em.integers(r, k, k))),
    "upper": (lambda s: [Fact("upper_triangular", s)], lambda r, k: np.triu(em.integers(r, k, k))),
    "diagonal": (
        lambda s: [Fact("diagonal", s)],
        lambda r, k: em.integers(r, k, k) * em.eye(k),
    ),
    "nonnegative": (
        lambda s: [Fact("nonnegative", s)],
        lambda r, k: em.integers(r, k, k, 0, 3),
    ),
    "positive": (lambda s: [Fact("positive_semidefinite", s)], em.gram),
    "rank one": (
        lambda s: [Fact("rank_at_most", s, 1)],
        lambda r, k: em.integers(r, k, 1).dot(em.integers(r, 1, k)),
    ),
    "zero": (lambda s: [(s, ZeroMatrix(*s.shape))], lambda r, k: em.integers(r, k, k, 0, 0)),
}


def _centring(size: int) -> Any:
    return em.eye(size) - em.exact(np.ones((size, size), dtype=int)) / Fraction(size)


def setting(draw: random.Random) -> tuple[list[Any], list[Numbers], list[Any]]:
    """Return hypotheses about A, B, C, M and F, numbers that satisfy them, invertible symbols."""
    given: list[Any] = []
    chosen = {s: draw.choice(list(KINDS)) for s in (A, B, C, M)}
    family = draw.choice(["generic", "pattern", "stochastic", "symmetric", "projection"])
    for symbol, kind in chosen.items():
        given += KINDS[kind][0](symbol)
    given += KINDS[family][0](F if family == "pattern" else F[h])
    commuting = draw.random() < 0.2
    if commuting:
        chosen[A] = chosen[B] = "symmetric"
        given = [(A * B, B * A), Eq(A.T, A), Eq(B.T, B), *KINDS[chosen[C]][0](C)]
        given += KINDS[chosen[M]][0](M) + KINDS[family][0](F if family == "pattern" else F[h])
    undoing = draw.random() < 0.4  # Z X = I needs m ≤ n
    if undoing:
        given.append(Eq(Z * X, Identity(m)))
    coefficients = [(a + b, 1), Fact("nonnegative", a), Fact("nonnegative", b)]
    given += coefficients
    worlds = []
    for rows, cols, heads in WORLDS:
        if undoing and cols > rows:
            continue
        arrays = {
            s.name: KINDS[kind][1](draw, cols if s == M else rows) for s, kind in chosen.items()
        }
        if commuting:
            arrays["B"] = arrays["A"].dot(arrays["A"]) - 2 * arrays["A"] + 3 * em.eye(rows)
        arrays["X"] = em.integers(draw, rows, cols)
        arrays["Y"] = em.integers(draw, rows, cols)
        arrays["Z"] = em.integers(draw, cols, rows)
        if undoing:
            basis = em.invertible(draw, rows)
            arrays["X"] = basis[:, :cols]
            arrays["Z"] = em.inverse(basis)[:cols]
        members = [KINDS[family][1](draw, rows) for _ in range(heads)]
        arrays["F"] = np.stack(members)
        share = Fraction(draw.randint(0, 4), 4)
        worlds.append(
            Numbers({"n": rows, "m": cols, "H": heads}, arrays, {"a": share, "b": 1 - share})
        )
    sure = ("orthogonal", "permutation", "stated permutation", "invertible")
    return given, worlds, [s for s, kind in chosen.items() if kind in sure]


def expression(draw: random.Random, shape: Any, depth: int, can_invert: list[Any]) -> Any:
    def sub(shape: Any) -> Any:
        return expression(draw, shape, depth - 1, can_invert)

    rows, cols = shape
    if depth <= 0:
        leaves = {
            (n, n): [A, B, C, A, B, Identity(n), OneMatrix(n, n), F[0]],
            (n, m): [X, Y, Z.T, OneMatrix(n, m)],
            (m, n): [X.T, Z, Z],
            (m, m): [M, M, Identity(m)],
        }
        return draw.choice(leaves[shape])
    inner = draw.choice([n, m])
    choices: list[Callable[[], Any]] = [
        lambda: matmul(sub((rows, inner)), sub((inner, cols))),
        lambda: matmul(sub((rows, rows)), sub(shape)),
        lambda: matadd(sub(shape), sub(shape)),
        lambda: matadd(matmul(a, sub(shape)), matmul(b, sub(shape))),
        lambda: matmul(draw.choice([sympy.Rational(1, 2), 2, -1, 1 / n, n, a]), sub(shape)),
        lambda: HadamardProduct(sub(shape), sub(shape), evaluate=False),
        lambda: Transpose(sub((cols, rows))),
    ]
    if rows == cols:
        choices += [lambda: _square(draw, rows, sub, can_invert)] * 5
    return draw.choice(choices)()


def _square(draw: random.Random, size: Any, sub: Any, can_invert: list[Any]) -> Any:
    part = sub((size, size))
    other = sub((size, draw.choice([n, m])))
    inner = sub((other.shape[1], other.shape[1]))
    choices: list[Callable[[], Any]] = [
        lambda: matmul(other, Transpose(other)),
        lambda: matmul(other, inner, Transpose(other)),
        lambda: MatPow(part, draw.choice([0, 1, 2, 3]), evaluate=False),
        lambda: matadd(part, Transpose(part)),
        lambda: matadd(part, matmul(-1, Transpose(part))),
        lambda: matadd(Identity(size), matmul(draw.choice([-1, -2]), part)),
        lambda: matadd(matmul(a, part), matmul(b, Identity(size))),
    ]
    if size == n:
        head = draw.choice([F[h], matmul(F[h], part), matmul(part, F[h])])
        choices += [
            lambda: HeadSum(head, (h, H)),
            lambda: matmul(1 / H, HeadSum(head, (h, H))),
            lambda: LayerProduct(head, (h, H), reverse=draw.random() < 0.5),
            lambda: LayerProduct(matadd(matmul(a, head), matmul(b, Identity(n))), (h, H)),
            lambda: matmul(X, Z),
            lambda: matmul(X, sub((m, m)), Z),
        ]
    invertible = [s for s in can_invert if s.shape == (size, size)]
    if invertible:
        symbol = draw.choice(invertible)
        choices += [
            lambda: Inverse(symbol),
            lambda: matmul(symbol, part, Inverse(symbol)),
            lambda: matmul(Inverse(symbol), symbol),
        ] * 2
    return draw.choice(choices)()


def wrapped(draw: random.Random, e: Any, can_invert: list[Any]) -> Any:
    """Return the expression, or something larger around it."""

    def small(shape: Any) -> Any:
        return expression(draw, shape, 1, can_invert)

    choices: list[Callable[[], Any]] = [
        lambda: e,
        lambda: e,
        lambda: kron(e, small((m, m))),
        lambda: kron(small((n, n)), e),
        lambda: matmul(kron(e, X), kron(Transpose(e), Z)),
        lambda: kron(X, Z),
        lambda: ConcatHeads(matmul(F[h], e if e.shape[0] == n else X), (h, H)),
        lambda: StackHeads(F[h], (h, H)),
        lambda: vec_rows(e),
        lambda: vec_cols(e),
        lambda: BlockDiagMatrix(e, small((n, n))),
    ]
    return draw.choice(choices)()


SETTINGS, EACH = (1300 if os.environ.get("OTIMES_LONG") == "1" else 65), 16


def test_each_inferred_fact_holds_on_numbers_that_satisfy_the_hypotheses() -> None:
    draw = random.Random(20_26)
    rules: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    expressions = 0

    def count(fact: Fact) -> None:
        rules[fact.rule.partition(",")[0]] += 1
        for premise in fact.premises:
            count(premise)

    for _ in range(SETTINGS):
        given, worlds, can_invert = setting(draw)
        for _ in range(EACH):
            shape = draw.choice([(n, n), (n, n), (n, m), (m, m)])
            e = wrapped(
                draw, expression(draw, shape, draw.choice([1, 2, 2, 3]), can_invert), can_invert
            )
            found = facts(e, given)
            assert not found.unused
            for numbers in draw.sample(worlds, 2):
                check(found, numbers)
            expressions += 1
            kinds.update(fact.name for fact in found)
            for fact in found:
                count(fact)
    assert expressions == SETTINGS * EACH
    assert set(kinds) == set(PROPERTIES) - {"commutes_with", "times_is_identity"}
    assert min(kinds.values()) >= 5, kinds
    assert len(rules) > 100, len(rules)


# -- what must be said, and what must not ------------------------------------------------------

pattern_a, pattern_b = attention_pattern(A), attention_pattern(B)
sym_a, sym_b = (A.T, A), (B.T, B)
proj_a, proj_b = (A * A, A), (B * B, B)
commute = (A * B, B * A)
ones = OneMatrix(n, 1)

SAID: list[tuple[str, Any, list[Any]]] = [
    ("row_stochastic", B * A, [*pattern_a, *pattern_b]),
    ("causal", B * A, [*pattern_a, *pattern_b]),
    ("row_stochastic", A**3, list(pattern_a)),
    ("row_stochastic", HeadSum(F[h], (h, H)) / H, list(attention_pattern(F))),
    ("row_stochastic", (A + Identity(n)) / 2, list(pattern_a)),
    ("row_stochastic", A / 3 + 2 * B / 3, [*pattern_a, *pattern_b]),
    ("row_stochastic", F[0] * F[h], list(attention_pattern(F))),
    ("rows_sum_to_one", 2 * A - B, [*pattern_a, *pattern_b]),
    ("lower_triangular", kron(A, M), [Fact("causal", A), Fact("causal", M)]),
    ("row_stochastic", kron(A, M), [Fact("row_stochastic", A), Fact("row_stochastic", M)]),
    ("row_stochastic", LayerProduct((F[h] + Identity(n)) / 2, (h, H)), list(attention_pattern(F))),
    ("upper_triangular", LayerProduct(F[h], (h, H)).T, list(attention_pattern(F))),
    ("identity", MatPow(A, 0, evaluate=False), []),
    ("symmetric", A * B, [sym_a, sym_b, commute]),
    ("projection", A * B, [proj_a, proj_b, commute]),
    ("positive_semidefinite", X * X.T, []),
    ("positive_semidefinite", HadamardProduct(A, B), [
        Fact("positive_semidefinite", A), Fact("positive_semidefinite", B)]),
    ("positive_semidefinite", A, [sym_a, proj_a]),
    ("projection", Identity(n) - A, [proj_a]),
    ("projection", Identity(n) - OneMatrix(n, n) / n, []),
    ("projection", X * Z, [(Z * X, Identity(m))]),
    ("projection", X * X.T, [(X.T * X, Identity(m))]),
    ("projection", Inverse(B) * A * B, [proj_a]),
    ("orthogonal", Identity(n) - 2 * A, [proj_a, sym_a]),
    ("orthogonal", A * B.T, [(A.T * A, Identity(n)), (B * B.T, Identity(n))]),
    ("permutation", A, [(A * A.T, Identity(n)), Fact("nonnegative", A)]),
    ("invertible", Identity(n) + A, [(A.T, -A)]),
    ("antisymmetric", A - A.T, []),
    ("zero", A * B - A * B, []),
    ("symmetric", kron(A, M), [(A.T, -A), (M.T, -M)]),
    ("lower_triangular", HadamardProduct(A, B), [Fact("causal", B)]),
    ("nonnegative", HadamardProduct(A, HadamardPower(B, 2)), [Fact("nonnegative", A)]),
    ("lower_triangular", Inverse(A), [Fact("causal", A)]),
    ("rows_sum_to_one", Inverse(A), [(A * ones, ones)]),
    ("column_stochastic", A.T, list(pattern_a)),
    ("diagonal", DiagMatrix(ones), []),
    ("nonnegative", DiagonalOf(A), [Fact("positive_semidefinite", A)]),
    ("rows_sum_to_one", BlockMatrix([[A / 2, A / 2], [A, 0 * A]]), list(pattern_a)),
    ("nonnegative", A.T * B, [*pattern_a, *pattern_b]),
    ("orthonormal_columns", OneHot(i, n), []),
    ("symmetric", sympy.ImmutableDenseMatrix([[1, 2], [2, 5]]), []),
    ("row_stochastic", matadd(matmul(a, A), matmul(b, B)), [
        *pattern_a, *pattern_b, (a + b, 1), Fact("nonnegative", a), Fact("nonnegative", b)]),
    ("row_stochastic", matadd(matmul(a, A), matmul(1 - a, B)), [
        *pattern_a, *pattern_b, Fact("nonnegative", a), Fact("nonnegative", 1 - a)]),
]  # fmt: skip

NOT_SAID: list[tuple[str, Any, list[Any]]] = [
    ("symmetric", A * B, [sym_a, sym_b]),
    ("projection", A * B, [proj_a, proj_b]),
    ("projection", A + B, [proj_a, proj_b]),
    ("positive_semidefinite", A * B, [
        Fact("positive_semidefinite", A), Fact("positive_semidefinite", B)]),
    ("positive_semidefinite", A - B, [
        Fact("positive_semidefinite", A), Fact("positive_semidefinite", B)]),
    ("row_stochastic", A + B, [*pattern_a, *pattern_b]),
    ("row_stochastic", 2 * A - B, [*pattern_a, *pattern_b]),
    ("nonnegative", -A, list(pattern_a)),
    ("nonnegative", a * A, list(pattern_a)),
    ("nonnegative", A * B, [Fact("nonnegative", A)]),
    ("row_stochastic", A * B, [*pattern_a]),
    ("row_stochastic", HadamardProduct(A, B), [*pattern_a, *pattern_b]),
    ("row_stochastic", A.T, list(pattern_a)),
    ("row_stochastic", Inverse(A), list(pattern_a)),
    ("row_stochastic", A, [(A * ones, ones)]),
    ("lower_triangular", A.T, list(pattern_a)),
    ("lower_triangular", A.T * A, list(pattern_a)),
    ("lower_triangular", A + B, list(pattern_a)),
    ("row_stochastic", matadd(matmul(a, A), matmul(b, B)), [*pattern_a, *pattern_b, (a + b, 1)]),
    ("rows_sum_to_one", matadd(matmul(a, A), matmul(b, B)), [*pattern_a, *pattern_b]),
    ("row_stochastic", HeadSum(F[h], (h, H)), list(attention_pattern(F))),
    ("symmetric", LayerProduct(F[h], (h, H)), [(F[h].T, F[h])]),
    ("row_stochastic", LayerProduct(F[h] + Identity(n), (h, H)), list(attention_pattern(F))),
    ("orthogonal", A + B, [(A.T * A, Identity(n)), (B.T * B, Identity(n))]),
    ("orthogonal", 2 * A, [(A.T * A, Identity(n))]),
    ("orthogonal", Identity(n) - 2 * A, [proj_a]),
    ("projection", 2 * A, [proj_a]),
    ("projection", X * Z, [(X * Z * X, X)]),
    ("identity", X * Z, [(Z * X, Identity(m))]),
    ("identity", matmul(Inverse(A), Inverse(A)), []),
    ("projection", matmul(Inverse(A), Inverse(A)), []),
    ("orthonormal_rows", X, [(X.T * X, Identity(m))]),
    ("invertible", A, [proj_a]),
    ("invertible", A + B, [Fact("invertible", A), Fact("invertible", B)]),
    ("invertible", a * A, [Fact("invertible", A)]),
    ("symmetric", kron(A, M), [(A.T, -A), (M.T, M)]),
    ("symmetric", A * B * A, [sym_a]),
    ("symmetric", F[1], [(F[0].T, F[0])]),
    ("symmetric", matmul(F[h], F[0]), [(F[h].T, F[h])]),
    ("symmetric", A, [(A * B.T, B * A.T)]),
    ("positive_semidefinite", A**3, [sym_a]),
    ("nonnegative", Inverse(A), [Fact("nonnegative", A)]),
    ("diagonal", A, [Fact("lower_triangular", A)]),
    ("zero", A, [(A * A, ZeroMatrix(n, n))]),
    ("zero", B, [(A * B, ZeroMatrix(n, n))]),
    ("nonnegative", a**2 * A, []),
    ("rows_sum_to_one", ConcatHeads(F[h], (h, H)), list(attention_pattern(F))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "e", "given"), SAID, ids=[f"{s[0]} {s[1]}" for s in SAID])
def test_what_must_be_said(name: str, e: Any, given: list[Any]) -> None:
    found = facts(e, given)
    assert found.holds(name)
    assert not found.unused


@pytest.mark.parametrize(("name", "e", "given"), NOT_SAID, ids=[f"{s[0]} {s[1]}" for s in NOT_SAID])
def test_what_must_not_be_said(name: str, e: Any, given: list[Any]) -> None:
    assert not facts(e, given).holds(name)


W_V, W_O = MatrixSymbol("W_V", n, m), MatrixSymbol("W_O", m, n)
W_Vs, W_Os = Family("W_V", (H,), n, m), Family("W_O", (H,), m, n)


@pytest.mark.parametrize(
    ("e", "given", "bound"),
    [
        (matmul(W_V, W_O), [], Min(n, m)),
        (kron(matmul(W_V, W_O), M), [], Min(n * m, m**2)),
        (HeadSum(matmul(W_Vs[h], W_Os[h]), (h, H)), [], Min(n, H * m)),
        (HeadSum(matmul(A, F[h]), (h, H)), [Fact("rank_at_most", A, 3)], Min(n, 3)),
        (ConcatHeads(matmul(A, F[h]), (h, H)), [Fact("rank_at_most", A, 3)], Min(n, 3)),
        (StackHeads(matmul(F[h], A), (h, H)), [Fact("rank_at_most", A, 3)], Min(n, 3)),
        (ConcatHeads(matmul(F[h], A), (h, H)), [Fact("rank_at_most", A, 3)], Min(n, 3 * H)),
        (StackHeads(matmul(A, F[h]), (h, H)), [Fact("rank_at_most", A, 3)], Min(n, 3 * H)),
        (matmul(X.T, A, X), [Fact("rank_at_most", A, 3)], Min(m, n, 3)),
        (Identity(n), [], n),
        (OneMatrix(n, m), [], 1),
        (ZeroMatrix(n, m), [], 0),
        (0 * A, [], 0),
        (matadd(OneMatrix(n, n), OneHot(i, n) * OneMatrix(1, n)), [], Min(n, 2)),
        (vec_rows(X), [], 1),
        (A, [(A, ZeroMatrix(n, n))], 0),
        (kron(A, OneMatrix(m, 1)), [], n),
        (A, [(A * A, A), (sympy.Trace(A), m)], Min(n, m)),
        (A, [(m, sympy.Trace(A)), (A, A * A)], Min(n, m)),
        (A, [(sympy.Trace(A), m)], n),
        (A, [(B * B, B), (A * A, A), (sympy.Trace(B), m)], n),
    ],
)
def test_ranks(e: Any, given: list[Any], bound: Any) -> None:
    assert facts(e, given).rank_at_most == bound


def test_the_rank_of_a_projection_is_its_trace() -> None:
    draw = random.Random(8)
    for size in (1, 2, 3, 4):
        projection = em.projection(draw, size)
        trace = int(sum(projection.diagonal()))
        given = [(A * A, A), (sympy.Trace(A), trace)]
        bound = facts(A, given).rank_at_most.subs(n, size)
        assert bound == em.rank(projection)


@pytest.mark.parametrize(
    ("hypothesis", "name", "subject"),
    [
        (Eq(OneMatrix(1, n) * A.T, OneMatrix(1, n)), "rows_sum_to_one", A),
        (Eq(A * OneMatrix(n, m), OneMatrix(n, m)), "rows_sum_to_one", A),
        (Eq(2 * B * ones - ones, B * ones), "rows_sum_to_one", B),
        (Eq(A * B * ones, ones), "rows_sum_to_one", matmul(A, B)),
        (Eq(OneMatrix(1, n) * A, OneMatrix(1, n)), "columns_sum_to_one", A),
        (Eq(A - A.T, ZeroMatrix(n, n)), "symmetric", A),
        (Eq(A + A.T, ZeroMatrix(n, n)), "antisymmetric", A),
        (Eq(A.T * A.T, A.T), "projection", A),
        (Eq(Identity(n), A * A.T), "orthogonal", A),
        (Eq(X.T * X, Identity(m)), "orthonormal_columns", X),
        (Eq((A * B).T, A * B), "symmetric", matmul(A, B)),
        (Eq(F[h].T, F[h]), "symmetric", F[2]),
        (Eq(A * B, Identity(n)), "invertible", B),
        (Eq(A, Identity(n)), "identity", A),
        (Eq(X.T * X, ZeroMatrix(m, m)), "zero", X),
    ],
)
def test_equations_are_recognised_by_their_form(hypothesis: Any, name: str, subject: Any) -> None:
    found = facts(subject, [hypothesis])
    assert found.holds(name)
    assert not found.unused


def test_what_is_not_recognised_is_listed() -> None:
    found = facts(A, [Eq(A * B * A, B), (A.T, A)])
    assert len(found.unused) == 1
    assert "not used: A B A = B" in str(found)


def test_a_derivation_reads_like_a_proof() -> None:
    found = facts(B * A, [*pattern_a, *pattern_b])
    assert str(found) == (
        "B A  (n × n)\n"
        "  B A is row-stochastic: it has rows that sum to one and has no negative entry\n"
        "    B A has rows that sum to one: row sums multiply in a product\n"
        "      B has rows that sum to one: given\n"
        "      A has rows that sum to one: given\n"
        "    B A has no negative entry: a product of nonnegative matrices\n"
        "      B has no negative entry: given\n"
        "      A has no negative entry: given\n"
        "  B A is lower triangular: a product of lower triangular matrices\n"
        "    B is lower triangular: given\n"
        "    A is lower triangular: given\n"
        "  B A has rank at most n: at most the smaller of its sizes"
    )
    page = found._repr_html_()
    assert page.count("<li>") == page.count("</li>") > 5
    assert "lower triangular" in page
    assert [fact.name for fact in found][-1] == "rank_at_most"
    assert len(found) == len(list(found))


def test_facts_are_said_of_the_expression_as_it_was_stated() -> None:
    stated = Transpose(matmul(A, matmul(B, A)))
    found = facts(stated, [*pattern_a, *pattern_b])
    assert found.holds("upper_triangular")
    assert found.get("upper_triangular").subject == stated  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: Fact("lower_triangular", X), ShapeError, "a square matrix is needed"),
        (lambda: attention_pattern(X), ShapeError, "causal=False"),
        (lambda: Fact("stochastic", A), OtimesError, "no property 'stochastic'"),
        (lambda: Fact("rank_at_most", A), OtimesError, "needs a value"),
        (lambda: Fact("symmetric", A, 1), OtimesError, "takes no value"),
        (lambda: Fact("symmetric", a), LanguageError, "a property of a matrix"),
        (lambda: facts(A).holds("nice"), OtimesError, "no property 'nice'"),
        (lambda: facts(matmul(X, X)), ShapeError, "inner sizes"),
        (lambda: facts(a), LanguageError, "is a scalar"),
        (lambda: facts(b"A"), LanguageError, "needs a SymPy expression"),
        (lambda: facts("x"), OtimesError, "not declared whether x is a row or a column"),
        (lambda: facts(A, [A]), LanguageError, "neither a Fact"),
        (
            lambda: facts(A, [(A, X)]),
            ShapeError,
            "the sides of a hypothesis have different shapes: n × n",
        ),
        (lambda: facts(A, [False]), OtimesError, "a hypothesis is false"),
        (lambda: facts(A, [(MatrixSymbol("A", n, m), X)]), ShapeError, "two shapes"),
    ],
)
def test_errors_say_what_to_do(ask: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ask()


@pytest.mark.parametrize(
    ("operation", "name", "e"),
    [
        ("product", "symmetric", A * B),
        ("product", "projection", A * B),
        ("product", "antisymmetric", A * B),
        ("sum", "orthogonal", A + B),
        ("sum", "projection", A + B),
        ("Hadamard product", "projection", HadamardProduct(A, B)),
        ("Kronecker product", "antisymmetric", kron(A, B)),
        ("inverse", "nonnegative", Inverse(A)),
        ("power", "antisymmetric", A**2),
    ],
)
def test_a_false_rule_would_be_noticed(
    operation: str, name: str, e: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check on numbers fails as soon as one rule too many stands in the table."""
    from otimes.algebra.facts import fact_set as tables

    draw = random.Random(1)
    make: dict[str, Any] = {
        "symmetric": em.symmetric,
        "projection": em.projection,
        "antisymmetric": em.antisymmetric,
        "orthogonal": em.orthogonal,
        "nonnegative": lambda r, k: abs(em.invertible(r, k)) + em.eye(k) * 9,
    }
    arrays = {s.name: make[name](draw, 3) for s in (A, B)}
    declared = [Fact(name, A), Fact(name, B)]
    check(facts(e, declared), Numbers({"n": 3}, arrays))
    monkeypatch.setitem(tables.KEPT, operation, (*tables.KEPT[operation], name))
    with pytest.raises(AssertionError):
        check(facts(e, declared), Numbers({"n": 3}, arrays))


def test_what_is_nested_too_deeply_is_refused_in_a_sentence() -> None:
    e = A
    for _ in range(3000):
        e = Transpose(e)
    with pytest.raises(Undecided, match="nested more deeply"):
        facts(e)


@pytest.mark.parametrize(
    ("p", "q", "is_never_less"),
    [
        (n * m, n, True),
        (n, n * m, False),
        (2 * n, n, True),
        (n, sympy.Integer(1), True),
        (sympy.Integer(2), n, False),
        (n * m, n + m - 1, True),
        (n * m, n + m, False),
        (n**2 + 1, 2 * n, True),
        (a * n, n, False),
        (n * (n + 1) - n**2 - 2 * n, sympy.Integer(0), False),
    ],
)
def test_bounds_are_compared_for_all_sizes_from_one_on(p: Any, q: Any, is_never_less: bool) -> None:
    numbers = bounds.Numbers([n, m])
    assert (numbers.least(p, q) == q) is is_never_less
    if q == 0:
        assert not numbers.nonnegative(sympy.Add(n * (n + 1), -(n**2), -2 * n, evaluate=False))


def test_many_factors_of_small_rank_take_no_time() -> None:
    symbols = [sympy.symbols(f"p{k} q{k}") for k in range(8)]
    pairs = [(MatrixSymbol(f"V{p}", p, q), MatrixSymbol(f"O{p}", q, p)) for p, q in symbols]
    e = kron(*[matmul(v, o) for v, o in pairs])
    assert facts(e).rank_at_most.free_symbols <= {s for pair in symbols for s in pair}
