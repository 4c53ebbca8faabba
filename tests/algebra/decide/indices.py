"""Claims with index arithmetic, true and false, and an evaluator of loops that shares no code."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import sympy
from sympy import HadamardProduct, Identity, KroneckerDelta, MatrixSymbol, OneMatrix, Sum, Trace
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, FamilyMember, HeadSum, OneHot, matadd
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.algebra.language.positions import OneHotLast, Positions, Shift
from otimes.algebra.language.trees import rebuilt

n, m, r, d, L = sympy.symbols("n m r d L", integer=True, positive=True)
i, j, k, l = sympy.symbols("i j k l", integer=True)  # noqa: E741 (the layer)
s, c = sympy.symbols("s c", positive=True)
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
P, R = MatrixSymbol("P", d, d), Family("R", ((1 - n, n - 1),), d, d)
x, y = MatrixSymbol("x", n, 1), MatrixSymbol("y", n, 1)
X, W = MatrixSymbol("X", n, d), MatrixSymbol("W", d, d)
q, u = MatrixSymbol("q", d, 1), MatrixSymbol("u", d, 1)
K, V, Q = (Family(name, (n,), d, 1) for name in "KVQ")
S, T = Family("S", (L + 1,), d, d), Family("T", (L + 1,), d, d)
F, G = Family("F", (L,), d, d), Family("G", (L,), d, d)
p_, q_ = sympy.symbols("p q", integer=True, positive=True)
E, D, T_ = Family("E", (p_ + q_,), d, d), Family("D", (2 * L,), d, d), Family("T", (n,), d, d)
Z, z = Family("Z", (n + 1,), d, d), Family("z", (n + 1,), d, 1)
M, N, p, last, first = CausalMask(n), Shift(n), Positions(n), OneHotLast(n), OneHot(0, n)
one, I_n, I_d = OneMatrix(n, 1), Identity(n), Identity(d)
scores = X * W * X.T
rotary = [(R[i].T * R[j], R[j - i])]
R_ = Family("R", ((1 - p_ - q_, p_ + q_ - 1),), d, d)
rotary_ = [(R_[i].T * R_[j], R_[j - i])]
inverse = [(T[l] * S[l], I_d), (S[l] * T[l], I_d)]
state = [(Z[l + 1], Z[l] + K[l] * V[l].T)]
decay = [(Z[l + 1], c * Z[l] + K[l] * V[l].T)]


def upto(e: Any, index: Any = j, end: Any = i) -> Any:
    return Sum(e, (index, 0, end))


def over(e: Any, index: Any = j) -> Any:
    return Sum(e, (index, 0, n - 1))


def layers(e: Any, count: Any = L) -> Any:
    return LayerProduct(e, (l, count))


Claim = tuple[Any, Any] | tuple[Any, Any, list[Any]]

TRUE: dict[str, Claim] = {
    "up to i is before i and i": (upto(x[j, 0]), upto(x[j, 0], end=i - 1) + x[i, 0]),
    "a causal sum is a product with the mask": (upto(x[j, 0]), (M * x)[i, 0]),
    "triangular sums exchanged": (
        Sum(A[i, j], (j, 0, i), (i, 0, n - 1)),
        Sum(A[i, j], (i, j, n - 1), (j, 0, n - 1)),
    ),
    "strict triangular sums exchanged": (
        Sum(A[i, j], (j, 0, i - 1), (i, 0, n - 1)),
        Sum(A[i, j], (i, j + 1, n - 1), (j, 0, n - 1)),
    ),
    "before, at and after": (
        over(x[j, 0]),
        upto(x[j, 0], end=i - 1) + x[i, 0] + Sum(x[j, 0], (j, i + 1, n - 1)),
    ),
    "from i on is a product with the transposed mask": (
        Sum(x[j, 0], (j, i, n - 1)),
        (M.T * x)[i, 0],
    ),
    "a sum from one": (Sum(x[j, 0], (j, 1, n - 1)), over(x[j, 0]) - x[0, 0]),
    "a double causal sum": (upto(upto(x[k, 0], k, j)), (M * M * x)[i, 0]),
    "a double causal sum counts": (
        upto(upto(x[k, 0], k, j)),
        upto((i - j + 1) * x[j, 0]),
    ),
    "the size of a prefix": (upto(one[j, 0]), (i + 1) * one[i, 0]),
    "the size of what is before": (upto(one[j, 0], end=i - 1), i * one[i, 0]),
    "the causal average of a constant": (upto(c * one[j, 0]), c * (i + 1) * one[i, 0]),
    "two causal sums are one": (upto(x[j, 0] + y[j, 0]), upto(x[j, 0]) + upto(y[j, 0])),
    "causal sums of matrices": (
        HeadSum(K[j] * V[j].T, (j, i + 1)),
        matadd(HeadSum(K[j] * V[j].T, (j, i)), K[i] * V[i].T),
    ),
    "linear attention in two orders": (
        HeadSum(K[j] * V[j].T, (j, i + 1)).T * Q[i],
        HeadSum(V[j] * (K[j].T * Q[i]), (j, i + 1)),
    ),
    "all positions are a sum of prefixes' last": (upto(x[j, 0], end=n - 1), (M * x)[n - 1, 0]),
    "the last row": ((A * B)[n - 1, j], Sum(A[n - 1, k] * B[k, j], (k, 0, n - 1))),
    "the last row of the mask": (OneHot(n - 1, n).T * M, OneMatrix(1, n)),
    "the last unit column": ((last.T * A * last)[0, 0], A[n - 1, n - 1]),
    "the last entry once": (Sum(x[j, 0] * last[j, 0], (j, 0, n - 1)), x[n - 1, 0]),
    "a sum of a unit column": (
        Sum(first[j, 0], (j, i, n - 1)),
        Sum(first[j, 0], (j, i + 1, n - 1)) + first[i, 0],
    ),
    "the sum of positions": (over(i * one[i, 0], i), n * (n - 1) / 2),
    "the sum of squares": (over(i**2 * one[i, 0], i), n * (n - 1) * (2 * n - 1) / 6),
    "the last position": (p[n - 1, 0], n - 1),
    "the first position": (p[0, 0], sympy.S.Zero),
    "relative positions": ((p * one.T - one * p.T)[i, j], (i - j) * OneMatrix(n, n)[i, j]),
    "ALiBi is a key bias": (
        RowSoftmax(scores + s * (one * p.T - p * one.T), M),
        RowSoftmax(scores + s * one * p.T, M),
    ),
    "positions weigh a trace": (over(i * A[i, i], i), Trace(DiagMatrix(p) * A)),
    "sums of positions up to i": (upto(j * one[j, 0]), i * (i + 1) * one[i, 0] / 2),
    "differences of prefixes": ((I_n - N) * M, I_n),
    "prefixes of differences": (M * (I_n - N), I_n),
    "a shift and the mask commute": (N * M * x, M * N * x),
    "a shift and back": (N * N.T * X, X - first * (first.T * X)),
    "forth and back": (N.T * N * X, X - last * (last.T * X)),
    "the first token has none before it": (first.T * N * X, sympy.ZeroMatrix(1, d)),
    "a previous token head attends causally": (HadamardProduct(N, M), N),
    "a previous token head on positions": ((N.T * p)[i, 0], (i + 1) * one[i, 0] - n * last[i, 0]),
    "the rows of a shift": (N * one, one - first),
    "rotary positions all moved": (R_[i + p_].T * R_[j + p_], R_[i].T * R_[j], rotary_),
    "rotary scores are relative": ((R[i] * q).T * (R[j] * u), q.T * R[j - i] * u, rotary),
    "rotary attention": (
        HeadSum((R[i] * q).T * (R[j] * Q[j]) * Q[j].T, (j, i + 1)),
        HeadSum(q.T * R[j - i] * Q[j] * Q[j].T, (j, i + 1)),
        rotary,
    ),
    "relative positions renamed": (
        HeadSum(R[j - i] * K[j], (j, n)),
        HeadSum(R[k - i] * K[k], (k, n)),
    ),
    "gauges telescope": (
        layers(T[l + 1] * F[l] * S[l]),
        T[L] * layers(F[l]) * S[0],
        inverse,
    ),
    "differences telescope": (HeadSum(matadd(S[l + 1], -S[l]), (l, L)), S[L] - S[0]),
    "the last of L + 1 members": (HeadSum(S[l], (l, L + 1)), HeadSum(S[l], (l, L)) + S[L]),
    "L + 1 layers": (layers(S[l], L + 1), S[L] * layers(S[l])),
    "the state is a causal sum": (Z[n], Z[0] + HeadSum(K[l] * V[l].T, (l, n)), state),
    "a gauge of one layer": (T[l + 1] * F[l] * S[l] * T[l], T[l + 1] * F[l], inverse),
    "gauges telescope by inverses": (
        layers(S[l + 1].I * F[l] * S[l]),
        S[L].I * layers(F[l]) * S[0],
    ),
    "gauges of rows": (
        LayerProduct(S[l] * F[l] * S[l + 1].I, (l, L), True),
        S[0] * LayerProduct(F[l], (l, L), True) * S[L].I,
    ),
    "gauges of residual layers": (
        layers(S[l + 1].I * (I_d + F[l]) * S[l]),
        S[L].I * layers(matadd(I_d, F[l])) * S[0],
    ),
    "an inverse in each head": (HeadSum(F[l].I * F[l] * G[l], (l, L)), HeadSum(G[l], (l, L))),
    "a gauge in each head": (
        Trace(HeadSum(F[l].I * G[l] * F[l], (l, L))),
        Trace(HeadSum(G[l], (l, L))),
    ),
    "the first of the inverted members": (
        HeadSum(S[l + 1].I * F[l], (l, L)) + S[1] * P,
        HeadSum(S[l + 1].I * F[l], (l, L)),
        [(S[1] * S[1] * P, sympy.ZeroMatrix(d, d))],
    ),
    "a power and one": (A**m * A, A ** (m + 1)),
    "a power and two": (A ** (m + 2), A**m * A**2),
    "a power of a transpose": ((A.T) ** m, (A**m).T),
    "a square of a power": (A ** (2 * m), A**m * A**m),
    "a power of an idempotent": (A**m, A, [(A * A, A)]),
    "layers in two parts": (
        layers(E[l], p_ + q_),
        layers(E[p_ + l], q_) * layers(E[l], p_),
    ),
    "layers in pairs": (layers(D[l], 2 * L), layers(D[2 * l + 1] * D[2 * l])),
    "members in two parts": (
        HeadSum(E[l], (l, p_ + q_)),
        HeadSum(E[l], (l, p_)) + HeadSum(E[p_ + l], (l, q_)),
    ),
    "a geometric sum up to i": (
        (I_n - A) * HeadSum(A**k, (k, m + 1)),
        I_n - A ** (m + 1),
    ),
    "turned around": (
        HeadSum(F[L - 1 - l] * P * G[l], (l, L)),
        HeadSum(F[l] * P * G[L - 1 - l], (l, L)),
    ),
    "powers in two directions": (
        HeadSum(P ** (n - 1 - j) * K[j], (j, n)),
        HeadSum(P**j * K[n - 1 - j], (j, n)),
    ),
    "a difference of powers": (
        A**m - B**m,
        HeadSum(A ** (m - 1 - k) * (A - B) * B**k, (k, m)),
    ),
    "what decays is summed": (
        Z[i],
        HeadSum(c ** (i - 1 - j) * K[j] * V[j].T, (j, i)),
        [*decay, (Z[0], sympy.ZeroMatrix(d, d))],
    ),
    "a linear recurrence": (
        z[i],
        P**i * z[0] + HeadSum(P ** (i - 1 - j) * K[j], (j, i)),
        [(z[l + 1], P * z[l] + K[l])],
    ),
    "a transition of each step": (
        z[i],
        LayerProduct(T_[l], (l, i)) * z[0],
        [(z[l + 1], T_[l] * z[l])],
    ),
}

FALSE: dict[str, Claim] = {
    "up to i is not before i": (upto(x[j, 0]), upto(x[j, 0], end=i - 1)),
    "a causal sum is not with the transposed mask": (upto(x[j, 0]), (M.T * x)[i, 0]),
    "the other triangle": (
        Sum(A[i, j], (j, 0, i), (i, 0, n - 1)),
        Sum(A[i, j], (i, 0, j), (j, 0, n - 1)),
    ),
    "the diagonal twice": (over(x[j, 0]), upto(x[j, 0]) + Sum(x[j, 0], (j, i, n - 1))),
    "a sum from one with the first": (Sum(x[j, 0], (j, 1, n - 1)), over(x[j, 0])),
    "a double causal sum counted short": (upto(upto(x[k, 0], k, j)), upto((i - j) * x[j, 0])),
    "the size of a prefix less one": (upto(one[j, 0]), i * one[i, 0]),
    "the state before for that after": (
        HeadSum(K[j] * V[j].T, (j, i + 1)),
        HeadSum(K[j] * V[j].T, (j, i)),
    ),
    "keys and values exchanged": (
        HeadSum(K[j] * V[j].T, (j, i + 1)).T * Q[i],
        HeadSum(K[j] * (V[j].T * Q[i]), (j, i + 1)),
    ),
    "the first row for the last": ((A * B)[n - 1, j], (A * B)[0, j]),
    "the last column of the mask": (M * OneHot(n - 1, n), one),
    "the last is not the first": (KroneckerDelta(0, i, (0, n - 1)), last[i, 0]),
    "no position is both first and last": (x[0, 0] * last[0, 0], sympy.S.Zero),
    "the sum of positions from one": (over(i * one[i, 0], i), n * (n + 1) / 2),
    "the sum of squares from one": (over(i**2 * one[i, 0], i), n * (n + 1) * (2 * n + 1) / 6),
    "the last position from one": (p[n - 1, 0], n),
    "relative positions turned": ((p * one.T - one * p.T)[i, j], (j - i) * OneMatrix(n, n)[i, j]),
    "ALiBi of the other sign": (
        RowSoftmax(scores + s * (one * p.T - p * one.T), M),
        RowSoftmax(scores - s * one * p.T, M),
    ),
    "ALiBi is not a query bias": (
        RowSoftmax(scores + s * (one * p.T - p * one.T), M),
        RowSoftmax(scores, M),
    ),
    "sums of the mask": ((I_n + N) * M, I_n),
    "a shift and back is all": (N * N.T * X, X),
    "the wrong end": (N.T * N * X, X - first * (first.T * X)),
    "the next token": (HadamardProduct(N.T, M), N.T),
    "a shift is its own inverse": (N * N * X, X),
    "rotary positions moved and exchanged": (
        R_[i + p_].T * R_[j + p_],
        R_[j].T * R_[i],
        rotary_,
    ),
    "rotary scores of sums": ((R[i] * q).T * (R[j] * u), q.T * R[i - j] * u, rotary),
    "relative positions reversed": (
        HeadSum(R[j - i] * K[j], (j, n)),
        HeadSum(R[i - j] * K[j], (j, n)),
    ),
    "gauges of one layer each": (
        layers(T[l] * F[l] * S[l]),
        T[L] * layers(F[l]) * S[0],
        inverse,
    ),
    "gauges with the wrong end": (
        layers(T[l + 1] * F[l] * S[l]),
        T[L] * layers(F[l]) * S[L],
        inverse,
    ),
    "differences without the first": (HeadSum(matadd(S[l + 1], -S[l]), (l, L)), S[L]),
    "L + 1 layers in the other order": (layers(S[l], L + 1), layers(S[l]) * S[L]),
    "the state from nothing": (Z[n], HeadSum(K[l] * V[l].T, (l, n)), state),
    "the state that decays": (Z[n], Z[0] + HeadSum(K[l] * V[l].T, (l, n)), decay),
    "the last for the first state": (Z[0], Z[n] + HeadSum(K[l] * V[l].T, (l, n)), state),
    "gauges by inverses with the wrong end": (
        layers(S[l + 1].I * F[l] * S[l]),
        S[L].I * layers(F[l]) * S[L],
    ),
    "gauges by inverses of one layer each": (
        layers(S[l].I * F[l] * S[l]),
        S[L].I * layers(F[l]) * S[0],
    ),
    "a gauge in each head without its trace": (
        HeadSum(F[l].I * G[l] * F[l], (l, L)),
        HeadSum(G[l], (l, L)),
    ),
    "a member that no inverse is of": (  # of S[1], …, S[L] the claim has inverses, not of S[0]
        HeadSum(S[l + 1].I * F[l], (l, L)) + S[0] * P,
        HeadSum(S[l + 1].I * F[l], (l, L)),
        [(S[0] * S[0] * P, sympy.ZeroMatrix(d, d))],
    ),
    "an inverse of all but the last": (  # T[l] S[l] = I is for l < L
        T[L] * S[L] * F[0],
        F[0],
        [(T[l] * S[l] * F[l], F[l])],
    ),
    "the state of one step for all": (Z[n], Z[0] + n * K[i] * V[i].T, state),
    "the state after any step": (Z[i + 1], Z[0] + HeadSum(K[l] * V[l].T, (l, n)), state),
    "a power of a product": ((A * B) ** m, A**m * B**m),
    "a power too many": (A**m * A, A ** (m + 2)),
    "a square of a power for a power": (A ** (2 * m), A**m),
    "layers in two parts, exchanged": (
        layers(E[l], p_ + q_),
        layers(E[l], p_) * layers(E[p_ + l], q_),
    ),
    "layers in pairs, each turned": (layers(D[l], 2 * L), layers(D[2 * l] * D[2 * l + 1])),
    "members in two parts, the first twice": (
        HeadSum(E[l], (l, p_ + q_)),
        HeadSum(E[l], (l, p_)) + HeadSum(E[l], (l, q_)),
    ),
    "up to the next, and the last": (
        HeadSum(z[j], (j, i + 2)),
        HeadSum(z[j], (j, i + 1)) + z[i],
    ),
    "turned around in one factor": (
        HeadSum(F[L - 1 - l] * P * G[l], (l, L)),
        HeadSum(F[l] * P * G[l], (l, L)),
    ),
    "a convolution with the wrong end": (
        z[i],
        P**i * z[0] + HeadSum(P ** (i - j) * K[j], (j, i)),
        [(z[l + 1], P * z[l] + K[l])],
    ),
    "what decays from the first on": (
        Z[i],
        HeadSum(c**j * K[j] * V[j].T, (j, i)),
        [*decay, (Z[0], sympy.ZeroMatrix(d, d))],
    ),
    "transitions in the other order": (
        z[i],
        LayerProduct(T_[l], (l, i), True) * z[0],
        [(z[l + 1], T_[l] * z[l])],
    ),
}


# -- an evaluator of loops -------------------------------------------------------------------------


def number(e: Any, at: dict[Any, int]) -> int:
    """Return the value of an index, a size or an end of a range."""
    return int(sympy.sympify(e).xreplace({key: sympy.Integer(v) for key, v in at.items()}))


def value(e: Any, at: dict[Any, Any], arrays: dict[str, Any]) -> Any:
    """Return the value of an expression, by loops; a matrix is an array of dtype object."""

    def of(part: Any) -> Any:
        return value(part, at, arrays)

    def each(index: Any, begin: Any, end: Any, body: Any) -> list[Any]:
        places = range(number(begin, at), number(end, at) + 1)
        return [value(body, {**at, index: place}, arrays) for place in places]

    kind = type(e).__name__
    size = [number(length, at) for length in e.shape] if getattr(e, "is_Matrix", False) else []
    zero = np.zeros(size, dtype=object)
    if e.is_Rational:
        return Fraction(int(e.p), int(e.q))
    if isinstance(e, sympy.Symbol):
        return at[e]
    if kind == "MatrixSymbol":
        return arrays[e.name]
    if isinstance(e, FamilyMember):
        return arrays[e.family.name, *[number(index, at) for index in e.indices]]
    if isinstance(e, MatrixElement):
        return of(e.args[0])[number(e.args[1], at), number(e.args[2], at)]
    if kind == "KroneckerDelta":
        return int(number(e.args[0], at) == number(e.args[1], at))
    if isinstance(e, Sum):
        index, begin, end = e.limits[-1]
        inner = e.limits[:-1]
        return sum(each(index, begin, end, Sum(e.function, *inner) if inner else e.function), 0)
    if isinstance(e, HeadSum):
        ((index, count),) = e.limits
        return sum(each(index, 0, count - 1, e.body), zero)
    if isinstance(e, LayerProduct):
        result = np.eye(size[0], dtype=int).astype(object)
        for factor in each(e.index, 0, e.count - 1, e.body):
            result = result @ factor if e.reverse else factor @ result
        return result
    entries = {
        "CausalMask": lambda a, b: b <= a,
        "Shift": lambda a, b: a == b + 1,
        "Positions": lambda a, b: a,
        "OneHotLast": lambda a, b: a == size[0] - 1,
        "Identity": lambda a, b: a == b,
        "OneMatrix": lambda a, b: 1,
        "ZeroMatrix": lambda a, b: 0,
        "OneHot": lambda a, b: a == number(e.args[0], at),
    }
    if kind in entries:
        for a, b in product(*map(range, size)):
            zero[a, b] = int(entries[kind](a, b))
        return zero
    if kind == "MatPow":
        result = np.eye(size[0], dtype=int).astype(object)
        for _ in range(number(e.exp, at)):
            result = result @ of(e.base)
        return result
    if kind == "Pow":
        return of(e.base) ** number(e.exp, at)
    if kind == "RowSoftmax":
        made, mask = of(e.args[0]).astype(float), of(e.args[1]).astype(float)
        weights = np.exp(made - made.max(axis=1, keepdims=True)) * mask
        return weights / weights.sum(axis=1, keepdims=True)
    parts = [of(part) for part in e.args]
    if kind in ("Add", "MatAdd"):
        return sum(parts[1:], parts[0])
    if kind in ("Mul", "MatMul"):
        result = parts[0]
        for part in parts[1:]:
            matrices = isinstance(result, np.ndarray) and isinstance(part, np.ndarray)
            result = result @ part if matrices else result * part
        return result
    if kind == "HadamardProduct":
        return parts[0] * parts[1]
    if kind == "Transpose":
        return parts[0].T
    if kind == "Trace":
        return sum(parts[0][a, a] for a in range(len(parts[0])))
    if isinstance(e, DiagMatrix):
        return np.diag(parts[0][:, 0])
    if isinstance(e, DiagonalOf):
        return np.diag(parts[0])[:, None]
    raise AssertionError(kind)


def drawn(sides: list[Any], seed: int) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Return random sizes, free indices and scalars, and random arrays of small integers."""
    draw = random.Random(seed)
    at: dict[Any, Any] = {size: draw.randint(1, 4) for size in (n, m, r, d, L, p_, q_)}
    at |= {s: draw.randint(1, 3), c: draw.randint(2, 3)}
    at |= {index: draw.randrange(at[n]) for index in (i, j, k)} | {l: draw.randrange(at[L])}

    def matrix(shape: Any) -> Any:
        made = np.zeros([number(length, at) for length in shape], dtype=object)
        for place in np.ndindex(*made.shape):
            made[place] = draw.randint(-3, 3)
        return made

    arrays: dict[Any, Any] = {}
    for side in sides:
        for tensor in side.atoms(MatrixSymbol):
            arrays.setdefault(tensor.name, matrix(tensor.shape))
        for family in side.atoms(Family):
            begin, count = number(family.firsts[0], at), number(family.counts[0], at)
            for place in range(begin, begin + count):
                arrays.setdefault((family.name, place), matrix(family.shape))
    return at, arrays


