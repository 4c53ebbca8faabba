"""Strategies that ask nothing but the two sides: their normal forms, polynomials, and numbers."""

from __future__ import annotations

from functools import partial

from otimes.algebra.decide.decision import Decision
from otimes.algebra.decide.finite_sums import written_out
from otimes.algebra.decide.large_sizes import has_large_sizes, refuted_at_large_sizes
from otimes.algebra.decide.parts import in_parts
from otimes.algebra.decide.question import Question, proved, within
from otimes.algebra.decide.trials import refuted_or_undecided
from otimes.algebra.evaluate.polynomials import equal_as_polynomials
from otimes.algebra.language import coefficients
from otimes.algebra.reading.repeated import TOO_MANY

# The largest share of the budget that is left which one strategy may take.
POLYNOMIALS, LARGE, CUTS, ALIKE = 0.3, 0.5, 0.5, 0.5
ALIKE_UNITS = 1.0
DIFFER = "the sides differ at exact numbers"
WRITTEN_OUT = "with the sums over numbered indices written out, both sides are the same"
FIXED = "at these sizes both sides are the same polynomials"


def one_normal_form(question: Question) -> Decision | None:
    """Return a proof that both sides are the same sum of diagrams, or None."""
    if question.read is None or question.read.rest:
        return None
    count = len(question.read.left.terms)
    terms = "one diagram" if count == 1 else f"{count} diagrams"
    reason = f"both sides have the same normal form, {terms}"
    return proved(question, reason, "normal forms", question.read.reading)


def one_expression(question: Question) -> Decision | None:
    """Return a proof of x = x for an x without a normal form, or None."""
    if question.read is not None or question.clash or question.claim.lhs != question.claim.rhs:
        return None
    return same_expression(question)


def same_expression(question: Question) -> Decision:
    """Return the proof of x = x."""
    return proved(question, "both sides are the same expression", "same trees")


def too_many_layers(question: Question) -> Decision | None:
    """Leave a claim undecided that has more numbered layers than are multiplied, or return None."""
    many = question.read is None and question.obstacle.endswith(TOO_MANY)
    return Decision("undecided", question.obstacle, question.claim) if many else None


def finite_sums(question: Question) -> Decision | None:
    """Return a proof that both sides are equal with all numeric sums written out, or None."""
    if question.read is None or question.claim.given:
        return None
    reading, rest = question.read.reading, question.read.rest
    left = within(POLYNOMIALS, lambda: written_out(rest, reading))
    return None if left is None or left else proved(question, WRITTEN_OUT, "written out", reading)


def same_polynomials(question: Question) -> Decision | None:
    """Prove that at fixed sizes both sides are equal polynomials in all entries."""
    claim = question.claim
    sides = claim.lhs, claim.rhs, claim.signature
    if claim.given or within(POLYNOMIALS, lambda: equal_as_polynomials(*sides)) is not True:
        return None
    reading = question.read.reading if question.read else None
    return proved(question, FIXED, "written out", reading)


def several_cuts(question: Question) -> Decision | None:
    """Decide a claim in which one size is cut in several ways, such as d + 1 as d|1 and as 1|d."""
    if question.read is not None or not question.clash:
        return None
    found = within(
        CUTS, partial(in_parts, question.claim, partial(question.decided, axioms=([], {})))
    )
    return (
        same_expression(question)
        if found is None and question.claim.lhs == question.claim.rhs
        else found
    )


def exact_trials(question: Question) -> Decision:
    """Refute a claim at exact numbers, or leave it undecided."""
    if question.read is None:
        return refuted_or_undecided(question.claim, 0, question.obstacle)
    claim, (reading, left, rest, _) = question.claim, question.read
    if has_large_sizes(claim.signature) and not claim.given:
        found = within(LARGE, partial(refuted_at_large_sizes, claim, reading, left, rest))
        if found is not None:
            return Decision("refuted", DIFFER, claim, found)
    # a coefficient is zero at no more sizes than its degree
    wires = max(len(diagram.sorts) + coefficients.degree(c) for diagram, c in rest.items())
    return refuted_or_undecided(
        claim,
        wires,
        f"the normal forms differ in {len(rest)} diagrams, but no exact trial told the sides "
        "apart: at fixed sizes two different forms can be equal",
    )
