"""Mutants: every small way to get a statement wrong, at every place of both sides.

A check that cannot fail is not a check. Each mutant is put to the same judge as the theorem: it
must be refuted by exact numbers, or be still true (`tr ABC` rotated), in which case the exact
evaluator must agree and it is listed. A mutant whose shapes do not fit is tried once more with all
sizes made equal, where it is a claim after all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count, pairwise
from random import Random
from typing import Any

import sympy

from algebra.budget import Budget
from algebra.decide import decide
from algebra.errors import LanguageError, OtimesError, ShapeError
from algebra.exact import Assignment
from algebra.language import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from algebra.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from algebra.refute import Draw, search
from algebra.shapes import same_shape, shape_of
from algebra.signature import Signature
from algebra.text import unicode_text
from proofs.claims import Example, Lemma, equations
from proofs.hypotheses import SEED, drawer, signature_of, unmet

WORK_EACH = 10.0  # units of work
WORK_FIRST = 5.0  # to look for numbers before anything else, under hypotheses
WITHOUT = "without a hypothesis"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A statement with one mistake: which operator made it, on which side, and what it says."""

    operator: str
    side: str
    lhs: sympy.Basic
    rhs: sympy.Basic

    def __str__(self) -> str:
        if self.operator == WITHOUT:
            return f"without {self.side}"
        changed = self.lhs if self.side == "left" else self.rhs
        return f"{self.operator}, {self.side} side: {unicode_text(changed)}"


@dataclass(frozen=True, slots=True)
class MutantEvidence:
    """What became of the mutants of a statement; `escaped` ones are a failure of ours."""

    refuted: int
    still_true: tuple[str, ...]
    escaped: tuple[str, ...]
    ill_shaped: int

    @property
    def passed(self) -> bool:
        """Whether every mutant was accounted for, and at least one was refuted."""
        return not self.escaped and self.refuted > 0


def check_mutants(lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any] = ()) -> MutantEvidence:
    """Return what the judge says of every mutant of a statement.

    Under hypotheses, losing one is a mutant too: a claim that holds without it claims too little.
    """
    refuted = ill_shaped = 0
    still_true, escaped = [], []
    draws = _Draws(given)
    for k, mutant in chain(_fewer_hypotheses(lhs, rhs, given), _all_given(lhs, rhs, given)):
        verdict = _judge(mutant.lhs, mutant.rhs, k, draws if k is given else _Draws(k))
        if verdict is None:
            sides = [side for pair in equations(k) for side in pair]
            left, right, *sides = with_equal_sizes(mutant.lhs, mutant.rhs, *sides)
            examples = [each for each in given if isinstance(each, Example)]
            alike = [*zip(sides[::2], sides[1::2], strict=True), *examples]
            verdict = _judge(left, right, alike, _Draws(alike))
        if verdict is None:
            ill_shaped += 1
        elif verdict == "refuted":
            refuted += 1
        elif verdict == "still true" and mutant.operator != WITHOUT:
            still_true.append(str(mutant))
        else:
            escaped.append(f"{mutant}: {verdict}")
    return MutantEvidence(refuted, tuple(still_true), tuple(escaped), ill_shaped)


def mutants(lhs: sympy.Basic, rhs: sympy.Basic) -> Iterator[Mutant]:
    """Yield every mutant of lhs = rhs once: each operator at each position of each side."""
    met = {(lhs, rhs)}
    for name, operator in OPERATORS.items():
        for side in _everywhere(lhs, operator):
            if (side, rhs) not in met:
                met.add((side, rhs))
                yield Mutant(name, "left", side, rhs)
        for side in _everywhere(rhs, operator):
            if (lhs, side) not in met:
                met.add((lhs, side))
                yield Mutant(name, "right", lhs, side)


def mutants_of(expression: Any) -> Iterator[Mutant]:
    """Yield every mutant of one expression once, as both sides of a Mutant."""
    met = {expression}
    for name, operator in OPERATORS.items():
        for changed in _everywhere(expression, operator):
            if changed not in met:
                met.add(changed)
                yield Mutant(name, "left", changed, changed)


