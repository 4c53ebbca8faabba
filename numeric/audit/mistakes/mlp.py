"""Mistakes in the MLP: its input, its gate, and its activation function."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit, ndtr

from otimes.numeric.audit.reference.edits import (
    ROOT,
    activation_with,
    config_to,
    reading,
    tanh_gelu,
    weights_from,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation, makes_act
from otimes.numeric.config import ACTIVATIONS, Config
from otimes.numeric.experts import widths
from otimes.numeric.functions import ACTIVATION
from otimes.numeric.rounding.activations import At, linear_branch
from otimes.numeric.rounding.functions import activated
from otimes.numeric.rounding.linear import Array, Near, added, multiplied

SAID = {
    "gelu": "exact GELU",
    "gelu_tanh": "tanh GELU",
    "quick_gelu": "quick GELU, x σ(1.702 x),",
    "relu": "ReLU",
    "relu2": "squared ReLU",
    "silu": "SiLU",
}
SEQUENTIAL = (
    "a parallel block for a sequential one: the MLP reads the stream before attention",
    "an MLP that reads what attention wrote, and not the stream",
)
"""An MLP of a sequential block that reads `resid_pre` or `attn_out`."""


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of the MLP."""
    if not config.d_mlp or not config.n_layers:
        return
    if config.norms_before or config.post_norm:
        reads = ("mlp_pre", "mlp_post") if config.gated else ("mlp_pre",)
        stream = reading("resid_pre" if config.parallel else "resid_mid")
        says = "an MLP that reads the stream and not the norm of it"
        yield Mistake(says, dict.fromkeys(reads, stream), 0)
        others = {"an MLP that reads what attention reads (ln1)": "ln1"}
        if config.post_norm:
            others = dict(zip(SEQUENTIAL, ("resid_pre", "attn_out"), strict=True))
        for says, place in others.items():
            yield Mistake(says, dict.fromkeys(reads, reading(place)))
    assert config.activation is not None  # there is an MLP
    if config.gated:
        swapped = "gate and up swapped: W_in for W_gate"
        acts = {"mlp_pre": weights_from(W_gate="W_in"), "mlp_post": weights_from(W_in="W_gate")}
        yield Mistake(swapped, acts, 0)
        for says, halves in {
            "gate and up read from alternate columns of a fused matrix, and not its halves": False,
            "gate and up read from the halves of a fused matrix whose columns alternate": True,
        }.items():
            acts = {"mlp_pre": _fused("gate", halves), "mlp_post": _fused("in", halves)}
            yield Mistake(says, acts)
        for says, act, rank in _gated(config.activation):
            yield Mistake(says, {"mlp_post": act}, rank)
    for name in ACTIVATIONS:
        if name != config.activation:
            says = f"{SAID[name]} for {SAID[config.activation]}"
            yield Mistake(says, {"mlp_post": config_to(activation=name)}, 0)
    for says, function in OTHER_ACTIVATIONS.items():
        says = f"{says} for {SAID[config.activation]}"
        yield Mistake(says, {"mlp_post": activation_with(function)}, 0)


@makes_act
def _fused(at: At, operation: Operation, part: str, halves: bool) -> Near:
    """Act: take gate or up from other columns of the matrix in which both are stored."""
    config, own = at.config, int(part == "in")
    ends = np.cumsum(widths(config) if config.n_experts else [config.d_mlp])[:-1]
    changed = {}
    for letter in ("W", "b"):
        if letter == "b" and not (config.has("b_gate") and config.has("b_in")):
            continue
        pairs = (np.split(at.weights[f"{letter}_{each}"], ends, axis=-1) for each in ("gate", "in"))
        columns = []
        for gate, up in zip(*pairs, strict=True):
            both = np.stack([gate, up], axis=-1 if halves else -2)
            flat = both.reshape(*gate.shape[:-1], -1)
            columns.append(np.split(flat, 2, axis=-1)[own] if halves else flat[..., own::2])
        changed[f"{letter}_{part}"] = np.concatenate(columns, axis=-1)
    return operation(with_weights(at, **changed))


Activation = Callable[[Array], Array]


def _twice(function: Activation) -> Activation:
    return lambda x: function(function(x))


OTHER_ACTIVATIONS: dict[str, Activation] = {
    "tanh": np.tanh,
    "sigmoid": lambda x: expit(x),
    "no activation": lambda x: x,
    "leaky ReLU": lambda x: np.where(x > 0, x, 0.01 * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "softplus": lambda x: np.logaddexp(0, x),
    "tanh GELU with 0.44715 for 0.044715": tanh_gelu(ROOT, 0.44715),
    "tanh GELU with 0.0447 for 0.044715": tanh_gelu(ROOT, 0.0447),
    "tanh GELU with 0.0447 for 0.044715 and 0.797885 for √(2/π)": tanh_gelu(0.797885, 0.0447),
    "tanh GELU with 0.7979 for √(2/π)": tanh_gelu(0.7979, 0.044715),
    "tanh GELU with 2/π for its root": tanh_gelu(2 / np.pi, 0.044715),
    "tanh GELU with 0.797885 for √(2/π)": tanh_gelu(0.797885, 0.044715),
    "tanh GELU with 0.7978 for √(2/π)": tanh_gelu(0.7978, 0.044715),
    "tanh GELU with the square of x for its cube": (
        lambda x: 0.5 * x * (1 + np.tanh(ROOT * (x + 0.044715 * x**2)))
    ),
    "GELU without the √2 in its error function": (
        lambda x: ACTIVATION["gelu"](x * 2**0.5) / 2**0.5
    ),
    **{
        f"{SAID[name]} applied twice": _twice(ACTIVATION[name])
        for name in ACTIVATIONS
        if name != "relu"
    },
    "tanh GELU without its cube": tanh_gelu(ROOT, 0.0),
    "GELU without its factor ½": lambda x: 2 * ACTIVATION["gelu"](x),
    "GELU without its factor x": lambda x: ndtr(x),
    "tanh GELU without its factor x": lambda x: (1 + np.tanh(ROOT * (x + 0.044715 * x**3))) / 2,
}


def _gated(activation: str) -> Iterator[tuple[str, Act, int]]:
    yield "W_gate for W_in: the gate multiplies itself", weights_from(W_in="W_gate"), 1

    def made(function: Callable[..., Near]) -> Act:
        return lambda at, operation: function(
            at.inputs["mlp_pre"],
            linear_branch(at),
            lambda rows: activated(activation, rows, at.p),
            at.p,
        )

    for says, function in GATED.items():
        yield says, made(function), 0 if "swapped" in says else 1


GATED: dict[str, Callable[..., Near]] = {
    "gate and up swapped: the activation is taken of up": (
        lambda gate, up, act, p: multiplied(act(up), gate, p)
    ),
    "a gated MLP without up: the activated gate only": lambda gate, up, act, p: act(gate),
    "a gated MLP without its gate: the activation is taken of up": (
        lambda gate, up, act, p: act(up)
    ),
    "no activation: the gate multiplies as it is": (
        lambda gate, up, act, p: multiplied(gate, up, p)
    ),
    "the activation after the product and not before": (
        lambda gate, up, act, p: act(multiplied(gate, up, p))
    ),
    "both gate and up activated": lambda gate, up, act, p: multiplied(act(gate), act(up), p),
    "the activated gate added to up and not multiplied": (
        lambda gate, up, act, p: added(p, act(gate), up)
    ),
}
"""Other functions of gate, up, the activation and the precision."""
