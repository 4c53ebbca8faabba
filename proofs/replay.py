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

**Eight rules.** CANCEL: lhs - rhs - Σ coefficient · context[fact] has no terms left. A fact is
lhs - rhs of an equation: a hypothesis (GIVEN), an instance of a schema in axioms.json whose
premises are proved (AXIOM), or one of a lemma, which is a certificate by itself (LEMMA), as a whole
claim may be. INDUCTION over a number of layers L: the claim holds for one layer, and for L + 1
layers where it does for the first L. UNROLL: L + 1 layers are the union of the first L layers and
one, so a sum over them is two sums, and a product two factors. GENERALISE: what holds for any
matrix holds for the one that is there. REWRITE: equals may stand for equals. A statement in cases
is a list of statements, each with its proof, at all values of an index.

**Every function is total.** Where there is no inverse or reciprocal, it is 0, and so is a root or
a logarithm of what has none, and a weight under an empty mask. What is proved of these total
functions holds in particular where everything in the statement is defined, which is all that it
says. A few laws need more, such as E⁻¹E = I: they are used of an E⁻¹ that the statement itself has.
Some need a sign, such as log(xy) = log x + log y: it is certain by the form of x, or from the
statement. So are divisors, roots, sizes such as n - 2 and integer indices: they have a meaning
because the statement has them.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain, count, groupby, pairwise, product
from math import floor, gcd, lcm, prod
from pathlib import Path
from typing import Any, NamedTuple

MAX_TERMS, MAX_POWER, MAX_PRIME, MAX_TRIES = 500_000, 5_000, 100_000, 20_000
MAX_BITS = 100_000  # of a number
MAX_CASES = 16  # of a statement
MAX_WORK = 2_000_000  # steps of one check, which take less than a minute
SIGNS = {"nonnegative": {"nonnegative"}, "nonzero": {"nonzero"}}
SIGNS["positive"] = {"nonnegative", "nonzero"}
AXIOMS = json.loads((Path(__file__).parents[1] / "algebra" / "axioms.json").read_text("utf-8"))


class Rejected(Exception):
    """The certificate does not prove its claim; the message says where it fails."""


def demand(condition: object, why: str) -> None:
    """Reject the certificate unless the condition holds."""
    if not condition:
        raise Rejected(why)


WORK = [0]  # the steps that are left


def spend(steps: int) -> None:
    """Count steps, and reject a certificate that takes too many: a short one may need hours."""
    WORK[0] -= steps
    demand(WORK[0] > 0, "it takes too much work")


# -- numbers: rational functions of symbols, exactly -----------------------------------------------

Monomial = tuple[tuple[str, Fraction], ...]  # (symbol, exponent): "n0" is a size, "#2" the number 2
Polynomial = dict[Monomial, Fraction]
Ratio = tuple[Polynomial, Polynomial]
Size = tuple[tuple[Monomial, Fraction], ...]  # the terms of a polynomial, in order

UNITY: Polynomial = {(): Fraction(1)}
ONE: Ratio = (UNITY, UNITY)
MINUS: Ratio = ({(): Fraction(-1)}, UNITY)


def total(terms: Iterable[tuple[Monomial, Fraction]]) -> Polynomial:
    """Return the polynomial of these terms, with exponents of primes (`#p`) between 0 and 1."""
    result: Polynomial = {}
    for monomial, factor in terms:
        for name, exponent in monomial:
            if name[0] == "#" and not 0 < exponent < 1:
                factor *= Fraction(int(name[1:])) ** floor(exponent)
                monomial = merged([*monomial, (name, Fraction(-floor(exponent)))])
        result[monomial] = result[monomial] + factor if monomial in result else factor
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
    spend(10 * len(a) * len(b))
    return total((merged((*m, *n)), f * g) for m, f in a.items() for n, g in b.items())


def add(a: Ratio, b: Ratio) -> Ratio:
    """Return the sum of two rational functions."""
    spend(10 * (len(a[0]) + len(b[0])))
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


def twelfths(angle: Ratio) -> int | None:
    """Return how often π/12 goes into an angle, or None if it is no multiple of it."""
    over, under = angle
    if set(over) != {(("pi", Fraction(1)),)} or under != UNITY:
        return None
    many = 12 * over[("pi", Fraction(1)),]
    return int(many) if many.denominator == 1 else None


def sine(twelfth: int) -> Ratio | None:
    """Return the sine of a multiple of π/12, a root of a number or less it, if it is listed."""
    turn, half = twelfth % 24, twelfth % 12
    square = AXIOMS["sine_squares"].get(str(min(half, 12 - half)))
    if square is None:
        return None
    root = power(number(Fraction(*square)), Fraction(1, 2)) if square[0] else number(0)
    return multiply(root, MINUS) if turn > 12 else root


def power(base: Ratio, exponent: Fraction) -> Ratio:
    """Return a power. The base of a negative power must be nonzero, that of a root a product."""
    demand(abs(exponent.numerator) <= MAX_POWER, "a power is too high")
    factors = [f for polynomial in base for f in polynomial.values()]
    bits = [max(f.numerator.bit_length(), f.denominator.bit_length()) for f in factors]
    demand(max(bits) * abs(exponent.numerator) <= MAX_BITS, "a number is too large")
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
    demand(factor > 0, "a root of a negative number")
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


def symbols(numbers: Iterable[Polynomial]) -> set[str]:
    """Return the symbols in polynomials."""
    return {name for one in numbers for monomial in one for name, _ in monomial if name[0] != "#"}


def ordered(polynomial: Polynomial) -> Size:
    """Return a polynomial as a size."""
    return tuple(sorted(polynomial.items()))


WHOLE = ordered(UNITY)


def natural(size: Iterable[tuple[Monomial, Fraction]]) -> bool:
    """Return whether a polynomial in sizes is certainly 1 or more: no factor is negative."""
    return min((factor for _, factor in size), default=0) > 0


def plus(size: Size, by: Iterable[tuple[Monomial, Fraction]], sign: int = 1) -> Size:
    """Return the sum of two polynomials in sizes, or their difference."""
    return ordered(total([*size, *[(m, sign * f) for m, f in by]]))


def never_negative(size: Size) -> bool:
    """Return whether a polynomial is 0 or more wherever its symbols are 1 or more."""
    result: list[tuple[Monomial, Fraction]] = []
    for monomial, factor in size:
        above: Polynomial = {(): factor}
        for name, exponent in monomial:
            demand(exponent.denominator == 1 <= exponent <= MAX_POWER, "an index has a power")
            for _ in range(int(exponent)):
                above = times(above, {(): Fraction(1), ((name, Fraction(1)),): Fraction(1)})
        result += above.items()
    return all(factor > 0 for factor in total(result).values())


def constant(size: Size) -> int | None:
    """Return the value of a size that is a number, else None."""
    return int(dict(size).get((), 0)) if all(m == () for m, _ in size) else None


# -- terms, and when two are the same --------------------------------------------------------------

Box = tuple[int, tuple[int, ...]]  # its label, its wires


class Term(NamedTuple):
    """A number times boxes times deltas of the `equal` wires, summed over the `inner` wires."""

    factor: Ratio
    boxes: tuple[Box, ...] = ()
    equal: tuple[tuple[int, int], ...] = ()
    inner: tuple[int, ...] = ()

    def wires(self) -> set[int]:
        """Return the wires of all boxes and deltas."""
        return set(chain(*[wires for _, wires in self.boxes], *self.equal))

    def by(self, factor: Ratio) -> Term:
        """Return the term times a number."""
        return self._replace(factor=multiply(self.factor, factor))

    def at(self, place: dict[int, int]) -> Term:
        """Return the term with the wires of its boxes renamed."""
        boxes = [(label, tuple([place.get(w, w) for w in wires])) for label, wires in self.boxes]
        return self._replace(boxes=tuple(boxes))


UNIT = Term(ONE)
Terms = list[Term]


def both(a: Term, b: Term) -> Term:
    """Return the product of two terms."""
    factor = multiply(a.factor, b.factor)
    return Term(factor, a.boxes + b.boxes, a.equal + b.equal, a.inner + b.inner)


def contents(column: Index, parts: Sequence[Terms]) -> list[Any]:
    """Return the labels of sums of terms, but for those of the first that no wire is in."""
    varying = [t for t in parts[0] if not t.wires().isdisjoint(column[1:])]
    return [sorted(sorted(label for label, _ in t.boxes) for t in p) for p in (varying, *parts[1:])]


def seen(box: Box, number_of: dict[int, int]) -> tuple[int, ...]:
    """Return a box as its label and numbers of wires; an unnumbered wire is -1 - its position."""
    label, wires = box
    return (label, *[number_of.get(wire, -1 - wires.index(wire)) for wire in wires])


def walked(boxes: list[Box], number_of: dict[int, int]) -> list[Box]:
    """Number wires from box to box while only one box can be next; return the other boxes."""
    spend(1 + len(boxes))
    at: dict[int, list[int]] = defaultdict(list)
    left = {k for k, (_, wires) in enumerate(boxes) if any(w not in number_of for w in wires)}
    for k in sorted(left):
        for wire in dict.fromkeys(boxes[k][1]):
            at[wire].append(k)
    reached = [wire for wire in number_of if wire in at]
    for wire in reached:  # which grows on the way
        kinds: dict[tuple[int, ...], list[int]] = defaultdict(list)
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


def lasting(number_of: dict[int, int]) -> list[int]:
    """Return the wires that are not local to a term, in the order of their numbers."""
    return [wire for wire in number_of if wire >= 0]


def numbered(boxes: list[Box], number_of: dict[int, int], tries: list[int]) -> Any:
    """Number the wires canonically, and return the boxes with these numbers.

    Where several boxes can be next, all are tried, and the least result is taken. It only
    renames wires: a fault in it can make equal terms differ, so that a proof is rejected, but
    can never make different terms equal.
    """
    rest = walked(boxes, number_of)
    if rest:
        kinds: dict[tuple[int, ...], list[Box]] = defaultdict(list)
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
            alike = [min(alike, key=lasting)]  # a part by itself: any that is alike may be first
        results = [(numbered(rest, here, tries), lasting(here), here) for here in alike]
        number_of.update(min(results, key=lambda found: found[:2])[2])
    return sorted(seen(box, number_of) for box in boxes)


# -- sizes as unions of products -------------------------------------------------------------------

Branch = tuple[Any, ...]  # sizes, the slowest first, and marks: -1 - k, and within block k follows
Legs = tuple[Branch, ...]
Index = tuple[int, ...]  # the number of a branch, and a wire for each factor of it
INTEGERS = "integers"  # in the place of a count, of a family over all of them
NONE: Legs = ((),)  # of a size that is 1
ORIGIN: Index = (0,)


def flat(branches: Iterable[Branch]) -> Legs:
    """Return legs with each run of marks merged: a union of unions is one union."""
    runs: dict[Branch, dict[Branch, int]] = defaultdict(dict)
    result = []
    for branch in branches:
        spend(10 + 2 * len(branch))
        shown: Branch = ()
        for kind, items in groupby(branch, type):
            run = tuple(items)
            shown += (-1 - runs[shown].setdefault(run, len(runs[shown])),) if kind is int else run
        result.append(shown)
    return tuple(result)


def beside(a: Legs, b: Legs) -> Legs:
    """Return the legs of a product of sizes; a varies slowest."""
    return flat(p + q for p in a for q in b)


def union(blocks: Iterable[Legs]) -> Legs:
    """Return the legs of a union of sizes."""
    return flat((-1 - k, *branch) for k, block in enumerate(blocks) for branch in block)


