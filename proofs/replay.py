"""Check a certificate of otimes: `python proofs/replay.py FILE` says accepted or rejected, and why.

It needs the standard library and `algebra/axioms.json`, and nothing else of otimes. It does not
search: it reads the statement, does what the proof says, and counts. docs/checker.md walks through
it. Nothing has a name here: sizes, scalars and matrices are numbered in their declarations, an
index by the number of binders around it. Names are for people to read.

**A matrix is its entry.** A size is a union of products of sizes, cut in its *branches*. An index
is the number of a branch and a *wire* for each factor of it. A matrix is a function from an index
of rows and one of columns to the *terms* of its entry, each a number times a product of boxes,
summed over the inner wires, where some wires are equal. So the language is a line for each class:
(AB)(i, j) = Σ_k A(i, k) B(k, j). A function of an argument (softmax, an activation, an inverse, a
product over layers) is a box by itself: two are one box where their arguments have the same terms.

**Seven rules.** CANCEL: lhs - rhs - Σ coefficient · context[fact] has no terms left. A fact is
lhs - rhs of an equation: a hypothesis (GIVEN), an instance of a schema in axioms.json (AXIOM),
f(S) = f(T) where S = T is proved (CONG), or E⁻¹E = EE⁻¹ = I where E⁻¹ occurs in the statement
(INVERSE). INDUCTION over a number of layers L: the claim holds for one layer, and for L + 1 layers
where it does for the first L. UNROLL: L + 1 layers are the union of the first L and one, so a sum
over them is two sums, and a product two factors.

A proof holds where both sides and the hypotheses are defined, for sizes of 1 and more. What the
statement divides by is not zero there, what it inverts has an inverse, and the indices and sizes
that it names exist. A proof may not presuppose anything else: it divides by nothing else that may
vanish, and takes no other inverse.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain, groupby, pairwise, permutations, product
from math import floor, gcd, lcm
from pathlib import Path
from typing import Any, NamedTuple

MAX_TERMS, MAX_POWER, MAX_PRIME, MAX_TRIES, MAX_SLOTS = 500_000, 5_000, 100_000, 20_000, 6
MAX_WORK = 5_000_000  # boxes that are looked at in one proof, which take about a minute
AXIOMS = json.loads((Path(__file__).parents[1] / "algebra" / "axioms.json").read_text("utf-8"))


class Rejected(Exception):
    """The certificate does not prove its claim; the message says where it fails."""


def demand(condition: object, why: str) -> None:
    """Reject the certificate unless the condition holds."""
    if not condition:
        raise Rejected(why)


# -- numbers: rational functions of symbols, exactly -----------------------------------------------

Monomial = tuple[tuple[str, Fraction], ...]  # (symbol, exponent): "n0" is a size, "#2" the number 2
Polynomial = dict[Monomial, Fraction]
Ratio = tuple[Polynomial, Polynomial]
Size = tuple[tuple[Monomial, Fraction], ...]  # the terms of a polynomial, in order

UNITY: Polynomial = {(): Fraction(1)}
ONE: Ratio = (UNITY, UNITY)
MINUS: Ratio = ({(): Fraction(-1)}, UNITY)


def total(terms: Iterable[tuple[Monomial, Fraction]]) -> Polynomial:
    """Return the polynomial of these terms; of the root of a prime only a part of one stays."""
    result: Polynomial = defaultdict(Fraction)
    for monomial, factor in terms:
        for name, exponent in monomial:
            if name[0] == "#" and not 0 < exponent < 1:
                factor *= Fraction(int(name[1:])) ** floor(exponent)
                monomial = merged([*monomial, (name, Fraction(-floor(exponent)))])
        result[monomial] += factor
    return {monomial: factor for monomial, factor in result.items() if factor}


def merged(powers: Iterable[tuple[str, Fraction]]) -> Monomial:
    """Return the monomial that is a product of powers."""
    result: dict[str, Fraction] = defaultdict(Fraction)
    for name, exponent in powers:
        result[name] += exponent
    return tuple(sorted((name, e) for name, e in result.items() if e))


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    """Return the product of two polynomials."""
    if a == UNITY or b == UNITY:
        return b if a == UNITY else a
    demand(len(a) * len(b) <= MAX_TERMS, "a number has too many terms")
    return total((merged((*m, *n)), f * g) for m, f in a.items() for n, g in b.items())


def add(a: Ratio, b: Ratio) -> Ratio:
    """Return the sum of two rational functions."""
    if a[1] == b[1]:
        return total([*a[0].items(), *b[0].items()]), a[1]
    left, right = times(a[0], b[1]), times(b[0], a[1])
    return total([*left.items(), *right.items()]), times(a[1], b[1])


def multiply(a: Ratio, b: Ratio) -> Ratio:
    """Return the product of two rational functions."""
    return times(a[0], b[0]), times(a[1], b[1])


def number(value: Fraction | int) -> Ratio:
    """Return a number as a rational function."""
    return total([((), Fraction(value))]), UNITY


def same(a: Ratio, b: Ratio) -> bool:
    """Return whether two rational functions are equal."""
    return a == b or not add(a, multiply(b, MINUS))[0]


def power(base: Ratio, exponent: Fraction, positive: set[str]) -> Ratio:
    """Return a power; a root only of a lone symbol, or of a product that is not negative."""
    demand(abs(exponent.numerator) <= MAX_POWER, "a power is too high")
    over, under = base if exponent >= 0 else base[::-1]
    demand(under, "a division by zero")
    if len(under) == 1:  # dividing by a monomial leaves no denominator
        ((monomial, factor),) = under.items()
        inverse = total([(tuple([(name, -e) for name, e in monomial]), 1 / factor)])
        over, under = times(over, inverse), UNITY
    exponent = abs(exponent)
    if exponent.denominator == 1:
        result = ONE
        for digit in f"{exponent.numerator:b}":
            result = multiply(result, result)
            result = multiply(result, (over, under)) if digit == "1" else result
        return result
    demand(under == UNITY and len(over) == 1, "a root of a sum, or of zero")
    ((monomial, factor),) = over.items()
    lone = factor == 1 and len(monomial) == 1 and monomial[0][1] in (1, -1)
    known = all(name[0] == "#" or name in positive for name, _ in monomial)
    demand(lone or (known and factor > 0), "a root of what may be negative")
    roots = [(name, e * exponent) for name, e in monomial]
    for whole, sign in ((factor.numerator, 1), (factor.denominator, -1)):
        prime = 2
        while whole > 1:
            demand(prime < MAX_PRIME, "a root of a number with a large prime factor")
            if whole % prime:
                prime += 1
            else:
                whole //= prime
                roots.append((f"#{prime}", sign * exponent))
    return total([(merged(roots), Fraction(1))]), UNITY


def ordered(polynomial: Polynomial) -> Size:
    """Return a polynomial as a size."""
    return tuple(sorted(polynomial.items()))


def natural(size: Iterable[tuple[Monomial, Fraction]]) -> bool:
    """Return whether a polynomial in sizes is certainly 1 or more: no factor is negative."""
    return min((factor for _, factor in size), default=0) > 0


def plus(size: Size, by: Iterable[tuple[Monomial, Fraction]], sign: int = 1) -> Size:
    """Return the sum of two polynomials in sizes, or their difference."""
    return ordered(total([*size, *[(m, sign * f) for m, f in by]]))


def constant(size: Size) -> int | None:
    """Return the value of a size that is a number, else None."""
    return int(dict(size).get((), 0)) if all(m == () for m, _ in size) else None


# -- terms, and when two are the same --------------------------------------------------------------

Box = tuple[Any, tuple[int, ...]]  # its label, its wires


class Term(NamedTuple):
    """A number times a product of boxes, where `equal` wires are one, summed over `inner` wires."""

    factor: Ratio
    boxes: tuple[Box, ...] = ()
    equal: tuple[tuple[int, int], ...] = ()
    inner: tuple[int, ...] = ()

    def wires(self) -> set[int]:
        """Return all wires that boxes have, or that are joined."""
        return set(chain(*[wires for _, wires in self.boxes], *self.equal))

    def by(self, factor: Ratio) -> Term:
        """Return the term times a number."""
        return Term(multiply(self.factor, factor), *self[1:])


UNIT = Term(ONE)
Terms = list[Term]


def both(a: Term, b: Term) -> Term:
    """Return the product of two terms."""
    factor = multiply(a.factor, b.factor)
    return Term(factor, a.boxes + b.boxes, a.equal + b.equal, a.inner + b.inner)


def seen(box: Box, number_of: dict[int, int]) -> tuple[Any, ...]:
    """Return a box by the numbers of its wires, an unnumbered wire by its first position."""
    label, wires = box
    return (label, *[number_of.get(wire, -1 - wires.index(wire)) for wire in wires])


def walked(boxes: list[Box], number_of: dict[int, int]) -> list[Box]:
    """Number wires from box to box, where there is no choice; return the boxes that are left."""
    at: dict[int, list[int]] = defaultdict(list)
    left = {k for k, (_, wires) in enumerate(boxes) if any(w not in number_of for w in wires)}
    for k in sorted(left):
        for wire in dict.fromkeys(boxes[k][1]):
            at[wire].append(k)
    reached = [wire for wire in number_of if wire in at]
    for wire in reached:  # which grows on the way
        kinds: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for k in at[wire]:
            if k in left:
                kinds[seen(boxes[k], number_of)].append(k)
        for _, (k, *others) in sorted(kinds.items()):
            if not others:
                left.discard(k)
                for new in boxes[k][1]:
                    if new not in number_of:
                        number_of[new] = len(number_of)
                        reached.append(new)
    return [boxes[k] for k in sorted(left) if any(w not in number_of for w in boxes[k][1])]


def numbered(boxes: list[Box], number_of: dict[int, int], tries: list[int]) -> Any:
    """Number all wires of boxes by how they are joined, and return the boxes by these numbers.

    Of the boxes that may come first those count that lead to the least form. Whatever this does, it
    renames wires: a fault in it can make equal terms look unlike, and a proof be rejected, but
    never unlike terms look like.
    """
    rest = walked(boxes, number_of)
    if rest:
        kinds: dict[tuple[Any, ...], list[Box]] = defaultdict(list)
        for box in rest:
            kinds[seen(box, number_of)].append(box)
        choices: dict[Any, list[dict[int, int]]] = defaultdict(list)
        for first in kinds[min(kinds, key=lambda kind: (len(kinds[kind]), kind))]:
            tries[0] -= 1
            demand(tries[0] > 0, "a term has too many symmetries")
            here = dict(number_of)
            for wire in first[1]:
                here.setdefault(wire, len(here))
            walked(rest, here)
            choices[tuple(sorted(seen(box, here) for box in rest))].append(here)
        alike = choices[min(choices)]
        new = set(alike[0]) - set(number_of)
        if all(new.isdisjoint(wires) for _, wires in walked(rest, alike[0])):
            alike = alike[:1]  # a part by itself: any of those that are alike may be the first
        results = [(numbered(rest, here, tries), list(here)) for here in alike]
        number_of.update((wire, k) for k, wire in enumerate(min(results)[1]))
    return sorted(seen(box, number_of) for box in boxes)


# -- sizes as unions of products -------------------------------------------------------------------

Branch = tuple[
    Any, ...
]  # factors, the slowest first, and marks: -1 - k, and within block k follows
Legs = tuple[Branch, ...]
Index = tuple[int, ...]  # the number of a branch, and a wire for each factor of it
NONE: Legs = ((),)  # of a size that is 1
ORIGIN: Index = (0,)


def flat(branches: Iterable[Branch]) -> Legs:
    """Return legs where a run of marks is one mark: a union of unions is one union."""
    runs: dict[Branch, dict[Branch, int]] = defaultdict(dict)
    result = []
    for branch in branches:
        shown: Branch = ()
        for kind, items in groupby(branch, type):
            run = tuple(items)
            shown += (-1 - runs[shown].setdefault(run, len(runs[shown])),) if kind is int else run
        result.append(shown)
    return tuple(result)


def beside(a: Legs, b: Legs) -> Legs:
    """Return the legs of a product of sizes, a the slow one."""
    return flat(p + q for p in a for q in b)


def union(blocks: Iterable[Legs]) -> Legs:
    """Return the legs of a union of sizes."""
    return flat((-1 - k, *branch) for k, block in enumerate(blocks) for branch in block)


def parted(a: Legs, b: Legs, index: Index) -> tuple[Index, Index]:
    """Return an index into `beside(a, b)` as one into a and one into b."""
    p, q = divmod(index[0], len(b))
    cut = 1 + sum(type(item) is not int for item in a[p])
    return (p, *index[1:cut]), (q, *index[cut:])


def sized(legs: Iterable[Branch]) -> Size:
    """Return the size of legs."""
    factors = [[dict(item) for item in branch if type(item) is not int] for branch in legs]
    return ordered(total(term for one in factors for term in reduce(times, one, UNITY).items()))


def runs_within(mine: Legs, legs: Legs) -> bool:
    """Return whether an index over some legs is one into others: into all, or the first blocks."""
    if mine == legs[: len(mine)] and len(mine) < len(legs) and mine != NONE:
        return type(mine[0][0]) is int and mine[-1][0] != legs[len(mine)][0]
    return mine == legs


class Bound:
    """An index in scope: the legs that it runs over, where it is, and where it must be if known."""

    def __init__(self, legs: Legs, last: Index | None = None) -> None:
        self.legs, self.last, self.now = legs, last, last or ()


class Matrix(NamedTuple):
    """A matrix as its entry, a function of a row and a column; or a scalar, which has but one."""

    rows: Legs
    cols: Legs
    at: Callable[[Index, Index], Terms]
    matrix: bool = True


Scope = tuple[Bound, ...]


def scalar(at: Callable[[], Terms]) -> Matrix:
    """Return a scalar."""
    return Matrix(NONE, NONE, lambda i, j: at(), matrix=False)


def turned(x: Matrix) -> Matrix:
    """Return the transpose of a matrix."""
    return Matrix(x.cols, x.rows, lambda i, j: x.at(j, i))


# -- trees -----------------------------------------------------------------------------------------


def is_number(tree: Any) -> bool:
    """Return whether a tree holds numbers and scalar symbols only."""
    match tree:
        case ["size" | "scalar" | "Rational", *_]:
            return True
        case ["Pow", base, exponent]:
            whole = type(exponent) is int or (type(exponent) is list and exponent[0] == "Rational")
            return whole and is_number(base)
        case ["Add" | "Mul", *args]:
            return all(is_number(arg) for arg in args)
    return type(tree) is int


def names(tree: Any, part: Any) -> bool:
    """Return whether a part occurs in a tree."""
    return bool(tree == part) or (type(tree) is list and any(names(one, part) for one in tree))


def replaced(tree: Any, part: Any, by: Any) -> Any:
    """Return a tree, or what holds trees, with a part of it replaced."""
    if not isinstance(tree, list | tuple) or tree == part:
        return by if tree == part else tree
    parts = [replaced(one, part, by) for one in tree]
    return tree._make(parts) if hasattr(tree, "_make") else type(tree)(parts)


def filled(tree: Any, values: dict[str, Any]) -> Any:
    """Return a schema with ["?", name] replaced by values."""
    return reduce(lambda made, name: replaced(made, ["?", name], values[name]), values, tree)


def size_tree(size: Size) -> Any:
    """Return a size as a tree."""
    powers = [[["Pow", ["size", int(s[1:])], int(e)] for s, e in m] for m, _ in size]
    return ["Add", 0, *[["Mul", int(f), *m] for (_, f), m in zip(size, powers, strict=True)]]


def counts_by(tree: Any, index: Any) -> bool:
    """Return whether a number of layers, or an order, in a tree is an index."""
    if type(tree) is not list:
        return False
    layered = tree[0] in ("LayerProduct", "OrderSum") and index in tree[2:-1]
    return layered or any(counts_by(part, index) for part in tree)


def fused(factors: Iterable[Any]) -> list[Any]:
    """Return Kronecker factors, nested ones flat; neighbours I, I are one I, and ones likewise."""
    result: list[Any] = []
    for factor in factors:
        inner = factor[0] == "KroneckerProduct" and len(factor) > 1
        for part in fused(factor[1:]) if inner else [factor]:
            if result and part[0] == result[-1][0] and part[0] in ("Identity", "OneMatrix"):
                sizes = zip(result[-1][1:], part[1:], strict=True)
                result[-1] = [part[0], *[["Mul", a, b] for a, b in sizes]]
            else:
                result.append(part)
    return result


class Free(NamedTuple):
    """An index that a proof has free: its count as a tree, and whether it is the last of all."""

    count: Any
    last: bool = False


class Equation(NamedTuple):
    """lhs = rhs for all values of the first `frees`; `stated` where it is part of the statement."""

    frees: tuple[Free, ...]
    lhs: Any
    rhs: Any
    stated: bool = False


class Context(NamedTuple):
    """What a proof may use: the statement, its hypotheses, the inductions that it is within.

    Of the sizes under induction (`depths`) those in `ones` are 1. In a step trees of the statement
    have L + 1 for L, and L itself means the first L of L + 1: an index over it lies in block 0.
    """

    statement: dict[str, Any]
    given: tuple[Equation, ...]
    depths: frozenset[int] = frozenset()
    ones: frozenset[int] = frozenset()
    firsts: frozenset[Size] = frozenset()
    unions: tuple[tuple[Size, Legs], ...] = ()


class Reader:
    """The reading of trees in one proof, with its table of how sizes are split."""

    def __init__(self, context: Context, splits: Any) -> None:
        self.context, statement = context, context.statement
        self.stating = self.presumed = self.strict = self.fused = False
        self.sizes: list[Size] = []  # of the wires
        self.fixed: dict[tuple[int, Size], int] = {}  # the wires that are held at one value
        self.value_of: dict[int, int] = {}
        self.special: set[int] = set()  # wires of the free indices of the claim: one value each
        self.labels: dict[Any, int] = {}
        self.known: dict[Any, list[tuple[int, list[Ratio]]]] = {}  # boxes with an argument
        self.way: Index | None = None  # the branches of the free indices in the case at hand
        self.met: set[Any] = set()  # where the statement has partial boxes: (way, box, slots)
        self.powers: list[tuple[Ratio, bool, bool]] = []  # of the statement: divisors, radicands
        self.lengths: set[Size] = set()  # sizes that the statement names
        self.integers: set[tuple[int, Size]] = set()  # integer indices that it names
        self.tries, self.work = [MAX_TRIES], 0
        flags = {f"a{k}": set(flags) for k, (_, flags) in enumerate(statement["scalars"])}
        self.positive = {f"n{k}" for k in range(len(statement["sizes"]))}
        self.positive |= {name for name in flags if "positive" in flags[name]}
        self.nonnegative = self.positive | {n for n in flags if "nonnegative" in flags[n]}
        self.nonzero = self.positive | {n for n in flags if flags[n] & {"nonzero", "negative"}}
        self.under = {f"n{k}" for k in context.depths}
        self.declared = [
            ([self.measure(n) for n in counts], self.measure(rows), self.measure(cols))
            for _, counts, rows, cols in statement["tensors"]
        ]
        self.unstated: list[Size] = []  # sizes in splits that the statement has to name
        self.splits: dict[Size, Legs] = dict(context.unions)
        for whole, parts in splits:
            size, legs = self.named(whole), self.split(parts)
            demand(size not in dict(context.unions), "a size is split twice")
            demand(sized(legs) == size, "a split does not add up to its size")
            demand(legs not in (NONE, ((size,),)), "a split is none")
            self.splits[size] = legs
        self.stating = True
        self.powers += [(self.number(tree), True, False) for tree in statement["nonzero"]]

    # -- numbers, sizes, indices -------------------------------------------------------------------

    def number(self, tree: Any) -> Ratio:
        """Return the value of a tree of numbers and scalar symbols."""
        match tree:
            case ["size" | "scalar" as kind, k]:
                declared = self.context.statement[kind + "s"]
                demand(type(k) is int and 0 <= k < len(declared), f"no such {kind}")
                if kind == "size" and k in self.context.ones:
                    return ONE
                return {
                    ((("n" if kind == "size" else "a") + str(k), Fraction(1)),): Fraction(1)
                }, UNITY
            case ["Rational", p, q]:
                demand(type(p) is type(q) is int and q, "a Rational is p/q")
                return number(Fraction(p, q))
            case ["Pow", base, exponent]:
                over, under = self.number(exponent)
                demand(under == UNITY and set(over) <= {()}, "a power is no number")
                return self.power(self.number(base), over.get((), Fraction(0)))
            case ["Add" | "Mul" as kind, _, *_]:
                return reduce(add if kind == "Add" else multiply, map(self.number, tree[1:]))
        demand(type(tree) is int, f"{tree!r:.40} is not a number")
        return number(tree)

    def power(self, base: Ratio, exponent: Fraction) -> Ratio:
        """Return a power; what may vanish is divided by, and a root taken, as in the statement."""
        divides, root = exponent < 0, exponent.denominator > 1
        symbols = {name for side in base for monomial in side for name, _ in monomial}
        if divides or root:
            lone = len(base[0]) == 1 and base[1] == UNITY
            stated = [
                next(iter(b[0])) for b, divided, _ in self.powers if divided and len(b[0]) == 1
            ]
            nonzero = self.nonzero | {name for monomial in stated for name, _ in monomial}
            allowed = self.nonnegative if root else nonzero
            allowed = allowed & nonzero if divides else allowed
            safe = lone and all(name[0] == "#" or name in allowed for name in symbols)
            safe |= not root and all(self.definite(side) for side in base)
            if self.stating:
                demand(safe or not symbols & self.under, "a number that may vanish at some depth")
                self.powers.append((base, divides, root))
            else:
                known = [b for b, d, r in self.powers if d >= divides and r >= root]
                safe |= any(same(base, one) for one in known)
                demand(safe, "a number that may vanish is divided by, or its root taken")
        return power(base, exponent, self.nonnegative)

    def definite(self, polynomial: Polynomial) -> bool:
        """Return whether all terms have one sign and one is not zero: then the sum is not zero."""

        def sure(monomial: Monomial, known: set[str], squares: set[str] | None) -> bool:
            return all(
                name[0] == "#" or name in known or (e % 2 == 0 and (not squares or name in squares))
                for name, e in monomial
            )

        weak = all(sure(monomial, self.nonnegative, None) for monomial in polynomial)
        strict = any(sure(monomial, self.positive, self.nonzero) for monomial in polynomial)
        return weak and strict and len({factor > 0 for factor in polynomial.values()}) == 1

    def measure(self, tree: Any) -> Size:
        """Return a polynomial in the symbols of sizes with integer factors."""
        polynomial, denominator = self.number(tree)
        powers = [leg for monomial in polynomial for leg in monomial]
        whole = all(e > 0 and e.denominator == 1 and name[0] == "n" for name, e in powers)
        integral = all(factor.denominator == 1 for factor in polynomial.values())
        demand(denominator == UNITY and whole and integral, f"{tree} is not a size")
        demand(powers or (polynomial and polynomial[()] > 0), "a size is not positive")
        return ordered(polynomial)

    def stated(self, size: Size) -> Size:
        """Return a size that is 1 or more: certainly, or because the statement names it."""
        if not natural(size):
            symbols = {name for monomial, _ in size for name, _ in monomial}
            demand(not self.under & symbols, "a size that may vanish at some depth")
            demand(self.stating or size in self.lengths, "a size that may vanish is not stated")
        if self.stating:
            self.lengths.add(size)
        return size

    def named(self, tree: Any) -> Size:
        """Return a size in a split, which is read before the statement is: it has to be in it."""
        size = self.measure(tree)
        self.unstated += [] if natural(size) else [size]
        return size

    def size(self, tree: Any) -> Size:
        """Return the size that a tree stands for."""
        return self.stated(self.measure(tree))

    def legs(self, size: Size) -> Legs:
        """Return the legs that a size stands for."""
        return union([((size,),)]) if size in self.context.firsts else self.parts(size)

    def parts(self, size: Size) -> Legs:
        """Return the legs of a size as the splits have it."""
        if size not in self.splits:
            return NONE if dict(size) == UNITY else ((size,),)
        return flat(
            tuple(chain(*pieces))
            for branch in self.splits[size]
            for pieces in product(*[((x,),) if type(x) is int else self.parts(x) for x in branch])
        )

    def split(self, parts: Any) -> Legs:
        """Return the legs of the parts of a split: sizes, and unions ["|", parts, ...]."""
        legs = NONE
        for part in parts:
            if type(part) is list and part[0] == "|":
                demand(len(part) > 2, "a union of one block")
                legs = beside(legs, union(map(self.split, part[1:])))
            elif dict(size := self.named(part)) != UNITY:
                legs = beside(legs, ((size,),))
        return legs

    def wire(self, size: Size) -> int:
        """Return a new wire."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def held(self, value: int, size: Size) -> int:
        """Return the wire that is held at a value."""
        if (value, size) not in self.fixed:
            self.fixed[value, size] = wire = self.wire(size)
            self.value_of[wire] = value
        return self.fixed[value, size]

    def every(self, legs: Legs) -> list[Index]:
        """Return an index of new wires for each branch of legs."""
        return [
            (k, *[self.wire(item) for item in branch if type(item) is not int])
            for k, branch in enumerate(legs)
        ]

    def places(self, *legs: Legs) -> Iterable[tuple[Index, ...]]:
        """Return indices into several legs for each choice of branches."""
        return product(*map(self.every, legs))

    def place(self, value: Any, legs: Legs) -> Index:
        """Return the index of a value, which must be in range."""
        demand(type(value) is int and value >= 0, "an index is negative")
        if legs == NONE:
            demand(value == 0, "an index is out of range")
            return ORIGIN
        if type(legs[0][0]) is int:
            start = 0
            for _, block in groupby(legs, lambda branch: branch[0]):
                inner = tuple([branch[1:] for branch in block])
                size = constant(sized(inner))
                if value == 0 or (size is not None and value < size):
                    k, *wires = self.place(value, inner)
                    return (start + k, *wires)
                demand(size is not None, "an integer index into a block of any size")
                value, start = value - (size or 0), start + len(inner)
            raise Rejected("an integer index beyond the last block")
        first, others = legs[0][0], tuple([branch[1:] for branch in legs])
        rest, limit = constant(sized(others)), constant(first)
        demand(rest is not None, "an integer index into factors of any size")
        here, inside = divmod(value, rest or 1)
        if self.stating:
            self.integers.add((here, first))
        known = here == 0 or (here, first) in self.integers
        demand(here < limit if limit is not None else known, "an integer index out of range")
        k, *wires = self.place(inside, others)
        return (k, self.held(here, first), *wires)

    def index(self, tree: Any, legs: Legs, scope: Scope) -> Callable[[], Index]:
        """Return where an index is: an integer, or ["i", k], the k-th in scope from the outside."""
        if type(tree) is int:
            place = self.place(tree, legs)
            return lambda: place
        bound = self.bound(tree, scope)
        demand(runs_within(bound.legs, legs), "an index does not run over that size")
        return lambda: bound.now

    def bound(self, tree: Any, scope: Scope) -> Bound:
        """Return an index in scope."""
        demand(type(tree) is list and len(tree) == 2 and tree[0] == "i", f"{tree} is no index")
        demand(type(tree[1]) is int and 0 <= tree[1] < len(scope), "an index is not in scope")
        return scope[tree[1]]

    # -- terms -------------------------------------------------------------------------------------

    def normal(self, term: Term, order: Sequence[int] | None = None) -> tuple[Any, Term] | None:
        """Return a key that equal terms share, and the term with its wires joined; None for zero.

        The wires that are not summed over count as they are, or by their place in `order`.
        """
        self.work += 1 + len(term.boxes) + len(term.equal)
        demand(self.work <= MAX_WORK, "it takes too much work")
        root: dict[int, int] = {}
        inner = set(term.inner)

        def find(wire: int) -> int:
            while wire in root:
                wire = root[wire]
            return wire

        for a, b in term.equal:
            demand(self.sizes[a] == self.sizes[b], "two wires of different sizes are joined")
            a, b = sorted((find(a), find(b)), key=lambda w: (w not in self.value_of, w in inner, w))
            if a != b and b in self.value_of:
                return None
            if a != b:
                root[b] = a
        many: dict[Box, int] = defaultdict(int)
        for label, wires in term.boxes:
            many[label, tuple([find(w) for w in wires])] += 1
        apart = {w: find(w) for pair in term.equal for w in pair if w not in inner and w in root}
        touched = {wire for _, wires in many for wire in wires}
        tops = [wire for wire in term.inner if wire not in root]
        factor = term.factor
        for wire in tops:
            if wire not in touched:
                factor = multiply(factor, (dict(self.sizes[wire]), UNITY))
        outer = sorted((touched - inner) | {w for pair in apart.items() for w in pair})
        number_of = {wire: k for k, wire in enumerate(outer if order is None else order)}
        boxes = [((label, n), wires) for (label, wires), n in many.items()]
        shown = numbered(boxes, number_of, self.tries)
        pairs = sorted((number_of[w], number_of[top]) for w, top in apart.items())
        key = (tuple(outer) if order is None else (), tuple(pairs), tuple(shown))
        kept = tuple([wire for wire in tops if wire in touched])
        repeated = tuple([box for box, n in many.items() for _ in range(n)])
        return key, Term(factor, repeated, tuple(apart.items()), kept)

    def sums(self, terms: Iterable[Term], order: Sequence[int] | None = None) -> dict[Any, Term]:
        """Return a sum as {key: term}, with equal terms added, those that vanish left out."""
        result: dict[Any, Term] = {}
        for key, term in filter(None, (self.normal(term, order) for term in terms)):
            old = result.get(key)
            result[key] = term._replace(factor=add(old.factor, term.factor)) if old else term
            demand(len(result) <= MAX_TERMS, "there are too many terms")
        return {key: term for key, term in result.items() if term.factor[0]}

    def collected(self, terms: Iterable[Term]) -> Terms:
        """Return a sum with equal terms added, those that vanish left out."""
        return list(self.sums(terms).values())

    def times(self, a: Terms, b: Terms) -> Terms:
        """Return the product of two sums."""
        demand(len(a) * len(b) <= MAX_TERMS, "there are too many terms in a product")
        terms = [both(x, y) for x in a for y in b]
        return self.collected(terms) if len(a) > 1 and len(b) > 1 else terms

    def entries(self, factors: Iterable[Terms]) -> Terms:
        """Return a product of sums."""
        return reduce(self.times, factors, [UNIT])

    def delta(self, i: Index, j: Index) -> Terms:
        """Return the entry of an identity: one where the indices are equal."""
        demand(i[0] != j[0] or len(i) == len(j), "indices over different sizes are compared")
        pairs = zip(i[1:], j[1:], strict=False)
        return (
            [Term(ONE, equal=tuple([(a, b) for a, b in pairs if a != b]))] if i[0] == j[0] else []
        )

    def summed(self, legs: Legs, body: Callable[[Index], Terms]) -> Terms:
        """Return the sum over all indices of some legs."""
        found = ((index, term) for index in self.every(legs) for term in body(index))
        return [term._replace(inner=term.inner + index[1:]) for index, term in found]

    def box(self, what: Any, *indices: Index) -> Term:
        """Return a box at indices: their branches belong to its label."""
        label = (what, *[index[0] for index in indices])
        wires = tuple([wire for index in indices for wire in index[1:]])
        return Term(ONE, ((self.labels.setdefault(label, len(self.labels)), wires),))

    # -- the language: the entry of each kind of matrix --------------------------------------------

    def value(self, tree: Any, scope: Scope) -> Matrix:
        """Return the matrix or scalar that a tree stands for."""
        if type(tree) is Matrix:  # which a definition of a kind by others has in it
            return tree
        if is_number(tree):
            terms = [Term(self.number(tree))]
            return scalar(lambda: [term for term in terms if term.factor[0]])
        match tree:
            case ["tensor", name, *indices]:
                return self.tensor(name, indices, scope)
            case ["Identity", n]:
                legs = self.legs(self.size(n))
                return Matrix(legs, legs, self.delta)
            case ["CausalMask", n]:
                mask, legs = ("mask", self.size(n)), self.legs(self.size(n))

                def seen(i: Index, j: Index) -> Terms:
                    if any(type(part) is not int for branch in legs for part in branch):
                        return [self.box(mask, i, j)]
                    return [UNIT] if j <= i else []  # each value is a block by itself

                return Matrix(legs, legs, seen)
            case ["OneMatrix" | "ZeroMatrix" as kind, n, m]:
                entry = [UNIT] if kind == "OneMatrix" else []
                return Matrix(self.legs(self.size(n)), self.legs(self.size(m)), lambda i, j: entry)
            case ["OneHot", k, n]:
                legs = self.legs(self.size(n))
                a = self.index(k, legs, scope)
                return Matrix(legs, NONE, lambda i, _: self.delta(i, a()))
            case ["KroneckerDelta", k, m, n]:
                return self.value(["MatrixElement", ["Identity", n], k, m], scope)
            case ["MatrixElement", arg, k, m]:
                x = self.matrix(arg, scope)
                a, b = self.index(k, x.rows, scope), self.index(m, x.cols, scope)
                return scalar(lambda: x.at(a(), b()))
            case ["MatAdd" | "Add", _, *_]:
                values = self.alike([self.value(arg, scope) for arg in tree[1:]])
                return values[0]._replace(at=lambda i, j: [t for x in values for t in x.at(i, j)])
            case ["HadamardProduct", _, *_]:
                values = self.alike([self.matrix(arg, scope) for arg in tree[1:]])
                return values[0]._replace(at=lambda i, j: self.entries(x.at(i, j) for x in values))
            case ["HadamardPower", arg, k]:
                x = self.matrix(arg, scope)
                demand(type(k) is int and 0 <= k <= MAX_POWER, "an entrywise power not natural")
                return x._replace(at=lambda i, j: self.entries(x.at(i, j) for _ in range(k)))
            case ["MatMul" | "Mul", _, *_]:
                return self.product([self.value(arg, scope) for arg in tree[1:]])
            case ["KroneckerProduct", _, *_]:
                factors = fused(tree[1:]) if self.fused else tree[1:]
                return reduce(self.kron, [self.matrix(arg, scope) for arg in factors])
            case ["MatPow", arg, k]:
                demand(type(k) is int and abs(k) <= MAX_POWER, "a power that is not whole")
                x = self.matrix(arg, scope) if k >= 0 else self.inverse(arg, scope)
                self.fit(x.rows, x.cols)
                return self.product([x] * abs(k)) if k else x._replace(at=self.delta)
            case ["Pow", arg, k]:
                return self.scalar_power(arg, k, scope)
            case ["BlockMatrix", list(line), *lines]:
                demand(all(type(one) is list and len(one) == len(line) for one in lines), "a block")
                rows = [enumerate(one) for one in tree[1:]]
                return self.blocks({(i, j): x for i, one in enumerate(rows) for j, x in one}, scope)
            case ["BlockDiagMatrix", _, *_]:
                return self.blocks({(k, k): x for k, x in enumerate(tree[1:])}, scope)
            case ["ImmutableDenseMatrix", n, m, *args]:
                demand(type(n) is type(m) is int, "the size of an explicit matrix is no number")
                demand(len(args) == n * m > 0, "an explicit matrix lacks entries")
                values = [self.value(arg, scope) for arg in args]
                demand(not any(x.matrix for x in values), "an entry of a matrix is a matrix")
                spots = product(range(n), range(m))
                ends = [[["OneHot", i, n], ["Transpose", ["OneHot", j, m]]] for i, j in spots]
                units = [["MatMul", x, *end] for x, end in zip(values, ends, strict=True)]
                return self.value(["MatAdd", *units], scope)
            case ["Sum" | "HeadSum" | "ConcatHeads" | "StackHeads" as kind, body, n]:
                return self.heads(kind, body, n, scope)
            case ["LayerProduct", body, n, bool(reverse)]:
                return self.layer_product(body, n, reverse, scope)
            case ["OrderSum", body, n, order, bool(reverse)]:
                return self.orders("Order", body, n, self.order(order, scope), reverse, scope)
            case ["RowSoftmax", _] | ["RowSoftmax", _, _]:
                return self.softmax(self.alike([self.matrix(arg, scope) for arg in tree[1:]]))
            case ["Activation", name, arg]:
                demand(type(name) is str and name.isidentifier(), "an activation has no name")
                return self.activation(name, self.matrix(arg, scope))
            case ["RMSNorm" | "LayerNorm" as kind, arg, eps]:
                x = self.matrix(arg, scope)  # what a norm is stands with the axioms
                demand(not self.value(eps, scope).matrix, "the eps of a norm is a matrix")
                sizes = {"n": size_tree(sized(x.rows)), "d": size_tree(sized(x.cols))}
                norm = filled(AXIOMS["definitions"][kind], {"eps": eps, **sizes, "X": x})
                return self.value(norm, scope)
        return self.moved(tree, scope)

    def moved(self, tree: Any, scope: Scope) -> Matrix:
        """Return what an operation that moves, joins or sums indices makes of one matrix."""
        demand(type(tree) is list and len(tree) == 2, f"{tree!r:.40} is not in the language")
        kind, x = tree[0], self.matrix(tree[1], scope)
        r, c = x.rows, x.cols
        match kind:
            case "Transpose":
                return turned(x)
            case "vec_rows":
                return Matrix(beside(r, c), NONE, lambda i, _: x.at(*parted(r, c, i)))
            case "vec_cols":
                return Matrix(beside(c, r), NONE, lambda i, _: x.at(*parted(c, r, i)[::-1]))
            case "DiagMatrix":
                demand(NONE in (r, c), "DiagMatrix of a wide matrix")
                x, legs = (x, r) if c == NONE else (turned(x), c)
                return Matrix(
                    legs, legs, lambda i, j: self.times(self.delta(i, j), x.at(i, ORIGIN))
                )
        self.fit(r, c)
        match kind:
            case "Trace":
                return scalar(lambda: self.summed(r, lambda k: x.at(k, k)))
            case "DiagonalOf":
                return Matrix(r, NONE, lambda i, _: x.at(i, i))
        demand(kind == "DiagonalMatrix", f"{kind!r:.40} is no operation")
        return Matrix(r, c, lambda i, j: self.times(self.delta(i, j), x.at(i, j)))

    def matrix(self, tree: Any, scope: Scope) -> Matrix:
        """Return what a tree stands for, which must be a matrix."""
        value = self.value(tree, scope)
        demand(value.matrix, "a matrix is wanted, and a scalar given")
        return value

    def fit(self, a: Legs, b: Legs) -> None:
        """Demand that two sizes are split alike, or where nothing is evaluated, that they agree."""
        demand(sized(a) == sized(b) if self.presumed else a == b, "sizes do not fit")

    def alike(self, values: list[Matrix]) -> list[Matrix]:
        """Demand that all of some values have the same rows and columns."""
        for x in values[1:]:
            demand(x.matrix == values[0].matrix, "a scalar is added to a matrix, or equal to one")
            self.fit(x.rows, values[0].rows)
            self.fit(x.cols, values[0].cols)
        return values

    def tensor(self, name: Any, indices: list[Any], scope: Scope) -> Matrix:
        """Return a box for each block; its wires are its indices, then rows and columns."""
        demand(type(name) is int and 0 <= name < len(self.declared), "no such matrix")
        counts, *shape = self.declared[name]
        rows, cols = [self.legs(self.stated(size)) for size in shape]
        demand(len(indices) == len(counts), "a matrix has other indices")
        pairs = zip(indices, counts, strict=True)
        held = [self.index(i, self.legs(self.stated(n)), scope) for i, n in pairs]
        what = ("tensor", name)
        return Matrix(rows, cols, lambda i, j: [self.box(what, *[k() for k in held], i, j)])

    def product(self, values: list[Matrix]) -> Matrix:
        """Return the product of matrices and scalars."""
        scalars = [x for x in values if not x.matrix]
        matrices = [x for x in values if x.matrix]
        if not matrices:
            return scalar(lambda: self.entries(x.at(ORIGIN, ORIGIN) for x in scalars))
        for x, y in pairwise(matrices):
            self.fit(x.cols, y.rows)

        def at(i: Index, j: Index) -> Terms:
            here = [(i, self.entries(x.at(ORIGIN, ORIGIN) for x in scalars))]
            for x in matrices[:-1]:
                ways = []
                for k in self.every(x.cols):
                    found = [t for m, terms in here for t in self.times(terms, x.at(m, k))]
                    found = found if len(here) == 1 else self.collected(found)
                    ways.append((k, [t._replace(inner=t.inner + k[1:]) for t in found]))
                # what a proof brings is read to the end: it may hold what is not defined
                here = [way for way in ways if way[1] or not self.stating]
            return [t for m, terms in here for t in self.times(terms, matrices[-1].at(m, j))]

        return Matrix(matrices[0].rows, matrices[-1].cols, at)

    def kron(self, x: Matrix, y: Matrix) -> Matrix:
        """Return a Kronecker product: an index is one into x, then one into y."""

        def at(i: Index, j: Index) -> Terms:
            (a, c), (b, d) = parted(x.rows, y.rows, i), parted(x.cols, y.cols, j)
            return self.times(x.at(a, b), y.at(c, d))

        return Matrix(beside(x.rows, y.rows), beside(x.cols, y.cols), at)

    def scalar_power(self, base: Any, exponent: Any, scope: Scope) -> Matrix:
        """Return a whole power of a scalar, or one whose exponent is a number of layers."""
        if type(exponent) is int and exponent < 0:
            x = self.inverse(["ImmutableDenseMatrix", 1, 1, base], scope)
            demand(-exponent <= MAX_POWER, "a power of a scalar is too high")
            return self.product([x._replace(matrix=False)] * -exponent)
        x = self.value(base, scope)
        demand(not x.matrix, "a matrix is raised to the power of a number")
        over, under = self.number(exponent)
        whole = over.get((), Fraction(0))
        rest = plus(ordered(over), [((), -whole)])
        symbols = [leg for monomial, _ in rest for leg in monomial]
        sizes = all(name[0] == "n" and e > 0 and e.denominator == 1 for name, e in symbols)
        sizes &= all(factor > 0 and factor.denominator == 1 for _, factor in rest)
        demand(under == UNITY, "an exponent is divided by a sum")
        if not sizes:  # it may be any number, so the power is no product
            whole, rest = Fraction(0), ordered(over)
        demand(whole.denominator == 1 and 0 <= whole <= MAX_POWER, "a power that is not natural")

        def at() -> Terms:
            factors = [x.at(ORIGIN, ORIGIN) for _ in range(int(whole))]
            if rest:
                factors.append([self.opaque(("power", rest), [((), x.at(ORIGIN, ORIGIN))], ())])
            return self.entries(factors)

        return scalar(at)

    def blocks(self, trees: dict[tuple[int, int], Any], scope: Scope) -> Matrix:
        """Return blocks put together; those that are missing are zero."""
        placed = {where: self.matrix(tree, scope) for where, tree in trees.items()}
        rows: dict[int, Legs] = {}
        cols: dict[int, Legs] = {}
        for (i, j), x in placed.items():
            self.fit(rows.setdefault(i, x.rows), x.rows)
            self.fit(cols.setdefault(j, x.cols), x.cols)
        down, across = [
            [(k, branch) for k, legs in side.items() for branch in range(len(legs))]
            for side in (rows, cols)
        ]

        def at(i: Index, j: Index) -> Terms:
            (row, a), (col, b) = down[i[0]], across[j[0]]
            return placed[row, col].at((a, *i[1:]), (b, *j[1:])) if (row, col) in placed else []

        r, c = [union(s.values()) if len(s) > 1 else s[0] for s in (rows, cols)]
        return Matrix(r, c, at)

    def heads(self, kind: str, body: Any, count: Any, scope: Scope) -> Matrix:
        """Return a sum over an index, or the matrices side by side, or one below the other."""
        size = self.size(count)
        legs = self.legs(size)
        bound, index = Bound(legs), ["i", len(scope)]
        x = self.value(body, (*scope, bound))
        demand(x.matrix == (kind != "Sum"), f"the body of a {kind} is of the wrong kind")
        if kind == "HeadSum" and (orders := self.all_orders(body, size, index, scope)):
            return orders

        def at(k: Index, i: Index, j: Index) -> Terms:
            bound.now = k
            return x.at(i, j)

        if kind in ("ConcatHeads", "StackHeads"):  # side by side: transposed, one below the other
            x = turned(x) if kind == "ConcatHeads" else x
            rows = beside(legs, x.rows)
            stacked = Matrix(rows, x.cols, lambda i, j: at(*parted(legs, x.rows, i), j))
            return turned(stacked) if kind == "ConcatHeads" else stacked
        many = constant(size) if counts_by(body, index) else None
        if many is not None:
            places = [self.place(k, legs) for k in range(many)]
            return x._replace(at=lambda i, j: [t for k in places for t in at(k, i, j)])
        return x._replace(at=lambda i, j: self.summed(legs, lambda k: at(k, i, j)))

    # -- products over layers ----------------------------------------------------------------------

    def layers(self, legs: Legs, now: Index | None = None) -> list[Any]:
        """Return all layers, or those before one, in parts, the earliest first.

        A part is ("one", index), or all layers of a branch ("all", branch, size), or those before
        one of it ("before", branch, wire).
        """
        parts: list[Any] = []
        for k, branch in enumerate(legs):
            sizes = branch[1:] if branch and type(branch[0]) is int else branch
            demand(len(sizes) < 2, "a number of layers is split into factors")
            before = now[1:] if now is not None and now[0] == k else None
            if sizes:
                many = self.value_of.get(before[0]) if before else constant(sizes[0])
                demand((many or 0) <= MAX_POWER, "there are too many layers")
                if many is None:
                    parts.append(("before", k, *before) if before else ("all", k, sizes[0]))
                parts += [("one", (k, self.held(n, sizes[0]))) for n in range(many or 0)]
            elif before is None:
                parts.append(("one", (k,)))
            if before is not None:
                break
        return parts

    def layered(
        self, body: Any, count: Any, scope: Scope, some: bool = True
    ) -> tuple[Matrix, Any, Any]:
        """Return the body of a product over layers, the parts of these, and its entries at one.

        A count may be an index: the layers before that one. Of what may be no layers nothing need
        be defined, so where it is not certain that there are `some` the body states nothing.
        """
        before = self.bound(count, scope) if type(count) is list and count[:1] == ["i"] else None
        none = type(count) is int and count == 0
        legs = before.legs if before else NONE if none else self.legs(self.size(count))
        layer, some = Bound(legs), some and not before and not none

        def parts() -> list[Any]:
            return [] if none else self.layers(legs, before.now if before else None)

        outer, self.stating = self.stating, self.stating and some
        x = self.matrix(body, (*scope, layer))
        self.stating = outer
        self.fit(x.rows, x.cols)

        def at_layer(index: Index) -> Callable[[Index, Index], Terms]:
            def at(i: Index, j: Index) -> Terms:
                layer.now = index
                outer, self.stating = self.stating, self.stating and some
                terms = x.at(i, j)
                self.stating = outer
                return terms

            return at

        return x, parts, at_layer

    def over_layers(
        self, kind: Any, x: Matrix, at_layer: Any, part: Any, more: Index = ()
    ) -> Matrix:
        """Return a matrix for one layer, or a box for a product over layers without number."""
        what, front, *over = part
        if what == "one":
            return x._replace(at=at_layer(front))
        size = over[0] if what == "all" else self.sizes[over[0]]

        def at(i: Index, j: Index) -> Terms:
            layer = (front, self.wire(size))
            inside = at_layer(layer)
            arguments = [((layer, r, c), inside(r, c)) for r, c in self.places(x.rows, x.cols)]
            extra = () if what == "all" else tuple(over)
            return [self.opaque((*kind, what), arguments, (i, j, (0, *more)), extra)]

        return x._replace(at=at)

    def layer_product(self, body: Any, count: Any, reverse: bool, scope: Scope) -> Matrix:
        """Return a product over layers, the last one first unless in reverse."""
        x, parts, at_layer = self.layered(body, count, scope)

        def at(i: Index, j: Index) -> Terms:
            kind = ("LayerProduct", reverse)
            factors = [self.over_layers(kind, x, at_layer, part) for part in parts()]
            factors = factors[:: 1 if reverse else -1] or [x._replace(at=self.delta)]
            return self.product(factors).at(i, j)

        return x._replace(at=at)

    def order(self, tree: Any, scope: Scope) -> Callable[[], Any]:
        """Return an order, a polynomial in sizes; of an index that has no value, its wire."""
        if type(tree) is not list or tree[:1] != ["i"]:
            polynomial = () if type(tree) is int and tree == 0 else self.size(tree)
            return lambda: polynomial
        bound = self.bound(tree, scope)

        def chosen() -> Any:
            if bound.legs == NONE:
                return ()
            demand(len(bound.legs) == 1 and len(bound.legs[0]) < 2, "an order that is split")
            known = self.value_of.get(bound.now[1])
            return bound.now[1] if known is None else ordered(number(known)[0])

        return chosen

    def all_orders(self, body: Any, size: Size, k: Any, scope: Scope) -> Matrix | None:
        """Return Σ_k of orders k, 0 to size - 1, each with S^k beside it or not, as one box.

        The orders of B, each ⊗ S^k, are those of B ⊗ S.
        """
        match body:
            case ["OrderSum", inner, *rest]:
                mark, many = 1, k
            case ["KroneckerProduct", ["OrderSum", b, *rest], ["LayerProduct", mark, many, _]]:
                inner = ["KroneckerProduct", b, mark]
            case ["KroneckerProduct", ["LayerProduct", mark, many, _], ["OrderSum", b, *rest]]:
                inner = ["KroneckerProduct", mark, b]
            case _:
                return None
        count, order, reverse = rest
        if not order == many == k or names([inner, count], k) or names(mark, ["i", k[1] + 1]):
            return None
        self.value(body, (*scope, Bound(self.legs(size))))  # it has to be well formed as it stands
        return self.orders("Orders", inner, count, lambda: size, reverse, (*scope, Bound(NONE)))

    def orders(
        self, kind: str, body: Any, count: Any, chosen: Any, reverse: bool, scope: Scope
    ) -> Matrix:
        """Return the sum of products of as many layers as are chosen, or of fewer ("Orders")."""
        x, parts, at_layer = self.layered(body, count, scope, some=False)
        zero, identity = x._replace(at=lambda i, j: []), x._replace(at=self.delta)

        def summed(layers: list[Any], order: Any) -> Matrix:
            """Return the sum over some layers."""
            if order == ():
                return identity if kind == "Order" else zero
            some = type(order) is tuple and natural(order)
            shown, more = (order, ()) if type(order) is tuple else (self.sizes[order], (order,))
            if not layers and some:
                return zero if kind == "Order" else identity
            if not layers:
                unknown = [self.box(("no layers", kind, shown, more != ()), (0, *more))]
                return x._replace(at=lambda i, j: self.times(unknown, self.delta(i, j)))
            *rest, (what, *where) = layers
            if what == "one":
                demand(some, "an order that may be none")
                without, fewer = summed(rest, order), summed(rest, plus(order, UNITY.items(), -1))
                last = x._replace(at=at_layer(where[0]))
                used = self.product([fewer, last] if reverse else [last, fewer])
                return x._replace(at=lambda i, j: self.collected(without.at(i, j) + used.at(i, j)))
            demand(not rest, "layers that follow others without number")
            if kind == "Orders" and what == "all":  # of more orders than layers nothing is added
                most = plus(where[1], UNITY.items())
                excess = plus(order, most, -1)
                shown = most if not excess or natural(excess) else order
            known = (kind, reverse, shown, more != ())
            return self.over_layers(known, x, at_layer, layers[0], more)

        return x._replace(at=lambda i, j: summed(parts(), chosen()).at(i, j))

    # -- boxes with an argument --------------------------------------------------------------------

    def opaque(
        self, kind: Any, arguments: list[Any], at: Any, extra: Index = (), partial: bool = False
    ) -> Term:
        """Return the box of a function of sums, at indices: the same box for equal arguments.

        An argument is (its own indices, terms). The other wires of the terms only say where the
        function acts. Where it is `partial`, the statement takes it there.
        """
        parts = []
        occurs: dict[int, list[Any]] = {wire: [] for wire in extra}
        for n, (indices, terms) in enumerate(arguments):
            own, terms = [w for index in indices for w in index[1:]], self.collected(terms)
            parts.append(([index[0] for index in indices], own, terms))
            for t in terms:
                pairs = [(-1, (wire,)) for pair in t.equal for wire in pair]
                for label, wires in [*t.boxes, *pairs]:
                    for p, wire in enumerate(wires):
                        if wire not in own and wire not in t.inner:
                            occurs.setdefault(wire, []).append((n, label, p))
        groups: dict[Any, list[int]] = defaultdict(list)
        for wire in sorted(occurs):
            place = [*extra, wire].index(wire)
            groups[self.sizes[wire], place, tuple(sorted(occurs[wire]))].append(wire)
        few = len(occurs) <= MAX_SLOTS
        first: Any = None
        for order in product(*[permutations(g) if few else [g] for _, g in sorted(groups.items())]):
            slots = list(chain(*order))
            sums = [sorted(self.sums(terms, [*own, *slots]).items()) for _, own, terms in parts]
            forms = [
                (tuple(marks), tuple([self.sizes[w] for w in own]), tuple([k for k, _ in s]))
                for (marks, own, _), s in zip(parts, sums, strict=True)
            ]
            shape = (kind, tuple([self.sizes[w] for w in slots]), tuple(forms))
            factors = [t.factor for s in sums for _, t in s]
            first = first or (shape, slots, factors)
            known = self.known.get(shape, [])
            found = next((name for name, one in known if all(map(same, one, factors))), None)
            if found is not None:
                break
        else:
            shape, slots, factors = first
            found = sum(map(len, self.known.values()))
            self.known.setdefault(shape, []).append((found, factors))
        places = [w if w in self.special or w in self.value_of else None for w in slots]
        if partial and self.stating:
            self.met.add((self.way, found, tuple(places)))
        elif partial:
            where = product({None, self.way}, product(*[{None, p} for p in places]))
            met = any((way, found, one) in self.met for way, one in where)
            demand(met, "what is not defined in the statement is used")
        return self.box(("opaque", found), (0, *slots), *at)

    def inverse(self, tree: Any, scope: Scope) -> Matrix:
        """Return the inverse of a matrix: of its parts, where they are square, or a box."""
        match tree:
            case ["Identity", _]:
                return self.value(tree, scope)
            case ["MatPow", arg, int(k)] if type(k) is int:
                return self.value(["MatPow", arg, -k], scope)
            case ["Transpose", arg]:
                return turned(self.inverse(arg, scope))
            case ["KroneckerProduct" | "MatMul" as kind, *args]:
                numbers = [arg for arg in args if is_number(arg)]
                factors = [arg for arg in args if not is_number(arg)]
                read = [self.value(arg, scope) for arg in factors]
                square = all(one.matrix and sized(one.rows) == sized(one.cols) for one in read)
                if factors and square and kind == "MatMul":
                    powers = [self.value(["Pow", arg, -1], scope) for arg in numbers]
                    inverted = [self.inverse(arg, scope) for arg in reversed(factors)]
                    return self.product([*powers, *inverted])
                if factors and square and not numbers:
                    return reduce(self.kron, [self.inverse(arg, scope) for arg in factors])
        x = self.matrix(tree, scope)
        self.fit(x.rows, x.cols)

        def at(i: Index, j: Index) -> Terms:
            arguments = [((r, c), x.at(r, c)) for r, c in self.places(x.rows, x.cols)]
            return [self.opaque("inverse", arguments, (i, j), partial=True)]

        return x._replace(at=at)

    def activation(self, name: str, x: Matrix) -> Matrix:
        """Return a function of each entry; a positive factor comes out where it has a degree."""

        def at(i: Index, j: Index) -> Terms:
            terms, factor = self.collected(x.at(i, j)), ONE
            if name in AXIOMS["degrees"]:
                content = self.content(terms)
                factor = power(content, Fraction(AXIOMS["degrees"][name]), self.positive)
                terms = [t.by(power(content, Fraction(-1), set())) for t in terms]
            if all(t[1:] == UNIT[1:] for t in terms):
                at_number = reduce(add, [t.factor for t in terms], number(0))
                for known, value in AXIOMS["values"].get(name, {}).items():
                    if at_number == number(Fraction(known)):
                        return [Term(multiply(factor, number(value)))] if value else []
            partial = name == "rsqrt" and (self.stating or self.strict)
            box = self.opaque(("activation", name), [((), terms)], (), partial=partial)
            return [box.by(factor)]

        return x._replace(at=at)

    def content(self, terms: Terms) -> Ratio:
        """Return the largest factor of a sum that is known to be positive."""
        parts = [leg for t in terms for leg in t.factor[0].items()]
        if not parts or any(t.factor[1] != UNITY for t in terms):
            return ONE
        above, below = [f.numerator for _, f in parts], [f.denominator for _, f in parts]
        shared = sorted({name for m, _ in parts for name, _ in m} & self.positive)
        lowest = [(name, min(dict(m).get(name, Fraction(0)) for m, _ in parts)) for name in shared]
        return {merged(lowest): Fraction(gcd(*above), lcm(*below))}, UNITY

    def softmax(self, values: list[Matrix]) -> Matrix:
        """Return a softmax of each row, of scores and a mask or without one."""
        x, masked = values[0], len(values) > 1

        def at(i: Index, j: Index) -> Terms:
            read = [(c, [self.collected(v.at(i, c)) for v in values]) for c in self.every(x.cols)]
            ways = [(c, found) for c, found in read if not masked or found[1]]
            demand(ways or self.stating or not self.strict, "a softmax without any column")
            if j[0] not in [c[0] for c, _ in ways]:
                return []
            if len(ways) == 1:  # a shift of the row changes nothing, whatever block it is
                ((c, found),) = ways
                kept = [t for t in found[0] if not {*c[1:]}.isdisjoint(t.wires())]
                ways, j = [((0, *c[1:]), [kept, *found[1:]])], (0, *j[1:])
            elif not masked and all(len(c) == 1 for c, _ in ways):  # less the first column
                first = [t.by(MINUS) for t in ways[0][1][0]]
                ways = [(c, [self.collected([*found[0], *first])]) for c, found in ways]
            if not masked and not any(found[0] for _, found in ways):
                return [Term(self.power((dict(sized(x.cols)), UNITY), Fraction(-1)))]
            arguments = [((c,), terms) for c, found in ways for terms in found]
            partial = masked and (self.stating or self.strict)
            return [self.opaque(("softmax", masked), arguments, (j,), partial=partial)]

        return x._replace(at=at)


