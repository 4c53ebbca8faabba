r"""Differentials: `dY = dW\, x + W\, dx` after `Y = W x`, and `dL = \mathrm{tr}(G^\top dY)`.

The differential of a term is its derivative in the changes of the matrices that have a `d` on the
right side; what has none there is constant. In a text about gradients `dQ = dS\, K` may be about
those of a loss: where S depends on Q, and not Q on S.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Differential,
    Group,
    Name,
    Node,
    Power,
    Product,
    Sum,
    is_constant,
    latex,
    walk,
)
from otimes.proofs.documents.formulas.changes import operand, rewritten
from otimes.proofs.documents.proving.derivatives import depending, in_force, is_gradient
from otimes.proofs.documents.symbols.context import Context, Definition

GRADIENTS = re.compile(
    r"\b(?:gradients?|backward(?:s|\s+pass)?|back-?prop\w*|adjoints?|cotangents?)\b", re.IGNORECASE
)
LOSS = Name(r"\ell")


@dataclass(frozen=True, slots=True)
class Change:
    """An equation of differentials: its sides, which definitions are put in, what is constant."""

    left: Node
    right: Node
    variables: tuple[Name, ...]
    used: dict[str, Definition]
    constant: tuple[str, ...]


def in_changes(context: Context, left: Node, right: Node, line: int) -> Change | None:
    """Return an equation of differentials, None where its left side is none of what is composed."""
    target = operand(left)
    here = in_force(context, line)
    other = context.unfolded(right, {}, [t for t in here if is_gradient(context, t)])
    variables = tuple({latex(e): e for e in _changed(context, other)}.values())
    if target is None or not variables:
        return None
    used = dict[str, Definition]()
    stops = {latex(e) for e in variables}
    between = {latex(e): e for e in walk(other) if isinstance(e, Derivative)}
    parts = [e for e in between.values() if e.target == target]
    texts = [text for text in here if text not in stops]
    if parts:  # dL = tr(Gᵀ dY), for each derivative G of L that occurs
        stops |= {latex(e.variable) for e in parts}
        terms: list[Node] = []
        for part in parts:
            own = [t for t in here if t == latex(part.variable) or t not in stops]
            own = [t for t in own if t not in {latex(e) for e in variables}]
            whole = context.unfolded(part.variable, used, own)
            change = Differential(Group(whole), variables)
            terms.append(Apply(Name("tr"), (Product((Power(part, "T"), change), ("", "")),)))
        value: Node = Sum(tuple(terms), ("", *["+"] * (len(terms) - 1)))
    else:
        value = context.unfolded(target, used, texts)
        parts_of = [e for e in walk(value) if isinstance(e, Name)]
        if not any(latex(_base(context, e)) in stops for e in parts_of):
            return None
        value = Differential(Group(value), variables)
    names = {latex(e): e for e in walk(value) if isinstance(e, Name) and not is_constant(e)}
    names = {latex(base := _base(context, e)): base for e in names.values()}
    loose = [
        text for text, e in names.items() if text not in stops and _may_change(context, e, line)
    ]
    value = Group(value, stands_for=left)
    return Change(value, _with_changes(other, variables), variables, used, tuple(sorted(loose)))


def as_gradients(context: Context, left: Node, right: Node, line: int) -> tuple[Node, Node] | None:
    r"""Return both sides with derivatives of ℓ for `dQ = dS\\, K`, None where it is no gradient.

    S depends on Q by its definition, and the section is about gradients.
    """
    own = operand(left)
    variables = [*_changed(context, right)]
    if not isinstance(own, Name) or not variables:
        return None
    if not GRADIENTS.search(context.words_of_section(line)):
        return None
    here = in_force(context, line)
    below = depending(context, here, latex(own))
    above = {latex(e) for e in walk(context.unfolded(own, {}, here)) if isinstance(e, Name)}
    if above & {latex(e) for e in variables}:
        return None
    if not any(latex(e) in below for e in variables):
        return None

    def change(part: Any) -> Node | None:
        name = operand(part)
        return Derivative(LOSS, name) if isinstance(name, Name) else None

    return rewritten(left, change), rewritten(right, change)


def _changed(context: Context, node: Node) -> Iterator[Name]:
    """Yield the matrices of which a term has changes, by themselves or in a bracket."""
    found: list[Name] = []

    def note(part: Node) -> Node | None:
        of = operand(part)
        if of is None or (isinstance(of, Name) and context.has_exponent(of)):
            return None
        names = [e for e in walk(of) if isinstance(e, Name) and not is_constant(e)]
        found.extend(e for e in names if isinstance(of, Name) or len(e.base) == 1)
        return Differential(of, ())

    rewritten(node, note)
    yield from found


def _with_changes(node: Node, variables: tuple[Name, ...]) -> Any:
    def change(part: Node) -> Node | None:
        of = operand(part)
        if of is None:
            return None
        if isinstance(of, Name):
            return Differential(of, (of,)) if of in variables else None
        return Differential(Group(of), variables)

    return rewritten(node, change)


def _base(context: Context, name: Name) -> Name:
    """Return the symbol of which another is a power."""
    return replace(name, sup=()) if context.has_exponent(name) else name


def _may_change(context: Context, name: Name, line: int) -> bool:
    """Return whether a symbol is a matrix or a vector, of which no change is written."""
    known = context.symbols_at(line).lookup(name)[1]
    return known is not None and known.kind in ("matrix", "vector") and len(name.base) == 1
