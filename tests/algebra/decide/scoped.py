"""A second opinion on claims about names: plain lists of numbers, and scopes that are linked.

`value(e, world)` is a number for a scalar and a list of rows for a matrix. A bound index is looked
up by its symbol *object*, from the innermost binder outwards; what no binder holds is a free index,
a size, a number or a matrix, which the world draws when it is first asked for. Nothing is renamed,
so nothing can be captured. No code of the judge is used, nor that of its evaluators.

Irrational values are computed to many digits by mpmath: two numbers that agree to half of them are
taken for equal, which can hide a mistake and cannot invent one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import mpmath
import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.defined import Quotient
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

Rows = list[list[Any]]
Real = mpmath.mp.clone()
Real.dps = 60
CLOSE = Real.mpf(10) ** -25  # of numbers that are computed to 60 digits


class NoValue(Exception):
    """An expression is not defined at these numbers, or a length would be less than one."""


class Unknown(Exception):
    """An expression that this evaluator was not taught."""


class Scope:
    """One bound index and its value, inside of another scope."""

    __slots__ = ("index", "outer", "value")

    def __init__(self, index: Any, value: int, outer: Scope | None) -> None:
        self.index, self.value, self.outer = index, value, outer


def bound(symbol: Any, scope: Scope | None) -> int | None:
    """Return the value that the innermost binder of a symbol gives it, None where there is none."""
    while scope is not None:
        if scope.index == symbol:
            return scope.value
        scope = scope.outer
    return None


class World:
    """Numbers for everything that is free, drawn when they are first asked for.

    `sizes` gives the sizes, keyed by their symbols. `arrays` may hold matrices beforehand, keyed by
    the MatrixSymbol or Family; `functions` what activations of unknown name are.
    """

    def __init__(self, sizes: dict[Any, int], seed: int, entries: int = 2) -> None:
        self.sizes = dict(sizes)
        self.draw = random.Random(seed)
        self.entries = entries
        self.indices: dict[Any, int] = {}
        self.numbers: dict[Any, Any] = {}
        self.arrays: dict[Any, Any] = {}
        self.functions: dict[str, Callable[[Any], Any]] = {}

    def __str__(self) -> str:
        return ", ".join(f"{s} = {x}" for s, x in {**self.sizes, **self.indices}.items())

    def entry(self) -> int:
        return self.draw.randint(-self.entries, self.entries)

    def matrix(self, rows: int, cols: int) -> Rows:
        return [[self.entry() for _ in range(cols)] for _ in range(rows)]

    def symbol(self, symbol: Any) -> Any:
        """Return the value of a free size, or else of a free number, with the sign it declares."""
        if symbol in self.sizes:
            return self.sizes[symbol]
        if symbol not in self.numbers:
            self.numbers[symbol] = self.number(symbol)
        return self.numbers[symbol]

    def number(self, symbol: Any) -> Any:
        if symbol.is_zero:
            return 0
        tries = [Fraction(self.draw.randint(-6, 6), self.draw.choice((1, 1, 2))) for _ in range(50)]
        wanted = (
            (symbol.is_positive, lambda x: x > 0),
            (symbol.is_negative, lambda x: x < 0),
            (symbol.is_nonnegative, lambda x: x >= 0),
            (symbol.is_nonzero, lambda x: x != 0),
            (symbol.is_integer, lambda x: x.denominator == 1),
            (symbol.is_even, lambda x: x % 2 == 0),
            (symbol.is_odd, lambda x: x % 2 == 1),
        )
        fit = [x for x in tries if all(test(x) for asked, test in wanted if asked)]
        if not fit:
            raise NoValue(f"no number for {symbol}")
        return whole(fit[0])

    def index(self, symbol: Any, count: int) -> int:
        """Return the value of a free index, which is within the range of its first use."""
        if symbol not in self.indices:
            self.indices[symbol] = self.draw.choice((0, count - 1, self.draw.randrange(count)))
        if not 0 <= self.indices[symbol] < count:
            raise NoValue(f"{symbol} is out of range")
        return self.indices[symbol]

    def function(self, name: str) -> Callable[[Any], Any]:
        if name not in self.functions:
            c = [self.draw.choice((-2, -1, 1, 2, 3)) for _ in range(4)]
            self.functions[name] = lambda x: c[0] + c[1] * x + c[2] * x**2 + c[3] * x**3
        return self.functions[name]


def value(e: Any, world: World, scope: Scope | None = None) -> Any:
    """Return the value of an expression."""
    known = _VALUES.get(type(e))
    if known is None:
        if isinstance(e, sympy.Integer):
            return int(e)
        if isinstance(e, sympy.Rational):
            return Fraction(int(e.p), int(e.q))
        raise Unknown(type(e).__name__)
    return known(e, world, scope)


def differ(lhs: Any, rhs: Any, world: World) -> bool:
    """Return whether the two sides have certainly different values; NoValue where one has none."""
    return apart(value(lhs, world), value(rhs, world))


def apart(x: Any, y: Any) -> bool:
    if isinstance(x, list) != isinstance(y, list):
        return True
    if not isinstance(x, list):
        return not _same(x, y)
    if (len(x), len(x[0])) != (len(y), len(y[0])):
        return True
    pairs = zip(x, y, strict=True)
    return any(not _same(a, b) for r, s in pairs for a, b in zip(r, s, strict=True))


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, int | Fraction) and isinstance(y, int | Fraction):
        return x == y
    return bool(abs(real(x) - real(y)) <= CLOSE * (1 + abs(real(x))))


def real(x: Any) -> Any:
    """Return a number to many digits."""
    return Real.mpf(x.numerator) / x.denominator if isinstance(x, int | Fraction) else x


def whole(x: Any) -> Any:
    return int(x) if isinstance(x, Fraction) and x.denominator == 1 else x


def divided(x: Any, y: Any) -> Any:
    if y == 0:
        raise NoValue("division by zero")
    if isinstance(x, int | Fraction) and isinstance(y, int | Fraction):
        return whole(Fraction(x) / y)
    return real(x) / real(y)


# -- sizes and indices -----------------------------------------------------------------------------


def length(e: Any, world: World, scope: Scope | None, least: int = 1) -> int:
    """Return a size or a number of terms, which is at least one unless it is an index or 0."""
    if isinstance(e, int | sympy.Integer):
        return int(e)
    held = bound(e, scope)
    if held is not None:
        return held
    found = value(e, world, scope)
    if not isinstance(found, int) or found < least:
        raise NoValue(f"{e} is {found}")
    return found


def place(i: Any, count: int, world: World, scope: Scope | None) -> int:
    if isinstance(i, int | sympy.Integer):
        if not 0 <= i < count:
            raise NoValue(f"{i} is out of range")
        return int(i)
    if not isinstance(i, sympy.Symbol):
        raise Unknown("index arithmetic")
    held = bound(i, scope)
    if held is None:
        return world.index(i, count)
    if not held < count:
        raise NoValue(f"{i} is out of range")
    return held


def _symbol(e: Any, world: World, scope: Scope | None) -> Any:
    held = bound(e, scope)
    return world.symbol(e) if held is None else held


def _shape(e: Any, world: World, scope: Scope | None) -> tuple[int, int]:
    rows, cols = e.shape
    return length(rows, world, scope), length(cols, world, scope)


# -- matrices --------------------------------------------------------------------------------------


def _made(rows: int, cols: int, entry: Callable[[int, int], Any]) -> Rows:
    return [[entry(i, j) for j in range(cols)] for i in range(rows)]


def identity(n: int) -> Rows:
    return _made(n, n, lambda i, j: int(i == j))


def times(x: Rows, y: Rows) -> Rows:
    if len(x[0]) != len(y):
        raise Unknown("shapes that do not fit")
    columns = list(zip(*y, strict=True))
    return [[sum(a * b for a, b in zip(r, c, strict=True)) for c in columns] for r in x]


def plus(x: Any, y: Any) -> Any:
    if isinstance(x, list):
        return _zipped(x, y, lambda a, b: a + b)
    return x + y


def _zipped(x: Rows, y: Rows, entry: Callable[[Any, Any], Any]) -> Rows:
    pairs = zip(x, y, strict=True)
    return [[entry(a, b) for a, b in zip(r, s, strict=True)] for r, s in pairs]


def scaled(c: Any, x: Any) -> Any:
    return [[c * a for a in r] for r in x] if isinstance(x, list) else c * x


def turned(x: Rows) -> Rows:
    return [list(column) for column in zip(*x, strict=True)]


def inverted(x: Rows) -> Rows:
    n = len(x)
    rows = [[*map(_exact, r), *identity(n)[i]] for i, r in enumerate(x)]
    for k in range(n):
        at = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if at is None:
            raise NoValue("a singular matrix")
        rows[k], rows[at] = rows[at], rows[k]
        rows[k] = [divided(a, rows[k][k]) for a in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [r[n:] for r in rows]


def _exact(x: Any) -> Any:
    if isinstance(x, int | Fraction):
        return x
    raise NoValue("the inverse of numbers that are not rational")


def _tensor(e: Any, world: World, scope: Scope | None) -> Rows:
    if e not in world.arrays:
        world.arrays[e] = world.matrix(*_shape(e, world, scope))
    return world.arrays[e]


def _member(e: FamilyMember, world: World, scope: Scope | None) -> Rows:
    family = e.family
    counts = [length(count, world, None) for count in family.counts]
    at = tuple(place(i, n, world, scope) for i, n in zip(e.indices, counts, strict=True))
    if family not in world.arrays:
        shape = _shape(family, world, None)
        places = product(*map(range, counts))
        world.arrays[family] = {each: world.matrix(*shape) for each in places}
    return world.arrays[family][at]


def _one_hot(e: OneHot, world: World, scope: Scope | None) -> Rows:
    n = length(e.args[1], world, scope)
    k = place(e.args[0], n, world, scope)
    return _made(n, 1, lambda i, _: int(i == k))


def _add(e: Any, world: World, scope: Scope | None) -> Any:
    first, *others = [value(a, world, scope) for a in e.args]
    for other in others:
        first = plus(first, other)
    return first


def _mul(e: Any, world: World, scope: Scope | None) -> Any:
    number: Any = 1
    matrix: Rows | None = None
    for a in e.args:
        v = value(a, world, scope)
        if isinstance(v, list):
            matrix = v if matrix is None else times(matrix, v)
        else:
            number = number * v
    return number if matrix is None else scaled(number, matrix)


def _mat_power(e: Any, world: World, scope: Scope | None) -> Rows:
    x = value(e.args[0], world, scope)
    exponent = int(value(e.args[1], world, scope)) if len(e.args) > 1 else -1
    if exponent < 0:
        x, exponent = inverted(x), -exponent
    result = identity(len(x))
    for _ in range(exponent):
        result = times(result, x)
    return result


def _power(e: sympy.Pow, world: World, scope: Scope | None) -> Any:
    x, k = value(e.args[0], world, scope), value(e.args[1], world, scope)
    if isinstance(k, int) or k.denominator == 1:
        return x ** int(k) if k >= 0 else divided(1, x ** int(-k))
    if x == 0 < k:
        return 0
    if x <= 0:
        raise NoValue("a root of what is not positive")
    return real(x) ** real(k)


def _kron(e: Any, world: World, scope: Scope | None) -> Rows:
    result = [[1]]
    for a in e.args:
        v = value(a, world, scope)
        result = [[x * y for x in r for y in s] for r in result for s in v]
    return result


def _hadamard(e: Any, world: World, scope: Scope | None) -> Rows:
    first, *others = [value(a, world, scope) for a in e.args]
    for other in others:
        first = _zipped(first, other, lambda a, b: a * b)
    return first


def _diag(e: DiagMatrix, world: World, scope: Scope | None) -> Rows:
    entries = [a for row in value(e.args[0], world, scope) for a in row]
    return _made(len(entries), len(entries), lambda i, j: entries[i] if i == j else 0)


def _entry(e: MatrixElement, world: World, scope: Scope | None) -> Any:
    x = value(e.args[0], world, scope)
    row = place(e.args[1], len(x), world, scope)
    return x[row][place(e.args[2], len(x[0]), world, scope)]


def _delta(e: Any, world: World, scope: Scope | None) -> int:
    count = value(e.args[2][1], world, None) + 1 if len(e.args) > 2 else 10**9
    for i in e.args[:2]:
        if count == 10**9 and isinstance(i, sympy.Symbol) and bound(i, scope) is None:
            count = world.indices.get(i, 0) + 1 if i in world.indices else count
    i, j = (place(i, count, world, scope) for i in e.args[:2])
    return int(i == j)


def _blocks(e: sympy.BlockMatrix, world: World, scope: Scope | None) -> Rows:
    height, width = e.blockshape
    result: Rows = []
    for i in range(height):
        line = [value(e.blocks[i, j], world, scope) for j in range(width)]
        result += [[a for part in rows for a in part] for rows in zip(*line, strict=True)]
    return result


def _block_diagonal(e: Any, world: World, scope: Scope | None) -> Rows:
    parts = [value(a, world, scope) for a in e.args]
    width, left, result = sum(len(p[0]) for p in parts), 0, []
    for part in parts:
        right = width - left - len(part[0])
        result += [[0] * left + r + [0] * right for r in part]
        left += len(part[0])
    return result


# -- binders ---------------------------------------------------------------------------------------


def _bodies(e: Any, world: World, scope: Scope | None) -> Iterator[Any]:
    """Yield the body at each value of the indices, the outermost index slowest."""

    def over(limits: list[Any], inside: Scope | None) -> Iterator[Any]:
        if not limits:
            yield value(e.args[0], world, inside)
            return
        (index, count), *more = limits
        for k in range(length(count, world, inside)):
            yield from over(more, Scope(index, k, inside))

    yield from over([(limit[0], limit[1]) for limit in e.args[1:]], scope)


def _head_sum(e: HeadSum, world: World, scope: Scope | None) -> Rows:
    total = None
    for body in _bodies(e, world, scope):
        total = body if total is None else plus(total, body)
    if total is None:  # a number of terms that is the literal 0
        rows, cols = _shape(e.args[0], world, scope)
        return _made(rows, cols, lambda i, j: 0)
    return total


def _concat(e: ConcatHeads, world: World, scope: Scope | None) -> Rows:
    parts = list(_bodies(e, world, scope))
    if not parts:
        raise NoValue("no heads")
    return [[a for row in rows for a in row] for rows in zip(*parts, strict=True)]


def _stack(e: StackHeads, world: World, scope: Scope | None) -> Rows:
    parts = list(_bodies(e, world, scope))
    if not parts:
        raise NoValue("no heads")
    return [row for part in parts for row in part]


def _index_sum(e: sympy.Sum, world: World, scope: Scope | None) -> Any:
    def over(limits: list[Any], inside: Scope | None) -> Any:
        if not limits:
            return value(e.args[0], world, inside)
        *more, (index, first, last) = limits
        count = length(last + 1 - first, world, inside)
        total: Any = 0
        start = int(value(first, world, inside))
        for k in range(count):
            total = total + over(more, Scope(index, start + k, inside))
        return total

    return over(list(e.args[1:]), scope)


def _layers_of(e: Any, world: World, scope: Scope | None) -> list[Rows]:
    index, count = e.args[1]
    several = range(length(count, world, scope))
    return [value(e.args[0], world, Scope(index, k, scope)) for k in several]


def _layers(e: LayerProduct, world: World, scope: Scope | None) -> Rows:
    layers = _layers_of(e, world, scope)
    result = identity(len(layers[0])) if layers else identity(_shape(e.args[0], world, scope)[0])
    for layer in layers:
        result = times(result, layer) if bool(e.args[-1]) else times(layer, result)
    return result


def _orders(e: OrderSum, world: World, scope: Scope | None) -> Rows:
    layers = _layers_of(e, world, scope)
    order = length(e.args[2], world, scope, least=0)
    n = len(layers[0]) if layers else _shape(e.args[0], world, scope)[0]
    total = _made(n, n, lambda i, j: 0)
    for chosen in combinations(layers, order):
        one = identity(n)
        for layer in chosen:
            one = times(one, layer) if bool(e.args[-1]) else times(layer, one)
        total = plus(total, one)
    return total


# -- functions -------------------------------------------------------------------------------------


def _softmax(e: RowSoftmax, world: World, scope: Scope | None) -> Rows:
    scores = value(e.args[0], world, scope)
    mask = value(e.args[1], world, scope) if len(e.args) > 1 else None
    result = []
    for i, row in enumerate(scores):
        keep = [1] * len(row) if mask is None else mask[i]
        if any(m not in (0, 1) for m in keep) or not any(keep):
            raise NoValue("no mask")
        weights = [m * Real.exp(real(s)) if m else 0 for m, s in zip(keep, row, strict=True)]
        total = sum(weights)
        result.append([w / total for w in weights])
    return result


def rsqrt(x: Any) -> Any:
    if x <= 0:
        raise NoValue("a root of what is not positive")
    return 1 / Real.sqrt(real(x))


def _sqrt(x: Any) -> Any:
    if x < 0:
        raise NoValue("a root of what is negative")
    return Real.sqrt(real(x))


def _log(x: Any) -> Any:
    if x <= 0:
        raise NoValue("a logarithm of what is not positive")
    return Real.log(real(x))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + Real.exp(-real(x)))


NAMED: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: max(x, 0),
    "gelu": lambda x: real(x) * (1 + Real.erf(real(x) / Real.sqrt(2))) / 2,
    "gelu_tanh": lambda x: (
        real(x)
        * (1 + Real.tanh(Real.sqrt(2 / Real.pi) * (real(x) + Real.mpf("0.044715") * real(x) ** 3)))
        / 2
    ),
    "silu": lambda x: real(x) * _sigmoid(x),
    "quick_gelu": lambda x: real(x) * _sigmoid(Real.mpf("1.702") * real(x)),
    "tanh": lambda x: Real.tanh(real(x)),
    "sigmoid": _sigmoid,
    "exp": lambda x: Real.exp(real(x)),
    "rsqrt": rsqrt,
    "sqrt": _sqrt,
    "log": _log,
    "reciprocal": lambda x: divided(1, x),
    "abs": abs,
    "softplus": lambda x: Real.log1p(Real.exp(real(x))),
    "erf": lambda x: Real.erf(real(x)),
}


def _activation(e: Activation, world: World, scope: Scope | None) -> Rows:
    function = NAMED.get(e.name) or world.function(e.name)
    return [[function(x) for x in row] for row in value(e.args[1], world, scope)]


def _norm(e: Any, world: World, scope: Scope | None) -> Rows:
    eps = value(e.args[1], world, scope)
    result = []
    for row in value(e.args[0], world, scope):
        mean = divided(sum(row), len(row)) if isinstance(e, LayerNorm) else 0
        centred = [x - mean for x in row]
        root = rsqrt(divided(sum(x * x for x in centred), len(row)) + eps)
        result.append([x * root for x in centred])
    return result


def _quotient(e: Quotient, world: World, scope: Scope | None) -> Rows:
    return _zipped(*(value(part, world, scope) for part in e.args), divided)


def _of_one(entries: Callable[[Rows], Any]) -> Callable[[Any, World, Scope | None], Any]:
    return lambda e, world, scope: entries(value(e.args[0], world, scope))


def _special(entry: Callable[[int, int], int]) -> Callable[[Any, World, Scope | None], Rows]:
    return lambda e, world, scope: _made(*_shape(e, world, scope), entry)


_VALUES: dict[type, Callable[[Any, World, Scope | None], Any]] = {
    sympy.Symbol: _symbol,
    sympy.Dummy: _symbol,
    sympy.MatrixSymbol: _tensor,
    FamilyMember: _member,
    sympy.Identity: _special(lambda i, j: int(i == j)),
    sympy.OneMatrix: _special(lambda i, j: 1),
    sympy.ZeroMatrix: _special(lambda i, j: 0),
    CausalMask: _special(lambda i, j: int(j <= i)),
    OneHot: _one_hot,
    sympy.Add: _add,
    sympy.MatAdd: _add,
    sympy.Mul: _mul,
    sympy.MatMul: _mul,
    sympy.Pow: _power,
    sympy.MatPow: _mat_power,
    sympy.Inverse: _mat_power,
    sympy.Transpose: _of_one(turned),
    sympy.Adjoint: _of_one(turned),
    sympy.KroneckerProduct: _kron,
    sympy.HadamardProduct: _hadamard,
    sympy.HadamardPower: lambda e, world, scope: [
        [x ** int(e.args[1]) for x in row] for row in value(e.args[0], world, scope)
    ],
    sympy.Trace: _of_one(lambda x: sum(x[i][i] for i in range(len(x)))),
    vec_rows: _of_one(lambda x: [[a] for row in x for a in row]),
    vec_cols: _of_one(lambda x: [[a] for row in turned(x) for a in row]),
    DiagMatrix: _diag,
    DiagonalOf: _of_one(lambda x: [[x[i][i]] for i in range(len(x))]),
    DiagonalMatrix: _of_one(lambda x: _made(len(x), len(x), lambda i, j: x[i][j] if i == j else 0)),
    MatrixElement: _entry,
    sympy.KroneckerDelta: _delta,
    sympy.Sum: _index_sum,
    sympy.ImmutableDenseMatrix: lambda e, world, scope: _made(
        e.rows, e.cols, lambda i, j: value(e[i, j], world, scope)
    ),
    sympy.BlockMatrix: _blocks,
    sympy.BlockDiagMatrix: _block_diagonal,
    HeadSum: _head_sum,
    ConcatHeads: _concat,
    StackHeads: _stack,
    LayerProduct: _layers,
    OrderSum: _orders,
    Quotient: _quotient,
    RowSoftmax: _softmax,
    Activation: _activation,
    RMSNorm: _norm,
    LayerNorm: _norm,
}
