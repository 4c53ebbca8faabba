r"""Signs of numbers that formulas declare: `\alpha > 0`, `0 < \gamma < 1`, `\gamma \in (0, 1)`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from otimes.algebra.notation.symbols import (
    INDICES,
    SIZE_LETTERS,
    VECTORS,
    Declared,
    Symbols,
    full_key,
    keys,
)
from otimes.algebra.notation.tree import (
    Grid,
    Name,
    Node,
    Number,
    Power,
    Product,
    Space,
    Statement,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.vocabulary import SIGNS_OF_NUMBERS

POSITIVE, NONNEGATIVE, NONZERO = "positive", "nonnegative", "nonzero"
SIGNS = {
    ">": POSITIVE,
    r"\ge": NONNEGATIVE,
    r"\ne": NONZERO,
    "<": "negative",
    r"\le": "nonpositive",
}
QUANTITIES = frozenset("rst")  # letters for positive numbers, where they are no index and no size
SHOWN = {r"\ge": "≥", r"\le": "≤", r"\ne": "≠"}
SAID = {sign: f"{SHOWN.get(text, text)} 0" for text, sign in SIGNS.items()}
TURNED = {"<": ">", r"\le": r"\ge", ">": "<", r"\ge": r"\le", r"\ne": r"\ne"}


def signs_of(
    statement: Statement, line: int, functions: Collection[str], free: Collection[str] = ()
) -> Iterator[tuple[str, Declared]]:
    """Yield what a formula says of the signs of numbers, which are letters without indices.

    The letters `free` are no index and no size in the text.
    """
    terms = [*map(bare, statement.terms)]
    for left, relation, right in zip(terms, statement.relations, terms[1:], strict=False):
        turned = TURNED.get(relation, "")
        for subject, sign in ((left, _sign(relation, right)), (right, _sign(turned, left))):
            if sign is None:
                continue
            for name in (subject, *(map(bare, statement.subjects) if subject is left else ())):
                if not isinstance(name, Name) or name.base in functions:
                    continue
                if _may_be_a_number(name, free):
                    declared = Declared("scalar", line=line, assumed=(sign,), full=full_key(name))
                    yield keys(name)[0], declared


def is_sign(statement: Statement) -> bool:
    """Return whether a formula compares a symbol with a number: `x > 0`."""
    of, bound = bare(statement.terms[0]), bare(statement.terms[-1])
    plain = isinstance(of, Name) and isinstance(bound, Number)
    return plain and len(statement.relations) == 1 and statement.relations[0] in SIGNS


def _sign(relation: str, bound: Node) -> str | None:
    """Return the sign of what has a relation to a bound: a number, or a set of numbers."""
    if relation == r"\in":
        return _of_numbers(bound)
    if not isinstance(bound, Number) or relation not in SIGNS:
        return None
    if not bound.text.strip("0."):
        return SIGNS[relation]
    return POSITIVE if relation in (">", r"\ge") else None


def _of_numbers(node: Node) -> str | None:
    r"""Return the sign of all numbers in a set: `(0, 1)`, `[0, \infty)`, `\mathbb{R}_{>0}`."""
    if isinstance(node, Space) and not node.sizes:
        return SIGNS_OF_NUMBERS.get(node.signs)
    if not isinstance(node, Grid) or len(node.rows) != 1 or len(node.rows[0]) != 2:
        return None
    first = node.rows[0][0]
    return _sign(">" if node.bracket == "(" else r"\ge", first) if first is not None else None


def _may_be_a_number(name: Name, free: Collection[str]) -> bool:
    """Return whether a symbol is a small letter that is no vector, size or index by its look."""
    if name.sub or name.sup or name.marks or name.style:
        return False
    greek = name.base[0] == "\\" and name.base[1:2].islower() and name.base != r"\ell"
    taken = (VECTORS | {*INDICES} | SIZE_LETTERS) - {*free}
    return greek or (len(name.base) == 1 and name.base.islower() and name.base not in taken)


def vectors_among(
    signs: Iterable[tuple[str, Declared]],
    terms: Iterable[tuple[Node, int]],
    section: Callable[[int], int],
) -> set[tuple[str, int]]:
    r"""Return the letters with signs that are vectors, such as the code $c \ge 0$ of $W c$.

    They end products after a matrix, or are transposed, and stand before nothing in their section;
    each has the line of its sign. `terms` have their lines; `section` returns that of a line.
    """
    uses = [(base, last, line) for term, line in terms for base, last in _uses(term)]
    found = set()
    for key, known in signs:
        own = section(known.line)
        mine = {last for base, last, line in uses if base == key and section(line) == own}
        if mine == {True}:
            found.add((key, known.line))
    return found


def _uses(term: Node) -> Iterator[tuple[str, bool]]:
    r"""Yield the small letters in products, and whether each is used as a vector.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (equation,) = parse_formula(r"W c + a x + v^\top y = t")
    >>> sorted({use for term in equation.terms for use in _uses(term)})
    [('W', False), ('a', False), ('c', True), ('v', True)]
    """
    for e in walk(term):
        if isinstance(e, Power) and e.exponent == "T":
            inner = bare(e.base)
            if isinstance(inner, Name) and inner.base.islower():
                yield inner.base, True
        if not isinstance(e, Product):
            continue
        *first, last = map(bare, e.factors)
        yield from ((each.base, False) for each in first if isinstance(each, Name))
        before = bare(first[-1].base) if isinstance(first[-1], Power) else first[-1]
        matrix = isinstance(before, Name) and before.base.lstrip("\\")[:1].isupper()
        entry = isinstance(before, Name) and len(before.sub) > 1
        if matrix and not entry and isinstance(last, Name) and last.base.islower():
            yield last.base, True


def consistent(
    signs: Iterable[tuple[str, Declared]], paragraph: Callable[[int], int]
) -> Iterator[tuple[str, Declared]]:
    """Yield the declarations of signs but those of cases: several signs in one paragraph.

    `paragraph` returns the number of the paragraph of a line.
    """
    said: dict[tuple[str, int], dict[tuple[str, ...], Declared]] = {}
    for key, known in signs:
        said.setdefault((key, paragraph(known.line)), {}).setdefault(known.assumed, known)
    for (key, _), found in said.items():
        if len(found) == 1:
            yield from ((key, known) for known in found.values())


def signs_used(terms: Collection[Node], symbols: Symbols) -> list[str]:
    """Return the signs that a text says of the numbers in terms, each with its line."""
    found = {}
    for e in (e for term in terms for e in walk(term)):
        known = symbols.lookup(e)[1] if isinstance(e, Name) else None
        if isinstance(e, Name) and known is not None and known.line and known.assumed:
            bare_name = replace(e, sub=(), sup=())
            said = " and ".join(SAID[each] for each in known.assumed if each in SAID)
            found[latex(bare_name)] = f"{latex(bare_name)} {said} (line {known.line})"
    return [*found.values()]