def parted(a: Legs, b: Legs, index: Index) -> tuple[Index, Index]:
    """Split an index into `beside(a, b)` into an index into a and one into b."""
    p, q = divmod(index[0], len(b))
    cut = 1 + sum(type(item) is not int for item in a[p])
    return (p, *index[1:cut]), (q, *index[cut:])


def sized(legs: Iterable[Branch]) -> Size:
    """Return the size of legs."""
    factors = [[dict(item) for item in branch if type(item) is not int] for branch in legs]
    return ordered(total(term for one in factors for term in reduce(times, one, UNITY).items()))


def runs_within(mine: Legs, legs: Legs) -> bool:
    """Return whether legs `mine` are equal to `legs`, or to their first blocks."""
    if not mine:  # of no layers there is no index
        return True
    if mine == legs[: len(mine)] and len(mine) < len(legs) and mine != NONE:
        return type(mine[0][0]) is int and mine[-1][0] != legs[len(mine)][0]
    return mine == legs


class Value:
    """An affine index: a polynomial in sizes plus multiples of wires."""

    def __init__(self, constant: Polynomial, factors: Iterable[tuple[int, int]] = ()) -> None:
        self.constant, self.factors = constant, dict[int, int]()
        for wire, factor in factors:
            self.factors[wire] = self.factors.get(wire, 0) + factor

    def plus(self, other: Value, times_other: int) -> Value:
        """Return the sum of this value and a multiple of another."""
        terms = [(m, times_other * f) for m, f in other.constant.items()]
        pairs = [(wire, times_other * f) for wire, f in other.factors.items()]
        return Value(total([*self.constant.items(), *terms]), [*self.factors.items(), *pairs])

    def within(self, sizes: Sequence[Size], count: Size) -> bool:
        """Return whether it lies in range(count) for all values of its wires."""
        low = high = ordered(self.constant)
        for wire, factor in self.factors.items():
            end = plus(sizes[wire], UNITY.items(), -1)
            end = ordered({m: factor * f for m, f in end})
            low, high = (low, plus(high, end)) if factor > 0 else (plus(low, end), high)
        return never_negative(low) and never_negative(
            plus(plus(count, high, -1), UNITY.items(), -1)
        )


class Bound:
    """An index in scope: its legs, its present value, and its only value if it is the last."""

    def __init__(self, legs: Legs, last: Index | None = None) -> None:
        self.legs, self.last = legs, last
        self.now: Any = last or ()


class Matrix(NamedTuple):
    """A matrix as a function from row and column to an entry; a scalar has one row and column."""

    rows: Legs
    cols: Legs
    at: Callable[[Index, Index], Terms]
    matrix: bool = True


Scope = tuple[Bound, ...]


def scalar(at: Callable[[], Terms]) -> Matrix:
    """Return a scalar."""
    return Matrix(NONE, NONE, lambda i, j: at(), matrix=False)


def ones(i: Index, j: Index) -> Terms:
    """Return an entry of a matrix of ones."""
    return [UNIT]


def turned(x: Matrix) -> Matrix:
    """Return the transpose of a matrix."""
    return Matrix(x.cols, x.rows, lambda i, j: x.at(j, i))


# -- trees -----------------------------------------------------------------------------------------


def is_number(tree: Any) -> bool:
    """Return whether a tree holds numbers and scalar symbols only."""
    match tree:
        case ["size" | "scalar" | "Rational" | "pi", *_]:
            return True
        case ["Pow", base, exponent]:
            whole = type(exponent) is int or (type(exponent) is list and exponent[0] == "Rational")
            return whole and is_number(base)
        case ["Add" | "Mul", *args]:
            return all(is_number(arg) for arg in args)
    return type(tree) is int


def is_index(tree: Any) -> bool:
    """Return whether a tree is an index in scope."""
    return type(tree) is list and tree[:1] == ["i"]


def names(tree: Any, part: Any) -> bool:
    """Return whether a tree contains a part."""
    return bool(tree == part) or (type(tree) is list and any(names(one, part) for one in tree))


def replaced(tree: Any, part: Any, by: Any, inside: bool = True) -> Any:
    """Return a tree, or a tuple of trees and equations, with a part replaced.

    Not `inside` binders, where the same tree means something else if it has bound indices.
    """
    spend(1)
    if not isinstance(tree, list | tuple) or tree == part:
        return by if tree == part else tree
    if not inside and tree[:1] and isinstance(tree[0], str) and tree[0] in BINDERS:
        return tree
    parts = [replaced(one, part, by, inside) for one in tree]
    return tree._make(parts) if hasattr(tree, "_make") else type(tree)(parts)


def filled(tree: Any, values: dict[str, Any]) -> Any:
    """Return a schema with ["?", name] replaced by values."""
    return reduce(lambda made, name: replaced(made, ["?", name], values[name]), values, tree)


def size_tree(size: Size) -> Any:
    """Return a size as a tree."""
    powers = [[["Pow", ["size", int(s[1:])], int(e)] for s, e in m] for m, _ in size]
    return ["Add", 0, *[["Mul", int(f), *m] for (_, f), m in zip(size, powers, strict=True)]]


def counts_by(tree: Any, index: Any) -> bool:
    """Return whether an index is a number of layers, or an order, in a tree."""
    if type(tree) is not list:
        return False
    layered = tree[0] in ("LayerProduct", "OrderSum") and index in tree[2:-1]
    return layered or any(counts_by(part, index) for part in tree)


class Free(NamedTuple):
    """A free index of a proof: its count as a tree, and whether only its last value is meant."""

    count: Any
    last: bool = False


class Equation(NamedTuple):
    """lhs = rhs for all values of the first `frees`."""

    frees: tuple[Free, ...]
    lhs: Any
    rhs: Any


class Context(NamedTuple):
    """The declarations, the statement and the hypotheses that a proof may use.

    `stated` presupposes that its partial functions are defined: the claim, at one value of its
    indices, and the hypotheses. `depths` are the sizes under induction, nested ones included. Those
    in `ones` are 1; for those in `later`, L + 1 stands for L, and L itself for block 0 of it.
    """

    declared: dict[str, Any]
    stated: tuple[Equation, ...]
    given: tuple[Equation, ...]
    fixed: int  # hypotheses that are for the sizes at hand, and not for each depth
    depths: frozenset[int] = frozenset()
    ones: frozenset[int] = frozenset()
    later: frozenset[int] = frozenset()
    firsts: frozenset[Size] = frozenset()
    unions: tuple[tuple[Size, Legs], ...] = ()


