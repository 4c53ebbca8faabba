"""Trees with binders: their places, and free indices under other names.

`renamed` leaves it to its caller whether a binder captures the new name: an attack wants both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy
from sympy import Identity, MatrixSymbol
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import ConcatHeads, FamilyMember, HeadSum, OneHot, StackHeads
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.trees import rebuilt

HEADS = (HeadSum, ConcatHeads, StackHeads)
LAYERS = (LayerProduct, OrderSum)
Path = tuple[int, ...]
Binding = dict[Any, Any]  # the indices in scope, each with what the innermost binder says of it

LEAVES = (FamilyMember, MatrixSymbol, Identity, sympy.OneMatrix, sympy.ZeroMatrix, sympy.Tuple)


def binds(e: Any) -> Binding:
    """Return what an expression binds for its body, the innermost of two that are called alike."""
    if isinstance(e, HEADS):
        return {limit[0]: limit[1] for limit in e.args[1:]}
    if isinstance(e, LAYERS):
        return {e.args[1][0]: e.args[1][1]}
    if isinstance(e, sympy.Sum):
        return {limit[0]: limit[2] + 1 for limit in reversed(e.args[1:])}
    return {}


def places(e: Any, scope: Binding, path: Path = ()) -> Iterator[tuple[Path, Any, Binding]]:
    """Yield every part that is an expression, its path and what is bound around it."""
    yield path, e, scope
    if isinstance(e, LEAVES) or not e.args:
        return
    if isinstance(e, MatrixElement | OneHot | sympy.KroneckerDelta):
        inner = e.args[:1] if isinstance(e, MatrixElement) else ()
    elif isinstance(e, (*HEADS, *LAYERS, sympy.Sum)):
        inner = e.args[:1]
    elif isinstance(e, Activation):
        yield from places(e.args[1], scope, (*path, 1))
        return
    else:
        inner = e.args
    inside = {**scope, **{i: ranged(count, scope) for i, count in binds(e).items()}}
    for k, part in enumerate(inner):
        yield from places(part, inside, (*path, k))


def ranged(count: Any, scope: Binding) -> Any:
    """Return the range of an index whose count may be an index: the layers before layer l."""
    return scope.get(count, count)


def replaced(e: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    arguments = list(e.args)
    arguments[path[0]] = replaced(arguments[path[0]], path[1:], new)
    return rebuilt(e, arguments)


def renamed(e: Any, old: Any, new: Any) -> Any:
    """Return an expression with another name for a free index; it may be captured inside."""
    if e == old:
        return new
    if isinstance(e, FamilyMember):
        return e.family[tuple(new if i == old else i for i in e.indices)]
    if not e.args or (isinstance(e, LEAVES) and not isinstance(e, sympy.Tuple)):
        return e
    if old in binds(e):  # what is bound here by this name is another index
        if isinstance(e, LAYERS):
            index, count = e.args[1]
            others = [renamed(a, old, new) for a in e.args[2:]]
            return rebuilt(e, [e.args[0], sympy.Tuple(index, renamed(count, old, new)), *others])
        return e
    if isinstance(e, Activation):
        return Activation(e.name, renamed(e.argument, old, new))
    if isinstance(e, sympy.Tuple):
        return sympy.Tuple(e[0], *[renamed(a, old, new) for a in e[1:]])
    return rebuilt(e, [renamed(a, old, new) for a in e.args])


def captures(e: Any, old: Any, new: Any) -> bool:
    """Return whether to call a free index otherwise would let a binder inside capture it."""
    return any(
        new in binds(part) and uses(part.args[0], old)
        for _, part, scope in places(e, {})
        if old not in scope
    )


def uses(e: Any, index: Any) -> bool:
    """Return whether an index is free in an expression."""
    if e == index:
        return True
    if isinstance(e, FamilyMember):
        return index in e.indices
    if not e.args or (isinstance(e, LEAVES) and not isinstance(e, sympy.Tuple)):
        return False
    if isinstance(e, sympy.Tuple):
        return any(uses(a, index) for a in e[1:])
    inner = [a for k, a in enumerate(e.args) if k or index not in binds(e)]
    return any(uses(a, index) for a in inner)
