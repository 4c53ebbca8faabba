r"""Exact numbers at which a statement about ranks, determinants or norms is false.

The matrices are drawn at random, with one of them zero in some draws. Ranks, determinants, traces,
norms, sizes, their sums, products, powers and roots are computed at these numbers. They are exact
but for roots, logarithms and spectral norms.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction as Exact
from typing import Any

import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, exact_value
from otimes.algebra.evaluate.exact_arrays import full
from otimes.algebra.language.shapes import inspect
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import (
    Apply,
    Fraction,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Root,
    Sum,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.vocabulary import ELEMENTWISE, SOFTMAX
from otimes.proofs.documents.proving.bounds import RANKS

SEED = 0
LARGEST = 4  # size of a drawn matrix
DRAWS = 24  # choices of sizes
# What floating point may add to a value: the matrices have at most LARGEST² rows, entries of one
# digit, and condition numbers do not enter singular values, so that errors are below 1e-10.
MARGIN = 1e-6

Value = Exact | float


def exceeding(left: Node, right: Node, symbols: Symbols) -> str:
    r"""Return numbers at which one number is larger than another, "" for none.

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
    for a, b, at in _values(left, right, symbols):
        if _exceeds(a, b):
            return f"{_shown(a)} > {_shown(b)} where {at}"
    return ""


def different(left: Node, right: Node, symbols: Symbols) -> str:
    r"""Return numbers at which two numbers differ, "" for none.

    Ranks are as large as they can be where that is not said, so that what has a rank in it has to
    differ at all numbers that are drawn.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> from otimes.algebra.notation.symbols import Declared
    >>> d = {key: Declared("matrix", ("d",), ("d",), 1) for key in "MN"}
    >>> symbols = Symbols(known={**d, "d": Declared("size")})
    >>> (false, true) = parse_formula("\\det(2 M) = 2 \\det M; \\det(2 M) = 2^d \\det M")
    >>> print(different(*false.terms, symbols))
    -20 and -10 where d = 2, at matrices of these sizes
    >>> different(*true.terms, symbols)
    ''
    """
    shown = ""
    of_ranks = any(
        isinstance(e, Apply) and e.function.base in RANKS for t in (left, right) for e in walk(t)
    )
    for a, b, at in _values(left, right, symbols):
        if at.endswith("= 0"):  # what is not generic
            continue
        if _exceeds(a, b) or _exceeds(b, a):
            shown = shown or f"{_shown(a)} and {_shown(b)} where {at}"
            if not of_ranks:
                return shown
        elif of_ranks:
            return ""
    return shown


def _exceeds(a: Value, b: Value) -> bool:
    """Return whether a value is larger than another, by more than rounding adds."""
    if isinstance(a, Exact) and isinstance(b, Exact):
        return a > b
    return float(a) - float(b) > MARGIN * (1 + abs(float(a)) + abs(float(b)))


def _shown(value: Value) -> str:
    return str(value) if isinstance(value, Exact) else f"{value:.4g}"


def _values(left: Node, right: Node, symbols: Symbols) -> Iterator[tuple[Value, Value, str]]:
    """Yield the values of two numbers at the draws, each with how these are shown."""
    sides = _read(left, right, symbols)
    try:
        for numbers, at in _drawn([term for side in sides for term in side.terms.values()]):
            try:
                a, b = (side.value(numbers) for side in sides)
            except (ZeroDivisionError, _Undefined):
                continue
            yield a, b, at
    except (OtimesError, ValueError, TypeError):
        return


def _read(left: Node, right: Node, symbols: Symbols) -> list[_Scalar]:
    """Return two numbers with vectors as they are said to be, or all as columns, or all as rows."""
    for side in dict.fromkeys((symbols.side, "column", "row")):
        own = replace(symbols, side=side)
        try:
            return [_Scalar(each, own) for each in (left, right)]
        except (OtimesError, ValueError, TypeError):
            continue
    return []


def _drawn(terms: Sequence[Any]) -> Iterator[tuple[Assignment, str]]:
    """Yield numbers for the symbols of terms, each with how they are shown."""
    from otimes.algebra.decide.counterexample import draw_at

    if not terms:
        return
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


