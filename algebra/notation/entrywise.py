r"""Operations entry by entry, and the `Defined` classes, in formulas.

`A ⊘ B` divides entry by entry, `A^{\circ -1}` and `A^(∘1/2)` are powers of entries. `logsoftmax`,
`logsumexp` (or `LSE`) and `crossentropy` (scores, then targets) act on rows, and on a column as on
a row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sympy
from sympy import Transpose

from otimes.algebra.language.defined import (
    CrossEntropy,
    LogSoftmax,
    LogSumExp,
    Quotient,
    Rotation,
)
from otimes.algebra.notation.dimensions import ONE, Shape
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Apply, Power, Tensor
from otimes.algebra.notation.typed import FormulaShapeError, Typed, Undeclared

DEFINED: dict[str, tuple[Any, int]] = {
    **dict.fromkeys(("logsoftmax", "LogSoftmax"), (LogSoftmax, 1)),
    **dict.fromkeys(("logsumexp", "LogSumExp", "LSE"), (LogSumExp, 1)),
    **dict.fromkeys(("crossentropy", "CrossEntropy"), (CrossEntropy, 2)),
    "rotation": (Rotation, 1),
}
"""The classes by their names in formulas, and how many arguments each has."""

_EXPONENT = re.compile(r"-?\d{1,2}(/2)?")


def entrywise_power(e: Power, base: Typed, exponent: str) -> Typed:
    """Return a power of the entries, by a whole number or half of one."""
    text = re.sub(r"[ (){}]", "", exponent.removeprefix(r"\circ"))
    if base.shape is None:
        raise FormulaShapeError("a power entry by entry is of a matrix", e.span)
    if not _EXPONENT.fullmatch(text):
        raise NotationError("the exponent is not a small whole number, or half of one", e.span)
    power = sympy.Rational(text)
    return Typed(base.shape, lambda: sympy.HadamardPower(base.build(), power), e.span)


def quotient(e: Tensor, found: Sequence[Typed]) -> Typed:
    """Return a division entry by entry."""
    if len(found) > 2:
        raise NotationError("what is divided is not clear: write brackets", e.span)
    over, under = found
    shape = over.shape
    return Typed(shape, lambda: Quotient(over.build(), under.build()), e.span)


def defined(functions: Any, e: Apply, arguments: Sequence[Typed]) -> Typed:
    """Return an expression of a `Defined` class."""
    cls, count = DEFINED[e.function.base]
    if len(arguments) != count:
        raise NotationError(
            f"{e.function.base} takes {count} arguments, and {len(arguments)} were given", e.span
        )
    first, *others = arguments
    if cls is Rotation:
        return _rotation(functions, first, e)
    if first.shape is None or any(other.shape is None for other in others):
        raise Undeclared(f"{e.function.base} takes matrices, and a number was given", e.span)
    for other, node in zip(others, e.arguments[1:], strict=True):
        functions.same(first, other, "compare", e.arguments[0], node)
    rows, cols = first.shape
    is_column = functions.solver.resolved(cols) == ONE
    shape: Shape = (rows, cols)
    if cls is not LogSoftmax:
        shape = (ONE, ONE) if is_column else (rows, ONE)
    functions.doubts.append(f"{e.function.base} was taken along rows")
    return Typed(shape, _built(functions, cls, arguments, cols), e.span)


def _built(functions: Any, cls: Any, arguments: Sequence[Typed], cols: Any) -> Any:
    def build() -> Any:
        parts = [argument.build() for argument in arguments]
        if functions.solver.resolved(cols) != ONE:
            return cls(*parts)
        made = cls(*map(Transpose, parts))
        return Transpose(made) if cls is LogSoftmax else made

    return build


def _rotation(functions: Any, angles: Typed, e: Apply) -> Typed:
    rows = ONE
    if angles.shape is not None:
        rows, cols = angles.shape
        if not functions.solver.unify(cols, ONE):
            raise FormulaShapeError("the angles of a rotation are a column", e.span)
    return Typed(((2, *rows), (2, *rows)), lambda: Rotation(angles.build()), e.span)
