r"""The reverse pass: the gradient of a logit with respect to every activation of a forward pass.

The adjoint of `numeric/forward.py`: plain matrix products, all heads of a layer at once, from the
logit back to the embedding. Row convention, $G_Y$ the gradient with respect to Y:

    product Y = X W         $G_X = G_Y W^T$
    pattern A = softmax S   $G_S = A · (G_A - \text{rowsum}(A · G_A))$
    norm $y = g C(x) / s$   $G_x = C(h - x̂ \, mean(h x̂)) / s$ with $h = g · G_y$, $x̂ = C(x) / s$

With `frozen` the patterns, the scales of the norms and the factors act(x)/x are constants, and the
model is affine in its embedding. Then gradient times value, summed over the embedding and all
biases, *is* the logit: the relevance of `relevance`.

As in the forward pass, prompts or points may be stacked: their axes come first in all activations.

Source: Rumelhart, Hinton and Williams 1986; frozen: Ali et al. 2022, “XAI for Transformers”.
"""

from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from otimes.numeric.config import PATTERN_SETTINGS, Config, check_settings
from otimes.numeric.experts import by_expert, by_neuron, routing_back
from otimes.numeric.forward import Places, forward_pass
from otimes.numeric.functions import (
    ACTIVATION,
    DERIVATIVE,
    alibi,
    centred,
    linear,
    norm_scale,
    normalise,
    rotate,
)
from otimes.numeric.model import Model

SETTINGS = (*PATTERN_SETTINGS, "kv_rank", "embed_scale", "output_norms", "n_experts")
"""The settings that the reverse pass takes into account."""


class Goal(NamedTuple):
    """A logit or logit difference: (normed) final residual stream at `position`, times `row`.

    `constant`, the term of b_U, is added. Stacked prompts may have a row each.
    """

    position: int
    row: Float[np.ndarray, "*prompts d_model"]
    constant: float


def run(model: Model, tokens: np.ndarray, embed: np.ndarray | None = None) -> Places:
    """Return the activations that a reverse pass needs; `embed` replaces the token embeddings."""
    check_settings(model.config, "gradients and relevance", SETTINGS)
    return forward_pass(model, tokens, _needed(model.config), embed)


def value(places: Mapping[str, np.ndarray], goal: Goal) -> float:
    """Return the logit or logit difference of a recorded forward pass."""
    last = places["ln_final"] if "ln_final" in places else places["final"]
    return float(last[goal.position] @ goal.row) + goal.constant


def reverse_pass(
    model: Model,
    places: Mapping[str, np.ndarray],
    goal: Goal,
    frozen: bool = False,
    epsilon: float = 0.0,
    record: Container[str] | None = None,
    without: int | None = None,
) -> Places:
    """Return the gradient of the goal with respect to each activation, by name and of its shape.

    All activations are covered except `scores`, `head_out`, latents and, with `frozen`, queries and
    keys;
    the linear branch of a gated MLP is `mlp_up`. With `record` only those in it are kept. `places`
    are the activations from `run`. A positive `epsilon` multiplies the gradient at each sum z by
    $|z| / (|z| + ε)$ (`relevance`). Gradients do not flow through the components of the layer
    `without`, and there are none inside it.
    """
    config = model.config
    back = _Back(config, places, frozen, epsilon)
    gradients: Places = {}

    def keep(name: str, gradient: np.ndarray) -> np.ndarray:
        if record is None or name in record:
            gradients[name] = gradient
        return gradient

    last = np.zeros_like(places["final"])
    last[..., goal.position, :] = goal.row
    if epsilon:
        size = abs(value(places, goal))
        last *= size / (size + epsilon)
    if config.final_norm:
        keep("ln_final", last)
        last = back.norm(last, "final", model.part("ln_final_gain"))
    stream = keep("final", last)
    for layer in reversed(range(config.n_layers)):
        if layer == without:
            for place in ("resid_post", "resid_mid", "resid_pre"):
                keep(f"{place}.{layer}", stream)
            continue
        at = _block(model, back, layer, stream)
        for place, each in at.items():
            keep(f"{place}.{layer}", each)
        stream = at["resid_pre"]
    if config.positions == "learned":  # the stream starts as a sum, too
        stream = back.sums(stream, "resid_pre.0" if config.n_layers else "final")
    keep("embed", stream)
    return gradients


