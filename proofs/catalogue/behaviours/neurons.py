"""Chapter 11: what neurons read, what they write, and what they respond to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sympy import HadamardPower, Identity, MatrixSymbol, OneMatrix, Symbol, Transpose, ZeroMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.linear import HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import (
    RSQRT,
    Activation,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    mean_square,
)
from otimes.numeric.behaviours.activations import (
    label_variance,
    neuron_activations,
    neuron_correlations,
    neuron_information,
)
from otimes.numeric.behaviours.entropy import entropy_effects
from otimes.numeric.behaviours.weights_of_neurons import (
    frequency_correlations,
    neuron_cosines,
    neuron_moments,
    null_space_shares,
)
from otimes.numeric.binding import Source
from otimes.numeric.corpus import unigram_counts
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.numeric.tokenizer import BUNDLED, load_tokenizer
from otimes.proofs.catalogue.behaviours.heads import BANDWIDTH, MEMORY
from otimes.proofs.catalogue.behaviours.text import N_POS, prompts, texts
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.mlp_and_norm.neurons import of_neuron, u
from otimes.proofs.catalogue.mlp_and_norm.parts import (
    activation,
    b_out,
    centring,
    eps,
    everywhere,
    feed_forward,
    of_vocabulary,
    reciprocal_deviation,
)
from otimes.proofs.catalogue.sources import GEVA, PRIMER
from otimes.proofs.catalogue.symbols import V, X, d, d_mlp, n, row
from otimes.proofs.claims import (
    Definition,
    Load,
    Method,
    NonIdentity,
    Observation,
    Observed,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

BEHAVIOURS = f"{PRIMER}, “Feedforward Network Block” (behaviours)"
GURNEE = "Gurnee et al. 2024, “Universal Neurons in GPT2 Language Models”"
STOLFO = "Stolfo et al. 2024, “Confidence Regulation Neurons in Language Models”"
VOITA = "Voita, Ferrando and Nalmpantis 2024, “Neurons in Large Language Models”"
UNIT = 2.0**-53

W_U = row.W_U
Y = MatrixSymbol("Y", n, d)  # what a neuron writes, at every position
stream = MatrixSymbol("final", n, d)
TWO = ({"final": Source("final"), "Y": Source("embed")},)

# -- entropy neurons -------------------------------------------------------------------------------


@theorem(
    title="What is written to the null space of W_U changes no logit before the norm",
    chapter=11,
    convention="row",
    source=f"{STOLFO}; {BEHAVIOURS}",
    covers=("S3-119",),
)
def null_space_leaves_numerators() -> Statement:
    """Let Y W_U = 0: what a neuron writes lies in the null space of the unembedding. Then the
    logits of X + Y are those of X. In a model without a final norm such a neuron could be taken
    away, with its weights, and nobody would notice. Training keeps it all the same, and the norm is
    the reason (`null_space_sets_temperature`).
    """
    return Statement(
        matmul(matadd(X, Y), W_U),
        matmul(X, W_U),
        given=((matmul(Y, W_U), ZeroMatrix(n, V)),),
        on_models=False,
    )


def _scale(rows: Any) -> Any:
    """Return the diagonal matrix of 1/rms of each row."""
    return DiagMatrix(Activation(RSQRT, mean_square(rows, eps)))


@theorem(
    title="Entropy neurons: through the norm, the null space sets the temperature",
    chapter=11,
    convention="row",
    source=f"{STOLFO}; {GURNEE}; {BEHAVIOURS}",
    covers=("S3-119",),
)
def null_space_sets_temperature() -> Statement:
    """Let Y W_U = 0, and let s(X) be the diagonal matrix of 1/√(mean square + ε) of each row. Then
    s(X) RMSNorm(X + Y) W_U = s(X + Y) RMSNorm(X) W_U: at each position the logits with Y are those
    without it times the ratio s(X + Y)/s(X), which for ε = 0 is ‖x‖/‖x + y‖. One positive factor
    for all tokens of a position is a temperature: the order of the tokens and the best guess stay,
    the entropy changes. If y is orthogonal to x the stream grows, the logits shrink, and the
    prediction becomes less certain.

    The gain of the norm is part of W_U here (fold it first). W_U of a large vocabulary has full
    rank and no null space; what counts then is the directions on which it acts least.
    """
    return Statement(
        matmul(_scale(X), RMSNorm(matadd(X, Y), eps), W_U),
        matmul(_scale(matadd(X, Y)), RMSNorm(X, eps), W_U),
        given=((matmul(Y, W_U), ZeroMatrix(n, V)),),
        on_models=False,
    )


@theorem(
    title="Entropy neurons behind a LayerNorm",
    chapter=11,
    convention="row",
    source=f"{STOLFO}, §3",
    covers=("S3-119",),
)
def null_space_sets_temperature_layer_norm() -> Statement:
    """A LayerNorm subtracts the mean with P = I − 11ᵀ/d, and 1/σ takes the place of 1/rms. The
    condition becomes Y P W_U = 0, with the gain of the norm folded into W_U. So the direction of
    ones is no entropy direction: P removes it before σ is computed, and it changes nothing at all.
    """
    deviation, moved = (DiagMatrix(reciprocal_deviation(each)) for each in (X, matadd(X, Y)))
    return Statement(
        matmul(deviation, LayerNorm(matadd(X, Y), eps), W_U),
        matmul(moved, LayerNorm(X, eps), W_U),
        given=((matmul(Y, centring, W_U), ZeroMatrix(n, V)),),
        on_models=False,
    )


bias = MatrixSymbol("ln_final_bias", 1, d)


@theorem(
    title="With the bias of the final norm it is no temperature",
    chapter=11,
    convention="row",
    source=f"{STOLFO}; follows from the definition with β",
    covers=("S3-119",),
)
def bias_is_not_scaled() -> NonIdentity:
    """The bias β of the norm is added after the division by the scale, and so are the biases of
    the logits: β W_U does not shrink when the stream grows. The logits with Y are then not a
    multiple of those without it, and the best guess may change. “Entropy neurons keep the argmax”
    holds for the logits without those biases.
    """
    added = everywhere(matmul(bias, W_U))
    return NonIdentity(
        matmul(_scale(X), matadd(matmul(RMSNorm(matadd(X, Y), eps), W_U), added)),
        matmul(_scale(matadd(X, Y)), matadd(matmul(RMSNorm(X, eps), W_U), added)),
        given=((matmul(Y, W_U), ZeroMatrix(n, V)),),
    )


@theorem(
    title="Entropy neurons in the trained model",
    chapter=11,
    source=f"{STOLFO}; {BEHAVIOURS}",
    covers=("S3-119",),
)
def entropy_neurons_seen() -> Observation:
    """In GPT-2 a few neurons of the last layer write almost only to directions that W_U hardly
    reads, and act on the entropy through the norm. Here: the neuron of the last layer of gpt2_tiny
    with the largest share of its output in the sixteenth of the directions that W_U reads least. Is
    that more than half of what it writes, and is the entropy's change on ablation mostly due to the
    scale of the norm? (With the scale frozen, less than half of the change should remain.)
    """

    def observe(load: Load) -> Observed:
        model = load("gpt2_tiny")
        last = model.n_layers - 1
        shares = null_space_shares(model)
        neuron = int(shares.values[last].argmax())
        whole, frozen = np.abs(entropy_effects(model, prompts()[:1], last, [neuron]).values).mean(
            axis=(1, 2, 3)
        )
        share = float(shares.values[last, neuron])
        figure = (
            f"neuron {last}.{neuron} of gpt2_tiny writes {share:.2f} of its output where W_U reads "
            f"least (at random {shares.baseline:.2f}); without it the entropy changes by "
            f"{whole:.4f} nats, with the scale frozen by {frozen:.4f}"
        )
        return Observed(figure, {"share": share, "through the norm": float(1 - frozen / whole)})

    return Observation(
        "more than half of the squared norm of that neuron's output lies in these directions, and "
        "with the scale frozen less than half of the mean change of the entropy remains",
        observe,
        {"share": 0.5, "through the norm": 0.5},
        outcome="not seen",
    )


# -- what neurons write ----------------------------------------------------------------------------


@theorem(
    title="The logits of a feed-forward layer are a sum over neurons",
    chapter=11,
    convention="row",
    source=f"{GEVA}; {BEHAVIOURS}",
    covers=("S3-113",),
)
def neuron_logits_add_up() -> Statement:
    """On its direct path each neuron adds n_u w_out,u W_U: how active it is, times a row of V
    numbers that are fixed. So what a neuron promotes can be read from the weights, its largest
    entries, for all prompts at once; only how much depends on the prompt. This is behind all talk
    of neurons that know a fact or a language.

    It is the direct path: what later layers make of the neuron is not in it. And the scale of the
    final norm, which divides all of it, is that of the whole stream.
    """
    one_by_one = HeadSum(matmul(of_neuron(u), W_U), (u, d_mlp))
    return Statement(
        matmul(feed_forward(), W_U),
        matadd(one_by_one, everywhere(matmul(b_out, W_U))),
        on_models=False,
    )


def _class(text: str) -> str:
    """Return the class of a token by its text."""
    if not text.strip():
        return "white space"
    if text.strip().isdigit():
        return "digits"
    if text[:1] == " " and text[1:2].isalpha():
        return "words after a space"
    return "letters" if text[:1].isalpha() or text[:1] == "_" else "signs"


@theorem(
    title="Neurons that promote one class of tokens",
    chapter=11,
    source=f"{BEHAVIOURS}; {GEVA}",
    covers=("S3-113",),
)
def neurons_promote_classes() -> Observation:
    """Neurons are said to hold facts, languages, grammar. What a neuron promotes can be seen in the
    tokens with the largest logits. Here the classes are those of a tokenizer of source code: white
    space, digits, words after a space, letters without one, and signs. A neuron promotes a class if
    its ten first tokens are all of that class.
    """

    def observe(load: Load) -> Observed:
        model = load("gpt2_tiny")
        names = load_tokenizer().token_strings(range(model.d_vocab))
        _, kinds = np.unique([_class(name) for name in names], return_inverse=True)
        effects = _direct(model)
        best = np.argpartition(effects, -10, axis=1)[:, -10:]
        pure = (kinds[best] == kinds[best[:, :1]]).all(axis=1)
        figure = f"{pure.mean():.0%} of the neurons of gpt2_tiny have ten first tokens of one class"
        return Observed(figure, {"share of neurons": float(pure.mean())})

    return Observation(
        "for at least one in twenty neurons of gpt2_tiny the ten tokens that it promotes most are "
        "all of one class of five",
        observe,
        {"share of neurons": 0.05},
    )


def _direct(model: Model) -> np.ndarray:
    """Return the logits that each neuron adds on its direct path [neuron, token]."""
    rows = model.W_out.reshape(-1, model.d_model)
    rows = rows - rows.mean(axis=1, keepdims=True)
    return np.asarray((rows * model.ln_final_gain) @ model.W_U)


@theorem(
    title="A neuron along the log frequencies changes how much they count",
    chapter=11,
    convention="row",
    source=f"{STOLFO}, §5; {BEHAVIOURS}",
    covers=("S3-114",),
)
def frequency_direction_tempers_the_prior() -> Statement:
    """Let w W_U = ℓ, the row of the logarithms of the frequencies of tokens. With activation a the
    neuron adds a w to the stream, and the prediction becomes softmax(X W_U + a 1 ℓ): each
    probability is multiplied by the a-th power of the token's frequency, and all are normalised
    again. A token-frequency neuron with a > 0 falls back on what is common; with a < 0 it says that
    something rare is coming.

    A constant added to ℓ is lost in the softmax (`softmax_ignores_row_constants`). So the effect
    has to be compared with ℓ as a correlation, which does not see constants, and not as a cosine.
    """
    w, logs, amount = MatrixSymbol("w", 1, d), MatrixSymbol("ell", 1, V), Symbol("a", real=True)
    return Statement(
        RowSoftmax(matmul(matadd(X, matmul(amount, everywhere(w))), W_U)),
        RowSoftmax(matadd(matmul(X, W_U), matmul(amount, everywhere(logs)))),
        given=((matmul(w, W_U), logs),),
        on_models=False,
    )


@theorem(
    title="Token-frequency neurons in the trained model",
    chapter=11,
    source=f"{STOLFO}, §5; {BEHAVIOURS}",
    covers=("S3-114",),
)
def token_frequency_neurons_seen() -> Observation:
    """The frequencies are those of the text that the bundled models were trained on, with one added
    to each count (`otimes.numeric.corpus.unigram_counts`). Random directions have a correlation of
    about 1/√1023 = 0.03 with their logarithms.
    """

    def observe(load: Load) -> Observed:
        found = frequency_correlations(load("gpt2_tiny"), unigram_counts() + 1).values
        layer, neuron = np.unravel_index(np.abs(found).argmax(), found.shape)
        figure = f"neuron {layer}.{neuron} of gpt2_tiny has a correlation of "
        figure += f"{found[layer, neuron]:+.2f} with log frequencies"
        return Observed(figure, {"largest |correlation|": float(np.abs(found).max())})

    return Observation(
        "for some neuron of gpt2_tiny the correlation of w_out W_U with the log frequencies of "
        "tokens is above 0.5 in size",
        observe,
        {"largest |correlation|": 0.5},
    )


@theorem(
    title="The third moment of what a neuron adds to the logits",
    chapter=11,
    convention="row",
    source=f"{GURNEE}, §4.2; {BEHAVIOURS}",
    covers=("S3-115",),
)
def third_moment_of_logits() -> Definition:
    """The mean over the vocabulary of the cubes of w W_U, with its mean subtracted by P_V. Divided
    by the variance to the power 3/2 it is the skewness. It is positive for a neuron that raises a
    few tokens by much and lowers the others a little, and negative for a suppression neuron, which
    lowers a few by much. The sign of w turns one into the other, as cubes keep it.

    The mean must be subtracted: a neuron that adds the same to all logits changes no probability,
    and would have large moments.
    """

    def plain(**given: Any) -> Any:
        W, reader = given["w"], given["W_U"]
        logits = [
            sum(W[0][k] * reader[k][t] for k in range(len(reader))) for t in range(len(reader[0]))
        ]
        mean = Fraction(1, len(logits)) * sum(logits)
        return [[Fraction(1, len(logits)) * sum((each - mean) ** 3 for each in logits)]]

    w = MatrixSymbol("w", 1, d)
    centred_logits = matmul(w, W_U, of_vocabulary)
    return Definition(
        "third moment",
        matmul(1 / V, HadamardPower(centred_logits, 3), OneMatrix(V, 1)),
        plain,
        on_models=False,
        obeys=("neuron_logits_add_up",),
    )


@theorem(
    title="Suppression neurons in the trained model",
    chapter=11,
    source=f"{GURNEE}, §4.2; {BEHAVIOURS}",
    covers=("S3-115",),
)
def suppression_neurons_seen() -> Observation:
    """A random neuron has a skewness of about 0, with a standard deviation of √(6/1024) = 0.08. A
    neuron that suppresses a few tokens out of 1024 has a skewness far below zero.
    """

    def observe(load: Load) -> Observed:
        moments = neuron_moments(load("gpt2_tiny")).at(moment="skewness").values
        layer, neuron = np.unravel_index(moments.argmin(), moments.shape)
        figure = (
            f"skewness of gpt2_tiny: from {moments.min():.2f} (neuron {layer}.{neuron}) to "
            f"{moments.max():+.2f}; below −1: {(moments < -1).sum()} neurons of {moments.size}"
        )
        return Observed(figure, {"minus the least skewness": float(-moments.min())})

    return Observation(
        "some neuron of gpt2_tiny has a skewness below −1",
        observe,
        {"minus the least skewness": 1.0},
        outcome="not seen",
    )


# -- neurons that delete ---------------------------------------------------------------------------

w_in, w_out = MatrixSymbol("w_in", d, 1), MatrixSymbol("w_out", 1, d)


@theorem(
    title="The cosine of what a neuron reads and writes",
    chapter=11,
    convention="row",
    source=f"{BANDWIDTH}; {MEMORY}",
    covers=("S3-124", "S2-16"),
)
def neuron_cosine() -> Definition:
    """w_out w_in/(‖w_in‖ ‖w_out‖), between the column of W_in that a neuron reads with and the row
    of W_out that it writes. Near −1 the neuron writes the opposite of what it found; near 1 it
    amplifies; for random directions the mean square is 1/d. A gain between the stream and W_in
    belongs to the reading direction (`ot.neuron_cosines` multiplies it in).
    """

    def plain(**given: Any) -> Any:
        reads, writes = given["w_in"], given["w_out"]
        size = len(reads)
        product = sum(writes[0][k] * reads[k][0] for k in range(size))
        squares = [sum(reads[k][0] ** 2 for k in range(size)), sum(x**2 for x in writes[0])]
        return [[product / math.sqrt(squares[0]) / math.sqrt(squares[1])]]

    lengths = [
        Activation(RSQRT, matmul(Transpose(w_in), w_in)),
        Activation(RSQRT, matmul(w_out, Transpose(w_out))),
    ]
    return Definition(
        "cosine of a neuron",
        matmul(w_out, w_in, *lengths),
        plain,
        bind=({"w_in": Source("W_in", cols=1), "w_out": Source("W_out", rows=1)},),
        obeys=("relu_neuron_deletes",),
    )


@theorem(
    title="A ReLU neuron with the cosine −1 deletes what it reads, where that is positive",
    chapter=11,
    convention="row",
    source=f"{BANDWIDTH}; {MEMORY}",
    covers=("S3-124", "S2-16"),
)
def relu_neuron_deletes() -> Statement:
    """Let r be a row of length 1, and let a ReLU neuron read with rᵀ and write −r. What is left of
    the stream along r is −ReLU(−X rᵀ): nothing where it was positive, and all of it where it was
    negative. So one neuron erases one half of a direction, and a pair with opposite signs the whole
    (`relu_pairs_pass_the_stream`). Other directions are not touched.
    """
    r = MatrixSymbol("r", 1, d)
    read = matmul(X, Transpose(r))
    written = matmul(activation(read, "relu"), r)
    return Statement(
        matmul(minus(X, written), Transpose(r)),
        matmul(-1, activation(matmul(-1, read), "relu")),
        given=((matmul(r, Transpose(r)), Identity(1)),),
        on_models=False,
    )


@theorem(
    title="Neurons that delete in the trained model",
    chapter=11,
    source=f"{BANDWIDTH}; {MEMORY}",
    covers=("S3-124", "S2-16"),
)
def memory_neurons_seen() -> Observation:
    """Some MLP neurons have very negative cosine similarity between their input and output weights,
    “which may indicate deleting information from the residual stream”. Very negative means here:
    below −0.5, more than five standard deviations of random directions.
    """

    def observe(load: Load) -> Observed:
        cosines = neuron_cosines(load("gpt2_tiny"))
        least, most = float(cosines.values.min()), float(cosines.values.max())
        count = int((cosines.values < -0.5).sum())
        figure = (
            f"cosines of gpt2_tiny from {least:.2f} to {most:.2f}, random r.m.s. "
            f"{cosines.baseline:.2f}; below −0.5: {count} neurons of {cosines.values.size}"
        )
        return Observed(figure, {"minus the least cosine": -least})

    return Observation(
        "some neuron of gpt2_tiny has a cosine below −0.5",
        observe,
        {"minus the least cosine": 0.5},
    )


# -- what neurons respond to -----------------------------------------------------------------------


@theorem(
    title="Measures of neurons, by loops",
    chapter=11,
    source=f"{BEHAVIOURS}; {GURNEE}",
    covers=("S3-113", "S3-114", "S3-115", "S3-124"),
)
def neuron_measures_method() -> Method:
    """`ot.neuron_cosines`, `ot.neuron_moments` and `ot.frequency_correlations` for the first
    neuron of the last layer, from its weights by loops, on models with a LayerNorm before the MLP
    and at the end. Gains are multiplied in, and means are subtracted.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        config = model.config
        if not config.d_mlp or config.norm != "layer" or not config.final_norm:
            return
        layer, size = model.n_layers - 1, model.d_model
        reads = (model.W_in[layer, :, 0] * model.ln2_gain[layer]).tolist()
        writes = model.W_out[layer, 0].tolist()
        reads, writes = ([x - math.fsum(xs) / size for x in xs] for xs in (reads, writes))
        product = math.fsum(x * y for x, y in zip(reads, writes, strict=True))
        lengths = [math.sqrt(math.fsum(x * x for x in xs)) for xs in (reads, writes)]
        few = gamma(8 * size + 16, UNIT)
        found = neuron_cosines(model).values[layer, 0]
        yield Trial("cosine", found, product / lengths[0] / lengths[1], few)
        scaled = [x * g for x, g in zip(writes, model.ln_final_gain.tolist(), strict=True)]
        logits = [math.fsum(x * y for x, y in zip(scaled, column, strict=True))
                  for column in model.W_U.T.tolist()]  # fmt: skip
        count = len(logits)
        off = few * max(math.fsum(abs(x * y) for x, y in zip(scaled, column, strict=True))
                        for column in np.abs(model.W_U.T).tolist())  # fmt: skip
        mean = math.fsum(logits) / count
        central = [x - mean for x in logits]
        second, third = (math.fsum(x**k for x in central) / count for k in (2, 3))
        moments = neuron_moments(model).values[:, layer, 0]
        much = 40 * gamma(count, UNIT) + 40 * off * max(map(abs, central)) ** 2 / second**1.5
        yield Trial("variance", moments[1], second, much * second)
        yield Trial("skewness", moments[2] + 1, third / second**1.5 + 1, much)
        logs = [math.log(1 + k) for k in range(count)]
        level = math.fsum(logs) / count
        along = math.fsum(x * (y - level) for x, y in zip(central, logs, strict=True))
        spread = math.sqrt(second * count * math.fsum((y - level) ** 2 for y in logs))
        correlation = frequency_correlations(model, np.arange(1, count + 1)).values[layer, 0]
        yield Trial("correlation", correlation + 1, along / spread + 1, much)

    return Method("ot.neuron_cosines", ("neuron_cosine", "neuron_logits_add_up"), trials)


