"""The ways in: what is accepted, what is refused in one sentence, and the report's forms."""

import json

import numpy as np
import pytest
import torch

import otimes as ot
from otimes.numeric.importers.checkpoint import Settings
from otimes.numeric.importers.huggingface import model_of
from otimes.numeric.importers.rotary import rotary
from otimes.numeric.load import of_mapping
from otimes.numeric.model import save_model
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.catalogue import GPT2, KINDS, LLAMA, NEOX
from tests.numeric.audit.foreign import Foreign

TOKENS = [3, 0, 10, 3, 7, 7, 28, 1]
MODEL = random_model(GPT2, seed=1)


def test_a_batch_in_torch_and_a_prompt_as_a_list_are_both_taken() -> None:
    right = Foreign(MODEL, torch.float32)
    assert ot.audit(right, torch.tensor([TOKENS, TOKENS[::-1]]), weights=MODEL).passed
    assert ot.audit(right, TOKENS, weights=MODEL).passed


def test_the_callable_gets_the_tokens_of_the_caller() -> None:
    got = []

    def call(tokens):
        got.append(tokens)
        return MODEL.forward(tokens)["logits"]

    assert ot.audit(call, TOKENS, weights=MODEL).passed
    assert got[0] is TOKENS


def test_names_of_places_may_be_the_implementations_own() -> None:
    def call(tokens):
        places = MODEL.forward(tokens)
        return places["logits"], {"blocks.0.attn": places["attn_out.0"] + 1e-3, "loss": 3.0}

    report = ot.audit(call, TOKENS, weights=MODEL, names={"blocks.0.attn": "attn_out.0"})
    assert report.first_failure.place == "attn_out.0"
    with pytest.raises(ot.OtimesError, match="names= maps to attn.0, no hook point of this model"):
        ot.audit(call, TOKENS, weights=MODEL, names={"blocks.0.attn": "attn.0"})


def test_a_slip_in_the_name_of_a_hook_point_is_refused() -> None:
    def call(tokens, more=("patern.0", "resid_pre0")):
        found = MODEL.forward(tokens)
        return found["logits"], {**dict.fromkeys(more, found["pattern.0"]), "z.0": found["z.0"]}

    says = (
        r"'patern.0' \(near pattern.0\S*.*\) and 'resid_pre0' \(near resid_pre.0.*names={'…': None}"
    )
    with pytest.raises(ot.OtimesError, match=says):
        ot.audit(call, TOKENS, weights=MODEL)
    left_out = {"patern.0": None, "resid_pre0": None}
    report = ot.audit(call, TOKENS, weights=MODEL, names=left_out)
    assert report.passed
    assert not any("no such hook points" in note for note in report.notes)
    report = ot.audit(lambda t: call(t, ["my_own_one"]), TOKENS, weights=MODEL)
    assert any("no such hook points: my_own_one" in note for note in report.notes)


def test_places_may_be_missing_or_more() -> None:
    def call(tokens):
        places = MODEL.forward(tokens)
        return places["logits"], {"z.1": places["z.1"], "mine": places["z.1"]}

    report = ot.audit(call, TOKENS, weights=MODEL)
    assert report.passed
    assert list(report.ratios) == ["z.1", "logits"]
    assert any("mine" in note for note in report.notes)


def test_a_folder_and_a_mapping_are_weights(tmp_path) -> None:
    save_model(tmp_path / "mine", MODEL.config, MODEL.weights, {})
    right = Foreign(MODEL, torch.float64)
    assert ot.audit(right, TOKENS, weights=tmp_path / "mine").passed
    said = {"activation": "gelu_tanh", "norm_eps": 1e-5}
    assert ot.audit(right, TOKENS, weights=dict(MODEL.weights), config=said).passed
    tensors = {name: torch.tensor(each) for name, each in MODEL.weights.items()}
    assert ot.audit(right, TOKENS, weights=tensors, config=MODEL.config).passed


