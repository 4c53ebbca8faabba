"""Mistakes of attention, as steps of `plain.Net`: see `plain_bugs`, whose table they join."""

import torch

from tests.numeric.audit.plain_bugs import BUGS, at, bug, dropout, half, right

__all__ = ["BUGS"]

# -- q k v


def fused(n, x, lay):
    W = torch.cat([n.w["W_" + a][lay].permute(1, 0, 2).reshape(n.c["d"], -1) for a in "QKV"], 1)
    b = torch.cat([n.w["b_" + a][lay].reshape(-1) for a in "QKV"])
    return x @ W + b


def interleaved(n, x, i, lay):
    y = fused(n, x, lay)
    T = len(y)
    H, dh = n.c["h"], n.c["dh"]
    return y.view(T, H, 3, dh)[:, :, i].transpose(0, 1)


def blockwise(n, x, i, lay):
    # per-head fused weights read as three blocks
    W = (
        torch.stack([n.w["W_" + a][lay] for a in "QKV"], 0)
        .permute(2, 1, 0, 3)
        .reshape(n.c["d"], -1)
    )  # d, h,3,dh
    b = torch.stack([n.w["b_" + a][lay] for a in "QKV"], 0).permute(1, 0, 2).reshape(-1)
    y = x @ W + b
    D = n.c["h"] * n.c["dh"]
    return y[:, i * D : (i + 1) * D].view(len(y), n.c["h"], -1).transpose(0, 1)


bug(
    "per-head fused read as blocks",
    "n",
    "q.0",
    "interleav|block|head",
    q=lambda n, x, lay: blockwise(n, x, 0, lay),
    k=lambda n, x, lay: blockwise(n, x, 1, lay),
    v=lambda n, x, lay: blockwise(n, x, 2, lay),
)


def stride(n, x, a, lay):
    y = n.lin(x, a, lay)
    y2 = y.transpose(0, 1).reshape(y.shape[1], -1)
    return y2.view(len(y2), y.shape[2], y.shape[0]).permute(2, 0, 1)


def wq_T(n, x, lay, a="Q"):
    W = n.w["W_" + a][lay].permute(1, 0, 2).reshape(n.c["d"], -1).T
    y = (x @ W).view(len(x), n.c["h"], -1).transpose(0, 1)
    b = n.P("b_" + a, lay)
    return y if b is None else y + b[:, None]


