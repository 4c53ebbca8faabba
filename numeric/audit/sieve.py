"""Which of many mistakes may explain a place far behind: all that cannot are ruled out together.

Where only a far place was shown, a mistake is tried by a pass with it, and there are many, each to
be made everywhere and in each layer. Two things make that quick. A pass is causal: what is wrong at
the first wrong position must be explained there, from the first tokens alone. And passes that
differ in one operation have all others in common: they are made side by side, their rows stacked,
each mistake in its own rows.

A mistake may itself look at later positions. That is found out by making its operation on the
whole prompt and on the first tokens. Where these differ, a mistake in one layer is made on the
whole prompt and only what follows on the first tokens; one in several layers is not ruled out.

Nothing is decided here: what remains is compared in full (`diagnose`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from numeric.audit.change import with_config, with_weights
from numeric.audit.evaluate import Evaluator, Mistake, layer_of
from numeric.progress import tracked
from numeric.rounding.functions import rotated
from numeric.rounding.linear import Array, Near
from numeric.rounding.places import OPERATIONS, At, Weights, inputs_of, kind_of
from numeric.rounding.precision import VALUES_ONLY

ROWS = 512
"""So many rows are stacked at a time, and 16 mistakes at least."""

COLUMNS = 256
"""So many logits of a row are compared."""

ALIKE = 1e-12
"""An operation made in two ways differs by less than this of its largest entry: by rounding."""


Causal = dict[tuple[str, int, str, frozenset[str]], bool]
"""By place, number of first tokens and mistake: whether it makes of those what it makes of all."""


class Sieve:
    """Rules out mistakes that make of a place of a prompt another one than was shown.

    `whole` computes the place without a mistake; `bound` is how far correct code may be from that,
    and `near_to` how far a mistake that explains the place may be from it, rounding aside. What is
    found out of mistakes is kept in `causal`.
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
        lengths = sorted({1, 2, first + 1})
        self.columns: Array | None = None
        if kind_of(place) == "logits":
            self.columns = _columns(off[first])
            weights = Weights(whole.parts, place, len(whole.tokens))
            self.unembedded = weights.model.part("W_U", (slice(None), self.columns))
        self.prompts = [FirstTokens(self, n) for n in lengths if n <= off.shape[-2]]

    def kept(self, mistakes: Iterable[Mistake], waiting: str) -> list[Mistake]:
        """Return the mistakes that are not ruled out; `waiting` is said to a person who waits."""
        kept = list(mistakes)
        for prompt in self.prompts:
            kept = prompt.kept(kept, waiting)
        return kept

    def of_columns(self, at: At) -> At:
        """Return what the unembedding is given, for the columns that are compared."""
        assert self.columns is not None  # logits are compared nowhere else
        weights = {"W_U": self.unembedded}
        if at.config.has("b_U"):
            weights["b_U"] = at.weights["b_U"][self.columns]
        return with_config(with_weights(at, **weights), d_vocab=len(self.columns))

    def places(self, mistake: Mistake) -> list[str]:
        """Return where a mistake is made, of what the place is computed from and itself."""
        names = [name for kind in mistake.acts for name in self.of_kind.get(kind, ())]
        made = [name for name in names if mistake.layer in (None, layer_of(name))]
        return sorted(made, key=self.order.index)

    def maker(self, mistake: Mistake) -> Evaluator:
        """Return what computes the whole prompt with a mistake."""
        return self.whole.with_mistake(mistake)


