"""Facts about softmax, masks, norms and activations, and what of them passes through a function.

A function forgets most of what its argument has: a softmax of scores of rank one has full rank in
general. What is said rests on the axioms of `algebra.axioms`, which the rules name, and on the
sign of exp, sigmoid and the reciprocal root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sympy

from algebra.facts.fact import Fact
from algebra.facts.found import TRIANGLES, Found
from algebra.facts.hypotheses import PAIRED
from algebra.facts.settle import product, settle
from algebra.functions import KNOWN
from algebra.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax, definition

if TYPE_CHECKING:
    from algebra.facts.rules import Walk

POSITIVE = ("exp", "sigmoid", "rsqrt")
KEEPS_SIGN = ("relu", "gelu", "gelu_tanh", "silu", "tanh")  # not negative where x is not


def is_positive(e: Any) -> bool:
    """Return whether each entry of a settled expression is certainly positive."""
    return isinstance(e, Activation) and e.name in POSITIVE


def _softmax(walk: Walk, e: RowSoftmax, found: Found) -> None:
    rule = "the axiom softmax_sum, each row of a softmax sums to one"
    found.add("rows_sum_to", rule, (), sympy.S.One)
    if e.mask is not None:
        _masked(walk, e, found)
        return
    found.add("nonnegative", "weights exp(s) over their sum")
    scores = walk.known(e.args[0])
    if "zero" in scores:
        rule = "the axiom softmax_constant, the softmax of equal numbers is the mean"
        rows, cols = e.shape
        mean = product(1 / cols, (sympy.OneMatrix(rows, cols),))
        _carry_over(walk, mean, rule, [scores["zero"]], found)


def _masked(walk: Walk, e: RowSoftmax, found: Found) -> None:
    """Add what the mask gives: an entry is zero where the mask is, and has its sign elsewhere."""
    mask = walk.known(settle(e.mask))
    rule = "the axiom softmax_mask, what a mask leaves out has no weight"
    for name in TRIANGLES:
        if name in mask:
            found.add(name, rule, [mask[name]])
    if "nonnegative" in mask:
        rule = "weights m exp(s) over their sum, where no m is negative"
        found.add("nonnegative", rule, [mask["nonnegative"]])
    for name in ("lower_triangular", "upper_triangular"):
        if name in mask and "invertible" in mask:
            rule = "a triangular matrix, its diagonal zero nowhere as that of its mask is"
            found.add("invertible", rule, [found.known[name], mask["invertible"]])


def _causal_mask(walk: Walk, e: CausalMask, found: Found) -> None:
    found.add("lower_triangular", "by definition")
    found.add("nonnegative", "its entries are zero and one")
    triangle = found.known["lower_triangular"]
    found.add("invertible", "a triangular matrix with ones on its diagonal", [triangle])


def _activation(walk: Walk, e: Activation, found: Found) -> None:
    argument, known = walk.known(e.argument), KNOWN.get(e.name)
    if "symmetric" in argument:
        rule = "the axiom activation_transpose, g(Xᵀ) = g(X)ᵀ"
        found.add("symmetric", rule, [argument["symmetric"]])
    if "zero" in argument:
        found.add("rank_at_most", "every entry is g(0)", [argument["zero"]], sympy.S.One)
    if known is None:
        return
    if known.nonnegative:
        found.add("nonnegative", f"{e.name} is nowhere negative")
    if known.zero_at_zero:
        for name in ("zero", *TRIANGLES):
            if name in argument:
                found.add(name, f"{e.name} of zero is zero", [argument[name]])
    if known.reflected == "odd" and "antisymmetric" in argument:
        rule = f"the axiom activation_odd, {e.name} of -x is minus that of x"
        found.add("antisymmetric", rule, [argument["antisymmetric"]])
    if "nonnegative" in argument and e.name in KEEPS_SIGN:
        if e.name == "relu":
            rule = "relu of what has no negative entry is itself"
            _carry_over(walk, e.argument, rule, [argument["nonnegative"]], found)
        rule = f"{e.name} of a number that is not negative is not negative"
        found.add("nonnegative", rule, [argument["nonnegative"]])


def _norm(walk: Walk, e: RMSNorm | LayerNorm, found: Found) -> None:
    """Add what a positive multiple of each row has; LayerNorm centres the rows first."""
    centred = definition(e).args[0] if isinstance(e, LayerNorm) else e.args[0]
    rows = walk.known(settle(centred))
    axiom = "layer_norm_definition" if isinstance(e, LayerNorm) else "rms_norm_definition"
    rule = f"the axiom {axiom}, each row is multiplied by a positive number"
    for name in ("zero", *TRIANGLES, "nonnegative", "invertible"):
        if name in rows:
            found.add(name, rule, [rows[name]])
    found.add("rank_at_most", rule, [rows["rank_at_most"]], rows["rank_at_most"].value)
    if "rows_sum_to" in rows and rows["rows_sum_to"].value == 0:
        found.add("rows_sum_to", rule, [rows["rows_sum_to"]], sympy.S.Zero)


def _carry_over(walk: Walk, equal: Any, rule: str, premises: list[Fact], found: Found) -> None:
    """Add every fact about an expression that is equal to this one."""
    for name, fact in walk.known(equal).items():
        if name not in PAIRED:
            found.add(name, rule, [*premises, fact], fact.value)


RULES: dict[type, Callable[[Walk, Any, Found], None]] = {
    RowSoftmax: _softmax,
    CausalMask: _causal_mask,
    Activation: _activation,
    RMSNorm: _norm,
    LayerNorm: _norm,
}
