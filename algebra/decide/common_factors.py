"""Claims with one matrix in front of both sides, as C x[i] = C Wⁱ x[0] for a recurrence of x.

Such a claim follows from x[i] = Wⁱ x[0], which is proved, by induction say, and used as a lemma. So
a factor that only reads the state is no part of the induction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any

import sympy

from otimes.algebra.budget import STEPS, limited, steps_left
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Decision, Proof, ProofInParts
from otimes.algebra.decide.lemmas import as_it_is, presupposed_in
from otimes.algebra.decide.parts import replaced
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.binders import (
    bindings,
    free_symbols,
)
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import HeadSum, as_product
from otimes.algebra.language.trees import rebuilt

SHORT = 0.3  # units for the claim with what is proved of the state put in
Decide = Callable[[Claim], Decision]


def without_common_factors(claim: Claim, decided: Decide) -> Decision | None:
    """Return a proof of a claim from that without the factors that its sides have in common."""
    lhs, rhs, given = claim.asked
    for last in (False, True):
        many = _common(_factors(lhs, last), _factors(rhs, last))
        if not many:
            continue
        with suppress(OtimesError):
            lemma = Claim(_rest(lhs, many, last), _rest(rhs, many, last), given)
            lemma.within = claim.within | {claim.sides}
            if lemma.equations != claim.equations or lemma.sides in lemma.within:
                continue
            found = decided(lemma)
            if found.status != "proved" or presupposed_in(lemma) is not None:
                continue
            made = _from(lemma, found, claim, decided)
            if made is not None:
                reason = f"without the factor in front of both sides, {found.reason}"
                return replace(made, reason=reason, strategy="")
    return None


def _from(lemma: Claim, found: Decision, claim: Claim, decided: Decide) -> Decision | None:
    """Return the proof of a claim whose state is replaced by a lemma, or with the lemma cited."""
    old, new = lemma.sides
    parts = list(sympy.preorder_traversal(claim.lhs))
    bound = ((e, i) for e in sympy.preorder_traversal(new) for i, _ in bindings(e))
    if old in parts and not any(i in free_symbols(e.args[0]) for e, i in bound):
        links = [(old, new)]
        whole = Claim(replaced(claim.lhs, links), claim.rhs, claim.hypotheses)
    elif any(side.has(LayerProduct) for side in claim.sides):
        return None
    else:
        links = []
        whole = claim.premise(*claim.sides, [as_it_is(found)])
    whole.within = lemma.within
    with limited(min(SHORT * STEPS, steps_left())):
        made = decided(whole)
    if made.status != "proved" or _is_over_index(made, claim):
        return None
    if not links:
        return made
    equal = tuple((link, (found,)) for link in links)
    proof = Proof("in parts", parts=ProofInParts(made, equal))
    return Decision("proved", "", claim, proof=proof, conditional=True)


def _is_over_index(made: Decision, claim: Claim) -> bool:
    """Return whether a proof is by induction over what is a free index of the claim."""
    induction = made.proof.induction if made.proof is not None else None
    indices = {index for index, _ in claim.signature.indices.values()}
    return induction is not None and induction.plan.depth in indices


def _factors(e: Any, last: bool) -> list[Any]:
    """Return the first factors that all terms of an expression have in common, or the last ones."""
    if isinstance(e, sympy.MatMul):
        factors = [part for part in e.args if part.is_Matrix]
        return factors[::-1] if last else factors
    if isinstance(e, sympy.MatAdd):
        found, *others = [_factors(term, last) for term in e.args]
        for other in others:
            found = found[: _common(found, other)]
        return found
    if isinstance(e, HeadSum):
        bound = {index for index, _ in bindings(e)}
        return [*takewhile(lambda part: not free_symbols(part) & bound, _factors(e.body, last))]
    return [e]


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return how many of the first factors are the same, where each list has one more."""
    same = [*takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))]
    return max(0, min(len(same), len(one) - 1))


def _rest(e: Any, many: int, last: bool) -> Any:
    """Return an expression without so many of the factors that its terms have in common."""
    if isinstance(e, sympy.MatMul):
        numbers = [part for part in e.args if not part.is_Matrix]
        factors = [part for part in e.args if part.is_Matrix]
        kept = factors[:-many] if last else factors[many:]
        dropped = factors[-many:] if last else factors[:many]
        size = dropped[0].shape[0] if last else dropped[-1].shape[1]
        return as_product([*numbers, *(kept or [sympy.Identity(size)])])
    if isinstance(e, sympy.MatAdd):
        return rebuilt(e, [_rest(term, many, last) for term in e.args])
    if isinstance(e, HeadSum):
        return rebuilt(e, [_rest(e.body, many, last), *e.args[1:]])
    return sympy.Identity(e.shape[0] if last else e.shape[1])
