r"""The laws of ranks and norms by which inequalities are proved, each by its name.

A rank or a norm of a product is bounded by its factors, one of a sum by its terms; the two laws are
applied to the terms of a sum one by one. Each function returns the facts that a bound rests on.
There is no certificate of a bound: the facts are all that it rests on.

>>> from otimes.algebra.notation.parser import parse_formula
>>> (claim,) = parse_formula(r"\|A + B C\|_F \le \|A\|_F + \|B\|_F \|C\|_F")
>>> for law in sorted(norm_at_most(*claim.terms)):
...     print(law)
the norm of a product is at most the product of the norms
the norm of a sum is at most the sum of the norms
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

from otimes.algebra.notation.tree import (
    Apply,
    Node,
    Norm,
    Power,
    Product,
    Sum,
    bare,
    latex,
)

RANKS = ("rank", "rk", "Rank")
RANK_OF_PRODUCT = "the rank of a product is at most that of each factor"
RANK_OF_SUM = "the rank of a sum is at most the sum of the ranks"
NORM_OF_PRODUCT = "the norm of a product is at most the product of the norms"
NORM_OF_SUM = "the norm of a sum is at most the sum of the norms"
CAUCHY_SCHWARZ = "|uᵀv| is at most the product of the norms of u and v"
MOST_TERMS = 4

Facts = frozenset[str]
Factor = tuple[str, bool]
Law = Callable[[Node, Node], Facts | None]


def rank_at_most(inside: Node, bound: Node, by_sizes: Law) -> Facts | None:
    """Return the facts by which rank(inside) ≤ bound, or None where they do not give it.

    `by_sizes` returns the facts by which a rank is at most a size.
    """
    inside, bound = bare(inside), bare(bound)
    if isinstance(bound, Apply) and bound.function.base == "min":
        found = [rank_at_most(inside, part, by_sizes) for part in bound.arguments]
        return _all(found)
    one = of_rank(bound)
    if one is not None:
        own, part = factors(inside), factors(one)
        if own in (part, turned(part)):
            return frozenset()
        runs = [own[a : a + len(part)] for a in range(len(own))]
        return frozenset((RANK_OF_PRODUCT,)) if part in runs or turned(part) in runs else None
    found_by_sizes = by_sizes(inside, bound)
    if found_by_sizes is not None:
        return found_by_sizes
    return _term_by_term(
        inside, bound, RANK_OF_SUM, lambda term, part: rank_at_most(term, part, by_sizes)
    )


def number_at_most(left: Node, right: Node) -> Facts | None:
    """Return the facts by which |uᵀ M v|, of a number, is at most a product of norms, or None.

    It is the norm of a 1 × 1 matrix. That it is a number is for the caller to check.
    """
    left = bare(left)
    inner = bare(left.argument) if isinstance(left, Norm) and _kind(left) == "|" else None
    first = bare(inner.factors[0]) if isinstance(inner, Product) else None
    if inner is None or not (isinstance(first, Power) and first.exponent == "T"):
        return None
    found = _of_product(Norm(inner, "2", r"\|"), bare(right), any_kind=True)
    if found is None:
        return None
    return frozenset((CAUCHY_SCHWARZ,)) | (found if len(factors(inner)) > 2 else frozenset())


def norm_at_most(left: Node, right: Node) -> Facts | None:
    """Return the facts by which a norm is at most a sum of products of norms, or None."""
    left, right = bare(left), bare(right)
    if not isinstance(left, Norm) or left.mark != r"\|":
        return None
    whole = _of_product(left, right)
    if whole is not None:
        return whole
    return _term_by_term(
        bare(left.argument),
        right,
        NORM_OF_SUM,
        lambda term, part: norm_at_most(Norm(term, left.kind, left.mark), part),
    )


def of_rank(node: Node) -> Node | None:
    """Return X if a term is rank(X), else None."""
    inner = bare(node)
    if isinstance(inner, Apply) and inner.function.base in RANKS and len(inner.arguments) == 1:
        return bare(inner.arguments[0])
    return None


def factors(node: Node) -> list[Factor]:
    """Return the factors of a product, each with whether it is transposed.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> factors(parse_formula("(A B^T)^T C")[0].terms[0])
    [('B', False), ('A', True), ('C', False)]
    """
    inner = bare(node)
    if isinstance(inner, Power) and inner.exponent == "T":
        return turned(factors(inner.base))
    if isinstance(inner, Product) and {*inner.marks} <= {"", r"\cdot"}:
        return [each for factor in inner.factors for each in factors(factor)]
    return [(latex(inner), False)]


def turned(run: Sequence[Factor]) -> list[Factor]:
    """Return the factors of the transpose of a product; rank and norms are unchanged."""
    return [(text, not flipped) for text, flipped in reversed(run)]


def _term_by_term(inside: Node, bound: Node, law: str, at_most: Law) -> Facts | None:
    """Return the facts that bound each term of a sum by a term of the bound, or None."""
    if not (isinstance(inside, Sum) and isinstance(bound, Sum)):
        return None
    if len(inside.terms) != len(bound.terms) or len(inside.terms) > MOST_TERMS:
        return None
    if not {*bound.signs} <= {"", "+"} or not {*inside.signs} <= {"", "+", "-"}:
        return None
    for parts in permutations(bound.terms):
        found = _all([at_most(term, part) for term, part in zip(inside.terms, parts, strict=True)])
        if found is not None:
            return found | {law}
    return None


def _all(found: Sequence[Facts | None]) -> Facts | None:
    every = [each for each in found if each is not None]
    return frozenset().union(*every) if every and len(every) == len(found) else None


def _of_product(left: Norm, right: Node, any_kind: bool = False) -> Facts | None:
    """Return the facts that bound the norm of a product by a product of norms, or None."""
    bounds = right.factors if isinstance(right, Product) else (right,)
    if isinstance(right, Product) and not {*right.marks} <= {"", r"\cdot"}:
        return None
    norms = [bound for bound in map(bare, bounds) if isinstance(bound, Norm)]
    if len(norms) != len(bounds) or len(norms) > MOST_TERMS:
        return None
    if not _fit(_kind(left), {_kind(norm) for norm in norms}, any_kind):
        return None
    own = factors(left.argument)
    if not any(_is_made_of(own, order) for order in permutations(norms)):
        return None
    return frozenset((NORM_OF_PRODUCT,)) if len(norms) > 1 else frozenset()


def _is_made_of(own: Sequence[Factor], norms: Sequence[Norm]) -> bool:
    """Return whether the factors are the arguments of the norms in this order, up to transposes."""
    rest = [*own]
    for norm in norms:
        run = factors(norm.argument)
        begin, rest = rest[: len(run)], rest[len(run) :]
        if begin not in (run, turned(run)):
            return False
    return not rest


def _fit(kind: str, kinds: set[str], any_kind: bool) -> bool:
    """Return whether a norm of a kind is at most a product of norms of some kinds.

    ‖X‖₂ ≤ ‖X‖_F, and ‖X Y‖_F ≤ ‖X‖₂ ‖Y‖_F. A norm without index is one norm in all places.
    """
    if any_kind:
        return kinds <= {"", "2", "F"}
    if kind == "F":
        return "F" in kinds and kinds <= {"2", "F"}
    return kinds <= {"2", "F"} if kind == "2" else kind == "" and kinds == {""}


def _kind(norm: Norm) -> str:
    return norm.kind.replace(r"\mathrm", "").strip("{} ") if norm.mark == r"\|" else "|"
