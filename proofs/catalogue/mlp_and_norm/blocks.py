"""Chapter 4: whole blocks: frozen scales, GPT-2's path sum, parallel blocks, gated layers."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import (
    BlockMatrix,
    Identity,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul, vec_rows
from otimes.algebra.language.nonlinear import RSQRT, Activation, RMSNorm, mean_square
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.patterns import entrywise
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.mlp_and_norm.parts import (
    W_in,
    W_out,
    activation,
    centring,
    eps,
)
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.catalogue.symbols import H, L, X, d, d_mlp, h, l, layers, n
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

PEARCE = "Pearce, Dooms, Rigg, Oramas and Sharkey 2024, “Bilinear MLPs Enable Weight-based "
PEARCE += "Mechanistic Interpretability”, §3"
SHAZEER = "Shazeer 2020, “GLU Variants Improve Transformer”"
PARALLEL = "Wang and Komatsuzaki 2021, GPT-J-6B; Black et al. 2022, “GPT-NeoX-20B”, §2.1"

k = sympy.Symbol("k", integer=True)
Y = MatrixSymbol("Y", n, d)


# -- a frozen norm ---------------------------------------------------------------------------------


@theorem(
    title="The error of a frozen norm is the ratio of two scales",
    chapter=4,
    convention="row",
    source=f"{FRAMEWORK}, “Handling layer normalization”",
    covers=("B25",),
)
def frozen_norm_error() -> Statement:
    """Holding the scale of a norm constant while something is added to the stream gives the right
    direction and the wrong length. X is the stream at which the scale σ was computed and Y what is
    added, by an ablation or a steering vector. The error is (σ/σ′ − 1) times the frozen norm's
    result, row by row, where σ′ is the true scale of X + Y.

    So a frozen norm is exact where the mean square of the row did not change. The error is not a
    share of the added part: it rescales every contribution to the logits at that position.

    For a LayerNorm, X and Y are the centred parts (`layer_norm_is_rms_norm_of_centred`).
    """
    frozen = matmul(DiagMatrix(Activation(RSQRT, mean_square(X, eps))), matadd(X, Y))
    square = mean_square(X, eps)
    before = entrywise(square, Activation(RSQRT, square))
    ratio = entrywise(before, Activation(RSQRT, mean_square(matadd(X, Y), eps)))
    return Statement(
        less(RMSNorm(matadd(X, Y), eps), frozen),
        matmul(DiagMatrix(less(ratio, OneMatrix(n, 1))), frozen),
        bind=({"X": Source("resid_pre"), "Y": Source("attn_out")},),
        places={"resid_mid": matadd(X, Y)},
        bare=False,
    )


# -- GPT-2 -----------------------------------------------------------------------------------------

BIAS_1, BIAS_2 = Family("b_1", (L,), n * d, 1), Family("b_2", (L,), n * d, 1)
NORM, MLP = Family("N", (L,), n * d, n * d), Family("M", (L,), n * d, n * d)
STREAM = Identity(n * d)
HEAD = matmul(
    kron(layers.A[l, h], matmul(layers.column.W_O[l, h], layers.column.W_V[l, h])), NORM[l]
)
HEADS = HeadSum(HEAD, (h, H))


def with_one(linear: Any, source: Any) -> Any:
    """Return x ↦ linear x + source as one matrix, on the stream with a 1 below it."""
    return BlockMatrix([[linear, source], [ZeroMatrix(1, n * d), Identity(1)]])


@theorem(
    title="GPT-2's path sum at every depth: patterns, gates and norm scales frozen, biases as "
    "sources",
    chapter=4,
    convention="column",
    source=f"{FRAMEWORK}, “The path expansion trick”, and its appendix on MLP layers",
    covers=("B23", "B10"),
)
def gpt2_path_sum() -> Statement:
    """All of GPT-2 multiplies out into a sum over paths once its attention patterns, MLP gates and
    norm scales are held at their values in one forward pass. Every part is then a matrix, or a bias
    vector that is added. In each of the L blocks a path goes straight on, through a head, through
    the MLP, or through a head and then the MLP; biases start paths of their own.

    In the formula N[l] is the frozen norm before the heads, M[l] the MLP with its frozen norm and
    gates, and b_1[l], b_2[l] the biases of the two halves of a block (`frozen_norm_is_a_matrix`,
    `gated_mlp_is_matrix`). A row with a 1 below the stream makes the biases linear. The gate of a
    neuron is g(x)/x, and the input biases of the MLP, through gates and W_out, belong to b_2.

    Nothing is approximated for that forward pass. The sum does not say what another pass would
    give, in which everything frozen would move.
    """
    attention = with_one(matadd(STREAM, HEADS), BIAS_1[l])
    feed_forward = with_one(matadd(STREAM, MLP[l]), BIAS_2[l])
    paths = matadd(HEADS, MLP[l], HeadSum(matmul(MLP[l], HEAD), (h, H)))
    sources = matadd(BIAS_1[l], matmul(MLP[l], BIAS_1[l]), BIAS_2[l])
    once = BlockMatrix([[paths, sources], [ZeroMatrix(1, n * d), ZeroMatrix(1, 1)]])
    return Statement(
        LayerProduct(matmul(feed_forward, attention), (l, L)),
        HeadSum(OrderSum(once, (l, L), k), (k, L + 1)),
        on_models=False,
    )


@theorem(
    title="A LayerNorm with its scales held is a matrix on the stream",
    chapter=4,
    source=f"{FRAMEWORK}, “Handling layer normalization”",
    covers=("B23",),
)
def frozen_norm_is_a_matrix() -> Statement:
    """With its scales held constant, a LayerNorm is a matrix: it subtracts the mean of each row and
    multiplies row i by a number t_i = 1/σ_i. On the stream as one column this is diag(t) ⊗ P with P
    = I − 11ᵀ/d.

    So it has the form of a head whose pattern is diagonal, and norms can be part of a path
    expansion (`gpt2_path_sum`).
    """
    t = MatrixSymbol("t", n, 1)
    return Statement(
        matmul(kron(DiagMatrix(t), centring), vec_rows(X)),
        vec_rows(matmul(DiagMatrix(t), X, centring)),
        bind=({"t": Source("resid_pre", cols=1)},),
    )


# -- parallel blocks -------------------------------------------------------------------------------


def mlp(stream: Any) -> Any:
    """Return g(X W_in) W_out."""
    return matmul(activation(matmul(stream, W_in)), W_out)


@theorem(
    title="A parallel block has no path from its heads through its own MLP",
    chapter=4,
    source=PARALLEL,
    covers=("B40",),
)
def parallel_block_lacks_a_path() -> Statement:
    """In some models (GPT-J, GPT-NeoX, Pythia, Falcon) the attention layer and the MLP of a block
    read the same stream and both add to it: with patterns and gates frozen the block is I + A + M.
    In a sequential block the MLP reads the attention's result, (I + M)(I + A). The difference is
    MA, the paths from each head through the MLP of the same block.

    So a parallel block has 2 + H paths and a sequential one 2(1 + H), and there is no stream
    between attention and MLP (x^mid).
    """
    size_ = n * d
    M = MatrixSymbol("M", size_, size_)
    heads = HeadSum(
        kron(layers.A[0, h], matmul(layers.column.W_O[0, h], layers.column.W_V[0, h])), (h, H)
    )
    eye = Identity(size_)
    return Statement(
        less(matmul(matadd(eye, M), matadd(eye, heads)), matadd(eye, heads, M)),
        HeadSum(
            matmul(
                M, kron(layers.A[0, h], matmul(layers.column.W_O[0, h], layers.column.W_V[0, h]))
            ),
            (h, H),
        ),
        on_models=False,
    )


@theorem(
    title="A parallel block and a sequential block are different models",
    chapter=4,
    convention="row",
    source=PARALLEL,
    covers=("B40",),
)
def parallel_block_is_not_sequential() -> NonIdentity:
    """A parallel block, x + attn(x) + MLP(x), and a sequential block, in which the MLP reads x +
    attn(x), compute different functions. In the formula Y is the output of attention.

    A parallel model ported to sequential code has the same weights and shapes and runs without
    error, but gives other logits.
    """
    return NonIdentity(
        matadd(X, Y, mlp(X)),
        matadd(X, Y, mlp(matadd(X, Y))),
        bind=({"X": Source("resid_pre"), "Y": Source("attn_out")},),
        on_models=True,
    )


# -- gated layers ----------------------------------------------------------------------------------

W_gate = MatrixSymbol("W_gate", d, d_mlp)
V_in = MatrixSymbol("W_in", d, d_mlp)
SWIGLU: dict[str, Any] = {"gated": True, "activation": "silu", "biases": (), "norm_order": "pre"}
SWIGLU |= {"n_experts": 0, "gate_limit": 0.0}
out = sympy.Symbol("c", integer=True)


@theorem(
    title="A bilinear MLP is a third-order tensor: each output is a quadratic form",
    chapter=4,
    convention="row",
    source=PEARCE,
    covers=("B39",),
)
def bilinear_mlp_is_a_tensor() -> Statement:
    """In a bilinear MLP each output is a quadratic form of the input. The layer is ((x W_gate) ∘ (x
    W_in)) W_out, a gated MLP without activation function; output c at position k is x_k B_c x_kᵀ
    with B_c = W_gate diag(W_out e_c) W_inᵀ. All B_c together are a tensor with three indices, which
    is a sum over the neurons.

    So such a layer can be analysed from its weights alone, as attention circuits can; no inputs are
    needed.
    """
    unit, here = OneHot(out, d), OneHot(k, n)
    x = matmul(Transpose(here), X)
    W = MatrixSymbol("W", d, d_mlp)
    form = matmul(W, DiagMatrix(matmul(W_out, unit)), Transpose(V_in))
    layer = matmul(entrywise(matmul(X, W), matmul(X, V_in)), W_out)
    return Statement(
        matmul(Transpose(here), layer, unit),
        matmul(x, form, Transpose(x)),
        bind=(
            {"X": Source("ln2"), "W": Source("W_gate")},
            {"X": Source("ln2"), "W": Source("W_in")},
        ),
    )


@theorem(
    title="Only the symmetric part of a bilinear MLP's tensor matters",
    chapter=4,
    convention="row",
    source=PEARCE,
    covers=("B39",),
)
def bilinear_form_is_symmetric() -> Statement:
    """A quadratic form x B xᵀ depends only on the symmetric part of its matrix, ½(B + Bᵀ). For the
    matrices of a bilinear MLP (`bilinear_mlp_is_a_tensor`) it means that gate and input weights can
    be exchanged.

    So make these matrices symmetric before comparing or diagonalising them. Their eigenvectors are
    then orthogonal directions of the stream, each with the sign of its effect.
    """
    x, B = MatrixSymbol("x", 1, d), MatrixSymbol("B", d, d)
    even = matmul(Rational(1, 2), matadd(B, Transpose(B)))
    return Statement(matmul(x, B, Transpose(x)), matmul(x, even, Transpose(x)), on_models=False)


@theorem(
    title="SwiGLU with its sigmoids frozen is bilinear",
    chapter=4,
    convention="row",
    source=f"{SHAZEER}; {PEARCE}",
    covers=("B39",),
)
def swiglu_is_bilinear_with_frozen_gates() -> Statement:
    """A SwiGLU layer is a bilinear layer in which each neuron is multiplied by a sigmoid: silu(z) =
    z σ(z), so the output is Σ_u σ(x·w_u)(x·w_u)(x·v_u) o_u. Here w_u and v_u are columns u of
    W_gate and W_in, and o_u is row u of W_out.

    With the sigmoids held at their values the layer is quadratic in its input, and can be analysed
    as a bilinear MLP. For small x·w_u the sigmoid is near 1/2.
    """
    gate = matmul(X, W_gate)
    frozen = Activation("sigmoid", gate)
    u = sympy.Symbol("u", integer=True)
    unit = OneHot(u, d_mlp)
    each = matmul(
        DiagMatrix(matmul(frozen, unit)),
        entrywise(matmul(gate, unit), matmul(X, V_in, unit)),
        Transpose(unit),
        W_out,
    )
    neurons = entrywise(Activation("silu", gate), matmul(X, V_in))
    return Statement(
        matmul(neurons, W_out),
        HeadSum(each, (u, d_mlp)),
        places={"mlp_pre": gate, "mlp_post": neurons, "mlp_out": matmul(neurons, W_out)},
        bind=({"X": Source("ln2")},),
        bare=False,
        config=SWIGLU,
    )
