"""Chapter 4: that ReLUs reach full rank from a stream of two dimensions, at every size."""

from __future__ import annotations

from sympy import HadamardProduct, Identity, OneMatrix, Transpose

from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.language.positions import Positions, Shift
from otimes.proofs.catalogue.symbols import n
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import theorem


@theorem(
    title="What a ReLU keeps of the differences i − j + 1 is invertible, for every n",
    chapter=4,
    source="follows by example: the differences i − j",
    covers=("S0-72",),
)
def kept_differences_are_invertible() -> Statement:
    """Let position i hold (i, 1) and neuron j read i − j + 1: a matrix of rank two. A ReLU keeps
    what is positive, and that is the part on and below the diagonal, where the causal mask M has
    its ones. What is left is M², and M has the inverse I − Shift. So n neurons at n positions have
    rank n after the ReLU, from a stream of two dimensions.

    More neurons or positions only add columns or rows: the rank is min(n, d_mlp) for any numbers.
    """
    ones, places = OneMatrix(n, 1), Positions(n)
    read = matadd(
        matmul(places, Transpose(ones)), matmul(-1, ones, Transpose(places)), OneMatrix(n, n)
    )
    kept = HadamardProduct(read, CausalMask(n), evaluate=False)
    back = matadd(Identity(n), matmul(-1, Shift(n)))
    return Statement(matmul(back, back, kept), Identity(n), on_models=False)
