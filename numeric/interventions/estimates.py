r"""First-order estimates of patching: attribution patching and edge attribution patching.

    AtP      $(\tilde f^c - f^c) · ∇_{f^c} m$                 of patching an activation
    AtP*     for queries and keys, the softmax is computed again instead of its gradient:
             $(\tilde A - A) · ∇_A m$; and gradients without one layer at a time (GradDrop)
    EAP      $(\tilde f^{c_1} - f^{c_1}) · ∇_{x_{in}(c_2)} m$   of patching an edge
    EAP-IG   the same with the mean gradient at inputs between the two prompts

The gradients are taken on the prompt that is patched. The estimates need two forward passes and one
reverse pass (EAP-IG: one for each of its inputs); their error against exact patching is of second
order in the change. Exact effects are those of `activation_patching(…, normalised=False)` and
`edge_patching`.

Source: Nanda 2023, “Attribution Patching”; Syed, Rager and Conmy 2023, “Attribution Patching
Outperforms Automated Circuit Discovery”; Hanna, Pezzelle and Belinkov 2024, “Have Faith in
Faithfulness” (EAP-IG); Kramár et al. 2024, “AtP*: An efficient and scalable method for localizing
LLM behaviour to components”.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.gradients import nodes
from otimes.numeric.attribution.reverse import SETTINGS, reader_gradients, reverse_pass, run
from otimes.numeric.attribution.target import Tokens
from otimes.numeric.block import OF_HEADS, kind_of, place_names
from otimes.numeric.circuits.result import Named
from otimes.numeric.config import check_settings
from otimes.numeric.forward import Places
from otimes.numeric.interventions.contrast import Contrast, contrast
from otimes.numeric.interventions.graph import graph
from otimes.numeric.interventions.hooks import Hook
from otimes.numeric.interventions.passes import Pass
from otimes.numeric.interventions.subgraph import written
from otimes.numeric.load import ModelSource
from otimes.numeric.progress import tracked

WITHOUT_GRADIENT = ("scores",)


def edge_attribution(
    model: ModelSource,
    clean: Any,
    corrupt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    direction: str = "noise",
    n_steps: int = 0,
    rule: str = "right",
) -> Named:
    r"""Return EAP (edge attribution patching): estimated effects of edges [sender, receiver].

    With `n_steps` it is EAP-IG.

    The metric is the logit of `target`, less that of `foil`, at `position`. Pairs without an edge
    are NaN. With `n_steps` the gradient is the mean over that many inputs on the line between the
    embeddings of the two prompts: at k/K for the rule "right", or at the nodes of "midpoint" or
    "gauss". The line begins at the source of the patch and ends at the prompt that is patched, as
    in integrated gradients.

    Proved by: edge_attribution_is_exact_when_linear, eap_ig_is_complete_for_quadratics.

    >>> scores = edge_attribution("two_layer", "x = 1", "y = 2", "(")
    >>> scores.axes
    ('sender', 'receiver')

    Raises: OtimesError for invalid prompts, an unknown rule, or a model without such a graph or
    such gradients.
    """
    of = contrast(model, clean, corrupt, target, foil, position)
    parts = graph(of.model)
    check_settings(of.model.config, "edge attribution", {*SETTINGS} - {"kv_rank"})
    if isinstance(n_steps, bool) or not isinstance(n_steps, int | np.integer) or n_steps < 0:
        raise OtimesError(f"n_steps must be a non-negative integer, got {n_steps!r}")
    base, source = of.base_and_source(direction)
    tokens = of.tokens if direction == "noise" else of.other
    if not n_steps:
        found = _at_receivers(of, base)
    else:
        at, shares = nodes(n_steps, rule)
        points = source["embed"] + at[:, None, None] * (base["embed"] - source["embed"])
        found = np.zeros((len(parts.receivers), *base["embed"].shape))
        for share, point in zip(shares, tracked(list(points), "gradients"), strict=True):
            found += share * _at_receivers(of, run(of.model, tokens, point))
    gaps = written(parts, source) - written(parts, base)
    scores = np.einsum("spd,rpd->sr", gaps, found)
    scores[~parts.mask.T] = np.nan
    labels = {
        "sender": [str(each) for each in parts.senders],
        "receiver": [str(each) for each in parts.receivers],
    }
    kind = f"EAP-IG ({n_steps} {rule})" if n_steps else "EAP"
    return Named(kind, scores, ("sender", "receiver"), labels, about=f"{direction}: {of.about}")


def _at_receivers(of: Contrast, places: Places) -> Float[np.ndarray, "receiver pos d_model"]:
    """Return the gradient of the metric at the stream as each receiver reads it."""
    model = of.model
    gradients = reverse_pass(model, places, of.goal)
    found: list[np.ndarray] = []
    for layer in range(model.n_layers):
        at = reader_gradients(model, places, gradients, layer)
        for kind in ("q", "k", "v"):
            found += list(at[kind])
        found += [at["mlp_pre"]] if model.config.d_mlp else []
    return np.stack([*found, gradients["final"]])


def attribution_patching(
    model: ModelSource,
    clean: Any,
    corrupt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    kind: str = "z",
    by_position: bool = False,
    direction: str = "noise",
    qk_fix: bool = False,
    grad_drop: bool = False,
) -> Named:
    """Return AtP (attribution patching): an estimate of `activation_patching` by a gradient.

    The axes are those of `activation_patching`, and so are the arguments. With `qk_fix`, for the
    kinds `q` and `k`, the softmax is computed with the patched queries or keys, and only what
    follows it is linearised. With `grad_drop` the result is the sum of the absolute estimates
    without the gradient through one layer at a time, divided by the number of layers less one, so
    that paths that cancel do not hide each other. AtP* has both.

    Proved by: qk_fix_is_exact_when_linear, saturated_pattern_has_no_gradient.

    >>> attribution_patching("two_layer", "x = 1", "y = 2", kind="q", qk_fix=True).axes
    ('layer', 'head')

    Raises: OtimesError for a kind without a gradient, or `qk_fix` for another kind than q and k.
    """
    of = contrast(model, clean, corrupt, target, foil, position)
    check_settings(of.model.config, "attribution patching", SETTINGS)
    _check_kind(of, kind, qk_fix, grad_drop)
    base, source = of.base_and_source(direction)
    tokens = of.tokens if direction == "noise" else of.other
    changes = _pattern_changes(of, tokens, kind, source, by_position) if qk_fix else None

    def estimates(without: int | None) -> np.ndarray:
        gradients = reverse_pass(of.model, base, of.goal, without=without)
        values = [
            _fixed(changes[layer], gradients.get(f"pattern.{layer}"), kind, by_position)
            if changes is not None
            else _estimate(kind, layer, base, source, gradients, by_position)
            for layer in range(of.model.n_layers)
        ]
        return np.stack(values)

    if grad_drop:
        layers = range(of.model.n_layers)
        values = sum(np.abs(estimates(without)) for without in layers) / (len(layers) - 1)
    else:
        values = estimates(None)
    axes: tuple[str, ...] = ("layer", "head") if kind in OF_HEADS else ("layer", "position")
    axes = (*axes, "position") if by_position and kind in OF_HEADS else axes
    names = [of.prompt.strings[at] for at in range(len(of.tokens))]
    labels = {"position": names} if "position" in axes else {}
    name = "AtP*" if qk_fix and grad_drop else "AtP"
    about = f"{kind}, {direction}: {of.about}"
    return Named(name, np.asarray(values), axes, labels, about=about)


def _check_kind(of: Contrast, kind: str, qk_fix: bool, grad_drop: bool) -> None:
    kinds = {kind_of(name): None for name in place_names(of.model.config) if "." in name}
    known = [each for each in kinds if each not in WITHOUT_GRADIENT]
    if not isinstance(kind, str) or kind not in known:
        raise OtimesError(
            f"kind must be a hook point without its layer that has a gradient, one of"
            f" {', '.join(known)}; got {kind!r}"
        )
    if qk_fix and kind not in ("q", "k"):
        raise OtimesError(f"qk_fix is for the kinds 'q' and 'k', and the kind is {kind!r}")
    if grad_drop and of.model.n_layers < 2:
        raise OtimesError(
            f"grad_drop needs at least 2 layers, and {of.model.name} has {of.model.n_layers}"
        )


def _estimate(
    kind: str,
    layer: int,
    base: Places,
    source: Places,
    gradients: Places,
    by_position: bool,
) -> np.ndarray:
    """Return the estimates for one layer: [head], [head, pos] or [pos]."""
    name = f"{kind}.{layer}"
    gap = source[name] - base[name]
    # attn_out is the sum over the heads, so that each has the gradient of the sum.
    gradient = gradients.get(f"attn_out.{layer}" if kind == "head_out" else name)
    if gradient is None:
        gradient = np.zeros(gap.shape[-2:])
    values = (gap * gradient).sum(axis=-1)
    return np.asarray(values if by_position or kind not in OF_HEADS else values.sum(axis=-1))


def _pattern_changes(
    of: Contrast, tokens: np.ndarray, kind: str, source: Places, by_position: bool
) -> list[np.ndarray]:
    """Return the change of the patterns of each layer when queries or keys are replaced.

    [head, query, key] with all queries or all keys replaced; for keys one position at a time
    [head, position, query, key]. A query changes its own row only.
    """
    run = Pass(of.model, tokens)
    found = []
    for layer in range(of.model.n_layers):
        name, at = f"{kind}.{layer}", f"pattern.{layer}"
        if kind == "q" or not by_position:
            found.append(run.only({Hook(name): source[name]}, at) - run.places[at])
            continue
        each = [
            run.only({Hook(name, positions=(key,)): source[name]}, at) - run.places[at]
            for key in range(len(tokens))
        ]
        found.append(np.stack(each, axis=1))
    return found


def _fixed(
    change: np.ndarray, gradient: np.ndarray | None, kind: str, by_position: bool
) -> np.ndarray:
    """Return the estimates of one layer, [head] or [head, pos], from the changes of its pattern."""
    if gradient is None:
        gradient = np.zeros((change.shape[0], *change.shape[-2:]))
    if by_position and kind == "k":
        gradient = gradient[:, None]
    values = (change * gradient).sum(axis=-1)
    return np.asarray(values if kind == "q" and by_position else values.sum(axis=-1))
