"""The forward hooks that record activations in modules of known classes.

Each kind of module is a table: inputs and outputs of its submodules are activations. Functions
split one projection into queries, keys and values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from otimes.numeric.config import Config
from otimes.numeric.importers.decoders import norm_names
from otimes.numeric.importers.families import DECODERS
from otimes.numeric.importers.huggingface import query_scale
from otimes.numeric.importers.transformer_lens import HOOKS
from otimes.numeric.model import Model

Keep = Callable[[str, Any], None]
Cut = Callable[[Any, Config], Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """The names of a module's submodules, those of a block relative to it ("" is the block itself).

    `body` holds the `blocks` and the final norm, `end`. `before` and `after` map submodules to the
    hook points of their inputs and outputs. `attention` may return the attention pattern; `mixed`
    reads z of all heads, concatenated; `cuts` maps a submodule to the activations in its output.
    """

    blocks: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    body: str = ""
    end: str = ""
    attention: str = ""
    mixed: str = ""
    cuts: Mapping[str, Mapping[str, Cut]] | None = None


def _of_three(index: int) -> Cut:
    """Return the split of an output [.., 3 · d] into queries, keys and values, each by heads."""
    return lambda value, c: _by_heads(value.chunk(3, dim=-1)[index], c.n_heads)


def _within_heads(index: int) -> Cut:
    """Return the split of an output by heads, and within each into queries, keys and values."""
    return lambda value, c: value.unflatten(-1, (c.n_heads, 3, c.d_head))[..., index, :].transpose(
        1, 2
    )


def _by_heads(value: Any, heads: int) -> Any:
    return value.unflatten(-1, (heads, -1)).transpose(1, 2)


def _outputs(ln1: str, attn_out: str, ln2: str, mlp_pre: str, mlp_out: str) -> dict[str, str]:
    """Return the hook points of the outputs of these submodules of a block."""
    return {ln1: "ln1", attn_out: "attn_out", ln2: "ln2", mlp_pre: "mlp_pre", mlp_out: "mlp_out"}


INPUT, BLOCK = {"": "resid_pre"}, {"": "resid_post"}
ENCODER = _outputs("norm1", "self_attn", "norm2", "linear1", "linear2")
KINDS: dict[str, Parts] = {
    "gpt2": Parts(
        body="transformer",
        blocks="h",
        end="ln_f",
        before={"": "resid_pre", "ln_2": "resid_mid", "mlp.c_proj": "mlp_post"},
        after=_outputs("ln_1", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj") | BLOCK,
        attention="attn",
        mixed="attn.c_proj",
        cuts={"attn.c_attn": {name: _of_three(index) for index, name in enumerate("qkv")}},
    ),
    "gpt_neox": Parts(
        body="gpt_neox",
        blocks="layers",
        end="final_layer_norm",
        before={"": "resid_pre", "mlp.dense_4h_to_h": "mlp_post"},
        after=_outputs(
            *("input_layernorm", "attention.dense", "post_attention_layernorm"),
            *("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
        )
        | BLOCK,
        attention="attention",
        mixed="attention.dense",
        cuts={
            "attention.query_key_value": {n: _within_heads(i) for i, n in enumerate("qkv")},
        },
    ),
    "encoder": Parts(
        blocks="layers",
        before={"": "resid_pre", "norm2": "resid_mid", "linear2": "mlp_post"},
        after=ENCODER | BLOCK,
    ),
    "post_norm_encoder": Parts(
        blocks="layers",
        before={
            "": "resid_pre",
            "norm1": "resid_mid",
            "linear2": "mlp_post",
            "norm2": "resid_post",
        },
        after=ENCODER,
    ),
}


def watch(kind: str, module: Any, model: Model, keep: Keep, hooks: list[Any]) -> None:
    """Register hooks that pass activations to `keep`; their handles are appended to `hooks`."""
    if kind == "lens":
        _watch_lens(module, model, keep, hooks)
        return
    if kind in ("encoder", "encoder_layer"):
        first = module if kind == "encoder_layer" else module.layers[0]
        parts = KINDS["encoder" if first.norm_first else "post_norm_encoder"]
    else:
        parts = _of_decoder(kind, module, model.config) if kind in DECODERS else KINDS[kind]
    body = getattr(module, parts.body, module) if parts.body else module
    blocks = [module] if kind == "encoder_layer" else body.get_submodule(parts.blocks)
    for number, block in enumerate(blocks):
        scale = 1.0
        if kind == "gpt2":
            scale = query_scale(module.config.to_dict(), number, model.d_head)
        _watch_block(parts, block, number, model.config, keep, hooks, scale)
    if parts.end:
        hooks.append(_after(body.get_submodule(parts.end), keep, "ln_final"))


def _of_decoder(kind: str, module: Any, config: Config) -> Parts:
    """Return the parts of a family of decoders, by its declaration."""
    decoder = DECODERS[kind]
    norms = norm_names(decoder, module.config.to_dict())
    cuts: dict[str, dict[str, Cut]] = {}
    after = {theirs: ours for ours, theirs in norms.items()}
    if "ln1" in norms and norms["ln1"] == norms.get("ln2"):  # one norm for both
        cuts[norms["ln1"]] = dict.fromkeys(("ln1", "ln2"), lambda value, c: value)
        del after[norms["ln1"]]
    gate = decoder.mlp.get("gate", decoder.mlp["in"])
    before = {"": "resid_pre", decoder.mlp["out"]: "mlp_post"}
    out = decoder.mlp["out"]
    if decoder.experts:  # which see the tokens that come to them, one expert at a time
        before, gate, out = {"": "resid_pre"}, "", decoder.experts.whole.rpartition(".")[0]
    if "ln2" in norms and not config.parallel:
        before[norms["ln2"]] = "resid_mid"
    elif not config.norms_before and gate:
        before[gate] = "resid_mid"
    if config.kv_rank:
        cuts["self_attn.kv_b_proj"] = {"v": _of_latent}
        after |= {"self_attn.kv_a_layernorm": "kv_latent"}
        after |= {"self_attn.q_a_layernorm": "q_latent"} if config.q_rank else {}
    if decoder.fused_mlp:
        cuts[decoder.fused_mlp] = {"mlp_pre": lambda value, c: value[..., : c.d_mlp]}
    elif gate:
        after[gate] = "mlp_pre"
    counts = {"q": config.n_heads, "k": config.kv_heads, "v": config.kv_heads}
    if decoder.fused:
        split = _of_groups if decoder.in_groups else _after_another
        cuts[decoder.fused] = {name: split(name, counts) for name in counts}
    for name, count in {} if config.kv_rank else counts.items():
        if name in decoder.qk and config.qk_norm != "none":
            first = config.qk_norm == "head" and decoder.heads_first
            cuts[decoder.qk[name]] = {name: _normed(config.qk_norm, count, first)}
        elif not decoder.fused:
            cuts[decoder.heads[name.upper()]] = {name: _split(count)}
    return Parts(
        body=decoder.body.rstrip("."),
        blocks=decoder.layers,
        end=decoder.final,
        before=before,
        after={
            **after,
            decoder.heads["O"]: "attn_out",
            out: "mlp_out",
            "": "resid_post",
        },
        attention=decoder.heads["O"].rpartition(".")[0],
        mixed=decoder.heads["O"],
        cuts=cuts,
    )


def _split(count: int) -> Cut:
    """Return the split of an output [.., heads · d_head] by heads."""
    return lambda value, c: _by_heads(value, count)


def _of_latent(value: Any, config: Config) -> Any:
    """Return the values in the projection of a latent, which may have an axis of one head."""
    rows = value.reshape(value.shape[0], -1, value.shape[-1])
    return _by_heads(rows, config.n_heads)[..., config.d_key :]


def _normed(kind: str, count: int, heads_first: bool) -> Cut:
    """Return the heads in the output of a query or key norm."""
    if kind == "all":
        return _split(count)
    return lambda value, c: value if heads_first else value.transpose(1, 2)


def _of_groups(name: str, counts: Mapping[str, int]) -> Cut:
    """Return the split of an output that holds, for each group, queries, a key and a value."""
    chosen = {"q": slice(-2), "k": slice(-2, -1), "v": slice(-1, None)}[name]

    def cut(value: Any, c: Config) -> Any:
        own = value.unflatten(-1, (c.kv_heads, -1, c.d_head))[..., chosen, :]
        return own.flatten(-3, -2).transpose(1, 2)

    return cut


def _after_another(name: str, counts: Mapping[str, int]) -> Cut:
    """Return the split of an output that holds queries, keys and values one after the other."""
    order = [*counts]
    first = sum(counts[each] for each in order[: order.index(name)])

    def cut(value: Any, c: Config) -> Any:
        own = value[..., first * c.d_head : (first + counts[name]) * c.d_head]
        return _by_heads(own, counts[name])

    return cut


def _watch_block(
    parts: Parts,
    block: Any,
    number: int,
    config: Config,
    keep: Keep,
    hooks: list[Any],
    query_scale: float,
) -> None:
    for part, place in parts.before.items():
        hooks.append(_before(block.get_submodule(part), keep, f"{place}.{number}"))
    scale = config.write_scale  # multiplied in float64, for the module has not rounded it yet
    for part, place in parts.after.items():
        written = scale != 1 and place in ("attn_out", "mlp_out")
        change = (lambda value: value.double() * scale) if written else _same
        hooks.append(_after(block.get_submodule(part), keep, f"{place}.{number}", change))
    for part, cuts in (parts.cuts or {}).items():
        for place, cut in cuts.items():

            def out(value: Any, cut: Cut = cut, place: str = place) -> Any:
                cut_out = cut(value, config)
                scaled = place == "q" and query_scale != 1
                # In float64, for the module makes no such rounding.
                return cut_out.double() * query_scale if scaled else cut_out

            hooks.append(_after(block.get_submodule(part), keep, f"{place}.{number}", out))
    if parts.mixed:
        mixed = block.get_submodule(parts.mixed)
        hooks.append(
            _before(mixed, keep, f"z.{number}", lambda value: _by_heads(value, config.n_heads))
        )
    if parts.attention:
        hooks.append(_pattern(block.get_submodule(parts.attention), keep, number))


def _watch_lens(module: Any, model: Model, keep: Keep, hooks: list[Any]) -> None:
    parts = dict(module.named_modules())
    rotary = model.config.positions == "rotary"
    for number in range(model.n_layers):
        for kind, hook in HOOKS.items():
            name = {"q": "attn.hook_rot_q", "k": "attn.hook_rot_k"}.get(kind, hook)
            part = parts.get(f"blocks.{number}.{name if rotary else hook}")
            if part is None:
                continue
            turned = kind in ("q", "k", "v", "z")

            def cut(value: Any, turned: bool = turned) -> Any:
                return value.transpose(1, 2) if turned else value

            hooks.append(_after(part, keep, f"{kind}.{number}", cut))


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value


def _same(value: Any) -> Any:
    return value


def _after(part: Any, keep: Keep, name: str, change: Callable[[Any], Any] = _same) -> Any:
    return part.register_forward_hook(lambda _, __, value: keep(name, change(_first(value))))


def _before(part: Any, keep: Keep, name: str, change: Callable[[Any], Any] = _same) -> Any:
    def see(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        keep(name, change(args[0] if args else kwargs["hidden_states"]))

    return part.register_forward_pre_hook(see, with_kwargs=True)


def _pattern(attention: Any, keep: Keep, number: int) -> Any:
    """Keep the attention pattern where attention returns it (eager attention)."""

    def see(_: Any, __: Any, value: Any) -> None:
        if isinstance(value, tuple) and len(value) > 1 and hasattr(value[1], "shape"):
            keep(f"pattern.{number}", value[1])

    return attention.register_forward_hook(see)
