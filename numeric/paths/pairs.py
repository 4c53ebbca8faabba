r"""Single heads, virtual heads and triples of heads on one logit, all of them at once.

A forward sweep gives what each head h makes of the sources alone, $z_h$ [pos, d_head]. The adjoint
sweep takes the direction of the logit, $e_p ⊗ w$, back before each later head g: that is again a
product $a_g ⊗ w_g$, a row of attention and a row of the stream. The virtual head “g after h” is

    ⟨a_g ⊗ w_g, z_h W_O⟩ = (a_g z_h) · (w_g W_O^T),

and both factors for all pairs of a layer with all later heads come out of one matrix product each:
[later, pos] · [pos, d_head] and [later, d_model] · [d_model, d_head]. Triples are the same with the
direction taken back through two heads. Behind an MLP with frozen gates a direction is a row for
each position, and costs as much more (`directions`).

Source: Elhage et al. 2021, “Virtual attention heads”.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from numeric.frozen import Direction, FrozenPass
from numeric.paths.directions import Directions, at_the_end
from numeric.paths.orders import direct_streams


def order_one_z(frozen: FrozenPass) -> Iterator[Float[np.ndarray, "pos head d_head"]]:
    """Yield for each layer what its heads make of the sources alone, before W_O."""
    for layer, direct in zip(frozen.layers(), direct_streams(frozen), strict=False):
        yield layer.z(direct[None])[0] + layer.constant()


def single_heads(frozen: FrozenPass, direction: Direction) -> Float[np.ndarray, "n_layers n_heads"]:
    """Return the order-1 terms: what each head, reading the sources alone, adds to the logit."""
    shown = frozen.until(direction.position)
    terms = np.zeros((frozen.model.n_layers, frozen.model.n_heads), dtype=frozen.dtype)
    z = list(order_one_z(shown))
    for number, end in _pulled_back(shown, direction):
        terms[number] = end.on_heads(z[number], shown.layer(number).W_O)[0]
    return terms


def virtual_heads(
    frozen: FrozenPass, direction: Direction
) -> Float[np.ndarray, "n_layers n_heads n_layers n_heads"]:
    """Return the order-2 terms, [later layer, head, earlier layer, head]; 0 where there is none.

    Proved by: virtual_heads_at_once, adjoint_of_layers.
    """
    model, shown = frozen.model, frozen.until(direction.position)
    n_layers, n_heads = model.n_layers, model.n_heads
    terms = np.zeros((n_layers, n_heads, n_layers, n_heads), dtype=frozen.dtype)
    z = list(order_one_z(shown))
    later: Directions | None = None  # through each head of each later layer, the earliest first
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
    """Yield the order-3 terms, a block for each three layers (latest, middle, earliest).

    A block is [head of the latest, of the middle, of the earliest layer].
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


def _pulled_back(frozen: FrozenPass, direction: Direction) -> Iterator[tuple[int, Directions]]:
    """Yield each layer, the last one first, and the direction on what its heads wrote."""
    end = at_the_end(frozen, direction)
    for number in reversed(range(frozen.model.n_layers)):
        on_written, end = end.pull_after(frozen, number)
        yield number, on_written
