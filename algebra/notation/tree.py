"""The syntax tree of a formula: what was written, before anything is known of its symbols.

Every node has the offsets of the text it was read from, `span`, which do not count when nodes are
compared. `latex` prints a tree back; the text that it gives is read as the same tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import chain
from operator import is_
from typing import Any, NamedTuple

from otimes.algebra.notation.vocabulary import PREFIXED

Span = tuple[int, int]
NOWHERE: Span = (0, 0)


class Slot(NamedTuple):
    r"""One entry of a subscript or superscript: `OV`, `l`, `l-1`, `2`, `\le i`.

    `kind` is "label", "index", "number", "expression" or "range".
    """

    kind: str
    text: str


class _Kept:
    """What is computed once of a node, and does not count when nodes are compared."""

    __slots__ = ("_hash", "_inside")
    _hash: int
    _inside: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(_Kept):
    """A part of a formula."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A decimal number as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    r"""A symbol with its decorations: `\hat{\mathbf{W}}_{OV}^{l,h}`.

    `select` is a selection of rows or columns, as `:,w` in `W_{U[:,w]}`.
    """

    base: str
    style: str = ""
    marks: tuple[str, ...] = ()
    sub: tuple[Slot, ...] = ()
    sup: tuple[Slot, ...] = ()
    select: str = ""

    def __hash__(self) -> int:
        """Return a hash, which is kept: symbols are looked up many times."""
        try:
            return self._hash
        except AttributeError:
            parts = (self.base, self.style, self.marks, self.sub, self.sup, self.select)
            object.__setattr__(self, "_hash", hash(parts))
            return self._hash


@dataclass(frozen=True, slots=True)
class Sum(Node):
    """A sum; `signs` has "+" or "-" for each term, and "" for a first term without sign."""

    terms: tuple[Node, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product(Node):
    r"""A product; `marks` has what stands before each factor: "", `\cdot`, `\times` or "/"."""

    factors: tuple[Node, ...]
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tensor(Node):
    r"""Factors joined by `\otimes` (Kronecker), `\odot` or `\circ` (entry by entry)."""

    mark: str
    factors: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Power(Node):
    """A node with an exponent: `T` for the transpose, `-1`, `+`, or an expression."""

    base: Node
    exponent: str | Node


@dataclass(frozen=True, slots=True)
class Fraction(Node):
    r"""`\frac{…}{…}`."""

    above: Node
    below: Node


@dataclass(frozen=True, slots=True)
class Derivative(Node):
    r"""`\frac{\partial \ell}{\partial W}`, `\partial \ell / \partial W` or `\nabla_W \ell`.

    `turned`: whether that of a number has the shape of Wᵀ, and not that of W; a `gradient` never
    has. The derivative of a vector has a row for each of its entries, or, `by_columns`, a column.
    `point` is a value of the variable at which it is taken, `like` a term of the variable's shape.
    """

    target: Node
    variable: Name
    turned: bool = False
    by_columns: bool = False
    gradient: bool = field(default=False, compare=False)
    point: Node | None = field(default=None, compare=False)
    like: Node | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Differential(Node):
    """The differential of a term in changes of some matrices: `d(X Y) = (dX) Y + X dY`.

    That of a matrix by itself is its change, `dX`.
    """

    target: Node
    variables: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Root(Node):
    r"""`\sqrt[degree]{…}`, the degree empty for a square root."""

    argument: Node
    degree: str = ""


@dataclass(frozen=True, slots=True)
class Indexed(Node):
    r"""A sum or product over an index: `\sum_{j \le i}`, `\prod_{l=1}^{L}`, `\sum_h`.

    `indices` are the bound letters; `kind` is "all", "from" (`lower` to `upper`), "in", "range" or
    "other" (`lower` is then the set or the condition as text, in "other" of no form that is known).
    `arrow` points to the later factors of a product, where the formula has it: `∏←_l<L`. The marks
    `\\dots` and `\\vdots` are of blocks side by side or stacked: `[W[h] … h<H]`.
    """

    mark: str
    indices: tuple[str, ...]
    kind: str
    lower: str
    upper: Node | None
    body: Node
    arrow: str = ""


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """A function of arguments; `below` is a subscript after them, as in `h(x)_i`."""

    function: Name
    arguments: tuple[Node, ...]
    below: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry(Node):
    """An entry of a matrix expression, or a member of a family: `(AB)_{ij}`, `A[i, j]`, `W[h]`.

    `square`: whether the indices stand in square brackets, as the printer of text has them.
    """

    base: Node
    indices: tuple[Slot, ...]
    square: bool = False


@dataclass(frozen=True, slots=True)
class Norm(Node):
    r"""`\|X\|_F`, `|x|`; `kind` is the subscript, `mark` the bracket."""

    argument: Node
    kind: str
    mark: str


@dataclass(frozen=True, slots=True)
class Grid(Node):
    """A matrix written out, row by row; None stands for an empty cell.

    `bracket` is "(" or "[" for a list, which need not say whether it is a row or a column.
    """

    rows: tuple[tuple[Node | None, ...], ...]
    bracket: str = ""


@dataclass(frozen=True, slots=True)
class Listing(Node):
    r"""Parts with signs between them that are no operations: `(x \mid y)`, `\{1, 2\}`, `[0, 1)`.

    `marks` has what stands before each part, `brackets` the two brackets, which may be empty.
    """

    parts: tuple[Node, ...]
    marks: tuple[str, ...]
    brackets: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Cases(Node):
    r"""A definition by cases: rows of a value and a condition, as in `\begin{cases}`."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Group(Node):
    """A node in brackets, which are kept so that the formula can be printed back.

    `stands_for` is the symbol in whose place a definition was put, which has the same shape.
    """

    inner: Node
    bracket: str = "("
    stands_for: Node | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Dots(Node):
    r"""`\cdots` and the like: something left out."""

    text: str


