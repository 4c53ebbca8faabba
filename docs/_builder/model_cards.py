"""The cards of the bundled models as Markdown, from the files of the models."""

from __future__ import annotations

from typing import Any

from otimes.numeric.load import bundled_models, load_model
from otimes.numeric.model import Model
from words import code, count, table

LOSSES = {
    "uniform_guess": "guessing uniformly",
    "bigram_entropy_of_train": "the best bigram model of the training text",
    "train": "training text",
    "held_out": "held-out text",
    "sample_text": "the bundled sample text",
    "random_tokens_first_time": "random tokens, the first time",
    "random_tokens_repeated": "the same random tokens again",
}
SCORES = {
    "previous_token": "previous token",
    "prefix_matching": "prefix matching",
    "copying": "copying",
}
POSITIONS = {
    "none": "no positions",
    "shortformer": "positions for queries and keys",
    "learned": "learned positions, added to the embedding",
    "rotary": "rotary positions",
}


def text() -> str:
    """Return a section for each bundled model, the smallest first."""
    return "\n\n".join(card(load_model(name)) for name in bundled_models())


def card(model: Model) -> str:
    """Return the section of one model: description, losses, and scores of its heads."""
    facts = model.card
    parts = [f"## {model.name}", f"{_sentence(facts.get('what', ''))} {_sizes(model)}".strip()]
    losses = facts.get("losses_nats", {})
    rows = [[words, f"{losses[key]:.2f}"] for key, words in LOSSES.items() if key in losses]
    if rows:
        parts.append(table(["loss, in nats per token", " "], rows, right=(1,)))
    if model.n_layers and (scores := facts.get("scores")):
        parts.append(_heads(model, scores))
    parts.append(_made(facts))
    return "\n\n".join(part for part in parts if part)


def _sizes(model: Model) -> str:
    layers = f"{count(model.n_heads, 'head')} in a layer of width {model.d_head} each, "
    positions = POSITIONS[model.positions]
    mlps = f"MLPs of width {model.config.d_mlp}, " if model.config.d_mlp else ""
    return (
        f"Residual stream of width {model.d_model}, {layers if model.n_layers else ''}{mlps}"
        f"{model.d_vocab} tokens, at most {model.n_ctx} positions in a prompt; {positions}."
    )


def _heads(model: Model, scores: dict[str, Any]) -> str:
    """Return the table of the scores of every head."""
    rows = [
        [f"{layer}.{head}", *[_score(scores[key][layer][head]) for key in SCORES if key in scores]]
        for layer in range(model.n_layers)
        for head in range(model.n_heads)
    ]
    head_row = ["layer.head", *[words for key, words in SCORES.items() if key in scores]]
    return table(head_row, rows, right=range(1, len(head_row)))


def _score(value: float) -> str:
    """Return a score with two digits and a typographic minus."""
    return f"{value:.2f}".replace("-", "−")


def _made(facts: dict[str, Any]) -> str:
    """Return how the model was trained, and the command that trains it."""
    data, parts = facts.get("data", {}), []
    if "train_tokens" in data:
        parts.append(
            f"Trained on {data['train_tokens']:,} tokens"
            f" ({data['text']}, Python {data['python']}), {data['held_out_tokens']:,} held out"
        )
    if "steps" in facts:
        parts.append(f"{facts['steps']:,} steps, seed {facts['seed']}")
    if "train_again" in facts:
        parts.append(f"made again by {code(facts['train_again'])}")
    return "; ".join(parts) + "." if parts else ""


def _sentence(words: str) -> str:
    """Return words as a sentence."""
    return words[:1].upper() + words[1:] + "." if words else ""
