"""Random certificates: what the checker accepts is true, by an evaluator that is not its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from otimes.proofs import replay
from tests.proofs import random_attacks as attacks
from tests.proofs.random_attacks import ATTACKS, Attack

SOURCE = Path(replay.__file__).read_text(encoding="utf-8")
LONG = os.environ.get("OTIMES_LONG") == "1"
# The changes below are noticed by the seeds 239 (by cancelling), 4, 23, 7 and 4.
MANY, FEW = (60_000, 60_000) if LONG else (300, 80)


def accepts(checker: Any, attack: Attack) -> bool:
    """Return whether a checker accepts a certificate, of a claim that is not true at sight."""
    if attack.made["lhs"] == attack.made["rhs"]:
        return False
    try:
        checker.check(attack.made)
    except checker.Rejected:
        return False
    return True


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_what_is_accepted_is_true(attack: Callable[[int], Attack]) -> None:
    many = MANY if attack is attacks.by_cancelling else FEW
    drawn = ((seed, attack(seed)) for seed in range(many))
    found = [(seed, one.refuted()) for seed, one in drawn if accepts(replay, one)]
    assert [(seed, where) for seed, where in found if where] == []
    assert len(found) > many / 100


# What the checker must not lose, and a random certificate that shows it.
CHANGES = [
    (
        'boxes += [(self.label(("inner", self.sizes[w])), (new[w],)) for w in t.inner]',
        "pass",
        attacks.by_cancelling(239),
    ),
    ("lambda i, j: x.at(j, i))", "x.at)", attacks.by_hypotheses(4)),
    ("given=(*given, claim, *", "given=(*given, part, *", attacks.by_induction(23)),
    (
        "proved(reader.context, Equation((*free, *frees), *sides), (*free, *frees), proof)",
        "pass",
        attacks.by_axioms(9),
    ),
    ('proved(context, same, free, proof["equal"])', "0", attacks.by_rewriting(4)),
]


@pytest.mark.parametrize(("old", "new", "attack"), CHANGES)
def test_a_changed_checker_accepts_what_is_false(old: str, new: str, attack: Attack) -> None:
    assert SOURCE.count(old) == 1
    mutant = ModuleType("replay_with_a_change")
    mutant.__file__ = replay.__file__
    exec(compile(SOURCE.replace(old, new), mutant.__name__, "exec"), mutant.__dict__)
    assert not accepts(replay, attack)
    assert accepts(mutant, attack)
    assert attack.refuted()
