"""One logit after one position as a function of the embedding: its value, its gradient."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from algebra.errors import OtimesError, ShapeError
from numeric.attribution.reverse import Goal, reverse_pass, run, value
from numeric.attribution.target import Tokens, read_target
from numeric.circuits.result import Named
from numeric.forward import forward_pass
from numeric.model import Model, load_model
from numeric.prompt import Prompt, read_prompt, read_token

Rows = Float[np.ndarray, "pos d_model"]
StandIn = int | str | np.ndarray | None
"""What a token's embedding is replaced by: a token, a row, a row for each; None is zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A number f that a pass ends in, as a function of the embedding x [pos, d_model].

    The rows are those of W_E: positions, where they are in the stream, stay as they are. Tokens
    after the position that is asked about are left out, as nothing of them is seen.
    """

    model: Model
    prompt: Prompt
    about: str
    goal: Goal

    @property
    def tokens(self) -> Int[np.ndarray, " pos"]:
        """The prompt up to the position."""
        return self.prompt.tokens[: self.goal.position + 1]

    def embed(self) -> Rows:
        """Return the embedding x of the tokens."""
        return self.model.part("W_E", self.tokens)

    def value(self, embed: Rows | None = None) -> float:
        """Return f(x), or f of other rows."""
        last = "ln_final" if self.model.config.final_norm else "final"
        return value(forward_pass(self.model, self.tokens, [last], embed), self.goal)

    def gradient(self, embed: Rows | None = None) -> tuple[float, Rows]:
        """Return f and its gradient at x, or at other rows."""
        places = run(self.model, self.tokens, embed)
        return value(places, self.goal), reverse_pass(self.model, places, self.goal)["embed"]

    def stand_in(self, given: StandIn) -> Rows:
        """Return the rows that stand for no token in particular.

        Raises: OtimesError for a token there is not, ShapeError for rows of another shape.
        """
        shape = (len(self.tokens), self.model.d_model)
        if given is None:
            return np.zeros(shape)
        if isinstance(given, np.ndarray) and given.ndim:
            if given.shape == (len(self.prompt.tokens), self.model.d_model):
                given = given[: shape[0]]
            if given.shape not in (shape, shape[1:]) or given.dtype.kind != "f":
                raise ShapeError(
                    f"what stands in for a token is a token, a row (d_model,) = ({shape[1]},)"
                    f" or one for each position, got {given.dtype} of shape {given.shape}"
                )
            return np.broadcast_to(given.astype(np.float64), shape)
        return np.broadcast_to(self.model.part("W_E", read_token(self.model, given)), shape)

    def by_token(
        self, kind: str, values: np.ndarray, whole: float | None = None, note: str = ""
    ) -> Named:
        """Return a number for each position of the prompt; those that are not seen have 0."""
        every = np.zeros(len(self.prompt.tokens))
        every[: len(values)] = values
        about = self.about + (f"; {note}" if note else "")
        labels = {"position": self.prompt.strings}
        return Named(kind, every, ("position",), labels, about=about, whole=whole)


def ask(model: Model | str, prompt: Any, target: Tokens, foil: Tokens, position: Any) -> Question:
    """Return what is asked about one position of a prompt, checked."""
    loaded = load_model(model) if isinstance(model, str) else model
    read = read_prompt(loaded, prompt)
    if np.ndim(position) or position is None:
        raise OtimesError(f"one position at a time is explained, got position={position!r}")
    found = read_target(loaded, read, target, foil, position)
    goal = Goal(int(found.positions[0]), found.rows[0], float(found.constants[0]))
    return Question(loaded, read, found.name(loaded), goal)
