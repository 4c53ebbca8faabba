"""Every source of weights that `load_model` reads, and one sentence for what is missing in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otimes as ot
from otimes.numeric.config import Config
from otimes.numeric.files import write_weights
from otimes.numeric.load import bundled_models, load_model
from otimes.numeric.model import Model
from otimes.numeric.tensors import BFLOAT16, tensor_of
from tests.numeric.random_models import FULL, TINY, TINY_TOKENS, random_model

MODEL = random_model(FULL)
SMALL = ot.random_model(n_layers=2, n_heads=3, d_model=10, d_head=4, d_vocab=29)
BARE = dict(SMALL.weights)
LOGITS = MODEL.forward(TINY_TOKENS)["logits"]


def same(model: Model) -> bool:
    return np.array_equal(model.forward(TINY_TOKENS)["logits"], LOGITS)


def test_a_model_is_returned_unchanged() -> None:
    assert load_model(MODEL) is MODEL


@pytest.mark.parametrize("kind", [str, Path])
def test_a_saved_folder(kind: type, tmp_path: Path) -> None:
    assert MODEL.save(kind(tmp_path / "in" / "mine")) == tmp_path / "in" / "mine"
    model = load_model(kind(tmp_path / "in" / "mine"))
    assert same(model)
    assert (model.name, model.config) == ("mine", FULL)


def test_a_file_with_the_configuration_beside_it(tmp_path: Path) -> None:
    path = MODEL.save(tmp_path) / "weights.safetensors"
    assert same(load_model(path))
    (tmp_path / "config.json").unlink()
    assert same(load_model(str(path), FULL))
    assert same(load_model(path, FULL.to_json()))
    with pytest.raises(ot.OtimesError, match="has no config.json beside it: give config="):
        load_model(path)


def test_a_mapping_of_arrays() -> None:
    assert same(load_model(MODEL.weights, FULL))
    arrays = {name: np.asarray(each) for name, each in MODEL.weights.items()}
    assert same(load_model(arrays, FULL.to_json()))


def test_a_mapping_of_torch_tensors_is_shared() -> None:
    torch = pytest.importorskip("torch")
    tensors = {name: torch.tensor(np.asarray(each)) for name, each in MODEL.weights.items()}
    tensors["W_Q"].requires_grad_()
    model = load_model(tensors, FULL)
    assert same(model)
    assert np.shares_memory(model.W_E, tensors["W_E"].numpy())


def test_a_model_in_bfloat16_is_kept_in_two_bytes(tmp_path: Path) -> None:
    """The reference is the same model with the numbers written out as float32."""
    rounded = {
        name: np.asarray(each, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        for name, each in MODEL.weights.items()
    }
    halves = {name: (each >> 16).astype("<u2").view(BFLOAT16) for name, each in rounded.items()}
    plain = load_model({name: each.view(np.float32) for name, each in rounded.items()}, FULL)
    model = load_model(halves, FULL)
    assert sum(each.nbytes for each in model.weights.values()) == 2 * sum(
        each.size for each in MODEL.weights.values()
    )
    logits = plain.forward(TINY_TOKENS)["logits"]
    assert np.array_equal(model.forward(TINY_TOKENS)["logits"], logits)
    again = load_model(model.save(tmp_path / "half"))
    assert np.array_equal(again.forward(TINY_TOKENS)["logits"], logits)
    assert again.weights["W_Q"].stored_dtype == "bfloat16"
    assert repr(again).endswith("LayerNorm, bfloat16>")
    folded = again.fold_norms().forward(TINY_TOKENS)["logits"]
    assert np.abs(folded - logits).max() < 1e-12


def test_layers_of_torch_have_no_vocabulary() -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = load_model(layer)
    W_V = layer.self_attn.in_proj_weight[16:20].detach().numpy()  # of head 0
    W_O = layer.self_attn.out_proj.weight[:, :4].detach().numpy()
    circuit = np.asarray(ot.ov_circuit(layer, 0, 0).dense())
    assert np.allclose(circuit, W_V.T @ W_O.T, atol=1e-6)
    assert model.d_vocab == 0
    for ask in (
        lambda: model.forward([0]),
        lambda: model.W_E,
        lambda: ot.full_ov(layer, 0, 0),
        lambda: ot.logit_lens(layer, [0]),
        lambda: ot.verify(["scores_through_W_QK"], [layer]),
    ):
        with pytest.raises(ot.OtimesError, match="Layer.*no vocabulary|post"):
            ask()


# --- every function takes every source


TAKES: dict[str, Callable[[Any], Any]] = {
    "ov_circuit": lambda m: ot.ov_circuit(m, 0, 1).dense(),
    "qk_circuit": lambda m: ot.qk_circuit(m, 0, 1).dense(),
    "full_ov": lambda m: ot.full_ov(m, 0, 1).dense(),
    "full_qk": lambda m: ot.full_qk(m, 0, 1).dense(),
    "composition_scores": lambda m: ot.composition_scores(m).values,
    "copying_scores": lambda m: ot.copying_scores(m).values,
    "ov_eigenvalues": lambda m: ot.ov_eigenvalues(m).values,
    "virtual_weights": lambda m: ot.virtual_weights(m, "embed", "unembed").dense(),
    "stitching_map": lambda m: ot.stitching_map(m, m).K,
    "align_layers": lambda m: ot.align_layers(m, m).similarity.values,
    "projected": lambda m: ot.projected(m, "W_OV", 0, 1).dense(),
    "fold_layer_norm": lambda m: ot.fold_layer_norm(m).W_U,
    "skip_trigrams": lambda m: [each.effect for each in ot.skip_trigrams(m, 0, 1, 2)],
    "spectral_bands": lambda m: ot.spectral_bands(m, 2).energy(PLAIN.W_E),
    "logit_lens": lambda m: ot.logit_lens(m, [1, 2]).values,
    "head_patterns": lambda m: ot.head_patterns(m, [1, 2], 0).values,
    "head_behaviour": lambda m: ot.head_behaviour(m, np.array([[1, 2, 3, 1, 2, 3]])).values,
    "attention_scores": lambda m: ot.attention_scores(m, [1, 2], np.eye(2)).values,
    "positional_scores": lambda m: ot.positional_scores(m, [0, 1], [1, 2]).values,
    "joiner_scores": lambda m: ot.joiner_scores(m, [1, 2], [0, 0]).values,
    "syntactic_scores": lambda m: ot.syntactic_scores(m, [1, 2], [-1, 0]).values,
    "ablation_losses": lambda m: ot.ablation_losses(m, [1, 2]).values,
    "paths": lambda m: ot.paths(m, [1, 2]).by_order(),
    "direct_logit_attribution": lambda m: ot.direct_logit_attribution(m, [1, 2]).by_head().values,
    "input_gradient": lambda m: ot.input_gradient(m, [1, 2]).values,
    "gradient_norms": lambda m: ot.gradient_norms(m, [1, 2]).values,
    "gradient_times_input": lambda m: ot.gradient_times_input(m, [1, 2]).values,
    "integrated_gradients": lambda m: ot.integrated_gradients(m, [1, 2], n_steps=2).values,
    "smooth_grad": lambda m: ot.smooth_grad(m, [1, 2], n_samples=2).values,
    "attention_rollout": lambda m: ot.attention_rollout(m, [1, 2]).values,
    "context_mixing": lambda m: ot.context_mixing(m, [1, 2]).values,
    "output_value_norms": lambda m: ot.output_value_norms(m, [1, 2]).values,
    "value_norms": lambda m: ot.value_norms(m, [1, 2]).values,
    "occlusion": lambda m: ot.occlusion(m, [1, 2]).values,
    "perturbation": lambda m: ot.perturbation(m, [1, 2]).values,
    "relevance": lambda m: ot.relevance(m, [1, 2]).values,
    "audit_analysis": lambda m: (
        ot.audit_analysis(
            "ov_circuit", PLAIN.W_V[0, 1] @ PLAIN.W_O[0, 1], m, layer=0, head=1
        ).passed
    ),
    "intervene": lambda m: ot.intervene(m, [1, 2], {"z.0": "zero"})["logits"],
    "held": lambda m: ot.held(m, [1, 2], {"z.0": 0.0}, ["pattern.0"]).places["z.0"],
    "self_repair": lambda m: ot.self_repair(m, [1, 2]).values,
    "steer": lambda m: ot.steer(m, [1, 2], "final", np.ones(PLAIN.d_model))["logits"],
    "graph": lambda m: len(ot.graph(m).edges),
    "circuit": lambda m: ot.circuit(m, [1, 2], [3, 2], ot.graph(m).edges).value,
    "acdc": lambda m: ot.acdc(m, [1, 2], [3, 2], 0.0).value,
    "activation_patching": lambda m: ot.activation_patching(m, [1, 2], [3, 2]).values,
    "attribution_patching": lambda m: ot.attribution_patching(m, [1, 2], [3, 2]).values,
    "edge_patching": lambda m: ot.edge_patching(m, [1, 2], [3, 2]).values,
    "edge_attribution": lambda m: ot.edge_attribution(m, [1, 2], [3, 2]).values,
    "path_patching": lambda m: ot.path_patching(m, [1, 2], [3, 2], ["head_out.0[0]", "final"]),
    "information_flow": lambda m: ot.information_flow(m, [1, 2]).heads,
    "answers_to": lambda m: ot.answers_to(m, [1, 2]),
    "attention_sinks": lambda m: ot.attention_sinks(m, [1, 2]).values,
    "circuit_overlap": lambda m: tuple(ot.circuit_overlap(m, m, [1, 2], [3, 2], 1)),
    "context_or_memory": lambda m: ot.context_or_memory(m, [1, 2], 3, 4).values,
    "drawn_attention": lambda m: ot.drawn_attention(m, [1, 2]).attention,
    "fine_tune": lambda m: ot.fine_tune(m, [1, 2, 3], steps=1).W_U,
    "lens_correctness": lambda m: ot.lens_correctness(m, RIGHT_AND_WRONG).values,
    "shapley_values": lambda m: ot.shapley_values(m, [1, 2]).values,
    "stream_norms": lambda m: ot.stream_norms(m, [1, 2]).values,
    "feature_logits": lambda m: ot.feature_logits(m, DICTIONARY),
    "feature_tokens": lambda m: [each.logit for each in ot.feature_tokens(m, DICTIONARY, 0)],
    "feature_attribution": lambda m: ot.feature_attribution(m, DICTIONARY, [1, 2]).values,
    "top_activations": lambda m: [e.value for e in ot.top_activations(m, DICTIONARY, [1, 2], 0)],
    "loss_recovered": lambda m: tuple(ot.loss_recovered(m, DICTIONARY, [1, 2])),
    "audit": lambda m: ot.audit(lambda t: PLAIN.forward(t)["logits"], [1, 2], weights=m).passed,
}
OF_NEURONS: dict[str, Callable[[Any], Any]] = {
    "successor_scores": lambda m: np.nan_to_num(ot.successor_scores(m, [0, 1, 2]).values),
    "neuron_cosines": lambda m: ot.neuron_cosines(m).values,
    "neuron_moments": lambda m: ot.neuron_moments(m).values,
    "frequency_correlations": lambda m: ot.frequency_correlations(m, np.arange(1, 12)).values,
    "null_space_shares": lambda m: ot.null_space_shares(m, 2).values,
    "entropy_effects": lambda m: ot.entropy_effects(m, [1, 2], 1, [3]).values,
    "neuron_activations": lambda m: ot.neuron_activations(m, [1, 2]),
    "neuron_examples": lambda m: [e.value for e in ot.neuron_examples(m, [1, 2], 0, 1)],
    "neuron_information": lambda m: ot.neuron_information(m, [1, 2], [0, 1]).values,
    "label_variance": lambda m: ot.label_variance(m, [1, 2, 1]).values,
    "encode": lambda m: ot.encode(m, [1, 2])["final"],
    "recall_effects": lambda m: ot.recall_effects(m, [1, 2], [3, 2], 0).values,
    "weight_norms": lambda m: ot.weight_norms(m).values,
    "with_rank": lambda m: ot.with_rank(m, "W_out", 0, 1).W_out,
    "neuron_correlations": lambda m: ot.neuron_correlations(m, MODEL, [1, 2, 3]).values,
}
PLAIN = random_model(TINY)
NEXT = int(PLAIN.forward([1])["logits"][0].argmax())
RIGHT_AND_WRONG = [1, NEXT, *{0, 1, 2} - {int(PLAIN.forward([1, NEXT])["logits"][1].argmax())}][:3]
COLUMN = np.ones((PLAIN.d_model, 1))
DICTIONARY = ot.SAE(COLUMN, np.ones(1), COLUMN.T, np.zeros(PLAIN.d_model), hook_point="final")


@pytest.mark.parametrize("name", [*TAKES, *OF_NEURONS])
def test_a_folder_does_what_a_model_does(name: str, tmp_path: Path) -> None:
    model = MODEL if name in OF_NEURONS else PLAIN
    folder = model.save(tmp_path / "plain")
    ask = {**TAKES, **OF_NEURONS}[name]
    found, expected = ask(str(folder)), ask(model)
    assert np.array_equal(np.asarray(found), np.asarray(expected), equal_nan=name != "audit")


def test_every_public_function_of_a_model_is_among_them() -> None:
    import inspect

    of_models = {
        name
        for name in ot.__all__
        if inspect.isfunction(function := getattr(ot, name))
        and {"model", "A"} & set(inspect.signature(function).parameters)
        and function.__module__.startswith("otimes.numeric")
    }
    # Training needs a model of the vocabulary of the text: tests/numeric/features.
    assert of_models - {"train_sae"} <= {*TAKES, *OF_NEURONS}


def test_theorems_are_checked_on_a_live_model() -> None:
    report = ot.verify(["scores_through_W_QK"], [PLAIN, "two_layer"])
    assert report.passed
    assert [each.model for each in report.theorems[0].models] == [PLAIN.name, "two_layer"]


# --- what is missing


SIZES = {"n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 5, "vocab_size": 11}
GPT2: dict[str, Any] = {
    "model_type": "gpt2", "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, **SIZES
}  # fmt: skip
SHAPES = {
    "wte.weight": (11, 8), "wpe.weight": (5, 8), "ln_f.weight": (8,), "ln_f.bias": (8,),
    "h.0.ln_1.weight": (8,), "h.0.ln_1.bias": (8,), "h.0.ln_2.weight": (8,), "h.0.ln_2.bias": (8,),
    "h.0.attn.c_attn.weight": (8, 24), "h.0.attn.c_attn.bias": (24,),
    "h.0.attn.c_proj.weight": (8, 8), "h.0.attn.c_proj.bias": (8,),
    "h.0.mlp.c_fc.weight": (8, 32), "h.0.mlp.c_fc.bias": (32,),
    "h.0.mlp.c_proj.weight": (32, 8), "h.0.mlp.c_proj.bias": (8,),
}  # fmt: skip
TENSORS = {name: np.ones(shape, np.float32) for name, shape in SHAPES.items()}


def test_the_names_of_hugging_face_with_its_settings(tmp_path: Path) -> None:
    model = load_model(TENSORS, GPT2)
    assert model.n_heads == 2
    write_weights(tmp_path / "model.safetensors", TENSORS)
    assert load_model(tmp_path / "model.safetensors", GPT2).config == model.config
    (tmp_path / "config.json").write_text(json.dumps(GPT2))
    assert load_model(tmp_path).config == model.config
    with pytest.raises(ot.OtimesError, match="holds a checkpoint of Hugging Face, which is not"):
        model.save(tmp_path)


@pytest.mark.parametrize("name", [name for name in GPT2 if name != "model_type"])
def test_a_setting_that_is_missing_is_named(name: str) -> None:
    settings = {key: value for key, value in GPT2.items() if key != name}
    with pytest.raises(ot.OtimesError, match=f"config.json of weights lacks {name}$"):
        load_model(TENSORS, settings)


@pytest.mark.parametrize("value", [0, -1, "8", 8.0, None, True])
@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_a_positive_integer(name: str, value: object) -> None:
    with pytest.raises(ot.OtimesError, match=f"{name}={value!r}.*positive integer"):
        load_model(TENSORS, {**GPT2, name: value})


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_that_is_missing_is_named(name: str) -> None:
    tensors = {f"transformer.{key}": each for key, each in TENSORS.items() if key != name}
    with pytest.raises(ot.OtimesError, match=f"the checkpoint lacks transformer.{name}"):
        load_model(tensors, GPT2)


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_of_another_shape_is_named(name: str) -> None:
    tensors = {**TENSORS, name: np.ones((3, 7), np.float32)}
    with pytest.raises(ot.ShapeError, match=rf"{name} has shape \(3, 7\), but the settings"):
        load_model(tensors, GPT2)
    with pytest.raises(ot.OtimesError, match=rf"{name} holds int64: quantised"):
        load_model({**TENSORS, name: np.ones(TENSORS[name].shape, np.int64)}, GPT2)


def test_a_transposed_weight_of_the_same_size_is_not_reshaped() -> None:
    name = "h.0.attn.c_attn.weight"
    with pytest.raises(ot.ShapeError, match=r"\(24, 8\), but .* require \(8, 24\)"):
        load_model({**TENSORS, name: TENSORS[name].T}, GPT2)


def test_an_index_without_its_map(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(GPT2))
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(ot.OtimesError, match=r"index\.json lacks weight_map"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("source", "config", "says"),
    [
        ("nowhere", None, "there is no model 'nowhere': it is neither bundled"),
        (__file__, None, r"test_load\.py is a file; a model is a folder"),
        ("two_layer", None, None),
        (MODEL, FULL, "config= goes with a mapping of arrays or a safetensors file"),
        ({"W_E": np.ones(3)}, None, "the weights lack W_Q, W_K and W_O"),
        (
            {name: np.ones(3) for name in ("W_E", "W_Q", "W_K", "W_O")},
            None,
            r"W_E has shape \(3,\), but must have the 2 axes d_vocab and d_model",
        ),
        (
            {**BARE, "W_K": BARE["W_K"].mT},
            None,
            r"W_K has .* \(2, 3, 10, 4\) is needed: is W_K transposed\? .* \[d_model, d_head\]$",
        ),
        ({**BARE, "W_E": BARE["W_E"].T}, None, r"is W_E transposed\?.*\[d_vocab, d_model\]$"),
        (
            {**BARE, **{name: BARE[name].mT for name in ("W_Q", "W_K", "W_V", "W_O")}},
            None,
            "is W_Q transposed.*; the same goes for W_K, W_V and W_O$",
        ),
        (
            {**BARE, "W_O": BARE["W_O"][:, :2]},
            None,
            "needed for its axes n_layers, n_heads, d_head and d_model$",
        ),
        (
            BARE,
            None,
            r"do not say positions: .*\(positions are none, shortformer, rotary and alibi\)$",
        ),
        (
            {**BARE, "W_Q": BARE["W_Q"].mT},
            SMALL.config,
            r"requires \(2, 3, 10, 4\): is W_Q transposed\?",
        ),
        (TENSORS, None, "the weights lack W_E.*for the names of Hugging Face, the content of"),
        (
            TENSORS,
            {**GPT2, "model_type": "imagined"},
            "is of the kind 'imagined'; there are importers",
        ),
        (object(), None, "there is no importer for object of builtins"),
        (
            {"w": np.eye(2)},
            {"model_type": "albert"},
            "of the kind 'albert', an encoder, whose positions see all others: `encode` is",
        ),
        ({"w": np.eye(2)}, {"model_type": "t5"}, "an encoder and a decoder that reads it"),
        ({"w": np.eye(2)}, {"model_type": "mamba2"}, "layers that carry a state from token"),
    ],
)
def test_what_cannot_be_loaded_is_said_in_a_sentence(source: Any, config: Any, says: Any) -> None:
    if says is None:
        load_model(source, config)
        return
    with pytest.raises(ot.OtimesError, match=says) as raised:
        load_model(source, config)
    assert "\n" not in str(raised.value)


def test_the_own_class_of_a_user_is_not_taken_for_another() -> None:
    class GPT2Model:
        pass

    with pytest.raises(ot.OtimesError, match="no importer for GPT2Model of tests.numeric.test_lo"):
        load_model(GPT2Model())


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ot.OtimesError, match=r"cannot write .*file/mine: "):
        MODEL.save(tmp_path / "file" / "mine")


# --- what a model says of itself, and its transformations


def test_the_representation_names_the_architecture() -> None:
    assert repr(load_model("gpt2_tiny")).startswith("<gpt2_tiny: 4 layers of 4 heads, d_model=")
    for name in bundled_models():
        assert len(repr(load_model(name))) < 200


def test_folding_and_centring_keep_what_they_promise() -> None:
    folded = MODEL.fold_norms()
    assert np.abs(folded.forward(TINY_TOKENS)["logits"] - LOGITS).max() < 1e-12
    centred = MODEL.center()
    places = centred.forward(TINY_TOKENS)
    assert np.abs(places["logits"] - LOGITS).max() < 1e-12
    assert np.abs(places["resid_post.1"].mean(axis=-1)).max() < 1e-13
    assert centred.config.norm == "rms"
    both = MODEL.center(unembedding=True).forward(TINY_TOKENS)["logits"]
    assert np.abs(both.mean(axis=-1)).max() < 1e-12
    assert np.abs(both - (LOGITS - LOGITS.mean(axis=-1, keepdims=True))).max() < 1e-12
    with pytest.raises(ot.OtimesError, match="cannot centre the writing weights"):
        PLAIN.center()


def test_a_configuration_without_a_vocabulary_is_understood() -> None:
    config = replace(TINY, d_vocab=0)
    assert isinstance(config, Config)
    assert tensor_of(np.zeros(config.shape("W_E"))).shape == (0, 5)
