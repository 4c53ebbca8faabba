"""The logit lens, and what people compute instead.

It puts the stream before each layer, and the last one, through the final norm and W_U. Ingredients:
the streams, the norm (`final_norm`), and the unembedding. Source: nostalgebraist 2020.
"""

from collections.abc import Iterator

import numpy as np

from numeric.audit.asked import Array, Asked, Replaced
from numeric.audit.final_norm import norm_mistakes, normed


def logit_lens(asked: Asked, replaced: Replaced) -> Array:
    """Return the logits of the stream before each layer and at the end, each by its own norm."""
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
        rows = normed(asked, rows, rows, {}, bias=True)
        by[""] = rows
    rows = normed(asked, rows, by[replaced.get("by", "")], replaced, bias=True)
    if replaced.get("twice"):
        rows = normed(asked, rows, rows, replaced, bias=True)
    logits = rows @ asked.unembedding(replaced.get("unembed", "W_U"))
    times = {"none": 0, "twice": 2}.get(replaced.get("b_U", ""), 1)
    if replaced.get("unembed") == "none":
        return np.asarray(logits)
    return np.asarray(logits + times * model.part("b_U")[: logits.shape[-1]])


def _part_of_streams(asked: Asked, part: str) -> Array:
    """Return what a part has added to the streams of a lens up to each."""
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
    """Return which places the rows of a lens are."""
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


def lens_mistakes(asked: Asked, shape: tuple[int, ...]) -> Iterator[tuple[str, Replaced]]:
    """Yield the known mistakes of a logit lens."""
    model = asked.model
    if shape[-1:] == (model.d_model,):
        yield "streams behind the final norm, before W_U", {"unembed": "none"}
        yield "streams before the final norm and W_U", {"unembed": "none", "norm": "none"}
    if shape[:1] == (model.n_layers,):
        yield "the last stream is missing: a row for each layer only", {"rows": "without_last"}
        yield "the first stream is missing: the stream after each layer", {"rows": "without_first"}
        yield "what each layer adds, and not the stream", {"made": "increments_only"}
    yield "no bias of the final norm", {"bias": "none"}
    yield "no b_U", {"b_U": "none"}
    yield "b_U twice", {"b_U": "twice"}
    yield "the bias of the final norm twice", {"bias": "twice"}
    yield "no bias of the final norm and no b_U", {"bias": "none", "b_U": "none"}
    yield "no gain and no bias of the final norm", {"gain": "none", "bias": "none"}
    yield "the bias of the final norm added before its gain", {"bias": "before_gain"}
    yield "streams that are not centred: no mean is subtracted", {"centred": "no"}
    yield "streams that are not divided by their scale", {"scale": "none"}
    yield "the scale of the first stream, the embedding, in every row", {"by": "first"}
    yield "the scale of the last position at every position", {"by": "last_position"}
    yield "the scale of the first position at every position", {"by": "first_position"}
    yield "what each layer adds, and not the stream", {"made": "increments"}
    yield "streams a layer late: off by one", {"rows": "late"}
    yield "streams a layer early: off by one", {"rows": "early"}
    yield "the embedding of the tokens without positions in the first row", {"rows": "no_positions"}
    if model.config.final_norm:
        yield (
            "the last stream normalised before the final norm: the norm twice",
            {"rows": "final_normed"},
        )
    yield "the last stream in every row", {"rows": "last"}
    yield "the first stream in every row", {"rows": "first"}
    if not model.n_layers:
        return
    for part, says in PARTS.items():
        if asked.model.config.d_mlp or part != "mlp_out":
            yield f"streams without {says}", {"rows": "", "without": part}
    known = [name for name, has in _places(asked).items() if has]
    for place in known:
        says = f"{STREAMS[place]} ({place})"
        yield says, {"rows": f"after {place}"}
        yield f"{says} in the place of the stream before each layer", {"rows": f"each {place}"}
    yield from norm_mistakes(asked)


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


def _places(asked: Asked) -> dict[str, bool]:
    """Return which of these places the model has."""
    config = asked.model.config
    normed_before = config.norm != "none" and not config.post_norm
    return {
        "resid_mid": True,
        "attn_out": True,
        "mlp_out": bool(config.d_mlp),
        "ln1": normed_before,
        "ln2": normed_before and bool(config.d_mlp),
    }
