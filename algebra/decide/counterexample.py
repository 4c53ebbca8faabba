"""Counterexamples: found by exact random trials, then made small.

If two canonical forms differ, the sides differ at some integers once every size is at least the
number of wires of the largest diagram in the difference, and random trials find them
(Schwartz–Zippel). The result is evaluated by `exact`, which does not use diagrams.
"""

from __future__ import annotations

import keyword
import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count as integers_from
from itertools import islice, takewhile
from math import prod
from typing import Any

import sympy
from sympy.core.relational import Relational

from otimes.algebra.budget import Budget, Exhausted, spend, steps_left
from otimes.algebra.decide.admissible import (
    admits,
    admits_sizes,
    draw_scalars,
    draw_sizes,
    grown,
    presupposed,
)
from otimes.algebra.decide.display import counterexample_html, counterexample_latex
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, array_shape, exact_value
from otimes.algebra.evaluate.exact_arrays import ExactArray, as_numpy
from otimes.algebra.language.functions import KNOWN, Polynomial, stand_in
from otimes.algebra.language.linear import Family
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.roots import Number
from otimes.algebra.language.signature import Signature

Draw = Callable[[Signature, random.Random, int, int, dict[str, int]], "Assignment | None"]
DiffersAt = Callable[[Assignment], "Trial | None"]

SEED = 20_240
SHRINKING = 5.0  # units of work for making one counterexample small
FRESH_DRAWS = 6  # at each smaller size, when the arrays that were cut down no longer differ
LONG = 2_000  # bits of a number printed in hexadecimal, as Python refuses long decimals
TRIAL = 20  # work units of a trial, besides those for its numbers and operations
ENTRY_LIMIT = 60_000  # entries of the largest array tried


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Numbers at which two expressions differ: exact, small, and checked.

    `sizes` {symbol: int}, `arrays` {name: array of integers and Fractions}, `indices` {symbol:
    int}, `scalars` {symbol: number}; `entry` is the (row, column) at which the sides differ, None
    for scalars; `lhs` and `rhs` are the two values there, an Interval where a value is irrational:
    the two certainly differ. `functions` {name: polynomial} are arbitrary activations. The arrays
    are NumPy's object arrays where NumPy is installed, else ExactArrays. `presupposes` are the
    inequalities of sizes that make all lengths in the claim at least 1. At large sizes `nonzero`
    has the nonzero entries of each array by index; otherwise it is empty. `expressions` are the two
    sides, and `values` what they are at these numbers.
    """

    sizes: dict[sympy.Symbol, int]
    arrays: dict[str, Any]
    indices: dict[sympy.Symbol, int]
    scalars: dict[sympy.Symbol, Number]
    entry: tuple[int, int] | None
    lhs: Number
    rhs: Number
    functions: dict[str, Polynomial] = field(default_factory=dict)
    presupposes: tuple[Relational, ...] = ()
    warning: str = ""  # note that more work could make it smaller
    nonzero: Mapping[str, Mapping[tuple[int, ...], Number]] = field(default_factory=dict)
    expressions: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    values: tuple[Any, ...] = field(default=(), compare=False, repr=False)

    def with_symbols(self, origin: Mapping[sympy.Symbol, sympy.Symbol]) -> Counterexample:
        """Return the counterexample with renamed symbols replaced by the user's."""
        if not origin:
            return self

        def own(numbers: Mapping[sympy.Symbol, Any]) -> dict[sympy.Symbol, Any]:
            named: dict[sympy.Symbol, Any] = {}
            for symbol, number in numbers.items():  # those of the claim come before hypotheses
                named.setdefault(origin.get(symbol, symbol), number)
            return named

        sizes, indices = own(self.sizes), own(self.indices)
        return replace(self, sizes=sizes, indices=indices, scalars=own(self.scalars))

    def outside(self, values: Mapping[sympy.Symbol, Any]) -> Counterexample:
        """Return the counterexample to a claim, of one to its case at some values of its symbols.

        The values are expressions in the symbols of the case; those that the claim has not go.
        """
        known = {**self.sizes, **self.indices}
        parts = [sympy.sympify(value).free_symbols for value in values.values()]
        # what the sides of the case do not have may be any size
        known |= dict.fromkeys(frozenset().union(*parts) - known.keys(), 1)
        made = {s: int(sympy.sympify(value).subs(known)) for s, value in values.items()}
        gone = frozenset().union(*parts) - values.keys()
        kept = {s: size for s, size in self.sizes.items() if s not in gone}
        of_index = {s: number for s, number in made.items() if not s.is_positive}
        sizes = {s: number for s, number in made.items() if s.is_positive}
        return replace(self, sizes=kept | sizes, indices=self.indices | of_index)

    def of_claim(
        self, asked: Any, tensors: Mapping[str, Any], own: Iterable[Any]
    ) -> Counterexample:
        """Return the counterexample without what the proof alone has: families, and members of one.

        `asked` is the claim as it was stated, `tensors` are those of the proof, and `own` are
        symbols that stand there for one of the claim.
        """
        stated = sympy.Tuple(*_parts(asked))
        atoms = stated.atoms(sympy.MatrixSymbol, Family)
        names = {atom.name for atom in (*atoms, *own)}
        arrays = {k: x for k, x in self.arrays.items() if k in names or k not in tensors}
        for atom in stated.atoms(sympy.MatrixSymbol):
            if isinstance(tensors.get(atom.name), Family):  # the proof has members for its rows
                array = arrays[atom.name]
                arrays[atom.name] = ExactArray((array.shape[0], array.shape[2]), array.flat)
        free = {*own, *stated.free_symbols}
        indices = {symbol: at for symbol, at in self.indices.items() if symbol in free}
        for family in sorted(stated.atoms(Family), key=str):
            wider = tensors.get(family.name)
            if isinstance(wider, Family) and wider.counts != family.counts:
                sizes = self.sizes
                starts = zip(family.firsts, wider.firsts, family.counts, strict=True)
                kept = [(int((a - b).subs(sizes)), int(n.subs(sizes))) for a, b, n in starts]
                within = tuple(slice(start, start + count) for start, count in kept)
                arrays[family.name] = arrays[family.name][within]
        return replace(self, arrays=arrays, indices=indices)

    def _repr_latex_(self) -> str:
        return f"$$\n{counterexample_latex(self)}\n$$"

    def _repr_html_(self) -> str:
        return counterexample_html(self)

    def __str__(self) -> str:
        """Return the counterexample as lines that paste into Python after `import numpy as np`."""
        lines = []
        numbers = [*self.sizes.items(), *self.indices.items(), *self.scalars.items()]
        names = _names([*[s.name for s, _ in numbers], *self.arrays, *self.functions])
        if numbers:
            lines.append("; ".join(f"{next(names)} = {_literal(value)}" for _, value in numbers))
        for name, array in self.arrays.items():
            own = next(names)
            if name not in self.nonzero:
                lines.append(f"{own} = np.array({_literal(array.tolist())})")
                continue
            lines.append(f"{own} = np.zeros({array.shape}, dtype=object)")
            entries = sorted(self.nonzero[name].items())
            lines += [f"{own}[{', '.join(map(str, k))}] = {_literal(x)}" for k, x in entries]
        lines += [f"{next(names)} = lambda x: {of_x}" for of_x in self.functions.values()]
        if any("Fraction(" in line for line in lines):
            lines.insert(0, "from fractions import Fraction")
        where = "" if self.entry is None else f" at row {self.entry[0]}, column {self.entry[1]}"
        lines += [f"# presupposes {relation}" for relation in self.presupposes]
        lines.append(f"# left side {_literal(self.lhs)}, right side {_literal(self.rhs)}{where}")
        lines += [f"# {self.warning}"] * bool(self.warning)
        return "\n".join(lines)


