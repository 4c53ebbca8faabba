"""The numbers and figures of the lesson on rotary positions: a head of random weights.

The lesson ends with a bias of the keys, and the bundled model with rotary positions has no biases.
What it says holds for all weights, so it is shown on a head of random ones.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from charts import curve
from figures import bars, figure, pattern
from lesson_prompt import POSITION, number, power, prompt
from otimes.numeric.random_weights import random_model

HEAD, KEY, FARTHEST = 0, POSITION - 5, 40
SIZES: dict[str, Any] = {
    "n_layers": 1,
    "n_heads": 2,
    "d_model": 32,
    "d_head": 8,
    "d_vocab": 1024,
    "n_ctx": 64,
    "positions": "rotary",
    "rotary_dims": 8,
    "biases": ("b_K",),
}


@cache
def head() -> tuple[Any, Any, Any, Any]:
    """Return the model, and before they are turned the query, the key and the key bias."""
    model = random_model(seed=3, **SIZES)
    stream = model.forward(prompt()[0])["resid_pre.0"]
    bias = model.part("b_K", 0)[HEAD]
    query = stream[POSITION] @ model.W_Q[0, HEAD]
    return model, query, stream[KEY] @ model.W_K[0, HEAD] + bias, bias


def speeds() -> Any:
    """Return the angle of each plane for one position, in radians."""
    model, *_ = head()
    dims = model.config.rotary_dims
    return model.config.rotary_base ** (-np.arange(0, dims, 2) / dims)


def planes(query: Any, key: Any, distance: float) -> Any:
    """Return the score of a query and a key that is `distance` positions before it, by planes."""
    half = len(query) // 2
    a, b = query[:half] + 1j * query[half:], key[:half] + 1j * key[half:]
    turned = np.real(a * np.conj(b) * np.exp(1j * distance * speeds()))
    return turned / np.sqrt(len(query))


def values() -> dict[str, str]:
    """Return the numbers and figures of the lesson."""
    model, query, key, bias = head()
    tokens, texts = prompt()
    distance = POSITION - KEY
    here = planes(query, key, distance)
    recorded = float(model.forward(tokens)["scores.0"][HEAD, POSITION, KEY])
    scores = [float(planes(query, key, each).sum()) for each in range(FARTHEST + 1)]
    of_bias = [float(planes(query, bias, each).sum()) for each in range(FARTHEST + 1)]
    same = model.forward([tokens[POSITION]] * len(tokens))
    table = same["scores.0"][HEAD]
    apart = max(float(np.ptp(np.diagonal(table, -k))) for k in range(len(tokens)))
    first = model.forward(tokens)["scores.0"][HEAD]
    return {
        "n": str(len(tokens)),
        "d_head": str(model.d_head),
        "planes": str(model.d_head // 2),
        "distance": str(distance),
        "score": number(recorded),
        "score_apart": power(abs(recorded - float(here.sum()))),
        "diagonal_apart": power(apart),
        "unturned": number(scores[0]),
        "least": number(min(scores)),
        "most": number(max(scores)),
        "largest": number(float(first[POSITION, : POSITION + 1].max())),
        "fast": f"{2 * np.pi / speeds()[0]:.1f}",
        "slow": f"{2 * np.pi / speeds()[-1]:,.0f}",
        "bias_least": number(min(of_bias)),
        "bias_most": number(max(of_bias)),
        "same": figure(
            pattern(same["pattern.0"][HEAD], [texts[POSITION]] * len(tokens), "one token repeated"),
            "The pattern of the head on a prompt that repeats one token. All queries are the same"
            " vector, and so are all keys, before they are turned.",
        ),
        "waves": figure(
            curve(scores, "distance", "score", "the score of one query and one key, by distance"),
            "The score of the second ` os` with the first line end, if the two stood at another"
            " distance.",
        ),
        "by_plane": figure(
            bars(
                [float(value) for value in here],
                [f"plane {k + 1}" for k in range(len(here))],
                "units of the score",
                "the score by planes",
            ),
            f"The score at the true distance, {distance}, by planes.",
        ),
    }
