"""Declared properties as hypotheses of `decide`: equations, and nonnegative entries.

A hypothesis may be a pair, a `sympy.Eq`, an inequality, a `Fact`, the facts that
`attention_pattern` returns, or a predicate of SymPy such as `Q.orthogonal(P)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import sympy
from sympy import HadamardProduct, Identity, Inverse, MatrixSymbol, OneMatrix, Transpose, ZeroMatrix
from sympy.assumptions.assume import AppliedPredicate

from otimes.algebra.errors import LanguageError, ShapeError
from otimes.algebra.facts.fact import Fact
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.linear import Family, FamilyMember, matmul
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.language.sizes import same_size

Pair = tuple[Any, Any]

PREDICATES: dict[str, tuple[str, ...]] = {
    "symmetric": ("symmetric",),
    "orthogonal": ("orthogonal",),
    "diagonal": ("diagonal",),
    "lower_triangular": ("lower_triangular",),
    "upper_triangular": ("upper_triangular",),
    "invertible": ("invertible",),
    "positive_definite": ("positive_semidefinite", "invertible"),
    "real_elements": (),
    "square": (),
}
"""SymPy's predicates of matrices, and the properties that they are; entries are real as it is."""

OF_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "positive": lambda x: sympy.Gt(x, 0),
    "negative": lambda x: sympy.Lt(x, 0),
    "nonnegative": lambda x: sympy.Ge(x, 0),
    "nonpositive": lambda x: sympy.Le(x, 0),
    "nonzero": lambda x: sympy.Ne(x, 0),
    "real": lambda x: sympy.true,
}
"""SymPy's predicates of numbers, as inequalities."""


class Stated(NamedTuple):
    """Hypotheses in the form that `decide` uses.

    `given`: pairs and inequalities; `places`: for each the number of the hypothesis it comes from;
    `nonnegative`: the names of the matrices and families without a negative entry.
    """

    given: tuple[Any, ...]
    places: tuple[int, ...]
    nonnegative: frozenset[str]


def stated(given: Any) -> Stated:
    """Return hypotheses in the form that `decide` uses. Raises: LanguageError for anything else.

    >>> n = sympy.Symbol("n")
    >>> A = MatrixSymbol("A", n, n)
    >>> stated([Fact("symmetric", A), sympy.Q.orthogonal(A)]).given
    ((A.T, A), (A.T*A, I))
    """
    if isinstance(given, Fact | AppliedPredicate):
        given = [given]
    given = [given] if isinstance(given, Need) else given
    if not isinstance(given, Iterable):
        return Stated(given, (), frozenset())  # which the judge refuses by its own sentence
    found, places, nonnegative = [], [], set()
    for place, each in enumerate(given):
        for one in facts_in([each]):
            if isinstance(one, Fact) and one.name in ("nonnegative", "row_stochastic"):
                nonnegative.add(_named(one))
            read = [*equations_of(one)] if isinstance(one, Fact) else [one]
            found += read
            places += [place] * len(read)
    return Stated(tuple(found), tuple(places), frozenset(nonnegative))


def facts_in(given: Iterable[Any]) -> Iterator[Any]:
    """Yield hypotheses one by one: the facts in a tuple of facts, SymPy's predicates as facts."""
    for each in given:
        if isinstance(each, AppliedPredicate):
            yield from _of_predicate(each)
        elif isinstance(each, sympy.And) and any(
            isinstance(a, AppliedPredicate) for a in each.args
        ):
            yield from facts_in(each.args)
        elif isinstance(each, Need):
            raise LanguageError(_not_a_need(each))
        elif isinstance(each, tuple | list) and each and all(isinstance(a, Fact) for a in each):
            yield from each
        else:
            yield each


def _not_a_need(need: Need) -> str:
    """Return what to write for a `Need` that was given as a hypothesis."""
    asked = f"a hypothesis of given= is an equation or a property, and the Need ‘{need}’ was given"
    if need.given:
        return f"{asked}: write given=[*need.given], which are its hypotheses"
    return f"{asked}: it is about sizes; decide(need.lhs, need.rhs) is the claim at these"


