"""Finding a chain of named rules between two sides of a proved equation.

Both sides are rewritten, rule by rule, until they meet; the chain is the shortest path in the graph
of all expressions that were reached. Where the two sides share subexpressions, only the differing
ones are rewritten. Every step is then checked (`Derivation.check`). `explain` returns None where it
finds no chain, which implies nothing about the truth of the equation.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import sympy
from sympy import Identity, Inverse, MatMul

from otimes.algebra.budget import STEPS, Budget, Exhausted, limited, steps_left
from otimes.algebra.errors import OtimesError
from otimes.algebra.explain.conditional import exchanges
from otimes.algebra.explain.derivation import Derivation, Step, one_step
from otimes.algebra.explain.judged import proved
from otimes.algebra.explain.moves import Scope, index_names
from otimes.algebra.explain.rewriting import Rewriter, shortest, with_shortcuts
from otimes.algebra.explain.strategies import LINKS, LINKS_OUTSIDE, OUTSIDE, PLAIN, Strategy
from otimes.algebra.language.binders import standardised
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.shapes import inspect, with_ranges
from otimes.algebra.rules.expansion import NORMAL_FORM, same_normal_form
from otimes.algebra.rules.given import as_pair
from otimes.algebra.rules.nonlinear import ROWWISE
from otimes.algebra.rules.rule import children, is_matrix, product, replaced

BUDGET = 20.0  # units of work
MAX_NODES = 2_000  # of one side, and its maximum depth
MAX_DEPTH = 60
ATTEMPTS = 3
LINES, LINK = 10, 3  # of a chain, and of what is between two uses; longer ones are one step
# Units of work for a part: where it may be equal by hypotheses, inverses or axioms, or else not.
SEARCHED, PLAINLY = 0.2, 0.05
# Units of work for rewriting both sides under hypotheses, and for a link, where as many are left.
MEETING, LINKING = 5.0, 1.5
_units = ContextVar("units", default=BUDGET)
SEARCHED_FOR = (Inverse, RowSoftmax, CausalMask, Activation, RMSNorm, LayerNorm)


def explain(
    lhs: Any, rhs: Any, budget: float | None = None, given: Sequence[Any] = ()
) -> Derivation | None:
    """Return a chain of named, verified steps from lhs to rhs, or None.

    `budget`: how much work the search may do, in the units of `decide` (20 when None). `given`:
    hypotheses, as pairs or `sympy.Eq`; a step that uses the first of them is called `given_1`.

    >>> from sympy import Identity, MatrixSymbol, Symbol
    >>> from otimes.algebra.language.linear import kron, matmul
    >>> n, d = Symbol("n"), Symbol("d")
    >>> A, W = MatrixSymbol("A", n, n), MatrixSymbol("W", d, d)
    >>> print(explain(matmul(kron(A, Identity(d)), kron(Identity(n), W)), kron(A, W)))
      (A ⊗ I_d) (I_n ⊗ W)
    = A I_n ⊗ I_d W         kron_mul_kron
    = A ⊗ W                 one_mul, mul_one
    """
    if not (isinstance(lhs, sympy.Basic) and isinstance(rhs, sympy.Basic)):
        return None
    if _is_large(lhs) or _is_large(rhs):
        return None
    try:
        (lhs, rhs), clean, _ = standardised([lhs, rhs], [as_pair(each) for each in given])
        pairs = tuple(clean)
        signature = inspect(lhs, rhs, *[side for pair in pairs for side in pair])
    except OtimesError:  # not in the language, so that no step could be decided
        return None
    lhs, rhs = (with_ranges(side, signature) for side in (lhs, rhs))
    pairs = tuple((with_ranges(x, signature), with_ranges(y, signature)) for x, y in pairs)
    with Budget(_units.get() if budget is None else budget):
        try:
            return _found(lhs, rhs, pairs)
        except Exhausted:
            return None


@contextmanager
def with_budget(units: float) -> Iterator[None]:
    """Search for chains with another budget than by default, where none is given."""
    before = _units.set(units)
    try:
        yield
    finally:
        _units.reset(before)


def _found(lhs: Any, rhs: Any, pairs: tuple[tuple[Any, Any], ...]) -> Derivation | None:
    search = _Search(pairs, Rewriter(Scope(index_names(lhs, rhs), pairs)))
    for _ in range(ATTEMPTS):
        steps = search.chain(lhs, rhs)
        if steps is None:
            return None
        steps = [replace(step, given=pairs) for step in steps]
        steps = [step.turned().turned() if step.reverse else step for step in steps]
        wrong = [step for step in steps if not step.check()]
        if not wrong:
            derivation = Derivation(lhs, rhs, tuple(steps))
            return derivation if derivation.joined else None
        search.rewriter.refuse(wrong)  # matched but not proved, so another chain is tried
    return None


def _is_large(e: Any) -> bool:
    """Return whether a tree has too many nodes, or is too deep, for the search."""
    nodes, stack = 0, [(e, 0)]
    while stack:
        part, depth = stack.pop()
        nodes += 1
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            return True
        stack += [(x, depth + 1) for x in part.args]
    return False


@dataclass(slots=True)
class _Search:
    """One search: its hypotheses and its rewriter."""

    given: tuple[tuple[Any, Any], ...]
    rewriter: Rewriter

    def chain(self, lhs: Any, rhs: Any, depth: int = 0) -> list[Step] | None:
        """Return the shorter of two chains: by differing arguments, and by rewriting both sides."""
        if lhs == rhs:
            return []
        step = one_step(lhs, rhs, self.given)
        if step is not None:
            return [step]
        found = [self._by_parts(lhs, rhs, depth), self._meeting(lhs, rhs)]
        known = [steps for steps in found if steps is not None]
        ways = [self._by_definition, self._by_uses, self._by_inverse, self._simpler]
        if known and all(_lines(steps) > LINES for steps in known):
            ways = [self._by_uses] if self.given else []
        elif known:
            ways = []
        for way in ways:
            steps = way(lhs, rhs, depth)
            if steps is not None:
                known.append(with_shortcuts(_direct(steps), self.given))
                break
        if not known and depth == 0 and same_normal_form(lhs, rhs):
            return [Step(NORMAL_FORM, (), False, lhs, rhs)]
        return min(known, key=_length, default=None)

    def _meeting(self, lhs: Any, rhs: Any) -> list[Step] | None:
        """Return a chain by rewriting both sides; hypotheses leave work for other ways."""
        if not self.given:
            return self.rewriter.meet(lhs, rhs)
        with suppress(Exhausted), limited(min(0.5 * steps_left(), MEETING * STEPS)):
            return self.rewriter.meet(lhs, rhs)
        return None

    def _by_uses(self, lhs: Any, rhs: Any, depth: int) -> list[Step] | None:
        """Return a chain that uses the equations of the proof in turn, linked by rewriting."""
        uses = exchanges(lhs, rhs, self.given)
        if uses is None:
            return None
        between = Rewriter(replace(self.rewriter.scope, given=()))
        steps: list[Step] = []
        short: list[Step] = []  # the same with each long link as one step
        here = lhs
        for before, after in [*uses, (rhs, rhs)]:
            use = [] if before is after else self._use(before, after, depth)
            link = _link(between, here, before) if use is not None else None
            if link is None or use is None:
                return None
            steps += [*link, *use]
            short += [*_coarse(link), *use]
            here = after
        return steps if _lines(steps) <= LINES else short

    def _use(self, before: Any, after: Any, depth: int) -> list[Step] | None:
        """Return the steps for one use of an equation: a single one, or steps in an argument."""
        step = one_step(before, after, self.given)
        return self._by_parts(before, after, depth + 1) if step is None else [step]

    def _by_inverse(self, lhs: Any, rhs: Any, depth: int) -> list[Step] | None:
        """Return a chain for M⁻¹ = N from M N = I: M⁻¹ = M⁻¹ (M N) = N."""
        if type(lhs) is not Inverse:
            if type(rhs) is not Inverse:
                return None
            there = self._by_inverse(rhs, lhs, depth)
            return None if there is None else [step.turned() for step in reversed(there)]
        one, checked = Identity(lhs.shape[0]), product(lhs.args[0], rhs)
        if depth > 3 or not _equal(checked, one, self.given):
            return None
        part = self.chain(checked, one, depth + 1)
        if part is None:
            return None
        start, flat, cancelled = product(lhs, one), product(lhs, *checked.args), product(one, rhs)
        return [
            Step("mul_one", (), True, lhs, start),
            *_inside([step.turned() for step in reversed(part)], start, 1),
            Step("mul_assoc", (), False, product(lhs, checked), flat),
            Step("inv_mul", (), False, flat, cancelled),
            Step("one_mul", (), False, cancelled, rhs),
        ]

    def _by_definition(self, lhs: Any, rhs: Any, depth: int) -> list[Step] | None:
        """Return a chain that expands the norms on both sides, then compares their parts."""
        if not any(side.has(RMSNorm, LayerNorm) for side in (lhs, rhs)):
            return None
        return self._rewritten(lhs, rhs, OUTSIDE, depth)

    def _simpler(self, lhs: Any, rhs: Any, depth: int) -> list[Step] | None:
        """Return a chain that simplifies both sides by rewriting, then compares their parts."""
        return self._rewritten(lhs, rhs, PLAIN, depth)

    def _rewritten(self, lhs: Any, rhs: Any, strategy: Strategy, depth: int) -> list[Step] | None:
        edges: dict[Any, list[Step]] = {}
        ends = [self.rewriter.rewritten(side, strategy, edges) for side in (lhs, rhs)]
        if depth > 3 or ends == [lhs, rhs]:
            return None
        middle = self._by_parts(ends[0], ends[1], depth + 1)
        first, last = (shortest(edges, *pair) for pair in ((lhs, ends[0]), (ends[1], rhs)))
        if middle is None or first is None or last is None:
            return None
        return [*first, *middle, *last]

    # -- by parts ------------------------------------------------------------------------------

    def _by_parts(self, lhs: Any, rhs: Any, depth: int) -> list[Step] | None:
        """Return a chain that rewrites the differing arguments in turn, if each pair is equal."""
        if type(lhs) is not type(rhs) or depth > 12:
            return None
        if len(lhs.args) != len(rhs.args):
            return self._by_middle(lhs, rhs, depth)
        inside = {k for k, _ in children(lhs)} & {k for k, _ in children(rhs)}
        differing = [k for k, (x, y) in enumerate(zip(lhs.args, rhs.args, strict=True)) if x != y]
        if not inside.issuperset(differing):
            return None
        tables = {k for k in differing if _is_table(lhs.args[k])}
        if any(
            not _equal(lhs.args[k], rhs.args[k], self.given) for k in differing if k not in tables
        ):
            return self._by_middle(lhs, rhs, depth)
        steps: list[Step] = []
        current = lhs
        for k in differing:
            explain_part = self._by_parts if k in tables else self.chain
            part = explain_part(lhs.args[k], rhs.args[k], depth + 1)
            if part is None:
                return None
            steps += _inside(part, current, k)
            current = steps[-1].after
        return steps if current == rhs else None

    def _by_middle(self, lhs: Any, rhs: Any, depth: int) -> list[Step] | None:
        """Return a chain for two products with common ends, whose middles are rewritten."""
        if type(lhs) is not MatMul:
            return None
        x, y = list(lhs.args), list(rhs.args)
        shorter = min(len(x), len(y))
        ahead = _common(x[: shorter - 1], y)
        behind = _common(x[::-1][: shorter - ahead - 1], y[::-1])
        if not ahead and not behind:
            return None
        middles = [z[ahead : len(z) - behind] for z in (x, y)]
        if not all(any(map(is_matrix, z)) for z in middles):
            return None
        inner = (product(*middles[0]), product(*middles[1]))
        if not _equal(*inner, self.given):
            return None
        part = self.chain(inner[0], inner[1], depth + 1)
        if part is None:
            return None
        ends = [product(*x[:ahead], z, *x[len(x) - behind :]) for z in inner]
        steps = [] if ends[0] == lhs else [Step("mul_assoc", (), True, lhs, ends[0], self.given)]
        steps += _inside(part, ends[0], ahead)
        if ends[1] != rhs:
            steps.append(Step("mul_assoc", (), False, ends[1], rhs))
        return steps if all(s.matches() for s in steps[:1] + steps[-1:]) else None


def _link(between: Rewriter, here: Any, there: Any) -> list[Step] | None:
    """Return a chain of identities, preferring one that leaves arguments of functions unchanged."""
    steps = None
    with suppress(Exhausted), limited(min(0.25 * steps_left(), LINKING * STEPS)):
        steps = between.meet(here, there, LINKS_OUTSIDE) if here.has(*ROWWISE) else None
        steps = between.meet(here, there, LINKS) if steps is None else steps
    if steps is None and same_normal_form(here, there):
        return [Step(NORMAL_FORM, (), False, here, there)]
    return steps


def _coarse(link: list[Step]) -> list[Step]:
    """Return a link of many lines as one step."""
    if _lines(link) <= LINK or not same_normal_form(link[0].before, link[-1].after):
        return link
    return [Step(NORMAL_FORM, (), False, link[0].before, link[-1].after)]


def _inside(steps: list[Step], whole: Any, position: int) -> list[Step]:
    """Return the steps of one argument of an expression as steps of the whole expression."""
    made: list[Step] = []
    for step in steps:
        after = replaced(whole, (position,), step.after)
        made.append(Step(step.rule, (position, *step.path), step.reverse, whole, after))
        whole = after
    return made


def _common(x: list[Any], y: list[Any]) -> int:
    """Return the length of the common prefix of two lists."""
    return sum(1 for _ in takewhile(operator.truth, map(operator.eq, x, y)))


def _is_table(e: Any) -> bool:
    """Return whether an argument is the table of blocks of a block matrix, not an expression."""
    return type(e) is sympy.Tuple or (
        type(e) is sympy.ImmutableDenseMatrix and any(map(is_matrix, e.args[2]))
    )


def _equal(a: Any, b: Any, given: tuple[tuple[Any, Any], ...]) -> bool:
    searched = bool(given) or a.has(*SEARCHED_FOR) or b.has(*SEARCHED_FOR)
    return proved(a, b, given, SEARCHED if searched else PLAINLY)


def _direct(steps: list[Step]) -> list[Step]:
    """Return a chain without loops: steps between two occurrences of one expression are dropped."""
    result: list[Step] = []
    for step in steps:
        known = [k for k, old in enumerate(result) if old.before == step.after]
        result = result[: known[0]] if known else [*result, step]
    return result


def _length(steps: list[Step]) -> tuple[int, int]:
    """Return the length of a chain as (printed lines, steps)."""
    return _lines(steps), len(steps)


def _lines(steps: list[Step]) -> int:
    """Return how many lines are printed of a chain."""
    return len(Derivation(steps[0].before, steps[-1].after, tuple(steps)).lines) if steps else 0
