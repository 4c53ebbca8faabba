"""The results of checks, as data, and the report on many entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from otimes.numeric.tables import to_pandas
from otimes.proofs.exact import ExactEvidence
from otimes.proofs.mutants import MutantEvidence
from otimes.proofs.on_models import ModelEvidence
from otimes.proofs.rebound import BindingEvidence
from otimes.proofs.theorem import Theorem

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA = 2

COLUMNS = (
    "theorem",
    "title",
    "passed",
    "proof",
    "examples",
    "recorded",
    "evaluated",
    "worst error/bound",
    "mutants refuted",
    "seconds",
)
"""The columns of `Report.rows`."""

ProofStatus = Literal[
    "proved",
    "defined",
    "fails",
    "measured",
    "checked",
    "seen",
    "seen at random too",
    "not seen",
    "cannot be tried here",
    "refuted",
    "undecided",
    "error",
]
FALLEN_SHORT = ("refuted", "undecided", "error")
"""The states that are not final; the others are, each for its kinds of claims."""


@dataclass(frozen=True, slots=True)
class ProofEvidence:
    """The verdict on the claim; `detail` is the reason, or the counterexample as text.

    `used` are the hypotheses that the proof used, lemmas by name.
    """

    status: ProofStatus
    detail: str
    used: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """A further check: its name, whether it passed, and its outcome as text."""

    name: str
    passed: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion of an observation: the value must be larger than `above`.

    `trained` is the value on the trained models, `random` that on each control, models of the same
    configurations with random weights.
    """

    name: str
    above: float
    trained: float
    random: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """The results of the checks of one claim; None for a check that its kind does not have.

    `needs_models`: it must apply to at least one model.
    """

    proof: ProofEvidence
    exact: ExactEvidence | None = None
    models: tuple[ModelEvidence, ...] = ()
    mutants: MutantEvidence | None = None
    more: tuple[Check, ...] = ()
    needs_models: bool = False
    criteria: tuple[Criterion, ...] = ()
    bindings: BindingEvidence | None = None


@dataclass(frozen=True, slots=True)
class TheoremReport:
    """The results of all checks of one entry."""

    theorem: Theorem
    proof: ProofEvidence
    exact: ExactEvidence | None
    models: tuple[ModelEvidence, ...]
    mutants: MutantEvidence | None
    seconds: float
    models_named: bool = False  # chosen models may all be out of scope
    more: tuple[Check, ...] = ()
    needs_models: bool = True
    kind: str = "identity"
    from_cache: bool = False
    criteria: tuple[Criterion, ...] = ()
    bindings: BindingEvidence | None = None

    @classmethod
    def from_json(cls, theorem: Theorem, data: Mapping[str, Any]) -> TheoremReport:
        """Return the report on a theorem that `to_json` gave."""
        exact, mutants, bindings = data["exact"], data["mutants"], data["bindings"]
        return cls(
            theorem,
            ProofEvidence(**_with_tuples(data["proof"])),
            exact and ExactEvidence(**exact),
            tuple(ModelEvidence(**each) for each in data["models"]),
            mutants and MutantEvidence(**_with_tuples(mutants)),
            data["seconds"],
            more=tuple(Check(**each) for each in data["more"]),
            needs_models=data["needs_models"],
            kind=data["kind"],
            from_cache=data["from_cache"],
            criteria=tuple(Criterion(**_with_tuples(each)) for each in data["criteria"]),
            bindings=bindings and BindingEvidence(**_with_tuples(bindings)),
        )

    @property
    def on_models(self) -> bool:
        """Whether the claim held on all models that it applies to, and on one if it must."""
        seen = any(m.applies for m in self.models) or self.models_named or not self.needs_models
        return seen and all(m.passed for m in self.models)

    @property
    def bindings_passed(self) -> bool:
        """Whether every wrong binding was noticed or explained; True if models were chosen."""
        return self.bindings is None or self.bindings.passed or self.models_named

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return (
            self.proof.status not in FALLEN_SHORT
            and (self.exact is None or self.exact.passed)
            and self.on_models
            and (self.mutants is None or self.mutants.passed)
            and self.bindings_passed
            and all(check.passed for check in self.more)
        )

    @property
    def state(self) -> str:
        """The status of its proof, or `failed`."""
        return self.proof.status if self.passed else "failed"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        theorem = self.theorem
        return {
            "name": theorem.name,
            "title": theorem.title,
            "kind": self.kind,
            "chapter": theorem.chapter,
            "convention": theorem.convention,
            "source": theorem.source,
            "covers": list(theorem.covers),
            "passed": self.passed,
            "state": self.state,
            "proof": asdict(self.proof),
            "exact": self.exact and asdict(self.exact),
            "models": [asdict(model) for model in self.models],
            "mutants": self.mutants and asdict(self.mutants),
            "more": [asdict(check) for check in self.more],
            "criteria": [asdict(each) for each in self.criteria],
            "bindings": self.bindings and asdict(self.bindings),
            "needs_models": self.needs_models,
            "seconds": round(self.seconds, 3),
            "from_cache": self.from_cache,
        }


