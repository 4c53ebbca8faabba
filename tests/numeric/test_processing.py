"""Rewritten models: same function, float64 kept, the part that was to go is gone, or a refusal."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from otimes.algebra.errors import RuleError
from otimes.numeric import processing
from otimes.numeric import strategies as ots
from otimes.numeric.circuits.heads import ov_circuit, qk_circuit
from otimes.numeric.config import BIASES, Config
from otimes.numeric.functions import rotate
from otimes.numeric.model import Model, make_model
from otimes.numeric.random_weights import random_model as random_small
from tests.numeric.random_models import FULL, KINDS, TINY_TOKENS, random_model, random_weights

# As in `test_forward.py`: two passes and one product more before them, on numbers of the same size.
TOLERANCE = 1e-12

GATED = replace(
    FULL, n_kv_heads=2, activation="silu", gated=True, tied=True, biases=BIASES, parallel=True
)
WITH_NORMS = {
    "gpt2": KINDS["gpt2"],
    "neox": KINDS["neox"],
    "gated": GATED,
    "no layers": KINDS["norms but no layers"],
}


def logits(model: Model) -> np.ndarray:
    return model.forward(TINY_TOKENS)["logits"]


def log_probabilities(model: Model) -> np.ndarray:
    found = logits(model)
    return found - np.log(np.exp(found).sum(axis=1, keepdims=True))


def folded(model: Model) -> Model:
    return processing.fold_norm_gains(processing.fold_norm_biases(model))


REWRITINGS: dict[str, Callable[[Model], Model]] = {
    "fold_norm_biases": processing.fold_norm_biases,
    "fold_norm_gains": folded,
    "centre_readers": lambda model: processing.centre_readers(folded(model)),
    "centre_writers": lambda model: processing.centre_writers(processing.fold_norm_biases(model)),
    "fold_value_biases": processing.fold_value_biases,
    "untie": processing.untie,
    "all": lambda model: processing.fold_value_biases(
        processing.centre_writers(processing.centre_readers(folded(model)))
    ),
}


@pytest.mark.parametrize("kind", WITH_NORMS)
@pytest.mark.parametrize("rewriting", REWRITINGS)
def test_the_logits_stay(kind: str, rewriting: str) -> None:
    model = random_model(WITH_NORMS[kind], seed=3)
    other = REWRITINGS[rewriting](model)
    assert np.abs(logits(other) - logits(model)).max() < TOLERANCE


def test_every_rewriting_did_something() -> None:
    """A function that returns what it was given would pass the test above."""
    model = random_model(WITH_NORMS["gated"], seed=3)
    for name, rewriting in REWRITINGS.items():
        other = rewriting(model)
        changed = [
            tensor
            for tensor in {*model.weights, *other.weights}
            if tensor not in model.weights
            or tensor not in other.weights
            or not np.array_equal(model.weights[tensor], other.weights[tensor])
        ]
        assert changed, name


def test_what_was_folded_is_gone() -> None:
    for kind in WITH_NORMS:
        model = random_model(WITH_NORMS[kind], seed=3)
        other = folded(model)
        for norm in ("ln1", "ln2", "ln_final"):
            assert not getattr(other, f"{norm}_bias").any()
            assert (getattr(other, f"{norm}_gain") == 1).all()


def test_rms_gains_fold_too() -> None:
    model = random_model(KINDS["llama"], seed=3)
    other = processing.fold_norm_gains(processing.fold_norm_biases(model))
    assert (other.ln2_gain == 1).all()
    assert np.abs(logits(other) - logits(model)).max() < TOLERANCE


def test_a_model_without_norms_has_nothing_to_fold() -> None:
    model = random_model(KINDS["biases only"])
    assert folded(model) is model


def test_readers_are_centred_and_writers_keep_the_stream_centred() -> None:
    model = folded(random_model(KINDS["gpt2"], seed=3))
    reads = processing.centre_readers(model)
    for name in ("W_Q", "W_K", "W_V", "W_in", "W_U"):
        assert np.abs(getattr(reads, name).sum(axis=-2)).max() < 1e-14
        assert np.abs(getattr(model, name).sum(axis=-2)).max() > 0.1
    writes = processing.centre_writers(model)
    assert writes.config.norm == "rms"
    assert "ln1_bias" not in writes.weights
    for place, value in writes.forward(TINY_TOKENS).items():
        if place.startswith("resid") or place == "final":
            # Nine summands below 10.
            assert np.abs(value.mean(axis=1)).max() < 9 * 10 * 2.0**-53
    assert np.abs(model.forward(TINY_TOKENS)["final"].mean(axis=1)).max() > 0.1


def test_the_value_bias_is_seen_by_every_position_alike() -> None:
    model = random_model(KINDS["everything"], seed=3)
    other = processing.fold_value_biases(model)
    assert "b_V" not in other.weights
    assert not other.b_V.any()
    assert np.abs(logits(other) - logits(model)).max() < TOLERANCE
    without_b_O = random_model(replace(FULL, biases=("b_V",)), seed=3)
    other = processing.fold_value_biases(without_b_O)
    assert other.config.biases == ("b_O",)
    assert np.abs(logits(other) - logits(without_b_O)).max() < TOLERANCE
    assert processing.fold_value_biases(other) is other


@pytest.mark.parametrize("kind", ["gpt2", "shortformer with norms", "biases only"])
def test_a_key_bias_can_be_dropped_without_rotary(kind: str) -> None:
    model = random_model(KINDS[kind], seed=3)
    other = processing.drop_key_biases(model)
    assert "b_K" not in other.weights
    assert np.abs(logits(other) - logits(model)).max() < TOLERANCE
    scores = model.forward(TINY_TOKENS)["scores.0"] - other.forward(TINY_TOKENS)["scores.0"]
    assert np.ptp(scores, axis=2).max() < TOLERANCE
    assert np.abs(scores).max() > 0.1


def test_a_turned_key_bias_is_not_dropped_and_must_not_be() -> None:
    model = random_model(KINDS["neox"], seed=3)
    with pytest.raises(
        RuleError, match="cannot drop b_K: .* layer 0, head 0 it is not zero in the"
    ):
        processing.drop_key_biases(model)
    dropped = model.changed(
        {}, replace(model.config, biases=("b_Q", "b_V", "b_O", "b_in", "b_out"))
    )
    assert np.abs(logits(dropped) - logits(model)).max() > 1e-3


def test_a_key_bias_beyond_the_turned_dimensions_is_dropped() -> None:
    """Partial rotary positions: b_K in the dimensions that are not turned is one more constant."""
    weights = random_weights(KINDS["neox"], seed=3)
    weights["b_K"][:, :, :4] = 0
    model = make_model("partial", KINDS["neox"], weights)
    other = processing.drop_key_biases(model)
    assert model.b_K.any()
    assert np.abs(logits(other) - logits(model)).max() < TOLERANCE
    weights["b_K"][1, 2, 3] = 1e-3
    model = make_model("partial", KINDS["neox"], weights)
    with pytest.raises(
        RuleError, match="cannot drop b_K: rotary positions rotate it, and at layer 1, head 2 it"
    ):
        processing.drop_key_biases(model)


@pytest.mark.parametrize("kind", ["attention only", "gpt2", "gptj"])
def test_a_centred_unembedding_leaves_the_probabilities(kind: str) -> None:
    model = random_model(KINDS[kind], seed=3)
    other = processing.centre_unembedding(model)
    assert np.abs(log_probabilities(other) - log_probabilities(model)).max() < TOLERANCE
    assert np.abs(logits(other).mean(axis=1)).max() < TOLERANCE
    assert np.abs(logits(model).mean(axis=1)).max() > 0.01


def test_float64_stays_float64() -> None:
    """Stored as float32, a rewritten tensor is not rounded back."""
    model = random_model(KINDS["gpt2"], seed=3)
    single = model.changed({n: w.astype(np.float32) for n, w in model.weights.items()})
    for name, rewriting in REWRITINGS.items():
        other = rewriting(single)
        assert np.abs(logits(other) - logits(single)).max() < TOLERANCE, name
        changed = [t for t in other.weights if other.weights[t].dtype == np.float64]
        assert changed or name == "untie"
    assert {w.dtype for w in folded(model).weights.values()} == {np.dtype(np.float64)}


REFUSED: list[tuple[str, Callable[[Model], Model], Config, str]] = [
    ("biases first", processing.fold_norm_gains, FULL, "fold the gains: ln1_bias is not zero"),
    (
        "biases first",
        processing.centre_readers,
        FULL,
        "cannot centre the reading weights: ln1_bias is not zero; apply",
    ),
    (
        "biases first",
        processing.centre_writers,
        FULL,
        "cannot centre the writing weights: ln1_bias is not zero; apply",
    ),
    (
        "positions after the gain",
        lambda m: processing.fold_norm_gains(processing.fold_norm_biases(m)),
        KINDS["shortformer with norms"],
        "cannot fold the gains of a shortformer model",
    ),
    (
        "gains first",
        lambda m: processing.centre_readers(processing.fold_norm_biases(m)),
        FULL,
        "ln1_gain is not 1; fold it first",
    ),
    (
        "no centring",
        processing.centre_readers,
        KINDS["llama"],
        "cannot centre the reading weights: norm is 'rms', not 'layer'",
    ),
    ("no centring", processing.centre_writers, KINDS["llama"], "norm='rms', final_norm=True"),
    (
        "the unembedding reads the stream",
        processing.centre_writers,
        replace(FULL, final_norm=False),
        "norm='layer', final_norm=False",
    ),
]


@pytest.mark.parametrize(("why", "rewriting", "config", "message"), REFUSED)
def test_what_does_not_hold_is_refused(
    why: str, rewriting: Callable, config: Config, message: str
) -> None:
    with pytest.raises(RuleError, match=message):
        rewriting(random_model(config, seed=3))


def test_centring_the_readers_of_position_vectors_is_refused() -> None:
    model = random_model(KINDS["shortformer with norms"], seed=3)
    plain = {
        name: np.ones_like(w) if name.endswith("gain") else np.zeros_like(w)
        for name, w in model.weights.items()
        if name.startswith("ln")
    }
    with pytest.raises(
        RuleError, match="cannot centre the reading weights of a shortformer model: queries and"
    ):
        processing.centre_readers(model.changed(plain))


@settings(max_examples=60)
@given(ots.configs(norm_eps=0.25, norm_order="pre"), st.data())
def test_on_drawn_models_a_rewriting_refuses_or_leaves_the_logits(
    config: Config, data: st.DataObject
) -> None:
    model = data.draw(ots.models(config=config))
    tokens = data.draw(ots.tokens(model.d_vocab, longest=model.n_ctx))
    places = model.forward(tokens)
    size = max(1.0, max(float(np.abs(place).max()) for place in places.values()))
    rewritings = [*REWRITINGS.values(), processing.drop_key_biases]
    rewriting = rewritings[data.draw(st.integers(0, len(rewritings) - 1))]
    try:
        other = rewriting(model)
    except RuleError:
        assume(False)
    difference = np.abs(other.forward(tokens)["logits"] - places["logits"]).max()
    assert difference < TOLERANCE * size**2


@pytest.mark.parametrize("kind", ["granite", "cohere"])
def test_scales_of_what_is_written_go_into_the_weights(kind: str) -> None:
    model = random_small(kind=kind, write_scale=0.3, norm="layer", embed_scale=1.0, seed=2)
    before = model.forward([3, 1, 4, 1, 5])["logits"]
    for changed in (model.fold_norms(), model.center()):
        assert (changed.config.write_scale, changed.config.logit_scale) == (1, 1)
        found = changed.forward([3, 1, 4, 1, 5])["logits"]
        assert np.abs(found - before).max() < 1e-12
    head = model.layer(1).head(2)
    circuit = ov_circuit(model.fold_norms(), 1, 2).dense()
    stored = np.asarray(model.weights["W_O"][1, 2], dtype=float)
    expected = np.diag(model.ln1_gain[1]) @ head.W_V @ stored * 0.3
    assert np.abs(circuit - expected).max() < 1e-12


def test_circuits_of_scores_turn_by_the_base_of_their_layer() -> None:
    none = random_small(kind="smollm3", seed=2).fold_norms()
    near, far = (qk_circuit(none, 1, 0, distance=each).dense() for each in (1, 3))
    assert np.array_equal(near, far)
    model = random_small(
        kind="gemma3", seed=2, embed_scale=1.0, qk_norm="none", norm_order="pre"
    ).fold_norms()
    found = qk_circuit(model, 0, 1, distance=3).dense()
    turn = rotate(np.tile(np.eye(8)[:, None], (1, 4, 1)), *model.config.of_layer(0).rotation)[:, 3]
    expected = model.W_Q[0, 1] @ turn @ model.W_K[0, 1].T
    assert model.config.of_layer(0).rotary_base == 100
    assert np.abs(found - expected).max() < 1e-12
