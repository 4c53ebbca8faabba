"""The report of an audit: the compared activations, the findings, and other conventions."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from otimes.numeric.audit.capture.collect import Capture
from otimes.numeric.audit.diagnose import Diagnosis
from otimes.numeric.audit.findings import Finding, Gauge
from otimes.numeric.audit.reference.evaluator import layer_of
from otimes.numeric.audit.report_html import page
from otimes.numeric.block import place_names

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of an audit.

    `ratios` gives error/bound by hook point in the order of the pass, `heads` the same by head;
    `findings` are the wrong activations in that order; `gauges` the other conventions of the
    implementation; `notes` remarks, as on precision and on what was not compared.
    """

    name: str
    dtype: str
    n_tokens: int
    ratios: dict[str, float]
    findings: tuple[Finding, ...]
    gauges: tuple[Gauge, ...] = ()
    notes: tuple[str, ...] = ()
    heads: dict[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def __bool__(self) -> bool:
        """Return `passed`, so that `assert audit(…)` fails where the audit does."""
        return self.passed

    @property
    def first_failure(self) -> Finding | None:
        """The first finding in the order of the pass."""
        return self.findings[0] if self.findings else None

    def looked(self) -> str:
        """Return a text that says what was compared."""
        if not self.ratios:
            return "nothing could be compared"
        n = len(self.ratios)
        places = "1 activation" if n == 1 else f"{n} activations"
        on = f" on {self.n_tokens} tokens" if self.n_tokens else ""
        return f"{places}{on} in {self.dtype}"

    def _outcome(self) -> tuple[str, str]:
        """Return the verdict in words, and what it rests on."""
        if not self.passed:
            return f"{self.name} does not compute the reference", self.looked()
        worst = max(self.ratios.values(), default=0.0)
        seen = f"{self.looked()}, error/bound at most {worst:.2g}"
        return f"{self.name} computes the reference", seen

    def __str__(self) -> str:
        """Return the report as text."""
        lines = [": ".join(self._outcome())]
        lines += [f"  first    {self.findings[0]}"] if self.findings else []
        lines += [f"  also     {finding}" for finding in self.findings[1:8]]
        if len(self.findings) > 8:
            lines.append(f"  and {len(self.findings) - 8} more")
        lines += [f"  gauge    {gauge}" for gauge in self.gauges]
        lines += [f"  note     {note}" for note in self.notes]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        first = self.first_failure
        return {
            "schema": SCHEMA,
            "name": self.name,
            "passed": self.passed,
            "dtype": self.dtype,
            "tokens": self.n_tokens,
            "first_failure": None if first is None else first.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
            "gauges": [{"place": each.place, "says": each.says} for each in self.gauges],
            "notes": list(self.notes),
            "places": [{"place": place, "ratio": ratio} for place, ratio in self.ratios.items()],
        }

    def _repr_html_(self) -> str:
        """Return the verdict, then a table of the findings, the gauges and the remarks."""
        verdict, looked = self._outcome()
        rows = [("first" if k == 0 else "also", str(each)) for k, each in enumerate(self.findings)]
        rows += [("gauge", str(gauge)) for gauge in self.gauges]
        rows += [("note", note) for note in self.notes]
        left = '<td style="text-align:left">'
        lines = "".join(
            f'<tr><th style="text-align:left">{kind}</th>{left}{escape(each)}</td></tr>'
            for kind, each in rows
        )
        table = f"<table>{lines}</table>" if rows else ""
        return f"<div><b>{escape(verdict)}</b>: {escape(looked)}</div>{table}"

    def html(self) -> str:
        """Return the report as an HTML page with a map of the hook points."""
        verdict = "computes the reference" if self.passed else "does not compute the reference"
        lines = [*self.gauges, *self.notes]
        return page(f"{self.name} {verdict}", self.looked(), self.findings, lines, self.ratios)


def report(capture: Capture, diagnosis: Diagnosis | None, name: str, *notes: str) -> Report:
    """Return the report on a capture; `diagnosis` is None if nothing could be compared."""
    unfit = [
        Finding(place, layer_of(place), None, math.inf, 0.0, math.inf, "", note=why)
        for place, why in capture.unfit.items()
    ]
    if diagnosis is None:
        return Report(name, "", capture.n_tokens, {}, tuple(unfit), notes=capture.notes)
    order = place_names(diagnosis.compared.model.config)
    findings = sorted([*unfit, *diagnosis.findings], key=lambda each: order.index(each.place))
    return Report(
        name,
        capture.dtype,
        capture.n_tokens,
        diagnosis.ratios,
        tuple(findings),
        diagnosis.compared.gauges,
        (*capture.notes, *_tolerated(diagnosis), *diagnosis.notes, *notes),
        diagnosis.heads,
    )


def _tolerated(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield a note for each step of lower precision, with its first hook point and their number."""
    places: dict[str, list[str]] = {}
    for place, says in diagnosis.tolerated:
        places.setdefault(says, []).append(place)
    for says, every in places.items():
        more = f" and {len(every) - 1} more" if len(every) > 1 else ""
        yield f"precision: {says} ({every[0]}{more})"
