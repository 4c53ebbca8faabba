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
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import inf
from typing import Any, NamedTuple, TypeVar

import sympy
from sympy import preorder_traversal

from otimes.algebra.budget import LEAST, STEPS, Budget, Exhausted, limited, spend, steps_left
from otimes.algebra.decide.alike_rows import refuted_by_alike_rows
from otimes.algebra.decide.axioms import instance, instances
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.counterexample import SEED
from otimes.algebra.decide.decision import Axioms, Decision, Mode, Proof
from otimes.algebra.decide.empty_ranges import at_any_index
from otimes.algebra.decide.entailment import Fact, Relation, consequences, entail, relations_of
from otimes.algebra.decide.finite_sums import written_out
from otimes.algebra.decide.free_members import with_free_members
from otimes.algebra.decide.implied import implied
from otimes.algebra.decide.inductive_proof import by_induction
from otimes.algebra.decide.large_sizes import has_large_sizes, refuted_at_large_sizes
from otimes.algebra.decide.layers_as_matrices import as_matrices, premises_kept
from otimes.algebra.decide.lemmas import as_it_is, refuse_other_symbols, why_not
from otimes.algebra.decide.numbered_layers import for_any_number, is_numbered
from otimes.algebra.decide.parts import in_parts
from otimes.algebra.decide.positions import (
    at_a_position,
    is_about_positions,
    with_closed_forms,
)
from otimes.algebra.decide.shifted import at_last, shifted
from otimes.algebra.decide.signs import SignsIn
from otimes.algebra.decide.trials import (
    refuted_at_depth,
    refuted_or_undecided,
    tried,
    without_trials,
)
from otimes.algebra.diagrams.dimensions import Clash
from otimes.algebra.diagrams.sums import DiagramSum, Terms, difference
from otimes.algebra.errors import LanguageError, OtimesError, ShapeError, Undecided
from otimes.algebra.evaluate.polynomials import (
    Multiple,
    equal_as_polynomials,
    follows_as_polynomials,
)
from otimes.algebra.language import coefficients
from otimes.algebra.language.inverse_members import with_named_inverses
from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.power_families import is_power
from otimes.algebra.language.shapes import inspect
from otimes.algebra.reading.constants import is_constant
from otimes.algebra.reading.interpretation import Interpretation
from otimes.algebra.reading.read import read
from otimes.algebra.reading.repeated import TOO_MANY

Found = TypeVar("Found")
BUDGET = 4.0  # units of work
# Rounds under hypotheses: units for either answer (the last has all), draws of numbers, and whether
# only to simplify.
ROUNDS = ((0.03, 4, True), (0.5, 8, True), (1.0, 16, False), (inf, None, False))
# The largest share of the budget that is left which one strategy may take.
READING, INDUCTION, DEPTHS, ENTAILMENT, POLYNOMIALS = 0.75, 0.5, 0.5, 0.5, 0.3
LARGE, GRAM, CUTS, ALIKE = 0.5, 0.2, 0.5, 0.5
ALIKE_UNITS = 1.0
GRAMS = 2  # Gram matrices that are formed, one of the other
# Rounds over symbolic depths: units for a proof by induction, most layers of a counterexample.
DEPTH_ROUNDS = ((0.5, 10), (inf, 40))
FIRST = 0.1  # units for each proof that is tried before any trial
AS_MATRICES = 0.5  # units for a proof from laws about products over layers
FEW = 8  # trials before a proof by induction is tried
TAKEN_UP = 30  # steps for each part of a claim that a proof leads to: it is checked and read
NUMBERED = 1.0  # units for a proof about any number of layers, of a claim about so many
POSITIONS = 3.0  # units for a proof about one position of a recurrence
RECURRENCE = 6.0  # units for an induction over a number of members
BESIDES = ("turned", "root", "shifted", "last")  # what a hypothesis gives besides what it says
IMPLIED = ("squares_zero", "function_injective")
PREMISE = 0.5  # units for each premise of an axiom
PREMISES = 4  # of premises, one of the other
SHORT = 0.02  # units for one in a claim about recurrences, which has many and few that hold
DIFFER = "the sides differ at exact numbers"
WRITTEN_OUT = "with the sums over numbered indices written out, both sides are the same"
FIXED = "at these sizes both sides are the same polynomials"
FIXED_GIVEN = (
    "at these sizes the entries of the difference are sums of those of the hypotheses times "
    "polynomials"
)


