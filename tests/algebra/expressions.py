"""Random expressions over a small alphabet, so that many of them are equal by coincidence.

`random_expression` draws a tree of a given shape; `rewritten` applies sound rules at random places
of a tree, `mutated` makes one change that is usually wrong. All constructors are the unevaluated
ones, so that the tree is what was drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import sympy
from sympy import (
    HadamardProduct,
    Identity,
    KroneckerProduct,
    MatAdd,
    MatMul,
    MatPow,
    MatrixSymbol,
    OneMatrix,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
)

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

n, d, H = sympy.symbols("n d H", integer=True, positive=True)
a, b, s = sympy.symbols("a b s")
h, i = sympy.symbols("h i", integer=True)
one = sympy.S.One

A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
W = MatrixSymbol("W", d, d)
X = MatrixSymbol("X", n, d)
M = MatrixSymbol("M", n * d, n * d)
P = Family("P", (H,), n, n)
Q = Family("Q", (H,), n, d)
TENSORS: dict[str, Any] = {t.name: t for t in (A, B, W, X, M, P, Q)}
SCALARS = ["a", "b", "s"]

Shape = tuple[Any, Any]
SCALAR: Shape = (0, 0)
SQUARE: Shape = (n, n)
SHAPES: list[Shape] = [SCALAR, SQUARE, (n, d), (d, d), (n * d, n * d), (n * d, one), (n, one)]
IDS = [f"{rows}×{cols}" if rows else "scalar" for rows, cols in SHAPES]

LEAVES: dict[Shape, list[Any]] = {
    SQUARE: [A, B, A, Identity(n), OneMatrix(n, n), ZeroMatrix(n, n)],
    (d, d): [W, W, Identity(d), OneMatrix(d, d)],
    (n, d): [X, X, OneMatrix(n, d)],
    (d, n): [Transpose(X), OneMatrix(d, n)],
    (n * d, n * d): [M, Identity(n * d), OneMatrix(n * d, n * d)],
    (n, one): [OneMatrix(n, 1)],
    (one, n): [OneMatrix(1, n)],
    (d, one): [OneMatrix(d, 1)],
    (one, d): [OneMatrix(1, d)],
    (n * d, one): [OneMatrix(n * d, 1), vec_rows(X), vec_cols(Transpose(X))],
    (one, n * d): [OneMatrix(1, n * d), Transpose(vec_rows(X))],
    (one, one): [OneMatrix(1, 1), Identity(1)],
}
FACTORS = [sympy.Integer(2), sympy.Integer(-1), a, b, a + b, 1 / d, n, a / b, 1 / (a + b)]
FACTORS += [sympy.Rational(1, 2), sympy.sqrt(s), 1 / sympy.sqrt(s), H]


def random_expression(
    draw: random.Random, shape: Shape, depth: int, index: Symbol | None = None
) -> Any:
    """Return a random tree of a shape; members of families appear under the bound `index`."""

    def sub(shape: Shape, index: Symbol | None = index) -> Any:
        return random_expression(draw, shape, depth - 1, index)

    if shape == SCALAR:
        return _random_scalar(draw, depth, sub)
    rows, cols = shape
    if depth <= 0:
        leaves = LEAVES[shape]
        if index is not None:
            members = {SQUARE: P[index], (n, d): Q[index], (d, n): Transpose(Q[index])}
            leaves = leaves + [members[shape]] * 3 if shape in members else leaves
        return draw.choice(leaves)
    inner = draw.choice([n, d, one] if n * d not in shape else [n * d, one])
    choices: list[Callable[[], Any]] = [
        lambda: matadd(sub(shape), sub(shape)),
        lambda: matmul(sub((rows, inner)), sub((inner, cols))),
        lambda: matmul(sub((rows, rows)), sub(shape)),
        lambda: Transpose(sub((cols, rows))),
        lambda: matmul(draw.choice(FACTORS), sub(shape)),
        lambda: HadamardProduct(sub(shape), sub(shape)),
        lambda: sub(shape),
    ]
    if rows == cols and rows != one:
        choices.append(lambda: MatPow(sub(shape), draw.choice([0, 2, 2, 3]), evaluate=False))
    if depth == 2:
        choices.append(lambda: matmul(sub(SCALAR), sub(shape)))
    if n * d in shape:
        split = {n * d: (n, d), one: (one, one)}
        r, c = split[rows], split[cols]
        choices += [lambda: kron(sub((r[0], c[0])), sub((r[1], c[1])))] * 3
        if cols == one:
            choices.append(lambda: vec_rows(sub((n, d))))
            choices.append(lambda: vec_cols(sub((d, n))))
            choices.append(lambda: matmul(kron(sub(SQUARE), sub((d, d))), vec_rows(sub((n, d)))))
            choices.append(lambda: matmul(kron(sub(SQUARE), sub((d, d))), vec_cols(sub((d, n)))))
    if index is None and n * d not in shape:
        choices += [lambda: HeadSum(sub(shape, h), (h, H))] * 2
        choices.append(lambda: _through_heads(draw, shape, sub))
        if n in shape and cols in (n, d):
            choices.append(lambda: HeadSum(_selecting(shape, sub), (i, rows)))
    return draw.choice(choices)()


def _random_scalar(draw: random.Random, depth: int, sub: Callable[..., Any]) -> Any:
    if depth <= 0:
        return draw.choice([Trace(A), Trace(B), Trace(W), a, b, n, sympy.Integer(2)])
    shape = draw.choice([SQUARE, SQUARE, (d, d)] + [(n * d, n * d)] * (depth > 1))
    choices: list[Callable[[], Any]] = [
        lambda: Trace(sub(shape)),
        lambda: Trace(sub(shape)),
        lambda: sympy.Add(sub(SCALAR), sub(SCALAR), evaluate=False),
        lambda: sympy.Mul(sub(SCALAR), sub(SCALAR), evaluate=False),
        lambda: sympy.Mul(draw.choice(FACTORS), sub(SCALAR), evaluate=False),
        lambda: sympy.Pow(sub(SCALAR), 2, evaluate=False),
    ]
    return draw.choice(choices)()


def _through_heads(draw: random.Random, shape: Shape, sub: Callable[..., Any]) -> Any:
    """Return heads side by side times heads one below the other."""
    rows, cols = shape
    inner = draw.choice([n, d])
    side = ConcatHeads(sub((rows, inner), h), (h, H))
    return matmul(side, StackHeads(sub((inner, cols), h), (h, H)))


def _selecting(shape: Shape, sub: Callable[..., Any]) -> Any:
    """Return e_i e_iᵀ times a matrix, to be summed over i."""
    rows, _ = shape
    return matmul(OneHot(i, rows), Transpose(OneHot(i, rows)), sub(shape))


# -- places of a tree -------------------------------------------------------------------------


def places(e: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield every (path, part) of a tree that is an expression, bound limits left out."""
    yield path, e
    if isinstance(e, sympy.MatrixExpr | Trace | sympy.Add | sympy.Mul | sympy.Pow):
        for k, argument in enumerate(e.args):
            if isinstance(argument, sympy.MatrixExpr | Trace) or _holds_matrix(argument):
                yield from places(argument, (*path, k))


