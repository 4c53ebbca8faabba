r"""Rows of a matrix that a text writes as columns: the rows $x_i$ of X, in $W x_i$.

An array of one axis has no direction, and many texts take the rows of a matrix for columns. Whether
one does is shown by what stands beside them: $W x_i$ and $x_i^\top W$ are of columns, $x_i W$ is of
rows. A declaration $x_i \in \mathbb{R}^d$ says as much, unless there is $x_i W$ as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from otimes.algebra.notation.symbols import key_of
from otimes.algebra.notation.tree import Name, Node, Power, Product, bare, is_constant, walk
from otimes.proofs.documents.prose.items import Item, is_matrix_like
from otimes.proofs.documents.symbols.context import Context


def declare_rows_as_columns(context: Context, items: Iterable[Item]) -> None:
    """Note what the text takes the rows of matrices for."""
    members = [each for every in context.members.values() for each in every]
    keys = {key_of(each.name) for each in members if each.side == "row" and not each.turned}
    if not keys:
        return
    used = {side for item in items for s in item.statements for e in s.terms for side in _sides(e)}
    for key, each in context.declared:
        letter, _, last = key.partition("_")  # `x_N` is the last of `x_1, \dots, x_N`
        if each.kind == "vector" and letter in keys and len(last) < 2:
            used.add((letter, each.side or "either"))
    for key in keys:
        sides = {side for other, side in used if other == key}
        sure = sides & {"row", "column"}
        if len(sure) < 2 and sides:  # of what is used in both ways, nothing is known
            context.base.sides[key] = (sure or sides).pop()


def _sides(term: Node) -> Iterator[tuple[str, str]]:
    """Yield the symbols with one index beside a matrix, each with the side that it is used as."""
    for e in walk(term):
        if not isinstance(e, Product):
            continue
        for left, right in pairwise(e.factors):
            for vector, matrix, side in ((right, left, "column"), (left, right, "row")):
                name, turned = _name(vector)
                if name is None or len(name.sub) != 1 or not name.base.islower():
                    continue
                whole, _ = _name(matrix)
                if whole is not None and _is_matrix(whole):
                    other = {"row": "column", "column": "row"}[side]
                    yield key_of(name), other if turned else side


def _name(node: Node) -> tuple[Name | None, bool]:
    """Return the symbol that a factor is, maybe transposed."""
    inner = bare(node)
    turned = isinstance(inner, Power) and inner.exponent == "T"
    inner = bare(inner.base) if isinstance(inner, Power) else inner
    return (inner if isinstance(inner, Name) else None), turned


def _is_matrix(name: Name) -> bool:
    entry = len([slot for slot in name.sub if slot.kind in ("index", "number")]) > 1
    return is_matrix_like(name) and not (entry or name.select or is_constant(name))
