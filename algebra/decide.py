"""The judge: is an equation true for every size and every value of its symbols?

`proved` never rests on evaluation at some numbers: the canonical forms of both sides agree, at
once or with the sums over numbered indices written out, or their difference is a sum of hypotheses
in contexts, or, at fixed sizes, both sides are the same polynomials in all entries. `refuted`
carries numbers at which the hypotheses hold and the sides differ. Anything else is `undecided`,
and says why.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

import sympy

from algebra import scalars
from algebra.admissible import admits, presupposed
from algebra.applied import is_causal_mask
from algebra.assumptions import condition, inequalities_of
from algebra.axioms import Instance, instances
from algebra.binders import standardised
from algebra.budget import LEAST, STEPS, Budget, Exhausted, limited, steps_left
from algebra.certificate import certificate_of
from algebra.entailment import Fact, Relation, Use, consequences, entail, relations_of
from algebra.errors import (
    LanguageError,
    OtimesError,
    Refuted,
    RuleError,
    ShapeError,
    Undecided,
)
from algebra.exact import Assignment, exact_value
from algebra.expansion import Multiple, equal_as_polynomials, follows_as_polynomials
from algebra.induction import Induction, depths_of, induction
from algebra.interpret import Interpretation, read
from algebra.language import key
from algebra.refute import SEED, Counterexample, Trial, search, shrink
from algebra.satisfy import holds, satisfying
from algebra.shape_messages import Shape, renamed, show_shape
from algebra.shapes import inspect, inspect_shapes, same_shape, with_ranges
from algebra.signature import Signature
from algebra.text import short_text
from algebra.values import Terms, Value, difference
from algebra.written_out import written_out

if TYPE_CHECKING:
    from algebra.derivation import Derivation

Status = Literal["proved", "refuted", "undecided"]
Mode = Literal["normal forms", "written out", "same trees", "induction"]
Found = TypeVar("Found")
BUDGET = 20.0  # units of work
# Rounds under hypotheses: units for either answer (the last has all), draws of numbers, and whether
# only to simplify.
ROUNDS = ((0.03, 4, True), (0.5, 8, True), (1.0, 16, False), (inf, None, False))
# Of what is left, how much may go into one way to an answer before the others are tried.
READING, INDUCTION, DEPTHS, ENTAILMENT, POLYNOMIALS = 0.75, 0.5, 0.5, 0.5, 0.3
# Rounds over symbolic depths: units for a proof by induction, most layers of a counterexample.
DEPTH_ROUNDS = ((0.5, 10), (inf, 40))
AT_DEPTH = 3  # trials at each number of layers
FEW = 8  # trials before a proof by induction is tried
SEARCHES = 8  # for numbers that satisfy hypotheses, where normal forms say nothing
PREMISE = 0.5  # units for each premise of an axiom
MODEL = 2.0  # units for finding numbers at which the hypotheses of a proof hold


class Verdict:
    """What `decide` found. `.status` is `"proved"`, `"refuted"` or `"undecided"`.

    `.reason` says why in one sentence; `.counterexample` (made small when first asked for) is a
    Counterexample when the status is `refuted`, else None; `.steps` is a chain of named rules from
    one side to the other when the status is `proved` and such a chain was found, else None.
    `.certificate` is what `proofs/replay.py` checks, as data for JSON, when the status is `proved`,
    else None. `.work` is how many steps the decision took.
    """

    def __init__(
        self,
        status: Status,
        reason: str,
        claim: _Claim | None,
        trial: Trial | None = None,
        proof: _Proof | None = None,
        conditional: bool = False,
    ) -> None:
        self.status = status
        self._reason = reason
        self._claim = claim
        self._trial = trial
        self._proof = proof
        self._conditional = conditional  # on equations, which may hold nowhere
        self.work = 0

    @cached_property
    def reason(self) -> str:
        """Why, in one sentence."""
        if self.status != "proved" or self._claim is None or not self._conditional:
            return self._reason
        with Budget(MODEL) as work:
            note = _model_note(self._claim)
        return "; ".join(filter(None, (self._reason + note, work.warning("this"))))

    @cached_property
    def counterexample(self) -> Counterexample | None:
        """The numbers that refute the equation, as small as they could be made."""
        claim = self._claim
        if self._trial is None or claim is None:
            return None
        found = shrink(claim.lhs, claim.rhs, claim.signature, self._trial, claim.allows)
        return found.with_symbols(claim.origin)

    @property
    def presupposes(self) -> tuple[Any, ...]:
        """The inequalities of sizes without which the claim names a length below 1."""
        return presupposed(self._claim.signature) if self._claim is not None else ()

    @property
    def used(self) -> tuple[int, ...]:
        """Which equations of the hypotheses the proof rests on, by their places from 0.

        Whatever was made of them. Inequalities are not counted, as only the search asks for them.
        """
        if self._proof is None:
            return ()
        facts = [use.relation.fact for use in self._proof.uses]
        used = {fact[1] for fact in facts if fact[0] in ("given", "turned", "root")}
        used |= {multiple.given for multiple in self._proof.multiples}
        return tuple(sorted(self._claim.numbers[k] for k in used)) if self._claim else ()

    @property
    def derived(self) -> Derived | None:
        """How the difference is a sum of hypotheses in contexts, if it was proved so."""
        if self._proof is None or self._claim is None or not self._proof.uses:
            return None
        proof, claim = self._proof, self._claim
        return Derived(claim.signature, claim.given, proof.reading, proof.whole, proof.uses)

    @cached_property
    def steps(self) -> Derivation | None:
        """A chain from the left side to the right, each step one named rule, each decided."""
        if self.status != "proved" or self._claim is None:
            return None
        from algebra.explain import explain  # which itself asks `decide` about each step

        if self._proof is not None and self._proof.induction is not None:
            plan, _, step, _ = self._proof.induction
            found = step.steps
            return found and replace(found, depth=plan.depth, opaque=plan.named)
        with suppress(LanguageError):  # a root that only an inequality allows to take apart
            return explain(self._claim.lhs, self._claim.rhs, given=self._claim.given)
        return None

    @cached_property
    def certificate(self) -> dict[str, Any] | None:
        """The proof as data that an independent program can check."""
        if self._proof is None or self._claim is None:
            return None
        return certificate_of(self._claim, self._proof)

    def tell(self, work: Budget, units: float) -> None:
        """Say how much work was done, and so if that is why nothing, or just this, was found."""
        self.work = work.spent
        notes = [self._reason] if self._reason else []
        notes += [work.warning("the verdict")] * work.struck
        if (
            not work.struck
            and self.status == "undecided"
            and work.spent_out
            and "budget" not in self._reason
        ):
            notes.append(f"the budget of {units:g} was spent")
        self._reason = "; ".join(notes)

    def __repr__(self) -> str:
        return f"<{self.status}: {self.reason}>"


_Verdicts = dict[tuple[Any, Any], Verdict]
_Said = tuple[Sequence[Instance], _Verdicts]  # what axioms say, and the verdicts on their premises


class Derived(NamedTuple):
    """A proof from hypotheses as numbers can be put into it.

    lhs − rhs is the sum of `uses`, each a coefficient times a context of `reading`, with a
    hypothesis of `given` in its hole; `whole` is the left side, whose legs they all have.
    """

    signature: Signature
    given: tuple[tuple[Any, Any], ...]
    reading: Any
    whole: Any
    uses: tuple[Use, ...]


class _Proof(NamedTuple):
    """How a claim was proved: how, what read it, and the uses of facts whose sum it is."""

    mode: Mode
    reading: Interpretation | None = None
    uses: tuple[Use, ...] = ()
    whole: Value | None = None  # the left side, as it was read
    multiples: tuple[Multiple, ...] = ()
    induction: InductionProof | None = None
    axioms: _Said = ([], {})


class InductionProof(NamedTuple):
    """A proof for every depth: what was to be proved, and the proofs of both parts.

    `alike` are the proofs that the bodies are equal of what goes by one name.
    """

    plan: Induction
    base: Verdict
    step: Verdict
    alike: dict[Any, Verdict]


class _Claim:
    """Two sides that are in the language and of one shape, and the hypotheses they stand under.

    They are in clean names; `origin` says what a symbol that was renamed is to the user.
    """

    def __init__(self, lhs: Any, rhs: Any, given: Sequence[Any] = ()) -> None:
        hypotheses, self.inequalities, self.numbers = _split(given)
        compared = [side for each in self.inequalities for side in each.args]
        sides = [_expression(lhs), _expression(rhs), *compared]
        (self.lhs, self.rhs, *compared), pairs, self.origin = standardised(sides, hypotheses)
        self.given = tuple(pairs)
        self.within: frozenset[tuple[Any, Any]] = frozenset()  # claims that it is a premise of
        pairs_compared = zip(compared[::2], compared[1::2], strict=True)
        self.inequalities = tuple(
            type(each)(*pair, evaluate=False)
            for each, pair in zip(self.inequalities, pairs_compared, strict=True)
        )
        conditions = [condition(each) for each in self.inequalities]
        sides = [side for pair in self.given for side in pair]
        compared = [each.expression for each in conditions]
        try:
            self.signature, shapes = inspect_shapes(self.lhs, self.rhs, *sides, *compared)
            known = self.signature.assumptions.under(conditions, self.signature.roots)
            self.signature.assumptions = self.assumptions = known
            shapes = shapes[: 2 + len(sides)]
            for left, right in zip(shapes[::2], shapes[1::2], strict=True):
                if not same_shape(left, right):
                    raise ShapeError(_different_shapes(left, right))
        except OtimesError as error:
            if not self.origin:
                raise
            raise type(error)(f"{error}{renamed(self.origin)}") from None
        self.lhs, self.rhs = (with_ranges(side, self.signature) for side in (self.lhs, self.rhs))
        self.given = tuple(
            (with_ranges(left, self.signature), with_ranges(right, self.signature))
            for left, right in self.given
        )

    @property
    def depths(self) -> list[sympy.Symbol]:
        """The symbols over which induction may prove the claim."""
        return depths_of(self.lhs, self.rhs, sizes=self.signature.sizes.values())

    @property
    def hypotheses(self) -> tuple[Any, ...]:
        """The equations and the inequalities, for another claim that stands under them."""
        return (*self.given, *self.inequalities)

    def draw(self, signature: Signature, *how: Any) -> Assignment | None:
        """Return numbers at which the hypotheses hold, or None if this draw found none."""
        return satisfying(self.given, signature, *how)

    def allows(self, assignment: Assignment) -> bool:
        """Return whether the hypotheses hold at these numbers."""
        return admits(self.signature, assignment) and holds(self.given, assignment)


def decide(lhs: Any, rhs: Any, given: Sequence[Any] = (), budget: float | None = None) -> Verdict:
    """Return whether lhs = rhs for all sizes and all values of its symbols.

    `lhs`, `rhs`: SymPy expressions (matrices or scalars) or exact numbers; symbols for sizes mean
    every integer from 1 on, and so does every length that is named, as H - 2 heads: what a claim
    presupposes in this way, its counterexample says. Other scalars are real numbers with the signs
    and parities that their symbols declare. `given`: equations that hold besides, as pairs or
    `sympy.Eq`, where a free index means all its values, and inequalities of scalars such as
    `sympy.Ne(a*b, 1)` or `a > 0`. `budget`: how much work may be done before it is given up, 20
    when None, in units of a million steps, which take about a second each. It is work and not time,
    so that the verdict is the same on every machine and under any load.
    Raises ShapeError when shapes do not fit, LanguageError naming what is not in the language; what
    a symbol declares and cannot be honoured (complex, prime) is not.

    >>> from sympy import MatrixSymbol, Symbol
    >>> n = Symbol("n")
    >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
    >>> decide((A * B).T, B.T * A.T).status
    'proved'
    >>> print(decide(A * B, B * A).counterexample)
    n = 2
    A = np.array([[0, 0], [0, 1]])
    B = np.array([[0, 0], [1, 0]])
    # left side 1, right side 0 at row 1, column 0
    """
    units = BUDGET if budget is None else budget
    with Budget(max(units, LEAST)) as work:
        try:
            verdict = _decided(_Claim(lhs, rhs, given))
        except Exhausted:
            verdict = Verdict("undecided", "", None)
        except RecursionError:
            reason = (
                "an expression is nested more deeply than Python can follow "
                f"({sys.getrecursionlimit()} calls): state it with fewer brackets in one another"
            )
            verdict = Verdict("undecided", reason, None)
    verdict.tell(work, units)
    return verdict


def _within(share: float, find: Callable[[], Found], units: float = inf) -> Found | None:
    """Return what is found within a share of what is left, and so many units, else None."""
    try:
        with limited(min(share * steps_left(), units * STEPS)):
            return find()
    except Exhausted:
        return None


def _decided(claim: _Claim, axioms: _Said = ([], {})) -> Verdict:
    facts: list[tuple[Fact, Any, Any]] = [
        (("given", k), x, y) for k, (x, y) in enumerate(claim.given)
    ]
    facts += [one for k, (x, y) in enumerate(claim.given) for one in consequences(k, x, y)]
    facts += [(("axiom", said.axiom, k), said.lhs, said.rhs) for k, said in enumerate(axioms[0])]
    groups = [(claim.lhs, claim.rhs), *[(x, y) for _, x, y in facts]]
    try:
        with limited(READING * steps_left()):
            reading, ((left, right), *equations) = read(claim.signature, *groups)
    except Undecided as obstacle:
        if claim.lhs == claim.rhs:
            same = "both sides are the same expression"
            return Verdict("proved", same, claim, proof=_Proof("same trees"))
        if _same_polynomials(claim):
            return Verdict("proved", FIXED, claim, proof=_Proof("written out"))
        if claim.depths:  # a few trials first: most that is false shows at once
            quick = _refute(claim, 0, str(obstacle), FEW)
            if quick.status == "refuted":
                return quick
            for units, deepest in DEPTH_ROUNDS:
                at_once = _by_induction(claim, units) or _at_some_depth(claim, deepest)
                if at_once is not None:
                    return at_once
        return _refute(claim, 0, str(obstacle))
    rest = difference(left.terms, right.terms)
    if not rest:
        count = len(left.terms)
        terms = "one diagram" if count == 1 else f"{count} diagrams"
        found = f"both sides have the same normal form, {terms}"
        return Verdict("proved", found, claim, proof=_Proof("normal forms", reading))
    if not axioms[0] and (reading.applied or any(map(is_causal_mask, reading.labels))):
        said = _said_by_axioms(claim)
        if said[0]:
            return _decided(claim, said)
    apart = None if claim.given else _within(POLYNOMIALS, lambda: written_out(rest, reading))
    if apart is not None and not apart:
        return Verdict("proved", WRITTEN_OUT, claim, proof=_Proof("written out", reading))
    if facts or reading.inverses or reading.applied:
        relations = [
            relation
            for (fact, _, _), (x, y) in zip(facts, equations, strict=True)
            for relation in relations_of(fact, x, y)
        ]
        proof = _Proof("normal forms", reading, whole=left, axioms=axioms)
        return _under_hypotheses(claim, proof, rest, relations)
    # a coefficient is zero at no more sizes than its degree
    wires = max(len(diagram.sorts) + scalars.degree(c) for diagram, c in rest.items())
    if _same_polynomials(claim):
        return Verdict("proved", FIXED, claim, proof=_Proof("written out", reading))
    return _refute(
        claim,
        wires,
        f"the normal forms differ in {len(rest)} diagrams, but no exact trial told the sides "
        "apart: at fixed sizes two different forms can be equal",
    )


def _by_induction(claim: _Claim, units: float = inf) -> Verdict | None:
    """Return the proof of a claim about every depth, or None where induction does not give it.

    It may take half of what is left of the budget: what is not proved is then tried on numbers.
    """
    return _within(INDUCTION, lambda: _induction(claim), units)


def _induction(claim: _Claim) -> Verdict | None:
    known: dict[tuple[Any, Any], Verdict] = {}  # the proofs that two bodies are equal

    def proved(equation: tuple[Any, Any], *more: tuple[Any, Any]) -> Verdict | None:
        try:  # the last layer may be in no inverse, say, where the language has no such inverse
            verdict = _decided(_Claim(*equation, (*hypotheses, *more)))
        except (LanguageError, ShapeError):
            return None
        return verdict if verdict.status == "proved" else None

    def same(lhs: Any, rhs: Any) -> bool:
        verdict = proved((lhs, rhs))
        if verdict is not None:
            known[lhs, rhs] = verdict
        return verdict is not None

    for depth in claim.depths:
        if key(depth) in claim.assumptions.signs:  # one layer more is of another parity
            continue
        # what is proved for every depth need not presuppose anything of it
        hypotheses = [*claim.given]
        hypotheses += [each for each in claim.inequalities if depth not in each.free_symbols]
        with suppress(RuleError):
            plan = induction(claim.lhs, claim.rhs, claim.given, depth, same)
            base = proved(plan.base)
            step = base and proved(plan.step, plan.hypothesis)
            if base is None or step is None:
                continue
            alike = {e: known[bodies] for e, bodies in plan.alike.items()}
            reason = (
                f"by induction over {depth}: it holds for one layer, and if it holds for {depth} "
                "layers, it does for one more"
            )
            found = InductionProof(plan, base, step, alike)
            return Verdict("proved", reason, claim, proof=_Proof("induction", induction=found))
    return None


def _at_some_depth(claim: _Claim, deepest: int) -> Verdict | None:
    """Return a counterexample with more layers than other sizes, or None where none was found.

    Random sizes are small for the sake of all others, and a claim may fail from some depth on only.
    """
    return _within(DEPTHS, lambda: _deeper_and_deeper(claim, deepest))


def _deeper_and_deeper(claim: _Claim, deepest: int) -> Verdict | None:
    for layers in range(3, deepest + 1):
        for depth in depths_of(claim.lhs, claim.rhs):
            # a fixed index asks for a count that is larger than it
            fixed = {**claim.signature.fixed, depth: layers - 1}
            signature = replace(claim.signature, fixed=fixed)
            draw = claim.draw if claim.given else None
            with suppress(OtimesError):
                trial = search(claim.lhs, claim.rhs, signature, 0, draw, AT_DEPTH, SEED + layers)
                if trial is not None:
                    return Verdict("refuted", DIFFER, claim, trial)
    return None


def _said_by_axioms(claim: _Claim) -> _Said:
    """Return what the axioms say of the functions in a claim; premises stand under its hypotheses.

    A premise speaks of the arguments of a function, so it holds fewer functions than the claim.
    """
    verdicts: dict[tuple[Any, Any], Verdict] = {}

    def proves(lhs: Any, rhs: Any) -> bool:
        try:
            premise = _Claim(lhs, rhs, claim.hypotheses)
            # What a hypothesis says of functions has premises of its own, perhaps those of before.
            premise.within = claim.within | {(claim.lhs, claim.rhs)}
            if (premise.lhs, premise.rhs) in premise.within:
                return False
            with limited(PREMISE * STEPS):
                verdicts[lhs, rhs] = _decided(premise)
        except ShapeError:  # one name for indices of two ranges, each bound in its own function
            return False
        except Exhausted:
            return False
        return verdicts[lhs, rhs].status == "proved"

    sides = [claim.lhs, claim.rhs, *[e for pair in claim.given for e in pair]]
    return instances(sides, proves), verdicts


DIFFER = "the sides differ at exact numbers"
WRITTEN_OUT = "with the sums over numbered indices written out, both sides are the same"
FIXED = "at these sizes both sides are the same polynomials"
FIXED_GIVEN = (
    "at these sizes the entries of the difference are sums of those of the hypotheses times "
    "polynomials"
)


def _same_polynomials(claim: _Claim) -> bool:
    if claim.given:
        return False
    sides = claim.lhs, claim.rhs, claim.signature
    return _within(POLYNOMIALS, lambda: equal_as_polynomials(*sides)) is True


def _multiples(claim: _Claim) -> tuple[Multiple, ...] | None:
    indices = list(inspect(claim.lhs, claim.rhs).indices)
    given = [(*pair, list(inspect(*pair).indices)) for pair in claim.given]
    return follows_as_polynomials(claim.lhs, claim.rhs, given, indices, claim.signature)


def _under_hypotheses(
    claim: _Claim,
    proof: _Proof,
    rest: Terms,
    relations: Sequence[Relation],
) -> Verdict:
    """Decide a claim whose normal forms differ, from equations that hold besides."""
    reading = cast("Interpretation", proof.reading)
    inverses = [relations_of(*equation) for equation in reading.inverse_equations]
    relations = [*relations, *chain.from_iterable(inverses)]
    sizes = claim.signature.sizes
    uses = trial = None
    # Short attempts at both answers before long ones: which it is, is not known beforehand.
    for number, (units, attempts, simple) in enumerate(ROUNDS):
        share = min(units * STEPS, steps_left())
        with limited(min(share, ENTAILMENT * steps_left())):
            assumed = claim.assumptions
            uses = entail(rest, relations, reading.dimensions, sizes, simple, assumed)
        if uses is not None:
            break
        with suppress(OtimesError), limited(share):  # numbers at which a side has no exact value
            trial = search(
                claim.lhs, claim.rhs, claim.signature, 3, claim.draw, attempts, SEED + number
            )
        if trial is not None:
            return Verdict("refuted", DIFFER, claim, trial)
        if number:
            continue
        with limited(STEPS):
            found = _multiples(claim)
        if found is not None:  # no multiple at all where the sides agree without the hypotheses
            proof = _Proof("written out", multiples=found)
            why = FIXED_GIVEN if found else FIXED
            return Verdict("proved", why, claim, proof=proof, conditional=bool(found))
    if uses is not None:
        why = _because([use.relation.fact for use in uses], claim.numbers)
        return Verdict("proved", why, claim, proof=proof._replace(uses=uses), conditional=True)
    return Verdict(
        "undecided",
        "the claim was not found among the consequences of the hypotheses, and no exact trial "
        "that satisfies them told the sides apart",
        claim,
    )


def _because(facts: Sequence[Fact], numbers: Sequence[int]) -> str:
    given = sorted({numbers[fact[1]] for fact in facts if fact[0] == "given"})
    besides = sorted({numbers[fact[1]] for fact in facts if fact[0] in ("turned", "root")})
    named = [f"hypothesis {k + 1}" for k in given]
    named += [f"what hypothesis {k + 1} gives" for k in besides]
    named += [f"the axiom {name}" for name in sorted({f[1] for f in facts if f[0] == "axiom"})]
    named += ["the definition of the inverse"] * any(fact[0] == "inverse" for fact in facts)
    times = "once" if len(facts) == 1 else f"{len(facts)} times in all"
    return f"the difference of the sides is a sum of uses of {', '.join(named)} ({times})"


def _model_note(claim: _Claim) -> str:
    """Say so when no numbers satisfy the hypotheses and give both sides a value: all may follow."""
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
    return (
        "; no numbers were found that satisfy the hypotheses and give both sides an exact value: "
        "it may be that there are none"
    )


def prove(lhs: Any, rhs: Any, given: Sequence[Any] = (), budget: float | None = None) -> Verdict:
    """Return the proof of lhs = rhs, or raise Refuted (with its counterexample) or Undecided."""
    verdict = decide(lhs, rhs, given, budget)
    if verdict.status == "refuted":
        raise Refuted(f"false:\n{verdict.counterexample}", verdict.counterexample)
    if verdict.status == "undecided":
        raise Undecided(verdict.reason)
    return verdict


def _refute(claim: _Claim, wires: int, otherwise: str, attempts: int | None = None) -> Verdict:
    draw = claim.draw if claim.given else None
    try:
        for number in range(SEARCHES if claim.given else 1):  # few draws meet all hypotheses
            seed = SEED + number
            trial = search(claim.lhs, claim.rhs, claim.signature, wires, draw, attempts, seed)
            if trial is not None:
                return Verdict("refuted", DIFFER, claim, trial)
    except OtimesError as no_value:
        return Verdict("undecided", f"{otherwise}; no exact trial is possible: {no_value}", claim)
    note = _model_note(claim) if claim.inequalities else ""
    return Verdict("undecided", otherwise + note, claim)


def _split(given: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...], tuple[int, ...]]:
    """Return the equations of hypotheses, the inequalities, and the places of the equations."""
    equations, compared, numbers = [], [], []
    for number, each in enumerate(given):
        inequalities = inequalities_of(each)
        if inequalities is None:
            equations.append(_hypothesis(each))
            numbers.append(number)
        else:
            compared += inequalities
    return equations, tuple(compared), tuple(numbers)


def _hypothesis(each: Any) -> tuple[sympy.Basic, sympy.Basic]:
    if isinstance(each, sympy.Eq):
        return _expression(each.lhs), _expression(each.rhs)
    if isinstance(each, tuple | list) and len(each) == 2:
        return _expression(each[0]), _expression(each[1])
    raise LanguageError(
        "a hypothesis is a pair (left, right), a sympy.Eq or an inequality such as sympy.Ne(a, 0), "
        f"and {type(each).__name__} {_one_line(each)} was given"
    )


def _expression(side: Any) -> sympy.Basic:
    if isinstance(side, int | Fraction) and not isinstance(side, bool):
        return sympy.Rational(side)
    if isinstance(side, sympy.Basic):
        return side
    if isinstance(side, sympy.MatrixBase):
        return side.as_immutable()
    raise LanguageError(
        f"decide was given {type(side).__name__} {_one_line(side)}: each side is a SymPy "
        "expression, such as MatrixSymbol('A', n, m) * MatrixSymbol('B', m, p)"
    )


def _one_line(given: Any, width: int = 60) -> str:
    if isinstance(given, sympy.Basic):
        return short_text(given, width)
    if isinstance(given, tuple | list):
        text = f"({', '.join(_one_line(each, width) for each in given)})"
    else:
        text = " ".join(repr(given).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _different_shapes(left: Shape | None, right: Shape | None) -> str:
    turned = left is not None and right is not None and same_shape(left, (right[1], right[0]))
    mend = "; did you mean the transpose of one side?" if turned else ""
    return f"the left side is {show_shape(left)}, the right side {show_shape(right)}{mend}"
