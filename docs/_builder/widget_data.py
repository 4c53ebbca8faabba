"""The data of the widgets, computed from the weights of the bundled models."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np

import values_rotary
from lesson_prompt import POSITION, prompt, run, shown, texts
from otimes.numeric.circuits.composition import composition_scores
from otimes.numeric.circuits.copying import ov_eigenvalues
from otimes.numeric.interventions.hooks import hook
from otimes.numeric.interventions.passes import intervene
from otimes.numeric.paths.ensemble import paths as ensemble
from otimes.numeric.tokenizer import load_tokenizer

MOVED = (1, 2)
"""The heads of layer 0 whose tokens are moved: one goes by positions, one by tokens."""
FIRST, MATCHING = 1, (0, 1, 3)
"""The head of layer 0 that looks one token back, and heads of layer 1 that match its writing."""

PROMPTS = (
    "import os\nimport sys\nimport os\n",
    "self.name = name\nself.",
    "for i in range(n): print(i)\nfor i in",
    "try:\n    x = 1\nexcept:\n    x = 2\ntry:",
    "assert a == b\nassert a ==",
    "def get(self):\n    return self.x\ndef get(",
    "if not x: return x\nif not x:",
    "a = [1, 2, 3, 1, 2,",
    "raise ValueError\nraise Value",
    "x, y = y, x, y =",
)


def kronecker() -> dict[str, Any]:
    """Return small matrices: a pattern, a map, and three vectors of two components."""
    pattern = run()[1]["pattern.0"][1][:3, :3]
    return {"A": _rounded(pattern, 1), "W": [[1, 2], [0, -1]], "X": [[1, 0], [2, 1], [0, 3]]}


def move() -> dict[str, Any]:
    """Return queries, keys and values of the tokens and positions of the prompt, for two heads."""
    model, _ = run()
    tokens, _ = prompt()
    kinds = sorted(set(tokens), key=tokens.index)
    embedded, positions = model.W_E[kinds], model.W_pos[: len(tokens)]
    heads = {}
    for head in MOVED:
        query, key = model.W_Q[0, head], model.W_K[0, head]
        heads[f"head 0.{head}"] = {
            "queries": _short(embedded @ query),
            "keys": _short(embedded @ key),
            "values": _short(embedded @ model.W_V[0, head]),
            "position_queries": _short(positions @ query),
            "position_keys": _short(positions @ key),
            "out": _short(model.W_O[0, head] @ model.W_U[:, kinds]),
        }
    return {
        "tokens": [shown(text) for text in texts(kinds)],
        "order": [kinds.index(token) for token in tokens],
        "heads": heads,
    }


def paths() -> dict[str, Any]:
    """Return the 25 paths of a logit for some predictions, and the logit without heads."""
    tokens, words = prompt()
    asked = []
    for at in (POSITION, 4, 10):
        label = f"{shown(words[at + 1])} after {shown(''.join(words[: at + 1]))}"
        asked.append({"label": label, **_paths(tokens, at)})
    return {"predictions": asked}


def _paths(tokens: list[int], at: int) -> dict[str, Any]:
    model, places = run()
    token = tokens[at + 1]
    reads = model.W_U[:, token]
    single = [[float(out[at] @ reads) for out in places[f"head_out.{layer}"]] for layer in range(2)]
    pairs = np.asarray(ensemble(model, tokens).virtual_heads(at, token))[1, :, 0, :].T
    # What a head of layer 1 adds is its part of what the embedding adds, and of each head below.
    ov = model.W_V[1] @ model.W_O[1] @ reads
    own = [float(places["pattern.1"][h][at] @ places["resid_pre.0"] @ ov[h]) for h in range(4)]
    return {
        "direct": _number(float(places["resid_pre.0"][at] @ reads)),
        "single": [[_number(value) for value in row] for row in (single[0], own)],
        "pairs": _short(pairs),
        "without": [_without(at, token, bits) for bits in range(2**model.n_heads)],
    }


def _without(at: int, token: int, bits: int) -> dict[str, Any]:
    """Return the logit of the stream, and of the heads of layer 1, with some heads of layer 0."""
    model, _ = run()
    places, reads = _with_heads(bits), model.W_U[:, token]
    return {
        "stream": _number(float(places["resid_pre.1"][at] @ reads)),
        "writes": [_number(float(out[at] @ reads)) for out in places["head_out.1"]],
    }


@cache
def _with_heads(bits: int) -> Any:
    """Return the pass in which only the heads of layer 0 in `bits` write."""
    model, places = run()
    off = tuple(h for h in range(model.n_heads) if not bits >> h & 1)
    return intervene(model, prompt()[0], {hook("z.0", heads=off): "zero"}) if off else places


def compose() -> dict[str, Any]:
    """Return the patterns of all heads on the prompt, and the composition scores of pairs."""
    model, places = run()
    _, words = prompt()
    scores = {}
    for kind in "QKV":
        table = np.asarray(composition_scores(model, kind).values)
        scores[kind] = _short(table.reshape(2, 4, 2, 4)[0, :, 1, :])
    return {
        "tokens": [shown(word) for word in words],
        "patterns": [[_lower(each) for each in places[f"pattern.{layer}"]] for layer in range(2)],
        "scores": scores,
        "chance": _number(model.d_model**-0.5),
    }


def eigenvalues() -> dict[str, Any]:
    """Return the eigenvalues of each head's OV circuit, of conjugate pairs the upper one."""
    model, _ = run()
    found: dict[str, Any] = {}
    for kind in ("full", "bare"):
        values = np.asarray(ov_eigenvalues(model, kind).values)
        for layer, head in product(range(2), range(4)):
            upper = [each for each in values[layer, head] if each.imag >= 0]
            found.setdefault(f"head {layer}.{head}", {})[kind] = [
                [_number(each.real), _number(each.imag)] for each in upper
            ]
    return found


