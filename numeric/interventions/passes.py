r"""The forward pass with replacements: $f(x \mid do(f^c(x) = \tilde h))$.

A pass goes through the hook points in order. Each activation is computed from those that it reads,
by the operations that the rounding bounds and the audit use, and then replaced where an
intervention says so; what does not depend on a replacement is taken from the unchanged pass. A
replaced `head_out` changes `attn_out` by the difference, as `attn_out` is the sum over the heads.

Source: Pearl 2009 (interventions); Vig et al. 2020; Geiger et al. 2021; Ferrando et al. 2024, “A
Primer on the Inner Workings of Transformer-based Language Models”, “Causal Interventions”.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.block import inputs_of, kind_of, place_names
from otimes.numeric.forward import Places
from otimes.numeric.interventions.hooks import (
    NAMED,
    Hook,
    Replacement,
    by_place,
    changeable_hook,
    checked_hook,
    replaced,
)
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import Prompts, is_batch, read_prompts
from otimes.numeric.rounding.activations import OPERATIONS, At, Weights
from otimes.numeric.rounding.linear import Near
from otimes.numeric.rounding.precision import VALUES_ONLY


def intervene(
    model: ModelSource,
    tokens: Prompts,
    interventions: Mapping[str | Hook, Replacement],
    *,
    source: Prompts | None = None,
    prompts: Prompts | None = None,
    noise: float = 1.0,
    seed: int = 0,
    record: Collection[str] | None = None,
) -> Places:
    """Return the activations of a forward pass in which some are replaced, by name.

    `interventions` maps hook points, as names or `hook(name, heads, positions)`, to what replaces
    them: a number, an array of the shape of the part (or one that broadcasts to it), a function of
    the part, or

    - "zero": zeros (zero ablation);
    - "mean": the mean over `prompts`, which have the length of `tokens` (mean ablation);
    - "resample": the activation on the prompt `source`, of that length (resample ablation);
    - "noise": the activation plus normal noise of standard deviation `noise`, drawn from `seed`.

    The shapes are those of `Model.forward`, with an axis of prompts first for a batch of prompts.
    With `record` only the activations named in it are returned. An activation that follows from
    replaced ones is recorded as it then is.

    Proved by: patching_with_own_value_changes_nothing, patching_twice_is_patching_once.

    >>> plain = load_model("two_layer").forward("x = 1")
    >>> changed = intervene("two_layer", "x = 1", {"head_out.1": "zero"})
    >>> bool(np.allclose(changed["final"], plain["resid_pre.1"]))
    True

    Raises: OtimesError for an unknown hook point, head or position, or an invalid prompt;
    ShapeError for a value of the wrong shape.
    """
    loaded = load_model(model)
    known = place_names(loaded.config)
    if isinstance(record, str) or not isinstance(record, Collection | None):
        raise OtimesError(f"record is a list of hook points such as ['logits'], got {record!r}")
    for place in record or ():
        checked_hook(loaded, place)
    rows = read_prompts(loaded, tokens)
    many = is_batch(tokens)
    each = _resolved(loaded, rows, interventions, source, prompts, noise, seed)
    passes = [Pass(loaded, row).edited(hooks) for row, hooks in zip(rows, each, strict=True)]
    kept = [name for name in known if record is None or name in record]
    return {
        name: np.stack([each[name] for each in passes]) if many else passes[0][name]
        for name in kept
    }


def resolved(
    model: Model,
    tokens: np.ndarray,
    interventions: Mapping[str | Hook, Replacement],
    *,
    source: Prompts | None = None,
    prompts: Prompts | None = None,
    noise: float = 1.0,
    seed: int = 0,
) -> dict[Hook, Any]:
    """Return the interventions on one prompt as numbers, arrays or functions, by hook."""
    (hooks,) = _resolved(model, tokens[None], interventions, source, prompts, noise, seed)
    return hooks


def _resolved(
    model: Model,
    rows: np.ndarray,
    interventions: Mapping[str | Hook, Replacement],
    source: Any,
    prompts: Any,
    noise: float,
    seed: int,
) -> list[dict[Hook, Any]]:
    if not isinstance(interventions, Mapping):
        raise OtimesError(
            "interventions map hook points to what replaces them, such as {'z.1': 'zero'}; got"
            f" {interventions!r}"
        )
    hooks = {changeable_hook(model, each): by for each, by in interventions.items()}
    sources = _sources(model, source, len(rows), rows.shape[1])
    means = _means(model, hooks, prompts, rows.shape[1])
    return [
        {
            each: _value(model, each, by, sources[number], means, (noise, seed, number))
            for each, by in hooks.items()
        }
        for number in range(len(rows))
    ]


def _sources(model: Model, source: Any, count: int, n_pos: int) -> list[Places | None]:
    """Return the recorded activations of the source of each prompt."""
    if source is None:
        return [None] * count
    rows = read_prompts(model, source)
    if len(rows) not in (1, count):
        raise OtimesError(
            f"{len(rows)} source prompts for {count}: give one, or one for each prompt"
        )
    _same_length(rows.shape[1], n_pos, "source")
    recorded = [Pass(model, row).places for row in rows]
    return [*recorded] * (count if len(rows) == 1 else 1)


def _same_length(given: int, n_pos: int, what: str) -> None:
    if given != n_pos:
        raise ShapeError(
            f"the prompt has {n_pos} tokens and `{what}` has {given}: activations of one length"
            " can be exchanged"
        )


def _means(model: Model, hooks: Mapping[Hook, Any], prompts: Any, n_pos: int) -> Places:
    wanted = [each.name for each, by in hooks.items() if isinstance(by, str) and by == "mean"]
    if not wanted:
        return {}
    if prompts is None:
        raise OtimesError(f"{wanted[0]}: 'mean' needs `prompts`, over which the mean is taken")
    rows = read_prompts(model, prompts)
    _same_length(rows.shape[1], n_pos, "prompts")
    total: Places = {}
    for row in rows:
        places = model.forward(row, wanted)
        for name in wanted:
            total[name] = total.get(name, 0.0) + places[name] / len(rows)
    return total


def _value(
    model: Model,
    asked: Hook,
    by: Any,
    source: Places | None,
    means: Places,
    noise: tuple[float, int, int],
) -> Any:
    """Return a replacement as a number, an array or a function."""
    if not isinstance(by, str):
        return by
    if by not in NAMED:
        raise OtimesError(
            f"{asked}: the replacement {by!r} is unknown; it is a number, an array, a function,"
            f" or one of {', '.join(map(repr, NAMED))}"
        )
    if by == "zero":
        return 0.0
    if by == "mean":
        return means[asked.name]
    if by == "resample":
        if source is None:
            raise OtimesError(f"{asked}: 'resample' needs `source`, the prompt it is taken from")
        return source[asked.name]
    size, seed, number = noise
    if not isinstance(size, int | float | np.floating) or not 0 <= size < np.inf:
        raise OtimesError(f"noise must be a finite, non-negative number, got {size!r}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise OtimesError(f"seed must be a non-negative integer, got {seed!r}")
    order = place_names(model.config).index(asked.name)
    rng = np.random.default_rng([seed, number, order])
    return lambda part: part + size * rng.standard_normal(part.shape)


class Parts:
    """The weights of a model in float64, converted once for many passes."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.held: dict[tuple[str, Any], np.ndarray] = {}

    def part(self, name: str, index: Any = slice(None)) -> np.ndarray:
        """Return a tensor, or its part at a layer; parts of other kinds are not kept."""
        if not isinstance(index, int):
            return self.model.part(name, index)
        if (name, index) not in self.held:
            self.held[name, index] = self.model.part(name, index)
        return self.held[name, index]


