"""Random true claims: whatever is proved has a certificate, and the checker accepts it."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import sympy

from algebra.certificate import to_json
from algebra.decide import decide
from proofs import replay
from tests.algebra.conditional import KINDS, Claims
from tests.algebra.expressions import SHAPES, random_expression, rewritten
from tests.algebra.statements import Statements
from tests.proofs.certificates import disguised

LONG = os.environ.get("OTIMES_LONG") == "1"
EACH = 5_000 if LONG else 300
EACH_KIND = 100 if LONG else 5
SECONDS = 5


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


def has_power_of_zero(*sides: Any) -> bool:
    """Return whether there is a power 0: what the prover does not read, it does not split."""
    return any(
        isinstance(part, sympy.Pow | sympy.MatPow | sympy.HadamardPower) and part.args[1] == 0
        for side in sides
        for part in sympy.preorder_traversal(side)
    )


@pytest.mark.parametrize("claims", [in_the_whole_language, in_a_small_language, under_hypotheses])
def test_random_proofs_have_certificates_that_are_accepted(claims: Any) -> None:
    draw = random.Random(0)
    told: Counter[str] = Counter()
    seconds, refused = [], []
    for lhs, rhs, given in claims():
        verdict = decide(lhs, rhs, list(given), budget=SECONDS)
        if verdict.status != "proved" or has_power_of_zero(lhs, rhs):
            told["not proved, or a power 0"] += 1
            continue
        made = json.loads(to_json(verdict.certificate or {}))
        start = time.process_time()
        try:
            replay.check(made)
            seconds.append(time.process_time() - start)
            replay.check(disguised(made, draw))
        except replay.Rejected as reason:
            refused.append((str(reason), lhs, rhs))
        told["proved"] += 1
    print(dict(told), f"median {1000 * sorted(seconds)[len(seconds) // 2]:.2f} ms")
    assert refused == []
    assert told["proved"] > 0.7 * told.total()
