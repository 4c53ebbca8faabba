r"""Expectations: `\mathbb{E}[x x^\top]` is a function of what is random, and E is no factor.

Of it is known that equal terms have equal expectations, and that entries have theirs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sympy import Identity
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.linear import matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.notation.tokens import Token
from otimes.algebra.notation.tree import Apply, Name, Node, Product, latex
from otimes.algebra.notation.typed import Typed

LETTER = r"\mathbb{E}"  # among the functions of a formula: E before a bracket is an expectation
EXPECTED = "an expectation was taken, of which numbers say nothing"


def is_expectation(node: Node) -> bool:
    r"""Return whether a symbol is the E of an expectation, as `\mathbb{E}_x` is.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (equation,) = parse_formula(r"\mathbb{E}[A x] = A \mathbb{E} x")
    >>> is_expectation(equation.terms[0].function)
    True
    """
    return isinstance(node, Name) and node.base == "E" and node.style == "bb" and not node.marks


def is_statistic(node: Node) -> bool:
    r"""Return whether a symbol is a function of random things: E, V or P of `\mathbb{V}[x]`."""
    return is_expectation(node) or (
        isinstance(node, Name) and node.base in ("P", "V") and node.style == "bb"
    )


def before_bracket(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a bracket comes next, or a subscript and then one.

    One with a colon or a comma, as in `E[:, k]`, is about entries.
    """
    if at < len(tokens) and tokens[at].text == "_":
        depth, at = 0, at + 1
        while at < len(tokens):
            depth += (tokens[at].text == "{") - (tokens[at].text == "}")
            at += 1
            if depth == 0:
                break
    if at >= len(tokens) or tokens[at].text not in ("[", "("):
        return False
    closing = {"[": "]", "(": ")"}[tokens[at].text]
    depth = 0
    for token in tokens[at:]:
        depth += (token.text in ("[", "(")) - (token.text in ("]", ")"))
        if depth == 0:
            return token.text == closing
        if depth == 1 and token.text in (",", ":"):
            return False
    return False


def of_what_follows(
    factors: list[Node], marks: list[str], span: tuple[int, int]
) -> tuple[list[Node], list[str]]:
    r"""Return the factors of a product; in `\mathbb{E} x y` the expectation is of all after it.

    `factors` and `marks` are the factors and the signs before them.
    """
    for k, factor in enumerate(factors[:-1]):
        if is_expectation(factor) and isinstance(factor, Name):
            rest = factors[k + 1 :]
            inner = rest[0] if len(rest) == 1 else Product(tuple(rest), ("", *marks[k + 2 :]))
            return [*factors[:k], Apply(factor, (inner,), span=span)], marks[: k + 1]
    return factors, marks


def expectation(functions: Any, e: Apply, argument: Typed) -> Typed:
    """Read the expectation of a number or a matrix, entry by entry."""
    name = "E" + re.sub(r"\W+", "_", latex(e.function).removeprefix(r"\mathbb{E}"))
    functions.doubts.append(EXPECTED)
    if argument.shape is not None:
        return Typed(argument.shape, lambda: Activation(name, argument.build()), e.span)

    def build() -> Any:
        return MatrixElement(Activation(name, matmul(argument.build(), Identity(1))), 0, 0)

    return Typed(None, build, e.span)
