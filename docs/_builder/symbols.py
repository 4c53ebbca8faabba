"""The table of symbols on a theorem's page: each with its shape, and what it is on a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from algebra.language import Family
from algebra.latex import latex
from algebra.shapes import inspect
from numeric.binding import source_of
from proofs.claims import Binding
from proofs.theorem import Theorem
from words import ARRAYS, SIZES, table

EACH = {"H": "head", "L": "layer", "L,H": "layer and head"}


def text(theorem: Theorem) -> str:
    """Return the table, and where it helps a line on the sizes; empty without symbols."""
    claim = theorem.claim()
    if not claim.expressions:
        return ""
    signature = inspect(*claim.expressions)
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
    # A size has a meaning only where the statement speaks of a transformer.
    known = {} if theorem.convention == "either" else SIZES
    sizes = [
        f"${latex(size)}$ ({known[name]})"
        for name, size in signature.sizes.items()
        if name in known
    ]
    return table(head, rows) + ("\n\nSizes: " + ", ".join(sizes) + "." if sizes else "")


def _first_whole(bindings: Sequence[Binding], names: list[str]) -> Binding:
    """Return the first binding that gives every symbol a meaning on a model, or none."""
    for binding in bindings:
        if all(source_of(name, binding) is not None for name in names):
            return binding
    return {}


def _meaning(name: str, binding: Binding) -> str:
    source = source_of(name, binding)
    if source is None:
        return ""
    part = " (a part)" if source.rows is not None or source.cols is not None else ""
    return ARRAYS[source.name] + part


def _symbol(tensor: sympy.MatrixSymbol | Family) -> str:
    return str(latex(tensor))


def _shape(tensor: Any) -> str:
    """Return the shape, and for a family what there is one of for each."""
    rows, cols = (latex(size) for size in tensor.shape)
    counts = ",".join(str(number) for number in getattr(tensor, "counts", ()))
    return rf"${rows} \times {cols}$" + (f", for each {EACH.get(counts, counts)}" if counts else "")
