"""Coverage of the inventory: the entries of the catalogue for each item, and their state.

The inventory lists the formulas, claims, scores and methods of the literature that the catalogue
should contain, each with its kind; ids that begin with B are facts beyond it. The state of an item
is computed from the checks of its entries.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from otimes.proofs.evidence import Report, TheoremReport

SCHEMA = 1

# The states of an entry that are final, by the kind of item: a proof is for every kind; an
# observation, or the reason why there is none, only for some.
PROVED = ("proved", "defined", "fails")
SEEN = ("seen", "seen at random too", "not seen")
ENOUGH: dict[str, tuple[str, ...]] = {
    "identity": PROVED,
    "inequality/rank": PROVED,
    "definition": PROVED,
    "score": PROVED,
    "approximation": (*PROVED, "measured"),
    "algorithm/method": (*PROVED, "checked"),
    "fact": (*PROVED, "measured", "checked", *SEEN),
    "empirical claim": (*PROVED, "measured", *SEEN, "cannot be tried here"),
    "tool": (*PROVED, "checked", *SEEN, "cannot be tried here"),
}
MISSING, FAILED, TOO_LITTLE = "missing", "failed", "too little"
NOT_FINAL = (MISSING, FAILED, TOO_LITTLE)


@dataclass(frozen=True, slots=True)
class Item:
    """An item that the catalogue should contain; `kind` is a key of `ENOUGH`."""

    id: str
    chapter: int
    kind: str
    title: str

    @property
    def beyond(self) -> bool:
        """Whether it is a fact beyond the literature of the inventory."""
        return self.id.startswith("B")


@dataclass(frozen=True, slots=True)
class Covered:
    """An item, its entries, and their states: final ones by rank, or what is missing."""

    item: Item
    theorems: tuple[str, ...]
    states: tuple[str, ...]

    @property
    def state(self) -> str:
        """All states as text: `proved, cannot be tried here`."""
        return ", ".join(self.states)

    @property
    def final(self) -> bool:
        """Whether each of its claims is in a final state, and one in a state final for its kind."""
        return not {*NOT_FINAL} & {*self.states}

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data; `theorem` is its first entry."""
        return {
            **asdict(self.item),
            "theorem": self.theorems[0] if self.theorems else None,
            "theorems": list(self.theorems),
            "state": self.state,
            "states": list(self.states),
        }


@lru_cache(maxsize=1)
def inventory() -> tuple[Item, ...]:
    """Return all items in the order of chapters."""
    text = files("otimes.proofs").joinpath("inventory.json").read_text(encoding="utf-8")
    return tuple(Item(**each) for each in json.loads(text))


def coverage(report: Report, items: Sequence[Item] | None = None) -> tuple[Covered, ...]:
    """Return the state of each item according to a report, in the order of the inventory."""
    entries: dict[str, list[TheoremReport]] = {}
    for each in report.theorems:
        for covered in each.theorem.covers:
            entries.setdefault(covered, []).append(each)
    return tuple(
        Covered(item, tuple(e.theorem.name for e in found), _states(item, found))
        for item in (inventory() if items is None else items)
        for found in [entries.get(item.id, [])]
    )


def _states(item: Item, entries: Sequence[TheoremReport]) -> tuple[str, ...]:
    if not entries:
        return (MISSING,)
    states = {entry.state for entry in entries}
    if FAILED in states:
        return (FAILED,)
    if states.isdisjoint(ENOUGH[item.kind]):
        return (TOO_LITTLE,)
    order = ENOUGH["empirical claim"] + ENOUGH["tool"]
    return tuple(sorted(states, key=order.index))


def summary(found: Sequence[Covered]) -> str:
    """Return a one-line summary: the number of items in a final state, for each part."""
    parts = []
    for beyond, name in ((False, "items of chapters 1–11"), (True, "facts beyond them")):
        of_kind = [each for each in found if each.item.beyond is beyond]
        if of_kind:
            done = sum(each.final for each in of_kind)
            parts.append(f"{done} of {len(of_kind)} {name}")
    return ", ".join(parts)


def to_json(found: Sequence[Covered]) -> dict[str, Any]:
    """Return `{"schema", "items": [...]}`, plain data."""
    return {"schema": SCHEMA, "items": [each.to_json() for each in found]}
