"""`audit`: does this code compute the transformer that it claims to?"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from algebra.errors import OtimesError
from numeric.audit import importers_torch
from numeric.audit.calling import module_run_by, name_of, unwrapped
from numeric.audit.coarser import COARSER, size
from numeric.audit.collect import Collected, coarsest, collect, token_rows
from numeric.audit.evaluate import layer_of
from numeric.audit.findings import Finding, Report
from numeric.audit.half_steps import settle_types
from numeric.audit.importers import KNOWN, check_reference, imported, kind_of_module
from numeric.audit.importers_lens import STILL
from numeric.audit.judge import Judge, scaled
from numeric.audit.more_prompts import shown_on_more, too_few
from numeric.audit.spoilt import spoilt_findings
from numeric.audit.walk import walk
from numeric.config import Config, listed
from numeric.forward import place_names
from numeric.model import Model
from numeric.rounding.places import in_dtype
from numeric.rounding.precision import UNIT_ROUNDOFF

GENERIC_TOKENS = 32
"""The copy with generic parameters is run on so many tokens of the first prompt."""


def audit(
    implementation: Any,
    tokens: Any,
    weights: Any = None,
    *,
    config: Config | Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
    generic: bool = True,
    name: str | None = None,
) -> Report:
    """Return the report on an implementation: the places it looked at, and the first that is wrong.

    `implementation` is a live module that is known (Hugging Face GPT-2, GPT-NeoX or Llama, a
    HookedTransformer, TransformerEncoderLayer, TransformerEncoder or MultiheadAttention of
    torch.nn), or any callable from tokens to logits, or to (logits, places). `tokens` is one
    prompt or a batch [prompt, pos], and a callable gets it as it is; for layers of torch.nn it is
    vectors of the stream [pos, d_model] or [prompt, pos, d_model], what a callable returns is what
    the layer would, and a live one is run with a causal mask. `weights` says what the
    implementation should compute with: a module, a folder with safetensors, a `Model`, or a mapping
    of canonical names, with what shapes do not say in `config`; a live module is its own. `names`
    maps the implementation's names of places to ours. Where the tokens are too few to tell another
    basis from a fault, a callable is called again on prompts of our own, of the same kind and
    length. A live module is audited once more as a copy
    with `generic` parameters, for zero biases and unit gains hide mistakes; the module itself is
    left as it was.

    Raises: OtimesError in one sentence for what cannot be audited: tokens that are out of range, a
    setting that the reference does not have, an answer that is no array.

    >>> from numeric.random_weights import random_model
    >>> model = random_model(n_layers=1)
    >>> audit(lambda tokens: model.forward(tokens)["logits"], [1, 2, 3], weights=model).passed
    True
    """
    given = implementation
    implementation = unwrapped(given) if weights is None else given
    kind = kind_of_module(implementation)
    if weights is None and kind is None:
        check_reference(implementation)
        raise OtimesError(
            f"weights= is needed to audit {type(implementation).__name__}: a module, a folder, a "
            "model or a mapping of canonical names, that say what it should compute with; known "
            f"modules that need none are {listed(KNOWN)}"
        )
    source = unwrapped(implementation if weights is None else weights)
    model = imported(source, config)
    rows, output = None, "logits"
    if kind_of_module(source) in importers_torch.KINDS.values():
        model, rows = importers_torch.on_vectors(model, tokens)
        output = importers_torch.last_place(model.config)
    said = name or name_of(implementation)
    if kind is None or names is not None:
        if not callable(implementation):
            raise OtimesError(f"{type(implementation).__name__} is neither a module nor callable")
        return audit_call(implementation, tokens, model, names, said, rows, output)
    from numeric.audit import live

    rows = token_rows(tokens, model) if rows is None else rows
    vectors = kind in importers_torch.KINDS.values()
    shown = live.shown_by(implementation, rows, model, kind)
    report = _first_that_fails(shown, model, said, as_held=weights is None and not vectors)
    if given is not implementation:
        says = f"what {type(given).__name__} runs was looked at, by itself: audit it with weights="
        report = replace(report, notes=(*report.notes, f"{says} to have it run as it is"))
    if weights is not None or not generic or not report.passed:
        return report
    rows = rows[:1, :GENERIC_TOKENS]
    read = model.part("W_E", rows) if vectors else rows
    still = STILL if kind == "lens" and model.config.gated else ()
    del model  # its memory is needed for the copy of the module
    return _generic_too(implementation, read, kind, still, report)


def _generic_too(
    module: Any, read: np.ndarray, kind: str, still: tuple[str, ...], report: Report
) -> Report:
    """Return a report with what a copy of the module shows whose parameters are generic.

    `read`: what it reads, tokens [prompt, pos] or vectors.
    """
    from numeric.audit import live

    other = live.generic(module, still)
    twin, rows = imported(other), read
    if kind in importers_torch.KINDS.values():
        twin, rows = importers_torch.on_vectors(twin, read)
    shown = live.shown_by(other, rows, twin, kind)
    del other  # as large as the module, and of no use once it has shown its places
    again = _first_that_fails(shown, twin, report.name, as_held=rows is read)
    says = "a copy with generic parameters was audited as well"
    return replace(
        report,
        findings=tuple(_generic(finding) for finding in again.findings),
        notes=(*report.notes, *(n for n in again.notes if n not in report.notes), says),
    )


def _first_that_fails(shown: list[Collected], model: Model, name: str, as_held: bool) -> Report:
    """Return the report on the first way of running that fails, or on the first of all."""
    for each in shown:
        each.as_held = as_held
    reports = [judged(each, model, name) for each in shown]
    return next((report for report in reports if not report.passed), reports[0])


def _generic(finding: Finding) -> Finding:
    hidden = f"{finding.diagnosis}; " if finding.diagnosis else ""
    return replace(
        finding, diagnosis=f"{hidden}this module's own parameters hide it, generic ones do not"
    )


def audit_call(
    call: Callable[[Any], Any],
    tokens: Any,
    model: Model,
    names: Mapping[str, str] | None = None,
    name: str | None = None,
    rows: np.ndarray | None = None,
    output: str = "logits",
) -> Report:
    """Return the report on a callable, against a model; see `collect` for what it may return."""
    said = name or name_of(call)
    module, run = module_run_by(call), call
    if module is not None:
        from numeric.audit.in_float64 import quiet, types_of, widened

        run = quiet(call, module)
    collected = collect(run, tokens, model, names, rows, output)
    if module is not None and set(collected.dtypes) == {output} and not _unjudged(collected):
        own = coarsest([collected.dtype, *types_of(module)])
        if own != "float64":
            reference = held(model, own)
            try:
                copy = collect(
                    widened(call, module, model.config), tokens, reference, names, rows, output
                )
            except OtimesError as failed:
                report = judged(collected, model, said)
                says = f"only {output} are shown, and are judged in {own}, as {failed}"
                return replace(report, notes=(*report.notes, says))
            if _unjudged(copy):
                return judged(copy, reference, said)
            return _judged_closely(collected, copy, model, reference, own, said)
    report = judged(collected, model, said)
    if (report.passed and not report.gauges) or rows is not None:
        return report  # nothing was fitted, or the prompts are no tokens
    if _unjudged(collected) or set(collected.dtypes) == {output} or not too_few(collected, model):
        return report

    def shown(prompt: Any, row: np.ndarray) -> Collected:
        return collect(run, prompt, model, names, row)

    more = shown_on_more(collected, model, tokens, shown)
    if more is None:
        says = f"{_length(collected)} tokens are few to fit coordinates to, which may hide a fault"
        return replace(report, notes=(*report.notes, says)) if report.passed else report
    if not report.passed and walk(_judge(more, model), first_only=True):
        return report
    again = judged(more, model, said)
    says = f"too few tokens to fit coordinates to: {len(more.prompts)} prompts were looked at"
    return replace(again, notes=(*again.notes, says))


def _unjudged(collected: Collected) -> bool:
    """Return whether something was shown that no bound can be compared with."""
    return bool(collected.unfit or collected.spoilt)


def judged(collected: Collected, model: Model, name: str) -> Report:
    """Return the report on what was collected of an implementation, against a model."""
    unfit = [
        Finding(place, layer_of(place), None, float("inf"), 0.0, float("inf"), "", note=why)
        for place, why in collected.unfit.items()
    ]
    if not collected.dtypes:
        return Report(name, "", _length(collected), {}, tuple(unfit), notes=tuple(collected.notes))
    judge = _judge(collected, model)
    findings = walk(judge)
    if collected.spoilt:
        findings += spoilt_findings(collected.spoilt, judge)
    elif findings and _undiagnosed(findings[0]):
        rounded = _with_rounded_weights(collected, judge, findings[0])
        if rounded is not None:
            return _report(collected, rounded[1], [*unfit, rounded[0]], name)
        if collected.dtype == "float64":
            findings, judge = _only_coarser(collected, judge, findings)
    return _report(collected, judge, [*unfit, *findings], name)


def _judged_closely(
    collected: Collected, copy: Collected, model: Model, reference: Model, own: str, name: str
) -> Report:
    """Return the report on what a module shows in its own type, and its copy in float64.

    Both must be right. Where the copy is right to the module's type only, and no known mistake says
    why, weights or tables may have been rounded once more, which is no fault of a module in that
    type. `reference`: the model with weights of that type.
    """
    place = next(iter(collected.dtypes))
    judge = Judge(reference, copy.prompts, "float64")
    findings = walk(judge)
    known = judge.expected(place)
    wider = UNIT_ROUNDOFF[own] / UNIT_ROUNDOFF["float64"]
    rounded = any(note.startswith("precision: ") for note in judge.notes)
    # A mistake that is a step in the module's own type is named by that type.
    if findings and (_undiagnosed(findings[0]) or own in findings[0].diagnosis):
        again = Judge(judge.model, copy.prompts, own)
        if judge.estimated(place):
            again.suppose(place, scaled(known, wider))
        rounded = not walk(again, first_only=True)
    says = f"only {place} are shown: those of a copy in float64 were judged as well"
    if rounded:
        says = f"precision: a copy in float64 is right to {own} and no further"
    elif findings and not _undiagnosed(findings[0]):
        return _report(copy, judge, findings, name, says)
    first = _judge(collected, model)
    if judge.estimated(place) and own == collected.dtype and not judge.rewritten:
        first.suppose(place, scaled(known, wider))
    own_findings = walk(first)
    if findings and not rounded and (not own_findings or _undiagnosed(own_findings[0])):
        return _report(copy, judge, findings, name, says)
    return _report(collected, first, own_findings, name, says)


def _report(
    collected: Collected, judge: Judge, findings: list[Finding], name: str, *says: str
) -> Report:
    order = place_names(judge.model.config)
    every = sorted(findings, key=lambda each: order.index(each.place))
    notes = [*collected.notes, *_once(judge.notes), *says]
    return Report(
        name,
        collected.dtype,
        _length(collected),
        judge.ratios,
        tuple(every),
        tuple(judge.gauges),
        tuple(notes),
        judge.heads,
    )


def _judge(collected: Collected, model: Model) -> Judge:
    dtype = collected.dtype
    model = model if collected.as_held else held(model, dtype)
    judge = Judge(model, collected.prompts, dtype, unturned=collected.unturned)
    settle_types(judge, collected.coarser)
    return judge


def held(model: Model, dtype: str) -> Model:
    """Return the model with the weights that code of that type holds."""
    coarser = [
        name
        for name, array in model.weights.items()
        if UNIT_ROUNDOFF.get(array.dtype.name, 0.0) < UNIT_ROUNDOFF[dtype]
    ]
    return in_dtype(model, dtype) if coarser else model


def _with_rounded_weights(
    collected: Collected, judge: Judge, first: Finding
) -> tuple[Finding, Judge] | None:
    """Return the finding that all is right with weights that were rounded to a coarser type."""
    shown = [prompt.places.get(first.place) for prompt in judge.prompts]
    largest = max((np.abs(each.value).max(initial=0.0) for each in shown if each), default=0.0)
    for dtype in COARSER:
        unit = UNIT_ROUNDOFF[dtype]
        if unit <= judge.unit or not first.error <= ROUNDINGS * unit * largest:
            continue
        rounded = in_dtype(judge.model, dtype)
        again = Judge(rounded, collected.prompts, collected.dtype, unturned=collected.unturned)
        if walk(again, first_only=True):
            continue
        says = f"matches a {size(dtype)}-precision step: weights that were rounded to {dtype}, with"
        diagnosis = f"{says} which all is right"
        kind = "precision" if dtype == "float32" else first.kind
        return replace(first, diagnosis=diagnosis, kind=kind), again
    return None


ROUNDINGS = 2.0**5
"""A place that is off by more than so many roundings is not looked at with rounded weights."""


def _only_coarser(
    collected: Collected, judge: Judge, findings: list[Finding]
) -> tuple[list[Finding], Judge]:
    """Return one finding of precision, if float64 code is right throughout to float32."""
    first = findings[0]
    if judge.rewritten:
        return findings, judge
    for model in (judge.model, in_dtype(judge.model, "float32")):
        again = Judge(model, collected.prompts, "float32", unturned=collected.unturned)
        if not walk(again, first_only=True):
            break
    else:
        return findings, judge
    place = first.place if first.place in again.prompts[0].places else "logits"
    shown = again.finding(place, "") if place in again.prompts[0].places else first
    finding = replace(
        first,
        error=shown.error,
        ratio=shown.error / first.bound if first.bound else float("inf"),
        diagnosis="matches a single-precision step: all is right to float32 and not to float64, as "
        "when weights were rounded to float32",
        kind="precision",
    )
    return [finding], again


def _undiagnosed(finding: Finding) -> bool:
    """Return whether no mistake but a coarser step was found to explain a finding."""
    said = finding.diagnosis
    return not said.startswith("matches ") or "-precision" in said


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
        f"precision: {what} ({places[0]}"
        + (f" and {len(places) - 1} more places)" if len(places) > 1 else ")")
        for what, places in kept.items()
    ]
    return [*said, *other]
