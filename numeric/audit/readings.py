r"""Other ways of saying the same, each found, checked and confirmed before it acquits a place.

A *reading* says: what is shown at a place is not in our coordinates but in others, by a named
transformation that leaves the function as it is. It is offered only if it explains the place within
the bound, and adopted only if a place further on confirms it: one that reads the place, and is
right when the place is taken as the reading says. So a norm without its gain is a reading if what
reads the norm has the gain in its weights, and a fault if the gain is nowhere.

Under a reading a place is either put into our coordinates, with the error that this makes, or taken
as not shown, so that its readers are judged by what comes before it.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from scipy.optimize import linear_sum_assignment

from numeric.audit.change import with_weights
from numeric.audit.evaluate import Act, Evaluator, Mistake, Operation, layer_of
from numeric.audit.floors import floors
from numeric.audit.judge import Judge
from numeric.audit.reading import (
    Reading,
    changed,
    explains,
    here,
    hidden,
    in_a_basis,
    resolved,
)
from numeric.audit.readings_of_queries import basis_of_queries_and_keys, queries_and_keys
from numeric.forward import OF_HEADS, passes_on
from numeric.functions import causal_mask
from numeric.rounding.linear import Array, Near
from numeric.rounding.places import At, kind_of

DEEP = 3
"""So many readings may stand behind one another: folded norms, heads permuted, in other bases."""


def readings(judge: Judge, place: str, depth: int = DEEP) -> Iterator[Reading]:
    """Yield the readings that explain a place within its bound, the plainest first."""
    kind = kind_of(place)
    if kind in ("ln1", "ln2", "ln_final"):
        yield from _folded_norm(judge, place)
    elif kind in ("q", "k"):
        yield from _heads_in_another_order(judge, place, depth)
        yield from queries_and_keys(judge, place)
        yield from basis_of_queries_and_keys(judge, place)
    elif kind == "v":
        yield from _value_bias(judge, place)
        yield from _heads_in_another_order(judge, place, depth)
        yield from _basis_of_values(judge, place)
    elif kind in ("pattern", "z", "head_out"):
        yield from _heads_in_another_order(judge, place, depth)
        if kind != "pattern":
            yield from _value_bias(judge, place)
        if kind == "z":
            yield from _basis_of_values(judge, place)
    elif kind == "scores":
        yield from _heads_in_another_order(judge, place, depth)
        yield from _shifted_scores(judge, place)
        yield from _unscaled_scores(judge, place)
    elif kind in ("attn_out", "mlp_out"):
        yield from _bias_later(judge, place)
    elif kind in ("mlp_pre", "mlp_post"):
        yield from _neurons_in_another_order(judge, place)
        yield from _neurons_scaled(judge, place)
    elif kind == "logits":
        yield from _shifted_logits(judge, place)


def confirmed(judge: Judge, reading: Reading, depth: int = DEEP) -> bool:
    """Return whether a place that reads what the reading speaks of is right under it.

    Right as it stands, or by another reading that is confirmed in its turn.
    """
    if reading.by_itself:
        return True
    trial = judge.trial(reading.places)
    shown = trial.prompts[0].places
    for place in judge.readers(set(reading.touches)):
        if place not in shown:
            continue
        if trial.tells(place):
            if not reading.must_change or judge.ratio(place) > 1:
                return True
        elif floors(trial, place) or (
            depth
            and any(
                other.confirms and confirmed(trial, other, depth - 1)
                for other in readings(trial, place, depth - 1)
            )
        ):
            return True
    return False


# -- norms -----------------------------------------------------------------------------------------


def _gain_pulled_out(norm: str) -> Act:
    """Return the norm without its gain, and with b / g for its bias: (x + b / g) g = x g + b."""

    def act(at: At, operation: Operation) -> Near:
        gain, bias = at.weights[f"{norm}_gain"], at.weights[f"{norm}_bias"]
        changed = {f"{norm}_gain": np.ones_like(gain), f"{norm}_bias": bias / gain}
        return operation(with_weights(at, **changed))

    return act


GAIN_PULLED_OUT = Mistake(
    "gain_pulled_out", "", {norm: _gain_pulled_out(norm) for norm in ("ln1", "ln2", "ln_final")}
)


def _folded_norm(judge: Judge, place: str) -> Iterator[Reading]:
    config = judge.model.config
    if config.post_norm and place != (
        "ln_final" if config.final_norm else f"{passes_on(config)}.{config.n_layers - 1}"
    ):
        yield from _bias_passed_on(judge, place)
        return  # what it gives is added to, as well as read
    for name, what in (
        ("norm_affine_missing", "gain and bias are folded into what reads it"),
        ("norm_bias_missing", "the bias is folded into what reads it"),
        ("gain_missing", "the gain is folded into what reads it"),
    ):
        if explains(judge, place, name):
            yield Reading(what, hidden(judge, place), frozenset({place}))
            return
    if judge.model.config.norm == "layer" and judge.ratio(place, (GAIN_PULLED_OUT,)) <= 1:
        says = "the gain is folded into what reads it, and the bias divided by it"
        yield Reading(says, hidden(judge, place), frozenset({place}))


def _bias_passed_on(judge: Judge, place: str) -> Iterator[Reading]:
    """Yield that the bias of a norm on the stream is added by its readers, and to the next sum."""
    config, kind, layer = judge.model.config, kind_of(place), layer_of(place)
    if config.norm != "layer" or not explains(judge, place, "norm_bias_missing"):
        return
    assert layer is not None  # such norms are of a layer
    bias = judge.model.part(f"{kind}_bias", layer)
    same, written = {place}, f"mlp_out.{layer}"
    if kind == "ln2" or not config.d_mlp:
        after = layer + 1
        same |= {f"{passes_on(config)}.{layer}", f"resid_pre.{after}", f"qk_in.{after}"}
        written = f"attn_out.{after}"
    back, away = _plus(bias, judge.unit), _plus(-bias, judge.unit)
    places = [
        {n: back(v) if n in same else away(v) if n == written else v for n, v in p.places.items()}
        for p in judge.prompts
    ]
    says = "the bias is moved into what reads it, and into what is added next"
    yield Reading(says, places, frozenset(same), must_change=True)


# -- heads -----------------------------------------------------------------------------------------


def _heads_in_another_order(judge: Judge, place: str, depth: int) -> Iterator[Reading]:
    """Yield the order of heads that fits, found by what depends on no basis inside a head."""
    heads, layer = judge.model.n_heads, layer_of(place)
    if heads < 2:
        return
    own = here(judge, place, OF_HEADS)
    for kind in ("pattern", "products", "z", kind_of(place)):
        shown = _per_head(judge, kind, layer, ours=False)
        ours = _per_head(judge, kind, layer, ours=True)
        if shown is None or ours is None or not np.isfinite(shown).all():
            continue
        distance = ((shown[:, None] - ours[None]) ** 2).sum(axis=-1)
        rows, columns = linear_sum_assignment(distance)
        order = np.empty(heads, dtype=int)
        order[columns] = rows  # our head h is shown as order[h]
        if (order == np.arange(heads)).all():
            continue
        places = [
            {
                n: Near(v.value[order], np.asarray(v.error)[order]) if n in own else v
                for n, v in p.places.items()
            }
            for p in judge.prompts
        ]
        trial = judge.trial(places)
        good = [each for each in own if trial.ratio(each) <= 1 < judge.ratio(each)]
        if any(judge.ratio(each) <= 1 < trial.ratio(each) for each in own):
            continue  # what was right must not become wrong
        attn_out, shown_now = f"attn_out.{layer}", trial.prompts[0].places
        closes = [
            name
            for name in (attn_out, *judge.readers({*own}))
            if name in shown_now and name not in own and trial.ratio(name) <= 1 < judge.ratio(name)
        ]
        summed = own == [f"head_out.{layer}"]  # the order of what is only summed does not matter
        believed = place in good and (len(good) > 1 or bool(closes) or summed)
        still = [each for each in own if trial.ratio(each) > 1]
        if not believed and still and depth:
            first = place if place in still else still[0]
            nested = _inside_heads(trial, first)
            believed = any(each.confirms and confirmed(trial, each, depth - 1) for each in nested)
        if believed:
            says = f"heads stand in another order: {', '.join(str(int(h)) for h in order)}"
            yield Reading(says, places, frozenset(own), by_itself=True)
            return


def _inside_heads(judge: Judge, place: str) -> Iterator[Reading]:
    if kind_of(place) in ("q", "k"):
        yield from queries_and_keys(judge, place)
        yield from basis_of_queries_and_keys(judge, place)
    elif kind_of(place) in ("v", "z"):
        yield from _value_bias(judge, place)
        yield from _basis_of_values(judge, place)


def _per_head(judge: Judge, kind: str, layer: int | None, ours: bool) -> Array | None:
    """Return for each head a row of numbers, as shown or as they should be without the heads."""
    rows = []
    own = tuple(f"{k}.{layer}" for k in OF_HEADS)
    for prompt in judge.prompts:
        if ours:
            rest = {n: v for n, v in prompt.places.items() if n not in own}
            get = _computed(Evaluator(judge.model, prompt.tokens, rest, parts=judge.parts), layer)
        else:
            get = _as_shown(prompt.places, layer)
        if kind == "products":
            q, k = get("q"), get("k")
            if q is None or k is None:
                return None
            value = q @ np.swapaxes(k, -1, -2)
            value = np.where(causal_mask(value.shape[-1]), value, 0.0)
        else:
            found = get(kind)
            if found is None:
                return None
            value = found
            if kind == "scores":
                value = np.where(causal_mask(value.shape[-1]), value, 0.0)
        rows.append(value.reshape(len(value), -1))
    return np.concatenate(rows, axis=1)


Get = Callable[[str], Array | None]


def _computed(evaluator: Evaluator, layer: int | None) -> Get:
    return lambda kind: evaluator.near(f"{kind}.{layer}").value


def _as_shown(places: Mapping[str, Near], layer: int | None) -> Get:
    def get(kind: str) -> Array | None:
        near = places.get(f"{kind}.{layer}")
        return None if near is None else near.value

    return get


def _basis_of_values(judge: Judge, place: str) -> Iterator[Reading]:
    """Yield that values, and what is mixed of them, are in another basis of each head."""
    layer = layer_of(place)
    v, z = f"v.{layer}", f"z.{layer}"
    shown = set(judge.prompts[0].places)
    own = [n for n in (v, z) if n in shown]
    if v in shown and z in shown and judge.ratio(z) > 1:
        return  # what is mixed is not what the values say: no basis mends that
    moved_on = "b_V" in judge.model.config.biases
    nears = {n: judge.expected(n) for n in own if n == v or v not in shown}
    if not all(in_a_basis(judge, n, near, moved_on) for n, near in nears.items()):
        return
    yield Reading(
        "values are in another basis inside the heads", hidden(judge, *own), frozenset(own)
    )


def _value_bias(judge: Judge, place: str) -> Iterator[Reading]:
    """Yield that b_V is moved into b_O, which the rows of a pattern allow: they sum to one."""
    config, layer = judge.model.config, layer_of(place)
    if "b_V" not in config.biases:
        return
    v, z = f"v.{layer}", f"z.{layer}"
    assert layer is not None  # values are of a layer
    if place == z and v in judge.prompts[0].places:
        return  # values are right as they are shown
    own = judge.model.part("b_V", layer)
    biases = [own]
    if config.norm == "layer" and not config.post_norm:
        moved_on = np.einsum("d,hdk->hk", judge.model.part("ln1_bias", layer), _W_V(judge, layer))
        biases.append(own + moved_on)
    for bias in biases:
        back = _plus(bias[:, None], judge.unit)
        written = np.einsum("hk,hkd->hd", bias, judge.model.part("W_O", layer))
        changes = {v: back, z: back, f"head_out.{layer}": _plus(written[:, None], judge.unit)}
        if judge.trial(changed(judge, place, changes[place])).ratio(place) <= 1:
            places = [
                {n: changes[n](near) if n in changes else near for n, near in p.places.items()}
                for p in judge.prompts
            ]
            yield Reading("b_V is moved into b_O", places, frozenset(changes))
            return


def _W_V(judge: Judge, layer: int) -> Array:
    return judge.model.part("W_V", layer)


def _plus(bias: Array, unit: float) -> Callable[[Near], Near]:
    def back(near: Near) -> Near:
        moved = near.value + bias
        return Near(moved, near.error + 4 * unit * (np.abs(moved) + np.abs(bias)))

    return back


# -- scores, sums, neurons, logits -----------------------------------------------------------------


def _shifted_scores(judge: Judge, place: str) -> Iterator[Reading]:
    """Yield that all scores of a query are moved alike, as some softmaxes do first."""
    nears = judge.expected(place)
    fitted = []
    for prompt, near in zip(judge.prompts, nears, strict=True):
        shown = prompt.places[place]
        seen = causal_mask(near.value.shape[-1])
        shift = np.where(seen, shown.value - near.value, 0.0).sum(-1, keepdims=True)
        shift = shift / seen.sum(-1, keepdims=True)
        right = np.where(seen, near.value, np.nan)
        if not all(resolved(*each, judge.unit) for each in zip(shift, right, strict=True)):
            return
        granted = near.error * 2 + 4 * judge.unit * np.abs(shift)
        fitted.append(Near(near.value + shift, np.where(seen, granted, np.inf)))
    if judge.within(place, fitted):
        says = "all scores of a query are moved by the same number, which no softmax sees"
        yield Reading(says, hidden(judge), frozenset({place}), by_itself=True)


def _unscaled_scores(judge: Judge, place: str) -> Iterator[Reading]:
    if explains(judge, place, "scale_missing"):
        says = "scores are shown before they are divided by √d_head"
        yield Reading(says, hidden(judge, place), frozenset({place}))


def _bias_later(judge: Judge, place: str) -> Iterator[Reading]:
    bias = "b_O" if kind_of(place) == "attn_out" else "b_out"
    if explains(judge, place, f"{bias}_missing"):
        says = f"shown before {bias} is added"
        yield Reading(says, hidden(judge, place), frozenset({place}))


def _neurons_in_another_order(judge: Judge, place: str) -> Iterator[Reading]:
    own = here(judge, place, ("mlp_pre", "mlp_post"))
    ours = np.concatenate([near.value for near in judge.trial_near(hidden(judge, *own), place)])
    shown = np.concatenate([p.places[place].value for p in judge.prompts])
    if not np.isfinite(shown).all() or ours.shape[1] > 8192:
        return
    squares = (shown**2).sum(0)[:, None] + (ours**2).sum(0)[None]
    rows, columns = linear_sum_assignment(squares - 2 * shown.T @ ours)
    order = np.empty(len(rows), dtype=int)
    order[columns] = rows
    if (order == np.arange(len(order))).all():
        return
    places = [
        {
            n: Near(v.value[:, order], np.asarray(v.error)[:, order]) if n in own else v
            for n, v in p.places.items()
        }
        for p in judge.prompts
    ]
    trial = judge.trial(places)
    if trial.ratio(place) <= 1:
        says = "neurons of the MLP stand in another order"
        yield Reading(says, places, frozenset(own), must_change=True)
        still = {each for each in own if trial.ratio(each) > 1}  # they may be scaled as well
        if still:
            yield Reading(says, places, frozenset({*own} - still), must_change=True)


def _neurons_scaled(judge: Judge, place: str) -> Iterator[Reading]:
    """Yield that each neuron of what the MLP writes is multiplied, and W_out divided by as much."""
    config = judge.model.config
    if kind_of(place) != "mlp_post" or not (config.gated or config.activation == "relu"):
        return
    nears = judge.expected(place)
    a = np.concatenate([near.value for near in nears])
    b = np.concatenate([p.places[place].value for p in judge.prompts])
    if len(a) < 4:
        return
    square = (a**2).sum(0)
    factor = (a * b).sum(0) / np.where(square > 0, square, 1.0)
    fitted = [Near(near.value * factor, near.error * (np.abs(factor) * 4 + 1)) for near in nears]
    if judge.within(place, fitted) and (np.abs(factor - 1) > 1e-3).any():
        says = "neurons of the MLP are scaled, and what reads them the other way"
        yield Reading(says, hidden(judge, place), frozenset({place}))


def _shifted_logits(judge: Judge, place: str) -> Iterator[Reading]:
    nears = judge.expected(place)
    fitted = []
    for prompt, near in zip(judge.prompts, nears, strict=True):
        shift = (prompt.places[place].value - near.value).mean(axis=-1, keepdims=True)
        if not resolved(shift, near.value, judge.unit):
            return
        fitted.append(Near(near.value + shift, near.error * 2 + 4 * judge.unit * np.abs(shift)))
    if judge.within(place, fitted):
        says = "all logits of a position are moved by the same number, which no probability sees"
        yield Reading(says, hidden(judge), frozenset({place}), by_itself=True)
