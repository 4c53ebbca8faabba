"""Claims about every order of a sum over paths: by induction over the order, then over the layers.

The paths of order k + 1 through L + 1 layers are those that skip the last layer, and those of order
k through the first L that go on through it. So a claim about order k + 1 and L + 1 layers follows
from the same claim about L layers, of the orders k + 1 and k.
"""

from __future__ import annotations

from typing import Any

import sympy

from otimes.algebra.decide.induction import Opened, Scope
from otimes.algebra.language.binders import free_symbols, substituted
from otimes.algebra.language.layers import OrderSum
from otimes.algebra.language.trees import parts_of


class OverOrder(Opened):
    """A claim at order k and at order k + 1; a sum over paths stays one."""

    def more(self, e: Any, scope: Scope) -> Any:
        """Return an expression at order k + 1."""
        if self.has_order(e):
            return self.ordered(e, self.more(e.body, scope), self.depth + 1)
        return super().more(e, scope)

    def still(self, e: Any, scope: Scope) -> Any:
        """Return an expression at order k."""
        if self.has_order(e):
            return self.ordered(e, self.still(e.body, scope), self.depth)
        return super().still(e, scope)

    def at_zero(self, e: Any) -> Any:
        """Return an expression at order 1: that at order k + 1 with k = 0."""
        if self.has_order(e):
            return self.ordered(e, self.at_zero(e.body), sympy.S.Zero)
        return super().at_zero(e)

    def has_order(self, e: Any) -> bool:
        """Return whether an expression is a sum over paths, with the symbol in its order."""
        return isinstance(e, OrderSum) and self.depth in free_symbols(e.order)

    def ordered(self, e: OrderSum, body: Any, order: Any) -> OrderSum:
        """Return a sum over paths at another order."""
        new = sympy.expand(substituted(e.order, {self.depth: order}).doit())
        return OrderSum(body, (e.index, e.count), new, e.reverse)

    def uses(self, e: Any) -> bool:
        """Return whether an expression uses the order, other than as one."""
        return self.uses(e.body) if self.has_order(e) else super().uses(e)


def orders_of(*expressions: Any) -> list[sympy.Symbol]:
    """Return the symbols for the order of a sum over paths, by name."""
    orders = {part.order for e in expressions for part in parts_of(e, OrderSum)}
    free = frozenset().union(*map(free_symbols, expressions))
    positive = {k for k in orders if isinstance(k, sympy.Symbol) and k.is_positive}
    return sorted(positive & free, key=str)