# -- the rules -------------------------------------------------------------------------------------


class Fact(NamedTuple):
    """lhs - rhs of an equation that holds for all values of its bound indices."""

    bounds: Scope
    lhs: Matrix
    rhs: Matrix
    strict: bool = False


class Case(NamedTuple):
    """An entry of the claim: its free indices, its row and column, and the terms of lhs - rhs."""

    free: tuple[Index, ...]
    row: Index
    col: Index
    terms: Terms


def proved(context: Context, claim: Equation, free: tuple[Free, ...], proof: Any) -> int:
    """Check a proof of a claim, which has the first of the free indices; return its size."""
    demand(type(proof) is dict and proof.get("rule") in ("same", "cancel", "induction"), "no rule")
    if proof["rule"] == "induction":
        return by_induction(context, claim, free, proof)
    reader = Reader(context, proof.get("splits", []))
    if proof["rule"] == "cancel":
        return cancelled(reader, claim, free, proof)
    demand(set(proof) == {"rule"}, "a proof has other parts than its rule")
    demand(claim.lhs == claim.rhs, "the two sides are different trees")
    reader.presumed = True
    for one in (claim, *context.given):
        read_fact(reader, one)
    return 1


def opened(reader: Reader, frees: Sequence[Free]) -> Scope:
    """Return indices in scope, not yet anywhere; one that is the last has its place."""
    legs = [reader.legs(reader.size(free.count)) for free in frees]
    return tuple(
        Bound(over, (len(over) - 1,) if free.last else None)
        for free, over in zip(frees, legs, strict=True)
    )