def _parts(asked: Any) -> Iterator[Any]:
    """Yield the expressions of a claim as it was stated."""
    for each in asked:
        if isinstance(each, tuple | list):
            yield from _parts(each)
        elif isinstance(each, sympy.Basic):
            yield each


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
    given: Draw | None = None,
    attempts: int | None = None,
    seed: int = SEED,
) -> Trial | None:
    """Return a trial at which the sides differ, or None if none was found within the budget.

    `wires` is the size from which on a difference is certain to exist; `given` draws assignments
    that satisfy the hypotheses, if any; `attempts` is the maximum number of trials; `seed` fixes
    the random numbers. Raises OtimesError if the expressions had no exact value in any trial (an
    irrational constant).
    """
    draw = random.Random(seed)
    roots = signature.roots
    found_none: OtimesError | None = None
    evaluated = 0
    schedule = _schedule(wires) if given is None else iter(UNDER_HYPOTHESES)
    for largest, entries in islice(schedule, attempts):
        try:
            spend(TRIAL)
            assignment = (given or draw_assignment)(signature, draw, largest, entries, roots)
            if assignment is None:
                continue
            trial = differs(lhs, rhs, assignment)
        except Exhausted:
            return None
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
    """Yield (largest size, largest entry): small first, then sizes that show any difference."""
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

    Sizes and scalars are larger if the claim requires it; symbols under a q-th root are q-th
    powers. None if no admissible ones were found, or the arrays would be too large.
    """
    sizes = draw_sizes(signature, draw, largest, roots)
    return None if sizes is None else draw_at(sizes, signature, draw, entries, roots)


def draw_at(
    sizes: dict[str, int],
    signature: Signature,
    draw: random.Random,
    entries: int,
    roots: dict[str, int],
) -> Assignment | None:
    """Return random entries at given sizes, which are increased if a fixed index requires it."""
    assignment = Assignment(grown(sizes, signature), {})
    if not admits_sizes(signature, assignment):
        return None
    indices = {}
    for name, (_, count) in signature.indices.items():
        indices[name] = draw.randrange(assignment.size(count))
    scalars = draw_scalars(signature, assignment.sizes, draw, entries, roots)
    if scalars is None:
        return None
    arrays = {}
    for name, tensor in signature.tensors.items():
        shape = array_shape(tensor, assignment)
        count = prod(shape)
        if count > ENTRY_LIMIT:
            return None
        spend(count)
        if name in signature.masks:
            arrays[name] = _draw_mask(shape, draw)
            continue
        flat = [draw.randint(-entries, entries) for _ in range(count)]
        arrays[name] = ExactArray(shape, flat)
    return Assignment(assignment.sizes, arrays, indices, scalars)


def with_positive_entries(assignment: Assignment, signature: Signature) -> Assignment:
    """Return an assignment with absolute values, and 1/4 for 0, except in masks.

    It has a rational root, and a negative logarithm.
    """
    assignment = assignment.in_exact_arrays()
    arrays = {
        name: array
        if name in signature.masks
        else array.map(lambda entry: abs(entry) or Fraction(1, 4))
        for name, array in assignment.arrays.items()
    }
    return replace(assignment, arrays=arrays)


def with_thirds(assignment: Assignment, signature: Signature) -> Assignment:
    """Return an assignment with a third of each entry and scalar, except in masks and under roots.

    sin(π a) is zero at every integer a.
    """
    assignment = assignment.in_exact_arrays()
    third = Fraction(1, 3)
    arrays = {
        name: array if name in signature.masks else array.map(lambda entry: entry * third)
        for name, array in assignment.arrays.items()
    }
    scalars = {
        name: value if name in signature.roots else value * third
        for name, value in assignment.scalars.items()
    }
    return replace(assignment, arrays=arrays, scalars=scalars)


def _draw_mask(shape: tuple[int, ...], draw: random.Random) -> ExactArray:
    """Return a random 0/1 array with a one in every row."""
    flat: list[int] = []
    for _ in range(prod(shape[:-1])):
        row = [draw.randint(0, 1) for _ in range(shape[-1])]
        row[draw.randrange(len(row))] = 1
        flat += row
    return ExactArray(shape, flat)


def differs(lhs: sympy.Basic, rhs: sympy.Basic, assignment: Assignment) -> Trial | None:
    """Return the trial if the sides certainly differ at an assignment, else None."""
    assignment = assignment.in_exact_arrays()
    left, right = exact_value(lhs, assignment), exact_value(rhs, assignment)
    if not isinstance(left, ExactArray):
        return Trial(assignment, None, left, right) if left != right else None
    for k, (x, y) in enumerate(zip(left.flat, right.flat, strict=True)):
        if x != y:
            return Trial(assignment, divmod(k, left.shape[1]), x, y)
    return None


def shrink(
    lhs: sympy.Basic,
    rhs: sympy.Basic,
    signature: Signature,
    trial: Trial,
    allowed: Callable[[Assignment], bool] = lambda _: True,
    given: Iterable[tuple[sympy.Basic, sympy.Basic]] = (),
    completed: Callable[[Assignment], Assignment] = lambda a: a,
    defined: Collection[str] = (),
) -> Counterexample:
    """Return the trial made small: sizes first, then entries towards 0 and 1.

    Of `defined` arrays the entries are what the others make them: `completed` computes these.
    `allowed` decides whether an assignment satisfies the hypotheses `given`; conditions on sizes,
    signs and inequalities are kept. The search for a smaller trial has a budget of its own.
    """
    roots = signature.roots

    def differs_at(assignment: Assignment) -> Trial | None:
        try:
            spend(TRIAL)
            assignment = completed(assignment)
            fits = admits(signature, assignment) and allowed(assignment)
            return differs(lhs, rhs, assignment) if fits else None
        except Exhausted:
            return None
        except OtimesError:  # a division by zero or a singular matrix: a side has no value
            return None

    with Budget(SHRINKING) as work:
        trial = _shrink_sizes(differs_at, signature, trial, roots)
        trial = _shrink_entries(differs_at, signature, trial, defined)
    a = trial.assignment
    return Counterexample(
        sizes={symbol: a.sizes[name] for name, symbol in signature.sizes.items()},
        arrays={name: as_numpy(array) for name, array in a.arrays.items()},
        indices={symbol: a.indices[name] for name, (symbol, _) in signature.indices.items()},
        scalars={signature.scalars[n]: a.scalars[n] for n in signature.unknown},
        entry=trial.entry,
        lhs=trial.lhs,
        rhs=trial.rhs,
        functions=functions_in(a, (lhs, rhs), *given),
        presupposes=presupposed(signature),
        warning=work.warning("how small this is"),
        expressions=(lhs, rhs),
        values=(exact_value(lhs, a), exact_value(rhs, a)),
    )


def functions_in(
    assignment: Assignment, *pairs: tuple[sympy.Basic, sympy.Basic]
) -> dict[str, Polynomial]:
    """Return the functions without a known value in equations, each with what it is in a trial."""
    names = {e.name for pair in pairs for side in pair for e in side.atoms(Activation)}
    chosen: Mapping[str, Any] = assignment.functions
    return {name: chosen.get(name, stand_in(name)) for name in sorted(names - KNOWN.keys())}


def _shrink_sizes(
    differs_at: DiffersAt, signature: Signature, trial: Trial, roots: dict[str, int]
) -> Trial:
    for name in signature.sizes:
        for size in _smaller(signature, trial.assignment, name, roots):
            if not steps_left():
                break
            sizes = {**trial.assignment.sizes, name: size}
            better = _at_sizes(differs_at, signature, trial.assignment, sizes, roots)
            if better is not None:
                trial = better
                break
    return trial


def _smaller(
    signature: Signature, a: Assignment, name: str, roots: dict[str, int]
) -> Iterator[int]:
    """Yield the three smallest admissible sizes of one symbol, with the others unchanged."""
    sizes = (value ** roots.get(name, 1) for value in integers_from(1))
    below = takewhile(lambda size: size < a.sizes[name], sizes)
    fit = (s for s in below if admits_sizes(signature, replace(a, sizes={**a.sizes, name: s})))
    return islice(fit, 3)


def _at_sizes(
    differs_at: DiffersAt,
    signature: Signature,
    larger: Assignment,
    sizes: dict[str, int],
    roots: dict[str, int],
) -> Trial | None:
    """Return a trial at smaller sizes, with truncated arrays or else new random ones, or None."""
    draw = random.Random(SEED)
    tries = [_cut(signature, larger, sizes)]
    tries += [draw_at(dict(sizes), signature, draw, 2, roots) for _ in range(FRESH_DRAWS)]
    for smaller in tries:
        if smaller is not None and smaller.sizes == sizes:
            trial = differs_at(replace(smaller, functions=larger.functions))
            if trial is not None:
                return trial
    return None


def _cut(signature: Signature, a: Assignment, sizes: dict[str, int]) -> Assignment | None:
    """Return the assignment with arrays truncated to smaller sizes.

    None if an index would be out of range, or an array would grow, as one with 3 - n rows.
    """
    smaller = replace(a, sizes=sizes)
    if any(smaller.size(n) <= a.indices[name] for name, (_, n) in signature.indices.items()):
        return None
    arrays = {}
    for name, tensor in signature.tensors.items():
        shape = array_shape(tensor, smaller)
        arrays[name] = a.arrays[name][tuple(slice(k) for k in shape)]
        if arrays[name].shape != shape:
            return None
    return replace(smaller, arrays=arrays)


def _shrink_entries(
    differs_at: DiffersAt, signature: Signature, trial: Trial, defined: Collection[str]
) -> Trial:
    roots = signature.roots

    def attempt(smaller: Assignment) -> bool:
        nonlocal trial
        better = differs_at(smaller)
        if better is not None:
            trial = better
        return better is not None

    negative = signature.assumptions.named("nonpositive")
    for name, current in trial.assignment.scalars.items():
        for small in (0, -1, -2) if name in negative else (0, 1, 2):
            scalars = {**trial.assignment.scalars, name: small ** roots.get(name, 1)}
            if current == scalars[name] or attempt(replace(trial.assignment, scalars=scalars)):
                break
    others = {n: x for n, x in trial.assignment.arrays.items() if n not in defined}
    for name, array in others.items():
        for place in array.places():
            if not steps_left():
                return trial
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


def _names(names: Iterable[str]) -> Iterator[str]:
    """Yield a unique Python identifier for each name, as `W_{QK}` and `lambda` are none."""
    taken: set[str] = set()
    for name in names:
        plain = re.sub(r"\W", "_", name)
        plain = plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"_{plain}"
        while plain in taken:
            plain += "_"
        taken.add(plain)
        yield plain


def _literal(array: Any) -> str:
    if isinstance(array, list):
        return "[" + ", ".join(_literal(part) for part in array) + "]"
    if isinstance(array, Fraction) and array.denominator != 1:
        return f"Fraction({_literal(array.numerator)}, {_literal(array.denominator)})"
    is_long = isinstance(array, int | Fraction) and int(array).bit_length() > LONG
    return hex(int(array)) if is_long else str(array)
