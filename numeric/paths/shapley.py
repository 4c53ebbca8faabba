r"""Exact Shapley values of all heads for one logit, under frozen attention.

Multiply the output of each head by a factor $t_h$. A path goes through a head at most once, so the
logit $f(t)$ is multilinear in the factors: it is Owen's multilinear extension of the game whose
players are the heads. Hence

    φ_h = ∫_0^1 ∂f/∂t_h (t, …, t) dt = Σ_{paths through h} value(path) / order(path).

On the diagonal the derivative is a polynomial of degree at most L − 1, so ⌈L/2⌉ Gauss–Legendre
nodes give the integral exactly, and one adjoint sweep per node gives it for all heads:
$∂f/∂t_h = ⟨G_l, z_h W_O⟩$ with G_l the direction pulled back to the output of layer l. The 2^(LH)
coalitions need not be enumerated.

Sources: Shapley 1953; Owen 1972, “Multilinear extensions of games”.
"""

import numpy as np
from jaxtyping import Float

from otimes.numeric.frozen import Direction, FrozenPass


def shapley_values(
    frozen: FrozenPass, direction: Direction, n_nodes: int | None = None
) -> Float[np.ndarray, "n_layers n_heads"]:
    """Return the Shapley value of each head; they sum to the logit minus the direct path.

    `n_nodes` is the number of quadrature nodes, by default ⌈L/2⌉, which is exact.

    Proved by: shapley_two_layers, shapley_four_layers.
    """
    model, shown = frozen.model, frozen.until(direction.position)
    nodes, weights = gauss_legendre((model.n_layers + 1) // 2 if n_nodes is None else n_nodes)
    switch = nodes.astype(frozen.dtype)[:, None, None]
    values = np.zeros((model.n_layers, model.n_heads), dtype=frozen.dtype)
    streams = np.repeat(shown.first[None], len(nodes), axis=0)
    z_of_layers = []
    for number, layer in enumerate(shown.layers()):
        z = layer.z(streams) + layer.constant()
        streams = shown.after(number, streams, switch * layer.write(z)) + shown.entering(number)
        z_of_layers.append(z)
    back = np.zeros_like(streams)
    back[:, direction.position] = direction.row
    for number in reversed(range(model.n_layers)):
        layer = shown.layer(number)
        on_written, back = shown.pull_after(number, back)
        on_z = layer.pull_write(on_written)
        by_node = np.einsum("tphk,tphk->th", on_z, z_of_layers.pop())
        values[number] = weights.astype(frozen.dtype) @ by_node
        if number:
            back = back + switch * layer.pull_z(on_z)
    return values


def gauss_legendre(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights on [0, 1], exact for polynomials of degree up to 2 n_nodes − 1.

    >>> gauss_legendre(1)
    (array([0.5]), array([1.]))
    """
    nodes, weights = np.polynomial.legendre.leggauss(max(n_nodes, 1))
    return (nodes + 1) / 2, weights / 2