def _holds_matrix(e: Any) -> bool:
    return isinstance(e, sympy.Add | sympy.Mul | sympy.Pow) and e.has(Trace)


def replaced(e: Any, path: tuple[int, ...], new: Any) -> Any:
    """Return the tree with the part at a path replaced; nothing is evaluated."""
    if not path:
        return new
    arguments = list(e.args)
    arguments[path[0]] = replaced(arguments[path[0]], path[1:], new)
    return rebuilt(e, arguments)


def rebuilt(e: Any, arguments: list[Any]) -> Any:
    if isinstance(e, MatMul | MatAdd | MatPow | sympy.Add | sympy.Mul | sympy.Pow):
        return type(e)(*arguments, evaluate=False)
    if isinstance(e, KroneckerProduct):
        return kron(*arguments)
    return type(e)(*arguments)


# -- sound rules ------------------------------------------------------------------------------


def _is(e: Any, *kinds: type) -> bool:
    return type(e) in kinds


def _matrices(e: Any) -> bool:
    return all(isinstance(x, sympy.MatrixExpr) for x in e.args)


def _associate(draw: random.Random, e: Any) -> Any:
    if _is(e, MatMul) and len(e.args) >= 2 and _matrices(e):
        flat = [y for x in e.args for y in (x.args if _is(x, MatMul) else [x])]
        if len(flat) > 2:
            k = draw.randrange(len(flat) - 1)
            return matmul(*flat[:k], matmul(*flat[k : k + 2]), *flat[k + 2 :])
    return None


def _distribute(draw: random.Random, e: Any) -> Any:
    if _is(e, MatMul, HadamardProduct, KroneckerProduct):
        sums = [k for k, x in enumerate(e.args) if _is(x, MatAdd)]
        if sums:
            k = draw.choice(sums)
            parts = [rebuilt(e, [*e.args[:k], x, *e.args[k + 1 :]]) for x in e.args[k].args]
            return matadd(*parts)
    return None


def _commute(draw: random.Random, e: Any) -> Any:
    if _is(e, MatAdd, HadamardProduct):
        arguments = list(e.args)
        draw.shuffle(arguments)
        return rebuilt(e, arguments)
    return None


def _transpose_inwards(draw: random.Random, e: Any) -> Any:
    if not _is(e, Transpose):
        return None
    inner = e.args[0]
    if _is(inner, Transpose):
        return inner.args[0]
    if _is(inner, MatMul) and _matrices(inner):
        return matmul(*[Transpose(x) for x in reversed(inner.args)])
    if _is(inner, MatAdd, HadamardProduct, KroneckerProduct):
        return rebuilt(inner, [Transpose(x) for x in inner.args])
    if _is(inner, HeadSum):
        return HeadSum(Transpose(inner.body), *inner.limits)
    return None


