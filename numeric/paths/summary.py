"""What there is to tell of one logit, gathered once for a terminal, for JSON and for a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from numeric.paths.best import BestPaths
from numeric.paths.ensemble import Paths
from numeric.tokenizer import load_tokenizer


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """A logit at a position of a prompt, by order, by head, by its largest paths."""

    on_prompt: Paths
    position: int
    token: int
    strings: tuple[str, ...]
    token_string: str
    orders: Float[np.ndarray, " order"]
    heads: Float[np.ndarray, "n_layers n_heads"]
    shapley: Float[np.ndarray, "n_layers n_heads"]
    best: BestPaths

    @property
    def logit(self) -> float:
        """The logit, as the sum of its orders."""
        return float(self.orders.sum())

    @property
    def about_mlps(self) -> str:
        """What became of the MLPs, in a sentence; empty in a model without any."""
        if not self.on_prompt.model.config.d_mlp:
            return ""
        if self.on_prompt.frozen.mlp_gates:
            return "MLPs: their gates are held fixed; every path goes past them and through them."
        return "MLPs: what they gave on this prompt is a source, read as it is."

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, virtual heads and closure as well."""
        best, closure = self.best, self.on_prompt.closure
        return {
            "schema": 1,
            "model": self.on_prompt.model.name,
            "tokens": self.on_prompt.frozen.tokens.tolist(),
            "strings": list(self.strings),
            "mlp": "gates" if self.on_prompt.frozen.mlp_gates else "sources",
            "position": self.position,
            "token": self.token,
            "token_string": self.token_string,
            "logit": self.logit,
            "orders": self.orders.tolist(),
            "heads": self.heads.tolist(),
            "virtual_heads": self.on_prompt.virtual_heads(self.position, self.token).tolist(),
            "shapley": self.shapley.tolist(),
            "top": {
                "paths": [
                    {"heads": [*map(list, path.heads)], "value": path.value} for path in best
                ],
                "bound": best.bound,
                "proven": best.proven,
                "visited": best.visited,
            },
            "closure": closure._asdict(),
        }


def summarise(
    on_prompt: Paths, position: int = -1, token: int | None = None, top: int = 10
) -> Summary:
    """Return what there is to tell of a logit: of the likeliest token, unless another is named."""
    place = on_prompt.frozen.at(position)
    chosen = on_prompt.likeliest(place) if token is None else token
    strings = token_strings(on_prompt, [*on_prompt.frozen.tokens.tolist(), chosen])
    return Summary(
        on_prompt=on_prompt,
        position=place,
        token=chosen,
        strings=strings[:-1],
        token_string=strings[-1],
        orders=on_prompt.by_order(place, chosen),
        heads=on_prompt.heads(place, chosen),
        shapley=on_prompt.shapley(place, chosen),
        best=on_prompt.top(top, place, chosen),
    )


def token_strings(on_prompt: Paths, tokens: Sequence[int]) -> tuple[str, ...]:
    """Return tokens as text if the bundled tokenizer is the model's, else as numbers."""
    tokenizer = load_tokenizer()
    if tokenizer.d_vocab != on_prompt.model.d_vocab:
        return tuple(f"#{token}" for token in tokens)
    return tuple(tokenizer.token_strings(tokens))


def visible(text: str) -> str:
    r"""Return a token so that white space in it is seen.

    >>> visible(" in"), visible("\n    ")
    ('·in', '⏎····')
    """
    return text.replace(" ", "·").replace("\n", "⏎").replace("\t", "⇥")
