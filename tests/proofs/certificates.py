"""For tests of certificates: claims of every kind, changes, and who says what is true."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import sympy
from sympy import (
    BlockDiagMatrix,
    BlockMatrix,
    HadamardPower,
    HadamardProduct,
    Identity,
    ImmutableMatrix,
    Integer,
    Inverse,
    MatrixSymbol,
    Symbol,
    Trace,
    ZeroMatrix,
)
from sympy.matrices.expressions import diagonal
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra import nonlinear
from algebra.errors import OtimesError
from algebra.exact import Assignment, tree_value
from algebra.functions import KNOWN
from algebra.language import (
    ConcatHeads,
    Family,
    HeadSum,
    LayerProduct,
    OneHot,
    OrderSum,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from algebra.nonlinear import Activation
from algebra.refute import draw_assignment
from algebra.satisfy import satisfying
from algebra.shapes import inspect
from proofs.catalogue import catalogue
from proofs.claims import Statement, equations
from tests.algebra import test_decide, test_hypotheses, test_written_out
from tests.algebra.suite import SUITE

Claim = tuple[Any, Any, list[Any]]

n, m, d, H, L = (Symbol(name, positive=True, integer=True) for name in "nmdHL")
h, i, j, l = (Symbol(name, integer=True) for name in "hijl")  # noqa: E741 (a layer)
alpha = Symbol("alpha")
A, B, C, D = (MatrixSymbol(name, n, n) for name in "ABCD")
P, Q, R, S = (MatrixSymbol(name, 2, 2) for name in "PQRS")
X, K = MatrixSymbol("X", n, d), MatrixSymbol("K", n + m, n + m)
E, F, G, T = (
    MatrixSymbol(name, *shape)
    for name, shape in (("E", (n, n)), ("F", (n, m)), ("G", (m, n)), ("T", (m, m)))
)
two = Family("x", (2,), 2, 1)
U, V, W = MatrixSymbol("U", 2, 3), MatrixSymbol("V", 3, 2), MatrixSymbol("W", 6, 6)
heads, turns, three = Family("M", (H,), n, n), Family("N", (L,), n, n), Family("O", (3,), n, n)
I_n, I_2, O_n = Identity(n), Identity(2), ZeroMatrix(n, n)
blocks = BlockMatrix([[E, F], [G, T]])
others = BlockMatrix(
    [[A, MatrixSymbol("Y", n, m)], [MatrixSymbol("Z", m, n), MatrixSymbol("J", m, m)]]
)


def _commutator(a: Any, b: Any) -> Any:
    return matadd(matmul(a, b), matmul(-1, b, a))


def _standard(*factors: Any) -> Any:
    """Return the standard polynomial, the sum of sign · product over all orders."""
    orders = permutations(range(len(factors)))
    signs = [(sympy.combinatorics.Permutation(list(o)).signature(), o) for o in orders]
    return matadd(*[matmul(sign, *[factors[k] for k in order]) for sign, order in signs])


def _hamilton(a: Any) -> Any:
    return a**2 - Trace(a) * a + (Trace(a) ** 2 - Trace(a**2)) / 2 * I_2


LONG = os.environ.get("OTIMES_LONG") == "1"

MORE: dict[str, Claim] = {
    "block hypothesis": (matadd(E * E, F * G), E, [(matmul(blocks, blocks), blocks)]),
    "block hypothesis, off the diagonal": (E * F + F * T, F, [(matmul(blocks, blocks), blocks)]),
    "block inverse turned": (
        A * E + others.blocks[0, 1] * G,
        I_n,
        [(matmul(blocks, others), Identity(n + m))],
    ),
    "hypothesis among blocks": (
        matmul(blocks, K, blocks),
        matmul(blocks, blocks),
        [(matmul(K, blocks), blocks)],
    ),
    "inverse of blocks": (matmul(Inverse(blocks), blocks, K), K, []),
    "inverse of a block diagonal": (
        matmul(Inverse(BlockDiagMatrix(E, T)), BlockDiagMatrix(E, T)),
        Identity(n + m),
        [],
    ),
    "inverse of three factors": (
        Inverse(kron(A, T, I_2)),
        kron(Inverse(A), Inverse(T), I_2),
        [],
    ),
    "inverse of a multiple": (Inverse(matmul(alpha, A)), matmul(1 / alpha, Inverse(A)), []),
    "inverse to a power": (matmul(sympy.MatPow(A, -2), A**3), A, []),
    "inverse of a sum": (Inverse(matadd(A, B)), Inverse(matadd(B, A)), []),
    "inverse in an inverse": (
        matmul(Inverse(matadd(A, Inverse(B))), matadd(Inverse(B), A), C),
        C,
        [],
    ),
    "orthogonal heads": (
        HeadSum(matmul(heads[h], A, heads[h].T, heads[h]), (h, H)),
        HeadSum(heads[h] * A, (h, H)),
        [(matmul(heads[h], heads[h].T), I_n)],
    ),
    "heads that vanish": (
        HeadSum(heads[h] * A, (h, H)),
        O_n,
        [(matmul(heads[h].T, heads[h]), O_n)],
    ),
    "X Xᵀ = 0": (X, ZeroMatrix(n, d), [(X * X.T, O_n)]),
    "three factors turned": (matmul(C, A, B), I_n, [(matmul(A, B, C), I_n)]),
    "a square turned": (A * A, I_n, [(I_n, A**2)]),
    "identities fused under hypotheses": (
        matmul(kron(I_n, Identity(d), B), kron(Identity(d), I_n, B)),
        kron(Identity(d), I_n, B),
        [(B * B, B)],
    ),
    "fixed identities fused": (kron(I_2, Identity(3), A), kron(Identity(6), A), []),
    "Cayley–Hamilton": (_hamilton(Q), ZeroMatrix(2, 2), []),
    "Hall": (
        matmul(_commutator(P, Q), _commutator(P, Q), R),
        matmul(R, _commutator(P, Q), _commutator(P, Q)),
        [],
    ),
    "Amitsur–Levitzki": (_standard(P, Q, R, S), ZeroMatrix(2, 2), []),
    "legs in two orders": (
        matmul(matadd(kron(U, V), Identity(6)), W),
        matadd(matmul(kron(U, V), W), W),
        [],
    ),
    "the same expression": (
        HeadSum(LayerProduct(matadd(I_n, turns[l]), (l, L)), (h, H)),
        HeadSum(LayerProduct(matadd(I_n, turns[l]), (l, L)), (h, H)),
        [],
    ),
    "three layers": (
        LayerProduct(matadd(I_n, three[l]), (l, 3)),
        matmul(matadd(I_n, three[2]), matadd(I_n, three[1]), matadd(I_n, three[0])),
        [],
    ),
    "three layers on a row": (
        LayerProduct(three[l], (l, 3), reverse=True),
        matmul(three[0], three[1], three[2]),
        [],
    ),
    "no layers": (LayerProduct(matadd(I_n, A), (l, 0)), I_n, []),
    "heads side by side": (
        matmul(ConcatHeads(three[h], (h, 3)), StackHeads(three[h], (h, 3))),
        three[0] ** 2 + three[1] ** 2 + three[2] ** 2,
        [],
    ),
    "a necklace": (Trace(matmul(A, B, A, A, B, A)), Trace(matmul(A, A, B, A, A, B)), []),
    "necklaces of two lengths": (
        Trace(A**6) * Trace(A**3) ** 2,
        Trace(A**3) ** 2 * Trace(matmul(A**2, A**4)),
        [],
    ),
    "a power entry by entry": (HadamardPower(A * B, 4), HadamardProduct(*[A * B] * 4), []),
    "beams in any order": (
        HadamardProduct(*[matmul(A, Family("x", (7,), n, 1)[k]) for k in range(7)]),
        HadamardProduct(*[matmul(A, Family("x", (7,), n, 1)[k]) for k in (3, 1, 4, 0, 5, 2, 6)]),
        [],
    ),
    "one hypothesis for every index, at fixed sizes": (
        matadd(*[matmul(two[k].T, two[k]) for k in (0, 1)]),
        matmul(2, Identity(1)),
        [(matmul(two[h].T, two[h]), Identity(1))],
    ),
    "Cayley–Hamilton of a traceless matrix": (
        Q**2,
        matmul(-alpha, I_2),
        [(Trace(Q), Integer(0)), (Q[0, 0] * Q[1, 1] - Q[0, 1] * Q[1, 0], alpha)],
    ),
    "a free index and hypotheses at fixed sizes": (
        (Q**2)[i, i] - alpha,
        Integer(0),
        [(Trace(Q), Integer(0)), (Q[0, 0] ** 2 + Q[0, 1] * Q[1, 0], alpha)],
    ),
    "a delta written out": (I_2[i, 0] + I_2[i, 1], Integer(1), []),
    "an explicit matrix": (
        matmul(ImmutableMatrix([[0, 1], [1, 0]]), Q),
        ImmutableMatrix([[Q[1, 0], Q[1, 1]], [Q[0, 0], Q[0, 1]]]),
        [],
    ),
}


def claims() -> dict[str, Claim]:
    """Return the true claims of this and the other tests by name, and theorems.

    The certificate of every theorem is replayed when the catalogue is verified; of those one in
    eight is disguised and changed here, all of them with OTIMES_LONG=1.
    """
    found: dict[str, Claim] = dict(MORE)
    found |= {f"conditional: {name}": claim for name, claim in test_hypotheses.PROVED.items()}
    found |= {f"true: {name}": (*sides, []) for name, sides in test_decide.TRUE.items()}
    for k, sides in enumerate(test_written_out.PROVED):
        found[f"numeric {k}: {sides[0]}"] = (*sides, [])
    for identity in SUITE:
        if identity.truth:
            found[f"suite: {identity}"] = (identity.lhs, identity.rhs, list(identity.given))
    for theorem in catalogue()[:: 1 if LONG else 8]:
        stated = theorem.claim()
        if not isinstance(stated, Statement):
            continue
        if stated.lhs.has(LayerProduct, OrderSum) or stated.rhs.has(LayerProduct, OrderSum):
            continue  # for every depth: see test_replay_induction
        found[f"theorem: {theorem.name}"] = (stated.lhs, stated.rhs, list(equations(stated.given)))
    return found


# -- from trees back to expressions: is a changed claim still true? --------------------------------


class _Back:
    """Trees as SymPy expressions, for an evaluator that knows nothing of certificates."""

    def __init__(self, made: dict[str, Any]) -> None:
        self.made = made
        positive = {s for s, kind in made["scalars"].items() if kind == "positive"}
        self.symbols = {s: Symbol(s, positive=True, integer=True) for s in made["sizes"]}
        self.symbols |= {s: Symbol(s, positive=s in positive or None) for s in made["scalars"]}

    def claim(self) -> Claim:
        """Return the two sides and the hypotheses."""
        made = self.made
        given = [(self.read(lhs), self.read(rhs)) for lhs, rhs, *_ in made["given"]]
        return self.read(made["lhs"]), self.read(made["rhs"]), given

    def index(self, index: Any) -> Any:
        if isinstance(index, int):
            return Integer(index)
        return Symbol(index.replace("~", "_"), integer=True)  # ~ marks a SymPy Dummy

    def limits(self, limits: Sequence[Any]) -> list[Any]:
        return [(self.index(index), self.read(count)) for index, count in limits]

    def read(self, tree: Any) -> Any:
        """Return a tree as an expression."""
        if isinstance(tree, int):
            return Integer(tree)
        kind, *args = tree
        if kind == "Symbol":
            return self.symbols[args[0]] if args[0] in self.symbols else self.index(args[0])
        if kind == "Rational":
            return sympy.Rational(*args)
        if kind in ("MatrixSymbol", "FamilyMember"):
            counts, *shape = self.made["tensors"][args[0]]
            rows, cols = map(self.read, shape)
            if kind == "MatrixSymbol":
                return MatrixSymbol(args[0], rows, cols)
            family = Family(args[0], tuple(map(self.read, counts)), rows, cols)
            return family[tuple(map(self.index, args[1:]))]
        if kind == "OneHot":
            return OneHot(self.index(args[0]), self.read(args[1]))
        if kind == "MatrixElement":
            return MatrixElement(self.read(args[0]), *map(self.index, args[1:]))
        if kind == "KroneckerDelta":
            return MatrixElement(Identity(self.read(args[2])), *map(self.index, args[:2]))
        if kind in ("HeadSum", "ConcatHeads", "StackHeads"):
            of = {"HeadSum": HeadSum, "ConcatHeads": ConcatHeads, "StackHeads": StackHeads}[kind]
            return of(self.read(args[0]), *self.limits(args[1:]))
        if kind == "LayerProduct":
            (limit,) = self.limits(args[1:2])
            return LayerProduct(self.read(args[0]), limit, args[2])
        if kind == "OrderSum":
            (limit,) = self.limits(args[1:2])
            return OrderSum(self.read(args[0]), limit, self.read(args[2]), args[3])
        if kind == "Sum":
            ranges = [(index, 0, count - 1) for index, count in reversed(self.limits(args[1:]))]
            return sympy.Sum(self.read(args[0]), *ranges)
        if kind == "ImmutableDenseMatrix":
            return ImmutableMatrix(*args[:2], list(map(self.read, args[2:])))
        if kind == "BlockMatrix":
            return BlockMatrix([[self.read(block) for block in line] for line in args])
        if kind == "Activation":
            return Activation(args[0], self.read(args[1]))
        values = list(map(self.read, args))
        if hasattr(nonlinear, kind):
            return getattr(nonlinear, kind)(*values)
        if kind in ("MatMul", "MatAdd"):
            return (matmul if kind == "MatMul" else matadd)(*values)
        if kind == "KroneckerProduct":
            return kron(*values)
        if kind in ("vec_rows", "vec_cols"):
            return (vec_rows if kind == "vec_rows" else vec_cols)(*values)
        if kind in ("Add", "Mul", "Pow", "MatPow", "HadamardProduct"):
            return getattr(sympy, kind)(*values, evaluate=False)
        home = diagonal if hasattr(diagonal, kind) else sympy
        return getattr(home, kind)(*values)


def is_false(made: dict[str, Any], draw: random.Random, tries: int = 6) -> bool:
    """Return whether exact numbers refute the claim of a certificate, or it is no claim at all."""
    try:
        lhs, rhs, given = _Back(made).claim()
        signature = inspect(lhs, rhs, *[side for pair in given for side in pair])
    except (OtimesError, KeyError, TypeError, ValueError, AttributeError):
        return True
    roots = signature.roots
    for attempt in range(tries):
        largest = 1 + attempt % 3
        if given:
            numbers = satisfying(given, signature, draw, largest, 3, roots)
        else:
            numbers = draw_assignment(signature, draw, largest, 5, roots)
        if not isinstance(numbers, Assignment):
            continue
        positive = {name for name, sign in made["scalars"].items() if sign == "positive"}
        if any(numbers.scalars.get(name, 1) <= 0 for name in positive):
            continue
        try:
            left, right = tree_value(lhs, numbers), tree_value(rhs, numbers)
        except OtimesError:
            continue
        if np.shape(left) != np.shape(right) or np.any(left != right):
            return True
    return False


# -- changes ---------------------------------------------------------------------------------------


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every number, name and truth value of a certificate."""
    if isinstance(tree, dict | list):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(part, (*path, key))
    else:
        yield path


