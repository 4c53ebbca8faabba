"""Mistakes in the embedding, the positions, the final norm and the unembedding."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from otimes.numeric.audit.mistakes.scores import capped_at
from otimes.numeric.audit.reference.edits import (
    after,
    moved_after,
    reading,
    rounded,
    scaled,
    weights_to,
    with_inputs,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation, makes_act
from otimes.numeric.config import Config
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.functions import normalised
from otimes.numeric.rounding.linear import Array, Near, added

EPS = 1e-5
"""The ε of norms in PyTorch."""

LATE = "tokens off by one: each position embeds the token before"
TOKENS: dict[str, Callable[[Array, int], Array]] = {
    LATE: lambda t, size: np.roll(t, 1),
    "the vocabulary off by one: token t embeds as t + 1": lambda t, size: (t + 1) % size,
    "tokens off by one: each position embeds the token after": lambda t, size: np.roll(t, -1),
    "the vocabulary off by one: token t embeds as t - 1": lambda t, size: (t - 1) % size,
    f"{LATE}, and the first is used twice": lambda t, size: np.append(t[:1], t[:-1]),
    f"{LATE}, and the first token 0": lambda t, size: np.append(0 * t[:1], t[:-1]),
}
"""The tokens that are embedded by mistake, from the right ones and d_vocab."""

ROWS: dict[str, Callable[[Array], Array]] = {
    "positions off by one: the first vector is used twice": lambda p: np.maximum(p - 1, 0),
    "positions counted from the end": lambda p: p[::-1],
    "positions off by one at the end: the last position reads the vector of the one before": (
        lambda p: np.minimum(p, max(len(p) - 2, 0))
    ),
    "positions that start again in the middle of the prompt": lambda p: p % max(len(p) // 2, 1),
    "the first position vector at every position": lambda p: 0 * p,
}
"""The rows of W_pos that positions read by mistake."""


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of embedding, positions, final norm and unembedding."""
    yield from _embedding(config)
    if config.positions in ("learned", "shortformer"):
        yield from _positions(config)
    yield from _final(config)
    for says, act, rank in _unembedding(config):
        yield Mistake(says, {"logits": act}, rank)


def _embedding(config: Config) -> Iterator[Mistake]:
    root = config.d_model**0.5
    yield Mistake("the embedding multiplied by √d_model", {"embed": _times(root)})
    yield Mistake("the embedding divided by √d_model", {"embed": _times(1 / root)})
    for says, change in TOKENS.items():
        yield Mistake(says, {"embed": _tokens(change)})
    for norm, called in (("layer", "a LayerNorm"), ("rms", "an RMSNorm")):
        for eps in dict.fromkeys((config.norm_eps or EPS, EPS, 1e-12)) if config.n_layers else ():
            says = (
                f"the embedding normalised: {called} (ε = {eps:g}, no gain, no bias) before the "
                "first layer"
            )
            yield Mistake(says, {"resid_pre": _at_start(partial(_normalised, norm, eps))})


def _at_start(change: Callable[[At, Near], Near]) -> Act:
    """Return the change of the stream before the first layer."""
    return after(lambda at, near: change(at, near) if "embed" in at.inputs else near)


def _normalised(norm: str, eps: float, at: At, near: Near) -> Near:
    return normalised(near, norm, eps, Near.exactly(np.ones(at.config.d_model)), None, at.p)


def _times(factor: float) -> Act:
    return after(lambda at, near: rounded(scaled(near, factor), at))


@makes_act
def _tokens(at: At, operation: Operation, change: Callable[[Array, int], Array]) -> Near:
    tokens = change(at.only().value.astype(np.int64), at.config.d_vocab)
    return operation(with_inputs(at, tokens=Near.exactly(tokens)))