def reader_gradients(
    model: Model, places: Mapping[str, np.ndarray], gradients: Mapping[str, np.ndarray], layer: int
) -> Places:
    """Return the gradient at the residual stream as each reader of a layer reads it.

    `q`, `k` and `v` are [head, pos, d_model], one for each head, `mlp_pre` is [pos, d_model]: the
    gradient through that head's queries, keys or values, or through the MLP, alone. `gradients` are
    those of `reverse_pass`. With qk_norm="all" heads are not separate, and it does not apply.
    """
    config = model.config.of_layer(layer)
    at: Places = {}
    rows = places[f"resid_pre.{layer}"][..., None, :, :]
    normed = _normed(model, rows, layer) if config.qk_norm != "none" else rows
    for letter in "QKV":
        W, heads = model.part(f"W_{letter}", layer), gradients[f"{letter.lower()}.{layer}"]
        if letter != "V":
            heads = _turned_back(config, heads)
            if config.qk_norm == "head":
                before = normed @ W + model.part(f"b_{letter}", layer)[:, None]
                gain = model.part(f"{letter.lower()}_norm_gain", layer)
                heads = _normed_back(config, heads, before, gain)
        at[letter.lower()] = _before_norm(model, heads @ _across(W), rows, layer, "ln1")
    if config.d_mlp:
        source = places[f"{'resid_pre' if config.parallel else 'resid_mid'}.{layer}"]
        read = linear(
            gradients[f"mlp_pre.{layer}"],
            model.part("W_gate" if config.gated else "W_in", layer).T,
        )
        if config.gated:
            read = read + linear(gradients[f"mlp_up.{layer}"], model.part("W_in", layer).T)
        at["mlp_pre"] = _before_norm(model, read, source, layer, "ln2")
    return at


def _normed(model: Model, rows: np.ndarray, layer: int) -> np.ndarray:
    config = model.config
    if not config.norms_before:
        return rows
    gain, bias = (model.part(f"ln1_{part}", layer) for part in ("gain", "bias"))
    return normalise(rows, config.norm, config.norm_eps, gain, bias)


def _before_norm(
    model: Model, gradient: np.ndarray, rows: np.ndarray, layer: int, name: str
) -> np.ndarray:
    """Return the gradient at the rows that a norm reads, if there is one."""
    config = model.config
    if not config.norms_before:
        return gradient
    back = _Back(config, {"rows": rows}, frozen=False, epsilon=0.0)
    return back.norm(gradient, "rows", model.part(f"{name}_gain", layer))


def _block(model: Model, back: "_Back", layer: int, resid_post: np.ndarray) -> Places:
    """Return the gradients at the activations of a block, given the one at its output."""
    config = model.config

    def part(name: str) -> np.ndarray:
        return model.part(name, layer)

    at: Places = {"resid_post": resid_post}
    to_mid = resid_post
    to_pre = np.zeros_like(to_mid)
    if config.d_mlp:  # without an MLP, resid_post is resid_mid
        at["resid_post"] = to_mid = back.sums(resid_post, f"resid_post.{layer}")
        to_out = to_mid
        if config.norms_output:
            at["ln2_post"] = to_mid
            to_out = back.norm(to_mid, f"mlp_out.{layer}", part("ln2_post_gain"))
        at |= back.mlp(to_out, layer, part)
        source = "resid_pre" if config.parallel else "resid_mid"
        read = at.pop("mlp_in")
        if config.norms_before:
            at["ln2"] = read
            read = back.norm(read, f"{source}.{layer}", part("ln2_gain"))
        if config.parallel:
            to_pre = read
        else:
            to_mid = to_mid + read
    at["resid_mid"] = to_mid = back.sums(to_mid, f"resid_mid.{layer}")
    to_out = to_mid
    if config.norms_output:
        at["ln1_post"] = to_mid
        to_out = back.norm(to_mid, f"attn_out.{layer}", part("ln1_post_gain"))
    at |= back.attention(to_out, layer, part)
    read = at.pop("attn_in")
    if config.norms_before:
        at["ln1"] = read
        read = back.norm(read, f"resid_pre.{layer}", part("ln1_gain"))
    at["resid_pre"] = to_mid + to_pre + read
    return at


