"""Comparison of a reference model with the activations that an implementation recorded.

Each hook point is computed by the reference from the activations that the implementation itself
recorded before it, so an error made earlier does not count against it. Most activations are within
a smaller bound that is cheap to compute (`Precision.sampled`); the full bound is computed only for
the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from otimes.numeric.audit.findings import Finding, Gauge
from otimes.numeric.audit.reference import error_estimates
from otimes.numeric.audit.reference.evaluator import FAR, Evaluator, Mistake, Remembered, layer_of
from otimes.numeric.block import OF_HEADS, inputs_of, kind_of, place_names
from otimes.numeric.config import Config
from otimes.numeric.functions import visible_keys
from otimes.numeric.model import Model
from otimes.numeric.rounding.linear import Array, Near
from otimes.numeric.rounding.precision import VALUES_ONLY, Precision, precision, worst_ratio

Activations = Mapping[str, Near]
"""Activations in float64 by the name of their hook point, each with how far it may be off."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The activations that an implementation recorded on one prompt."""

    tokens: Array
    places: Activations


@dataclass(slots=True)
class Cache:
    """A cache of values computed for a comparison, which only saves time."""

    parts: Remembered
    evaluators: dict[Precision, list[Evaluator]] = field(default_factory=dict)
    expected: dict[tuple[Precision, str], list[Near]] = field(default_factory=dict)
    causal: dict[tuple[str, int, str, frozenset[str]], bool] = field(default_factory=dict)
    """Which mistakes look ahead, by hook point, number of tokens, mistake and kinds."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A reference model, the recordings of an implementation on some prompts, and their dtype.

    `unturned`: queries and keys are known to be recorded before the rotation. `rewritten`: the
    weights of the reference were transformed, with rounding errors. `gauges`: the conventions of
    the implementation that were found and undone. `casts`: the dtype of the autocast under which
    the implementation is supposed to run, "" without.
    """

    model: Model
    prompts: tuple[Recording, ...]
    dtype: str
    unturned: bool
    rewritten: bool
    gauges: tuple[Gauge, ...]
    cache: Cache = field(repr=False, compare=False)
    casts: str = ""

    @property
    def p(self) -> Precision:
        """The precision, with independent rounding errors."""
        return _likely(self.dtype)

    @property
    def unit(self) -> float:
        """The unit roundoff of the recorded type."""
        return self.p.unit

    @property
    def recorded(self) -> Activations:
        """The activations of the first prompt; the others have the same hook points."""
        return self.prompts[0].places

    @property
    def places(self) -> tuple[str, ...]:
        """The hook points that were recorded, in the order of the forward pass."""
        return tuple(each for each in place_names(self.model.config) if each in self.recorded)

    def with_places(self, places: Sequence[Activations], *gauges: Gauge) -> "Comparison":
        """Return the comparison with other activations of each prompt, and new conventions."""
        prompts = [
            Recording(prompt.tokens, new) for prompt, new in zip(self.prompts, places, strict=True)
        ]
        return replace(
            self,
            prompts=tuple(prompts),
            gauges=(*self.gauges, *gauges),
            cache=Cache(self.cache.parts),
        )

    def evaluators(
        self, p: Precision = VALUES_ONLY, mistakes: tuple[Mistake, ...] = ()
    ) -> list[Evaluator]:
        """Return one evaluator for each prompt; those without mistakes are kept."""
        kept = self.cache.evaluators
        if not mistakes and p in kept:
            return kept[p]
        parts = self.cache.parts
        found = [
            Evaluator(self.model, prompt.tokens, prompt.places, p, mistakes, parts=parts)
            for prompt in self.prompts
        ]
        if not mistakes:
            kept[p] = found
        return found

    def expected(
        self, place: str, mistakes: Iterable[Mistake] = (), p: Precision | None = None
    ) -> list[Near]:
        """Return the expected activation on each prompt, optionally with mistakes."""
        p, mistakes = p or self.p, tuple(mistakes)
        kept = self.cache.expected
        if not mistakes and (p, place) in kept:
            return kept[p, place]
        nears = [
            _with_rewriting(self, place, error_estimates.expected(each, place, self.unit))
            for each in self.evaluators(p, mistakes)
        ]
        if not mistakes:
            kept[p, place] = nears
        return nears

    def nearly(self, place: str) -> list[Near]:
        """Return the expected activation on each prompt, with its bound or a smaller one."""
        if (self.p, place) in self.cache.expected or self.estimated(place):
            return self.expected(place)
        return self.expected(place, p=self.p.supposed_less())

    def quick(self, place: str, mistake: Mistake, number: int = 0) -> Near:
        """Return the activation on a prompt with a mistake, without a bound."""
        plain = self.evaluators()[number]
        plain.near(place)
        return plain.with_mistake(mistake).near(place)

    def estimated(self, place: str) -> bool:
        """Return whether the tolerance of a hook point is a measured estimate and not a bound."""
        return self.evaluators(self.p)[0].hidden(place) > FAR

    def readers(self, places: set[str]) -> list[str]:
        """Return the recorded hook points computed from these, with none recorded between."""
        found, config = [], self.model.config
        touched = set(places)
        for place in place_names(config):
            if place in places or not touched & set(inputs_of(config, place)):
                continue
            if place in self.recorded:
                found.append(place)
            else:
                touched.add(place)
        return found

    def ratio(
        self, place: str, mistakes: Iterable[Mistake] = (), p: Precision | None = None
    ) -> float:
        """Return the largest error/bound of an activation over all prompts."""
        nears = self.expected(place, mistakes, p)
        return max(
            ratio_of(prompt.places[place], near)
            for prompt, near in zip(self.prompts, nears, strict=True)
        )

    def within(self, place: str, nears: Sequence[Near]) -> bool:
        """Return whether an activation agrees with the given values on every prompt."""
        return all(
            ratio_of(prompt.places[place], near) <= 1
            for prompt, near in zip(self.prompts, nears, strict=True)
        )


