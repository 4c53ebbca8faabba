"""The configuration of a transformer: its architecture and sizes, which fix every tensor's shape.

    attention   n_heads, d_head; n_kv_heads < n_heads is grouped-query attention
    positions   "none", "learned" (added to the residual stream), "shortformer" (added to the input
                of queries and keys in every layer, never to the residual stream), "rotary" (queries
                and keys are rotated; two layouts, optionally only the first `rotary_dims` of
                d_head, optionally with scaled frequencies), "alibi" (each score falls with the
                distance, by a slope per head)
    MLP         d_mlp (0: none), activation, gated, parallel (it has the same input as attention)
    causal      whether a position sees itself and earlier ones only; else `encode` is the pass
    norms       "none", "layer" (gain and bias), "rms" (gain); optionally a final one
    norm order  "pre": each sublayer reads the normed residual stream; "output": what it writes is
                normalised before it is added (OLMo 2); "both" (Gemma 2); "post": the residual
                stream is normalised after each addition (Vaswani et al., torch.nn's default)
    latents     kv_rank: keys and values are made of a normed projection of the stream, queries of
                another one with q_rank; each head has a shared rotary part of its key
    scores      qk_norm (queries and keys are normalised), attn_scale, score_cap, windows by layer,
                sinks (one more score in each softmax, whose weight goes nowhere)
    experts     n_experts MLPs beside each other, each token through those that a router chooses,
                and optionally a shared one, through which all go
    embeddings  tied: W_U is the transpose of W_E; embed_scale multiplies W_E where it embeds
    scales      write_scale multiplies what attention and MLPs add to the stream, logit_scale the
                logits
    biases      the names of the biases that the model has

Sources: Vaswani et al. 2017; Radford et al. 2019 (GPT-2); Press, Smith and Lewis 2021
(shortformer); Su et al. 2021 (rotary); Wang and Komatsuzaki 2021 (parallel); Touvron et al.
2023 (Llama); Xiong et al. 2020 (pre-norm and post-norm); Press, Smith and Lewis 2022 (ALiBi);
Henry et al. 2020 (query and key norms); Beltagy et al. 2020 (windows); Gemma team 2024 (caps,
norms on both sides); Xiao et al. 2024 (sinks); Shazeer et al. 2017 and Jiang et al. 2024 (experts);
DeepSeek-AI 2024 (latent attention, shared experts, choices by sigmoids).
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any

from otimes.algebra.errors import OtimesError

POSITIONS = ("none", "shortformer", "learned", "rotary", "alibi")
LAYOUTS = ("half", "interleaved")
ACTIVATIONS = ("gelu", "gelu_tanh", "quick_gelu", "relu", "relu2", "silu")
NORMS = ("none", "layer", "rms")
NORM_ORDERS = ("pre", "post", "output", "both")
QK_NORMS = ("none", "head", "all")
ROUTERS = ("chosen", "all", "sigmoid")
BIASES = ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_gate", "b_out", "b_U")
OF_EXPERTS = ("b_router", "b_choice", "b_experts")
EVERY_BIAS = (*BIASES, *OF_EXPERTS)

# Every tensor a model can have, and the sizes of its axes. Initialisation draws them in this order:
# another order would give other models for the same seed.
TENSORS: dict[str, tuple[str, ...]] = {
    "W_E": ("d_vocab", "d_model"),
    "W_Q": ("n_layers", "n_heads", "query_in", "d_head"),
    "W_K": ("n_layers", "kv_heads", "key_in", "d_key"),
    "W_V": ("n_layers", "kv_heads", "key_in", "value_width"),
    "W_O": ("n_layers", "n_heads", "value_width", "d_model"),
    "W_U": ("d_model", "d_vocab"),
    "W_pos": ("n_ctx", "d_model"),
    "W_in": ("n_layers", "d_model", "d_mlp"),
    "W_gate": ("n_layers", "d_model", "d_mlp"),
    "W_out": ("n_layers", "d_mlp", "d_model"),
    "b_Q": ("n_layers", "n_heads", "d_head"),
    "b_K": ("n_layers", "kv_heads", "d_head"),
    "b_V": ("n_layers", "kv_heads", "value_width"),
    "b_O": ("n_layers", "d_model"),
    "b_in": ("n_layers", "d_mlp"),
    "b_gate": ("n_layers", "d_mlp"),
    "b_out": ("n_layers", "d_model"),
    "b_U": ("d_vocab",),
    "ln1_gain": ("n_layers", "d_model"),
    "ln1_bias": ("n_layers", "d_model"),
    "ln2_gain": ("n_layers", "d_model"),
    "ln2_bias": ("n_layers", "d_model"),
    "ln_final_gain": ("d_model",),
    "ln_final_bias": ("d_model",),
    "ln1_post_gain": ("n_layers", "d_model"),
    "ln1_post_bias": ("n_layers", "d_model"),
    "ln2_post_gain": ("n_layers", "d_model"),
    "ln2_post_bias": ("n_layers", "d_model"),
    "q_norm_gain": ("n_layers", "n_heads", "d_head"),
    "k_norm_gain": ("n_layers", "kv_heads", "d_head"),
    "sinks": ("n_layers", "n_heads"),
    "ln_embed_gain": ("d_model",),
    "ln_embed_bias": ("d_model",),
    "W_router": ("n_layers", "d_model", "n_routed"),
    "b_router": ("n_layers", "n_routed"),
    "b_choice": ("n_layers", "n_experts"),
    "b_experts": ("n_layers", "n_experts", "d_model"),
    "W_DQ": ("n_layers", "d_model", "q_rank"),
    "q_latent_gain": ("n_layers", "q_rank"),
    "W_DKV": ("n_layers", "d_model", "kv_rank"),
    "kv_latent_gain": ("n_layers", "kv_rank"),
    "W_KR": ("n_layers", "d_model", "rotary_dims"),
}

WRITERS = ("W_O", "b_O", "W_out", "b_out", "b_experts")
"""The weights that write to the residual stream in a block."""

EXPERTS = (
    *("n_experts", "experts_per_token", "router", "router_scale", "router_groups"),
    *("d_shared", "shared_gate", "dense_layers"),
)
"""The settings of experts and their router."""


class _Hashed:
    """A slot for the hash, which every call of a function cached by configuration needs."""

    __slots__ = ("_hash",)
    _hash: int


@dataclass(frozen=True, slots=True)
class Config(_Hashed):
    """The architecture and sizes of a transformer; by default attention-only without norms.

    `n_kv_heads` None means as many as `n_heads`. `d_vocab` 0 means no vocabulary, as in a layer of
    torch.nn. A rotary angle at position p is p · rotary_base^(-2i/rotary_dims); layout
    "interleaved" (GPT-J) rotates dimensions 2i and 2i + 1 as a pair, "half" (GPT-NeoX, Llama) i and
    i + rotary_dims/2. `rotary_stretch` scales the frequencies (`functions.rotary_frequencies`): (),
    (factor,), (factor, low, high, context) as in Llama 3.1, these four and a scale, which is YaRN,
    with a sixth number 0 for its unrounded ramp, ("dynamic", factor, context), or ("longrope",
    context, scale, one divisor for each pair in short prompts, and in long ones). A model in which
    attention and MLP share one norm (GPT-J, Phi, Falcon) has the same weights in ln1 and ln2.

    `embed_norm`: the stream before the first layer is normalised (BLOOM).
    `gain_offset`: gains are stored minus 1 (Gemma); `Model.part` adds it. `qk_norm` normalises
    queries and keys before they are rotated, without a bias: "head" each head by itself (Qwen 3),
    "all" the heads of a position together (OLMo 2). `attn_scale` 0 means 1/√d_head. A cap c maps x
    to c tanh(x/c); 0 means none. `windows` has one number for each layer: a query sees that many
    keys, itself included; 0 means all. Layers with a window have the rotary base `local_base`, if
    it is not 0, without a stretch (Gemma 3). `unrotated_layers` have no positions (SmolLM 3).
    `alibi_slopes` has a slope for each head. `write_scale` multiplies what attention and MLPs write
    (Granite), and `logit_scale` the logits (Cohere): `Model.part` gives W_O, b_O, W_out, b_out,
    b_experts, W_U and b_U with these factors.

    With `n_experts`, the neurons of an MLP are those of its experts one after the other, and then
    `d_shared` of a shared expert: d_mlp counts them all, and W_in, W_gate and W_out hold them all.
    Each neuron is multiplied by the weight that the router gives its expert (`experts.routing`): of
    the `experts_per_token` chosen ones it is, with `router` "chosen", the softmax of their router
    logits; with "all", the softmax of all logits, so that the weights sum to less than 1; with
    "sigmoid", σ of the logit divided by the sum of the chosen. Weights are multiplied by
    `router_scale`; b_choice is added to what is compared, and not to the weights (DeepSeek-V3).
    `router_groups` (groups, chosen groups, experts of a group that count) restricts the choice to
    the groups with the largest sums. The shared expert has weight 1, or with `shared_gate` σ of a
    last column of W_router. In `dense_layers` all weights are 1. b_experts is the output bias of
    each expert. `gate_limit` c makes the gated MLP act(min(gate, c)) (clip(up, -c, c) + 1)
    (gpt-oss).

    With `kv_rank` (latent attention, DeepSeek), keys and values are `kv_latent` times W_K and W_V,
    which have kv_rank rows: `kv_latent` is an RMSNorm (with `latent_eps`) of the input of attention
    times W_DKV. The first `rotary_dims` entries of every head's key are that input times W_KR, and
    W_K has the d_head - rotary_dims others; only the former are rotated. With `q_rank`, queries are
    made of a latent of their own. `d_value` is the width of values, 0 for that of keys.

    Raises: OtimesError naming every invalid field.
    """

    n_layers: int
    n_heads: int
    d_model: int
    d_head: int
    d_vocab: int
    n_ctx: int
    positions: str
    n_kv_heads: int | None = None
    rotary_dims: int = 0
    rotary_base: float = 10000.0
    rotary_layout: str = "half"
    rotary_stretch: tuple[Any, ...] = ()
    d_mlp: int = 0
    activation: str | None = None
    gated: bool = False
    parallel: bool = False
    norm: str = "none"
    norm_eps: float = 1e-5
    norm_order: str = "pre"
    final_norm: bool = False
    tied: bool = False
    biases: tuple[str, ...] = ()
    qk_norm: str = "none"
    gain_offset: bool = False
    embed_scale: float = 1.0
    write_scale: float = 1.0
    logit_scale: float = 1.0
    embed_norm: bool = False
    attn_scale: float = 0.0
    score_cap: float = 0.0
    logit_cap: float = 0.0
    windows: tuple[int, ...] = ()
    local_base: float = 0.0
    unrotated_layers: tuple[int, ...] = ()
    sinks: bool = False
    alibi_slopes: tuple[float, ...] = ()
    n_experts: int = 0
    experts_per_token: int = 0
    router: str = "chosen"
    router_scale: float = 1.0
    router_groups: tuple[int, ...] = ()
    d_shared: int = 0
    shared_gate: bool = False
    dense_layers: tuple[int, ...] = ()
    gate_limit: float = 0.0
    kv_rank: int = 0
    q_rank: int = 0
    d_value: int = 0
    latent_eps: float = 1e-6
    causal: bool = True

    def __post_init__(self) -> None:
        """Check all fields; raise one error that names every invalid one."""
        wrong = [*self._wrong_types()] or [*self._wrong_together()]
        if wrong:
            raise OtimesError(f"the configuration is invalid: {'; '.join(wrong)}")
        in_order = tuple(name for name in EVERY_BIAS if name in self.biases)
        object.__setattr__(self, "biases", in_order)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:  # the first time, also of a copy
            found = hash(tuple(getattr(self, name) for name in self.__match_args__))
            object.__setattr__(self, "_hash", found)
            return found

    def _wrong_types(self) -> Iterable[str]:
        """Yield a message for each field of the wrong type or out of range."""
        least = dict.fromkeys(("n_layers", "rotary_dims", "d_mlp", "d_vocab"), 0)
        least |= dict.fromkeys(("n_experts", "experts_per_token", "d_shared"), 0)
        least |= dict.fromkeys(("kv_rank", "q_rank", "d_value"), 0)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type in (int, int | None):
                fewest = least.get(field.name, 1)
                may_be_none = field.type is not int and value is None
                if not may_be_none and (type(value) is not int or value < fewest):
                    yield f"{field.name}={value!r} must be an integer of at least {fewest}"
            elif field.type is bool and type(value) is not bool:
                yield f"{field.name}={value!r} must be True or False"
            elif field.type is float and not (
                type(value) in (int, float) and 0 <= value <= sys.float_info.max
            ):
                yield f"{field.name}={value!r} must be a finite, non-negative number"
        for name, known in (
            ("positions", POSITIONS),
            ("rotary_layout", LAYOUTS),
            ("norm", NORMS),
            ("norm_order", NORM_ORDERS),
            ("qk_norm", QK_NORMS),
            ("router", ROUTERS),
            ("activation", (*ACTIVATIONS, None)),
        ):
            value = getattr(self, name)
            if value not in known:
                yield f"{name}={value!r} must be one of {listed(known)}"
        for bias in self.biases:
            if bias not in EVERY_BIAS:
                yield f"unknown bias {bias!r}; the biases are {listed(EVERY_BIAS)}"

    def _wrong_together(self) -> Iterable[str]:
        """Yield a message for each combination of fields that is inconsistent."""
        if self.n_heads % self.kv_heads:
            yield (
                f"n_kv_heads={self.n_kv_heads} must divide the number of heads,"
                f" n_heads={self.n_heads}"
            )
        if self.positions == "rotary":
            if self.rotary_dims % 2 or not 0 < self.rotary_dims <= self.d_head:
                yield (
                    f"rotary_dims={self.rotary_dims} must be even, from 2 to d_head={self.d_head}:"
                    " rotary embeddings rotate pairs of dimensions"
                )
            if not self.rotary_base > 0:
                yield f"rotary_base={self.rotary_base} must be positive"
            yield from self._wrong_stretch()
        elif self.rotary_stretch:
            yield (
                f"rotary_stretch={self.rotary_stretch} must be () with positions={self.positions!r}"
            )
        elif self.rotary_dims:
            yield f"rotary_dims={self.rotary_dims} must be 0 with positions={self.positions!r}"
        if self.d_mlp and self.activation is None:
            yield f"d_mlp={self.d_mlp} needs an activation, one of {listed(ACTIVATIONS)}"
        for name, needed, kind in (
            ("activation", self.d_mlp > 0, "an MLP (d_mlp is 0)"),
            ("gated", self.d_mlp > 0, "an MLP (d_mlp is 0)"),
            ("parallel", self.d_mlp > 0, "an MLP (d_mlp is 0)"),
            ("final_norm", self.norm != "none", "norms (norm is 'none')"),
        ):
            if getattr(self, name) and not needed:
                yield f"{name}={getattr(self, name)!r} needs {kind}"
        if self.norm_order != "pre" and self.norm == "none":
            yield f"norm_order={self.norm_order!r} needs norms (norm is 'none')"
        if self.post_norm and self.parallel:
            yield (
                "norm_order='post' excludes parallel blocks: the MLP reads the norm after attention"
            )
        yield from self._wrong_scores()
        yield from self._wrong_experts()
        yield from self._wrong_latents()
        for bias in self.biases:
            if (bias in ("b_in", "b_out") and not self.d_mlp) or (
                bias == "b_gate" and not self.gated
            ):
                yield f"the bias {bias} needs {bias.replace('b_', 'W_')}, which the model lacks"

    def _wrong_scores(self) -> Iterable[str]:
        """Yield a message for each invalid setting of scores, windows and embeddings."""
        for name in ("qk_norm", "gain_offset", "embed_norm"):
            if getattr(self, name) not in ("none", False) and self.norm == "none":
                yield f"{name}={getattr(self, name)!r} needs norms (norm is 'none')"
        for name in ("embed_scale", "write_scale", "logit_scale"):
            if not getattr(self, name) > 0:
                yield f"{name}={getattr(self, name)} must be positive"
        if self.unrotated_layers and (
            self.positions != "rotary"
            or self.kv_rank
            or any(each not in range(self.n_layers) for each in self.unrotated_layers)
        ):
            yield (
                f"unrotated_layers={self.unrotated_layers} must be layers, from 0 to"
                f" {self.n_layers - 1}, of a model with rotary positions and no latents"
            )
        if self.windows and (
            len(self.windows) != self.n_layers
            or not all(type(each) is int and each >= 0 for each in self.windows)
        ):
            yield (
                f"windows={self.windows} must have a number of keys, or 0 for all, for each of"
                f" {self.n_layers} layers"
            )
        if self.local_base and not (self.windows and self.positions == "rotary"):
            yield f"local_base={self.local_base} needs windows and rotary positions"
        slopes = all(type(each) in (int, float) and each > 0 for each in self.alibi_slopes)
        if len(self.alibi_slopes) != (self.n_heads if self.positions == "alibi" else 0):
            yield (
                f"alibi_slopes={self.alibi_slopes} must have a slope for each of {self.n_heads}"
                " heads with positions='alibi', and must be () otherwise"
            )
        elif not slopes:
            yield f"alibi_slopes={self.alibi_slopes} must be positive"

    def _wrong_experts(self) -> Iterable[str]:
        """Yield a message for each invalid setting of experts."""
        if self.gate_limit and not self.gated:
            yield f"gate_limit={self.gate_limit} needs a gated MLP"
        if not self.n_experts:
            plain = {each.name: each.default for each in fields(self)}
            for name in EXPERTS[1:]:
                if getattr(self, name) != plain[name]:
                    yield f"{name}={getattr(self, name)!r} needs experts (n_experts is 0)"
            yield from (f"the bias {b} needs experts" for b in self.biases if b in OF_EXPERTS)
            return
        if not 0 < self.experts_per_token <= self.n_experts:
            yield (
                f"experts_per_token={self.experts_per_token} must be from 1 to"
                f" n_experts={self.n_experts}"
            )
        if self.d_mlp <= self.d_shared or (self.d_mlp - self.d_shared) % self.n_experts:
            yield (
                f"d_mlp={self.d_mlp} must be n_experts={self.n_experts} times the width of an"
                f" expert, plus d_shared={self.d_shared}"
            )
        if self.shared_gate and not self.d_shared:
            yield "shared_gate=True needs a shared expert (d_shared is 0)"
        if any(not 0 <= layer < self.n_layers for layer in self.dense_layers):
            yield f"dense_layers={self.dense_layers} must be layers from 0 to {self.n_layers - 1}"
        if self.router_groups:
            yield from self._wrong_groups()

    def _wrong_latents(self) -> Iterable[str]:
        if not self.kv_rank:
            for name in ("q_rank", "d_value"):
                if getattr(self, name):
                    yield f"{name}={getattr(self, name)} needs latent attention (kv_rank is 0)"
        elif self.positions == "shortformer":
            yield f"kv_rank={self.kv_rank} excludes positions='shortformer'"
        elif self.qk_norm != "none" or {"b_Q", "b_K", "b_V"} & {*self.biases}:
            yield f"kv_rank={self.kv_rank} excludes qk_norm and biases of queries, keys and values"

    def _wrong_groups(self) -> Iterable[str]:
        said = self.router_groups
        whole = len(said) == 3 and all(type(each) is int and each > 0 for each in said)
        size = self.n_experts // said[0] if whole and self.n_experts % said[0] == 0 else 0
        if (
            not size
            or not (said[1] <= said[0] and said[2] <= size)
            or (said[1] * size < self.experts_per_token)
        ):
            yield (
                f"router_groups={said} must be (groups, chosen groups, experts of a group that"
                f" count), with groups that divide n_experts={self.n_experts} and chosen ones that"
                f" hold experts_per_token={self.experts_per_token}"
            )

    def _wrong_stretch(self) -> Iterable[str]:
        said = self.rotary_stretch
        if said and isinstance(said[0], str):
            yield from self._wrong_named_stretch(said[0], said[1:])
            return
        numbers = all(type(x) in (int, float) and 0 < x <= sys.float_info.max for x in said)
        if len(said) == 6 and said[5] == 0:
            numbers = all(type(x) in (int, float) and x > 0 for x in said[:5])
        if (
            len(said) not in (0, 1, 4, 5, 6)
            or not numbers
            or (len(said) > 1 and said[1] >= said[2])
        ):
            yield (
                f"rotary_stretch={said} must be (), (factor,), (factor, low, high, context) or"
                " (factor, low, high, context, scale) with positive numbers and low < high"
            )
        elif len(said) > 4 and not self.rotary_base > 1:
            yield f"rotary_base={self.rotary_base} must be above 1 with rotary_stretch={said}"

    def _wrong_named_stretch(self, kind: str, numbers: tuple[float, ...]) -> Iterable[str]:
        count = {"dynamic": 2, "longrope": 2 + 2 * (self.rotary_dims // 2)}.get(kind)
        positive = all(type(x) in (int, float) and 0 < x <= sys.float_info.max for x in numbers)
        if count is None or len(numbers) != count or not positive:
            yield (
                f"rotary_stretch={(kind, *numbers)} must be ('dynamic', factor, context) or"
                " ('longrope', context, scale, *short, *long) with a positive divisor for each of"
                f" {self.rotary_dims // 2} pairs in short prompts and in long ones"
            )
        elif kind == "dynamic" and (self.rotary_dims < 4 or numbers[0] < 1):
            yield (
                f"rotary_stretch={(kind, *numbers)} needs a factor of at least 1 and at least two"
                f" pairs, but rotary_dims={self.rotary_dims}"
            )

    @property
    def rotation(self) -> tuple[int, float, str, tuple[Any, ...]]:
        """The arguments of `functions.rotate`: dims, base, layout, stretch."""
        return self.rotary_dims, self.rotary_base, self.rotary_layout, self.rotary_stretch

    @property
    def rotary_by_length(self) -> bool:
        """Whether the rotary frequencies depend on the length of the prompt."""
        return bool(self.rotary_stretch) and isinstance(self.rotary_stretch[0], str)

    @property
    def post_norm(self) -> bool:
        """Whether the residual stream is normalised after each addition (post-norm)."""
        return self.norm_order == "post"

    @property
    def norms_before(self) -> bool:
        """Whether each sublayer reads the normed residual stream."""
        return self.norm != "none" and self.norm_order in ("pre", "both")

    @property
    def norms_output(self) -> bool:
        """Whether what each sublayer writes is normalised before it is added."""
        return self.norm_order in ("output", "both")

    @property
    def score_scale(self) -> float:
        """The factor of the products of queries and keys: `attn_scale`, or 1/√d_head."""
        return float(self.attn_scale or 1 / math.sqrt(self.d_head))

    def scale_of(self, tensor: str) -> float:
        """Return the factor with which a weight is used, `write_scale` or `logit_scale`."""
        if tensor in ("W_U", "b_U"):
            return self.logit_scale
        return self.write_scale if tensor in WRITERS else 1.0

    @property
    def window(self) -> int:
        """The number of keys that a query sees; 0 for all. Of a layer's own configuration."""
        return self.windows[0] if self.windows else 0

    def of_layer(self, layer: int) -> "Config":
        """Return the configuration in which every layer is like this one.

        >>> Config(2, 1, 4, 2, 10, 8, "none", windows=(0, 4)).of_layer(1).window
        4
        """
        differ = self.windows or self.dense_layers or self.unrotated_layers
        return _of_layer(self, layer) if differ else self

    @property
    def query_in(self) -> int:
        """The width of what W_Q reads."""
        return self.q_rank or self.d_model

    @property
    def key_in(self) -> int:
        """The width of what W_K and W_V read."""
        return self.kv_rank or self.d_model

    @property
    def d_key(self) -> int:
        """The number of columns of W_K: d_head without a shared rotary part."""
        return self.d_head - self.rotary_dims if self.kv_rank else self.d_head

    @property
    def value_width(self) -> int:
        """The width of values: `d_value`, or d_head."""
        return self.d_value or self.d_head

    @property
    def n_routed(self) -> int:
        """The number of columns of W_router: experts, and a gate of the shared one."""
        return self.n_experts + self.shared_gate

    @property
    def dense(self) -> bool:
        """Whether all weights of experts are 1. Of a layer's own configuration."""
        return bool(self.dense_layers)

    @property
    def kv_heads(self) -> int:
        """The number of key/value heads; each is shared by n_heads / kv_heads query heads."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def bare(self) -> bool:
        """Whether it is the attention-only transformer of Elhage et al. 2021.

        It has no norm, MLP, bias or rotary embedding; positions are "none" or "shortformer".
        """
        plain = self.norm == "none" and not self.d_mlp and not self.biases
        return plain and self.positions in ("none", "shortformer")

    def summary(self) -> tuple[str, ...]:
        """Return the architecture in a few words.

        >>> gpt2_config().summary()[:3]
        ('12 layers of 12 heads', 'd_model=768', 'd_head=64')
        """
        shared = f" on {self.kv_heads} key/value heads" if self.kv_heads != self.n_heads else ""
        mlp = f"{'gated ' if self.gated else ''}MLP of {self.d_mlp} ({self.activation})"
        if self.n_experts:
            width = (self.d_mlp - self.d_shared) // self.n_experts
            shared = f" and a shared one of {self.d_shared}" if self.d_shared else ""
            mlp = (
                f"{self.experts_per_token} of {self.n_experts} experts of {width}{shared}"
                f" ({self.activation})"
            )
        norms = {"layer": "LayerNorm", "rms": "RMSNorm", "none": "no norms"}[self.norm]
        order = {"post": " after each sum", "output": " of outputs", "both": " on both sides"}
        return (
            f"{self.n_layers} layers of {self.n_heads} heads{shared}",
            f"d_model={self.d_model}",
            f"d_head={self.d_head}",
            f"d_vocab={self.d_vocab}",
            "no positions" if self.positions == "none" else f"{self.positions} positions",
            (mlp + (" in parallel" if self.parallel else "")) if self.d_mlp else "no MLP",
            norms + order.get(self.norm_order, ""),
            *self._summary_of_scores(),
        )

    def _summary_of_scores(self) -> Iterable[str]:
        """Yield the settings of scores that differ from the plain ones, in a few words each."""
        if self.qk_norm != "none":
            yield "query and key norms"
        if self.kv_rank:
            queries = f" and {self.q_rank} of queries" if self.q_rank else ""
            yield f"latents of {self.kv_rank}{queries}"
        if any(self.windows):
            widths = {each for each in self.windows if each}
            yield f"windows of {listed(sorted(widths))}"
        if self.score_cap or self.logit_cap:
            yield "capped " + " and ".join(
                name
                for name, cap in (("scores", self.score_cap), ("logits", self.logit_cap))
                if cap
            )
        if self.sinks:
            yield "sinks"
        if not self.causal:
            yield "no causal mask"

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight of the model, by name."""
        return {name: self.shape(name) for name in TENSORS if self.has(name)}

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a weight, even if the model does not have it."""
        return tuple(getattr(self, size) for size in TENSORS[tensor])

    def has(self, tensor: str) -> bool:
        """Return whether the model has a weight of that name."""
        if tensor in EVERY_BIAS:
            return tensor in self.biases
        layer, mlp = self.norm == "layer", self.d_mlp > 0
        reads = self.norms_before or self.post_norm
        needs = {
            "W_pos": self.positions in ("learned", "shortformer"),
            "W_U": not self.tied,
            "W_in": self.d_mlp > 0,
            "W_out": self.d_mlp > 0,
            "W_gate": self.gated,
            "ln1_gain": reads,
            "ln1_bias": reads and layer,
            "ln2_gain": reads and mlp,
            "ln2_bias": reads and layer and mlp,
            "ln1_post_gain": self.norms_output,
            "ln1_post_bias": self.norms_output and layer,
            "ln2_post_gain": self.norms_output and mlp,
            "ln2_post_bias": self.norms_output and layer and mlp,
            "q_norm_gain": self.qk_norm != "none",
            "k_norm_gain": self.qk_norm != "none",
            "sinks": self.sinks,
            "ln_embed_gain": self.embed_norm,
            "ln_embed_bias": self.embed_norm and layer,
            "W_router": self.n_experts > 0,
            "W_DQ": self.q_rank > 0,
            "q_latent_gain": self.q_rank > 0,
            "W_DKV": self.kv_rank > 0,
            "kv_latent_gain": self.kv_rank > 0,
            "W_KR": self.kv_rank > 0,
            "ln_final_gain": self.final_norm,
            "ln_final_bias": self.final_norm and self.norm == "layer",
        }
        return needs.get(tensor, True)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data; fields with their default value are omitted."""
        required = {each.name for each in fields(self) if each.default is MISSING}
        default = {each.name: each.default for each in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if name in required or value != default[name]
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], where: str) -> "Config":
        """Return a configuration from JSON data; error messages name its origin, `where`."""
        required = [each.name for each in fields(cls) if each.default is MISSING]
        optional = [each.name for each in fields(cls) if each.default is not MISSING]
        missing = [name for name in required if name not in content]
        unknown = [name for name in content if name not in (*required, *optional)]
        if missing or unknown:
            lacks = f"lacks {listed(missing)}" if missing else ""
            holds = f"has the unknown fields {listed(unknown)}" if unknown else ""
            raise OtimesError(
                f"{where} {' and '.join(filter(None, (lacks, holds)))}; required fields are"
                f" {listed(required)}, optional ones {listed(optional)}"
            )
        biases = content.get("biases", ())
        if not isinstance(biases, list | tuple) or not all(isinstance(b, str) for b in biases):
            raise OtimesError(f"{where}: biases must be a list of names, got {biases!r}")
        lists = {}
        for name in (
            *("rotary_stretch", "windows", "alibi_slopes", "router_groups", "dense_layers"),
            "unrotated_layers",
        ):
            value = content.get(name, ())
            if not isinstance(value, list | tuple):
                raise OtimesError(f"{where}: {name} must be a list of numbers, got {value!r}")
            lists[name] = tuple(value)
        return cls(**{**content, "biases": tuple(biases), **lists})


