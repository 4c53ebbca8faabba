"""Bounds on rounding errors, and the smallest mistakes that exceed them.

    precision    the rounding error of one operation in each dtype, and of many
    linear       sums and products, in any order of summation
    functions    softmax, norms, activation functions, rotary embeddings
    activations  each activation of a forward pass, given the inputs of its operation
    statements   each expression of the language, given its arrays
    hypotheses   the error of a claim whose hypotheses hold only up to rounding

All bounds are *local*: for one operation, or one statement, on its own inputs. In correct code
error / bound is at most 1; more is a bug.
"""

from otimes.numeric.block import inputs_of
from otimes.numeric.rounding.activations import Judged, LocalBounds, in_dtype
from otimes.numeric.rounding.hypotheses import carried
from otimes.numeric.rounding.precision import (
    UNIT_ROUNDOFF,
    Precision,
    gamma,
    precision,
    smallest_noticed,
    stored_as,
    worst_ratio,
)
from otimes.numeric.rounding.statements import (
    Bounded,
    contract_bounded,
    recorded_bound,
    walk_bounded,
)

__all__ = [
    "UNIT_ROUNDOFF",
    "Bounded",
    "Judged",
    "LocalBounds",
    "Precision",
    "carried",
    "contract_bounded",
    "gamma",
    "in_dtype",
    "inputs_of",
    "precision",
    "recorded_bound",
    "smallest_noticed",
    "stored_as",
    "walk_bounded",
    "worst_ratio",
]