class _Back:
    """The steps of a reverse pass, each the adjoint of one of the forward pass."""

    def __init__(
        self, config: Config, places: Mapping[str, np.ndarray], frozen: bool, epsilon: float
    ) -> None:
        self.config, self.places, self.frozen, self.epsilon = config, places, frozen, epsilon

    def sums(self, gradient: np.ndarray, place: str) -> np.ndarray:
        """Return the gradient at an activation that is a sum, damped if epsilon is positive."""
        return self._damped(gradient, self.places[place])

    def norm(self, gradient: np.ndarray, source: str, gain: np.ndarray) -> np.ndarray:
        """Return the gradient at the input of a norm."""
        rows, kind = self.places[source], self.config.norm
        scale = norm_scale(rows, kind, self.config.norm_eps)
        read = gradient * gain
        if not self.frozen:
            unit = centred(rows, kind) / scale
            read = read - unit * (read * unit).mean(axis=-1, keepdims=True)
        return np.asarray(centred(read, kind) / scale)

    def mlp(
        self,
        mlp_out: np.ndarray,
        layer: int,
        part: Callable[[str], np.ndarray],
    ) -> Places:
        """Return the gradients inside an MLP and at its input, `mlp_in`."""
        W_in, W_gate, W_out, b_in = (part(name) for name in ("W_in", "W_gate", "W_out", "b_in"))
        name = self.config.activation
        assert name is not None  # the configuration of a model with an MLP names one
        pre = self.places[f"mlp_pre.{layer}"]
        slope, activated = DERIVATIVE[name], ACTIVATION[name](pre)
        to_out = self.sums(mlp_out, f"mlp_out.{layer}")
        to_post = linear(to_out, W_out.T)
        at = {"mlp_out": to_out}
        of_router: np.ndarray | float = 0.0
        if self.config.n_experts:
            at |= self._experts(to_post, to_out, layer, part)
            to_post = at["mlp_post"]
            of_router = linear(at["router"], part("W_router").T)
        at["mlp_post"] = to_post
        if not self.config.gated:
            by = _share(activated, pre, slope) if self.frozen else slope(pre)
            at["mlp_pre"] = self.sums(to_post * by, f"mlp_pre.{layer}")
            return {**at, "mlp_in": linear(at["mlp_pre"], W_in.T) + of_router}
        up = linear(self._mlp_in(layer), W_in) + b_in
        at["mlp_up"] = to_up = self._damped(to_post * activated, up)
        at["mlp_pre"] = to_pre = to_post * up * (0.0 if self.frozen else slope(pre))
        return {**at, "mlp_in": linear(to_up, W_in.T) + linear(to_pre, W_gate.T) + of_router}

    def _experts(
        self,
        to_routed: np.ndarray,
        to_out: np.ndarray,
        layer: int,
        part: Callable[[str], np.ndarray],
    ) -> Places:
        """Return the gradients at weighted neurons, at neurons, and at the router.

        With `frozen` the weights of experts are constants.
        """
        config = self.config.of_layer(layer)
        shares, logits = (self._recorded(name, layer) for name in ("routing", "router"))
        at = {"routed": to_routed, "mlp_post": to_routed * by_neuron(config, shares)}
        if self.frozen:
            return {**at, "router": np.zeros_like(logits)}
        to_shares = by_expert(config, to_routed * self._recorded("mlp_post", layer))
        to_shares[..., : config.n_experts] += linear(to_out, part("b_experts").T)
        at["routing"] = to_shares
        at["router"] = routing_back(config, logits, part("b_choice"), to_shares)
        return at

    def attention(
        self,
        attn_out: np.ndarray,
        layer: int,
        part: Callable[[str], np.ndarray],
    ) -> Places:
        """Return the gradients inside attention and at its input, `attn_in`."""
        config = self.config.of_layer(layer)
        W_Q, W_K, W_V, W_O = (part(f"W_{name}") for name in "QKVO")
        pattern, v = self.places[f"pattern.{layer}"], self.places[f"v.{layer}"]
        to_out = self.sums(attn_out, f"attn_out.{layer}")
        z = self.sums(_to_heads(to_out, W_O), f"z.{layer}")
        to_v = self.sums(_across(pattern) @ z, f"v.{layer}")
        at = {"attn_out": to_out, "z": z, "v": to_v}
        latents = _Latents(self, layer, part) if config.kv_rank else None
        read = _from_heads(to_v, W_V)
        if latents:
            read = latents.before(read, "kv")
        if not self.frozen:
            at["pattern"] = to_pattern = z @ _across(v)
            by_row = (pattern * to_pattern).sum(axis=-1, keepdims=True)
            scores = pattern * (to_pattern - by_row) * self._of_cap(config, layer)
            scores = scores * config.score_scale
            at["q"] = scores @ self.places[f"k.{layer}"]
            at["k"] = _across(scores) @ self.places[f"q.{layer}"]
            query, key = (_turned_back(config, at[name]) for name in "qk")
            if config.qk_norm != "none":
                rows = self._recorded("ln1" if config.norms_before else "resid_pre", layer)
                rows = rows[..., None, :, :]
                query = _normed_back(
                    config, query, rows @ W_Q + part("b_Q")[:, None], part("q_norm_gain")
                )
                key = _normed_back(
                    config, key, rows @ W_K + part("b_K")[:, None], part("k_norm_gain")
                )
            if latents:
                at["qk_in"] = latents.of_queries_and_keys(query, key)
            else:
                at["qk_in"] = _from_heads(query, W_Q) + _from_heads(key, W_K)
            read = read + at["qk_in"]
        return {**at, "attn_in": read}

    def latent(
        self, gradient: np.ndarray, rows: np.ndarray, W: np.ndarray, gain: np.ndarray
    ) -> np.ndarray:
        """Return the gradient at the rows that a latent is made of, by a product and a norm."""
        made = linear(rows, W)
        scale = norm_scale(made, "rms", self.config.latent_eps)
        back = gradient * gain
        if not self.frozen:
            unit = made / scale
            back = back - unit * (back * unit).mean(axis=-1, keepdims=True)
        return linear(self._damped(back / scale, made), W.T)

    def attention_in(self, layer: int) -> np.ndarray:
        """Return the input of attention."""
        return self._recorded("ln1" if self.config.norms_before else "resid_pre", layer)

    def _of_cap(self, config: Config, layer: int) -> np.ndarray | float:
        """Return the derivative of the cap of the scores, $1 - (S/c)^2$ of the capped scores S."""
        if not config.score_cap:
            return 1.0
        scores = self.places[f"scores.{layer}"]
        if config.positions == "alibi":
            n_pos = scores.shape[-1]
            scores = scores - np.stack([alibi(n_pos, each) for each in config.alibi_slopes])
        return np.asarray(1 - (scores / config.score_cap) ** 2)

    def _recorded(self, place: str, layer: int) -> np.ndarray:
        return self.places[f"{place}.{layer}"]

    def _mlp_in(self, layer: int) -> np.ndarray:
        """Return the input of the MLP."""
        if self.config.norms_before:
            return self.places[f"ln2.{layer}"]
        return self.places[f"{'resid_pre' if self.config.parallel else 'resid_mid'}.{layer}"]

    def _damped(self, gradient: np.ndarray, sums: np.ndarray) -> np.ndarray:
        if not self.epsilon:
            return gradient
        size = np.abs(sums)
        return np.asarray(gradient * (size / (size + self.epsilon)))


