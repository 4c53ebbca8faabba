"""Mistakes in the MLP: what it reads, its gate, and its activation."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit

from otimes.numeric.audit.reference.edits import (
    ROOT,
    config_to,
    function_of,
    other_place,
    tanh_gelu,
    with_inputs,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation
from otimes.numeric.config import ACTIVATIONS, Config
from otimes.numeric.functions import ACTIVATION
from otimes.numeric.rounding.functions import activated
from otimes.numeric.rounding.linear import Array, Near, added, linear, multiplied
from otimes.numeric.rounding.places import At


def _post(name: str, says: str, act: Act, rank: int = 1) -> Mistake:
    return Mistake(name, says, {"mlp_post": act}, rank)


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of the MLP."""
    if not config.d_mlp or not config.n_layers:
        return
    if config.norm != "none":
        acts = {"mlp_pre": _mlp_reads(_before_mlp(config))}
        if config.gated:
            acts["mlp_post"] = _mlp_reads(_before_mlp(config))
        yield Mistake(
            "mlp_unnormalised", "an MLP that reads the stream and not the norm of it", acts, 0
        )
        for name, place, says in OTHER_STREAMS if config.post_norm else OTHER_NORM:
            yield Mistake(name, says, dict.fromkeys(acts, _mlp_reads(place)))
    assert config.activation is not None  # there is an MLP
    if config.gated:
        yield from _gated(config, config.activation)
    for name, says, function in OTHER_ACTIVATIONS:
        if name != config.activation:
            said = f"{says} for {SAID[config.activation]}"
            yield _post(f"act_{name}", said, _activation(name, function), 0)


OTHER_NORM = (("mlp_reads_ln1", "ln1", "an MLP that reads what attention reads (ln1)"),)
OTHER_STREAMS = (
    (
        "parallel_for_sequential",
        "resid_pre",
        "a parallel block for a sequential one: the MLP reads the stream before attention",
    ),
    (
        "mlp_reads_attention",
        "attn_out",
        "an MLP that reads what attention wrote, and not the stream",
    ),
)
"""The wrong inputs of an MLP, without and with a norm before it."""


def _before_mlp(config: Config) -> str:
    return "resid_pre" if config.parallel else "resid_mid"


def _mlp_reads(kind: str) -> Act:
    def act(at: At, operation: Operation) -> Near:
        names = [each for each in at.inputs if each != "mlp_pre"]
        return operation(with_inputs(at, **{n: other_place(at, kind) for n in names}))

    return act


SAID = {
    "gelu": "exact GELU",
    "gelu_tanh": "tanh GELU",
    "quick_gelu": "quick GELU, x σ(1.702 x),",
    "relu": "ReLU",
    "silu": "SiLU",
}