@dataclass(frozen=True, slots=True)
class Space(Node):
    r"""A space of matrices, `\mathbb{R}^{n \times d}`; without sizes, of numbers.

    `signs` are those of all entries where it says so: `>0` or `+`.
    """

    sizes: tuple[Node, ...]
    signs: str = ""


@dataclass(frozen=True, slots=True)
class Statement(Node):
    r"""A chain `terms[0] relations[0] terms[1] …`; one term alone is an expression.

    `subjects` are further symbols of which the same is said, as in `A, B \in …`; `after` is the
    arrow that leads from the statement before, or the word that makes it a condition.
    """

    terms: tuple[Node, ...]
    relations: tuple[str, ...] = ()
    subjects: tuple[Node, ...] = ()
    after: str = ""


def children(node: Node) -> list[Node]:
    """Return the nodes directly inside a node, in the order they are written."""
    found: list[Node] = []
    kind: Any = type(node)
    for name in _parts(kind):
        _gather(getattr(node, name), found)
    return found


def _gather(value: Any, found: list[Node]) -> None:
    if isinstance(value, Node):
        found.append(value)
    elif isinstance(value, tuple):
        for part in value:
            _gather(part, found)


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a kind of node that may hold nodes of the formula."""
    found = [each for each in fields(kind) if re.search(r"\b(Node|Name)\b", str(each.type))]
    return tuple(each.name for each in found if each.compare)


@cache
def _changed_parts(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a kind of node that may hold nodes or slots."""
    found = [each for each in fields(kind) if re.search(r"\b(Node|Name|Slot)\b", str(each.type))]
    return tuple(each.name for each in found)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes in it."""
    return chain((node,), _inside(node))


def _inside(node: Node) -> tuple[Node, ...]:
    """Return all nodes inside a node, which are kept with it: formulas are walked many times."""
    kind: Any = type(node)
    if not _parts(kind):
        return ()
    try:
        return node._inside
    except AttributeError:
        found: list[Node] = []
        for child in children(node):
            found.append(child)
            found += _inside(child)
        object.__setattr__(node, "_inside", tuple(found))
        return node._inside


def bare(node: Node) -> Node:
    """Return a node without the brackets around it."""
    while isinstance(node, Group):
        node = node.inner
    return node


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return a tree, or a tuple of trees, with parts replaced.

    `change` takes a node or a slot, and returns what stands in its place, or None to go on with the
    parts of it. It is asked from the outside in.

    >>> turned = Power(Name("A"), "T")
    >>> latex(mapped(turned, {Name("A"): Name("B")}.get))
    'B^{T}'
    """
    if isinstance(node, tuple) and not isinstance(node, Slot):
        made = [mapped(part, change) for part in node]
        return node if all(map(is_, made, node)) else tuple(made)
    if not isinstance(node, Node | Slot):
        return node
    if (changed := change(node)) is not None:
        return changed
    if isinstance(node, Slot):
        return node
    kind: Any = type(node)
    parts = {name: getattr(node, name) for name in _changed_parts(kind)}
    others = {name: mapped(part, change) for name, part in parts.items()}
    others = {name: part for name, part in others.items() if part is not parts[name]}
    return replace(node, **others) if others else node


