"""`audit`: compare an implementation of a transformer with the reference forward pass.

    capture    run the implementation, and record its activations          `capture`
    judge      compare each activation with the reference                  `judge`
    diagnose   find the known mistake that explains a wrong activation          `diagnose`
    report     print the findings as text, JSON or HTML                  `report`

`report_on` performs these steps. The rest of this file runs implementations of different kinds,
some of them again: with generic parameters, in float64, or on more prompts.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.audit.capture.before_cast import before_the_cast
from otimes.numeric.audit.capture.collect import Capture, coarsest, collect, token_rows
from otimes.numeric.audit.capture.more_prompts import captured_on_more, too_few
from otimes.numeric.audit.capture.nonfinite import nonfinite_findings
from otimes.numeric.audit.diagnose import diagnose, judged
from otimes.numeric.audit.findings import Finding
from otimes.numeric.audit.judge import check_causal, comparison_of, held, judge
from otimes.numeric.audit.precision_findings import closest, in_lower_precision
from otimes.numeric.audit.report import Report, report
from otimes.numeric.config import Config, listed
from otimes.numeric.importers import torch_layers
from otimes.numeric.importers.modules import check_reference, kind_of_module
from otimes.numeric.importers.transformer_lens import STILL
from otimes.numeric.importers.unwrap import module_run_by, name_of, unwrapped
from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import as_tokens

GENERIC_TOKENS = 32
"""The copy with generic parameters is run on at most this many tokens of the first prompt."""


def audit(
    implementation: Any,
    tokens: Any,
    weights: Any = None,
    *,
    config: Config | Mapping[str, Any] | None = None,
    names: Mapping[str, str | None] | None = None,
    generic: bool = True,
    name: str | None = None,
) -> Report:
    """Return the report on an implementation: what was compared, and the first wrong activation.

    `implementation` is a live module of a known class (one of Hugging Face that `load_model` reads,
    a HookedTransformer, TransformerEncoderLayer, TransformerEncoder or MultiheadAttention of
    torch.nn), or any callable from tokens to logits, or to (logits, activations); or a `Model`,
    such as one whose norms are folded, which is run by the reference pass. `tokens` is one
    prompt or a batch [prompt, pos], passed to a callable unchanged, or as token ids if they are
    given as text; layers of torch.nn read vectors of the residual stream, [pos, d_model] or
    [prompt, pos, d_model], a callable returns the output of the layer, and a live layer is run with
    a causal
    mask. `weights` are those that the implementation should use: a module, a folder with
    safetensors, a `Model`, or a mapping of canonical names, with `config` for fields that the
    shapes do not determine; a live module has its own. `names` maps the implementation's names of
    hook points to ours, or to None for activations that are left out; a name that is nearly that of
    a hook point is refused, and others are noted. If the tokens are too few to tell a change of
    basis from a fault, a callable is called again on random prompts of the same type and length. A
    copy of a live module with `generic` parameters is audited as well, as zero biases and unit
    gains hide mistakes; the module itself is not changed.

    Raises: OtimesError for tokens out of range, an unsupported setting, or an output that is no
    array.

    >>> from otimes.numeric.random_weights import random_model
    >>> model = random_model(n_layers=1)
    >>> audit(lambda tokens: model.forward(tokens)["logits"], [1, 2, 3], weights=model).passed
    True
    """
    if isinstance(implementation, Model) and weights is not None:
        return audit(
            partial(_own_pass, implementation), tokens, weights,
            config=config, names=names, name=name or implementation.name,
        )  # fmt: skip
    given = implementation
    implementation = unwrapped(given) if weights is None else given
    kind = kind_of_module(implementation)
    if weights is None and kind is None:
        check_reference(implementation)
        raise OtimesError(
            f"weights= is needed to audit {type(implementation).__name__}: a module, a folder, a "
            "model or a mapping of canonical names. Only live modules that load_model reads, of "
            "transformers, transformer_lens and torch.nn, need none"
        )
    source = unwrapped(implementation if weights is None else weights)
    model = load_model(source, config)
    check_causal(model)
    tokens = as_tokens(model, tokens)
    rows, output = None, "logits"
    if kind_of_module(source) in torch_layers.KINDS.values():
        model, rows = torch_layers.on_vectors(model, tokens)
        output = torch_layers.last_place(model.config)
    called = name or name_of(implementation)
    if kind is None or names is not None:
        if not callable(implementation):
            raise OtimesError(f"{type(implementation).__name__} is neither a module nor callable")
        return audit_call(implementation, tokens, model, names, called, rows, output)
    from otimes.numeric.audit.capture import modules

    rows = token_rows(tokens, model) if rows is None else rows
    vectors = kind in torch_layers.KINDS.values()
    captures = modules.captures_of(implementation, rows, model, kind)
    found = _first_that_fails(captures, model, called, weights is None and not vectors)
    if given is not implementation:
        says = f"the module in {type(given).__name__} was audited by itself: give weights= to audit"
        found = replace(found, notes=(*found.notes, f"{says} the wrapper as it runs"))
    if weights is not None or not generic or not found.passed:
        return found
    rows = rows[:1, :GENERIC_TOKENS]
    read = model.part("W_E", rows) if vectors else rows
    still = STILL if kind == "lens" and model.config.gated else ()
    del model  # its memory is needed for the copy of the module
    return _on_generic_copy(implementation, read, kind, still, found)


def _own_pass(model: Model, tokens: Any) -> tuple[Any, dict[str, Any]]:
    """Return the logits and activations of the reference pass of a model, each once."""
    activations = model.forward(tokens)
    return activations["logits"], activations


def report_on(capture: Capture, model: Model, name: str) -> Report:
    """Return the report on the captured activations of an implementation, compared with a model."""
    if not capture.dtypes:
        return report(capture, None, name)
    compared = comparison_of(capture, model)
    diagnosis = diagnose(compared, judge(compared))
    if capture.nonfinite:
        found = nonfinite_findings(capture.nonfinite, diagnosis.compared)
        diagnosis = replace(diagnosis, findings=(*diagnosis.findings, *found))
    else:
        diagnosis = in_lower_precision(diagnosis, capture, model)
    return report(capture, diagnosis, name)


def _first_that_fails(
    captures: list[Capture], model: Model, name: str, own_weights: bool
) -> Report:
    """Return the report on the first capture that fails, or else on the first capture."""
    reports = [report_on(replace(c, own_weights=own_weights), model, name) for c in captures]
    return next((each for each in reports if not each.passed), reports[0])


def _on_generic_copy(
    module: Any, read: np.ndarray, kind: str, still: tuple[str, ...], found: Report
) -> Report:
    """Return the report `found`, extended by the findings on a copy with generic parameters.

    `read`: its input, tokens [prompt, pos] or vectors.
    """
    from otimes.numeric.audit.capture import modules

    copy = modules.generic(module, still)
    model, rows = load_model(copy), read
    if kind in torch_layers.KINDS.values():
        model, rows = torch_layers.on_vectors(model, read)
    captures = modules.captures_of(copy, rows, model, kind)
    del copy  # as large as the module
    again = _first_that_fails(captures, model, found.name, rows is read)
    says = "a copy with generic parameters was audited as well"
    return replace(
        found,
        findings=tuple(_generic(finding) for finding in again.findings),
        notes=(*found.notes, *(n for n in again.notes if n not in found.notes), says),
    )


def _generic(finding: Finding) -> Finding:
    hidden = f"{finding.diagnosis}; " if finding.diagnosis else ""
    return replace(
        finding, diagnosis=f"{hidden}this module's own parameters hide it, generic ones do not"
    )


def audit_call(
    call: Callable[[Any], Any],
    tokens: Any,
    model: Model,
    names: Mapping[str, str | None] | None = None,
    name: str | None = None,
    rows: np.ndarray | None = None,
    output: str = "logits",
) -> Report:
    """Return the report on a callable, compared with a model; `collect` has its return values."""
    capture_of = partial(collect, tokens=tokens, names=names, rows=rows, output=output)
    found = _report_on_call(call, tokens, model, names, name, rows, output)
    module = module_run_by(call)
    if found.passed:
        return found
    if module is None:
        return _unless_random(found, *(capture_of(call, model=model) for _ in range(2)))
    if found.findings[0].diagnosis:
        return found
    from otimes.numeric.audit.capture.float64_copy import with_other_draws

    runs = (capture_of(each, model=model) for each in with_other_draws(call, module))
    return _unless_random(found, *runs)


def _unless_random(found: Report, *runs: Capture) -> Report:
    """Return the report with its first finding explained by two runs that differ, if they do."""
    first, *others = found.findings
    if first.note or not all(first.place in run.dtypes and run.comparable for run in runs):
        return found
    shown = [[prompt.places[first.place].value for prompt in run.prompts] for run in runs]
    moved = max(np.abs(a - b).max(initial=0.0) for a, b in zip(*shown, strict=True))
    if not moved > first.bound:
        return found
    says = f"differs by {moved:.3g} between two runs on the same tokens: dropout may be on"
    return replace(found, findings=(replace(first, diagnosis=says), *others))


def _report_on_call(
    call: Callable[[Any], Any],
    tokens: Any,
    model: Model,
    names: Mapping[str, str | None] | None,
    name: str | None,
    rows: np.ndarray | None,
    output: str,
) -> Report:
    called = name or name_of(call)
    capture_of = partial(collect, tokens=tokens, names=names, rows=rows, output=output)
    module, run = module_run_by(call), call
    if module is not None:
        from otimes.numeric.audit.capture.float64_copy import quiet

        run = quiet(call, module)
    capture = capture_of(run, model=model)
    alone = set(capture.dtypes) == {output}
    if module is not None and alone and capture.comparable:
        found = _on_float64_copy(call, module, model, called, capture_of, capture)
        if found is not None:
            return found
    if module is None and alone and capture.comparable:
        capture = before_the_cast(capture, model)
    found = report_on(capture, model, called)
    if (found.passed and not found.gauges) or rows is not None:
        return found  # nothing was fitted, or the prompts are no tokens
    if not capture.comparable or alone or not too_few(capture, model):
        return found
    more = captured_on_more(
        capture, model, tokens, lambda prompt, row: collect(run, prompt, model, names, row)
    )
    if more is None:
        says = f"{capture.n_tokens} tokens are few to fit coordinates to, which may hide a fault"
        return replace(found, notes=(*found.notes, says)) if found.passed else found
    if not found.passed and judged(comparison_of(more, model), first_only=True).findings:
        return found
    again = report_on(more, model, called)
    says = f"too few tokens to fit coordinates to: {len(more.prompts)} prompts were looked at"
    return replace(again, notes=(*again.notes, says))


def _on_float64_copy(
    call: Callable[[Any], Any],
    module: Any,
    model: Model,
    name: str,
    capture_of: Callable[..., Capture],
    capture: Capture,
) -> Report | None:
    """Return the report on a module that records one activation only, and on its float64 copy."""
    from otimes.numeric.audit.capture.float64_copy import types_of, widened

    own = coarsest([capture.dtype, *types_of(module)])
    if own == "float64":
        return None
    capture = replace(capture, dtypes=dict.fromkeys(capture.dtypes, own))  # logits may be cast
    reference = held(model, own)
    try:
        copy = capture_of(widened(call, module, model.config), model=reference)
    except OtimesError as failed:
        found = report_on(capture, model, name)
        says = f"only {listed(capture.dtypes)} are recorded, and are judged in {own}, as {failed}"
        return replace(found, notes=(*found.notes, says))
    if not copy.comparable:
        return report_on(copy, reference, name)
    chosen, diagnosis, says = closest(capture, copy, model, reference, own)
    return report(chosen, diagnosis, name, says)
