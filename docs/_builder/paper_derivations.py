"""The derivations of papers as Markdown: chains with the rules of each link, and near misses."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from chains import rule_link
from equations import equation
from evidence import CACHE, Kept, builder, kept_all
from otimes.algebra.explain.derivation import Derivation
from otimes.algebra.language.latex import latex
from otimes.algebra.verdict import decide
from otimes.proofs.paper_derivations import DERIVATIONS, Miss, PaperDerivation

INTRODUCTION = (
    "One of the [derivations of papers](index.md). Every link is proved for all sizes, and the"
    " [rules](../rules.md) that lead to an expression stand above it."
)


def text() -> str:
    """Return the list of the derivations, with their sources."""
    return "\n".join(
        f"- [{each.title}]({name}.md): {each.source}" for name, each in DERIVATIONS.items()
    )


def pages() -> dict[str, tuple[str, str]]:
    """Return the title and the Markdown of each page by its path."""
    keys = {
        name: CACHE.key("derivation of a paper", builder("paper_derivations"), name)
        for name in DERIVATIONS
    }
    made = kept_all("derivations of papers", keys, page, {name: name for name in DERIVATIONS})
    return {
        f"derivations/{name}.md": (DERIVATIONS[name].title, str(each["text"]))
        for name, each in made.items()
    }


def page(name: str) -> Kept:
    """Return the Markdown of one derivation."""
    each: PaperDerivation = DERIVATIONS[name]
    parts = [f"# {each.title}", INTRODUCTION, each.prose, f"Source: {each.source}."]
    if each.given:
        assumed = ", ".join(f"${latex(left)} = {latex(right)}$" for left, right in each.given)
        parts.append(f"where {assumed}\n{{ .hypotheses }}")
    parts.append(f"$$\n{latex(each.chain[0])}\n$$")
    for before, after in pairwise(each.chain):
        parts.append(_link(before, after, each.given))
    parts.append("## What is easily taken for it\n\nFalse, each with a counterexample:")
    parts += map(_miss, each.misses)
    return {"text": "\n\n".join(parts) + "\n"}


def _link(before: Any, after: Any, given: tuple[Any, ...]) -> str:
    verdict = decide(before, after, given)
    steps = verdict.steps
    shown = "" if steps is None else ", ".join(map(rule_link, _rules(steps)))
    by = f"by {shown}" if shown else verdict.reason
    if steps is not None and steps.depth is not None:
        by = f"by induction over ${latex(steps.depth)}$: {shown}"
    return f"{verdict.status}, {by}\n{{ .rule }}\n\n$$\n= {latex(after)}\n$$"


def _rules(steps: Derivation) -> list[str]:
    """Return the names of the rules of a derivation, each once, in their order."""
    return list(dict.fromkeys(step.rule for step in steps))


def _miss(miss: Miss) -> str:
    status = decide(miss.lhs, miss.rhs, miss.given).status
    shown = equation(latex(miss.lhs), latex(miss.rhs))
    return f"{miss.says[0].upper()}{miss.says[1:]} ({status}):\n\n$$\n{shown}\n$$"
