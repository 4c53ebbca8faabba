"""True identities, made by sound rewriting, and near misses: false, by one mistake.

A rule rewrites one node of a tree to an equal expression. A mistake is a typical human error; a
near miss is only kept if exact evaluation shows it to be false.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sympy
from hypothesis import assume
from hypothesis import strategies as st
from sympy import (
    HadamardProduct,
    Identity,
    KroneckerProduct,
    MatAdd,
    MatMul,
    MatPow,
    MatrixExpr,
    MatrixSymbol,
    Transpose,
)

from otimes.algebra.decide.counterexample import Trial, differs, draw_assignment
from otimes.algebra.language.linear import (
    FamilyMember,
    HeadSum,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.sizes import same_size
from otimes.algebra.language.unicode import unicode_text
from otimes.numeric.strategies.expressions import DEFAULT, Alphabet, Shape, expressions
from otimes.numeric.strategies.matrices import Draw, one_of

MOST_STEPS = 4
TRIALS = 6  # exact trials before a changed equation is presumed to be true
SEED = 20_211_222


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """Two sides, the names of the rules or mistakes between them, and where they differ, if so.

    `trial` is None for an identity; for a near-miss it has the exact numbers at which the sides
    differ (`.assignment`, `.entry`, `.lhs`, `.rhs`).
    """

    lhs: Any
    rhs: Any
    changes: tuple[str, ...]
    trial: Trial | None = None

    @property
    def is_true(self) -> bool:
        """Whether the equation holds for all sizes and all values."""
        return self.trial is None

    def __repr__(self) -> str:
        """Return the equation as text; SymPy's printer would evaluate the sides."""
        sides = f"{unicode_text(self.lhs)} = {unicode_text(self.rhs)}"
        return f"<{'true' if self.is_true else 'false'}: {sides} ({', '.join(self.changes)})>"


@st.composite
def identities(
    draw: Draw, shape: Shape | None = None, depth: int = 3, alphabet: Alphabet = DEFAULT
) -> Equation:
    """Draw a true Equation: an expression, and the same after one to four sound rewrites.

    >>> from hypothesis import given
    >>> from otimes.algebra.verdict import decide
    >>> @given(identities())
    ... def test(identity):
    ...     assert decide(identity.lhs, identity.rhs).status == "proved"
    >>> test()
    """
    lhs = draw(expressions(shape, depth, alphabet))
    rhs, used = lhs, []
    for _ in range(draw(st.integers(1, MOST_STEPS))):
        options = [
            (path, rule)
            for path, part in _places(rhs)
            for rule in RULES
            if RULES[rule](part) is not None
        ]
        path, rule = one_of(draw, options)
        rhs = _replaced(rhs, path, RULES[rule])
        used.append(rule)
    return Equation(lhs, rhs, tuple(used))


@st.composite
def near_misses(
    draw: Draw, shape: Shape | None = None, depth: int = 3, alphabet: Alphabet = DEFAULT
) -> Equation:
    """Draw a false Equation: a true one with one mistake on its right side.

    The mistakes: a transpose dropped or inserted, factors swapped, a term dropped or doubled, a
    product instead of a Hadamard product, another symbol of the same shape. `trial` has exact
    values at which the sides differ.

    >>> from hypothesis import given
    >>> from otimes.algebra.verdict import decide
    >>> @given(near_misses())
    ... def test(miss):
    ...     assert decide(miss.lhs, miss.rhs).status == "refuted"
    >>> test()
    """
    true = draw(identities(shape, depth, alphabet))
    options = [
        (path, mistake)
        for path, part in _places(true.rhs)
        for mistake in MISTAKES
        if MISTAKES[mistake](part, alphabet) is not None
    ]
    assume(options)
    start = draw(st.integers(0, len(options) - 1))
    for path, mistake in options[start:] + options[:start]:

        def wrong(part: Any, mistake: str = mistake) -> Any:
            return MISTAKES[mistake](part, alphabet)

        rhs = _replaced(true.rhs, path, wrong)
        trial = _trial(true.lhs, rhs)
        if trial is not None:
            return Equation(true.lhs, rhs, (*true.changes, mistake), trial)
    assume(False)
    raise AssertionError("assume(False) does not return")