def read_fact(reader: Reader, one: Equation, scope: Scope = (), strict: bool = False) -> Fact:
    """Return an equation as a fact, in the scope of other indices."""
    bounds = opened(reader, one.frees)
    lhs, rhs = [reader.value(side, (*scope, *bounds)) for side in (one.lhs, one.rhs)]
    reader.alike([lhs, rhs])
    return Fact(bounds, lhs, rhs, strict)


def entry(reader: Reader, fact: Fact, at: Iterable[Index], i: Index, j: Index) -> Terms:
    """Return an entry of lhs - rhs."""
    for bound, now in zip(fact.bounds, at, strict=True):
        demand(bound.last in (None, now), "a fact about the last layer is used at another")
        bound.now = now
    outer, reader.strict = reader.strict, reader.strict or fact.strict
    terms = fact.lhs.at(i, j) + [t.by(MINUS) for t in fact.rhs.at(i, j)]
    reader.strict = outer
    return terms


def entries(reader: Reader, fact: Fact, special: bool = False) -> list[Case]:
    """Return the entries of lhs - rhs, one for each choice of branches."""
    moving = [bound.legs for bound in fact.bounds if bound.last is None]
    cases = []
    for *found, i, j in reader.places(*moving, fact.lhs.rows, fact.lhs.cols):
        rest = iter(found)
        at = tuple([next(rest) if bound.last is None else bound.last for bound in fact.bounds])
        if special:
            reader.special |= {wire for index in at for wire in index[1:]}
            reader.way = way_of(at)
        cases.append(Case(at, i, j, entry(reader, fact, at, i, j)))
    reader.way = None if special else reader.way
    return cases