def circuit() -> dict[str, Any]:
    """Return for some prompts the patterns of a head of layer 0 and three of layer 1."""
    model, _ = run()
    found = []
    for text in PROMPTS:
        tokens = load_tokenizer().encode(text)
        places = model.forward(tokens)
        best = places["logits"].argmax(axis=1)
        found.append(
            {
                "tokens": [shown(word) for word in texts(tokens)],
                "first": _lower(places["pattern.0"][FIRST], 2),
                "second": {f"head 1.{h}": _lower(places["pattern.1"][h], 2) for h in MATCHING},
                "best": [shown(word) for word in texts(best)],
            }
        )
    return {"prompts": found}


def rotary() -> dict[str, Any]:
    """Return the query and the key of the lesson on rotary positions, before they are turned."""
    _, query, key = values_rotary.head()
    return {
        "query": _short(query),
        "key": _short(key),
        "speeds": [float(speed) for speed in values_rotary.speeds()],
        "planes": values_rotary.largest(),
        "at": [POSITION, values_rotary.KEY],
    }


def rounding() -> dict[str, Any]:
    """Return the two vectors whose inner product is the logit of the line end."""
    model, places = run()
    token = prompt()[0][POSITION + 1]
    return {"x": _short(places["final"][POSITION]), "y": _short(model.W_U[:, token])}


def _short(values: Any) -> Any:
    """Return an array as lists of numbers with four digits."""
    if np.ndim(values) == 0:
        return _number(float(values))
    return [_short(each) for each in values]


def _number(value: float) -> float:
    return float(f"{value:.4g}")


def _rounded(values: Any, digits: int) -> Any:
    return np.round(values, digits).tolist()


def _lower(pattern: Any, digits: int = 3) -> list[float]:
    """Return the lower triangle of a pattern, row by row as one list."""
    return [
        round(float(pattern[i, j]), digits) + 0.0 for i in range(len(pattern)) for j in range(i + 1)
    ]
