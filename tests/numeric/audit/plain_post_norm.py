"""Mistakes and rewrites of the plain post-norm net (p): the tables of all families, with its own.

The norms of such a net stand on the stream itself: what is folded or turned elsewhere would be
another function here, and what is left is in `REWRITES`; `FORGED` looks like it and is not.
"""

import numpy as np

from tests.numeric.audit.plain import Net
from tests.numeric.audit.plain_bugs_attention import BUGS, bug
from tests.numeric.audit.plain_rewrites_weights import REWRITES, C, center_ln, same

__all__ = ["BUGS", "FORGED", "REWRITES"]


def pre_norm_block(n, x, lay, R):
    after, n.c = n.c, {**n.c, "order": "pre"}
    try:
        return Net.block(n, x, lay, R)
    finally:
        n.c = after


def steps_of_block(n, x, lay, R, mid, mlp_reads, end):
    R[f"resid_pre.{lay}"] = x
    a = R[f"attn_out.{lay}"] = n.attn(x, lay, R)
    total = R[f"resid_mid.{lay}"] = mid(x, a)
    first = R[f"ln1.{lay}"] = n.norm(total, "ln1", lay)
    m = R[f"mlp_out.{lay}"] = n.mlp(mlp_reads(total, first), lay, R)
    y = R[f"resid_post.{lay}"] = end(total, first, m)
    z = R[f"ln2.{lay}"] = n.norm(y, "ln2", lay)
    return z


def block_with(
    mid=lambda x, a: x + a, mlp_reads=lambda total, first: first, end=lambda _, first, m: first + m
):
    return lambda n, x, lay, R: steps_of_block(n, x, lay, R, mid, mlp_reads, end)


def parts_normed(n, x, lay, R):
    """x + norm(part(x)), as in Swin v2."""
    R[f"resid_pre.{lay}"] = x
    a = R[f"attn_out.{lay}"] = n.attn(x, lay, R)
    mid = R[f"resid_mid.{lay}"] = x + n.norm(a, "ln1", lay)
    m = R[f"mlp_out.{lay}"] = n.mlp(mid, lay, R)
    y = R[f"resid_post.{lay}"] = mid + n.norm(m, "ln2", lay)
    return y


bug("pre-norm block", "p", "q.0", "pre-norm for post-norm", block=pre_norm_block)
bug("parts normed and not sums", "p", "resid_mid.0", "before it is added", block=parts_normed)
bug(
    "attention reads the norm of the stream",
    "p",
    "q.0",
    "attention reads the norm of the stream",
    sources=lambda n, x, _, lay: (n.norm(x, "ln1", lay),) * 3,
)
bug(
    "keys alone read the norm of the stream",
    "p",
    "k.0",
    "norm",
    sources=lambda n, x, _, lay: (x, n.norm(x, "ln1", lay), x),
)
bug(
    "mlp reads the sum",
    "p",
    "mlp_pre.0",
    "reads the stream and not the norm",
    block=block_with(mlp_reads=lambda total, first: total),
)
bug(
    "mlp residual before the norm",
    "p",
    "resid_post.0",
    "takes the sum after attention, and not the norm",
    block=block_with(end=lambda total, first, m: total + m),
)
bug(
    "mlp residual from the start of the block",
    "p",
    "resid_post.0",
    "before attention",
    mlp_reads=lambda n, x, first, lay: first,
    end=lambda n, first, m, x, lay: x + m,
)
bug(
    "second norm forgotten",
    "p",
    "ln2.0",
    "without the LayerNorm",
    norm=lambda n, x, which, lay: x if which == "ln2" else Net.norm(n, x, which, lay),
)
bug(
    "last norm forgotten",
    "p",
    "ln2.2",
    "without the LayerNorm",
    norm=lambda n, x, which, lay: x if (which, lay) == ("ln2", 2) else Net.norm(n, x, which, lay),
)


def last_norm_folded(w, c):
    w = C(w)
    w["W_U"] = w["ln2_gain"][-1][:, None] * w["W_E"].T
    w["b_U"] = w["ln2_bias"][-1] @ w["W_E"].T
    w["ln2_gain"][-1], w["ln2_bias"][-1] = 1, 0
    return w, {**c, "tied": False}


def moved_features(order, sign):
    """The stream times a signed permutation."""

    def move(w, c):
        w = C(w)
        for name in ("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out", "ln1_bias", "ln2_bias"):
            w[name] = w[name][..., order(c["d"])] * sign(c["d"])
        for name in ("ln1_gain", "ln2_gain"):
            w[name] = w[name][..., order(c["d"])]
        for name in ("W_Q", "W_K", "W_V", "W_in"):
            w[name] = w[name][..., order(c["d"]), :] * sign(c["d"])[:, None]
        return w, c

    return move


def in_order(d):
    return np.arange(d)


def shuffled(d):
    return np.random.default_rng(9).permutation(d)


same(
    "what is written is centred",
    "p",
    lambda w, c: center_ln(w, c, ("W_O", "b_O", "W_out", "b_out")),
)
same("stream negated", "p", moved_features(in_order, lambda d: -np.ones(d)))
same("stream negated and permuted", "p", moved_features(shuffled, lambda d: -np.ones(d)))
same(
    "last norm folded into the unembedding",
    "p",
    last_norm_folded,
    unembed=lambda n, x: x @ n.w["W_U"] + n.w["b_U"],
)

FORGED = {
    "signs mixed": moved_features(in_order, lambda d: (-1.0) ** np.arange(d)),
    "permuted with mixed signs": moved_features(shuffled, lambda d: (-1.0) ** np.arange(d)),
    "embedding centred as well": center_ln,
}


def biases_passed_on(w, c, in_sum=True):
    """Norms without their biases, which what reads them has, and what is added to them next."""
    w = C(w)
    for lay in range(c["L"]):
        b = w["ln1_bias"][lay].copy()
        w["ln1_bias"][lay] = 0
        w["b_in"][lay] += b @ w["W_in"][lay]
        w["b_out"][lay] += b * in_sum
        if lay + 1 < c["L"]:
            b = w["ln2_bias"][lay].copy()
            w["ln2_bias"][lay] = 0
            for a in "QKV":
                w["b_" + a][lay + 1] += np.einsum("d,hde->he", b, w["W_" + a][lay + 1])
            w["b_O"][lay + 1] += b * in_sum
    return w, c


same("biases of norms passed on", "p", biases_passed_on)
