"""The story of the induction model: which heads, which composition, which paths, by numbers."""

from __future__ import annotations

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.load import load_model
from otimes.numeric.metrics import repeated_prompts
from otimes.numeric.paths.ensemble import paths
from otimes.numeric.paths.induction import Induction, induction
from otimes.numeric.paths.loss import loss_table
from tests.numeric.paths.cases import close

PERIOD = 24


@pytest.fixture(scope="module")
def story() -> Induction:
    return induction(load_model("induction"), PERIOD)


def test_which_heads(story: Induction) -> None:
    """Layer 0 looks one token back, layer 1 to what followed; none does both."""
    assert story.looking_back
    assert {layer for layer, _ in story.looking_back} == {0}
    assert [match.head for match in story.matching] == [(1, head) for head in range(4)]
    assert story.previous_token[1].max() < 0.1
    assert story.prefix_matching[0].max() < 0.1


def test_by_which_composition(story: Induction) -> None:
    """The key's side through a head of layer 0, and of these one that looks back."""
    back = {f"0.{head}" for _, head in story.looking_back}
    for match in story.matching:
        others = {name: value for name, value in match.ahead.items() if name != "K"}
        assert match.ahead["K"] > 5 * max(others.values()) > 0
        assert match.attention > 0.7
        assert match.without["K"] < 0.05
        assert all(match.without[name] > 0.6 for name in others)
        by_back = sum(value for name, value in match.ahead_by_writer.items() if name in back)
        assert by_back > 0.95 * match.ahead["K"]
        close(sum(match.ahead_by_writer.values()), match.ahead["K"])


def test_which_paths_carry_the_fall_of_the_loss(story: Induction) -> None:
    """Single heads of layer 1; along paths neither layer 0 nor any virtual head does anything."""
    terms = {term.name: term for term in story.table.terms}
    drop = story.table.uniform - story.table.model
    assert drop > 6
    assert -terms["layer 1"].added > 0.95 * drop
    for name, term in terms.items():
        if "→" in name or name.startswith("0.") or name == "layer 0":
            assert abs(term.added) < 0.02 * drop
            assert abs(term.removed or 0) < 0.02 * drop
        elif name.startswith("1."):
            assert -term.added > 0.25 * drop


def test_what_paths_cannot_say_the_running_model_does(story: Induction) -> None:
    """Without the heads that look back nothing is left, although no path through them matters."""
    uniform = story.table.uniform
    assert story.loss_without["all previous-token heads"] > uniform - 0.2
    assert story.loss_without["all induction heads"] > uniform - 0.2
    idle = {0, 1, 2, 3} - {head for _, head in story.looking_back}
    for head in idle:
        assert abs(story.loss_without[f"0.{head}"] - story.table.model) < 0.1
    assert max(story.loss_without[f"0.{head}"] for _, head in story.looking_back) > 1


def test_the_figures_are_plain_means() -> None:
    """Of one prompt, query after query, by loops of their own."""
    model = load_model("induction")
    story = induction(model, period=5, n_prompts=1)
    (prompt,) = repeated_prompts(model.d_vocab, 5, 1)
    places = model.forward(prompt)
    for match in story.matching:
        layer, head = match.head
        attended = [places[f"pattern.{layer}"][head, query, query - 4] for query in range(5, 10)]
        close(match.attention, np.mean(attended))
        total = 0.0
        for query in range(5, 10):
            row = places[f"scores.{layer}"][head, query, : query + 1]
            others = [score for key, score in enumerate(row) if key != query - 4]
            total += (row[query - 4] - sum(others) / len(others)) / 5
        close(sum(match.ahead.values()), total)
    logits = paths(model, prompt).by_order().sum(axis=0)[5:9]
    exact = [np.log(np.exp(row).sum()) - row[token]
             for row, token in zip(logits, prompt[6:], strict=True)]  # fmt: skip
    close(story.table.model, np.mean(exact))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            lambda: induction(load_model("induction"), 65),
            "induction takes at most n_ctx=128 tokens, and 65 repeated tokens are 130",
        ),
        (
            lambda: induction(load_model("one_layer"), 8),
            "one_layer has no induction head: the largest prefix-matching score is",
        ),
        (
            lambda: induction(load_model("zero_layer"), 8),
            "zero_layer has no induction head: the largest prefix-matching score is",
        ),
        (
            lambda: loss_table(load_model("one_layer"), [[1, 2, 3]], start=2),
            "start=2 is out of range: the shortest prompt has 3 tokens",
        ),
    ],
)
def test_what_there_is_no_story_of(ask, said: str) -> None:
    with pytest.raises(OtimesError, match=said):
        ask()
