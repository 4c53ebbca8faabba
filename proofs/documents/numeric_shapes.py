r"""Shape errors of equations whose symbols are all given in numbers: `W_Q X = \begin{bmatrix} …`.

The numbers have the sizes that the equation is about, whatever letters are declared for these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from otimes.algebra.notation.elaborate import shape_error
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import Grid, Node, Power, bare
from otimes.proofs.documents.context import Context, Definition

MOST_TURNED = 4  # lists that are tried as rows and as columns


def misfit_in_numbers(
    context: Context, sides: Sequence[Node], given: Mapping[str, Definition], symbols: Symbols
) -> str:
    """Return how the sides do not conform with the numbers put in, "" if they do or may.

    A list, as (1, 2), may be a row or a column.
    """
    lists = [text for text, each in given.items() if _is_list(each.rhs)]
    if len(lists) > MOST_TURNED:
        return ""
    error = ""
    for turned in product((False, True), repeat=len(lists)):
        put = dict(given)
        for text in (text for text, turns in zip(lists, turned, strict=True) if turns):
            known = given[text]
            put[text] = Definition(known.lhs, Power(known.rhs, "T"), known.line)
        found = shape_error([context.unfolded(side, {}, None, put) for side in sides], symbols)
        if not found:
            return ""
        error = error or found
    return error


def _is_list(node: Node) -> bool:
    grid = bare(node)
    return isinstance(grid, Grid) and bool(grid.bracket)
