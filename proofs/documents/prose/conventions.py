"""On which side weights act, where products of weights show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import (
    Apply,
    Name,
    Node,
    Product,
    Tensor,
    bare,
    walk,
)
from otimes.proofs.documents.containers.source import Document
from otimes.proofs.documents.prose.items import Item, composed

ORDERS = {
    ("V", "O"): "row",
    ("O", "V"): "column",
    ("IN", "OUT"): "row",
    ("OUT", "IN"): "column",
    ("E", "U"): "row",
    ("U", "E"): "column",
}


def order_of(a: Node, b: Node) -> str:
    """Return the convention in which two weights are multiplied, "" for other factors."""
    if not (isinstance(a, Name) and isinstance(b, Name) and a.base == b.base == "W"):
        return ""
    labels = [name.sub[0].text.replace("\\mathrm", "").strip("{}").upper() if name.sub else ""
              for name in (a, b)]  # fmt: skip
    return ORDERS.get((labels[0], labels[1]), "")


def convention_notes(
    items: Iterable[Item], document: Document, convention: str, symbols: Symbols
) -> list[str]:
    """Return notes on the convention: where weights act on the right, and where on the left."""
    seen: dict[str, list[int]] = {"row": [], "column": []}
    for item, statement in composed(items):
        traced = {
            id(e) for t in walk(statement) if _is_trace(t) for e in walk(t)
        }  # a trace may turn a product round
        for e in walk(statement):
            if id(e) in traced:
                continue
            for side in _sides(e, symbols):
                line = document.position(item.formula.offset(e.span[0]))[0]
                if line not in seen[side]:
                    seen[side].append(line)
    places = [
        f"{side} convention on line{'s' * (len(at) > 1)} {', '.join(map(str, at))}"
        for side, at in seen.items()
        if at
    ]
    if convention and not seen[convention]:
        places.insert(0, f"{convention} convention by its words")
    return [f"the text mixes conventions: {'; '.join(places)}"] if len(places) > 1 else []


def _is_trace(e: Node) -> bool:
    return isinstance(e, Apply) and e.function.base in ("tr", "Tr")


def _sides(e: Node, symbols: Symbols) -> Iterator[str]:
    """Yield the convention that a product shows: `W_V W_O`, or `A ⊗ W` times something.

    The shapes that are declared may say otherwise: with d × d_h and d_h × d, `W_O W_V` is d × d.
    """
    if not isinstance(e, Product):
        return
    for a, b in pairwise(map(bare, e.factors)):
        side = order_of(a, b)
        if side and not _is_small(a, b, symbols):
            yield side
        if isinstance(a, Tensor) and a.mark == r"\otimes" and isinstance(b, Name):
            yield "column"


def _is_small(a: Node, b: Node, symbols: Symbols) -> bool:
    """Return whether declared shapes show that a product is between heads, not of the stream."""
    known = [symbols.lookup(e)[1] for e in (a, b) if isinstance(e, Name)]
    first, second = (known[0], known[1]) if len(known) == 2 else (None, None)
    if first is None or second is None or not first.rows or not second.rows:
        return False
    labels = {e.sub[0].text.upper() for e in (a, b) if isinstance(e, Name) and e.sub}
    narrow = labels == {"V", "O"} and first.rows == second.cols != first.cols == second.rows
    return narrow and str(first.cols[0]) in ("d", "D", "d_model", "d_{model}", "m")
