r"""The residual stream at scale: its norm, its direction, single large dimensions, and sinks.

    growth       log ‖x^l‖ as a line in l, against ‖x^l‖² as one (writes of random directions)
    anisotropy   the mean cosine of two different rows, $(\|Σ_i \hat x_i\|^2 - N) / (N (N - 1))$
    rogue        |x_k| of one dimension over the median of all
    sinks        attention to one position, and what is read there

Source: Heimersheim and Turner 2023, “Residual stream norms grow exponentially over the forward
pass”; Ethayarajh 2019; Timkey and van Schijndel 2021, “All Bark and No Bite”; Xiao et al. 2024,
“Efficient Streaming Language Models with Attention Sinks”; Ferrando et al. 2024, “A Primer on the
Inner Workings of Transformer-based Language Models”, “Residual Stream”.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.result import Named
from otimes.numeric.config import PATTERN_SETTINGS, check_settings
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.probes.data import read_rows
from otimes.numeric.prompt import Prompts, read_position, read_prompts

READS = ("W_Q", "W_K", "W_V", "W_in")
WRITES = ("W_O", "W_out")


def stream_norms(model: ModelSource, prompts: Prompts) -> Named:
    r"""Return the norm of the residual stream before each layer and after the last, its mean.

    The axis is [activation], `resid_pre.0`, …, `final`; the mean is over positions and prompts,
    which have one length.

    Proved by: norm_after_writes.

    >>> stream_norms("two_layer", "for i in range").values.round(2).tolist()
    [6.38, 11.47, 18.48]

    Raises: OtimesError for an invalid prompt.
    """
    loaded = load_model(model)
    names = [*(f"resid_pre.{layer}" for layer in range(loaded.n_layers)), "final"]
    places = loaded.forward(read_prompts(loaded, prompts), names)
    norms = np.array([np.linalg.norm(places[name], axis=-1).mean() for name in names])
    return Named("norm of the stream", norms, ("activation",), {"activation": names})


class Growth(NamedTuple):
    """How norms grow with depth: the rate of an exponential, and how well two laws fit.

    `rate` is the slope κ of log ‖x^l‖ in l. `exponential` is the coefficient of determination of
    log ‖x^l‖ as a line in l, `square_root` that of ‖x^l‖² as a line in l; 1 is a perfect fit.
    """

    rate: float
    exponential: float
    square_root: float


def norm_growth(norms: Any) -> Growth:
    r"""Return whether norms [layer] grow like $c e^{κ l}$ or like $\sqrt{a + b l}$.

    Writes in unrelated directions add their squares, so the norm grows like the square root.

    Proved by: norm_after_writes, orthogonal_writes_add_squares.

    >>> found = norm_growth([1.0, 2.0, 4.0, 8.0])
    >>> [round(each, 3) for each in found]
    [0.693, 1.0, 0.788]

    Raises: OtimesError for fewer than three norms, equal norms, or one that is not positive.
    """
    sizes = np.asarray(norms, dtype=np.float64)
    if sizes.ndim != 1 or len(sizes) < 3 or not (np.isfinite(sizes) & (sizes > 0)).all():
        raise OtimesError(
            "norms must be at least three positive numbers, one for each activation, got"
            f" {np.asarray(norms).tolist()}"
        )
    if np.ptp(sizes) == 0:
        raise OtimesError(f"all norms are {sizes[0]:.6g}: they do not grow")
    fits = [_line(each) for each in (np.log(sizes), sizes**2)]
    return Growth(fits[0][0], fits[0][1], fits[1][1])


def _line(values: np.ndarray) -> tuple[float, float]:
    """Return the slope of the best line through values in order, and how well it fits."""
    at = np.arange(len(values))
    line = np.polynomial.Polynomial.fit(at, values, 1)
    rest, spread = values - line(at), values - values.mean()
    return float(line.deriv()(0)), 1 - float(rest @ rest) / float(spread @ spread)


def anisotropy(activations: Any) -> float:
    r"""Return the mean cosine of two different rows of activations [example, d].

    $\frac{\|Σ_i \hat x_i\|^2 - N}{N (N - 1)}$: about 0 for directions that favour none, and 1 for
    one direction.

    Proved by: anisotropy_is_norm_of_mean.  Source: Ethayarajh 2019.

    >>> anisotropy([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    0.3333333333333333

    Raises: OtimesError for fewer than two rows, or a row of zeros.
    """
    unit = _unit_rows(activations)
    count = len(unit)
    return float((np.square(unit.sum(axis=0)).sum() - count) / (count * (count - 1)))


def cosine_by_dimension(activations: Any) -> Float[np.ndarray, " d"]:
    r"""Return what each dimension contributes to the mean cosine of two different rows.

    $\frac{1}{N (N - 1)} Σ_{i ≠ j} \hat x_{ik} \hat x_{jk}$ for dimension k; the sum is
    `anisotropy`. A few rogue dimensions contribute nearly all of it.

    Proved by: cosine_is_sum_over_dimensions.  Source: Timkey and van Schijndel 2021, §3.

    >>> cosine_by_dimension([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]).round(3).tolist()
    [0.333, 0.0]

    Raises: what `anisotropy` raises.
    """
    unit = _unit_rows(activations)
    count = len(unit)
    pairs: np.ndarray = unit.sum(axis=0) ** 2 - (unit**2).sum(axis=0)
    return pairs / (count * (count - 1))


def _unit_rows(activations: Any) -> Float[np.ndarray, "example d"]:
    rows = read_rows(activations)
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    if len(rows) < 2:
        raise OtimesError("a mean cosine needs at least two rows, got one")
    if not sizes.all():
        raise OtimesError("a row of zeros has no direction, so its cosine is undefined")
    return rows / sizes


def rogue_dimensions(activations: Any) -> Named:
    r"""Return the size of each dimension of activations [example, d] over the median of all.

    $\overline{|x_k|} / \operatorname{med}_k \overline{|x_k|}$, the mean taken over the examples;
    give one row for the score of one vector. `.top(1)` is the rogue dimension, if there is one;
    the largest of 768 normal dimensions has a value near 1 for many examples, and of about 4.8 for
    a single one.

    Source: Kovaleva et al. 2021; Timkey and van Schijndel 2021; Ferrando et al. 2024.

    >>> rogue_dimensions([[1.0, -9.0, 1.0], [1.0, 9.0, 3.0]]).values.tolist()
    [0.5, 4.5, 1.0]

    Raises: OtimesError if at least half of the dimensions are always zero.
    """
    sizes = np.abs(read_rows(activations)).mean(axis=0)
    middle = float(np.median(sizes))
    if not middle:
        raise OtimesError("at least half of the dimensions are zero: their median is 0")
    return Named("size over the median", sizes / middle, ("dimension",))


def attention_sinks(model: ModelSource, prompts: Prompts, key: int = 0) -> Named:
    r"""Return three scores of each head for the sink at position `key` [score, layer, head].

    attention: the mean of $a_{i, key}$ over later positions i; value: $\|v_{key} W_O\|$ over the
    mean of $\|v_j W_O\|$ over the other positions; update: the mean norm of what the head writes at
    later positions over the same mean. A sink with a small value is a head that does nothing: an
    attention near 1 and a value and an update near 0.

    Proved by: sink_adds_a_constant, sink_bounds_the_update.

    >>> attention_sinks("gpt2_tiny", "for i in range").axes
    ('score', 'layer', 'head')

    Raises: OtimesError for a prompt that ends at `key`, or an invalid one.
    """
    loaded = load_model(model)
    rows = read_prompts(loaded, prompts)
    at = read_position(rows.shape[1], key)
    if at == rows.shape[1] - 1:
        raise OtimesError(f"no position of the prompt comes after position {at}")
    layers = range(loaded.n_layers)
    names = [f"{kind}.{layer}" for layer in layers for kind in ("pattern", "v", "z")]
    places = loaded.forward(rows, names)
    values = np.empty((3, loaded.n_layers, loaded.n_heads))
    for layer in layers:
        W_O = loaded.part("W_O", layer)
        read, update = (
            np.linalg.norm(places[f"{kind}.{layer}"] @ W_O, axis=-1) for kind in ("v", "z")
        )
        usual = np.delete(read, at, axis=-1).mean(axis=(0, -1))
        values[0, layer] = places[f"pattern.{layer}"][..., at + 1 :, at].mean(axis=(0, -1))
        values[1, layer] = read[..., at].mean(axis=0) / usual
        values[2, layer] = update[..., at + 1 :].mean(axis=(0, -1)) / usual
    labels = {"score": SINK_SCORES}
    return Named("attention sink", values, ("score", "layer", "head"), labels)


SINK_SCORES = ("attention", "value", "update")


def weight_norms(model: ModelSource) -> Named:
    """Return the Frobenius norm of the weights of each layer [weight, layer].

    Norms are taken after the gains and biases of the norms are folded into the weights that read
    them: `W_Q`, `W_K`, `W_V` and `W_in` read, `W_O` and `W_out` write; all heads of a layer
    together. A norm before a layer divides by the norm of the stream, so that in a stream that
    grows only weights that grow are noticed.

    Source: Heimersheim and Turner 2023.

    >>> weight_norms("gpt2_tiny").values.shape
    (6, 4)

    Raises: OtimesError for a model without layers, or of experts.
    """
    loaded = load_model(model)
    check_settings(loaded.config, "norms of weights", ALSO)
    if not loaded.n_layers:
        raise OtimesError(f"{loaded.name} has no layers, so no weights in them")
    if loaded.config.norms_before:
        loaded = loaded.fold_norms()
    names = [each for each in (*READS, *WRITES) if loaded.config.d_mlp or each[2:] not in MLP]
    norms = [[float(np.linalg.norm(loaded.part(name, layer))) for layer in range(loaded.n_layers)]
             for name in names]  # fmt: skip
    return Named("norm of weights", np.array(norms), ("weight", "layer"), {"weight": names})


MLP = ("in", "out")
ALSO = (*PATTERN_SETTINGS, "embed_scale", "embed_norm", "logit_cap")
