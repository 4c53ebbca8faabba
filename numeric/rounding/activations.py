"""Rounding bounds for each activation of a forward pass, given the inputs of its operation.

    bounds = LocalBounds(model, "float32")
    judged = bounds.place("pattern.3", {"scores.3": scores})
    worst_ratio(pattern, judged.value, judged.bound) <= 1

The bounds are for one operation on its own inputs: earlier errors do not matter. The inputs are
those that the implementation recorded, and the weights of `model` must be those that it uses; for a
float32 implementation of float64 weights, `in_dtype` rounds them. An input that was not recorded is
computed from its own inputs with its error, so that a fused attention can be checked at `z`; over
many operations such a bound becomes too large to be useful.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.block import WEIGHTS, head_width_of, inputs_of, kind_of, place_names, width_of
from otimes.numeric.config import TENSORS, Config
from otimes.numeric.functions import alibi, visible_keys
from otimes.numeric.model import Model
from otimes.numeric.rounding.experts import routed_neurons, routed_weights
from otimes.numeric.rounding.functions import (
    activated,
    limited,
    normalised,
    rotated,
    soft_cap,
    softmax,
    softmax_with_sink,
)
from otimes.numeric.rounding.linear import Near, added, linear, multiplied, over_heads
from otimes.numeric.rounding.precision import (
    Precision,
    known,
    precision,
    smallest_noticed,
    stored_as,
)

Array = np.ndarray
CHANGE = 2.0**-12  # the relative step of finite differences: exact, and small enough to be linear


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The float64 value of an activation, and an entrywise bound on an implementation's error.

    `bound` holds for correct code; it is infinite where there is none (masked scores, a norm that
    may divide by zero). `likely` ≤ `bound` assumes independent rounding errors: correct code is
    usually, but not always, below it.
    """

    value: Array
    bound: Array
    likely: Array


class LocalBounds:
    """The local bounds of a model's activations, for implementations in one precision.

    `dtype` is "float64", "float32", "float16" or "bfloat16", or a `Precision`.
    """

    def __init__(self, model: Model, dtype: str | Precision) -> None:
        self.model = model
        self.precision = precision(dtype) if isinstance(dtype, str) else dtype

    def place(self, name: str, recorded: Mapping[str, Array]) -> Judged:
        """Return the value and bounds of an activation, from recorded ones ("tokens" for `embed`).

        Raises: OtimesError for an unknown activation, or missing tokens; ShapeError for an input of
        the wrong shape.
        """
        near = self._near(name, recorded, {}, self.precision)
        likely = self._near(name, recorded, {}, self.precision.supposed_likely())
        grown = self.precision.doubled
        bound = near.error * grown
        return Judged(near.value, bound, np.minimum(likely.error * grown, bound))

    def sensitivity(self, name: str, recorded: Mapping[str, Array]) -> dict[str, float]:
        """Return for each factor of an activation its smallest detectable relative change.

        The factors are the weights and activations that the operation reads. All entries of a
        factor are changed by the same relative amount, in first order. The result is accurate up to
        a factor of two, as actual rounding errors may hide a change or add to it.
        """
        judged = self.place(name, recorded)
        read = inputs_of(self.model.config, name)
        noticed = {}
        for factor in (*[each for each in read if each in recorded], *weights_of(self.model, name)):
            if factor == "tokens":
                continue
            places, scaled = dict(recorded), {factor: 1 + CHANGE}
            if factor in recorded:
                places[factor] = np.asarray(recorded[factor], dtype=np.float64) * (1 + CHANGE)
                scaled = {}
            moved = self._near(name, places, scaled, self.precision).value
            noticed[factor] = smallest_noticed((moved - judged.value) / CHANGE, judged.bound)
        return noticed

    def _near(
        self, name: str, recorded: Mapping[str, Array], scaled: Mapping[str, float], p: Precision
    ) -> Near:
        config = self.model.config
        if name not in place_names(config):
            raise OtimesError(f"{self.model.name} has no activation {name}")
        inputs = {}
        for read in inputs_of(config, name):
            if read in recorded:
                inputs[kind_of(read)] = Near.exactly(recorded[read])
            elif read == "tokens":
                raise OtimesError(f"{name} is computed from the tokens: record them as 'tokens'")
            else:
                inputs[kind_of(read)] = self._near(read, recorded, {}, p)
        n_pos = _positions(name, config, inputs)
        weights = Weights(self.model, name, n_pos, scaled)
        hidden = frozenset(kind_of(r) for r in inputs_of(config, name) if r not in recorded)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            layer = 0 if weights.layer is None else weights.layer
            config = config.of_layer(layer)
            near = OPERATIONS[kind_of(name)](At(config, inputs, weights, n_pos, hidden, p))
        return Near(near.value, known(near.error))