def way_of(at: Iterable[Index]) -> Index:
    """Return the branches that the free indices are in."""
    return tuple([index[0] for index in at])


def cancelled(reader: Reader, claim: Equation, free: tuple[Free, ...], proof: Any) -> int:
    """Check that lhs - rhs is a sum of facts in contexts, in every block; count its terms."""
    demand(set(proof) <= {"rule", "splits", "fused", "facts", "uses"}, "a proof has other parts")
    reader.fused = proof.get("fused", False)
    demand(type(reader.fused) is bool, "fused is true or false")
    scope = opened(reader, free)
    fact = read_fact(reader, claim._replace(frees=()), scope[: len(claim.frees)])
    fact = fact._replace(bounds=scope)  # which may hold the last layer, too
    stated = [read_fact(reader, one) for one in reader.context.given if one.stated]
    cases = entries(reader, fact, special=True)
    for one in stated:
        entries(reader, one)
    reader.stating = False
    demand(set(reader.unstated) <= reader.lengths, "a split of a size that may vanish")
    facts = [read_fact(reader, one, (), not one.stated) for one in reader.context.given]
    facts += [derived(reader, one, free, fact.bounds, cases) for one in proof.get("facts", [])]
    for use in proof.get("uses", []):
        add_use(reader, use, facts, fact, cases)
    rest = [term for case in cases for term in reader.collected(case.terms)]
    demand(not rest, f"{len(rest)} terms do not cancel")
    return sum(len(case.terms) for case in cases)


