"""The legs of rows and columns: lists of wires, with blocks where a size is a sum.

The legs of a sum of diagrams are a tuple of sorts. Where a size is a sum, as after concatenation,
the last item is `Blocks`, the legs of each block. A single diagram lies in one block: its legs are
wires, with the mark -1 - i before the wires of block i. As the left factor of ⊗ is the slow index,
a block contains all legs to its right: (A | B) ⊗ C = (A ⊗ C | B ⊗ C).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from otimes.algebra.diagrams.diagram import Sort, Wire


class Blocks(tuple["Legs", ...]):
    """The legs of each block of a size that is a sum, in order."""

    __slots__ = ()


Legs: TypeAlias = tuple[Sort | Blocks, ...]
Branch: TypeAlias = tuple[int, ...]  # sorts, and the mark -1 - i before block i


def beside(left: Legs, right: Legs) -> Legs:
    """Return the legs of a Kronecker product; the right ones are appended to each block."""
    if left and isinstance(left[-1], Blocks):
        return (*left[:-1], Blocks(beside(block, right) for block in left[-1]))
    return left + right


def branches(legs: Legs) -> Iterator[Branch]:
    """Yield the leg list of every block, as sorts and block marks."""
    if legs and isinstance(legs[-1], Blocks):
        for number, block in enumerate(legs[-1]):
            for inner in branches(block):
                yield (*sorts_of(legs), -1 - number, *inner)
    else:
        yield sorts_of(legs)


def sorts_of(legs: Legs) -> tuple[Sort, ...]:
    """Return the sorts before the blocks."""
    return tuple([leg for leg in legs if isinstance(leg, int)])


def shifted(wires: tuple[Wire, ...], shift: int) -> tuple[Wire, ...]:
    """Return legs with their wires shifted; block marks are unchanged."""
    return tuple([w + shift if w >= 0 else w for w in wires])


def matched(left: tuple[Wire, ...], right: tuple[Wire, ...]) -> list[tuple[Wire, Wire]] | None:
    """Return the pairs of corresponding wires of two leg lists, or None if their blocks differ."""
    pairs = []
    for a, b in zip(left, right, strict=False):
        if a < 0 or b < 0:
            if a != b:
                return None
        else:
            pairs.append((a, b))
    return pairs


def stacked(blocks: list[Legs]) -> tuple[Legs, list[int]]:
    """Return the legs of concatenated blocks, nested ones flattened, and the start of each.

    A single block gives its own legs.
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
    """Return the legs of a diagram within the block that starts at `start` (see `stacked`)."""
    if len(block) == 1 and isinstance(block[0], Blocks):
        return (wires[0] - start, *wires[1:])
    return (-1 - start, *wires)
