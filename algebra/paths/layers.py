"""A product parsed into layers: which factors are sums, and the terms of each.

    Fixed   a factor that is on every path: an unembedding, a vector, a scalar
    Layer   a factor that is a sum; its terms form groups, and a HeadSum is one group of H terms
    Stack   a LayerProduct with a symbolic number of layers

A LayerProduct with a numeric number of layers becomes that many layers with the same groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb, prod
from typing import Any, TypeAlias

import sympy
from sympy import Identity, MatrixExpr

from otimes.algebra.errors import LanguageError
from otimes.algebra.language.binders import standardised
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import HeadSum
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.unicode import short_text

Count: TypeAlias = Any  # an int, or an expression where a number of heads or layers is a symbol
Substitution: TypeAlias = dict[sympy.Symbol, sympy.Expr]


@dataclass(frozen=True, slots=True)
class Group:
    """Terms of a layer: one for each value of the indices in `limits`, or a single term."""

    expression: MatrixExpr
    limits: tuple[tuple[sympy.Symbol, sympy.Expr], ...]
    order: int

    @property
    def count(self) -> Count:
        return whole(sympy.Mul(*[count for _, count in self.limits]))

    def units(self, together: bool) -> int:
        """Return the number of paths through these terms; 1 if their heads are kept as one sum."""
        return self.count if isinstance(self.count, int) and not together else 1


@dataclass(frozen=True, slots=True)
class Fixed:
    """A factor that is on every path."""

    expression: MatrixExpr
    values: Substitution


@dataclass(frozen=True, slots=True)
class Layer:
    """A factor that is a sum."""

    groups: tuple[Group, ...]
    values: Substitution

    def of_order(self, order: int) -> tuple[Group, ...]:
        return tuple([group for group in self.groups if group.order == order])

    @property
    def weights(self) -> tuple[Count, Count]:
        """The numbers of terms of order 0 and of order 1."""
        skip, head = (sum(group.count for group in self.of_order(order)) for order in (0, 1))
        return whole(skip), whole(head)

    @property
    def units(self) -> tuple[int, int]:
        """The number of paths through it by order, a sum over symbolic heads counting as one."""
        skip, head = (sum(g.units(together=False) for g in self.of_order(k)) for k in (0, 1))
        return skip, head


@dataclass(frozen=True, slots=True)
class Stack:
    """A LayerProduct with a symbolic number of layers."""

    slots: tuple[Fixed | Layer, ...]
    index: sympy.Symbol
    depth: sympy.Expr
    reverse: bool
    values: Substitution

    @property
    def layer(self) -> Layer:
        """The sum in its body; paths can be listed only if it is the whole body."""
        sums = [slot for slot in self.slots if isinstance(slot, Layer)]
        skips = sums[0].of_order(0) if len(self.slots) == 1 and sums else ()
        if len(skips) != 1 or skips[0].limits or scale_of_identity(skips[0].expression) != 1:
            raise LanguageError(
                f"the paths through {self.depth} layers cannot be listed, because the body of the "
                "LayerProduct is not of the form I + HeadSum(...): use the counts, or give a "
                f"number for {self.depth}"
            )
        return sums[0]

    @property
    def polynomial(self) -> list[Count]:
        """The number of terms of one layer by order."""
        return polynomial_of(Counter(s.weights for s in self.slots if isinstance(s, Layer)))


Slot: TypeAlias = Fixed | Layer | Stack


@dataclass(frozen=True, slots=True)
class Plan:
    """The factors of a product, the numbering of its layers, and the names in use."""

    slots: tuple[Slot, ...]
    from_left: bool
    numbers: dict[int, Any]
    names: frozenset[str]

    @property
    def applied(self) -> list[tuple[int, Slot]]:
        """The factors with their positions, in the order in which they are applied."""
        return list(enumerate(self.slots))[:: 1 if self.from_left else -1]


def clean_product(product: Any) -> MatrixExpr:
    """Return a product with checked, distinct names; raise LanguageError if it is not a product."""
    if not getattr(product, "is_Matrix", False) or not isinstance(product, sympy.Basic):
        raise LanguageError(
            f"expand_paths was given {type(product).__name__} {short_text(product, 60)}: a "
            "matrix product of layers is needed, such as (Identity(n) + A_2) * (Identity(n) + A_1)"
        )
    (product,), _, _ = standardised([product])
    inspect(product)
    return product


def _slots_of(e: Any, values: Substitution) -> Iterator[Slot]:
    """Yield the factors of a product from left to right, nested products flattened."""
    if isinstance(e, sympy.MatMul):
        for factor in e.args:
            yield from _slots_of(factor, values)
    elif isinstance(e, sympy.MatPow) and isinstance(e.exp, sympy.Integer) and e.exp > 0:
        slots = tuple(_slots_of(e.base, values))
        for _ in range(int(e.exp)):
            yield from slots
    elif isinstance(e, LayerProduct):
        body = tuple(_slots_of(e.body, values))
        if e.count.is_Integer:
            layers = range(int(e.count))
            for k in layers if e.reverse else reversed(layers):
                here = {e.index: sympy.Integer(k)}
                yield from [replace(slot, values={**slot.values, **here}) for slot in body]
            if not layers:
                yield Fixed(Identity(e.shape[0]), values)
        else:
            inner = [slot for slot in body if not isinstance(slot, Stack)]
            if len(inner) < len(body):
                raise LanguageError(
                    f"a LayerProduct over {e.count} layers holds another whose number of layers "
                    "is a symbol, and only one of the two may be"
                )
            yield Stack(tuple(inner), e.index, e.count, e.reverse, values)
    elif isinstance(e, sympy.MatAdd | HeadSum):
        groups = [group for group in _groups_of(e, ()) if group.count != 0]
        yield Layer(tuple(groups), values)
    else:
        yield Fixed(e, values)


def _groups_of(e: Any, limits: tuple[Any, ...]) -> Iterator[Group]:
    """Yield the terms of a sum, nested sums flattened."""
    if isinstance(e, sympy.MatAdd):
        for term in e.args:
            yield from _groups_of(term, limits)
    elif isinstance(e, HeadSum):
        yield from _groups_of(e.body, (*limits, *e.limits))
    else:
        yield Group(e, limits, 0 if scale_of_identity(e) is not None else 1)


def plan_of(product: MatrixExpr) -> Plan:
    """Return the layers of a product from `clean_product`, and their numbering."""
    from_left = any(part.reverse for part in product.atoms(LayerProduct))
    names = frozenset(symbol.name for symbol in product.free_symbols)
    plan = Plan(tuple(_slots_of(product, {})), from_left, {}, names)
    number: Any = 0
    for place, slot in plan.applied:
        if isinstance(slot, Layer):
            plan.numbers[place] = number
            number += 1
        elif isinstance(slot, Stack):
            number += slot.depth * sum(isinstance(s, Layer) for s in slot.slots)
    return plan


def scale_of_identity(e: Any) -> Any:
    """Return s if the term is s times an identity or a ⊗ of identities, else None."""
    if isinstance(e, Identity):
        return sympy.S.One
    if not isinstance(e, sympy.KroneckerProduct | sympy.MatMul):
        return None
    parts = [scale_of_identity(p) if getattr(p, "is_Matrix", False) else p for p in e.args]
    return None if None in parts else prod(parts, start=sympy.S.One)


# -- counts: polynomials whose k-th coefficient counts the paths of order k ----------------------


def whole(count: Any) -> Count:
    """Return an integer count as an int, any other count unchanged."""
    return int(count) if isinstance(count, int) or count.is_Integer else count


def polynomial_of(kinds: Counter[tuple[Count, Count]]) -> list[Count]:
    """Return the coefficients of ∏ (skip + head z)^times, without trailing zeros."""
    total: list[Count] = [1]
    for (skip, head), times in kinds.items():
        power = [comb(times, k) * skip ** (times - k) * head**k for k in range(times + 1)]
        total = power if total == [1] else multiply(total, power)
    while len(total) > 1 and total[-1] == 0:
        total.pop()
    return total


def multiply(a: Sequence[Count], b: Sequence[Count]) -> list[Count]:
    """Return the product of two polynomials given by their coefficients."""
    result: list[Count] = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return [c if isinstance(c, int) else whole(sympy.expand(c)) for c in result]


def power_of(stack: Stack, order: int) -> list[Count]:
    """Return the coefficients up to `order` of p(z)^L for a symbol L."""
    p, depth = stack.polynomial, stack.depth
    if p[0] == 0:
        raise LanguageError(
            f"there are no paths of order {order}: no path can skip any of the {depth} layers, "
            "because their terms include no identity"
        )
    if len(p) == 2:
        return [
            sympy.binomial(depth, k) * sympy.sympify(p[0]) ** (depth - k) * p[1] ** k
            for k in range(order + 1)
        ]
    result: list[Any] = [sympy.sympify(p[0]) ** depth]
    for m in range(1, order + 1):  # Euler's recurrence for the powers of a polynomial
        total = sum(
            (i * depth - m + i) * p[i] * result[m - i] for i in range(1, min(m, len(p) - 1) + 1)
        )
        result.append(sympy.factor(sympy.expand(total / (m * sympy.sympify(p[0])))))
    return result
