"""Values of expressions as real numbers of many digits, by plain loops over lists.

It shares no code with `algebra`: it walks the SymPy tree. A part without a value (a logarithm of a
number that is not positive, a divisor that is zero, a row without weights, a member out of range)
raises `UndefinedError`, and so does a number that is too large to be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import sympy
from mpmath import mp

Rows = list[list[Any]]
DIGITS = (50, 400)  # the second where sides differ in the first: a sum may have cancelled
LARGE, TINY = 10**60, 25  # of numbers, and the digits in which equal ones agree


class UndefinedError(Exception):
    """A part has no value at these numbers."""


def polynomial(x: Any) -> Any:
    """What stands for an arbitrary function."""
    return 3 - 2 * x + x**2 - x**3 / 2


def where(condition: Any, value: Callable[[], Any]) -> Any:
    if not condition:
        raise UndefinedError
    return value()


def cubic(x: Any) -> Any:
    return x + mp.mpf(44715) / 10**6 * x**3


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: where(abs(x) < 100, lambda: mp.exp(x)),
    "log": lambda x: where(x > mp.mpf(10) ** -TINY, lambda: mp.log(x)),
    "sqrt": lambda x: where(x > mp.mpf(10) ** -TINY or x == 0, lambda: mp.sqrt(x)),
    "rsqrt": lambda x: where(x > mp.mpf(10) ** -TINY, lambda: 1 / mp.sqrt(x)),
    "reciprocal": lambda x: where(abs(x) > mp.mpf(10) ** -TINY, lambda: 1 / x),
    "relu": lambda x: max(x, mp.mpf(0)),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "silu": lambda x: x / (1 + mp.exp(-x)),
    "tanh": mp.tanh,
    "sin": mp.sin,
    "cos": mp.cos,
    "abs": abs,
    "softplus": lambda x: mp.log1p(mp.exp(x)),
    "erf": mp.erf,
    "gelu": lambda x: x * mp.ncdf(x),
    "gelu_tanh": lambda x: (
        x * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf(44715) / 10**6 * x**3))) / 2
    ),
    "f": polynomial,
}
ENTRIES: dict[str, Callable[[int, int, int], bool | int]] = {
    "CausalMask": lambda i, j, n: j <= i,
    "Shift": lambda i, j, n: i == j + 1,
    "Positions": lambda i, j, n: i,
    "OneHotLast": lambda i, j, n: i == n - 1,
    "Identity": lambda i, j, n: i == j,
    "OneMatrix": lambda i, j, n: 1,
    "ZeroMatrix": lambda i, j, n: 0,
}


def real(x: Any) -> Any:
    """Return an integer or a fraction as a number of the digits at hand."""
    return mp.mpf(x.numerator) / x.denominator if isinstance(x, int | Fraction) else mp.mpf(x)


def product(a: Rows, b: Rows) -> Rows:
    return [
        [sum((x * b[k][j] for k, x in enumerate(row)), mp.mpf(0)) for j in range(len(b[0]))]
        for row in a
    ]


def transposed(a: Rows) -> Rows:
    return [list(column) for column in zip(*a, strict=True)]


def zipped(f: Callable[..., Any], *matrices: Rows) -> Rows:
    return [[f(*xs) for xs in zip(*rows, strict=True)] for rows in zip(*matrices, strict=True)]


def unit(n: int) -> Rows:
    return [[mp.mpf(i == j) for j in range(n)] for i in range(n)]


def inverse(a: Rows) -> Rows:
    n = len(a)
    rows = [row + one for row, one in zip(a, unit(n), strict=True)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        where(abs(rows[pivot][k]) > mp.mpf(10) ** -TINY, lambda: None)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                factor = rows[i][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]


def softmax(scores: Rows, mask: Rows) -> Rows:
    for row in mask:
        where(all(x in (0, 1) for x in row) and any(row), lambda: None)
    weights = zipped(lambda s, m: FUNCTIONS["exp"](s) if m else mp.mpf(0), scores, mask)
    return [[x / sum(row) for x in row] for row in weights]


def log_sum_exp(scores: Rows, mask: Rows) -> Rows:
    weights = zipped(lambda s, m: FUNCTIONS["exp"](s) * m, scores, mask)
    return [[FUNCTIONS["log"](sum(row))] for row in weights]


def root_mean_square(a: Rows, eps: Any) -> Rows:
    scales = [FUNCTIONS["rsqrt"](sum(x * x for x in row) / len(row) + eps) for row in a]
    return [[x * scale for x in row] for row, scale in zip(a, scales, strict=True)]


def centred(a: Rows) -> Rows:
    return [[x - sum(row) / len(row) for x in row] for row in a]


class Values:
    """Numbers for symbols, and arrays for matrices by name and, in families, by indices."""

    def __init__(self, at: Mapping[Any, Any], arrays: Mapping[Any, Rows]) -> None:
        self.at, self.arrays = dict(at), arrays

    def number(self, e: Any) -> int:
        """Return the value of an index, a size or an end of a range."""
        found = sympy.sympify(e).xreplace({x: sympy.Integer(v) for x, v in self.integers.items()})
        return int(found)

    @property
    def integers(self) -> dict[Any, int]:
        return {x: v for x, v in self.at.items() if isinstance(v, int)}

    def each(self, index: Any, begin: Any, end: Any, body: Any) -> list[Any]:
        """Return the values of a body for each value of an index."""
        places = range(self.number(begin), self.number(end) + 1)
        return [Values({**self.at, index: k}, self.arrays).value(body) for k in places]

    def value(self, e: Any) -> Any:
        """Return the value of an expression: a number, or rows of numbers."""
        made = self._value(e)
        for x in [x for row in made for x in row] if isinstance(made, list) else [made]:
            where(abs(x) < LARGE, lambda: None)
        return made

    def _value(self, e: Any) -> Any:
        kind = type(e).__name__
        if kind in ENTRIES:
            rows, cols = map(self.number, e.shape)
            entry = ENTRIES[kind]
            return [[mp.mpf(int(entry(i, j, rows))) for j in range(cols)] for i in range(rows)]
        if found := getattr(self, f"_{kind}", None):
            return found(e)
        if e.is_Rational:
            return mp.mpf(int(e.p)) / int(e.q)
        if isinstance(e, sympy.Symbol):
            return real(self.at[e])
        if isinstance(e, sympy.MatrixBase):
            return [[self.value(e[i, j]) for j in range(e.cols)] for i in range(e.rows)]
        raise AssertionError(kind)

    # -- matrices ----------------------------------------------------------------------------------

    def _MatrixSymbol(self, e: Any) -> Rows:
        return [[real(x) for x in row] for row in self.arrays[e.name]]

    def _FamilyMember(self, e: Any) -> Rows:
        at = tuple(map(self.number, e.indices))
        rows = where((e.family.name, *at) in self.arrays, lambda: self.arrays[e.family.name, *at])
        return [[real(x) for x in row] for row in rows]

    def _OneHot(self, e: Any) -> Rows:
        size, at = self.number(e.args[1]), self.number(e.args[0])
        return [[mp.mpf(k == where(0 <= at < size, lambda: at))] for k in range(size)]

    def _Transpose(self, e: Any) -> Rows:
        return transposed(self.value(e.args[0]))

    def _MatAdd(self, e: Any) -> Any:
        return zipped(lambda *xs: sum(xs), *map(self.value, e.args))

    def _MatMul(self, e: Any) -> Any:
        number, matrix = mp.mpf(1), None
        for part in map(self.value, e.args):
            if not isinstance(part, list):
                number *= part
            else:
                matrix = part if matrix is None else product(matrix, part)
        return zipped(lambda x: number * x, matrix)

    def _MatPow(self, e: Any) -> Rows:
        base, times = self.value(e.args[0]), self.number(e.args[1])
        made = unit(len(base))
        for _ in range(abs(times)):
            made = product(made, base)
        return made if times >= 0 else inverse(made)

    def _Inverse(self, e: Any) -> Rows:
        return inverse(self.value(e.args[0]))

    def _HadamardProduct(self, e: Any) -> Rows:
        return zipped(lambda *xs: mp.fprod(xs), *map(self.value, e.args))

    def _HadamardPower(self, e: Any) -> Rows:
        exponent = e.args[1]
        root = {1: lambda x: x, 2: FUNCTIONS["sqrt"]}[exponent.q]
        divided = FUNCTIONS["reciprocal"] if exponent < 0 else lambda x: x
        return zipped(lambda x: divided(root(x)) ** abs(int(exponent.p)), self.value(e.args[0]))

    def _DiagMatrix(self, e: Any) -> Rows:
        column = self.value(e.args[0])
        return [
            [x if i == j else mp.mpf(0) for j in range(len(column))]
            for i, (x,) in enumerate(column)
        ]

    def _DiagonalOf(self, e: Any) -> Rows:
        return [[row[i]] for i, row in enumerate(self.value(e.args[0]))]

    def _BlockMatrix(self, e: Any) -> Rows:
        rows = []
        for i in range(e.blockshape[0]):
            parts = [self.value(e.blocks[i, j]) for j in range(e.blockshape[1])]
            rows += [[x for line in lines for x in line] for lines in zip(*parts, strict=True)]
        return rows

    def _KroneckerProduct(self, e: Any) -> Rows:
        made = [[mp.mpf(1)]]
        for b in map(self.value, e.args):
            made = [[x * y for x in row for y in other] for row in made for other in b]
        return made

    # -- functions ---------------------------------------------------------------------------------

    def _Activation(self, e: Any) -> Rows:
        return zipped(FUNCTIONS[str(e.args[0])], self.value(e.args[1]))

    def _Quotient(self, e: Any) -> Rows:
        over, under = map(self.value, e.args)
        return zipped(lambda x, y: x * FUNCTIONS["reciprocal"](y), over, under)

    def _masked(self, e: Any) -> tuple[Rows, Rows]:
        scores, *mask = map(self.value, e.args)
        return scores, mask[0] if mask else zipped(lambda _: mp.mpf(1), scores)

    def _RowSoftmax(self, e: Any) -> Rows:
        return softmax(*self._masked(e))

    def _LogSumExp(self, e: Any) -> Rows:
        return log_sum_exp(*self._masked(e))

    def _LogSoftmax(self, e: Any) -> Rows:
        scores, mask = self._masked(e)
        totals = log_sum_exp(scores, mask)
        return [[x - y for x in row] for row, (y,) in zip(scores, totals, strict=True)]

    def _CrossEntropy(self, e: Any) -> Rows:
        scores, targets = map(self.value, e.args)
        totals = log_sum_exp(scores, zipped(lambda _: mp.mpf(1), scores))
        lines = zip(scores, targets, totals, strict=True)
        return [
            [-sum(t * (x - y) for x, t in zip(row, aim, strict=True))] for row, aim, (y,) in lines
        ]

    def _Rotation(self, e: Any) -> Rows:
        angles = [x for (x,) in self.value(e.args[0])]
        m = len(angles)
        made = [[mp.mpf(0)] * (2 * m) for _ in range(2 * m)]
        for k, x in enumerate(angles):
            made[k][k] = made[m + k][m + k] = mp.cos(x)
            made[k][m + k], made[m + k][k] = -mp.sin(x), mp.sin(x)
        return made

    def _RMSNorm(self, e: Any) -> Rows:
        return root_mean_square(self.value(e.args[0]), self.value(e.args[1]))

    def _LayerNorm(self, e: Any) -> Rows:
        return root_mean_square(centred(self.value(e.args[0])), self.value(e.args[1]))

    # -- sums and products over an index -----------------------------------------------------------

    def _HeadSum(self, e: Any) -> Rows:
        (index, count), *inner = e.limits
        body = type(e)(e.body, *inner) if inner else e.body
        rows, cols = map(self.number, e.shape)
        zero = [[mp.mpf(0)] * cols for _ in range(rows)]
        return zipped(lambda *xs: sum(xs), zero, *self.each(index, 0, count - 1, body))

    def _LayerProduct(self, e: Any) -> Rows:
        made = unit(self.number(e.shape[0]))
        for factor in self.each(e.index, 0, e.count - 1, e.body):
            made = product(made, factor) if e.reverse else product(factor, made)
        return made

    def _Sum(self, e: Any) -> Any:
        *inner, (index, begin, end) = e.limits
        body = sympy.Sum(e.function, *inner) if inner else e.function
        return sum(self.each(index, begin, end, body), mp.mpf(0))

    # -- scalars -----------------------------------------------------------------------------------

    def _exp(self, e: Any) -> Any:
        return FUNCTIONS["exp"](self.value(e.args[0]))

    def _cos(self, e: Any) -> Any:
        return mp.cos(self.value(e.args[0]))

    def _sin(self, e: Any) -> Any:
        return mp.sin(self.value(e.args[0]))

    def _Abs(self, e: Any) -> Any:
        return abs(self.value(e.args[0]))

    def _Pi(self, e: Any) -> Any:
        return +mp.pi

    def _FunctionMatrix(self, e: Any) -> Rows:
        (s, t), body = e.args[2].variables, e.args[2].expr
        rows, cols = map(self.number, e.shape)
        lines = [body.subs(s, i) for i in range(rows)]
        return [[self.value(line.subs(t, j)) for j in range(cols)] for line in lines]

    def _MatrixElement(self, e: Any) -> Any:
        rows = self.value(e.args[0])
        i, j = map(self.number, e.args[1:])
        return where(0 <= i < len(rows) and 0 <= j < len(rows[0]), lambda: rows[i][j])

    def _Trace(self, e: Any) -> Any:
        return sum((row[i] for i, row in enumerate(self.value(e.args[0]))), mp.mpf(0))

    def _Add(self, e: Any) -> Any:
        return sum(map(self.value, e.args), mp.mpf(0))

    def _Mul(self, e: Any) -> Any:
        return mp.fprod(map(self.value, e.args))

    def _Pow(self, e: Any) -> Any:
        base, exponent = self.value(e.base), e.exp
        base = FUNCTIONS["sqrt"](base) if exponent.q == 2 else base
        base = FUNCTIONS["reciprocal"](base) if exponent < 0 else base
        return base ** abs(int(exponent.p))


def apart(lhs: Any, rhs: Any, at: Mapping[Any, Any], arrays: Mapping[Any, Rows]) -> bool:
    """Return whether two sides have different values. Raises UndefinedError if one has none."""
    for digits in DIGITS:
        with mp.workdps(digits):
            a, b = (Values(at, arrays).value(side) for side in (lhs, rhs))
            pairs = (
                [(x, y) for r, s in zip(a, b, strict=True) for x, y in zip(r, s, strict=True)]
                if isinstance(a, list)
                else [(a, b)]
            )
            if all(abs(x - y) <= mp.mpf(10) ** -TINY * (1 + abs(x)) for x, y in pairs):
                return False
    return True
