"""Strategies that use equations: hypotheses, axioms about functions, definitions of inverses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from math import inf
from typing import Any

from sympy import Identity, MatAdd, MatMul, MatPow, MatrixSymbol, Transpose, ZeroMatrix, sympify

from otimes.algebra.budget import STEPS, Exhausted, limited, steps_left
from otimes.algebra.decide.alike_rows import has_blocks, refuted_by_alike_rows
from otimes.algebra.decide.axiom_statements import instance
from otimes.algebra.decide.axioms import instances
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.counterexample import SEED
from otimes.algebra.decide.decision import Axioms, Decision, Proof
from otimes.algebra.decide.denominators import without_denominators
from otimes.algebra.decide.empty_ranges import at_any_index
from otimes.algebra.decide.entailment import Fact, Relation, entail, relations_of
from otimes.algebra.decide.from_sides import ALIKE, ALIKE_UNITS, DIFFER, FIXED
from otimes.algebra.decide.implied import implied
from otimes.algebra.decide.large_sizes import has_large_sizes
from otimes.algebra.decide.question import Decide, Question, Read, within
from otimes.algebra.decide.shifted import at_last
from otimes.algebra.decide.signs import SignsIn
from otimes.algebra.decide.trials import tried, without_trials
from otimes.algebra.errors import OtimesError, ShapeError
from otimes.algebra.evaluate.polynomials import Multiple, follows_as_polynomials
from otimes.algebra.language.linear import FamilyMember, HeadSum, matadd, matmul
from otimes.algebra.language.power_families import is_power
from otimes.algebra.language.shapes import inspect
from otimes.algebra.reading.constants import is_constant
from otimes.algebra.reading.interpretation import Interpretation

# Rounds under hypotheses: units for either answer (the last has all), draws of numbers, and whether
# only to simplify.
ROUNDS = ((0.03, 4, True), (0.5, 8, True), (1.0, 16, False), (inf, None, False))
ENTAILMENT, GRAM = 0.5, 0.2  # the largest share of the budget that is left
GRAMS = 2  # Gram matrices that are formed, one of the other
BESIDES = ("turned", "root", "shifted", "last")  # what a hypothesis gives besides what it says
IMPLIED = ("squares_zero", "function_injective", "inverse_commutes", "product_cancel")
PREMISE = 0.5  # units for each premise of an axiom
PREMISES = 4  # of premises, one of the other
SHORT = 0.02  # units for one in a claim about recurrences, which has many and few that hold
FIXED_GIVEN = (
    "at these sizes the entries of the difference are sums of those of the hypotheses times "
    "polynomials"
)


def as_it_is_stated(question: Question) -> Decision | None:
    """Return a short proof from the hypotheses, before axioms and inductions are looked for."""
    claim, read = question.claim, question.read
    if read is None or question.axioms[0] or not claim.given:
        return None
    if not (read.reading.applied or (claim.is_affine and claim.recurrences)):
        return None
    relations = _relations(question, read)
    return within(ENTAILMENT, partial(_entailed, question, read, relations, True), ROUNDS[0][0])


def with_axioms(question: Question) -> Decision | None:
    """Return the decision with the axioms for the functions in the claim, or None without any."""
    if question.read is None or question.axioms[0]:
        return None
    reading, products = question.read.reading, question.claim.of_products
    if not (products or reading.applied or any(map(is_constant, reading.labels))):
        return None
    found, premises = _instances(question.claim, question.decided)
    axioms = [*found, *products], premises
    return question.decided(question.claim, axioms) if axioms[0] else None


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
    large = bool(claim.given) and has_large_sizes(claim.signature)
    # Short attempts at both answers before long ones: which it is, is not known beforehand.
    for number, (units, attempts, simple) in enumerate(ROUNDS):
        share = min(units * STEPS, steps_left())
        with limited(min(share, ENTAILMENT * steps_left())):
            found = _entailed(question, question.read, relations, simple)
        if found is not None:
            return found
        with suppress(OtimesError), limited(share):  # numbers at which a side has no exact value
            seed = SEED + number
            if not large or number > 1:
                refuted = tried(claim, claim.signature, 3, claim.draw, attempts, seed)
                if refuted is not None:
                    return refuted
        if number == 1 and (large or has_blocks(claim)) and not claim.within:
            later = within(ALIKE, partial(refuted_by_alike_rows, claim), ALIKE_UNITS)
            if later is not None:
                return Decision("refuted", DIFFER, claim, later, strategy="exact trials")
        if number:
            continue
        with limited(STEPS):
            some = _multiples(claim)
        if some is not None:  # no multiple at all where the sides agree without the hypotheses
            proof = Proof("written out", multiples=some)
            why = FIXED_GIVEN if some else FIXED
            return Decision("proved", why, claim, proof=proof, conditional=bool(some))
        whole = without_denominators(question, signs_in(claim))
        if whole is not None and whole.status == "proved":
            return whole
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

    Numbers that refute one of these refute X = 0, for which they were tried before. Where nothing
    is said of transposes, no equation makes a sum of products Xᵀ X of what X has left vanish: next
    to each other stand there a transposed and a plain matrix.
    """
    claim, (instances, premises) = question.claim, question.axioms
    if not claim.given or not claim.lhs.is_Matrix or len(claim.within) >= GRAMS or claim.is_simple:
        return None
    sides = [_is_plain(side, turned=True) for side in claim.sides]
    if not instances and all(sides) and all(map(_is_plain, claim.sides_given)):
        return None
    x = matadd(claim.lhs, matmul(-1, claim.rhs))
    x = claim.lhs if claim.rhs.is_ZeroMatrix else x
    for form in (0, 1):
        said = instance("gram_zero", form, {"X": x})
        premise = claim.premise(*said.premises[0], claim.cited)
        premise.within = claim.within | {claim.sides}
        premise.whole = claim.stated
        with without_trials():
            found = within(GRAM, partial(question.decided, premise, question.axioms))
        if found is not None and found.status == "proved":
            return question.decided(
                claim, ([*instances, said], {**premises, said.premises[0]: found})
            )
    return None


