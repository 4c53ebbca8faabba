"""Attempts at a proof of an equation of a document: read in some way, under some hypotheses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import Name, Node, is_constant, walk
from otimes.algebra.notation.typed import Elaborated
from otimes.algebra.verdict import Verdict, decide
from otimes.proofs.documents.context import Definition
from otimes.proofs.documents.hypotheses import Hypothesis

BUDGET = 4.0  # units of work for one equation
TRIAL = 0.5  # units for an attempt: a hypothesis, an edit


def attempted(
    lhs: Node,
    rhs: Node,
    given: Sequence[Hypothesis],
    symbols: Symbols,
    budget: float = BUDGET,
) -> tuple[Verdict | None, str]:
    """Return the verdict under hypotheses, or None where they cannot be stated together."""
    terms = [lhs, rhs]
    for hypothesis in given:
        terms += [hypothesis.lhs, hypothesis.rhs]
    starts = range(2, len(terms), 2)
    try:
        read = elaborate(terms, symbols, starts=starts)
        pairs = [sympy.Eq(*read.terms[k : k + 2], evaluate=False) for k in starts]
        if any(isinstance(pair, sympy.logic.boolalg.BooleanAtom) for pair in pairs):
            return None, ""
        units = TRIAL if given else budget
        verdict = decide(read.terms[0], read.terms[1], given=pairs, budget=units)
    except OtimesError:
        return None, ""
    return verdict, shown(read)


def is_proved(lhs: Node, rhs: Node, symbols: Symbols, budget: float = BUDGET) -> bool:
    """Return whether an equation is proved without hypotheses, within a budget."""
    verdict, _ = attempted(lhs, rhs, (), symbols, budget)
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