def apart(lhs: Any, rhs: Any, seed: int) -> float:
    """Return how far two sides are apart at random values, and where all terms are added up."""
    at, arrays = drawn([lhs, rhs], seed)
    found = []
    for index in (None, *_of_all_terms([lhs, rhs])):
        here = at if index is None else {**at, index: at[n]}
        with suppress(IndexError, KeyError) if index else nullcontext():  # else it has less values
            a, b = (np.asarray(value(side, here, arrays), dtype=float) for side in (lhs, rhs))
            found.append(float(abs(a - b).max()))
    return max(found)


def _of_all_terms(sides: list[Any]) -> list[Any]:
    """Return the indices that sums end before, and nothing begins with: they may be n."""
    sums = [e for side in sides for e in side.atoms(Sum, HeadSum)]
    limits = [limit for e in sums for limit in e.args[1:]]
    ends = {limit[-1] + 1 if len(limit) == 3 else limit[1] for limit in limits}
    begun = {limit[1] for limit in limits if len(limit) == 3}
    begun |= {e.args[0] for side in sides for e in side.atoms(OneHot)}
    return [index for index in (i, j) if index in ends and not any(b.has(index) for b in begun)]


# -- near misses -----------------------------------------------------------------------------------


def near_misses(e: Any) -> Iterator[Any]:
    """Yield an expression with one node changed, where index arithmetic goes wrong most easily."""
    kind = type(e).__name__
    yield from _of_node(e, kind)
    if isinstance(e, Sum | HeadSum | LayerProduct):
        for body in near_misses(e.args[0]):
            yield rebuilt(e, [body, *e.args[1:]])
    elif isinstance(e, MatrixElement):
        yield from (MatrixElement(part, *e.args[1:]) for part in near_misses(e.args[0]))
    elif kind in ("MatPow", "Pow"):
        yield from (type(e)(base, e.exp) for base in near_misses(e.base))
    elif kind in INSIDE:
        for at, part in enumerate(e.args):
            for new in near_misses(part):
                yield rebuilt(e, [*e.args[:at], new, *e.args[at + 1 :]])


