"""The language of programs: sequences of values, one at each position, and how they are combined.

    tokens, indices           what stands at a position, and its number from 0
    mapped(f, a, b, …)        f of the values at each position
    select(keys, queries, p)  which positions each position attends to: those where p(key, query)
    aggregate(selector, a)    the value of a at the selected position; of several, the mean
    width(selector)           how many positions are selected
    total(a, b, …)            the sum of whole numbers

Attention is causal: a position selects from itself and earlier ones. A position whose value is None
has none: it is not selected, and selects nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

Value = Hashable
Values = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Operation:
    """A value at each position; `possible` gives the values that it can have."""

    def possible(self, alphabet: Sequence[Value], n_pos: int) -> Values:
        """Return the values that can occur, for an alphabet and a largest number of positions."""
        raise NotImplementedError

    @property
    def reads(self) -> tuple[Operation, ...]:
        """The operations that it is computed from."""
        return ()


@dataclass(frozen=True, eq=False)
class Tokens(Operation):
    """The token at each position."""

    def possible(self, alphabet: Sequence[Value], n_pos: int) -> Values:
        return tuple(alphabet)


@dataclass(frozen=True, eq=False)
class Indices(Operation):
    """The number of each position, from 0."""

    def possible(self, alphabet: Sequence[Value], n_pos: int) -> Values:
        return tuple(range(n_pos))


@dataclass(frozen=True, eq=False)
class Mapped(Operation):
    """A function of the values at each position; None for no value."""

    function: Callable[..., Any]
    arguments: tuple[Operation, ...]

    def possible(self, alphabet: Sequence[Value], n_pos: int) -> Values:
        found: dict[Any, None] = {}
        for values in _products([each.possible(alphabet, n_pos) for each in self.arguments]):
            value = self.function(*values)
            if value is not None:
                found[value] = None
        return tuple(found)

    @property
    def reads(self) -> tuple[Operation, ...]:
        return self.arguments


@dataclass(frozen=True, eq=False)
class Selector:
    """Which earlier positions each position attends to."""

    keys: Operation
    queries: Operation
    predicate: Callable[[Any, Any], bool]


@dataclass(frozen=True, eq=False)
class Aggregate(Operation):
    """The mean of the values that a selector selects, as shares of each possible value."""

    selector: Selector
    values: Operation

    def possible(self, alphabet: Sequence[Value], n_pos: int) -> Values:
        return self.values.possible(alphabet, n_pos)

    @property
    def reads(self) -> tuple[Operation, ...]:
        return (self.selector.keys, self.selector.queries, self.values)


@dataclass(frozen=True, eq=False)
class Width(Operation):
    """The number of positions that a selector selects."""

    selector: Selector

    def possible(self, alphabet: Sequence[Value], n_pos: int) -> Values:
        return tuple(range(n_pos + 1))

    @property
    def reads(self) -> tuple[Operation, ...]:
        return (self.selector.keys, self.selector.queries)


@dataclass(frozen=True, eq=False)
class Total(Operation):
    """The sum of whole numbers at each position."""

    arguments: tuple[Operation, ...]

    def possible(self, alphabet: Sequence[Value], n_pos: int) -> Values:
        ends = [each.possible(alphabet, n_pos) for each in self.arguments]
        return tuple(range(sum(map(min, ends)), sum(map(max, ends)) + 1))

    @property
    def reads(self) -> tuple[Operation, ...]:
        return self.arguments


tokens, indices = Tokens(), Indices()


def mapped(function: Callable[..., Any], *arguments: Operation) -> Mapped:
    """Return a function of the values at each position; it may return None for no value."""
    return Mapped(function, arguments)


def select(keys: Operation, queries: Operation, predicate: Callable[[Any, Any], bool]) -> Selector:
    """Return the selector of the positions whose key stands in a relation to the query."""
    return Selector(keys, queries, predicate)


def aggregate(selector: Selector, values: Operation) -> Aggregate:
    """Return the value at the selected position; of several, the share of each value."""
    return Aggregate(selector, values)


def width(selector: Selector) -> Width:
    """Return the number of selected positions."""
    return Width(selector)


def total(*arguments: Operation) -> Total:
    """Return the sum of whole numbers."""
    return Total(arguments)


def _products(lists: Sequence[Values]) -> list[Values]:
    rows: list[Values] = [()]
    for values in lists:
        rows = [(*row, value) for row in rows for value in values]
    return rows


def combinations(
    arguments: Sequence[Operation], alphabet: Sequence[Value], n_pos: int
) -> list[tuple[tuple[int, ...], Values]]:
    """Return the combinations of possible values, each with the numbers of these values."""
    lists = [each.possible(alphabet, n_pos) for each in arguments]
    numbers = _products([tuple(range(len(values))) for values in lists])
    return [*zip(numbers, _products(lists), strict=True)]
