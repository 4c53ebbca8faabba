"""The reference forward pass, one operation at a time, from recorded activations.

An `Evaluator` has the activations recorded on one prompt. `near` computes any activation from the
nearest recorded ones, operation by operation, with the error bound of each; `hidden` counts the
operations between. With *mistakes* some operations are replaced by wrong ones. So one definition of
each operation serves the reference, the diagnosis, and a pass from the tokens. Over many operations
error bounds become useless: see `error_estimates`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec

import numpy as np

from otimes.numeric.block import ENDS, inputs_of, kind_of, place_names
from otimes.numeric.config import Config
from otimes.numeric.model import Model
from otimes.numeric.rounding.activations import OPERATIONS, At, Weights
from otimes.numeric.rounding.linear import Array, Near
from otimes.numeric.rounding.precision import VALUES_ONLY, Precision, known

Operation = Callable[[At], Near]
P = ParamSpec("P")
Act = Callable[[At, Operation], Near]
"""What is computed in the place of an operation, from its arguments and the right one."""


def makes_act(wrong: Callable[Concatenate[At, Operation, P], Near]) -> Callable[P, Act]:
    """Return the function that gives an act for the parameters behind `at` and `operation`.

    >>> @makes_act
    ... def times(at, operation, factor):
    ...     near = operation(at)
    ...     return Near(factor * near.value, factor * near.error)
    >>> twice = times(2.0)
    >>> float(twice(None, lambda at: Near.exactly(np.ones(1))).value[0])
    2.0
    """

    @wraps(wrong)
    def made(*args: P.args, **kwargs: P.kwargs) -> Act:
        return lambda at, operation: wrong(at, operation, *args, **kwargs)

    return made


NORMS = ("ln_embed", "ln1", "ln1_post", "ln2", "ln2_post", "ln_final")

FAR = 2
"""Error bounds are propagated over at most this many unrecorded operations."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong version of some operations.

    `says` is its description, unique among the mistakes of a model. `acts` maps kinds of hook
    points to functions of the inputs of the operation and of the right operation, which return the
    wrong output. `layer` None: in every layer; `where` is a text on its location, "" for
    everywhere.
    """

    says: str
    acts: Mapping[str, Act]
    rank: int = 1
    layer: int | None = None
    where: str = ""
    coarse: float = 0.0
    """The unit roundoff of a step that is right, but computed in lower precision."""
    coarse_step: bool = False
    """Whether it rounds to lower precision, where ties may be rounded the other way."""
    in_first: bool = False
    """Whether it would show in the first layer: if that is right, it was not made."""

    def at(self, layer: int) -> "Mistake":
        """Return the same mistake in one layer only."""
        return replace(self, layer=layer, where=f" (in layer {layer})")


@dataclass(slots=True)
class Remembered:
    """A model that caches the float64 weights of one layer at a time."""

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
    """The expected activations of a pass on one prompt, from the recorded ones.

    `shown` are recorded activations by name, in float64, each with its uncertainty, which is 0 for
    what was recorded exactly. `known` evaluates the same pass without mistakes and bounds:
    activations before the first mistake are taken from it.
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
        self._deep: Mapping[str, int] = {}

    def _first_mistake(self) -> int:
        """Return the index of the first hook point that a mistake changes."""
        order = _order(self.config)
        names = [placed(kind, m.layer or 0) for m in self.mistakes for kind in m.acts]
        return min((order[name] for name in names if name in order), default=len(order))

    def has(self, place: str) -> Near:
        """Return an activation as it was recorded, or else computed."""
        if place == "tokens":
            return Near.exactly(self.tokens)
        return self.shown[place] if place in self.shown else self.near(place)

    def near(self, place: str) -> Near:
        """Return an activation computed from the nearest recorded ones."""
        if place not in self.computed:
            self._compute(place)
        return self.computed[place]

    def with_mistake(self, mistake: Mistake) -> "Evaluator":
        """Return an evaluator with a mistake, which reuses the activations before it."""
        return Evaluator(
            self.model, self.tokens, self.shown, mistakes=(mistake,), parts=self.parts, known=self
        )

    def needed(self, place: str) -> list[str]:
        """Return the unrecorded hook points that one is computed from, in order."""
        found, waiting = set(), [place]
        while waiting:
            for read in inputs_of(self.config, waiting.pop()):
                if read != "tokens" and read not in self.shown and read not in found:
                    found.add(read)
                    waiting.append(read)
        return [name for name in place_names(self.config) if name in found]

    def _compute(self, place: str) -> None:
        """Compute an activation and its inputs, without recursion: a pass may be hundreds deep."""
        waiting, config, known = [place], self.config, self.known
        order = _order(config) if known is not None else {}
        while waiting:
            if known is not None and order[waiting[-1]] < self._begin:
                name = waiting.pop()
                self.computed[name] = known.near(name)
                continue
            needed = [
                read
                for read in inputs_of(config, waiting[-1])
                if read != "tokens" and read not in self.shown and read not in self.computed
            ]
            if needed:
                waiting.extend(needed)
                continue
            name = waiting.pop()
            if name not in self.computed:
                self.computed[name] = self._known_or_made(name)

    def _known_or_made(self, place: str) -> Near:
        """Return the activation of `known` if no mistake changes it, or compute it."""
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

    def made(self, place: str, mistakes: Iterable[Mistake] | None = None) -> Near:
        """Return the output of the operation of a hook point on its inputs.

        `mistakes` are made in it, by default those of the evaluator that act there.
        """
        kind, layer = kind_of(place), layer_of(place)
        reads = inputs_of(self.config, place)
        inputs = {kind_of(read): self.has(read) for read in reads}
        hidden = frozenset(kind_of(r) for r in reads if r != "tokens" and r not in self.shown)
        n_pos = len(self.tokens)
        weights = Weights(self.parts, place, n_pos)

        def read(name: str) -> Near:
            return self.has(name if "." in name or layer is None else placed(name, layer))

        operation = OPERATIONS[kind]
        for mistake in self.acting(place) if mistakes is None else mistakes:
            operation = _acting(mistake.acts[kind], operation)
        config = self.config if layer is None else self.config.of_layer(layer)
        at = At(config, inputs, weights, n_pos, hidden, self.p, read)
        with np.errstate(all="ignore"):
            near = operation(at)
        return near if near.exact else Near(near.value, known(near.error))

    def acting(self, place: str) -> list[Mistake]:
        """Return the mistakes that change a hook point."""
        kind, layer = kind_of(place), layer_of(place)
        return [m for m in self.mistakes if kind in m.acts and m.layer in (None, layer)]

    def hidden(self, place: str) -> int:
        """Return the number of unrecorded operations in a row before a hook point."""
        if not self._deep:
            self._deep = _in_a_row(self.config, frozenset(self.shown))
        return self._deep[place] - (0 if passed_on(self.config, place) else 1)

    def forget(self, layer: int) -> None:
        """Drop computed activations of layers before the last one; they can be recomputed."""
        for name in [*self.computed]:
            number = layer_of(name)
            if number is not None and number < layer - 1:
                del self.computed[name]


