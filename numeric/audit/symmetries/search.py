r"""The search for rewrites that explain an activation, and their confirmation.

A *rewrite* is a named transformation of activations that leaves the logits unchanged. It is a
candidate if it explains an activation within the bound, and adopted only if a later activation
confirms it: one computed from the activation, and right under the rewrite. So a norm without its
gain is a rewrite if the next weights contain the gain, and a fault if they do not.

Under a rewrite an activation is either transformed to the coordinates of the reference, with the
error that this adds, or treated as not recorded: the next are then judged by what comes before.
"""

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter

import numpy as np
from scipy.optimize import linear_sum_assignment

from otimes.numeric.audit.precision.tolerated import tolerated_steps
from otimes.numeric.audit.reference.comparison import Comparison, tells
from otimes.numeric.audit.reference.edits import affine_to, moved, weights_to
from otimes.numeric.audit.reference.evaluator import Operation, layer_of, made_at, names_of
from otimes.numeric.audit.symmetries.candidate import (
    Rewrite,
    changed,
    explains,
    here,
    hidden,
    hiding,
    in_a_basis,
    resolved,
    unseen,
)
from otimes.numeric.audit.symmetries.queries_keys import basis_of_queries_and_keys, queries_and_keys
from otimes.numeric.audit.symmetries.recorded import (
    after_the_norm,
    before_the_scale,
    before_the_write_scale,
    before_their_norm,
    scores_on_their_way,
)
from otimes.numeric.block import OF_HEADS, inputs_of, kind_of
from otimes.numeric.config import Config
from otimes.numeric.functions import causal_mask
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.linear import Array, Near

DEEP = 3
"""At most this many rewrites in a row: folded norms, permuted heads, other bases."""


def rewrites(compared: Comparison, place: str, depth: int = DEEP) -> Iterator[Rewrite]:
    """Yield the rewrites that explain an activation within its bound, the simplest first."""
    for found in FOUND_BY.get(kind_of(place), ()):
        if found is _heads_in_another_order:
            yield from _heads_in_another_order(compared, place, depth)
        else:
            yield from found(compared, place)


def confirmed(compared: Comparison, rewrite: Rewrite, depth: int = DEEP) -> bool:
    """Return whether a later activation, computed from those of a rewrite, confirms the rewrite.

    It must be right under the rewrite, or under a further rewrite that is confirmed as well.
    """
    if rewrite.by_itself:
        return True
    trial = compared.with_places(rewrite.places)
    shown = trial.recorded
    for place in compared.readers(set(rewrite.touches)):
        if place not in shown:
            continue
        if tells(trial, place):
            if not rewrite.must_change or compared.ratio(place) > 1:
                return True
        elif tolerated_steps(trial, place) or (
            depth
            and any(
                other.confirms and confirmed(trial, other, depth - 1)
                for other in rewrites(trial, place, depth - 1)
            )
        ):
            return True
    return False


def _gain_pulled_out(at: At, operation: Operation) -> Near:
    """Return the norm without its gain, and with b / g for its bias: (x + b / g) g = x g + b."""
    gain = at.weights[f"{at.weights.kind}_gain"]
    return affine_to(gain=np.ones_like, bias=lambda bias: bias / gain)(at, operation)


FOLDED_NORMS = {
    "gain and bias are folded into what reads it": affine_to(gain=np.ones_like, bias=np.zeros_like),
    "the bias is folded into what reads it": affine_to(bias=np.zeros_like),
    "the gain is folded into what reads it": affine_to(gain=np.ones_like),
    "the gain is folded into what reads it, and the bias divided by it": _gain_pulled_out,
}


NORMS = ("ln1", "ln2", "ln_final")


