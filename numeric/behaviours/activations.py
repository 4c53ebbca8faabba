r"""What neurons respond to: classes of tokens, positions, single tokens, and other neurons.

Source: Voita, Ferrando and Nalmpantis 2024, “Neurons in Large Language Models: Dead, N-gram,
Positional”; Bau et al. 2019 (top activating examples); Gurnee et al. 2023, “Finding Neurons in a
Haystack”, and 2024, “Universal Neurons in GPT2 Language Models”.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.circuits.result import Named
from otimes.numeric.features.measures import Activating
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import Prompts, read_prompts, together, token_texts

Activations = Float[np.ndarray, "n_layers prompt pos d_mlp"]


def neuron_activations(model: ModelSource, prompts: Prompts) -> Activations:
    """Return the activations of all neurons [layer, prompt, pos, neuron].

    >>> neuron_activations("gpt2_tiny", [5, 6]).shape
    (4, 1, 2, 512)

    Raises: OtimesError for a model without MLPs.
    """
    model = load_model(model)
    if not model.config.d_mlp:
        raise OtimesError(f"{model.name} has no MLP, and so no neurons")
    tokens = read_prompts(model, prompts)
    places = [f"mlp_post.{layer}" for layer in range(model.n_layers)]
    found = np.empty((model.n_layers, *tokens.shape, model.config.d_mlp))
    for some in tracked(together(*tokens.shape), "reading prompts"):
        run = model.forward(tokens[some], places)
        for layer, place in enumerate(places):
            found[layer, some] = run[place]
    return found


def neuron_examples(
    model: ModelSource, prompts: Prompts, layer: int, neuron: int, n_examples: int = 10
) -> list[Activating]:
    """Return the positions at which a neuron is most active, the largest first.

    Each has the prompt, the position, the activation, and the text of up to eight tokens before it
    and of the token itself. Positions where the activation is not positive are left out.

    >>> for example in neuron_examples("gpt2_tiny", "for i in range(3):", 0, 7, 1):
    ...     example.position
    1

    Raises: OtimesError for a layer or neuron out of range.
    """
    model = load_model(model)
    if not (0 <= layer < model.n_layers and 0 <= neuron < model.config.d_mlp):
        raise OtimesError(
            f"neuron {layer}.{neuron} is out of range: {model.name} has {model.n_layers} layers of"
            f" {model.config.d_mlp} neurons, both counted from 0"
        )
    rows = read_prompts(model, prompts)
    values = model.forward(rows, [f"mlp_post.{layer}"])[f"mlp_post.{layer}"][..., neuron]
    order = np.argsort(-values, axis=None, kind="stable")[:n_examples]
    found = []
    for prompt, at in zip(*np.unravel_index(order, values.shape), strict=True):
        if values[prompt, at] > 0:
            text = "".join(token_texts(model, rows[prompt, max(0, at - 8) : at + 1]))
            found.append(Activating(int(prompt), int(at), float(values[prompt, at]), text))
    return found


def neuron_information(
    model: ModelSource, prompts: Prompts, labels: Any, threshold: float = 0.0
) -> Named:
    r"""Return the information that each neuron's firing has about a label, in bits [layer, neuron].

    The mutual information $\sum p(a, y) \log_2 p(a, y) / (p(a) p(y))$ of a = [activation >
    `threshold`] and the label y, with the frequencies of the prompts as probabilities. `labels`
    [prompt, pos] or [pos] are integers: classes of tokens, ranges of positions, languages; or they
    map names of labels to such arrays, and the result is [label, layer, neuron]. `.baseline`, of
    one label, is what N independent samples of C classes give on average, about
    $(C - 1) / (2 N \ln 2)$.
    Proved by: neuron_information_method.

    >>> neuron_information("gpt2_tiny", [5, 6, 7, 8], [0, 0, 1, 1]).values.shape
    (4, 512)

    Raises: ShapeError unless there is one label for each token; OtimesError for labels that are not
    integers, or of one class only.
    """
    model = load_model(model)
    tokens = read_prompts(model, prompts)
    given = labels if isinstance(labels, Mapping) else {"label": labels}
    numbers = {name: _numbers(each, tokens.shape) for name, each in given.items()}
    fires = neuron_activations(model, tokens).reshape(model.n_layers, tokens.size, -1) > threshold
    bits = np.stack([_information(fires, each) for each in numbers.values()])
    what, axes = "information on the label in bits", ("layer", "neuron")
    if isinstance(labels, Mapping):
        return Named(what, bits, ("label", *axes), {"label": list(numbers)})
    chance = numbers["label"].max() / (2 * tokens.size * np.log(2))
    return Named(what, bits[0], axes, baseline=float(chance))


def _information(
    fires: Bool[np.ndarray, "layer n neuron"], numbers: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "layer neuron"]:
    """Return the mutual information of firing and label, in bits."""
    classes = np.eye(numbers.max() + 1)[numbers]
    joint = np.swapaxes(classes.T @ fires, 1, 2) / len(classes)
    share = classes.mean(axis=0)
    on = joint.sum(axis=2, keepdims=True)
    return _terms(joint, on * share) + _terms(share - joint, (1 - on) * share)


def label_variance(model: ModelSource, prompts: Prompts, labels: Any = None) -> Named:
    r"""Return the share of each neuron's variance that a label explains [layer, neuron], up to 1.

    $1 - \frac{SS_{within} / (N - C)}{SS_{total} / (N - 1)}$ for N positions in C classes, which is
    0 on average for a label that tells nothing, and can be negative. By default the label is the
    current token: a neuron near 1 responds to single tokens. `labels` [prompt, pos] or [pos] are
    integers. NaN for a neuron that is constant.

    >>> label_variance("gpt2_tiny", [5, 6, 5, 6, 7]).values.shape
    (4, 512)

    Raises: as `neuron_information`; OtimesError if every position has a label of its own.
    """
    model = load_model(model)
    tokens = read_prompts(model, prompts)
    numbers = _numbers(tokens if labels is None else labels, tokens.shape)
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    n, c = len(numbers), len(starts)
    if n == c:
        raise OtimesError(f"each of {n} positions has a label of its own: nothing is explained")
    rows = neuron_activations(model, tokens).reshape(model.n_layers, n, -1)
    rows = rows - rows.mean(axis=1, keepdims=True)
    totals = np.add.reduceat(rows[:, order], starts, axis=1)
    whole = np.einsum("lnu,lnu->lu", rows, rows)
    between = np.einsum("y,lyu,lyu->lu", 1 / np.bincount(numbers), totals, totals)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = 1 - (whole - between) / whole * (n - 1) / (n - c)
    return Named("variance explained by the label", values, ("layer", "neuron"), baseline=0.0)


def neuron_correlations(
    model: ModelSource, other: ModelSource, prompts: Prompts, seed: int = 0
) -> Named:
    r"""Return the best correlation with a neuron of another model [control, layer, neuron].

    Over all positions of the prompts, which both models read: the largest Pearson correlation with
    any neuron of `other`, of any layer ("neurons"), and with as many random directions in the
    activations of each of its layers ("random directions", drawn from `seed`). A neuron is
    universal if the first is much larger than the second, for several models trained from other
    seeds. The number of neurons and of layers may differ.

    >>> found = neuron_correlations("gpt2_tiny", "gpt2_tiny", [5, 6, 7, 8])
    >>> found.at(control="neurons").values.min().round(6)
    np.float64(1.0)

    Raises: OtimesError for a model without MLPs, or fewer than three positions.
    """
    first, second = load_model(model), load_model(other)
    mine, theirs = (neuron_activations(each, prompts) for each in (first, second))
    n_layers, n = mine.shape[0], mine.shape[1] * mine.shape[2]
    if n < 3:
        raise OtimesError(f"a correlation needs at least three positions, got {n}")
    rng = np.random.default_rng(seed)
    best = np.full((2, n_layers, mine.shape[3]), -np.inf)
    mine = _unit(mine.reshape(n_layers, n, -1))
    for rows in _unit(theirs.reshape(len(theirs), n, -1)):
        raw = rows @ rng.standard_normal((rows.shape[1],) * 2)
        for control, columns in enumerate((rows, _unit(raw))):
            for layer in range(n_layers):
                found = (mine[layer].T @ columns).max(axis=1)
                np.maximum(best[control, layer], found, out=best[control, layer])
    labels = {"control": ["neurons", "random directions"]}
    return Named("best correlation", best, ("control", "layer", "neuron"), labels)


def _unit(rows: Float[np.ndarray, "... n unit"]) -> np.ndarray:
    """Return columns of mean 0 and length 1; constant ones become 0."""
    rows = rows - rows.mean(axis=-2, keepdims=True)
    sizes = np.linalg.norm(rows, axis=-2, keepdims=True)
    return np.asarray(rows / np.where(sizes > 0, sizes, 1))


def _terms(joint: np.ndarray, product: np.ndarray) -> Float[np.ndarray, "layer neuron"]:
    """Return Σ joint · log₂(joint / product) along the last axis, with 0 · log 0 = 0."""
    there = joint > 0
    ratio = np.divide(joint, product, out=np.ones_like(joint), where=there)
    return np.asarray((joint * np.log2(ratio)).sum(axis=-1))


def _numbers(labels: Any, shape: tuple[int, ...]) -> Int[np.ndarray, " n"]:
    """Return the label of each position as a number from 0, all of them used."""
    given: Int[np.ndarray, ...] = np.asarray(labels)
    if given.shape not in (shape, shape[1:]):
        raise ShapeError(
            f"labels must have the shape {shape} or {shape[1:]}, one for each token, got"
            f" {given.shape}"
        )
    if given.dtype.kind not in "iub":
        raise OtimesError(f"labels must be integers, got {given.dtype}")
    _, numbers = np.unique(np.broadcast_to(given, shape), return_inverse=True)
    if numbers.max() == 0:
        raise OtimesError("all labels are the same: there is nothing to tell apart")
    return np.asarray(numbers.ravel())
