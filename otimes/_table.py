"""The text output of a verification report: a table, and a block for each failed check.

The coloured table of a terminal and the plain table of a pipe are made from the same cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill, indent
from typing import TYPE_CHECKING

from otimes.proofs.evidence import FALLEN_SHORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console
    from rich.table import Table

    from otimes.proofs.coverage import Covered
    from otimes.proofs.evidence import Report, TheoremReport
    from otimes.proofs.on_models import ModelEvidence

COLUMNS = ("theorem", "proof", "exact", "recorded", "evaluated", "sensitivity", "mutants")
LEGEND = {
    "exact": "examples drawn",
    "recorded": "models on which an expression was compared with a recorded activation, and the "
    "worst error/bound",
    "evaluated": "models on which both sides were evaluated",
    "sensitivity": "the smallest detectable relative change of a factor",
    "mutants": "refuted, in parentheses those confirmed to be true, and after + the wrong bindings "
    "that were noticed",
}
"""What the entries of each column are."""
LEGEND_WIDTH = 92
UNBOUNDED = 10_000
"""A width in columns in which every table fits."""
WIDE = 110
"""The minimum width of a terminal, in columns, for the titles of theorems."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of one check as text, and whether it passed."""

    text: str
    well: bool = True


def row(each: TheoremReport) -> tuple[Cell, ...]:
    """Return the cells of one theorem, in the order of COLUMNS."""
    applied = [model for model in each.models if model.applies]
    recorded = [model for model in applied if model.recorded]
    evaluated = [model for model in applied if not model.recorded]
    none = Cell("none" if each.needs_models else "-", each.on_models)
    largest = max((model.sensitivity for model in applied), default=None)
    return (
        Cell(each.theorem.name, each.passed),
        Cell(each.proof.status, each.proof.status not in FALLEN_SHORT),
        _exact(each),
        _on_models(recorded) if recorded else Cell("-"),
        _on_models(evaluated) if evaluated else Cell("-") if applied else none,
        Cell("-" if largest is None else figure(largest)),
        _mutants(each),
    )


def shown_columns(report: Report) -> tuple[int, ...]:
    """Return the numbers of the columns in which there is something: of the checks that were made.

    With `quick` there is nothing about models and mutants.
    """
    rows = [row(each) for each in report.theorems]
    return tuple(
        column
        for column, name in enumerate(COLUMNS)
        if name in ("theorem", "proof", "exact") or any(_says(line[column]) for line in rows)
    )


def _says(cell: Cell) -> bool:
    """Return whether a cell is worth a column: that no model was needed is not."""
    return cell.text != "-" and not (cell.text == "none" and cell.well)


def print_table(report: Report, console: Console) -> None:
    """Print the table on a terminal, or lines of text where it is too narrow for the columns."""
    table = rich_table(report, console.width)
    unbounded = console.options.update_width(UNBOUNDED)
    if console.measure(table, options=unbounded).minimum <= console.width:
        console.print(table)
    else:
        console.print("\n".join(lines(report)), markup=False, highlight=False)


def lines(report: Report) -> Iterator[str]:
    """Yield the rows as text, for a terminal that is too narrow for the table."""
    for each in report.theorems:
        name, *cells = row(each)
        seen = [
            f"{column} {cell.text}"
            for column, cell in zip(COLUMNS[1:], cells, strict=True)
            if cell.text != "-"
        ]
        yield f"{name.text}: {', '.join(seen)}"


def legend(report: Report, width: int = LEGEND_WIDTH) -> str:
    """Return what the columns of a report mean, and what else there is to say of it."""
    named = [COLUMNS[column] for column in shown_columns(report)]
    meaning = " ".join(f"{name}: {LEGEND[name]}." for name in named if name in LEGEND)
    about_models = definitions(report) if "recorded" in named else ""
    parts = (fill(meaning, min(width, LEGEND_WIDTH)), about_models, from_cache(report))
    return "\n".join(filter(None, parts))