def _positions(config: Config) -> Iterator[Mistake]:
    learned = config.positions == "learned"
    kinds = ("resid_pre", "final") if learned else ("qk_in",)

    def positions(says: str, change: Callable[[At], Array], rank: int = 1) -> Mistake:
        def act(at: At, operation: Operation) -> Near:
            if learned and "embed" not in at.inputs:
                return operation(at)
            return operation(with_weights(at, W_pos=change(at)))

        return Mistake(says, dict.fromkeys(kinds, act), rank)

    yield positions("without position vectors", lambda at: 0 * at.weights["W_pos"], 0)
    yield positions("position vectors added twice", lambda at: 2 * at.weights["W_pos"])
    for by in (1, 2, -1, 3, 4, 5, 6, 7, 8):
        off = f"positions off by {'one' if abs(by) == 1 else by}"
        yield positions(
            f"{off}: position p reads vector p {by:+d}", partial(_rows, partial(np.add, by))
        )
    for says, rows in ROWS.items():
        yield positions(says, partial(_rows, rows))
    if learned:
        root = config.d_model**0.5
        says = "the embedding, with its positions, multiplied by √d_model"
        yield Mistake(says, {"resid_pre": _at_start(lambda at, near: scaled(near, root))})
        says = "position vectors added again before every layer"
        yield Mistake(says, {"resid_pre": after(_positions_again)})
        says = "the embedding multiplied by √d_model before positions are added"
        start = _at_start(lambda at, near: added(at.p, scaled(at.only(), root), at.weight("W_pos")))
        yield Mistake(says, dict.fromkeys(kinds, start))


def _rows(rows: Callable[[Array], Array], at: At) -> Array:
    whole = at.weights.model.part("W_pos", slice(None))
    return np.asarray(whole[np.minimum(rows(np.arange(at.n_pos)), len(whole) - 1)])


def _positions_again(at: At, near: Near) -> Near:
    return near if "embed" in at.inputs else added(at.p, near, at.weight("W_pos"))


def _final(config: Config) -> Iterator[Mistake]:
    if config.final_norm:
        yield Mistake("without the final norm", {"logits": reading("final")}, 0)
        if config.n_layers:
            last = config.n_layers - 1
            says = "a final norm that reads the stream before the last MLP"
            yield Mistake(says, {"ln_final": reading(f"resid_mid.{last}")})
            yield Mistake("the last block left out", {"ln_final": reading(f"resid_pre.{last}")})


def _unembedding(config: Config) -> Iterator[tuple[str, Act, int]]:
    if not config.tied:
        yield "a tied unembedding: W_Eᵀ for W_U", _tied, 0
    if config.d_model == config.d_vocab:
        says = "W_E for its transpose" if config.tied else "W_U transposed"
        yield says, weights_to(W_U=np.transpose), 1
    yield "logits divided by √d_model", _times(config.d_model**-0.5), 1
    yield "logits divided by d_model", _times(1 / config.d_model), 1
    yield "logits multiplied by √d_model", _times(config.d_model**0.5), 1
    yield "logits of the wrong sign", _times(-1.0), 1
    for cap in (15.0, 30.0, 50.0):
        yield f"logits soft-capped at {cap:g}", capped_at(cap), 1
    yield "log-probabilities and not logits", after(_log_probabilities), 1
    yield "probabilities and not logits", after(_probabilities), 1
    for by, which in ((1, "later"), (-1, "earlier")):
        rolled = partial(np.roll, shift=by)
        yield f"logits off by one position ({which})", moved_after(partial(rolled, axis=0)), 1
        says = f"logits off by one token of the vocabulary (token t has those of t {-by:+d})"
        yield says, moved_after(partial(rolled, axis=1)), 1


def _tied(at: At, operation: Operation) -> Near:
    return operation(with_weights(at, W_U=at.weights.model.part("W_E").T))


def _log_probabilities(at: At, near: Near) -> Near:
    highest = near.value.max(axis=-1, keepdims=True)
    total = highest + np.log(np.exp(near.value - highest).sum(axis=-1, keepdims=True))
    most = np.array(near.error).max(axis=-1, keepdims=True)
    value = near.value - total
    own = at.p.within(near.value.shape[-1] + 20) * (1 + np.abs(value) + np.abs(highest))
    return Near(value, near.error + most + own)


def _probabilities(at: At, logits: Near) -> Near:
    near = _log_probabilities(at, logits)
    value = np.exp(near.value)
    return Near(value, value * np.expm1(np.minimum(near.error, 1.0)) + at.p.unit)
