"""Numbers at which hypotheses hold exactly: what a conditional claim is tried on.

Equations are satisfied by `algebra.satisfy`. A declared property (`Fact`) is turned into equations
where there are some (A 1 = 1, Aᵀ = A); a matrix declared to have no negative entry is drawn so, and
made causal and its rows made to sum to one where that is declared too: an attention pattern.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from sympy import HadamardProduct, Identity, OneMatrix, Transpose, ZeroMatrix

from algebra.decide import decide
from algebra.errors import OtimesError
from algebra.exact import Assignment, exact_array, tree_value
from algebra.facts import Fact
from algebra.language import Family, FamilyMember, matmul
from algebra.nonlinear import CausalMask
from algebra.refute import draw_assignment, draw_at
from algebra.satisfy import holds, satisfying
from algebra.shapes import inspect
from algebra.signature import Signature
from proofs.claims import Example, Lemma, equations

SEED = 20_211_222
AT_EXAMPLE = 0.8  # how often one is taken where there are some: to draw and fail takes long
TRIES = 40  # draws for each one that is asked for: hypotheses are met by some draws only

Drawer = Callable[[Signature, random.Random, int, int, dict[str, int]], Assignment | None]


def drawer(given: Sequence[Any]) -> Drawer:
    """Return what draws an assignment at which all of `given` holds, or None if a draw found none.

    It can be handed to `algebra.refute.search`. Raises OtimesError for a declared property that
    nothing can be drawn for.
    """
    facts = [each for each in given if isinstance(each, Fact)]
    pairs = [*equations(given)]
    patterns: dict[str, set[str]] = {}
    for fact in facts:
        if isinstance(fact.subject, sympy.MatrixSymbol | FamilyMember | Family):
            patterns.setdefault(_name(fact.subject), set()).add(fact.name)
    drawn = {name for name, properties in patterns.items() if "nonnegative" in properties}
    pairs += [
        _as_equation(fact)
        for fact in facts
        if _name(fact.subject) not in drawn and fact.name != "nonnegative"
    ]
    others = [fact for fact in facts if fact.name == "nonnegative"]
    examples = [each for each in given if isinstance(each, Example)]

    def draw(
        signature: Signature, rng: random.Random, largest: int, entries: int, roots: dict[str, int]
    ) -> Assignment | None:
        if examples and rng.random() < AT_EXAMPLE:
            found = _at_example(rng.choice(examples), signature, rng, largest, entries, roots)
            return found if found is not None and holds(pairs, found) else None
        if pairs:
            found = satisfying(pairs, signature, rng, largest, entries, roots)
        else:
            found = draw_assignment(signature, rng, largest, entries, roots)
        if found is None:
            return None
        arrays = dict(found.arrays)
        for name in drawn & arrays.keys():
            arrays[name] = _pattern(np.asarray(arrays[name]), patterns[name], rng)
        found = replace(found, arrays=arrays).in_exact_arrays()
        met = all(_is_nonnegative(fact, found) for fact in others)
        return found if met and (not drawn or holds(pairs, found)) else None

    return draw


def assignments(
    given: Sequence[Any], *expressions: Any, count: int, largest: int = 3, entries: int = 3
) -> Iterator[Assignment]:
    """Yield up to `count` assignments at which the hypotheses hold, from a fixed seed."""
    signature = signature_of(given, *expressions)
    draw, rng, found = drawer(given), random.Random(SEED), 0
    for attempt in range(TRIES * count):
        if found == count:
            return
        size = 1 + attempt % largest
        assignment = draw(signature, rng, size, entries, signature.roots)
        if assignment is not None:
            found += 1
            yield assignment.in_numpy()


def signature_of(given: Sequence[Any], *expressions: Any) -> Signature:
    """Return all that some expressions and hypotheses speak of."""
    sides = [side for pair in equations(given) for side in pair]
    subjects = [each.subject for each in given if isinstance(each, Fact)]
    return inspect(*expressions, *sides, *[s for s in subjects if not isinstance(s, Family)])


def unmet(given: Sequence[Any]) -> str:
    """Return what a lemma assumes that the other hypotheses do not give; empty if all is given."""
    others = equations([each for each in given if not isinstance(each, Lemma)])
    for each in given:
        if not isinstance(each, Lemma):
            continue
        for left, right in each.given:
            if decide(left, right, others).status != "proved":
                return f"{each.name} assumes {left} = {right}, which is not given"
    return ""


def _name(subject: Any) -> str:
    if isinstance(subject, FamilyMember):
        return str(subject.family.name)
    return str(getattr(subject, "name", subject))


def _at_example(
    example: Example,
    signature: Signature,
    rng: random.Random,
    largest: int,
    entries: int,
    roots: dict[str, int],
) -> Assignment | None:
    """Return the arrays of an example with all else drawn; None if it does not fit."""
    sizes: dict[str, int] = {}
    arrays = {name: exact_array(np.array(value)) for name, value in example.numbers.items()}
    for name, array in arrays.items():
        tensor = signature.tensors.get(name)
        if tensor is None:
            return None
        dimensions = (*getattr(tensor, "counts", ()), *tensor.shape)
        for dimension, length in zip(dimensions, array.shape, strict=True):
            if sizes.setdefault(str(dimension), length) != length:
                return None
    drawn = {name: sizes.get(name) or rng.randint(1, largest) for name in signature.sizes}
    found = draw_at(drawn, signature, rng, entries, roots)
    return None if found is None else replace(found, arrays={**found.arrays, **arrays})


def _pattern(array: Any, properties: set[str], rng: random.Random) -> Any:
    """Return an array of the same shape without negative entries, causal and stochastic if asked.

    Now and then a row has one entry only: patterns that single out a position are a case apart.
    """
    array = np.abs(array)
    if "lower_triangular" in properties:
        array = array * np.tri(array.shape[-1], dtype=object)
    for place in np.ndindex(*array.shape[:-1]):
        line = array[place]
        last = place[-1] if "lower_triangular" in properties else len(line) - 1
        if rng.random() < 0.2:
            line[:] = 0
        if "rows_sum_to_one" in properties or "row_stochastic" in properties:
            if not line.any():
                line[rng.randint(0, last)] = 1
            line[:] = [Fraction(int(entry), int(line.sum())) for entry in line]
    return array


def _is_nonnegative(fact: Fact, assignment: Assignment) -> bool:
    subject = fact.subject
    if isinstance(subject, Family):
        return bool(np.all(np.asarray(assignment.arrays[subject.name]) >= 0))
    try:
        value = tree_value(subject, assignment)
    except OtimesError:
        return False
    return bool(np.all(np.asarray(value, dtype=object) >= 0))


def _as_equation(fact: Fact) -> tuple[Any, Any]:
    """Return a declared property as an equation."""
    x = fact.subject
    rows, cols = x.shape
    made: dict[str, Callable[[], tuple[Any, Any]]] = {
        "zero": lambda: (x, ZeroMatrix(rows, cols)),
        "identity": lambda: (x, Identity(rows)),
        "orthogonal": lambda: (matmul(Transpose(x), x), Identity(cols)),
        "orthonormal_columns": lambda: (matmul(Transpose(x), x), Identity(cols)),
        "orthonormal_rows": lambda: (matmul(x, Transpose(x)), Identity(rows)),
        "diagonal": lambda: (x, HadamardProduct(x, Identity(rows))),
        "lower_triangular": lambda: (x, HadamardProduct(x, CausalMask(rows))),
        "upper_triangular": lambda: (x, HadamardProduct(x, Transpose(CausalMask(rows)))),
        "projection": lambda: (matmul(x, x), x),
        "symmetric": lambda: (Transpose(x), x),
        "antisymmetric": lambda: (Transpose(x), matmul(-1, x)),
        "rows_sum_to_one": lambda: (matmul(x, OneMatrix(cols, 1)), OneMatrix(rows, 1)),
        "columns_sum_to_one": lambda: (matmul(OneMatrix(1, rows), x), OneMatrix(1, cols)),
        "rows_sum_to": lambda: (
            matmul(x, OneMatrix(cols, 1)),
            matmul(fact.value, OneMatrix(rows, 1)),
        ),
        "commutes_with": lambda: (matmul(x, fact.value), matmul(fact.value, x)),
        "times_is_identity": lambda: (matmul(x, fact.value), Identity(rows)),
    }
    if fact.name not in made:
        raise OtimesError(f"no exact numbers can be drawn for the hypothesis “{fact}”")
    return made[fact.name]()
