"""Running a live module of torch so that it shows its places, and leaving it as it was.

Places are read with forward hooks on the module's own parts. While it runs, the module is in
evaluation mode and records no gradients; afterwards, also after an exception or an interrupt, its
modes, its hooks and the random state are what they were. Parameters and buffers are never written:
what needs other numbers or another type is done to a copy.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from itertools import product
from typing import Any

import numpy as np
import torch

from numeric.audit import importers_torch
from numeric.audit.collect import Collected, gather
from numeric.audit.importers_lens import HOOKS
from numeric.model import Model

Keep = Callable[[str, Any], None]


@contextmanager
def left_as_it_was(module: torch.nn.Module) -> Iterator[list[Any]]:
    """Yield a list for hooks to be taken off; put modes and random state back in any case."""
    modes = {each: each.training for each in module.modules()}
    random = torch.get_rng_state()
    numpy_random = np.random.get_state()
    hooks: list[Any] = []
    try:
        module.eval()
        with torch.no_grad():
            yield hooks
    finally:
        for hook in hooks:
            hook.remove()
        for each, training in modes.items():
            each.training = training
        torch.set_rng_state(random)
        np.random.set_state(numpy_random)


def shown_by(module: torch.nn.Module, rows: np.ndarray, model: Model, kind: str) -> list[Collected]:
    """Return what a module shows on tokens [prompt, pos], its type as it is, each way it can run.

    Most run in one way. Layers of torch.nn have a fast path besides, which shows its result only.
    """
    if kind in importers_torch.KINDS.values():
        return _layers_shown(module, rows, model, kind)
    places: dict[str, Any] = {}
    with left_as_it_was(module) as hooks:
        WATCH[kind](module, model, _keeping(places), hooks)
        logits = _logits(module(torch.as_tensor(rows).to(_parameter(module).device)))
    return [gather(logits, places, rows, model)]


def _layers_shown(module: Any, rows: np.ndarray, model: Model, kind: str) -> list[Collected]:
    """Return what layers of torch.nn show, run with a causal mask of our own.

    Hooks keep a layer off its fast path; an attention has one with and one without its pattern.
    """
    parameter = _parameter(module)
    vectors = torch.tensor(model.part("W_E", rows)).to(parameter)
    first = module.layers[0] if kind == "encoder" else module
    turned = not (first if kind == "attention" else first.self_attn).batch_first
    mask = torch.ones(2 * rows.shape[1:], dtype=torch.bool, device=parameter.device).triu(1)
    last = importers_torch.last_place(model.config)

    def there_and_back(value: torch.Tensor) -> torch.Tensor:
        return value.transpose(0, 1) if turned else value

    def ran(**options: Any) -> Any:
        source = there_and_back(vectors)
        arguments = (source, source, source) if kind == "attention" else (source,)
        says = {"encoder": "mask", "encoder_layer": "src_mask", "attention": "attn_mask"}[kind]
        return module(*arguments, **{says: mask}, is_causal=True, **options)

    shown: list[dict[str, Any]] = []
    with left_as_it_was(module) as hooks:
        if kind == "attention":
            for weights, fast in product((True, False), repeat=2):
                with _fast_path(fast):
                    out, pattern = ran(need_weights=weights, average_attn_weights=False)
                shown.append({last: there_and_back(out)})
                if weights:
                    shown[-1]["pattern.0"] = pattern
        else:
            places: dict[str, Any] = {}
            keep = _keeping(places)
            _watch_layers(
                module, model, lambda name, value: keep(name, there_and_back(value)), hooks
            )
            places[last] = there_and_back(ran())
            shown.append(places)
            while hooks:
                hooks.pop().remove()
            shown.append({last: there_and_back(ran())})
    kept: list[dict[str, Any]] = []
    for places in shown:  # what is the same to the last bit need not be judged twice
        if not any(_same_places(places, other) for other in kept):
            kept.append(places)
    collected = [gather(None, places, rows, model) for places in kept]
    for each in collected:
        each.notes.append(CAUSAL)
    return collected


CAUSAL = (
    "run with a causal mask; the fast path of torch.nn is judged too, where the module takes it"
)


def _same_places(places: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(name in other and torch.equal(each, other[name]) for name, each in places.items())


@contextmanager
def _fast_path(enabled: bool) -> Iterator[None]:
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(enabled)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _parameter(module: torch.nn.Module) -> torch.nn.Parameter:
    return next(module.parameters())


def _keeping(places: dict[str, Any]) -> Keep:
    def keep(name: str, value: Any) -> None:
        places[name] = value.detach().clone()

    return keep


def _logits(answer: Any) -> Any:
    if hasattr(answer, "logits"):
        return answer.logits
    return answer[0] if isinstance(answer, tuple) else answer


def copied(module: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """Return a copy of a module in another type, without the hooks of the original."""
    other = deepcopy(module)
    for part in other.modules():
        part._forward_hooks.clear()
        part._forward_pre_hooks.clear()
    return other.to(dtype)


def generic(module: torch.nn.Module, still: tuple[str, ...] = (), seed: int = 0) -> torch.nn.Module:
    """Return a copy with generic parameters: no zero bias and no unit gain hides a mistake.

    Each parameter is disturbed: matrices by a part of their own size, vectors by 0.3; those whose
    names end in one of `still` are left alone.
    """
    other = copied(module, next(module.parameters()).dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        named = {id(p): (n, p) for n, p in other.named_parameters() if not n.endswith(still)}
        for _, parameter in named.values():
            wide = torch.float64 if parameter.dtype == torch.float64 else torch.float32
            noise = torch.randn(parameter.shape, generator=generator, dtype=wide)
            size = 0.3
            if parameter.ndim >= 2:
                size = 0.5 * max(float(parameter.detach().to(wide).std()), 0.02)
            parameter.add_(noise.mul_(size).to(parameter))
    return other


# -- where each kind of module shows which place --------------------------------------------------


def _heads(value: torch.Tensor, heads: int) -> torch.Tensor:
    return value.unflatten(-1, (heads, -1)).transpose(1, 2)


def _watch_gpt2(module: Any, model: Model, keep: Keep, hooks: list[Any]) -> None:
    body = getattr(module, "transformer", module)
    c = model.config
    for number, block in enumerate(body.h):

        def qkv(_: Any, __: Any, value: torch.Tensor, n: int = number) -> None:
            for kind, part in zip("qkv", value.chunk(3, dim=-1), strict=True):
                keep(f"{kind}.{n}", _heads(part, c.n_heads))

        hooks.append(_before(block, keep, f"resid_pre.{number}"))
        hooks.append(_after(block.ln_1, keep, f"ln1.{number}"))
        hooks.append(block.attn.c_attn.register_forward_hook(qkv))
        hooks.append(
            _before(block.attn.c_proj, keep, f"z.{number}", lambda x: _heads(x, c.n_heads))
        )
        hooks.append(_pattern(block.attn, keep, number))
        hooks.append(_after(block.attn.c_proj, keep, f"attn_out.{number}"))
        hooks.append(_before(block.ln_2, keep, f"resid_mid.{number}"))
        hooks.append(_after(block.ln_2, keep, f"ln2.{number}"))
        hooks.append(_after(block.mlp.c_fc, keep, f"mlp_pre.{number}"))
        hooks.append(_before(block.mlp.c_proj, keep, f"mlp_post.{number}"))
        hooks.append(_after(block.mlp.c_proj, keep, f"mlp_out.{number}"))
        hooks.append(_after(block, keep, f"resid_post.{number}"))
    hooks.append(_after(body.ln_f, keep, "ln_final"))


def _watch_neox(module: Any, model: Model, keep: Keep, hooks: list[Any]) -> None:
    c = model.config
    for number, block in enumerate(module.gpt_neox.layers):
        hooks.append(_before(block, keep, f"resid_pre.{number}"))
        hooks.append(_after(block.input_layernorm, keep, f"ln1.{number}"))

        def values(_: Any, __: Any, value: torch.Tensor, n: int = number) -> None:
            cut = value.unflatten(-1, (c.n_heads, 3, c.d_head))
            for index, kind in enumerate("qkv"):
                keep(f"{kind}.{n}", cut[..., index, :].transpose(1, 2))

        hooks.append(block.attention.query_key_value.register_forward_hook(values))
        hooks.append(
            _before(block.attention.dense, keep, f"z.{number}", lambda x: _heads(x, c.n_heads))
        )
        hooks.append(_pattern(block.attention, keep, number))
        hooks.append(_after(block.attention.dense, keep, f"attn_out.{number}"))
        hooks.append(_after(block.post_attention_layernorm, keep, f"ln2.{number}"))
        hooks.append(_after(block.mlp.dense_h_to_4h, keep, f"mlp_pre.{number}"))
        hooks.append(_before(block.mlp.dense_4h_to_h, keep, f"mlp_post.{number}"))
        hooks.append(_after(block.mlp.dense_4h_to_h, keep, f"mlp_out.{number}"))
        hooks.append(_after(block, keep, f"resid_post.{number}"))
    hooks.append(_after(module.gpt_neox.final_layer_norm, keep, "ln_final"))


def _watch_llama(module: Any, model: Model, keep: Keep, hooks: list[Any]) -> None:
    c = model.config
    for number, block in enumerate(module.model.layers):
        hooks.append(_before(block, keep, f"resid_pre.{number}"))
        hooks.append(_after(block.input_layernorm, keep, f"ln1.{number}"))
        for kind, heads in (("q", c.n_heads), ("k", c.kv_heads), ("v", c.kv_heads)):
            part = getattr(block.self_attn, f"{kind}_proj")

            def cut(value: torch.Tensor, heads: int = heads) -> torch.Tensor:
                return _heads(value, heads)

            hooks.append(_after(part, keep, f"{kind}.{number}", cut))
        hooks.append(
            _before(block.self_attn.o_proj, keep, f"z.{number}", lambda x: _heads(x, c.n_heads))
        )
        hooks.append(_pattern(block.self_attn, keep, number))
        hooks.append(_after(block.self_attn.o_proj, keep, f"attn_out.{number}"))
        hooks.append(_before(block.post_attention_layernorm, keep, f"resid_mid.{number}"))
        hooks.append(_after(block.post_attention_layernorm, keep, f"ln2.{number}"))
        hooks.append(_after(block.mlp.gate_proj, keep, f"mlp_pre.{number}"))
        hooks.append(_before(block.mlp.down_proj, keep, f"mlp_post.{number}"))
        hooks.append(_after(block.mlp.down_proj, keep, f"mlp_out.{number}"))
        hooks.append(_after(block, keep, f"resid_post.{number}"))
    hooks.append(_after(module.model.norm, keep, "ln_final"))


def _watch_layers(module: Any, model: Model, keep: Keep, hooks: list[Any]) -> None:
    for number, layer in enumerate(getattr(module, "layers", [module])):
        hooks.append(_before(layer, keep, f"resid_pre.{number}"))
        hooks.append(_after(layer.norm1, keep, f"ln1.{number}"))
        hooks.append(_after(layer.self_attn, keep, f"attn_out.{number}"))
        hooks.append(_before(layer.norm2, keep, f"resid_mid.{number}"))
        hooks.append(_after(layer.norm2, keep, f"ln2.{number}"))
        hooks.append(_after(layer.linear1, keep, f"mlp_pre.{number}"))
        hooks.append(_before(layer.linear2, keep, f"mlp_post.{number}"))
        hooks.append(_after(layer.linear2, keep, f"mlp_out.{number}"))
        hooks.append(_after(layer, keep, f"resid_post.{number}"))


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

            def cut(value: torch.Tensor, turned: bool = turned) -> torch.Tensor:
                return value.transpose(1, 2) if turned else value

            hooks.append(_after(part, keep, f"{kind}.{number}", cut))


WATCH: Mapping[str, Callable[[Any, Model, Keep, list[Any]], None]] = {
    "gpt2": _watch_gpt2,
    "gpt_neox": _watch_neox,
    "llama": _watch_llama,
    "lens": _watch_lens,
}


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
    """Keep the pattern where the attention hands it out (eager), and nothing where it does not."""

    def see(_: Any, __: Any, value: Any) -> None:
        if isinstance(value, tuple) and len(value) > 1 and hasattr(value[1], "shape"):
            keep(f"pattern.{number}", value[1])

    return attention.register_forward_hook(see)
