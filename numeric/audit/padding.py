"""Audit of batches with padding: each prompt must be computed as if it stood alone.

Prompts of different lengths are run as one batch, with pad tokens and a mask that hides them. What
is recorded at the tokens of a prompt is compared with the reference pass over these tokens alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.audit.audit import report_on
from otimes.numeric.audit.capture.collect import (
    Capture,
    answer_of,
    by_prompt,
    gather,
    token_rows,
)
from otimes.numeric.audit.diagnose import Diagnosis, judged
from otimes.numeric.audit.judge import check_causal, comparison_of
from otimes.numeric.audit.mistakes.decoding import rotated_on
from otimes.numeric.audit.reference.evaluator import Mistake
from otimes.numeric.audit.report import Report, report
from otimes.numeric.block import kind_of
from otimes.numeric.config import Config
from otimes.numeric.importers.modules import HUGGING_FACE, kind_of_module
from otimes.numeric.importers.unwrap import called, name_of, unwrapped
from otimes.numeric.load import load_model
from otimes.numeric.model import Model

UNMASKED = "matches padding without its mask: pad tokens are attended to"
COUNTED = "matches positions that count the padding: the first token of the prompt is not at 0"


def audit_padded(
    implementation: Any,
    tokens: Any,
    mask: Any,
    weights: Any = None,
    *,
    config: Config | Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Report:
    """Return the report on a batch with padding, of the first prompt that is wrong, or the first.

    `tokens` and `mask` are [prompt, pos]; the mask is 1 at the tokens of a prompt, which follow one
    another, and 0 at padding, on the left or on the right. Pad tokens are any token ids.
    `implementation` is a live module of Hugging Face that `load_model` reads, which is given the
    mask and the positions that `generate` gives it, or a callable `(tokens, mask) → logits`, or to
    (logits, activations). `weights` and `config` are those of `audit`.

    Raises: ShapeError for a mask of another shape; OtimesError for one that has gaps.

    >>> from otimes.numeric.random_weights import random_model
    >>> model = random_model(kind="llama")
    >>> found = audit_padded(lambda tokens, mask: model.forward(tokens)["logits"],
    ...                      [[0, 0, 3, 1, 4], [1, 5, 9, 2, 6]],
    ...                      [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], model)
    >>> found.first_failure.diagnosis
    'matches padding without its mask: pad tokens are attended to'
    """
    implementation = unwrapped(implementation)
    kind = kind_of_module(implementation)
    live = kind in HUGGING_FACE.values()
    if weights is None and not live:
        raise OtimesError(
            f"weights= is needed to audit {type(implementation).__name__}: a module, a folder, a"
            " model or a mapping of canonical names"
        )
    model = load_model(implementation if weights is None else weights, config)
    check_causal(model)
    rows = token_rows(tokens, model)
    seen = _checked(mask, rows)
    places: Mapping[str, Any]
    if live:
        from otimes.numeric.audit.capture.padding import recorded

        logits, places = recorded(implementation, rows, seen, model, str(kind))
    else:
        logits, places = answer_of(called(implementation, rows, seen))
    says = name or name_of(implementation)
    unturned = live and model.config.positions == "rotary"
    return _report(says, logits, places, rows, seen, model, unturned)


def _checked(mask: Any, rows: np.ndarray) -> np.ndarray:
    """Return a mask as 0 and 1 [prompt, pos]."""
    given = mask.detach().cpu().numpy() if hasattr(mask, "detach") else mask
    seen = np.asarray(given).astype(np.int64)
    seen = seen[None] if seen.ndim == 1 else seen
    if seen.shape != rows.shape:
        raise ShapeError(f"the mask has shape {seen.shape}, and the tokens {rows.shape}")
    for number, row in enumerate(seen):
        there = np.flatnonzero(row)
        if not len(there) or there[-1] - there[0] + 1 != len(there) or set(row) - {0, 1}:
            raise OtimesError(
                f"the mask of prompt {number} is {row.tolist()}: it must be 1 at tokens that follow"
                " one another, and 0 at the others"
            )
    return seen


def _report(
    name: str,
    logits: Any,
    places: Mapping[str, Any],
    rows: np.ndarray,
    seen: np.ndarray,
    model: Model,
    unturned: bool,
) -> Report:
    reports = []
    for number, row in enumerate(rows):
        there = np.flatnonzero(seen[number])
        start, end = int(there[0]), int(there[-1]) + 1
        own = _part(logits, places, row, seen, number, slice(start, end), model, unturned)
        padding = f"{start} pad tokens before and {len(row) - end} after {end - start} of its own"
        note, named = f"prompt {number}: {padding}", None
        if start and own.comparable:
            whole = _part(logits, places, row, seen, number, slice(0, end), model, unturned)
            named = _named(own, whole, start, model)
        found = report_on(own, model, name) if named is None else report(own, named, name)
        reports.append(replace(found, notes=(*found.notes, note)))
    return next((each for each in reports if not each.passed), reports[0])


def _part(
    logits: Any,
    places: Mapping[str, Any],
    row: np.ndarray,
    seen: np.ndarray,
    number: int,
    part: slice,
    model: Model,
    unturned: bool,
) -> Capture:
    """Return the capture of one prompt, at some of its tokens."""
    batch = seen.shape

    def cut(kind: str, array: Any) -> Any:
        keys = part if kind in ("scores", "pattern") else slice(None)
        return array[number : number + 1, ..., part, keys]

    own = {each: cut(kind_of(each), by_prompt(array, batch)) for each, array in places.items()}
    capture = gather(None if logits is None else cut("", logits), own, row[None, part], model)
    return replace(capture, unturned=unturned)


def _named(own: Capture, whole: Capture, start: int, model: Model) -> Diagnosis | None:
    """Return the diagnosis of a prompt by a mistake of padding, None if there is none."""
    diagnosis = judged(comparison_of(own, model), first_only=True)
    if not diagnosis.findings:
        return None
    says = ""
    if _right(own, _counting(model, start)):
        says = COUNTED
    elif whole.comparable and (_right(whole, model) or _explained(whole, start, model)):
        says = UNMASKED
    first = replace(diagnosis.findings[0], diagnosis=says)
    return replace(diagnosis, findings=(first,)) if says else None


def _right(capture: Capture, model: Model | None) -> bool:
    if model is None or not capture.comparable:
        return False
    return not judged(comparison_of(capture, model), first_only=True).findings


def _counting(model: Model, start: int) -> Model | None:
    """Return the model with learned positions from `start` on."""
    if "W_pos" not in model.weights:
        return None
    return model.changed({"W_pos": np.roll(np.asarray(model.weights["W_pos"]), -start, axis=0)})


def _explained(whole: Capture, start: int, model: Model) -> bool:
    """Return whether pad tokens are seen, all at position 0, before tokens at their positions."""
    count = len(whole.prompts[0].tokens)
    places = np.maximum(np.arange(count) - start, 0)
    if model.config.positions == "learned":
        W_pos = np.array(model.weights["W_pos"])
        W_pos[:count] = W_pos[places]
        return _right(whole, model.changed({"W_pos": W_pos}))
    compared = comparison_of(whole, model)
    last = compared.places[-1]
    return any(compared.ratio(last, (each,)) <= 1 for each in _turned(places, model.config))


def _turned(places: np.ndarray, config: Config) -> Iterator[Mistake]:
    if config.positions == "rotary":
        yield Mistake(UNMASKED, dict.fromkeys(("q", "k"), rotated_on(places)))
