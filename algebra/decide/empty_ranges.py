"""What may have no value, in sums and products that may have no terms.

A claim is about the values at which its sides are defined. So log X, √X, 1/X and X⁻¹ say something
of X, where they are evaluated. In a sum up to an index they are evaluated only at the indices below
it, and not at all in an empty one; in a sum over the paths of order 2 through one layer as little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy

from otimes.algebra.decide.signs import SignsIn
from otimes.algebra.errors import LanguageError
from otimes.algebra.language.affine import AffineMember, never_negative
from otimes.algebra.language.assumptions import Assumptions
from otimes.algebra.language.binders import bindings, free_symbols
from otimes.algebra.language.defined import unfolded
from otimes.algebra.language.functions import KNOWN, is_partial
from otimes.algebra.language.inverse_members import is_inverse, may_be_empty
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import FamilyMember, HeadSum
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.trees import key, parts_of
from otimes.algebra.language.unicode import short_text


def refuse_short_sums(sides: Sequence[Any], sizes: set[str], assumptions: Assumptions) -> None:
    """Raise LanguageError for a part of a sum up to an index that may have no value.

    Such a sum is read as one over all values, times a mask, in which the part would be evaluated
    everywhere. What is defined by its form may stand there, and what is evaluated elsewhere too.
    """
    sides = list(map(unfolded, sides))
    found = [use for side in sides for use in _in_short_sums(side, sizes, frozenset(), False)]
    elsewhere = {part for part, short in found if not short}
    signs = SignsIn((), assumptions)
    for part, short in found:
        if not short or (part in elsewhere and not _indices_in(part, sizes, assumptions)):
            continue
        if isinstance(part, Activation) and signs.has(part.argument, KNOWN[part.name].domain or ""):
            continue
        raise LanguageError(
            f"{short_text(part)} may have no value, and stands in a sum up to an index, which "
            "evaluates it at some indices only: write a matrix for it, and what is known of it as "
            "a hypothesis"
        )


def _indices_in(part: Any, sizes: set[str], assumptions: Assumptions) -> bool:
    """Return whether a part has a free symbol that is a member's index, not a size."""
    members = {i for e in parts_of(part, sympy.MatrixExpr) for i in getattr(e, "indices", ())}
    return any(key(s) not in sizes for i in members for s in i.free_symbols)


def _in_short_sums(
    e: Any, sizes: set[str], short: frozenset[Any], empty: bool
) -> Iterator[tuple[Any, bool]]:
    """Yield the parts that may have no value, each with whether it may not be evaluated.

    `short` are the indices of sums up to an index around an expression.
    """
    if _may_have_no_value(e):
        yield e, empty or bool(free_symbols(e) & short)
    if isinstance(e, sympy.Sum | HeadSum):
        for limit in e.args[1:]:
            index, begin, end = limit if len(limit) == 3 else (limit[0], sympy.S.Zero, limit[1] - 1)
            others = [s for s in begin.free_symbols | end.free_symbols if key(s) not in sizes]
            if others or begin != 0:
                short |= {index}
                least = (end - begin).xreplace(dict.fromkeys(others, sympy.S.Zero))
                rising = all((end - begin).coeff(s) >= 0 for s in others)
                empty |= not (rising and never_negative(least))
    for part in e.args:
        if isinstance(part, sympy.Expr):
            yield from _in_short_sums(part, sizes, short, empty)


def _may_have_no_value(e: Any) -> bool:
    return is_inverse(e) or (isinstance(e, Activation) and is_partial(e.name))


def not_evaluated(sides: Sequence[Any]) -> frozenset[Any]:
    """Return the parts that may have no value, and stand only in products that may be empty.

    Of an inverse the matrices are returned whose inverses it is made of. A member stands for all
    members of its family, as that of the last layer in an induction.
    """
    found = [use for side in sides for use in _in_products(side, frozenset(), False)]
    known = {e for e, empty in found if not empty}
    return frozenset(at_any_index(e) for e, empty in found if empty and e not in known)


def at_any_index(e: Any) -> Any:
    """Return an expression with every member of a family replaced by one matrix symbol."""
    members = parts_of(e, FamilyMember, AffineMember)
    return e.xreplace({m: sympy.MatrixSymbol(m.family.name, *m.shape) for m in members})


def _in_products(e: Any, bound: frozenset[Any], empty: bool) -> Iterator[tuple[Any, bool]]:
    if is_inverse(e):
        yield from ((part, empty) for part in _inverted(e.base))
    elif _may_have_no_value(e):
        yield e, empty
    if isinstance(e, LayerProduct | OrderSum):
        empty |= may_be_empty(e, bound)
    inner = bound | {index for index, _ in bindings(e)}
    for part in e.args:
        if isinstance(part, sympy.Basic):
            yield from _in_products(part, inner, empty)


def _inverted(e: Any) -> Iterator[Any]:
    """Yield the matrices whose inverses the inverse of an expression is made of."""
    yield e
    if isinstance(e, sympy.MatMul | sympy.KroneckerProduct | sympy.Transpose | sympy.MatPow):
        for part in e.args:
            if part.is_Matrix:
                yield from _inverted(part)
