"""Rewriting two sides, rule by rule, until they meet; the way across is a chain of steps.

Each side is rewritten in several orders of the moves. All expressions reached are nodes of one
graph, whose edges are single uses of rules. The chain is the shortest path between the sides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import sympy
from sympy import HadamardPower, HadamardProduct
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.budget import Exhausted, spend
from otimes.algebra.explain.derivation import Step, one_step
from otimes.algebra.explain.moves import Change, Scope
from otimes.algebra.explain.strategies import (
    BY_DEFINITION,
    DIAGONALS,
    MOVES,
    NUMBER,
    OPEN_GIVEN,
    TIERS,
    Strategy,
    Tier,
)
from otimes.algebra.language.linear import FamilyMember
from otimes.algebra.language.nonlinear import LayerNorm, RMSNorm
from otimes.algebra.rules import RULES
from otimes.algebra.rules.nonlinear import ROWWISE
from otimes.algebra.rules.rule import Path, at, children, is_matrix, replaced

MOVE = 10  # work units for trying a move on a subexpression
MAX_STEPS = 600  # maximum number of rewrites of one side
MAX_PARTS = 4_000  # of an expression that is rewritten, and its maximum depth
MAX_DEPTH = 80
MAX_SHORTCUTS = 60  # longer chains are not searched for shortcuts

Edges = dict[Any, list[Step]]


@dataclass(slots=True, eq=False)
class Part:
    """An expression within those that are rewritten, with what has been found out about it.

    `idle` are the moves that do not apply to it. `children` are its parts with their positions,
    none where it is `opaque` and arguments of functions are not rewritten. `sizes` and `heights`
    count the parts that are reached with and without these arguments. `settled` are the lists of
    moves none of which applies anywhere in it, each with whether it stands inside a number.
    """

    expression: Any
    kind: type
    number: bool
    opaque: bool
    children: tuple[tuple[int, Part], ...]
    sizes: tuple[int, int]
    heights: tuple[int, int]
    idle: set[str] = field(default_factory=set)
    settled: set[tuple[_Moves, bool, bool]] = field(default_factory=set)


Found = dict[type, list[tuple[Path, Part]]]


@dataclass(slots=True)
class Places:
    """The parts of an expression by class: all, and those that are no numbers inside numbers.

    Each has its path. Parts to which no move of the strategy applies are left out, though they
    are in the `count`.
    """

    parts: Found
    whole: Found
    count: int


@dataclass(slots=True)
class Rewriter:
    """Rewrites expressions by moves, and remembers moves that do not apply."""

    scope: Scope
    known: dict[Any, Part] = field(default_factory=dict)
    refused: set[frozenset[Any]] = field(default_factory=set)  # {before, after} of rejected steps

    def refuse(self, steps: Sequence[Step]) -> None:
        """Reject the given steps, in both directions, in later searches."""
        self.refused |= {frozenset((step.before, step.after)) for step in steps}

    def meet(self, lhs: Any, rhs: Any, tiers: Sequence[Tier] | None = None) -> list[Step] | None:
        """Return the shortest chain between two sides, from the first tier that finds one.

        `tiers` None: all applicable tiers.
        """
        edges: Edges = {}
        first, *others = TIERS if tiers is None else tiers
        if tiers is None and any(side.has(RMSNorm, LayerNorm) for side in (lhs, rhs)):
            others = [*BY_DEFINITION, *others]
        if any(side.has(HadamardProduct, HadamardPower) for side in (lhs, rhs)):
            others = [DIAGONALS, *others]
        if self.scope.given:
            others = [OPEN_GIVEN, *others]
        for tier in (first, *others):
            for strategy in tier:
                try:
                    for side in (lhs, rhs):
                        self.rewritten(side, strategy, edges)
                except Exhausted:  # a chain found by parts remains valid
                    return None
            steps = shortest(edges, lhs, rhs, self.refused)
            if steps is not None:
                return with_shortcuts(steps, self.scope.given)
        return None

    def rewritten(self, e: Any, strategy: Strategy, edges: Edges) -> Any:
        """Rewrite until no move applies; add each step to the edges in both directions."""
        seen = {e}
        inside = not strategy.opaque
        last: str | None = None
        if strategy.opens and is_matrix(e):
            opened = next(RULES["matrix_of_entries"].results(e), None)
            if opened is None:
                return e
            e = _add(edges, Change("matrix_of_entries", (), False, opened), e)
        for _ in range(MAX_STEPS):
            # a rule is applied everywhere before the next one
            again = [last] if last is not None and last in RULES else []
            places = self._places(e, inside, strategy.moves)
            if places is None:
                return e
            found = self._next(e, places, again) or self._next(e, places, strategy.moves)
            if found is None:
                return e
            last, changes = found
            for change in changes:
                e = _add(edges, change, e)
            if e in seen:
                return e
            seen.add(e)
        return e

    def _next(
        self, e: Any, places: Places, moves: Sequence[str]
    ) -> tuple[str, list[Change]] | None:
        parts, whole = places.parts, places.whole
        spend(3 * places.count)
        for name in moves:
            kinds, move = MOVES[name]
            among = parts if kinds else whole
            for kind in kinds or whole:
                for path, part in among.get(kind, ()):
                    if name in part.idle or (
                        name == NUMBER and path and type(at(e, path[:-1])) is sympy.Trace
                    ):
                        continue
                    spend(MOVE)
                    changes = move(part.expression, self.scope)
                    if changes:
                        return name, [c._replace(path=path + c.path) for c in changes]
                    part.idle.add(name)
        return None

    def _places(self, e: Any, inside: bool, moves: tuple[str, ...]) -> Places | None:
        """Return the parts of an expression, or None if it is too large to be rewritten."""
        root = self._part(e)
        if root.sizes[inside] > MAX_PARTS + 1 or root.heights[inside] > MAX_DEPTH:
            spend(3 * min(root.sizes[inside], MAX_PARTS + 1))
            return None
        found = Places({}, {}, root.sizes[inside])
        _collect(root, (), False, inside, _looked_for(moves), found)
        return found

    def _part(self, e: Any) -> Part:
        """Return what is known about an expression, and about its parts."""
        known = self.known.get(e)
        if known is None:
            known = self.known[e] = _made(e, [(k, self._part(x)) for k, x in _children(e)])
        return known


def _made(e: Any, children: Sequence[tuple[int, Part]]) -> Part:
    kind = type(e)
    opaque = kind in ROWWISE
    sizes = [1 + sum(part.sizes[inside] for _, part in children) for inside in (0, 1)]
    heights = [1 + max((part.heights[inside] for _, part in children), default=-1)
               for inside in (0, 1)]  # fmt: skip
    if opaque:
        sizes[0], heights[0] = 1, 0
    number = kind in (sympy.Add, sympy.Mul, sympy.Pow)
    return Part(
        e, kind, number, opaque, tuple(children), (sizes[0], sizes[1]), (heights[0], heights[1])
    )


def _children(e: Any) -> Iterator[tuple[int, Any]]:
    """Yield the parts that are rewritten; an entry of a tensor has none."""
    if type(e) is MatrixElement and isinstance(e.args[0], sympy.MatrixSymbol | FamilyMember):
        return
    yield from children(e)


class _Moves:
    """Those of a list of moves that look at a class; inside a number, only those that name it."""

    __slots__ = ("_of", "moves")

    def __init__(self, moves: tuple[str, ...]) -> None:
        self.moves = moves
        self._of: dict[tuple[type, bool], frozenset[str]] = {}

    def of(self, kind: type, nested: bool) -> frozenset[str]:
        found = self._of.get((kind, nested))
        if found is None:
            found = self._of[kind, nested] = frozenset(
                name
                for name in self.moves
                if kind in MOVES[name][0] or (not MOVES[name][0] and not nested)
            )
        return found


_looked_for = cache(_Moves)


def _collect(
    part: Part, path: Path, inside_number: bool, inside: bool, moves: _Moves, found: Places
) -> bool:
    """Add a part and the parts in it, parents first; return whether no move applies to them.

    Arguments of functions are skipped unless `inside` is true.
    """
    nested = part.number and inside_number
    mark = moves, nested, inside
    if mark in part.settled:
        return True
    settled = part.idle.issuperset(moves.of(part.kind, nested))
    if not settled:
        place = path, part
        found.parts.setdefault(part.kind, []).append(place)
        if not nested:
            found.whole.setdefault(part.kind, []).append(place)
    if inside or not part.opaque:
        for position, child in part.children:
            if not _collect(child, (*path, position), part.number, inside, moves, found):
                settled = False
    if settled:
        part.settled.add(mark)
    return settled


def _add(edges: Edges, change: Change, e: Any) -> Any:
    """Add a change to the edges, and return the changed expression."""
    name, path, reverse, new = change
    after = replaced(e, path, new)
    edges.setdefault(e, []).append(Step(name, path, reverse, e, after))
    edges.setdefault(after, []).append(Step(name, path, not reverse, after, e))
    return after


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
    """Replace sections of a chain by a single step where one rule suffices."""
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
