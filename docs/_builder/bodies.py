"""What takes long of a theorem's page: diagrams, derivation, symbols, certificate, code.

It does not depend on the entry's number or on other entries, and is kept between builds.
"""

from __future__ import annotations

import re

import chains
import in_browser
import pictures
import prose
import runnable
import symbols
import variants
from derived import derivations
from equations import equation
from evidence import Kept, builder, kept_all, key_of
from otimes.algebra.language.latex import latex
from otimes.proofs.claims import (
    Bound,
    Definition,
    ErrorLaw,
    Method,
    NonIdentity,
    Observation,
    Property,
    Statement,
)
from otimes.proofs.evidence import Report, TheoremReport
from otimes.proofs.render import TEX, hypotheses, named, said_of
from otimes.proofs.theorem import Theorem

SYMBOLS = re.compile(r"[A-Za-z](?:_\w+)?(?: [A-Za-z](?:_\w+)?)*")
"""What is defined, if it is a formula and not a word."""


def bodies(report: Report) -> dict[str, Kept]:
    """Return the body of each entry by name."""
    chains_of = derivations(each.theorem for each in report.theorems)
    asked = {each.theorem.name: (each, chains_of[each.theorem.name]) for each in report.theorems}
    keys = {name: _key(each) for name, (each, _) in asked.items()}
    return kept_all("pages made", keys, body, asked)


def _key(each: TheoremReport) -> str:
    seen = {**each.to_json(), "seconds": None, "from_cache": None}
    return key_of(each.theorem, "body", builder("bodies"), seen)


def body(asked: tuple[TheoremReport, Kept]) -> Kept:
    """Return the parts of a page that take long, as Markdown, from a report and a derivation."""
    report, derivation = asked
    theorem = report.theorem
    if report.proof.status == "error":
        return {"statement": "", "sections": ""}
    drawn = pictures.sides(report)
    table_of_symbols = symbols.text(theorem)
    parts = [
        pictures.diagrams(drawn),
        chains.text(derivation, report.proof.status == "proved" and report.kind == "identity"),
        pictures.indexed(drawn),
        f"## Symbols\n\n{table_of_symbols}" if table_of_symbols else "",
        in_browser.text(theorem),
        variants.text(report),
        runnable.text(theorem),
    ]
    return {
        "statement": displayed(theorem),
        "sections": "\n\n".join(filter(None, parts)),
    }


def displayed(theorem: Theorem) -> str:
    """Return the displayed formula, with its hypotheses below."""
    claim = theorem.claim()
    match claim:
        case Statement():
            shown = equation(latex(claim.lhs), latex(claim.rhs))
        case NonIdentity():
            shown = equation(latex(claim.lhs), latex(claim.rhs), sign=TEX["≠"])
        case Bound():
            shown = equation(latex(claim.smaller), latex(claim.larger), sign=TEX["≤"])
        case Definition():
            symbols_only = SYMBOLS.fullmatch(claim.name)
            name = prose.tex(claim.name) if symbols_only else named(claim.name, TEX)
            shown = equation(name, latex(claim.value), sign=TEX[":="])
        case Property():
            shown = said_of(claim.fact, latex, TEX)
        case ErrorLaw() | Method():
            shown = claim.law
        case Observation():
            return f"Criterion: {prose.markdown(claim.criterion)}."
    parts = [f"$$\n{shown}\n$$"] if shown else []
    if under := hypotheses(claim, latex, TEX):
        assumed = ", ".join(f"${each}$" for each in under)
        parts.append(f"where {assumed}\n{{ .hypotheses }}")
    return "\n\n".join(parts)
