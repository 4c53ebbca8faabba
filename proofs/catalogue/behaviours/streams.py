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
    """The stream is x plus L writes, the rows of W. Its squared norm is ‖x‖² plus twice the
    products of x with each write plus all products of two writes: the squares ‖w_l‖² and the cross
    terms. How fast the norm grows is decided by the cross terms.
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
    """Let L writes have the squared norm c each and be orthogonal to each other and to the
    embedding, as random directions nearly are. Then ‖x‖² + c L is the squared norm: a growth like
    √l, and none that is exponential.
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
    """A layer that adds κ times the stream and something orthogonal of the squared norm ρ ‖x‖²
    multiplies the squared norm by (1 + κ)² + ρ, and L such layers by its L-th power: exponential
    growth needs writes that grow with the stream. Behind a norm a layer does not see how large the
    stream is, so its weights must grow from layer to layer.
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
    """The norm is measured after each layer of `gpt2_tiny`; the embedding before the first is no
    layer's output. Four layers say little about a law: both curves fit them well, and a third of
    the random models, whose writes are unrelated, pass as well. It would take a model of 20 layers.
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
    """Where the stream grows and each layer reads it through a norm, the weights that write must
    grow, and those that read need not. Norms are folded into the reading weights first; without
    that a gain could hide the growth. Output weights are W_O and W_out, input weights W_Q, W_K and
    W_in; the norm of W_O alone depends on how the scale of a head is shared with W_V.
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
    """The N rows of X have length one. The sum of the cosines of all pairs of different rows is
    ‖Σ_i x_i‖² - N: expand the square and take away the N products of a row with itself. So the mean
    cosine takes one sum over the rows, and no N² products, and it is never less than -1/(N - 1).
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
    """The product of two rows is the sum over dimensions of the products of their entries, and so
    is the sum over all pairs: each dimension contributes (Σ_i x_ik)² - Σ_i x_ik². A dimension in
    which all rows are large and of one sign, a rogue dimension, contributes nearly all: cosines
    then measure that one dimension.
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
    """If directions were spread evenly, two streams would have a cosine of about zero, give or take
    1/√d, which is 0.09 here. A mean well above that is anisotropy.
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
    """In large models a few dimensions are many times larger than the others, at all positions.
    They are said to come with size and with the frequency of tokens; here d is 128, and the largest
    of 128 normal dimensions is about 1.25 times the median in the mean over 64 positions.
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
    """If every query attends to position 0 alone, A = 1 e₀ᵀ, the head writes the same row at every
    position: x₀ W_OV, whatever stands elsewhere. As a first position sees only itself, x₀ is the
    same in all texts that begin alike, and the head is a bias. Where x₀ W_OV = 0 it does nothing.
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
    """A query has the weight a = s/(s + t) on the sink, whose moved value is u = x₀ W_OV, and
    1 - a = t/(s + t) on the rest, whose mean moved value is v. The update a u + (1 - a) v has
    ‖Δx‖² ≤ a ‖u‖² + (1 - a) ‖v‖²: near nothing if a is near one and the sink's value near zero.
    Both are needed; attention alone does not show a head that does nothing.
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
    """A sink takes attention that a head has no use for: a_i0 ≈ 1 and x₀ W_OV ≈ 0. The bundled
    models were trained on windows without a token that begins every text, so the first position
    holds any token, and only position marks it.
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
    """The step of a uniform grid is the largest entry over 127, and the error of every entry is up
    to half a step (`quantisation_error`). So a dimension that is ten times larger than the others
    makes their errors ten times larger, and to keep it apart gives that back. It takes a rogue
    dimension.
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
    """Against a search over all points of the grid, on rows of the embedding; the error is at most
    half a step. A planted dimension of 100 makes the step larger as the theorem says.
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
    """The mean over all pairs of rows of the embedding, each cosine by itself; the parts of the
    dimensions; and sizes over the median, on rows of which one dimension was made large.
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
    """The scores of every head of the first layer from recorded patterns and values, one query
    after the other; the norms of the stream; and planted norms that double from layer to layer.
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
