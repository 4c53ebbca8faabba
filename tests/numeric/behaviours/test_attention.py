"""Attention scores against loops, and on models written by hand whose scores are known."""

from __future__ import annotations

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.behaviours.attention import (
    attention_scores,
    best_offset_score,
    joiner_scores,
    positional_scores,
    syntactic_scores,
    uniform_score,
)
from otimes.numeric.config import Config
from otimes.numeric.model import Model, make_model
from otimes.numeric.random_weights import random_model

N_POS = 7
TOKENS = np.array([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]])
RANDOM = random_model(n_layers=2, n_heads=3, d_vocab=10, n_ctx=N_POS)


def looking_at(targets: list[int], sharpness: float = 60.0) -> Model:
    """Return a model of one head in which query i attends to position `targets[i]`."""
    n = len(targets)
    config = Config(1, 1, n, n, 10, n, "shortformer")
    weights = {name: np.zeros(shape) for name, shape in config.tensor_shapes().items()}
    weights["W_pos"] = np.eye(n)
    weights["W_K"][0, 0] = np.eye(n)
    for query, key in enumerate(targets):
        weights["W_Q"][0, 0, query, key] = sharpness * np.sqrt(n)
    return make_model("by hand", config, weights)


def by_loops(model: Model, pairs: np.ndarray) -> np.ndarray:
    scores = np.zeros((model.n_layers, model.n_heads))
    for layer in range(model.n_layers):
        for head in range(model.n_heads):
            found = []
            for prompt, row in enumerate(TOKENS):
                pattern = model.forward(row)[f"pattern.{layer}"][head]
                for i, j in zip(*np.nonzero(pairs[prompt]), strict=True):
                    found.append((prompt, i, pattern[i, j]))
            queries = {(prompt, i) for prompt, i, _ in found}
            scores[layer, head] = sum(each[2] for each in found) / len(queries)
    return scores


def test_attention_scores_are_those_of_loops() -> None:
    rng = np.random.default_rng(0)
    pairs = np.tril(rng.random((2, N_POS, N_POS)) < 0.3)
    found = attention_scores(RANDOM, TOKENS, pairs)
    np.testing.assert_allclose(found.values, by_loops(RANDOM, pairs), rtol=1e-12)
    shares = [p[i].sum() / (i + 1) for p in pairs for i in range(N_POS) if p[i].any()]
    assert found.baseline == pytest.approx(np.mean(shares), rel=1e-12)
    every = np.tril(np.ones((N_POS, N_POS)))
    np.testing.assert_allclose(attention_scores(RANDOM, TOKENS, every).values, 1.0, rtol=1e-12)


def test_a_head_that_looks_k_back_scores_one_at_offset_k() -> None:
    for k in (0, 1, 3):
        model = looking_at([max(i - k, 0) for i in range(N_POS)])
        scores = positional_scores(model, [0, 1, 2, 3], TOKENS).values[:, 0, 0]
        np.testing.assert_allclose(scores[k], 1.0, atol=1e-12)
        assert all(score < 0.5 for offset, score in enumerate(scores) if offset != k)
    uniform = looking_at([0] * N_POS, sharpness=0.0)
    expected = [np.mean([1 / (i + 1) for i in range(k, N_POS)]) for k in range(4)]
    found = positional_scores(uniform, [0, 1, 2, 3], TOKENS).values[:, 0, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert uniform_score(np.eye(N_POS, k=-1, dtype=bool)) == pytest.approx(expected[1])


def test_a_head_that_attends_to_the_beginning_of_a_word_joins_it() -> None:
    words = [0, 0, 0, 1, 2, 2, 2]
    starts = [words.index(word) for word in words]
    joined = joiner_scores(looking_at(starts), TOKENS, np.array([words, words]))
    np.testing.assert_allclose(joined.values, 1.0, atol=1e-12)
    previous = looking_at([max(i - 1, 0) for i in range(N_POS)])
    assert joiner_scores(previous, TOKENS[0], words).values[0, 0] == pytest.approx(1.0)
    own = looking_at(list(range(N_POS)))
    np.testing.assert_allclose(joiner_scores(own, TOKENS[0], words).values, 0.0, atol=1e-12)
    assert joined.baseline == pytest.approx((1 / 2 + 2 / 3 + 1 / 6 + 2 / 7) / 4)


def test_syntactic_scores_count_the_related_tokens_that_are_found() -> None:
    related = [-1, 0, 0, 1, -1, 2, 3]
    model = looking_at([0, 0, 1, 1, 1, 2, 3])  # wrong at query 2 only
    scores = syntactic_scores(model, TOKENS[0], related)
    assert scores.values.tolist() == [[0.8]]
    assert scores.baseline == best_offset_score(related) == 0.4
    several = syntactic_scores(
        model, TOKENS[0], {"one": related, "two": [-1, -1, 1, -1, -1, -1, -1]}
    )
    assert several.values.tolist() == [[[0.8]], [[1.0]]]
    by_hand = np.zeros((2, 3))
    pair = np.array([related, [-1, 0, -1, 0, 2, 2, 2]])
    for row, at in zip(TOKENS, pair, strict=True):
        run = RANDOM.forward(row)
        for layer, head in np.ndindex(2, 3):
            for i, j in enumerate(at):
                most = max(range(i + 1), key=run[f"pattern.{layer}"][head, i].tolist().__getitem__)
                by_hand[layer, head] += j >= 0 and most == j
    found = syntactic_scores(RANDOM, TOKENS, pair)
    np.testing.assert_allclose(found.values, by_hand / (pair >= 0).sum(), rtol=1e-12)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: positional_scores(RANDOM, [-1], TOKENS), OtimesError, "never to a later position"),
        (lambda: positional_scores(RANDOM, [7], TOKENS), OtimesError, "offset 7 is out of range"),
        (lambda: positional_scores(RANDOM, [0.5], TOKENS), OtimesError, "number of positions"),  # type: ignore[list-item]
        (lambda: attention_scores(RANDOM, TOKENS, np.eye(3)), ShapeError, r"got \(3, 3\)"),
        (lambda: attention_scores(RANDOM, TOKENS, np.zeros((7, 7))), OtimesError, "no pair"),
        (lambda: attention_scores(RANDOM, TOKENS, np.eye(7, k=1)), OtimesError, "after its query"),
        (lambda: joiner_scores(RANDOM, TOKENS, np.arange(7)), ShapeError, "2 × 7 tokens"),
        (lambda: joiner_scores(RANDOM, TOKENS[0], np.arange(7)), OtimesError, "nothing to join"),
        (lambda: syntactic_scores(RANDOM, [1, 2], [-1, 1]), OtimesError, "an earlier token"),
        (lambda: syntactic_scores(RANDOM, [1, 2], [-1, -1]), OtimesError, "is all −1"),
        (lambda: syntactic_scores(RANDOM, [1, 2], [-1, 0.0]), OtimesError, "integers, got float64"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(ask: object, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        ask()  # type: ignore[operator]
