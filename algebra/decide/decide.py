"""The decision procedure: whether an equation holds for all sizes and values of its symbols.

`STRATEGIES` are tried in order until one gives an answer. A proof never relies on numerical
evaluation: both sides have one normal form, directly or with sums over numeric ranges written out;
or their difference is a sum of multiples of hypotheses; or at fixed sizes both sides are equal
polynomials in all entries; or the claim holds by induction over a depth. A refutation gives numbers
at which the hypotheses hold and the sides differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import sympy

from otimes.algebra.budget import LEAST, Budget, Exhausted
from otimes.algebra.decide import by_number, from_equations, from_sides
from otimes.algebra.decide.alike_rows import refuted_by_alike_rows
from otimes.algebra.decide.all_terms import with_last_values
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Axioms, Decision
from otimes.algebra.decide.free_members import with_free_members
from otimes.algebra.decide.index_cases import in_cases, is_index_in_exponents
from otimes.algebra.decide.kept import decisions_kept, once
from otimes.algebra.decide.large_sizes import has_large_sizes
from otimes.algebra.decide.layers_as_matrices import laws_known, premises_kept
from otimes.algebra.decide.lemmas import as_it_is, refuse_other_symbols, why_not
from otimes.algebra.decide.numbered_layers import is_numbered
from otimes.algebra.decide.question import Question, question_of, within
from otimes.algebra.decide.rows_as_members import as_matrices, as_members
from otimes.algebra.decide.trials import refuting
from otimes.algebra.errors import LanguageError, OtimesError
from otimes.algebra.language.inverse_members import with_named_inverses

BUDGET = 4.0  # units of work
CASES, MOST_FOR_CASES = 0.3, 1.2  # of the budget for the cases of a free index, and most units
AT_FIRST = 0.05  # units for a claim with an index in exponents, before its cases
NESTED = 2  # free indices that have cases in a case of another one

STRATEGIES: tuple[tuple[str, Callable[[Question], Decision | None]], ...] = (
    ("one normal form", from_sides.one_normal_form),
    ("any number of layers", by_number.any_number_of_layers),
    ("one expression", from_sides.one_expression),
    ("no more layers than can be multiplied", from_sides.too_many_layers),
    ("the hypotheses as they are stated", from_equations.as_it_is_stated),
    ("members in the place of rows", by_number.members_for_rows),
    ("the axioms about its functions", from_equations.with_axioms),
    ("finite sums written out", from_sides.finite_sums),
    ("what is read out of a state", by_number.read_out),
    ("induction over a number of members", by_number.every_number),
    ("induction over positions", by_number.one_position),
    ("sums of hypotheses", from_equations.from_equations),
    ("polynomials in the entries", from_sides.same_polynomials),
    ("one size cut in several ways", from_sides.several_cuts),
    ("the lemmas that are given", by_number.from_lemmas),
    ("induction over a depth", by_number.every_depth),
    ("exact trials", from_sides.exact_trials),
)
"""The ways to an answer, each with its name; the last one always answers."""


def decision(
    lhs: Any,
    rhs: Any,
    given: Sequence[Any] = (),
    budget: float | None = None,
    lemmas: Sequence[Any] = (),
) -> Decision:
    """Return the decision on lhs = rhs: that of `otimes.algebra.verdict.decide`, without steps."""
    units = BUDGET if budget is None else budget
    with Budget(max(units, LEAST)) as work, premises_kept(), decisions_kept():
        try:
            if lemmas:
                found = _with_lemmas_at_all(lemmas, lhs, rhs, given)
            else:
                found = _decided_in_cases(lhs, rhs, given, units)
        except Exhausted:
            found = Decision("undecided", "")
        except RecursionError:
            reason = (
                "an expression is nested more deeply than Python can follow "
                f"({sys.getrecursionlimit()} calls): state it with fewer brackets in one another"
            )
            found = Decision("undecided", reason)
    notes = [found.reason] if found.reason else []
    if work.struck:
        notes.append(work.warning("the verdict"))
    elif found.status == "undecided" and work.spent_out and "budget" not in found.reason:
        notes.append(f"the budget of {units:g} was spent")
    return replace(found, reason="; ".join(notes), work=work.spent)


def _with_lemmas_at_all(lemmas: Sequence[Any], lhs: Any, rhs: Any, given: Any) -> Decision:
    """Return the decision on a claim with lemmas, at the last values of its indices, too."""
    found = _with_lemmas(lhs, rhs, given, lemmas)
    return with_last_values(found, lhs, rhs, given, partial(_with_lemmas_at_all, lemmas))


def _with_lemmas(lhs: Any, rhs: Any, given: Sequence[Any], lemmas: Sequence[Any]) -> Decision:
    """Return the decision on a claim, in whose proof lemmas may be used: each is proved first."""
    if all(isinstance(each, tuple | list) and len(each) == 2 for each in given):
        pairs, own = [_pair(each) for each in given], [_pair(each) for each in lemmas]
        sides = [lhs, rhs, *[side for pair in (*pairs, *own) for side in pair]]
        if all(isinstance(side, sympy.Basic) for side in sides):
            (lhs, rhs), given, lemmas = with_named_inverses((lhs, rhs), pairs, own)
    whole = Claim(lhs, rhs, (*given, *lemmas))  # one name for one symbol
    equations = whole.equations[: -len(lemmas)]
    claim = Claim(whole.lhs, whole.rhs, (*equations, *whole.inequalities))
    claim.origin, claim.numbers = whole.origin, whole.numbers[: len(equations)]
    claim.asked = lhs, rhs, tuple(given)
    proofs: list[Decision] = []
    for number, pair in enumerate(whole.equations[-len(lemmas) :]):
        lemma = Claim(pair[0], pair[1], equations)
        lemma.asked = *_pair(lemmas[number]), tuple(given)
        refuse_other_symbols(lemma, claim)
        lemma.lemmas = tuple(map(as_it_is, proofs))
        proofs.append(decided(lemma))
        if why := why_not(number, proofs[-1]):
            return Decision("undecided", why, claim, lemmas=tuple(proofs))
    claim.lemmas = tuple(map(as_it_is, proofs))
    return replace(decided(claim), lemmas=tuple(proofs))


def _pair(equation: Any) -> tuple[Any, Any]:
    """Return the sides of an equation that is a pair, or a `sympy.Eq`."""
    lhs, rhs = getattr(equation, "args", equation)
    return lhs, rhs


def _decided_in_cases(lhs: Any, rhs: Any, given: Sequence[Any], units: float) -> Decision:
    """Return the decision on a claim; where it needs them, from the cases of free indices."""

    def case(lhs: Any, rhs: Any, given: Sequence[Any]) -> Decision:
        found = _decided_with_inverses(Claim(lhs, rhs, given))
        return with_last_values(found, lhs, rhs, given, case)

    def nested(lhs: Any, rhs: Any, given: Sequence[Any], deeper: int = NESTED) -> Decision:
        found = refused = None
        try:
            found = case(lhs, rhs, given)
        except OtimesError as error:
            refused = error
        if deeper and (found is None or found.status == "undecided"):
            found = in_cases(lhs, rhs, given, partial(nested, deeper=deeper - 1)) or found
        if found is None:
            raise refused or OtimesError
        return found

    def cases() -> Decision | None:
        own = min(CASES * units, MOST_FOR_CASES)  # besides what the claim as a whole has taken
        with Budget(max(own, LEAST)):
            try:
                return in_cases(lhs, rhs, given, nested)
            except Exhausted:
                return None

    def of_members(own: float) -> Decision | None:
        listed = isinstance(given, list | tuple)  # else it was refused
        made = as_members(lhs, rhs, given) if listed else None
        if made is None:
            return None
        found = None
        for one in filter(None, (as_matrices(made), made)):
            with suppress(OtimesError), Budget(max(own, LEAST)):
                try:
                    found = _decided_in_cases(*one, own)
                except Exhausted:
                    found = Decision("undecided", "")
            if found is not None and (found.status == "proved" or one is made):
                break
        if found is not None and found.status == "refuted" and found.claim is not None:
            found.claim.shown = lhs, rhs, tuple(given)
        return found

    try:
        claim = Claim(lhs, rhs, given)
        added = claim.equations and not given  # what says which powers are members of a family
        if added and is_index_in_exponents(lhs, rhs):
            with suppress(Exhausted), Budget(AT_FIRST):
                found = case(lhs, rhs, given)
                if found.status != "undecided":
                    return found
            if (by_cases := cases()) is not None:
                return by_cases
        found = with_last_values(_decided_with_inverses(claim), lhs, rhs, given, nested)
    except Exhausted:
        found = Decision("undecided", "")
    except OtimesError:
        if (instead := cases() or of_members(units)) is None:
            raise
        return instead
    if found.status != "undecided":
        return found
    if (by_cases := cases()) is not None:
        return by_cases
    instead = of_members(min(CASES * units, MOST_FOR_CASES))
    return found if instead is None or instead.status == "undecided" else instead


def _decided_with_inverses(claim: Claim) -> Decision:
    """Return the decision on a claim, also where it has inverses of members, as S[l]⁻¹."""
    if is_numbered(claim):
        claim = claim.with_inverses_named()
    try:
        found = decided(claim)
    except LanguageError:
        other = claim.with_members_inverted()
        with suppress(LanguageError):
            if other is not None:
                return decided(other)
        if (instead := with_free_members(claim, decided)) is None:
            raise
        return instead
    if found.status == "undecided" and (other := claim.with_members_inverted()) is not None:
        return decided(other)
    return found


def decided(claim: Claim, axioms: Axioms = ([], {})) -> Decision:
    """Return the decision of the first strategy that reaches one, within the active budget."""
    return once(claim, axioms, (refuting(), laws_known()), _decided_anew)


def _decided_anew(claim: Claim, axioms: Axioms) -> Decision:
    alone = not (axioms[0] or claim.within or claim.given)
    if alone and has_large_sizes(claim.signature):
        find = partial(refuted_by_alike_rows, claim)
        later = within(from_sides.ALIKE, find, from_sides.ALIKE_UNITS)
        if later is not None:
            return Decision("refuted", from_sides.DIFFER, claim, later, strategy="exact trials")
    question = question_of(claim, axioms, decided)
    answers = ((name, strategy(question)) for name, strategy in STRATEGIES)
    name, found = next((name, answer) for name, answer in answers if answer is not None)
    return found if found.strategy else replace(found, strategy=name)