def _on_models(models: Sequence[ModelEvidence]) -> Cell:
    """Return how many of the models passed, and the worst error/bound."""
    failed = sum(not model.passed for model in models)
    of = f"{len(models) - failed} of {len(models)}" if failed else f"{len(models)}"
    return Cell(f"{of}: {figure(max(model.ratio for model in models))}", not failed)


def _exact(each: TheoremReport) -> Cell:
    if each.exact is None:
        return Cell("-")
    return Cell(str(each.exact.examples) if each.exact.passed else "failed", each.exact.passed)


def _mutants(each: TheoremReport) -> Cell:
    mutants = each.mutants
    if mutants is None:
        return Cell("-")
    counts = f"{mutants.refuted}"
    if mutants.still_true:
        counts += f" ({len(mutants.still_true)})"
    if mutants.escaped:
        counts += f", {len(mutants.escaped)} escaped"
    if each.bindings is not None:
        counts += f" + {each.bindings.noticed}"
    return Cell(counts, mutants.passed and each.bindings_passed)


def plain_table(report: Report) -> str:
    """Return the table as plain aligned text, for a pipe or a file."""
    shown = shown_columns(report)
    every = [COLUMNS, *(tuple(cell.text for cell in row(each)) for each in report.theorems)]
    table = [[line[column] for column in shown] for line in every]
    widths = [max(len(line[column]) for line in table) for column in range(len(shown))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    )


