"""The numbers and figures of the lesson on MLPs: the neurons of `gpt2_tiny`."""

from __future__ import annotations

from typing import Any

import numpy as np

from figures import bars, figure
from lesson_prompt import POSITION, number, power, prompt, run, shown, sizes, texts

NAME = "gpt2_tiny"
LAYER = 3
"""The last layer: nothing but the norm and the unembedding reads what its neurons write."""


def values() -> dict[str, str]:
    """Return the numbers and figures of the lesson."""
    model, places = run(NAME)
    tokens, words = prompt()
    token = tokens[POSITION + 1]
    post, pre = places[f"mlp_post.{LAYER}"], places[f"mlp_pre.{LAYER}"]
    out = _read(model, places) @ model.W_U  # neuron, token
    adds = post[POSITION] * out[:, token]
    order = np.argsort(-abs(adds))
    neuron = int(np.argmax(adds))
    tops = np.argsort(-out[neuron])[:6]
    rebuilt = post @ model.part("W_out", LAYER) + model.part("b_out", LAYER)
    queries = places[f"ln2.{LAYER}"] @ model.part("W_in", LAYER) + model.part("b_in", LAYER)
    return {
        **sizes(NAME),
        **_nonlinear(model, places),
        "d_mlp": str(model.config.d_mlp),
        "neurons": f"{model.config.d_mlp * model.n_layers:,}",
        "neuron": f"{LAYER}.{neuron}",
        "active": number(float(post[POSITION, neuron])),
        "value": number(float(out[neuron, token])),
        "adds": number(float(adds[neuron])),
        "sum": number(float(adds.sum())),
        "positive": str(int((adds > 0).sum())),
        "negative": str(int((adds < 0).sum())),
        "up": number(float(adds[adds > 0].sum())),
        "down": number(-float(adds[adds < 0].sum())),
        "rebuilt_apart": power(float(abs(rebuilt - places[f"mlp_out.{LAYER}"]).max())),
        "keys_apart": power(float(abs(queries - pre).max())),
        "on": str(int((post[POSITION] > 0.1).sum())),
        "biggest": figure(
            bars(
                [float(adds[n]) for n in order[:8]],
                [f"neuron {LAYER}.{n}" for n in order[:8]],
                "logits",
                "the neurons that change the logit most",
            ),
            f"The eight neurons of the last layer that change the logit of the line end most, of"
            f" {model.config.d_mlp}.",
        ),
        "key": figure(
            bars(
                [float(value) for value in post[:, neuron]],
                [f"{i} {shown(word)}" for i, word in enumerate(words, 1)],
                "units of the activation",
                f"how active neuron {LAYER}.{neuron} is on each token",
            ),
            f"The key of neuron {LAYER}.{neuron}: how active it is on each token of the prompt.",
        ),
        "written": figure(
            bars(
                [float(out[neuron, k]) for k in tops],
                [shown(text) for text in texts(tops)],
                "logits",
                f"the tokens that neuron {LAYER}.{neuron} raises most",
            ),
            f"The value of neuron {LAYER}.{neuron}: the tokens whose logits it raises most, for"
            " an activation of 1.",
        ),
    }


def _read(model: Any, places: Any) -> Any:
    """Return what each neuron writes, as the unembedding reads it behind the norm of this pass."""
    written = model.part("W_out", LAYER)
    centred = written - written.mean(axis=1, keepdims=True)
    scale = np.sqrt(places["final"][POSITION].var() + model.config.norm_eps)
    return centred * model.part("ln_final_gain") / scale


def _nonlinear(model: Any, places: Any) -> dict[str, str]:
    """Return how far the first MLP of a sum of two parts is from the sum of its parts."""
    layer, token = 0, prompt()[0][POSITION + 1]
    read = places[f"ln2.{layer}"][POSITION]
    scale = np.sqrt(places[f"resid_mid.{layer}"][POSITION].var() + model.config.norm_eps)
    gain, bias = model.part("ln2_gain", layer), model.part("ln2_bias", layer)

    def behind(part: Any) -> Any:
        return (part - part.mean()) / scale * gain

    parts = [places[f"{name}.{layer}"][POSITION] for name in ("resid_pre", "attn_out")]
    w_in, b_in = model.part("W_in", layer), model.part("b_in", layer)
    last = np.sqrt(places["final"][POSITION].var() + model.config.norm_eps)
    w_out = model.part("W_out", layer)
    reads = (model.part("ln_final_gain") * model.W_U[:, token]) / last

    def logit(row: Any) -> float:
        made = _gelu(row @ w_in + b_in) @ w_out
        return float((made - made.mean()) @ reads)

    nothing = logit(bias)
    alone = [logit(behind(part) + bias) - nothing for part in parts]
    both = logit(read) - nothing
    return {
        "both": number(both),
        "alone_sum": number(sum(alone)),
        "alone": figure(
            bars(
                [*alone, sum(alone), both],
                ["embedding alone", "attention 0 alone", "sum of these two", "both together"],
                "logits",
                "the first MLP on two parts of the stream",
            ),
            "What the first MLP adds to the logit of the line end when it reads the embedding"
            " alone, the output of attention alone, and both, less what it adds when it reads"
            " neither.",
        ),
    }


def _gelu(x: Any) -> Any:
    return x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2
