r"""Closure: a check that the orders sum to the forward pass, layer by layer and end to end.

For each layer, on its own inputs:

- the frozen attention, applied to the recorded residual stream, must give the recorded `attn_out`,
  and an MLP with frozen gates the recorded `mlp_out`;
- the parts after the layer must sum to the frozen layer applied to the sum of the parts before it,
  plus the sources it adds: $Σ_k X_k' = S + Σ_h A_h Ŷ W_V W_O + …$ with $S = Σ_k X_k$.

Both are multilinear, so the bound is γ_m times the same expression on absolute values, m the
roundings on the longest path through either side. Scales and patterns are inputs: both sides use
the same numbers. Float32 results are compared with float64.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from otimes.numeric.frozen import FrozenPass
from otimes.numeric.frozen_layer import FrozenLayer, FrozenMLP, centre
from otimes.numeric.output_norms import added_place
from otimes.numeric.paths.orders import graded_pass
from otimes.numeric.rounding import UNIT_ROUNDOFF, gamma, worst_ratio


class Closure(NamedTuple):
    """The rounding errors of a path expansion.

    `ratio` is the largest local error/bound over the layers: at most 1 on correct code. `error` is
    the largest difference between a logit and the sum of all orders. It has no bound: one that is
    propagated through all layers would be too large to be useful.
    """

    ratio: float
    error: float


def close(frozen: FrozenPass) -> Closure:
    """Return the worst error/bound of any layer, and the largest error of any logit."""
    n_layers, (n_pos, d_model) = frozen.model.n_layers, frozen.first.shape
    outs = ("attn_out", *(["mlp_out"] if frozen.mlp_gates else []))
    recorded = ("resid_pre", "resid_mid", *(added_place(frozen.model, out) for out in outs))
    each = [f"{place}.{number}" for number in range(n_layers) for place in recorded]
    places = frozen.model.forward(frozen.tokens, [*each, "logits"])
    streams = np.zeros((n_layers + 1, n_pos, d_model), dtype=frozen.dtype)
    ratios = [0.0]
    expected, bound = np.zeros((n_pos, d_model)), np.zeros((n_pos, d_model))
    for done in graded_pass(frozen, streams):
        parts = streams.astype(np.float64)
        if done:
            ratios.append(worst_ratio(parts.sum(axis=0), expected, bound))
        if done == n_layers:
            break
        ratios.extend(_against_recorded(frozen, done, places))
        expected = _plainly(frozen, done, parts.sum(axis=0))
        # Besides those of one layer, the roundings of the sums over parts, and within a part.
        bound = _allowed(frozen, 2 * (n_layers + 3)) * _size(
            frozen, done, np.abs(parts).sum(axis=0)
        )
    whole = streams.sum(axis=0, keepdims=True)
    logits = frozen.unembed(frozen.normed(whole)[0]) + frozen.constants()
    error = np.abs(logits - places["logits"]).max()
    return Closure(max(ratios), float(error))


U64 = UNIT_ROUNDOFF["float64"]


def roundings(frozen: FrozenPass) -> int:
    """Return an upper bound on the number of roundings of an entry in one layer.

    They are: mean, centring, scale, gain and bias of the norm; the values, by latents and their
    norm if there are any, and the norm's bias in them; the pattern; W_O and the sum over heads; b_O
    and the residual sum; and one for each factor converted from float64 to float32. For an MLP: the
    norm again, both products with their biases, the gate, the residual sum.
    """
    model, n_pos = frozen.model, frozen.n_pos
    norm, values = model.d_model + 6, 2 * model.d_model + 4
    values += model.d_model + 2 * model.config.kv_rank + 8 if model.config.kv_rank else 0
    out = model.n_heads * (model.config.value_width + 1)
    out += model.d_model + 8 if model.config.norms_output else 0  # the norm of the output
    mlp = norm + 2 * model.d_model + model.config.d_mlp + 12 if frozen.mlp_gates else 0
    return norm + values + n_pos + out + mlp + 4 + 8


def _allowed(frozen: FrozenPass, more: int = 0) -> float:
    """Return the factor of the bound: γ_m in the dtype of the pass plus γ_m in float64."""
    m = roundings(frozen) + more
    return gamma(m, UNIT_ROUNDOFF[str(frozen.dtype)]) + gamma(m, U64)


def _against_recorded(
    frozen: FrozenPass, number: int, places: Mapping[str, np.ndarray]
) -> Iterator[float]:
    """Yield error/bound of the frozen layer's outputs on the recorded residual stream."""
    layer, mlp = frozen.layer(number), frozen.mlp(number)
    read, b_O = places[f"resid_pre.{number}"], frozen.attention_bias(number).astype(np.float64)
    out, mlp_out = (added_place(frozen.model, place) for place in ("attn_out", "mlp_out"))
    given = layer.write(layer.z(read.astype(frozen.dtype)[None]) + layer.constant())[0] + b_O
    size = attention_size(layer, np.abs(read)) + np.abs(b_O)
    yield worst_ratio(given, places[f"{out}.{number}"], _allowed(frozen) * size)
    if mlp is not None:
        read = places[f"resid_{'pre' if mlp.parallel else 'mid'}.{number}"]
        given = mlp.apply(read.astype(frozen.dtype)[None])[0] + mlp.constant()
        size = mlp_size(mlp, np.abs(read))
        yield worst_ratio(given, places[f"{mlp_out}.{number}"], _allowed(frozen) * size)


