"""Refutation of a claim by exact numbers at which its hypotheses hold and its sides differ."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import sympy

from otimes.algebra.budget import Exhausted
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.counterexample import SEED, search
from otimes.algebra.decide.decision import Decision
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import exact_value
from otimes.algebra.language.functions import is_partial
from otimes.algebra.language.inverse_members import is_inverse
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.signature import Signature

_REFUTING: ContextVar[bool] = ContextVar("refuting", default=True)
AT_DEPTH = 3  # trials at each number of layers
SEARCHES = 8  # rounds of trials under hypotheses, as few draws satisfy them


@contextmanager
def without_trials() -> Iterator[None]:
    """Only look for proofs: nothing is refuted."""
    token = _REFUTING.set(False)
    try:
        yield
    finally:
        _REFUTING.reset(token)


def refuting() -> bool:
    """Return whether claims are refuted, and not only proved."""
    return _REFUTING.get()


def tried(
    claim: Claim,
    signature: Signature,
    wires: int,
    draw: Callable[..., Any] | None,
    attempts: int | None,
    seed: int,
) -> Decision | None:
    """Return the refutation of a claim by trials, or None. Raises OtimesError where none can be."""
    trial = None
    if _REFUTING.get():
        trial = search(claim.lhs, claim.rhs, signature, wires, draw, attempts, seed)
    if trial is None or not claim.allows(trial.assignment):
        return None
    return Decision("refuted", "the sides differ at exact numbers", claim, trial)


def refuted_or_undecided(
    claim: Claim, wires: int, otherwise: str, attempts: int | None = None
) -> Decision:
    """Return the refutation of a claim, or an undecided decision with the reason `otherwise`."""
    draw = claim.draw if claim.given or claim.signature.partial else None
    try:
        for number in range(SEARCHES if claim.given else 1):
            found = tried(claim, claim.signature, wires, draw, attempts, SEED + number)
            if found is not None:
                return found
    except OtimesError as no_value:
        reason = f"{otherwise}; no exact trial is possible: {no_value}"
        return Decision("undecided", reason, claim)
    note = note_on_models(claim) if claim.inequalities and _REFUTING.get() else ""
    return Decision("undecided", otherwise + note, claim)


def refuted_at_depth(claim: Claim, deepest: int) -> Decision | None:
    """Return a counterexample with more layers than other sizes, or None if none was found.

    Random sizes are small to limit the work, but a claim may fail only from some depth on.
    """
    draw = claim.draw if claim.given else None
    for layers in range(3, deepest + 1):
        for depth in claim.depths:
            # a fixed index asks for a count that is larger than it
            fixed = {**claim.signature.fixed, depth: layers - 1}
            signature = replace(claim.signature, fixed=fixed)
            with suppress(OtimesError):
                found = tried(claim, signature, 0, draw, AT_DEPTH, SEED + layers)
                if found is not None:
                    return found
    return None


def note_on_models(claim: Claim) -> str:
    """Return a note if no numbers were found at which the claim says something, else "".

    Hypotheses that nothing satisfies prove every claim, and so does a side that is never defined.
    """
    draw = random.Random(SEED)
    for largest in (1, 2, 2, 3, 3, 2, 3):
        try:
            numbers = claim.draw(claim.signature, draw, largest, 3, claim.signature.roots)
            if numbers is not None:
                exact_value(claim.lhs, numbers)
                exact_value(claim.rhs, numbers)
                return ""
        except OtimesError:  # an inverse that does not exist, an irrational constant
            continue
        except Exhausted:
            break
    given = claim.given or claim.inequalities
    which = "that satisfy the hypotheses and give" if given else "that give"
    said = f"; no numbers were found {which} both sides an exact value"
    return f"{said}: it may be that there are none"


def may_be_undefined(claim: Claim) -> bool:
    """Return whether a side has an inverse, a masked softmax, a norm or a function such as log."""
    parts = (part for side in claim.sides for part in sympy.preorder_traversal(side))
    return any(
        is_inverse(part)
        or (isinstance(part, RowSoftmax) and part.mask is not None)
        or (isinstance(part, RMSNorm | LayerNorm) and part.eps == 0)
        or (isinstance(part, Activation) and is_partial(part.name))
        for part in parts
    )
