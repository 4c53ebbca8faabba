r"""Do the parts make up the whole? Layer by layer within a bound, and end to end in plain figures.

For each layer, on its own inputs:

- the frozen layer, given the recorded stream, must give the recorded `attn_out`;
- the parts after the layer must sum to the frozen layer of the sum of the parts before it, plus
  what enters: $Σ_k X_k' = S + Σ_h A_h Ŷ W_V W_O + …$ with $S = Σ_k X_k$.

Both are multilinear, so the bound is γ_m times the same expression on absolute values, m the
roundings on the longest way through either side. Scales and patterns are data: both sides use the
same numbers. What is computed in float32 is compared with float64.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from numeric.frozen import FrozenLayer, FrozenPass
from numeric.paths.orders import graded_pass
from numeric.rounding import UNIT_ROUNDOFF, gamma, worst_ratio


class Closure(NamedTuple):
    """How well the parts make up the whole.

    `ratio` is the largest local error/bound over the layers: at most 1 on correct code. `error` is
    the largest difference between a logit and what all orders together give; it has no bound, as
    one that goes through all layers would say nothing.
    """

    ratio: float
    error: float


def close(frozen: FrozenPass) -> Closure:
    """Return the worst error/bound of any layer, and the largest error of any logit."""
    n_layers, (n_pos, d_model) = frozen.model.n_layers, frozen.first.shape
    each = [f"{place}.{number}" for number in range(n_layers) for place in RECORDED]
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
        layer = frozen.layer(done)
        m, unit = roundings(frozen), UNIT_ROUNDOFF[str(frozen.dtype)]
        read = places[f"resid_pre.{done}"]
        given = _attended(layer, read.astype(frozen.dtype)) + frozen.model.part("b_O", done)
        size = attention_size(layer, np.abs(read)) + np.abs(frozen.model.part("b_O", done))
        recorded = places[f"attn_out.{done}"]
        ratios.append(worst_ratio(given, recorded, (gamma(m, unit) + gamma(m, U64)) * size))
        entering = frozen.entering(done).astype(np.float64)
        whole = parts.sum(axis=0)
        expected = whole + _plainly(layer, whole) + entering
        of_parts = np.abs(parts).sum(axis=0)
        size = of_parts + attention_size(layer, of_parts) + np.abs(entering)
        m += 2 * (n_layers + 3)  # the sums over the parts, and over what a part is made of
        bound = (gamma(m, unit) + gamma(m, U64)) * size
    whole = streams.sum(axis=0, keepdims=True)
    logits = frozen.unembed(frozen.normed(whole)[0]) + frozen.constants()
    error = np.abs(logits - places["logits"]).max()
    return Closure(max(ratios), float(error))


RECORDED = ("resid_pre", "attn_out")
U64 = UNIT_ROUNDOFF["float64"]


def roundings(frozen: FrozenPass) -> int:
    """Return how often an entry is rounded at most on its way through a layer.

    Mean, centring, scale, gain and bias of the norm; the values, with the norm's bias once read and
    once added; the pattern; W_O and the sum over heads; b_O and the stream; and each factor once
    more where float64 became float32.
    """
    model, n_pos = frozen.model, frozen.n_pos
    norm, values = model.d_model + 6, 2 * model.d_model + 4
    out = model.n_heads * (model.d_head + 1)
    return norm + values + n_pos + out + 4 + 8


def attention_size(
    layer: FrozenLayer, sizes: Float[np.ndarray, "pos d_model"]
) -> Float[np.ndarray, "pos d_model"]:
    """Return the layer on absolute values: what γ is multiplied with."""
    absolute = replace(
        layer,
        pattern=layer.pattern.astype(np.float64),
        scale=layer.scale.astype(np.float64),
        centring=abs(layer.centring),
        gain=np.abs(layer.gain.astype(np.float64)),
        W_V=np.abs(layer.W_V.astype(np.float64)),
        norm_bias=np.abs(layer.norm_bias.astype(np.float64)),
        b_V=np.abs(layer.b_V.astype(np.float64)),
        W_O=np.abs(layer.W_O.astype(np.float64)),
    )
    return _attended(absolute, sizes)


def _attended(layer: FrozenLayer, stream: Float[np.ndarray, "pos d_model"]) -> np.ndarray:
    """Return what the heads write, as the graded pass computes it."""
    return layer.write(layer.z(stream[None]) + layer.constant())[0]


def _plainly(layer: FrozenLayer, stream: Float[np.ndarray, "pos d_model"]) -> np.ndarray:
    """Return what the heads write, one head at a time in float64, as the formula stands."""
    rows = layer.read(stream.astype(np.float64))
    written = np.zeros_like(rows)
    heads = zip(layer.pattern, layer.W_V, layer.value_bias, layer.W_O, strict=True)
    for pattern, W_V, bias, W_O in heads:
        written += pattern @ (rows @ W_V + bias) @ W_O
    return written