def in_dtype(model: Model, dtype: str) -> Model:
    """Return the model with its weights rounded to a dtype, stored as float64."""
    return model.changed({name: stored_as(each, dtype) for name, each in model.weights.items()})


def weights_of(model: Model, place: str) -> tuple[str, ...]:
    """Return the names of the model's weights that an activation is computed with."""
    config, kind = model.config, kind_of(place)
    names = WEIGHTS.get(kind, ())
    if kind == "mlp_pre":
        names = names[2:] if config.gated else names[:2]
    if kind == "mlp_post" and not config.gated:
        names = ()
    starts = place in ("resid_pre.0", "final") and (place != "final" or not config.n_layers)
    learned = config.positions == "learned" and not config.embed_norm
    needed = {"qk_in": config.positions == "shortformer"}
    needed |= dict.fromkeys(("resid_pre", "final"), starts and learned)
    if not needed.get(kind, True):
        return ()
    has = {*config.tensor_shapes(), *(["W_U"] if config.tied else [])}
    return tuple(name for name in names if name in has)


@runtime_checkable
class Parts(Protocol):
    """The part of `Model` that `Weights` needs."""

    def part(self, name: str, index: Any = ...) -> Array:
        """Return a tensor, or its part at `index` of the first axis, in float64."""


class Weights(dict[str, Array]):
    """The weights of one operation, loaded on first access; `scaled` has factors for some."""

    def __init__(
        self, model: Parts, place: str, n_pos: int, scaled: Mapping[str, float] | None = None
    ) -> None:
        super().__init__()
        self.model, self.scaled, self.n_pos = model, scaled or {}, n_pos
        self.kind = kind_of(place)
        self.layer = int(place.rpartition(".")[2]) if "." in place else None

    def columns(self, name: str, chosen: slice) -> Array:
        """Return some columns of a matrix; only these are converted."""
        if name in self:
            return self[name][:, chosen]
        array = self.model.part(name, (slice(None), chosen))
        return array * self.scaled[name] if name in self.scaled else array

    def __missing__(self, name: str) -> Array:
        if TENSORS[name][0] == "n_layers":
            array = self.model.part(name, self.layer)
        else:
            array = self.model.part(name, slice(self.n_pos) if name == "W_pos" else slice(None))
        self[name] = array * self.scaled[name] if name in self.scaled else array
        return self[name]


@dataclass(frozen=True, slots=True, eq=False)
class At:
    """The arguments of an operation: its inputs by name, its weights, and the precision."""

    config: Config
    inputs: Mapping[str, Near]
    weights: Weights
    n_pos: int
    hidden: frozenset[str] = field(default_factory=frozenset)
    p: Precision = field(default_factory=lambda: precision("float64"))
    read: Callable[[str], Near] | None = None
    """Returns any other activation by name; used by operations with a planted mistake."""

    @property
    def visible(self) -> Array:
        """The mask [query, key] of the layer: causal, with its window."""
        return _visible(self.n_pos, self.config.window)

    def only(self) -> Near:
        """Return the one input."""
        (near,) = self.inputs.values()
        return near

    def weight(self, name: str) -> Near:
        """Return a weight, without error; gains that are stored minus 1 have that of the sum.

        The stored w is rounded too where the norm is computed in float32, and the weights are
        float64: |fl(1 + fl(w)) - (1 + w)| ≤ u |1 + w| + u |w|.
        """
        near = Near.exactly(self.weights[name])
        if name.endswith("_gain") and self.config.gain_offset and not self.p.exact:
            size = np.abs(near.value) + np.abs(near.value - 1.0)
            return Near(near.value, self.p.stored() * size)
        return near

    def bias(self, name: str) -> Array | None:
        """Return a bias, with an axis for positions after heads; None if the model lacks it."""
        if not self.config.has(name):
            return None
        bias = self.weights[name]
        return bias[:, None] if name in ("b_Q", "b_K", "b_V") else bias