class Reader:
    """The reading of trees in one proof, with its table of how sizes are split.

    It first notes what is partial in the statement: divisors and radicands, sizes that may vanish,
    integer indices, and parts such as inverses. Nothing else of the kind is then read (`ready`).
    What is noted under induction holds at each depth: it does not name it. So it is read for the
    depth as it is, and only a proof for one layer has 1 in its place.
    """

    def __init__(self, context: Context, splits: Any) -> None:
        self.context, declared = context, context.declared
        self.sizes: list[Size] = []  # of the wires
        self.fixed: dict[tuple[int, Size], int] = {}  # the wires that are held at one value
        self.value_of: dict[int, int] = {}
        self.labels: dict[Any, int] = {}
        self.ratios: dict[tuple[Size, Size], int] = {}
        self.whats: list[Any] = []  # the labels by their numbers
        self.tries = [MAX_TRIES]
        flags = {f"a{k}": set(flags) for k, (_, flags) in enumerate(declared["scalars"])}
        sizes = {"pi", *[f"n{k}" for k in range(len(declared["sizes"]))]}
        self.nonzero = sizes | {n for n in flags if flags[n] & {"positive", "nonzero", "negative"}}
        self.nonnegative = sizes | {n for n in flags if flags[n] & {"positive", "nonnegative"}}
        self.nonpositive = {n for n in flags if flags[n] & {"negative", "nonpositive"}}
        self.under = {f"n{k}" for k in context.depths}
        self.divisors: list[Ratio] = []
        self.noting, self.ready = True, False
        self.tensors = self.declared_tensors()
        self.lengths: set[Size] = set()  # sizes that may vanish
        self.integers: set[tuple[int, Size]] = set()
        self.partial: set[Any] = set()
        for tree in declared["nonzero"]:
            self.power(self.number(tree), Fraction(-1))
        self.splits: dict[Size, Legs] = dict(context.unions)
        self.frees = len(context.stated[0].frees)  # of the claim: they have one value each
        for one in context.stated:
            read(self, one)
            self.frees = 0
        self.noting, self.ready = False, True
        self.tensors = self.declared_tensors()
        self.frees = len(context.stated[0].frees)
        for whole, parts in splits:
            size, legs = self.measure(whole), self.split(parts)
            demand(size not in dict(context.unions), "a size is split twice")
            demand(sized(legs) == size, "a split does not add up to its size")
            demand(legs not in (NONE, ((size,),)), "a split is trivial")
            self.splits[size] = legs

    # -- numbers, sizes, indices -------------------------------------------------------------------

    def declared_tensors(self) -> list[Any]:
        """Return the sizes of each matrix: of its indices, its rows and its columns."""
        return [
            (
                [None if n == INTEGERS else self.measure(n) for n in counts],
                self.measure(rows),
                self.measure(cols),
            )
            for _, counts, rows, cols in self.context.declared["tensors"]
        ]

    def number(self, tree: Any) -> Ratio:
        """Return the value of a tree of numbers and scalar symbols."""
        match tree:
            case ["size" | "scalar" as kind, k]:
                known = len(self.context.declared[kind + "s"])
                demand(type(k) is int and 0 <= k < known, f"no such {kind}")
                if kind == "size" and k in self.context.ones and self.ready:
                    return ONE
                symbol = ("n" if kind == "size" else "a") + str(k)
                return {((symbol, Fraction(1)),): Fraction(1)}, UNITY
            case ["pi"]:
                return {(("pi", Fraction(1)),): Fraction(1)}, UNITY
            case ["Rational", p, q]:
                demand(type(p) is type(q) is int and q, "a Rational is p/q")
                return number(Fraction(p, q))
            case ["Pow", base, exponent]:
                over, under = self.number(exponent)
                demand(under == UNITY and set(over) <= {()}, "a power is no number")
                return self.power(self.number(base), over.get((), Fraction(0)))
            case ["Add" | "Mul" as kind, _, *_]:
                return reduce(add if kind == "Add" else multiply, map(self.number, tree[1:]))
        kind = tree[0] if type(tree) is list and tree else tree
        demand(type(tree) is int, f"{kind!r:.40} is not a number")
        return number(tree)

    def power(self, base: Ratio, exponent: Fraction) -> Ratio:
        """Return a power. A doubtful divisor or radicand must be one of the statement."""
        divides, root = exponent < 0, exponent.denominator > 1
        one = len(base[0]) == 1 and base[1] == UNITY  # no sum
        lone = one and all(len(m) == 1 and f == abs(m[0][1]) == 1 for m, f in base[0].items())
        if self.noting and not symbols(base) & self.under:
            self.divisors += [base] if divides else []
            self.nonzero |= symbols(base[:1]) if divides and len(base[0]) == 1 else set()
            self.nonnegative |= symbols(base) if root and lone else set()
        if divides:
            sure = one and symbols(base) <= self.nonzero
            sure |= self.certain_sign(*base) != 0
            sure |= any(not add(base, multiply(known, MINUS))[0] for known in self.divisors)
            demand(sure or not self.ready, "a number that may vanish is divided by")
        if root:
            sure = symbols(base) <= self.nonnegative
            demand(sure or not self.ready, "a root of what may be negative")
        return power(base, exponent)

    def certain_sign(self, over: Polynomial, under: Polynomial = UNITY) -> int:
        """Return 1 for a number that is certainly positive, -1 for a negative one, else 0."""
        found = 1
        for side in (over, under):
            signs = {self.sign(*term) for term in side.items()}
            some = any(symbols([{m: factor}]) <= self.nonzero for m, factor in side.items())
            found *= signs.pop() if some and len(signs) == 1 else 0
        return found

    def sign(self, monomial: Monomial, factor: Fraction) -> int:
        """Return 1 for a term that is not negative, -1 for one that is not positive, else 0."""
        odd = [leg for leg in monomial if leg[0][0] != "#" and (leg[1] / 2).denominator > 1]
        turned = {name for name, e in odd if name in self.nonpositive and e.denominator == 1}
        if not {name for name, _ in odd} <= turned | self.nonnegative:
            return 0
        return (1 if factor > 0 else -1) * (-1) ** len(turned)

    @property
    def positive(self) -> set[str]:
        """The symbols that are known to be positive."""
        return self.nonzero & self.nonnegative

    def measure(self, tree: Any, least: int = 1) -> Size:
        """Return a polynomial in the symbols of sizes with integer factors.

        It has no divisors, so that a size presupposes nothing. A number is at `least` so large.
        """
        outer, self.noting = self.noting, False
        polynomial, denominator = self.number(tree)
        self.noting = outer
        powers = [leg for monomial in polynomial for leg in monomial]
        whole = all(e > 0 and e.denominator == 1 and name[0] == "n" for name, e in powers)
        integral = all(factor.denominator == 1 for factor in polynomial.values())
        demand(denominator == UNITY and whole and integral, f"{tree} is not a size")
        demand(powers or polynomial.get((), 0) >= least, "a size is not positive")
        return ordered(polynomial)

    def named(self, size: Size) -> Size:
        """Return a size that is at least 1, for all values of its symbols or by the statement."""
        if self.noting and not symbols([dict(size)]) & self.under:
            self.lengths.add(size)
        known = natural(size) or size in self.lengths
        demand(known or not self.ready, "a size that may vanish is not stated")
        return size

    def size(self, tree: Any) -> Size:
        """Return the size that a tree stands for."""
        return self.named(self.measure(tree))

    def legs(self, size: Size) -> Legs:
        """Return the legs that a size stands for."""
        return union([((size,),)]) if size in self.context.firsts else self.parts(size)

    def parts(self, size: Size) -> Legs:
        """Return the legs of a size after its split."""
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
            elif dict(size := self.size(part)) != UNITY:
                legs = beside(legs, ((size,),))
        return legs

    def wire(self, size: Size) -> int:
        """Return a new wire."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def held(self, value: int, size: Size) -> int:
        """Return the wire whose value is fixed."""
        if (value, size) not in self.fixed:
            self.fixed[value, size] = wire = self.wire(size)
            self.value_of[wire] = value
        return self.fixed[value, size]

    def every(self, legs: Legs) -> list[Index]:
        """Return an index with new wires for each branch of legs."""
        spend(len(legs))
        return [
            (k, *[self.wire(item) for item in branch if type(item) is not int])
            for k, branch in enumerate(legs)
        ]

    def places(self, *legs: Legs) -> Iterable[tuple[Index, ...]]:
        """Return indices into several legs, for each combination of their branches."""
        branches = [self.every(one) for one in legs]
        spend(prod(map(len, branches)))
        return product(*branches)

    def place(self, value: Any, legs: Legs) -> Index:
        """Return an integer as an index; it must be in range, or an index of the statement."""
        demand(type(value) is int and value >= 0, "an index is negative")
        spend(len(legs))
        size = sized(legs)
        if self.noting and not symbols([dict(size)]) & self.under:
            self.integers.add((value, size))
        limit = constant(size)
        demand(limit is None or value < limit, "an index is out of range")
        if not self.ready:
            return ORIGIN
        known = value == 0 or limit is not None or (value, size) in self.integers
        demand(known, "an index is out of range")
        self.integers.add((value, size))
        if legs == NONE:
            return ORIGIN
        if type(legs[0][0]) is int:
            start = 0
            for _, block in groupby(legs, lambda branch: branch[0]):
                inner = tuple([branch[1:] for branch in block])
                many = constant(sized(inner))
                if value == 0 or (many is not None and value < many):
                    k, *wires = self.place(value, inner)
                    return (start + k, *wires)
                demand(many is not None, "an integer index into a block of any size")
                value, start = value - (many or 0), start + len(inner)
        others = tuple([branch[1:] for branch in legs])
        rest = constant(sized(others))
        known = rest is not None or value == 0
        demand(known, "an integer index into factors of any size")
        here, inside = divmod(value, rest or 1)
        self.integers.add((here, legs[0][0]))
        k, *wires = self.place(inside, others)
        return (k, self.held(here, legs[0][0]), *wires)

    def index(self, tree: Any, legs: Legs, scope: Scope) -> Callable[[], Index]:
        """Return a function that reads an index: an integer, or ["i", k], the k-th in scope."""
        if type(tree) is int:
            place = self.place(tree, legs)
            return lambda: place
        bound = self.bound(tree, scope)
        within = runs_within(bound.legs, legs)
        if not self.ready:  # sizes are not cut yet: an index may run over the first blocks
            within = never_negative(plus(sized(legs), sized(bound.legs), -1))
        demand(within, "an index does not run over that size")
        return lambda: bound.now

    def valued(self, index: Any, legs: Legs) -> Value:
        """Return the value of an index: the offset of its block plus its wire."""
        if isinstance(index, Value):
            return index
        for branch in legs:
            demand(all(type(x) is int for x in branch[:-1]), "an index in factors is no number")
        k, *wires = index
        start = total(term for branch in legs[:k] for term in sized([branch]))
        known = [(self.value_of[w], w) for w in wires if w in self.value_of]
        start = total([*start.items(), *[((), Fraction(value)) for value, _ in known]])
        return Value(start, [(w, 1) for w in wires if w not in self.value_of])

    def whole(self, tree: Any) -> tuple[Polynomial, list[tuple[Any, int]]]:
        """Return constant and factors of ["at", constant, [factor, index], ...], all integers."""
        demand(type(tree) is list and tree[:1] == ["at"] and len(tree) > 1, "no affine index")
        constant, denominator = self.number(tree[1])
        powers = [leg for monomial in constant for leg in monomial]
        whole = all(e > 0 and e.denominator == 1 and name[0] == "n" for name, e in powers)
        whole &= all(f.denominator == 1 for f in constant.values())
        whole &= all(type(factor) is int for factor, _ in tree[2:])
        demand(whole and denominator == UNITY, "an index is no integer")
        return constant, [(index, factor) for factor, index in tree[2:]]

    def affine(self, tree: Any, scope: Scope) -> Callable[[], Value]:
        """Return an index of a family over the integers: ["at", constant, [factor, index], ...]."""
        demand(type(tree) is list and tree[:1] == ["at"] and len(tree) > 1, "no affine index")
        constant, factors = self.whole(tree)
        bounds = [(factor, self.bound(index, scope)) for index, factor in factors]

        def value() -> Value:
            parts = [(factor, self.valued(one.now, one.legs)) for factor, one in bounds]
            return reduce(lambda made, part: made.plus(part[1], part[0]), parts, Value(constant))

        return value

    def bound(self, tree: Any, scope: Scope) -> Bound:
        """Return an index in scope."""
        demand(is_index(tree) and len(tree) == 2, f"{tree} is no index")
        demand(type(tree[1]) is int and 0 <= tree[1] < len(scope), "an index is not in scope")
        return scope[tree[1]]

    # -- what is partial ---------------------------------------------------------------------------

    def closed(self, tree: Any, scope: Scope) -> Any:
        """Return a tree with each index replaced by its range, those of the claim excepted.

        Parts of the statement are compared in this form: they range over the same values.
        """
        any_of: dict[int, Any] = {}

        def shown(part: Any) -> Any:
            if is_index(part) and part[1] >= len(scope):
                return "inner", part[1] - len(scope)
            if is_index(part) and part[1] < self.frees:
                return "free", part[1]
            if is_index(part):
                size = sized(scope[part[1]].legs)
                first = size in self.context.firsts and self.ready
                size = plus(size, UNITY.items()) if first else size
                ones = [ordered(self.number(["size", k])[0]) for k in self.context.ones]
                size = ordered(UNITY) if size in ones else size
                return any_of.setdefault(part[1], ("any", len(any_of), size))
            if is_number(part):
                return tuple(map(ordered, self.number(part)))
            if type(part) is not list or part[:1] not in (["MatAdd"], ["Add"], ["HadamardProduct"]):
                return tuple(map(shown, part)) if type(part) is list else part
            return part[0], *sorted(map(shown, part[1:]), key=repr)  # in whichever order

        return shown(tree)

    def note(self, tree: Any, scope: Scope) -> None:
        """Record a part of the statement as defined: the statement presupposes it.

        A proof by induction is for every depth and all indices of the claim, so parts that depend
        on them are not recorded there.
        """
        depths = [["size", k] for k in self.context.depths]
        depths += [["i", k] for k in range(self.frees)] if depths else []
        if self.noting and not any(names(tree, one) for one in depths):
            self.partial.add(self.closed(tree, scope))

    def defined(self, tree: Any, scope: Scope) -> None:
        """Reject a part that may be undefined, unless it is a part of the statement."""
        known = not self.ready or self.closed(tree, scope) in self.partial
        demand(known, "what is not defined in the statement is used")

    # -- signs -------------------------------------------------------------------------------------

    def signs(self, tree: Any, scope: Scope) -> set[str]:
        """Return which signs every entry certainly has: "nonnegative", "nonzero".

        They follow from its form, or from the statement, which has a partial function of it.
        """
        spend(20)
        if is_number(tree):
            return self.signs_of(*self.number(tree))
        found = set()
        for name, sign in AXIOMS["partial"].items():
            if self.closed(["Activation", name, tree], scope) in self.partial:
                found |= SIGNS[sign]
        return found | self.signs_by_form(tree, scope)

    def signs_of(self, over: Polynomial, under: Polynomial) -> set[str]:
        """Return which signs a number certainly has."""
        sign = self.certain_sign(over, under)
        if sign > 0:
            return {*SIGNS["positive"]}
        known = sign or (len(over) == 1 and symbols([over]) <= self.nonzero)
        return {"nonzero"} if known else set()

    def signs_by_form(self, tree: Any, scope: Scope) -> set[str]:
        """Return the signs of the entries that follow from the form of a tree."""

        def every(parts: Iterable[Any]) -> set[str]:
            return {*SIGNS["positive"]}.intersection(*[self.signs(one, scope) for one in parts])

        match tree:
            case ["OneMatrix", *_] | ["RowSoftmax", _]:
                return {*SIGNS["positive"]}
            case ["Identity" | "ZeroMatrix" | "OneHot" | "CausalMask", *_]:
                return {"nonnegative"}
            case ["Activation", "reciprocal", arg]:
                return self.signs(arg, scope)
            case ["Activation", str(name), arg] if name in AXIOMS["signs"]:
                positive = AXIOMS["degrees"].get(name) and every([arg]) == SIGNS["positive"]
                return {*SIGNS["positive" if positive else AXIOMS["signs"][name]]}
            case ["HadamardPower", arg, int(k)]:
                return self.signs(arg, scope) | ({"nonnegative"} if k % 2 == 0 else set())
            case ["HadamardProduct", *args]:
                odd = [arg for arg in args if args.count(arg) % 2]
                return every(args) & {"nonzero"} | every(odd) & {"nonnegative"}
            case ["MatAdd", ["OneMatrix", *_], ["MatMul", -1, [*gate]]] | [
                "MatAdd",
                ["MatMul", -1, [*gate]],
                ["OneMatrix", *_],
            ] if gate[:2] == ["Activation", "sigmoid"]:
                return {*SIGNS["positive"]}
            case ["MatAdd" | "Add", *args]:
                parts = [self.signs(arg, scope) for arg in args]
                sure = all("nonnegative" in part for part in parts)
                return max(parts, key=len) if sure else set()
            case ["MatMul" | "Mul", *args]:
                found = every(args)
                one = sum(not is_number(arg) for arg in args) < 2
                return found if one or found == SIGNS["positive"] else found & {"nonnegative"}
            case ["KroneckerProduct", *args]:
                return every(args)
            case ["Transpose" | "vec_rows" | "vec_cols" | "DiagonalOf" | "MatrixElement", arg, *_]:
                return self.signs(arg, scope)
            case ["DiagMatrix", arg]:
                return self.signs(arg, scope) & {"nonnegative"}
            case ["Trace", arg]:
                found = self.signs(arg, scope)
                return found if "nonnegative" in found else set()
        return set()

    # -- terms -------------------------------------------------------------------------------------

    def normal(self, term: Term) -> tuple[Any, Term] | None:
        """Return a key that equal terms share, and the term with its wires joined; None for zero.

        The wires that are not summed over keep their numbers.
        """
        spend(1 + len(term.boxes) + len(term.equal))
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
        boxes = tuple([(label, tuple([find(w) for w in wires])) for label, wires in term.boxes])
        apart = {w: find(w) for pair in term.equal for w in pair if w not in inner and w in root}
        touched = {wire for _, wires in boxes for wire in wires}
        tops = [wire for wire in term.inner if wire not in root]
        factor = term.factor
        for wire in tops:
            if wire not in touched:
                factor = multiply(factor, (dict(self.sizes[wire]), UNITY))
        affine = {w for label, wires in boxes if self.forms(label)[0] for w in wires}
        for wire in tops:
            boxes = self.directed(boxes, wire) if wire in affine else boxes
        outer = sorted(touched - inner)
        number_of = {wire: k for k, wire in enumerate(outer)}
        shown = tuple(numbered(self.counted(boxes), number_of, self.tries))
        kept = tuple([wire for wire in tops if wire in touched])
        pairs = tuple(sorted(apart.items()))
        return (tuple(outer), pairs, shown), Term(factor, boxes, pairs, kept)

    def forms(self, label: int) -> tuple[bool, Any, list[Any]]:
        """Return whether a label is of a member at affine indices, its parts, and its blocks."""
        what, *blocks = known if type(known := self.whats[label]) is tuple else (known,)
        affine = type(what) is tuple and type(what[0]) is tuple and what[0][0] == "tensor"
        return affine, what, blocks

    def directed(self, boxes: tuple[Box, ...], wire: int) -> tuple[Box, ...]:
        """Return boxes with N - 1 - w for w in a sum over w, if their labels come first then.

        That is the same sum where w, one of N values, is nowhere but in affine indices.
        """
        end = plus(self.sizes[wire], UNITY.items(), -1)
        turned, here, there = [], [], []
        for label, wires in boxes:
            affine, what, blocks = self.forms(label)
            forms, ranges = what[1:] if affine else ((), ())
            columns = list(zip(ranges, wires, strict=False))
            if wire in wires[len(columns) :]:
                return boxes
            for column in [column for column, w in columns if w == wire]:
                here.append((what[0], [-k for k in column[:-1]], what[1]))
                ends = [ordered({m: f * k for m, f in end}) for k in column[:-1]]
                forms = tuple(plus(form, more) for form, more in zip(forms, ends, strict=True))
                there.append((what[0], [*column[:-1]], forms))
            signs = [(-1 if w == wire else 1, column, w) for column, w in columns]
            columns = sorted(((*[s * k for k in c[:-1]], c[-1]), w) for s, c, w in signs)
            if affine and wire in wires:
                label = self.label(((what[0], forms, tuple(c for c, _ in columns)), *blocks))
            turned.append((label, (*[w for _, w in columns], *wires[len(columns) :])))
        return boxes if sorted(here) <= sorted(there) else tuple(turned)

    def counted(self, boxes: Iterable[Box]) -> list[Box]:
        """Return each box once, with its multiplicity in the label."""
        many: dict[Box, int] = defaultdict(int)
        for box in boxes:
            many[box] += 1
        return [(self.label((label, n)), wires) for (label, wires), n in many.items()]

    def collected(self, terms: Iterable[Term]) -> Terms:
        """Return a sum with equal terms collected and zero terms dropped."""
        result: dict[Any, Term] = {}
        for key, term in filter(None, map(self.normal, terms)):
            old = result.get(key)
            result[key] = term._replace(factor=add(old.factor, term.factor)) if old else term
            demand(len(result) <= MAX_TERMS, "there are too many terms")
        return [term for term in result.values() if term.factor[0]]

    def times(self, a: Terms, b: Terms) -> Terms:
        """Return the product of two sums."""
        demand(len(a) * len(b) <= MAX_TERMS, "there are too many terms in a product")
        long = [sum(1 + len(x.boxes) + len(x.inner) for x in terms) for terms in (a, b)]
        spend(1 + long[0] * len(b) + long[1] * len(a))
        terms = [both(x, y) for x in a for y in b]
        return self.collected(terms) if len(a) > 1 and len(b) > 1 else terms

    def entries(self, factors: Iterable[Terms]) -> Terms:
        """Return a product of sums."""
        return reduce(self.times, factors, [UNIT])

    def delta(self, i: Index, j: Index) -> Terms:
        """Return an entry of the identity, the delta of two indices."""
        demand(i[0] != j[0] or len(i) == len(j), "indices over different sizes are compared")
        pairs = tuple([(a, b) for a, b in zip(i[1:], j[1:], strict=False) if a != b])
        return [Term(ONE, equal=pairs)] if i[0] == j[0] else []

    def summed(self, legs: Legs, body: Callable[[Index], Terms]) -> Terms:
        """Return the sum of `body` over all indices into legs."""
        found = ((index, term) for index in self.every(legs) for term in body(index))
        return [term._replace(inner=term.inner + index[1:]) for index, term in found]

    def label(self, what: Any) -> int:
        """Return the number of a label."""
        if what not in self.labels:
            self.labels[what] = len(self.whats)
            self.whats.append(what)
        return self.labels[what]

    def box(self, what: Any, *indices: Index) -> Term:
        """Return a box at indices; its label includes their branches."""
        label = self.label((what, *[index[0] for index in indices]))
        return Term(ONE, ((label, tuple([wire for index in indices for wire in index[1:]])),))

    def ratio(self, factor: Ratio) -> int:
        """Return a number that equal ratios share, also those that are not in lowest terms."""
        over, under = factor
        found = self.ratios.get(key := (ordered(over), ordered(under)))
        if found is None:  # two polynomials are equal only if their keys are
            known = [(*one, k) for one, k in self.ratios.items() if {one[1], key[1]} != {WHOLE}]
            same = (k for a, b, k in known if times(dict(a), under) == times(over, dict(b)))
            found = self.ratios[key] = next(same, len(self.ratios))
        return found

    def opaque(self, kind: Any, arguments: list[Any], at: Any, extra: Index = ()) -> Term:
        """Return the box of a function of sums at indices; equal arguments give the same box.

        An argument is (its own indices, terms). The other wires are those at which the
        function acts. All terms are boxes of one term, with a wire for each of them, and the
        numbers of the other wires there are their order.
        """
        boxes: list[Box] = [(self.label(("extra", len(extra))), extra)]
        number_of: dict[int, int] = {}
        marks, local = list[Any](), 0
        for n, (indices, terms) in enumerate(arguments):
            for index in indices:
                marks.append((n, index[0], *[self.sizes[wire] for wire in index[1:]]))
                for wire in index[1:]:  # an index of layers is one of every block
                    number_of.setdefault(wire, len(number_of))
            for t in self.collected(terms):
                new = dict(zip((-1, *t.inner), count(local - 1, -1)))
                local -= len(new)
                boxes.append((self.label(("term", n, self.ratio(t.factor))), (new[-1],)))
                boxes += [(self.label(("inner", self.sizes[w])), (new[w],)) for w in t.inner]
                pairs = [(self.label("equal"), pair) for pair in t.equal]
                for label, wires in [*self.counted(t.boxes), *pairs]:
                    boxes.append((label, tuple([new.get(wire, wire) for wire in (-1, *wires)])))
        owned = set(number_of)
        form = tuple(numbered(boxes, number_of, self.tries))
        slots = [wire for wire in lasting(number_of) if wire not in owned]
        over = tuple([self.sizes[wire] for wire in slots])
        found = self.label((kind, tuple(marks), over, form))
        return self.box(found, (0, *slots), *at)

    def apart(self, x: Matrix, scope: Scope) -> Matrix:
        """Return a matrix that is evaluated at distinct new wires, which are then renamed."""

        def at(i: Index, j: Index) -> Terms:
            bounds = [bound for bound in scope if type(bound.now) is tuple]
            bounds = [one for one in bounds if self.value_of.keys().isdisjoint(one.now[1:])]
            here = [*[bound.now for bound in bounds], i, j]
            apart = [(*at[:1], *[self.wire(self.sizes[w]) for w in at[1:]]) for at in here]
            pairs = zip(apart, here, strict=True)
            place = {new: old for a, b in pairs for new, old in zip(a[1:], b[1:], strict=True)}
            for bound, now in zip(bounds, apart, strict=False):
                bound.now = now
            terms = x.at(*apart[-2:])
            for bound, now in zip(bounds, here, strict=False):
                bound.now = now
            return [t.at(place) for t in terms]

        return x._replace(at=at)

    # -- the language: the entry of each kind of matrix --------------------------------------------

    def value(self, tree: Any, scope: Scope) -> Matrix:
        """Return the matrix or scalar of a tree."""
        spend(10)
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
                legs = self.legs(self.size(n))
                return Matrix(legs, legs, lambda i, j: self.mask(legs[i[0]], legs[j[0]], i, j))
            case ["Shift" | "Positions" | "OneHotLast" as kind, n]:
                return self.positional(kind, self.size(n))
            case ["OneMatrix" | "ZeroMatrix" as kind, n, m]:
                at = ones if kind == "OneMatrix" else lambda i, j: []
                return Matrix(self.legs(self.size(n)), self.legs(self.size(m)), at)
            case ["OneHot", k, n]:
                legs = self.legs(self.size(n))
                a = self.index(k, legs, scope)
                return Matrix(legs, NONE, lambda i, _: self.delta(i, a()))
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
                return reduce(self.kron, [self.matrix(arg, scope) for arg in tree[1:]])
            case ["MatPow", arg, k]:
                demand(type(k) is int and abs(k) <= MAX_POWER, "a power that is not whole")
                x = self.matrix(arg, scope) if k >= 0 else self.inverse(arg, scope)
                self.fit(x.rows, x.cols)
                return self.repeated(x, abs(k)) if k else x._replace(at=self.delta)
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
                units = [["MatMul", x, *end] for x, end in zip(args, ends, strict=True)]
                return self.value(["MatAdd", *units], scope)
            case ["ConcatHeads", body, n]:  # side by side: transposed, one below the other
                return turned(self.value(["StackHeads", ["Transpose", body], n], scope))
            case ["Sum" | "HeadSum" | "StackHeads" as kind, body, n]:
                return self.heads(kind, body, n, scope)
            case ["LayerProduct", body, n, bool(reverse)]:
                return self.layer_product(body, n, reverse, scope)
            case ["OrderSum", body, n, order, bool(reverse)]:
                return self.orders("Order", body, n, self.order(order, scope), reverse, scope)
            case ["RowSoftmax", *args] if 0 < len(args) < 3:
                if len(args) > 1:  # the mask alone tells whether it is defined
                    self.note(["RowSoftmax", args[1]], scope)
                values = self.alike([self.matrix(arg, scope) for arg in args])
                return self.apart(self.softmax(values), scope)
            case ["Activation", name, arg]:
                demand(type(name) is str and name.isidentifier(), "an activation has no name")
                if name in AXIOMS["partial"]:
                    self.note(tree, scope)
                return self.apart(self.activation(name, self.matrix(arg, scope)), scope)
            case [str(kind), *args] if kind in AXIOMS["definitions"]:
                schema = AXIOMS["definitions"][kind]
                known = dict(zip([*schema["matrices"], *schema["others"]], args, strict=True))
                return self.value(filled(schema["is"], self.shaped(schema, known, scope)), scope)
        kind = tree[0] if type(tree) is list and tree else tree
        demand(type(tree) is list and len(tree) == 2, f"{kind!r:.40} is not in the language")
        return self.moved(kind, self.matrix(tree[1], scope))

    def positional(self, kind: str, size: Size) -> Matrix:
        """Return a constant matrix of positions: its entries at a fixed size, else a box."""
        legs = self.legs(size)
        last = len(legs) - 1

        def at(i: Index, j: Index) -> Terms:
            if any(type(part) is not int for branch in legs for part in branch):
                return [self.box((kind, size), i, j)]
            entry = {"Shift": i[0] == j[0] + 1, "Positions": i[0], "OneHotLast": i[0] == last}[kind]
            return [Term(number(int(entry)))] if entry else []

        return Matrix(legs, legs if kind == "Shift" else NONE, at)

    def moved(self, kind: Any, x: Matrix) -> Matrix:
        """Return the transpose, vec, diagonal or trace of a matrix."""
        r, c = x.rows, x.cols
        match kind:
            case "Transpose":
                return turned(x)
            case "vec_rows":
                return Matrix(beside(r, c), NONE, lambda i, _: x.at(*parted(r, c, i)))
            case "DiagMatrix":
                demand(NONE in (r, c), "DiagMatrix of a wide matrix")
                x, r = (x, r) if c == NONE else (turned(x), c)
                return Matrix(r, r, lambda i, j: self.times(self.delta(i, j), x.at(i, ORIGIN)))
            case "Trace" | "DiagonalOf":
                self.fit(r, c)
                if kind == "Trace":
                    return scalar(lambda: self.summed(r, lambda k: x.at(k, k)))
                return Matrix(r, NONE, lambda i, _: x.at(i, i))
        raise Rejected(f"{kind!r:.40} is no operation")

    def shaped(self, schema: Any, values: dict[str, Any], scope: Scope) -> dict[str, Any]:
        """Return the values of the symbols of a schema, and those of its sizes."""
        every = dict(values)
        for symbol, shape in schema["matrices"].items():
            x = self.matrix(values[symbol], scope)
            for name, size in zip(shape, (sized(x.rows), sized(x.cols)), strict=True):
                tree = every.setdefault(name, size_tree(size)) if type(name) is str else name
                demand(self.size(tree) == size, f"{symbol} has another shape")
        for symbol in schema.get("others", []):
            name = type(values[symbol]) is str
            demand(name or not self.value(values[symbol], scope).matrix, f"{symbol} is a matrix")
        return every

    def matrix(self, tree: Any, scope: Scope) -> Matrix:
        """Return the matrix of a tree; a scalar is rejected."""
        value = self.value(tree, scope)
        demand(value.matrix, "a matrix is wanted, and a scalar given")
        return value

    def fit(self, a: Legs, b: Legs) -> None:
        """Demand that two sizes have the same legs, or before the splits the same value."""
        demand(a == b if self.ready else sized(a) == sized(b), "sizes do not fit")

    def alike(self, values: list[Matrix]) -> list[Matrix]:
        """Demand that all values have the same rows and columns."""
        for x in values[1:]:
            demand(x.matrix == values[0].matrix, "a scalar is added to a matrix, or equal to one")
            self.fit(x.rows, values[0].rows)
            self.fit(x.cols, values[0].cols)
        return values

    def tensor(self, name: Any, indices: list[Any], scope: Scope) -> Matrix:
        """Return a box for each block; its wires are its indices, then rows and columns."""
        demand(type(name) is int and 0 <= name < len(self.tensors), "no such matrix")
        counts, *shape = self.tensors[name]
        rows, cols = [self.legs(self.named(size)) for size in shape]
        demand(len(indices) == len(counts), "a matrix has other indices")
        pairs = list(zip(indices, counts, strict=True))
        held = [self.index(i, self.legs(self.named(n)), scope) for i, n in pairs if n is not None]
        values = [self.affine(i, scope) for i, n in pairs if n is None]
        what = ("tensor", name)
        if not values:
            return Matrix(rows, cols, lambda i, j: [self.box(what, *[k() for k in held], i, j)])

        def at(i: Index, j: Index) -> Terms:
            """Return a box whose label has the affine forms of its indices, and their ranges."""
            here = [value() for value in values]
            wires = {w for one in here for w, factor in one.factors.items() if factor}
            columns = sorted(([one.factors.get(w, 0) for one in here], w) for w in wires)
            forms = tuple([ordered(one.constant) for one in here])
            ranges = tuple([(*factors, self.sizes[w]) for factors, w in columns])
            label = (what, forms, ranges)
            return [self.box(label, (0, *[w for _, w in columns]), *[k() for k in held], i, j)]

        return Matrix(rows, cols, at)

    def product(self, values: list[Matrix]) -> Matrix:
        """Return the product of matrices and scalars."""
        scalars = [x for x in values if not x.matrix]
        matrices = [x for x in values if x.matrix]
        if not matrices:
            return scalar(lambda: self.entries(x.at(ORIGIN, ORIGIN) for x in scalars))
        for x, y in pairwise(matrices):
            self.fit(x.cols, y.rows)

        def at(i: Index, j: Index) -> Terms:
            spend(len(values))
            here = [(i, self.entries(x.at(ORIGIN, ORIGIN) for x in scalars))]
            for x in matrices[:-1]:
                ways = []
                for k in self.every(x.cols):
                    found = [t for m, terms in here for t in self.times(terms, x.at(m, k))]
                    found = found if len(here) == 1 else self.collected(found)
                    ways.append((k, [t._replace(inner=t.inner + k[1:]) for t in found]))
                here = [way for way in ways if way[1]]
            return [t for m, terms in here for t in self.times(terms, matrices[-1].at(m, j))]

        return Matrix(matrices[0].rows, matrices[-1].cols, at)

    def repeated(self, x: Matrix, times: int) -> Matrix:
        """Return a power of a matrix; a high one as the product of two halves."""
        if times < 64 or len(x.rows) > 1:
            return self.product([x] * times)
        half = times // 2
        return self.product([self.repeated(x, half), self.repeated(x, times - half)])

    def kron(self, x: Matrix, y: Matrix) -> Matrix:
        """Return a Kronecker product; the index into x varies slowest.

        That of two identities is an identity, and that of ones is ones: an index is split or not.
        """
        if x.at == y.at and x.at in (self.delta, ones):
            rows, cols = beside(x.rows, y.rows), beside(x.cols, y.cols)
            return Matrix(self.legs(sized(rows)), self.legs(sized(cols)), x.at)

        def at(i: Index, j: Index) -> Terms:
            (a, c), (b, d) = parted(x.rows, y.rows, i), parted(x.cols, y.cols, j)
            return self.times(x.at(a, b), y.at(c, d))

        return Matrix(beside(x.rows, y.rows), beside(x.cols, y.cols), at)

    def scalar_power(self, base: Any, exponent: Any, scope: Scope) -> Matrix:
        """Return a power of a scalar, by an integer or by a size such as a number of layers."""
        if type(exponent) is int and exponent < 0:
            entry = ["ImmutableDenseMatrix", 1, 1, base]
            return self.value(["MatrixElement", ["MatPow", entry, exponent], 0, 0], scope)
        x = self.value(base, scope)
        demand(not x.matrix, "a matrix is raised to the power of a number")
        over, under = self.number(exponent)
        demand(under == UNITY, "an exponent is divided by a sum")
        over, many = dict(over), over.get((), Fraction(0))
        if (
            natural(over.items())
            and many.denominator == 1
            and all(s[0] == "n" for s in symbols([over]))
        ):
            over.pop((), None)  # the rest is not negative
        else:
            many = Fraction(0)
        demand(many <= MAX_POWER, "a power of a scalar is too high")

        def at() -> Terms:
            factors = [x.at(ORIGIN, ORIGIN) for _ in range(int(many))]
            if over:
                kind = ("power", ordered(over))
                factors.append([self.opaque(kind, [((), x.at(ORIGIN, ORIGIN))], ())])
            return self.entries(factors)

        return scalar(at)

    def blocks(self, trees: dict[tuple[int, int], Any], scope: Scope) -> Matrix:
        """Return a block matrix; missing blocks are zero."""
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
        """Return the sum of matrices over an index, or these matrices stacked."""
        size = self.size(count)
        legs = self.legs(size)
        bound, index = Bound(legs), ["i", len(scope)]
        x = self.value(body, (*scope, bound))
        demand(x.matrix == (kind != "Sum"), f"the body of a {kind} is of the wrong kind")
        if kind == "HeadSum" and (orders := self.all_orders(body, size, index, scope)):
            return orders

        def at(k: Index, i: Index, j: Index) -> Terms:
            spend(1)
            bound.now = k
            return x.at(i, j)

        if kind == "StackHeads":
            rows = beside(legs, x.rows)
            return Matrix(rows, x.cols, lambda i, j: at(*parted(legs, x.rows, i), j))
        many = constant(size) if self.ready and counts_by(body, index) else None
        if many is not None:
            spend(many)
            places = [self.place(k, legs) for k in range(many)]
            return x._replace(at=lambda i, j: [t for k in places for t in at(k, i, j)])
        return x._replace(at=lambda i, j: self.summed(legs, lambda k: at(k, i, j)))

    # -- products over layers ----------------------------------------------------------------------

    def layers(self, legs: Legs, now: Index | None = None) -> list[Any]:
        """Return a list of parts that cover all layers, or those before one, the earliest first.

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
        """Return the matrix of a layer, and functions to the parts of the layers and their values.

        A count may be an index: the layers before that one. If there may be none, nothing need
        be defined, so unless there are certainly `some`, the body presupposes nothing.
        """
        before = self.bound(count, scope) if is_index(count) else None
        none = type(count) is int and count == 0
        legs = before.legs if before else () if none else self.legs(self.size(count))
        layer = Bound(legs)

        def parts() -> list[Any]:
            return self.layers(legs, before.now if before else None)

        outer, self.noting = self.noting, self.noting and some and not before and not none
        x = self.matrix(body, (*scope, layer))
        self.noting = outer
        self.fit(x.rows, x.cols)

        def over(kind: Any, part: Any, more: Index = ()) -> Matrix:
            """Return the matrix of one layer, or a box for a product over a symbolic number."""
            what, front, *rest = part

            def at(i: Index, j: Index) -> Terms:
                if what == "one":
                    layer.now = front
                    return x.at(i, j)
                here = (front, self.wire(rest[0] if what == "all" else self.sizes[rest[0]]))
                arguments = []
                for r, c in self.places(x.rows, x.cols):
                    layer.now = here
                    arguments.append(((here, r, c), x.at(r, c)))
                extra = (*(() if what == "all" else rest), *more)
                return [self.opaque((*kind, what), arguments, (i, j), extra)]

            return x._replace(at=at)

        return x, parts, over

    def layer_product(self, body: Any, count: Any, reverse: bool, scope: Scope) -> Matrix:
        """Return a product over layers, the last one first unless in reverse."""
        x, parts, over = self.layered(body, count, scope)

        def at(i: Index, j: Index) -> Terms:
            factors = [over(("LayerProduct", reverse), part) for part in parts()]
            factors = factors[:: 1 if reverse else -1] or [x._replace(at=self.delta)]
            return self.product(factors).at(i, j)

        return x._replace(at=at)

    def order(self, tree: Any, scope: Scope) -> Callable[[], Any]:
        """Return a function that gives an order: a polynomial in sizes, or an index."""
        if not is_index(tree):
            polynomial = self.measure(tree, least=0)  # k - 1 is 0 where k is 1
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
        """Return Σ_k over orders k = 0, …, size - 1, with or without ⊗ S^k, as one box.

        Order k of B, ⊗ S^k, is order k of B ⊗ S.
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
        return self.orders("Orders", inner, count, lambda: size, reverse, (*scope, Bound(NONE)))

    def orders(
        self, kind: str, body: Any, count: Any, chosen: Any, reverse: bool, scope: Scope
    ) -> Matrix:
        """Return the sum over paths of an order, or of at most that order ("Orders")."""
        x, parts, over = self.layered(body, count, scope, some=False)
        zero, identity = x._replace(at=lambda i, j: []), x._replace(at=self.delta)

        def summed(layers: list[Any], order: Any) -> Matrix:
            """Return the sum over some layers."""
            spend(50 + len(layers))
            if order == ():
                return identity if kind == "Order" else zero
            some = type(order) is tuple and natural(order)
            shown, more = (order, ()) if type(order) is tuple else (self.sizes[order], (order,))
            if not layers and some:
                return zero if kind == "Order" else identity
            if not layers:
                unknown = [self.box(("no layers", kind, shown, more != ()), (0, *more))]
                return x._replace(at=lambda i, j: self.times(unknown, self.delta(i, j)))
            *rest, part = layers
            what, _, *size = part
            if what == "one":
                demand(some, "an order may be zero")
                without, fewer = summed(rest, order), summed(rest, plus(order, UNITY.items(), -1))
                factors = [over((), part), fewer]
                used = self.product(factors[:: -1 if reverse else 1])
                return x._replace(at=lambda i, j: self.collected(without.at(i, j) + used.at(i, j)))
            demand(not rest, "layers that follow others without number")
            if kind == "Orders" and what == "all":  # of more orders than layers nothing is added
                most = plus(size[0], UNITY.items())
                excess = plus(order, most, -1)
                shown = most if not excess or natural(excess) else order
            return over((kind, reverse, shown, more != ()), part, more)

        return x._replace(at=lambda i, j: summed(parts(), chosen()).at(i, j))

    # -- functions ---------------------------------------------------------------------------------

    def inverse(self, tree: Any, scope: Scope) -> Matrix:
        """Return the inverse of a matrix: of a product by its square factors, else a box."""
        self.note(["MatPow", tree, -1], scope)
        match tree:
            case ["MatPow", arg, int(k)] if type(k) is int:
                if k < 0:  # the inverse of an inverse that there is
                    self.defined(["MatPow", tree, -1], scope)
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
            return [self.opaque("inverse", arguments, (i, j))]

        return x if tree[0] == "Identity" else self.apart(x._replace(at=at), scope)

    def mask(self, mine: Branch, other: Branch, i: Index, j: Index) -> Terms:
        """Return an entry of the causal mask: 1 if j ≤ i in the order of the legs, else 0.

        Blocks are compared first, then the slowest factors, and where these are equal
        the remaining factors.
        """
        if not mine:
            return [UNIT]
        if type(mine[0]) is int:  # a mark is smaller, the later its block
            if mine[0] != other[0]:
                return [UNIT] if mine[0] < other[0] else []
            return self.mask(mine[1:], other[1:], i, j)
        row, col = (0, i[1]), (0, j[1])
        here = [self.box(("mask", mine[0]), row, col)]
        if len(mine) == 1:
            return here
        same = self.delta(row, col)
        rest = self.mask(mine[1:], other[1:], (0, *i[2:]), (0, *j[2:]))
        return [*here, *[t.by(MINUS) for t in same], *self.times(same, rest)]

    def activation(self, name: str, x: Matrix) -> Matrix:
        """Return an elementwise function; of a homogeneous one a positive factor is taken out.

        One that may be zero is taken out of relu, which vanishes with it.
        """

        def at(i: Index, j: Index) -> Terms:
            terms, factor = self.collected(x.at(i, j)), ONE
            if name in AXIOMS["degrees"]:
                degree = Fraction(AXIOMS["degrees"][name])
                content = self.content(terms, self.nonnegative if degree == 1 else self.positive)
                factor = power(content, degree)
                terms = [t.by(power(content, Fraction(-1))) for t in terms]
            if all(t[1:] == UNIT[1:] for t in terms):
                at_number = reduce(add, [t.factor for t in terms], number(0))
                for known, value in AXIOMS["values"].get(name, {}).items():
                    if at_number == number(Fraction(known)):
                        return [Term(multiply(factor, number(Fraction(value))))] if value else []
                if name in ("cos", "sin") and (many := twelfths(at_number)) is not None:
                    known = sine(many + 6 * (name == "cos"))
                    if known is not None:
                        return [Term(known)] if known[0] else []
            return [self.opaque(("activation", name), [((), terms)], ()).by(factor)]

        return x._replace(at=at)

    def content(self, terms: Terms, known: set[str]) -> Ratio:
        """Return the largest factor of a sum of positive numbers and `known` symbols."""
        parts = [leg for t in terms for leg in t.factor[0].items()]
        if not parts or any(t.factor[1] != UNITY for t in terms):
            return ONE
        above, below = [f.numerator for _, f in parts], [f.denominator for _, f in parts]
        shared = sorted({name for m, _ in parts for name, _ in m} & known)
        lowest = [(name, min(dict(m).get(name, Fraction(0)) for m, _ in parts)) for name in shared]
        return {merged(lowest): Fraction(gcd(*above), lcm(*below))}, UNITY

    def softmax(self, values: list[Matrix]) -> Matrix:
        """Return the softmax of each row of scores, with a mask or without."""
        x, masked = values[0], len(values) > 1

        def at(i: Index, j: Index) -> Terms:
            read = [(c, [self.collected(v.at(i, c)) for v in values]) for c in self.every(x.cols)]
            ways = [(c, found) for c, found in read if not masked or found[1]]
            ways.sort(key=lambda way: contents(*way))  # the order of columns changes nothing
            number = {c[0]: k for k, (c, _) in enumerate(ways)}
            if j[0] not in number:
                return []
            # a shift of the row changes nothing: less what is constant along the first block
            first = {*ways[0][0][1:]}
            shift = [t.by(MINUS) for t in ways[0][1][0] if first.isdisjoint(t.wires())]
            weighted = masked and any(found[1] != [UNIT] for _, found in ways)
            ways = [
                ((number[c[0]], *c[1:]), [self.collected([*scores, *shift]), *mask[:weighted]])
                for c, (scores, *mask) in ways
            ]
            if not weighted and not any(found[0] for _, found in ways):
                columns = sized([x.cols[k] for k in number])
                return [Term(self.power((dict(columns), UNITY), Fraction(-1)))]
            j = (number[j[0]], *j[1:])
            arguments = [((c,), terms) for c, found in ways for terms in found]
            return [self.opaque(("softmax", weighted), arguments, (j,))]

        return x._replace(at=at)


# -- the rules -------------------------------------------------------------------------------------


class Fact(NamedTuple):
    """lhs - rhs of an equation that holds for all values of its bound indices."""

    bounds: Scope
    lhs: Matrix
    rhs: Matrix

    def entry(self, at: Iterable[Index], i: Index, j: Index) -> Terms:
        """Return an entry of lhs - rhs."""
        for bound, now in zip(self.bounds, at, strict=True):
            demand(bound.last in (None, now), "a fact about the last layer is used at another")
            bound.now = now
        return self.lhs.at(i, j) + [t.by(MINUS) for t in self.rhs.at(i, j)]


class Case(NamedTuple):
    """An entry of the claim: its free indices, its row and column, and the terms of lhs - rhs."""

    free: tuple[Index, ...]
    row: Index
    col: Index
    terms: Terms


def proved(context: Context, claim: Equation, free: tuple[Free, ...], proof: Any) -> int:
    """Check a proof of a claim by its rule; return its number of terms."""
    rules = {"cancel": cancelled, "induction": by_induction, "generalise": generalised}
    rules |= {"rewrite": rewritten, "lemma": instantiated}
    demand(type(proof) is dict and proof.get("rule") in rules, "no rule")
    return rules[proof["rule"]](context, claim, free, proof)


def opened(reader: Reader, frees: Sequence[Free]) -> Scope:
    """Return free indices as indices in scope; only a last one has its value yet."""
    legs = [reader.legs(reader.size(free.count)) for free in frees]
    return tuple(
        Bound(over, (len(over) - 1,) if free.last else None)
        for free, over in zip(frees, legs, strict=True)
    )


def read(reader: Reader, one: Equation, scope: Scope = ()) -> Fact:
    """Return the fact of an equation, within the scope of other indices."""
    bounds = opened(reader, one.frees)
    lhs, rhs = [reader.value(side, (*scope, *bounds)) for side in (one.lhs, one.rhs)]
    reader.alike([lhs, rhs])
    return Fact(bounds, lhs, rhs)


def cancelled(context: Context, claim: Equation, free: tuple[Free, ...], proof: Any) -> int:
    """Check lhs - rhs = Σ of facts in contexts, in every block; return the number of terms."""
    demand(set(proof) <= {"rule", "splits", "facts", "uses"}, "a proof has other parts")
    reader = Reader(context, proof.get("splits", []))
    scope = opened(reader, free)
    fact = read(reader, claim._replace(frees=()), scope[: len(claim.frees)])
    fact = fact._replace(bounds=scope)  # which may hold the last layer, too
    cases = []
    moving = [bound.legs for bound in scope if bound.last is None]
    for *found, i, j in reader.places(*moving, fact.lhs.rows, fact.lhs.cols):
        rest = iter(found)
        at = tuple([next(rest) if bound.last is None else bound.last for bound in scope])
        cases.append(Case(at, i, j, fact.entry(at, i, j)))
    facts: list[Fact | Equation] = [*context.given]  # read where used: sizes are cut in one way
    facts += [derived(reader, one, free, scope) for one in proof.get("facts", [])]
    for use in proof.get("uses", []):
        add_use(reader, use, facts, fact, cases)
    left = [term for case in cases for term in reader.collected(case.terms)]
    demand(not left, f"{len(left)} terms do not cancel")
    return sum(len(case.terms) for case in cases)


def derived(reader: Reader, fact: Any, free: Any, scope: Scope) -> Fact:
    """Return the fact of an axiom's instance, after a check of the proofs of its premises."""
    if fact[0] == "lemma":
        return applied(reader, fact, free, scope)
    kind, counts, name, form, values, proofs = fact
    demand(kind == "axiom", "a fact of another kind")
    schema = AXIOMS["axioms"][name]["forms"][form]
    others, sizes = schema.get("others", []), schema.get("sizes", [])
    demand(set(values) == {*sizes, *schema["matrices"], *others}, "other parts")
    functions = schema.get("functions", [values.get("g")])
    demand(values.get("g") in functions, f"{name} says nothing of this function")
    frees = tuple(map(Free, counts))
    inner = (*scope, *opened(reader, frees))
    every = reader.shaped(schema, values, inner)
    for tree in filled(schema.get("where", []), every):
        reader.defined(tree, inner)
    for symbol, sign in schema.get("signs", {}).items():
        certain = SIGNS[sign] <= reader.signs(every[symbol], inner)
        demand(certain, f"{symbol} is not certainly {sign}")
    premises = filled(schema.get("premises", []), every)
    demand(len(proofs) == len(premises), "a premise has no proof")
    for sides, proof in zip(premises, proofs, strict=True):
        proved(reader.context, Equation((*free, *frees), *sides), (*free, *frees), proof)
    lhs, rhs = filled([schema["lhs"], schema["rhs"]], every)
    return read(reader, Equation(frees, lhs, rhs), scope)


