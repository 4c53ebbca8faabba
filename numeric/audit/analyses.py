"""Auditing what people compute *from* a model: circuits, scores, attributions, lenses.

Each analysis is a formula with a *mistake* argument (`formulas`). The distance granted is measured
as for a pass: 16 times what four runs deviate whose weights and places are moved by one unit of
rounding of the value's type. A diagnosis is a mistake that reproduces the value within its own
distance, or else a form that the right value has been given: a factor, other axes, another head.

    ov_circuit, qk_circuit      [d_model, d_model] of one head
    copying_score               of one head, or [layer, head]
    q_, k_, v_composition       [writer layer, head, reader layer, head]; only earlier writers count
    folded_weights              a mapping: gains and biases of the norms moved into what reads them
    direct_logit_attribution    [layer, head, pos, d_vocab]
    logit_lens                  [n_layers + 1, pos, d_vocab]
    path_term                   [pos, d_vocab] through two heads, layer and head being pairs
    svd                         (U, S, Vᵀ) of a head's OV circuit

Conventions: rows, so that W_OV = W_V W_O. Source: Elhage et al. 2021; nostalgebraist 2020.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np

from algebra.errors import OtimesError
from numeric.audit.collect import plain
from numeric.audit.findings import Finding, Gauge, Report
from numeric.audit.formulas import SAYS, Analysis, Array, Asked
from numeric.audit.made_weights import folded_weights, svd_misfit
from numeric.audit.measured import GRANTED, RUNS
from numeric.config import listed
from numeric.model import Model
from numeric.rounding.precision import UNIT_ROUNDOFF, worst_ratio

OTHERS = ("folded_weights", "svd")


def audit_analysis(
    name: str,
    value: Any,
    model: Model,
    tokens: Any = None,
    layer: Any = None,
    head: Any = None,
) -> Report:
    """Return the report on something computed from a model; see the module for names and shapes.

    >>> from numeric.random_weights import random_model
    >>> m = random_model()
    >>> audit_analysis("ov_circuit", m.W_V[0, 1] @ m.W_O[0, 1], m, layer=0, head=1).passed
    True
    >>> wrong = audit_analysis("ov_circuit", (m.W_V[0, 1] @ m.W_O[0, 1]).T, m, layer=0, head=1)
    >>> wrong.first_failure.diagnosis
    'matches W_O W_V for W_V W_O: the circuit transposed, as columns have it'

    Raises: OtimesError for an analysis that is not known, or a question that is not complete.
    """
    if name not in SAYS and name not in OTHERS:
        raise OtimesError(f"there is no analysis {name!r}; known are {listed([*SAYS, *OTHERS])}")
    rows = None if tokens is None else model.check_tokens(np.asarray(tokens).reshape(-1))
    asked = Asked(model, rows, layer, head)
    if name == "folded_weights":
        return folded_weights(value, model)
    if name == "svd":
        dtype, diagnosis, figures = svd_misfit(value, asked)
        if figures[0] <= 1:
            return Report("svd", dtype, 0, {"svd": figures[0]}, ())
        return _report("svd", dtype, _finding("svd", diagnosis, "", figures))
    analysis, mistakes = SAYS[name]
    shown, dtype = plain(value)
    unit = UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float64"])
    gauges: tuple[Gauge, ...] = ()
    expected = analysis(asked, "")
    if shown.shape != expected.shape:
        why = f"has the shape {shown.shape}, and {expected.shape} is expected"
        return _report(name, dtype, _finding(name, "", why))
    figures = _ratio(analysis, asked, "", shown, unit)
    if figures[0] > 1:
        for says, other in _gauges(name, analysis, asked, shown, unit):
            if other[0] <= 1:
                figures, gauges = other, (Gauge(name, says),)
    if figures[0] <= 1:
        return Report(name, dtype, 0, {name: figures[0]}, (), gauges)
    fitting = [
        said
        for mistake, said in mistakes.items()
        if _nearly(analysis, asked, mistake, shown, unit)
        and _ratio(analysis, asked, mistake, shown, unit)[0] <= 1
    ]
    if not fitting:
        slack = 4 * figures[2] / max(np.abs(expected[np.isfinite(expected)]).max(initial=0), 1e-300)
        others = (*_of_another(analysis, asked), *_forms(model, expected, shown))
        fitting = [says for says, value in others if _same(value, shown, slack)][:2]
    diagnosis = f"matches {'; or '.join(fitting)}" if fitting else ""
    return _report(name, dtype, _finding(name, diagnosis, "", figures))


def _gauges(
    name: str, analysis: Analysis, asked: Asked, shown: Array, unit: float
) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """Yield other ways of saying the same, each with ratio, error and bound."""
    if name == "logit_lens":
        says = "all rows are divided by the scale of the last stream"
        yield says, _ratio(analysis, asked, "final_scale", shown, unit)
    if name in ("logit_lens", "direct_logit_attribution"):
        right = analysis(asked, "")
        shift = (shown - right).mean(axis=-1, keepdims=True)
        says = "all logits of a position are moved by the same number, which no probability sees"
        yield says, _ratio(analysis, asked, "", shown - shift, unit)


def _nearly(analysis: Analysis, asked: Asked, mistake: str, shown: Array, unit: float) -> bool:
    """Return whether a mistake gives about what was shown: most need no bound to be ruled out."""
    value = analysis(asked, mistake)
    if value.shape != shown.shape:
        return False
    return _same(value, shown, 1e6 * unit)


def _same(value: Array, shown: Array, slack: float) -> bool:
    if value.shape != shown.shape:
        return False
    claimed = np.isfinite(value)
    if not claimed.any():
        return False
    largest = np.abs(value[claimed]).max()
    return bool((np.abs(shown - value)[claimed] <= slack * largest).all())


def _of_another(analysis: Analysis, asked: Asked) -> Iterator[tuple[str, Array]]:
    """Yield the same of every other head."""
    model = asked.model
    if not isinstance(asked.layer, int) or not isinstance(asked.head, int):
        return
    for layer, head in np.ndindex(model.n_layers, model.n_heads):
        if (layer, head) != (asked.layer, asked.head):
            other = Asked(model, asked.tokens, int(layer), int(head))
            swapped = (layer, head) == (asked.head, asked.layer)
            why = " (layer and head swapped)" if swapped else ""
            yield f"another head, {layer}.{head}{why}", analysis(other, "")


def _forms(model: Model, right: Array, shown: Array) -> Iterator[tuple[str, Array]]:
    """Yield what is made of the right value by a change of scale, or of the order of its axes."""
    claimed = np.isfinite(right)
    square = float((right[claimed] ** 2).sum())
    factor = float((shown[claimed] * right[claimed]).sum()) / max(square, 1e-300)
    sizes = {"d_head": model.d_head, "d_model": model.d_model, "n_heads": model.n_heads}
    names = {f"{size}": n for size, n in sizes.items()} | {
        f"√{s}": n**0.5 for s, n in sizes.items()
    }
    named = {**names, **{f"1/{name}": 1 / n for name, n in names.items()}}
    called = [name for name, n in named.items() if abs(abs(factor) / n - 1) < 1e-5]
    by = f"{factor:.4g}" + (f" ({', '.join(called)})" if called else "")
    if factor and (called or right.size > 1):
        yield f"the right value multiplied by {by}: another scale (a factor)", factor * right
    for order in permutations(range(right.ndim)):
        if order != tuple(range(right.ndim)):
            said = ", ".join(map(str, order))
            yield f"the right value with its axes transposed ({said})", right.transpose(order)
    for axis in range(right.ndim):
        yield f"the right value in reverse order along axis {axis}", np.flip(right, axis)
        for by_one in (1, -1):
            yield f"the right value off by one along axis {axis}", np.roll(right, by_one, axis)
    with np.errstate(all="ignore"):
        yield "the square of the right value", right**2
        yield "the root of the right value", np.sqrt(right)
        yield "the sizes (absolute values) of the right value", np.abs(right)
        if right.ndim:
            powers = np.exp(right - right.max(-1, keepdims=True))
            yield "a softmax of the right value", powers / powers.sum(-1, keepdims=True)
            yield "the running sum of the right value", right.cumsum(0)
            yield "the right value less its mean", right - right[claimed].mean()
    if right.ndim == 2 and right.shape[0] == right.shape[1]:
        yield "the right value and its transpose added (symmetrised)", right + right.T
        yield "the right value less its transpose", right - right.T


def _ratio(
    analysis: Analysis, asked: Asked, mistake: str, shown: Array, unit: float
) -> tuple[float, float, float]:
    """Return error/bound, error and bound, the bound being measured."""
    right = analysis(asked, mistake)
    claimed = np.isfinite(right)
    largest = 0.0
    for run in range(RUNS):
        rng = np.random.default_rng(run)
        moved = analysis(
            Asked(asked.model, asked.tokens, asked.layer, asked.head, rng, unit), mistake
        )
        largest = max(largest, float(np.abs(moved - right)[claimed].max(initial=0.0)))
    bound = GRANTED * largest + 8 * unit * np.abs(right)
    error = np.abs(shown - right)[claimed].max(initial=0.0)
    return (
        worst_ratio(shown[claimed], right[claimed], bound[claimed]),
        float(error),
        float(bound[claimed].max(initial=0.0)),
    )


def _finding(
    name: str, diagnosis: str, note: str, figures: tuple[float, float, float] | None = None
) -> Finding:
    ratio, error, bound = figures or (float("inf"), float("inf"), 0.0)
    return Finding(name, None, None, error, bound, ratio, diagnosis, estimated=True, note=note)


def _report(name: str, dtype: str, finding: Finding) -> Report:
    return Report(name, dtype, 0, {name: finding.ratio}, (finding,))
