r"""Context mixing: how much of each position a layer brings to each other, as one number a pair.

With $A_h$ the pattern of a head, $v_j$ its value (bias included) and $W_O$ its output:

    attention            $\bar A_{ij}$, the mean over heads
    value norm           $\|a_{ij} v_j\| = a_{ij} \|v_j\|$           of a head; has a basis
    output value norm    $\|a_{ij} v_j W_O\|$                    of a head; has none
    distance             $c_{ij} ∝ \max(0, \|y_i\|_1 - \|y_i - T_{ij}\|_1)$    of a layer

What attention leaves in the stream is $y_i = Σ_j T_{ij} + b_O$ with
$T_{ij} = Σ_h a_{ij} v_j W_O + δ_{ij} x_i$, each source's part, the stream's own included; c
measures how far y would be from itself without it. A norm of a sum is less than the sum of norms:
norms of heads or sources are not shares of anything.

**Rollout** multiplies layers: with the stream and attention each half of a layer,
$\hat A = \frac{1}{2} (\bar A + I)$, and $\hat A^L ⋯ \hat A^1$ is what is left of each first
position in each last one, were values and outputs the identity. Multiplied out it is the sum over
all paths through heads of the products of their patterns, a path through k heads with the weight
$2^{-L} H^{-k}$.

Source: Abnar and Zuidema 2020 (rollout); Kobayashi et al. 2020 (norms); Ferrando et al. 2022,
“Measuring the Mixing of Contextual Information in the Transformer” (distance).
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from algebra.errors import OtimesError
from numeric.circuits.result import Named
from numeric.model import Model, load_model
from numeric.progress import tracked
from numeric.prompt import Prompt, read_prompt

OF_LAYERS = ("attention", "distance")


def value_norms(model: Model | str, prompt: Any) -> Named:
    r"""Return $\|a_{ij} v_j\|_2$ of every head [layer, head, query, key].

    It depends on the basis of the head's values: $W_V → W_V M$, $W_O → M^{-1} W_O$ leaves the head
    as it is and changes this number (`output_value_norms` stays).
    Proved by: value_norm_depends_on_basis.
    Source: Kobayashi et al. 2020, “Attention is Not Only a Weight”, §2.

    >>> value_norms("one_layer", "x = 1").values.shape
    (1, 4, 3, 3)
    """
    return _of_heads(model, prompt, "value norm", through_W_O=False)


def output_value_norms(model: Model | str, prompt: Any) -> Named:
    r"""Return $\|a_{ij} v_j W_O\|_2$ of every head [layer, head, query, key].

    The length of what a head really writes at i for j.
    Proved by: output_value_norm_ignores_basis.       Source: Kobayashi et al. 2020.

    >>> output_value_norms("one_layer", "x = 1").values.shape
    (1, 4, 3, 3)
    """
    return _of_heads(model, prompt, "output value norm", through_W_O=True)


def context_mixing(model: Model | str, prompt: Any, method: str = "distance") -> Named:
    r"""Return how much of each key's position a layer has in each query's [layer, query, key].

    Rows sum to 1.

    `method` "attention" is the mean pattern of the heads, without the stream; "distance" compares
    by what would change without a source, the stream included (ALTI); NaN where no
    source brings a row nearer to what it is.
    Source: Ferrando et al. 2022, §3.

    >>> context_mixing("two_layer", "x = 1").values.sum(axis=-1).round(9).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    Raises: OtimesError for another method.
    """
    if method not in OF_LAYERS:
        raise OtimesError(f"context mixing is by 'attention' or by 'distance', not {method!r}")
    loaded, read = _read(model, prompt)
    n = len(read.tokens)
    values = np.zeros((loaded.n_layers, n, n))
    each = ["pattern"] if method == "attention" else ["pattern", "v", "resid_pre", "resid_mid"]
    record = [f"{place}.{layer}" for layer in range(loaded.n_layers) for place in each]
    places = loaded.forward(read.tokens, record)
    for layer in tracked(range(loaded.n_layers), "mixing"):
        at = {place: places[f"{place}.{layer}"] for place in each}
        if method == "attention":
            values[layer] = at["pattern"].mean(axis=0)
        else:
            values[layer] = _by_distance(loaded, layer, at)
    labels = {"query": read.strings, "key": read.strings}
    return Named(f"mixing by {method}", values, ("layer", "query", "key"), labels)


def attention_rollout(
    model: Model | str, prompt: Any, method: str = "attention", residual: bool = True
) -> Named:
    r"""Return $\hat A^l ⋯ \hat A^1$ after every layer l [layer, query, key]; rows sum to 1.

    $\hat A = \frac{1}{2} (\bar A + I)$, or $\bar A$ if not `residual`. With `method` "distance" the
    layers are those of `context_mixing`, which have the stream in them already, and are multiplied
    as they are.
    Proved by: rollout_is_path_sum, rollout_is_stochastic.
    Source: Abnar and Zuidema 2020, “Quantifying Attention Flow in Transformers”, §3.

    >>> attention_rollout("two_layer", "x = 1").at(layer=1, query=0).values.tolist()
    [1.0, 0.0, 0.0]

    Raises: OtimesError for another method, or where distances say nothing of a position.
    """
    mixing = context_mixing(model, prompt, method)
    if np.isnan(mixing.values).any():
        layer, query, _ = np.argwhere(np.isnan(mixing.values))[0]
        raise OtimesError(
            f"without any one of its sources, what layer {layer} leaves at position {query} is"
            " farther from itself than from nothing: its distances are no shares that could be"
            " multiplied"
        )
    _, n, _ = mixing.values.shape
    rolled = np.empty_like(mixing.values)
    so_far = np.eye(n)
    for layer, mixed in enumerate(mixing.values):
        halved = (mixed + np.eye(n)) / 2 if method == "attention" and residual else mixed
        so_far = rolled[layer] = halved @ so_far
    return Named(f"rollout of {method}", rolled, mixing.axes, mixing.labels)


def _of_heads(model: Model | str, prompt: Any, kind: str, *, through_W_O: bool) -> Named:
    loaded, read = _read(model, prompt)
    layers = range(loaded.n_layers)
    record = [f"{place}.{layer}" for layer in layers for place in ("pattern", "v")]
    places = loaded.forward(read.tokens, record)
    n = len(read.tokens)
    values = np.zeros((loaded.n_layers, loaded.n_heads, n, n))
    for layer in tracked(layers, "measuring"):
        moved = places[f"v.{layer}"]
        if through_W_O:
            moved = moved @ loaded.part("W_O", layer)
        lengths = np.linalg.norm(moved, axis=2)
        values[layer] = places[f"pattern.{layer}"] * lengths[:, None, :]
    labels = {"query": read.strings, "key": read.strings}
    return Named(kind, values, ("layer", "head", "query", "key"), labels)


def _by_distance(
    model: Model, layer: int, at: dict[str, np.ndarray]
) -> Float[np.ndarray, "query key"]:
    """Return $c_{ij}$, a query at a time: all T at once would be n² rows of the stream."""
    written = at["v"] @ model.part("W_O", layer)  # [head, key, d_model]
    n = written.shape[1]
    shares = np.zeros((n, n))
    for i in range(n):
        terms = np.einsum("hj,hjd->jd", at["pattern"][:, i, : i + 1], written[:, : i + 1])
        terms[i] += at["resid_pre"][i]
        y = at["resid_mid"][i]
        near = np.maximum(0.0, np.abs(y).sum() - np.abs(y - terms).sum(axis=1))
        total = near.sum()
        shares[i, : i + 1] = near / total if total else np.nan
    return shares


def _read(model: Model | str, prompt: Any) -> tuple[Model, Prompt]:
    loaded = load_model(model) if isinstance(model, str) else model
    return loaded, read_prompt(loaded, prompt)
