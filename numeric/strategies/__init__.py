"""Hypothesis strategies for transformer algebra, to be used in anybody's tests.

    sizes, integer_matrices, float_matrices     the raw material
    patterns, streams, tokens                   what attention makes and what it works on
    heads                                       weights, in either convention, with their sizes
    configs, models                             transformers of any kind, and with drawn weights
    shapes, expressions, assignments            the language, and numbers for what is in it
    identities, near_misses                     equations that are true, and some that are not

Everything shrinks well: sizes towards 1, entries towards 0, expressions towards one symbol. What is
drawn depends on Hypothesis's seed and on nothing else. This package imports Hypothesis, and
`import numeric` does not import this package.

>>> from hypothesis import given
>>> from numeric import strategies as ots
>>> @given(ots.patterns(), ots.identities())
... def test_mine(pattern, identity):
...     assert (pattern.sum(axis=1) == 1).all()
...     assert identity.lhs.shape == identity.rhs.shape
>>> test_mine()
"""

from numeric.strategies.equations import Equation, identities, near_misses
from numeric.strategies.expressions import Alphabet, assignments, expressions, shapes
from numeric.strategies.matrices import (
    float_matrices,
    integer_matrices,
    patterns,
    sizes,
    streams,
    tokens,
)
from numeric.strategies.weights import Head, configs, heads, models

__all__ = [
    "Alphabet",
    "Equation",
    "Head",
    "assignments",
    "configs",
    "expressions",
    "float_matrices",
    "heads",
    "identities",
    "integer_matrices",
    "models",
    "near_misses",
    "patterns",
    "shapes",
    "sizes",
    "streams",
    "tokens",
]
