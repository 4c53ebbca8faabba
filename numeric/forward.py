"""The reference forward pass: one transformer, all activations recorded, in float64.

Theorems and other implementations are compared with it, so it is written to be *read*: plain matrix
products, one head at a time, as in the formulas of the papers. It does not use the prover.
Sources: Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”; the papers named
in `config` and `functions`.

A block maps the residual stream X (`resid_pre`) to `resid_post`:

    attention   Y = norm(X),  Z = Y + W_pos in a shortformer model, else Y
                A = softmax of (Z W_Q + b_Q)(Z W_K + b_K)ᵀ / √d_head, both rotated if rotary
                M = X + Σ_heads A (Y W_V + b_V) W_O + b_O                           (resid_mid)
    MLP         N = norm(M), or norm(X) in a parallel block
                M + act(N W_in + b_in) W_out + b_out                               (resid_post)
                gated: act(N W_gate + b_gate) · (N W_in + b_in) instead of act(N W_in + b_in)
                experts: each neuron times the weight of its expert (`experts`)

With norm_order "post" attention reads X itself (Y = X), and the sums are normalised: N = norm(M)
replaces M, in the MLP and in the next sum, and norm(resid_post) is the next X. With "output" and
"both" the outputs of attention and MLP are normalised before they are added, with "output" instead
of Y and N. Which hook points there are, in which order, and what each reads is in `block`.

Activations of one prompt have the shapes below. Prompts of one length may be stacked: every
activation then has their axes first, and each linear map is one product for all of them.
"""

from collections.abc import Container
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from otimes.algebra.errors import OtimesError
from otimes.numeric.block import OF_HEADS, passes_on
from otimes.numeric.config import ENCODER, Config
from otimes.numeric.experts import by_neuron, routing
from otimes.numeric.functions import (
    ACTIVATION,
    alibi,
    capped,
    linear,
    masked_softmax,
    normalise,
    rotate,
    visible_keys,
)
from otimes.numeric.layer import HeadWeights, Layer

Places = dict[str, np.ndarray]


@runtime_checkable
class Weights(Protocol):
    """The part of `Model` that the forward pass needs: configuration and weights in float64."""

    @property
    def config(self) -> Config:
        """The configuration of the model."""

    def part(self, name: str, index: Any = slice(None)) -> np.ndarray:
        """Return a tensor, or its part at `index` of the first axis."""

    def layer(self, number: int) -> Layer:
        """Return the weights of one block."""


def forward_pass(
    model: Weights,
    tokens: Int[np.ndarray, "*prompts pos"],
    record: Container[str] | None = None,
    embed: Float[np.ndarray, "*points pos d_model"] | None = None,
) -> Places:
    """Return all activations by name, or those in `record`; `Model.forward` checks the arguments.

    `embed` [pos, d_model] (token embeddings), then for each layer l `resid_pre.l`, `ln1.l`,
    `qk_in.l` (the input of queries and keys) [pos, d_model], `q.l`, `k.l` (after rotary
    embeddings), `v.l`, `z.l` [head, pos, d_head], `scores.l`, `pattern.l` [head, query, key],
    `head_out.l` [head, pos, d_model], `attn_out.l`, `resid_mid.l`, `ln2.l` [pos, d_model],
    `mlp_pre.l`, `mlp_post.l` [pos, d_mlp], with experts `router.l` (logits) [pos, n_routed],
    `routing.l` (weights of experts) [pos, expert] and `routed.l` (weighted neurons) [pos, d_mlp],
    `mlp_out.l`, `resid_post.l`, and finally `final`,
    `ln_final` [pos, d_model] and `logits` [pos, d_vocab]. A model without norms has no `ln…`, one
    without MLPs no `mlp…`. With norm_order "post", `ln1.l` is the norm of `resid_mid.l` and `ln2.l`
    that of `resid_post.l`. With "output" and "both", `ln1_post.l` and `ln2_post.l` are the norms of
    `attn_out.l` and `mlp_out.l`. The argument `embed` replaces the token embeddings.

    Raises: OtimesError naming the activation where float64 overflows; for an encoder.
    """
    config, n_pos = model.config, tokens.shape[-1]
    if not config.causal:
        raise OtimesError(f"the forward pass is not for {ENCODER}")
    W_pos = model.part("W_pos", slice(n_pos))
    places: Places = {}

    def keep(name: str, value: np.ndarray) -> np.ndarray:
        if record is None or name in record:
            places[name] = value
        return value

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if embed is None:
            embed = model.part("W_E", tokens) * config.embed_scale
        residual = keep("embed", embed)
        if config.positions == "learned":
            residual = residual + W_pos
        if config.embed_norm:
            gain, bias = model.part("ln_embed_gain"), model.part("ln_embed_bias")
            residual = normalise(residual, config.norm, config.norm_eps, gain, bias)
            keep("ln_embed", residual)
        for number in range(config.n_layers):
            at = block(config.of_layer(number), model.layer(number), residual, W_pos)
            for place, value in at.items():
                keep(f"{place}.{number}", value)
            end = passes_on(config)
            residual = _finite(at[end], f"{end}.{number}")
        keep("final", residual)
        if config.final_norm:
            gain, bias = model.part("ln_final_gain"), model.part("ln_final_bias")
            residual = normalise(residual, config.norm, config.norm_eps, gain, bias)
            keep("ln_final", residual)
        if record is None or "logits" in record:  # the largest product, often not needed
            logits = linear(residual, model.part("W_U")) + model.part("b_U")
            keep("logits", _finite(capped(logits, config.logit_cap), "logits"))
    return places


