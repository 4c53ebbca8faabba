"""The table of symbols on a theorem's page: each with its shape, and its meaning on a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

import notation
from otimes.algebra.language.latex import latex
from otimes.algebra.language.linear import Family
from otimes.algebra.language.shapes import inspect
from otimes.numeric.binding import source_of
from otimes.proofs.claims import Binding
from otimes.proofs.theorem import Theorem
from words import ARRAYS, SIZES, table

EACH = {"H": "head", "L": "layer", "L,H": "layer and head"}


def text(theorem: Theorem) -> str:
    """Return the table of symbols, with a line on their sizes if needed; empty without symbols."""
    claim = theorem.claim()
    if not claim.expressions:
        return ""
    signature = inspect(*notation.stated(theorem))
    binding = _first_whole(getattr(claim, "bind", ()), list(signature.tensors))
    bound = getattr(claim, "on_models", True)
    rows = [
        [f"${_symbol(tensor)}$", _shape(tensor), _meaning(name, binding) if bound else ""]
        for name, tensor in signature.tensors.items()
    ]
    rows += [[f"${latex(symbol)}$", "a number", ""] for symbol in signature.scalars.values()]
    rows += [
        [f"${latex(symbol)}$", f"$1, \\dots, {latex(number)}$", "an index"]
        for symbol, number in signature.indices.values()
    ]
    head = ["symbol", "shape", "on a model"]
    if not any(meaning for *_, meaning in rows):
        head, rows = head[:2], [row[:2] for row in rows]
    listed = table(head, rows) if rows else ""
    # Sizes are described only in statements about transformers.
    known = {} if theorem.convention == "either" else SIZES
    sizes = [
        f"${latex(size)}$ ({known[name]})"
        for name, size in signature.sizes.items()
        if name in known
    ]
    said = "Sizes: " + ", ".join(sizes) + "." if sizes else ""
    return "\n\n".join(filter(None, [listed, said, notation.text(theorem)]))


def _first_whole(bindings: Sequence[Binding], names: list[str]) -> Binding:
    """Return the first binding that binds every symbol to an array of a model, or None."""
    for binding in bindings:
        if all(source_of(name, binding) is not None for name in names):
            return binding
    return {}


def _meaning(name: str, binding: Binding) -> str:
    source = source_of(name, binding)
    if source is None:
        return ""
    part = " (a part)" if source.rows is not None or source.cols is not None else ""
    said = f"{ARRAYS[source.name]}{part}"
    return f"any; tried with: {said}" if source.example else said


def _symbol(tensor: sympy.MatrixSymbol | Family) -> str:
    return str(latex(tensor))


def _shape(tensor: Any) -> str:
    """Return the shape of a symbol; for a family, also its index (such as "for each head")."""
    rows, cols = (latex(size) for size in tensor.shape)
    return rf"${rows} \times {cols}$" + _for_each(getattr(tensor, "counts", ()))


def _for_each(counts: Sequence[Any]) -> str:
    """Return what the members of a family are counted by."""
    if not counts:
        return ""
    known = EACH.get(",".join(map(str, counts)))
    number = r" \times ".join(map(latex, counts))
    return f", for each {known}" if known else f", ${number}$ of them"