def applied(reader: Reader, fact: Any, free: Any, scope: Scope) -> Fact:
    """Return the fact of a lemma's instance; a lemma is a certificate for other symbols.

    It presupposes nothing, so that it holds of total functions wherever they occur. Its
    hypotheses are proved for the values of its symbols.
    """
    frees, said = instance(reader, fact, free, scope)
    return read(reader, said._replace(frees=(*frees, *said.frees)), scope)


def instantiated(context: Context, claim: Equation, free: tuple[Free, ...], proof: Any) -> int:
    """Check a claim that is an instance of a lemma, tree for tree: it is not multiplied out."""
    demand(set(proof) == {"rule", "lemma", "values", "proofs"}, "an instance has other parts")
    fact = ["lemma", [], proof["lemma"], proof["values"], proof["proofs"]]
    reader = Reader(context, [])
    _, said = instance(reader, fact, (), ())
    demand(said == claim, "a lemma says something else")
    read(reader, said)
    return 1


def instance(
    reader: Reader, fact: Any, free: Any, scope: Scope
) -> tuple[tuple[Free, ...], Equation]:
    """Return what a lemma says of what is put in, and the free indices of that, after a check."""
    _, counts, certificate, values, proofs = fact
    lemma, context = stated(certificate, presupposed=False)
    key = json.dumps(certificate)
    spend(len(key))
    if key not in LEMMAS:
        proved(context, lemma, lemma.frees, certificate["proof"])
        LEMMAS.add(key)
    frees = tuple(map(Free, counts))
    inner = (*scope, *opened(reader, frees))
    put = Instance(len(inner), values["sizes"], values["scalars"], values["tensors"])
    suited(reader, certificate, put, inner)
    demand(len(proofs) == len(context.given), "a hypothesis of a lemma has no proof")
    for one, proof in zip(context.given, proofs, strict=False):
        premise = put.equation(one)
        every = (*free, *frees, *premise.frees)
        proved(reader.context, premise._replace(frees=every), every, proof)
    return frees, put.equation(lemma)


