"""The inventory, and what of it is covered: only by checks that passed, and of the right kind."""

from collections import Counter
from dataclasses import replace

from otimes.proofs.catalogue import catalogue
from otimes.proofs.coverage import (
    ENOUGH,
    FAILED,
    MISSING,
    TOO_LITTLE,
    Item,
    coverage,
    inventory,
    summary,
    to_json,
)
from otimes.proofs.evidence import ProofEvidence, ProofStatus, Report, TheoremReport
from otimes.proofs.theorem import Theorem

ITEM = Item("S9-99", 3, "identity", "Mine")


def of(status: ProofStatus, name: str = "mine") -> TheoremReport:
    entry = Theorem(name, "Mine", 3, "row", "here", ("S9-99",), "prose", lambda: None)  # type: ignore[arg-type, return-value]
    return TheoremReport(entry, ProofEvidence(status, ""), None, (), None, 0.0, needs_models=False)


def state(*reports: TheoremReport, item: Item = ITEM) -> str:
    (found,) = coverage(Report(reports), [item])
    return found.state


def test_the_inventory_has_every_item_once() -> None:
    items = inventory()
    assert len({item.id for item in items}) == len(items)
    assert Counter(item.beyond for item in items) == {False: 320, True: 45}
    assert {item.kind for item in items} == {*ENOUGH}
    assert all(1 <= item.chapter <= 11 and item.title for item in items)


def test_what_entries_cover_is_in_the_inventory() -> None:
    known = {item.id for item in inventory()}
    unknown = {t.name: {*t.covers} - known for t in catalogue() if not {*t.covers} <= known}
    assert not unknown


def test_every_item_is_stated_by_an_entry() -> None:
    """That the checks of these entries pass is what `make verify` says."""
    stated = {item for theorem in catalogue() for item in theorem.covers}
    assert {item.id for item in inventory()} - stated == set()


def test_an_item_is_covered_by_the_checks_that_were_made() -> None:
    assert state(of("proved")) == "proved"
    assert state(of("measured"), of("proved", "other")) == "proved, measured"
    assert state(of("cannot be tried here"), of("proved", "x")) == "proved, cannot be tried here"
    assert state() == MISSING
    assert state(of("undecided")) == FAILED
    assert state(of("proved"), of("error", "other")) == FAILED
    failing = replace(of("proved"), needs_models=True)
    assert state(failing) == FAILED


def test_what_is_only_seen_does_not_cover_an_identity() -> None:
    assert state(of("seen")) == TOO_LITTLE
    assert state(of("measured")) == TOO_LITTLE
    claim = replace(ITEM, kind="empirical claim")
    assert state(of("seen"), item=claim) == "seen"
    assert state(of("cannot be tried here"), item=claim) == "cannot be tried here"
    law = replace(ITEM, kind="approximation")
    assert state(of("measured"), item=law) == "measured"
    assert state(of("cannot be tried here"), item=law) == TOO_LITTLE


def test_the_summary_counts_what_is_final() -> None:
    beyond = replace(ITEM, id="B99", kind="fact")
    found = coverage(Report((of("proved"),)), [ITEM, beyond])
    assert summary(found) == "1 of 1 items of chapters 1–11, 0 of 1 facts beyond them"
    first, second = to_json(found)["items"]
    assert first == {
        "id": "S9-99",
        "chapter": 3,
        "kind": "identity",
        "title": "Mine",
        "theorem": "mine",
        "theorems": ["mine"],
        "state": "proved",
        "states": ["proved"],
    }
    assert second["theorem"] is None
