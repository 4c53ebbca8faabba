"""Decoders that are made of the parts of Llama: declared as a record, read by one function.

A `Decoder` says which norms a block has and where, which tensors are its queries, keys, values,
output and MLP, which biases it has, and what else its settings declare: windows, caps, query and
key norms, scales. The hooks that record a live module are derived from the same record.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from otimes.numeric.config import Config
from otimes.numeric.importers.checkpoint import (
    Settings,
    Tensors,
    activation,
    as_is,
    ends,
    stacked,
    tensor,
)
from otimes.numeric.importers.experts import ExpertNames, read_experts
from otimes.numeric.importers.latents import read_latents
from otimes.numeric.importers.rotary import rotary
from otimes.numeric.tensors import Tensor, as_floats

Fields = dict[str, Any]

PRE = {"ln1": "input_layernorm", "ln2": "post_attention_layernorm"}
HEADS = {letter: f"self_attn.{letter.lower()}_proj" for letter in "QKVO"}
GATED = {"in": "mlp.up_proj", "gate": "mlp.gate_proj", "out": "mlp.down_proj"}


def no_biases(settings: Settings) -> Iterable[str]:
    """Return no bias."""
    return ()


def nothing_more(name: str, settings: Settings) -> Fields:
    """Return no further field."""
    return {}


@dataclass(frozen=True, slots=True)
class Decoder:
    """The declaration of a family of decoders.

    `norms` maps ours to the names in a block. `heads` and `mlp` map letters and names to linear
    layers; `fused` and `fused_mlp` are layers that hold queries, keys and values, or gate and up,
    one after the other, or, with `in_groups`, the queries of a group of heads and then its key and
    value. `qk` names the query and key norms, of the kind `qk_norm`; `heads_first` says that a norm
    of each head gets the heads before the positions, `qk_each` that each head has its own gain.
    `fraction` of a head is rotated by default, in pairs by `layout`; with `whole`, nothing but all
    of it is supported. `standard` gives settings the names of Llama, `positions` says where tokens
    are, `more` what else is declared. `read` and `only` are the settings that are read, and those
    supported with some values only. `experts` names the experts of a family that has them, whose
    numbers are in `more`; `sinks` is a tensor of attention, and `learned` one of positions, which
    has `before_positions` rows more, and to which the first of the `token_types` is added.
    `norm_gains` and `norm_biases` say whether norms have these.
    """

    norms: Mapping[str, str] | Callable[[Mapping[str, Any]], Mapping[str, str]] = field(
        default_factory=lambda: PRE
    )
    order: str = "pre"
    norm: str = "rms"
    eps: str = "rms_norm_eps"
    act: str = "hidden_act"
    heads: Mapping[str, str] = field(default_factory=lambda: HEADS)
    mlp: Mapping[str, str] = field(default_factory=lambda: GATED)
    fused: str = ""
    fused_mlp: str = ""
    qk: Mapping[str, str] = field(default_factory=dict)
    qk_norm: str = "none"
    heads_first: bool = False
    qk_each: bool = False
    biases: Callable[[Settings], Iterable[str]] = no_biases
    parallel: Callable[[Settings], bool] = lambda settings: False
    more: Callable[[str, Settings], Fields] = nothing_more
    fraction: float = 1.0
    whole: bool = True
    layout: str = "half"
    body: str = "model."
    embed: str = "embed_tokens"
    embed_norm: str = ""
    learned: str = ""
    before_positions: int = 0
    token_types: str = ""
    layers: str = "layers"
    final: str = "norm"
    in_groups: bool = False
    norm_biases: bool = True
    norm_gains: bool = True
    standard: Callable[[str, Settings], Settings] = lambda name, settings: settings
    experts: ExpertNames | None = None
    sinks: str = ""
    positions: Callable[["Decoder", str, Settings], Fields] = lambda decoder, name, settings: (
        rotary(name, settings, head_width(settings), decoder.fraction, decoder.whole)
        | {"rotary_layout": decoder.layout}
    )
    read: frozenset[str] = frozenset()
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


def norm_names(decoder: Decoder, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the norms of a block by our names; a parallel block of StableLM has one for both."""
    if callable(decoder.norms):
        return dict(decoder.norms(settings))
    if settings.get("use_parallel_residual") and "ln2" in decoder.norms:
        return {**decoder.norms, "ln2": decoder.norms["ln1"]}
    return dict(decoder.norms)


def head_width(settings: Settings) -> int:
    """Return d_head."""
    width = settings.get("head_dim")
    return width or settings.size("hidden_size") // settings.size("num_attention_heads")


