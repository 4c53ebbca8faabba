"""The command line: `otimes verify`, `show THEOREM`, `axioms`, `paths MODEL`, `audit FOLDER`…

Results go to stdout, everything else to stderr. Exit status 0: success; 1: a check failed; 2: usage
error; 130: interrupted.

Modules are imported only by the commands that need them, so that `otimes --help` is fast.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from textwrap import indent
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import click

import otimes as ot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from otimes.proofs.cache import Cache
    from otimes.proofs.documents.reporting.report import DocumentReport
    from otimes.proofs.evidence import Report, TheoremReport

ALL_WELL, FELL_SHORT, ASKED_WRONGLY, INTERRUPTED = 0, 1, 2, 130
NARROWEST = 40
"""The number of columns for which text is broken into lines where a terminal has fewer."""
SEARCH = 4.0
"""Units of work, about a second each, for a chain of steps; `theorem.steps()` searches longer."""
SEED = click.IntRange(0, 2**63 - 1)
MOST_FOUND = 10
"""The number of theorems that `otimes search` prints."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ot.__version__, prog_name="otimes")
def cli() -> None:
    """The mathematics of transformer circuits, proved for all sizes and checked on real models."""


@cli.command(short_help="Prove and check all theorems, the given ones, or those of a file.")
@click.argument("theorems", metavar="[THEOREM | FILE | FOLDER]...", nargs=-1)
@click.option("-k", "keyword", metavar="EXPR", help="Only those whose name or title matches.")
@click.option("--chapter", type=int, metavar="N", help="Only the theorems of this chapter.")
@click.option(
    "--model", "models", metavar="MODEL", multiple=True, help="Only on this model: name or folder."
)
@click.option("--quick", is_flag=True, help="Proofs and exact numbers only: no models, no mutants.")
@click.option("--fresh", is_flag=True, help="Ignore the cache and run all checks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def verify(
    theorems: tuple[str, ...],
    keyword: str | None,
    chapter: int | None,
    models: tuple[str, ...],
    quick: bool,
    fresh: bool,
    as_json: bool,
) -> int:
    """Prove and check all theorems, or the given ones, on all bundled models.

    Each is proved for all sizes, checked exactly on random integers and on trained models within a
    computed rounding bound, and its mutants are refuted.

    FILE is a Python file that declares theorems of your own, with `otimes.theorem`, and FOLDER one
    with such files. EXPR is a word, or words combined by and, or, not, as in pytest.
    """
    with _cache(fresh) as cache:
        names: Any = _names(theorems, chapter)
        if keyword is not None:
            from otimes.proofs.selection import selected

            names = selected(ot.catalogue() if names is None else names, keyword)
        with _progress("verifying") as on_progress:
            report = ot.verify(names, models or None, on_progress, quick=quick, cache=cache)
    if as_json:
        _print_json(report.to_json())
    else:
        _print_report(report)
    return ALL_WELL if report.passed else FELL_SHORT


