"""Chapter 7: the trace of any matrix, as the sum of its eigenvalues."""

from __future__ import annotations

from sympy import Identity, MatrixSymbol, OneMatrix, Trace
from sympy.matrices.expressions.diagonal import DiagonalOf

from otimes.algebra.language.linear import matmul
from otimes.proofs.catalogue.symbols import n
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import theorem


@theorem(
    title="The trace is the sum of the diagonal of any triangular form, eigenbasis or not",
    chapter=7,
    source="Schur 1909; Horn and Johnson, §2.3",
    covers=("S3-101",),
)
def trace_in_triangular_form() -> Statement:
    """The trace of a square matrix is the sum of its eigenvalues, with or without a basis of
    eigenvectors. Every square matrix M has a triangular form, M S = S T with S invertible (S_back
    is its inverse), and the eigenvalues stand on the diagonal of T. The equation says that M has
    the trace of T.

    A real matrix has a real form with 2 × 2 blocks for pairs a ± bi, whose diagonal is a, a.
    """
    M, S, S_back, T = (MatrixSymbol(name, n, n) for name in ("M", "S", "S_back", "T"))
    return Statement(
        Trace(M),
        Trace(matmul(OneMatrix(1, n), DiagonalOf(T))),
        given=((matmul(M, S), matmul(S, T)), (matmul(S, S_back), Identity(n))),
        on_models=False,
    )
