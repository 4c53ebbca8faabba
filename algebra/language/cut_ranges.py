"""Ranges of sums and products over layers, cut where index arithmetic needs it.

    Π_{l<p+q} f(l)    Π_{l<q} f(p + l) Π_{l<p} f(l), and a sum likewise
    Π_{l<96} f(l)     f(95) Π_{l<95} f(l), where another product is over 95 layers
    Π_{l<2L} f(l)     Π_{l<L} f(2l + 1) f(2l), and a sum likewise
    Σ_{j≤i+1} f(j)    Σ_{j≤i} f(j) + f(i + 1)
    Σ_{k<m+1} f(k)    Σ_{k<m} f(k) + f(m), where k is an exponent in f
    Σ_{k<m} Ω_{k+1}   Σ_{k<m+1} Ω_k - Ω_0, for the sums Ω_k over paths of order k
    Σ_k cᵏ Ω_k        the sum of the Ω_k of layers c F[l]
    Σ_k cᴸ⁻ᵏ Ω_k      Π_{l<L} (c I + F[l]), over all orders k
    Σ_s Ω_{k-s} Ω_s   Ω_k, where the paths are split at a layer (`split_orders`)
    (Π_l F_l G_l)⁻¹   the product of G_l⁻¹ F_l⁻¹ in the other direction, and (F_lᵀ)⁻¹ = (F_l⁻¹)ᵀ

>>> from otimes.algebra.language.linear import Family
>>> from otimes.algebra.language.unicode import unicode_text
>>> n, L = sympy.symbols("n L", integer=True, positive=True)
>>> l = sympy.Symbol("l", integer=True)
>>> F = Family("F", (2 * L,), n, n)
>>> print(unicode_text(cut(LayerProduct(F[l], (l, 2 * L)), frozenset({n, L}), frozenset())))
∏←_l<L (F[2*l + 1] F[2*l])
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import sympy
from sympy import Mul, Symbol

from otimes.algebra.language.affine import never_negative
from otimes.algebra.language.binders import free_symbols, substituted
from otimes.algebra.language.inverse_members import is_inverse
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import FamilyMember, HeadSum, as_product, matadd, matmul
from otimes.algebra.language.split_orders import at_layer, joined, summed_up
from otimes.algebra.language.trees import parts_of, rebuilt

MOST = 16  # terms or factors that are written out
MANY = 8  # layers: of fewer the product is multiplied out
FEW = 2  # layers that are split off from many


def constants_of(expressions: Sequence[Any], sizes: AbstractSet[Symbol]) -> frozenset[Any]:
    """Return where ranges may be cut: at the sizes p that are added to an index, as in F[p + l].

    Of many numbered layers also at the numbers i of `At(i)`, and at the numbers of other products.
    """
    members = {m for e in expressions for m in parts_of(e, FamilyMember)}
    added = frozenset(s for m in members for i in m.indices for s in i.free_symbols & sizes)
    products = {e.count for one in expressions for e in parts_of(one, LayerProduct)}
    numbers = {count for count in products if count.is_Integer}
    if not any(count >= MANY for count in numbers):
        return added
    shifts = {i.as_coeff_Add() for m in members for i in m.indices}
    first = {At(more) for more, rest in shifts if rest != 0 and more.is_Integer and more > 0}
    return added | numbers | first


class At(NamedTuple):
    """A number that is added to the index of a member."""

    number: sympy.Integer


def _place(count: sympy.Integer, constants: AbstractSet[Any]) -> sympy.Integer | None:
    """Return after how many layers a product over many is cut: both parts are few, or known."""
    known = {one for one in constants if isinstance(one, sympy.Integer)}
    added = {one.number for one in constants if isinstance(one, At)}
    for place in (*sorted(added), *sorted(known - added, reverse=True)):
        parts = place, count - place
        if all(0 < part <= FEW or (part > 0 and part in known) for part in parts):
            return place
    return None


def cut(e: Any, sizes: AbstractSet[Symbol], constants: AbstractSet[Any]) -> Any:
    """Return an expression with its ranges cut; at one of `constants`, if one is possible."""
    if not isinstance(e, sympy.Basic) or not e.args or isinstance(e, FamilyMember):
        return e
    arguments = [cut(a, sizes, constants) for a in e.args]
    same = all(a is b for a, b in zip(arguments, e.args, strict=True))
    e = e if same else rebuilt(e, arguments)
    if is_inverse(e) and e.exp == -1 and parts_of(e, FamilyMember):
        inverse = _inverse(e.base)
        return e if inverse is None or inverse == e else cut(inverse, sizes, constants)
    if isinstance(e, HeadSum):
        if (whole := joined(e)) is not None:
            return cut(whole, sizes, constants)
        e = _scaled_layers(e)
    if isinstance(e, OrderSum):
        return _cut_paths(e, sizes, constants)
    if isinstance(e, LayerProduct | HeadSum) and len(e.args[1:]) - isinstance(e, LayerProduct) == 1:
        index, count = e.args[1]
        made = _cut(e, index, sympy.expand(count), sizes, constants)
        return e if made is None else cut(made, sizes, constants)
    return e


def _inverse(e: Any) -> Any:
    """Return the inverse of a matrix; of a product of square matrices that of each, in reverse.

    A product without inverse of its factors, which are not square, has none either: then None.
    """
    if is_inverse(e) and e.exp == -1:
        return e.base
    if isinstance(e, sympy.Transpose):
        inverse = _inverse(e.arg)
        return None if inverse is None else sympy.Transpose(inverse)
    if isinstance(e, LayerProduct):
        inverse = _inverse(e.body)
        return None if inverse is None else rebuilt(e, [inverse, e.args[1], not e.reverse])
    if isinstance(e, sympy.MatMul):
        factors = [_inverse(part) for part in reversed(e.args) if part.is_Matrix]
        return None if None in factors or len(factors) < len(e.args) else matmul(*factors)
    return sympy.Inverse(e) if e.shape[0] == e.shape[1] else None


def _cut(
    e: Any, index: Any, count: Any, sizes: AbstractSet[Symbol], constants: AbstractSet[Any]
) -> Any:
    """Return a sum or product over a range in parts, or None if it stays whole."""
    if isinstance(e, LayerProduct) and count.is_Integer and count >= MANY:
        return _cut_at(e, index, count, _place(count, constants))
    if isinstance(count, Symbol | sympy.Integer) or not isinstance(index, Symbol):
        return _from_order_zero(e, index, count) if isinstance(e, HeadSum) else None
    more, rest = count.as_coeff_Add()
    terms = sympy.Add.make_args(rest)
    if isinstance(e, HeadSum) and (made := _from_order_zero(e, index, count)) is not None:
        return made
    if len(terms) == 1 and isinstance(rest, Symbol):
        whole = 1 if rest not in sizes and not _is_number_in(e.body, index) else 0
        if not more.is_Integer or not whole < more <= MOST:
            return None
        if rest in sizes and not _is_number_in(e.body, index):
            return None  # which `index_arithmetic` splits where it must
        ends = [rest + whole + k for k in range(int(more) - whole)]
        return _joined(e, _over(e, e.body, index, rest + whole), [_at(e, end) for end in ends])
    if len(terms) == 1 and more == 0:
        times, one = rest.as_coeff_Mul()
        if not (times.is_Integer and 1 < times <= MOST and isinstance(one, Symbol)):
            return None
        parts = [_at(e, times * index + k) for k in range(int(times))]
        return _over(e, _joined(e, parts[0], parts[1:]), index, one)
    if not all(isinstance(term, Symbol) for term in terms):
        return None
    first = _first(terms, sizes, constants)
    later = _over(e, _at(e, first + index), index, sympy.expand(count - first))
    return _joined(e, _over(e, e.body, index, first), [later])


def _first(terms: Sequence[Any], sizes: AbstractSet[Symbol], constants: AbstractSet[Any]) -> Any:
    """Return which of the terms of a count is cut off first."""
    return min(terms, key=lambda s: (s in sizes, s not in constants, str(s)))


def _cut_paths(e: OrderSum, sizes: AbstractSet[Symbol], constants: AbstractSet[Any]) -> Any:
    """Return a sum over paths of a numbered order through p + q layers in parts.

    There is one path through all layers, and none through more.
    """
    count = sympy.expand(e.count)
    more = sympy.expand(e.order - count)
    known = all(symbol.is_positive for symbol in more.free_symbols)
    open_ = not (count.is_Integer and e.order.is_Integer)
    if open_ and known and never_negative(more):
        return (
            sympy.ZeroMatrix(*e.shape) if more != 0 else LayerProduct(e.body, e.args[1], e.reverse)
        )
    terms = sympy.Add.make_args(count)
    if not (e.order.is_Integer and 0 < e.order <= MOST) or len(terms) == 1:
        return e
    if not all(isinstance(term, Symbol) for term in terms):
        return e
    first = _first(terms, sizes, constants)
    parts = at_layer(e, first, sympy.expand(count - first))
    return cut(matadd(*parts), sizes, constants)


def _cut_at(e: Any, index: Any, count: Any, place: Any) -> Any:
    """Return a product over many layers in two parts; one of a few layers is written out."""
    if place is None or not isinstance(index, Symbol):
        return None

    def part(first: Any, many: Any) -> Any:
        if many <= FEW:
            one, *later = [_at(e, first + k) for k in range(int(many))]
            return _joined(e, one, later) if later else one
        return _over(e, _at(e, first + index) if first else e.body, index, many)

    return _joined(e, part(sympy.S.Zero, place), [part(place, count - place)])


def _joined(e: Any, first: Any, later: Sequence[Any]) -> Any:
    """Return the sum of the parts of a sum, or the product of those of a product, in its order."""
    if isinstance(e, HeadSum):
        return matadd(first, *later)
    return matmul(first, *later) if e.reverse else matmul(*later[::-1], first)


def _over(e: Any, body: Any, index: Any, count: Any) -> Any:
    arguments = [body, sympy.Tuple(index, count), *e.args[2:]]
    return rebuilt(e, arguments)


def _at(e: Any, value: Any) -> Any:
    """Return the body at a value of the index."""
    return summed_up(substituted(e.body, {e.args[1][0]: value}))


def _is_number_in(e: Any, index: Symbol) -> bool:
    """Return whether an index is in an exponent, or in the end of a range."""
    if index not in free_symbols(e):
        return False
    if isinstance(e, sympy.Pow | sympy.MatPow) and index in free_symbols(e.exp):
        return True
    if isinstance(e, FamilyMember):
        return False
    if isinstance(e, sympy.Tuple):
        return True
    return any(_is_number_in(part, index) for part in e.args)


def _scaled_layers(e: HeadSum) -> Any:
    """Return a sum over orders k, where the term has a factor cᵏ or c^(L - k), without this."""
    body, indices = e.body, {limit[0] for limit in e.limits}
    if not isinstance(body, sympy.MatMul):
        return e
    orders = [part for part in body.args if isinstance(part, OrderSum) and part.order in indices]
    if len(orders) != 1:
        return e
    (paths,) = orders
    numbers = [part for factor in body.args if not factor.is_Matrix for part in _factors(factor)]
    fixed = [
        part
        for part in numbers
        if isinstance(part, sympy.Pow) and not {paths.index, *indices} & free_symbols(part.base)
    ]
    up = [part for part in fixed if part.exp == paths.order]
    if up:
        layer = matmul(Mul(*[part.base for part in up]), paths.body)
        body = _without(body, up, paths, rebuilt(paths, [layer, *paths.args[1:]]))
        return _scaled_layers(rebuilt(e, [body, *e.args[1:]]))
    down = [part for part in fixed if sympy.expand(paths.count - paths.order - part.exp) == 0]
    whole = e.limits == (sympy.Tuple(paths.order, paths.count + 1),)
    alone = [part for part in body.args if part.is_Matrix] == [paths]
    if not down or not whole or not alone or paths.order in free_symbols(paths.body):
        return e
    skipped = matmul(Mul(*[part.base for part in down]), sympy.Identity(paths.shape[0]))
    layer = matadd(skipped, paths.body)
    product = LayerProduct(layer, paths.args[1], reverse=paths.reverse)
    rest = [part for part in numbers if part not in down]
    if any(paths.order in free_symbols(part) for part in rest):
        return e
    return as_product([*rest, product])


def _factors(number: Any) -> Sequence[Any]:
    return Mul.make_args(number)


def _without(e: Any, dropped: Sequence[Any], paths: Any, new: Any) -> Any:
    """Return a product without some of its numbers, and with other paths."""
    numbers = [part for factor in e.args if not factor.is_Matrix for part in _factors(factor)]
    rest = [part for part in numbers if part not in dropped]
    matrices = [new if part is paths else part for part in e.args if part.is_Matrix]
    return as_product([*rest, *matrices])


def _from_order_zero(e: HeadSum, index: Any, count: Any) -> Any:
    """Return a sum over paths of order k + c as one of all orders less the first ones, or None."""
    if not isinstance(index, Symbol):
        return None
    sums = [s for s in parts_of(e.body, OrderSum) if index in free_symbols(s.order)]
    shifts = {sympy.expand(s.order - index) for s in sums}
    if len(shifts) != 1:
        return None
    (shift,) = shifts
    if not (shift.is_Integer and 0 < shift <= MOST):
        return None
    body = summed_up(substituted(e.body, {index: index - shift}))
    whole = HeadSum(body, (index, count + shift))
    first = [summed_up(substituted(body, {index: k})) for k in range(int(shift))]
    return matadd(whole, *[matmul(-1, part) for part in first])