bug(
    "b_V sign",
    "gp",
    "v.0",
    "b_V|bias",
    v=lambda n, x, lay: n.lin(x, "V", lay) - 2 * n.w["b_V"][lay][:, None],
)
bug(
    "one head's q in fp16",
    "glp",
    "q.1",
    "half|float16|head",
    q=at(
        1,
        lambda n, x, lay: torch.cat(
            [n.lin(x, "Q", lay)[:2], half(n.lin(x, "Q", lay)[2:3]), n.lin(x, "Q", lay)[3:]]
        ),
        "q",
    ),
)
bug(
    "W_V rounded to fp16",
    "gp",
    "v.0",
    "half|float16",
    v=lambda n, x, lay: (
        torch.einsum("td,hde->hte", x, half(n.w["W_V"][lay])) + n.w["b_V"][lay][:, None]
    ),
)
bug(
    "qk-norm",
    "l",
    "q.0",
    "norm",
    qkv=lambda n, q, k, v, lay: (
        q / (q.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt(),
        k / (k.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt(),
        v,
    ),
)
bug(
    "stale last key",
    "glp",
    "k.0|k.1",
    "stale|previous|last|key",
    qkv=lambda n, q, k, v, lay: (q, torch.cat([k[:, :-1], k[:, -2:-1]], 1), v),
)

# -- rotary

bug("rotary base 1e6", "l", "q.0", "base", base=lambda n: 1e6)


def turn_off(n, x, off):
    y = torch.cat([x.new_zeros(x.shape[0], off, x.shape[2]), x], 1)
    return right("turn")(n, y, "", 0)[:, off:]


def full_turn(n, x, r, den=None):
    f = n.base() ** (-torch.arange(0, r, 2, dtype=torch.float64) / (den or r))
    an = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * f
    return torch.cat(
        [n.rotate(x[..., :r], an.cos().to(x.dtype), an.sin().to(x.dtype)), x[..., r:]], -1
    )


bug(
    "rotary exponents over d_head",
    "n",
    "q.0",
    "d_head|freq|width|dims",
    turn=lambda n, x, w, lay: full_turn(n, x, n.c["rot"], n.c["dh"]),
)
bug(
    "last dims turned",
    "n",
    "q.0",
    "last|dims|width",
    turn=lambda n, x, w, lay: torch.cat(
        [x[..., : -n.c["rot"]], right("turn")(n, x[..., -n.c["rot"] :], w, lay)], -1
    ),
)
bug("cos sin swapped", "l", "q.0", "cos|sin", rotate=lambda n, x, c, s: right("rotate")(n, x, s, c))
bug(
    "rotate_half without minus",
    "n",
    "q.0",
    "minus|sign",
    rotate=lambda n, x, c, s: torch.cat(
        [
            x[..., : x.shape[-1] // 2] * c + x[..., x.shape[-1] // 2 :] * s,
            x[..., x.shape[-1] // 2 :] * c + x[..., : x.shape[-1] // 2] * s,
        ],
        -1,
    ),
)
bug(
    "angles in fp16",
    "n",
    "q.0",
    "half|float16|angle",
    turn=lambda n, x, w, lay: half_turn(n, x, half),
)


def half_turn(n, x, rd):
    r = n.c["rot"]
    an = rd(n.angles(x.shape[1]))
    return torch.cat(
        [n.rotate(x[..., :r], an.cos().to(x.dtype), an.sin().to(x.dtype)), x[..., r:]], -1
    )


bug(
    "rotary over the head axis",
    "l",
    "q.0",
    "head|axis|rota",
    turn=lambda n, x, w, lay: right("turn")(n, x.transpose(0, 1), w, lay).transpose(0, 1),
)
bug(
    "rotary before bias",
    "n",
    "q.0",
    "bias",
    q=lambda n, x, lay: torch.einsum("td,hde->hte", x, n.w["W_Q"][lay]),
    k=lambda n, x, lay: torch.einsum("td,hde->hte", x, n.w["W_K"][lay]),
    turn=lambda n, x, w, lay: right("turn")(n, x, w, lay) + n.w["b_" + w.upper()][lay][:, None],
)
bug(
    "llama3 scaling",
    "l",
    "q.0",
    "freq|scal|angle",
    inv_freq=lambda n: torch.where(
        torch.arange(n.c["rot"] // 2) > 2, right("inv_freq")(n) / 8, right("inv_freq")(n)
    ),
)

# -- scores

bug(
    "scale by sqrt rotary width",
    "n",
    "scores.0",
    "divided by √n_heads|rotary",
    scores=lambda n, q, k, lay: q @ k.transpose(-1, -2) / n.c["rot"] ** 0.5,
)
bug(
    "softcap 20",
    "l",
    "scores.0",
    "cap|tanh",
    scores=lambda n, q, k, lay: 2 * torch.tanh(right("scores")(n, q, k, lay) / 2),
)
bug(
    "alibi added",
    "gp",
    "scores.0",
    "ALiBi|alibi|distance|position|slope",
    scores=lambda n, q, k, lay: (
        right("scores")(n, q, k, lay)
        - torch.tensor([2.0 ** (-8 * (i + 1) / n.c["h"]) for i in range(n.c["h"])], dtype=q.dtype)[
            :, None, None
        ]
        * (torch.arange(q.shape[1])[:, None] - torch.arange(q.shape[1]))[None].to(q.dtype)
    ),
)
bug(
    "kv tiled",
    "l",
    "scores.0",
    "tile|repeat|order|group",
    repeat=lambda n, k, w: k.repeat(n.c["h"] // k.shape[0], 1, 1),
)
bug(
    "v tiled",
    "l",
    "z.0",
    "tile|repeat|order|group",
    repeat=lambda n, k, w: (
        k.repeat(n.c["h"] // k.shape[0], 1, 1) if w == "v" else right("repeat")(n, k, w)
    ),
)
bug(
    "k tiled",
    "l",
    "scores.0",
    "tile|repeat|order|group",
    repeat=lambda n, k, w: (
        k.repeat(n.c["h"] // k.shape[0], 1, 1) if w == "k" else right("repeat")(n, k, w)
    ),
)
bug(
    "all heads kv 0 (MQA)",
    "l",
    "scores.0",
    "first|head|kv|group",
    repeat=lambda n, k, w: k[:1].repeat(n.c["h"], 1, 1),
)


# -- masks


def masked(f, fill=float("-inf")):
    def g(n, s, lay):
        T = s.shape[-1]
        i, j = torch.arange(T)[:, None], torch.arange(T)[None]
        return s.masked_fill(~f(i, j), fill)

    return g


bug("no mask", "glnp", "pattern.0", "mask", mask=lambda n, s, lay: s)
bug(
    "mask hides itself",
    "glp",
    "pattern.0",
    "mask",
    mask=masked(lambda i, j: (j < i) | ((i == 0) & (j == 0))),
)
bug("mask hides itself, -1e9", "gp", "pattern.0", "mask", mask=masked(lambda i, j: j < i, -1e9))
bug("mask fill -10", "gp", "pattern.0", "mask|-10|−10", mask=masked(lambda i, j: j <= i, -10.0))
bug("window 8", "glp", "pattern.0", "window", mask=masked(lambda i, j: (j <= i) & (i - j < 8)))
bug(
    "prefix bidirectional",
    "gp",
    "pattern.0",
    "prefix|mask",
    mask=masked(lambda i, j: (j <= i) | ((j < 5) & (i < 5))),
)
bug(
    "first token hidden (pad=token 0)",
    "gp",
    "pattern.0",
    "first|mask|hidden|key",
    mask=masked(lambda i, j: (j <= i) & ((j > 0) | (i == 0))),
)
bug(
    "block-diagonal mask",
    "n",
    "pattern.0",
    "block|mask|window",
    mask=masked(lambda i, j: (j <= i) & (i // 8 == j // 8)),
)
bug(
    "strided mask",
    "l",
    "pattern.0",
    "mask",
    mask=masked(lambda i, j: (j <= i) & ((i - j) % 2 == 0)),
)

# -- softmax

bug(
    "softmax over heads",
    "glp",
    "pattern.0",
    "ax|head",
    softmax=lambda n, s, lay: s.nan_to_num(neginf=-1e30).softmax(0),
)
bug(
    "softmax fp16",
    "glp",
    "pattern.0",
    "half|float16",
    softmax=lambda n, s, lay: half(s.softmax(-1)),
)
bug(
    "softmax plus one",
    "l",
    "pattern.0",
    "one|sink|1 added",
    softmax=lambda n, s, lay: s.exp() / (1 + s.exp().sum(-1, keepdim=True)),
)
bug(
    "temperature 2",
    "gp",
    "pattern.0",
    "temperature|scale|twice|half|√|times",
    softmax=lambda n, s, lay: (s / 2).softmax(-1),
)
bug(
    "softmax twice",
    "n",
    "pattern.0",
    "twice|softmax of the softmax",
    softmax=lambda n, s, lay: s.softmax(-1).softmax(-1),
)
bug(
    "no normalisation",
    "l",
    "pattern.0",
    "normalis",
    softmax=lambda n, s, lay: (s - s.max(-1, keepdim=True)[0]).exp(),
)
bug(
    "max subtracted as plain exp sum over T",
    "gp",
    "pattern.0",
    "mean|normal|length|T|uniform",
    softmax=lambda n, s, lay: (s - s.max(-1, keepdim=True)[0]).exp() / s.shape[-1],
)


bug(
    "attention dropout",
    "glp",
    "pattern.0",
    "dropout",
    softmax=lambda n, s, lay: dropout(n, s.softmax(-1), lay),
)

# -- z, out

bug("heads' v rolled", "n", "z.0", "head|v", mix=lambda n, p, v, lay: p @ v.roll(1, 0))
bug(
    "b_O per head",
    "gp",
    "attn_out.0",
    "b_O|bias|head",
    out=lambda n, z, lay: right("out")(n, z, lay) + (n.c["h"] - 1) * n.w["b_O"][lay],
)
bug(
    "last head dropped",
    "glp",
    "attn_out.0",
    "head",
    out=lambda n, z, lay: right("out")(n, torch.cat([z[:-1], 0 * z[-1:]]), lay),
)
bug(
    "W_O missing (identity)",
    "l",
    "attn_out.0",
    "W_O|without",
    out=lambda n, z, lay: z.transpose(0, 1).reshape(z.shape[1], -1),
)
bug(
    "b_out added to attention",
    "gp",
    "attn_out.0",
    "b_out|bias",
    out=lambda n, z, lay: right("out")(n, z, lay) - n.w["b_O"][lay] + n.w["b_out"][lay],
)
