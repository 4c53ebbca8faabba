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
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import sympy

from algebra import certificate as certificates
from algebra import scalars
from algebra.applied import is_causal_mask
from algebra.axioms import Instance, instances
from algebra.entailment import Fact, Relation, Use, consequences, entail, relations_of
from algebra.errors import (
    LanguageError,
    OtimesError,
    Refuted,
    RuleError,
    ShapeError,
    Undecided,
)
from algebra.exact import Assignment, tree_value
from algebra.expansion import Multiple, equal_as_polynomials, follows_as_polynomials
from algebra.induction import Induction, depths_of, induction
from algebra.interpret import Interpretation, read
from algebra.language import key
from algebra.matching import HOLE
from algebra.refute import SEED, Counterexample, Trial, search, shrink
from algebra.satisfy import has_signs, holds, satisfying
from algebra.shape_messages import Shape, show_shape
from algebra.shapes import inspect, inspect_shapes, same_shape, with_ranges
from algebra.signature import Signature
from algebra.text import short_text
from algebra.values import Terms, Value, difference
from algebra.written_out import written_out

if TYPE_CHECKING:
    from algebra.derivation import Derivation

Status = Literal["proved", "refuted", "undecided"]
BUDGET_SECONDS = 20.0
# Rounds under hypotheses: seconds, draws of numbers, and whether only to simplify.
ROUNDS = ((0.03, 4, True), (0.5, 8, True), (1.0, 16, False), (BUDGET_SECONDS, None, False))
FEW = 8  # trials before a proof by induction is tried
SEARCHES = 8  # for numbers that satisfy hypotheses, where normal forms say nothing
PREMISE_SECONDS = 0.5  # for each premise of an axiom


class Verdict:
    """What `decide` found. `.status` is `"proved"`, `"refuted"` or `"undecided"`.

    `.reason` says why in one sentence; `.counterexample` (made small when first asked for) is a
    Counterexample when the status is `refuted`, else None; `.steps` is a chain of named rules from
    one side to the other when the status is `proved` and such a chain was found, else None.
    `.certificate` is what `proofs/replay.py` checks, as data for JSON, when the status is `proved`,
    else None.
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

    @cached_property
    def reason(self) -> str:
        """Why, in one sentence."""
        if self.status != "proved" or self._claim is None or not self._conditional:
            return self._reason
        return self._reason + _model_note(self._claim)

    @cached_property
    def counterexample(self) -> Counterexample | None:
        """The numbers that refute the equation, as small as they could be made."""
        claim = self._claim
        if self._trial is None or claim is None:
            return None
        return shrink(claim.lhs, claim.rhs, claim.signature, self._trial, claim.allows)

    @property
    def used(self) -> tuple[int, ...]:
        """Which hypotheses the proof rests on, counted from 0, whatever was made of them."""
        if self._proof is None:
            return ()
        facts = [use.relation.fact for use in self._proof.uses]
        used = {fact[1] for fact in facts if fact[0] in ("given", "turned", "root")}
        return tuple(sorted(used | {multiple.given for multiple in self._proof.multiples}))

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
        return explain(self._claim.lhs, self._claim.rhs, given=self._claim.given)

    @cached_property
    def certificate(self) -> dict[str, Any] | None:
        """The proof as data that an independent program can check."""
        if self._proof is None or self._claim is None:
            return None
        return _certificate(self._claim, self._proof)

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

    mode: certificates.Mode
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
    """Two sides that are in the language and of one shape, and the hypotheses they stand under."""

    def __init__(self, lhs: Any, rhs: Any, given: Sequence[Any] = ()) -> None:
        self.lhs, self.rhs = _expression(lhs), _expression(rhs)
        self.given = tuple(_hypothesis(each) for each in given)
        sides = [side for pair in self.given for side in pair]
        self.signature, shapes = inspect_shapes(self.lhs, self.rhs, *sides)
        for left, right in zip(shapes[::2], shapes[1::2], strict=True):
            if not same_shape(left, right):
                raise ShapeError(_different_shapes(left, right))
        self.lhs, self.rhs = (with_ranges(side, self.signature) for side in (self.lhs, self.rhs))
        self.given = tuple(
            (with_ranges(left, self.signature), with_ranges(right, self.signature))
            for left, right in self.given
        )

    def draw(self, signature: Signature, *how: Any) -> Assignment | None:
        """Return numbers at which the hypotheses hold, or None if this draw found none."""
        return satisfying(self.given, signature, *how)

    def allows(self, assignment: Assignment) -> bool:
        """Return whether the hypotheses hold at these numbers."""
        return has_signs(self.signature, assignment) and holds(self.given, assignment)


def decide(lhs: Any, rhs: Any, given: Sequence[Any] = (), budget: float | None = None) -> Verdict:
    """Return whether lhs = rhs for all sizes and all values of its symbols.

    `lhs`, `rhs`: SymPy expressions (matrices or scalars) or exact numbers; symbols for sizes mean
    every size from 1 on. `given`: equations that hold besides, as pairs or `sympy.Eq`; a free index
    in one means all its values. `budget`: seconds of processor time after which the search gives up
    (20 when None).
    Raises ShapeError when shapes do not fit, LanguageError naming what is not in the language.

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
    deadline = time.thread_time() + (BUDGET_SECONDS if budget is None else budget)
    try:
        return _decided(_Claim(lhs, rhs, given), deadline)
    except RecursionError:
        reason = (
            "an expression is nested more deeply than Python can follow "
            f"({sys.getrecursionlimit()} calls): state it with fewer brackets in one another"
        )
        return Verdict("undecided", reason, None)


