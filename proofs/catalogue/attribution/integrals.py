"""Chapter 8: attribution by gradients along a line, and by gradients that are blurred by noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum, sqrt

import numpy as np
from sympy import (
    MatrixExpr,
    Rational,
    Transpose,
    ZeroMatrix,
    symbols,
)

from otimes.algebra.language.linear import Family, HeadSum, matadd, matmul
from otimes.numeric.attribution.gradients import (
    integrated_gradients,
    nodes,
    smooth_grad,
)
from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.attribution.gradients import (
    a_logit,
    cube,
    cube_slope,
    delta,
    half,
    likeliest,
    of_another_order,
    quadric,
    square,
    square_slope,
    x,
    y,
)
from otimes.proofs.catalogue.symbols import d, size
from otimes.proofs.claims import ErrorLaw, Method, Statement, Trial
from otimes.proofs.theorem import theorem

SUNDARARAJAN = "Sundararajan, Taly and Yan 2017, “Axiomatic Attribution for Deep Networks”"
SMILKOV = "Smilkov et al. 2017, “SmoothGrad: removing noise by adding noise”"
UNIT = 2.0**-53


# -- along a line ----------------------------------------------------------------------------------


@theorem(
    title="Integrated gradients are complete",
    chapter=8,
    source=f"{SUNDARARAJAN}, proposition 1",
    covers=("S3-028",),
)
def integrated_gradients_are_complete() -> Statement:
    """Integrated gradients explain a number f(x) by scores for its inputs that sum to f(x) − f(y),
    where y is a chosen baseline: integrate the gradient along the straight line from y to x and
    multiply by x − y. That the sum is exact (complete) is the fundamental theorem of calculus.

    Here it is proved for a polynomial of degree three, f = t(x ⊗ x ⊗ x). Its gradient is quadratic
    along the line, so Simpson's rule integrates it exactly and the theorem becomes algebra. Lower
    degrees are included if one coordinate of x and y is 1.

    The baseline is part of the question. Another y gives other scores.
    """
    along = matadd(x, matmul(-1, y))
    middle = matmul(half, matadd(x, y))
    ends, between = (cube_slope(y, along), cube_slope(x, along)), cube_slope(middle, along)
    simpson = matmul(Rational(1, 6), matadd(ends[0], matmul(4, between), ends[1]))
    return Statement(simpson, matadd(cube(x), matmul(-1, cube(y))), on_models=False)


def _missing(step: float, rule: str) -> float:
    """Return what integrated gradients with 1/step steps leave of completeness, on a model."""
    found = integrated_gradients(
        load_model("one_layer"), sample_tokens(6), n_steps=round(1 / step), rule=rule
    )
    return abs(found.missing or 0.0)


@theorem(
    title="Integrated gradients on a model, by a sum over right ends",
    chapter=8,
    source=f"{SUNDARARAJAN}, §5",
    covers=("S3-028",),
)
def integrated_gradients_right_sum() -> ErrorLaw:
    """Integrated gradients are computed by a sum over steps along the line from the baseline to the
    input. With the right end of each step, as in the original paper, the scores miss f(x) − f(x′)
    by an error that falls in proportion to the step h. Measured on a trained model.

    So a fixed number of steps, such as 20, is not enough by itself. The missing part can be
    computed and should be looked at.
    """
    return ErrorLaw(
        r"\sum_i \mathrm{IG}_i - (f(x) - f(x'))",
        lambda step: _missing(step, "right"),
        order=1,
        start=1 / 8,
        halvings=5,
    )


@theorem(
    title="Integrated gradients on a model, by a sum over midpoints",
    chapter=8,
    source="Davis and Rabinowitz 1984, Methods of Numerical Integration, §2.1",
    covers=("S3-028",),
)
def integrated_gradients_midpoint_sum() -> ErrorLaw:
    """Computing integrated gradients with the middle of each step instead of its right end costs
    the same, and the error falls with the square of the step h. Measured on a trained model.

    Halving the step then divides the error by four instead of two. Gauss nodes do better still.
    """
    return ErrorLaw(
        r"\sum_i \mathrm{IG}_i - (f(x) - f(x'))",
        lambda step: _missing(step, "midpoint"),
        order=2,
        start=1 / 8,
        halvings=5,
    )


# -- blurred ---------------------------------------------------------------------------------------

G = size("G")
g = symbols("g", integer=True)
noise = Family("z", (G,), d, 1)
CENTRED = (HeadSum(noise[g], (g, G)), ZeroMatrix(d, 1))


def mean(of: MatrixExpr) -> MatrixExpr:
    """Return the mean over G points."""
    return matmul(1 / G, HeadSum(of, (g, G)))


@theorem(
    title="SmoothGrad is the gradient of the blurred function",
    chapter=8,
    source=SMILKOV,
    covers=("S3-029",),
)
def smooth_grad_is_gradient_of_blurred() -> Statement:
    """SmoothGrad, the mean of gradients at noisy copies of the input, is the gradient of the
    blurred function, the mean of f at noisy copies. A mean and a derivative may be exchanged. In
    the formula f is a cubic form t(x ⊗ x ⊗ x), the noise is any G points z[g], and the difference
    of the blurred function at x ± δ is twice its gradient along δ, plus a cubic part that is
    negligible for small δ.

    So SmoothGrad explains a smoother function than the model.
    """
    at = matadd(x, noise[g])
    plus, minus = cube(matadd(at, delta)), cube(matadd(at, matmul(-1, delta)))
    return Statement(
        matadd(mean(plus), matmul(-1, mean(minus))),
        matadd(matmul(2, mean(cube_slope(at, delta))), matmul(2, cube(delta))),
        on_models=False,
    )


@theorem(
    title="SmoothGrad of a quadratic is its gradient",
    chapter=8,
    source=SMILKOV,
    covers=("S3-029",),
)
def smooth_grad_of_quadratic() -> Statement:
    """SmoothGrad averages the gradient over noisy copies of the input. For a linear or quadratic
    function and noise of mean zero this is the ordinary gradient: the gradient xᵀ(Q + Qᵀ) + b is
    affine in x, so the noise averages out. The noise points are z[g], with sum zero.

    So what SmoothGrad smooths away comes from third and higher derivatives only.
    """
    return Statement(
        mean(square_slope(matadd(x, noise[g]))), square_slope(x), given=(CENTRED,), on_models=False
    )


@theorem(
    title="Noise adds the curvature of a quadratic to its mean",
    chapter=8,
    source=SMILKOV,
    covers=("S3-029",),
)
def blur_of_quadratic() -> Statement:
    """Averaging a quadratic function over noise of mean zero adds a constant to it, the mean of
    εᵀQε, which is σ² tr Q for noise of variance σ² in every direction. In the formula z[g] are the
    noise points. The function is xᵀQx + bx.

    The added amount is the same everywhere, so the gradient does not change
    (`smooth_grad_of_quadratic`).
    """
    curvature = mean(matmul(Transpose(noise[g]), quadric, noise[g]))
    return Statement(
        mean(square(matadd(x, noise[g]))),
        matadd(square(x), curvature),
        given=(CENTRED,),
        on_models=False,
    )


@theorem(
    title="SmoothGrad differs from the gradient by the square of the noise",
    chapter=8,
    source=SMILKOV,
    covers=("S3-029",),
)
def smooth_grad_error() -> ErrorLaw:
    """SmoothGrad, the mean of gradients at noisy copies of the input, differs from the gradient by
    an amount that falls with the square of the noise level σ. Measured on a trained model, with
    noise in pairs ±ε.

    So a large σ gives the gradient of another, smoother function, and a small one gives the
    ordinary gradient at many times the cost.
    """

    def error(sigma: float) -> float:
        question, embed, gradient, direction = a_logit()
        rows = [question.gradient(embed + sign * sigma * direction)[1] for sign in (1, -1)]
        return float(np.linalg.norm((rows[0] + rows[1]) / 2 - gradient))

    return ErrorLaw(
        r"\mathbb E \nabla f(x + \sigma\varepsilon) - \nabla f(x)",
        error,
        order=2,
        start=0.02,
        halvings=5,
        small=r"\sigma",
    )


# -- functions -------------------------------------------------------------------------------------


@theorem(
    title="integrated_gradients: gradients along a line",
    chapter=8,
    source=SUNDARARAJAN,
    covers=("S3-028",),
)
def integrated_gradients_method() -> Method:
    """`integrated_gradients` computes the weighted sum of gradients along the line from a baseline,
    for several integration rules. It is compared with the sum written out for each rule.

    That the scores sum to the change of the output is measured separately
    (`integrated_gradients_right_sum`, `integrated_gradients_midpoint_sum`).
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        question = likeliest(model, tokens)
        x = question.embed()
        for rule in ("gauss", "midpoint", "right"):
            scores = integrated_gradients(model, tokens, n_steps=3, rule=rule)
            found = scores.values
            logit = float(model.forward(tokens, ["logits"])["logits"][-1].max())
            whole = logit - float(question.value(np.zeros_like(x)))
            doubt = 2 * of_another_order(model, abs(logit) + abs(whole))
            yield Trial(f"the change of the logit, {rule}", scores.whole or 0.0, whole, doubt)
            terms = [
                share * question.gradient(t * x)[1] * x
                for t, share in zip(*nodes(3, rule), strict=True)
            ]
            plain = [fsum(np.ravel([each[at] for each in terms])) for at in range(len(x))]
            sizes = sum(np.abs(each).sum(axis=1) for each in terms)
            bound = gamma(model.d_model + 10, UNIT) * sizes
            yield Trial(f"three nodes, {rule}", found, np.array(plain), bound)

    rests = ("integrated_gradients_are_complete", "integrated_gradients_midpoint_sum")
    return Method("ot.integrated_gradients", rests, trials)


