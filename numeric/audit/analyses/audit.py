"""Audits of quantities computed *from* a model: circuits, scores, attributions, lenses.

Each analysis is a formula (`question`), and a wrong analysis is a mutant of it. The tolerance is
measured as for a forward pass: 16 times the deviation of four runs whose weights and activations
are perturbed by one unit of rounding of the value's type. The diagnosis is a known mistake, another
mutant of the formula or two mistakes at once that reproduce the value within their own tolerance,
or else a mutant of the right value: a factor, other axes, another head.

    ov_circuit, qk_circuit      [d_model, d_model] of one head
    copying_score               of one head, or of all [layer, head]
    q_, k_, v_composition       [writer layer, head, reader layer, head]; only earlier writers count
    folded_weights              a mapping: weights after folding the gains and biases of the norms
    direct_logit_attribution    [layer, head, pos, d_vocab]
    logit_lens                  [n_layers + 1, pos, d_vocab]
    path_term                   [pos, d_vocab] through two heads, layer and head being pairs;
                                norms have the scales of the pass
    svd                         (U, S, Vᵀ) of a head's OV circuit

Conventions: rows, so that W_OV = W_V W_O. Source: Elhage et al. 2021; nostalgebraist 2020.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.algebra.language.shapes import shape_of
from otimes.algebra.mutations import Swap, mutants
from otimes.numeric.audit.analyses.attributions import (
    attribution_mistakes,
    direct_logit_attribution,
)
from otimes.numeric.audit.analyses.circuits import (
    OV,
    QK,
    circuit,
    circuit_mistakes,
    ov_circuit,
    qk_circuit,
)
from otimes.numeric.audit.analyses.compositions import composition, composition_mistakes
from otimes.numeric.audit.analyses.copying import copying_mistakes, copying_score
from otimes.numeric.audit.analyses.folding import folded_weights
from otimes.numeric.audit.analyses.logit_lens import lens_mistakes, logit_lens
from otimes.numeric.audit.analyses.path_terms import path_mistakes, path_term, term
from otimes.numeric.audit.analyses.question import (
    NO_FIGURES,
    RIGHT,
    Array,
    Asked,
    Figures,
    Formula,
    Mistakes,
    Replaced,
)
from otimes.numeric.audit.analyses.svd import svd_misfit
from otimes.numeric.audit.analyses.transforms import RIGHT_VALUE, altered
from otimes.numeric.audit.analyses.values import shown_complex, without_numbers
from otimes.numeric.audit.capture.collect import token_rows
from otimes.numeric.audit.findings import Finding, Gauge
from otimes.numeric.audit.reference.error_estimates import GRANTED, RUNS
from otimes.numeric.audit.report import Report
from otimes.numeric.config import SETTINGS, check_settings, listed
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import as_tokens
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF, stored_as, worst_ratio

SAYS: dict[str, tuple[Formula, Mistakes]] = {
    "ov_circuit": (ov_circuit, partial(circuit_mistakes, OV)),
    "qk_circuit": (qk_circuit, partial(circuit_mistakes, QK)),
    "copying_score": (copying_score, copying_mistakes),
    **{
        f"{kind}_composition": (partial(composition, kind), partial(composition_mistakes, kind))
        for kind in "qkv"
    },
    "direct_logit_attribution": (direct_logit_attribution, attribution_mistakes),
    "logit_lens": (logit_lens, lens_mistakes),
    "path_term": (path_term, path_mistakes),
}
STATED: dict[str, Callable[[Asked], Any]] = {
    "ov_circuit": lambda asked: circuit(OV, *asked.one_head()),
    "qk_circuit": lambda asked: circuit(QK, *asked.one_head()),
    "path_term": term,
}
"""The formulas that are expressions in the language."""

ENOUGH = 16
"""Two mistakes at once, or a mistake and a change of its value, cannot fit this many numbers by
chance."""

PAIRS = 2**27
"""The most entries that are computed to rule out two mistakes at once."""

CHANGES = 64
"""About how many mutants a value has."""

A_SCORE = 16
"""The number of entries of other analyses that cost about as much as one score of two heads."""

OTHERS = ("folded_weights", "svd")


OF_SCORES = ("qk_circuit", "q_composition", "k_composition")
"""The analyses of the weights of queries and keys."""


def audit_analysis(
    name: str,
    value: Any,
    model: ModelSource,
    tokens: Any = None,
    layer: Any = None,
    head: Any = None,
) -> Report:
    """Return the report on a quantity computed from a model; names and shapes as listed above.

    >>> from otimes.numeric.random_weights import random_model
    >>> m = random_model()
    >>> audit_analysis("ov_circuit", m.W_V[0, 1] @ m.W_O[0, 1], m, layer=0, head=1).passed
    True
    >>> wrong = audit_analysis("ov_circuit", (m.W_V[0, 1] @ m.W_O[0, 1]).T, m, layer=0, head=1)
    >>> wrong.first_failure.diagnosis
    'matches W_O W_V for W_V W_O: the circuit transposed, as columns have it'

    Raises: OtimesError for an analysis that is not known, or a question that is not complete.
    """
    model = load_model(model)
    if name not in SAYS and name not in OTHERS:
        raise OtimesError(f"there is no analysis {name!r}; known are {listed([*SAYS, *OTHERS])}")
    changed = {"kv_rank", *(["qk_norm"] if name in OF_SCORES else [])}  # what its formula lacks
    check_settings(model.config, f"the audit of {name!r}", {*SETTINGS} - changed)
    asked = Asked(model, _prompt(tokens, model), layer, head)
    if name == "folded_weights":
        return folded_weights(value, model)
    if name == "svd":
        return _report("svd", *svd_misfit(value, asked))
    array, dtype = shown_complex(value, "a value")
    return _compared(name, asked, array, dtype)


def _prompt(tokens: Any, model: Model) -> Array | None:
    """Return the tokens of the prompt, or None if there is no prompt."""
    if tokens is None:
        return None
    rows = token_rows(as_tokens(model, tokens), model)
    if len(rows) > 1:
        raise OtimesError(
            f"an analysis is one of a prompt, got a batch of {len(rows)}: audit them one by one"
        )
    return np.asarray(rows[0])


def _compared(name: str, asked: Asked, array: Array, dtype: str) -> Report:
    """Compare an array with the value of a formula, and diagnose the difference."""
    formula, mistakes = SAYS[name]
    notes: tuple[str, ...] = ()
    if dtype == "float64" and _fits(array, "float32"):
        dtype, notes = "float32", ("precision: all are numbers of float32, recorded in float64",)
    unit = UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float64"])
    expected, gauges, figures = formula(asked, RIGHT), [], NO_FIGURES
    if array.ndim > expected.ndim and _sizes(array) == _sizes(expected):
        says = f"axes of length one more: {array.shape} for {expected.shape}"
        gauges.append(Gauge(name, says))
        array = array.reshape(expected.shape)
    if array.shape != expected.shape:
        note = f"has the shape {array.shape}, and {expected.shape} is expected"
    else:
        note = without_numbers(array, np.isfinite(expected))
        figures = _ratio(formula, asked, RIGHT, array, unit)
        for says, other in () if figures[0] <= 1 else _gauges(name, formula, asked, array, unit):
            if other[0] <= 1:
                figures = other
                gauges.append(Gauge(name, says))
                break
    if figures[0] <= 1:
        return _report(name, dtype, "", "", figures, gauges, notes=notes)
    if array.dtype.kind == "c":  # judged as they are: sums of eigenvalues are real but for rounding
        note = note or "is complex, and real numbers are expected: take the real part, .real"
        array = array.real
    known = list(mistakes(asked, array.shape))
    fitting = _fitting(formula, asked, known, array, unit)
    fitting = fitting or _fitting(formula, asked, _mutants(name, asked), array, unit)
    slack = 0.0 if fitting else 4 * _relative(formula, asked, expected, unit)
    if not fitting:
        others = (*_of_another(formula, asked), *altered(asked.model, expected, array))
        fitting = [says for says, value in others if _same(value, array, slack)][:2]
    kind, coarser = "fault", _coarser(array, figures[0], unit)
    if not fitting and coarser:
        fitting, kind = [f"the right value to {coarser} only: it was rounded to it"], "precision"
    if not fitting and array.size >= ENOUGH:
        pairs = _pairs(formula, asked, known)
        fitting = _fitting(formula, asked, pairs, array, unit)
        entries = array.size * (A_SCORE if name.endswith("_composition") else 1)
        if not fitting and entries * len(known) * CHANGES <= PAIRS:
            fitting = list(_altered_mistakes(formula, asked, known, array, slack))
    diagnosis = f"matches {'; or '.join(fitting[:4])}" if fitting else ""
    return _report(name, dtype, diagnosis, note, figures, kind=kind, notes=notes)


def _sizes(array: Array) -> list[int]:
    return [size for size in array.shape if size != 1]


def _fitting(
    formula: Formula, asked: Asked, known: Iterable[Swap], array: Array, unit: float
) -> list[str]:
    """Return the names of the mistakes that reproduce the array within their own tolerance."""
    return [
        says
        for says, replaced in known
        if _nearly(formula, asked, replaced, array, unit)
        and _ratio(formula, asked, replaced, array, unit)[0] <= 1
    ]


def _mutants(name: str, asked: Asked) -> Iterator[Swap]:
    """Yield the mutants of a formula that is an expression in the language."""
    if name in STATED:
        right = STATED[name](asked)
        for mutant in mutants(right):
            with suppress(ShapeError):
                shape_of(mutant.expression)
                yield Swap(f"a mistake in the formula ({mutant})", {right: mutant.expression})


def _pairs(formula: Formula, asked: Asked, known: list[Swap]) -> Iterator[Swap]:
    """Yield two mistakes at a time, if there are not too many."""
    size = formula(replace(asked, screening=True), RIGHT).size
    if size * len(known) ** 2 <= 2 * PAIRS:
        for one, two in combinations(known, 2):
            if both := one.together(two):
                yield both


def _altered_mistakes(
    formula: Formula, asked: Asked, known: Iterable[Swap], array: Array, slack: float
) -> Iterator[str]:
    """Yield the mistakes whose value, after one further change, equals the array."""
    for says, replaced in known:
        value = formula(asked, replaced)
        for change, made in altered(asked.model, value, array):
            if _same(made, array, slack):
                yield f"{says}; and then {change.replace(RIGHT_VALUE, 'that')}"


def _coarser(array: Array, ratio: float, unit: float) -> str:
    """Return the dtype of highest precision below the array's own to which the value is right.

    The tolerance is proportional to the unit roundoff, so the known ratio decides.
    """
    for name, coarser in sorted(UNIT_ROUNDOFF.items(), key=lambda each: each[1]):
        if coarser > unit and ratio * unit <= coarser and (name == "float32" or _fits(array, name)):
            return name
    return ""


def _fits(array: Array, name: str) -> bool:
    """Return whether all entries are numbers of a type of lower precision."""
    if array.dtype.kind == "c":
        return _fits(array.real, name) and _fits(array.imag, name)
    return bool((stored_as(array, name) == array).all())


def _gauges(
    name: str, formula: Formula, asked: Asked, array: Array, unit: float
) -> Iterator[tuple[str, Figures]]:
    """Yield equivalent forms of the value, each with ratio, error and bound."""
    if name in ("logit_lens", "direct_logit_attribution"):
        right = formula(asked, RIGHT)
        shift = (array - right).mean(axis=-1, keepdims=True)
        says = "all logits of a position are moved by the same number, which changes no probability"
        yield says, _ratio(formula, asked, RIGHT, array - shift, unit)


def _nearly(formula: Formula, asked: Asked, replaced: Replaced, array: Array, unit: float) -> bool:
    """Return whether a mistake roughly reproduces the array; a quick test before the bound."""
    value = formula(replace(asked, screening=True), replaced)
    if not value.ndim or value.ndim != array.ndim:
        return _same(value, array, 1e6 * unit)
    return _same(value, array[..., : value.shape[-1]], 1e6 * unit)


def _same(value: Array, array: Array, slack: float) -> bool:
    if value.shape != array.shape:
        return False
    claimed = np.isfinite(value)
    if not claimed.any():
        return False
    largest = np.abs(value[claimed]).max()
    return bool((np.abs(array - value)[claimed] <= slack * largest).all())


def _of_another(formula: Formula, asked: Asked) -> Iterator[tuple[str, Array]]:
    """Yield the value of every other head."""
    try:
        own = asked.one_head()
    except OtimesError:
        return
    for layer, head in asked.other_heads():
        swapped = " (layer and head swapped)" if (layer, head) == own[::-1] else ""
        where = "" if layer == own[0] else ", of another layer"
        value = formula(asked.of(layer, head), RIGHT)
        yield f"another head, {layer}.{head}{where}{swapped}", value


def _relative(formula: Formula, asked: Asked, right: Array, unit: float) -> float:
    """Return the tolerance, relative to the largest entry."""
    bound = GRANTED * _deviation(formula, asked, RIGHT, right, unit)
    largest = np.abs(right[np.isfinite(right)]).max(initial=0.0)
    return float(bound / max(largest, 1e-300) + 8 * unit)


def _deviation(
    formula: Formula, asked: Asked, replaced: Replaced, right: Array, unit: float
) -> float:
    """Return the maximum deviation over runs whose arrays are perturbed by rounding."""
    claimed, largest = np.isfinite(right), 0.0
    for run in range(RUNS):
        rng = np.random.default_rng(run)
        moved = formula(replace(asked, rng=rng, unit=unit), replaced)
        largest = max(largest, float(np.abs(moved - right)[claimed].max(initial=0.0)))
    return largest


def _ratio(
    formula: Formula, asked: Asked, replaced: Replaced, array: Array, unit: float
) -> Figures:
    """Return error/bound, error and bound, the bound being measured."""
    right = formula(asked, replaced)
    if right.shape != array.shape:
        return float("inf"), float("inf"), 0.0
    claimed = np.isfinite(right)
    bound = GRANTED * _deviation(formula, asked, replaced, right, unit) + 8 * unit * np.abs(right)
    error = np.abs(array - right)[claimed].max(initial=0.0)
    return (
        worst_ratio(array[claimed], right[claimed], bound[claimed]),
        float(error),
        float(bound[claimed].max(initial=0.0)),
    )


def _report(
    name: str,
    dtype: str,
    diagnosis: str,
    note: str,
    figures: Figures,
    gauges: Sequence[Gauge] = (),
    kind: str = "fault",
    notes: tuple[str, ...] = (),
) -> Report:
    """Return the report on one value, with a finding unless its ratio is at most one."""
    ratio, error, bound = figures
    if ratio <= 1:
        return Report(name, dtype, 0, {name: ratio}, (), tuple(gauges), notes)
    note = f"{note}: it {diagnosis}" if note and diagnosis else note
    found = Finding(name, None, None, error, bound, ratio, diagnosis, kind, True, (), note)
    return Report(name, dtype, 0, {name: ratio}, (found,), notes=notes)
