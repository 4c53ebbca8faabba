"""Other readings of an equation: under one of them it is true, and the text does not say which.

The order of `vec`, numbers that are powers or labels, the number of entries of a column of ones,
matrices that are causal, softmax along columns, labels written in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.notation.symbols import Symbols, key_of
from otimes.algebra.notation.tree import (
    Apply,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Product,
    Slot,
    Tensor,
    latex,
    mapped,
    walk,
)
from otimes.algebra.notation.typed import Elaborated
from otimes.algebra.verdict import Verdict
from otimes.proofs.documents.proving.attempts import TRIAL, attempted, named, shown
from otimes.proofs.documents.proving.questions import decide
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition

ACTIVATIONS = (r"\sigma", r"\phi", r"\varphi", r"\psi", r"\rho")
NEURONS = re.compile(
    r"\bMLPs?\b|\bneurons?\b|\bactivation function|\bnon-?linearit|\bhidden layer|\bfeed-?forward|"
    r"\bperceptron|\bReLU\b|\bGELU\b",
    re.IGNORECASE,
)


def by_order_of_vec(
    lhs: Node, rhs: Node, symbols: Symbols, decided: Callable[[Symbols], Found]
) -> Found | None:
    """Return the verdict on a claim with vec, if the text does not say which order it has.

    True for both orders it is proved, for one it needs that hypothesis, and refuted for both it is
    false; `decided` gives the verdict under one of them.
    """
    if symbols.vec or not _has_vec(lhs, rhs):
        return None
    true, orders = [], []
    for order, said in (("cols", "columns"), ("rows", "rows")):
        ordered = symbols.copy()
        ordered.vec = order
        orders.append(ordered)
        verdict, reading = attempted(lhs, rhs, (), ordered)
        if verdict is not None and verdict.status == "proved":
            true.append((said, reading))
    if len(true) == 2:
        return Found("proved", "whether vec stacks the columns or the rows", reading=true[0][1])
    if not true:
        found = [decided(ordered) for ordered in orders]
        false = [each for each in found if each.verdict == "refuted"]
        if false and all(each.is_wrong for each in found):
            return false[0]
        pairs = zip(("columns", "rows"), found, strict=True)
        true = [(said, each.reading) for said, each in pairs if each.verdict == "proved"]
        if len(true) != 1:
            return None
    return Found("needs-hypothesis", f"true if vec stacks the {true[0][0]}", reading=true[0][1])


def _has_vec(*sides: Node) -> bool:
    functions = (e.function.base for s in sides for e in walk(s) if isinstance(e, Apply))
    return any(base.startswith("vec") for base in functions)


def as_powers(lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
    """Return the verdict on a claim that is true if superscript numbers are read the other way."""
    numbers = {
        key_of(e)
        for side in (lhs, rhs)
        for e in walk(side)
        if isinstance(e, Name) and e.sup and e.sup[0].kind == "number" and e.sup[0].text != "1"
    }
    numbers -= {  # nobody writes these as powers
        key_of(e)
        for side in (lhs, rhs)
        for e in walk(side)
        if isinstance(e, Name) and e.sup and e.sup[0].text in ("0", "1")
    }
    if not numbers:
        return None
    other = symbols.copy()
    other.labelled ^= numbers
    verdict, reading = attempted(lhs, rhs, (), other)
    if verdict is None or verdict.status != "proved":
        return None
    kinds = " and ".join(
        f"the number above {key} is a {'power' if key in symbols.labelled else 'label'}"
        for key in sorted(numbers)
    )
    return Found("needs-hypothesis", f"true if {kinds}", reading=reading)


def by_causality(lhs: Node, rhs: Node, read: Elaborated) -> Found | None:
    """Return the verdict on a claim with sums up to an index that is true of causal matrices."""
    sums = [e for side in (lhs, rhs) for e in walk(side) if isinstance(e, Indexed)]
    if not any(each.kind in ("range", "from") for each in sums):
        return None
    atoms = {a for term in read.terms for a in term.atoms(sympy.MatrixSymbol)}
    square = [a for a in sorted(atoms, key=str) if a.shape[0] == a.shape[1] and a.shape[0] != 1]
    if not 0 < len(square) <= 2:
        return None
    given = [(sympy.HadamardProduct(a, CausalMask(a.shape[0])), a) for a in square]
    try:
        verdict = decide(read.terms[0], read.terms[1], given=given, budget=TRIAL)
    except OtimesError:
        return None
    if verdict.status != "proved":
        return None
    named = " and ".join(str(square[k].name) for k in verdict.used)
    why = f"true given that {named} is causal: zero above the diagonal"
    return Found("needs-hypothesis", why, reading=shown(read))


def by_size_of_ones(context: Context, lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
    """Return the verdict on a claim that is true if all its columns of ones have one length."""
    used: dict[str, Definition] = {}
    others = context.instances([lhs, rhs])
    a, b = (context.unfolded(side, used, None, others) for side in (lhs, rhs))
    ones = [e for side in (a, b) for e in walk(side) if isinstance(e, Name) and e.base == "1"]
    if len(ones) < 2 or any(e.sub for e in ones):
        return None
    alike = symbols.copy()
    alike.same_ones = True
    verdict, reading = attempted(a, b, (), alike)
    if verdict is None or verdict.status != "proved":
        return None
    names = f"; with {named(used)}" if used else ""
    why = f"true if every {latex(ones[0])} has the same number of entries{names}"
    return Found("needs-hypothesis", why, reading=reading)


def activations(sides: Sequence[Node], symbols: Symbols) -> set[str]:
    r"""Return the Greek letters that stand for functions of which nothing is said: `\phi(W x)`."""
    functions = [e.function for side in sides for e in walk(side) if isinstance(e, Apply)]
    plain = {e.base for e in functions if e.base in ACTIVATIONS and not (e.sub or e.sup)}
    return {each for each in plain - symbols.elementwise if symbols.lookup(Name(each))[1] is None}


def by_columns(lhs: Node, rhs: Node, symbols: Symbols) -> Verdict | None:
    """Return the verdict with every softmax taken along columns."""
    other = symbols.copy()
    other.softmax = "columns"
    return attempted(lhs, rhs, (), other)[0]


def with_ones(node: Any) -> Any:
    r"""Return a term in which a factor 1 is a column of ones: `A 1`, `1 b^\top`.

    Nobody multiplies by the number one, or transposes it.
    """

    def change(part: Any) -> Any:
        if isinstance(part, Power) and part.exponent == "T" and _is_one(part.base):
            return replace(part, base=_ones(part.base))
        if isinstance(part, Tensor) and part.mark == r"\otimes":
            return replace(part, factors=tuple(map(with_ones, map(_ones_or, part.factors))))
        if not isinstance(part, Product) or "/" in part.marks or any(map(_is_dotted, part.marks)):
            return None
        factors = tuple(_ones(f) if _is_one(f) else with_ones(f) for f in part.factors)
        return replace(part, factors=factors)

    return mapped(node, change)


def with_columns_of_ones(lhs: Node, rhs: Node) -> tuple[Node, Node]:
    """Return both sides of an equation with columns of ones, where it may mean these: `A 1 = 1`."""
    sides = [with_ones(side) for side in (lhs, rhs)]
    if sides != [lhs, rhs]:
        sides = [_ones(side) if _is_one(side) else side for side in sides]
    return sides[0], sides[1]


def _ones_or(node: Node) -> Node:
    return _ones(node) if _is_one(node) else node


def _is_one(node: Node) -> bool:
    return isinstance(node, Number) and node.text == "1"


def _ones(node: Node) -> Name:
    return Name("1", "bf", span=node.span)


def _is_dotted(mark: str) -> bool:
    return mark in (r"\cdot", r"\times")


def plainly_labelled(node: Any) -> Any:
    """Return a term in which `h_1` and `h1`, `W_v` and `W_V`, `P` and `𝐏` are written alike."""

    def change(part: Any) -> Any:
        if isinstance(part, Name) and part.style == "bf" and not part.base.isdigit():
            return plainly_labelled(replace(part, style=""))
        if not isinstance(part, Slot):
            return None
        text = re.sub(r"\\mathrm|[{}_]", "", part.text)
        label = part.kind == "label" or len(text) != 1
        return Slot("label" if label else part.kind, text.casefold() if len(text) > 1 else text)

    return mapped(node, change)
