"""What a logit loses with a token: the model run anew with another token in its place."""

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.occlusion import occlusion, perturbation
from otimes.numeric.load import load_model
from otimes.numeric.random_weights import random_model as drawn
from tests.numeric.attribution.cases import FOIL, POSITION, TARGET, case, near, with_rows
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model


def lead(model, tokens: list[int]) -> float:
    logits = model.forward(tokens)["logits"][POSITION]
    return logits[TARGET] - logits[FOIL]


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_replaced_one_at_a_time(kind: str) -> None:
    model, tokens = case(kind)
    zeroed, (zero,) = with_rows(model, np.zeros((1, model.d_model)))
    for replacement, other, of in ((None, zero, zeroed), (2, 2, model)):
        expected = [
            lead(model, tokens) - lead(of, [*tokens[:i], other, *tokens[i + 1 :]])
            for i in range(len(tokens))
        ]
        found = occlusion(model, tokens, TARGET, FOIL, POSITION, replacement=replacement)
        assert near(found.values, expected)
        assert found.values[POSITION + 1] == 0


def test_noise_is_that_of_the_seed() -> None:
    model, tokens = case("llama")
    x = model.W_E[tokens[: POSITION + 1]]
    rng = np.random.default_rng(3)
    noise = 0.4 * (x.max() - x.min()) * rng.standard_normal((5, *x.shape))
    expected = np.zeros(len(tokens))
    for i in range(POSITION + 1):
        for sample in range(5):
            blurred, (one,) = with_rows(model, (x[i] + noise[sample, i])[None])
            prompt = [*tokens[:i], one, *tokens[i + 1 :]]
            expected[i] += (lead(model, tokens) - lead(blurred, prompt)) / 5
    found = perturbation(model, tokens, TARGET, FOIL, POSITION, noise=0.4, n_samples=5, seed=3)
    assert near(found.values, expected)
    still = perturbation(model, tokens, TARGET, FOIL, POSITION, noise=0.0)
    assert near(still.values, np.zeros(6))


def test_of_a_linear_model_it_is_the_contribution() -> None:
    model = load_model("zero_layer")
    found = occlusion(model, [5, 6, 7], 9)
    assert near(found.values, [0, 0, float(model.W_E[7] @ model.W_U[:, 9])])


def test_of_two_tokens_that_only_work_together_each_does_all() -> None:
    """AND: a neuron that needs both tokens. The scores sum to twice what there is."""
    model = drawn(
        n_layers=1, n_heads=1, d_model=5, d_head=2, d_vocab=3, d_mlp=1, activation="relu",
        biases=("b_in",),
    )  # fmt: skip
    zero = {name: np.zeros_like(weight) for name, weight in model.weights.items()}
    zero["W_E"][0, 0] = zero["W_E"][1, 1] = 2.0  # tokens 0 and 1; attention halves what they say
    zero["W_V"][0, 0, :2, :2] = np.eye(2)
    zero["W_O"][0, 0, :2, 2:4] = np.eye(2)
    zero["W_in"][0, 2:4, 0] = 1.0
    zero["b_in"][0, 0] = -1.0
    zero["W_out"][0, 0, 4] = 1.0
    zero["W_U"][4, 2] = 1.0
    both = model.changed(zero)
    assert both.forward([0, 1])["logits"][1, 2] == 1.0
    assert occlusion(both, [0, 1], 2).values.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("attribution", "asked", "said"),
    [
        (occlusion, {"replacement": 11}, "token 11 is not in the vocabulary"),
        (
            occlusion,
            {"replacement": "x"},
            "'x' is text, but random has 11 tokens and the bundled vocabulary 1024:",
        ),
        (
            occlusion,
            {"position": 6},
            "position 6 is out of range: the prompt has the positions 0 to 5",
        ),
        (perturbation, {"n_samples": 1}, r"at least 2 samples, got noise=0\.5 and n_samples=1"),
        (
            perturbation,
            {"noise": -0.1},
            "perturbation takes non-negative noise and at least 2 samples, got",
        ),
    ],
)
def test_wrong_use_is_said_in_a_sentence(attribution, asked: dict, said: str) -> None:
    with pytest.raises(OtimesError, match=said):
        attribution(random_model(), TINY_TOKENS, 3, **asked)
