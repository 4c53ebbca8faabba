"""Plain torch transformers in four families, every step a method that a mistake can replace.

Their weights are drawn here, as other people draw them: not those of `random_model`.
"""

import math
from functools import partial

import numpy as np
import torch
from torch.nn import functional

LAYER_NORM = {"norm": "layer", "eps": 1e-5, "gated": False}
BIASES = ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out")
# L layers, h heads of width dh, kv of them with keys and values, stream d, MLP m, vocabulary V
GPT2 = {
    "L": 3, "h": 4, "kv": 4, "d": 48, "dh": 12, "m": 96, "V": 80, "n": 64, "pos": "learned",
    "rot": 0, "base": 1e4, "act": "gelu_tanh", "parallel": False, "tied": True, "biases": BIASES,
    **LAYER_NORM,
}  # fmt: skip
LLAMA = {
    "L": 3, "h": 4, "kv": 2, "d": 48, "dh": 12, "m": 80, "V": 80, "n": 64, "pos": "rotary",
    "rot": 12, "base": 1e4, "act": "silu", "parallel": False, "tied": False, "biases": (),
    "norm": "rms", "eps": 1e-5, "gated": True,
}  # fmt: skip
NEOX = {
    "L": 3, "h": 4, "kv": 4, "d": 64, "dh": 16, "m": 96, "V": 80, "n": 64, "pos": "rotary",
    "rot": 4, "base": 1e4, "act": "gelu", "parallel": True, "tied": False, "biases": BIASES,
    **LAYER_NORM,
}  # fmt: skip
GPT1 = {**GPT2, "order": "post", "final": False}  # Radford et al. 2018
FAMILIES = {"g": GPT2, "l": LLAMA, "n": NEOX, "p": GPT1}


def weights(c, seed=0, scale=1.0):
    r = np.random.default_rng([seed, 77])
    L, h, kv, d, dh, m, V = (c[k] for k in ("L", "h", "kv", "d", "dh", "m", "V"))

    def N(*s, std):
        return r.normal(size=s) * std * scale

    w = {
        "W_E": N(V, d, std=0.7),
        "W_Q": N(L, h, d, dh, std=d**-0.5),
        "W_K": N(L, kv, d, dh, std=d**-0.5),
        "W_V": N(L, kv, d, dh, std=d**-0.5),
        "W_O": N(L, h, dh, d, std=d**-0.5),
        "W_in": N(L, d, m, std=d**-0.5),
        "W_out": N(L, m, d, std=m**-0.5),
    }
    if c["pos"] == "learned":
        w["W_pos"] = N(c["n"], d, std=0.3)
    if c["gated"]:
        w["W_gate"] = N(L, d, m, std=d**-0.5)
    if not c["tied"]:
        w["W_U"] = N(d, V, std=d**-0.5)
    shp = {
        "b_Q": (L, h, dh),
        "b_K": (L, kv, dh),
        "b_V": (L, kv, dh),
        "b_O": (L, d),
        "b_in": (L, m),
        "b_out": (L, d),
    }
    for b in c["biases"]:
        w[b] = r.normal(size=shp[b]) * 0.2
    for n, s in (("ln1", (L, d)), ("ln2", (L, d)), ("ln_final", (d,))):
        if n == "ln_final" and not c.get("final", True):
            continue
        w[n + "_gain"] = 1 + r.normal(size=s) * 0.25
        if c["norm"] == "layer":
            w[n + "_bias"] = r.normal(size=s) * 0.2
    return w


def config(c):
    return {
        "n_layers": c["L"],
        "n_heads": c["h"],
        "d_model": c["d"],
        "d_head": c["dh"],
        "d_vocab": c["V"],
        "n_ctx": c["n"],
        "positions": c["pos"],
        "n_kv_heads": None if c["kv"] == c["h"] else c["kv"],
        "rotary_dims": c["rot"],
        "rotary_base": c["base"],
        "rotary_layout": "half",
        "d_mlp": c["m"],
        "activation": c["act"],
        "gated": c["gated"],
        "parallel": c["parallel"],
        "norm": c["norm"],
        "norm_eps": c["eps"],
        "norm_order": c.get("order", "pre"),
        "final_norm": c.get("final", True),
        "tied": c["tied"],
        "biases": c["biases"],
    }