Claimed = Iterator[tuple[Sequence[Any], Mutant]]  # a mutant, and the hypotheses it stands under


def _all_given(lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any]) -> Claimed:
    for mutant in mutants(lhs, rhs):
        yield given, mutant


def _fewer_hypotheses(lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any]) -> Claimed:
    """Yield the claim without each of its hypotheses; a lemma is true, and cannot be lost.

    With a hypothesis goes a lemma that assumes it.
    """
    for k, each in enumerate(given):
        if not isinstance(each, Lemma | Example):
            rest = [*given[:k], *given[k + 1 :]]
            left = [
                one
                for one in rest
                if not isinstance(one, Lemma)
                or not unmet([one, *(other for other in rest if not isinstance(other, Lemma))])
            ]
            yield left, Mutant(WITHOUT, f"hypothesis {k + 1}", lhs, rhs)


class _Draws:
    """Numbers at which hypotheses hold, drawn once for all mutants that speak of the same symbols.

    They are hard to come by. The k-th draw has a seed of its own.
    """

    def __init__(self, given: Sequence[Any]) -> None:
        self.draw = drawer(given) if given else None
        self.made: dict[Any, Assignment | None] = {}

    def again(self) -> Draw | None:
        """Return what draws them, from the first on."""
        if self.draw is None:
            return None
        draw, number = self.draw, count()

        def drawn(
            signature: Signature, rng: Random, largest: int, entries: int, roots: dict[str, int]
        ) -> Assignment | None:
            parts = (signature.tensors, signature.sizes, signature.scalars, signature.indices)
            speaks_of = frozenset(symbol for part in parts for symbol in part.values())
            sizes = frozenset(signature.fixed.items()), frozenset(signature.dimensions)
            key = (speaks_of, sizes, tuple(roots.items()), largest, entries, next(number))
            if key not in self.made:
                own = Random(SEED + key[-1])
                self.made[key] = draw(signature, own, largest, entries, roots)
            return self.made[key]

        return drawn


def _judge(lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any], draws: _Draws) -> str | None:
    """Return `refuted`, `still true`, another word for what went wrong, or None if ill shaped."""
    pairs = equations(given)
    try:
        signature = signature_of(given, lhs, rhs)
        if not same_shape(shape_of(lhs), shape_of(rhs)):
            return None
        if given:  # numbers are found sooner than it is found out that nothing follows
            with suppress(OtimesError), Budget(WORK_FIRST):
                if search(lhs, rhs, signature, 4, draws.again()) is not None:
                    return "refuted"
        verdict = decide(lhs, rhs, pairs, budget=WORK_EACH)
        if verdict.status != "proved":
            return verdict.status if verdict.status == "refuted" else verdict.reason
        with Budget(WORK_EACH):
            trial = search(lhs, rhs, signature, 4, draws.again())
    except (ShapeError, LanguageError):
        return None
    return "still true" if trial is None else "proved, but the exact evaluator disagrees"


def with_equal_sizes(*expressions: Any) -> tuple[Any, ...]:
    """Return expressions with every size made the same symbol."""
    size = sympy.Symbol("s", positive=True, integer=True)
    names = {s for e in expressions for s in _size_symbols(e)}
    return tuple(e.xreplace(dict.fromkeys(names, size)) for e in expressions)


def _size_symbols(e: sympy.Basic) -> set[sympy.Symbol]:
    found: set[sympy.Symbol] = set()
    for part in sympy.preorder_traversal(e):
        shape = part.shape if isinstance(part, sympy.MatrixExpr) else ()
        known = [each for each in shape if each is not None]  # of a diagonal of n × m
        found |= {s for dimension in known for s in sympy.sympify(dimension).free_symbols}
    return found


# -- operators: each yields the wrong versions of one node -----------------------------------------

Operator = Callable[[Any], Iterator[Any]]


