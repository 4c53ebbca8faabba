r"""The sign `\circ`, which joins entries of matrices in one text and composes maps in another."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import (
    Apply,
    Group,
    Name,
    Node,
    Product,
    Tensor,
    bare,
    latex,
    mapped,
    walk,
)
from otimes.proofs.documents.proving.attempts import TRIAL, is_proved
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context

CIRCLE = r"\circ"
ENTRYWISE = re.compile(
    r"\b(?:hadamard|schur product|(?:entry|element|component|coordinate|point)-?wise)\b|"
    r"\b(?:entry by entry|element by element)\b",
    re.IGNORECASE,
)


def joins_entries(words: str, formulas: Iterable[str]) -> bool:
    r"""Return whether a text has a product of entries, and no other sign for it than `\circ`.

    >>> joins_entries("the Hadamard product", [r"A \circ B"])
    True
    >>> joins_entries("the Hadamard product", [r"A \odot B", r"f \circ g"])
    False
    """
    other = any(r"\odot" in tex or "⊙" in tex for tex in formulas)
    return ENTRYWISE.search(words) is not None and not other


def unless_composed(
    found: Found, context: Context, lhs: Node, rhs: Node, symbols: Symbols
) -> Found:
    r"""Return a proof, unless it is one only where `\circ` joins entries, and nothing says so."""
    rings = [e for side in (lhs, rhs) for e in walk(side) if _is_ring(e)]
    if not rings or context.joins_entries:
        return found
    factors = [bare(factor) for e in rings for factor in getattr(e, "factors", ())]
    applied = {latex(e.function) for s in (lhs, rhs) for e in walk(s) if isinstance(e, Apply)}
    maps = {*context.functions, *symbols.functions, *symbols.elementwise, *applied}
    if any(isinstance(e, Name) and {latex(e), e.base} & maps for e in factors):
        return Found("undecided", "∘ composes functions: it is not in the language")
    if is_proved(_as_product(lhs), _as_product(rhs), symbols, TRIAL):
        return found
    why = "true if ∘ is the product entry by entry: say so, or write ⊙"
    return replace(found, verdict="needs-hypothesis", why=why)


def _is_ring(node: Node) -> bool:
    return isinstance(node, Tensor) and node.mark == CIRCLE


def _as_product(node: Node) -> Node:
    """Return a term with matrices multiplied where maps are composed."""

    def change(part: Any) -> Any:
        if not _is_ring(part):
            return None
        factors = tuple(Group(_as_product(factor)) for factor in part.factors)
        return Product(factors, ("",) * len(factors), span=part.span)

    made: Node = mapped(node, change)
    return made
