"""Audit of weights with folded norms, one tensor at a time, and known mistakes in folding."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.audit.analyses.question import Array
from otimes.numeric.audit.analyses.transforms import altered
from otimes.numeric.audit.analyses.values import shown, without_numbers
from otimes.numeric.audit.findings import Finding, Gauge
from otimes.numeric.audit.report import Report
from otimes.numeric.config import TENSORS, listed
from otimes.numeric.model import Model
from otimes.numeric.processing import fold_norm_biases, fold_norm_gains, fold_value_biases
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF, worst_ratio

READ_BY = {
    "W_Q": "ln1", "W_K": "ln1", "W_V": "ln1", "W_in": "ln2", "W_gate": "ln2", "W_U": "ln_final",
}  # fmt: skip
"""Which norm each weight reads, and so takes the gain of."""
WRITERS = ("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out")
INFINITE = float("inf")
Ratio = Callable[[Array, Array], float]
Named = tuple[str, Array | None]
"""A value by its name; None where shapes do not allow it."""


def folded_weights(value: Any, model: Model) -> Report:
    """Return the outcome for weights with folded norms: which folds are missing or wrong.

    Keys and values of grouped queries may be given for each group or for each head.
    """
    arrays, dtype = _given(value)
    unit = UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float64"])
    biases = fold_norm_biases(model)
    both = fold_norm_gains(biases)
    by_head = {name: _by_head(model, name, array) for name, array in arrays.items()}

    def ratio(array: Array, ours: Array) -> float:
        if ours.shape != array.shape:
            return INFINITE
        size = np.abs(ours) + np.abs(ours).max(initial=0.0)
        return worst_ratio(array, ours, 8 * np.sqrt(model.d_model) * unit * size)

    def ratios(right: Model) -> dict[str, float]:
        return {
            name: ratio(array, right.part(name)) if name in TENSORS else INFINITE
            for name, array in by_head.items()
        }

    figures, gauges, findings = ratios(both), [], []
    for says, name, made in _gauges(model, both, by_head, ratio):
        if not figures[name] <= 1 and ratio(by_head[name], made) <= 1:
            figures[name] = ratio(by_head[name], made)
            gauges.append(Gauge(name, says))
    wrong = [name for name, each in figures.items() if not each <= 1]
    fits = [
        says
        for says, other in _wholly(model, biases)
        if wrong and all(each <= 1 for each in ratios(other).values())
    ]
    for name in wrong:
        array, said = by_head[name], fits
        if name not in TENSORS:
            note = f"is no weight that is known; known are {listed(both.config.tensor_shapes())}"
        elif array.shape != both.part(name).shape:
            note = f"has the shape {arrays[name].shape}, and {_shapes(model, name)} is expected"
            said = _fitting(_of_other_shapes(both.part(name)), array, ratio)
        else:
            note = without_numbers(array) or "is not as folding makes it"
            said = said or _fitting(_wrongly_folded(model, both, name), array, ratio)
            said = said or _fitting(_scaled(model, both, name, array), array, ratio)
        if not said and name in TENSORS:
            said = _fitting(altered(model, both.part(name), array), array, ratio)
        diagnosis = f"matches {'; or '.join(said[:3])}" if said else ""
        note += f": it {diagnosis}" if diagnosis else ""
        findings.append(
            Finding(name, None, None, float("nan"), 0.0, figures[name], diagnosis, note=note)
        )
    return Report("folded_weights", dtype, 0, figures, tuple(findings), tuple(gauges))


def _given(value: Any) -> tuple[dict[str, Array], str]:
    """Return the arrays by name and their lowest precision. Raises: OtimesError if no mapping."""
    if not isinstance(value, Mapping) or not value:
        got = "an empty mapping" if isinstance(value, Mapping) else f"a {type(value).__name__}"
        got += f" of the shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
        raise OtimesError(
            f"folded_weights takes a mapping from names of weights to arrays and got {got}"
            ": give it as {'W_Q': …, 'b_Q': …}"
        )
    given = {str(name): shown(each, str(name)) for name, each in value.items()}
    dtypes = (dtype for _, dtype in given.values())
    dtype = max(dtypes, key=lambda each: UNIT_ROUNDOFF.get(each, 0.0))
    return {name: array for name, (array, _) in given.items()}, dtype


def _by_head(model: Model, name: str, array: Array) -> Array:
    """Return keys and values of grouped queries repeated for each head."""
    config = model.config
    shares = config.n_heads // config.kv_heads
    if shares == 1 or "kv_heads" not in TENSORS.get(name, ()) or array.shape != config.shape(name):
        return array
    return np.repeat(array, shares, axis=TENSORS[name].index("kv_heads"))


def _shapes(model: Model, name: str) -> str:
    """Return a text with the shapes that a tensor may have."""
    whole, stored = model.part(name).shape, model.config.shape(name)
    return f"{stored}" if whole == stored else f"{stored}, or {whole} with a part for each head,"


def _wholly(model: Model, biases: Model) -> Iterator[tuple[str, Model]]:
    """Yield models that lack one of the folding steps entirely."""
    yield "biases folded and gains not", biases
    yield "nothing folded", model
    if model.config.norm == "layer":
        names = [n for n in ("ln1_bias", "ln2_bias", "ln_final_bias") if n in model.weights]
        lost = model.changed({name: np.zeros_like(model.part(name)) for name in names})
        yield "gains folded and biases lost", fold_norm_gains(lost)


def _of_other_shapes(right: Array) -> Iterator[tuple[str, Array]]:
    """Yield the folded weight in other layouts."""
    if right.ndim >= 2:
        yield "the folded weight with its last two axes exchanged", right.swapaxes(-1, -2)
    if right.ndim == 4:
        layers, heads, rows, columns = right.shape
        beside = right.transpose(0, 2, 1, 3).reshape(layers, rows, heads * columns)
        yield "the folded weight with its heads side by side", beside
        yield "the folded weight with its heads side by side, transposed", beside.swapaxes(1, 2)
        below = right.reshape(layers, heads * rows, columns)
        yield "the folded weight with its heads one below the other", below


def _gauges(
    model: Model, both: Model, given: Mapping[str, Array], ratio: Ratio
) -> Iterator[tuple[str, str, Array]]:
    """Yield (description, name, value) of other folded tensors that give the same function.

    A change that requires one of another tensor is yielded only if that is found too.
    """
    config = model.config
    layered = config.norm == "layer"
    written = layered and config.final_norm
    unseen = "the same number is subtracted from all logits, which changes no probability"
    for name in (name for name in given if name in TENSORS):
        right = both.part(name)
        forms = [("", right)]
        if layered and name in READ_BY and (config.final_norm or name != "W_U"):
            centred = right - right.mean(-2, keepdims=True)
            forms.append(
                ("its columns are centred, which what a LayerNorm gives does not see", centred)
            )
        if name in ("W_U", "b_U"):
            forms += [
                (", and ".join(each for each in (says, unseen) if each), _centred(form))
                for says, form in forms
            ]
        if written and name in WRITERS:
            says = "what it writes is centred, which no LayerNorm sees"
            forms.append((says, _centred(right)))
        yield from ((says, name, form) for says, form in forms if says)
    if "b_K" in given and config.positions != "rotary":
        says = "b_K is dropped, which moves all scores of a query alike"
        yield says, "b_K", np.zeros_like(both.part("b_K"))
    if "b_O" in given and not given.get("b_V", np.zeros(1)).any():
        moved = fold_value_biases(both).part("b_O")
        says = "b_V is in b_O, for the rows of a pattern sum to one"
        for form in (moved, _centred(moved)) if written else (moved,):
            yield says, "b_O", form
            if "b_V" in given and ratio(given["b_O"], form) <= 1:
                yield says, "b_V", np.zeros_like(both.part("b_V"))


def _centred(array: Array) -> Array:
    return np.asarray(array - array.mean(-1, keepdims=True))


def _fitting(known: Iterable[Named], array: Array, ratio: Ratio) -> list[str]:
    """Return the names of the values that a tensor equals."""
    with np.errstate(all="ignore"):
        return [says for says, made in known if made is not None and ratio(array, made) <= 1]


def _wrongly_folded(model: Model, both: Model, name: str) -> Iterator[Named]:
    """Yield the wrong versions of one folded tensor."""
    right, own = both.part(name), model.part(name)
    yield f"{name} as it was: it is not folded", own
    if name == "b_O":
        for says, other in (("b_V", both), ("b_V as it was,", model)):
            moved = fold_value_biases(other).part("b_O")
            yield f"{says} added to b_O, which counts it twice where b_V is left", moved
    if name.startswith("b_"):
        yield from _wrong_biases(model, name)
    elif name in READ_BY:
        yield from _wrong_gains(model, name)
        yield f"{name} folded, and added to itself", own + right
        yield f"{name} centred, and not folded", own - own.mean(-2, keepdims=True)
    elif name.startswith("W_"):
        for norm in ("ln1", "ln2", "ln_final"):
            gain = model.part(f"{norm}_gain")
            for says, factor in (("multiplied by", gain), ("divided by", 1 / gain)):
                what = "which it does not read" if norm != "ln_final" else "of the end"
                for axis in (-1, -2):
                    made = _times_gain(own, factor, axis)
                    yield f"{name} {says} the gain of {norm}, {what}", made
    else:
        yield f"{name} set to zero", np.zeros_like(own)
        yield f"{name} set to one", np.ones_like(own)
    if name.startswith("W_"):
        sees = "which an RMSNorm sees" if model.config.norm == "rms" else "and it may not be"
        for says, form in (("folded", right), ("as it was", own)):
            for axis, which in ((-1, "rows"), (-2, "columns"), (0, "entries of all layers")):
                made = form - form.mean(axis, keepdims=True)
                yield f"{name} {says} with its {which} centred, {sees}", made
    yield from _taken_for_others(model, both, name)


def _taken_for_others(model: Model, both: Model, name: str) -> Iterator[tuple[str, Array]]:
    """Yield other weights of the same shape, and those of other layers and heads."""
    right, config = both.part(name), model.config
    for other in TENSORS:
        if other != name and both.config.has(other) and both.part(other).shape == right.shape:
            yield f"{other} for {name}", both.part(other)
            yield f"{other} for {name}, and not folded", model.part(other)
    if right.ndim >= 3:
        for by in (1, -1):
            yield f"{name} folded, of another layer (off by one)", np.roll(right, by, axis=0)
    if TENSORS[name][1:2] == ("n_heads",) or "kv_heads" in TENSORS[name]:
        for by in range(1, config.n_heads):
            yield f"{name} folded, of another head ({by} further)", np.roll(right, -by, axis=1)
    shares = config.n_heads // config.kv_heads
    if shares > 1 and "kv_heads" in TENSORS[name]:
        tiled = np.concatenate([right[:, ::shares]] * shares, axis=1)
        yield f"{name} folded, its groups repeated in turn and not head by head", tiled


def _wrong_biases(model: Model, name: str) -> Iterator[tuple[str, Array]]:
    """Yield a bias with the bias of the norm folded in wrongly."""
    own, weight = model.part(name), f"W_{name[2:]}"
    yield f"no {name}: the bias is lost", np.zeros_like(own)
    if weight not in READ_BY or model.config.norm != "layer":
        return
    norm = READ_BY[weight]
    gain, bias = model.part(f"{norm}_gain"), model.part(f"{norm}_bias")
    folded = _read(bias, model.part(weight))
    yield f"the norm's bias alone: {name} itself is lost", folded
    vectors = (
        ("the bias folded through weights that already hold the gain", gain * bias),
        ("the bias folded through weights that hold the gain twice", gain**2 * bias),
        ("the norm's bias divided by its gain", bias / gain),
        ("the norm's bias subtracted and not added", -bias),
        ("the norm's bias folded in twice", 2 * bias),
        ("the norm's gain folded in for its bias", gain),
        ("the norm's bias of the next layer", np.roll(bias, -1, axis=0)),
        ("the norm's bias of the layer before", np.roll(bias, 1, axis=0)),
    )
    for says, vector in vectors:
        if bias.ndim == 2 or "layer" not in says:
            yield says, own + _read(vector, model.part(weight))
    for other in ("ln1", "ln2", "ln_final"):
        vector = model.part(f"{other}_bias")
        if other != norm and (vector.ndim == 1 or bias.ndim == 2):
            wide = np.broadcast_to(vector, bias.shape)
            yield (
                f"the bias of {other}, another norm, folded in",
                own + _read(wide, model.part(weight)),
            )


def _wrong_gains(model: Model, name: str) -> Iterator[Named]:
    """Yield a weight with a gain folded in wrongly."""
    weight = model.part(name)
    for norm in ("ln1", "ln2", "ln_final"):
        if not model.config.has(f"{norm}_gain"):
            continue
        gain, own_norm = model.part(f"{norm}_gain"), norm == READ_BY[name]
        powers = {
            "once": gain,
            "twice (squared)": gain**2,
            "divided out": 1 / gain,
            "as 1 + g": 1 + gain,
            "by its root": np.sqrt(np.abs(gain)),
            "by its size": np.abs(gain),
        }
        if gain.ndim == 2:
            powers["from the next layer"] = np.roll(gain, -1, axis=0)
            powers["from the layer before"] = np.roll(gain, 1, axis=0)
            powers["from the first layer"] = np.broadcast_to(gain[:1], gain.shape)
            powers["from the last layer"] = np.broadcast_to(gain[-1:], gain.shape)
            powers["by its mean"] = np.broadcast_to(gain.mean(-1, keepdims=True), gain.shape)
        for says, each in powers.items():
            if not own_norm or says != "once":
                made = _times_gain(weight, each, -2)
                yield f"{name} with the gain of {norm} folded in {says}", made
        if own_norm:
            first = _times_gain(weight - weight.mean(-2, keepdims=True), gain, -2)
            yield f"{name} centred before the gain of {norm} was folded in", first
            along = _times_gain(weight, gain, -1)
            yield f"{name} with the gain of {norm} along the wrong axis, its columns", along


def _scaled(model: Model, both: Model, name: str, array: Array) -> Iterator[tuple[str, Array]]:
    """Yield the unfolded tensor with its columns, rows or all entries scaled by fitted factors."""
    own, right = model.part(name), both.part(name)
    if own.ndim < 2 or own.shape != array.shape:
        return
    for base, said in ((right, f"the folded {name}"), (own, f"{name} as it was")):
        for axes, says in (
            (tuple(range(own.ndim)), "multiplied by a number"),
            ((-2,), "with each column multiplied by its own number: a gain along the wrong axis"),
            ((-1,), "with each row multiplied by a number that is not the gain"),
        ):
            if own.shape[axes[-1]] == 1:  # a number for each entry would fit anything
                continue
            square = (base**2).sum(axes, keepdims=True)
            factor = (array * base).sum(axes, keepdims=True) / square
            yield f"{said} {says}", base * np.where(square > 0, factor, 0.0)


def _times_gain(weight: Array, gain: Array, axis: int) -> Array | None:
    """Return W with its rows (axis -2) or columns (-1) multiplied by a gain, if there are as many.

    The gain is that of each layer, or the same in all.
    """
    behind = -1 - axis
    between = weight.ndim - gain.ndim - behind
    if weight.shape[axis] != gain.shape[-1] or between < 0:
        return None
    if gain.ndim == 2 and len(weight) != len(gain):
        return None
    wide = gain.reshape(*gain.shape[:-1], *(1,) * between, -1, *(1,) * behind)
    return np.asarray(weight * wide)


def _read(vector: Array, weight: Array) -> Array:
    """Return a vector read by a weight, in each layer and head."""
    names = "d,dm->m" if weight.ndim == 2 else "ld,l...dm->l...m"
    return np.asarray(np.einsum(names, vector, weight))
