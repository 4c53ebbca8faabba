r"""What neurons read and write, from the weights alone.

A neuron u of an MLP reads the residual stream with its column of W_in and writes its row of W_out,
times its activation. On its direct path it adds $n_u\, w_{out,u} W_U$ to the logits, up to the
scale of the final norm. The gains of norms are multiplied into the directions, and where a
LayerNorm subtracts the mean, so is that: the directions are those of the residual stream.

Source: Geva et al. 2021; Gurnee et al. 2024, “Universal Neurons in GPT2 Language Models”; Stolfo et
al. 2024, “Confidence Regulation Neurons in Language Models”; Elhage et al. 2021, “Subspaces and
Residual Stream Bandwidth”.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.circuits.factored import triangle
from otimes.numeric.circuits.result import Named
from otimes.numeric.circuits.weights import blocks
from otimes.numeric.config import SETTINGS, check_settings
from otimes.numeric.functions import centred
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.output_norms import written
from otimes.numeric.progress import tracked

MOMENTS = ("mean", "variance", "skewness", "kurtosis")
BLOCK_BYTES = 32 * 2**20


def neuron_cosines(model: ModelSource, reader: str = "in") -> Named:
    r"""Return $cos(w_{in}, w_{out})$ of each neuron [layer, neuron], from −1 to 1.

    Near −1 a neuron writes the opposite of what it reads, and so deletes it. `.baseline` is the
    root mean square for random directions, $1/\sqrt d$ ($1/\sqrt{d - 1}$ behind a LayerNorm).
    `reader` is "in" for W_in, or "gate" for the gate of a gated MLP. A norm before the MLP is
    included: its gain, and the centring of a LayerNorm. NaN for a direction of length 0.
    Proved by: relu_neuron_deletes, neuron_cosine.

    >>> neuron_cosines("gpt2_tiny")
    <cosine of reading and writing [layer 4, neuron 512] float64, random baseline 0.08874>

    Raises: OtimesError for a model without MLPs, or an unknown reader.
    """
    model = _with_neurons(model, "the cosines of neurons")
    if reader not in ("in", "gate") or (reader == "gate" and not model.config.gated):
        kinds = "'in' or 'gate'" if model.config.gated else "'in'"
        raise OtimesError(f"reader must be {kinds} for {model.name}, got {reader!r}")
    config = model.config
    cosines = np.empty((model.n_layers, config.d_mlp))
    centring = config.norm if config.norms_before else "none"
    for layer in range(model.n_layers):
        reads = model.part(f"W_{reader}", layer).T
        if config.norms_before:
            reads = centred(reads * model.part("ln2_gain", layer), centring)
        writes = centred(written(model, "W_out", layer), centring)
        sizes = np.linalg.norm(reads, axis=1) * np.linalg.norm(writes, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            cosines[layer] = np.where(sizes > 0, (reads * writes).sum(axis=1) / sizes, np.nan)
    width = model.d_model - (centring == "layer")
    axes = ("layer", "neuron")
    return Named("cosine of reading and writing", cosines, axes, baseline=width**-0.5)


def neuron_moments(model: ModelSource) -> Named:
    r"""Return the moments of the logits that each neuron adds [moment, layer, neuron].

    Over the vocabulary, of $w_{out} W_U$ behind the final norm's gain and centring: "mean" and
    "variance" (of logits up to the scale of the norm), "skewness" $E(x - \mu)^3/\sigma^3$ and
    "kurtosis" $E(x - \mu)^4/\sigma^4$ (3 for a normal distribution). Negative skewness with a
    large kurtosis: a neuron that suppresses a few tokens; positive: one that promotes a few.
    Proved by: neuron_logits_add_up, third_moment_of_logits.

    >>> neuron_moments("gpt2_tiny").at(moment="kurtosis").values.shape
    (4, 512)

    Raises: OtimesError for a model without MLPs.
    """
    model = _with_neurons(model, "the moments of neurons")
    found = np.empty((len(MOMENTS), model.n_layers, model.config.d_mlp))
    for layer, some, logits in _effects(model):
        mean = logits.mean(axis=1, keepdims=True)
        logits -= mean
        squares = logits**2
        variance = squares.mean(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            skewness = (squares * logits).mean(axis=1) / variance**1.5
            kurtosis = (squares**2).mean(axis=1) / variance**2
        found[:, layer, some] = mean[:, 0], variance, skewness, kurtosis
    axes = ("moment", "layer", "neuron")
    return Named("moments of the effect on logits", found, axes, {"moment": MOMENTS})


def frequency_correlations(model: ModelSource, frequencies: Any) -> Named:
    r"""Return the correlation of each neuron's effect with log frequencies [layer, neuron].

    `frequencies` [d_vocab] are positive: counts of tokens (with one added, say) or probabilities. A
    neuron near 1 moves the prediction towards the frequencies of tokens, near −1 away from them.
    `.baseline` is the root mean square for random effects, $1/\sqrt{V - 1}$.
    Proved by: frequency_direction_tempers_the_prior.

    >>> frequency_correlations("gpt2_tiny", np.arange(1, 1025)).values.shape
    (4, 512)

    Raises: ShapeError unless there is one frequency for each token; OtimesError unless they are
    positive and not all equal, or for a model without MLPs.
    """
    model = _with_neurons(model, "the frequency correlations of neurons")
    given = np.asarray(frequencies, dtype=np.float64)
    if given.shape != (model.d_vocab,):
        raise ShapeError(
            f"frequencies must have the shape ({model.d_vocab},), one for each token, got"
            f" {given.shape}"
        )
    if not (np.isfinite(given).all() and (given > 0).all() and np.ptp(given) > 0):
        raise OtimesError("frequencies must be finite, positive and not all equal: add 1 to counts")
    logs = np.log(given) - np.log(given).mean()
    found = np.empty((model.n_layers, model.config.d_mlp))
    for layer, some, logits in _effects(model):
        logits -= logits.mean(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[layer, some] = logits @ logs / np.linalg.norm(logits, axis=1)
    return Named(
        "correlation with log frequency",
        found / np.linalg.norm(logs),
        ("layer", "neuron"),
        baseline=(model.d_vocab - 1) ** -0.5,
    )


def null_space_shares(model: ModelSource, n_directions: int | None = None) -> Named:
    r"""Return the share of what each neuron writes that the logits hardly see [layer, neuron].

    The share of $\|w_{out}\|^2$ in the `n_directions` directions of the residual stream on which
    W_U acts least: its last left singular vectors, with the gain and centring of the final norm,
    and without the mean over the vocabulary, which no probability sees. By default a sixteenth of
    d_model. What is written there changes the prediction only through the scale of the final norm:
    a large share is the mark of entropy neurons. `.baseline` is the share of random directions.
    Proved by: null_space_leaves_numerators, null_space_sets_temperature.

    >>> null_space_shares("gpt2_tiny")
    <share in the null space of W_U [layer 4, neuron 512] float64, random baseline 0.06299>

    Raises: OtimesError unless 1 ≤ n_directions < d_model - 1, or for a model without MLPs.
    """
    model = _with_neurons(model, "the null-space shares of neurons")
    d = model.d_model
    count = max(1, d // 16) if n_directions is None else n_directions
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count < d - 1:
        raise OtimesError(f"n_directions must be from 1 to d_model - 2 = {d - 2}, got {count!r}")
    kind = model.config.norm if model.config.final_norm else "none"
    unseen = _least_read(model, kind)[:, d - count :]
    found = np.empty((model.n_layers, model.config.d_mlp))
    for layer in range(model.n_layers):
        rows = centred(written(model, "W_out", layer), kind)
        squared = (rows**2).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[layer] = ((rows @ unseen) ** 2).sum(axis=1) / squared
    baseline = count / (d - (kind == "layer"))
    axes = ("layer", "neuron")
    return Named("share in the null space of W_U", found, axes, baseline=baseline)


def _least_read(model: Model, kind: str) -> Float[np.ndarray, "d_model d_model"]:
    """Return orthonormal directions as columns, in the order in which the logits see them.

    The mean of a row, which a LayerNorm subtracts, comes first: it is no direction of the stream
    behind the norm.
    """
    M = model.part("W_U")
    if model.config.final_norm:
        M = M * model.part("ln_final_gain")[:, None]
    M = centred(M.T, kind)
    M = M - M.mean(axis=0)
    if kind == "layer":
        ones = np.full((1, model.d_model), 1 + np.linalg.norm(M))
        M = np.concatenate([M, ones])
    U, _, _ = np.linalg.svd(triangle([M]).T, full_matrices=True)
    return np.asarray(U)


def _effects(model: Model) -> Iterator[tuple[int, slice, Float[np.ndarray, "neuron d_vocab"]]]:
    """Yield the logits that neurons add per unit of activation, a block of neurons at a time."""
    config = model.config
    kind = config.norm if config.final_norm else "none"
    W_U = model.part("W_U")
    if config.final_norm:
        W_U = W_U * model.part("ln_final_gain")[:, None]
    for layer in tracked(range(model.n_layers), "reading neurons"):
        rows = centred(written(model, "W_out", layer), kind)
        for some in blocks(len(rows), model.d_vocab, np.float64, BLOCK_BYTES):
            yield layer, some, rows[some] @ W_U


def _with_neurons(source: ModelSource, what: str) -> Model:
    model = load_model(source)
    if not model.config.d_mlp:
        raise OtimesError(f"{what}: {model.name} has no MLP, and so no neurons")
    check_settings(model.config, what, {*SETTINGS} - {"norm_order"} | {"output_norms"})
    return model
