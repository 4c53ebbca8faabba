"""Capture the activations of a live torch module, and restore its state.

Activations are recorded with forward hooks. While it runs, the module is in evaluation mode without
gradients; afterwards, also after an exception or an interrupt, its modes, hooks and buffers and the
random state are restored. Parameters are never written: changes are made to a copy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from itertools import product
from types import CellType, FunctionType
from typing import Any

import numpy as np
import torch

from otimes.numeric.audit.capture.collect import Capture, gather
from otimes.numeric.audit.capture.hooks import Keep, watch
from otimes.numeric.importers import torch_layers
from otimes.numeric.importers.unwrap import called
from otimes.numeric.model import Model


@contextmanager
def left_as_it_was(module: torch.nn.Module) -> Iterator[list[Any]]:
    """Yield a list for hook handles; remove the hooks and restore modes and random state after."""
    modes = {each: each.training for each in module.modules()}
    tables = {part: dict(part._buffers) for part in modes}
    copies = [
        (buffer, buffer.detach().clone())
        for held in tables.values()
        for buffer in held.values()
        if buffer is not None and not buffer.is_meta
    ]
    # Dynamic rotary frequencies: the length they are of is an attribute beside their buffer.
    numbers = {part: _numbers(part) for part in modes}
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
        for part, held_numbers in numbers.items():
            vars(part).update(held_numbers)
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


def _numbers(part: torch.nn.Module) -> dict[str, Any]:
    """Return the attributes of a module that are plain numbers."""
    return {name: value for name, value in vars(part).items() if type(value) in (int, float)}


def captures_of(
    module: torch.nn.Module, rows: np.ndarray, model: Model, kind: str
) -> list[Capture]:
    """Return the captures of a module on tokens [prompt, pos], one for each way it can run.

    Most have one way. Layers of torch.nn have a fast path too, which returns its result only.
    """
    if kind in torch_layers.KINDS.values():
        return _layers_shown(module, rows, model, kind)
    places: dict[str, Any] = {}
    training = module.training
    with left_as_it_was(module) as hooks:
        watch(kind, module, model, _keeping(places), hooks)
        logits = _logits(called(module, torch.as_tensor(rows).to(_parameter(module).device)))
    capture = gather(logits, places, rows, model)
    # The hooks on Hugging Face's modules see what comes out of the products.
    unturned = model.config.positions == "rotary" and kind != "lens"
    notes = (*capture.notes, EVALUATED) if training else capture.notes
    return [replace(capture, unturned=unturned, notes=notes)]


def _layers_shown(module: Any, rows: np.ndarray, model: Model, kind: str) -> list[Capture]:
    """Return the captures of layers of torch.nn, run with a causal mask.

    Hooks disable the fast path of a layer; attention has one with and one without its pattern.
    """
    parameter = _parameter(module)
    vectors = torch.tensor(model.part("W_E", rows)).to(parameter)
    first = module.layers[0] if kind == "encoder" else module
    turned = not (first if kind == "attention" else first.self_attn).batch_first
    mask = torch.ones(2 * rows.shape[1:], dtype=torch.bool, device=parameter.device).triu(1)
    last = torch_layers.last_place(model.config)

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
    for places in shown:  # identical captures are compared once
        if not any(_same_places(places, other) for other in kept):
            kept.append(places)
    captures = [gather(None, places, rows, model) for places in kept]
    return [replace(each, notes=(*each.notes, CAUSAL)) for each in captures]


EVALUATED = "the module is in training mode; it was run in evaluation mode, without dropout"
CAUSAL = (
    "run with a causal mask; the fast path of torch.nn is compared too, where the module has it"
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
    """Return the logits in the output of a module, None if it has no unembedding."""
    if hasattr(answer, "last_hidden_state"):
        return None
    if hasattr(answer, "logits"):
        return answer.logits
    return answer[0] if isinstance(answer, tuple) else answer


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a module, without the hooks of the original."""
    copies: dict[int, Any] = {}
    other = deepcopy(module, copies)
    rebind_closures(other, copies)
    for part in other.modules():
        part._forward_hooks.clear()
        part._forward_pre_hooks.clear()
    return other


def rebind_closures(copy: torch.nn.Module, copies: dict[int, Any]) -> None:
    """Let the functions that a copied module holds close over the copies of what they closed over.

    `deepcopy` returns functions as they are, so that a lambda in a copy would run the parts of the
    original. `copies` is the memo of that `deepcopy`: the copies by the id of the original.
    """
    for part in copy.modules():
        for name, value in vars(part).items():
            if isinstance(value, FunctionType) and value.__closure__:
                vars(part)[name] = _rebound(value, copies)


def _rebound(function: FunctionType, copies: dict[int, Any]) -> FunctionType:
    """Return a function whose closure holds the copies of what it held."""
    held = [called(deepcopy, cell.cell_contents, copies) for cell in function.__closure__ or ()]
    code, scope, default = function.__code__, function.__globals__, function.__defaults__
    other = FunctionType(code, scope, function.__name__, default, tuple(map(CellType, held)))
    other.__kwdefaults__ = function.__kwdefaults__
    return other


def generic(module: torch.nn.Module, still: tuple[str, ...] = (), seed: int = 0) -> torch.nn.Module:
    """Return a copy with generic parameters, so that no zero bias or unit gain hides a mistake.

    Gaussian noise is added to each parameter: to matrices in proportion to their own root mean
    square, to vectors with standard deviation 0.3; names that end in one of `still` are skipped.
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
"""The number of random values, reused for all parameters: drawing one for each is slow."""