@lru_cache(maxsize=16)
def _visible(n_pos: int, window: int) -> Array:
    visible = visible_keys(n_pos, window)
    visible.flags.writeable = False
    return visible


def _embed(at: At) -> Near:
    tokens = at.only().value.astype(np.int64)
    rows = at.weights.model.part("W_E", tokens) * at.weights.scaled.get("W_E", 1.0)
    scale = at.config.embed_scale
    if scale == 1 or at.p.exact:
        return Near.exactly(rows * scale)
    # The scale is rounded to the stored dtype, as Gemma does, and so is the product:
    # |fl(fl(s) e) - s e| ≤ ((1 + u)² - 1) |s e|.
    value = rows * scale
    return Near(value, at.p.stored(2) * np.abs(value) + at.p.tiny)


def _stream(at: At) -> Near:
    """Return the embedding plus learned positions before the first layer; else the one input."""
    if at.config.positions == "learned" and "embed" in at.inputs:
        return added(at.p, at.only(), at.weight("W_pos"))
    return at.only()


def _ln_embed(at: At) -> Near:
    rows = at.only()
    if at.config.positions == "learned":
        rows = added(at.p, rows, at.weight("W_pos"))
    gain, bias = at.weight("ln_embed_gain"), at.bias("ln_embed_bias")
    return normalised(rows, at.config.norm, at.config.norm_eps, gain, bias, at.p)


def _qk_in(at: At) -> Near:
    if at.config.positions == "shortformer":
        return added(at.p, at.only(), at.weight("W_pos"))
    return at.only()


def _norm(name: str) -> Callable[[At], Near]:
    def norm(at: At) -> Near:
        gain, bias = at.weight(f"{name}_gain"), at.bias(f"{name}_bias")
        return normalised(at.only(), at.config.norm, at.config.norm_eps, gain, bias, at.p)

    return norm


def _read(letter: str) -> Callable[[At], Near]:
    def read(at: At) -> Near:
        config = at.config
        if config.kv_rank and letter == "K":
            return _latent_keys(at)
        made = linear(at.only(), at.weight(f"W_{letter}"), at.bias(f"b_{letter}"), at.p)
        if letter == "V":
            return made
        if config.qk_norm != "none":
            made = normed_heads(at, made, at.weight(f"{letter.lower()}_norm_gain"))
        if config.positions != "rotary":
            return made
        return rotated(made, *config.rotation, p=at.p)

    return read


def _latent(name: str, weight: str) -> Callable[[At], Near]:
    def latent(at: At) -> Near:
        made = linear(at.only(), at.weight(weight), None, at.p)
        return normalised(made, "rms", at.config.latent_eps, at.weight(f"{name}_gain"), None, at.p)

    return latent


def _latent_keys(at: At) -> Near:
    """Return keys of latent attention: a rotary part that all heads share, then each head's own."""
    own = linear(at.inputs["kv_latent"], at.weight("W_K"), None, at.p)
    shared = linear(at.inputs["qk_in"], at.weight("W_KR"), None, at.p)
    parts = [
        [np.broadcast_to(each, (*own.value.shape[:-1], each.shape[-1])) for each in pair]
        for pair in (
            (shared.value, own.value),
            (np.broadcast_to(shared.error, shared.value.shape), own.error),
        )
    ]
    value, error = (np.concatenate(pair, axis=-1) for pair in parts)
    keys = Near(value, error)
    return rotated(keys, *at.config.rotation, p=at.p) if at.config.positions == "rotary" else keys


def normed_heads(at: At, heads: Near, gain: Near) -> Near:
    """Return queries or keys after their norm: each head alone, or all heads of a position."""
    config, p = at.config, at.p
    if config.qk_norm == "head":
        gain = Near(gain.value[:, None], gain.error[:, None])
        return normalised(heads, config.norm, config.norm_eps, gain, None, p)
    n_heads, n_pos, d_head = heads.value.shape

    def flat(array: Array) -> Array:
        return array.swapaxes(0, 1).reshape(n_pos, n_heads * d_head)

    rows = Near(flat(heads.value), flat(np.broadcast_to(heads.error, heads.value.shape)))
    gain = Near(gain.value.reshape(-1), gain.error.reshape(-1))
    near = normalised(rows, config.norm, config.norm_eps, gain, None, p)

    def back(array: Array) -> Array:
        return array.reshape(n_pos, n_heads, d_head).swapaxes(0, 1)

    return Near(back(near.value), back(np.broadcast_to(near.error, near.value.shape)))


