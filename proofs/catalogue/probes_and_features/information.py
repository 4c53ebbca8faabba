"""Chapter 10: what a probe finds in bits: information gain and description length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, fsum, log2
from typing import Any

import numpy as np
from sympy import BlockMatrix, MatrixSymbol, OneMatrix, Trace, Transpose, ZeroMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.defined import CrossEntropy
from otimes.algebra.language.linear import matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.numeric.model import Model
from otimes.numeric.probes.information import information_gain
from otimes.numeric.probes.probe import description_length, fit_probe
from otimes.numeric.rounding import gamma
from otimes.proofs.catalogue.attention_head.derivatives import surplus
from otimes.proofs.catalogue.attention_head.patterns import entrywise
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.probes_and_features.reading import PROBING, N, X, Z, k
from otimes.proofs.catalogue.symbols import d, size
from otimes.proofs.claims import Bound, Entries, Method, Statement, Trial
from otimes.proofs.theorem import theorem

PIMENTEL = "Pimentel et al. 2020, “Information-Theoretic Probing for Linguistic Structure”"
VOITA = "Voita and Titov 2020, “Information-Theoretic Probing with Minimum Description Length”"
UNIT = 2.0**-53

groups = size("g")
P, Q = MatrixSymbol("P", N, k), MatrixSymbol("Q", groups, k)
w, S = MatrixSymbol("w", N, 1), MatrixSymbol("S", N, groups)
L, M = MatrixSymbol("L", N, k), MatrixSymbol("M", groups, k)


@theorem(
    title="Information gain is a mean divergence",
    chapter=10,
    convention="row",
    source=f"{PROBING}; {PIMENTEL}; Cover and Thomas 2006, §2.8",
    covers=("S3-067",),
)
def information_gain_is_mean_divergence() -> Statement:
    """Each of N features has a weight w and a row of P, the distribution of the property Z given
    that feature. A control function c puts the features into g groups, the 0/1 columns of S, and Q
    has the distribution of Z in each group: the weighted mean of the rows of P in it, which is the
    hypothesis. L and M have the logarithms of P and Q. The gain I(Z; F) - I(Z; c(F)), which is
    H(Z | c(F)) - H(Z | F), is then the mean over features of the divergence KL(P_f ‖ Q_c(f)).
    """
    within = matmul(DiagMatrix(matmul(Transpose(S), w)), Q)
    given = ((matmul(Transpose(S), DiagMatrix(w), P), within),)
    entropies = Trace(matmul(Transpose(P), DiagMatrix(w), L)) - Trace(matmul(Transpose(within), M))
    divergence = Trace(matmul(Transpose(P), DiagMatrix(w), minus(L, matmul(S, M))))
    return Statement(entropies, divergence, given=given, on_models=False)


@theorem(
    title="A control function cannot know more than the features",
    chapter=10,
    convention="row",
    source=f"{PROBING}; {PIMENTEL}; the data-processing inequality: Cover and Thomas 2006, §2.8",
    covers=("S3-067",),
)
def data_processing() -> Bound:
    """For a feature, p = exp(l) is the distribution of the property given the feature, and
    q = exp(m) the one given what the control function keeps. The divergence Σ p (l - m) is at least
    Σ p - Σ q: the difference is Σ p (e^t - t - 1) with t = m - l, and e^t lies above its tangent.
    Both distributions sum to one, so no divergence is negative, and neither is a mean of them. With
    `information_gain_is_mean_divergence`: G = I(Z; F) - I(Z; c(F)) ≥ 0, and zero only where the
    property depends on the feature through c alone. An estimate may still be wrong: from few
    examples it is too large.
    """
    l, m = MatrixSymbol("l", 1, k), MatrixSymbol("m", 1, k)  # noqa: E741 (logarithms)
    one, other = Activation("exp", l), Activation("exp", m)
    total = OneMatrix(k, 1)
    return Bound(
        Trace(matmul(minus(one, other), total)),
        Trace(matmul(one, Transpose(minus(l, m)))),
        because=(Entries(entrywise(one, surplus(minus(m, l)))),),
        tight={"l": [[0]], "m": [[0]]},
        on_models=False,
    )


def _code(scores: Any, labels: Any) -> Any:
    """Return the code length of labels, one-hot rows, in nats."""
    return Trace(matmul(OneMatrix(1, scores.shape[0]), CrossEntropy(scores, labels)))


@theorem(
    title="Code lengths of blocks add up",
    chapter=10,
    convention="row",
    source=f"{PROBING}; {VOITA}, §3.2; Rissanen 1984",
    covers=("S3-068",),
)
def prequential_code_length() -> Statement:
    """The online code of Σ_i -log p(z_i | x_i): send the labels Z₁ of some examples with one probe,
    and those of the next, Z₂, with another that was trained on the first. The scores S are
    X₁ θ₁ and X₂ θ₂, and the code length of all is the sum of both; with blocks of one example each
    it is the sum above. It measures how much effort it takes to read a property: bits for what the
    probe does not know yet, and bits for what it never learns.
    """
    n_1, n_2 = size("n_1"), size("n_2")
    scores = [MatrixSymbol("S_1", n_1, k), MatrixSymbol("S_2", n_2, k)]
    Z_1, Z_2 = MatrixSymbol("Z_1", n_1, k), MatrixSymbol("Z_2", n_2, k)
    stacked = BlockMatrix([[each] for each in scores])
    labels = BlockMatrix([[Z_1], [Z_2]])
    return Statement(
        _code(stacked, labels),
        _code(scores[0], Z_1) + _code(scores[1], Z_2),
        on_models=False,
    )


@theorem(
    title="A probe that knows nothing needs log k for each label",
    chapter=10,
    convention="row",
    source=f"{VOITA}, §3.1",
    covers=("S3-068",),
)
def uniform_code_length() -> Statement:
    """With weights zero all k classes have one probability, and N labels cost N log k, the length
    to compare with. Random labels cost about that with any probe, as nothing before tells of what
    comes. The rows of Z sum to one.
    """
    return Statement(
        _code(matmul(X, ZeroMatrix(d, k)), Z),
        N * Trace(Activation("log", matmul(k, OneMatrix(1, 1)))),
        given=((matmul(Z, OneMatrix(k, 1)), OneMatrix(N, 1)),),
        on_models=False,
    )


def _labelled(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return a few rows of the embedding, and a label of each that does not depend on them."""
    count = min(24, model.d_vocab)
    return model.W_E[:count, :6] * 10, np.arange(count) ** 2 // 5 % 3


