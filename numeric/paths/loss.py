r"""Term importance: the effect of direct, single-head and virtual-head terms on the loss, in nats.

With frozen patterns, the loss is computed with the paths of order ≤ k only, for each k. An order, a
layer's single heads, one head or one virtual head has two marginal effects: `added` is the change
of the loss when the term is added to all lower orders (negative where it helps), and `removed` the
loss with all terms of its order minus the loss without this one (negative where it helps). They
differ because terms are redundant and the loss is not linear.

Every residual stream is a sum of terms that are computed on their own, never by subtraction.

Source: Elhage et al. 2021, “Term importance analysis”.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.frozen import FrozenPass, MLPKind, freeze
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.paths.orders import order_streams, path_stream

POSITIONS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class LossTerm:
    """A term and its marginal effects in nats; `removed` is None for an order.

    `loss` is the loss with the term added to all lower orders.
    """

    name: str
    order: int
    loss: float
    added: float
    removed: float | None = None


@dataclass(frozen=True, slots=True)
class LossTable:
    """Mean losses in nats per token: of the uniform distribution, of the model, and by term."""

    uniform: float
    model: float
    terms: tuple[LossTerm, ...]

    def __str__(self) -> str:
        width = max(len(term.name) for term in self.terms)
        rows = [f"{'uniform':{width}}  {self.uniform:8.4f}"]
        for term in self.terms:
            removed = "" if term.removed is None else f"  {term.removed:+9.4f}"
            rows.append(f"{term.name:{width}}  {term.loss:8.4f}  {term.added:+9.4f}{removed}")
        head = f"{'':{width}}  {'loss':>8}  {'added':>9}  {'removed':>9}"
        return "\n".join([head, *rows])


def loss_table(
    model: ModelSource,
    prompts: Sequence[Sequence[int] | np.ndarray],
    virtual_heads: bool = False,
    mlp: MLPKind = "sources",
    start: int = 0,
) -> LossTable:
    """Return the losses by order, by layer, by head and, optionally, by virtual head.

    `mlp` is "sources" or "gates", as in `paths`. Losses before the position `start` are ignored.
    Raises: OtimesError for prompts of fewer than two tokens, or `start` out of range.

    >>> from otimes.numeric.load import load_model
    >>> table = loss_table(load_model("one_layer"), [range(20)])
    >>> [term.name for term in table.terms]
    ['direct', 'order 1', 'layer 0', '0.0', '0.1', '0.2', '0.3']
    """
    model = load_model(model)
    if not len(prompts) or min(len(prompt) for prompt in prompts) < 2:
        raise OtimesError("a loss needs at least one prompt, and at least two tokens in each")
    if not 0 <= start < min(len(prompt) for prompt in prompts) - 1:
        raise OtimesError(
            f"start={start} is out of range: the shortest prompt has"
            f" {min(len(prompt) for prompt in prompts)} tokens"
        )
    sums: dict[str, list[np.ndarray]] = {}
    for prompt in prompts:
        for name, loss, without in _of_prompt(freeze(model, prompt, mlp=mlp), virtual_heads):
            sums.setdefault(name, []).append(np.stack([loss, without])[:, start:])
    means = {name: np.concatenate(each, axis=1).mean(axis=1) for name, each in sums.items()}
    uniform = float(np.log(model.d_vocab))
    orders = [f"order {order}" if order else "direct" for order in range(model.n_layers + 1)]
    up_to = [float(means[name][0]) for name in orders]  # the loss with paths up to this order
    below = [uniform, *up_to]
    terms = [
        LossTerm(name, order, up_to[order], up_to[order] - below[order])
        for order, name in enumerate(orders)
    ]
    for name, (loss, without) in means.items():
        if name not in orders:
            order = 1 + name.count("→")
            added, removed = float(loss) - below[order], up_to[order] - float(without)
            terms.append(LossTerm(name, order, float(loss), added, removed))
    return LossTable(uniform, up_to[-1], tuple(terms))


def _of_prompt(
    frozen: FrozenPass, virtual_heads: bool
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield (name, losses with the term added, losses with only it removed) for each term."""
    model = frozen.model
    streams = order_streams(frozen)
    below = np.cumsum(streams, axis=0)
    for order, stream in enumerate(below):
        found = stream_losses(frozen, stream)
        yield ("direct" if order == 0 else f"order {order}"), found, found
    heads = list(product(range(model.n_layers), range(model.n_heads)))
    if not heads:
        return

    def of_path(*path: tuple[int, int]) -> Callable[[], np.ndarray]:
        return lambda: path_stream(frozen, path)

    single = {f"{layer}.{head}": of_path((layer, head)) for layer, head in heads}
    layers = {
        f"layer {layer}": _together([single[f"{layer}.{head}"] for head in range(model.n_heads)])
        for layer in range(model.n_layers)
    }
    yield from _each_and_all_others(frozen, below[0], layers)
    yield from _each_and_all_others(frozen, below[0], single)
    if virtual_heads and model.n_layers > 1:
        pairs = {
            f"{one[0]}.{one[1]} → {two[0]}.{two[1]}": of_path(one, two)
            for one, two in product(heads, heads)
            if one[0] < two[0]
        }
        yield from _each_and_all_others(frozen, below[1], pairs)


def _together(parts: list[Callable[[], np.ndarray]]) -> Callable[[], np.ndarray]:
    return lambda: np.sum([part() for part in parts], axis=0)


def _each_and_all_others(
    frozen: FrozenPass, base: np.ndarray, parts: dict[str, Callable[[], np.ndarray]]
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield for each part the losses of base + part, and of base + all other parts."""
    names = list(parts)
    after = [np.zeros_like(base)]
    for name in reversed(names):
        after.append(after[-1] + parts[name]())
    before = np.zeros_like(base)
    for name in names:
        after.pop()
        part = parts[name]()
        others = base + before + after[-1]
        yield name, stream_losses(frozen, base + part), stream_losses(frozen, others)
        before = before + part


def stream_losses(
    frozen: FrozenPass, stream: Float[np.ndarray, "pos d_model"]
) -> Float[np.ndarray, " predicted"]:
    """Return the loss of predicting each next token from a residual stream, in nats."""
    rows, targets = frozen.normed(stream[None])[0, :-1], frozen.tokens[1:]
    constants = frozen.constants()
    losses = np.empty(len(rows), dtype=frozen.dtype)
    for start in range(0, len(rows), POSITIONS_AT_ONCE):
        block = slice(start, start + POSITIONS_AT_ONCE)
        logits = frozen.unembed(rows[block]) + constants
        logits -= logits.max(axis=1, keepdims=True)
        right = logits[np.arange(len(logits)), targets[block]]
        losses[block] = np.log(np.exp(logits).sum(axis=1)) - right
    return losses