def decision(
    lhs: Any,
    rhs: Any,
    given: Sequence[Any] = (),
    budget: float | None = None,
    lemmas: Sequence[Any] = (),
) -> Decision:
    """Return the decision on lhs = rhs: that of `otimes.algebra.verdict.decide`, without steps."""
    units = BUDGET if budget is None else budget
    with Budget(max(units, LEAST)) as work, premises_kept():
        try:
            if lemmas:
                found = _with_lemmas(lhs, rhs, given, lemmas)
            else:
                found = _decided_with_inverses(Claim(lhs, rhs, given))
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
    if not axioms[0] and not claim.within and has_large_sizes(claim.signature):
        later = _within(ALIKE, partial(refuted_by_alike_rows, claim), ALIKE_UNITS)
        if later is not None:
            return Decision("refuted", DIFFER, claim, later, strategy="exact trials")
    question = _question(claim, axioms)
    answers = ((name, strategy(question)) for name, strategy in STRATEGIES)
    name, found = next((name, answer) for name, answer in answers if answer is not None)
    return found if found.strategy else replace(found, strategy=name)


def _nested(claim: Claim, axioms: Axioms = ([], {})) -> Decision:
    """Return the decision on a claim that a proof leads to; to take it up counts as work."""
    parts = sum(1 for side in claim.sides for _ in preorder_traversal(side))
    spend(TAKEN_UP * parts)
    return decided(claim, axioms)


# -- the claim as it is read -----------------------------------------------------------------------


class Read(NamedTuple):
    """The values of both sides as sums of diagrams: the left side, and the difference."""

    reading: Interpretation
    left: DiagramSum
    rest: Terms
    equations: list[tuple[DiagramSum, ...]]


@dataclass(frozen=True, slots=True)
class Question:
    """A claim, with further equations `facts` that may be used, by name.

    `read` is None if a side has no normal form; `obstacle` is then the reason, and `clash` whether
    it is that one size is cut in several ways.
    """

    claim: Claim
    axioms: Axioms
    facts: list[tuple[Fact, Any, Any]]
    read: Read | None
    obstacle: str
    clash: bool = False


def _question(claim: Claim, axioms: Axioms) -> Question:
    given = list(enumerate(claim.given))
    facts: list[tuple[Fact, Any, Any]] = [(("given", k), *pair) for k, pair in given]
    facts += [one for k, pair in given for one in consequences(k, *pair)]
    own, sides = given[: len(claim.equations)], claim.sides
    facts += [one for k, pair in own for one in shifted(k, *pair, sides)]
    if claim.latest is not None:
        facts += [one for k, pair in own for one in at_last(k, *pair, *claim.latest)]
    facts += [(("axiom", said.axiom, k), said.lhs, said.rhs) for k, said in enumerate(axioms[0])]
    groups = [(claim.lhs, claim.rhs), *[(x, y) for _, x, y in facts]]
    try:
        with limited(READING * steps_left()):
            reading, ((left, right), *equations) = _read(claim, groups)
    except Undecided as obstacle:
        return Question(claim, axioms, facts, None, str(obstacle), isinstance(obstacle, Clash))
    rest = difference(left.terms, right.terms)
    return Question(claim, axioms, facts, Read(reading, left, rest, equations), "")


def _read(claim: Claim, groups: list[Any]) -> tuple[Interpretation, list[tuple[DiagramSum, ...]]]:
    """Return the values of equations, read beside others of the claim where these can be read."""
    if claim.besides:
        with suppress(Undecided):
            reading, values = read(claim.signature, *groups, *[(e,) for e in claim.besides])
            return reading, values[: len(groups)]
    return read(claim.signature, *groups)


