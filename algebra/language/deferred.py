"""Modules that are imported at the first use of an attribute.

`decide` computes with exact numbers and must run where NumPy is not installed; only floating-point
arrays need it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from otimes.algebra.errors import OtimesError

PACKAGES = {"numpy": "NumPy", "opt_einsum": "opt_einsum", "scipy": "SciPy"}


class Deferred:
    """A proxy of a module, which is imported at the first use of an attribute."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # introspection does not import the module
            raise AttributeError(name)
        try:
            module = import_module(self._module)
        except ImportError as error:
            package = PACKAGES[self._module.partition(".")[0]]
            raise OtimesError(
                f"floating-point arrays need {package}, which cannot be imported here ({error}): "
                "install it, or give integers and Fractions, which are evaluated without it"
            ) from None
        value = getattr(module, name)
        setattr(self, name, value)  # the next use finds it without this method
        return value


@cache
def is_installed(module: str) -> bool:
    """Return whether a module can be imported; it is imported if so."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True
