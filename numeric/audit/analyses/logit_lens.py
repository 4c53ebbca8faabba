"""The logit lens, and known mistakes in computing it.

It applies the final norm and W_U to the residual stream before each layer and to the last one. The
steps that a mistake may replace: the streams, the norm (`final_norm`), and the unembedding. Source:
nostalgebraist 2020.
"""

from collections.abc import Iterator

import numpy as np

from otimes.algebra.mutations import Swap
from otimes.numeric.audit.analyses.final_norm import norm_mistakes, normed
from otimes.numeric.audit.analyses.question import Array, Asked, Replaced


def logit_lens(asked: Asked, replaced: Replaced) -> Array:
    """Return the logits of the residual stream before each layer and at the end, each normed."""
    model = asked.model
    names = _streams(asked, replaced.get("rows", ""))
    places = asked.places(names)
    rows = np.stack([places[name] for name in names])
    if "without" in replaced:
        rows = rows - _part_of_streams(asked, replaced["without"])
    made = replaced.get("made", "")
    if made == "increments":
        rows = np.concatenate([rows[:1], np.diff(rows, axis=0)])
    elif made == "increments_only":
        rows = np.diff(rows, axis=0)
    by = {"": rows, "final": rows[-1:], "first": rows[:1], "last_position": rows[:, -1:]}
    by["first_position"] = rows[:, :1]
    if model.config.final_norm and made == "normed_before":
        rows = normed(asked, rows, rows, {}, bias=1)
        by[""] = rows
    rows = normed(asked, rows, by[replaced.get("by", "")], replaced, bias=1)
    if replaced.get("twice"):
        rows = normed(asked, rows, rows, replaced, bias=1)
    logits = rows @ asked.unembedding(replaced.get("unembed", "W_U"))
    times = replaced.get("b_U", 1)
    if replaced.get("unembed") == "none":
        return np.asarray(logits)
    return np.asarray(logits + times * model.part("b_U")[: logits.shape[-1]])


def _part_of_streams(asked: Asked, part: str) -> Array:
    """Return the sum of a component's outputs up to each row of the lens."""
    model, layers = asked.model, range(asked.model.n_layers)
    if part in ("embed", "resid_pre.0", "positions"):
        places = asked.places(["embed", "resid_pre.0"])
        embed = places["embed"]
        return places["resid_pre.0"] - embed if part == "positions" else places[part]
    if part in ("b_O", "b_out"):
        each = [model.part(part, layer)[None] for layer in layers]
    elif part == "b_V":
        each = [
            (model.part("b_V", layer)[:, None] @ model.part("W_O", layer)).sum(0)
            for layer in layers
        ]
    else:
        names = [f"{part}.{layer}" for layer in layers]
        places = asked.places(names)
        each = [places[name] for name in names]
    return np.cumsum([np.zeros_like(each[0]), *each], axis=0)


def _streams(asked: Asked, rows: str) -> list[str]:
    """Return the hook points of the rows of a lens."""
    layers = range(asked.model.n_layers)
    if not layers:
        return ["final"]
    before = [f"resid_pre.{layer}" for layer in layers]
    if rows.startswith("after "):
        return [before[0], *(f"{rows.removeprefix('after ')}.{layer}" for layer in layers)]
    if rows.startswith("each "):
        return [*(f"{rows.removeprefix('each ')}.{layer}" for layer in layers), "final"]
    return {
        "late": [*before[1:], "final", "final"],
        "early": [before[0], *before],
        "without_last": before,
        "without_first": [*before[1:], "final"],
        "no_positions": ["embed", *before[1:], "final"],
        "final_normed": [*before, "ln_final"],
        "last": ["final"] * (len(before) + 1),
        "first": [before[0]] * (len(before) + 1),
    }.get(rows, [*before, "final"])


def lens_mistakes(asked: Asked, shape: tuple[int, ...]) -> Iterator[Swap]:
    """Yield the known mistakes of a logit lens."""
    model = asked.model
    if shape[-1:] == (model.d_model,):
        yield Swap("streams behind the final norm, before W_U", {"unembed": "none"})
        yield Swap("streams before the final norm and W_U", {"unembed": "none", "norm": "none"})
    if shape[:1] == (model.n_layers,):
        yield Swap(
            "the last stream is missing: a row for each layer only", {"rows": "without_last"}
        )
        yield Swap(
            "the first stream is missing: the stream after each layer", {"rows": "without_first"}
        )
        yield Swap("what each layer adds, and not the stream", {"made": "increments_only"})
    yield from (Swap(says, steps) for says, steps in STEPS.items())
    if model.config.final_norm:
        says = "the last stream normalised before the final norm: the norm twice"
        yield Swap(says, {"rows": "final_normed"})
    if not model.n_layers:
        return
    for part, says in PARTS.items():
        if asked.model.config.d_mlp or part != "mlp_out":
            yield Swap(f"streams without {says}", {"rows": "", "without": part})
    pre_norm = model.config.norm != "none" and not model.config.post_norm
    for place, called in STREAMS.items():
        if place in ("mlp_out", "ln2") and not model.config.d_mlp:
            continue
        if place in ("ln1", "ln2") and not pre_norm:
            continue
        says = f"{called} ({place})"
        yield Swap(says, {"rows": f"after {place}"})
        yield Swap(
            f"{says} in the place of the stream before each layer", {"rows": f"each {place}"}
        )
    yield from norm_mistakes(asked)


STEPS: dict[str, Replaced] = {
    "no bias of the final norm": {"bias": 0},
    "no b_U": {"b_U": 0},
    "b_U twice": {"b_U": 2},
    "the bias of the final norm twice": {"bias": 2},
    "no bias of the final norm and no b_U": {"bias": 0, "b_U": 0},
    "no gain and no bias of the final norm": {"gain": np.ones_like, "bias": 0},
    "the bias of the final norm added before its gain": {"bias": "before gain"},
    "streams that are not centred: no mean is subtracted": {"centred": "no"},
    "streams that are not divided by their scale": {"scale": lambda *statistics: 1.0},
    "the scale of the first stream, the embedding, in every row": {"by": "first"},
    "the scale of the last stream in every row": {"by": "final"},
    "the scale of the last position at every position": {"by": "last_position"},
    "the scale of the first position at every position": {"by": "first_position"},
    "what each layer adds, and not the stream": {"made": "increments"},
    "streams a layer late: off by one": {"rows": "late"},
    "streams a layer early: off by one": {"rows": "early"},
    "the embedding of the tokens without positions in the first row": {"rows": "no_positions"},
    "the last stream in every row": {"rows": "last"},
    "the first stream in every row": {"rows": "first"},
}
"""The mistakes that do not depend on the model, with the steps that each replaces."""
PARTS = {
    "b_O": "b_O: the biases of attention are missing",
    "b_out": "b_out: the biases of the MLPs are missing",
    "b_V": "b_V: the biases of values are missing",
    "attn_out": "what attention writes",
    "mlp_out": "what the MLPs write",
    "embed": "the embedding of the tokens",
    "positions": "position vectors",
    "resid_pre.0": "the embedding of tokens and positions",
}
STREAMS = {
    "resid_mid": "the streams after attention",
    "attn_out": "what attention writes out, and not the stream",
    "mlp_out": "what each MLP writes out, and not the stream",
    "ln1": "streams that ln1 has normalised already",
    "ln2": "streams that ln2 has normalised already",
}
