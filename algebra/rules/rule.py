"""What a rewrite rule is, and how trees are taken apart and put together without evaluation.

A rule is a function from an expression to the expressions it may be replaced by, all equal to it
for every size. It is named `subject_operation`; used from right to left it keeps its name. Nothing
here decides anything: a rule proposes, and `Step.check` asks the judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra.binders import free_symbols, substituted
from algebra.language import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    LayerProduct,
    OneHot,
    StackHeads,
    kron,
    rebuilt,
    vec_cols,
    vec_rows,
)
from algebra.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax

Expression = Any  # a SymPy matrix expression or scalar
Path = tuple[int, ...]  # positions of arguments, from the root down
Build = Callable[[Any], Iterator[Expression]]
Relate = Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rule: `kinds` are the exact types it rewrites, `reading` says it to a person.

    A rule either builds its results, or (where there are too many to list: an order, arithmetic)
    says of two expressions whether it takes the one to the other.
    """

    name: str
    reading: str
    kinds: tuple[type, ...]
    build: Build | None = None
    relate: Relate | None = None
    bookkeeping: bool = False
    binds: bool = False  # names an index of its own; any other name would do

    def results(self, e: Expression) -> Iterator[Expression]:
        """Yield what the rule makes of an expression as a whole, used from left to right."""
        if self.build is not None and type(e) in self.kinds:
            yield from _results(self.build, e)

    def relates(self, before: Expression, after: Expression) -> bool:
        """Return whether the rule takes `before` to `after`, used from left to right."""
        if self.relate is not None:
            return type(before) in self.kinds and self.relate(before, after)
        if any(result == after for result in self.results(before)):
            return True
        return self.binds and any(alike(result, after) for result in self.results(before))


@lru_cache(maxsize=50_000)
def _results(build: Build, e: Expression) -> tuple[Expression, ...]:
    return tuple(build(e))


RULES: dict[str, Rule] = {}


def rule(*kinds: type, bookkeeping: bool = False, binds: bool = False) -> Callable[[Build], Rule]:
    """Declare a rule by a generator of its results; its name and first line are the rule's."""

    def declare(build: Build) -> Rule:
        reading = _reading(build)
        return register(Rule(build.__name__, reading, kinds, build, None, bookkeeping, binds))

    return declare


def relation(*kinds: type, bookkeeping: bool = False) -> Callable[[Relate], Rule]:
    """Declare a rule by a test of two expressions, for rules with too many results to list."""

    def declare(relate: Relate) -> Rule:
        return register(Rule(relate.__name__, _reading(relate), kinds, None, relate, bookkeeping))

    return declare


def _reading(declared: Callable[..., Any]) -> str:
    """Return the first line of a rule's docstring: the equation as a person reads it."""
    return (declared.__doc__ or "").strip().partition("\n")[0]


def register(new: Rule) -> Rule:
    """Put a rule into the table, under its name."""
    if new.name in RULES:
        raise AssertionError(f"two rules are called {new.name}")
    RULES[new.name] = new
    return new


# -- trees ------------------------------------------------------------------------------------


def children(e: Expression) -> Iterator[tuple[int, Expression]]:
    """Yield the arguments of a node that are expressions, with their positions."""
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
    """Return the part of a tree at a path."""
    for position in path:
        e = e.args[position]
    return e


def replaced(e: Expression, path: Path, new: Expression) -> Expression:
    """Return the tree with the part at a path replaced; nothing is evaluated."""
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
    Activation,
    RMSNorm,
    LayerNorm,
)


# -- building ---------------------------------------------------------------------------------


def is_matrix(e: Expression) -> bool:
    """Return whether an argument of a product is a matrix and not a number."""
    return bool(getattr(e, "is_Matrix", False))


def product(*factors: Expression) -> Expression:
    """Return the product of scalars and matrices as stated; a single factor is itself."""
    return factors[0] if len(factors) == 1 else sympy.MatMul(*factors, evaluate=False)


