r"""Inequalities between ranks or norms, and statements with \ne and \approx.

A rank is at most what `facts` derives for all sizes, or what is known of the ranks of products and
sums. A norm of a product is at most the product of the norms, one of a sum at most their sum. What
is false is refuted by exact numbers; what is of neither form is left open.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction as Exact
from itertools import product
from typing import Any

import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import (
    Apply,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    bare,
    latex,
    walk,
)
from otimes.proofs.documents.proving.bounds import (
    RANKS,
    Facts,
    norm_at_most,
    number_at_most,
    of_rank,
    rank_at_most,
)
from otimes.proofs.documents.proving.norm_quotients import cleared, is_norm
from otimes.proofs.documents.proving.questions import decide
from otimes.proofs.documents.proving.scalar_examples import has_open_function
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.verdicts.approximations import rounded, value_of, with_error
from otimes.proofs.documents.verdicts.by_examples import (
    exceeded,
    is_bound,
    may_be_full,
    with_definitions,
)
from otimes.proofs.documents.verdicts.false_claims import COMMUTE, assumed
from otimes.proofs.documents.verdicts.judge import Judge

BUDGET = 1.0  # units of work for one inequality
SAMPLES = (1, 2, 3)  # sizes of counterexamples to a bound on a rank
MOST_SIZES = 5


def compared(judge: Judge, left: Node, right: Node, relation: str, line: int) -> Found | None:
    """Return the verdict on left ≤ right, or on another relation, None where it is not decided."""
    if relation in (r"\ge", ">"):
        left, right, relation = right, left, {r"\ge": r"\le", ">": "<"}[relation]
    if (
        relation == "<"
        and not judge.shapes([left], line, "")
        and not judge.shapes([right], line, "")
    ):
        return exceeded(judge.context, left, right, line)
    if relation != r"\le":
        return None
    if latex(bare(left)) == "0" and is_norm(right) and not judge.shapes([right], line, ""):
        return _by_facts(frozenset(("a norm is not negative",)), {})
    if not any(of_rank(e) is not None for side in (left, right) for e in walk(side)):
        found = _norms(judge, *cleared(left, right), line)
        return found or exceeded(judge.context, left, right, line)
    inner, found = bare(left), None
    if isinstance(inner, Apply) and inner.function.base in RANKS:
        found = _rank(judge.context, inner, right, line)
    elif of_rank(right) is not None:
        found = _at_least(judge.context, right, left, line)
    return found or exceeded(judge.context, left, right, line)


def different(judge: Judge, left: Node, right: Node, line: int, source: str) -> Found | None:
    """Return the verdict on left ≠ right: false where both are equal whatever the symbols are."""
    found = judge.claim(left, right, line, source)
    if found.verdict == "proved" and COMMUTE in assumed(left, right):
        return Found("undecided", "the two commute with these shapes, and not in general")
    if found.verdict == "proved" and (why := judge.context.maybe_map([left, right], line)):
        return Found("undecided", why)
    if found.verdict == "proved" and not found.hypotheses:
        return Found("refuted", f"both sides are equal: {found.why}", reading=found.reading)
    if found.verdict == "refuted":
        why = "the sides differ at exact numbers, and may be equal elsewhere"
        return Found("undecided", why, found.counterexample, reading=found.reading)
    return None


def approximate(judge: Judge, left: Node, right: Node, line: int, source: str) -> Found | None:
    """Return the verdict on left ≈ right: equal, or a rounded number, else None.

    How near is near enough is not said, so that it is never proved.
    """
    values = [value_of(side) for side in (left, right)]
    if values[0] is not None and values[1] is not None:
        return rounded(values[0], values[1], right)
    found = judge.claim(left, right, line, source)
    if found.verdict == "proved":
        return Found("undecided", f"the sides are even equal: {found.why}", reading=found.reading)
    return with_error(judge, left, right, line)


# -- ranks -----------------------------------------------------------------------------------------


def _rank(context: Context, left: Apply, right: Node, line: int) -> Found | None:
    """Return the verdict on rank(X) ≤ bound."""
    used: dict[str, Definition] = {}
    sides = with_definitions(context, [left.arguments[0], right], used)
    for inside, bound in ((left.arguments[0], right), sides):
        known = used if inside is not left.arguments[0] else {}

        def by_sizes(part: Node, size: Node, known: dict[str, Definition] = known) -> Facts | None:
            found = _bounded(part, size, context, line, known)
            return found.facts if found is not None and found.verdict == "proved" else None

        facts = rank_at_most(inside, bound, by_sizes)
        if facts is not None:
            return _by_facts(facts, known)
    for node in (bare(left.arguments[0]), sides[0]):
        found = _bounded(node, right, context, line, used if node is sides[0] else {})
        if found is not None:
            return found
    return _of_circuit(context, bare(left.arguments[0]), right, line)


def _at_least(context: Context, rank: Node, bound: Node, line: int) -> Found | None:
    """Return the refutation of rank(X) ≥ bound, where this is the most that the rank can be."""
    inside = of_rank(rank)
    upper = None if inside is None else _rank(context, Apply(Name("rank"), (inside,)), bound, line)
    if upper is None or upper.verdict != "proved" or inside is None:
        return None
    used: dict[str, Definition] = {}
    node, _ = with_definitions(context, [inside, bound], used)
    free = _is_free(node, context.symbols_at(line)) and not is_bound(node, context, line)
    if not free or may_be_full(context, line):
        return None
    return Found("refuted", f"it is at most that, and may be less: {upper.why}")


def _plainly(size: object) -> str:
    return str(size).replace("Min(", "min(")


def _by_facts(facts: Facts, used: dict[str, Definition]) -> Found:
    """Return the verdict on an inequality that facts prove; there is no certificate."""
    names = "".join(f"; with {text} as on line {d.line}" for text, d in sorted(used.items()))
    said = "; ".join(sorted(facts)) or "both sides are the same"
    return Found("proved", f"{said}{names}; without certificate", facts=facts)


def _of_circuit(context: Context, inside: Node, right: Node, line: int) -> Found | None:
    """Return the verdict on the rank of W_OV or W_QK as the literature has them."""
    names = {e for e in walk(inside) if isinstance(e, Name)}
    for given in context.circuits(names, ()):
        if latex(given.lhs) == latex(inside):
            found = _bounded(given.rhs, right, context, line, {})
            if found is not None:
                verdict = "needs-hypothesis" if found.verdict == "proved" else found.verdict
                said = "true" if found.verdict == "proved" else "false"
                return Found(verdict, f"{said} given {given}: {found.why}")
    return None


def _bounded(
    node: Node, right: Node, context: Context, line: int, used: dict[str, Definition]
) -> Found | None:
    """Return the verdict on rank(node) ≤ right by the sizes of its factors."""
    from otimes.algebra.facts import facts
    from otimes.algebra.facts.bounds import Numbers

    symbols = context.symbols_at(line)
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
        return _by_facts(
            frozenset((f"the rank is at most {_plainly(known)}, by its factors",)), used
        )
    if read.undeclared or not _is_free(node, symbols) or is_bound(node, context, line):
        return None
    return _exceeded(known, bound, names)


def _exceeded(known: Any, bound: Any, names: str) -> Found | None:
    """Return the refutation by sizes at which factors with a unit diagonal have a larger rank."""
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
    """Return whether a term is a product of declared matrices, of any values.

    Then its rank is the smallest of the sizes where they are ones on the diagonal.
    """
    names = [*_leaves(node)]
    for factor in names:
        known = symbols.lookup(factor)[1] if isinstance(factor, Name) else None
        if not isinstance(factor, Name) or known is None or not known.line:
            return False
        labels = [slot.text.upper() for slot in factor.sub]
        sizes = (known.rows, known.cols)
        if known.kind != "matrix" or labels in (["OV"], ["QK"]) or any(len(x) != 1 for x in sizes):
            return False
    return bool(names)


def _leaves(node: Node) -> Iterator[Node]:
    """Yield the factors of a product of products, without their transposes."""
    inner = bare(node)
    if isinstance(inner, Power) and inner.exponent == "T":
        yield from _leaves(inner.base)
    elif isinstance(inner, Product) and {*inner.marks} <= {"", r"\cdot"}:
        for factor in inner.factors:
            yield from _leaves(factor)
    else:
        yield inner


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


# -- norms -----------------------------------------------------------------------------------------


def _norms(judge: Judge, left: Node, right: Node, line: int) -> Found | None:
    """Return the verdict on an inequality of norms."""
    shape = judge.shapes([left], line, "") or judge.shapes([right], line, "")
    if shape is not None:
        return None
    used: dict[str, Definition] = {}
    sides = with_definitions(judge.context, [left, right], used)
    for known, (a, b) in (({}, (left, right)), (used, sides)):
        facts = norm_at_most(a, b)
        if facts is None and _is_number(judge.context, a, line):
            facts = number_at_most(a, b)
        if facts is not None:
            return _by_facts(facts, known)
    return _by_squares(judge.context, left, right, line)


def _is_number(context: Context, node: Node, line: int) -> bool:
    """Return whether bars enclose a scalar, and not a matrix (which would be a determinant)."""
    inner = bare(node)
    if not isinstance(inner, Norm):
        return False
    symbols = context.symbols_at(line)
    inside = bare(inner.argument)
    ends = [inside.factors[0], inside.factors[-1]] if isinstance(inside, Product) else []
    names = [bare(e.base) if isinstance(e, Power) else bare(e) for e in map(bare, ends)]
    known = [symbols.lookup(e)[1] for e in names if isinstance(e, Name)]
    if len(known) == 2 and all(each is not None and each.kind == "vector" for each in known):
        return True  # a row, and a column
    try:
        (term,) = elaborate([inner.argument], symbols).terms
    except OtimesError:
        return False
    return not getattr(term, "is_Matrix", False) or term.shape == (1, 1)


def _kind(norm: Node) -> str:
    assert isinstance(norm, Norm)
    return norm.kind.replace(r"\mathrm", "").strip("{}") if norm.mark == r"\|" else "|"


def _by_squares(context: Context, left: Node, right: Node, line: int) -> Found | None:
    """Return exact numbers at which a product of Frobenius norms is larger than another."""
    squares = [_squared(side) for side in (left, right)]
    if None in squares or has_open_function(left) or has_open_function(right):
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
