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
    """The activation is applied to each entry, so an MLP takes each row of the stream to a row by
    itself: MLP(P X) = P MLP(X), for every P that permutes positions, and more generally for every P
    that picks some of them, in any order and as often as it likes (one 1 in each row, else 0).

    Mixing positions is another matter: for a P that takes averages the equation fails, since g of
    an average is not the average of g. That is why all mixing must be done by attention.
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
    """The embedding of tokens T, an MLP with biases that reads a LayerNorm of the stream X, and the
    unembedding behind another: what each of them gives at position i is what it makes of row i
    alone, whether the others are there or not. So all derivatives by other positions are zero, and
    as each hands rows on to the next, the same holds of all of them one after another.

    A model without attention therefore cannot tell two prompts apart that end in the same token.
    With a norm it still cannot: a LayerNorm takes its mean and its scale from one position.
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
    """What a head writes at position i is not what it makes of row i alone, a_ii x_i W_V W_O: it
    has a term for each position that i attends to. This is the other half of the claim that only
    attention moves information.
    """
    at_i = Transpose(OneHot(i, n))
    alone = matmul(MatrixElement(A, i, i), at_i, X)
    W_OV = matmul(row.W_V, row.W_O)
    return NonIdentity(matmul(at_i, A, X, W_OV), matmul(alone, W_OV))