def suited(reader: Reader, certificate: Any, put: Instance, scope: Scope) -> None:
    """Demand that the values of a lemma's symbols have their kinds, flags and shapes."""
    named = ((put.sizes, "sizes"), (put.scalars, "scalars"), (put.tensors, "tensors"))
    demand(all(len(own) == len(certificate[kind]) for own, kind in named), "a symbol has no value")
    for tree in put.sizes:
        reader.size(tree)
    known = reader.context.declared["scalars"]
    for tree, (_, flags) in zip(put.scalars, certificate["scalars"], strict=True):
        demand(is_number(tree), "a scalar of a lemma is no number")
        own = known[tree[1]][1] if flags and tree[0] == "scalar" else []
        demand(set(flags) <= set(own), "a scalar of a lemma has another property")
    for tree, (_, counts, *shape) in zip(put.tensors, certificate["tensors"], strict=True):
        if INTEGERS in counts:  # in the place of a family over all integers is another
            kind, k = tree
            sizes = [reader.size(put.tree(n, len(scope))) for n in shape]
            own = kind == "family" and [*reader.tensors[k][1:]] == sizes
            demand(own, "a family of a lemma has another shape")
            continue
        bounds = opened(reader, [Free(put.tree(n, len(scope))) for n in counts])
        x = reader.matrix(tree, (*scope, *bounds))
        sizes = [reader.size(put.tree(n, len(scope))) for n in shape]
        demand([sized(x.rows), sized(x.cols)] == sizes, "a matrix of a lemma has another shape")


