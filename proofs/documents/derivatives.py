r"""Derivatives of a number that depends on a matrix by the definitions of a document.

After `Y = X W` and `G = \partial \ell / \partial Y`, the derivative of ℓ at W is that of
tr(Gᵀ X W), with G constant: the chain rule for a number that depends on W by Y alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Group,
    Name,
    Node,
    Power,
    Product,
    Sum,
    bare,
    latex,
    mapped,
    walk,
)
from otimes.proofs.documents.attempts import named
from otimes.proofs.documents.context import Context, Definition


class Chain(NamedTuple):
    """A derivative in terms of what it depends on, and the other side of its equation.

    `whole`: whether the number is written in the derivative; `how` names the definitions.
    """

    value: Node
    other: Node
    whole: bool
    how: str


def by_chain_rule(context: Context, left: Node, right: Node, line: int) -> Chain | None:
    """Return a derivative as its definitions give it.

    None if the left side is no derivative, or no definition says how it depends on the matrix.
    """
    asked = bare(left)
    if not isinstance(asked, Derivative):
        return None
    at = latex(asked.variable)
    here = _in_scope(context, line)
    used: dict[str, Definition] = {}
    if latex(asked.target) in here or not isinstance(bare(asked.target), Name):
        whole = context.unfolded(asked.target, used, _depending(context, here, at))
        if not _has(whole, at):
            return None
        written = not isinstance(bare(asked.target), Name)
        value = Group(replace(asked, target=Group(whole)), stands_for=asked)
        return Chain(value, right, written and not used, named(used) or "its left side")
    said = _as_function(context, here, asked)
    if said is not None:  # `\ell(W) = …`
        whole = context.unfolded(said.rhs, used, _depending(context, here, at))
        value = Group(replace(asked, target=Group(whole)), stands_for=asked)
        return Chain(value, right, False, named({latex(said.lhs): said, **used}))
    other = context.unfolded(right, used, [t for t in here if _is_gradient(context, t)])
    terms: list[Node] = []
    between = {latex(e): e for e in walk(other) if isinstance(e, Derivative)}
    variables = {latex(each.variable) for each in between.values()}
    for each in between.values():
        own = latex(each.variable)
        free = [text for text in here if text == own or text not in variables]
        if each.target != asked.target or latex(each.variable) == at:
            continue
        # what depends on the matrix by another of these is in the derivative at that one
        put: dict[str, Definition] = {}
        whole = context.unfolded(each.variable, put, _depending(context, free, at))
        if _has(whole, at):
            used |= put
            inner = Product((Power(each, "T"), Group(whole)), ("", ""))
            terms.append(Apply(Name("tr"), (inner,)))
    if not terms:
        return None
    total = Group(Sum(tuple(terms), ("", *["+"] * (len(terms) - 1))))
    value = Group(replace(asked, target=total), stands_for=asked)
    return Chain(value, other, False, named(used))


def turned_gradients(node: Any) -> Any:
    """Return a term with its derivatives transposed, as another layout has them."""

    def change(part: Any) -> Any:
        return Power(part, "T") if isinstance(part, Derivative) else None

    return mapped(node, change)


def _in_scope(context: Context, line: int) -> list[str]:
    every = context.definitions.items()
    return [text for text, known in every if known and context.in_scope(known[0].line, line)]


def _as_function(context: Context, here: list[str], asked: Derivative) -> Definition | None:
    r"""Return the definition of a number as a function of the matrix: `\ell(W) = …`."""
    for text in here:
        known = context.definitions[text][0]
        if isinstance(known.lhs, Apply) and known.lhs.function == bare(asked.target):
            arguments = [latex(bare(each)) for each in known.lhs.arguments]
            if arguments == [latex(asked.variable)] and _has(known.rhs, arguments[0]):
                return known
    return None


def _is_gradient(context: Context, text: str) -> bool:
    return isinstance(bare(context.definitions[text][0].rhs), Derivative)


def _depending(context: Context, texts: Collection[str], at: str) -> list[str]:
    """Return the symbols that depend on a matrix by their definitions; not the matrix itself."""
    others = [text for text in texts if text != at]
    return [
        text
        for text in others
        if _has(context.unfolded(context.definitions[text][0].rhs, {}, others), at)
    ]


def _has(node: Node, at: str) -> bool:
    """Return whether a symbol occurs in a term outside of derivatives."""
    inside = {id(part) for e in walk(node) if isinstance(e, Derivative) for part in walk(e)}
    return any(isinstance(e, Name) and latex(e) == at and id(e) not in inside for e in walk(node))
