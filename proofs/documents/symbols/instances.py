r"""Definitions with indices, used for other indices: that of `W_{OV}^{l,h}` for `W_{OV}^2`.

A definition says something for every value of the letters that are indices of what it defines. It
is used for a symbol with others in their place, and, where all its symbols have the same indices
above, for a symbol with fewer, as when a text goes on about one head.

>>> from otimes.algebra.notation.parser import parse_formula
>>> from otimes.algebra.notation.tree import latex
>>> (said,), (here,) = (parse_formula(t) for t in ("q_i = W_Q x_i", "q_j"))
>>> latex(instance(*said.terms, here.terms[0], ()))
'W_{Q} x_{j}'
>>> (said,) = parse_formula("y_i = x_i + M x_{i'}")
>>> latex(instance(*said.terms, parse_formula("y_j")[0].terms[0], ()))
"x_{j} + M x_{j'}"
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from otimes.algebra.notation.affine import (
    Affine,
    affine,
    is_in_range,
    is_mentioned,
    last_of,
    moved,
    without_ends,
)
from otimes.algebra.notation.tree import Entry, Indexed, Name, Node, Slot, mapped, walk

LETTERS = frozenset("hijklmnpqstu")
PAIR = re.compile(r"([a-z])\s*[-+]\s*([a-z])")


def is_generic(lhs: Node, sizes: Collection[str]) -> bool:
    """Return whether a defined symbol has letters as indices, so that it is a whole family."""
    return isinstance(lhs, Name) and bool(_letters(lhs)) and not _letters(lhs) & {*sizes}


def only_labels(lhs: Node, rhs: Node, name: Name) -> bool:
    """Return whether a symbol differs from a defined one in letters that are no indices there.

    They are not in the definition: of `M_s = M + M^T`, nothing follows for `M_a`.
    """
    if not isinstance(lhs, Name):
        return False
    parts = [*walk(rhs)]
    texts = [slot.text for e in parts for slot in _slots_of(e)]
    texts += [e.base for e in parts if isinstance(e, Name)]
    texts += [" ".join((e.lower, *e.indices)) for e in parts if isinstance(e, Indexed)]
    pairs = [*zip(lhs.sub, name.sub, strict=False), *zip(lhs.sup, name.sup, strict=False)]
    changed = {slot.text for slot, other in pairs if slot.kind == "index" and slot != other}
    return any(not any(is_mentioned(letter, text) for text in texts) for letter in changed)


def instance(lhs: Node, rhs: Node, name: Name, sizes: Collection[str]) -> Node | None:
    """Return the right side of a definition for a symbol with other indices, or None."""
    if not isinstance(lhs, Name) or not is_generic(lhs, sizes) or not _is_like(lhs, name):
        return None
    bound = {index for e in walk(rhs) if isinstance(e, Indexed) for index in e.indices}
    slots = [*zip(lhs.sub, name.sub, strict=False), *zip(lhs.sup, name.sup, strict=False)]
    others = " ".join(slot.text for _, slot in slots)
    if bound & _letters(lhs):
        return None
    for index in sorted(index for index in bound if is_mentioned(index, others)):
        taken = {slot.text for e in walk(rhs) for slot in _slots_of(e)} | bound | {*others.split()}
        free = sorted(LETTERS - taken - {*sizes})
        if not free:
            return None
        rhs = with_bound(rhs, index, free[0])
        bound |= {free[0]}
    if len(lhs.sub) == len(name.sub) and len(lhs.sup) == len(name.sup):
        return _lined_up(lhs, rhs, name)
    return _with_others_above(lhs, rhs, name)


def with_bound(node: Any, index: str, other: str) -> Any:
    r"""Return a term with another letter for an index over which sums run.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> from otimes.algebra.notation.tree import latex
    >>> latex(with_bound(parse_formula(r"\sum_{j \le i} A_{ij} x_j")[0].terms[0], "j", "k"))
    '\\sum_{k\\le i} A_{i,k} x_{k}'
    """

    def change(part: Any) -> Any:
        if not isinstance(part, Indexed) or index not in part.indices:
            return None
        letters = tuple(other if each == index else each for each in part.indices)
        lower = re.sub(rf"(?<![a-zA-Z\\]){re.escape(index)}(?![a-zA-Z])", other, part.lower)
        body = moved(part.body, {index: Affine(other, 0)})
        return replace(part, indices=letters, lower=lower, body=body)

    return mapped(node, change)


def apart(node: Node, others: Sequence[Node]) -> Node:
    """Return a term with other letters for the indices it binds that are free in others."""
    bound = {index for e in walk(node) if isinstance(e, Indexed) for index in e.indices}
    if not bound:
        return node
    parts = [e for other in others for e in walk(other)]
    theirs = {index for e in parts if isinstance(e, Indexed) for index in e.indices}
    free = {at.letter for e in parts for slot in _slots_of(e) if (at := affine(slot))} - theirs
    taken = {at.letter for e in walk(node) for slot in _slots_of(e) if (at := affine(slot))}
    for index in sorted(bound & free):
        letters = sorted(LETTERS - taken - bound - free - theirs)
        if not letters:
            return node
        node = with_bound(node, index, letters[0])
        taken.add(letters[0])
    return node


def _slots_of(node: Node) -> tuple[Slot, ...]:
    if isinstance(node, Name):
        return (*node.sub, *node.sup)
    return node.indices if isinstance(node, Entry) else ()


def _letters(name: Name) -> set[str]:
    found = set()
    for slot in (*name.sub, *name.sup):
        difference = PAIR.fullmatch(slot.text) if slot.kind == "expression" else None
        texts = [slot.text] if slot.kind == "index" else difference.groups() if difference else []
        found |= {text for text in texts if text in LETTERS or text[0] == "\\"}
    return found


def _is_like(lhs: Name, name: Name) -> bool:
    labels = [[s for s in (*e.sub, *e.sup) if s.kind == "label"] for e in (lhs, name)]
    same = (lhs.base, lhs.marks, lhs.select) == (name.base, name.marks, name.select)
    return same and labels[0] == labels[1] and len(lhs.sub) == len(name.sub)


def _lined_up(lhs: Name, rhs: Node, name: Name) -> Node | None:
    """Return the right side with the indices of `name` in the place of those of `lhs`."""
    put: dict[str, Slot] = {}
    pairs = [*zip(lhs.sub, name.sub, strict=True), *zip(lhs.sup, name.sup, strict=True)]
    for own, other in pairs:
        for letter, slot in _matched(own, other):
            if slot is None or letter not in _letters(lhs) or put.setdefault(letter, slot) != slot:
                return None
    put = {letter: slot for letter, slot in put.items() if slot != Slot("index", letter)}
    for e in without_ends(rhs):
        slots = (*e.sub, *e.sup) if isinstance(e, Name) else ()
        if any(_primed(slot, put) is None for slot in slots):
            return None
        if isinstance(e, Name) and (e.base in put or any(_mixed(slot, put) for slot in slots)):
            return None
    sums = [e for e in walk(rhs) if isinstance(e, Indexed)]
    ranged = [e for e in sums if any(is_in_range(letter, e) for letter in put)]
    if not ranged:
        return _with_slots(rhs, put)
    moves = {letter: to for letter, slot in put.items() if (to := affine(slot))}
    if len(moves) < len(put) or None in map(last_of, ranged):
        return None
    made: Node = moved(rhs, moves)
    return made


def _matched(own: Slot, other: Slot) -> list[tuple[str, Slot | None]]:
    """Return the values of an index's letters in another index, None where they do not match."""
    if own.kind == "index":
        fits = other.kind in ("index", "number", "expression")
        return [(own.text, other if fits else None)]
    mine, theirs = PAIR.fullmatch(own.text), PAIR.fullmatch(other.text)
    if own.kind == "expression" and mine and theirs and _sign(own) == _sign(other):
        return [(a, Slot("index", b)) for a, b in zip(mine.groups(), theirs.groups(), strict=True)]
    return [] if own == other else [("", None)]


