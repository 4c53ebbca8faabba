"""Hypotheses as rules: what is given may be used like any rule, and is named like one.

The first equation given is the rule `given_1`, its transpose `given_1_transpose`, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import sympy
from sympy import HadamardProduct, Identity, KroneckerProduct, MatMul, Transpose, ZeroMatrix

from algebra.rules.rule import Rule, is_matrix, product, rebuilt
from algebra.text import unicode_text

Pair = tuple[Any, Any]


def as_pair(given: Any) -> Pair:
    """Return the two sides of a hypothesis, a pair or a `sympy.Eq`."""
    return (given.lhs, given.rhs) if isinstance(given, sympy.Eq) else (given[0], given[1])


@lru_cache(maxsize=256)
def hypotheses(given: tuple[Pair, ...]) -> dict[str, Rule]:
    """Return the rules that hypotheses are, by name; each rewrites its longer side."""
    rules: dict[str, Rule] = {}
    for number, (lhs, rhs) in enumerate(given, 1):
        sides = [(f"given_{number}", lhs, rhs)]
        if is_matrix(lhs) and is_matrix(rhs):
            sides.append((f"given_{number}_transpose", transposed(lhs), transposed(rhs)))
        for name, left, right in sides:
            if _size(left) < _size(right):
                left, right = right, left
            reading = f"{unicode_text(left)} = {unicode_text(right)}"
            kinds = (type(left), MatMul)
            rules[name] = Rule(name, reading, kinds, _replacing(left, right))
    return rules


def _replacing(left: Any, right: Any) -> Callable[[Any], Iterator[Any]]:
    """Return the rule that puts one side for the other, as a whole or inside a product."""
    factors = list(left.args) if type(left) is MatMul else [left]

    def build(e: Any) -> Iterator[Any]:
        if e == left:
            yield right
        elif type(e) is MatMul:
            for k in range(len(e.args) - len(factors) + 1):
                if list(e.args[k : k + len(factors)]) == factors:
                    yield product(*e.args[:k], right, *e.args[k + len(factors) :])

    return build


def transposed(e: Any) -> Any:
    """Return the transpose with transposes pushed to the leaves."""
    kind = type(e)
    if kind is Transpose:
        return e.args[0]
    if kind is Identity:
        return e
    if kind in (ZeroMatrix, sympy.OneMatrix):
        return kind(*reversed(e.shape))
    if kind in (HadamardProduct, KroneckerProduct, sympy.MatAdd):
        return rebuilt(e, [transposed(x) for x in e.args])
    if kind is MatMul and all(map(is_matrix, e.args)):
        return product(*[transposed(x) for x in reversed(e.args)])
    return Transpose(e)


def _size(e: Any) -> tuple[int, str]:
    text = unicode_text(e)
    return len(list(sympy.preorder_traversal(e))), text
