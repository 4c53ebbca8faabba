"""The induction model that was written by hand does what its construction says."""

import math
import random

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.induction_by_hand import induction_by_hand
from otimes.numeric.metrics import prefix_matching_score, previous_token_score

BOS = 0


def _repeated(period: int, d_vocab: int, seed: int) -> list[int]:
    once = random.Random(seed).sample(range(1, d_vocab), period)
    return [BOS, *once, *once]


@pytest.mark.parametrize("period", [1, 2, 5, 9])
def test_every_repeat_is_predicted(period: int) -> None:
    tokens = _repeated(period, 12, seed=period)
    logits = induction_by_hand(12, len(tokens)).forward(tokens)["logits"]
    for i in range(period + 1, len(tokens) - 1):
        assert logits[i].argmax() == tokens[i + 1]
        assert logits[i].max() > 1 - 1e-12
    assert logits[-1].argmax() == tokens[1]  # the last is followed by the first, as once before


def test_the_logits_are_attention_to_what_followed_matches() -> None:
    tokens, sharpness = [0, 3, 1, 3, 2, 3, 1], 2.0
    logits = induction_by_hand(4, 9, sharpness).forward(tokens)["logits"]

    def weights(scores: list[float]) -> list[float]:
        total = math.fsum(map(math.exp, scores))
        return [math.exp(score) / total for score in scores]

    first = [
        weights([sharpness * (j == max(i - 1, 0)) for j in range(i + 1)])
        for i in range(len(tokens))
    ]
    for i, token in enumerate(tokens):
        before = [
            sum(w for w, other in zip(first[j], tokens, strict=False) if other == token)
            for j in range(i + 1)
        ]
        second = weights([sharpness * each for each in before])
        for other in range(4):
            expected = sum(w for w, seen in zip(second, tokens, strict=False) if seen == other)
            assert abs(logits[i, other] - expected) < 1e-14


def test_without_a_first_token_of_its_own_the_first_seems_to_follow_itself() -> None:
    once = [5, 3, 7, 2]
    with_bos = induction_by_hand(8, 16).forward([BOS, *once, 5])["logits"][-1]
    without = induction_by_hand(8, 16).forward([*once, 5])["logits"][-1]
    assert with_bos[3] > 1 - 1e-12
    assert abs(without[3] - 0.5) < 1e-12
    assert abs(without[5] - 0.5) < 1e-12


def test_its_heads_are_the_heads_of_the_story() -> None:
    model = induction_by_hand(40, 80)
    prompts = np.array([_repeated(20, 40, seed) for seed in range(2)])
    previous = previous_token_score(model, prompts)
    assert previous[0, 0] > 1 - 1e-12
    twice = prompts[:, 1:]  # the scores are of the repeated prompts, without BOS
    assert prefix_matching_score(model, twice)[1, 0] > 0.9


@pytest.mark.parametrize("sizes", [(0, 4, 1.0), (4, 0, 1.0), (4, 4, 0.0)])
def test_sizes_that_make_no_model_are_refused(sizes: tuple[int, int, float]) -> None:
    with pytest.raises(OtimesError, match="needs d_vocab ≥ 1, n_ctx ≥ 1 and sharpness > 0"):
        induction_by_hand(*sizes)
