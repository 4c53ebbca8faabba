"""Error messages about shapes: the operation, the shapes given, and a likely correction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from otimes.algebra.language.sizes import same_product, whole
from otimes.algebra.language.unicode import short_text

Shape = tuple[sympy.Expr, sympy.Expr]


def show_shape(shape: Shape | None) -> str:
    """Return a shape for a message: `n × d`, or `scalar`."""
    return "scalar" if shape is None else f"{whole(shape[0])} × {whole(shape[1])}"


def not_in_language(e: Any) -> str:
    """Return the message for an unsupported class of expressions."""
    if not isinstance(e, sympy.Basic):
        return (
            f"a SymPy expression was expected and {type(e).__name__} was given: build the two "
            "sides from sympy.MatrixSymbol and the classes of otimes"
        )
    return f"{type(e).__name__} is not in the language yet, in {short_text(e)}"


def no_range(e: sympy.KroneckerDelta) -> str:
    """Return the message for a Kronecker delta whose indices have no known range."""
    return f"{short_text(e)} does not say how far its indices run: write Identity(n)[i, j] instead"


def bad_product(left: Any, x: Shape, right: Any, y: Shape, around: Any) -> str:
    """Return the message for a product whose inner sizes differ, with a likely correction."""
    a, b = short_text(left), short_text(right)
    if same_product(x[1], y[1]):
        correction = f"; did you mean Transpose({b})?"
    elif same_product(y[1], x[0]):
        correction = f"; did you mean {b} before {a}?"
    else:
        correction = f"; did you mean KroneckerProduct({a}, {b})?"
    return (
        f"cannot multiply {a} ({show_shape(x)}) by {b} ({show_shape(y)}): the inner sizes "
        f"{whole(x[1])} and {whole(y[0])} differ{correction}{place(around)}"
    )


def full_shape(tensor: Any) -> str:
    """Return the counts and sizes of a tensor: `H × n × d`."""
    counts = getattr(tensor, "counts", ())
    return " × ".join(map(str, (*counts, *tensor.shape)))


def place(around: Any) -> str:
    """Return the enclosing expression in brackets, for the end of a message."""
    return f" (in {short_text(around)})"


def renamed(origin: Mapping[Any, Any]) -> str:
    """Return a list of the symbols that a message shows under a new name, to avoid a clash."""
    names = [new.name for new, old in origin.items() if new.name != old.name]
    return (
        f" ({', '.join(names)}: primes tell different symbols of one name apart)" if names else ""
    )
