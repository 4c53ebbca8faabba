"""Chapter 10: an activation as a sparse sum of many directions.

Rows of Z are activations at N positions or prompts. The decoder D has a row for each of S features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

import numpy as np
import sympy
from sympy import (
    HadamardPower,
    HadamardProduct,
    Identity,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Trace,
    Transpose,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.numeric.features.measures import feature_attribution, feature_density, l0
from otimes.numeric.features.sae import SAE, load_sae
from otimes.numeric.features.splice import loss_recovered
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import d, row, size
from otimes.proofs.claims import (
    Bound,
    Definition,
    Entries,
    Method,
    NonIdentity,
    Square,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

BRICKEN = (
    "Bricken et al. 2023, “Towards Monosemanticity: Decomposing Language Models With Dictionary "
    "Learning”"
)
GATED = "Rajamanoharan et al. 2024, “Improving Dictionary Learning with Gated Sparse Autoencoders”"
JUMP = "Rajamanoharan et al. 2024, “Jumping Ahead: Improving Reconstruction Fidelity with JumpReLU"
JUMP += " Sparse Autoencoders”"
GAO = "Gao et al. 2024, “Scaling and evaluating sparse autoencoders”"
IN_PRIMER = f"{PRIMER}, “Sparse autoencoders”"
UNIT = 2.0**-53

N, S = size("N"), size("S")
k, i = sympy.symbols("k i", integer=True)
c = sympy.Symbol("c", positive=True)
alpha = sympy.Symbol("alpha", nonnegative=True)

Z = MatrixSymbol("Z", N, d)
W_enc, b_enc = MatrixSymbol("W_enc", d, S), MatrixSymbol("b_enc", 1, S)
D, b_dec = MatrixSymbol("D", S, d), MatrixSymbol("b_dec", 1, d)
P = MatrixSymbol("P", N, S)  # what the encoder computes before its nonlinearity
F = MatrixSymbol("F", N, S)  # features
w = MatrixSymbol("w", S, 1)


def relu(matrix: Any) -> Any:
    """Return ReLU of a matrix."""
    return Activation("relu", matrix)


def every_row(bias: Any) -> Any:
    """Return a bias in each of N rows."""
    return matmul(OneMatrix(N, 1), bias)


def squared(matrix: Any) -> Any:
    """Return the squared Frobenius norm."""
    return Trace(matmul(matrix, Transpose(matrix)))


def total(matrix: Any) -> Any:
    """Return the sum of all entries; of features, which are not negative, it is the L1 norm."""
    rows, columns = matrix.shape
    return Trace(matmul(OneMatrix(1, rows), matrix, OneMatrix(columns, 1)))


# -- what it is ------------------------------------------------------------------------------------


@theorem(
    title="Sparse autoencoder",
    chapter=10,
    convention="row",
    source=f"{BRICKEN}; {IN_PRIMER}",
    covers=("S3-074",),
)
def sparse_autoencoder() -> Definition:
    """A sparse autoencoder writes an activation z as a sum of a few directions out of many: the
    encoder h = ReLU(z W_enc + b_enc) gives one number for each of S features, most of them zero,
    and the decoder returns h D + b_dec, where row k of D is the direction of feature k. Z has N
    activations as rows.

    It is the usual tool to find features in superposition. With S > d the directions overlap, and
    sparsity is what singles out one such sum.

    W_enc is not Dᵀ in general, since the encoder must subtract the interference of overlapping
    features. Many papers subtract a bias from z first; that is the same function with another b_enc
    (`bias_before_the_encoder`).
    """

    def plain(Z: Any, W_enc: Any, b_enc: Any, D: Any, b_dec: Any, **sizes: Any) -> Any:
        result = np.zeros((len(Z), len(b_dec[0])), dtype=object)
        for t in range(len(Z)):
            for j in range(len(b_dec[0])):
                result[t, j] = b_dec[0][j]
            for unit in range(len(D)):
                before = sum(Z[t][j] * W_enc[j][unit] for j in range(len(W_enc))) + b_enc[0][unit]
                for j in range(len(b_dec[0])):
                    result[t, j] += max(before, 0) * D[unit][j]
        return result

    features = relu(matadd(matmul(Z, W_enc), every_row(b_enc)))
    return Definition(
        "SAE",
        matadd(matmul(features, D), every_row(b_dec)),
        plain,
        on_models=False,
        obeys=("decoder_scale_is_free", "reconstruction_is_sum_over_features"),
    )


@theorem(
    title="Loss of a sparse autoencoder",
    chapter=10,
    convention="row",
    source=f"{BRICKEN}; {IN_PRIMER}",
    covers=("S3-075",),
)
def sparse_autoencoder_loss() -> Definition:
    """A sparse autoencoder is trained on the squared error of its reconstruction plus α times the
    sum of its features, which are non-negative, so that this sum is their L1 norm. F (N × S) holds
    the features of N activations Z. The reconstruction is F D plus the bias b_dec.

    The L1 norm stands in for the number of active features, which has no useful gradient. It also
    makes all features too small (`soft_threshold`).
    """

    def plain(Z: Any, F: Any, D: Any, b_dec: Any, alpha: Any, **sizes: Any) -> Any:
        loss = 0
        for t in range(len(Z)):
            for j in range(len(b_dec[0])):
                written = sum(F[t][unit] * D[unit][j] for unit in range(len(D)))
                loss += (Z[t][j] - written - b_dec[0][j]) ** 2
            loss += alpha * sum(F[t][unit] for unit in range(len(D)))
        return loss

    left = matadd(Z, matmul(-1, F, D), matmul(-1, every_row(b_dec)))
    return Definition(
        "loss",
        squared(left) + alpha * total(F),
        plain,
        on_models=False,
        obeys=("loss_is_convex_in_features", "soft_threshold"),
    )


@theorem(
    title="For a fixed decoder the loss of a sparse autoencoder is convex in the features",
    chapter=10,
    convention="row",
    source="Boyd and Vandenberghe 2004, Convex Optimization, §3.2; the lasso: Tibshirani 1996",
    covers=("S3-075",),
)
def loss_is_convex_in_features() -> Bound:
    """For a fixed decoder D the loss of a sparse autoencoder is convex in the features: halfway
    between two sets of features F and G it is at most the mean of their losses, and smaller by ‖(F
    − G)D‖²/4. Z are the activations, and α is the factor of the L1 penalty.

    So the best features for given directions have no false local minima; the problem is known as
    the lasso. In encoder and decoder together it is not convex.
    """
    G = MatrixSymbol("G", N, S)

    def loss(features: Any) -> Any:
        return squared(matadd(Z, matmul(-1, features, D))) + alpha * total(features)

    half = Rational(1, 2)
    middle = matadd(matmul(half, F), matmul(half, G))
    return Bound(
        loss(middle),
        half * loss(F) + half * loss(G),
        because=(Square(matmul(matadd(F, matmul(-1, G)), D), Rational(1, 4)),),
        tight={
            "Z": np.array([[1]]),
            "F": np.array([[1]]),
            "G": np.array([[1]]),
            "D": np.array([[1]]),
            "alpha": 1,
        },
        on_models=False,
    )


# -- the scale of features -------------------------------------------------------------------------


@theorem(
    title="The scale of the features of a ReLU autoencoder is free",
    chapter=10,
    convention="row",
    source=f"{BRICKEN}; {IN_PRIMER}",
    covers=("S3-076",),
)
def decoder_scale_is_free() -> Statement:
    """The sizes of features in a ReLU autoencoder can be chosen freely: multiplying the encoder's
    result for feature k by w_k² > 0, or row k of the decoder, gives the same reconstruction. ReLU
    passes positive factors. In the formula P is what the encoder computes before its ReLU, and row
    k of D is the direction of feature k.

    So before features of two autoencoders are compared, give all decoder rows the norm 1.
    """
    scale = DiagMatrix(HadamardPower(w, 2))
    return Statement(
        matmul(relu(matmul(P, scale)), D), matmul(relu(P), matmul(scale, D)), on_models=False
    )


@theorem(
    title="An L1 penalty shrinks with the scale of the features",
    chapter=10,
    convention="row",
    source=f"{BRICKEN}; {IN_PRIMER}",
    covers=("S3-076",),
)
def l1_penalty_sees_the_scale() -> Statement:
    """The L1 penalty of a sparse autoencoder, α times the sum of all features, can be made small
    without making anything sparse. Dividing all features by c > 0 and multiplying the decoder by c
    leaves the reconstruction unchanged and divides the penalty by c. In the formula P is what the
    encoder computes before its ReLU.

    Therefore the decoder's rows are kept at norm 1, or their norms multiplied into the penalty
    (`weighted_penalty_does_not_see_the_scale`). A penalty on the number of active features does not
    have this problem.
    """
    return Statement(total(relu(matmul(1 / c, P))), total(relu(P)) / c, on_models=False)


@theorem(
    title="An L1 penalty weighted by the decoder's norms does not see the scale",
    chapter=10,
    convention="row",
    source="Conerly et al. 2024, “Update on how we train SAEs”, Circuits Updates, April 2024",
    covers=("S3-076",),
)
def weighted_penalty_does_not_see_the_scale() -> Statement:
    """If the L1 penalty of a sparse autoencoder weights each feature by the norm u_k of its decoder
    row, it does not change when features are divided by c and the decoder multiplied by c: the
    norms are multiplied by c as well. So no norms have to be fixed in training
    (`l1_penalty_sees_the_scale`). In the formula P is what the encoder computes before its ReLU.
    """
    u = MatrixSymbol("u", S, 1)

    def weighted(features: Any, norms: Any) -> Any:
        return Trace(matmul(OneMatrix(1, N), features, norms))

    return Statement(
        weighted(relu(matmul(1 / c, P)), matmul(c, u)), weighted(relu(P), u), on_models=False
    )


# -- shrinkage -------------------------------------------------------------------------------------


@theorem(
    title="For an orthonormal decoder the best features are soft thresholds",
    chapter=10,
    convention="row",
    source=f"{GATED}, on shrinkage; the lasso: Tibshirani 1996, §2.2",
    covers=("S3-081",),
)
def soft_threshold() -> Bound:
    """An L1 penalty makes the features of a sparse autoencoder too small. If the decoder's rows are
    orthonormal, the best non-negative features are ReLU(Z Dᵀ − α/2): the coefficient of each
    direction, reduced by α/2, and zero below that. With α = 0.2 a coefficient 1 gives the feature
    0.9, and 0.05 gives 0.

    Z are the activations, the rows of D the directions, and α is the factor of the penalty. This
    shrinkage is why other encoders were proposed (gated, TopK, JumpReLU).

    The loss of any other F ≥ 0 is larger by ‖F − F*‖² plus twice the sum of F ∘ ReLU(α/2 − Z Dᵀ).
    """
    coefficients = matmul(Z, Transpose(D))
    half = matmul(alpha / 2, OneMatrix(N, S))
    best = relu(matadd(coefficients, matmul(-1, half)))
    below = relu(matadd(half, matmul(-1, coefficients)))

    def loss(features: Any) -> Any:
        return squared(matadd(Z, matmul(-1, features, D))) + alpha * total(features)

    return Bound(
        loss(best),
        loss(F),
        because=(
            Square(matadd(F, matmul(-1, best))),
            Entries(HadamardProduct(F, below), 2),
        ),
        given=(
            (matmul(D, Transpose(D)), Identity(S)),
            Fact("nonnegative", HadamardProduct(F, below)),
        ),
        tight={
            "Z": np.array([[2]]),
            "F": np.array([[1]]),
            "D": np.array([[1]]),
            "alpha": 2,
        },
        on_models=False,
    )


# -- features --------------------------------------------------------------------------------------


@theorem(
    title="A reconstruction and its logits are sums over features",
    chapter=10,
    convention="row",
    source=f"{BRICKEN}; {IN_PRIMER}",
    covers=("S3-080",),
)
def reconstruction_is_sum_over_features() -> Statement:
    """What a sparse autoencoder makes of an activation is a sum over features, each with its value
    times its direction, row k of D, and so are its logits: d_k W_U says which tokens feature k
    promotes, for all prompts at once. F (N × S) holds the values of the features.

    With a final norm the numbers are multiplied by the scale of the prompt. What the autoencoder
    fails to reconstruct belongs to no feature.
    """
    feature = OneHot(k, S)
    alone = matmul(F, feature, Transpose(feature), D, row.W_U)
    return Statement(matmul(F, D, row.W_U), HeadSum(alone, (k, S)), on_models=False)


@theorem(
    title="Densities of features add up to L0",
    chapter=10,
    convention="row",
    source=IN_PRIMER,
    covers=("S3-077", "S3-079"),
)
def densities_sum_to_l0() -> Statement:
    """The mean number of features of a sparse autoencoder that are active on an activation, called
    L0, is the sum of all feature densities, the shares of activations on which each feature is
    active. M (N × S) has a 1 where a feature is active; a column's mean is the density of that
    feature, a row's sum the number of features active there.

    L0 is a count and not a norm. Doubling all features does not change it.
    """
    M = MatrixSymbol("M", N, S)
    feature, position = OneHot(k, S), OneHot(i, N)
    density = matmul(1 / N, OneMatrix(1, N), M, feature)
    active = matmul(Transpose(position), M, OneMatrix(S, 1))
    return Statement(
        HeadSum(density, (k, S)), matmul(1 / N, HeadSum(active, (i, N))), on_models=False
    )


@theorem(
    title="The gated and the JumpReLU autoencoder keep a penalty in their loss",
    chapter=10,
    convention="row",
    source=f"{GATED}; {JUMP}; against a sentence of {IN_PRIMER}",
    covers=("S3-085",),
)
def a_penalty_stays_in_the_loss() -> NonIdentity:
    """Most sparse autoencoders are trained with a penalty on their features, and the losses with
    and without it are different functions. Gated and JumpReLU autoencoders keep such a term, the L1
    norm of the gate and the number of active features; only TopK has none, since exactly k features
    are active by construction. F are the features, D the decoder, Z the activations, and α is the
    factor of the penalty.

    So the statement that all three move sparsity from the loss into the architecture is true of
    TopK only.
    """
    error = squared(matadd(Z, matmul(-1, F, D)))
    return NonIdentity(error + alpha * total(F), error)


@theorem(
    title="A bias subtracted before the encoder is another encoder bias",
    chapter=10,
    convention="row",
    source=f"{BRICKEN}, on the decoder bias that is subtracted from the input",
    covers=("S3-074",),
)
def bias_before_the_encoder() -> Statement:
    """Subtracting a bias b from the activations before the encoder does not enlarge the set of
    functions that an autoencoder can compute: it is the same as another encoder bias, b_enc − b
    W_enc. Z are the activations and the rows of D the directions of the features.

    Many implementations use b = b_dec, which centres both ends and helps training. When weights are
    exchanged between libraries, the biases must be converted.
    """
    b = MatrixSymbol("b", 1, d)
    moved = matadd(b_enc, matmul(-1, b, W_enc))
    return Statement(
        matmul(
            relu(
                matadd(matmul(matadd(Z, matmul(-1, every_row(b))), W_enc), every_row(b_enc)),
            ),
            D,
        ),
        matmul(relu(matadd(matmul(Z, W_enc), every_row(moved))), D),
        on_models=False,
    )


@theorem(
    title="The gain and bias of a norm fold into encoder and decoder",
    chapter=10,
    convention="row",
    source="the algebra of “Folding LayerNorm”, for a sparse autoencoder behind a norm",
    covers=("S3-074",),
)
def norm_folds_into_autoencoder() -> Statement:
    """A gain g and bias b of a norm can be folded into an autoencoder that reads its output: the
    encoder on y ∘ g + b has the weights diag(g) W_enc and the bias b_enc + b W_enc on y, and the
    same features. The rows y are those of Y (N × d).

    So autoencoders still fit a model whose norms have been folded. The decoder must then
    reconstruct y, which is (x̂ − b)/g for the old reconstruction x̂ where g is nonzero.
    """
    Y, g, b = MatrixSymbol("Y", N, d), MatrixSymbol("g", d, 1), MatrixSymbol("b", 1, d)
    behind = matadd(matmul(Y, DiagMatrix(g)), every_row(b))
    folded = matadd(b_enc, matmul(b, W_enc))
    return Statement(
        relu(matadd(matmul(behind, W_enc), every_row(b_enc))),
        relu(matadd(matmul(Y, matmul(DiagMatrix(g), W_enc)), every_row(folded))),
        on_models=False,
    )


@theorem(
    title="Loss recovered by a reconstruction",
    chapter=10,
    source=f"{BRICKEN}; {IN_PRIMER}",
    covers=("S3-078",),
)
def loss_recovered_score() -> Definition:
    """The loss recovered says how much of what an ablation costs is kept when an activation is
    replaced by its reconstruction: the mean loss with the ablation minus that with the
    reconstruction, divided by the mean loss with the ablation minus that of the model itself. u, w
    and v are the losses at N positions (1 × N) of the model, with the reconstruction and with the
    ablation.

    It is 1 if the reconstruction costs nothing, 0 if it is as bad as the ablation, and can be
    negative. The unit of the loss does not matter, nor does a constant that is added to all losses.
    """
    u, v = MatrixSymbol("u", 1, N), MatrixSymbol("v", 1, N)
    with_sae = MatrixSymbol("w", 1, N)

    def plain(u: Any, v: Any, w: Any, N: int, **_: Any) -> Any:
        kept = sum(v[0][i] - w[0][i] for i in range(N))
        cost = sum(v[0][i] - u[0][i] for i in range(N))
        return sympy.sympify(kept) / sympy.sympify(cost)

    kept = total(matadd(v, matmul(-1, with_sae)))
    cost = total(matadd(v, matmul(-1, u)))
    return Definition("loss recovered", kept / cost, plain, on_models=False)


# -- functions -------------------------------------------------------------------------------------


def _pre(sae: SAE, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the encoder computes before its nonlinearity, by loops, and a rounding bound."""
    b_in = np.zeros(sae.d_in) if sae.b_in is None else sae.b_in
    pre, sizes = np.zeros((len(x), sae.d_sae)), np.zeros((len(x), sae.d_sae))
    for t in range(len(x)):
        terms = (x[t] - b_in)[:, None] * sae.W_enc
        extra = (np.abs(x[t]) + np.abs(b_in))[:, None] * np.abs(sae.W_enc)
        pre[t] = [fsum([*column, b]) for column, b in zip(terms.T, sae.b_enc, strict=True)]
        sizes[t] = extra.sum(axis=0) + np.abs(sae.b_enc)
    return pre, gamma(sae.d_in + 3, UNIT) * sizes


