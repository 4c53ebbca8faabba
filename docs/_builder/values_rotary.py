"""The numbers and figures of the lesson on rotary positions: a head of `llama_tiny`.

The lesson ends with a bias of the keys, which no bundled model with rotary positions has. It is a
constant that is turned like a key, so what it does is read off a key.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from charts import curve
from figures import bars, figure, pattern
from lesson_prompt import POSITION, number, power, prompt, run

MODEL, HEAD, KEY, FARTHEST = "llama_tiny", 2, POSITION - 5, 40
MOST_PLANES = 6
"""Of the planes of the head, so many are shown one by one."""


@cache
def head() -> tuple[Any, Any, Any]:
    """Return the model, and the query and the key before they are turned."""
    model, places = run(MODEL)
    stream = places["qk_in.0"]
    return model, stream[POSITION] @ model.W_Q[0, HEAD], stream[KEY] @ model.W_K[0, HEAD]


def speeds() -> Any:
    """Return the angle of each plane for one position, in radians."""
    model, *_ = head()
    dims = model.config.rotary_dims
    return model.config.rotary_base ** (-np.arange(0, dims, 2) / dims)


def largest() -> list[int]:
    """Return the planes that can add most to the score, in their order."""
    _, query, key = head()
    reach = np.abs(_complex(query) * _complex(key))
    return sorted(np.argsort(-reach)[:MOST_PLANES].tolist())


def _complex(vector: Any) -> Any:
    """Return a query or key with the two components of each plane as one complex number."""
    half = len(vector) // 2
    return vector[:half] + 1j * vector[half:]


def planes(query: Any, key: Any, distance: float) -> Any:
    """Return the score of a query and a key that is `distance` positions before it, by planes."""
    turned = _complex(query) * np.conj(_complex(key)) * np.exp(1j * distance * speeds())
    return np.real(turned) / np.sqrt(len(query))


def values() -> dict[str, str]:
    """Return the numbers and figures of the lesson."""
    model, query, key = head()
    tokens, texts = prompt()
    distance = POSITION - KEY
    here = planes(query, key, distance)
    recorded = float(run(MODEL)[1]["scores.0"][HEAD, POSITION, KEY])
    scores = [float(planes(query, key, each).sum()) for each in range(FARTHEST + 1)]
    same = model.forward([tokens[POSITION]] * len(tokens))
    table = same["scores.0"][HEAD]
    apart = max(float(np.ptp(np.diagonal(table, -k))) for k in range(len(tokens)))
    shown = [float(here[k]) for k in largest()]
    return {
        "n": str(len(tokens)),
        "layers": str(model.n_layers),
        "heads": str(model.n_heads),
        "head": f"0.{HEAD}",
        "d_head": str(model.d_head),
        "planes": str(len(here)),
        "shown": str(MOST_PLANES),
        "distance": str(distance),
        "score": number(recorded),
        "score_apart": power(abs(recorded - float(here.sum()))),
        "diagonal_apart": power(apart),
        "least": number(min(scores)),
        "most": number(max(scores)),
        "fast": f"{2 * np.pi / speeds()[0]:.1f}",
        "slow": f"{2 * np.pi / speeds()[-1]:,.0f}",
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
                [*shown, float(here.sum()) - sum(shown)],
                [*[f"plane {k + 1}" for k in largest()], f"the other {len(here) - MOST_PLANES}"],
                "units of the score",
                "the score by planes",
            ),
            f"The score at the true distance, {distance}, by planes: the {MOST_PLANES} that could"
            " add most, and the others together.",
        ),
    }
