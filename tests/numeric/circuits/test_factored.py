"""Products that are never multiplied out, against those that are."""

import tracemalloc

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.circuits.factored import Factored, largest, triangle, triangles
from tests.numeric.circuits.plainly import mul, near, norm, trace


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


SHAPES = {"low rank": (7, 2, 6), "square": (6, 3, 6), "rank is full": (3, 5, 4), "one": (1, 1, 1)}


@pytest.fixture(params=SHAPES, name="factored")
def _factored(request: pytest.FixtureRequest) -> Factored:
    a, k, b = SHAPES[request.param]
    return Factored(draw(a, k), draw(k, b, seed=1))


def test_norm_and_entries(factored: Factored) -> None:
    whole = mul(factored.left.tolist(), factored.right.tolist())
    assert near(factored.dense(), whole, 1e-14)
    assert near(factored.norm(), norm(whole))
    assert near(factored.T.dense(), np.transpose(whole), 1e-14)
    assert near(factored.rows([0, -1]), [whole[0], whole[-1]], 1e-14)


def test_svd(factored: Factored) -> None:
    U, S, V = factored.svd()
    assert S.shape == (factored.rank_bound,)
    assert (np.diff(S) <= 0).all()
    assert near((U * S) @ V.T, factored.dense())
    assert near(factored.singular_values(), S)
    for Q in (U, V):
        assert near(Q.T @ Q, np.eye(len(S)), 1e-14)


@pytest.mark.parametrize("inner", [1, 2, 5, 8])
def test_eigenvalues_have_the_power_sums_of_the_whole_matrix(inner: int) -> None:
    """tr (A B)^p for p up to the size decides the eigenvalues; here by loops on the whole."""
    factored = Factored(draw(5, inner), draw(inner, 5, seed=1))
    whole = mul(factored.left.tolist(), factored.right.tolist())
    assert near(factored.trace(), trace(whole))
    found = factored.eigenvalues()
    assert found.shape == (inner,)
    assert (np.diff(np.abs(found)) <= 0).all()
    power = whole
    for p in range(1, 6):
        assert near((found**p).sum(), trace(power)), p
        power = mul(power, whole)


def test_stacks_are_as_single_ones() -> None:
    stack = Factored(draw(2, 3, 6, 2), draw(2, 3, 2, 6, seed=1))
    for at in np.ndindex(2, 3):
        one = Factored(stack.left[at], stack.right[at])
        assert near(stack.norm()[at], one.norm(), 1e-14)
        assert near(stack.eigenvalues()[at], one.eigenvalues(), 1e-14)
        assert near(stack.trace()[at], one.trace(), 1e-14)


def test_products_stay_factored() -> None:
    one, other = Factored(draw(9, 2), draw(2, 8)), Factored(draw(8, 3), draw(3, 7))
    expected = one.dense() @ other.dense()
    for product in (one @ other, one @ other.dense(), one.dense() @ other):
        assert isinstance(product, Factored)
        assert near(product.dense(), expected, 1e-14)
        assert product.left.shape[1] <= 3
    assert (one @ other).left.shape[1] == 2


def test_triangles_keep_norms_whatever_the_condition() -> None:
    """By Cholesky where that is accurate, by reflections where it is not."""
    tall = draw(3, 20, 4)
    for scales in ([1, 1, 1, 1], [1, 1e-3, 1e3, 1], [1, 1e-12, 1e6, 1], [1, 0, 1, 1]):
        scaled = tall * np.array(scales)
        M = draw(4, 4, seed=1)
        R = triangles(scaled)
        assert np.array_equal(R, np.triu(R))
        assert near(
            np.linalg.norm(R @ M, axis=(1, 2)), np.linalg.norm(scaled @ M, axis=(1, 2)), 1e-13
        )
        # Columns of all sizes: each keeps its own length.
        own = np.linalg.norm(scaled, axis=1)
        assert (np.abs(np.linalg.norm(R, axis=1) - own) <= 1e-13 * own).all()


def test_a_triangle_is_as_good_as_by_reflections_while_cholesky_works_at_all() -> None:
    """Columns 10⁻⁶ apart: one Cholesky factor has lost 12 digits of 16, reflections and two 6."""
    tall = draw(200, 2)
    difference = 1e-6 * draw(200, seed=1)
    tall[:, 1] = tall[:, 0] + difference
    found = np.linalg.norm(triangles(tall) @ [-1, 1])
    expected = np.linalg.norm(tall[:, 1] - tall[:, 0])
    assert abs(found / expected - 1) < 1e-8


