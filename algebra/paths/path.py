"""A path: the terms that it takes from the layers, and its expression.

The expression is the product of those terms, with adjacent Kronecker products multiplied factor by
factor: A_2 A_1 ⊗ W_2 W_1. If the number of heads or layers is symbolic, one Path represents all
paths of its shape, and its expression is their sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import sympy
from sympy import Identity, MatrixExpr, Tuple

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.binders import fresh_name, substituted
from otimes.algebra.language.declared import Declared
from otimes.algebra.language.latex import latex
from otimes.algebra.language.linear import HeadSum, as_product, kron
from otimes.algebra.language.sizes import same_size
from otimes.algebra.paths.layers import (
    Count,
    Fixed,
    Group,
    Layer,
    Plan,
    Stack,
    Substitution,
    scale_of_identity,
    whole,
)


class IncreasingSum(Declared):
    """The sum of `body` over layers `indices[0] < indices[1] < …`, all from 0 to `count` - 1."""

    def __new__(cls, body: MatrixExpr, indices: Any, count: Any) -> IncreasingSum:
        return MatrixExpr.__new__(cls, body, Tuple(*indices), sympy.sympify(count))

    @property
    def free_symbols(self) -> set[Any]:
        return (self.args[0].free_symbols - set(self.args[1])) | self.args[2].free_symbols

    def terms(self) -> Iterator[MatrixExpr]:
        """Yield the terms of the sum; the number of layers must be an integer."""
        body, indices, count = self.args
        if not count.is_Integer:
            raise OtimesError(
                f"the terms of a sum over {count} layers cannot be listed: give a number"
            )
        for layers in combinations(range(int(count)), len(indices)):
            yield substituted(body, dict(zip(indices, layers, strict=True)))

    def tex(self, printer: Any) -> str:
        body, indices, count = self.args
        chain = " < ".join(printer._print(index) for index in indices)
        return rf"\sum_{{1 \le {chain} \le {printer._print(count)}}} {printer._print(body)}"


@dataclass(frozen=True, slots=True)
class Step:
    """The term that a path takes from a layer that it does not skip.

    `layer` is the number of the layer, or a symbol for a symbolic depth. `heads` are the index
    values in a HeadSum (symbols if the path sums over them), () for other terms. `term` is the
    term, unevaluated.
    """

    layer: Any
    heads: tuple[Any, ...]
    term: MatrixExpr


@dataclass(frozen=True, slots=True)
class Taken:
    """The choice in one layer: a group of terms, and its index values (None: summed over)."""

    group: Group
    heads: tuple[int, ...] | None


class Path:
    """One path, or all paths of one shape if the number of heads or layers is symbolic.

    `.order`, `.steps` (its terms other than the identity, in the order in which they are applied),
    `.count` (the number of paths that it represents), `.product` (the unevaluated product),
    `.expression` (with Kronecker products multiplied factor by factor), `.latex()`.
    """

    __slots__ = ("_layers", "_plan", "_stacks", "order")

    def __init__(
        self,
        plan: Plan,
        order: int,
        layers: dict[int, Taken],
        stacks: dict[int, tuple[Taken, ...]],
    ) -> None:
        self.order = order
        self._plan = plan
        self._layers = layers  # by slot; a layer that is not a key is skipped
        self._stacks = stacks

    @property
    def count(self) -> Count:
        """The number of paths that it represents: 1, or an expression in the symbolic numbers."""
        total: Count = 1
        for taken in self._layers.values():
            total *= taken.group.count if taken.heads is None else 1
        for place, several in self._stacks.items():
            slot = self._plan.slots[place]
            assert isinstance(slot, Stack)
            total *= sympy.binomial(slot.depth, len(several))
            total *= prod([taken.group.count for taken in several])
        return whole(total)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The terms other than the identity, from the first layer on."""
        return self._read()[1]

    @property
    def layers(self) -> tuple[Any, ...]:
        """The numbers of the layers that it does not skip, in increasing order."""
        return tuple(step.layer for step in self.steps)

    @property
    def product(self) -> MatrixExpr:
        """The unevaluated product of the terms, without identities."""
        factors, _, limits, layers = self._read()
        scalars, matrices = _flat(factors)
        return _summed(as_product([*scalars, *matrices]), limits, layers)

    @property
    def expression(self) -> MatrixExpr:
        """The product with adjacent Kronecker products multiplied factor by factor."""
        factors, _, limits, layers = self._read()
        return _summed(_mixed(factors), limits, layers)

    def latex(self) -> str:
        """Return the TeX of the expression."""
        return latex(self.expression)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __repr__(self) -> str:
        through = ", ".join(map(str, self.layers))
        return f"<path of order {self.order}{' through layers ' + through if through else ''}>"

    def _read(self) -> tuple[list[Any], tuple[Step, ...], list[Any], list[Any]]:
        """Return the factors from left to right, the steps, and the symbolic heads and layers."""
        used = set(self._plan.names)
        many = self.order > 1
        factors: list[Any] = []
        steps: list[Step] = []
        limits: list[Any] = []
        open_layers: list[Any] = []

        def fresh(symbol: sympy.Symbol, number: Any) -> sympy.Symbol:
            name = fresh_name(f"{symbol.name}_{number}" if many else symbol.name, used)
            used.add(name)
            return sympy.Symbol(name, **symbol.assumptions0)

        def term(taken: Taken, values: Substitution, layer: Any, label: Any) -> MatrixExpr:
            binding: Substitution = dict(values)
            if taken.heads is None:
                heads: list[Any] = [fresh(index, label) for index, _ in taken.group.limits]
                limits.extend(
                    (head, substituted(count, binding))
                    for head, (_, count) in zip(heads, taken.group.limits, strict=True)
                )
            else:
                heads = [sympy.Integer(head) for head in taken.heads]
            binding.update(zip([index for index, _ in taken.group.limits], heads, strict=True))
            expression = substituted(taken.group.expression, binding)
            if taken.group.order:
                steps.append(Step(layer, tuple(heads), expression))
            return expression

        for place, slot in enumerate(self._plan.slots):
            if isinstance(slot, Fixed):
                factors.append(substituted(slot.expression, slot.values))
            elif isinstance(slot, Layer):
                number = self._plan.numbers[place]
                taken = self._layers.get(place) or Taken(slot.of_order(0)[0], ())
                label = number + 1 if isinstance(number, int) else place + 1
                factors.append(term(taken, slot.values, number, label))
            else:
                several = self._stacks.get(place, ())
                labels = [fresh(slot.index, k) for k in range(1, len(several) + 1)]
                if labels:
                    open_layers.append((labels, slot.depth))
                else:
                    skip = slot.layer.of_order(0)[0].expression
                    factors.append(substituted(skip, slot.values))
                applied = list(zip(several, labels, range(1, len(several) + 1), strict=True))
                for taken, label, k in applied[:: 1 if slot.reverse else -1]:
                    factors.append(term(taken, {**slot.values, slot.index: label}, label, k))
        if not self._plan.from_left:
            steps.reverse()
        return factors, tuple(steps), limits, open_layers


