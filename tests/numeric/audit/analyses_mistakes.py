"""Analyses computed wrongly, in plain NumPy: what was done, and a word that its diagnosis holds."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from otimes.numeric.config import gpt2_config, llama_config
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model

Array = np.ndarray
Case = tuple[str, str, Any, str, dict[str, Any]]
"""The analysis, what was done, the value, a word of the diagnosis, and what it was asked about."""

SIZES: dict[str, Any] = {"n_heads": 4, "d_model": 24, "d_head": 6, "d_mlp": 20, "n_ctx": 16}
MODELS = {
    "bare": random_model(n_layers=2, n_heads=4, d_model=20, d_head=5, d_vocab=34, seed=3),
    "gpt2": random_model(gpt2_config(n_layers=3, d_vocab=36, tied=False, **SIZES), seed=3),
    "llama": random_model(
        llama_config(n_layers=2, n_kv_heads=2, d_vocab=36, rotary_dims=6, tied=False, **SIZES),
        seed=3,
    ),
}
TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 30]
HEAD = {"layer": 1, "head": 2}
TEXT = {"tokens": TOKENS}
PATH = {"tokens": TOKENS, "layer": (0, 1), "head": (1, 2)}


def norm(matrix: Array, kind: Any = None) -> float:
    return float(np.linalg.norm(matrix, kind))


def circuits(m: Model) -> Iterator[Case]:
    V, W_O, Q, K = (each[1, 2] for each in (m.W_V, m.W_O, m.W_Q, m.W_K))
    ov, qk, d = V @ W_O, Q @ K.T, m.d_model
    U, S, W = np.linalg.svd(ov)
    wrong = {
        "W_V of another head, 1.0": m.W_V[1, 0] @ W_O,
        "W_V of another head, 1.0; and W_O of another head, 1.3": m.W_V[1, 0] @ m.W_O[1, 3],
        "another head, 0.2, of another layer": m.W_V[0, 2] @ m.W_O[0, 2],
        "W_V W_Vᵀ": V @ V.T,
        "writes centred": ov - ov.mean(1, keepdims=True),
        "identity": ov + np.eye(d),
        "heads of the layer up to": (m.W_V[1, :3] @ m.W_O[1, :3]).sum(0),
        "reshaped": V.reshape(-1, d).T @ W_O,
        "columns; and then that multiplied by 0.3": 0.3 * ov.T,
        "cut off behind 3": (U[:, :3] * S[:3]) @ W[:3],
        "float16 only": ov.astype(np.float16).astype(np.float64),
        "[d_head, d_head]": W_O @ V,
        "on the vocabulary": m.W_E @ ov @ m.W_U,
        "zeros everywhere": 0 * ov,
    }
    for says, value in wrong.items():
        says = says.replace("columns;", "the circuit transposed, as columns have it;")
        yield "ov_circuit", says, value, says, HEAD
    wrong = {
        "W_K of another head, 1.0": Q @ m.W_K[1, 0].T,
        "W_Q W_Qᵀ": Q @ Q.T,
        "negated": -qk,
        "symmetric part of the circuit; and then that multiplied": (qk + qk.T) / 2 / np.sqrt(d),
        "another head, 0.1, transposed": m.W_K[0, 1] @ m.W_Q[0, 1].T,
    }
    if m.config.norm != "none":
        gain = m.ln1_gain[0][:, None]
        wrong["norm of another layer, 0"] = gain * qk * gain.T
    for says, value in wrong.items():
        yield "qk_circuit", says, value, says, HEAD


def copying(m: Model) -> Iterator[Case]:
    ov = m.W_V[1, 2] @ m.W_O[1, 2]
    full = m.W_E @ ov @ m.W_U
    small = np.linalg.eigvals(m.W_O[1, 2] @ m.W_U @ m.W_E @ m.W_V[1, 2])
    sizes = np.abs(small).sum()
    wrong = {
        "reciprocal": sizes / small.sum().real,
        "2-norm of the eigenvalues": small.sum().real / norm(small),
        "eigvalsh for eigvals": (lambda e: e.sum() / np.abs(e).sum())(np.linalg.eigvalsh(full)),
        "a count": (np.linalg.eigvals(full).real > 0).mean(),
        "negative eigenvalues only": -small.real[small.real < 0].sum() / sizes,
        "largest of its row": (full.argmax(1) == np.arange(len(full))).mean(),
        "percent": 100 * small.sum().real / sizes,
        "stream and not on the vocabulary, and singular": np.trace(ov) / norm(ov, "nuc"),
        "Frobenius": np.trace(full) / norm(full),
        "unembedding on both sides": (lambda e: e.sum().real / np.abs(e).sum())(
            np.linalg.eigvals(ov @ m.W_U @ m.W_U.T)
        ),
    }
    for says, value in wrong.items():
        yield "copying_score", says, np.asarray(value), says, HEAD


def compositions(m: Model) -> Iterator[Case]:
    ov, qk = m.W_V @ m.W_O, m.W_Q @ m.W_K.swapaxes(2, 3)
    early, late = range(m.n_layers - 1), range(1, m.n_layers)

    def table(score: Any) -> Array:
        scores = np.zeros((m.n_layers, m.n_heads) * 2)
        for a in early:
            for b in late:
                for h, g in np.ndindex(m.n_heads, m.n_heads):
                    scores[a, h, b, g] = score(ov[a, h], qk[b, g]) if a < b else 0
        return scores

    def right(A: Array, B: Array) -> float:
        return norm(A @ B) / norm(A) / norm(B)

    wrong = {
        "normalised to one": table(lambda A, B: 1.0),
        "keys, W_QKᵀ": table(lambda A, B: right(A, B.T)),
        "nuclear": table(lambda A, B: norm(A @ B, "nuc") / norm(A, "nuc") / norm(B, "nuc")),
        "largest column sum": table(lambda A, B: norm(A @ B, 1) / norm(A, 1) / norm(B, 1)),
        "entry by entry": table(lambda A, B: norm(A * B) / norm(A) / norm(B)),
        "trace of the product": table(lambda A, B: np.trace(A @ B) / norm(A) / norm(B)),
        "baseline 1/√d_model": table(lambda A, B: right(A, B) - m.d_model**-0.5),
        "numerator is squared": table(lambda A, B: norm(A @ B) ** 2 / norm(A) / norm(B)),
        "heads of writer and reader exchanged": table(right).transpose(0, 3, 2, 1),
        "its axes transposed": table(right).transpose(2, 3, 0, 1),
        "divided by spectral": table(lambda A, B: norm(A @ B) / norm(A, 2) / norm(B, 2)),
    }
    for says, value in wrong.items():
        yield "q_composition", says, value, says, {}


def normalised(m: Model, rows: Array, by: Array | None = None, kind: str = "") -> Array:
    """Return rows behind the final norm, without its gain and bias."""
    if m.config.norm == "none":
        return rows
    layered = m.config.norm == ("rms" if kind == "other" else "layer")
    by = rows if by is None else by
    about = by.mean(-1, keepdims=True) if layered else 0 * by[..., :1]
    scale = np.sqrt(((by - about) ** 2).mean(-1, keepdims=True) + m.config.norm_eps)
    return (rows - rows.mean(-1, keepdims=True) * layered) / scale


def gained(m: Model, rows: Array) -> Array:
    return normalised(m, rows) * m.ln_final_gain + m.ln_final_bias


def lenses(m: Model) -> Iterator[Case]:
    places = m.forward(TOKENS)
    names = [*(f"resid_pre.{layer}" for layer in range(m.n_layers)), "final"]
    rows = np.stack([places[name] for name in names])

    def lens(rows: Array, **kinds: Any) -> Array:
        return (normalised(m, rows, **kinds) * m.ln_final_gain + m.ln_final_bias) @ m.W_U + m.b_U

    right = lens(rows)
    zero = np.zeros((1, *rows.shape[1:]))
    attention = np.stack([places[f"attn_out.{layer}"] for layer in range(m.n_layers)])
    wrong = {
        "a layer late": lens(np.concatenate([rows[1:], rows[-1:]])),
        "W_Eᵀ for W_U": gained(m, rows) @ m.W_E.T + m.b_U,
        "streams without what attention writes": lens(
            rows - np.concatenate([zero, attention.cumsum(0)])
        ),
        "softmax": np.exp(right) / np.exp(right).sum(-1, keepdims=True),
        "off by one along axis 1": np.roll(right, 1, 1),
        "last stream is missing": right[:-1],
    }
    if m.config.norm != "none":
        middle = [places["resid_pre.0"], *(places[f"resid_mid.{n}"] for n in range(m.n_layers))]
        gain, bias = m.ln1_gain[-1], m.ln1_bias[-1]
        wrong |= {
            "norm twice": lens(gained(m, rows)),
            f"ln1 of layer {m.n_layers - 1}": (normalised(m, rows) * gain + bias) @ m.W_U + m.b_U,
            "resid_mid": lens(np.stack(middle)),
            "for LayerNorm" if m.config.norm == "layer" else "for RMSNorm": lens(
                rows, kind="other"
            ),
            "scale of the first position": lens(rows, by=rows[:, :1]),
            "scale of the last stream": lens(rows, by=rows[-1:]),
        }
    if m.config.norm == "layer":
        biases = np.concatenate([np.zeros((1, m.d_model)), m.b_O.cumsum(0)])
        wrong["without b_O"] = lens(rows - biases[:, None])
    for says, value in wrong.items():
        yield "logit_lens", says, value, says, TEXT


def attributions(m: Model) -> Iterator[Case]:
    places, layers = m.forward(TOKENS), range(m.n_layers)
    final = places["final"]
    patterns = [places[f"pattern.{layer}"] for layer in layers]
    values = [places[f"v.{layer}"] for layer in layers]

    def part(written: Array, by: Array | None = final) -> Array:
        return normalised(m, written, by) * m.ln_final_gain @ m.W_U

    def written(patterns: Any, values: Any, W_O: Array = m.W_O) -> Array:
        return np.stack([patterns[n] @ values[n] @ W_O[n] for n in layers])

    heads = written(patterns, values)
    own = [A * np.eye(len(TOKENS)) for A in patterns]
    wrong = {
        "patterns transposed": part(written([A.swapaxes(1, 2) for A in patterns], values)),
        "no attention pattern": part(written([np.eye(len(TOKENS))] * m.n_layers, values)),
        "diagonal of the attention patterns only": part(written(own, values)),
        "keys for values": part(written(patterns, [places[f"k.{n}"] for n in layers])),
        "W_O of the heads in reverse": part(written(patterns, values, m.W_O[:, ::-1])),
        "W_O of layer 0": part(written(patterns, values, m.W_O[[0] * m.n_layers])),
        "the own tokens only": part(heads)[..., np.arange(len(TOKENS)), TOKENS],
        "summed over axis 1": part(heads).sum(1),
        "running sum": part(heads).cumsum(0),
        "W_Eᵀ for W_U (as if tied); and then that multiplied by 0.5": (
            normalised(m, heads, final) * m.ln_final_gain @ m.W_E.T / 2
        ),
    }
    if m.config.norm != "none":
        streams = np.stack([places[f"resid_post.{n}"] for n in layers])[:, None]
        raw = [places[f"resid_pre.{n}"] @ m.W_V[n] + m.b_V[n][:, None] for n in layers]
        wrong |= {
            "after the own layer": part(heads, streams),
            "stream before its norm": part(written(patterns, raw)),
        }
    if m.config.kv_heads < m.n_heads:
        tiled = [v[::2][[0, 1, 0, 1]] for v in values]
        wrong["groups in turn"] = part(written(patterns, tiled))
    for says, value in wrong.items():
        yield "direct_logit_attribution", says, value, says, TEXT


def paths(m: Model) -> Iterator[Case]:
    places = m.forward(TOKENS)
    A, B, x = places["pattern.0"][1], places["pattern.1"][2], places["embed"]
    ov, n_pos = m.W_V @ m.W_O, len(TOKENS)
    one, two = ov[0, 1], ov[1, 2]
    term, direct = B @ A @ x @ one @ two @ m.W_U, B @ x @ two @ m.W_U
    wrong = {
        "patterns transposed, A₂ᵀ A₁ᵀ": B.T @ A.T @ x @ one @ two @ m.W_U,
        "one head only, the second": direct,
        "plus that of the second head alone": term + direct,
        "pattern of another head, 0.2": B @ places["pattern.0"][2] @ x @ one @ two @ m.W_U,
        "identity added, of head 1.2": (B + np.eye(n_pos)) @ A @ x @ one @ two @ m.W_U,
        "as columns have it, of head 0.1": B @ A @ x @ one.T @ two @ m.W_U,
        "all heads of the layer, of head 0.1": B @ A @ x @ ov[0].sum(0) @ two @ m.W_U,
        "before W_U": B @ A @ x @ one @ two,
    }
    for says, value in wrong.items():
        yield "path_term", says, value, says, PATH


def svds(m: Model) -> Iterator[Case]:
    ov, r = m.W_V[1, 2] @ m.W_O[1, 2], m.d_head
    U, S, W = (each[..., :r] if n < 2 else each[:r] for n, each in enumerate(np.linalg.svd(ov)))
    swapped = [1, 0, *range(2, r)]

    def thin(matrix: Array) -> tuple[Array, Array, Array]:
        left, values, right = np.linalg.svd(matrix)
        return left[:, :r], values[:r], right[:r]

    wrong = {
        "V for Vᵀ": (U, S, W.T),
        "ascending": (U, S[::-1], W),
        "reverse order and singular values in ascending": (U[:, ::-1], S[::-1], W[::-1]),
        "not in descending order": (U[:, swapped], S[swapped], W[swapped]),
        "divided by the largest": (U, S / S[0], W),
        "divided by their sum": (U, S / S.sum(), W),
        "multiplied by 2": (U, 2 * S, W),
        "not orthonormal": (2 * U, S, W / 2),
        "cut off behind 2": (U[:, :2], S[:2], W[:2]),
        "on the vocabulary": thin(m.W_E @ ov @ m.W_U),
        "W_V alone": np.linalg.svd(m.W_V[1, 2], full_matrices=False),
        "W_V of another head, 1.0": thin(m.W_V[1, 0] @ m.W_O[1, 2]),
        "identity added": thin(ov + np.eye(len(ov))),
        "QK circuit": thin(m.W_Q[1, 2] @ m.W_K[1, 2].T),
        "other vectors": (U[:, ::-1], S, W),
    }
    for says, value in wrong.items():
        yield "svd", says, value, says, HEAD


def folded(m: Model) -> Iterator[Case]:
    g1, g2, end = m.ln1_gain, m.ln2_gain, m.ln_final_gain
    wide, mlp = g1[:, None, :, None], g2[:, :, None]
    Q, head_wide = m.W_Q, np.resize(g1, (m.n_layers, 1, 1, m.d_head))
    wrong = {
        "along the wrong axis": {"W_Q": Q * head_wide, "W_U": end[:, None] * m.W_U},
        "W_U as it was": {"W_U": m.W_U, "W_Q": Q * wide},
        "from the next layer": {"W_Q": Q * np.roll(wide, -1, 0)},
        "ln1 folded in once": {"W_in": m.W_in * g1[:, :, None]},
        "divided out": {"W_in": m.W_in / mlp},
        "W_K for W_Q": {"W_Q": m.W_K * wide},
        "which it does not read": {"W_O": m.W_O * g1[:, None, None, :], "W_Q": Q * wide},
        "last two axes exchanged": {"W_in": (m.W_in * mlp).swapaxes(1, 2)},
        "of another head (1 further)": {"W_Q": np.roll(Q * wide, -1, 1)},
    }
    if m.config.gated:
        wrong["W_gate as it was"] = {"W_gate": m.W_gate, "W_in": m.W_in * mlp}
    if m.config.norm == "layer":
        read = np.einsum("ld,ldm->lm", m.ln2_bias, m.W_in)
        value_bias = m.b_V + np.einsum("ld,lhde->lhe", m.ln1_bias, m.W_V)
        moved = np.einsum("lhe,lhed->ld", value_bias, m.W_O)
        wrong |= {
            "subtracted and not added": {"b_in": m.b_in - read},
            "already hold the gain": {
                "b_in": m.b_in + np.einsum("ld,ldm->lm", m.ln2_bias * g2, m.W_in)
            },
            "the bias is lost": {"b_V": 0 * m.b_V},
            "counts it twice": {"b_V": value_bias, "b_O": m.b_O + moved},
        }
    for says, value in wrong.items():
        yield "folded_weights", says, value, says, {}


def mistakes(name: str) -> Iterator[Case]:
    """Yield the mistakes made with one of the models; two at once, which take long, with one."""
    model = MODELS[name]
    for make in (circuits, copying, compositions, lenses, attributions, svds):
        yield from (case for case in make(model) if "; and" not in case[1] or name == "bare")
    yield from paths(model) if model.config.bare else folded(model)
