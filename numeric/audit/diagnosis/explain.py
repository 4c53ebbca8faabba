"""Which known mistake explains a wrong activation.

A mistake explains it only if the reference with that mistake gives the recorded activation, within
the bound of the mistaken operation. Simple mistakes are tried first. All that fit are named, as
some cannot be distinguished on one prompt.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from otimes.numeric.audit.diagnosis.fit import fitted, seen_at
from otimes.numeric.audit.diagnosis.fit_constants import another_number
from otimes.numeric.audit.diagnosis.fit_norm import forms_of
from otimes.numeric.audit.diagnosis.screening import Sieve
from otimes.numeric.audit.mistakes.norms import other_eps
from otimes.numeric.audit.mistakes.registry import known_mistakes, of_kind
from otimes.numeric.audit.precision.lower_precision import coarser_step, explained
from otimes.numeric.audit.precision.tolerated import IN_SINGLE
from otimes.numeric.audit.reference.comparison import Comparison, head_ratios_of
from otimes.numeric.audit.reference.edits import config_to
from otimes.numeric.audit.reference.evaluator import NORMS, Mistake, layer_of, placed
from otimes.numeric.block import kind_of
from otimes.numeric.progress import tracked
from otimes.numeric.rounding.linear import Array

NAMED = 4
"""At most this many mistakes that fit are named."""


def explanation(compared: Comparison, place: str, heads: Sequence[float] = ()) -> str:
    """Return the mistakes that explain an activation, as "matches …", or "".

    `heads`: error/bound of each head, if there are heads.
    """
    return (
        known_mistake(compared, place)
        or another_setting(compared, place)
        or _stale(compared, place)
        or _some_heads(compared, place, heads)
        or coarser_step(compared, place)
        or _fitted(compared, place)
        or _beside_coarser_steps(compared, place)
    )


def _fitted(compared: Comparison, place: str) -> str:
    """Return the fitted relation to the right values, or ""; used if no known mistake fits."""
    seen = seen_at(compared, place)
    return "" if seen is None else fitted(seen, forms_of(kind_of(place)))


def _beside_coarser_steps(compared: Comparison, place: str) -> str:
    """Return the mistakes that explain an activation together with steps in float32, or ""."""
    kinds, _ = _acting_on(compared, place)
    if compared.dtype != "float64" or not kinds & set(IN_SINGLE.acts):
        return ""
    return leaning(compared, place) or known_mistake(compared, place, (IN_SINGLE,))


def known_mistake(compared: Comparison, place: str, beside: tuple[Mistake, ...] = ()) -> str:
    """Return the mistakes that explain an activation if made at every head and position, or "".

    The mistakes in `beside` are made in addition, and not named.
    """
    kinds, layers = _acting_on(compared, place)
    found: dict[tuple[bool, int], list[str]] = {}
    # Steps of lower precision have many ties, and are not matched entry by entry.
    every = [m for m in known_mistakes(compared.model.config) if not (beside and m.coarse_step)]
    whole = {mistake.says: mistake for mistake in every}
    if layers and layers[0] > 0:
        every = [mistake for mistake in every if not mistake.in_first]
    sieve = _sieve(compared, place, beside)
    for rank, mistakes in groupby(of_kind(every, kinds), lambda mistake: mistake.rank):
        if (False, 0) in found and rank > 0:
            break
        variants = [each for mistake in mistakes for each in _where(mistake, layers)]
        if sieve is not None:
            variants = sieve.kept(variants, TRIED)
        done = ""
        for variant in variants if sieve is None else tracked(variants, TRIED):
            if variant.says != done and _fits(compared, place, variant, beside):
                done = variant.says
                made = (whole[done], *beside)
                key = (not _elsewhere_too(compared, place, made, kinds), rank)
                found.setdefault(key, []).append(f"{done}{variant.where}")
    if found:
        return f"matches {'; or '.join(found[min(found)][:NAMED])}"
    return ""


def that_fit(compared: Comparison, place: str, every: Iterable[Mistake]) -> str:
    """Return the mistakes, of some that are tried, that explain an activation, or ""."""
    kinds, _ = _acting_on(compared, place)
    tried, fit = [*of_kind(every, kinds)], list[str]()
    for beside in ((), (IN_SINGLE,)) if compared.dtype == "float64" else ((),):
        fit = fit or [each.says for each in tried if _fits(compared, place, each, beside)]
    fit = [*dict.fromkeys(fit)]
    return f"matches {'; or '.join(fit[:NAMED])}" if fit else ""


TRIED = "trying known mistakes"
OFF = 1e6
"""The largest rounding error, in roundings of the largest entry."""

OFF_COARSE = 1e4
"""The same for steps of lower precision, of which there are few."""


def _far(compared: Comparison, beside: tuple[Mistake, ...]) -> float:
    """Return the largest rounding error of an activation, relative to its largest entry."""
    return max([OFF * compared.unit, *(OFF_COARSE * each.coarse for each in beside)])


def _sieve(compared: Comparison, place: str, beside: tuple[Mistake, ...]) -> Sieve | None:
    """Return the `Sieve` that rules out mistakes by the first tokens, if the error is large."""
    near = compared.expected(place)[0]
    far = _far(compared, beside)
    if not compared.estimated(place) or far > 0.1 or not np.isfinite(near.error).all():
        return None
    shown = compared.recorded[place].value
    # The largest entry with a mistake that explains it is nearly the recorded one.
    largest = far / (1 - far) * np.abs(shown).max(initial=1e-30)
    plain, causal = compared.evaluators()[0], compared.cache.causal
    return Sieve(plain, place, shown, near.error, float(largest), causal)


def another_setting(compared: Comparison, place: str) -> str:
    """Return the fitted constant of the model that explains an activation, or ""."""
    return another_number(compared, place, *_acting_on(compared, place))


def _acting_on(compared: Comparison, place: str) -> tuple[set[str], list[int]]:
    """Return the kinds and layers of the unrecorded activations that one is computed from."""
    behind = [*compared.evaluators()[0].needed(place), place]
    layers = {layer for name in behind if (layer := layer_of(name)) is not None}
    return {kind_of(name) for name in behind}, sorted(layers)


LEANS = 0.05
"""An activation with a smaller error/bound is not looked at for a small error in all entries."""

LEANING = 4.0
"""A mistake was made if it makes the total error this many times smaller."""


def leaning(compared: Comparison, place: str) -> str:
    """Return the other ε of a norm that explains the errors of all rows together, or "".

    Rounding errors of different rows are independent, while another ε changes all rows in a known
    direction: it is visible long before any entry exceeds its bound. The ε of a norm that was not
    recorded is found from the next activation of its layer.
    """
    kinds, layers = _acting_on(compared, place)
    norms = [kind for kind in NORMS if kind in kinds]
    rows = sum(len(prompt.tokens) for prompt in compared.prompts)
    if rows < 8 or not norms or (kind_of(place) not in norms and len(layers) > 2):
        return ""
    here = _off(compared, place, None)
    fitting = []
    for norm in norms:
        if norm != kind_of(place) and not _along(here, compared, place, norm):
            continue
        for mistake in other_eps(compared.model.config, (norm,)):
            there = float(np.linalg.norm(_off(compared, place, mistake)))
            if there * LEANING < np.linalg.norm(here):
                fitting.append((there, mistake.says, norm))
    if not fitting:
        return ""
    _, says, norm = min(fitting)
    hidden = "" if norm == kind_of(place) else f" (in {norm})"
    return f"matches {says}{hidden}: all rows lean to it"


NUDGE = 1 + 2.0**-10


def _along(here: Array, compared: Comparison, place: str, norm: str) -> bool:
    """Return whether an error is along the derivative with respect to a norm's ε."""
    eps = NUDGE * (compared.model.config.norm_eps or 0.0)
    along = here - _off(compared, place, Mistake("", {norm: config_to(norm_eps=eps)}))
    length = float(along @ along)
    if not length or not np.isfinite(length):
        return False
    across = here - (here @ along) / length * along
    return bool(np.linalg.norm(across) * LEANING <= np.linalg.norm(here))


