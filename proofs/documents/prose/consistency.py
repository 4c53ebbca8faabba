r"""Inconsistencies of a text: in layers, in indices, in dot products, in the meaning of a letter.

Nothing here refutes an equation: each finding is a question to the author, with the two places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from otimes.algebra.notation.symbols import Declared, Symbols, default, key_of
from otimes.algebra.notation.tree import (
    Apply,
    Fraction,
    Name,
    Node,
    Power,
    Product,
    Slot,
    Sum,
    Tensor,
    bare,
    latex,
    walk,
)
from otimes.proofs.documents.containers.source import Document
from otimes.proofs.documents.prose.items import Item, composed
from otimes.proofs.documents.reporting.report import Equation
from otimes.proofs.documents.symbols.context import Context

STREAMS = ("x", "X", "𝐱", "𝐗", "h", "H", "𝐡", "𝐇", "Z", "𝐙")  # letters of states, by position
HEADS = ("Q", "K", "V", "O")  # the labels of the weights of a head
Pair = tuple[str, str]


# -- layers of neighbours --------------------------------------------------------------------------


def same_layer_pairs(items: Iterable[Item]) -> dict[Pair, int]:
    """Return the adjacent pairs of symbols with the same layer as superscript, each with a line."""
    found: dict[Pair, int] = {}
    for item, statement in composed(items):
        for a, b in _neighbours(statement):
            if _layer(a) == _layer(b):
                found.setdefault((key_of(a), key_of(b)), item.line)
    return found


def other_layer(node: Node, pairs: dict[Pair, int], line: int) -> str:
    r"""Return why a product mixes layers unlike the rest of the text, or "".

    The same two symbols stand side by side with one layer elsewhere, as in `n^l w^l`, and here with
    two, as in `n^l w^{l-1}`.
    """
    for a, b in _neighbours(node):
        at = pairs.get((key_of(a), key_of(b)))
        if at is not None and at != line and _layer(a) != _layer(b):
            here, there = (f"{latex(name)}" for name in (a, b))
            return (
                f"{here} and {there} are of two layers here, and of one layer on line {at}: "
                "which is meant?"
            )
    return ""


def _neighbours(node: Node) -> Iterator[tuple[Name, Name]]:
    """Yield adjacent factors of products that have an index as superscript."""
    for e in walk(node):
        if not isinstance(e, Product):
            continue
        for a, b in pairwise(map(bare, e.factors)):
            if isinstance(a, Name) and isinstance(b, Name) and _letter(a) == _letter(b) != "":
                yield a, b


def _layer(name: Name) -> Slot:
    return name.sup[0]


def _letter(name: Name) -> str:
    """Return the letter of a symbol's first superscript, `l` for `l-1`."""
    if not name.sup or name.sup[0].kind not in ("index", "expression"):
        return ""
    return name.sup[0].text[0]


# -- indices of definitions ------------------------------------------------------------------------


def lost_index(left: Node, right: Node) -> str:
    r"""Return an index of the defined symbol that does not occur on the right, or "".

    Only if the symbol itself occurs on the right with another index in this position, as in
    `x^{k} \leftarrow x^{l} + u`.
    """
    name = bare(left)
    if not isinstance(name, Name):
        return ""
    inside = [e for e in walk(right) if isinstance(e, Name) and e.base == name.base]
    text = latex(right)
    for slots in ("sub", "sup"):
        for k, slot in enumerate(getattr(name, slots)):
            others = [getattr(e, slots) for e in inside]
            replaced = any(
                len(each) > k and each[k].kind == "index" and each[k] != slot for each in others
            )
            if slot.kind == "index" and replaced and slot.text not in text:
                return slot.text
    return ""


# -- products with a dot ---------------------------------------------------------------------------


def dotted_vectors(node: Node, symbols: Symbols) -> str:
    r"""Return why a dot between vectors cannot be their inner product, or "".

    In `\frac{x - \mu}{\sigma} \cdot \gamma + \beta` it would be a number, and a vector is added.
    """
    for e in walk(node):
        if not isinstance(e, Sum):
            continue
        vectors = [term for term in map(bare, e.terms) if _is_declared_vector(term, symbols)]
        for term in map(bare, e.terms):
            if not isinstance(term, Product) or term.marks[-1] != r"\cdot" or not vectors:
                continue
            left, right = bare(term.factors[-2]), bare(term.factors[-1])
            if _is_declared_vector(right, symbols) and _has_vector(left, symbols):
                return (
                    f"a product with a dot of two vectors is a number, and {latex(vectors[0])} is "
                    f"a vector: does the dot before {latex(right)} mean ⊙?"
                )
    return ""


def _is_declared_vector(node: Node, symbols: Symbols) -> bool:
    known = symbols.lookup(node)[1] if isinstance(node, Name) else None
    return known is not None and known.kind == "vector" and bool(known.line)