def has_open_function(node: Node) -> bool:
    r"""Return whether a function of a term is any function, of which a text may say more.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> [has_open_function(parse_formula(x)[0].terms[0]) for x in (r"\phi(x) + y", r"\tanh(x)")]
    [True, False]
    """
    functions = [e.function for e in walk(node) if isinstance(e, Apply)]
    return any(each.base not in KNOWN or each.marks for each in functions)


class _Undefined(ValueError):
    """A value is undefined at some numbers: the logarithm of a negative one."""


@dataclass(slots=True)
class _Scalar:
    """A number as a formula: its parts that the language has, by their LaTeX, and its value.

    Raises ValueError if a part is not declared, or is not a number that is computed here.
    """

    node: Node
    symbols: Symbols
    terms: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._read(self.node)

    def _read(self, node: Node) -> None:
        """Note the terms of the language in a number."""
        inner, inside = bare(node), _argument(node)
        if inside is not None:
            self._note(inside)
        elif isinstance(inner, Number):
            return
        elif not any(_argument(e) is not None for e in walk(inner)):
            term = self._note(inner)
            if getattr(term, "is_Matrix", False) and term.shape != (1, 1):
                raise ValueError(latex(node))
        elif isinstance(inner, Sum | Product | Fraction | Root | Power | Apply):
            for part in _parts(inner):
                self._read(part)
        else:
            raise ValueError(latex(node))

    def _note(self, node: Node) -> Any:
        """Note a term of the language, and return it."""
        text = latex(bare(node))
        if has_open_function(node):
            raise ValueError(text)
        if text not in self.terms:
            read = elaborate([node], self.symbols)
            if read.doubts or read.undeclared:
                raise ValueError(text)
            self.terms[text] = read.terms[0]
        return self.terms[text]

    def value(self, at: Assignment) -> Value:
        """Return the value at numbers for the symbols."""
        return self._value(self.node, at)

    def _value(self, node: Node, at: Assignment) -> Value:
        inner, inside = bare(node), _argument(node)
        if inside is not None:
            return _computed(inner, self._array(inside, at))
        if isinstance(inner, Number):
            return Exact(inner.text)
        if latex(inner) in self.terms:
            array = self._array(inner, at)
            if array.shape != (1, 1):
                raise ValueError(latex(node))
            return Exact(array[0, 0])
        values = [self._value(part, at) for part in _parts(inner)]
        return _combined(inner, values)

    def _array(self, node: Node, at: Assignment) -> Any:
        """Return the exact value of a term of the language, a number as a 1 × 1 array."""
        term = self.terms[latex(bare(node))]
        if not getattr(term, "is_Matrix", False) and term.free_symbols <= _sizes(term, at):
            value: Any = term.subs({e: at.sizes[e.name] for e in term.free_symbols})
            return full((1, 1), Exact(str(value)))
        found = exact_value(term, at)
        return found if hasattr(found, "shape") else full((1, 1), found)


def _sizes(term: Any, at: Assignment) -> set[Any]:
    return {e for e in term.free_symbols if e.name in at.sizes}


def _argument(node: Node) -> Node | None:
    """Return the matrix of which a rank, determinant, trace or norm is taken, or None."""
    inner = bare(node)
    if isinstance(inner, Norm):
        return inner.argument
    if not isinstance(inner, Apply) or len(inner.arguments) != 1:
        return None
    return inner.arguments[0] if inner.function.base in OF_MATRICES else None


def _parts(node: Node) -> Sequence[Node]:
    """Return the numbers of which a number is made."""
    if isinstance(node, Sum):
        return node.terms
    if isinstance(node, Product):
        if {*node.marks} <= {"", r"\cdot", r"\,"}:
            return node.factors
    elif isinstance(node, Fraction):
        return node.above, node.below
    elif isinstance(node, Root) and not node.degree:
        return (node.argument,)
    elif isinstance(node, Power) and isinstance(node.exponent, Node):
        return node.base, node.exponent
    elif isinstance(node, Power) and node.exponent not in ("T", "+", "*"):
        return node.base, Number(str(node.exponent))
    elif isinstance(node, Apply) and node.function.base in OF_NUMBERS and node.arguments:
        return node.arguments
    raise ValueError(latex(node))


