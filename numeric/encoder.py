r"""A bidirectional encoder: the forward pass without a causal mask, with the weights of a `Model`.

    BERT        norm_order "post", learned positions, a norm of the embedding, biases
    T5          norm_order "pre", RMSNorm, scores without a scale, one bias of distances for all
                layers (`relative_bias`)
    ViT         norm_order "pre", LayerNorm, rows made of patches instead of tokens

Source: Devlin et al. 2019, “BERT”; Raffel et al. 2020, “Exploring the Limits of Transfer Learning
with a Unified Text-to-Text Transformer”, §2.1; Dosovitskiy et al. 2021, “An Image is Worth 16x16
Words”.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.config import Config, check_settings
from otimes.numeric.forward import Places, mlp
from otimes.numeric.functions import linear, masked_softmax, normalise
from otimes.numeric.given import real_array
from otimes.numeric.layer import Layer
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import is_batch, read_prompt

SUPPORTED = ("norm_order", "embed_scale", "embed_norm", "attn_scale", "causal")


def encode(
    model: ModelSource,
    tokens: Any = None,
    *,
    rows: Float[np.ndarray, "pos d_model"] | None = None,
    keys: Bool[np.ndarray, " pos"] | None = None,
    score_bias: Float[np.ndarray, "head query key"] | None = None,
) -> Places:
    r"""Return the activations of a pass in which every position attends to every position.

    `tokens` is one prompt; or `rows` are its embeddings, as of the patches of an image, or of
    tokens with segment embeddings added. `keys` are the positions that are no padding (default:
    all). `score_bias` is added to the scores of every layer. The activations are named as those of
    `Model.forward`: `resid_pre.l`, `scores.l`, `pattern.l` [head, query, key], `z.l`, `attn_out.l`,
    `resid_mid.l`, `mlp_out.l`, `resid_post.l`, the norms where they are, and `final`, `ln_final`.
    Without a mask nothing is computed in an order: see the theorems attention_forgets_order and
    no_cache_without_a_mask.
    Source: Devlin et al. 2019; Raffel et al. 2020; Dosovitskiy et al. 2021.

    >>> from otimes.numeric.systems import systems
    >>> places = encode(systems("BERT-base").small(), [3, 1, 4])
    >>> bool((places["pattern.0"] > 0).all())
    True

    Raises: OtimesError for a model with rotary or other special attention, or an invalid prompt;
    ShapeError for rows, keys or a bias of another shape.
    """
    loaded = load_model(model)
    config = loaded.config
    _check(loaded)
    x = _embedded(loaded, tokens, rows)
    visible = _visible(keys, len(x))
    added = _checked_bias(score_bias, (config.n_heads, len(x), len(x)))
    places: Places = {"embed": x}
    if config.positions == "learned":
        x = x + loaded.part("W_pos", slice(len(x)))
    if config.embed_norm:
        gain, bias = loaded.part("ln_embed_gain"), loaded.part("ln_embed_bias")
        x = places["ln_embed"] = normalise(x, config.norm, config.norm_eps, gain, bias)
    for number in range(config.n_layers):
        at = _block(config, loaded.layer(number), x, visible, added)
        places |= {f"{name}.{number}": value for name, value in at.items()}
        x = at["ln2" if config.post_norm and config.d_mlp else "resid_post"]
    places["final"] = x
    if config.final_norm:
        gain, bias = loaded.part("ln_final_gain"), loaded.part("ln_final_bias")
        places["ln_final"] = normalise(x, config.norm, config.norm_eps, gain, bias)
    return places


def _check(model: Model) -> None:
    config = model.config
    check_settings(config, "encode", SUPPORTED)
    if config.norm_order not in ("pre", "post") or config.parallel:
        raise OtimesError(
            f"encode: norms before or after each sum, one after the other, not {model}"
        )
    if config.positions not in ("none", "learned"):
        raise OtimesError(
            f"encode: positions are learned or none (or a `score_bias`), not {config.positions}"
        )


def _embedded(model: Model, tokens: Any, rows: np.ndarray | None) -> np.ndarray:
    if (tokens is None) == (rows is None):
        raise OtimesError("encode takes either tokens or rows, and not both")
    if rows is None:
        if is_batch(tokens):
            raise OtimesError("encode takes one prompt, got a batch: encode one at a time")
        read = read_prompt(model, tokens).tokens
        return np.asarray(model.part("W_E", read) * model.config.embed_scale)
    found = real_array(rows, "rows")
    if found.ndim != 2 or found.shape[1] != model.d_model or not len(found):
        raise ShapeError(f"rows are (pos, d_model = {model.d_model}), got {found.shape}")
    if len(found) > model.n_ctx:
        raise OtimesError(f"{len(found)} rows, but {model.name} takes at most n_ctx={model.n_ctx}")
    return found


def _visible(keys: np.ndarray | None, n_pos: int) -> np.ndarray:
    if keys is None:
        return np.ones((n_pos, n_pos), dtype=bool)
    found = np.asarray(keys)
    if found.shape != (n_pos,) or found.dtype != bool:
        raise ShapeError(f"keys are {n_pos} booleans, got {found.dtype} of shape {found.shape}")
    return np.broadcast_to(found, (n_pos, n_pos))


def _checked_bias(score_bias: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | float:
    if score_bias is None:
        return 0.0
    found = real_array(score_bias, "score_bias")
    if found.shape != shape:
        raise ShapeError(f"score_bias is (head, query, key) = {shape}, got {found.shape}")
    return found


def _block(
    config: Config, layer: Layer, x: np.ndarray, visible: np.ndarray, bias: np.ndarray | float
) -> Places:
    def first(rows: np.ndarray) -> np.ndarray:
        return normalise(rows, config.norm, config.norm_eps, layer.ln1_gain, layer.ln1_bias)

    def second(rows: np.ndarray) -> np.ndarray:
        return normalise(rows, config.norm, config.norm_eps, layer.ln2_gain, layer.ln2_bias)

    at: Places = {"resid_pre": x}
    read = x
    if config.norms_before:
        read = at["ln1"] = first(x)
    at |= _attention(config, layer, read, visible, bias)
    at["resid_mid"] = x + at["attn_out"]
    stream = at["resid_mid"]
    if config.post_norm:
        stream = at["ln1"] = first(stream)
    if not config.d_mlp:
        return {**at, "resid_post": stream}
    mlp_in = stream
    if config.norms_before:
        mlp_in = at["ln2"] = second(stream)
    at |= mlp(config, layer, mlp_in)
    at["resid_post"] = stream + at["mlp_out"]
    if config.post_norm:
        at["ln2"] = second(at["resid_post"])
    return at


def _attention(
    config: Config, layer: Layer, rows: np.ndarray, visible: np.ndarray, bias: np.ndarray | float
) -> Places:
    """Return the activations of all heads, one head after the other."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in ("scores", "pattern", "z")}
    out = np.zeros_like(rows) + layer.b_O
    for number in range(config.n_heads):
        head = layer.head(number)
        q = linear(rows, head.W_Q) + head.b_Q
        k = linear(rows, head.W_K) + head.b_K
        scores = q @ k.T * config.score_scale
        if isinstance(bias, np.ndarray):
            scores = scores + bias[number]
        pattern = masked_softmax(scores, visible)
        z = pattern @ (linear(rows, head.W_V) + head.b_V)
        out = out + linear(z, head.W_O)
        for name, value in (("scores", scores), ("pattern", pattern), ("z", z)):
            found[name].append(value)
    return {**{name: np.stack(each) for name, each in found.items()}, "attn_out": out}