def read_decoder(
    decoder: Decoder, name: str, settings: Settings, tensors: Tensors
) -> tuple[Config, dict[str, Tensor]]:
    """Return the configuration and the weights of a checkpoint of a declared family."""
    settings = decoder.standard(name, settings)
    heads, d = settings.size("num_attention_heads"), settings.size("hidden_size")
    dh, d_vocab = head_width(settings), settings.size("vocab_size")
    tied, weights = ends(tensors, f"{decoder.body}{decoder.embed}.weight", d_vocab, d)
    fields: Fields = {
        "n_layers": settings.size("num_hidden_layers"),
        "n_heads": heads,
        "n_kv_heads": settings.get("num_key_value_heads") or heads,
        "d_model": d,
        "d_head": dh,
        "d_vocab": d_vocab,
        "d_mlp": 0 if decoder.experts else settings.size("intermediate_size"),
        "activation": activation(name, settings.get(decoder.act) or settings["hidden_act"]),
        "gated": "gate" in decoder.mlp,
        "parallel": decoder.parallel(settings),
        "norm": decoder.norm,
        "norm_eps": settings[decoder.eps],
        "norm_order": decoder.order,
        "final_norm": True,
        "tied": tied,
        "biases": tuple(decoder.biases(settings)),
        "qk_norm": decoder.qk_norm,
        "embed_norm": bool(decoder.embed_norm),
        **decoder.positions(decoder, name, settings),
        **decoder.more(name, settings),
    }
    config = Config(**_without_idle_windows(fields))
    read = _Reader(decoder, config, settings, tensors)
    if decoder.learned:
        rows, skipped = config.n_ctx + decoder.before_positions, decoder.before_positions
        name_of = f"{decoder.body}{decoder.learned}.weight"
        positions = tensor(tensors, name_of, (rows, d))[skipped:]
        if decoder.token_types:
            shape = (settings.get("type_vocab_size") or 2, d)
            types = tensor(tensors, f"{decoder.body}{decoder.token_types}.weight", shape)
            positions = as_floats(positions).astype(np.float64) + as_floats(types[:1])
        weights["W_pos"] = positions
    if config.kv_rank:
        weights |= read_latents(config, read.stacked)
    for letter in () if config.kv_rank else "QKV":
        weights |= read.head(letter)
    weights |= read.linear("O", decoder.heads["O"], (d, heads * config.value_width))
    if decoder.experts:
        weights |= read_experts(decoder.experts, config, tensors, read.block)
    for part in () if decoder.experts else decoder.mlp:
        weights |= read.mlp(part)
    if decoder.sinks:
        weights["sinks"] = read.stacked(decoder.sinks, (heads,), as_is)
    return config, weights | read.norms() | read.unembedding_bias()


def _without_idle_windows(fields: Fields) -> Fields:
    """Return the fields without windows that no layer has, and the rotary base of their layers."""
    windows, longest = fields.get("windows", ()), fields["n_ctx"]
    # A window as long as the longest prompt hides nothing; it may choose the rotary base, though.
    if any(0 < each < longest for each in windows) or (any(windows) and fields.get("local_base")):
        return fields
    return {key: each for key, each in fields.items() if key not in ("windows", "local_base")}


