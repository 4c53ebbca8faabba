"""The judge: is an equation true for every size and every value of its symbols?

`proved` is said in one place only, when the canonical forms of both sides agree; it never rests on
evaluation. `refuted` carries integers at which the sides differ. Anything else is `undecided`, and
says why.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import sympy

from algebra import scalars
from algebra.errors import LanguageError, OtimesError, Refuted, ShapeError, Undecided
from algebra.expansion import equal_as_polynomials
from algebra.interpret import Interpretation, Value, difference
from algebra.refute import Counterexample, Trial, search, shrink
from algebra.shapes import Shape, Signature, inspect, same_shape, shape_of, show_shape

Status = Literal["proved", "refuted", "undecided"]
BUDGET_SECONDS = 20.0


class Verdict:
    """What `decide` found. `.status` is `"proved"`, `"refuted"` or `"undecided"`.

    `.reason` says why in one sentence; `.counterexample` (made small when first asked for) is a
    Counterexample when the status is `refuted`, else None.
    """

    def __init__(
        self, status: Status, reason: str, claim: _Claim, trial: Trial | None = None
    ) -> None:
        self.status = status
        self.reason = reason
        self._claim = claim
        self._trial = trial

    @cached_property
    def counterexample(self) -> Counterexample | None:
        """The numbers that refute the equation, as small as they could be made."""
        if self._trial is None:
            return None
        return shrink(self._claim.lhs, self._claim.rhs, self._claim.signature, self._trial)

    def __repr__(self) -> str:
        return f"<{self.status}: {self.reason}>"


class _Claim:
    """Two sides that are in the language and of one shape."""

    def __init__(self, lhs: Any, rhs: Any) -> None:
        self.lhs, self.rhs = _expression(lhs), _expression(rhs)
        self.signature: Signature = inspect(self.lhs, self.rhs)
        left, right = shape_of(self.lhs), shape_of(self.rhs)
        if not same_shape(left, right):
            raise ShapeError(_different_shapes(left, right))


def decide(lhs: Any, rhs: Any, given: Sequence[Any] = (), budget: float | None = None) -> Verdict:
    """Return whether lhs = rhs for all sizes and all values of its symbols.

    `lhs`, `rhs`: SymPy expressions (matrices or scalars) or exact numbers; symbols for sizes mean
    every size from 1 on. `budget`: seconds after which the search gives up (20 when None).
    Raises ShapeError when shapes do not fit, LanguageError naming what is not in the language.

    >>> from sympy import MatrixSymbol, Symbol
    >>> n = Symbol("n")
    >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
    >>> decide((A * B).T, B.T * A.T).status
    'proved'
    >>> print(decide(A * B, B * A).counterexample)
    n = 2
    A = np.array([[0, 0], [0, 1]])
    B = np.array([[0, 0], [1, 0]])
    # left side 1, right side 0 at row 1, column 0
    """
    if given:
        raise LanguageError("hypotheses (`given`) are not in the language yet")
    deadline = time.monotonic() + (BUDGET_SECONDS if budget is None else budget)
    claim = _Claim(lhs, rhs)
    reading = Interpretation(claim.signature)
    try:
        left, right = reading.read(claim.lhs, claim.rhs)
    except Undecided as obstacle:
        return _refute(claim, 0, deadline, str(obstacle))
    rest = difference(left.terms, right.terms)
    if not rest:
        count = len(left.terms)
        terms = "one diagram" if count == 1 else f"{count} diagrams"
        return Verdict("proved", f"both sides have the same normal form, {terms}", claim)
    wires = max(len(diagram.sorts) for diagram in rest)
    if not claim.signature.sizes:
        degree = max(_degree(left), _degree(right))
        if equal_as_polynomials(claim.lhs, claim.rhs, claim.signature, degree):
            return Verdict("proved", "at these sizes both sides are the same polynomials", claim)
    return _refute(
        claim,
        wires,
        deadline,
        f"the normal forms differ in {len(rest)} diagrams, but no exact trial told the sides "
        "apart: at fixed sizes two different forms can be equal",
    )


def prove(lhs: Any, rhs: Any, given: Sequence[Any] = (), budget: float | None = None) -> Verdict:
    """Return the proof of lhs = rhs, or raise Refuted (with its counterexample) or Undecided."""
    verdict = decide(lhs, rhs, given, budget)
    if verdict.status == "refuted":
        raise Refuted(f"false:\n{verdict.counterexample}", verdict.counterexample)
    if verdict.status == "undecided":
        raise Undecided(verdict.reason)
    return verdict


def _degree(value: Value) -> int:
    """Return a bound on the degree of a sum of diagrams in entries and scalars."""
    return max((len(d.boxes) + scalars.degree(c) for d, c in value.terms.items()), default=0)


def _refute(claim: _Claim, wires: int, deadline: float, otherwise: str) -> Verdict:
    try:
        trial = search(claim.lhs, claim.rhs, claim.signature, wires, deadline)
    except OtimesError as no_value:
        return Verdict("undecided", f"{otherwise}; no exact trial is possible: {no_value}", claim)
    if trial is None:
        return Verdict("undecided", otherwise, claim)
    return Verdict("refuted", "the sides differ at exact numbers", claim, trial)


def _expression(side: Any) -> sympy.Basic:
    if isinstance(side, int | Fraction) and not isinstance(side, bool):
        return sympy.Rational(side)
    if isinstance(side, sympy.Basic):
        return side
    raise LanguageError(
        f"decide was given {type(side).__name__} {side!r:.60}: each side is a SymPy expression, "
        "such as MatrixSymbol('A', n, m) * MatrixSymbol('B', m, p)"
    )


def _different_shapes(left: Shape | None, right: Shape | None) -> str:
    turned = left is not None and right is not None and same_shape(left, (right[1], right[0]))
    mend = "; did you mean the transpose of one side?" if turned else ""
    return f"the left side is {show_shape(left)}, the right side {show_shape(right)}{mend}"