class Instance(NamedTuple):
    """The values of a lemma's symbols, as trees within `scope` indices."""

    scope: int
    sizes: list[Any]
    scalars: list[Any]
    tensors: list[Any]

    def equation(self, one: Equation) -> Equation:
        """Return an equation of the lemma with its symbols replaced."""
        depth = self.scope + len(one.frees)
        frees = tuple([Free(self.tree(free.count, depth)) for free in one.frees])
        return Equation(frees, self.tree(one.lhs, depth), self.tree(one.rhs, depth))

    def tree(self, tree: Any, depth: int) -> Any:
        """Return a tree of the lemma, within `depth` indices, with its symbols replaced."""
        spend(1)
        match tree:
            case ["i", k]:
                return ["i", self.scope + k]
            case ["size", k]:
                return self.sizes[k]
            case ["scalar", k]:
                return self.scalars[k]
            case ["tensor", k, *indices]:
                at = [self.tree(index, depth) for index in indices]
                if self.tensors[k][0] == "family":
                    return ["tensor", self.tensors[k][1], *at]
                return moved_in(self.tensors[k], self.scope, at, depth)
            case [str(kind), body, *others] if kind in BINDERS:
                rest = [self.tree(part, depth) for part in others]
                return [kind, self.tree(body, depth + 1), *rest]
            case [*parts]:
                made = [self.tree(part, depth) for part in parts]
                whole = made[:1] == ["Add"] and all(type(part) is int for part in made[1:])
                return sum(made[1:]) if whole else made
        return tree


