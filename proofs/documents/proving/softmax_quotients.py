r"""Softmax by entries: `A_{ij} = \frac{\exp(S_{ij})}{\sum_k \exp(S_{ik})}` where A = softmax(S).

The exponents above and below have to be the entries of what the softmax is taken of, and the sum
has to run along its rows. Where A is not defined before, the quotient defines it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from otimes.algebra.notation.affine import Affine, affine, moved
from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.symbols import Symbols, text_of
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Apply,
    Entry,
    Fraction,
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
    is_constant,
    latex,
    walk,
)
from otimes.algebra.notation.vocabulary import SOFTMAX
from otimes.proofs.documents.proving.attempts import attempted
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context

OTHER_AXIS = "the sum runs over the first index, and the softmax along rows over the second"


class Quotient(NamedTuple):
    """A quotient of exponentials; `along` is the index above over which the sum below runs.

    `below` is the exponent below with this index in place of the letter of the sum.
    """

    above: Node
    below: Node
    along: str
    total: Indexed


def softmax_quotient(node: Node) -> Quotient | None:
    r"""Return the exponents of a quotient by a sum of exponentials, or None for another term.

    >>> term = parse_formula(r"\frac{e^{z_i}}{\sum_j e^{z_j}}")[0].terms[0]
    >>> found = softmax_quotient(term)
    >>> latex(found.above), latex(found.below), found.along
    ('z_{i}', 'z_{i}', 'i')
    """
    ends = _ends(bare(node))
    if ends is None or not isinstance(ends[1], Indexed) or len(ends[1].indices) != 1:
        return None
    total = ends[1]
    above, under = _exponent(ends[0]), _exponent(total.body)
    (letter,) = total.indices
    if total.mark != r"\sum" or above is None or under is None:
        return None
    mine, theirs = _letters(above), _letters(under)
    replaced = mine - theirs
    if letter in mine or letter not in theirs or len(replaced) != 1:
        return None
    (along,) = replaced
    return Quotient(above, moved(under, {letter: Affine(along, 0)}), along, total)


def by_entries(
    context: Context, left: Node, right: Node, line: int, judged: Callable[[Node, Node], Found]
) -> Found | None:
    """Return the verdict on a softmax by entries, or None for another equation.

    `judged` returns the verdict on an equation. A pattern that is not known is defined.
    """
    quotient = softmax_quotient(right)
    place = _place(bare(left)) if quotient is not None else None
    if quotient is None or place is None:
        return None
    whole, indices = place
    symbols = context.symbols_at(line)
    if quotient.along not in indices or not _is_whole(quotient.total, symbols):
        return None
    scores, used = _scores(context, whole)
    if scores is None:
        return _defined(context, whole, indices, quotient, line)
    entry = _entry(scores, indices)
    exponents = quotient.above, quotient.below
    said = f"; with {latex(whole)} as on line {used}" if used else ""
    plain = {each and latex(each) for each in (_without_entries(e, indices) for e in exponents)}
    if plain == {latex(scores)} and quotient.along == indices[-1]:
        why = f"the exponents are the entries of {latex(scores)}{said}; without certificate"
        return Found("proved", why)
    found = [judged(entry, exponent) for exponent in exponents]
    refuted = [each.verdict == "refuted" for each in found]
    refuted = [
        false or _are_unequal(entry, each, symbols)
        for false, each in zip(refuted, exponents, strict=True)
    ]
    if any(refuted):
        if _differ_by_a_number(entry, quotient, judged, symbols):
            return None
        wrong = exponents[refuted.index(True)]
        why = f"{latex(wrong)} is not the entry of {latex(scores)}{said}"
        return Found("refuted", why)
    if any(each.verdict != "proved" for each in found):
        return None
    if len(indices) == 2 and quotient.along != indices[1]:
        if context.base.softmax == "rows":
            return Found("refuted", f"{OTHER_AXIS}{said}")
        return Found("needs-hypothesis", "true if the softmax runs along columns")
    why = f"the exponents are the entries of {latex(scores)}{said}; without certificate"
    return Found("proved", why, hypotheses=found[0].hypotheses, facts=found[0].facts)


def _defined(
    context: Context, whole: Node, indices: Sequence[str], quotient: Quotient, line: int
) -> Found | None:
    """Define a pattern as the softmax of a matrix by its entries, where it is not known before."""
    scores, known = _without_entries(quotient.above, indices), context.definitions
    new = isinstance(whole, Name) and latex(whole) not in known and not context.instances([whole])
    same = latex(quotient.above) == latex(quotient.below) and quotient.along == indices[-1]
    if scores is None or not new or not same or context.base.softmax == "columns":
        return None
    context.define(whole, Apply(Name("softmax"), (scores,)), line)
    return Found("definition", "")


def _without_entries(node: Node, indices: Sequence[str]) -> Node | None:
    r"""Return the matrix of which a term is the entry: S for `S_{ij}`, `S / c` for `S_{ij} / c`."""
    names = [e for e in walk(node) if isinstance(e, Name) and _subscripts(e) == [*indices]]
    others = {e for e in walk(node) if isinstance(e, Name)} - {*names}
    free = any(letter in _letters(other) for other in others for letter in indices)
    if len(names) != 1 or free:
        return None
    (name,) = names
    plain = replace(name, sub=())
    inner = bare(node)
    if inner == name:
        return plain
    if isinstance(inner, Product) and {*inner.marks} <= {"", r"\cdot", "/"}:
        if any(bare(e) == name for e in inner.factors):
            factors = tuple(plain if bare(e) == name else e for e in inner.factors)
            return replace(inner, factors=factors)
    elif isinstance(inner, Fraction) and bare(inner.above) == name:
        return replace(inner, above=plain)
    return None


def _are_unequal(left: Node, right: Node, symbols: Symbols) -> bool:
    """Return whether two numbers of declared symbols differ for some values of these."""
    names = [e for side in (left, right) for e in walk(side) if isinstance(e, Name)]
    for name in names:
        known = symbols.lookup(name)[1]
        declared = known is not None and known.line > 0
        if not (declared or is_constant(name) or text_of(name) in symbols.sizes()):
            return False
    sides = dict.fromkeys((symbols.side, "column", "row"))
    every = [
        attempted(left, right, (), replace(symbols, side=side), certain=True) for side in sides
    ]
    found = [verdict for verdict, _ in every if verdict is not None]
    return bool(found) and all(verdict.status == "refuted" for verdict in found)


def _differ_by_a_number(
    entry: Node, quotient: Quotient, judged: Callable[[Node, Node], Found], symbols: Symbols
) -> bool:
    """Return whether the exponents may differ from scores by a number for each row."""
    if latex(quotient.above) != latex(quotient.below):
        return False
    other = min({*"abcdpqstuvw"} - _letters(quotient.above) - _letters(entry))
    there = {quotient.along: Affine(other, 0)}
    a = Sum((entry, moved(entry, there)), ("", "-"))
    b = Sum((Group(quotient.above), Group(moved(quotient.above, there))), ("", "-"))
    return not (judged(a, b).verdict == "refuted" or _are_unequal(a, b, symbols))


def _ends(node: Node) -> tuple[Node, Node] | None:
    """Return the numerator and the denominator of a quotient, or None."""
    if isinstance(node, Fraction):
        return bare(node.above), bare(node.below)
    if isinstance(node, Product) and len(node.factors) == 2 and node.marks[1] == "/":
        return bare(node.factors[0]), bare(node.factors[1])
    return None


def _exponent(node: Node) -> Node | None:
    r"""Return the exponent of `e^{x}` or `\exp(x)`, or None."""
    inner = bare(node)
    if isinstance(inner, Apply) and inner.function.base == "exp" and len(inner.arguments) == 1:
        return bare(inner.arguments[0])
    if isinstance(inner, Name) and inner.base == "e" and len(inner.sup) == 1 and not inner.sub:
        try:
            (statement,) = parse_formula(inner.sup[0].text)
        except (NotationError, ValueError):
            return None
        return bare(statement.terms[0]) if len(statement.terms) == 1 else None
    if isinstance(inner, Power) and isinstance(inner.exponent, Node) and latex(inner.base) == "e":
        return bare(inner.exponent)
    return None


def _letters(node: Node) -> set[str]:
    """Return the letters at which the symbols of a term have indices below."""
    slots = [slot for e in walk(node) if isinstance(e, Name) for slot in e.sub]
    slots += [slot for e in walk(node) if isinstance(e, Entry) for slot in e.indices]
    return {at.letter for slot in slots if (at := affine(slot)) is not None and at.letter}


def _subscripts(name: Name) -> list[str]:
    return [slot.text for slot in name.sub if slot.kind == "index"]


def _place(node: Node) -> tuple[Node, list[str]] | None:
    """Return of what a side is an entry, and its indices, or None."""
    if isinstance(node, Name) and len(node.sub) == len(_subscripts(node)) in (1, 2):
        return replace(node, sub=()), _subscripts(node)
    if isinstance(node, Apply) and node.function.base in SOFTMAX and len(node.below) in (1, 2):
        return replace(node, below=()), [slot.text for slot in node.below]
    return None


def _is_whole(total: Indexed, symbols: Symbols) -> bool:
    """Return whether a sum runs over all values of its index."""
    if total.kind == "all":
        return True
    upper = total.upper
    sized = upper is not None and latex(upper) in symbols.sizes()
    return total.kind == "from" and total.lower == "1" and sized


def _scores(context: Context, whole: Node) -> tuple[Node | None, int]:
    """Return of what a pattern is the softmax by a definition, and the line of that."""
    known = context.definitions.get(latex(whole), ())
    found = known[0] if known else context.instances([whole]).get(latex(whole))
    inner = bare(found.rhs) if found is not None else whole
    if isinstance(inner, Apply) and inner.function.base in SOFTMAX and len(inner.arguments) == 1:
        return bare(inner.arguments[0]), found.line if found is not None else 0
    return None, 0


def _entry(scores: Node, indices: Sequence[str]) -> Node:
    """Return an entry of a matrix or a vector."""
    slots = tuple(Slot("index", each) for each in indices)
    if isinstance(scores, Name) and not scores.sub:
        return replace(scores, sub=slots)
    if isinstance(scores, Number):
        return scores
    return Entry(Group(scores, "("), slots)
