"""Small models with generic weights: no zero, no two equal sizes, so that no mix-up goes unseen."""

import numpy as np

from numeric.model import Config, Model, make_model

TINY = Config(
    n_layers=2, n_heads=3, d_model=5, d_head=2, d_vocab=11, n_ctx=7, positions="shortformer"
)
TINY_TOKENS = [3, 0, 10, 3, 7, 7]


def random_weights(config: Config, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        name: (rng.standard_normal(shape) / 2).astype(np.float32)
        for name, shape in config.tensor_shapes().items()
    }


def random_model(config: Config = TINY, seed: int = 0) -> Model:
    return make_model("random", config, random_weights(config, seed))