def _trial(lhs: Any, rhs: Any) -> Trial | None:
    """Return exact values at which the sides differ, or None if a few draws find none."""
    signature = inspect(lhs, rhs)
    roots = signature.roots
    numbers = random.Random(SEED)
    for attempt in range(TRIALS):
        assignment = draw_assignment(signature, numbers, 2 + attempt // 3, 3, roots)
        trial = assignment and differs(lhs, rhs, assignment)
        if trial:
            return trial
    return None


# -- nodes of a tree ------------------------------------------------------------------------------

Path = tuple[int, ...]


def _places(e: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the subexpression of every matrix node, the root first."""
    yield path, e
    if isinstance(e, MatrixSymbol | FamilyMember):
        return
    for k, argument in enumerate(e.args):
        if isinstance(argument, MatrixExpr):
            yield from _places(argument, (*path, k))


def _replaced(e: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(e)
    arguments = list(e.args)
    arguments[path[0]] = _replaced(arguments[path[0]], path[1:], change)
    return _rebuilt(e, arguments)


def _rebuilt(e: Any, arguments: list[Any]) -> Any:
    """Return a node of the same type with other arguments, unevaluated."""
    if isinstance(e, MatMul | MatAdd | HadamardProduct | MatPow):
        return type(e)(*arguments, evaluate=False)
    if isinstance(e, KroneckerProduct):
        return kron(*arguments)
    return type(e)(*arguments)


def _matrices(e: Any) -> bool:
    return all(isinstance(argument, MatrixExpr) for argument in e.args)


# -- sound rules -----------------------------------------------------------------------------------


def _transpose_twice(e: Any) -> Any:
    return Transpose(Transpose(e))


def _times_identity(e: Any) -> Any:
    return matmul(Identity(e.shape[0]), e)


def _transpose_inwards(e: Any) -> Any:
    if not isinstance(e, Transpose):
        return None
    inner = e.args[0]
    if isinstance(inner, Transpose):
        return inner.args[0]
    if isinstance(inner, MatMul) and _matrices(inner):
        return matmul(*[Transpose(x) for x in reversed(inner.args)])
    if isinstance(inner, MatAdd | HadamardProduct | KroneckerProduct):
        return _rebuilt(inner, [Transpose(x) for x in inner.args])
    if isinstance(inner, HeadSum):
        return HeadSum(Transpose(inner.body), *[tuple(limit) for limit in inner.args[1:]])
    return None


def _commute(e: Any) -> Any:
    return _rebuilt(e, list(reversed(e.args))) if isinstance(e, MatAdd | HadamardProduct) else None


def _distribute(e: Any) -> Any:
    if not isinstance(e, MatMul | HadamardProduct | KroneckerProduct):
        return None
    for k, factor in enumerate(e.args):
        if isinstance(factor, MatAdd):
            before, after = list(e.args[:k]), list(e.args[k + 1 :])
            return matadd(*[_rebuilt(e, [*before, term, *after]) for term in factor.args])
    return None


def _associate(e: Any) -> Any:
    if isinstance(e, MatMul) and len(e.args) == 2 and _matrices(e):
        left, right = e.args
        if isinstance(left, MatMul) and _matrices(left):
            return matmul(left.args[0], matmul(*left.args[1:], right))
        if isinstance(right, MatMul) and _matrices(right):
            return matmul(matmul(left, *right.args[:-1]), right.args[-1])
    return None


def _power_as_product(e: Any) -> Any:
    if not isinstance(e, MatPow):
        return None
    return matmul(*[e.base] * int(e.exp)) if e.exp >= 1 else Identity(e.shape[0])


def _split_kron(e: Any) -> Any:
    if isinstance(e, KroneckerProduct) and len(e.args) == 2:
        x, y = e.args
        return matmul(kron(x, Identity(y.shape[0])), kron(Identity(x.shape[1]), y))
    return None


def _mixed_product(e: Any) -> Any:
    if not (isinstance(e, MatMul) and len(e.args) == 2):
        return None
    if not all(isinstance(x, KroneckerProduct) and len(x.args) == 2 for x in e.args):
        return None
    (p, q), (r, s) = e.args[0].args, e.args[1].args
    if not (same_size(p.shape[1], r.shape[0]) and same_size(q.shape[1], s.shape[0])):
        return None
    return kron(matmul(p, r), matmul(q, s))


def _other_vec(e: Any) -> Any:
    if isinstance(e, vec_rows):
        return vec_cols(Transpose(e.args[0]))
    return vec_rows(Transpose(e.args[0])) if isinstance(e, vec_cols) else None


def _vec_of_product(e: Any) -> Any:
    """vec_rows(X Y) = (X ⊗ I) vec_rows(Y)."""
    if isinstance(e, vec_rows) and isinstance(e.args[0], MatMul) and _matrices(e.args[0]):
        x, *rest = e.args[0].args
        if rest:
            y = matmul(*rest) if len(rest) > 1 else rest[0]
            return matmul(kron(x, Identity(y.shape[1])), vec_rows(y))
    return None


def _into_head_sum(e: Any) -> Any:
    if isinstance(e, MatMul) and len(e.args) == 2 and isinstance(e.args[0], HeadSum):
        heads, right = e.args
        free = right.free_symbols if isinstance(right, MatrixExpr) else None
        if free is not None and not free & {index for index, _ in heads.limits}:
            if any(isinstance(x, HeadSum) for x in sympy.preorder_traversal(right)):
                return None  # the same index would be bound twice
            return HeadSum(matmul(heads.body, right), *[tuple(x) for x in heads.args[1:]])
    if isinstance(e, HeadSum) and isinstance(e.body, MatAdd):
        limits = [tuple(limit) for limit in e.args[1:]]
        return matadd(*[HeadSum(term, *limits) for term in e.body.args])
    return None


RULES: dict[str, Callable[[Any], Any]] = {
    "transpose twice": _transpose_twice,
    "times the identity": _times_identity,
    "transpose inwards": _transpose_inwards,
    "commute": _commute,
    "distribute": _distribute,
    "associate": _associate,
    "power as a product": _power_as_product,
    "split a Kronecker product": _split_kron,
    "mixed product": _mixed_product,
    "the other vec": _other_vec,
    "vec of a product": _vec_of_product,
    "into the sum over heads": _into_head_sum,
}


# -- mistakes --------------------------------------------------------------------------------------


def _drop_transpose(e: Any, alphabet: Alphabet) -> Any:
    return e.args[0] if isinstance(e, Transpose) and same_size(*e.shape) else None


def _insert_transpose(e: Any, alphabet: Alphabet) -> Any:
    is_square = same_size(*e.shape) and e.shape[0] != 1
    return Transpose(e) if is_square and isinstance(e, MatrixSymbol | FamilyMember) else None


def _swap_factors(e: Any, alphabet: Alphabet) -> Any:
    if isinstance(e, MatMul) and len(e.args) == 2 and _matrices(e):
        x, y = e.args
        if all(same_size(size, x.shape[0]) for size in (*x.shape, *y.shape)):
            return matmul(y, x)
    return None


def _lose_term(e: Any, alphabet: Alphabet) -> Any:
    if not isinstance(e, MatAdd) or len(e.args) < 2:
        return None
    return e.args[1] if len(e.args) == 2 else matadd(*e.args[1:])


def _count_twice(e: Any, alphabet: Alphabet) -> Any:
    return matmul(2, e)


def _product_for_hadamard(e: Any, alphabet: Alphabet) -> Any:
    is_square = isinstance(e, HadamardProduct) and same_size(*e.shape)
    return matmul(*e.args) if is_square else None


def _other_symbol(e: Any, alphabet: Alphabet) -> Any:
    if not isinstance(e, MatrixSymbol):
        return None
    others = (t for t in alphabet.tensors if isinstance(t, MatrixSymbol) and t != e)
    return next((t for t in others if t.shape == e.shape), None)


MISTAKES: dict[str, Callable[[Any, Alphabet], Any]] = {
    "count twice": _count_twice,
    "drop a transpose": _drop_transpose,
    "insert a transpose": _insert_transpose,
    "swap factors": _swap_factors,
    "lose a term": _lose_term,
    "a product for a Hadamard product": _product_for_hadamard,
    "another symbol": _other_symbol,
}
