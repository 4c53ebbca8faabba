"""Analyses computed wrongly are found, and said what they are."""

import numpy as np
import pytest

import otimes as ot
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.analyses_mistakes import MODELS, PATH, mistakes

CASES = [(name, *case) for name in MODELS for case in mistakes(name)]


@pytest.mark.parametrize(
    ("model", "analysis", "done", "value", "says", "asked"),
    CASES,
    ids=[f"{model}-{analysis}-{done}" for model, analysis, done, *_ in CASES],
)
def test_a_mistake_is_named(model, analysis, done, value, says, asked) -> None:
    report = ot.audit_analysis(analysis, value, MODELS[model], **asked)
    assert not report.passed
    assert says in report.first_failure.diagnosis


def scrambled(value):
    """Random numbers of the same shapes."""
    rng = np.random.default_rng(0)
    if isinstance(value, dict):
        return {name: rng.standard_normal(each.shape) for name, each in value.items()}
    if isinstance(value, tuple):
        return tuple(rng.standard_normal(each.shape) for each in value)
    return rng.standard_normal(np.shape(value))


def test_numbers_that_match_nothing_are_not_explained() -> None:
    """All mistakes, and all pairs of them, are tried on the way."""
    model, tried = MODELS["llama"], set()
    for analysis, _, value, _, asked in mistakes("llama"):
        value = scrambled(value)
        shapes = (analysis, *map(np.shape, value if isinstance(value, tuple) else (value,)))
        if isinstance(value, dict) or shapes in tried or shapes[1:] in [((6, 6),), ((36, 36),)]:
            continue
        tried.add(shapes)
        report = ot.audit_analysis(analysis, value, model, **asked)
        assert report.first_failure.diagnosis == "", (analysis, shapes)


def test_a_path_that_matches_nothing_is_not_explained() -> None:
    model = random_model(n_layers=2, n_heads=3, d_model=12, d_head=4, d_vocab=34, seed=3)
    report = ot.audit_analysis("path_term", scrambled(np.zeros((9, 34))), model, **PATH)
    assert report.first_failure.diagnosis == ""


def test_a_value_rounded_to_single_precision_is_said_to_be_no_more() -> None:
    model = MODELS["gpt2"]
    rounded = (model.W_V[1, 2] @ model.W_O[1, 2]).astype(np.float32)
    asked = {"layer": 1, "head": 2}
    assert ot.audit_analysis("ov_circuit", rounded, model, **asked).passed
    found = ot.audit_analysis("ov_circuit", rounded.astype(np.float64), model, **asked)
    assert found.first_failure.kind == "precision"
    assert "the right value to float32 only" in found.first_failure.diagnosis


def test_what_no_list_names_is_found_as_a_mutant_of_the_formula() -> None:
    model = MODELS["gpt2"]
    report = ot.audit_analysis("ov_circuit", model.W_V[1, 2], model, layer=1, head=2)
    says = "matches a mistake in the formula (lose a factor: W_V[1, 2])"
    assert report.first_failure.diagnosis == says


def test_two_changes_of_one_factor_are_found_together() -> None:
    model = MODELS["bare"]
    other, diagonal = model.W_V[1, 0] @ model.W_O[1, 2], np.eye(model.d_model)
    value = other - other * diagonal
    report = ot.audit_analysis("ov_circuit", value, model, layer=1, head=2)
    assert "W_V of another head, 1.0" in report.first_failure.diagnosis
    assert "diagonal is set to zero" in report.first_failure.diagnosis


def test_mistakes_are_screened_by_their_first_columns() -> None:
    model = random_model(n_layers=2, n_heads=2, d_model=40, d_head=6, d_vocab=50, seed=3)
    right = model.W_V[1, 0] @ model.W_O[1, 0]
    U, S, W = np.linalg.svd(right)
    cut, every = (U[:, :4] * S[:4]) @ W[:4], (model.W_V[1] @ model.W_O[1]).sum(0)
    for value, says in (
        (cut, "cut off behind 4"),
        (every, "sum over all heads"),
        (right.T, "W_O W_V"),
    ):
        report = ot.audit_analysis("ov_circuit", value, model, layer=1, head=0)
        assert says in report.first_failure.diagnosis
