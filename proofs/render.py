"""Printing of claims, as TeX for a page or as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from otimes.algebra.facts import PROPERTIES, Fact
from otimes.algebra.language.linear import Family
from otimes.proofs.claims import (
    Bound,
    Claim,
    Definition,
    Described,
    ErrorLaw,
    Method,
    NonIdentity,
    Property,
    Statement,
    equations,
)

Signs = Mapping[str, str]

SIGNS: Signs = {
    "=": "=",
    "≠": "≠",
    "≤": "≤",
    "≥": "≥",
    ":=": "≔",
    "rank": "rank({})",
    "words": "{}",
    "where": "\n    where ",
    "and": ", ",
}
TEX: Signs = {
    "=": "=",
    "≠": r"\neq",
    "≤": r"\leq",
    "≥": r"\geq",
    ":=": ":=",
    "rank": r"\operatorname{{rank}}\left({}\right)",
    "words": r"\text{{{}}}",
    "where": r" \qquad\text{where } ",
    "and": r",\quad ",
}


def said(claim: Claim, show: Callable[[Any], str], signs: Signs) -> str:
    """Return a claim and its hypotheses as a formula; empty if it has none."""
    match claim:
        case Statement():
            line = f"{show(claim.lhs)} {signs['=']} {show(claim.rhs)}"
        case NonIdentity():
            line = f"{show(claim.lhs)} {signs['≠']} {show(claim.rhs)}"
        case Bound():
            line = f"{show(claim.smaller)} {signs['≤']} {show(claim.larger)}"
        case Property():
            line = said_of(claim.fact, show, signs)
        case Definition():
            line = f"{named(claim.name, signs)} {signs[':=']} {show(claim.value)}"
        case ErrorLaw() | Method():
            return claim.law
        case _:
            return ""
    under = hypotheses(claim, show, signs)
    return f"{line}{signs['where']}{signs['and'].join(under)}" if under else line


def named(name: str, signs: Signs) -> str:
    """Return a name as text, escaped for TeX."""
    if signs is TEX:
        name = name.replace("_", r"\_").replace("^", r"\^{}")
    return signs["words"].format(name)


def hypotheses(claim: Any, show: Callable[[Any], str], signs: Signs) -> list[str]:
    """Return the hypotheses of a claim: equations first, then declared properties."""
    given = getattr(claim, "given", ())
    facts: list[Fact] = [each.fact for each in given if isinstance(each, Described)]
    facts += [each for each in given if isinstance(each, Fact)]
    plain = equations([each for each in given if not isinstance(each, Described)])
    shown = [f"{show(left)} {signs['=']} {show(right)}" for left, right in plain]
    return shown + [said_of(fact, show, signs) for fact in dict.fromkeys(facts)]


def said_of(fact: Fact, show: Callable[[Any], str], signs: Signs) -> str:
    """Return a declared property as text."""
    named = isinstance(fact.subject, Family)
    subject = fact.subject.name if named else show(fact.subject)
    if fact.name == "rank_at_most":
        return f"{signs['rank'].format(subject)} {signs['≤']} {show(fact.value)}"
    if fact.name == "nonnegative":
        return f"{subject} {signs['≥']} 0"
    before, brace, after = PROPERTIES[fact.name].one.partition("{}")
    words = [signs["words"].format(f" {before}")]
    if brace:
        words += [show(fact.value), signs["words"].format(after)] if after else [show(fact.value)]
    return f"{subject}{''.join(words)}"