def total(*terms: Expression) -> Expression:
    """Return the sum of matrices as stated; a single term is itself."""
    return terms[0] if len(terms) == 1 else sympy.MatAdd(*terms, evaluate=False)


def tensor(*factors: Expression) -> Expression:
    """Return the Kronecker product as stated; a single factor is itself."""
    return factors[0] if len(factors) == 1 else kron(*factors)


def elementwise(*factors: Expression) -> Expression:
    """Return the Hadamard product as stated; a single factor is itself."""
    return factors[0] if len(factors) == 1 else sympy.HadamardProduct(*factors)


def scalar_product(*factors: Expression) -> Expression:
    """Return the product of numbers as stated; none is one."""
    if not factors:
        return sympy.S.One
    return factors[0] if len(factors) == 1 else sympy.Mul(*factors, evaluate=False)


def split_scalars(e: Expression) -> tuple[list[Expression], list[Expression]]:
    """Return the numbers and the matrices among the factors of a product, in their order."""
    numbers = [x for x in e.args if not is_matrix(x)]
    return numbers, [x for x in e.args if is_matrix(x)]


def pairs(e: Expression) -> Iterator[tuple[int, Expression, Expression]]:
    """Yield (position, factor, next factor) for neighbouring matrices of a product."""
    for k in range(len(e.args) - 1):
        if is_matrix(e.args[k]) and is_matrix(e.args[k + 1]):
            yield k, e.args[k], e.args[k + 1]


def with_pair(e: Expression, k: int, *new: Expression) -> Expression:
    """Return a product whose factors k and k + 1 are replaced by these."""
    return product(*e.args[:k], *new, *e.args[k + 2 :])


def without(e: Expression, k: int) -> tuple[Expression, ...]:
    """Return the arguments of a node but the one at k."""
    return tuple(e.args[:k]) + tuple(e.args[k + 1 :])


def same_size(a: Expression, b: Expression) -> bool:
    """Return whether two sizes are written alike or expand to the same polynomial."""
    return bool(a == b or sympy.expand(a - b) == 0)


def mentions(e: Expression, symbols: Iterable[Any]) -> bool:
    """Return whether any of the symbols is free in an expression or a size of it."""
    free = free_symbols(e)
    return any(symbol in free for symbol in symbols)


# -- indices ----------------------------------------------------------------------------------

BINDERS = (HeadSum, ConcatHeads, StackHeads, sympy.Sum)
NAMES = tuple(sympy.Symbol(name, integer=True) for name in "ijklpqrstuv")


def bound(e: Expression) -> list[Any]:
    """Return the indices that a sum binds."""
    return [limit[0] for limit in e.limits]


def fresh(count: int, *expressions: Expression) -> list[Any]:
    """Return names for indices that occur nowhere in these expressions."""
    taken = frozenset().union(*map(_names, expressions))
    free = [s for s in NAMES if s.name not in taken]
    free += [sympy.Symbol(f"i{k}", integer=True) for k in range(max(0, count - len(free)))]
    return free[:count]


@lru_cache(maxsize=50_000)
def _names(e: Expression) -> frozenset[str]:
    return frozenset(s.name for s in e.atoms(sympy.Symbol, sympy.MatrixSymbol))


def renamed(e: Expression, names: list[Any]) -> Expression:
    """Return the sum with its indices renamed, or None where a name is taken already."""
    if len(set(names)) != len(names) or len(set(bound(e))) != len(names):
        return None
    if mentions(e, names) or _binds(e.args[0], {*names, *bound(e)}):
        return None
    body = substituted(e.args[0], dict(zip(bound(e), names, strict=True)))
    limits = [sympy.Tuple(new, *limit[1:]) for new, limit in zip(names, e.limits, strict=True)]
    return rebuilt(e, [body, *limits])


def _binds(e: Expression, names: set[Any]) -> bool:
    return any(names & set(bound(x)) for x in e.atoms(*BINDERS))


def alike(a: Expression, b: Expression) -> bool:
    """Return whether two trees differ in the names of bound indices only."""
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
