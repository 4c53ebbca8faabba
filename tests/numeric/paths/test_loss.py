"""Term importance against losses of sums of enumerated paths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.metrics import losses
from otimes.numeric.paths.loss import loss_table
from tests.numeric.paths.cases import case, close
from tests.numeric.paths.enumeration import Enumeration

PROMPTS = [[3, 0, 10, 3, 7, 7], [1, 2, 1, 2]]


def mean_loss(enumerations: list[Enumeration], chosen) -> float:
    """The loss of predicting by the chosen paths alone."""
    by_token = []
    for every in enumerations:
        logits = sum(every.logits(path) for path in every.streams if chosen(path))
        for at, token in enumerate(every.tokens[1:]):
            total = math.fsum(math.exp(logit) for logit in logits[at])
            by_token.append(math.log(total) - logits[at][token])
    return math.fsum(by_token) / len(by_token)


@pytest.mark.parametrize("name", ["attention only", "deep everything", "deep biases only"])
def test_every_row(name: str) -> None:
    model, _ = case(name)
    every = [Enumeration(model, prompt) for prompt in PROMPTS]
    table = loss_table(model, PROMPTS, virtual_heads=True)
    rows = {term.name: term for term in table.terms}
    up_to = {-1: math.log(model.d_vocab)}
    for order in range(model.n_layers + 1):
        up_to[order] = mean_loss(every, lambda path, k=order: len(path) <= k)
        row = rows.pop(f"order {order}" if order else "direct")
        close([row.loss, row.added], [up_to[order], up_to[order] - up_to[order - 1]])
        assert (row.order, row.removed) == (order, None)
    parts = {}
    for layer in range(model.n_layers):
        parts[f"layer {layer}"] = [((layer, head),) for head in range(model.n_heads)]
    for path in every[0].streams:
        if len(path) in (1, 2):
            parts[" → ".join(f"{layer}.{head}" for layer, head in path)] = [path]
    assert rows.keys() == parts.keys()
    for part, members in parts.items():
        row, order = rows[part], len(members[0])
        assert row.order == order
        loss = mean_loss(every, lambda path, m=members, k=order: len(path) < k or path in m)
        without = mean_loss(
            every, lambda path, m=members, k=order: len(path) <= k and path not in m
        )
        expected = [loss, loss - up_to[order - 1], up_to[order] - without]
        close([row.loss, row.added, row.removed], expected)


def test_the_ends_are_a_uniform_guess_and_the_model() -> None:
    model, tokens = case("induction")
    table = loss_table(model, [tokens])
    close(table.uniform, math.log(model.d_vocab))
    close(table.model, losses(model, tokens).mean())
    assert str(table).splitlines()[1].split() == ["uniform", f"{table.uniform:.4f}"]


def test_the_drop_of_the_induction_model_is_in_single_heads_of_its_last_layer() -> None:
    from otimes.numeric.metrics import repeated_prompts

    model, _ = case("induction")
    prompts = repeated_prompts(model.d_vocab, period=16, n_prompts=2)
    effects = {term.name: term.added for term in loss_table(model, prompts).terms}
    assert effects["order 1"] < 5 * effects["order 2"] < 0
    assert effects["layer 1"] < 0.9 * effects["order 1"]
    assert abs(effects["layer 0"]) < 0.1 * abs(effects["layer 1"])


@pytest.mark.parametrize("prompts", [[], [[1, 2], [3]]])
def test_a_loss_needs_two_tokens(prompts: list) -> None:
    with pytest.raises(
        OtimesError, match="a loss needs at least one prompt, and at least two tokens in each"
    ):
        loss_table(case("attention only")[0], prompts)


def test_blocks_of_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    import otimes.numeric.paths.loss

    model, tokens = case("gpt2")
    whole = loss_table(model, [tokens])
    monkeypatch.setattr(otimes.numeric.paths.loss, "POSITIONS_AT_ONCE", 2)
    again = loss_table(model, [tokens])
    close([t.loss for t in again.terms], [t.loss for t in whole.terms])
    assert np.isfinite(whole.model)
