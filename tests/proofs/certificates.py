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
from sympy.matrices.expressions.diagonal import DiagonalMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.decide.counterexample import draw_assignment
from otimes.algebra.decide.satisfy import satisfying
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language import nonlinear, positions
from otimes.algebra.language.constants import PI
from otimes.algebra.language.functions import KNOWN
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.shapes import inspect
from otimes.proofs import replay
from otimes.proofs.catalogue import catalogue
from otimes.proofs.claims import Statement, equations
from tests.algebra.decide import test_decide, test_finite_sums, test_hypotheses
from tests.algebra.decide.suite import SUITE

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
    "shift out": (matmul(A, sympy.MatPow(positions.Shift(n), n + m), B), O_n, []),
    "shift back out": (sympy.MatPow(sympy.Transpose(positions.Shift(n)), n), O_n, []),
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
    "the diagonal part of blocks": (
        DiagonalMatrix(blocks),
        sympy.BlockDiagMatrix(DiagonalMatrix(E), DiagonalMatrix(T)),
        [],
    ),
    "the diagonal part of a Kronecker product": (
        DiagonalMatrix(kron(A, T)),
        kron(DiagonalMatrix(A), DiagonalMatrix(T)),
        [],
    ),
    "the norm of a Kronecker product": (
        nonlinear.RMSNorm(matmul(-1, kron(X, T)), Integer(1)),
        matmul(-1, nonlinear.RMSNorm(kron(X, T), Integer(1))),
        [],
    ),
    "a product to the power 0": (
        sympy.MatPow(matmul(K, blocks), 0),
        sympy.MatPow(matmul(blocks, K), 0),
        [],
    ),
    "a power 0 beside an identity": (
        kron(T, sympy.MatPow(A, 0)),
        matmul(kron(T, I_n), kron(Identity(m), sympy.MatPow(A, 0))),
        [],
    ),
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
    for k, sides in enumerate(test_finite_sums.PROVED):
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
    """Trees as SymPy expressions, for an evaluator that knows nothing of certificates.

    Every binder has a symbol of its own, so that nothing can be captured.
    """

    def __init__(self, made: dict[str, Any]) -> None:
        self.made = made
        self.sizes = [
            Symbol(f"n{k}", positive=True, integer=True) for k in range(len(made["sizes"]))
        ]
        self.scalars = [
            Symbol(f"a{k}", **{flag: True for flag in flags if flag != "real"})
            for k, (_, flags) in enumerate(made["scalars"])
        ]
        self.binders = 0

    def fresh(self) -> Symbol:
        self.binders += 1
        return Symbol(f"i{self.binders}", integer=True)

    def claim(self) -> Claim:
        """Return the two sides and the hypotheses."""
        made = self.made
        free = [self.fresh() for _ in made["indices"]]
        given = []
        for counts, *sides in made["given"]:
            own = [self.fresh() for _ in counts]
            lhs, rhs = [self.read(side, own) for side in sides]
            given.append((lhs, rhs))
        return self.read(made["lhs"], free), self.read(made["rhs"], free), given

    def index(self, index: Any, scope: list[Symbol]) -> Any:
        return Integer(index) if type(index) is int else scope[index[1]]

    def read(self, tree: Any, scope: list[Symbol]) -> Any:
        """Return a tree as an expression."""
        if type(tree) is int:
            return Integer(tree)
        kind, *args = tree
        if kind == "i":
            return self.index(tree, scope)
        if kind in ("size", "scalar"):
            return (self.sizes if kind == "size" else self.scalars)[args[0]]
        if kind == "pi":
            return PI
        if kind == "Rational":
            return sympy.Rational(*args)
        if kind == "tensor":
            _, counts, *shape = self.made["tensors"][args[0]]
            rows, cols = [self.read(size, []) for size in shape]
            if not counts:
                return MatrixSymbol(f"T{args[0]}", rows, cols)
            every = tuple([self.read(count, []) for count in counts])
            family = Family(f"T{args[0]}", every, rows, cols)
            return family[tuple([self.index(i, scope) for i in args[1:]])]
        if kind == "OneHot":
            return OneHot(self.index(args[0], scope), self.read(args[1], scope))
        if kind == "MatrixElement":
            return MatrixElement(
                self.read(args[0], scope), *[self.index(i, scope) for i in args[1:]]
            )
        if kind in ("HeadSum", "ConcatHeads", "StackHeads", "LayerProduct", "OrderSum", "Sum"):
            new = self.fresh()
            body, count = self.read(args[0], [*scope, new]), self.read(args[1], scope)
            if kind == "Sum":
                return sympy.Sum(body, (new, 0, count - 1))
            if kind == "LayerProduct":
                return LayerProduct(body, (new, count), args[2])
            if kind == "OrderSum":
                return OrderSum(body, (new, count), self.read(args[2], scope), args[3])
            of = {"HeadSum": HeadSum, "ConcatHeads": ConcatHeads, "StackHeads": StackHeads}[kind]
            return of(body, (new, count))
        if kind == "ImmutableDenseMatrix":
            return ImmutableMatrix(*args[:2], [self.read(entry, scope) for entry in args[2:]])
        if kind == "BlockMatrix":
            return BlockMatrix([[self.read(block, scope) for block in line] for line in args])
        if kind == "Activation":
            return Activation(args[0], self.read(args[1], scope))
        values = [self.read(arg, scope) for arg in args]
        for module in (nonlinear, positions):
            if hasattr(module, kind):
                return getattr(module, kind)(*values)
        if kind in ("MatMul", "MatAdd"):
            matrices = any(getattr(value, "is_Matrix", False) for value in values)
            if matrices:
                return (matmul if kind == "MatMul" else matadd)(*values)
            return getattr(sympy, kind[3:])(*values, evaluate=False)
        if kind == "KroneckerProduct":
            return kron(*values)
        if kind in ("vec_rows", "vec_cols"):
            return (vec_rows if kind == "vec_rows" else vec_cols)(*values)
        if kind in ("Add", "Mul", "Pow") and all(value.is_polynomial() for value in values):
            return sympy.expand(getattr(sympy, kind)(*values))  # a size, as sums are compared
        if kind in ("Add", "Mul", "Pow", "MatPow", "HadamardProduct"):
            return getattr(sympy, kind)(*values, evaluate=False)
        home = diagonal if hasattr(diagonal, kind) else sympy
        return getattr(home, kind)(*values)


