"""Random trees of certificates, near misses of them, and an exact evaluator for both.

`Trees` draws expressions over the matrices `TENSORS` and changes them in ways that sometimes keep
their value and sometimes do not. `World` holds exact entries for every matrix, at small sizes, and
evaluates a tree by loops; it shares nothing with the checker nor with the prover. Activations are
chosen so that the laws of `algebra/axioms.json` hold for them exactly: exp is 2ˣ of an integer, the
softmax divides such powers by their sum, and the sigmoid is any function with s(x) + s(-x) = 1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import isqrt
from typing import Any, NamedTuple

Tree = Any
Path = tuple[int, ...]
Rows = list[list[Any]]
Shape = tuple[str, str]

n, m, L, M = (["size", k] for k in range(4))
SIZES: dict[str, Tree] = {"1": 1, "2": 2, "n": n, "m": m, "L": L, "M": M}
SIZES |= {"n+1": ["Add", n, 1], "nm": ["Mul", n, m]}
SPLITS = [[SIZES["n+1"], [["|", [n], []]]], [2, [["|", [], []]]], [SIZES["nm"], [n, m]]]


class Given(NamedTuple):
    """A matrix of the declarations: its name, its shape, and what its indices run over."""

    name: str
    rows: str
    cols: str
    over: tuple[str, ...] = ()


TENSORS = (
    *[Given(name, "n", "n") for name in "ABC"],
    *[Given(name, "n", "n", ("m",)) for name in "FGH"],
    *[Given(name, "n", "n", ("L",)) for name in "WX"],
    *[Given("Z", "n", "n", ("M",)), Given("Y", "n", "n", ("L", "M"))],
    *[Given("D", "n", "n", ("m", "m")), Given("U", "n", "m"), Given("V", "m", "n")],
    *[Given("x", "n", "1"), Given("y", "1", "n"), Given("s", "n", "1", ("m",))],
    *[Given("q", "1", "1", ("m",)), Given("l", "1", "1", ("L",)), Given("E", "m", "m")],
    *[Given("K", "n+1", "n+1"), Given("P", "nm", "nm"), Given("T", "2", "2")],
)
DECLARED = [
    [one.name, [SIZES[size] for size in one.over], SIZES[one.rows], SIZES[one.cols]]
    for one in TENSORS
]
SQUARES = ("n", "m", "n+1", "2", "nm")
SHAPES: list[Shape] = [*[(size, size) for size in ("n", *SQUARES)], ("n", "m"), ("m", "n")]
SHAPES += [("n", "1"), ("1", "n"), ("m", "1"), ("1", "m"), ("1", "1")]
BINDERS = ("HeadSum", "Sum", "LayerProduct", "OrderSum")


def parts(tree: Tree, depth: int) -> Iterator[tuple[Path, int, Tree]]:
    """Yield the parts of a tree: where each is, how many indices are in scope there, and it."""
    yield (), depth, tree
    for k, part in enumerate(tree):
        if type(part) is list:
            inside = depth + (k == 1 and tree[0] in BINDERS)
            for path, scope, inner in parts(part, inside):
                yield (k, *path), scope, inner


def put(tree: Tree, path: Path, part: Tree) -> Tree:
    """Return a tree with another part at a path."""
    if not path:
        return part
    return [put(x, path[1:], part) if k == path[0] else x for k, x in enumerate(tree)]


def renumbered(tree: Tree, new: Callable[[int], Tree]) -> Tree:
    """Return a tree with other indices."""
    if type(tree) is not list:
        return tree
    return new(tree[1]) if tree[0] == "i" else [renumbered(part, new) for part in tree]


def moved(tree: Tree, indices: Sequence[Tree], depth: int) -> Tree:
    """Return a tree in another scope, its free indices replaced by those given."""
    free = len(indices)
    return renumbered(tree, lambda k: indices[k] if k < free else ["i", k - free + depth])


class Trees:
    """Draws trees, and near misses of a tree.

    A scope is the sizes that the indices in scope run over.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        often = (self.matmul, self.matmul, self.matadd, self.function, self.heads)
        self.builders = (
            *(*often, *often),
            *(self.hadamard, self.transpose, self.softmax, self.inverse, self.layers, self.layers),
            *(self.orders, self.multiple, self.cut, self.diagonal, self.scaled, self.masked),
        )

    # -- drawing -------------------------------------------------------------------------------

    def tree(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        """Return a random matrix of a shape."""
        made = self.draw.choice(self.builders)(shape, scope, depth - 1) if depth > 0 else None
        return self.leaf(shape, scope) if made is None else made

    def leaf(self, shape: Shape, scope: tuple[str, ...]) -> Tree:
        """Return a matrix of the declarations, or a constant one."""
        draw, (rows, cols) = self.draw, shape
        ones = ["OneMatrix", SIZES[rows], SIZES[cols]]
        if draw.random() < 0.1:
            return ones
        if rows == cols and draw.random() < 0.15:
            return [draw.choice(["Identity", "CausalMask"]), SIZES[rows]]
        if cols == "1" != rows and draw.random() < 0.2:
            return ["OneHot", self.index(rows, scope), SIZES[rows]]
        fit = [k for k, one in enumerate(TENSORS) if one[1:3] == shape]
        if not fit:
            turned = [k for k, one in enumerate(TENSORS) if one[1:3] == shape[::-1]]
            return ["Transpose", self.tensor(turned, scope)] if turned else ones
        near = [k for k in fit if TENSORS[k].over and {*TENSORS[k].over} <= {*scope}]
        return self.tensor(near if near and draw.random() < 0.7 else fit, scope)

    def tensor(self, numbers: Sequence[int], scope: tuple[str, ...]) -> Tree:
        """Return one of some matrices, at random indices."""
        number = self.draw.choice(numbers)
        return ["tensor", number, *[self.index(size, scope) for size in TENSORS[number].over]]

    def index(self, size: str, scope: tuple[str, ...]) -> Tree:
        """Return an index in scope that runs over a size, or 0."""
        fit = [["i", k] for k, one in enumerate(scope) if one == size]
        return self.draw.choice(fit) if fit and self.draw.random() < 0.85 else 0

    def count(self, size: str, scope: tuple[str, ...]) -> Tree:
        """Return a number of layers: all, or those before an index."""
        fit = [["i", k] for k, one in enumerate(scope) if one == size]
        return self.draw.choice(fit) if fit and self.draw.random() < 0.4 else SIZES[size]

    def matmul(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        inner = self.draw.choice([*"nmn1", *[size for size in ("n+1", "2", "nm") if size in shape]])
        left = self.tree((shape[0], inner), scope, depth)
        return ["MatMul", left, self.tree((inner, shape[1]), scope, depth)]

    def two(self, kind: str, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        return [kind, *[self.tree(shape, scope, depth) for _ in range(2)]]

    def matadd(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        return self.two("MatAdd", shape, scope, depth)

    def hadamard(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        return self.two("HadamardProduct", shape, scope, depth)

    def transpose(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        return ["Transpose", self.tree(shape[::-1], scope, depth)]

    def function(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        name = self.draw.choice(["f", "f", "relu"])
        return ["Activation", name, self.tree(shape, scope, depth)]

    def softmax(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        return ["RowSoftmax", self.tree(shape, scope, depth)]

    def masked(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        if shape[0] != shape[1]:
            return None
        return ["RowSoftmax", self.tree(shape, scope, depth), ["CausalMask", SIZES[shape[0]]]]

    def inverse(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        if shape[0] != shape[1]:
            return None
        return ["MatPow", self.tree(shape, scope, depth), self.draw.choice([-1, -1, 2])]

    def layers(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        if shape[0] != shape[1]:
            return None
        size = self.draw.choice("mLMn")
        body = self.tree(shape, (*scope, size), depth)
        return ["LayerProduct", body, self.count(size, scope), self.draw.random() < 0.5]

    def orders(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        if shape[0] != shape[1]:
            return None
        size = self.draw.choice("mL")
        order = self.draw.choice([1, 2, m, *[["i", k] for k in range(len(scope))]])
        body = self.tree(shape, (*scope, size), depth)
        return ["OrderSum", body, self.count(size, scope), order, self.draw.random() < 0.5]

    def heads(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        size = self.draw.choice("mmLMn")
        return ["HeadSum", self.tree(shape, (*scope, size), depth), SIZES[size]]

    def multiple(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        return ["MatMul", self.draw.choice([2, -1, 3]), self.tree(shape, scope, depth)]

    def cut(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        """Return blocks, or a Kronecker product."""
        ways = {"n+1": [["n", "1"], ["n", "1"]], "2": [["1", "1"], ["1", "1"]]}
        if shape == ("nm", "nm"):
            factors = [self.tree((size, size), scope, depth) for size in "nm"]
            return ["KroneckerProduct", *factors]
        if shape[0] != shape[1] or shape[0] not in ways:
            return None
        rows, cols = ways[shape[0]]
        return ["BlockMatrix", *[[self.tree((r, c), scope, depth) for c in cols] for r in rows]]

    def diagonal(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        if shape[0] == "nm":
            return None
        if shape[0] == shape[1]:
            return ["DiagMatrix", self.tree((shape[0], "1"), scope, depth)]
        if shape[1] != "1":
            return None
        return ["DiagonalOf", self.tree((shape[0], shape[0]), scope, depth)]

    def scaled(self, shape: Shape, scope: tuple[str, ...], depth: int) -> Tree:
        return ["MatMul", self.scalar(scope, depth), self.tree(shape, scope, depth)]

    def scalar(self, scope: tuple[str, ...], depth: int) -> Tree:
        """Return a random scalar."""
        kind = self.draw.randrange(4) if depth > 0 else 0
        size = self.draw.choice("nm" if kind == 0 else [*"nmL", "n+1", "2"])
        square = (size, size)
        if kind == 0:
            x = self.tree(square, scope, depth - 1)
            return ["MatrixElement", x, self.index(size, scope), self.index(size, scope)]
        if kind == 1:
            return ["Trace", self.tree(square, scope, depth - 1)]
        if kind == 2:
            size = self.draw.choice("mL")
            return ["Sum", self.scalar((*scope, size), depth - 1), SIZES[size]]
        return ["Mul", *[self.scalar(scope, depth - 1) for _ in range(2)]]

    # -- near misses ---------------------------------------------------------------------------

    def mutated(self, tree: Tree, free: int = 0) -> Tree:
        """Return a tree with one change, which may keep its value."""
        found = list(parts(tree, free))
        for _ in range(20):
            path, depth, part = self.draw.choice(found)
            ways = [way for way in self.changes(part, depth) if way != part]
            if ways:
                return put(tree, path, self.draw.choice(ways))
        return tree

    def changes(self, part: Tree, depth: int) -> Iterator[Tree]:
        """Yield what a part may be changed to."""
        match part:
            case ["i", k]:
                yield from (["i", j] for j in (k - 1, k + 1) if 0 <= j < depth)
            case ["tensor", number, *indices]:
                same = [k for k, one in enumerate(TENSORS) if one[1:] == TENSORS[number][1:]]
                yield ["tensor", self.draw.choice(same), *indices]
                yield ["tensor", number, *reversed(indices)]
                if TENSORS[number].rows == TENSORS[number].cols:
                    yield turned(part)
            case ["MatMul", left, right]:
                yield ["MatMul", right, left]
                if type(right) is list and right[0] == "MatAdd" and type(left) is list:
                    yield ["MatAdd", *[["MatMul", left, term] for term in right[1:]]]
            case ["MatAdd" | "HadamardProduct" | "Mul" | "KroneckerProduct" as kind, left, right]:
                yield [kind, right, left]
            case ["Transpose", x]:
                yield x
                if type(x) is list and x[0] == "MatMul" and len(x) == 3 and type(x[1]) is list:
                    yield ["MatMul", turned(x[2]), turned(x[1])]
            case ["LayerProduct", body, count, reverse]:
                yield ["LayerProduct", body, count, not reverse]
                yield turned(["LayerProduct", turned(body), count, not reverse])
            case ["OrderSum", *rest, reverse]:
                yield ["OrderSum", *rest, not reverse]
            case ["Activation", name, x]:
                yield turned(["Activation", name, turned(x)])
            case ["RowSoftmax", x]:
                yield turned(["RowSoftmax", turned(x)])
            case ["HeadSum" | "Sum" as kind, [inner, body, first], second] if inner == kind:
                swap = {depth: ["i", depth + 1], depth + 1: ["i", depth]}
                yield [kind, [kind, body, second], first]
                other = renumbered(body, lambda k: swap.get(k, ["i", k]))
                yield [kind, [kind, other, second], first]
            case ["MatPow", x, -1]:
                yield turned(["MatPow", turned(x), -1])
            case ["CausalMask", _]:
                yield turned(part)
            case ["DiagMatrix" | "DiagonalOf" | "Trace" as kind, ["MatMul", left, right]]:
                yield [kind, ["MatMul", right, left]]


def turned(tree: Tree) -> Tree:
    return ["Transpose", tree]


# -- values ----------------------------------------------------------------------------------------


class UndefinedError(Exception):
    """The tree has no value in this world, or none that is exact."""


def by_entry(operation: Callable[..., Any], *values: Rows) -> Rows:
    """Return an operation on the entries of matrices of one shape."""
    return [
        [operation(*entries) for entries in zip(*rows, strict=True)]
        for rows in zip(*values, strict=True)
    ]


def matmul(a: Rows, b: Rows) -> Rows:
    """Return a matrix product."""
    columns = list(zip(*b, strict=True))
    return [[sum(p * q for p, q in zip(row, col, strict=True)) for col in columns] for row in a]


def identity(size: int) -> Rows:
    return [[int(i == j) for j in range(size)] for i in range(size)]


def inverted(matrix: Rows) -> Rows:
    """Return an inverse, by elimination."""
    size = len(matrix)
    rows = [
        [*map(Fraction, row), *map(Fraction, unit)]
        for row, unit in zip(matrix, identity(size), strict=True)
    ]
    for c in range(size):
        pivot = next((r for r in range(c, size) if rows[r][c]), None)
        if pivot is None:
            raise UndefinedError
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for r in range(size):
            if r != c and rows[r][c]:
                rows[r] = [x - rows[r][c] * y for x, y in zip(rows[r], rows[c], strict=True)]
    return [row[size:] for row in rows]


def power_of_two(x: Any) -> Fraction:
    if Fraction(x).denominator != 1 or abs(x) > 300:
        raise UndefinedError
    return Fraction(2) ** int(x)


def binary_logarithm(x: Any) -> int:
    x = Fraction(x)
    if x <= 0 or x.numerator.bit_count() > 1 or x.denominator.bit_count() > 1:
        raise UndefinedError
    return x.numerator.bit_length() - x.denominator.bit_length()


PI = Fraction(2, 101)  # any number does, with sin and cos at its halves: no integer is one of them


def turn(x: Any) -> tuple[Fraction, Fraction]:
    """Return a cosine and a sine: an integer turns by an angle whose own are 3/5 and 4/5."""
    many = 2 * Fraction(x) / PI
    quarters = (many + 50) % 101 - 50
    steps = (many - quarters) / 101
    if many.denominator != 1 or abs(steps) > 300:
        raise UndefinedError
    cos, sin = Fraction(1), Fraction(0)
    for _ in range(abs(int(steps))):
        cos, sin = (3 * cos - 4 * sin) / 5, (3 * sin + 4 * cos) / 5
    sin = sin if steps > 0 else -sin
    for _ in range(int(quarters) % 4):
        cos, sin = -sin, cos
    return cos, sin


def reciprocal_root(x: Any) -> Fraction:
    x = Fraction(x)
    if (
        x <= 0
        or isqrt(x.numerator) ** 2 != x.numerator
        or isqrt(x.denominator) ** 2 != x.denominator
    ):
        raise UndefinedError
    return Fraction(isqrt(x.denominator), isqrt(x.numerator))


class World:
    """Sizes, and integers for the entries of every matrix; some matrices are those of a tree."""

    def __init__(
        self, seed: int, sizes: Sequence[int], defined: Mapping[int, Tree] | None = None
    ) -> None:
        self.sizes, self.seed, draw = sizes, seed, random.Random(seed)
        self.entries: dict[tuple[int, ...], Rows] = {}
        for k, (_, counts, rows, cols) in enumerate(DECLARED):
            shape = self.number(rows), self.number(cols)
            for at in product(*[range(self.number(one)) for one in counts]):
                entries = [[draw.randint(-2, 2) for _ in range(shape[1])] for _ in range(shape[0])]
                self.entries[k, *at] = entries
        for k, tree in (defined or {}).items():
            for key in [key for key in self.entries if key[0] == k]:
                self.entries[key] = self.value(tree, key[1:])

    def number(self, tree: Tree, scope: Sequence[int] = ()) -> Any:
        """Return a size, a number of layers or a coefficient."""
        match tree:
            case ["size", k]:
                return self.sizes[k]
            case ["i", k]:
                return scope[k]
            case ["Add", *terms]:
                return sum(map(self.number, terms))
            case ["Mul", left, right]:
                return self.number(left) * self.number(right)
            case ["Pow", base, exponent]:
                return Fraction(self.number(base)) ** self.number(exponent)
            case ["Rational", p, q]:
                return Fraction(p, q)
            case ["pi"]:
                return PI
        return tree

    def function(self, name: str, x: Any) -> Any:
        """Return an activation of a number."""
        match name:
            case "relu":
                return max(x, 0)
            case "exp":
                return power_of_two(x)
            case "rsqrt":
                return reciprocal_root(x)
            case "sqrt":
                return 1 / reciprocal_root(x) if x else 0
            case "reciprocal":
                if not x:
                    raise UndefinedError
                return 1 / Fraction(x)
            case "log":
                return binary_logarithm(x)
            case "cos" | "sin":
                return turn(x)[name == "sin"]
            case "sigmoid" if Fraction(x).denominator == 1:  # as exp is, a power of two
                return power_of_two(x) / (1 + power_of_two(x))
            case "sigmoid" | "s of gelu":
                chance = random.Random(f"{self.seed}{name}{abs(Fraction(x))}").randint(1, 6)
                share = Fraction(chance, 7) if x else Fraction(1, 2)
                return share if x >= 0 else 1 - share
            case "silu":
                return x * self.function("sigmoid", x)
            case "abs":
                return abs(x)
            case "softplus":
                return binary_logarithm(1 + power_of_two(x))
            case "erf":  # gelu(x) = x (1 + erf(x/√2))/2, where a root is a float
                turned = Fraction(float(x) * 2**0.5).limit_denominator(10**6)
                return 2 * self.function("s of gelu", turned) - 1
            case "gelu":
                return x * self.function("s of gelu", x)
            case "gelu_tanh":
                inner = float(x + Fraction("0.044715") * x**3) * 2**0.5 * float(PI) ** -0.5
                return x * (1 + self.function("tanh", inner)) / 2
            case "quick_gelu":
                return x * self.function("sigmoid", Fraction("1.702") * x)
            case "tanh":  # of √(2/π) x, too, where a root is a float
                if not isinstance(x, float) and Fraction(2 * x).denominator != 1:
                    raise UndefinedError
                x = Fraction(f"{x:.9e}") if isinstance(x, float) else x
                return 2 * self.function("sigmoid", 2 * x) - 1
        return random.Random(f"{self.seed}{name}{Fraction(x)}").randint(-5, 5)

    def softmax(self, scores: Rows, mask: Rows) -> Rows:
        rows = []
        for row in by_entry(lambda x, k: power_of_two(x) * k, scores, mask):
            if not sum(row):
                raise UndefinedError
            rows.append([x / sum(row) for x in row])
        return rows

    def rms_norm(self, x: Rows, eps: Any) -> Rows:
        means = [Fraction(sum(entry**2 for entry in row), len(row)) + eps for row in x]
        return [
            [entry * reciprocal_root(s) for entry in row] for row, s in zip(x, means, strict=True)
        ]

    def product(self, values: Sequence[Any]) -> Any:
        """Return a product of matrices and scalars."""
        factor, made = 1, None
        for x in values:
            if type(x) is not list:
                factor *= x
            else:
                made = x if made is None else matmul(made, x)
        return factor if made is None else by_entry(lambda x: factor * x, made)

    def chain(self, factors: Sequence[Rows], reverse: bool, size: int) -> Rows:
        """Return a product of layers, the last one first unless in reverse."""
        made = identity(size)
        for x in factors:
            made = matmul(made, x) if reverse else matmul(x, made)
        return made

    def value(self, tree: Tree, scope: Sequence[int]) -> Any:
        """Return the value of a tree: rows of entries, or a number."""

        def of(part: Tree) -> Any:
            return self.value(part, scope)

        def at(index: Tree) -> int:
            return int(self.number(index, scope))

        match tree:
            case ["tensor", number, *indices]:
                return self.entries[number, *map(at, indices)]
            case ["OneMatrix" | "ZeroMatrix" as kind, rows, cols]:
                return [[int(kind == "OneMatrix")] * at(cols) for _ in range(at(rows))]
            case ["Identity", size]:
                return identity(at(size))
            case ["CausalMask", size]:
                return [[int(j <= i) for j in range(at(size))] for i in range(at(size))]
            case ["OneHot", index, size]:
                return [[int(i == at(index))] for i in range(at(size))]
            case ["Shift", size]:
                return [[int(i == j + 1) for j in range(at(size))] for i in range(at(size))]
            case ["Positions", size]:
                return [[i] for i in range(at(size))]
            case ["OneHotLast", size]:
                return [[int(i == at(size) - 1)] for i in range(at(size))]
            case ["MatrixElement", x, i, j]:
                return of(x)[at(i)][at(j)]
            case ["MatMul" | "Mul", *factors]:
                return self.product([of(x) for x in factors])
            case ["MatAdd", *terms]:
                return by_entry(lambda *x: sum(x), *map(of, terms))
            case ["HadamardProduct", left, right]:
                return by_entry(lambda x, y: x * y, of(left), of(right))
            case ["HadamardPower", x, k]:
                return by_entry(lambda entry: entry**k, of(x))
            case ["Transpose", x]:
                return [list(column) for column in zip(*of(x), strict=True)]
            case ["KroneckerProduct", left, right]:
                x, y = of(left), of(right)
                return [[p * q for p in r for q in s] for r in x for s in y]
            case ["BlockMatrix", *lines]:
                bands = [zip(*map(of, line), strict=True) for line in lines]
                return [[x for part in row for x in part] for band in bands for row in band]
            case ["DiagMatrix", x]:
                line = [entry for row in of(x) for entry in row]
                return by_entry(lambda one, y: one * y, identity(len(line)), [line] * len(line))
            case ["DiagonalOf", x]:
                return [[row[k]] for k, row in enumerate(of(x))]
            case ["Trace", x]:
                return sum(row[k] for k, row in enumerate(of(x)))
            case ["Activation", name, x]:
                return by_entry(lambda entry: self.function(name, entry), of(x))
            case ["RowSoftmax", x, *mask]:
                scores = of(x)
                return self.softmax(scores, of(*mask) if mask else by_entry(lambda _: 1, scores))
            case ["RMSNorm", x, eps]:
                return self.rms_norm(of(x), self.number(eps))
            case ["LayerNorm", x, eps]:
                centred = [[e - Fraction(sum(row), len(row)) for e in row] for row in of(x)]
                return self.rms_norm(centred, self.number(eps))
            case ["MatPow", x, k]:
                base = inverted(of(x)) if k < 0 else of(x)
                return self.chain([base] * abs(k), True, len(base))
            case ["HeadSum" | "Sum" as kind, body, count]:
                found = [self.value(body, (*scope, k)) for k in range(at(count))]
                return sum(found) if kind == "Sum" else by_entry(lambda *x: sum(x), *found)
            case ["LayerProduct", body, count, reverse]:
                size = len(self.value(body, (*scope, 0)))
                layers = [self.value(body, (*scope, k)) for k in range(at(count))]
                return self.chain(layers, reverse, size)
            case ["OrderSum", body, count, order, reverse]:
                size = len(self.value(body, (*scope, 0)))
                layers = [self.value(body, (*scope, k)) for k in range(at(count))]
                chosen = [self.chain(x, reverse, size) for x in combinations(layers, at(order))]
                zero = by_entry(lambda _: 0, identity(size))
                return by_entry(lambda *x: sum(x), zero, *chosen)
        return self.number(tree)
