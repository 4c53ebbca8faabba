"""Check a certificate of otimes: `python proofs/replay.py FILE` says accepted or rejected, and why.

This one file uses the standard library only and nothing of otimes. It does not search: it reads the
two sides and the hypotheses from their trees, does what the certificate says, and counts.

A certificate is JSON: `schema` 1, the declarations `sizes` [name], `scalars` {name: "real" or
"positive"}, `indices` {free index: its count} and `tensors` {name: [[count], rows, columns]} (a
matrix has no counts, a family has some), `splits` [[size, its factors]], the trees `lhs` and `rhs`,
`given` [[lhs, rhs, [index, count] for each index it holds for all of]], `uses` [{"given": number,
"coefficient": tree, "context": diagram}] and `renamings`. The claim is, for all sizes,

    lhs - rhs  =  sum over uses of  coefficient * context[ lhs - rhs of that hypothesis ]

A tree is an integer or [kind, argument, ...], the kinds named as the classes of SymPy and otimes. A
size is a tree, an index a name or an integer, counted from 0. Limits are [index, count], the
outermost first.

A diagram is one term: the sum over its wires of the product of its boxes. `rows` and `cols` are
wires in order, `named` pairs [index, wire] that hold a wire at an index, `sorts` the sizes of the
wires. A box is ["box", name, integer indices (null for others), wires of the other indices, rows
and columns]; in a context one box is ["hole", wires]: the rows, columns and for-all indices of a
hypothesis.

How trees are read. A subtree of numbers and scalar symbols is one coefficient. A leg of size 1 is
none; a size in `splits` is several legs, the first the slowest. Sums list the terms of their
arguments in order; products run over the terms of the left and for each over those of the right,
arguments from left to right; powers are such products; neighbouring identities (or ones) under a
Kronecker product are one. A wire that touches nothing is a factor, its size, unless it is held at
one index: then it is nothing. A wire held at two different integers makes its term zero. After each
step wires are numbered as they appear in rows, columns, boxes, and last in the names.

`renamings` list for each term of a result the new number of each wire, a bijection: `lhs`, `rhs`
and `uses` for the final results, `steps` for results of operations, counted from 1 as they are
made, where like terms are then added to the first of them. So a wrong renaming can make like terms
look unlike and the certificate be rejected, but never unlike terms look like.

"For all" means: wherever both sides and the hypotheses are defined, for sizes of 1 and more. So the
trees may divide by what the statement divides by. A coefficient of a use is the certificate's own,
so it may divide only by numbers and by monomials in sizes and positive scalars, and a context may
name an integer index only where a numeric size, or the statement, says that it is in range.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

Monomial = tuple[tuple[str, Fraction], ...]  # ((symbol, exponent), ...); "#2" is the number 2
Polynomial = dict[Monomial, Fraction]
Ratio = tuple[Polynomial, Polynomial]
Size = tuple[tuple[Monomial, Fraction], ...]  # the terms of a polynomial, in order

UNITY: Polynomial = {(): Fraction(1)}
MAX_TERMS, MAX_POWER, MAX_PRIME = 500_000, 5_000, 100_000


class Rejected(Exception):
    """The certificate does not prove its claim; the message says where it fails."""


def demand(condition: object, why: str) -> None:
    """Reject the certificate unless the condition holds."""
    if not condition:
        raise Rejected(why)


# -- numbers: rational functions, exactly ----------------------------------------------------------


def term(exponents: dict[str, Fraction], factor: Fraction) -> tuple[Monomial, Fraction]:
    """Return a monomial and its factor; of the root of a prime only the fractional power stays."""
    for name in exponents:
        if name[0] == "#":
            whole = exponents[name].__floor__()
            factor *= Fraction(int(name[1:])) ** whole
            exponents[name] -= whole
    return tuple(sorted((name, e) for name, e in exponents.items() if e)), factor


def collected(terms: Iterable[tuple[Monomial, Fraction]]) -> Polynomial:
    """Return the polynomial of these terms, without those that vanish."""
    total: Polynomial = {}
    for monomial, factor in terms:
        total[monomial] = total.get(monomial, Fraction(0)) + factor
    return {monomial: factor for monomial, factor in total.items() if factor}


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    """Return the product of two polynomials."""
    if a == UNITY or b == UNITY:
        return b if a == UNITY else a

    def exponents(m: Monomial, n: Monomial) -> dict[str, Fraction]:
        result = dict(m)
        for name, exponent in n:
            result[name] = result.get(name, Fraction(0)) + exponent
        return result

    return collected(term(exponents(m, n), f * g) for m, f in a.items() for n, g in b.items())


def add(a: Ratio, b: Ratio) -> Ratio:
    """Return the sum of two rational functions."""
    if a[1] == b[1]:
        return collected([*a[0].items(), *b[0].items()]), a[1]
    left, right = times(a[0], b[1]), times(b[0], a[1])
    return collected([*left.items(), *right.items()]), times(a[1], b[1])


def multiply(a: Ratio, b: Ratio) -> Ratio:
    """Return the product of two rational functions."""
    return times(a[0], b[0]), times(a[1], b[1])


def number(value: Fraction | int) -> Ratio:
    """Return a number as a rational function."""
    return collected([((), Fraction(value))]), UNITY


def power(base: Ratio, exponent: Fraction, positive: set[str]) -> Ratio:
    """Return a power; a fractional one only of a lone symbol, or of a product that is positive."""
    demand(abs(exponent.numerator) <= MAX_POWER, "a power is too high")
    if exponent < 0:
        demand(base[0], "a division by zero")
        if len(base[0]) == 1:  # dividing by a monomial leaves no denominator
            ((monomial, factor),) = base[0].items()
            inverse = dict([term({name: -e for name, e in monomial}, 1 / factor)])
            return power((times(base[1], inverse), UNITY), -exponent, positive)
        return power((base[1], base[0]), -exponent, positive)
    result: Ratio = (UNITY, UNITY)
    if exponent.denominator == 1:
        for _ in range(exponent.numerator):
            result = multiply(result, base)
        return result
    demand(base[1] == UNITY and len(base[0]) == 1, "a root of a sum, or of zero")
    ((monomial, factor),) = base[0].items()
    lone = factor == 1 and len(monomial) == 1 and monomial[0][1] in (1, -1)
    known = all(name[0] == "#" or name in positive for name, _ in monomial)
    demand(lone or (known and factor > 0), "a root of what may be negative")
    roots = [(name, e * exponent) for name, e in monomial]
    for whole, sign in ((factor.numerator, 1), (factor.denominator, -1)):
        prime = 2
        while whole > 1:
            demand(prime < MAX_PRIME, "a root of a number with a large prime factor")
            if whole % prime == 0:
                roots.append((f"#{prime}", sign * exponent))
                whole //= prime
            else:
                prime += 1
    for root in roots:
        result = multiply(result, (dict([term(dict([root]), Fraction(1))]), UNITY))
    return result


# -- diagrams --------------------------------------------------------------------------------------


class Diagram(NamedTuple):
    """One term: `named` are pairs ((index, size), wire), `boxes` pairs (label, wires)."""

    rows: tuple[int, ...]
    cols: tuple[int, ...]
    named: tuple[tuple[tuple[str, Size], int], ...]
    boxes: tuple[tuple[str, tuple[int, ...]], ...]
    sorts: tuple[Size, ...]


class Value(NamedTuple):
    """What a tree stands for: a matrix or a scalar, the sizes of its legs, and its terms."""

    matrix: bool
    rows: tuple[Size, ...]
    cols: tuple[Size, ...]
    terms: list[tuple[Ratio, Diagram]]


UNIT = Diagram((), (), (), (), ())


def shifted(wires: Iterable[int], by: int) -> tuple[int, ...]:
    """Return wires counted on from `by`; marks of blocks are negative and stay."""
    return tuple([wire + by if wire >= 0 else wire for wire in wires])


def beside(a: Diagram, b: Diagram) -> Diagram:
    """Return two diagrams as one with the legs of a; the wires of b count on from those of a."""
    named = [(key, wire + len(a.sorts)) for key, wire in b.named]
    boxes = [(label, shifted(wires, len(a.sorts))) for label, wires in b.boxes]
    return Diagram(a.rows, a.cols, (*a.named, *named), (*a.boxes, *boxes), a.sorts + b.sorts)


def joined(
    factor: Ratio, d: Diagram, pairs: Iterable[tuple[int, int]] = ()
) -> list[tuple[Ratio, Diagram]]:
    """Return the term with wires joined in pairs, and numbered as they appear; none if it is 0."""
    target = list(range(len(d.sorts)))

    def find(wire: int) -> int:
        while target[wire] != wire:
            wire = target[wire]
        return wire

    held: dict[tuple[str, Size], int] = {}
    same_index = [(held.setdefault(key, wire), wire) for key, wire in d.named]
    for a, b in [*pairs, *same_index]:
        if a is None or b is None or a < 0 or b < 0:
            if a != b:  # two different blocks
                return []
            continue
        demand(d.sorts[a] == d.sorts[b], "two wires of different sizes are joined")
        target[find(a)] = find(b)
    new: dict[int, int] = {}

    def at(wire: int) -> int:
        return new.setdefault(find(wire), len(new)) if wire >= 0 else wire

    rows, cols = tuple(map(at, d.rows)), tuple(map(at, d.cols))
    boxes = tuple([(label, tuple(map(at, wires))) for label, wires in d.boxes])
    names = sorted((key, find(wire)) for key, wire in held.items())
    on = [wire for _, wire in names]
    integers = [wire for (index, _), wire in names if index[0] != "'"]
    if len(set(integers)) < len(integers):
        return []
    named = tuple([(key, at(w)) for key, w in names if w in new or on.count(w) > 1])
    for wire in range(len(target)):
        if target[wire] == wire and wire not in new and wire not in on:
            factor = multiply(factor, (dict(d.sorts[wire]), UNITY))
    return [(factor, Diagram(rows, cols, named, boxes, tuple([d.sorts[w] for w in new])))]


def renamed(d: Diagram, new: Any) -> Diagram:
    """Return the diagram with new numbers for its wires, its boxes sorted."""
    demand(sorted(new) == list(range(len(d.sorts))), "a renaming is not a bijection")
    boxes = sorted([(label, tuple([new[w] for w in wires])) for label, wires in d.boxes])
    sorts = sorted(zip(new, d.sorts, strict=True))
    named = tuple([(key, new[w]) for key, w in d.named])
    rows, cols = [tuple([new[w] if w >= 0 else w for w in legs]) for legs in (d.rows, d.cols)]
    return Diagram(rows, cols, named, tuple(boxes), tuple([sort for _, sort in sorts]))


# -- how legs are wired: from the rows and columns of each factor to pairs, rows, columns ----------


class Cut(tuple[Any, ...]):
    """The legs of each block of a size that is cut in blocks."""


def pairs(a: Any, b: Any) -> list[tuple[Any, Any]]:
    """Return two lists of legs paired off, None where one is longer."""
    return list(zip_longest(a, b))


def beneath(a: Any, b: Any) -> Any:
    """Return the legs a, the slow ones, then b; legs that follow a cut go into each block."""
    if a and isinstance(a[-1], Cut):
        return (*a[:-1], Cut(beneath(block, b) for block in a[-1]))
    return (*a, *b)


def branches(legs: Any) -> list[tuple[Any, ...]]:
    """Return the ways through the blocks of legs, with the mark -1 - k before those of block k."""
    if not legs or not isinstance(legs[-1], Cut):
        return [tuple(legs)]
    ways = enumerate(map(branches, legs[-1]))
    return [(*legs[:-1], -1 - k, *inner) for k, found in ways for inner in found]


def stacked(blocks: list[Any]) -> tuple[Any, list[int]]:
    """Return the legs of blocks one after the other, cuts in them opened, and where each starts."""
    if len(blocks) == 1:
        return blocks[0], [0]
    flat: list[Any] = []
    starts = []
    for block in blocks:
        starts.append(len(flat))
        flat += block[0] if block and isinstance(block[0], Cut) else [block]
    return (Cut(flat),), starts


WIRING: dict[str, Callable[..., tuple[Any, Any, Any]]] = {
    "Transpose": lambda r, c: ((), c, r),
    "Adjoint": lambda r, c: ((), c, r),  # the language is real
    "vec_rows": lambda r, c: ((), beneath(r, c), ()),
    "vec_cols": lambda r, c: ((), beneath(c, r), ()),
    "Trace": lambda r, c: (pairs(r, c), (), ()),
    "DiagMatrix": lambda r, c: ((), beneath(r, c), beneath(r, c)),  # of a column or a row
    "DiagonalOf": lambda r, c: (pairs(r, c), r, ()),
    "DiagonalMatrix": lambda r, c: (pairs(r, c), r, c),
    "MatMul": lambda r, c, s, t: (pairs(c, s), r, t),
    "KroneckerProduct": lambda r, c, s, t: ((), beneath(r, s), beneath(c, t)),
    "HadamardProduct": lambda r, c, s, t: (pairs(r, s) + pairs(c, t), r, c),
    "MatrixElement": lambda r, c, i, _, j, __: (pairs(r, i) + pairs(c, j), (), ()),
    "KroneckerDelta": lambda i, _, j, __: (pairs(i, j), (), ()),
    "entry": lambda i, _, j, __, r, c: ((), i, j),  # of an explicit matrix, in its place
}
SCALAR = ("Trace", "MatrixElement", "KroneckerDelta", "Sum")


class Reader:
    """The declarations of a certificate, and the reading of its trees."""

    def __init__(self, c: dict[str, Any]) -> None:
        demand(c["schema"] == 1, f"the schema is {c['schema']}, and 1 is read here")
        self.sizes, self.scalars = set(c["sizes"]), set(c["scalars"])
        names = [*c["sizes"], *c["scalars"], *c["indices"], *c["tensors"]]
        demand(len(set(names)) == len(names), "a name is declared twice")
        demand(all(name[0] not in "#'" for name in names), "a name begins with # or '")
        self.positive = self.sizes | {s for s in c["scalars"] if c["scalars"][s] == "positive"}
        self.scope: dict[str, Size] = {}
        self.splits: dict[Size, Any] = {}
        for whole, parts in c["splits"]:
            self.splits[self.size(whole)] = parts
            demand(dict(self.size(whole)) == self.total(parts), "a split does not add up to it")
            demand(len(parts) > 1 or parts[0][0] == "|", "a split is none")
        self.tensors = {
            name: ([self.size(count) for count in counts], self.size(rows), self.size(cols))
            for name, (counts, rows, cols) in c["tensors"].items()
        }
        self.scope = {name: self.size(count) for name, count in c["indices"].items()}
        self.integers: set[tuple[int, Size]] = set()  # the integer indices that trees name
        self.steps, self.step = c["renamings"]["steps"], 0

    # -- numbers, sizes, indices -------------------------------------------------------------------

    def number(self, tree: Any) -> Ratio:
        """Return the value of a tree of numbers and scalar symbols."""
        if type(tree) is int:
            return number(tree)
        kind, *args = tree
        if kind == "Symbol":
            demand(args[0] in self.sizes | self.scalars, f"{args[0]} is not declared")
            demand(args[0] not in self.scope, f"the index {args[0]} is used as a number")
            return {((args[0], Fraction(1)),): Fraction(1)}, UNITY
        if kind == "Rational":
            demand(type(args[0]) is type(args[1]) is int and args[1], "a Rational is p/q")
            return number(Fraction(*args))
        values = [self.number(arg) for arg in args]
        if kind == "Pow":
            demand(set(values[1][0]) <= {()} and values[1][1] == UNITY, "a power is no number")
            return power(values[0], values[1][0].get((), Fraction(0)), self.positive)
        demand(kind in ("Add", "Mul"), f"{kind} is not a number")
        result = values[0]
        for value in values[1:]:
            result = add(result, value) if kind == "Add" else multiply(result, value)
        return result

    def size(self, tree: Any) -> Size:
        """Return a size, which is a polynomial in the symbols of sizes with integer factors."""
        polynomial, denominator = self.number(tree)
        powers = [leg for monomial in polynomial for leg in monomial]
        whole = all(e > 0 and e.denominator == 1 and name in self.sizes for name, e in powers)
        integral = all(factor.denominator == 1 for factor in polynomial.values())
        demand(denominator == UNITY and whole and integral, f"{tree} is not a size")
        demand(powers or not polynomial or polynomial[()] > 0, "a size is negative")
        return tuple(sorted(polynomial.items()))

    def legs(self, size: Size) -> tuple[Size, ...]:
        """Return the legs that a size stands for."""
        if size in self.splits:
            return self.opened(self.splits[size])
        return () if dict(size) == UNITY else (size,)

    def total(self, parts: Any) -> Polynomial:
        """Return the size of the parts of a split, each at least 2, so that splitting ends."""
        product = UNITY
        for part in parts:
            if type(part) is list and part[0] == "|":
                blocks = [self.total(block) for block in part[1:]]
                demand(len(blocks) > 1, "a cut into one block")
                size = collected([leg for block in blocks for leg in block.items()])
            else:
                size = dict(self.size(part))
                natural = size and size != UNITY and all(f > 0 for f in size.values())
                demand(natural, "a part of a split may be less than 2")
            product = times(product, size)
        return product

    def opened(self, parts: Any) -> Any:
        """Return the legs of the parts of a split."""
        legs: Any = ()
        for part in parts:
            cut = type(part) is list and part[0] == "|"
            inner = stacked([self.opened(b) for b in part[1:]])[0] if cut else None
            legs = beneath(legs, self.legs(self.size(part)) if inner is None else inner)
        return legs

    def index(self, index: Any, count: Size, in_tree: bool = True) -> tuple[Size, ...]:
        """Return the leg of an index, none where it has one value; refuse it out of its range."""
        split = len(self.legs(count)) > 1 or any(isinstance(leg, Cut) for leg in self.legs(count))
        demand(not split, "an index runs over a size that is split")
        if type(index) is str:
            demand(self.scope.get(index) == count, f"the index {index} does not run over that size")
        elif index is not None:
            demand(type(index) is int and index >= 0, "an index is a name or a natural number")
            if in_tree:  # a statement that names the integer presupposes that it is in range
                self.integers.add((index, count))
            known = (index, count) in self.integers or index == 0
            if set(dict(count)) <= {()}:
                known = index < dict(count).get((), 0)
            demand(known, f"the integer index {index} is out of range")
        return self.legs(count)

    def box(self, name: str, indices: Any, in_tree: bool = True) -> tuple[Any, list[Any], Any, Any]:
        """Return the name of a box, its (index, leg) pairs, and the legs of rows and columns."""
        counts, rows, cols = self.tensors[name]
        held = []
        for index, count in zip(indices, counts, strict=True):
            legs = self.index(index, count, in_tree)
            held += [] if type(index) is int else [(index, leg) for leg in legs]
        label = [name, [i if type(i) is int else None for i in indices]]
        return label, held, self.legs(rows), self.legs(cols)

    # -- results -----------------------------------------------------------------------------------

    def done(self, value: Value) -> Value:
        """Count a step; add like terms where the certificate lists renamings for it."""
        self.step += 1
        demand(len(value.terms) <= MAX_TERMS, "there are too many terms")
        if str(self.step) not in self.steps:
            return value
        first: dict[Diagram, tuple[Ratio, Diagram]] = {}
        for (factor, d), new in zip(value.terms, self.steps[str(self.step)], strict=True):
            before, kept = first.get(renamed(d, new), (number(0), d))
            first[renamed(d, new)] = add(before, factor), kept
        return value._replace(terms=list(first.values()))

    def combined(self, kind: str, *values: Value) -> Value:
        """Return the result of an operation that joins or reorders legs, term by term."""
        wiring = WIRING[kind]
        joins, rows, cols = wiring(*[legs for value in values for legs in value[1:3]])
        demand(all(a == b for a, b in joins), f"the sizes in a {kind} do not fit")
        demand(len(values[0].terms) * len(values[-1].terms) <= MAX_TERMS, "too many terms")
        terms = []
        for parts in product(*[value.terms for value in values]):
            factor, whole = number(1), UNIT
            legs: list[tuple[int, ...]] = []
            for other, d in parts:
                legs += [shifted(d.rows, len(whole.sorts)), shifted(d.cols, len(whole.sorts))]
                factor, whole = multiply(factor, other), beside(whole, d)
            wires, r, c = wiring(*legs)
            terms += joined(factor, whole._replace(rows=r, cols=c), wires)
        matrix = kind not in SCALAR and any(value.matrix for value in values)
        return self.done(Value(matrix, rows, cols, terms))

    def multiplied(self, kind: str, values: list[Value]) -> Value:
        """Return a product from left to right; a scalar times a matrix joins nothing."""
        result = values[0]
        for value in values[1:]:
            plain = kind == "MatMul" and not (result.matrix and value.matrix)
            result = self.combined("KroneckerProduct" if plain else kind, result, value)
        return result

    def bound(self, a: Value, kind: str, index: str, count: Size) -> Value:
        """Sum over an index, or make its wire the first leg of rows or columns, or the last."""
        legs, terms = self.index(None, count), []
        for factor, d in a.terms:
            mine = tuple([w for (name, _), w in d.named if name == repr(index)])
            if legs and not mine:  # nothing depends on the index
                mine, d = (len(d.sorts),), d._replace(sorts=d.sorts + legs)
            named = tuple([leg for leg in d.named if leg[0][0] != repr(index)])
            rows, cols = self.placed(kind, mine, d.rows, d.cols)
            terms += joined(factor, d._replace(rows=rows, cols=cols, named=named))
        return self.done(Value(a.matrix, *self.placed(kind, legs, a.rows, a.cols), terms))

    @staticmethod
    def placed(kind: str, new: Any, rows: Any, cols: Any) -> tuple[Any, Any]:
        """Return rows and columns with the leg of an index in its place."""
        if kind == "StackHeads":
            return new + rows, cols
        return rows, new + cols if kind == "ConcatHeads" else cols + new * (kind == "for all")

    def leaf(self, rows: Any, cols: Any, held: Any = (), label: Any = None) -> Value:
        """Return a box on its own wires, or ones; a diagram for each block."""
        terms = []
        for r, c in product(branches(rows), branches(cols)):
            sorts = [leg for leg in (*r, *c, *[leg for _, leg in held]) if not isinstance(leg, int)]
            wires = iter(range(len(sorts)))
            mine = [
                tuple([leg if isinstance(leg, int) else next(wires) for leg in x]) for x in (r, c)
            ]
            named = tuple([((repr(index), leg), next(wires)) for index, leg in held])
            touched = (*[w for _, w in named], *[w for legs in mine for w in legs if w >= 0])
            boxes = ((labelled(label, r, c), touched),) if label else ()
            terms += joined(number(1), Diagram(mine[0], mine[1], named, boxes, tuple(sorts)))
        return Value(True, rows, cols, terms)

    def identity(self, legs: Any) -> Value:
        """Return the identity: rows and columns on the same wires."""
        terms = [(f, d._replace(cols=d.rows)) for f, d in self.leaf(legs, ()).terms]
        return Value(True, legs, legs, terms)

    # -- the kinds of trees ------------------------------------------------------------------------

    def read(self, tree: Any) -> Value:
        """Return what a tree stands for."""
        if is_number(tree):
            value = self.number(tree)
            return Value(False, (), (), [(value, UNIT)] if value[0] else [])
        kind, *args = tree
        if kind in ("MatrixSymbol", "FamilyMember"):
            label, held, rows, cols = self.box(args[0], args[1:])
            return self.leaf(rows, cols, held, label)
        if kind == "Identity":
            return self.identity(self.legs(self.size(args[0])))
        if kind in ("OneMatrix", "ZeroMatrix"):
            rows, cols = [self.legs(self.size(arg)) for arg in args]
            ones = self.leaf(rows, cols)
            return ones if kind == "OneMatrix" else ones._replace(terms=[])
        if kind == "OneHot":
            return self.one_hot(args[0], self.size(args[1]))
        if kind == "ImmutableDenseMatrix":
            return self.explicit(*args)
        if kind == "BlockMatrix":
            places = [(i, j, tree) for i, line in enumerate(args) for j, tree in enumerate(line)]
            return self.blocks([(i, j, self.read(block)) for i, j, block in places])
        if kind == "BlockDiagMatrix":
            return self.blocks([(k, k, self.read(block)) for k, block in enumerate(args)])
        if kind in ("HeadSum", "ConcatHeads", "StackHeads", "Sum"):
            return self.scoped(kind, *args)
        if kind == "KroneckerDelta":
            i, j, size = args
            return self.combined(kind, *[self.one_hot(k, self.size(size)) for k in (i, j)])
        if kind == "KroneckerProduct":
            args = fused(args)
        exponent = args.pop() if kind in ("MatPow", "Pow", "HadamardPower") else 1
        indices = [args.pop(), args.pop()][::-1] if kind == "MatrixElement" else []
        values = [self.read(arg) for arg in args]
        if kind in ("MatAdd", "Add"):
            return self.added(values)
        if kind in ("MatMul", "Mul"):
            return self.multiplied("MatMul", values)
        if kind == "Pow":
            demand(not values[0].matrix, "a matrix is raised to the power of a number")
            return self.powered("MatMul", values[0], exponent)
        demand(all(value.matrix for value in values), f"{kind} of a scalar")
        if kind in ("MatPow", "HadamardPower"):
            power_of = "MatMul" if kind == "MatPow" else "HadamardProduct"
            return self.powered(power_of, values[0], exponent)
        if kind in ("KroneckerProduct", "HadamardProduct"):
            return self.multiplied(kind, values)
        demand(kind in WIRING and kind != "entry", f"{kind} is not in the language")
        a = values[0]
        demand(kind != "DiagMatrix" or not (a.rows and a.cols), "DiagMatrix of a wide matrix")
        for index, legs in zip(indices, a[1:3], strict=False):
            split = len(legs) > 1 or any(isinstance(leg, Cut) for leg in legs)
            demand(not split, "an entry of a matrix whose legs are split")
            values.append(self.one_hot(index, legs[0] if legs else self.size(1)))
        return self.combined(kind, *values)

    def one_hot(self, index: Any, size: Size) -> Value:
        """Return the unit column of an index: a wire that is held there."""
        legs = self.index(index, size)
        (one,) = self.leaf(legs, ()).terms
        named = tuple([((repr(index), leg), 0) for leg in legs])
        return Value(True, legs, (), [(one[0], one[1]._replace(named=named))])

    def explicit(self, n_rows: int, n_cols: int, *entries: Any) -> Value:
        """Return the sum of the entries, each in its place."""
        rows, cols = self.size(n_rows), self.size(n_cols)
        demand(len(entries) == n_rows * n_cols > 0, "an explicit matrix lacks entries")
        values = []
        for place, entry in enumerate(entries):
            i, j = divmod(place, n_cols)
            value = self.read(entry)
            demand(not value.matrix, "an entry of an explicit matrix is a matrix")
            here = self.one_hot(i, rows), self.one_hot(j, cols)
            values.append(self.combined("entry", *here, value))
        return self.added(values)

    def added(self, values: list[Value]) -> Value:
        """Return the sum of values of one shape."""
        demand(all(v[:3] == values[0][:3] for v in values), "a sum of different shapes")
        return self.done(values[0]._replace(terms=[t for value in values for t in value.terms]))

    def powered(self, kind: str, base: Value, exponent: Any) -> Value:
        """Return a power with a natural exponent, a product from left to right."""
        demand(type(exponent) is int and 0 <= exponent <= MAX_POWER, "a power that is not natural")
        if exponent or not base.matrix:
            return self.multiplied(kind, [base] * exponent or [self.read(1)])
        if kind == "HadamardProduct":
            return self.leaf(base.rows, base.cols)
        demand(base.rows == base.cols, "a power of a matrix that is not square")
        return self.identity(base.rows)

    def blocks(self, placed: list[tuple[int, int, Value]]) -> Value:
        """Return blocks put together at (row, column); those that are missing are zero."""
        legs: list[dict[int, Any]] = [{}, {}]
        for i, j, a in placed:
            fits = (
                legs[0].setdefault(i, a.rows) == a.rows and legs[1].setdefault(j, a.cols) == a.cols
            )
            demand(a.matrix and fits, "a block does not fit its row or column of blocks")
        both = [stacked([side[k] for k in range(len(side))]) for side in legs]

        def inside(side: int, place: int, block: Any, wires: Any) -> tuple[int, ...]:
            start = both[side][1][place]
            if len(legs[side]) == 1:
                return tuple(wires)
            if block and isinstance(block[0], Cut):
                return (wires[0] - start, *wires[1:])
            return (-1 - start, *wires)

        terms = []
        for i, j, a in placed:
            for factor, d in a.terms:
                rows, cols = inside(0, i, a.rows, d.rows), inside(1, j, a.cols, d.cols)
                terms.append((factor, d._replace(rows=rows, cols=cols)))
        return self.done(Value(True, both[0][0], both[1][0], terms))

    def scoped(self, kind: str, body: Any, *limits: Any) -> Value:
        """Return a sum over indices, or matrices side by side or one below the other."""
        value = self.inside(limits, body)
        demand(value.matrix == (kind != "Sum"), f"the body of a {kind} is of the wrong kind")
        for index, count in reversed(limits):
            value = self.bound(value, kind, index, self.size(count))
        return value

    def inside(self, limits: Any, tree: Any) -> Value:
        """Return what a tree stands for where these indices are in scope."""
        outer = self.scope
        for index, count in limits:
            demand(type(index) is str and index not in self.sizes, f"{index} is not an index")
            self.scope = {**self.scope, index: self.size(count)}
        value = self.read(tree)
        self.scope = outer
        return value

    # -- the claim ---------------------------------------------------------------------------------

    def relation(self, lhs: Any, rhs: Any, *limits: Any) -> Value:
        """Return lhs - rhs of a hypothesis, the indices it holds for all of as further columns."""
        sides = [self.inside(limits, lhs), self.inside(limits, rhs)]
        demand(sides[0][:3] == sides[1][:3], "the sides of a hypothesis are of different shapes")
        for index, count in limits:
            sides = [self.bound(side, "for all", index, self.size(count)) for side in sides]
        return sides[0]._replace(terms=sides[0].terms + scaled(sides[1].terms, number(-1)))

    def coefficient(self, tree: Any) -> Ratio:
        """Return the coefficient of a use, which may divide only by what cannot be zero."""
        polynomial, denominator = self.number(tree)
        demand(denominator == UNITY, "the coefficient of a use divides by a sum")
        for name, exponent in [leg for monomial in polynomial for leg in monomial]:
            natural = exponent > 0 and exponent.denominator == 1
            safe = natural or name[0] == "#" or name in self.positive
            demand(safe, f"the coefficient of a use divides by {name}, or takes its root")
        return polynomial, denominator

    def plugged(self, context: dict[str, Any], hypothesis: Value) -> list[tuple[Ratio, Diagram]]:
        """Return the terms of a context with a hypothesis in its one hole."""
        sorts = tuple([self.size(tree) for tree in context["sorts"]])
        demand(all(self.legs(size) == (size,) for size in sorts), "a wire of a context is split")

        def wires(listed: Any, marks: bool = False) -> tuple[int, ...]:
            known = all(type(w) is int and (w >= 0 or marks) and w < len(sorts) for w in listed)
            demand(known, "a context names a wire that it does not have")
            return tuple(listed)

        boxes, holes = [], []
        for kind, *box in context["boxes"]:
            if kind == "hole":
                holes.append(wires(box[0], marks=True))
                sides = product(branches(hypothesis.rows), branches(hypothesis.cols))
                mine = [tuple([sorts[w] if w >= 0 else w for w in box[0]])]
                demand({(*r, *c) for r, c in sides}.issuperset(mine), "the hole does not fit")
            else:
                label, held, rows, cols = self.box(box[0], box[1], in_tree=False)
                fitting = []
                for r, c in product(branches(rows), branches(cols)):
                    marks = [[-1 - k for k in side if isinstance(k, int)] for side in (r, c)]
                    legs = [leg for leg in (*r, *c) if not isinstance(leg, int)]
                    if marks == box[3:]:
                        fitting.append((labelled(label, r, c), [*[leg for _, leg in held], *legs]))
                demand(len(fitting) == 1, "a box is in no block of its matrix")
                text, legs = fitting[0]
                demand([sorts[w] for w in wires(box[2])] == legs, "the wires of a box do not fit")
                boxes.append((text, wires(box[2])))
        demand(len(holes) == 1, f"a context has {len(holes)} holes")
        named = []
        for index, wire in context["named"]:
            demand(index is not None, "a wire of a context is held at no index")
            self.index(index, sorts[wires([wire])[0]], in_tree=False)
            named.append(((repr(index), sorts[wire]), wire))
        rows, cols = wires(context["rows"], marks=True), wires(context["cols"], marks=True)
        around, terms = Diagram(rows, cols, tuple(named), tuple(boxes), sorts), []
        for factor, d in hypothesis.terms:
            ends = shifted((*d.rows, *d.cols), len(sorts))
            terms += joined(factor, beside(around, d), pairs(holes[0], ends))
        return terms


def labelled(name: list[Any], rows: Any, cols: Any) -> str:
    """Return the label of a box: its name, integer indices, and which block of it the box is."""
    marks = [[-1 - k for k in side if isinstance(k, int)] for side in (rows, cols)]
    return json.dumps([*name, *marks])


def is_number(tree: Any) -> bool:
    """Return whether a tree holds numbers and scalar symbols only."""
    if type(tree) is int or tree[0] in ("Symbol", "Rational"):
        return True
    return tree[0] in ("Add", "Mul", "Pow") and all(is_number(arg) for arg in tree[1:])


def fused(factors: Iterable[Any]) -> list[Any]:
    """Return Kronecker factors, nested ones flat; neighbours I, I are one I, and ones likewise."""
    flat: list[Any] = []
    for factor in factors:
        for part in fused(factor[1:]) if factor[0] == "KroneckerProduct" else [factor]:
            if flat and part[0] == flat[-1][0] and part[0] in ("Identity", "OneMatrix"):
                sizes = zip(flat[-1][1:], part[1:], strict=True)
                flat[-1] = [part[0], *[["Mul", a, b] for a, b in sizes]]
            else:
                flat.append(part)
    return flat


def scaled(terms: list[tuple[Ratio, Diagram]], by: Ratio) -> list[tuple[Ratio, Diagram]]:
    """Return a sum times a coefficient."""
    return [(multiply(factor, by), d) for factor, d in terms]


def check(certificate: dict[str, Any]) -> str:
    """Return a line on what was proved, or raise Rejected.

    >>> n, A = ["Symbol", "n"], ["MatrixSymbol", "A"]
    >>> claim = {"lhs": A, "rhs": ["Transpose", A], "given": [], "uses": [], "splits": []}
    >>> names = {"sizes": ["n"], "scalars": {}, "indices": {}, "tensors": {"A": [[], n, n]}}
    >>> same = {"lhs": [[0, 1]], "rhs": [[0, 1]], "uses": [], "steps": {}}
    >>> check({"schema": 1, **names, **claim, "renamings": same})
    Traceback (most recent call last):
    ...
    proofs.replay.Rejected: 2 of 2 diagrams do not cancel
    """
    try:
        return _checked(certificate)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise Rejected(f"it is not in the form of a certificate: {error!r}") from None


def _checked(certificate: dict[str, Any]) -> str:
    reader = Reader(certificate)
    left, right = reader.read(certificate["lhs"]), reader.read(certificate["rhs"])
    demand(left[:3] == right[:3], "the two sides are of different shapes")
    given = [reader.relation(*pair) for pair in certificate["given"]]
    renamings = certificate["renamings"]
    sums = [(left.terms, renamings["lhs"]), (scaled(right.terms, number(-1)), renamings["rhs"])]
    for use, listed in zip(certificate["uses"], renamings["uses"], strict=True):
        which = use["given"]
        demand(type(which) is int and 0 <= which < len(given), "a use of an unlisted hypothesis")
        factor = multiply(reader.coefficient(use["coefficient"]), number(-1))
        sums.append((scaled(reader.plugged(use["context"], given[which]), factor), listed))
    totals: dict[Diagram, Ratio] = {}
    for terms, listed in sums:
        for (factor, d), new in zip(terms, listed, strict=True):
            same = renamed(d, new)
            totals[same] = add(totals.get(same, number(0)), factor)
    wrong = sum(1 for total, _ in totals.values() if total)
    demand(not wrong, f"{wrong} of {len(totals)} diagrams do not cancel")
    return f"{len(totals)} diagrams cancel, {len(given)} hypotheses, {len(sums) - 2} uses"


def main(arguments: list[str]) -> int:
    """Check one file: 0 when accepted, 1 when rejected, 2 when there is nothing to check."""
    if len(arguments) != 1:
        print("usage: python replay.py FILE")
        return 2
    sys.setrecursionlimit(10_000)
    try:
        certificate = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        print(f"cannot read {arguments[0]}: {error}")
        return 2
    try:
        print(f"accepted: {check(certificate)}")
    except Rejected as why:
        print(f"rejected: {why}")
    except RecursionError:
        print("rejected: its trees are nested too deeply to be read")
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