def derived(reader: Reader, fact: Any, free: Any, scope: Scope, cases: list[Case]) -> Fact:
    """Return a fact that an inverse, a schema, or equal arguments give."""
    strict, premises, proofs = False, list[Any](), list[Any]()
    frees = tuple(map(Free, fact[1]))
    match fact:
        case ["inverse", _, e, "left" | "right" as side]:
            factors = [["MatPow", e, -1], e]
            lhs, rhs = ["MatMul", *factors[:: 1 if side == "left" else -1]], ["MatPow", e, 0]
        case ["axiom", _, name, form, values, proofs]:
            schema = AXIOMS["axioms"][name]["forms"][form]
            others, sizes = schema.get("others", []), schema.get("sizes", [])
            demand(set(values) == {*sizes, *schema["matrices"], *others}, "other parts")
            functions = schema.get("functions", [values.get("g")])
            demand(values.get("g") in functions, f"{name} says nothing of this function")
            inner, every = (*scope, *opened(reader, frees)), dict(values)
            for symbol, shape in schema["matrices"].items():
                x = reader.matrix(values[symbol], inner)
                for name, size in zip(shape, (sized(x.rows), sized(x.cols)), strict=True):
                    tree = every.setdefault(name, size_tree(size)) if type(name) is str else name
                    demand(reader.size(tree) == size, f"{symbol} has another shape")
            lhs, rhs = filled(schema["lhs"], every), filled(schema["rhs"], every)
            premises = [(frees, *pair) for pair in filled(schema.get("premises", []), every)]
            strict = schema.get("strict", False)
        case ["cong", _, lhs, rhs, proofs]:
            premises = [((*frees, *more), a, b) for more, a, b in congruent(lhs, rhs)]
        case _:
            raise Rejected(f"{fact!r:.40} is no fact")
    demand(len(proofs) == len(premises), "a premise has no proof")
    for (own, left, right), proof in zip(premises, proofs, strict=True):
        check = read_fact(reader, Equation(own, left, right), scope, True)
        for at in dict.fromkeys(case.free for case in cases):  # it is defined where it is used
            for bound, now in zip(scope, at, strict=True):
                bound.now = now
            reader.way = way_of(at)
            entries(reader, check)
        reader.way = None
        proved(reader.context, Equation((*free, *own), left, right), (*free, *own), proof)
    return read_fact(reader, Equation(frees, lhs, rhs), scope, strict)


