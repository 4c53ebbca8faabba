r"""Direct logit attribution: what each component contributes to a logit on its direct path.

With $x = Σ_c f^c$ the final residual stream at a position, C the centring of the final LayerNorm
(the identity in an RMSNorm), s its scale *in this forward pass*, g its gain and b its bias, the
logit of a token w is

    $ℓ_w = Σ_c \frac{C(f^c) · g}{s} W_{U[:,w]} + b W_{U[:,w]} + b_{U,w}
         = Σ_c f^c · r + \text{constants}$,        $r = C(g · W_{U[:,w]}) / s$.

s is one number for all components: normalising each component by itself would not add up. Each
contribution is computed on its own and none as a remainder, so that their sum is a check:

    component            Σ over its heads or neurons
    head h of layer l    $z_h W_O r$
    source j of a head   $a_{ij} v_j W_O r$, its value bias included
    neuron u             $n_u w_{out,u} r$, n_u times the weight of its expert if it has one

Source: Elhage et al. 2021; Geva et al. 2022 (neurons); Ferrando et al. 2024, “A Primer on the Inner
Workings of Transformer-based Language Models”, §3.2.1.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from otimes.numeric.attribution.target import Target, Tokens, read_target
from otimes.numeric.block import neurons
from otimes.numeric.circuits.result import Named
from otimes.numeric.config import PATTERN_SETTINGS, check_settings
from otimes.numeric.functions import centred, norm_scale
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.output_norms import (
    WRITES,
    output_scales,
    recorded,
    written,
    written_size,
)
from otimes.numeric.prompt import Prompt, read_prompt
from otimes.numeric.rounding import UNIT_ROUNDOFF, gamma, worst_ratio

if TYPE_CHECKING:
    from pandas import DataFrame


def direct_logit_attribution(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
) -> "DirectLogits":
    """Return the direct contribution of each component to a logit or a logit difference.

    `target` and `foil` are token ids or strings; the default target is the token with the largest
    logit, and with a foil the logit difference is attributed. `position` is an index, negative
    from the end; a list of positions, or None for all, gives every table an axis of positions,
    with one target for all or one for each.
    Proved by: direct_logits_add_up, direct_logits_with_frozen_scale.

    >>> found = direct_logit_attribution("two_layer", "for i in range", "(")
    >>> found
    <direct attribution of the logit of '(' after position 6 in two_layer: 8.033>
    >>> found.by_head().values.shape, found.by_source().values.shape
    ((2, 4), (2, 4, 7))

    Raises: OtimesError for an invalid prompt, token or position.
    """
    loaded = load_model(model)
    read = read_prompt(loaded, prompt)
    return DirectLogits(loaded, read, read_target(loaded, read, target, foil, position))


class DirectClosure(NamedTuple):
    """The largest |sum of contributions - logit|, and the largest ratio of that to its bound."""

    error: float
    ratio: float


FROZEN = (
    *PATTERN_SETTINGS,
    "kv_rank",
    "n_experts",
    "gate_limit",
    "embed_scale",
    "embed_norm",
    "output_norms",
)
"""The settings that direct attribution takes into account."""


class DirectLogits:
    """The direct contributions to a logit, as tables that are computed on demand."""

    def __init__(self, model: Model, prompt: Prompt, target: Target) -> None:
        self.model, self.prompt, self.target = model, prompt, target
        check_settings(model.config, "direct logit attribution", FROZEN)
        config, layers = model.config, range(model.n_layers)
        start = "ln_embed" if config.embed_norm else "embed"
        record = [start, "final", *(f"z.{layer}" for layer in layers)]
        hidden = neurons(config)
        record += [f"{hidden}.{layer}" for layer in layers if config.d_mlp]
        biased = config.has("b_experts")
        record += [f"routing.{layer}" for layer in layers if biased]
        record += ["ln_final"] if config.final_norm else []
        outs = ("attn_out", "mlp_out") if config.d_mlp else ("attn_out",)
        record += [place for out in outs for place in recorded(model, out)]
        places = model.forward(prompt.tokens, record)
        at = target.positions
        # The constant scale of the norm of an output divides what is before the output weight.
        scales = {out: output_scales(model, out, places, len(prompt.tokens)) for out in outs}
        self._scales = {out: [each[at] for each in of] for out, of in scales.items()}
        self._z = [
            places[f"z.{layer}"][:, at] / self._scales["attn_out"][layer] for layer in layers
        ]
        self._neurons = [
            places[f"{hidden}.{layer}"][at] / self._scales["mlp_out"][layer]
            for layer in layers
            if config.d_mlp
        ]
        self._shares = [
            places[f"routing.{layer}"][at, : config.n_experts] for layer in layers if biased
        ]
        self._embed = places[start][at]
        kind = config.norm if config.final_norm else "none"
        scale = norm_scale(places["final"][at], kind, config.norm_eps)
        gain = model.part("ln_final_gain")
        self._rows = centred(target.rows * gain, kind) / scale
        sizes = target.sizes * np.abs(gain)
        mean = sizes.mean(axis=1, keepdims=True) if kind == "layer" else 0.0
        self._sizes = (sizes + mean) / scale
        last = places["ln_final" if config.final_norm else "final"][at]
        self._logits = (last * target.rows).sum(axis=1) + target.constants

    @property
    def logit(self) -> Any:
        """The logit (or logit difference) of the forward pass: a float, or [position]."""
        return float(self._logits[0]) if self.target.one else self._logits.copy()

    def by_component(self, heads: bool = False) -> Named:
        """Return the contribution of every component [component, position]; they sum to the logit.

        The components are the embedding, learned positions, the attention of each layer (with
        `heads`, each head), each MLP, and every bias added to the residual stream or after it. The
        value bias of a head counts as part of the head.
        """
        parts: dict[str, np.ndarray] = dict(self._inputs())
        for layer in range(self.model.n_layers):
            by_head = self._of_heads(layer)
            if heads:
                parts |= {f"head {layer}.{head}": each for head, each in enumerate(by_head)}
            else:
                parts[f"attention {layer}"] = by_head.sum(axis=0)
            parts |= self._bias("b_O", layer) | self._bias("ln1_post_bias", layer)
            if self.model.config.d_mlp:
                parts[f"mlp {layer}"] = self._of_neurons(layer).sum(axis=0)
                for name in ("b_out", "b_experts", "ln2_post_bias"):
                    parts |= self._bias(name, layer)
        parts |= self._constants()
        labels = {"component": [*parts]}
        values = np.stack(list(parts.values()))
        if self.target.one:
            about, whole = self.target.name(self.model), float(self._logits[0])
            return Named("direct logit", values[:, 0], ("component",), labels, None, about, whole)
        return self._named("direct logit", values, ("component",), labels)

    def by_head(self) -> Named:
        """Return the contribution of each head [layer, head, position]."""
        model = self.model
        values = np.zeros((model.n_layers, model.n_heads, len(self._rows)))
        for layer in range(model.n_layers):
            values[layer] = self._of_heads(layer)
        return self._named("direct logit", values, ("layer", "head"))

    def by_source(self) -> Named:
        """Return each head's contribution by source position [layer, head, source, position].

        The sum over sources is the head's contribution; later positions contribute 0.
        """
        model, at, n_pos = self.model, self.target.positions, len(self.prompt.tokens)
        each = [f"{place}.{layer}" for layer in range(model.n_layers) for place in ("pattern", "v")]
        places = model.forward(self.prompt.tokens, each)
        values = np.zeros((model.n_layers, model.n_heads, n_pos, len(at)))
        for layer in range(model.n_layers):
            pattern, v = places[f"pattern.{layer}"], places[f"v.{layer}"]
            # [head, source, d_head] @ [head, d_head, position]: contributions at attention 1.
            weights = pattern[:, at] / self._scales["attn_out"][layer]
            values[layer] = (v @ self._pulled(layer)) * weights.transpose(0, 2, 1)
        labels = {"source": self.prompt.strings}
        return self._named("direct logit", values, ("layer", "head", "source"), labels)

    def by_neuron(self) -> Named:
        """Return the contribution of each neuron [layer, neuron, position]; empty without MLPs."""
        model = self.model
        layers = model.n_layers if model.config.d_mlp else 0
        values = np.zeros((layers, model.config.d_mlp, len(self._rows)))
        for layer in range(layers):
            values[layer] = self._of_neurons(layer)
        return self._named("direct logit", values, ("layer", "neuron"))

    @cached_property
    def closure(self) -> DirectClosure:
        r"""The largest error of the sum of all contributions, and the largest error/bound.

        Both sides are sums of products of recorded activations and weights. With m the roundings
        on the longest path through either, they differ by at most $2 γ_m$ times the same sum on
        absolute values.
        """
        model, c, sizes = self.model, self.model.config, self._sizes.T
        size = np.abs(self._embed) @ sizes + np.abs(self._positions()) @ sizes
        for layer in range(model.n_layers):
            W_O = written_size(model, "W_O", layer).reshape(-1, model.d_model)
            size += np.abs(_side_by_side(self._z[layer])) @ (W_O @ sizes)
            for name in ("b_O", "ln1_post_bias"):
                size += np.abs(self._added(name, layer)) @ sizes
            if c.d_mlp:
                W_out = written_size(model, "W_out", layer)
                size += np.abs(self._neurons[layer]) @ (W_out @ sizes)
                for name in ("b_out", "b_experts", "ln2_post_bias"):
                    if name == "b_experts" and not c.has(name):
                        continue
                    size += np.abs(self._added(name, layer)) @ sizes
        # size is [position, direction]; position i goes with direction i.
        of_parts = np.diagonal(size) + np.abs(self.target.constants)
        of_parts = of_parts + self.target.sizes @ np.abs(model.part("ln_final_bias"))
        widest = max(model.n_heads * c.value_width, c.d_mlp)
        if c.norms_output:  # mean, scale and gain of the norms of outputs
            widest += 2 * model.d_model
        m = widest + 2 * model.d_model + 4 * model.n_layers + model.d_model + 12
        bound = 2 * gamma(m, UNIT_ROUNDOFF["float64"]) * of_parts
        total = self.by_component().values.sum(axis=0).reshape(-1)
        error = np.abs(total - self._logits).max()
        return DirectClosure(float(error), worst_ratio(total, self._logits, bound))

    def __repr__(self) -> str:
        if self.target.one:
            whose = self.target.name(self.model)
            return f"<direct attribution of {whose} in {self.model.name}: {self.logit:.4g}>"
        return f"<direct attribution of {len(self._logits)} logits in {self.model.name}>"

    def _repr_html_(self) -> str:
        return self.by_component()._repr_html_()

    def to_pandas(self) -> "DataFrame":
        """Return `by_component(heads=True)` as a pandas DataFrame, a row for each component."""
        return self.by_component(heads=True).to_pandas()

    def _inputs(self) -> Iterator[tuple[str, np.ndarray]]:
        yield "embed", self._dot(self._embed)
        if self.model.config.positions == "learned" and not self.model.config.embed_norm:
            yield "positions", self._dot(self._positions())

    def _positions(self) -> Float[np.ndarray, "chosen d_model"]:
        """Return the learned position embeddings at the chosen positions; zeros without them."""
        if self.model.config.positions != "learned" or self.model.config.embed_norm:
            return np.zeros_like(self._embed)
        return self.model.part("W_pos", self.target.positions)

    def _dot(self, rows: Float[np.ndarray, "*rows d_model"]) -> Float[np.ndarray, " chosen"]:
        """Return the contribution to the logits of rows of the final residual stream."""
        return np.asarray((rows * self._rows).sum(axis=-1))

    def _pulled(self, layer: int) -> Float[np.ndarray, "head d_head chosen"]:
        """Return $W_O r$ of each head: the direction in z that increases the logit."""
        model = self.model
        W_O = written(model, "W_O", layer).reshape(-1, model.d_model)
        return (W_O @ self._rows.T).reshape(model.n_heads, model.config.value_width, -1)

    def _of_heads(self, layer: int) -> Float[np.ndarray, "head chosen"]:
        return np.einsum("hik,hki->hi", self._z[layer], self._pulled(layer))

    def _of_neurons(self, layer: int) -> Float[np.ndarray, "neuron chosen"]:
        return np.asarray(
            self._neurons[layer].T * (written(self.model, "W_out", layer) @ self._rows.T)
        )

    def _bias(self, name: str, layer: int) -> dict[str, np.ndarray]:
        if not self.model.config.has(name):
            return {}
        return {f"{name} {layer}": self._dot(self._added(name, layer))}

    def _added(self, name: str, layer: int) -> Float[np.ndarray, "*chosen d_model"]:
        """Return what a bias of an output, or of its norm, adds to the residual stream."""
        model = self.model
        if name.startswith("ln"):
            return model.part(name, layer)
        added = written(model, name, layer)
        if name == "b_experts":
            added = self._shares[layer] @ added
        scales = self._scales[WRITES[name]][layer]
        return np.asarray(added / scales) if model.config.norms_output else added

    def _constants(self) -> dict[str, np.ndarray]:
        """Return the constants added after the residual stream: the final norm's bias and b_U."""
        parts = {}
        if "ln_final_bias" in self.model.weights:
            parts["ln_final_bias"] = self.target.rows @ self.model.part("ln_final_bias")
        if "b_U" in self.model.config.biases:
            parts["b_U"] = self.target.constants
        return parts

    def _named(
        self, kind: str, values: np.ndarray, axes: tuple[str, ...], labels: Any = None
    ) -> Named:
        """Return a table whose last axis is the position; a single position has no axis."""
        labels = dict(labels or {})
        if self.target.one:
            return Named(kind, values[..., 0], axes, labels, about=self.target.name(self.model))
        labels["position"] = [self.prompt.strings[at] for at in self.target.positions]
        return Named(kind, values, (*axes, "position"), labels)


def _side_by_side(z: Float[np.ndarray, "head chosen d_head"]) -> np.ndarray:
    return np.asarray(z.transpose(1, 0, 2).reshape(z.shape[1], -1))
