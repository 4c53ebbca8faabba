"""Claims at a free index, as a claim for each of its values: no layers, some of them, all of them.

A claim with a free index i is one for every value of i at which its parts exist. Where i counts
layers, as in Π_{l<i} F[l] for members F[0], …, F[L - 1], its values are 0, …, L. They are

    i = 0                   nothing is multiplied or added
    i and L = i + r         for sizes i and r, where the ranges are cut at i
    L = i                   all layers

and each of these is a claim about sizes, decided like any other. Members from the i-th on need not
be told apart where L is only their number: what holds for i = L and any members holds for the first
i of them. An index s that is only added to others, as in R[i + s] and R[j + s] for R[0], …, R[n-1],
is 0, or a size with n = s + r. A case may have cases of another index.

A size L is one of them too where L - 1 layers, or an order L - 1, is named: L = 1, or L = r + 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import sympy
from sympy import Symbol

from otimes.algebra.decide.case_splits import MOST_CASES, At, Over, Split, leaves, stated
from otimes.algebra.decide.decision import Decision
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.affine import never_negative
from otimes.algebra.language.binders import (
    bindings,
    free_symbols,
    fresh_name,
    names_in,
    substituted,
)
from otimes.algebra.language.index_ranges import SIZED, SUMS, not_negative
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, FamilyMember, HeadSum, matadd
from otimes.algebra.language.trees import parts_of, rebuilt

FEW = 4  # terms that are written out


class Case(NamedTuple):
    """A claim at some values of a free index; `at` says at which.

    `values` has them by the symbols of the whole claim, less what an index is at least; `known` has
    them as they are. A claim is not refuted where it is `beyond` what it presupposes.
    """

    at: str
    lhs: Any
    rhs: Any
    given: tuple[Any, ...]
    values: Mapping[Symbol, Any]
    over: Over
    known: Mapping[Symbol, Any]
    beyond: bool = False


class Range(NamedTuple):
    """A free index with its least value, and its largest: a size and a number, or None.

    It is `added` if it is only added to the indices of members. `most` is its largest value where
    that is a number.
    """

    index: Symbol
    least: int
    size: Symbol | None
    more: int
    added: bool = False
    most: int | None = None


def in_cases(
    lhs: Any, rhs: Any, given: Sequence[Any], decided: Callable[..., Decision]
) -> Decision | None:
    """Return the decision on a claim from those on the cases of a free index, or None.

    The claim is proved if all cases of it are, and refuted if one of them is.
    """
    for cases in case_lists(lhs, rhs, given):
        found: list[Decision] = []
        for one in reversed(cases):  # few layers take the least work
            answer: Decision | None = None
            with suppress(OtimesError):
                answer = decided(one.lhs, one.rhs, one.given)
            if answer is not None and answer.status == "refuted" and not one.beyond:
                reason = f"at {one.at} {answer.reason}"
                values = (*answer.values, one.values)
                return replace(answer, reason=reason, values=values)
            if answer is not None and answer.status == "proved":
                found.insert(0, answer)
            elif not one.beyond:
                break
        if len(found) == len(cases):
            pairs = zip(cases, found, strict=True)
            reason = "; ".join(f"at {case.at} {one.reason}" for case, one in pairs)
            every = tuple(each for one in found for each in one.cases or (one,))
            if len(cases) == 1:
                inner = found[0].split
                if inner is not None:
                    said = f"{stated(lhs, rhs, given)}; at {cases[0].at}: {inner.claim}"
                    inner = inner._replace(claim=said)
                return replace(found[0], reason=reason, split=inner)
            if leaves(found) > MOST_CASES:
                continue
            parts = [At(case.known, one) for case, one in zip(cases, found, strict=True)]
            split = Split(cases[0].over, stated(lhs, rhs, given), tuple(parts))
            return replace(found[0], reason=reason, cases=every, split=split)
    return None


def case_lists(lhs: Any, rhs: Any, given: Sequence[Any]) -> Iterator[list[Case]]:
    """Yield lists of claims, each list all cases of one free index; the first one is the main."""
    if not all(isinstance(e, sympy.Basic) for e in (lhs, rhs)):
        return
    if not isinstance(given, list | tuple):  # it is refused
        return
    if any(_is_index(symbol) for e in (lhs, rhs) for symbol in free_symbols(e)):
        for known in _ranges((lhs, rhs)):
            yield from _cases_of(known, lhs, rhs, given)
    for size in sorted(_lessened((lhs, rhs)) - _compared(given), key=str):
        yield _cases_of_size(size, lhs, rhs, given)


def _cases_of_size(size: Symbol, lhs: Any, rhs: Any, given: Sequence[Any]) -> list[Case]:
    """Return the cases n = 1 and n = r + 1 of a size of which n - 1 is a number of layers, say.

    A statement about n - 1 layers presupposes that there is one, but most hold for n = 1 as well.
    """
    pairs = [_pair(each) for each in given]
    taken = names_in(lhs, rhs, *[side for pair in pairs if pair for side in pair])
    rest = Symbol(fresh_name("r", taken), integer=True, positive=True)

    def case(value: Any, beyond: bool = False) -> Case:
        at = {size: value}
        every = [
            tuple(at_values(side, at) for side in pair) if pair else each
            for each, pair in zip(given, pairs, strict=True)
        ]
        sides = at_values(lhs, at), at_values(rhs, at)
        text, over = f"{size} = {value}", Over(size, 1, None)
        return Case(text, *sides, tuple(every), {rest: rest, **at}, over, at, beyond)

    return [case(rest + 1), case(sympy.S.One, beyond=True)]


def _compared(given: Iterable[Any]) -> set[Symbol]:
    """Return the symbols in hypotheses that are no equations."""
    return {s for each in given if _pair(each) is None for s in sympy.sympify(each).free_symbols}


def _lessened(sides: Iterable[Any]) -> set[Symbol]:
    """Return the sizes n of which n - 1 is an order, an exponent or a number of terms."""
    found: dict[Symbol, set[Any]] = {}
    for side in sides:
        for part in sympy.preorder_traversal(side):
            ends = [part.exp] if isinstance(part, sympy.MatPow | sympy.Pow) else []
            if isinstance(part, SUMS):
                ends = [end for limit in part.args[1:] for end in _ends(limit)]
                ends = [end + 1 for end in ends] if isinstance(part, sympy.Sum) else ends
            for end in ends:
                more, size = sympy.expand(end).as_coeff_Add()
                if isinstance(size, Symbol) and size.is_positive and more < 0:
                    found.setdefault(size, set()).add(more)
    return {size for size, less in found.items() if less == {-1}}


def _cases_of(known: Range, lhs: Any, rhs: Any, given: Sequence[Any]) -> Iterator[list[Case]]:
    """Yield lists of all cases of one free index."""
    pairs = [_pair(each) for each in given]
    index, least, size, more, _, most = known
    if most is not None:
        least = 0
    if least:  # as one that runs from 0
        lhs, rhs = (at_values(side, {index: index + least}) for side in (lhs, rhs))
        more -= least
    taken = names_in(lhs, rhs, *[side for pair in pairs if pair for side in pair])
    own = {index: Symbol(fresh_name(f"{index.name}′", taken), integer=True)}
    said = [
        each if pair is None else tuple(substituted(side, own) for side in pair)
        for each, pair in zip(given, pairs, strict=True)
    ]
    name = Symbol(index.name, integer=True, positive=True)
    rest = Symbol(fresh_name("r", taken), integer=True, positive=True)

    def case(values: Mapping[Symbol, Any], over: Over | None = None) -> Case:
        sizes = {s: v for s, v in values.items() if s != index}
        every = [
            tuple(at_values(side, sizes) for side in each) if isinstance(each, tuple) else each
            for each in said
        ]
        shown = {s: v for s, v in values.items() if s.name != str(v)} or {index: name}
        at = " and ".join(f"{symbol} = {value}" for symbol, value in shown.items())
        kept = {s: s for v in values.values() for s in v.free_symbols - {name, rest}}
        sides = at_values(lhs, values), at_values(rhs, values)
        true = {**values, index: values[index] + least}
        over = over or Over(index, least, None)
        return Case(at, *sides, tuple(every), {**kept, **values}, over, true)

    zero = sympy.S.Zero
    if most is not None:
        few = Over(index, known.least, sympy.Integer(most))
        yield [case({index: sympy.Integer(k)}, few) for k in range(known.least, most + 1)]
        return
    if size is None:
        yield [case({index: name}), case({index: zero})]
        return
    if more > 0:
        return
    upto = Over(index, least, size + more + least)
    if known.added:
        added_to = {index: name, size: name - more - 1 + rest}
        yield [case({index: zero, size: size}, upto), case(added_to, upto)]
        return
    at_zero = [{index: zero, size: rest - more}]
    at_zero += [{index: zero, size: sympy.Integer(-more)}] * (more < 0)
    none = [case(each) for each in at_zero]
    if _only_counts(size, [lhs, rhs, *[side for pair in pairs if pair for side in pair]], given):
        if more == 0:
            yield [case({index: size}), none[0]]
        every = [[case({index: size - 1})]] if more == -1 else []
        every.append([case({index: name, size: name - more}), none[-1]])
        # an exponent n - 2 may be -1
        yield from every[::-1] if not given and _in_exponents(index, (lhs, rhs)) else every
    if _is_shifted((lhs, rhs), given, index, size):
        yield [case(each, Over(size, -more, None)) for each in at_zero]
    every_value = [{index: name, size: name - more + rest}, {index: name, size: name - more}]
    yield [case(each, upto) for each in (*every_value, *at_zero)]


def _pair(each: Any) -> tuple[Any, Any] | None:
    """Return the sides of a hypothesis that is an equation."""
    pair = each.args if isinstance(each, sympy.Eq) else each
    fits = isinstance(pair, tuple | list) and len(pair) == 2
    return (sympy.sympify(pair[0]), sympy.sympify(pair[1])) if fits else None


def _only_counts(size: Symbol, sides: Iterable[Any], given: Sequence[Any]) -> bool:
    """Return whether a size is the number of members of families, and nothing else."""

    def elsewhere(e: Any) -> bool:
        if isinstance(e, Family):
            return any(size in s.free_symbols for s in e.shape)
        return bool(e == size) or any(map(elsewhere, e.args))

    inequalities = [each for each in given if _pair(each) is None]
    return not inequalities and not any(map(elsewhere, sides))


def is_index_in_exponents(*sides: Any) -> bool:
    """Return whether an exponent has a free index in it, such as i in Σ_{j≤i} Aⁱ⁻ʲ B[j]."""
    if not all(isinstance(e, sympy.Basic) for e in sides):
        return False
    free = {s for side in sides for s in free_symbols(side) if _is_index(s)}
    return any(_in_exponents(index, sides) for index in free)


def _in_exponents(index: Symbol, sides: Iterable[Any]) -> bool:
    powers = [power for side in sides for power in parts_of(side, sympy.Pow, sympy.MatPow)]
    return any(len(p.exp.free_symbols) > 1 and index in p.exp.free_symbols for p in powers)


def _is_shifted(sides: Sequence[Any], given: Sequence[Any], index: Symbol, size: Symbol) -> bool:
    """Return whether a claim at i is that at 0 about the members from the i-th on.

    Then i is added to the index of every member, and the hypotheses are about all members alike.
    """
    from_zero = {size: size + index}

    def sized(family: Family) -> bool:
        return not {size, index} & {s for n in family.shape for s in n.free_symbols}

    def shifted(e: Any) -> bool:
        if isinstance(e, FamilyMember):
            moved = [sympy.expand(i.xreplace(from_zero)) for i in e.indices]
            return sized(e.family) and all(i.coeff(index) == 1 for i in moved)
        if isinstance(e, sympy.Tuple):
            return all(index not in added(end.xreplace(from_zero)).free_symbols for end in e)
        return e not in (index, size) and all(map(shifted, e.args))

    def plain(at: Any) -> bool:
        return any(sympy.expand(at - s).is_Integer for s in at.free_symbols - {size})

    def alike(e: Any) -> bool:
        if isinstance(e, FamilyMember):
            return sized(e.family) and all(map(plain, e.indices))
        return e not in (index, size) and all(map(alike, e.args))

    pairs = [_pair(each) for each in given]
    stated = [side for pair in pairs if pair for side in pair]
    return None not in pairs and all(map(shifted, sides)) and all(map(alike, stated))


# -- the values of an index ------------------------------------------------------------------------


def _ranges(sides: Sequence[Any]) -> Iterator[Range]:
    """Yield the free indices that count something in a claim, or are added, with their ranges."""
    sizes = {s for side in sides for e in parts_of(side, *SIZED) for s in free_symbols(e)}
    bound = {i for side in sides for e in sympy.preorder_traversal(side) for i, _ in bindings(e)}
    counting = set().union(*[_counting(side) for side in sides]) - sizes - bound
    least = [v for side in sides for v in not_negative(side, {})]
    if None in least:
        return
    if not counting:
        only_added = _only_added(sides)
        zero = {i: sympy.S.Zero for side in sides for i in free_symbols(side) if _is_index(i)}
        for index in sorted(only_added, key=lambda i: (-only_added[i], str(i))):
            if index in sizes | bound:
                continue
            others = {i: value for i, value in zero.items() if i != index}
            found = _range(index, [v.subs(others) for v in least], {index}, sizes, added=True)
            if found is not None and found.size is not None and found.least == 0:
                yield found
    for index in sorted(counting, key=str):
        if (found := _range(index, least, counting, sizes)) is not None:
            yield found


def _range(
    index: Symbol,
    values: Sequence[Any],
    counting: Collection[Symbol],
    sizes: Any,
    added: bool = False,
) -> Range | None:
    """Return the range of an index, in which these values are 0 or more, or None."""
    least, ends = 0, list[Any]()
    for value in values:
        times = value.coeff(index)
        others = sympy.expand(value - times * index)
        if times == 0 or others.free_symbols & ({*counting} - {index}):
            continue
        more, size = others.as_coeff_Add()
        if times == 1 and size == 0 and more.is_Integer:
            least = max(least, -int(more))
        elif times == -1 and others.free_symbols <= {*sizes}:
            ends.append(others)
        elif not (times == 1 and size in sizes and more >= -1):
            return None
    if not ends:
        return Range(index, least, None, 0, added)
    end = next((e for e in ends if all(never_negative(other - e) for other in ends)), None)
    if end is None:
        return None
    more, size = end.as_coeff_Add()
    if size == 0:
        some = not added and 0 <= more - least < FEW
        return Range(index, least, None, 0, most=int(more)) if some else None
    fits = isinstance(size, Symbol) and more.is_Integer
    return Range(index, least, size, int(more), added) if fits else None


def _only_added(sides: Iterable[Any]) -> Counter[Symbol]:
    """Return the free indices that are only added to others, with the number of members at these.

    An index that is added to more of the members is one by which all of them are moved.
    """
    alone: set[Symbol] = set()
    found: Counter[Symbol] = Counter()

    def collect(e: Any) -> None:
        if isinstance(e, FamilyMember):
            for at in e.indices:
                symbols = {s for s in at.free_symbols if _is_index(s)}
                plain = len(symbols) > 1 and all(at.coeff(s) == 1 for s in symbols)
                (found if plain else alone).update(symbols)
            return
        if _is_index(e):
            alone.add(e)
        for part in e.args:
            collect(part)

    for side in sides:
        collect(side)
    return Counter({index: number for index, number in found.items() if index not in alone})


def _counting(e: Any) -> set[Symbol]:
    """Return the free symbols of an expression that are in the end of a range or an exponent."""
    found: set[Symbol] = set()
    for part in sympy.preorder_traversal(e):
        ends = [end for limit in part.args[1:] if isinstance(part, SUMS) for end in _ends(limit)]
        if isinstance(part, sympy.MatPow | sympy.Pow):
            ends = [part.exp]
        found |= {s for end in ends for s in end.free_symbols if _is_index(s)}
    return found & free_symbols(e)


def _is_index(symbol: Symbol) -> bool:
    """Return whether a symbol stands for 0, 1, 2, … and for nothing less."""
    if not symbol.is_integer or symbol.is_positive:
        return False
    plain = Symbol("i", integer=True), Symbol("i", integer=True, nonnegative=True)
    return symbol.assumptions0 in [each.assumptions0 for each in plain]


def _ends(limit: Any) -> Sequence[Any]:
    return limit[1:] if isinstance(limit, sympy.Tuple) else [limit] if limit.is_integer else []


# -- an expression at a value ----------------------------------------------------------------------


def at_values(e: Any, values: Mapping[Symbol, Any]) -> Any:
    """Return an expression with values put in; sums and products over nothing vanish."""
    return _settled(substituted(e, values))


def _settled(e: Any) -> Any:
    if isinstance(e, FamilyMember):
        return _settled(e.family)[tuple(map(added, e.indices))]
    if isinstance(e, Family):
        counts = [
            tuple(map(added, count)) if isinstance(count, sympy.Tuple) else added(count)
            for count in e.args[1]
        ]
        return Family(e.name, counts, *map(added, e.shape))
    if not e.args or isinstance(e, SIZED):
        return e
    if isinstance(e, SUMS) and (vanished := _over_nothing(e)) is not None:
        return vanished
    if isinstance(e, SUMS) and (terms := _written_out(e)) is not None:
        return terms
    if isinstance(e, sympy.Tuple):
        return sympy.Tuple(*map(added, e))
    if isinstance(e, sympy.MatPow | sympy.Pow):
        exponent = added(e.exp)
        if exponent == 0:
            return sympy.Identity(e.shape[0]) if e.is_Matrix else sympy.S.One
        return rebuilt(e, [_settled(e.base), exponent])
    return rebuilt(e, [_settled(part) for part in e.args])


def added(value: Any) -> Any:
    """Return a number with its terms added up."""
    return sympy.expand(value.doit())


def _written_out(e: Any) -> Any:
    """Return a sum over a few values written out, or None for another one."""
    limit = e.args[1]
    if not isinstance(e, HeadSum) or len(e.args) != 2 or not added(limit[1]).is_Integer:
        return None
    count = int(added(limit[1]))
    terms = [at_values(e.body, {limit[0]: sympy.Integer(k)}) for k in range(count)]
    return None if not 0 < count <= FEW else matadd(*terms) if terms[1:] else terms[0]


def _over_nothing(e: Any) -> Any:
    """Return the value of a sum or product over an empty range, or None for another one."""
    if isinstance(e, OrderSum):
        if added(e.order) == 0:
            return sympy.Identity(e.shape[0])
        empty = added(e.count) == 0 and e.order.is_positive
    else:
        counts = [
            limit[2] - limit[1] + 1 if len(limit) == 3 else limit[1]
            for limit in e.args[1:]
            if isinstance(limit, sympy.Tuple)
        ]
        empty = any(added(count) == 0 for count in counts)
    if not empty:
        return None
    if isinstance(e, LayerProduct):
        return sympy.Identity(e.shape[0])
    return sympy.ZeroMatrix(*e.shape) if e.is_Matrix else sympy.S.Zero
