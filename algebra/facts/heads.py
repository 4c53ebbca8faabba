"""The rules for facts about concatenated, stacked and summed heads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sympy

from otimes.algebra.facts.fact_set import FactSet, Known
from otimes.algebra.facts.normalise import split
from otimes.algebra.facts.walk import Rules, Walk
from otimes.algebra.language.linear import ConcatHeads, HeadSum, StackHeads


def _head_sum(walk: Walk, e: HeadSum, found: FactSet) -> None:
    body = walk.known(e.body)
    found.keep("sum", [body])
    _over_heads(walk, e, body, found, ("rows_sum_to", "columns_sum_to"), ())
    _shared_factor(walk, e, found, (0, -1))


def _concat(walk: Walk, e: ConcatHeads, found: FactSet) -> None:
    body = walk.known(e.body)
    found.keep("concatenation", [body])
    _over_heads(walk, e, body, found, ("rows_sum_to",), ("columns_sum_to",))
    _shared_factor(walk, e, found, (0,))


def _stack(walk: Walk, e: StackHeads, found: FactSet) -> None:
    body = walk.known(e.body)
    found.keep("concatenation", [body])
    _over_heads(walk, e, body, found, ("columns_sum_to",), ("rows_sum_to",))
    _shared_factor(walk, e, found, (-1,))


def _over_heads(
    walk: Walk, e: Any, body: Known, found: FactSet, added: Sequence[str], kept: Sequence[str]
) -> None:
    """Add the rank bound and the row and column sums, where they are the same for all heads."""
    indices = {index for index, _ in e.limits}
    count = sympy.Mul(*[count for _, count in e.limits])
    rank = body["rank_at_most"]
    if not rank.value.free_symbols & indices:
        value = walk.numbers.times(count, rank.value)
        found.add("rank_at_most", "the number of heads times the rank of one", [rank], value)
    for name in (*added, *kept):
        if name in body and not body[name].value.free_symbols & indices:
            value = body[name].value
            if name in added:
                total = walk.numbers.tidy(count * value)
                found.add(name, "the sums of all heads", [body[name]], total)
            else:
                found.add(name, "the sums of one head", [body[name]], value)


def _shared_factor(walk: Walk, e: Any, found: FactSet, ends: Iterable[int]) -> None:
    """Bound the rank by that of a first or last factor that all heads share."""
    _, factors = split(e.body)
    for end in ends:
        if not factors[end].has(*[index for index, _ in e.limits]):
            rank = walk.known(factors[end])["rank_at_most"]
            rule = "at most the rank of a factor that all heads share"
            found.add("rank_at_most", rule, [rank], rank.value)


RULES: Rules = {
    HeadSum: _head_sum,
    ConcatHeads: _concat,
    StackHeads: _stack,
}