BINDERS = {"Sum", "HeadSum", "StackHeads", "ConcatHeads", "LayerProduct", "OrderSum"}
LEMMAS: set[str] = set()  # those that were found true in this check


def moved_in(tree: Any, scope: int, at: list[Any], depth: int) -> Any:
    """Return the value of a matrix symbol at indices, within `depth` indices in scope."""
    spend(1)
    match tree:
        case ["i", k] if k >= scope:
            k -= scope
            return at[k] if k < len(at) else ["i", depth + k - len(at)]
        case [*parts] if not is_index(tree):
            return [moved_in(part, scope, at, depth) for part in parts]
    return tree


def add_use(
    reader: Reader, use: Any, facts: list[Fact | Equation], claim: Fact, cases: list[Case]
) -> None:
    """Subtract coefficient · context[fact] from the entries of the claim."""
    parts = {"fact", "coefficient", "at"}
    demand(set(use) in (parts, parts | {"context"}), "a use has other parts")
    demand(type(use["fact"]) is int and 0 <= use["fact"] < len(facts), "a use of no fact")
    known, factor = facts[use["fact"]], multiply(reader.number(use["coefficient"]), MINUS)
    fact = facts[use["fact"]] = known if isinstance(known, Fact) else read(reader, known)
    if "context" in use:
        inside = in_context(reader, use["context"], use["at"], fact, claim)
    else:  # the fact itself
        demand(fact.lhs[:2] == claim.lhs[:2], "a fact of another shape")
        pairs = zip(use["at"], fact.bounds, strict=True)
        where = [reader.index(i, bound.legs, claim.bounds) for i, bound in pairs]

        def inside(case: Case) -> Terms:
            return fact.entry([at() for at in where], case.row, case.col)

    for case in cases:
        for bound, now in zip(claim.bounds, case.free, strict=True):
            bound.now = now
        case.terms.extend([t.by(factor) for t in inside(case)])


def in_context(reader: Reader, context: Any, at: Any, fact: Fact, claim: Fact) -> Any:
    """Return a function that gives the entries of a fact multiplied by the context's boxes."""
    parts = {"sizes", "held", "free", "rows", "cols", "boxes", "hole"}
    demand(set(context) == parts, "a context has other parts")
    sizes = [reader.size(tree) for tree in context["sizes"]]

    def lies(index: Any, legs: Legs) -> Index:
        """Return an index, given as marks and wires, with the number of its branch."""
        demand(all(type(w) is int and w < len(sizes) for w in index), "a context has no such wire")
        branch = tuple([sizes[w] if w >= 0 else w for w in index])
        demand(branch in legs, "an index in a context does not fit")
        return (legs.index(branch), *[w for w in index if w >= 0])

    def instance(index: Any, legs: Legs) -> Any:
        """Return an index at which a fact is used: marks and wires, or an affine index."""
        if index[:1] != ["at"]:
            return lies(index, legs)
        value = Value(*reader.whole(index))
        demand(value.within(sizes, sized(legs)), "a fact is used at an index out of range")
        return value

    boxes = []
    for tree, counts, row, col in context["boxes"]:
        bounds = opened(reader, [Free(count) for count, _ in counts])
        x = reader.value(tree, (*claim.bounds, *bounds))
        where = [lies(i, bound.legs) for (_, i), bound in zip(counts, bounds, strict=True)]
        boxes.append((bounds, where, x, lies(row, x.rows), lies(col, x.cols)))
    fact_at = [instance(i, bound.legs) for i, bound in zip(at, fact.bounds, strict=True)]
    row, col = context["hole"]
    hole = lies(row, fact.lhs.rows), lies(col, fact.lhs.cols)
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

        def placed(index: Any) -> Any:
            if isinstance(index, Value):
                return Value(index.constant, [(wires[w], f) for w, f in index.factors.items()])
            return (index[0], *[wires[w] for w in index[1:]])

        terms = [Term(ONE, (), tuple(equal), tuple(new.values()))]
        for bounds, where, x, row, col in boxes:
            for bound, index in zip(bounds, where, strict=True):
                bound.now = placed(index)
            terms = reader.times(terms, x.at(placed(row), placed(col)))
        return reader.times(terms, fact.entry(map(placed, fact_at), *map(placed, hole)))

    return inside


# -- induction over the number of layers -----------------------------------------------------------


