"""Claims about every depth: proved for one layer, and from L to L + 1 layers.

For L + 1 layers the last one is split off. A `LayerProduct` becomes the last layer times the
product of the first L; a sum over layers, the sum over the first L plus the last term; an
`OrderSum`, the paths that skip the last layer plus those that use it. The sum over all orders is
split likewise, also with a factor Sᵏ at order k (Σ Ω_k ⊗ Sᵏ). An expression of the first L layers
becomes *opaque*: a matrix symbol of which only the claim itself is known. The step is then a claim
without a depth, and is decided like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy
from sympy import Identity, KroneckerProduct, MatrixSymbol, ZeroMatrix

from otimes.algebra.budget import spend
from otimes.algebra.errors import RuleError
from otimes.algebra.language.affine import AffineMember, moved
from otimes.algebra.language.binders import (
    bindings,
    free_symbols,
    fresh_name,
    index_places,
    names_in,
    standardised,
    substituted,
    used_as_numbers,
)
from otimes.algebra.language.functions import is_partial
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, FamilyMember, HeadSum, kron, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.trees import parts_of, rebuilt
from otimes.algebra.language.unicode import short_text

NODE = 20  # steps for one part of an expression that is rewritten
Equation = tuple[Any, Any]
Scope = dict[sympy.Symbol, Any]  # the indices that a part stands under, and their counts


@dataclass(frozen=True, slots=True)
class Induction:
    """The claims that together imply a claim for every depth from one layer on.

    Depth 0 is excluded: the step may divide by the number of layers, a size and so positive. `last`
    is the index of the last layer, and `opaque` the name for the first L layers of each expression.
    Two expressions have the same name if their bodies are in `alike`, as equal.
    """

    depth: sympy.Symbol
    base: Equation
    hypothesis: Equation
    step: Equation
    last: sympy.Symbol
    opaque: dict[Any, Any]
    alike: dict[Any, Equation]
    opened: Opened
    base_lemmas: tuple[Any, ...] = ()
    step_lemmas: tuple[Any, ...] = ()
    earlier_at_one: tuple[Equation, ...] = ()
    earlier_before: tuple[Equation, ...] = ()
    earlier_later: tuple[Equation, ...] = ()

    @property
    def sums(self) -> bool:
        """Whether a sum over the first L layers stays one."""
        return any(isinstance(e, HeadSum) for e in self.opened.zero)

    @property
    def named(self) -> tuple[Equation, ...]:
        """The opaque names, each with one expression that it stands for."""
        return self.opened.named


def depths_of(*expressions: Any, sizes: Collection[sympy.Symbol] = ()) -> list[sympy.Symbol]:
    """Return the symbols for numbers of layers, by name.

    A size that is the exponent of a number is one as well, and so is the number of terms of a sum
    over numbers of layers, as in Σ_{j<m} Aʲ.
    """
    counts = frozenset().union(*map(_numbers_of_layers, expressions))
    counts |= {e for each in expressions for e in _exponents(each) if e in sizes}
    if not counts:
        return []
    free = frozenset().union(*map(free_symbols, expressions))
    return sorted({c for c in counts if isinstance(c, sympy.Symbol)} & free, key=str)


@lru_cache(maxsize=4096)
def _numbers_of_layers(e: Any) -> frozenset[Any]:
    found = {part.count for part in parts_of(e, LayerProduct, OrderSum)}
    if not found:
        return frozenset()
    sums = [limit for part in parts_of(e, HeadSum) for limit in part.limits]
    return frozenset(found | {count for index, count in sums if index in found})


@lru_cache(maxsize=4096)
def _exponents(e: Any) -> frozenset[Any]:
    return frozenset(part.exp for part in parts_of(e, sympy.Pow))


def induction(
    lhs: Any,
    rhs: Any,
    given: Sequence[Equation],
    depth: sympy.Symbol,
    same: Callable[[Any, Any], bool],
    lemmas: Sequence[Any] = (),
    open_sums: bool = False,
    earlier: Sequence[Equation] = (),
    over: type[Opened] | None = None,
) -> Induction:
    """Return the two claims that prove a claim by induction over a depth.

    The hypotheses `given` hold for every layer, and so for the last one; the equations `earlier`
    hold for all depths. `same` decides whether two bodies are equal. With `open_sums` a sum over
    layers stays one, where it can. Raises RuleError if the depth is used as anything else than a
    number of layers or a factor, or a side may be undefined at some depth.
    """
    (lhs, rhs), given, _ = standardised([lhs, rhs], given)
    names = names_in(lhs, rhs, *[side for pair in (*given, *earlier) for side in pair])
    opened = (over or Opened)(depth, same, names, open_sums)
    if any(opened.uses(side) for pair in given for side in pair):
        raise RuleError(f"a hypothesis speaks of {depth}")
    signature = inspect(lhs, rhs)
    opened.demand_defined((lhs, rhs), signature.sizes.values())
    free: Scope = dict(signature.indices.values())
    if free and any(
        _argument_of_partial(e) is not None for side in (lhs, rhs) for e in _parts(side)
    ):
        raise RuleError("what may be undefined at one index is not led to another by induction")
    if any(opened.affine_at(i, (lhs, rhs)) for i, count in free.items() if count == depth):
        raise RuleError(f"a member at an affine index has one of {depth} values")
    step = opened.more(lhs, free), opened.more(rhs, free)
    hypothesis = opened.still(lhs, free), opened.still(rhs, free)
    base = opened.at_zero(step[0]), opened.at_zero(step[1])
    at_one, later = opened.cited(lemmas)
    known = [opened.known_stages(pair) for pair in earlier]
    return Induction(
        depth,
        base,
        hypothesis,
        step,
        opened.last,
        opened.opaque,
        opened.alike,
        opened,
        at_one,
        later,
        *[tuple(pairs) for pairs in (zip(*known, strict=True) if known else ((), (), ()))],
    )


class Opened:
    """A claim at depth L and at depth L + 1, with expressions of the first L layers opaque."""

    def __init__(
        self,
        depth: sympy.Symbol,
        same: Callable[[Any, Any], bool],
        names: set[str],
        open_sums: bool = False,
    ) -> None:
        self.depth = depth
        self.open_sums = open_sums  # whether a sum over layers stays one, where it can
        self.same = same
        self.names = names
        self.last = sympy.Symbol(self.fresh("last"), integer=True)
        self.opaque: dict[Any, Any] = {}  # what stands for the first L layers of an expression
        self.counts: set[Any] = set()  # the indices that are numbers of layers, so perhaps zero
        self.zero: dict[Any, Any] = {}  # what it is when L is 0
        self.none: dict[Any, sympy.Symbol] = {}  # by order, whether it is 0: then 1, else 0
        self.alike: dict[Any, Equation] = {}  # the equal bodies of what has the name of another

    @property
    def named(self) -> tuple[Equation, ...]:
        """The opaque names, each with one expression that it stands for."""
        return tuple((name, e) for e, name in self.opaque.items() if e not in self.alike)

    def fresh(self, name: str) -> str:
        """Return a name that does not occur in the claim or its hypotheses."""
        name = fresh_name(name, self.names)
        self.names.add(name)
        return name

    def tag(self, e: Any) -> Any:
        """Return the depth, which is part of an expression's name."""
        return self.depth

    @staticmethod
    def affine_at(index: sympy.Symbol, sides: Iterable[Any]) -> bool:
        """Return whether an index is one of a member at affine indices."""
        return any(index in e.variables for side in sides for e in parts_of(side, AffineMember))

    def demand_defined(self, sides: Iterable[Any], sizes: Collection[sympy.Symbol]) -> None:
        """Raise RuleError for claims that may be undefined at some depth but not at a larger one.

        The step uses the claim for L layers, which must be defined for that. If a product of layers
        has an inverse, so has the product without the last layer.
        """
        for e in (part for side in sides for part in _parts(side)):
            argument = _argument_of_partial(e)
            if argument is None or not self.uses(argument):
                continue
            if isinstance(argument, LayerProduct) and not self.uses(argument.body):
                continue
            if isinstance(e, sympy.Pow) and _certainly_positive(argument, sizes):
                continue
            raise RuleError(f"{short_text(e)} may be undefined for some number {self.depth}")

    # -- the depths L, L + 1, and 1 ----------------------------------------------------------------

    def more(self, e: Any, scope: Scope) -> Any:
        """Return an expression at depth L + 1."""
        if isinstance(e, LayerProduct) and e.count == self.depth:
            before, last = self.still(e, scope), self.of_last(e.body, e.index, scope)
            return matmul(before, last) if e.reverse else matmul(last, before)
        if isinstance(e, OrderSum) and e.count == self.depth:
            return self.one_more_order(e, scope)
        if isinstance(e, HeadSum) and (orders := self.all_orders(e)) is not None:
            before, last = self.still(e, scope), self.of_last(orders.body, orders.index, scope)
            return matadd(before, matmul(*((before, last) if orders.reverse else (last, before))))
        if isinstance(e, HeadSum) and (graded := self.graded_orders(e)) is not None:
            orders, grade = graded
            before, last = self.still(e, scope), self.of_last(orders.body, orders.index, scope)
            last = kron(*(last if part is orders else grade for part in e.body.args))
            return matadd(before, matmul(*((before, last) if orders.reverse else (last, before))))
        if isinstance(e, HeadSum) and (orders := self.first_orders(e, scope)) is not None:
            before, last = self.still(e, scope), self.of_last(orders.body, orders.index, scope)
            ((order, count),) = e.limits
            fewer = self.still(HeadSum(orders, (order, count - 1)), scope)
            return matadd(before, matmul(*((fewer, last) if orders.reverse else (last, fewer))))
        if isinstance(e, HeadSum) and self.stays_with_members(e):
            index, body = self.over_layers(e) or (None, None)
            last = self.more(self.put(body, index), scope)
            return matadd(self.with_members(e, scope, self.more), last)
        if isinstance(e, HeadSum) and (terms := self.over_layers(e)) is not None:
            index, body = terms
            return matadd(self.still(e, scope), self.of_last(body, index, scope))
        if isinstance(e, sympy.Pow) and e.exp == self.depth:
            if self.uses(e.base):
                raise RuleError(f"the base of a power {self.depth} depends on it")
            return sympy.Mul(e.base, self.still(e, scope), evaluate=False)
        if e == self.depth:
            return self.depth + 1
        if isinstance(e, AffineMember):
            return self.member(e, 1)
        return self.parts(e, scope, self.more)

    def still(self, e: Any, scope: Scope) -> Any:
        """Return an expression at depth L, with the parts that depend on L opaque."""
        if isinstance(e, OrderSum) and e.order == 0:
            return Identity(e.shape[0])
        if isinstance(e, HeadSum) and self.stays_with_members(e):
            return self.with_members(e, scope, self.still)
        if self.unfolds(e):
            return self.known(e, scope)
        if isinstance(e, HeadSum) and self.stays(e):
            self.zero[e] = ZeroMatrix(*e.shape)
            return e
        if isinstance(e, AffineMember):
            return self.member(e, 0)
        return self.parts(e, scope, self.still)

    def member(self, e: AffineMember, more: int) -> Any:
        """Return a member at affine indices: the last layer is L there, and L is L or L + 1.

        It is no free index, since a hypothesis holds for all values of its free indices.
        """
        if any(self.depth in free_symbols(size) for size in e.shape):
            raise RuleError(f"{self.depth} is the size of a matrix as well as a number of layers")
        return moved(self.at_number(e, self.depth + more), {self.last: (self.depth, 1)})

    def at_number(self, e: AffineMember, number: Any) -> Any:
        """Return a member at affine indices with a number for L."""
        forms = []
        for constant, factors in e.forms:
            slope = sympy.expand(constant).coeff(self.depth)
            rest = sympy.expand(constant - slope * self.depth)
            if not slope.is_Integer or self.depth in rest.free_symbols:
                raise RuleError(f"an index of {e.family.name} is not linear in {self.depth}")
            forms.append((rest + slope * number, *factors))
        return AffineMember(e.family, forms, e.counts, *e.variables)

    def at_zero(self, e: Any) -> Any:
        """Return an expression at depth 1: that at depth L + 1 with L = 0."""
        if e in self.zero:
            return self.zero[e]
        if e == self.depth:
            return sympy.S.Zero
        if isinstance(e, AffineMember):
            return self.at_number(e, sympy.S.Zero)
        if not e.args or isinstance(e, MatrixSymbol | FamilyMember):
            return e
        return rebuilt(e, [self.at_zero(a) for a in e.args])

    def stages(self, pair: Equation) -> tuple[Equation, Equation, Equation]:
        """Return an equation for one layer, for the first L layers, and for all L + 1."""
        free: Scope = dict(inspect(*pair).indices.values())
        lhs, rhs = self.more(pair[0], free), self.more(pair[1], free)
        before = self.still(pair[0], free), self.still(pair[1], free)
        return (self.at_zero(lhs), self.at_zero(rhs)), before, (lhs, rhs)

    def known_stages(self, pair: Equation) -> tuple[Equation, Equation, Equation]:
        """Return an equation that is known, as `stages`; x = x where it has no form at L + 1.

        The order k - 1 of a sum over paths may be zero, so it is known for the first L layers only.
        """
        try:
            return self.stages(pair)
        except RuleError:
            free: Scope = dict(inspect(*pair).indices.values())
            lhs, rhs = self.still(pair[0], free), self.still(pair[1], free)
            return (lhs, lhs), (lhs, rhs), (lhs, lhs)

    def cited(self, lemmas: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return lemmas for one layer, and for the first L layers and for all L + 1."""
        at_one, later = [], []
        for each in lemmas:
            one, before, more = self.stages((each.lhs, each.rhs))
            at_one.append(each.at(*one, {}))
            later.append(each.at(*before, {}))
            if self.depth.name in each.sizes:
                later.append(each.at(*more, {self.depth.name: self.depth + 1}))
        return tuple(at_one), tuple(later)

    # -- what unfolds ------------------------------------------------------------------------------

    def unfolds(self, e: Any) -> bool:
        """Return whether an expression as a whole is opaque at depth L."""
        if isinstance(e, LayerProduct | OrderSum):
            return bool(e.count == self.depth)
        if isinstance(e, HeadSum):
            by_order = self.all_orders(e) or self.some_orders(e) or self.graded_orders(e)
            return (by_order or self.over_layers(e)) is not None and not self.stays(e)
        return isinstance(e, sympy.Pow) and bool(e.exp == self.depth)

    def stays(self, e: HeadSum) -> bool:
        """Return whether a sum over the first L layers is read as such: it is of matrices alone."""
        terms = self.over_layers(e) if self.open_sums else None
        return terms is not None and not (e.body.has(LayerProduct, OrderSum) or self.uses(e.body))

    def stays_with_members(self, e: HeadSum) -> bool:
        """Return whether a sum over the first L layers is read as such, with members at L in it."""
        if not self.open_sums or len(e.limits) != 1 or e.limits[0][1] != self.depth:
            return False
        if not self.uses(e.body) or e.body.has(LayerProduct, OrderSum, HeadSum, sympy.Sum):
            return False
        members = {m: MatrixSymbol("·", *m.shape) for m in parts_of(e.body, AffineMember)}
        return not self.uses(e.body.xreplace(members))

    def with_members(self, e: HeadSum, scope: Scope, walk: Callable[[Any, Scope], Any]) -> HeadSum:
        """Return a sum over the first L layers, with its members at L or at L + 1."""
        ((index, count),) = e.limits
        made = HeadSum(walk(e.body, {**scope, index: count}), (index, count))
        self.zero[made] = ZeroMatrix(*e.shape)
        return made

    def over_layers(self, e: HeadSum) -> tuple[sympy.Symbol, Any] | None:
        """Return the index and the body of a sum over all layers; nested sums may be exchanged."""
        for at, (index, count) in enumerate(e.limits):
            if count == self.depth:
                others = (*e.limits[:at], *e.limits[at + 1 :])
                return index, HeadSum(e.body, *others) if others else e.body
        return None

    def all_orders(self, e: HeadSum) -> OrderSum | None:
        """Return the OrderSum in a sum over all its orders, 0 to L."""
        ((index, count), *others), body = e.limits, e.body
        if others or not isinstance(body, OrderSum) or body.count != self.depth:
            return None
        whole = body.order == index and sympy.expand(count - self.depth) == 1
        return body if whole and index not in free_symbols(body.body) else None

    def graded_orders(self, e: HeadSum) -> tuple[OrderSum, Any] | None:
        """Return the OrderSum and the S in a sum over all its orders k, 0 to L, each ⊗ Sᵏ.

        One more layer adds (last ⊗ S) times the sum, at order k + 1. Sᵏ is a `LayerProduct` of k
        equal factors, on either side of ⊗.
        """
        ((index, count), *others), body = e.limits, e.body
        if others or not isinstance(body, KroneckerProduct) or len(body.args) != 2:
            return None
        orders, power = sorted(body.args, key=lambda part: isinstance(part, LayerProduct))
        if not isinstance(orders, OrderSum) or not isinstance(power, LayerProduct):
            return None
        whole = orders.count == self.depth and sympy.expand(count - self.depth) == 1
        graded = orders.order == index and power.count == index
        fixed = index not in free_symbols(orders.body)
        fixed &= not {index, power.index} & free_symbols(power.body) and not self.uses(power.body)
        return (orders, power.body) if whole and graded and fixed else None

    def some_orders(self, e: HeadSum) -> OrderSum | None:
        """Return the OrderSum in a sum over its orders 0 to a number that does not depend on L."""
        ((index, count), *others), body = e.limits, e.body
        if others or not isinstance(body, OrderSum) or body.count != self.depth:
            return None
        plain = body.order == index and index not in free_symbols(body.body)
        return body if plain and self.depth not in count.free_symbols else None

    def first_orders(self, e: HeadSum, scope: Scope) -> OrderSum | None:
        """Return the OrderSum in a sum over its first orders; their number must be at least 1."""
        orders, ((_, count), *_) = self.some_orders(e), e.limits
        if orders is None:
            return None
        if not _positive(count, scope):
            raise RuleError(f"nothing says that {count} orders are at least one")
        return orders

    def one_more_order(self, e: OrderSum, scope: Scope) -> Any:
        """Return an OrderSum over L + 1 layers: paths without, plus those with, the last layer."""
        without = self.still(e, scope)
        if e.order == 0:
            return without
        if not _positive(e.order, scope):
            raise RuleError(f"the order {e.order} of an OrderSum is open: sum over all orders")
        fewer = OrderSum(e.body, (e.index, e.count), e.order - 1, e.reverse)
        before, last = self.still(fewer, scope), self.of_last(e.body, e.index, scope)
        return matadd(without, matmul(before, last) if e.reverse else matmul(last, before))

    def empty(self, e: Any, scope: Scope) -> Any:
        """Return the value of an expression at depth 0, or None if unknown.

        Without layers there is one path, of order 0.
        """
        if isinstance(e, sympy.Pow):
            return sympy.S.One
        if isinstance(e, LayerProduct):
            return Identity(e.shape[0])
        if isinstance(e, HeadSum) and (self.all_orders(e) or self.graded_orders(e)):
            return Identity(e.shape[0])
        if isinstance(e, OrderSum):
            return ZeroMatrix(*e.shape) if _positive(e.order, scope) else self.without_layers(e)
        if isinstance(e, HeadSum) and self.some_orders(e):
            return Identity(e.shape[0]) if _positive(e.limits[0][1], scope) else None
        return ZeroMatrix(*e.shape)

    def without_layers(self, e: OrderSum) -> Any:
        """Return a sum over paths through no layers: the identity at order 0, so a multiple of it.

        That of an order that is an index is unknown.
        """
        if not e.order.is_integer or e.order.free_symbols & {self.depth} or not _is_size(e.order):
            return None
        if e.order not in self.none:
            self.none[e.order] = sympy.Symbol(self.fresh("none"))
        return matmul(self.none[e.order], Identity(e.shape[0]))

    # -- opaque parts ------------------------------------------------------------------------------

    def known(self, e: Any, scope: Scope) -> Any:
        """Return the opaque symbol for the first L layers of an expression; equal ones share it.

        It depends on every free index of the expression except the last layer.
        """
        if e in self.opaque:
            return self.opaque[e]
        self.counts |= {*scope} & {getattr(e, "count", None)}
        for other, stands_for in self.opaque.items():
            bodies = self.bodies(other, e, scope)
            if bodies is not None and self.same(*bodies):
                self.opaque[e], self.alike[e] = stands_for, bodies
                return stands_for
        free = [index for index in scope if index in free_symbols(e)]
        name = self.fresh(f"{_LETTER[type(e)]}_{self.tag(e)}")
        if isinstance(e, sympy.Pow):
            new: Any = sympy.Symbol(name)
        elif free:
            new = Family(name, [scope[i] for i in free], *e.shape)[tuple(free)]
        else:
            new = MatrixSymbol(name, *e.shape)
        self.opaque[e] = new
        empty = self.empty(e, scope)
        if empty is not None:  # else the base is proved whatever it is
            self.zero[new] = empty
        return new

    def bodies(self, e: Any, f: Any, scope: Scope) -> Equation | None:
        """Return the bodies of two products, or sums of one order, over the same layers, or None.

        Both bodies are for the same layer. An index that is used as a number in them would be read
        as a size, which is never zero.
        """
        if type(e) is not type(f) or not isinstance(e, LayerProduct | OrderSum):
            return None
        if e.count != f.count or e.args[2:] != f.args[2:] or e.shape != f.shape:
            return None
        layer = e.index
        if layer in free_symbols(f):
            layer = sympy.Symbol(fresh_name(layer.name, self.names), integer=True)
        bodies = substituted(e.body, {e.index: layer}), substituted(f.body, {f.index: layer})
        numbers = used_as_numbers(bodies[0]) | used_as_numbers(bodies[1])
        return None if numbers & {layer, self.last, *scope} else bodies

    def of_last(self, body: Any, index: sympy.Symbol, scope: Scope) -> Any:
        """Return the body at the last layer, which has the number L and arbitrary weights.

        The layers before it are the first L layers, which are opaque.
        """
        if self.uses(body):
            raise RuleError(f"the body of a product over {self.depth} layers depends on it")
        return self.still(self.put(body, index), scope)

    def uses(self, e: Any) -> bool:
        """Return whether an expression uses the depth, other than as a count of a family."""
        if isinstance(e, AffineMember):
            constants = [constant for constant, _ in e.forms]
            return any(self.depth in free_symbols(size) for size in (*e.shape, *constants))
        if isinstance(e, FamilyMember | MatrixSymbol):
            return any(self.depth in free_symbols(size) for size in e.shape)
        return bool(e == self.depth) or any(map(self.uses, e.args))

    def put(self, e: Any, index: sympy.Symbol) -> Any:
        """Return an expression with an index of layers replaced by the last layer, a count by L."""
        if index not in free_symbols(e):
            return e
        if e == index:
            raise RuleError(f"the layer {index} is used as a number")
        indices = index_places(e)
        arguments = [
            self.last if at in indices and a == index else self.put(a, index)
            for at, a in enumerate(e.args)
            if not (at == 1 and _counts(e, index))
        ]
        if _counts(e, index):
            arguments.insert(1, sympy.Tuple(e.index, self.depth))
        return rebuilt(e, arguments)

    def parts(self, e: Any, scope: Scope, walk: Callable[[Any, Scope], Any]) -> Any:
        """Return an expression with `walk` applied to its arguments.

        Raises RuleError if the depth is a size or the end of a range.
        """
        spend(NODE)
        sizes = e.shape if getattr(e, "is_Matrix", False) else ()
        ranges = [count for _, count in bindings(e)]
        if any(self.depth in free_symbols(sympy.sympify(part)) for part in (*sizes, *ranges)):
            raise RuleError(f"{self.depth} is a size or a range as well as a number of layers")
        if not e.args or isinstance(e, FamilyMember | MatrixSymbol):
            return e
        if isinstance(e, sympy.ImmutableDenseMatrix):
            entries = sympy.Tuple(*[walk(a, scope) for a in e])
            return rebuilt(e, [*e.args[:2], entries])
        inner = {**scope, **{index: scope.get(count, count) for index, count in bindings(e)}}
        return rebuilt(e, [a if isinstance(a, sympy.Tuple) else walk(a, inner) for a in e.args])


_LETTER = {LayerProduct: "Π", HeadSum: "Σ", OrderSum: "Ω", sympy.Pow: "power"}


def _counts(e: Any, index: sympy.Symbol) -> bool:
    """Return whether an expression is over the layers before layer `index`."""
    return isinstance(e, LayerProduct | OrderSum) and bool(e.count == index)


def _parts(e: Any) -> Iterator[Any]:
    """Yield all subexpressions of an expression."""
    yield from sympy.preorder_traversal(e)


def _argument_of_partial(e: Any) -> Any:
    """Return the argument of a partial function such as an inverse, None for other nodes."""
    if isinstance(e, sympy.MatPow | sympy.Pow):
        return None if e.exp.is_Integer and e.exp >= 0 else e.base
    if isinstance(e, RowSoftmax):
        return e.mask
    if isinstance(e, RMSNorm | LayerNorm) or (isinstance(e, Activation) and is_partial(e.name)):
        return e
    return None


def _certainly_positive(number: Any, sizes: Collection[sympy.Symbol]) -> bool:
    """Return whether a number is a sum of products of sizes with positive coefficients."""
    if not free_symbols(number) <= {*sizes} or parts_of(number, sympy.MatrixExpr):
        return False
    expanded = sympy.expand(number)
    positive = (term.as_coeff_Mul()[0].is_positive for term in sympy.Add.make_args(expanded))
    return bool(expanded.is_polynomial()) and all(positive)


def _is_size(number: Any) -> bool:
    """Return whether a number is made of symbols for sizes, and of no index."""
    return all(symbol.is_positive for symbol in number.free_symbols)


def _positive(number: Any, scope: Scope) -> bool:
    """Return whether a number is at least 1; an index, which starts at 0, need not be."""
    return bool(number.is_integer and number.is_positive and not free_symbols(number) & {*scope})
