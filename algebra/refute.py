"""Counterexamples: found by exact random trials, made small, and held by both evaluators.

When two canonical forms differ, some integers tell the sides apart once every size is at least the
number of wires of the largest diagram in the difference, and random ones find them
(Schwartz–Zippel). What is returned was evaluated by `exact`, which never saw a diagram.
"""

from __future__ import annotations

import keyword
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from math import prod
from typing import Any

import numpy as np
import sympy

from algebra.errors import OtimesError
from algebra.exact import Assignment, Number, array_shape, tree_value
from algebra.functions import KNOWN, Polynomial, stand_in
from algebra.nonlinear import Activation
from algebra.signature import Signature

Draw = Callable[[Signature, random.Random, int, int, dict[str, int]], "Assignment | None"]
DiffersAt = Callable[[Assignment], "Trial | None"]

SEED = 20_240
FRESH_DRAWS = 6  # at each smaller size, when the arrays that were cut down no longer differ
LONG = 2_000  # bits of a number that is written in sixteens: Python refuses long decimals
ENTRY_LIMIT = 60_000  # entries of the largest array tried


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Numbers at which two expressions differ: exact, small, and checked.

    `sizes` {symbol: int}, `arrays` {name: object array of integers}, `indices` {symbol: int},
    `scalars` {symbol: number}; `entry` is the (row, column) at which the sides differ, None for
    scalars; `lhs` and `rhs` are the two values there, an Interval where a value is irrational: the
    two certainly differ. `functions` {name: polynomial} are activations that may be any function.
    """

    sizes: dict[sympy.Symbol, int]
    arrays: dict[str, Any]
    indices: dict[sympy.Symbol, int]
    scalars: dict[sympy.Symbol, Number]
    entry: tuple[int, int] | None
    lhs: Number
    rhs: Number
    functions: dict[str, Polynomial] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the counterexample as lines that paste into Python after `import numpy as np`."""
        lines = []
        numbers = [*self.sizes.items(), *self.indices.items(), *self.scalars.items()]
        if numbers:
            lines.append("; ".join(f"{_name(s.name)} = {_literal(value)}" for s, value in numbers))
        for name, array in self.arrays.items():
            lines.append(f"{_name(name)} = np.array({_literal(array)})")
        lines += [f"{_name(name)} = lambda x: {of_x}" for name, of_x in self.functions.items()]
        if any("Fraction(" in line for line in lines):
            lines.insert(0, "from fractions import Fraction")
        where = "" if self.entry is None else f" at row {self.entry[0]}, column {self.entry[1]}"
        lines.append(f"# left side {_literal(self.lhs)}, right side {_literal(self.rhs)}{where}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Trial:
    """An assignment at which the sides differ, before it is made small."""

    assignment: Assignment
    entry: tuple[int, int] | None
    lhs: Number
    rhs: Number


def search(
    lhs: sympy.Basic,
    rhs: sympy.Basic,
    signature: Signature,
    wires: int,
    deadline: float,
    given: Draw | None = None,
    attempts: int | None = None,
    seed: int = SEED,
) -> Trial | None:
    """Return a trial at which the sides differ, or None when none was found.

    `wires` is the number of wires at which a difference is certain to show; `deadline` is a
    `time.thread_time()` after which the search stops; `given` draws assignments that satisfy
    hypotheses, where there are any; `attempts` limits how often it is tried; other seeds draw other
    numbers. Raises OtimesError
    when the expressions had no exact value in any try (an irrational constant).
    """
    if time.thread_time() > deadline:
        return None
    draw = random.Random(seed)
    roots = signature.roots
    found_none: OtimesError | None = None
    evaluated = 0
    schedule = _schedule(wires) if given is None else iter(UNDER_HYPOTHESES)
    for largest, entries in islice(schedule, attempts):
        if time.thread_time() > deadline:
            break
        assignment = (given or draw_assignment)(signature, draw, largest, entries, roots)
        if assignment is None:
            continue
        try:
            trial = differs(lhs, rhs, assignment)
        except OtimesError as error:
            found_none = error
            continue
        evaluated += 1
        if trial is not None:
            return trial
    if not evaluated and found_none is not None:
        raise found_none
    return None


# Hypotheses are met most often by small matrices, and few facts about them need three rows.
UNDER_HYPOTHESES = 6 * ((2, 3), (2, 3), (3, 3), (2, 2), (3, 3), (2, 3), (3, 2), (4, 3))


def _schedule(wires: int) -> Iterator[tuple[int, int]]:
    """Yield (largest size, largest entry): small first, then up to where a difference must show."""
    for largest in (2, 2, 3, 3, 2, 3, 4, 4):
        yield largest, 3
    for largest in range(4, max(wires, 6) + 1):
        for _ in range(6):
            yield largest, 9
    for _ in range(20):
        yield 3, 1000


def draw_assignment(
    signature: Signature,
    draw: random.Random,
    largest: int,
    entries: int,
    roots: dict[str, int],
) -> Assignment | None:
    """Return random sizes up to `largest` and integer entries up to `entries` in absolute value.

    Symbols under a q-th root take q-th powers. None when the draw has no such assignment or the
    arrays would be too large.
    """
    sizes = {}
    for name in signature.sizes:
        value = draw.choice((largest, largest, draw.randint(1, largest)))
        sizes[name] = value ** roots.get(name, 1)
    return draw_at(sizes, signature, draw, entries, roots)


def draw_at(
    sizes: dict[str, int],
    signature: Signature,
    draw: random.Random,
    entries: int,
    roots: dict[str, int],
) -> Assignment | None:
    """Return random entries at given sizes, which grow where a fixed index asks for it."""
    assignment = Assignment(sizes, {})
    if any(assignment.size(size) < 1 for size in signature.dimensions):
        return None
    for count, index in signature.fixed.items():
        if assignment.size(count) <= index:
            if not isinstance(count, sympy.Symbol):
                return None
            sizes[count.name] = index + 1
    indices = {}
    for name, (_, count) in signature.indices.items():
        if assignment.size(count) < 1:
            return None
        indices[name] = draw.randrange(assignment.size(count))
    scalars: dict[str, Number] = {}
    for name, symbol in signature.scalars.items():
        degree = roots.get(name, 1)
        positive = degree > 1 or symbol.is_positive
        value = draw.randint(1, entries) if positive else draw.randint(-entries, entries) or 1
        scalars[name] = value**degree
    arrays = {}
    for name, tensor in signature.tensors.items():
        shape = array_shape(tensor, assignment)
        count = prod(shape)
        if min(shape) < 0 or count > ENTRY_LIMIT:  # n - 2 at n = 1 is no size
            return None
        flat = [draw.randint(-entries, entries) for _ in range(count)]
        arrays[name] = np.array(flat, dtype=object).reshape(shape)
    return Assignment(sizes, arrays, indices, scalars)


def differs(lhs: sympy.Basic, rhs: sympy.Basic, assignment: Assignment) -> Trial | None:
    """Return where the two sides certainly differ at these numbers, or None."""
    left, right = tree_value(lhs, assignment), tree_value(rhs, assignment)
    if not isinstance(left, np.ndarray):
        return Trial(assignment, None, left, right) if left != right else None
    for place, entry in np.ndenumerate(left):
        if entry != right[place]:
            return Trial(assignment, (place[0], place[1]), entry, right[place])
    return None


def shrink(
    lhs: sympy.Basic,
    rhs: sympy.Basic,
    signature: Signature,
    trial: Trial,
    allowed: Callable[[Assignment], bool] = lambda _: True,
) -> Counterexample:
    """Return the trial made small: sizes first, then entries towards 0 and 1.

    `allowed` says whether an assignment satisfies the hypotheses.
    """
    roots = signature.roots

    def differs_at(assignment: Assignment) -> Trial | None:
        try:
            return differs(lhs, rhs, assignment) if allowed(assignment) else None
        except OtimesError:  # a division by zero, a singular matrix: not a value of both sides
            return None

    trial = _shrink_sizes(differs_at, signature, trial, roots)
    trial = _shrink_entries(differs_at, trial, roots)
    a = trial.assignment
    names = {e.name for side in (lhs, rhs) for e in side.atoms(Activation)}
    return Counterexample(
        sizes={symbol: a.sizes[name] for name, symbol in signature.sizes.items()},
        arrays=dict(a.arrays),
        indices={symbol: a.indices[name] for name, (symbol, _) in signature.indices.items()},
        scalars={symbol: a.scalars[name] for name, symbol in signature.scalars.items()},
        entry=trial.entry,
        lhs=trial.lhs,
        rhs=trial.rhs,
        functions={name: stand_in(name) for name in sorted(names - KNOWN.keys())},
    )


def _shrink_sizes(
    differs_at: DiffersAt, signature: Signature, trial: Trial, roots: dict[str, int]
) -> Trial:
    for name in signature.sizes:
        for value in range(1, 4):
            size = value ** roots.get(name, 1)
            if size >= trial.assignment.sizes[name]:
                break
            sizes = {**trial.assignment.sizes, name: size}
            better = _at_sizes(differs_at, signature, trial.assignment, sizes, roots)
            if better is not None:
                trial = better
                break
    return trial


def _at_sizes(
    differs_at: DiffersAt,
    signature: Signature,
    larger: Assignment,
    sizes: dict[str, int],
    roots: dict[str, int],
) -> Trial | None:
    """Return a trial at smaller sizes: the arrays cut down, or else a few fresh draws."""
    draw = random.Random(SEED)
    tries = [_cut(signature, larger, sizes)]
    tries += [draw_at(dict(sizes), signature, draw, 2, roots) for _ in range(FRESH_DRAWS)]
    for smaller in tries:
        if smaller is not None and smaller.sizes == sizes:
            trial = differs_at(smaller)
            if trial is not None:
                return trial
    return None


def _cut(signature: Signature, a: Assignment, sizes: dict[str, int]) -> Assignment | None:
    """Return the assignment cut down to smaller sizes, or None where an index falls outside."""
    smaller = replace(a, sizes=sizes)
    if any(smaller.size(count) <= index for count, index in signature.fixed.items()):
        return None
    if any(smaller.size(n) <= a.indices[name] for name, (_, n) in signature.indices.items()):
        return None
    arrays = {
        name: a.arrays[name][tuple(slice(k) for k in array_shape(tensor, smaller))]
        for name, tensor in signature.tensors.items()
    }
    return replace(smaller, arrays=arrays)


def _shrink_entries(differs_at: DiffersAt, trial: Trial, roots: dict[str, int]) -> Trial:
    def attempt(smaller: Assignment) -> bool:
        nonlocal trial
        better = differs_at(smaller)
        if better is not None:
            trial = better
        return better is not None

    for name in trial.assignment.scalars:
        for value in (0, 1, 2):
            scalars = {**trial.assignment.scalars, name: value ** roots.get(name, 1)}
            if trial.assignment.scalars[name] == value or attempt(
                replace(trial.assignment, scalars=scalars)
            ):
                break
    for name, array in list(trial.assignment.arrays.items()):
        for place in np.ndindex(array.shape):
            for value in (0, 1):
                current = trial.assignment.arrays[name]
                if current[place] == value:
                    break
                changed = current.copy()
                changed[place] = value
                arrays = {**trial.assignment.arrays, name: changed}
                if attempt(replace(trial.assignment, arrays=arrays)):
                    break
    return trial


def _name(name: str) -> str:
    """Return a symbol's name as one that Python takes: `W_{QK}` and `lambda` are none."""
    plain = re.sub(r"\W", "_", name)
    return plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"_{plain}"


def _literal(array: Any) -> str:
    if isinstance(array, np.ndarray):
        return "[" + ", ".join(_literal(part) for part in array) + "]"
    if isinstance(array, Fraction) and array.denominator != 1:
        return f"Fraction({_literal(array.numerator)}, {_literal(array.denominator)})"
    is_long = isinstance(array, int | Fraction) and int(array).bit_length() > LONG
    return hex(int(array)) if is_long else str(array)