def _transpose_twice(draw: random.Random, e: Any) -> Any:
    return Transpose(Transpose(e)) if isinstance(e, sympy.MatrixExpr) else None


def _mixed_product(draw: random.Random, e: Any) -> Any:
    if _is(e, MatMul) and len(e.args) == 2 and all(_is(x, KroneckerProduct) for x in e.args):
        (p, q), (r, t) = e.args[0].args, e.args[1].args
        if p.shape[1] == r.shape[0] and q.shape[1] == t.shape[0]:
            return kron(matmul(p, r), matmul(q, t))
    return None


def _vec_bridge(draw: random.Random, e: Any) -> Any:
    if _is(e, MatMul) and len(e.args) == 2 and _is(e.args[0], KroneckerProduct):
        (p, q), x = e.args[0].args, e.args[1]
        if _is(x, vec_rows) and p.shape[1] == x.args[0].shape[0]:
            return vec_rows(matmul(p, x.args[0], Transpose(q)))
        if _is(x, vec_cols) and p.shape[1] == x.args[0].shape[1]:
            return vec_cols(matmul(q, x.args[0], Transpose(p)))
    return None


def _vec_flip(draw: random.Random, e: Any) -> Any:
    if _is(e, vec_rows):
        return vec_cols(Transpose(e.args[0]))
    return vec_rows(Transpose(e.args[0])) if _is(e, vec_cols) else None


def _cycle(draw: random.Random, e: Any) -> Any:
    if _is(e, Trace):
        inner = e.args[0]
        if _is(inner, MatMul) and _matrices(inner):
            return Trace(matmul(*inner.args[1:], inner.args[0]))
        if _is(inner, KroneckerProduct) and all(x.shape[0] == x.shape[1] for x in inner.args):
            return sympy.Mul(*[Trace(x) for x in inner.args], evaluate=False)
        return Trace(Transpose(inner))
    return None


def _into_head_sum(draw: random.Random, e: Any) -> Any:
    if _is(e, MatMul) and len(e.args) == 2 and _is(e.args[0], HeadSum):
        head_sum, right = e.args
        indices = {index for index, _ in head_sum.limits}
        if isinstance(right, sympy.MatrixExpr) and not _mentions(right, indices):
            return HeadSum(matmul(head_sum.body, right), *head_sum.limits)
    if _is(e, HeadSum) and _is(e.body, MatAdd):
        return matadd(*[HeadSum(x, *e.limits) for x in e.body.args])
    return None


def _mentions(e: Any, indices: set[Any]) -> bool:
    return any(part in indices for part in sympy.preorder_traversal(e))


def _identity(draw: random.Random, e: Any) -> Any:
    if isinstance(e, sympy.MatrixExpr):
        return matmul(Identity(e.shape[0]), e)
    return None


def _power(draw: random.Random, e: Any) -> Any:
    return matmul(*[e.base] * int(e.exp)) if _is(e, MatPow) and e.exp > 1 else None


RULES = [
    _associate,
    _distribute,
    _commute,
    _transpose_inwards,
    _transpose_twice,
    _mixed_product,
    _vec_bridge,
    _vec_flip,
    _cycle,
    _into_head_sum,
    _identity,
    _power,
]


def rewritten(draw: random.Random, e: Any, steps: int) -> tuple[Any, list[str]]:
    """Return an equal expression, and the names of the rules used."""
    used = []
    for _ in range(steps):
        found = list(places(e))
        draw.shuffle(found)
        for rule in draw.sample(RULES, len(RULES)):
            new = next(((p, x) for p, part in found if (x := rule(draw, part)) is not None), None)
            if new is not None:
                e = replaced(e, *new)
                used.append(rule.__name__)
                break
    return e, used


# -- mistakes ---------------------------------------------------------------------------------


def mutants(e: Any) -> Iterator[Any]:
    """Yield trees with one mistake of the same shape, for every place."""
    for path, part in places(e):
        if _is(part, MatMul) and len(part.args) == 2 and _matrices(part):
            x, y = part.args
            if x.shape == y.shape and x.shape[0] == x.shape[1]:
                yield replaced(e, path, matmul(y, x))
        if isinstance(part, sympy.MatrixExpr) and part.shape[0] == part.shape[1]:
            yield replaced(e, path, Transpose(part))
        if _is(part, MatAdd) and len(part.args) > 1:
            yield replaced(e, path, matadd(*part.args[1:]))
        if _is(part, MatrixSymbol) and part.name == "A":
            yield replaced(e, path, B)
        if _is(part, HadamardProduct) and part.shape[0] == part.shape[1]:
            yield replaced(e, path, matmul(*part.args))
        if isinstance(part, sympy.MatrixExpr):
            yield replaced(e, path, matmul(2, part))