class _Reader:
    """Reads the tensors of a checkpoint by the declaration of its family."""

    def __init__(
        self, decoder: Decoder, config: Config, settings: Settings, tensors: Tensors
    ) -> None:
        self.decoder, self.config, self.settings = decoder, config, settings
        self.tensors, self.block = tensors, f"{decoder.body}{decoder.layers}.{{}}."

    def stacked(self, name: str, shape: tuple[int, ...], change: Callable[..., Any]) -> Tensor:
        """Return one tensor of every layer."""
        return stacked(self.tensors, self.block + name, self.config.n_layers, shape, change)

    def head(self, letter: str) -> dict[str, Tensor]:
        """Return the weight of queries, keys or values and, if there is one, the bias."""
        c = self.config
        counts = {"Q": c.n_heads, "K": c.kv_heads, "V": c.kv_heads}
        count, dh, d = counts[letter], c.d_head, c.d_model
        rows, start = count * dh, 0
        part = self.decoder.heads.get(letter, "")
        if self.decoder.fused:
            part, rows = self.decoder.fused, sum(counts.values()) * dh
            start = dh * {"Q": 0, "K": c.n_heads, "V": c.n_heads + c.kv_heads}[letter]
        own = slice(start, start + count * dh)
        if self.decoder.in_groups:
            return self._of_group(letter, part, rows)
        found = {
            f"W_{letter}": self.stacked(
                part + ".weight", (rows, d), lambda w: w[own].reshape(count, dh, d).swapaxes(1, 2)
            )
        }
        if c.has(f"b_{letter}"):
            found[f"b_{letter}"] = self.stacked(
                part + ".bias", (rows,), lambda b: b[own].reshape(count, dh)
            )
        return found

    def _of_group(self, letter: str, part: str, rows: int) -> dict[str, Tensor]:
        """Return queries, keys or values out of groups of heads."""
        c = self.config
        groups, dh = c.kv_heads, c.d_head
        chosen = {"Q": slice(-2), "K": slice(-2, -1), "V": slice(-1, None)}[letter]

        def own(array: np.ndarray) -> np.ndarray:
            split = array.reshape(groups, -1, dh, *array.shape[1:])[:, chosen]
            return split.reshape(-1, *split.shape[2:])

        found = {
            f"W_{letter}": self.stacked(
                part + ".weight", (rows, c.d_model), lambda w: own(w).swapaxes(1, 2)
            )
        }
        if c.has(f"b_{letter}"):
            found[f"b_{letter}"] = self.stacked(part + ".bias", (rows,), own)
        return found

    def linear(self, letter: str, part: str, shape: tuple[int, int]) -> dict[str, Tensor]:
        """Return the output weight of attention and, if there is one, its bias."""
        c = self.config
        found = {
            f"W_{letter}": self.stacked(
                *(part + ".weight", shape),
                lambda w: w.T.reshape(c.n_heads, c.value_width, c.d_model),
            )
        }
        if c.has(f"b_{letter}"):
            found[f"b_{letter}"] = self.stacked(part + ".bias", shape[:1], as_is)
        return found

    def mlp(self, part: str) -> dict[str, Tensor]:
        """Return a weight of the MLP and, if there is one, its bias."""
        c, name = self.config, self.decoder.mlp[part]
        shape = (c.d_model, c.d_mlp) if part == "out" else (c.d_mlp, c.d_model)
        own = slice(None)
        if self.decoder.fused_mlp and part != "out":
            name, shape = self.decoder.fused_mlp, (2 * c.d_mlp, c.d_model)
            own = slice(c.d_mlp) if part == "gate" else slice(c.d_mlp, None)
        found = {f"W_{part}": self.stacked(name + ".weight", shape, lambda w: w[own].T)}
        if c.has(f"b_{part}"):
            found[f"b_{part}"] = self.stacked(name + ".bias", shape[:1], lambda b: b[own])
        return found

    def norms(self) -> dict[str, Tensor]:
        """Return the gains and biases of all norms."""
        c, decoder = self.config, self.decoder
        d, both = c.d_model, (("gain", "weight"), ("bias", "bias"))
        found: dict[str, Tensor] = {}
        for ours, theirs in norm_names(decoder, self.settings).items():
            for part, name in both:
                if c.has(f"{ours}_{part}") and not self._absent(part):
                    found[f"{ours}_{part}"] = self.stacked(f"{theirs}.{name}", (d,), as_is)
        for part, name in both:
            ends = {"ln_final": decoder.final, "ln_embed": decoder.embed_norm}
            for ours, theirs in ends.items():
                if c.has(f"{ours}_{part}") and not self._absent(part):
                    whole = f"{decoder.body}{theirs}.{name}"
                    found[f"{ours}_{part}"] = tensor(self.tensors, whole, (d,))
        for part, value in (("gain", 1), ("bias", 0)):
            names = [each for each in c.tensor_shapes() if each.endswith(f"_{part}")]
            if self._absent(part):
                found |= {x: np.broadcast_to(np.float32(value), c.shape(x)) for x in names}
        for letter, count in (("q", c.n_heads), ("k", c.kv_heads)):
            if letter in decoder.qk and c.qk_norm != "none":
                found |= self._qk_norm(letter, count)
        return found

    def _absent(self, part: str) -> bool:
        """Return whether the norms of the family have no biases (MPT), or no gains (OLMo 1)."""
        has = self.decoder.norm_biases if part == "bias" else self.decoder.norm_gains
        return not has

    def _qk_norm(self, letter: str, count: int) -> dict[str, Tensor]:
        """Return the gain of a query or key norm, for each head."""
        dh, name = self.config.d_head, self.decoder.qk[letter] + ".weight"
        if self.config.qk_norm == "all":
            gain = self.stacked(name, (count * dh,), lambda w: w.reshape(count, dh))
        elif self.decoder.qk_each:
            gain = self.stacked(name, (count, dh), as_is)
        else:
            gain = self.stacked(name, (dh,), lambda w: np.broadcast_to(w, (count, dh)))
        return {f"{letter}_norm_gain": gain}

    def unembedding_bias(self) -> dict[str, Tensor]:
        """Return the bias of the logits, if there is one."""
        if not self.config.has("b_U"):
            return {}
        return {"b_U": tensor(self.tensors, "lm_head.bias", (self.config.d_vocab,))}
