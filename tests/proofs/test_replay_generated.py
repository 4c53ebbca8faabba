"""Random true claims: whatever is proved has a certificate, and the checker accepts it."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from otimes.algebra.decide.certificate import to_json
from otimes.algebra.verdict import decide
from otimes.proofs import replay
from tests.algebra.decide.conditional import KINDS, Claims
from tests.algebra.decide.statements import Statements
from tests.algebra.expressions import SHAPES, random_expression, rewritten
from tests.proofs.certificates import disguised

LONG = os.environ.get("OTIMES_LONG") == "1"
EACH = 5_000 if LONG else 300
EACH_KIND = 100 if LONG else 5
BUDGET = 5


def in_the_whole_language() -> Iterator[tuple[Any, Any, Any]]:
    statements = Statements(4000)
    for _ in range(EACH):
        lhs, rhs, _ = statements.identity()
        yield lhs, rhs, ()


def in_a_small_language() -> Iterator[tuple[Any, Any, Any]]:
    draw = random.Random(4001)
    for k in range(EACH):
        lhs = random_expression(draw, SHAPES[k % len(SHAPES)], draw.choice([1, 2]))
        yield lhs, rewritten(draw, lhs, 3)[0], ()


def under_hypotheses() -> Iterator[tuple[Any, Any, Any]]:
    for k, kind in enumerate(KINDS):
        claims = Claims(kind, 4002 + k)
        for _ in range(EACH_KIND):
            lhs, rhs, _ = claims.identity()
            yield lhs, rhs, kind.given


@pytest.mark.parametrize("claims", [in_the_whole_language, in_a_small_language, under_hypotheses])
def test_random_proofs_have_certificates_that_are_accepted(claims: Any) -> None:
    draw = random.Random(0)
    told: Counter[str] = Counter()
    refused = []
    for lhs, rhs, given in claims():
        verdict = decide(lhs, rhs, list(given), budget=BUDGET)
        if verdict.status != "proved":
            told[verdict.status] += 1
            continue
        made = json.loads(to_json(verdict.certificate or {}))
        try:
            replay.check(made)
            replay.check(disguised(made, draw))
        except replay.Rejected as reason:
            refused.append((str(reason), lhs, rhs))
        told["proved"] += 1
    print(dict(told))
    assert refused == []
    assert told["proved"] > 0.7 * told.total()