def by_induction(context: Context, claim: Equation, free: tuple[Free, ...], proof: Any) -> int:
    """Check a claim for every depth L: for one layer, and for L + 1 where it holds for the first L.

    The layers are counts and nothing else, and hypotheses are about all layers alike. The claim is
    one about total functions, so it says the same of the first L layers as of all of them. It is
    read for the first L of any number, so that its divisors are nonzero at every depth.
    """
    demand(set(proof) == {"rule", "over", "base", "step"}, "an induction has other parts")
    over, declared = proof["over"], context.declared
    demand(type(over) is int and 0 <= over < len(declared["sizes"]), "the depth is no size")
    demand(over not in context.ones | context.later, "two inductions over one depth")
    demand(all(one.last for one in free[len(claim.frees) :]), "a premise")
    depth, tensors = ["size", over], declared["tensors"]
    counts = [n for _, counts, *_ in tensors for n in counts]
    frees = [one.count for one in claim.frees]
    frees += [grows(one.count, depth) for equation in context.given for one in equation.frees]
    shapes = [shape for _, _, *shape in tensors]
    demand(not names(shapes, depth), "the depth is the size of a matrix")
    demand(all(n == depth or not names(n, depth) for n in counts), "a count beside the depth")
    demand(all(n == depth or not names(n, depth) for n in frees), "a count beside it")
    # an induction around this one proves its claim for all sizes: its hypothesis is for all, too
    known = [[one.lhs, one.rhs] for one in context.given[: context.fixed]]
    demand(not names([known, declared["nonzero"]], depth), "a hypothesis names the depth")

    L = ordered({((f"n{over}", Fraction(1)),): Fraction(1)})
    union_of = (plus(L, UNITY.items()), union([((L,),), NONE]))
    free = (*free, Free(depth, last=True))
    depths = context.depths | set(inductions(proof))
    base = context._replace(depths=depths, ones=context.ones | {over})
    later, part, tensors, stated, given = replaced(
        (free, claim, tensors, context.stated, context.given), depth, ["Add", depth, 1]
    )
    step = context._replace(
        declared={**declared, "tensors": tensors},
        stated=stated,
        given=(*given, claim, *context.given[context.fixed :]),
        depths=depths,
        later=context.later | {over},
        firsts=context.firsts | {L},
        unions=(*context.unions, union_of),
    )
    return proved(base, claim, free, proof["base"]) + proved(step, part, later, proof["step"])


def grows(count: Any, depth: Any) -> Any:
    """Return the depth if a count is the depth plus an integer, else the count."""
    match count:
        case ["Add", part, int(more)] | ["Add", int(more), part] if part == depth and more >= 0:
            return depth
    return count


def inductions(proof: Any) -> Iterable[int]:
    """Yield the sizes over which a proof, or a proof within it, is an induction.

    Lemmas have sizes of their own, and are left out.
    """
    if type(proof) is dict and "schema" in proof:
        return
    if type(proof) is dict and "over" in proof:
        yield proof["over"]
    for part in proof.values() if type(proof) is dict else proof:
        if type(part) in (dict, list):
            yield from inductions(part)


def generalised(context: Context, claim: Equation, free: tuple[Free, ...], proof: Any) -> int:
    """Check a claim by proving it with an arbitrary matrix in the place of a part."""
    demand(set(proof) == {"rule", "part", "shape", "proof"}, "a generalisation has other parts")
    part, shape, declared = proof["part"], proof["shape"], context.declared
    reader = Reader(context, [])
    x = reader.matrix(part, opened(reader, free))
    sizes = tuple(map(reader.size, shape))
    inside = whole(part, len(claim.frees))
    demand((sized(x.rows), sized(x.cols)) == sizes, "a matrix of another shape is in its place")
    by, own = ["tensor", len(declared["tensors"])], not context.depths
    stated = (claim, *context.stated[:own])  # defined for any, as there
    claim, *first = replaced(stated, part, by, inside)
    declared = {**declared, "tensors": [*declared["tensors"], ["", [], *shape]]}
    context = context._replace(declared=declared, stated=(*first, *context.stated[own:]))
    return proved(context, claim, free, proof["proof"])


def whole(tree: Any, frees: int) -> bool:
    """Return whether all indices in a tree are free indices of the claim."""
    if is_index(tree):
        return bool(tree[1] < frees)
    return type(tree) is not list or all(whole(part, frees) for part in tree)


def rewritten(context: Context, claim: Equation, free: tuple[Free, ...], proof: Any) -> int:
    """Check that a part equals another, and the claim with the other; both proofs have splits.

    The part may be in a product over layers or in a function, since all are total.
    """
    demand(set(proof) == {"rule", "at", "by", "equal", "proof"}, "a rewriting has other parts")
    sides, new, places = [claim.lhs, claim.rhs], proof["by"], proof["at"]
    old = reduce(lambda tree, k: tree[k], places, sides)
    unbound = whole(old, len(claim.frees)) and whole(new, len(claim.frees))
    demand(unbound, "a rewritten part has an index that is bound")

    def put(tree: Any, at: Sequence[int]) -> Any:
        return [put(x, at[1:]) if k == at[0] else x for k, x in enumerate(tree)] if at else new

    lhs, rhs = put(sides, places)
    same, other = claim._replace(lhs=old, rhs=new), claim._replace(lhs=lhs, rhs=rhs)
    return proved(context, same, free, proof["equal"]) + proved(
        context, other, free, proof["proof"]
    )


# -- reading a certificate -------------------------------------------------------------------------

FLAGS = {"real", "positive", "nonnegative", "nonzero", "negative", "nonpositive"}
PARTS = {"schema", "sizes", "scalars", "tensors", "indices", "given", "nonzero", "lhs", "rhs"}


def stated(certificate: Any, presupposed: bool = True) -> tuple[Equation, Context]:
    """Return the claim of a certificate, and the context of its proof.

    Its partial functions are presupposed to be defined, unless `presupposed` is False.
    """
    whole = type(certificate) is dict and set(certificate) == {*PARTS, "proof"}
    demand(whole, "a part is missing, or one too many")
    schema = certificate["schema"]
    demand(type(schema) is int and schema == 4, f"the schema is {schema!r}, and 4 is read here")
    for name, flags in certificate["scalars"]:
        demand(type(name) is str and set(flags) <= FLAGS, "a scalar has an unknown property")
    demand(presupposed or not certificate["nonzero"], "a lemma presupposes what is not zero")
    free = tuple([Free(count) for _, count in certificate["indices"]])
    given = tuple(
        Equation(tuple(map(Free, counts)), lhs, rhs) for counts, lhs, rhs in certificate["given"]
    )
    claim = Equation(free, certificate["lhs"], certificate["rhs"])
    known = (claim, *given) if presupposed else (Equation((), 0, 0),)
    return claim, Context(certificate, known, given, len(given))


Affine = dict[str, int]  # a number, at "", and the factors of symbols
Span = tuple[int, int | None, str]  # the least and the largest value, and the name of a symbol
ALL: Span = (0, None, "")


def in_cases(certificate: Any, fixed: frozenset[str]) -> str:
    """Check a statement in cases: these are all values of an index, each once, and all are proved.

    The statement is there for people, as are the names of symbols in what a case proves. That it is
    what the statement says at these values is not checked.
    """
    demand(set(certificate) == {"schema", "claim", "over", "cases"}, "a part of cases is missing")
    demand(certificate["schema"] == 4 and type(certificate["claim"]) is str, "no claim of cases")
    demand(proofs_in(certificate) <= MAX_CASES, "there are too many cases")
    exhaustive(certificate["over"], certificate["cases"])
    checked = []
    for case in certificate["cases"]:
        index = certificate["over"]["index"]
        gone = {index} - set(case["at"][index])
        checked.append(check(case["proof"], fixed | gone))
    return "; ".join(checked)


def proofs_in(certificate: Any) -> int:
    """Return the number of cases in a certificate, those of a case counted one by one."""
    return sum(proofs_in(one["proof"]) for one in certificate.get("cases", ())) or 1


def exhaustive(over: Any, cases: Any) -> None:
    """Demand that each value of an index is in one case, and in no other.

    The index is at least some number, and at most its last value, a number or a size and a number,
    if it has one. A case has the values c, or c + s, of the index, and of what is left to the last.
    """
    demand(set(over) == {"index", "least", "last"}, "cases of nothing")
    index, least, last = over["index"], over["least"], over["last"]
    sizes = [name for name in last or () if name]
    demand(type(least) is int, "the least value is no number")
    plain = [last[name] for name in sizes] in ([], [1])
    demand(plain, "the last value is no size and a number")
    spans = []
    for case in cases:
        demand(set(case) == {"at", "from_zero", "proof"}, "a case has other parts")
        at, zero = case["at"], case["from_zero"]
        here, left = span(at[index], zero), ALL
        if sizes:
            size = at.get(sizes[0], {sizes[0]: 1})
            left = span(combined(size, {"": last.get("", 0)}, at[index]), zero)
            demand(not here[2] or here[2] != left[2], "two values of a case depend on each other")
        spans.append((here, left))
    top = max(start for span in spans for start, *_ in span) + 1
    top = top if sizes or not last else last.get("", 0)
    demand(top - least < MAX_CASES, "the values in cases are too large")
    for i, rest in product(range(least, top + 1), range(top + 1) if sizes else [0]):
        if not sizes or i + rest - last.get("", 0) > 0:
            found = [one for one in spans if covers(one[0], i) and covers(one[1], rest)]
            demand(len(found) == 1, f"{index} = {i} is in {len(found)} cases")


def combined(plus: Affine, more: Affine, minus: Affine) -> Affine:
    """Return plus + more - minus."""
    names = {*plus, *more, *minus}
    return {n: plus.get(n, 0) + more.get(n, 0) - minus.get(n, 0) for n in names}


def span(value: Affine, zero: Sequence[str]) -> Span:
    """Return the least and the largest value of c, or of c + s for a symbol s, and its name.

    A symbol is 1 or more, and those of `zero` are 0 or more.
    """
    demand(all(type(factor) is int for factor in value.values()), "a value is no integer")
    names = [name for name, factor in value.items() if name and factor]
    plain = len(names) < 2 and all(value[name] == 1 for name in names)
    demand(plain, "a case is at other values than c and c + s")
    start = value.get("", 0) + sum(name not in zero for name in names)
    return start, None if names else start, "".join(names)


def covers(one: Span, value: int) -> bool:
    """Return whether a value is in a span."""
    return one[0] <= value and (one[1] is None or value <= one[1])


def check(certificate: Any, fixed: frozenset[str] = frozenset()) -> str:
    """Return a line on what was proved, or raise Rejected; `fixed` symbols have values in a case.

    >>> n = ["size", 0]
    >>> made = {"schema": 4, "sizes": ["n"], "scalars": [], "tensors": [["A", [], n, n]]}
    >>> made |= {"indices": [], "given": [], "nonzero": [], "proof": {"rule": "cancel"}}
    >>> check({**made, "lhs": ["tensor", 0], "rhs": ["Transpose", ["tensor", 0]]})
    Traceback (most recent call last):
    ...
    otimes.proofs.replay.Rejected: 2 terms do not cancel
    """
    WORK[0] = MAX_WORK
    LEMMAS.clear()
    try:
        if type(certificate) is dict and "cases" in certificate:
            return in_cases(certificate, fixed)
        declared = [name for name, *_ in certificate["indices"]] + certificate["sizes"]
        demand(fixed.isdisjoint(declared), "a case is about another value of its index")
        claim, context = stated(certificate)
        terms = proved(context, claim, claim.frees, certificate["proof"])
    except RecursionError:
        raise Rejected("its trees are nested too deeply to be read") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise Rejected(f"it is not in the form of a certificate: {error!r}") from None
    return (
        f"by {certificate['proof']['rule']}: {terms} terms cancel, {len(context.given)} hypotheses"
    )


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; a repeated key is rejected."""
    demand(len({key for key, _ in pairs}) == len(pairs), "a key stands twice in one object")
    return dict(pairs)


def no_number(text: str) -> Any:
    """Reject NaN and the infinities, which are not JSON."""
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
