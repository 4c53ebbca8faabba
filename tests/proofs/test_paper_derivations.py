"""The derivations as papers have them: each link is proved, explained and checked."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from otimes.algebra.decide.certificate import to_json
from otimes.algebra.verdict import decide
from otimes.proofs import replay
from otimes.proofs.paper_derivations import DERIVATIONS

LINES = 12  # that a person follows
MISSES = [(name, miss.says) for name, each in DERIVATIONS.items() for miss in each.misses]


@pytest.mark.parametrize("name", DERIVATIONS)
def test_each_link_is_proved_for_all_sizes_in_named_steps(name: str) -> None:
    derivation = DERIVATIONS[name]
    for before, after in pairwise(derivation.chain):
        verdict = decide(before, after, derivation.given)
        assert verdict.status == "proved", verdict
        assert replay.check(json.loads(to_json(verdict.certificate)))
        assert verdict.steps is not None, (before, after)
        assert 1 <= len(verdict.steps.lines) <= LINES
        assert all(step.named is not None for step in verdict.steps)


@pytest.mark.parametrize("name", DERIVATIONS)
def test_the_whole_is_proved_at_once(name: str) -> None:
    derivation = DERIVATIONS[name]
    verdict = decide(derivation.chain[0], derivation.chain[-1], derivation.given)
    assert verdict.status == "proved", verdict
    assert replay.check(json.loads(to_json(verdict.certificate)))


@pytest.mark.parametrize(("name", "says"), MISSES)
def test_a_near_miss_is_refuted(name: str, says: str) -> None:
    miss = next(one for one in DERIVATIONS[name].misses if one.says == says)
    verdict = decide(miss.lhs, miss.rhs, miss.given)
    assert verdict.status == "refuted", verdict
    assert verdict.counterexample is not None


def test_there_are_twelve_and_each_has_its_source() -> None:
    assert len(DERIVATIONS) == 12
    assert all(one.source and one.prose and one.misses for one in DERIVATIONS.values())