SIGNS: dict[str, Any] = {
    "real": lambda value: True,
    "positive": lambda value: value > 0,
    "nonnegative": lambda value: value >= 0,
    "nonzero": lambda value: value != 0,
    "negative": lambda value: value < 0,
}


def is_false(made: dict[str, Any], draw: random.Random, tries: int = 6) -> bool:
    """Return whether exact numbers refute the claim of a certificate, or it is no claim at all."""
    try:
        lhs, rhs, given = _Back(made).claim()
        sides = [lhs, rhs, *[side for pair in given for side in pair]]
        if any(side.has(sympy.zoo, sympy.nan) for side in sides):
            return False  # what divides by 0 says nothing
        signature = inspect(*sides)
    except (OtimesError, LookupError, TypeError, ValueError, AttributeError):
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
        flags = {f"a{k}": flags for k, (_, flags) in enumerate(made["scalars"])}
        if not all(
            SIGNS[flag](value)
            for name, value in numbers.scalars.items()
            for flag in flags.get(name, [])
        ):
            continue
        try:
            left, right = tree_value(lhs, numbers), tree_value(rhs, numbers)
        except (OtimesError, IndexError):
            continue
        if np.shape(left) != np.shape(right) or np.any(left != right):
            return True
    return False


# -- changes ---------------------------------------------------------------------------------------

