r"""The logit lens: the residual stream of each layer read as logits; spectral bands of W_U.

The residual stream x before some layer is mapped through the final norm and the unembedding. The
norm divides by a scale, which may be that of x itself ("own", the usual choice) or that of the
final residual stream ("final"). With the final scale, the logits of successive layers differ by the
direct contribution of the layer between them.

**Bands.** With $W_U = U S V^T$ the residual stream splits into its projections on groups of columns
of U, and its logits into projections on columns of V: $x U_b U_b^T W_U = x W_U V_b V_b^T$.

Source: nostalgebraist 2020, “Interpreting GPT: the logit lens”; Cancedda 2024, “Spectral filters,
dark signals, and attention sinks”.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.brief import Brief
from otimes.numeric.circuits.batches import over_prompts
from otimes.numeric.circuits.factored import triangle
from otimes.numeric.circuits.heads import token_labels
from otimes.numeric.circuits.result import Named
from otimes.numeric.circuits.weights import BLOCK_BYTES, blocks, weight
from otimes.numeric.functions import centred, norm_scale
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.prompt import read_prompt

SCALES = ("final", "own")


@over_prompts
def logit_lens(
    model: ModelSource,
    prompt: str | Sequence[int],
    scale: str = "final",
    positions: Any = slice(-1, None),
) -> Named:
    r"""Return the logits of the residual stream before each layer and after the last.

    The axes are [activation, position, token], with the activations `resid_pre.0`, …, `final`.
    $\ell_l = (C(x_l) · g / s + b) W_U + b_U$: gain g, bias b, and the scale s of the final residual
    stream ("final") or of $x_l$ ("own"). The last entry is the model's own logits. `positions` is a
    list or slice, by default the last position.
    Proved by: logits_are_sum_of_components.  Source: nostalgebraist 2020.

    >>> from otimes.numeric.load import load_model
    >>> logit_lens(load_model("two_layer"), "for x in", positions=[0, 1]).values.shape
    (3, 2, 1024)

    Raises: OtimesError for an unknown scale or an invalid prompt.
    """
    model = load_model(model)
    if scale not in SCALES:
        raise OtimesError(
            "scale must be 'final' (of the final residual stream) or 'own' (of each residual"
            f" stream), got {scale!r}"
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
    labels = {"activation": [*streams, "final"], "position": [f"position {i}" for i in at]}
    names = token_labels(model)
    if names:
        labels["token"] = list(names)
    named_scale = f"scale of the norm: {scale}" if config.final_norm else "no norm"
    axes = ("activation", "position", "token")
    return Named("logit lens", rows @ W_U + b_U, axes, labels, about=named_scale)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bands(Brief):
    """The singular directions of the unembedding in bands: U [d_model, d_model], S descending.

    Band b is the columns `edges[b]` to `edges[b + 1] - 1` of U. If d_vocab < d_model, the last
    columns of U span the directions with no effect on the logits.
    """

    U: Float[np.ndarray, "d_model d_model"] = field(repr=False)
    S: Float[np.ndarray, " d_model"] = field(repr=False)
    edges: tuple[int, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.edges) - 1

    def keep(self, rows: Float[np.ndarray, "*rows d_model"], band: int) -> np.ndarray:
        """Return $x U_b U_b^T$: the projection of each row on a band; the bands sum to the row."""
        U_b = self.U[:, self._columns(band)]
        return np.asarray(rows @ U_b @ U_b.T)

    def suppress(self, rows: Float[np.ndarray, "*rows d_model"], band: int) -> np.ndarray:
        """Return $x (I - U_b U_b^T)$: each row with a band projected out."""
        return np.asarray(rows - self.keep(rows, band))

    def energy(self, rows: Float[np.ndarray, "*rows d_model"]) -> np.ndarray:
        """Return the fraction of each row's squared norm in each band [*rows, band]; sums to 1."""
        squared = (rows @ self.U) ** 2
        shares = np.add.reduceat(squared, self.edges[:-1], axis=-1)
        return np.asarray(shares / squared.sum(axis=-1, keepdims=True))

    def _columns(self, band: int) -> slice:
        if not 0 <= band < len(self):
            raise OtimesError(f"band {band} is out of range: there are {len(self)} bands from 0")
        return slice(self.edges[band], self.edges[band + 1])


def spectral_bands(model: ModelSource, n_bands: int = 8, block_bytes: int = BLOCK_BYTES) -> Bands:
    """Return the left singular vectors of W_U, in bands of equal width.

    They are computed from the R factor of W_Uᵀ, over blocks of tokens: V is not needed.
    Proved by: bands_resolve_identity, bands_intertwine.  Source: Cancedda 2024.

    >>> from otimes.numeric.load import load_model
    >>> len(spectral_bands(load_model("zero_layer"), 4))
    4

    Raises: OtimesError unless 1 ≤ n_bands ≤ d_model.
    """
    model = load_model(model)
    d = model.d_model
    if not 1 <= n_bands <= d:
        raise OtimesError(f"n_bands must be from 1 to d_model={d}, got {n_bands}")
    W_U = weight(model, "W_U").T
    R = triangle(W_U[some] for some in blocks(len(W_U), d, W_U.dtype, block_bytes))
    U, S, _ = np.linalg.svd(R.T, full_matrices=True)
    edges = tuple(int(edge) for edge in np.linspace(0, d, n_bands + 1).round())
    return Bands(U, np.pad(S, (0, d - len(S))), edges)


@over_prompts
def band_energy(model: ModelSource, prompt: str | Sequence[int], n_bands: int = 8) -> Named:
    """Return the fraction of the squared norm in each band [activation, position, band].

    The activations are the residual streams before each layer, and the final one.

    >>> from otimes.numeric.load import load_model
    >>> band_energy(load_model("zero_layer"), "x = 1", 4).axes
    ('activation', 'position', 'band')
    """
    model = load_model(model)
    tokens, _ = read_prompt(model, prompt)
    streams = [*(f"resid_pre.{layer}" for layer in range(model.n_layers)), "final"]
    places = model.forward(tokens, streams)
    bands = spectral_bands(model, n_bands)
    rows = np.stack([places[place] for place in streams])
    axes = ("activation", "position", "band")
    return Named("band energy", bands.energy(rows), axes, {"activation": streams})