def _swap_factors(e: Any) -> Iterator[Any]:
    if isinstance(e, sympy.MatMul | sympy.KroneckerProduct):
        for k, (left, right) in enumerate(pairwise(e.args)):
            if left.is_Matrix and right.is_Matrix:  # scalars commute, which is no mistake
                yield rebuild(e, [*e.args[:k], right, left, *e.args[k + 2 :]])


def _lose_factor(e: Any) -> Iterator[Any]:
    if isinstance(e, sympy.MatMul | sympy.HadamardProduct) and len(e.args) > 1:
        for k in range(len(e.args)):
            rest = [*e.args[:k], *e.args[k + 1 :]]
            if any(factor.is_Matrix for factor in rest):
                yield rest[0] if len(rest) == 1 else rebuild(e, rest)


def _drop_transpose(e: Any) -> Iterator[Any]:
    if isinstance(e, sympy.Transpose):
        yield e.args[0]


def _insert_transpose(e: Any) -> Iterator[Any]:
    if isinstance(e, sympy.MatrixSymbol | FamilyMember):
        yield sympy.Transpose(e)


def _lose_term(e: Any) -> Iterator[Any]:
    if isinstance(e, sympy.MatAdd | sympy.Add) and len(e.args) > 1:
        for k in range(len(e.args)):
            rest = [*e.args[:k], *e.args[k + 1 :]]
            yield rest[0] if len(rest) == 1 else rebuild(e, rest)


def _count_term_twice(e: Any) -> Iterator[Any]:
    yield from _times_a_term(e, 2)


def _flip_sign(e: Any) -> Iterator[Any]:
    yield from _times_a_term(e, -1)


def _times_a_term(e: Any, number: int) -> Iterator[Any]:
    if isinstance(e, sympy.MatAdd):
        for k, term in enumerate(e.args):
            yield matadd(*e.args[:k], matmul(number, term), *e.args[k + 1 :])
    if isinstance(e, sympy.Add) and _holds_matrices(e):
        for k, term in enumerate(e.args):
            yield sympy.Add(*e.args[:k], number * term, *e.args[k + 1 :])


def _invert_scale(e: Any) -> Iterator[Any]:
    if isinstance(e, sympy.MatMul):
        for k, factor in enumerate(e.args):
            if not factor.is_Matrix:
                yield matmul(*e.args[:k], 1 / factor, *e.args[k + 1 :])


def _rotate_trace(e: Any) -> Iterator[Any]:
    if isinstance(e, sympy.Trace) and isinstance(e.args[0], sympy.MatMul):
        first, *rest = e.args[0].args
        yield sympy.Trace(matmul(*rest, first))


def _other_vec(e: Any) -> Iterator[Any]:
    if isinstance(e, vec_rows | vec_cols):
        yield (vec_cols if isinstance(e, vec_rows) else vec_rows)(e.args[0])


def _first_head_only(e: Any) -> Iterator[Any]:
    if isinstance(e, HeadSum):
        for k, (index, _) in enumerate(e.limits):
            body = e.body.xreplace({index: sympy.S.Zero})
            rest = [limit for j, limit in enumerate(e.limits) if j != k]
            yield HeadSum(body, *rest) if rest else body


def _other_member(e: Any) -> Iterator[Any]:
    if isinstance(e, FamilyMember):
        for k, index in enumerate(e.indices):
            if index.is_Integer:
                other = 1 - int(index) if int(index) < 2 else 0
                yield e.family[(*e.indices[:k], other, *e.indices[k + 1 :])]
            else:
                yield e.family[(*e.indices[:k], 0, *e.indices[k + 1 :])]


def _wrong_axis(e: Any) -> Iterator[Any]:
    """The softmax of each column: as if queries and keys had changed places.

    Not where a mask has columns of zeros: there, turned, it would leave nothing to take it of.
    """
    if isinstance(e, RowSoftmax) and not (e.mask is not None and e.mask.has(sympy.ZeroMatrix)):
        yield sympy.Transpose(RowSoftmax(*[sympy.Transpose(a) for a in e.args]))


def _lose_mask(e: Any) -> Iterator[Any]:
    if isinstance(e, RowSoftmax) and e.mask is not None:
        yield RowSoftmax(e.args[0])