ALIKE = [
    {"HeadSum", "ConcatHeads", "StackHeads"},
    {"MatMul", "MatAdd", "HadamardProduct", "KroneckerProduct"},
    {"vec_rows", "vec_cols", "Transpose", "DiagonalOf", "DiagonalMatrix", "DiagMatrix", "Trace"},
    {"Add", "Mul"},
    {"OneMatrix", "ZeroMatrix"},
    {"Identity", "CausalMask", "Shift"},
    {"Positions", "OneHotLast"},
    {"RMSNorm", "LayerNorm"},
    {"cancel", "induction", "generalise"},
    {"f", *KNOWN},
    set(replay.AXIOMS["axioms"]),
]


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
    at(result, path[:-1])[path[-1]] = copy.deepcopy(value)
    return result


def is_display(path: Sequence[Any]) -> bool:
    """Return whether a path leads to a name that is there to be read."""
    return path[0] == "sizes" or (path[0] in ("scalars", "tensors", "indices") and path[2:] == (0,))


def changes(made: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield (path, new value): one leaf changed, one item dropped, doubled, or two swapped.

    A number becomes its neighbours and its negative, a word each other word of its kind.
    """
    for path in leaves(made):
        value = at(made, path)
        others: list[Any] = []
        if is_display(path):
            continue
        if isinstance(value, bool):
            others = [not value, int(value)]
        elif isinstance(value, int):
            others = [value + 1, value - 1, -value - 1, bool(value), float(value)]
        elif isinstance(value, str):
            alike = [words for words in ALIKE if value in words]
            others = [*sorted(set().union(*alike)), "nobody"]
        for other in others:
            if other != value or type(other) is not type(value):
                yield path, other
    for place in dict.fromkeys(p[:k] for p in leaves(made) for k in range(1, len(p))):
        items = at(made, place)
        if isinstance(items, list) and place != ("sizes",):
            for k in range(len(items)):
                yield place, items[:k] + items[k + 1 :]
                yield place, [*items[: k + 1], *items[k:]]
            for k in range(len(items) - 1):
                if items[k] != items[k + 1]:
                    yield place, [*items[:k], items[k + 1], items[k], *items[k + 2 :]]


def parts_of(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every part of a certificate."""
    if path:
        yield path
    if isinstance(tree, dict | list):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from parts_of(part, (*path, key))


def crossed(made: dict[str, Any], other: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return a certificate with one part replaced by a part of another, or of its own.

    The part that comes is of the same kind, a list that begins with the same word where there is.
    """
    place = draw.choice([path for path in parts_of(made) if not is_display(path)])
    old = at(made, place)

    def kind(part: Any) -> Any:
        head = part[0] if isinstance(part, list) and part and isinstance(part[0], str) else ""
        matrix = head not in ("", "size", "scalar", "i")
        return type(part), head if draw.random() < 0.3 else matrix

    wanted = kind(old)
    found = [part for path in parts_of(other) if kind(part := at(other, path)) == wanted]
    return changed(made, place, draw.choice(found) if found else [])


# -- the same certificate in other words -----------------------------------------------------------


def disguised(made: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return the same certificate: terms, facts and uses in another order, all numbers changed."""
    counts = {kind: len(made[kind + "s"]) for kind in ("size", "scalar", "tensor")}
    new = {kind: draw.sample(range(count), count) for kind, count in counts.items()}
    order = draw.sample(range(len(made["given"])), len(made["given"]))

    def tree(part: Any) -> Any:
        return _turned(part, draw, new)

    result = {**made, "nonzero": [tree(one) for one in made["nonzero"]]}
    for kind in counts:
        result[kind + "s"] = _moved(made[kind + "s"], new[kind])
    result["sizes"] = [f"size{k}" for k in range(counts["size"])]
    result["scalars"] = [[f"scalar{k}", flags] for k, (_, flags) in enumerate(result["scalars"])]
    result["tensors"] = [["same name", *map(tree, parts)] for _, *parts in result["tensors"]]
    result["indices"] = [["index", tree(count)] for _, count in made["indices"]]
    given = [[[tree(c) for c in counts], tree(a), tree(b)] for counts, a, b in made["given"]]
    result["given"] = _moved(given, order)
    result["lhs"], result["rhs"] = tree(made["lhs"]), tree(made["rhs"])
    result["proof"] = _reproved(made["proof"], draw, new, order, 0)
    return copy.deepcopy(result)


def _moved(items: Sequence[Any], new: Sequence[int]) -> list[Any]:
    """Return items each at its new place."""
    result = list(items)
    for item, place in zip(items, new, strict=True):
        result[place] = item
    return result


def _reproved(
    proof: Any, draw: random.Random, new: dict[str, list[int]], order: list[int], more: int
) -> Any:
    """Return a proof in other words; there are `more` hypotheses of induction."""
    if proof["rule"] == "induction":
        base = _reproved(proof["base"], draw, new, order, more)
        step = _reproved(proof["step"], draw, new, order, more + 1)
        return {"rule": "induction", "over": new["size"][proof["over"]], "base": base, "step": step}
    if proof["rule"] == "generalise":  # the new matrix has the next number

        def tree(part: Any) -> Any:
            return _turned(part, draw, new)

        inner = {**new, "tensor": [*new["tensor"], len(new["tensor"])]}
        parts = {"part": tree(proof["part"]), "shape": [tree(n) for n in proof["shape"]]}
        return {**proof, **parts, "proof": _reproved(proof["proof"], draw, inner, order, more)}

    def tree(part: Any) -> Any:
        return _turned(part, draw, new)

    result = {**proof, "splits": [[tree(part) for part in pair] for pair in proof["splits"]]}
    facts = []
    for kind, counts, name, form, values, proofs in proof["facts"]:
        values = {key: v if isinstance(v, str) else tree(v) for key, v in values.items()}
        premises = [_reproved(one, draw, new, order, more) for one in proofs]
        facts.append([kind, [tree(count) for count in counts], name, form, values, premises])
    first = len(order) + more
    places = draw.sample(range(len(facts)), len(facts))
    result["facts"] = _moved(facts, places)
    uses = []
    for use in proof["uses"]:
        number = use["fact"]
        if number < len(order):
            number = order[number]
        elif number >= first:
            number = first + places[number - first]
        one = {**use, "fact": number, "coefficient": tree(use["coefficient"])}
        if "context" in use:
            one |= _rewired(use, draw, tree)
        uses.append(one)
    draw.shuffle(uses)
    return {**result, "uses": uses}


def _rewired(use: Any, draw: random.Random, tree: Any) -> dict[str, Any]:
    """Return the context of a use with its wires in another order."""
    context = use["context"]
    new = draw.sample(range(len(context["sizes"])), len(context["sizes"]))

    def moved(index: Any) -> list[int]:
        return [new[wire] if wire >= 0 else wire for wire in index]

    boxes = [
        [
            tree(box),
            [[tree(count), moved(index)] for count, index in counts],
            moved(row),
            moved(col),
        ]
        for box, counts, row, col in context["boxes"]
    ]
    draw.shuffle(boxes)
    result = {
        "sizes": _moved([tree(size) for size in context["sizes"]], new),
        "held": [[new[wire], value] for wire, value in context["held"]],
        "free": [[level, moved(index)] for level, index in context["free"]],
        "rows": moved(context["rows"]),
        "cols": moved(context["cols"]),
        "boxes": boxes,
        "hole": [moved(index) for index in context["hole"]],
    }
    return {"at": [moved(index) for index in use["at"]], "context": result}


def _turned(tree: Any, draw: random.Random, new: dict[str, list[int]]) -> Any:
    """Return a tree with the terms of its sums shuffled and its symbols renumbered."""
    if not isinstance(tree, list) or not tree:
        return tree
    kind, *args = tree
    if isinstance(kind, str) and kind in new:
        return [kind, new[kind][args[0]], *args[1:]]
    args = [_turned(arg, draw, new) for arg in args]
    if kind in ("MatAdd", "Add", "HadamardProduct"):
        draw.shuffle(args)
    return [_turned(kind, draw, new), *args]