def congruent(a: Any, b: Any) -> list[Any]:
    """Return what makes two functions equal: (more free indices, one side, the other) of each."""
    match a, b:
        case ["RowSoftmax", *s], ["RowSoftmax", *t] if len(s) == len(t):
            return [((), x, y) for x, y in zip(s, t, strict=True)]
        case ["Activation", f, x], ["Activation", g, y] if f == g:
            return [((), x, y)]
        case ["RMSNorm" | "LayerNorm" as f, x, d], ["RMSNorm" | "LayerNorm" as g, y, e]:
            demand(f == g and d == e, "these are two norms")
            return [((), x, y)]
        case ["LayerProduct" | "OrderSum" as f, x, *s], [g, y, *t] if f == g and s == t:
            return [((Free(s[0]),), x, y)]
    raise Rejected("these are two functions")


def add_use(reader: Reader, use: Any, facts: list[Fact], claim: Fact, cases: list[Case]) -> None:
    """Add minus coefficient · context[fact] to every entry of the claim that it lies in."""
    parts = {"fact", "coefficient", "at"}
    demand(set(use) in (parts, parts | {"context"}), "a use has other parts")
    demand(type(use["fact"]) is int and 0 <= use["fact"] < len(facts), "a use of no fact")
    fact, factor = facts[use["fact"]], multiply(reader.number(use["coefficient"]), MINUS)
    if "context" in use:
        inside = in_context(reader, use["context"], use["at"], fact, claim)
    else:  # the fact itself
        demand(fact.lhs[:2] == claim.lhs[:2], "a fact of another shape")
        pairs = zip(use["at"], fact.bounds, strict=True)
        where = [reader.index(i, bound.legs, claim.bounds) for i, bound in pairs]

        def inside(case: Case) -> Terms:
            return entry(reader, fact, [at() for at in where], case.row, case.col)

    for case in cases:
        for bound, now in zip(claim.bounds, case.free, strict=True):
            bound.now = now
        reader.way = way_of(case.free)
        case.terms.extend([t.by(factor) for t in inside(case)])


