"""Hypotheses as rules: what is given may be used like any rule, and is named like one.

The first equation given is the rule `given_1`, its transpose `given_1_transpose`, and so on. What
it gives by facts that are not equational is `given_1_turned` (square A B = I gives B A = I) and
`given_1_null` (Aᵀ A = 0 gives A = 0). A free index of an equation stands for each of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product as every
from typing import Any

import sympy
from sympy import HadamardProduct, Identity, KroneckerProduct, MatMul, Transpose, ZeroMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra.binders import substituted
from algebra.entailment import consequences
from algebra.language import FamilyMember, OneHot, rebuilt
from algebra.rules.rule import Rule, is_matrix, product
from algebra.shapes import inspect
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
        for k, (_, left, right) in enumerate(consequences(number - 1, lhs, rhs)):
            what = "null" if type(right) is ZeroMatrix else "turned"
            sides.append((f"given_{number}_{what}{k or ''}", left, right))
        for name, left, right in sides:
            if _size(left) < _size(right):
                left, right = right, left
            reading = f"{unicode_text(left)} = {unicode_text(right)}"
            kinds = (type(left), MatMul)
            rules[name] = Rule(name, reading, kinds, _replacing(left, right))
    return rules


def _replacing(left: Any, right: Any) -> Callable[[Any], Iterator[Any]]:
    """Return the rule that puts one side for the other, as a whole or inside a product."""
    free = list(inspect(left, right).indices.values())

    def build(e: Any) -> Iterator[Any]:
        yield from _replaced(e, left, right)
        if free:
            names = [index for index, _ in free]
            for values in every(_indices(e), repeat=len(names)):
                at = dict(zip(names, values, strict=True))
                if list(values) != names:
                    yield from _replaced(e, substituted(left, at), substituted(right, at))

    return build


def _indices(e: Any) -> list[Any]:
    """Return what stands as an index in an expression."""
    found = [i for x in e.atoms(FamilyMember) for i in x.indices]
    found += [i for x in e.atoms(MatrixElement) for i in x.args[1:]]
    found += [x.args[0] for x in e.atoms(OneHot)]
    return sorted(dict.fromkeys(found), key=str)


def _replaced(e: Any, left: Any, right: Any) -> Iterator[Any]:
    factors = list(left.args) if type(left) is MatMul else [left]
    if e == left:
        yield right
    elif type(e) is MatMul:
        for k in range(len(e.args) - len(factors) + 1):
            if list(e.args[k : k + len(factors)]) == factors:
                yield product(*e.args[:k], right, *e.args[k + len(factors) :])


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
