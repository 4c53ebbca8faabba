"""Counterexamples at large numeric sizes of claims with functions, inverses, masks or hypotheses.

The matrices are zero, or the identity, outside of their first rows and columns; so the sides are
computed by classes of rows (`evaluate.alike`), exactly, and so are the hypotheses. These are solved
for blocks of the matrices (`embedded`), or met by chance.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any

import sympy

from otimes.algebra.budget import Budget, Exhausted, steps_left
from otimes.algebra.decide.admissible import admits, draw_scalars, draw_sizes, presupposed
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.counterexample import (
    SEED,
    SHRINKING,
    Counterexample,
    functions_in,
)
from otimes.algebra.decide.embedded import (
    Embedded,
    Leaves,
    drawn_beyond,
    drawn_blocks,
    every_index,
)
from otimes.algebra.decide.large_sizes import has_large_sizes
from otimes.algebra.decide.matrix_families import integers
from otimes.algebra.decide.satisfy import solved_for
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.alike import Axis, ByClass, Classes, NoValue
from otimes.algebra.evaluate.exact import Assignment, array_shape
from otimes.algebra.evaluate.exact_arrays import MOST_SPARSE, with_entries
from otimes.algebra.language.linear import Family

PLAIN, GIVEN = 4, 40  # trials without hypotheses, and with them; as many with other members
LARGEST = 3  # of symbolic sizes, and of entries
BLOCKED = 4  # sizes from here on are larger than blocks
KINDS = ("any", "symmetric", "permutation", "diagonal", "zero", "identity")
MOST_NONZERO = 200_000
MOST_FRACTIONS = 4_000_000  # entries of an array with fractions in it

Later = Callable[[], Counterexample]
Leaf = Callable[[str, tuple[int, ...], Axis, Axis], ByClass]
Difference = tuple[tuple[int, int] | None, Any, Any]


def has_blocks(claim: Claim) -> bool:
    """Return whether a claim under hypotheses has sizes that are numbers, and not all small."""
    sizes = {n for tensor in claim.signature.tensors.values() for n in tensor.shape}
    moderate = any(n.is_Integer and n >= BLOCKED for n in map(sympy.sympify, sizes))
    return bool(claim.given) and moderate and not has_large_sizes(claim.signature)


def refuted_by_alike_rows(claim: Claim) -> Later | None:
    """Return a function that writes out a counterexample, or None if none was found."""
    if claim.signature.masks:
        return None
    draw, own = random.Random(SEED), random.Random(SEED)
    several = any(isinstance(each, Family) for each in claim.signature.tensors.values())
    for attempt in range((2 * GIVEN if several else GIVEN) if claim.given else PLAIN):
        try:
            found = _solved(claim, own, attempt) if claim.given else None
            found = found or _trial(claim, draw, attempt)
        except OtimesError:  # a function has no value there, or there is none by classes
            continue
        if found is not None:
            return found
    return None


def _numbers(claim: Claim, draw: random.Random) -> Assignment | None:
    """Return admissible sizes, scalars and values of the free indices, or None."""
    signature = claim.signature
    sizes = draw_sizes(signature, draw, LARGEST, signature.roots)
    if sizes is None:
        return None
    scalars = draw_scalars(signature, sizes, draw, LARGEST, signature.roots)
    if scalars is None:
        return None
    numbers = Assignment(sizes, {}, {}, scalars)
    indices = {
        name: draw.randrange(min(2, numbers.size(count)))
        for name, (_, count) in signature.indices.items()
    }
    numbers = Assignment(sizes, {}, indices, scalars)
    return numbers if admits(signature, numbers) else None


def _solved(claim: Claim, draw: random.Random, attempt: int) -> Later | None:
    """Return a counterexample with blocks that are solved for, if this trial found one."""
    numbers, tensors = _numbers(claim, draw), claim.signature.tensors
    if numbers is None:
        return None
    blocks = drawn_blocks(claim.signature, numbers, draw)
    evaluation = Embedded(blocks, drawn_beyond(draw, attempt))
    shapes = {name: evaluation.shape(tensor, numbers) for name, tensor in tensors.items()}
    arrays = {name: integers(shape, draw) for name, shape in shapes.items()}
    numbers = replace(numbers, arrays=arrays)
    found = solved_for(claim.given, claim.signature, numbers, draw, evaluation)
    if found is None:
        return None
    leaves: Leaves = {}
    own = [(*pair, at) for pair in claim.given for at in every_index(pair, found)]
    classes = evaluation.classes(found, leaves)
    (lhs, rhs), *_ = classes.values((claim.lhs, claim.rhs, found.indices), *own)
    differ = _difference(lhs, rhs)
    if differ is None or not claim.condition(found) or not _fits(claim, found, leaves):
        return None
    return partial(_counterexample, claim, found, leaves, differ)


def _trial(claim: Claim, draw: random.Random, attempt: int) -> Later | None:
    signature, numbers = claim.signature, _numbers(claim, draw)
    if numbers is None:
        return None
    kinds = {name: draw.choice(KINDS) if claim.given else "any" for name in signature.tensors}
    full = attempt % 2 == 1  # no row is zero, as a norm asks
    seed = draw.random()
    leaves: Leaves = {}

    def leaf(name: str, at: tuple[int, ...], rows: Axis, cols: Axis) -> ByClass:
        found = leaves.get((name, at))
        if found is None or (found.rows, found.cols) != (rows, cols):
            own = random.Random(f"{seed} {name} {at}")
            apart = at and attempt >= GIVEN  # members of several kinds
            kind = own.choice(("zero", kinds[name])) if apart else kinds[name]
            found = leaves[name, at] = _drawn(kind, rows, cols, own, full)
        return found

    found = _differs(claim, numbers, leaf)
    if found is None or not _fits(claim, numbers, leaves):
        return None
    return lambda: _counterexample(claim, numbers, *_with_fewer(claim, numbers, leaves, found))


def _differs(claim: Claim, numbers: Assignment, leaf: Leaf) -> Difference | None:
    """Return an entry at which the sides differ, if the hypotheses hold for these matrices."""
    own = [(*pair, at) for pair in claim.given for at in every_index(pair, numbers)]
    classes = Classes(numbers, leaf)
    (lhs, rhs), *given = classes.values((claim.lhs, claim.rhs, numbers.indices), *own)
    return _difference(lhs, rhs) if all(_equal(*pair) for pair in given) else None


def _with_fewer(
    claim: Claim, numbers: Assignment, leaves: Leaves, found: Difference
) -> tuple[Leaves, Difference]:
    """Return matrices of which as many as possible are zero, and an entry that still differs.

    Half of the matrices are tried first, then fewer at a time.
    """
    kept, many = [*leaves], len(leaves)
    with Budget(SHRINKING):
        while (many := many // 2) and steps_left():
            for start in range(0, len(kept), many):
                some = {key: _zero(leaves[key]) for key in kept[start : start + many]}
                fewer = leaves | some
                with suppress(OtimesError, Exhausted):
                    differ = _differs(claim, numbers, _stored(fewer))
                    leaves, found = (fewer, differ) if differ else (leaves, found)
            kept = [key for key in kept if any(_nonzero(leaves[key]))]
    return leaves, found


def _stored(leaves: Leaves) -> Leaf:
    """Return the matrices that are known, which have the classes of before."""

    def leaf(name: str, at: tuple[int, ...], rows: Axis, cols: Axis) -> ByClass:
        found = leaves.get((name, at))
        if found is None or (found.rows, found.cols) != (rows, cols):
            raise NoValue("a matrix in other classes")
        return found

    return leaf


def _zero(x: ByClass) -> ByClass:
    return ByClass(x.rows, x.cols, [[(0, 0)] * len(x.cols) for _ in x.rows])


def _drawn(kind: str, rows: Axis, cols: Axis, draw: random.Random, full: bool) -> ByClass:
    """Return a matrix that is zero, or the identity, outside the single rows and columns.

    If it is `full` and not square, the other rows are alike, and not zero.
    """
    alone = [[p for p, m in enumerate(axis) if m == 1] for axis in (rows, cols)]
    square = rows == cols
    small = {(p, q): draw.randint(-LARGEST, LARGEST) for p in alone[0] for q in alone[1]}
    order = draw.sample(alone[0], len(alone[0]))
    background = square and (kind in ("identity", "permutation") or (full and kind == "any"))
    if square and kind == "symmetric":
        small = {(p, q): small[min(p, q), max(p, q)] for p, q in small}
    elif square and kind == "permutation":
        small = {(p, q): int(order[alone[0].index(p)] == q) for p, q in small}
    elif square and kind != "any":
        own = {"zero": 0, "identity": 1}.get(kind)
        small = {(p, q): (x if own is None else own) * (p == q) for (p, q), x in small.items()}
    table: list[list[Any]] = [[(0, 0)] * len(cols) for _ in rows]
    for (p, q), x in small.items():
        table[p][q] = (x, x)
    if full and not square and alone[1]:
        for p, m in enumerate(rows):
            if m > 1:
                table[p][alone[1][0]] = (1, 1)
                table[p][alone[1][-1]] = (2, 2)
    if background:
        for p, m in enumerate(rows):
            if m > 1:
                table[p][p] = (1, 0)
    return ByClass(rows, cols, table)


def _cells(x: Any) -> list[tuple[int, int, Any]]:
    return [*x.cells()] if isinstance(x, ByClass) else [(0, 0, x)]


def _equal(x: Any, y: Any) -> bool:
    """Return whether two values are certainly equal."""
    pairs = zip(_cells(x), _cells(y), strict=True)
    return all(a is not None and b is not None and bool(a == b) for (*_, a), (*_, b) in pairs)


def _difference(x: Any, y: Any) -> Difference | None:
    """Return an entry at which two values certainly differ, with these, or None."""
    for (i, j, a), (_, _, b) in zip(_cells(x), _cells(y), strict=True):
        if a is not None and b is not None and bool(a != b):
            return ((i, j) if isinstance(x, ByClass) else None), a, b
    return None


def _nonzero(x: ByClass) -> Iterator[tuple[int, int, Any]]:
    """Yield the nonzero entries of a matrix that was drawn."""
    columns = [0, *accumulate(x.cols)]
    start = 0
    for m, line in zip(x.rows, x.table, strict=True):
        for q, (on, off) in enumerate(line):
            for i in range(m) if on else ():
                yield start + i, columns[q] + (i if m == x.cols[q] > 1 and not off else 0), on
        start += m


def _fits(claim: Claim, numbers: Assignment, leaves: Leaves) -> bool:
    """Return whether the arrays of a trial can be written out."""
    rows = sum(sum(x.rows) + len(x.rows) * len(x.cols) for x in leaves.values())
    shapes = [array_shape(tensor, numbers) for tensor in claim.signature.tensors.values()]
    entries = [e for x in leaves.values() for line in x.table for cell in line for e in cell]
    most = MOST_SPARSE if all(isinstance(e, int) for e in entries) else MOST_FRACTIONS
    return rows < MOST_NONZERO and all(prod(shape) < most for shape in shapes)


def _counterexample(
    claim: Claim, numbers: Assignment, leaves: Leaves, found: Difference
) -> Counterexample:
    signature, (entry, lhs, rhs) = claim.signature, found
    nonzero: dict[str, dict[tuple[int, ...], Any]] = {name: {} for name in signature.tensors}
    for (name, at), x in leaves.items():
        nonzero[name] |= {(*at, i, j): value for i, j, value in _nonzero(x)}
    return Counterexample(
        sizes={symbol: numbers.sizes[name] for name, symbol in signature.sizes.items()},
        arrays={
            name: with_entries(array_shape(signature.tensors[name], numbers), entries)
            for name, entries in nonzero.items()
        },
        indices={symbol: numbers.indices[n] for n, (symbol, _) in signature.indices.items()},
        scalars={signature.scalars[n]: numbers.scalars[n] for n in signature.unknown},
        entry=entry,
        lhs=lhs,
        rhs=rhs,
        functions=functions_in(numbers, claim.sides, *claim.given),
        presupposes=presupposed(signature),
        nonzero=nonzero,
    )
