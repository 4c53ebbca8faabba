"""Rewrites of the weights of `plain.Net`, alone and together: see `plain_rewrites`."""

import numpy as np
import torch
from torch.nn import functional

from tests.numeric.audit.plain_rewrites import REWRITES, same, sdpa_attn

__all__ = ["REWRITES"]


def C(w):
    return {k: v.copy() for k, v in w.items()}


def bias(w, c, name):
    shp = {
        "b_Q": (*w["W_Q"].shape[:2], c["dh"]),
        "b_K": (*w["W_K"].shape[:2], c["dh"]),
        "b_V": (*w["W_V"].shape[:2], c["dh"]),
        "b_O": (c["L"], c["d"]),
        "b_in": (c["L"], c["m"]),
    }
    if name not in w:
        w[name] = np.zeros(shp[name])


def untie(w, c):
    if c["tied"]:
        w["W_U"] = w["W_E"].T.copy()
        c = dict(c, tied=False)
    return c


def fold_gains(w, c, which=("ln1", "ln2", "ln_final")):
    w = C(w)
    c = untie(w, c)
    for k in which:
        if k + "_bias" in w:
            w[k + "_bias"] = w[k + "_bias"] / w[k + "_gain"]
    if "ln1" in which:
        for a in "QKV":
            w["W_" + a] *= w["ln1_gain"][:, None, :, None]
        w["ln1_gain"][:] = 1
    if "ln2" in which:
        for a in ("W_in", "W_gate"):
            if a in w:
                w[a] *= w["ln2_gain"][:, :, None]
        w["ln2_gain"][:] = 1
    if "ln_final" in which:
        w["W_U"] *= w["ln_final_gain"][:, None]
        w["ln_final_gain"][:] = 1
    return w, c


def fold_all(w, c):
    """gains and biases folded: LNPre."""
    w = C(w)
    c = untie(w, c)
    if c["norm"] == "layer":
        for a in "QKV":
            bias(w, c, "b_" + a)
            w["b_" + a] = w["b_" + a] + np.einsum("ld,lhde->lhe", w["ln1_bias"], w["W_" + a])
        w["b_in"] = w["b_in"] + np.einsum("ld,ldm->lm", w["ln2_bias"], w["W_in"])
        w["b_U"] = w["ln_final_bias"] @ w["W_U"]
        for k in ("ln1_bias", "ln2_bias", "ln_final_bias"):
            w[k][:] = 0
    return fold_gains(w, c)


UB = {"unembed": lambda n, x: x @ n.w["W_U"] + n.w["b_U"]}
same("gains folded", "gln", fold_gains)
same("final gain folded", "gn", lambda w, c: fold_gains(w, c, ("ln_final",)))
same("gains and biases folded", "gn", fold_all, **UB)


def center_ln(w, c, what=("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out")):
    w = C(w)
    c = untie(w, c)
    for k in what:
        if k in w:
            w[k] -= w[k].mean(-1, keepdims=True)
    return w, c


same("writers centred", "gn", center_ln)
same(
    "centred with RMS norm",
    "gn",
    center_ln,
    normed=lambda n, x, w, lay, g, b: (
        x / (x.pow(2).mean(-1, keepdim=True) + n.c["eps"]).sqrt() * g + b
    ),
)


def both(*fs):
    def f(w, c):
        for g in fs:
            w, c = g(w, c)
        return w, c

    return f


same("folded and centred (TransformerLens)", "gn", both(center_ln, fold_all), **UB)


def center_unembed(w, c):
    w = C(w)
    c = untie(w, c)
    w["W_U"] -= w["W_U"].mean(-1, keepdims=True)
    return w, c


same("unembedding centred", "glnp", center_unembed)


def fold_bv(w, c):
    w = C(w)
    w["b_O"] = w["b_O"] + np.einsum("lhe,lhed->ld", w["b_V"], w["W_O"])
    w["b_V"] = w["b_V"] * 0
    return w, c


same("b_V into b_O", "gnp", fold_bv)


def drop_bk(w, c):
    w = C(w)
    w["b_K"] *= 0
    return w, c


same("b_K dropped", "gp", drop_bk)


def change_bk(w, c):
    w = C(w)
    w["b_K"] += 0.7
    return w, c


same("another b_K", "gp", change_bk)


def perm_heads(w, c, s=1):
    w = C(w)
    r = np.random.default_rng(s)
    rep = c["h"] // c["kv"]
    for lay in range(c["L"]):
        p = r.permutation(c["kv"])
        hp = np.concatenate([i * rep + r.permutation(rep) for i in p])
        for k in ("W_Q", "b_Q", "W_O"):
            if k in w:
                w[k][lay] = w[k][lay][hp]
        for k in ("W_K", "b_K", "W_V", "b_V"):
            if k in w:
                w[k][lay] = w[k][lay][p]
    return w, c