def in_context(reader: Reader, context: Any, at: Any, fact: Fact, claim: Fact) -> Any:
    """Return the entries of a fact within boxes; the wires of a context are numbered in it."""
    parts = {"sizes", "held", "free", "rows", "cols", "boxes", "hole"}
    demand(set(context) == parts, "a context has other parts")
    sizes = [reader.size(tree) for tree in context["sizes"]]

    def lies(index: Any, legs: Legs) -> Index:
        """Return an index of wires and marks by the number of its branch, or -1 if it has none."""
        demand(all(type(w) is int and w < len(sizes) for w in index), "a context has no such wire")
        branch = tuple([sizes[w] if w >= 0 else w for w in index])
        return (legs.index(branch) if branch in legs else -1, *[w for w in index if w >= 0])

    boxes = []
    for tree, counts, row, col in context["boxes"]:
        bounds = opened(reader, [Free(count) for count, _ in counts])
        x = reader.value(tree, (*claim.bounds, *bounds))
        where = [lies(i, bound.legs) for (_, i), bound in zip(counts, bounds, strict=True)]
        demand(all(one[0] >= 0 for one in where), "an index of a box is out of its range")
        ends = lies(row, x.rows), lies(col, x.cols)
        demand(all(end[0] >= 0 for end in ends), "a box does not fit")
        boxes.append((bounds, where, x, ends))
    fact_at = [lies(i, bound.legs) for i, bound in zip(at, fact.bounds, strict=True)]
    demand(all(one[0] >= 0 for one in fact_at), "an index of a fact is out of its range")
    row, col = context["hole"]
    hole = lies(row, fact.lhs.rows), lies(col, fact.lhs.cols)
    demand(all(end[0] >= 0 for end in hole), "the hole does not fit")
    held = [(wire, reader.place(value, ((sizes[wire],),))[1]) for wire, value in context["held"]]
    outer = [lies(index, claim.bounds[k].legs) for k, index in context["free"]]
    outer += [lies(context["rows"], claim.lhs.rows), lies(context["cols"], claim.lhs.cols)]

    def inside(case: Case) -> Terms:
        meant = [*[case.free[k] for k, _ in context["free"]], case.row, case.col]
        pairs = list(zip(outer, meant, strict=True))
        if any(a[0] != b[0] for a, b in pairs):
            return []
        joined = [pair for a, b in pairs for pair in zip(a[1:], b[1:], strict=True)] + held
        wires = dict(joined)
        equal = [(wires[wire], other) for wire, other in joined if wires[wire] != other]
        new = {w: reader.wire(size) for w, size in enumerate(sizes) if w not in wires}
        wires |= new

        def placed(index: Index) -> Index:
            return (index[0], *[wires[w] for w in index[1:]])

        terms = [Term(ONE, (), tuple(equal), tuple(new.values()))]
        for bounds, where, x, (row, col) in boxes:
            for bound, index in zip(bounds, where, strict=True):
                bound.now = placed(index)
            terms = reader.times(terms, x.at(placed(row), placed(col)))
        return reader.times(terms, entry(reader, fact, map(placed, fact_at), *map(placed, hole)))

    return inside


