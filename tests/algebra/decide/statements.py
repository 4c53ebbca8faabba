"""Random statements in the whole language: true ones by sound rewriting, near-misses by a mistake.

`Statements(seed).identity()` draws an expression and an equal one, `.near_miss()` makes one mistake
in it. Sizes are symbols, numbers, products and sums; a product splits in one way only, as sizes
that split in two ways are what the prover is allowed to leave undecided.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import sympy
from sympy import (
    BlockDiagMatrix,
    BlockMatrix,
    HadamardPower,
    HadamardProduct,
    Identity,
    ImmutableMatrix,
    KroneckerProduct,
    MatAdd,
    MatMul,
    MatPow,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    FamilyMember,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from tests.algebra import expressions as small
from tests.algebra.expressions import A, B, H, M, P, Q, W, X, a, b, d, h, n, one

Shape = tuple[Any, Any]
SCALAR: Shape = (0, 0)
TWO, THREE = sympy.Integer(2), sympy.Integer(3)
K = MatrixSymbol("K", n + d, n + d)
J = MatrixSymbol("J", n + 1, n)
T = MatrixSymbol("T", 2, 2)
Z = MatrixSymbol("Z", 2, n)
V = MatrixSymbol("V", 2 * n, d)
O = MatrixSymbol("O", H * d, n)  # noqa: E741 (the weights that write, one head below the other)
x = MatrixSymbol("x", n, 1)
R = Family("R", (TWO, H), d, d)
F = Family("F", (THREE,), n, n)
TENSORS: dict[str, Any] = {t.name: t for t in (A, B, W, X, M, P, Q, K, J, T, Z, V, O, x, R, F)}
SCALARS = ["a", "b", "s"]
g, l = sympy.symbols("g l", integer=True)  # noqa: E741 (the layer)
NO_LAYER = Symbol("in a product over other layers than those of F")
FREE = {n: Symbol("i_n", integer=True), d: Symbol("j_d", integer=True)}
SPLITS = {n * d: (n, d), H * d: (H, d), 2 * n: (TWO, n)}
BLOCKS = {n + d: (n, d), n + 1: (n, one)}
SHAPES: list[Shape] = [SCALAR, SCALAR, (n, n), (n, n), (n, d), (d, d), (n, one), (n * d, n * d)]
SHAPES += [(n * d, one), (n + d, n + d), (n + 1, n), (TWO, TWO), (TWO, n), (2 * n, d), (H * d, n)]
SHAPES += [(one, one), (n + d, one)]
COEFFICIENTS = [*small.FACTORS, sympy.Rational(-2, 3), sympy.Integer(3), a * b]
MOST_TERMS = 60


class Statements:
    """Draws of one seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def identity(self) -> tuple[Any, Any, list[str]]:
        """Return two equal expressions, and the rules that lead from one to the other."""
        shape = self.draw.choice(SHAPES)
        while True:
            e = self.expression(shape, self.draw.choice([1, 2, 3, 3, 4]))
            if terms(e) <= MOST_TERMS:
                break
        return e, *self.rewritten(e, self.draw.randint(1, 6))

    def near_miss(self) -> tuple[Any, Any, list[str]]:
        """Return two expressions with one mistake between them (and some rewriting)."""
        while True:
            lhs, rhs, used = self.identity()
            wrong = self.mistaken(rhs)
            if wrong is not None:
                return lhs, wrong, used

    # -- expressions -----------------------------------------------------------------------------

    def expression(self, shape: Shape, depth: int, bound: frozenset[Any] = frozenset()) -> Any:
        """Return a random tree; families appear under the indices in `bound`."""

        def sub(*shape: Any, under: frozenset[Any] = bound) -> Any:
            return self.expression(shape if len(shape) == 2 else shape[0], depth - 1, under)

        if shape == SCALAR:
            return self.scalar(depth, sub)
        if depth <= 0:
            return self.leaf(shape, bound)
        return self.draw.choice(list(self.operations(shape, depth, bound, sub)))()

    def leaf(self, shape: Shape, bound: frozenset[Any]) -> Any:
        rows, cols = shape
        found: list[Any] = []
        for tensor in TENSORS.values():
            member = tensor
            if isinstance(tensor, Family):
                wanted = {"P": (h,), "Q": (h,), "R": (g, h), "F": (l,)}[tensor.name]
                if not bound.issuperset(wanted) and self.draw.random() < 0.7:
                    continue
                numbers = (i if i in bound else sympy.S.Zero for i in wanted)
                member = tensor[tuple(numbers)]
            if tensor.shape == shape:
                found += [member] * (9 if member is not tensor else 3)
            elif tensor.shape[::-1] == shape:
                found += [Transpose(member)] * (6 if member is not tensor else 2)
        found.append(OneMatrix(rows, cols))
        if self.draw.random() < 0.2:
            found.append(ZeroMatrix(rows, cols))
        if rows == cols:
            found.append(Identity(rows))
        if cols == one and (rows in FREE or rows == TWO):  # one index is no index of a split size
            found.append(OneHot(FREE.get(rows, sympy.S.Zero), rows))
        if rows in (one, TWO) and cols in (one, TWO):
            found.append(ImmutableMatrix(int(rows), int(cols), lambda i, j: self.entry()))
        return self.draw.choice(found)

    def entry(self) -> Any:
        return self.draw.choice([0, 1, 1, 2, -1, a, b, sympy.Rational(1, 2), a + b, Trace(A)])

    def operations(
        self, shape: Shape, depth: int, bound: frozenset[Any], sub: Callable[..., Any]
    ) -> Iterator[Callable[[], Any]]:
        rows, cols = shape
        choose = self.draw.choice
        inner = choose([n, d, n, d, one, TWO, rows, cols, n * d, n + d])
        if self.draw.random() < 0.8:
            inner = choose([n, d, one])
        factor = choose(COEFFICIENTS)
        yield lambda: matadd(sub(shape), sub(shape))
        yield lambda: matmul(sub(rows, inner), sub(inner, cols))
        yield lambda: matmul(sub(rows, inner), sub(inner, n), sub(n, cols))
        yield lambda: Transpose(sub(cols, rows))
        yield lambda: matmul(factor, sub(shape))
        yield lambda: matmul(sub(SCALAR), sub(shape))
        yield lambda: HadamardProduct(sub(shape), sub(shape), evaluate=False)
        yield lambda: HadamardPower(sub(shape), choose([0, 2, 3]))
        if rows == cols and rows != one:
            yield lambda: MatPow(sub(shape), choose([0, 2, 2, 3]), evaluate=False)
            yield lambda: DiagMatrix(sub(rows, one))
            yield lambda: DiagonalMatrix(sub(shape))
        if rows == cols == n and not bound & {l, NO_LAYER}:
            count, turned = choose([1, 2, 3, 3, 3]), choose([False, True])
            layers = frozenset({*bound, l if count == 3 else NO_LAYER})
            for _ in range(2):
                yield lambda: LayerProduct(sub(shape, under=layers), (l, count), turned)
        if cols == one and rows not in (one, TWO):  # SymPy's takes no explicit matrix
            yield lambda: DiagonalOf(sub(rows, rows))
        if h not in bound:
            heads = frozenset({*bound, h})
            yield lambda: HeadSum(sub(shape, under=heads), (h, H))
            yield lambda: matmul(
                ConcatHeads(sub(rows, d, under=heads), (h, H)),
                StackHeads(sub(d, cols, under=heads), (h, H)),
            )
            both = frozenset({*heads, g})
            if g not in bound:
                yield lambda: HeadSum(sub(shape, under=both), (g, 2), (h, H))
            if rows == H * d:
                yield lambda: StackHeads(sub(d, cols, under=heads), (h, H))
            if cols == H * d:
                yield lambda: ConcatHeads(sub(rows, d, under=heads), (h, H))
        if g not in bound and rows == 2 * n:
            yield lambda: StackHeads(sub(n, cols, under=frozenset({*bound, g})), (g, 2))
        yield from self.composite(shape, sub)

    def composite(self, shape: Shape, sub: Callable[..., Any]) -> Iterator[Callable[[], Any]]:
        """Yield what has its own way to be of a size that is a product or a sum."""
        rows, cols = shape
        outer, inner = zip(*(SPLITS.get(size, (one, size)) for size in shape), strict=True)
        if rows in SPLITS or cols in SPLITS or self.draw.random() < 0.1:
            for _ in range(3):
                yield lambda: kron(sub(*outer), sub(*inner))
        if cols == one and rows in SPLITS:
            p, q = SPLITS[rows]
            yield lambda: vec_rows(sub(p, q))
            yield lambda: vec_cols(sub(q, p))
            yield lambda: matmul(kron(sub(p, p), sub(q, q)), vec_rows(sub(p, q)))
        heights, widths = (BLOCKS.get(size, (size,)) for size in shape)

        def blocks(heights: Any, widths: Any) -> Any:
            return BlockMatrix([[sub(r, c) for c in widths] for r in heights])

        if len(heights) > 1 or len(widths) > 1 or self.draw.random() < 0.1:
            yield lambda: blocks(heights, widths)
            yield lambda: matmul(blocks(heights, (n, d)), blocks((n, d), widths))
            yield lambda: Transpose(blocks(widths, heights))
            if len(heights) == len(widths):
                pairs = list(zip(heights, widths, strict=True))
                yield lambda: BlockDiagMatrix(*[sub(r, c) for r, c in pairs])

    def scalar(self, depth: int, sub: Callable[..., Any]) -> Any:
        choose = self.draw.choice
        if depth <= 0:
            return choose([Trace(A), Trace(B), Trace(W), a, b, n, sympy.Integer(2), A[FREE[n], 0]])
        size = choose([n, n, d, n * d, n + d, TWO])
        rows, cols = choose([(n, n), (n, d), (d, n), (d, d)])
        k, m = sympy.symbols("k m", integer=True)
        factor = choose(COEFFICIENTS)
        options: list[Callable[[], Any]] = [
            lambda: Trace(sub(size, size)),
            lambda: Trace(sub(size, size)),
            lambda: sympy.Add(sub(SCALAR), sub(SCALAR), evaluate=False),
            lambda: sympy.Mul(sub(SCALAR), sub(SCALAR), evaluate=False),
            lambda: sympy.Mul(factor, sub(SCALAR), evaluate=False),
            lambda: sympy.Pow(sub(SCALAR), 2, evaluate=False),
            lambda: MatrixElement(sub(rows, cols), FREE[rows], FREE[cols]),
            lambda: MatrixElement(sub(rows, cols), FREE[rows], 0),
            lambda: MatrixElement(sub(TWO, n), 1, FREE[n]),
            lambda: summed(MatrixElement(sub(rows, cols), k, m), (k, rows), (m, cols)),
            lambda: summed(
                sympy.Mul(
                    MatrixElement(sub(rows, cols), k, m),
                    MatrixElement(sub(cols, rows), m, k),
                    evaluate=False,
                ),
                (k, rows),
                (m, cols),
            ),
        ]
        return choose(options)()

    # -- rewriting and mistakes --------------------------------------------------------------------

    def rewritten(self, e: Any, steps: int) -> tuple[Any, list[str]]:
        used: list[str] = []
        while len(used) < steps:
            found = list(places(e))
            rules = self.draw.sample(RULES, len(RULES))
            if self.draw.random() < 0.8:  # what can be done everywhere, only where nothing else can
                rules.sort(key=lambda rule: rule in EVERYWHERE)
            for rule in rules:
                self.draw.shuffle(found)
                new = next(
                    ((p, y) for p, part in found if (y := rule(self.draw, part)) is not None), None
                )
                if new is not None:
                    break
            else:
                return e, used
            result = replaced(e, *new)
            if terms(result) > 4 * MOST_TERMS:
                return e, used
            e = result
            used.append(rule.__name__.strip("_"))
        return e, used

    def mistaken(self, e: Any) -> Any | None:
        """Return the tree with one change of the kind that people make, at a random place."""
        options = [(p, new) for p, part in places(e) for new in mistakes(part)]
        return replaced(e, *self.draw.choice(options)) if options else None


