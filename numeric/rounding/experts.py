"""Rounding errors of a router: the weights of experts, and choices that are too close to call."""

import numpy as np

from otimes.numeric.config import Config
from otimes.numeric.experts import by_neuron, choice, routing
from otimes.numeric.rounding.functions import activated, softmax
from otimes.numeric.rounding.linear import Array, Near, multiplied
from otimes.numeric.rounding.precision import Precision

CLOSE = 64
"""Two scores within this many roundings of each other may be compared either way.

A score has at most two exponentials or sigmoids (8 u each), a sum, and a quotient.
"""


def routed_weights(config: Config, logits: Near, b_choice: Array, p: Precision) -> Near:
    """Return the weights of experts with their error.

    The weights of the chosen may be computed from all, by a softmax whose chosen entries are
    divided by their sum: twice the relative error of an entry, and those of sum and quotient. Where
    the least chosen expert is as close to another one as its score is known, either is right, and
    the bound is the whole range of a weight.
    """
    value = routing(config, logits.value, b_choice)
    if p.exact or config.dense:
        return Near.exactly(value)
    experts = config.n_experts
    own = Near(logits.value[..., :experts], np.array(logits.error[..., :experts]))
    found = choice(config, own.value, b_choice)
    relative = _relative(config, own, found.chosen, p)
    error = np.zeros_like(value)
    weights = value[..., :experts]
    error[..., :experts] = weights * (relative + p.stored(3) * (1 + relative)) + p.tiny
    undecided = _undecided(config, own, found.scores, p)
    open_rows = (found.margin <= undecided) | (
        found.groups_margin <= undecided * (config.router_groups or (0, 0, 1))[2]
    )
    error[..., :experts] = np.where(open_rows, config.router_scale, error[..., :experts])
    if config.shared_gate:
        last = Near(logits.value[..., -1:], np.array(logits.error[..., -1:]))
        error[..., -1:] = activated("sigmoid", last, p).error
    return Near(value, error)


def _relative(config: Config, own: Near, chosen: Array, p: Precision) -> Array:
    """Return the relative error of the weights of chosen experts, one number for each token."""
    everything = np.ones(own.value.shape, dtype=bool)
    if config.router == "sigmoid":
        parts = activated("sigmoid", own, p)
    else:
        parts = softmax(own, everything, p)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(chosen, parts.error / parts.value, 0.0)
    worst = each.max(axis=-1, keepdims=True)
    if config.router == "all":
        return np.asarray(worst)
    inner = p.within(config.experts_per_token + 2)
    return np.asarray((2 * worst + inner) / np.maximum(1 - worst, 2.0**-10))


def _undecided(config: Config, own: Near, scores: Array, p: Precision) -> Array:
    """Return the difference of scores up to which rounding may change the choice, by token."""
    error = own.error.max(axis=-1, keepdims=True)
    size = np.abs(scores).max(axis=-1, keepdims=True)
    gap = np.abs(own.value).max(axis=-1, keepdims=True)
    rounding = CLOSE * p.inner * (1 + gap) + 2 * p.stored() * np.maximum(size, 1.0)
    return np.asarray(2 * error + rounding)


def routed_neurons(config: Config, neurons: Near, weights: Near, p: Precision) -> Near:
    """Return the neurons of all experts, each times the weight of its expert."""
    error = by_neuron(config, np.broadcast_to(weights.error, weights.value.shape))
    return multiplied(neurons, Near(by_neuron(config, weights.value), error), p)