class _Latents:
    """The adjoint of latent attention in one layer: queries, keys and values made of latents."""

    def __init__(self, back: _Back, layer: int, part: Callable[[str], np.ndarray]) -> None:
        self.back, self.rows, self.part = back, back.attention_in(layer), part

    def before(self, gradient: np.ndarray, which: str) -> np.ndarray:
        """Return the gradient at the input of attention, given that at a latent, "q" or "kv"."""
        W = self.part("W_DQ" if which == "q" else "W_DKV")
        return self.back.latent(gradient, self.rows, W, self.part(f"{which}_latent_gain"))

    def of_queries_and_keys(self, query: np.ndarray, key: np.ndarray) -> np.ndarray:
        """Return the gradient at the input of attention, given those before the rotation.

        The first entries of a key are the same in all heads, and the others are of the latent.
        """
        config, W_KR = self.back.config, self.part("W_KR")
        shared, own = np.split(key, [W_KR.shape[-1]], axis=-1)
        at_query = _from_heads(query, self.part("W_Q"))
        if config.q_rank:
            at_query = self.before(at_query, "q")
        at_key = self.before(_from_heads(own, self.part("W_K")), "kv")
        return at_query + at_key + linear(shared.sum(axis=-3), W_KR.T)


def _turned_back(config: Config, heads: np.ndarray) -> np.ndarray:
    """Return the gradient at queries or keys before their rotation."""
    if config.positions != "rotary":
        return heads
    return rotate(heads, *config.rotation, sign=-1)