def _folded_norm(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite of a norm that is folded into what reads it.

    `place` is the norm itself or a second name of it, such as `qk_in`; all names under which the
    same rows were recorded are rewritten together.
    """
    config = compared.model.config
    norm = _norm_behind(config, place)
    if kind_of(norm) not in NORMS:
        return
    others = [x for x in names_of(config, norm) if x in compared.recorded and x != place]
    own = [place, *(name for name in others if _same_rows(compared, place, name))]
    alone = compared.with_places(hidden(compared, *others)) if others else compared
    if config.post_norm and norm != ("ln_final" if config.final_norm else made_at(config, "final")):
        unbiased = affine_to(bias=np.zeros_like)
        if config.norm == "layer" and explains(alone, place, unbiased, norm):
            yield _bias_passed_on(compared, norm, own)
        return  # what it gives is added to, as well as read
    for says, act in FOLDED_NORMS.items():
        if (config.norm == "layer" or "bias" not in says) and explains(alone, place, act, norm):
            yield hiding(compared, says, *own)
            return


def _norm_behind(config: Config, place: str) -> str:
    """Return the norm whose rows a hook point has, up to positions that are added to them."""
    norm = made_at(config, place)
    if kind_of(norm) == "qk_in" and config.norms_before:
        (norm,) = inputs_of(config, norm)
    return norm


def _same_rows(compared: Comparison, place: str, other: str) -> bool:
    """Return whether two hook points were recorded with the same rows, each as it is stored."""
    for prompt in compared.prompts:
        a, b = prompt.places[place], prompt.places[other]
        if (np.abs(a.value - b.value) > a.error + b.error).any():
            return False
    return True


def _bias_passed_on(compared: Comparison, norm: str, own: list[str]) -> Rewrite:
    """Return the rewrite that moves a post-norm's bias into its readers and the next sum."""
    config, kind, layer = compared.model.config, kind_of(norm), layer_of(norm)
    assert layer is not None  # such norms are of a layer
    bias = compared.model.part(f"{kind}_bias", layer)
    ends_block = kind == "ln2" or not config.d_mlp
    written = f"attn_out.{layer + 1}" if ends_block else f"mlp_out.{layer}"
    added = ends_block and config.positions == "shortformer"
    moved_on = [*own, f"qk_in.{layer + 1}"] if added else own
    changes = dict.fromkeys(moved_on, _plus(bias, compared.unit))
    changes[written] = _plus(-bias, compared.unit)
    says = "the bias is moved into what reads it, and into what is added next"
    return Rewrite(says, changed(compared, changes), frozenset(own), must_change=True)


def _folded_latent(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite of a latent whose gain is folded into what is made of it."""
    if explains(compared, place, affine_to(gain=np.ones_like)):
        yield hiding(compared, "the gain is folded into what reads it", place)


def _heads_in_another_order(compared: Comparison, place: str, depth: int) -> Iterator[Rewrite]:
    """Yield the permutation of heads that fits, found from basis-independent quantities."""
    heads, layer = compared.model.n_heads, layer_of(place)
    if heads < 2:
        return
    own = here(compared, place, OF_HEADS)
    for kind in ("pattern", "products", "z", kind_of(place)):
        shown = _per_head(compared, kind, layer, ours=False)
        ours = _per_head(compared, kind, layer, ours=True)
        if shown is None or ours is None or not np.isfinite(shown).all():
            continue
        order = _order(((shown[:, None] - ours[None]) ** 2).sum(axis=-1))
        if order is None:
            continue
        places = changed(compared, dict.fromkeys(own, partial(moved, function=itemgetter(order))))
        trial = compared.with_places(places)
        good = [each for each in own if trial.ratio(each) <= 1 < compared.ratio(each)]
        if any(compared.ratio(each) <= 1 < trial.ratio(each) for each in own):
            continue  # an activation that was right must stay so
        attn_out, shown_now = f"attn_out.{layer}", trial.recorded
        closes = [
            name
            for name in (attn_out, *compared.readers({*own}))
            if name in shown_now
            and name not in own
            and trial.ratio(name) <= 1 < compared.ratio(name)
        ]
        summed = own == [f"head_out.{layer}"]  # the order of summands does not matter
        believed = place in good and (len(good) > 1 or bool(closes) or summed)
        still = [each for each in own if trial.ratio(each) > 1]
        if not believed and still and depth:
            first = place if place in still else still[0]
            nested = _inside_heads(trial, first)
            believed = any(each.confirms and confirmed(trial, each, depth - 1) for each in nested)
        if believed:
            says = f"heads are permuted: {', '.join(str(int(h)) for h in order)}"
            yield Rewrite(says, places, frozenset(own), by_itself=True)
            return


def _order(distance: Array) -> Array | None:
    """Return the permutation of least distance [recorded, ours], None if it is the identity.

    Head h of the reference was recorded at order[h].
    """
    rows, columns = linear_sum_assignment(distance)
    order = rows[np.argsort(columns)]
    return None if (order == np.arange(len(order))).all() else np.asarray(order)


def _inside_heads(compared: Comparison, place: str) -> Iterator[Rewrite]:
    for found in FOUND_BY[kind_of(place)] if kind_of(place) in ("q", "k", "v", "z") else ():
        if found is not _heads_in_another_order:
            yield from found(compared, place)


def _per_head(compared: Comparison, kind: str, layer: int | None, ours: bool) -> Array | None:
    """Return a row of numbers for each head, recorded or expected, that no basis changes."""
    names = [f"{each}.{layer}" for each in (("q", "k") if kind == "products" else (kind,))]
    if ours:
        rest = compared.with_places(hidden(compared, *(f"{k}.{layer}" for k in OF_HEADS)))
        every = [[each.near(name).value for name in names] for each in rest.evaluators()]
    elif {*names} <= {*compared.recorded}:
        every = [[prompt.places[name].value for name in names] for prompt in compared.prompts]
    else:
        return None
    rows = []
    for value, *keys in every:
        for k in keys:
            value = value @ np.swapaxes(k, -1, -2)
        if kind in ("products", "scores"):
            value = np.where(causal_mask(value.shape[-1]), value, 0.0)
        rows.append(value.reshape(len(value), -1))
    return np.concatenate(rows, axis=1)


def _basis_of_values(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite of values and z to another basis of each head."""
    layer = layer_of(place)
    v, z = f"v.{layer}", f"z.{layer}"
    shown = set(compared.recorded)
    own = [n for n in (v, z) if n in shown]
    if v in shown and z in shown and compared.ratio(z) > 1:
        return  # z does not follow from the values: no basis explains that
    moved_on = "b_V" in compared.model.config.biases
    nears = {n: compared.expected(n) for n in own if n == v or v not in shown}
    if not all(in_a_basis(compared, n, near, moved_on) for n, near in nears.items()):
        return
    yield hiding(compared, "values are in another basis inside the heads", *own)


def _value_bias(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite that moves b_V into b_O, as rows of an attention pattern sum to one."""
    config, layer = compared.model.config, layer_of(place)
    if "b_V" not in config.biases:
        return
    v, z = f"v.{layer}", f"z.{layer}"
    assert layer is not None  # values are of a layer
    if place == z and v in compared.recorded:
        return  # the values are right
    own = compared.model.part("b_V", layer)
    biases = [own]
    if config.norm == "layer" and not config.post_norm:
        norm_bias, W_V = (compared.model.part(name, layer) for name in ("ln1_bias", "W_V"))
        biases.append(own + np.einsum("d,hdk->hk", norm_bias, W_V))
    for bias in biases:
        back = _plus(bias[:, None], compared.unit)
        written = np.einsum("hk,hkd->hd", bias, compared.model.part("W_O", layer))
        changes = {v: back, z: back, f"head_out.{layer}": _plus(written[:, None], compared.unit)}
        trial = compared.with_places(changed(compared, {place: changes[place]}))
        if trial.ratio(place) <= 1:
            places = changed(compared, changes)
            yield Rewrite("b_V is moved into b_O", places, frozenset(changes))
            return


def _plus(bias: Array, unit: float) -> Callable[[Near], Near]:
    def back(near: Near) -> Near:
        moved = near.value + bias
        return Near(moved, near.error + 4 * unit * (np.abs(moved) + np.abs(bias)))

    return back


def _shifted_scores(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite that shifts all scores of a query, as by subtracting the maximum."""
    nears = compared.expected(place)
    fitted = []
    for prompt, near in zip(compared.prompts, nears, strict=True):
        shown = prompt.places[place]
        seen = causal_mask(near.value.shape[-1])
        shift = np.where(seen, shown.value - near.value, 0.0).sum(-1, keepdims=True)
        shift = shift / seen.sum(-1, keepdims=True)
        right = np.where(seen, near.value, np.nan)
        if not all(resolved(*each, compared.unit) for each in zip(shift, right, strict=True)):
            return
        granted = near.error * 2 + 4 * compared.unit * np.abs(shift)
        fitted.append(Near(near.value + shift, np.where(seen, granted, np.inf)))
    if compared.within(place, fitted):
        says = "all scores of a query are shifted by the same number, which softmax cancels"
        yield unseen(compared, says, place)


def _bias_later(compared: Comparison, place: str) -> Iterator[Rewrite]:
    bias = "b_O" if kind_of(place) == "attn_out" else "b_out"
    biased = bias in compared.model.config.biases
    if biased and explains(compared, place, weights_to(**{bias: np.zeros_like})):
        says = f"recorded before {bias} is added"
        yield hiding(compared, says, place)


def _neurons_in_another_order(compared: Comparison, place: str) -> Iterator[Rewrite]:
    own = here(compared, place, ("mlp_pre", "mlp_post", "routed"))
    rest = compared.with_places(hidden(compared, *own))
    ours = np.concatenate([each.near(place).value for each in rest.evaluators()])
    shown = np.concatenate([p.places[place].value for p in compared.prompts])
    if not np.isfinite(shown).all() or ours.shape[1] > 8192:
        return
    squares = (shown**2).sum(0)[:, None] + (ours**2).sum(0)[None]
    order = _order(squares - 2 * shown.T @ ours)
    if order is None:
        return
    columns = itemgetter((slice(None), order))
    places = changed(compared, dict.fromkeys(own, partial(moved, function=columns)))
    trial = compared.with_places(places)
    if trial.ratio(place) <= 1:
        says = "neurons of the MLP are permuted"
        yield Rewrite(says, places, frozenset(own), must_change=True)
        still = {each for each in own if trial.ratio(each) > 1}  # they may be scaled as well
        if still:
            yield Rewrite(says, places, frozenset({*own} - still), must_change=True)


def _neurons_scaled(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite that scales each neuron by a factor, and its row of W_out inversely."""
    config = compared.model.config
    if kind_of(place) != "mlp_post" or not (config.gated or config.activation == "relu"):
        return
    nears = compared.expected(place)
    a = np.concatenate([near.value for near in nears])
    b = np.concatenate([p.places[place].value for p in compared.prompts])
    if len(a) < 4:
        return
    square = (a**2).sum(0)
    factor = (a * b).sum(0) / np.where(square > 0, square, 1.0)
    fitted = [Near(near.value * factor, near.error * (np.abs(factor) * 4 + 1)) for near in nears]
    if compared.within(place, fitted) and (np.abs(factor - 1) > 1e-3).any():
        says = "neurons of the MLP are scaled, and W_out inversely"
        yield hiding(compared, says, place)


def _shifted_logits(compared: Comparison, place: str) -> Iterator[Rewrite]:
    nears = compared.expected(place)
    fitted = []
    for prompt, near in zip(compared.prompts, nears, strict=True):
        shift = (prompt.places[place].value - near.value).mean(axis=-1, keepdims=True)
        if not resolved(shift, near.value, compared.unit):
            return
        fitted.append(Near(near.value + shift, near.error * 2 + 4 * compared.unit * np.abs(shift)))
    if compared.within(place, fitted):
        says = "all logits of a position are shifted by the same number, which softmax cancels"
        yield unseen(compared, says, place)


FOUND_BY: dict[str, tuple[Callable[..., Iterator[Rewrite]], ...]] = {
    "embed": (before_the_scale,),
    **dict.fromkeys(
        ("ln1", "ln2", "ln_final", "qk_in", "resid_pre", "resid_post", "final"), (_folded_norm,)
    ),
    **dict.fromkeys(("q_latent", "kv_latent"), (_folded_latent,)),
    **dict.fromkeys(
        ("q", "k"),
        (
            _heads_in_another_order,
            before_their_norm,
            queries_and_keys,
            basis_of_queries_and_keys,
        ),
    ),
    "v": (_value_bias, _heads_in_another_order, _basis_of_values),
    "scores": (_heads_in_another_order, _shifted_scores, scores_on_their_way),
    "pattern": (_heads_in_another_order,),
    "z": (_heads_in_another_order, _value_bias, _basis_of_values),
    "head_out": (_heads_in_another_order, _value_bias),
    **dict.fromkeys(("attn_out", "mlp_out"), (before_the_write_scale, _bias_later, after_the_norm)),
    **dict.fromkeys(
        ("mlp_pre", "mlp_post", "routed"), (_neurons_in_another_order, _neurons_scaled)
    ),
    "logits": (_shifted_logits,),
}
"""Functions that find rewrites, by kind of hook point, the simplest rewrites first."""
