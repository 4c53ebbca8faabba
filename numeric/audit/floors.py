"""Coarser steps that well-known code makes on purpose: named as precision, and not as a fault.

Inside float64 code: norms, softmax and rotary angles in float32, as in the Llama and NeoX of
Hugging Face. Inside half-precision code: activations and norms whose steps are stored one by one.
"""

from dataclasses import replace

import numpy as np

from numeric.audit.change import with_config
from numeric.audit.evaluate import Act, Mistake, Operation
from numeric.audit.judge import Judge
from numeric.audit.mistakes_mlp import ROOT, tanh_gelu_with
from numeric.rounding.functions import rotated
from numeric.rounding.linear import Near
from numeric.rounding.places import At
from numeric.rounding.precision import UNIT_ROUNDOFF, Precision, precision

SINGLE = UNIT_ROUNDOFF["float32"]


def floors(judge: Judge, place: str) -> str:
    """Return which coarser steps explain a place, an empty string if none do."""
    every = FLOORS.get(judge.dtype, ())
    for floor in every:
        if judge.ratio(place, (floor,)) <= 1:
            return floor.says
    coarse = [floor for floor in every if floor.coarse]
    if len(coarse) > 1 and judge.ratio(place, coarse) <= 1:
        return "norms, softmax or rotary angles are computed in float32"
    return ""


def _in_float32(at: At, operation: Operation) -> Near:
    if at.p.exact:
        return operation(at)
    return operation(replace(at, p=precision("float32").supposed_likely()))


def _angles_in_float32(at: At, operation: Operation) -> Near:
    config = at.config
    if at.p.exact or config.positions != "rotary":
        return operation(at)
    plain = operation(with_config(at, positions="none", rotary_dims=0))
    p = Precision(at.p.unit, SINGLE, at.p.tiny)
    return rotated(plain, *config.rotation, p=p)


def _step_by_step(at: At, operation: Operation) -> Near:
    return operation(replace(at, p=replace(at.p, inner=at.p.unit)))


def _root_of(digits: float) -> Act:
    """Return the act of computing tanh GELU with √(2/π) to so many digits."""
    short = tanh_gelu_with(root=digits / ROOT)

    def act(at: At, operation: Operation) -> Near:
        used = at.config.activation == "gelu_tanh" and not at.config.gated
        return short(at, operation) if used else operation(at)

    return act


ROOT_SHORT = (float(np.float32(ROOT)), 0.7978845608, 0.79788456)
"""How √(2/π) stands in code that was written for single precision."""

IN_SINGLE = Mistake(
    "single_inside",
    "norms, softmax and rotary angles are computed in float32",
    dict.fromkeys(("ln1", "ln2", "ln_final", "pattern", "q", "k"), _in_float32),
    coarse=SINGLE,
)

_NORMS = ("ln1", "ln2", "ln_final")
_STEPS = (
    Mistake(
        "stored_steps",
        "the steps of an activation or a norm are stored one by one",
        dict.fromkeys(("mlp_post", *_NORMS), _step_by_step),
    ),
)
FLOORS: dict[str, tuple[Mistake, ...]] = {
    "float64": (
        *(
            Mistake(
                f"root_{digits:.12g}",
                f"tanh GELU has {digits:.12g} for √(2/π), which is right to single precision",
                {"mlp_post": _root_of(digits)},
            )
            for digits in ROOT_SHORT
        ),
        Mistake(
            "norm_in_float32",
            "the norm is computed in float32",
            dict.fromkeys(_NORMS, _in_float32),
            coarse=SINGLE,
        ),
        Mistake(
            "softmax_in_float32",
            "the softmax is computed in float32",
            {"pattern": _in_float32},
            coarse=SINGLE,
        ),
        Mistake(
            "angles_in_float32",
            "the rotary angles are computed in float32",
            dict.fromkeys(("q", "k"), _angles_in_float32),
            coarse=SINGLE,
        ),
    ),
    "float16": _STEPS,
    "bfloat16": _STEPS,
}
