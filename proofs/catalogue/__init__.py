"""The theorems, in reading order. A chapter is a file; a theorem is a decorated function in it."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache

from algebra.errors import OtimesError
from proofs.catalogue import attention_head, depth, residual_stream, shallow_models, tensor_products
from proofs.theorem import Theorem

CHAPTERS = {
    1: ("Tensor products and conventions", tensor_products),
    2: ("The residual stream", residual_stream),
    3: ("The attention head", attention_head),
    5: ("Zero and one layer", shallow_models),
    6: ("Depth", depth),
}


@lru_cache(maxsize=1)
def catalogue() -> tuple[Theorem, ...]:
    """Return every theorem, chapter by chapter, in the order of the files."""
    return tuple(
        entry
        for _, module in CHAPTERS.values()
        for entry in vars(module).values()
        if isinstance(entry, Theorem)
    )


def find(name: str) -> Theorem:
    """Return the theorem of this name, or say which names are near."""
    for theorem in catalogue():
        if theorem.name == name:
            return theorem
    names = [theorem.name for theorem in catalogue()]
    near = get_close_matches(name, names, n=3) or names
    raise OtimesError(f"there is no theorem {name!r}; there are {', '.join(near)}")