# -- induction over the number of layers -----------------------------------------------------------


def by_induction(context: Context, claim: Equation, free: tuple[Free, ...], proof: Any) -> int:
    """Check a claim for every depth L: for one layer, and for L + 1 where it holds for the first L.

    The layers are counts and nothing else, and hypotheses speak of all layers alike. What may be
    undefined, an inverse or a root, does not depend on their number: so where the claim is defined
    for L + 1 layers, it is for the first L.
    """
    demand(set(proof) == {"rule", "over", "base", "step"}, "an induction has other parts")
    over, statement = proof["over"], context.statement
    demand(type(over) is int and 0 <= over < len(statement["sizes"]), "the depth is no size")
    demand(over not in context.depths, "two inductions over one depth")
    demand(all(one.last for one in free[len(claim.frees) :]), "a premise")
    depth, tensors = ["size", over], statement["tensors"]
    counts = [n for _, counts, *_ in tensors for n in counts]
    frees = [one.count for equation in (claim, *context.given) for one in equation.frees]
    shapes = [shape for _, _, *shape in tensors]
    demand(not names(shapes, depth), "the depth is the size of a matrix")
    demand(all(n == depth or not names(n, depth) for n in counts), "a count beside the depth")
    demand(all(n == depth or not names(n, depth) for n in frees), "a count beside it")
    # an induction around this one proves its claim for all sizes: its hypothesis is for all, too
    known = [[one.lhs, one.rhs] for one in context.given if one.stated]
    demand(not names([known, statement["nonzero"]], depth), "a hypothesis names the depth")
    demand(not partial([claim.lhs, claim.rhs], depth), "a root at each depth")
    # the claim for L layers is used at all values of its indices, and stated at one
    defined = not claim.frees or not partial([claim.lhs, claim.rhs])
    demand(defined, "a root that an index may lead to")

    L = ordered({((f"n{over}", Fraction(1)),): Fraction(1)})
    union_of = (plus(L, UNITY.items()), union([((L,),), NONE]))
    free = (*free, Free(depth, last=True))
    base = context._replace(depths=context.depths | {over}, ones=context.ones | {over})
    later, part, tensors, given = replaced(
        (free, claim, tensors, context.given), depth, ["Add", depth, 1]
    )
    step = Context(
        {**statement, "tensors": tensors},
        (*given, claim._replace(stated=False)),
        base.depths,
        context.ones,
        context.firsts | {L},
        (*context.unions, union_of),
    )
    return proved(base, claim, free, proof["base"]) + proved(step, part, later, proof["step"])


def partial(tree: Any, depth: Any = None) -> bool:
    """Return whether what may be undefined is there at all, or depends on the number of layers."""
    match tree:
        case ["MatPow" | "Pow", _, k] if type(k) is int:
            risky = k < 0 and not is_number(tree)
        case ["RMSNorm" | "LayerNorm", *_] | ["Activation", "rsqrt", *_] | ["RowSoftmax", _, _, *_]:
            risky = True
        case _:
            risky = False
    inner = type(tree) is list and any(partial(part, depth) for part in tree)
    return inner or (risky and (depth is None or names(tree, depth)))


# -- reading a certificate -------------------------------------------------------------------------

FLAGS = {"real", "positive", "nonnegative", "nonzero", "negative"}
PARTS = {"schema", "sizes", "scalars", "tensors", "indices", "given", "nonzero", "lhs", "rhs"}


def check(certificate: Any) -> str:
    """Return a line on what was proved, or raise Rejected.

    >>> n = ["size", 0]
    >>> made = {"schema": 3, "sizes": ["n"], "scalars": [], "tensors": [["A", [], n, n]]}
    >>> made |= {"indices": [], "given": [], "nonzero": [], "proof": {"rule": "cancel"}}
    >>> check({**made, "lhs": ["tensor", 0], "rhs": ["Transpose", ["tensor", 0]]})
    Traceback (most recent call last):
    ...
    proofs.replay.Rejected: 2 terms do not cancel
    """
    try:
        whole = type(certificate) is dict and set(certificate) == {*PARTS, "proof"}
        demand(whole, "a part is missing, or one too many")
        schema = certificate["schema"]
        demand(type(schema) is int and schema == 3, f"the schema is {schema}, and 3 is read here")
        for name, flags in certificate["scalars"]:
            demand(type(name) is str and set(flags) <= FLAGS, "a scalar has an unknown property")
        free = tuple([Free(count) for _, count in certificate["indices"]])
        given = tuple(
            Equation(tuple(map(Free, counts)), lhs, rhs, True)
            for counts, lhs, rhs in certificate["given"]
        )
        claim = Equation(free, certificate["lhs"], certificate["rhs"])
        terms = proved(Context(certificate, given), claim, free, certificate["proof"])
    except RecursionError:
        raise Rejected("its trees are nested too deeply to be read") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise Rejected(f"it is not in the form of a certificate: {error!r}") from None
    return f"by {certificate['proof']['rule']}: {terms} terms cancel, {len(given)} hypotheses"


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, in which each key stands once."""
    demand(len({key for key, _ in pairs}) == len(pairs), "a key stands twice in one object")
    return dict(pairs)


def no_number(text: str) -> Any:
    """Refuse what JSON has not: NaN and the infinities."""
    raise Rejected(f"{text} is no number")


def main(arguments: list[str]) -> int:
    """Check one file: 0 when accepted, 1 when rejected, 2 when there is nothing to check."""
    if len(arguments) != 1:
        print("usage: python replay.py FILE")
        return 2
    sys.setrecursionlimit(10_000)
    try:
        text = Path(arguments[0]).read_text(encoding="utf-8")
        certificate = json.loads(text, object_pairs_hook=once, parse_constant=no_number)
        print(f"accepted: {check(certificate)}")
    except (OSError, ValueError, RecursionError) as error:
        print(f"cannot read {arguments[0]}: {error}")
        return 2
    except Rejected as why:
        print(f"rejected: {why}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
