"""Exact arrays do what NumPy's object arrays do, at every shape, sizes of 0 and 1 included."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from inspect import signature
from typing import Any

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate import exact_arrays
from otimes.algebra.evaluate.exact_arrays import ExactArray, as_exact
from otimes.algebra.language.coefficients import generator
from otimes.algebra.language.intervals import Interval, bounds

SEEDS = range(40)
SIZES = (0, 1, 1, 2, 3, 4, 5, 7)


def at_every(seeds: range) -> Callable[[Any], Any]:
    """Run a test at every seed, as one test."""

    def of(test: Any) -> Any:
        def run(**arguments: Any) -> None:
            for seed in seeds:
                test(seed=seed, **arguments)

        stated = signature(test)
        others = [each for name, each in stated.parameters.items() if name != "seed"]
        run.__name__ = test.__name__
        run.__signature__ = stated.replace(parameters=others)  # type: ignore[attr-defined]
        return run

    return of


def numbers(draw: random.Random, *shape: int, zeros: float = 0.2) -> Any:
    """Return a NumPy array of integers and Fractions, some of them zero."""

    def number() -> Any:
        if draw.random() < zeros:
            return 0
        return draw.choice((draw.randint(-9, 9), Fraction(draw.randint(-9, 9), 2), 10**30))

    array = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        array[place] = number()
    return array


def size(draw: random.Random) -> int:
    return draw.choice(SIZES)


def check(found: Any, expected: Any) -> None:
    """Hold an exact array against one of NumPy's: shape, entries, and the types of the entries."""
    assert type(found) is ExactArray
    assert found.shape == expected.shape
    assert found.ndim == expected.ndim
    assert found.tolist() == expected.tolist()
    assert all(type(entry) in (int, Fraction) for entry in found.flat)


ELEMENTWISE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "Hadamard product": lambda x, y: x * y,
    "sum from zero": lambda x, y: sum([x, y]),
    "scaled": lambda x, y: Fraction(2, 3) * x * 5,
    "negative": lambda x, y: -x,
    "entries squared": lambda x, y: x**2,
    "entries to the power 0": lambda x, y: x**0,
    "transpose": lambda x, y: x.T,
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@at_every(SEEDS)
def test_elementwise_operations(name: str, seed: int) -> None:
    draw = random.Random(seed)
    shape = [size(draw) for _ in range(draw.choice((2, 2, 2, 1, 3)))]
    x, y = numbers(draw, *shape), numbers(draw, *shape)
    act = ELEMENTWISE[name]
    check(act(as_exact(x), as_exact(y)), act(x, y))


@at_every(range(200))
def test_products(seed: int) -> None:
    """Each inner size up to 3 has a formula of its own, and so have rows with many zeros."""
    draw = random.Random(seed)
    p, q, r = size(draw), size(draw), size(draw)
    zeros = draw.choice((0.0, 0.3, 0.9, 1.0))
    x, y = numbers(draw, p, q, zeros=zeros), numbers(draw, q, r)
    expected = np.zeros((p, r), dtype=object)
    for i, j in np.ndindex(p, r):
        expected[i, j] = sum((x[i, k] * y[k, j] for k in range(q)), 0)
    check(as_exact(x) @ as_exact(y), expected)


@at_every(SEEDS)
def test_kronecker_products(seed: int) -> None:
    draw = random.Random(seed)
    p, q, r, s = (size(draw) for _ in range(4))
    x, y = numbers(draw, p, q), numbers(draw, r, s)
    expected = np.zeros((p * r, q * s), dtype=object)
    for i, k, j, m in np.ndindex(p, r, q, s):
        expected[i * r + k, j * s + m] = x[i, j] * y[k, m]
    check(exact_arrays.kron(as_exact(x), as_exact(y)), expected)


@pytest.mark.parametrize("axis", [0, 1])
@at_every(SEEDS)
def test_concatenation(seed: int, axis: int) -> None:
    draw = random.Random(seed)
    common = size(draw)
    lengths = [size(draw) for _ in range(draw.randint(1, 3))]
    parts = [numbers(draw, *((k, common) if axis == 0 else (common, k))) for k in lengths]
    expected = np.concatenate(parts, axis=axis)
    check(exact_arrays.concatenate([as_exact(part) for part in parts], axis), expected)


@at_every(SEEDS)
def test_indexing(seed: int) -> None:
    draw = random.Random(seed)
    shape = [draw.choice((1, 2, 3, 4)) for _ in range(draw.randint(1, 4))]
    array = numbers(draw, *shape)
    ours = as_exact(array)
    for _ in range(20):
        key = tuple(
            draw.choice((draw.randrange(k), -1, slice(draw.randint(0, k)), slice(1, None)))
            for k in shape[: draw.randint(1, len(shape))]
        )
        expected = array[key]
        if isinstance(expected, np.ndarray):
            check(ours[key], expected)
        else:
            assert ours[key] == expected
    assert [part if len(shape) == 1 else part.tolist() for part in ours] == array.tolist()
    assert list(ours.places()) == list(np.ndindex(*shape))
    with pytest.raises(IndexError):
        ours[(0,) * (len(shape) - 1) + (shape[-1],)]


