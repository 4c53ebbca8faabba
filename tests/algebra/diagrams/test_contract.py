"""The contraction of one diagram against sums over all wires, by loops."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from otimes.algebra.diagrams.contract import contract, contraction_path, legs_of, operations
from otimes.algebra.diagrams.diagram import Diagram

ARITY = {0: 2, 1: 3, 2: 1}


def by_loops(diagram: Diagram, operands: list[Any], sizes: list[int]) -> Any:
    """Sum over every assignment of values to wires; a leg reads the value of its wire."""
    legs = legs_of(diagram)
    result = np.zeros([sizes[w] for w in legs], dtype=int)
    touched = {*legs, *[w for box in diagram.boxes for w in box[1:]]}
    ranges = [range(size) if w in touched else range(1) for w, size in enumerate(sizes)]
    for at in itertools.product(*ranges):
        term = 1
        for box, operand in zip(diagram.boxes, operands, strict=True):
            term *= operand[tuple(at[w] for w in box[1:])]
        result[tuple(at[w] for w in legs)] += term
    return result


@pytest.mark.parametrize("kind", ["int64", "float64", "object", "torch"])
def test_random_diagrams(kind: str) -> None:
    torch = pytest.importorskip("torch") if kind == "torch" else None
    draw, rng = random.Random(2), np.random.default_rng(2)
    for _ in range(150):
        wires = draw.randint(1, 5)
        sizes = [draw.randint(1, 3) for _ in range(wires)]
        labels = [draw.choice([0, 0, 1, 2]) for _ in range(draw.randint(0, 4))]
        boxes = tuple((b, *[draw.randrange(wires) for _ in range(ARITY[b])]) for b in labels)
        rows, cols = (
            tuple(draw.randrange(wires) for _ in range(draw.randint(0, 2))) for _ in range(2)
        )
        named = (("h", draw.randrange(wires)),) if draw.random() < 0.3 else ()
        diagram = Diagram(rows, cols, named, boxes, (0,) * wires)
        operands = [rng.integers(-5, 6, [sizes[w] for w in box[1:]]) for box in boxes]
        expected = by_loops(diagram, operands, sizes)
        if torch is not None:
            given: list[Any] = [torch.tensor(x) for x in operands]
            value = contract(diagram, given, sizes, torch.zeros((), dtype=torch.int64)).numpy()
        else:
            given = [x.astype(kind) for x in operands]
            if kind == "object" and diagram.boxes and not touched(diagram):
                continue  # see test_a_number_of_an_object_array
            value = contract(diagram, given, sizes, np.zeros((), dtype=kind))
        assert np.shape(value) == expected.shape
        assert np.all(value == expected), diagram


def touched(diagram: Diagram) -> set[int]:
    return {*legs_of(diagram)} & {w for box in diagram.boxes for w in box[1:]}


def test_a_number_of_an_object_array() -> None:
    trace_times_ones = Diagram((0,), (1,), (), ((0, 2, 2),), (0, 0, 0))
    three = np.array([[1, 5], [7, 2]], dtype=object)
    value = contract(trace_times_ones, [three], [2, 2, 2], three)
    assert value.tolist() == [[3, 3], [3, 3]]


def test_a_chain_is_contracted_from_its_thin_end() -> None:
    """(1×100)(100×100)(100×100): never a 100×100 by 100×100 product."""
    path, steps = contraction_path(((0, 1), (1, 2), (2, 3)), (0, 3), (1, 100, 100, 100))
    assert len(path) == 2
    first = set(path[0])
    assert first == {0, 1}
    assert all(len(summed) == 1 for summed, _ in steps)


def test_operations_count_the_longest_path() -> None:
    product = Diagram((0,), (2,), (), ((0, 0, 1), (0, 1, 2)), (0, 0, 0))
    assert operations(product, (4, 7, 5)) == 7  # 7 products summed: 1 + 6 roundings
    assert operations(product, (4, 7, 5), selecting={1}) == 1
    assert operations(Diagram((0,), (0,), (), (), (0,)), (4,)) == 0
    assert operations(Diagram((0,), (1,), (), ((0, 0, 1),), (0, 0)), (4, 5)) == 0
