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
    """Freeze the scale σ of a norm at the stream X, and add Y to the stream, as an ablation or a
    steering vector does. The frozen norm gives (X + Y)/σ, the real one (X + Y)/σ′. So the error is
    (σ/σ′ − 1) times what the frozen norm gives, row by row: right direction, wrong length. It is
    zero exactly where the mean square of the row did not change.

    For a LayerNorm X and Y are the centred parts (`layer_norm_is_rms_norm_of_centred`). The error
    is no share of the added part but a rescaling of the whole: a small relative change of σ changes
    every contribution to the logits at that position.
    """
    frozen = matmul(DiagMatrix(Activation(RSQRT, mean_square(X, eps))), matadd(X, Y))
    square = mean_square(X, eps)
    before = entrywise(square, Activation(RSQRT, square))
    ratio = entrywise(before, Activation(RSQRT, mean_square(matadd(X, Y), eps)))
    return Statement(
        less(RMSNorm(matadd(X, Y), eps), frozen),
        matmul(DiagMatrix(less(ratio, OneMatrix(n, 1))), frozen),
        bind=({"X": Source("resid_pre"), "Y": Source("attn_out")},),
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
    """A block of GPT-2 adds what its heads make of the normalised stream and a bias, then what its
    MLP makes of the normalised result and a bias. Hold the patterns, the gate of each neuron and
    the scale of each norm at their values in one forward pass: every part is then a matrix, biases
    are vectors that are added, and L blocks multiply out. The stream gets the sum over all choices
    of 0, 1, …, L blocks, in each block one of: a head, the MLP, the MLP after a head; with biases
    as sources that start in a block and go on from there.

    N is the frozen norm before the heads, and M the MLP with its frozen norm and gates
    (`frozen_norm_is_a_matrix`, `gated_mlp_is_matrix`). Gates multiply pre-activations by g(x)/x,
    and the biases of the MLP's inputs, times gates and W_out, go into its source. Nothing is
    approximated in that forward pass. What the sum does not say is what would happen in another
    one, where everything frozen would move.
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
    """With the scale t_i = 1/σ_i of each position held, a LayerNorm takes the mean off each row and
    multiplies it by a number. On the stream as one column that is diag(t) ⊗ P, with the centring
    P = I − 11ᵀ/d: a pattern that is diagonal, times a matrix that all positions share.
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
    """In GPT-J, GPT-NeoX, Pythia and Falcon the MLP of a block reads the same stream as its heads:
    the block is I + A + M, where a sequential one is (I + M)(I + A) = I + A + M + M A. With
    patterns and gates frozen the difference is the one path M A, each head through the MLP. So with
    H heads a parallel block has 2 + H paths and a sequential one 2 (1 + H), and x^mid, the stream
    between the two, does not exist.
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
    """With a live activation: x + attn + MLP(x) against x + attn + MLP(x + attn). A port of a
    parallel model into sequential code runs, has the same weights and shapes, and other logits.
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
out = sympy.Symbol("c", integer=True)


@theorem(
    title="A bilinear MLP is a third-order tensor: each output is a quadratic form",
    chapter=4,
    convention="row",
    source=PEARCE,
    covers=("B39",),
)
def bilinear_mlp_is_a_tensor() -> Statement:
    """A gated layer without activation, ((x W) ∘ (x V)) W_out, has only products of two inputs. Its
    output c at position i is x_i B_c x_iᵀ, with B_c = W diag(W_out e_c) Vᵀ; all B_c together are
    one tensor with three legs, Σ_u w_u ⊗ v_u ⊗ o_u over the neurons u. It is known from the weights
    alone, no input is needed: such a layer can be analysed as a circuit is.
    """
    unit, here = OneHot(out, d), OneHot(k, n)
    x = matmul(Transpose(here), X)
    form = matmul(W_gate, DiagMatrix(matmul(W_out, unit)), Transpose(V_in))
    layer = matmul(entrywise(matmul(X, W_gate), matmul(X, V_in)), W_out)
    return Statement(
        matmul(Transpose(here), layer, unit),
        matmul(x, form, Transpose(x)),
        bind=({"X": Source("ln2"), "W_gate": Source("W_in")}, {"W_gate": Source("W_gate")}),
    )


@theorem(
    title="Only the symmetric part of a bilinear MLP's tensor matters",
    chapter=4,
    convention="row",
    source=PEARCE,
    covers=("B39",),
)
def bilinear_form_is_symmetric() -> Statement:
    """X B xᵀ = x ½(B + Bᵀ) xᵀ: gate and input may change places, and the layer is the same. So the
    forms are made symmetric before they are compared or diagonalised, and then the eigenvectors of
    an output are orthogonal directions of the stream, each with the sign of its effect.
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
    """SwiGLU is (silu(X W_gate) ∘ X W_in) W_out, and silu(z) = z σ(z). So it is a bilinear layer,
    times the numbers σ(z), one for each neuron and position: Σ_u σ_u (x·w_u)(x·v_u) o_u. With σ
    held at its values the layer is quadratic in the stream. At small z, where σ ≈ ½, it is close to
    half a bilinear layer.
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
    return Statement(
        matmul(entrywise(Activation("silu", gate), matmul(X, V_in)), W_out),
        HeadSum(each, (u, d_mlp)),
        bind=({"X": Source("ln2")},),
        on_models=False,
    )
