"""Products over windows, as in Σ_j Π_{s<i-1-j} A[j + 1 + s] B[j], as members of a family.

T[k, a] stands for A[a + k - 1] … A[a], where T[0, a] = I and T[k + 1, a] = A[a + k] T[k, a]. Below
k = 0 it stands for nothing, and beyond the last A[l] for a product with any other matrices: such
windows must not occur, as they do not for j < i.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import sympy
from sympy import Symbol, Tuple

from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.binders import free_symbols, substituted
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, FamilyMember, matmul
from otimes.algebra.language.trees import parts_of, rebuilt

LAYER = Symbol("layer", integer=True)


class Window(NamedTuple):
    """A product of layers from a first one on: the layer at LAYER, and in which direction."""

    layer: Any
    reverse: bool


class Reach(NamedTuple):
    """The family of the products over a window, how long it is, and before what it begins."""

    family: Family
    longest: Any
    farthest: Any


def window_of(e: LayerProduct, indices: Collection[Symbol]) -> tuple[Window, Any] | None:
    """Return the window of a product and its first layer, None where the layers are others.

    No other index of `indices` may be in a layer, and each member has one index.
    """
    own = [m for m in parts_of(e.body, FamilyMember) if e.index in free_symbols(m)]
    if not own or any(len(m.indices) != 1 for m in own):
        return None
    firsts = [sympy.expand(m.indices[0] - e.index) for m in sorted(own, key=str)]
    first = firsts[0] - firsts[0].as_coeff_Add()[0]
    layer = _expanded(substituted(e.body, {e.index: LAYER - first}))
    rest = free_symbols(layer) - {LAYER}
    alone = layer.xreplace({m: sympy.ZeroMatrix(*m.shape) for m in parts_of(layer, FamilyMember)})
    if rest & {*indices} or LAYER in free_symbols(alone) or e.index in first.free_symbols:
        return None
    return Window(layer, e.reverse), first


def _expanded(e: Any) -> Any:
    if isinstance(e, FamilyMember):
        return e.family[tuple(sympy.expand(i.doit()) for i in e.indices)]
    return rebuilt(e, [_expanded(a) for a in e.args]) if e.args and e.is_Matrix else e


def lasts(window: Window) -> list[tuple[Any, Any]]:
    """Return what is added to the number of a layer in its members, with the number of these."""
    found = [m for m in parts_of(window.layer, FamilyMember) if LAYER in free_symbols(m)]
    return [(sympy.expand(m.indices[0] - LAYER), m.family.counts[0]) for m in found]


def definitions(
    window: Window, reach: Reach, wider: Mapping[str, Family], walk: Callable[[Any], Any]
) -> list[tuple[Any, Any]]:
    """Return what says that the members of a family are the products over a window."""
    k, a = Symbol("k", integer=True), Symbol("a", integer=True)
    family, counts = reach.family, (reach.longest, reach.farthest)

    def at(more: int) -> AffineMember:
        return AffineMember(family, [Tuple(more, 1, 0), Tuple(0, 0, 1)], counts, k, a)

    def put(e: Any) -> Any:
        if isinstance(e, FamilyMember) and LAYER in free_symbols(e):
            shift = sympy.expand(e.indices[0] - LAYER)
            return AffineMember(wider[e.family.name], [Tuple(shift, 1, 1)], counts, k, a)
        if LAYER not in free_symbols(e):
            return walk(e)
        return rebuilt(e, [put(part) for part in e.args])

    layer, before = put(window.layer), at(0)
    first = AffineMember(family, [Tuple(0, 0), Tuple(0, 1)], counts[1:], a)
    whole = matmul(before, layer) if window.reverse else matmul(layer, before)
    return [(first, sympy.Identity(family.shape[0])), (at(1), whole)]
