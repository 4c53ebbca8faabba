"""The smallest edit that makes a false equation true: a transpose, a swap, another index, a term.

Each edit is tried by deciding the edited equation; the first that is proved is proposed, in the
order in which people make the mistakes. Nothing is ever applied by itself. All edits together are
tried within a budget.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any, TypeGuard

from otimes.algebra.budget import STEPS, steps_done
from otimes.algebra.notation.symbols import Symbols, text_of
from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Group,
    Indexed,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Slot,
    Sum,
    Tensor,
    bare,
    latex,
    mapped,
    walk,
)
from otimes.proofs.documents.prose.items import is_capital
from otimes.proofs.documents.proving.attempts import TRIAL, is_proved
from otimes.proofs.documents.symbols.hypotheses import Hypothesis

SLIPS = ("swap", "transpose", "sign", "index")  # edits that no other case explains
MOST = 96  # edits that are tried
MOST_WORK = 2.0  # units of work for the edits of one equation


@dataclass(frozen=True, slots=True)
class Edit:
    """The sides of an equation after one edit, and what was edited, such as "swap"."""

    lhs: Node
    rhs: Node
    kind: str

    def shown(self) -> str:
        """Return the edited equation as LaTeX, "" where its sides are the same."""
        sides = latex(folded(self.lhs)), latex(folded(self.rhs))
        return " = ".join(sides) if sides[0] != sides[1] else ""

    @property
    def is_evidence(self) -> bool:
        """Whether it says more than that something is equal to itself.

        `P^2 = P` is an assumption, although it becomes `P = P` by an edit.
        """
        left, right = (re.sub(r"[\s()]", "", latex(bare(side))) for side in (self.lhs, self.rhs))
        return left != right


def suggestion(
    lhs: Node,
    rhs: Node,
    symbols: Symbols,
    most: float | None = None,
    given: Sequence[Hypothesis] = (),
) -> Edit | None:
    """Return the sides with one edit that makes them equal, of the right side if possible.

    `most` is the work, in units, that all edits together may take; `given` is what is assumed.
    """
    tried: set[tuple[str, str]] = {(latex(lhs), latex(rhs))}
    begun, limit = steps_done(), (MOST_WORK if most is None else most) * STEPS
    for edit in _candidates(lhs, rhs, symbols):
        found = Edit(_untwisted(edit.lhs), _untwisted(edit.rhs), edit.kind)
        text = latex(found.lhs), latex(found.rhs)
        if text in tried:
            continue
        if len(tried) > MOST or steps_done() - begun > limit:
            return None
        tried.add(text)
        if is_proved(found.lhs, found.rhs, symbols, TRIAL, given):
            return found
    return None


def _candidates(lhs: Node, rhs: Node, symbols: Symbols) -> Iterator[Edit]:
    left, right = Counter(_names(lhs)), Counter(_names(rhs))
    sizes = symbols.sizes()
    for many in (edits, _rarer):
        for kind, edited in many(rhs, left, sizes):
            yield Edit(lhs, edited, kind)
        for kind, edited in many(lhs, right, sizes):
            yield Edit(edited, rhs, kind)
    for term in _terms(lhs):
        yield Edit(lhs, _with_term(rhs, term), "term")
    for term in _terms(rhs):
        yield Edit(_with_term(lhs, term), rhs, "term")


def _untwisted(node: Any) -> Any:
    """Return a term without double transposes."""

    def change(part: Any) -> Any:
        if isinstance(part, Power) and part.exponent == "T":
            inner = bare(part.base)
            if isinstance(inner, Power) and inner.exponent == "T":
                return _untwisted(inner.base)
        return None

    return mapped(node, change)


Edited = tuple[str, Node]  # what was edited, and the term after it


def edits(node: Node, others: Counter[Name], sizes: set[str]) -> Iterator[Edited]:
    """Yield a term with one edit: swaps, transposes, exchanged indices, a missing factor."""
    for kind, edit in (("swap", _swaps), ("transpose", _transposes), ("sign", _signs)):
        for edited in _everywhere(node, edit):
            yield kind, edited
    for edited in _everywhere(node, partial(_renamed, others=others, sizes=sizes)):
        yield "index", edited
    for edited in _exchanged(node):
        yield "index", edited
    mine = Counter(_names(node))
    missing = sorted((e for e in others if others[e] > mine[e] and e.base != "0"), key=latex)
    if len(missing) <= 2:
        for name in missing:
            for edited in _everywhere(node, partial(_with_factor, name=name)):
                yield "factor", edited


def edits_of(node: Node, others: Counter[Name], sizes: set[str]) -> Iterator[Edited]:
    """Yield a term with one edit, the usual ones first."""
    yield from edits(node, others, sizes)
    yield from _rarer(node, others, sizes)


def _rarer(node: Node, others: Counter[Name], sizes: set[str]) -> Iterator[Edited]:
    """Yield a term with one of the rarer edits: of a power, of a number, of the end of a sum."""
    for kind, edit in (
        ("transpose", _whole_transposes),
        ("power", _powers),
        ("number", _numbers),
    ):
        for edited in _everywhere(node, edit):
            yield kind, edited
    letters = sorted({s.text for e in (*others, *_names(node)) for s in e.sub if s.kind == "index"})
    for edited in _everywhere(node, partial(_reindexed, letters=letters)):
        yield "index", edited
    ends = [Name(text) for text in sorted(sizes) if len(text) == 1]
    for edited in _everywhere(node, partial(_ends, sizes=ends)):
        yield "range", edited


def _names(node: Node) -> Iterator[Name]:
    return (e for e in walk(node) if isinstance(e, Name))


def _terms(node: Node) -> Iterator[Node]:
    """Yield the terms of a sum of several, each with its sign."""
    inner = bare(node)
    if isinstance(inner, Sum) and len(inner.terms) > 1:
        for term, sign in zip(inner.terms, inner.signs, strict=True):
            yield Sum((term,), ("-",)) if sign == "-" else term


def _with_term(node: Node, term: Node) -> Node:
    inner = bare(node)
    minus = isinstance(term, Sum)
    more = term.terms[0] if isinstance(term, Sum) else term
    terms, signs = (inner.terms, inner.signs) if isinstance(inner, Sum) else ((inner,), ("",))
    return Sum((*terms, more), (*signs, "-" if minus else "+"))


def _everywhere(node: Node, edit: Callable[[Node], Iterator[Node]]) -> Iterator[Node]:
    """Yield the node with the edit made at each place."""
    yield from edit(node)
    if isinstance(node, Derivative):  # what it is the derivative of stands elsewhere
        return
    for each in fields(node):
        value = getattr(node, each.name)
        if each.name in ("function", "stands_for"):  # names, and no parts of the value
            continue
        if isinstance(value, Node):
            for edited in _everywhere(value, edit):
                yield _changed(node, each.name, edited)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            for k, part in enumerate(value):
                for edited in _everywhere(part, edit):
                    changed = (*value[:k], edited, *value[k + 1 :])
                    yield _changed(node, each.name, changed)


def _changed(node: Node, name: str, value: Any) -> Node:
    if isinstance(node, Group):  # it no longer stands for what is defined
        return replace(node, inner=value, stands_for=None)
    return replace(node, **{name: value})


def folded(node: Any) -> Any:
    """Return a term with the symbols whose definitions were put in."""

    def change(part: Any) -> Any:
        defined = isinstance(part, Group) and part.stands_for is not None
        return folded(part.stands_for) if defined else None

    return mapped(node, change)


def _swaps(e: Node) -> Iterator[Node]:
    if isinstance(e, Product | Tensor):
        for k in range(len(e.factors) - 1):
            a, b = e.factors[k : k + 2]
            factors = (*e.factors[:k], b, a, *e.factors[k + 2 :])
            if not (isinstance(e, Product) and "/" in e.marks):
                yield replace(e, factors=factors)
        if isinstance(e, Product) and len(e.factors) == 3 and "/" not in e.marks:
            yield replace(e, factors=e.factors[::-1])


def _transposes(e: Node) -> Iterator[Node]:
    """Remove a transpose, insert one, or move one to the factor beside it."""
    if isinstance(e, Power) and e.exponent == "T":
        yield e.base
    elif isinstance(e, Product):
        for k, (a, b) in enumerate(pairwise(e.factors)):
            if _is_turned(a) != _is_turned(b):
                moved = [each.base if _is_turned(each) else Power(each, "T") for each in (a, b)]
                yield replace(e, factors=(*e.factors[:k], *moved, *e.factors[k + 2 :]))
        for k, factor in enumerate(e.factors):  # a vector alone is a term, and seldom turned
            if isinstance(factor, Name) and factor.base.islower() and len(factor.base) == 1:
                yield replace(e, factors=(*e.factors[:k], Power(factor, "T"), *e.factors[k + 1 :]))
    elif (isinstance(e, Name) and is_capital(e)) or (
        isinstance(e, Group) and isinstance(bare(e), Product | Tensor | Sum)
    ):
        yield Power(e, "T")


def _is_turned(e: Node) -> TypeGuard[Power]:
    return isinstance(e, Power) and e.exponent == "T"


def _whole_transposes(e: Node) -> Iterator[Node]:
    if isinstance(e, Product) and "/" not in e.marks:
        yield Power(Group(e), "T")


def _signs(e: Node) -> Iterator[Node]:
    if isinstance(e, Sum):
        for k, sign in enumerate(e.signs):
            turned = "-" if sign in ("", "+") else "+" if k else ""
            yield replace(e, signs=(*e.signs[:k], turned, *e.signs[k + 1 :]))
        if len(e.terms) == 2 and e.signs[0] in ("", "+") and e.signs[1] == "-":
            yield replace(e, terms=e.terms[::-1])


def _renamed(e: Node, others: Counter[Name], sizes: set[str]) -> Iterator[Node]:
    """Exchange two indices, or take the indices, or the size, of the other side."""
    if not isinstance(e, Name):
        return
    if text_of(e) in sizes:
        for other in sorted(others, key=latex):
            if text_of(other) in sizes and other != e:
                yield replace(other, span=e.span)
    if len(e.sub) == 2 and all(slot.kind == "index" for slot in e.sub):
        yield replace(e, sub=e.sub[::-1])
    for other in sorted(others, key=latex):
        if other.base == e.base and other != e and not _differ_by_power(e, other):
            yield replace(other, span=e.span)


def _differ_by_power(a: Name, b: Name) -> bool:
    """Return whether a number stands above one of two symbols, which may be a power."""
    one = a.sup or b.sup
    number = len(one) == 1 and one[0].kind == "number" and not (a.sup and b.sup)
    return number and replace(a, sup=(), span=(0, 0)) == replace(b, sup=(), span=(0, 0))


def _exchanged(node: Node) -> Iterator[Node]:
    """Exchange two indices, or two symbols that only indices distinguish, throughout a term."""
    names = sorted(set(_names(node)), key=latex)
    letters = sorted({s.text for e in names for s in e.sub if s.kind == "index"})
    for a, b in combinations(letters, 2):
        yield _put(node, {Slot("index", a): Slot("index", b), Slot("index", b): Slot("index", a)})
    for x, y in combinations(names, 2):
        if x.base == y.base and (x.sub, x.sup) != (y.sub, y.sup) and not _differ_by_power(x, y):
            yield _put(node, {x: replace(y, span=x.span), y: replace(x, span=y.span)})


def _put(node: Node, put: dict[Any, Any]) -> Any:
    return mapped(node, lambda part: put.get(part) if isinstance(part, Name | Slot) else None)


def _with_factor(e: Node, name: Name) -> Iterator[Node]:
    """Insert a symbol of the other side before, between or after factors."""
    if isinstance(e, Product) and all(mark != "/" for mark in e.marks):
        for k in range(len(e.factors) + 1):
            factors = (*e.factors[:k], name, *e.factors[k:])
            yield Product(factors, ("",) * len(factors))
    elif isinstance(e, Name) and is_capital(e):
        yield Product((name, e), ("", ""))
        yield Product((e, name), ("", ""))


def _powers(e: Node) -> Iterator[Node]:
    """Remove the square of a norm or a trace, or insert it.

    A matrix may be equal to its square.
    """
    if isinstance(e, Power) and isinstance(e.exponent, Number) and _is_of_numbers(bare(e.base)):
        yield e.base
    elif _is_of_numbers(e):
        yield Power(e, Number("2"))


def _is_of_numbers(e: Node) -> bool:
    trace = isinstance(e, Apply) and e.function.base in ("tr", "Tr", "trace")
    return isinstance(e, Norm) or trace


def _numbers(e: Node) -> Iterator[Node]:
    """Insert a factor 2 in a term of a sum, or remove a number."""
    if isinstance(e, Sum):
        for k, term in enumerate(e.terms):
            twice = Product((Number("2"), term), ("", ""))
            yield replace(e, terms=(*e.terms[:k], twice, *e.terms[k + 1 :]))
    if isinstance(e, Product) and isinstance(bare(e.factors[0]), Number) and "/" not in e.marks:
        rest = e.factors[1:]
        yield rest[0] if len(rest) == 1 else replace(e, factors=rest, marks=e.marks[1:])


def _reindexed(e: Node, letters: list[str]) -> Iterator[Node]:
    """Put another index of the equation in the place of one."""
    if not isinstance(e, Name):
        return
    for k, slot in enumerate(e.sub):
        for letter in letters if slot.kind == "index" else ():
            if letter != slot.text:
                yield replace(e, sub=(*e.sub[:k], Slot("index", letter), *e.sub[k + 1 :]))


def _ends(e: Node, sizes: list[Name]) -> Iterator[Node]:
    """Let a sum run to another size."""
    if isinstance(e, Indexed) and isinstance(e.upper, Name):
        for size in sizes:
            if size != e.upper:
                yield replace(e, upper=size)