def with_arguments(node: Apply, change: Callable[[Any], Any]) -> Apply:
    """Return a function with its arguments changed as by `mapped`, and its name kept."""
    return replace(node, arguments=mapped(node.arguments, change))


def restyled(node: Any, style: str) -> Any:
    r"""Return a tree whose names are set in a style, as by `\mathbf{…}`."""

    def change(part: Any) -> Any:
        if isinstance(part, Name):
            return part if part.style else replace(part, style=style)
        return part if isinstance(part, Slot) else None

    return mapped(node, change)


def is_constant(node: Node) -> bool:
    """Return whether a term is an identity, a zero or ones."""
    inner = bare(node)
    if isinstance(inner, Number):
        return inner.text in ("0", "1")
    return isinstance(inner, Name) and (
        inner.base in ("I", "Id") or (inner.base in ("0", "1") and bool(inner.style))
    )


# -- printing back ---------------------------------------------------------------------------------


def latex(node: Any) -> str:
    r"""Return the LaTeX of a tree.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> print(latex(parse_formula(r"\left(A\otimes W_O W_V\right)^T = B")[0]))
    (A \otimes W_{O} W_{V})^{T} = B
    """
    return _WRITE[type(node)](node)


def _name(e: Name) -> str:
    text = e.base
    if len(text) > 1 and text[0] != "\\":
        text = rf"\mathrm{{{escaped(text)}}}"
    if e.style:
        text = rf"\math{e.style}{{{text}}}"
    for mark in (mark for mark in e.marks if mark != "Delta"):
        text = text + mark if mark == "'" else rf"\{mark}{{{text}}}"
    if "Delta" in e.marks:
        text = rf"\Delta {text}"
    sub = ",".join(map(_slot, e.sub)) + (f"[{e.select}]" if e.select else "")
    sup = ",".join(map(_slot, e.sup))
    return text + (f"_{{{sub}}}" if sub else "") + (f"^{{{sup}}}" if sup else "")


def escaped(text: str) -> str:
    """Return words as the argument of a command."""
    return re.sub(r"([_%&#$])", r"\\\1", text)


def _slot(slot: Slot) -> str:
    plain = slot.kind != "label" or len(slot.text) == 1 or slot.text.startswith("\\")
    if plain or ("_" in slot.text and not re.fullmatch(r"\w+", slot.text)):
        return slot.text
    return rf"\mathrm{{{escaped(slot.text)}}}"


def _sum(e: Sum) -> str:
    pairs = zip(e.signs, e.terms, strict=True)
    return " ".join(f"{sign} {latex(term)}".strip() for sign, term in pairs)


def _product(e: Product) -> str:
    pairs = zip(e.marks, e.factors, strict=True)
    return " ".join(f"{mark} {latex(factor)}".strip() for mark, factor in pairs)


def _power(e: Power) -> str:
    exponent = e.exponent if isinstance(e.exponent, str) else latex(e.exponent)
    base = latex(e.base)
    return f"{{{base}}}^{{{exponent}}}" if "^" in _tail(base, e.base) else f"{base}^{{{exponent}}}"


def _tail(text: str, node: Node) -> str:
    return text if isinstance(node, Name | Power) else ""