def _activations(model: Model, tokens: Sequence[int]) -> tuple[SAE, np.ndarray] | None:
    """Return the first features of the bundled SAE and what it reads, if it is of this model."""
    sae = load_sae("gpt2_tiny_sae")
    if model.name != sae.model:
        return None
    few = 24
    part = replace(
        sae,
        W_enc=sae.W_enc[:, :few],
        b_enc=sae.b_enc[:few],
        W_dec=sae.W_dec[:few],
        k=3,
    )
    return part, model.forward(tokens, [sae.hook_point])[sae.hook_point]


def _variants(sae: SAE) -> dict[str, SAE]:
    """Return the same weights as an SAE of each variant."""
    relu_sae = replace(sae, variant="relu", k=None)
    level = np.full(sae.d_sae, 0.5)
    return {
        "relu": relu_sae,
        "topk": sae,
        "jumprelu": replace(relu_sae, variant="jumprelu", threshold=level),
        "gated": replace(
            relu_sae, variant="gated", W_gate=sae.W_enc, b_gate=np.full(sae.d_sae, -0.5)
        ),
    }


def _by_loops(sae: SAE, pre: np.ndarray, gate: np.ndarray) -> np.ndarray:
    """Return the features from what the encoder computes, one after the other."""
    h = np.zeros(pre.shape)
    for t in range(len(pre)):
        for unit in range(pre.shape[1]):
            value = pre[t, unit]
            larger = sum(other > value for other in pre[t])
            keep = {
                "relu": value > 0,
                "topk": value > 0 and larger < (sae.k or 0),
                "jumprelu": sae.threshold is not None and value > sae.threshold[unit],
                "gated": value > 0 and gate[t, unit] > 0,
            }[sae.variant]
            h[t, unit] = value if keep else 0.0
    return h