@lru_cache(maxsize=4096)
def _of_layer(config: Config, layer: int) -> Config:
    fields: dict[str, Any] = {
        "dense_layers": tuple(range(config.n_layers)) if layer in config.dense_layers else ()
    }
    window = config.windows[layer] if config.windows else 0
    if config.windows:
        fields |= {"windows": (window,) * config.n_layers, "local_base": 0.0}
    if window and config.local_base:
        fields |= {"rotary_base": config.local_base, "rotary_stretch": ()}
    if layer in config.unrotated_layers:
        fields |= {"positions": "none", "rotary_dims": 0, "rotary_stretch": (), "local_base": 0.0}
    fields["unrotated_layers"] = ()
    return replace(config, **fields)


PATTERN_SETTINGS = (
    *("qk_norm", "attn_scale", "score_cap", "windows", "local_base", "unrotated_layers"),
    *("sinks", "alibi_slopes"),
)
"""The settings that change only how attention patterns are computed."""

ENCODER = "an encoder, whose positions see all others (causal=False): otimes.encode is its pass"

SETTINGS: dict[str, Any] = {
    "kv_rank": 0,
    "n_experts": 0,
    "gate_limit": 0.0,
    "norm_order": "pre",
    "embed_scale": 1.0,
    "embed_norm": False,
    "logit_cap": 0.0,
    "qk_norm": "none",
    "attn_scale": 0.0,
    "score_cap": 0.0,
    "windows": (),
    "local_base": 0.0,
    "unrotated_layers": (),
    "sinks": False,
    "alibi_slopes": (),
    "causal": True,
}
"""The settings that not every function takes into account, with their plain values."""