def _twice(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(function(x))


OTHER_ACTIVATIONS: tuple[tuple[str, str, Callable[[Array], Array]], ...] = (
    *((name, SAID[name], ACTIVATION[name]) for name in ACTIVATIONS),
    ("tanh", "tanh", np.tanh),
    ("sigmoid", "sigmoid", lambda x: expit(x)),
    ("identity", "no activation", lambda x: x),
    ("relu_squared", "squared ReLU", lambda x: np.maximum(x, 0) ** 2),
    ("leaky_relu", "leaky ReLU", lambda x: np.where(x > 0, x, 0.01 * x)),
    ("elu", "ELU", lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    ("softplus", "softplus", lambda x: np.logaddexp(0, x)),
    ("gelu_tanh_cube", "tanh GELU with 0.44715 for 0.044715", tanh_gelu(ROOT, 0.44715)),
    ("gelu_tanh_short", "tanh GELU with 0.0447 for 0.044715", tanh_gelu(ROOT, 0.0447)),
    (
        "gelu_tanh_both",
        "tanh GELU with 0.0447 for 0.044715 and 0.797885 for √(2/π)",
        tanh_gelu(0.797885, 0.0447),
    ),
    ("gelu_tanh_four", "tanh GELU with 0.7979 for √(2/π)", tanh_gelu(0.7979, 0.044715)),
    ("gelu_tanh_root", "tanh GELU with 2/π for its root", tanh_gelu(2 / np.pi, 0.044715)),
    ("gelu_tanh_digits", "tanh GELU with 0.797885 for √(2/π)", tanh_gelu(0.797885, 0.044715)),
    ("gelu_tanh_short_root", "tanh GELU with 0.7978 for √(2/π)", tanh_gelu(0.7978, 0.044715)),
    (
        "gelu_tanh_square",
        "tanh GELU with the square of x for its cube",
        lambda x: 0.5 * x * (1 + np.tanh(ROOT * (x + 0.044715 * x**2))),
    ),
    (
        "gelu_without_root",
        "GELU without the √2 in its error function",
        lambda x: ACTIVATION["gelu"](x * 2**0.5) / 2**0.5,
    ),
    *(
        (f"{name}_twice", f"{SAID[name]} applied twice", _twice(ACTIVATION[name]))
        for name in ACTIVATIONS
        if name != "relu"
    ),
    ("gelu_tanh_no_cube", "tanh GELU without its cube", tanh_gelu(ROOT, 0.0)),
    ("gelu_without_half", "GELU without its factor ½", lambda x: 2 * ACTIVATION["gelu"](x)),
)


def _activation(name: str, function: Callable[[Array], Array]) -> Act:
    if name in ACTIVATIONS:
        return config_to(activation=name)

    def act(at: At, operation: Operation) -> Near:
        post = function_of(function, at.inputs["mlp_pre"], at)
        return multiplied(post, up(at), at.p) if at.config.gated else post

    return act


def up(at: At) -> Near:
    """Return the linear branch of a gated MLP, which the gate multiplies."""
    (rows,) = [near for kind, near in at.inputs.items() if kind != "mlp_pre"]
    return linear(rows, at.weight("W_in"), at.bias("b_in"), at.p)


def _gated(config: Config, activation: str) -> Iterator[Mistake]:
    def made(function: Callable[..., Near]) -> Act:
        """Return the change to another function of gate, up, the activation and the precision."""
        return lambda at, operation: function(
            at.inputs["mlp_pre"], up(at), lambda rows: activated(activation, rows, at.p), at.p
        )

    swapped = "gate and up swapped:"
    yield _post(
        "gate_and_up_swapped",
        f"{swapped} the activation is taken of up",
        made(lambda gate, up, act, p: multiplied(act(up), gate, p)),
        0,
    )
    acts: dict[str, Act] = {"mlp_pre": _up_for_gate, "mlp_post": _gate_for_up}
    yield Mistake("gate_is_up", f"{swapped} W_in for W_gate", acts, 0)
    yield _post("up_is_gate", "W_gate for W_in: the gate multiplies itself", _gate_for_up)
    for name, says, function in GATED:
        yield _post(name, says, made(function))


GATED: tuple[tuple[str, str, Callable[..., Near]], ...] = (
    (
        "up_missing",
        "a gated MLP without up: the activated gate only",
        lambda gate, up, act, p: act(gate),
    ),
    (
        "gate_missing",
        "a gated MLP without its gate: the activation is taken of up",
        lambda gate, up, act, p: act(up),
    ),
    (
        "activation_missing",
        "no activation: the gate multiplies as it is",
        lambda gate, up, act, p: multiplied(gate, up, p),
    ),
    (
        "activation_after",
        "the activation after the product and not before",
        lambda gate, up, act, p: act(multiplied(gate, up, p)),
    ),
    (
        "activation_both",
        "both gate and up activated",
        lambda gate, up, act, p: multiplied(act(gate), act(up), p),
    ),
    (
        "gate_added",
        "the activated gate added to up and not multiplied",
        lambda gate, up, act, p: added(p, act(gate), up),
    ),
)


def _up_for_gate(at: At, operation: Operation) -> Near:
    changed = {"W_gate": at.weights["W_in"]}
    if "b_gate" in at.config.biases:
        changed["b_gate"] = at.weights["b_in"]
    return operation(with_weights(at, **changed))


def _gate_for_up(at: At, operation: Operation) -> Near:
    changed = {"W_in": at.weights["W_gate"]}
    if "b_in" in at.config.biases:
        changed["b_in"] = at.weights["b_gate"]
    return operation(with_weights(at, **changed))