def rich_table(report: Report, width: int) -> Table:
    """Return the table for a terminal; titles if it is wide enough, failures in red."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = shown_columns(report)
    rows = [tuple(row(each)[column] for column in shown) for each in report.theorems]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold")
    name, *others = (COLUMNS[column] for column in shown)
    table.add_column(name, no_wrap=True)
    wide = width >= WIDE
    left = _left_over([name, *others], rows, width)
    if wide:
        table.add_column("title", style="dim", no_wrap=True, max_width=left)
    for other in others:
        table.add_column(other, no_wrap=wide or other in ("proof", "exact", "sensitivity"))
    chapter = None
    for each, line in zip(report.theorems, rows, strict=True):
        if each.theorem.chapter != chapter and chapter is not None:
            table.add_section()
        chapter = each.theorem.chapter
        first, *cells = (Text(cell.text, style="" if cell.well else "bold red") for cell in line)
        table.add_row(first, *([Text(each.theorem.title)] if wide else []), *cells)
    return table


def _left_over(names: Sequence[str], rows: list[tuple[Cell, ...]], width: int) -> int:
    """Return the width left for the title column, besides the others and their padding."""
    columns = zip(names, *([cell.text for cell in line] for line in rows), strict=True)
    return width - sum(max(map(len, column)) + 2 for column in columns) - 3


def definitions(report: Report) -> str:
    """Return a line on the definitions that the theorems assume of recorded activations."""
    if not report.definitions:
        return ""
    held = sum(definition.passed for definition in report.definitions)
    worst = figure(max(definition.ratio for definition in report.definitions))
    return (
        "definition: patterns are the softmax of the unmasked scores; recomputed by SciPy\n"
        f"on {len(report.definitions)} models, {held} within the bound (worst error/bound {worst})."
    )


def from_cache(report: Report) -> str:
    """Return one line on how many of the checks an earlier command made, if any."""
    if not report.from_cache:
        return ""
    return (
        f"from the cache, as nothing they depend on has changed: {report.from_cache} of"
        f" {len(report.theorems)} (--fresh runs all checks)."
    )


def shortcomings(report: Report) -> Iterator[tuple[str, str]]:
    """Yield (theorem: check [model], detail) for every failed check."""
    for each in report.theorems:
        name = each.theorem.name
        if each.proof.status in FALLEN_SHORT:
            yield f"{name}: proof {each.proof.status}", each.proof.detail
        if each.proof.status == "error":
            continue  # an invalid statement fails every other check for the same reason
        for check in each.more:
            if not check.passed:
                yield f"{name}: {check.name}", check.seen
        # What is refuted fails at the same exact numbers, and on every model.
        refuted = each.proof.status == "refuted"
        if each.exact is not None and not (each.exact.passed or refuted):
            yield f"{name}: exact check failed", each.exact.detail
        for model in () if refuted else each.models:
            if model.applies and not model.passed:
                yield f"{name}: model {model.model}", model.why
        if not each.on_models and not any(model.applies for model in each.models):
            why = [f"{model.model}: {model.why}" for model in each.models]
            yield f"{name}: applies to none of the models", "\n".join(why)
        if not each.bindings_passed and each.bindings is not None:
            for change in each.bindings.unnoticed:
                reason = "what is compared with recorded activations does not change"
                yield f"{name}: a wrong binding is not noticed: {change}", reason
            for change in each.bindings.stale:
                yield f"{name}: the binding {change} is noticed", "unchanged_by says it is not"
        if each.mutants is None:
            continue
        for mutant in each.mutants.escaped:
            yield f"{name}: a mutant escaped", mutant
        if not each.mutants.refuted:
            yield f"{name}: no mutant was refuted", "a check that cannot fail is not a check"
    for definition in report.definitions:
        if not definition.passed:
            at = f"error/bound {figure(definition.ratio)} at {definition.where}"
            yield f"the pattern is the softmax of the scores: model {definition.model}", at


def evidence(each: TheoremReport) -> Iterator[tuple[str, str]]:
    """Yield (check, result) for every check of one theorem."""
    yield "kind", each.kind
    if each.from_cache:
        yield "checks", "from the cache (--fresh runs them again)"
    if each.kind == "identity":
        yield "proof", each.proof.status
    else:
        yield "state", f"{each.proof.status}: {each.proof.detail}"
    if each.proof.used:
        yield "uses", ", ".join(each.proof.used)
    if each.exact is not None:
        passed = "all agree" if each.exact.passed else "not all agree"
        yield "exact", f"{each.exact.examples} examples on exact numbers, {passed}"
    for check in each.more:
        yield check.name, check.seen or ("yes" if check.passed else "no")
    for model in each.models:
        if model.applies:
            how = "recorded" if model.recorded else "evaluated"
            ratio, least = figure(model.ratio), figure(model.sensitivity)
            seen = f"{how}: error/bound {ratio}, sensitivity {least}"
            yield model.model, seen if model.passed else f"{seen}: FAILED"
        else:
            yield model.model, f"does not apply: {model.why}"
    if each.bindings is not None:
        yield "wrong bindings", f"{each.bindings.noticed} noticed"
        for change in each.bindings.unchanged:
            yield "unchanged by", change
    mutants = each.mutants
    if mutants is None:
        return
    yield "mutants", f"{mutants.refuted} refuted, {mutants.ill_shaped} ill-shaped"
    for mutant in mutants.still_true:
        yield "still true", mutant


def coverage_lines(found: Sequence[Covered]) -> Iterator[str]:
    """Yield the lines of the coverage table: each item with its state, title and theorems."""
    chapter = None
    for each in found:
        if each.item.chapter != chapter:
            chapter = each.item.chapter
            done = [c.final for c in found if c.item.chapter == chapter]
            if each is not found[0]:
                yield ""
            yield f"chapter {chapter}: {sum(done)} of {len(done)}"
        theorems = ", ".join(each.theorems) or "-"
        yield f"  {each.item.id:7}{each.state:27} {each.item.title}: {theorems}"


def block(heading: str, detail: str) -> str:
    """Return a failed check as plain text: the heading, with the detail indented below."""
    return f"{heading}\n{indent(detail.strip(), '    ')}".strip()


def figure(number: float) -> str:
    """Return a ratio or a sensitivity with two significant digits.

    >>> figure(0.1149), figure(3.14e-14), figure(1234567.0), figure(float("inf"))
    ('0.11', '3.1e-14', '1.2e+06', 'inf')
    """
    return f"{number:.2f}" if 0.01 <= abs(number) < 100 else f"{number:.1e}" if number else "0"
