"""The rules for facts about softmax, masks, norms and activations.

Few properties survive a nonlinear function: a softmax of rank-one scores has full rank in general.
The rules rest on the axioms of `otimes.algebra.decide.axioms`, which they name, and on the signs of
exp, sigmoid and the reciprocal square root.
"""

from __future__ import annotations

from typing import Any

import sympy

from otimes.algebra.decide.axiom_statements import STATEMENTS
from otimes.algebra.facts.fact import Fact
from otimes.algebra.facts.fact_set import TRIANGLES, FactSet
from otimes.algebra.facts.hypotheses import PAIRED
from otimes.algebra.facts.normalise import normalise, product
from otimes.algebra.facts.walk import Rules, Walk
from otimes.algebra.language.functions import KNOWN
from otimes.algebra.language.nonlinear import (
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)

POSITIVE = ("exp", "sigmoid", "softplus", "rsqrt")
ODD = tuple(STATEMENTS["activation_odd"]["forms"][0]["functions"])
KEEPS_SIGN = ("relu", "gelu", "gelu_tanh", "silu", "tanh")  # g(x) ≥ 0 for x ≥ 0


def is_positive(e: Any) -> bool:
    """Return whether all entries of a normalised expression are known to be positive."""
    return isinstance(e, Activation) and e.name in POSITIVE


def _softmax(walk: Walk, e: RowSoftmax, found: FactSet) -> None:
    rule = "the axiom softmax_sum, each row of a softmax sums to one"
    found.add("rows_sum_to", rule, (), sympy.S.One)
    if e.mask is not None:
        _masked(walk, e, found)
        return
    found.add("nonnegative", "exp(s) divided by its row sum")
    scores = walk.known(e.args[0])
    if "zero" in scores:
        rule = "the axiom softmax_constant, the softmax of equal scores is uniform"
        rows, cols = e.shape
        mean = product(1 / cols, (sympy.OneMatrix(rows, cols),))
        _carry_over(walk, mean, rule, scores["zero"], found)


def _masked(walk: Walk, e: RowSoftmax, found: FactSet) -> None:
    """Add the facts from the mask: a masked softmax has the zeros and the signs of its mask."""
    mask = walk.known(normalise(e.mask))
    rule = "the axiom softmax_mask, masked entries are zero"
    found.carry(TRIANGLES, mask, rule)
    found.carry(["nonnegative"], mask, "m exp(s) divided by its row sum, with m ≥ 0")
    for name in ("lower_triangular", "upper_triangular"):
        if name in mask and "invertible" in mask:
            rule = "a triangular matrix whose diagonal is nonzero where that of its mask is"
            found.add("invertible", rule, [found.known[name], mask["invertible"]])


def _causal_mask(walk: Walk, e: CausalMask, found: FactSet) -> None:
    found.add("lower_triangular", "by definition")
    found.add("nonnegative", "its entries are 0 and 1")
    triangle = found.known["lower_triangular"]
    found.add("invertible", "a triangular matrix with ones on its diagonal", [triangle])


def _activation(walk: Walk, e: Activation, found: FactSet) -> None:
    argument, known = walk.known(e.argument), KNOWN.get(e.name)
    found.carry(["symmetric"], argument, "the axiom activation_transpose, g(Xᵀ) = g(X)ᵀ")
    if "zero" in argument:
        found.add("rank_at_most", "every entry is g(0)", [argument["zero"]], sympy.S.One)
    if known is None:
        return
    if known.nonnegative:
        found.add("nonnegative", f"{e.name} is nonnegative")
    if known.at_zero == 0:
        found.carry(("zero", *TRIANGLES), argument, f"{e.name}(0) = 0")
    if e.name in ODD:
        rule = f"the axiom activation_odd, {e.name}(-x) = -{e.name}(x)"
        found.carry(["antisymmetric"], argument, rule)
    if "nonnegative" in argument and e.name in KEEPS_SIGN:
        if e.name == "relu":
            rule = "relu(x) = x for x ≥ 0"
            _carry_over(walk, e.argument, rule, argument["nonnegative"], found)
        found.carry(["nonnegative"], argument, f"{e.name}(x) ≥ 0 for x ≥ 0")


def _norm(walk: Walk, e: RMSNorm | LayerNorm, found: FactSet) -> None:
    """Add the facts that positive scaling of rows preserves; LayerNorm first centres each row."""
    centred = definition(e).args[0] if isinstance(e, LayerNorm) else e.args[0]
    rows = walk.known(normalise(centred))
    axiom = "layer_norm_definition" if isinstance(e, LayerNorm) else "rms_norm_definition"
    rule = f"the axiom {axiom}, each row is multiplied by a positive number"
    kept = ("zero", *TRIANGLES, "nonnegative", "invertible", "rank_at_most")
    found.carry(kept, rows, rule)
    if "rows_sum_to" in rows and rows["rows_sum_to"].value == 0:
        found.carry(["rows_sum_to"], rows, rule)


def _carry_over(walk: Walk, equal: Any, rule: str, premise: Fact, found: FactSet) -> None:
    """Add every fact about an equal expression."""
    known = walk.known(equal)
    found.carry([name for name in known if name not in PAIRED], known, rule, premise)


RULES: Rules = {
    RowSoftmax: _softmax,
    CausalMask: _causal_mask,
    Activation: _activation,
    RMSNorm: _norm,
    LayerNorm: _norm,
}
