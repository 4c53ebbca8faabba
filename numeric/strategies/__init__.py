"""Hypothesis strategies for transformer algebra, for use in your own tests.

    sizes, integer_matrices, float_matrices     sizes and matrices
    patterns, streams, tokens                   attention patterns, residual streams and prompts
    heads                                       weights of one head, in either convention
    configs, models                             configurations, and models with drawn weights
    shapes, expressions, assignments            expressions of the language, and values for them
    identities, near_misses                     true equations, and false ones

Examples shrink: sizes towards 1, entries towards 0, expressions towards one symbol. Draws depend
only on Hypothesis's seed. This package imports Hypothesis; `import otimes` does not import it.

>>> from hypothesis import given
>>> from otimes.numeric import strategies as ots
>>> @given(ots.patterns(), ots.identities())
... def test_mine(pattern, identity):
...     assert (pattern.sum(axis=1) == 1).all()
...     assert identity.lhs.shape == identity.rhs.shape
>>> test_mine()
"""

from otimes.numeric.strategies.equations import Equation, identities, near_misses
from otimes.numeric.strategies.expressions import Alphabet, assignments, expressions, shapes
from otimes.numeric.strategies.matrices import (
    float_matrices,
    integer_matrices,
    patterns,
    sizes,
    streams,
    tokens,
)
from otimes.numeric.strategies.weights import Head, configs, heads, models

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
