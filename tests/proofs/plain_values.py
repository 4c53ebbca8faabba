"""A statement as its author wrote it, and the one in its certificate, each by loops over numbers.

`Plain` evaluates SymPy expressions with index arithmetic (A**m, S[l + 1], sums up to an index) as
they are written. `Certified` evaluates the trees of a certificate, by `random_trees`, at the same
numbers. Neither shares code with the judge. Between the two stands all that the checker does not
see: reading, renaming, definitions, index arithmetic, the trees.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language import positions
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    OneHot,
    StackHeads,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from tests.proofs.random_trees import (
    Rows,
    UndefinedError,
    World,
    by_entry,
    identity,
    inverted,
    matmul,
    reciprocal_root,
)

Scope = dict[Any, int]


class Other(Exception):
    """An expression or a tree that is not evaluated here."""


def power(base: Any, exponent: Any) -> int | Fraction:
    """Return a power with an integer exponent, or a square root that is rational."""
    base, exponent = Fraction(base), Fraction(exponent)
    if exponent.denominator == 2:
        return power(1 / reciprocal_root(base), exponent.numerator) if base else 0
    if exponent.denominator != 1 or (base == 0 and exponent < 0):
        raise UndefinedError
    found = base ** int(exponent)
    return int(found) if found.denominator == 1 else found


def beside(parts: list[Rows]) -> Rows:
    return [[x for row in rows for x in row] for rows in zip(*parts, strict=True)]


def kron(factors: list[Rows]) -> Rows:
    first, *others = factors
    for y in others:
        first = [[p * q for p in r for q in s] for r in first for s in y]
    return first


def along_diagonal(blocks: list[Rows]) -> Rows:
    """Return a block diagonal matrix."""
    width, before, found = sum(len(x[0]) for x in blocks), 0, []
    for x in blocks:
        after = width - before - len(x[0])
        found += [[*[0] * before, *row, *[0] * after] for row in x]
        before += len(x[0])
    return found


class Numbers:
    """Sizes, scalars and matrices by name, drawn when they are first asked for."""

    def __init__(self, sizes: dict[str, int], seed: int) -> None:
        self.sizes, self.seed = sizes, seed
        self.members: dict[tuple[str, tuple[int, ...]], Rows] = {}

    def scalar(self, name: str) -> Any:
        return random.Random(f"{self.seed} {name}").choice((1, 4, 9, Fraction(1, 4)))

    def matrix(self, name: str, at: tuple[int, ...], rows: int, cols: int) -> Rows:
        if (name, at) not in self.members:
            draw = random.Random(f"{self.seed} {name} {at}")
            made = [[draw.randint(-2, 2) for _ in range(cols)] for _ in range(rows)]
            self.members[name, at] = invertible(made) if rows == cols else made
        return self.members[name, at]


def invertible(made: Rows) -> Rows:
    """Return a product of a triangular matrix, its transpose and a cyclic permutation."""
    every = range(len(made))
    low = [[made[i][j] if j < i else int(i == j) for j in every] for i in every]
    turned = [[low[j][i] for j in every] for i in every]
    moved = [[int(j == (i + 1) % len(made)) for j in every] for i in every]
    return matmul(matmul(low, turned), moved)


class Plain:
    """The values of expressions as they are written."""

    def __init__(self, numbers: Numbers, functions: World) -> None:
        self.numbers, self.functions = numbers, functions

    def whole(self, e: Any, scope: Scope) -> int:
        found = self.value(e, scope) if isinstance(e, sympy.Basic) else e
        if Fraction(found).denominator != 1:
            raise Other("an index that is no integer")
        return int(found)

    def shape(self, e: Any, scope: Scope) -> tuple[int, int]:
        rows, cols = (self.whole(size, scope) for size in e.shape)
        return rows, cols

    def value(self, e: Any, scope: Scope) -> Any:
        """Return rows of entries, or a number."""

        def of(part: Any) -> Any:
            return self.value(part, scope)

        match e:
            case sympy.Integer() | sympy.Rational():
                return Fraction(int(e.p), int(e.q)) if e.q != 1 else int(e.p)
            case sympy.Symbol():
                known = scope.get(e, self.numbers.sizes.get(e.name))
                return self.numbers.scalar(e.name) if known is None else known
            case sympy.MatAdd():
                return by_entry(lambda *x: sum(x), *map(of, e.args))
            case sympy.Add():
                return sum(map(of, e.args))
            case sympy.Mul() | sympy.MatMul():
                return self.functions.product([of(x) for x in e.args])
            case sympy.MatPow():
                return self.power(
                    of(e.args[0]), self.whole(e.args[1] if len(e.args) > 1 else -1, scope)
                )
            case sympy.Pow():
                return power(of(e.base), of(e.exp))
            case sympy.Transpose() | sympy.Adjoint():
                return [list(column) for column in zip(*of(e.args[0]), strict=True)]
            case sympy.HadamardProduct():
                return by_entry(lambda *x: self.functions.product(x), *map(of, e.args))
            case sympy.HadamardPower():
                return by_entry(lambda x: Fraction(x) ** int(e.args[1]), of(e.args[0]))
            case sympy.KroneckerProduct():
                return kron([of(x) for x in e.args])
            case sympy.Trace():
                return sum(row[k] for k, row in enumerate(of(e.args[0])))
            case sympy.Identity():
                return identity(self.shape(e, scope)[0])
            case sympy.OneMatrix() | sympy.ZeroMatrix():
                rows, cols = self.shape(e, scope)
                return [[int(isinstance(e, sympy.OneMatrix))] * cols for _ in range(rows)]
            case sympy.MatrixSymbol():
                return self.numbers.matrix(e.name, (), *self.shape(e, scope))
            case FamilyMember():
                at = tuple(self.whole(i, scope) for i in e.indices)
                return self.numbers.matrix(e.family.name, at, *self.shape(e, scope))
            case MatrixElement():
                rows, i, j = of(e.args[0]), *[self.whole(x, scope) for x in e.args[1:]]
                if not (0 <= i < len(rows) and 0 <= j < len(rows[0])):
                    raise UndefinedError
                return rows[i][j]
            case sympy.KroneckerDelta():
                return int(of(e.args[0]) == of(e.args[1]))
            case sympy.Sum():
                *inner, (index, low, high) = e.limits
                body = sympy.Sum(e.function, *inner) if inner else e.function
                ends = range(self.whole(low, scope), self.whole(high, scope) + 1)
                return sum(self.value(body, {**scope, index: k}) for k in ends)
            case sympy.BlockMatrix() if not isinstance(e, sympy.BlockDiagMatrix):
                lines = [[of(part) for part in line] for line in e.blocks.tolist()]
                bands = [zip(*line, strict=True) for line in lines]
                return [[x for part in row for x in part] for band in bands for row in band]
            case sympy.BlockDiagMatrix():
                return along_diagonal([of(part) for part in e.args])
            case sympy.ImmutableDenseMatrix():
                return [[of(e[i, j]) for j in range(e.cols)] for i in range(e.rows)]
            case DiagMatrix():
                line = [x for row in of(e.args[0]) for x in row]
                return [[x if i == j else 0 for j, x in enumerate(line)] for i in range(len(line))]
            case DiagonalOf():
                return [[row[k]] for k, row in enumerate(of(e.args[0]))]
            case DiagonalMatrix():
                rows = of(e.args[0])
                return [
                    [x if i == j else 0 for j, x in enumerate(row)] for i, row in enumerate(rows)
                ]
            case vec_rows():
                return [[x] for row in of(e.args[0]) for x in row]
            case vec_cols():
                return [[x] for column in zip(*of(e.args[0]), strict=True) for x in column]
            case OneHot():
                at_index, size = (self.whole(x, scope) for x in e.args)
                if not 0 <= at_index < size:
                    raise UndefinedError
                return [[int(k == at_index)] for k in range(size)]
            case CausalMask():
                size = self.whole(e.args[0], scope)
                return [[int(j <= i) for j in range(size)] for i in range(size)]
            case positions.Shift():
                size = self.whole(e.args[0], scope)
                return [[int(i == j + 1) for j in range(size)] for i in range(size)]
            case positions.Positions():
                return [[k] for k in range(self.whole(e.args[0], scope))]
            case positions.OneHotLast():
                size = self.whole(e.args[0], scope)
                return [[int(k == size - 1)] for k in range(size)]
            case HeadSum() | ConcatHeads() | StackHeads():
                return self.heads(e, scope)
            case LayerProduct():
                layers = [self.value(e.body, {**scope, e.index: k}) for k in self.layers(e, scope)]
                return self.functions.chain(layers, e.reverse, self.shape(e, scope)[0])
            case OrderSum():
                layers = [self.value(e.body, {**scope, e.index: k}) for k in self.layers(e, scope)]
                size, order = self.shape(e, scope)[0], self.whole(e.order, scope)
                every = [
                    self.functions.chain(x, e.reverse, size) for x in combinations(layers, order)
                ]
                return by_entry(lambda *x: sum(x), by_entry(lambda _: 0, identity(size)), *every)
            case Activation():
                return by_entry(lambda x: self.functions.function(e.name, x), of(e.argument))
            case RowSoftmax():
                scores = of(e.args[0])
                mask = by_entry(lambda _: 1, scores) if e.mask is None else of(e.mask)
                return self.functions.softmax(scores, mask)
            case RMSNorm() if isinstance(e.eps, sympy.Rational):
                return self.functions.rms_norm(of(e.args[0]), Fraction(int(e.eps.p), int(e.eps.q)))
            case LayerNorm() if isinstance(e.eps, sympy.Rational):
                centred = [[x - Fraction(sum(row), len(row)) for x in row] for row in of(e.args[0])]
                return self.functions.rms_norm(centred, Fraction(int(e.eps.p), int(e.eps.q)))
        raise Other(type(e).__name__)

    def layers(self, e: Any, scope: Scope) -> range:
        return range(self.whole(e.count, scope))

    def power(self, base: Rows, exponent: int) -> Rows:
        base = inverted(base) if exponent < 0 else base
        return self.functions.chain([base] * abs(exponent), True, len(base))

    def heads(self, e: Any, scope: Scope) -> Rows:
        (index, count), *inner = e.limits
        body = type(e)(e.body, *inner) if inner else e.body
        parts = [self.value(body, {**scope, index: k}) for k in range(self.whole(count, scope))]
        if isinstance(e, HeadSum):
            zero = by_entry(lambda _: 0, parts[0]) if parts else self.zero(e, scope)
            return by_entry(lambda *x: sum(x), zero, *parts)
        if isinstance(e, StackHeads):
            return [row for part in parts for row in part]
        return beside(parts)

    def zero(self, e: Any, scope: Scope) -> Rows:
        rows, cols = self.shape(e, scope)
        return [[0] * cols for _ in range(rows)]


class Certified(World):
    """The values of the trees of a certificate, at numbers by name."""

    def __init__(self, made: dict[str, Any], numbers: Numbers) -> None:
        self.made, self.numbers, self.seed = made, numbers, numbers.seed
        self.sizes = [numbers.sizes[name] for name in made["sizes"]]
        self.defined: dict[str, Callable[[tuple[int, ...]], Rows]] = {}

    def number(self, tree: Any, scope: Any = ()) -> Any:
        match tree:
            case ["scalar", k]:
                return self.numbers.scalar(self.made["scalars"][k][0])
            case ["at", constant, *terms]:
                moved = sum(self.number(f, scope) * self.number(i, scope) for f, i in terms)
                return self.number(constant, scope) + moved
            case ["Mul", *factors]:
                return self.product([self.number(x, scope) for x in factors])
            case ["Add", *terms]:
                return sum(self.number(x, scope) for x in terms)
            case ["Pow", base, exponent]:
                return power(self.number(base, scope), self.number(exponent, scope))
            case ["Trace" | "Sum" | "MatrixElement", *_]:
                return self.value(tree, scope)
        if type(tree) is list and tree[0] not in ("size", "i", "Rational", "pi"):
            raise Other(tree[0])
        return super().number(tree, scope)

    def value(self, tree: Any, scope: Any) -> Any:
        match tree:
            case ["tensor", number, *indices]:
                name, _, rows, cols = self.made["tensors"][number]
                at = tuple(int(self.number(i, scope)) for i in indices)
                if name in self.defined:
                    return self.defined[name](at)
                return self.numbers.matrix(name, at, self.number(rows), self.number(cols))
            case ["Add", *terms]:
                return sum(self.value(x, scope) for x in terms)
            case ["Pow", base, exponent]:
                return power(self.value(base, scope), self.number(exponent, scope))
            case ["HadamardProduct", *factors]:
                return by_entry(
                    lambda *x: self.product(x), *[self.value(x, scope) for x in factors]
                )
            case ["KroneckerProduct", *factors]:
                return kron([self.value(x, scope) for x in factors])
            case ["size" | "i" | "Rational" | "scalar" | "pi", *_]:
                return self.number(tree, scope)
            case ["ImmutableDenseMatrix", rows, cols, *entries]:
                found = [self.value(x, scope) for x in entries]
                return [found[k * cols : (k + 1) * cols] for k in range(rows)]
            case ["vec_rows", x]:
                return [[entry] for row in self.value(x, scope) for entry in row]
            case ["vec_cols", x]:
                return [[e] for line in zip(*self.value(x, scope), strict=True) for e in line]
            case ["BlockDiagMatrix", *blocks]:
                return along_diagonal([self.value(x, scope) for x in blocks])
            case ["DiagonalMatrix", x]:
                rows = self.value(x, scope)
                return [[y if i == j else 0 for j, y in enumerate(r)] for i, r in enumerate(rows)]
            case ["ConcatHeads" | "StackHeads" as kind, body, count]:
                parts = [self.value(body, (*scope, k)) for k in range(self.number(count, scope))]
                return beside(parts) if kind == "ConcatHeads" else [r for x in parts for r in x]
        return super().value(tree, scope)

    def holds(self, equation: Any) -> bool:
        """Return whether a hypothesis holds at all values of its indices."""
        counts, left, right = equation
        every = product(*[range(self.number(count)) for count in counts])
        return all(self.value(left, at) == self.value(right, at) for at in every)


def inverses(world: Certified, name: str) -> Callable[[tuple[int, ...]], Rows]:
    """Return the family whose members are the inverses of those of another, S⁻¹ of S."""
    shape = next(rows for one, _, rows, _ in world.made["tensors"] if one == name)
    size = world.number(shape)
    return lambda at: inverted(world.numbers.matrix(name.removesuffix("⁻¹"), at, size, size))


def powers(world: Certified, number: int) -> Callable[[tuple[int, ...]], Rows]:
    """Return the family P with P[k + 1] = A P[k] and P[0] = I, where A is in these hypotheses."""
    base = next(
        right[1]
        for _, left, right in world.made["given"]
        if left == ["tensor", number, ["at", 1, [1, ["i", 0]]]] and right[0] == "MatMul"
    )

    def member(at: tuple[int, ...]) -> Rows:
        a = world.value(base, ())
        if at[0] < 0:  # it must not matter what is there
            return by_entry(lambda _: 7, a)
        return world.chain([a] * at[0], True, len(a))

    return member
