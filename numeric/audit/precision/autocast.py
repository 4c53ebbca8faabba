"""Mixed precision as `torch.autocast` makes it: matrix products in half precision.

Weights and the residual stream are float32. Each matrix product casts what it reads, weights and
biases included, to half precision, accumulates in float32 and stores its result in half precision.
Norms, softmax and residual sums remain in float32.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from otimes.numeric.audit.reference.edits import with_inputs, with_weights
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation
from otimes.numeric.block import WEIGHTS
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.linear import Near
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF, stored_as

SAYS = "matrix products cast to {dtype} what they read, as under autocast"

PRODUCTS = (
    *("q", "k", "v", "scores", "z", "head_out", "attn_out"),
    *("router", "mlp_pre", "mlp_out", "logits"),
)
"""The hook points that a matrix product computes."""


def autocast(dtype: str) -> tuple[Mistake, ...]:
    """Return the steps that autocast to a dtype makes of every operation.

    A bias is cast where it is part of the product, and not where it is added to the result.
    """
    says = SAYS.format(dtype=dtype)
    coarse = UNIT_ROUNDOFF[dtype]  # by which estimates perturb what is stored in half precision
    return tuple(
        Mistake(says, _acts(dtype, cast), coarse=coarse) for cast in (("W_", "b_"), ("W_",))
    )


def _acts(dtype: str, prefixes: tuple[str, ...]) -> Mapping[str, Act]:
    def product(at: At, operation: Operation) -> Near:
        return operation(_cast(at, dtype, prefixes))

    def activation(at: At, operation: Operation) -> Near:
        """Compute an activation step by step; that of a gated MLP has a product within it."""
        at = _cast(at, dtype, prefixes if at.config.gated else ())
        return operation(replace(at, p=replace(at.p, inner=at.p.unit)))

    return {**dict.fromkeys(PRODUCTS, product), "mlp_post": activation}


def _cast(at: At, dtype: str, prefixes: tuple[str, ...]) -> At:
    """Return the arguments of an operation with inputs, weights and the result in a dtype."""
    names = [name for name in WEIGHTS.get(at.weights.kind, ()) if name.startswith(prefixes)]
    weights = {name: stored_as(at.weights[name], dtype) for name in names if _there(at, name)}
    inputs = {kind: _stored(near, dtype) for kind, near in at.inputs.items()}
    at = with_weights(with_inputs(at, **inputs), **weights)
    unit = max(at.p.unit, UNIT_ROUNDOFF[dtype])
    return at if at.p.exact else replace(at, p=replace(at.p, unit=unit))


def _there(at: At, name: str) -> bool:
    return at.config.has(name) or (name == "W_U" and at.config.tied)


def _stored(near: Near, dtype: str) -> Near:
    """Return an input in a dtype; one that is not known exactly may be rounded the other way."""
    value = stored_as(near.value, dtype)
    if near.exact:
        return Near(value, near.error)
    error = np.asarray(near.error)
    either = 2 * UNIT_ROUNDOFF[dtype] * (np.abs(near.value) + error)
    return Near(value, error + np.where(error > 0, either, 0.0))
