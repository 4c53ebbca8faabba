"""The base of our SymPy classes: what each class of the language declares about itself.

Passes over expressions have tables for SymPy's classes and use these methods for ours, so a new
class is declared once. Its meaning is stated three more times, independently: as a sum of diagrams
(`reading`), as exact arrays (`evaluate.exact`) and in the checker (`proofs/replay.py`).
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

    is_tensor: ClassVar[bool] = False  # whether it prints as a name with indices, without brackets
    name_kind: ClassVar[str] = ""  # "tensor" or "function": kinds must not share names
    index_places: ClassVar[slice] = slice(0)  # positions of the arguments that are indices

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        """The shape, by default that of the first matrix among the arguments."""
        return next(a.shape for a in self.args if getattr(a, "is_Matrix", False))

    @staticmethod
    def limit_places(arguments: int) -> Sequence[int]:
        """Return the positions of the limits (index, count) among n arguments, outermost first.

        The indices are bound in the first argument, and in the limits further inside.
        """
        return ()

    def count_of(self, index: Any) -> Any:
        """Return the number of values of an index among the arguments."""
        raise NotImplementedError

    extends_right: Any = False  # whether it needs brackets before a factor on its right

    def checked_shape(self, reader: Any) -> Any:
        """Return the shape; `reader` (`shapes._Reader`) checks the parts and registers their names.

        Raises ShapeError if the parts do not fit, and LanguageError for a class that is for output
        only.
        """
        raise LanguageError(not_in_language(self))

    def text(self, printer: TextPrinter) -> Piece:
        """Return the Unicode text, and its operator precedence."""
        return printer.other(self)

    def tex(self, printer: TexPrinter) -> str:
        """Return the TeX."""
        raise NotImplementedError

    def _latex(self, printer: Any) -> str:
        """Return the TeX; the hook of SymPy's own printer, for example in a notebook."""
        return self.tex(printer if isinstance(printer, TexPrinter) else TexPrinter())

    def _entry(self, i: Any, j: Any, **_: Any) -> sympy.Expr:
        return MatrixElement(self, i, j)

    def doit(self, **_: Any) -> MatrixExpr:
        """Return the expression unchanged: simplification is a separate, named step."""
        return self
