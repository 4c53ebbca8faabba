"""The class of rewrite rules, and functions that rebuild expression trees unevaluated.

A rule is a function from an expression to the expressions it may be replaced by, all equal to it
for every size. It is named `subject_operation`; used from right to left it keeps its name. A rule
only proposes: `Step.check` has `decide` prove each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.binders import free_symbols, substituted
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    OneHot,
    StackHeads,
    as_product,
    kron,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.positions import KINDS
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.language.unicode import unicode_text

Expression = Any  # a SymPy matrix expression or scalar
Equation = tuple[Expression, Expression]
Path = tuple[int, ...]  # positions of arguments, from the root down
Build = Callable[[Any], Iterator[Expression]]
Relate = Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rule: it rewrites expressions whose type is exactly one of `kinds`.

    A rule either builds its results, or (where there are too many to list: an order, arithmetic)
    tests whether it takes one expression to another. `example` is an expression that it rewrites,
    and the reading of the rule is that use of it. `after` is the result for a rule that builds
    none. `premises` are the equations under which the example is true. `of`, if given, is the type
    that the first argument of the expression must have. A rule that is `coarse` stands for many
    small steps; it is used where these would fill a page.
    """

    name: str
    example: Expression
    kinds: tuple[type, ...]
    build: Build | None = None
    relate: Relate | None = None
    bookkeeping: bool = False
    binds: bool = False  # the result has a new bound index, whose name is arbitrary
    after: Expression = None
    premises: tuple[Equation, ...] = ()
    of: type | None = None
    coarse: bool = False

    @property
    def equation(self) -> Equation:
        """The example and what the rule makes of it."""
        after = next(self.results(self.example)) if self.after is None else self.after
        return self.example, after

    def reading(self, reverse: bool = False) -> str:
        """Return the equation as text, with the conditions under which it holds.

        >>> from otimes.algebra.rules import RULES
        >>> RULES["transpose_mul"].reading()
        '(A B)ᵀ = Bᵀ Aᵀ'
        """
        sides = self.equation[::-1] if reverse else self.equation
        conditions = [" = ".join(map(unicode_text, pair)) for pair in self.premises]
        symbols = free_symbols(self.example)
        conditions += [f"{s} > 0" for s in symbols if s.is_positive and not s.is_integer]
        limits = [limit for e in self.example.atoms(*BINDERS) for limit in limits_of(e)]
        conditions += [f"{index} < {count}" for index, count in limits if count.is_Integer]
        where = f" where {', '.join(conditions)}" if conditions else ""
        return " = ".join(map(unicode_text, sides)) + where

    def results(self, e: Expression) -> Iterator[Expression]:
        """Yield the results of rewriting the whole expression from left to right."""
        yield from self._made(e)

    def _made(self, e: Expression) -> tuple[Expression, ...]:
        if self.build is None or type(e) not in self.kinds:
            return ()
        if self.of is not None and type(e.args[0]) is not self.of:
            return ()
        return _results(self.build, e)

    def relates(self, before: Expression, after: Expression) -> bool:
        """Return whether the rule, used from left to right, rewrites `before` to `after`."""
        if self.relate is not None:
            return type(before) in self.kinds and self.relate(before, after)
        made = self._made(before)
        if not made:
            return False
        # SymPy compares trees from the top down; hashes, which it keeps, tell most of them apart.
        number = hash(after)
        if any(hash(each) == number and each == after for each in made):
            return True
        return self.binds and any(alike(result, after) for result in made)


@lru_cache(maxsize=50_000)
def _results(build: Build, e: Expression) -> tuple[Expression, ...]:
    return tuple(build(e))


RULES: dict[str, Rule] = {}


def rule(
    *kinds: type,
    example: Expression,
    of: type | None = None,
    bookkeeping: bool = False,
    binds: bool = False,
    name: str = "",
) -> Callable[[Build], Rule]:
    """Declare a rule by a generator of its results, which gives it its name if none is given.

    `of` restricts it to expressions whose first argument has this type: of=MatMul for (A B)ᵀ.
    """

    def declare(build: Build) -> Rule:
        called = name or build.__name__
        return register(Rule(called, example, kinds, build, None, bookkeeping, binds, of=of))

    return declare


def equation(
    name: str, example: Expression, result: Callable[..., Expression], bookkeeping: bool = False
) -> Rule:
    """Declare a rule with one result, `result(*e.args)`, for all e of the type of the example.

    The first argument has the type that it has in the example, or any if that is a matrix symbol.
    """
    first = type(example.args[0])
    of = None if first is sympy.MatrixSymbol else first

    def build(e: Any) -> Iterator[Expression]:
        yield result(*e.args)

    return register(Rule(name, example, (type(example),), build, None, bookkeeping, of=of))


