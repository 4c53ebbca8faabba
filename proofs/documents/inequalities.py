r"""Inequalities that can be decided: of ranks, of norms; and statements with \ne and \approx.

A rank is at most what `facts` derives for all sizes, or what is known of the ranks of products and
sums. A norm of a product is at most the product of the norms, one of a sum at most their sum. What
is false is refuted by exact numbers; what is of neither form is left open.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as Exact
from itertools import product
from typing import Any

import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Symbols, full_key
from otimes.algebra.notation.tree import (
    Apply,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Sum,
    bare,
    latex,
    walk,
)
from otimes.algebra.verdict import decide
from otimes.proofs.documents.context import Context, Definition
from otimes.proofs.documents.judge import Found, Judge

BUDGET = 1.0  # units of work for one inequality
SAMPLES = (1, 2, 3)  # sizes of counterexamples to a bound on a rank
MOST_SIZES = 5
RANKS = ("rank", "rk", "Rank")


def compared(judge: Judge, left: Node, right: Node, relation: str, line: int) -> Found | None:
    """Return the verdict on left ≤ right, or on another relation, None where it is not decided."""
    if relation in (r"\ge", ">"):
        left, right, relation = right, left, {r"\ge": r"\le", ">": "<"}[relation]
    inner = bare(left)
    if isinstance(inner, Apply) and inner.function.base in RANKS and relation == r"\le":
        return _rank(judge.context, inner, right, line)
    if relation == r"\le":
        return _norms(judge, left, right, line)
    return None


def different(judge: Judge, left: Node, right: Node, line: int, source: str) -> Found | None:
    """Return the verdict on left ≠ right: false where both are equal whatever the symbols are."""
    found = judge.claim(left, right, line, source)
    if found.verdict == "proved" and not found.hypotheses:
        return Found("refuted", f"both sides are equal: {found.why}", reading=found.reading)
    if found.verdict == "refuted":
        why = "the sides differ at exact numbers, and may be equal elsewhere"
        return Found("undecided", why, found.counterexample, reading=found.reading)
    return None


def approximate(judge: Judge, left: Node, right: Node, line: int, source: str) -> Found | None:
    """Return what is known of left ≈ right: that both are equal, or a number rounded.

    How near is near enough is not said, so that it is never proved.
    """
    values = [_value(side) for side in (left, right)]
    if values[0] is not None and values[1] is not None:
        return _rounded(values[0], values[1], right)
    found = judge.claim(left, right, line, source)
    if found.verdict == "proved":
        return Found("undecided", f"the sides are even equal: {found.why}", reading=found.reading)
    return None


# -- ranks -----------------------------------------------------------------------------------------


def _rank(context: Context, left: Apply, right: Node, line: int) -> Found | None:
    """Return the verdict on rank(X) ≤ bound."""
    inside = bare(left.arguments[0])
    law = _law_of_ranks(inside, right)
    if law:
        return Found("proved", law)
    symbols = context.symbols_at(line)
    used: dict[str, Definition] = {}
    put = context.instances([inside])
    for node in (inside, context.unfolded(inside, used, None, put)):
        found = _bounded(node, right, symbols, used if node is not inside else {})
        if found is not None:
            return found
    names = {e for e in walk(inside) if isinstance(e, Name)}
    for given in context.circuits(names, ()):
        if latex(given.lhs) == latex(inside):
            found = _bounded(given.rhs, right, symbols, {})
            if found is not None:
                verdict = "needs-hypothesis" if found.verdict == "proved" else found.verdict
                said = "true" if found.verdict == "proved" else "false"
                return Found(verdict, f"{said} given {given}: {found.why}")
    return None


def _bounded(
    node: Node, right: Node, symbols: Symbols, used: dict[str, Definition]
) -> Found | None:
    """Return the verdict on rank(node) ≤ right by the sizes of its factors."""
    from otimes.algebra.facts import facts
    from otimes.algebra.facts.bounds import Numbers

    bound = _size(right, symbols)
    try:
        read = elaborate([node], symbols)
        known = facts(read.terms[0]).rank_at_most
    except (OtimesError, AttributeError):
        return None
    if bound is None:
        return None
    names = "".join(f"; with {text} as on line {d.line}" for text, d in sorted(used.items()))
    sizes = known.free_symbols | bound.free_symbols
    if Numbers(sizes).never_exceeds(known, bound):
        return Found("proved", f"the rank is at most {known}{names}")
    if read.undeclared or not _is_free(node, symbols):
        return None
    return _exceeded(known, bound, names)


def _exceeded(known: Any, bound: Any, names: str) -> Found | None:
    """Return sizes for which factors with ones on the diagonal have a product of a larger rank."""
    sizes = sorted(known.free_symbols | bound.free_symbols, key=str)
    if len(sizes) > MOST_SIZES:
        return None
    for values in product(SAMPLES, repeat=len(sizes)):
        at = dict(zip(sizes, values, strict=True))
        most, said = known.subs(at), bound.subs(at)
        if most > said:
            shown = ", ".join(f"{size} = {value}" for size, value in at.items())
            why = (
                f"the rank is {most} and the bound {said} for {shown} where each factor has ones "
                f"on its diagonal{names}"
            )
            return Found("refuted", why)
    return None


def _is_free(node: Node, symbols: Symbols) -> bool:
    """Return whether a term is a product of different declared matrices, of any values.

    Then its rank is the smallest of the sizes where they are ones on the diagonal.
    """
    inner = bare(node)
    names = []
    for factor in inner.factors if isinstance(inner, Product) else (inner,):
        factor = bare(factor)
        factor = (
            bare(factor.base) if isinstance(factor, Power) and factor.exponent == "T" else factor
        )
        if not isinstance(factor, Name):
            return False
        known = symbols.lookup(factor)[1]
        if known is None or not known.line or known.kind != "matrix":
            return False
        labels = [slot.text.upper() for slot in factor.sub]
        if labels in (["OV"], ["QK"]) or any(len(size) != 1 for size in (known.rows, known.cols)):
            return False
        names.append(full_key(factor) + latex(factor))
    return len({*names}) == len(names)


def _size(node: Node, symbols: Symbols) -> Any:
    r"""Return a bound such as `2r` or `\min(d, d_h)` as an expression in sizes, or None."""
    inner = bare(node)
    if isinstance(inner, Apply) and inner.function.base == "min":
        parts = [_size(argument, symbols) for argument in inner.arguments]
        return None if None in parts else sympy.Min(*parts, evaluate=False)
    if isinstance(inner, Apply):
        return None
    try:
        (term,) = elaborate([inner], symbols).terms
    except OtimesError:
        return None
    whole = all(each.is_integer and each.is_positive for each in term.free_symbols)
    return term if whole and not getattr(term, "is_Matrix", False) else None


def _law_of_ranks(inside: Node, right: Node) -> str:
    """Return why a rank is at most one bound by other ranks, or nothing."""
    bound = bare(right)
    if isinstance(bound, Apply) and bound.function.base == "min":
        parts = [_of_rank(argument) for argument in bound.arguments]
        factors = _factors(inside)
        runs = [factors[a:b] for a in range(len(factors)) for b in range(a + 1, len(factors) + 1)]
        if parts and all(part is not None and _factors(part) in runs for part in parts):
            return "the rank of a product is at most that of each factor"
    if isinstance(inside, Sum) and isinstance(bound, Sum) and {*bound.signs} <= {"", "+"}:
        terms = sorted(latex(bare(term)) for term in inside.terms)
        parts = [_of_rank(term) for term in bound.terms]
        if sorted(latex(part) for part in parts if part is not None) == terms:
            return "the rank of a sum is at most the sum of the ranks"
    one = _of_rank(bound)
    if one is not None and len(_factors(inside)) > 1:
        factors, part = _factors(inside), _factors(one)
        runs = [factors[a : a + len(part)] for a in range(len(factors))]
        if part in runs:
            return "the rank of a product is at most that of each factor"
    return ""


def _of_rank(node: Node) -> Node | None:
    inner = bare(node)
    if isinstance(inner, Apply) and inner.function.base in RANKS and len(inner.arguments) == 1:
        return bare(inner.arguments[0])
    return None


def _factors(node: Node) -> list[str]:
    """Return the factors of a product, without transposes by what a rank or a norm says of it."""
    inner = bare(node)
    if isinstance(inner, Power) and inner.exponent == "T":
        return _factors(inner.base)[::-1]
    if isinstance(inner, Product) and {*inner.marks} <= {"", r"\cdot"}:
        return [each for factor in inner.factors for each in _factors(factor)]
    return [latex(inner)]


# -- norms -----------------------------------------------------------------------------------------


def _norms(judge: Judge, left: Node, right: Node, line: int) -> Found | None:
    """Return the verdict on an inequality of norms."""
    shape = judge.shapes([left], line, "") or judge.shapes([right], line, "")
    if shape is not None:
        return None
    law = _law_of_norms(bare(left), bare(right))
    if law:
        return Found("proved", law)
    return _by_squares(judge.context, left, right, line)


def _law_of_norms(left: Node, right: Node) -> str:
    bounds = right.factors if isinstance(right, Product) else (right,)
    norms = [bare(bound) for bound in bounds]
    if isinstance(left, Norm) and norms and all(isinstance(norm, Norm) for norm in norms):
        kinds = {_kind(left)} | {_kind(norm) for norm in norms}
        runs = [_factors(norm.argument) for norm in norms if isinstance(norm, Norm)]
        whole = [each for run in runs for each in run]
        known = kinds <= {"F"} or kinds <= {"", "2"} or (kinds <= {"2", "F"} and _has(norms, left))
        if len(runs) > 1 and known and whole == _factors(left.argument):
            return "the norm of a product is at most the product of the norms"
    sums = bare(left.argument) if isinstance(left, Norm) else left
    if isinstance(left, Norm) and isinstance(sums, Sum) and isinstance(right, Sum):
        parts = [bare(term) for term in right.terms]
        same = [latex(p.argument) for p in parts if isinstance(p, Norm) and p.kind == left.kind]
        plain = left.mark == r"\|" and {*right.signs} <= {"", "+"}
        if plain and sorted(same) == sorted(latex(bare(term)) for term in sums.terms):
            return "the norm of a sum is at most the sum of the norms"
    return ""


def _kind(norm: Node) -> str:
    assert isinstance(norm, Norm)
    return norm.kind.replace(r"\mathrm", "").strip("{}") if norm.mark == r"\|" else "|"


def _has(norms: Sequence[Node], left: Norm) -> bool:
    """Return whether norms of two kinds fit: of a Frobenius norm, one factor has one, too."""
    return _kind(left) == "2" or any(_kind(norm) == "F" for norm in norms)


def _by_squares(context: Context, left: Node, right: Node, line: int) -> Found | None:
    """Return exact numbers at which a product of Frobenius norms is larger than another."""
    squares = [_squared(side) for side in (left, right)]
    if None in squares:
        return None
    try:
        read = elaborate([side for side in squares if side], context.symbols_at(line))
        verdict = decide(read.terms[0], read.terms[1], budget=BUDGET)
    except OtimesError:
        return None
    if verdict.status == "proved":
        return Found("proved", f"the sides are equal: {verdict.reason}")
    example = verdict.counterexample
    if verdict.status != "refuted" or read.undeclared or read.doubts or example is None:
        return None
    values = _number(example.lhs), _number(example.rhs)
    if values[0] is not None and values[1] is not None and values[0] > values[1]:
        return Found("refuted", "the left side is larger: their squares are", example)
    return None


def _squared(node: Node) -> Node | None:
    """Return the square of a product of Frobenius norms, or None for another term."""
    inner = bare(node)
    factors = inner.factors if isinstance(inner, Product) else (inner,)
    found: list[Node] = []
    for factor in map(bare, factors):
        if isinstance(factor, Norm) and _kind(factor) == "F":
            found.append(Power(factor, Number("2")))
        elif isinstance(factor, Number):
            found += [factor, factor]
        else:
            return None
    return Product(tuple(found), ("",) * len(found)) if len(found) > 1 else found[0]


def _number(value: Any) -> Exact | None:
    try:
        return Exact(str(value))
    except (ValueError, ZeroDivisionError):
        return None


# -- numbers that are rounded ----------------------------------------------------------------------


def _value(node: Node) -> Exact | None:
    """Return the value of a term that is made of numbers only."""
    if any(isinstance(e, Name | Apply) for e in walk(node)):
        return None
    try:
        (term,) = elaborate([node], Symbols()).terms
    except OtimesError:
        return None
    return Exact(int(term.p), int(term.q)) if isinstance(term, sympy.Rational) else None


def _rounded(left: Exact, right: Exact, shown: Node) -> Found | None:
    """Return that a number is rounded to the digits that are shown, None where it is not."""
    inner = bare(shown)
    if not isinstance(inner, Number):
        return None
    digits = len(inner.text.partition(".")[2])
    if abs(left - right) * 2 > Exact(1, 10**digits):
        return None
    return Found("undecided", "the number is right to the digits that are shown")
