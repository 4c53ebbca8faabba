"""Mistakes in products and sums: biases, transposes, other layers' weights, the stream."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from otimes.numeric.audit.mistakes.projections import SPLITS
from otimes.numeric.audit.reference.edits import (
    given,
    moved,
    of_layer,
    other_place,
    scaled,
    times,
    weights_to,
    with_inputs,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation
from otimes.numeric.config import Config
from otimes.numeric.rounding.linear import Array, Near, added
from otimes.numeric.rounding.places import WEIGHTS, At

BIASED = {
    "b_Q": "q",
    "b_K": "k",
    "b_V": "v",
    "b_O": "attn_out",
    "b_in": "mlp_pre",
    "b_gate": "mlp_pre",
    "b_out": "mlp_out",
    "b_U": "logits",
}
OF_HEADS = ("head_out", "attn_out")
"""The outputs of the heads behind W_O: each by itself, and their sum."""
OF_LAYER = ("ln1", "q", "k", "v", "head_out", "attn_out", "ln2", "mlp_pre", "mlp_post", "mlp_out")


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of products and sums."""
    yield from _biases(config)
    if config.n_layers:
        yield from _transposes(config)
        yield from _out_of_heads(config)
        yield from _stream(config)
        yield from _layers(config)


def _biases(config: Config) -> Iterator[Mistake]:
    attention = [b for b in ("b_Q", "b_K", "b_V") if b in config.biases]
    groups: list[tuple[str, ...]] = [(b,) for b in config.biases]
    if len(attention) > 1:
        groups.append(tuple(attention))
    for names in groups:
        acts: dict[str, tuple[str, ...]] = {}
        for name in names:
            kinds = [BIASED[name]]
            if name == "b_in" and config.gated:
                kinds = ["mlp_post"]
            for kind in kinds:
                acts[kind] = (*acts.get(kind, ()), name)
        said = " and ".join(names)
        for what, says, change in (
            ("missing", f"a dropped bias: without {said}", np.zeros_like),
            ("twice", f"a doubled bias: {said} added twice", lambda b: 2 * b),
            ("subtracted", f"a bias of the wrong sign: {said} subtracted", lambda b: -b),
        ):
            yield Mistake(
                f"{'_'.join(names)}_{what}",
                says,
                {k: weights_to(**dict.fromkeys(each, change)) for k, each in acts.items()},
                0 if what == "missing" else 1,
            )
    for name, other in (("b_O", "b_out"), ("b_out", "b_O"), ("b_Q", "b_K"), ("b_K", "b_Q")):
        if {name, other} <= {*config.biases} and config.shape(name) == config.shape(other):
            yield Mistake(
                f"{name}_is_{other}",
                f"a wrong bias: {other} for {name}",
                {BIASED[name]: _other_weight(name, other)},
            )
    if "b_O" in config.biases and config.n_heads > 1:
        yield Mistake(
            "b_O_per_head",
            "a bias added too often: b_O once for each head",
            {"attn_out": weights_to(b_O=lambda b: config.n_heads * b)},
        )


def _other_weight(name: str, other: str) -> Act:
    return lambda at, operation: operation(with_weights(at, **{name: at.weights[other]}))


def _transposes(config: Config) -> Iterator[Mistake]:
    if config.n_heads * config.d_head == config.d_model:
        names = [("q", "W_Q"), ("k", "W_K"), ("v", "W_V")]
        if config.kv_heads == config.n_heads:
            acts = {kind: weights_to(**{name: _heads_transposed}) for kind, name in names}
            yield Mistake("qkv_transposed", "W_Q, W_K and W_V transposed (Conv1D for Linear)", acts)
        for kind, name in names:
            if name == "W_Q" or config.kv_heads == config.n_heads:
                yield Mistake(
                    f"{name}_transposed",
                    f"{name} transposed (Conv1D for Linear)",
                    {kind: weights_to(**{name: _heads_transposed})},
                )
        yield Mistake(
            "W_O_transposed",
            "W_O transposed (Conv1D for Linear)",
            dict.fromkeys(OF_HEADS, weights_to(W_O=_out_transposed)),
        )
    if config.d_mlp:
        for which, says in ((-1, "last"), (0, "first")):
            reads = "mlp_post" if config.gated else "mlp_pre"
            zero = partial(_zero_row, which)
            yield Mistake(
                f"{says}_neuron_lost",
                f"the {says} neuron of the MLP left out: a row of W_out is zero",
                {"mlp_out": weights_to(W_out=zero)},
            )
            yield Mistake(
                f"{says}_feature_lost",
                f"the {says} feature of what the MLP reads left out: a row of W_in is zero",
                {reads: weights_to(W_in=zero)},
            )
    if config.d_mlp == config.d_model:
        for kind, name in (("mlp_pre", "W_in"), ("mlp_out", "W_out")):
            yield Mistake(
                f"{name}_transposed",
                f"{name} transposed (Conv1D for Linear)",
                {kind: weights_to(**{name: np.transpose})},
            )
    if config.d_head == config.d_model:
        for kinds, name in ((("q",), "W_Q"), (("k",), "W_K"), (("v",), "W_V"), (OF_HEADS, "W_O")):
            act = weights_to(**{name: lambda w: np.swapaxes(w, -1, -2)})
            yield Mistake(
                f"{name}_head_transposed",
                f"{name} of each head transposed",
                dict.fromkeys(kinds, act),
            )