def _proved(
    question: Question, reason: str, mode: Mode, reading: Interpretation | None = None
) -> Decision:
    return Decision("proved", reason, question.claim, proof=Proof(mode, reading))


def _within(share: float, find: Callable[[], Found], units: float = inf) -> Found | None:
    """Return the result of `find`, or None if a share of the remaining budget does not suffice."""
    try:
        with limited(min(share * steps_left(), units * STEPS)):
            return find()
    except Exhausted:
        return None


# -- strategies ------------------------------------------------------------------------------------


def one_normal_form(question: Question) -> Decision | None:
    """Return a proof that both sides are the same sum of diagrams, or None."""
    if question.read is None or question.read.rest:
        return None
    count = len(question.read.left.terms)
    terms = "one diagram" if count == 1 else f"{count} diagrams"
    reason = f"both sides have the same normal form, {terms}"
    return _proved(question, reason, "normal forms", question.read.reading)


def too_many_layers(question: Question) -> Decision | None:
    """Leave a claim undecided that has more numbered layers than are multiplied, or return None."""
    many = question.read is None and question.obstacle.endswith(TOO_MANY)
    return Decision("undecided", question.obstacle, question.claim) if many else None


def one_expression(question: Question) -> Decision | None:
    """Return a proof of x = x for an x without a normal form, or None."""
    if question.read is not None or question.clash or question.claim.lhs != question.claim.rhs:
        return None
    return _same(question)


def _same(question: Question) -> Decision:
    return _proved(question, "both sides are the same expression", "same trees")


def with_axioms(question: Question) -> Decision | None:
    """Return the decision with the axioms for the functions in the claim, or None without any."""
    if question.read is None or question.axioms[0]:
        return None
    reading = question.read.reading
    if not reading.applied and not any(map(is_constant, reading.labels)):
        return None
    axioms = _instances(question.claim)
    return decided(question.claim, axioms) if axioms[0] else None


def finite_sums(question: Question) -> Decision | None:
    """Return a proof that both sides are equal with all numeric sums written out, or None."""
    if question.read is None or question.claim.given:
        return None
    reading, rest = question.read.reading, question.read.rest
    left = _within(POLYNOMIALS, lambda: written_out(rest, reading))
    return None if left is None or left else _proved(question, WRITTEN_OUT, "written out", reading)


def as_it_is_stated(question: Question) -> Decision | None:
    """Return a short proof from the hypotheses, before axioms about functions are looked for."""
    claim, read = question.claim, question.read
    if read is None or question.axioms[0] or not claim.given or not read.reading.applied:
        return None
    relations = _relations(question, read)
    return _within(ENTAILMENT, partial(_entailed, question, read, relations, True), ROUNDS[0][0])


def _relations(question: Question, read: Read) -> list[Relation]:
    """Return the relations that hold: of hypotheses, axioms and definitions of inverses."""
    pairs = zip(question.facts, read.equations, strict=True)
    named = [(fact, x, y) for (fact, _, _), (x, y) in pairs]
    named += _defined_inverses(question.claim, read.reading)
    return list(chain.from_iterable(relations_of(*each) for each in named))


def _entailed(
    question: Question, read: Read, relations: Sequence[Relation], simple: bool
) -> Decision | None:
    """Return a proof that the difference of the sides is a sum of uses of relations, or None."""
    claim, (reading, left, rest, _) = question.claim, read
    sizes = claim.signature.sizes
    uses = entail(rest, relations, reading.dimensions, sizes, simple, claim.assumptions)
    if uses is None:
        return None
    why = _because([use.relation.fact for use in uses], claim)
    proof = Proof("normal forms", reading, uses, left, axioms=question.axioms)
    return Decision("proved", why, claim, proof=proof, conditional=True)


