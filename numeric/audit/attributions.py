"""Direct logit attribution, and what people compute instead.

What each head writes is put through the final norm, with the statistics of the whole stream, and
W_U. Ingredients: patterns, values, weights and biases of the heads, the norm (`final_norm`), and
the unembedding. Source: Elhage et al. 2021.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from algebra.errors import OtimesError
from numeric.audit.asked import Array, Asked, Replaced
from numeric.audit.final_norm import norm_mistakes, normed
from numeric.config import check_pre_norm


def direct_logit_attribution(asked: Asked, replaced: Replaced) -> Array:
    """Return what each head writes into each logit, behind the final norm."""
    model = asked.model
    check_pre_norm(model.config, "direct logit attribution")
    layers = range(model.n_layers)
    if not layers:
        raise OtimesError(f"{model.name} has no layers, and so no heads to attribute logits to")
    if "targets" in replaced:
        asked = replace(asked, screening=False)
    heads = np.stack([_written(asked, replaced, layer) for layer in layers])
    final = asked.places(["final"])["final"]
    by = replaced.get("by", "final")
    if by == "own":
        scaled_by = heads
    elif by == "last":
        scaled_by = final[-1:]
    elif by == "first_position":
        scaled_by = final[:1]
    elif by == "mean":
        scaled_by = final.mean(0, keepdims=True)
    elif by == "first":
        scaled_by = asked.places(["resid_pre.0"])["resid_pre.0"]
    elif by == "final":
        scaled_by = final
    else:
        names = [f"{by}.{layer}" for layer in layers]
        each = asked.places(names)
        scaled_by = np.stack([each[name] for name in names])
        scaled_by = scaled_by[:, None] if scaled_by.ndim == 3 else scaled_by
    heads = normed(asked, heads, scaled_by, replaced)
    logits = heads @ asked.unembedding(replaced.get("unembed", "W_U"))
    b_U = model.part("b_U")[: logits.shape[-1]]
    shares = {"whole": 1, "shared": model.n_layers * model.n_heads}
    logits = np.asarray(logits + b_U / shares[replaced["b_U"]] if "b_U" in replaced else logits)
    if "targets" in replaced and asked.tokens is not None:
        return _of_targets(logits, asked.tokens, replaced["targets"])
    return logits


def _of_targets(logits: Array, tokens: Array, targets: str) -> Array:
    """Return the logits of the tokens themselves, or of the next ones where there are any."""
    if targets == "own":
        return np.asarray(logits[..., np.arange(len(tokens)), tokens])
    return np.asarray(logits[..., np.arange(len(tokens) - 1), tokens[1:]])


def _written(asked: Asked, replaced: Replaced, layer: int) -> Array:
    """Return what the heads of a layer write [head, pos, d_model]."""
    model = asked.model
    if not {"pattern", "read", "values"} & replaced.keys():
        mixed = asked.places([f"z.{layer}"])[f"z.{layer}"]
    else:
        pattern = _patterns(asked, layer, replaced.get("pattern", ""))
        mixed = pattern @ _values(asked, layer, replaced)
    of, order = replaced.get("out", (layer, 0))
    W_O = np.asarray(model.part("W_O", layer if of is None else of))
    W_O = W_O[::-1] if order == "reversed" else np.roll(W_O, -order, axis=0)
    heads = mixed @ asked.moved(W_O)
    if "b_O" in replaced:
        shares = {"whole": 1, "shared": model.n_heads}[replaced["b_O"]]
        heads = heads + model.part("b_O", layer) / shares
    if replaced.get("b_V") == "none":
        heads = heads - (model.part("b_V", layer)[:, None] @ model.part("W_O", layer))
    return np.asarray(heads)


def _patterns(asked: Asked, layer: int, made: str | int) -> Array:
    """Return the attention patterns of a layer [head, query, key], or what is taken for them."""
    places = asked.places([f"pattern.{layer}", f"scores.{layer}", f"q.{layer}", f"k.{layer}"])
    pattern, scores = places[f"pattern.{layer}"], places[f"scores.{layer}"]
    one, before = np.eye(pattern.shape[-1]), np.tri(pattern.shape[-1])
    if isinstance(made, int):
        return np.roll(pattern, -made, axis=0)
    if made == "queries":
        return _softmax(np.where(before > 0, scores, -np.inf), axis=-2)
    if made == "all":
        product = places[f"q.{layer}"] @ places[f"k.{layer}"].swapaxes(1, 2)
        return _softmax(product / np.sqrt(asked.model.d_head), axis=-1)
    if made == "strict":
        others = pattern * (1 - one)
        return np.asarray(others / np.maximum(others.sum(-1, keepdims=True), 1e-300))
    return np.asarray(
        {
            "transposed": pattern.swapaxes(1, 2),
            "none": np.broadcast_to(one, pattern.shape),
            "uniform": np.broadcast_to(before / before.sum(1, keepdims=True), pattern.shape),
            "scores": np.where(before > 0, scores, 0.0),
            "no_diagonal": pattern * (1 - one),
            "diagonal": pattern * one,
        }.get(made, pattern)
    )


def _softmax(scores: Array, axis: int) -> Array:
    powers = np.exp(scores - scores.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


def _values(asked: Asked, layer: int, replaced: Replaced) -> Array:
    """Return the values of the heads [head, pos, d_head], or what is read for them."""
    model, read, values = asked.model, replaced.get("read", "v"), replaced.get("values", "")
    if values in ("stream", "other_norm"):
        norm = "ln2" if values == "other_norm" else "resid_pre"
        stream = asked.places([f"{norm}.{layer}"])[f"{norm}.{layer}"]
        return np.asarray(stream @ model.part("W_V", layer) + model.part("b_V", layer)[:, None])
    place = f"{read}.{layer}"
    found = asked.places([place])[place]
    if values == "tiled":  # groups in turn, as numpy.tile has them
        shares = model.n_heads // model.config.kv_heads
        return np.concatenate([found[::shares]] * shares)
    return np.asarray(np.roll(found, -values, axis=0) if isinstance(values, int) else found)


def attribution_mistakes(asked: Asked, shape: tuple[int, ...]) -> Iterator[tuple[str, Replaced]]:
    """Yield the known mistakes of a direct logit attribution."""
    model = asked.model
    if shape[-1:] == (model.d_model,):
        yield "what the heads write, before W_U", {"unembed": "none"}
        yield "what the heads write, before the norm and W_U", {"unembed": "none", "norm": "none"}
    n_pos = shape[-1] if shape else 0
    for targets, short in (("own", 0), ("next", 1)):
        if len(shape) == 3 and asked.tokens is not None and n_pos == len(asked.tokens) - short:
            yield f"the logits of the {targets} tokens only", {"targets": targets}
    yield "per-part norm statistics: each part is divided by its own scale", {"by": "own"}
    yield "the scale of the last position at every position", {"by": "last"}
    yield "the scale of the first stream, the embedding, and not of the last", {"by": "first"}
    yield "the scale of the first position at every position", {"by": "first_position"}
    yield "the scale of the mean position at every position", {"by": "mean"}
    kinds = {
        "resid_pre": "before",
        "resid_mid": "after the attention of",
        "resid_post": "after",
        "attn_out": "that all heads together write in",
    }
    for place, says in kinds.items():
        yield f"the scale of the stream {says} the own layer ({place})", {"by": place}
    for pattern, says in (
        ("transposed", "attention patterns transposed: queries and keys exchanged"),
        ("none", "no attention pattern: values where they stand"),
        ("uniform", "uniform attention patterns, 1/n, for those of the model"),
        ("scores", "scores for attention patterns: before the softmax"),
        ("queries", "attention patterns whose softmax goes over queries and not over keys"),
        ("all", "attention patterns without the causal mask"),
        ("no_diagonal", "attention patterns without their diagonal"),
        ("diagonal", "the diagonal of the attention patterns only"),
        ("strict", "attention patterns whose mask leaves the diagonal out"),
    ):
        yield says, {"pattern": pattern}
    for by in range(1, model.n_heads):
        yield f"attention patterns of another head ({by} further)", {"pattern": by}
        yield f"values of another head ({by} further)", {"values": by}
        yield f"W_O of another head ({by} further)", {"out": (None, by)}
    yield "W_O of the heads in reverse order", {"out": (None, "reversed")}
    for layer in range(model.n_layers):
        yield f"W_O of layer {layer} in every layer", {"out": (layer, 0)}
    if model.config.kv_heads < model.n_heads:
        yield "values of another group: groups in turn and not head by head", {"values": "tiled"}
    if model.config.norm != "none":
        yield "values of the stream before its norm", {"values": "stream"}
        if model.config.d_mlp:
            yield "values of what ln2 gives, another norm", {"values": "other_norm"}
    yield "keys for values", {"read": "k"}
    yield "queries for values", {"read": "q"}
    yield "parts that are not centred: their mean is not subtracted", {"centred": "no"}
    yield "parts that are not divided by the scale of the final norm", {"scale": "none"}
    yield "b_O shared out among the heads", {"b_O": "shared"}
    yield "b_O added to every head", {"b_O": "whole"}
    yield "heads without b_V", {"b_V": "none"}
    yield "the bias of the final norm added to every part", {"bias": "added"}
    yield "the bias of the final norm shared out among the parts", {"bias": "shared"}
    yield "b_U added to every part", {"b_U": "whole"}
    yield "b_U shared out among the parts", {"b_U": "shared"}
    yield from norm_mistakes(asked)
