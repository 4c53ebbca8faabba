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
    model, asked = MODELS["gpt2"], {"layer": 1, "head": 2}
    circuit = model.W_V[1, 2] @ model.W_O[1, 2]
    for rounded in (circuit.astype(np.float32), circuit.astype(np.float32).astype(np.float64)):
        report = ot.audit_analysis("ov_circuit", rounded, model, **asked)
        assert report.passed
        assert report.dtype == "float32"
    assert report.notes == ("precision: all are numbers of float32, recorded in float64",)
    factors = (each[1, 2].astype(np.float32).astype(np.float64) for each in (model.W_V, model.W_O))
    found = ot.audit_analysis("ov_circuit", np.matmul(*factors), model, **asked)
    assert found.first_failure.kind == "precision"
    assert "the right value to float32 only" in found.first_failure.diagnosis


def test_scores_read_one_by_one_from_single_precision_pass() -> None:
    model = MODELS["gpt2"]
    table = np.zeros((model.n_layers, model.n_heads) * 2)
    for a, h, b, g in np.ndindex(table.shape):
        writer = (model.W_V[a, h] @ model.W_O[a, h]).astype(np.float32)
        reader = (model.W_V[b, g] @ model.W_O[b, g]).astype(np.float32)
        norms = np.linalg.norm(writer) * np.linalg.norm(reader)
        table[a, h, b, g] = (np.linalg.norm(writer @ reader) / norms).item()
    assert ot.audit_analysis("v_composition", table, model).passed
    assert not ot.audit_analysis("v_composition", table * (1 + 2.0**-16), model).passed
