"""The prompt of the lessons, the models that read it, and how their numbers are written."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from otimes.numeric.load import load_model
from otimes.numeric.tokenizer import load_tokenizer

PROMPT = "import os\nimport sys\nimport os\nimport sys\n"
POSITION = 7
"""The second ` os`; the next token is a line end, as it was after the first."""


@cache
def prompt() -> tuple[list[int], list[str]]:
    """Return the tokens of the prompt, as numbers and as text."""
    tokens = list(load_tokenizer().encode(PROMPT))
    return tokens, texts(tokens)


def texts(tokens: Any) -> list[str]:
    """Return tokens as text, one by one."""
    decode = load_tokenizer().decode
    return [decode([int(token)]) for token in tokens]


@cache
def run(name: str = "induction") -> tuple[Any, Any]:
    """Return a bundled model and its activations on the prompt."""
    model = load_model(name)
    return model, model.forward(prompt()[0])


def sizes(name: str = "induction") -> dict[str, str]:
    """Return the sizes of a model and of the prompt, as a lesson names them."""
    model, _ = run(name)
    tokens, words = prompt()
    n, d, heads = len(tokens), model.d_model, model.n_heads
    return {
        "n": str(n),
        "d": str(d),
        "d_head": str(model.d_head),
        "heads": str(heads),
        "layers": str(model.n_layers),
        "nd": f"{n * d:,}",
        "prompt": " ".join(f"`{text!r}`" for text in words),
    }


def chance(logits: Any, token: int) -> float:
    """Return the probability of a token by its logits."""
    return float(np.exp(logits[token] - logits.max()) / np.exp(logits - logits.max()).sum())


def number(value: float, digits: int = 2) -> str:
    """Return a number with its sign as it is printed."""
    return f"{value:.{digits}f}".replace("-", "−")


def power(value: float) -> str:
    """Return a small number as a power of ten, rounded up: what it is at most."""
    if value == 0:
        return "0"
    return f"$10^{{{int(np.ceil(np.log10(value)))}}}$"


def shown(token: str) -> str:
    """Return a token with its spaces and line ends visible."""
    return token.replace("\n", "↵").replace(" ", "␣")