def from_equations(question: Question) -> Decision | None:
    """Decide with the available equations: hypotheses, axioms, definitions of inverses.

    Either the difference is a sum of multiples of them, or numbers that satisfy them refute it.
    """
    if question.read is None:
        return None
    claim, reading = question.claim, question.read.reading
    if not (question.facts or reading.inverses or reading.applied):
        return None
    relations = _relations(question, question.read)
    # Short attempts at both answers before long ones: which it is, is not known beforehand.
    for number, (units, attempts, simple) in enumerate(ROUNDS):
        share = min(units * STEPS, steps_left())
        with limited(min(share, ENTAILMENT * steps_left())):
            found = _entailed(question, question.read, relations, simple)
        if found is not None:
            return found
        with suppress(OtimesError), limited(share):  # numbers at which a side has no exact value
            seed = SEED + number
            refuted = tried(claim, claim.signature, 3, claim.draw, attempts, seed)
            if refuted is not None:
                return refuted
        if number:
            continue
        with limited(STEPS):
            some = _multiples(claim)
        if some is not None:  # no multiple at all where the sides agree without the hypotheses
            proof = Proof("written out", multiples=some)
            why = FIXED_GIVEN if some else FIXED
            return Decision("proved", why, claim, proof=proof, conditional=bool(some))
    if (by_more := by_gram_matrix(question) or by_implied(question)) is not None:
        return by_more
    known = "the hypotheses" if claim.given else "the axioms about its functions"
    satisfying = " that satisfies them" if claim.given else ""
    reason = (
        f"the claim was not found among the consequences of {known}, and no exact trial"
        f"{satisfying} told the sides apart"
    )
    return Decision("undecided", reason, claim)


def by_gram_matrix(question: Question) -> Decision | None:
    """Prove X = 0 for the real difference X of the sides from XᵀX = 0 or XXᵀ = 0.

    Numbers that refute one of these refute X = 0, for which they were tried before.
    """
    claim, (instances, premises) = question.claim, question.axioms
    if not claim.given or not claim.lhs.is_Matrix or len(claim.within) >= GRAMS or claim.is_simple:
        return None
    x = matadd(claim.lhs, matmul(-1, claim.rhs))
    x = claim.lhs if claim.rhs.is_ZeroMatrix else x
    for form in (0, 1):
        said = instance("gram_zero", form, {"X": x})
        premise = claim.premise(*said.premises[0], claim.cited)
        premise.within = claim.within | {claim.sides}
        premise.whole = claim.stated
        with without_trials():
            found = _within(GRAM, partial(decided, premise, question.axioms))
        if found is not None and found.status == "proved":
            return decided(claim, ([*instances, said], {**premises, said.premises[0]: found}))
    return None


def signs_in(claim: Claim) -> SignsIn:
    """Return the signs of expressions in a claim."""
    free = [index for index, _ in claim.signature.indices.values()]
    return SignsIn(claim.stated, claim.assumptions, free)


def by_implied(question: Question) -> Decision | None:
    """Prove a claim with what hypotheses imply: that squares vanish, and arguments are equal."""
    claim, (known, premises) = question.claim, question.axioms
    if claim.within or any(said.axiom in IMPLIED for said in known):
        return None
    added, proofs = list(known), dict(premises)
    signs = signs_in(claim)
    for said in [one for pair in claim.given for one in implied(*pair)]:
        premise = Claim(*said.premises[0], claim.hypotheses)
        premise.within, premise.whole = claim.within | {claim.sides}, claim.stated
        found = _within(GRAM, partial(decided, premise, question.axioms))
        certain = all(signs.has(*each) for each in said.signs)
        if certain and found is not None and found.status == "proved":
            added.append(said)
            proofs[said.premises[0]] = found
    if len(added) == len(known):
        return None
    found = decided(claim, (added, proofs))
    return found if found.status == "proved" else None


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
        way = partial(by_induction, claim, decided, with_sums, over=claim.recurrences)
        found = _within(INDUCTION, way, RECURRENCE)
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
        found = _within(INDUCTION, partial(way, claim, _nested), POSITIONS)
        if found is not None:
            return found
    return None


