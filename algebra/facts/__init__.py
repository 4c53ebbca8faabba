"""Facts beyond equality: ranks, causality, stochasticity, symmetry, projections, and why.

    fact        what a fact is, and how it prints as a proof
    settle      one way of writing an expression
    bounds      the numbers in facts
    hypotheses  what is given: declarations, and equations recognised by their form
    found       what operations keep, and what follows within one matrix
    rules       how facts about a whole follow from facts about its parts

>>> import sympy
>>> n = sympy.Symbol("n", integer=True, positive=True)
>>> A, B = sympy.MatrixSymbol("A", n, n), sympy.MatrixSymbol("B", n, n)
>>> found = facts(B * A, given=[*attention_pattern(A), *attention_pattern(B)])
>>> found.holds("row_stochastic"), found.holds("causal"), found.holds("symmetric")
(True, True, False)
>>> print(found.get("causal").why)
B A is lower triangular: a product of lower triangular matrices
  B is lower triangular: given
  A is lower triangular: given
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy

from algebra.dimensions import same_size
from algebra.errors import LanguageError, ShapeError, Undecided
from algebra.facts.bounds import Numbers
from algebra.facts.fact import OTHER_NAMES, PROPERTIES, Fact, Facts
from algebra.facts.hypotheses import Hypotheses
from algebra.facts.rules import Walk
from algebra.facts.settle import settle
from algebra.shape_messages import show_shape
from algebra.shapes import inspect, shape_of
from algebra.text import unicode_text

__all__ = ["OTHER_NAMES", "PROPERTIES", "Fact", "Facts", "attention_pattern", "facts"]


def facts(expr: Any, given: Sequence[Any] = ()) -> Facts:
    """Return what certainly holds of a matrix expression, for every size from 1 on, and why.

    `given`: `Fact(property, A)` declares a property; a pair (lhs, rhs) or `sympy.Eq` is recognised
    by its form (A 1 = 1, Aᵀ = A, P P = P, Qᵀ Q = I, A B = B A, E F = I, …, up to normal form); what
    is not recognised is listed in `.unused`. An equation of scalars, such as (a + b, 1), is used in
    coefficients. A property that is not in the result is unknown, not false.
    Raises ShapeError when shapes do not fit, LanguageError for what is not in the language,
    Undecided when an expression is nested too deeply to be read.

    >>> d, k = sympy.symbols("d k", integer=True, positive=True)
    >>> W_V, W_O = sympy.MatrixSymbol("W_V", d, k), sympy.MatrixSymbol("W_O", k, d)
    >>> facts(W_V * W_O).rank_at_most
    Min(d, k)
    """
    try:
        return _facts(expr, given)
    except RecursionError:
        raise Undecided(
            "an expression is nested more deeply than Python can follow "
            f"({sys.getrecursionlimit()} calls): state it with fewer brackets in one another"
        ) from None


def _facts(expr: Any, given: Sequence[Any]) -> Facts:
    hypotheses = Hypotheses(given)
    sizes = _check_language(expr, hypotheses)
    hypotheses.recognise()
    settled = settle(expr)
    for part in sorted(settled.atoms(sympy.Inverse), key=unicode_text):
        hypotheses.add(Fact("invertible", part.args[0], rule="its inverse is taken"))
    numbers = Numbers(sizes, hypotheses.nonnegative_scalars, hypotheses.scalar_equations)
    known = Walk(hypotheses, numbers).known(settled)
    if settled != expr:  # the same value, said of the expression as it was stated
        known = {name: replace(fact, subject=expr) for name, fact in known.items()}
    return Facts(expr, known, tuple(hypotheses.unused))


def attention_pattern(pattern: Any, causal: bool = True) -> tuple[Fact, ...]:
    """Return what holds of every pattern of attention: its rows are averages over what is seen.

    `pattern` is a matrix or a family of them. Without `causal` it may be n × m, as in
    cross-attention. Raises ShapeError for a causal pattern that is not square.

    >>> n = sympy.Symbol("n")
    >>> for fact in attention_pattern(sympy.MatrixSymbol("A", n, n)):
    ...     print(fact)
    A is lower triangular
    A has no negative entry
    A has rows that sum to one
    """
    stochastic = (Fact("nonnegative", pattern), Fact("rows_sum_to_one", pattern))
    if not causal:
        return stochastic
    if not same_size(*pattern.shape):
        raise ShapeError(
            f"a causal pattern is square, and this one is {show_shape(pattern.shape)}: for "
            "attention across two sequences say causal=False"
        )
    return (Fact("lower_triangular", pattern), *stochastic)


def _check_language(expr: Any, hypotheses: Hypotheses) -> set[sympy.Symbol]:
    """Refuse what does not fit; return the symbols that stand for sizes: they are at least one."""
    if not isinstance(expr, sympy.Basic):
        raise LanguageError(
            f"facts was given {type(expr).__name__} {expr!r:.60}: a SymPy expression is needed"
        )
    if not getattr(expr, "is_Matrix", False):
        raise LanguageError(f"facts are about matrices, and {expr!s:.60} is a scalar")
    for lhs, rhs in hypotheses.equations:
        left, right = (shape_of(side) for side in (lhs, rhs))
        if left is None or right is None or not all(map(same_size, left, right)):
            raise ShapeError(
                f"a hypothesis has a left side that is {show_shape(left)} and a right side that is "
                f"{show_shape(right)}"
            )
    everything = [expr, *hypotheses.expressions()]
    signature = inspect(*everything)
    return set(signature.sizes.values())
