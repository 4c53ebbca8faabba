"""Chapter 4: what becomes of the path sum when layers have MLPs.

The expansion into paths needs layers that are linear once the patterns are fixed. An MLP is not,
and there are two exact ways to go on: freeze its gates too, or take what it wrote as a source.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy import HadamardProduct, Identity, MatrixSymbol, Transpose
from sympy.matrices.expressions.diagonal import DiagMatrix

from algebra.language import Family, HeadSum, LayerProduct, kron, matadd, matmul, vec_rows
from numeric.binding import Source
from proofs.catalogue.mlp_and_norm.parts import W_in, W_out, activation
from proofs.catalogue.sources import FRAMEWORK
from proofs.catalogue.symbols import H, L, X, d, d_head, d_mlp, h, heads, l, layers, n
from proofs.claims import Fails, Statement
from proofs.theorem import theorem

GATED = "Fiat, Malach and Shalev-Shwartz 2019, “Decoupling Gating from Linearity”, arXiv:1906.05032"

k = sympy.Symbol("k", integer=True)
G = MatrixSymbol("G", n, d_mlp)
BOTH = ({"X": Source("resid_pre"), "Y": Source("attn_out")},)


def gated(stream: Any) -> Any:
    """Return (G ∘ (X W_in)) W_out: neurons that let through a fixed share of what they read."""
    return matmul(HadamardProduct(G, matmul(stream, W_in), evaluate=False), W_out)


def mlp(stream: Any) -> Any:
    """Return g(X W_in) W_out."""
    return matmul(activation(matmul(stream, W_in)), W_out)


@theorem(
    title="The path sum does not survive an MLP",
    chapter=4,
    convention="row",
    source=f"{FRAMEWORK}, “Model simplifications”, and its appendix on MLP layers",
    covers=("B10",),
)
def mlp_of_sum_is_not_sum() -> Fails:
    """What an MLP makes of a sum of components is not the sum of what it makes of each, so a path
    cannot be followed through it: the expansion of attention-only models ends at the first MLP.

    Summing an MLP's answers to single components is the most frequent way in which “the stack does
    not add up”.
    """
    Y = MatrixSymbol("Y", n, d)
    return Fails(mlp(matadd(X, Y)), matadd(mlp(X), mlp(Y)), bind=BOTH, on_models=True)


@theorem(
    title="With frozen gates an MLP is linear",
    chapter=4,
    convention="row",
    source=GATED,
    covers=("B10",),
)
def frozen_gates_make_mlp_linear() -> Statement:
    """Write each neuron as g(N) = G ∘ N, a gate times what it reads. For ReLU the gate is 0 or 1
    and for GELU a number between (its Φ). Keep the gates of the whole stream X + Y, and the MLP's
    output splits exactly into a part for X and a part for Y.

    The gates depend on the whole stream, as patterns do: a part's share is what it has in this
    forward pass, not what it would do alone.
    """
    Y = MatrixSymbol("Y", n, d)
    N = MatrixSymbol("N", n, d_mlp)
    whole = matmul(matadd(X, Y), W_in)
    return Statement(
        matmul(activation(N), W_out),
        matadd(gated(X), gated(Y)),
        given=[
            (N, whole),
            (activation(N), HadamardProduct(G, N, evaluate=False)),
        ],
        on_models=False,
    )


@theorem(
    title="A gated layer as one matrix on all positions",
    chapter=4,
    source=GATED,
    covers=("B10",),
)
def gated_mlp_is_matrix() -> Statement:
    """On the stream as one column the gated layer is (I ⊗ W_outᵀ) diag(vec G) (I ⊗ W_inᵀ). Unlike a
    head it is no Kronecker product, since each position has gates of its own; but it moves nothing
    between positions, diag and I ⊗ W being block diagonal.
    """
    eye = Identity(n)
    matrix = matmul(
        kron(eye, Transpose(W_out)), DiagMatrix(vec_rows(G)), kron(eye, Transpose(W_in))
    )
    return Statement(
        matmul(matrix, vec_rows(X)), vec_rows(gated(X)), bind=({"G": Source("mlp_post")},)
    )


@theorem(
    title="The path sum of a block with frozen patterns and gates",
    chapter=4,
    convention="column",
    source=f"{GATED}; {FRAMEWORK}, “The path expansion trick”",
    covers=("B10",),
)
def gated_block_paths() -> Statement:
    """With M the matrix of the gated MLP, a block is (I + M)(I + Σ_h A ⊗ W_OV), and expands as
    attention-only layers do: the direct path, each head, the MLP, and each head through the MLP.
    The count of paths goes from 1 + H to 2(1 + H) a block, and the sum is exact.
    """
    x, M = MatrixSymbol("x", n * d, 1), MatrixSymbol("M", n * d, n * d)
    eye = Identity(n * d)
    head = kron(heads.A[h], matmul(heads.column.W_O[h], heads.column.W_V[h]))
    return Statement(
        matmul(matadd(eye, M), matadd(eye, HeadSum(head, (h, H))), x),
        matadd(
            x,
            HeadSum(matmul(head, x), (h, H)),
            matmul(M, x),
            HeadSum(matmul(M, head, x), (h, H)),
        ),
        on_models=False,
    )


@theorem(
    title="Two layers with the outputs of MLPs as sources",
    chapter=4,
    convention="column",
    source=f"{FRAMEWORK}, “The path expansion trick”, and its appendix on MLP layers",
    covers=("B10",),
)
def mlp_outputs_as_sources() -> Statement:
    """Take what each MLP wrote as given, m_0 and m_1, beside the embedding: then the stream is
    again a sum over paths, and exact. From the embedding four kinds (direct, first layer, second
    layer, both), from m_0 what the second layer carries of it or passes by, and m_1 itself.

    The question of how m_0 came about is left open, which is the price of it.
    """
    A = Family("A", (2, H), n, n)
    W_O, W_V = Family("W_O", (2, H), d, d_head), Family("W_V", (2, H), d_head, d)
    x, m_0, m_1 = (MatrixSymbol(name, n * d, 1) for name in ("x_0", "m_0", "m_1"))

    def layer(number: int) -> Any:
        return HeadSum(
            kron(A[number, h], matmul(W_O[number, h], W_V[number, h])),
            (h, H),
        )

    first = matadd(x, matmul(layer(0), x), m_0)
    virtual = kron(
        matmul(A[1, h], A[0, k]), matmul(matmul(W_O[1, h], W_V[1, h]), matmul(W_O[0, k], W_V[0, k]))
    )
    return Statement(
        matadd(first, matmul(layer(1), first), m_1),
        matadd(
            *[x, matmul(layer(0), x), matmul(layer(1), x)],
            HeadSum(matmul(virtual, x), (h, H), (k, H)),
            *[m_0, matmul(layer(1), m_0), m_1],
        ),
        on_models=False,
    )


@theorem(
    title="A source is carried through all later layers as the embedding is",
    chapter=4,
    convention="column",
    source=f"{FRAMEWORK}, “The path expansion trick”",
    covers=("B10",),
)
def source_is_carried_like_embedding() -> Statement:
    """For any number of layers after it, whatever was added to the stream, by an MLP, a bias, a
    steering vector, goes on along the same paths as what was there already. So one list of paths
    serves for every source, and the contributions add up.
    """
    head = kron(layers.A[l, h], matmul(layers.column.W_O[l, h], layers.column.W_V[l, h]))
    later = LayerProduct(matadd(Identity(n * d), HeadSum(head, (h, H))), (l, L))
    x, m = MatrixSymbol("x", n * d, 1), MatrixSymbol("m_0", n * d, 1)
    return Statement(
        matmul(later, matadd(x, m)),
        matadd(matmul(later, x), matmul(later, m)),
        bind=({"x": Source("embed"), "m_0": Source("attn_out", layer=0)},),
    )
