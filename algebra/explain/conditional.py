"""Chains for claims with hypotheses or inverses, by the equations used in the proof.

A proof under hypotheses, or with inverses, is lhs − rhs = Σ coefficient · context[left − right].
Each use is a step that replaces context[left] by context[right] in the current sum. Between two
uses only identities are needed, which are found by rewriting.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import sympy
from sympy import Identity, Inverse, MatAdd

from otimes.algebra.budget import STEPS, limited
from otimes.algebra.decide.axioms import instances
from otimes.algebra.decide.entailment import Use, consequences, entail, relations_of
from otimes.algebra.diagrams.matching import HOLE
from otimes.algebra.diagrams.sums import DiagramSum, Terms, difference
from otimes.algebra.errors import Undecided
from otimes.algebra.explain.function_moves import follows
from otimes.algebra.explain.readback import NotWritten, Renderer
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.shapes import inspect
from otimes.algebra.reading.interpretation import Interpretation
from otimes.algebra.reading.read import read
from otimes.algebra.rules.rule import product

Pair = tuple[Any, Any]


class Exchange(NamedTuple):
    """Two expressions that differ by one use of one equation."""

    before: Any
    after: Any


def exchanges(lhs: Any, rhs: Any, given: Sequence[Pair]) -> list[Exchange] | None:
    """Return the uses of equations that lead from lhs to rhs, or None if there are none.

    `given` are the hypotheses; the defining equations of inverses and the
    instances of axioms are used as well.
    """
    derived = [(x, y) for k, pair in enumerate(given) for _, x, y in consequences(k, *pair)]
    sides = [side for pair in ((lhs, rhs), *given) for side in pair]
    signature = inspect(*sides)
    said = instances(sides, lambda x, y: follows(x, y, tuple(given)))
    equations: list[Pair] = [*given, *derived, *[(axiom.lhs, axiom.rhs) for axiom in said]]
    try:
        reading, ((left, right), *values) = read(signature, (lhs, rhs), *equations)
    except Undecided:
        return None
    for _, e in reading.inverses.values():
        one = Identity(e.shape[0])
        equations += [(product(e, Inverse(e)), one), (product(Inverse(e), e), one)]
    values = [*values, *[(x, y) for _, x, y in reading.inverse_equations]]
    relations = [r for k, pair in enumerate(values) for r in relations_of(("equation", k), *pair)]
    # what is used without a leg of its own is no exchange of the equation as it stands
    relations = [r for r in relations if max((*r.rows, *r.cols), default=0) <= 0]
    rest = difference(left.terms, right.terms)
    if not relations or not rest:
        return None
    for simple in (True, False):
        with limited((0.5 if simple else 5.0) * STEPS):
            uses = entail(rest, relations, reading.dimensions, signature.sizes, simple)
        if uses is not None:
            scalar = not getattr(lhs, "is_Matrix", False)
            if any(min((*use.relation.rows, *use.relation.cols), default=0) < 0 for use in uses):
                return None  # one block of an equation of matrices in blocks
            writer = _Writer(reading, equations, values, scalar, (lhs, rhs))
            with suppress(NotWritten):
                return writer.exchanges(left.terms, uses)
            return None
    return None


class _Writer:
    def __init__(
        self,
        reading: Interpretation,
        equations: Sequence[Pair],
        values: Sequence[tuple[DiagramSum, ...]],
        scalar: bool,
        sides: Pair,
    ) -> None:
        self.reading = reading
        self.equations = equations
        self.values = values
        avoid = [*sides, *[side for pair in equations for side in pair]]
        self.renderer = Renderer(reading, avoid, scalar)
        self.scalar = scalar

    def exchanges(self, start: Terms, uses: Sequence[Use]) -> list[Exchange]:
        """Return the uses as steps, with order and directions chosen to keep the sums short."""
        left = list(uses)
        here = dict(start)
        made = []
        while left:
            ways = [(use, forward) for use in left for forward in (True, False)]
            sums = [self.without(here, use, forward) for use, forward in ways]
            best = min(range(len(ways)), key=lambda k: len(sums[k]))
            use, forward = ways[best]
            made.append(self.exchange(sums[best], use, forward))
            left.remove(use)
            here = self.without(self.without(here, use, True), use, False)
        return made

    def without(self, here: Terms, use: Use, forward: bool) -> Terms:
        """Return the sum minus the term that a use replaces, in either direction."""
        result = dict(here)
        number, factor = (0, use.whole * -1) if forward else (1, use.whole)
        for diagram, coefficient in self.values[use.relation.fact[1]][number].terms.items():
            self.reading.put(result, use.context.plug(diagram), coefficient * factor)
        return result

    def exchange(self, rest: Terms, use: Use, forward: bool) -> Exchange:
        """Return the expressions before and after a use; `rest` are the unchanged terms."""
        left, right = self.equations[use.relation.fact[1]]
        old, new = (left, right) if forward else (right, left)
        beside = [self.renderer.term(c, d) for d, c in rest.items()]
        context = use.context
        names = inspect(left, right).indices
        hole = (HOLE, *context.rows, *context.cols)
        diagram = context.diagram._replace(boxes=(*context.diagram.boxes, hole))
        at_hole = dict(context.named)
        coefficient = use.whole if forward else use.whole * -1
        ends = []
        for side in (old, new):

            def filling(at: Any, side: Any = side) -> Any:
                return substituted(side, {names[n][0]: at[n] for n in at if n in names})

            ends.append(self.renderer.term(coefficient, diagram, filling, at_hole))
        kind = sympy.Add if self.scalar else MatAdd
        before, after = (kind(*beside, end, evaluate=False) if beside else end for end in ends)
        return Exchange(before, after)