def _decided(claim: _Claim, deadline: float, axioms: _Said = ([], {})) -> Verdict:
    facts: list[tuple[Fact, Any, Any]] = [
        (("given", k), x, y) for k, (x, y) in enumerate(claim.given)
    ]
    facts += [one for k, (x, y) in enumerate(claim.given) for one in consequences(k, x, y)]
    facts += [(("axiom", said.axiom, k), said.lhs, said.rhs) for k, said in enumerate(axioms[0])]
    groups = [(claim.lhs, claim.rhs), *[(x, y) for _, x, y in facts]]
    try:
        reading, ((left, right), *equations) = read(claim.signature, *groups, deadline=deadline)
    except Undecided as obstacle:
        if claim.lhs == claim.rhs:
            same = "both sides are the same expression"
            return Verdict("proved", same, claim, proof=_Proof("same trees"))
        if _same_polynomials(claim):
            return Verdict("proved", FIXED, claim, proof=_Proof("written out"))
        if depths_of(claim.lhs, claim.rhs):  # a few trials first: most that is false shows at once
            quick = _refute(claim, 0, deadline, str(obstacle), FEW)
            at_once = quick if quick.status == "refuted" else _by_induction(claim, deadline)
            if at_once is not None:
                return at_once
        return _refute(claim, 0, deadline, str(obstacle))
    rest = difference(left.terms, right.terms)
    if not rest:
        count = len(left.terms)
        terms = "one diagram" if count == 1 else f"{count} diagrams"
        found = f"both sides have the same normal form, {terms}"
        return Verdict("proved", found, claim, proof=_Proof("normal forms", reading))
    if not axioms[0] and (reading.applied or any(map(is_causal_mask, reading.labels))):
        said = _said_by_axioms(claim, deadline)
        if said[0]:
            return _decided(claim, deadline, said)
    apart = written_out(rest, reading) if not claim.given else None
    if apart is not None and not apart:
        return Verdict("proved", WRITTEN_OUT, claim, proof=_Proof("written out", reading))
    if facts or reading.inverses or reading.applied:
        relations = [
            relation
            for (fact, _, _), (x, y) in zip(facts, equations, strict=True)
            for relation in relations_of(fact, x, y)
        ]
        proof = _Proof("normal forms", reading, whole=left, axioms=axioms)
        return _under_hypotheses(claim, proof, rest, relations, deadline)
    # a coefficient is zero at no more sizes than its degree
    wires = max(len(diagram.sorts) + scalars.degree(c) for diagram, c in rest.items())
    if _same_polynomials(claim):
        return Verdict("proved", FIXED, claim, proof=_Proof("written out", reading))
    return _refute(
        claim,
        wires,
        deadline,
        f"the normal forms differ in {len(rest)} diagrams, but no exact trial told the sides "
        "apart: at fixed sizes two different forms can be equal",
    )