def _sign(slot: Slot) -> str:
    return "-" if "-" in slot.text else "+"


def _mixed(slot: Slot, put: dict[str, Slot]) -> bool:
    """Return whether a letter that is replaced is only a part of an index, as in `l-1`."""
    return slot.kind in ("expression", "range") and any(letter in slot.text for letter in put)


def _primed(slot: Slot, put: dict[str, Slot]) -> Slot | None:
    """Return what stands for `i'` where another index stands for `i`, None if that is open."""
    letter = slot.text.rstrip("'")
    to = put.get(letter) if slot.kind == "index" and slot.text != letter else None
    if to is None:
        return slot
    primes = slot.text[len(letter) :]
    return Slot("index", to.text + primes) if to.kind == "index" and "'" not in to.text else None


def _with_slots(node: Any, put: dict[str, Slot]) -> Any:
    def change(part: Any) -> Any:
        if isinstance(part, Slot):
            return put.get(part.text, _primed(part, put)) if part.kind == "index" else part
        return None

    return mapped(node, change)


def _with_others_above(lhs: Name, rhs: Node, name: Name) -> Node | None:
    """Return the right side with what stands above `name`, where all its symbols have the same."""
    if not lhs.sup or any(slot.kind != "index" for slot in lhs.sup) or lhs.sub != name.sub:
        return None
    names = [e for e in walk(rhs) if isinstance(e, Name) and e.base not in ("I", "Id", "0", "1")]
    if not names or any(e.sup != lhs.sup for e in names):
        return None
    letters = {slot.text for slot in lhs.sup}
    if any(slot.text in letters for e in names for slot in e.sub):
        return None
    return _with_sup(rhs, lhs.sup, name.sup)


def _with_sup(node: Any, old: tuple[Slot, ...], new: tuple[Slot, ...]) -> Any:
    def change(part: Any) -> Any:
        if isinstance(part, Name):
            return replace(part, sup=new) if part.sup == old else part
        return None

    return mapped(node, change)
