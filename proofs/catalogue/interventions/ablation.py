"""Chapter 9: taking a component away: by zeros, by a mean, by noise."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from sympy import Identity, MatrixSymbol, Symbol, Trace, Transpose, ZeroMatrix

from otimes.algebra.language.expectation import expectation
from otimes.algebra.language.linear import matadd, matmul
from otimes.numeric.binding import Source
from otimes.numeric.interventions.hooks import Hook
from otimes.numeric.interventions.passes import Pass
from otimes.numeric.metrics import repeated_prompts
from otimes.numeric.model import Model
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.interventions.patching import INTERVENTIONS, minus, reader
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import d, n
from otimes.proofs.claims import Bound, Load, Observation, Observed, Square, Statement
from otimes.proofs.theorem import theorem

f = MatrixSymbol("f", d, 1)  # what a component writes, over prompts: a random column
mu, constant, eps = (MatrixSymbol(name, d, 1) for name in ("mu", "c", "epsilon"))
M = MatrixSymbol("M", d, d)
sigma = Symbol("sigma", positive=True)


@theorem(
    title="The mean is the best constant: bias and variance",
    chapter=9,
    source=INTERVENTIONS,
    covers=("S3-049",),
)
def mean_ablation_error() -> Statement:
    """Replace what a component writes, f with mean μ over prompts, by a constant c. The expected
    squared error is the variance of f, which no constant can avoid, plus ‖μ - c‖². So mean ablation
    takes away what depends on the prompt and nothing else, and zero ablation takes away ‖μ‖² more.
    """
    error = minus(f, constant)
    spread = Trace(M) - Trace(matmul(Transpose(mu), mu))
    bias = minus(mu, constant)
    return Statement(
        Trace(expectation(matmul(Transpose(error), error), f, mu, M)),
        spread + Trace(matmul(Transpose(bias), bias)),
        on_models=False,
    )


@theorem(
    title="No constant is nearer to the activations than their mean",
    chapter=9,
    source=INTERVENTIONS,
    covers=("S3-049",),
)
def mean_ablation_is_the_best_constant() -> Bound:
    """Arg min_c E‖f - c‖² = E f: the difference to any other constant is ‖μ - c‖², so the minimum
    is at the mean and nowhere else.
    """

    def error(at: MatrixSymbol) -> object:
        gap = minus(f, at)
        return Trace(expectation(matmul(Transpose(gap), gap), f, mu, M))

    return Bound(
        error(mu),
        error(constant),
        because=(Square(minus(mu, constant)),),
        tight={"mu": np.array([[1], [2]]), "c": np.array([[1], [2]]), "M": np.eye(2, dtype=int)},
        on_models=False,
    )


@theorem(
    title=(
        "Zero ablation of a component that nothing reads changes the logit by "
        "minus its direct logit"
    ),
    chapter=9,
    convention="row",
    source=INTERVENTIONS,
    covers=("S3-050",),
)
def zero_ablation_is_minus_direct_logit() -> Statement:
    """A component of the last layer, in a model without a final norm, is read by the unembedding
    alone. Take away the row f it wrote: the logit changes by -f u, minus its direct logit. In an
    earlier layer, or behind a norm, later components react, and this is the direct part only.
    """
    final, written = MatrixSymbol("X_L", n, d), MatrixSymbol("f", n, d)
    return Statement(
        minus(matmul(minus(final, written), reader), matmul(final, reader)),
        matmul(-1, written, reader),
        bind=({"X_L": Source("final"), "f": Source("attn_out"), "u": Source("W_U", cols=1)},),
    )


@theorem(
    title="Noise of mean zero does not change the mean of a linear metric",
    chapter=9,
    source=INTERVENTIONS,
    covers=("S3-051",),
)
def noise_ablation_mean() -> Statement:
    """Add ε with mean 0 to what a component writes: a metric that is linear in it, (f + ε)ᵀu,
    keeps its mean. So on average noise shows what is not linear, and a single draw shows noise.
    """
    noisy = matadd(constant, eps)
    return Statement(
        expectation(matmul(Transpose(noisy), reader), eps, ZeroMatrix(d, 1), M),
        matmul(Transpose(constant), reader),
        on_models=False,
    )


@theorem(
    title="The variance of a metric under noise",
    chapter=9,
    source=INTERVENTIONS,
    covers=("S3-051",),
)
def noise_ablation_variance() -> Statement:
    """With independent entries of variance σ², the variance of εᵀu is σ²‖u‖²: the metric is as
    noisy as its gradient is long, whatever the component wrote.
    """
    change = matmul(Transpose(eps), reader)
    return Statement(
        expectation(matmul(Transpose(change), change), eps, ZeroMatrix(d, 1),
                    matmul(sigma**2, Identity(d))),
        matmul(sigma**2, Transpose(reader), reader),
        on_models=False,
    )  # fmt: skip


LENGTH = 24


def _prompts() -> list[np.ndarray]:
    """Return the sample text in prompts of `LENGTH` tokens."""
    tokens = np.array(sample_tokens())
    return list(tokens[: len(tokens) // LENGTH * LENGTH].reshape(-1, LENGTH))


def _loss(model: Model, logits: np.ndarray, tokens: np.ndarray) -> float:
    rows = logits[:-1]
    top = rows.max(axis=1, keepdims=True)
    logs = rows - top - np.log(np.exp(rows - top).sum(axis=1, keepdims=True))
    return float(-logs[np.arange(len(tokens) - 1), tokens[1:]].mean())


@lru_cache(maxsize=4)
def _losses_without(load: Load) -> tuple[tuple[float, tuple[float, ...]], ...]:
    """Return the loss of each prompt, and without each head."""
    model = load("gpt2_tiny")
    found = []
    for tokens in _prompts()[:4]:
        run = Pass(model, tokens)
        heads = [
            Hook(f"head_out.{at}", (head,))
            for at in range(model.n_layers)
            for head in range(model.n_heads)
        ]
        without = tuple(_loss(model, run.edited({each: 0.0})["logits"], tokens) for each in heads)
        found.append((_loss(model, run.places["logits"], tokens), without))
    return tuple(found)


@theorem(
    title="Few heads matter for the loss",
    chapter=9,
    source=f"{PRIMER}, “Model Component Importance”; Michel, Levy and Neubig 2019, “Are Sixteen "
    "Heads Really Better than One?”",
    covers=("S3-038",),
)
def few_heads_matter() -> Observation:
    """Take away one head at a time, by zeros, and look at the loss. Were all heads equally
    important, a quarter of them would carry a quarter of what all sixteen cost together; the claim
    is that a quarter carries most. It does, and so it does in many models with random weights: that
    effects are unequal is not yet something that was learned.
    """

    def observe(load: Load) -> Observed:
        found = _losses_without(load)
        costs = np.mean([np.array(without) - whole for whole, without in found], axis=0)
        costs = np.sort(np.maximum(costs, 0.0))[::-1]
        share = float(costs[: len(costs) // 4].sum() / costs.sum())
        figure = f"gpt2_tiny: a quarter of the heads has {share:.0%} of the cost of all single ones"
        return Observed(figure, {"share of a quarter of the heads": share})

    return Observation(
        "the quarter of the heads of gpt2_tiny that costs most when taken away, one at a time, has "
        "more than half of the sum of all costs in nats",
        observe,
        {"share of a quarter of the heads": 0.5},
        outcome="seen at random too",
    )


@theorem(
    title="Zero ablation leaves the distribution of the stream",
    chapter=9,
    source=f"{PRIMER}, “Causal Interventions”; Zhang and Nanda 2024, “Towards Best Practices of "
    "Activation Patching”",
    covers=("S3-052",),
)
def ablated_streams_are_unusual() -> Observation:
    """Replace what the first layer writes by zeros, and ask how far the stream after it is from the
    streams that the model has on other prompts of the kind that it was trained on: the squared
    Mahalanobis distance over the number of dimensions, which is about one for such streams. If they
    are far, the second layer reads what it was never trained on, and its answer may be about that.
    Here they are hardly further than those of other prompts: its first layer writes little.
    """

    def observe(load: Load) -> Observed:
        model, name = load("induction"), "resid_pre.1"
        prompts = repeated_prompts(model.d_vocab, period=24, n_prompts=36)
        streams = [model.forward(tokens, [name])[name] for tokens in prompts]
        known = np.concatenate(streams[:30])
        inverse = np.linalg.inv(np.cov(known.T) + 1e-6 * np.var(known) * np.eye(model.d_model))

        def distance(rows: np.ndarray) -> float:
            gap = rows - known.mean(axis=0)
            return float(np.einsum("id,de,ie->i", gap, inverse, gap).mean() / model.d_model)

        plain = np.mean([distance(rows) for rows in streams[30:]])
        without = [Pass(model, tokens).only({Hook("attn_out.0"): 0.0}, name)
                   for tokens in prompts[30:]]  # fmt: skip
        zero = np.mean([distance(rows) for rows in without])
        figure = f"distance in induction {plain:.2f}, and {zero:.2f} without its first layer"
        return Observed(figure, {"distance over that of other prompts": float(zero / plain)})

    return Observation(
        "in induction the streams after layer 0, when it writes zeros, are more than twice as far "
        "from those of other prompts, in squared Mahalanobis distance, as these from each other",
        observe,
        {"distance over that of other prompts": 2.0},
        outcome="not seen",
    )