class Net:
    def __init__(self, w, c, dtype, **swap):
        self.w = {k: torch.tensor(v, dtype=dtype) for k, v in w.items()}
        self.c = c
        for k, f in swap.items():
            assert hasattr(Net, k), k
            setattr(self, k, partial(f, self))

    def P(self, name, lay=None):
        t = self.w.get(name)
        return None if t is None else (t if lay is None else t[lay])

    def embed(self, tokens):
        x = self.w["W_E"][tokens]
        if self.c["pos"] == "learned":
            x = x + self.w["W_pos"][self.positions(tokens)]
        return x

    def positions(self, tokens):
        return torch.arange(len(tokens))

    def eps(self, which, lay):
        return self.c["eps"]

    def norm(self, x, which, lay):
        g, b = self.P(which + "_gain", lay), self.P(which + "_bias", lay)
        return self.normed(x, which, lay, g, b)

    def normed(self, x, which, lay, g, b):
        e = self.eps(which, lay)
        if self.c["norm"] == "layer":
            return functional.layer_norm(x, x.shape[-1:], g, b, e)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + e) * g

    def lin(self, x, kind, lay):
        """heads of q, k or v: [h, T, dh]."""
        W, b = self.P("W_" + kind, lay), self.P("b_" + kind, lay)
        y = torch.einsum("td,hde->hte", x, W)
        return y if b is None else y + b[:, None]

    def q(self, x, lay):
        return self.lin(x, "Q", lay)

    def k(self, x, lay):
        return self.lin(x, "K", lay)

    def v(self, x, lay):
        return self.lin(x, "V", lay)

    def base(self):
        return self.c["base"]

    def inv_freq(self):
        r = self.c["rot"]
        return self.base() ** (-torch.arange(0, r, 2, dtype=torch.float64) / r)

    def angles(self, T):
        return torch.arange(T, dtype=torch.float64)[:, None] * self.inv_freq()

    def rotate(self, x, cos, sin):
        h = x.shape[-1] // 2
        a, b = x[..., :h], x[..., h:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def turn(self, x, what, lay):
        if self.c["pos"] != "rotary":
            return x
        r = self.c["rot"]
        an = self.angles(x.shape[-2])
        cos, sin = an.cos().to(x.dtype), an.sin().to(x.dtype)
        return torch.cat([self.rotate(x[..., :r], cos, sin), x[..., r:]], -1)

    def repeat(self, k, what):
        return k.repeat_interleave(self.c["h"] // k.shape[0], 0)

    def scores(self, q, k, lay):
        return q @ k.transpose(-1, -2) / math.sqrt(self.c["dh"])

    def mask(self, s, lay):
        T = s.shape[-1]
        return s.masked_fill(torch.ones(T, T, dtype=bool).triu(1), float("-inf"))

    def softmax(self, s, lay):
        return s.softmax(-1)

    def mix(self, p, v, lay):
        return p @ v

    def out(self, z, lay):
        y = z.transpose(0, 1).reshape(z.shape[1], -1) @ self.w["W_O"][lay].reshape(-1, self.c["d"])
        b = self.P("b_O", lay)
        return y if b is None else y + b

    def act(self, x):
        return {
            "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
            "gelu": functional.gelu,
            "silu": functional.silu,
        }[self.c["act"]](x)

    def pre(self, x, lay, name="in"):
        W, b = self.P("W_" + name, lay), self.P("b_" + name, lay)
        return x @ W if b is None else x @ W + b

    def post(self, pre, x, lay):
        return self.act(pre) * self.pre(x, lay, "in") if self.c["gated"] else self.act(pre)

    def down(self, m, lay):
        b = self.P("b_out", lay)
        y = m @ self.w["W_out"][lay]
        return y if b is None else y + b

    def sources(self, x, n, lay):
        return n, n, n

    def attn_reads(self, x, lay, R):
        if self.c.get("order") == "post":
            return x
        n = R[f"ln1.{lay}"] = self.norm(x, "ln1", lay)
        return n

    def attn(self, x, lay, R):
        n = self.attn_reads(x, lay, R)
        qi, ki, vi = self.sources(x, n, lay)
        q, k, v = (
            self.turn(self.q(qi, lay), "q", lay),
            self.turn(self.k(ki, lay), "k", lay),
            self.v(vi, lay),
        )
        q, k, v = self.qkv(q, k, v, lay)
        R[f"q.{lay}"], R[f"k.{lay}"], R[f"v.{lay}"] = q, k, v
        k, v = self.repeat(k, "k"), self.repeat(v, "v")
        s = R[f"scores.{lay}"] = self.scores(q, k, lay)
        p = R[f"pattern.{lay}"] = self.softmax(self.mask(s, lay), lay)
        z = R[f"z.{lay}"] = self.mix(p, v, lay)
        return self.out(z, lay)

    def qkv(self, q, k, v, lay):
        return q, k, v

    def mlp(self, n, lay, R):
        pre = R[f"mlp_pre.{lay}"] = self.pre(n, lay, "gate" if self.c["gated"] else "in")
        m = R[f"mlp_post.{lay}"] = self.post(pre, n, lay)
        return self.down(m, lay)

    def mid(self, x, n, a, lay):
        return x + a

    def mlp_reads(self, x, mid, lay):
        return x if self.c["parallel"] else mid

    def end(self, mid, m, x, lay):
        return mid + m

    def block(self, x, lay, R):
        if self.c.get("order") == "post":
            return self.post_norm_block(x, lay, R)
        R[f"resid_pre.{lay}"] = x
        a = R[f"attn_out.{lay}"] = self.attn(x, lay, R)
        mid = R[f"resid_mid.{lay}"] = self.mid(x, R[f"ln1.{lay}"], a, lay)
        n = R[f"ln2.{lay}"] = self.norm(self.mlp_reads(x, mid, lay), "ln2", lay)
        m = R[f"mlp_out.{lay}"] = self.mlp(n, lay, R)
        x = R[f"resid_post.{lay}"] = self.end(mid, m, x, lay)
        return x

    def post_norm_block(self, x, lay, R):
        R[f"resid_pre.{lay}"] = x
        a = R[f"attn_out.{lay}"] = self.attn(x, lay, R)
        mid = R[f"resid_mid.{lay}"] = self.mid(x, x, a, lay)
        n = R[f"ln1.{lay}"] = self.norm(mid, "ln1", lay)
        m = R[f"mlp_out.{lay}"] = self.mlp(self.mlp_reads(x, n, lay), lay, R)
        y = R[f"resid_post.{lay}"] = self.end(n, m, x, lay)
        x = R[f"ln2.{lay}"] = self.norm(y, "ln2", lay)
        return x

    def order(self):
        return range(self.c["L"])

    def final(self, x):
        return self.norm(x, "ln_final", None)

    def unembed(self, n):
        U = self.w["W_E"].T if self.c["tied"] else self.w["W_U"]
        return n @ U

    def forward(self, tokens):
        R = {}
        x = self.embed(tokens)
        for lay in self.order():
            x = self.block(x, lay, R)
        n = x
        if self.c.get("final", True):
            R["ln_final"] = n = self.final(x)
        R["logits"] = self.unembed(n)
        return R