def _by_induction(claim: _Claim, deadline: float) -> Verdict | None:
    """Return the proof of a claim about every depth, or None where induction does not give it.

    It may take half of what is left of the budget: what is not proved is then tried on numbers.
    """
    now = time.thread_time()
    deadline = min(deadline, now + (deadline - now) / 2)
    known: dict[tuple[Any, Any], Verdict] = {}  # the proofs that two bodies are equal

    def proved(equation: tuple[Any, Any], *more: tuple[Any, Any]) -> Verdict | None:
        verdict = _decided(_Claim(*equation, (*claim.given, *more)), deadline)
        return verdict if verdict.status == "proved" else None

    def same(lhs: Any, rhs: Any) -> bool:
        verdict = proved((lhs, rhs))
        if verdict is not None:
            known[lhs, rhs] = verdict
        return verdict is not None

    for depth in depths_of(claim.lhs, claim.rhs):
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


def _said_by_axioms(claim: _Claim, deadline: float) -> _Said:
    """Return what the axioms say of the functions in a claim; premises stand under its hypotheses.

    A premise speaks of the arguments of a function, so it holds fewer functions than the claim.
    """
    verdicts: dict[tuple[Any, Any], Verdict] = {}

    def proves(lhs: Any, rhs: Any) -> bool:
        until = min(deadline, time.thread_time() + PREMISE_SECONDS)
        try:
            premise = _Claim(lhs, rhs, claim.given)
        except ShapeError:  # one name for indices of two ranges, each bound in its own function
            return False
        verdicts[lhs, rhs] = _decided(premise, until)
        return verdicts[lhs, rhs].status == "proved"

    sides = [claim.lhs, claim.rhs, *[e for pair in claim.given for e in pair]]
    return instances(sides, proves), verdicts


WRITTEN_OUT = "with the sums over numbered indices written out, both sides are the same"
FIXED = "at these sizes both sides are the same polynomials"
FIXED_GIVEN = (
    "at these sizes the entries of the difference are sums of those of the hypotheses times "
    "polynomials"
)


def _same_polynomials(claim: _Claim) -> bool:
    if claim.given:
        return False
    return equal_as_polynomials(claim.lhs, claim.rhs, claim.signature) is True


def _multiples(claim: _Claim, deadline: float) -> tuple[Multiple, ...] | None:
    indices = list(inspect(claim.lhs, claim.rhs).indices)
    given = [(*pair, list(inspect(*pair).indices)) for pair in claim.given]
    return follows_as_polynomials(claim.lhs, claim.rhs, given, indices, claim.signature, deadline)


def _under_hypotheses(
    claim: _Claim,
    proof: _Proof,
    rest: Terms,
    relations: Sequence[Relation],
    deadline: float,
) -> Verdict:
    """Decide a claim whose normal forms differ, from equations that hold besides."""
    reading = cast("Interpretation", proof.reading)
    inverses = [relations_of(*equation) for equation in reading.inverse_equations]
    relations = [*relations, *chain.from_iterable(inverses)]
    sizes = claim.signature.sizes
    uses = trial = None
    # Short attempts at both answers before long ones: which it is, is not known beforehand.
    for number, (seconds, attempts, simple) in enumerate(ROUNDS):
        until = min(deadline, time.thread_time() + seconds)
        uses = entail(rest, relations, reading.dimensions, sizes, until, simple)
        if uses is not None:
            break
        with suppress(OtimesError):  # no numbers at which both sides have an exact value
            trial = search(
                claim.lhs, claim.rhs, claim.signature, 3, until, claim.draw, attempts, SEED + number
            )
        if trial is not None:
            return Verdict("refuted", "the sides differ at exact numbers", claim, trial)
        if not number and (found := _multiples(claim, min(deadline, time.thread_time() + 1))):
            proof = _Proof("written out", multiples=found)
            return Verdict("proved", FIXED_GIVEN, claim, proof=proof, conditional=True)
    if uses is not None:
        why = _because([use.relation.fact for use in uses])
        return Verdict("proved", why, claim, proof=proof._replace(uses=uses), conditional=True)
    return Verdict(
        "undecided",
        "the claim was not found among the consequences of the hypotheses, and no exact trial "
        "that satisfies them told the sides apart",
        claim,
    )