def _summed(e: MatrixExpr, heads: Sequence[Any], layers: Sequence[Any]) -> MatrixExpr:
    """Return the sum over the symbolic indices of a path."""
    single = [(labels[0], depth) for labels, depth in layers if len(labels) == 1]
    limits = [*single, *heads]
    e = HeadSum(e, *limits) if limits else e
    for labels, depth in layers:
        e = IncreasingSum(e, labels, depth) if len(labels) > 1 else e
    return e


def _flat(factors: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the scalars and the matrices of a product, without identities if others remain."""
    scalars: list[Any] = []
    matrices: list[Any] = []
    identity = None
    for factor in factors:
        parts = [factor]
        if isinstance(factor, sympy.MatMul):
            inner, parts = _flat(factor.args)
            scalars += inner
        for part in parts:
            is_matrix = getattr(part, "is_Matrix", False)
            scale = scale_of_identity(part) if is_matrix else None
            if scale is None:
                (matrices if is_matrix else scalars).append(part)
                continue
            if scale != 1:
                scalars.append(scale)
            identity = identity or (part if scale == 1 else Identity(part.shape[0]))
    if not matrices and identity is not None:
        matrices.append(identity)
    return scalars, matrices


def _mixed(factors: Sequence[Any]) -> MatrixExpr:
    """Return the product with adjacent Kronecker products multiplied factor by factor."""
    scalars, matrices = _flat(factors)
    runs: list[tuple[Any, list[list[Any]]]] = []
    for matrix in matrices:
        parts = _kron_parts(matrix)
        last = runs[-1][1] if runs else []
        if (
            len(parts) > 1
            and len(parts) == len(last)
            and all(same_size(a[-1].shape[1], b.shape[0]) for a, b in zip(last, parts, strict=True))
        ):
            for column, part in zip(last, parts, strict=True):
                column.append(part)
            runs[-1] = (None, last)
        else:
            runs.append((matrix, [[part] for part in parts]))
    result = []
    for matrix, columns in runs:
        if matrix is None:
            flat = [_flat(column) for column in columns]
            scalars += [scalar for few, _ in flat for scalar in few]
            matrix = kron(*[as_product(matrices) for _, matrices in flat])
        result.append(matrix)
    return as_product([*scalars, *result])


def _kron_parts(e: Any) -> list[Any]:
    if not isinstance(e, sympy.KroneckerProduct):
        return [e]
    return [part for argument in e.args for part in _kron_parts(argument)]
