"""Rewrites of `plain.Net` that compute the same: other algorithms, and other weights.

A row: a name, the families (g GPT-2, l Llama, n NeoX, p GPT-1), how the weights are rewritten if
they are, and the steps that are made in another way.
"""

import math

import torch
from torch.nn import functional

from tests.numeric.audit.plain import Net
from tests.numeric.audit.plain_bugs import right
from tests.numeric.audit.plain_bugs_attention import masked, turn_off

REWRITES: dict[str, tuple[str, object, dict[str, object]]] = {}


def same(name, families, weights=None, **steps):
    assert name not in REWRITES
    REWRITES[name] = (families, weights, steps)


def fused_q(i):
    def f(n, x, lay):
        y = torch.cat([n.w["W_" + a][lay].permute(1, 0, 2).reshape(n.c["d"], -1) for a in "QKV"], 1)
        bs = [n.P("b_" + a, lay) for a in "QKV"]
        y = (
            torch.addmm(torch.cat([b.reshape(-1) for b in bs]), x, y)
            if bs[0] is not None
            else x @ y
        )
        sizes = [n.w["W_" + a].shape[1] * n.c["dh"] for a in "QKV"]
        return y.split(sizes, -1)[i].reshape(len(x), -1, n.c["dh"]).transpose(0, 1)

    return f


same("fused qkv", "glnp", q=fused_q(0), k=fused_q(1), v=fused_q(2))


def sdpa_attn(backend):
    def attn(n, x, lay, R):
        nn = n.attn_reads(x, lay, R)
        q, k, v = n.turn(n.q(nn, lay), "q", lay), n.turn(n.k(nn, lay), "k", lay), n.v(nn, lay)
        R[f"q.{lay}"], R[f"k.{lay}"], R[f"v.{lay}"] = q, k, v
        k, v = n.repeat(k, "k"), n.repeat(v, "v")
        z = R[f"z.{lay}"] = backend(n, q, k, v)
        return n.out(z, lay)

    return attn


same(
    "sdpa",
    "glnp",
    attn=sdpa_attn(
        lambda n, q, k, v: functional.scaled_dot_product_attention(
            q[None], k[None], v[None], is_causal=True
        )[0]
    ),
)


def online(n, q, k, v, B=5):
    T = q.shape[1]
    s_ = n.c["dh"] ** -0.5
    m = torch.full((*q.shape[:2], 1), float("-inf"), dtype=q.dtype)
    d = torch.zeros_like(m)
    o = torch.zeros_like(q)
    i = torch.arange(T)[:, None]
    for j in range(0, T, B):
        s = (q * s_) @ k[:, j : j + B].transpose(-1, -2)
        s = s.masked_fill(torch.arange(j, min(j + B, T))[None] > i, -1e30)
        m2 = torch.maximum(m, s.max(-1, keepdim=True)[0])
        p = (s - m2).exp()
        a = (m - m2).exp()
        d = d * a + p.sum(-1, keepdim=True)
        o = o * a + p @ v[:, j : j + B]
        m = m2
    return o / d


same("online softmax", "glnp", attn=sdpa_attn(online))


def kvcache(n, q, k, v):
    return torch.cat(
        [
            torch.softmax(
                q[:, t : t + 1] @ k[:, : t + 1].transpose(-1, -2) / math.sqrt(n.c["dh"]), -1
            )
            @ v[:, : t + 1]
            for t in range(q.shape[1])
        ],
        1,
    )


same("kv cache", "glnp", attn=sdpa_attn(kvcache))


def sumheads(n, z, lay):
    y = sum(z[h] @ n.w["W_O"][lay, h] for h in range(n.c["h"]))
    b = n.P("b_O", lay)
    return y if b is None else y + b


same("sum over heads", "glnp", out=sumheads)
same(
    "einsum over heads, bias/H each",
    "gnp",
    out=lambda n, z, lay: (
        torch.einsum("hqe,hed->hqd", z, n.w["W_O"][lay]) + n.w["b_O"][lay] / n.c["h"]
    ).sum(0),
)
same(
    "one-pass variance",
    "gnp",
    normed=lambda n, x, w, lay, g, b: (
        (x - x.mean(-1, keepdim=True))
        / ((x * x).mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2 + n.c["eps"]).sqrt()
        * g
        + b
    ),
)


def welford(n, x, w, lay, g, b):
    m = torch.zeros(len(x), dtype=x.dtype)
    s = torch.zeros_like(m)
    for i in range(x.shape[1]):
        d = x[:, i] - m
        m = m + d / (i + 1)
        s = s + d * (x[:, i] - m)
    return (x - m[:, None]) * torch.rsqrt(s / x.shape[1] + n.c["eps"])[:, None] * g + b


