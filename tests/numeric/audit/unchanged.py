"""A module before and after: everything that an audit must leave as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_forward_hooks_with_kwargs")


@contextmanager
def unchanged(module: nn.Module) -> Iterator[None]:
    """Disturb the module first, so that no default hides anything; compare in any case after."""
    for number, part in enumerate(module.modules()):
        part.training = number % 2 == 0
    hook = module.register_forward_hook(lambda *_: None)
    parameters = dict(module.named_parameters())
    for number, parameter in enumerate(parameters.values()):
        parameter.requires_grad_(number % 2 == 0)
        parameter.grad = torch.full_like(parameter, 3.0) if number % 3 == 0 else None
    torch.manual_seed(5)
    np.random.seed(5)
    before = _everything(module)
    try:
        yield
    finally:
        after = _everything(module)
        hook.remove()
        assert before.keys() == after.keys()
        changed = [name for name, value in before.items() if not _same(value, after[name])]
        assert not changed, changed
        assert all(parameters[name] is p for name, p in module.named_parameters())


def _everything(module: nn.Module) -> dict[str, object]:
    found: dict[str, object] = {
        "random": torch.get_rng_state(),
        "NumPy's random": np.random.get_state()[1].copy(),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
        "gradients": torch.is_grad_enabled(),
        "type": torch.get_default_dtype(),
    }
    for name, part in module.named_modules():
        found[f"{name} mode"] = part.training
        found |= {f"{name} {each}": list(getattr(part, each, {})) for each in HOOKS}
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        found[name] = tensor.detach().clone()
        found[f"{name} dtype"] = tensor.dtype
        found[f"{name} grad"] = None if tensor.grad is None else tensor.grad.clone()
        found[f"{name} requires_grad"] = tensor.requires_grad
    return found


def _same(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return bool(np.all(one == other))
