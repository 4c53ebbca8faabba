"""Strategies for any number of members, positions or layers: induction, and trials with many."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf

from otimes.algebra.decide.common_factors import without_common_factors
from otimes.algebra.decide.counterexample import SEED
from otimes.algebra.decide.decision import Decision
from otimes.algebra.decide.inductive_proof import by_induction
from otimes.algebra.decide.layers_as_matrices import as_matrices
from otimes.algebra.decide.numbered_layers import for_any_number
from otimes.algebra.decide.positions import (
    at_a_position,
    is_about_positions,
    with_closed_forms,
)
from otimes.algebra.decide.question import Question, within
from otimes.algebra.decide.rows_as_members import with_members_for_rows
from otimes.algebra.decide.trials import (
    refuted_at_depth,
    refuted_or_undecided,
    tried,
    without_trials,
)
from otimes.algebra.errors import LanguageError, OtimesError

# The largest share of the budget that is left; a proof about positions has an induction in it.
INDUCTION, AT_POSITIONS, DEPTHS = 0.5, 0.75, 0.5
# Rounds over symbolic depths: units for a proof by induction, most layers of a counterexample.
DEPTH_ROUNDS = ((0.5, 10), (inf, 40))
FIRST = 0.1  # units for each proof that is tried before any trial
AS_MATRICES = 0.5  # units for a proof from laws about products over layers
FEW = 8  # trials before a proof by induction is tried
NUMBERED = 1.0  # units for a proof about any number of layers, of a claim about so many
POSITIONS = 3.0  # units for a proof about one position of a recurrence
READ_OUT = 1.5  # units for what a matrix reads out of members
RECURRENCE = 6.0  # units for an induction over a number of members


def read_out(question: Question) -> Decision | None:
    """Return a proof of a claim about what a matrix reads out of members, from that about them."""
    claim = question.claim
    if not (claim.given and claim.is_affine) or claim.latest is not None or claim.cited:
        return None
    if (
        claim.within
        or claim.is_last
        or not (claim.recurrences or claim.depths or is_about_positions(claim))
    ):
        return None
    way = partial(without_common_factors, claim, question.nested)
    return within(INDUCTION, way, READ_OUT)


def every_number(question: Question) -> Decision | None:
    """Prove a claim about the last of any number of members, as S[n], by induction over n."""
    claim = question.claim
    if question.read is None or not claim.recurrences or claim.latest is not None:
        return None
    with suppress(OtimesError):
        draw = claim.draw if claim.given else None
        refuted = tried(claim, claim.signature, 3, draw, FEW, SEED)
        if refuted is not None:
            return refuted
    for with_sums in (False, True):
        way = partial(by_induction, claim, question.decided, with_sums, over=claim.recurrences)
        found = within(INDUCTION, way, RECURRENCE)
        if found is not None:
            return found
    return None


def one_position(question: Question) -> Decision | None:
    """Decide a claim about one position of a recurrence, as S[i], for all positions."""
    claim = question.claim
    if claim.latest is not None or claim.cited or not is_about_positions(claim):
        return None
    with suppress(OtimesError):
        refuted = tried(claim, claim.signature, 3, claim.draw, FEW, SEED)
        if refuted is not None:
            return refuted
    for way in (at_a_position, with_closed_forms):
        found = within(AT_POSITIONS, partial(way, claim, question.nested), POSITIONS)
        if found is not None:
            return found
    return None


def members_for_rows(question: Question) -> Decision | None:
    """Return a proof of a claim about rows of matrices from that about members, or None."""
    return within(AT_POSITIONS, partial(with_members_for_rows, question.claim, question.nested))


def any_number_of_layers(question: Question) -> Decision | None:
    """Return a proof of a claim about many numbered layers for any number of them, or None."""
    known = question.read is not None and not (question.claim.given or question.claim.is_affine)
    if known or question.axioms[0]:
        return None
    return within(INDUCTION, partial(for_any_number, question.claim, question.nested), NUMBERED)


def from_lemmas(question: Question) -> Decision | None:
    """Return a proof from the lemmas that are given, each an equation like others, or None."""
    claim = question.claim
    if not claim.lemmas:
        return None
    with suppress(LanguageError):
        found = question.decided(claim.premise(*claim.sides, claim.lemmas))
        if found.status == "proved":
            return found
    return as_matrices(claim, question.decided, with_laws=False)


def every_depth(question: Question) -> Decision | None:
    """Decide a claim about any number of layers: by induction, or by trials with many layers."""
    claim = question.claim
    if question.read is not None:
        return None
    if not (claim.depths or claim.orders):  # each number of layers is an index
        return within(INDUCTION, partial(as_matrices, claim, question.nested, False), FIRST)
    if claim.is_affine:  # such a claim has hypotheses that are slow to satisfy
        plain = within(INDUCTION, partial(as_matrices, claim, question.nested, False), FIRST)
        found = plain or within(
            INDUCTION, partial(by_induction, claim, question.nested), RECURRENCE
        )
        if found is not None:
            return found
    if claim.given:  # few numbers satisfy hypotheses: a short proof takes less time than a trial
        with without_trials():
            short: tuple[Callable[[], Decision | None], ...] = (
                partial(as_matrices, claim, question.nested, with_laws=False),
                partial(by_induction, claim, question.nested),
                partial(as_matrices, claim, question.nested),
            )
            for way in short:
                found = within(INDUCTION, way, FIRST)
                if found is not None:
                    return found
    quick = refuted_or_undecided(claim, 0, question.obstacle, FEW)  # most that is false shows here
    if quick.status == "refuted":
        return quick
    plainly = within(
        INDUCTION, partial(as_matrices, claim, question.nested, with_laws=False), AS_MATRICES
    )
    if plainly is not None:
        return plainly
    for units, deepest in DEPTH_ROUNDS:
        ways: tuple[Callable[[], Decision | None], ...] = (
            partial(by_induction, claim, question.nested),
            partial(as_matrices, claim, question.nested),
            partial(by_induction, claim, question.nested, with_laws=True),
        )
        found = None
        for way in ways:
            found = found or within(INDUCTION, way, units)
        found = found or within(DEPTHS, partial(refuted_at_depth, claim, deepest))
        if found is not None:
            return found
    return None
