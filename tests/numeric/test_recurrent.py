"""An LSTM layer beside torch.nn.LSTM, and its cell as a sum over the past."""

import numpy as np
import pytest
import torch

from otimes.algebra.errors import ShapeError
from otimes.numeric.recurrent import cell_as_sum, lstm


def test_torch_agrees_and_the_cell_is_the_sum() -> None:
    torch.manual_seed(0)
    module = torch.nn.LSTM(5, 4, dtype=torch.float64)
    x = np.random.default_rng(0).standard_normal((7, 5))
    weights = {name: each.detach().numpy() for name, each in module.named_parameters()}
    bias = weights["bias_ih_l0"] + weights["bias_hh_l0"]
    places = lstm(x, weights["weight_ih_l0"].T, weights["weight_hh_l0"].T, bias)
    with torch.no_grad():
        outputs, (_, cell) = module(torch.from_numpy(x))
    assert np.abs(places["h"] - outputs.numpy()).max() <= 2.0**-44
    assert np.abs(places["c"][-1] - cell[0].numpy()).max() <= 2.0**-44
    parts = cell_as_sum(places)
    assert np.abs(parts.sum(axis=0) - places["c"]).max() <= 2.0**-44
    # one entry by hand: written at 2, read at 4
    by_hand = places["f"][4] * places["f"][3] * places["i"][2] * places["g"][2]
    assert np.abs(parts[2, 4] - by_hand).max() <= 2.0**-50
    assert not parts[4, 2].any()


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"lstm takes x \(pos, d_in\)"):
        lstm(np.ones((3, 2)), np.ones((2, 8)), np.ones((1, 4)))
