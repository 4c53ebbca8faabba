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
    """Attn(X) = Σ_h Attn^h(X) + b_O: the results of the heads side by side, times the tall W_O, are
    one term for each head, and the output bias is added once, at every position. It belongs to the
    layer and to no head: adding it to each head's share counts it H times.

    Z_h is what head h has mixed, A_h X W_V, with its value bias where the model has one.
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
    """With Z_h = A_h X W_V^h written out, [Z_1 … Z_H] W_O = Σ_h A_h X W_V^h W_O^h: the layer is a
    sum of terms pattern · stream · W_OV. H and d_head are any numbers: that H d_head = d, so that
    the tall W_O is square, is a habit of implementations and is used nowhere. A d × d matrix in its
    place does not even fit unless H d_head = d, and then must still be cut by rows, head by head.
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
    """With positions as columns the results of the heads stand one below the other, and W_O is
    wide, d × H d_head, cut into one block of columns for each head: [W_O^1 … W_O^H] [R_1; …; R_H] =
    Σ_h W_O^h R_h.

    It is square exactly when H d_head = d. To cut it by columns in a row text, or by rows in a
    column text, gives each head a mixture of all heads' output weights.
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
    """All heads of a layer read the same stream, and no head's term speaks of another head. So a
    layer in which head k is multiplied by 0 and every other by 1 writes what it wrote before, less
    the term of head k.

    That is true of one layer. Later layers read a stream that lacks the term, and may make up for
    it: the effect of an ablation on the logits is not the head's direct contribution.
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
    """Permute the heads by P, with their blocks of W_O, and the layer writes the same: the numbers
    of heads are names. All that is used of P is P Pᵀ = I, so any orthogonal mixing of heads with
    the reverse mixing of their output weights leaves the sum as it is; but only a permutation
    leaves each of the mixed results with a pattern of its own.
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
    """x_i^mid = x_i + Σ_h Σ_{j ≤ i} a_ij^h x_j W_OV^h: each position keeps what it had, and every
    head adds what it gathered from the positions up to it. In a model with norms, the heads read
    the normed stream, and what is added to is the stream itself.
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
