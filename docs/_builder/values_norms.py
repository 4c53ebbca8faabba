"""The numbers and figures of the lesson on norms: the last LayerNorm of `gpt2_tiny`."""

from __future__ import annotations

from typing import Any

import numpy as np

from charts import bar_pairs
from figures import bars, figure
from lesson_prompt import POSITION, chance, number, power, prompt, run, sizes

NAME = "gpt2_tiny"


def values() -> dict[str, str]:
    """Return the numbers and figures of the lesson."""
    model, places = run(NAME)
    tokens, _ = prompt()
    token = tokens[POSITION + 1]
    logits = places["logits"][POSITION]
    labels, written = _components(model, places)
    final, gain, bias = (
        places["final"][POSITION],
        model.part("ln_final_gain"),
        model.part("ln_final_bias"),
    )
    reads, scale = gain * model.W_U[:, token], _scale(model, final)
    centred = written - written.mean(axis=1, keepdims=True)
    whole = centred @ reads / scale
    own = centred @ reads / [_scale(model, each) for each in written]
    constant = float(bias @ model.W_U[:, token])
    folded = model.fold_norms().center().forward(tokens)["logits"]
    shifted = model.fold_norms().center(unembedding=True).forward(tokens)["logits"]
    return {
        **sizes(NAME),
        **_lens(model, places, token),
        "chance": f"{100 * chance(logits, token):.0f}",
        "logit": number(float(logits[token])),
        "bare": number(float(final @ model.W_U[:, token])),
        "constant": number(constant),
        "sum_whole": number(float(whole.sum()) + constant),
        "sum_own": number(float(own.sum()) + constant),
        "whole_apart": power(abs(whole.sum() + constant - logits[token])),
        "scale": number(scale),
        "early": number(_scale(model, written[0])),
        "mean": number(float(final.mean()), 3),
        "length": number(float(np.linalg.norm(final - final.mean())) / scale, 1),
        "folded_apart": power(float(abs(folded - places["logits"]).max())),
        "shift": number(float(shifted[POSITION, token] - logits[token])),
        "shift_spread": power(float(np.ptp(shifted - places["logits"], axis=1).max())),
        "parts": figure(
            bars(whole, labels, "logits", "what each component adds to the logit"),
            "What the embedding and each layer of attention and MLP add to the logit of the line"
            " end, all divided by the scale of the final stream.",
        ),
        "scales": figure(
            bar_pairs(
                whole,
                own,
                labels,
                ("scale of the whole", "each its own scale"),
                "contributions to the logit with one scale, and with a scale for each component",
            ),
            "The same contributions, and what comes out if each component goes through the norm by"
            " itself.",
        ),
    }


def _components(model: Any, places: Any) -> tuple[list[str], Any]:
    """Return the terms of the final stream at POSITION: the embedding, and what layers write."""
    names, rows = ["embedding"], [places["resid_pre.0"][POSITION]]
    for layer in range(model.n_layers):
        for name, place in (("attention", "attn_out"), ("MLP", "mlp_out")):
            names.append(f"{name} {layer}")
            rows.append(places[f"{place}.{layer}"][POSITION])
    return names, np.array(rows)


def _scale(model: Any, row: Any) -> float:
    return float(np.sqrt(row.var() + model.config.norm_eps))


def _lens(model: Any, places: Any, token: int) -> dict[str, str]:
    """Return the logit lens at each layer, with the scale of the final stream and of its own."""
    gain, bias = model.part("ln_final_gain"), model.part("ln_final_bias")
    rows = [places[f"resid_pre.{layer}"][POSITION] for layer in range(model.n_layers)]
    rows.append(places["final"][POSITION])
    last = _scale(model, rows[-1])
    read = {
        kind: [
            float(((row - row.mean()) / scale * gain + bias) @ model.W_U[:, token])
            for row, scale in (
                (row, last if kind == "final" else _scale(model, row)) for row in rows
            )
        ]
        for kind in ("final", "own")
    }
    labels = ["embedding", *[f"after layer {layer}" for layer in range(model.n_layers)]]
    return {
        "lens_final": number(read["final"][0]),
        "lens_own": number(read["own"][0]),
        "lens": figure(
            bar_pairs(
                read["final"],
                read["own"],
                labels,
                ("scale of the final stream", "scale of its own"),
                "the logit of the line end, read from the stream after each layer",
            ),
            "The logit lens for the line end: the stream after each layer through the last norm and"
            " the unembedding, with two choices of the scale.",
        ),
    }
