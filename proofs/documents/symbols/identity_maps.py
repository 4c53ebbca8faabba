r"""Functions between spaces of vectors that a case of a text takes for the identity.

With `\phi : \mathbb{R}^d \to \mathbb{R}^m`, that $\phi(x) = x$ says that m is d.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import Apply, Name, Node, Statement, bare, latex


class SameSizes(NamedTuple):
    """Two sizes that are equal by what a line says."""

    first: Size
    second: Size
    line: int

    def turned(self) -> SameSizes:
        """Return the same with its sides exchanged."""
        return SameSizes(self.second, self.first, self.line)

    def shown(self) -> str:
        """Return the equation with its line."""
        sides = ("".join(map(str, each)) for each in (self.first, self.second))
        return f"{' = '.join(sides)} by line {self.line}"


@dataclass(frozen=True, slots=True)
class Map:
    """The sizes of the vectors that a function takes and returns."""

    takes: Size
    returns: Size


def map_of(statement: Statement) -> tuple[str, Map] | None:
    r"""Return the function, as LaTeX, that a statement `\phi : ℝ^d \to ℝ^m` is about, or None."""
    if statement.relations != (":", r"\to"):
        return None
    sizes = [size for term in statement.terms[1:] if (size := _size(term)) is not None]
    return (latex(bare(statement.terms[0])), Map(*sizes)) if len(sizes) == 2 else None


def _size(space: Node) -> Size | None:
    """Return the length of the vectors of a space, which is read as a letter with a label."""
    if not isinstance(space, Name) or space.style != "bb" or len(space.sup) != 1:
        return None
    return (space.sup[0].text,) if space.sup[0].text.isalnum() else None


def same_sizes(left: Node, right: Node, line: int, maps: Mapping[str, Map]) -> SameSizes | None:
    r"""Return the sizes that are equal where a function is the identity, `\phi(x) = x`, or None."""
    term = bare(left)
    known = maps.get(latex(term.function)) if isinstance(term, Apply) else None
    if known is None or not isinstance(term, Apply) or len(term.arguments) != 1:
        return None
    plain = latex(bare(right)) == latex(bare(term.arguments[0]))
    return SameSizes(known.takes, known.returns, line) if plain else None


def with_same_sizes(symbols: Symbols, same: SameSizes) -> Symbols:
    """Return symbols in whose shapes one size stands for both."""
    made = symbols.copy()
    for key, known in symbols.known.items():
        rows, cols = (_put(size, same) for size in (known.rows, known.cols))
        if (rows, cols) != (known.rows, known.cols):
            made.known[key] = replace(known, rows=rows, cols=cols)
    return made


def _put(size: Size, same: SameSizes) -> Size:
    if size == same.first:
        return same.second
    if len(same.first) > 1:
        return size
    return tuple(
        atom for each in size for atom in (same.second if (each,) == same.first else (each,))
    )
