"""Forms of a wrong norm, or of an operation that reads the wrong norm. See `fit`.

The rows that were normalised or read, the gain and bias, and the divisor.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from otimes.numeric.audit.diagnosis.fit import (
    ANYWHERE,
    SUMS,
    Form,
    Said,
    Seen,
    another_unembedding,
    number,
)
from otimes.numeric.audit.diagnosis.fit_attention import MIXED, PATTERN, ROTATED, SCORED, computed
from otimes.numeric.audit.reference.edits import with_inputs
from otimes.numeric.audit.reference.evaluator import Operation, layer_of, makes_act
from otimes.numeric.block import inputs_of, kind_of, place_names
from otimes.numeric.functions import centred, norm_scale
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.linear import Array, Near

STREAM = ("resid_pre", "ln1", "attn_out", "resid_mid", "ln2", "mlp_out", "resid_post")


def _norms(seen: Seen) -> list[tuple[str, int | None]]:
    """Return the norms of the model, those of the same layer first."""
    config, own = seen.config, layer_of(seen.place)
    layers = sorted(range(config.n_layers), key=lambda layer: layer != own)
    found: list[tuple[str, int | None]] = [
        (name, layer) for layer in layers for name in ("ln1", "ln2") if config.has(f"{name}_gain")
    ]
    return [*found, ("ln_final", None)] if config.final_norm else found


def _affine(seen: Seen, norm: tuple[str, int | None]) -> tuple[Array, Array]:
    gain = seen.part(f"{norm[0]}_gain", norm[1])
    has = seen.config.has(f"{norm[0]}_bias")
    return gain, seen.part(f"{norm[0]}_bias", norm[1]) if has else np.zeros_like(gain)


def _called(seen: Seen, norm: tuple[str, int | None]) -> str:
    return norm[0] if norm[1] in (None, layer_of(seen.place)) else f"{norm[0]}.{norm[1]}"


def _unit(seen: Seen, rows: Array) -> Array:
    kind = seen.config.norm
    return np.asarray(centred(rows, kind) / norm_scale(rows, kind, seen.config.norm_eps))


def _streams(seen: Seen) -> dict[str, Array]:
    """Return the activations of the stream that may have been read by mistake."""
    layer = layer_of(seen.place)
    layers = range(seen.config.n_layers) if layer is None else (layer, max(layer - 1, 0))
    names = ["embed", "final", "ln_final", *(f"{k}.{each}" for each in layers for k in STREAM)]
    known = place_names(seen.config)
    shown = seen.reference.shown
    order = known.index(seen.place)
    streams = {
        name: seen.other(name)
        for name in dict.fromkeys(names)
        if name in known and name != seen.place and (name in shown or known.index(name) < order)
    }
    before, wrote = (f"{kind}.{layer}" for kind in ("resid_pre", "attn_out"))
    if before in shown and wrote in shown:  # what is recorded as resid_mid may be another sum
        streams[f"{before} + {wrote}"] = seen.other(before) + seen.other(wrote)
    return streams


def another_norm(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that other rows were normalised, or with another gain and bias."""
    own = (kind_of(seen.place), layer_of(seen.place))
    (source,) = inputs_of(seen.config, seen.place)
    streams = {source: seen.other(source), **_streams(seen)}
    units = {name: _unit(seen, rows) for name, rows in streams.items()}
    units[f"{seen.place} itself (the norm is taken twice)"] = _unit(seen, seen.ours)
    for norm in _norms(seen):
        gain, bias = _affine(seen, norm)
        for name, rows in units.items():
            if (name, norm) != (source, own):
                reads = "" if name == source else f" of {name}"
                if norm != own:
                    reads += f" with the weights (gain and bias) of {_called(seen, norm)}"
                order = ""
                after = (f"resid_mid.{own[1]}", f"resid_pre.{own[1]} + attn_out.{own[1]}")
                if source == f"resid_pre.{own[1]}" and name in after:
                    order = ", as in post-norm for pre-norm"
                says = f"a norm{reads}: another norm than the right one{order}"
                yield rows * gain + bias, says
    for name, rows in units.items():
        if name != source:
            yield rows, f"the norm of {name}, without gain and bias"


