"""Mistakes in the embedding, the positions, the final norm and the unembedding."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from otimes.numeric.audit.mistakes.scores import capped_at
from otimes.numeric.audit.reference.edits import (
    moved_after,
    other_place,
    scaled,
    weights_to,
    with_inputs,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation
from otimes.numeric.config import Config
from otimes.numeric.rounding.functions import normalised
from otimes.numeric.rounding.linear import Array, Near, added
from otimes.numeric.rounding.places import At


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of embedding, positions, final norm and unembedding."""
    yield from _embedding(config)
    if config.positions in ("learned", "shortformer"):
        yield from _positions(config)
    yield from _unembedding(config)


def _embedding(config: Config) -> Iterator[Mistake]:
    for name, says, factor in (
        ("times_root", "the embedding multiplied by √d_model", config.d_model**0.5),
        ("over_root", "the embedding divided by √d_model", config.d_model**-0.5),
    ):
        yield Mistake(f"embedding_{name}", says, {"embed": _times(factor)})
    for by in (1, -1):
        yield Mistake(
            f"token_off_{by}",
            "tokens off by one: each position embeds the token "
            + ("before" if by == 1 else "after"),
            {"embed": _tokens(partial(np.roll, shift=by))},
        )
        yield Mistake(
            f"vocabulary_off_{by}",
            f"the vocabulary off by one: token t embeds as t {'+' if by == 1 else '-'} 1",
            {"embed": _tokens(_added(by, config.d_vocab))},
        )

    yield Mistake(
        "token_late",
        "tokens off by one: each position embeds the token before, and the first is used twice",
        {"embed": _tokens(lambda t: np.concatenate([t[:1], t[:-1]]))},
    )
    yield Mistake(
        "token_late_after_0",
        "tokens off by one: each position embeds the token before, and the first token 0",
        {"embed": _tokens(lambda t: np.concatenate([0 * t[:1], t[:-1]]))},
    )
    if config.n_layers:
        for norm, called in (("layer", "a LayerNorm"), ("rms", "an RMSNorm")):
            for eps in dict.fromkeys((config.norm_eps or EPS, EPS, 1e-12)):
                yield Mistake(
                    f"embedding_{norm}_normalised_{eps:g}",
                    f"the embedding normalised: {called} (ε = {eps:g}, no gain, no bias) before "
                    "the first layer",
                    {"resid_pre": _normalised_start(norm, eps)},
                )


EPS = 1e-5
"""The ε of norms in PyTorch."""


def _normalised_start(norm: str, eps: float) -> Act:
    def act(at: At, operation: Operation) -> Near:
        near = operation(at)
        if "embed" not in at.inputs:
            return near
        ones = Near.exactly(np.ones(at.config.d_model))
        return normalised(near, norm, eps, ones, None, at.p)

    return act


def _times(factor: float) -> Act:
    def act(at: At, operation: Operation) -> Near:
        near = scaled(operation(at), factor)
        return Near(near.value, near.error + 3 * at.p.unit * np.abs(near.value))

    return act


def _added(by: int, size: int) -> Callable[[Array], Array]:
    return lambda tokens: (tokens + by) % size


def _tokens(change: Callable[[Array], Array]) -> Act:
    def act(at: At, operation: Operation) -> Near:
        tokens = Near.exactly(change(at.only().value.astype(np.int64)))
        return operation(with_inputs(at, tokens=tokens))

    return act


