"""Chapter 11: what models know: context and memory, recall, truth, and signals of correctness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, fsum, log

import numpy as np
import sympy
from sympy import Identity, MatrixSymbol, Trace, Transpose

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.linear import Family, HeadSum, OneHot, matadd, matmul
from otimes.numeric.behaviours.knowledge import (
    area_under_curve,
    context_or_memory,
    eigenscore,
    lens_correctness,
    recall_effects,
)
from otimes.numeric.behaviours.precision import with_rank
from otimes.numeric.functions import normalise
from otimes.numeric.metrics import losses
from otimes.numeric.model import Model
from otimes.numeric.probes.probe import fit_probe
from otimes.numeric.rounding import gamma
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.probes_and_features.reading import squared
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import H, V, d, h, n, p, q, r, size
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

FACTS = f"{PRIMER}, “Factuality and Hallucinations in Model Predictions”"
YU = "Yu, Merullo and Pavlick 2023, “Characterizing Mechanisms for Factual Recall”"
GEVA_RECALL = "Geva et al. 2023, “Dissecting Recall of Factual Associations”"
MENG = "Meng et al. 2022, “Locating and Editing Factual Associations in GPT”"
INSIDE = (
    "Chen et al. 2024, “INSIDE: LLMs' Internal States Retain the Power of Hallucination Detection”"
)
LI = "Li et al. 2023, “Inference-Time Intervention”"
SHARMA = "Sharma et al. 2024, “The Truth is in There” (LASER)"
UNIT = 2.0**-53
SEED = 20_240_430


# -- context and memory ----------------------------------------------------------------------------


@theorem(
    title="Context against memory: the logit difference is a sum over heads and neurons",
    chapter=11,
    convention="row",
    source=f"{FACTS}; {YU}",
    covers=("S3-135",),
)
def logit_difference_of_context_and_memory() -> Statement:
    """If the context suggests one token (c) and the learnt weights another (m), the difference of
    their logits is a sum over heads and MLPs. z[h] W_O[h] is what head h wrote at a position and n
    W_out what the MLP wrote; x is the rest of the stream.

    So each component pulls towards context or memory: in-context heads have positive terms, memory
    heads negative ones. W_U is taken with the scale of the final norm in this pass.
    """
    d_head, d_mlp = size("d_head"), size("d_mlp")
    c, m = sympy.symbols("c m", integer=True)
    z, W_O = Family("z", (H,), 1, d_head), Family("W_O", (H,), d_head, d)
    x, neurons, W_out = (
        MatrixSymbol("x", 1, d),
        MatrixSymbol("n", 1, d_mlp),
        MatrixSymbol("W_out", d_mlp, d),
    )
    against = matmul(MatrixSymbol("W_U", d, V), minus(OneHot(c, V), OneHot(m, V)))
    of_heads = HeadSum(matmul(z[h], W_O[h]), (h, H))
    return Statement(
        matmul(matadd(x, of_heads, matmul(neurons, W_out)), against),
        matadd(
            matmul(x, against),
            HeadSum(matmul(z[h], W_O[h], against), (h, H)),
            matmul(neurons, W_out, against),
        ),
        on_models=False,
    )


def _conflicts(memory: Model, count: int) -> Iterator[tuple[list[int], int, int]]:
    """Yield prompts that say a token twice with the same next one, that one, and the usual one."""
    rng = np.random.default_rng(SEED)
    usual = memory.forward([0], ["logits"])["logits"]
    for _ in range(count):
        said = rng.choice(memory.d_vocab, size=10, replace=False)
        last, context = int(said[4]), int(said[5])
        usual = memory.forward([last], ["logits"])["logits"][0].argmax()
        if usual != context:
            yield [*said.tolist(), *said[:5].tolist()], context, int(usual)


CONFLICTS = 6


def _contributions(
    model: Model, conflicts: Sequence[tuple[list[int], int, int]]
) -> dict[str, np.ndarray]:
    """Return the contribution of each component on each prompt, by name."""
    tables = [context_or_memory(model, *each) for each in conflicts]
    names = tables[0].labels["component"]
    return dict(zip(names, np.array([each.values for each in tables]).T, strict=True))


def _see_conflicts(load: Load) -> Observed:
    conflicts = list(_conflicts(load("zero_layer"), CONFLICTS))
    heads = {
        name: each
        for name, each in _contributions(load("induction"), conflicts).items()
        if name.startswith("head")
    }
    mlps = [
        each
        for name, each in _contributions(load("gpt2_tiny"), conflicts).items()
        if name.startswith("mlp")
    ]
    positive = {name: float((each > 0).mean()) for name, each in heads.items()}
    context = max(heads, key=lambda name: (positive[name], heads[name].mean()))
    memory = min(heads, key=lambda name: (positive[name], heads[name].mean()))
    of_mlps = np.sum(mlps, axis=0)
    figure = (
        f"{len(conflicts)} prompts of repeated random tokens against the bigrams of zero_layer: "
        f"{context} of induction favours the context on {positive[context]:.0%} (mean "
        f"{heads[context].mean():.2f}), {memory} on {positive[memory]:.0%} (mean "
        f"{heads[memory].mean():.2f}); the MLPs of gpt2_tiny favour memory on "
        f"{(of_mlps < 0).mean():.0%} (mean {of_mlps.mean():.2f})"
    )
    values = {
        "prompts on which the in-context head favours the context": positive[context],
        "prompts on which the memory head favours memory": 1 - positive[memory],
        "prompts on which the MLPs favour memory": float((of_mlps < 0).mean()),
    }
    return Observed(figure, values)


@theorem(
    title="In-context heads, memory heads, and MLPs that remember",
    chapter=11,
    source=f"{FACTS}; {YU}",
    covers=("S3-135",),
)
def heads_of_context_and_memory() -> Observation:
    """Are there heads that always favour the context, and MLPs that always favour memory? Prompts
    are made in which the context suggests a token that `induction` can copy, and the bigram
    statistics of the training text suggest another. There is a head that copies from the context on
    every prompt, and the MLPs of `gpt2_tiny` always favour memory, but no head of `induction` does
    so that often.

    Facts about the world would need a larger model.
    """
    return Observation(
        "some head of `induction` favours the context and some other one memory on more than 90% "
        "of the prompts, and so do the MLPs of `gpt2_tiny` together memory",
        _see_conflicts,
        {
            "prompts on which the in-context head favours the context": 0.9,
            "prompts on which the memory head favours memory": 0.9,
            "prompts on which the MLPs favour memory": 0.9,
        },
        outcome="not seen",
    )


# -- recall ----------------------------------------------------------------------------------------


@theorem(
    title="Recall of facts: early MLPs, early heads, late heads",
    chapter=11,
    source=f"{FACTS}; {GEVA_RECALL}; {MENG}",
    covers=("S3-134",),
)
def factual_recall_needs_facts() -> Observation:
    """How does a model recall a fact such as where the Space Needle is? The published account:
    early MLPs at the last token of the subject add attributes, early heads carry the relation to
    the last position, and late heads extract the attribute. `ot.recall_effects` measures this by
    patching.

    The bundled models know no facts, so `recall_in_code` takes its place here.
    """
    return Observation(
        "patching the MLPs of the first half of the layers at the subject, and the attention of "
        "the second half at the end, restores more of the answer than the other halves",
        cannot="the bundled models know code of Python and no facts about the world; it needs a "
        "model such as GPT-2 XL and a set of facts such as CounterFact",
    )


def _see_recall(load: Load) -> Observed:
    model, text = load("gpt2_tiny"), sample_tokens()
    rng = np.random.default_rng(SEED)
    tables = []
    for start in (20, 60):
        clean = text[start : start + 8]
        corrupt = [*clean[:4], int(rng.integers(model.d_vocab)), *clean[5:]]
        target = int(model.forward(clean, ["logits"])["logits"][-1].argmax())
        tables.append(recall_effects(model, clean, corrupt, 4, target=target).values)
    effects, half = np.mean(tables, axis=0), model.n_layers // 2
    mlp, attention = effects[0], effects[3]
    early = float(mlp[:half].sum() - mlp[half:].sum())
    late = float(attention[half:].sum() - attention[:half].sum())
    figure = (
        f"restored by layer in gpt2_tiny: MLPs at the changed token "
        f"{', '.join(f'{each:.2f}' for each in mlp)}; attention at the end "
        f"{', '.join(f'{each:.2f}' for each in attention)}"
    )
    return Observed(figure, {"MLPs, early minus late": early, "attention, late minus early": late})


@theorem(
    title="The roles of MLPs and attention in recall, looked for in code",
    chapter=11,
    source=f"{FACTS}; {GEVA_RECALL}; {MENG}",
    covers=("S3-134",),
)
def recall_in_code() -> Observation:
    """Do MLPs and attention share the work of recall in the way described for facts? In two windows
    of Python source a token three places before the end is replaced by a random one. It is measured
    which clean outputs restore the clean prediction: MLPs at that token, early or late, and
    attention at the end.

    This is recall of what usually follows, not of facts.
    """
    return Observation(
        "the MLPs of the first half of the layers restore more at the token than those of the "
        "second, and attention of the second half more at the end than that of the first",
        _see_recall,
        {"MLPs, early minus late": 0.0, "attention, late minus early": 0.0},
        outcome="not seen",
    )


# -- truth -----------------------------------------------------------------------------------------


@theorem(
    title="Truthfulness as a direction",
    chapter=11,
    source=f"{FACTS}; {LI}; Marks and Tegmark 2023, “The Geometry of Truth”",
    covers=("S3-131",),
)
def truth_needs_statements() -> Observation:
    """Is there a direction for truth? A probe on activations of true and false statements finds
    one, and adding it, x + αu, is said to make answers more truthful (`steering_shifts_logits` is
    the algebra). `ot.fit_probe`, `ot.selectivity` and `ot.steer` are the tools for it.

    The bundled models know no true and false statements. `code_or_shuffled` tries the nearest
    thing.
    """
    return Observation(
        "a probe tells held-out true statements from false ones, and steering along it raises the "
        "share of true answers more than random directions",
        cannot="the bundled models know nothing that is true or false; it needs a model that "
        "answers questions, and a labelled set such as TruthfulQA",
    )


WINDOW = 10


def _windows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return windows of the sample, and the same with all but the last token in random order."""
    text, rng = np.array(sample_tokens()), np.random.default_rng(seed)
    windows = np.stack([text[at : at + WINDOW] for at in range(0, len(text) - WINDOW, 2)])
    return windows, np.concatenate([rng.permuted(windows[:, :-1], axis=1), windows[:, -1:]], axis=1)


