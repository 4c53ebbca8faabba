"""Claims with inverses of members at a free index, such as (F[i] A)⁻¹ = A⁻¹ F[i]⁻¹.

A claim with a free index is one for each of its values, so F[i] is one matrix in it. What holds for
any matrix in its place, also where other members of the family occur, holds for F[i].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import MatrixSymbol

from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Decision, Proof, ProofInParts
from otimes.algebra.decide.parts import replaced
from otimes.algebra.decide.trials import refuted_or_undecided
from otimes.algebra.errors import LanguageError
from otimes.algebra.language.binders import fresh_name, names_in
from otimes.algebra.language.inverse_members import is_inverse
from otimes.algebra.language.linear import FamilyMember
from otimes.algebra.language.trees import parts_of


def with_free_members(claim: Claim, decided: Callable[[Claim], Decision]) -> Decision | None:
    """Return the decision on a claim with inverses of members at a free index, or None."""
    free = {symbol for symbol, _ in claim.signature.indices.values()}
    found = list(dict.fromkeys(e for side in claim.sides for e in _inverted(side, free)))
    if not found or claim.cited:
        return None
    names = names_in(*claim.sides, *[side for pair in claim.given for side in pair])
    known: dict[Any, Any] = {}
    for e in found:
        name = fresh_name(f"{e.family.name}_{'_'.join(map(str, e.indices))}", names)
        names.add(name)
        known[e] = MatrixSymbol(name, *e.shape)
    links = list(known.items())
    lhs, rhs = (replaced(side, links) for side in claim.sides)
    whole = _decided(Claim(lhs, rhs, claim.hypotheses), decided)
    if whole is None or whole.status != "proved":
        reason = "the inverse of a member at a free index is any inverse"
        return refuted_or_undecided(claim, 0, whole.reason if whole else reason)
    any_for = tuple((matrix, e) for e, matrix in known.items())
    proof = Proof("in parts", parts=ProofInParts(whole, any_for=any_for))
    reason = f"for any matrices in the place of members at a free index, {whole.reason}"
    return Decision("proved", reason, claim, proof=proof, conditional=whole.conditional)


def _decided(claim: Claim, decided: Callable[[Claim], Decision]) -> Decision | None:
    try:
        return decided(claim)
    except LanguageError:  # an inverse of another member, at a bound index
        return None


def _inverted(e: Any, free: set[Any]) -> list[Any]:
    """Return the members at free indices within inverses."""
    if not is_inverse(e):
        return [one for part in e.args for one in _inverted(part, free)]
    found = []
    for member in sorted(parts_of(e, FamilyMember), key=str):
        symbols = {symbol for index in member.indices for symbol in index.free_symbols}
        found += [member] * bool(symbols and symbols <= free)
    return found