INSIDE = (
    *("MatAdd", "MatMul", "Add", "Mul", "Transpose", "HadamardProduct", "Trace", "DiagMatrix"),
    "RowSoftmax",
)


def _of_node(e: Any, kind: str) -> Iterator[Any]:
    """Yield what may stand for one node by mistake."""
    if isinstance(e, Sum):
        for at, (index, begin, end) in enumerate(e.limits):
            new = []
            if {i, j} & end.free_symbols:
                new.append((index, begin, end - 1))
            if begin == 0:
                new.append((index, 1, end))
            elif begin in (i, j):
                new.append((index, begin + 1, end))
            for limit in new:
                yield Sum(e.function, *[limit if at == k else x for k, x in enumerate(e.limits)])
    elif isinstance(e, HeadSum):
        ((index, count),) = e.limits
        if {i, j} & count.free_symbols:
            yield HeadSum(e.body, (index, count - 1 if count - 1 in (i, j) else count + 1))
    elif isinstance(e, LayerProduct):
        yield LayerProduct(e.body, (e.index, e.count), not e.reverse)
    elif isinstance(e, FamilyMember):
        (index,) = e.indices
        if e.family.name in "ST":
            yield e.family[l + 1 if index == l else l if index == l + 1 else L if index == 0 else 0]
        elif e.family.name == "R":
            yield e.family[-index]
    elif isinstance(e, MatrixElement) and e.args[0].shape[0] == e.args[0].shape[1]:
        yield MatrixElement(e.args[0], e.args[2], e.args[1])
    elif kind in ("CausalMask", "Shift"):
        yield e.T
    elif kind == "OneHotLast":
        yield OneHot(0, n)
    elif kind == "Positions":
        yield one
    elif kind == "MatPow":
        yield sympy.MatPow(e.base, e.exp + 1)
    elif kind in ("Add", "MatAdd"):
        yield rebuilt(e, [-1 * e.args[0], *e.args[1:]])
