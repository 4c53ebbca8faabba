"""Judging place by place: the reference operation on what the implementation itself had there.

The walk goes forward through the places that are shown. A place that is within its bound passes;
for one that is not, `readings` offers other ways of saying the same; what nothing explains is a
fault. Errors made before a place do not count against it, since its inputs are the implementation's
own. Most places are within less than their bound, which is found for a fraction of the cost
(`Precision.sampled`): the bound itself is computed only for those that are not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from numeric.audit.evaluate import FAR, Evaluator, Mistake, Remembered, layer_of
from numeric.audit.findings import Finding, Gauge
from numeric.audit.measured import expected
from numeric.forward import OF_HEADS, place_names
from numeric.functions import causal_mask
from numeric.model import Model
from numeric.rounding.linear import Array, Near
from numeric.rounding.places import inputs_of, kind_of
from numeric.rounding.precision import Precision, precision, worst_ratio


@dataclass(frozen=True, slots=True)
class Shown:
    """What an implementation showed on one prompt: places by name, in float64."""

    tokens: Array
    places: Mapping[str, Near]


@dataclass(slots=True)
class Judge:
    """A reference, what was shown of an implementation on some prompts, and its precision."""

    model: Model
    prompts: list[Shown]
    dtype: str
    gauges: list[Gauge] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)
    heads: dict[str, tuple[float, ...]] = field(default_factory=dict)
    rewritten: bool = False
    unturned: bool = False
    """Whether queries and keys are known to be shown before the rotation."""
    causal: dict[tuple[str, int, str, frozenset[str]], bool] = field(default_factory=dict)
    """Which mistakes look ahead, as the sieves for its places found out."""
    parts: Remembered = field(init=False)
    _evaluators: list[Evaluator] = field(default_factory=list)
    _samplers: list[Evaluator] = field(default_factory=list)
    _plain: Evaluator | None = None
    _known: dict[str, list[Near]] = field(default_factory=dict)
    _less: dict[str, list[Near]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parts = Remembered(self.model)
        self.show([prompt.places for prompt in self.prompts])

    @property
    def p(self) -> Precision:
        """The precision, rounding errors taken for independent."""
        return precision(self.dtype).supposed_likely()

    @property
    def unit(self) -> float:
        """The unit roundoff of what is stored."""
        return self.p.unit

    @property
    def places(self) -> tuple[str, ...]:
        """The places that are shown on every prompt, in the order of the pass."""
        first = self.prompts[0].places
        return tuple(place for place in place_names(self.model.config) if place in first)

    def show(self, places: Sequence[Mapping[str, Near]]) -> None:
        """Put other places in the stead of those that were shown: the same, said in our way."""
        self.prompts = [
            Shown(prompt.tokens, new) for prompt, new in zip(self.prompts, places, strict=True)
        ]
        self._known, self._less, self._plain, self.causal = {}, {}, None, {}
        self._evaluators, self._samplers = (
            [
                Evaluator(self.model, prompt.tokens, prompt.places, p, parts=self.parts)
                for prompt in self.prompts
            ]
            for p in (self.p, self.p.supposed_less())
        )

    def use(self, model: Model, rewritten: bool) -> None:
        """Compare with another model from now on, one of the same function.

        `rewritten`: its weights were computed, here as in the implementation, each with roundings.
        """
        self.model, self.parts, self.rewritten = model, Remembered(model), rewritten
        self.show([prompt.places for prompt in self.prompts])

    def trial(self, places: Sequence[Mapping[str, Near]]) -> "Judge":
        """Return a judge of the same prompts with other places shown."""
        prompts = [
            Shown(prompt.tokens, new) for prompt, new in zip(self.prompts, places, strict=True)
        ]
        other = Judge(
            self.model, prompts, self.dtype, rewritten=self.rewritten, unturned=self.unturned
        )
        other.parts = self.parts
        other.show([prompt.places for prompt in prompts])
        return other

    def trial_near(self, places: Sequence[Mapping[str, Near]], place: str) -> list[Near]:
        """Return what a place should be on each prompt if other places were shown."""
        return [
            Evaluator(self.model, prompt.tokens, new, parts=self.parts).near(place)
            for prompt, new in zip(self.prompts, places, strict=True)
        ]

    def expected(
        self, place: str, mistakes: Iterable[Mistake] = (), p: Precision | None = None
    ) -> list[Near]:
        """Return what a place should be on each prompt, with some mistakes made or none."""
        mistakes = tuple(mistakes)
        if not mistakes and p is None:
            if place not in self._known:
                self._known[place] = [
                    self._granted(place, expected(each, place, self.unit))
                    for each in self._evaluators
                ]
            return self._known[place]
        return [
            self._granted(place, near) for near in self._with_mistakes(place, mistakes, p or self.p)
        ]

    def suppose(self, place: str, nears: list[Near]) -> None:
        """Take what a place should be on each prompt as known already."""
        self._known[place] = nears

    def nearly(self, place: str) -> list[Near]:
        """Return what a place should be on each prompt, with its bound or less than that."""
        if place in self._known or self.estimated(place):
            return self.expected(place)
        if place not in self._less:
            self._less[place] = [
                self._granted(place, expected(each, place, self.unit)) for each in self._samplers
            ]
        return self._less[place]

    def _granted(self, place: str, near: Near) -> Near:
        """Return what is looked up in rewritten weights with the roundings of the rewriting."""
        if not self.rewritten or place not in ("embed", "resid_pre.0"):
            return near
        largest = np.abs(near.value).max(axis=-1, keepdims=True)
        return Near(near.value, near.error + 8 * self.unit * (np.abs(near.value) + largest))

    def _with_mistakes(self, place: str, mistakes: tuple[Mistake, ...], p: Precision) -> list[Near]:
        return [
            expected(
                Evaluator(
                    self.model,
                    prompt.tokens,
                    prompt.places,
                    p,
                    mistakes,
                    parts=self.parts,
                ),
                place,
                self.unit,
            )
            for prompt in self.prompts
        ]

    def quick(self, place: str, mistake: Mistake, number: int = 0) -> Near:
        """Return what a place should be on a prompt with a mistake made, and no bound."""
        if number:
            prompt = self.prompts[number]
            plain = Evaluator(self.model, prompt.tokens, prompt.places, parts=self.parts)
            return plain.with_mistake(mistake).near(place)
        return self.plain(place).with_mistake(mistake).near(place)

    def plain(self, place: str) -> Evaluator:
        """Return what has computed a place on the first prompt, without mistakes and bounds."""
        if self._plain is None:
            first = self.prompts[0]
            self._plain = Evaluator(self.model, first.tokens, first.places, parts=self.parts)
        self._plain.near(place)
        return self._plain

    def bounded(self, place: str) -> list[Near]:
        """Return what a place should be with the guaranteed bound, where one can be carried."""
        sure = precision(self.dtype)
        return [
            Near(near.value, near.error * sure.doubled)
            for near in (
                Evaluator(self.model, prompt.tokens, prompt.places, sure, parts=self.parts).near(
                    place
                )
                for prompt in self.prompts
            )
        ]

    def ratio(
        self, place: str, mistakes: Iterable[Mistake] = (), p: Precision | None = None
    ) -> float:
        """Return the largest error/bound of a place."""
        nears = self.expected(place, mistakes, p)
        return max(
            ratio_of(prompt.places[place], near)
            for prompt, near in zip(self.prompts, nears, strict=True)
        )

    def within(self, place: str, nears: Sequence[Near]) -> bool:
        """Return whether a place is, on every prompt, what these say."""
        return all(
            ratio_of(prompt.places[place], near) <= 1
            for prompt, near in zip(self.prompts, nears, strict=True)
        )

    def tells(self, place: str) -> bool:
        """Return whether a place is right, and could have been wrong: see `telling`."""
        return self.ratio(place) <= 1 and all(map(telling, self.expected(place)))

    def estimated(self, place: str) -> bool:
        """Return whether the distance granted to a place is measured and not a bound."""
        return self._evaluators[0].hidden(place) > FAR

    def remember(self, place: str) -> float:
        """Judge a place, keep its ratio and those of its heads, and return it.

        The ratio of a place that is right may be more than its error/bound, and is at most 1.
        """
        self._forget(place)
        heads = self._by_head(place, self.nearly(place))
        if not max(heads) <= 1:
            heads = self._by_head(place, self.expected(place))
        if kind_of(place) in OF_HEADS:
            self.heads[place] = heads
        self.ratios[place] = max(heads)
        free = sum(unclaimed(place, near) for near in self.nearly(place))
        if free:
            self.notes.append(f"not judged: {free} entries of {place}, which rounding may undo")
        return self.ratios[place]

    def _by_head(self, place: str, nears: Sequence[Near]) -> tuple[float, ...]:
        """Return the largest error/bound of a place, of each head where it has heads."""
        every = []
        for prompt, near in zip(self.prompts, nears, strict=True):
            shown = prompt.places[place]
            if kind_of(place) in OF_HEADS:
                pairs = [
                    (Near(shown.value[h], shown.error[h]), Near(near.value[h], near.error[h]))
                    for h in range(len(near.value))
                ]
            else:
                pairs = [(shown, near)]
            every.append([ratio_of(*pair) for pair in pairs])
        return tuple(max(each) for each in zip(*every, strict=True))

    def _forget(self, place: str) -> None:
        """Forget what was computed of the layers before the last one: the walk has passed them."""
        layer = layer_of(place) or 0
        for each in (*self._evaluators, *self._samplers):
            each.forget(layer)
        for known in (self._known, self._less):
            for name in [*known]:
                number = layer_of(name)
                if number is not None and number < layer:
                    del known[name]

    def finding(self, place: str, diagnosis: str, kind: str = "fault", note: str = "") -> Finding:
        """Return what is to be said about a place that is not what it should be."""
        nears = self.expected(place)
        ratio, error, bound = 0.0, 0.0, 0.0
        entry: tuple[int, ...] = ()
        for prompt, near in zip(self.prompts, nears, strict=True):
            found = _worst(prompt.places[place], near)
            if found[0] >= ratio:
                ratio, error, bound, entry = found
        head = None
        if kind_of(place) in OF_HEADS:
            bad = [h for h, each in enumerate(self.heads.get(place, ())) if not each <= 1]
            head = bad[0] if bad and len(bad) < self.model.n_heads else None
        return Finding(
            place=place,
            layer=layer_of(place),
            head=head,
            error=error,
            bound=bound,
            ratio=ratio,
            diagnosis=diagnosis,
            kind=kind,
            estimated=self.estimated(place),
            entry=entry,
            note=note,
        )

    def readers(self, places: set[str]) -> list[str]:
        """Return the shown places judged by one of these, at once or through hidden ones."""
        found, config = [], self.model.config
        touched = set(places)
        shown = self.prompts[0].places
        for place in place_names(config):
            if place in places or not touched & set(inputs_of(config, place)):
                continue
            if place in shown:
                found.append(place)
            else:
                touched.add(place)
        return found


def scaled(nears: Iterable[Near], factor: float) -> list[Near]:
    """Return the same values with their distances that many times as far."""
    return [Near(near.value, near.error * factor) for near in nears]


def telling(near: Near) -> bool:
    """Return whether being within a bound says something: it is less than what it is a bound of.

    By their mean squares. Where the bound is infinite nothing is claimed, as of hidden scores.
    """
    claimed = ~np.isposinf(near.error)
    bound, value = near.error[claimed], near.value[claimed]
    return bool((bound**2).sum() <= (value**2).sum()) and bool(claimed.any())


def unclaimed(place: str, near: Near) -> int:
    """Return of how many entries nothing is claimed, but for scores that are hidden."""
    if kind_of(place) == "scores":
        near = Near(near.value, np.where(causal_mask(near.value.shape[-1]), near.error, 0.0))
    if near.exact or np.isfinite(near.error.max()):
        return 0
    return int(np.isposinf(near.error).sum())


def ratio_of(shown: Near, near: Near) -> float:
    """Return the largest error/bound; what is not a number is infinitely wrong."""
    bound = near.error if shown.exact else near.error + shown.error
    return worst_ratio(shown.value, near.value, bound)


def _worst(shown: Near, near: Near) -> tuple[float, float, float, tuple[int, ...]]:
    bound = np.broadcast_to(near.error + shown.error, near.value.shape)
    with np.errstate(all="ignore"):
        error = np.abs(shown.value - near.value)
        ratio = np.where(error == 0, 0.0, error / bound)
    ratio = np.where(np.isposinf(bound), 0.0, np.where(np.isnan(ratio), np.inf, ratio))
    entry = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratio)), ratio.shape))
    return float(ratio[entry]), float(error[entry]), float(bound[entry]), entry


def seen_scores(near: Near) -> Near:
    """Return scores with zeros where the causal mask hides them: those are compared nowhere."""
    seen = causal_mask(near.value.shape[-1])
    return Near(np.where(seen, near.value, 0.0), near.error)
