"""Passes with a mistake, side by side on the first tokens, are what each is by itself."""

from collections.abc import Iterator

import numpy as np
import pytest

from otimes.numeric.audit.diagnosis import screening as under_test
from otimes.numeric.audit.diagnosis.explain import _where
from otimes.numeric.audit.diagnosis.screening import Sieve
from otimes.numeric.audit.mistakes.registry import known_mistakes
from otimes.numeric.audit.reference.evaluator import Evaluator, Mistake
from otimes.numeric.config import Config
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.catalogue import GPT2, LLAMA, NEOX

TOKENS = np.array([3, 0, 10, 3, 7, 7, 28, 1, 5])
NEAR_TO = 1e-6
SAME = NEAR_TO / 1000
"""What is off by so little changes nothing that a sieve keeps, which looks at NEAR_TO."""
WRONG = 4  # the first position where something else is shown
BARE = Config(2, 2, 8, 4, 29, 16, "shortformer", biases=("b_U",))


def _sieve(config: Config, near_to: float = NEAR_TO) -> Sieve:
    whole = Evaluator(random_model(config, seed=5), TOKENS, {})
    shown = whole.near("logits").value.copy()
    shown[WRONG:] += 1.0
    return Sieve(whole, "logits", shown, np.full(shown.shape, 1e-9), near_to)


def _every(config: Config) -> Iterator[Mistake]:
    for mistake in known_mistakes(config):
        yield from _where(mistake, [*range(config.n_layers)])


def _by_itself(sieve: Sieve, mistake: Mistake) -> np.ndarray:
    whole = sieve.whole
    mistaken = Evaluator(whole.model, TOKENS, {}, mistakes=(mistake,))
    return mistaken.near("logits").value


@pytest.mark.parametrize(
    ("config", "columns"),
    [(GPT2, 3), (LLAMA, 256), (NEOX, 256), (BARE, 3)],
    ids=["gpt2", "llama", "neox", "shortformer"],
)
def test_every_mistake_makes_of_the_first_tokens_what_it_makes_of_them_in_the_prompt(
    config, columns, monkeypatch
) -> None:
    monkeypatch.setattr(under_test, "COLUMNS", columns)
    sieve = _sieve(config)
    every = [*_every(config)][::6]
    alone = {id(each): _by_itself(sieve, each) for each in every}
    for first in sieve.prompts:
        trials = [trial for each in every if (trial := first.trial(each)) is not None]
        # Only what looks at later positions in many layers is not made on the first tokens.
        assert len(trials) > 0.85 * len(every)
        made = 0
        for chunk, values in first.made([t for t in trials if t.places], ""):
            for trial, value in zip(chunk, values, strict=True):
                right = first.compared(alone[id(trial.mistake)][: first.length])
                np.testing.assert_allclose(
                    value, right, rtol=SAME, atol=SAME, err_msg=trial.mistake.says
                )
                made += 1
        assert made > 0.8 * len(every)


def test_what_explains_a_place_is_kept_and_most_of_the_rest_is_not() -> None:
    every = [*_every(LLAMA)]
    plain = _sieve(LLAMA)
    rng = np.random.default_rng(1)
    for number in rng.choice(len(every), 3, replace=False):
        shown = _by_itself(plain, every[number])
        sieve = Sieve(plain.whole, "logits", shown, np.full(shown.shape, 1e-12), 1e-10)
        kept = sieve.kept(every, "")
        assert any(each is every[number] for each in kept), every[number].says
        right = plain.whole.near("logits").value
        if np.abs(shown - right).max() > 1e-6:
            assert len(kept) < 0.1 * len(every), every[number].says


def test_a_mistake_that_looks_ahead_is_known_to() -> None:
    sieve = _sieve(GPT2)
    unmasked = "a softmax without the causal mask"
    (mistake,) = (each for each in known_mistakes(GPT2) if each.says == unmasked)
    assert sieve.prompts[0].trial(mistake) is None
    one = mistake.at(1)
    trial = sieve.prompts[0].trial(one)
    assert trial is not None
    assert {*trial.made} == {"pattern.1", "z.1"}