def relative_bias(
    table: Float[np.ndarray, "bucket head"],
    n_pos: int,
    max_distance: int = 128,
    bidirectional: bool = True,
) -> Float[np.ndarray, "head query key"]:
    r"""Return T5's bias of each score, `table[bucket(key - query)]` [head, query, key].

    Distances below half of the buckets have a bucket each; longer ones share buckets that grow
    logarithmically up to `max_distance`, and all beyond are in the last. If `bidirectional`, later
    keys have the second half of the buckets; else they are in the bucket of distance 0.
    Proved by: bias_of_the_query_changes_nothing. Source: Raffel et al. 2020, §2.1.

    >>> relative_bias(np.arange(8.0)[:, None], 3)[0].tolist()
    [[0.0, 5.0, 6.0], [1.0, 0.0, 5.0], [2.0, 1.0, 0.0]]

    Raises: ShapeError for a table that is no matrix; OtimesError if there are too few buckets.
    """
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2:
        raise ShapeError(f"the table is (bucket, head), got shape {values.shape}")
    count = len(values) // 2 if bidirectional else len(values)
    exact = count // 2
    if exact < 1 or max_distance <= exact or n_pos < 1:
        raise OtimesError(
            f"{len(values)} buckets up to distance {max_distance} for {n_pos} positions: there must"
            " be a bucket for a distance, a larger largest distance, and a position"
        )
    offset = np.arange(n_pos)[None, :] - np.arange(n_pos)[:, None]
    distance = np.abs(offset) if bidirectional else np.maximum(-offset, 0)
    steps = np.log(np.maximum(distance, exact) / exact) / np.log(max_distance / exact)
    far = np.minimum(exact + (steps * (count - exact)).astype(int), count - 1)
    bucket = np.where(distance < exact, distance, far)
    if bidirectional:
        bucket = bucket + count * (offset > 0)
    return np.asarray(values[bucket].transpose(2, 0, 1))