class Pass:
    """A recorded pass on one prompt, from which edited passes are made."""

    def __init__(self, model: Model, tokens: np.ndarray, parts: Parts | None = None) -> None:
        self.model, self.config, self.tokens = model, model.config, np.asarray(tokens)
        self.parts = Parts(model) if parts is None else parts
        self.order = place_names(model.config)
        self.places: Places = {}
        self.places = self._run({}, set(self.order))

    def edited(self, hooks: Mapping[Hook, Any]) -> Places:
        """Return the activations with replacements: numbers, arrays or functions, by hook."""
        return self._run(by_place(hooks), set())

    def only(self, hooks: Mapping[Hook, Any], name: str) -> np.ndarray:
        """Return one activation of the edited pass; later ones are not computed."""
        return self._run(by_place(hooks), set(), name)[name]

    def _run(
        self, edits: Mapping[str, list[tuple[Hook, Any]]], changed: set[str], last: str = ""
    ) -> Places:
        places = dict(self.places)
        for name in self.order:
            reads = inputs_of(self.config, name)
            summed = kind_of(name) == "attn_out" and self._head_out(name) in changed
            again = name in changed or summed or any(read in changed for read in reads)
            if again:
                places[name] = self._computed(name, places)
                if summed and self.places:
                    places[name] = places[name] + self._difference(name, places)
            for asked, by in edits.get(name, ()):
                places[name] = replaced(asked, places[name], by)
            if again or name in edits:
                changed.add(name)
            if name == last:
                break
        return places

    def _head_out(self, attn_out: str) -> str:
        return attn_out.replace("attn_out", "head_out")

    def _difference(self, attn_out: str, places: Places) -> np.ndarray:
        """Return what replaced outputs of heads add to what `attn_out` is computed as."""
        name = self._head_out(attn_out)
        difference: np.ndarray = (places[name] - self._computed(name, places)).sum(axis=0)
        return difference

    def _computed(self, name: str, places: Places) -> np.ndarray:
        """Return an activation, from those that it reads."""
        reads = inputs_of(self.config, name)
        inputs = {
            kind_of(read): Near.exactly(self.tokens if read == "tokens" else places[read])
            for read in reads
        }
        n_pos = len(self.tokens)
        weights = Weights(self.parts, name, n_pos)
        config = self.config if weights.layer is None else self.config.of_layer(weights.layer)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value = OPERATIONS[kind_of(name)](
                At(config, inputs, weights, n_pos, frozenset(), VALUES_ONLY)
            ).value
        if not np.isfinite(value).all():
            raise OtimesError(
                f"{name} is not finite: float64 overflows in this pass, or a norm divides by zero"
            )
        return value
