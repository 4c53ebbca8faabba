"""The checks of error laws, of functions against plain loops, and of empirical claims."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import log2
from pathlib import Path

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.binding import Run
from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model
from otimes.numeric.rounding import smallest_noticed, worst_ratio
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.checks.identities import names_theorem
from otimes.proofs.claims import ErrorLaw, Method, Observation
from otimes.proofs.evidence import Findings, ProofEvidence, ProofStatus
from otimes.proofs.on_models import COARSEST, PROMPT_TOKENS, ModelEvidence

NEAREST = 0.25  # orders are multiples of one half


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
        more=rests,
        needs_models=True,
    )


def _agrees(claim: Method, model: Model) -> ModelEvidence:
    worst, where, noticed, any_trial = 0.0, "", [], False
    tokens = [int(token) % model.d_vocab for token in sample_tokens(PROMPT_TOKENS)]
    try:
        for trial in claim.trials(model, tokens):
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
    """Return the outcome of an empirical claim: the figures, or why it cannot be tested here."""
    if claim.observe is None:
        return Findings(ProofEvidence("cannot be tried here", claim.cannot))
    found = claim.observe()
    detail = f"{found.figure} (counts as seen: {claim.criterion})"
    status: ProofStatus = "seen" if found.seen else "not seen"
    if found.seen != claim.seen:
        expected = "seen" if claim.seen else "not seen"
        return Findings(ProofEvidence("error", f"it is {status} and was {expected}: {detail}"))
    return Findings(ProofEvidence(status, detail))


@lru_cache(maxsize=8)
def _model(name: str) -> Model:
    return load_model(name if not Path(name).is_dir() else Path(name))


@lru_cache(maxsize=1)
def _random_model() -> Model:
    return random_model(n_layers=2, n_heads=3, d_model=12, d_head=5, d_vocab=29, n_ctx=16)
