"""Sums over paths that are split at a layer, as sums over the paths through all layers.

Of the k layers that a path goes through, some s are below the layer m, and k - s are not:

    Σ_{s≤k} Ω_{k-s}(F[m], …, F[L-1]) Ω_s(F[0], …, F[m-1])    is    Ω_k(F[0], …, F[L-1])

where Ω_k is the `OrderSum` of order k. It may be transposed, a layer may be an expression of F[l],
such as S⁻¹ F[l] S, and a power of a number to an order is a factor of each layer.

>>> from otimes.algebra.language.linear import Family
>>> from otimes.algebra.language.unicode import unicode_text
>>> n, L, k = sympy.symbols("n L k", integer=True, positive=True)
>>> l, s, m = sympy.symbols("l s m", integer=True)
>>> F = Family("F", (L,), n, n)
>>> below, above = OrderSum(F[l], (l, m), s), OrderSum(F[l + m], (l, L - m), k - s)
>>> print(unicode_text(joined(HeadSum(above * below, (s, k + 1)))))
Σ←_l<L^(k) F[l]
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import sympy
from sympy import Identity, MatMul, Mul, Pow, Symbol, Transpose

from otimes.algebra.language.affine import never_negative
from otimes.algebra.language.binders import free_symbols, substituted
from otimes.algebra.language.layers import OrderSum
from otimes.algebra.language.linear import FamilyMember, HeadSum, as_product
from otimes.algebra.language.trees import rebuilt


def joined(e: HeadSum) -> Any:
    """Return a sum over how many layers of a path are below some layer as one over paths, or None.

    The last index of the sum is the number of these layers.
    """
    *others, (index, count) = e.limits
    if not isinstance(index, Symbol):
        return None
    order = sympy.expand(count - 1)
    factors = _factors(e.body)
    matrices = [a for a in factors if a.is_Matrix]
    numbers = [a for factor in factors if not factor.is_Matrix for a in Mul.make_args(factor)]
    for k, part in enumerate(matrices):
        if isinstance(part, OrderSum) and part.count == 0 and order:  # the identity, at order 0
            at = {index: sympy.S.Zero, sympy.expand(order - index): order}
            value = at.get(sympy.expand(part.order))
            if value is not None and all(_exists(a, index, order) for a in matrices):
                kept = [*numbers, *matrices[:k], *matrices[k + 1 :]]
                kept = kept if len(matrices) > 1 else [*kept, Identity(part.shape[0])]
                made = summed_up(substituted(as_product(kept), {index: value}))
                return rebuilt(e, [made, *e.args[1:-1]]) if others else made
    for k, pair in enumerate(pairwise(matrices)):
        if not all(isinstance(part, OrderSum) for part in pair):
            continue
        if {sympy.expand(part.order) for part in pair} != {index, sympy.expand(order - index)}:
            continue
        rest, (left, right) = _weighed(numbers, pair, index)
        whole = _whole(left, right, order)
        if whole is None:
            continue
        made = [*rest, *matrices[:k], whole, *matrices[k + 2 :]]
        if not any(index in free_symbols(part) for part in made):
            return rebuilt(e, [as_product(made), *e.args[1:-1]]) if others else as_product(made)
    return None


def summed_up(e: Any) -> Any:
    """Return an expression with its exponents, counts and orders added up, as in A^(i - i)."""
    if isinstance(e, FamilyMember | sympy.MatrixSymbol) or not e.args:
        return e
    if isinstance(e, sympy.Tuple):
        return sympy.Tuple(*[sympy.expand(part.doit()) for part in e.args])
    parts = [summed_up(part) for part in e.args]
    if isinstance(e, sympy.Pow | sympy.MatPow):
        parts[1] = sympy.expand(e.exp.doit())
    if isinstance(e, OrderSum):
        parts[2] = sympy.expand(e.order.doit())
    same = all(a is b for a, b in zip(parts, e.args, strict=True))
    return e if same else rebuilt(e, parts)


def _exists(e: Any, index: Symbol, last: Any) -> bool:
    """Return whether the order of a sum over paths is 0 or more for all values of an index."""
    if not isinstance(e, OrderSum):
        return True
    ends = [substituted(e.order, {index: value}).doit() for value in (sympy.S.Zero, last)]
    return all(map(never_negative, ends))


def at_layer(e: OrderSum, below: Any, above: Any) -> list[Any]:
    """Return the terms of a sum over paths of a numbered order: with s layers among the first.

    The first layers are `below` in number, and `above` layers follow them.
    """
    later, order = substituted(e.body, {e.index: below + e.index}), int(e.order)
    terms = []
    for s in range(order + 1):
        first = [OrderSum(e.body, (e.index, below), s, e.reverse)] * (s > 0)
        last = [OrderSum(later, (e.index, above), order - s, e.reverse)] * (s < order)
        terms.append(as_product([*first, *last] if e.reverse else [*last, *first]))
    return terms


def _factors(e: Any) -> list[Any]:
    """Return the factors of a matrix; those of a transpose, and sums over paths, transposed."""
    if isinstance(e, MatMul):
        return [part for factor in e.args for part in _factors(factor)]
    if isinstance(e, Transpose) and isinstance(e.arg, MatMul):
        return [
            part
            for factor in reversed(e.arg.args)
            for part in _factors(Transpose(factor) if factor.is_Matrix else factor)
        ]
    if isinstance(e, Transpose) and isinstance(e.arg, OrderSum):
        body, limit, order, reverse = e.arg.args
        turned = body.arg if isinstance(body, Transpose) else Transpose(body)
        return [OrderSum(turned, limit, order, not reverse)]
    return [e]


def _weighed(
    numbers: Sequence[Any], sums: Sequence[OrderSum], index: Symbol
) -> tuple[list[Any], list[OrderSum]]:
    """Return numbers less the powers cˢ to the order s of a sum, and sums over layers times c."""
    rest, made = list(numbers), []
    for paths in sums:
        bound = {index, paths.index}
        powers = [
            part
            for part in rest
            if isinstance(part, Pow)
            and sympy.expand(part.exp - paths.order) == 0
            and not bound & free_symbols(part.base)
        ]
        rest = [part for part in rest if part not in powers]
        layer = as_product([*[part.base for part in powers], paths.body])
        made.append(rebuilt(paths, [layer, *paths.args[1:]]))
    return rest, made


def _whole(left: OrderSum, right: OrderSum, order: Any) -> OrderSum | None:
    """Return the sum over paths through the layers of both, one after the other, or None."""
    if left.reverse != right.reverse:
        return None
    first, last = (left, right) if left.reverse else (right, left)
    layer = Symbol(f"{first.index.name}~", integer=True)  # a name that no symbol has
    following = substituted(first.body, {first.index: layer + first.count})
    if _added(following) != _added(substituted(last.body, {last.index: layer})):
        return None
    count = sympy.expand(first.count + last.count)
    return OrderSum(first.body, (first.index, count), order, first.reverse)


def _added(e: Any) -> Any:
    """Return an expression with the indices of its members added up."""
    added = {m: [sympy.expand(at.doit()) for at in m.indices] for m in e.atoms(FamilyMember)}
    return e.xreplace({m: m.family[tuple(indices)] for m, indices in added.items()})
