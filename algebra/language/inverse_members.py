"""Inverses of members of a family, S[l]⁻¹, as members of a family of inverses.

A claim with S[l + 1]⁻¹ for all l < L presupposes that S[1], …, S[L] are invertible, and no more. It
is the claim with T[l + 1] in its place, for any family T with T[l + 1] S[l + 1] = I and
S[l + 1] T[l + 1] = I for all l < L. An inverse at a free index presupposes one at that index alone,
which no hypothesis about all members says: it stays as it is. The inverse of a layer that is made
of members, as (I + F[l])⁻¹, is a member T[l] of a family likewise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from itertools import permutations
from typing import Any

import sympy
from sympy import Symbol
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.affine import AffineMember, never_negative
from otimes.algebra.language.binders import (
    Pair,
    bindings,
    free_symbols,
    fresh_name,
    names_in,
    substituted,
)
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, FamilyMember, HeadSum, matmul
from otimes.algebra.language.trees import parts_of, rebuilt


def without_inverses(sides: Sequence[Any], given: Sequence[Pair]) -> tuple[list[Any], list[Pair]]:
    """Return a claim whose inverses of members under sums and products are members themselves.

    The hypotheses say of which members they are the inverses. A claim with inverses of other
    members of the same family is returned as it is.
    """
    everything = [*sides, *[side for pair in given for side in pair]]
    found = [use for side in sides for use in _inverted(side, {})]
    families = {member.family for member, _ in found}
    families -= {m.family for m, ranges in found if not {*m.variables} <= ranges.keys()}
    families -= {m.family for pair in given for side in pair for m, _ in _inverted(side, {})}
    if not families:
        return list(sides), list(given)
    names = names_in(*everything)
    inverse = {f: _inverse_of(f, names) for f in sorted(families, key=lambda f: f.name)}
    made = [_replaced(side, inverse) for side in sides]
    return made, [*given, *_definitions(found, inverse)]


def without_inverse_layers(
    sides: Sequence[Any], given: Sequence[Pair], sizes: Collection[Symbol]
) -> tuple[list[Any], list[Pair]]:
    """Return a claim whose inverses of layers, as (I + F[l])⁻¹, are members of families.

    The hypotheses say of which layers they are the inverses.
    """
    made, pairs = list(sides), [*given]
    while found := [use for side in made for use in _layers_inverted(side, {}, sizes)]:
        layer, ranges = found[0]
        names = names_in(*made, *[side for pair in pairs for side in pair])
        indices = sorted(free_symbols(layer) & ranges.keys(), key=str)
        family = Family(fresh_name("T", names), [ranges[i] for i in indices], *layer.shape)
        inverse, one = family[tuple(indices)], sympy.Identity(layer.shape[0])
        made = [_with_member(side, layer, family, indices) for side in made]
        pairs = [
            (_with_member(x, layer, family, indices), _with_member(y, layer, family, indices))
            for x, y in pairs
        ]
        pairs += [(matmul(inverse, layer), one), (matmul(layer, inverse), one)]
    return made, pairs


def _layers_inverted(
    e: Any, ranges: dict[Symbol, Any], sizes: Collection[Symbol]
) -> list[tuple[Any, dict[Symbol, Any]]]:
    """Return what is inverted at bound indices alone, with the ranges of these, the inner first."""
    bound = dict(bindings(e))
    masked = isinstance(e, sympy.Sum | HeadSum) and any(
        isinstance(part, MatrixElement) for part in (e.args[0], *e.args[0].args)
    )
    counts = {s for count in bound.values() for s in sympy.sympify(count).free_symbols}
    sized = all(s.is_positive or s in sizes for s in counts - ranges.keys())
    whole = sized and not counts & ranges.keys() and not masked
    all_of_them = whole and not may_be_empty(e, ranges.keys())
    inner = {**ranges, **bound} if all_of_them else {}
    found = [use for a in e.args for use in _layers_inverted(a, inner, sizes)]
    if is_inverse(e) and not found:
        indices = {s for m in parts_of(e.base, FamilyMember, AffineMember) for s in _indices_of(m)}
        free = free_symbols(e.base) & {*indices}
        if free and free <= ranges.keys() and not isinstance(e.base, FamilyMember | AffineMember):
            found.append((e.base, ranges))
    return found


def _indices_of(member: Any) -> set[Any]:
    return {s for index in member.indices for s in index.free_symbols}


def _with_member(e: Any, layer: Any, family: Family, indices: Sequence[Any]) -> Any:
    """Return an expression with members of a family for the inverses of a layer, at any indices."""
    if is_inverse(e) and e.base.shape == layer.shape:
        own = [dict(zip(indices, at, strict=True)) for at in _at(e.base, len(indices))]
        for at in own:
            if substituted(layer, at) == e.base:
                member = family[tuple(at.values())]
                return member if e.exp == -1 else sympy.MatPow(member, -e.exp, evaluate=False)
    if not e.args:
        return e
    new = [_with_member(a, layer, family, indices) for a in e.args]
    return e if all(a is b for a, b in zip(new, e.args, strict=True)) else rebuilt(e, new)


def _at(e: Any, number: int) -> Iterator[tuple[Any, ...]]:
    """Yield the symbols that may be the indices of a layer, in each order."""
    members = parts_of(e, FamilyMember, AffineMember)
    symbols = sorted({s for m in members for s in _indices_of(m)} & free_symbols(e), key=str)
    return permutations(symbols, number)


def with_named_inverses(
    sides: Sequence[Any], given: Sequence[Pair], others: Sequence[Pair] = ()
) -> tuple[list[Any], list[Pair], list[Pair]]:
    """Return a claim and other equations, with a matrix T for each inverse that the sides evaluate.

    That T S = I and S T = I are hypotheses then. Only S that is a matrix symbol has such a name.
    """
    found = sorted({s for side in sides for s in _symbols_inverted(side, {})}, key=str)
    pairs = [*given, *others]
    names = names_in(*sides, *[side for pair in pairs for side in pair])
    known: dict[Any, Any] = {}
    for s in found:
        known[s] = sympy.MatrixSymbol(fresh_name(f"{s.name}⁻¹", names), *s.shape)
        names.add(known[s].name)
    made = [[_put(e, known) for e in pair] for pair in (sides, *pairs)]
    defined = [
        (matmul(*pair), sympy.Identity(s.shape[0]))
        for s, t in known.items()
        for pair in ((t, s), (s, t))
    ]
    stated = [(pair[0], pair[1]) for pair in made[1:]]
    return made[0], [*stated[: len(given)], *defined], stated[len(given) :]


def _symbols_inverted(e: Any, ranges: dict[Symbol, Any]) -> list[Any]:
    """Return the matrix symbols whose inverse an expression evaluates."""
    if is_inverse(e) and isinstance(e.base, sympy.MatrixSymbol):
        return [e.base]
    if may_be_empty(e, ranges.keys()):
        return []
    inner = {**ranges, **dict(bindings(e))}
    return [s for a in e.args for s in _symbols_inverted(a, inner)]


def _put(e: Any, known: dict[Any, Any]) -> Any:
    """Return an expression with matrices for the inverses of symbols."""
    if is_inverse(e) and e.base in known:
        inverse = known[e.base]
        return inverse if e.exp == -1 else sympy.MatPow(inverse, -e.exp, evaluate=False)
    if not e.args:
        return e
    new = [_put(a, known) for a in e.args]
    return e if all(a is b for a, b in zip(new, e.args, strict=True)) else rebuilt(e, new)


def is_inverse(e: Any) -> bool:
    """Return whether an expression is a power of a matrix by a negative integer."""
    return isinstance(e, sympy.MatPow) and bool(e.exp.is_Integer and e.exp < 0)


def _inverse_of(family: Family, names: set[str]) -> Family:
    name = fresh_name(f"{family.name}⁻¹", names)
    names.add(name)
    return Family(name, family.args[1], *family.shape)


def _inverted(e: Any, ranges: dict[Symbol, Any]) -> list[tuple[AffineMember, dict[Symbol, Any]]]:
    """Return the members whose inverse occurs, with the indices that are bound around each."""
    if is_inverse(e) and isinstance(e.base, AffineMember):
        return [(e.base, ranges)]
    # where nothing need be evaluated, nothing is said of all members: the index counts as free
    inner = {} if may_be_empty(e, ranges.keys()) else {**ranges, **dict(bindings(e))}
    return [use for a in e.args for use in _inverted(a, inner)]


def may_be_empty(e: Any, indices: Set[Any]) -> bool:
    """Return whether a product over layers, or a sum over paths, may evaluate no layer.

    There is one layer at least, where their number is not an index or zero.
    """
    if isinstance(e, OrderSum) and e.order != 1:
        return True
    several = isinstance(e, LayerProduct | OrderSum)
    return several and (e.count == 0 or bool(e.count.free_symbols & indices))


def _replaced(e: Any, inverse: dict[Family, Family]) -> Any:
    if is_inverse(e) and isinstance(e.base, AffineMember):
        family = inverse.get(e.base.family)
        if family is not None:
            member = _of(family, e.base)
            return member if e.exp == -1 else sympy.MatPow(member, -e.exp, evaluate=False)
    if not e.args:
        return e
    new = [_replaced(a, inverse) for a in e.args]
    return e if all(a is b for a, b in zip(new, e.args, strict=True)) else rebuilt(e, new)


def _of(family: Family, member: AffineMember) -> AffineMember:
    """Return the member of another family at the same indices."""
    return AffineMember(family, *member.args[1:])


def _definitions(
    found: Sequence[tuple[AffineMember, Any]], inverse: dict[Family, Family]
) -> list[Pair]:
    """Return the hypotheses: for whole ranges, and for single members that are in none of them."""
    pairs: list[Pair] = []
    taken: list[AffineMember] = []
    members = dict.fromkeys(m for m, _ in found if m.family in inverse)
    for member in sorted(members, key=lambda m: -len(m.variables)):
        if any(_covers(other, member) for other in taken):
            continue
        taken.append(member)
        other = _of(inverse[member.family], member)
        one = sympy.Identity(member.shape[0])
        pairs += [(matmul(other, member), one), (matmul(member, other), one)]
    return pairs


def _covers(many: AffineMember, one: AffineMember) -> bool:
    """Return whether a member is certainly one of those of a range."""
    if many.family != one.family or one.variables or len(many.variables) != 1:
        return False
    if len(many.forms) != 1 or many.forms[0][1] != (1,):
        return False
    shift = one.forms[0][0] - many.forms[0][0]
    return never_negative(shift) and never_negative(many.counts[0] - 1 - shift)
