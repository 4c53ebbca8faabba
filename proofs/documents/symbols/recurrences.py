r"""Definitions at affine indices: what `x^{l+1} = x^l + W^l x^l` says of `x^{l+3}` and of `x^2`.

An index is a letter with a whole number added, or a number. A definition holds for every value of
its letter, so that of `x^{l+2}` is found by writing l + 1 for l.

>>> from otimes.algebra.notation.parser import parse_formula
>>> from otimes.algebra.notation.tree import latex
>>> (said,), (here,) = (parse_formula(t) for t in ("x^{l+1} = x^l W^l", "x^{l+3}"))
>>> latex(shifted(*said.terms, here.terms[0]))
'x^{l+2} W^{l+2}'
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from otimes.algebra.notation.affine import (
    Affine,
    affine,
    difference,
    is_in_range,
    last_of,
    moved,
    without_ends,
)
from otimes.algebra.notation.tree import Indexed, Name, Node, Product, Slot, Sum, bare, latex, walk


def recurs(lhs: Node, rhs: Node) -> bool:
    """Return whether a symbol is defined by itself at other indices."""
    return isinstance(lhs, Name) and any(is_of(e, lhs) for e in walk(rhs))


def is_of(e: Node, lhs: Name) -> bool:
    """Return whether a symbol is another by its indices only."""
    return isinstance(e, Name) and _without_indices(e) == _without_indices(lhs)


def _without_indices(e: Name) -> tuple[object, ...]:
    """Return a symbol with its labels, and the number of its indices."""
    labels = [
        [slot.text if affine(slot) is None else "" for slot in slots] for slots in (e.sub, e.sup)
    ]
    return e.base, e.style, e.marks, e.select, labels


def letter_of(lhs: Node) -> str:
    """Return the letter of the only index of a symbol that has a number added, or nothing."""
    if not isinstance(lhs, Name):
        return ""
    found = [affine(slot) for slot in (*lhs.sub, *lhs.sup) if slot.kind == "expression"]
    letters = {each.letter for each in found if each is not None}
    return letters.pop() if len(letters) == 1 and None not in found else ""


def shifted(lhs: Node, rhs: Node, name: Name, sizes: Collection[str] = ()) -> Node | None:
    """Return what a definition says of a symbol with other indices, or None where it does not."""
    if not isinstance(lhs, Name) or not is_of(name, lhs):
        return None
    moves: dict[str, Affine] = {}
    pairs = [*zip(lhs.sub, name.sub, strict=True), *zip(lhs.sup, name.sup, strict=True)]
    for own, other in pairs:
        mine, theirs = affine(own), affine(other)
        if mine is None or theirs is None or not mine.letter:
            if own != other:
                return None
            continue
        to = Affine(theirs.letter, theirs.number - mine.number)
        if moves.setdefault(mine.letter, to) != to:
            return None
    if not moves or {*moves} & {*sizes} or _mixed(rhs, moves):
        return None
    bracketed = any(slot.text.startswith("(") for _, slot in pairs)
    made: Node = moved(rhs, moves, bracketed)
    below_zero = any(slot.text.strip("(")[:1] == "-" for slot in _slots_in(made))
    return None if below_zero else made


def _slots_in(node: Node) -> Iterator[Slot]:
    return (slot for e in walk(node) if isinstance(e, Name) for slot in (*e.sub, *e.sup))


def _mixed(rhs: Node, moves: dict[str, Affine]) -> bool:
    """Return whether a letter stands elsewhere than alone or with a number in an index."""
    letters = {*moves, *(to.letter for to in moves.values())}
    for e in without_ends(rhs):
        if isinstance(e, Indexed) and {*e.indices} & letters:
            return True
        if isinstance(e, Indexed) and last_of(e) is None and any(is_in_range(m, e) for m in moves):
            return True
        if not isinstance(e, Name):
            continue
        if e.base in moves:
            return True
        for slot in (*e.sub, *e.sup):
            known = affine(slot)
            other = slot.kind != "label" and known is None and difference(slot) is None
            if other and any(m in slot.text for m in moves):
                return True
    return False


def is_above_another(name: Name, nodes: Iterable[Node]) -> bool:
    """Return whether the same symbol stands in terms with a smaller number in one index."""
    mine = [affine(slot) for slot in (*name.sub, *name.sup)]
    for e in (e for node in nodes for e in walk(node)):
        if not isinstance(e, Name) or not is_of(e, name):
            continue
        theirs = [affine(slot) for slot in (*e.sub, *e.sup)]
        for a, b in zip(mine, theirs, strict=True):
            if a is not None and b is not None and a.letter == b.letter and a.number > b.number:
                return True
    return False


def without_zeros(node: Any, zeros: Collection[Node]) -> Any:
    r"""Return a sum without the terms that have a factor that is zero.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> from otimes.algebra.notation.tree import latex
    >>> sum_, zero = (parse_formula(tex)[0].terms[0] for tex in (r"a S_0 + k_1^\top v_1", "S_0"))
    >>> latex(without_zeros(sum_, [zero]))
    'k_{1}^{T} v_{1}'
    """
    names = {latex(zero) for zero in zeros}
    if not names or not isinstance(node, Sum):
        return node
    kept = [
        (sign, term)
        for sign, term in zip(node.signs, node.terms, strict=True)
        if not any(latex(e) in names for e in _factors(term))
    ]
    if len(kept) == len(node.terms) or not kept:
        return node
    signs, terms = zip(*kept, strict=True)
    first = "" if signs[0] == "+" else signs[0]
    return terms[0] if len(terms) == 1 and not first else Sum(terms, (first, *signs[1:]))


def _factors(term: Node) -> Iterator[Node]:
    inner = bare(term)
    for factor in inner.factors if isinstance(inner, Product) else (inner,):
        yield bare(factor)