def _lose_function(e: Any) -> Iterator[Any]:
    if isinstance(e, RowSoftmax | Activation | RMSNorm | LayerNorm):
        yield next(a for a in e.args if isinstance(a, sympy.MatrixExpr))


def _other_norm(e: Any) -> Iterator[Any]:
    if isinstance(e, RMSNorm | LayerNorm):
        yield (LayerNorm if isinstance(e, RMSNorm) else RMSNorm)(*e.args)


def _other_eps(e: Any) -> Iterator[Any]:
    if isinstance(e, RMSNorm | LayerNorm):
        yield type(e)(e.args[0], e.eps + 1)


OPERATORS: dict[str, Operator] = {
    "swap factors": _swap_factors,
    "lose a factor": _lose_factor,
    "drop a transpose": _drop_transpose,
    "insert a transpose": _insert_transpose,
    "lose a term": _lose_term,
    "count a term twice": _count_term_twice,
    "flip a sign": _flip_sign,
    "invert a scale": _invert_scale,
    "rotate a trace": _rotate_trace,
    "the other vec": _other_vec,
    "first head only": _first_head_only,
    "another head or layer": _other_member,
    "softmax over the wrong axis": _wrong_axis,
    "lose a mask": _lose_mask,
    "lose a function": _lose_function,
    "the other norm": _other_norm,
    "another eps": _other_eps,
}


def _everywhere(e: Any, operator: Operator) -> Iterator[Any]:
    """Yield the expression with the operator applied at one place, for every place.

    Where SymPy refuses to build what comes out, as sizes that are numbers do not fit, there is no
    such mutant.
    """
    yield from _built(operator(e))
    if isinstance(e, FamilyMember | sympy.MatrixSymbol | sympy.Identity | sympy.OneMatrix):
        return
    if isinstance(e, sympy.BlockMatrix):
        yield from _in_a_block(e, operator)
        return
    for k, argument in enumerate(e.args):
        if isinstance(argument, sympy.MatrixExpr) or _holds_matrices(argument):
            for changed in _everywhere(argument, operator):
                try:
                    whole = rebuild(e, [*e.args[:k], changed, *e.args[k + 1 :]])
                except sympy.ShapeError:
                    continue
                yield whole


def _in_a_block(e: Any, operator: Operator) -> Iterator[Any]:
    """Yield a matrix in blocks with the operator applied in one of them; a block keeps its shape.

    Of another shape it would not fit beside the others.
    """
    rows = e.blocks.tolist()
    for i, row in enumerate(rows):
        for j, block in enumerate(row):
            for changed in _everywhere(block, operator):
                if changed.shape == block.shape:
                    line = [*row[:j], changed, *row[j + 1 :]]
                    yield sympy.BlockMatrix([*rows[:i], line, *rows[i + 1 :]])


def _built(made: Iterator[Any]) -> Iterator[Any]:
    """Yield what can be built, up to where SymPy says that shapes do not fit."""
    while True:
        try:
            each = next(made)
        except (StopIteration, sympy.ShapeError):
            return
        yield each


def _holds_matrices(e: Any) -> bool:
    """Return whether a number is made from matrices: a trace, an entry, a sum of such."""
    return isinstance(e, sympy.Expr) and not e.is_Matrix and e.has(sympy.MatrixExpr)


def rebuild(e: Any, args: list[Any]) -> Any:
    """Return a node of the same kind with other arguments, nothing evaluated."""
    if isinstance(e, sympy.MatMul):
        return matmul(*args)
    if isinstance(e, sympy.MatAdd):
        return matadd(*args)
    if isinstance(e, sympy.KroneckerProduct):
        return kron(*args)
    if isinstance(e, sympy.Inverse):  # which is a MatPow
        return sympy.Inverse(args[0])
    if isinstance(e, sympy.HadamardProduct | sympy.MatPow):
        return type(e)(*args, evaluate=False)
    if isinstance(e, HeadSum | ConcatHeads | StackHeads):
        return type(e)(args[0], *[tuple(limit) for limit in args[1:]])
    return type(e)(*args)
