"""Hypotheses about the symbols of a document: those that words or the literature offer.

A word such as “orthogonal” near a symbol, a product `U Σ Vᵀ`, or a name such as `W_OV` stands for
an equation. It is offered: an equation that needs it is reported as such, unless it is declared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from otimes.algebra.notation.affine import half
from otimes.algebra.notation.symbols import key_of
from otimes.algebra.notation.tree import (
    Name,
    Node,
    Number,
    Power,
    Product,
    Slot,
    Tensor,
    bare,
    latex,
    mapped,
    walk,
)

# What the literature calls the products of the weights of a head, by convention.
CIRCUITS = {
    ("OV", "row"): ("V", "O", ""),
    ("OV", "column"): ("O", "V", ""),
    ("QK", "row"): ("Q", "K", "second"),
    ("QK", "column"): ("Q", "K", "first"),
}


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """An equation that may hold, its origin, and whether the document declares it.

    `line` is where a sentence says it, 0 for one that counts everywhere.
    """

    lhs: Node
    rhs: Node
    origin: str
    declared: bool
    line: int = 0

    def __str__(self) -> str:
        where = f" ({self.origin})" if self.origin else ""
        return f"{latex(self.lhs)} = {latex(self.rhs)}{where}"


def circuits(
    names: Collection[Name], defined: Collection[str], convention: str
) -> Iterator[Hypothesis]:
    """Yield the definitions of W_OV and W_QK in the literature, for those that occur.

    `defined` are the keys of those that mean what the document says; `convention` is "row",
    "column", or "" where both are possible.
    """
    labels = {slot.text for name in names if name.base == "W" for slot in name.sub[-1:]}
    if not labels & {"OV", "QK", "ov", "qk"}:
        return
    orders = [convention] if convention else ["row", "column"]
    for name in sorted(names, key=latex):
        label = name.sub[-1].text if name.sub and name.base == "W" else ""
        if label not in ("OV", "QK", "ov", "qk") or key_of(name) in defined:
            continue
        for side in orders:
            first, second, turned = CIRCUITS[label.upper(), side]
            parts = [_relabelled(name, part, label.islower()) for part in (first, second)]
            if turned == "first":
                parts[0] = Power(parts[0], "T")
            elif turned == "second":
                parts[1] = Power(parts[1], "T")
            product = Product(tuple(parts), ("", ""))
            yield Hypothesis(name, product, f"as in the literature, {side} convention", False)


def diagonals(nodes: Sequence[Node]) -> set[str]:
    """Return the middle factors of `U S V^T`."""
    found: set[str] = set()
    for e in (e for node in nodes for e in walk(node)):
        factors = [*map(bare, e.factors)] if isinstance(e, Product) else []
        if len(factors) == 3 and isinstance(factors[1], Name) and factors[1].base.isupper():
            last = factors[2]
            turned = isinstance(last, Power) and last.exponent in ("T", "-1")
            found |= {latex(factors[1])} if turned and isinstance(factors[0], Name) else set()
    return found


def patterns(nodes: Sequence[Node], without: Collection[str]) -> Iterator[Hypothesis]:
    """Yield that the rows of matrices sum to one, where these act on a column of ones.

    `without` are the symbols, as LaTeX, of which it is known what they are.
    """
    said: dict[str, Hypothesis] = {}
    for e in (e for node in nodes for e in walk(node) if isinstance(e, Product)):
        factors = [*map(bare, e.factors)]
        for at, ones in enumerate(factors):
            if not (isinstance(ones, Name) and ones.base == "1" and ones.style):
                continue
            for name in factors[:at]:
                if not isinstance(name, Name) or latex(name) in without:
                    continue
                if name.base.isupper() and name.base not in "WIJ":
                    origin = f"as in the literature, the rows of {latex(name)} sum to one"
                    product = Product((name, ones), ("", ""))
                    said.setdefault(latex(name), Hypothesis(product, ones, origin, False))
    yield from said.values()


def of_roots(names: Collection[Name]) -> Iterator[Hypothesis]:
    r"""Yield what roots of matrices are: `A^{1/2} A^{1/2} = A`, `A^{-1/2} A A^{-1/2} = I`."""
    for name in sorted(names, key=latex):
        if not half(name):
            continue
        base, origin = replace(name, sup=()), f"as {latex(name)} is meant"
        square: Node = Product((name, name), ("", ""))
        if half(name) > 0:
            yield Hypothesis(square, base, origin, True)
        else:
            inside = Product((name, base, name), ("", "", ""))
            yield Hypothesis(square, Power(base, "-1"), origin, True)
            yield Hypothesis(inside, Name("I"), origin, True)


def of_singular_vectors(nodes: Sequence[Node], middles: Collection[str]) -> Iterator[Hypothesis]:
    r"""Yield that U and V have orthonormal columns, where a product is `U \Sigma V^\top`."""
    said: dict[str, Hypothesis] = {}
    for e in (e for node in nodes for e in walk(node) if isinstance(e, Product)):
        factors = [*map(bare, e.factors)]
        for first, middle, last in zip(factors, factors[1:], factors[2:], strict=False):
            turned = bare(last.base) if isinstance(last, Power) and last.exponent == "T" else None
            usual = isinstance(middle, Name) and middle.base in (r"\Sigma", r"\Lambda")
            usual = usual or latex(middle) in middles
            for name in (first, turned) if usual and isinstance(turned, Name) else ():
                if isinstance(first, Name) and isinstance(name, Name):
                    origin = f"as in the literature, {latex(name)} has orthonormal columns"
                    product = Product((Power(name, "T"), name), ("", ""))
                    said.setdefault(latex(name), Hypothesis(product, Name("I"), origin, False))
    yield from said.values()


def names_in(*nodes: Node) -> Iterator[Name]:
    """Return the symbols in terms, without identities."""
    constants = ("I", "Id")
    return (
        e for node in nodes for e in walk(node) if isinstance(e, Name) and e.base not in constants
    )


def _relabelled(name: Name, label: str, small: bool) -> Node:
    slot = Slot("label" if not small else "index", label.lower() if small else label)
    return replace(name, sub=(*name.sub[:-1], slot))


def with_superscripts(hypothesis: Hypothesis, names: Collection[Name]) -> list[Hypothesis]:
    """Return a hypothesis with the superscripts that its symbols have in a claim."""
    own = list(names_in(hypothesis.lhs, hypothesis.rhs))
    if any(name.sup for name in own):
        return [hypothesis]
    found = {}
    for name in names:
        if any(key_of(name) == key_of(e) for e in own) and not half(name):
            decorated = [_decorated(side, name) for side in (hypothesis.lhs, hypothesis.rhs)]
            found[latex(decorated[0]), latex(decorated[1])] = replace(
                hypothesis, lhs=decorated[0], rhs=decorated[1]
            )
    return [*found.values()] or [hypothesis]


def _decorated(node: Any, like: Name) -> Any:
    """Return a term whose symbols have the superscripts and the style of another."""

    def change(part: Any) -> Any:
        if not isinstance(part, Name):
            return None
        if part.base in ("I", "Id", "1", "0"):
            return part
        return replace(part, sup=like.sup, style=like.style or part.style)

    return mapped(node, change)


def by_word(
    word: str, name: Name, names: Sequence[Name], line: int, square: bool = True
) -> Iterator[Hypothesis]:
    """Yield what a word such as “orthogonal”, on a line, says of a symbol, among others.

    `square`: whether it may be a square matrix.
    """
    turned, identity = Power(name, "T"), Name("I")
    ones = Name("1", "bf")
    origin = f"“{word}”, line {line}"
    if not name.base.lstrip("\\")[:1].isupper():  # a vector, or a number
        if word == "unit":  # a column, or a row
            for product in ((turned, name), (name, turned)):
                yield Hypothesis(Product(product, ("", "")), Number("1"), origin, False)
        return
    if word in ("orthogonal", "permutation", "rotation", "orthonormal columns"):
        yield Hypothesis(Product((turned, name), ("", "")), identity, origin, False)
        if square and word != "orthonormal columns":
            yield Hypothesis(Product((name, turned), ("", "")), identity, origin, False)
        if word == "permutation":  # its entries are 0 and 1
            yield Hypothesis(Tensor(r"\odot", (name, name)), name, origin, False)
    elif word == "row-stochastic":
        yield Hypothesis(Product((name, ones), ("", "")), ones, origin, False)
    elif word == "column-stochastic":
        row = Power(ones, "T")
        yield Hypothesis(Product((row, name), ("", "")), row, origin, False)
    elif word in ("symmetric", "diagonal"):
        yield Hypothesis(turned, name, origin, False)
        if word == "diagonal":
            yield Hypothesis(name, Tensor(r"\odot", (name, identity)), origin, False)
    elif word == "invertible":
        yield Hypothesis(Product((name, Power(name, "-1")), ("", "")), identity, origin, False)
    elif word == "idempotent":
        yield Hypothesis(Product((name, name), ("", "")), name, origin, False)
    elif word == "commute":
        for other in names:
            if latex(other) > latex(name):
                ab, ba = Product((name, other), ("", "")), Product((other, name), ("", ""))
                yield Hypothesis(ab, ba, origin, False)
