"""Chapter 4: what becomes of the path sum when layers have MLPs.

The expansion into paths needs layers that are linear once the patterns are fixed. An MLP is not,
and there are two exact ways to go on: freeze its gates too, or take what it wrote as a source.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy import BlockMatrix, HadamardProduct, Identity, MatrixSymbol, Transpose, ZeroMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul, vec_rows
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.mlp_and_norm.parts import W_in, W_out, activation
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.catalogue.symbols import H, L, X, d, d_head, d_mlp, h, l, layers, n
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

GATED = "Fiat, Malach and Shalev-Shwartz 2019, “Decoupling Gating from Linearity”, arXiv:1906.05032"

k = sympy.Symbol("k", integer=True)
G = MatrixSymbol("G", n, d_mlp)
HEADS = HeadSum(
    kron(layers.A[l, h], matmul(layers.column.W_O[l, h], layers.column.W_V[l, h])), (h, H)
)
LAYER = matadd(Identity(n * d), HEADS)
SOURCE = Family("m", (L,), n * d, 1)[l]
BOTH = ({"X": Source("resid_pre"), "Y": Source("attn_out")},)


def gated(stream: Any) -> Any:
    """Return (G ∘ (X W_in)) W_out: neurons that let through a fixed share of what they read."""
    return matmul(HadamardProduct(G, matmul(stream, W_in), evaluate=False), W_out)


def mlp(stream: Any) -> Any:
    """Return g(X W_in) W_out."""
    return matmul(activation(matmul(stream, W_in)), W_out)


@theorem(
    title="The path expansion does not pass through an MLP",
    chapter=4,
    convention="row",
    source=f"{FRAMEWORK}, “Model simplifications”, and its appendix on MLP layers",
    covers=("B10",),
)
def mlp_of_sum_is_not_sum() -> NonIdentity:
    """What an MLP makes of a sum of components is not the sum of what it makes of each, so a path
    cannot be followed through it: the expansion of attention-only models ends at the first MLP.

    Summing an MLP's answers to single components is the most frequent way in which “the stack does
    not add up”.
    """
    Y = MatrixSymbol("Y", n, d)
    return NonIdentity(mlp(matadd(X, Y)), matadd(mlp(X), mlp(Y)), bind=BOTH, on_models=True)


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
    title="The path sum with frozen patterns and gates, at every depth",
    chapter=4,
    convention="column",
    source=f"{GATED}; {FRAMEWORK}, “The path expansion trick”",
    covers=("B10",),
)
def gated_block_paths() -> Statement:
    """With M_l the matrix of the gated MLP of layer l, a block is (I + M)(I + Σ_h A ⊗ W_OV), and
    expands as attention-only layers do: the direct path, each head, the MLP, and each head through
    the MLP. The count of paths goes from 1 + H to 2(1 + H) a block, and the sum is exact, for any
    number of blocks.
    """
    M, eye = Family("M", (L,), n * d, n * d)[l], Identity(n * d)
    head = kron(layers.A[l, h], matmul(layers.column.W_O[l, h], layers.column.W_V[l, h]))
    all_heads = HeadSum(head, (h, H))
    paths = matadd(eye, all_heads, M, HeadSum(matmul(M, head), (h, H)))
    return Statement(
        LayerProduct(matmul(matadd(eye, M), matadd(eye, all_heads)), (l, L)),
        LayerProduct(paths, (l, L)),
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

    The question of how m_0 came about is left open, which is the price of it. For any number of
    layers see `sources_at_every_depth` and `sources_add_up`.
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


def _with_sources(*sources: Any) -> LayerProduct:
    """Return L layers on the stream with a 1 below it for each kind of source that they add."""
    width, count = n * d, len(sources)
    places = [ZeroMatrix(1, 1)] * count
    stream = BlockMatrix([[Identity(width)], *[[ZeroMatrix(1, width)]] * count])
    adds = [matmul(stream, HEADS, Transpose(stream))]
    for k, source in enumerate(sources):
        ones = [*places[:k], Identity(1), *places[k + 1 :]]
        switch = BlockMatrix([[ZeroMatrix(width, 1)], *[[one] for one in ones]])
        adds.append(matmul(stream, source, Transpose(switch)))
    return LayerProduct(matadd(Identity(width + count), *adds), (l, L))


@theorem(
    title="With MLP outputs as sources, the embedding's paths are those of a model without MLPs",
    chapter=4,
    convention="column",
    source=f"{FRAMEWORK}, “The path expansion trick”, and its appendix on MLP layers",
    covers=("B10",),
)
def sources_at_every_depth() -> Statement:
    """Each layer applies its heads and then adds a vector m_l, what its MLP wrote: on the stream
    with a 1 below it, that is I + U (Σ_h A ⊗ W_OV) Uᵀ + U m_l wᵀ, where U picks the stream and w
    the 1. Begin with 0 instead of that 1, and the sources are not heard: what the L layers make of
    the embedding is their product alone, with all (1 + H)^L paths. As all is linear in (x, 1), the
    stream is that, plus what begins with the 1: the sources, each carried through the layers after.
    """
    stream_only = BlockMatrix([[Identity(n * d)], [ZeroMatrix(1, n * d)]])
    return Statement(
        matmul(_with_sources(SOURCE), stream_only),
        matmul(stream_only, LayerProduct(LAYER, (l, L))),
        on_models=False,
    )


@theorem(
    title="The contributions of several sources add up at every depth",
    chapter=4,
    convention="column",
    source=f"{FRAMEWORK}, “The path expansion trick”",
    covers=("B10",),
)
def sources_add_up() -> Statement:
    """Let each layer add two vectors, of an MLP and of a bias say, each switched by a number of its
    own below the stream. Both switched on is the same as one source that is their sum. So the
    sources can be told apart at the end, layer by layer and kind by kind, and nothing is left over:
    the path sum is exact with MLPs in it, as long as their outputs are taken as they are.
    """
    other = Family("b", (L,), n * d, 1)[l]
    eye, none, one = Identity(n * d), ZeroMatrix(1, n * d), Identity(1)
    both = BlockMatrix([[eye, ZeroMatrix(n * d, 1)], [none, one], [none, one]])
    return Statement(
        matmul(_with_sources(SOURCE, other), both),
        matmul(both, _with_sources(matadd(SOURCE, other))),
        on_models=False,
    )


@theorem(
    title="What any layer writes is carried through later layers as the embedding is",
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
    later = LayerProduct(LAYER, (l, L))
    x, m = MatrixSymbol("x", n * d, 1), MatrixSymbol("m_0", n * d, 1)
    return Statement(
        matmul(later, matadd(x, m)),
        matadd(matmul(later, x), matmul(later, m)),
        bind=({"x": Source("embed"), "m_0": Source("attn_out", layer=0)},),
    )
