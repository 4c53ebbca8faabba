"""Running a live module of torch so that it shows its places, and leaving it as it was.

Places are read with forward hooks on the module's own parts. While it runs, the module is in
evaluation mode and records no gradients; afterwards, also after an exception or an interrupt, its
modes, its hooks, its buffers and the random state are what they were. Parameters are never written:
what needs other numbers or another type is done to a copy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import product
from typing import Any

import numpy as np
import torch

from numeric.audit import importers_torch
from numeric.audit.calling import called
from numeric.audit.collect import Collected, gather
from numeric.audit.watch import Keep, watch
from numeric.model import Model


@contextmanager
def left_as_it_was(module: torch.nn.Module) -> Iterator[list[Any]]:
    """Yield a list for hooks to be taken off; put modes and random state back in any case."""
    modes = {each: each.training for each in module.modules()}
    tables = {part: dict(part._buffers) for part in modes}
    copies = [
        (buffer, buffer.detach().clone())
        for held in tables.values()
        for buffer in held.values()
        if buffer is not None and not buffer.is_meta
    ]
    random = torch.get_rng_state()
    on_devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
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
        for part, held in tables.items():
            part._buffers.clear()
            part._buffers.update(held)
        for buffer, before in copies:
            if not torch.equal(buffer, before):
                buffer.detach().copy_(before)
        torch.set_rng_state(random)
        if on_devices is not None:
            torch.cuda.set_rng_state_all(on_devices)
        np.random.set_state(numpy_random)


def shown_by(module: torch.nn.Module, rows: np.ndarray, model: Model, kind: str) -> list[Collected]:
    """Return what a module shows on tokens [prompt, pos], its type as it is, each way it can run.

    Most run in one way. Layers of torch.nn have a fast path besides, which shows its result only.
    """
    if kind in importers_torch.KINDS.values():
        return _layers_shown(module, rows, model, kind)
    places: dict[str, Any] = {}
    training = module.training
    with left_as_it_was(module) as hooks:
        watch(kind, module, model, _keeping(places), hooks)
        logits = _logits(called(module, torch.as_tensor(rows).to(_parameter(module).device)))
    shown = gather(logits, places, rows, model)
    # The hooks on Hugging Face's modules see what comes out of the products.
    shown.unturned = model.config.positions == "rotary" and kind != "lens"
    if training:
        shown.notes.append(EVALUATED)
    return [shown]


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
        return called(module, *arguments, **{says: mask}, is_causal=True, **options)

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
            watch(kind, module, model, lambda name, v: keep(name, there_and_back(v)), hooks)
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


EVALUATED = "the module is in training mode; it was run in evaluation mode, without dropout"
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
    """Return the logits of what a module returns, None if it has no head and stops before them."""
    if hasattr(answer, "last_hidden_state"):
        return None
    if hasattr(answer, "logits"):
        return answer.logits
    return answer[0] if isinstance(answer, tuple) else answer


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a module, without the hooks of the original."""
    other = deepcopy(module)
    for part in other.modules():
        part._forward_hooks.clear()
        part._forward_pre_hooks.clear()
    return other


def generic(module: torch.nn.Module, still: tuple[str, ...] = (), seed: int = 0) -> torch.nn.Module:
    """Return a copy with generic parameters: no zero bias and no unit gain hides a mistake.

    Each parameter is disturbed: matrices by a part of their own size, vectors by 0.3; those whose
    names end in one of `still` are left alone.
    """
    other = copied(module)
    noise = torch.randn(NOISE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    twice = {dtype: noise.repeat(2).to(dtype) for dtype in {p.dtype for p in other.parameters()}}
    with torch.no_grad():
        named = [p for n, p in other.named_parameters() if not n.endswith(still)]
        for number, parameter in enumerate(named):
            size = 0.3
            if parameter.ndim >= 2:
                wide = torch.promote_types(parameter.dtype, torch.float32)
                norm = float(torch.linalg.vector_norm(parameter, dtype=wide))
                size = 0.5 * max(norm / max(parameter.numel(), 1) ** 0.5, 0.02)
            # From an entry of its own on, and from there again: the length divides no width.
            own = twice[parameter.dtype][number * 7919 % NOISE :].to(parameter.device)
            entries = parameter.reshape(-1)
            for piece in entries.split(NOISE):
                piece.add_(own[: len(piece)], alpha=size)
            if entries.data_ptr() != parameter.data_ptr():
                parameter.copy_(entries.view(parameter.shape))
    return other


NOISE = 2**20 + 7
"""So many random numbers disturb all parameters: to draw one for each would take longest of all."""
