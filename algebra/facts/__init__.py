"""Properties of matrices beyond equality (rank, causality, stochasticity, …), with derivations.

    fact        the classes Fact and Facts, which print as derivations
    normalise   the standard form of an expression
    bounds      arithmetic of rank bounds, row sums and signs
    hypotheses  declared facts, and equations recognised by their form
    fact_set    the facts of one matrix, and what they imply for it
    rules       how facts about an expression follow from facts about its arguments
    nonlinear   the rules of softmax, masks, norms and activations

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

from otimes.algebra.errors import LanguageError, ShapeError, Undecided
from otimes.algebra.facts.bounds import Numbers
from otimes.algebra.facts.fact import OTHER_NAMES, PROPERTIES, Fact, Facts
from otimes.algebra.facts.hypotheses import Hypotheses
from otimes.algebra.facts.normalise import normalise
from otimes.algebra.facts.rules import RULES
from otimes.algebra.facts.walk import Walk
from otimes.algebra.language.shape_messages import show_shape
from otimes.algebra.language.shapes import inspect, shape_of
from otimes.algebra.language.sizes import same_size
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.notation.text import read_expression

__all__ = ["OTHER_NAMES", "PROPERTIES", "Fact", "Facts", "attention_pattern", "facts"]


def facts(expr: Any, given: Sequence[Any] = (), *, shapes: str | None = None) -> Facts:
    """Return the properties that a matrix expression has for all sizes ≥ 1, with derivations.

    `given`: `Fact(property, A)` declares a property; a pair (lhs, rhs) or `sympy.Eq` is recognised
    by its form (A 1 = 1, Aᵀ = A, P P = P, Qᵀ Q = I, A B = B A, E F = I, …, up to normal form);
    unrecognised ones are listed in `.unused`. An equation of scalars, such as (a + b, 1), is used
    to simplify coefficients. A property that is not in the result is unknown, not false.
    The expression and equations may be strings, whose symbols `shapes` declares (see `parse`).
    Raises ShapeError for mismatched shapes, LanguageError for unsupported expressions, Undecided
    for an expression that is nested too deeply.

    >>> d, k = sympy.symbols("d k", integer=True, positive=True)
    >>> W_V, W_O = sympy.MatrixSymbol("W_V", d, k), sympy.MatrixSymbol("W_O", k, d)
    >>> facts(W_V * W_O).rank_at_most
    Min(d, k)
    >>> facts("A B", given=["A 1 = 1", "B 1 = 1"], shapes="A: n n, B: n n").holds("rows_sum_to_one")
    True
    """
    if isinstance(expr, str):
        expr, given = read_expression(expr, given, shapes)
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
    normalised = normalise(expr)
    for part in sorted(normalised.atoms(sympy.Inverse), key=unicode_text):
        hypotheses.add(Fact("invertible", part.args[0], rule="its inverse is taken"))
    numbers = Numbers(sizes, hypotheses.nonnegative_scalars, hypotheses.scalar_equations)
    known = Walk(hypotheses, numbers, RULES).known(normalised)
    if normalised != expr:  # derived for an equal expression
        known = {name: replace(fact, subject=expr) for name, fact in known.items()}
    return Facts(expr, known, tuple(hypotheses.unused))


def attention_pattern(pattern: Any, causal: bool = True) -> tuple[Fact, ...]:
    """Return the defining facts of an attention pattern: row-stochastic and, by default, causal.

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
            f"a causal attention pattern is square, but this one is {show_shape(pattern.shape)}: "
            "for cross-attention, pass causal=False"
        )
    return (Fact("lower_triangular", pattern), *stochastic)


def _check_language(expr: Any, hypotheses: Hypotheses) -> set[sympy.Symbol]:
    """Check the language and the shapes; return the symbols that are sizes."""
    if not isinstance(expr, sympy.Basic):
        raise LanguageError(
            f"facts needs a SymPy expression, not {type(expr).__name__} {expr!r:.60}"
        )
    if not getattr(expr, "is_Matrix", False):
        raise LanguageError(f"facts needs a matrix expression, and {expr!s:.60} is a scalar")
    for lhs, rhs in hypotheses.equations:
        left, right = (shape_of(side) for side in (lhs, rhs))
        if left is None or right is None or not all(map(same_size, left, right)):
            raise ShapeError(
                f"the sides of a hypothesis have different shapes: {show_shape(left)} and "
                f"{show_shape(right)}"
            )
    everything = [expr, *hypotheses.expressions()]
    signature = inspect(*everything)
    return set(signature.sizes.values())
