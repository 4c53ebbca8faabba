"""The base of our SymPy classes: what each class of the language declares about itself.

The passes over expressions know SymPy's classes by tables and ours by these methods, so that a new
class is declared in one place. What it means is stated three more times, independently: as a sum of
diagrams (`reading`), as exact arrays (`evaluate.exact`) and in the checker (`proofs/replay.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import sympy
from sympy import MatrixExpr
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import LanguageError
from otimes.algebra.language.latex import TexPrinter
from otimes.algebra.language.shape_messages import not_in_language
from otimes.algebra.language.unicode import Piece, TextPrinter


def argument_at(position: int) -> Any:
    """Return a property that is the argument of an expression at a position."""
    return property(lambda e: e.args[position])


class Declared(MatrixExpr):
    """A matrix expression that keeps its arguments as given."""

    is_tensor: ClassVar[bool] = False  # a name with indices, printed without brackets
    name_kind: ClassVar[str] = ""  # "tensor" or "function": what its `name` must not be shared with
    index_places: ClassVar[slice] = slice(0)  # which arguments are indices, and not numbers

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        """The shape, by default that of the first matrix among the arguments."""
        return next(a.shape for a in self.args if getattr(a, "is_Matrix", False))

    @staticmethod
    def limit_places(arguments: int) -> Sequence[int]:
        """Return which of so many arguments are limits (index, count), the outermost first.

        The indices are bound in the first argument, and in the limits further inside.
        """
        return ()

    def count_of(self, index: Any) -> Any:
        """Return how many values an index among the arguments takes."""
        raise NotImplementedError

    extends_right: Any = False  # whether a factor on its right would be read as part of it

    def checked_shape(self, reader: Any) -> Any:
        """Return the shape, its parts checked and their names registered by `shapes.Reader`.

        Raises ShapeError where the parts do not fit. A class that only shows results has no place
        in a statement.
        """
        raise LanguageError(not_in_language(self))

    def text(self, printer: TextPrinter) -> Piece:
        """Return the Unicode text, and how tightly it holds together."""
        return printer.other(self)

    def tex(self, printer: TexPrinter) -> str:
        """Return the TeX."""
        raise NotImplementedError

    def _latex(self, printer: Any) -> str:
        """Return the TeX by SymPy's protocol, which its own printer uses, as in a notebook."""
        return self.tex(printer if isinstance(printer, TexPrinter) else TexPrinter())

    def _entry(self, i: Any, j: Any, **_: Any) -> sympy.Expr:
        return MatrixElement(self, i, j)

    def doit(self, **_: Any) -> MatrixExpr:
        """Return itself: simplifying is a separate, named step."""
        return self
