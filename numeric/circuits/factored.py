r"""A low-rank matrix kept as a product of two factors, and its trace, spectrum and entries.

For a head, $W_V W_O$ is d_model × d_model and $W_E W_V W_O W_U$ d_vocab × d_vocab, but both have
rank ≤ d_head. With A [a, k] and B [k, b]:

    trace          $tr(A B) = tr(B A)$
    eigenvalues    the nonzero ones of A B are those of B A, which is k × k
    norm           $\|A B\|_F = \|R_A R_B^T\|_F$ where $A = Q_A R_A$ and $B^T = Q_B R_B$
    singular       those of $R_A R_B^T$, k × k; the vectors are $Q_A U$ and $Q_B V$
    values

Source: Elhage et al. 2021, “Working with low-rank matrices”; Golub and Van Loan, §5.2 and §7.1.
Leading axes are a stack of matrices: A [*stack, a, k], B [*stack, k, b].
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.circuits.result import visible_text
from otimes.numeric.circuits.weights import BLOCK_BYTES, blocks
from otimes.numeric.progress import tracked

SHOWN_AT_MOST = 2**24
"""A matrix with more entries than this is displayed without its largest entries."""


class Entry(NamedTuple):
    """One entry of a matrix: its indices, their labels, and its value."""

    row: int
    column: int
    value: float
    row_label: str
    column_label: str


class SVD(NamedTuple):
    """A thin singular value decomposition, $U · diag(S) · V^T$, S in descending order."""

    U: np.ndarray
    S: np.ndarray
    V: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Factored:
    """The product `left` [*stack, a, k] @ `right` [*stack, k, b], kept factored.

    >>> circuit = Factored(np.ones((1000, 2)), np.ones((2, 1000)))
    >>> circuit.shape, circuit.rank_bound, float(circuit.trace())
    ((1000, 1000), 2, 2000.0)

    Raises: ShapeError if the inner sizes differ.
    """

    left: Float[np.ndarray, "*stack rows inner"]
    right: Float[np.ndarray, "*stack inner columns"]
    row_labels: Sequence[str] = field(default=(), repr=False)
    column_labels: Sequence[str] = field(default=(), repr=False)

    __array_ufunc__ = None  # so that `array @ factored` calls __rmatmul__

    def __post_init__(self) -> None:
        """Check the shapes of the factors and the labels."""
        if self.left.ndim < 2 or self.right.ndim < 2 or self.left.shape[-1] != self.right.shape[-2]:
            raise ShapeError(
                f"cannot multiply factors of shapes {self.left.shape} and {self.right.shape}:"
                " the inner sizes differ"
            )
        labelled = (("row", self.row_labels, -2), ("column", self.column_labels, -1))
        for what, labels, axis in labelled:
            if labels and len(labels) != self.shape[axis]:
                raise ShapeError(f"{len(labels)} {what} labels for a matrix of shape {self.shape}")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the product, with the axes of the stack first."""
        stack = np.broadcast_shapes(self.left.shape[:-2], self.right.shape[:-2])
        return (*stack, self.left.shape[-2], self.right.shape[-1])

    @property
    def rank_bound(self) -> int:
        """An upper bound on the rank: the smallest of the sizes a, k and b."""
        return min(self.left.shape[-1], *self.shape[-2:])

    @property
    def T(self) -> "Factored":
        """The transpose, factored."""
        return Factored(
            _transposed(self.right), _transposed(self.left), self.column_labels, self.row_labels
        )

    def __matmul__(self, other: "Factored | np.ndarray") -> "Factored":
        """Return the product with another matrix, factored through the smaller inner size."""
        if isinstance(other, Factored):
            _fits(self.shape, other.shape)
            core = self.right @ other.left
            labels = self.row_labels, other.column_labels
            if core.shape[-2] <= core.shape[-1]:
                return Factored(self.left, core @ other.right, *labels)
            return Factored(self.left @ core, other.right, *labels)
        _fits(self.shape, other.shape)
        return Factored(self.left, self.right @ other, self.row_labels)

    def __rmatmul__(self, other: np.ndarray) -> "Factored":
        """Return the product of a matrix with this one, factored."""
        _fits(other.shape, self.shape)
        return Factored(other @ self.left, self.right, (), self.column_labels)

    def dense(self) -> np.ndarray:
        """Return the product as an array; only for small matrices."""
        return np.asarray(self.left @ self.right)

    def rows(self, index: int | slice | Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the rows of the product at `index`."""
        return np.asarray(self.left[..., index, :] @ self.right)

    def trace(self) -> np.ndarray:
        r"""Return $tr(A B) = Σ_{ik} A_{ik} B_{ki}$ [*stack], by the rule `trace_cyclic`."""
        self._need_square("trace")
        return np.asarray(np.einsum("...ik,...ki->...", self.left, self.right))

    def eigenvalues(self) -> np.ndarray:
        """Return the eigenvalues of $B A$ [*stack, k], by descending absolute value.

        Those of $A B$ are the same and a − k further zeros (if a < k, $B A$ has k − a further
        zeros). Proved by: power_sums_of_AB_and_BA, as $tr (A B)^p = tr (B A)^p$ for every p.
        """
        self._need_square("eigenvalues")
        return eigenvalues(self.right @ self.left)

    def core(self) -> np.ndarray:
        """Return $R_A R_B^T$ [*stack, ≤ k, ≤ k], which has the singular values of the product."""
        R_A, R_B = triangles(self.left), triangles(_transposed(self.right))
        return np.asarray(R_A @ _transposed(R_B))

    def norm(self) -> np.ndarray:
        r"""Return $\|A B\|_F = \|R_A R_B^T\|_F$ [*stack]. Proved by: norm_of_factored."""
        return np.asarray(np.linalg.norm(self.core(), axis=(-2, -1)))

    def svd(self) -> SVD:
        """Return the singular values and vectors, from the SVD of the small core.

        U [*stack, a, k], S [*stack, k], V [*stack, b, k]. Proved by: svd_of_factored.
        """
        Q_A, R_A = np.linalg.qr(self.left)
        Q_B, R_B = np.linalg.qr(_transposed(self.right))
        U, S, Vh = np.linalg.svd(R_A @ _transposed(R_B), full_matrices=False)
        return SVD(Q_A @ U, S, Q_B @ _transposed(Vh))

    def singular_values(self) -> np.ndarray:
        """Return the singular values [*stack, k] in descending order; `svd` has the vectors too."""
        return np.asarray(np.linalg.svd(self.core(), compute_uv=False))

    def top(self, k: int, block_bytes: int = BLOCK_BYTES, by: str = "value") -> list[Entry]:
        """Return the k largest entries of the product, the largest first.

        The product is computed in blocks of rows of at most `block_bytes` bytes (at least one row).
        `by`: "value", or "size" for the largest absolute values. Ties are in order of their index.
        """
        if self.left.ndim != 2 or self.right.ndim != 2:
            raise ShapeError(f"top needs a single matrix, got a stack of shape {self.shape}")
        if by not in ("value", "size"):
            raise OtimesError(f"by must be 'value' or 'size', got {by!r}")
        n_columns = self.shape[1]
        places, values = np.empty(0, np.int64), np.empty(0, self.left.dtype)
        every = list(blocks(self.shape[0], n_columns, self.left.dtype, block_bytes))
        for some in tracked(every, "searching"):
            block = (self.left[some] @ self.right).ravel()
            best = largest(np.abs(block) if by == "size" else block, k)
            places = np.concatenate([places, best + some.start * n_columns])
            values = np.concatenate([values, block[best]])
            keep = largest(np.abs(values) if by == "size" else values, k)
            places, values = places[keep], values[keep]
        rows, columns = np.divmod(places, max(n_columns, 1))
        return [
            Entry(r, c, v, _label(self.row_labels, r), _label(self.column_labels, c))
            for r, c, v in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True)
        ]

    def top_of_row(self, row: int, k: int) -> list[Entry]:
        """Return the k largest entries of one row, the largest first."""
        if self.left.ndim != 2 or not -self.shape[0] <= row < self.shape[0]:
            raise OtimesError(f"row {row} is out of range for a matrix of shape {self.shape}")
        row %= self.shape[0]
        values = self.rows(row)
        return [
            Entry(
                row,
                c,
                float(values[c]),
                _label(self.row_labels, row),
                _label(self.column_labels, c),
            )
            for c in largest(values, k).tolist()
        ]

    def __repr__(self) -> str:
        size = " × ".join(map(str, self.shape))
        return f"<{size} matrix of rank ≤ {self.rank_bound}, {self.left.dtype}>"

    def _repr_html_(self) -> str:
        labelled = f"<p>{escape(repr(self)[1:-1])}</p>"
        if self.left.ndim > 2 or self.shape[0] * self.shape[1] > SHOWN_AT_MOST:
            return labelled
        lines = "".join(
            f"<tr><td>{visible_text(each.row_label)} → {visible_text(each.column_label)}</td>"
            f"<td>{each.value:+.3g}</td></tr>"
            for each in self.top(10, by="size")
        )
        return f"{labelled}<table><tr><th>largest entries</th><th></th></tr>{lines}</table>"

    def _need_square(self, what: str) -> None:
        if self.shape[-2] != self.shape[-1]:
            raise ShapeError(f"{what} needs a square matrix, got shape {self.shape[-2:]}")


def eigenvalues(small: Float[np.ndarray, "*stack k k"]) -> np.ndarray:
    """Return the complex eigenvalues [*stack, k], by descending absolute value."""
    found = np.linalg.eigvals(small)
    order = np.argsort(-np.abs(found), axis=-1, kind="stable")
    by_size = np.take_along_axis(found, order, axis=-1)
    return np.asarray(by_size, dtype=np.result_type(small.dtype, np.complex64))


def triangles(tall: Float[np.ndarray, "*stack rows inner"]) -> np.ndarray:
    r"""Return upper triangular R with $R^T R = A^T A$ for a stack of tall A: $\|A M\| = \|R M\|$.

    By CholeskyQR2: $R_1$ of $A^T A$, then $R_2$ of $Q^T Q$ where $Q = A R_1^{-1}$, and
    $R = R_2 R_1$. It is as accurate as Householder QR if Q is nearly orthogonal, which is checked;
    otherwise Householder QR is used, which is much slower, as it has many small steps.
    Source: Yamamoto, Nakatsukasa, Yanagisawa and Fukaya 2015, “Roundoff error analysis of the
    CholeskyQR2 algorithm”.
    """
    try:
        first = np.linalg.cholesky(_transposed(tall) @ tall, upper=True)
        nearly = tall @ np.linalg.inv(first)
        square = _transposed(nearly) @ nearly
        if np.abs(square - np.eye(square.shape[-1])).sum(axis=-1).max(initial=0.0) < 0.5:
            return np.asarray(np.linalg.cholesky(square, upper=True) @ first)
    except np.linalg.LinAlgError:
        pass  # linearly dependent columns, up to rounding: no Cholesky factor
    return np.asarray(np.linalg.qr(tall, mode="r"))


def triangle(rows: Iterable[np.ndarray]) -> np.ndarray:
    """Return R of the QR decomposition of vertically stacked blocks, one block at a time.

    $R^T R$ is their Gram matrix, but the condition number is not squared. Source: Demmel, Grigori,
    Hoemmen and Langou 2012, “Communication-optimal parallel and sequential QR”.
    """
    found: np.ndarray | None = None
    for block in rows:
        found = triangles(block if found is None else np.vstack([found, block]))
    assert found is not None  # there is always a token
    return found


def largest(values: Float[np.ndarray, " entries"], k: int) -> np.ndarray:
    """Return the indices of the k largest values, the largest first, ties in order of index."""
    if len(values) > k:
        least = np.partition(values, len(values) - k)[len(values) - k] if k else np.inf
        above = np.flatnonzero(values > least)
        ties = np.flatnonzero(values == least)[: k - len(above)] if k else above[:0]
        places = np.sort(np.concatenate([above, ties]))
    else:
        places = np.arange(len(values))
    order: np.ndarray = places[np.argsort(-values[places], kind="stable")]
    return order


def _label(labels: Sequence[str], at: int) -> str:
    return labels[at] if labels else str(at)


def _transposed(stack: np.ndarray) -> np.ndarray:
    return np.swapaxes(stack, -2, -1)


def _fits(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    if left[-1] != right[-2 if len(right) > 1 else 0]:
        raise ShapeError(
            f"cannot multiply {left} with {right}: the inner sizes {left[-1]} and"
            f" {right[-2 if len(right) > 1 else 0]} differ"
        )