def at(tree: Any, path: Sequence[Any]) -> Any:
    """Return what a path leads to."""
    for step in path:
        tree = tree[step]
    return tree


def changed(made: dict[str, Any], path: Sequence[Any], value: Any) -> dict[str, Any]:
    """Return a copy of a certificate with another value at a path."""
    result = copy.deepcopy(made)
    at(result, path[:-1])[path[-1]] = value
    return result


def changes(made: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield (path, new value): one leaf changed, one item dropped or two swapped.

    A number becomes its neighbours and its negative, a name each other name of the certificate that
    is of its kind, or one that nobody declared.
    """
    names: dict[str, list[str]] = {
        "Symbol": [*made["sizes"], *made["scalars"]],
        "MatrixSymbol": list(made["tensors"]),
        "FamilyMember": list(made["tensors"]),
        "Activation": ["f", *KNOWN],
    }
    for path in leaves(made):
        value = at(made, path)
        others: list[Any] = []
        if isinstance(value, bool):
            others = [not value]
        elif isinstance(value, int):
            others = [value + 1, value - 1, -value - 1]
        elif isinstance(value, str):
            kind = at(made, path[:-1])[0] if isinstance(at(made, path[:-1]), list) else ""
            others = [*names.get(kind, []), "nobody"]
        for other in others:
            if other != value:
                yield path, other
    for place in dict.fromkeys(p[:k] for p in leaves(made) for k in range(2, len(p))):
        items = at(made, place)
        if isinstance(items, list):
            for k in range(len(items)):
                yield place, items[:k] + items[k + 1 :]
            for k in range(len(items) - 1):
                if items[k] != items[k + 1]:
                    yield place, [*items[:k], items[k + 1], items[k], *items[k + 2 :]]


def disguised(made: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return the same certificate: terms in another order, wires and bound indices renamed."""
    result = copy.deepcopy(made)
    for side in ("lhs", "rhs"):
        result[side] = _turned(result[side], draw, {})
    result["given"] = [
        [_turned(lhs, draw, {}), _turned(rhs, draw, {}), *limits]
        for lhs, rhs, *limits in result["given"]
    ]
    if made["mode"] == "same trees":
        result["rhs"] = result["lhs"]
    if any(use["fact"][0] in ("turned", "root") for use in made["uses"]):
        result["given"] = copy.deepcopy(made["given"])  # where factors are counted
    draw.shuffle(result["uses"])
    for use in result["uses"]:
        context = use["context"]
        new = list(range(len(context["sorts"])))
        draw.shuffle(new)
        context["sorts"] = [context["sorts"][new.index(k)] for k in range(len(new))]
        for legs in ("rows", "cols"):
            context[legs] = [new[w] if w >= 0 else w for w in context[legs]]
        context["named"] = [[index, new[w]] for index, w in context["named"]]
        for box in context["boxes"]:
            place = 1 if box[0] == "hole" else 3
            box[place] = [new[w] if w >= 0 else w for w in box[place]]
        draw.shuffle(context["boxes"])
    return result


def _turned(tree: Any, draw: random.Random, names: dict[str, str]) -> Any:
    """Return a tree with the terms of its sums shuffled and its bound indices renamed."""
    if not isinstance(tree, list):
        return names.get(tree, tree) if isinstance(tree, str) else tree
    kind, *args = tree
    if kind in ("Symbol", "MatrixSymbol"):
        return tree
    if kind == "FamilyMember":
        return [kind, args[0], *[names.get(index, index) for index in args[1:]]]
    if kind in ("HeadSum", "ConcatHeads", "StackHeads", "Sum", "LayerProduct"):
        limits = [arg for arg in args[1:] if isinstance(arg, list)]
        names = {**names, **{index: f"{index}{draw.randrange(99)}x" for index, _ in limits}}
        renamed = [[names[index], count] for index, count in limits]
        rest = [arg for arg in args[1:] if not isinstance(arg, list)]
        return [kind, _turned(args[0], draw, names), *renamed, *rest]
    if kind == "BlockMatrix":
        return [kind, *[[_turned(block, draw, names) for block in line] for line in args]]
    args = [_turned(arg, draw, names) for arg in args]
    if kind in ("MatAdd", "Add", "HadamardProduct"):
        draw.shuffle(args)
    return [kind, *args]
