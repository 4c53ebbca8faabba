"""The whole catalogue put to its checks, in processes, and the report of it all."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from numeric.binding import Run, run_of
from numeric.config import check_pre_norm
from numeric.definitions import pattern_ratios
from numeric.model import bundled_models, load_model
from numeric.tokenizer import sample_tokens
from proofs.catalogue import catalogue, find
from proofs.checks import check
from proofs.evidence import DefinitionEvidence, Report, TheoremReport
from proofs.on_models import PROMPT_TOKENS
from proofs.theorem import Theorem

OnProgress = Callable[[int, int, str], None]


def verify(
    names: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
    executor: Executor | None = None,
    quick: bool = False,
) -> Report:
    """Return the report on theorems (all of them by default) on models (all bundled by default).

    `executor` is where the pieces run: processes on this machine by default, or any
    `concurrent.futures.Executor`. `on_progress(done, total, name)` is called after each piece.
    `quick` leaves models and mutants out: proofs and exact numbers only.
    Raises OtimesError naming a theorem or model that does not exist.
    """
    theorems = catalogue() if names is None else tuple(find(name) for name in names)
    chosen = tuple(bundled_models() if models is None else [str(name) for name in models])
    for name in chosen:
        # A missing or damaged model is said before any work is done.
        check_pre_norm(load_model(name).config, "the theorems are checked on models")
    if executor is None and len(theorems) > 1:
        ignore = (signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent to handle
        with ProcessPoolExecutor(initializer=signal.signal, initargs=ignore) as own:
            return verify([t.name for t in theorems], models, on_progress, own, quick)
    done: dict[str, TheoremReport] = {}
    if executor is None:
        for theorem in theorems:
            done[theorem.name] = verify_theorem(theorem, chosen, quick)
            _tell(on_progress, len(done), len(theorems), theorem.name)
        return _report(theorems, done, chosen, models is not None)
    futures: dict[Future[TheoremReport], str] = {
        executor.submit(_verify_named, t.name, chosen, quick): t.name for t in theorems
    }
    try:
        for future in as_completed(futures):
            done[futures[future]] = future.result()
            _tell(on_progress, len(done), len(theorems), futures[future])
    finally:
        for future in futures:
            future.cancel()
    return _report(theorems, done, chosen, models is not None)


def _report(
    theorems: Sequence[Theorem],
    done: Mapping[str, TheoremReport],
    models: Sequence[str],
    named: bool,
) -> Report:
    definitions = (check_definition(_run(name)) for name in models)
    reports = tuple(replace(done[t.name], models_named=named) for t in theorems)
    return Report(reports, tuple(filter(None, definitions)))


def check_definition(run: Run) -> DefinitionEvidence | None:
    """Return whether recorded patterns are the softmax of recorded scores; None without heads."""
    worst = max(pattern_ratios(run), key=lambda found: found[1], default=None)
    if worst is None:
        return None
    where, ratio = worst
    return DefinitionEvidence(run.model, ratio <= 1.0, ratio, where)


def verify_theorem(theorem: Theorem, models: Sequence[str], quick: bool = False) -> TheoremReport:
    """Return the checks of one entry; one that cannot be made counts as failed."""
    return verify_on_runs(theorem, [] if quick else [_run(name) for name in models], quick)


def verify_on_runs(theorem: Theorem, runs: Sequence[Run], quick: bool = False) -> TheoremReport:
    """Return the checks of one entry on runs that were recorded before."""
    start = time.perf_counter()
    found = check(theorem, runs, quick)
    return TheoremReport(
        theorem,
        found.proof,
        found.exact,
        found.models,
        found.mutants,
        time.perf_counter() - start,
        more=found.more,
        needs_models=found.needs_models,
        kind=theorem.state().kind,
    )


def _verify_named(name: str, models: Sequence[str], quick: bool) -> TheoremReport:
    try:
        return verify_theorem(find(name), models, quick)
    except Exception as error:  # raised again: only to say which entry it was
        error.add_note(f"while verifying {name}")
        raise


@lru_cache(maxsize=8)
def _run(model: str) -> Run:
    return run_of(load_model(model if not Path(model).is_dir() else Path(model)), _prompt())


@lru_cache(maxsize=1)
def _prompt() -> tuple[int, ...]:
    return tuple(int(token) for token in sample_tokens(PROMPT_TOKENS))


def _tell(on_progress: OnProgress | None, done: int, total: int, name: str) -> None:
    if on_progress is not None:
        on_progress(done, total, name)
