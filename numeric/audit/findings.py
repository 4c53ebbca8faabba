"""What an audit reports: where it looked, what is wrong, and what is only said differently."""

import math
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that is not what it should be.

    `error` is the largest difference and `bound` what correct code may differ by at that entry;
    `ratio` is the largest error/bound. `kind` is "fault", or "precision" where the place is right
    to a coarser type than the one it has. `diagnosis` says which known mistakes give just what was
    shown, and is empty if none does.
    """

    place: str
    layer: int | None
    head: int | None
    error: float
    bound: float
    ratio: float
    diagnosis: str
    kind: str = "fault"
    estimated: bool = False
    entry: tuple[int, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        """Return the finding as one sentence."""
        where = self.place if self.head is None else f"{self.place}, head {self.head},"
        if self.note:
            return f"{where} {self.note}"
        if self.error == math.inf and self.diagnosis:
            at = f", first at {list(self.entry)}" if self.entry else ""
            return f"{where} {self.diagnosis}{at}"
        scale = "threshold (an estimate)" if self.estimated else "bound"
        factor = f"{self.ratio:.3g}" if self.ratio < 1e6 else "over a million"
        times = f"{factor} times its {scale} {self.bound:.3g}"
        differs = f"{where} differs by {self.error:.3g}, {times}"
        return f"{differs}: it {self.diagnosis}" if self.diagnosis else differs

    def to_json(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return {
            "place": self.place,
            "layer": self.layer,
            "head": self.head,
            "kind": self.kind,
            "error": self.error,
            "bound": self.bound,
            "ratio": self.ratio,
            "estimated": self.estimated,
            "entry": list(self.entry),
            "diagnosis": self.diagnosis,
            "sentence": str(self),
        }


@dataclass(frozen=True, slots=True)
class Gauge:
    """Another way of saying the same: a named transformation that leaves the function as it is."""

    place: str
    says: str

    def __str__(self) -> str:
        """Return it as one sentence."""
        return f"{self.place}: {self.says}"


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of an audit.

    `ratios` gives error/bound for each place that was compared, in order; `findings` what is wrong,
    the first place first; `gauges` in which other coordinates the implementation computes; `notes`
    what a reader should know: which places were looked at, the prompt's length, precision floors.
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
        """Whether nothing was found."""
        return not self.findings

    @property
    def first_failure(self) -> Finding | None:
        """The first place, in the order of the pass, that is wrong."""
        return self.findings[0] if self.findings else None

    def looked(self) -> str:
        """Return in words what was compared."""
        if not self.ratios:
            return "nothing could be compared"
        places = "1 place" if len(self.ratios) == 1 else f"{len(self.ratios)} places"
        on = f" on {self.n_tokens} tokens" if self.n_tokens else ""
        return f"{places}{on} in {self.dtype}"

    def __str__(self) -> str:
        """Return the report for people."""
        looked = self.looked()
        if self.passed:
            worst = max(self.ratios.values(), default=0.0)
            lines = [
                f"{self.name} computes the reference: {looked}, error/bound at most {worst:.2g}"
            ]
        else:
            lines = [f"{self.name} does not compute the reference: {looked}"]
        lines += [f"  first    {self.findings[0]}"] if self.findings else []
        lines += [f"  also     {finding}" for finding in self.findings[1:8]]
        if len(self.findings) > 8:
            lines.append(f"  and {len(self.findings) - 8} more places")
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

    def html(self) -> str:
        """Return the report as an HTML page with a map of the places."""
        from numeric.audit.html import page

        return page(self)
