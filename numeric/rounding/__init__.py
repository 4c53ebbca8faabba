"""How far a computed value may be from the exact one, and how small a mistake would show.

    precision    what one rounding does in each floating-point type, and many together
    linear       sums and products, whatever their order
    functions    softmax, norms, activations, rotation
    places       every place of a forward pass, from what an implementation read there
    statements   every expression of the language, from the arrays that it is about
    hypotheses   what a claim may be off by where its hypotheses hold up to rounding only

All bounds are *local*: one operation, or one statement, on its own inputs. `error / bound` at most
1 is what equality looks like in this precision; over 1 is a bug.
"""

from numeric.rounding.hypotheses import carried
from numeric.rounding.places import Judged, LocalBounds, in_dtype, inputs_of
from numeric.rounding.precision import (
    UNIT_ROUNDOFF,
    Precision,
    gamma,
    precision,
    smallest_noticed,
    stored_as,
    worst_ratio,
)
from numeric.rounding.statements import Bounded, contract_bounded, recorded_bound, walk_bounded

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
