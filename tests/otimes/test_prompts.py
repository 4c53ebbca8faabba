"""Every public function of a model takes every source of one, and every form of a prompt."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import otimes as ot
from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.result import Named

TEXT, OTHER = "for i in range", "for x in range"
MODEL = "two_layer"

# What each function needs beside the model and the prompt, by position.
STACKED: dict[str, dict[str, Any]] = {
    "attention_rollout": {},
    "context_mixing": {},
    "gradient_norms": {"target": "("},
    "gradient_times_input": {"target": "("},
    "head_patterns": {"layer": 0},
    "input_gradient": {"target": "("},
    "integrated_gradients": {"target": "(", "n_steps": 2},
    "logit_lens": {},
    "occlusion": {"target": "("},
    "output_value_norms": {},
    "perturbation": {"target": "(", "n_samples": 2},
    "relevance": {"target": "("},
    "smooth_grad": {"target": "(", "n_samples": 2},
    "value_norms": {},
}
"""Functions of one prompt that return a table, and stack the tables of a batch."""

ONE_PROMPT = {"direct_logit_attribution", "paths"}
"""Functions of one prompt that return something else, and refuse a batch in one sentence."""

MANY_PROMPTS = {"head_behaviour"}
"""Functions that sum over prompts."""

OF_WEIGHTS: dict[str, dict[str, Any]] = {
    "composition_scores": {"kinds": "K"},
    "copying_scores": {},
    "fold_layer_norm": {},
    "full_ov": {"layer": 0, "head": 0},
    "full_qk": {"layer": 0, "head": 0},
    "graph": {},
    "load_model": {},
    "ov_circuit": {"layer": 0, "head": 0},
    "ov_eigenvalues": {},
    "qk_circuit": {"layer": 0, "head": 0},
    "skip_trigrams": {"layer": 0, "head": 0, "k": 1},
    "spectral_bands": {},
    "virtual_weights": {"writer": "embed", "reader": "unembed"},
}
"""Functions of a model without a prompt."""

OTHERS = {
    "align_layers",
    "audit",
    "audit_analysis",
    "audit_decoding",
    "audit_padded",
    "projected",
    "stitching_map",
    "verify",
}
"""Functions of two models, of an implementation, and of theorems, which have tests of their own."""

INTERVENTIONS = {
    "acdc",
    "activation_patching",
    "attribution_patching",
    "circuit",
    "edge_attribution",
    "edge_patching",
    "held",
    "information_flow",
    "intervene",
    "path_patching",
    "self_repair",
    "steer",
}
"""Functions of two prompts or of replacements: `tests/numeric/interventions`."""


FEATURES = {
    "feature_attribution",
    "feature_logits",
    "feature_tokens",
    "load_sae",
    "loss_recovered",
    "top_activations",
    "train_sae",
}
"""Functions of a sparse autoencoder: `tests/numeric/features`."""


BEHAVIOURS = {
    "ablation_losses",
    "attention_scores",
    "entropy_effects",
    "frequency_correlations",
    "joiner_scores",
    "label_variance",
    "neuron_activations",
    "neuron_correlations",
    "neuron_cosines",
    "neuron_examples",
    "neuron_information",
    "neuron_moments",
    "null_space_shares",
    "positional_scores",
    "successor_scores",
    "syntactic_scores",
}
"""Functions that sum over prompts, or read weights: `tests/numeric/behaviours`, and `circuits`."""


OF_STREAMS = {
    "answers_to",
    "attention_sinks",
    "circuit_overlap",
    "context_or_memory",
    "fine_tune",
    "lens_correctness",
    "recall_effects",
    "stream_norms",
    "weight_norms",
    "with_rank",
}
"""The same, of streams, training and knowledge: `tests/numeric/behaviours`."""


TOOLS = {"drawn_attention", "encode", "shapley_values"}
"""Functions of one prompt: `test_attention_views`, `test_encoder`, `attribution/test_shapley`."""


def public_functions() -> dict[str, Callable[..., Any]]:
    return {name: getattr(ot, name) for name in ot.__all__ if inspect.isfunction(getattr(ot, name))}


def test_every_public_function_of_a_model_or_a_prompt_is_tried_here() -> None:
    names = {"model", "source", "prompt", "prompts", "tokens", "A", "implementation", "models"}
    found = {
        name
        for name, function in public_functions().items()
        if names & set(inspect.signature(function).parameters)
        and function is not ot.theorem  # its `models` are names of kinds of models
    }
    tried = {*STACKED, *ONE_PROMPT, *MANY_PROMPTS, *OF_WEIGHTS}
    assert found == {*tried, *OTHERS, *INTERVENTIONS, *FEATURES, *BEHAVIOURS, *OF_STREAMS, *TOOLS}


def ids(text: str) -> list[int]:
    from otimes.numeric.tokenizer import load_tokenizer

    return load_tokenizer().encode(text)


def same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, Named):
        np.testing.assert_array_equal(one.values, other.values)
        assert one.axes == other.axes
    else:
        assert repr(one) == repr(other)


@pytest.mark.parametrize("name", sorted({*STACKED, *ONE_PROMPT, *MANY_PROMPTS}))
def test_a_prompt_is_text_or_token_ids(name: str) -> None:
    function, more = getattr(ot, name), STACKED.get(name, {})
    expected = function(MODEL, TEXT, **more)
    for prompt in (ids(TEXT), tuple(ids(TEXT)), np.array(ids(TEXT))):
        same(function(MODEL, prompt, **more), expected)


@pytest.mark.parametrize("name", STACKED)
def test_a_batch_of_prompts_gives_the_stacked_tables(name: str) -> None:
    assert len(ids(TEXT)) == len(ids(OTHER))
    function, more = getattr(ot, name), STACKED[name]
    alone = [function(MODEL, each, **more) for each in (TEXT, OTHER)]
    forms = ([TEXT, OTHER], [ids(TEXT), ids(OTHER)], np.array([ids(TEXT), ids(OTHER)]))
    for batch in forms:
        found = function(MODEL, batch, **more)
        assert found.axes == ("prompt", *alone[0].axes)
        np.testing.assert_array_equal(found.values, [each.values for each in alone])
        if found.whole is not None:
            assert found.whole == pytest.approx(sum(each.whole for each in alone), rel=1e-12)
    assert function(MODEL, [TEXT, OTHER], **more).labels["prompt"] == [TEXT, OTHER]


@pytest.mark.parametrize("name", ["head_patterns", "value_norms", "occlusion"])
def test_prompts_of_different_lengths_are_refused(name: str) -> None:
    with pytest.raises(OtimesError, match="the prompts of a batch must have one length"):
        getattr(ot, name)(MODEL, [[5, 6], [5, 6, 7]], **STACKED[name])
    with pytest.raises(OtimesError, match="must have one length, got 2 to 3 tokens"):
        ot.head_behaviour(MODEL, [[5, 6], [5, 6, 7]])


@pytest.mark.parametrize("name", sorted(ONE_PROMPT))
def test_a_batch_where_one_prompt_is_taken_is_refused_in_one_sentence(name: str) -> None:
    for batch in ([TEXT, OTHER], [[5, 6], [7, 8]], np.array([[5, 6], [7, 8]])):
        with pytest.raises(OtimesError, match="one prompt is taken here, and a batch of 2 was"):
            getattr(ot, name)(MODEL, batch)


@pytest.mark.parametrize("name", OF_WEIGHTS)
def test_a_model_is_given_by_name_or_as_an_object(name: str) -> None:
    function, more = getattr(ot, name), OF_WEIGHTS[name]
    assert type(function(MODEL, **more)) is type(function(ot.load_model(MODEL), **more))


def test_the_forward_pass_takes_text_and_batches() -> None:
    model = ot.load_model(MODEL)
    logits = model.forward(ids(TEXT))["logits"]
    np.testing.assert_array_equal(model.forward(TEXT)["logits"], logits)
    both = model.forward([TEXT, OTHER], ["logits"])["logits"]
    assert both.shape == (2, *logits.shape)
    np.testing.assert_allclose(both[0], logits, rtol=1e-12, atol=1e-12)


def test_an_audit_takes_text_and_batches_and_runs_the_implementation_on_token_ids() -> None:
    model, seen = ot.load_model(MODEL), []

    def implementation(tokens: Any) -> Any:
        seen.append(tokens)
        rows = tokens if isinstance(tokens[0], list) else [tokens]
        found = np.stack([model.forward(row, ["logits"])["logits"] for row in rows])
        return found if isinstance(tokens[0], list) else found[0]

    for prompt in (TEXT, [TEXT, OTHER]):
        assert ot.audit(implementation, prompt, weights=MODEL).passed
    assert seen == [ids(TEXT), [ids(TEXT), ids(OTHER)]]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("vec", "vec_rows or vec_cols"),
        ("head_behavior", "head_behaviour"),
        ("HookedTransformer", "load_model"),
        ("fold_ln", "fold_layer_norm"),
        ("logit_difference", "direct_logit_attribution"),
        ("composition_score", "composition_scores"),
        ("Headsum", "HeadSum"),
    ],
)
def test_a_name_of_another_library_is_answered_with_ours(typed: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no name {typed}: did you mean {meant}"):
        getattr(ot, typed)


def test_every_synonym_leads_to_a_public_name() -> None:
    from otimes._suggestions import SYNONYMS

    assert {each for names in SYNONYMS.values() for each in names} <= set(ot.__all__)
    assert not set(SYNONYMS) & set(ot.__all__)


def test_protocols_are_asked_for_in_vain() -> None:
    assert not hasattr(ot, "_ipython_display_")
    assert not hasattr(ot, "__wrapped__")
