"""The checks that only some kinds of entries have, in words a student understands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

import prose
from otimes.proofs.evidence import Check, ProofEvidence, TheoremReport
from otimes.proofs.mutants import MutantEvidence
from words import count

NAMED = re.compile(r"(rests on|obeys) (\w+)")
WITHOUT = re.compile("without “(.*)”")
PRINTED = re.compile(r"(E\d+) as printed")
CRITERION = re.compile(r" \(criterion: .*?\)(?=;|$)", re.DOTALL)
SLOPES = re.compile(r"slopes (.*); claimed (.*)")

SAID = {
    "tight": "it is tight: there are numbers at which both sides are equal",
    "lowest": "the rules of ranks give no smaller number",
    "attained": "exact matrices have this rank, so no smaller number would be true",
}


def sentence(check: Check) -> str:
    """Return what a check says, without its outcome."""
    if check.name == "tight" and " at " not in check.seen:
        return f"no numbers are claimed at which both sides are equal ({check.seen})"
    if found := WITHOUT.fullmatch(check.name):
        return f"the assumption that {prose.markdown(found.group(1))} is needed"
    if found := PRINTED.fullmatch(check.name):
        return f"the formula as the source prints it is false, which is known as {found.group(1)}"
    return SAID.get(check.name, prose.markdown(check.name))


def others(checks: Sequence[Check]) -> list[Check]:
    """Return the checks that are not about another entry."""
    return [check for check in checks if not NAMED.fullmatch(check.name)]


def related(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a sentence for the entries that a function rests on, and one for those it obeys."""
    for relation, said in (("rests on", "it rests on"), ("obeys", "it is compared with")):
        names = [
            found.group(2)
            for check in checks
            if (found := NAMED.fullmatch(check.name)) and found.group(1) == relation
        ]
        if names:
            yield f"{said} {', '.join(f'[`{name}`]({name}.md)' for name in names)}"


def wrong_calls(mutants: MutantEvidence) -> str:
    """Return what became of the calls of a function with wrong arguments."""
    said = f"{count(mutants.refuted, 'wrong argument')} noticed, such as another head or layer"
    if mutants.still_true:
        said += f"; {len(mutants.still_true)} more change nothing here"
    if mutants.escaped:
        said += f"; {len(mutants.escaped)} not noticed"
    return said


def measured(report: TheoremReport) -> str | None:
    """Return what was measured as a paragraph, where it is no list of numbers or reasons."""
    proof = report.proof
    if report.kind == "observation":
        return _observed(proof)
    if found := SLOPES.fullmatch(proof.detail):
        powers, claimed = found.groups()
        return f"Measured powers, from large steps to small ones: {powers}. Claimed: {claimed}."
    if report.kind == "method" and proof.status == "checked":
        return ""  # the function and what it rests on are on the page already
    return None


def _observed(proof: ProofEvidence) -> str:
    """Return the figures of an observation, without the criterion that the page begins with."""
    said = escape(CRITERION.sub("", proof.detail)).replace("$", "&#36;")
    said = re.sub("`([^`]*)`", r"<code>\1</code>", said)
    return f"<p>{said[:1].upper()}{said[1:]}{'' if said.endswith('.') else '.'}</p>"
