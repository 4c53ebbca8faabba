"""Chapter 4: LayerNorm is a projection and then a sphere; what it forgets, and how it moves.

Notation: P = I - 11ᵀ/d takes the mean off a row, σ is the deviation of a row (the mean of d
squares, not of d - 1), s = 1/σ. Sources: Ba, Kiros and Hinton 2016; Brody, Alon and Yahav 2023, “On
the expressivity role of LayerNorm in transformers' attention”.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy
from sympy import (
    HadamardPower,
    HadamardProduct,
    Identity,
    MatrixSymbol,
    Min,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.facts import Fact
from otimes.algebra.language.derivative import differential
from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import RSQRT, Activation, LayerNorm, RMSNorm, mean_square
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.mlp_and_norm.parts import (
    WITH_LAYER_NORM,
    centring,
    eps,
    everywhere,
    gained,
    layer_norm,
    reciprocal_deviation,
    z,
)
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER, TRANSFORMER_LENS
from otimes.proofs.catalogue.symbols import X, d, n, row
from otimes.proofs.claims import (
    Bound,
    Definition,
    Example,
    NonIdentity,
    Property,
    Square,
    Statement,
)
from otimes.proofs.theorem import theorem

BA = "Ba, Kiros and Hinton 2016, “Layer normalization”"
BRODY = "Brody, Alon and Yahav 2023, “On the expressivity role of LayerNorm”, §3"

XU = "Xu et al. 2019, “Understanding and improving layer normalization”, §3"

v = MatrixSymbol("v", n, 1)
c = sympy.Symbol("c", positive=True)
scale = reciprocal_deviation(X)
spread = DiagMatrix(scale)
MEANS = {"v": Source("resid_pre", cols=1)}
ONE_ROW = ({"z": Source("resid_pre", rows=1)},)
TWO_STREAMS = ({"Y": Source("embed")},)


@theorem(
    title=(
        "LayerNorm: subtract the mean, divide by the standard deviation, "
        "multiply by a gain, add a bias"
    ),
    chapter=4,
    convention="row",
    source=f"{BA}; {PRIMER}, “Layer normalization”",
    covers=("S3-002",),
)
def layer_norm_with_gain_and_bias() -> Definition:
    """(z - μ)/σ ∘ γ + β for the row z of each position by itself: take off the mean μ of its d
    entries, divide by the root σ of their mean square deviation (plus ε), multiply entry by entry
    by a gain, add a bias. Positions never mix.
    """

    def plain(X: Any, ln1_gain: Any, ln1_bias: Any, eps: Any, **sizes: Any) -> Any:
        result = np.zeros(np.shape(X))
        for i, entries in enumerate(X):
            mean = sum(entries) / len(entries)
            variance = sum((entry - mean) ** 2 for entry in entries) / len(entries)
            for k, entry in enumerate(entries):
                scaled = (entry - mean) / math.sqrt(variance + eps)
                result[i, k] = scaled * ln1_gain[0][k] + ln1_bias[0][k]
        return result

    return Definition(
        "LN",
        layer_norm("ln1"),
        plain,
        places=("ln1",),
        bare=False,
        config=WITH_LAYER_NORM,
        obeys=("layer_norm_squared_length", "layer_norm_ignores_shift_and_scale"),
    )


@theorem(
    title="The gain of a norm is a diagonal matrix",
    chapter=4,
    convention="row",
    source=f"{BA}; {PRIMER}, “Layer normalization”",
    covers=("S3-002",),
)
def norm_gain_is_diagonal() -> Statement:
    """Of LayerNorm's four steps (centre, scale, gain, bias) the third multiplies entry by entry.
    That is a product with the diagonal matrix of the gain, and so linear; the bias is the same row
    at every position.

    Written with a dot, (z - μ)/σ · γ, it can be read as a product of a row and a column, which is
    one number; code that follows that reading runs, by broadcasting, and is wrong. Dividing the sum
    of squares by d - 1, as `std` does by default in many libraries, is another slip that no shape
    betrays.
    """
    N = MatrixSymbol("N", n, d)
    gain, bias = MatrixSymbol("ln1_gain", 1, d), everywhere(MatrixSymbol("ln1_bias", 1, d))
    entrywise = HadamardProduct(N, everywhere(gain), evaluate=False)
    dotted = matmul(N, Transpose(gain), OneMatrix(1, d))
    return Statement(
        matadd(entrywise, bias),
        gained("ln1", N),
        places={"ln1": layer_norm("ln1")},
        bind=({"N": Source("resid_pre")},),
        bare=False,
        config=WITH_LAYER_NORM,
        printed={"E43": (matadd(entrywise, bias), matadd(dotted, bias))},
    )


@theorem(
    title="Subtracting the mean is a product with P = I - 11ᵀ/d",
    chapter=4,
    source=f"{BRODY}.1",
    covers=("S3-003",),
)
def mean_subtraction_is_a_product() -> Statement:
    """The mean of a row is its product with 1/d times the column of ones, so to take it off every
    entry is linear: one fixed matrix P, the same for every position and every token.
    """
    ones = OneMatrix(d, 1)
    mean = matmul(1 / d, X, ones)
    return Statement(matadd(X, matmul(-1, mean, Transpose(ones))), matmul(X, centring))


@theorem(
    title="The centring matrix P = I - 11ᵀ/d is an orthogonal projection",
    chapter=4,
    source=f"{BRODY}.1",
    covers=("S3-003",),
)
def centring_is_orthogonal_projection() -> Statement:
    """For every stream, and so PᵀP = P, which says both things at once: transpose it, and P is
    symmetric; put that back, and P² = P. To centre twice is to centre once, and what is taken off
    is at a right angle to what is kept: P projects onto the hyperplane of rows with sum zero.
    """
    return Statement(matmul(X, matmul(Transpose(centring), centring)), matmul(X, centring))


@theorem(
    title="Centring removes exactly one dimension",
    chapter=4,
    source=f"{BRODY}.1",
    covers=("S3-003",),
)
def centring_rank() -> Property:
    """The direction of ones is sent to zero, every direction at a right angle to it is kept: P has
    rank d - 1, and of d or more positions the centred streams X P have no more (and attain it, so
    that P cannot have less). Nothing that a model writes along 1 can be read behind a LayerNorm.
    """
    rows = {"X": Source("W_E", rows=160)}  # more than d
    return Property(Fact("rank_at_most", matmul(X, centring), Min(n, d - 1)), bind=(rows,))


@theorem(
    title="LayerNorm is RMSNorm of the centred stream",
    chapter=4,
    source="Zhang and Sennrich 2019, “Root mean square layer normalization”, §4; "
    f"{TRANSFORMER_LENS}",
    covers=("S0-05",),
)
def layer_norm_is_rms_norm_of_centred() -> Statement:
    """Once the stream has mean zero the two norms are one. So if all that writes to the stream
    is centred beforehand, a LayerNorm may be replaced by an RMSNorm and the logits stay the same:
    the first of its two steps has been moved into the weights.
    """
    return Statement(LayerNorm(X, eps), RMSNorm(matmul(X, centring), eps))


@theorem(
    title="Without ε LayerNorm puts each row on the sphere of radius √d",
    chapter=4,
    source=f"{BRODY}.2",
    covers=("S3-004",),
)
def layer_norm_rescales_to_sqrt_d() -> Statement:
    """Dividing by the deviation is dividing by the length and multiplying by √d, since the
    deviation is the length over √d. The direction of the centred row is kept, its length is
    forgotten. (Here ε = 0; each position has its own length.)
    """
    centred = matmul(X, centring)
    squares = matmul(HadamardPower(centred, 2), OneMatrix(d, 1))
    return Statement(
        LayerNorm(X), matmul(sympy.sqrt(d), DiagMatrix(Activation(RSQRT, squares)), centred)
    )


@theorem(
    title="The squared length of a LayerNorm output falls short of d by ε d/σ²",
    chapter=4,
    source=f"{BRODY}.2; {BA}",
    covers=("S3-004",),
)
def layer_norm_squared_length() -> Statement:
    """The squared length of a normalised row falls short of d by ε d/σ², where σ² includes ε. For
    ε = 0 nothing is missing: every position lies on the sphere of radius √d, within the hyperplane
    of P. With ε a position is strictly inside, and the more so the shorter it was: a row near zero
    stays near zero.

    The radius is √d because the variance is the mean over d; with the mean over d - 1 it would be
    √(d - 1).
    """
    squares = matmul(HadamardPower(LayerNorm(X, eps), 2), OneMatrix(d, 1))
    missing = matmul(eps * d, HadamardPower(scale, 2))
    return Statement(matadd(squares, missing), matmul(d, OneMatrix(n, 1)))


@theorem(
    title="No LayerNorm output is longer than √d",
    chapter=4,
    source=f"{BRODY}.2",
    covers=("S3-004",),
)
def layer_norm_length_at_most_sqrt_d() -> Bound:
    """Whatever the stream has grown to, what a head or a neuron reads has squared length at most d
    (before the gain). This is why early layers are not drowned by the size of later ones, and why
    the same write counts for less in a long stream than in a short one.
    """
    normed = LayerNorm(z, eps)
    return Bound(
        Trace(matmul(normed, Transpose(normed))),
        d,
        because=[Square(reciprocal_deviation(z), d * eps)],
        not_attained="a row of variance v has squared length d v/(v + ε), and ε is positive",
        bind=ONE_ROW,
    )


@theorem(
    title="LayerNorm depends neither on the mean nor on the scale of a row",
    chapter=4,
    source=f"{BA}, table 1",
    covers=("S3-005",),
)
def layer_norm_ignores_shift_and_scale() -> Statement:
    """Add any number to all entries of a row, its own for each position, and multiply by c > 0:
    the norm gives the same, if ε is multiplied by c² as well. With ε = 0 this is exact invariance;
    with the usual 1e-5 it holds as well as ε is small beside the variance.

    The factor must be positive, and the shift must be the same in all d entries.
    """
    moved = matadd(matmul(c, X), matmul(v, OneMatrix(1, d)))
    return Statement(LayerNorm(moved, eps * c**2), LayerNorm(X, eps), bind=(MEANS,))


@theorem(
    title="LayerNorm is odd: negating the input negates the output",
    chapter=4,
    source=f"{BA}, table 1",
    covers=("S3-005",),
)
def layer_norm_is_odd() -> Statement:
    """The deviation does not see the sign, the numerator does. So LN(az) for a < 0 is -LN(|a| z):
    the invariance under scale is for positive factors only. With a bias the whole is not odd any
    more: fold the bias first.
    """
    return Statement(LayerNorm(matmul(-1, X), eps), matmul(-1, LayerNorm(X, eps)))


@theorem(
    title="With ε, LayerNorm depends on the scale of a row",
    chapter=4,
    source="follows from the definition with ε",
    covers=("S3-005",),
)
def layer_norm_with_eps_sees_scale() -> NonIdentity:
    """LN(cX) = LN(X) is true for ε = 0 only. Where a stream is small (the first position of a
    small model, a masked-out or ablated component) ε counts, and “scale does not matter” is not an
    argument.
    """
    return NonIdentity(LayerNorm(matmul(c, X), eps), LayerNorm(X, eps))


@theorem(
    title="LayerNorm is not linear",
    chapter=4,
    source=f"{FRAMEWORK}, “Handling layer normalization”",
    covers=("S0-04", "S2-06"),
)
def layer_norm_is_not_linear() -> NonIdentity:
    """“LayerNorm can be folded into the weights” is said of its gain, its bias and its centring.
    Its scale cannot be: LN(2z) = LN(z), so no linear map agrees with it, and the norm of a sum is
    not the sum of the norms.

    This is behind “my components do not add up”: normalise each component by its own statistics,
    and the sum is something else. With the scale of the whole stream it closes
    (`norm_with_one_scale_is_linear`).
    """
    Y = MatrixSymbol("Y", n, d)
    return NonIdentity(
        LayerNorm(matadd(X, Y), eps),
        matadd(LayerNorm(X, eps), LayerNorm(Y, eps)),
        bind=TWO_STREAMS,
        on_models=True,
    )


@theorem(
    title="With its scale held constant, a norm is linear",
    chapter=4,
    source=f"{FRAMEWORK}, “Handling layer normalization”; {PRIMER}, “Layer normalization”",
    covers=("S0-04", "S2-06"),
)
def norm_with_one_scale_is_linear() -> Statement:
    """Take 1/σ from the whole stream X + Y, and divide each part by that same number: the parts
    then add up to the norm of the whole, exactly. This is what “the scale is frozen” means in
    direct logit attribution. It is no approximation of the logits, but it says nothing about what
    would happen if a part were removed, as then σ changes.

    For a LayerNorm X and Y are the centred parts (`layer_norm_is_rms_norm_of_centred`).
    """
    Y = MatrixSymbol("Y", n, d)
    frozen = DiagMatrix(Activation(RSQRT, mean_square(matadd(X, Y), eps)))
    return Statement(
        RMSNorm(matadd(X, Y), eps),
        matadd(matmul(frozen, X), matmul(frozen, Y)),
        bind=TWO_STREAMS,
    )


@theorem(
    title="The scale of a LayerNorm factors out of every linear reader",
    chapter=4,
    convention="row",
    source=f"{FRAMEWORK}, “Handling layer normalization”",
    covers=("S0-04",),
)
def layer_norm_scale_passes_readers() -> Statement:
    """A reader W of a LayerNorm sees the projected stream times one number a position, so the
    number can be taken last: 1/σ (X P) W. Weights may therefore be analysed “without LayerNorm”,
    with P folded in, and the results are right up to a positive factor that differs from position
    to position (and from prompt to prompt). Factors of queries act like a temperature of their
    row of the pattern; those of keys differ within a row and change the pattern.
    """
    W_V = row.W_V
    return Statement(
        matmul(LayerNorm(X, eps), W_V), matmul(spread, matmul(matmul(X, centring), W_V))
    )


# -- how it moves ----------------------------------------------------------------------------------

# ẑ is a normalised row: its mean is zero and its mean square one, which is what ε = 0 gives.
unit = MatrixSymbol("zhat", 1, d)
NORMALISED = (
    (matmul(unit, Transpose(unit)), matmul(d, Identity(1))),
    (matmul(unit, OneMatrix(d, 1)), ZeroMatrix(1, 1)),
    Example({"zhat": [[1, -1, 1, -1]]}),
    Example({"zhat": [[2, -1, 0, -1, 0, 0]]}),  # six entries, of mean square one
)
shadow = matadd(centring, matmul(-1 / d, Transpose(unit), unit))


@theorem(
    title="σ times the Jacobian of LayerNorm is an orthogonal projection",
    chapter=4,
    source=XU,
    covers=("S3-006",),
)
def layer_norm_jacobian_is_projection() -> Statement:
    """Where a row z is normalised to ẑ (ε = 0), the Jacobian is J = (1/σ)(P - ẑᵀẑ/d). The matrix in
    brackets is K with KᵀK = K, symmetric and idempotent: a small change of the stream is
    projected, off the mean and off the direction that the stream has already, and divided by σ.

    (`layer_norm_derivative` proves that J is the derivative. No model records ẑ before its gain,
    so what is seen on models is `layer_norm_jacobian_along_stream`.)
    """
    return Statement(matmul(Transpose(shadow), shadow), shadow, given=NORMALISED, on_models=False)


@theorem(
    title="The Jacobian of LayerNorm is zero along the ones vector and along the output",
    chapter=4,
    source=XU,
    covers=("S3-006",),
)
def layer_norm_jacobian_null_space() -> Statement:
    """K sends the ones and ẑ to zero, here side by side as the two columns of one matrix. A shift
    of all entries is taken off with the mean; to grow in one's own direction changes the length,
    which is normalised away.
    """
    both = sympy.BlockMatrix([[OneMatrix(d, 1), Transpose(unit)]])
    return Statement(matmul(shadow, both), ZeroMatrix(d, 2), given=NORMALISED, on_models=False)


@theorem(
    title="Growing along its own direction changes a LayerNorm output only through ε",
    chapter=4,
    source=XU,
    covers=("S3-006",),
)
def layer_norm_jacobian_along_stream() -> Statement:
    """ẑ K = (ε/σ²) ẑ, where σ² includes ε: for ε = 0 the direction of the centred stream is in the
    null space of the Jacobian (to grow in one's own direction changes nothing), and with ε nearly
    so.
    """
    normed = LayerNorm(z, eps)
    shadow = matadd(centring, matmul(-1 / d, Transpose(normed), normed))
    left = matmul(HadamardPower(reciprocal_deviation(z), 2), normed)
    return Statement(matmul(normed, shadow), matmul(eps, left), bind=ONE_ROW)


@theorem(
    title="The trace of σ times the Jacobian is d - 2",
    chapter=4,
    source=XU,
    covers=("S3-006",),
)
def layer_norm_jacobian_trace() -> Statement:
    """P has trace d - 1, and ẑᵀẑ/d has trace 1, as the squared length of ẑ is d. Of the d numbers
    by which a small change is multiplied along the axes of K, d - 2 are one and two are zero: K is
    a projection, and its trace counts what it keeps.
    """
    return Statement(Trace(shadow), d - 2, given=NORMALISED[:1], on_models=False)


@theorem(
    title="The Jacobian of LayerNorm has rank d - 2",
    chapter=4,
    source=XU,
    covers=("S3-006",),
)
def layer_norm_jacobian_rank() -> Property:
    """The rank of a projection is its trace, and so the Jacobian has rank d - 2: LayerNorm maps to
    a sphere in a hyperplane, a surface of dimension d - 2, and so many directions a small change
    has there. Two of d are lost, that of ones and that of the stream itself.

    (For ε = 0. With ε the second is shrunk by ε/σ² and not lost, and the rank is d - 1, though to a
    computer it looks like d - 2.)
    """
    theorems = (layer_norm_jacobian_is_projection, layer_norm_jacobian_trace)
    proved = [each.statement() for each in theorems]
    return Property(
        Fact("rank_at_most", shadow, d - 2),
        given=[(stated.lhs, stated.rhs) for stated in proved],
        on_models=False,
    )


@theorem(
    title="The derivative of LayerNorm",
    chapter=4,
    source=XU,
    covers=("S3-006",),
)
def layer_norm_derivative() -> Statement:
    """Move a row z of the stream a little, along δ. What LayerNorm makes of it moves by (1/σ)(δ P −
    (δ ẑᵀ/d) ẑ): δ less its mean, less its part along the normalised row ẑ, divided by σ. With ε >
    0, σ² includes it, and ẑ is the row as it is normalised with it. So a norm passes on a change of
    direction and forgets a change of length: steering along the stream itself does next to nothing.

    The left side is the derivative itself, by the rules of calculus.
    """
    delta, normed = MatrixSymbol("delta", 1, d), LayerNorm(z, eps)
    along = matmul(-1 / d, matmul(delta, Transpose(normed)), normed)
    return Statement(
        differential(normed, z, delta),
        matmul(reciprocal_deviation(z), matadd(matmul(delta, centring), along)),
        bind=({"z": Source("resid_pre", rows=1), "delta": Source("attn_out", rows=1)},),
    )
