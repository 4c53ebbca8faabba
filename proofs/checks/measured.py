"""The checks of what is measured: error laws, functions beside plain loops, empirical claims."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import log2
from pathlib import Path

import numpy as np

from algebra.errors import OtimesError
from numeric.binding import Run
from numeric.model import Model, load_model
from numeric.random_weights import random_model
from numeric.rounding import smallest_noticed, worst_ratio
from numeric.tokenizer import sample_tokens
from proofs.catalogue import catalogue
from proofs.claims import ErrorLaw, Method, Observation
from proofs.evidence import Check, Findings, ProofEvidence, ProofStatus
from proofs.on_models import COARSEST, PROMPT_TOKENS, ModelEvidence

NEAREST = 0.25  # a power is a multiple of one half: the nearest one is meant


def check_error_law(claim: ErrorLaw, runs: Sequence[Run], quick: bool) -> Findings:
    """Return whether the error falls with the power that is claimed.

    The slope between neighbouring steps tends to that power. Powers are multiples of one half, so
    the last slope must be nearer to it than to another one, and no further than the first.
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
    """Return whether a function agrees with plain loops, and what it rests on is there."""
    models = [*[_model(run.model) for run in runs], _random_model()]
    evidence = tuple(_agrees(claim, model) for model in models)
    rests = tuple(_rests_on(name) for name in claim.rests_on)
    return Findings(
        ProofEvidence("checked", f"{claim.function}, by {', '.join(claim.rests_on)}"),
        models=evidence,
        more=rests,
        needs_models=True,
    )


def _rests_on(name: str) -> Check:
    known = any(theorem.name == name for theorem in catalogue())
    return Check(f"rests on {name}", known, "" if known else "there is no such theorem")


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
            if np.any(trial.value):  # a change of a factor moves nothing where all is zero
                noticed.append(smallest_noticed(trial.value, trial.bound))
            if ratio >= worst:
                worst, where = ratio, trial.what
    except OtimesError as error:
        return ModelEvidence(model.name, True, False, why=str(error))
    if not any_trial:
        return ModelEvidence(model.name, False, True, why="it has nothing to say on this model")
    why, sensitivity = "", max(noticed, default=float("inf"))
    if worst > 1:
        why = f"error/bound {worst:.3g} at {where}"
    elif not noticed:
        why = "everything that was compared is zero: that would hide any mistake"
    elif sensitivity > COARSEST:
        why = f"the bound is so wide that a change of {sensitivity:.1g} would not be noticed"
    return ModelEvidence(model.name, True, not why, worst, sensitivity, where, why)


def check_observation(claim: Observation, runs: Sequence[Run], quick: bool) -> Findings:
    """Return what was seen of an empirical claim: the figure, or why it cannot be tried here."""
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