@lru_cache
def _likely(dtype: str) -> Precision:
    return precision(dtype).supposed_likely()


def compare(
    model: Model,
    prompts: Iterable[Recording],
    dtype: str,
    unturned: bool = False,
    casts: str = "",
) -> Comparison:
    """Return the comparison of recordings with a model."""
    cache = Cache(Remembered(model))
    return Comparison(model, tuple(prompts), dtype, unturned, False, (), cache, casts)


def with_model(compared: Comparison, model: Model) -> Comparison:
    """Return the comparison with a model of the same function and rewritten weights."""
    return replace(compared, model=model, rewritten=True, cache=Cache(Remembered(model)))


def supposing(compared: Comparison, place: str, nears: list[Near]) -> Comparison:
    """Return the comparison with `nears` as the expected activation of a hook point."""
    expected = {(compared.p, place): nears}
    return replace(compared, cache=Cache(compared.cache.parts, expected=expected))


def bounded(compared: Comparison, place: str) -> list[Near]:
    """Return the expected activation with its guaranteed bound, if there is one."""
    sure = precision(compared.dtype)
    nears = [each.near(place) for each in compared.evaluators(sure)]
    return scaled(nears, sure.doubled)


def _with_rewriting(compared: Comparison, place: str, near: Near) -> Near:
    """Return an activation that is a row of rewritten weights, with their rounding errors."""
    if not compared.rewritten or place not in ("embed", "resid_pre.0"):
        return near
    largest = np.abs(near.value).max(axis=-1, keepdims=True)
    return Near(near.value, near.error + 8 * compared.unit * (np.abs(near.value) + largest))


def forget(compared: Comparison, place: str) -> None:
    """Drop cached values of the layers before the last one, which the audit has passed."""
    layer, kept = layer_of(place) or 0, compared.cache.expected
    for every in compared.cache.evaluators.values():
        for each in every:
            each.forget(layer)
    for p, name in [*kept]:
        number = layer_of(name)
        if number is not None and number < layer:
            del kept[p, name]


