"""Verification of the catalogue: runs the checks of every entry, in parallel processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from otimes.algebra.errors import OtimesError
from otimes.numeric.binding import Run, run_of
from otimes.numeric.config import check_settings
from otimes.numeric.load import ModelSource, bundled_models, load_model
from otimes.numeric.model import Model
from otimes.numeric.pattern_check import pattern_ratios
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.cache import Cache
from otimes.proofs.catalogue import catalogue
from otimes.proofs.checks import check
from otimes.proofs.evidence import DefinitionEvidence, Report, TheoremReport
from otimes.proofs.on_models import PROMPT_TOKENS
from otimes.proofs.selection import Asked, selected
from otimes.proofs.theorem import Theorem
from otimes.proofs.workers import process_pool

OnProgress = Callable[[int, int, str], None]


def verify(
    theorems: Asked | Iterable[Asked] | None = None,
    models: Sequence[ModelSource] | None = None,
    on_progress: OnProgress | None = None,
    executor: Executor | None = None,
    quick: bool = False,
    cache: Cache | None = None,
) -> Report:
    """Return the report on theorems (all of them by default) on models (all bundled by default).

    `theorems` are theorems, names of the catalogue, or Python files and folders that declare some.
    A theorem of a user may apply to none of the models; one of the catalogue must apply to one.
    `models` are names, folders, or anything else that `load_model` reads.
    `executor` runs the checks of each theorem: by default a process pool, or any
    `concurrent.futures.Executor`. `on_progress(done, total, name)` is called after each theorem.
    `quick` omits models and mutants: only proofs and exact checks are run. Reports that passed are
    read from `cache` and stored there. Raises OtimesError for an unknown theorem or model.
    """
    chosen_theorems = catalogue() if theorems is None else selected(theorems)
    with TemporaryDirectory(prefix="otimes-") as folder:
        chosen = tuple(bundled_models() if models is None else _by_name(models, Path(folder)))
        if any(name.startswith(folder) for name in chosen):
            cache = None  # a live model has no file whose digest could be a key
        for name in chosen:
            _loaded(name)  # report a missing or damaged model before any work is done
        return _verified(
            chosen_theorems, chosen, models is not None, on_progress, executor, quick, cache
        )


def _by_name(models: Sequence[ModelSource], folder: Path) -> Iterator[str]:
    """Yield the name or path of each model; those that have none are saved in the folder.

    The processes that check the theorems then map their weights, instead of copying them.
    """
    for number, source in enumerate(models):
        if isinstance(source, str | Path):
            yield str(source)
        else:
            model = load_model(source)
            yield str(model.save(folder / str(number) / model.name))


def _verified(
    theorems: Sequence[Theorem],
    chosen: tuple[str, ...],
    models_named: bool,
    on_progress: OnProgress | None,
    executor: Executor | None,
    quick: bool,
    cache: Cache | None,
) -> Report:
    keys = {theorem: _key(cache, theorem, chosen, quick) for theorem in theorems}
    done: dict[Theorem, TheoremReport] = {}
    for report in _reports(theorems, keys, chosen, executor, quick, cache):
        theorem = report.theorem
        done[theorem] = replace(report, models_named=models_named or theorem.own)
        _tell(on_progress, len(done), len(keys), theorem.name)
    if cache is not None:
        cache.prune()
    definitions = [_definition(name, cache) for name in chosen]
    return Report(tuple(done[theorem] for theorem in theorems), tuple(filter(None, definitions)))


def _key(cache: Cache | None, theorem: Theorem, models: tuple[str, ...], quick: bool) -> str:
    if cache is None or theorem.own:  # a file of a user may depend on anything
        return ""
    return cache.key(theorem.name, quick, module=theorem.state.__module__, models=models)


def _reports(
    theorems: Sequence[Theorem],
    keys: Mapping[Theorem, str],
    models: Sequence[str],
    executor: Executor | None,
    quick: bool,
    cache: Cache | None,
) -> Iterator[TheoremReport]:
    """Yield the reports on theorems: first those of the cache, then as they are made."""
    missing = []
    for theorem in theorems:
        key = keys[theorem]
        data = cache and key and cache.load(key)
        if data:
            yield TheoremReport.from_json(theorem, {**data, "from_cache": True})
        else:
            missing.append(theorem)
    for report in _made(missing, models, executor, quick):
        key = keys[report.theorem]
        if cache is not None and key and report.passed:
            cache.store(key, report.to_json())
        yield report


def _made(
    theorems: Sequence[Theorem], models: Sequence[str], executor: Executor | None, quick: bool
) -> Iterator[TheoremReport]:
    """Yield the reports on theorems as they are made."""
    in_notebook = any(theorem.state.__module__ == "__main__" for theorem in theorems)
    if executor is None and len(theorems) > 1 and not in_notebook:
        with process_pool() as own:
            for future in as_completed(_submit(own, theorems, models, quick)):
                yield future.result()
    elif executor is None:
        for theorem in theorems:
            yield verify_theorem(theorem, models, quick)
    else:
        futures = _submit(executor, theorems, models, quick)
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _submit(
    executor: Executor, theorems: Sequence[Theorem], models: Sequence[str], quick: bool
) -> list[Future[TheoremReport]]:
    return [executor.submit(_verify_one, theorem, models, quick) for theorem in theorems]


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
        kind=_kind(theorem),
        criteria=found.criteria,
        bindings=found.bindings,
    )


def _kind(theorem: Theorem) -> str:
    try:
        return theorem.claim().kind
    except OtimesError:  # which is reported as the result of the proof
        return "identity"


def _verify_one(theorem: Theorem, models: Sequence[str], quick: bool) -> TheoremReport:
    try:
        return verify_theorem(theorem, models, quick)
    except Exception as error:  # re-raised with the name of the entry
        error.add_note(f"while verifying {theorem.name}")
        raise


@lru_cache(maxsize=8)
def _run(model: str) -> Run:
    loaded = _loaded(model)
    return run_of(loaded, [token % loaded.d_vocab for token in _prompt()][: loaded.n_ctx])


def _loaded(model: str) -> Model:
    """Return a model by its name or path. Raises: OtimesError if the checks do not apply to it."""
    loaded = load_model(model if not Path(model).is_dir() else Path(model))
    loaded = _within_windows(loaded)
    check_settings(loaded.config, "the theorems are checked on models")
    if not loaded.d_vocab:
        raise OtimesError(
            f"the theorems are checked on prompts, and {loaded.name} has no vocabulary"
        )
    return loaded


def _within_windows(model: Model) -> Model:
    """Return a model for prompts no longer than its windows, in which they hide nothing."""
    config = model.config
    if not any(config.windows) or config.local_base or config.has("W_pos"):
        return model
    shortest = min(each for each in config.windows if each)
    within = replace(config, windows=(), n_ctx=min(config.n_ctx, shortest))
    return model.changed({}, within)


@lru_cache(maxsize=1)
def _prompt() -> tuple[int, ...]:
    return tuple(int(token) for token in sample_tokens(PROMPT_TOKENS))


def _tell(on_progress: OnProgress | None, done: int, total: int, name: str) -> None:
    if on_progress is not None:
        on_progress(done, total, name)
