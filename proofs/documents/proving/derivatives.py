r"""Derivatives of a number that depends on a matrix by the definitions of a document.

After `Y = X W` and `G = \partial \ell / \partial Y`, the derivative of ℓ at W is that of
tr(Gᵀ X W), with G constant: the chain rule for a number that depends on W by Y alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from otimes.algebra.notation.functions import is_loss
from otimes.algebra.notation.symbols import default, key_of
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
from otimes.proofs.documents.proving.attempts import named
from otimes.proofs.documents.proving.cross_entropy import entropy
from otimes.proofs.documents.symbols.context import Context, Definition


class Chain(NamedTuple):
    """A derivative in terms of what it depends on, and the other side of its equation.

    `whole`: whether the number is written in the derivative; `how` names the definitions.
    """

    value: Node
    other: Node
    whole: bool
    used: dict[str, Definition]

    @property
    def how(self) -> str:
        """Which definitions are put in."""
        return named(self.used) or "its left side"

    @property
    def derivative(self) -> Derivative:
        """The derivative, of what definitions give."""
        value = bare(self.value)
        assert isinstance(value, Derivative)
        return value

    @property
    def target(self) -> Node:
        """What is differentiated."""
        return self.derivative.target

    def in_full(self, context: Context) -> tuple[Node, Node] | None:
        """Return both sides with all definitions put in, None where some cannot be."""
        own = self.derivative
        with free(context, own.variable):
            others = context.instances([own.target])
            target = context.unfolded(own.target, {}, None, others)
            left = is_open(context, target)
        point = context.unfolded(own.variable, {})
        right = context.unfolded(self.other, {}, None, context.instances([self.other]))
        if left or is_open(context, point) or is_open(context, right):
            return None
        if point == own.variable:
            return replace(own, target=target), right
        usual = default(own.variable)
        if (
            usual is not None
            and usual.kind == "scalar"
            and not context.declarations_of(key_of(own.variable))
        ):  # it may be a vector, as its definition says
            bold = replace(own.variable, style="bf")
            target = mapped(target, {own.variable: bold}.get)
            own = replace(own, variable=bold)
        return replace(own, target=target, point=Group(point)), right


def is_open(context: Context, node: Node) -> bool:
    """Return whether symbols of a term have definitions that are not put in."""
    inside = {id(p) for e in walk(node) if isinstance(e, Derivative) for p in walk(e)}
    names = [e for e in walk(node) if isinstance(e, Name) and id(e) not in inside]
    return any(context.definitions.get(latex(e)) for e in names)


def by_chain_rule(
    context: Context, asked: Derivative, right: Node, line: int, without: Collection[str] = ()
) -> Iterator[Chain]:
    """Yield a derivative as its definitions give it: by itself, and by those on the right side.

    None is yielded if no definition says how it depends on the matrix. `without` are symbols, as
    LaTeX, that are constant.
    """
    here = [text for text in in_force(context, line) if text not in without]
    for chain_of in (_by_itself, _by_derivatives):
        if chain_of is _by_derivatives:
            loss = bare(asked.target)
            if not (isinstance(loss, Name) and is_loss(loss, context.symbols_at(line))):
                return
        found = chain_of(context, here, asked, right, line)
        if found is not None:
            yield found


@contextmanager
def free(context: Context, name: Name) -> Iterator[None]:
    """Read a symbol as one that has no definition."""
    said = context.definitions.pop(latex(name), None)
    try:
        yield
    finally:
        if said is not None:
            context.definitions[latex(name)] = said


def derivative_in(context: Context, left: Node) -> Derivative | None:
    r"""Return the derivative that a side is; `\nabla L` is that of a function of one matrix."""
    asked = bare(left)
    if isinstance(asked, Derivative):
        return asked
    if not (isinstance(asked, Apply) and asked.function == Name(r"\nabla")):
        return None
    of = bare(asked.arguments[0])
    every = context.functions.get(latex(of), ()) if isinstance(of, Name) else ()
    heads = [said.lhs.arguments for said in every if isinstance(said.lhs, Apply)]
    variables = {bare(argument) for arguments in heads for argument in arguments}
    variable = variables.pop() if len(variables) == 1 else None
    if not isinstance(variable, Name):
        return None
    return Derivative(of, variable, gradient=True, span=asked.span)


def with_shapes(context: Context, node: Any, line: int) -> Any:
    """Return a term in which derivatives at what is defined have the shape of its definition."""

    def change(part: Any) -> Any:
        if not isinstance(part, Derivative):
            return None
        known = context.definitions.get(latex(part.variable))
        if not known or not holds(context, known[0], line):
            return part
        return replace(part, like=context.unfolded(known[0].rhs, {}))

    return mapped(node, change)


def in_force(context: Context, line: int) -> list[str]:
    """Return the symbols, as LaTeX, whose definitions count on a line."""
    every = [text for text, known in context.definitions.items() if known]
    return [text for text in every if holds(context, context.definitions[text][0], line)]


def holds(context: Context, known: Definition, line: int) -> bool:
    """Return whether a definition counts on a line.

    It does in its section, and below it until one of its symbols is declared or defined anew.
    """
    if context.in_scope(known.line, line):
        return True
    if line < known.line:
        return False
    names = {e for side in (known.lhs, known.rhs) for e in walk(side) if isinstance(e, Name)}
    declared = (each.line for e in names for each in context.declarations_of(key_of(e)))
    defined = (each.line for e in names for each in context.ahead.get(latex(e), ()))
    return not any(known.line < at <= line for at in chain(declared, defined))


def _by_itself(
    context: Context, here: list[str], asked: Derivative, right: Node, line: int
) -> Chain | None:
    """Return a derivative of what is given, with its definitions put in."""
    at, used = latex(asked.variable), dict[str, Definition]()
    said = _as_function(context, here, asked)
    of = asked.target if said is None else said.rhs
    if said is not None:  # `\ell(W) = …`
        used[latex(said.lhs)] = said
    elif isinstance(bare(of), Name):
        if latex(of) not in here:
            return None
        known = context.definitions[latex(of)][0]
        used[latex(of)], of = known, known.rhs
    whole = context.unfolded(entropy(of, right), used, depending(context, here, at))
    if not _has(whole, at):
        return None
    value = Group(replace(asked, target=Group(whole)), stands_for=asked)
    other = with_shapes(context, _evaluated(context, here, right, used), line)
    return Chain(value, other, True, used)


def _evaluated(context: Context, here: list[str], node: Node, used: dict[str, Definition]) -> Any:
    """Return a term in which derivatives of what is defined are of its definition."""

    def change(part: Any) -> Any:
        if not isinstance(part, Derivative):
            return None
        whole = context.unfolded(part.target, used, depending(context, here, latex(part.variable)))
        if whole == part.target or not _has(whole, latex(part.variable)):
            return part
        at = context.unfolded(part.variable, used)
        return replace(part, target=Group(whole), point=None if at == part.variable else Group(at))

    return mapped(node, change)


def _by_derivatives(
    context: Context, here: list[str], asked: Derivative, right: Node, line: int
) -> Chain | None:
    """Return a derivative by those of the same number on the right side, None if there are none.

    None, too, where the number is defined, and depends on the matrix in another way.
    """
    at, used = latex(asked.variable), dict[str, Definition]()
    other = context.unfolded(right, used, [t for t in here if is_gradient(context, t)])
    other = with_shapes(context, other, line)
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
        whole = context.unfolded(each.variable, put, depending(context, free, at))
        if _has(whole, at):
            used |= put
            inner = Product((Power(each, "T"), Group(whole)), ("", ""))
            terms.append(Apply(Name("tr"), (inner,)))
    apart = [text for text in here if text not in variables]
    direct = context.unfolded(asked.target, {}, depending(context, apart, at))
    if not terms or _has(direct, at):
        return None
    total = Group(Sum(tuple(terms), ("", *["+"] * (len(terms) - 1))))
    value = Group(replace(asked, target=total), stands_for=asked)
    return Chain(value, other, False, used)


def turned_gradients(node: Any) -> Any:
    """Return a term with its derivatives transposed, as another layout has them."""

    def change(part: Any) -> Any:
        return Power(part, "T") if isinstance(part, Derivative) else None

    return mapped(node, change)


def _as_function(context: Context, here: list[str], asked: Derivative) -> Definition | None:
    r"""Return the definition of a number as a function of the matrix: `\ell(W) = …`."""
    for text in here:
        known = context.definitions[text][0]
        if isinstance(known.lhs, Apply) and known.lhs.function == bare(asked.target):
            arguments = [latex(bare(each)) for each in known.lhs.arguments]
            if arguments == [latex(asked.variable)] and _has(known.rhs, arguments[0]):
                return known
    return None


def is_gradient(context: Context, text: str) -> bool:
    """Return whether a symbol is defined as a derivative."""
    return isinstance(bare(context.definitions[text][0].rhs), Derivative)


def depending(context: Context, texts: Collection[str], at: str) -> list[str]:
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
