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
TWO_STREAMS = ({"Y": Source("embed", example=True)},)


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
    """LayerNorm normalises the vector of each position by itself: subtract the mean μ of its d
    entries, divide by their standard deviation σ (the root of the mean squared deviation plus a
    small ε), multiply entry by entry by a gain, and add a bias. The vector (1, 3), for example,
    becomes (−1, 1) before gain and bias.

    GPT-2 has such a norm before every attention layer, every MLP and the unembedding. No
    information moves between positions. Gain and bias (1 × d) are parameters; μ and σ are computed
    from the vector.
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
    """Multiplying normalised rows N entry by entry by the gain of a norm is a product with a
    diagonal matrix, N diag(γ). So of the four steps of LayerNorm (centre, scale, gain, bias) the
    gain is linear and can be combined with the weights that follow.

    Two slips are common. Written with a dot, (z − μ)/σ · γ looks like the dot product of two
    vectors, which is one number. And `std` divides by d − 1 in many libraries, where LayerNorm
    divides by d; no shape shows the error.
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
    """Subtracting from each row its mean is a linear map: a product with the fixed matrix P = I −
    11ᵀ/d. For d = 2 it is `[[1/2, −1/2], [−1/2, 1/2]]`.

    So the first step of LayerNorm can be combined with the weights before or after it. P is the
    same for every position and every prompt.
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
    """The matrix P = I − 11ᵀ/d, which subtracts from a row its mean, is an orthogonal projection:
    PᵀP = P, so it is symmetric and applying it twice is applying it once. It projects onto the rows
    with sum zero.

    So centring removes the part along (1, …, 1) and leaves everything at right angles to it as it
    is. The equation is stated for a stream X times PᵀP, which is compared on models.
    """
    return Statement(matmul(X, matmul(Transpose(centring), centring)), matmul(X, centring))


@theorem(
    title="Centring removes exactly one dimension",
    chapter=4,
    source=f"{BRODY}.1",
    covers=("S3-003",),
)
def centring_rank() -> Property:
    """Subtracting the mean of each row removes exactly one dimension, the direction (1, …, 1): the
    centred stream has rank at most d − 1, and this is reached with d or more positions.

    So nothing that a model writes along (1, …, 1) can be read behind a LayerNorm.
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
    """LayerNorm is RMSNorm applied to the centred stream: if every row has mean zero, the two norms
    are the same.

    So if everything that writes to the stream is centred in the weights, LayerNorm can be replaced
    by RMSNorm without any change of the logits (`centring_folds_into_writers`). It also means that
    facts about RMSNorm carry over to LayerNorm.
    """
    return Statement(LayerNorm(X, eps), RMSNorm(matmul(X, centring), eps))


@theorem(
    title="Without ε LayerNorm puts each row on the sphere of radius √d",
    chapter=4,
    source=f"{BRODY}.2",
    covers=("S3-004",),
)
def layer_norm_rescales_to_sqrt_d() -> Statement:
    """Without ε, LayerNorm gives every row the length √d: it divides the centred row by its length
    and multiplies by √d. So the direction of the centred row is kept and its length is forgotten.

    The normalised vectors of all positions lie on one sphere. With ε > 0 they lie slightly inside
    it (`layer_norm_squared_length`).
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
    """The output of LayerNorm has squared length d − ε d/σ², where σ² is the variance of the row
    plus ε. With ε = 0 it is d, so every position lies on the sphere of radius √d.

    With the usual ε of 10⁻⁵ the difference matters only for rows that are nearly constant: a row
    close to zero stays close to zero.

    The radius is √d because the variance is the mean over d entries; with d − 1 it would be √(d −
    1).
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
    """The output of LayerNorm, before the gain, is never longer than √d, however large the residual
    stream has grown. In the formula z (1 × d) is any row.

    So later layers read numbers of the same size as early layers do. A write of a given size
    therefore counts for less when the stream is long.
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
    """LayerNorm does not change if all entries of a row are shifted by the same number and
    multiplied by the same c > 0, provided that ε is multiplied by c². With ε = 0 this is exact
    invariance; with the usual ε = 10⁻⁵ it is nearly so if the variance of the row is much larger.
    In the formula v holds one shift for each position.

    So only the direction of the centred stream matters to what reads it. A negative factor changes
    the sign (`layer_norm_is_odd`).
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
    """LayerNorm without bias is odd: negating a row negates its output, since the standard
    deviation does not depend on the sign. So for a < 0 LayerNorm of a z is minus that of |a| z.

    A LayerNorm with a bias is not odd. Fold the bias into the weights first.
    """
    return Statement(LayerNorm(matmul(-1, X), eps), matmul(-1, LayerNorm(X, eps)))


@theorem(
    title="With ε, LayerNorm depends on the scale of a row",
    chapter=4,
    source="follows from the definition with ε",
    covers=("S3-005",),
)
def layer_norm_with_eps_sees_scale() -> NonIdentity:
    """With ε > 0, LayerNorm depends on the scale of its input, if only slightly. LN(cX) = LN(X)
    holds for ε = 0 only. In the formula c is any number.

    Where the stream is small, as at positions of a small model or after an ablation, ε counts, and
    “the scale does not matter” is no argument.
    """
    return NonIdentity(LayerNorm(matmul(c, X), eps), LayerNorm(X, eps))