def relation(
    *kinds: type, example: Equation, bookkeeping: bool = False
) -> Callable[[Relate], Rule]:
    """Declare a rule by a test of two expressions, for rules with too many results to list."""

    def declare(relate: Relate) -> Rule:
        before, after = example
        new = Rule(relate.__name__, before, kinds, None, relate, bookkeeping, after=after)
        return register(new)

    return declare


def register(new: Rule) -> Rule:
    """Add a rule to `RULES`."""
    if new.name in RULES:
        raise AssertionError(f"two rules are called {new.name}")
    RULES[new.name] = new
    return new


# -- trees ------------------------------------------------------------------------------------


def children(e: Expression) -> Iterator[tuple[int, Expression]]:
    """Yield the positions and values of the arguments of a node that rules may rewrite."""
    kind = type(e)
    if kind in _SCALAR_NODES:
        if e.has(*OF_MATRICES):
            yield from enumerate(e.args)
    elif kind in _FIRST_ONLY:
        yield 0, e.args[0]
    elif kind is sympy.ImmutableDenseMatrix:
        yield 2, e.args[2]
    elif kind is sympy.Tuple:
        yield from enumerate(e.args)
    elif kind in _NODES:
        for position, argument in enumerate(e.args):
            if (
                is_matrix(argument)
                or type(argument) in _SCALAR_NODES
                or kind is sympy.Trace
                or type(argument) in OF_MATRICES
            ):
                yield position, argument


def at(e: Expression, path: Path) -> Expression:
    """Return the subexpression at a path."""
    for position in path:
        e = e.args[position]
    return e


def replaced(e: Expression, path: Path, new: Expression) -> Expression:
    """Return the tree with the subexpression at a path replaced, unevaluated."""
    if not path:
        return new
    arguments = list(e.args)
    arguments[path[0]] = replaced(arguments[path[0]], path[1:], new)
    return rebuilt(e, arguments)


OF_MATRICES = (sympy.Trace, MatrixElement, sympy.Sum, sympy.KroneckerDelta)
_SCALAR_NODES = (sympy.Add, sympy.Mul, sympy.Pow)
_FIRST_ONLY = (
    HeadSum,
    ConcatHeads,
    StackHeads,
    sympy.MatPow,
    sympy.Inverse,
    sympy.HadamardPower,
    sympy.BlockMatrix,
    sympy.Sum,
    MatrixElement,
    LayerProduct,
    RMSNorm,
    LayerNorm,
)
_NODES: set[type] = {
    sympy.BlockDiagMatrix,
    DiagMatrix,
    DiagonalMatrix,
    DiagonalOf,
    vec_cols,
    vec_rows,
    sympy.MatMul,
    sympy.MatAdd,
    sympy.Transpose,
    sympy.Adjoint,
    sympy.KroneckerProduct,
    sympy.HadamardProduct,
    sympy.Trace,
    RowSoftmax,
    Activation,
}

MATRICES: tuple[type, ...] = (
    sympy.MatrixSymbol,
    FamilyMember,
    sympy.Identity,
    sympy.OneMatrix,
    sympy.ZeroMatrix,
    OneHot,
    HeadSum,
    sympy.MatPow,
    sympy.Inverse,
    sympy.HadamardPower,
    LayerProduct,
    sympy.MatMul,
    sympy.MatAdd,
    sympy.Transpose,
    sympy.Adjoint,
    sympy.HadamardProduct,
    DiagMatrix,
    DiagonalMatrix,
    DiagonalOf,
    RowSoftmax,
    CausalMask,
    *KINDS,
    Activation,
    RMSNorm,
    LayerNorm,
)


# -- building ---------------------------------------------------------------------------------


def is_matrix(e: Expression) -> bool:
    """Return whether an argument of a product is a matrix, not a scalar."""
    return bool(getattr(e, "is_Matrix", False))


def product(*factors: Expression) -> Expression:
    """Return the unevaluated product of scalars and matrices; a single factor as it is."""
    return as_product(factors)


def total(*terms: Expression) -> Expression:
    """Return the unevaluated sum of matrices; a single term as it is."""
    return terms[0] if len(terms) == 1 else sympy.MatAdd(*terms, evaluate=False)


def tensor(*factors: Expression) -> Expression:
    """Return the unevaluated Kronecker product; a single factor as it is."""
    return factors[0] if len(factors) == 1 else kron(*factors)


def elementwise(*factors: Expression) -> Expression:
    """Return the unevaluated Hadamard product; a single factor as it is."""
    return factors[0] if len(factors) == 1 else sympy.HadamardProduct(*factors)


MAKE: dict[type, Callable[..., Expression]] = {
    sympy.MatMul: product,
    sympy.MatAdd: total,
    sympy.KroneckerProduct: tensor,
    sympy.HadamardProduct: elementwise,
}


