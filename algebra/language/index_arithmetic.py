"""Index arithmetic, written with the classes of the language that have it built in.

    Σ_{j ≤ i} f(j)      `Sum(f, (j, 0, i))`: f times the entry (i, j) of the causal mask, over all j
    Σ_{j < i} f(j)      `Sum(f, (j, 0, i - 1))`: of the causal mask less the identity
    Σ_{j ≥ i} f(j)      `Sum(f, (j, i, n - 1))`: of the transposed mask; from i + 1 likewise
    i, j - i            an index as a number: the entry i of `Positions(n)`
    A[n - 1, j]         the last index: e A for the row `OneHotLast(n).T`
    A[i + 1, j]         the entry (i, j) of `Shift(n).T * A` (`shifted_entries`)
    Σ_{l<n-i} f(l)      Σ_{l≥i} f(l - i)
    S[l + 1], R[j - i]  members at affine indices (`affine`)
    A**m                `LayerProduct(A, (l, m))`, for a size or an index m; A**(m + 2) is A**m A A
    A**(i - j)          a member of a family (`power_families`), and A[i - 1] … A[j] under a sum
                        over j likewise (`window_families`)

`HeadSum(F[j], (j, i + 1))` and `HeadSum(F[j], (j, i))` are sums of matrices up to an index. What
the language has already is left as it is.

>>> from otimes.algebra.language.unicode import unicode_text
>>> n = sympy.Symbol("n")
>>> i, j = sympy.symbols("i j", integer=True)
>>> x, A = sympy.MatrixSymbol("x", n, 1), sympy.MatrixSymbol("A", n, n)
>>> (e,), _ = elaborated([A[i, 0] * sympy.Sum(x[j, 0], (j, 0, i))])
>>> print(unicode_text(e))
A[i, 0] (Σ_j M_n[i, j] x[j, 0])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, TypeVar

import sympy
from sympy import Symbol
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.language import window_families
from otimes.algebra.language.affine import (
    AffineMember,
    affine_member,
    moved,
    never_negative,
    only_in_members,
)
from otimes.algebra.language.binders import (
    Pair,
    bindings,
    fresh_name,
    index_places,
    names_in,
    substituted,
)
from otimes.algebra.language.cut_ranges import constants_of, cut
from otimes.algebra.language.free_indices import ATOMS, Ranges, free_ranges
from otimes.algebra.language.inverse_members import (
    is_inverse,
    without_inverse_layers,
    without_inverses,
)
from otimes.algebra.language.last_values import last_values
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    Family,
    FamilyMember,
    HeadSum,
    OneHot,
    as_product,
    matadd,
    matmul,
)
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.language.positions import OneHotLast, Positions
from otimes.algebra.language.power_families import (
    Powers,
    add_power,
    definitions,
    least_value,
    reach_of,
)
from otimes.algebra.language.shifted_entries import with_shifts
from otimes.algebra.language.sizes import same_size
from otimes.algebra.language.split_orders import summed_up
from otimes.algebra.language.trees import parts_of, rebuilt
from otimes.algebra.language.unicode import short_text
from otimes.algebra.language.window_families import Reach, Window, lasts, window_of

Found = TypeVar("Found")
Wider = dict[str, tuple[Any, Family]]  # families with more members, and how many more at each end
HIGHEST = 64  # the largest number added to a symbolic exponent
ROUNDS = 6  # in which families get the members that are named


def elaborated(sides: Sequence[Any], given: Sequence[Pair] = ()) -> tuple[list[Any], list[Pair]]:
    """Return the sides and the hypotheses of a claim without index arithmetic.

    Raises ShapeError for an index out of range, and LanguageError for arithmetic that it has not.
    """
    everything = [*sides, *[side for pair in given for side in pair]]
    if not all(isinstance(e, sympy.Basic) for e in everything):
        return list(sides), list(given)
    atoms = (atom for e in everything for atom in parts_of(e, *ATOMS, OneHot))
    sizes = {symbol for atom in atoms for symbol in _sizes(atom)}
    sides, given, limits = with_shifts(sides, given, sizes)
    everything = [*sides, *[side for pair in given for side in pair]]
    constants = constants_of(everything, sizes)
    sides = [cut(side, sizes, constants) for side in sides]
    given = [(cut(pair[0], sizes, constants), cut(pair[1], sizes, constants)) for pair in given]
    everything = [*sides, *[side for pair in given for side in pair]]
    scan = partial(free_ranges, sizes=sizes)
    given = [*given, *_at_last_values(given, scan)]
    everything = [*sides, *[side for pair in given for side in pair]]
    affine: frozenset[str] = frozenset()
    while True:
        seen = {**scan(everything, affine), **scan(sides, affine)}
        more = affine | _affine_families(everything, seen, sizes)
        if more == affine:
            break
        affine = more  # one index of theirs may have fewer values than others have members
    free = scan(sides, affine)
    often = Counter(
        term.as_coeff_Mul()[1]
        for e in everything
        for part in sympy.preorder_traversal(e)
        if isinstance(part, sympy.MatPow)
        for term in sympy.expand(part.exp).args * isinstance(part.exp, sympy.Add)
    )
    powers: Powers = {}
    windows: dict[Window, Reach] = {}
    wider: Wider = {}
    for _ in range(ROUNDS):
        known, seen_windows = len(powers), dict(windows)
        reached = {name: family for name, (_, family) in wider.items()}
        elaboration = _Elaboration(names_in(*everything), affine, sizes, powers, wider)
        elaboration.limits = dict(limits)
        elaboration.often, elaboration.windows = often, windows
        made = [elaboration.walk(side, free) for side in sides]
        pairs, elaboration.limits = [], {}
        for pair in given:
            own = {**free, **scan(pair, affine)}
            pairs.append((elaboration.walk(pair[0], own), elaboration.walk(pair[1], own)))
        # else all powers of these matrices, and all members of these families, are written anew
        same = len(powers) == known and seen_windows == windows
        if same and reached == {name: family for name, (_, family) in wider.items()}:
            break
    else:
        raise LanguageError(
            f"the members of {', '.join(wider)} that a sum or product names have no least range"
        )
    made, pairs = without_inverses(made, pairs) if affine else (made, pairs)
    made, pairs = without_inverse_layers(made, pairs, sizes)
    defined = [one for base in powers for one in definitions(base, powers[base])]
    for window, reach in windows.items():
        families = {name: family for name, (_, family) in wider.items()}
        walk = partial(elaboration.walk, ranges={})
        defined += window_families.definitions(window, reach, families, walk)
    return made, [*pairs, *defined]


def _at_last_values(given: Sequence[Pair], scan: Callable[..., Ranges]) -> Iterator[Pair]:
    """Yield hypotheses at i + 1 and at n where the index i < n of a sum Σ_{j<i} may be n."""
    for lhs, rhs in given:
        for index, count in last_values((lhs, rhs), scan((lhs, rhs), frozenset())).items():
            for value in (index + 1, count):
                yield substituted(lhs, {index: value}), substituted(rhs, {index: value})


def _affine_families(
    expressions: Sequence[Any], free: Ranges, sizes: AbstractSet[Symbol]
) -> frozenset[str]:
    """Return the names of the families that have members at affine indices.

    Where a sum subtracts its index, as in Σ_j A[n - 1 - j] B[j], all members there are such: it may
    be read in the other direction.
    """
    found: set[str] = set()
    numbers = {symbol for e in expressions for symbol in _numbers(e)} & free.keys()

    def collect(e: Any, ranges: Ranges) -> None:
        if isinstance(e, HeadSum | sympy.Sum):
            members = parts_of(e.args[0], FamilyMember)
            for index, _ in bindings(e):
                if is_subtracted(e.args[0], index):
                    found.update(m.family.name for m in members if index in m.indices)
        if is_inverse(e) and isinstance(e.base, FamilyMember) and not e.base.free_symbols <= sizes:
            found.add(e.base.family.name)
        if isinstance(e, FamilyMember):
            for index, count, first in zip(
                e.indices, e.family.counts, e.family.firsts, strict=True
            ):
                plain = isinstance(index, Symbol | sympy.Integer) and index not in sizes
                plain &= index not in numbers
                other = not plain and sympy.expand(count - index) != 1
                known = ranges.get(index)
                other |= known is not None and not same_size(known, count)
                if first != 0 or other:
                    found.add(e.family.name)
        elif isinstance(e, sympy.Basic) and not isinstance(e, ATOMS):
            inner = {**ranges, **_plain_bindings(e, ranges)}
            for argument in e.args:
                collect(argument, inner)

    for e in expressions:
        collect(e, free)
    return frozenset(found)


def _numbers(e: Any) -> set[Any]:
    """Return the symbols that count the factors of products over layers and of powers."""
    counts = [part.count for part in parts_of(e, LayerProduct, OrderSum)]
    counts += [power.exp for power in parts_of(e, sympy.Pow, sympy.MatPow)]
    return {symbol for count in counts for symbol in count.free_symbols}


def is_subtracted(e: Any, index: Symbol) -> bool:
    """Return whether an index has a negative factor in an index of a member, or in an exponent."""
    members = [i for m in parts_of(e, FamilyMember) for i in m.indices]
    exponents = [power.exp for power in parts_of(e, sympy.Pow, sympy.MatPow)]
    counts = [product.count for product in parts_of(e, LayerProduct)]
    return any(sympy.expand(x).coeff(index) < 0 for x in (*members, *exponents, *counts))


def _plain_bindings(e: Any, ranges: Ranges) -> Ranges:
    """Return the indices that a node binds over a number of values that is a size."""
    found: Ranges = {}
    for index, count in bindings(e):
        plain = isinstance(count, sympy.Expr) and not count.free_symbols & {*ranges, *found}
        found[index] = count if plain else None
    return found


def without_arithmetic(
    take: Callable[[Sequence[Any], Sequence[Pair]], Found],
    sides: Sequence[Any],
    given: Sequence[Pair] = (),
    compared: int = 0,
) -> Found:
    """Return `take(sides, given)`; where these are refused, that without index arithmetic.

    The last sides, as many as are `compared` by inequalities, have none.
    """
    try:
        return take(sides, given)
    except OtimesError as error:
        refused = error
    made, pairs = elaborated(sides, given)
    first = len(sides) - compared
    if made[first:] != list(sides[first:]) or (made == list(sides) and pairs == list(given)):
        raise refused
    return take(made, pairs)


def _sizes(atom: Any) -> set[Any]:
    """Return the symbols in the sizes of an atom."""
    sizes = [*atom.counts, *atom.shape] if isinstance(atom, Family) else atom.shape
    return {symbol for size in sizes for symbol in sympy.sympify(size).free_symbols}


class _Elaboration:
    """Walks over expressions; a new index has none of the `names`."""

    def __init__(
        self,
        names: set[str],
        affine: frozenset[str],
        sizes: Collection[Symbol],
        powers: Powers,
        wider: Wider,
    ) -> None:
        self.names = names
        self.powers = powers  # the families of powers whose exponents subtract an index
        self.wider = wider  # the families with members that only masked terms have
        self.limits: dict[Symbol, tuple[Any, Any]] = {}  # the first and last values of indices
        self.turned: set[Symbol] = set()  # the indices that are subtracted in a sum over them
        self.windows: dict[Window, Reach] = {}  # the families of products that a sum moves
        self.often: Counter[Any] = Counter()  # in how many sums that are exponents a term is
        self.affine = affine  # the names of families with members at affine indices
        self.sizes = sizes

    def walk(self, e: Any, ranges: Ranges) -> Any:
        if isinstance(e, Symbol):
            return MatrixElement(Positions(ranges[e]), e, 0) if e in ranges else e
        if not e.args or isinstance(e, ATOMS):
            return e
        special = _SPECIAL.get(type(e))
        if special is not None:
            return special(self, e, ranges)
        return self.plain(e, ranges)

    def plain(self, e: Any, ranges: Ranges) -> Any:
        """Return a node with its arguments elaborated; limits, orders and indices stay."""
        inner, outside = {**ranges, **dict(bindings(e))}, dict(self.limits)
        for index, count in bindings(e):
            self.limit(index, sympy.S.Zero, count - 1)
        orders = range(2, len(e.args)) if isinstance(e, OrderSum) else ()
        kept = {*index_places(e), *orders}
        arguments = [
            a if at in kept or isinstance(a, sympy.Tuple) else self.walk(a, inner)
            for at, a in enumerate(e.args)
        ]
        self.limits = outside
        return rebuilt(e, arguments)

    # -- sums up to an index, or from one ----------------------------------------------------------

    def index_sum(self, e: sympy.Sum, ranges: Ranges) -> Any:
        """Return a sum over ranges that depend on indices as sums over full ranges."""
        scope, inside, outside = ranges, [], dict(self.limits)
        body = e.function
        if not e.limits:
            return e  # which `shapes` refuses
        for limit in reversed(e.limits):
            if len(limit) != 3 or not isinstance(limit[0], Symbol):
                return e  # which `shapes` refuses
            index, first, last = limit
            first, last, body = _from_later(body, index, first, last, scope)
            count, factors = self.range_of(index, first, last, scope, e)
            inside.append((index, count, factors))
            scope = {**scope, index: count}
            self.bind(body, index, first, last)
        made = self.walk(body, scope)
        self.limits = outside
        for index, count, factors in reversed(inside):
            body = sympy.Mul(*factors, made, evaluate=False) if factors else made
            made = sympy.Sum(body, (index, 0, count - 1))
        return made

    def head_sum(self, e: HeadSum, ranges: Ranges) -> Any:
        """Return a sum of matrices up to an index as one over a full range."""
        scope, inside, outside = ranges, [], dict(self.limits)
        body = e.body
        for index, count in e.limits:
            if not isinstance(index, Symbol):
                return e
            first, last, body = _from_later(body, index, sympy.S.Zero, count - 1, scope)
            whole, factors = self.range_of(index, first, last, scope, e)
            inside.append((index, whole, factors))
            scope = {**scope, index: whole}
            self.bind(body, index, first, last)
        made = self.walk(body, scope)
        self.limits = outside
        for index, count, factors in reversed(inside):
            body = matmul(*factors, made) if factors else made
            fewer, ends = _split(count) if only_in_members(body, index) else (count, [])
            kept = moved(body, {index: (sympy.S.Zero, fewer)}) if ends else body
            made = HeadSum(kept, (index, fewer))
            if ends:
                made = matadd(made, *[moved(body, {index: (end, 1)}) for end in ends])
        return made

    def layers(self, e: LayerProduct, ranges: Ranges) -> Any:
        """Return a product over layers; over L + 1 of them, the last one split off."""
        if e.count.free_symbols & self.turned:
            return self.window(e, ranges)
        made = self.plain(e, ranges)
        fewer, ends = _split(e.count) if only_in_members(made.body, e.index) else (e.count, [])
        if not ends:
            return made
        kept = moved(made.body, {e.index: (sympy.S.Zero, fewer)})
        first = LayerProduct(kept, (e.index, fewer), e.reverse)
        last = [moved(made.body, {e.index: (end, 1)}) for end in ends]
        return matmul(first, *last) if e.reverse else matmul(*last[::-1], first)

    def window(self, e: LayerProduct, ranges: Ranges) -> Any:
        """Return a product over layers that a sum moves as a member of a family."""
        found = window_of(e, ranges.keys())
        if found is None:
            raise LanguageError(
                f"the layers of {short_text(e)} are not those of one sequence, from one of them on"
            )
        (window, first), count = found, sympy.expand(e.count)
        ends = [(first + more, last - first - count - more) for more, last in lasts(window)]
        least = [least_value(sympy.expand(x), self.limits, ranges) for end in ends for x in end]
        if None in [*least, least_value(count, self.limits, ranges)]:
            raise LanguageError(f"nothing says that all layers of {short_text(e)} exist")
        known = self.windows.get(window)
        longest, farthest = (reach_of(x, ranges) or sympy.S.One for x in (count, first))
        if known is not None:
            longest = _larger(known.longest, longest)
            farthest = _larger(known.farthest, farthest)
        name = known.family.name if known is not None else self.fresh("Φ^").name
        counts = [(-longest, longest), (-farthest, farthest)]
        family = Family(name, counts, *e.shape)
        self.windows[window] = Reach(family, longest, farthest)
        for member in parts_of(window.layer, FamilyMember):
            self.widen(member.family, sympy.expand(longest + farthest + 1))
        return affine_member(family, [count, first], ranges, lambda *_: True)

    def widen(self, family: Family, more: Any) -> None:
        """Let a family have more members at both ends, which no claim evaluates."""
        reach, _ = self.wider.get(family.name, (sympy.S.Zero, family))
        if not never_negative(reach - more):
            reach = more if never_negative(more - reach) else sympy.expand(reach + more)
            ends = zip(family.firsts, family.counts, strict=True)
            counts = [(first - reach, first + count - 1 + reach) for first, count in ends]
            self.wider[family.name] = reach, Family(family.name, counts, *family.shape)

    def orders(self, e: OrderSum, ranges: Ranges) -> Any:
        """Return a sum over paths; over L + 1 layers, the paths without and with the last."""
        made = self.plain(e, ranges)
        fewer, ends = _split(e.count) if only_in_members(made.body, e.index) else (e.count, [])
        more, rest = sympy.expand(e.order).as_coeff_Add()
        least = more + 1 if rest.is_integer and rest.is_positive else more
        if (
            not ends
            or not (more.is_Integer and (rest == 0 or rest.is_nonnegative))
            or least < len(ends)
        ):
            return made
        layer = moved(made.body, {e.index: (sympy.S.Zero, fewer)})

        def through(layers: Sequence[Any], order: Any) -> Any:
            if order == 0:
                return sympy.Identity(e.shape[0])
            if not layers:
                return OrderSum(layer, (e.index, fewer), order, e.reverse)
            *earlier, end = layers
            used = through(earlier, order - 1), moved(made.body, {e.index: (end, 1)})
            return matadd(through(earlier, order), matmul(*(used if e.reverse else used[::-1])))

        return through(ends, e.order)

    def bind(self, body: Any, index: Symbol, first: Any, last: Any) -> None:
        """Note the limits of an index of a sum, and whether it is subtracted in the body."""
        self.limit(index, first, last)
        self.turned -= {index}
        self.turned |= {index} if is_subtracted(body, index) else set()

    def limit(self, index: Symbol, first: Any, last: Any) -> None:
        """Note the limits of an index, within those that are noted before it."""
        self.limits.pop(index, None)
        self.limits[index] = first, last

    def range_of(
        self, index: Symbol, first: Any, last: Any, ranges: Ranges, around: Any
    ) -> tuple[Any, list[Any]]:
        """Return the full range of an index, and a 0/1 factor for each end that restricts it."""
        low, high = _offset(first, ranges), _offset(last, ranges)
        known = [ranges[end[0]] for end in (low, high) if end is not None]
        count = known[0] if high is not None else sympy.expand(last + 1)
        if any(not same_size(count, other) for other in known):
            raise ShapeError(
                f"the ends of the range of {index} in {short_text(around)} run over {known[0]} and "
                f"over {count} values: both must be indices of one range"
            )
        factors = []
        if high is not None:
            factors.append(self.seen(high[0], index, count, high[1] + 1, around))
        if low is not None:
            factors.append(self.seen(index, low[0], count, 1 - low[1], around))
        elif first == 1:
            later = matadd(sympy.OneMatrix(count, 1), matmul(-1, OneHot(0, count)))
            factors.append(MatrixElement(later, index, 0))
        elif first != 0:
            raise LanguageError(
                f"the range of {index} in {short_text(around)} starts at {first}: it may start at "
                "0, at 1, at another index i, or at i + 1"
            )
        return count, factors

    def seen(self, later: Any, earlier: Any, count: Any, ends: Any, around: Any) -> Any:
        """Return 1 where later ≥ earlier (`ends` = 1) or later > earlier (0), and 0 elsewhere."""
        if ends not in (0, 1):
            raise LanguageError(
                f"a range in {short_text(around)} ends {abs(ends - 1)} away from an index: a sum "
                "up to an index i, to i - 1, from i or from i + 1 is in the language"
            )
        mask = CausalMask(count)
        strict = matadd(mask, matmul(-1, sympy.Identity(count)))
        return MatrixElement(mask if ends else strict, later, earlier)

    # -- the last index ----------------------------------------------------------------------------

    def element(self, e: MatrixElement, ranges: Ranges) -> Any:
        """Return an entry; for the last row or column, of the matrix times a unit column."""
        matrix, *at = e.args
        made = self.walk(matrix, ranges)
        for side, index in enumerate(at):
            if self.is_last(index, matrix.shape[side], e):
                unit = OneHotLast(matrix.shape[side])
                made = matmul(made, unit) if side else matmul(sympy.Transpose(unit), made)
                at[side] = sympy.S.Zero
        return MatrixElement(made, *at)

    def one_hot(self, e: OneHot, ranges: Ranges) -> Any:
        index, size = e.args
        return OneHotLast(size) if self.is_last(index, size, e) else e

    def member(self, e: FamilyMember, ranges: Ranges) -> Any:
        """Return a member; the last one is a sum over all members with a unit column."""
        if e.family.name in self.affine:
            symbols = frozenset().union(*[index.free_symbols for index in e.indices])
            for symbol in sorted(symbols, key=str):
                if symbol not in ranges and symbol not in self.sizes:
                    raise LanguageError(
                        f"nothing says how many values the index {symbol} of {short_text(e)} has"
                    )
            return self.affine_member(e, ranges)
        made, limits = list(e.indices), []
        for place, (index, count) in enumerate(zip(e.indices, e.family.counts, strict=True)):
            if self.is_last(index, count, e):
                made[place] = self.fresh("l")
                limits.append((made[place], count))
        if not limits:
            return e
        units = [MatrixElement(OneHotLast(count), index, 0) for index, count in limits]
        return HeadSum(matmul(*units, e.family[tuple(made)]), *limits)

    def affine_member(self, e: FamilyMember, ranges: Ranges) -> Any:
        """Return a member at affine indices that exist wherever it is evaluated.

        In Σ_{j≤i} a[j] b[i - j] they do. As a sum over all j times a mask it names b[i - j] for
        j > i as well, so there the family has more members, whose values do not matter.
        """
        name, beyond = e.family.name, []

        whole = {index: (sympy.S.Zero, count - 1) for index, count in ranges.items()}

        def exists(index: Any, first: Any, last: Any) -> bool:
            ends = [sympy.expand(x) for x in (index - first, last - index)]
            if None in [least_value(x, whole, ranges) for x in ends]:
                beyond.append(index)
            return None not in [least_value(x, self.limits, ranges) for x in ends]

        made = affine_member(e.family, e.indices, ranges, exists)
        for index in beyond:
            self.widen(e.family, reach_of(index, ranges))
        _, family = self.wider.get(name, (0, e.family))
        return AffineMember(family, *made.args[1:])

    def is_last(self, index: Any, count: Any, owner: Any) -> bool:
        """Return whether an index is the last of a symbolic range."""
        if isinstance(index, sympy.Integer) or not isinstance(index, sympy.Expr):
            return False
        if isinstance(index, Symbol) and index not in self.sizes:
            return False
        left = sympy.expand(count - index)
        if left == 1:
            return True
        if left.is_Integer and left < 1:
            raise ShapeError(
                f"the index {index} of {short_text(owner)} is out of range: it runs from 0 to "
                f"{count - 1}"
            )
        return False

    # -- powers ------------------------------------------------------------------------------------

    def power(self, e: Any, ranges: Ranges) -> Any:
        """Return a power by a size or an index as a product over layers that are all alike."""
        few = e.exp in (0, 1) and self.walk(e.base, ranges) in self.powers  # a sum splits them off
        if e.exp.is_Integer and not few:
            return self.plain(e, ranges)
        inner, exponent = e.base, sympy.expand(e.exp)
        while isinstance(inner, sympy.MatPow) and not is_inverse(inner):
            inner, exponent = inner.base, sympy.expand(inner.exp * exponent)
        base = self.walk(inner, ranges)
        if exponent.is_Integer and base not in self.powers:
            return self.plain(sympy.MatPow(inner, exponent, evaluate=False), ranges)
        subtracted = any(exponent.coeff(index) < 0 for index in exponent.free_symbols & {*ranges})
        if base in self.powers or subtracted or exponent.free_symbols & self.turned:
            least = least_value(exponent, self.limits, ranges)
            if least is None or base.free_symbols & {*ranges}:
                raise LanguageError(_no_power(e))
            add_power(self.powers, base, exponent, ranges, self.names)
            return affine_member(self.powers[base], [exponent], ranges)
        factors = []
        for term in self.in_order(exponent, base):
            times, symbols = term.as_coeff_Mul()
            if not times.is_Integer or abs(times) > HIGHEST:
                raise LanguageError(_no_power(e))
            one = sympy.Inverse(base) if times < 0 else base
            for part in [] if symbols == 1 else sympy.Mul.make_args(symbols):
                name, exponent = part.as_base_exp()
                of_index = name in ranges
                if not isinstance(name, Symbol) or not exponent.is_Integer:
                    raise LanguageError(_no_power(e))
                if of_index and times < 0:
                    raise LanguageError(_no_power(e))
                from_zero = name.is_positive is False or name.is_nonnegative
                if from_zero and not (of_index or name.is_positive):
                    raise LanguageError(
                        f"the exponent {name} in {short_text(e)} may be 0, and a number of factors "
                        f"is at least 1: declare {name} positive"
                    )
                for _ in range(int(exponent)):
                    one = LayerProduct(one, (self.fresh("l"), name))
            factors += [one] * abs(int(times))
            if len({t.could_extract_minus_sign() for t in sympy.Add.make_args(e.exp)}) > 1:
                raise LanguageError(_no_power(e))
        return as_product(factors)

    def in_order(self, exponent: Any, base: Any) -> list[Any]:
        """Return the terms of an exponent, first those that most exponents of the claim share.

        So A^(i + s) and A^(j + s) begin with the same factors. For Aᵀ and A⁻¹ they end with them.
        """
        terms = sympy.Add.make_args(exponent)
        numbers = [term for term in terms if term.is_Integer]
        others = [term for term in terms if not term.is_Integer]
        others.sort(key=lambda term: -self.often[term.as_coeff_Mul()[1]])
        made = [*numbers, *others]
        return made[::-1] if isinstance(base, sympy.Transpose) or is_inverse(base) else made

    def scalar_power(self, e: Any, ranges: Ranges) -> Any:
        """Return a power of a number; by an index it is one of a 1 × 1 matrix."""
        one = matmul(e.base, sympy.Identity(1))
        if not e.exp.free_symbols & ranges.keys() and one not in self.powers:
            return rebuilt(e, [self.walk(e.base, ranges), e.exp])
        if e.exp.is_Integer and e.exp not in (0, 1):
            return rebuilt(e, [self.walk(e.base, ranges), e.exp])
        return MatrixElement(self.power(sympy.MatPow(one, e.exp, evaluate=False), ranges), 0, 0)

    def fresh(self, name: str) -> Symbol:
        """Return an index whose name does not occur."""
        name = fresh_name(name, self.names)
        self.names.add(name)
        return Symbol(name, integer=True)


def _larger(one: Any, other: Any) -> Any:
    """Return the larger of two sizes, or one that is as large as both."""
    if never_negative(one - other):
        return one
    return other if never_negative(other - one) else sympy.expand(one + other)


def _split(count: Any) -> tuple[Any, list[Any]]:
    """Return a count L + k as L and the last k indices, from L on; another count as it is."""
    more, rest = sympy.expand(count).as_coeff_Add()
    if not isinstance(rest, Symbol) or not 0 < more <= HIGHEST:
        return count, []
    return rest, [rest + k for k in range(int(more))]


def _from_later(
    body: Any, index: Symbol, first: Any, last: Any, ranges: Ranges
) -> tuple[Any, Any, Any]:
    """Return the ends and the body of a sum: Σ_{l<n-i} f(l) as Σ_{l=i}^{n-1} f(l - i)."""
    last = sympy.expand(last)
    for other in sorted(last.free_symbols & ranges.keys(), key=str):
        rest = sympy.expand(last + other)
        if not rest.free_symbols & ranges.keys() and first == 0:
            return other, rest, summed_up(substituted(body, {index: index - other}))
    return first, last, body


def _offset(end: Any, ranges: Ranges) -> tuple[Symbol, Any] | None:
    """Return (index, number) for an end of a range that is an index plus a number, else None."""
    for index in sorted(end.free_symbols & ranges.keys(), key=str):
        rest = sympy.expand(end - index)
        if rest.is_Integer:
            return index, rest
        raise LanguageError(
            f"a range ends at {end}: an index i, i - 1 or i + 1 is in the language there"
        )
    return None


def _no_power(e: Any) -> str:
    return (
        f"the power {short_text(e.exp)} of a matrix is not in the language, in {short_text(e)}: "
        "a sum of products of symbols for sizes and of indices, and a number, is"
    )


_SPECIAL: dict[type, Callable[[_Elaboration, Any, Ranges], Any]] = {
    sympy.Sum: _Elaboration.index_sum,
    HeadSum: _Elaboration.head_sum,
    LayerProduct: _Elaboration.layers,
    OrderSum: _Elaboration.orders,
    MatrixElement: _Elaboration.element,
    OneHot: _Elaboration.one_hot,
    FamilyMember: _Elaboration.member,
    sympy.MatPow: _Elaboration.power,
    sympy.Pow: _Elaboration.scalar_power,
}
