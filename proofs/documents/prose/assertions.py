"""False assertions in sentences about the rank, the inverse or the shape of a symbol."""

from __future__ import annotations

from collections.abc import Iterator

from otimes.algebra.notation.symbols import Declared, keys
from otimes.algebra.notation.tree import Name, Product, bare
from otimes.proofs.documents.prose.consistency import sides_of
from otimes.proofs.documents.prose.declared_in_words import Asserted, Prose, asserted_in
from otimes.proofs.documents.prose.items import Item
from otimes.proofs.documents.proving.attempts import symbols_in
from otimes.proofs.documents.reporting.report import Equation
from otimes.proofs.documents.symbols.context import (
    Context,
)

CIRCUITS = {"W_OV": ("W_O", "W_V"), "W_QK": ("W_Q", "W_K")}


def assertions(prose: Prose, context: Context, items: list[Item]) -> Iterator[Equation]:
    """Yield the false assertions in sentences about the rank, inverse or shape of a matrix."""
    document = prose.document
    for each in asserted_in(prose):
        line, column = document.position(each.offset)
        row = document.row(each.offset)
        known = context.symbols_at(row).known.get(each.key)
        if each.what == "inverse" and known is not None and not _is_same(context, known, row):
            continue
        if each.what.endswith("singular"):
            verdict, why = _singular(each, known, items)
        else:
            verdict, why = _contradiction(each, known, context)
        if why:
            cell = document.cell(each.offset)
            span = (each.offset, each.offset)
            why = document.named_lines(why)
            yield Equation(
                document.name, line, column, each.text, verdict, why, cell=cell, span=span
            )


def _singular(each: Asserted, known: Declared | None, items: list[Item]) -> tuple[str, str]:
    """Return why a projection onto these singular vectors is wrong: the others are meant."""
    if known is not None and known.rows == known.cols:
        return "", ""
    side = each.what.partition(" ")[0]
    acts = sides_of(each.key, items)
    if acts.keys() != {side}:  # x W = x U Σ Vᵀ: the states live with the left singular vectors
        return "", ""
    other = "left" if side == "right" else "right"
    return "shape", (
        f"{each.key} stands on the {side} of states (line {acts[side]}): they have the size of its "
        f"{other} singular vectors, and its {side} ones are on the side of what comes out"
    )


def _contradiction(each: Asserted, known: Declared | None, context: Context) -> tuple[str, str]:
    """Return the verdict on an assertion and the reason, which is empty where nothing is wrong."""
    if each.what == "rank":
        factors = CIRCUITS.get(each.key) or _factors(context, each.key)
        declared = [_declared_anywhere(context, key) for key in factors]
        sizes = [size for d in declared if d is not None for size in (d.rows, d.cols)]
        circuit = each.key in CIRCUITS
        open_ = not factors or None in declared or each.sizes[0] in sizes
        if open_ or not (circuit or each.named_first):
            return "", ""
        named = ", ".join(sorted({"·".join(map(str, size)) for size in sizes}))
        return "refuted", f"its rank may be as large as min({named}), which may be larger"
    if known is None or known.kind != "matrix" or known.rows == known.cols:
        return "", ""
    rows, cols = ("·".join(map(str, size)) for size in (known.rows, known.cols))
    if each.what == "inverse":
        why = f"{each.key} is {rows} × {cols} (line {known.line}): only a square matrix has one"
        return "shape", why
    if each.sizes[0] == known.cols or each.sizes[1] == known.rows:
        return "shape", f"{each.key} is declared {rows} × {cols} on line {known.line}"
    return "", ""


def _factors(context: Context, key: str) -> tuple[str, ...]:
    """Return the matrices of whose product a symbol is defined, none of one that is free.

    That a free matrix has some rank is an assumption.
    """
    for known in context.definitions.values():
        name = known[0].lhs if known else None
        if isinstance(name, Name) and key in keys(name):
            factors = bare(context.unfolded(known[0].rhs, {}))
            if isinstance(factors, Product) and "/" not in factors.marks:
                return tuple(dict.fromkeys(keys(e)[-1] for e in symbols_in(factors)))
    return ()


def _is_same(context: Context, known: Declared, row: int) -> bool:
    """Return whether a letter on a row stands for what is declared, in this section or for all."""
    return context.in_scope(known.line, row) or context.is_general(known.line)


def _declared_anywhere(context: Context, key: str) -> Declared | None:
    return next((k for name, k in context.declared if name == key), None)
