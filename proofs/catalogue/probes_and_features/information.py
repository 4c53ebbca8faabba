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
    """How much more do features tell of a property than a coarser version of them? The gain in
    mutual information, I(Z; F) − I(Z; c(F)), is the mean over features of the divergence KL(P_f ‖
    Q_c(f)). P (N × k) has for each feature the distribution of the property Z, w the weights of the
    features, S the groups into which the control function c puts them, and Q the mean distribution
    in each group. L and M are the logarithms of P and Q.

    It compares a probe on activations with one on simpler inputs, such as the token alone.
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
    """A function of the features cannot know more about a property than the features themselves.
    The difference of information is a mean of KL divergences
    (`information_gain_is_mean_divergence`), and each of them is non-negative: for p = exp(l) and q
    = exp(m), Σ p (l − m) ≥ Σ p − Σ q, because e^t is at least 1 + t.

    It is zero only where the property depends on the features through the function alone. Estimates
    from few examples can violate or exaggerate it.
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
    """The code length of labels measures how much effort it takes to learn a property from
    activations: send the labels in blocks, each with a probe trained on the blocks before, and add
    up −log p of each label. The formula says that the cross-entropies of two blocks add up; S_1 and
    S_2 are the scores of the two probes and Z_1, Z_2 the one-hot labels.

    Unlike accuracy it also counts how many examples the probe needed. A property that is easy to
    extract has a short code.
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
    """A probe that knows nothing, with all weights zero, needs log k nats for each label with k
    classes, so N labels cost N log k. This is the length to compare with
    (`prequential_code_length`). The labels are the one-hot rows of Z.

    Random labels cost about as much with any probe, because earlier labels do not help.
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
    """`description_length` computes the code length of labels, in blocks, each with a probe trained
    on the blocks before. Checked: in one block all labels cost log₂ k bits; in two blocks, the
    second is coded with the probe that `fit_probe` returns for the first, mixed with a uniform
    distribution that has the weight of one example.
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
    """`information_gain` computes how many bits about a property are in features beyond what a
    control function keeps of them. The check uses the signs of three dimensions of each token's
    embedding as features, keeps one of them, and asks whether the token number is a multiple of
    three, by loops over the values (`information_gain_is_mean_divergence`).
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