def _has_vector(node: Node, symbols: Symbols) -> bool:
    """Return whether a sum or a fraction has a vector as a term."""
    inner = bare(node)
    if isinstance(inner, Fraction):
        return _has_vector(inner.above, symbols)
    if isinstance(inner, Sum):
        return any(_has_vector(term, symbols) for term in inner.terms)
    known = (symbols.lookup(inner)[1] or default(inner)) if isinstance(inner, Name) else None
    return known is not None and known.kind == "vector"


# -- one letter for two things ---------------------------------------------------------------------


def clashes(items: list[Item], context: Context, document: Document) -> Iterator[Equation]:
    """Yield the letters with two meanings, each where the second one is used."""
    yield from _stacked_and_not(items, context, document)
    yield from _positions_as_width(context, document)


def _stacked_and_not(items: list[Item], context: Context, document: Document) -> Iterator[Equation]:
    """Yield symbols to which A ⊗ W is applied (all positions stacked), and elsewhere W alone."""
    stacked: list[tuple[Item, Name, Product]] = []
    alone: dict[str, list[int]] = {}
    for item, statement in composed(items):
        for e in walk(statement):
            if not isinstance(e, Product):
                continue
            for a, b in pairwise(map(bare, e.factors)):
                if isinstance(b, Name) and _is_plain(b) and isinstance(a, Tensor | Name):
                    if isinstance(a, Tensor) and a.mark == r"\otimes":
                        stacked.append((item, b, e))
                    elif isinstance(a, Name) and a.base == "W":
                        alone.setdefault(latex(b), []).append(item.line)
    for item, name, product in stacked:
        lines = [
            line
            for line in alone.get(latex(name), [])
            if context.in_scope(item.line, line) or context.in_scope(line, item.line)
        ]
        known = context.symbols_at(item.line).lookup(name)[1]
        if lines and (known is None or not known.rows):
            why = (
                f"{latex(name)} stacks all positions here, and a weight alone acts on it on line "
                f"{lines[0]}: is vec({latex(name)}) meant here?"
            )
            tex = item.formula.tex[slice(*product.span)]
            at = item.formula.offset(product.span[0])
            yield _question(document, at, tex, why)


def _is_plain(name: Name) -> bool:
    return name.base.islower() and not name.sub and not name.sup


def _positions_as_width(context: Context, document: Document) -> Iterator[Equation]:
    """Yield weights of heads with a size that is the number of rows of the stream."""
    streams = [
        (key, known)
        for key, known in context.declared
        if known.kind == "matrix" and known.rows != known.cols and key in STREAMS
    ]
    seen: set[int] = set()
    for key, known in context.declared:
        if known.kind != "matrix" or key not in [f"W_{head}" for head in HEADS]:
            continue
        if known.line in seen:
            continue
        for other, stream in streams:
            if {known.rows, known.cols} == {stream.rows, stream.cols} and _names(stream):
                size = "·".join(map(str, stream.rows))
                why = (
                    f"{size} is the number of rows of {other} (line {stream.line}), and here a "
                    f"size of {key}: does {size} stand for two sizes?"
                )
                seen.add(known.line)
                yield _question(document, document.lines[known.line - 1], key, why)
                break


def _question(document: Document, at: int, tex: str, why: str) -> Equation:
    """Return the verdict "needs-hypothesis", with a question, at an offset of a document."""
    why, cell = document.named_lines(why), document.cell(at)
    return Equation(
        document.name,
        *document.position(at),
        tex,
        "needs-hypothesis",
        why,
        cell=cell,
        span=(at, at),
    )


def _names(known: Declared) -> bool:
    return all(isinstance(atom, str) for size in (known.rows, known.cols) for atom in size)


# -- singular vectors ------------------------------------------------------------------------------


def sides_of(key: str, items: Iterable[Item]) -> dict[str, int]:
    """Return the sides on which states are multiplied by a weight, "right" or "left", with a line.

    A state is a small letter or the value of a function; `W[:, t]` is a column for a token.
    """
    found: dict[str, int] = {}
    for item in items:
        for statement in item.statements:
            for e in walk(statement):
                if isinstance(e, Name) and key_of(e) == f"{key}[:,w]":
                    found.setdefault("right", item.line)
                if isinstance(e, Product):
                    for a, b in pairwise(map(bare, e.factors)):
                        if isinstance(b, Name) and _is_weight(b, key) and _is_state(a):
                            found.setdefault("right", item.line)
                        if isinstance(a, Name) and _is_weight(a, key) and _is_state(b):
                            found.setdefault("left", item.line)
    return found


def _is_weight(name: Name, key: str) -> bool:
    return key_of(name).partition("[")[0] == key


def _is_state(node: Node) -> bool:
    inner = bare(node)
    if isinstance(inner, Power) and inner.exponent == "T":
        inner = bare(inner.base)
    if isinstance(inner, Apply):
        return inner.function.base[0] != "\\"
    return isinstance(inner, Name) and (default(inner) or Declared("scalar")).kind == "vector"
