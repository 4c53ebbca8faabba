"""The command line: `otimes verify`, `show THEOREM`, `axioms`, `paths MODEL`, `audit FOLDER`…

What a command finds goes to stdout, everything else to stderr. Exit status 0: all well; 1:
something was refuted or fell short; 2: it was asked wrongly, in one sentence; 130: interrupted.

Nothing heavy is imported until a command needs it, so that `otimes --help` answers at once.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from textwrap import indent
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import click

import otimes as ot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from proofs.evidence import Report

ALL_WELL, FELL_SHORT, ASKED_WRONGLY, INTERRUPTED = 0, 1, 2, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ot.__version__, prog_name="otimes")
def cli() -> None:
    """The mathematics of transformer circuits, proved for every size and checked on real models."""


@cli.command(short_help="Prove and check theorems, all or those named.")
@click.argument("theorems", metavar="[THEOREM]...", nargs=-1)
@click.option("--chapter", type=int, metavar="N", help="Only the theorems of this chapter.")
@click.option("--model", "models", metavar="NAME", multiple=True, help="Only on this model.")
@click.option("--quick", is_flag=True, help="Proofs and exact numbers only: no models, no mutants.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def verify(
    theorems: tuple[str, ...],
    chapter: int | None,
    models: tuple[str, ...],
    quick: bool,
    as_json: bool,
) -> int:
    """Prove and check theorems: all of them on all bundled models, or those named.

    Each is proved for every size, checked exactly on random integers and on real trained models
    within a computed rounding bound, and its mutants are refuted.
    """
    names = _names(theorems, chapter)
    with _progress("verifying") as on_progress:
        report = ot.verify(names, models or None, on_progress, quick=quick)
    if as_json:
        _print_json(report.to_json())
    else:
        _print_report(report)
    return ALL_WELL if report.passed else FELL_SHORT


@cli.command(short_help="Print what a theorem says, and the evidence.")
@click.argument("theorem", metavar="THEOREM")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def show(theorem: str, as_json: bool) -> int:
    """Print what a theorem says, where it comes from, and the evidence for it."""
    with _progress("verifying") as on_progress:
        report = ot.verify((theorem,), None, on_progress)
    if as_json:
        _print_json(report.to_json())
    else:
        _print_theorem(report)
    return ALL_WELL if report.passed else FELL_SHORT


@cli.command(short_help="List what of the inventory is covered, and how.")
@click.option("--chapter", type=int, metavar="N", help="Only the items of this chapter.")
@click.option("--quick", is_flag=True, help="Proofs and exact numbers only: no models, no mutants.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def coverage(chapter: int | None, quick: bool, as_json: bool) -> int:
    """List what of the inventory is covered: each item, its theorems, and how they stand.

    An item counts by the checks of its theorems, which are made now.
    """
    from otimes._table import coverage_lines
    from proofs import coverage as covered

    items = [item for item in covered.inventory() if chapter in (None, item.chapter)]
    if not items:
        raise click.UsageError(f"the inventory has no chapter {chapter}")
    wanted = {item.id for item in items}
    names = [theorem.name for theorem in ot.catalogue() if wanted & {*theorem.covers}]
    with _progress("verifying") as on_progress:
        report = ot.verify(names, None, on_progress, quick=quick)
    found = covered.coverage(report, items)
    if as_json:
        _print_json(covered.to_json(found))
    else:
        click.echo("\n".join([*coverage_lines(found), "", covered.summary(found)]))
    return ALL_WELL if all(each.final for each in found) else FELL_SHORT


@cli.command(short_help="List what is taken as true and not derived.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def axioms(as_json: bool) -> int:
    """List what is taken as true and not derived, each with its statement and its source."""
    from algebra.text import unicode_text

    if as_json:
        _print_json({"schema": 1, "axioms": [axiom.to_json() for axiom in ot.AXIOMS.values()]})
        return ALL_WELL
    for axiom in ot.AXIOMS.values():
        said = axiom.example
        click.echo(f"{axiom.name}: {axiom.says}")
        click.echo(f"    {unicode_text(said.lhs)} = {unicode_text(said.rhs)}")
        for lhs, rhs in said.premises:
            click.echo(f"    where {unicode_text(lhs)} = {unicode_text(rhs)}")
        click.echo(f"    source: {axiom.source}\n")
    click.echo(f"{len(ot.AXIOMS)} axioms")
    return ALL_WELL


@cli.command(short_help="Show which paths through heads make a logit.")
@click.argument("model", metavar="MODEL")
@click.option(
    "--prompt", metavar="TEXT", help="What the model reads; a bundled sample if not given."
)
@click.option("--tokens", metavar="N,N,…", help="The prompt as token numbers.")
@click.option("--position", type=int, default=-1, metavar="N", help="After which token; the last.")
@click.option("--token", metavar="TOKEN", help="Whose logit, as text or number; the likeliest.")
@click.option("--top", default=10, metavar="K", help="How many of the largest paths; 10.")
@click.option(
    "--mlp",
    type=click.Choice(["sources", "gates"]),
    default="sources",
    help="What of MLPs is held fixed: what they gave, or their gates.",
)
@click.option("--html", metavar="FILE", help="Also write a page with patterns and bars.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def paths(
    model: str,
    prompt: str | None,
    tokens: str | None,
    position: int,
    token: str | None,
    top: int,
    mlp: Literal["sources", "gates"],
    html: str | None,
    as_json: bool,
) -> int:
    """Show which paths through heads make the logit of a token, patterns held as they are.

    All paths by order, each head by itself, Shapley values, and the largest paths of any order.
    """
    from otimes._paths import path_report, paths_of, summary_of, write_page

    on_prompt = paths_of(ot.load_model(model), prompt, tokens, mlp)
    summary = summary_of(on_prompt, position, token, top)
    if html is not None:
        write_page(summary, html)
    if as_json:
        _print_json(summary.to_json())
    else:
        click.echo(path_report(summary))
    return ALL_WELL


@cli.command(short_help="Check the code that runs a checkpoint.")
@click.argument("folder", metavar="FOLDER")
@click.option("--tokens", metavar="N,N,…", help="The prompt as token numbers; drawn if not given.")
@click.option("--html", metavar="FILE", help="Also write a page with a map of the places.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def audit(folder: str, tokens: str | None, html: str | None, as_json: bool) -> int:
    """Check the code that runs a local checkpoint against the reference, place by place.

    FOLDER is a folder with config.json and safetensors of Hugging Face (GPT-2, GPT-NeoX, Llama), a
    folder of ours, or the name of a bundled model.
    """
    prompt = None if tokens is None else _numbers(tokens)
    report = ot.load("numeric.audit.folder").audit_folder(folder, prompt)
    if html is not None:
        try:
            Path(html).write_text(report.html(), encoding="utf-8")
        except OSError as error:
            raise ot.OtimesError(f"cannot write {html}: {error.strerror}") from None
    if as_json:
        _print_json(report.to_json())
    else:
        click.echo(str(report))
    return ALL_WELL if report.passed else FELL_SHORT


def _numbers(tokens: str) -> list[int]:
    try:
        return [int(token) for token in tokens.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--tokens are numbers with commas between, got {tokens!r}"
        ) from None


@cli.command(short_help="Train a bundled model again, from nothing.")
@click.argument("name", metavar="NAME")
@click.option("--out", default="trained", metavar="FOLDER", help="Where the model's folder goes.")
@click.option("--seed", default=0, metavar="N", help="What the random numbers start from.")
@click.option("--device", metavar="DEVICE", help="cpu or cuda; cuda by default if there is one.")
def train(name: str, out: str, seed: int, device: str | None) -> int:
    """Train a bundled model again, from nothing, into FOLDER/NAME (needs the extra `train`)."""
    try:
        training = ot.load("numeric.training")
    except ModuleNotFoundError as missing:
        if missing.name not in ("torch", "tokenizers"):
            raise
        raise click.UsageError(
            f"training needs {missing.name}, which is not installed: "
            "pip install torch==2.13.0, then pip install -e '.[train]' in the checkout"
        ) from None
    with _progress(f"training {name}") as on_progress:
        folder = training.train(
            name,
            out,
            seed,
            lambda done, total, loss: on_progress(done, total, f"loss {loss:.2f}"),
            device=device,
        )
    click.echo(folder)
    return ALL_WELL


def _names(theorems: tuple[str, ...], chapter: int | None) -> tuple[str, ...] | None:
    """Return the theorems that are asked for by name or by chapter; None for all."""
    if chapter is None:
        return theorems or None
    if theorems:
        raise click.UsageError("name theorems or a chapter, not both")
    names = tuple(theorem.name for theorem in ot.catalogue() if theorem.chapter == chapter)
    if not names:
        known = sorted({theorem.chapter for theorem in ot.catalogue()})
        raise click.UsageError(
            f"there are no theorems of chapter {chapter}; there are of {', '.join(map(str, known))}"
        )
    return names


def main() -> NoReturn:
    """Run the command line, turning whatever the user can mend into one sentence and a status."""
    # The matrices are small and the work is spread over processes: BLAS threads get in the way.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        said_no = ot.load("algebra.errors").OtimesError
    except ot.ForeignRoomError as error:
        _stop(str(error), ASKED_WRONGLY)
    try:
        status = cli.main(prog_name="otimes", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        error.show()
        status = ASKED_WRONGLY
    except (said_no, ot.ForeignRoomError) as error:
        _stop(str(error), ASKED_WRONGLY)
    except (KeyboardInterrupt, click.Abort):
        _stop("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Whoever reads us has seen enough; keep Python from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = FELL_SHORT
    sys.exit(status)


def _stop(sentence: str, status: int) -> NoReturn:
    click.echo(sentence, err=True)
    sys.exit(status)


@contextmanager
def _progress(doing: str) -> Iterator[Callable[[int, int, str], None]]:
    """Yield what a long job calls with (done, in all, at what); a bar, on a terminal's stderr."""
    if not sys.stderr.isatty():
        yield lambda done, total, at: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    at_what = TextColumn("{task.fields[at]}")
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), at_what)
    # No refreshing thread: the job may fork, and a fork should not copy a lock that is held.
    bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
    with bar:
        task = bar.add_task(doing, total=None, at="")
        bar.refresh()
        yield lambda done, total, at: bar.update(
            task, completed=done, total=total, at=at, refresh=True
        )


