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
from otimes.proofs.catalogue.symbols import X, d, n, row
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
    """Replacing a component's output f by a constant c causes an expected squared error of Var(f) +
    ‖μ − c‖², where μ is the mean of f over prompts. No constant avoids the first part; the mean
    avoids the second. In the formula M holds the second moments E[f fᵀ].

    So mean ablation removes what depends on the prompt and nothing else. Zero ablation (c = 0) also
    removes the mean and so does more damage, by ‖μ‖².
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
    """Among all constants that could replace a component's output, its mean over prompts has the
    least expected squared error; any other constant c is worse by ‖μ − c‖². In the formula M holds
    the second moments of f.

    So if an ablation is meant to remove information and change as little else as possible, use the
    mean. The mean of which prompts must be said.
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
    """Setting to zero the output f of a component in the last layer changes a logit by minus its
    direct logit, −f u, if there is no final norm: only the unembedding (here its column u) reads
    it.

    For earlier components, or behind a norm, later parts of the model react, and −f u is the direct
    part of the effect only.
    """
    final, written = MatrixSymbol("X_L", n, d), MatrixSymbol("f", n, d)
    return Statement(
        minus(matmul(minus(final, written), reader), matmul(final, reader)),
        matmul(-1, written, reader),
        places={"resid_mid": matadd(X, written), "logits": matmul(final, row.W_U)},
        bind=({"X_L": Source("final"), "f": Source("attn_out"), "u": Source("W_U", cols=1)},),
    )


@theorem(
    title="Noise of mean zero does not change the mean of a linear metric",
    chapter=9,
    source=INTERVENTIONS,
    covers=("S3-051",),
)
def noise_ablation_mean() -> Statement:
    """Adding noise with mean zero to what a component writes does not change the mean of any metric
    that is linear in it. In the formula c stands for the output that has noise added, u for the
    metric's gradient, and 0 for the noise's mean.

    So a mean effect of such noise shows nonlinearity, and a single draw shows little more than the
    noise.
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
    """If independent noise with variance σ² is added to each entry of a component's output, a
    linear metric with gradient u has variance σ²‖u‖². So how noisy the metric becomes says how long
    its gradient is, whatever the component wrote.
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
    """Do a few heads carry most of the loss? Each head is zero-ablated on its own and the increase
    of the loss recorded. If all heads were equal, a quarter of them would carry a quarter of the
    total; the claim is that a quarter carries most of it.

    That holds in `gpt2_tiny`. It also holds in many models with random weights, so unequal effects
    alone are no sign of learning.
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
    """Does zero ablation push the residual stream outside the range that later layers were trained
    on? After the first layer's output is set to zero, the squared Mahalanobis distance of the
    stream from streams on other prompts is measured, divided by the number of dimensions, so that
    ordinary streams have about 1.

    If the distance were large, the second layer's reaction would say little about the first layer.
    Here it is hardly larger than for ordinary prompts, since the first layer writes little.
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