same("heads permuted", "glnp", perm_heads)
same(
    "heads permuted in layer 1 only",
    "gnp",
    lambda w, c: (
        lambda a: (
            {
                k: (
                    np.concatenate([w[k][:1], a[k][1:2], w[k][2:]])
                    if k[2:] in ["Q", "K", "V", "O"]
                    else w[k]
                )
                for k in w
            },
            c,
        )
    )(perm_heads(w, c)[0]),
)


def basis_v(w, c, orth=True, s=2):
    w = C(w)
    r = np.random.default_rng(s)
    rep = c["h"] // c["kv"]
    for lay in range(c["L"]):
        for h in range(c["kv"]):
            M = np.linalg.qr(r.normal(size=(c["dh"],) * 2))[0]
            if not orth:
                M = M @ np.diag(r.uniform(0.5, 2, c["dh"]))
            w["W_V"][lay, h] = w["W_V"][lay, h] @ M
            if "b_V" in w:
                w["b_V"][lay, h] = w["b_V"][lay, h] @ M
            for g in range(h * rep, (h + 1) * rep):
                w["W_O"][lay, g] = np.linalg.inv(M) @ w["W_O"][lay, g]
    return w, c


same("v basis general", "glp", lambda w, c: basis_v(w, c, False))


def basis_qk(w, c, orth=True, s=3):
    w = C(w)
    r = np.random.default_rng(s)
    for lay in range(c["L"]):
        for h in range(c["h"]):
            M = np.linalg.qr(r.normal(size=(c["dh"],) * 2))[0]
            if not orth:
                M = M @ np.diag(r.uniform(0.5, 2, c["dh"]))
            Mi = np.linalg.inv(M).T
            for k, A in (("Q", M), ("K", Mi)):
                w["W_" + k][lay, h] = w["W_" + k][lay, h] @ A
                w["b_" + k][lay, h] = w["b_" + k][lay, h] @ A
    return w, c


same("qk basis orthogonal", "gp", basis_qk)
same("qk basis general", "gp", lambda w, c: basis_qk(w, c, False))


def scale_in_wq(w, c):
    w = C(w)
    for k in ("W_Q", "b_Q"):
        if k in w:
            w[k] *= c["dh"] ** -0.5
    return w, c


same(
    "scale folded into W_Q",
    "glnp",
    scale_in_wq,
    scores=lambda n, q, k, lay: q @ k.transpose(-1, -2),
)


def split_scale(w, c):
    w = C(w)
    for k in ("W_Q", "b_Q", "W_K", "b_K"):
        if k in w:
            w[k] *= c["dh"] ** -0.25
    return w, c


def perm_neurons(w, c, s=4):
    w = C(w)
    r = np.random.default_rng(s)
    for lay in range(c["L"]):
        p = r.permutation(c["m"])
        for k in ("W_in", "W_gate"):
            if k in w:
                w[k][lay] = w[k][lay][:, p]
        if "b_in" in w:
            w["b_in"][lay] = w["b_in"][lay][p]
        w["W_out"][lay] = w["W_out"][lay][p]
    return w, c


def up_scaled(w, c, s=5):
    w = C(w)
    r = np.random.default_rng(s).uniform(0.5, 2, (c["L"], c["m"]))
    w["W_in"] *= r[:, None]
    w["W_out"] /= r[:, :, None]
    return w, c


same("up scaled, down divided", "l", up_scaled)


def rotate(w, c, s=6, signed=False):
    w, c = fold_gains(w, c) if c["norm"] == "rms" else fold_all(*center_ln(w, c))
    r = np.random.default_rng(s)
    Q = np.linalg.qr(r.normal(size=(c["d"],) * 2))[0]
    if signed:
        Q = np.eye(c["d"])[r.permutation(c["d"])] * r.choice([-1, 1], c["d"])
    for k in ("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out"):
        if k in w:
            w[k] = w[k] @ Q
    for k in ("W_Q", "W_K", "W_V", "W_in", "W_gate", "W_U"):
        if k in w:
            w[k] = np.einsum("de,...em->...dm", Q.T, w[k])
    return w, c


same("stream rotated, RMS", "l", rotate)
same("stream permuted with signs", "l", lambda w, c: rotate(w, c, 7, True))
same(
    "stream rotated, centred",
    "gn",
    rotate,
    normed=lambda n, x, w, lay, g, b: x / (x.pow(2).mean(-1, keepdim=True) + n.c["eps"]).sqrt(),
    **UB,
)


def permute_stream(w, c):
    w = C(w)
    p = np.random.default_rng(9).permutation(c["d"])
    for k in (
        "W_E",
        "W_pos",
        "W_O",
        "b_O",
        "W_out",
        "b_out",
        "ln1_gain",
        "ln2_gain",
        "ln_final_gain",
        "ln1_bias",
        "ln2_bias",
        "ln_final_bias",
    ):
        if k in w:
            w[k] = w[k][..., p]
    for k in ("W_Q", "W_K", "W_V", "W_in", "W_gate"):
        if k in w:
            w[k] = w[k][..., p, :]
    if "W_U" in w:
        w["W_U"] = w["W_U"][p]
    return w, c


