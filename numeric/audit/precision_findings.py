"""Findings that no mistake explains, judged again in lower precision.

Rounded weights, or a whole pass in lower precision, cause small errors in all activations. They are
reported as a matter of precision, not as a fault of one operation.
"""

from dataclasses import replace

import numpy as np

from otimes.numeric.audit.capture.collect import Capture
from otimes.numeric.audit.diagnose import Diagnosis, judged
from otimes.numeric.audit.findings import Finding
from otimes.numeric.audit.judge import comparison_of, held
from otimes.numeric.audit.precision.autocast import PRODUCTS
from otimes.numeric.audit.precision.lower_precision import COARSER, size
from otimes.numeric.audit.precision.mixed_precision import HALF, with_half_precision
from otimes.numeric.audit.reference.comparison import compare, finding, scaled, supposing
from otimes.numeric.block import kind_of
from otimes.numeric.model import Model
from otimes.numeric.rounding.activations import in_dtype
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF

ROUNDINGS = 2.0**5
"""The largest error, in roundings, for which rounded weights are tried."""


def in_lower_precision(diagnosis: Diagnosis, capture: Capture, model: Model) -> Diagnosis:
    """Return the diagnosis, replaced by one of lower precision if that explains all findings.

    `model` is the reference as it was given, before its weights were rounded.
    """
    if not diagnosis.findings:
        return diagnosis
    cast = _under_autocast(diagnosis, capture, model)
    if cast is not None or not _unexplained(diagnosis.findings[0]):
        return cast or diagnosis
    rounded = _with_rounded_weights(diagnosis, capture)
    if rounded is None and capture.dtype == "float64":
        rounded = _in_float32(diagnosis, capture)
    return rounded or diagnosis


def _under_autocast(diagnosis: Diagnosis, capture: Capture, model: Model) -> Diagnosis | None:
    """Return the diagnosis of code as run under autocast with float32 weights, None if it was not.

    It was if some activations are in float32 and others in half precision, and the casts of
    autocast explain most matrix products exactly. `model`: the reference as it was given.
    """
    dtypes = [*capture.dtypes.values()]
    halves = [dtype for dtype in dtypes if dtype in HALF]
    if not halves or "float32" not in dtypes or diagnosis.compared.rewritten:
        return None
    own = compare(held(model, "float32"), capture.prompts, capture.dtype, capture.unturned)
    half = max(halves, key=halves.count)
    again = judged(replace(with_half_precision(own, capture.coarser), casts=half))
    products = [place for place in again.compared.recorded if kind_of(place) in PRODUCTS]
    explained = [place for place, _ in again.tolerated if kind_of(place) in PRODUCTS]
    return again if 2 * len(explained) > len(products) else None


def _with_rounded_weights(diagnosis: Diagnosis, capture: Capture) -> Diagnosis | None:
    """Return the diagnosis that weights rounded to a lower precision explain all, or None."""
    first, compared = diagnosis.findings[0], diagnosis.compared
    shown = [prompt.places.get(first.place) for prompt in compared.prompts]
    largest = max((np.abs(each.value).max(initial=0.0) for each in shown if each), default=0.0)
    for dtype in COARSER:
        unit = UNIT_ROUNDOFF[dtype]
        if unit <= compared.unit or not first.error <= ROUNDINGS * unit * largest:
            continue
        model = in_dtype(compared.model, dtype)
        again = judged(compare(model, capture.prompts, capture.dtype, capture.unturned), True)
        if not again.findings:
            says = f"matches a {size(dtype)}-precision step: weights that were rounded to {dtype}"
            kind = "precision" if dtype == "float32" else first.kind
            new = replace(first, diagnosis=f"{says}, with which all is right", kind=kind)
            return replace(again, findings=(new,))
    return None


def _in_float32(diagnosis: Diagnosis, capture: Capture) -> Diagnosis | None:
    """Return the diagnosis that float64 code is right to float32 throughout, if it is."""
    first, model = diagnosis.findings[0], diagnosis.compared.model
    if diagnosis.compared.rewritten:
        return None
    for weights in (model, in_dtype(model, "float32")):
        again = judged(compare(weights, capture.prompts, "float32", capture.unturned), True)
        if again.findings:
            continue
        place = first.place if first.place in again.compared.recorded else "logits"
        error = first.error
        if place in again.compared.recorded:
            error = finding(again.compared, place, "").error
        new = replace(
            first,
            error=error,
            ratio=error / first.bound if first.bound else float("inf"),
            diagnosis="matches a single-precision step: all is right to float32 and not to "
            "float64, as when weights were rounded to float32",
            kind="precision",
        )
        return replace(again, findings=(new,))
    return None


def closest(
    capture: Capture, copy: Capture, model: Model, reference: Model, own: str
) -> tuple[Capture, Diagnosis, str]:
    """Return the capture and diagnosis to report, of a module or its float64 copy, and a note.

    Both must be right. If the copy is right only to the module's dtype, and no known mistake
    explains it, weights or tables may have been rounded once, which is no fault in a module of that
    dtype. `reference`: the model with weights of the dtype `own`.
    """
    place = next(iter(capture.dtypes))
    of_copy = judged(compare(reference, copy.prompts, "float64"))
    near = of_copy.compared.expected(place)
    wider = scaled(near, UNIT_ROUNDOFF[own] / UNIT_ROUNDOFF["float64"])
    measured = of_copy.compared.estimated(place)
    first = next(iter(of_copy.findings), None)
    rounded = bool(of_copy.tolerated)
    # A mistake that is a step in the module's own type is named by that type.
    if first and (_unexplained(first) or own in first.diagnosis):
        again = compare(of_copy.compared.model, copy.prompts, own)
        again = supposing(again, place, wider) if measured else again
        rounded = not judged(again, first_only=True).findings
    says = f"only {place} are recorded: those of a copy in float64 were judged as well"
    if rounded:
        says = f"precision: a copy in float64 is right to {own} and no further"
    elif first and not _unexplained(first):
        return copy, of_copy, says
    compared = comparison_of(capture, model)
    if measured and own == capture.dtype and not of_copy.compared.rewritten:
        compared = supposing(compared, place, wider)
    found = judged(compared)
    if first and not rounded and (not found.findings or _unexplained(found.findings[0])):
        return copy, of_copy, says
    return capture, found, says


def _unexplained(finding: Finding) -> bool:
    """Return whether a finding is explained by lower precision at most, and not by a mistake."""
    said = finding.diagnosis
    return not said.startswith("matches ") or "-precision" in said
