r"""Definitions of functions, used for other arguments: that of `f(x)` for `f(W x + b)`.

The argument is put in for the letter of the definition. It has to conform with the shape of that
letter, and a capital is put in for a capital only: a text that defines `f(x)` of a vector may use
`f(X)` for all rows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import check_shapes
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import (
    Apply,
    Group,
    Indexed,
    Name,
    Node,
    bare,
    latex,
    mapped,
    walk,
    with_arguments,
)

PATTERNS = frozenset("APS")  # what a text may compute from the argument, and not say so


def has_letters(lhs: Node) -> bool:
    """Return whether a defined term is a function of one or several different letters.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> [has_letters(parse_formula(t)[0].terms[0]) for t in ("f(x)", "f(x, x)", "f(x + y)")]
    [True, False, False]
    """
    if not isinstance(lhs, Apply) or lhs.below:
        return False
    letters = [bare(each) for each in lhs.arguments]
    plain = [isinstance(e, Name) and not (e.sub or e.sup or e.select) for e in letters]
    return all(plain) and len({latex(each) for each in letters}) == len(letters) > 0


def of_arguments(lhs: Apply, rhs: Node, term: Apply, symbols: Symbols) -> Node | None:
    """Return the right side of a definition for a function of other arguments, or None."""
    same = latex(lhs.function) == latex(term.function) and not term.below
    if not same or len(lhs.arguments) != len(term.arguments):
        return None
    put: dict[str, Node] = {}
    for letter, argument in zip(map(bare, lhs.arguments), term.arguments, strict=True):
        if not isinstance(letter, Name) or not _may_be_put(letter, argument, symbols):
            return None
        put[latex(letter)] = Group(argument)
    bound = {index for e in walk(rhs) if isinstance(e, Indexed) for index in e.indices}
    if any(isinstance(e, Name) and e.base in bound for node in put.values() for e in walk(node)):
        return None
    if any(isinstance(e, Name) and _is_part_of(e, put) for e in walk(rhs)):
        return None
    if any(latex(e.function) == latex(lhs.function) for e in applications_in([rhs])):
        return None  # a property, and no definition

    def change(part: Any) -> Any:
        if isinstance(part, Name):
            return put.get(latex(part), part)
        return with_arguments(part, change) if isinstance(part, Apply) else None

    made: Node = mapped(rhs, change)
    return made


def hides_argument(lhs: Node, rhs: Node) -> bool:
    """Return whether the right side has a pattern that may be computed from the argument."""
    own = {latex(e) for each in getattr(lhs, "arguments", ()) for e in walk(each)}
    names = [e for e in walk(rhs) if isinstance(e, Name) and latex(e) not in own]
    return any(e.base in PATTERNS or e.style == "cal" for e in names)


def _may_be_put(letter: Name, argument: Node, symbols: Symbols) -> bool:
    name = bare(argument)
    if isinstance(name, Name) and (
        name.base[-1:].isupper() != letter.base[-1:].isupper() or name.style != letter.style
    ):
        return False
    try:
        check_shapes([letter, argument], symbols)
    except OtimesError:
        return False
    return True


def _is_part_of(name: Name, put: dict[str, Node]) -> bool:
    """Return whether a symbol is a member of one that is replaced, or has it as an index."""
    whole = latex(replace(name, sub=(), sup=(), select=""))
    member = latex(name) not in put and whole in put
    return member or any(letter in slot.text for slot in (*name.sub, *name.sup) for letter in put)


def applications_in(nodes: Sequence[Node]) -> list[Apply]:
    """Return the functions that are applied in terms, each with its arguments."""
    return [e for node in nodes for e in walk(node) if isinstance(e, Apply)]
