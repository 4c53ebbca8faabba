"""The count of many claims finds no fault, and its evaluators would find one."""

from __future__ import annotations

import os
from itertools import islice
from typing import Any

import pytest

from tests.algebra.decide.many_claims import GENERATORS, counted

LONG = os.environ.get("OTIMES_LONG") == "1"
MANY = 500 if LONG else 3
SLOW = ("names", "depths")  # many seconds for a few claims


@pytest.mark.parametrize("name", [name for name in GENERATORS if LONG or name not in SLOW])
def test_nothing_is_proved_wrongly(name: str) -> None:
    found = counted(name, MANY, seed=41)
    assert found["claims"] == MANY
    assert "faults" not in found


@pytest.mark.parametrize("name", ["plain", "statements", "hypotheses", "positions"])
def test_a_wrong_proof_would_be_found(name: str) -> None:
    """Each evaluator holds some near miss to be false, whatever the judge says of it."""
    verdict: Any = None
    drawn = islice(GENERATORS[name][0](7), 24)
    assert any(claim.proved_wrongly(verdict) for claim in drawn if not claim.true)
