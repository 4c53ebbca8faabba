"""More prompts of our own, where the caller's are too short to tell other coordinates from a fault.

A basis of a head or a rotation of the stream is fitted to the rows that were shown. With few rows
some of it stays open: a fault may look like a basis, and a basis like a fault. So what was fitted,
and what fails, on few tokens is shown once more on more prompts of the same length, and judged on
all of them together: what explains the caller's own tokens must explain every prompt.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from algebra.errors import OtimesError
from numeric.audit.collect import Collected
from numeric.audit.judge import Shown
from numeric.model import Model

ENOUGH = 2
"""So many rows for each dimension of the stream: one to fit coordinates, one to confirm them."""

MOST = 32
"""More prompts than this are not asked for."""

SEED = 20_211_222


def too_few(collected: Collected, model: Model) -> bool:
    """Return whether the prompts have too few tokens in all to fit coordinates of the stream to."""
    return _missing(collected, model) > 0


def _missing(collected: Collected, model: Model) -> int:
    return ENOUGH * model.d_model - sum(len(prompt.tokens) for prompt in collected.prompts)


def shown_on_more(
    collected: Collected, model: Model, tokens: Any, show: Callable[[Any, np.ndarray], Collected]
) -> Collected | None:
    """Return what is shown on the caller's prompts and on more, or None if there is no more.

    `show(prompt, row)` runs the implementation on one prompt, of the kind that `tokens` are. It may
    be made for these only: if it raises, shows something else, or shows other tokens the very same
    (what was recorded before), there is none. A prompt that shows what is not finite stands alone.
    """
    n_pos = len(collected.prompts[0].tokens)
    wanted = min(-(-_missing(collected, model) // n_pos), MOST)
    drawn = np.random.default_rng(SEED).integers(0, model.d_vocab, (wanted, n_pos))
    found = []
    for row in drawn:
        try:
            found.append(show(_as_given(row, tokens), row[None]))
        except OtimesError:
            return None
    if any(each.unfit or each.dtypes != collected.dtypes for each in found):
        return None
    if spoilt := [each for each in found if each.spoilt]:
        return spoilt[0]
    if any(_alike(each.prompts[0], prompt) for each in found for prompt in collected.prompts):
        return None
    prompts = [prompt for each in (collected, *found) for prompt in each.prompts]
    return replace(collected, prompts=prompts)


def _alike(one: Shown, other: Shown) -> bool:
    """Return whether two prompts are different and show the same numbers."""
    if np.array_equal(one.tokens, other.tokens):
        return False
    return all(np.array_equal(one.places[p].value, other.places[p].value) for p in one.places)


def _as_given(row: np.ndarray, tokens: Any) -> Any:
    """Return one prompt [pos] of the kind of the caller's tokens, in a batch if they are in one."""
    if hasattr(tokens, "new_tensor"):
        prompt = tokens.new_tensor(row)
    elif isinstance(tokens, np.ndarray):
        prompt = row.astype(tokens.dtype)
    else:
        return row.tolist() if np.ndim(tokens) == 1 else [row.tolist()]
    return prompt if tokens.ndim == 1 else prompt[None]