@cli.command("list", short_help="List the theorems of the catalogue, or of a file.")
@click.argument("files", metavar="[FILE | FOLDER]...", nargs=-1)
@click.option("-k", "keyword", metavar="EXPR", help="Only those whose name or title matches.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def list_theorems(files: tuple[str, ...], keyword: str | None, as_json: bool) -> int:
    """List the theorems of the catalogue by chapter, or those that files declare."""
    from otimes import _catalogue

    with _cache(False) as cache:
        if files:
            from otimes.proofs.selection import load_theorems

            own = [theorem for file in files for theorem in load_theorems(file)]
            entries = [_catalogue.entry(theorem) for theorem in own]
        else:
            entries = _catalogue.index(cache)
    if keyword is not None:
        known, entries = entries, [one for one in entries if _catalogue.matches(keyword, one)]
        if not entries:
            _stop(f"no theorem matches {keyword!r}, of {len(known)}", FELL_SHORT)
    if as_json:
        _print_json({"schema": 1, "theorems": entries})
        return ALL_WELL
    width = _width()
    click.echo("\n".join([*_catalogue.lines(entries, width, not files)]).lstrip("\n"))
    click.echo(f"\n{len(entries)} theorems")
    return ALL_WELL


@cli.command(short_help="Find the theorems that words are about.")
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def search(words: tuple[str, ...], as_json: bool) -> int:
    """Find the theorems of the catalogue that words are about, the best first.

    Synonyms of the field count: RoPE and rotary, fold and absorb, MLP and feed-forward.
    """
    from otimes import _catalogue

    with _cache(False) as cache:
        found = _catalogue.search(_catalogue.index(cache), words)
    if as_json:
        _print_json({"schema": 1, "theorems": found})
        return ALL_WELL if found else FELL_SHORT
    if not found:
        _stop(f"no theorem is about {' '.join(words)!r}", FELL_SHORT)
    width = _width()
    click.echo("\n".join(_catalogue.lines(found[:MOST_FOUND], width)))
    if len(found) > MOST_FOUND:
        click.echo(f"\n{len(found) - MOST_FOUND} more: give more words, or --json")
    return ALL_WELL


@cli.command(short_help="Print a theorem and the evidence for it.")
@click.argument("theorem", metavar="THEOREM | FILE::NAME")
@click.option("--fresh", is_flag=True, help="Ignore the cache and run all checks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def show(theorem: str, fresh: bool, as_json: bool) -> int:
    """Print the statement of a theorem, its source, and the evidence for it."""
    with _cache(fresh) as cache:
        shown = _kept(theorem, cache)
        if shown is None:
            with _progress("verifying") as on_progress:
                report = ot.verify((theorem,), None, on_progress, cache=cache)
            shown = {
                "json": report.to_json(),
                "text": "\n\n".join(_theorem_text(each) for each in report.theorems),
                "passed": report.passed,
            }
            _keep(report, shown, cache)
    if as_json:
        _print_json(shown["json"])
    else:
        click.echo(shown["text"])
    return ALL_WELL if shown["passed"] else FELL_SHORT


@cli.command(short_help="Write pages of theorems, as Markdown with diagrams.")
@click.argument("theorems", metavar="THEOREM | FILE | FOLDER...", nargs=-1, required=True)
@click.option("-k", "keyword", metavar="EXPR", help="Only those whose name or title matches.")
@click.option("--out", required=True, metavar="FOLDER", help="The folder of the pages.")
@click.option("--quick", is_flag=True, help="Proofs and exact numbers only: no models, no mutants.")
@click.option("--html", is_flag=True, help="The pages of this project's site, with the judge.")
def pages(theorems: tuple[str, ...], keyword: str | None, out: str, quick: bool, html: bool) -> int:
    """Verify theorems and write a page for each: statement, steps, diagrams and evidence.

    The pages are Markdown with TeX formulas, which GitHub and Jupyter show, with an index. With
    --html they are a site, with the pages that the theorems of otimes have: `otimes docs --site
    FOLDER` serves it. That needs a clone of the repository and the extra `docs`.
    """
    if html:
        from otimes._pages import build_site

        status = build_site(theorems, keyword, Path(out), quick)
        if status in (ALL_WELL, FELL_SHORT):
            click.echo(Path(out, "index.html"))
        return status
    from otimes.numeric.files import check_writable

    check_writable(Path(out), folder=True)
    with _cache(False) as cache:
        from otimes.proofs.pages import write_pages
        from otimes.proofs.selection import selected

        chosen = selected(theorems, keyword)
        with _progress("verifying") as on_progress:
            report = ot.verify(chosen, None, on_progress, quick=quick, cache=cache)
    click.echo(write_pages(report, out)[-1])
    return ALL_WELL if report.passed else FELL_SHORT


def _kept(theorem: str, cache: Cache) -> dict[str, Any] | None:
    """Return what an earlier `otimes show` printed of a theorem of the catalogue, if it is kept."""
    modules = cache.load(cache.key("modules"))
    if not modules or theorem not in modules:
        return None
    return cache.load(_shown_key(theorem, modules[theorem], cache))


def _keep(report: Report, shown: dict[str, Any], cache: Cache) -> None:
    """Keep what is printed of a theorem of the catalogue, with evidence marked as of the cache."""
    (found, *more) = report.theorems
    if more or found.theorem.own or not report.passed:
        return
    cache.store(cache.key("modules"), {each.name: each.state.__module__ for each in ot.catalogue()})
    again = replace(report, theorems=(replace(found, from_cache=True),))
    kept = {**shown, "json": again.to_json(), "text": _theorem_text(again.theorems[0])}
    cache.store(_shown_key(found.theorem.name, found.theorem.state.__module__, cache), kept)


def _shown_key(theorem: str, module: str, cache: Cache) -> str:
    return cache.key("shown", theorem, _width(), module=module)


@cli.command(short_help="List the items of the inventory and their theorems.")
@click.option("--chapter", type=int, metavar="N", help="Only the items of this chapter.")
@click.option("--quick", is_flag=True, help="Proofs and exact numbers only: no models, no mutants.")
@click.option("--fresh", is_flag=True, help="Ignore the cache and run all checks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def coverage(chapter: int | None, quick: bool, fresh: bool, as_json: bool) -> int:
    """List the items of the inventory, each with its theorems and whether they pass all checks.

    Results of `verify` are taken from the cache.
    """
    with _cache(fresh) as cache:
        from otimes._table import coverage_lines, from_cache
        from otimes.proofs import coverage as covered

        items = [item for item in covered.inventory() if chapter in (None, item.chapter)]
        if not items:
            raise click.UsageError(f"the inventory has no chapter {chapter}")
        wanted = {item.id for item in items}
        names = [theorem.name for theorem in ot.catalogue() if wanted & {*theorem.covers}]
        with _progress("verifying") as on_progress:
            report = ot.verify(names, None, on_progress, quick=quick, cache=cache)
    found = covered.coverage(report, items)
    if as_json:
        _print_json(covered.to_json(found))
    else:
        last = [*filter(None, [from_cache(report)]), covered.summary(found)]
        click.echo("\n".join([*coverage_lines(found), "", *last]))
    return ALL_WELL if all(each.final for each in found) else FELL_SHORT


@cli.command(short_help="List the axioms: assumed, not derived.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def axioms(as_json: bool) -> int:
    """List the axioms, which are assumed and not derived, each with its statement and source."""
    from otimes.algebra.language.unicode import unicode_text

    if as_json:
        _print_json({"schema": 1, "axioms": [axiom.to_json() for axiom in ot.AXIOMS.values()]})
        return ALL_WELL
    for axiom in ot.AXIOMS.values():
        said = axiom.example
        click.echo(f"{axiom.name}: {axiom.says}")
        click.echo(f"    {unicode_text(said.lhs)} = {unicode_text(said.rhs)}")
        for lhs, rhs in said.premises:
            click.echo(f"    where {unicode_text(lhs)} = {unicode_text(rhs)}")
        for e, sign in said.signs:
            click.echo(f"    where {unicode_text(e)} is {sign}, entry by entry")
        click.echo(f"    source: {axiom.source}\n")
    click.echo(f"{len(ot.AXIOMS)} axioms")
    return ALL_WELL


@cli.command(short_help="Prove or refute an equation.")
@click.argument("equation", metavar="EQUATION")
@click.option("--shapes", metavar="TEXT", help="Shapes of symbols, as in 'A: n n, W_V: d d_head'.")
@click.option("--given", multiple=True, metavar="EQUATION", help="A hypothesis; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def prove(equation: str, shapes: str | None, given: tuple[str, ...], as_json: bool) -> int:
    """Prove or refute an equation in LaTeX or Unicode: "(A ⊗ B)(C ⊗ D) = A C ⊗ B D".

    Capitals that are not declared are matrices of the shapes that the equation requires. In
    --shapes, 'W[H]: d k' declares a family of H matrices, 'a: scalar' a number, 'g: function' a
    function of entries. What otimes prints can be given to it: one-hot columns e_i, the causal
    mask M_n, members W[h], products over layers ∏←_l<L.
    """
    from otimes._check import prove_text

    verdict, content = prove_text(equation, shapes, given)
    if as_json:
        _print_json(content)
    else:
        click.echo(f"{content['reading']}\n{verdict.status}: {verdict.reason}")
        if verdict.status == "proved" and verdict.steps is not None:
            width = _width()
            click.echo(verdict.steps.text(width))
        if content["counterexample"]:
            click.echo(content["counterexample"])
        if content["would_need"]:
            click.echo(f"it holds if {', or if '.join(content['would_need'])}")
    return ALL_WELL if verdict.status == "proved" else FELL_SHORT


@cli.command(short_help="Check the equations of documents.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--notation", metavar="NAME", help="primer, framework, or a TOML file.")
@click.option("--sarif", metavar="FILE", help="Also write the results in SARIF.")
@click.option("--html", metavar="FILE", help="Also write the document with marks, as HTML.")
@click.option("--github", is_flag=True, help="Print annotations for GitHub Actions.")
@click.option("--fix", is_flag=True, help="Print the proposed edits; nothing is changed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def check(
    files: tuple[str, ...],
    notation: str | None,
    sarif: str | None,
    html: str | None,
    github: bool,
    fix: bool,
    as_json: bool,
) -> int:
    """Check every equation in Markdown, LaTeX (.tex) or Jupyter files.

    Each is proved, refuted with a counterexample, or reported with the reason why it is neither.
    Exit status 1: an equation is refuted, or its shapes do not conform.
    """
    from otimes import _check

    if html is not None and len(files) != 1:
        raise click.UsageError("--html takes one FILE")
    for file in (sarif, html):
        _check_writable(file)
    with _progress("checking") as on_progress:
        reports = _check.check_files(files, notation, on_progress)
    if sarif is not None:
        _check.write_sarif(reports, sarif)
    if html is not None:
        _check.write(html, reports[0].html())
    if as_json:
        _print_json(import_module("otimes.proofs.documents.reporting.report").to_json(reports))
    elif fix:
        click.echo("\n".join(_check.fixes(reports) or ["no edits are proposed"]))
    elif github:
        lines = import_module("otimes.proofs.documents.reporting.report").github_annotations(
            reports
        )
        click.echo("\n".join([*lines, *[report.summary() for report in reports]]))
    else:
        _print_reports(reports)
    return ALL_WELL if all(report.passed for report in reports) else FELL_SHORT


@cli.command(short_help="Decompose a logit by paths through heads.")
@click.argument("model", metavar="MODEL")
@click.option("--config", metavar="FILE", help="The config.json of a lone safetensors file.")
@click.option("--prompt", metavar="TEXT", help="The prompt as text; by default the bundled sample.")
@click.option("--tokens", metavar="N,N,…", help="The prompt as token ids.")
@click.option("--position", type=int, default=-1, metavar="N", help="Position of the logit [-1].")
@click.option("--token", metavar="TOKEN", help="Text or id; by default the largest logit.")
@click.option(
    "--top", type=click.IntRange(1), default=10, metavar="K", help="Number of largest paths [10]."
)
@click.option(
    "--mlp",
    type=click.Choice(["sources", "gates"]),
    default="sources",
    help="What is frozen in MLPs: their outputs (sources), or their gates [sources].",
)
@click.option("--html", metavar="FILE", help="Also write an HTML page with charts and patterns.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def paths(
    model: str,
    config: str | None,
    prompt: str | None,
    tokens: str | None,
    position: int,
    token: str | None,
    top: int,
    mlp: Literal["sources", "gates"],
    html: str | None,
    as_json: bool,
) -> int:
    """Decompose the logit of a token by paths through heads, with frozen attention patterns.

    Shows the sum of the paths of each order, the contribution and the Shapley value of each head,
    and the largest paths.
    """
    from otimes._paths import path_report, paths_of, summary_of, write_page

    _check_writable(html)
    on_prompt = paths_of(ot.load_model(model, _settings(model, config)), prompt, tokens, mlp)
    summary = summary_of(on_prompt, position, token, top)
    if html is not None:
        write_page(summary, html)
    if as_json:
        _print_json(summary.to_json())
    else:
        click.echo(path_report(summary))
    return ALL_WELL


@cli.command(short_help="Check the implementation of a checkpoint.")
@click.argument("folder", metavar="FOLDER | FILE")
@click.option("--config", metavar="FILE", help="The config.json of a lone safetensors file.")
@click.option("--tokens", metavar="N,N,…", help="The prompt as token ids; by default random.")
@click.option("--html", metavar="FILE", help="Also write an HTML page with a map of activations.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else.")
def audit(
    folder: str, config: str | None, tokens: str | None, html: str | None, as_json: bool
) -> int:
    """Compare the implementation of a checkpoint with the reference, activation by activation.

    FOLDER is a checkpoint of Hugging Face with config.json and safetensors, a model folder of
    otimes, or the name of a bundled model. FILE is a safetensors file, with a config.json beside it
    or --config.
    """
    settings = _settings(folder, config)
    prompt = None if tokens is None else _numbers(tokens)
    _check_writable(html)
    report = import_module("otimes.numeric.audit.checkpoint").audit_folder(folder, prompt, settings)
    if html is not None:
        Path(html).write_text(report.html(), encoding="utf-8")
    if as_json:
        _print_json(report.to_json())
    else:
        click.echo(str(report))
    return ALL_WELL if report.passed else FELL_SHORT


def _check_writable(file: str | None) -> None:
    """Raise OtimesError if an output file cannot be written, before anything is computed."""
    if file is not None:
        from otimes.numeric.files import check_writable

        check_writable(Path(file))


def _settings(model: str, config: str | None) -> dict[str, Any] | None:
    """Return the content of --config, which goes with a file of weights."""
    if config is None:
        return None
    if not Path(model).is_file():
        raise click.UsageError(f"--config goes with a safetensors file, and {model!r} is no file")
    if not Path(config).is_file():
        raise click.UsageError(f"there is no file {config}, which --config names")
    from otimes.numeric.files import read_json

    return read_json(Path(config))


def _numbers(tokens: str) -> list[int]:
    try:
        return [int(token) for token in tokens.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--tokens must be comma-separated integers, got {tokens!r}"
        ) from None


@cli.command(short_help="Serve the site on this machine.")
@click.option("--site", metavar="FOLDER", help="The built site; by default what `make docs` made.")
@click.option("--port", default=8000, metavar="N", help="The port [8000]; 0 is any that is free.")
def docs(site: str | None, port: int) -> int:
    """Serve the site on the loopback address until it is interrupted.

    Pages that were opened from files lack what a browser allows to served pages only: the judge,
    which checks proofs, claims and exercises in the page.
    """
    from otimes._docs import SITE, address, server

    with server(Path(site) if site else SITE, port) as serving:
        click.echo(f"the site is at {address(serving)} (interrupt to stop)")
        serving.serve_forever()
    return ALL_WELL


@cli.command(short_help="Train a bundled model, or a sparse autoencoder.")
@click.argument("name", metavar="NAME|sae")
@click.option("--out", default="trained", metavar="FOLDER", help="The output folder [trained].")
@click.option("--seed", type=SEED, default=0, metavar="N", help="The random seed [0].")
@click.option("--device", metavar="DEVICE", help="cpu or cuda; by default cuda if available.")
@click.option("--model", metavar="MODEL", help="With sae: the model [gpt2_tiny].")
@click.option("--hook-point", metavar="NAME", help="With sae: the activation [resid_post.2].")
@click.option("--output", metavar="NAME", help="With sae: what a transcoder writes.")
@click.option("--variant", metavar="V", help="With sae: relu, gated, topk or jumprelu [topk].")
def train(name: str, out: str, seed: int, device: str | None, **options: str | None) -> int:
    """Train a bundled model from random weights, or a sparse autoencoder of an activation.

    The result is in FOLDER/NAME. It needs the extra `train`, but for `modular_addition`, a network
    that learns to add modulo 31.
    """
    given = [f"--{each.replace('_', '-')}" for each, value in options.items() if value is not None]
    if name != "sae" and given:
        raise click.UsageError(f"{given[0]} goes with `otimes train sae`")
    if name == "modular_addition" and not device:
        return _train_addition(Path(out) / name, seed)
    if name == "sae" and device:
        raise click.UsageError("--device goes with a model: an SAE is trained on the CPU")
    try:
        part = "features.training" if name == "sae" else "training"
        training = import_module(f"otimes.numeric.{part}")
    except ModuleNotFoundError as missing:
        if missing.name not in ("torch", "tokenizers"):
            raise
        raise click.UsageError(
            f"training needs {missing.name}, which is not installed: "
            "pip install torch==2.13.0, then pip install -e '.[train]' in the checkout"
        ) from None
    if name == "sae":
        folder = Path(out) / "sae"
        sae = training.train_sae(
            options["model"] or "gpt2_tiny",
            options["hook_point"] or "resid_post.2",
            folder,
            output=options["output"] or "",
            recipe=options["variant"] or "topk",
            seed=seed,
        )
        figures = ", ".join(f"{key} {value}" for key, value in sae.card["held_out"].items())
        click.echo(f"{sae}\n{figures}", err=True)
        click.echo(folder)
        return ALL_WELL
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


def _train_addition(folder: Path, seed: int) -> int:
    from otimes.numeric.behaviours.modular_addition import save_addition, train_addition
    from otimes.numeric.files import check_writable

    check_writable(folder, folder=True)
    with _progress("training modular_addition") as on_progress:
        run = train_addition(
            seed=seed,
            on_progress=lambda done, total, loss: on_progress(done, total, f"loss {loss:.2g}"),
        )
    click.echo(save_addition(run, folder))
    return ALL_WELL


@contextmanager
def _cache(fresh: bool) -> Iterator[Cache]:
    """Yield the cache of checks, created before the code that it hashes is imported."""
    from otimes.proofs.cache import Cache

    cache = Cache(fresh=fresh)
    yield cache
    for note in cache.notes:
        click.echo(note, err=True)


def _names(theorems: tuple[str, ...], chapter: int | None) -> tuple[str, ...] | None:
    """Return the names of the theorems given by name or by chapter; None for all."""
    if chapter is None:
        return theorems or None
    if theorems:
        raise click.UsageError("give theorems or a chapter, not both")
    names = tuple(theorem.name for theorem in ot.catalogue() if theorem.chapter == chapter)
    if not names:
        known = sorted({theorem.chapter for theorem in ot.catalogue()})
        raise click.UsageError(
            f"chapter {chapter} has no theorems; the chapters are {', '.join(map(str, known))}"
        )
    return names


def main() -> NoReturn:
    """Run the command line; expected errors are printed as one sentence, with an exit status."""
    # The matrices are small and the work uses several processes: BLAS threads would slow it down.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, _terminate)
    _open_what_is_closed()
    try:
        status = cli.main(prog_name="otimes", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        status = ASKED_WRONGLY
    except click.UsageError as error:
        _stop(_usage(error), ASKED_WRONGLY)
    except ot.OtimesError as error:
        _stop(str(error), ASKED_WRONGLY)
    except (KeyboardInterrupt, click.Abort):
        _stop("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader has closed the pipe; this keeps Python from reporting it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = FELL_SHORT
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        _stop(f"cannot read or write{where}: {error.strerror or error}", ASKED_WRONGLY)
    sys.exit(status)


def _open_what_is_closed() -> None:
    """Discard what goes to stdout or stderr where the caller has closed them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _terminate(number: int, frame: object) -> NoReturn:
    """End by an exception, so that workers are stopped and the terminal is restored."""
    sys.exit(128 + number)


def _usage(error: click.UsageError) -> str:
    """Return what is wrong with the arguments, and which command says what it takes."""
    command = "otimes" if error.ctx is None else error.ctx.command_path
    return f"{error.format_message().rstrip('.')}; `{command} --help` says what it takes"


def _stop(sentence: str, status: int) -> NoReturn:
    click.echo(sentence, err=True)
    sys.exit(status)


@contextmanager
def _progress(doing: str) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a callback (done, total, current item) that shows a progress bar on a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total, at: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    at_what = TextColumn("{task.fields[at]}")
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), at_what)
    # No refresh thread: the job may fork, and a fork must not copy a held lock.
    bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
    with bar:
        task = bar.add_task(doing, total=None, at="")
        bar.refresh()
        yield lambda done, total, at: bar.update(
            task, completed=done, total=total, at=at, refresh=True
        )


def _width() -> int:
    """Return the number of columns of the terminal, and at least what lines can be broken to."""
    return max(NARROWEST, get_terminal_size((100, 24)).columns)


def _print_json(content: dict[str, Any]) -> None:
    """Print data as JSON; NaN and infinity become null, as JSON lacks them."""
    finite = json.loads(json.dumps(content), parse_constant=lambda _: None)
    click.echo(json.dumps(finite, indent=2, ensure_ascii=False, allow_nan=False))


def _print_reports(reports: list[DocumentReport]) -> None:
    """Print a table for each document on a terminal, one line for each equation elsewhere."""
    from otimes._check import table

    for report in reports:
        if sys.stdout.isatty() and get_terminal_size().columns >= NARROWEST:
            from rich.console import Console

            Console().print(table(report))
            click.echo("\n".join(f"note: {note}" for note in report.notes))
            click.echo(report.summary())
        else:
            click.echo(str(report))


def _print_report(report: Report) -> None:
    """Print the table, a block for each failed check, and the summary in the last line."""
    from otimes._table import block, legend, plain_table, print_table, shortcomings

    short = [block(heading, detail) for heading, detail in shortcomings(report)]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.text import Text

        console = Console()
        print_table(report, console)
        console.print(Text(legend(report, console.width), style="dim"))
        for each in short:
            console.print(Text(f"\n{each}", style="red"))
        console.print()
        console.print(Text(report.summary()))
    else:
        click.echo("\n\n".join([plain_table(report), legend(report), *short, report.summary()]))


def _theorem_text(found: TheoremReport) -> str:
    """Return a theorem's statement, prose, convention and source, and the evidence for it."""
    from otimes._table import block, evidence, shortcomings
    from otimes.algebra.explain.search import with_budget
    from otimes.proofs.evidence import Report

    theorem = found.theorem
    parts = [f"{theorem.name}: {theorem.title}"]
    if found.proof.status != "error":
        symbols = [f"    {symbol}: {shape}" for symbol, shape in theorem.symbols().items()]
        parts += [f"    {theorem.text()}", "\n".join(symbols)]
    about = [f"convention  {theorem.convention}"]
    about += [f"source      {theorem.source}"] if theorem.source else []
    if found.proof.status != "error":
        about.append(f"TeX         {theorem.latex()}")
    parts += [theorem.prose, "\n".join(about)]
    parts.append("\n".join(f"{check:12}{seen}" for check, seen in evidence(found)))
    with with_budget(SEARCH):
        chain = theorem.steps() if found.proof.status == "proved" else None
    if chain is not None:
        width = _width()
        steps = "1 step, which" if len(chain) == 1 else f"{len(chain)} steps, each of which"
        each = f"{steps} theorem.steps() names"
        parts.append(f"derivation ({each})\n\n{indent(chain.outline().text(width - 4), '    ')}")
    parts += [block(heading, detail) for heading, detail in shortcomings(Report((found,)))]
    return "\n\n".join(filter(None, parts))
