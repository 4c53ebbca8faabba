"""How a mistake changes what an operation is given: other inputs, weights or settings."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from numeric.audit.evaluate import Act, Operation
from numeric.rounding.linear import Array, Near
from numeric.rounding.places import At


def with_weights(at: At, **arrays: Array) -> At:
    """Return what the operation is given, with some weights replaced."""
    weights = copy(at.weights)
    weights.update(arrays)
    return replace(at, weights=weights)


def with_config(at: At, **fields: Any) -> At:
    """Return what the operation is given, with some settings replaced."""
    if fields.get("positions", "rotary") != "rotary":
        fields.setdefault("rotary_stretch", ())
    return replace(at, config=replace(at.config, **fields))


def with_inputs(at: At, **nears: Near) -> At:
    """Return what the operation is given, with some inputs replaced, by kind."""
    return replace(at, inputs={**at.inputs, **nears})


def only(at: At, near: Near) -> At:
    """Return what an operation with one input is given, with another input."""
    (kind,) = at.inputs
    return replace(at, inputs={kind: near})


def other_place(at: At, name: str) -> Near:
    """Return another place, as it was shown or as it should be."""
    assert at.read is not None  # the evaluator gives it to all
    return at.read(name)


def has_bias(at: At, name: str) -> bool:
    """Return whether the model has that bias or gain."""
    return at.config.has(name)


def scaled(near: Near, factor: Any) -> Near:
    """Return a place times a factor."""
    return Near(near.value * factor, near.error * np.abs(factor))


def moved(near: Near, function: Callable[[Array], Array]) -> Near:
    """Return a place whose entries stand elsewhere."""
    return Near(function(near.value), function(np.array(near.error)))


def weights_to(**functions: Callable[[Array], Array]) -> Act:
    """Return the act of using other weights, each a function of the right one."""

    def act(at: At, operation: Operation) -> Near:
        return operation(
            with_weights(at, **{name: f(at.weights[name]) for name, f in functions.items()})
        )

    return act


def config_to(**fields: Any) -> Act:
    """Return the act of computing with other settings."""
    return lambda at, operation: operation(with_config(at, **fields))


def after(function: Callable[[At, Near], Near]) -> Act:
    """Return the act of doing something more to what the operation gives."""
    return lambda at, operation: function(at, operation(at))


def of_layer(layer: int) -> Act:
    """Return the act of using the weights of another layer."""

    def act(at: At, operation: Operation) -> Near:
        weights = copy(at.weights)
        weights.clear()
        weights.layer = layer
        return operation(replace(at, weights=weights))

    return act


def reading(kind: str) -> Act:
    """Return the act of reading another place than the right one."""

    def act(at: At, operation: Operation) -> Near:
        return operation(only(at, other_place(at, kind)))

    return act


def moved_after(function: Callable[[Array], Array]) -> Act:
    """Return the act of putting the entries of what the operation gives elsewhere."""
    return after(lambda at, near: moved(near, function))


def given(**functions: Callable[[Array], Array]) -> Act:
    """Return the act of giving the operation inputs, by kind, whose entries stand elsewhere."""

    def act(at: At, operation: Operation) -> Near:
        changed = {kind: moved(at.inputs[kind], f) for kind, f in functions.items()}
        return operation(with_inputs(at, **changed))

    return act


def times(factor: Any) -> Act:
    """Return the act of multiplying what the operation gives by a factor."""
    return after(lambda at, near: scaled(near, factor))
