r"""Context mixing: how much each source position contributes to each output position of a layer.

With $A_h$ the pattern of a head, $v_j$ its value (bias included) and $W_O$ its output weights:

    attention            $\bar A_{ij}$, the mean over heads
    value norm           $\|a_{ij} v_j\| = a_{ij} \|v_j\|$           of a head; depends on the basis
    output value norm    $\|a_{ij} v_j W_O\|$                    of a head; independent of the basis
    distance             $c_{ij} ∝ \max(0, \|y_i\|_1 - \|y_i - T_{ij}\|_1)$    of a layer

The residual stream after attention is $y_i = Σ_j T_{ij} + b_O$, where
$T_{ij} = Σ_h a_{ij} v_j W_O + δ_{ij} x_i$ is the contribution of source j, the residual connection
included; c compares the norm of y with its distance from that contribution. The norm of a sum is
at most the sum of the norms, so norms of heads or sources are not shares of a total.

**Rollout** multiplies layers. With equal weights for the residual connection and attention,
$\hat A = \frac{1}{2} (\bar A + I)$, and $\hat A^L ⋯ \hat A^1$ is the contribution of each input
position to each output position if values and outputs were the identity. Expanded, it is the sum
over all paths through heads of the products of their patterns, a path through k heads with weight
$2^{-L} H^{-k}$.

Source: Abnar and Zuidema 2020 (rollout); Kobayashi et al. 2020 (norms); Ferrando et al. 2022,
“Measuring the Mixing of Contextual Information in the Transformer” (distance).
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.batches import over_prompts
from otimes.numeric.circuits.result import Named
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import Prompt, read_prompt

OF_LAYERS = ("attention", "distance")


@over_prompts
def value_norms(model: ModelSource, prompt: Any) -> Named:
    r"""Return the norm of each value, weighted by the attention to it [layer, head, query, key].

    It is $\|a_{ij} v_j\|_2$, before $W_O$.

    It depends on the basis of the head's values: $W_V → W_V M$, $W_O → M^{-1} W_O$ leaves the
    function of the head and `output_value_norms` unchanged, but not this norm.
    Proved by: value_norm_depends_on_basis.
    Source: Kobayashi et al. 2020, “Attention is Not Only a Weight”, §2.

    >>> value_norms("one_layer", "x = 1").values.shape
    (1, 4, 3, 3)
    """
    return _of_heads(model, prompt, "value norm", through_W_O=False)


@over_prompts
def output_value_norms(model: ModelSource, prompt: Any) -> Named:
    r"""Return the norm of what each head moves from each key position to each query position.

    The value, weighted by the attention, after $W_O$: $\|a_{ij} v_j W_O\|_2$ [layer, head, query,
    key].

    The norm of the vector that a head writes at position i for source j.
    Proved by: output_value_norm_ignores_basis.       Source: Kobayashi et al. 2020.

    >>> output_value_norms("one_layer", "x = 1").values.shape
    (1, 4, 3, 3)
    """
    return _of_heads(model, prompt, "output value norm", through_W_O=True)


@over_prompts
def context_mixing(model: ModelSource, prompt: Any, method: str = "distance") -> Named:
    r"""Return the contribution of each key position to each query position [layer, query, key].

    Rows sum to 1.

    `method` "attention" is the mean pattern of the heads, without the residual connection.
    "distance" is the L1 contribution with the residual connection (ALTI); a row is NaN where all
    its contributions are clipped to 0.
    Source: Ferrando et al. 2022, §3.

    >>> context_mixing("two_layer", "x = 1").values.sum(axis=-1).round(9).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    Raises: OtimesError for an unknown method.
    """
    if method not in OF_LAYERS:
        raise OtimesError(f"method must be 'attention' or 'distance', got {method!r}")
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


@over_prompts
def attention_rollout(
    model: ModelSource, prompt: Any, method: str = "attention", residual: bool = True
) -> Named:
    r"""Return attention rollout: patterns multiplied over layers [layer, query, key].

    Rows sum to 1.

    $\hat A = \frac{1}{2} (\bar A + I)$, or $\bar A$ if not `residual`. With `method` "distance" the
    matrices of `context_mixing` are multiplied unchanged: they include the residual connection.
    Proved by: rollout_is_path_sum, rollout_is_stochastic.
    Source: Abnar and Zuidema 2020, “Quantifying Attention Flow in Transformers”, §3.

    >>> attention_rollout("two_layer", "x = 1").at(layer=1, query=0).values.tolist()
    [1.0, 0.0, 0.0]

    Raises: OtimesError for an unknown method, or where all distance contributions are 0.
    """
    mixing = context_mixing(model, prompt, method)
    if np.isnan(mixing.values).any():
        layer, query, _ = np.argwhere(np.isnan(mixing.values))[0]
        raise OtimesError(
            f"all distance contributions of layer {layer} at query position {query} are clipped"
            " to 0: they cannot be normalised to sum to 1, so rollout is undefined there"
        )
    _, n, _ = mixing.values.shape
    rolled = np.empty_like(mixing.values)
    so_far = np.eye(n)
    for layer, mixed in enumerate(mixing.values):
        halved = (mixed + np.eye(n)) / 2 if method == "attention" and residual else mixed
        so_far = rolled[layer] = halved @ so_far
    return Named(f"rollout of {method}", rolled, mixing.axes, mixing.labels)


def _of_heads(model: ModelSource, prompt: Any, kind: str, *, through_W_O: bool) -> Named:
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
    """Return $c_{ij}$, one query at a time: all T at once would take n² d_model entries."""
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


def _read(model: ModelSource, prompt: Any) -> tuple[Model, Prompt]:
    loaded = load_model(model)
    return loaded, read_prompt(loaded, prompt)