def block(
    config: Config,
    layer: Layer,
    resid_pre: Float[np.ndarray, "*prompts pos d_model"],
    W_pos: Float[np.ndarray, "pos d_model"],
) -> Places:
    """Return the activations of one block, named without its number: attention, then the MLP."""
    norm = partial(normalise, kind=config.norm, eps=config.norm_eps)
    first = partial(norm, gain=layer.ln1_gain, bias=layer.ln1_bias)
    second = partial(norm, gain=layer.ln2_gain, bias=layer.ln2_bias)
    at: Places = {"resid_pre": resid_pre}
    if config.post_norm:
        at |= attention(config, layer, resid_pre, W_pos)
        at["resid_mid"] = resid_pre + at["attn_out"]
        resid_post = at["ln1"] = first(at["resid_mid"])
        if not config.d_mlp:
            return {**at, "resid_post": resid_post}
        at |= mlp(config, layer, at["ln1"])
        at["resid_post"] = at["ln1"] + at["mlp_out"]
        return {**at, "ln2": second(at["resid_post"])}
    attn_in = resid_pre
    if config.norms_before:
        attn_in = at["ln1"] = first(resid_pre)
    at |= attention(config, layer, attn_in, W_pos)
    written = at["attn_out"]
    if config.norms_output:
        written = at["ln1_post"] = norm(written, gain=layer.ln1_post_gain, bias=layer.ln1_post_bias)
    resid_post = at["resid_mid"] = resid_pre + written
    if config.d_mlp:
        mlp_in = resid_pre if config.parallel else at["resid_mid"]
        if config.norms_before:
            mlp_in = at["ln2"] = second(mlp_in)
        at |= mlp(config, layer, mlp_in)
        written = at["mlp_out"]
        if config.norms_output:
            gain, bias = layer.ln2_post_gain, layer.ln2_post_bias
            written = at["ln2_post"] = norm(written, gain=gain, bias=bias)
        resid_post = at["resid_mid"] + written
    return {**at, "resid_post": resid_post}


def attention(
    config: Config,
    layer: Layer,
    rows: Float[np.ndarray, "*prompts pos d_model"],
    W_pos: Float[np.ndarray, "pos d_model"],
) -> Places:
    """Return the activations of the heads of one layer, stacked, and their sum with b_O.

    `config` is that of the layer (`Config.of_layer`).
    """
    qk_in = rows + W_pos if config.positions == "shortformer" else rows
    visible = visible_keys(rows.shape[-2], config.window)
    weights = [layer.head(h) for h in range(config.n_heads)]
    normed = _normed_together(config, weights, qk_in) if config.qk_norm == "all" else None
    latent = _latents(config, layer, qk_in, rows) if config.kv_rank else {}
    query_in, source = latent.get("q_latent", qk_in), latent.get("kv_latent")
    heads = [
        one_head(
            query_in,
            qk_in if source is None else source,
            rows if source is None else source,
            visible,
            head,
            config,
            normed[head.number] if normed else None,
            None if source is None else linear(qk_in, layer.W_KR),
        )
        for head in weights
    ]
    at = latent | {place: np.stack([head[place] for head in heads], axis=-3) for place in OF_HEADS}
    return {"qk_in": qk_in, **at, "attn_out": at["head_out"].sum(axis=-3) + layer.b_O}


def _latents(config: Config, layer: Layer, qk_in: np.ndarray, rows: np.ndarray) -> Places:
    """Return the normed projections that queries, and keys and values, are made of."""

    def latent(read: np.ndarray, weight: np.ndarray, gain: np.ndarray) -> np.ndarray:
        none = np.zeros_like(gain)
        return normalise(linear(read, weight), "rms", config.latent_eps, gain, none)

    queries = {}
    if config.q_rank:
        queries["q_latent"] = latent(qk_in, layer.W_DQ, layer.q_latent_gain)
    return {**queries, "kv_latent": latent(rows, layer.W_DKV, layer.kv_latent_gain)}


Rows = Float[np.ndarray, "*prompts pos d_head"]


