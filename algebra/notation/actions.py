r"""Kronecker products that act on a matrix from both sides: `(A \otimes W) x = A x W^\top`.

With one row of `x` for each position, `A` acts on positions and `W` on features. With one column
for each, the same is `W x A^\top`. Where weights stand on the right of states, it is `A x W`. The
sizes decide which of these is meant, and whether `x` is a matrix at all: a vector of n·d entries is
multiplied as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import (
    Group,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Product,
    Sum,
    Tensor,
    bare,
    mapped,
    walk,
)

ROWS, COLUMNS, PLAIN = "rows", "columns", "plain"  # A x Wᵀ, W x Aᵀ, A x W
MOST_NODES = 1500  # parts of a term in which products of sums are multiplied out
MOST_TIMES = 4  # a power of what acts
INSIDE = (Name, Number, Power)  # what needs no brackets in a product


@dataclass(frozen=True, slots=True)
class Acted:
    """Terms in which ⊗ acts from both sides, in one of the ways, and what it acts on."""

    way: str
    terms: tuple[Node, ...]
    on: tuple[Node, ...]
    changed: tuple[bool, ...]  # which of the terms


class _NoActionError(Exception):
    """A product does not say what its factors do to a matrix."""


def acting(terms: Sequence[Node], way: str) -> Acted | None:
    r"""Return terms with ⊗ acting in a way, or None where none stands before a matrix.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> from otimes.algebra.notation.tree import latex
    >>> (term,) = parse_formula(r"(I \otimes W)(A \otimes V) x")
    >>> [latex(each) for way in (ROWS, COLUMNS, PLAIN) for each in acting(term.terms, way).terms]
    ['I (A x V^{T}) W^{T}', 'W (V x A^{T}) I^{T}', 'I (A x V) W']
    """
    if not any(isinstance(e, Tensor) and e.mark == r"\otimes" for t in terms for e in walk(t)):
        return None
    found: list[Node] = []
    on: list[Node] = []
    changed = []
    for term in terms:
        before = len(on)
        try:
            found.append(_read(term, way, on))
        except _NoActionError:
            return None
        changed.append(len(on) > before)
    return Acted(way, tuple(found), tuple(on), tuple(changed)) if on else None


def as_actions(
    terms: Sequence[Node],
    symbols: Symbols,
    conform: Callable[[Sequence[Node], Collection[Node]], bool],
) -> Sequence[Node]:
    """Return terms in which ⊗ acts on matrices, where they conform so and not as usual.

    `conform` tells whether terms do, with some of their parts as matrices. An identity without a
    size would be the number 1 as usual: beside a declared matrix it has the size of that.
    """
    ways = [acted for way in (ROWS, COLUMNS, PLAIN) if (acted := acting(terms, way))]
    if not ways or (not _has_open_identity(terms, ways[0], symbols) and conform(terms, ())):
        return terms
    said = {way for e in ways[0].on for way in [_said(e, symbols)] if way}
    ways = [acted for acted in ways if acted.way in said] if len(said) == 1 else ways
    fitting = [acted for acted in ways if _fit(acted, conform)]
    if len(fitting) > 1 and ROWS in {acted.way for acted in fitting}:
        fitting = [acted for acted in fitting if acted.way != PLAIN]
    if len(fitting) > 1:
        fitting = [acted for acted in fitting if conform(acted.terms, acted.on)]
    if len(fitting) == 1:
        return fitting[0].terms
    return ways[0].terms if len(ways) == 1 and said else terms


def _fit(acted: Acted, conform: Callable[[Sequence[Node], Collection[Node]], bool]) -> bool:
    """Return whether each term in which ⊗ acts conforms by itself."""
    mine = [term for term, changed in zip(acted.terms, acted.changed, strict=True) if changed]
    return all(conform([term], [e for e in acted.on if _is_in(e, term)]) for term in mine)


def _is_in(part: Node, term: Node) -> bool:
    return any(e == part for e in walk(term))


def _said(on: Node, symbols: Symbols) -> str:
    """Return the way in which ⊗ acts on matrices of this shape in the whole text, or ""."""
    known = symbols.lookup(on)[1] if isinstance(on, Name) else None
    any_ = symbols.acts.get(((), ()), "")
    return symbols.acts.get((known.rows, known.cols), any_) if known is not None else any_


def _has_open_identity(terms: Sequence[Node], acted: Acted, symbols: Symbols) -> bool:
    tensors = [e for term in terms for e in walk(term) if isinstance(e, Tensor)]
    factors = [bare(f) for e in tensors for f in e.factors]
    identity = any(isinstance(f, Name) and f.base in ("I", "Id") and not f.sub for f in factors)
    return identity and all(
        isinstance(e, Name) and (known := symbols.lookup(e)[1]) is not None and known.cols != (1,)
        and known.kind == "matrix" and bool(known.rows) and bool(known.cols)
        for e in acted.on
    )  # fmt: skip


def _read(term: Any, way: str, on: list[Node]) -> Any:
    """Return a term with ⊗ acting in a way; what it acts on is added to a list."""

    def change(part: Any) -> Any:
        if not isinstance(part, Product) or any(
            m.startswith((r"\times_", "/")) for m in part.marks
        ):
            return None
        operators = [k for k, f in enumerate(part.factors[:-1]) if _acts(f)]
        if not operators or any(map(_acts, part.factors[operators[-1] + 1 :])):
            return None
        last = operators[-1] + 1
        rest, marks = part.factors[last:], ("", *part.marks[last + 1 :])
        target = bare(rest[0]) if len(rest) == 1 else Product(rest, marks)
        on.append(target)
        result = _read(target, way, on)
        while last and _acts(part.factors[last - 1]):
            last -= 1
            result = _applied(part.factors[last], result, way)
        if not last:
            return replace(result, span=part.span)
        factors = (*(_read(f, way, on) for f in part.factors[:last]), _factor(result))
        return Product(factors, part.marks[: last + 1], span=part.span)

    return mapped(term, change)


def _acts(node: Node) -> bool:
    """Return whether a term is a Kronecker product, or made of such by sums and products."""
    inner = bare(node)
    if isinstance(inner, Tensor):
        return inner.mark == r"\otimes"
    if isinstance(inner, Sum):
        return any(map(_acts, inner.terms))
    if isinstance(inner, Product):
        return _acts(inner.factors[-1])
    if isinstance(inner, Power):
        return _acts(inner.base)
    return isinstance(inner, Indexed) and inner.mark == r"\sum" and _acts(inner.body)


def _applied(node: Node, on: Node, way: str) -> Node:
    """Return what a term made of Kronecker products makes of a matrix."""
    inner = bare(node)
    if sum(1 for _ in walk(on)) > MOST_NODES:
        raise _NoActionError
    if isinstance(inner, Tensor) and len(inner.factors) == 2:
        a, w = map(_factor, inner.factors)
        if way == PLAIN:
            return _product(a, on, w)
        return _product(a, on, _turned(w)) if way == ROWS else _product(w, on, _turned(a))
    if isinstance(inner, Sum):
        return Sum(tuple(_factor(_applied(t, on, way)) for t in inner.terms), inner.signs)
    if isinstance(inner, Product):
        for factor in reversed(inner.factors):
            on = _applied(factor, on, way) if _acts(factor) else _product(factor, on)
        return on
    if isinstance(inner, Indexed):
        return replace(inner, body=_applied(inner.body, on, way))
    if isinstance(inner, Power):
        return _power_applied(inner, on, way)
    if isinstance(inner, Name) and inner.base in ("I", "Id"):
        return on
    raise _NoActionError


def _power_applied(power: Power, on: Node, way: str) -> Node:
    inner, exponent = bare(power.base), power.exponent
    if isinstance(inner, Tensor) and exponent in ("T", "-1"):
        factors = tuple(Power(_factor(f), exponent) for f in inner.factors)
        return _applied(Tensor(inner.mark, factors), on, way)
    times = int(exponent.text) if isinstance(exponent, Number) and exponent.text.isdigit() else 0
    if not 0 < times <= MOST_TIMES:
        raise _NoActionError
    for _ in range(times):
        on = _applied(inner, on, way)
    return on


def _product(*factors: Node) -> Product:
    return Product(tuple(map(_factor, factors)), ("",) * len(factors))


def _factor(node: Node) -> Node:
    return node if isinstance(node, (*INSIDE, Group)) else Group(node)


def _turned(node: Node) -> Node:
    return Power(node, "T")
