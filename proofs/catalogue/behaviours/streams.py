"""Chapter 11: the residual stream of trained models: its norm, its direction, its outliers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum, log, sqrt

import numpy as np
import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, Trace, Transpose, ZeroMatrix

from otimes.algebra.language.linear import OneHot, matadd, matmul
from otimes.numeric.behaviours.precision import quantisation_rmse, quantise
from otimes.numeric.behaviours.streams import (
    anisotropy,
    attention_sinks,
    cosine_by_dimension,
    norm_growth,
    rogue_dimensions,
    stream_norms,
    weight_norms,
)
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.attention_head.patterns import entrywise
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import L, X, d, n, size
from otimes.proofs.claims import (
    Bound,
    Load,
    Method,
    Observation,
    Observed,
    Square,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

BEHAVIOURS = f"{PRIMER}, “Residual Stream”"
HEIMERSHEIM = "Heimersheim and Turner 2023, “Residual stream norms grow exponentially”"
ETHAYARAJH = "Ethayarajh 2019, “How Contextual are Contextualized Word Representations?”"
TIMKEY = "Timkey and van Schijndel 2021, “All Bark and No Bite”"
SINKS = "Xiao et al. 2024, “Efficient Streaming Language Models with Attention Sinks”"
DETTMERS = "Dettmers et al. 2022, “LLM.int8()”"
UNIT = 2.0**-53
PROMPT = 64

x, W = MatrixSymbol("x", 1, d), MatrixSymbol("W", L, d)
ones = OneMatrix(1, L)


def _squared(row: sympy.MatrixExpr) -> sympy.Expr:
    return Trace(matmul(row, Transpose(row)))


# -- growth of the norm ----------------------------------------------------------------------------


@theorem(
    title="The norm after all writes: squares and cross terms",
    chapter=11,
    convention="row",
    source=f"{BEHAVIOURS}; {HEIMERSHEIM}",
    covers=("S3-121",),
)
def norm_after_writes() -> Statement:
    """The squared norm of the residual stream after L writes (rows of W) is ‖x‖² plus twice the dot
    products of x with each write, plus the dot products of all pairs of writes.

    So the growth of the stream is decided by how writes align with the stream and with each other.
    Norms of layers do not simply add.
    """
    writes = matmul(ones, W)
    crossed = matmul(ones, W, Transpose(W), Transpose(ones))
    return Statement(
        _squared(matadd(x, writes)),
        _squared(x) + 2 * Trace(matmul(x, Transpose(writes))) + Trace(crossed),
        on_models=False,
    )


@theorem(
    title="Orthogonal writes of one size: the norm grows like the root of the depth",
    chapter=11,
    convention="row",
    source=f"{BEHAVIOURS}; {HEIMERSHEIM}",
    covers=("S3-121",),
)
def orthogonal_writes_add_squares() -> Statement:
    """If L writes to the stream have equal length √c and are orthogonal to each other and to the
    embedding, the squared norm grows by c with each: ‖x‖² + cL. So the norm grows like the square
    root of the depth. The writes are the rows of W and x is the embedding.

    Random directions are nearly like this. Growth that is exponential in depth needs something else
    (`proportional_write_multiplies`).
    """
    c = sympy.Symbol("c", positive=True)
    return Statement(
        _squared(matadd(x, matmul(ones, W))),
        _squared(x) + c * L,
        given=(
            (matmul(W, Transpose(W)), matmul(c, Identity(L))),
            (matmul(x, Transpose(W)), ZeroMatrix(1, L)),
        ),
        on_models=False,
    )


@theorem(
    title="A write along the stream and in proportion to it multiplies its norm",
    chapter=11,
    convention="row",
    source=f"{BEHAVIOURS}; {HEIMERSHEIM}",
    covers=("S3-121",),
)
def proportional_write_multiplies() -> Statement:
    """If a layer adds κ times the stream and something orthogonal of squared norm ρ‖x‖², it
    multiplies the squared norm of the stream by (1 + κ)² + ρ. L such layers multiply it by the L-th
    power: exponential growth. The stream is the row x and the orthogonal part w.

    So exponential growth needs writes that grow with the stream. Behind a norm a layer does not see
    the size of the stream, so its weights must grow from layer to layer.
    """
    kappa, rho = sympy.symbols("kappa rho", real=True)
    w = MatrixSymbol("w", 1, d)
    return Statement(
        _squared(matadd(x, matmul(kappa, x), w)),
        ((1 + kappa) ** 2 + rho) * _squared(x),
        given=(
            (matmul(x, Transpose(w)), ZeroMatrix(1, 1)),
            (matmul(w, Transpose(w)), matmul(rho, x, Transpose(x))),
        ),
        on_models=False,
    )


def _see_growth(load: Load) -> Observed:
    norms = stream_norms(load("gpt2_tiny"), sample_tokens(PROMPT)).values
    found = norm_growth(norms[1:])
    figure = (
        f"norms of the stream of gpt2_tiny: {norms[0]:.1f} embedded, then "
        f"{', '.join(f'{each:.1f}' for each in norms[1:])} after each layer, a factor of "
        f"{np.exp(found.rate):.2f} for each; an exponential explains {found.exponential:.3f} of "
        f"the variance of log ‖x‖, a root {found.square_root:.3f} of that of ‖x‖²"
    )
    better = found.exponential - found.square_root
    return Observed(figure, {"rate": found.rate, "exponential minus root": better})


@theorem(
    title="Does the norm of the stream grow exponentially?",
    chapter=11,
    source=f"{BEHAVIOURS}; {HEIMERSHEIM}",
    covers=("S3-121",),
)
def stream_grows_exponentially() -> Observation:
    """Does the norm of the residual stream grow exponentially with depth, as was observed in GPT-2?
    It is measured after each layer of `gpt2_tiny`, and compared with growth like the square root.

    Four layers say little: both curves fit well, and a third of the models with random weights pass
    as well. A model of about 20 layers would be needed.
    """
    return Observation(
        "log ‖x‖ is nearer to a line in the layer than ‖x‖² is, and rises",
        _see_growth,
        {"rate": 0.0, "exponential minus root": 0.0},
        outcome="seen at random too",
    )


def _see_weights(load: Load) -> Observed:
    found = weight_norms(load("gpt2_tiny"))
    layers = np.arange(found.values.shape[1])
    slopes = {
        name: float(np.polyfit(layers, np.log(row), 1)[0])
        for name, row in zip(found.labels["weight"], found.values, strict=True)
    }
    writes = min(slopes["W_O"], slopes["W_out"])
    reads = max(abs(slopes[name]) for name in ("W_Q", "W_K", "W_in"))
    said = ", ".join(f"{name} {np.exp(slope) - 1:+.0%}" for name, slope in slopes.items())
    values = {
        "slope of the writing weights": writes,
        "that less twice the reading": writes - 2 * reads,
    }
    return Observed(f"growth of the norms of weights per layer of gpt2_tiny: {said}", values)


@theorem(
    title="Do output weights grow with depth, and input weights not?",
    chapter=11,
    source=f"{BEHAVIOURS}; {HEIMERSHEIM}",
    covers=("S3-122",),
)
def output_weights_grow() -> Observation:
    """Do the weights that write to the stream grow with depth, while those that read it do not? If
    the stream grows and layers read it through a norm, they should. Compared are W_O and W_out with
    W_Q, W_K and W_in, with all norms folded into the reading weights, since a gain could hide the
    growth.

    The norm of W_O alone depends on how the scale of a head is divided between W_V and W_O.
    """
    return Observation(
        "the logarithms of the norms of W_O and W_out rise with the layer, more than twice as fast "
        "as those of W_Q, W_K and W_in change",
        _see_weights,
        {"slope of the writing weights": 0.0, "that less twice the reading": 0.0},
        outcome="not seen",
    )


# -- anisotropy and rogue dimensions ---------------------------------------------------------------

N = size("N")
units = MatrixSymbol("X", N, d)
gram = matmul(units, Transpose(units))
column = OneMatrix(N, 1)
lengths_one = (entrywise(Identity(N), gram), Identity(N))


@theorem(
    title="The mean cosine is the norm of the mean direction",
    chapter=11,
    convention="row",
    source=f"{BEHAVIOURS}; {ETHAYARAJH}",
    covers=("S3-126",),
)
def anisotropy_is_norm_of_mean() -> Statement:
    """The mean cosine between N vectors can be computed from their sum: for rows x_i of length one,
    the cosines of all ordered pairs of different rows sum to ‖Σ_i x_i‖² − N. So one sum over the
    rows replaces N² dot products.

    A mean cosine above zero, called anisotropy, means that the vectors point in a common direction.
    It is never below −1/(N − 1).
    """
    apart = minus(gram, entrywise(Identity(N), gram))
    total = matmul(Transpose(column), units)
    return Statement(
        Trace(matmul(Transpose(column), apart, column)),
        _squared(total) - N,
        given=(lengths_one,),
        on_models=False,
    )


@theorem(
    title="A cosine is a sum over dimensions",
    chapter=11,
    convention="row",
    source=f"{BEHAVIOURS}; {TIMKEY}, §3",
    covers=("S3-125", "S3-126"),
)
def cosine_is_sum_over_dimensions() -> Statement:
    """A cosine similarity is a sum over dimensions, and each dimension k contributes (Σ_i x_ik)² −
    Σ_i x_ik² to the sum over all pairs of rows.

    So one dimension in which all vectors are large and of the same sign, a rogue dimension, can
    contribute nearly everything. Cosine similarities then measure this one dimension. Subtract the
    mean, or standardise, before comparing.
    """
    sums = matmul(Transpose(column), units)
    squares = matmul(Transpose(column), entrywise(units, units))
    by_dimension = minus(entrywise(sums, sums), squares)
    return Statement(
        Trace(matmul(by_dimension, OneMatrix(d, 1))),
        Trace(matmul(Transpose(column), minus(gram, entrywise(Identity(N), gram)), column)),
        on_models=False,
    )


def _final(model: Model) -> np.ndarray:
    stream: np.ndarray = model.forward(sample_tokens(PROMPT), ["final"])["final"]
    return stream


NAMES = ("two_layer", "induction", "gpt2_tiny")


def _see_anisotropy(load: Load) -> Observed:
    found = {name: anisotropy(_final(load(name))) for name in NAMES}
    said = ", ".join(f"{name} {cosine:.2f}" for name, cosine in found.items())
    figure = f"mean cosine of the last stream at different positions: {said}"
    return Observed(figure, {"smallest mean cosine": min(found.values())})


@theorem(
    title="Do the streams of trained models lie in a cone?",
    chapter=11,
    source=f"{BEHAVIOURS}; {ETHAYARAJH}",
    covers=("S3-126",),
)
def streams_are_anisotropic() -> Observation:
    """Do the residual streams of trained models point in a common direction? If directions were
    spread evenly, two streams would have a cosine of about zero, give or take 1/√d, which is 0.09
    here. A mean cosine well above that is anisotropy (`anisotropy_is_norm_of_mean`).
    """
    return Observation(
        "in every model with two layers or more the mean cosine of the last stream at different "
        "positions of the sample is more than 0.1",
        _see_anisotropy,
        {"smallest mean cosine": 0.1},
    )


def _see_rogue(load: Load) -> Observed:
    found = {}
    for name in NAMES:
        rows = _final(load(name))
        share = cosine_by_dimension(rows)
        found[name] = (float(rogue_dimensions(rows).values.max()), share.max() / anisotropy(rows))
    said = ", ".join(
        f"{name} {size:.1f} (and {part:.0%} of the mean cosine from one dimension)"
        for name, (size, part) in found.items()
    )
    figure = f"largest dimension of the last stream over the median: {said}"
    return Observed(figure, {"smallest ratio": min(size for size, _ in found.values())})


@theorem(
    title="Are there rogue dimensions in the trained models?",
    chapter=11,
    source=f"{BEHAVIOURS}; {TIMKEY}; Kovaleva et al. 2021, “BERT Busters”",
    covers=("S3-125",),
)
def rogue_dimensions_seen() -> Observation:
    """Do the trained models have rogue dimensions, coordinates of the stream that are many times
    larger than the others at all positions? In large models they exist, and are said to come with
    size and token frequency. Here d is 128. Of 128 coordinates with normal entries the largest has
    about 1.25 times the median size, averaged over 64 positions.
    """
    return Observation(
        "in every model with two layers or more some dimension of the last stream is more than "
        "three times the median in mean absolute value",
        _see_rogue,
        {"smallest ratio": 3.0},
        outcome="not seen",
    )


# -- sinks -----------------------------------------------------------------------------------------

W_OV = MatrixSymbol("W_OV", d, d)
first = OneHot(0, n)
to_sink = matmul(OneMatrix(n, 1), Transpose(first))


@theorem(
    title="A head that attends to one position adds a constant",
    chapter=11,
    convention="row",
    source=f"{BEHAVIOURS}; {SINKS}",
    covers=("S3-127",),
)
def sink_adds_a_constant() -> Statement:
    """If every query of a head attends to position 0 only, the head writes the same row x_0 W_OV at
    every position, whatever the rest of the text is. Since the first position sees only itself, x_0
    is the same for all texts that begin alike, so the head acts as a bias.

    If x_0 W_OV = 0 it does nothing. This is how a head can be switched off.
    """
    return Statement(
        matmul(to_sink, X, W_OV),
        matmul(OneMatrix(n, 1), Transpose(first), X, W_OV),
        on_models=False,
    )


@theorem(
    title="What a sink leaves of a head's update is bounded by the values",
    chapter=11,
    convention="row",
    source=f"{BEHAVIOURS}; {SINKS}; Jensen's inequality for a square",
    covers=("S3-127",),
)
def sink_bounds_the_update() -> Bound:
    """A head that gives most of its attention to a sink, a position whose moved value u is nearly
    zero, writes almost nothing. With weight a = s/(s + t) on the sink and mean moved value v of the
    rest, its output a u + (1 − a) v satisfies ‖·‖² ≤ a‖u‖² + (1 − a)‖v‖².

    Both are needed, weight near 1 and a small value at the sink. The attention pattern alone does
    not show that a head does nothing.
    """
    s, t = sympy.symbols("s t", positive=True)
    u, v = MatrixSymbol("u", 1, d), MatrixSymbol("v", 1, d)
    a, b = s / (s + t), t / (s + t)
    return Bound(
        _squared(matadd(matmul(a, u), matmul(b, v))),
        a * _squared(u) + b * _squared(v),
        because=(Square(minus(u, v), a * b),),
        tight={"u": [[1]], "v": [[1]], "s": 1, "t": 1},
        on_models=False,
    )


def _see_sinks(load: Load) -> Observed:
    parts, best = [], []
    for name in NAMES:
        attention, value, update = attention_sinks(load(name), sample_tokens(PROMPT)).values
        small = (attention > 0.5) & (value < 0.5)
        best.append(float(small.sum()))
        parts.append(
            f"{name} {attention.max():.2f} (value {value.flat[attention.argmax()]:.2f}, update "
            f"{update.flat[attention.argmax()]:.2f})"
        )
    figure = f"largest mean attention to the first position: {', '.join(parts)}"
    return Observed(figure, {"sinks in the model with fewest": min(best)})


@theorem(
    title="Are there attention sinks in the trained models?",
    chapter=11,
    source=f"{BEHAVIOURS}; {SINKS}",
    covers=("S3-127",),
)
def attention_sinks_seen() -> Observation:
    """Do the trained models have attention sinks, where a head parks attention that it has no use
    for? A sink needs a_i0 ≈ 1 and x_0 W_OV ≈ 0 (`sink_bounds_the_update`). The bundled models were
    trained on windows without a token that begins every text, so the first position can hold any
    token, and only its position marks it.
    """
    return Observation(
        "every model with two layers or more has a head whose mean attention to the first position "
        "is above a half, where the moved value is less than half of the mean one",
        _see_sinks,
        {"sinks in the model with fewest": 0.0},
        outcome="not seen",
    )


# -- rounding --------------------------------------------------------------------------------------


def _see_rounding(load: Load) -> Observed:
    parts, ratios = [], []
    for name in NAMES:
        rows = _final(load(name))
        largest = int(rogue_dimensions(rows).values.argmax())
        whole, kept = (quantisation_rmse(rows, 8, keep) for keep in ((), (largest,)))
        ratios.append(whole / kept)
        parts.append(f"{name} {whole / kept:.2f}")
    figure = f"8-bit error of the last stream over that with one dimension kept: {', '.join(parts)}"
    return Observed(figure, {"smallest ratio": min(ratios)})


@theorem(
    title="Does a single dimension cost the others their precision?",
    chapter=11,
    source=f"{BEHAVIOURS}; {DETTMERS}; Bondarenko, Nagel and Blankevoort 2021",
    covers=("S3-128",),
)
def outlier_costs_precision() -> Observation:
    """Does one large coordinate cost all others their precision when activations are quantised? The
    step of a uniform 8-bit grid is the largest entry divided by 127, and errors are at most half a
    step (`quantisation_error`). A coordinate ten times larger than the others makes their errors
    ten times larger; storing it separately avoids this.

    The effect requires a rogue dimension.
    """
    return Observation(
        "in every model with two layers or more, the error in 8 bits is at least halved when the "
        "largest dimension is kept apart",
        _see_rounding,
        {"smallest ratio": 2.0},
        outcome="not seen",
    )


# -- functions -------------------------------------------------------------------------------------


@theorem(
    title="quantise: nearest points of the grid, at most half a step away",
    chapter=11,
    source=DETTMERS,
    covers=("S3-128",),
)
def quantise_method() -> Method:
    """`quantise` rounds activations to the nearest point of a uniform grid. It is compared with a
    search over all grid points, on rows of an embedding; the error is at most half a step. A
    planted coordinate of 100 makes the step larger as predicted (`outlier_costs_precision`).
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        rows = model.W_E[:2, :8] + 0.0
        step = float(np.abs(rows).max()) / 7
        grid = [step * number for number in range(-7, 8)]
        found = quantise(rows, 4)
        plain = [[min(grid, key=lambda at: abs(at - each)) for each in row] for row in rows]
        bound = gamma(8, UNIT) * step * 7
        yield Trial("nearest", found, np.array(plain), bound)
        over = np.maximum(np.abs(found - rows) - step / 2, 0.0)
        yield Trial("beyond half a step", over, np.zeros_like(over), bound)
        planted = rows.copy()
        planted[0, 0] = 100.0
        least = [100.0 / 7 * round(each / (100.0 / 7)) for each in planted.ravel()]
        plain_error = sqrt(fsum((a - b) ** 2 for a, b in zip(least, planted.ravel(), strict=True)))
        error = quantisation_rmse(planted, 4) * sqrt(planted.size)
        yield Trial("with an outlier", error, plain_error, gamma(60, UNIT) * (100 + plain_error))

    return Method("ot.quantise", ("quantisation_error", "rotation_leaves_product"), trials)


