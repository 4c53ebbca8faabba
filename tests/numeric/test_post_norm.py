"""Norms after the sums: what is said of such a model, and what is refused because it is no sum."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import otimes as ot
from otimes.numeric import processing
from otimes.numeric.config import Config
from otimes.numeric.model import Model, save_model
from otimes.numeric.random_weights import random_model
from tests.numeric.random_models import POST_NORM

PROMPT = [3, 1, 4, 1, 5]
ENCODER = Config(
    n_layers=2, n_heads=4, d_model=8, d_head=2, d_vocab=11, n_ctx=7, positions="none", d_mlp=12,
    activation="relu", norm="layer", norm_eps=0.01, norm_order="post", final_norm=True,
    biases=("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out"),
)  # fmt: skip


def torch_encoder(model: Model) -> nn.TransformerEncoder:
    """torch's own encoder with the model's weights, put in their places by hand."""
    c = model.config
    layer = nn.TransformerEncoderLayer(
        c.d_model, c.n_heads, c.d_mlp, 0.0, "relu", c.norm_eps, batch_first=True
    )
    norm = nn.LayerNorm(c.d_model, c.norm_eps)
    encoder = nn.TransformerEncoder(layer, c.n_layers, norm, enable_nested_tensor=False).double()

    def biases(number: int) -> np.ndarray:
        return np.concatenate([model.part(f"b_{x}", number).ravel() for x in "QKV"])

    def flat(letter: str, number: int) -> np.ndarray:
        return np.concatenate([model.part(f"W_{letter}", number)[h].T for h in range(c.n_heads)])

    state = {"norm.weight": model.part("ln_final_gain"), "norm.bias": model.part("ln_final_bias")}
    for n in range(c.n_layers):
        parts = {
            "self_attn.in_proj_weight": np.concatenate([flat(x, n) for x in "QKV"]),
            "self_attn.in_proj_bias": biases(n),
            "self_attn.out_proj.weight": np.concatenate([*model.part("W_O", n)]).T,
            "self_attn.out_proj.bias": model.part("b_O", n),
            "linear1.weight": model.part("W_in", n).T,
            "linear1.bias": model.part("b_in", n),
            "linear2.weight": model.part("W_out", n).T,
            "linear2.bias": model.part("b_out", n),
            "norm1.weight": model.part("ln1_gain", n),
            "norm1.bias": model.part("ln1_bias", n),
            "norm2.weight": model.part("ln2_gain", n),
            "norm2.bias": model.part("ln2_bias", n),
        }  # fmt: skip
        state |= {f"layers.{n}.{name}": array for name, array in parts.items()}
    encoder.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return encoder.train()  # slow path; there is no dropout


def test_the_reference_is_what_torch_computes() -> None:
    model = random_model(ENCODER, seed=1)
    encoder, seen = torch_encoder(model), {}
    for number, layer in enumerate(encoder.layers):
        for part, place in (("norm1", "ln1"), ("norm2", "ln2"), ("linear2", "mlp_out")):
            layer.get_submodule(part).register_forward_hook(
                lambda _, __, value, name=f"{place}.{number}": seen.update({name: value})
            )
    mask = nn.Transformer.generate_square_subsequent_mask(len(PROMPT), dtype=torch.float64)
    with torch.no_grad():
        seen["ln_final"] = encoder(torch.tensor(model.part("W_E", PROMPT)[None]), mask=mask)
    places = model.forward(PROMPT)
    for name, value in seen.items():
        # Numbers of order one; fewer than a hundred roundings in a row on the way.
        assert np.abs(places[name] - value[0].numpy()).max() < 1e-13, name
    assert np.array_equal(places["resid_pre.1"], places["ln2.0"])
    assert np.array_equal(places["final"], places["ln2.1"])


REFUSED: dict[str, tuple[str, Callable[[Model], object]]] = {
    "paths": ("paths and frozen norms", lambda m: ot.paths(m, PROMPT)),
    "direct": ("direct logit attribution", lambda m: ot.direct_logit_attribution(m, PROMPT, 3)),
    "gradients": ("gradients and relevance", lambda m: ot.gradient_times_input(m, PROMPT, 3)),
    "relevance": ("gradients and relevance", lambda m: ot.relevance(m, PROMPT, 3)),
    "folding biases": ("folding norms", processing.fold_norm_biases),
    "folding gains": ("folding norms", processing.fold_norm_gains),
    "readers": ("centring the reading weights", processing.centre_readers),
    "writers": ("centring the writing weights", processing.centre_writers),
    "full OV": ("a full OV circuit", lambda m: ot.full_ov(m, 0, 0)),
    "full QK": ("a full QK circuit", lambda m: ot.full_qk(m, 0, 0)),
    "composition": ("composition", lambda m: ot.composition_scores(m, "Q")),
    "virtual weights": (
        "the input of 'head 1.0 Q'",
        lambda m: ot.virtual_weights(m, "embed", "head 1.0 Q"),
    ),
    "copying": ("a full OV circuit", ot.copying_scores),
    "an analysis": (
        "direct logit attribution",
        lambda m: ot.audit_analysis("direct_logit_attribution", np.zeros((2, 4, 5, 11)), m, PROMPT),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_sum_of_parts_is_refused_in_a_sentence(name: str) -> None:
    says, ask = REFUSED[name]
    match = f"^{says}.*: not for norm_order='post', where the residual stream is normalised"
    with pytest.raises(ot.OtimesError, match=match):
        ask(random_model(ENCODER))


def test_so_are_the_theorems(tmp_path) -> None:
    model = random_model(ENCODER, dtype=np.float32)
    save_model(tmp_path / "post", ENCODER, dict(model.weights), {})
    with pytest.raises(ot.OtimesError, match="theorems are checked on models: not for norm_order"):
        ot.verify(["kron_entry"], models=[str(tmp_path / "post")])


def test_a_head_by_itself_reads_the_stream_whatever_the_gain() -> None:
    model = random_model(ENCODER)
    W_V, W_O = model.part("W_V", 1)[2], model.part("W_O", 1)[2]
    assert np.abs(ot.ov_circuit(model, 1, 2).dense() - W_V @ W_O).max() < 1e-15
    assert ot.qk_circuit(model, 1, 2).shape == (8, 8)
    assert ot.copying_scores(model, "bare").values.shape == (2, 4)


@pytest.mark.parametrize("kind", POST_NORM)
def test_what_asks_only_for_passes_goes_on(kind: str) -> None:
    model = random_model(POST_NORM[kind])
    assert ot.occlusion(model, PROMPT, 3).values.shape == (5,)
    assert ot.context_mixing(model, PROMPT).values.shape[0] == model.n_layers
    lens = ot.logit_lens(model, PROMPT).values
    # Two ways to the same logits, of order one.
    assert np.abs(lens[-1, -1] - model.forward(PROMPT)["logits"][-1]).max() < 1e-12
