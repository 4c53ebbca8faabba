"""Additional random prompts, if the caller's are too short to fit a change of basis.

A basis of a head or a rotation of the residual stream is fitted to the recorded rows. With few rows
it is underdetermined: a fault may look like a basis, and a basis like a fault. So the
implementation is run on more prompts of the same length, and all prompts are judged together: what
explains the caller's own tokens must explain every prompt.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.audit.capture.collect import Capture
from otimes.numeric.audit.reference.comparison import Recording
from otimes.numeric.model import Model

ENOUGH = 2
"""Rows per dimension of the residual stream: one to fit coordinates, one to confirm them."""

MOST = 32
"""The largest number of additional prompts."""

SEED = 20_211_222


def too_few(capture: Capture, model: Model) -> bool:
    """Return whether the prompts have too few tokens to fit a basis of the residual stream."""
    return _missing(capture, model) > 0


def _missing(capture: Capture, model: Model) -> int:
    return ENOUGH * model.d_model - capture.n_tokens


def captured_on_more(
    capture: Capture, model: Model, tokens: Any, show: Callable[[Any, np.ndarray], Capture]
) -> Capture | None:
    """Return the capture of the caller's and additional prompts, or None if these are unusable.

    `show(prompt, row)` runs the implementation on one prompt, of the type of `tokens`. They are
    unusable if it raises, records other hook points, or returns the same numbers for other tokens
    (stored activations). A prompt with non-finite activations is returned by itself.
    """
    n_pos = len(capture.prompts[0].tokens)
    wanted = min(-(-_missing(capture, model) // n_pos), MOST)
    drawn = np.random.default_rng(SEED).integers(0, model.d_vocab, (wanted, n_pos))
    found = []
    for row in drawn:
        try:
            found.append(show(_as_given(row, tokens), row[None]))
        except OtimesError:
            return None
    if any(each.unfit or each.dtypes != capture.dtypes for each in found):
        return None
    if nonfinite := [each for each in found if each.nonfinite]:
        return nonfinite[0]
    if any(_alike(each.prompts[0], prompt) for each in found for prompt in capture.prompts):
        return None
    prompts = tuple(prompt for each in (capture, *found) for prompt in each.prompts)
    return replace(capture, prompts=prompts)


def _alike(one: Recording, other: Recording) -> bool:
    """Return whether two prompts are different and have the same activations."""
    if np.array_equal(one.tokens, other.tokens):
        return False
    return all(np.array_equal(one.places[p].value, other.places[p].value) for p in one.places)


def _as_given(row: np.ndarray, tokens: Any) -> Any:
    """Return one prompt [pos] as the type of the caller's tokens, in a batch if they are one."""
    if hasattr(tokens, "new_tensor"):
        prompt = tokens.new_tensor(row)
    elif isinstance(tokens, np.ndarray):
        prompt = row.astype(tokens.dtype)
    else:
        return row.tolist() if np.ndim(tokens) == 1 else [row.tolist()]
    return prompt if tokens.ndim == 1 else prompt[None]
