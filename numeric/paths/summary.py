"""One logit decomposed by paths: the record that the terminal, JSON and HTML output render."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.numeric.brief import Brief
from otimes.numeric.frozen import FrozenPass
from otimes.numeric.model import Model
from otimes.numeric.paths.closure import Closure, close
from otimes.numeric.paths.pairs import virtual_heads
from otimes.numeric.paths.top_paths import TopPaths
from otimes.numeric.tokenizer import load_tokenizer


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summary(Brief):
    """A logit at a position of a prompt, by order, by head, by its largest paths."""

    frozen: FrozenPass
    position: int
    token: int
    strings: tuple[str, ...]
    token_string: str
    orders: Float[np.ndarray, " order"]
    heads: Float[np.ndarray, "n_layers n_heads"]
    shapley: Float[np.ndarray, "n_layers n_heads"]
    best: TopPaths

    @property
    def model(self) -> Model:
        """The model whose logit it is."""
        return self.frozen.model

    @property
    def closure(self) -> Closure:
        """The largest local error/bound over the layers, and the largest error of a logit."""
        return close(self.frozen)

    @property
    def logit(self) -> float:
        """The logit, as the sum of its orders."""
        return float(self.orders.sum())

    @property
    def about_mlps(self) -> str:
        """How MLPs are treated, in a sentence; empty in a model without MLPs."""
        if not self.model.config.d_mlp:
            return ""
        if self.frozen.mlp_gates:
            return "MLPs: their gates are frozen; paths go through MLPs and around them."
        return "MLPs: their outputs on this prompt are constant sources."

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON data, with virtual heads and closure."""
        best = self.best
        direction = self.frozen.direction(self.position, self.token)
        return {
            "schema": 1,
            "model": self.model.name,
            "tokens": self.frozen.tokens.tolist(),
            "strings": list(self.strings),
            "mlp": "gates" if self.frozen.mlp_gates else "sources",
            "position": self.position,
            "token": self.token,
            "token_string": self.token_string,
            "logit": self.logit,
            "orders": self.orders.tolist(),
            "heads": self.heads.tolist(),
            "virtual_heads": virtual_heads(self.frozen, direction).tolist(),
            "shapley": self.shapley.tolist(),
            "top": {
                "paths": [
                    {"heads": [*map(list, path.heads)], "value": path.value} for path in best
                ],
                "bound": best.bound,
                "proven": best.proven,
                "visited": best.visited,
            },
            "closure": self.closure._asdict(),
        }


def token_strings(model: Model, tokens: Sequence[int]) -> tuple[str, ...]:
    """Return the text of tokens, or `#id` if the vocabulary is not the bundled one."""
    tokenizer = load_tokenizer()
    if tokenizer.d_vocab != model.d_vocab:
        return tuple(f"#{token}" for token in tokens)
    return tuple(tokenizer.token_strings(tokens))


def visible(text: str) -> str:
    r"""Return a token with visible characters for white space.

    >>> visible(" in"), visible("\n    ")
    ('·in', '⏎····')
    """
    return text.replace(" ", "·").replace("\n", "⏎").replace("\t", "⇥")
