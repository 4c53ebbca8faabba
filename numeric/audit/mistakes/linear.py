"""Mistakes in products and sums: biases, transposes, layers, the residual stream."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from otimes.numeric.audit.mistakes.projections import SPLITS, Change
from otimes.numeric.audit.reference.edits import (
    given,
    moved_after,
    of_layer,
    other_place,
    scaled,
    times,
    weights_from,
    weights_to,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation, makes_act
from otimes.numeric.block import WEIGHTS, kind_of, place_names
from otimes.numeric.config import Config
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.functions import normalised
from otimes.numeric.rounding.linear import Array, Near, added

BIASED = {
    "b_Q": "q", "b_K": "k", "b_V": "v", "b_O": "attn_out", "b_in": "mlp_pre", "b_gate": "mlp_pre",
    "b_out": "mlp_out", "b_U": "logits",
}  # fmt: skip
CHANGES: dict[str, Change] = {
    "a dropped bias: without {}": np.zeros_like,
    "a doubled bias: {} added twice": lambda b: 2 * b,
    "a bias of the wrong sign: {} subtracted": np.negative,
}
OF_HEADS = ("head_out", "attn_out")
"""The outputs of the heads behind W_O: each by itself, and their sum."""
PARTS = {
    "the norms": ("ln1", "ln2"),
    "attention": ("q", "k", "v", *OF_HEADS),
    "the MLP": ("mlp_pre", "mlp_post", "mlp_out"),
}
"""The operations of a layer, in groups."""


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of products and sums."""
    yield from _biases(config)
    if config.n_layers:
        yield from _transposes(config)
        for says, act in _out_of_heads(config):
            yield Mistake(says, dict.fromkeys(OF_HEADS, act))
        says = "a wrong head stride: heads and positions not transposed back, as W_O reads z"
        yield Mistake(says, {"z": moved_after(_viewed)}, 2)
        yield from _stream(config)
    if config.n_layers > 1:
        yield from _layers(config)


def _biases(config: Config) -> Iterator[Mistake]:
    attention: tuple[str, ...] = tuple(b for b in ("b_Q", "b_K", "b_V") if b in config.biases)
    kinds = BIASED | ({"b_in": "mlp_post"} if config.gated else {})
    groups = [(b,) for b in config.biases if b in kinds] + (
        [attention] if len(attention) > 1 else []
    )
    for names in groups:
        for says, change in CHANGES.items():
            acts = {kinds[name]: weights_to(**{name: change}) for name in names}
            rank = 0 if change is np.zeros_like else 1
            yield Mistake(says.format(" and ".join(names)), acts, rank)
    for name, other in (("b_O", "b_out"), ("b_out", "b_O"), ("b_Q", "b_K"), ("b_K", "b_Q")):
        if {name, other} <= {*config.biases} and config.shape(name) == config.shape(other):
            act = weights_from(**{name: other})
            yield Mistake(f"a wrong bias: {other} for {name}", {BIASED[name]: act})
    if "b_O" in config.biases and config.n_heads > 1:
        act = weights_to(b_O=lambda b: config.n_heads * b)
        yield Mistake("a bias added too often: b_O once for each head", {"attn_out": act})


def _transposes(config: Config) -> Iterator[Mistake]:
    for name, kinds, change in _transposed(config):
        says = f"{name} transposed (Conv1D for Linear)"
        yield Mistake(says, dict.fromkeys(kinds, weights_to(**{name: change})))
    square = config.n_heads * config.d_head == config.d_model and not config.kv_rank
    if square and config.kv_heads == config.n_heads:
        acts = {kind: weights_to(**{f"W_{kind.upper()}": _heads_transposed}) for kind in "qkv"}
        yield Mistake("W_Q, W_K and W_V transposed (Conv1D for Linear)", acts)
    if config.d_mlp:
        reads = "mlp_post" if config.gated else "mlp_pre"
        for which, named in ((-1, "last"), (0, "first")):
            zero = partial(_without, which)
            says = f"the {named} neuron of the MLP left out: a row of W_out is zero"
            yield Mistake(says, {"mlp_out": weights_to(W_out=zero)})
            says = f"the {named} feature of what the MLP reads left out: a row of W_in is zero"
            yield Mistake(says, {reads: weights_to(W_in=zero)})
    if config.d_head == config.d_model and not config.kv_rank:
        for kinds, name in ((("q",), "W_Q"), (("k",), "W_K"), (("v",), "W_V"), (OF_HEADS, "W_O")):
            act = weights_to(**{name: partial(np.swapaxes, axis1=-1, axis2=-2)})
            yield Mistake(f"{name} of each head transposed", dict.fromkeys(kinds, act))