def summed(body: Any, *limits: tuple[Any, Any]) -> Any:
    return sympy.Sum(body, *[(index, 0, count - 1) for index, count in limits])


def terms(e: Any) -> int:
    """Return a bound on the number of diagrams of a tree, so that none is too long to expand."""
    parts = [terms(part) for _, part in children(e)]
    if isinstance(e, MatAdd | sympy.Add | BlockMatrix | ImmutableMatrix):
        return max(1, sum(parts))
    if isinstance(e, MatPow | HadamardPower | sympy.Pow) and parts:
        return parts[0] ** max(int(e.args[1]), 1)
    if isinstance(e, LayerProduct):
        return parts[0] ** int(e.count)
    result = 1
    for part in parts:
        result *= part
    if isinstance(e, sympy.Add) or not parts:
        result *= 4 if getattr(e, "is_Matrix", False) and set(e.shape) & BLOCKS.keys() else 1
    return result


# -- places of a tree ------------------------------------------------------------------------------

Path = tuple[Any, ...]


def children(e: Any) -> list[tuple[Any, Any]]:
    """Return (place, part) for every part that is an expression of the language."""
    if isinstance(e, MatrixSymbol | FamilyMember | Identity | OneMatrix | ZeroMatrix | OneHot):
        return []
    if isinstance(e, BlockMatrix) and not isinstance(e, BlockDiagMatrix):
        height, width = e.blockshape
        return [((i, j), e.blocks[i, j]) for i in range(height) for j in range(width)]
    if isinstance(e, ImmutableMatrix):
        return [((i, j), e[i, j]) for i in range(e.rows) for j in range(e.cols)]
    if isinstance(e, sympy.Sum | MatrixElement | HeadSum | ConcatHeads | StackHeads | LayerProduct):
        return [(0, e.args[0])]
    if isinstance(e, sympy.Pow | MatPow | HadamardPower):
        return [(0, e.args[0])] if e.args[1].is_Integer and e.args[1] >= 0 else []
    if isinstance(e, sympy.KroneckerDelta) or not isinstance(e, sympy.Expr):
        return []
    return list(enumerate(e.args))