@theorem(
    title="anisotropy, cosine_by_dimension and rogue_dimensions, by loops over pairs",
    chapter=11,
    source=f"{ETHAYARAJH}; {TIMKEY}",
    covers=("S3-125", "S3-126"),
)
def anisotropy_method() -> Method:
    """`anisotropy`, `cosine_by_dimension` and `rogue_dimensions` measure how much vectors share a
    direction, which coordinates cause it, and which are unusually large. They are compared with
    loops over all pairs of rows of an embedding, with one coordinate made large for the last.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        rows = model.W_E[:5, :9] + 0.0
        norms = [sqrt(fsum(row * row)) for row in rows]
        pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
        shares = [
            fsum(rows[i][k] * rows[j][k] / (norms[i] * norms[j]) for i, j in pairs) / 20
            for k in range(9)
        ]
        few = gamma(60, UNIT) * 9
        yield Trial("mean cosine", 1 + anisotropy(rows), 1 + fsum(shares), few)
        yield Trial("by dimension", 1 + cosine_by_dimension(rows), 1 + np.array(shares), few)
        rows[:, 3] += 40
        sizes = [fsum(abs(each) for each in column) / 5 for column in rows.T]
        plain = np.array(sizes) / sorted(sizes)[4]
        yield Trial("over the median", rogue_dimensions(rows).values, plain, few * plain)

    rests = ("anisotropy_is_norm_of_mean", "cosine_is_sum_over_dimensions")
    return Method("ot.cosine_by_dimension", rests, trials)


@theorem(
    title="attention_sinks, stream_norms and norm_growth, by loops",
    chapter=11,
    source=f"{SINKS}; {HEIMERSHEIM}",
    covers=("S3-121", "S3-127"),
)
def stream_measures_method() -> Method:
    """`attention_sinks` scores heads by attention to the first position and the size of what they
    write; `stream_norms` and `norm_growth` measure the stream after each layer. They are compared
    with loops over recorded patterns and values, and with planted norms that double from layer to
    layer.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        norms = stream_norms(model, tokens).values
        last = model.forward(tokens, ["final"])["final"]
        lengths = [sqrt(fsum(row * row)) for row in last]
        bound = gamma(model.d_model + len(last) + 8, UNIT)
        yield Trial("last norm", norms[-1], fsum(lengths) / len(last), bound * max(lengths))
        growth = norm_growth([3.0 * 2**at for at in range(5)])
        yield Trial("rate", growth.rate, log(2), gamma(200, UNIT))
        if not model.n_layers:
            return
        places = model.forward(tokens, ["pattern.0", "v.0"])
        found = attention_sinks(model, tokens).values[:2, 0]
        later = len(tokens) - 1
        for head in range(model.n_heads):
            pattern, W_O = places["pattern.0"][head], model.part("W_O", 0)[head]
            attention = fsum(pattern[at + 1, 0] for at in range(later)) / later
            yield Trial(f"attention {head}", found[0, head], attention, bound)
            moved = [sqrt(fsum(each**2 for each in row @ W_O)) for row in places["v.0"][head]]
            plain = moved[0] * later / fsum(moved[1:])
            yield Trial(f"value {head}", found[1, head], plain, 8 * bound * plain * model.d_head)

    rests = ("sink_adds_a_constant", "norm_after_writes", "orthogonal_writes_add_squares")
    return Method("ot.attention_sinks", rests, trials)
