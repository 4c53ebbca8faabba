r"""Gradient-based attribution of a logit f to the embedding x.

    gradient norm           $\|∇_{x_i} f\|_p$
    gradient × input        $∇_{x_i} f · x_i$
    integrated gradients    $(x_i - x'_i) · ∫_0^1 ∇_{x_i} f(x' + t (x - x')) dt$
    SmoothGrad              $E ∇ f(x + ε)$, ε normal: the gradient of f smoothed by a Gaussian

To first order $f(x + δ) = f(x) + ∇ f(x) · δ + O(\|δ\|^2)$. If $f(λ x) = λ f(x)$ for all λ > 0 (no
biases, frozen patterns and scales, ReLU), gradient × input is f (Euler). A gradient can vanish
where the function has saturated: for $f(x) = 1 - relu(1 - x)$ it is 0 at 2, yet f(2) - f(0) = 1;
integrated gradients attribute that difference.

Source: Simonyan et al. 2014; Denil et al. 2015; Sundararajan et al. 2017; Smilkov et al. 2017; Yin
and Neubig 2022 (with a foil).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.question import Points, Rows, StandIn, ask
from otimes.numeric.attribution.target import Tokens
from otimes.numeric.circuits.batches import over_prompts
from otimes.numeric.circuits.result import Named
from otimes.numeric.load import ModelSource
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import together

RULES = ("gauss", "midpoint", "right")
SCORES = ("norm", "times input")


@over_prompts
def input_gradient(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
) -> Named:
    r"""Return the gradient of a logit with respect to the embedding, $∇ f$ [position, d_model].

    With a foil it is the gradient of the logit difference. Tokens after `position` have gradient 0.
    Proved by: contrastive_gradient, later_tokens_have_no_gradient.

    >>> input_gradient("one_layer", "for i in range", "(").values.shape
    (7, 128)

    Raises: OtimesError for an invalid prompt, token or position.
    """
    question = ask(model, prompt, target, foil, position)
    _, gradient = question.gradient()
    every = np.zeros((len(question.prompt.tokens), question.model.d_model))
    every[: len(gradient)] = gradient
    labels = {"position": question.prompt.strings}
    return Named("gradient", every, ("position", "direction"), labels, about=question.about)


@over_prompts
def gradient_norms(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    p: float = 2,
) -> Named:
    r"""Return the sensitivity of a logit to each token, $\|∇_{x_i} f\|_p$ [position].

    Raises: OtimesError for p < 1, or an invalid prompt, token or position.
    Source: Simonyan et al. 2014; Li et al. 2016.

    >>> gradient_norms("one_layer", "for i in range", "(").axes
    ('position',)
    """
    if not p >= 1:
        raise OtimesError(f"the order of a norm must be at least 1, got p={p}")
    question = ask(model, prompt, target, foil, position)
    norms = np.linalg.norm(question.gradient()[1], p, axis=1)
    return question.by_token(f"gradient norm (p = {p:g})", norms)


@over_prompts
def gradient_times_input(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
) -> Named:
    r"""Return gradient times input of each token [position], $∇_{x_i} f · x_i$ for a logit f.

    The scores sum to f only where f is linear in the embeddings x.

    Proved by: gradient_times_input_is_complete_when_linear.
    Source: Denil et al. 2015; Shrikumar et al. 2017.

    >>> scores = gradient_times_input("zero_layer", "x =", " 1")
    >>> abs(scores.missing) < 1e-12  # without layers a logit is linear
    True
    """
    question = ask(model, prompt, target, foil, position)
    f, gradient = question.gradient()
    return question.by_token("gradient × input", (gradient * question.embed()).sum(axis=1), f)


@over_prompts
def integrated_gradients(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    baseline: StandIn = None,
    n_steps: int = 64,
    rule: str = "gauss",
) -> Named:
    r"""Return integrated gradients [position]; they sum to the logit less its value at a baseline.

    $(x_i - x'_i) · ∫_0^1 ∇_{x_i} f(x' + t (x - x')) dt$. The baseline is zero (None), a token, or
    an array (d_model,) or (position, d_model). The integral is computed by Gauss–Legendre
    quadrature (`rule` "gauss"), or as a Riemann sum over the midpoints or right ends of equal steps
    ("right" is the paper's). `.missing` is the error of completeness, which falls with `n_steps`.
    A model with norms needs many steps near a zero baseline, where the norm's output varies fast.
    Proved by: integrated_gradients_are_complete.
    Source: Sundararajan, Taly and Yan 2017, “Axiomatic Attribution for Deep Networks”.

    >>> scores = integrated_gradients("one_layer", "for i in range", "(", n_steps=16)
    >>> abs(scores.missing) < 1e-9
    True

    Raises: OtimesError for an unknown rule, n_steps < 1, or an unknown baseline token.
    """
    question = ask(model, prompt, target, foil, position)
    start = question.stand_in(baseline)
    parts = line_integral(question.gradients, start, question.embed(), n_steps, rule)
    whole = question.value() - question.value(start)
    note = f"{n_steps} nodes, {rule}"
    return question.by_token("integrated gradients", parts.sum(axis=1), whole, note)


@over_prompts
def smooth_grad(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    noise: float = 0.1,
    n_samples: int = 50,
    seed: int = 0,
    score: str = "norm",
) -> Named:
    r"""Return the norm of the smoothed gradient $E ∇_{x_i} f(x + ε)$, or it times input [position].

    ε has independent normal entries with standard deviation `noise` times the range of the
    embedding's entries, as in the paper. The mean over samples estimates the gradient of f
    convolved with that Gaussian; its standard error is reported in the table's title.
    Proved by: smooth_grad_is_gradient_of_blurred.
    Source: Smilkov et al. 2017, “SmoothGrad: removing noise by adding noise”.

    >>> smooth_grad("one_layer", "for i in range", "(", n_samples=2).axes
    ('position',)

    Raises: OtimesError for an unknown score, negative noise, or fewer than two samples.
    """
    if score not in SCORES:
        raise OtimesError(f"score must be 'norm' or 'times input', got {score!r}")
    question = ask(model, prompt, target, foil, position)
    x = question.embed()
    mean, error = blurred_gradient(question.gradients, x, noise * float(np.ptp(x)), n_samples, seed)
    note = f"{n_samples} samples, standard error of a gradient's entry at most {error.max():.2g}"
    values = np.linalg.norm(mean, axis=1) if score == "norm" else (mean * x).sum(axis=1)
    return question.by_token(f"SmoothGrad, {score}", values, note=note)


def line_integral(
    gradients: Callable[[Points], Points],
    start: Rows,
    end: Rows,
    n_steps: int,
    rule: str = "gauss",
) -> Rows:
    r"""Return $(x - x') · ∫_0^1 ∇ f(x' + t (x - x')) dt$, entry by entry.

    `gradients` returns the gradients at several points [point, pos, d_model]. The Gauss rule is
    exact if f is a polynomial of degree ≤ 2 n_steps along the line.

    >>> line_integral(lambda x: 3 * x**2, np.zeros((1, 1)), np.full((1, 1), 2.0), 2).round(12)
    array([[8.]])
    """
    total = np.zeros_like(end)
    at, shares = nodes(n_steps, rule)
    for some in tracked(together(n_steps, len(end)), "integrating"):
        points = start + at[some, None, None] * (end - start)
        total += np.tensordot(shares[some], gradients(points), axes=1)
    return (end - start) * total


def nodes(
    n_steps: int, rule: str
) -> tuple[Float[np.ndarray, " n_steps"], Float[np.ndarray, " n_steps"]]:
    """Return the nodes in [0, 1] and the weights, which sum to 1, of a quadrature rule."""
    if rule not in RULES:
        raise OtimesError(f"the quadrature rule must be one of {', '.join(RULES)}, got {rule!r}")
    if isinstance(n_steps, bool) or not isinstance(n_steps, int) or n_steps < 1:
        raise OtimesError(f"n_steps must be an integer of at least 1, got n_steps={n_steps!r}")
    if rule == "gauss":
        at, shares = np.polynomial.legendre.leggauss(n_steps)
        return (at + 1) / 2, shares / 2
    at = (np.arange(n_steps) + (0.5 if rule == "midpoint" else 1.0)) / n_steps
    return at, np.full(n_steps, 1 / n_steps)


def blurred_gradient(
    gradients: Callable[[Points], Points], at: Rows, sigma: float, n_samples: int, seed: int
) -> tuple[Rows, Rows]:
    """Return the mean of the gradient at noisy points, and the standard error of each entry."""
    if not sigma >= 0 or n_samples < 2:
        raise OtimesError(
            f"SmoothGrad takes non-negative noise and at least 2 samples,"
            f" got noise={sigma:.3g} and n_samples={n_samples}"
        )
    rng = np.random.default_rng(seed)
    mean, squares = np.zeros_like(at), np.zeros_like(at)
    for some in tracked(together(n_samples, len(at)), "sampling"):
        noise = sigma * rng.standard_normal((some.stop - some.start, *at.shape))
        for count, found in enumerate(gradients(at + noise), start=some.start + 1):
            before = found - mean  # Welford: a sum of squares would cancel catastrophically
            mean = mean + before / count
            squares += before * (found - mean)
    return mean, np.sqrt(squares / (n_samples - 1) / n_samples)
