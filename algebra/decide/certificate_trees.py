"""The trees of a certificate: expressions as nested lists, with declarations for their symbols.

An integer is itself, and any other expression is a list: the name of its class, then its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import LanguageError
from otimes.algebra.language import coefficients
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.coefficients import Coefficient
from otimes.algebra.language.constants import PI
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    OneHot,
    StackHeads,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import (
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
)
from otimes.algebra.language.positions import KINDS
from otimes.algebra.language.roots import Number
from otimes.algebra.language.sizes import normal_size
from otimes.algebra.language.trees import key

# that a scalar may be stated to be
FLAGS = ("positive", "nonnegative", "nonzero", "negative", "nonpositive")
Tree: TypeAlias = Any  # an integer, or a list [kind, argument, ...]


class Opaque(NamedTuple):
    """The expression that a name of the prover stands for, its indices, and the known depths."""

    expression: Any
    indices: tuple[Any, ...]
    depths: frozenset[sympy.Symbol]


@dataclass(frozen=True)
class Scope:
    """The scope of a tree: the indices in scope by name, and their number.

    Under induction `depths` has "base" or "step" for each number of layers, `latest` the symbols of
    a last layer, and `opaque` the expression of each name that the prover introduced.
    """

    indices: Mapping[str, Tree] = field(default_factory=dict)
    count: int = 0
    integers: Mapping[tuple[int, Any], Tree] = field(default_factory=dict)
    depths: Mapping[sympy.Symbol, str] = field(default_factory=dict)
    latest: Mapping[str, sympy.Symbol] = field(default_factory=dict)
    opaque: Mapping[str, Opaque] = field(default_factory=dict)

    def bound(self, *names: str) -> Scope:
        """Return the scope inside binders of these indices."""
        new = {name: ["i", self.count + k] for k, name in enumerate(names)}
        return replace(self, indices={**self.indices, **new}, count=self.count + len(names))


PLAIN = (
    sympy.MatAdd,
    sympy.Add,
    sympy.MatMul,
    sympy.Mul,
    sympy.MatPow,
    sympy.Pow,
    sympy.Transpose,
    sympy.HadamardProduct,
    sympy.HadamardPower,
    sympy.Trace,
    sympy.Identity,
    sympy.OneMatrix,
    sympy.ZeroMatrix,
    sympy.BlockDiagMatrix,
    RowSoftmax,
    CausalMask,
    *KINDS,
    RMSNorm,
    LayerNorm,
    DiagMatrix,
    DiagonalOf,
    DiagonalMatrix,
    vec_rows,
    vec_cols,
)


class Trees:
    """The declarations of a certificate, and the trees of expressions that use them."""

    def __init__(self, signature: Any) -> None:
        self.sizes = {name: k for k, name in enumerate(signature.sizes)}
        known = {flag: signature.assumptions.named(flag) for flag in FLAGS}
        self.scalars: dict[str, list[str]] = {
            name: [flag for flag in FLAGS if name in known[flag]] for name in signature.unknown
        }
        self.with_pi = signature.scalars.get(key(PI), PI) == PI
        self.tensors = {name: k for k, name in enumerate(signature.tensors)}
        self.declared = signature.tensors
        self.fused = False  # whether adjacent identities in a Kronecker product are merged
        self.cuts: dict[Any, Tree] = {}  # of I ⊗ I, which the reading of the claim has not
        self.frozen: frozenset[str] = frozenset()  # free indices whose matrices are arbitrary
        self.parts: dict[Any, int] = {}  # the numbers of these matrices

    # -- trees -------------------------------------------------------------------------------------

    def symbol(self, name: str) -> Tree:
        """Return the tree of a size or a scalar, the number of its declaration, or of π."""
        if name in self.sizes:
            return ["size", self.sizes[name]]
        if name == key(PI) and self.with_pi:
            return ["pi"]
        if name not in self.scalars:
            self.scalars[name] = []
        return ["scalar", list(self.scalars).index(name)]

    def index(self, index: Any, count: Any, scope: Scope) -> Tree:
        """Return an index: an integer, or ["i", k]."""
        if isinstance(index, int | sympy.Integer):
            known = scope.integers and scope.integers.get((int(index), normal_size(count)))
            return known or int(index)
        return scope.indices[key(index)]

    def tree(self, e: Any, scope: Scope) -> Tree:
        """Return an expression as a tree: an integer, or [name of its class, argument, ...]."""
        kind = type(e)
        if isinstance(e, sympy.Integer):
            return int(e)
        if isinstance(e, sympy.Rational):
            return ["Rational", int(e.p), int(e.q)]
        if isinstance(e, sympy.Symbol):
            if e.name in scope.opaque:
                return self.opaque(e.name, scope)
            return self.symbol(key(e))
        if kind is sympy.KroneckerProduct:
            factors = _beside(e)
            if not self.fused and all(map(_is_identity, factors)):
                sizes = [a.shape[0] for a in factors if a.shape[0] != 1]
                parts = [self.tree(size, scope) for size in sizes]
                if len(parts) > 1:
                    self.cuts[normal_size(sympy.Mul(*sizes))] = [["Mul", *parts], parts]
            return self.kron([self.tree(a, scope) for a in factors])
        if kind in (RMSNorm, LayerNorm, *PLAIN):
            return [kind.__name__, *[self.tree(a, scope) for a in e.args]]
        if kind is sympy.Adjoint:  # the language is real
            return ["Transpose", self.tree(e.args[0], scope)]
        if kind is sympy.Inverse:
            return ["MatPow", self.tree(e.base, scope), -1]
        if kind is sympy.MatrixSymbol:
            if e.name in scope.opaque:
                return self.opaque(e.name, scope)
            return ["tensor", self.tensors[e.name]]
        if kind is FamilyMember:
            return self.member(e, scope)
        if kind is AffineMember:
            at = [
                affine_tree(self.tree(constant, scope), zip(factors, indices, strict=True))
                for indices in [
                    [self.index(v, n, scope) for v, n in zip(e.variables, e.counts, strict=True)]
                ]
                for constant, factors in e.forms
            ]
            return ["tensor", self.tensors[e.family.name], *at]
        if kind is Activation:
            return [kind.__name__, e.name, self.tree(e.argument, scope)]
        if kind is OneHot:
            index, size = e.args
            return [kind.__name__, self.index(index, size, scope), self.tree(size, scope)]
        if kind is MatrixElement:
            matrix, *indices = e.args
            at = [self.index(i, n, scope) for i, n in zip(indices, matrix.shape, strict=True)]
            return [kind.__name__, self.tree(matrix, scope), *at]
        if kind is sympy.KroneckerDelta:
            size = normal_size(e.args[2][1] + 1)
            at = [self.index(i, size, scope) for i in e.args[:2]]
            return ["MatrixElement", ["Identity", self.tree(size, scope)], *at]
        if kind in (HeadSum, ConcatHeads, StackHeads):
            return self.scoped(kind.__name__, e.body, e.limits, scope)
        if kind is sympy.Sum:
            limits = [(index, sympy.expand(last + 1)) for index, _, last in reversed(e.limits)]
            return self.scoped("Sum", e.function, limits, scope)
        if kind is LayerProduct or kind is OrderSum:
            body = self.tree(e.body, scope.bound(key(e.index)))
            more = [self.count(e.order, scope)] if kind is OrderSum else []
            return [kind.__name__, body, self.count(e.count, scope), *more, e.reverse]
        if kind is sympy.ImmutableDenseMatrix:
            return [kind.__name__, e.rows, e.cols, *[self.tree(entry, scope) for entry in e]]
        if kind is sympy.BlockMatrix:
            lines = [
                [e.blocks[i, j] for j in range(e.blockshape[1])] for i in range(e.blockshape[0])
            ]
            return [kind.__name__, *[[self.tree(b, scope) for b in line] for line in lines]]
        raise LanguageError(f"a certificate has no tree for {kind.__name__} yet, in {e!s:.100}")

    def kron(self, factors: list[Tree]) -> Tree:
        """Return the tree of a Kronecker product; adjacent identities are merged as in the reading.

        The checker reads from the left, and takes two identities for one, with a split or without.
        It does so with ones, but not with ones that are transposed.
        """
        if not self.fused and sum(factor[0] == "OneMatrix" for factor in factors) > 1:
            factors = [_kept_apart(factor) for factor in factors]
        runs = [(kind, [*run]) for kind, run in groupby(factors, _merged)]
        first, *rest = [
            part
            for kind, run in runs
            for part in ([["KroneckerProduct", *run]] if kind and len(run) > 1 else run)
        ]
        if self.fused:
            return ["KroneckerProduct", first, *rest] if rest else first
        if runs[0][0] and len(runs[0][1]) > 1 and len(runs) > 1:
            return ["KroneckerProduct", factors[0], self.kron(factors[1:])]
        return ["KroneckerProduct", *factors]

    def member(self, e: FamilyMember, scope: Scope) -> Tree:
        """Return the tree of a family member, or of the expression of a name of the prover."""
        name = e.family.name
        if (part := member_of(e)) in self.parts:
            return ["tensor", self.parts[part]]
        at = [self.index(i, n, scope) for i, n in zip(e.indices, e.family.counts, strict=True)]
        if name in scope.opaque:
            return self.opaque(name, scope, at)
        return ["tensor", self.tensors[name], *at]

    def opaque(self, name: str, scope: Scope, at: Sequence[Tree] = ()) -> Tree:
        """Return the tree of the expression that a name of the prover stands for, at indices.

        It belongs to the enclosing induction: inside an inner one it has all of those layers.
        """
        one = scope.opaque[name]
        indices = dict(zip(map(key, one.indices), at, strict=True))
        tree = self.tree(one.expression, replace(scope, indices={**scope.indices, **indices}))
        for depth, stage in scope.depths.items():
            if depth not in one.depths and stage == "step":
                layers = self.symbol(key(depth))
                tree = replaced(tree, layers, ["Add", layers, 1])
        return tree

    def count(self, count: Any, scope: Scope) -> Tree:
        """Return the tree of a number of layers, which may be an index."""
        if isinstance(count, sympy.Symbol) and key(count) in scope.indices:
            return scope.indices[key(count)]
        return self.tree(count, scope)

    def range(self, count: Any, scope: Scope) -> Tree:
        """Return the range of an index of a fact: of all layers, the last one included."""
        tree = self.tree(count, scope)
        return ["Add", tree, 1] if scope.depths.get(count) == "step" else tree

    def scoped(self, kind: str, body: Any, limits: Sequence[Any], scope: Scope) -> Tree:
        """Return nested binders, the outermost limit first."""
        (index, count), *others = limits
        inner = scope.bound(key(index))
        within = self.scoped(kind, body, others, inner) if others else self.tree(body, inner)
        return [kind, within, self.tree(sympy.sympify(count), scope)]

    def number(self, value: Coefficient, divisors: Sequence[Coefficient] = ()) -> Tree:
        """Return a coefficient as a tree."""
        if divisors:
            below = [["Pow", self.number(divisor), -1] for divisor in divisors]
            return ["Mul", self.number(value), *below]
        if isinstance(value, int):
            return value
        if isinstance(value, Fraction):
            return ["Rational", value.numerator, value.denominator]

        def of(polynomial: coefficients.Polynomial) -> Tree:
            terms = [
                ["Mul", self.number(factor), *[self.power(*leg) for leg in monomial]]
                for monomial, factor in polynomial.items()
            ]
            return ["Add", *terms]

        return ["Mul", of(value.numerator), ["Pow", of(value.denominator), -1]]

    def power(self, name: str, exponent: Number) -> Tree:
        """Return a power of a symbol, or of a prime."""
        base = int(name[1:]) if name.startswith("#") else self.symbol(name)
        return ["Pow", base, self.number(exponent)]


def _is_identity(e: Any) -> bool:
    """Return whether the checker takes a factor for an identity: A⁰ is one."""
    return isinstance(e, sympy.Identity) or (isinstance(e, sympy.MatPow) and e.exp == 0)


def _merged(tree: Tree) -> str:
    """Return what the checker takes a factor for, if it merges with others: A⁰ is an identity."""
    if tree[0] in ("Identity", "OneMatrix"):
        return str(tree[0])
    return "Identity" if tree[0] == "MatPow" and tree[2] == 0 else ""


def _kept_apart(tree: Tree) -> Tree:
    """Return a factor as one that does not merge with others if it is a matrix of ones."""
    return ["Transpose", ["OneMatrix", *tree[:0:-1]]] if tree[0] == "OneMatrix" else tree


def _beside(e: Any) -> list[Any]:
    """Return the factors of a flattened Kronecker product."""
    inner = isinstance(e, sympy.KroneckerProduct)
    return [part for a in e.args for part in _beside(a)] if inner else [e]


def affine_tree(constant: Tree, parts: Iterable[tuple[int, Tree]]) -> Tree:
    """Return an affine index: its constant, and the factors of indices; an integer is added up."""
    made: list[Tree] = []
    for factor, index in parts:
        if isinstance(index, int):
            constant = ["Add", constant, factor * index]
        else:
            made.append([factor, index])
    return ["at", constant, *made]


def member_of(e: FamilyMember) -> tuple[Any, ...]:
    """Return the name of a family, and the indices of the member."""
    return e.family.name, *[int(i) if i.is_Integer else key(i) for i in e.indices]


def replaced(tree: Tree, part: Tree, by: Tree) -> Tree:
    """Return a tree with a subtree replaced."""
    if tree == part:
        return by
    return [replaced(one, part, by) for one in tree] if isinstance(tree, list) else tree
