r"""Recurrences that a text writes out as a sum: `x^L = x^0 + \sum_{l=0}^{L-1} f^l(x^l)`.

By `x^{l+1} = x^l + f^l(x^l)` the terms of the sum telescope, whatever f is. A sum of the same terms
that begins or ends elsewhere is another state: it has a term too many or too few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from otimes.algebra.notation.affine import Affine, affine, moved, written
from otimes.algebra.notation.tree import (
    Group,
    Indexed,
    Name,
    Node,
    Number,
    Slot,
    Sum,
    bare,
    latex,
    walk,
)
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Definition

STEPS = (0, 1, -1)  # how far the index of the sum may be from that of the recurrence


def unrolled(lhs: Node, rhs: Node, said: Definition) -> Found | None:
    """Return the refutation of a sum by the recurrence that it unrolls, None where it is right.

    None, too, where it is another sum.
    """
    step = _step(said)
    name, total = bare(lhs), bare(rhs)
    if step is None or not isinstance(name, Name) or not isinstance(total, Sum):
        return None
    place, letter, before, added = step
    if len(total.terms) != 2 or {*total.signs} & {"-"}:
        return None
    for first, second in (total.terms, total.terms[::-1]):
        start, series = bare(first), bare(second)
        begin = _index(start, name, place)
        end = _index(name, name, place)
        if begin is None or end is None or not isinstance(series, Indexed):
            continue
        run = _run(series)
        if run is None or run[1].letter != end.letter or begin.letter:
            continue
        for move in STEPS:
            body = moved(added, {letter: Affine(series.indices[0], move)})
            if _text(body) != _text(series.body):
                continue
            shift = move + before  # the state before a term has the index plus this
            low, high = begin.number - shift, Affine(end.letter, end.number - 1 - shift)
            if (low, high) == run or low not in (0, 1):
                return None
            right = replace(series, lower=str(low), upper=_node(high))
            terms = (first, right) if second is total.terms[1] else (right, first)
            edited = f"{latex(lhs)} = {latex(replace(total, terms=terms))}"
            why = (
                f"by {latex(said.lhs)} as on line {said.line} the sum runs from {low} "
                f"to {written(*high)}"
            )
            return Found("refuted", why, suggestion=edited, edit="range")
    return None


def _step(said: Definition) -> tuple[tuple[str, int], str, int, Node] | None:
    """Return what `x^{l+1} = x^l + R` adds to a state, with the place of its index.

    Also the letter of the index, and the number that is added to it in the state before.
    """
    name, total = said.lhs, bare(said.rhs)
    if not isinstance(name, Name) or not isinstance(total, Sum) or len(total.terms) < 2:
        return None
    for place in _places(name):
        now = affine(_slot(name, place))
        if now is None or not now.letter:
            continue
        for k, term in enumerate(total.terms):
            before = _index(bare(term), name, place)
            if before != Affine(now.letter, now.number - 1) or total.signs[k] == "-":
                continue
            terms = (*total.terms[:k], *total.terms[k + 1 :])
            signs = (*total.signs[:k], *total.signs[k + 1 :])
            added = terms[0] if len(terms) == 1 and signs[0] != "-" else Sum(terms, signs)
            if any(isinstance(e, Indexed) for e in walk(added)):
                return None  # its letters may be those of the sum
            return place, now.letter, now.number - 1, added
    return None


def _places(name: Name) -> Iterator[tuple[str, int]]:
    yield from (("sup", k) for k in range(len(name.sup)))
    yield from (("sub", k) for k in range(len(name.sub)))


def _slot(name: Name, place: tuple[str, int]) -> Slot:
    slots: tuple[Slot, ...] = getattr(name, place[0])
    return slots[place[1]]


def _index(node: Node, like: Name, place: tuple[str, int]) -> Affine | None:
    """Return the index of a symbol that is another but for the index in one place, or None."""
    if not isinstance(node, Name) or (len(node.sub), len(node.sup)) != (
        len(like.sub),
        len(like.sup),
    ):
        return None
    slots = list(getattr(node, place[0]))
    if place[1] >= len(slots):
        return None
    own = _slot(node, place)
    slots[place[1]] = _slot(like, place)
    same = replace(node, sup=tuple(slots)) if place[0] == "sup" else replace(node, sub=tuple(slots))
    if same != like:
        return None
    alone = own.kind == "label" and len(own.text) == 1 and own.text.isalpha()
    return Affine(own.text, 0) if alone else affine(own)


def _run(series: Indexed) -> tuple[int, Affine] | None:
    """Return the first and the last value of the index of a sum, or None."""
    if series.mark != r"\sum" or series.kind != "from" or len(series.indices) != 1:
        return None
    if not series.lower.isdigit() or series.upper is None:
        return None
    upper, number = bare(series.upper), 0
    if isinstance(upper, Sum) and len(upper.terms) == 2 and upper.signs[0] != "-":
        last = bare(upper.terms[1])
        if not isinstance(last, Number) or not last.text.isdigit():
            return None
        number = int(f"{upper.signs[1]}{last.text}")
        upper = bare(upper.terms[0])
    if isinstance(upper, Name) and len(upper.base) == 1 and upper == Name(upper.base):
        return int(series.lower), Affine(upper.base, number)
    return None


def _node(end: Affine) -> Node:
    if not end.number:
        return Name(end.letter)
    sign = "-" if end.number < 0 else "+"
    return Sum((Name(end.letter), Number(f"{abs(end.number)}")), ("", sign))


def _text(node: Node) -> str:
    """Return a term as it is printed, without brackets around all of it."""
    inner = bare(node)
    return latex(inner.inner if isinstance(inner, Group) else inner)