def _plainly(
    frozen: FrozenPass, number: int, stream: Float[np.ndarray, "pos d_model"]
) -> Float[np.ndarray, "pos d_model"]:
    """Return the frozen layer applied to a residual stream, in float64, one head at a time."""
    layer, mlp = frozen.layer(number), frozen.mlp(number)
    rows = layer.read(stream)
    middle = stream + frozen.attention_bias(number).astype(np.float64)
    heads = zip(layer.pattern, layer.W_V, layer.value_bias, layer.W_O, strict=True)
    for pattern, W_V, bias, W_O in heads:
        middle = middle + pattern @ (rows @ W_V + bias) @ W_O
    if mlp is None:
        return middle + frozen.mlp_outs[number] if frozen.mlp_outs else middle
    read = centre(stream if mlp.parallel else middle, mlp.centring) / mlp.scale * mlp.gain
    hidden = ((read + mlp.norm_bias) @ mlp.W_in + mlp.b_in) * mlp.gates
    return middle + hidden @ mlp.W_out + mlp.b_out


def _size(
    frozen: FrozenPass, number: int, sizes: Float[np.ndarray, "pos d_model"]
) -> Float[np.ndarray, "pos d_model"]:
    """Return the frozen layer, with the sources it adds, on absolute values."""
    mlp = frozen.mlp(number)
    middle = sizes + attention_size(frozen.layer(number), sizes)
    middle = middle + np.abs(frozen.attention_bias(number).astype(np.float64))
    if mlp is None:
        return middle + np.abs(frozen.mlp_outs[number]) if frozen.mlp_outs else middle
    return middle + mlp_size(mlp, sizes if mlp.parallel else middle)


def attention_size(
    layer: FrozenLayer, sizes: Float[np.ndarray, "pos d_model"]
) -> Float[np.ndarray, "pos d_model"]:
    """Return the sum of the heads' outputs on absolute values."""
    absolute = replace(
        layer,
        pattern=layer.pattern.astype(np.float64),
        scale=layer.scale.astype(np.float64),
        centring=abs(layer.centring),
        gain=_sizes(layer.gain),
        W_V=_sizes(layer.W_V if layer.V_size is None else layer.V_size),
        V_size=None,
        norm_bias=_sizes(layer.norm_bias),
        b_V=_sizes(layer.b_V),
        W_O=_sizes(layer.W_O),
    )
    written: np.ndarray = absolute.write(absolute.z(sizes[None]) + absolute.constant())[0]
    return written


def mlp_size(
    mlp: FrozenMLP, sizes: Float[np.ndarray, "pos d_model"]
) -> Float[np.ndarray, "pos d_model"]:
    """Return the output of an MLP with frozen gates on absolute values."""
    absolute = replace(
        mlp,
        gates=_sizes(mlp.gates),
        scale=mlp.scale.astype(np.float64),
        centring=abs(mlp.centring),
        gain=_sizes(mlp.gain),
        W_in=_sizes(mlp.W_in),
        norm_bias=_sizes(mlp.norm_bias),
        b_in=_sizes(mlp.b_in),
        W_out=_sizes(mlp.W_out),
        b_out=_sizes(mlp.b_out),
    )
    written: np.ndarray = absolute.apply(sizes[None])[0] + absolute.constant()
    return written


def _sizes(array: np.ndarray) -> np.ndarray:
    """Return the absolute values in float64."""
    return np.abs(array.astype(np.float64))