def _print_json(content: dict[str, Any]) -> None:
    """Print plain data as JSON; an error/bound that is no number becomes null, as JSON has none."""
    finite = json.loads(json.dumps(content), parse_constant=lambda _: None)
    click.echo(json.dumps(finite, indent=2, ensure_ascii=False, allow_nan=False))


def _print_report(report: Report) -> None:
    """Print the table, a block for each thing that fell short, and the summary as last line."""
    from otimes._table import LEGEND, block, definitions, plain_table, rich_table, shortcomings

    legend = "\n".join(filter(None, (LEGEND, definitions(report))))

    short = [block(heading, detail) for heading, detail in shortcomings(report)]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.text import Text

        console = Console()
        console.print(rich_table(report, console.width))
        console.print(Text(legend, style="dim"))
        for each in short:
            console.print(Text(f"\n{each}", style="red"))
        console.print()
    else:
        click.echo("\n\n".join([plain_table(report), legend, *short, ""]), nl=False)
    click.echo(report.summary())


def _print_theorem(report: Report) -> None:
    """Print a theorem's statement, convention, source and prose, then the evidence for it."""
    from otimes._table import block, evidence, shortcomings

    (found,) = report.theorems
    theorem = found.theorem
    click.echo(f"{theorem.name}: {theorem.title}\n")
    click.echo(f"    {theorem.text()}\n")
    for symbol, shape in theorem.symbols().items():
        click.echo(f"    {symbol}: {shape}")
    click.echo(f"\n{theorem.prose}\n")
    click.echo(f"convention  {theorem.convention}")
    click.echo(f"source      {theorem.source}")
    click.echo(f"TeX         {theorem.latex()}\n")
    for check, seen in evidence(found):
        click.echo(f"{check:12}{seen}")
    chain = theorem.steps() if found.proof.status == "proved" else None
    if chain is not None:
        width = get_terminal_size((100, 24)).columns
        click.echo(f"\nstep by step\n\n{indent(chain.text(width - 4), '    ')}")
    for heading, detail in shortcomings(report):
        click.echo(f"\n{block(heading, detail)}")
