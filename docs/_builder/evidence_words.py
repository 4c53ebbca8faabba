"""The evidence for a theorem, in words: what was checked, how, and what came out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import controls
import more_checks
from otimes.proofs.evidence import FALLEN_SHORT, TheoremReport
from otimes.proofs.mutants import MutantEvidence
from words import block, code, count, figure, table

SAID = {
    "proved": (
        "proved",
        (
            "for every size and all values, by exact algebra; a separate program"
            " has replayed the certificate of the proof"
        ),
    ),
    "defined": ("defined", "this is what a name means; the formula is compared with plain loops"),
    "fails": (
        "shown to be false",
        (
            "this equation is listed because it is easily taken for true;"
            " exact numbers for which the two sides differ are below"
        ),
    ),
    "measured": (
        "measured",
        ("the error was computed for smaller and smaller steps, and falls with the stated power"),
    ),
    "checked": ("checked", "the function was compared with plain loops on the bundled models"),
    "seen": ("seen", "the trained models show it, and models with random weights do not"),
    "seen at random too": (
        "seen, but at random too",
        ("models with random weights show it as well, so training is not the cause"),
    ),
    "not seen": (
        "not seen here",
        ("these small models do not show it. That is a result about them: larger models may"),
    ),
    "cannot be tried here": ("not tried", "no bundled model can show it; the reason is below"),
    "refuted": ("refuted", "exact numbers contradict the claim"),
    "undecided": ("undecided", "no proof and no counterexample was found"),
    "error": ("could not be checked", "the reason is below"),
}
"""What the state of a proof is called on the page, and what that means."""

FIGURES = (
    "the figures below were measured on the networks that the text names, and meet the criterion"
)

PROPERTY = "derived for every size from the rules of matrices, and tried on exact numbers"


def mark(word: str, good: bool) -> str:
    """Return a word in the colour of good or bad news."""
    return f'<span class="mark {"good" if good else "bad"}">{word}</span>'


def outcome(report: TheoremReport) -> str:
    """Return the outcome of a theorem: the verdict of the proof, or that a check failed."""
    status = report.proof.status
    word, _ = SAID[status]
    if report.passed or status in FALLEN_SHORT:
        return mark(word, report.passed)
    return mark(f"{word}, but a check failed", False)


def text(report: TheoremReport) -> str:
    """Return the section on the evidence, without its heading."""
    parts = ["\n".join(f"- {each}" for each in _checks(report))]
    parts.append(_details(report))
    parts.append(controls.plots(report.criteria))
    if report.models:
        parts.append(_models(report))
    if report.mutants is not None and (report.mutants.still_true or report.mutants.escaped):
        parts.append(_mutant_lists(report.mutants))
    return "\n\n".join(filter(None, parts))


def _checks(report: TheoremReport) -> Iterator[str]:
    """Yield a sentence for each kind of check."""
    proof, exact, mutants = report.proof, report.exact, report.mutants
    word, meaning = SAID[proof.status]
    if report.kind == "property" and proof.status == "proved":
        meaning = PROPERTY
    if report.kind == "observation" and proof.status == "measured":
        meaning = FIGURES
    yield f"{mark(word.capitalize(), proof.status not in FALLEN_SHORT)}: {meaning}."
    if proof.status == "error":  # nothing else could be tried
        return
    if exact is not None:
        tried = count(exact.examples, "example")
        yield (
            f"{_verdict(exact.passed)}: computed with exact numbers on {tried} of random sizes and"
            f" values{', and the sides agreed each time' if exact.passed else '; one disagrees'}."
        )
    applied = [model for model in report.models if model.applies]
    if applied:
        worst = max(model.ratio for model in applied)
        yield (
            f"{_verdict(all(model.passed for model in applied))}: on"
            f" {count(len(applied), 'trained model')}, the largest difference is"
            f" {figure(worst)} of the [rounding error](../rounding.md) that is possible."
        )
    elif report.models:
        yield "No bundled model has the quantities in it; the reasons are below."
    if mutants is not None:
        yield _mutants(mutants, report.kind)
    for check in more_checks.others(report.more):
        yield f"{_verdict(check.passed)}: {more_checks.sentence(check)}."
    for said in more_checks.related(report.more):
        yield f"{_verdict(all(check.passed for check in report.more))}: {said}."


def _mutants(mutants: MutantEvidence, kind: str) -> str:
    """Return what became of the damaged versions, or of the calls with wrong arguments."""
    if kind == "method":
        return f"{_verdict(not mutants.escaped)}: {more_checks.wrong_calls(mutants)}."
    said = f"{count(mutants.refuted, 'damaged version')} of the equation refuted"
    if mutants.still_true:
        said += f"; {len(mutants.still_true)} more say the same in another way"
    if mutants.escaped:
        said += f"; {len(mutants.escaped)} neither refuted nor confirmed"
    return f"{_verdict(not mutants.escaped)}: {said} (a check that accepts anything would not)."


def _details(report: TheoremReport) -> str:
    """Return what was found as text: counterexamples, figures, reasons."""
    proof, parts = report.proof, []
    if proof.status != "proved" and proof.detail:
        said = more_checks.measured(report)
        parts.append(block(proof.detail) if said is None else said)
    elif proof.status == "proved":
        parts.append(_folded("What the prover and the checker say", block(proof.detail)))
    parts += [
        _folded(_capital(more_checks.sentence(check)), block(check.seen))
        for check in report.more
        if check.seen
    ]
    if report.exact is not None and not report.exact.passed and proof.status != "error":
        parts.append(block(report.exact.detail))
    return "\n\n".join(parts)


def _capital(said: str) -> str:
    return said[:1].upper() + said[1:]


def _folded(said: str, inside: str) -> str:
    """Return Markdown behind a line that opens it."""
    summary = f"<summary markdown>{said}</summary>"
    return f"<details markdown>\n{summary}\n\n{inside}\n\n</details>"


def _models(report: TheoremReport) -> str:
    """Return the table of the comparisons with recorded activations."""
    rows = []
    for model in report.models:
        if model.applies:
            where = place(model.where) if model.passed else model.why
            rows.append([code(model.model), figure(model.ratio), figure(model.sensitivity), where])
        else:
            rows.append([code(model.model), "", "", f"does not apply: {model.why}"])
    head = ["model", "error/bound", "sensitivity", "worst at"]
    shown = (
        table(head, rows, right=(1, 2))
        + "\n\nAn error/bound of at most 1 is what equality looks like in floating point; the"
        " sensitivity is the smallest relative change of any one factor that would be noticed."
    )
    return _folded(f"On {count(len(report.models), 'model')}, one by one", shown)


def place(where: str) -> str:
    """Return a place with its loops as equations: `recorded z, layer = 1, head = 3`."""
    return re.sub(r" (\d+)(?=,|$)", r" = \1", where)


def _mutant_lists(mutants: MutantEvidence) -> str:
    """Return the lists of mutants that were not refuted, with explanations."""
    parts = []
    if still_true := mutants.still_true:
        listed = "\n".join(f"- {code(mutant)}" for mutant in still_true)
        parts.append(_folded("Variants that make no difference", listed))
    if escaped := mutants.escaped:
        parts.append("Escaped: neither refuted nor confirmed.")
        parts.append("\n".join(f"- {code(mutant)}" for mutant in escaped))
    return "\n\n".join(parts)


def _verdict(passed: bool) -> str:
    """Return "Passed" or "Failed" in its colour."""
    return mark("Passed" if passed else "Failed", passed)
