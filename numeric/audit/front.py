"""`audit`: does this code compute the transformer that it claims to?"""

from collections.abc import Callable, Mapping
from typing import Any

from numeric.audit.collect import Collected, collect
from numeric.audit.evaluate import layer_of
from numeric.audit.findings import Finding, Report
from numeric.audit.judge import Judge
from numeric.audit.walk import walk
from numeric.forward import place_names
from numeric.model import Model
from numeric.rounding.places import in_dtype
from numeric.rounding.precision import UNIT_ROUNDOFF


def audit_call(
    call: Callable[[Any], Any],
    tokens: Any,
    model: Model,
    names: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Report:
    """Return the report on a callable, tokens → logits or (logits, places), against a model."""
    collected = collect(call, tokens, model, names)
    said = name or str(getattr(call, "__name__", type(call).__name__))
    return judged(collected, model, said)


def judged(collected: Collected, model: Model, name: str) -> Report:
    """Return the report on what was collected of an implementation, against a model."""
    unfit = [
        Finding(place, layer_of(place), None, float("inf"), 0.0, float("inf"), "", note=why)
        for place, why in collected.unfit.items()
    ]
    if not collected.dtypes:
        return Report(name, "", _length(collected), {}, tuple(unfit), notes=tuple(collected.notes))
    dtype = collected.dtype
    judge = Judge(held(model, dtype), collected.prompts, dtype)
    findings = walk(judge)
    if findings and dtype == "float64":
        findings = _only_coarser(collected, model, findings)
    order = place_names(model.config)
    every = sorted([*unfit, *findings], key=lambda each: order.index(each.place))
    notes = [*collected.notes, *_once(judge.notes)]
    return Report(
        name,
        dtype,
        _length(collected),
        judge.ratios,
        tuple(every),
        tuple(judge.gauges),
        tuple(notes),
        judge.heads,
    )


def held(model: Model, dtype: str) -> Model:
    """Return the model with the weights that code of that type holds."""
    coarser = [
        name
        for name, array in model.weights.items()
        if UNIT_ROUNDOFF.get(array.dtype.name, 0.0) < UNIT_ROUNDOFF[dtype]
    ]
    return in_dtype(model, dtype) if coarser else model


def _only_coarser(collected: Collected, model: Model, findings: list[Finding]) -> list[Finding]:
    """Return one finding of precision, if float64 code is right throughout to float32."""
    first = findings[0]
    if first.diagnosis and "-precision" not in first.diagnosis:
        return findings
    again = Judge(model, collected.prompts, "float32")
    if not first.ratio < 1e12 or walk(again, first_only=True):
        return findings
    return [
        Finding(
            first.place,
            first.layer,
            first.head,
            first.error,
            first.bound,
            first.ratio,
            "matches a single-precision step: all is right to float32 and not to float64, as when"
            " weights were rounded to float32",
            kind="precision",
            estimated=first.estimated,
            entry=first.entry,
        )
    ]


def _length(collected: Collected) -> int:
    return sum(len(prompt.tokens) for prompt in collected.prompts)


def _once(notes: list[str]) -> list[str]:
    """Return notes of precision as one for each cause, with the first place and the count."""
    kept: dict[str, list[str]] = {}
    other = []
    for note in notes:
        if note.startswith("precision: at "):
            place, _, what = note.removeprefix("precision: at ").partition(", ")
            kept.setdefault(what, []).append(place)
        else:
            other.append(note)
    said = [
        f"precision: {what}, inside float64 code ({places[0]}"
        + (f" and {len(places) - 1} more places)" if len(places) > 1 else ")")
        for what, places in kept.items()
    ]
    return [*said, *other]
