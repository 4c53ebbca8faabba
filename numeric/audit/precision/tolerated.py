"""Steps of lower precision that well-known code makes on purpose: not faults, but notes.

Inside float64 code: norms, softmax and rotary angles in float32, as in the Llama and NeoX of
Hugging Face. Inside half-precision code: activations and norms whose steps are stored one by one,
and matrix products under autocast.
"""

from dataclasses import replace

import numpy as np

from otimes.numeric.audit.precision.autocast import autocast
from otimes.numeric.audit.reference.comparison import Comparison
from otimes.numeric.audit.reference.edits import ROOT, tanh_gelu_with, unturned, with_config
from otimes.numeric.audit.reference.evaluator import NORMS, Act, Mistake, Operation, makes_act
from otimes.numeric.rounding.activations import At, normed_heads
from otimes.numeric.rounding.functions import rotated
from otimes.numeric.rounding.linear import Near
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF, Precision, precision

LATENTS = ("q_latent", "kv_latent")
SINGLE = UNIT_ROUNDOFF["float32"]


def tolerated_steps(compared: Comparison, place: str) -> str:
    """Return the tolerated steps that explain an activation, or ""."""
    every = TOLERATED.get(compared.dtype, ())
    every = (*every, *autocast(compared.casts)) if compared.casts else every
    for step in every:
        if compared.ratio(place, (step,)) <= 1:
            return step.says
    coarse = [step for step in every if step.coarse == SINGLE]
    if len(coarse) > 1 and compared.ratio(place, coarse) <= 1:
        which = "softmax, routers" if compared.model.config.n_experts else "softmax"
        return f"norms, {which} or rotary angles are computed in float32"
    return ""


def _in_float32(at: At, operation: Operation) -> Near:
    if at.p.exact:
        return operation(at)
    return operation(replace(at, p=precision("float32").supposed_likely()))


def _angles_in_float32(at: At, operation: Operation) -> Near:
    config = at.config
    if at.p.exact or config.positions != "rotary":
        return operation(at)
    plain = operation(unturned(at))
    p = Precision(at.p.unit, SINGLE, at.p.tiny)
    return rotated(plain, *config.rotation, p=p)


def _normed_in_float32(at: At, operation: Operation) -> Near:
    """Queries or keys after a norm in float32, and rotated by angles in float32."""
    config, letter = at.config, at.weights.kind
    if at.p.exact or config.qk_norm == "none":
        return operation(at)
    made = operation(with_config(unturned(at), qk_norm="none"))
    single = replace(at, p=precision("float32").supposed_likely())
    normed = normed_heads(single, made, at.weight(f"{letter}_norm_gain"))
    if config.positions != "rotary":
        return normed
    return rotated(normed, *config.rotation, p=Precision(at.p.unit, SINGLE, at.p.tiny))


def _step_by_step(at: At, operation: Operation) -> Near:
    return operation(replace(at, p=replace(at.p, inner=at.p.unit)))


@makes_act
def _root_of(at: At, operation: Operation, digits: float) -> Near:
    """Act: compute tanh GELU with a rounded √(2/π)."""
    used = at.config.activation == "gelu_tanh" and not at.config.gated
    return tanh_gelu_with(root=digits / ROOT)(at, operation) if used else operation(at)


ROOT_SHORT = (float(np.float32(ROOT)), 0.7978845608, 0.79788456)
"""√(2/π) as written in code for single precision."""

IN_SINGLE = Mistake(
    "norms, softmax and rotary angles are computed in float32",
    dict.fromkeys((*NORMS, *LATENTS, "pattern", "router", "routing", "q", "k"), _in_float32),
    coarse=SINGLE,
)


def _in_single(what: str, *kinds: str, act: Act = _in_float32) -> Mistake:
    return Mistake(f"{what} computed in float32", dict.fromkeys(kinds, act), coarse=SINGLE)


_STORED = "the steps of an activation or a norm are stored one by one"
_STEPS = (Mistake(_STORED, dict.fromkeys(("mlp_post", *NORMS), _step_by_step)),)
TOLERATED: dict[str, tuple[Mistake, ...]] = {
    "float64": (
        *(
            Mistake(
                f"tanh GELU has {digits:.12g} for √(2/π), which is right to single precision",
                {"mlp_post": _root_of(digits)},
            )
            for digits in ROOT_SHORT
        ),
        _in_single("the norm is", *NORMS, *LATENTS),
        _in_single("the softmax is", "pattern"),
        _in_single("the router is", "router", "routing"),
        _in_single("the rotary angles are", "q", "k", act=_angles_in_float32),
        _in_single("the norm of queries or keys is", "q", "k", act=_normed_in_float32),
    ),
    "float16": (*_STEPS, *autocast("float16")),
    "bfloat16": (*_STEPS, *autocast("bfloat16")),
}