def _off(compared: Comparison, place: str, mistake: Mistake | None) -> Array:
    """Return the recorded activation minus the expected one, with or without a mistake."""
    off = []
    rights = compared.nearly(place)
    for number, (prompt, right) in enumerate(zip(compared.prompts, rights, strict=True)):
        near = right if mistake is None else compared.quick(place, mistake, number)
        claimed = np.isfinite(np.broadcast_to(np.asarray(right.error), near.value.shape))
        off.append((prompt.places[place].value - near.value)[claimed])
    return np.concatenate(off)


def _elsewhere_too(
    compared: Comparison, place: str, mistakes: tuple[Mistake, ...], kinds: set[str]
) -> bool:
    """Return whether mistakes also explain the other recorded activations that they change.

    Those of the same layer: missing rotary positions for queries only, and for both queries and
    keys, are different mistakes.
    """
    layer = layer_of(place)
    shown = compared.recorded
    for kind in mistakes[0].acts:
        other = kind if layer is None else placed(kind, layer)
        if kind in kinds or other not in shown or layer_of(other) != layer:
            continue
        if compared.ratio(other, mistakes) > 1:
            return False
    return True


def _where(mistake: Mistake, layers: list[int]) -> Iterator[Mistake]:
    """Yield variants of a mistake: made everywhere, then in one norm or one layer only.

    The final norm may have another ε than those of the blocks.
    """
    yield mistake
    if len(mistake.acts) > 1 and {*mistake.acts} <= {*NORMS}:
        for kind, act in mistake.acts.items():
            yield replace(mistake, where=f" (in {kind} only)", acts={kind: act})
    if len(layers) > 1:
        ends = {"embed", "final", "ln_final", "logits"}
        if not set(mistake.acts) <= ends:
            for layer in layers:
                yield mistake.at(layer)