@theorem(
    title="description_length: labels in blocks, each with a probe of those before",
    chapter=10,
    source=VOITA,
    covers=("S3-068",),
)
def description_length_method() -> Method:
    """In one block all labels cost log₂ k bits. In two, those of the second are sent with the probe
    that `fit_probe` returns for the first, mixed with a uniform distribution at the weight of one
    example.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if model.n_layers:  # the embedding alone is read
            return
        rows, labels = _labelled(model)
        count, few = len(rows), gamma(200, UNIT)
        uniform = count * log2(3)
        yield Trial("one block", description_length(rows, labels, blocks=[1.0]), uniform, few * 99)
        half = count // 2
        probe = fit_probe(rows[:half], labels[:half])
        bits = [half * log2(3)]
        for row, label in zip(rows[half:], labels[half:], strict=True):
            scores = [fsum(row * column) + b for column, b in zip(probe.W.T, probe.b, strict=True)]
            whole = fsum(exp(score) for score in scores)
            chance = (half * exp(scores[label]) / whole + 1 / 3) / (half + 1)
            bits.append(-log2(chance))
        found = description_length(rows, labels, blocks=[half / count, 1.0])
        bound = few * (fsum(bits) + count * float(np.abs(rows).max() * np.abs(probe.W).max()) * 6)
        yield Trial("two blocks", found, fsum(bits), bound)

    return Method("ot.description_length", ("uniform_code_length",), trials)


@theorem(
    title="information_gain: bits in the features, and in what a control function keeps",
    chapter=10,
    source=PIMENTEL,
    covers=("S3-067",),
)
def information_gain_method() -> Method:
    """The features are the signs of three dimensions of the embedding of each token, the control
    function keeps one of them, and the property is whether the number of the token is a multiple of
    three; by loops over the values.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        signs = (model.W_E[:, :3] > 0).astype(int)
        features = [4 * a + 2 * b + c for a, b, c in signs.tolist()]
        control = [each // 4 for each in features]
        labels = [number % 3 == 0 for number in range(model.d_vocab)]
        found = information_gain(labels, np.array(features), np.array(control))
        bound = 8 * gamma(model.d_vocab + 20, UNIT)
        yield Trial("features", 1 + found.features, 1 + _bits(labels, features), bound)
        yield Trial("control", 1 + found.control, 1 + _bits(labels, control), bound)

    rests = ("data_processing", "information_gain_is_mean_divergence")
    return Method("ot.information_gain", rests, trials)


def _bits(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Return the mutual information as H(first) + H(second) - H(both), by counting."""

    def entropy(values: Sequence[Any]) -> float:
        shares = [values.count(each) / len(values) for each in sorted({*values})]
        return -fsum(share * log2(share) for share in shares)

    return entropy(first) + entropy(second) - entropy(list(zip(first, second, strict=True)))
