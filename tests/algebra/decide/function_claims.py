"""Random claims about functions, masks, positions, powers, layers and signs, true and nearly so.

A true claim is an instance of a textbook law in a random surrounding, rewritten by further laws;
the laws are stated here, and by nothing of the judge. A near miss has one alteration. Whether a
claim is true is for `real_values` to say.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import sympy
from sympy import (
    BlockMatrix,
    HadamardPower,
    HadamardProduct,
    Identity,
    Inverse,
    KroneckerProduct,
    MatAdd,
    MatMul,
    MatPow,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Sum,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.defined import (
    CrossEntropy,
    LogSoftmax,
    LogSumExp,
    Quotient,
    Rotation,
)
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, FamilyMember, HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import (
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
)
from otimes.algebra.language.positions import OneHotLast, Positions, Shift

n, d, m, L = sympy.symbols("n d m L", integer=True, positive=True)
i, j, k, l, t = sympy.symbols("i j k l t", integer=True)  # noqa: E741 (the layer)
a, b = sympy.symbols("a b", real=True)
one, half = sympy.S.One, Rational(1, 2)

A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
X, Z = MatrixSymbol("X", n, d), MatrixSymbol("Z", n, d)
W, V = MatrixSymbol("W", d, d), MatrixSymbol("V", d, d)
x, y = MatrixSymbol("x", n, 1), MatrixSymbol("y", n, 1)
u, v = MatrixSymbol("u", d, 1), MatrixSymbol("v", d, 1)
q = MatrixSymbol("q", 2 * d, 1)
K, Q = Family("K", (n,), d, 1), Family("Q", (n,), d, 1)
F, G = Family("F", (L,), d, d), Family("G", (L,), d, d)
S, T = Family("S", (L + 1,), d, d), Family("T", (L + 1,), d, d)
R = Family("R", ((1 - n, n - 1),), d, d)
SYMBOLS = (A, B, X, Z, W, V, x, y, u, v, q)
FAMILIES = (K, Q, F, G, S, T, R)
M, N, pos, last, first = CausalMask(n), Shift(n), Positions(n), OneHotLast(n), OneHot(0, n)

Shape = tuple[Any, Any]
SHAPES: list[Shape] = [(n, n), (n, d), (d, d), (n, one), (d, one)]
TOTAL = ["exp", "relu", "f", "sigmoid", "tanh", "sin", "cos", "silu"]


def H(*parts: Any) -> Any:
    return HadamardProduct(*parts, evaluate=False)


def f(name: str, e: Any) -> Any:
    return Activation(name, e)


def neg(e: Any) -> Any:
    return matmul(-1, e)


def minus(e: Any, g: Any) -> Any:
    return matadd(e, neg(g))


def ones(rows: Any, cols: Any = one) -> Any:
    return OneMatrix(rows, cols)


def at(e: Any, row: Any, col: Any = 0) -> Any:
    return MatrixElement(e, sympy.sympify(row), sympy.sympify(col))


def power(e: Any, exponent: Any) -> Any:
    return MatPow(e, sympy.sympify(exponent), evaluate=False)


def P(e: Any, exponent: Any) -> Any:
    return sympy.Basic.__new__(HadamardPower, e, sympy.sympify(exponent))


def times(*parts: Any) -> Any:
    return sympy.Mul(*parts, evaluate=False)


class Claim(NamedTuple):
    """An equation, its hypotheses and lemmas, and what it is made from.

    What is `open` may be false without an alteration, as the signs of scalars are drawn.

    `models` are values of matrices, as expressions, at which the equations among the hypotheses
    hold; they are for conditions on scalars to be drawn at.
    """

    lhs: Any
    rhs: Any
    law: str
    given: tuple[Any, ...] = ()
    lemmas: tuple[Any, ...] = ()
    models: tuple[tuple[tuple[Any, Any], ...], ...] = ((),)
    open: bool = False


Pair = tuple[Any, Any]
LAWS: list[Callable[[Claims], Pair]] = []


def law(function: Callable[[Claims], Pair]) -> Callable[[Claims], Pair]:
    LAWS.append(function)
    return function


class Claims:
    """Draws of one seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    # -- expressions -------------------------------------------------------------------------------

    def leaf(self, shape: Shape) -> Any:
        found: list[Any] = []
        for e in SYMBOLS:
            found += [e] * 4 if e.shape == shape else []
            found += [Transpose(e)] * 2 if e.shape == shape[::-1] else []
        if shape == (n, n):
            found += [M, N, Identity(n), Transpose(M)]
        if shape == (n, one):
            found += [pos, last, first]
        found += [ones(*shape)] if found else [ones(*shape), neg(ones(*shape))]
        return self.draw.choice(found)

    def m(self, rows: Any, cols: Any = one, depth: int = 1) -> Any:
        """Return a random expression, every part of which has a value at all numbers."""
        shape = (rows, cols)
        if depth <= 0 or self.draw.random() < 0.35:
            return self.leaf(shape)
        return self.draw.choice(list(self.operations(rows, cols, depth - 1)))()

    def operations(self, rows: Any, cols: Any, depth: int) -> Iterator[Callable[[], Any]]:
        choose = self.draw.choice

        def sub(r: Any = rows, c: Any = cols) -> Any:
            return self.m(r, c, depth)

        yield lambda: matadd(sub(), sub())
        yield lambda: (lambda p: matmul(sub(rows, p), sub(p, cols)))(choose([n, d, one]))
        yield lambda: matmul(choose([2, -1, a, half, n]), sub())
        yield lambda: H(sub(), sub())
        yield lambda: Transpose(sub(cols, rows))
        yield lambda: f(choose(TOTAL), sub())
        yield lambda: f("log", f("exp", sub()))
        yield lambda: Quotient(sub(), f("exp", sub()))
        yield lambda: P(f("exp", sub()), choose([-1, -2, half, -half]))
        if cols in (n, d):
            yield lambda: RowSoftmax(sub())
            yield lambda: LogSoftmax(sub())
            yield lambda: LayerNorm(sub(), 1)
        if cols == one and rows != one:
            p = choose([n, d])
            yield lambda: LogSumExp(sub(rows, p))
            yield lambda: CrossEntropy(sub(rows, p), sub(rows, p))
            yield lambda: RMSNorm(sub(), 1)
        if rows == cols and rows in (n, d):
            yield lambda: DiagMatrix(sub(rows, one))
            yield lambda: power(sub(), choose([m, m + 1, 2]))
        if rows == cols == n:
            yield lambda: RowSoftmax(sub(), M)
        if rows == cols == d:
            yield lambda: HeadSum(matmul(K[j], Transpose(Q[j])), (j, n))
            yield lambda: LayerProduct(choose([F[l], matadd(Identity(d), G[l])]), (l, L))
        if cols == one and rows in (n, d):
            yield lambda: DiagonalOf(sub(rows, rows))

    def mask(self, size: Any) -> Any:
        """Return a 0/1 matrix; rows without a one have no softmax."""
        if size != n:
            return ones(d, d)
        return self.draw.choice([M, M, Transpose(M), Identity(n), ones(n, n), matadd(N, M, neg(N))])

    # -- claims ------------------------------------------------------------------------------------

    def identity(self) -> Claim:
        """Return a claim that is true wherever both sides are defined."""
        choice = self.draw.choice([*LAWS, *LAWS, *CONDITIONAL])
        if choice in CONDITIONAL:
            return choice(self)
        lhs, rhs = choice(self)
        if self.draw.random() < 0.5 and not choice.__name__.startswith("index"):
            lhs, rhs = self.surrounded(lhs, rhs)
        for _ in range(self.draw.choice([0, 0, 1, 2])):
            rhs = self.rewritten(rhs)
        if self.draw.random() < 0.5:
            lhs, rhs = rhs, lhs
        return Claim(lhs, rhs, choice.__name__)

    def near_miss(self) -> Claim:
        """Return a claim with an alteration of one side, or of a hypothesis."""
        while True:
            claim = self.identity()
            if claim.given and self.draw.random() < 0.5:
                dropped = tuple(self.weaker(e) for e in claim.given)
                dropped = tuple(e for e in dropped if e is not None)
                if dropped != claim.given:
                    return claim._replace(given=dropped, law=claim.law + " weakened")
            side = self.draw.choice(["lhs", "rhs"])
            found = list(altered(getattr(claim, side)))
            if found:
                return claim._replace(**{side: self.draw.choice(found)}, law=claim.law + " altered")

    def weaker(self, condition: Any) -> Any:
        """Return a condition on scalars in a weaker or another form, or an equation as it is."""
        if isinstance(condition, tuple):
            return condition
        p, r = condition.args
        return self.draw.choice([None, sympy.Ge(p, r), sympy.Ne(p, r), sympy.Lt(p, r), condition])

    def surrounded(self, lhs: Any, rhs: Any) -> Pair:
        """Return both sides in one expression."""
        if not isinstance(lhs, MatrixExpr):
            return lhs, rhs
        rows, cols = lhs.shape
        if any(size not in (n, d, one) for size in (rows, cols)):
            return lhs, rhs
        other = self.m(rows, cols)
        left, right = self.m(d, rows, 0), self.m(cols, n, 0)
        name = self.draw.choice(TOTAL)
        choices: list[Callable[[Any], Any]] = [
            lambda e: matadd(other, e),
            lambda e: matmul(left, e),
            lambda e: matmul(e, right),
            lambda e: H(e, other),
            Transpose,
            lambda e: f(name, e),
            lambda e: Quotient(e, f("exp", other)),
        ]
        if cols in (n, d):
            choices += [RowSoftmax, LogSoftmax, LogSumExp]
        if rows == cols == n:
            choices.append(lambda e: RowSoftmax(e, M))
        if rows == cols != one:
            choices += [Trace, lambda e: power(e, 2)]
        if rows == n and cols in (n, one):
            choices.append(lambda e: at(e, i, j if cols == n else 0))
        put = self.draw.choice(choices)
        return put(lhs), put(rhs)

    def rewritten(self, e: Any) -> Any:
        """Return an expression with one part in another form."""
        found = list(places(e))
        self.draw.shuffle(found)
        for path, part in found:
            rules = list(RULES)
            self.draw.shuffle(rules)
            for rule in rules:
                new = rule(self, part)
                if new is not None:
                    return replaced(e, path, new)
        return e

    def column(self) -> Any:
        return self.m(n)


