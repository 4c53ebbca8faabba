"""The test worth more than a suite: equal normal forms exactly where values are equal.

Random expressions are sorted into classes twice: by the normal form, and by what they are worth
modulo a large prime at three sets of sizes. The two partitions must be the same. A class split by
the normal form is an equality lost; a class split by the values is a false proof.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import sympy

from otimes.algebra.diagrams.dimensions import Resplit
from otimes.algebra.diagrams.sums import DiagramSum, difference
from otimes.algebra.language.shapes import inspect
from otimes.algebra.reading.interpretation import Interpretation
from otimes.algebra.reading.read import READERS
from otimes.algebra.verdict import decide
from tests.algebra.expressions import (
    IDS,
    SCALAR,
    SCALARS,
    SHAPES,
    TENSORS,
    H,
    d,
    n,
    random_expression,
)
from tests.algebra.reference import random_world

LONG = os.environ.get("OTIMES_LONG") == "1"
EACH = 12_000 if LONG else 1_200

# At one set of sizes n*A and 4*A can coincide; no coefficient here does so at all three.
WORLDS = [
    random_world(TENSORS, {"n": p, "d": q, "H": r}, SCALARS, seed)
    for seed, (p, q, r) in enumerate([(4, 3, 2), (3, 5, 4), (5, 2, 3)])
]


def expressions_of(shape: Any, count: int, seed: int) -> list[Any]:
    draw = random.Random(seed)
    deepest = 2 if n in shape and shape[1] == n and not LONG else 3
    made = [
        random_expression(draw, shape, draw.choice([1, 2, deepest]), None) for _ in range(count)
    ]
    return list(dict.fromkeys(made))


def by_value(expressions: list[Any]) -> list[int]:
    """Return for each expression the number of its class by values."""
    classes: dict[Any, int] = {}
    numbers = []
    for e in expressions:
        key = tuple(
            value.tobytes() if isinstance(value, np.ndarray) else int(value)
            for value in (world.value(e) for world in WORLDS)
        )
        numbers.append(classes.setdefault(key, len(classes)))
    return numbers


def by_normal_form(expressions: list[Any]) -> list[int]:
    """Return for each expression the number of its class by terms, all read with one table."""
    reading = Interpretation(inspect(*expressions), READERS)
    while True:
        try:
            values: list[DiagramSum] = []
            for e in expressions:
                value = reading.value(e)
                if values:
                    reading.dimensions.fit(values[0].rows, value.rows)
                    reading.dimensions.fit(values[0].cols, value.cols)
                values.append(value)
            break
        except Resplit:
            continue
    buckets: dict[Any, list[tuple[DiagramSum, int]]] = defaultdict(list)
    numbers: list[int] = []
    count = 0
    for value in values:
        bucket = buckets[frozenset(value.terms)]
        for other, number in bucket:
            if not difference(value.terms, other.terms):
                numbers.append(number)
                break
        else:
            bucket.append((value, count))
            numbers.append(count)
            count += 1
    return numbers


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
def test_normal_forms_agree_exactly_where_values_do(
    shape: Any, record_property: pytest.RecordProperty
) -> None:
    expressions = expressions_of(shape, EACH * (3 if shape == SCALAR else 1), seed=7)
    values, forms = by_value(expressions), by_normal_form(expressions)
    record_property("classes", len(set(values)))
    print(f"{shape}: {len(expressions)} expressions, {len(set(values))} classes")
    form_of: dict[int, tuple[int, Any]] = {}
    value_of: dict[int, tuple[int, Any]] = {}
    for e, value, form in zip(expressions, values, forms, strict=True):
        known, other = value_of.setdefault(form, (value, e))
        assert known == value, f"one normal form, two values:\n{e}\n{other}"
        known, other = form_of.setdefault(value, (form, e))
        assert known == form, f"one value, two normal forms:\n{e}\n{other}"
    # The alphabet is small enough that the test is about equalities, not only differences.
    assert len(set(values)) < 0.9 * len(expressions)


def test_the_judge_says_what_the_partition_says() -> None:
    """`decide` on pairs, with labels and splits of their own."""
    draw = random.Random(3)
    said = {"proved": 0, "refuted": 0}
    for shape in SHAPES:
        expressions = expressions_of(shape, 60, seed=11)
        values = by_value(expressions)
        pairs = [(p, q) for p in range(len(values)) for q in range(p)]
        equal = [(p, q) for p, q in pairs if values[p] == values[q]]
        for p, q in draw.sample(equal, min(len(equal), 12)) + draw.sample(pairs, 12):
            status = decide(expressions[p], expressions[q]).status
            assert status == ("proved" if values[p] == values[q] else "refuted"), (
                expressions[p],
                expressions[q],
            )
            said[status] += 1
    assert min(said.values()) > 40, said


def test_the_worlds_are_generic() -> None:
    """A size is told from the numbers that stand in the alphabet, and from other sizes."""
    products = [sympy.Integer(k) for k in (2, 4, 6)]
    products += [n, d, H, n * d, n * H, n**2, d**2, n + d, 2 * n, 2 * d, 2 * H]
    seen = {tuple(world.size(p) for world in WORLDS) for p in products}
    assert len(seen) == len(products)
