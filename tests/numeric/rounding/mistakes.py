"""Mistakes that are made in transformers, each at the place where it first shows.

A mistaken place is computed in float64 from the right inputs and rounded to the dtype: so well can
an implementation do it and still be wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from otimes.numeric.config import Config
from otimes.numeric.functions import causal_mask, masked_softmax, normalise
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model
from otimes.numeric.rounding import LocalBounds, in_dtype, inputs_of, stored_as, worst_ratio

Recorded = Mapping[str, np.ndarray]
Mistaken = Callable[[Model, str, Recorded], np.ndarray]

KINDS: dict[str, dict[str, Any]] = {
    "gpt2": {
        "positions": "learned",
        "norm": "layer",
        "final_norm": True,
        "activation": "gelu_tanh",
        "biases": ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out", "b_U"),
    },
    "neox": {
        "positions": "rotary",
        "norm": "layer",
        "final_norm": True,
        "activation": "gelu",
        "parallel": True,
        "biases": ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out"),
    },
    "llama": {
        "positions": "rotary",
        "norm": "rms",
        "final_norm": True,
        "activation": "silu",
        "gated": True,
    },
}


@dataclass(frozen=True)
class Mistake:
    kind: str
    place: str
    compute: Mistaken
    stream: float = 1.0  # what the embeddings are multiplied by


def kind_of(name: str, width: int) -> Config:
    """Return the configuration of a small model, `width` its d_model and heads of a quarter."""
    rotary = KINDS[name]["positions"] == "rotary"
    return Config(
        **{
            "n_layers": 1,
            "n_heads": 4,
            "d_model": width,
            "d_head": width // 4,
            "d_vocab": 50,
            "n_ctx": 24,
            "d_mlp": 2 * width,
            "rotary_dims": width // 4 if rotary else 0,
            **KINDS[name],
        }
    )


def _another(**fields: Any) -> Mistaken:
    """Return what a model of another kind makes of the same inputs."""

    def compute(model: Model, place: str, recorded: Recorded) -> np.ndarray:
        other = model.changed({}, replace(model.config, **fields))
        return LocalBounds(other, "float64").place(place, recorded).value

    return compute


def _with(**changes: Callable[[np.ndarray], np.ndarray]) -> Mistaken:
    """Return what a model with other weights makes of the same inputs."""

    def compute(model: Model, place: str, recorded: Recorded) -> np.ndarray:
        other = model.changed({n: change(model.weights[n]) for n, change in changes.items()})
        return LocalBounds(other, "float64").place(place, recorded).value

    return compute


def _centred(model: Model, place: str, recorded: Recorded) -> np.ndarray:
    rows = recorded["resid_mid.0"]
    gain = model.part("ln2_gain", 0)
    return normalise(rows, "layer", model.config.norm_eps, gain, np.zeros_like(gain))


def _unbiased(model: Model, place: str, recorded: Recorded) -> np.ndarray:
    rows = recorded["resid_pre.0"]
    c = rows - rows.mean(axis=1, keepdims=True)
    scale = np.sqrt(rows.var(axis=1, ddof=1, keepdims=True) + model.config.norm_eps)
    return c / scale * model.part("ln1_gain", 0) + model.part("ln1_bias", 0)


def _eps_outside(model: Model, place: str, recorded: Recorded) -> np.ndarray:
    rows = recorded["resid_pre.0"]
    c = rows - rows.mean(axis=1, keepdims=True)
    scale = rows.std(axis=1, keepdims=True) + model.config.norm_eps
    return c / scale * model.part("ln1_gain", 0) + model.part("ln1_bias", 0)


def _unscaled(model: Model, place: str, recorded: Recorded) -> np.ndarray:
    return recorded["q.0"] @ np.swapaxes(recorded["k.0"], 1, 2)


def _scaled_by_width(model: Model, place: str, recorded: Recorded) -> np.ndarray:
    return _unscaled(model, place, recorded) / np.sqrt(model.d_model)


def _unmasked(model: Model, place: str, recorded: Recorded) -> np.ndarray:
    scores = recorded["scores.0"]
    return np.stack([masked_softmax(s, np.ones(s.shape, dtype=bool)) for s in scores])


def _masked_softly(model: Model, place: str, recorded: Recorded) -> np.ndarray:
    """What is masked loses 10 and not all."""
    scores = recorded["scores.0"]
    seen = causal_mask(scores.shape[-1])
    return np.stack([masked_softmax(np.where(seen, s, s - 10), seen | True) for s in scores])


def _gate_and_up(model: Model, place: str, recorded: Recorded) -> np.ndarray:
    up = recorded["ln2.0"] @ model.part("W_in", 0)
    return up / (1 + np.exp(-up)) * recorded["mlp_pre.0"]


def _other_order(array: np.ndarray) -> np.ndarray:
    return array[:, ::-1]


def _in_bfloat16(array: np.ndarray) -> np.ndarray:
    return stored_as(array, "bfloat16")


def _zero(array: np.ndarray) -> np.ndarray:
    return np.zeros_like(array)


MISTAKES: dict[str, Mistake] = {
    "ε = 1e-6 for 1e-5, LayerNorm": Mistake("gpt2", "ln1.0", _another(norm_eps=1e-6)),
    "ε = 1e-6 for 1e-5, a stream of 0.2": Mistake("gpt2", "ln1.0", _another(norm_eps=1e-6), 0.2),
    "ε = 1e-6 for 1e-5, RMSNorm": Mistake("llama", "ln1.0", _another(norm_eps=1e-6)),
    "ε outside the root": Mistake("gpt2", "ln1.0", _eps_outside, 0.2),
    "unbiased variance": Mistake("gpt2", "ln1.0", _unbiased),
    "the other norm": Mistake("llama", "ln2.0", _centred),
    "gain forgotten": Mistake("llama", "ln2.0", _with(ln2_gain=np.ones_like)),
    "norm's bias forgotten": Mistake("gpt2", "ln_final", _with(ln_final_bias=_zero)),
    "position one too far": Mistake("gpt2", "resid_pre.0", _with(W_pos=lambda w: np.roll(w, 1, 0))),
    "b_Q forgotten": Mistake("gpt2", "q.0", _with(b_Q=_zero)),
    "b_K forgotten": Mistake("gpt2", "k.0", _with(b_K=_zero)),
    "b_V forgotten": Mistake("gpt2", "v.0", _with(b_V=_zero)),
    "the other rotary layout": Mistake("llama", "q.0", _another(rotary_layout="interleaved")),
    "another rotary base": Mistake("llama", "k.0", _another(rotary_base=10001.0)),
    "rotary forgotten": Mistake("neox", "k.0", _another(positions="none", rotary_dims=0)),
    "scale forgotten": Mistake("gpt2", "scores.0", _unscaled),
    "scale by d_model": Mistake("gpt2", "scores.0", _scaled_by_width),
    "mask forgotten": Mistake("gpt2", "pattern.0", _unmasked),
    "mask of -10": Mistake("gpt2", "pattern.0", _masked_softly),
    "heads in another order": Mistake("gpt2", "attn_out.0", _with(W_O=lambda w: w[:, ::-1])),
    "b_O forgotten": Mistake("gpt2", "attn_out.0", _with(b_O=_zero)),
    "GELU by tanh for exact": Mistake("neox", "mlp_post.0", _another(activation="gelu_tanh")),
    "exact GELU for tanh": Mistake("gpt2", "mlp_post.0", _another(activation="gelu")),
    "ReLU for GELU": Mistake("gpt2", "mlp_post.0", _another(activation="relu")),
    "gate and up swapped": Mistake("llama", "mlp_post.0", _gate_and_up),
    "neurons in another order": Mistake("gpt2", "mlp_out.0", _with(W_out=_other_order)),
    "b_out forgotten": Mistake("gpt2", "mlp_out.0", _with(b_out=_zero)),
    "b_U forgotten": Mistake("gpt2", "logits", _with(b_U=_zero)),
    "weights in bfloat16": Mistake("gpt2", "mlp_out.0", _with(W_out=_in_bfloat16)),
}


def over_bound(mistake: Mistake, dtype: str, width: int, seed: int = 0) -> tuple[float, float]:
    """Return error/bound of a mistake in a model of that width, and of the likely figure."""
    model = random_model(kind_of(mistake.kind, width), seed)
    embeddings = {n: w * mistake.stream for n, w in model.weights.items() if n in ("W_E", "W_pos")}
    model = in_dtype(model.changed(embeddings), dtype)
    tokens = np.random.default_rng(seed).integers(0, 50, 12)
    places = {name: stored_as(each, dtype) for name, each in model.forward(tokens).items()}
    read = {name: places[name] for name in inputs_of(model.config, mistake.place)}
    wrong = stored_as(mistake.compute(model, mistake.place, read), dtype)
    judged = LocalBounds(model, dtype).place(mistake.place, read)
    return (
        worst_ratio(wrong, judged.value, judged.bound),
        worst_ratio(wrong, judged.value, judged.likely),
    )
