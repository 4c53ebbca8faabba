"""Check a certificate of otimes: `python proofs/replay.py FILE` says accepted or rejected, and why.

This one file uses the standard library only and nothing of otimes. It does not search for a proof:
it reads the two sides and the hypotheses from their trees, does what the certificate says, and
counts. What it must take on trust is nothing but the statement that the certificate shows.

A certificate is JSON: `schema` 2, the declarations `sizes` [name], `scalars` {name: "real" or
"positive"}, `indices` {free index: its count} and `tensors` {name: [[count], rows, columns]} (a
matrix has no counts, a family has some), the trees `lhs` and `rhs`, the hypotheses `given` [[lhs,
rhs, [index, count] for each index it holds for all of]], and the proof: `mode`, `splits` [[size,
its factors]], `fused`, `defined` {name: [tree, [index, count] for each of its indices]} and
`uses` [{"fact": fact, "coefficient": tree, "context": diagram}]. There are four modes:

    "normal forms"  for all sizes, lhs - rhs = sum over uses of coefficient * context[fact]
    "written out"   the same, each size n that is a number taken apart into n blocks of size 1: so
                    entries are boxes without wires, which commute, and free indices have values; a
                    use counts where those of the claim have the values `at` (none: [])
    "same trees"    the two sides are the same tree
    "induction"     over the number of layers, from one layer on

A tree is an integer or [kind, argument, ...], the kinds named as the classes of SymPy and otimes. A
size is a tree, an index a name or an integer, counted from 0. Limits are [index, count], the
outermost first.

A diagram is one term: the sum over its wires of the product of its boxes. `rows` and `cols` are
wires in order, `named` pairs [index, wire] that hold a wire at an index, `sorts` the sizes of the
wires. A box is ["box", name, integer indices (null for others), wires of the other indices, rows
and columns, the blocks of its rows, those of its columns]; in a context one box is ["hole", wires]:
the rows, columns and for-all indices of a fact. Where a size is cut in blocks, the mark -1 - k
stands before the wires of block k, in legs and in holes. The name of a box may be one of `defined`:
then it is the one diagram of a tree in those blocks, its first wires held at the indices listed.

How trees are read. A subtree of numbers and scalar symbols is one coefficient. A leg of size 1 is
none; a size in `splits` is several legs, the first the slowest, and a part ["|", parts, ...] is cut
in blocks. Where `fused` holds, neighbouring identities (or ones) under a Kronecker product are one.
A wire that touches nothing is a factor, its size, unless it is held at one index: then it is
nothing. A wire held at two different integers makes its term zero. Wires are numbered by `settle`,
and terms that are then the same are added. Whatever `settle` does, it renames wires: so a fault in
it can make like terms look unlike and a certificate be rejected, but never unlike terms look like.

An inverse is read as that of its parts where a product, a Kronecker product, a transpose or a power
is inverted whose parts are square. Any other is a box of its own, defined by its argument: two are
one box when their arguments are the same sum of diagrams, up to the names of their free indices.
One over a trace, entry or sum is the inverse of a matrix of one entry.

A function is read block by block, as a box of its own. A softmax acts on rows, an activation on
entries: rows, in an activation columns, and indices, integers too, are slots of its arguments that
only say where it acts. Two are one box when their arguments are the same up to the order of slots;
a slot that no term depends on is none. Where a mask is zero in all blocks of columns but one, a
softmax is that of this block, and zero elsewhere. What is the same along the row is dropped from
the scores of a softmax: where no scores and no mask are left, it is one over their number. A
positive factor passes through relu and rsqrt, which is x^(-1/2); `VALUES` are those known at
numbers. RMSNorm and LayerNorm are what `norm` says, and a CausalMask is a box.

A fact is an equation lhs = rhs, put to use as lhs - rhs:

    ["given", k]            hypothesis k; written out, the values of its for-all indices follow
    ["turned", k, j]        hypothesis k is M N = I, M its first j factors: so N M = I of that size,
                            for only if M is square do the shapes agree
    ["root", k]             hypothesis k is X' X = 0 or X X' = 0: so X = 0, as entries are real
    ["inverse", name, "left"]    the box E^-1 of that name: E^-1 E = I; or, with "right", E E^-1 = I
    ["axiom", name, [function], [[index, count]], [proof]]    what `axiom` says of functions, for
                            all of some indices; for each premise what a certificate has besides its
                            statement, of which the hypotheses stay

An induction over `depth` L takes the `last` layer off both sides (`Unrolled`), where every product
and sum over L layers is `opaque`: [tree, its name, null]. It has two proofs, each a certificate:
`base`, the claim for one layer, and `step`, the claim for L + 1 layers with the claim for L layers
as a further hypothesis. In the step nothing is known of the last layer and of what is opaque. Two
products have one name where the certificate in place of null says that their bodies are equal.

An inverse, a root and a softmax under a mask are numbers only in some places. So an inverse must
occur in the statement, at every index where it is used; elsewhere roots and patterns may be taken
to be any numbers, and the axioms that say what they are, and premises, hold where they occur.

"For all" means: wherever both sides and the hypotheses are defined, for sizes of 1 and more. So the
trees may divide by what they like, and what they divide by is not zero. The coefficients of uses,
`defined` and axioms are the certificate's own, so they may divide only by numbers, by monomials in
sizes, positive scalars and scalars that the statement divides by, and by sums that the statement
divides by; their sizes are sums of products of sizes, or in the statement. They may name an integer
index only where a numeric size, or the statement, says that it is in range.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import permutations, product, zip_longest
from math import gcd, lcm
from pathlib import Path
from typing import Any, NamedTuple

Monomial = tuple[tuple[str, Fraction], ...]  # ((symbol, exponent), ...); "#2" is the number 2
Polynomial = dict[Monomial, Fraction]
Ratio = tuple[Polynomial, Polynomial]
Size = tuple[tuple[Monomial, Fraction], ...]  # the terms of a polynomial, in order

UNITY: Polynomial = {(): Fraction(1)}
ONE: Ratio = (UNITY, UNITY)
MINUS: Ratio = ({(): Fraction(-1)}, UNITY)
MAX_TERMS, MAX_POWER, MAX_PRIME, MAX_TRIES, MAX_INDICES = 500_000, 5_000, 100_000, 20_000, 5


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
    result = ONE
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

Box = tuple[str, tuple[int, ...]]  # its label, its wires
Key = tuple[str, Size]  # an index, and the size that it runs over


class Diagram(NamedTuple):
    """One term: `named` are pairs ((index, size), wire), an index as Python writes it."""

    rows: tuple[int, ...]
    cols: tuple[int, ...]
    named: tuple[tuple[Key, int], ...]
    boxes: tuple[Box, ...]
    sorts: tuple[Size, ...]


Sum = dict[Diagram, Ratio]
UNIT = Diagram((), (), (), (), ())


def shifted(wires: Iterable[int], by: int) -> tuple[int, ...]:
    """Return wires counted on from `by`; marks of blocks are negative and stay."""
    return tuple([wire + by if wire >= 0 else wire for wire in wires])


def beside(a: Diagram, b: Diagram) -> Diagram:
    """Return two diagrams as one with the legs of a; the wires of b count on from those of a."""
    named = [(key, wire + len(a.sorts)) for key, wire in b.named]
    boxes = [(label, shifted(wires, len(a.sorts))) for label, wires in b.boxes]
    return Diagram(a.rows, a.cols, (*a.named, *named), (*a.boxes, *boxes), a.sorts + b.sorts)


def meet(pairs: Iterable[tuple[Any, Any]]) -> bool:
    """Return whether paired legs lie in the same blocks."""
    return all(a == b for a, b in pairs if a is None or b is None or a < 0 or b < 0)


def put(terms: Sum, factor: Ratio, d: Diagram, pairs: Iterable[tuple[int, int]] = ()) -> None:
    """Add a term to a sum, its wires joined in pairs and then numbered; nothing if it is zero."""
    if not meet(pairs):
        return
    target = list(range(len(d.sorts)))

    def find(wire: int) -> int:
        while target[wire] != wire:
            wire = target[wire]
        return wire

    held: dict[Key, int] = {}
    same_index = [(held.setdefault(key, wire), wire) for key, wire in d.named]
    for a, b in [*pairs, *same_index]:
        if a >= 0:
            demand(d.sorts[a] == d.sorts[b], "two wires of different sizes are joined")
            target[find(a)] = find(b)
    boxes = [(label, tuple([find(wire) for wire in wires])) for label, wires in d.boxes]
    names = sorted((key, find(wire)) for key, wire in held.items())
    on = [wire for _, wire in names]
    integers = [wire for (index, _), wire in names if index[0].isdigit()]
    if len(set(integers)) < len(integers):
        return
    rows, cols = [[find(w) if w >= 0 else w for w in legs] for legs in (d.rows, d.cols)]
    touched = {*rows, *cols, *[wire for _, wires in boxes for wire in wires]}
    names = [(key, w) for key, w in names if w in touched or on.count(w) > 1]
    new: dict[int, int] = {}
    for wire in [*[w for w in (*rows, *cols) if w >= 0], *[w for _, w in names]]:
        new.setdefault(wire, len(new))
    settle([(label, k, wires) for (label, wires), k in Counter(boxes).items()], new, [MAX_TRIES])
    for wire in range(len(target)):
        if target[wire] == wire and wire not in new and wire not in on:
            factor = multiply(factor, (dict(d.sorts[wire]), UNITY))
    rows, cols = [[new[w] if w >= 0 else w for w in legs] for legs in (rows, cols)]
    boxes = sorted([(label, tuple([new[w] for w in wires])) for label, wires in boxes])
    named = tuple([(key, new[w]) for key, w in names])
    sorts = tuple([d.sorts[w] for w in new])
    form = Diagram(tuple(rows), tuple(cols), named, tuple(boxes), sorts)
    total = add(terms[form], factor) if form in terms else factor
    if total[0]:
        terms[form] = total
    else:
        terms.pop(form, None)
    demand(len(terms) <= MAX_TERMS, "there are too many terms")


def added(*scaled: tuple[Sum, Ratio]) -> Sum:
    """Return a sum of sums, each times its coefficient."""
    total: Sum = {}
    for terms, by in scaled:
        for d, factor in terms.items():
            total[d] = add(total.get(d, number(0)), multiply(factor, by))
    return {d: factor for d, factor in total.items() if factor[0]}


# -- numbering wires, so that diagrams that differ in the names of wires only become the same ------

Counted = tuple[str, int, tuple[int, ...]]  # the label of a box, how often it occurs, its wires


def settle(boxes: list[Counted], new: dict[int, int], tries: list[int], fast: bool = False) -> None:
    """Number all wires of boxes, going on from those in `new`, by what the diagram looks like.

    Boxes that are told apart are taken in order. Where none is, each connected part is numbered by
    itself; in a single part each box of the rarest kind is tried as the next one, and the least
    result is kept. A `fast` numbering tries the first only: boxes that have the same fast result
    are carried into each other by a symmetry, so one of them is enough.
    """
    while True:
        boxes = [box for box in boxes if any(wire not in new for wire in box[2])]
        if not boxes:
            return
        kinds: dict[tuple[Any, ...], list[Counted]] = {}
        for box in boxes:
            kinds.setdefault(seen(box, new), []).append(box)
        single = sorted([kind for kind, alike in kinds.items() if len(alike) == 1])
        if not single:
            break
        for kind in single:
            take(kinds[kind][0], new)
    results = []
    parts = connected(boxes, new)
    for part in parts if len(parts) > 1 else []:
        at = dict(new)
        settle(part, at, tries, fast)
        results.append((form(part, at), list(at)[len(new) :]))
    if len(parts) == 1:
        rarest = kinds[min(kinds, key=lambda kind: (len(kinds[kind]), kind))]
        results.append(least(boxes, rarest, new, tries, fast))
    for _, wires in sorted(results):
        for wire in wires:
            new[wire] = len(new)


def least(
    boxes: list[Counted],
    candidates: list[Counted],
    new: dict[int, int],
    tries: list[int],
    fast: bool,
) -> tuple[list[tuple[Any, ...]], list[int]]:
    """Return the least form of boxes when one of the candidates is next, and the wires in order."""
    results, met = [], []
    for box in candidates[: 1 if fast else None]:
        demand(tries[0], "a diagram has too many symmetries")
        tries[0] -= 1
        at = dict(new)
        take(box, at)
        quick = dict(at)
        settle(boxes, quick, tries, fast=True)
        if fast:
            at = quick
        elif form(boxes, quick) in met:
            continue
        else:
            met.append(form(boxes, quick))
            settle(boxes, at, tries)
        results.append((form(boxes, at), list(at)[len(new) :]))
    return min(results)


def take(box: Counted, new: dict[int, int]) -> None:
    """Number the wires of a box, as they come."""
    for wire in box[2]:
        new.setdefault(wire, len(new))


def seen(box: Counted, new: dict[int, int]) -> tuple[Any, ...]:
    """Return a box by the numbers of its wires; those that have none yet are told apart."""
    return (*box[:2], *[new.get(wire, -1 - box[2].index(wire)) for wire in box[2]])


def form(boxes: list[Counted], new: dict[int, int]) -> list[tuple[Any, ...]]:
    """Return boxes by the numbers of their wires."""
    return sorted([seen(box, new) for box in boxes])


def connected(boxes: list[Counted], new: dict[int, int]) -> list[list[Counted]]:
    """Return the boxes in parts that share no wire without a number."""
    parts: list[tuple[set[int], list[Counted]]] = []
    for box in boxes:
        wires = {wire for wire in box[2] if wire not in new}
        apart = [part for part in parts if not part[0] & wires]
        mine = [part for part in parts if part[0] & wires]
        joint = wires.union(*[part[0] for part in mine])
        parts = [*apart, (joint, [b for part in mine for b in part[1]] + [box])]
    return [part for _, part in parts]


# -- how legs are wired: from the rows and columns of each factor to pairs, rows, columns ----------


class Cut(tuple[Any, ...]):
    """The legs of each block of a size that is cut in blocks."""


class Value(NamedTuple):
    """What a tree stands for: a matrix or a scalar, the sizes of its legs, and its terms."""

    matrix: bool
    rows: tuple[Any, ...]
    cols: tuple[Any, ...]
    terms: Sum


def paired(a: Any, b: Any) -> list[tuple[Any, Any]]:
    """Return two lists of legs paired off, None where one is longer."""
    return list(zip_longest(a, b))


def is_cut(legs: Any) -> bool:
    """Return whether legs end in a cut."""
    return bool(legs) and isinstance(legs[-1], Cut)


def beneath(a: Any, b: Any) -> Any:
    """Return the legs a, the slow ones, then b; legs that follow a cut go into each block."""
    if is_cut(a):
        return (*a[:-1], Cut(beneath(block, b) for block in a[-1]))
    return (*a, *b)


def branches(legs: Any) -> list[tuple[Any, ...]]:
    """Return the ways through the blocks of legs, with the mark -1 - k before those of block k."""
    if not is_cut(legs):
        return [tuple(legs)]
    ways = enumerate(map(branches, legs[-1]))
    return [(*legs[:-1], -1 - k, *inner) for k, found in ways for inner in found]


def stacked(blocks: Iterable[Any]) -> tuple[Any, list[int]]:
    """Return the legs of blocks one after the other, cuts in them opened, and where each starts."""
    blocks = list(blocks)
    if len(blocks) == 1:
        return blocks[0], [0]
    flat: list[Any] = []
    starts = []
    for block in blocks:
        starts.append(len(flat))
        flat += block[0] if block and isinstance(block[0], Cut) else [block]
    return (Cut(flat),), starts


def entered(block: Any, start: int, wires: Any) -> tuple[int, ...]:
    """Return the wires of a term in a block that starts at `start` (see `stacked`)."""
    if block and isinstance(block[0], Cut):
        return (wires[0] - start, *wires[1:])
    return (-1 - start, *wires)


def opened(legs: Any) -> Any:
    """Return legs with the cuts opened that stand at the beginning of a block."""
    return (*legs[:-1], *stacked(map(opened, legs[-1]))[0]) if is_cut(legs) else legs


def opened_wires(legs: Any, wires: Any) -> tuple[int, ...]:
    """Return the wires of a term on legs after `opened`."""
    if not is_cut(legs):
        return tuple(wires)
    front = len(legs) - 1
    block, blocks = -1 - wires[front], [opened(block) for block in legs[-1]]
    inner = opened_wires(legs[-1][block], wires[front + 1 :])
    return (*wires[:front], *entered(blocks[block], stacked(blocks)[1][block], inner))


def sized(legs: Any) -> Size:
    """Return the size of legs."""
    total = UNITY
    for leg in legs:
        inner = [sized(block) for block in leg] if isinstance(leg, Cut) else [leg]
        total = times(total, collected([part for size in inner for part in size]))
    return tuple(sorted(total.items()))


WIRING: dict[str, Callable[..., tuple[Any, Any, Any]]] = {
    "Transpose": lambda r, c: ((), c, r),
    "Adjoint": lambda r, c: ((), c, r),  # the language is real
    "vec_rows": lambda r, c: ((), beneath(r, c), ()),
    "vec_cols": lambda r, c: ((), beneath(c, r), ()),
    "Trace": lambda r, c: (paired(r, c), (), ()),
    "DiagMatrix": lambda r, c: ((), beneath(r, c), beneath(r, c)),  # of a column or a row
    "DiagonalOf": lambda r, c: (paired(r, c), r, ()),
    "DiagonalMatrix": lambda r, c: (paired(r, c), r, c),
    "MatMul": lambda r, c, s, t: (paired(c, s), r, t),
    "KroneckerProduct": lambda r, c, s, t: ((), beneath(r, s), beneath(c, t)),
    "HadamardProduct": lambda r, c, s, t: (paired(r, s) + paired(c, t), r, c),
    "MatrixElement": lambda r, c, i, _, j, __: (paired(r, i) + paired(c, j), (), ()),
    "KroneckerDelta": lambda i, _, j, __: (paired(i, j), (), ()),
    "entry": lambda i, _, j, __, r, c: ((), i, j),  # of an explicit matrix, in its place
}
SCALAR = ("Trace", "MatrixElement", "KroneckerDelta", "Sum")
SCOPED = ("HeadSum", "ConcatHeads", "StackHeads", "Sum")
NAMED = ("MatrixSymbol", "FamilyMember")
SIZED = ("Identity", "OneMatrix", "ZeroMatrix", "OneHot", "KroneckerDelta", "CausalMask")
NUMBERS = ("Symbol", "Rational", "Add", "Mul", "Pow")
STATED = ("schema", "sizes", "scalars", "tensors", "given")  # with the sides and their indices
NO_PROOF: dict[str, Any] = {"splits": [], "fused": False, "defined": {}}


class Reader:
    """The declarations of a certificate, and the reading of its trees."""

    def __init__(self, c: dict[str, Any]) -> None:
        demand(c["schema"] == 2, f"the schema is {c['schema']}, and 2 is read here")
        self.in_statement, self.in_function, self.strict = True, False, False
        self.powers: list[tuple[Ratio, bool, bool]] = []  # of the statement: divisors, radicands
        self.lengths: set[Size] = set()  # the sizes in the statement
        self.sizes, self.scalars = set(c["sizes"]), set(c["scalars"])
        names = [*c["sizes"], *c["scalars"], *c["indices"], *c["tensors"], *c["defined"]]
        demand(len(set(names)) == len(names), "a name is declared twice")
        demand(all(name[0] not in "#'?" for name in names), "a name begins with #, ? or '")
        signs = set(c["scalars"].values())
        demand(signs <= {"real", "positive"}, "a scalar is neither real nor positive")
        self.positive = self.sizes | {s for s in c["scalars"] if c["scalars"][s] == "positive"}
        self.scope: dict[str, Size] = {}  # the indices in scope, and how far they run
        self.at: dict[str, int] = {}  # the values of those that are taken one by one
        self.apart, self.fused = c["mode"] == "written out", c["fused"]
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
        self.given, self.defined = c["given"], c["defined"]
        self.lengths.clear()  # of what is declared, those count that the statement speaks of
        self.integers: set[tuple[int, Size]] = set()  # the integer indices that trees name
        self.boxes: list[tuple[str, list[Size], list[Value]]] = []  # the boxes that trees define
        self.met: set[tuple[int, tuple[Key | None, ...]]] = set()  # boxes of the statement, where
        self.bound_names: frozenset[str] = frozenset()  # the indices in scope that take all values
        self.claim = c

    def declared(self, tree: Any) -> None:
        """Demand that the symbols of a tree are declared."""
        if type(tree) is list and tree[0] in ("MatrixSymbol", "FamilyMember"):
            demand(len(tree) == 2 + len(self.tensors[tree[1]][0]), "a matrix has other indices")
        elif type(tree) is list and tree[0] == "Symbol":
            self.number(tree)
        elif type(tree) is list:
            for part in tree:
                self.declared(part)

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
            return self.powered_number(values[0], values[1][0].get((), Fraction(0)))
        demand(kind in ("Add", "Mul"), f"{kind} is not a number")
        result = values[0]
        for value in values[1:]:
            result = add(result, value) if kind == "Add" else multiply(result, value)
        return result

    def powered_number(self, base: Ratio, exponent: Fraction) -> Ratio:
        """Return a power; what may vanish is divided by, and a root taken, as in the statement."""
        divides, root = exponent < 0, exponent.denominator > 1
        if self.in_statement:
            self.powers.append((base, divides, root))
        elif divides or root:
            products = [known[0] for known, divisor, _ in self.powers if divisor]
            nonzero = {name for p in products if len(p) == 1 for name, _ in next(iter(p))}
            names = {name for monomial in base[0] for name, _ in monomial if name[0] != "#"}
            lone = len(base[0]) == 1 and base[1] == UNITY
            safe = lone and names <= self.positive | (set() if root else nonzero)
            safe = safe or any(
                divisor >= divides and other >= root and not add(base, multiply(known, MINUS))[0]
                for known, divisor, other in self.powers
            )
            demand(safe, "a number that may vanish is divided by, or its root taken")
        return power(base, exponent, self.positive)

    def size(self, tree: Any) -> Size:
        """Return a size, which is a polynomial in the symbols of sizes with integer factors."""
        polynomial, denominator = self.number(tree)
        powers = [leg for monomial in polynomial for leg in monomial]
        whole = all(e > 0 and e.denominator == 1 and name in self.sizes for name, e in powers)
        integral = all(factor.denominator == 1 for factor in polynomial.values())
        demand(denominator == UNITY and whole and integral, f"{tree} is not a size")
        demand(powers or (polynomial and polynomial[()] > 0), "a size is not positive")
        size = tuple(sorted(polynomial.items()))
        if self.in_statement:
            self.lengths.add(size)
        natural = all(factor > 0 for factor in polynomial.values())
        demand(natural or size in self.lengths, "a size that may vanish is not in the statement")
        return size

    def values(self, size: Size) -> int:
        """Return how many values a size has that is to be taken apart, else 0."""
        number = dict(size).get((), 0) if self.apart and set(dict(size)) == {()} else 0
        demand(number <= MAX_POWER, "a size is too large to be written out")
        return int(number)

    def legs(self, size: Size) -> tuple[Any, ...]:
        """Return the legs that a size stands for."""
        if self.values(size) > 1:
            return (Cut([()] * self.values(size)),)
        if size in self.splits:
            return self.legs_of(self.splits[size])
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

    def legs_of(self, parts: Any) -> Any:
        """Return the legs of the parts of a split."""
        legs: Any = ()
        for part in parts:
            if type(part) is list and part[0] == "|":
                legs = beneath(legs, stacked([self.legs_of(block) for block in part[1:]])[0])
            else:
                legs = beneath(legs, self.legs(self.size(part)))
        return opened(legs) if self.apart else legs

    def index(self, index: Any, count: Size) -> tuple[Any, tuple[Any, ...]]:
        """Return an index and its leg, none where it has one value; refuse it out of its range."""
        legs = self.legs(count)
        apart = legs[:-1] == () and is_cut(legs) and not any(legs[-1])  # each value is a block
        demand(apart or not (legs[1:] or is_cut(legs)), "an index over a size that is split")
        if type(index) is str:
            demand(self.scope.get(index) == count, f"the index {index} does not run over that size")
            index = self.at.get(index, index)
        if type(index) is int:
            if self.in_statement:  # to name an integer presupposes that it is in range
                self.integers.add((index, count))
            known = (index, count) in self.integers or index == 0
            if set(dict(count)) <= {()}:
                known = index < dict(count).get((), 0)
            demand(known and index >= 0, f"the integer index {index} is out of range")
        else:
            demand(index is None or type(index) is str, "an index is a name or a natural number")
            demand(not apart, "an index over a number of values has no value")
        return index, legs

    # -- results -----------------------------------------------------------------------------------

    def done(self, value: Value) -> Value:
        """Return a result, where numbers are taken apart with the cuts in its legs opened."""
        if not self.apart:
            return value
        terms: Sum = {}
        for d, factor in value.terms.items():
            rows, cols = opened_wires(value.rows, d.rows), opened_wires(value.cols, d.cols)
            put(terms, factor, d._replace(rows=rows, cols=cols))
        return Value(value.matrix, opened(value.rows), opened(value.cols), terms)

    def combined(self, kind: str, *values: Value) -> Value:
        """Return the result of an operation that joins or reorders legs, term by term."""
        wiring = WIRING[kind]
        joins, rows, cols = wiring(*[legs for value in values for legs in value[1:3]])
        demand(all(a == b for a, b in joins), f"the sizes in a {kind} do not fit")
        demand(len(values[0].terms) * len(values[-1].terms) <= MAX_TERMS, "too many terms")
        terms: Sum = {}
        for parts in product(*[value.terms.items() for value in values]):
            if not meet(wiring(*[legs for d, _ in parts for legs in d[:2]])[0]):
                continue
            factor, whole = ONE, UNIT
            legs: list[tuple[int, ...]] = []
            for d, other in parts:
                legs += [shifted(d.rows, len(whole.sorts)), shifted(d.cols, len(whole.sorts))]
                factor, whole = multiply(factor, other), beside(whole, d)
            wires, r, c = wiring(*legs)
            put(terms, factor, whole._replace(rows=r, cols=c), wires)
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
        legs, terms, mark = self.index(None, count)[1], Sum(), "'" + index
        for d, factor in a.terms.items():
            mine = tuple([w for (name, _), w in d.named if name == mark])
            if legs and not mine:  # nothing depends on the index
                mine, d = (len(d.sorts),), d._replace(sorts=d.sorts + legs)
            named = tuple([leg for leg in d.named if leg[0][0] != mark])
            rows, cols = self.placed(kind, mine, d.rows, d.cols)
            put(terms, factor, d._replace(rows=rows, cols=cols, named=named))
        return self.done(Value(a.matrix, *self.placed(kind, legs, a.rows, a.cols), terms))

    @staticmethod
    def placed(kind: str, new: Any, rows: Any, cols: Any) -> tuple[Any, Any]:
        """Return rows and columns with the leg of an index in its place."""
        if kind == "StackHeads":
            return new + rows, cols
        return rows, new + cols if kind == "ConcatHeads" else cols + new * (kind == "for all")

    def leaf(self, rows: Any, cols: Any, held: Any = (), label: Any = None) -> Value:
        """Return a box on its own wires, or ones; a diagram for each block; `held` are indices."""
        terms: Sum = {}
        for r, c in product(branches(rows), branches(cols)):
            sorts = [leg for leg in (*r, *c, *[leg for _, leg in held]) if not isinstance(leg, int)]
            wires = iter(range(len(sorts)))
            mine = [laid(x, wires) for x in (r, c)]
            named = tuple([(key, next(wires)) for key in held])
            touched = (*[w for _, w in named], *[w for legs in mine for w in legs if w >= 0])
            boxes = ((labelled(label, r, c), touched),) if label else ()
            put(terms, ONE, Diagram(mine[0], mine[1], named, boxes, tuple(sorts)))
        return Value(True, rows, cols, terms)

    def identity(self, legs: Any) -> Value:
        """Return the identity: rows and columns on the same wires."""
        terms = {d._replace(cols=d.rows): factor for d, factor in self.leaf(legs, ()).terms.items()}
        return Value(True, legs, legs, terms)

    def one_hot(self, index: Any, size: Size) -> Value:
        """Return the unit column of an index: a wire that is held there, or one of many values."""
        index, legs = self.index(index, size)
        if is_cut(legs):
            return Value(True, legs, (), {UNIT._replace(rows=(-1 - index,)): ONE})
        named = tuple([(held_at(index, leg), 0) for leg in legs])
        (d,) = self.leaf(legs, ()).terms
        return Value(True, legs, (), {d._replace(named=named): ONE})

    # -- the kinds of trees ------------------------------------------------------------------------

    def read(self, tree: Any) -> Value:
        """Return what a tree stands for."""
        if is_number(tree):
            value = self.number(tree)
            return Value(False, (), (), {UNIT: value} if value[0] else {})
        kind, *args = tree
        if kind in ("MatrixSymbol", "FamilyMember"):
            return self.leaf(*self.tensor(args[0], args[1:]))
        if kind == "Identity":
            return self.identity(self.legs(self.size(args[0])))
        if kind in ("OneMatrix", "ZeroMatrix"):
            rows, cols = [self.legs(self.size(arg)) for arg in args]
            return self.leaf(rows, cols) if kind == "OneMatrix" else Value(True, rows, cols, {})
        if kind == "OneHot":
            return self.one_hot(args[0], self.size(args[1]))
        if kind == "ImmutableDenseMatrix":
            return self.explicit(*args)
        if kind == "BlockMatrix":
            demand(len({len(line) for line in args}) == 1, "a BlockMatrix lacks blocks")
            places = [(i, j, tree) for i, line in enumerate(args) for j, tree in enumerate(line)]
            return self.blocks([(i, j, self.read(block)) for i, j, block in places])
        if kind == "BlockDiagMatrix":
            return self.blocks([(k, k, self.read(block)) for k, block in enumerate(args)])
        if kind in SCOPED:
            return self.scoped(kind, *args)
        if kind == "LayerProduct":
            return self.layers(*args)
        if kind in ("RowSoftmax", "Activation"):
            return self.function(kind, *args)
        if kind in ("RMSNorm", "LayerNorm"):
            demand(not self.read(args[1]).matrix, "the eps of a norm is a matrix")
            return self.read(norm(kind, *args, *self.shape(args[0])))
        if kind == "CausalMask":
            size = self.size(args[0])
            legs = self.legs(size)
            return self.leaf(legs, legs, (), ["#mask", str(size)] if legs else None)
        if kind == "KroneckerDelta":
            i, j, size = args
            return self.combined(kind, *[self.one_hot(k, self.size(size)) for k in (i, j)])
        if kind == "KroneckerProduct" and self.fused:
            args = fused(args)
        if kind == "MatPow" and type(args[1]) is int and args[1] < 0:
            return self.powered("MatMul", self.inverse(args[0]), -args[1])
        if kind == "Pow" and type(args[1]) is int and args[1] < 0:
            one_entry = self.inverse(["ImmutableDenseMatrix", 1, 1, args[0]])
            return self.powered("MatMul", one_entry._replace(matrix=False), -args[1])
        exponent = args.pop() if kind in ("MatPow", "Pow", "HadamardPower") else 1
        indices = [args.pop(), args.pop()][::-1] if kind == "MatrixElement" else []
        values = [self.read(arg) for arg in args]
        if kind in ("MatAdd", "Add"):
            return self.plus(values)
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
        ends = zip(indices, a[1:3], strict=False)
        return self.combined(kind, *values, *[self.one_hot(i, sized(legs)) for i, legs in ends])

    def tensor(self, name: str, indices: Any) -> tuple[Any, Any, list[Any], Any]:
        """Return the legs of rows and columns, the indices that are wires and the name of a box.

        In a context some indices are null; they are told apart by their place.
        """
        counts, rows, cols = self.tensors[name]
        if self.in_statement:
            self.lengths |= {*counts, rows, cols}
        held: list[Key] = []
        fixed: list[int | None] = []
        for place, (given, count) in enumerate(zip(indices, counts, strict=True)):
            i, legs = self.index(given, count)
            number = type(i) is int and legs and (is_cut(legs) or not self.in_function)
            fixed.append(i if number else None)
            if not number:
                held += [(f"?{place}", leg) if i is None else held_at(i, leg) for leg in legs]
        return self.legs(rows), self.legs(cols), held, [name, fixed]

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
        return self.plus(values)

    def plus(self, values: list[Value]) -> Value:
        """Return the sum of values of one shape."""
        demand(all(v[:3] == values[0][:3] for v in values), "a sum of different shapes")
        return values[0]._replace(terms=added(*[(value.terms, ONE) for value in values]))

    def powered(self, kind: str, base: Value, exponent: Any) -> Value:
        """Return a power with a natural exponent, a product from left to right."""
        demand(type(exponent) is int and 0 <= exponent <= MAX_POWER, "a power that is not natural")
        if exponent or not base.matrix:
            return self.multiplied(kind, [base] * exponent or [self.read(1)])
        rows, cols = self.legs(sized(base.rows)), self.legs(sized(base.cols))
        if kind == "HadamardProduct":
            return self.leaf(rows, cols)
        demand(rows == cols, "a power of a matrix that is not square")
        return self.identity(rows)

    def layers(self, body: Any, limit: Any, reverse: Any) -> Value:
        """Return a product over layers: the later one on the left, or on the right."""
        index, count = limit
        demand(type(count) is int and 0 <= count <= MAX_POWER, "layers that are not counted")
        if not count:  # the body has a shape, and nothing in it need be defined
            outer, self.in_statement = self.in_statement, False
            square = self.inside([[index, 1]], body)
            self.in_statement = outer
            return self.powered("MatMul", square, 0)
        return self.multiplied("MatMul", self.each(index, count, body)[:: 1 if reverse else -1])

    def each(self, index: str, count: int, body: Any) -> list[Value]:
        """Return a body for each value of an index."""
        return [self.inside([[index, count]], body, {index: value}) for value in range(count)]

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
            whole = len(legs[side]) == 1
            return tuple(wires) if whole else entered(block, both[side][1][place], wires)

        terms: Sum = {}
        for i, j, a in placed:
            for d, factor in a.terms.items():
                rows, cols = inside(0, i, a.rows, d.rows), inside(1, j, a.cols, d.cols)
                put(terms, factor, d._replace(rows=rows, cols=cols))
        return self.done(Value(True, both[0][0], both[1][0], terms))

    def scoped(self, kind: str, body: Any, *limits: Any) -> Value:
        """Return a sum over indices, or matrices side by side or one below the other."""
        (index, count), *others = limits
        many = self.values(self.size(count))
        if many:
            return self.many(
                kind, self.each(index, many, [kind, body, *others] if others else body)
            )
        value = self.inside([limits[0]], [kind, body, *others] if others else body)
        demand(value.matrix == (kind != "Sum"), f"the body of a {kind} is of the wrong kind")
        return self.bound(value, kind, index, self.size(count))

    def many(self, kind: str, values: list[Value]) -> Value:
        """Return the sum of values, or the matrices side by side or one below the other."""
        wrong = any(value.matrix != (kind != "Sum") for value in values)
        demand(not wrong, f"the body of a {kind} is of the wrong kind")
        if kind in ("HeadSum", "Sum"):
            return self.plus(values)
        by_rows = kind == "StackHeads"
        return self.blocks(
            [(k, 0, value) if by_rows else (0, k, value) for k, value in enumerate(values)]
        )

    def inside(self, limits: Any, tree: Any, at: dict[str, int] | None = None) -> Value:
        """Return what a tree stands for where these indices are in scope, some at a value."""
        return self.under(limits, lambda: self.read(tree), at)

    def under(self, limits: Any, what: Callable[[], Any], at: dict[str, int] | None = None) -> Any:
        """Return what is found where these indices are in scope, some at a value."""
        outer = self.scope, self.at, self.bound_names
        for index, count in limits:
            demand(type(index) is str and index not in self.sizes, f"{index} is not an index")
            self.scope = {**self.scope, index: self.size(count)}
            self.at = {name: value for name, value in self.at.items() if name != index}
            self.bound_names |= {index}
        self.at = {**self.at, **(at or {})}
        found = what()
        self.scope, self.at, self.bound_names = outer
        return found

    # -- boxes that are defined by an argument -----------------------------------------------------

    def inverse(self, tree: Any) -> Value:
        """Return the inverse of a matrix: of its parts, where they are square, or a box."""
        kind, *args = tree
        if kind == "Identity":
            return self.read(tree)
        if kind == "MatPow" and type(args[1]) is int:
            return self.read(["MatPow", args[0], -args[1]])
        if kind in ("Transpose", "Adjoint"):
            return self.combined("Transpose", self.inverse(args[0]))
        if kind in ("KroneckerProduct", "MatMul"):
            numbers = [arg for arg in args if is_number(arg)]
            factors = [arg for arg in args if not is_number(arg)]
            if all(self.is_square(factor) for factor in factors):
                inverted = [self.read(["Pow", each, -1]) for each in numbers]
                inverted += map(self.inverse, factors if kind[0] == "K" else reversed(factors))
                return self.multiplied(kind, inverted)
        argument = self.read(tree)
        demand(
            argument.matrix and argument.rows == argument.cols, "the inverse of no square matrix"
        )
        number, held = self.definition("Inverse", [argument])
        return self.leaf(argument.rows, argument.cols, held, ["#", number])

    def is_square(self, tree: Any) -> bool:
        """Return whether a tree stands for a square matrix."""
        value = self.read(tree)
        return value.matrix and sized(value.rows) == sized(value.cols)

    def shape(self, tree: Any) -> list[Any]:
        """Return the sizes of the rows and columns of a matrix, as trees."""
        value = self.read(tree)
        demand(value.matrix, "a matrix is wanted, and a scalar given")
        return [size_tree(sized(legs)) for legs in value[1:3]]

    def function(self, kind: str, *args: Any) -> Value:
        """Return a function of the rows of a matrix, or of its entries, block by block."""
        outer, self.in_function = self.in_function, True
        by_row = kind == "RowSoftmax"
        demand((by_row and len(args) < 3) or len(args) == 2, f"{kind} of too many arguments")
        values = [self.read(tree) for tree in (args if by_row else args[1:])]
        self.in_function = outer
        first, name = values[0], kind if by_row else f"{kind} {args[0]}"
        fits = all(value.matrix and value[:3] == first[:3] for value in values)
        demand(by_row or type(args[0]) is str, "an activation has no name")
        demand(fits, f"the arguments of a {kind} do not fit")
        terms: Sum = {}
        for r, c in product(branches(first.rows), [()] if by_row else branches(first.cols)):
            slots = [(f"?{k}", leg) for k, leg in enumerate((*r, *c)) if not isinstance(leg, int)]
            marks = [min(leg, 0) if isinstance(leg, int) else 0 for leg in (*r, *c)]
            arguments = []
            for value in values:
                mine: Sum = {}
                for d, factor in value.terms.items():
                    legs = d.rows if by_row else (*d.rows, *d.cols)
                    if meet(zip(legs, marks, strict=True)):
                        wires = [wire for wire in legs if wire >= 0]
                        named = (*d.named, *zip(slots, wires, strict=True))
                        cols = d.cols if by_row else ()
                        put(mine, factor, d._replace(rows=(), cols=cols, named=named))
                arguments.append(Value(True, (), first.cols if by_row else (), mine))
            for d, factor in self.cell(name, arguments).terms.items():
                where, sorts = dict(d.named), list(d.sorts)
                for slot in slots:
                    if slot not in where:
                        where[slot] = len(sorts)
                        sorts.append(slot[1])
                on = iter([where.pop(slot) for slot in slots])
                rows, cols = laid(r, on), laid(c, on)
                whole = Diagram(rows, cols or d.cols, tuple(where.items()), d.boxes, tuple(sorts))
                put(terms, factor, whole)
        return Value(True, first.rows, first.cols, terms)

    def cell(self, name: str, arguments: list[Value]) -> Value:
        """Return a function of one block: a number, or a box times what passes through it."""
        first, factor = arguments[0], ONE
        ways = {tuple(marks_of(d.cols)) for d in arguments[-1].terms}
        if name == "RowSoftmax" and is_cut(first.cols) and len(arguments) == 2 and len(ways) == 1:
            way = next(way for way in branches(first.cols) if (*marks_of(way),) in ways)
            inner = self.cell(name, [within(way, argument) for argument in arguments])
            seen = {d._replace(cols=laid(way, iter(d.cols))): by for d, by in inner.terms.items()}
            return inner._replace(cols=first.cols, terms=seen)
        if name == "RowSoftmax":
            kept = {d: by for d, by in first.terms.items() if not is_constant(d)}
            if is_cut(first.cols) and not any(first.cols[-1]):  # columns one by one: less the first
                base = [(d, by) for d, by in kept.items() if d.cols == (-1,)]
                ends = [(-1 - k,) for k in range(len(first.cols[-1]))]
                every = {d._replace(cols=end): by for d, by in base for end in ends}
                kept = added((kept, ONE), (every, MINUS))
            arguments = [first._replace(terms=kept), *arguments[1:]]
            if not kept and not arguments[1:]:
                ones = self.leaf((), first.cols)
                mean = self.powered_number((dict(sized(first.cols)), UNITY), Fraction(-1))
                return ones._replace(terms=added((ones.terms, mean)))
        degree = DEGREES.get(name)
        if degree is not None:
            content = self.content(first.terms)
            factor = power(content, degree, self.positive)
            inverse = power(content, Fraction(-1), set())
            arguments = [first._replace(terms=added((first.terms, inverse)))]
        whole = arguments[0].terms
        numerator, denominator = whole.get(UNIT, number(0))
        if not {*whole} - {UNIT} and not {*numerator} - {()} and denominator == UNITY:
            value = VALUES.get(name, {}).get(numerator.get((), Fraction(0)))
            if value is not None:
                return Value(True, (), (), added(({UNIT: factor}, number(value))))
        k, held = self.definition(name, arguments)
        box = self.leaf((), first.cols, held, ["#", k])
        return box._replace(terms=added((box.terms, factor)))

    def content(self, terms: Sum) -> Ratio:
        """Return the largest factor of a sum that is known to be positive."""
        parts = [leg for numerator, _ in terms.values() for leg in numerator.items()]
        if not parts or any(denominator != UNITY for _, denominator in terms.values()):
            return ONE
        numbers = [factor for _, factor in parts]
        common = Fraction(
            gcd(*[f.numerator for f in numbers]), lcm(*[f.denominator for f in numbers])
        )
        least = [
            (name, min(dict(m).get(name, Fraction(0)) for m, _ in parts))
            for name in sorted({name for m, _ in parts for name, _ in m} & self.positive)
        ]
        return {tuple([leg for leg in least if leg[1]]): common}, UNITY

    def definition(self, kind: str, arguments: list[Value]) -> tuple[int, list[Key]]:
        """Return the number of the box of these arguments, and the indices that its wires are at.

        Arguments that differ in the names of their indices only define one box. An inverse is
        that of the statement, and so is, where it is to be `strict`, what is not always defined.
        """
        keys = sorted({key for a in arguments for d in a.terms for key, _ in d.named})
        demand(len(keys) <= MAX_INDICES, "a definition has too many free indices")
        shapes = [a[:3] for a in arguments]

        def slotted(order: Any) -> list[Value]:
            slots = {key: (f"?{k}", key[1]) for k, key in enumerate(order)}
            found = []
            for a in arguments:
                terms: Sum = {}
                for d, factor in a.terms.items():
                    named = tuple([(slots[key], wire) for key, wire in d.named])
                    put(terms, factor, d._replace(named=named))
                found.append(a._replace(terms=terms))
            return found

        k, held = len(self.boxes), keys
        for order in permutations(keys):
            sizes, mine = [size for _, size in order], list[Value]()
            for known, (other, slots, values) in enumerate(self.boxes):
                if other == kind and slots == sizes and [a[:3] for a in values] == shapes:
                    mine = mine or slotted(order)
                    pairs = zip(values, mine, strict=True)
                    if not any(added((a.terms, ONE), (b.terms, MINUS)) for a, b in pairs):
                        k, held = known, list(order)
            if k < len(self.boxes):
                break
        else:
            self.boxes.append((kind, [size for _, size in keys], slotted(keys)))
        every = {"'" + name for name in self.bound_names}
        places = [None if key[0][0] == "?" or key[0] in every else key for key in held]
        if self.in_statement:
            self.met.add((k, tuple(places)))
        elif kind == "Inverse" or self.strict:
            total = kind != "Inverse" and kind != "Activation rsqrt" and not arguments[1:]
            everywhere = product(*[{None, place} for place in places])
            met = total or any((k, each) in self.met for each in everywhere)
            demand(met, "a box is used that is not defined in the statement")
        return k, held

    # -- facts, and their uses ---------------------------------------------------------------------

    def fact(self, kind: str, name: Any, *more: Any) -> Value:
        """Return lhs - rhs of a fact, the indices it holds for all of as further columns."""
        if kind == "axiom":
            return self.axiom(name, *more)
        if kind == "inverse":
            ((of, tree, exponent), *limits) = self.defined[name]
            demand(of == "MatPow" and exponent == -1, f"{name} is no inverse")
            demand(more in (("left",), ("right",)), "a side of an inverse is left or right")
            factors = [["MatPow", tree, -1], tree][:: 1 if more == ("left",) else -1]
            lhs, rhs = ["MatMul", *factors], ["MatPow", tree, 0]
            return self.for_all(limits, self.inside(limits, lhs), self.inside(limits, rhs))
        outer, self.in_statement = self.in_statement, True
        value = self.hypothesis(kind, name, *more)
        self.in_statement = outer
        return value

    def hypothesis(self, kind: str, name: Any, *more: Any) -> Value:
        """Return lhs - rhs of a hypothesis, or of what it gives besides."""
        demand(type(name) is int and 0 <= name < len(self.given), "a use of an unlisted hypothesis")
        lhs, rhs, *limits = self.given[name]
        if kind == "given" and self.apart:
            at = dict(zip([index for index, _ in limits], more, strict=True))
            return self.for_all([], *[self.inside(limits, side, at) for side in (lhs, rhs)])
        if kind != "given":
            lhs, rhs = (lhs, rhs) if rhs[0] in ("Identity", "ZeroMatrix") else (rhs, lhs)
            factors = flat_factors(lhs)
        if kind == "turned":
            (at,) = more
            demand(rhs[0] == "Identity", "a hypothesis is turned that gives no identity")
            demand(type(at) is int and 0 < at < len(factors), "a product is turned at no place")
            lhs = ["MatMul", *factors[at:], *factors[:at]]
        elif kind == "root":
            demand(rhs[0] == "ZeroMatrix" and len(factors) == 2, "no product that is zero")
            x, y = map(json.dumps, factors)
            turned = [json.dumps(["Transpose", factor]) for factor in factors]
            demand(x == turned[1] or y == turned[0], "no product of a matrix and its transpose")
            lhs = factors[1] if x == turned[1] else factors[0]
            zero = self.inside(limits, lhs)
            return self.for_all(limits, zero, zero._replace(terms={}))
        else:
            demand(kind == "given", f"{kind} is no fact")
        return self.for_all(limits, self.inside(limits, lhs), self.inside(limits, rhs))

    def axiom(self, name: str, trees: Any, limits: Any, proofs: Any) -> Value:
        """Return lhs - rhs of an axiom said of some trees, once its premises are proved.

        Where it speaks of what is not always defined, the statement holds just that.
        """
        free = {index for index, _ in limits} & {*self.claim["indices"]}
        demand(not free, "an axiom is for all of an index that the claim has free")
        lhs, rhs, *premises = self.under(limits, lambda: axiom(name, self.shape, *trees))
        masked = any(tree[0] == "RowSoftmax" and len(tree) > 2 for tree in trees)
        sums = masked and name in ("softmax_sum", "softmax_exp")
        self.strict = name == "rsqrt_square" or sums
        sides = [self.inside(limits, side) for side in (lhs, rhs)]
        self.strict = True
        demand(len(proofs) == len(premises), "a premise of an axiom has no proof")
        for (left, right), proof in zip(premises, proofs, strict=False):
            self.inside(limits, left), self.inside(limits, right)
            within = {"indices": {**self.claim["indices"], **dict(limits)}}
            claim = {part: self.claim[part] for part in STATED} | within
            _checked({**proof, **claim, "lhs": left, "rhs": right})
        self.strict = False
        return self.for_all(limits, *sides)

    def for_all(self, limits: Any, lhs: Value, rhs: Value) -> Value:
        """Return lhs - rhs, the indices it holds for all of as further columns."""
        demand(lhs[:3] == rhs[:3], "the sides of a fact are of different shapes")
        value = lhs._replace(terms=added((lhs.terms, ONE), (rhs.terms, MINUS)))
        for index, count in limits:
            value = self.bound(value, "for all", index, self.size(count))
        return value

    def box(self, name: str, indices: Any) -> tuple[Value, list[Key]]:
        """Return what a box of a context stands for, and the indices that its first wires are."""
        if name in self.tensors:
            rows, cols, held, label = self.tensor(name, indices)
            return self.leaf(rows, cols, held, label), [key for key in held if key[0][0] == "?"]
        tree, *limits = self.defined[name]
        demand(indices == [None] * len(limits), "a box has an index for each of its limits")
        value = self.inside([limit for limit in limits if type(limit[0]) is str], tree)
        sizes = [(index, self.size(count)) for index, count in limits]
        return value, [held_at(index, leg) for index, size in sizes for leg in self.legs(size)]

    def plugged(self, context: dict[str, Any], fact: Value) -> Sum:
        """Return the terms of a context with a fact in its one hole."""
        sorts = tuple([self.size(tree) for tree in context["sorts"]])
        demand(all(self.legs(size) == (size,) for size in sorts), "a wire of a context is split")

        def wires(listed: Any, marks: bool = False) -> tuple[int, ...]:
            known = all(type(w) is int and (w >= 0 or marks) and w < len(sorts) for w in listed)
            demand(known, "a context names a wire that it does not have")
            return tuple(listed)

        named = []
        for index, wire in context["named"]:
            (on,) = wires([wire])
            demand(index is not None, "a wire of a context is held at no index")
            self.index(index, sorts[on])
            named.append((held_at(index, sorts[on]), on))
        rows, cols = wires(context["rows"], marks=True), wires(context["cols"], marks=True)
        around, factor = Diagram(rows, cols, tuple(named), (), sorts), ONE
        holes, pairs = [], []
        for kind, *box in context["boxes"]:
            if kind == "hole":
                holes.append(wires(box[0], marks=True))
                sides = product(branches(fact.rows), branches(fact.cols))
                on_wires = tuple([sorts[w] if w >= 0 else w for w in box[0]])
                demand(on_wires in {(*r, *c) for r, c in sides}, "the hole does not fit")
                continue
            demand(kind == "box", f"{kind} is neither a box nor a hole")
            value, keys = self.box(box[0], box[1])
            here = [d for d in value.terms if [marks_of(d.rows), marks_of(d.cols)] == box[3:]]
            demand(len(here) == 1, "a box is in no block of its matrix")
            ((d, by), held) = (here[0], value.terms[here[0]]), dict(here[0].named)
            free = tuple([leg for leg in d.named if leg[0] not in keys])
            mine = [held.get(key) for key in keys] + [w for w in (*d.rows, *d.cols) if w >= 0]
            for wire, end in zip(wires(box[2]), mine, strict=True):
                if end is not None:
                    pairs.append((wire, end + len(around.sorts)))
            around, factor = beside(around, d._replace(named=free)), multiply(factor, by)
        demand(len(holes) == 1, f"a context has {len(holes)} holes")
        terms: Sum = {}
        for d, by in fact.terms.items():
            ends = shifted((*d.rows, *d.cols), len(around.sorts))
            put(terms, multiply(factor, by), beside(around, d), [*pairs, *paired(holes[0], ends)])
        return terms


def size_tree(size: Size) -> Any:
    """Return a size as a tree."""
    terms = [["Mul", int(f), *[["Pow", ["Symbol", s], int(e)] for s, e in m]] for m, f in size]
    return ["Add", 0, *terms]


def held_at(index: Any, size: Size) -> Key:
    """Return what a wire is held at: an integer, or the index of a name."""
    return (str(index) if type(index) is int else "'" + index, size)


def laid(branch: Any, wires: Any) -> tuple[int, ...]:
    """Return a way through legs with the next wire for each leg; marks of blocks stay."""
    return tuple([leg if isinstance(leg, int) else next(wires) for leg in branch])


def is_constant(d: Diagram) -> bool:
    """Return whether a term is the same in every column, which no block and no box tells apart."""
    touched = [w for _, w in d.named] + [w for _, wires in d.boxes for w in wires] + [*d.cols]
    return all(wire >= 0 and touched.count(wire) == 1 for wire in d.cols)


def labelled(name: list[Any], rows: Any, cols: Any) -> str:
    """Return the label of a box: its name, integer indices, and which block of it the box is."""
    return json.dumps([*name, marks_of(rows), marks_of(cols)])


def marks_of(branch: Any) -> list[int]:
    """Return the numbers of the blocks that a way through legs enters."""
    return [-1 - mark for mark in branch if isinstance(mark, int) and mark < 0]


def within(way: Any, value: Value) -> Value:
    """Return the columns of a value on one way through its blocks, the marks of them left out."""
    terms = {
        d._replace(cols=tuple([wire for wire in d.cols if wire >= 0])): by
        for d, by in value.terms.items()
        if marks_of(d.cols) == marks_of(way)
    }
    return value._replace(cols=tuple([leg for leg in way if not isinstance(leg, int)]), terms=terms)


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


def flat_factors(tree: Any) -> list[Any]:
    """Return the factors of a product of matrices, nested ones flat."""
    kind, *args = tree
    if kind == "MatMul":
        return [factor for arg in args for factor in flat_factors(arg)]
    if kind == "MatPow" and type(args[1]) is int and 0 < args[1] <= MAX_POWER:
        return flat_factors(args[0]) * args[1]
    return [tree]


# -- induction over the number of layers -----------------------------------------------------------


class Unrolled:
    """Trees about L layers, of which what the first L do is opaque, and about one layer more."""

    def __init__(self, reader: Reader, c: dict[str, Any]) -> None:
        self.reader, self.depth, self.last = reader, ["Symbol", c["depth"]], c["last"]
        names = {json.dumps(tree): name for tree, name, _ in c["opaque"]}
        self.names: dict[str, Any] = names
        self.trees = {json.dumps(name): tree for tree, name, _ in reversed(c["opaque"])}
        self.declared = c["tensors"]
        self.bound: dict[str, Any] = {}
        for index, count in c["indices"].items():
            self.bound[index] = count
        for side in (c["lhs"], c["rhs"]):
            self.bind(side, c["indices"])
        for _, rows, cols in c["tensors"].values():
            demand(not self.uses(rows) and not self.uses(cols), "the depth is a size of a matrix")

    def bind(self, tree: Any, scope: dict[str, Any]) -> None:
        """Note the counts of the indices that a tree binds, None for a name that has several.

        An index of the layers before layer l runs over what l runs over.
        """
        if type(tree) is not list:
            return
        for index, count in binds(tree).items():
            if type(count) is list and count[0] == "Symbol":
                count = scope.get(count[1], count)
            scope = {**scope, index: count}
            self.bound[index] = count if self.bound.get(index, count) == count else None
        for part in tree[1:]:
            self.bind(part, scope)
        if tree[0] == "FamilyMember":
            for index, count in zip(tree[2:], self.declared[tree[1]][0], strict=True):
                known = type(index) is int or scope[index] == count
                demand(known, f"the index {index} does not run over that size")

    def free(self, tree: Any) -> set[str]:
        """Return the indices that are free in a tree."""
        if type(tree) is not list:
            return {tree} & self.bound.keys() if type(tree) is str else set()
        inner = set().union(*map(self.free, tree[1:])) if len(tree) > 1 else set()
        return inner - binds(tree).keys()

    def uses(self, tree: Any) -> bool:
        """Return whether a tree names the depth."""
        return type(tree) is list and (tree == self.depth or any(map(self.uses, tree)))

    def unrolls(self, tree: Any) -> str:
        """Return how a tree says something of all layers: its kind, or "" if it does not."""
        if type(tree) is not list:
            return ""
        kind, *args = tree
        if kind in ("LayerProduct", "OrderSum"):
            return kind if args[1][1] == self.depth else ""
        if kind == "Pow":
            return kind if args[1] == self.depth else ""
        if kind == "HeadSum":
            body, *limits = args
            one_more = self.reader.number(["Add", self.depth, 1])
            if len(limits) == 1 and body[0] == "OrderSum" and self.unrolls(body):
                index, count = limits[0]
                over = body[3] == ["Symbol", index] and self.reader.number(count) == one_more
                if over and not names(body[1], index):
                    return "orders"
            graded = len(limits) == 1 and self.grade(body, limits[0][0])[0]
            if graded and self.reader.number(limits[0][1]) == one_more:
                return "graded orders"
            if any(count == self.depth for _, count in limits):
                return kind
            if len(limits) == 1 and body[0] == "OrderSum" and self.unrolls(body):
                index, count = limits[0]
                over = body[3] == ["Symbol", index] and not self.uses(count)
                return "first orders" if over and not names(body[1], index) else ""
        return ""

    def grade(self, tree: Any, index: str) -> tuple[Any, Any]:
        """Return O and S of O ⊗ S^k or S^k ⊗ O, O of order k and S^k k factors S; else nothing."""
        parts = tree[1:] if tree[0] == "KroneckerProduct" else []
        of, power = "OrderSum", "LayerProduct"
        if [part[0] for part in parts] not in ([of, power], [power, of]):
            return None, None
        orders, marks = parts if parts[0][0] == of else parts[::-1]
        k = ["Symbol", index]
        graded = self.unrolls(orders) and orders[3] == k and marks[2][1] == k
        fixed = not names(orders[1], index) and not names(marks[1], index)
        fixed = fixed and not names(marks[1], marks[2][0]) and not self.uses(marks[1])
        return (orders, marks[1]) if graded and fixed else (None, None)

    def positive(self, number: Any) -> bool:
        """Return whether a number is at least 1: sizes and whole numbers above 0, or their sum."""
        if type(number) is int:
            return number > 0
        if number[0] == "Add":
            return all(map(self.positive, number[1:]))
        sized = number[0] == "Symbol" and number[1] in self.reader.sizes
        return sized and number[1] not in self.bound

    def one_less(self, tree: Any, number: Any) -> Any:
        """Return what is like a tree with a number in it, and has one less, as it is named."""

        def like(other: Any) -> bool:
            if other[0] != tree[0]:
                return False
            if tree[0] == "HeadSum":
                return bool(other[1] == tree[1] and other[2][0] == tree[2][0] and len(other) == 3)
            return bool(other[:3] == tree[:3] and other[4:] == tree[4:])

        for text, name in self.names.items():
            other = json.loads(text)
            if like(other):
                found = other[2][1] if tree[0] == "HeadSum" else other[3]
                less = self.reader.number(["Add", found, 1])
                if not add(less, multiply(self.reader.number(number), MINUS))[0]:
                    return name
        raise Rejected("nothing has the name of what has one order less")

    def still(self, tree: Any) -> Any:
        """Return a tree about L layers, with what is opaque by its name."""
        if self.unrolls(tree):
            if tree[0] == "OrderSum" and tree[3] == 0:
                return ["Identity", self.shape(tree)[0]]
            demand(json.dumps(tree) in self.names, "a product or sum over all layers has no name")
            return self.names[json.dumps(tree)]
        return self.parts(tree, self.still)

    def more(self, tree: Any) -> Any:
        """Return a tree about L + 1 layers."""
        kind = self.unrolls(tree)
        if not kind:
            return ["Add", self.depth, 1] if tree == self.depth else self.parts(tree, self.more)
        if kind == "OrderSum" and tree[3] == 0:
            return self.still(tree)
        before = self.still(tree)
        if kind == "Pow":
            return ["Mul", tree[1], before]
        if kind == "HeadSum":
            body, *limits = tree[1:]
            over = next(limit for limit in limits if limit[1] == self.depth)
            others = [limit for limit in limits if limit[0] != over[0]]
            body = ["HeadSum", body, *others] if others else body
            return ["MatAdd", before, self.of_last(body, over[0])]
        graded = kind == "graded orders"
        layers, mark = self.grade(tree[1], tree[2][0]) if graded else (tree, None)
        layers = tree[1] if kind in ("orders", "first orders") else layers
        last, after = self.of_last(layers[1], layers[2][0]), layers[-1]
        if graded:
            last = ["KroneckerProduct", *[last if part is layers else mark for part in tree[1][1:]]]
        used = before
        if kind == "OrderSum":
            demand(self.positive(tree[3]), "an order that is open")
            whole = type(tree[3]) is int
            used = (
                self.still([*tree[:3], tree[3] - 1, after])
                if whole
                else self.one_less(tree, tree[3])
            )
        if kind == "first orders":
            demand(self.positive(tree[2][1]), "a number of orders that may be none")
            used = self.one_less(tree, tree[2][1])
        product = ["MatMul", used, last] if after else ["MatMul", last, used]
        return product if kind == "LayerProduct" else ["MatAdd", before, product]

    def first(self, tree: Any) -> Any:
        """Return a tree about L + 1 layers for L = 0."""
        if json.dumps(tree) in self.trees:
            none = self.none(self.trees[json.dumps(tree)])
            return tree if none is None else none  # what is not known may be anything
        if tree == self.depth:
            return 0
        plain = type(tree) is not list or tree[0] in NAMED
        return tree if plain else [tree[0], *map(self.first, tree[1:])]

    def none(self, tree: Any) -> Any:
        """Return what a tree that unrolls is for no layer, or None where that is not known."""
        kind = self.unrolls(tree)
        if kind == "Pow":
            return 1
        if kind == "OrderSum" and tree[3] != 0 and not self.positive(tree[3]):
            return None
        if kind == "first orders" and not self.positive(tree[2][1]):
            return None
        empty = kind == "HeadSum" or (kind == "OrderSum" and tree[3] != 0)
        return ["ZeroMatrix", *self.shape(tree)] if empty else ["Identity", self.shape(tree)[0]]

    def of_last(self, body: Any, index: str) -> Any:
        """Return the body of the last layer."""
        demand(not self.uses(body), "the body of a layer depends on the number of layers")
        return self.put(body, index)

    def put(self, tree: Any, index: str) -> Any:
        """Return a tree with the last layer for an index of layers."""
        if type(tree) is not list or tree[0] == "MatrixSymbol":
            return self.last if tree == index else tree
        if tree[0] in ("LayerProduct", "OrderSum") and tree[2][1] == ["Symbol", index]:
            return self.still(self.before_last(tree, index))
        orders = tree[0] == "HeadSum" and tree[1][0] == "OrderSum" and index not in binds(tree)
        if orders and tree[1][2][1] == ["Symbol", index]:
            limits = [[i, self.put(count, index)] for i, count in tree[2:]]
            return self.still(["HeadSum", self.before_last(tree[1], index), *limits])
        if tree[0] == "FamilyMember":
            return [*tree[:2], *[self.last if i == index else i for i in tree[2:]]]
        if tree[0] == "Activation":  # whose name is no index
            return [*tree[:2], self.put(tree[2], index)]
        if index in binds(tree):  # of the same name, but another
            return tree
        return [tree[0], *[self.put(part, index) for part in tree[1:]]]

    def before_last(self, tree: Any, index: str) -> Any:
        """Return a product over the layers before layer `index` as one over those before the last.

        Its body may speak of that layer, which is then the last one.
        """
        inner = tree[2][0]
        body = tree[1] if inner == index else self.put(tree[1], index)
        rest = [self.put(part, index) for part in tree[3:-1]]
        return [tree[0], body, [inner, self.depth], *rest, tree[-1]]

    def parts(self, tree: Any, walk: Callable[[Any], Any]) -> Any:
        """Return a tree with its arguments walked through; no range or size may name the depth."""
        if type(tree) is not list or tree[0] in (*NAMED, "Symbol", "Rational"):
            return tree
        kind, *args = list(tree)
        scoped = kind in (*SCOPED, "LayerProduct", "OrderSum")
        sized = kind in SIZED
        fixed = args[1:] if scoped else args if sized else []
        demand(not any(map(self.uses, fixed)), "the depth is a size, or the end of a range")
        if sized:
            return tree
        return [kind, *([walk(args[0]), *args[1:]] if scoped else map(walk, args))]

    def shape(self, tree: Any) -> tuple[Any, Any]:
        """Return the sizes of a tree as trees, for the kinds of trees that layers are made of."""
        kind, *args = tree
        if kind in ("MatrixSymbol", "FamilyMember"):
            _, rows, cols = self.declared[args[0]]
            return rows, cols
        if kind in ("Identity", "CausalMask"):
            return args[0], args[0]
        if kind in ("OneMatrix", "ZeroMatrix"):
            return args[0], args[1]
        matrices = [arg for arg in args if type(arg) is list and not is_number(arg)]
        if kind in ("Transpose", "Adjoint"):
            return self.shape(args[0])[::-1]
        if kind == "MatMul":
            return self.shape(matrices[0])[0], self.shape(matrices[-1])[1]
        if kind == "KroneckerProduct":
            shapes = [self.shape(arg) for arg in args]
            return ["Mul", *[s[0] for s in shapes]], ["Mul", *[s[1] for s in shapes]]
        same = ("MatAdd", "HadamardProduct", "HadamardPower", "MatPow", "HeadSum", "LayerProduct")
        more = ("OrderSum", "DiagonalMatrix", "RowSoftmax", "RMSNorm", "LayerNorm")
        demand(kind in same + more or kind == "Activation", f"a {kind} in what is opaque")
        return self.shape(args[1] if kind == "Activation" else matrices[0])


def names(tree: Any, index: str) -> bool:
    """Return whether an index occurs in a tree."""
    return bool(tree == index) or (type(tree) is list and any(names(part, index) for part in tree))


def binds(tree: Any) -> dict[str, Any]:
    """Return the indices that a node binds, with their counts."""
    if tree[0] in ("LayerProduct", "OrderSum"):
        return dict(tree[2:3])
    return dict(tree[2:]) if tree[0] in SCOPED else {}


def renamed(tree: Any, index: str, new: str) -> Any:
    """Return a tree with another name for an index that is free in it."""
    if type(tree) is not list:
        return new if tree == index else tree
    demand(not {index, new} & binds(tree).keys(), "an index is bound twice")
    return [tree[0], *[renamed(part, index, new) for part in tree[1:]]]


def demand_alike(reader: Reader, a: Any, b: Any) -> None:
    """Demand that two trees are the same, but for how their numbers are written."""
    if a == b:
        return
    lists = type(a) is type(b) is list
    if (lists and all(type(x[0]) is str and is_number(x) for x in (a, b))) or {
        type(a),
        type(b),
    } == {int, list}:
        one, other = reader.number(a), reader.number(b)
        demand(not add(one, multiply(other, MINUS))[0], "a part speaks of another number")
        return
    demand(lists and len(a) == len(b), "a part is not what the claim asks for")
    for x, y in zip(a, b, strict=True):
        demand_alike(reader, x, y)


def demand_part(
    c: dict[str, Any],
    part: dict[str, Any],
    claim: list[Any],
    tensors: dict[str, Any],
    scalars: dict[str, str],
    indices: dict[str, Any],
) -> None:
    """Demand that a part of an induction proves a claim [lhs, rhs, hypotheses], and is proved."""
    reader = Reader(part if part["mode"] != "induction" else {**part, **NO_PROOF})
    demand_alike(reader, [part["lhs"], part["rhs"], part["given"]], claim)
    demand(set(part["sizes"]) <= set(c["sizes"]), "a part has other sizes")
    for name, declared in part["tensors"].items():
        demand_alike(reader, declared, tensors[name])
    for name, sign in part["scalars"].items():
        known = name in c["sizes"] or scalars.get(name) in (sign, "positive")
        demand(known, "a part has other scalars")
    for name, count in part["indices"].items():
        demand_alike(reader, count, indices[name])
    _checked(part)


def by_induction(c: dict[str, Any]) -> str:
    """Check a claim for every depth: its two parts are what the claim asks for, and are proved."""
    reader = Reader({**c, **NO_PROOF})
    unrolled = Unrolled(reader, c)
    demand(c["depth"] in reader.sizes, "the depth is not declared as a size")
    known = {*c["sizes"], *c["scalars"], *unrolled.bound, *c["tensors"]}
    demand(not known & {c["last"], *[name[1] for _, name, _ in c["opaque"]]}, "a name is taken")
    sides = [side for given in c["given"] for side in given[:2]]
    demand(not any(map(unrolled.uses, sides)), "a hypothesis names the depth")
    tensors, scalars = dict(c["tensors"]), dict(c["scalars"])
    for tree, name, proof in c["opaque"]:
        demand(unrolled.unrolls(tree), "what is opaque is no product or sum over all layers")
        if proof is not None:
            other = unrolled.trees[json.dumps(name)]
            demand(tree[0] in ("LayerProduct", "OrderSum"), "one name for what is no product")
            demand(tree[0] == other[0] and tree[3:] == other[3:], "one name for other products")
            bodies = [other[1], renamed(tree[1], tree[2][0], other[2][0])]
            demand_part(c, proof, [*bodies, c["given"]], tensors, scalars, unrolled.bound)
        elif name[0] == "Symbol":
            demand(tree[0] == "Pow" and name[1] not in scalars, "a number is named that is none")
            scalars[name[1]] = "real"
        else:
            demand(name[0] in NAMED and name[1] not in tensors, "one name for two products")
            demand(set(name[2:]) == unrolled.free(tree), "a name lacks an index")
            counts = [unrolled.bound[index] for index in name[2:]]
            demand(None not in counts, "an index has two counts")
            tensors[name[1]] = [counts, *unrolled.shape(tree)]
    sides = [c["lhs"], c["rhs"]]
    more = [unrolled.more(side) for side in sides]
    hypothesis = [*[unrolled.still(side) for side in sides], *map(list, c["indices"].items())]
    indices = {**c["indices"], c["last"]: unrolled.depth}
    first = [unrolled.first(side) for side in more]
    demand_part(c, c["base"], [*first, c["given"]], tensors, scalars, indices)
    demand_part(c, c["step"], [*more, [*c["given"], hypothesis]], tensors, scalars, indices)
    return f"by induction over {c['depth']}"


# -- what is known of functions --------------------------------------------------------------------

DEGREES = {"Activation relu": Fraction(1), "Activation rsqrt": Fraction(-1, 2)}  # g(cx) = c^k g(x)
VALUES: dict[str, dict[Any, int]] = {
    **{
        f"Activation {name}": {0: 0} for name in ("gelu", "gelu_tanh", "silu", "quick_gelu", "tanh")
    },
    "Activation exp": {0: 1},
    "Activation relu": {-1: 0, 0: 0, 1: 1},
    "Activation rsqrt": {1: 1},
}


def norm(kind: str, tree: Any, eps: Any, rows: Any, cols: Any) -> Any:
    """Return what a norm of an n × d matrix X is: LayerNorm is RMSNorm of X less its row means.

    RMSNorm is diag((X∘X 1/d + eps 1)^(-1/2)) X.
    """
    mean = ["Pow", cols, -1]
    if kind == "LayerNorm":
        less = ["MatMul", ["Mul", -1, mean], ["OneMatrix", cols, cols]]
        tree = ["MatMul", tree, ["MatAdd", ["Identity", cols], less]]
    squares = ["MatMul", mean, ["HadamardPower", tree, 2], ["OneMatrix", cols, 1]]
    size = ["MatAdd", squares, ["MatMul", eps, ["OneMatrix", rows, 1]]]
    return ["MatMul", ["DiagMatrix", ["Activation", "rsqrt", size]], tree]


def axiom(name: str, shape: Callable[[Any], Any], e: Any, *other: Any) -> list[Any]:
    """Return what an axiom says of a function e (or of two): its sides, and pairs as premises."""

    def of(*factors: Any) -> Any:
        return factors[0] if len(factors) == 1 else ["MatMul", *factors]

    def both(*factors: Any) -> Any:
        return ["HadamardProduct", *factors]

    def sums_to_one(x: Any) -> tuple[Any, Any]:
        rows, cols = shape(x)
        return ["MatMul", x, ["OneMatrix", cols, 1]], ["OneMatrix", rows, 1]

    def chooses(x: Any) -> list[Any]:
        return [(both(x, x), x), sums_to_one(x)]  # each row is zero but for a single one

    ones, zero = [[kind, *shape(e)] for kind in ("OneMatrix", "ZeroMatrix")]
    reflected = ["Activation", e[1], ["MatMul", -1, e[-1]]]
    negative = ["MatMul", -1, reflected]
    match name, *e:
        case "softmax_sum", "RowSoftmax", *_:
            return [*sums_to_one(e)]
        case "softmax_mask", "RowSoftmax", _, mask:
            return [both(e, mask), e, (both(mask, mask), mask)]
        case "softmax_exp", *_:
            weights, power = [e, *other] if e[0] == "RowSoftmax" else [*other, e]
            demand(power[:2] == ["Activation", "exp"], "this is no exp")
            demand(weights[0] == "RowSoftmax", "this is no softmax")
            mask = weights[2:]
            shown = both(power, *mask) if mask else power
            total = ["MatMul", shown, ["OneMatrix", *[shape(power)[1]] * 2]]
            return [both(["RowSoftmax", power[2], *mask], total), shown]
        case "causal_mask_is_mask", "CausalMask", _:
            return [both(e, e), e]
        case "causal_mask_diagonal", "CausalMask", n:
            return [["DiagonalOf", e], ["OneMatrix", n, 1]]
        case "causal_mask_order", "CausalMask", n:
            return [["MatAdd", e, ["Transpose", e]], ["MatAdd", ones, ["Identity", n]]]
        case "activation_transpose", "Activation", g, x:
            return [["Activation", g, ["Transpose", x]], ["Transpose", e]]
        case "activation_reflected", "Activation", "relu" | "gelu" | "gelu_tanh" | "silu", x:
            return [["MatAdd", e, negative], x]
        case "activation_odd", "Activation", "tanh", _:
            return [e, negative]
        case "sigmoid_reflected", "Activation", "sigmoid", _:
            return [["MatAdd", e, reflected], ones]
        case "exp_reflected", "Activation", "exp", _:
            return [both(e, reflected), ones]
        case "relu_idempotent", "Activation", "relu", ["Activation", "relu", _] as x:
            return [e, x]
        case "relu_parts", "Activation", "relu", _:
            return [both(e, reflected), zero]
        case "relu_scale_columns", "Activation", "relu" as g, ["MatMul", _, *_, scale] as x:
            demand(scale[0] == "DiagMatrix" and scale[1][::2] == ["HadamardPower", 2], "no squares")
            return [e, ["MatMul", ["Activation", g, of(*x[1:-1])], scale]]
        case "rsqrt_square", "Activation", "rsqrt", x:
            return [both(e, e, x), ones]
        case "function_choose_rows", "Activation", g, ["MatMul", p, _, *_] as x:
            return [e, ["MatMul", p, ["Activation", g, of(*x[2:])]], *chooses(p)]
        case "function_choose_rows", "RowSoftmax", ["MatMul", p, _, *_] as x:
            return [e, ["MatMul", p, ["RowSoftmax", of(*x[2:])]], *chooses(p)]
        case "function_choose_rows", "RMSNorm" | "LayerNorm", ["MatMul", p, _, *_] as x, eps:
            return [e, ["MatMul", p, [e[0], of(*x[2:]), eps]], *chooses(p)]
        case "activation_choose_columns", "Activation", g, ["MatMul", _, *_, q] as x:
            chosen = ["MatMul", ["Activation", g, of(*x[1:-1])], q]
            return [e, chosen, *chooses(["Transpose", q])]
        case "softmax_permute_columns", "RowSoftmax", ["MatMul", _, *_, q] as x:
            chosen = ["MatMul", ["RowSoftmax", of(*x[1:-1])], q]
            return [e, chosen, *chooses(q), sums_to_one(["Transpose", q])]
        case "function_congruence", "RowSoftmax", *arguments:
            ((kind, *others),) = other
            demand(kind == "RowSoftmax", "these are two functions")
            return [e, *other, *zip(arguments, others, strict=True)]
        case "function_congruence", "Activation", g, x:
            demand(other[0][:2] == ["Activation", g], "these are two functions")
            return [e, *other, (x, other[0][2])]
        case "function_congruence", "RMSNorm" | "LayerNorm", x, eps:
            demand(other[0][::2] == [e[0], eps], "these are two functions")
            return [e, *other, (x, other[0][1])]
    raise Rejected(f"{name} is an unlisted axiom, or says nothing of a {e[0]}")


def check(certificate: dict[str, Any]) -> str:
    """Return a line on what was proved, or raise Rejected.

    >>> n, A = ["Symbol", "n"], ["MatrixSymbol", "A"]
    >>> names = {"sizes": ["n"], "scalars": {}, "indices": {}, "tensors": {"A": [[], n, n]}}
    >>> claim = {"lhs": A, "rhs": ["Transpose", A], "given": []}
    >>> proof = {"splits": [], "fused": False, "defined": {}, "uses": []}
    >>> check({"schema": 2, "mode": "normal forms", **names, **claim, **proof})
    Traceback (most recent call last):
    ...
    proofs.replay.Rejected: 2 of 2 diagrams do not cancel
    """
    try:
        return _checked(certificate)
    except RecursionError:
        raise Rejected("its trees are nested too deeply to be read") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise Rejected(f"it is not in the form of a certificate: {error!r}") from None


def _checked(c: dict[str, Any]) -> str:
    if c["mode"] == "induction":
        return by_induction(c)
    reader, uses = Reader(c), c["uses"]
    if c["mode"] == "same trees":
        demand(json.dumps(c["lhs"]) == json.dumps(c["rhs"]), "the two sides are different trees")
        reader.declared(c["lhs"])
        return "the two sides are the same tree"
    demand(c["mode"] in ("normal forms", "written out"), f"the mode {c['mode']} is unknown")
    counts = [(name, reader.values(size)) for name, size in reader.scope.items()]
    many = [(name, count) for name, count in counts if count]
    diagrams = 0
    for values in product(*[range(count) for _, count in many]):
        reader.at = {name: value for (name, _), value in zip(many, values, strict=True)}
        reader.in_statement, reader.met = True, set()
        left, right = reader.read(c["lhs"]), reader.read(c["rhs"])
        demand(left[:3] == right[:3], "the two sides are of different shapes")
        for k in range(0 if reader.apart else len(c["given"])):
            reader.fact("given", k)
        reader.in_statement = False
        sums = [(left.terms, ONE), (right.terms, MINUS)]
        for use in [use for use in uses if use.get("at", []) == list(values)]:
            factor = multiply(reader.number(use["coefficient"]), MINUS)
            sums.append((reader.plugged(use["context"], reader.fact(*use["fact"])), factor))
        rest = added(*sums)
        total = len({d for terms, _ in sums for d in terms})
        demand(not rest, f"{len(rest)} of {total} diagrams do not cancel")
        diagrams += total
    return f"{diagrams} diagrams cancel, {len(c['given'])} hypotheses, {len(uses)} uses"


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
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
