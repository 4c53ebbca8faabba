"""Attacks at random: no verdict is wrong, and nothing is raised but an OtimesError.

Most claims are judged while nothing tries numbers: what is proved is then proved by proof alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from otimes.algebra.errors import OtimesError
from otimes.algebra.verdict import decide
from tests.algebra.decide.adversarial import Attack
from tests.algebra.decide.adversarial_plain import Plain
from tests.algebra.decide.attack import BUDGET, Claim, false_at, fault, proof_alone

LONG = os.environ.get("OTIMES_LONG") == "1"
PARTS = 10
EACH = 5_000 if LONG else 15  # claims of each kind in a part: 100,000 in all, or 300
WITH_TRIALS = 500 if LONG else 3
ATTACKS: dict[str, Callable[[int], Any]] = {"names": Attack, "plain": Plain}
both = pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)


def seeds(part: int, many: int) -> range:
    return range(part * many, (part + 1) * many)


def told(claim: Claim, seed: int, why: str) -> str:
    return f"seed {seed}: {why}\n{claim}"


@both
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_proved_by_proof_alone_is_true(attack: Callable[[int], Any], part: int) -> None:
    wrong = []
    with proof_alone():
        for seed in seeds(part, EACH):
            claim = attack(seed).claim()
            why = fault(claim, seed)
            if why:
                wrong.append(told(claim, seed, why))
    assert not wrong, "\n".join(wrong)


@both
@pytest.mark.parametrize("part", range(PARTS))
def test_no_verdict_is_wrong(attack: Callable[[int], Any], part: int) -> None:
    """The same with numbers tried: a counterexample is one, of the kind that is asked for."""
    wrong = []
    for seed in seeds(part, WITH_TRIALS):
        claim = attack(10**6 + seed).claim()
        why = fault(claim, seed)
        if why:
            wrong.append(told(claim, seed, why))
    assert not wrong, "\n".join(wrong)


@both
def test_the_attacks_reach_the_judge(attack: Callable[[int], Any]) -> None:
    """Enough claims are true and proved, and enough are false: neither half is an empty test."""
    proved = false = 0
    with proof_alone():
        for seed in range(40):
            claim = attack(2 * 10**6 + seed).claim()
            try:
                status = decide(claim.lhs, claim.rhs, claim.given, budget=BUDGET).status
            except OtimesError:
                continue
            proved += status == "proved"
            false += status != "proved" and false < 5 and false_at(claim, seed) is not None
            if proved >= 5 <= false:
                break
    assert proved >= 5
    assert false >= 5
