"""What open models are made of since Llama: paths and attributions close, or refuse by a name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import otimes as ot
from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.gradients import input_gradient
from otimes.numeric.attribution.question import ask
from otimes.numeric.attribution.relevance import relevance
from otimes.numeric.frozen import MLPKind, freeze
from otimes.numeric.paths.ensemble import Paths, paths
from otimes.numeric.paths.scores import score_terms
from tests.numeric.random_models import MODERN, TINY_TOKENS, random_model

LATENT = ("deepseek", "latents of keys only")
UNCAPPED = [
    name
    for name, config in MODERN.items()
    if not config.logit_cap and not config.post_norm and not config.gate_limit
]
SMOOTH = [name for name in UNCAPPED if not MODERN[name].embed_norm]
PLAIN_SCORES = [
    name
    for name in UNCAPPED
    if MODERN[name].qk_norm == "none"
    and MODERN[name].positions != "alibi"
    and not MODERN[name].kv_rank
]


@pytest.mark.parametrize("mlp", ["sources", "gates"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", UNCAPPED)
def test_paths_close(kind: str, dtype: type, mlp: MLPKind) -> None:
    model = random_model(MODERN[kind], seed=1)
    closure = paths(model, TINY_TOKENS, dtype, mlp).closure
    assert closure.ratio <= 1
    assert closure.error <= {np.float64: 1e-11, np.float32: 1e-3}[dtype]


@pytest.mark.parametrize("kind", ["olmo2", "layer norms of queries, parallel"])
def test_a_path_without_the_norm_of_an_output_does_not_close(kind: str) -> None:
    model = random_model(MODERN[kind], seed=1)
    frozen = freeze(model, TINY_TOKENS)
    other = replace(frozen, attn_out_scales=tuple(2 * each for each in frozen.attn_out_scales))
    given = [each.write(each.z(frozen.first[None])) for each in (frozen.layer(0), other.layer(0))]
    assert np.array_equal(given[0], 2 * given[1])  # halving is exact
    assert np.abs(given[0]).max() > 0.1


def test_a_path_without_the_norm_of_a_latent_does_not_close() -> None:
    frozen = freeze(random_model(MODERN["deepseek"], seed=1), TINY_TOKENS)
    other = replace(frozen, latent_scales=tuple(2 * each for each in frozen.latent_scales))
    given = [each.write(each.z(frozen.first[None])) for each in (frozen.layer(0), other.layer(0))]
    assert np.array_equal(given[0], 2 * given[1])  # halving is exact
    assert Paths(frozen).closure.ratio <= 1 < Paths(other).closure.ratio


@pytest.mark.parametrize("kind", UNCAPPED)
def test_direct_attributions_sum_to_the_logit(kind: str) -> None:
    model = random_model(MODERN[kind], seed=1)
    direct = ot.direct_logit_attribution(model, TINY_TOKENS, 3, 5)
    logits = model.forward(TINY_TOKENS)["logits"][-1]
    assert direct.closure.ratio <= 1
    assert abs(direct.logit - (logits[3] - logits[5])) < 1e-10
    by_source = direct.by_source().values.sum(axis=2)
    assert np.allclose(by_source, direct.by_head().values, atol=1e-11)


@pytest.mark.parametrize("kind", PLAIN_SCORES)
def test_the_terms_of_scores_sum_to_them(kind: str) -> None:
    model = random_model(MODERN[kind], seed=1)
    frozen = freeze(model, TINY_TOKENS, mlp="gates")
    scores = model.forward(TINY_TOKENS)["scores.1"]
    terms = score_terms(frozen, 1, 2, 4)
    assert np.allclose(terms.scores(), scores[2, 4, :5], atol=1e-10)


REFUSED = {
    "a position": (
        lambda model: input_gradient(model, TINY_TOKENS, position=2),
        "dynamic",
        "length",
    ),
    "paths": (lambda model: ot.paths(model, TINY_TOKENS), "gemma2", "logit_cap=3.0"),
    "scores of latents": (
        lambda model: ot.paths(model, TINY_TOKENS).scores(1, 0, 2),
        "deepseek",
        "kv_rank=5",
    ),
    "circuits of latents": (lambda m: ot.qk_circuit(m.fold_norms(), 0, 0), "deepseek", "kv_rank=5"),
    "gates": (lambda model: freeze(model, [1, 2], mlp="gates"), "experts of gpt-oss", "gate_limit"),
    "gradients": (lambda model: input_gradient(model, TINY_TOKENS), "gemma2", "logit_cap=3.0"),
    "embeddings": (lambda m: input_gradient(m, TINY_TOKENS), "bloom", "embed_norm=True"),
    "folding": (lambda model: model.fold_norms(), "olmo2", "norm_order='output'"),
    "circuits": (lambda model: ot.composition_scores(model, "V"), "qwen3", "qk_norm='head'"),
    "theorems": (lambda model: ot.verify(["virtual_weights"], [model]), "gpt-oss", "sinks=True"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_setting_that_is_not_taken_into_account_is_refused_by_name(what: str) -> None:
    run, kind, named = REFUSED[what]
    with pytest.raises(OtimesError, match=named):
        run(random_model(MODERN[kind]))


@pytest.mark.parametrize("kind", SMOOTH)
def test_gradients_are_central_differences(kind: str) -> None:
    model = random_model(MODERN[kind], seed=1)
    question = ask(model, TINY_TOKENS, 3, 5, -1)
    value, gradient = question.gradient()
    x, rng = question.embed(), np.random.default_rng(0)
    direction = rng.standard_normal(x.shape)
    step = 1e-5
    above, below = (question.value(x + sign * step * direction) for sign in (1, -1))
    # The error of a central difference is of second order, 1e-10, and of rounding, 1e-16 / 1e-5.
    slope = float((gradient * direction).sum())
    assert abs((above - below) / (2 * step) - slope) < 1e-7 * max(abs(slope), 1)
    assert abs(question.value(x) - value) < 1e-12


@pytest.mark.parametrize("kind", SMOOTH)
def test_relevance_is_conserved(kind: str) -> None:
    found = relevance(random_model(MODERN[kind], seed=1), TINY_TOKENS, 3)
    assert abs(found.missing) < 1e-10


@pytest.mark.parametrize(
    "kind", [*("gemma3 pre-norm", "gemma2 pre-norm", "qwen3", "gpt-oss", *LATENT)]
)
def test_folded_norms_leave_the_logits(kind: str) -> None:
    model = random_model(replace(MODERN[kind.removesuffix(" pre-norm")], norm_order="pre"), seed=1)
    folded = model.fold_norms()
    ours, theirs = (each.forward(TINY_TOKENS)["logits"] for each in (model, folded))
    assert np.abs(ours - theirs).max() < 1e-12
    assert (folded.ln1_gain == 1).all()