def _is_plain(e: Any, turned: bool = False) -> bool:
    """Return whether a matrix is a sum of products of matrices, of sizes that are no numbers.

    `turned`: whether transposes and sums over an index may be among them.
    """
    if not e.is_Matrix:
        return bool(e.is_Rational)
    if any(size.is_number for size in map(sympify, e.shape)):
        return False
    if isinstance(e, MatPow) and not e.exp.is_Integer:
        return False
    if turned and isinstance(e, HeadSum):
        return _is_plain(e.body, turned)
    if isinstance(e, MatMul | MatAdd | MatPow) or (turned and isinstance(e, Transpose)):
        return all(_is_plain(part, turned) for part in e.args)
    return isinstance(e, MatrixSymbol | FamilyMember | Identity | ZeroMatrix)


def by_implied(question: Question) -> Decision | None:
    """Prove a claim with what hypotheses imply: that squares vanish, and arguments are equal."""
    claim, (known, premises) = question.claim, question.axioms
    if claim.within or any(said.axiom in IMPLIED for said in known):
        return None
    added, proofs = list(known), dict(premises)
    signs = signs_in(claim)
    for said in [one for pair in claim.given for one in implied(*pair, claim.stated)]:
        premise = Claim(*said.premises[0], claim.hypotheses)
        premise.within, premise.whole = claim.within | {claim.sides}, claim.stated
        found = within(GRAM, partial(question.decided, premise, question.axioms))
        certain = all(signs.has(*each) for each in said.signs)
        if certain and found is not None and found.status == "proved":
            added.append(said)
            proofs[said.premises[0]] = found
    if len(added) == len(known):
        return None
    found = question.decided(claim, (added, proofs))
    return found if found.status == "proved" else None


def _relations(question: Question, read: Read) -> list[Relation]:
    """Return the relations that hold: of hypotheses, axioms and definitions of inverses."""
    pairs = zip(question.facts, read.equations, strict=True)
    named = [(fact, x, y) for (fact, _, _), (x, y) in pairs]
    named += _defined_inverses(question.claim, read.reading)
    return list(chain.from_iterable(relations_of(*each) for each in named))


def _defined_inverses(claim: Claim, reading: Interpretation) -> list[tuple[Any, Any, Any]]:
    """Return the equations of those inverses that the claim evaluates."""
    unknown = claim.not_evaluated if reading.inverses else frozenset()
    found = []
    for fact, lhs, rhs in reading.inverse_equations:
        if at_any_index(reading.inverses[fact[1]][1]) not in unknown:
            found.append((fact, lhs, rhs))
    return found


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
    others = [pair for pair in added if pair not in powers]
    inverses = [pair for pair in others if any(isinstance(e, Identity) for e in pair)]
    defined = bool(inverses) or any(fact[0] == "inverse" for fact in facts)
    named += ["a hypothesis at the last index"] * (len(inverses) < len(others))
    named += ["the definition of the inverse"] * defined
    named += ["the definition of the power"] * bool(powers)
    times = "once" if len(facts) == 1 else f"{len(facts)} times in all"
    return f"the difference of the sides is a sum of uses of {', '.join(named)} ({times})"


def _multiples(claim: Claim) -> tuple[Multiple, ...] | None:
    indices = list(inspect(claim.lhs, claim.rhs).indices)
    given = [(*pair, list(inspect(*pair).indices)) for pair in claim.given]
    return follows_as_polynomials(claim.lhs, claim.rhs, given, indices, claim.signature)


def _instances(claim: Claim, decided: Decide) -> Axioms:
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


def signs_in(claim: Claim) -> SignsIn:
    """Return the signs of expressions in a claim."""
    free = [index for index, _ in claim.signature.indices.values()]
    return SignsIn(claim.stated, claim.assumptions, free)