def with_argument(e: Expression, k: int, *new: Expression) -> Expression:
    """Return a product or sum with its argument k replaced by `new`."""
    return MAKE[type(e)](*e.args[:k], *new, *e.args[k + 1 :])


def of_type(e: Expression, kind: type) -> Iterator[tuple[int, Expression]]:
    """Yield (position, argument) for the arguments of exactly this type."""
    return ((k, x) for k, x in enumerate(e.args) if type(x) is kind)


def scalar_product(*factors: Expression) -> Expression:
    """Return the unevaluated product of scalars; 1 if there are none."""
    if not factors:
        return sympy.S.One
    return factors[0] if len(factors) == 1 else sympy.Mul(*factors, evaluate=False)


def split_scalars(e: Expression) -> tuple[list[Expression], list[Expression]]:
    """Return the scalar factors and the matrix factors of a product, each in order."""
    numbers = [x for x in e.args if not is_matrix(x)]
    return numbers, [x for x in e.args if is_matrix(x)]


def pairs(
    e: Expression, first: type | None = None, second: type | None = None
) -> Iterator[tuple[int, Expression, Expression]]:
    """Yield (position, factor, next factor) for adjacent matrices of a product, of these types."""
    for k, (x, y) in enumerate(pairwise(e.args)):
        typed = (first is None or type(x) is first) and (second is None or type(y) is second)
        if typed and is_matrix(x) and is_matrix(y):
            yield k, x, y


def with_pair(e: Expression, k: int, *new: Expression) -> Expression:
    """Return a product with its factors k and k + 1 replaced by `new`."""
    return MAKE[type(e)](*e.args[:k], *new, *e.args[k + 2 :])


def without(e: Expression, k: int) -> tuple[Expression, ...]:
    """Return the arguments of a node except the one at position k."""
    return (*e.args[:k], *e.args[k + 1 :])


def same_size(a: Expression, b: Expression) -> bool:
    """Return whether two sizes are equal as polynomials."""
    return bool(a == b or sympy.expand(a - b) == 0)


def mentions(e: Expression, symbols: Iterable[Any]) -> bool:
    """Return whether any of the symbols occurs free in an expression or in its sizes."""
    free = free_symbols(e)
    return any(symbol in free for symbol in symbols)


# -- indices ----------------------------------------------------------------------------------

BINDERS = (HeadSum, ConcatHeads, StackHeads, sympy.Sum)
NAMES = tuple(sympy.Symbol(name, integer=True) for name in "ijklpqrstuv")


def bound(e: Expression) -> list[Any]:
    """Return the bound indices of a sum."""
    return [limit[0] for limit in e.limits]


def limits_of(e: Expression) -> list[tuple[Any, Any]]:
    """Return the indices of a sum, each with the number of its values."""
    return [(limit[0], limit[2] + 1 if type(e) is sympy.Sum else limit[1]) for limit in e.limits]


def fresh(count: int, *expressions: Expression) -> list[Any]:
    """Return index symbols whose names do not occur in these expressions."""
    taken = frozenset().union(*map(_names, expressions))
    free = [s for s in NAMES if s.name not in taken]
    free += [sympy.Symbol(f"i{k}", integer=True) for k in range(max(0, count - len(free)))]
    return free[:count]


@lru_cache(maxsize=50_000)
def _names(e: Expression) -> frozenset[str]:
    return frozenset(s.name for s in e.atoms(sympy.Symbol, sympy.MatrixSymbol))


def renamed(e: Expression, names: list[Any]) -> Expression:
    """Return the sum with its bound indices renamed; None where a name is already in use."""
    return _renamed(e, tuple(names))


@lru_cache(maxsize=10_000)
def _renamed(e: Expression, names: tuple[Any, ...]) -> Expression:
    if len(set(names)) != len(names) or len(set(bound(e))) != len(names):
        return None
    if mentions(e, names) or not _bound_in(e.args[0]).isdisjoint([*names, *bound(e)]):
        return None
    body = substituted(e.args[0], dict(zip(bound(e), names, strict=True)))
    limits = [sympy.Tuple(new, *limit[1:]) for new, limit in zip(names, e.limits, strict=True)]
    return rebuilt(e, [body, *limits])


@lru_cache(maxsize=10_000)
def _bound_in(e: Expression) -> frozenset[Any]:
    return frozenset(index for each in e.atoms(*BINDERS) for index in bound(each))


def alike(a: Expression, b: Expression) -> bool:
    """Return whether two expressions are equal up to the names of bound indices."""
    if a == b:
        return True
    if type(a) is not type(b) or len(a.args) != len(b.args):
        return False
    if type(a) in BINDERS and bound(a) != bound(b):
        if len(a.limits) != len(b.limits):
            return False
        other = renamed(a, bound(b))
        return other is not None and alike(other, b)
    return bool(a.args) and all(alike(x, y) for x, y in zip(a.args, b.args, strict=True))
