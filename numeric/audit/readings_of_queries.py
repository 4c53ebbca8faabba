"""Queries and keys said otherwise: scaled, in another basis, moved, or before the rotation."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from numeric.audit.evaluate import Evaluator, Mistake, layer_of
from numeric.audit.judge import Judge, ratio_of
from numeric.audit.reading import Reading, explains, here, hidden, in_a_basis, named, resolved
from numeric.rounding.functions import rotated
from numeric.rounding.linear import Near, linear
from numeric.rounding.places import kind_of

MOVED = 30.0
"""Queries and keys count as in another basis only if both are this many bounds away from ours."""


def queries_and_keys(judge: Judge, place: str) -> Iterator[Reading]:
    """Yield what may have been done to queries and keys alike, or to one of them."""
    config, layer = judge.model.config, layer_of(place)
    q, k = f"q.{layer}", f"k.{layer}"
    wrong = [n for n in here(judge, place, ("q", "k")) if judge.ratio(n) > 1]
    if config.positions == "rotary":
        before = {"q": "rotary_k_only", "k": "rotary_q_only"}
        if wrong and all(explains(judge, n, before[kind_of(n)]) for n in wrong):
            says = f"{' and '.join(wrong)} shown before the rotation"
            yield Reading(
                says,
                hidden(judge, *wrong),
                frozenset(wrong),
                by_itself=judge.unturned,
                unless_right=True,
            )
    elif place == k:
        yield from _other_key_bias(judge, k)
    root = float(np.sqrt(config.d_head))
    for factors, says in (
        ({q: 1 / root}, "queries carry the scale 1/√d_head"),
        ({k: 1 / root}, "keys carry the scale 1/√d_head"),
        ({q: root**-0.5, k: root**-0.5}, "queries and keys carry the scale, half of it each"),
    ):
        for turned, shown in _before_or_after_rotation(judge):
            scaled = [n for n in wrong if not turned or judge.ratio(n, turned) > 1]
            own = [n for n in factors if n in judge.prompts[0].places]
            if own and {*own} <= {*scaled}:
                nears = {n: judge.expected(n, turned) for n in own}
                if all(judge.within(n, _grown(nears[n], factors[n])) for n in own):
                    names = [n for n in wrong if n in own or n not in scaled]
                    yield Reading(says + shown, hidden(judge, *names), frozenset(names))


def _before_or_after_rotation(judge: Judge) -> Iterator[tuple[tuple[Mistake, ...], str]]:
    """Yield the two stages at which queries and keys may be shown: the mistake, and what to say."""
    yield (), ""
    unturned = named(judge, "rotary_missing")
    if unturned is not None:
        yield (unturned,), ", shown before the rotation"


def read_as_turned(judge: Judge, place: str) -> Reading | None:
    """Return that queries and keys, be they right or wrong, are shown before the rotation.

    What reads them says so: it is what comes of them once they are turned, and not as they stand.
    """
    if kind_of(place) not in ("q", "k") or judge.model.config.positions != "rotary":
        return None
    own = here(judge, place, ("q", "k"))
    if any(judge.prompts[0].places[name].error.any() for name in own):
        return None  # they were turned already
    reader = next(iter(judge.readers(set(own))), None)
    wrong = reader is not None and judge.ratio(reader) > 1
    for names in (own, own[:1], own[1:]) if judge.unturned or wrong else ():
        turned = {
            name: [_turned(judge, prompt.places[name]) for prompt in judge.prompts]
            for name in names
        }
        places = [
            {**prompt.places, **{name: nears[number] for name, nears in turned.items()}}
            for number, prompt in enumerate(judge.prompts)
        ]
        if judge.unturned or (reader is not None and judge.trial(places).ratio(reader) <= 1):
            says = f"{' and '.join(names)} shown before the rotation"
            return Reading(says, places, frozenset(names), by_itself=True)
    return None


def _turned(judge: Judge, near: Near) -> Near:
    return rotated(near, *judge.model.config.rotation, p=judge.p)


def _other_key_bias(judge: Judge, place: str) -> Iterator[Reading]:
    """Yield that the keys of each head are moved by one vector, which no softmax sees."""
    says, free = "b_K is dropped, which moves all scores of a query alike", False
    if not explains(judge, place, "b_K_missing"):
        nears = judge.expected(place)
        rows = [p.places[place].value - n.value for p, n in zip(judge.prompts, nears, strict=True)]
        by = np.concatenate(rows, axis=1)
        if by.shape[1] < 4 or not np.isfinite(by).all():
            return
        vector = by.mean(axis=1, keepdims=True)
        right = np.concatenate([near.value for near in nears], axis=1).swapaxes(1, 2)
        every = zip(vector.swapaxes(1, 2), right, strict=True)
        if not all(resolved(*each, judge.unit) for each in every):
            return
        moved = [
            Near(near.value + vector, near.error * 2 + 4 * judge.unit * np.abs(vector))
            for near in nears
        ]
        if not judge.within(place, moved):
            return
        says = "b_K is another vector, which moves all scores of a query alike"
        free = True
    yield Reading(says, hidden(judge), frozenset({place}), by_itself=True, confirms=not free)


def _grown(nears: list[Near], factor: float) -> list[Near]:
    return [Near(near.value * factor, near.error * factor * 1.5) for near in nears]


def basis_of_queries_and_keys(judge: Judge, place: str) -> Iterator[Reading]:
    """Yield that queries and keys are in another basis of each head: q R and k R⁻ᵀ.

    Keys with another b_K as well, but where they are turned: it moves all scores of a query alike.
    """
    layer = layer_of(place)
    q, k = f"q.{layer}", f"k.{layer}"
    if not {q, k} <= set(judge.prompts[0].places):
        return
    root = float(np.sqrt(judge.model.config.d_head))
    rotary = judge.model.config.positions == "rotary"
    for turned, shown in _before_or_after_rotation(judge):
        if min(judge.ratio(q, turned), judge.ratio(k, turned)) < MOVED:
            continue
        if not in_a_basis(judge, q, judge.expected(q, turned)):
            continue
        for factor, moved in product((1.0, 1 / root), (False,) if rotary else (False, True)):
            if in_a_basis(judge, k, judge.expected(k, turned), moved) and _products_agree(
                judge, layer, turned, factor, moved
            ):
                scale = "" if factor == 1 else ", and carry the scale 1/√d_head"
                another = ", and b_K is another vector" if moved else ""
                says = f"queries and keys are in another basis inside the heads{scale}{another}"
                yield Reading(says + shown, hidden(judge, q, k), frozenset({q, k}))
                break


def _products_agree(
    judge: Judge, layer: int | None, turned: tuple[Mistake, ...], factor: float, moved: bool
) -> bool:
    """Return whether q kᵀ is ours times a factor, entry by entry, though q and k are not.

    `moved`: but for a number for each query.
    """
    q, k = f"q.{layer}", f"k.{layer}"
    for prompt in judge.prompts:
        rest = {n: v for n, v in prompt.places.items() if n not in (q, k)}
        ours = Evaluator(judge.model, prompt.tokens, rest, judge.p, turned, parts=judge.parts)
        shown = _product(prompt.places[q], prompt.places[k], judge)
        right = _product(ours.near(q), ours.near(k), judge)
        right = Near(right.value * factor, right.error * factor)
        if moved:
            by = (shown.value - right.value).mean(axis=-1, keepdims=True)
            if not resolved(by, right.value, judge.unit):
                return False
            right = Near(right.value + by, right.error * 2 + 4 * judge.unit * np.abs(by))
        if ratio_of(Near(shown.value, shown.error), right) > 1:
            return False
    return True


def _product(q: Near, k: Near, judge: Judge) -> Near:
    turned = Near(np.swapaxes(k.value, -1, -2), np.swapaxes(np.asarray(k.error), -1, -2))
    return linear(q, turned, None, judge.p)
