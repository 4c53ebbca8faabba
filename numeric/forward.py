"""The reference pass: one transformer, one prompt, every place recorded, in float64.

This is what theorems and foreign code are compared with, so it is written to be *read*: plain
matrix products, one head at a time, as the formulas stand in the papers.  It uses nothing of the
prover.  Source: Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    from numeric.model import Model

Places = dict[str, np.ndarray]


def forward_pass(model: "Model", tokens: Int[np.ndarray, " pos"]) -> Places:
    """Return every place by name; the tokens must be valid (`Model.forward` checks them).

    `embed` [pos, d_model], then for each layer l `resid_pre.l`, `qk_in.l` (what queries and keys
    read), `q.l`, `k.l`, `v.l`, `z.l` [head, pos, d_head], `scores.l`, `pattern.l` [head, query,
    key], `head_out.l` [head, pos, d_model], `attn_out.l`, `resid_mid.l`, `resid_post.l`
    [pos, d_model], and at the end `logits` [pos, d_vocab].
    """
    n_pos = len(tokens)
    visible = causal_mask(n_pos)
    residual = model.W_E[tokens]
    places: Places = {"embed": residual}
    for layer in range(model.n_layers):
        resid_pre = residual
        qk_in = resid_pre + model.W_pos[:n_pos]
        heads = [
            one_head(
                qk_in,
                resid_pre,
                visible,
                model.W_Q[layer, head],
                model.W_K[layer, head],
                model.W_V[layer, head],
                model.W_O[layer, head],
            )
            for head in range(model.n_heads)
        ]
        for place in ("q", "k", "v", "scores", "pattern", "z", "head_out"):
            places[f"{place}.{layer}"] = np.stack([head[place] for head in heads])
        attn_out = places[f"head_out.{layer}"].sum(axis=0)
        # Without an MLP the stream is the same in the middle of a block and at its end.
        residual = resid_pre + attn_out
        places[f"resid_pre.{layer}"] = resid_pre
        places[f"qk_in.{layer}"] = qk_in
        places[f"attn_out.{layer}"] = attn_out
        places[f"resid_mid.{layer}"] = residual
        places[f"resid_post.{layer}"] = residual
    places["logits"] = residual @ model.W_U
    return places


def one_head(
    qk_in: Float[np.ndarray, "pos d_model"],
    v_in: Float[np.ndarray, "pos d_model"],
    visible: Bool[np.ndarray, "pos pos"],
    W_Q: Float[np.ndarray, "d_model d_head"],
    W_K: Float[np.ndarray, "d_model d_head"],
    W_V: Float[np.ndarray, "d_model d_head"],
    W_O: Float[np.ndarray, "d_head d_model"],
) -> Places:
    """Return what one head computes: $A = softmax(Q K^T / √d_head)$ and $A V W_O$."""
    q = qk_in @ W_Q
    k = qk_in @ W_K
    v = v_in @ W_V
    scores = q @ k.T / np.sqrt(W_Q.shape[1])
    pattern = masked_softmax(scores, visible)
    z = pattern @ v
    return {
        "q": q,
        "k": k,
        "v": v,
        "scores": scores,
        "pattern": pattern,
        "z": z,
        "head_out": z @ W_O,
    }


def causal_mask(n_pos: int) -> Bool[np.ndarray, "pos pos"]:
    """Return which key each query sees: itself and all before it."""
    return np.tri(n_pos, dtype=bool)


def masked_softmax(
    scores: Float[np.ndarray, "query key"], visible: Bool[np.ndarray, "query key"]
) -> Float[np.ndarray, "query key"]:
    """Return the softmax of each row over its visible entries; the others are exactly 0.

    The row maximum is taken over the visible entries only: a large hidden score would otherwise
    make the whole row underflow.
    """
    row_max = np.where(visible, scores, -np.inf).max(axis=1, keepdims=True)
    # A hidden entry is put to the maximum before exp, which then cannot overflow, and to 0 after.
    raised = np.exp(np.where(visible, scores, row_max) - row_max)
    weights = np.where(visible, raised, 0.0)
    pattern: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return pattern
