"""The induction mechanism of the bundled model as Markdown tables, computed from its weights."""

from __future__ import annotations

from otimes.numeric.load import load_model
from otimes.numeric.paths.induction import Induction, induction
from otimes.numeric.paths.scores import COMPOSITIONS
from words import table


def text() -> str:
    """Return the four analyses, each a paragraph and a table."""
    story = induction(load_model("induction"))
    return "\n\n".join([_heads(story), _why(story), _paths(story), _removed(story)])


def _heads(story: Induction) -> str:
    rows = [
        [f"{layer}.{head}", f"{story.previous_token[layer, head]:.2f}",
         f"{story.prefix_matching[layer, head]:.2f}"]
        for layer in range(len(story.previous_token))
        for head in range(story.previous_token.shape[1])
    ]  # fmt: skip
    said = "**Heads.** Mean attention to the previous token, and to the token that followed the"
    return f"{said} first occurrence.\n\n" + table(
        ["layer.head", "previous token", "prefix matching"], rows, right=(1, 2)
    )


def _why(story: Induction) -> str:
    head = ["layer.head", "attention to the right key", *[f"without {c}" for c in COMPOSITIONS]]
    kept = [
        [_name(m.head), f"{m.attention:.2f}", *[f"{m.without[c]:.2f}" for c in COMPOSITIONS]]
        for m in story.matching
    ]
    writers = [*story.matching[0].ahead_by_writer]
    ahead = [
        [_name(m.head), *[_signed(m.ahead[c]) for c in COMPOSITIONS],
         *[_signed(m.ahead_by_writer[w]) for w in writers]]
        for m in story.matching
    ]  # fmt: skip
    scores = ["layer.head", *COMPOSITIONS, *[f"K, from {w}" for w in writers]]
    said = (
        "**Composition.** The margin of the right key over the mean of the other keys, by term of"
        " the scores, and for K-composition by head of the layer below."
    )
    by_term = table(scores, ahead, right=range(1, len(scores)))
    then = "The attention to the right key when one term is removed from the scores:"
    return "\n\n".join([said, by_term, then, table(head, kept, right=range(1, len(head)))])


def _paths(story: Induction) -> str:
    table_ = story.table
    rows = [["uniform distribution", f"{table_.uniform:.2f}", " ", " "]]
    for term in table_.terms:
        removed = " " if term.removed is None else _signed(term.removed)
        if "→" not in term.name:
            rows.append([term.name, f"{term.loss:.2f}", _signed(term.added), removed])
    pairs = [abs(term.added) for term in table_.terms if "→" in term.name]
    said = (
        "**Loss by path.** With frozen patterns, on the second half of the prompts, in nats per"
        " token: the loss with all lower orders and this term, the change when the term is added,"
        " and the change when only this term is removed. None of the"
        f" {len(pairs)} virtual heads changes the loss by more than {max(pairs):.2f}."
    )
    return f"{said}\n\n" + table(["paths", "loss", "added", "removed"], rows, right=(1, 2, 3))


def _removed(story: Induction) -> str:
    rows = [[name, f"{loss:.2f}"] for name, loss in story.loss_without.items()]
    said = (
        "**Ablated heads.** Zero ablation in the model itself, so that later patterns change. The"
        f" loss on the second half is {story.table.model:.2f} with all heads, and"
        f" {story.first_loss:.2f} on the first half."
    )
    return f"{said}\n\n" + table(["without", "loss"], rows, right=(1,))


def _name(head: tuple[int, int]) -> str:
    return f"{head[0]}.{head[1]}"


def _signed(value: float) -> str:
    """Return a number with its sign and a typographic minus."""
    return f"{value:+.2f}".replace("-", "−")
