r"""Shape errors of equations whose symbols are all given in numbers: `W_Q X = \begin{bmatrix} …`.

The numbers have the sizes that the equation is about, whatever letters are declared for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from otimes.algebra.notation.elaborate import shape_error
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import Grid, Node, Power, bare, latex
from otimes.proofs.documents.proving.attempts import symbols_in
from otimes.proofs.documents.symbols.context import Context, Definition

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


def with_lists_turned(given: Mapping[str, Definition]) -> Iterator[dict[str, Definition]]:
    """Yield numbers in which every list, as (1, 2), is a row or a column, each in each way."""
    lists = [text for text, each in given.items() if _is_list(_unturned(each.rhs))]
    if not 0 < len(lists) <= MOST_TURNED:
        return
    for turned in product((False, True), repeat=len(lists)):
        put = dict(given)
        for text, turns in zip(lists, turned, strict=True):
            known = given[text]
            grid = bare(_unturned(known.rhs))
            if not isinstance(grid, Grid):
                continue
            row: Node = replace(grid, bracket="")
            column = turns or isinstance(bare(known.rhs), Power)
            put[text] = Definition(known.lhs, Power(row, "T") if column else row, known.line)
        yield put


def _unturned(node: Node) -> Node:
    """Return what is transposed, or the term itself."""
    inner = bare(node)
    return inner.base if isinstance(inner, Power) and inner.exponent == "T" else node


def numbers_given(
    context: Context,
    texts: Iterable[str],
    line: int,
    without: tuple[Node, Node] | None = None,
) -> dict[str, Definition]:
    """Return the last numbers that a section gave symbols up to a line, `without` an equation."""
    given: dict[str, Definition] = {}
    for text in texts:
        every = reversed(context.numbers.get(text, ()))
        last = next((d for d in every if d.line <= line and (d.lhs, d.rhs) != without), None)
        if last is not None and context.in_scope(last.line, line):
            given[text] = last
    return given


def _is_about_numbers(context: Context, given: Definition, line: int) -> bool:
    """Return whether a general claim is about the numbers of a symbol, and no other values of it.

    They stand in its paragraph, or what was said of the symbol before is of another section.
    """
    if context.together(given.line, line):
        return True
    said = [at for _, at in context.lines_of([given.lhs], line)]
    return bool(said) and not any(context.in_scope(at, line) for at in said)


def conforms_in_numbers(
    context: Context, terms: Sequence[Node], symbols: Symbols, line: int
) -> bool:
    """Return whether terms conform with the numbers of their symbols, and are about these."""
    names = {latex(e) for term in terms for e in symbols_in(term)} - symbols.sizes()
    given = numbers_given(context, names, line)
    if not names or given.keys() != names:
        return False
    if not all(_is_about_numbers(context, each, line) for each in given.values()):
        return False
    return not misfit_in_numbers(context, terms, given, symbols)


def _is_list(node: Node) -> bool:
    grid = bare(node)
    return isinstance(grid, Grid) and bool(grid.bracket)
