"""What is known of heads side by side, one above the other, or summed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import sympy

from algebra.facts.found import Found, Known
from algebra.facts.settle import split
from algebra.language import ConcatHeads, HeadSum, StackHeads

if TYPE_CHECKING:
    from algebra.facts.rules import Walk


def _head_sum(walk: Walk, e: HeadSum, found: Found) -> None:
    body = walk.known(e.body)
    found.keep("sum", [body])
    _over_heads(walk, e, body, found, ("rows_sum_to", "columns_sum_to"), ())
    _shared_factor(walk, e, found, (0, -1))


def _concat(walk: Walk, e: ConcatHeads, found: Found) -> None:
    body = walk.known(e.body)
    found.keep("concatenation", [body])
    _over_heads(walk, e, body, found, ("rows_sum_to",), ("columns_sum_to",))
    _shared_factor(walk, e, found, (0,))


def _stack(walk: Walk, e: StackHeads, found: Found) -> None:
    body = walk.known(e.body)
    found.keep("concatenation", [body])
    _over_heads(walk, e, body, found, ("columns_sum_to",), ("rows_sum_to",))
    _shared_factor(walk, e, found, (-1,))


def _over_heads(
    walk: Walk, e: Any, body: Known, found: Found, added: Sequence[str], kept: Sequence[str]
) -> None:
    """Add the rank and the sums of one body for each head, where they do not depend on the head."""
    indices = {index for index, _ in e.limits}
    count = sympy.Mul(*[count for _, count in e.limits])
    rank = body["rank_at_most"]
    if not rank.value.free_symbols & indices:
        value = walk.numbers.times(count, rank.value)
        found.add("rank_at_most", "as many times the rank as there are heads", [rank], value)
    for name in (*added, *kept):
        if name in body and not body[name].value.free_symbols & indices:
            value = body[name].value
            if name in added:
                total = walk.numbers.tidy(count * value)
                found.add(name, "the sums of all heads", [body[name]], total)
            else:
                found.add(name, "the sums of one head", [body[name]], value)


def _shared_factor(walk: Walk, e: Any, found: Found, ends: Iterable[int]) -> None:
    """Bound the rank by that of a factor at an end of the body that all heads have in common."""
    _, factors = split(e.body)
    for end in ends:
        if not factors[end].has(*[index for index, _ in e.limits]):
            rank = walk.known(factors[end])["rank_at_most"]
            rule = "no more than the rank of a factor that all heads share"
            found.add("rank_at_most", rule, [rank], rank.value)


RULES: dict[type, Callable[[Walk, Any, Found], None]] = {
    HeadSum: _head_sum,
    ConcatHeads: _concat,
    StackHeads: _stack,
}
