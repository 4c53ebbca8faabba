"""Within one decision a claim is decided once, unless there are more steps for it than before."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import MatrixSymbol, Symbol

from otimes.algebra.budget import Budget, Exhausted, limited, spend
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Decision, Status
from otimes.algebra.decide.kept import decisions_kept, once

n = Symbol("n", integer=True, positive=True)
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)


class Counted:
    """A judge that always says the same, or runs out of steps, and counts how often it is asked."""

    def __init__(self, status: Status | None) -> None:
        self.status, self.times = status, 0

    def __call__(self, claim: Claim, axioms: Any) -> Decision:
        self.times += 1
        if self.status is None:
            raise Exhausted
        return Decision(self.status, "", claim)

    def asked(self, claim: Claim, left: int, context: Any = True) -> None:
        with limited(left):
            if self.status is None:
                with pytest.raises(Exhausted):
                    once(claim, ([], {}), context, self)
            else:
                assert once(claim, ([], {}), context, self).status == self.status


@pytest.mark.parametrize(
    ("status", "times"), [("proved", 1), ("refuted", 1), ("undecided", 2), (None, 2)]
)
def test_what_is_open_is_asked_again_with_more_steps_only(
    status: Status | None, times: int
) -> None:
    judge = Counted(status)
    with Budget(1), decisions_kept():
        judge.asked(Claim(A * B, B * A), 2_000)
        judge.asked(Claim(A * B, B * A), 1_000)
        assert judge.times == 1
        judge.asked(Claim(A * B, B * A), 3_000)
        assert judge.times == times


def test_another_claim_is_another_question() -> None:
    judge = Counted("proved")
    plain, premise = Claim(A * B, B * A), Claim(A * B, B * A)
    premise.within = frozenset({(A, B)})
    under = Claim(A * B, B * A, [[A, B]])
    with Budget(1), decisions_kept():
        for claim in (plain, premise, under, Claim(B * A, A * B)):
            judge.asked(claim, 1_000)
        judge.asked(plain, 1_000, context=False)
    assert judge.times == 5
    with Budget(1), decisions_kept():
        judge.asked(plain, 1_000)
    assert judge.times == 6


def test_a_claim_that_was_asked_before_takes_little_work() -> None:
    with Budget(1) as work, decisions_kept():
        once(Claim(A, A), ([], {}), True, lambda *_: spend(500_000) or Counted("proved")(*_))
        once(Claim(A, A), ([], {}), True, lambda *_: spend(500_000) or Counted("proved")(*_))
    assert 500_000 < work.spent < 501_000
