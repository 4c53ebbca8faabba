"""Exact numbers at which a rank is larger than a bound that a text gives it.

The matrices are drawn at random, with one of them zero in some draws. Sizes, ranks, their sums and
their minimum are computed at these numbers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, exact_value
from otimes.algebra.language.shapes import inspect
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import Apply, Node, Number, Sum, bare, latex, walk
from otimes.proofs.documents.proving.bounds import of_rank

SEED = 0
LARGEST = 4  # size of a drawn matrix
DRAWS = 24  # choices of sizes


def exceeding(left: Node, right: Node, symbols: Symbols) -> str:
    r"""Return numbers at which a sum of ranks and sizes is larger than another, "" for none.

    Definitions are put in. Every matrix is declared, and may be any; so is the answer empty if one
    is not declared.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> from otimes.algebra.notation.symbols import Declared
    >>> d = {key: Declared("matrix", ("d",), ("d",), 1) for key in "MN"}
    >>> symbols = Symbols(known={**d, "d": Declared("size")})
    >>> (false, true) = parse_formula("rank(M) \\le rank(M N); rank(M N) \\le rank(M)")
    >>> print(exceeding(*false.terms, symbols))
    1 > 0 where d = 1 and N = 0
    >>> exceeding(*true.terms, symbols)
    ''
    """
    insides = [x for side in (left, right) for e in walk(side) if (x := of_rank(e)) is not None]
    terms: dict[str, Any] = {}
    try:
        for inside in insides:
            read = elaborate([inside], symbols)
            if read.doubts or any(kind != "scalar" for kind in read.undeclared.values()):
                return ""
            terms[latex(inside)] = read.terms[0]
        for found in _drawn([*terms.values()]):
            a, b = (_value(side, terms, found[0], symbols) for side in (left, right))
            if a > b:
                return f"{a} > {b} where {found[1]}"
    except (OtimesError, ValueError):
        return ""
    return ""


def _drawn(terms: Sequence[Any]) -> Iterator[tuple[Assignment, str]]:
    """Yield numbers for the symbols of terms, each with how they are shown."""
    from otimes.algebra.decide.counterexample import draw_at

    signature, draw = inspect(*terms), random.Random(SEED)
    for largest in sorted(draw.randint(1, LARGEST) for _ in range(DRAWS)):
        sizes = {name: draw.randint(1, largest) for name in signature.sizes}
        numbers = draw_at(sizes, signature, draw, 3, signature.roots)
        if numbers is None:
            continue
        at = ", ".join(f"{name} = {value}" for name, value in numbers.sizes.items())
        for name in sorted(numbers.arrays):
            zero = numbers.arrays[name].map(lambda entry: 0)
            yield replace(numbers, arrays={**numbers.arrays, name: zero}), f"{at} and {name} = 0"
        yield numbers, f"{at}, at matrices of these sizes"


def _value(node: Node, terms: Mapping[str, Any], at: Assignment, symbols: Symbols) -> Fraction:
    """Return the value of a sum of ranks and sizes, or raise ValueError for another term."""
    inner, inside = bare(node), of_rank(node)
    if inside is not None:
        array = exact_value(terms[latex(inside)], at)
        rows, cols = array.shape
        return Fraction(int(sympy.Matrix(rows, cols, [*array.flat]).rank()))
    if isinstance(inner, Apply) and inner.function.base in ("min", "max"):
        parts = [_value(part, terms, at, symbols) for part in inner.arguments]
        return min(parts) if inner.function.base == "min" else max(parts)
    if isinstance(inner, Sum):
        values = [_value(part, terms, at, symbols) for part in inner.terms]
        signs = [-1 if sign == "-" else 1 for sign in inner.signs]
        return sum((s * v for s, v in zip(signs, values, strict=True)), Fraction(0))
    if isinstance(inner, Number):
        return Fraction(inner.text)
    (term,) = elaborate([inner], symbols).terms
    value = term.subs({e: at.sizes.get(e.name, e) for e in term.free_symbols})
    return Fraction(str(value))
