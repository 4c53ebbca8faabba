"""That patterns are the softmax of the visible scores, recomputed by SciPy within its bound."""

import numpy as np
import pytest

from otimes.numeric.binding import run_of
from otimes.numeric.functions import causal_mask, masked_softmax
from otimes.numeric.model import Config, make_model
from otimes.numeric.pattern_check import pattern_ratios, softmax_bound, softmax_of_visible
from otimes.numeric.rounding import worst_ratio


@pytest.mark.parametrize("seed", range(40))
def test_two_softmaxes_agree_within_the_bound(seed: int) -> None:
    draw = np.random.default_rng(seed)
    size = int(draw.integers(1, 60))
    scores = draw.standard_normal((size, size)) * 10.0 ** draw.uniform(-2, 2.3)
    ours, theirs = masked_softmax(scores, causal_mask(size)), softmax_of_visible(scores)
    bound = softmax_bound(scores)
    assert worst_ratio(ours, theirs, bound) <= 1
    assert worst_ratio(ours * (1 + 1e-9), theirs, bound) > 1


def test_the_softmax_is_the_definition() -> None:
    scores = np.array([[1.0, 9.0, 9.0], [0.0, 1.0, 9.0], [2.0, 0.5, -1.0]])
    for i, row in enumerate(softmax_of_visible(scores)):
        weights = [np.exp(scores[i, j]) if j <= i else 0.0 for j in range(3)]
        assert row == pytest.approx([w / sum(weights) for w in weights], rel=1e-14)


def test_runs_are_walked_head_by_head() -> None:
    config = Config(2, 3, 8, 4, 20, 16, "shortformer")
    draw = np.random.default_rng(0)
    weights = {k: draw.standard_normal(s) for k, s in config.tensor_shapes().items()}
    run = run_of(make_model("tiny", config, weights), (1, 2, 3, 4))
    ratios = dict(pattern_ratios(run))
    assert len(ratios) == 6
    assert max(ratios.values()) <= 1
