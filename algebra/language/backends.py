"""Which library an array belongs to."""

from __future__ import annotations

from typing import Any


def is_torch(array: Any) -> bool:
    """Return whether an array is a torch tensor, without importing torch."""
    return type(array).__module__.split(".")[0] == "torch"
