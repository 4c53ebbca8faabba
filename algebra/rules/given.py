"""Hypotheses as rewrite rules.

The first hypothesis is the rule `given_1`, its transpose is `given_1_transpose`, and so on. Two
consequences are rules, too: `given_1_turned` (A B = I for square A, B implies B A = I) and
`given_1_null` (Aᵀ A = 0 implies A = 0). A free index of a hypothesis is universally quantified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product as every
from typing import Any

import sympy
from sympy import HadamardProduct, Identity, KroneckerProduct, MatMul, Transpose, ZeroMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.decide.entailment import consequences
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.linear import FamilyMember, OneHot
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.rules.rule import Rule, is_matrix, product

Pair = tuple[Any, Any]


def as_pair(given: Any) -> Pair:
    """Return the two sides of a hypothesis, a pair or a `sympy.Eq`."""
    return (given.lhs, given.rhs) if isinstance(given, sympy.Eq) else (given[0], given[1])


@lru_cache(maxsize=256)
def hypotheses(given: tuple[Pair, ...]) -> dict[str, Rule]:
    """Return the hypotheses as rules, by name; each rewrites its longer side to its shorter one."""
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
            rules[name] = Rule(name, left, (type(left), MatMul), _replacing(left, right))
    return rules


def _replacing(left: Any, right: Any) -> Callable[[Any], Iterator[Any]]:
    """Return a rule's `build`: it replaces `left` by `right`, also inside a product."""
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
    """Return the indices that occur in an expression."""
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