def places(e: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every (path, part) of a tree."""
    yield path, e
    for k, part in children(e):
        yield from places(part, (*path, k))


def replaced(e: Any, path: Path, new: Any) -> Any:
    """Return the tree with the part at a path replaced; nothing is evaluated."""
    if not path:
        return new
    at = path[0]
    if isinstance(at, tuple):
        is_block = isinstance(e, BlockMatrix)
        height, width = e.blockshape if is_block else e.shape
        entries = e.blocks if is_block else e
        grid = [[entries[i, j] for j in range(width)] for i in range(height)]
        grid[at[0]][at[1]] = replaced(grid[at[0]][at[1]], path[1:], new)
        return BlockMatrix(grid) if is_block else ImmutableMatrix(grid)
    arguments = list(e.args)
    arguments[at] = replaced(arguments[at], path[1:], new)
    return small.rebuilt(e, arguments)


# -- sound rules -----------------------------------------------------------------------------------


def _matrices(e: Any) -> bool:
    return all(isinstance(y, MatrixExpr) for y in e.args)


def _grid(e: Any) -> list[list[Any]]:
    return [[e.blocks[i, j] for j in range(e.blockshape[1])] for i in range(e.blockshape[0])]


def _fresh(e: Any) -> Symbol:
    """Return an index that occurs nowhere in e."""
    names = {y.name for y in sympy.preorder_traversal(e) if isinstance(y, Symbol)}
    return next(Symbol(f"k{j}", integer=True) for j in range(99) if f"k{j}" not in names)


def _power_as_hadamard(draw: random.Random, e: Any) -> Any:
    if isinstance(e, HadamardPower):
        count = int(e.args[1])
        if count == 0:
            return OneMatrix(*e.shape)
        return HadamardProduct(*[e.args[0]] * count, evaluate=False) if count > 1 else e.args[0]
    return None


def _diagonal_scales_rows(draw: random.Random, e: Any) -> Any:
    if isinstance(e, MatMul) and len(e.args) == 2 and _matrices(e):
        left, right = e.args
        if isinstance(left, DiagMatrix) and left.args[0].shape[1] == 1:
            column = left.args[0]
            spread = matmul(column, OneMatrix(1, right.shape[1]))
            return HadamardProduct(spread, right, evaluate=False)
    return None


def _diagonals(draw: random.Random, e: Any) -> Any:
    if isinstance(e, DiagMatrix):
        column = e.args[0]
        if isinstance(column, MatAdd):
            return matadd(*[DiagMatrix(y) for y in column.args])
        if isinstance(column, DiagonalOf):
            return DiagonalMatrix(column.args[0])
        return Transpose(e)
    if isinstance(e, DiagonalMatrix):
        inner = e.args[0]
        return draw.choice(
            [
                HadamardProduct(Identity(e.shape[0]), inner, evaluate=False),
                Transpose(e) if inner.shape[0] == 2 else DiagMatrix(DiagonalOf(inner)),
            ]
        )
    if isinstance(e, DiagonalOf):
        inner = e.args[0]
        size = inner.shape[0]
        with_ones = matmul(
            HadamardProduct(inner, Identity(size), evaluate=False), OneMatrix(size, 1)
        )
        return draw.choice([DiagonalOf(Transpose(inner)), with_ones])
    return None


def _split_special(draw: random.Random, e: Any) -> Any:
    """Ones are an outer product; identities and ones of a product or a sum come in parts."""
    if isinstance(e, OneMatrix):
        rows, cols = e.shape
        if rows in SPLITS and cols == one:
            return kron(*[OneMatrix(part, 1) for part in SPLITS[rows]])
        if rows in BLOCKS:
            return BlockMatrix([[OneMatrix(part, cols)] for part in BLOCKS[rows]])
        return matmul(OneMatrix(rows, 1), OneMatrix(1, cols))
    if isinstance(e, Identity):
        size = e.shape[0]
        if size in SPLITS:
            return kron(*[Identity(part) for part in SPLITS[size]])
        if size in BLOCKS:
            return BlockDiagMatrix(*[Identity(part) for part in BLOCKS[size]])
        if size != one:
            i = _fresh(e)
            return HeadSum(matmul(OneHot(i, size), Transpose(OneHot(i, size))), (i, size))
    return None


def _nothing_added(draw: random.Random, e: Any) -> Any:
    if isinstance(e, MatrixExpr) and draw.random() < 0.2:
        other = OneMatrix(*e.shape) if draw.random() < 0.5 else e
        return matadd(e, other, matmul(-1, other))
    return None


def _blocks(draw: random.Random, e: Any) -> Any:
    if isinstance(e, BlockDiagMatrix):
        blocks = e.args
        grid = [
            [y if i == j else ZeroMatrix(y.shape[0], z.shape[1]) for j, z in enumerate(blocks)]
            for i, y in enumerate(blocks)
        ]
        return BlockMatrix(grid)
    if isinstance(e, Transpose) and isinstance(e.args[0], BlockMatrix):
        grid = _grid(e.args[0])
        return BlockMatrix([[Transpose(y) for y in line] for line in zip(*grid, strict=True)])
    if isinstance(e, MatAdd | HadamardProduct) and all(isinstance(y, BlockMatrix) for y in e.args):
        grids = [_grid(y) for y in e.args]
        return BlockMatrix(
            [
                [small.rebuilt(e, list(parts)) for parts in zip(*lines, strict=True)]
                for lines in zip(*grids, strict=True)
            ]
        )
    if isinstance(e, MatMul) and len(e.args) == 2 and _matrices(e):
        left, right = e.args
        if isinstance(left, BlockMatrix) and isinstance(right, BlockMatrix):
            if left.blockshape[1] != right.blockshape[0]:
                return None
            return BlockMatrix(
                [
                    [
                        matadd(*[matmul(p, q) for p, q in zip(line, column, strict=True)])
                        for column in zip(*_grid(right), strict=True)
                    ]
                    for line in _grid(left)
                ]
            )
        if isinstance(left, BlockMatrix) and left.blockshape[1] == 1:
            return BlockMatrix([[matmul(line[0], right)] for line in _grid(left)])
    return None


def _entries(draw: random.Random, e: Any) -> Any:
    if isinstance(e, Trace) and e.arg.shape[0] in FREE:
        i = _fresh(e)
        return summed(MatrixElement(e.arg, i, i), (i, e.arg.shape[0]))
    if not isinstance(e, MatrixElement):
        return None
    inner, row, col = e.args
    if isinstance(inner, MatMul):
        scalars = [y for y in inner.args if not isinstance(y, MatrixExpr)]
        factors = [y for y in inner.args if isinstance(y, MatrixExpr)]
        if scalars:
            rest = matmul(*factors) if len(factors) > 1 else factors[0]
            return sympy.Mul(*scalars, MatrixElement(rest, row, col), evaluate=False)
        left, *more = factors
        if left.shape[1] not in FREE or not more:
            return None
        right = matmul(*more) if len(more) > 1 else more[0]
        k = _fresh(e)
        parts = MatrixElement(left, row, k), MatrixElement(right, k, col)
        return summed(sympy.Mul(*parts, evaluate=False), (k, left.shape[1]))
    if isinstance(inner, MatAdd):
        return sympy.Add(*[MatrixElement(y, row, col) for y in inner.args], evaluate=False)
    if isinstance(inner, HadamardProduct):
        return sympy.Mul(*[MatrixElement(y, row, col) for y in inner.args], evaluate=False)
    if isinstance(inner, Transpose):
        return MatrixElement(inner.args[0], col, row)
    if isinstance(inner, OneMatrix):
        return sympy.S.One
    rows, cols = inner.shape
    picked = matmul(Transpose(OneHot(row, rows)), inner, OneHot(col, cols))
    return Trace(picked) if draw.random() < 0.5 else None


def _explicit(draw: random.Random, e: Any) -> Any:
    if isinstance(e, ImmutableMatrix) and e.shape != (1, 1):
        pieces = []
        for i in range(e.rows):
            for j in range(e.cols):
                unit = matmul(OneHot(i, e.rows), Transpose(OneHot(j, e.cols)))
                pieces.append(matmul(e[i, j], unit))
        return matadd(*pieces)
    if isinstance(e, Transpose) and isinstance(e.args[0], ImmutableMatrix):
        inner = e.args[0]
        return ImmutableMatrix(inner.cols, inner.rows, lambda i, j: inner[j, i])
    return None


def _heads(draw: random.Random, e: Any) -> Any:
    if isinstance(e, MatMul) and len(e.args) == 2:
        left, right = e.args
        stand = isinstance(left, ConcatHeads) and isinstance(right, StackHeads)
        if stand and left.limits == right.limits:
            return HeadSum(matmul(left.body, right.body), *left.limits)
        if isinstance(right, ConcatHeads) and not small._mentions(left, {h, g}):
            return ConcatHeads(matmul(left, right.body), *right.limits)
    if isinstance(e, Transpose) and isinstance(e.args[0], ConcatHeads | StackHeads):
        inner = e.args[0]
        other = StackHeads if isinstance(inner, ConcatHeads) else ConcatHeads
        return other(Transpose(inner.body), *inner.limits)
    if isinstance(e, HeadSum | StackHeads | ConcatHeads) and len(e.limits) == 1:
        index, count = e.limits[0]
        if count.is_Integer:
            each = [e.body.xreplace({index: sympy.Integer(k)}) for k in range(int(count))]
            if isinstance(e, HeadSum):
                return matadd(*each)
    if isinstance(e, HeadSum) and len(e.limits) == 2:
        outer, inner = e.limits
        return HeadSum(HeadSum(e.body, inner), outer)
    return None


def _layers(draw: random.Random, e: Any) -> Any:
    if isinstance(e, LayerProduct):
        factors = [
            e.body.xreplace({e.index: sympy.Integer(k)})
            for k in (range(int(e.count)) if e.reverse else reversed(range(int(e.count))))
        ]
        return matmul(*factors) if len(factors) > 1 else factors[0]
    if isinstance(e, Transpose) and isinstance(e.args[0], LayerProduct):
        inner = e.args[0]
        limit = (inner.index, inner.count)
        return LayerProduct(Transpose(inner.body), limit, not inner.reverse)
    return None


def _scalars(draw: random.Random, e: Any) -> Any:
    if isinstance(e, Trace):
        inner = e.arg
        if isinstance(inner, MatAdd):
            return sympy.Add(*[Trace(y) for y in inner.args], evaluate=False)
        if isinstance(inner, MatMul) and not isinstance(inner.args[0], MatrixExpr):
            number, *rest = inner.args
            whole = rest[0] if len(rest) == 1 else matmul(*rest)
            if isinstance(whole, MatrixExpr):
                return sympy.Mul(number, Trace(whole), evaluate=False)
    if isinstance(e, MatMul) and len(e.args) == 2 and not isinstance(e.args[0], MatrixExpr):
        number, matrix = e.args
        if isinstance(number, sympy.Add):
            return matadd(*[matmul(y, matrix) for y in number.args])
        if isinstance(matrix, MatMul | KroneckerProduct | HadamardProduct) and _matrices(matrix):
            first, *rest = matrix.args
            return small.rebuilt(matrix, [matmul(number, first), *rest])
        if isinstance(matrix, MatAdd):
            return matadd(*[matmul(number, y) for y in matrix.args])
    if isinstance(e, sympy.Pow) and e.exp == 2:
        return sympy.Mul(e.base, e.base, evaluate=False)
    if type(e) in (sympy.Mul, sympy.Add) and len(e.args) == 2:
        return type(e)(*reversed(e.args), evaluate=False)
    return None


def _kronecker(draw: random.Random, e: Any) -> Any:
    if isinstance(e, KroneckerProduct) and len(e.args) == 2:
        p, q = e.args
        if p.shape[1] == one and q.shape[0] == one:
            return matmul(p, q)
        if isinstance(p, MatMul) and not isinstance(p.args[0], MatrixExpr) and len(p.args) == 2:
            return matmul(p.args[0], kron(p.args[1], q))
        return matmul(kron(p, Identity(q.shape[0])), kron(Identity(p.shape[1]), q))
    if isinstance(e, vec_rows | vec_cols) and isinstance(e.args[0], MatAdd):
        return matadd(*[type(e)(y) for y in e.args[0].args])
    return None


RULES: list[Callable[[random.Random, Any], Any]] = [
    *small.RULES,
    _power_as_hadamard,
    _diagonal_scales_rows,
    _diagonals,
    _split_special,
    _nothing_added,
    _blocks,
    _entries,
    _explicit,
    _heads,
    _layers,
    _scalars,
    _kronecker,
]
EVERYWHERE = (small._transpose_twice, small._identity, _nothing_added)


# -- mistakes --------------------------------------------------------------------------------------


def mistakes(e: Any) -> Iterator[Any]:
    """Yield wrong versions of a part, each of the same shape."""
    if isinstance(e, MatrixExpr):
        yield from _wrong_matrices(e)
    elif isinstance(e, MatrixElement):
        inner, row, col = e.args
        if inner.shape[0] == inner.shape[1]:
            yield MatrixElement(inner, col, row)
    elif isinstance(e, sympy.Pow) and e.exp == 2:
        yield e.base
    elif isinstance(e, sympy.Rational):
        yield e + 1
    elif isinstance(e, sympy.Add) and len(e.args) == 2:
        yield e.args[0]
    elif e in (a, b):
        yield b if e == a else a


def _wrong_matrices(e: Any) -> Iterator[Any]:
    rows, cols = e.shape
    yield matmul(2, e)
    if rows == cols != one:
        yield Transpose(e)
    if isinstance(e, Transpose) and rows == cols:
        yield e.args[0]
    if isinstance(e, MatMul) and len(e.args) == 2 and _matrices(e):
        y, z = e.args
        if {*y.shape, *z.shape} == {rows}:
            yield matmul(z, y)
    if isinstance(e, MatAdd) and len(e.args) > 1:
        yield matadd(*e.args[1:]) if len(e.args) > 2 else e.args[1]
    if isinstance(e, HadamardProduct) and rows == cols:
        yield matmul(*e.args)
    if isinstance(e, KroneckerProduct) and len(e.args) == 2 and e.args[0].shape == e.args[1].shape:
        yield kron(*reversed(e.args))
    if isinstance(e, vec_rows | vec_cols) and e.args[0].shape[0] == e.args[0].shape[1]:
        yield (vec_cols if isinstance(e, vec_rows) else vec_rows)(e.args[0])
    if isinstance(e, MatPow | HadamardPower):
        yield e.base if isinstance(e, MatPow) else e.args[0]
    if isinstance(e, Identity | DiagonalMatrix) and rows != one:
        yield OneMatrix(rows, cols) if isinstance(e, Identity) else e.args[0]
    if isinstance(e, OneMatrix) and rows == cols != one:
        yield Identity(rows)
    if isinstance(e, LayerProduct):
        yield LayerProduct(e.body, (e.index, e.count), not e.reverse)
    if isinstance(e, BlockMatrix) and not isinstance(e, BlockDiagMatrix):
        grid = _grid(e)
        for line in grid:
            if len(line) == 2 and line[0].shape == line[1].shape:
                yield BlockMatrix([line[::-1] if y is line else y for y in grid])
    if isinstance(e, MatrixSymbol) and e.name in "AB":
        yield B if e.name == "A" else A
    if isinstance(e, FamilyMember) and e.family == F:
        yield F[1 if e.indices[0] == 0 else 0]