@pytest.mark.parametrize("config", [GPT2, LLAMA, NEOX], ids=list(KINDS))
def test_sizes_are_read_off_a_mapping(config) -> None:
    model = random_model(config)
    said = {"activation": config.activation, "norm_eps": config.norm_eps, "n_ctx": config.n_ctx}
    if config.positions == "rotary":
        said |= {"positions": "rotary", "rotary_dims": config.rotary_dims}
    found = of_mapping(model.weights, {**said, "parallel": config.parallel})
    assert found.config == config


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ot.audit(print, TOKENS), "weights= is needed to audit builtin_function"),
        (lambda: ot.audit(3, TOKENS, weights=MODEL), "int is neither a module nor callable"),
        (lambda: ot.audit(len, [1, 99], weights=MODEL), "token 99 at position 1 is not in the voc"),
        (lambda: ot.audit(len, [[[1]]], weights=MODEL), r"batch of prompts .* got shape \(1, 1, 1"),
        (
            lambda: ot.audit(lambda t: None, TOKENS, weights=MODEL),
            "must return logits, .* NoneType",
        ),
        (
            lambda: ot.audit(lambda t: (np.ones((8, 29)), np.ones((8, 29))), TOKENS, weights=MODEL),
            r"returned a tuple of an array of shape \(8, 29\) and an array of shape \(8, 29\)",
        ),
        (
            lambda: ot.audit(lambda t: t @ np.ones(3), np.array([TOKENS]), weights=MODEL),
            r"<lambda> was called with an array of shape \(1, 8\) \(int64\) and raised ValueErr",
        ),
        (
            lambda: ot.audit(lambda t: t.shape, TOKENS, weights=MODEL),
            "<lambda> was called with a list of length 8 and raised AttributeError: 'list' object",
        ),
        (
            lambda: ot.audit(len, [[1, 2], [3]], weights=MODEL),
            "prompts of a batch have one length, got different ones: audit them one by one",
        ),
        (
            lambda: ot.audit(len, {"input_ids": TOKENS, "attention_mask": []}, weights=MODEL),
            "tokens came as a mapping of input_ids and attention_mask: give the token ids",
        ),
        (
            lambda: ot.audit(len, TOKENS, weights=3),
            "a model is loaded by its name, from a folder or file, .* got 3",
        ),
        (
            lambda: ot.audit(len, TOKENS, weights=dict(MODEL.weights)),
            "shapes of the weights do not say activation and norm_eps: give config=",
        ),
        (
            lambda: ot.audit(lambda t: (None, {"mine": np.ones(3)}), TOKENS, weights=MODEL),
            "returned neither logits nor an activation of a known hook point",
        ),
    ],
)
def test_what_cannot_be_audited_is_refused_in_a_sentence(call, says: str) -> None:
    with pytest.raises(ot.OtimesError, match=says):
        call()


@pytest.mark.parametrize(
    ("kind", "settings", "says"),
    [
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention=True"),
        ("llama", {"sliding_window": 4096}, "sliding_window=4096"),
        ("llama", {"final_logit_softcapping": 30.0}, "final_logit_softcapping=30.0"),
        ("llama", {"embedding_multiplier": 12.0}, "embedding_multiplier=12.0"),
        (
            "imagined",
            {},
            "of the kind 'imagined'; there are importers for gpt2, gpt_neox, .*llama, mistral",
        ),
    ],
)
def test_settings_that_are_not_understood_are_refused_by_name(kind, settings, says) -> None:
    with pytest.raises(ot.OtimesError, match=says):
        model_of("theirs", kind, settings, {})


@pytest.mark.parametrize(
    ("rope", "says"),
    [
        ({"rope_theta": 9.0, "alpha": 2.0, "beta": None}, "theirs has alpha in its rotary"),
        ({"rope_type": "linear", "factor": 2.0, "mscale": 1.0}, "has mscale in its rotary"),
        ({"rope_type": "new", "alpha": 2.0}, "has rope_type='new', which changes the rotary"),
        (
            {"full_attention": {"rope_theta": 9.0}, "chunked_attention": {"rope_theta": 9.0}},
            "has chunked_attention in its rotary",
        ),
    ],
)
def test_a_rotary_parameter_that_is_not_known_is_refused(rope, says) -> None:
    settings = {"max_position_embeddings": 20, "rope_parameters": rope}
    with pytest.raises(ot.OtimesError, match=says):
        rotary("theirs", Settings("theirs", settings), 8)


def test_the_report_reads_as_sentences_as_json_and_as_a_page() -> None:
    wrong = Foreign(MODEL, torch.float32, ("no_mask",))
    report = ot.audit(wrong, TOKENS, weights=MODEL, name="mine")
    assert str(report).startswith(
        "mine does not compute the reference: 32 activations on 8 tokens in"
    )
    assert "it matches a softmax without the causal mask" in str(report)
    content = json.loads(json.dumps(report.to_json()))
    assert (content["schema"], content["passed"]) == (1, False)
    assert content["first_failure"]["place"] == "pattern.0"
    assert content["first_failure"]["layer"] == 0
    assert ">> 10⁶</td>" in report.html()
    assert "pattern.0" in report.html()
    assert str(ot.audit(Foreign(MODEL), TOKENS, weights=MODEL)).startswith(
        "Foreign computes the reference: 32 activations on 8 tokens in float32, error/bound at most"
        " 0."
    )


def test_half_of_a_unit_more_than_a_bound_is_not_a_fault_but_ten_are() -> None:
    """The sensitivity: a product that is wrong by a hundred of its roundings is found."""
    for times, passed in ((0, True), (1e-4, False)):

        def call(tokens, times=times):
            logits, places = Foreign(MODEL)(tokens)
            places["mlp_out.0"] = places["mlp_out.0"] * (1 + times)
            return logits, places

        assert ot.audit(call, TOKENS, weights=MODEL).passed == passed


@pytest.mark.parametrize("config", [GPT2, LLAMA, NEOX], ids=list(KINDS))
def test_a_configuration_as_it_is_written_is_whole_without_its_defaults(config) -> None:
    model = random_model(config)
    assert of_mapping(model.weights, config.to_json()).config == config
    sizes = {"n_layers": 2, "n_heads": 4, "d_model": 24, "d_head": 6, "d_vocab": 29, "n_ctx": 20}
    with pytest.raises(ot.OtimesError, match="do not say activation and norm_eps"):
        of_mapping(model.weights, {**sizes, "positions": config.positions})