@theorem(
    title="What the firing of a neuron tells of a label, by loops",
    chapter=11,
    source=f"{VOITA}, §5",
    covers=("S3-112",),
)
def neuron_information_method() -> Method:
    """Σ p(a, y) log₂ p(a, y)/(p(a) p(y)), where a says whether the activation is positive and y is
    the label: 0 if they are independent, and at most the entropy of the label, which a neuron
    reaches that fires exactly on one of two classes. Counted here position by position.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.d_mlp:
            return
        labels = [i * 3 // len(tokens) for i in range(len(tokens))]
        found = neuron_information(model, list(tokens), labels)
        fires = model.forward(tokens)["mlp_post.0"] > 0
        plain = [_information(fires[:, k].tolist(), labels) for k in range(8)]
        bound = gamma(100, UNIT) * 8
        yield Trial("bits", found.values[0, :8], np.array(plain), bound)

    rests = ("neuron_reads_its_column",)
    return Method("ot.neuron_information", rests, trials)


def _information(fires: Sequence[bool], labels: Sequence[int]) -> float:
    total, count = 0.0, len(labels)
    for a in (False, True):
        for y in set(labels):
            both = sum(f == a and label == y for f, label in zip(fires, labels, strict=True))
            if both:
                alone = sum(f == a for f in fires) * sum(label == y for label in labels)
                total += both / count * math.log2(both * count / alone)
    return total


@theorem(
    title="Neurons of one range of positions, and of one class of tokens",
    chapter=11,
    source=f"{VOITA}, §5; {BEHAVIOURS}",
    covers=("S3-112",),
)
def neurons_detect_labels() -> Observation:
    """Two labels of a token: whether it stands in the first half of the prompt, and whether it is
    white space. For each the neuron of gpt2_tiny whose firing tells most, as a share of the entropy
    of the label: 1 would be a neuron that fires there and nowhere else.
    """

    def observe(load: Load) -> Observed:
        model, tokens = load("gpt2_tiny"), prompts()
        half = np.arange(N_POS) < N_POS // 2
        blank = np.array([[int(not text.strip()) for text in each] for each in texts()])
        labels = {"position": np.broadcast_to(half, tokens.shape).astype(int), "blank": blank}
        bits = neuron_information(model, tokens, labels)
        shares = {}
        for name, label in labels.items():
            share = label.mean()
            entropy = -(share * np.log2(share) + (1 - share) * np.log2(1 - share))
            shares[name] = float(bits.at(label=name).values.max() / entropy)
        figure = (
            f"the best neuron of gpt2_tiny tells {shares['position']:.2f} of the half of the "
            f"prompt and {shares['blank']:.2f} of whether the token is white space"
        )
        return Observed(figure, shares)

    return Observation(
        "for each of the two labels, the firing of some neuron of gpt2_tiny tells more than half "
        "of the entropy of the label",
        observe,
        {"position": 0.5, "blank": 0.5},
    )


TOP = 10


def _purity(rows: np.ndarray, tokens: np.ndarray) -> float:
    """Return the mean share of the commonest token among the ten most active positions."""
    best = tokens[np.argpartition(-rows, TOP, axis=0)[:TOP]]
    counts = (best[:, None] == best[None]).sum(axis=0)
    return float(counts.max(axis=0).mean() / TOP)


@theorem(
    title="Are neurons better units than random directions?",
    chapter=11,
    source=f"{BEHAVIOURS}; Bricken et al. 2023, “Towards Monosemanticity”",
    covers=("S3-111",),
)
def neurons_as_units() -> Observation:
    """The claim: dimensions of the activations behind the nonlinearity are more likely to have a
    meaning by themselves. The purity of a neuron is the share of the commonest token among the ten
    positions where it is most active; the control is 128 random directions of the same
    activations. A nonlinearity that acts on each neuron alone makes neurons special in any network,
    trained or not, so a second control has random weights.
    """

    def observe(load: Load) -> Observed:
        tokens = prompts()
        layers = neuron_activations(load("gpt2_tiny"), tokens)
        directions = np.random.default_rng(0).standard_normal((layers.shape[-1], 128))
        own, turned = [], []
        for layer in layers:
            rows = layer.reshape(tokens.size, -1)
            own.append(_purity(rows, tokens.ravel()))
            turned.append(_purity((rows - rows.mean(axis=0)) @ directions, tokens.ravel()))
        pure, control = float(np.mean(own)), float(np.mean(turned))
        figure = f"mean purity of the neurons of gpt2_tiny {pure:.2f}, of directions {control:.2f}"
        return Observed(figure, {"purity above that of directions": pure - control})

    return Observation(
        "the mean purity of the neurons of gpt2_tiny is at least 0.1 above that of random "
        "directions in the same activations",
        observe,
        {"purity above that of directions": 0.1},
        outcome="not seen",
    )


@theorem(
    title="A neuron that reads two features answers to each",
    chapter=11,
    source=f"Elhage et al. 2022, “Toy Models of Superposition”; {BEHAVIOURS}",
    covers=("S3-116",),
)
def polysemantic_neuron_answers_to_each() -> Statement:
    """A neuron reads the sum of two directions, p + q. On inputs in which q does not occur
    (X qᵀ = 0) it is a detector of p: g(X (p + q)ᵀ) = g(X pᵀ), and the other way round. So a neuron
    can serve two features that hardly ever meet, which is how there can be more features than
    neurons, and its top examples then show two unrelated things. Where both occur their readings
    add up, and the neuron cannot tell which it was.
    """
    first, second = MatrixSymbol("p", 1, d), MatrixSymbol("q", 1, d)
    return Statement(
        activation(matmul(X, Transpose(matadd(first, second)))),
        activation(matmul(X, Transpose(first))),
        given=((matmul(X, Transpose(second)), ZeroMatrix(n, 1)),),
        on_models=False,
    )


@theorem(
    title="Early neurons detect tokens, and several of them",
    chapter=11,
    source=f"{VOITA}, §4; {BEHAVIOURS}",
    covers=("S3-116",),
)
def early_neurons_detect_tokens() -> Observation:
    """The claim has three parts: early neurons respond to n-grams (here: the current token explains
    more than half of the variance of the first layer's neurons, on average), late ones less so, and
    early neurons are polysemantic (the ten positions where a neuron of the first layer is most
    active have at least three different tokens, for more than half of the neurons).
    """

    def observe(load: Load) -> Observed:
        model, tokens = load("gpt2_tiny"), prompts()
        shares = label_variance(model, tokens).values.mean(axis=1)
        rows = model.forward(tokens, ["mlp_post.0"])["mlp_post.0"].reshape(tokens.size, -1)
        best = tokens.ravel()[np.argpartition(-rows, TOP, axis=0)[:TOP]]
        distinct = np.array([len(set(column)) for column in best.T.tolist()])
        several = float((distinct >= 3).mean())
        figure = (
            "variance of the neurons of gpt2_tiny explained by the current token, layer by layer: "
            f"{', '.join(f'{share:.2f}' for share in shares)}; {several:.0%} of those of the first "
            "layer have at least three tokens among their ten first examples"
        )
        values = {
            "explained in the first layer": float(shares[0]),
            "first minus last": float(shares[0] - shares[-1]),
            "polysemantic": several,
        }
        return Observed(figure, values)

    return Observation(
        "in gpt2_tiny the current token explains more than half of the variance of the first "
        "layer's neurons, and more than of the last layer's, and more than half of the first "
        "layer's neurons have at least three different tokens among their ten first examples",
        observe,
        {"explained in the first layer": 0.5, "first minus last": 0.0, "polysemantic": 0.5},
    )


# Words whose last token is "al": of the stream there, the embedding cannot tell which word it is.
WORDS = (
    "total", "global", "final", "normal", "signal", "terminal", "internal", "external", "optional",
    "original", "personal", "national", "regional", "digital", "capital",
)  # fmt: skip
BEFORE = ("x =", "return", "print(a,", "if not", "for key in")


@theorem(
    title="Detokenisation: the last token of a word comes to hold the word",
    chapter=11,
    source=f"{BEHAVIOURS}; Gurnee et al. 2023, “Finding Neurons in a Haystack”",
    covers=("S3-117",),
)
def detokenisation_seen() -> Observation:
    """Early layers are said to turn tokens into words, and late ones words into next tokens. Here:
    15 words that all end in the token `al`, in 5 contexts. How often is the word read off the
    stream at that token, by the nearest mean of the streams of the same word in the other contexts?
    The embedding alone cannot tell. Accuracy should rise in the early layers and fall at the end,
    where the stream holds what comes next.
    """

    def observe(load: Load) -> Observed:
        model, encode = load("gpt2_tiny"), load_tokenizer().encode
        names = ["resid_pre.0", *(f"resid_post.{layer}" for layer in range(model.n_layers))]
        streams = np.empty((len(names), len(BEFORE) * len(WORDS), model.d_model))
        rows = [encode(f"{before} {word}") for before in BEFORE for word in WORDS]
        for length in {len(tokens) for tokens in rows}:
            some = [number for number, tokens in enumerate(rows) if len(tokens) == length]
            run = model.forward(np.array([rows[number] for number in some]), names)
            streams[:, some] = [run[name][:, -1] for name in names]
        by_context = streams.reshape(len(names), len(BEFORE), len(WORDS), -1)
        accuracies = [_nearest(layer) for layer in by_context]
        middle = max(accuracies[1:-1])
        figure = (
            "the word is read at its last token before each layer of gpt2_tiny and after the last: "
            f"{', '.join(f'{each:.2f}' for each in accuracies)}, by chance {1 / len(WORDS):.2f}"
        )
        values = {"risen": middle - accuracies[0], "fallen": middle - accuracies[-1]}
        return Observed(figure, values)

    return Observation(
        "in gpt2_tiny the word is read from the best middle layer with an accuracy that is at "
        "least 0.3 above that of the embedding, and at least 0.05 above that of the last layer",
        observe,
        {"risen": 0.3, "fallen": 0.05},
    )


def _nearest(streams: np.ndarray) -> float:
    """Return how often the nearest mean of the other contexts is the right one [context, word]."""
    right = 0
    for context in range(len(streams)):
        means = np.delete(streams, context, axis=0).mean(axis=0)
        gaps = ((streams[context][:, None] - means[None]) ** 2).sum(axis=-1)
        right += int((gaps.argmin(axis=1) == np.arange(len(means))).sum())
    return right / streams.shape[0] / streams.shape[1]


TWIN = str(BUNDLED / "gpt2_twin" / "twin.safetensors")


@theorem(
    title="Universal neurons: the same in models trained from other seeds",
    chapter=11,
    source=f"{GURNEE}, §3; {BEHAVIOURS}",
    covers=("S3-118",),
)
def universal_neurons_seen() -> Observation:
    """A neuron is universal if models trained from other random weights have one like it: one that
    is active at the same positions. Of GPT-2's neurons 1 to 5 % were. The other model here is a
    smaller one of the same kind (two layers of 256 neurons), trained on the same text from another
    seed. For each neuron of gpt2_tiny: its largest correlation with a neuron of the other, minus
    the largest one with as many random directions in the other's activations.
    """

    def observe(load: Load) -> Observed:
        halves = prompts().reshape(-1, N_POS // 2)  # the other model was trained on 64 positions
        found = neuron_correlations(load("gpt2_tiny"), load(TWIN), halves).values
        excess = found[0] - found[1]
        share = float((excess > 0.5).mean())
        figure = (
            f"{share:.1%} of the neurons of gpt2_tiny have a correlation with a neuron of the "
            "other model that exceeds that with random directions by 0.5; the largest excess is "
            f"{excess.max():.2f}"
        )
        return Observed(figure, {"share of universal neurons": share})

    return Observation(
        "for at least 1 % of the neurons of gpt2_tiny the largest correlation with a neuron of the "
        "other model exceeds that with random directions by more than 0.5",
        observe,
        {"share of universal neurons": 0.01},
        outcome="not seen",
    )
