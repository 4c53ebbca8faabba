"""Models with random weights, of any architecture and size.

The usual initialisation (zero biases, unit gains) is a degenerate test point, at which many
mistakes have no effect. Here biases and gains are random too. Scales are chosen so that activations
are of order one, attention patterns are neither uniform nor one-hot, and the residual stream grows
slowly from block to block.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import Config, listed
from otimes.numeric.model import Model, checked_model

SMALL: dict[str, Any] = {
    "n_layers": 2,
    "n_heads": 4,
    "d_model": 32,
    "d_head": 8,
    "d_vocab": 64,
    "n_ctx": 32,
    "positions": "none",
}
"""The default configuration of `random_model`."""


def random_model(
    config: Config | None = None,
    seed: int = 0,
    *,
    dtype: type[np.floating] = np.float64,
    name: str = "random",
    **fields: Any,
) -> Model:
    """Return a model with random weights, stored as `dtype`.

    The configuration is `config`, by default a small attention-only one, with the given `fields` of
    `Config` changed.

    Matrices are normal with variance 1 / fan-in. W_Q and W_K are larger, so that scores have a
    standard deviation of about 2; W_O and W_out are smaller by √(2 n_layers). Biases have standard
    deviation 0.3, gains mean 1 and standard deviation 0.3, embeddings standard deviation 1 (0.5
    when they are tied, which would make logits large).

    >>> from otimes.numeric.config import gpt2_config
    >>> random_model(gpt2_config(), n_layers=1, d_vocab=50).forward([1, 2, 3])["logits"].shape
    (3, 50)

    Raises: OtimesError for unknown or invalid fields.
    """
    unknown = [field for field in fields if field not in Config.__slots__]
    if unknown:
        raise OtimesError(
            f"a configuration has no field {listed(unknown)}; it has {listed(Config.__slots__)}"
        )
    config = Config(**{**SMALL, **fields}) if config is None else replace(config, **fields)
    rng = np.random.default_rng(seed)
    weights = {}
    for tensor, shape in config.tensor_shapes().items():
        values = rng.standard_normal(shape)
        values *= _std(tensor, config)
        if tensor.endswith("_gain"):
            values += 1.0
        weights[tensor] = values.astype(dtype, copy=False)
    return checked_model(name, config, weights)


def _std(tensor: str, config: Config) -> float:
    """Return the standard deviation of a tensor's entries."""
    deep = float(np.sqrt(2 * max(config.n_layers, 1)))
    if tensor in ("b_O", "b_out"):
        return 0.3 / deep
    if tensor.startswith(("b_", "ln")):
        return 0.3
    std: dict[str, float] = {
        "W_E": 0.5 if config.tied else 1.0,
        "W_pos": 0.5 if config.tied else 1.0,
        "W_Q": 1.5 * config.d_model**-0.5,
        "W_K": 1.5 * config.d_model**-0.5,
        "W_O": (config.n_heads * config.d_head) ** -0.5 / deep,
        "W_out": max(config.d_mlp, 1) ** -0.5 / deep,
    }
    return std.get(tensor, config.d_model**-0.5)