def _of_predicate(said: AppliedPredicate) -> Iterator[Any]:
    name, subject = str(said.function.name), said.arguments[0]
    is_matrix = getattr(subject, "is_Matrix", False)
    if is_matrix and name in PREDICATES:
        for each in PREDICATES[name]:
            yield Fact(each, subject)
    elif not is_matrix and name in OF_NUMBERS:
        yield OF_NUMBERS[name](subject)
    else:
        known = PREDICATES if is_matrix else OF_NUMBERS
        raise LanguageError(
            f"the hypothesis Q.{name} is not understood; known are "
            f"{', '.join(f'Q.{each}' for each in known)}, and otimes.Fact has more properties"
        )


def _named(fact: Fact) -> str:
    subject = fact.subject
    if isinstance(subject, FamilyMember):
        return str(subject.family.name)
    if isinstance(subject, MatrixSymbol | Family):
        return str(subject.name)
    raise LanguageError(
        f"the hypothesis “{fact}” is understood of a MatrixSymbol or a Family, not of a product or "
        "sum: name it by a symbol, with an equation"
    )


def equations_of(fact: Fact) -> Iterator[Pair]:
    """Yield the equations that state a declared property; none for "nonnegative".

    A rank of at most r is a product of r columns and r rows, a positive semidefinite matrix F Fᵀ,
    with new symbols. A family is declared for each of its members.
    """
    x, name = fact.subject, fact.name
    if name == "nonnegative":
        return
    if isinstance(x, Family):
        x = x[tuple(sympy.Symbol(f"index_{k}", integer=True) for k in range(len(x.counts)))]
    rows, cols = x.shape
    if name in ("row_stochastic", "permutation"):
        yield matmul(x, OneMatrix(cols, 1)), OneMatrix(rows, 1)
    if name in ("column_stochastic", "permutation"):
        yield matmul(OneMatrix(1, rows), x), OneMatrix(1, cols)
    if name == "permutation":
        yield HadamardProduct(x, x), x
    if name in ONE_EQUATION:
        yield ONE_EQUATION[name](x, fact.value)
    elif name == "rank_at_most":
        tall = MatrixSymbol(f"columns_of_{_name(x)}", rows, fact.value)
        wide = MatrixSymbol(f"rows_of_{_name(x)}", fact.value, cols)
        yield x, matmul(tall, wide)
    elif name == "positive_semidefinite":
        factor = MatrixSymbol(f"factor_of_{_name(x)}", rows, rows)
        yield x, matmul(factor, Transpose(factor))


def _name(x: Any) -> str:
    return str(getattr(x, "name", x))


ONE_EQUATION: dict[str, Callable[[Any, Any], Pair]] = {
    "zero": lambda x, _: (x, ZeroMatrix(*x.shape)),
    "identity": lambda x, _: (x, Identity(x.shape[0])),
    "orthogonal": lambda x, _: (matmul(Transpose(x), x), Identity(x.shape[1])),
    "orthonormal_columns": lambda x, _: (matmul(Transpose(x), x), Identity(x.shape[1])),
    "orthonormal_rows": lambda x, _: (matmul(x, Transpose(x)), Identity(x.shape[0])),
    "diagonal": lambda x, _: (x, HadamardProduct(x, Identity(x.shape[0]))),
    "lower_triangular": lambda x, _: (x, HadamardProduct(x, CausalMask(x.shape[0]))),
    "upper_triangular": lambda x, _: (x, HadamardProduct(x, Transpose(CausalMask(x.shape[0])))),
    "projection": lambda x, _: (matmul(x, x), x),
    "symmetric": lambda x, _: (Transpose(x), x),
    "antisymmetric": lambda x, _: (Transpose(x), matmul(-1, x)),
    "rows_sum_to_one": lambda x, _: (matmul(x, OneMatrix(x.shape[1], 1)), OneMatrix(x.shape[0], 1)),
    "columns_sum_to_one": lambda x, _: (
        matmul(OneMatrix(1, x.shape[0]), x),
        OneMatrix(1, x.shape[1]),
    ),
    "rows_sum_to": lambda x, c: (
        matmul(x, OneMatrix(x.shape[1], 1)),
        matmul(c, OneMatrix(x.shape[0], 1)),
    ),
    "columns_sum_to": lambda x, c: (
        matmul(OneMatrix(1, x.shape[0]), x),
        matmul(c, OneMatrix(1, x.shape[1])),
    ),
    "invertible": lambda x, _: (matmul(x, Inverse(x)), Identity(x.shape[0])),
    "commutes_with": lambda x, y: (matmul(x, y), matmul(y, x)),
    "times_is_identity": lambda x, y: (matmul(x, y), Identity(x.shape[0])),
}
"""The properties that are one equation, of a matrix and the value of the property."""