def all_scores(at: At) -> Near:
    """Return the scores of all pairs; queries or keys may carry their scale, or a part of it."""
    q, k, scale = at.inputs["q"], at.inputs["k"], at.config.score_scale
    keys = Near(np.swapaxes(k.value, -1, -2), np.swapaxes(k.error, -1, -2))
    raw = linear(q, keys, None, at.p, rescaled=2)
    value = raw.value * scale
    if at.p.exact:
        near = Near.exactly(value)
    else:
        error = raw.error * scale
        error = error + (at.p.stored() + 2 * at.p.inner) * (np.abs(value) + error) + at.p.tiny
        near = Near(value, error)
    return _with_distance(at, soft_cap(near, at.config.score_cap, at.p))


def _scores(at: At) -> Near:
    near = all_scores(at)
    hidden = np.where(at.visible, 0.0 if at.p.exact else near.error, np.inf)
    return Near(near.value, np.broadcast_to(hidden, near.value.shape))


def _with_distance(at: At, scores: Near) -> Near:
    """Return the scores with the distances of ALiBi.

    Implementations add slope · key, which is the same up to a constant for each query; it is
    rounded to the stored dtype, and so is the sum.
    """
    if at.config.positions != "alibi":
        return scores
    slopes = np.array(at.config.alibi_slopes)[:, None, None]
    value = scores.value + alibi(at.n_pos, 1.0) * slopes
    if at.p.exact:
        return Near.exactly(value)
    size = np.abs(scores.value) + scores.error + slopes * at.n_pos
    return Near(value, scores.error + at.p.stored(3) * size)


def _pattern(at: At) -> Near:
    online = "scores" in at.hidden
    if at.config.sinks:
        return softmax_with_sink(at.only(), at.visible, at.weights["sinks"], at.p, online)
    return softmax(at.only(), at.visible, at.p, online=online)


def _z(at: At) -> Near:
    """Return z; if the pattern is not recorded, it may be normalised after the product."""
    online = "pattern" in at.hidden
    sums = 3 * at.n_pos + 1 if online else 0
    return linear(at.inputs["pattern"], at.inputs["v"], None, at.p, rescaled=int(online), sums=sums)


def _attn_out(at: At) -> Near:
    return scaled_by(
        at, over_heads(at.only(), at.weight("W_O"), at.weights["b_O"], at.p), at.config.write_scale
    )


def scaled_by(at: At, near: Near, scale: float) -> Near:
    """Return what the weights contain a factor of, with the error of multiplying by it after them.

    The factor and the product are rounded, and the weights with the factor in float64.
    """
    if scale == 1 or at.p.exact:
        return near
    return Near(near.value, near.error + at.p.stored(3) * (np.abs(near.value) + near.error))


COLUMNS = 4096
"""The number of tokens that are unembedded at a time."""


def _logits(at: At) -> Near:
    """Return the logits, in blocks of columns: W_U is never converted to float64 as a whole."""
    rows, bias = at.only(), at.bias("b_U")
    n_columns = at.config.d_vocab
    value = np.empty((at.n_pos, n_columns))
    error = np.broadcast_to(0.0, value.shape) if at.p.exact else np.empty_like(value)
    for start in range(0, n_columns, COLUMNS):
        some = slice(start, start + COLUMNS)
        weight = Near.exactly(at.weights.columns("W_U", some))
        near = linear(rows, weight, None if bias is None else bias[some], at.p)
        value[:, some] = near.value
        if not at.p.exact:
            error[:, some] = near.error
    near = scaled_by(at, Near(value, error), at.config.logit_scale)
    return soft_cap(near, at.config.logit_cap, at.p)


def _sum(at: At) -> Near:
    """Return a sum; what is added may be rounded after it was recorded, when it is scaled."""
    terms = [
        scaled_by(at, near, 1.0 if kind.startswith("resid") else at.config.write_scale)
        for kind, near in at.inputs.items()
    ]
    return added(at.p, *terms) if len(terms) > 1 else at.only()


def _mlp_pre(at: At) -> Near:
    name = "gate" if at.config.gated else "in"
    return linear(at.only(), at.weight(f"W_{name}"), at.bias(f"b_{name}"), at.p)


