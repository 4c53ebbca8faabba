r"""Approximations in a small number: to which order the sides agree, and what the error is.

`f \approx g` is never proved, as how near is near enough is not said; the order and the error are.
`f = g + O(\epsilon^2)` is proved where f is g and ε² times something exactly.
"""

from __future__ import annotations

from fractions import Fraction as Exact

import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import (
    Apply,
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
from otimes.proofs.documents.formulas.orders import error_of, shown
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.verdicts.judge import Judge

ZERO = Number("0")
ORDINAL = {0: "zeroth", 1: "first", 2: "second", 3: "third"}


def with_error(judge: Judge, left: Node, right: Node, line: int) -> Found | None:
    """Return to which order left ≈ right holds in a small number, and the error, or None."""
    agreed = -1
    rest: list[tuple[int, Name, Node]] = []
    for power, small, a, b in error_of(left, right):
        if not rest and _is_proved(judge, a, b, line):
            agreed = power
            continue
        rest.append((power, small, _difference(a, b)))
    if not rest or agreed < 0 or _depends(judge, rest[0][1], left, right):
        return None
    agreed = max(agreed, rest[0][0] - 1)
    error = " + ".join(shown(*each) for each in rest)
    order = ORDINAL.get(agreed, f"{agreed}th")
    why = f"the sides agree to {order} order in {latex(rest[0][1])}; left − right is {error}"
    return Found("undecided", why)


def of_order(judge: Judge, left: Node, right: Node, line: int) -> Found | None:
    """Return the verdict on left = right + O(εᵏ), or None where it is no such equation."""
    split = _without_order(right)
    if split is None:
        return None
    known, small, order = split
    powers = [each for each in error_of(left, known) if each[1].base == small.base]
    if not powers or _depends(judge, small, left, known):
        return None
    for power, _, a, b in powers:
        if power < order:
            found = judge.claim(a or ZERO, b or ZERO, line, "")
            if found.verdict != "proved":
                why = f"the terms with {latex(small)} to the power {power}: {found.why}"
                found.why = why
                return found
    rest = [(p, _difference(a, b)) for p, _, a, b in powers if p >= order]
    terms = [Product((_power(small, p), Group(c)), ("", "")) for p, c in rest]
    exact = Sum((Group(known), *terms), ("", *["+"] * len(terms))) if terms else known
    found = judge.claim(left, exact, line, "")
    if found.verdict != "proved":
        return Found("undecided", "the terms below the order agree")
    error = " + ".join(shown(p, small, c) for p, c in rest) or "0"
    found.why = f"the error is {error}, exactly; {found.why}"
    return found


def _power(small: Name, power: int) -> Node:
    return small if power == 1 else Power(small, Number(str(power)))


def _is_proved(judge: Judge, a: Node | None, b: Node | None, line: int) -> bool:
    found = judge.claim(a or ZERO, b or ZERO, line, "")
    return found.verdict == "proved" and not found.hypotheses


def _difference(a: Node | None, b: Node | None) -> Node:
    if b is None:
        return a or ZERO
    if a is None:
        return Sum((Group(b),), ("-",))
    return Sum((a, Group(b)), ("", "-"))


def _depends(judge: Judge, small: Name, *sides: Node) -> bool:
    """Return whether what a document defines has the small number in it."""
    put = judge.context.instances(sides)
    for side in sides:
        names = [e for e in walk(side) if isinstance(e, Name) and e.base != small.base]
        for name in names:
            whole = judge.context.unfolded(name, {}, None, put)
            if any(isinstance(e, Name) and e.base == small.base for e in walk(whole)):
                return True
    return False


def _without_order(node: Node) -> tuple[Node, Name, int] | None:
    r"""Return what stands before `O(\epsilon^2)`, the small number and its power."""
    inner = bare(node)
    if not isinstance(inner, Sum) or len(inner.terms) < 2 or inner.signs[-1] != "+":
        return None
    last = bare(inner.terms[-1])
    if isinstance(last, Apply) and len(last.arguments) == 1:
        letter, argument = last.function, last.arguments[0]
    elif isinstance(last, Product) and len(last.factors) == 2:
        first, argument = bare(last.factors[0]), last.factors[1]
        if not isinstance(first, Name):
            return None
        letter = first
    else:
        return None
    name = bare(argument)
    order = 1
    if isinstance(name, Power) and isinstance(name.exponent, Number):
        order, name = int(name.exponent.text), bare(name.base)
    if not isinstance(name, Name) or letter.base != "O":
        return None
    if len(name.sup) == 1 and name.sup[0].text.isdigit():
        order = int(name.sup[0].text)
    terms, signs = inner.terms[:-1], inner.signs[:-1]
    known = terms[0] if len(terms) == 1 and not signs[0] else Sum(terms, signs)
    return known, Name(name.base), order


# -- numbers that are rounded ----------------------------------------------------------------------


def value_of(node: Node) -> Exact | None:
    """Return the value of a term that is made of numbers only."""
    if any(isinstance(e, Name | Apply) for e in walk(node)):
        return None
    try:
        (term,) = elaborate([node], Symbols()).terms
    except OtimesError:
        return None
    return Exact(int(term.p), int(term.q)) if isinstance(term, sympy.Rational) else None


def rounded(left: Exact, right: Exact, shown: Node) -> Found | None:
    """Return the verdict on a number that is rounded to the digits shown, else None."""
    inner = bare(shown)
    if not isinstance(inner, Number):
        return None
    digits = len(inner.text.partition(".")[2])
    if abs(left - right) * 2 > Exact(1, 10**digits):
        return None
    return Found("undecided", "the number is right to the digits that are shown")
