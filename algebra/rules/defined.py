"""Rules of the `Defined` classes: rotations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy
from sympy import MatAdd, MatMul, Transpose, ZeroMatrix

from otimes.algebra.language.defined import Rotation
from otimes.algebra.rules.rule import pairs, product, rule, split_scalars, total, with_pair
from otimes.algebra.rules.symbols import u, v


@rule(Transpose, of=Rotation, example=Transpose(Rotation(u)))
def rotation_transpose(e: Any) -> Iterator[Any]:
    yield Rotation(_sum((-1, e.args[0].args[0])))


@rule(MatMul, example=product(Rotation(u), Rotation(v)))
def rotation_mul(e: Any) -> Iterator[Any]:
    """Multiples of the same angles are added: R(a θ) R(b θ) = R((a + b) θ)."""
    for k, x, y in pairs(e, Rotation, Rotation):
        yield with_pair(e, k, Rotation(_sum((1, x.args[0]), (1, y.args[0]))))


def _sum(*terms: tuple[Any, Any]) -> Any:
    """Return a sum of multiples of angles; multiples of the same angles are added up."""
    found: dict[Any, Any] = {}
    for factor, angles in terms:
        for term in angles.args if type(angles) is MatAdd else (angles,):
            numbers, matrices = split_scalars(term) if type(term) is MatMul else ([], [term])
            rest = product(*matrices)
            found[rest] = found.get(rest, 0) + factor * sympy.Mul(*numbers)
    made = [_multiple(number, rest) for rest, number in found.items() if number != 0]
    return total(*made) if made else ZeroMatrix(*terms[0][1].shape)


def _multiple(number: Any, e: Any) -> Any:
    factors = e.args if type(e) is MatMul else (e,)
    return e if number == 1 else product(number, *factors)
