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
    """The output of an MLP for a sum of components is not the sum of its outputs for each of them.
    So a path through the model cannot be followed through an MLP with its activations computed
    anew: the exact expansion of attention-only models ends at the first MLP. X and Y are two
    components of the stream (n × d).

    Adding up an MLP's answers to single components is a frequent reason why a decomposition does
    not add up to the logits. Two ways out are exact: frozen gates (`frozen_gates_make_mlp_linear`)
    and MLP outputs taken as sources (`mlp_outputs_as_sources`).
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
    """If each neuron's ratio of output to input is held constant, an MLP is linear and its output
    splits over the components that it reads. Write g(N) = G ∘ N, with one gate in G for each neuron
    and position: 0 or 1 for ReLU, Φ(x) for GELU. With the gates of the whole stream X + Y, the
    output is exactly a part for X plus a part for Y.

    The gates depend on the whole stream, as attention patterns do. A component's part is its share
    in this forward pass, not what it would produce alone.
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
    """With its gates held constant, an MLP is one matrix on the stream written as one column: (I ⊗
    W_outᵀ) diag(vec G) (I ⊗ W_inᵀ). Every neuron at every position has its gate in G (n × d_mlp).

    Unlike a head it is no Kronecker product, since each position has its own gates. But it is block
    diagonal over positions, so it moves nothing between them.
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
    """With attention patterns and MLP gates held constant, a whole transformer with MLPs multiplies
    out into paths, at every depth. A block is (I + M)(I + Σ_h A ⊗ W_OV), with M[l] the matrix of
    the gated MLP (`gated_mlp_is_matrix`). In each block a path goes straight on, through one head,
    through the MLP, or through a head and then the MLP.

    So a block has 2(1 + H) choices instead of 1 + H. The sum is exact, for any number L of blocks.
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
    """A model with MLPs still has an exact path expansion if each MLP's output is taken as given,
    like a second embedding. With m_0 and m_1 the outputs of the two MLPs (columns of n·d entries),
    the stream is the sum of: paths from the embedding x_0 (direct, through the first layer, the
    second, or both), paths from m_0 (straight on or through the second layer), and m_1.

    What is left open is how m_0 came about. For any number of layers see `sources_at_every_depth`
    and `sources_add_up`.
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
    """If MLP outputs are taken as given vectors m[l] that each layer adds, then the embedding's
    share of the final stream is what the attention layers alone make of it, with all (1 + H)^L
    paths. To add a vector by a matrix, the stream gets an extra entry 1 below it, which switches
    the sources on; U = [I; 0] picks the stream.

    The equation says: with 0 in place of that 1, only the product of the attention layers is left.
    Everything is linear, so the final stream is this plus the sources, each carried through the
    layers after it.
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
    """The contributions of several sources to the final stream add up, at every depth. Here each
    layer adds two vectors, m[l] and b[l], for example an MLP's output and a bias. Each kind is
    switched by an extra entry below the stream. Switching both on is the same as one source that is
    their sum.

    So one can say how much of the final stream came from MLPs and how much from biases, layer by
    layer, with nothing left over.
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
    """Whatever is added to the residual stream, by an MLP, a bias or a steering vector, is carried
    through later attention layers along the same paths as the stream that was there before. With
    patterns held constant, layers are linear, so their effect on x + m_0 is the sum of the effects.

    So one list of paths serves for all sources. With live patterns an added vector also changes
    where heads attend.
    """
    later = LayerProduct(LAYER, (l, L))
    x, m = MatrixSymbol("x", n * d, 1), MatrixSymbol("m_0", n * d, 1)
    return Statement(
        matmul(later, matadd(x, m)),
        matadd(matmul(later, x), matmul(later, m)),
        bind=({"x": Source("embed"), "m_0": Source("attn_out", layer=0)},),
    )