def _columns(off: Array) -> Array:
    """Return which logits are compared: those that are farthest off, and others."""
    number = len(off)
    if number <= 2 * COLUMNS:
        return np.arange(number)
    farthest = np.argpartition(off, -COLUMNS // 2)[-COLUMNS // 2 :]
    return np.union1d(farthest, np.linspace(0, number - 1, COLUMNS // 2).astype(int))


def cut(near: Near, place: str, length: int) -> Near:
    """Return a place on the first tokens alone."""
    some = slice(length if kind_of(place) in ("scores", "pattern") else None)
    return Near(near.value[..., :length, some], near.error[..., :length, some])


@dataclass(slots=True)
class Trial:
    """A mistake, where it is made, and what it makes there if that takes the whole prompt."""

    mistake: Mistake
    places: list[str]
    made: dict[str, Array] = field(default_factory=dict)


class FirstTokens:
    """The first tokens of the prompt, on which mistakes are made side by side."""

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
        """Yield some mistakes at a time, and what they make of the place: what is compared of it.

        Those that are made early first: what comes before all of a stack is made for none of it.
        """
        trials = sorted(trials, key=lambda trial: self.sieve.order.index(trial.places[0]))
        many = max(16, ROWS // self.length)
        chunks = [trials[start : start + many] for start in range(0, len(trials), many)]
        for chunk in tracked(chunks, waiting):
            yield chunk, _Stack(self, chunk).values()

    def compared(self, array: Array) -> Array:
        """Return the entries of the place that are compared."""
        columns = self.sieve.columns
        return array if columns is None else array[..., columns]

    def trial(self, mistake: Mistake) -> Trial | None:
        """Return how a mistake is made on the first tokens, or None if that cannot be."""
        trial = Trial(mistake, self.sieve.places(mistake))
        if self._is_causal(mistake):
            return trial
        if len({layer_of(place) for place in trial.places}) > 1:
            return None
        maker, made = self.sieve.maker(mistake), list(trial.places)
        # A pattern over later keys has no meaning on the first tokens: what it mixes has.
        if {kind_of(place) for place in made} & {"scores", "pattern"}:
            mixed = self.sieve.of_kind.get("z", [])
            made += [name for name in mixed if layer_of(name) == layer_of(made[0])]
        for name in made:  # copied, or what was made of the whole prompt would be kept with it
            trial.made[name] = cut(maker.near(name), name, self.length).value.copy()
        return trial

    def _is_causal(self, mistake: Mistake) -> bool:
        """Return whether a mistake makes of the first tokens what it makes of them in the prompt.

        Looked at in the first and the last layer, for each kind of place by itself.
        """
        key = self.sieve.place, self.length, mistake.name, frozenset(mistake.acts)
        causal = self.sieve.causal
        if key not in causal:
            causal[key] = all(
                self._alike(Mistake("", "", {kind: act}, layer=layer_of(name)), name)
                for kind, act in mistake.acts.items()
                for name in _ends(self.sieve.of_kind.get(kind, []))
            )
        return causal[key]

    def _alike(self, mistake: Mistake, place: str) -> bool:
        every = self.sieve.maker(mistake).made(place)
        if kind_of(place) == "pattern" and every.value[:, : self.length, self.length :].any():
            return False  # what is mixed is not on the first tokens
        whole = cut(every, place, self.length).value
        first = self.plain.with_mistake(mistake).made(place).value
        if whole.shape != first.shape:
            return False
        return bool(np.abs(whole - first).max() <= ALIKE * np.abs(whole).max())


def _ends(names: list[str]) -> list[str]:
    return names if len(names) < 2 else [names[0], names[-1]]


class _Row(Evaluator):
    """One of many passes made side by side: what all of them have so far, and its mistake."""

    def __init__(
        self, plain: Evaluator, state: dict[str, Array], index: int, mistake: Mistake
    ) -> None:
        super().__init__(
            plain.model, plain.tokens, plain.shown, mistakes=(mistake,), parts=plain.parts
        )
        self.state, self.index = state, index

    def near(self, place: str) -> Near:
        """Return a place of this pass."""
        if place in self.state:
            return Near.exactly(self.state[place][self.index])
        return super().near(place)


class _Stack:
    """Passes on the same first tokens, each with a mistake of its own, side by side."""

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
        """Return the compared entries of the place [pass, …], each pass with its mistake."""
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
        """Return a place in all passes, or the same for all if no mistake comes before it."""
        if place in self.state:
            return self.state[place]
        value = self.plain.has(place).value
        return np.broadcast_to(value, (len(self.trials), *value.shape))

    def _together(self, place: str) -> Array:
        """Return a place in all passes, computed as is right from what each has before.

        For a product with a weight the rows of all passes are those of one matrix.
        """
        config, kind = self.plain.config, kind_of(place)
        number, length = len(self.trials), self.prompt.length
        if kind == "embed":
            value = self.plain.near(place).value
            return np.broadcast_to(value, (number, *value.shape))
        inputs = {kind_of(read): self._has(read) for read in inputs_of(config, place)}
        if kind == "attn_out":  # [head, row, d_head]
            inputs["z"] = inputs["z"].swapaxes(0, 1).reshape(config.n_heads, number * length, -1)
        elif kind in FLAT:
            inputs = {name: each.reshape(number * length, -1) for name, each in inputs.items()}
        flat = kind in FLAT or kind == "attn_out"
        nears = {name: Near.exactly(each) for name, each in inputs.items()}
        weights = Weights(self.plain.parts, place, length)
        at = At(config, nears, weights, number * length if flat else length, p=VALUES_ONLY)
        if kind in ("q", "k") and config.positions == "rotary":
            at = with_config(at, positions="none", rotary_dims=0)
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
"""Operations on each row by itself, with a product with a weight."""
