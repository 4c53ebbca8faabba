"""What a place should be, given what an implementation showed: the reference, step by step.

An `Evaluator` knows the places that were shown on one prompt. `near` computes any place from those
nearest to it, operation by operation, with the local bound of each; `hidden` counts how many
operations lie between. With *mistakes* some operations are replaced by what people write instead:
so one statement of each operation serves as the reference, as the diagnosis and as the rerun from
the tokens. Over many operations bounds carried along say nothing: see `measured`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from numeric.config import Config
from numeric.forward import place_names
from numeric.model import Model
from numeric.rounding.linear import Array, Near
from numeric.rounding.places import OPERATIONS, At, Weights, inputs_of, kind_of
from numeric.rounding.precision import UNIT_ROUNDOFF, VALUES_ONLY, Precision, known

Operation = Callable[[At], Near]
Act = Callable[[At, Operation], Near]

FAR = 2
"""Bounds are carried over at most so many operations that were not shown."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something that people compute instead of what is right.

    `acts` says by kind of place what happens there: it is given what the operation is given and
    the right operation, and returns what the mistaken code has. `layer` None: in every layer.
    """

    name: str
    says: str
    acts: Mapping[str, Act]
    rank: int = 1
    layer: int | None = None
    coarse: float = 0.0
    """The unit roundoff of a step that is right, but computed in a coarser type."""
    coarse_step: bool = False
    """Whether it rounds to a coarser type, where ties may be rounded the other way."""
    in_first: bool = False
    """Whether it would show in the first layer: where that is right, it was not made."""

    def at(self, layer: int | None) -> "Mistake":
        """Return the same mistake, made in one layer only."""
        return replace(self, layer=layer)


@dataclass(slots=True)
class Remembered:
    """A model that keeps the weights of one layer in float64, and forgets those of the last."""

    model: Model
    held: dict[tuple[str, Any], Array] = field(default_factory=dict)
    layer: Any = None

    def part(self, name: str, index: Any = slice(None)) -> Array:
        """Return entries of a tensor in float64."""
        if not isinstance(index, int):
            return self.model.part(name, index)
        if index != self.layer:
            self.held.clear()
            self.layer = index
        if (name, index) not in self.held:
            self.held[name, index] = self.model.part(name, index)
        return self.held[name, index]


class Evaluator:
    """What each place of a pass on one prompt should be, from the places that are shown.

    `shown` are places by name, in float64, each with how far it may be from what the implementation
    had: nothing for what was read off it. `known` computes the same without mistakes and without
    bounds: what no mistake has changed is taken from there.
    """

    def __init__(
        self,
        model: Model,
        tokens: Array,
        shown: Mapping[str, Near],
        p: Precision = VALUES_ONLY,
        mistakes: Iterable[Mistake] = (),
        parts: Remembered | None = None,
        known: "Evaluator | None" = None,
    ) -> None:
        self.model, self.config = model, model.config
        self.tokens = np.asarray(tokens)
        self.shown, self.p = shown, p
        self.mistakes = tuple(mistakes)
        self.parts = Remembered(model) if parts is None else parts
        self.known = known
        self._begin = 0 if known is None else self._first_mistake()
        self.computed: dict[str, Near] = {}
        self._deep: dict[str, int] = {}

    def _first_mistake(self) -> int:
        """Return where in the order of the places the first mistake is made."""
        order = _order(self.config)
        names = [placed(kind, m.layer or 0) for m in self.mistakes for kind in m.acts]
        return min((order[name] for name in names if name in order), default=len(order))

    def has(self, place: str) -> Near:
        """Return a place as the implementation showed it, or else computed."""
        if place == "tokens":
            return Near.exactly(self.tokens)
        return self.shown[place] if place in self.shown else self.near(place)

    def near(self, place: str) -> Near:
        """Return what a place should be, from the nearest places that are shown."""
        if place not in self.computed:
            self._compute(place)
        return self.computed[place]

    def with_mistake(self, mistake: Mistake) -> "Evaluator":
        """Return what computes the same with a mistake, and looks up here what comes before it."""
        return Evaluator(
            self.model, self.tokens, self.shown, mistakes=(mistake,), parts=self.parts, known=self
        )

    def needed(self, place: str) -> list[str]:
        """Return the places that were not shown and that a place is computed from, in order."""
        found, waiting = set(), [place]
        while waiting:
            for read in inputs_of(self.config, waiting.pop()):
                if read != "tokens" and read not in self.shown and read not in found:
                    found.add(read)
                    waiting.append(read)
        return [name for name in place_names(self.config) if name in found]

    def _compute(self, place: str) -> None:
        """Compute what a place needs first, without recursion: a pass may be hundreds deep."""
        waiting = [place]
        while waiting:
            if self.known is not None and _order(self.config)[waiting[-1]] < self._begin:
                name = waiting.pop()
                self.computed[name] = self.known.near(name)
                continue
            needed = [
                read
                for read in inputs_of(self.config, waiting[-1])
                if read != "tokens" and read not in self.shown and read not in self.computed
            ]
            if needed:
                waiting.extend(needed)
                continue
            name = waiting.pop()
            if name not in self.computed:
                self.computed[name] = self._known_or_made(name)

    def _known_or_made(self, place: str) -> Near:
        """Return what another evaluator knows, where a place is the same: no mistake reaches it."""
        known = self.known
        if known is None:
            return self.made(place)
        acting = self.acting(place)
        if not acting and all(
            self.computed.get(read) is known.computed.get(read)
            for read in inputs_of(self.config, place)
            if read not in self.shown
        ):
            return known.near(place)
        near = self.made(place)
        same = bool(acting) and np.array_equal(near.value, known.near(place).value)
        return known.near(place) if same else near

    def made(self, place: str) -> Near:
        """Return what the operation of a place makes of the places that it reads."""
        kind, layer = kind_of(place), layer_of(place)
        reads = inputs_of(self.config, place)
        inputs = {kind_of(read): self.has(read) for read in reads}
        hidden = frozenset(kind_of(r) for r in reads if r != "tokens" and r not in self.shown)
        n_pos = len(self.tokens)
        weights = Weights(self.parts, place, n_pos)

        def read(name: str) -> Near:
            return self.has(name if "." in name or layer is None else placed(name, layer))

        operation = OPERATIONS[kind]
        for mistake in self.acting(place):
            operation = _acting(mistake.acts[kind], operation)
        at = At(self.config, inputs, weights, n_pos, hidden, self.p, read)
        with np.errstate(all="ignore"):
            near = operation(at)
        return near if near.exact else Near(near.value, known(near.error))

    def acting(self, place: str) -> list[Mistake]:
        """Return the mistakes that are made at a place."""
        kind, layer = kind_of(place), layer_of(place)
        return [m for m in self.mistakes if kind in m.acts and m.layer in (None, layer)]

    def hidden(self, place: str) -> int:
        """Return how many operations that were not shown lie before a place, in a row."""
        deep = self._deep
        for name in () if deep else place_names(self.config):
            before = [
                deep[r] for r in inputs_of(self.config, name) if r in deep and r not in self.shown
            ]
            own = 0 if passed_on(self.config, name) else 1
            deep[name] = own + max(before, default=0)
        return deep[place] - (0 if passed_on(self.config, place) else 1)

    def forget(self, layer: int) -> None:
        """Forget what was computed of layers before the last one: it is computed again if asked."""
        for name in [*self.computed]:
            number = layer_of(name)
            if number is not None and number < layer - 1:
                del self.computed[name]


@lru_cache(maxsize=64)
def _order(config: Config) -> dict[str, int]:
    return {name: index for index, name in enumerate(place_names(config))}


def _acting(act: Act, operation: Operation) -> Operation:
    return lambda at: act(at, operation)


def unit_of(dtype: str) -> float:
    """Return the unit roundoff of a floating-point type."""
    return UNIT_ROUNDOFF[dtype]


@lru_cache(maxsize=4096)
def layer_of(place: str) -> int | None:
    """Return the layer of a place, None at the ends.

    >>> layer_of("q.3"), layer_of("logits")
    (3, None)
    """
    return int(place.rpartition(".")[2]) if "." in place else None


def placed(kind: str, layer: int) -> str:
    """Return the name of a place of that kind, in that layer if it is one of a layer."""
    return kind if kind in ("embed", "final", "ln_final", "logits") else f"{kind}.{layer}"


def passed_on(config: Config, place: str) -> bool:
    """Return whether a place is another one under a second name, so that nothing is computed."""
    kind = kind_of(place)
    if kind == "embed":
        return True
    if kind in ("resid_pre", "final"):
        first = place == "resid_pre.0" or (kind == "final" and not config.n_layers)
        return not (first and config.positions == "learned")
    if kind == "qk_in":
        return config.positions != "shortformer"
    return kind == "resid_post" and not config.d_mlp
