"""The rules that explanations name, each a few lines: `RULES["kron_mul_kron"]`.

rule          what a rule is; trees taken apart and put together without evaluation
products      products, sums, units, zeros, numbers, and how ⊗ meets them
transposes    transposes, traces, the elementwise product, matrices of ones
heads         sums over heads, heads side by side, selection, stacked matrices
structure     blocks, inverses, diagonal matrices
indices       entries, sums over indices, Kronecker's delta
explicit      matrices and sums of a size that is a number, written out
nonlinear     softmax, masks, activations, norms: the axioms as rules
given         hypotheses as rules
"""

from algebra.rules import explicit, heads, indices, nonlinear, products, structure, transposes
from algebra.rules.rule import RULES, Rule

__all__ = [
    "RULES",
    "Rule",
    "explicit",
    "heads",
    "indices",
    "nonlinear",
    "products",
    "structure",
    "transposes",
]
