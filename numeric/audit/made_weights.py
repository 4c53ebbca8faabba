"""Auditing weights that were made from others: folded norms, and the SVD of a circuit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from numeric.audit.collect import plain
from numeric.audit.findings import Finding, Report
from numeric.audit.formulas import Array, Asked, ov_circuit, qk_circuit
from numeric.model import Model
from numeric.processing import fold_norm_biases, fold_norm_gains
from numeric.rounding.precision import UNIT_ROUNDOFF, worst_ratio

READ_BY = {
    "W_Q": "ln1", "W_K": "ln1", "W_V": "ln1", "W_in": "ln2", "W_gate": "ln2", "W_U": "ln_final",
}  # fmt: skip
"""Which norm each weight reads, and so takes the gain of."""


def folded_weights(value: Mapping[str, Any], model: Model) -> Report:
    """Compare weights whose norms were folded, and say which fold was left out or made wrongly."""
    biases = fold_norm_biases(model)
    both = fold_norm_gains(biases)
    candidates = {"": both, "biases folded and gains not": biases, "nothing folded": model}
    if model.config.norm == "layer":
        plain_gain = fold_norm_gains(model.changed(_without_biases(model)))
        candidates["gains folded and biases lost"] = plain_gain
    shown = {name: plain(each) for name, each in value.items()}
    dtype = max((d for _, d in shown.values()), key=lambda d: UNIT_ROUNDOFF.get(d, 0.0))
    unit = UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float64"])

    def ratio(array: Array, ours: Array) -> float:
        if ours.shape != array.shape:
            return float("inf")
        size = np.abs(ours) + np.abs(ours).max(initial=0.0)
        return worst_ratio(array, ours, 8 * np.sqrt(model.d_model) * unit * size)

    def ratios(right: Model) -> dict[str, float]:
        return {
            name: ratio(array, right.part(name))
            if name in right.config.tensor_shapes()
            else float("inf")
            for name, (array, _) in shown.items()
        }

    every = {said: ratios(right) for said, right in candidates.items()}
    wrong = [name for name, each in every[""].items() if each > 1]
    if not wrong:
        return Report("folded_weights", dtype, 0, every[""], ())
    fits = [said for said, each in every.items() if said and all(r <= 1 for r in each.values())]
    findings = []
    for name in wrong:
        array = shown[name][0]
        said = fits or [
            says for says, made in _wrongly_folded(model, both, name) if ratio(array, made) <= 1
        ]
        diagnosis = f"matches {'; or '.join(said[:3])}" if said else ""
        note = f"is not as folding makes it{': it ' + diagnosis if diagnosis else ''}"
        findings.append(
            Finding(name, None, None, float("nan"), 0.0, every[""][name], diagnosis, note=note)
        )
    return Report("folded_weights", dtype, 0, every[""], tuple(findings))


def _without_biases(model: Model) -> dict[str, Array]:
    names = ("ln1_bias", "ln2_bias", "ln_final_bias")
    return {n: np.zeros_like(model.part(n)) for n in names if n in model.weights}


def _wrongly_folded(model: Model, both: Model, name: str) -> Iterator[tuple[str, Array]]:
    """Yield what one tensor is if its fold was left out or made in a wrong way."""
    right = both.part(name)
    if name in model.config.tensor_shapes():
        yield f"{name} as it was: it is not folded", model.part(name)
    if name.startswith("b_"):
        yield f"no {name}: the bias is lost", np.zeros_like(right)
        own = model.part(name) if model.config.has(name) else np.zeros_like(right)
        weight = f"W_{name[2:]}"
        if weight in READ_BY and model.config.norm == "layer":
            gain = model.part(f"{READ_BY[weight]}_gain")
            bias = model.part(f"{READ_BY[weight]}_bias")
            for says, vector in (
                ("the bias folded through weights that already hold the gain", gain * bias),
                ("the norm's bias subtracted and not added", -bias),
                ("the norm's bias folded in twice", 2 * bias),
            ):
                yield says, own + _read(vector, model.part(weight))
        return
    if name in READ_BY:
        read_by = model.part(name)
        for norm in ("ln1", "ln2", "ln_final"):
            if not model.config.has(f"{norm}_gain"):
                continue
            gain = model.part(f"{norm}_gain")
            own_norm = norm == READ_BY[name]
            for power, says in ((1, "once"), (2, "twice (squared)"), (-1, "divided out")):
                if own_norm and power == 1:
                    continue
                with np.errstate(all="ignore"):
                    made = _with_gain(read_by, gain**power)
                if made is not None:
                    yield f"{name} with the gain of {norm} folded in {says}", made
        return
    written = model.part(name) if name in model.config.tensor_shapes() else right
    for norm in ("ln1", "ln2"):
        if not model.config.has(f"{norm}_gain") or written.ndim < 3:
            continue
        gain = model.part(f"{norm}_gain")
        if written.shape[-1] == gain.shape[-1]:
            wide = gain.reshape(len(gain), *(1,) * (written.ndim - 2), -1)
            yield f"{name} with the gain of {norm}, which it does not read", written * wide


def _with_gain(weight: Array, gain: Array) -> Array | None:
    """Return W with its rows multiplied by a gain, of its layer or the same in all."""
    if gain.ndim == 1:
        wide = gain[:, None]
    elif weight.ndim < 3 or len(gain) != len(weight):
        return None
    else:
        wide = gain.reshape(len(gain), *(1,) * (weight.ndim - 3), -1, 1)
    return np.asarray(weight * wide)


def _read(vector: Array, weight: Array) -> Array:
    """Return a vector read by a weight, in each layer and head."""
    if weight.ndim == 2:
        return np.asarray(vector @ weight)
    names = "ld,lhde->lhe" if weight.ndim == 4 else "ld,ldm->lm"
    return np.asarray(np.einsum(names, vector, weight))


def svd_misfit(value: Sequence[Any], asked: Asked) -> tuple[str, str, tuple[float, float, float]]:
    """Return the type of (U, S, Vᵀ), a diagnosis, and ratio, error and bound; signs are free."""
    matrix = ov_circuit(asked)
    (U, dtype), (S, _), (W, _) = (plain(each) for each in value)
    unit = UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float64"])
    size = float(np.linalg.norm(matrix, 2))
    granted = 64 * unit * np.sqrt(max(matrix.shape)) * size
    true = np.linalg.svd(matrix, compute_uv=False)
    rank = len(S)
    left, right = U[..., :rank], W[:rank]

    def made(left: Array, values: Array, right: Array, of: Array = matrix) -> float:
        try:
            return float(np.abs((left * values) @ right - of).max())
        except ValueError:
            return float("inf")

    off = max(made(left, S, right), float(np.abs(S - true[:rank]).max()))
    figures = (off / granted, off, granted)
    if off <= granted:
        return dtype, "", figures
    says: dict[str, Callable[[], float]] = {
        "V for Vᵀ, which is transposed": lambda: made(left, S, W.T[:rank]),
        "Uᵀ for U": lambda: made(U.T[:, :rank], S, right),
        "squared singular values": lambda: made(left, np.sqrt(np.abs(S)), right),
        "the matrix transposed: U and V swapped": lambda: made(right.T, S, left.T),
        "U and Vᵀ without singular values": lambda: made(left, true[:rank], right),
        "singular values that are in U or Vᵀ already (scaled by S)": lambda: made(
            left, np.ones_like(S), right
        ),
        "singular values in ascending order": lambda: max(
            made(left, S, right), float(np.abs(S[::-1] - true[:rank]).max())
        ),
        "signs of U and Vᵀ that do not belong together": lambda: min(
            made(-left, S, right), _signs_aside(left, S, right, matrix)
        ),
        "the SVD of the QK circuit": lambda: made(left, S, right, qk_circuit(asked)),
    }  # fmt: skip
    fitting = [said for said, misfit in says.items() if misfit() <= granted]
    model = asked.model
    for layer, head in np.ndindex(model.n_layers, model.n_heads):
        other = ov_circuit(Asked(model, None, int(layer), int(head)))
        if not fitting and made(left, S, right, other) <= granted:
            fitting.append(f"the SVD of another head, {layer}.{head}")
    return dtype, f"matches {'; or '.join(fitting)}" if fitting else "", figures


def _signs_aside(left: Array, values: Array, right: Array, matrix: Array) -> float:
    """Return the misfit with the sign of each triple as it should be."""
    sign = np.sign(np.einsum("ir,ij,rj->r", left, matrix, right))
    return float(np.abs((left * values * sign) @ right - matrix).max())