# -- trees -----------------------------------------------------------------------------------------

CLOSED = (FamilyMember, Family, MatrixSymbol, Identity, OneMatrix, ZeroMatrix, OneHot)
CLOSED += (CausalMask, Shift, Positions, OneHotLast)


def places(e: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield every (path, part) of a tree that is an expression."""
    yield path, e
    if isinstance(e, CLOSED) or not isinstance(e, sympy.Basic):
        return
    for number, part in enumerate(e.args):
        inside = isinstance(part, MatrixExpr | Trace | MatrixElement | Sum | sympy.Add | sympy.Mul)
        if inside and not (isinstance(e, MatrixElement) and number):
            if isinstance(part, sympy.Add | sympy.Mul) and not part.has(MatrixElement, Trace):
                continue
            yield from places(part, (*path, number))


def replaced(e: Any, path: tuple[int, ...], new: Any) -> Any:
    """Return a tree with the part at a path replaced."""
    if not path:
        return new
    arguments = list(e.args)
    arguments[path[0]] = replaced(arguments[path[0]], path[1:], new)
    return rebuilt(e, arguments)


def rebuilt(e: Any, arguments: list[Any]) -> Any:
    if type(e) in (sympy.Add, sympy.Mul, MatAdd, MatMul, MatPow):
        return type(e)(*arguments, evaluate=False)
    if isinstance(e, HadamardProduct | HadamardPower | BlockMatrix | KroneckerProduct):
        return sympy.Basic.__new__(type(e), *arguments)
    if isinstance(e, LayerProduct | HeadSum):
        return sympy.Basic.__new__(type(e), *arguments)
    return type(e)(*arguments)


# -- laws ------------------------------------------------------------------------------------------


def _shape(c: Claims) -> Shape:
    return c.draw.choice(SHAPES)


def _wide(c: Claims) -> Shape:
    return c.draw.choice([(n, n), (n, d), (d, d)])


@law
def quotient_of_products(c: Claims) -> Pair:
    rows, cols = _shape(c)
    e, g, h = c.m(rows, cols), c.m(rows, cols), f("exp", c.m(rows, cols))
    return c.draw.choice(
        [
            (Quotient(H(e, h), h), e),
            (Quotient(matadd(e, g), h), matadd(Quotient(e, h), Quotient(g, h))),
            (Quotient(e, Quotient(h, g)), Quotient(H(e, g), h)),
            (H(Quotient(e, g), Quotient(g, h)), Quotient(e, h)),
            (Quotient(Transpose(e), Transpose(g)), Transpose(Quotient(e, g))),
            (P(H(g, h), -1), H(P(g, -1), P(h, -1))),
            (H(P(g, -2), g), P(g, -1)),
            (Quotient(e, matmul(2, g)), matmul(half, Quotient(e, g))),
        ]
    )


@law
def rows_divided(c: Claims) -> Pair:
    rows, cols = _wide(c)
    e, g = c.m(rows, cols), c.m(rows)
    return Quotient(e, matmul(g, ones(1, cols))), matmul(DiagMatrix(P(g, -1)), e)


@law
def logs_and_powers(c: Claims) -> Pair:
    rows, cols = _shape(c)
    e, g = c.m(rows, cols), c.m(rows, cols)
    h = f("exp", g)
    return c.draw.choice(
        [
            (f("exp", matadd(e, g)), H(f("exp", e), h)),
            (f("exp", neg(e)), P(f("exp", e), -1)),
            (f("log", H(f("exp", e), h)), matadd(e, g)),
            (f("log", H(P(e, 2), h)), matadd(f("log", P(e, 2)), g)),
            (f("exp", f("log", e)), e),
            (f("log", P(h, -1)), neg(g)),
            (f("log", P(h, half)), matmul(half, g)),
            (f("log", Quotient(f("sigmoid", e), h)), minus(f("log", f("sigmoid", e)), g)),
            (H(f("sqrt", e), f("sqrt", e)), e),
            (P(P(e, half), 2), e),
            (f("sqrt", P(h, 2)), h),
            (f("sqrt", H(h, P(h, 2))), H(P(h, half), h)),
            (H(P(e, -half), P(e, half)), ones(rows, cols)),
            (P(H(h, f("sigmoid", e)), half), H(P(h, half), P(f("sigmoid", e), half))),
            (matadd(P(f("sin", e), 2), P(f("cos", e), 2)), ones(rows, cols)),
            (f("exp", matmul(2, e)), P(f("exp", e), 2)),
            (f("sqrt", h), f("exp", matmul(half, g))),
            (f("exp", matmul(half, f("log", e))), f("sqrt", e)),
            (f("sqrt", P(e, 2)), matadd(f("relu", e), f("relu", neg(e)))),
            (
                H(f("tanh", e), matadd(f("exp", e), f("exp", neg(e)))),
                minus(f("exp", e), f("exp", neg(e))),
            ),
            (
                f("log", matadd(ones(rows, cols), f("exp", e))),
                matadd(e, f("log", matadd(ones(rows, cols), f("exp", neg(e))))),
            ),
            (f("silu", e), H(e, f("sigmoid", e))),
            (f("sigmoid", e), P(matadd(ones(rows, cols), f("exp", neg(e))), -1)),
            (minus(f("relu", e), f("relu", neg(e))), e),
        ]
    )


@law
def differences_and_turns(c: Claims) -> Pair:
    rows, cols = _shape(c)
    e, g = c.m(rows, cols), c.m(rows, cols)
    unit = ones(rows, cols)
    exps = matadd(f("exp", e), f("exp", g))
    cubic = matadd(e, matmul(Rational(44715, 1000000), P(e, 3)))
    inner = matmul(sympy.sqrt(2 / sympy.pi), cubic)
    quarters = c.draw.choice([-2, -1, half, Rational(1, 3), 1, Rational(3, 2), 2, 3])
    turned = matadd(e, matmul(quarters * sympy.pi, unit))
    entry = at(e, i if rows == n else 0, 0)
    return c.draw.choice(
        [
            (f("sigmoid", minus(e, g)), Quotient(f("exp", e), exps)),
            (f("softplus", minus(e, g)), minus(f("log", exps), g)),
            (f("abs", H(e, g)), H(f("abs", e), f("abs", g))),
            (
                H(f("tanh", matadd(e, g)), matadd(unit, H(f("tanh", e), f("tanh", g)))),
                matadd(f("tanh", e), f("tanh", g)),
            ),
            (f("gelu_tanh", e), matmul(half, H(e, matadd(unit, f("tanh", inner))))),
            (f("gelu_tanh", e), H(e, f("sigmoid", matmul(2, inner)))),
            (f("sin", turned), _turned(e, unit, quarters, "sin", "cos")),
            (f("cos", turned), _turned(e, unit, quarters, "cos", "sin")),
            (matmul(sympy.exp(a - b), e), matmul(sympy.exp(a), sympy.exp(b) ** -1, e)),
            (f("relu", matmul(sympy.exp(a), e)), matmul(sympy.exp(a), f("relu", e))),
            (f("relu", matmul(sympy.Abs(a), e)), matmul(sympy.Abs(a), f("relu", e))),
            (times(sympy.cos(a + b), entry), times(_cos_of_sum(), entry)),
            (sympy.Pow(sympy.exp(entry), -1, evaluate=False), sympy.exp(-entry)),
            (power(Rotation(a), -1), Transpose(Rotation(a))),
        ]
    )


def _turned(e: Any, unit: Any, quarters: Any, name: str, other: str) -> Any:
    """Return sin or cos of e + quarters π by what they are at the angle alone."""
    at_angle = {"sin": sympy.sin(quarters * sympy.pi), "cos": sympy.cos(quarters * sympy.pi)}
    sign = 1 if name == "sin" else -1
    return matadd(matmul(at_angle["cos"], f(name, e)), matmul(sign * at_angle["sin"], f(other, e)))


def _cos_of_sum() -> Any:
    return sympy.cos(a) * sympy.cos(b) - sympy.sin(a) * sympy.sin(b)


@law
def softmax_of_rows(c: Claims) -> Pair:
    rows, cols = _wide(c)
    e, g, w = c.m(rows, cols), c.m(rows, cols), c.m(rows)
    total = matmul(f("exp", e), ones(cols, cols))
    both = H(RowSoftmax(e), RowSoftmax(g))
    shifted = matadd(e, matmul(w, ones(1, cols)))
    return c.draw.choice(
        [
            (RowSoftmax(e), Quotient(f("exp", e), total)),
            (RowSoftmax(shifted), RowSoftmax(e)),
            (matmul(RowSoftmax(e), ones(cols)), ones(rows)),
            (H(RowSoftmax(matadd(e, g)), matmul(both, ones(cols, cols))), both),
            (f("exp", LogSoftmax(e)), RowSoftmax(e)),
            (f("log", RowSoftmax(e)), LogSoftmax(e)),
            (LogSoftmax(e), minus(e, matmul(LogSumExp(e), ones(1, cols)))),
            (LogSumExp(shifted), matadd(LogSumExp(e), w)),
            (LogSumExp(e), f("log", matmul(f("exp", e), ones(cols)))),
            (LogSoftmax(shifted), LogSoftmax(e)),
            (CrossEntropy(e, g), neg(matmul(H(g, f("log", RowSoftmax(e))), ones(cols)))),
            (
                CrossEntropy(e, RowSoftmax(g)),
                minus(LogSumExp(e), matmul(H(e, RowSoftmax(g)), ones(cols))),
            ),
            (
                CrossEntropy(e, g),
                minus(H(LogSumExp(e), matmul(g, ones(cols))), matmul(H(e, g), ones(cols))),
            ),
            (
                LogSumExp(matadd(e, LogSoftmax(e))),
                LogSumExp(minus(matadd(e, e), LogSumExp(e) * ones(1, cols))),
            ),
        ]
    )


@law
def softmax_under_masks(c: Claims) -> Pair:
    size = c.draw.choice([n, n, n, d])
    e, mask, w = c.m(size, size), c.mask(size), c.m(size)
    kept = H(f("exp", e), mask)
    return c.draw.choice(
        [
            (RowSoftmax(e, mask), Quotient(kept, matmul(kept, ones(size, size)))),
            (RowSoftmax(e, mask), H(RowSoftmax(e, mask), mask)),
            (RowSoftmax(H(e, mask), mask), RowSoftmax(e, mask)),
            (RowSoftmax(matadd(e, matmul(w, ones(1, size))), mask), RowSoftmax(e, mask)),
            (matmul(RowSoftmax(e, mask), ones(size)), ones(size)),
            (
                RowSoftmax(e, mask),
                Quotient(H(RowSoftmax(e), mask), matmul(H(RowSoftmax(e), mask), ones(size, size))),
            ),
            (LogSumExp(e, mask), f("log", matmul(kept, ones(size)))),
            (LogSumExp(matadd(e, matmul(w, ones(1, size))), mask), matadd(LogSumExp(e, mask), w)),
            (RowSoftmax(e, ones(size, size)), RowSoftmax(e)),
            (RowSoftmax(e, Identity(size)), Identity(size)),
        ]
    )


@law
def softmax_in_blocks(c: Claims) -> Pair:
    rows, cols = c.draw.choice([n, d]), c.draw.choice([n, d])
    p, r, w = c.m(rows, cols), c.m(rows, 1), c.m(rows, 1)
    s, o = c.m(1, cols), c.m(1, 1)
    right, left = BlockMatrix([[p, r]]), BlockMatrix([[r, p]])
    below = RowSoftmax(BlockMatrix([[s, o]]))
    g = c.m(n, n)
    t_, o_ = c.m(1, n), c.m(1, 1)
    zero = ZeroMatrix(n, 1)
    big = BlockMatrix([[g, c.m(n)], [t_, o_]])
    turned = BlockMatrix([[o_, t_], [c.m(n), g]])
    under = RowSoftmax(BlockMatrix([[c.m(n), g]]), BlockMatrix([[ones(n), M]]))
    under = RowSoftmax(BlockMatrix([[turned.blocks[1, 0], g]]), BlockMatrix([[ones(n), M]]))
    lse = matadd(f("exp", LogSumExp(p)), f("exp", r))
    scale = Quotient(matmul(f("exp", p), ones(cols)), lse)
    return c.draw.choice(
        [
            (
                RowSoftmax(BlockMatrix([[p, r], [s, o]])),
                BlockMatrix([[RowSoftmax(right)], [below]]),
            ),
            (
                RowSoftmax(big, CausalMask(n + 1)),
                BlockMatrix(
                    [
                        [BlockMatrix([[RowSoftmax(g, M), zero]])],
                        [RowSoftmax(BlockMatrix([[t_, o_]]))],
                    ]
                ),
            ),
            (
                RowSoftmax(turned, CausalMask(n + 1)),
                BlockMatrix([[BlockMatrix([[ones(1, 1), ZeroMatrix(1, n)]])], [under]]),
            ),
            (matmul(RowSoftmax(left), BlockMatrix([[ones(1)], [ones(cols)]])), ones(rows)),
            (f("exp", LogSumExp(right)), lse),
            (LogSumExp(left), LogSumExp(right)),
            (
                matmul(RowSoftmax(right), BlockMatrix([[Identity(cols)], [ZeroMatrix(1, cols)]])),
                matmul(DiagMatrix(scale), RowSoftmax(p)),
            ),
            (
                matmul(RowSoftmax(right), BlockMatrix([[Transpose(s)], [o]])),
                matmul(RowSoftmax(left), BlockMatrix([[o], [Transpose(s)]])),
            ),
            (
                RowSoftmax(BlockMatrix([[r, w]])),
                BlockMatrix([[f("sigmoid", minus(r, w)), f("sigmoid", minus(w, r))]]),
            ),
            (f("exp", left), BlockMatrix([[f("exp", r), f("exp", p)]])),
            (CausalMask(n + 1), BlockMatrix([[M, zero], [ones(1, n), ones(1, 1)]])),
            (CausalMask(n + 1), BlockMatrix([[ones(1, 1), ZeroMatrix(1, n)], [ones(n), M]])),
            (
                matmul(left, BlockMatrix([[o], [Transpose(s)]])),
                matmul(right, BlockMatrix([[Transpose(s)], [o]])),
            ),
            (
                Trace(matmul(big, CausalMask(n + 1))),
                sympy.Add(
                    Trace(matmul(g, M)),
                    Trace(matmul(c_first(big), ones(1, n))),
                    Trace(o_),
                    evaluate=False,
                ),
            ),
        ]
    )


def c_first(e: Any) -> Any:
    return e.blocks[0, 1]


@law
def rotations(c: Claims) -> Pair:
    p, r = c.m(d), c.m(d)
    turn = Rotation(p)
    cos, sin = DiagMatrix(f("cos", p)), DiagMatrix(f("sin", p))
    w, z = c.m(d), c.m(d)
    stacked = BlockMatrix([[w], [z]])
    return c.draw.choice(
        [
            (matmul(turn, Rotation(r)), Rotation(matadd(p, r))),
            (matmul(turn, Rotation(r)), matmul(Rotation(r), turn)),
            (Transpose(turn), Rotation(neg(p))),
            (matmul(Transpose(turn), turn), Identity(2 * d)),
            (matmul(Transpose(turn), Rotation(r)), Rotation(minus(r, p))),
            (turn, BlockMatrix([[cos, neg(sin)], [sin, cos]])),
            (
                matmul(turn, stacked),
                BlockMatrix(
                    [
                        [minus(H(f("cos", p), w), H(f("sin", p), z))],
                        [matadd(H(f("sin", p), w), H(f("cos", p), z))],
                    ]
                ),
            ),
            (
                matmul(Transpose(matmul(turn, q)), matmul(Rotation(r), q)),
                matmul(Transpose(q), Rotation(minus(r, p)), q),
            ),
            (Trace(turn), times(2, Trace(DiagMatrix(f("cos", p))))),
        ]
    )


@law
def positions_and_masks(c: Claims) -> Pair:
    e, g = c.m(n, n), c.m(n)
    return c.draw.choice(
        [
            (matadd(M, Transpose(M)), matadd(ones(n, n), Identity(n))),
            (matmul(minus(Identity(n), N), M, e), e),
            (matmul(M, minus(Identity(n), N), e), e),
            (matmul(N, ones(n)), minus(ones(n), first)),
            (matmul(N, Transpose(N), e), minus(e, matmul(first, Transpose(first), e))),
            (matmul(Transpose(N), N, e), minus(e, matmul(last, Transpose(last), e))),
            (matmul(M, ones(n)), matadd(pos, ones(n))),
            (matmul(M, N, g), matmul(N, M, g)),
            (H(N, M), N),
            (matmul(Transpose(last), M), ones(1, n)),
            (matmul(Transpose(first), M), Transpose(first)),
            (matmul(M, last), last),
            (H(Transpose(M), M), Identity(n)),
            (matmul(N, pos), minus(pos, minus(ones(n), first))),
            (matmul(Transpose(N), pos), minus(matadd(pos, ones(n)), matmul(n, last))),
            (minus(M, Identity(n)), minus(ones(n, n), Transpose(M))),
            (minus(M, Identity(n)), matmul(N, M)),
            (H(pos, first), ZeroMatrix(n, 1)),
            (H(pos, last), matmul(n - 1, last)),
            (DiagonalOf(matmul(M, Transpose(M))), matadd(pos, ones(n))),
            (H(e, N), matmul(N, DiagMatrix(DiagonalOf(matmul(Transpose(N), e))))),
            (
                RowSoftmax(
                    matadd(
                        e,
                        matmul(a, minus(matmul(ones(n), Transpose(pos)), matmul(pos, ones(1, n)))),
                    ),
                    M,
                ),
                RowSoftmax(matadd(e, matmul(a, ones(n), Transpose(pos))), M),
            ),
        ]
    )


@law
def powers(c: Claims) -> Pair:
    size = c.draw.choice([n, d])
    e, g = c.m(size, size), c.m(size, size, 0)
    return c.draw.choice(
        [
            (matmul(power(e, m), e), power(e, m + 1)),
            (matmul(e, power(e, m)), matmul(power(e, m), e)),
            (matmul(e, power(e, m), e), power(e, m + 2)),
            (Transpose(power(e, m)), power(Transpose(e), m)),
            (power(e, 2 * m), matmul(power(e, m), power(e, m))),
            (matmul(power(matmul(e, g), m), e), matmul(e, power(matmul(g, e), m))),
            (power(matmul(2, e), 2), matmul(4, e, e)),
            (Trace(matmul(power(e, m), g)), Trace(matmul(g, power(e, m)))),
            (power(Identity(size), m), Identity(size)),
            (matmul(power(e, m), power(e, 2)), power(e, m + 2)),
            (LayerProduct(e, (l, m)), power(e, m)),
        ]
    )


# Sums up to an index, and members at indices that are added to.


def inside(c: Claims, index: Any) -> Any:
    """Return a summand: an entry at an index, perhaps times others."""
    e = at(c.m(n), index)
    others = [at(c.m(n, n, 0), i, index), at(c.m(n, 1, 0), index), a]
    return e if c.draw.random() < 0.6 else times(e, c.draw.choice(others))


@law
def index_triangular(c: Claims) -> Pair:
    e, g = c.m(n), c.m(n, n)
    x_j, body = at(e, j), inside(c, j)
    total = Sum(body, (j, 0, n - 1))
    upto, before = Sum(body, (j, 0, i)), Sum(body, (j, 0, i - 1))
    from_, after = Sum(body, (j, i, n - 1)), Sum(body, (j, i + 1, n - 1))
    at_i = body.xreplace({j: i})
    add = sympy.Add
    return c.draw.choice(
        [
            (upto, add(before, at_i, evaluate=False)),
            (from_, add(after, at_i, evaluate=False)),
            (add(upto, after, evaluate=False), total),
            (add(before, at_i, after, evaluate=False), total),
            (Sum(x_j, (j, 0, i)), at(matmul(M, e), i)),
            (Sum(x_j, (j, 0, i - 1)), at(matmul(N, M, e), i)),
            (Sum(x_j, (j, i, n - 1)), at(matmul(Transpose(M), e), i)),
            (Sum(x_j, (j, i + 1, n - 1)), at(matmul(minus(ones(n, n), M), e), i)),
            (Sum(times(at(g, i, j), x_j), (j, 0, i)), at(matmul(H(g, M), e), i)),
            (
                Sum(at(g, i, j), (j, 0, i), (i, 0, n - 1)),
                Sum(at(g, i, j), (i, j, n - 1), (j, 0, n - 1)),
            ),
            (
                Sum(at(g, i, j), (j, 0, i - 1), (i, 0, n - 1)),
                Sum(at(g, i, j), (i, j + 1, n - 1), (j, 0, n - 1)),
            ),
            (Sum(Sum(at(e, k), (k, 0, j)), (j, 0, i)), at(matmul(M, M, e), i)),
            (
                Sum(Sum(at(e, k), (k, 0, j)), (j, 0, i)),
                Sum(times(i - j + 1, x_j), (j, 0, i)),
            ),
            (Sum(times(i, at(e, i)), (i, 0, n - 1)), at(matmul(Transpose(pos), e), 0)),
            (at(e, n - 1), at(matmul(Transpose(last), e), 0)),
            (
                Sum(body, (j, 1, n - 1)),
                add(total, times(-1, body.xreplace({j: 0})), evaluate=False),
            ),
            (Sum(at(g, j, j), (j, 0, n - 1)), Trace(g)),
            (
                Sum(times(i - j, at(g, i, j)), (j, 0, n - 1)),
                at(
                    DiagonalOf(
                        matmul(
                            g, minus(matmul(pos, ones(1, n)), matmul(ones(n), Transpose(pos))) * -1
                        )
                    ),
                    i,
                ),
            ),
            (
                Sum(times(at(g, i, j), Sum(times(at(B, j, k), at(e, k)), (k, 0, j))), (j, 0, i)),
                at(matmul(H(g, M), H(B, M), e), i),
            ),
        ]
    )


def member(c: Claims, index: Any) -> Any:
    """Return a d × d expression of the members at an index up to n."""
    return c.draw.choice(
        [
            matmul(K[index], Transpose(Q[index])),
            matmul(K[index], Transpose(K[index]), c.m(d, d, 0)),
            matmul(matadd(K[index], Q[index]), Transpose(u)),
        ]
    )


@law
def index_prefixes(c: Claims) -> Pair:
    e, w = member(c, j), c.m(d)
    upto, before = HeadSum(e, (j, i + 1)), HeadSum(e, (j, i))
    return c.draw.choice(
        [
            (upto, matadd(before, e.xreplace({j: i}))),
            (matmul(upto, w), matadd(matmul(before, w), matmul(e.xreplace({j: i}), w))),
            (Transpose(upto), HeadSum(Transpose(e), (j, i + 1))),
            (
                matmul(Transpose(HeadSum(matmul(K[j], Transpose(Q[j])), (j, i + 1))), w),
                HeadSum(matmul(Q[j], matmul(Transpose(K[j]), w)), (j, i + 1)),
            ),
            (HeadSum(matmul(R[j - i], K[j]), (j, n)), HeadSum(matmul(R[k - i], K[k]), (k, n))),
            (upto, HeadSum(e.xreplace({j: k}), (k, i + 1))),
        ]
    )


@law
def index_layers(c: Claims) -> Pair:
    e, w = c.m(d, d, 0), c.m(d)
    product = LayerProduct
    residual = matadd(Identity(d), F[l])
    return c.draw.choice(
        [
            (HeadSum(minus(S[l + 1], S[l]), (l, L)), minus(S[L], S[0])),
            (HeadSum(S[l], (l, L + 1)), matadd(HeadSum(S[l], (l, L)), S[L])),
            (HeadSum(S[l], (l, L + 1)), matadd(HeadSum(S[l + 1], (l, L)), S[0])),
            (product(S[l], (l, L + 1)), matmul(S[L], product(S[l], (l, L)))),
            (product(S[l], (l, L + 1)), matmul(product(S[l + 1], (l, L)), S[0])),
            (
                product(matmul(Inverse(S[l + 1]), F[l], S[l]), (l, L)),
                matmul(Inverse(S[L]), product(F[l], (l, L)), S[0]),
            ),
            (
                product(matmul(Inverse(S[l + 1]), residual, S[l]), (l, L)),
                matmul(Inverse(S[L]), product(residual, (l, L)), S[0]),
            ),
            (Transpose(product(residual, (l, L))), product(Transpose(residual), (l, L), True)),
            (
                matmul(product(matmul(F[l], e), (l, L)), Identity(d)),
                product(matmul(F[l], e), (l, L)),
            ),
            (
                matmul(e, product(matmul(F[l], e), (l, L))),
                matmul(product(matmul(e, F[l]), (l, L)), e),
            ),
            (
                matmul(HeadSum(minus(S[l + 1], S[l]), (l, L)), w),
                minus(matmul(S[L], w), matmul(S[0], w)),
            ),
            (
                HeadSum(matadd(matmul(S[l + 1], T[l + 1]), neg(matmul(S[l], T[l]))), (l, L)),
                minus(matmul(S[L], T[L]), matmul(S[0], T[0])),
            ),
            (
                HeadSum(
                    matadd(
                        matmul(minus(S[l + 1], S[l]), T[l]), matmul(S[l + 1], minus(T[l + 1], T[l]))
                    ),
                    (l, L),
                ),
                minus(matmul(S[L], T[L]), matmul(S[0], T[0])),
            ),
        ]
    )


# -- claims with hypotheses and lemmas -------------------------------------------------------------


def signs(c: Claims) -> Claim:
    """A factor that is not zero under the hypotheses may be cancelled."""
    rows, cols = c.draw.choice([(n, n), (n, d), (n, one)])
    e, target = c.m(rows, cols), {(n, n): B, (n, d): Z, (n, one): y}[rows, cols]
    while e.has(target):
        e = c.m(rows, cols)
    factors = [a, a + b, a * b, a**2 + b**2, a - b, a**2 + 1, a * (b + 1), a**2 + b, 2 * a + b]
    factor = c.draw.choice(
        [*factors, a + b + 1, a * b + 1, a**2 * b, a**3, a**2 - 2 * a * b + b**2]
    )
    signs_of = [sympy.Gt, sympy.Lt, sympy.Ne, sympy.Ge]
    conditions = tuple(c.draw.choice(signs_of)(s, 0) for s in c.draw.choice([(a,), (a, b), (b,)]))
    if c.draw.random() < 0.2:
        conditions = (c.draw.choice([sympy.Gt, sympy.Ne])(a, b), *conditions)
    equal = matmul(factor, e), matmul(factor, target)
    models = (((target, e),), ())
    return Claim(e, target, f"cancelled {factor}", (equal, *conditions), (), models, True)


def logs_of_signs(c: Claims) -> Claim:
    """Logarithms and roots of scalars with a sign."""
    rows, cols = _shape(c)
    h, e = f("exp", c.m(rows, cols)), c.m(rows, cols)
    factor = c.draw.choice([a, b, a * b, a + b, a**2, a / b, a**2 + b])
    scalar = matmul(factor, ones(rows, cols))
    conditions = tuple(
        c.draw.choice([sympy.Gt, sympy.Gt, sympy.Lt, sympy.Ne])(s, 0) for s in (a, b)
    )
    lhs, rhs = c.draw.choice(
        [
            (f("log", matmul(factor, h)), matadd(f("log", scalar), f("log", h))),
            (f("sqrt", matmul(factor**2, h)), matmul(factor, f("sqrt", h))),
            (f("relu", matmul(factor, e)), matmul(factor, f("relu", e))),
            (f("log", matmul(factor**2, h)), matadd(matmul(2, f("log", scalar)), f("log", h))),
            (RMSNorm(matmul(factor, h)), RMSNorm(h)),
            (LayerNorm(matmul(factor, X)), LayerNorm(X)),
            (Quotient(matmul(factor, e), matmul(factor, h)), Quotient(e, h)),
        ]
    )
    return Claim(lhs, rhs, f"signs {factor}", conditions, open=True)


def definitions(c: Claims) -> Claim:
    """Matrices that hypotheses define, put in their places."""
    shape, target = c.draw.choice([((n, n), B), ((n, d), Z), ((n, one), y), ((d, d), V)])
    e = c.m(*shape)
    while e.has(target):
        e = c.m(*shape)
    lhs, rhs = c.surrounded(e, target)
    if c.draw.random() < 0.4:
        rhs = c.rewritten(rhs)
    return Claim(lhs, rhs, "a definition", ((target, e),), (), (((target, e),),))


def commuting(c: Claims) -> Claim:
    """Layers that commute with a matrix, by a lemma about all of them or without it."""
    given = ((matmul(W, F[l]), matmul(F[l], W)),)
    model = ((F, lambda at: matadd(matmul(at, W), Identity(d))),)
    other = ((F, lambda at: W),)
    product = LayerProduct(F[l], (l, L))
    lemma = (matmul(W, product), matmul(product, W))
    wrong = (matmul(W, product), matmul(product, F[0]))
    lemma = c.draw.choice([lemma, lemma, wrong])
    e = c.m(d, d, 0)
    sides = c.draw.choice(
        [
            (matmul(W, W, product), matmul(product, W, W)),
            (matmul(W, product, e), matmul(product, W, e)),
            (matmul(Transpose(product), Transpose(W)), matmul(Transpose(W), Transpose(product))),
            (power(matmul(W, product), 2), matmul(W, W, product, product)),
            (matmul(W, product, V), matmul(W, product, V)),
            (matmul(product, W, product), matmul(product, product, W)),
        ]
    )
    lemmas = c.draw.choice([(), (lemma,)])
    return Claim(*sides, "commuting layers", given, lemmas, (model, other))


def over_layers(c: Claims) -> Claim:
    """A law about layers as the lemma of a claim in which it stands in a surrounding."""
    lhs, rhs = index_layers(c)
    wrong = list(altered(rhs)) if c.draw.random() < 0.3 else []
    lemma = lhs, c.draw.choice(wrong) if wrong else rhs
    return Claim(*c.surrounded(lhs, rhs), "a lemma over layers", (), (lemma,))


CONDITIONAL = [signs, signs, logs_of_signs, logs_of_signs, definitions, commuting, over_layers]


# -- rules -----------------------------------------------------------------------------------------

RULES: list[Callable[[Claims, Any], Any]] = []


def rule(function: Callable[[Claims, Any], Any]) -> Callable[[Claims, Any], Any]:
    RULES.append(function)
    return function


@rule
def defined(c: Claims, e: Any) -> Any:
    """Functions by their definitions."""
    if isinstance(e, RowSoftmax):
        scores, *mask = e.args
        weights = H(f("exp", scores), *mask) if mask else f("exp", scores)
        return Quotient(weights, matmul(weights, ones(e.shape[1], e.shape[1])))
    if isinstance(e, Quotient):
        return H(e.args[0], P(e.args[1], -1))
    if isinstance(e, LogSoftmax):
        return c.draw.choice(
            [
                f("log", RowSoftmax(*e.args)),
                minus(e.args[0], matmul(LogSumExp(*e.args), ones(1, e.shape[1]))),
            ]
        )
    if isinstance(e, CrossEntropy):
        scores, targets = e.args
        return neg(matmul(H(targets, LogSoftmax(scores)), ones(scores.shape[1])))
    if isinstance(e, Rotation):
        cos, sin = (DiagMatrix(f(name, e.args[0])) for name in ("cos", "sin"))
        return BlockMatrix([[cos, neg(sin)], [sin, cos]])
    if isinstance(e, LogSumExp) and len(e.args) == 1:
        return f("log", matmul(f("exp", e.args[0]), ones(e.args[0].shape[1])))
    return None


@rule
def constants(c: Claims, e: Any) -> Any:
    """Constant matrices by one another."""
    if e == M:
        return c.draw.choice(
            [
                minus(matadd(ones(n, n), Identity(n)), Transpose(M)),
                matadd(Identity(n), matmul(N, M)),
            ]
        )
    if e == N:
        return c.draw.choice([H(N, M), minus(N, ZeroMatrix(n, n))])
    if e == pos:
        return minus(matmul(M, ones(n)), ones(n))
    if e == first:
        return minus(ones(n), matmul(N, ones(n)))
    if e == last:
        return minus(ones(n), matmul(Transpose(N), ones(n)))
    return None


@rule
def linear(c: Claims, e: Any) -> Any:
    """Laws of sums, products and transposes."""
    if isinstance(e, MatAdd | HadamardProduct):
        return rebuilt(e, list(reversed(e.args)))
    if isinstance(e, MatMul) and len(e.args) == 2 and isinstance(e.args[1], MatAdd):
        return matadd(*[matmul(e.args[0], part) for part in e.args[1].args])
    if isinstance(e, Transpose) and isinstance(e.args[0], MatAdd | HadamardProduct):
        return rebuilt(e.args[0], [Transpose(part) for part in e.args[0].args])
    if isinstance(e, Transpose) and isinstance(e.args[0], Activation | Quotient | HadamardPower):
        parts = [Transpose(x) if isinstance(x, MatrixExpr) else x for x in e.args[0].args]
        return rebuilt(e.args[0], parts)
    if isinstance(e, MatMul) and len(e.args) > 2 and isinstance(e.args[0], MatrixExpr):
        return matmul(e.args[0], matmul(*e.args[1:]))
    return None


@rule
def written(c: Claims, e: Any) -> Any:
    """Entries of products as sums."""
    if isinstance(e, MatrixElement) and isinstance(e.args[0], MatMul) and t not in e.free_symbols:
        left, *rest = e.args[0].args
        if rest and isinstance(left, MatrixExpr) and left.shape[1] == n:
            right = rest[0] if len(rest) == 1 else matmul(*rest)
            return Sum(times(at(left, e.args[1], t), at(right, t, e.args[2])), (t, 0, n - 1))
    return None


@rule
def shifted_scores(c: Claims, e: Any) -> Any:
    if isinstance(e, RowSoftmax) and e.shape[0] in (n, d):
        rows, cols = e.shape
        extra = matmul(c.m(rows, 1, 0), ones(1, cols))
        return rebuilt(e, [matadd(e.args[0], extra), *e.args[1:]])
    return None


# -- alterations -----------------------------------------------------------------------------------

OTHERS = {"exp": "sigmoid", "log": "sqrt", "sqrt": "log", "sin": "cos", "cos": "sin", "f": "exp"}
OTHERS |= {"abs": "relu", "softplus": "abs", "gelu_tanh": "silu"}
OTHERS |= {"relu": "silu", "silu": "relu", "sigmoid": "tanh", "tanh": "sigmoid"}


def altered(e: Any) -> Iterator[Any]:
    """Yield an expression with one part altered, of the same shape."""
    for path, part in places(e):
        for new in _altered(part):
            yield replaced(e, path, new)


def _altered(e: Any) -> Iterator[Any]:
    if isinstance(e, MatrixExpr):
        yield from _altered_matrix(e)
    elif isinstance(e, Sum):
        (index, begin, end), *outer = e.limits
        limits = [(index, begin + 1, end), (index, begin, end - 1)]
        limits += [(index, begin, end + 1)] if end in (i - 1, j - 1) else []
        for limit in limits:
            yield Sum(e.function, limit, *outer)
    elif isinstance(e, MatrixElement):
        rows, row, col = e.args
        if rows.shape[0] == rows.shape[1]:
            yield at(rows, col, row)
        if row == n - 1:
            yield at(rows, 0, col)


def _altered_matrix(e: Any) -> Iterator[Any]:
    rows, cols = e.shape
    square = rows == cols != one
    kinds = {M: Transpose(M), N: Transpose(N), last: first, first: last, pos: matadd(pos, ones(n))}
    if e in kinds:
        yield kinds[e]
        return
    if isinstance(e, Activation):
        name = str(e.args[0])
        yield f(OTHERS[name], e.args[1])
    if isinstance(e, RowSoftmax | LogSumExp) and len(e.args) == 2:
        yield type(e)(e.args[0])
        if e.args[1].shape[0] == e.args[1].shape[1]:
            yield type(e)(e.args[0], Transpose(e.args[1]))
    if isinstance(e, RowSoftmax) and len(e.args) == 1:
        yield f("exp", e.args[0])
        if square:
            yield Transpose(RowSoftmax(Transpose(e.args[0])))
            yield RowSoftmax(*e.args, CausalMask(rows))
    if isinstance(e, LogSoftmax):
        yield RowSoftmax(*e.args)
    if isinstance(e, Quotient | CrossEntropy):
        yield type(e)(*reversed(e.args))
    if isinstance(e, Quotient):
        yield H(*e.args)
    if isinstance(e, HadamardPower):
        yield P(e.args[0], -e.args[1])
        yield P(e.args[0], e.args[1] * 2)
    if isinstance(e, Rotation):
        yield Rotation(neg(e.args[0]))
    if isinstance(e, MatPow) and not isinstance(e, Inverse) and m in e.args[1].free_symbols:
        yield power(e.args[0], e.args[1] + 1)
        yield power(e.args[0], m) if e.args[1] != m else power(e.args[0], 2)
    if isinstance(e, FamilyMember):
        yield from _altered_member(e)
    if isinstance(e, HeadSum):
        (index, count), *_ = e.limits
        if count in (i + 1, L + 1, n):
            yield HeadSum(e.body, (index, count - 1))
    if isinstance(e, LayerProduct):
        yield LayerProduct(e.body, (e.index, e.count), not e.reverse)
    if isinstance(e, RMSNorm | LayerNorm):
        yield (LayerNorm if isinstance(e, RMSNorm) else RMSNorm)(*e.args)
    if isinstance(e, DiagMatrix):
        yield matmul(e.args[0], ones(1, rows))
    if isinstance(e, MatMul) and len(e.args) == 2 and e.args[0] == -1:
        yield e.args[1]
    if isinstance(e, MatAdd) and len(e.args) > 1:
        yield e.args[1] if len(e.args) == 2 else matadd(*e.args[1:])
    if isinstance(e, MatrixSymbol) and square:
        yield Transpose(e)
    if isinstance(e, Identity) and rows != one:
        yield ones(rows, rows)
    if isinstance(e, OneMatrix) and square:
        yield Identity(rows)


def _altered_member(e: Any) -> Iterator[Any]:
    (index,) = e.indices
    if e.family in (S, T):
        yield e.family[
            L - index if not index.free_symbols & {l} else (index - 1 if index != l else l + 1)
        ]
    if e.family == R:
        yield R[-index]
    if e.family in (K, Q) and index == i:
        yield e.family[0]
