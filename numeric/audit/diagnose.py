"""Which known mistake makes just what was shown: a diagnosis, or none.

A mistake counts only if the reference with it gives what the implementation has, within the bound
of the mistaken operation itself. Those that are found first are the plainest; what fits as well is
named too, for some mistakes cannot be told apart on one prompt.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from numeric.audit.change import config_to
from numeric.audit.coarser import coarser_step, explained
from numeric.audit.evaluate import Mistake, layer_of, placed
from numeric.audit.fitted import fitted, seen_at
from numeric.audit.fitted_norm import forms_of
from numeric.audit.fitted_numbers import another_number
from numeric.audit.floors import IN_SINGLE
from numeric.audit.judge import Judge
from numeric.audit.mistakes import known_mistakes, of_kind
from numeric.audit.sieve import Sieve
from numeric.forward import place_names
from numeric.progress import tracked
from numeric.rounding.linear import Array
from numeric.rounding.places import inputs_of, kind_of
from numeric.rounding.precision import worst_ratio

NAMED = 4
"""So many mistakes that fit are named, no more."""


def diagnose(judge: Judge, place: str) -> str:
    """Return which mistakes explain a place, as "matches …", or an empty string."""
    return (
        known_mistake(judge, place)
        or another_setting(judge, place)
        or _stale(judge, place)
        or _some_heads(judge, place)
        or coarser_step(judge, place)
        or _fitted(judge, place)
        or _beside_coarser_steps(judge, place)
    )


def _fitted(judge: Judge, place: str) -> str:
    """Return what the numbers themselves say of a place, where no known mistake fits."""
    seen = seen_at(judge, place)
    return "" if seen is None else fitted(seen, forms_of(kind_of(place)))


def _beside_coarser_steps(judge: Judge, place: str) -> str:
    """Return which mistakes explain a place of float64 code that has steps in float32 as well."""
    kinds, _ = _acting_on(judge, place)
    if judge.dtype != "float64" or not kinds & set(IN_SINGLE.acts):
        return ""
    return leaning(judge, place) or known_mistake(judge, place, (IN_SINGLE,))


def known_mistake(judge: Judge, place: str, beside: tuple[Mistake, ...] = ()) -> str:
    """Return which mistakes, made at every head and position, explain a place.

    `beside` are made in any case, and are none that count.
    """
    kinds, layers = _acting_on(judge, place)
    found: dict[tuple[bool, int], list[str]] = {}
    # Beside coarser steps ties are many, and nothing is matched digit by digit.
    every = [m for m in known_mistakes(judge.model.config) if not (beside and m.coarse_step)]
    whole = {mistake.name: mistake for mistake in every}
    if layers and layers[0] > 0:
        every = [mistake for mistake in every if not mistake.in_first]
    sieve = _sieve(judge, place, beside)
    for rank, mistakes in groupby(of_kind(every, kinds), lambda mistake: mistake.rank):
        if (False, 0) in found and rank > 0:
            break
        variants = [each for mistake in mistakes for each in _where(mistake, layers)]
        if sieve is not None:
            variants = sieve.kept(variants, TRIED)
        done = ""
        for variant in variants if sieve is None else tracked(variants, TRIED):
            if variant.name != done and _fits(judge, place, variant, beside):
                done = variant.name
                said = variant.says
                if variant.layer is not None and len(layers) > 1:
                    said = f"{said} (in layer {variant.layer})"
                made = (whole[variant.name], *beside)
                key = (not _elsewhere_too(judge, place, made, kinds), rank)
                if said not in found.setdefault(key, []):
                    found[key].append(said)
    if found:
        return f"matches {'; or '.join(found[min(found)][:NAMED])}"
    return ""


TRIED = "trying known mistakes"
OFF = 1e6
"""What is farther away than so many roundings of the largest entry is no rounding."""

OFF_COARSE = 1e4
"""The same for steps of a coarser type, of which there are few."""


def _far(judge: Judge, beside: tuple[Mistake, ...]) -> float:
    """Return how far, as a share of the largest entry, rounding can take a place at the most."""
    return max([OFF * judge.unit, *(OFF_COARSE * each.coarse for each in beside)])


def _sieve(judge: Judge, place: str, beside: tuple[Mistake, ...]) -> Sieve | None:
    """Return what rules out mistakes by the first tokens, for a place that is far away."""
    near = judge.expected(place)[0]
    far = _far(judge, beside)
    if not judge.estimated(place) or far > 0.1 or not np.isfinite(near.error).all():
        return None
    shown = judge.prompts[0].places[place].value
    # The largest entry with a mistake that explains the place is that which was shown, or nearly.
    largest = far / (1 - far) * np.abs(shown).max(initial=1e-30)
    plain = judge.plain(place)
    return Sieve(plain, place, shown, near.error, float(largest), judge.causal)


def another_setting(judge: Judge, place: str) -> str:
    """Return which one number of the model, found by a fit, explains a place far away."""
    return another_number(judge, place, *_acting_on(judge, place))


def _acting_on(judge: Judge, place: str) -> tuple[set[str], list[int]]:
    """Return the kinds, and the layers, of what a place is computed from and was not shown."""
    behind = _behind(judge, place)
    layers = {layer for name in behind if (layer := layer_of(name)) is not None}
    return {kind_of(name) for name in behind}, sorted(layers)


LEANING = 4.0
"""A mistake that brings a place this many times nearer than the reference is, is in it."""


def leaning(judge: Judge, place: str) -> str:
    """Return which ε a norm leans to, at a place that is within its bound: all is wrong alike.

    Roundings of different rows have nothing to do with one another, while another ε moves all of
    them by what is known: it is told from rounding long before it is above the bound of an entry.
    That of a norm that is not shown is told so as well, from the next place of its layer.
    """
    if not judge.ratios[place] > 0.05:
        return ""
    kinds, layers = _acting_on(judge, place)
    norms = [kind for kind in ("ln1", "ln2", "ln_final") if kind in kinds]
    rows = sum(len(prompt.tokens) for prompt in judge.prompts)
    if rows < 8 or not norms or (kind_of(place) not in norms and len(layers) > 2):
        return ""
    here = _off(judge, place, None)
    fitting = []
    for norm in norms:
        if norm != kind_of(place) and not _along(here, judge, place, norm):
            continue
        for mistake in of_kind(known_mistakes(judge.model.config), {norm}):
            if mistake.name.startswith("eps_"):
                there = float(np.linalg.norm(_off(judge, place, mistake)))
                if there * LEANING < np.linalg.norm(here):
                    fitting.append((there, mistake.says, norm))
    if not fitting:
        return ""
    _, says, norm = min(fitting)
    hidden = "" if norm == kind_of(place) else f" (in {norm})"
    return f"matches {says}{hidden}: all rows lean to it"


NUDGE = 1 + 2.0**-10


def _along(here: Array, judge: Judge, place: str, norm: str) -> bool:
    """Return whether a place is off in the direction in which another ε of a norm would move it."""
    eps = NUDGE * (judge.model.config.norm_eps or 0.0)
    along = here - _off(judge, place, Mistake("eps", "", {norm: config_to(norm_eps=eps)}))
    length = float(along @ along)
    if not length or not np.isfinite(length):
        return False
    across = here - (here @ along) / length * along
    return bool(np.linalg.norm(across) * LEANING <= np.linalg.norm(here))


def _off(judge: Judge, place: str, mistake: Mistake | None) -> Array:
    """Return what was shown less what should be, with a mistake or without."""
    off = []
    for number, (prompt, right) in enumerate(zip(judge.prompts, judge.nearly(place), strict=True)):
        near = right if mistake is None else judge.quick(place, mistake, number)
        claimed = np.isfinite(np.broadcast_to(np.asarray(right.error), near.value.shape))
        off.append((prompt.places[place].value - near.value)[claimed])
    return np.concatenate(off)


def _elsewhere_too(
    judge: Judge, place: str, mistakes: tuple[Mistake, ...], kinds: set[str]
) -> bool:
    """Return whether the mistakes explain as well the other shown places at which the first acts.

    Those of the same layer: queries that are not turned, with keys that are, are another mistake
    than rotary positions forgotten.
    """
    layer = layer_of(place)
    shown = judge.prompts[0].places
    for kind in mistakes[0].acts:
        other = kind if layer is None else placed(kind, layer)
        if kind in kinds or other not in shown or layer_of(other) != layer:
            continue
        if judge.ratio(other, mistakes) > 1:
            return False
    return True


def _behind(judge: Judge, place: str) -> list[str]:
    """Return the place, and those that were not shown and that it is computed from."""
    shown, behind, waiting = judge.prompts[0].places, [], [place]
    while waiting:
        name = waiting.pop()
        if name in behind or name == "tokens":
            continue
        behind.append(name)
        waiting += [read for read in inputs_of(judge.model.config, name) if read not in shown]
    order = place_names(judge.model.config)
    return sorted(behind, key=order.index)


def _where(mistake: Mistake, layers: list[int]) -> Iterator[Mistake]:
    """Yield the mistake made everywhere; where much is hidden, at one kind of place or layer only.

    A final norm may have another ε than those of the blocks.
    """
    yield mistake
    norms = [kind for kind in ("ln1", "ln2", "ln_final") if kind in mistake.acts]
    if len(norms) == len(mistake.acts) > 1:
        for kind in norms:
            says = f"{mistake.says} (in {kind} only)"
            yield replace(mistake, says=says, acts={kind: mistake.acts[kind]})
    if len(layers) > 1:
        ends = {"embed", "final", "ln_final", "logits"}
        if not set(mistake.acts) <= ends:
            for layer in layers:
                yield mistake.at(layer)


def _fits(judge: Judge, place: str, mistake: Mistake, beside: tuple[Mistake, ...]) -> bool:
    # Far away by more than any rounding: most mistakes need no bound to be ruled out.
    first = judge.prompts[0].places[place].value
    near = judge.quick(place, mistake)
    with np.errstate(all="ignore"):
        off = np.abs(first - near.value)[np.isfinite(judge.expected(place)[0].error)]
        scale = np.abs(near.value).max(initial=1e-30)
    if not off.max(initial=0.0) <= _far(judge, beside) * scale:
        return False
    if mistake.coarse_step:
        return explained(judge, place, mistake)
    if not judge.ratio(place, (mistake, *beside)) <= 1:
        return False
    # What is hardly above its bound is brought below it by much that has nothing to do with it.
    there, here = (float(np.linalg.norm(_off(judge, place, each))) for each in (mistake, None))
    return not here < np.inf or NEARER * there <= here


NEARER = 2.0
"""A mistake explains a place only if with it the place is so many times nearer, altogether."""


def _some_heads(judge: Judge, place: str) -> str:
    """Return the mistake that explains the wrong heads, where the others are right."""
    ratios = judge.heads.get(place)
    if not ratios:
        return ""
    bad = [h for h, each in enumerate(ratios) if not each <= 1]
    if not bad or len(bad) == len(ratios):
        return ""
    for mistake in of_kind(known_mistakes(judge.model.config), {kind_of(place)}):
        good = True
        for prompt, near in zip(judge.prompts, judge.expected(place, (mistake,)), strict=True):
            shown = prompt.places[place]
            for head in bad:
                ratio = worst_ratio(
                    shown.value[head],
                    near.value[head],
                    np.asarray(near.error[head]) + np.asarray(shown.error[head]),
                )
                good = good and ratio <= 1
            if not good:
                break
        if good:
            which = ", ".join(str(h) for h in bad)
            return f"matches {mistake.says} (in head{'s' if len(bad) > 1 else ''} {which} only)"
    return ""


def _stale(judge: Judge, place: str) -> str:
    """Return that some positions have what belongs to others, as a cache not kept up to date."""
    if kind_of(place) not in ("k", "v", "q", "embed", "resid_pre"):
        return ""
    sayings = []
    for prompt, near in zip(judge.prompts, judge.expected(place), strict=True):
        shown = prompt.places[place].value
        ours, bound = near.value, np.asarray(near.error)
        axes = tuple(i for i in range(ours.ndim) if i != ours.ndim - 2)
        with np.errstate(all="ignore"):
            wrong = np.flatnonzero(~(np.abs(shown - ours) <= bound).all(axis=axes))
        for position in wrong:
            same = [
                j
                for j in range(ours.shape[-2])
                if (np.abs(shown[..., position, :] - ours[..., j, :]) <= 4 * bound[..., j, :]).all()
            ]
            if not same:
                return ""
            sayings.append(f"position {position} has that of position {same[0]}")
    name = {"k": "keys", "v": "values", "q": "queries"}.get(kind_of(place), "rows")
    return f"matches stale {name}: {', '.join(sayings[:4])}" if sayings else ""
