"""The one contraction: a diagram on arrays, in a good order, on any array module.

`contract` hands opt_einsum the boxes of a diagram with their wires; no Kronecker product is ever
formed and low-rank products stay factored, because a diagram has neither. What einsum cannot say (a
leg with no box, one wire on two legs) is written into the result afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from algebra.deferred import Deferred
from algebra.diagram import Diagram, Wire

if TYPE_CHECKING:
    import numpy as np
    import opt_einsum
else:
    np = Deferred("numpy")
    opt_einsum = Deferred("opt_einsum")


def contract(diagram: Diagram, operands: Sequence[Any], sizes: Sequence[int], like: Any) -> Any:
    """Return the array of one diagram, with axes (named legs, row legs, column legs).

    `operands[k]` is the array of box k, an axis a wire; `sizes[w]` is the size of wire w; the
    result is of the kind and dtype of `like`.
    """
    legs = legs_of(diagram)
    touched = {wire for box in diagram.boxes for wire in box[1:]}
    output = tuple(sorted({wire for wire in legs if wire in touched}))
    if diagram.boxes:
        path, _ = contraction_path(tuple([box[1:] for box in diagram.boxes]), output, tuple(sizes))
        arguments: list[Any] = []
        for box, operand in zip(diagram.boxes, operands, strict=True):
            arguments += [operand, list(box[1:])]
        value = opt_einsum.contract(*arguments, list(output), optimize=list(path))
        if not hasattr(value, "shape"):  # einsum makes a plain number of objects
            value = as_object(value)
    else:
        value = _full(like, ())
    if len(set(legs)) == len(legs) and len(output) == len(legs):
        order = [output.index(wire) for wire in legs]
        return value if order == sorted(order) else _permute(value, order)
    return _spread(value, output, legs, sizes, like)


def operations(diagram: Diagram, sizes: Sequence[int], selecting: Collection[Wire] = ()) -> int:
    """Return the roundings on the way from an entry of a box to an entry of the result.

    A step that multiplies two arrays and sums over K index values makes at most K of them; an error
    already made in a factor passes on, so the steps add up. A sum over a `selecting` wire, whose
    other entries are zeros, rounds nothing.
    """
    if not diagram.boxes:
        return 0
    touched = {wire for box in diagram.boxes for wire in box[1:]}
    output = tuple(sorted({wire for wire in legs_of(diagram) if wire in touched}))
    inputs = tuple([box[1:] for box in diagram.boxes])
    count = 0
    for summed, factors in contraction_path(inputs, output, tuple(sizes))[1]:
        count += prod(sizes[w] for w in summed if w not in selecting) + factors - 2
    return max(count, 0)


def legs_of(diagram: Diagram) -> tuple[Wire, ...]:
    """Return the wires of the legs in the order of the axes of the result."""
    legs = (*[wire for _, wire in diagram.named], *diagram.rows, *diagram.cols)
    return tuple([wire for wire in legs if wire >= 0])  # block marks are no wires


@lru_cache(maxsize=4096)
def contraction_path(
    inputs: tuple[tuple[Wire, ...], ...], output: tuple[Wire, ...], sizes: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[frozenset[Wire], int], ...]]:
    """Return opt_einsum's order of contraction, and (wires summed, factors) of each step."""
    sets = [frozenset(wires) for wires in inputs]
    size_of = dict(enumerate(sizes))
    path = opt_einsum.paths.auto(sets, frozenset(output), size_of) if len(sets) > 1 else [(0,)]
    steps = []
    for step in path:
        taken = [sets[k] for k in step]
        sets = [s for k, s in enumerate(sets) if k not in step]
        kept = frozenset(output).union(*sets)
        joined = frozenset().union(*taken)
        steps.append((joined - kept, len(taken)))
        sets.append(joined & kept)
    return tuple(tuple(step) for step in path), tuple(steps)


def _spread(
    value: Any, output: tuple[Wire, ...], legs: tuple[Wire, ...], sizes: Sequence[int], like: Any
) -> Any:
    """Write a value over its wires into an array over the legs: diagonals, and ones where free."""
    unique = tuple(dict.fromkeys(legs))
    order = [output.index(wire) for wire in unique if wire in output]
    value = _permute(value, order) if order != sorted(order) else value
    shape = tuple(sizes[wire] if wire in output else 1 for wire in unique)
    value = value.reshape(shape)
    result = _full(like, tuple(sizes[wire] for wire in legs), 0)
    grid = np.ogrid[tuple(slice(sizes[wire]) for wire in unique)] if unique else []
    place = dict(zip(unique, grid, strict=True))
    result[tuple(_index(place[wire], like) for wire in legs)] = value
    return result


def as_object(number: Any) -> Any:
    """Return one exact number as an array without axes."""
    array = np.empty((), dtype=object)
    array[()] = number
    return array


def is_torch(array: Any) -> bool:
    """Return whether an array is a torch tensor, without importing torch."""
    return type(array).__module__.split(".")[0] == "torch"


def _permute(value: Any, order: Sequence[int]) -> Any:
    return value.permute(*order) if is_torch(value) else np.transpose(value, order)


def _full(like: Any, shape: tuple[int, ...], fill: int = 1) -> Any:
    if is_torch(like):
        return like.new_full(shape, fill)
    return np.full(shape, fill, dtype=getattr(like, "dtype", float))


def _index(places: Any, like: Any) -> Any:
    if not is_torch(like):
        return places
    return like.new_tensor(places).long()
