"""Chapter 10: transcoders, which write another activation than they read, and crosscoders."""

from __future__ import annotations

import sympy
from sympy import MatrixSymbol, OneMatrix, Trace, Transpose

from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    matadd,
    matmul,
)
from otimes.algebra.language.nonlinear import Activation
from otimes.proofs.catalogue.symbols import A, L, d, n, row, size
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import theorem

DUNEFSKY = (
    "Dunefsky, Chlenski and Nanda 2024, “Transcoders Find Interpretable LLM Feature Circuits”"
)
LINDSEY = "Lindsey et al. 2024, “Sparse Crosscoders for Cross-Layer Features and Model Diffing”"

N, S, S_2 = size("N"), size("S"), size("S_2")
layer, k, j = sympy.symbols("l k j", integer=True)


def every_row(bias: MatrixSymbol, rows: sympy.Symbol) -> sympy.MatrixExpr:
    """Return a bias in each of several rows."""
    return matmul(OneMatrix(rows, 1), bias)


def squared(matrix: sympy.MatrixExpr) -> sympy.Expr:
    """Return the squared Frobenius norm."""
    return Trace(matmul(matrix, Transpose(matrix)))


F = MatrixSymbol("F", n, S)
D = MatrixSymbol("D", S, d)
W_enc = MatrixSymbol("W_enc", d, S_2)


@theorem(
    title="Transcoders: a later feature reads earlier features through fixed weights",
    chapter=10,
    convention="row",
    source=f"{DUNEFSKY}, §4.1",
    covers=("S3-074",),
)
def transcoder_features_read_each_other() -> Statement:
    """What feature j of a later transcoder reads from an earlier one is a sum over the earlier
    features: the value of feature k on the prompt, times D_k · w_j, which is the same for all
    prompts. F (n × S) holds the values, D the decoder of the earlier transcoder, and w_j is column
    j of the encoder of the later one.

    So circuits of transcoder features can be read off the weights, with the values as switches.
    Between two MLPs this is the direct path. A norm in between divides the sum by its scale.
    """
    feature, reader = OneHot(k, S), OneHot(j, S_2)
    alone = matmul(F, feature, Transpose(feature), D, W_enc, reader)
    return Statement(matmul(F, D, W_enc, reader), HeadSum(alone, (k, S)), on_models=False)


@theorem(
    title="Transcoders: reading earlier features through a head",
    chapter=10,
    convention="row",
    source=f"{DUNEFSKY}, §4.1 and appendix",
    covers=("S3-074",),
)
def transcoder_features_read_through_heads() -> Statement:
    """Through a head, feature j of a later transcoder reads feature k of an earlier one with the
    weight D_k W_V W_O w_j, at all positions that the head attends to: the attention pattern A says
    from where, the weights say what. F (n × S) holds the values of the earlier features at all
    positions, D their directions, and w_j is column j of the later encoder.
    """
    feature, reader = OneHot(k, S), OneHot(j, S_2)
    moved = matmul(D, row.W_V, row.W_O, W_enc, reader)
    alone = matmul(A, F, feature, Transpose(feature), moved)
    return Statement(matmul(A, F, moved), HeadSum(alone, (k, S)), on_models=False)


Z, W, E = Family("Z", (L,), N, d), Family("W_enc", (L,), d, S), Family("D", (L,), S, d)
b_enc = MatrixSymbol("b_enc", 1, S)
H = MatrixSymbol("F", N, S)


@theorem(
    title="A crosscoder is one autoencoder of activations side by side",
    chapter=10,
    convention="row",
    source=f"{LINDSEY}, “Setup”",
    covers=("S3-074",),
)
def crosscoder_is_one_encoder() -> Statement:
    """A crosscoder finds features that several layers share: each layer has an encoder matrix of
    its own, their results are added, and one ReLU gives the features. That is an ordinary encoder
    that reads the activations of all layers side by side, with the matrices of the layers stacked.
    Z[l] (N × d) are the activations of layer l and W_enc[l] (d × S) its encoder matrix.

    So what is proved of one autoencoder holds for a crosscoder, with L d in place of d.
    """
    apart = HeadSum(matmul(Z[layer], W[layer]), (layer, L))
    beside = matmul(ConcatHeads(Z[layer], (layer, L)), StackHeads(W[layer], (layer, L)))
    return Statement(
        Activation("relu", matadd(beside, every_row(b_enc, N))),
        Activation("relu", matadd(apart, every_row(b_enc, N))),
        on_models=False,
    )


@theorem(
    title="The error of a crosscoder is the sum of the errors of its layers",
    chapter=10,
    convention="row",
    source=f"{LINDSEY}, “Setup”",
    covers=("S3-075",),
)
def crosscoder_errors_add_up() -> Statement:
    """The squared error of a crosscoder, whose one set of features is decoded into every layer, is
    the sum of the squared errors of the layers. F (N × S) holds the features, D[l] the decoder of
    layer l, and Z[l] what that layer's activations are.

    A layer with larger activations counts more. That is why activations are scaled before training.
    """
    left = matadd(
        ConcatHeads(Z[layer], (layer, L)), matmul(-1, H, ConcatHeads(E[layer], (layer, L)))
    )
    each = matadd(Z[layer], matmul(-1, H, E[layer]))
    errors = HeadSum(matmul(each, Transpose(each)), (layer, L))
    return Statement(squared(left), Trace(errors), on_models=False)