def test_what_is_changed_is_no_other_array() -> None:
    array = as_exact([[1, 2], [3, 4]])
    others = [array.copy(), array.reshape(4), array[0], array[:, :1], array.T]
    for other in others:
        other[(0,) * other.ndim] = 9
    assert array.tolist() == [[1, 2], [3, 4]]
    array[1, -1] = 5
    assert array.tolist() == [[1, 2], [3, 5]]
    with pytest.raises(IndexError):
        array[0, 2] = 1


@pytest.mark.parametrize(
    ("shape", "new"),
    [((2, 3), (3, 2)), ((2, 3), (-1, 1)), ((2, 3), (6,)), ((0, 3), (-1, 1)), ((4,), (2, -1))],
)
def test_reshape(shape: tuple[int, ...], new: tuple[int, ...]) -> None:
    array = numbers(random.Random(1), *shape)
    check(as_exact(array).reshape(*new), array.reshape(*new))
    check(as_exact(array).reshape(new), array.reshape(new))


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_special_matrices(n: int) -> None:
    check(exact_arrays.identity(n), np.eye(n, dtype=int).astype(object))
    check(exact_arrays.lower_triangle(n), np.tri(n, dtype=int).astype(object))
    check(exact_arrays.zeros((n, 2)), np.zeros((n, 2), dtype=int).astype(object))
    check(exact_arrays.full((2, n), 7), np.full((2, n), 7, dtype=object))
    check(exact_arrays.stack([exact_arrays.identity(n)] * 2), np.stack([np.eye(n, dtype=int)] * 2))


def test_negative_sizes_are_refused() -> None:
    for make in (exact_arrays.identity, exact_arrays.lower_triangle):
        with pytest.raises(OtimesError, match="a size is negative at these values: -2"):
            make(-2)


def test_shapes_are_never_broadcast() -> None:
    x, row = as_exact([[1, 2], [3, 4]]), as_exact([[1, 2]])
    for act in (lambda: x + row, lambda: x - row, lambda: x * row):
        with pytest.raises(ValueError, match=r"shapes \(2, 2\) and \(1, 2\) do not fit"):
            act()
    with pytest.raises(ValueError, match="have no product"):
        row @ row
    with pytest.raises(TypeError):
        x + 1  # type: ignore[operator]
    with pytest.raises(ValueError, match="cannot be concatenated"):
        exact_arrays.concatenate([x, row], 1)


def test_comparing_answers_for_the_whole_array() -> None:
    x = as_exact([[1, 2]])
    assert x == as_exact(np.array([[1, 2]]))
    assert x != as_exact([[1, 3]])
    assert x != as_exact([[1], [2]])
    assert not x == as_exact([[1], [2]])  # noqa: SIM201 - both operators are under test
    with pytest.raises(TypeError):
        hash(x)


def test_intervals_that_overlap_are_neither_equal_nor_different() -> None:
    x = ExactArray((1, 1), [Interval(bounds(Fraction(1, 3)))])
    assert not x == x.copy()  # noqa: SIM201
    assert not x != x.copy()  # noqa: SIM202
    assert x != as_exact([[1]])


def test_entries_may_be_polynomials() -> None:
    x = ExactArray((1, 2), [generator("x"), 1])
    y = ExactArray((2, 1), [generator("y"), generator("x")])
    (entry,) = (x @ y).flat
    assert entry == generator("x") * generator("y") + generator("x")


def test_conversion_from_and_to_numpy() -> None:
    array = as_exact(np.array([[1, 2]], dtype=np.int64))
    assert [type(entry) for entry in array.flat] == [int, int]
    back = np.asarray(array)
    assert back.dtype == object
    assert back.shape == (1, 2)
    assert np.asarray(array, dtype=float).dtype == float
    assert np.asarray(exact_arrays.zeros((0, 3))).shape == (0, 3)
    assert exact_arrays.as_numpy(array).tolist() == [[1, 2]]
    assert as_exact(5).tolist() == 5


@pytest.mark.parametrize("lists", [[[1, 2], [3]], [[1], 2], [1, [2]]])
def test_ragged_lists_are_refused(lists: Any) -> None:
    with pytest.raises(OtimesError, match="different lengths|integers and Fractions"):
        as_exact(lists)


@pytest.mark.parametrize("array", [[[0.5]], np.array([[0.5]])])
def test_floats_are_refused(array: Any) -> None:
    with pytest.raises(OtimesError, match="0.5 was given: floating-point numbers go into NumPy"):
        as_exact(array)
