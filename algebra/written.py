"""Statements as strings that are read back: an equation, its hypotheses, and the shapes.

>>> import sympy
>>> n = sympy.Symbol("n", integer=True, positive=True)
>>> A, x = sympy.MatrixSymbol("A", n, n), sympy.MatrixSymbol("x", n, 1)
>>> written(A * x, A.T * x, [(A, A.T)])
Written(equation='A x = Aᵀ x', given=['A = Aᵀ'], shapes='A: n n, x: n 1')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.functions import KNOWN
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.notation.text import read_claim
from otimes.algebra.verdict import decide


class Written(NamedTuple):
    """A claim as `decide` takes it in strings."""

    equation: str
    given: list[str]
    shapes: str


def written(
    lhs: Any,
    rhs: Any,
    given: Sequence[tuple[Any, Any]] = (),
    printer: Callable[[Any], str] = unicode_text,
) -> Written:
    """Return a claim as text: the equation, the hypotheses, and what its symbols are.

    Raises ShapeError or LanguageError for what is no statement.
    """
    shapes = shapes_of([lhs, rhs, *[side for pair in given for side in pair]])
    equations = [f"{printer(left)} = {printer(right)}" for left, right in [(lhs, rhs), *given]]
    return Written(equations[0], equations[1:], shapes)


def shapes_of(expressions: Sequence[Any]) -> str:
    """Return the declarations of all symbols of expressions.

    >>> import sympy
    >>> d, k, H = sympy.symbols("d k H", integer=True, positive=True)
    >>> from otimes.algebra.language.linear import Family
    >>> shapes_of([Family("W", (H,), d, k)[0] * sympy.Symbol("c", positive=True)])
    'W[H]: d k, c: positive'
    """
    signature = inspect(*expressions)
    tensors = list(signature.tensors.values())
    found = [f"{t.name}{_counts(t)}: {' '.join(map(_compact, t.shape))}" for t in tensors]
    found += [f"{name}: {_assumed(signature.scalars[name])}" for name in signature.unknown]
    names = {e.name for each in expressions for e in each.atoms(Activation)}
    found += [f"{name}: function" for name in sorted(names - KNOWN.keys())]
    said = {s for t in tensors for e in (*t.shape, *_members(t)) for s in e.free_symbols}
    found += [f"{size.name}: size" for size in signature.sizes.values() if size not in said]
    return ", ".join(found)


def _members(tensor: Any) -> tuple[Any, ...]:
    """Return how many members a family has, by index; nothing for a matrix."""
    return tuple(getattr(tensor, "counts", ()))


def _counts(tensor: Any) -> str:
    counts = _members(tensor)
    return f"[{', '.join(map(_compact, counts))}]" if counts else ""


def _compact(size: Any) -> str:
    return unicode_text(size).replace(" ", "")


def _assumed(symbol: Any) -> str:
    """Return what is assumed of a number, as it is declared."""
    said = [name for name, holds in symbol._assumptions_orig.items() if holds]
    return " ".join(said) if said and said != ["real"] else "scalar"


def reads_back(text: Written, lhs: Any, rhs: Any, given: Iterable[tuple[Any, Any]] = ()) -> bool:
    """Return whether the text of a claim is read as the same claim.

    Sides are the same if they are equal by `decide`; of a 1 × 1 matrix the number in it may be
    read. Raises as `read_claim` does.
    """
    read = read_claim(text.equation, None, text.given, text.shapes)
    pairs = [(read.lhs, lhs), (read.rhs, rhs)]
    for mine, theirs in zip(read.given, given, strict=True):
        pairs += zip(mine.args, theirs, strict=True)
    return all(_is_same(mine, theirs) for mine, theirs in pairs)


def _is_same(mine: Any, theirs: Any) -> bool:
    if getattr(theirs, "is_Matrix", False) and not getattr(mine, "is_Matrix", False):
        theirs = MatrixElement(theirs, 0, 0)
    return bool(mine == theirs or decide(mine, theirs).status == "proved")
