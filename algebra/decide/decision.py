"""The records of decisions and of their proofs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import sympy

from otimes.algebra.decide.axiom_statements import Instance
from otimes.algebra.decide.case_splits import Split
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.counterexample import Counterexample, Trial
from otimes.algebra.decide.entailment import Use
from otimes.algebra.decide.induction import Induction
from otimes.algebra.diagrams.sums import DiagramSum
from otimes.algebra.evaluate.polynomials import Multiple
from otimes.algebra.reading.interpretation import Interpretation

Status = Literal["proved", "refuted", "undecided"]
Mode = Literal[
    "normal forms",
    "written out",
    "same trees",
    "induction",
    "in parts",
    "layers as they are",
    "at a position",
    "an instance",
]


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a claim, with its proof or counterexample.

    `trial`: the numbers that refute it, a Counterexample if they are small already, or a function
    that returns it where the arrays are large. `proof`: the
    proof. `conditional`: whether the proof uses equations, which may be unsatisfiable. `strategy`:
    the name of the strategy that decided. `work`: the work units of the decision. `lemmas`: the
    decisions on the lemmas that were given; `cases` those on the cases of a free index, this one
    the first of them; `split` says of which values each is. `values`: what symbols of the claim are
    in the case that is refuted.
    """

    status: Status
    reason: str
    claim: Claim | None = None
    trial: Trial | Counterexample | Callable[[], Counterexample] | None = None
    proof: Proof | None = None
    conditional: bool = False
    strategy: str = ""
    work: int = 0
    lemmas: tuple[Decision, ...] = ()
    cases: tuple[Decision, ...] = ()
    values: tuple[Mapping[sympy.Symbol, Any], ...] = ()
    split: Split | None = None


Axioms = tuple[Sequence[Instance], dict[tuple[Any, Any], Decision]]
"""Instances of axioms, and the decisions on their premises."""


class Proof(NamedTuple):
    """A proof of a claim.

    `uses` are multiples of hypotheses, axioms and definitions whose sum is the difference of the
    normal forms that `reading` gave; `multiples` the same for polynomials in the entries. `whole`
    is the left side as it was read.
    """

    mode: Mode
    reading: Interpretation | None = None
    uses: tuple[Use, ...] = ()
    whole: DiagramSum | None = None
    multiples: tuple[Multiple, ...] = ()
    induction: InductionProof | None = None
    axioms: Axioms = ([], {})
    parts: ProofInParts | None = None
    layered: LayeredProof | None = None
    position: PositionProof | None = None
    instance: tuple[Decision, dict[str, Any]] | None = None  # of a lemma, and the sizes put in


class ProofInParts(NamedTuple):
    """A proof of a claim that follows from another, `whole`.

    There equals stand for equals: each of `equal` is a chain of expressions, from a part of the
    claim to what is in its place, with the proofs that each equals the next. Or there any matrices
    stand for parts: `any_for` are the matrices, each with its part.
    """

    whole: Decision
    equal: tuple[tuple[tuple[Any, ...], tuple[Decision, ...]], ...] = ()
    any_for: tuple[tuple[Any, Any], ...] = ()


class InductionProof(NamedTuple):
    """A proof for every depth: the two claims of the induction, and their proofs.

    `alike` are proofs that expressions with one opaque name have equal bodies.
    """

    plan: Induction
    base: Decision
    step: Decision
    alike: dict[Any, Decision]


class LayeredProof(NamedTuple):
    """A proof in which each product over layers is replaced by a matrix with known lemmas."""

    plan: Any
    decision: Decision


class PositionProof(NamedTuple):
    """A proof of a claim at a free index i, by induction over the number n of its values.

    At the last of n + 1 positions the claim is `end` for n + `shift` positions. `start` proves it
    for one position, where `end` does not. `first` is the claim for n positions, where i has n + 1
    values.
    """

    index: Any
    depth: Any
    shift: int
    end: Decision
    start: Decision | None
    first: Claim | None