@theorem(
    title="SAE: ReLU, gated, TopK and JumpReLU encoders",
    chapter=10,
    source=f"{BRICKEN}; {GATED}; {GAO}; {JUMP}",
    covers=("S3-074", "S3-082", "S3-083", "S3-084"),
)
def sae_method() -> Method:
    """`SAE` has four encoders, ways to get features from p = z W_enc + b_enc. ReLU takes the
    positive part of p. Gated takes that part only where a second encoder is positive, so that
    whether a feature is active and how strongly are separate. TopK keeps the k largest of each row.
    JumpReLU keeps p where it exceeds a threshold, without subtracting the threshold.

    Gated, TopK and JumpReLU avoid shrinkage (`soft_threshold`). With TopK at most k features are
    active, and without biases the features of 2z are twice those of z. Each encoder is compared
    with loops; a gate equal to the encoder gives ReLU again.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        found = _activations(model, tokens)
        if found is None:
            return
        part, x = found
        pre, bound = _pre(part, x)
        for name, sae in _variants(part).items():
            h = _by_loops(sae, pre, pre - part.b_enc - 0.5)
            yield Trial(f"features, {name}", sae.encode(x), h, bound)
        same = replace(_variants(part)["gated"], b_gate=part.b_enc)
        yield Trial("a gate that is the encoder", same.encode(x), np.maximum(pre, 0), bound)
        bare = replace(part, b_enc=np.zeros(part.d_sae), b_in=None)
        yield Trial("TopK of 2 z, without biases", bare.encode(2 * x), 2 * bare.encode(x), 0.0)

    rests = ("decoder_scale_is_free", "soft_threshold")
    return Method("ot.SAE", rests, trials)


@theorem(
    title="l0 and feature_density: how many features are active, and how often each is",
    chapter=10,
    source=IN_PRIMER,
    covers=("S3-077", "S3-079"),
)
def feature_density_method() -> Method:
    """`l0` counts how many features are active on an activation on average, and `feature_density`
    how often each feature is active. They are compared with counting one by one. The densities sum
    to L0, and neither changes when features are scaled, unlike an L1 norm (`densities_sum_to_l0`).
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        found = _activations(model, tokens)
        if found is None:
            return
        part, x = found
        h = part.encode(x)
        counts = [sum(1 for t in range(len(h)) if h[t, unit] > 0) for unit in range(part.d_sae)]
        few = gamma(len(h) + part.d_sae + 2, UNIT)
        plain = np.array(counts) / len(h)
        yield Trial("densities", feature_density(h), plain, few * plain)
        yield Trial("their sum", l0(h), fsum(plain), few * fsum(plain))
        yield Trial("L0 of scaled features", l0(3 * h), l0(h), 0.0)

    return Method(
        "ot.feature_density", ("densities_sum_to_l0", "l1_penalty_sees_the_scale"), trials
    )


