"""Matrices as lists of Python floats, one loop for each index: what circuits are compared with."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from otimes.numeric.model import Model
from otimes.numeric.processing import fold_norm_biases, fold_norm_gains
from tests.numeric.loops import slowed
from tests.numeric.random_models import FULL, KINDS, TINY, random_model

Rows = list[list[float]]


def folded(model: Model) -> Model:
    return fold_norm_gains(fold_norm_biases(model))


# Attention only; grouped keys, rotary, RMSNorm; LayerNorm, MLP, tied. Gains folded where there are.
MODELS: dict[str, Model] = {
    "attention only": random_model(replace(TINY, n_layers=3)),
    "without positions": random_model(KINDS["without positions"], seed=1),
    "llama": folded(random_model(KINDS["llama"], seed=2)),
    "gpt2": folded(random_model(replace(FULL, tied=True, n_layers=3), seed=3)),
    "tied": random_model(replace(KINDS["mlp without norms"], tied=True), seed=4),
}


def heads(model: Model) -> Iterator[tuple[int, int]]:
    for layer in range(model.n_layers):
        for head in range(model.n_heads):
            yield layer, head


def mul(first: Rows, *others: Rows) -> Rows:
    """Return a product of matrices."""
    for other in others:
        inner = range(len(other))
        first = [
            [math.fsum(row[k] * other[k][j] for k in inner) for j in range(len(other[0]))]
            for row in first
        ]
    return first


def across(rows: Rows) -> Rows:
    return [list(column) for column in zip(*rows, strict=True)]


def norm(rows: Rows) -> float:
    return math.sqrt(math.fsum(x * x for row in rows for x in row))


def trace(rows: Rows) -> float:
    return math.fsum(rows[i][i] for i in range(len(rows)))


def head_weight(model: Model, name: str, layer: int, head: int) -> Rows:
    """Return a head's weight as it lies in the file: in grouped attention that of its group."""
    stored = model.weights[name][layer]
    group = head // (model.n_heads // len(stored))
    return stored[group].astype(float).tolist()


def table(model: Model, name: str) -> Rows:
    if name == "W_U" and model.config.tied:
        return across(table(model, "W_E"))
    return model.weights[name].astype(float).tolist()


def turn(model: Model, position: int) -> Rows:
    """Return the rotation of a position, entry by entry, from the paper's formula."""
    c = model.config
    R = [[float(i == j) for j in range(c.d_head)] for i in range(c.d_head)]
    for i in range(c.rotary_dims // 2):
        a, b = (
            (2 * i, 2 * i + 1) if c.rotary_layout == "interleaved" else (i, i + c.rotary_dims // 2)
        )
        angle = position * slowed(c, c.rotary_base ** (-2 * i / c.rotary_dims))
        R[a][a], R[a][b] = math.cos(angle), math.sin(angle)
        R[b][a], R[b][b] = -math.sin(angle), math.cos(angle)
    return R


def ov(model: Model, layer: int, head: int) -> Rows:
    return mul(head_weight(model, "W_V", layer, head), head_weight(model, "W_O", layer, head))


def qk(model: Model, layer: int, head: int, distance: int | None = None) -> Rows:
    W_Q, W_K = (head_weight(model, name, layer, head) for name in ("W_Q", "W_K"))
    if distance is not None:
        W_Q = mul(W_Q, turn(model, distance))
    return mul(W_Q, across(W_K))


def near(found: np.ndarray, expected: object, relative: float = 1e-10) -> bool:
    """Whether every entry agrees, relative to the largest."""
    expected = np.asarray(expected)
    assert np.shape(found) == expected.shape, (np.shape(found), expected.shape)
    size = np.abs(expected).max(initial=0.0) or 1.0
    return bool(np.abs(found - expected).max(initial=0.0) <= relative * size)