same("welford", "gnp", normed=welford)
same(
    "norm gain first",
    "gnp",
    normed=lambda n, x, w, lay, g, b: (
        ((x - x.mean(-1, keepdim=True)) * g)
        / (x.var(-1, keepdim=True, unbiased=False) + n.c["eps"]).sqrt()
        + b
    ),
)
same("mask -1e9", "glp", mask=masked(lambda i, j: j <= i, -1e9))
same(
    "additive mask -1e10 (w*b-1e10(1-b))",
    "gp",
    mask=lambda n, s, lay: (lambda b: s * b - 1e10 * (1 - b))(torch.ones_like(s).tril()),
)
same(
    "scores shown masked",
    "glnp",
    scores=lambda n, q, k, lay: right("mask")(n, right("scores")(n, q, k, lay), lay),
)
same(
    "q scaled before",
    "glnp",
    scores=lambda n, q, k, lay: (q * n.c["dh"] ** -0.5) @ k.transpose(-1, -2),
)
same(
    "scale split",
    "glnp",
    scores=lambda n, q, k, lay: (q / n.c["dh"] ** 0.25) @ (k / n.c["dh"] ** 0.25).transpose(-1, -2),
)
same(
    "GQA by reshape",
    "l",
    repeat=lambda n, k, w: k,
    scores=lambda n, q, k, lay: (
        q.view(k.shape[0], -1, *q.shape[1:]) @ k[:, None].transpose(-1, -2) / n.c["dh"] ** 0.5
    ).flatten(0, 1),
    mix=lambda n, p, v, lay: (p.view(v.shape[0], -1, *p.shape[1:]) @ v[:, None]).flatten(0, 1),
)


def repeated_kv(n, q, k, v, lay):
    return q, Net.repeat(n, k, "k"), Net.repeat(n, v, "v")


same("k v shown repeated", "l", qkv=repeated_kv)


def cplx(n, x, c, s):
    h = x.shape[-1] // 2
    y = torch.complex(x[..., :h].contiguous(), x[..., h:].contiguous()) * torch.complex(c, s)
    return torch.cat([y.real, y.imag], -1)


same("rotary complex", "ln", rotate=cplx)


def rothalf(n, x, c, s):
    h = x.shape[-1] // 2
    C = torch.cat([c, c], -1)
    S = torch.cat([s, s], -1)
    return x * C + torch.cat([-x[..., h:], x[..., :h]], -1) * S


same(
    "rotary by matrix",
    "l",
    rotate=lambda n, x, c, s: torch.einsum(
        "tij,htj->hti",
        torch.cat(
            [
                torch.cat([torch.diag_embed(c), -torch.diag_embed(s)], -1),
                torch.cat([torch.diag_embed(s), torch.diag_embed(c)], -1),
            ],
            -2,
        ),
        x,
    ),
)
same("positions from 7 in rotary", "ln", turn=lambda n, x, w, lay: turn_off(n, x, 7))


def unturned(n, x, lay, R):
    nn = n.attn_reads(x, lay, R)
    q0, k0, v = n.q(nn, lay), n.k(nn, lay), n.v(nn, lay)
    R[f"q.{lay}"], R[f"k.{lay}"], R[f"v.{lay}"] = q0, k0, v
    q, k = n.turn(q0, "q", lay), n.turn(k0, "k", lay)
    k, v = n.repeat(k, "k"), n.repeat(v, "v")
    s = R[f"scores.{lay}"] = n.scores(q, k, lay)
    p = R[f"pattern.{lay}"] = n.softmax(n.mask(s, lay), lay)
    z = R[f"z.{lay}"] = n.mix(p, v, lay)
    return n.out(z, lay)


same("q k shown before rotary", "ln", attn=unturned)
same(
    "gelu as x sigmoid",
    "gp",
    act=lambda n, x: x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
)
same("gate up fused", "l", mlp=lambda n, x, lay, R: gateup(n, x, lay, R))


def gateup(n, x, lay, R):
    y = functional.linear(x, torch.cat([n.w["W_gate"][lay], n.w["W_in"][lay]], 1).T.contiguous())
    p, u = y.chunk(2, -1)
    R[f"mlp_pre.{lay}"] = p
    m = R[f"mlp_post.{lay}"] = functional.silu(p) * u
    return n.down(m, lay)


same("parallel attn+mlp first", "n", block=lambda n, x, lay, R: parblock(n, x, lay, R))


def parblock(n, x, lay, R):
    R[f"resid_pre.{lay}"] = x
    a = R[f"attn_out.{lay}"] = n.attn(x, lay, R)
    nn = R[f"ln2.{lay}"] = n.norm(x, "ln2", lay)
    m = R[f"mlp_out.{lay}"] = n.mlp(nn, lay, R)
    y = R[f"resid_post.{lay}"] = m + a + x
    return y


same("logits shifted", "glnp", unembed=lambda n, x: right("unembed")(n, x) + 1.5)
same("log-softmax", "glnp", unembed=lambda n, x: right("unembed")(n, x).log_softmax(-1))