def _see_truth(load: Load) -> Observed:
    model, (real, shuffled) = load("gpt2_tiny"), _windows(SEED)
    after = np.array(sample_tokens()[WINDOW::2])
    rows = [model.forward(each, ["final"])["final"][:, -1] for each in (real, shuffled)]
    half = len(real) // 2
    train, test = (
        np.concatenate([each[some] for each in rows])
        for some in (slice(half), slice(half + WINDOW // 2, None))
    )
    labels = [np.repeat([1, 0], len(each) // 2) for each in (train, test)]
    probe = fit_probe(train, labels[0], "ridge")
    accuracy = probe.accuracy(test, labels[1])
    direction = probe.W[:, 1] - probe.W[:, 0]
    others = np.random.default_rng(SEED).standard_normal((3, model.d_model))
    scale = float(np.linalg.norm(train, axis=1).mean()) / 4
    gains = [
        _gain(
            model,
            rows[1][half + WINDOW // 2 :],
            scale * each / np.linalg.norm(each),
            after[half + WINDOW // 2 :],
        )
        for each in (direction, *others)
    ]
    figure = (
        f"code or the same tokens shuffled, told from the last stream of gpt2_tiny: {accuracy:.0%} "
        f"of {len(test)} held-out windows; steering shuffled ones along the probe's direction adds "
        f"{gains[0]:+.2f} to the log-probability of the right token, random directions at most "
        f"{max(gains[1:]):+.2f}"
    )
    values = {
        "accuracy": accuracy,
        "gain": gains[0],
        "gain above random": gains[0] - max(gains[1:]),
    }
    return Observed(figure, values)


def _gain(model: Model, rows: np.ndarray, step: np.ndarray, targets: np.ndarray) -> float:
    """Return what a step adds to the mean log-probability of the right tokens."""
    config, found = model.config, []
    for each in (rows, rows + step):
        gain, bias = model.part("ln_final_gain"), model.part("ln_final_bias")
        logits = normalise(each, config.norm, config.norm_eps, gain, bias) @ model.W_U + model.b_U
        top = logits.max(axis=1, keepdims=True)
        logs = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        found.append(float(logs[np.arange(len(rows)), targets].mean()))
    return found[1] - found[0]


@theorem(
    title="Code or shuffled code: a probe and its direction",
    chapter=11,
    source=f"{FACTS}; {LI}",
    covers=("S3-131",),
)
def code_or_shuffled() -> Observation:
    """Can a probe find a direction that distinguishes real code from shuffled code, and does adding
    it make the model behave as on real code? Windows of the sample are compared with the same
    tokens shuffled, except for the last. A probe on the final stream of one half of the windows is
    tested on the other. Then a quarter of the stream's norm is added along its direction to
    shuffled windows: does the token that follows in the real code become more probable?
    """
    return Observation(
        "more than 75% of the held-out windows are told apart, and the direction makes the right "
        "token more probable, more than three random directions",
        _see_truth,
        {"accuracy": 0.75, "gain": 0.0, "gain above random": 0.0},
        outcome="not seen",
    )


# -- signals of correctness ------------------------------------------------------------------------


def _see_signal(load: Load) -> Observed:
    try:
        found = lens_correctness(load("gpt2_tiny"), sample_tokens())
    except OtimesError:  # no prediction is right
        return Observed("no prediction is right", {"area before the last layer": 0.5})
    areas = dict(zip(found.labels["activation"], found.values, strict=True))
    said = ", ".join(f"{name} {area:.2f}" for name, area in areas.items())
    figure = (
        f"area under the curve of the lens's log-probability in gpt2_tiny: {said}; {found.about}"
    )
    return Observed(figure, {"area before the last layer": float(areas["resid_pre.3"])})


@theorem(
    title="The logit lens as a signal that an answer is right",
    chapter=11,
    source=f"{FACTS}, on attributes in intermediate layers",
    covers=("S3-133",),
)
def lens_signals_correctness() -> Observation:
    """Does the logit lens show early whether a prediction will be right? If an answer is right, its
    token often has a high logit at intermediate layers. Here answers are the model's predictions of
    each next token of the sample. The area under the curve is 0.5 by chance; the last layer's value
    is the model's own confidence.

    Random models are right now and then, and a few such cases can give a high area by luck.
    """
    return Observation(
        "before the last layer, the log-probability of the predicted token by the logit lens is "
        "larger for a right prediction than for a wrong one in more than 60% of all pairs",
        _see_signal,
        {"area before the last layer": 0.6},
        outcome="seen at random too",
    )


K = size("K")
answers, basis = MatrixSymbol("Z", K, d), MatrixSymbol("U", K, K)
spectrum, covariance = MatrixSymbol("Lambda", K, K), MatrixSymbol("Sigma", K, K)
ridge = sympy.Symbol("alpha", positive=True)


@theorem(
    title="Adding αI to a covariance adds α to its eigenvalues",
    chapter=11,
    convention="row",
    source=f"{FACTS}; {INSIDE}, §3.1",
    covers=("S3-132",),
)
def covariance_shifted_by_alpha() -> Statement:
    """Adding αI to a symmetric matrix adds α to each of its eigenvalues and keeps the eigenvectors.
    For Σ = U Λ Uᵀ with diagonal Λ, log det(Σ + αI) is therefore the sum of log(λ_k + α).

    EigenScore, a measure of how much several answers of a model differ, is the mean of these
    logarithms. α keeps them finite.
    """
    return Statement(
        matadd(matmul(basis, spectrum, Transpose(basis)), matmul(ridge, Identity(K))),
        matmul(basis, matadd(spectrum, matmul(ridge, Identity(K))), Transpose(basis)),
        given=((matmul(basis, Transpose(basis)), Identity(K)),),
        on_models=False,
    )


@theorem(
    title="No eigenvalue of ZZᵀ + αI is below α",
    chapter=11,
    convention="row",
    source=f"{FACTS}; {INSIDE}, §3.1",
    covers=("S3-132",),
)
def eigenvalues_of_covariance_are_at_least_alpha() -> Bound:
    """No eigenvalue of ZZᵀ + αI is below α: for any row v, v(ZZᵀ + αI)vᵀ = α‖v‖² + ‖vZ‖². Z has the
    embeddings of K answers as rows.

    If all answers are equal, all eigenvalues but one are α, and EigenScore is near its least value,
    log α. Answers that differ raise it.
    """
    v = MatrixSymbol("v", 1, K)
    shifted = matadd(matmul(answers, Transpose(answers)), matmul(ridge, Identity(K)))
    return Bound(
        ridge * squared(v),
        Trace(matmul(v, shifted, Transpose(v))),
        because=(Square(matmul(v, answers)),),
        tight={"v": [[1, -1]], "Z": [[2], [2]], "alpha": 3},
        on_models=False,
    )


@theorem(
    title="eigenscore, area_under_curve: determinants by elimination, areas by all pairs",
    chapter=11,
    source=INSIDE,
    covers=("S3-132", "S3-133"),
)
def eigenscore_method() -> Method:
    """`eigenscore` measures how much several answers differ by the determinant of the covariance of
    their embeddings, and `area_under_curve` how well a score separates two groups. They are
    compared with Gaussian elimination on rows of an embedding, and with counting all pairs.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        rows = model.W_E[:4, :8] * 3
        centred = [[each - fsum(row) / 8 for each in row] for row in rows]
        sigma = [[fsum(a * b for a, b in zip(x, y, strict=True)) for y in centred] for x in centred]
        for at in range(4):
            sigma[at][at] += 0.5
        logs = []
        for at in range(4):
            logs.append(log(sigma[at][at]))
            for low in range(at + 1, 4):
                by = sigma[low][at] / sigma[at][at]
                sigma[low] = [a - by * b for a, b in zip(sigma[low], sigma[at], strict=True)]
        condition = 1 + float(np.square(rows).sum()) / 0.5
        yield Trial(
            "score", eigenscore(rows.tolist(), 0.5), fsum(logs) / 4, gamma(400, UNIT) * condition
        )
        scores = rows.ravel().round(1)
        labels = [number % 3 == 0 for number in range(len(scores))]
        ones = [each for each, label in zip(scores, labels, strict=True) if label]
        zeros = [each for each, label in zip(scores, labels, strict=True) if not label]
        pairs = [(a > b) + (a == b) / 2 for a in ones for b in zeros]
        yield Trial(
            "area", area_under_curve(scores, labels), fsum(pairs) / len(pairs), gamma(9, UNIT)
        )

    rests = ("covariance_shifted_by_alpha", "eigenvalues_of_covariance_are_at_least_alpha")
    return Method("ot.eigenscore", rests, trials)


# -- smaller ranks ---------------------------------------------------------------------------------


@theorem(
    title="The best weight of a smaller rank for given activations",
    chapter=11,
    convention="row",
    source=f"{FACTS}; {SHARMA}; Eckart and Young 1936",
    covers=("S3-136",),
)
def low_rank_for_activations() -> Bound:
    """Replacing a weight W by one of rank r changes its outputs on activations X by at least ‖XW‖²
    − ‖XWV‖², where the orthonormal columns of V (q × r) span the rows of the new weight; B = WV
    reaches this. By `eckart_young`, applied to XW, the best V are the first right singular vectors
    of the outputs XW.

    Those of W itself are the best for W (`truncation_error`), but not for the outputs. Whether the
    loss of the model falls is another question (`low_rank_helps`).
    """
    inputs, W = MatrixSymbol("X", n, p), MatrixSymbol("W", p, q)
    Q, B = MatrixSymbol("V", q, r), MatrixSymbol("B", p, r)
    return Bound(
        squared(matmul(inputs, W)) - squared(matmul(inputs, W, Q)),
        squared(minus(matmul(inputs, W), matmul(inputs, B, Transpose(Q)))),
        because=(Square(minus(matmul(inputs, W, Q), matmul(inputs, B))),),
        given=((matmul(Transpose(Q), Q), Identity(r)),),
        tight={"X": [[1, 2]], "W": [[1, 2], [3, 4]], "V": [[1], [0]], "B": [[1], [3]]},
        on_models=False,
    )


def _see_ranks(load: Load) -> Observed:
    model, text = load("gpt2_tiny"), sample_tokens()
    halves = [text[:50], text[50:100]]
    full = [float(losses(model, half).mean()) for half in halves]
    tried = {
        (name, layer, rank): with_rank(model, name, layer, rank)
        for name in ("W_in", "W_out")
        for layer in (model.n_layers - 2, model.n_layers - 1)
        for rank in (64,)
    }
    first = {key: float(losses(each, halves[0]).mean()) for key, each in tried.items()}
    best = min(first, key=lambda key: first[key])
    second = float(losses(tried[best], halves[1]).mean())
    figure = (
        f"loss of gpt2_tiny on two halves of the sample {full[0]:.3f} and {full[1]:.3f}; with "
        f"{best[0]} of layer {best[1]} of rank {best[2]}, the best of four on the first half, "
        f"{first[best]:.3f} and {second:.3f}"
    )
    values = {
        "saved on the first half": full[0] - first[best],
        "saved on the second": full[1] - second,
    }
    return Observed(figure, values)


@theorem(
    title="Can a smaller rank of an MLP weight lower the loss?",
    chapter=11,
    source=f"{FACTS}; {SHARMA}",
    covers=("S3-136",),
)
def low_rank_helps() -> Observation:
    """Can truncating an MLP weight to a smaller rank lower the loss, as is reported for large
    models? W_in and W_out of the last two layers of `gpt2_tiny` (rank 128) are truncated to
    rank 64. The best of these four on one half of the sample is tested on the other half, so that a
    benefit found by selection does not count.
    """
    return Observation(
        "of four truncations the one with the least loss on the first half of the sample has less "
        "loss than the full model on both halves",
        _see_ranks,
        {"saved on the first half": 0.0, "saved on the second": 0.0},
        outcome="not seen",
    )


@theorem(
    title="context_or_memory and lens_correctness, by a plain forward pass",
    chapter=11,
    source=f"{YU}; {FACTS}",
    covers=("S3-133", "S3-135"),
)
def context_or_memory_method() -> Method:
    """`context_or_memory` divides a logit difference over components, and `lens_correctness`
    measures how well each layer's lens predicts that an answer is right. Checked: the components
    sum to the logit difference of the forward pass, and the last layer's area under the curve is
    that of the model's own log-probabilities, by loops.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        places = model.forward(tokens, ["logits", "final"])
        logits = places["logits"]
        found = context_or_memory(model, tokens, 5, 7)
        size = float(np.abs(found.values).sum() + np.abs(model.W_U).sum(axis=0).max())
        bound = gamma(8 * model.d_model + 400, UNIT) * size * (1 + np.abs(places["final"]).max())
        difference = float(logits[-1, 5] - logits[-1, 7])
        yield Trial("difference", float(found.values.sum()), difference, bound)
        yield Trial("difference as it is said", found.whole or 0.0, difference, bound)
        guesses = [int(row.argmax()) for row in logits[:-1]]
        right = [guess == token for guess, token in zip(guesses, tokens[1:], strict=True)]
        if not any(right) or all(right):
            return
        sure = [
            row[guess] - log(fsum(exp(each) for each in row))
            for row, guess in zip(logits[:-1], guesses, strict=True)
        ]
        area = area_under_curve(sure, right)
        yield Trial("area", lens_correctness(model, tokens).values[-1], area, gamma(9, UNIT))

    rests = ("logit_difference_of_context_and_memory", "direct_logits_add_up")
    return Method("ot.context_or_memory", rests, trials)
