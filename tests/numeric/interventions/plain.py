"""A forward pass with hooks, one position, head and key at a time, and nothing of the package.

`hook(name, value)` may replace any activation. `read(receiver, stream, terms)` may replace the
residual stream that a receiver reads: `terms` are what the senders have written so far, by name.
"""

from collections.abc import Callable
from math import erf, exp, sqrt, tanh
from typing import Any

import numpy as np

from otimes.numeric.model import Model

Hook = Callable[[str, np.ndarray], np.ndarray]
Read = Callable[[str, np.ndarray, dict[str, np.ndarray]], np.ndarray]

ACT = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * (1 + erf(x / sqrt(2))) / 2,
    "gelu_tanh": lambda x: x / 2 * (1 + tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + exp(-x)),
}


def plain(
    model: Model,
    tokens: list[int],
    hook: Hook = lambda name, value: value,
    read: Read = lambda receiver, stream, terms: stream,
) -> dict[str, np.ndarray]:
    run = _Plain(model, hook, read)
    run.all(tokens)
    return run.places | {f"wrote {name}": value for name, value in run.terms.items()}


class _Plain:
    def __init__(self, model: Model, hook: Hook, read: Read) -> None:
        self.model, self.c, self.hook, self.read = model, model.config, hook, read
        self.W = {name: np.asarray(each, float) for name, each in model.weights.items()}
        self.places: dict[str, np.ndarray] = {}
        self.terms: dict[str, np.ndarray] = {}

    def keep(self, name: str, value: Any) -> np.ndarray:
        self.places[name] = self.hook(name, np.array(value, float))
        return self.places[name]

    def get(self, name: str, layer: int, like: int) -> np.ndarray:
        gain = name.endswith("gain")
        return self.W[name][layer] if name in self.W else np.full(like, float(gain))

    def norm(self, rows: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
        if self.c.norm == "none":
            return rows
        out = []
        for row in rows:
            x = row - row.mean() if self.c.norm == "layer" else row
            out.append(x / sqrt((x**2).mean() + self.c.norm_eps) * gain + bias)
        return np.array(out)

    def all(self, tokens: list[int]) -> None:
        c, d, n = self.c, self.c.d_model, len(tokens)
        stream = self.terms["embed"] = self.keep("embed", [self.W["W_E"][t] for t in tokens])
        if c.positions == "learned":
            stream = stream + self.W["W_pos"][:n]
        for layer in range(c.n_layers):
            stream = self.block(layer, self.keep(f"resid_pre.{layer}", stream))
        stream = self.keep("final", stream)
        stream = self.read("final", stream, self.terms)
        if c.final_norm:
            gain, bias = self.W["ln_final_gain"], self.W.get("ln_final_bias", np.zeros(d))
            stream = self.keep("ln_final", self.norm(stream, gain, bias))
        W_U = self.W["W_E"].T if c.tied else self.W["W_U"]
        b_U = self.W.get("b_U", np.zeros(c.d_vocab))
        self.keep("logits", [row @ W_U + b_U for row in stream])

    def block(self, layer: int, pre: np.ndarray) -> np.ndarray:
        c, d = self.c, self.c.d_model
        first = (self.get("ln1_gain", layer, d), self.get("ln1_bias", layer, d))
        if c.norm != "none":
            self.keep(f"ln1.{layer}", self.norm(pre, *first))
        terms = dict(self.terms)
        found: dict[str, list] = {}
        for h in range(c.n_heads):
            inputs = [self.norm(self.read(f"{r}.{layer}[{h}]", pre, terms), *first) for r in "qkv"]
            for name, value in self.head(layer, h, *inputs).items():
                found.setdefault(name, []).append(value)
        q, k, v = (self.keep(f"{r}.{layer}", found[r]) for r in "qkv")
        outs = self.keep(f"head_out.{layer}", self.mix(layer, q, k, v))
        out = self.keep(f"attn_out.{layer}", sum(outs) + self.get("b_O", layer, d))
        for h in range(c.n_heads):
            self.terms[f"head_out.{layer}[{h}]"] = outs[h]
        mid = self.keep(f"resid_mid.{layer}", pre + out)
        post = mid
        if c.d_mlp:
            source, seen = (pre, terms) if c.parallel else (mid, self.terms)
            made = self.mlp(layer, self.read(f"mlp_pre.{layer}", source, dict(seen)))
            self.terms[f"mlp_out.{layer}"] = made
            post = mid + made
        return self.keep(f"resid_post.{layer}", post)

    def head(
        self, layer: int, h: int, query: np.ndarray, key: np.ndarray, value: np.ndarray
    ) -> dict[str, np.ndarray]:
        c = self.c
        group = h // (c.n_heads // (c.n_kv_heads or c.n_heads))
        out = {}
        for r, rows, at in (("q", query, h), ("k", key, group), ("v", value, group)):
            W = self.W[f"W_{r.upper()}"][layer][at]
            b = self.W[f"b_{r.upper()}"][layer][at] if f"b_{r.upper()}" in self.W else 0.0
            made = []
            for i, row in enumerate(rows):
                if r != "v" and c.positions == "shortformer":
                    row = row + self.W["W_pos"][i]
                row = row @ W + b
                made.append(self.turned(row, i) if r != "v" and c.positions == "rotary" else row)
            out[r] = np.array(made)
        return out

    def turned(self, row: np.ndarray, i: int) -> np.ndarray:
        c, out = self.c, row.copy()
        for pair in range(c.rotary_dims // 2):
            a, b = pair, pair + c.rotary_dims // 2
            if c.rotary_layout == "interleaved":
                a, b = 2 * pair, 2 * pair + 1
            angle = i * c.rotary_base ** (-2 * pair / c.rotary_dims)
            out[a] = row[a] * np.cos(angle) - row[b] * np.sin(angle)
            out[b] = row[a] * np.sin(angle) + row[b] * np.cos(angle)
        return out

    def mix(self, layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
        heads, n, size = q.shape
        patterns, zs = np.zeros((heads, n, n)), np.zeros((heads, n, size))
        for h in range(heads):
            for i in range(n):
                raised = [exp(q[h, i] @ k[h, j] / sqrt(size)) for j in range(i + 1)]
                patterns[h, i, : i + 1] = np.array(raised) / sum(raised)
        patterns = self.keep(f"pattern.{layer}", patterns)
        for h in range(heads):
            for i in range(n):
                zs[h, i] = sum(patterns[h, i, j] * v[h, j] for j in range(n))
        z = self.keep(f"z.{layer}", zs)
        return [np.array([row @ self.W["W_O"][layer][h] for row in z[h]]) for h in range(heads)]

    def mlp(self, layer: int, stream: np.ndarray) -> np.ndarray:
        c, d = self.c, self.c.d_model
        rows = self.norm(stream, self.get("ln2_gain", layer, d), self.get("ln2_bias", layer, d))
        if c.norm != "none":
            self.keep(f"ln2.{layer}", rows)
        act = np.vectorize(ACT[c.activation])
        up = [row @ self.W["W_in"][layer] + self.get("b_in", layer, c.d_mlp) for row in rows]
        pre = up
        if c.gated:
            b_gate = self.get("b_gate", layer, c.d_mlp)
            pre = [row @ self.W["W_gate"][layer] + b_gate for row in rows]
        pre = self.keep(f"mlp_pre.{layer}", pre)
        post = act(pre) * np.array(up) if c.gated else act(pre)
        post = self.keep(f"mlp_post.{layer}", post)
        out = [row @ self.W["W_out"][layer] + self.get("b_out", layer, d) for row in post]
        return self.keep(f"mlp_out.{layer}", out)


def with_edges(other: dict[str, np.ndarray], edges: set[tuple[str, str]]) -> Read:
    """Return a `read` in which some edges carry what the senders wrote in another pass."""

    def read(receiver: str, stream: np.ndarray, terms: dict[str, np.ndarray]) -> np.ndarray:
        for sender, value in terms.items():
            if (sender, receiver) in edges:
                stream = stream - value + other[f"wrote {sender}"]
        return stream

    return read