same("stream coordinates permuted", "glnp", permute_stream)


def rope_basis(w, c):
    """a rotation in each rotary plane commutes with the turn."""
    w = C(w)
    r = np.random.default_rng(8)
    h2 = c["rot"] // 2
    rep = c["h"] // c["kv"]
    for lay in range(c["L"]):
        for h in range(c["kv"]):
            t = r.uniform(0, 6, h2)
            M = np.eye(c["dh"])
            for i in range(h2):
                M[i, i] = M[i + h2, i + h2] = np.cos(t[i])
                M[i, i + h2] = np.sin(t[i])
                M[i + h2, i] = -np.sin(t[i])
            for k, hs in (("K", [h]), ("Q", range(h * rep, h * rep + rep))):
                for g in hs:
                    w["W_" + k][lay, g] = w["W_" + k][lay, g] @ M
                    if "b_" + k in w:
                        w["b_" + k][lay, g] = w["b_" + k][lay, g] @ M
    return w, c


same("rotary planes turned", "ln", rope_basis)


def interleaved_perm(w, c):
    w = C(w)
    r = c["rot"]
    p = np.concatenate(
        [
            np.stack([np.arange(r // 2), np.arange(r // 2) + r // 2], 1).ravel(),
            np.arange(r, c["dh"]),
        ]
    )
    for k in "QK":
        w["W_" + k] = w["W_" + k][..., p]
        if "b_" + k in w:
            w["b_" + k] = w["b_" + k][..., p]
    return w, c


same(
    "interleaved rotary with permuted weights (Meta)",
    "ln",
    interleaved_perm,
    rotate=lambda n, x, c, s: torch.stack(
        [x[..., ::2] * c - x[..., 1::2] * s, x[..., 1::2] * c + x[..., ::2] * s], -1
    ).flatten(-2),
)


def gqa_expand(w, c):
    w = C(w)
    for k in ("W_K", "W_V"):
        w[k] = np.repeat(w[k], c["h"] // c["kv"], 1)
    return w, dict(c, kv=c["h"])


same("GQA expanded to MHA", "l", gqa_expand)
# -- two at once
same("heads and neurons permuted", "glp", both(perm_heads, perm_neurons))
same("folded, then heads permuted", "gn", both(fold_all, perm_heads), **UB)
same("v basis after heads permuted", "glp", both(perm_heads, basis_v))
same("rotated and neurons permuted", "l", both(rotate, perm_neurons))
same(
    "folded + sdpa",
    "gln",
    fold_gains,
    attn=sdpa_attn(
        lambda n, q, k, v: functional.scaled_dot_product_attention(
            q[None], k[None], v[None], is_causal=True
        )[0]
    ),
)
same("v basis + b_V into b_O", "gnp", both(basis_v, fold_bv))
same("rotated + v basis", "l", both(rotate, basis_v))
same("qk basis + v basis", "gp", both(basis_qk, basis_v))
same(
    "rotated, all heads and neurons in other coordinates",
    "l",
    both(rotate, perm_heads, basis_v, perm_neurons),
)
same(
    "centred, all heads and neurons in other coordinates",
    "g",
    both(center_ln, basis_v, perm_neurons),
)
same(
    "everything TL",
    "g",
    both(center_ln, fold_all, fold_bv, center_unembed),
    normed=lambda n, x, w, lay, g, b: x / (x.pow(2).mean(-1, keepdim=True) + n.c["eps"]).sqrt(),
    **UB,
)
same("SVD heads (TL refactor_factored)", "gp", lambda w, c: svd_refactor(w, c))


def svd_refactor(w, c):
    w = C(w)
    w, c = fold_bv(w, c)
    for lay in range(c["L"]):
        for h in range(c["h"]):
            U, S, V = np.linalg.svd(w["W_V"][lay, h] @ w["W_O"][lay, h], full_matrices=False)
            e = c["dh"]
            w["W_V"][lay, h] = U[:, :e] * S[:e]
            w["W_O"][lay, h] = V[:e]
            Wq = np.vstack([w["W_Q"][lay, h], w["b_Q"][lay, h]])
            Wk = np.vstack([w["W_K"][lay, h], w["b_K"][lay, h]])
            U, S, V = np.linalg.svd(Wq @ Wk.T, full_matrices=False)
            A = U[:, :e] * S[:e] ** 0.5
            Bk = V[:e].T * S[:e] ** 0.5
            w["W_Q"][lay, h], w["b_Q"][lay, h] = A[:-1], A[-1]
            w["W_K"][lay, h], w["b_K"][lay, h] = Bk[:-1], Bk[-1]
    return w, c