def _certificate(claim: _Claim, proof: _Proof) -> dict[str, Any] | None:
    """Return the certificate of a proof, or None for a proof that certificates cannot tell yet."""
    if proof.induction is not None:
        return _by_parts(claim, proof.induction)
    given = _with_limits(claim)
    limits = [ranges for _, _, ranges in given]
    uses: list[certificates.Use | Multiple] = []
    for use in proof.uses:
        fact, at = use.relation.fact, dict(use.context.named)
        around = use.context.diagram
        every = [] if fact[0] in ("inverse", "axiom") else limits[fact[1]]
        if fact[0] == "axiom":
            said = proof.axioms[0][fact[2]]
            every = [*inspect(said.lhs, said.rhs).indices.values()]
            every = [one for one in every if (key(one[0]), at.get(key(one[0]))) not in around.named]
            fact = _axiom(claim, said, every, proof.axioms[1])
        names = [key(index) for index, _ in every]
        wires = iter((*use.context.rows, *use.context.cols))
        legs = [leg or next(wires) for leg in (*use.relation.rows, *use.relation.cols)]
        hole = (HOLE, *legs, *[at[name] for name in names if name in at])
        whole = around._replace(boxes=(*around.boxes, hole))
        uses.append(certificates.Use(fact, use.coefficient, whole, use.divisors))
    uses += proof.multiples
    return certificates.certificate(claim.lhs, claim.rhs, given, uses, proof.reading, proof.mode)


def _axiom(claim: _Claim, said: Instance, every: Sequence[Any], verdicts: _Verdicts) -> Fact:
    """Return an axiom, for all of some indices, as a fact with the proofs of its premises.

    An index that has one value in the claim is another there, so it is called otherwise.
    """
    free = inspect(claim.lhs, claim.rhs).indices
    new = {i: sympy.Symbol(f"{key(i)}'", integer=True) for i, _ in every if key(i) in free}
    verdicts_of = [verdicts[pair] for pair in said.premises]
    if new:
        renamed = [(left.xreplace(new), right.xreplace(new)) for left, right in said.premises]
        verdicts_of = [decide(left, right, claim.given) for left, right in renamed]
    proofs = [verdict.certificate or {} for verdict in verdicts_of]
    subjects = said.subject if isinstance(said.subject, tuple) else (said.subject,)
    limits = [(new.get(index, index), count) for index, count in every]
    return certificates.axiom(said.axiom, [e.xreplace(new) for e in subjects], limits, proofs)


def _by_parts(claim: _Claim, proof: InductionProof) -> dict[str, Any] | None:
    """Return the certificate of a proof by induction: those of its parts; None if one has none."""
    parts = [proof.base.certificate, proof.step.certificate]
    alike = {e: verdict.certificate for e, verdict in proof.alike.items()}
    if None in parts or None in alike.values():
        return None
    return certificates.by_induction(
        claim.lhs, claim.rhs, _with_limits(claim), proof.plan, parts, alike
    )


def _with_limits(claim: _Claim) -> list[tuple[Any, Any, Any]]:
    """Return the hypotheses, each with the indices that it holds for all of."""
    return [(*pair, [*inspect(*pair).indices.values()]) for pair in claim.given]


def _because(facts: Sequence[Fact]) -> str:
    given = sorted({fact[1] for fact in facts if fact[0] == "given"})
    besides = sorted({fact[1] for fact in facts if fact[0] in ("turned", "root")})
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
        numbers = claim.draw(claim.signature, draw, largest, 3, claim.signature.roots)
        if numbers is None:
            continue
        with suppress(OtimesError):  # an inverse that does not exist, an irrational constant
            tree_value(claim.lhs, numbers)
            tree_value(claim.rhs, numbers)
            return ""
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


def _refute(
    claim: _Claim, wires: int, deadline: float, otherwise: str, attempts: int | None = None
) -> Verdict:
    draw = claim.draw if claim.given else None
    try:
        for number in range(SEARCHES if claim.given else 1):  # few draws meet all hypotheses
            seed = SEED + number
            trial = search(
                claim.lhs, claim.rhs, claim.signature, wires, deadline, draw, attempts, seed
            )
            if trial is not None:
                return Verdict("refuted", "the sides differ at exact numbers", claim, trial)
    except OtimesError as no_value:
        return Verdict("undecided", f"{otherwise}; no exact trial is possible: {no_value}", claim)
    return Verdict("undecided", otherwise, claim)


def _hypothesis(each: Any) -> tuple[sympy.Basic, sympy.Basic]:
    if isinstance(each, sympy.Eq):
        return _expression(each.lhs), _expression(each.rhs)
    if isinstance(each, tuple | list) and len(each) == 2:
        return _expression(each[0]), _expression(each[1])
    raise LanguageError(
        f"a hypothesis is a pair (left, right) or a sympy.Eq, and {type(each).__name__} "
        f"{_one_line(each)} was given"
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
