"""Rewrites of queries and keys: scaled, in another basis, shifted, before the rotation."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from otimes.numeric.audit.reference.comparison import Comparison, ratio_of
from otimes.numeric.audit.reference.edits import not_turned, weights_to
from otimes.numeric.audit.reference.evaluator import Mistake, layer_of
from otimes.numeric.audit.symmetries.candidate import (
    Rewrite,
    explains,
    here,
    hidden,
    hiding,
    in_a_basis,
    resolved,
    unseen,
)
from otimes.numeric.block import kind_of
from otimes.numeric.rounding.functions import rotated
from otimes.numeric.rounding.linear import Near, linear

MOVED = 30.0
"""In another basis queries and keys both differ by this many bounds from the reference."""


def queries_and_keys(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrites of queries and keys together, or of one of them."""
    config, layer = compared.model.config, layer_of(place)
    q, k = f"q.{layer}", f"k.{layer}"
    wrong = [n for n in here(compared, place, ("q", "k")) if compared.ratio(n) > 1]
    if config.positions == "rotary":
        if wrong and all(explains(compared, n, not_turned) for n in wrong):
            says = f"{' and '.join(wrong)} recorded before the rotation"
            yield Rewrite(
                says,
                hidden(compared, *wrong),
                frozenset(wrong),
                by_itself=compared.unturned,
                unless_right=True,
            )
    elif place == k:
        yield from _other_key_bias(compared, k)
    root = 1 / config.score_scale
    for factors, says in (
        ({q: 1 / root}, "queries carry the scale 1/√d_head"),
        ({k: 1 / root}, "keys carry the scale 1/√d_head"),
        ({q: root**-0.5, k: root**-0.5}, "queries and keys carry the scale, half of it each"),
    ):
        for turned, shown in _before_or_after_rotation(compared):
            scaled = [n for n in wrong if not turned or compared.ratio(n, turned) > 1]
            own = [n for n in factors if n in compared.recorded]
            if own and {*own} <= {*scaled}:
                nears = {n: compared.expected(n, turned) for n in own}
                if all(compared.within(n, _grown(nears[n], factors[n])) for n in own):
                    names = [n for n in wrong if n in own or n not in scaled]
                    yield hiding(compared, says + shown, *names)


def _before_or_after_rotation(compared: Comparison) -> Iterator[tuple[tuple[Mistake, ...], str]]:
    """Yield the stages (before, after rotation) at which q and k are recorded: (mistake, text)."""
    yield (), ""
    if compared.model.config.positions == "rotary":
        unturned = Mistake("", {"q": not_turned, "k": not_turned})
        yield (unturned,), ", recorded before the rotation"


def recorded_before_rotation(compared: Comparison, place: str) -> Rewrite | None:
    """Return the rewrite for queries and keys, right or wrong, recorded before the rotation.

    The scores confirm it: they are right for the rotated queries and keys only.
    """
    if kind_of(place) not in ("q", "k") or compared.model.config.positions != "rotary":
        return None
    own = here(compared, place, ("q", "k"))
    config = compared.model.config.of_layer(layer_of(place) or 0)
    if config.positions != "rotary":
        return None
    rotation = config.rotation
    if any(compared.recorded[name].error.any() for name in own):
        return None  # they were rotated already
    reader = next(iter(compared.readers(set(own))), None)
    wrong = reader is not None and compared.ratio(reader) > 1
    for names in (own, own[:1], own[1:]) if compared.unturned or wrong else ():
        turned = {
            name: [rotated(p.places[name], *rotation, p=compared.p) for p in compared.prompts]
            for name in names
        }
        places = [
            {**prompt.places, **{name: nears[number] for name, nears in turned.items()}}
            for number, prompt in enumerate(compared.prompts)
        ]
        trial = compared.with_places(places)
        if compared.unturned or (reader is not None and trial.ratio(reader) <= 1):
            says = f"{' and '.join(names)} recorded before the rotation"
            return Rewrite(says, places, frozenset(names), by_itself=True)
    return None


