"""Mistakes in the choice of experts, in their weights, and in the limits of their gates."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from otimes.numeric.audit.reference.edits import (
    config_to,
    given,
    reading,
    weights_to,
    with_config,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation, makes_act
from otimes.numeric.config import Config
from otimes.numeric.experts import choice, expert_weights, routing
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.linear import Array, Near, linear

SAID = {
    "chosen": "weights of experts by a softmax of the chosen logits",
    "all": "weights of experts by a softmax of all logits, not divided by the sum of the chosen",
    "sigmoid": "weights of experts by sigmoids, divided by the sum of the chosen",
}


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of experts and of limited gates."""
    if not config.n_layers:
        return
    if config.gate_limit:
        yield from _limits(config)
    if not config.n_experts:
        return
    for router, says in SAID.items():
        if router != config.router:
            yield Mistake(f"{says}: the router is another one", {"routing": _with(router=router)})
    for count in (config.experts_per_token - 1, config.experts_per_token + 1):
        if 0 < count <= config.n_experts and not config.router_groups:
            says = f"{count} experts for each token, and not {config.experts_per_token}"
            yield Mistake(says, {"routing": _with(experts_per_token=count)})
    yield from _weights(config)
    if config.norms_before:
        stream = "resid_pre" if config.parallel else "resid_mid"
        says = "a router that reads the stream and not the norm of it"
        yield Mistake(says, {"router": reading(stream)})
    if config.has("b_router"):
        says = "the bias of the router left out"
        yield Mistake(says, {"router": weights_to(b_router=np.zeros_like)})
    says = "an expert multiplied by its weight twice, also before its neurons are activated"
    yield Mistake(says, {"routed": _squared}, 2)