def _zero_row(which: int, weight: Array) -> Array:
    kept = weight.copy()
    kept[which] = 0
    return kept


def _heads_transposed(weight: Array) -> Array:
    """Return W [head, d_model, d_head] with the square matrix of all heads transposed."""
    heads, d_model, d_head = weight.shape
    square = np.moveaxis(weight, 0, 1).reshape(d_model, heads * d_head)
    return np.moveaxis(square.T.reshape(d_model, heads, d_head), 1, 0)


def _out_transposed(weight: Array) -> Array:
    heads, d_head, d_model = weight.shape
    return weight.reshape(heads * d_head, d_model).T.reshape(heads, d_head, d_model)


def _out_of_heads(config: Config) -> Iterator[Mistake]:
    def out(name: str, says: str, act: Act, rank: int = 1) -> Mistake:
        return Mistake(name, says, dict.fromkeys(OF_HEADS, act), rank)

    if config.n_heads > 1:
        for name, says, order in SPLITS:
            yield out(
                f"{name}_out",
                f"{says}: where heads are put together for W_O",
                given(z=partial(_reordered, order)),
            )
        yield out(
            "heads_not_transposed",
            "a wrong head stride: heads and positions not transposed back before W_O",
            _viewed,
        )
        yield out(
            "heads_averaged",
            "heads averaged and not summed",
            lambda at, op: _around_bias(at, op, 1 / at.config.n_heads),
        )
        for head in range(min(config.n_heads, 64)):
            yield out(
                f"head_{head}_lost", f"head {head} left out", given(z=partial(_without, head))
            )
    if config.n_heads * config.d_head == config.d_model:
        yield out(
            "W_O_missing",
            "without W_O: the heads are put side by side and not projected",
            weights_to(W_O=lambda w: np.eye(w.shape[0] * w.shape[1]).reshape(w.shape)),
        )
    yield out("b_O_only", "nothing but b_O: the heads are left out", lambda at, op: _none(at, op))


def _viewed(at: At, operation: Operation) -> Near:
    """Z [head, pos, d_head] read as if it were [pos, head, d_head]."""
    z = at.inputs["z"]
    heads, n_pos, d_head = z.value.shape

    def view(array: Array) -> Array:
        return np.moveaxis(array.reshape(n_pos, heads, d_head), 1, 0)

    return operation(with_inputs(at, z=moved(z, view)))


def _reordered(order: Callable[[Array], Array], z: Array) -> Array:
    return np.moveaxis(order(np.moveaxis(z, 0, 1)), 1, 0)


def _without(head: int, z: Array) -> Array:
    kept = z.copy()
    kept[head] = 0
    return kept


def _none(at: At, operation: Operation) -> Near:
    return operation(with_inputs(at, z=scaled(at.inputs["z"], 0.0)))


def _around_bias(at: At, operation: Operation, factor: float) -> Near:
    return operation(with_inputs(at, z=scaled(at.inputs["z"], factor)))


