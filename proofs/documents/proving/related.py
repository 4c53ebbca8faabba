"""Symbols of a claim that definitions relate which cannot be put in.

A claim that is false for free symbols may be true of these. That it is false of them needs the
definition, and where the language does not have it, the claim is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Symbols, key_of
from otimes.algebra.notation.tree import Name, Node, is_constant, walk
from otimes.algebra.notation.typed import FormulaShapeError
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.degrees import entries_of


def unread_relation(
    context: Context, sides: Sequence[Node], defined: Iterable[str], symbols: Symbols
) -> str:
    """Return which definitions relate the symbols of a claim and cannot be put in, or nothing."""
    others = context.instances(sides, only_weights=True)
    mine = keys_in(*sides)
    met: dict[str, str] = {}  # the symbols of such definitions, and what they define
    for text in sorted(defined):
        known = others[text] if text in others else context.definitions[text][0]
        if _is_read(known, symbols) or context.is_member(known.lhs):
            continue
        whole = context.unfolded(known.rhs, {})  # a capital may be defined as a column
        if whole != known.rhs and _is_read(replace(known, rhs=whole), symbols):
            continue
        if context.lists_members(known):
            every = [each for said in context.generic.values() for each in said]
            if any(entries_of(known.rhs, every)):
                return f"the entries of {text} are defined"
            continue
        own = keys_in(known.lhs)
        about = keys_in(known.rhs) - own
        if about & (mine - own) or any(met.get(key, text) != text for key in about):
            return f"{text} is defined on line {known.line} by what is not in the language"
        met |= dict.fromkeys(about, text)
    return ""


def keys_in(*nodes: Node) -> set[str]:
    """Return the keys of the symbols in terms that can stand for anything."""
    return {
        key_of(replace(e, select=""))
        for node in nodes
        for e in walk(node)
        if isinstance(e, Name) and not is_constant(e) and e.base not in ("I", "Id")
    }


def _is_read(known: Definition, symbols: Symbols) -> bool:
    """Return whether a definition is in the language, maybe only where its vectors are columns."""
    columns = symbols.copy()
    columns.side = columns.side or "column"
    for trial in (symbols, columns):
        try:
            elaborate([known.lhs, known.rhs], trial)
        except FormulaShapeError:
            return True
        except OtimesError:
            continue
        return True
    return False