def same_polynomials(question: Question) -> Decision | None:
    """Prove that at fixed sizes both sides are equal polynomials in all entries."""
    claim = question.claim
    sides = claim.lhs, claim.rhs, claim.signature
    if claim.given or _within(POLYNOMIALS, lambda: equal_as_polynomials(*sides)) is not True:
        return None
    reading = question.read.reading if question.read else None
    return _proved(question, FIXED, "written out", reading)


def several_cuts(question: Question) -> Decision | None:
    """Decide a claim in which one size is cut in several ways, such as d + 1 as d|1 and as 1|d."""
    if question.read is not None or not question.clash:
        return None
    found = _within(CUTS, partial(in_parts, question.claim, partial(decided, axioms=([], {}))))
    return _same(question) if found is None and question.claim.lhs == question.claim.rhs else found


def from_lemmas(question: Question) -> Decision | None:
    """Return a proof from the lemmas that are given, each an equation like others, or None."""
    claim = question.claim
    if not claim.lemmas:
        return None
    with suppress(LanguageError):
        found = decided(claim.premise(*claim.sides, claim.lemmas))
        if found.status == "proved":
            return found
    return as_matrices(claim, decided, with_laws=False)


def any_number_of_layers(question: Question) -> Decision | None:
    """Return a proof of a claim about many numbered layers for any number of them, or None."""
    known = question.read is not None and not (question.claim.given or question.claim.is_affine)
    if known or question.axioms[0]:
        return None
    return _within(INDUCTION, partial(for_any_number, question.claim, _nested), NUMBERED)


def every_depth(question: Question) -> Decision | None:
    """Decide a claim about any number of layers: by induction, or by trials with many layers."""
    claim = question.claim
    if question.read is not None or not (claim.depths or claim.orders):
        return None
    if claim.is_affine:  # such a claim has hypotheses that are slow to satisfy
        found = _within(INDUCTION, partial(by_induction, claim, _nested), RECURRENCE)
        if found is not None:
            return found
    if claim.given:  # few numbers satisfy hypotheses: a short proof takes less time than a trial
        with without_trials():
            short: tuple[Callable[[], Decision | None], ...] = (
                partial(as_matrices, claim, _nested, with_laws=False),
                partial(by_induction, claim, _nested),
                partial(as_matrices, claim, _nested),
            )
            for way in short:
                found = _within(INDUCTION, way, FIRST)
                if found is not None:
                    return found
    quick = refuted_or_undecided(claim, 0, question.obstacle, FEW)  # most that is false shows here
    if quick.status == "refuted":
        return quick
    plainly = _within(INDUCTION, partial(as_matrices, claim, _nested, with_laws=False), AS_MATRICES)
    if plainly is not None:
        return plainly
    for units, deepest in DEPTH_ROUNDS:
        ways: tuple[Callable[[], Decision | None], ...] = (
            partial(by_induction, claim, _nested),
            partial(as_matrices, claim, _nested),
            partial(by_induction, claim, _nested, with_laws=True),
        )
        found = None
        for way in ways:
            found = found or _within(INDUCTION, way, units)
        found = found or _within(DEPTHS, partial(refuted_at_depth, claim, deepest))
        if found is not None:
            return found
    return None


def exact_trials(question: Question) -> Decision:
    """Refute a claim at exact numbers, or leave it undecided."""
    if question.read is None:
        return refuted_or_undecided(question.claim, 0, question.obstacle)
    claim, (reading, left, rest, _) = question.claim, question.read
    if has_large_sizes(claim.signature) and not claim.given:
        found = _within(LARGE, partial(refuted_at_large_sizes, claim, reading, left, rest))
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


