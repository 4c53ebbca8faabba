r"""An LSTM layer, and its cell as a sum over the past.

    $i, f, o = σ(x_t W_x + h_{t-1} W_h + b)$,  $g = \tanh(…)$
    $c_t = f_t ⊙ c_{t-1} + i_t ⊙ g_t$,  $h_t = o_t ⊙ \tanh(c_t)$

so that $c_t = Σ_{s ≤ t} (Π_{s < r ≤ t} f_r) ⊙ i_s ⊙ g_s$: what was written at s decays with the
forget gates since. Source: Hochreiter and Schmidhuber 1997; Gers et al. 2000 (forget gates).
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from otimes.algebra.errors import ShapeError
from otimes.numeric.given import real_array

GATES = ("i", "f", "g", "o")


def lstm(
    x: Float[np.ndarray, "pos d_in"],
    W_x: Float[np.ndarray, "d_in gates"],
    W_h: Float[np.ndarray, "d_hidden gates"],
    b: Float[np.ndarray, " gates"] | None = None,
) -> dict[str, np.ndarray]:
    """Return gates `i`, `f`, `o`, candidates `g`, cells `c` and outputs `h`, each [pos, d_hidden].

    The columns of the weights are those of i, f, g and o, in this order, as in torch.nn.LSTM, whose
    weights are the transposes and whose two biases are added. The state starts at zero.
    Proved by: cell_is_a_gated_sum. Source: Hochreiter and Schmidhuber 1997; Gers et al. 2000.

    >>> places = lstm(np.ones((3, 2)), np.zeros((2, 4)), np.zeros((1, 4)), np.zeros(4))
    >>> places["f"].tolist()
    [[0.5], [0.5], [0.5]]

    Raises: ShapeError if the shapes do not fit.
    """
    inputs, state = real_array(W_x, "W_x"), real_array(W_h, "W_h")
    rows = real_array(x, "x")
    hidden = state.shape[0] if state.ndim == 2 else 0
    bias: Any = np.zeros(4 * hidden) if b is None else real_array(b, "b")
    shapes = (rows.ndim, inputs.shape, state.shape, bias.shape)
    if shapes != (2, (rows.shape[-1], 4 * hidden), (hidden, 4 * hidden), (4 * hidden,)):
        raise ShapeError(
            "lstm takes x (pos, d_in), W_x (d_in, 4 d_hidden), W_h (d_hidden, 4 d_hidden) and b (4"
            f" d_hidden), got {rows.shape}, {inputs.shape}, {state.shape} and {bias.shape}"
        )
    places = {name: np.zeros((len(rows), hidden)) for name in (*GATES, "c", "h")}
    c = h = np.zeros(hidden)
    for t, row in enumerate(rows):
        i, f, g, o = np.split(row @ inputs + h @ state + bias, 4)
        i, f, g, o = expit(i), expit(f), np.tanh(g), expit(o)
        c = f * c + i * g
        h = o * np.tanh(c)
        for name, value in zip((*GATES, "c", "h"), (i, f, g, o, c, h), strict=True):
            places[name][t] = value
    return places


def cell_as_sum(places: dict[str, np.ndarray]) -> Float[np.ndarray, "written read d_hidden"]:
    r"""Return what each position has written to the cell at each later one [written, read, unit].

    The entry at s ≤ t is $(Π_{s < r ≤ t} f_r) ⊙ i_s ⊙ g_s$, and 0 for s > t; the sum over s is the
    cell. `places` are those of `lstm`.
    Proved by: cell_is_a_gated_sum.

    >>> places = lstm(np.ones((3, 2)), np.ones((2, 4)), np.ones((1, 4)))
    >>> bool(np.allclose(cell_as_sum(places).sum(axis=0), places["c"]))
    True
    """
    f, written = places["f"], places["i"] * places["g"]
    n_pos = len(f)
    found = np.zeros((n_pos, n_pos, f.shape[1]))
    for s in range(n_pos):
        left = written[s]
        for t in range(s, n_pos):
            left = left if t == s else f[t] * left
            found[s, t] = left
    return found
