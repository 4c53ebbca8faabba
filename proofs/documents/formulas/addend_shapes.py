r"""Shapes that sums give to what is not declared: `b` of `x - b`, `g^l` of `x^{l+1} = x^l + g^l`.

A vector that is added to a vector is as long. Beside a matrix, a bias may be meant for each row:
only where all terms are symbols alone has each the shape of the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.dimensions import ONE, Size
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import INDICES, Declared, Symbols, full_key, key_of
from otimes.algebra.notation.tree import Name, Node, Sum, bare, is_constant, walk


def shapes_of_addends(
    left: Node, right: Node, symbols: Symbols, line: int
) -> Iterator[tuple[str, Declared]]:
    """Yield the declarations of undeclared addends of both sides, the inner ones first."""
    symbols = symbols.copy()
    sums = [e for side in (left, right) for e in walk(side) if isinstance(e, Sum)]
    whole = bare(right)
    for each in reversed(sums):
        terms = [bare(term) for term in each.terms]
        beside = [bare(left)] if each is whole else []
        plain = all(isinstance(e, Name) for e in (*terms, *beside))
        mine = [e for e in terms if isinstance(e, Name) and _is_open(e, symbols)]
        if not mine:
            continue
        shape = _shape_of([e for e in (*terms, *beside) if e not in mine], symbols)
        if shape is None or not (plain or ONE in shape):
            continue
        for name in dict.fromkeys(mine):
            vector = ONE in shape
            rows = shape[0] or shape[1] if vector else shape[0]
            sizes = (rows, ()) if vector else shape
            known = Declared("vector" if vector else "matrix", *sizes, line, full=full_key(name))
            if _is_labelled(name):
                symbols.split.add(key_of(name))
                symbols.known[full_key(name)] = known
            else:
                symbols.known[key_of(name)] = known
            yield key_of(name), known


def _is_open(name: Name, symbols: Symbols) -> bool:
    """Return whether a small letter is not declared; a label below is part of its name."""
    if is_constant(name) or (len(name.base) > 1 and name.base[0] != "\\") or name.base.isupper():
        return False
    known = symbols.lookup(name)[1]
    return known is None and full_key(name) not in symbols.sizes() and not name.select


def _is_labelled(name: Name) -> bool:
    return any(slot.kind != "number" and slot.text not in INDICES for slot in name.sub)


def _shape_of(terms: list[Node], symbols: Symbols) -> tuple[Size, Size] | None:
    """Return the shape of the first term of which all is declared, or None."""
    sizes = symbols.sizes()
    for term in terms:
        known = symbols.lookup(term)[1] if isinstance(term, Name) else None
        if known is not None and known.kind == "vector" and known.rows and known.line:
            return known.rows, ONE
        try:
            read = elaborate([term], symbols)
        except OtimesError:
            continue
        shape = getattr(read.terms[0], "shape", None)
        if read.undeclared or shape is None or len(shape) != 2:
            continue
        found = tuple(() if n == 1 else (str(n),) for n in shape)
        if any(found) and all(size[0] in sizes for size in found if size):
            return found[0], found[1]
    return None
