"""Every path of a frozen pass by itself, head after head: the oracle of all that is faster.

From the stored weights and the recorded places alone, with a loop over layers for each of the
(1 + H)^L paths; nothing of `otimes.numeric.frozen` or `otimes.numeric.paths` is used. With `gates`
paths go through MLPs as well, whose gates are what the recorded activations were multiplied with.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations, product

import numpy as np

from otimes.numeric.model import Model


class Enumeration:
    """All paths of a model on a prompt: `streams[path]` is what it brings to the end."""

    def __init__(self, model: Model, tokens: list[int], gates: bool = False) -> None:
        self.model, self.c, self.tokens = model, model.config, tokens
        self.through_mlps = gates and model.config.d_mlp > 0
        self.W = {name: weight.astype(float) for name, weight in model.weights.items()}
        self.places = model.forward(tokens)
        L, H = self.c.n_layers, self.c.n_heads
        self.streams = {}
        for choice in product([None, *range(H)], repeat=L):
            path = tuple((layer, head) for layer, head in enumerate(choice) if head is not None)
            self.streams[path] = self.walk(path)

    def walk(self, path: tuple[tuple[int, int], ...], until: int | None = None) -> np.ndarray:
        """What its first head reads, through each head of the path, to a layer or the end."""
        until = self.c.n_layers if until is None else until
        rows = self.sources_before(path[0][0] if path else until)
        for step, (layer, head) in enumerate(path):
            rows = self.through(layer, head, rows, with_bias=step == 0)
            if not self.through_mlps:
                continue
            if not self.c.parallel:
                rows = rows + self.mlp(layer, rows, with_bias=False)
            following = path[step + 1][0] if step + 1 < len(path) else until
            for between in range(layer + 1, following):
                rows = rows + self.mlp(between, rows, with_bias=False)
        return rows

    def sources_before(self, layer: int) -> np.ndarray:
        rows = self.places["embed"]
        if self.c.positions == "learned":
            rows = rows + self.W["W_pos"][: len(rows)]
        for below in range(layer):
            before = rows
            if "b_O" in self.W:
                rows = rows + self.W["b_O"][below]
            if self.through_mlps:
                rows = rows + self.mlp(below, before if self.c.parallel else rows, with_bias=True)
            elif self.c.d_mlp:
                rows = rows + self.places[f"mlp_out.{below}"]
        return rows

    def mlp(self, layer: int, rows: np.ndarray, with_bias: bool) -> np.ndarray:
        """The MLP with its gates as they were; its biases belong to the sources."""
        recorded = self.places[f"resid_{'pre' if self.c.parallel else 'mid'}.{layer}"]
        read = self.normed(rows, recorded, "ln2", layer, with_bias)
        gates = self.gates(layer)
        out = np.zeros_like(rows)
        for i in range(len(rows)):
            hidden = read[i] @ self.W["W_in"][layer]
            if with_bias and "b_in" in self.W:
                hidden = hidden + self.W["b_in"][layer]
            out[i] = (hidden * gates[i]) @ self.W["W_out"][layer]
            if with_bias and "b_out" in self.W:
                out[i] += self.W["b_out"][layer]
        return out

    @cache  # noqa: B019 (an enumeration is kept as long as the tests run)
    def gates(self, layer: int) -> np.ndarray:
        """What the hidden activations of every path are multiplied with, as they were recorded."""
        pre = self.places[f"mlp_pre.{layer}"]
        factors = [[GATES[self.c.activation](float(x)) for x in row] for row in pre]
        return pre * factors if self.c.gated else np.array(factors)

    def through(self, layer: int, head: int, rows: np.ndarray, with_bias: bool) -> np.ndarray:
        group = head // (self.c.n_heads // self.c.kv_heads)
        pattern = self.places[f"pattern.{layer}"][head]
        W_V, W_O = self.W["W_V"][layer, group], self.W["W_O"][layer, head]
        read = self.normed(rows, self.places[f"resid_pre.{layer}"], "ln1", layer, with_bias)
        out = np.zeros_like(rows)
        for query in range(len(rows)):
            for key in range(query + 1):
                value = read[key] @ W_V
                if with_bias and "b_V" in self.W:
                    value = value + self.W["b_V"][layer, group]
                out[query] += pattern[query, key] * (value @ W_O)
        return out

    def normed(self, rows, recorded, name: str, layer, with_bias: bool) -> np.ndarray:
        if self.c.norm == "none" or (name == "ln_final" and not self.c.final_norm):
            return rows
        out = np.empty_like(rows)
        gain, bias = self.W[f"{name}_gain"], self.W.get(f"{name}_bias")
        gain, bias = (
            (gain, bias) if layer is None else (gain[layer], bias if bias is None else bias[layer])
        )
        for i in range(len(rows)):
            whole, row = recorded[i], rows[i]
            if self.c.norm == "layer":
                whole, row = whole - whole.sum() / len(whole), row - row.sum() / len(row)
            scale = ((whole * whole).sum() / len(whole) + self.c.norm_eps) ** 0.5
            out[i] = row / scale * gain
            if with_bias and bias is not None:
                out[i] += bias
        return out

    def logits(self, path: tuple[tuple[int, int], ...]) -> np.ndarray:
        """[pos, token]; what comes on top once belongs to the direct path."""
        rows = self.normed(self.streams[path], self.places["final"], "ln_final", None, not path)
        W_U = self.W["W_E"].T if self.c.tied else self.W["W_U"]
        return rows @ W_U + (self.W["b_U"] if "b_U" in self.W and not path else 0.0)

    def by_order(self) -> np.ndarray:
        n, d_vocab = len(self.tokens), self.c.d_vocab
        out = np.zeros((self.c.n_layers + 1, n, d_vocab))
        for path in self.streams:
            out[len(path)] += self.logits(path)
        return out

    def values(self, position: int, token: int) -> dict[tuple[tuple[int, int], ...], float]:
        return {path: float(self.logits(path)[position, token]) for path in self.streams}


GATES = {
    "relu": lambda x: float(x > 0),
    "gelu": lambda x: math.erfc(-x / math.sqrt(2)) / 2,
    "gelu_tanh": lambda x: (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: (1 + math.tanh(x / 2)) / 2,
    "relu2": lambda x: max(x, 0.0),
    "quick_gelu": lambda x: (1 + math.tanh(1.702 * x / 2)) / 2,
}
"""What each activation multiplies its argument with; 1 / (1 + e^-x) is (1 + tanh(x / 2)) / 2."""


def shapley_by_coalitions(values: dict, players: list) -> dict:
    """The definition: the mean marginal contribution over all coalitions of the others.

    A coalition's worth is the sum of the paths that go through its heads only.
    """
    from math import factorial

    def worth(coalition: frozenset) -> float:
        return sum(value for path, value in values.items() if coalition.issuperset(path))

    total = len(players)
    shares = {}
    for player in players:
        others = [each for each in players if each != player]
        shares[player] = 0.0
        for size in range(total):
            weight = factorial(size) * factorial(total - size - 1) / factorial(total)
            for coalition in combinations(others, size):
                with_it = frozenset((*coalition, player))
                shares[player] += weight * (worth(with_it) - worth(frozenset(coalition)))
    return shares
