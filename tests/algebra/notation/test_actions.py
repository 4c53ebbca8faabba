"""Kronecker products on a matrix have the entries that loops over both factors give."""

from __future__ import annotations

import random

import numpy as np
import pytest

import otimes as ot
from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.text import parse

SIZES = {"n": 2, "m": 3, "d": 4, "k": 5}
SHAPES = {"A": "n m", "B": "m m", "W": "k d", "V": "d d"}
TEXTS = ["(A ⊗ W) x", "(A ⊗ W)(B ⊗ V) x", "(A B ⊗ W V - 2 A ⊗ W) x", "(A ⊗ W)(I + B ⊗ V) x"]

Rows = list[list[int]]
Entries = dict[tuple[int, int], int]


@pytest.mark.parametrize("rows", [True, False], ids=["rows", "columns"])
def test_positions_and_features_are_contracted(rows: bool) -> None:
    draw = random.Random(1)
    x = {(p, f): draw.randint(-5, 5) for p in range(3) for f in range(4)}
    arrays = {
        name: np.array(
            [[draw.randint(-5, 5) for _ in range(SIZES[c])] for _ in range(SIZES[r])], dtype=object
        )
        for name, (r, c) in ((name, shape.split()) for name, shape in SHAPES.items())
    }
    A, B, W, V = (arrays[name].tolist() for name in "ABWV")

    def once(
        a: list[list[int]], w: list[list[int]], on: dict[tuple[int, int], int]
    ) -> dict[tuple[int, int], int]:
        return {
            (p, f): sum(a[p][q] * w[f][g] * on[q, g] for q in range(len(a[0])) for g in range(4))
            for p in range(len(a))
            for f in range(len(w))
        }

    twice = once(A, W, once(B, V, x))
    plus = {key: value + once(A, W, x)[key] for key, value in twice.items()}
    minus = {key: value - 2 * once(A, W, x)[key] for key, value in twice.items()}
    at = "m d" if rows else "d m"
    shapes = ", ".join(f"{n}: {s}" for n, s in {**SHAPES, "x": at}.items())
    arrays["x"] = np.array(
        [[x[(i, j) if rows else (j, i)] for j in range(4 if rows else 3)]
         for i in range(3 if rows else 4)], dtype=object,
    )  # fmt: skip
    for text, expected in zip(TEXTS, (once(A, W, x), twice, minus, plus), strict=True):
        found = ot.evaluate(parse(text, shapes), arrays)
        for (p, f), value in expected.items():
            assert found[(p, f) if rows else (f, p)] == value, text


def test_what_conforms_in_no_way_is_refused() -> None:
    with pytest.raises(OtimesError, match="cannot multiply"):
        parse("(A ⊗ W) x", "A: n n, W: k d, x: m k")
    long = parse("(A ⊗ W) x", "A: n n, W: d d, x: n*d 1")  # a vector is multiplied as usual
    assert "KroneckerProduct(A, W)" in str(long)
