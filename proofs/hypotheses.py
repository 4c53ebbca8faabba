"""Random exact values at which hypotheses hold, for testing conditional claims.

Equations are satisfied by `otimes.algebra.decide.satisfy`. A declared property (`Fact`) becomes an
equation if it is one (A 1 = 1, Aᵀ = A). A matrix declared nonnegative is drawn as such, and, if
that is declared too, causal and with rows that sum to one: an attention pattern.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import sympy

from otimes.algebra.decide.counterexample import draw_assignment, draw_at
from otimes.algebra.decide.satisfy import holds, satisfying
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, exact_array, tree_value
from otimes.algebra.facts import Fact
from otimes.algebra.facts.equations import ONE_EQUATION
from otimes.algebra.language.intervals import Interval, bounds
from otimes.algebra.language.linear import Family, FamilyMember
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.signature import Signature
from otimes.algebra.verdict import decide
from otimes.proofs.claims import Described, Example, Lemma, equations

SEED = 20_211_222
AT_EXAMPLE = 0.8  # probability of using an example, as failed draws are slow
TRIES = 40  # draws for each assignment, as some draws do not satisfy the hypotheses

DRAWN = ("nonnegative", "lower_triangular", "rows_sum_to_one", "row_stochastic")
"""The properties of a matrix that `_pattern` gives to one that is nonnegative."""

Drawer = Callable[[Signature, random.Random, int, int, dict[str, int]], Assignment | None]


def drawer(given: Sequence[Any]) -> Drawer:
    """Return a function that draws an assignment satisfying `given`, or None if a draw fails.

    It is an argument of `otimes.algebra.decide.counterexample.search`. Raises OtimesError for a
    declared property that cannot be drawn.
    """
    facts = [each for each in given if isinstance(each, Fact)]
    described = [each for each in given if isinstance(each, Described)]
    patterns: dict[str, set[str]] = {}
    for fact in (*facts, *[each.fact for each in described]):
        if isinstance(fact.subject, sympy.MatrixSymbol | FamilyMember | Family):
            patterns.setdefault(_name(fact.subject), set()).add(fact.name)
    drawn = {name for name, properties in patterns.items() if "nonnegative" in properties}

    def solved(fact: Fact) -> bool:
        return fact.name not in DRAWN or _name(fact.subject) not in drawn

    pairs = [*equations([each for each in given if not isinstance(each, Described)])]
    pairs += [(each.lhs, each.rhs) for each in described if solved(each.fact)]
    pairs += [_as_equation(fact) for fact in facts if fact.name != "nonnegative" and solved(fact)]
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


def values_under(
    given: Sequence[Any], *expressions: Any, count: int, largest: int = 3
) -> Iterator[tuple[Assignment, tuple[Any, ...]]]:
    """Yield assignments at which hypotheses hold, with the exact values of expressions there.

    Where one is undefined (a singular matrix, an irrational root), nothing is yielded.
    """
    for assignment in assignments(given, *expressions, count=count, largest=largest):
        with suppress(OtimesError):
            yield assignment, tuple(tree_value(each, assignment) for each in expressions)


def signature_of(given: Sequence[Any], *expressions: Any) -> Signature:
    """Return the signature of expressions and hypotheses."""
    sides = [side for pair in equations(given) for side in pair]
    subjects = [each.subject for each in given if isinstance(each, Fact)]
    return inspect(*expressions, *sides, *[s for s in subjects if not isinstance(s, Family)])


def unmet(given: Sequence[Any]) -> str:
    """Return which hypothesis of a lemma does not follow from the others; empty if all do."""
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
    """Return the values of an example with all others drawn; None if it does not fit."""
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
    """Return a nonnegative array of the same shape, causal and stochastic if requested.

    Some rows have a single nonzero entry, as patterns that attend to one position are special.
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
    return all(_lowest(entry) >= 0 for entry in np.ravel(np.asarray(value, dtype=object)))


def _lowest(entry: Any) -> Any:
    """Return a number, or the lower end of the interval in which an irrational one lies."""
    return bounds(entry).a if isinstance(entry, Interval) else entry


def _as_equation(fact: Fact) -> tuple[Any, Any]:
    """Return a declared property as an equation."""
    if fact.name not in ONE_EQUATION or fact.name == "invertible":
        raise OtimesError(f"exact values cannot be drawn for the hypothesis “{fact}”")
    return ONE_EQUATION[fact.name](fact.subject, fact.value)
