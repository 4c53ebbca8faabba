"""What the statements about norms, biases and feed-forward layers are made of.

Rows are positions. A bias or a gain is a row, 1 × d; `everywhere` puts it at each position.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, Transpose
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import RSQRT, Activation, LayerNorm, mean_square
from otimes.proofs.catalogue.symbols import V, X, d, d_head, d_mlp, n

eps = sympy.Symbol("eps", positive=True)

W_in, b_in = MatrixSymbol("W_in", d, d_mlp), MatrixSymbol("b_in", 1, d_mlp)
W_out, b_out = MatrixSymbol("W_out", d_mlp, d), MatrixSymbol("b_out", 1, d)
bias = SimpleNamespace(
    b_Q=MatrixSymbol("b_Q", 1, d_head),
    b_K=MatrixSymbol("b_K", 1, d_head),
    b_V=MatrixSymbol("b_V", 1, d_head),
    b_O=MatrixSymbol("b_O", 1, d),
)

# The mean of each row is taken off by a product on the right: `of_vocabulary` does it to logits.
centring = matadd(Identity(d), matmul(-1 / d, OneMatrix(d, d)))
of_vocabulary = matadd(Identity(V), matmul(-1 / V, OneMatrix(V, V)))

z = MatrixSymbol("z", 1, d)  # the stream of one position

WITH_LAYER_NORM = {"norm": "layer"}
WITH_PLAIN_MLP = {"gated": False}


def everywhere(row: Any) -> Any:
    """Return the same row at each of n positions: 1 b."""
    return matmul(OneMatrix(n, 1), row)


def diagonal(row: Any) -> Any:
    """Return the diagonal matrix of a row."""
    return DiagMatrix(Transpose(row))


def gained(norm: str, rows: Any) -> Any:
    """Return rows times the gain of a norm, column by column, plus its bias."""
    gain, bias = MatrixSymbol(f"{norm}_gain", 1, d), MatrixSymbol(f"{norm}_bias", 1, d)
    return matadd(matmul(rows, diagonal(gain)), everywhere(bias))


def layer_norm(norm: str, stream: Any = X) -> Any:
    """Return a LayerNorm with its gain and its bias."""
    return gained(norm, LayerNorm(stream, eps))


def reciprocal_deviation(stream: Any, added: Any = eps) -> Any:
    """Return 1/σ of each row as a column: of its variance plus eps, the reciprocal root."""
    return Activation(RSQRT, mean_square(matmul(stream, centring), added))


def activation(argument: Any, name: str = "g") -> Any:
    """Return an activation of each entry: any function g if no other is named."""
    return Activation(name, argument)


def neurons(stream: Any = X) -> Any:
    """Return what the neurons are, n × d_mlp: g(X W_in + 1 b_in)."""
    return activation(matadd(matmul(stream, W_in), everywhere(b_in)))


def feed_forward(stream: Any = X) -> Any:
    """Return g(X W_in + 1 b_in) W_out + 1 b_out."""
    return matadd(matmul(neurons(stream), W_out), everywhere(b_out))
