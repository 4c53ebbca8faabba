"""Contraction of a diagram with arrays of any array module, by opt_einsum.

A diagram is one einsum: no Kronecker product is formed, and low-rank products stay factored. Legs
without a box and wires on two legs, which einsum cannot express, are added to the result
afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from otimes.algebra.diagrams.diagram import Diagram, Wire
from otimes.algebra.language.backends import is_torch
from otimes.algebra.language.deferred import Deferred

if TYPE_CHECKING:
    import numpy as np
    import opt_einsum
else:
    np = Deferred("numpy")
    opt_einsum = Deferred("opt_einsum")


def contract(diagram: Diagram, operands: Sequence[Any], sizes: Sequence[int], like: Any) -> Any:
    """Return the array of one diagram, with axes (named legs, row legs, column legs).

    `operands[k]` is the array of box k, with an axis for each wire; `sizes[w]` is the size of wire
    w. The result has the array type and dtype of `like`.
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
        if not hasattr(value, "shape"):  # einsum returns a Python scalar for dtype object
            value = as_object(value)
    else:
        value = _full(like, ())
    if len(set(legs)) == len(legs) and len(output) == len(legs):
        order = [output.index(wire) for wire in legs]
        return value if order == sorted(order) else _permute(value, order)
    return _spread(value, output, legs, sizes, like)


def operations(diagram: Diagram, sizes: Sequence[int], selecting: Collection[Wire] = ()) -> int:
    """Return the largest number of roundings between an entry of a box and one of the result.

    A pairwise contraction over K index values has at most K roundings; those of its steps add up. A
    sum over a `selecting` wire, which has one nonzero term, has none.
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
    return tuple([wire for wire in legs if wire >= 0])  # block marks are not wires


@lru_cache(maxsize=4096)
def contraction_path(
    inputs: tuple[tuple[Wire, ...], ...], output: tuple[Wire, ...], sizes: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[frozenset[Wire], int], ...]]:
    """Return the contraction order of opt_einsum, and (summed wires, factors) for each step."""
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
    """Expand an array over wires to the legs: diagonals for repeated wires, ones for free legs."""
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
    """Return an exact scalar as a 0-d array of dtype object."""
    array = np.empty((), dtype=object)
    array[()] = number
    return array


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
