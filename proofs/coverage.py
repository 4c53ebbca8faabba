"""What of the inventory is covered: each item with its entries of the catalogue, and their state.

The inventory lists the formulas, claims, scores and methods of the literature that the catalogue is
to hold, by the kind of thing each is; ids with a B are facts beyond it. An item counts only by
checks that were made: nothing here is declared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from proofs.evidence import Report, TheoremReport

SCHEMA = 1

# What it takes, of the entries that cover an item, for the item to be in a final state. Everything
# may be proved; what is only seen, or cannot be tried, is enough for few kinds of items.
PROVED = ("proved", "defined", "fails")
ENOUGH: dict[str, tuple[str, ...]] = {
    "identity": PROVED,
    "inequality/rank": PROVED,
    "definition": PROVED,
    "score": PROVED,
    "approximation": (*PROVED, "measured"),
    "algorithm/method": (*PROVED, "checked"),
    "fact": (*PROVED, "measured", "checked", "seen", "not seen"),
    "empirical claim": (*PROVED, "measured", "seen", "not seen", "cannot be tried here"),
    "tool": (*PROVED, "checked", "seen", "not seen", "cannot be tried here"),
}
MISSING, FAILED, TOO_LITTLE = "missing", "failed", "too little"
NOT_FINAL = (MISSING, FAILED, TOO_LITTLE)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that the catalogue is to hold. `kind` is one of `ENOUGH`."""

    id: str
    chapter: int
    kind: str
    title: str

    @property
    def beyond(self) -> bool:
        """Whether it is a fact beyond the notes that the inventory was taken from."""
        return self.id.startswith("B")


@dataclass(frozen=True, slots=True)
class Covered:
    """An item, the entries that cover it, and its state: that of the best of them, or a lack."""

    item: Item
    theorems: tuple[str, ...]
    state: str

    @property
    def final(self) -> bool:
        """Whether nothing is left to do for it."""
        return self.state not in NOT_FINAL

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; `theorem` is the entry that comes first."""
        return {
            **asdict(self.item),
            "theorem": self.theorems[0] if self.theorems else None,
            "theorems": list(self.theorems),
            "state": self.state,
        }


@lru_cache(maxsize=1)
def inventory() -> tuple[Item, ...]:
    """Return all items, in the order of their chapters."""
    text = files("proofs").joinpath("inventory.json").read_text(encoding="utf-8")
    return tuple(Item(**each) for each in json.loads(text))


def coverage(report: Report, items: Sequence[Item] | None = None) -> tuple[Covered, ...]:
    """Return how each item stands by the checks that were made, in the order of the inventory."""
    entries: dict[str, list[TheoremReport]] = {}
    for each in report.theorems:
        for covered in each.theorem.covers:
            entries.setdefault(covered, []).append(each)
    return tuple(
        Covered(item, tuple(e.theorem.name for e in found), _state(item, found))
        for item in (inventory() if items is None else items)
        for found in [entries.get(item.id, [])]
    )


def _state(item: Item, entries: Sequence[TheoremReport]) -> str:
    if not entries:
        return MISSING
    states = [entry.state for entry in entries]
    if FAILED in states:
        return FAILED
    enough = ENOUGH[item.kind]
    found = [state for state in enough if state in states]
    return found[0] if found else TOO_LITTLE


def summary(found: Sequence[Covered]) -> str:
    """Return the whole in a line: how many items are in a final state, of the notes and beyond."""
    parts = []
    for beyond, name in ((False, "items of chapters 1–8"), (True, "facts beyond them")):
        of_kind = [each for each in found if each.item.beyond is beyond]
        if of_kind:
            done = sum(each.final for each in of_kind)
            parts.append(f"{done} of {len(of_kind)} {name}")
    return ", ".join(parts)


def to_json(found: Sequence[Covered]) -> dict[str, Any]:
    """Return `{"schema", "items": [...]}`, plain data."""
    return {"schema": SCHEMA, "items": [each.to_json() for each in found]}
