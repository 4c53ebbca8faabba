"""Claims with a division by a sum that is not zero, as o = diag(1/(z₁ + z₂)) (…) of two blocks.

Such a claim follows from both sides times the sum, where the sum divides nothing any more. So the
softmax over two blocks of keys is made of that over each, at any running maximum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.decide.axiom_statements import instance
from otimes.algebra.decide.decision import Decision
from otimes.algebra.decide.function_parts import difference_of, is_applied
from otimes.algebra.decide.lemmas import as_it_is, presupposed_in
from otimes.algebra.decide.question import Question, within
from otimes.algebra.decide.signs import SignsIn
from otimes.algebra.decide.trials import without_trials
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.linear import as_product, matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.sizes import same_size

CANCEL = "product_cancel"
DENOMINATOR = 0.3  # the largest share of the budget that is left for one
MOST = 2  # denominators that are tried


def without_denominators(question: Question, signs: SignsIn) -> Decision | None:
    """Return a proof of a claim from both sides times what one of them is divided by, or None."""
    claim, (instances, premises) = question.claim, question.axioms
    if not claim.lhs.is_Matrix or any(said.axiom == CANCEL for said in instances):
        return None
    for z in islice((z for z in _denominators(claim.sides) if signs.has(z, "nonzero")), MOST):
        if not same_size(z.shape[0], claim.lhs.shape[0]):
            continue
        with without_trials(), suppress(OtimesError):
            found = within(DENOMINATOR, partial(_premise, question, z))
            if found is not None and found.status == "proved":
                said = instance(CANCEL, 0, {"S": claim.lhs, "T": claim.rhs, "w": z})
                known = {**premises, said.premises[0]: found}
                return question.decided(claim, ([*instances, said], known))
    return None


def _premise(question: Question, z: Any) -> Decision | None:
    """Return the decision on both sides times z, from that without the division where it can be."""
    claim = question.claim
    within_these = claim.within | {claim.sides}
    cited: list[Any] = []
    if not claim.cited:
        plain = claim.premise(*[_times(z, side) for side in claim.sides])
        plain.within, plain.whole = within_these, claim.stated
        if plain.sides not in within_these and presupposed_in(plain) is None:
            found = question.decided(plain)
            cited = [as_it_is(found)] if found.status == "proved" else []
    both = [matmul(DiagMatrix(z), side) for side in claim.sides]
    premise = claim.premise(both[0], both[1], (*claim.cited, *cited))
    premise.within, premise.whole = within_these, claim.stated
    return None if premise.sides in within_these else question.decided(premise)


def _times(z: Any, e: Any) -> Any:
    """Return diag(z) times an expression, which may be divided by z as it stands."""
    if isinstance(e, sympy.MatAdd):
        return matadd(*[_times(z, term) for term in e.args])
    divided = Activation("reciprocal", z)
    if isinstance(e, sympy.MatMul):
        for k, factor in enumerate(e.args):
            if factor.is_Matrix:
                if factor == DiagMatrix(divided) and len(e.args) > k + 1:
                    return as_product([*e.args[:k], *e.args[k + 1 :]])
                break
    return matmul(DiagMatrix(z), e)


def _denominators(sides: tuple[Any, Any]) -> Iterator[Any]:
    """Yield the sums in one column that a side is divided by, also as in sigmoid(x - y)."""
    seen = set[Any]()
    for e in [e for side in sides for e in sorted(side.atoms(Activation), key=str)]:
        z = e.argument if is_applied(e, "reciprocal") else None
        if is_applied(e, "sigmoid") and (parts := difference_of(e.argument)):
            z = matadd(*map(_exponential, parts))
        if isinstance(z, sympy.MatAdd) and z.shape[1] == 1 and z not in seen:
            seen.add(z)
            yield z


def _exponential(e: Any) -> Any:
    return e.argument if is_applied(e, "log") else Activation("exp", e)
