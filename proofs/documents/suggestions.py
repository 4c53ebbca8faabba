"""The smallest edit that makes a false equation true: a transpose, a swap, another index.

Each edit is tried by deciding the edited equation; the first that is proved is proposed, in the
order in which people make the mistakes. Nothing is ever applied by itself. All edits together are
tried within a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

from otimes.algebra.budget import STEPS, steps_done
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import (
    Group,
    Name,
    Node,
    Power,
    Product,
    Slot,
    Sum,
    Tensor,
    bare,
    latex,
)
from otimes.proofs.documents.attempts import TRIAL, is_proved
from otimes.proofs.documents.items import is_capital

MOST = 48  # edits that are tried
MOST_WORK = 2.0  # units of work for the edits of one equation


def suggestion(lhs: Node, rhs: Node, symbols: Symbols) -> tuple[Node, Node] | None:
    """Return the sides with one edit that makes them equal, of the right side if possible."""
    tried: set[tuple[str, str]] = {(latex(lhs), latex(rhs))}
    begun = steps_done()
    left = set(_names(lhs))
    right = set(_names(rhs))
    candidates = [(lhs, edited) for edited in edits(rhs, left)]
    candidates += [(edited, rhs) for edited in edits(lhs, right)]
    for pair in ((_untwisted(a), _untwisted(b)) for a, b in candidates):
        text = latex(pair[0]), latex(pair[1])
        if text in tried or text[0] == text[1]:
            continue
        if len(tried) > MOST or steps_done() - begun > MOST_WORK * STEPS:
            return None
        tried.add(text)
        if is_proved(*pair, symbols, TRIAL):
            return pair
    return None


def _untwisted(node: Any) -> Any:
    """Return a term without double transposes."""
    if isinstance(node, Power) and node.exponent == "T" and isinstance(bare(node.base), Power):
        inner = bare(node.base)
        if isinstance(inner, Power) and inner.exponent == "T":
            return _untwisted(inner.base)
    if isinstance(node, tuple) and not isinstance(node, Slot):
        return tuple(_untwisted(part) for part in node)
    if isinstance(node, Node):
        return replace(node, **{f.name: _untwisted(getattr(node, f.name)) for f in fields(node)})
    return node


def edits(node: Node, others: set[Name]) -> Iterator[Node]:
    """Yield a term with one edit: swaps, transposes, exchanged indices, a missing factor."""
    yield from _everywhere(node, _swaps)
    yield from _everywhere(node, _transposes)
    yield from _everywhere(node, _signs)
    yield from _everywhere(node, partial(_renamed, others=others))
    missing = sorted((e for e in others - set(_names(node)) if e.base != "0"), key=latex)
    if len(missing) <= 2:
        for name in missing:
            yield from _everywhere(node, partial(_with_factor, name=name))


def _names(node: Node) -> Iterator[Name]:
    from otimes.algebra.notation.tree import walk

    return (e for e in walk(node) if isinstance(e, Name))


def _everywhere(node: Node, edit: Callable[[Node], Iterator[Node]]) -> Iterator[Node]:
    """Yield the node with the edit made at each place."""
    yield from edit(node)
    for each in fields(node):
        value = getattr(node, each.name)
        if each.name in ("function", "stands_for"):  # names, and no parts of the value
            continue
        if isinstance(value, Node):
            for edited in _everywhere(value, edit):
                yield _changed(node, each.name, edited)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            for k, part in enumerate(value):
                for edited in _everywhere(part, edit):
                    changed = (*value[:k], edited, *value[k + 1 :])
                    yield _changed(node, each.name, changed)


def _changed(node: Node, name: str, value: Any) -> Node:
    return replace(node, **{name: value})


def _swaps(e: Node) -> Iterator[Node]:
    if isinstance(e, Product | Tensor):
        for k in range(len(e.factors) - 1):
            a, b = e.factors[k : k + 2]
            factors = (*e.factors[:k], b, a, *e.factors[k + 2 :])
            if not (isinstance(e, Product) and "/" in e.marks):
                yield replace(e, factors=factors)
        if isinstance(e, Product) and len(e.factors) == 3 and "/" not in e.marks:
            yield replace(e, factors=e.factors[::-1])


def _transposes(e: Node) -> Iterator[Node]:
    if isinstance(e, Power) and e.exponent == "T":
        yield e.base
    elif (isinstance(e, Name) and is_capital(e)) or (
        isinstance(e, Group) and isinstance(bare(e), Product | Tensor | Sum)
    ):
        yield Power(e, "T")


def _signs(e: Node) -> Iterator[Node]:
    if isinstance(e, Sum):
        for k, sign in enumerate(e.signs):
            turned = "-" if sign in ("", "+") else "+" if k else ""
            yield replace(e, signs=(*e.signs[:k], turned, *e.signs[k + 1 :]))


def _renamed(e: Node, others: set[Name]) -> Iterator[Node]:
    """Exchange two indices, or take the indices of the symbol on the other side."""
    if not isinstance(e, Name):
        return
    if len(e.sub) == 2 and all(slot.kind == "index" for slot in e.sub):
        yield replace(e, sub=e.sub[::-1])
    for other in sorted(others, key=latex):
        if other.base == e.base and other != e:
            yield replace(other, span=e.span)


def _with_factor(e: Node, name: Name) -> Iterator[Node]:
    """Insert a symbol of the other side before, between or after factors."""
    if isinstance(e, Product) and all(mark != "/" for mark in e.marks):
        for k in range(len(e.factors) + 1):
            factors = (*e.factors[:k], name, *e.factors[k:])
            yield Product(factors, ("",) * len(factors))
    elif isinstance(e, Name) and is_capital(e):
        yield Product((name, e), ("", ""))
        yield Product((e, name), ("", ""))


def shown_edit(lhs: Node, rhs: Node, relation: str) -> str:
    """Return the edited equation as LaTeX."""
    return f"{latex(lhs)} {relation} {latex(rhs)}"
