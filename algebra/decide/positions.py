"""Claims about one position of a recurrence: what S[i] is, given S[l + 1] = S[l] + B[l] for l < n.

A claim with a free index i is one for each i < n. It is proved by induction over n. Of n + 1
positions, i is one of the first n, where the claim about n positions is used; or it is the last
one, where the claim is about S[n]. That is a claim about any number of members, and is proved as a
lemma. So this needs what a claim says at i to be the same for n positions and for more, as a sum
over j < i is (`_is_causal`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import sympy
from sympy import Identity, Symbol, ZeroMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Decision, PositionProof, Proof
from otimes.algebra.decide.lemmas import as_it_is, presupposed_in
from otimes.algebra.errors import OtimesError, RuleError, Undecided
from otimes.algebra.language.affine import AffineMember, affine_member, moved
from otimes.algebra.language.binders import (
    bindings,
    free_symbols,
    fresh_name,
    names_in,
    substituted,
)
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, FamilyMember, HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask
from otimes.algebra.language.power_families import first_powers
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.sizes import same_size
from otimes.algebra.language.trees import parts_of, rebuilt
from otimes.algebra.language.unicode import short_text
from otimes.algebra.reading.read import read

Decide = Callable[[Claim], Decision]
Pair = tuple[Any, Any]


class Position(NamedTuple):
    """A free index of members at affine indices, and n where it has n values, or n + 1."""

    index: Symbol
    depth: Symbol
    more: bool


def is_about_positions(claim: Claim) -> bool:
    """Return whether a claim has members at affine indices that a recurrence may speak of."""
    if not claim.is_affine or not claim.equations or claim.depths:
        return False
    return _position(claim) is not None or bool(_wanted(claim, ()))


def at_a_position(claim: Claim, decided: Decide) -> Decision | None:
    """Return the proof of a claim about one position, by induction over their number, or None."""
    claim = _with_own_index(claim)
    found = _position(claim)
    if found is None or not _is_over(claim, found.depth):
        return None
    first = _first(claim, found) if found.more else claim
    if first is None or not all(_is_causal(side, found, frozenset()) for side in first.sides):
        return None
    for shift in (0,) if found.more else (0, 1):
        proof = _proof(claim, first, found, shift, decided)
        if proof is not None:
            n = found.depth
            reason = (
                f"by induction over {n}: at the last of {n} + 1 positions it is a lemma about any "
                f"number of them, and at the others it is what holds for {n}"
            )
            made = Proof("at a position", position=proof)
            return Decision("proved", reason, claim, proof=made, conditional=True)
    return None


def _with_own_index(claim: Claim) -> Claim:
    """Return a claim whose index no hypothesis has: there it is for all values, and may be i."""
    found = _position(claim)
    lhs, rhs, given = claim.asked
    if found is None:
        return claim
    index = claim.origin.get(found.index, found.index)
    pairs = [each.args if isinstance(each, sympy.Eq) else each for each in given]
    stated = [sympy.sympify(e) for pair in pairs if isinstance(pair, tuple) for e in pair]
    if not any(index in free_symbols(side) for side in stated):
        return claim
    taken = names_in(lhs, rhs, *stated)
    own = Symbol(fresh_name(index.name, taken), **index.assumptions0)
    return Claim(substituted(lhs, {index: own}), substituted(rhs, {index: own}), given)


def _proof(
    claim: Claim, first: Claim, found: Position, shift: int, decided: Decide
) -> PositionProof | None:
    """Return a proof with the lemma about S[n], for S[i] (`shift` 0), or for S[i + 1] (1)."""
    index = claim.origin.get(found.index, found.index)
    if shift and any(_has_powers(side, found.index) for side in claim.sides):
        return None
    try:
        at_end = _at(claim, index, found.depth - shift)
        if at_end is not None:
            at_end.is_last = True
        end = _proved(at_end, decided)
        if end is None or presupposed_in(at_end) is not None:
            return None
        start = None if shift else _proved(_at(claim, index, sympy.S.Zero), decided)
    except OtimesError:
        return None
    if not shift and (start is None or start.proof is None or start.proof.mode != "normal forms"):
        return None
    return PositionProof(found.index, found.depth, shift, end, start, first if found.more else None)


def _at(claim: Claim, index: Any, value: Any) -> Claim | None:
    """Return a claim at a value of its index, None where that changes its hypotheses.

    At 0 these may be what makes its members affine; then they are those of the claim.
    """
    sides = [put(side, index, value) for side in claim.asked[:2]]
    made = Claim(sides[0], sides[1], claim.asked[2])
    if made.equations == claim.equations and made.facts == claim.facts:
        return made
    affine = {m.family for e in _sides(claim) for m in parts_of(e, AffineMember)}
    members = {m for e in sides for m in parts_of(e, FamilyMember) if m.family in affine}
    if value != 0 or any(free_symbols(i) for m in members for i in m.indices):
        return None
    first = first_powers(claim.equations)
    sides = [put(side, index, value, first) for side in claim.asked[:2]]
    known = {m: affine_member(m.family, m.indices, {}) for m in members}
    return claim.premise(*[e.xreplace(known) for e in sides])


def _proved(claim: Claim | None, decided: Decide) -> Decision | None:
    found = None if claim is None else decided(claim)
    return found if found is not None and found.status == "proved" else None


def put(e: Any, index: Symbol, value: Any, first: Mapping[Any, Any] = MappingProxyType({})) -> Any:
    """Return an expression with a value for an index; sums and products without terms vanish.

    `first` has what stands for A⁰, by A.
    """
    if index not in free_symbols(e):
        return e
    ends = [substituted(count, {index: value}) for _, count in bindings(e)]
    if any(sympy.expand(end) == 0 for end in ends):
        if isinstance(e, LayerProduct):
            return Identity(e.shape[0])
        return ZeroMatrix(*e.shape) if e.is_Matrix else sympy.S.Zero
    if any(bound == index for bound, _ in bindings(e)):
        raise RuleError(f"{index} is free and bound in {short_text(e)}")
    if isinstance(e, sympy.MatPow | sympy.Pow):
        exponent = sympy.expand(e.exp.xreplace({index: value}))
        if exponent == 0:
            base = e.base if e.is_Matrix else matmul(e.base, Identity(1))
            one = first.get(base, Identity(base.shape[0]))
            return (
                one if e.is_Matrix else MatrixElement(one, 0, 0) if base in first else sympy.S.One
            )
        if not e.is_Matrix:  # of an index, a power is read as one of a 1 × 1 matrix
            power = sympy.MatPow(matmul(e.base, Identity(1)), exponent, evaluate=False)
            return MatrixElement(power, 0, 0)
        return rebuilt(e, [put(e.base, index, value, first), exponent])
    if isinstance(e, FamilyMember):
        return e.family[tuple(sympy.expand(i.xreplace({index: value})) for i in e.indices)]
    if isinstance(e, sympy.Tuple) or not e.args:
        return e.xreplace({index: value})
    return rebuilt(e, [put(part, index, value, first) for part in e.args])


def _position(claim: Claim) -> Position | None:
    """Return the position that a claim is about, or None if there is none, or several."""
    members = {m for side in claim.sides for m in parts_of(side, AffineMember)}
    free = list(inspect(*claim.sides).indices.values())
    found = [(i, count) for i, count in free if any(i in m.variables for m in members)]
    if len(found) != 1:
        return None
    ((index, count),) = found
    more, depth = sympy.expand(count).as_coeff_Add()
    if not isinstance(depth, Symbol) or more not in (0, 1):
        return None
    others = [other for i, other in free if i != index]
    named = any(depth in free_symbols(sympy.sympify(other)) for other in others)
    return None if named else Position(index, depth, more == 1)


def _is_over(claim: Claim, depth: Symbol) -> bool:
    """Return whether an induction over a size may be about a claim with its hypotheses."""
    affine = {m.family.name for e in _sides(claim) for m in parts_of(e, AffineMember)}
    for name, tensor in claim.signature.tensors.items():
        counts = tensor.counts if isinstance(tensor, Family) and name not in affine else ()
        if any(depth in free_symbols(size) for size in tensor.shape):
            return False
        if any(depth in free_symbols(count) and count != depth for count in counts):
            return False
    if claim.inequalities or claim.signature.partial:
        return False
    return not any(_names(side, depth) for pair in claim.equations for side in pair)


def _sides(claim: Claim) -> list[Any]:
    return [*claim.sides, *[side for pair in claim.given for side in pair]]


def _names(e: Any, depth: Symbol) -> bool:
    """Return whether an expression says anything of a size, other than as a number of members."""
    if isinstance(e, AffineMember):
        return any(depth in free_symbols(constant) for constant, _ in e.forms)
    if isinstance(e, FamilyMember):
        return False
    return bool(e == depth) or any(_names(part, depth) for part in e.args)


def _first(claim: Claim, found: Position) -> Claim | None:
    """Return the claim for one position less."""
    fewer = {found.index: (sympy.S.Zero, found.depth)}
    try:
        made = Claim(moved(claim.lhs, fewer), moved(claim.rhs, fewer), claim.hypotheses)
    except OtimesError:
        return None
    free = inspect(*made.sides).indices.values()
    counts = [count for i, count in free if i == found.index]
    return made if counts == [found.depth] and made.equations == claim.equations else None


# -- what is the same for more positions -----------------------------------------------------------

PLAIN = (
    sympy.MatAdd,
    sympy.Add,
    sympy.MatMul,
    sympy.Mul,
    sympy.Transpose,
    sympy.Trace,
    sympy.HadamardProduct,
    sympy.KroneckerProduct,
    Activation,
)
LEAVES = (sympy.MatrixSymbol, sympy.Identity, sympy.ZeroMatrix, sympy.OneMatrix, sympy.Number)


def _is_causal(e: Any, found: Position, earlier: frozenset[Any]) -> bool:
    """Return whether an expression at a position is the same however many follow it.

    `earlier` are the indices of sums and products over the positions before it, or up to it.
    """
    if isinstance(e, AffineMember):
        constants = [constant for constant, _ in e.forms]
        named = any(found.depth in free_symbols(size) for size in (*constants, *e.shape))
        counts = zip(e.variables, e.counts, strict=True)
        known = {found.index} | earlier
        fixed = all(v in known or found.depth not in free_symbols(c) for v, c in counts)
        return fixed and not named
    if isinstance(e, FamilyMember):
        counts = zip(e.indices, e.family.counts, strict=True)
        at = all(i in earlier or found.depth not in free_symbols(c) for i, c in counts)
        return at and found.index not in e.indices
    if isinstance(e, HeadSum | sympy.Sum):
        return _is_causal_sum(e, found, earlier)
    if isinstance(e, LayerProduct):
        if e.count != found.index:
            return found.depth not in free_symbols(e) and found.index not in free_symbols(e)
        return found.index not in free_symbols(e.body) and _is_causal(
            e.body, found, earlier | {e.index}
        )
    if isinstance(e, LEAVES) or (isinstance(e, Symbol) and e not in earlier):
        return not free_symbols(e) & {found.index, found.depth}
    if isinstance(e, MatrixElement) and all(i.is_Integer for i in e.args[1:]):
        return _is_causal(e.args[0], found, earlier)
    if isinstance(e, PLAIN):
        parts = e.args[1:] if isinstance(e, Activation) else e.args
        return all(_is_causal(part, found, earlier) for part in parts)
    return not free_symbols(e) & {found.index, found.depth, *earlier}


def _is_causal_sum(e: Any, found: Position, earlier: frozenset[Any]) -> bool:
    """Return whether a sum over positions has a factor that leaves out those that follow."""
    if len(e.args) != 2:
        return False
    ((index, count),) = bindings(e)
    body = e.args[0]
    if found.depth not in free_symbols(sympy.sympify(count)):
        return _is_causal(body, found, earlier)
    if not same_size(count, found.depth) or not isinstance(body, sympy.MatMul | sympy.Mul):
        return False
    rest = [part for part in body.args if not _is_mask(part, found, index)]
    if len(rest) == len(body.args):
        return False
    return all(_is_causal(part, found, earlier | {index}) for part in rest)


def _is_mask(e: Any, found: Position, index: Any) -> bool:
    """Return whether a factor is an entry (i, j) of the causal mask, or of it less I."""
    if not isinstance(e, MatrixElement) or e.args[1:] != (found.index, index):
        return False
    mask = CausalMask(found.depth)
    return e.args[0] in (mask, matadd(mask, matmul(-1, Identity(found.depth))))


def _has_powers(e: Any, index: Symbol) -> bool:
    return any(part.count == index for part in parts_of(e, LayerProduct))


# -- closed forms ----------------------------------------------------------------------------------


def with_closed_forms(claim: Claim, decided: Decide) -> Decision | None:
    """Return a proof from what the recurrences among the hypotheses add up to, or None.

    S[l + 1] = S[l] + B[l] gives S[i] = S[0] + Σ_{j<i} B[j], and S[l + 1] = W S[l] gives
    S[i] = Wⁱ S[0]. Each is a lemma; at S[n] it is that about S[n].
    """
    lemmas = []
    for lhs, rhs in _wanted(claim, claim.within):
        with suppress(OtimesError):
            made = Claim(lhs, rhs, claim.asked[2])
            made.within = claim.within | {claim.sides}
            if made.equations == claim.equations and made.sides not in made.within:
                lemmas.append(decided(made))
    cited = [as_it_is(one) for one in lemmas if one.status == "proved"]
    if not cited:
        return None
    found = decided(claim.premise(*claim.sides, cited))
    return found if found.status == "proved" else None


def _wanted(claim: Claim, within: Collection[Any]) -> list[Pair]:
    """Return the closed forms of members that a claim has, unless it is such a claim itself."""
    places = {
        (m.family, constant, factors)
        for side in claim.sides
        for m in parts_of(side, AffineMember)
        for constant, factors in m.forms
    }
    ends = sorted({end for _, end, factors in places if not factors and end.free_symbols}, key=str)
    every = [] if within else [one for pair in claim.asked[2] for one in _closed(pair, claim, ends)]
    return [(lhs, rhs) for lhs, rhs, *place in every if tuple(place) in places]


def _closed(
    pair: Any, claim: Claim, ends: Sequence[Any]
) -> Iterator[tuple[Any, Any, Family, Any, Any]]:
    """Yield the closed forms of a recurrence, each with its family and the form of the index.

    The index is free, or one of `ends`, such as n.
    """
    if not isinstance(pair, tuple | list | sympy.Eq):
        return
    lhs, rhs = pair.args if isinstance(pair, sympy.Eq) else pair
    for new, old in ((lhs, rhs), (rhs, lhs)):
        if not isinstance(new, FamilyMember) or len(new.indices) != 1:
            continue
        (index,) = new.indices
        more, layer = sympy.expand(index).as_coeff_Add()
        if more != 1 or not isinstance(layer, Symbol):
            continue
        family, names = new.family, names_in(lhs, rhs, *claim.sides)
        i, j = (Symbol(fresh_name(name, names), integer=True) for name in ("i", "j"))
        forms = [(i, (sympy.S.Zero, (1,))), (i + 1, (sympy.S.One, (1,)))]
        for end, form in [*forms, *[(end, (end, ())) for end in ends]]:
            made = _added(old, family, layer, j, end) or _multiplied(old, family, layer, end)
            if made is not None:
                yield family[end], made, family, *form


def _added(e: Any, family: Family, layer: Symbol, j: Symbol, end: Any) -> Any:
    """Return S[0] + Σ_{j<end} B[j] for S[l] + B[l], or None for another expression."""
    terms = e.args if isinstance(e, sympy.MatAdd) else (e,)
    others = [term for term in terms if term != family[layer]]
    if len(others) != len(terms) - 1 or any(_has(term, family) for term in others):
        return None
    if not others:
        return family[0]
    written = matadd(*others) if len(others) > 1 else others[0]
    return matadd(family[0], HeadSum(substituted(written, {layer: j}), (j, end)))


def _multiplied(e: Any, family: Family, layer: Symbol, end: Any) -> Any:
    """Return Wⁱ S[0] Vⁱ for W S[l] V, or None for another expression."""
    if not isinstance(e, sympy.MatMul) or e.args.count(family[layer]) != 1:
        return None
    at = e.args.index(family[layer])
    sides = e.args[:at], e.args[at + 1 :]
    if any(layer in free_symbols(part) or _has(part, family) for side in sides for part in side):
        return None
    if not all(part.is_Matrix for side in sides for part in side):
        return None

    def power(side: Any) -> list[Any]:
        base = matmul(*side) if len(side) > 1 else side[0] if side else None
        return [] if base is None else [sympy.MatPow(base, end, evaluate=False)]

    return matmul(*power(sides[0]), family[0], *power(sides[1]))


def _has(e: Any, family: Family) -> bool:
    return any(member.family == family for member in parts_of(e, FamilyMember))


def legs_of(claim: Claim, sizes: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the reading of a claim, None if it has none, and the legs of sizes in it."""
    try:
        reading, _ = read(claim.signature, claim.sides)
    except Undecided:
        return None, [None] * len(sizes)
    return reading, [reading.dimensions.legs(size) for size in sizes]
