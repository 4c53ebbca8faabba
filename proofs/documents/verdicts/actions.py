r"""How `A ⊗ W` acts on a matrix in a text: `A x Wᵀ`, `W x Aᵀ` or `A x W`.

Where its sizes conform in one of these ways only, and where an equation is true in one only, a use
tells which way is meant. What most uses tell holds for the others: two factors in the wrong order
conform, too, in another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.actions import COLUMNS, PLAIN, ROWS, Acted, acting
from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.elaborate import check_shapes
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import Name, Node, Tensor, walk
from otimes.proofs.documents.prose.items import Item
from otimes.proofs.documents.proving.attempts import TRIAL, is_proved
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context

WAYS = (ROWS, COLUMNS, PLAIN)
ANY: tuple[Size, Size] = ((), ())  # stands for every shape
SAID = {ROWS: "A x Wᵀ", COLUMNS: "W x Aᵀ", PLAIN: "A x W"}

Shape = tuple[Size, Size]


def ways_of_acting(items: Iterable[Item], context: Context) -> dict[Shape, str]:
    """Return how ⊗ acts on matrices of each shape, and on any (`ANY`) where all uses agree."""
    votes: dict[Shape, Counter[str]] = {}
    for item in items:
        if item.error is not None or not any(map(_has_tensor, item.statements)):
            continue
        symbols = context.symbols_at(item.line)
        for statement in item.statements:
            for term in statement.terms:
                _vote(votes, [term], symbols)
            for sides in pairwise(statement.terms):
                _vote(votes, sides, symbols, true=True)
    found = {shape: way for shape, count in votes.items() if (way := _chosen(count))}
    ways = {*found.values()}
    return {**found, ANY: ways.pop()} if len(ways) == 1 else found


def _has_tensor(node: Node) -> bool:
    return any(isinstance(e, Tensor) for e in walk(node))


def _vote(
    votes: dict[Shape, Counter[str]], terms: Sequence[Node], symbols: Symbols, true: bool = False
) -> None:
    """Count the one way in which terms conform, or in which they are equal."""
    ways = [acted for way in WAYS if (acted := acting(terms, way))]
    shapes = {shape for acted in ways for e in acted.on if (shape := _declared(e, symbols))}
    if not shapes:
        return
    fitting = [acted for acted in ways if _fits(acted, symbols, true)]
    if len(fitting) == 1:
        for shape in shapes:
            votes.setdefault(shape, Counter())[fitting[0].way] += 1


def _declared(e: Node, symbols: Symbols) -> Shape | None:
    known = symbols.lookup(e)[1] if isinstance(e, Name) else None
    matrix = known is not None and known.kind == "matrix" and known.rows and known.cols
    return (known.rows, known.cols) if known is not None and matrix else None


def _fits(acted: Acted, symbols: Symbols, true: bool) -> bool:
    if true:
        return is_proved(acted.terms[0], acted.terms[1], symbols, TRIAL)
    try:
        check_shapes(acted.terms, symbols)
    except OtimesError:
        return False
    return True


def _chosen(count: Counter[str]) -> str:
    """Return the way of more than two thirds of the uses, or "".

    A use with weights on the right may lack a transpose: one alone tells nothing, nor do some
    beside as many with one.
    """
    if count[ROWS] >= count[PLAIN]:
        del count[PLAIN]
    way, most = count.most_common(1)[0]
    return way if 3 * most > 2 * count.total() and (way != PLAIN or most > 1) else ""


def unless_plain(found: Found, context: Context, lhs: Node, rhs: Node, line: int) -> Found:
    """Return what is said of a false equation, unless it is true with weights on the right.

    Only where nothing else in the text says how ⊗ acts.
    """
    symbols = context.symbols_at(line)
    if symbols.acts:
        return found
    others = context.instances([lhs, rhs])
    lhs, rhs = (context.unfolded(side, {}, None, others) for side in (lhs, rhs))
    if acting([lhs, rhs], PLAIN) is None:
        return found
    plain = symbols.copy()
    plain.acts = {ANY: PLAIN}
    if not is_proved(lhs, rhs, plain, TRIAL):
        return found
    why = f"true if (A ⊗ W) x stands for {SAID[PLAIN]}: say so, or write {SAID[ROWS]}"
    return replace(found, verdict="needs-hypothesis", why=why, counterexample=None, suggestion="")