class Need(NamedTuple):
    """A hypothesis under which a refuted claim is true: in words, and for `decide`.

    Where it is one about sizes, `given` is empty, and `lhs` and `rhs` are the claim at these sizes.
    """

    says: str
    given: tuple[Any, ...]
    lhs: Any
    rhs: Any

    def __str__(self) -> str:
        return self.says

    def __repr__(self) -> str:
        return self.says


def usual_hypotheses(lhs: Any, rhs: Any, signature: Any) -> Iterator[Need]:
    """Yield the hypotheses that a claim usually lacks, the smallest first.

    Of one matrix: symmetric, rows that sum to one, causal, orthogonal, orthonormal rows or columns,
    idempotent, diagonal; a bias that is zero; of all square ones: symmetric, orthogonal, …; of two:
    commuting, a one-sided inverse; of sizes: one head, square matrices.
    """
    tensors = [(name, tensor, tensor.shape) for name, tensor in signature.tensors.items()]

    def need(fact: Fact) -> Need:
        return Need(str(fact), (fact,), lhs, rhs)

    for name, x, (rows, cols) in tensors:
        if name.startswith("b") and 1 in (rows, cols):
            yield need(Fact("zero", x))
    square = [(x, shape) for _, x, shape in tensors if same_size(*shape) and shape[0] != 1]
    for property_ in ("symmetric", "rows_sum_to_one", "lower_triangular", "orthogonal"):
        for x, _ in square:
            yield need(Fact(property_, x))
    for _, x, shape in tensors:
        if not same_size(*shape) and 1 not in shape:
            for property_ in ("orthonormal_columns", "orthonormal_rows", "rows_sum_to_one"):
                yield need(Fact(property_, x))
    for property_ in ("projection", "diagonal"):
        for x, _ in square:
            yield need(Fact(property_, x))
    if len(square) > 1:
        for property_ in ("symmetric", "rows_sum_to_one", "orthogonal", "diagonal"):
            facts = tuple(Fact(property_, x) for x, _ in square)
            yield Need(" and ".join(map(str, facts)), facts, lhs, rhs)
    plain = [(x, shape) for _, x, shape in tensors if isinstance(x, MatrixSymbol)]
    for k, (x, (n, m)) in enumerate(plain):
        for y, (p, q) in plain[k + 1 :]:
            if all(same_size(n, size) for size in (m, p, q)) and n != 1:
                yield need(Fact("commutes_with", x, y))
    for x, (n, m) in plain:
        for y, (p, q) in plain:
            if x != y and same_size(m, p) and same_size(n, q) and 1 not in (n, m):
                yield need(Fact("times_is_identity", x, y))
    counts = {count: 1 for _, x, _ in tensors if isinstance(x, Family) for count in x.counts}
    equal = {shape[1]: shape[0] for _, _, shape in tensors if not same_size(*shape)}
    for size, value in (*counts.items(), *equal.items()):
        if (isinstance(size, sympy.Symbol) and 1 not in (size, value)) or value == 1:
            says = f"{size} = {value}" + (": one head" if value == 1 else ": square matrices")
            try:
                sides = [substituted(side, {size: value}) for side in (lhs, rhs)]
            except ShapeError:
                continue  # a member that there is not at this size
            yield Need(says, (), *sides)
