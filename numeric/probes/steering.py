r"""Steering: a multiple of a vector added to an activation at every chosen position.

$x ← x + α u$ changes the logits of a linear readout by $α u W_U$ at once; what later layers make of
it is computed by the pass. Published signs differ: with a direction *away* from a concept, α is
negative.

Source: Turner et al. 2023, “Activation Addition”; Rimsky et al. 2024, “Steering Llama 2 via
Contrastive Activation Addition”.
"""

from collections.abc import Collection
from typing import Any

import numpy as np

from otimes.algebra.errors import ShapeError
from otimes.numeric.forward import Places
from otimes.numeric.given import real_array, real_number
from otimes.numeric.interventions.hooks import Hook
from otimes.numeric.interventions.passes import intervene
from otimes.numeric.load import ModelSource
from otimes.numeric.probes.data import read_rows
from otimes.numeric.prompt import Prompts


def steer(
    model: ModelSource,
    tokens: Prompts,
    at: str | Hook,
    direction: Any,
    strength: float = 1.0,
    *,
    record: Collection[str] | None = None,
) -> Places:
    """Return the activations of a pass in which `strength` · `direction` is added at a hook point.

    `at` is a hook point or `hook(name, heads, positions)`, `direction` a vector of its last axis.
    The result is that of `intervene`.

    Proved by: steering_shifts_logits.

    >>> from otimes.numeric.load import load_model
    >>> model = load_model("two_layer")
    >>> plain = model.forward("x = 1")["logits"]
    >>> moved = steer(model, "x = 1", "final", model.W_U[:, 7], 0.1)["logits"]
    >>> bool(np.allclose(moved - plain, 0.1 * model.W_U[:, 7] @ model.W_U))
    True

    Raises: ShapeError for a direction of another size, or what `intervene` raises.
    """
    row = real_array(direction, "the direction")
    by = real_number(strength, "strength")
    if row.ndim != 1:
        raise ShapeError(f"the direction must be a vector, got the shape {row.shape}")

    def added(part: np.ndarray) -> np.ndarray:
        if part.shape[-1] != len(row):
            raise ShapeError(
                f"the direction has {len(row)} entries, and {at} has {part.shape[-1]} at each"
                " position"
            )
        return np.asarray(part + by * row)

    return intervene(model, tokens, {at: added}, record=record)


def mean_difference(activations: Any, others: Any) -> np.ndarray:
    """Return the mean of some activations [example, d] minus that of others: a steering vector.

    >>> mean_difference([[1.0, 2.0], [3.0, 2.0]], [[0.0, 0.0]]).tolist()
    [2.0, 2.0]

    Raises: ShapeError for activations of different widths.
    """
    first, second = read_rows(activations), read_rows(others)
    if first.shape[1] != second.shape[1]:
        raise ShapeError(f"the widths differ: {first.shape[1]} and {second.shape[1]}")
    return np.asarray(first.mean(axis=0) - second.mean(axis=0))
