r"""The ensemble of paths: a product of layers expanded lazily into a sum over paths.

A product of layers `(I + Σ_h A_h ⊗ W_h) · … · (I + Σ_h A_h ⊗ W_h)` is a sum over paths. A path
takes one term from each layer, the identity (it skips the layer) or a head. Its *order* is the
number of its terms other than the identity.

Definitions:

    layer   a factor that is a sum (MatAdd, HeadSum), at any position in the product; nested sums
            are one sum, and a HeadSum over H heads has H terms for each term of its body
    order   0 for an identity (also `2*I`, and a Kronecker product of identities), 1 for any other
            term; a factor that is no sum (an unembedding, a vector) is on every path, at order 0
    number  layers are numbered from 0 in the order in which they are applied: from the right, or
            from the left if the product holds a LayerProduct with `reverse=True`

The number of heads or of layers may be symbolic. A Path then represents all paths of one shape: its
expression is their sum, and counts are expressions.

>>> import sympy
>>> from otimes.algebra.language.layers import LayerProduct
>>> from otimes.algebra.language.linear import Family, HeadSum, kron
>>> n, d = sympy.symbols("n d", integer=True, positive=True)
>>> h, l = sympy.symbols("h l", integer=True)
>>> A, W = Family("A", (12, 12), n, n), Family("W", (12, 12), d, d)
>>> heads = HeadSum(kron(A[l, h], W[l, h]), (h, 12))
>>> paths = expand_paths(LayerProduct(sympy.Identity(n * d) + heads, (l, 12)))
>>> paths.count, paths.mean_order
(23298085122481, Fraction(144, 13))
>>> next(paths.order(2)).latex()
'A^{2,1} \\, A^{1,1} \\otimes W^{2,1} \\, W^{1,1}'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from fractions import Fraction
from functools import cached_property
from itertools import combinations, count, groupby, islice, product
from math import prod
from typing import Any, overload

import sympy
from sympy import MatrixExpr

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.latex import latex
from otimes.algebra.language.linear import matadd
from otimes.algebra.paths.layers import (
    Count,
    Group,
    Layer,
    Stack,
    clean_product,
    multiply,
    plan_of,
    polynomial_of,
    power_of,
    whole,
)
from otimes.algebra.paths.path import Path, Taken

MANY = 1000  # a sum of more terms is not built


class PathExpansion:
    """The ensemble of paths of a product of layers, computed lazily.

    Iteration yields the paths by increasing order, `.order(k)` those of order k. `[rank]` returns
    one path, or a slice, without enumerating the earlier ones. For a symbolic number of heads one
    Path represents all heads; for a symbolic number of layers the iteration is infinite.
    """

    def __init__(self, product: MatrixExpr) -> None:
        self.expression = clean_product(product)
        self._plan = plan_of(self.expression)
        found = self._plan.applied
        self._layers = [(place, slot) for place, slot in found if isinstance(slot, Layer)]
        self._stacks = [(place, slot) for place, slot in found if isinstance(slot, Stack)]
        self._counts_after: dict[int, list[list[int]]] = {}

    # -- counting --------------------------------------------------------------------------------

    @property
    def count(self) -> Count:
        """The number of paths: an int, or an expression such as (H + 1)**L."""
        total: Count = 1
        for (skip, head), times in self._kinds().items():
            total *= (skip + head) ** times
        for _, stack in self._stacks:
            total *= sum(stack.polynomial) ** stack.depth
        return whole(total)

    @property
    def count_by_order(self) -> list[Count]:
        """The numbers of paths of order 0, 1, 2, … up to the largest order."""
        self._needs_an_end("the counts of all orders")
        return polynomial_of(self._kinds())

    def count_of_order(self, order: int) -> Count:
        """Return the number of paths of one order; the depth may be symbolic."""
        _check_order(order)
        total = polynomial_of(self._kinds())[: order + 1]
        for _, stack in self._stacks:
            total = multiply(total, power_of(stack, order))[: order + 1]
        return total[order] if order < len(total) else 0

    @property
    def mean_order(self) -> Fraction | sympy.Expr:
        """The exact mean order of a path; an expression if a number is symbolic."""
        mean: Any = sympy.S.Zero
        kinds: list[tuple[Sequence[Count], Count]] = [*self._kinds().items()]
        kinds += [(stack.polynomial, stack.depth) for _, stack in self._stacks]
        for weights, times in kinds:
            if sum(weights) == 0:
                raise OtimesError("a product without paths has no mean order")
            orders = sum(k * weight for k, weight in enumerate(weights))
            mean += times * sympy.sympify(orders) / sum(weights)
        return Fraction(int(mean.p), int(mean.q)) if mean.is_Rational else mean

    # -- paths -----------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Path]:
        endless = any(stack.layer.of_order(1) for _, stack in self._stacks)
        for order in count() if endless else range(len(self._layers) + 1):
            yield from self._paths(order, together=False)

    def order(self, order: int) -> Iterator[Path]:
        """Return a lazy iterator over the paths of one order."""
        _check_order(order)
        return self._paths(order, together=False)

    @overload
    def __getitem__(self, rank: int) -> Path: ...
    @overload
    def __getitem__(self, rank: slice) -> tuple[Path, ...]: ...

    def __getitem__(self, rank: int | slice) -> Path | tuple[Path, ...]:
        self._needs_an_end("a path by its rank")
        by_order = polynomial_of(Counter(layer.units for _, layer in self._layers))
        total = sum(by_order)
        if isinstance(rank, slice):
            return tuple([self._at(k, by_order) for k in range(*rank.indices(total))])
        if not isinstance(rank, int) or not -total <= rank < total:
            raise OtimesError(f"there is no path {rank!r}: ranks run from 0 to {total - 1}")
        return self._at(rank % total, by_order)

    def sum_of_order(self, order: int) -> MatrixExpr:
        """Return the sum of all paths of one order as one expression.

        The heads of a layer are kept as one HeadSum, so that 12 layers give C(12, k) terms. For a
        symbolic depth the sum runs over increasing layers. Raises OtimesError for more than a
        thousand terms.
        """
        _check_order(order)
        terms = list(islice((p.expression for p in self._paths(order, together=True)), MANY + 1))
        if len(terms) > MANY:
            raise OtimesError(
                f"the sum of the paths of order {order} has more than {MANY} terms, even with each "
                f"HeadSum as one term: iterate over .order({order}) instead"
            )
        if not terms:
            return sympy.ZeroMatrix(*self.expression.shape)
        return matadd(*terms) if len(terms) > 1 else terms[0]

    # -- output ----------------------------------------------------------------------------------

    def latex(self, limit: int | None = None) -> str:
        """Return the TeX of the first paths, one line for each order, and the number of all paths.

        `limit` is the number of paths shown; the default None means 16, or 3 for a symbolic depth.
        """
        limit = limit if limit is not None else 3 if self._stacks else 16
        if limit < 1:
            raise OtimesError(f"latex needs a limit of at least 1, not {limit}")
        shown = list(islice(self, limit + 1))
        by_order = groupby(shown[:limit], key=lambda path: path.order)
        lines = [" + ".join(path.latex() for path in paths) for _, paths in by_order]
        if len(shown) > limit:
            lines.append(rf"\cdots \quad ({latex(sympy.sympify(self.count))} \text{{ paths}})")
        text = r" \\ & + ".join(lines).replace("+ -", "- ") or "0"
        return rf"\begin{{aligned}} & {text} \end{{aligned}}" if len(lines) > 1 else text

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __repr__(self) -> str:
        return f"<{self.count} path{'' if self.count == 1 else 's'}, mean order {self.mean_order}>"

    # -- enumeration -----------------------------------------------------------------------------

    def _kinds(self) -> Counter[tuple[Count, Count]]:
        """Return the number of layers for each pair (terms of order 0, terms of order 1)."""
        weights = {id(layer.groups): layer.weights for _, layer in self._layers}  # once for each
        return Counter(weights[id(layer.groups)] for _, layer in self._layers)

    def _paths(self, order: int, together: bool) -> Iterator[Path]:
        """Yield the paths of one order, with the heads of a layer as one sum or one by one."""
        layers = [layer for _, layer in self._layers]
        must = [k for k, layer in enumerate(layers) if not layer.of_order(0)]
        free = [k for k, layer in enumerate(layers) if layer.of_order(0) and layer.of_order(1)]
        if not all(layer.groups for layer in layers):
            return
        for deep in product(range(order + 1), repeat=len(self._stacks)):
            left = order - sum(deep) - len(must)
            for chosen in combinations(free, left) if left >= 0 else ():
                wheels = self._wheels({*must, *chosen}, deep)
                total = prod(sum(g.units(together) for g in groups) for _, groups, _ in wheels)
                for rank in range(total):
                    yield self._turned(wheels, rank, order, together)

    def _wheels(
        self, through: Set[int], deep: Sequence[int]
    ) -> list[tuple[int, tuple[Group, ...], bool]]:
        """Return (position of the layer, groups of terms, whether in a stack) for every choice."""
        wheels: list[tuple[int, tuple[Group, ...], bool]] = []
        for k in sorted(through) if self._only_plain_skips else range(len(self._layers)):
            place, layer = self._layers[k]
            wheels.append((place, layer.of_order(int(k in through)), False))
        for (place, stack), times in zip(self._stacks, deep, strict=False):
            wheels += [(place, stack.layer.of_order(1), True)] * times
        return wheels

    @cached_property
    def _only_plain_skips(self) -> bool:
        """Whether every layer has at most one identity term."""
        return all(
            len(skips := layer.of_order(0)) <= 1 and not any(s.limits for s in skips)
            for _, layer in self._layers
        )

    def _turned(
        self,
        wheels: Sequence[tuple[int, tuple[Group, ...], bool]],
        rank: int,
        order: int,
        together: bool,
    ) -> Path:
        """Return the path of a rank among those through the same groups of terms."""
        layers: dict[int, Taken] = {}
        stacks: dict[int, tuple[Taken, ...]] = {}
        for place, groups, in_stack in reversed(wheels):
            rank, here = divmod(rank, sum(group.units(together) for group in groups))
            for group in groups:
                units = group.units(together)
                if here < units:
                    break
                here -= units
            is_open = together or not isinstance(group.count, int)
            taken = Taken(group, None if is_open else _digits(here, group.limits))
            if in_stack:
                stacks[place] = (taken, *stacks.get(place, ()))
            else:
                layers[place] = taken
        return Path(self._plan, order, layers, stacks)

    def _at(self, rank: int, by_order: Sequence[int]) -> Path:
        """Return the path of a rank, found from the counts of paths through the later layers."""
        order = 0
        while rank >= by_order[order]:
            rank -= by_order[order]
            order += 1
        after = self._after(order)
        through: set[int] = set()
        weight, left = 1, order
        for k, (_, layer) in enumerate(self._layers):
            skip, head = layer.units
            later = after[k + 1]
            taking = weight * head * later[left - 1] if 0 < left <= len(later) else 0
            if rank < taking:
                through.add(k)
                weight, left = weight * head, left - 1
            else:
                rank, weight = rank - taking, weight * skip
        return self._turned(self._wheels(through, ()), rank, order, together=False)

    def _after(self, order: int) -> list[list[int]]:
        """Return the numbers of ways to take 0 … `order` heads from the layers k, k + 1, …"""
        if order not in self._counts_after:
            table = [[1]]
            for _, layer in reversed(self._layers):
                table.append(multiply(table[-1], layer.units)[: order + 1])
            self._counts_after[order] = table[::-1]
        return self._counts_after[order]

    def _needs_an_end(self, asked: str) -> None:
        if self._stacks:
            depth = self._stacks[0][1].depth
            raise OtimesError(
                f"{asked} cannot be given, because the number of layers {depth} is a symbol: use "
                f".count_of_order(k) or .order(k), or give a number for {depth}"
            )


def expand_paths(product: Any) -> PathExpansion:
    """Return the ensemble of paths of a product of layers.

    `product`: a SymPy product whose factors are sums of an identity and heads, LayerProducts of
    such sums, and single terms such as an unembedding or a vector; numbers of heads and of layers
    may be symbolic. The module docstring defines layers and orders.
    Raises LanguageError for any other expression, ShapeError for mismatched shapes.

    >>> from sympy import Identity, MatrixSymbol
    >>> A, B = MatrixSymbol("A", 3, 3), MatrixSymbol("B", 3, 3)
    >>> paths = expand_paths((Identity(3) + B) * (Identity(3) + A))
    >>> [path.expression for path in paths]
    [I, A, B, B*A]
    >>> paths.count_by_order
    [1, 2, 1]
    """
    return PathExpansion(product)


def _digits(rank: int, limits: Sequence[tuple[Any, Any]]) -> tuple[int, ...]:
    """Return the index values at a rank, the last index varying fastest."""
    digits: list[int] = []
    for _, size in reversed(limits):
        rank, digit = divmod(rank, int(size))
        digits.append(digit)
    return tuple(reversed(digits))


def _check_order(order: Any) -> None:
    if not isinstance(order, int) or isinstance(order, bool) or order < 0:
        raise OtimesError(f"there is no order {order!r}: orders are integers from 0 on")