def _other_key_bias(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite that shifts the keys of each head by one vector, which softmax cancels."""
    says, free = "b_K is dropped, which shifts all scores of a query alike", False
    dropped = weights_to(b_K=np.zeros_like)
    if "b_K" not in compared.model.config.biases or not explains(compared, place, dropped):
        nears = compared.expected(place)
        rows = [
            p.places[place].value - n.value for p, n in zip(compared.prompts, nears, strict=True)
        ]
        by = np.concatenate(rows, axis=1)
        if by.shape[1] < 4 or not np.isfinite(by).all():
            return
        vector = by.mean(axis=1, keepdims=True)
        right = np.concatenate([near.value for near in nears], axis=1).swapaxes(1, 2)
        heads = zip(vector.swapaxes(1, 2), right, strict=True)
        if not all(resolved(*each, compared.unit) for each in heads):
            return
        moved = [
            Near(near.value + vector, near.error * 2 + 4 * compared.unit * np.abs(vector))
            for near in nears
        ]
        if not compared.within(place, moved):
            return
        says = "b_K is another vector, which shifts all scores of a query alike"
        free = True
    yield unseen(compared, says, place, confirms=not free)


def _grown(nears: list[Near], factor: float) -> list[Near]:
    return [Near(near.value * factor, near.error * factor * 1.5) for near in nears]


def basis_of_queries_and_keys(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite of queries and keys to another basis of each head: q R and k R⁻ᵀ.

    Keys may have another b_K as well, except with rotary positions: it shifts all scores of a query
    by the same number.
    """
    layer = layer_of(place)
    q, k = f"q.{layer}", f"k.{layer}"
    if not {q, k} <= set(compared.recorded):
        return
    root = 1 / compared.model.config.score_scale
    rotary = compared.model.config.positions == "rotary"
    for turned, shown in _before_or_after_rotation(compared):
        if min(compared.ratio(q, turned), compared.ratio(k, turned)) < MOVED:
            continue
        if not in_a_basis(compared, q, compared.expected(q, turned)):
            continue
        for factor, moved in product((1.0, 1 / root), (False,) if rotary else (False, True)):
            if in_a_basis(compared, k, compared.expected(k, turned), moved) and _products_agree(
                compared, layer, turned, factor, moved
            ):
                scale = "" if factor == 1 else ", and carry the scale 1/√d_head"
                another = ", and b_K is another vector" if moved else ""
                says = f"queries and keys are in another basis inside the heads{scale}{another}"
                yield hiding(compared, says + shown, q, k)
                break


def _products_agree(
    compared: Comparison, layer: int | None, turned: tuple[Mistake, ...], factor: float, moved: bool
) -> bool:
    """Return whether the products q kᵀ are those of the reference times a factor.

    `moved`: up to one number for each query.
    """
    q, k = f"q.{layer}", f"k.{layer}"
    rest = compared.with_places(hidden(compared, q, k))
    every = rest.evaluators(compared.p, turned)
    for prompt, ours in zip(compared.prompts, every, strict=True):
        shown = _product(prompt.places[q], prompt.places[k], compared)
        right = _product(ours.near(q), ours.near(k), compared)
        right = Near(right.value * factor, right.error * factor)
        if moved:
            by = (shown.value - right.value).mean(axis=-1, keepdims=True)
            if not resolved(by, right.value, compared.unit):
                return False
            right = Near(right.value + by, right.error * 2 + 4 * compared.unit * np.abs(by))
        if ratio_of(Near(shown.value, shown.error), right) > 1:
            return False
    return True


def _product(q: Near, k: Near, compared: Comparison) -> Near:
    turned = Near(np.swapaxes(k.value, -1, -2), np.swapaxes(np.asarray(k.error), -1, -2))
    return linear(q, turned, None, compared.p)