def _transposed(config: Config) -> Iterator[tuple[str, tuple[str, ...], Change]]:
    """Yield (square weight, the operations that use it, the function that transposes it)."""
    if config.n_heads * config.d_head == config.d_model and not config.kv_rank:
        yield "W_Q", ("q",), _heads_transposed
        if config.kv_heads == config.n_heads:
            yield "W_K", ("k",), _heads_transposed
            yield "W_V", ("v",), _heads_transposed
        yield "W_O", OF_HEADS, lambda w: w.reshape(config.d_model, -1).T.reshape(w.shape)
    if config.d_mlp == config.d_model:
        yield "W_in", ("mlp_pre",), np.transpose
        yield "W_out", ("mlp_out",), np.transpose


def _heads_transposed(weight: Array) -> Array:
    """Return W [head, d_model, d_head] with the square matrix of all heads transposed."""
    heads, d_model, d_head = weight.shape
    square = np.moveaxis(weight, 0, 1).reshape(d_model, heads * d_head)
    return np.moveaxis(square.T.reshape(d_model, heads, d_head), 1, 0)


def _without(which: int, array: Array) -> Array:
    """Return an array with one row, or one head's part, set to zero."""
    kept = array.copy()
    kept[which] = 0
    return kept


def _out_of_heads(config: Config) -> Iterator[tuple[str, Act]]:
    if config.n_heads > 1:
        for says, order in SPLITS.items():
            act = given(z=partial(_reordered, order))
            yield f"{says}: where heads are put together for W_O", act
        says = "a wrong head stride: heads and positions not transposed back before W_O"
        yield says, given(z=_viewed)
        yield "heads averaged and not summed", given(z=lambda z: z / config.n_heads)
        for head in range(min(config.n_heads, 64)):
            yield f"head {head} left out", given(z=partial(_without, head))
    if config.n_heads * config.value_width == config.d_model:
        says = "without W_O: the heads are put side by side and not projected"
        yield says, weights_to(W_O=lambda w: np.eye(config.d_model).reshape(w.shape))
    yield "nothing but b_O: the heads are left out", given(z=np.zeros_like)


def _viewed(z: Array) -> Array:
    """Return z [head, pos, d_head] reinterpreted as if it were [pos, head, d_head]."""
    heads, n_pos, d_head = z.shape
    return np.moveaxis(z.reshape(n_pos, heads, d_head), 1, 0)


def _reordered(order: Change, z: Array) -> Array:
    return np.moveaxis(order(np.moveaxis(z, 0, 1)), 1, 0)


