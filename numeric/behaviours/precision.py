r"""Fewer bits and smaller ranks: rounding activations to a grid, and truncated weights.

A uniform quantiser with b bits has the step $Δ = \max |x| / (2^{b-1} - 1)$ and an error of at most
Δ/2 in each entry. One large dimension sets the step for all: it is kept apart, or rotated away.

A weight of rank k is the nearest to W in the Frobenius norm (Eckart and Young), and the error is
known. That the loss falls, as it is sometimes reported, does not follow.

Source: Dettmers et al. 2022, “LLM.int8()”; Bondarenko et al. 2021; Sharma et al. 2024, “The Truth
is in There: Improving Reasoning in Language Models with Layer-Selective Rank Reduction”.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.config import TENSORS
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.probes.data import read_rows


def quantise(values: Any, bits: int = 8, axis: int | None = None) -> np.ndarray:
    r"""Return values rounded to the grid of b-bit integers times one step.

    The step is $Δ = \max |x| / (2^{b-1} - 1)$.

    The largest entry is that of the whole array, or along `axis`, so that 1 gives each row of
    activations [example, d] a step of its own. Each entry moves by at most Δ/2.

    Proved by: quantisation_error.

    >>> quantise([1.0, 0.4, -0.2], bits=3).round(3).tolist()
    [1.0, 0.333, -0.333]

    Raises: OtimesError for fewer than 2 bits, or non-finite values.
    """
    if isinstance(bits, bool) or not isinstance(bits, int | np.integer) or not 2 <= bits <= 32:
        raise OtimesError(f"bits must be an integer from 2 to 32, got {bits!r}")
    x = np.asarray(values, dtype=np.float64)
    if not np.isfinite(x).all():
        raise OtimesError(f"values must be finite, got {x[~np.isfinite(x)][0]}")
    largest = np.abs(x).max(axis=axis, keepdims=axis is not None, initial=0.0)
    step = largest / (2 ** (int(bits) - 1) - 1)
    whole = np.divide(x, step, out=np.zeros_like(x), where=step > 0)
    return np.asarray(np.rint(whole) * step)


def quantisation_rmse(activations: Any, bits: int = 8, keep: Sequence[int] = ()) -> float:
    r"""Return the root mean square error of activations [example, d] rounded with one step.

    The dimensions in `keep` are left as they are and do not count for the step. A single large
    dimension makes the step, and so the error of all others, as much larger.

    Proved by: quantisation_error, rotation_leaves_product.

    >>> rows = np.array([[0.5, -0.2, 90.0], [0.3, 0.4, 80.0]])
    >>> round(quantisation_rmse(rows), 4), round(quantisation_rmse(rows, keep=[2]), 4)
    (0.2141, 0.0008)

    Raises: OtimesError for a dimension that does not exist, or if none is left.
    """
    rows = read_rows(activations)
    kept = np.asarray(list(keep), dtype=np.int64)
    if ((kept < 0) | (kept >= rows.shape[1])).any() or len({*kept.tolist()}) >= rows.shape[1]:
        raise OtimesError(
            f"keep must be some of the dimensions 0 to {rows.shape[1] - 1}, got {list(keep)}"
        )
    rest = np.delete(rows, kept, axis=1)
    return float(np.sqrt(np.square(rest - quantise(rest, bits)).sum() / rows.size))


def with_rank(model: ModelSource, weight: str, layer: int, rank: int) -> Model:
    """Return the model with one weight of a layer replaced by the nearest of a smaller rank.

    `weight` is a matrix of a layer such as `W_out`; for those of heads (`W_Q`, `W_V`, …) every
    head is truncated. The other weights are shared with the model.

    Proved by: eckart_young, truncation_error.

    >>> model = load_model("gpt2_tiny")
    >>> int(np.linalg.matrix_rank(with_rank(model, "W_out", 3, 20).W_out[3]))
    20

    Raises: OtimesError for a weight, layer or rank that does not exist.
    """
    loaded = load_model(model)
    axes = TENSORS.get(weight, ())
    if not axes or axes[0] != "n_layers" or len(axes) < 3 or weight not in loaded.weights:
        raise OtimesError(f"{loaded.name} has no weight matrix of a layer called {weight!r}")
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < loaded.n_layers:
        raise OtimesError(
            f"layer must be one of the layers 0 to {loaded.n_layers - 1}, got {layer!r}"
        )
    full = np.array(
        [np.asarray(loaded.weights[weight][each]) for each in range(loaded.n_layers)], float
    )
    most = min(full.shape[-2:])
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer) or not 0 <= rank <= most:
        raise ShapeError(f"{weight} has rank at most {most}, so rank must be 0 to {most}: {rank!r}")
    left, sizes, right = np.linalg.svd(full[layer], full_matrices=False)
    full[layer] = (left[..., :rank] * sizes[..., None, :rank]) @ right[..., :rank, :]
    return loaded.changed({weight: full})