def _normed_back(
    config: Config, gradient: np.ndarray, heads: np.ndarray, gain: np.ndarray
) -> np.ndarray:
    """Return the gradient at queries or keys [*parts, head, pos, d_head] before their norm."""
    read, gained = heads, gradient * gain[:, None]
    together = config.qk_norm == "all"
    if together:  # all heads of a position side by side
        read, gained = (_side_by_side(each) for each in (read, gained))
    scale = norm_scale(read, config.norm, config.norm_eps)
    unit = centred(read, config.norm) / scale
    back = gained - unit * (gained * unit).mean(axis=-1, keepdims=True)
    back = centred(back, config.norm) / scale
    if together:
        n_heads = heads.shape[-3]
        back = np.moveaxis(back.reshape(*back.shape[:-1], n_heads, -1), -2, -3)
    return np.asarray(back)


def _side_by_side(heads: np.ndarray) -> np.ndarray:
    """Return rows of all heads [*parts, pos, head · d_head]."""
    rows = np.moveaxis(heads, -3, -2)
    return rows.reshape(*rows.shape[:-2], -1)


def _share(
    activated: np.ndarray, pre: np.ndarray, slope: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return act(x) / x, and its limit act'(0) at x = 0."""
    at_zero = slope(np.zeros_like(pre))
    return np.divide(activated, pre, out=at_zero, where=pre != 0)


def _to_heads(
    rows: Float[np.ndarray, "*parts pos d_model"], W_O: Float[np.ndarray, "head d_head d_model"]
) -> Float[np.ndarray, "*parts head pos d_head"]:
    """Return the gradient at the z of each head, $G W_O^T$, by one product for all heads."""
    n_heads, d_head, d_model = W_O.shape
    product = linear(rows, W_O.reshape(-1, d_model).T)
    return np.moveaxis(product.reshape(*rows.shape[:-1], n_heads, d_head), -2, -3)


def _from_heads(
    heads: Float[np.ndarray, "*parts head pos d_head"],
    W: Float[np.ndarray, "head d_model d_head"],
) -> Float[np.ndarray, "*parts pos d_model"]:
    r"""Return the gradient at the input of q, k or v, $Σ_h G_h W_h^T$, by one product."""
    return linear(_side_by_side(heads), _across(W).reshape(-1, W.shape[1]))


def _across(stack: np.ndarray) -> np.ndarray:
    return np.swapaxes(stack, -2, -1)


def _needed(config: Config) -> list[str]:
    each = ["resid_pre", "q", "k", "v", "pattern", "z", "attn_out", "resid_mid", "resid_post"]
    each += ["mlp_pre", "mlp_out"] if config.d_mlp else []
    each += ["mlp_post", "router", "routing"] if config.n_experts else []
    each += ["ln2"] if config.d_mlp and config.norms_before else []
    reads = config.qk_norm != "none" or config.kv_rank > 0
    each += ["ln1"] if reads and config.norms_before else []
    each += ["scores"] if config.score_cap else []
    places = [f"{place}.{layer}" for layer in range(config.n_layers) for place in each]
    return ["embed", "final", *(["ln_final"] if config.final_norm else []), *places]
