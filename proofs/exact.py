"""The exact check: Hypothesis draws sizes and integer weights, and the two sides must be equal.

Not close: equal. The sides are worth what `algebra.exact` finds by walking their trees; no diagram
is involved, so this check does not lean on the prover. Sizes start at 0 where a size of 0 makes
sense, and at 1 elsewhere. What fails is shrunk by Hypothesis, and then by `algebra.refute`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
import sympy
from hypothesis import HealthCheck, Phase, Verbosity, assume, given, seed, settings
from hypothesis import strategies as st

from algebra.exact import Assignment, array_shape
from algebra.refute import Trial, differs, root_degrees, shrink
from algebra.shapes import Signature, inspect

EXAMPLES = 40
SEED = 20_211_222
LARGEST_SIZE = 3
ENTRIES = st.integers(-3, 3)


@dataclass(frozen=True, slots=True)
class ExactEvidence:
    """What the exact check found: how many examples agreed, or the least one that did not."""

    passed: bool
    examples: int
    detail: str = ""


class _Differs(Exception):
    def __init__(self, trial: Trial) -> None:
        super().__init__("the sides differ")
        self.trial = trial


def check_exactly(lhs: sympy.Basic, rhs: sympy.Basic, examples: int = EXAMPLES) -> ExactEvidence:
    """Return whether both sides are equal on random integers of random sizes."""
    signature = inspect(lhs, rhs)
    tried = 0
    least: list[Trial] = []

    @seed(SEED)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
    )
    @given(assignments(signature, lhs, rhs))
    def equal(assignment: Assignment) -> None:
        nonlocal tried
        tried += 1
        trial = differs(lhs, rhs, assignment)
        if trial is not None:
            least[:] = [trial]
            raise _Differs(trial)

    with contextlib.suppress(_Differs):
        equal()
    if least:
        return ExactEvidence(False, tried, str(shrink(lhs, rhs, signature, least[0])))
    return ExactEvidence(True, tried)


@st.composite
def assignments(
    draw: st.DrawFn, signature: Signature, lhs: sympy.Basic, rhs: sympy.Basic
) -> Assignment:
    """Draw sizes, integer arrays, indices and scalars for everything that can vary."""
    roots = root_degrees(signature, lhs, rhs)
    divided = _divided(lhs, rhs)
    counts = {str(count) for _, count in signature.indices.values()}
    sizes = {}
    for name in signature.sizes:
        least = 1 if name in divided or name in counts or name in roots else 0
        for count, index in signature.fixed.items():
            least = index + 1 if str(count) == name else least
        largest = max(LARGEST_SIZE if name not in roots else 2, least)
        # 1 to 3 shrink towards 1 before 0 is tried: an example of size 0 shows little
        size = draw(st.integers(1, largest) | st.integers(least, largest))
        sizes[name] = size ** roots.get(name, 1)
    assignment = Assignment(sizes, {})
    assume(all(assignment.size(count) > index for count, index in signature.fixed.items()))
    arrays = {}
    for name, tensor in signature.tensors.items():
        shape = array_shape(tensor, assignment)
        length = int(np.prod(shape))
        entries = draw(st.lists(ENTRIES, min_size=length, max_size=length))
        array = np.empty(length, dtype=object)
        array[:] = entries
        arrays[name] = array.reshape(shape)
    indices = {
        name: draw(st.integers(0, assignment.size(count) - 1))
        for name, (_, count) in signature.indices.items()
    }
    scalars = {}
    for name in signature.scalars:
        degree = roots.get(name, 1)
        positive = degree > 1 or name in divided
        scalars[name] = draw(st.integers(1, 3) if positive else ENTRIES) ** degree
    return Assignment(sizes, arrays, indices, scalars)


def _divided(*expressions: sympy.Basic) -> set[str]:
    """Return the names of the symbols that stand in a denominator."""
    return {
        symbol.name
        for expression in expressions
        for part in expression.atoms(sympy.Pow)
        if part.exp.is_negative
        for symbol in part.base.free_symbols
    }