def test_the_norm_is_that_of_the_product_where_columns_nearly_cancel() -> None:
    """A Gram matrix alone would lose all digits of a product 10⁻⁹ of its factors' size."""
    left = draw(30, 4)
    left[:, 1] = left[:, 0] * (1 + 1e-9 * draw(30))
    right = np.array([[1.0], [-1], [0], [0]])
    expected = np.linalg.norm(left[:, 0] - left[:, 1])
    assert abs(Factored(left, right).norm() / expected - 1) < 1e-5


def test_a_triangle_by_blocks_is_that_of_the_whole() -> None:
    rows = draw(23, 4)
    for size in (1, 3, 4, 23):
        R = triangle(rows[i : i + size] for i in range(0, 23, size))
        assert near(R.T @ R, rows.T @ rows, 1e-13)


@pytest.mark.parametrize("by", ["value", "size"])
@pytest.mark.parametrize("block_bytes", [1, 100, 10**6])
def test_top_entries_by_blocks(by: str, block_bytes: int) -> None:
    factored = Factored(draw(9, 2), draw(2, 7), "abcdefghi", "tuvwxyz")
    whole = mul(factored.left.tolist(), factored.right.tolist())
    every = [(whole[i][j], i, j) for i in range(9) for j in range(7)]
    every.sort(key=lambda each: -(abs(each[0]) if by == "size" else each[0]))
    for k in (0, 1, 5, 100):
        found = factored.top(k, block_bytes, by)
        assert [(each.row, each.column) for each in found] == [(i, j) for _, i, j in every[:k]]
        assert near([each.value for each in found], [value for value, *_ in every[:k]], 1e-14)
    assert found[0].row_label == "abcdefghi"[found[0].row]
    assert found[0].column_label == "tuvwxyz"[found[0].column]


def test_the_largest_of_a_row_and_what_is_shown() -> None:
    factored = Factored(draw(9, 2), draw(2, 7), "abcdefghi", "tuvwxyz")
    row = factored.dense()[8]
    found = factored.top_of_row(-1, 3)
    assert [each.column for each in found] == np.argsort(-row)[:3].tolist()
    assert {each.row_label for each in found} == {"i"}
    with pytest.raises(OtimesError, match=r"row 9 is out of range for a matrix of shape \(9, 7\)"):
        factored.top_of_row(9, 1)
    assert repr(factored) == "<9 × 7 matrix of rank ≤ 2, float64>"
    assert factored._repr_html_().count("<tr>") == 11
    huge = Factored(np.zeros((2**13, 1)), np.zeros((1, 2**13)))
    assert "<table>" not in huge._repr_html_()


def test_ties_come_in_order() -> None:
    assert largest(np.array([1.0, 2, 1, 2, 1]), 3).tolist() == [1, 3, 0]
    ones = Factored(np.ones((3, 1)), np.ones((1, 3)))
    assert [each[:2] for each in ones.top(4, 1)] == [(0, 0), (0, 1), (0, 2), (1, 0)]


def test_top_entries_need_a_block_of_memory() -> None:
    big = Factored(draw(4000, 2), draw(2, 4000))
    tracemalloc.start()
    big.top(10, block_bytes=2**20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20 < 4000 * 4000 * 8


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ShapeError, match=r"shapes \(3, 2\) and \(3, 2\): the inner sizes differ"):
        Factored(draw(3, 2), draw(3, 2))
    with pytest.raises(ShapeError, match=r"trace needs a square matrix, got shape \(3, 4\)"):
        Factored(draw(3, 2), draw(2, 4)).trace()
    with pytest.raises(ShapeError, match="inner sizes 4 and 3 differ"):
        Factored(draw(3, 2), draw(2, 4)) @ Factored(draw(3, 2), draw(2, 4))
    with pytest.raises(ShapeError, match="2 row labels"):
        Factored(draw(3, 2), draw(2, 4), ("a", "b"))
    with pytest.raises(OtimesError, match="by must be 'value' or 'size', got 'abs'"):
        Factored(draw(3, 2), draw(2, 4)).top(1, by="abs")
    with pytest.raises(
        ShapeError, match=r"top needs a single matrix, got a stack of shape \(2, 3, 4\)"
    ):
        Factored(draw(2, 3, 2), draw(2, 2, 4)).top(1)
