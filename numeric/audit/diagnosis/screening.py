"""Rule out mistakes that cannot explain an activation, many at a time.

If only a late activation was recorded, each trial of a mistake takes a forward pass, and there are
many mistakes, each made everywhere and in each layer. Two things make that fast. The pass is
causal: the first wrong position must be explained from the first tokens alone. And passes that
differ in one operation share the others: they are batched, each mistake in its own rows.

A mistake may itself look at later positions. This is tested by running its operation on the whole
prompt and on the first tokens. If these differ, a mistake in one layer is made on the whole prompt,
and later operations on the first tokens; a mistake in several layers is not ruled out.

The remaining mistakes are compared in full (`explain`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from otimes.numeric.audit.reference.edits import unturned, with_config, with_weights
from otimes.numeric.audit.reference.evaluator import Evaluator, Mistake, layer_of
from otimes.numeric.block import inputs_of, kind_of
from otimes.numeric.progress import tracked
from otimes.numeric.rounding.activations import OPERATIONS, At, Weights
from otimes.numeric.rounding.functions import rotated
from otimes.numeric.rounding.linear import Array, Near
from otimes.numeric.rounding.precision import VALUES_ONLY

ROWS = 512
"""The number of rows in a batch, which has at least 16 mistakes."""

COLUMNS = 256
"""The number of logits of a row that are compared."""

ALIKE = 1e-12
"""The relative difference by rounding of an operation computed in two ways."""


Causal = dict[tuple[str, int, str, frozenset[str]], bool]
"""Whether a mistake is causal, by hook point, number of tokens, mistake and kinds."""


class Sieve:
    """A filter that rules out mistakes which do not give the recorded activation.

    `whole` evaluates the pass without mistakes; `bound` is the tolerance of correct code, `near_to`
    that of a mistake that explains the activation. `causal` caches which mistakes are causal.
    """

    def __init__(
        self,
        whole: Evaluator,
        place: str,
        shown: Array,
        bound: Array,
        near_to: float,
        causal: Causal | None = None,
    ) -> None:
        self.whole, self.place, self.shown, self.near_to = whole, place, shown, near_to
        self.causal: Causal = {} if causal is None else causal
        self.order = [*whole.needed(place), place]
        self.of_kind: dict[str, list[str]] = {}
        for name in self.order:
            self.of_kind.setdefault(kind_of(name), []).append(name)
        off = np.abs(shown - whole.near(place).value)
        axes = tuple(axis for axis in range(off.ndim) if axis != off.ndim - 2)
        wrong = [np.flatnonzero((off > far).any(axis=axes)) for far in (near_to, bound)]
        first = next((int(each[0]) for each in wrong if each.size), 0)
        lengths = sorted({min(2, off.shape[-2]), first + 1})
        self.columns: Array | None = None
        if kind_of(place) == "logits":
            self.columns = _columns(off[first])
            weights = Weights(whole.parts, place, len(whole.tokens))
            self.unembedded = weights.model.part("W_U", (slice(None), self.columns))
        self.prompts = [FirstTokens(self, n) for n in lengths]

    def kept(self, mistakes: Iterable[Mistake], waiting: str) -> list[Mistake]:
        """Return the mistakes that are not ruled out; `waiting` labels the progress bar."""
        kept = list(mistakes)
        for prompt in self.prompts:
            kept = prompt.kept(kept, waiting)
        return kept

    def of_columns(self, at: At) -> At:
        """Return the inputs of the unembedding, for the columns that are compared."""
        assert self.columns is not None  # logits are compared nowhere else
        weights = {"W_U": self.unembedded}
        if at.config.has("b_U"):
            weights["b_U"] = at.weights["b_U"][self.columns]
        return with_config(with_weights(at, **weights), d_vocab=len(self.columns))

    def places(self, mistake: Mistake) -> list[str]:
        """Return the hook points that a mistake changes on the way to the activation."""
        names = [name for kind in mistake.acts for name in self.of_kind.get(kind, ())]
        made = [name for name in names if mistake.layer in (None, layer_of(name))]
        return sorted(made, key=self.order.index)

    def maker(self, mistake: Mistake) -> Evaluator:
        """Return an evaluator of the whole prompt with a mistake."""
        return self.whole.with_mistake(mistake)


def _columns(off: Array) -> Array:
    """Return the columns of the logits to compare: those with the largest errors, and more."""
    number = len(off)
    if number <= 2 * COLUMNS:
        return np.arange(number)
    farthest = np.argpartition(off, -COLUMNS // 2)[-COLUMNS // 2 :]
    return np.union1d(farthest, np.linspace(0, number - 1, COLUMNS // 2).astype(int))


def cut(near: Near, place: str, length: int) -> Near:
    """Return an activation on the first tokens only."""
    some = slice(length if kind_of(place) in ("scores", "pattern") else None)
    return Near(near.value[..., :length, some], near.error[..., :length, some])


@dataclass(slots=True)
class Trial:
    """A mistake, the hook points that it changes, and their values if it is not causal."""

    mistake: Mistake
    places: list[str]
    made: dict[str, Array] = field(default_factory=dict)


class FirstTokens:
    """The first tokens of the prompt, on which mistakes are evaluated in batches."""

    def __init__(self, sieve: Sieve, length: int) -> None:
        self.sieve, self.length = sieve, length
        whole = sieve.whole
        shown = {
            name: cut(near, name, length)
            for name, near in whole.shown.items()
            if name != sieve.place
        }
        self.plain = Evaluator(whole.model, whole.tokens[:length], shown, parts=whole.parts)
        self.shown = cut(Near.exactly(sieve.shown), sieve.place, length).value

    def kept(self, mistakes: list[Mistake], waiting: str) -> list[Mistake]:
        """Return the mistakes that are not ruled out by these tokens."""
        kept: set[int] = set()
        trials = []
        for mistake in tracked(mistakes, waiting):
            trial = self.trial(mistake)
            if trial is None:
                kept.add(id(mistake))
            elif trial.places:
                trials.append(trial)
        for chunk, values in self.made(trials, waiting):
            with np.errstate(invalid="ignore"):
                off = np.abs(values - self.compared(self.shown)).reshape(len(chunk), -1)
                near = off.max(axis=1, initial=0.0) <= self.sieve.near_to
            kept |= {id(trial.mistake) for trial, is_ in zip(chunk, near, strict=True) if is_}
        return [mistake for mistake in mistakes if id(mistake) in kept]

    def made(self, trials: list[Trial], waiting: str) -> Iterator[tuple[list[Trial], Array]]:
        """Yield batches of mistakes, with the compared entries of the activation under each.

        Early mistakes first: operations before all mistakes of a batch are computed once.
        """
        trials = sorted(trials, key=lambda trial: self.sieve.order.index(trial.places[0]))
        many = max(16, ROWS // self.length)
        chunks = [trials[start : start + many] for start in range(0, len(trials), many)]
        for chunk in tracked(chunks, waiting):
            yield chunk, _Stack(self, chunk).values()

    def compared(self, array: Array) -> Array:
        """Return the entries that are compared."""
        columns = self.sieve.columns
        return array if columns is None else array[..., columns]

    def trial(self, mistake: Mistake) -> Trial | None:
        """Return the trial of a mistake on the first tokens, or None if that is impossible."""
        trial = Trial(mistake, self.sieve.places(mistake))
        if self._is_causal(mistake):
            return trial
        if len({layer_of(place) for place in trial.places}) > 1:
            return None
        maker, made = self.sieve.maker(mistake), list(trial.places)
        # A pattern over later keys is meaningless on the first tokens; z is not.
        if {kind_of(place) for place in made} & {"scores", "pattern"}:
            mixed = self.sieve.of_kind.get("z", [])
            made += [name for name in mixed if layer_of(name) == layer_of(made[0])]
        for name in made:  # copied, so that the array of the whole prompt is freed
            trial.made[name] = cut(maker.near(name), name, self.length).value.copy()
        return trial

    def _is_causal(self, mistake: Mistake) -> bool:
        """Return whether a mistake is causal: the same on the first tokens as in the prompt.

        Tested in the first and the last layer, for each kind of hook point separately.
        """
        key = self.sieve.place, self.length, mistake.says, frozenset(mistake.acts)
        causal = self.sieve.causal
        if key not in causal:
            causal[key] = all(
                self._alike(Mistake("", {kind: act}), name)
                for kind, act in mistake.acts.items()
                for name in _ends(self.sieve.of_kind.get(kind, []))
            )
        return causal[key]

    def _alike(self, mistake: Mistake, place: str) -> bool:
        every = self.sieve.whole.made(place, [mistake])
        if kind_of(place) == "pattern" and every.value[:, : self.length, self.length :].any():
            return False  # keys after the first tokens are attended to
        whole = cut(every, place, self.length).value
        first = self.plain.made(place, [mistake]).value
        if whole.shape != first.shape:
            return False
        return bool(np.abs(whole - first).max() <= ALIKE * np.abs(whole).max())


def _ends(names: list[str]) -> list[str]:
    return names if len(names) < 2 else [names[0], names[-1]]


class _Row(Evaluator):
    """One pass of a batch, with its mistake; `state` has the activations of all passes."""

    def __init__(
        self, plain: Evaluator, state: dict[str, Array], index: int, mistake: Mistake
    ) -> None:
        super().__init__(
            plain.model, plain.tokens, plain.shown, mistakes=(mistake,), parts=plain.parts
        )
        self.state, self.index = state, index

    def near(self, place: str) -> Near:
        """Return an activation of this pass."""
        if place in self.state:
            return Near.exactly(self.state[place][self.index])
        return super().near(place)


class _Stack:
    """A batch of passes on the same first tokens, each with its own mistake."""

    def __init__(self, prompt: FirstTokens, trials: list[Trial]) -> None:
        self.prompt, self.trials = prompt, trials
        self.plain = prompt.plain
        self.state: dict[str, Array] = {}
        self.rows = [
            _Row(self.plain, self.state, index, trial.mistake) for index, trial in enumerate(trials)
        ]
        self.acting: dict[str, list[int]] = {}
        for index, trial in enumerate(trials):
            for place in {*trial.places, *trial.made}:
                self.acting.setdefault(place, []).append(index)

    def values(self) -> Array:
        """Return the compared entries [pass, …], each pass with its mistake."""
        order = self.prompt.sieve.order
        start = min(order.index(trial.places[0]) for trial in self.trials)
        for place in order[start:]:
            layer = layer_of(place)
            value, last = self._together(place), place == order[-1]
            if place in self.acting:
                value = value.copy()
                for index in self.acting[place]:
                    made = self.trials[index].made.get(place)
                    own = self.rows[index].made(place).value if made is None else made
                    value[index] = self.prompt.compared(own) if last else own
            self.state[place] = value
            for name in [*self.state]:
                if layer is not None and (layer_of(name) or 0) < layer - 1 and name != "embed":
                    del self.state[name]
        return self.state[order[-1]]

    def _has(self, place: str) -> Array:
        """Return an activation in all passes, broadcast if no mistake comes before it."""
        if place in self.state:
            return self.state[place]
        value = self.plain.has(place).value
        return np.broadcast_to(value, (len(self.trials), *value.shape))

    def _together(self, place: str) -> Array:
        """Return an activation in all passes, computed without a mistake from those before it.

        A product with a weight is one matrix product for all passes.
        """
        config, kind, layer = self.plain.config, kind_of(place), layer_of(place)
        config = config if layer is None else config.of_layer(layer)
        number, length = len(self.trials), self.prompt.length
        if kind == "embed":
            value = self.plain.near(place).value
            return np.broadcast_to(value, (number, *value.shape))
        inputs = {kind_of(read): self._has(read) for read in inputs_of(self.plain.config, place)}
        if kind == "attn_out":  # [head, row, d_head]
            inputs["z"] = inputs["z"].swapaxes(0, 1).reshape(config.n_heads, number * length, -1)
        elif kind in FLAT:
            inputs = {name: each.reshape(number * length, -1) for name, each in inputs.items()}
        flat = kind in FLAT or kind == "attn_out"
        nears = {name: Near.exactly(each) for name, each in inputs.items()}
        weights = Weights(self.plain.parts, place, length)
        at = At(config, nears, weights, number * length if flat else length, p=VALUES_ONLY)
        if kind in ("q", "k") and config.positions == "rotary":
            at = unturned(at)
        if kind == "logits":
            at = self.prompt.sieve.of_columns(at)
        with np.errstate(all="ignore"):
            value = OPERATIONS[kind](at).value
        if kind in ("q", "k", "v"):
            value = value.reshape(config.n_heads, number, length, -1).swapaxes(0, 1)
            if at.config is not config:
                value = rotated(Near.exactly(value), *config.rotation, p=VALUES_ONLY).value
        return value.reshape(number, length, -1) if kind in (*FLAT[3:], "attn_out") else value


FLAT = ("q", "k", "v", "mlp_pre", "mlp_post", "mlp_out", "logits")
"""Operations on each row separately, with a weight matrix."""
