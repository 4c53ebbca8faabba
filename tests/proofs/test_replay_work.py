"""What a short certificate can ask for is bounded: the checker counts its steps, and gives up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from otimes.proofs import replay
from tests.proofs.forged import (
    ONES,
    A,
    B,
    I,
    O,
    Tree,
    by_hand,
    equal_of,
    h,
    inverse,
    mul,
    n,
    of,
    plus,
    t,
    transposed,
)

SCALARS = [[f"a{k}", []] for k in range(30)]


def nested(made: Callable[[Tree], Tree], tree: Tree, times: int) -> Tree:
    """Return a tree in which an operation is repeated."""
    for _ in range(times):
        tree = made(tree)
    return tree


def halves(size: int) -> list[Any]:
    """Return splits that cut 2 to a power into single rows."""
    return [[["Pow", 2, size], [2] * size], [2, [["|", [], []]]]]


def two_to(size: int) -> Tree:
    return ["Pow", 2, size]


ONE_OVER = [["Pow", ["Add", 1, ["scalar", k]], -1] for k in range(30)]
LAYERS: dict[str, Any] = {"tensors": [["A", [], n, n], ["B", [], n, n], ["Z", [5000], n, n]]}
HEAVY: dict[str, dict[str, Any]] = {
    "a billion heads": by_hand(["HeadSum", ["LayerProduct", A, h, False], 10**9], A),
    "heads in heads": by_hand(
        nested(
            lambda body: ["HeadSum", body, 100],
            ["HadamardProduct", *[["LayerProduct", A, ["i", k], False] for k in range(4)]],
            4,
        ),
        A,
    ),
    "a power of entries of a power": by_hand(nested(lambda x: ["HadamardPower", x, 5000], A, 2), A),
    "a power of ones": by_hand(nested(lambda x: ["HadamardPower", x, 5000], ONES, 3), A),
    "a power of a power": by_hand(nested(lambda x: ["MatPow", x, 5000], A, 2), A),
    "a power of a sum": by_hand(["MatPow", plus(A, transposed(A)), 60], A),
    "a power of a power of a number": by_hand(
        nested(lambda x: ["Pow", x, 5000], ["Trace", A], 3), 1
    ),
    "a large number": by_hand(mul(nested(lambda x: ["Pow", x, 5000], 2, 4), A), A),
    "a small number": by_hand(
        mul(nested(lambda x: ["Pow", x, -5000], ["Rational", 2, 3], 4), A), A
    ),
    "sums of many symbols": by_hand(
        mul(*[["Pow", ["Add", *[["scalar", k] for k in range(12)]], 7]] * 30, A),
        A,
        scalars=SCALARS,
    ),
    "many denominators": by_hand(plus(*[mul(over, A) for over in ONE_OVER]), A, scalars=SCALARS),
    "more rows than can be counted": by_hand(
        ["Trace", ["Identity", two_to(40)]], 1, splits=halves(40)
    ),
    "many entries that are zero": by_hand(
        *[["ZeroMatrix", two_to(12), two_to(12)]] * 2, splits=halves(12)
    ),
    "many entries of an inverse": by_hand(
        *[inverse(["OneMatrix", two_to(9), two_to(9)])] * 2, splits=halves(9)
    ),
    "orders of many layers": by_hand(["OrderSum", O, 60, 30, False], A),
    "many layers in many": by_hand(
        nested(lambda x: ["LayerProduct", x, 5000, False], mul(t(2, h), t(2, ["i", 1])), 2),
        A,
        **LAYERS,
    ),
    "norms of norms": by_hand(nested(lambda x: ["LayerNorm", x, 0], A, 14), A),
    "reciprocals of reciprocals": by_hand(nested(lambda x: ["Pow", x, -1], ["Trace", A], 30), 1),
    "many alike": by_hand(
        ["Trace", ["HadamardProduct", *[mul(A, transposed(A))] * 200]], ["Trace", A]
    ),
    "many premises": by_hand(
        A,
        A,
        facts=[equal_of(of("f", mul(A, B)), of("f", mul(A, B)), [by_hand(I, I)["proof"]])] * 300,
    ),
}


@pytest.mark.parametrize("name", HEAVY)
def test_a_check_comes_to_an_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the count of steps each of these runs for minutes, or fills the memory."""
    monkeypatch.setattr(replay, "MAX_WORK", 50_000)
    with pytest.raises(replay.Rejected, match="it takes too much work|a number is too large"):
        replay.check(HEAVY[name])


def test_each_check_has_its_own_count() -> None:
    made = by_hand(A, A)
    replay.check(made)
    replay.spend(replay.WORK[0] - 1)
    replay.check(made)


def test_a_high_power_is_checked_by_halves() -> None:
    """Factor by factor, the products of A^2400 would take more than all steps of one check."""
    high = ["MatPow", A, 2400]
    assert replay.check(by_hand(mul(high, high), ["MatPow", A, 4800]))
    with pytest.raises(replay.Rejected, match="terms do not cancel"):
        replay.check(by_hand(mul(high, high), ["MatPow", A, 4799]))
