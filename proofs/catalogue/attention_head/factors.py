"""Chapter 3: only products of weights count: the gauge of a head, and what is left without it."""

from __future__ import annotations

from typing import Any

from sympy import Identity, Inverse, MatrixSymbol, Transpose, sqrt

from otimes.algebra.language.linear import matmul
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.catalogue.symbols import X, column, d, d_head, n, p, row
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

FULL_RANK = "Piziak and Odell 1999, “Full rank factorization of matrices”"
LEFT, RIGHT = MatrixSymbol("L", d_head, d), MatrixSymbol("R", d, d_head)
OTHERS = MatrixSymbol("V_2", d, d_head), MatrixSymbol("O_2", d_head, d)
M, N = MatrixSymbol("M", d_head, d_head), MatrixSymbol("N", d_head, d_head)
SQUARES = {"M": Source("W_V", rows=32), "N": Source("W_Q", rows=32)}
"""Two invertible matrices to be had on the bundled models, whose heads are 32 wide."""


@theorem(
    title="The gauge of OV: any change of basis between W_V and W_O",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("S1-29", "S2-28", "B8"),
)
def ov_gauge() -> Statement:
    """The d_head numbers inside a head have no meaning of their own. Replace W_V by W_V M and W_O
    by M⁻¹ W_O, with any invertible M: the product W_V W_O, and so what the head writes, is
    unchanged. Such a freedom in the weights is called a gauge.

    It matters when heads are compared: a single column of W_V, or one coordinate of a value vector,
    can be changed at will. Only the product W_OV is a property of the model.
    """
    return Statement(
        matmul(matmul(row.W_V, M), matmul(Inverse(M), row.W_O)),
        matmul(row.W_V, row.W_O),
        bind=(SQUARES,),
    )


@theorem(
    title="The gauge of OV, in the column convention",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("S2-28",),
)
def ov_gauge_column() -> Statement:
    """With weights on the left, W_OV = W_O W_V, and a change of basis of the values stands between
    the two: W_O M⁻¹ and M W_V have the same product for every invertible M. The d_head numbers of a
    value vector are in a basis that the model is free to choose.

    It is `ov_gauge` for texts in the column convention.
    """
    return Statement(
        matmul(matmul(column.W_O, Inverse(M)), matmul(M, column.W_V)),
        matmul(column.W_O, column.W_V),
        bind=(SQUARES,),
    )


@theorem(
    title="The gauge of QK, in the column convention",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("S2-28",),
)
def qk_gauge_column() -> Statement:
    """With weights on the left, W_QK = W_Qᵀ W_K, and queries and keys have a basis that can be
    chosen freely: M W_Q and (M⁻¹)ᵀ W_K have the same product for every invertible M. The inverse is
    transposed because query and key meet in a dot product.

    It is `qk_gauge` for texts in the column convention.
    """
    return Statement(
        matmul(Transpose(matmul(M, column.W_Q)), matmul(Transpose(Inverse(M)), column.W_K)),
        matmul(Transpose(column.W_Q), column.W_K),
        bind=(SQUARES,),
    )


@theorem(
    title="The inverse of a QK gauge must be transposed",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
)
def qk_gauge_needs_transpose() -> NonIdentity:
    """Changing the basis of queries by M and of keys by M⁻¹ changes the scores. They become x W_Q M
    M⁻ᵀ W_Kᵀ yᵀ, and M M⁻ᵀ is the identity only if M is symmetric. The keys need the inverse
    transpose (`qk_gauge`).

    The slip goes unnoticed when it is tested with a diagonal M.
    """
    return NonIdentity(
        matmul(matmul(row.W_Q, M), Transpose(matmul(row.W_K, Inverse(M)))),
        matmul(row.W_Q, Transpose(row.W_K)),
        bind=(SQUARES,),
        on_models=True,
    )


@theorem(
    title="A whole head is unchanged by both gauges",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("S1-29",),
)
def head_gauge() -> Statement:
    """A head computes the same pattern and writes the same result after two independent changes of
    basis: M for queries and keys, N for values. The equation includes the softmax and the causal
    mask.

    So 2 d_head² of a head's parameters have no effect on what it computes. Weights of two heads
    should be compared through W_QK and W_OV only.

    The two bases are unrelated. Coordinate k of a query does not belong to coordinate k of a value.
    """
    changed = _head(
        matmul(row.W_Q, M),
        matmul(row.W_K, Transpose(Inverse(M))),
        matmul(row.W_V, N),
        matmul(Inverse(N), row.W_O),
    )
    return Statement(
        changed,
        _head(row.W_Q, row.W_K, row.W_V, row.W_O),
        on_models=False,
    )


def _head(W_Q: Any, W_K: Any, W_V: Any, W_O: Any) -> Any:
    """Return a causal head on the stream X, as it is computed."""
    scores = matmul(1 / sqrt(d_head), matmul(X, W_Q), Transpose(matmul(X, W_K)))
    return matmul(RowSoftmax(scores, CausalMask(n)), matmul(X, W_V), W_O)


@theorem(
    title="Two ways to factor the same W_OV differ by a change of basis",
    chapter=3,
    convention="row",
    source=FULL_RANK,
    covers=("S2-28",),
)
def ov_factors_differ_by_gauge() -> Statement:
    """If two heads have the same OV circuit, W_V W_O = V_2 O_2, their factors differ only by a
    change of basis: W_V = V_2 M with M = O_2 R. Here R (d × d_head) is a right inverse of W_O,
    which exists if the rows of W_O are independent.

    It is the converse of `ov_gauge`. For example, an SVD gives the factors U √Σ and √Σ Vᵀ of the
    same circuit.

    So compare heads by what does not depend on the factors: W_OV itself, its singular values and
    its eigenvalues.
    """
    V_2, O_2 = OTHERS
    return Statement(
        matmul(V_2, matmul(O_2, RIGHT)),
        row.W_V,
        given=(
            (matmul(row.W_O, RIGHT), Identity(d_head)),
            (matmul(V_2, O_2), matmul(row.W_V, row.W_O)),
        ),
        on_models=False,
    )


@theorem(
    title="The change of basis between two factorings can be undone",
    chapter=3,
    convention="row",
    source=FULL_RANK,
    covers=("S1-29",),
)
def ov_gauge_is_invertible() -> Statement:
    """If an OV circuit has full rank d_head, the change of basis between two ways to factor it is
    invertible. L is a left inverse of W_V and R a right inverse of W_O, and O_2 R
    (`ov_factors_differ_by_gauge`) is undone by L V_2, whatever Y it was applied to.

    So all invertible d_head × d_head matrices are the whole freedom: two heads with the same W_OV
    are the same head in two bases.

    A head of lower rank has more freedom. What W_V computes and W_O does not read can be anything.
    """
    V_2, O_2 = OTHERS
    any_values = MatrixSymbol("Y", d_head, p)
    return Statement(
        matmul(matmul(LEFT, V_2), matmul(matmul(O_2, RIGHT), any_values)),
        any_values,
        given=(
            (matmul(LEFT, row.W_V), Identity(d_head)),
            (matmul(row.W_O, RIGHT), Identity(d_head)),
            (matmul(V_2, O_2), matmul(row.W_V, row.W_O)),
        ),
        on_models=False,
    )
