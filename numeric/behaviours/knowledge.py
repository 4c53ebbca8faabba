r"""Context against memory, recall, and signals of whether an answer is right.

    context or memory   each component's contribution to logit(from the context) - logit(memory)
    recall              what restores an answer: MLPs at the subject, attention at the last position
    lens signal         how well the logit lens at each layer tells right answers from wrong ones
    EigenScore          $\frac1K \log\det(Σ + αI)$ of the embeddings of K answers to one question

Source: Yu, Merullo and Pavlick 2023, “Characterizing Mechanisms for Factual Recall” (in-context and
memory heads); Meng et al. 2022 and Geva et al. 2023, “Dissecting Recall of Factual Associations in
Auto-Regressive Language Models”; Chen et al. 2024, “INSIDE: LLMs' Internal States Retain the Power
of Hallucination Detection” (EigenScore); Ferrando et al. 2024, “A Primer on the Inner Workings of
Transformer-based Language Models”, “Factuality and Hallucinations”.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.attribution.direct import direct_logit_attribution
from otimes.numeric.attribution.target import Tokens
from otimes.numeric.circuits.lens import logit_lens
from otimes.numeric.circuits.result import Named
from otimes.numeric.interventions.contrast import contrast
from otimes.numeric.interventions.hooks import Hook, changeable_hook
from otimes.numeric.interventions.passes import Pass
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.probes.data import read_rows
from otimes.numeric.prompt import Prompts, read_position, read_prompts, read_token


def context_or_memory(model: ModelSource, prompts: Prompts, context: Any, memory: Any) -> Named:
    """Return each component's contribution to logit(context) - logit(memory) [component].

    In each of the prompts the text says one token (`context`) and the weights have learnt another
    (`memory`); both are tokens, or one for each prompt. The mean over prompts is returned for every
    head, MLP, bias and the embedding at the last position; the sum is the mean logit difference.
    In-context heads are positive, memory heads negative. The scale of the final norm is frozen.

    Proved by: direct_logits_add_up, logit_difference_of_context_and_memory.

    >>> found = context_or_memory("induction", "a b c d a b c", context=" d", memory=" =")
    >>> found.axes, abs(found.missing) < 1e-9
    (('component',), True)

    Raises: OtimesError for an invalid prompt or token, ShapeError for another number of tokens.
    """
    loaded = load_model(model)
    rows = read_prompts(loaded, prompts)
    said, known = (_tokens(loaded, each, len(rows)) for each in (context, memory))
    if any(a == b for a, b in zip(said, known, strict=True)):
        raise OtimesError("context and memory are the same token in a prompt: there is no conflict")
    tables = [
        direct_logit_attribution(loaded, row, a, b).by_component(heads=True)
        for row, a, b in zip(rows, said, known, strict=True)
    ]
    values = np.mean([each.values for each in tables], axis=0)
    whole = float(np.mean([each.whole for each in tables]))
    return Named(
        "context or memory", values, ("component",), tables[0].labels, about="logit difference",
        whole=whole,
    )  # fmt: skip


def _tokens(model: Any, given: Any, count: int) -> list[int]:
    many = not isinstance(given, str | int | np.integer)
    tokens = [read_token(model, each) for each in (list(given) if many else [given] * count)]
    if len(tokens) != count:
        raise ShapeError(f"there are {count} prompts and {len(tokens)} tokens: give one for each")
    return tokens


def recall_effects(
    model: ModelSource,
    clean: Any,
    corrupt: Any,
    subject: int | Sequence[int],
    target: Tokens = None,
    foil: Tokens = None,
) -> Named:
    """Return how much of an answer each layer restores [part, layer].

    The clean prompt has the answer `target`; in the corrupt one the subject is another. Into the
    pass on the corrupt prompt the clean output of one layer is put: of its MLP at the positions
    `subject` (`mlp at the subject`), of its attention there, and of both at the last position. The
    score is 0 for no change and 1 for the answer of the clean prompt (`activation_patching`). In
    large models facts are restored by early MLPs at the subject and late attention at the end.

    Proved by: noising_and_denoising_agree_when_linear.

    >>> recall_effects("gpt2_tiny", "class A(object):", "class A(dict):", 3).values.shape
    (4, 4)

    Raises: OtimesError for a model without MLPs, an unknown position, or what
    `activation_patching` raises.
    """
    of = contrast(model, clean, corrupt, target, foil, -1, None)
    loaded = of.model
    if not loaded.config.d_mlp:
        raise OtimesError(f"{loaded.name} has no MLPs, whose part in recall is asked for")
    n_pos = len(of.tokens)
    places = [subject] if isinstance(subject, int | np.integer) else list(subject)
    at = tuple(read_position(n_pos, each) for each in places)
    run = Pass(loaded, of.other)
    parts = [(kind, where) for where in (at, (n_pos - 1,)) for kind in ("mlp_out", "attn_out")]
    changeable_hook(loaded, Hook("attn_out.0"))
    values = np.empty((len(parts), loaded.n_layers))
    for number, (kind, where) in enumerate(parts):
        for layer in range(loaded.n_layers):
            name = f"{kind}.{layer}"
            edit = {Hook(name, positions=where): of.clean[name][list(where)]}
            values[number, layer] = of.of_edited(run, edit)
    return Named("recall", of.score(values), ("part", "layer"), {"part": RECALL}, about=of.about)


RECALL = (
    "mlp at the subject",
    "attention at the subject",
    "mlp at the end",
    "attention at the end",
)


def lens_correctness(model: ModelSource, prompts: Prompts) -> Named:
    r"""Return how well the logit lens tells right from wrong predictions, by layer [activation].

    At each position but the last of each prompt the model predicts the token with the largest
    logit, which is right or not. The signal is the log-probability of that token by the logit lens
    with its own scale; the score is the probability that it is larger for a right prediction than
    for a wrong one (the area under the ROC curve): 0.5 is chance. The last entry is the confidence
    of the model itself.

    >>> lens_correctness("two_layer", "for i in range(10):\n    x = range(10)").values.shape
    (3,)

    Raises: OtimesError if all predictions are right, or all wrong.
    """
    loaded = load_model(model)
    rows = read_prompts(loaded, prompts)
    right, signals = [], []
    labels: Mapping[str, Sequence[str]] = {}
    for row in rows:
        lens = logit_lens(loaded, row, "own", slice(0, len(row) - 1))
        logits, labels = lens.values, lens.labels
        guess = logits[-1].argmax(axis=1)
        shifted = logits - logits.max(axis=2, keepdims=True)
        total = np.log(np.exp(shifted).sum(axis=2))
        signals.append(shifted[:, np.arange(len(guess)), guess] - total)
        right.append(guess == row[1:])
    correct = np.concatenate(right)
    values = [area_under_curve(each, correct) for each in np.concatenate(signals, axis=1)]
    names = {"activation": labels["activation"]}
    share = f"{correct.mean():.0%} of {len(correct)} predictions are right"
    return Named("signal of correctness", np.array(values), ("activation",), names, 0.5, share)


def area_under_curve(scores: Any, labels: Any) -> float:
    """Return the probability that a positive example scores higher than a negative; ties count ½.

    >>> area_under_curve([0.1, 0.7, 0.7, 0.9], [False, False, True, True])
    0.875

    Raises: ShapeError for another number of labels, OtimesError without positives or negatives.
    """
    values, positive = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    if values.ndim != 1 or values.shape != positive.shape:
        raise ShapeError(f"scores {values.shape} and labels {positive.shape} must be lists alike")
    ones, zeros = values[positive], np.sort(values[~positive])
    if not len(ones) or not len(zeros):
        raise OtimesError("the area under the curve needs examples of both kinds: all are alike")
    below = np.searchsorted(zeros, ones, "left") + np.searchsorted(zeros, ones, "right")
    return float(below.sum() / (2 * len(ones) * len(zeros)))


def eigenscore(embeddings: Any, alpha: float = 1e-3) -> float:
    r"""Return $\frac1K \log\det(Σ + αI) = \frac1K Σ_k \log λ_k$ of K answers to one question.

    `embeddings` [answer, d] are activations of the answers; Σ is their K × K Gram matrix after
    each row is centred, $Σ = Z J_d Z^T$ with $J_d = I - 11^T/d$, and λ_k are the eigenvalues of
    Σ + αI. A small score says that the answers agree in meaning: answers whose embeddings are equal
    have all but one eigenvalue at α. Nothing less than log α is possible.

    Proved by: covariance_shifted_by_alpha, eigenvalues_of_covariance_are_at_least_alpha.

    >>> same, apart = [[1.0, 0.0, 2.0]] * 3, [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]
    >>> eigenscore(same) < eigenscore(apart)
    True

    Raises: OtimesError for an α that is not positive, or fewer than two answers.
    """
    rows = read_rows(embeddings, "the embeddings")
    if len(rows) < 2:
        raise OtimesError("a covariance of answers needs at least two answers, got one")
    if not isinstance(alpha, int | float | np.floating) or not 0 < alpha < np.inf:
        raise OtimesError(f"alpha must be a positive number, got {alpha!r}")
    return float(np.log(eigenvalues(rows, float(alpha))).mean())


def eigenvalues(rows: Float[np.ndarray, "answer d"], alpha: float) -> Float[np.ndarray, " answer"]:
    """Return the eigenvalues of the Gram matrix of centred rows plus α, the smallest first."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    squares = np.zeros(len(rows))
    found = np.linalg.svd(centred, compute_uv=False) ** 2
    squares[: len(found)] = found
    return np.asarray(np.sort(squares + alpha))


def answers_to(model: ModelSource, prompts: Prompts) -> Float[np.ndarray, "answer d_model"]:
    """Return the final residual stream at the last token of each prompt: embeddings of answers.

    >>> answers_to("two_layer", ["x = 1", "x = 2"]).shape
    (2, 128)

    Raises: OtimesError for an invalid prompt.
    """
    loaded = load_model(model)
    rows = read_prompts(loaded, prompts)
    return np.asarray(loaded.forward(rows, ["final"])["final"][:, -1])
