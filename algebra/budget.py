"""Budgets that count steps of computation, and not seconds, so that results are reproducible.

While a budget is active, each algorithm counts its steps: canonical labelling, expansion, matching,
elimination, polynomial and exact arithmetic, search, rewriting. A step takes about a microsecond on
a current CPU core, so `Budget(20)` corresponds to about twenty seconds. When the steps are used up,
`Exhausted` is raised; the code that set the limit catches it.

The active budget is a context variable and not an argument, as operators such as the `__mul__` of
polynomials count steps too. Without an active budget there is no limit.

A timeout stops computations whose steps are undercounted: it is `GUARD` times the seconds that the
budget corresponds to. The result then depends on the machine; `struck` records this.

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

STEPS = 1_000_000  # in one unit of a budget: about a second on a common core
LEAST = 0.02  # units that are always allowed: enough to read statements written by hand
GUARD = 30  # seconds of the guard for each unit, and at least for one unit
LOOK = 50_000  # steps between two checks of the clock


class Exhausted(Exception):
    """The active limit is reached; caught where the limit was set, and never seen by a user."""


class Budget:
    """A limit on the steps done within `with Budget(units): …`.

    `spent` is the number of steps so far, `left` the number until the active limit, `mark` the one
    at which limit and clock are checked next. `struck` tells whether the guard of `guard` seconds
    has stopped the work. Where `counted` is false, the steps are not among `steps_done`: of what
    is computed once in a process, and kept.
    """

    __slots__ = (
        "_began",
        "_clock",
        "_counted",
        "_limit",
        "_token",
        "guard",
        "mark",
        "spent",
        "struck",
    )

    def __init__(self, units: float, counted: bool = True) -> None:
        self._counted = counted
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
        global _done
        assert self._token is not None
        _done += self.spent if self._counted else 0
        _ACTIVE.reset(self._token)
        self._token = None

    @property
    def left(self) -> float:
        """The number of steps left."""
        return 0 if self.struck else max(self._limit - self.spent, 0)

    @property
    def spent_out(self) -> bool:
        """Whether no steps are left."""
        return self.struck or self.spent >= self._limit

    def warning(self, what: str) -> str:
        """Return a warning that `what` depends on the machine if the guard stopped it."""
        struck = f"the limit of {self.guard:g} seconds was reached: {what} depends on the machine"
        return struck if self.struck else ""

    def look(self) -> None:
        """Raise Exhausted if the limit is exceeded, or the time of the guard is over."""
        if self.spent > self._limit:
            self.spent = int(self._limit)  # the step that raised was not done
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
        """Limit the further steps, which also count towards the whole budget."""
        outer = self._limit
        self._limit = min(outer, self.spent + steps)
        self._set_mark()
        try:
            yield self
        finally:
            self._limit = outer
            self._set_mark()


def _clock() -> Callable[[], float]:
    """Return the clock of the guard: processor time, or wall time if that is not available."""
    for name in ("thread_time", "process_time"):
        clock: Callable[[], float] | None = getattr(time, name, None)
        if clock is not None:
            return clock
    return time.monotonic


_done = 0
_UNLIMITED = Budget(inf)
_ACTIVE: ContextVar[Budget] = ContextVar("budget", default=_UNLIMITED)


def spend(steps: int) -> None:
    """Count steps on the active budget; raise Exhausted beyond its limit."""
    active = _ACTIVE.get()
    active.spent += steps
    if active.spent > active.mark:
        active.look()


def steps_done() -> int:
    """Return the number of steps of all budgets that have ended and count, in this process."""
    return _done


def steps_left() -> float:
    """Return the steps left in the active budget; infinity without one."""
    return _ACTIVE.get().left


def steps_spent() -> int:
    """Return the number of steps counted so far, on the active budget or outside of any."""
    return _ACTIVE.get().spent


@contextmanager
def limited(steps: float) -> Iterator[Budget]:
    """Limit the steps within the context, under the active budget if there is one."""
    active = _ACTIVE.get()
    if active is _UNLIMITED:
        with Budget(steps / STEPS) as alone:
            yield alone
    else:
        with active.limited(steps) as part:
            yield part


def weight(number: object) -> int:
    """Return the cost of one operation on such a number, in sixteenths of a step.

    Products of long integers, and common divisors of long fractions, take time about quadratic in
    their lengths.
    """
    if type(number) is int:
        return product_weight(number.bit_length())
    if isinstance(number, Fraction):
        words = (number.numerator.bit_length() + number.denominator.bit_length()) >> 6
        return 24 + 8 * words + (words * words >> 3)
    return 64


def product_weight(bits: int) -> int:
    """Return the cost of a product of two integers with these numbers of bits."""
    words = bits >> 6
    return 1 + words + (words * words >> 5)