def _weights(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of the weights of the experts that were chosen."""
    every = {
        "experts without their weights: each chosen one counts in full": _equal(1.0),
        "experts without their weights: the mean of the chosen ones": _equal(
            1 / config.experts_per_token
        ),
        "the experts with the smallest router logits chosen": _negated,
        "weights of experts in another order than the experts: the first of all have them": _packed,
    }
    if config.experts_per_token > 1:
        every["chosen experts with each other's weights, in reverse order"] = _chosen(_reversed)
        says = "the output of the last expert of a token overwrites that of the others"
        every[says] = _chosen(_last_only)
    if config.router_scale != 1:
        every[f"the factor {config.router_scale:g} of the weights left out"] = _with(
            router_scale=1.0
        )
    if config.router_groups:
        every["experts chosen among all groups"] = _with(router_groups=())
    if config.has("b_choice"):
        every["the bias of the choice left out"] = weights_to(b_choice=np.zeros_like)
        every["the bias of the choice added to the weights too"] = _biased
    if config.d_shared:
        every["the shared expert left out"] = _shared(0.0)
        if config.shared_gate:
            every["the shared expert without its gate"] = _shared(1.0)
    for says, act in every.items():
        yield Mistake(says, {"routing": act})
    if config.has("b_experts"):
        says = "output biases of experts without the weights of the experts"
        yield Mistake(says, {"mlp_out": given(routing=lambda r: (r != 0).astype(float))})
        says = "output biases of experts left out"
        yield Mistake(says, {"mlp_out": weights_to(b_experts=np.zeros_like)})


def _limits(config: Config) -> Iterator[Mistake]:
    c = f"{config.gate_limit:g}"
    yield Mistake("no 1 added to the linear branch of the gated MLP", {"mlp_post": _without_one})
    yield Mistake(f"gate and up not limited to {c}", {"mlp_post": config_to(gate_limit=1e300)})
    yield Mistake(f"a gate limited to {c} from below too", {"mlp_post": _gate_from_below})
    yield Mistake(
        f"neither limits of {c} nor 1 added in the gated MLP",
        {"mlp_post": config_to(gate_limit=0.0)},
    )


def _with(**fields: Any) -> Act:
    """Return the act of routing with other settings."""

    def act(at: At, operation: Operation) -> Near:
        return operation(at) if at.config.dense else operation(with_config(at, **fields))

    return act


@makes_act
def _chosen(at: At, operation: Operation, change: Callable[[Array, Array], Array]) -> Near:
    """Act: change the weights of experts, given which ones are chosen."""
    own, chosen = _own(at)
    return _with_weights(at, change(expert_weights(at.config, own, chosen), chosen))


def _reversed(weights: Array, chosen: Array) -> Array:
    changed = np.zeros_like(weights)
    for old, new, there in zip(weights, changed, chosen, strict=True):
        order = np.flatnonzero(there)[np.argsort(-old[there], kind="stable")]
        new[order] = old[order[::-1]]
    return changed


def _last_only(weights: Array, chosen: Array) -> Array:
    """Return the weights of the chosen experts with the largest index; experts run in order."""
    later = np.cumsum(chosen[..., ::-1], axis=-1)[..., ::-1]
    return np.where(chosen & (later == 1), weights, 0.0)


def _own(at: At) -> tuple[Array, Array]:
    """Return the router logits of the experts, and which are chosen."""
    own = at.only().value[..., : at.config.n_experts]
    return own, choice(at.config, own, at.weights["b_choice"]).chosen


def _with_weights(at: At, weights: Array) -> Near:
    """Return weights of experts beside that of a shared one."""
    value = routing(at.config, at.only().value, at.weights["b_choice"])
    if at.config.dense:
        return Near.exactly(value)
    value[..., : at.config.n_experts] = weights
    return Near(value, np.abs(value) * 64 * at.p.unit)


@makes_act
def _equal(at: At, operation: Operation, weight: float) -> Near:
    """Act: give each chosen expert the same weight."""
    return _with_weights(at, weight * _own(at)[1])


def _negated(at: At, operation: Operation) -> Near:
    """Act: choose the experts with the smallest logits, with their own weights."""
    own, _ = _own(at)
    chosen = choice(at.config, -own, at.weights["b_choice"]).chosen
    return _with_weights(at, expert_weights(at.config, own, chosen))


def _packed(at: At, operation: Operation) -> Near:
    """Act: give the chosen experts, by number, the weights from the largest to the smallest."""
    own, chosen = _own(at)
    weights = expert_weights(at.config, own, chosen)
    value = np.zeros_like(weights)
    count = at.config.experts_per_token
    ordered = -np.sort(-weights, axis=-1)[..., :count]
    numbers = np.sort(
        np.argsort(-chosen.astype(float), axis=-1, kind="stable")[..., :count], axis=-1
    )
    np.put_along_axis(value, numbers, ordered, axis=-1)
    return _with_weights(at, value)


def _biased(at: At, operation: Operation) -> Near:
    """Act: take the scores of the choice, bias included, for the weights."""
    own, chosen = _own(at)
    scores = choice(at.config, own, at.weights["b_choice"]).scores
    weights = np.where(chosen, scores, 0.0)
    total = weights.sum(axis=-1, keepdims=True) if at.config.router == "sigmoid" else 1.0
    return _with_weights(at, at.config.router_scale * weights / total)


@makes_act
def _shared(at: At, operation: Operation, weight: float) -> Near:
    """Act: give the shared expert another weight."""
    near = operation(at)
    if at.config.dense:
        return near
    value = near.value.copy()
    value[..., -1] = weight
    return Near(value, near.error)


def _squared(at: At, operation: Operation) -> Near:
    """Act: multiply by the weights of experts twice."""
    near = operation(at)
    inputs = at.inputs["routing"]
    return operation(replace(at, inputs={"mlp_post": near, "routing": inputs}))


def _without_one(at: At, operation: Operation) -> Near:
    """Act: multiply the activated gate by up, and not by up plus 1."""
    near = operation(at)
    (rows,) = [each for kind, each in at.inputs.items() if kind != "mlp_pre"]
    up = linear(rows, at.weight("W_in"), at.bias("b_in"), at.p)
    limit = at.config.gate_limit
    clipped = np.clip(up.value, -limit, limit)
    value = near.value * clipped / (clipped + 1)
    return Near(value, near.error * (1 + np.abs(clipped / (clipped + 1))))


def _gate_from_below(at: At, operation: Operation) -> Near:
    """Act: limit the gate on both sides."""
    pre, limit = at.inputs["mlp_pre"], at.config.gate_limit
    inputs = {**at.inputs, "mlp_pre": Near(np.clip(pre.value, -limit, limit), pre.error)}
    return operation(replace(at, inputs=inputs))
