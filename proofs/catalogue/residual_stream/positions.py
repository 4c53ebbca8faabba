"""Chapter 2: only attention moves information between positions."""

from __future__ import annotations

from typing import Any

from sympy import BlockMatrix, HadamardProduct, MatrixSymbol, OneMatrix, Symbol, Transpose, symbols
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.linear import OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, LayerNorm
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import A, V, X, d, m, n, row, size
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

i = symbols("i", integer=True)
d_mlp = size("d_mlp")
W_in, W_out = MatrixSymbol("W_in", d, d_mlp), MatrixSymbol("W_out", d_mlp, d)


@theorem(
    title="An MLP acts on every position separately and in the same way",
    chapter=2,
    convention="row",
    source=f"{PRIMER}, “The transformer layer”",
    covers=("S0-13",),
)
def mlp_is_positionwise() -> Statement:
    """An MLP treats every position by itself and all positions alike. Each row of the stream is
    mapped to a row, so shuffling the rows before the MLP or after it gives the same: MLP(P X) = P
    MLP(X). P may be any matrix of zeros and ones with a single 1 in each row, so it may also drop
    or repeat positions.

    It follows that only attention moves information between positions.

    For a P that takes averages the equation fails: with ReLU, the mean of the inputs 1 and −1 gives
    0, and the mean of the outputs 1 and 0 is 1/2.
    """
    P = MatrixSymbol("P", m, n)
    one = OneMatrix(n, 1)

    def mlp(*stream: Any) -> Any:
        return matmul(Activation("g", matmul(*stream, W_in)), W_out)

    return Statement(
        mlp(P, X),
        matmul(P, mlp(X)),
        given=(
            (HadamardProduct(P, P, evaluate=False), P),
            (matmul(P, one), OneMatrix(m, 1)),
        ),
        on_models=False,
    )


@theorem(
    title="Everything but attention acts on one position at a time",
    chapter=2,
    convention="row",
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-17",),
)
def everything_else_is_positionwise() -> Statement:
    """The embedding, an MLP behind its norm, and the unembedding behind the final norm all act on
    one position at a time: their output at position i is what they compute from row i alone. The
    equation says so of the three, side by side; T holds one-hot tokens, eps is the small constant
    inside the norm.

    So derivatives of these parts with respect to other positions are zero, and the same holds when
    they follow one another. A model without attention cannot tell two prompts apart that end in the
    same token.

    Norms are no exception: a LayerNorm takes its mean and its scale from one position.
    """
    b_in, b_out = MatrixSymbol("b_in", 1, d_mlp), MatrixSymbol("b_out", 1, d)
    eps, T = Symbol("eps", positive=True), MatrixSymbol("T", n, V)

    def made_of(tokens: Any, stream: Any, everywhere: tuple[Any, ...] = ()) -> BlockMatrix:
        normed = LayerNorm(stream, eps)
        read = matadd(matmul(normed, W_in), matmul(*everywhere, b_in))
        written = matadd(matmul(Activation("g", read), W_out), matmul(*everywhere, b_out))
        return BlockMatrix([[matmul(tokens, row.W_E), written, matmul(normed, row.W_U)]])

    at_i = Transpose(OneHot(i, n))
    return Statement(
        matmul(at_i, made_of(T, X, (OneMatrix(n, 1),))),
        made_of(matmul(at_i, T), matmul(at_i, X)),
        on_models=False,
    )


@theorem(
    title="Attention moves information between positions",
    chapter=2,
    convention="row",
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-17",),
)
def attention_is_not_positionwise() -> NonIdentity:
    """Unlike every other part of a transformer, an attention head at position i uses more than row
    i of the stream. The right-hand side is what it would write from row i alone, a_ii x_i W_V W_O;
    the head has such a term for each position that i attends to, so the two sides differ.

    This is the other half of the claim that attention, and only attention, moves information
    between positions (`everything_else_is_positionwise`).
    """
    at_i = Transpose(OneHot(i, n))
    alone = matmul(MatrixElement(A, i, i), at_i, X)
    W_OV = matmul(row.W_V, row.W_O)
    return NonIdentity(matmul(at_i, A, X, W_OV), matmul(alone, W_OV))
