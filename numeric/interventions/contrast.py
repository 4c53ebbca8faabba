"""Two prompts of one length, and a metric of the logits at one position, which differs on them.

The clean prompt is the one whose behaviour is studied, the corrupt one differs from it in what the
behaviour depends on. The metric is a logit, a logit difference, or any function of the logits.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.attribution.reverse import Goal
from otimes.numeric.attribution.target import Target, Tokens, read_target, unembedding
from otimes.numeric.forward import Places
from otimes.numeric.functions import capped, linear, normalise
from otimes.numeric.given import real_number
from otimes.numeric.interventions.hooks import Hook
from otimes.numeric.interventions.passes import Pass
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import Prompt, read_position, read_prompt

Metric = Callable[[np.ndarray], Any]
"""A function of the logits [d_vocab] at the position, which returns a number."""

DIRECTIONS = ("denoise", "noise")


class Contrast:
    """A clean and a corrupt prompt, cut after the position of the metric, and the metric."""

    def __init__(
        self,
        model: Model,
        clean: Prompt,
        corrupt: Prompt,
        target: Target,
        metric: Metric | None = None,
    ) -> None:
        self.model, self.prompt, self.target, self.metric = model, clean, target, metric
        self.position = int(target.positions[0])
        self.tokens = clean.tokens[: self.position + 1]
        self.other = corrupt.tokens[: self.position + 1]
        self.about = target.name(model) if metric is None else "a function of the logits"

    @cached_property
    def clean(self) -> Places:
        """The activations on the clean prompt."""
        return self.model.forward(self.tokens)

    @cached_property
    def corrupt(self) -> Places:
        """The activations on the corrupt prompt."""
        return self.model.forward(self.other)

    @cached_property
    def clean_value(self) -> float:
        """The metric on the clean prompt."""
        return self.of_places(self.clean)

    @cached_property
    def corrupt_value(self) -> float:
        """The metric on the corrupt prompt."""
        return self.of_places(self.corrupt)

    @property
    def goal(self) -> Goal:
        """The metric for a reverse pass. Raises: OtimesError if it is not a logit (difference)."""
        if self.metric is not None:
            raise OtimesError(
                "gradients are those of a logit or a logit difference: give target and foil, and"
                " not metric"
            )
        return Goal(self.position, self.target.rows[0], float(self.target.constants[0]))

    def base_and_source(self, direction: str) -> tuple[Places, Places]:
        """Return the activations of the patched pass, and those of the other one."""
        if direction not in DIRECTIONS:
            raise OtimesError(f"direction must be 'denoise' or 'noise', got {direction!r}")
        return (self.corrupt, self.clean) if direction == "denoise" else (self.clean, self.corrupt)

    def base_value(self, direction: str) -> float:
        """Return the metric of the pass that is changed."""
        return self.corrupt_value if direction == "denoise" else self.clean_value

    def score(self, values: np.ndarray) -> np.ndarray:
        """Return (m − m_corrupt) / (m_clean − m_corrupt). Raises: OtimesError where it is 0/0."""
        whole = self.clean_value - self.corrupt_value
        if whole == 0:
            raise OtimesError(
                f"the metric is {self.clean_value:.6g} on both prompts, so that the normalised"
                " score is 0/0: choose prompts on which it differs"
            )
        return np.asarray((values - self.corrupt_value) / whole)

    def of_places(self, places: Places) -> float:
        """Return the metric of a recorded pass."""
        return self._of_last(places[self._last])

    def of_edited(self, run: Pass, hooks: Mapping[Hook, Any]) -> float:
        """Return the metric of a pass with replacements, of which no logits are computed."""
        return self._of_last(run.only(hooks, self._last))

    @property
    def _last(self) -> str:
        """The activation that is unembedded."""
        return "ln_final" if self.model.config.final_norm else "final"

    def _of_last(self, rows: np.ndarray) -> float:
        return float(self._of_read(rows[None, self.position])[0])

    def of_streams(self, rows: Float[np.ndarray, "some d_model"]) -> Float[np.ndarray, " some"]:
        """Return the metric for final residual streams at the position."""
        return self._of_read(self._normed(rows))

    def logits(self, rows: Float[np.ndarray, "some d_model"]) -> Float[np.ndarray, "some d_vocab"]:
        """Return all logits for final residual streams."""
        return self._unembedded(self._normed(rows))

    def _normed(self, rows: np.ndarray) -> np.ndarray:
        model, config = self.model, self.model.config
        if not config.final_norm:
            return rows
        gain, bias = model.part("ln_final_gain"), model.part("ln_final_bias")
        return normalise(rows, config.norm, config.norm_eps, gain, bias)

    def _unembedded(self, rows: np.ndarray) -> np.ndarray:
        logits = linear(rows, self.model.W_U) + self.model.part("b_U")
        return capped(logits, self.model.config.logit_cap)

    def _of_read(self, rows: np.ndarray) -> Float[np.ndarray, " some"]:
        if self.metric is not None:
            return np.array([_number(self.metric(each)) for each in self._unembedded(rows)])
        if not self.model.config.logit_cap:
            found: np.ndarray = rows @ self.target.rows[0] + self.target.constants[0]
            return found
        value = self._logit(rows, self.target.tokens)
        return value if self.target.foils is None else value - self._logit(rows, self.target.foils)

    def _logit(self, rows: np.ndarray, token: np.ndarray) -> np.ndarray:
        columns, constants = unembedding(self.model, token)
        return capped(rows @ columns[0] + constants[0], self.model.config.logit_cap)


def _number(value: Any) -> float:
    return real_number(value, "what metric returns")


def contrast(
    model: ModelSource,
    clean: Any,
    corrupt: Any,
    target: Tokens,
    foil: Tokens,
    position: Any,
    metric: Metric | None = None,
) -> Contrast:
    """Return two prompts and a metric; the arguments are checked."""
    loaded = load_model(model)
    first, second = read_prompt(loaded, clean), read_prompt(loaded, corrupt)
    if len(first.tokens) != len(second.tokens):
        raise ShapeError(
            f"the clean prompt has {len(first.tokens)} tokens and the corrupt one"
            f" {len(second.tokens)}: activations are exchanged position by position, so the"
            " prompts must have one length"
        )
    if np.ndim(position) or position is None:
        raise OtimesError(f"position must be a single index here, got position={position!r}")
    if metric is not None and not callable(metric):
        raise OtimesError(f"metric must be a function of the logits, got {metric!r}")
    clean_pass = None
    if target is None:  # the top token: the pass that finds it is the one that is recorded
        end = read_position(len(first.tokens), position) + 1
        clean_pass = loaded.forward(first.tokens[:end])
    logits = None if clean_pass is None else clean_pass["logits"]
    found = read_target(loaded, first, target, foil, position, logits)
    if loaded.config.rotary_by_length and int(found.positions[0]) + 1 < len(first.tokens):
        raise OtimesError(
            f"position={position} is before the end of the prompt, on whose length the rotary"
            f" frequencies of {loaded.name} depend: give the prompts up to that position"
        )
    of = Contrast(loaded, first, second, found, metric)
    if clean_pass is not None:
        of.clean = clean_pass
    return of
