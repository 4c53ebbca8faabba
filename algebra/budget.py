"""Work, counted in steps: what bounds a decision, the same on every machine and under any load.

Every phase counts what it does while a budget is active: labelling, expansion, matching,
elimination, polynomial and exact arithmetic, search, rewriting. One step is about a microsecond of
a common core, so `Budget(20)` lasts for some twenty seconds there, and for exactly as many steps
anywhere else. Where it ends, `Exhausted` unwinds to whoever set the limit, who goes on with what is
left or gives up.

The active budget is held in a context variable and not passed along, because operators do work too:
the product of two polynomials is an `__mul__`. Without an active budget nothing is limited.

Seconds remain as an outer guard, for work that is not counted well: it strikes after `GUARD` times
the seconds that the budget stands for, and whoever reports the result has to say so (`struck`), as
it then depends on the machine.

>>> with Budget(1) as budget:
...     spend(300)
...     try:
...         with limited(1_000):
...             spend(2_000)
...     except Exhausted:
...         print(budget.spent, budget.left)
1300 998700
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from fractions import Fraction
from math import inf

STEPS = 1_000_000  # in one unit of a budget: what a common core does in about a second
LEAST = 0.02  # units that are always allowed: enough to read what people write by hand
GUARD = 30  # seconds of the outer guard for each unit, and for the first one at least
LOOK = 50_000  # steps between two looks at the clock


class Exhausted(Exception):
    """The active limit is reached. It is caught where the limit was set, and reaches no caller."""


class Budget:
    """A number of steps that may be done while it is active: `with Budget(units): …`.

    `spent` are the steps done so far, and `left` those that are left until the active limit. At
    `mark` steps there is something to look at. `struck` says whether the guard of `guard` seconds
    has struck.
    """

    __slots__ = ("_began", "_clock", "_limit", "_token", "guard", "mark", "spent", "struck")

    def __init__(self, units: float) -> None:
        self._limit = inf if units == inf else int(units * STEPS)
        self.guard = GUARD * max(units, 1)
        self.spent = 0
        self.struck = False
        self._clock = _clock()
        self._began = 0.0
        self.mark: float = self._limit
        self._token: Token[Budget] | None = None

    def __enter__(self) -> Budget:
        self._began = self._clock()
        self._set_mark()
        self._token = _ACTIVE.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _ACTIVE.reset(self._token)
        self._token = None

    @property
    def left(self) -> float:
        """How many steps are left."""
        return 0 if self.struck else max(self._limit - self.spent, 0)

    @property
    def spent_out(self) -> bool:
        """Whether nothing is left."""
        return self.struck or self.spent >= self._limit

    def warning(self, what: str) -> str:
        """Say that something depends on the machine, if the guard has struck; else nothing."""
        struck = (
            f"the guard of {self.guard:g} seconds struck, so that {what} depends on the machine"
        )
        return struck if self.struck else ""

    def look(self) -> None:
        """Raise Exhausted where the limit is passed, or the time of the guard is over."""
        if self.spent > self._limit:
            self.spent = int(self._limit)  # what was about to be done was not done
            raise Exhausted
        if self.struck:
            raise Exhausted
        if self._clock() - self._began > self.guard:
            self.struck = True
            raise Exhausted
        self._set_mark()

    def _set_mark(self) -> None:
        self.mark = -1 if self.struck else min(self._limit, self.spent + LOOK)

    @contextmanager
    def limited(self, steps: float) -> Iterator[Budget]:
        """Allow at most so many further steps, which count in the whole, too."""
        outer = self._limit
        self._limit = min(outer, self.spent + steps)
        self._set_mark()
        try:
            yield self
        finally:
            self._limit = outer
            self._set_mark()


def _clock() -> Callable[[], float]:
    """Return the clock of the guard: processor time, or wall time where there is no such clock."""
    for name in ("thread_time", "process_time"):
        clock: Callable[[], float] | None = getattr(time, name, None)
        if clock is not None:
            return clock
    return time.monotonic


_UNLIMITED = Budget(inf)
_ACTIVE: ContextVar[Budget] = ContextVar("budget", default=_UNLIMITED)


def spend(steps: int) -> None:
    """Count steps on the active budget; raise Exhausted beyond its limit."""
    active = _ACTIVE.get()
    active.spent += steps
    if active.spent > active.mark:
        active.look()


def steps_left() -> float:
    """Return how many steps the active budget has left; infinitely many where there is none."""
    return _ACTIVE.get().left


@contextmanager
def limited(steps: float) -> Iterator[Budget]:
    """Allow at most so many steps of the active budget, or at all, where none is active."""
    active = _ACTIVE.get()
    if active is _UNLIMITED:
        with Budget(steps / STEPS) as alone:
            yield alone
    else:
        with active.limited(steps) as part:
            yield part


def weight(number: object) -> int:
    """Return what one operation on such a number counts, in sixteenths of a step.

    Products of long integers and the common divisors of long fractions take about the square of
    their lengths.
    """
    if type(number) is int:
        return product_weight(number.bit_length())
    if isinstance(number, Fraction):
        words = (number.numerator.bit_length() + number.denominator.bit_length()) >> 6
        return 24 + 8 * words + (words * words >> 3)
    return 64


def product_weight(bits: int) -> int:
    """Return the weight of a product of two integers of so many bits."""
    words = bits >> 6
    return 1 + words + (words * words >> 5)
