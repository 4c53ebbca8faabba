"""A theorem's whole life: proof, exact check, models, mutants, and the report of it all."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from algebra.certificate import to_json
from algebra.decide import Verdict, decide
from algebra.errors import OtimesError, ShapeError
from numeric.binding import Run, run_of
from numeric.definitions import pattern_ratios
from numeric.model import bundled_models, load_model
from numeric.tokenizer import sample_tokens
from proofs import replay
from proofs.catalogue import catalogue, find
from proofs.claims import Statement
from proofs.exact import ExactEvidence, check_exactly
from proofs.mutants import MutantEvidence, check_mutants, with_equal_sizes
from proofs.on_models import ModelEvidence, check_on_model
from proofs.theorem import Theorem

SCHEMA = 1
PROMPT_TOKENS = 12  # enough for every head to look back, few enough to form Kronecker products

ProofStatus = Literal["proved", "refuted", "undecided", "error"]
OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class ProofEvidence:
    """The verdict on the statement; `detail` holds the reason, or the counterexample's lines."""

    status: ProofStatus
    detail: str


@dataclass(frozen=True, slots=True)
class TheoremReport:
    """The four checks of one theorem."""

    theorem: Theorem
    proof: ProofEvidence
    exact: ExactEvidence
    models: tuple[ModelEvidence, ...]
    mutants: MutantEvidence
    seconds: float
    models_named: bool = False  # the caller chose the models, so that none may apply

    @property
    def on_models(self) -> bool:
        """Whether the statement held wherever it applies, and was seen on at least one model."""
        seen = any(m.applies for m in self.models) or self.models_named
        return seen and all(m.passed for m in self.models)

    @property
    def passed(self) -> bool:
        """Whether all four checks passed."""
        return (
            self.proof.status == "proved"
            and self.exact.passed
            and self.on_models
            and self.mutants.passed
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        theorem = self.theorem
        return {
            "name": theorem.name,
            "title": theorem.title,
            "chapter": theorem.chapter,
            "convention": theorem.convention,
            "source": theorem.source,
            "covers": list(theorem.covers),
            "passed": self.passed,
            "proof": asdict(self.proof),
            "exact": asdict(self.exact),
            "models": [asdict(model) for model in self.models],
            "mutants": asdict(self.mutants),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class DefinitionEvidence:
    """The definition of the pattern, softmax of the visible scores, recomputed on one model."""

    model: str
    passed: bool
    ratio: float
    where: str


@dataclass(frozen=True, slots=True)
class Report:
    """The reports of the theorems that were verified, in reading order.

    `definitions` hold what the theorems take for granted about the recorded pass: that patterns are
    the softmax of the scores.
    """

    theorems: tuple[TheoremReport, ...]
    definitions: tuple[DefinitionEvidence, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every theorem passed every check, and every definition held."""
        held = all(d.passed for d in self.definitions)
        return bool(self.theorems) and held and all(t.passed for t in self.theorems)

    def summary(self) -> str:
        """Return the whole in one line: `12 theorems: 12 proved, 12 exact, …`."""
        theorems = self.theorems
        proved = sum(t.proof.status == "proved" for t in theorems)
        exact = sum(t.exact.passed for t in theorems)
        held = sum(t.on_models and any(m.applies for m in t.models) for t in theorems)
        seen = {m.model for t in theorems for m in t.models if m.applies}
        worst = max((m.ratio for t in theorems for m in t.models if m.applies), default=0.0)
        refuted = sum(t.mutants.refuted for t in theorems)
        still_true = sum(len(t.mutants.still_true) for t in theorems)
        escaped = sum(len(t.mutants.escaped) for t in theorems)
        line = (
            f"{len(theorems)} theorem{'' if len(theorems) == 1 else 's'}: {proved} proved, "
            f"{exact} exact, {held} on {len(seen)} model{'' if len(seen) == 1 else 's'} "
            f"(worst error/bound {worst:.2g}), {refuted} mutants refuted, {still_true} still true"
        )
        return line + (f", {escaped} escaped" if escaped else "")

    def to_json(self) -> dict[str, Any]:
        """Return `{"schema", "theorems": [...], "definitions": [...]}`, plain data."""
        return {
            "schema": SCHEMA,
            "theorems": [t.to_json() for t in self.theorems],
            "definitions": [asdict(d) for d in self.definitions],
        }


def verify(
    names: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
    executor: Executor | None = None,
) -> Report:
    """Return the report on theorems (all of them by default) on models (all bundled by default).

    `executor` is where the pieces run: processes on this machine by default, or any
    `concurrent.futures.Executor`. `on_progress(done, total, name)` is called after each piece.
    Raises OtimesError naming a theorem or model that does not exist.
    """
    theorems = catalogue() if names is None else tuple(find(name) for name in names)
    chosen = tuple(bundled_models() if models is None else [str(name) for name in models])
    for name in chosen:
        load_model(name)  # a missing or damaged model is said before any work is done
    if executor is None and len(theorems) > 1:
        ignore = (signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent to handle
        with ProcessPoolExecutor(initializer=signal.signal, initargs=ignore) as own:
            return verify([t.name for t in theorems], models, on_progress, own)
    done: dict[str, TheoremReport] = {}
    if executor is None:
        for theorem in theorems:
            done[theorem.name] = verify_theorem(theorem, chosen)
            _tell(on_progress, len(done), len(theorems), theorem.name)
        return _report(theorems, done, chosen, models is not None)
    futures: dict[Future[TheoremReport], str] = {
        executor.submit(_verify_named, t.name, chosen): t.name for t in theorems
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


def verify_theorem(theorem: Theorem, models: Sequence[str]) -> TheoremReport:
    """Return the four checks of one theorem; a check that cannot be made counts as failed."""
    return verify_on_runs(theorem, [_run(name) for name in models])


def verify_on_runs(theorem: Theorem, runs: Sequence[Run]) -> TheoremReport:
    """Return the four checks of one theorem on runs that were recorded before."""
    start = time.perf_counter()
    try:
        stated = theorem.statement()
        verdict = decide(stated.lhs, stated.rhs)
        detail = verdict.reason
        status: ProofStatus = verdict.status
        if status == "refuted":
            detail = str(verdict.counterexample)
        if status == "proved":
            status, detail = _replayed(verdict)
        proof = ProofEvidence(status, detail)
    except OtimesError as error:
        failed = str(error) + _at_equal_sizes(theorem, error)
        return TheoremReport(
            theorem,
            ProofEvidence("error", failed),
            ExactEvidence(False, 0, failed),
            tuple(ModelEvidence(run.model, True, False, why=failed) for run in runs),
            MutantEvidence(0, (), (), 0),
            time.perf_counter() - start,
        )
    return TheoremReport(
        theorem,
        proof,
        check_exactly(stated.lhs, stated.rhs),
        tuple(_on_model(theorem, run) for run in runs),
        check_mutants(stated.lhs, stated.rhs),
        time.perf_counter() - start,
    )


def _replayed(verdict: Verdict) -> tuple[ProofStatus, str]:
    """Return what an independent program says of the certificate of a proof."""
    made = verdict.certificate
    if made is None:
        return "error", f"{verdict.reason}, but there is no certificate of it to replay"
    try:
        seen = replay.check(json.loads(to_json(made)))
    except replay.Rejected as why:
        return "error", f"{verdict.reason}, but replay rejects its certificate: {why}"
    return "proved", f"{verdict.reason}; certificate replayed: {seen}"


def _at_equal_sizes(theorem: Theorem, error: OtimesError) -> str:
    """Return what refutes a statement whose shapes do not fit once all sizes are made equal."""
    if not isinstance(error, ShapeError):
        return ""
    stated = theorem.state()
    if not isinstance(stated, Statement):
        return ""
    try:
        verdict = decide(*with_equal_sizes(stated.lhs, stated.rhs))
    except OtimesError:
        return ""
    if verdict.status != "refuted":
        return ""
    return f"\nand with all sizes made equal it is false:\n{verdict.counterexample}"


def _on_model(theorem: Theorem, run: Run) -> ModelEvidence:
    try:
        return check_on_model(theorem, run)
    except OtimesError as error:
        return ModelEvidence(run.model, True, False, why=str(error))


def _verify_named(name: str, models: Sequence[str]) -> TheoremReport:
    return verify_theorem(find(name), models)


@lru_cache(maxsize=8)
def _run(model: str) -> Run:
    return run_of(load_model(model if not Path(model).is_dir() else Path(model)), _prompt())


@lru_cache(maxsize=1)
def _prompt() -> tuple[int, ...]:
    return tuple(int(token) for token in sample_tokens(PROMPT_TOKENS))


def _tell(on_progress: OnProgress | None, done: int, total: int, name: str) -> None:
    if on_progress is not None:
        on_progress(done, total, name)