def _stream(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes in adding attention or the MLP to the residual stream."""
    written = ("ln1_post", "ln2_post") if config.norms_output else ("attn_out", "mlp_out")
    parts = [("resid_mid", written[0], "attention", "ln1")]
    parts += [("resid_post", written[1], "the MLP", "ln2")] if config.d_mlp else []
    for kind, part, name, norm in parts:
        # The sum of a parallel block has both parts, and that after attention is none of its terms.
        sums = {kind, "resid_post"} if config.parallel and config.d_mlp else {kind}
        around, wrote = f"the residual connection around {name}", f"what {name} wrote"
        for says, terms, rank in (
            (f"without {around}", lambda at, o, own: [own], 0),
            (f"without {wrote}: it is not added to the stream", lambda at, o, own: o, 0),
            (f"{around} added twice", lambda at, o, own: [*o, *o, own], 1),
            (f"{wrote} added twice", lambda at, o, own: [*o, own, own], 1),
            (f"{wrote} subtracted", lambda at, o, own: [*o, scaled(own, -1.0)], 1),
        ):
            yield Mistake(says, dict.fromkeys(sums, _of_sum(part, terms)), rank)
        if part == written[1] and not config.post_norm:
            says = "the stream before attention added once more after the MLP: it is added twice"
            yield Mistake(says, dict.fromkeys(sums, _with_again("resid_pre")))
        again = _with_again("embed")
        yield Mistake(f"the embedding added again after {name}", dict.fromkeys(sums, again))
        for factor in (0.5, 2**-0.5):
            says = f"the sum after {name} multiplied by {factor:.3g}"
            yield Mistake(says, dict.fromkeys(sums, times(factor)))
        if config.norms_before:
            says = f"{around} takes the norm of the stream (post-norm)"
            yield Mistake(says, dict.fromkeys(sums, _of_sum(part, partial(_with_norm, norm))))
    if not config.post_norm:
        last = "resid_post" if config.d_mlp else "resid_mid"
        says = "layers left out: the stream passes by them as it is"
        yield Mistake(says, {last: lambda at, op: other_place(at, "resid_pre")})
    if config.norms_before and not config.parallel:
        says = "norms in place overwrite the stream: what is added to is normalised, without gain"
        yield Mistake(says, {kind: _of_sum(part, _overwritten) for kind, part, *_ in parts})
    if config.d_mlp:
        says = "the MLP's output is added to the stream before attention: attention is lost"
        yield Mistake(says, {"resid_post": _attention_lost})


def _attention_lost(at: At, operation: Operation) -> Near:
    (own,) = [near for kind, near in at.inputs.items() if kind in ("mlp_out", "ln2_post")]
    return added(at.p, other_place(at, "resid_pre"), own)


def _with_again(place: str) -> Act:
    return lambda at, op: added(at.p, *at.inputs.values(), other_place(at, place))


def _overwritten(at: At, others: list[Near], own: Near) -> list[Near]:
    (stream,), config = others, at.config
    ones = Near.exactly(np.ones(config.d_model))
    return [normalised(stream, config.norm, config.norm_eps, ones, None, at.p), own]


Terms = Callable[[At, list[Near], Near], list[Near]]
"""What is added to the residual stream: from the other terms, and what a part writes."""


def _with_norm(norm: str, at: At, others: list[Near], own: Near) -> list[Near]:
    return [other_place(at, norm), own]


@makes_act
def _of_sum(at: At, operation: Operation, part: str, terms: Terms) -> Near:
    """Act: add other terms to the residual stream.

    The output of the other part of a parallel block is added unchanged.
    """
    written = ("attn_out", "mlp_out", "ln1_post", "ln2_post")
    others = [near for kind, near in at.inputs.items() if kind not in written]
    left = [near for kind, near in at.inputs.items() if kind in written and kind != part]
    chosen = [*terms(at, others, at.inputs[part]), *left]
    return added(at.p, *chosen) if len(chosen) > 1 else chosen[0]


def _layers(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of using another layer's weights: all, those of a part, or one."""
    kinds = [kind for part in PARTS.values() for kind in part]
    there = {kind_of(place) for place in place_names(config)}
    kinds = [kind for kind in kinds if kind in there]
    readers: dict[str, list[str]] = {}
    for kind in kinds:
        for name in WEIGHTS.get(kind, ()):
            if name in config.tensor_shapes():
                readers.setdefault(name, []).append(kind)
    for other in dict.fromkeys((0, config.n_layers - 1)):
        says = f"the weights of layer {other} in every layer: one layer's weights for all"
        yield Mistake(says, dict.fromkeys(kinds, of_layer(other)), 0)
    for other in range(min(config.n_layers, 16)):
        where = f"of layer {other}, a wrong layer"
        act = of_layer(other)
        yield Mistake(f"weights {where}", dict.fromkeys(kinds, act), 2)
        for says, part in PARTS.items():
            if acting := [kind for kind in part if kind in kinds]:
                yield Mistake(f"weights of {says} {where}", dict.fromkeys(acting, act), 2)
        for name, reading in readers.items():
            acts = dict.fromkeys(reading, _one_of_layer(name, other))
            yield Mistake(f"{name} {where}", acts, 3)

    def mirrored(at: At, operation: Operation) -> Near:
        return of_layer(config.n_layers - 1 - (at.weights.layer or 0))(at, operation)

    acts = dict.fromkeys(kinds, mirrored)
    yield Mistake("the layers in reverse order", acts, in_first=True)


@makes_act
def _one_of_layer(at: At, operation: Operation, name: str, layer: int) -> Near:
    return operation(with_weights(at, **{name: at.weights.model.part(name, layer)}))
