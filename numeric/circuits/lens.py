r"""The logit lens: the stream of each layer read as logits; and the bands of its spectrum.

A stream x in the middle of the model goes through the final norm and the unembedding as if it were
the last. The norm divides by a scale, and there are two: that of x itself ("own", what is usually
done), or that of the last stream ("final"). Only with the final scale do the logits of successive
layers differ by what the layer in between wrote, times W_U, so that they add up.

**Bands.** With $W_U = U S V^T$ a stream splits into the parts along groups of columns of U, and its
logits into parts along V: $x U_b U_b^T W_U = x W_U V_b V_b^T$.

Source: nostalgebraist 2020, “Interpreting GPT: the logit lens”; Cancedda 2024, “Spectral filters,
dark signals, and attention sinks”.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from algebra.errors import OtimesError
from numeric.circuits.factored import triangle
from numeric.circuits.heads import token_labels
from numeric.circuits.result import Named
from numeric.circuits.weights import BLOCK_BYTES, blocks, weight
from numeric.functions import centred, norm_scale
from numeric.model import Model
from numeric.prompt import read_prompt

SCALES = ("final", "own")


def logit_lens(
    model: Model,
    prompt: str | Sequence[int],
    scale: str = "final",
    positions: Any = slice(-1, None),
) -> Named:
    r"""Return the logits of the stream before each layer and at the end [place, position, token].

    $\ell_l = (C(x_l) · g / s + b) W_U + b_U$: gain g, bias b, and the scale s of the last stream
    ("final": the rows add up) or of $x_l$ ("own"). The last row is the model's own logits. Only
    the last position is shown unless others are asked for, as a list or slice.
    Proved by: logits_are_sum_of_components.  Source: nostalgebraist 2020.

    >>> from numeric.model import load_model
    >>> logit_lens(load_model("two_layer"), "for x in", positions=[0, 1]).values.shape
    (3, 2, 1024)

    Raises: OtimesError for another scale, or a prompt that does not fit.
    """
    if scale not in SCALES:
        raise OtimesError(
            f"the norm of a logit lens has the scale of the last stream, 'final', or of each stream"
            f" itself, 'own', not {scale!r}"
        )
    tokens, _ = read_prompt(model, prompt)
    streams = [f"resid_pre.{layer}" for layer in range(model.n_layers)]
    places = model.forward(tokens, [*streams, "final"])
    config = model.config
    W_U, b_U = model.part("W_U"), model.part("b_U")
    rows = np.stack([places[place][positions] for place in (*streams, "final")])
    if config.final_norm:
        scaled_by = norm_scale(rows if scale == "own" else rows[-1], config.norm, config.norm_eps)
        gain, bias = model.part("ln_final_gain"), model.part("ln_final_bias")
        rows = centred(rows, config.norm) / scaled_by * gain + bias
    at = np.arange(len(tokens))[positions]
    labels = {"place": [*streams, "final"], "position": [f"position {i}" for i in at]}
    names = token_labels(model)
    if names:
        labels["token"] = list(names)
    named_scale = f"scale of the norm: {scale}" if config.final_norm else "no norm"
    return Named(
        "logit lens", rows @ W_U + b_U, ("place", "position", "token"), labels, about=named_scale
    )


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """The spectrum of the unembedding in bands: directions U [d_model, r], S falling, and edges.

    Band b is the columns `edges[b]` to `edges[b + 1]` of U. Where W_U has fewer singular values
    than the stream directions, the directions that no token hears make up the rest of U.
    """

    U: Float[np.ndarray, "d_model d_model"] = field(repr=False)
    S: Float[np.ndarray, " d_model"] = field(repr=False)
    edges: tuple[int, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.edges) - 1

    def keep(self, rows: Float[np.ndarray, "*rows d_model"], band: int) -> np.ndarray:
        """Return $x U_b U_b^T$: the part of each row in a band. All bands together make the row."""
        U_b = self.U[:, self._columns(band)]
        return np.asarray(rows @ U_b @ U_b.T)

    def suppress(self, rows: Float[np.ndarray, "*rows d_model"], band: int) -> np.ndarray:
        """Return $x (I - U_b U_b^T)$: each row without a band."""
        return np.asarray(rows - self.keep(rows, band))

    def energy(self, rows: Float[np.ndarray, "*rows d_model"]) -> np.ndarray:
        """Return the share of each row's squared length in each band [*rows, band]; sums to 1."""
        squared = (rows @ self.U) ** 2
        shares = np.add.reduceat(squared, self.edges[:-1], axis=-1)
        return np.asarray(shares / squared.sum(axis=-1, keepdims=True))

    def _columns(self, band: int) -> slice:
        if not 0 <= band < len(self):
            raise OtimesError(f"there is no band {band}; there are {len(self)}, counted from 0")
        return slice(self.edges[band], self.edges[band + 1])


def spectral_bands(model: Model, n_bands: int = 8, block_bytes: int = BLOCK_BYTES) -> Bands:
    """Return the singular directions of W_U on the stream's side, in bands of equal width.

    From the triangle of W_Uᵀ, made a block of tokens at a time: V never exists.
    Proved by: bands_resolve_identity, bands_intertwine.  Source: Cancedda 2024.

    >>> from numeric.model import load_model
    >>> len(spectral_bands(load_model("zero_layer"), 4))
    4

    Raises: OtimesError if there are fewer directions than bands.
    """
    d = model.d_model
    if not 1 <= n_bands <= d:
        raise OtimesError(f"{n_bands} bands of {d} directions; ask for 1 to {d}")
    W_U = weight(model, "W_U").T
    R = triangle(W_U[some] for some in blocks(len(W_U), d, W_U.dtype, block_bytes))
    U, S, _ = np.linalg.svd(R.T, full_matrices=True)
    edges = tuple(int(edge) for edge in np.linspace(0, d, n_bands + 1).round())
    return Bands(U, np.pad(S, (0, d - len(S))), edges)


def band_energy(model: Model, prompt: str | Sequence[int], n_bands: int = 8) -> Named:
    """Return the share of the stream's squared length in each band [place, position, band].

    >>> from numeric.model import load_model
    >>> band_energy(load_model("zero_layer"), "x = 1", 4).axes
    ('place', 'position', 'band')
    """
    tokens, _ = read_prompt(model, prompt)
    streams = [*(f"resid_pre.{layer}" for layer in range(model.n_layers)), "final"]
    places = model.forward(tokens, streams)
    bands = spectral_bands(model, n_bands)
    rows = np.stack([places[place] for place in streams])
    return Named(
        "band energy", bands.energy(rows), ("place", "position", "band"), {"place": streams}
    )