def _fits(compared: Comparison, place: str, mistake: Mistake, beside: tuple[Mistake, ...]) -> bool:
    # Most mistakes are ruled out without a bound: their error is larger than any rounding.
    first = compared.recorded[place].value
    near = compared.quick(place, mistake)
    with np.errstate(all="ignore"):
        off = np.abs(first - near.value)[np.isfinite(compared.expected(place)[0].error)]
        scale = np.abs(near.value).max(initial=1e-30)
    if not off.max(initial=0.0) <= _far(compared, beside) * scale:
        return False
    if mistake.coarse_step:
        return explained(compared, place, mistake)
    if not compared.ratio(place, (mistake, *beside)) <= 1:
        return False
    # An error just above its bound falls below it with many unrelated changes.
    there, here = (float(np.linalg.norm(_off(compared, place, each))) for each in (mistake, None))
    return not here < np.inf or NEARER * there <= here


NEARER = 2.0
"""A mistake explains an error only if it makes the total error this many times smaller."""


def _some_heads(compared: Comparison, place: str, ratios: Sequence[float]) -> str:
    """Return the mistake that explains the wrong heads if the others are right, or ""."""
    bad = [h for h, each in enumerate(ratios) if not each <= 1]
    if not bad or len(bad) == len(ratios):
        return ""
    for mistake in of_kind(known_mistakes(compared.model.config), {kind_of(place)}):
        made = head_ratios_of(compared, place, compared.expected(place, (mistake,)))
        if all(made[head] <= 1 for head in bad):
            which = ", ".join(str(h) for h in bad)
            return f"matches {mistake.says} (in head{'s' if len(bad) > 1 else ''} {which} only)"
    return ""


def _stale(compared: Comparison, place: str) -> str:
    """Return the diagnosis that some positions have the rows of others (a stale cache), or ""."""
    if kind_of(place) not in ("k", "v", "q", "embed", "resid_pre"):
        return ""
    sayings = []
    for prompt, near in zip(compared.prompts, compared.expected(place), strict=True):
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