@dataclass(frozen=True, slots=True)
class DefinitionEvidence:
    """The check on one model that recorded patterns are the softmax of the masked scores."""

    model: str
    passed: bool
    ratio: float
    where: str


@dataclass(frozen=True, slots=True)
class Report:
    """The reports of the entries that were verified, in reading order.

    `definitions` are checks of what theorems assume about the recorded forward pass: that patterns
    are the softmax of the scores.
    """

    theorems: tuple[TheoremReport, ...]
    definitions: tuple[DefinitionEvidence, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every theorem passed every check, and every definition held."""
        held = all(d.passed for d in self.definitions)
        return bool(self.theorems) and held and all(t.passed for t in self.theorems)

    def __bool__(self) -> bool:
        """Return `passed`, so that `assert verify(…)` fails where a theorem does."""
        return self.passed

    @property
    def from_cache(self) -> int:
        """How many of the reports an earlier command made."""
        return sum(each.from_cache for each in self.theorems)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each theorem: its name, its title, and the outcome of each check."""
        return [
            {
                "theorem": each.theorem.name,
                "title": each.theorem.title,
                "passed": each.passed,
                "proof": each.proof.status,
                "examples": each.exact.examples if each.exact else None,
                "recorded": sum(model.recorded for model in each.models),
                "evaluated": sum(m.applies and not m.recorded for m in each.models),
                "worst error/bound": max((m.ratio for m in each.models if m.applies), default=None),
                "mutants refuted": each.mutants.refuted if each.mutants else None,
                "seconds": round(each.seconds, 3),
            }
            for each in self.theorems
        ]

    def to_pandas(self) -> DataFrame:
        """Return `rows` as a pandas DataFrame. Raises: OtimesError if pandas is not installed."""
        return to_pandas(self.rows(), COLUMNS)

    def __str__(self) -> str:
        """Return a line for each theorem, and the summary."""
        lines = [f"{each.theorem.name}: {each.state}" for each in self.theorems]
        return "\n".join([*lines, self.summary()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
        lines = "".join(
            f"<tr>{''.join(f'<td>{_cell(row[column])}</td>' for column in COLUMNS)}</tr>"
            for row in self.rows()
        )
        return f"<p>{escape(self.summary())}</p><table><tr>{head}</tr>{lines}</table>"

    def summary(self) -> str:
        """Return a one-line summary: `12 theorems: 12 proved, 12 exact, …`."""
        theorems = self.theorems
        exact = sum(t.exact is not None and t.exact.passed for t in theorems)
        held = [t for t in theorems if t.on_models and any(m.applies for m in t.models)]
        recorded = sum(any(m.recorded for m in t.models) for t in held)
        seen = {m.model for t in theorems for m in t.models if m.applies}
        worst = max((m.ratio for t in theorems for m in t.models if m.applies), default=0.0)
        mutants = [t.mutants for t in theorems if t.mutants is not None]
        refuted = sum(m.refuted for m in mutants)
        still_true = sum(len(m.still_true) for m in mutants)
        escaped = sum(len(m.escaped) for m in mutants)
        parts = [f"{self.states()}", f"{exact} exact"]
        if seen:
            on = f"on {len(seen)} model{'' if len(seen) == 1 else 's'}"
            parts.append(
                f"{recorded} compared with recorded activations and "
                f"{len(held) - recorded} evaluated {on} (worst error/bound {worst:.2g})"
            )
        if mutants:
            parts += [f"{refuted} mutants refuted"]
            parts += [f"{still_true} still true"] if still_true else []
        parts += [f"{escaped} escaped"] if escaped else []
        number = f"{len(theorems)} theorem{'' if len(theorems) == 1 else 's'}"
        return f"{number}: {', '.join(parts)}"

    def states(self) -> str:
        """Return the number of entries in each state as text, `proved` first."""
        counts = {"proved": 0}
        for each in self.theorems:
            status = each.proof.status
            counts[status] = counts.get(status, 0) + 1
        return ", ".join(f"{count} {status}" for status, count in counts.items())

    def to_json(self) -> dict[str, Any]:
        """Return `{"schema", "theorems": [...], "definitions": [...]}` as JSON data."""
        return {
            "schema": SCHEMA,
            "theorems": [t.to_json() for t in self.theorems],
            "definitions": [asdict(d) for d in self.definitions],
        }


def _with_tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(each) if isinstance(each, list) else each for key, each in data.items()}


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "<b>no</b>"
    if isinstance(value, float):
        return f"{value:.2g}"
    return "" if value is None else escape(str(value))