@theorem(
    title="feature_attribution: the direct contribution of each feature to a logit",
    chapter=10,
    source=IN_PRIMER,
    covers=("S3-080",),
)
def feature_attribution_method() -> Method:
    """`feature_attribution` gives the direct contribution of each feature of an autoencoder to a
    logit. The check: the contributions of all active features, of b_dec and of the reconstruction
    error sum to the direct contribution of the activation, which is computed without the
    autoencoder.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        sae = load_sae("gpt2_tiny_sae")
        if model.name != sae.model:
            return
        found = feature_attribution(model, sae, tokens)
        at = model.forward(tokens)
        x, last, config = at[sae.hook_point][-1], at["final"][-1], model.config
        mean = fsum(last) / len(last)
        scale = (fsum((each - mean) ** 2 for each in last) / len(last) + config.norm_eps) ** 0.5
        column = model.W_U[:, int(at["logits"][-1].argmax())] * model.ln_final_gain
        centre = fsum(x) / len(x)
        plain = fsum((each - centre) * weight for each, weight in zip(x, column, strict=True))
        h = sae.encode(x)
        reader = np.abs(column) + abs(fsum(column)) / len(column)
        sizes = ((h @ np.abs(sae.W_dec)) * 2 + np.abs(sae.b_dec) * 2 + np.abs(x)) @ reader
        bound = gamma(2 * model.d_model + sae.d_sae + 20, UNIT) * sizes / scale
        yield Trial("the sum", float(found.values.sum()), plain / scale, bound)
        yield Trial("the sum as it is said", found.whole or 0.0, plain / scale, bound)

    rests = ("reconstruction_is_sum_over_features", "direct_logits_add_up")
    return Method("ot.feature_attribution", rests, trials)


def _half_by_loops(
    model: Model, tokens: Sequence[int], whole: float, half: float
) -> Iterator[Trial]:
    """Yield the losses from the last stream and, where no norm reads it, from half of it."""
    if model.config.logit_cap:
        return
    read = "ln_final" if model.config.final_norm else "final"
    final = model.forward(tokens, [read])[read]
    losses_of = {"the model": (whole, 1.0)}
    if not model.config.final_norm:
        losses_of["half of the stream"] = half, 0.5
    for what, (found, share) in losses_of.items():
        logits = [_logits_by_loops(model, share * row) for row in final[:-1]]
        pairs = zip(logits, tokens[1:], strict=True)
        plain = fsum(np.log(fsum(np.exp(row))) - row[token] for row, token in pairs)
        largest = float((np.abs(final) @ np.abs(model.W_U) + np.abs(model.b_U)).max())
        bound = gamma(4 * (model.d_model + model.d_vocab + len(tokens)), UNIT) * (2 + 2 * largest)
        yield Trial(f"loss of {what}", found, plain / len(logits), bound)


def _logits_by_loops(model: Model, row: np.ndarray) -> np.ndarray:
    columns = zip(model.W_U.T, model.b_U, strict=True)
    return np.array([fsum([*(row * column), bias]) for column, bias in columns])


@theorem(
    title="loss_recovered: what a model keeps with reconstructions in place of activations",
    chapter=10,
    source=f"{BRICKEN}; {IN_PRIMER}",
    covers=("S3-078",),
)
def loss_recovered_method() -> Method:
    """`loss_recovered` measures how good an autoencoder is for the model: (L_abl − L_SAE)/(L_abl −
    L), where L is the model's loss, L_SAE the loss with reconstructions in place of activations,
    and L_abl the loss with the activations ablated. It is 1 for a perfect autoencoder and 0 for one
    that is as bad as the ablation; it can be negative.

    Zero ablation is often so harmful that values near 1 are easy to reach. Compare with mean
    ablation too, and say which one was used.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        width = model.d_model
        doubled = np.concatenate([np.eye(width), -np.eye(width)], axis=1)
        zero = np.zeros(2 * width)
        same = SAE(doubled, zero, doubled.T, np.zeros(width), hook_point="final")
        nothing = replace(same, W_dec=np.zeros((2 * width, width)))
        found = loss_recovered(model, same, tokens)
        yield Trial("an identity", found.fraction, 1.0, 0.0)
        found = loss_recovered(model, nothing, tokens)
        yield Trial("zeros", found.fraction, 0.0, 0.0)
        half = loss_recovered(model, replace(same, W_dec=same.W_dec / 2), tokens)
        yield from _half_by_loops(model, tokens, half.original, half.spliced)
        b_U = model.b_U
        ablated = np.log(fsum(np.exp(b_U))) - fsum(b_U[np.array(tokens[1:])]) / (len(tokens) - 1)
        if not model.config.final_norm and not model.config.logit_cap:
            bound = gamma(4 * model.d_vocab + 20, UNIT) * (1 + abs(ablated) + np.abs(b_U).max())
            yield Trial("loss without the stream", found.ablated, float(ablated), bound)

    return Method("ot.loss_recovered", ("reconstruction_is_sum_over_features",), trials)
