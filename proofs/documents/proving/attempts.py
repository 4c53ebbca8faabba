"""Attempts at a proof of an equation of a document: read in some way, under some hypotheses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import sympy

from otimes.algebra.budget import STEPS
from otimes.algebra.decide.decision import Decision
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.slices import AS_COLUMN, AS_ROW
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import Name, Node, is_constant, walk
from otimes.algebra.notation.typed import Elaborated, Undeclared
from otimes.algebra.verdict import Verdict
from otimes.proofs.documents.proving.questions import decide
from otimes.proofs.documents.symbols.context import Definition
from otimes.proofs.documents.symbols.hypotheses import Hypothesis

BUDGET = 4.0  # units of work for one equation
TRIAL = 0.5  # units for an attempt: a hypothesis, an edit
ALL_TRIALS = 2.5  # units for all attempts under hypotheses at one equation
LEAST = 0.02  # units that an attempt counts at least
OWN = "was taken as a number of its own"
OPEN = "a norm or a function is not in the language"
SPENT = "the work for hypotheses of one equation is used up"

_left: ContextVar[list[float] | None] = ContextVar("left", default=None)


@contextmanager
def one_equation() -> Iterator[None]:
    """Share `ALL_TRIALS` among the attempts under hypotheses that are made within."""
    token = _left.set([ALL_TRIALS]) if _left.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _left.reset(token)


def attempted(
    lhs: Node,
    rhs: Node,
    given: Sequence[Hypothesis],
    symbols: Symbols,
    budget: float = BUDGET,
    certain: bool = False,
) -> tuple[Verdict | None, str]:
    """Return the verdict under hypotheses, or None where they cannot be stated together.

    `certain`: None, too, where a part of it is not in the language, as many a norm.
    """
    terms = [lhs, rhs]
    for hypothesis in given:
        terms += [hypothesis.lhs, hypothesis.rhs]
    starts = range(2, len(terms), 2)
    try:
        read = elaborate(terms, symbols, starts=starts)
        if certain and read.doubts:
            return None, ""
        pairs = [sympy.Eq(*read.terms[k : k + 2], evaluate=False) for k in starts]
        if any(isinstance(pair, sympy.logic.boolalg.BooleanAtom) for pair in pairs):
            return None, ""
        if given:
            verdict = _decided(read.terms, pairs)
        else:
            verdict = decide(read.terms[0], read.terms[1], budget=budget)
        if verdict.status == "refuted" and any(OWN in doubt for doubt in read.doubts):
            verdict = Verdict(Decision("undecided", OPEN))  # ‖x‖ is no number apart from x
        turned = sorted({each for each in read.doubts if each.endswith((AS_ROW, AS_COLUMN))})
        if turned:
            verdict = Verdict(Decision("undecided", turned[0]))
        return verdict, shown(read)
    except Undeclared:
        return _on_either_side(lhs, rhs, given, symbols, budget, certain)
    except OtimesError:
        return None, ""


def _on_either_side(
    lhs: Node,
    rhs: Node,
    given: Sequence[Hypothesis],
    symbols: Symbols,
    budget: float,
    certain: bool,
) -> tuple[Verdict | None, str]:
    """Return a proof where all vectors are columns if there is one where they are rows, too."""
    found: tuple[Verdict | None, str] = (None, "")
    for side in ("row", "column") if not symbols.side else ():
        trial = symbols.copy()
        trial.side = side
        found = attempted(lhs, rhs, given, trial, budget, certain)
        if found[0] is None or found[0].status != "proved":
            return None, ""
    return found


def _decided(terms: Sequence[Any], given: Sequence[Any]) -> Verdict:
    """Return the verdict under hypotheses, "undecided" if the work for an equation is used up."""
    left = _left.get()
    if left is not None and left[0] < LEAST:
        return Verdict(Decision("undecided", SPENT))
    units = TRIAL if left is None else min(TRIAL, left[0])
    verdict = decide(terms[0], terms[1], given=given, budget=units)
    if left is not None:
        left[0] -= max(LEAST, verdict.work / STEPS)
    return verdict


def is_proved(
    lhs: Node,
    rhs: Node,
    symbols: Symbols,
    budget: float = BUDGET,
    given: Sequence[Hypothesis] = (),
) -> bool:
    """Return whether an equation is proved under hypotheses, within a budget."""
    verdict, _ = attempted(lhs, rhs, given, symbols, budget)
    return verdict is not None and verdict.status == "proved"


def shown(read: Elaborated) -> str:
    """Return the statement as one line of Unicode."""
    return f"{unicode_text(read.terms[0])} = {unicode_text(read.terms[1])}"


def symbols_in(node: Node) -> list[Name]:
    """Return the symbols of a term that can stand for anything."""
    return [
        e
        for e in walk(node)
        if isinstance(e, Name) and e.base not in ("I", "Id", "tr", "Tr") and not is_constant(e)
        and (len(e.base) < 3 or e.base[0] == "\\")
    ]  # fmt: skip


def named(used: Mapping[str, Definition]) -> str:
    """Return which definitions are substituted, each with its line."""
    return "; ".join(f"{text} as on line {d.line}" for text, d in sorted(used.items()))