def _indexed(e: Indexed) -> str:
    indices = ",".join(e.indices)
    below = {
        "all": indices or r"\mathrm{all}",
        "from": f"{indices}={e.lower}",
        "in": rf"{indices} \in {e.lower}",
        "range": e.lower,
        "other": e.lower,
        "below": f"{e.lower}<{'' if e.upper is None else latex(e.upper)}",
    }[e.kind]
    above = "" if e.upper is None else f"^{{{latex(e.upper)}}}"
    under = f"_{{{below}}}" if below else ""
    if e.mark in (r"\dots", r"\vdots"):
        return f"[{latex(e.body)} {e.mark} {below}]"
    return f"{e.mark}{e.arrow}{under}{above} {latex(e.body)}"


def _norm(e: Norm) -> str:
    return f"{e.mark} {latex(e.argument)} {e.mark}" + (f"_{{{e.kind}}}" if e.kind else "")


def _grid(e: Grid) -> str:
    if e.bracket == "(":
        return f"({', '.join(latex(c) for c in e.rows[0])})"
    if e.bracket == "[":
        return "[" + "; ".join(", ".join(map(latex, row)) for row in e.rows) + "]"
    rows = [" & ".join("" if c is None else latex(c) for c in row) for row in e.rows]
    return r"\begin{bmatrix} " + r" \\ ".join(rows) + r" \end{bmatrix}"


def _group(e: Group) -> str:
    close = {"(": ")", "[": "]", r"\{": r"\}"}[e.bracket]
    return f"{e.bracket}{latex(e.inner)}{close}"


def _listing(e: Listing) -> str:
    inside = " ".join(f"{m} {latex(p)}".strip() for m, p in zip(e.marks, e.parts, strict=True))
    return f"{e.brackets[0]} {inside} {e.brackets[1]}".strip()


def _cases(e: Cases) -> str:
    rows = r" \\ ".join(" & ".join(map(latex, row)) for row in e.rows)
    return rf"\begin{{cases}} {rows} \end{{cases}}"


def _statement(e: Statement) -> str:
    text = latex(e.terms[0])
    for relation, term in zip(e.relations, e.terms[1:], strict=True):
        text += f" {relation} {latex(term)}"
    return ", ".join([*map(latex, e.subjects), text])


def _space(e: Space) -> str:
    sizes = r" \times ".join(map(latex, e.sizes))
    below = f"_{{{e.signs}}}" if e.signs else ""
    return r"\mathbb{R}" + below + (f"^{{{sizes}}}" if sizes else "")


def _apply(e: Apply) -> str:
    if e.function.base in PREFIXED:
        return f"{latex(e.function)} {latex(e.arguments[0])}"
    below = f"_{{{','.join(map(_slot, e.below))}}}" if e.below else ""
    return f"{latex(e.function)}({', '.join(map(latex, e.arguments))}){below}"


def _entry(e: Entry) -> str:
    if e.square:
        return f"{latex(e.base)}[{', '.join(slot.text for slot in e.indices)}]"
    base = latex(e.base)
    base = f"{{{base}}}" if isinstance(e.base, Power) else base
    return f"{base}_{{{','.join(map(_slot, e.indices))}}}"


def _derivative(e: Derivative) -> str:
    below = latex(e.variable)
    if isinstance(e.target, Name | Apply | Group | Norm):
        return rf"\frac{{\partial {latex(e.target)}}}{{\partial {below}}}"
    return rf"\frac{{\partial}}{{\partial {below}}} {latex(e.target)}"


def _differential(e: Differential) -> str:
    inner = latex(e.target)
    plain = isinstance(e.target, Name | Group | Apply)
    return f"d {inner}" if plain else f"d ({inner})"


def _root(e: Root) -> str:
    return rf"\sqrt{f'[{e.degree}]' if e.degree else ''}{{{latex(e.argument)}}}"


_WRITE: dict[type, Any] = {
    Number: lambda e: e.text,
    Name: _name,
    Sum: _sum,
    Product: _product,
    Tensor: lambda e: f" {e.mark} ".join(map(latex, e.factors)),
    Power: _power,
    Fraction: lambda e: rf"\frac{{{latex(e.above)}}}{{{latex(e.below)}}}",
    Derivative: _derivative,
    Differential: _differential,
    Root: _root,
    Indexed: _indexed,
    Apply: _apply,
    Entry: _entry,
    Norm: _norm,
    Grid: _grid,
    Group: _group,
    Listing: _listing,
    Cases: _cases,
    Dots: lambda e: e.text,
    Space: _space,
    Statement: _statement,
}
