"""Random true identities are proved, near-misses are refuted, and an oracle agrees each time.

The oracle walks the SymPy tree with integers and never sees a diagram (`reference.World`). In the
language without hypotheses nothing may be left undecided.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.verdict import Verdict, decide
from tests.algebra.decide.conditional import KINDS, Claims, Kind, satisfying_world
from tests.algebra.decide.statements import FREE, SCALARS, TENSORS, Statements
from tests.algebra.reference import World, random_world, values_of, world_of

LONG = os.environ.get("OTIMES_LONG") == "1"
PARTS = 10
EACH = (10_000 if LONG else 1_000) // PARTS // 2
EACH_KIND = 100 if LONG else 8
BUDGET = 10
CONDITIONAL_BUDGET = 2

# At one set of sizes a wrong coefficient can vanish; hardly so at all of them.
SIZES = [(3, 2, 4), (2, 5, 3), (4, 3, 2)]
WORLDS = [
    random_world(TENSORS, {"n": p, "d": q, "H": r}, SCALARS, seed)
    for seed, (p, q, r) in enumerate(SIZES)
]


def whole_world(sizes: tuple[int, int, int], seed: int) -> World:
    """Return small integers for everything; scalars are squares, as roots of them are taken."""
    draw = random.Random(seed)
    world = World(dict(zip("ndH", sizes, strict=True)), {}, prime=None)
    for name in SCALARS:
        root = draw.randint(1, 4)
        world.numbers[f"sqrt {name}"], world.numbers[name] = root, root**2
    for name, tensor in TENSORS.items():
        shape = [world.size(size) for size in (*getattr(tensor, "counts", ()), *tensor.shape)]
        flat = [draw.randint(-3, 3) for _ in range(int(np.prod(shape)))]
        world.arrays[name] = np.array(flat, dtype=object).reshape(shape)
    return world


def agree(lhs: Any, rhs: Any, world: World, draw: random.Random) -> bool:
    """Return whether two trees have the same value, the free indices drawn."""
    at = {index: draw.randrange(world.size(size)) for size, index in FREE.items()}
    return bool(np.all(world.value(lhs, at) == world.value(rhs, at)))


def confirmed(verdict: Verdict, lhs: Any, rhs: Any) -> bool:
    """Return whether the oracle finds the two values that a counterexample reports."""
    found = verdict.counterexample
    assert found is not None
    return values_of(found, lhs, rhs) == (found.lhs, found.rhs) and found.lhs != found.rhs


def told(lhs: Any, rhs: Any, rules: list[str], verdict: Verdict) -> str:
    return f"\n{unicode_text(lhs)}\n{unicode_text(rhs)}\n{rules}\n{verdict!r}"


@pytest.mark.parametrize("part", range(PARTS))
def test_true_identities_are_proved(part: int) -> None:
    statements, draw = Statements(1000 + part), random.Random(part)
    exact = whole_world((2, 3, 2), part)
    for _ in range(EACH):
        lhs, rhs, rules = statements.identity()
        verdict = decide(lhs, rhs, budget=BUDGET)
        assert verdict.status == "proved", told(lhs, rhs, rules, verdict)
        for world in (exact, draw.choice(WORLDS)):
            assert agree(lhs, rhs, world, draw), told(lhs, rhs, rules, verdict)


@pytest.mark.parametrize("part", range(PARTS))
def test_near_misses_are_refuted_or_true_after_all(part: int) -> None:
    statements, draw = Statements(2000 + part), random.Random(part)
    refuted = 0
    for _ in range(EACH):
        lhs, rhs, rules = statements.near_miss()
        verdict = decide(lhs, rhs, budget=BUDGET)
        what = told(lhs, rhs, rules, verdict)
        if verdict.status == "refuted":
            refuted += 1
            assert confirmed(verdict, lhs, rhs), what
        else:
            assert verdict.status == "proved", what
            assert all(agree(lhs, rhs, world, draw) for world in WORLDS), what
    assert refuted > EACH / 2  # most mistakes are mistakes


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_claims_under_hypotheses(kind: Kind, record_property: pytest.RecordProperty) -> None:
    """A verdict is never wrong; what follows by rewriting is nearly always found."""
    claims, draw = Claims(kind, 3000), random.Random(11)
    said = {"proved": 0, "undecided": 0}
    for _ in range(EACH_KIND):
        lhs, rhs, rules = claims.identity()
        verdict = decide(lhs, rhs, given=kind.given, budget=CONDITIONAL_BUDGET)
        assert verdict.status in said, told(lhs, rhs, rules, verdict)
        said[verdict.status] += 1
        assert hold_together(kind, lhs, rhs, draw), told(lhs, rhs, rules, verdict)
    for _ in range(EACH_KIND):
        lhs, rhs, rules = claims.near_miss()
        verdict = decide(lhs, rhs, given=kind.given, budget=CONDITIONAL_BUDGET)
        what = told(lhs, rhs, rules, verdict)
        if verdict.status == "proved":
            assert hold_together(kind, lhs, rhs, draw), what
        elif verdict.status == "refuted":
            assert confirmed(verdict, lhs, rhs), what
            world = world_of(verdict.counterexample)
            assert all(np.all(world.value(x) == world.value(y)) for x, y in kind.given), what
    record_property("true claims", said)
    assert said["proved"] >= 0.75 * EACH_KIND, said


def hold_together(kind: Kind, lhs: Any, rhs: Any, draw: random.Random) -> bool:
    """Return whether the sides agree at matrices that satisfy the hypotheses, of several sizes."""
    for sizes in [(2, 2, 1), (3, 2, 2), (4, 1, 2)]:
        world = satisfying_world(kind, whole_world(sizes, draw.randrange(10**6)), draw)
        assert all(np.all(world.value(x) == world.value(y)) for x, y in kind.given), kind
        if not agree(lhs, rhs, world, draw):
            return False
    return True


def test_the_oracle_finds_what_is_wrong() -> None:
    """Each check above can fail: the oracle tells every mistake apart that `decide` refutes."""
    statements, draw = Statements(7), random.Random(7)
    apart = refuted = 0
    for _ in range(60):
        lhs, rhs, _ = statements.near_miss()
        if decide(lhs, rhs, budget=BUDGET).status == "refuted":
            refuted += 1
            apart += not all(agree(lhs, rhs, world, draw) for world in WORLDS)
    assert apart >= 0.9 * refuted > 20  # a free index may be drawn where nothing differs
