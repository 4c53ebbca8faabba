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
    """Replace W_V by W_V M and W_O by M⁻¹ W_O, with any invertible M, and W_OV is what it was. The
    d_head numbers inside a head have no meaning of their own: another basis for them is another set
    of stored weights and the same model.

    So nothing should be read off a single column of W_V, or off a “neuron” of a value vector; only
    the product speaks.
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
    """With weights on the left, W_OV = W_O W_V, and the change of basis stands between them again:
    W_O M⁻¹ and M W_V. Values are columns of d_head numbers; M gives them another basis, and W_O M⁻¹
    reads them in it.
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
    """With weights on the left, W_QK = W_Qᵀ W_K: M W_Q and M⁻ᵀ W_K have the same product. Queries
    and keys are columns here, and the inverse is transposed again: what M does to a query, M⁻ᵀ must
    undo in its inner product with a key.
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
    """W_Q M and W_K M⁻¹ are not a gauge: the scores become x W_Q M M⁻ᵀ W_Kᵀ yᵀ, and M M⁻ᵀ is the
    identity for symmetric M only. The slip goes unnoticed with M diagonal.
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
    """Change the basis of queries and keys by M and that of values by N, independently, and the
    head computes the same pattern and writes the same, softmax and causal mask included. So a head
    has two copies of GL(d_head) of freedom, and 2 d_head² of its numbers are of no consequence.

    The two bases have nothing to do with each other: entry k of a query does not belong to entry k
    of a value.
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
    """Let W_V W_O and V_2 O_2 be the same matrix, and let W_O have a right inverse R, as it has
    when its rows are independent. Then W_V = V_2 M with M = O_2 R: other factors of the same
    product span the same columns, in another basis.

    Factors from an SVD, U √Σ and √Σ Vᵀ, are one such pair. Heads are best compared by what does not
    depend on the choice: W_OV itself, its singular values, its eigenvalues.
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
    """If W_OV is of full rank d_head, so that W_V has a left inverse L and W_O a right inverse R,
    then M = O_2 R is undone by L V_2, whatever it was applied to. So GL(d_head) is all the freedom
    there is: two heads with one W_OV are the same head in another basis.

    Of lower rank, a head has more freedom than that: what W_V makes and W_O does not read may be
    anything.
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
