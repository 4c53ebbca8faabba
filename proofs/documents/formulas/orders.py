r"""The error of an approximation whose step is visible: both sides expanded in a small number.

`(I + \epsilon A)(I + \epsilon B) \approx I + \epsilon (A + B)` holds to first order in ε, and the
exact error is ε² A B. The terms are polynomials in ε; an inverse of I and a rest is expanded as far
as the first order, with what remains of it written exactly.

>>> from otimes.algebra.notation.parser import parse_formula
>>> from otimes.algebra.notation.tree import latex
>>> term = parse_formula(r"(A + \epsilon B)(A + \epsilon B)")[0].terms[0]
>>> [latex(each) for each in expanded(term, r"\epsilon").values()]
['A A', 'A B + B A', 'B B']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from otimes.algebra.notation.tree import (
    Fraction,
    Group,
    Name,
    Node,
    Number,
    Power,
    Product,
    Sum,
    bare,
    latex,
    walk,
)

SMALL = (r"\epsilon", r"\varepsilon", r"\delta", r"\eta", "ε", r"\lambda", r"\alpha", r"\tau")
HIGHEST = 6  # of the powers of a small number
MOST_TERMS = 64
Terms = dict[int, list[tuple[str, tuple[Node, ...]]]]  # by power: signs and factors


def small_in(terms: Iterable[Node]) -> Name | None:
    """Return the one small number of terms: ε, δ, η, without indices."""
    found = {
        e.base: e
        for term in terms
        for e in walk(term)
        if isinstance(e, Name) and e.base in SMALL and not (e.sub or (e.sup and not _power(e)))
    }
    names = sorted(found, key=SMALL.index)
    return Name(names[0]) if names else None


def expanded(node: Node, small: str) -> dict[int, Node] | None:
    """Return the coefficients of a polynomial in a small number by their powers, or None."""
    terms = _terms(node, small)
    if terms is None or sum(map(len, terms.values())) > MOST_TERMS:
        return None
    return {power: _sum(each) for power, each in sorted(terms.items()) if each}


def _power(e: Name) -> int:
    """Return the power of a symbol with one number above it, 0 where it has none."""
    only = len(e.sup) == 1 and e.sup[0].kind == "number"
    return int(e.sup[0].text) if only and len(e.sup[0].text) == 1 else 0


def _terms(node: Node, small: str) -> Terms | None:
    inner = bare(node)
    if not any(isinstance(e, Name) and e.base == small for e in walk(inner)):
        return {0: [("+", (node,))]}
    if isinstance(inner, Name):
        power = _power(inner) if inner.sup else 1
        return {power: [("+", ())]} if power else None
    if isinstance(inner, Sum):
        return _of_sum(inner, small)
    if isinstance(inner, Product) and {*inner.marks} <= {"", r"\cdot"}:
        return _product([_terms(factor, small) for factor in inner.factors])
    if isinstance(inner, Fraction) and not _has(inner.below, small):
        above = _terms(inner.above, small)
        one = Fraction(Number("1"), inner.below)
        return None if above is None else _product([{0: [("+", (one,))]}, above])
    if isinstance(inner, Power):
        return _of_power(inner, small)
    return None


def _has(node: Node, small: str) -> bool:
    return any(isinstance(e, Name) and e.base == small for e in walk(node))


def _of_sum(node: Sum, small: str) -> Terms | None:
    found: Terms = {}
    for sign, term in zip(node.signs, node.terms, strict=True):
        parts = _terms(term, small) if sign in ("", "+", "-") else None
        if parts is None:
            return None
        for power, each in parts.items():
            found.setdefault(power, []).extend((_sign(sign, s), factors) for s, factors in each)
    return found


def _of_power(node: Power, small: str) -> Terms | None:
    """Expand a small whole power, or a transpose of a sum."""
    base = _terms(node.base, small)
    if base is None:
        return None
    if node.exponent == "T":
        return {
            power: [
                (s, tuple(Power(_grouped(f), "T") for f in reversed(factors)))
                for s, factors in each
            ]
            for power, each in base.items()
        }
    exponent = bare(node.exponent) if isinstance(node.exponent, Node) else None
    if isinstance(exponent, Number) and exponent.text in ("2", "3"):
        return _product([base] * int(exponent.text))
    return None


def _product(factors: Sequence[Terms | None]) -> Terms | None:
    found: Terms = {0: [("+", ())]}
    for factor in factors:
        if factor is None:
            return None
        made: Terms = {}
        for power, each in found.items():
            for other, more in factor.items():
                made.setdefault(power + other, []).extend(
                    (_sign(s, t), (*a, *b)) for s, a in each for t, b in more
                )
        if max(made) > HIGHEST or sum(map(len, made.values())) > MOST_TERMS:
            return None
        found = made
    return found


def _sign(a: str, b: str) -> str:
    return "-" if (a == "-") != (b == "-") else "+"


def _grouped(node: Node) -> Node:
    return Group(node) if isinstance(node, Sum | Product) else node


def _sum(each: list[tuple[str, tuple[Node, ...]]]) -> Node:
    terms = [_term(factors) for _, factors in each]
    signs = [sign for sign, _ in each]
    if signs[0] == "+":
        signs[0] = ""
    if len(terms) == 1 and not signs[0]:
        return terms[0]
    return Sum(tuple(terms), tuple(signs))


def _term(factors: tuple[Node, ...]) -> Node:
    """Return a product without the factors that are ones."""
    kept = [f for f in factors if not (_is_identity(f) and len(factors) > 1)]
    kept = kept or [*factors[:1]] or [Number("1")]
    if len(kept) == 1:
        return kept[0]
    flat = tuple(_grouped(f) if isinstance(f, Sum) else f for f in kept)
    return Product(flat, ("",) * len(flat))


def _is_identity(node: Node) -> bool:
    inner = bare(node)
    return isinstance(inner, Name) and inner.base in ("I", "Id") and not (inner.sup or inner.marks)


def error_of(left: Node, right: Node) -> Iterator[tuple[int, Name, Node | None, Node | None]]:
    """Yield, for each power of the small number, the coefficients of the two sides."""
    small = small_in((left, right))
    sides = [expanded(side, small.base) for side in (left, right)] if small else [None]
    if small is None or any(side is None for side in sides):
        return
    first, second = (side or {} for side in sides)
    for power in sorted({*first, *second}):
        yield power, small, first.get(power), second.get(power)


def shown(power: int, small: Name, coefficient: Node) -> str:
    """Return a term of an error as text."""
    above = f"^{{{power}}}" if power > 1 else ""
    return f"{latex(small)}{above} {latex(_grouped(coefficient))}"
