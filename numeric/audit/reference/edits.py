"""The acts of mistakes: functions that change the inputs, weights or output of an operation."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit

from otimes.numeric.audit.reference.evaluator import Act, Operation, makes_act
from otimes.numeric.config import Config
from otimes.numeric.rounding.activations import At, linear_branch
from otimes.numeric.rounding.functions import limited
from otimes.numeric.rounding.linear import Array, Near, multiplied


def with_weights(at: At, **arrays: Array) -> At:
    """Return the arguments of an operation with some weights replaced."""
    weights = copy(at.weights)
    weights.update(arrays)
    return replace(at, weights=weights)


def with_config(at: At, **fields: Any) -> At:
    """Return the arguments of an operation with some settings replaced."""
    if at.config.positions != "rotary" and "positions" not in fields:  # a layer without them
        fields = {name: each for name, each in fields.items() if not name.startswith("rotary_")}
    if fields.get("positions", "rotary") != "rotary":
        fields.setdefault("rotary_stretch", ())
    if fields.get("positions", "alibi") != "alibi":
        fields.setdefault("alibi_slopes", ())
    if "rotary_dims" in fields and at.config.rotary_by_length:  # its divisors are of pairs
        fields.setdefault("rotary_stretch", ())
    return replace(at, config=_changed(at.config, *fields.items()))


@lru_cache(maxsize=1024)
def _changed(config: Config, *fields: tuple[str, Any]) -> Config:
    return replace(config, **dict(fields))


def with_inputs(at: At, **nears: Near) -> At:
    """Return the arguments of an operation with some inputs replaced, by kind."""
    return replace(at, inputs={**at.inputs, **nears})


def only(at: At, near: Near) -> At:
    """Return the arguments of a one-input operation with its input replaced."""
    (kind,) = at.inputs
    return replace(at, inputs={kind: near})


def unturned(at: At) -> At:
    """Return the arguments of an operation with no rotary positions."""
    return with_config(at, positions="none", rotary_dims=0)


def not_turned(at: At, operation: Operation) -> Near:
    """Act: do not rotate queries or keys."""
    return operation(unturned(at))


def other_place(at: At, name: str) -> Near:
    """Return another activation, recorded or else expected."""
    assert at.read is not None  # the evaluator gives it to all
    return at.read(name)


def scaled(near: Near, factor: Any) -> Near:
    """Return an activation times a factor."""
    return Near(near.value * factor, near.error * np.abs(factor))


def rounded(near: Near, at: At) -> Near:
    """Return an activation with the error of a few more roundings."""
    return Near(near.value, near.error + 3 * at.p.unit * np.abs(near.value))


def moved(near: Near, function: Callable[[Array], Array]) -> Near:
    """Return an activation with its entries rearranged by a function."""
    return Near(function(near.value), function(np.array(near.error)))


@makes_act
def weights_to(at: At, operation: Operation, /, **functions: Callable[[Array], Array]) -> Near:
    """Act: use other weights, each a function of the right one."""
    return operation(
        with_weights(at, **{name: f(at.weights[name]) for name, f in functions.items()})
    )


@makes_act
def affine_to(at: At, operation: Operation, /, **functions: Callable[[Array], Array]) -> Near:
    """Act: use another `gain` or `bias` of a norm, a function of the right one."""
    named = {f"{at.weights.kind}_{part}": f for part, f in functions.items()}
    return weights_to(**named)(at, operation)


def config_to(**fields: Any) -> Act:
    """Return the act of computing with other settings."""
    return lambda at, operation: operation(with_config(at, **fields))


def after(function: Callable[[At, Near], Near]) -> Act:
    """Return the act of applying a function to the output of the operation."""
    return lambda at, operation: function(at, operation(at))


@makes_act
def of_layer(at: At, operation: Operation, layer: int) -> Near:
    """Act: use the weights of another layer."""
    weights = copy(at.weights)
    weights.clear()
    weights.layer = layer
    return operation(replace(at, weights=weights))


@makes_act
def reading(at: At, operation: Operation, name: str) -> Near:
    """Act: read another activation where it has the shape of the right one.

    The gate of an MLP stays the right one.
    """
    other = other_place(at, name)
    kinds = [
        kind
        for kind, near in at.inputs.items()
        if kind != "mlp_pre" and near.value.shape == other.value.shape
    ]
    return operation(with_inputs(at, **dict.fromkeys(kinds, other)))


@makes_act
def inputs_from(at: At, operation: Operation, /, **names: str) -> Near:
    """Act: read other activations of the layer, by the kind of the right one, if of its shape."""
    others = {kind: other_place(at, name) for kind, name in names.items()}
    fits = {k: o for k, o in others.items() if o.value.shape == at.inputs[k].value.shape}
    return operation(with_inputs(at, **fits))


@makes_act
def weights_from(at: At, operation: Operation, /, **names: str) -> Near:
    """Act: use other weights, by the name of the right one, with their biases."""
    pairs = [*names.items()]
    pairs += [(f"b{name[1:]}", f"b{other[1:]}") for name, other in pairs]
    changed = {name: at.weights[other] for name, other in pairs if at.config.has(name)}
    return operation(with_weights(at, **changed))


def moved_after(function: Callable[[Array], Array]) -> Act:
    """Return the act of rearranging the output of the operation."""
    return after(lambda at, near: moved(near, function))


@makes_act
def given(at: At, operation: Operation, /, **functions: Callable[[Array], Array]) -> Near:
    """Act: rearrange some inputs of the operation, by kind."""
    changed = {kind: moved(at.inputs[kind], f) for kind, f in functions.items()}
    return operation(with_inputs(at, **changed))


def times(factor: Any) -> Act:
    """Return the act of multiplying the output of the operation by a factor."""
    return after(lambda at, near: scaled(near, factor))


ROOT, CUBE = float(np.sqrt(2 / np.pi)), 0.044715
"""The two constants of tanh GELU."""


def tanh_gelu(inner: float, cube: float) -> Callable[[Array], Array]:
    """Return tanh GELU with these two constants."""
    return lambda x: 0.5 * x * (1 + np.tanh(inner * (x + cube * x**3)))


def function_of(function: Callable[[Array], Array], x: Near, at: At) -> Near:
    """Return a function of every entry, with an error bound from its slope."""
    value = function(x.value)
    if at.p.exact:
        return Near.exactly(value)
    ahead = np.abs(function(x.value + x.error) - value)
    behind = np.abs(function(x.value - x.error) - value)
    own = at.p.inner * (12 * np.abs(x.value) + 12 * np.abs(value) + 4)
    return Near(value, np.maximum(ahead, behind) * 1.5 + own)


@makes_act
def activation_with(at: At, operation: Operation, function: Callable[[Array], Array]) -> Near:
    """Act: another activation function, of the gate of a gated MLP."""
    pre, limit = at.inputs["mlp_pre"], at.config.gate_limit
    post = function_of(function, limited(pre, limit, top=True) if limit else pre, at)
    return multiplied(post, linear_branch(at), at.p) if at.config.gated else post


def tanh_gelu_with(root: float = 1.0, cube: float = 1.0) -> Act:
    """Return the act of tanh GELU with its two numbers multiplied by these factors."""
    return activation_with(tanh_gelu(root * ROOT, cube * CUBE))


def sigmoid_with(steep: float) -> Act:
    """Return the act of x σ(β x), with this β, for the activation."""
    return activation_with(lambda x: x * expit(steep * x))
