"""The pass without a mask beside torch.nn.TransformerEncoder; padding; refusals."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import otimes as ot
from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.encoder import encode, relative_bias
from otimes.numeric.model import Model
from otimes.numeric.systems import systems

BERT: Model = systems("BERT-base").small()
PROMPT = [3, 1, 4, 1, 5, 9, 2]


def theirs(model: Model, padded: int = 0) -> np.ndarray:
    """Return torch's encoder with the weights of a model, on its embeddings."""
    config = model.config
    layer = torch.nn.TransformerEncoderLayer(
        config.d_model, config.n_heads, config.d_mlp, 0.0, "gelu", config.norm_eps,
        batch_first=True, norm_first=config.norm_order == "pre", dtype=torch.float64,
    )  # fmt: skip
    stack = torch.nn.TransformerEncoder(layer, config.n_layers, enable_nested_tensor=False).eval()
    for at, made in enumerate(stack.layers):
        wide = [
            np.moveaxis(getattr(model, f"W_{x}")[at], 0, 1).reshape(config.d_model, -1)
            for x in "QKV"
        ]
        biases = np.concatenate([getattr(model, f"b_{x}")[at].ravel() for x in "QKV"])
        out = model.W_O[at].reshape(-1, config.d_model)
        state = {
            "self_attn.in_proj_weight": np.concatenate(wide, axis=1).T,
            "self_attn.in_proj_bias": biases,
            "self_attn.out_proj.weight": out.T,
            "self_attn.out_proj.bias": model.b_O[at],
            "linear1.weight": model.W_in[at].T,
            "linear1.bias": model.b_in[at],
            "linear2.weight": model.W_out[at].T,
            "linear2.bias": model.b_out[at],
            "norm1.weight": model.ln1_gain[at],
            "norm1.bias": model.ln1_bias[at],
            "norm2.weight": model.ln2_gain[at],
            "norm2.bias": model.ln2_bias[at],
        }
        made.load_state_dict({name: torch.tensor(np.array(each)) for name, each in state.items()})
    start = encode(model, PROMPT)["resid_pre.0"]
    hidden = torch.arange(len(PROMPT)) >= len(PROMPT) - padded
    with torch.no_grad():
        return stack(torch.tensor(start)[None], src_key_padding_mask=hidden[None])[0].numpy()


@pytest.mark.parametrize("order", ["post", "pre"])
def test_torch_agrees(order: str) -> None:
    config = replace(BERT.config, norm_order=order)
    model = BERT.changed({}, config)
    found = encode(model, PROMPT)["final"]
    assert np.abs(found - theirs(model)).max() <= 2.0**-40 * np.abs(found).max()
    keys = np.arange(len(PROMPT)) < 5
    padded = encode(model, PROMPT, keys=keys)["final"][:5]
    assert np.abs(padded - theirs(model, 2)[:5]).max() <= 2.0**-40 * np.abs(padded).max()
    assert np.abs(padded - found[:5]).max() > 1e-3


def test_rows_in_place_of_tokens_and_a_bias_of_distances() -> None:
    rows = BERT.W_E[PROMPT]
    assert np.array_equal(encode(BERT, rows=rows)["final"], encode(BERT, PROMPT)["final"])
    bias = relative_bias(np.random.default_rng(0).standard_normal((8, 4)), len(PROMPT), 16)
    added = encode(BERT, PROMPT, score_bias=bias)
    difference = added["scores.0"] - encode(BERT, PROMPT)["scores.0"]
    assert np.abs(difference - bias).max() <= 2.0**-48


def test_refusals() -> None:
    with pytest.raises(OtimesError, match="either tokens or rows"):
        encode(BERT)
    with pytest.raises(OtimesError, match="positions are learned or none"):
        encode(systems("Pythia 70M").small().changed({}, replace(
            systems("Pythia 70M").small().config, parallel=False)), PROMPT)  # fmt: skip
    with pytest.raises(ShapeError, match=r"score_bias is \(head, query, key\) = \(4, 7, 7\)"):
        encode(BERT, PROMPT, score_bias=np.zeros((7, 7)))
    with pytest.raises(ShapeError, match="keys are 7 booleans"):
        encode(BERT, PROMPT, keys=np.ones(7))
    with pytest.raises(ShapeError, match=r"rows are \(pos, d_model = 32\)"):
        encode(BERT, rows=np.zeros((3, 5)))
    with pytest.raises(OtimesError, match="one prompt, got a batch"):
        encode(BERT, [PROMPT, PROMPT])
    with pytest.raises(ShapeError, match=r"the table is \(bucket, head\)"):
        relative_bias(np.zeros(3), 4)
    with pytest.raises(OtimesError, match="2 buckets up to distance 128"):
        relative_bias(np.zeros((2, 1)), 4)


def test_an_encoder_has_no_causal_pass() -> None:
    encoder = BERT.changed({}, replace(BERT.config, causal=False))
    assert "no causal mask" in repr(encoder)
    assert np.array_equal(encode(encoder, PROMPT)["final"], encode(BERT, PROMPT)["final"])
    for call in (
        encoder.forward,
        lambda tokens: ot.audit(len, tokens, weights=encoder),
        lambda tokens: ot.audit_padded(len, [tokens], [[1] * len(tokens)], encoder),
        lambda tokens: ot.audit_decoding(len, tokens, encoder),
        lambda tokens: ot.head_patterns(encoder, tokens, 0),
    ):
        with pytest.raises(OtimesError, match="encoder, whose positions see all others"):
            call(PROMPT)