STRATEGIES: tuple[tuple[str, Callable[[Question], Decision | None]], ...] = (
    ("one normal form", one_normal_form),
    ("one expression", one_expression),
    ("any number of layers", any_number_of_layers),
    ("no more layers than can be multiplied", too_many_layers),
    ("the hypotheses as they are stated", as_it_is_stated),
    ("the axioms about its functions", with_axioms),
    ("finite sums written out", finite_sums),
    ("induction over a number of members", every_number),
    ("induction over positions", one_position),
    ("sums of hypotheses", from_equations),
    ("polynomials in the entries", same_polynomials),
    ("one size cut in several ways", several_cuts),
    ("the lemmas that are given", from_lemmas),
    ("induction over a depth", every_depth),
    ("exact trials", exact_trials),
)
"""The ways to an answer, each with its name; the last one always answers."""


# -- what the strategies ask for -------------------------------------------------------------------


def _instances(claim: Claim) -> Axioms:
    """Return the instances of axioms in a claim whose premises follow from its hypotheses.

    A premise is about the arguments of a function, so it has fewer functions than the claim.
    """
    decisions: dict[tuple[Any, Any], Decision] = {}

    def proves(lhs: Any, rhs: Any) -> bool:
        try:
            premise = claim.premise_on(lhs, rhs)
            # the functions of a hypothesis have premises too, perhaps the same: end there
            premise.within = claim.within | {claim.sides}
            premise.whole = claim.stated
            if premise.sides in premise.within or len(premise.within) > PREMISES:
                return False
            with limited((SHORT if claim.has_members else PREMISE) * STEPS):
                decisions[lhs, rhs] = decided(premise)
        except ShapeError:  # one name for indices of two ranges, each bound in its own function
            return False
        except Exhausted:
            return False
        return decisions[lhs, rhs].status == "proved"

    sides = [claim.lhs, claim.rhs, *[e for pair in claim.given for e in pair]]
    if claim.latest is not None:
        own = enumerate(claim.equations)
        known = [one for k, (x, y) in own for one in at_last(k, x, y, *claim.latest)]
        sides += [side for _, *pair in known for side in pair]
    signs = signs_in(claim)
    return instances(sides, proves, signs, claim.equations), decisions


def _defined_inverses(claim: Claim, reading: Interpretation) -> list[tuple[Any, Any, Any]]:
    """Return the equations of those inverses that the claim evaluates."""
    unknown = claim.not_evaluated if reading.inverses else frozenset()
    found = []
    for fact, lhs, rhs in reading.inverse_equations:
        if at_any_index(reading.inverses[fact[1]][1]) not in unknown:
            found.append((fact, lhs, rhs))
    return found


def _multiples(claim: Claim) -> tuple[Multiple, ...] | None:
    indices = list(inspect(claim.lhs, claim.rhs).indices)
    given = [(*pair, list(inspect(*pair).indices)) for pair in claim.given]
    return follows_as_polynomials(claim.lhs, claim.rhs, given, indices, claim.signature)


def _because(facts: Sequence[Fact], claim: Claim) -> str:
    known = {fact[1]: claim.numbers[fact[1]] for fact in facts if fact[0] in ("given", *BESIDES)}
    cited = len(claim.equations)  # the instances of lemmas follow
    named = []
    for form, kinds in (("{}", ("given",)), ("what {} gives", BESIDES)):
        used = {k for k in known if any(fact[1] == k for fact in facts if fact[0] in kinds)}
        said = [f"hypothesis {number + 1}" for number in sorted(known[k] for k in used)]
        said = [each for each in said if each != "hypothesis 0"]  # which the claim brings with it
        said += ["a lemma"] * any(k >= cited for k in used)
        named += [form.format(each) for each in said]
    named += [f"the axiom {name}" for name in sorted({f[1] for f in facts if f[0] == "axiom"})]
    added = [claim.given[k] for k, number in known.items() if number < 0 and k < cited]
    powers = [pair for pair in added if any(is_power(side) for side in pair)]
    defined = any(fact[0] == "inverse" for fact in facts) or len(powers) < len(added)
    named += ["the definition of the inverse"] * defined
    named += ["the definition of the power"] * bool(powers)
    times = "once" if len(facts) == 1 else f"{len(facts)} times in all"
    return f"the difference of the sides is a sum of uses of {', '.join(named)} ({times})"
