"""Chapter 3: the heads of a layer: a sum, in any order, each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Identity, MatrixSymbol, OneMatrix, S, Symbol, Transpose
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
)
from otimes.algebra.language.trees import stated
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import (
    H,
    X,
    d,
    d_head,
    h,
    heads,
    n,
)
from otimes.proofs.claims import Definition, Statement
from otimes.proofs.theorem import theorem


@theorem(
    title="An attention layer with its bias is a sum over heads",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}, "
    "“Attention heads are independent and additive”",
    covers=("S0-18",),
)
def attention_layer_is_sum_of_heads() -> Statement:
    """An attention layer is a sum over its heads plus one output bias: the results of the heads
    side by side, times the tall W_O, are one term Z[h] W_O[h] for each head, and b_O is added once
    at every position. Z[h] (n × d_head) is what head h has mixed from its values.

    The bias belongs to the layer and to no head. Counting it with each head counts it H times.
    """
    Z, W_O, b_O = heads.Z[h], heads.row.W_O[h], MatrixSymbol("b_O", 1, d)
    bias = matmul(OneMatrix(n, 1), b_O)
    together = matadd(matmul(ConcatHeads(Z, (h, H)), StackHeads(W_O, (h, H))), bias)
    return Statement(
        together,
        matadd(HeadSum(matmul(Z, W_O), (h, H)), bias),
        places={"attn_out": together},
        bind=({"Z": Source("z")},),
        bare=False,
    )


@theorem(
    title="Concatenated heads times W_O are the sum of the heads, OV circuits included",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}, "
    "“Attention heads are independent and additive”",
    covers=("S0-66", "S1-19", "S2-17", "S4-11"),
)
def heads_concat_is_sum_of_ov() -> Statement:
    """An attention layer is a sum over heads of pattern · stream · OV circuit, A X (W_V W_O). It
    equals the form of implementations, which put A X W_V of all heads side by side and multiply by
    one tall W_O.

    The number of heads H and their width d_head are arbitrary. That H · d_head = d, so that W_O is
    square, is a habit of implementations and is used nowhere. If W_O is square, it still has to be
    cut into blocks of rows, one for each head.
    """
    pattern, W_V, W_O = heads.A[h], heads.row.W_V[h], heads.row.W_O[h]
    mixed = ConcatHeads(matmul(pattern, X, W_V), (h, H))
    together = matmul(mixed, StackHeads(W_O, (h, H)))
    return Statement(
        together,
        HeadSum(matmul(pattern, X, matmul(W_V, W_O)), (h, H)),
        places={"attn_out": together},
        printed={"E56": lambda: (matmul(mixed, MatrixSymbol("W", d, d)), together)},
    )


@theorem(
    title="Stacked heads times a wide W_O, in the column convention",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Attention heads are independent and additive”",
    covers=("S1-19", "S2-17"),
)
def heads_concat_is_sum_column() -> Statement:
    """In the column convention the results R[h] of the heads (d_head × n) are stacked one below the
    other, and W_O is wide (d × H d_head), with one block of columns for each head. The product is
    the sum of W_O[h] R[h] over heads.

    Cut W_O by columns in this convention and by rows in the row convention (`heads_concat_is_sum`).
    If H d_head = d, W_O is square and the wrong cut raises no error, but it gives each head a
    mixture of all heads' weights.
    """
    R = Family("R", (H,), d_head, n)[h]
    W_O = heads.column.W_O[h]
    together = matmul(ConcatHeads(W_O, (h, H)), StackHeads(R, (h, H)))
    return Statement(
        together,
        HeadSum(matmul(W_O, R), (h, H)),
        places={"attn_out": together},
        bind=({"R": Source("z")},),
    )


@theorem(
    title="Ablating a head removes its own term and nothing else",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Attention heads are independent and additive”",
    covers=("S1-13",),
)
def heads_are_independent() -> Statement:
    """Within one layer, removing a head removes its own term and changes no other. All heads of a
    layer read the same stream, so multiplying head k by 0 and the others by 1, which is the vector
    1 − e_k, leaves the layer's output less the term of head k.

    It is why a layer's output can be attributed to its heads.

    Later layers read a stream that lacks the term and may react to it. The effect of an ablation on
    the logits is therefore not the head's direct contribution.
    """
    head = Symbol("k", integer=True)
    gates = matadd(OneMatrix(H, 1), matmul(-1, OneHot(head, H)))
    gate = stated(MatrixElement, gates, h, S.Zero)
    return Statement(
        HeadSum(matmul(gate, _term(h)), (h, H)),
        matadd(HeadSum(_term(h), (h, H)), matmul(-1, _term(head))),
    )


def _term(head: Any) -> Any:
    return matmul(heads.A[head], X, heads.row.W_V[head], heads.row.W_O[head])


@theorem(
    title="Heads may be stored in any order",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Attention heads are independent and additive”",
    covers=("B8",),
)
def heads_in_any_order() -> Statement:
    """The numbering of heads has no meaning: permute the heads by P, together with their blocks of
    W_O, and the layer writes the same. Two models therefore have to be matched head by head before
    they are compared. Z[h] (n × d_head) is what head h has mixed from its values.

    Only P Pᵀ = I is used, so any orthogonal mixture of the heads' results, with the reverse mixture
    of their output weights, gives the same sum. But only after a permutation does each result still
    come from one attention pattern.
    """
    P = MatrixSymbol("P", H, H)
    mixed = matmul(ConcatHeads(heads.Z[h], (h, H)), kron(P, Identity(d_head)))
    blocks = matmul(kron(Transpose(P), Identity(d_head)), StackHeads(heads.row.W_O[h], (h, H)))
    return Statement(
        matmul(mixed, blocks),
        HeadSum(matmul(heads.Z[h], heads.row.W_O[h]), (h, H)),
        given=((matmul(P, Transpose(P)), Identity(H)),),
        on_models=False,
    )


@theorem(
    title="The attention block, position by position",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “The transformer layer”",
    covers=("S3-010",),
)
def attention_block_update() -> Definition:
    """An attention block keeps the vector of each position and adds what its heads gather: x_i +
    Σ_h Σ_{j ≤ i} a_ij^h x_j W_OV^h, where a_ij^h is the weight with which position i attends to j
    in head h, and W_OV = W_V W_O.

    This is the step from which all expansions of attention-only models are built. In a model with
    norms the heads read the normalised stream, and what they write is added to the stream itself.
    """
    after = matadd(X, HeadSum(matmul(heads.A[h], X, heads.row.W_V[h], heads.row.W_O[h]), (h, H)))
    return Definition(
        "the stream after attention",
        after,
        plain=_block,
        places=("resid_mid",),
        obeys=("residual_update", "frozen_attention_is_linear"),
    )


def _block(A: Any, X: Any, W_V: Any, W_O: Any, **sizes: int) -> np.ndarray:
    n_heads, n_pos = A.shape[:2]
    width, inner = W_V.shape[1:]
    after = np.array(X)
    for head in range(n_heads):
        values = [
            [sum(X[j, e] * W_V[head, e, k] for e in range(width)) for k in range(inner)]
            for j in range(n_pos)
        ]
        for i in range(n_pos):
            for k in range(inner):
                mixed = sum(A[head, i, j] * values[j][k] for j in range(n_pos))
                for e in range(width):
                    after[i, e] += mixed * W_O[head, k, e]
    return after
