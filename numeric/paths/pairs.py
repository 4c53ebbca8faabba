r"""Single heads, virtual heads and triples of heads on one logit, all of them at once.

A forward sweep gives what each head h makes of the sources alone, $z_h$ [pos, d_head]. The adjoint
sweep takes the direction of the logit, $e_p ⊗ w$, back before each later head g: that is again a
product $a_g ⊗ w_g$, a row of attention and a row of the stream. The virtual head “g after h” is

    ⟨a_g ⊗ w_g, z_h W_O⟩ = (a_g z_h) · (w_g W_O^T),

and both factors for all pairs of a layer with all later heads come out of one matrix product each:
[later, pos] · [pos, d_head] and [later, d_model] · [d_model, d_head]. Triples are the same with the
direction taken back through two heads.

Source: Elhage et al. 2021, “Virtual attention heads”.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from numeric.frozen import Direction, FrozenLayer, FrozenPass
from numeric.paths.orders import direct_streams


def order_one_z(frozen: FrozenPass) -> Iterator[Float[np.ndarray, "pos head d_head"]]:
    """Yield for each layer what its heads make of the sources alone, before W_O."""
    for layer, direct in zip(frozen.layers(), direct_streams(frozen), strict=False):
        yield layer.z(direct[None])[0] + layer.constant()


def single_heads(frozen: FrozenPass, direction: Direction) -> Float[np.ndarray, "n_layers n_heads"]:
    """Return the order-1 terms: what each head, reading the sources alone, adds to the logit."""
    place = direction.position
    shown = frozen.until(place)
    terms = np.zeros((frozen.model.n_layers, frozen.model.n_heads), dtype=frozen.dtype)
    sweep = zip(shown.layers(), direct_streams(shown), strict=False)
    for number, (layer, direct) in enumerate(sweep):
        attended = layer.pattern[:, place] @ layer.read(direct)
        values = np.einsum("hd,hdk->hk", attended, layer.W_V)
        z = values + layer.pattern[:, place].sum(axis=1)[:, None] * layer.value_bias
        terms[number] = np.einsum("hk,hk->h", z, layer.W_O @ direction.row)
    return terms


def pull_back_all(
    layer: FrozenLayer,
    attention: Float[np.ndarray, "part pos"],
    rows: Float[np.ndarray, "part d_model"],
) -> tuple[np.ndarray, np.ndarray]:
    """Return directions before every head, [part, head, pos] and [part, head, d_model]."""
    pulled = [layer.pull_back(head, attention, rows) for head in range(len(layer.pattern))]
    return np.stack([a for a, _ in pulled], axis=1), np.stack([w for _, w in pulled], axis=1)


def on_heads(
    z: Float[np.ndarray, "pos head d_head"],
    W_O: Float[np.ndarray, "head d_head d_model"],
    attention: Float[np.ndarray, "part pos"],
    rows: Float[np.ndarray, "part d_model"],
) -> Float[np.ndarray, "part head"]:
    """Return $(a z_h) · (w W_O^T)$ for every direction $a ⊗ w$ and every head h of a layer."""
    n_pos, n_heads, d_head = z.shape
    attended = attention @ z.reshape(n_pos, n_heads * d_head)
    read = rows @ W_O.reshape(n_heads * d_head, -1).T
    return (attended * read).reshape(len(rows), n_heads, d_head).sum(axis=2)


def virtual_heads(
    frozen: FrozenPass, direction: Direction
) -> Float[np.ndarray, "n_layers n_heads n_layers n_heads"]:
    """Return the order-2 terms, [later layer, head, earlier layer, head]; 0 where there is none."""
    model, shown = frozen.model, frozen.until(direction.position)
    n_layers, n_heads = model.n_layers, model.n_heads
    attention = np.empty((n_layers, n_heads, shown.n_pos), dtype=frozen.dtype)
    rows = np.empty((n_layers, n_heads, model.d_model), dtype=frozen.dtype)
    last, logit = _at_the_end(shown, direction)
    for number in reversed(range(1, n_layers)):
        a, w = pull_back_all(shown.layer(number), last, logit)
        attention[number], rows[number] = a[0], w[0]
    terms = np.zeros((n_layers, n_heads, n_layers, n_heads), dtype=frozen.dtype)
    for number, z in enumerate(order_one_z(shown)):
        later = n_layers - number - 1
        if not later:
            break
        a = attention[number + 1 :].reshape(later * n_heads, -1)
        w = rows[number + 1 :].reshape(later * n_heads, -1)
        found = on_heads(z, shown.layer(number).W_O, a, w)
        terms[number + 1 :, :, number] = found.reshape(later, n_heads, n_heads)
    return terms


def triples(
    frozen: FrozenPass, direction: Direction
) -> Iterator[tuple[tuple[int, int, int], Float[np.ndarray, "latest middle earliest"]]]:
    """Yield the order-3 terms, a block for each three layers (latest, middle, earliest).

    A block is [head of the latest, of the middle, of the earliest layer].
    """
    shown = frozen.until(direction.position)
    n_layers, n_heads = frozen.model.n_layers, frozen.model.n_heads
    z = list(order_one_z(shown)) if n_layers > 2 else []
    last, logit = _at_the_end(shown, direction)
    for latest in range(2, n_layers):
        a, w = pull_back_all(shown.layer(latest), last, logit)
        for middle in range(1, latest):
            a2, w2 = pull_back_all(shown.layer(middle), a[0], w[0])
            pairs = a2.reshape(n_heads**2, -1), w2.reshape(n_heads**2, -1)
            for earliest in range(middle):
                found = on_heads(z[earliest], shown.layer(earliest).W_O, *pairs)
                yield (latest, middle, earliest), found.reshape(n_heads, n_heads, n_heads)


def _at_the_end(
    frozen: FrozenPass, direction: Direction
) -> tuple[Float[np.ndarray, "1 pos"], Float[np.ndarray, "1 d_model"]]:
    """Return the direction as $e_p ⊗ w$ at the end of the stream."""
    here = np.zeros((1, frozen.n_pos), dtype=frozen.dtype)
    here[0, direction.position] = 1.0
    return here, direction.row[None]
