"""Every known mistake can be computed for the architectures whose layers differ or are square."""

import numpy as np
import pytest

from otimes.numeric.audit.mistakes.registry import known_mistakes
from otimes.numeric.audit.reference.evaluator import Evaluator
from otimes.numeric.random_weights import random_model

YARN = (4.0, 1.0, 4.0, 6.0, 1.1)
KINDS = {
    "a base of its own beside a stretch": {"kind": "gemma3", "rotary_stretch": YARN},
    "scales, and a layer without positions": {"kind": "cohere", "write_scale": 0.3},
    "squared ReLU": {"kind": "nemotron"},
    "a base of its own beside Llama 3's": {"kind": "gemma3", "rotary_stretch": YARN[:4]},
    "latents as wide as square heads": {"kind": "deepseek3", "n_heads": 1, "d_model": 10},
}


@pytest.mark.parametrize("name", KINDS)
def test_every_mistake_gives_logits(name: str) -> None:
    model = random_model(**KINDS[name], d_vocab=11, seed=1)
    for mistake in known_mistakes(model.config):
        wrong = Evaluator(model, np.array([3, 1, 4, 1]), {}, mistakes=[mistake])
        assert wrong.near("logits").value.shape == (4, 11), mistake.says
