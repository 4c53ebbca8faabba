"""Calls of foreign code: wrappers are removed, exceptions become an OtimesError."""

import sys
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

from otimes.algebra.errors import OtimesError

WRAPPERS = {
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "OptimizedModule": "_orig_mod",
}
"""Classes of torch that wrap another module, with the name of its attribute."""

SHARDED = "FullyShardedDataParallel"


def unwrapped(module: Any) -> Any:
    """Return the module inside torch's wrappers, and anything else unchanged.

    Raises: OtimesError for a module with sharded weights.
    """
    while type(module).__module__.startswith("torch."):
        if type(module).__name__ == SHARDED:
            raise OtimesError(
                f"{SHARDED} spreads the weights over machines: audit a module that has all of them"
            )
        if type(module).__name__ not in WRAPPERS:
            break
        module = getattr(module, WRAPPERS[type(module).__name__])
    return module


def module_run_by(call: Any) -> Any:
    """Return the torch module that a callable runs, or None if it cannot be found.

    It is the callable itself, the object of a bound method, or an argument of a partial.
    """
    torch = sys.modules.get("torch")  # without torch there is no module
    if torch is None:
        return None
    while isinstance(call, partial | MethodType):
        if isinstance(call, MethodType):
            call = call.__self__
            continue
        given = [*call.args, *call.keywords.values()]
        filled = [each for each in given if isinstance(each, torch.nn.Module)]
        call = filled[0] if len(filled) == 1 else call.func
    return call if isinstance(call, torch.nn.Module) else None


def name_of(call: Any) -> str:
    """Return the name of a callable for messages."""
    return str(getattr(call, "__name__", type(call).__name__))


def called(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result of a foreign callable.

    Raises: OtimesError from any exception of the callable, naming its argument; KeyboardInterrupt
    is not caught.
    """
    try:
        return call(*arguments, **options)
    except OtimesError:
        raise
    except Exception as raised:  # foreign code may raise anything
        what = str(raised).strip().partition("\n")[0]
        raise OtimesError(
            f"{name_of(call)} was called with {_described(arguments[0])} and raised "
            f"{type(raised).__name__}"
            + (f": {what}" if what else "")
            + _as_tensor(what, arguments[0])
        ) from raised


def _as_tensor(what: str, argument: Any) -> str:
    """Return what to do where a list was given to code that takes tensors."""
    if "Tensor" not in what or not isinstance(argument, list | tuple):
        return ""
    return "; tokens are passed on as they are: give them as a tensor, torch.tensor([[3, 1, 4]])"


def _described(argument: Any) -> str:
    if hasattr(argument, "shape") and hasattr(argument, "dtype"):
        device = getattr(argument, "device", "cpu")
        where = "" if str(device) == "cpu" else f" on {device}"
        return f"an array of shape {tuple(argument.shape)} ({argument.dtype}){where}"
    length = f" of length {len(argument)}" if hasattr(argument, "__len__") else ""
    return f"a {type(argument).__name__}{length}"
