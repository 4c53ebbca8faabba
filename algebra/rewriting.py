"""Rewriting two sides, rule by rule, until they meet; the way across is a chain of steps.

Each side is rewritten in several orders of the moves, and everything met on the way is a node of
one graph, whose edges are single uses of rules. The shortest way through it is the chain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
from sympy import HadamardPower, HadamardProduct
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra.budget import Exhausted, spend
from algebra.derivation import Step, one_step
from algebra.language import FamilyMember
from algebra.moves import Change, Scope
from algebra.nonlinear import LayerNorm, RMSNorm
from algebra.rules import RULES
from algebra.rules.nonlinear import ROWWISE
from algebra.rules.rule import Path, at, children, is_matrix, replaced
from algebra.strategies import (
    BY_DEFINITION,
    DIAGONALS,
    MOVES,
    OPAQUE,
    OPEN_GIVEN,
    OPENING,
    OUTSIDE_TRACE,
    SWEEPING,
    TIERS,
)

MOVE = 10  # steps for trying a move at a place
MAX_STEPS = 600  # rewrites of one side before it is left as it is
MAX_PARTS = 4_000  # of an expression, and how deep it may be, before it is left as it is
MAX_DEPTH = 80
MAX_SHORTCUTS = 60  # chains longer than this are not searched for steps that skip others

Edges = dict[Any, list[Step]]


@dataclass(slots=True)
class Rewriter:
    """Rewrites with moves; what a move cannot do somewhere is asked once only."""

    scope: Scope
    idle: set[tuple[int, Any]] = field(default_factory=set)  # (move, part): nothing to do
    refused: set[frozenset[Any]] = field(default_factory=set)  # {before, after} of steps not taken

    def refuse(self, steps: Sequence[Step]) -> None:
        """Take no step again between the expressions of these."""
        self.refused |= {frozenset((step.before, step.after)) for step in steps}

    def meet(
        self, lhs: Any, rhs: Any, tiers: Sequence[Sequence[Sequence[int]]] = TIERS
    ) -> list[Step] | None:
        """Return the shortest chain between two sides that the first tier to find one gives."""
        edges: Edges = {}
        if tiers is TIERS and any(side.has(RMSNorm, LayerNorm) for side in (lhs, rhs)):
            tiers = [*tiers[:1], *BY_DEFINITION, *tiers[1:]]
        if any(side.has(HadamardProduct, HadamardPower) for side in (lhs, rhs)):
            tiers = [*tiers[:1], DIAGONALS, *tiers[1:]]
        if self.scope.given:
            tiers = [*tiers[:1], OPEN_GIVEN, *tiers[1:]]
        for tier in tiers:
            for moves in tier:
                try:
                    for side in (lhs, rhs):
                        self.rewritten(side, moves, edges)
                except Exhausted:  # a chain that was found by parts stands all the same
                    return None
            steps = shortest(edges, lhs, rhs, self.refused)
            if steps is not None:
                return with_shortcuts(steps, self.scope.given)
        return None

    def rewritten(self, e: Any, moves: Sequence[int], edges: Edges) -> Any:
        """Rewrite until nothing applies, adding each step to the edges, both ways round."""
        seen = {e}
        inside = not any(moves is opaque for opaque in OPAQUE)
        last: int | None = None
        if any(moves is opening for opening in OPENING) and is_matrix(e):
            opened = next(RULES["matrix_of_entries"].results(e), None)
            if opened is None:
                return e
            e = _add(edges, Change("matrix_of_entries", (), False, opened), e)
        for _ in range(MAX_STEPS):
            again = [last] if last is not None and last in SWEEPING else []
            found = self._next(e, again, inside) or self._next(e, moves, inside)
            if found is None:
                return e
            last, changes = found  # a rule is used up everywhere before another one has its turn
            for change in changes:
                e = _add(edges, change, e)
            if e in seen:
                return e
            seen.add(e)
        return e

    def _next(self, e: Any, moves: Sequence[int], inside: bool) -> tuple[int, list[Change]] | None:
        whole: dict[type, list[tuple[Path, Any]]] = {}
        parts: dict[type, list[tuple[Path, Any]]] = {}
        for count, (path, part, nested) in enumerate(_parts(e, inside)):
            if count > MAX_PARTS or len(path) > MAX_DEPTH:
                return None
            spend(3)
            parts.setdefault(type(part), []).append((path, part))
            if not nested:
                whole.setdefault(type(part), []).append((path, part))
        for number in moves:
            kinds, move = MOVES[number]
            among = parts if kinds else whole
            for kind in kinds or whole:
                for path, part in among.get(kind, ()):
                    if (number, part) in self.idle or (
                        number in OUTSIDE_TRACE and path and type(at(e, path[:-1])) is sympy.Trace
                    ):
                        continue
                    spend(MOVE)
                    changes = move(part, self.scope)
                    if changes:
                        return number, [c._replace(path=path + c.path) for c in changes]
                    self.idle.add((number, part))
        return None


def _add(edges: Edges, change: Change, e: Any) -> Any:
    """Add a change to the edges, and return what it makes of the expression."""
    name, path, reverse, new = change
    after = replaced(e, path, new)
    edges.setdefault(e, []).append(Step(name, path, reverse, e, after))
    edges.setdefault(after, []).append(Step(name, path, not reverse, after, e))
    return after


def _parts(
    e: Any, inside: bool, path: Path = (), inside_number: bool = False
) -> Iterator[tuple[Path, Any, bool]]:
    """Yield (path, part, whether it is a number inside a number), parents first.

    What functions are taken of is left out where `inside` is false.
    """
    number = type(e) in (sympy.Add, sympy.Mul, sympy.Pow)
    yield path, e, number and inside_number
    if type(e) is MatrixElement and isinstance(e.args[0], sympy.MatrixSymbol | FamilyMember):
        return  # an entry of a tensor is as far as one can go
    if not inside and type(e) in ROWWISE:
        return
    for position, argument in children(e):
        yield from _parts(argument, inside, (*path, position), number)


def shortest(
    edges: Edges, start: Any, goal: Any, refused: Container[frozenset[Any]] = ()
) -> list[Step] | None:
    """Return the shortest chain of the edges from start to goal."""
    came: dict[Any, Step | None] = {start: None}
    queue = deque([start])
    while queue and goal not in came:
        here = queue.popleft()
        for step in edges.get(here, ()):
            if step.after not in came and frozenset((here, step.after)) not in refused:
                came[step.after] = step
                queue.append(step.after)
    if goal not in came:
        return None
    chain: list[Step] = []
    back = came[goal]
    while back is not None:
        chain.append(back)
        back = came[back.before]
    return chain[::-1]


def with_shortcuts(steps: list[Step], given: tuple[tuple[Any, Any], ...]) -> list[Step]:
    """Replace stretches of a chain that one use of one rule does as well."""
    if len(steps) > MAX_SHORTCUTS:
        return steps
    chain = [steps[0].before, *[s.after for s in steps]] if steps else []
    result: list[Step] = []
    here = 0
    while here < len(steps):
        for there in range(len(steps), here + 1, -1):
            jump = one_step(chain[here], chain[there], given)
            if jump is not None:
                result.append(jump)
                here = there
                break
        else:
            result.append(steps[here])
            here += 1
    return result
