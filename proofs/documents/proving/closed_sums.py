r"""Sums that a text says a recurrence comes to: `S_t = \sum_{j=1}^{t} v_j k_j^\top`.

With `S_t = S_{t-1} + v_t k_t^\top` and the start `S_0 = 0`, the sum is compared for the first two
values of t, written out. It is proved by one step more: the recurrence must make the sum for t of
that for t - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from otimes.algebra.notation.affine import Affine, affine, difference, last_of, moved
from otimes.algebra.notation.symbols import key_of
from otimes.algebra.notation.tree import (
    Group,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Product,
    Slot,
    Sum,
    bare,
    latex,
    mapped,
    walk,
)
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.recurrences import is_of, recurs, without_zeros

FIRST = (1, 2)  # the values that are compared


def by_recurrence(
    context: Context, lhs: Node, rhs: Node, line: int, judged: Callable[[Node, Node], Found]
) -> Found | None:
    """Return the verdict on a sum by the recurrence that it solves, or None.

    `judged` returns the verdict on an equation.
    """
    name = bare(lhs)
    sums = [last_of(e) for e in walk(rhs) if isinstance(e, Indexed)]
    if not isinstance(name, Name) or any(isinstance(e, Name) and is_of(e, name) for e in walk(rhs)):
        return None
    for said in context.generic.get(key_of(name), ()):
        letter = _letter(said, name)
        started = [e for e in context.begun.get(name.base, ()) if is_of(e, name)]
        ends = letter and any(end is not None and end.letter == letter for end in sums)
        if not ends or not context.in_scope(said.line, line) or not _from_zero(started):
            continue
        symbols, zeros = context.symbols_at(line), context.zeros(name.base)
        bases = {replace(e, sup=()) for e in walk(rhs) if isinstance(e, Name) and e.sup}
        kinds = {latex(e): symbols.lookup(e)[1] for e in bases}
        powers = {e for e, known in kinds.items() if known is not None and known.kind == "scalar"}
        found = _compared(name, rhs, said, letter, powers, zeros, judged)
        if found is not None:
            return replace(found, against=(said.line,))
    return None


def _letter(said: Definition, name: Name) -> str:
    """Return the index of a recurrence `S_t = … S_{t-1} …` for a symbol, or ""."""
    if not isinstance(said.lhs, Name) or said.lhs != name or not recurs(said.lhs, said.rhs):
        return ""
    slots = [affine(slot) for slot in (*name.sub, *name.sup)]
    letters = {each.letter for each in slots if each is not None and each.letter}
    before = [e for e in walk(said.rhs) if isinstance(e, Name) and is_of(e, name)]
    letter = letters.pop() if len(letters) == 1 else ""
    steps = {affine(slot) for e in before for slot in (*e.sub, *e.sup)}
    return letter if letter and Affine(letter, -1) in steps else ""


def _from_zero(started: list[Name]) -> bool:
    """Return whether the only value that a text gives has the number 0."""
    numbers = {s.text for e in started for s in (*e.sub, *e.sup) if s.kind == "number"}
    return numbers == {"0"}


def _compared(
    name: Name,
    rhs: Node,
    said: Definition,
    letter: str,
    powers: Collection[str],
    zeros: Collection[Node],
    judged: Callable[[Node, Node], Found],
) -> Found | None:
    """Return the verdict by the first two values and by the step from one to the next."""
    true = True
    state: Node = Name("")
    for value in FIRST:
        at = numbered(name, {letter: value})
        written = numbered(said.rhs, {letter: value}, powers)
        state = Group(without_zeros(_put_in(written, name, state), zeros), stands_for=at)
        found = judged(state, numbered(rhs, {letter: value}, powers))
        if found.verdict == "refuted":
            why = f"the recurrence on line {said.line} makes {latex(at)} something else"
            return Found("refuted", f"{why}: {found.why}", found.counterexample, edit="range")
        true &= found.verdict == "proved"
    if not true:
        return None
    before = moved(rhs, {letter: Affine(letter, -1)})
    found = judged(Group(rhs, stands_for=name), _put_in(said.rhs, name, Group(before)))
    if found.verdict != "proved":
        return None
    return Found("proved", f"by induction over {letter}, with the recurrence on line {said.line}")


def _put_in(node: Node, name: Name, state: Node) -> Node:
    """Return a term with the state before put in; the start is left, and has no state before."""

    def change(part: Any) -> Node | None:
        same = isinstance(part, Name) and is_of(part, name) and part != name
        return state if same and state != Name("") else None

    changed: Node = mapped(node, change)
    return changed


def numbered(node: Any, values: Mapping[str, int], powers: Collection[str] = ()) -> Any:
    r"""Return a term with numbers for letters, and the sums that end in them written out.

    `powers` are symbols, as LaTeX, above which an index is an exponent: numbers.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> term = parse_formula(r"\sum_{i=1}^{t} \gamma^{t-i} v_i")[0].terms[0]
    >>> latex(numbered(term, {"t": 2}))
    '(\\gamma v_{1} + v_{2})'
    """

    def change(part: Any) -> Any:
        if isinstance(part, Name):
            return _of_name(part, values, powers)
        if isinstance(part, Product):
            made = [numbered(factor, values, powers) for factor in part.factors]
            kept = [k for k, e in enumerate(made) if e != Number("1")] or [0]
            if len(kept) == 1:
                return made[kept[0]]
            marks = ("", *(part.marks[k] for k in kept[1:]))
            return replace(part, factors=tuple(made[k] for k in kept), marks=marks)
        last = last_of(part) if isinstance(part, Indexed) else None
        if last is None or last.letter not in values or part.mark != r"\sum":
            return None
        first = int(part.lower) if part.kind == "from" else 1
        (index,) = part.indices
        end = values[last.letter] + last.number
        terms = [numbered(part.body, {**values, index: k}, powers) for k in range(first, end + 1)]
        if len(terms) < 2:
            return Group(terms[0]) if terms else Number("0")
        return Group(Sum(tuple(terms), ("", *["+"] * (len(terms) - 1))))

    return mapped(node, change)


def _of_name(name: Name, values: Mapping[str, int], powers: Collection[str]) -> Node | None:
    """Return a symbol with numbers for letters in its indices; an exponent is a power."""
    if name == Name(name.base) and name.base in values:
        return Number(f"{values[name.base]}")
    exponent = _exponent(name, values, powers)
    if exponent is not None:
        base: Node = numbered(replace(name, sup=()), values)
        if exponent < 2:
            return base if exponent else Number("1")
        return Power(base, Number(f"{exponent}"))
    sub, sup = (tuple(_slot(slot, values) for slot in slots) for slots in (name.sub, name.sup))
    return None if (sub, sup) == (name.sub, name.sup) else replace(name, sub=sub, sup=sup)


def _exponent(name: Name, values: Mapping[str, int], powers: Collection[str]) -> int | None:
    if len(name.sup) != 1:
        return None
    power, index, found = difference(name.sup[0]), affine(name.sup[0]), -1
    if power is not None and {power.first, power.second} <= values.keys():
        found = values[power.first] - values[power.second] + power.number
    elif index is not None and index.letter in values and latex(replace(name, sup=())) in powers:
        found = values[index.letter] + index.number
    return found if found >= 0 else None


def _slot(slot: Slot, values: Mapping[str, int]) -> Slot:
    known = affine(slot)
    if known is None or known.letter not in values:
        return slot
    return Slot("number", f"{values[known.letter] + known.number}")
