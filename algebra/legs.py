"""The legs of rows and columns: wires side by side, and blocks where a size is a sum.

The legs of a value are a tuple of sorts; where a size is cut in blocks, as by concatenation, the
last item is `Blocks`, which holds the legs of each block. A diagram lies in one block: its legs are
wires, with the number -1 - i before the wires of block i. Because the left factor of ⊗ is the slow
one, a block takes in everything to its right: (A | B) ⊗ C = (A ⊗ C | B ⊗ C).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from algebra.diagram import Sort, Wire


class Blocks(tuple["Legs", ...]):
    """The legs of each block of a size that is cut in blocks, in order."""

    __slots__ = ()


Legs: TypeAlias = tuple[Sort | Blocks, ...]
Branch: TypeAlias = tuple[int, ...]  # sorts, and -1 - i where block i is entered


def beside(left: Legs, right: Legs) -> Legs:
    """Return the legs of a Kronecker product: the right ones go into each block of the left."""
    if left and isinstance(left[-1], Blocks):
        return (*left[:-1], Blocks(beside(block, right) for block in left[-1]))
    return left + right


def branches(legs: Legs) -> Iterator[Branch]:
    """Yield the ways through the blocks, each as sorts and block marks in order."""
    if legs and isinstance(legs[-1], Blocks):
        for number, block in enumerate(legs[-1]):
            for inner in branches(block):
                yield (*sorts_of(legs), -1 - number, *inner)
    else:
        yield sorts_of(legs)


def sorts_of(legs: Legs) -> tuple[Sort, ...]:
    """Return the sorts among the legs, without what is cut in blocks."""
    return tuple([leg for leg in legs if isinstance(leg, int)])


def shifted(wires: tuple[Wire, ...], shift: int) -> tuple[Wire, ...]:
    """Return legs with their wires renumbered by a shift; block marks stay."""
    return tuple([w + shift if w >= 0 else w for w in wires])


def matched(left: tuple[Wire, ...], right: tuple[Wire, ...]) -> list[tuple[Wire, Wire]] | None:
    """Return the pairs of wires of two leg lists that meet, or None if their blocks differ."""
    pairs = []
    for a, b in zip(left, right, strict=False):
        if a < 0 or b < 0:
            if a != b:
                return None
        else:
            pairs.append((a, b))
    return pairs


def stacked(blocks: list[Legs]) -> tuple[Legs, list[int]]:
    """Return the legs of blocks side by side, nested blocks made flat, and where each one starts.

    A single block is no cut.
    """
    if len(blocks) == 1:
        return blocks[0], [0]
    flat: list[Legs] = []
    starts = []
    for block in blocks:
        starts.append(len(flat))
        if len(block) == 1 and isinstance(block[0], Blocks):
            flat += block[0]
        else:
            flat.append(block)
    return (Blocks(flat),), starts


def in_block(wires: tuple[Wire, ...], block: Legs, start: int) -> tuple[Wire, ...]:
    """Return the legs of a diagram put into the block that starts at `start` (see `stacked`)."""
    if len(block) == 1 and isinstance(block[0], Blocks):
        return (wires[0] - start, *wires[1:])
    return (-1 - start, *wires)
