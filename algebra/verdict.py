"""Verdicts: a decision with its counterexample, its chain of steps and its certificate.

The steps, the certificate and the reason are computed when they are first read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from html import escape
from typing import Any, ClassVar, NamedTuple

import sympy

from otimes.algebra.budget import STEPS, Budget, steps_done
from otimes.algebra.decide.admissible import presupposed, presupposed_by_sums
from otimes.algebra.decide.case_splits import as_data
from otimes.algebra.decide.certificate import SCHEMA, certificate_of
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.counterexample import Counterexample, shrink
from otimes.algebra.decide.decide import decision
from otimes.algebra.decide.decision import Decision, Proof, Status
from otimes.algebra.decide.display import counterexample_html, counterexample_latex
from otimes.algebra.decide.entailment import Use
from otimes.algebra.decide.nonnegative import under_nonnegative
from otimes.algebra.decide.trials import may_be_undefined, note_on_models
from otimes.algebra.errors import LanguageError, OtimesError, Refuted, ShapeError, Undecided
from otimes.algebra.explain.derivation import Derivation
from otimes.algebra.explain.instances import with_instances
from otimes.algebra.explain.search import explain
from otimes.algebra.explain.undecided import obstacles
from otimes.algebra.facts.equations import Need, stated, usual_hypotheses
from otimes.algebra.hints import Hinting
from otimes.algebra.language.latex import latex
from otimes.algebra.language.signature import Signature
from otimes.algebra.notation.text import read_claim

FOLDED = 2.0  # units for steps between sides in which definitions are not unfolded
MODEL = 2.0  # units for finding numbers at which the hypotheses of a proof hold
NEED, NEEDED = 0.3, 10.0  # units for trying one more hypothesis, and for all of them
PRINTED = 0.2  # units for all of them, where a verdict is only printed


class Verdict(Hinting):
    """What `decide` found. `.status` is `"proved"`, `"refuted"` or `"undecided"`.

    `.reason` says why, and of an undecided claim what is left and what would settle it.
    `.counterexample`, made small when first asked for, is a
    Counterexample when the status is `refuted`, else None. When the status is `proved`, `.steps` is
    a chain of named rules from one side to the other, None where none was found, and `.certificate`
    is what `proofs/replay.py` checks, as data for JSON. `.strategy` names
    the way in which it was found, one of `decide.STRATEGIES`; `.work` is how many steps it took.
    A verdict has no truth value: `assert decide(lhs, rhs)` raises OtimesError.
    """

    MEANT: ClassVar = {
        "proved": ".status == 'proved'",
        "is_proved": ".status == 'proved'",
        "refuted": ".status == 'refuted'",
        "proof": ".steps, a chain of named rules, or .certificate",
        "needs": ".would_need",
        "why": ".reason",
    }

    def __init__(self, decision: Decision, places: Sequence[int] | None = None) -> None:
        self._decision = decision
        self._places = places  # of each hypothesis, the number of that of the user
        self._claim = decision.claim
        self._proof = decision.proof
        self.status: Status = decision.status
        self.strategy = decision.strategy
        self.work = decision.work

    @property
    def lemmas(self) -> tuple[Verdict, ...]:
        """The verdicts on the lemmas that were given, each with its own certificate."""
        return tuple(map(Verdict, self._decision.lemmas))

    @property
    def cases(self) -> tuple[Verdict, ...]:
        """The verdicts on the cases of a free index, such as i = 0, if it was proved by these."""
        return tuple(
            map(Verdict, (replace(one, cases=(), split=None) for one in self._decision.cases))
        )

    @cached_property
    def reason(self) -> str:
        """Why; of what is undecided, also what stands in the way and what would settle it."""
        decision = self._decision
        if self.status == "undecided" and self._claim is not None:
            return "; ".join(filter(None, (decision.reason, *obstacles(self._claim))))
        if self.status != "proved" or self._claim is None:
            return decision.reason
        lengths = [str(each) for each in self.presupposes]
        said = [decision.reason, *(["it presupposes " + " and ".join(lengths)] if lengths else [])]
        if decision.conditional or may_be_undefined(self._claim):
            with Budget(MODEL) as work:
                said[0] += note_on_models(self._claim)
            said.append(work.warning("this"))
        return "; ".join(filter(None, said))

    @cached_property
    def counterexample(self) -> Counterexample | None:
        """The numbers that refute the equation, as small as they could be made."""
        claim, trial = self._claim, self._decision.trial
        if trial is None or claim is None:
            return None
        if callable(trial):
            trial = trial()
        if not isinstance(trial, Counterexample):
            defined = claim.defined
            how = (claim.completed, defined) if defined else ()
            sides = claim.lhs, claim.rhs, claim.signature
            trial = shrink(*sides, trial, claim.allows, claim.given, *how)
        found = trial.with_symbols(claim.origin)
        found = found.of_claim(claim.shown, claim.signature.tensors, claim.origin)
        for values in self._decision.values:
            found = found.outside(values)
        return found

    @property
    def presupposes(self) -> tuple[Any, ...]:
        """The inequalities of sizes without which the claim names a length below 1."""
        if self._claim is None:
            return ()
        signature, asked = self._claim.signature, self._claim.asked[:2]
        return (*presupposed(signature), *presupposed_by_sums(asked, signature))

    @property
    def used(self) -> tuple[int, ...]:
        """The equations of the hypotheses that the proof uses, by their positions from 0.

        Inequalities are not counted: only the search for a proof asks for them.
        """
        if self._proof is None:
            return ()
        if self._claim is None:
            return ()
        places = self._places
        numbers = {k for k in _used(self._claim, self._proof) if k >= 0}  # those of the user
        return tuple(sorted(numbers if places is None else {places[k] for k in numbers}))

    @cached_property
    def would_need(self) -> tuple[Need, ...]:
        """The usual hypotheses under each of which the claim is true, the smallest first.

        Each of those in `usual_hypotheses` was tried, beside the hypotheses that are given. Empty
        if the claim was proved, or if none of them suffices. `needed.given` can be given to
        `decide`.

        >>> from sympy import MatrixSymbol, Symbol
        >>> n = Symbol("n")
        >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
        >>> [str(need) for need in decide(A * B, B * A).would_need]
        ['A is diagonal and B is diagonal', 'A commutes with B', 'A times B is the identity', \
'B times A is the identity']
        """
        return self._needs(NEEDED)

    def _needs(self, units: float) -> tuple[Need, ...]:
        """Return the hypotheses of `would_need` that a search with so many units of work finds."""
        claim = self._claim
        if self.status == "proved" or claim is None:
            return ()
        found: list[Need] = []
        start = steps_done()
        for need in usual_hypotheses(claim.lhs, claim.rhs, claim.signature):
            if steps_done() - start > units * STEPS:
                break
            if any(set(other.given) < set(need.given) for other in found if other.given):
                continue  # less suffices
            try:
                tried = _decide(need.lhs, need.rhs, (*claim.hypotheses, *need.given), NEED)
            except ShapeError:
                continue  # the hypotheses have not the sizes that this need asks for
            if tried.status == "proved" and "no numbers were found" not in tried.reason:
                found.append(need)
        return tuple(found)

    @property
    def holds_if(self) -> str:
        """The first hypotheses of `would_need` in words, if the claim was refuted; else "".

        A verdict shows it, so it searches less than `would_need`.

        >>> decide("A A = A", shapes="A: n n").holds_if
        'it holds if A is a projection'
        """
        said = [str(need) for need in self._needs(PRINTED)] if self.status == "refuted" else []
        return f"it holds if {', or if '.join(said)}" if said else ""

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
        if self._proof is None or self._claim is None:
            return None
        if self._proof.induction is not None:
            plan, _, step, _ = self._proof.induction
            found = Verdict(step).steps
            return found and replace(found, depth=plan.depth, opaque=plan.named)
        if self._proof.position is not None:  # as at the last position
            return Verdict(self._proof.position.end).steps
        if self._proof.layered is not None:
            found = Verdict(self._proof.layered.decision).steps
            if found:  # else the products are equal layer by layer
                return replace(found, opaque=self._proof.layered.plan.named)
        claim = self._claim
        with suppress(LanguageError):  # a root that only an inequality allows to take apart
            if claim.folded is not None:  # as it was stated, with rotations for their entries
                lhs, rhs, *given = claim.folded
                found = explain(lhs, rhs, FOLDED, tuple(given))
                if found is not None:
                    return found
            return explain(claim.lhs, claim.rhs, given=with_instances(claim))
        return None

    @cached_property
    def certificate(self) -> dict[str, Any] | None:
        """The proof as data that an independent program can check."""
        if self._proof is None or self._claim is None:
            return None
        return _certified(self._decision)

    def __bool__(self) -> bool:
        """Raise OtimesError: there are three outcomes, of which none is a truth value."""
        raise OtimesError(
            f"this verdict is {self.status!r}: a verdict has no truth value. Compare its status, "
            "as in decide(lhs, rhs).status == 'proved', or call prove, which raises otherwise"
        )

    def __repr__(self) -> str:
        return f"<{self.status}: {self.reason}>"

    def __str__(self) -> str:
        """Return the status and why; of what is refuted, also under which hypotheses it holds."""
        return f"<{self.status}: {'; '.join(filter(None, (self.reason, self.holds_if)))}>"

    def _sides(self) -> str:
        """Return the claim as TeX."""
        claim = self._claim
        if claim is None:
            return ""
        sign = r"\neq" if self.status == "refuted" else "="
        return f"{latex(claim.lhs)} {sign} {latex(claim.rhs)}"

    def latex(self) -> str:
        """Return the steps of the proof as TeX; without them the claim, and the counterexample.

        To be set in display math, as in `$$…$$`.
        """
        if self.steps is not None and len(self.steps):
            return self.steps.latex()
        found = self.counterexample
        rows = [self._sides(), *([counterexample_latex(found)] if found else [])]
        return "\n\\qquad\n".join(filter(None, rows))

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def _repr_html_(self) -> str:
        """Return the claim, its status and why; then the steps or the counterexample."""
        parts = [f"<div><b>{self.status}</b>: {escape(self.reason)}</div>"]
        if sides := self._sides():
            parts.append(f"<div>$$ {escape(sides)} $$</div>")
        if self.counterexample is not None:
            parts.append(counterexample_html(self.counterexample))
            if self.holds_if:
                parts.append(f"<div>{escape(self.holds_if)}</div>")
        elif self.steps is not None and len(self.steps):
            parts.append(self.steps._repr_html_())
        return "".join(parts)


def _used(claim: Claim, proof: Proof) -> set[int]:
    """Return the hypotheses that a proof uses, and the proofs of the premises of its axioms."""
    if proof.parts is not None:
        whole = proof.parts.whole
        assert whole.claim is not None
        assert whole.proof is not None
        return {claim.numbers[k] for k in _used(whole.claim, whole.proof)}
    if proof.position is not None or proof.instance is not None:
        return {number for number in claim.numbers if number >= 0}
    facts = [use.relation.fact for use in proof.uses]
    used = {fact[1] for fact in facts if fact[0] in ("given", "turned", "root", "shifted", "last")}
    used |= {multiple.given for multiple in proof.multiples}
    found = {claim.numbers[k] for k in used} - {-1}
    instances, premises = proof.axioms
    for said in {fact[2] for fact in facts if fact[0] == "axiom"}:
        for premise in instances[said].premises:
            proved = premises[premise]
            if proved.claim is not None and proved.proof is not None:
                found |= _used(proved.claim, proved.proof)
    return found


class Derived(NamedTuple):
    """A conditional proof in which numbers can be substituted.

    lhs − rhs is the sum of `uses`, each a coefficient times a context of `reading`, with a
    hypothesis of `given` in its hole; `whole` is the left side, whose legs they all have.
    """

    signature: Signature
    given: tuple[tuple[Any, Any], ...]
    reading: Any
    whole: Any
    uses: tuple[Use, ...]


def _certified(decision: Decision) -> dict[str, Any]:
    """Return the certificate of a proof, or those of its cases."""
    if decision.split is not None:
        return {"schema": SCHEMA, **as_data(decision.split, _certified)}
    return certificate_of(decision.claim, decision.proof)


def decide(
    lhs: Any,
    rhs: Any = ...,
    given: Sequence[Any] = (),
    budget: float | None = None,
    *,
    shapes: str | None = None,
    lemma: Any = (),
) -> Verdict:
    """Return the verdict on lhs = rhs, for all sizes and all values of its symbols.

    `decide(sympy.Eq(lhs, rhs))` asks the same. `lhs`, `rhs`: SymPy expressions (matrices or
    scalars) or exact numbers. A size is any integer from 1 on, and so is every length that is made
    of sizes: a claim with a sum over H - 2 heads is about H ≥ 3, which `.presupposes` says.
    Other scalars are real numbers with the signs and parities that their symbols declare.
    `given`: equations that hold besides, as pairs or `sympy.Eq`, where a free index means all its
    values; inequalities of scalars such as `sympy.Ne(a*b, 1)` or `a > 0`; and properties of
    matrices, as `Fact`, `attention_pattern(A)` or SymPy's `Q.orthogonal(P)`. `budget`: how much
    work may be done before it is given up, 4 when None, in units of a million steps, which take
    about a second each. It is work and not time, so that the verdict is the same on every machine
    and under any load.
    `lemma`: one equation, or several, that may be used in the proof once they are proved
    themselves; one about L layers holds for every number of them, so that it may be used for the
    first L of L + 1. `.lemmas` are the verdicts on them.
    Sides, hypotheses and lemmas may be strings in LaTeX or Unicode, whose symbols `shapes` declares
    (see `parse`); one string may be a whole equation.
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
    >>> decide("(A ⊗ B)(C ⊗ D) = A C ⊗ B D").status
    'proved'
    >>> decide("A (X + 𝟏 b)", "A X + 𝟏 b", ["A 1 = 1"], shapes="A: n n, X: n d, b: 1 d").status
    'proved'
    """
    if isinstance(lhs, sympy.Eq):
        lhs, rhs, given = _sides(lhs, rhs, given)
    given = [given] if isinstance(given, str | Need) else given
    hypotheses = given if isinstance(given, Sequence) else ()
    lemmas = _equations(lemma)
    if any(isinstance(each, str) for each in (lhs, rhs, *hypotheses, *lemmas)):
        every = [*given, *lemmas]
        lhs, rhs, every = read_claim(lhs, None if rhs is ... else rhs, every, shapes)
        given, lemmas = every[: len(every) - len(lemmas)], every[len(every) - len(lemmas) :]
    lhs, rhs, given = _sides(lhs, rhs, given)
    return _decide(lhs, rhs, given, budget, lemmas)


def _equations(lemma: Any) -> list[Any]:
    """Return one lemma, or several, as a list."""
    pair = isinstance(lemma, tuple) and len(lemma) == 2
    one = isinstance(lemma, str | sympy.Eq) or (
        pair and not any(isinstance(each, str | sympy.Eq | tuple | list) for each in lemma)
    )
    return [lemma] if one else list(lemma)


def _decide(
    lhs: Any, rhs: Any, given: Any, budget: float | None, lemmas: Sequence[Any] = ()
) -> Verdict:
    said = stated(given)
    found = decision(lhs, rhs, said.given, budget, lemmas)
    return Verdict(under_nonnegative(found, said.nonnegative), said.places)


def _sides(lhs: Any, rhs: Any, given: Any) -> tuple[Any, Any, Any]:
    """Return both sides and the hypotheses, where the claim may be a `sympy.Eq`."""
    if isinstance(lhs, sympy.Eq):
        if rhs is not ... and not given:
            given = rhs
        elif rhs is not ...:
            raise LanguageError("decide was given an equation and another side: give one of them")
        return lhs.lhs, lhs.rhs, given
    if rhs is ...:
        evaluated = lhs in (sympy.true, sympy.false, True, False)
        why = "SymPy has evaluated the equation" if evaluated else "there is no right side"
        raise LanguageError(f"decide was given {lhs} alone: {why}; write decide(lhs, rhs)")
    return lhs, rhs, given


def prove(
    lhs: Any,
    rhs: Any = ...,
    given: Sequence[Any] = (),
    budget: float | None = None,
    *,
    shapes: str | None = None,
    lemma: Any = (),
) -> Verdict:
    """Return the proof of lhs = rhs, or raise Refuted (with its counterexample) or Undecided.

    The arguments are those of `decide`.
    """
    verdict = decide(lhs, rhs, given, budget, shapes=shapes, lemma=lemma)
    if verdict.status == "refuted":
        raise Refuted(f"false:\n{verdict.counterexample}", verdict.counterexample, verdict)
    if verdict.status == "undecided":
        raise Undecided(verdict.reason)
    return verdict