@theorem(
    title="LayerNorm is not linear",
    chapter=4,
    source=f"{FRAMEWORK}, “Handling layer normalization”",
    covers=("S0-04", "S2-06"),
)
def layer_norm_is_not_linear() -> NonIdentity:
    """The LayerNorm of a sum is not the sum of the LayerNorms. For instance, LN(2z) = LN(z) when ε
    = 0. X and Y are any two streams (n × d).

    “LayerNorm can be folded into the weights” is said of its gain, its bias and its centring. Its
    scale cannot be folded.

    This explains most cases of components that do not add up to the logits: each was normalised by
    its own statistics. Dividing every component by the scale of the whole stream makes them add up
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
    """If every part of the stream is divided by the scale of the whole stream, the parts add up to
    the norm of the whole, exactly. In the formula 1/σ is computed from X + Y and applied to X and
    to Y.

    This is what “the scale is held fixed” means in direct logit attribution. The decomposition is
    exact for this forward pass. It does not say what would happen if a part were removed, since σ
    would change.

    For a LayerNorm, X and Y are the centred parts (`layer_norm_is_rms_norm_of_centred`).
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
    """A weight matrix that reads a LayerNorm gives the same as one that reads the centred stream,
    divided by σ at the end: LN(X) W = (1/σ)(X P) W, with one number σ for each position and P = I −
    11ᵀ/d.

    So weights can be analysed without the norm, with P multiplied in, and results are right up to a
    positive factor for each position.

    For scores these factors matter. A factor of the query acts on a whole row of scores, like a
    temperature. Factors of keys differ within a row and change the pattern.
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
    """For small changes of its input, LayerNorm (ε = 0) acts like an orthogonal projection divided
    by σ. With ẑ the normalised row (1 × d), its Jacobian is K/σ with K = P − ẑᵀẑ/d and KᵀK = K: K
    removes the change of the mean and the change along ẑ itself. The hypotheses say that ẑ has
    squared length d and mean zero.

    So a change of the stream's direction passes on, and a change of its length does not.

    (`layer_norm_derivative` proves that this is the derivative. Models do not record ẑ before its
    gain, so what is compared on models is `layer_norm_jacobian_along_stream`.)
    """
    return Statement(matmul(Transpose(shadow), shadow), shadow, given=NORMALISED, on_models=False)


@theorem(
    title="The Jacobian of LayerNorm is zero along the ones vector and along the output",
    chapter=4,
    source=XU,
    covers=("S3-006",),
)
def layer_norm_jacobian_null_space() -> Statement:
    """Two directions of change have no effect on a LayerNorm with ε = 0: adding the same number to
    all entries of a row, which is subtracted with the mean, and growing along the row itself, which
    is normalised away. In the formula the two are the columns of one matrix, which K = P − ẑᵀẑ/d
    (`layer_norm_jacobian_is_projection`) maps to zero.

    So gradients through the norm are zero in both directions.
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
    """If a row grows along its own direction, its LayerNorm changes only through ε: the matrix K =
    P − ẑᵀẑ/d, σ times the Jacobian, takes ẑ to (ε/σ²) ẑ. Here σ² includes ε. With ε = 0 the result
    is zero, and with the usual ε it is tiny. Here z (1 × d) is the row, and ẑ its LayerNorm.

    So scaling the stream at a position, or steering along it, hardly affects what is read behind
    the norm.
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
    """The matrix K = P − ẑᵀẑ/d, σ times the Jacobian of LayerNorm, has trace d − 2: P has trace d −
    1, and ẑᵀẑ/d has trace 1, since ẑ has squared length d.

    K is a projection (`layer_norm_jacobian_is_projection`), so its trace counts the dimensions that
    it keeps. Of d directions of change, d − 2 pass the norm and two do not.
    """
    return Statement(Trace(shadow), d - 2, given=NORMALISED[:1], on_models=False)


@theorem(
    title="The Jacobian of LayerNorm has rank d - 2",
    chapter=4,
    source=XU,
    covers=("S3-006",),
)
def layer_norm_jacobian_rank() -> Property:
    """The Jacobian of LayerNorm (ε = 0) has rank d − 2: its outputs lie on a sphere within the
    hyperplane of mean zero, a surface of dimension d − 2. The two lost directions are (1, …, 1) and
    the row itself.

    The hypotheses are two facts about K = P − ẑᵀẑ/d: it is a projection, and its trace is d − 2;
    the rank of a projection is its trace.

    With ε > 0 the second direction is shrunk by ε/σ² and not lost. The rank is then d − 1, though
    numerically it looks like d − 2.
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
    """If a row z of the stream moves a little, by δ (1 × d), its LayerNorm moves by (1/σ)(δP −
    (δẑᵀ/d) ẑ): δ without its mean and without its part along the normalised row ẑ, divided by σ.
    With ε > 0 both σ² and ẑ include it. The left side of the equation is the derivative by the
    rules of calculus.

    So a norm passes on changes of direction and forgets changes of length. Large streams, with
    large σ, react less to the same δ.
    """
    delta, normed = MatrixSymbol("delta", 1, d), LayerNorm(z, eps)
    along = matmul(-1 / d, matmul(delta, Transpose(normed)), normed)
    return Statement(
        differential(normed, z, delta),
        matmul(reciprocal_deviation(z), matadd(matmul(delta, centring), along)),
        bind=({"z": Source("resid_pre", rows=1), "delta": Source("attn_out", rows=1)},),
    )
