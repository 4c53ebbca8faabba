r"""The ensemble of paths by order: the sum of all paths through exactly k heads, for every k.

With $H_l$ the linear map of all heads of layer l and $c_l$ their constant output,

    X_k ← X_k + H_l X_{k-1}       for k = 1 … l + 1, and for k = 1 also + c_l
    X_0 ← X_0 + the sources that layer l adds

so that at the end $X_k = \sum_{l_1 < … < l_k} H_{l_k} … H_{l_1}$ applied to the sources: the
elementary symmetric polynomial of order k in the layers. With frozen MLP gates, each layer's MLP,
which is then linear, is applied to every $X_k$: an order counts heads. Only nonzero orders are
computed, which takes L (L + 1) / 2 layers instead of (1 + H)^L paths. `replay_streams` computes the
cumulative sums independently, by forward passes of the frozen model.

Sources: Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”, “Path expansion”
and “Term importance analysis” (the replay); Ferrando et al. 2024, §2.3.
"""

from collections.abc import Iterator
from itertools import islice
from operator import index
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.frozen import FrozenPass

Heads = tuple[tuple[int, int], ...]
"""A path: its heads as (layer, head), the earliest first; the direct path is the empty one."""


def order_streams(frozen: FrozenPass) -> Float[np.ndarray, "order pos d_model"]:
    """Return the contribution of each order 0 … L to the final residual stream.

    Proved by: paths_by_order, orders_by_recursion.
    """
    n_layers, (n_pos, d_model) = frozen.model.n_layers, frozen.first.shape
    streams = np.zeros((n_layers + 1, n_pos, d_model), dtype=frozen.dtype)
    for _ in graded_pass(frozen, streams):
        pass
    return streams


def graded_pass(
    frozen: FrozenPass, streams: Float[np.ndarray, "order pos d_model"]
) -> Iterator[int]:
    """Fill `streams`, initially zeros, layer by layer; yield the number of layers done."""
    streams[0] += frozen.first
    yield 0
    for number, layer in enumerate(frozen.layers()):
        z = layer.z(streams[: number + 1])
        z[0] += layer.constant()
        written = np.zeros_like(streams[: number + 2])
        written[1:] = layer.write(z)
        streams[: number + 2] = frozen.after(number, streams[: number + 2], written)
        streams[0] += frozen.entering(number)
        yield number + 1


def replay_streams(frozen: FrozenPass) -> Iterator[Float[np.ndarray, "pos d_model"]]:
    """Yield the final residual streams by paths of order ≤ 0, ≤ 1, …, ≤ L, by replay ablation.

    The model is run L + 1 times with frozen patterns; in each run the output of the heads is
    replaced by their output in the run before, and by zero in the first run.

    Proved by: replay_by_order.
    """
    before = [np.zeros_like(frozen.first) for _ in range(frozen.model.n_layers)]
    for _ in range(frozen.model.n_layers + 1):
        stream = frozen.first
        now = []
        for number, layer in enumerate(frozen.layers()):
            z = layer.z(stream[None]) + layer.constant()
            now.append(layer.write(z)[0])
            stream = frozen.after(number, stream[None], before[number][None])[0]
            stream = stream + frozen.entering(number)
        yield stream
        before = now


def direct_streams(frozen: FrozenPass) -> Iterator[Float[np.ndarray, "pos d_model"]]:
    """Yield the residual stream of the sources alone before each layer, and after the last."""
    stream = frozen.first
    yield stream
    for number in range(frozen.model.n_layers):
        stream = frozen.after(number, stream[None])[0] + frozen.entering(number)
        yield stream


def path_stream(frozen: FrozenPass, heads: Heads) -> Float[np.ndarray, "pos d_model"]:
    """Return the contribution of one path, $H_{h_k} … H_{h_1}$ applied to the sources."""
    first = heads[0][0] if heads else frozen.model.n_layers
    stream = next(islice(direct_streams(frozen), first, None))
    following = [number for number, _ in heads[1:]] + [frozen.model.n_layers]
    for step, (number, head) in enumerate(heads):
        layer = frozen.layer(number)
        values = layer.read(stream) @ layer.W_V[head]
        if step == 0:
            values = values + layer.value_bias[head]
        written = layer.pattern[head] @ values @ layer.W_O[head]
        stream = frozen.after(number, np.zeros_like(written[None]), written[None])[0]
        for between in range(number + 1, following[step]):
            stream = frozen.after(between, stream[None])[0]
    return stream


def check_path(frozen: FrozenPass, heads: Any) -> Heads:
    """Return a path with its earliest head first. Raises: OtimesError if it is no path."""
    model = frozen.model
    try:
        path = tuple(sorted((index(layer), index(head)) for layer, head in heads))
    except (TypeError, ValueError):
        raise OtimesError(
            f"a path is a list of heads, each a pair (layer, head) of integers, got {heads!r}"
        ) from None
    for layer, head in path:
        if not (0 <= layer < model.n_layers and 0 <= head < model.n_heads):
            raise OtimesError(
                f"head {layer}.{head} is out of range: {model.name} has {model.n_layers} layers"
                f" of {model.n_heads} heads, both counted from 0"
            )
    if len({layer for layer, _ in path}) < len(path):
        raise OtimesError(
            f"{path_name(path)} is no path: it has two heads of the same layer,"
            " which do not read each other"
        )
    return path


def path_name(heads: Heads) -> str:
    """Return the name of a path, `layer.head` of each head, the earliest first.

    >>> path_name(((0, 3), (1, 2))), path_name(())
    ('0.3 → 1.2', 'direct')
    """
    return " → ".join(f"{layer}.{head}" for layer, head in heads) or "direct"
