r"""Experts: which of them a token goes through, and the weight of each.

A layer of experts is an MLP of the neurons of all experts, of which each is multiplied by the
weight r of its expert, 0 where it is not chosen:

    $\text{mlp}_{out} = Σ_e r_e \, \text{expert}_e(x) = (N · r B) W_{out} + r b$

N are the neurons of all experts, B [expert, neuron] is 1 where a neuron is the expert's, and b are
the output biases of the experts. The weights r come from router logits by `routing`.

Proved by: experts_are_gated_neurons, router_softmax_of_all_renormalised. Source: Shazeer et al.
2017, “Outrageously Large Neural Networks”; Jiang et al. 2024, “Mixtral of Experts”; DeepSeek-AI
2024, “DeepSeek-V3”, §2.1.2.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit

from otimes.numeric.config import Config

Logits = Float[np.ndarray, "*rows n_routed"]


class Choice(NamedTuple):
    """The chosen experts, what was compared, and by how much the choice was made.

    `margin` is the difference between the least chosen and the largest other score of a token,
    infinite where nothing else could have been chosen; `groups_margin` that of groups.
    """

    chosen: Bool[np.ndarray, "*rows n_experts"]
    scores: Float[np.ndarray, "*rows n_experts"]
    margin: Float[np.ndarray, "*rows 1"]
    groups_margin: Float[np.ndarray, "*rows 1"]


def routing(
    config: Config, logits: Logits, b_choice: Float[np.ndarray, " n_experts"]
) -> np.ndarray:
    """Return the weight of each expert [*rows, n_experts], and last that of a shared one.

    >>> mixtral = Config(1, 1, 4, 2, 10, 8, "none", d_mlp=6, activation="relu", n_experts=3,
    ...                  experts_per_token=1)
    >>> routing(mixtral, np.array([[0.0, 2.0, 1.0]]), np.zeros(3)).tolist()
    [[0.0, 1.0, 0.0]]
    """
    own = logits[..., : config.n_experts]
    width = config.n_experts + (config.d_shared > 0)
    if config.dense:
        return np.ones((*logits.shape[:-1], width))
    weights = expert_weights(config, own, choice(config, own, b_choice).chosen)
    if not config.d_shared:
        return weights
    shared = expit(logits[..., -1:]) if config.shared_gate else np.ones((*logits.shape[:-1], 1))
    return np.concatenate([weights, shared], axis=-1)


def expert_weights(config: Config, logits: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the weights of experts for their router logits, 0 where they are not chosen."""
    if config.router == "sigmoid":
        weights = np.where(chosen, expit(logits), 0.0)
        return config.router_scale * weights / weights.sum(axis=-1, keepdims=True)
    counted = chosen | (config.router == "all")
    highest = np.where(counted, logits, -np.inf).max(axis=-1, keepdims=True)
    weights = np.where(counted, np.exp(np.minimum(logits - highest, 0.0)), 0.0)
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(config.router_scale * np.where(chosen, weights / total, 0.0))


def choice(config: Config, logits: np.ndarray, b_choice: np.ndarray) -> Choice:
    """Return the experts with the largest scores, of the groups with the largest scores.

    Scores are compared on the scale of the weights, where `b_choice` is added.
    """
    scores = choice_scores(config, logits) + b_choice
    allowed, groups_margin = _allowed(config, scores)
    seen = np.where(allowed, scores, -np.inf)
    order = np.argsort(-seen, axis=-1, kind="stable")
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, order[..., : config.experts_per_token], True, axis=-1)
    return Choice(chosen, scores, _margin(seen, config.experts_per_token), groups_margin)


def choice_scores(config: Config, logits: np.ndarray) -> np.ndarray:
    """Return what a router compares, before a bias: σ of logits, or the logits themselves.

    A softmax is monotone, so that its largest entries are those of the logits. The sums of groups
    of experts are sums of weights, and need it; so does a bias, which is added to weights.
    """
    if config.router == "sigmoid":
        return np.asarray(expit(logits))
    if not (config.router_groups or config.has("b_choice")):
        return logits
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _allowed(config: Config, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which experts are in chosen groups, and the margin of that choice."""
    everything = np.ones(scores.shape, dtype=bool), np.full((*scores.shape[:-1], 1), np.inf)
    if not config.router_groups:
        return everything
    groups, kept, counted = config.router_groups
    split = scores.reshape(*scores.shape[:-1], groups, -1)
    sums = np.sort(split, axis=-1)[..., -counted:].sum(axis=-1)
    order = np.argsort(-sums, axis=-1, kind="stable")
    chosen = np.zeros(sums.shape, dtype=bool)
    np.put_along_axis(chosen, order[..., :kept], True, axis=-1)
    return np.repeat(chosen, split.shape[-1], axis=-1), _margin(sums, kept)


def _margin(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the difference between the entry of this rank and the next one."""
    if count >= scores.shape[-1]:
        return np.full((*scores.shape[:-1], 1), np.inf)
    ordered = -np.sort(-scores, axis=-1)
    least, other = ordered[..., count - 1 : count], ordered[..., count : count + 1]
    return np.where(np.isfinite(other), least - other, np.inf)


def by_neuron(config: Config, weights: np.ndarray) -> np.ndarray:
    """Return the weight of each neuron [*rows, d_mlp], that of its expert.

    >>> two = Config(1, 1, 4, 2, 10, 8, "none", d_mlp=5, activation="relu", n_experts=2,
    ...              experts_per_token=1, d_shared=1)
    >>> by_neuron(two, np.array([[3.0, 0.0, 1.0]])).tolist()
    [[3.0, 3.0, 0.0, 0.0, 1.0]]
    """
    return np.repeat(weights, widths(config), axis=-1)


def by_expert(config: Config, neurons: np.ndarray) -> np.ndarray:
    """Return the sums over the neurons of each expert, the adjoint of `by_neuron`."""
    starts = np.concatenate([[0], np.cumsum(widths(config))[:-1]])
    return np.asarray(np.add.reduceat(neurons, starts, axis=-1))


def widths(config: Config) -> list[int]:
    """Return the number of neurons of each expert, the shared one last."""
    width = (config.d_mlp - config.d_shared) // config.n_experts
    return [width] * config.n_experts + ([config.d_shared] if config.d_shared else [])


def routing_back(
    config: Config, logits: Logits, b_choice: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    r"""Return the gradient at router logits for one at the weights; the choice itself is constant.

    A softmax p of the counted experts has $p · (G - \text{rowsum}(p G))$, a sigmoid σ (1 - σ) G.
    """
    back = np.zeros_like(logits)
    if config.dense:
        return back
    if config.shared_gate:
        gate = expit(logits[..., -1:])
        back[..., -1:] = gate * (1 - gate) * gradient[..., -1:]
    own = logits[..., : config.n_experts]
    chosen = choice(config, own, b_choice).chosen
    weights = expert_weights(config, own, chosen)
    above = np.where(chosen, gradient[..., : config.n_experts], 0.0)
    total = (weights * above).sum(axis=-1, keepdims=True) / config.router_scale
    shares = weights
    if config.router == "all":
        raised = np.exp(own - own.max(axis=-1, keepdims=True))
        shares = config.router_scale * raised / raised.sum(axis=-1, keepdims=True)
    slope = 1 - expit(own) if config.router == "sigmoid" else 1.0
    back[..., : config.n_experts] = shares * (above - total) * slope
    return back
