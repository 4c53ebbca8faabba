"""Moves for softmax, masks, activations and norms."""

from __future__ import annotations

from typing import Any

from sympy import MatMul, Transpose

from otimes.algebra.explain.judged import proved
from otimes.algebra.explain.moves import Change, Scope
from otimes.algebra.language.linear import OneHot
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.rules.nonlinear import PREMISED, instances
from otimes.algebra.rules.rule import is_matrix, product

PREMISE = 0.5  # units of work


def by_premises(part: Any, search: Scope) -> list[Change] | None:
    """Apply an axiom whose premises follow from the hypotheses."""
    for name in PREMISED:
        for new, premises in instances(name, part):
            if premises[0][1].has(OneHot):
                continue  # a single row, for which there is a rule
            if all(follows(*premise, search.given) for premise in premises):
                return [Change(name, (), False, new)]
    return None


def follows(lhs: Any, rhs: Any, given: tuple[tuple[Any, Any], ...]) -> bool:
    """Return whether an equation, the premise of an axiom, is proved under the hypotheses."""
    return proved(lhs, rhs, given, PREMISE)


def transpose_inside(part: Any, search: Scope) -> list[Change] | None:
    """Rewrite g(X)ᵀ as g(Xᵀ), so that the transpose can move on to the leaves."""
    inner = part.args[0]
    if type(inner) is not Activation:
        return None
    new = Activation(inner.name, Transpose(inner.argument))
    return [Change("activation_transpose", (), True, new)]


def row_outside(part: Any, search: Scope) -> list[Change] | None:
    """Move the selection of a row or column out of a function: g(eᵢᵀ X) becomes eᵢᵀ g(X)."""
    (k, argument), *others = [(k, a) for k, a in enumerate(part.args) if is_matrix(a)]
    if others or type(argument) is not MatMul:
        return None
    first, last = argument.args[0], argument.args[-1]
    if type(first) is Transpose and type(first.args[0]) is OneHot:
        rest = product(*argument.args[1:])
        grouped, name = product(first, rest), _ROW_RULES.get(type(part), "norm_row")
    elif type(last) is OneHot and type(part) is Activation:
        rest = product(*argument.args[:-1])
        grouped, name = product(rest, last), "activation_row"
    else:
        return None
    inner = rebuilt(part, [rest if j == k else a for j, a in enumerate(part.args)])
    new = product(*[inner if x is rest else x for x in grouped.args])
    brackets = [Change("mul_assoc", (k,), True, grouped)] if grouped != argument else []
    return [*brackets, Change(name, (), True, new)]


_ROW_RULES = {Activation: "activation_row", RowSoftmax: "softmax_row"}
