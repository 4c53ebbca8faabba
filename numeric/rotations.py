"""The rotary positions of a model as matrices, by which its queries and keys are multiplied.

The forward pass turns pairs of entries and forms no matrix (`functions.rotate`). These matrices are
built entry by entry, and share no code with it.
"""

import numpy as np
from jaxtyping import Float

from otimes.numeric.config import Config


def rotation_matrices(config: Config, n_pos: int) -> Float[np.ndarray, "pos d_head d_head"] | None:
    """Return the matrix R of each position: queries and keys x become x R.

    None if the layers of the model do not share plain rotary positions: none at all, a stretch of
    the frequencies, another base or none for some layers, or latent attention. Angles, sines and
    cosines are computed in extended precision and rounded once. Source: Su et al. 2021, “RoFormer”,
    §3.2.2.

    >>> from otimes.numeric.config import llama_config
    >>> config = llama_config(rotary_stretch=(), d_head=2, rotary_dims=2)
    >>> rotation_matrices(config, 2)[1].round(3).tolist()  # by one radian
    [[0.54, 0.841], [-0.841, 0.54]]
    """
    others = config.rotary_stretch or config.local_base or config.kv_rank or config.unrotated_layers
    if config.positions != "rotary" or others:
        return None
    half = config.rotary_dims // 2
    pair = np.arange(half)
    interleaved = config.rotary_layout == "interleaved"
    first, second = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + half)
    frequencies = np.longdouble(config.rotary_base) ** (-pair / np.longdouble(half))
    angles = np.arange(n_pos)[:, None] * frequencies
    matrices = np.tile(np.eye(config.d_head), (n_pos, 1, 1))
    matrices[:, first, first] = matrices[:, second, second] = np.cos(angles)
    matrices[:, first, second] = np.sin(angles)
    matrices[:, second, first] = -np.sin(angles)
    return matrices
