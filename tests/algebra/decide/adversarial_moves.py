"""What the attacks do to an expression: sound rewriting, and the mistakes that names invite.

A move is given the draws (an `adversarial.Attack`), a part of a tree and what is bound around it;
it returns the part rewritten, or None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
from sympy import Identity, Symbol, Transpose

from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import FamilyMember, HeadSum, matadd, matmul
from otimes.algebra.language.trees import rebuilt
from tests.algebra.bound_trees import (
    HEADS,
    LAYERS,
    Binding,
    binds,
    captures,
    ranged,
    renamed,
    uses,
)

Move = Callable[[Any, Any, Binding], Any]


def _rename(a: Any, e: Any, scope: Binding) -> Any:
    """Another name for a bound index; one in three times without a look at what is captured."""
    if not isinstance(e, HEADS + LAYERS) or len(binds(e)) != 1:
        return None
    ((old, count),) = binds(e).items()
    new = a.draw.choice(a.pool)
    careless = a.draw.random() < 0.4
    if not careless and (uses(e.args[0], new) or captures(e.args[0], old, new)):
        return None
    body = renamed(e.args[0], old, new)
    if isinstance(e, LAYERS):
        return rebuilt(e, [body, sympy.Tuple(new, count), *e.args[2:]])
    return e.func(body, *[(new, limit[1]) for limit in e.args[1:]])


def _other_index(a: Any, e: Any, scope: Binding) -> Any:
    """Another index of the same range, which is mostly a mistake."""
    if not isinstance(e, FamilyMember):
        return None
    at = a.draw.randrange(len(e.indices))
    options = [i for i in a.visible(scope, e.family.counts[at]) if i != e.indices[at]]
    if not options:
        return None
    indices = list(e.indices)
    indices[at] = a.draw.choice(options)
    return e.family[tuple(indices)]


def _exchange(a: Any, e: Any, scope: Binding) -> Any:
    """Two sums exchanged, or one made of two; the names of their indices may be the same."""
    if not isinstance(e, HeadSum):
        return None
    if len(e.args) > 2:
        if a.draw.random() < 0.5:
            return HeadSum(e.args[0], *e.args[:0:-1])
        return HeadSum(HeadSum(e.args[0], *e.args[2:]), e.args[1])
    if isinstance(e.args[0], HeadSum):
        (outer,), (inner, *more) = e.args[1:], e.args[0].args[1:]
        body = HeadSum(e.args[0].args[0], *more) if more else e.args[0].args[0]
        if a.draw.random() < 0.5:
            return HeadSum(e.args[0].args[0], outer, inner, *more)
        return HeadSum(HeadSum(body, outer), inner)
    return None


def _constant(a: Any, e: Any, scope: Binding) -> Any:
    """A sum of equal terms as a multiple, seldom where they are not equal."""
    if not isinstance(e, HeadSum):
        return None
    index, count = a.draw.choice(e.args[1:])
    if uses(e.args[0], index) and a.draw.random() < 0.8:
        return None
    others = [limit for limit in e.args[1:] if limit != sympy.Tuple(index, count)]
    return matmul(count, HeadSum(e.args[0], *others) if others else e.args[0])


def _pull_out(a: Any, e: Any, scope: Binding) -> Any:
    """A first factor taken out of a sum, seldom where it depends on the index."""
    if not isinstance(e, HeadSum) or not isinstance(e.args[0], sympy.MatMul):
        return None
    first, *rest = e.args[0].args
    if not rest or not getattr(rest[-1], "is_Matrix", False):
        return None
    if any(uses(first, limit[0]) for limit in e.args[1:]) and a.draw.random() < 0.8:
        return None
    return matmul(first, HeadSum(matmul(*rest) if len(rest) > 1 else rest[0], *e.args[1:]))


def _push_in(a: Any, e: Any, scope: Binding) -> Any:
    """A factor put into a sum or product, where its indices may be captured."""
    if not isinstance(e, sympy.MatMul | sympy.MatAdd) or len(e.args) != 2:
        return None
    x, y = e.args
    if not isinstance(y, HeadSum):
        return None
    careless = a.draw.random() < 0.5
    if not careless and any(uses(x, limit[0]) for limit in y.args[1:]):
        return None
    if isinstance(e, sympy.MatMul):
        return HeadSum(matmul(x, y.args[0]), *y.args[1:])
    count = sympy.Mul(*[limit[1] for limit in y.args[1:]])
    return HeadSum(matadd(matmul(1 / count, x), y.args[0]), *y.args[1:])


def _turn(a: Any, e: Any, scope: Binding) -> Any:
    """The transpose of a product over layers as one the other way round, and back."""
    if isinstance(e, Transpose) and isinstance(e.args[0], LAYERS):
        x = e.args[0]
        return rebuilt(x, [Transpose(x.args[0]), *x.args[1:-1], sympy.sympify(not x.reverse)])
    if isinstance(e, LAYERS):
        turned = sympy.sympify(not e.reverse)
        return Transpose(rebuilt(e, [Transpose(e.args[0]), *e.args[1:-1], turned]))
    if isinstance(e, Transpose) and isinstance(e.args[0], HeadSum):
        return HeadSum(Transpose(e.args[0].args[0]), *e.args[0].args[1:])
    return None


def _distribute(a: Any, e: Any, scope: Binding) -> Any:
    if isinstance(e, HeadSum) and isinstance(e.args[0], sympy.MatAdd):
        return matadd(*[HeadSum(term, *e.args[1:]) for term in e.args[0].args])
    if isinstance(e, sympy.MatMul) and isinstance(e.args[-1], sympy.MatAdd):
        return matadd(*[matmul(*e.args[:-1], term) for term in e.args[-1].args])
    return None


def _all_orders(a: Any, e: Any, scope: Binding) -> Any:
    """∏ (I + X) as the sum over all orders; the index of the order may be any."""
    if not isinstance(e, LayerProduct) or not isinstance(e.args[0], sympy.MatAdd):
        return None
    if len(e.args[0].args) != 2 or not isinstance(e.count, Symbol) or e.count in scope:
        return None
    first, second = e.args[0].args
    rest = second if first == Identity(a.n) else matadd(e.args[0], matmul(-1, Identity(a.n)))
    k = a.draw.choice(a.pool)
    return HeadSum(OrderSum(rest, (e.index, e.count), k, e.reverse), (k, e.count + 1))


def _reverse(a: Any, e: Any, scope: Binding) -> Any:
    if not isinstance(e, LAYERS):
        return None
    return rebuilt(e, [*e.args[:-1], sympy.sympify(not e.reverse)])


def _other_count(a: Any, e: Any, scope: Binding) -> Any:
    """Another number of layers of the same range: those before another layer."""
    if not isinstance(e, LAYERS):
        return None
    index, count = e.args[1]
    options = [*a.visible(scope, ranged(count, scope)), ranged(count, scope)]
    options = [i for i in options if i in scope or i in (a.L, a.H)]
    new = a.draw.choice(options) if options else count
    return rebuilt(e, [e.args[0], sympy.Tuple(index, new), *e.args[2:]])


def _no_transpose(a: Any, e: Any, scope: Binding) -> Any:
    return e.args[0] if isinstance(e, Transpose) else None


def _commute(a: Any, e: Any, scope: Binding) -> Any:
    """Addends in another order; factors, too, which is mostly a mistake."""
    if isinstance(e, sympy.MatAdd):
        return matadd(*e.args[::-1])
    return matmul(*e.args[::-1]) if isinstance(e, sympy.MatMul) else None


def _double(a: Any, e: Any, scope: Binding) -> Any:
    """One more limit, whose index may be bound already, over the number of its values."""
    if not isinstance(e, HeadSum):
        return None
    i, count = a.draw.choice(a.pool), a.draw.choice((a.L, a.H))
    limits = [(i, count), *e.args[1:]] if a.draw.random() < 0.5 else [*e.args[1:], (i, count)]
    return matmul(1 / count, HeadSum(e.args[0], *limits))


def _delta(a: Any, e: Any, scope: Binding) -> Any:
    """F[i] as a sum over all layers in which a Kronecker delta leaves one."""
    if not isinstance(e, FamilyMember) or len(e.indices) > 1 or not e.indices[0].is_Symbol:
        return None
    (i,), (count,) = e.indices, e.family.counts
    k = a.draw.choice(a.pool)
    if k == i and a.draw.random() < 0.5:
        return None
    delta = sympy.KroneckerDelta(i, k, (0, count - 1))
    return HeadSum(matmul(delta, e.family[k]), (k, count))


MOVES: list[Move] = [
    _rename,
    _other_index,
    _exchange,
    _constant,
    _pull_out,
    _push_in,
    _turn,
    _distribute,
    _all_orders,
    _reverse,
    _other_count,
    _no_transpose,
    _commute,
    _double,
    _delta,
]
WEIGHTS = [9, 3, 5, 3, 3, 4, 4, 2, 2, 1, 2, 1, 2, 3, 2]