def _combined(node: Node, values: Sequence[Value]) -> Value:
    """Return the value of a number that is made of others."""
    if isinstance(node, Sum):
        signs = [-1 if sign == "-" else 1 for sign in node.signs]
        return sum((s * v for s, v in zip(signs, values, strict=True)), Exact(0))
    if isinstance(node, Product):
        return math.prod(values, start=Exact(1))
    if isinstance(node, Fraction):
        return values[0] / values[1]
    if isinstance(node, Power):
        base, exponent = values
        if float(exponent).is_integer() and abs(float(exponent)) <= LARGEST**2:
            return base ** int(exponent)
        raise _Undefined
    if isinstance(node, Root):
        if values[0] < 0:
            raise _Undefined
        return math.sqrt(values[0])
    assert isinstance(node, Apply)
    return OF_NUMBERS[node.function.base](values)


def _computed(node: Node, array: Any) -> Value:
    """Return the rank, determinant, trace or norm of an array of exact numbers."""
    if isinstance(node, Norm):
        return _norm(node, array)
    assert isinstance(node, Apply)
    return OF_MATRICES[node.function.base](array)


def _norm(node: Norm, array: Any) -> Value:
    """Return a norm of an array, or the absolute value of one entry."""
    kind = node.kind.replace(r"\mathrm", "").strip("{} ")
    if node.mark == "|":
        if array.shape == (1, 1) and not kind:
            return abs(Exact(array[0, 0]))
        raise ValueError(latex(node))
    entries = [abs(Exact(entry)) for entry in array.flat]
    vector = 1 in array.shape
    if kind == "F" or (vector and kind in ("", "2")):
        return math.sqrt(sum(entry**2 for entry in entries))
    if vector and kind == "1":
        return sum(entries, Exact(0))
    if vector and kind == r"\infty":
        return max(entries)
    if kind in ("2", "*", r"\ast"):
        singular = _singular_values(array)
        return max(singular) if kind == "2" else sum(singular)
    raise ValueError(latex(node))


def _singular_values(array: Any) -> list[float]:
    import numpy as np

    entries = np.array([float(entry) for entry in array.flat]).reshape(array.shape)
    return [float(value) for value in np.linalg.svd(entries, compute_uv=False)]


def _matrix(array: Any) -> Any:
    return sympy.Matrix(*array.shape, [*array.flat])


def _rank(array: Any) -> Value:
    return Exact(int(_matrix(array).rank()))


def _determinant(array: Any) -> Value:
    if array.shape[0] != array.shape[1]:
        raise ValueError("a determinant of a rectangular matrix")
    return Exact(str(_matrix(array).det(method="bareiss")))


def _trace(array: Any) -> Value:
    if array.shape[0] != array.shape[1]:
        raise ValueError("a trace of a rectangular matrix")
    return sum((Exact(array[i, i]) for i in range(array.shape[0])), Exact(0))


def _log(values: Sequence[Value]) -> Value:
    if len(values) != 1 or values[0] <= 0:
        raise _Undefined
    return math.log(values[0])


def _least(values: Sequence[Value]) -> Value:
    return min(values)


def _largest(values: Sequence[Value]) -> Value:
    return max(values)


OF_MATRICES: dict[str, Callable[[Any], Value]] = {
    **dict.fromkeys(RANKS, _rank),
    "det": _determinant,
    **dict.fromkeys(("tr", "Tr", "trace", "Trace"), _trace),
}
OF_NUMBERS: dict[str, Callable[[Sequence[Value]], Value]] = {
    "min": _least,
    "max": _largest,
    "log": _log,
    "ln": _log,
}
KNOWN = {*OF_MATRICES, *OF_NUMBERS, *ELEMENTWISE, *SOFTMAX, "diag", "Diag", "vec", "vecr", "vecc"}
