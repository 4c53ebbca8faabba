"""The derivations of papers as Markdown: chains with the rules of each link, and near misses."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from equations import equation
from evidence import kept
from otimes.algebra.explain.derivation import Derivation
from otimes.algebra.language.latex import latex
from otimes.algebra.verdict import decide
from otimes.proofs.paper_derivations import DERIVATIONS, Miss, PaperDerivation
from words import code


def text() -> str:
    """Return a section for each derivation."""
    return "\n\n".join(
        kept("derivation", name, make=partial(_section, name, each))
        for name, each in DERIVATIONS.items()
    )


def _section(name: str, each: PaperDerivation) -> str:
    parts = [f"## {each.title} {{ #{name} }}", each.prose, f"Source: {each.source}."]
    if each.given:
        assumed = ", ".join(f"${latex(left)} = {latex(right)}$" for left, right in each.given)
        parts.append(f"where {assumed}\n{{ .hypotheses }}")
    parts.append(f"$$\n{latex(each.chain[0])}\n$$")
    for before, after in pairwise(each.chain):
        parts.append(_link(before, after, each.given))
    parts.append("False, each with a counterexample:")
    parts.append("\n".join(f"- {_miss(miss)}" for miss in each.misses))
    return "\n\n".join(parts)


def _link(before: Any, after: Any, given: tuple[Any, ...]) -> str:
    verdict = decide(before, after, given)
    steps = verdict.steps
    shown = "" if steps is None else ", ".join(map(code, _rules(steps)))
    by = f"by {shown}" if shown else verdict.reason
    if steps is not None and steps.depth is not None:
        by = f"by induction over ${latex(steps.depth)}$: {shown}"
    return f"{verdict.status}, {by}\n{{ .rule }}\n\n$$\n= {latex(after)}\n$$"


def _rules(steps: Derivation) -> list[str]:
    """Return the names of the rules of a derivation, each once, in their order."""
    return list(dict.fromkeys(step.rule for step in steps))


def _miss(miss: Miss) -> str:
    status = decide(miss.lhs, miss.rhs, miss.given).status
    return f"{miss.says} ({status}): ${equation(latex(miss.lhs), latex(miss.rhs), sign='=')}$"