@theorem(
    title="smooth_grad: the mean of gradients at noisy points",
    chapter=8,
    source=SMILKOV,
    covers=("S3-029",),
)
def smooth_grad_method() -> Method:
    """`smooth_grad` computes the mean of gradients at noisy copies of the input. It is compared
    with the same noise drawn again from its seed and the mean written out, as norms and times the
    input.

    With few samples the mean is mostly noise. The function reports its standard error.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        question = likeliest(model, tokens)
        x, samples = question.embed(), 3
        rng = np.random.default_rng(0)
        sigma = 0.1 * float(np.ptp(x))
        drawn = [question.gradient(x + sigma * rng.standard_normal(x.shape))[1] for _ in range(3)]
        largest = np.abs(drawn).max(axis=0)
        # A running mean makes three roundings a sample, each of a number of at most twice this.
        doubt = gamma(6 * samples, UNIT) * largest
        means = [[fsum(entries) / samples for entries in line] for line in np.stack(drawn, 2)]
        found = smooth_grad(model, tokens, n_samples=samples).values
        lengths = np.array([sqrt(fsum(entry * entry for entry in line)) for line in means])
        bound = np.linalg.norm(doubt, axis=1) + gamma(model.d_model + 4, UNIT) * lengths
        yield Trial("lengths", found, lengths, bound)
        found = smooth_grad(model, tokens, n_samples=samples, score="times input").values
        plain = np.array([fsum(a * b) for a, b in zip(np.array(means), x, strict=True)])
        each = gamma(model.d_model + 2, UNIT) * np.abs(means) + doubt
        yield Trial("times input", found, plain, (each * np.abs(x)).sum(axis=1))

    rests = ("smooth_grad_is_gradient_of_blurred", "smooth_grad_of_quadratic", "smooth_grad_error")
    return Method("ot.smooth_grad", rests, trials)
