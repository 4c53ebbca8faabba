"""The checks of error laws, of functions against plain loops, and of empirical claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.binding import Run
from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model
from otimes.numeric.rounding import smallest_noticed, worst_ratio
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.checks.criteria import unsaid
from otimes.proofs.checks.identities import names_theorem
from otimes.proofs.claims import ErrorLaw, Method, Observation, Observed
from otimes.proofs.evidence import Criterion, Findings, ProofEvidence, ProofStatus
from otimes.proofs.method_mutants import Case, check_broken
from otimes.proofs.on_models import COARSEST, PROMPT_TOKENS, ModelEvidence

NEAREST = 0.25  # orders are multiples of one half
CONTROLS = 20  # models with random weights that an observation is tried on
CONTROLS_KEPT = 24  # of these models: observations of one model that follow share its twenty
MAX_PASSED = 1  # of the controls, for an observation to say something about training


def check_error_law(claim: ErrorLaw, runs: Sequence[Run], quick: bool) -> Findings:
    """Return whether the error converges at the claimed order.

    The log-log slope between successive steps tends to the order. Orders are multiples of one half,
    so the last slope must be nearest to the claimed one, and no further from it than the first.
    """
    steps = [claim.start / 2**k for k in range(claim.halvings + 1)]
    errors = [float(claim.error(step)) for step in steps]
    if not all(np.isfinite(error) and error > 0 for error in errors):
        return Findings(ProofEvidence("error", f"errors must be positive numbers: {errors}"))
    slopes = [log2(a / b) for a, b in pairwise(errors)]
    off = [abs(slope - claim.order) for slope in slopes]
    settled = off[-1] < NEAREST and off[-1] <= max(off[0], NEAREST / 4)
    said = ", ".join(f"{slope:.3f}" for slope in slopes)
    detail = f"slopes {said}; claimed {claim.order:g}"
    return Findings(ProofEvidence("measured" if settled else "error", detail))


def check_method(claim: Method, runs: Sequence[Run], quick: bool) -> Findings:
    """Return whether a function agrees with plain loops, and the theorems it rests on exist."""
    models = [*[_model(run.model) for run in runs], _random_model()]
    evidence = tuple(_agrees(claim, model) for model in models)
    rests = tuple(names_theorem("rests on", name) for name in claim.rests_on)
    return Findings(
        ProofEvidence("checked", f"{claim.function}, by {', '.join(claim.rests_on)}"),
        models=evidence,
        mutants=None if quick else check_broken(claim, *_cases(runs)),
        more=rests,
        needs_models=True,
    )


def _cases(runs: Sequence[Run]) -> tuple[list[Case], list[Case]]:
    """Return small models with random weights, and the trained ones, each with tokens."""
    small = [_random_model(), _random_model("gpt2"), _random_model(n_layers=1)]
    trained = [_model(run.model) for run in reversed(runs)]
    return _with_tokens(small), _with_tokens(trained)


def _with_tokens(models: Sequence[Model]) -> list[Case]:
    return [(model, _tokens(model)) for model in models]


def _tokens(model: Model) -> list[int]:
    return [int(token) % model.d_vocab for token in sample_tokens(PROMPT_TOKENS)]


def _agrees(claim: Method, model: Model) -> ModelEvidence:
    worst, where, noticed, any_trial = 0.0, "", [], False
    try:
        for trial in claim.trials(model, _tokens(model)):
            any_trial = True
            if np.shape(trial.value) != np.shape(trial.plain):
                why = f"{trial.what}: {np.shape(trial.value)} against {np.shape(trial.plain)}"
                return ModelEvidence(model.name, True, False, why=f"other shapes for {why}")
            ratio = worst_ratio(trial.value, trial.plain, trial.bound)
            if np.any(trial.value):  # where all is zero, no change of a factor is detected
                noticed.append(smallest_noticed(trial.value, trial.bound))
            if ratio >= worst:
                worst, where = ratio, trial.what
    except OtimesError as error:
        return ModelEvidence(model.name, True, False, why=str(error))
    if not any_trial:
        return ModelEvidence(model.name, False, True, why="it does not apply to this model")
    why, sensitivity = "", max(noticed, default=float("inf"))
    if worst > 1:
        why = f"error/bound {worst:.3g} at {where}"
    elif not noticed:
        why = "all compared values are zero, which would hide any mistake"
    elif sensitivity > COARSEST:
        why = f"the bound is so wide that a change of {sensitivity:.1g} would not be detected"
    return ModelEvidence(model.name, True, not why, worst, sensitivity, where, why)


def check_observation(claim: Observation, runs: Sequence[Run], quick: bool) -> Findings:
    """Return the outcome of an empirical claim, with controls; or why it cannot be tested here.

    `quick` omits the controls, and so does not tell "seen" from "seen at random too".
    """
    if claim.observe is None:
        return Findings(ProofEvidence("cannot be tried here", claim.cannot))
    if wrong := unsaid(claim):
        return Findings(ProofEvidence("error", wrong))
    found = claim.observe(load_model)
    if found.values.keys() != claim.above.keys():
        names = f"{', '.join(found.values)}, and the criterion is for {', '.join(claim.above)}"
        return Findings(ProofEvidence("error", f"the measured values are {names}"))
    controls = () if quick or not claim.control else tuple(_controls(claim))
    status = _outcome(claim, found, controls)
    detail = f"{found.figure} (criterion: {claim.criterion})"
    if controls:
        passed = sum(_holds(claim, values) for values in controls)
        detail += f"; {passed} of {len(controls)} models with random weights pass"
    expected = "seen" if quick and claim.outcome == "seen at random too" else claim.outcome
    if status != ("measured" if expected == "seen" and not claim.control else expected):
        return Findings(ProofEvidence("error", f"it is {status} and was {claim.outcome}: {detail}"))
    evidence = tuple(
        Criterion(name, above, float(found.values[name]), tuple(float(c[name]) for c in controls))
        for name, above in claim.above.items()
    )
    return Findings(ProofEvidence(status, detail), criteria=evidence)


def _holds(claim: Observation, values: Mapping[str, float]) -> bool:
    return all(values[name] > above for name, above in claim.above.items())


def _controls(claim: Observation) -> Iterator[Mapping[str, float]]:
    """Yield the values measured on models with random weights in place of the trained ones."""
    assert claim.observe is not None
    for seed in range(CONTROLS):
        yield claim.observe(partial(_random_like, seed)).values


@lru_cache(maxsize=CONTROLS_KEPT)
def _random_like(seed: int, name: str) -> Model:
    return random_model(load_model(name).config, seed, name=f"{name} with random weights")


def _outcome(
    claim: Observation, found: Observed, controls: Sequence[Mapping[str, float]]
) -> ProofStatus:
    if not _holds(claim, found.values):
        return "not seen"
    if not claim.control:
        return "measured"
    passed = sum(_holds(claim, values) for values in controls)
    return "seen" if passed <= MAX_PASSED else "seen at random too"


@lru_cache(maxsize=8)
def _model(name: str) -> Model:
    return load_model(name if not Path(name).is_dir() else Path(name))


@lru_cache(maxsize=4)
def _random_model(kind: str | None = None, n_layers: int = 2) -> Model:
    sizes: dict[str, Any] = {"n_layers": n_layers, "n_heads": 3, "d_model": 12, "d_head": 5}
    return random_model(kind=kind, **sizes, d_vocab=29, n_ctx=16)