def tells(compared: Comparison, place: str) -> bool:
    """Return whether an activation is right within a bound that is evidence (see `telling`)."""
    return compared.ratio(place) <= 1 and all(map(telling, compared.expected(place)))


def head_ratios(compared: Comparison, place: str) -> tuple[float, ...]:
    """Return the largest error/bound of each head, or one number if there are no heads.

    For a right activation it may be an overestimate, but is at most 1.
    """
    ratios = head_ratios_of(compared, place, compared.nearly(place))
    if max(ratios) <= 1:
        return ratios
    return head_ratios_of(compared, place, compared.expected(place))


def head_ratios_of(compared: Comparison, place: str, nears: Sequence[Near]) -> tuple[float, ...]:
    """Return the largest |recorded - near| / bound of each head, or of an activation without."""
    every = []
    for prompt, near in zip(compared.prompts, nears, strict=True):
        shown = prompt.places[place]
        pairs = [(shown, near)]
        if kind_of(place) in OF_HEADS:
            pairs = [
                (Near(shown.value[h], shown.error[h]), Near(near.value[h], near.error[h]))
                for h in range(len(near.value))
            ]
        every.append([ratio_of(*pair) for pair in pairs])
    return tuple(max(each) for each in zip(*every, strict=True))


def finding(
    compared: Comparison, place: str, diagnosis: str, heads: Sequence[float] = ()
) -> Finding:
    """Return the finding on a wrong activation; `heads` are the ratios of its heads."""
    nears = compared.expected(place)
    every = [_worst(p.places[place], n) for p, n in zip(compared.prompts, nears, strict=True)]
    ratio, error, bound, entry = max(reversed(every), key=lambda each: each[0])
    bad = [h for h, each in enumerate(heads) if not each <= 1]
    return Finding(
        place=place,
        layer=layer_of(place),
        head=bad[0] if bad and len(bad) < len(heads) else None,
        error=error,
        bound=bound,
        ratio=ratio,
        diagnosis=diagnosis,
        estimated=compared.estimated(place),
        entry=entry,
    )


def scaled(nears: Iterable[Near], factor: float) -> list[Near]:
    """Return the same values with their tolerances multiplied by a factor."""
    return [Near(near.value, near.error * factor) for near in nears]


def telling(near: Near) -> bool:
    """Return whether agreement within the bound is evidence: the bound is below the value itself.

    Mean squares are compared, without the entries of infinite bound, such as masked scores.
    """
    claimed = ~np.isposinf(near.error)
    bound, value = near.error[claimed], near.value[claimed]
    return bool((bound**2).sum() <= (value**2).sum()) and bool(claimed.any())


def unclaimed(config: Config, place: str, near: Near) -> int:
    """Return the number of entries with an infinite bound, masked scores excluded."""
    if kind_of(place) == "scores":
        window = config.of_layer(layer_of(place) or 0).window
        seen = visible_keys(near.value.shape[-1], window)
        near = Near(near.value, np.where(seen, near.error, 0.0))
    if near.exact or np.isfinite(near.error.max()):
        return 0
    return int(np.isposinf(near.error).sum())


def ratio_of(shown: Near, near: Near) -> float:
    """Return the largest error/bound; NaN counts as infinitely wrong."""
    bound = near.error if shown.exact else near.error + shown.error
    return worst_ratio(shown.value, near.value, bound)


def _worst(shown: Near, near: Near) -> tuple[float, float, float, tuple[int, ...]]:
    """Return ratio, error, bound and index of the entry with the largest ratio."""
    bound = np.broadcast_to(near.error + shown.error, near.value.shape)
    with np.errstate(all="ignore"):
        error = np.abs(shown.value - near.value)
        ratio = np.where(error == 0, 0.0, error / bound)
    ratio = np.where(np.isposinf(bound), 0.0, np.where(np.isnan(ratio), np.inf, ratio))
    entry = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratio)), ratio.shape))
    return float(ratio[entry]), float(error[entry]), float(bound[entry]), entry