def _mlp_post(at: At) -> Near:
    assert at.config.activation is not None  # the configuration of a model with an MLP names one
    limit = at.config.gate_limit
    pre = at.inputs["mlp_pre"]
    post = activated(at.config.activation, limited(pre, limit, top=True) if limit else pre, at.p)
    if not at.config.gated:
        return post
    return multiplied(post, linear_branch(at), at.p)


def linear_branch(at: At) -> Near:
    """Return the linear branch of a gated MLP, which the activated gate multiplies."""
    (rows,) = [near for kind, near in at.inputs.items() if kind != "mlp_pre"]
    up = linear(rows, at.weight("W_in"), at.bias("b_in"), at.p)
    limit = at.config.gate_limit
    return added(at.p, limited(up, limit), Near.exactly(np.ones(1))) if limit else up


def _mlp_out(at: At) -> Near:
    """Return the output of an MLP; experts may be weighted, and stored, one by one."""
    config, weight = at.config, at.weight("W_out")
    if not config.n_experts:
        made = linear(at.only(), weight, at.bias("b_out"), at.p)
        return scaled_by(at, made, config.write_scale)
    rows = at.inputs["routed"]
    if config.has("b_experts"):
        shares, own = at.inputs["routing"], at.weights["b_experts"]
        rows = _beside(rows, shares, config.n_experts)
        weight = Near.exactly(np.concatenate([weight.value, own]))
    roundings = config.experts_per_token + 4
    made = linear(rows, weight, at.bias("b_out"), at.p, rescaled=roundings)
    return scaled_by(at, made, config.write_scale)


def _beside(neurons: Near, shares: Near, count: int) -> Near:
    """Return rows of neurons and then of the weights of experts, without that of a shared one."""
    value = np.concatenate([neurons.value, shares.value[..., :count]], axis=-1)
    error = np.broadcast_to(shares.error, shares.value.shape)[..., :count]
    return Near(value, np.concatenate([neurons.error, error], axis=-1))


OPERATIONS: dict[str, Callable[[At], Near]] = {
    "embed": _embed,
    "ln_embed": _ln_embed,
    "resid_pre": _stream,
    "ln1": _norm("ln1"),
    "qk_in": _qk_in,
    "q_latent": _latent("q_latent", "W_DQ"),
    "kv_latent": _latent("kv_latent", "W_DKV"),
    "q": _read("Q"),
    "k": _read("K"),
    "v": _read("V"),
    "scores": _scores,
    "pattern": _pattern,
    "z": _z,
    "head_out": lambda at: scaled_by(
        at, linear(at.only(), at.weight("W_O"), None, at.p), at.config.write_scale
    ),
    "attn_out": _attn_out,
    "ln1_post": _norm("ln1_post"),
    "resid_mid": _sum,
    "ln2": _norm("ln2"),
    "mlp_pre": _mlp_pre,
    "mlp_post": _mlp_post,
    "router": lambda at: linear(at.only(), at.weight("W_router"), at.bias("b_router"), at.p),
    "routing": lambda at: routed_weights(at.config, at.only(), at.weights["b_choice"], at.p),
    "routed": lambda at: routed_neurons(
        at.config, at.inputs["mlp_post"], at.inputs["routing"], at.p
    ),
    "mlp_out": _mlp_out,
    "ln2_post": _norm("ln2_post"),
    "resid_post": _sum,
    "final": _stream,
    "ln_final": _norm("ln_final"),
    "logits": _logits,
}


def _positions(place: str, config: Config, inputs: Mapping[str, Near]) -> int:
    """Return the number of positions. Raises: ShapeError for an input of the wrong shape."""
    first = next(iter(inputs.values())).value
    n_pos = first.shape[-2] if first.ndim > 1 else len(first)
    for kind, near in inputs.items():
        expected = _shape(kind, config, n_pos)
        if near.value.shape != expected:
            raise ShapeError(
                f"{place} is computed from {kind}, which must have shape {expected} for {n_pos}"
                f" positions, got {near.value.shape}"
            )
    return n_pos


def _shape(kind: str, config: Config, n_pos: int) -> tuple[int, ...]:
    if kind == "tokens":
        return (n_pos,)
    if kind in ("q", "k", "v", "z"):
        return (config.n_heads, n_pos, head_width_of(kind, config))
    if kind in ("scores", "pattern"):
        return (config.n_heads, n_pos, n_pos)
    return (n_pos, width_of(kind, config))