def one_head(
    query_in: Float[np.ndarray, "*prompts query d_model"],
    key_in: Float[np.ndarray, "*prompts key d_source"],
    value_in: Float[np.ndarray, "*prompts key d_source"],
    visible: Bool[np.ndarray, "query key"],
    head: HeadWeights,
    config: Config | None = None,
    normed: tuple[Rows, Rows] | None = None,
    shared_key: Float[np.ndarray, "*prompts key rotary_dims"] | None = None,
) -> Places:
    """Return the activations of one head: $A = softmax(Q K^T / √d_head)$ and $A V W_O$.

    For cross-attention, `key_in` and `value_in` differ from `query_in`, with any number of keys and
    any boolean mask `visible`. With the `config` of a layer, queries and keys are normalised and
    rotated, and scores scaled, capped and lowered with the distance, as it says. `normed` are the
    queries and keys where they are normalised together with those of the other heads, `shared_key`
    the first entries of the keys in latent attention.
    """
    q = linear(query_in, head.W_Q) + head.b_Q
    k = linear(key_in, head.W_K) + head.b_K[..., -head.W_K.shape[-1] :]
    v = linear(value_in, head.W_V) + head.b_V
    if shared_key is not None:
        k = np.concatenate([shared_key, k], axis=-1)
    if normed is not None:
        q, k = normed
    elif config is not None and config.qk_norm == "head":
        none = np.zeros(q.shape[-1])
        q = normalise(q, config.norm, config.norm_eps, head.q_norm_gain, none)
        k = normalise(k, config.norm, config.norm_eps, head.k_norm_gain, none)
    if config is not None and config.positions == "rotary":
        q = rotate(q, *config.rotation)
        k = rotate(k, *config.rotation)
    scale = 1 / np.sqrt(q.shape[-1]) if config is None else config.score_scale
    scores = q @ k.swapaxes(-2, -1) * scale
    if config is not None:
        scores = capped(scores, config.score_cap)
    if config is not None and config.positions == "alibi":
        scores = scores + alibi(q.shape[-2], config.alibi_slopes[head.number])
    sink = (head.sink,) if config is not None and config.sinks else ()
    pattern = masked_softmax(scores, visible, *sink)
    z = pattern @ v
    return {
        "q": q,
        "k": k,
        "v": v,
        "scores": scores,
        "pattern": pattern,
        "z": z,
        "head_out": linear(z, head.W_O),
    }


def _normed_together(
    config: Config, heads: list[HeadWeights], qk_in: Float[np.ndarray, "*prompts pos d_model"]
) -> list[tuple[Rows, Rows]]:
    """Return queries and keys of each head after a norm over all heads of a position."""

    def normed(rows: list[np.ndarray], gains: list[np.ndarray]) -> list[np.ndarray]:
        wide, gain = np.concatenate(rows, axis=-1), np.concatenate(gains)
        wide = normalise(wide, config.norm, config.norm_eps, gain, np.zeros_like(gain))
        return np.split(wide, len(heads), axis=-1)

    queries = [linear(qk_in, head.W_Q) + head.b_Q for head in heads]
    keys = [linear(qk_in, head.W_K) + head.b_K for head in heads]
    q = normed(queries, [head.q_norm_gain for head in heads])
    k = normed(keys, [head.k_norm_gain for head in heads])
    return [*zip(q, k, strict=True)]


def mlp(config: Config, layer: Layer, rows: Float[np.ndarray, "*prompts pos d_model"]) -> Places:
    """Return the activations of the MLP, which acts on each position separately."""
    pre = up = linear(rows, layer.W_in) + layer.b_in
    if config.gated:
        pre = linear(rows, layer.W_gate) + layer.b_gate
    at = {"mlp_pre": pre, "mlp_post": gated_neurons(config, pre, up)}
    if not config.n_experts:
        return {**at, "mlp_out": linear(at["mlp_post"], layer.W_out) + layer.b_out}
    at["router"] = linear(rows, layer.W_router) + layer.b_router
    shares = at["routing"] = routing(config, at["router"], layer.b_choice)
    at["routed"] = at["mlp_post"] * by_neuron(config, shares)
    bias = layer.b_out + linear(shares[..., : config.n_experts], layer.b_experts)
    return {**at, "mlp_out": linear(at["routed"], layer.W_out) + bias}


def gated_neurons(config: Config, pre: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Return the activated neurons of an MLP, times the linear branch `up` if it is gated."""
    assert config.activation is not None  # the configuration of a model with an MLP names one
    activate = ACTIVATION[config.activation]
    if not config.gated:
        return activate(pre)
    if not config.gate_limit:
        return activate(pre) * up
    limit = config.gate_limit
    return np.asarray(activate(np.minimum(pre, limit)) * (np.clip(up, -limit, limit) + 1))


def _finite(array: np.ndarray, place: str) -> np.ndarray:
    """Return the array. Raises: OtimesError if it is not finite, by overflow or division by 0."""
    if not np.isfinite(array).all():
        entry = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise OtimesError(
            f"{place} is not finite: its entry {entry} is {array[entry]}. The weights are so large"
            " that float64 overflows, or a norm divides by zero (norm_eps=0)"
        )
    return array