def _stream(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes where attention or the MLP is added to the residual stream."""
    for kind, part, name in (
        ("resid_mid", "attn_out", "attention"),
        ("resid_post", "mlp_out", "the MLP"),
    ):
        if kind == "resid_post" and not config.d_mlp:
            continue
        # The sum of a parallel block has both parts, and that after attention is none of its terms.
        sums = {kind, "resid_post"} if config.parallel and config.d_mlp else {kind}

        def at_sum(
            key: str, says: str, act: Act, rank: int = 1, kind: str = kind, sums: set[str] = sums
        ) -> Mistake:
            return Mistake(f"{kind}_{key}", says, dict.fromkeys(sums, act), rank)

        around, wrote = f"the residual connection around {name}", f"what {name} wrote"
        sums_of: tuple[tuple[str, str, Callable[[list[Near], Near], list[Near]], int], ...] = (
            ("no_residual", f"without {around}", lambda others, own: [own], 0),
            (
                "part_lost",
                f"without {wrote}: it is not added to the stream",
                lambda others, own: others,
                0,
            ),
            ("residual_twice", f"{around} added twice", lambda o, own: [*o, *o, own], 1),
            ("part_twice", f"{wrote} added twice", lambda others, own: [*others, own, own], 1),
            ("part_subtracted", f"{wrote} subtracted", lambda o, own: [*o, scaled(own, -1.0)], 1),
        )
        for key, says, terms, rank in sums_of:
            yield at_sum(key, says, _sum_with(part, terms), rank)
        if kind == "resid_post" and not config.post_norm:
            yield at_sum(
                "stream_before_twice",
                "the stream before attention added once more after the MLP: it is added twice",
                _with_again("resid_pre"),
            )
        yield at_sum(
            "embedding_added", f"the embedding added again after {name}", _with_again("embed")
        )
        for factor in (0.5, 2**-0.5):
            yield at_sum(
                f"scaled_{factor:.2g}",
                f"the sum after {name} multiplied by {factor:.3g}",
                times(factor),
            )
        norm = "ln1" if kind == "resid_mid" else "ln2"
        if config.norm != "none" and not config.post_norm:
            yield at_sum(
                "normalised_residual",
                f"{around} takes the norm of the stream (post-norm)",
                _norm_with(norm, part),
            )
    if config.d_mlp:
        yield Mistake(
            "attention_lost",
            "the MLP's output is added to the stream before attention: attention is lost",
            {
                "resid_post": lambda at, op: added(
                    at.p, other_place(at, "resid_pre"), at.inputs["mlp_out"]
                )
            },
        )


def _norm_with(norm: str, part: str) -> Act:
    return _of_sum(part, lambda at, others, own: [other_place(at, norm), own])


def _with_again(place: str) -> Act:
    return lambda at, op: added(at.p, *at.inputs.values(), other_place(at, place))


def _sum_with(part: str, terms: Callable[[list[Near], Near], list[Near]]) -> Act:
    return _of_sum(part, lambda at, others, own: terms(others, own))


def _of_sum(part: str, terms: Callable[[At, list[Near], Near], list[Near]]) -> Act:
    """Return the change of the terms that are added to the residual stream.

    What the other part of a parallel block writes is added as it is.
    """

    def act(at: At, operation: Operation) -> Near:
        others = [near for kind, near in at.inputs.items() if kind not in ("attn_out", "mlp_out")]
        parts = [near for kind, near in at.inputs.items() if kind in ("attn_out", "mlp_out")]
        own = at.inputs[part]
        chosen = [*terms(at, others, own), *(each for each in parts if each is not own)]
        return added(at.p, *chosen) if len(chosen) > 1 else chosen[0]

    return act


def _layers(config: Config) -> Iterator[Mistake]:
    kinds = [k for k in OF_LAYER if config.norm != "none" or k not in ("ln1", "ln2")]
    kinds = [k for k in kinds if config.d_mlp or not k.startswith(("ln2", "mlp"))]
    for other in range(min(config.n_layers, 16)):
        if config.n_layers > 1:
            yield Mistake(
                f"weights_of_layer_{other}",
                f"weights of layer {other}, a wrong layer",
                dict.fromkeys(kinds, of_layer(other)),
                2,
            )
            for group, says in (
                (("ln1", "ln2"), "the norms"),
                (("q", "k", "v", "head_out", "attn_out"), "attention"),
                (("mlp_pre", "mlp_post", "mlp_out"), "the MLP"),
            ):
                acting = [kind for kind in group if kind in kinds]
                yield Mistake(
                    f"{group[0]}_group_of_layer_{other}",
                    f"weights of {says} of layer {other}, a wrong layer",
                    dict.fromkeys(acting, of_layer(other)),
                    2,
                )
            readers: dict[str, list[str]] = {}
            for kind in kinds:
                for name in WEIGHTS.get(kind, ()):
                    readers.setdefault(name, []).append(kind)
            for name, reading in readers.items():
                if name in config.tensor_shapes():
                    yield Mistake(
                        f"{name}_of_layer_{other}",
                        f"{name} of layer {other}, a wrong layer",
                        dict.fromkeys(reading, _one_of_layer(name, other)),
                        3,
                    )
    if config.n_layers > 1:
        last = config.n_layers - 1

        def mirrored(at: At, operation: Operation) -> Near:
            return of_layer(last - (at.weights.layer or 0))(at, operation)

        yield Mistake(
            "layers_reversed",
            "the layers in reverse order",
            dict.fromkeys(kinds, mirrored),
            in_first=True,
        )


def _one_of_layer(name: str, layer: int) -> Act:
    return lambda at, operation: operation(
        with_weights(at, **{name: at.weights.model.part(name, layer)})
    )
