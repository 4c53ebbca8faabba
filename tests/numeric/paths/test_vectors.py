"""Paths of layers of torch.nn, which read vectors, to the entries of their output."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import otimes as ot

VECTORS = torch.randn(9, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
MASK = nn.Transformer.generate_square_subsequent_mask(9, dtype=torch.float64)


def stack(norm_first: bool = True) -> nn.TransformerEncoder:
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, norm_first=norm_first)
    norm = nn.LayerNorm(6)
    made = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


@pytest.mark.parametrize("mlp", ["sources", "gates"])
def test_they_sum_to_the_output(mlp: str) -> None:
    module = stack()
    found = ot.paths(module, VECTORS, mlp=mlp)
    with torch.no_grad():
        output = module(VECTORS[None], mask=MASK)[0].numpy()
    assert np.abs(found.by_order().sum(axis=0)[:, :6] - output).max() < 1e-13
    assert found.closure.ratio <= 1
    # Entry 4 of the output at the last position, by every path through at most one head of a layer.
    heads = [(layer, head) for layer in (0, 1) for head in (0, 1)]
    pairs = [[first, second] for first in heads[:2] for second in heads[2:]]
    every = [[], *([each] for each in heads), *pairs]
    assert abs(sum(found.path(each, -1, 4) for each in every) - output[-1, 4]) < 1e-13


def test_what_has_no_paths_is_refused_in_a_sentence() -> None:
    with pytest.raises(ot.OtimesError, match="norm_order='post'"):
        ot.paths(stack(norm_first=False), VECTORS)
    with pytest.raises(ot.OtimesError, match="attention without a residual stream"):
        ot.paths(nn.MultiheadAttention(6, 2), VECTORS)
    with pytest.raises(ot.OtimesError, match="vectors of the residual stream and no tokens"):
        ot.paths(stack(), [1, 2, 3])
    with pytest.raises(ot.ShapeError, match="a batch of 2 was given"):
        ot.paths(stack(), torch.stack([VECTORS, VECTORS]))
