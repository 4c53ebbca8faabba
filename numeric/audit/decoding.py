"""Audit of cached decoding: a prefill, then token by token, compared with one forward pass.

Correct decoding gives the logits and activations of the whole prompt at once. So both are run. If
the whole prompt is wrong, that is reported; else what differs is a matter of the cache or of the
positions, and is diagnosed as such.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.audit.audit import report_on
from otimes.numeric.audit.capture.collect import Capture, gather, token_rows
from otimes.numeric.audit.diagnose import Diagnosis, judged
from otimes.numeric.audit.diagnosis.explain import that_fit
from otimes.numeric.audit.judge import check_causal, comparison_of
from otimes.numeric.audit.mistakes.decoding import mistakes
from otimes.numeric.audit.report import Report, report
from otimes.numeric.config import Config
from otimes.numeric.importers.modules import HUGGING_FACE, kind_of_module
from otimes.numeric.importers.unwrap import called, name_of, unwrapped
from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import as_tokens

Step = Callable[[Any, Any], tuple[Any, Any, Mapping[str, Any]]]
"""Tokens [prompt, pos] and a cache → logits, the new cache, activations of these tokens."""


def audit_decoding(
    implementation: Any,
    tokens: Any,
    weights: Any = None,
    *,
    prefill: int | None = None,
    config: Config | Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Report:
    """Return the report on cached decoding: a prefill, and then each token by itself.

    `implementation` is a live module of Hugging Face that `load_model` reads, or a callable
    `(tokens, cache) → (logits, cache)`: tokens [prompt, pos], the cache None at first, then what
    the callable returned. `tokens` is one prompt or a batch of one length, of which the first
    `prefill` tokens are run together, half of them by default. `weights` and `config` are those of
    `audit`. A fault that shows in one pass over the whole prompt is reported for that pass.

    Raises: OtimesError for a prefill that leaves no token to decode, or an output that is not a
    pair of logits and a cache.

    >>> from otimes.numeric.random_weights import random_model
    >>> model = random_model(kind="llama")
    >>> def decode(tokens, cache):
    ...     seen = tokens if cache is None else np.append(cache, tokens, axis=1)
    ...     return model.forward(seen)["logits"][:, -tokens.shape[1]:], seen
    >>> audit_decoding(decode, [3, 1, 4, 1, 5, 9], model).passed
    True
    """
    implementation = unwrapped(implementation)
    kind = kind_of_module(implementation)
    source = implementation if weights is None else weights
    if weights is None and kind not in HUGGING_FACE.values():
        raise OtimesError(
            f"weights= is needed to audit the decoding of {type(implementation).__name__}: a"
            " module, a folder, a model or a mapping of canonical names"
        )
    model = load_model(source, config)
    check_causal(model)
    rows = token_rows(as_tokens(model, tokens), model)
    first = rows.shape[1] // 2 if prefill is None else prefill
    if type(first) is not int or not 0 < first < rows.shape[1]:
        raise OtimesError(
            f"prefill={first!r} must leave tokens to decode: it is from 1 to {rows.shape[1] - 1}"
            f" for prompts of {rows.shape[1]} tokens"
        )
    says = name or name_of(implementation)
    if kind in HUGGING_FACE.values():
        from otimes.numeric.audit.capture import decoding

        whole, parts = decoding.captures_of(implementation, rows, model, str(kind), first)
    else:
        whole, parts = (
            _of_callable(implementation, rows, model, splits)
            for splits in ([rows.shape[1]], [first, *[1] * (rows.shape[1] - first)])
        )
    return _report(whole, parts, model, first, says)


def _of_callable(call: Any, rows: np.ndarray, model: Model, lengths: list[int]) -> Capture:
    """Return the capture of a callable's logits, over runs of these lengths."""
    cache, start, found = None, 0, []
    for length in lengths:
        answer = called(call, rows[:, start : start + length], cache)
        if not isinstance(answer, tuple) or len(answer) != 2 or not hasattr(answer[0], "shape"):
            raise OtimesError(
                "a callable that decodes must return (logits, cache) for (tokens, cache), and"
                f" returned {type(answer).__name__}"
            )
        logits, cache = answer
        found.append(logits)
        start += length
    return gather(_joined(found), {}, rows, model)


def _joined(parts: list[Any]) -> Any:
    if hasattr(parts[0], "detach"):
        import torch

        return torch.cat(parts, dim=-2)
    return np.concatenate([np.asarray(each) for each in parts], axis=-2)


def _report(whole: Capture, parts: Capture, model: Model, first: int, name: str) -> Report:
    count = len(whole.prompts[0].tokens)
    at_once = report_on(whole, model, name)
    if not at_once.passed:
        note = f"of one pass over {count} tokens: cached decoding was not compared"
        return replace(at_once, notes=(*at_once.notes, note))
    note = f"a prefill of {first} tokens, and then {count - first} tokens one by one"
    if parts.dtypes and parts.comparable:
        named = _named(parts, model, first)
        if named is not None:
            found = report(parts, named, name)
            return replace(found, notes=(*found.notes, note))
    found = report_on(parts, model, name)
    return replace(found, notes=(*found.notes, note, "the whole prompt at once is right"))


def _named(capture: Capture, model: Model, first: int) -> Diagnosis | None:
    """Return the diagnosis by a mistake of decoding, None if there is none."""
    compared = comparison_of(capture, model)
    diagnosis = judged(compared, first_only=True)
    if not diagnosis.findings:
        return None
    finding = diagnosis.findings[0]
    says = that_fit(diagnosis.compared, finding.place, mistakes(model.config, first))
    if not says:
        return None
    return replace(diagnosis, findings=(replace(finding, diagnosis=says),))
