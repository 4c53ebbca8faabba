"""Proofs of an equation from the definitions of its document, and under hypotheses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Symbols, text_of
from otimes.algebra.notation.tree import Node, latex, walk
from otimes.proofs.documents.proving.attempts import attempted, named, symbols_in
from otimes.proofs.documents.proving.other_readings import with_columns_of_ones
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.hypotheses import Hypothesis

MOST_HYPOTHESES = 12
MOST_LEFT_OUT = 4  # definitions of which each may be left out
# The sides of a claim, hypotheses, and the definitions that are substituted.
Attempt = tuple[Node, Node, list[Hypothesis], dict[str, Definition]]


def by_definitions(context: Context, lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
    """Try the claim with the definitions of the document substituted, first those of one side."""
    left, right = ({latex(e) for e in walk(side)} for side in (lhs, rhs))
    others = context.instances([lhs, rhs])
    known = context.definitions
    one_sided = sorted(text for text in left ^ right if text in known or text in others)
    sides: dict[tuple[Node, Node], dict[str, Definition]] = {}
    all_but_one = [[t for t in one_sided if t != text] for text in one_sided]
    if not 2 < len(one_sided) <= MOST_LEFT_OUT:
        all_but_one = []
    for only in (*[[text] for text in one_sided], one_sided, *all_but_one, None):
        used: dict[str, Definition] = {}
        put = {t: each for t, each in others.items() if only is None or t in only}
        a, b = (context.unfolded(side, used, only, put) for side in (lhs, rhs))
        if used:
            sides.setdefault((a, b), used)
    plain: list[Attempt] = [(a, b, [], used) for (a, b), used in sides.items()]
    given = [(a, b, context.declared_hypotheses([a, b]), u) for a, b, _, u in plain]
    return _first_proved([*plain, *[each for each in given if each[2]]], symbols)


def _first_proved(
    attempts: Sequence[Attempt],
    symbols: Symbols,
) -> Found | None:
    """Return the first of several claims, with hypotheses and definitions, that is proved."""
    for a, b, given, used in attempts:
        verdict, reading = attempted(a, b, given, symbols)
        if verdict is not None and verdict.status == "proved":
            hypotheses = tuple(str(given[k]) for k in verdict.used)
            why = f"with {named(used)}{given_text(hypotheses)}"
            return Found("proved", why, reading=reading, hypotheses=hypotheses)
    return None


def by_hypotheses(
    context: Context, lhs: Node, rhs: Node, symbols: Symbols, line: int
) -> Found | None:
    """Try the claim under hypotheses: those that are declared, then those that are offered."""
    declared = context.declared_hypotheses([lhs, rhs])
    if declared:
        verdict, reading = attempted(lhs, rhs, declared, symbols)
        if verdict is not None and verdict.status == "proved":
            used = tuple(str(declared[k]) for k in verdict.used)
            return Found("proved", given_text(used).strip("; "), reading=reading, hypotheses=used)
    proposed = offered(context, lhs, rhs, symbols, line)
    attempts = [[each] for each in proposed]
    if len(proposed) > 1:
        attempts.append(proposed)
    definitions: dict[str, Definition] = {}
    others = context.instances([lhs, rhs])
    left, right = (context.unfolded(side, definitions, None, others) for side in (lhs, rhs))
    sides = [(lhs, rhs)] + ([(left, right)] if definitions else [])
    if declared:
        attempts = [each for attempt in attempts for each in (attempt, [*declared, *attempt])]
    for k, (a, b) in enumerate(sides):
        for every in attempts:
            given = [with_definitions(context, each) for each in every] if k else every
            verdict, reading = attempted(a, b, given, symbols)
            if verdict is not None and verdict.status == "proved":
                used = tuple(str(every[k]) for k in verdict.used)
                if not used and (found := _first_proved([(a, b, [], definitions)], symbols)):
                    return found
                why = f"true given {'; '.join(used)}, which is not declared"
                return Found("needs-hypothesis", why, reading=reading, hypotheses=used)
    return None


def with_definitions(context: Context, given: Hypothesis) -> Hypothesis:
    """Return a hypothesis with the definitions of its symbols put in, unless these say it."""
    sides = [given.lhs, given.rhs]
    others = context.instances(sides)
    left, right = (context.unfolded(side, {}, None, others) for side in sides)
    return given if latex(left) == latex(right) else replace(given, lhs=left, rhs=right)


def offered(
    context: Context, lhs: Node, rhs: Node, symbols: Symbols, line: int
) -> list[Hypothesis]:
    """Return the hypotheses that the text offers, without those that cannot be stated here."""
    different = {
        (latex(each.lhs), latex(each.rhs)): each
        for each in reversed([*context.candidates([lhs, rhs], line)])
    }
    found = [*reversed(different.values())][:MOST_HYPOTHESES]
    sizes = symbols.sizes()
    claim = _as_text(context, *with_columns_of_ones(lhs, rhs))
    either = (claim, claim[::-1])
    found = [each for each in found if _as_text(context, each.lhs, each.rhs) not in either]
    found = [each for each in found if not _is_decided(context, each, sizes)]
    return [each for each in found if _can_be_stated(lhs, rhs, each, symbols)]


def _as_text(context: Context, lhs: Node, rhs: Node) -> tuple[str, str]:
    """Return the sides of an equation with definitions put in, without brackets."""
    others = context.instances([lhs, rhs])
    sides = [latex(context.unfolded(side, {}, None, others)) for side in (lhs, rhs)]
    left, right = (re.sub(r"[\s(){}]", "", side) for side in sides)
    return left, right


def _is_decided(context: Context, given: Hypothesis, sizes: set[str]) -> bool:
    r"""Return whether a hypothesis is about symbols that definitions leave nothing open of.

    `C = I - 1 1^\top / d` is what it is: that `C 1 = 0` is a claim.
    """
    used: dict[str, Definition] = {}
    sides = [context.unfolded(side, used) for side in (given.lhs, given.rhs)]
    names = [e for side in sides for e in symbols_in(side)]
    return bool(used) and all(text_of(e) in sizes for e in names)


def _can_be_stated(lhs: Node, rhs: Node, given: Hypothesis, symbols: Symbols) -> bool:
    """Return whether a hypothesis conforms with a claim and with what is declared."""
    try:
        elaborate([lhs, rhs, given.lhs, given.rhs], symbols, starts=(2,))
    except OtimesError:
        return False
    return True


def given_text(hypotheses: Sequence[str]) -> str:
    """Return the hypotheses of a proof as the last part of why it holds, or ""."""
    return f"; given {'; '.join(hypotheses)}" if hypotheses else ""
