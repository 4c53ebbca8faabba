"""Attacks at random: no verdict is wrong, and nothing is raised but an OtimesError.

Most claims are judged while nothing tries numbers: what is proved is then proved by proof alone.
Each is judged once. What is proved of it must be true, and must have a certificate that the checker
accepts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import pytest

from tests.algebra.decide.adversarial import Attack
from tests.algebra.decide.adversarial_plain import Plain
from tests.algebra.decide.attack import Claim, judged, proof_alone, rejected

LONG = os.environ.get("OTIMES_LONG") == "1"
PARTS = 10
EACH = 5_000 if LONG else 6  # claims of each kind in a part: 100,000 in all, or 120
WITH_TRIALS = 500 if LONG else 3
ATTACKS: dict[str, Callable[[int], Any]] = {"names": Attack, "plain": Plain}
both = pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)


class Judged(NamedTuple):
    """What came of a claim: the status, None for a refusal, and what is wrong, if anything."""

    seed: int
    status: str | None
    fault: str | None
    rejected: str | None


def seeds(part: int, many: int) -> range:
    return range(part * many, (part + 1) * many)


def told(claim: Claim, seed: int, why: str) -> str:
    return f"seed {seed}: {why}\n{claim}"


@cache
def by_proof_alone(attack: Callable[[int], Any], part: int) -> tuple[Judged, ...]:
    return tuple(judged_alone(attack, seed) for seed in seeds(part, EACH))


def judged_alone(attack: Callable[[int], Any], seed: int) -> Judged:
    claim = attack(seed).claim()
    with proof_alone():
        verdict, wrong = judged(claim, seed)
        proved = verdict is not None and verdict.status == "proved"
        refused = rejected(verdict) if proved else None
    return Judged(
        seed,
        verdict.status if verdict is not None else None,
        wrong and told(claim, seed, wrong),
        refused and told(claim, seed, refused),
    )


@both
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_proved_by_proof_alone_is_true(attack: Callable[[int], Any], part: int) -> None:
    wrong = [each.fault for each in by_proof_alone(attack, part) if each.fault]
    assert not wrong, "\n".join(wrong)


@both
def test_every_proof_has_a_certificate_that_is_accepted(attack: Callable[[int], Any]) -> None:
    """What is proved is true, as tested above: here a missing certificate is the mistake."""
    found = [each for part in range(PARTS) for each in by_proof_alone(attack, part)]
    wrong = [each.rejected for each in found if each.rejected]
    assert not wrong, "\n".join(wrong)


# Free indices over the depth of an induction; sums over orders by number.
@pytest.mark.parametrize("seed", [3 * 10**6 + found for found in (423, 1247, 1371, 4136)])
def test_proofs_that_had_no_certificate_have_one(seed: int) -> None:
    found = judged_alone(Attack, seed)
    assert (found.status, found.fault, found.rejected) == ("proved", None, None)


@cache
def with_trials(attack: Callable[[int], Any], part: int) -> tuple[Judged, ...]:
    found = []
    for seed in seeds(part, WITH_TRIALS):
        claim = attack(10**6 + seed).claim()
        verdict, wrong = judged(claim, seed)
        status = verdict.status if verdict is not None else None
        found.append(Judged(seed, status, wrong and told(claim, seed, wrong), None))
    return tuple(found)


@both
@pytest.mark.parametrize("part", range(PARTS))
def test_no_verdict_is_wrong(attack: Callable[[int], Any], part: int) -> None:
    """The same with numbers tried: a counterexample is one, of the kind that is asked for."""
    wrong = [each.fault for each in with_trials(attack, part) if each.fault]
    assert not wrong, "\n".join(wrong)


@both
def test_the_attacks_reach_the_judge(attack: Callable[[int], Any]) -> None:
    """Enough claims are true and proved, and enough are false: neither half is an empty test."""
    found = [each.status for part in range(PARTS) for each in by_proof_alone(attack, part)]
    assert found.count("proved") >= 9
    found = [each.status for part in range(PARTS) for each in with_trials(attack, part)]
    assert found.count("refuted") >= 5, "with numbers that were computed above"
