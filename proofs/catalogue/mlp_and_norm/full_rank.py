"""Chapter 4: that ReLUs reach full rank from a stream of two dimensions, at every size."""

from __future__ import annotations

from sympy import (
    BlockMatrix,
    HadamardProduct,
    Identity,
    MatrixSymbol,
    OneMatrix,
    Transpose,
    ZeroMatrix,
)

from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.language.positions import Positions, Shift
from otimes.proofs.catalogue.symbols import n, p
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import theorem


@theorem(
    title="What a ReLU keeps of the differences i − j + 1 is invertible, for every n",
    chapter=4,
    source="follows by example: the differences i − j",
    covers=("S0-72",),
)
def kept_differences_are_invertible() -> Statement:
    """ReLU neurons that read a stream of only two dimensions can have activations of full rank n,
    for every number n of positions. Let position i hold (i, 1) and neuron j read i − j + 1: before
    the ReLU this is a matrix of rank two. A ReLU keeps what is positive, and that is the part on
    and below the diagonal, where the causal mask M has its ones. What is left is M², and M has the
    inverse I − Shift, where Shift moves each row down by one. So n neurons at n positions have rank
    n after the ReLU.

    More neurons or positions only add columns or rows (`more_neurons_keep_full_rank`): the rank is
    min(n, d_mlp) for any numbers.
    """
    ones, places = OneMatrix(n, 1), Positions(n)
    read = matadd(
        matmul(places, Transpose(ones)), matmul(-1, ones, Transpose(places)), OneMatrix(n, n)
    )
    kept = HadamardProduct(read, CausalMask(n), evaluate=False)
    back = matadd(Identity(n), matmul(-1, Shift(n)))
    return Statement(matmul(back, back, kept), Identity(n), on_models=False)


@theorem(
    title="More neurons than positions leave the rank at the number of positions",
    chapter=4,
    source="follows by example: the differences i − j",
    covers=("S0-72",),
)
def more_neurons_keep_full_rank() -> Statement:
    """Adding neurons to a layer whose activations have full rank n, one for each position, leaves
    the rank n. The activations of the first n neurons are those of
    `kept_differences_are_invertible`, the causal mask M times itself, and Y (n × p) holds those of
    p further neurons. The equation gives a right inverse of all of them side by side, which only
    matrices with n independent rows have. Shift moves rows down by one.

    So with a stream of two dimensions and any d_mlp ≥ n the neurons reach the rank n = min(n,
    d_mlp). For more positions than neurons transpose the argument: new rows leave the columns
    independent.
    """
    more = MatrixSymbol("Y", n, p)
    back = matadd(Identity(n), matmul(-1, Shift(n)))
    first = matmul(CausalMask(n), CausalMask(n))
    side = BlockMatrix([[first, more]])
    inverse = BlockMatrix([[matmul(back, back)], [ZeroMatrix(p, n)]])
    return Statement(matmul(side, inverse), Identity(n), on_models=False)
