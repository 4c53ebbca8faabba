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
from otimes.proofs.catalogue.text import N_POS, prompts, texts
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
    """What is written to the null space of the unembedding changes no logit in a model without a
    final norm: if Y W_U = 0, the logits of X + Y are those of X.

    Some neurons of trained models write mainly to such directions, which would be useless if there
    were no final norm. With one they have a use (`null_space_sets_temperature`).
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
    """A neuron that writes to the null space of the unembedding (Y W_U = 0) changes the confidence
    of the prediction through the final norm. The norm divides by the size of the whole stream, so
    the logits with Y are those without Y times one factor s(X + Y)/s(X) for each position, where s
    is 1/√(mean square + ε); for ε = 0 it is ‖x‖/‖x + y‖. If y is orthogonal to x, the factor is
    below 1 and the prediction becomes less certain. The order of tokens does not change.

    Such neurons, found in GPT-2, are called entropy neurons.

    The gain of the norm is part of W_U here. A W_U with a large vocabulary has no exact null space;
    what counts then are the directions on which it acts least.
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
    """Entropy neurons (`null_space_sets_temperature`) work behind a LayerNorm as well. The norm
    subtracts the mean first, with P = I − 11ᵀ/d, so the condition becomes Y P W_U = 0, with the
    gain folded into W_U. The logits at each position are multiplied by one factor, the ratio of the
    two 1/σ.

    The direction (1, …, 1) is no entropy direction: it is subtracted before σ is computed and
    changes nothing.
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
    title="With a bias in the final norm an entropy neuron is no temperature",
    chapter=11,
    convention="row",
    source=f"{STOLFO}; follows from the definition with β",
    covers=("S3-119",),
)
def bias_is_not_scaled() -> NonIdentity:
    """If the final norm has a bias β, an entropy neuron does not simply multiply all logits by one
    factor: β W_U is added after the division and does not shrink with it. The ranking of tokens,
    and so the best guess, may then change. X is the stream without the neuron and Y what the neuron
    writes.

    So “entropy neurons keep the most probable token” holds for the logits without such biases.
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
    """Does the trained model with MLPs have an entropy neuron, one that changes the entropy of the
    prediction through the final norm? Taken is the neuron in the last layer of `gpt2_tiny` with the
    largest share of its output in the sixteenth of directions that W_U reads least. It counts if
    that share is more than half, and if less than half of its effect on the entropy remains when
    the norm's scale is frozen.
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
    """The logits that an MLP contributes directly are a sum over its neurons: each adds its row of
    W_out W_U, V fixed numbers, times its activation, and b_out W_U is added once.

    So the largest entries of that row tell which tokens a neuron promotes, for all prompts at once.
    Statements that a neuron “knows” a fact or a language are based on this.

    What later layers make of the neuron is not included, and a final norm divides everything by the
    scale of the whole stream.
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
    """Do neurons promote classes of tokens? A neuron of the trained model promotes a class if the
    ten tokens with its largest direct logits all belong to it. The classes are those of a tokenizer
    for source code: white space, digits, words after a space, letters without one, and signs.
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
    """A neuron can make the model rely more, or less, on how common tokens are. If it writes along
    w with w W_U = ℓ, the row of log frequencies of all tokens, its activation a adds aℓ to the
    logits: each probability is multiplied by the token's frequency to the power a and renormalised.
    With a > 0 common tokens gain, with a < 0 rare ones. In the formula the activation is the same
    at all positions.

    Such neurons are called token-frequency neurons.

    A constant added to ℓ has no effect (`softmax_ignores_row_constants`). So compare a neuron's
    logits with ℓ by correlation and not by cosine.
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
    """Does the trained model have token-frequency neurons, whose direct logits correlate with the
    log frequencies of tokens? Frequencies are those of the training text of the bundled models,
    with one added to each count (`otimes.numeric.corpus.unigram_counts`). Random directions have a
    correlation of about 1/√1023 = 0.03.
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
    """The third moment of what a neuron adds to the logits says whether it raises a few tokens by
    much or lowers a few by much: it is the mean over the vocabulary of the cubes of w W_U, with the
    mean subtracted (P_V = I − 11ᵀ/V). Divided by the variance to the power 3/2 it is the skewness.
    It is positive for neurons that promote a few tokens and negative for suppression neurons.

    The mean must be subtracted: a neuron that adds the same to all logits changes no probability
    and would have large moments. The sign of w turns one kind into the other.
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
    """Does the trained model have suppression neurons, which lower the logits of a few tokens by
    much? Such a neuron has a skewness far below zero (`third_moment_of_logits`). A random neuron
    has about 0, with a standard deviation of √(6/1024) = 0.08.
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
    """The cosine between what a neuron reads (its column w_in of W_in) and what it writes (its row
    w_out of W_out) tells what it does to its own input direction: near −1 it removes it, near 1 it
    amplifies it. For random directions the mean square of the cosine is 1/d.

    A gain between the stream and W_in belongs to the reading direction; `ot.neuron_cosines`
    multiplies it in.
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
    """A ReLU neuron that reads a unit direction r and writes −r deletes this direction where it is
    positive: what is left of the stream X along r is −ReLU(−X rᵀ), zero where X rᵀ was positive and
    unchanged where it was negative.

    Two neurons with opposite signs delete it entirely (`relu_pairs_pass_the_stream`). Other
    directions are not affected.
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
    """Does the trained model have neurons that write the opposite of what they read? A very
    negative cosine between input and output weights “may indicate deleting information from the
    residual stream”. Very negative means below −0.5 here, more than five standard deviations of
    random directions (`neuron_cosine`).
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
    """`ot.neuron_cosines`, `ot.neuron_moments` and `ot.frequency_correlations` measure neurons by
    their weights: the cosine of reading and writing directions, the moments of their logits, and
    the correlation of these with token frequencies. They are compared with loops for the first
    neuron of the last layer, on models with LayerNorms; gains are multiplied in and means
    subtracted.
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
        cosines = neuron_cosines(model)
        found = cosines.values[layer, 0]
        yield Trial("cosine", found, product / lengths[0] / lengths[1], few)
        yield Trial("of every neuron", cosines.values, _cosines_by_loops(model), few)
        yield Trial("at random", cosines.baseline or 0.0, 1 / math.sqrt(size - 1), few)
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
    """`neuron_information` computes how many bits the firing of a neuron tells about a label: Σ
    p(a, y) log₂ p(a, y)/(p(a) p(y)), where a says whether the activation is positive and y is the
    label. It is 0 if they are independent and at most the entropy of the label. It is compared with
    counting position by position.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.d_mlp:
            return
        labels = [i * 3 // len(tokens) for i in range(len(tokens))]
        found, places = neuron_information(model, list(tokens), labels), model.forward(tokens)
        plain = np.zeros(found.values.shape)
        known: dict[tuple[bool, ...], float] = {}
        for layer, neuron in np.ndindex(plain.shape):
            fires = tuple((places[f"mlp_post.{layer}"][:, neuron] > 0).tolist())
            if fires not in known:
                known[fires] = _information(fires, labels)
            plain[layer, neuron] = known[fires]
        bound = gamma(100, UNIT) * 8
        yield Trial("bits", found.values, plain, bound)
        chance = (max(labels) + 1 - 1) / (2 * len(tokens) * math.log(2))
        yield Trial("bits by chance", found.baseline or 0.0, chance, gamma(9, UNIT))

    rests = ("neuron_reads_its_column",)
    return Method("ot.neuron_information", rests, trials)


def _cosines_by_loops(model: Model) -> np.ndarray:
    """Return the cosine of what each neuron reads and writes, with their means subtracted."""
    found = np.zeros((model.n_layers, model.config.d_mlp))
    for layer, neuron in np.ndindex(found.shape):
        reads = model.W_in[layer, :, neuron] * model.ln2_gain[layer]
        both = [
            reads - reads.mean(),
            model.W_out[layer, neuron] - model.W_out[layer, neuron].mean(),
        ]
        x, y = (each / math.sqrt(float(each @ each)) for each in both)
        found[layer, neuron] = float(x @ y)
    return found


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
    """Are there neurons that fire for one range of positions, or for one class of tokens? The
    labels are whether a token stands in the first half of the prompt, and whether it is white
    space. For each label, the neuron of `gpt2_tiny` whose firing tells most is reported, as a share
    of the label's entropy: 1 would be a neuron that fires exactly there.
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
    """Are neurons better units of meaning than random directions? The purity of a neuron is the
    share of the most common token among the ten positions where it is most active. It is compared
    with 128 random directions of the same activations, and with a model with random weights,
    because an activation function that acts on each neuron alone makes neurons special in any
    network.
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
    """One neuron can serve two features that hardly ever occur together. It reads the sum of two
    directions, p + q; on inputs without q (X qᵀ = 0) it is a detector of p, and the other way
    round.

    So there can be more features than neurons, and the top examples of a neuron then show two
    unrelated things (polysemanticity). If both features occur, their readings add up and cannot be
    told apart.
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
    """Do early neurons detect tokens, and several each? The claim has three parts: the current
    token explains more than half of the variance of the first layer's neurons on average; it
    explains less in late layers; and more than half of the first layer's neurons have at least
    three different tokens among the ten positions where they are most active.
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
    """Does the stream at the last token of a word come to represent the whole word? Fifteen words
    that end in the token `al` are placed in five contexts each. How often can the word be read from
    the stream at that token, by the nearest mean of the same word's streams in the other contexts?
    The embedding alone cannot tell.

    The claim is that accuracy rises in early layers and falls at the end, where the stream holds
    the next token instead.
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
    """Do models trained from different random weights have the same neurons? A neuron is called
    universal if another model has one that is active at the same positions; of GPT-2's neurons 1 to
    5 % were. The other model here is smaller (two layers of 256 neurons) and trained on the same
    text from another seed. For each neuron of `gpt2_tiny`: its largest correlation with a neuron of
    the other model, minus the largest with as many random directions there.
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
