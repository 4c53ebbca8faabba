"""Entries and unit columns at indices i + c, written with the shift S.

    e_{i+1}, A[i + 1, j]     S e_i and (Sᵀ A)[i, j], for S = Shift(n); e_{i-1} is Sᵀ e_i
    Σ_{j<n-1} f(j)           Σ_{j<n} (Sᵀ 1)[j] f(j), where f has entries at j of n rows

An index i for which i + 1 is one of n rows has n - 1 values. It becomes one of all n, and both
sides of the claim become 0 at the last: they are multiplied by (Sᵀ 1)[i], unless both have a factor
that is 0 there, as (Sᵀ A)[i, j] is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import Any

import sympy
from sympy import Symbol, Transpose
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import LanguageError
from otimes.algebra.language.binders import Pair, bindings, free_symbols
from otimes.algebra.language.index_ranges import Limits, not_negative
from otimes.algebra.language.linear import HeadSum, OneHot, matmul
from otimes.algebra.language.positions import Shift
from otimes.algebra.language.trees import rebuilt, stated

FARTHEST = 8  # the largest number that is added to an index of an entry
PRODUCTS = (sympy.MatMul, sympy.Mul, sympy.HadamardProduct, sympy.KroneckerProduct)
SUMS = (sympy.MatAdd, sympy.Add)
Sizes = Collection[Symbol]


def with_shifts(
    sides: Sequence[Any], given: Sequence[Pair], sizes: Sizes
) -> tuple[list[Any], list[Pair], Limits]:
    """Return a claim without entries at shifted indices, and the values of its free indices."""
    everything = [*sides, *[side for pair in given for side in pair]]
    if not any(any(_shifts(e, sizes)) or _is_short(e, sizes) for e in everything):
        return list(sides), list(given), {}
    limits: Limits = {}
    made = _guarded(sides[:2], sizes, limits)
    pairs = [_guarded(pair, sizes, {}) for pair in given]
    return [*made, *sides[2:]], [(pair[0], pair[1]) for pair in pairs], limits


def _guarded(sides: Sequence[Any], sizes: Sizes, limits: Limits) -> list[Any]:
    """Return two equal sides without shifted entries, 0 where these would be out of range."""
    spans = dict.fromkeys(size for side in sides for _, size in _entries(side, sizes))
    free = set().union(*map(free_symbols, sides)) - {*sizes}
    bound = {i for side in sides for e in sympy.preorder_traversal(side) for i, _ in bindings(e)}
    ends: dict[tuple[Symbol, int], int] = {}
    counts: dict[Symbol, Any] = {}
    for value in (v for side in sides for v in not_negative(side, {})):
        if value is None:
            raise LanguageError("an index of an entry is a symbol to which a number is added")
        for index, size in product(sorted(free & value.free_symbols, key=str), spans):
            least, most = sympy.expand(value - index), sympy.expand(size - 1 - index - value)
            if least.is_Integer and least < 0:
                ends[index, -1] = max(ends.get((index, -1), 0), -int(least))
            elif most.is_Integer and most >= 0:
                ends[index, 1] = max(ends.get((index, 1), 0), int(most))
                counts.setdefault(index, size)
    ends = {end: far for end, far in ends.items() if far and end[0] in counts}
    if twice := sorted({index for index, _ in ends} & bound, key=str):
        raise LanguageError(f"the index {twice[0]} is also bound by a sum: rename one of them")
    for index, size in counts.items():
        first, most = (ends.get((index, way), 0) for way in (-1, 1))
        limits[index] = sympy.Integer(first), sympy.expand(size - 1 - most)
    made = [_without(side, sizes) for side in sides]
    for (index, way), far in sorted(ends.items(), key=str):
        if not all(_vanishes(side, index, way * far) for side in sides):
            guard = MatrixElement(_ones(counts[index], way * far), index, 0)
            made = [_times(guard, side) for side in made]
    return made


def _entries(e: Any, sizes: Sizes) -> Iterator[tuple[Symbol, Any]]:
    """Yield the indices i in entries and unit columns at i + c, c = 0 too, with their sizes."""
    for part in sympy.preorder_traversal(e):
        for at, size in _places(part):
            if (found := _shift(at, size, sizes)) is not None:
                yield found[0], size


def _shifts(e: Any, sizes: Sizes) -> Iterator[tuple[Symbol, Any, int]]:
    """Yield the indices i in entries and unit columns at i + c, with their sizes and c."""
    for part in sympy.preorder_traversal(e):
        for at, size in _places(part):
            found = _shift(at, size, sizes)
            if found is not None and found[1]:
                yield found[0], size, found[1]


def _places(e: Any) -> list[tuple[Any, Any]]:
    """Return the indices of an entry or a unit column, with the sizes that they run over."""
    if isinstance(e, OneHot):
        return [(e.args[0], e.args[1])]
    if isinstance(e, MatrixElement):
        return list(zip(e.args[1:], e.args[0].shape, strict=True))
    return []


def _shift(at: Any, size: Any, sizes: Sizes) -> tuple[Symbol, int] | None:
    """Return (i, c) for an index i + c; None for a number, and for the last index of a size."""
    more, index = sympy.sympify(at).as_coeff_Add()
    if not isinstance(index, Symbol) or not more.is_Integer or index in sizes:
        return None
    if abs(more) > FARTHEST:
        raise LanguageError(
            f"the index {at} of an entry is not in the language: up to {FARTHEST} is added to an "
            "index"
        )
    return index, int(more)


def _is_short(e: Any, sizes: Sizes) -> bool:
    """Return whether an expression has a sum over some of the rows of an entry in it."""
    sums = [part for part in sympy.preorder_traversal(e) if isinstance(part, sympy.Sum | HeadSum)]
    return any(_short(part, limit, sizes) for part in sums for limit in part.args[1:])


def _short(e: Any, limit: Any, sizes: Sizes) -> tuple[Any, int] | None:
    """Return the number of rows that an index of a sum is one of, and how many it leaves out."""
    index, last = limit[0], (limit[2] if len(limit) == 3 else limit[1] - 1)
    if not last.free_symbols <= {*sizes}:
        return None
    for part in sympy.preorder_traversal(e.args[0]):
        for at, size in _places(part):
            if (found := _shift(at, size, sizes)) is not None and found[0] == index:
                fewer = sympy.expand(size - 1 - last)
                return (size, int(fewer)) if fewer.is_Integer and fewer > 0 else None
    return None


def _without(e: Any, sizes: Sizes) -> Any:
    """Return an expression without shifted entries."""
    if not e.args or isinstance(e, sympy.MatrixSymbol):
        return e
    if isinstance(e, OneHot):
        found = _shift(e.args[0], e.args[1], sizes)
        if found is None or not found[1]:
            return e
        return matmul(*_moves(e.args[1], found[1]), OneHot(found[0], e.args[1]))
    if isinstance(e, MatrixElement):
        factors, at = [_without(e.args[0], sizes)], list(e.args[1:])
        for side, (place, size) in enumerate(_places(e)):
            found = _shift(place, size, sizes)
            if found is not None and found[1]:
                at[side] = found[0]
                moves = _moves(size, found[1] if side else -found[1])
                factors = [*factors, *moves] if side else [*moves, *factors]
        return stated(MatrixElement, matmul(*factors) if len(factors) > 1 else factors[0], *at)
    if isinstance(e, sympy.Sum | HeadSum):
        body, limits = _without(e.args[0], sizes), []
        for limit in e.args[1:]:
            short = _short(e, limit, sizes)
            if short is None:
                limits.append(limit)
                continue
            size, fewer = short
            if not _vanishes(e.args[0], limit[0], fewer):
                body = _times(MatrixElement(_ones(size, fewer), limit[0], 0), body)
            full = (*limit[1:-1], size - 1 if isinstance(e, sympy.Sum) else size)
            limits.append(sympy.Tuple(limit[0], *full))
        return rebuilt(e, [body, *limits])
    new = [_without(part, sizes) for part in e.args]
    return e if all(a is b for a, b in zip(new, e.args, strict=True)) else rebuilt(e, new)


def _moves(size: Any, by: int) -> list[Any]:
    """Return the factors that move a column down by a number of rows, or up."""
    one = Shift(size) if by > 0 else Transpose(Shift(size))
    return [one] * abs(by)


def _ones(size: Any, far: int) -> Any:
    """Return the column with ones at the indices to which `far` can be added."""
    return matmul(*_moves(size, -far), sympy.OneMatrix(size, 1))


def _times(number: Any, e: Any) -> Any:
    return matmul(number, e) if e.is_Matrix else sympy.Mul(number, e, evaluate=False)


def _vanishes(e: Any, index: Symbol, far: int) -> bool:
    """Return whether an expression, written with shifts, is 0 where i + far is no index."""

    def beyond(e: Any) -> bool:
        for at, _ in _places(e):
            more = sympy.expand(at - index)
            if more.is_Integer and (more >= far if far > 0 else more <= far):
                return True
        return isinstance(e, MatrixElement) and beyond(e.args[0])

    if beyond(e):
        return True
    if isinstance(e, PRODUCTS):
        return any(_vanishes(part, index, far) for part in e.args)
    if isinstance(e, SUMS):
        return all(_vanishes(part, index, far) for part in e.args)
    if isinstance(e, sympy.Sum | HeadSum) and index in [bound for bound, _ in bindings(e)]:
        return False
    linear = isinstance(e, Transpose | sympy.Trace | sympy.Sum | HeadSum)
    return linear and _vanishes(e.args[0], index, far)
