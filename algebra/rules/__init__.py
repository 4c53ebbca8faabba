"""The rewrite rules that derivations name: `RULES["kron_mul_kron"]`.

rule          the class Rule; taking expression trees apart and rebuilding them unevaluated
symbols       the symbols of the examples
products      products, sums and ⊗: brackets, distributivity, identities, zeros, scalars
transposes    transposes, traces, the elementwise product, matrices of ones
heads         sums over heads, concatenated and stacked heads, one-hot vectors, vec
structure     block matrices, inverses, diagonal matrices
indices       entries, sums over indices, the Kronecker delta
explicit      matrices and sums of numeric size, entry by entry and term by term
defined       the classes that have a definition: rotations
expansion     one normal form, for what would take many steps
nonlinear     softmax, masks, activations, norms: the axioms as rules
given         hypotheses as rules
"""

from otimes.algebra.rules import (
    defined,
    expansion,
    explicit,
    heads,
    indices,
    nonlinear,
    products,
    structure,
    transposes,
)
from otimes.algebra.rules.rule import RULES, Rule

__all__ = [
    "RULES",
    "Rule",
    "defined",
    "expansion",
    "explicit",
    "heads",
    "indices",
    "nonlinear",
    "products",
    "structure",
    "transposes",
]
