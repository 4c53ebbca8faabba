"""Whether the products of a claim sum over axes that a head or an MLP sums over.

The axis d_head of a head is its own: queries meet keys along it, and values meet W_O. A claim about
W_O W_K, or about the pattern of one head and the values of another, holds for all matrices like the
right one, and is about nothing that a model computes. Likewise a row of W_out is multiplied by a
neuron's activation, not by its pre-activation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import sympy
from sympy import KroneckerProduct, MatMul, MatrixSymbol, Transpose

from otimes.algebra.language.linear import FamilyMember
from otimes.numeric.binding import AXES, Source, source_of
from otimes.proofs.claims import Claim

SCORE = {"W_Q", "W_K", "b_Q", "b_K", "q", "k", "rotation"}
VALUE = {"W_V", "W_O", "b_V", "v", "z", "grouped_W_V", "grouped_W_O"}
PRE_ACTIVATION = {"mlp_pre", "W_out"}


class End(NamedTuple):
    """An axis at one end of a product: its array, its name, and the layer and head of the array.

    The layer and head are empty where the indices are of something else, such as random draws.
    """

    array: str
    axis: str
    of: tuple[Any, ...]


Bind = Mapping[str, Source]
Ends = tuple[frozenset[End], frozenset[End]]  # rows, columns
NONE: Ends = (frozenset(), frozenset())


def miswired(claim: Claim) -> str:
    """Return the products of a claim that occur in no head and no MLP; empty if none.

    >>> from otimes.proofs.catalogue.symbols import row
    >>> from otimes.proofs.claims import Statement
    >>> miswired(Statement(row.W_K * row.W_O * row.W_U, row.W_K * (row.W_O * row.W_U)))
    'W_K and W_O do not meet along d_head in any head'
    """
    binds: Sequence[Bind] = getattr(claim, "bind", ({},))
    found = [each for bind in binds for e in claim.expressions for each in _wrong(e, bind)]
    return "; ".join(dict.fromkeys(found))


def _wrong(e: Any, bind: Bind) -> Iterator[str]:
    if isinstance(e, MatMul):
        both = [ends(each, bind) for each in factors(e)]
        for (_, left), (right, _) in pairwise(both):
            alone = len(left) == len(right) == 1  # a product of sums has terms of all pairs
            clashes = (_clash(one, other, alone) for one in left for other in right)
            yield from filter(None, clashes)
    if isinstance(e, MatMul | KroneckerProduct):
        yield from _of_two_heads(e, bind)
    for each in getattr(e, "args", ()):
        yield from _wrong(each, bind)


def _clash(one: End, other: End, alone: bool) -> str:
    """Return what is wrong with a product along an axis; empty if nothing is."""
    arrays = {one.array, other.array}
    if one.axis == other.axis == "d_head":
        if not arrays <= SCORE and not arrays <= VALUE:
            return f"{one.array} and {other.array} do not meet along d_head in any head"
        if alone and one.of and other.of and one.of != other.of:
            return f"the axes d_head of {one.array} and {other.array} are of two heads"
    if one.axis == other.axis == "d_mlp" and arrays == PRE_ACTIVATION:
        return "W_out is multiplied by mlp_pre, which is before the activation"
    return ""


def _of_two_heads(e: Any, bind: Bind) -> Iterator[str]:
    """Yield whether a product has one pattern and the values of one head, and these are two."""
    found = [end for each in _tensors(e) for end in ends(each, bind)[1]]
    patterns = {end.of for end in found if end.array == "pattern"}
    values = {end.of for end in found if end.array in ("W_V", "v")}
    if len(patterns) == len(values) == 1 and all(patterns | values) and patterns != values:
        yield "a pattern is multiplied by the values of another head"


def _tensors(e: Any) -> Iterator[Any]:
    """Yield the symbols and members that are factors of a product, also of products in it."""
    if isinstance(e, MatMul | KroneckerProduct | Transpose):
        for each in e.args:
            yield from _tensors(each)
    elif isinstance(e, MatrixSymbol | FamilyMember):
        yield e


def factors(e: MatMul) -> list[Any]:
    """Return the matrices of a product, without the number before them."""
    return [each for each in e.args if getattr(each, "is_Matrix", False)]


def ends(e: Any, bind: Bind) -> Ends:
    """Return the axes of arrays of a model at the rows and columns of an expression."""
    if isinstance(e, Transpose):
        rows, cols = ends(e.arg, bind)
        return cols, rows
    if isinstance(e, MatMul):
        both = [ends(each, bind) for each in factors(e)]
        return both[0][0], both[-1][1]
    if isinstance(e, sympy.MatAdd):
        both = [ends(each, bind) for each in e.args]
        rows, cols = zip(*both, strict=True)
        return frozenset().union(*rows), frozenset().union(*cols)
    if isinstance(e, MatrixSymbol):
        return _of_array(e.name, e.shape, bind, _head_of)
    if isinstance(e, FamilyMember):
        return _of_array(e.family.name, e.shape, bind, lambda source: _member_of(e, source))
    return NONE


def _of_array(
    name: str, shape: Sequence[Any], bind: Bind, head: Callable[[Source], tuple[Any, ...]]
) -> Ends:
    source = source_of(name, bind)
    if source is None or source.name not in AXES or source.rows or source.cols:
        return NONE  # a part of an array is an example of any matrix
    axes, said = AXES[source.name][-2:], tuple(str(size) for size in shape)
    turned = source.transposed if axes == said[::-1] == said else axes == said[::-1]
    if not turned and axes != said:
        turned = source.transposed
    rows, cols = (frozenset({End(source.name, axis, head(source))}) for axis in axes)
    return (cols, rows) if turned else (rows, cols)


def _head_of(source: Source) -> tuple[Any, ...]:
    return source.layer, source.head


def _member_of(e: FamilyMember, source: Source) -> tuple[Any, ...]:
    counts = tuple(str(count) for count in e.family.counts)
    if counts == ("L", "H"):
        return e.indices
    return (source.layer, *e.indices) if counts == ("H",) else ()
