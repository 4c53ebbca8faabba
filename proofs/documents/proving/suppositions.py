"""Words near a false equation under which it may hold, “normalized”, “diagonal”, “if”.

A word for a property is of no account if it is said of symbols on which the difference of the sides
does not depend, or if the equation is false of symbols with that property, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.symbols import Symbols, key_of, text_of
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Group, Name, Node, Sum, is_constant, mapped, walk
from otimes.proofs.documents.containers.source import Clause, Formula
from otimes.proofs.documents.proving.attempts import TRIAL, attempted, is_proved, symbols_in
from otimes.proofs.documents.proving.every_reading import ASSUMED, PROPERTY
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.symbols.hypotheses import Hypothesis, by_word


def supposes(
    context: Context,
    clauses: Sequence[Clause],
    lhs: Node,
    rhs: Node,
    line: int,
    but: str = "",
) -> bool:
    """Return whether clauses, with a word other than `but`, may assume that under which lhs = rhs.

    The equation is false in general.
    """
    symbols = context.symbols_at(line)
    for clause in clauses:
        for match in ASSUMED.finditer(clause.words):
            word = match[0].lower()
            if word == but:
                continue
            if not PROPERTY.fullmatch(word):
                return True
            settled = _is_of_others(context, clause, lhs, rhs, symbols)
            if not (settled or _is_false_so(context, word, lhs, rhs, line, symbols)):
                return True
    return False


def _is_of_others(context: Context, clause: Clause, lhs: Node, rhs: Node, symbols: Symbols) -> bool:
    """Return whether a clause is about symbols on which the difference does not depend.

    They are on both sides, or the text relates them to none of the equation.
    """
    about = _keys(clause.formulas, symbols)
    if not about:
        return False
    mine = {key_of(e) for side in (lhs, rhs) for e in symbols_in(side)}
    if about - mine and _are_related(context, about - mine, mine, symbols):
        return False
    return not about & mine or not _depends(lhs, rhs, about & mine, symbols)


def _are_related(
    context: Context, some: Collection[str], others: Collection[str], symbols: Symbols
) -> bool:
    """Return whether a sentence of the text has some symbols and others, or is not read."""
    for sentence in context.formulas_by_sentence():
        every = _keys(sentence, symbols)
        if every is None or (every & {*some} and every & {*others}):
            return True
    return False


def _keys(formulas: Sequence[Formula], symbols: Symbols) -> set[str] | None:
    """Return the keys of the symbols in formulas that are no sizes; None if one is not read."""
    found: set[str] = set()
    for formula in formulas:
        names = _names(formula.tex, formula.plain)
        if names is None:
            return None
        found |= {key_of(e) for e in names if not is_constant(e)}
    return found - symbols.sizes()


@lru_cache(maxsize=1 << 12)
def _names(tex: str, plain: bool) -> frozenset[Name] | None:
    """Return the symbols of a formula, None if it is not read."""
    try:
        statements = parse_formula(tex, plain=plain)
    except NotationError:
        return None
    return frozenset(e for s in statements for e in walk(s) if isinstance(e, Name))


def _depends(lhs: Node, rhs: Node, keys: Collection[str], symbols: Symbols) -> bool:
    """Return whether lhs - rhs is not seen to be the same for other values of some symbols."""
    other = symbols.copy()
    for e in (e for side in (lhs, rhs) for e in symbols_in(side)):
        known = symbols.lookup(e)[1]
        if key_of(e) in keys and known is not None:
            other.known[symbols.lookup(_primed(e))[0]] = known
            other.known[key_of(_primed(e))] = known
    put = [Group(_with_primes(side, keys)) for side in (lhs, rhs)]
    left, right = (Sum((Group(a), b), ("", "+")) for a, b in ((lhs, put[1]), (rhs, put[0])))
    return not is_proved(left, right, other, TRIAL)


def _primed(name: Name) -> Name:
    return replace(name, marks=(*name.marks, "'"))


def _with_primes(node: Node, keys: Collection[str]) -> Node:
    def change(part: object) -> Node | None:
        if not isinstance(part, Name):
            return None
        return _primed(part) if key_of(part) in keys else part

    changed: Node = mapped(node, change)
    return changed


def _is_false_so(
    context: Context, word: str, lhs: Node, rhs: Node, line: int, symbols: Symbols
) -> bool:
    """Return whether an equation is false, too, of symbols of which a text says a word nearby."""
    names = sorted({e for side in (lhs, rhs) for e in symbols_in(side)}, key=text_of)
    given = [*_said(context, word, names, line)]
    if not given:
        return False
    verdict, _ = attempted(lhs, rhs, given, symbols)
    return verdict is not None and verdict.status == "refuted"


def _said(context: Context, word: str, names: Sequence[Name], line: int) -> Iterator[Hypothesis]:
    """Yield what a word of the paragraph says of symbols."""
    for said, keys, row in context.words:
        if said == word and context.together(row, line):
            for name in names:
                if key_of(name) in keys:
                    yield from by_word(said, name, names, row)