@lru_cache(maxsize=64)
def _order(config: Config) -> dict[str, int]:
    return {name: index for index, name in enumerate(place_names(config))}


@lru_cache(maxsize=64)
def _in_a_row(config: Config, shown: frozenset[str]) -> Mapping[str, int]:
    """Return for each hook point the number of unrecorded operations in a row up to it."""
    deep: dict[str, int] = {}
    for name in place_names(config):
        before = [deep[r] for r in inputs_of(config, name) if r in deep and r not in shown]
        deep[name] = (0 if passed_on(config, name) else 1) + max(before, default=0)
    return deep


def _acting(act: Act, operation: Operation) -> Operation:
    return lambda at: act(at, operation)


@lru_cache(maxsize=4096)
def layer_of(place: str) -> int | None:
    """Return the layer of a hook point, None at the ends.

    >>> layer_of("q.3"), layer_of("logits")
    (3, None)
    """
    return int(place.rpartition(".")[2]) if "." in place else None


def placed(kind: str, layer: int) -> str:
    """Return the name of the hook point of a kind, in that layer unless it is at the ends."""
    return kind if kind in ENDS else f"{kind}.{layer}"


def passed_on(config: Config, place: str) -> bool:
    """Return whether a hook point is a second name of another one, without an operation."""
    kind = kind_of(place)
    if kind == "embed":
        return config.embed_scale == 1
    if kind in ("resid_pre", "final"):
        first = place == "resid_pre.0" or (kind == "final" and not config.n_layers)
        return not (first and config.positions == "learned" and not config.embed_norm)
    if kind == "qk_in":
        return config.positions != "shortformer"
    return kind == "resid_post" and not config.d_mlp


@lru_cache(maxsize=4096)
def made_at(config: Config, place: str) -> str:
    """Return the hook point that a hook point is a second name of, or itself.

    >>> made_at(Config(2, 1, 4, 2, 10, 8, "rotary", rotary_dims=2, norm="rms"), "qk_in.1")
    'ln1.1'
    """
    while kind_of(place) != "embed" and passed_on(config, place):
        (place,) = inputs_of(config, place)
    return place


@lru_cache(maxsize=4096)
def names_of(config: Config, place: str) -> tuple[str, ...]:
    """Return a hook point and its second names, in the order of the forward pass."""
    return tuple(each for each in place_names(config) if made_at(config, each) == place)