def another_gain(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that the columns of a norm have another gain and bias."""
    (source,) = inputs_of(seen.config, seen.place)
    rows = _unit(seen, seen.other(source))
    if len(rows) < 4:
        return
    mean, shown_mean = rows.mean(0), seen.shown.mean(0)
    a, b = rows - mean, seen.shown - shown_mean
    gain = (a * b).sum(0) / (a**2).sum(0)
    bias = shown_mean - gain * mean
    yield rows * gain + bias, partial(_said_of_affine, seen, gain, bias)


def _said_of_affine(seen: Seen, gain: Array, bias: Array) -> str:
    own = (kind_of(seen.place), layer_of(seen.place))
    vectors: dict[str, Array] = {"nothing (0)": 0 * gain, "nothing (1)": 1 + 0 * gain}
    for norm in [own, *_norms(seen)]:
        g, c = _affine(seen, norm)
        called = "its own" if norm == own else _called(seen, norm)
        many = {
            f"{called} gain": g, f"{called} bias": c, f"1 + {called} gain": 1 + g,
            f"{called} gain squared": g**2, f"{called} bias twice": 2 * c,
            f"{called} bias times gain": g * c, f"{called} bias negated": -c,
            f"1 / {called} gain": 1 / g,
        }  # fmt: skip
        vectors = {**many, **vectors}
    said = [_which(seen, each, vectors) for each in (gain, bias)]
    return f"a norm with another affine part: for the gain, {said[0]}; for the bias, {said[1]}"


def _which(seen: Seen, vector: Array, vectors: dict[str, Array]) -> str:
    size = np.abs(vector).max() + 1
    for name, known in vectors.items():
        if np.abs(vector - known).max() <= 1e4 * seen.compared.unit * size:
            return name
    return "unknown numbers"


def another_divisor(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that rows were divided by something else than their standard deviation."""
    config = seen.config
    (source,) = inputs_of(config, seen.place)
    rows = seen.other(source)
    gain, bias = _affine(seen, (kind_of(seen.place), layer_of(seen.place)))
    for says, made in (("", centred(rows, config.norm)), (" and no mean subtracted", rows)):
        part = made * gain
        factor = ((seen.shown - bias) * part).sum(-1) / np.maximum((part**2).sum(-1), 1e-300)
        divisor = partial(_said_of_divisor, seen, (made**2).mean(-1), factor, says)
        yield part * factor[:, None] + bias, divisor


def _said_of_divisor(seen: Seen, mean_square: Array, factor: Array, also: str) -> str:
    """Return in words by what rows of some mean squares were divided, one over the factor."""
    config = seen.config
    with np.errstate(all="ignore"):
        eps = factor**-2 - mean_square
        outside = 1 / factor - np.sqrt(mean_square)
        times = 1 / (factor * np.sqrt(mean_square + config.norm_eps))
    if np.ptp(factor) <= 1e-4 * np.abs(factor).max():
        by = number(seen, 1 / float(factor.mean()))
        return f"a norm that divides every row by {by}, and not by its own deviation{also}"
    if np.ptp(times) <= 1e-4 * np.abs(times).max():
        by = number(seen, float(times.mean()))
        return f"a norm whose divisor is {by} times the right one{also}"
    if np.ptp(eps) <= 1e-2 * np.abs(eps).mean():
        return f"a norm with ε = {eps.mean():.3g} and not {config.norm_eps:g}{also}"
    if np.ptp(outside) <= 1e-2 * np.abs(outside).mean():
        return f"a norm whose ε, {outside.mean():.3g}, is added outside the root{also}"
    return f"a norm that divides rows by something else than their deviation{also}"


def reads_another(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that another activation of the residual stream was read."""
    stream = (*STREAM, "ln_final", "final")
    reads = [name for name in inputs_of(seen.config, seen.place) if kind_of(name) in stream]
    if len(reads) != 1:
        return
    for name, rows in _streams(seen).items():
        if name not in reads:
            says = f"a part that reads {name} and not {reads[0]}: another stream"
            yield computed(seen, _with_input(kind_of(reads[0]), rows)), says


@makes_act
def _with_input(at: At, operation: Operation, kind: str, rows: Array) -> Near:
    return operation(with_inputs(at, **{kind: Near.exactly(rows)}))


def weights_of_another(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that an activation is that of the same kind in another layer."""
    layer = layer_of(seen.place)
    if layer is None:
        return
    known = set(place_names(seen.config))
    for other in range(seen.config.n_layers):
        name = f"{kind_of(seen.place)}.{other}"
        if other != layer and name in known:
            says = f"what belongs to layer {other}: {name} in its place (a wrong or skipped layer)"
            yield seen.other(name), says


def read_from_another(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the mistake: this layer reads the output of another layer than the previous one."""
    layer = layer_of(seen.place)
    for other in range(seen.config.n_layers):
        name = f"resid_post.{other}"
        if layer is not None and other != layer - 1 and name in seen.reference.shown:
            says = f"layers in another order: layer {layer} reads what layer {other} wrote"
            yield seen.other(name), says


def normalised_stream(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that the residual stream itself was normalised."""
    if seen.config.norm == "none":
        return
    rows = _unit(seen, seen.ours)
    yield rows, "the stream normalised where it should be passed on (no gain, no bias)"
    for norm in _norms(seen):
        gain, bias = _affine(seen, norm)
        says = f"a norm ({_called(seen, norm)}) of the stream, which should be passed on"
        yield rows * gain + bias, says


def forms_of(kind: str) -> tuple[Form, ...]:
    """Return the forms for a kind of hook point, the simplest first."""
    norms = (another_norm, another_divisor, another_gain, *ANYWHERE)
    sums = (normalised_stream, weights_of_another, *SUMS)
    reads = (reads_another, weights_of_another)
    special: dict[str, tuple[Form, ...]] = {
        "ln1": norms, "ln2": norms, "ln_final": norms,
        "embed": sums, "resid_pre": (read_from_another, *sums), "resid_mid": sums,
        "resid_post": sums, "final": sums,
        "q": (*reads, *ROTATED), "k": (*reads, *ROTATED), "v": (*reads, *ANYWHERE),
        "scores": SCORED, "pattern": PATTERN, "z": MIXED,
        "logits": (*ANYWHERE, *reads, another_unembedding),
    }  # fmt: skip
    return special.get(kind, (*ANYWHERE, *reads))