def check_settings(config: Config, what: str, also: Iterable[str] = ()) -> None:
    """Raise OtimesError naming the first setting that a function does not take into account.

    `also` are those of `SETTINGS` that it does; "output_norms" are the norm orders "output" and
    "both".

    >>> check_settings(Config(1, 1, 4, 2, 10, 8, "none", sinks=True), "paths")
    Traceback (most recent call last):
    otimes.algebra.errors.OtimesError: paths: not for a model with sinks=True, which the forward \
pass and the audit take into account
    """
    for name, plain in SETTINGS.items():
        value = getattr(config, name)
        if value == plain or name in also:
            continue
        if name == "norm_order" and value != "post" and "output_norms" in also:
            continue
        if value == "post":
            raise OtimesError(
                f"{what}: not for norm_order='post', where the residual stream is normalised after "
                "each addition, so that it is not the sum of the outputs of attention and MLPs"
            )
        if name == "causal":
            raise OtimesError(f"{what}: not for {ENCODER}")
        raise OtimesError(
            f"{what}: not for a model with {name}={value!r}, which the forward pass and the audit"
            " take into account"
        )


def gpt2_config(**changes: Any) -> Config:
    """Return the configuration of GPT-2 small, with the given fields changed.

    >>> gpt2_config(n_layers=2).d_mlp
    3072
    """
    small: dict[str, Any] = {
        "n_layers": 12,
        "n_heads": 12,
        "d_model": 768,
        "d_head": 64,
        "d_vocab": 50257,
        "n_ctx": 1024,
        "positions": "learned",
        "d_mlp": 3072,
        "activation": "gelu_tanh",
        "norm": "layer",
        "final_norm": True,
        "tied": True,
        "biases": ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out"),
    }
    return Config(**{**small, **changes})


def llama_config(**changes: Any) -> Config:
    """Return the configuration of Llama 3.2 1B, with the given fields changed.

    >>> llama_config().kv_heads
    8
    """
    one_billion: dict[str, Any] = {
        "n_layers": 16,
        "n_heads": 32,
        "d_model": 2048,
        "d_head": 64,
        "d_vocab": 128256,
        "n_ctx": 131072,
        "positions": "rotary",
        "n_kv_heads": 8,
        "rotary_dims": 64,
        "rotary_base": 500000.0,
        "rotary_layout": "half",
        "rotary_stretch": (32.0, 1.0, 4.0, 8192.0),
        "d_mlp": 8192,
        "activation": "silu",
        "gated": True,
        "norm": "rms",
        "final_norm": True,
        "tied": True,
    }
    return Config(**{**one_billion, **changes})


def listed(names: Iterable[Any]) -> str:
    """Return names as an enumeration: `a, b and c`."""
    *most, last = [str(name) for name in names] or ["nothing"]
    return f"{', '.join(most)} and {last}" if most else last
