"""Chapter 8: attributions that are exact at every depth and for every degree."""

from __future__ import annotations

from sympy import (
    BlockMatrix,
    DiagMatrix,
    Identity,
    MatrixSymbol,
    OneMatrix,
    ZeroMatrix,
    symbols,
)

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul
from otimes.algebra.language.positions import Positions
from otimes.proofs.catalogue.attribution.gradients import cube_slope, cubic, delta, half, x
from otimes.proofs.catalogue.attribution.integrals import CENTRED, SMILKOV, SUNDARARAJAN, mean
from otimes.proofs.catalogue.attribution.integrals import noise as drawn
from otimes.proofs.catalogue.attribution.rollout import ABNAR, mean_pattern
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import H, L, d, h, l, layers, n, size
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import lemma, theorem

ANCONA = "Ancona et al. 2018, “Towards better understanding of gradient-based attribution methods”"
g = symbols("g", integer=True)


@theorem(
    title="Where every OV circuit is the identity, rollout is the whole model at every depth",
    chapter=8,
    convention="column",
    source=f"{ABNAR}, §3",
    covers=("S3-035", "B16"),
)
def rollout_is_exact_at_every_depth() -> Statement:
    """Attention rollout, the product of ½(Ā + I) over the layers with the mean Ā of a layer's
    patterns, describes one kind of model exactly, at every depth. In it each layer takes half of
    its stream and half of the mean of its heads, and every OV circuit W_O W_V is the identity: L
    such layers are the rollout, acting on each coordinate of the stream alike.

    With other circuits the rollout leaves out what they do.
    """
    circuit = matmul(layers.column.W_O[l, h], layers.column.W_V[l, h])
    moved = matmul(1 / H, HeadSum(kron(layers.A[l, h], circuit), (h, H)))
    layer = matmul(half, matadd(kron(Identity(n), Identity(d)), moved))
    mixed = matmul(half, matadd(mean_pattern, Identity(n)))
    return Statement(
        LayerProduct(layer, (l, L)),
        kron(LayerProduct(mixed, (l, L)), Identity(d)),
        given=((circuit, Identity(d)),),
        on_models=False,
    )


# -- gradient times input --------------------------------------------------------------------------

gate, weight = Family("g", (L,), d, 1), Family("W", (L,), d, d)
bias = Family("b", (L,), d, 1)
gated = matmul(DiagMatrix(gate[l]), weight[l])
NET = LayerProduct(
    BlockMatrix([[gated, matmul(DiagMatrix(gate[l]), bias[l])], [ZeroMatrix(1, d), Identity(1)]]),
    (l, L),
)
JACOBIAN = LayerProduct(gated, (l, L))
INPUTS = BlockMatrix([[Identity(d)], [ZeroMatrix(1, d)]])


@theorem(
    title="The Jacobian of a deep ReLU network with its gates held is the product of its layers",
    chapter=8,
    convention="column",
    source=f"{PRIMER}, “Gradient-based input attribution”; {ANCONA}, §3",
    covers=("S3-026",),
)
def jacobian_of_gated_network() -> Statement:
    """A deep ReLU network changes a small input by a product of matrices in which no bias occurs. A
    layer of ReLUs whose gates g, 0 or 1, are held is the affine map g ∘ (W x + b). Written on x
    with a 1 below it, L such layers are one product of block matrices, and what the network does to
    a change of x is the product of the diag(g) W, at any depth.
    """
    return Statement(matmul(NET, INPUTS), matmul(INPUTS, JACOBIAN), on_models=False)


@theorem(
    title="Gradient × input leaves out what a deep ReLU network makes of its biases alone",
    chapter=8,
    convention="column",
    source=f"{PRIMER}, “Gradient-based input attribution”; {ANCONA}, §3",
    covers=("S3-026",),
)
def gradient_times_input_at_every_depth() -> Statement:
    """The scores of gradient × input sum to the output of a deep ReLU network less what it makes of
    its biases alone: f(x) = J x + f(0), with the gates of all ReLUs held at those of x and J the
    gradient. The scores sum to J x, and f(0) is the value at zero with the same gates. Without
    biases it is zero, and the scores are complete.

    Gates of x, not of zero: with its own gates the network at zero is another affine map.
    """
    at = MatrixSymbol("x", d, 1)
    output = BlockMatrix([[Identity(d), ZeroMatrix(d, 1)]])
    alone = BlockMatrix([[ZeroMatrix(d, 1)], [Identity(1)]])
    return Statement(
        matmul(output, NET, BlockMatrix([[at], [Identity(1)]])),
        matadd(matmul(JACOBIAN, at), matmul(output, NET, alone)),
        given=(lemma("jacobian_of_gated_network"),),
        on_models=False,
    )


# -- integrated gradients --------------------------------------------------------------------------

D, N = size("D"), size("N")


@theorem(
    title="With a rule that integrates degree D − 1, integrated gradients of degree D are complete",
    chapter=8,
    source=f"{SUNDARARAJAN}, proposition 1; Davis and Rabinowitz 1984, §2.7",
    covers=("S3-028",),
)
def integrated_gradients_are_complete_at_every_degree() -> Statement:
    """Integrated gradients computed by a sum over few points can be complete without any error: the
    scores sum to f(1) − f(0) if f is a polynomial of degree D along the line from the baseline (at
    0) to the input (at 1), and the rule integrates polynomials of degree D − 1 exactly.

    In the formula f(t) = f(0) + Σ_j c_j t^j for j = 1 … D. Its slope at a node t_i is Σ_j j c_j
    t_i^(j−1); the powers t_i^(j−1) are the matrix T. A rule with weights w_i is exact for degrees
    below D if Σ_i w_i j t_i^(j−1) = 1 for every j. Then the weighted sum of slopes is Σ_j c_j =
    f(1) − f(0), exactly.

    ⌈D/2⌉ Gauss–Legendre nodes are such a rule. Right ends are not, and midpoints only up to D = 2:
    their sums miss completeness by an amount that falls with the number of steps.
    """
    powers, weights = MatrixSymbol("T", N, D), MatrixSymbol("w", 1, N)
    factors = DiagMatrix(matadd(Positions(D), OneMatrix(D, 1)))
    terms = MatrixSymbol("c", D, 1)
    return Statement(
        matmul(weights, matmul(powers, factors, terms)),
        matmul(OneMatrix(1, D), terms),
        given=((matmul(weights, powers, factors), OneMatrix(1, D)),),
        on_models=False,
    )


@theorem(
    title="SmoothGrad of a cubic is its gradient plus a constant from the variance of the noise",
    chapter=8,
    source=SMILKOV,
    covers=("S3-029",),
)
def smooth_grad_of_cubic() -> Statement:
    """SmoothGrad, the mean of gradients at noisy copies of the input, moves the gradient of a cubic
    function by the same vector everywhere. For a cubic form f and noise of mean zero, E ∇f(x + ε)·δ
    = ∇f(x)·δ + E of the terms with δ once and ε twice, and the second part does not depend on x.
    For noise of variance σ² it is σ² times half the gradient of the Laplacian of f.

    So for a cubic form SmoothGrad adds one fixed vector to every gradient, whatever the size and
    the distribution of the noise.
    """
    e = drawn[g]
    spread = ((delta, e, e), (e, delta, e), (e, e, delta))
    twice = matadd(*(matmul(cubic, kron(*factors)) for factors in spread))
    return Statement(
        mean(cube_slope(matadd(x, e), delta)),
        matadd(cube_slope(x, delta), mean(twice)),
        given=(CENTRED,),
        on_models=False,
    )
