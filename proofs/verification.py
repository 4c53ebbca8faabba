"""Verification of the catalogue: runs the checks of every entry, in parallel processes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path

from otimes.numeric.binding import Run, run_of
from otimes.numeric.config import check_pre_norm
from otimes.numeric.definitions import pattern_ratios
from otimes.numeric.model import bundled_models, load_model
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.cache import Cache
from otimes.proofs.catalogue import catalogue, find
from otimes.proofs.checks import check
from otimes.proofs.evidence import DefinitionEvidence, Report, TheoremReport
from otimes.proofs.on_models import PROMPT_TOKENS
from otimes.proofs.theorem import Theorem

OnProgress = Callable[[int, int, str], None]


def verify(
    names: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
    executor: Executor | None = None,
    quick: bool = False,
    cache: Cache | None = None,
) -> Report:
    """Return the report on theorems (all of them by default) on models (all bundled by default).

    `executor` runs the checks of each theorem: by default a process pool, or any
    `concurrent.futures.Executor`. `on_progress(done, total, name)` is called after each theorem.
    `quick` omits models and mutants: only proofs and exact checks are run. Reports that passed are
    read from `cache` and stored there. Raises OtimesError for an unknown theorem or model.
    """
    theorems = catalogue() if names is None else tuple(find(name) for name in names)
    chosen = tuple(bundled_models() if models is None else [str(name) for name in models])
    for name in chosen:
        # Report a missing or damaged model before any work is done.
        check_pre_norm(load_model(name).config, "the theorems are checked on models")
    keys = {t.name: _key(cache, t, chosen, quick) for t in theorems}
    done: dict[str, TheoremReport] = {}
    for report in _reports(theorems, keys, chosen, executor, quick, cache):
        done[report.theorem.name] = replace(report, models_named=models is not None)
        _tell(on_progress, len(done), len(keys), report.theorem.name)
    if cache is not None:
        cache.prune()
    definitions = [_definition(name, cache) for name in chosen]
    return Report(tuple(done[t.name] for t in theorems), tuple(filter(None, definitions)))


def _key(cache: Cache | None, theorem: Theorem, models: tuple[str, ...], quick: bool) -> str:
    if cache is None:
        return ""
    return cache.key(theorem.name, quick, module=theorem.state.__module__, models=models)


def _reports(
    theorems: Sequence[Theorem],
    keys: Mapping[str, str],
    models: Sequence[str],
    executor: Executor | None,
    quick: bool,
    cache: Cache | None,
) -> Iterator[TheoremReport]:
    """Yield the reports on theorems: first those of the cache, then as they are made."""
    missing = []
    for theorem in theorems:
        data = cache and cache.load(keys[theorem.name])
        if data:
            yield TheoremReport.from_json(theorem, {**data, "from_cache": True})
        else:
            missing.append(theorem)
    for report in _made(missing, models, executor, quick):
        if cache is not None and report.passed:
            cache.store(keys[report.theorem.name], report.to_json())
        yield report


def _made(
    theorems: Sequence[Theorem], models: Sequence[str], executor: Executor | None, quick: bool
) -> Iterator[TheoremReport]:
    """Yield the reports on theorems as they are made."""
    if executor is None and len(theorems) > 1:
        ignore = (signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
        with ProcessPoolExecutor(initializer=signal.signal, initargs=ignore) as own:
            yield from _made(theorems, models, own, quick)
    elif executor is None:
        for theorem in theorems:
            yield verify_theorem(theorem, models, quick)
    else:
        futures = [executor.submit(_verify_named, t.name, models, quick) for t in theorems]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _definition(model: str, cache: Cache | None) -> DefinitionEvidence | None:
    """Return whether the definition of the pattern holds on a model; None if it has no heads."""
    key = "" if cache is None else cache.key("definition", models=(model,))
    data = cache and cache.load(key)
    if data:
        found = data["found"]
        return found and DefinitionEvidence(**found)
    made = check_definition(_run(model))
    if cache is not None and (made is None or made.passed):
        cache.store(key, {"found": made and asdict(made)})
    return made


def check_definition(run: Run) -> DefinitionEvidence | None:
    """Return whether recorded patterns are the softmax of recorded scores; None without heads."""
    worst = max(pattern_ratios(run), key=lambda found: found[1], default=None)
    if worst is None:
        return None
    where, ratio = worst
    return DefinitionEvidence(run.model, ratio <= 1.0, ratio, where)


def verify_theorem(theorem: Theorem, models: Sequence[str], quick: bool = False) -> TheoremReport:
    """Return the report on one entry; a check that raises an error has failed."""
    return verify_on_runs(theorem, [] if quick else [_run(name) for name in models], quick)


def verify_on_runs(theorem: Theorem, runs: Sequence[Run], quick: bool = False) -> TheoremReport:
    """Return the report on one entry, given recorded runs of the models."""
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
    except Exception as error:  # re-raised with the name of the entry
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
