r"""The contributions of single heads, virtual heads and triples of heads to one logit.

A forward sweep computes the output of each head h on the sources alone, $z_h$ [pos, d_head]. An
adjoint sweep pulls the direction of the logit, $e_p ⊗ w$, back through each later head g, to a
product $a_g ⊗ w_g$ of an attention row [pos] and a row [d_model]. The contribution of the virtual
head “g after h” is

    ⟨a_g ⊗ w_g, z_h W_O⟩ = (a_g z_h) · (w_g W_O^T),

and both factors, for all pairs of a layer's heads and later heads, are one matrix product each:
[later, pos] · [pos, d_head] and [later, d_model] · [d_model, d_head]. For triples the direction is
pulled back through two heads. With frozen MLP gates a direction has a row for each position, and
costs n_pos times as much (`directions`).

Source: Elhage et al. 2021, “Virtual attention heads”.
"""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.numeric.frozen import Direction, FrozenPass
from otimes.numeric.paths.directions import Directions, at_the_end
from otimes.numeric.paths.orders import direct_streams


def order_one_z(frozen: FrozenPass) -> Iterator[Float[np.ndarray, "pos head d_head"]]:
    """Yield for each layer the output of its heads on the sources alone, before W_O."""
    for layer, direct in zip(frozen.layers(), direct_streams(frozen), strict=False):
        yield layer.z(direct[None])[0] + layer.constant()


def single_heads(frozen: FrozenPass, direction: Direction) -> Float[np.ndarray, "n_layers n_heads"]:
    """Return the contributions of order 1 [layer, head]: each head reads only the sources."""
    shown = frozen.until(direction.position)
    terms = np.zeros((frozen.model.n_layers, frozen.model.n_heads), dtype=frozen.dtype)
    z = list(order_one_z(shown))
    for number, end in _pulled_back(shown, direction):
        terms[number] = end.on_heads(z[number], shown.layer(number).W_O)[0]
    return terms


def virtual_heads(
    frozen: FrozenPass, direction: Direction
) -> Float[np.ndarray, "n_layers n_heads n_layers n_heads"]:
    """Return the contributions of order 2 [later layer, head, earlier layer, head]; else 0.

    Proved by: virtual_heads_at_once, adjoint_of_layers.
    """
    model, shown = frozen.model, frozen.until(direction.position)
    n_layers, n_heads = model.n_layers, model.n_heads
    terms = np.zeros((n_layers, n_heads, n_layers, n_heads), dtype=frozen.dtype)
    z = list(order_one_z(shown))
    later: Directions | None = None  # pulled back through each later head, earliest layer first
    for number, end in _pulled_back(shown, direction):
        layer = shown.layer(number)
        if later is not None:
            on_written, later = later.pull_after(shown, number)
            found = on_written.on_heads(z[number], layer.W_O)
            terms[number + 1 :, :, number] = found.reshape(-1, n_heads, n_heads)
        if number:
            here = end.through_each(layer)
            later = here if later is None else here.with_more([later])
    return terms


def triples(
    frozen: FrozenPass, direction: Direction
) -> Iterator[tuple[tuple[int, int, int], Float[np.ndarray, "latest middle earliest"]]]:
    """Yield the contributions of order 3 for each three layers (latest, middle, earliest).

    The axes are [head of the latest layer, of the middle, of the earliest].
    """
    shown, n_heads = frozen.until(direction.position), frozen.model.n_heads
    z = list(order_one_z(shown))
    for latest, end in _pulled_back(shown, direction):
        after_one = end.through_each(shown.layer(latest))
        for middle in reversed(range(1, latest)):
            on_middle, after_one = after_one.pull_after(shown, middle)
            after_two = on_middle.through_each(shown.layer(middle))
            for earliest in reversed(range(middle)):
                on_earliest, after_two = after_two.pull_after(shown, earliest)
                found = on_earliest.on_heads(z[earliest], shown.layer(earliest).W_O)
                yield (latest, middle, earliest), found.reshape(n_heads, n_heads, n_heads)


def up_to_order(frozen: FrozenPass, direction: Direction, order: int) -> Iterator[tuple[Any, Any]]:
    """Yield (heads, contribution) for every path of order 1 to `order`, which is at most 3."""
    layers, heads = range(frozen.model.n_layers), range(frozen.model.n_heads)
    if order >= 1:
        single = single_heads(frozen, direction)
        for at in product(layers, heads):
            yield (at,), single[at]
    if order >= 2:
        virtual = virtual_heads(frozen, direction)
        for later, earlier in combinations(reversed(layers), 2):
            for head, before in product(heads, heads):
                yield ((earlier, before), (later, head)), virtual[later, head, earlier, before]
    if order >= 3:
        for numbers, found in triples(frozen, direction):
            for at in np.ndindex(*found.shape):
                yield tuple(zip(numbers, at, strict=True))[::-1], found[at]


def _pulled_back(frozen: FrozenPass, direction: Direction) -> Iterator[tuple[int, Directions]]:
    """Yield each layer, the last one first, and the direction on its heads' output."""
    end = at_the_end(frozen, direction)
    for number in reversed(range(frozen.model.n_layers)):
        on_written, end = end.pull_after(frozen, number)
        yield number, on_written