def _positions(config: Config) -> Iterator[Mistake]:
    kinds = ("resid_pre", "final") if config.positions == "learned" else ("qk_in",)

    def positions(name: str, says: str, change: Callable[[At], Array], rank: int = 1) -> Mistake:
        def act(at: At, operation: Operation) -> Near:
            if config.positions == "learned" and "embed" not in at.inputs:
                return operation(at)
            return operation(with_weights(at, W_pos=change(at)))

        return Mistake(name, says, dict.fromkeys(kinds, act), rank)

    def rows(offset: int) -> Callable[[At], Array]:
        def change(at: At) -> Array:
            whole = at.weights.model.part("W_pos", slice(None))
            index = np.clip(np.arange(at.n_pos) + offset, 0, len(whole) - 1)
            if offset < 0:
                index = (np.arange(at.n_pos) + offset) % len(whole)
            return np.asarray(whole[index])

        return change

    def repeated_start(at: At) -> Array:
        whole = at.weights.model.part("W_pos", slice(at.n_pos))
        return np.asarray(whole[np.maximum(np.arange(at.n_pos) - 1, 0)])

    yield positions(
        "positions_missing", "without position vectors", lambda at: 0 * at.weights["W_pos"], 0
    )
    for offset in (1, 2, -1, 3, 4, 5, 6, 7, 8):
        yield positions(
            f"positions_off_{offset}",
            f"positions off by {abs(offset) if offset != 1 and offset != -1 else 'one'}: "
            f"position p reads vector p {offset:+d}",
            rows(offset),
        )
    yield positions(
        "positions_late", "positions off by one: the first vector is used twice", repeated_start
    )
    yield positions(
        "positions_twice", "position vectors added twice", lambda at: 2 * at.weights["W_pos"]
    )
    yield positions(
        "positions_reversed", "positions counted from the end", lambda at: at.weights["W_pos"][::-1]
    )
    yield positions(
        "positions_last_twice",
        "positions off by one at the end: the last position reads the vector of the one before",
        lambda at: at.weights["W_pos"][[*range(at.n_pos - 1), max(at.n_pos - 2, 0)]],
    )
    yield positions(
        "positions_restart",
        "positions that start again in the middle of the prompt",
        lambda at: at.weights["W_pos"][np.arange(at.n_pos) % max(at.n_pos // 2, 1)],
    )
    yield positions(
        "positions_same",
        "the first position vector at every position",
        lambda at: np.repeat(at.weights["W_pos"][:1], at.n_pos, axis=0),
    )
    if config.positions == "learned":
        root = config.d_model**0.5
        yield Mistake(
            "embedding_and_positions_times_root",
            "the embedding, with its positions, multiplied by √d_model",
            {"resid_pre": lambda at, op: scaled(op(at), root if "embed" in at.inputs else 1.0)},
        )
        yield Mistake(
            "positions_in_every_layer",
            "position vectors added again before every layer",
            {"resid_pre": _positions_again},
        )
        yield Mistake(
            "embedding_scaled_before_positions",
            "the embedding multiplied by √d_model before positions are added",
            {
                kind: lambda at, op: (
                    added(at.p, scaled(at.only(), config.d_model**0.5), at.weight("W_pos"))
                    if "embed" in at.inputs
                    else op(at)
                )
                for kind in kinds
            },
        )


def _positions_again(at: At, operation: Operation) -> Near:
    near = operation(at)
    return near if "embed" in at.inputs else added(at.p, near, at.weight("W_pos"))


def _unembedding(config: Config) -> Iterator[Mistake]:
    def logits(name: str, says: str, act: Act, rank: int = 1) -> Mistake:
        return Mistake(name, says, {"logits": act}, rank)

    if config.final_norm:
        yield logits("final_norm_missing", "without the final norm", _reads("final"), 0)
        if config.n_layers:
            last = config.n_layers - 1
            yield Mistake(
                "final_reads_mid",
                "a final norm that reads the stream before the last MLP",
                {"ln_final": _reads(f"resid_mid.{last}")},
            )
            yield Mistake(
                "last_block_lost",
                "the last block left out",
                {"ln_final": _reads(f"resid_pre.{last}")},
            )
    if not config.tied:
        yield logits("tied", "a tied unembedding: W_Eᵀ for W_U", lambda at, op: op(_tied(at)), 0)
        if config.d_model == config.d_vocab:
            yield logits("W_U_transposed", "W_U transposed", weights_to(W_U=np.transpose))
    elif config.d_model == config.d_vocab:
        yield logits("W_E_for_transpose", "W_E for its transpose", weights_to(W_U=np.transpose))
    for name, says, factor in (
        ("over_root", "logits divided by √d_model", config.d_model**-0.5),
        ("over_width", "logits divided by d_model", 1 / config.d_model),
        ("times_root", "logits multiplied by √d_model", config.d_model**0.5),
        ("negative", "logits of the wrong sign", -1.0),
    ):
        yield logits(f"logits_{name}", says, _times(factor))
    for cap in (15.0, 30.0, 50.0):
        yield logits(f"logits_capped_{cap:g}", f"logits soft-capped at {cap:g}", capped_at(cap))
    yield logits("log_probabilities", "log-probabilities and not logits", _log_probabilities)
    yield logits("probabilities", "probabilities and not logits", _probabilities)
    for by in (1, -1):
        yield logits(
            f"logits_shifted_{by}",
            f"logits off by one position ({'later' if by == 1 else 'earlier'})",
            moved_after(partial(np.roll, shift=by, axis=0)),
        )
        yield logits(
            f"vocabulary_shifted_{by}",
            "logits off by one token of the vocabulary",
            moved_after(partial(np.roll, shift=by, axis=1)),
        )


def _reads(place: str) -> Act:
    def act(at: At, operation: Operation) -> Near:
        (kind,) = at.inputs
        return operation(with_inputs(at, **{kind: other_place(at, place)}))

    return act


def _tied(at: At) -> At:
    return with_weights(at, W_U=at.weights.model.part("W_E").T)


def _log_probabilities(at: At, operation: Operation) -> Near:
    near = operation(at)
    highest = near.value.max(axis=-1, keepdims=True)
    total = highest + np.log(np.exp(near.value - highest).sum(axis=-1, keepdims=True))
    most = np.array(near.error).max(axis=-1, keepdims=True)
    value = near.value - total
    own = at.p.within(near.value.shape[-1] + 20) * (1 + np.abs(value) + np.abs(highest))
    return Near(value, near.error + most + own)


def _probabilities(at: At, operation: Operation) -> Near:
    near = _log_probabilities(at, operation)
    value = np.exp(near.value)
    return Near(value, value * np.expm1(np.minimum(near.error, 1.0)) + at.p.unit)
