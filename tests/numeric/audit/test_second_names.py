"""Correct runs that record an activation under a second name, or elsewhere on its way."""

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
import pytest

import otimes as ot
from otimes.numeric.audit.report import Report
from otimes.numeric.block import kind_of
from otimes.numeric.forward import Places
from otimes.numeric.model import Model
from otimes.numeric.processing import fold_norm_biases
from tests.numeric.random_models import KINDS, MODERN, POST_NORM, random_model

TOKENS = np.array([[3, 0, 10, 3, 7, 7], [1, 2, 9, 4, 4, 0]])


def audited(
    model: Model,
    runs: Model,
    kinds: Collection[str],
    change: Callable[[Places], object] = lambda places: None,
) -> Report:
    """Return the report on a run of a model, of which activations of some kinds are recorded."""

    def run(tokens: np.ndarray) -> tuple[np.ndarray, Places]:
        places = [runs.forward(row) for row in tokens]
        for each in places:
            change(each)
        kept = [name for name in places[0] if kind_of(name) in kinds]
        stacked = {name: np.stack([each[name] for each in places]) for name in kept}
        return np.stack([each["logits"] for each in places]), stacked

    return ot.audit(run, TOKENS, weights=model)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "deepseek", "shortformer with norms"])
@pytest.mark.parametrize("kinds", [("ln1", "qk_in", "q"), ("qk_in", "z"), ("qk_in",), ("ln1",)])
def test_folded_norms_under_every_name(kind: str, kinds: tuple[str, ...]) -> None:
    model = random_model({**KINDS, **MODERN}[kind], seed=1)
    folded = model.fold_norms() if model.config.norm == "rms" else fold_norm_biases(model)
    assert audited(model, folded, kinds).passed


def test_a_last_norm_of_a_post_norm_model_under_its_names() -> None:
    config = POST_NORM["encoder without a norm at the end"]
    model, last = random_model(config, seed=1), config.n_layers - 1
    gain, bias = (model.part(f"ln2_{part}", last) for part in ("gain", "bias"))
    new = {f"ln2_{part}": np.array(model.weights[f"ln2_{part}"]) for part in ("gain", "bias")}
    new["ln2_gain"][last], new["ln2_bias"][last] = 1.0, 0.0
    new |= {"W_U": gain[:, None] * model.W_U, "b_U": bias @ model.W_U}
    runs = model.changed(new, replace(config, tied=False, biases=(*config.biases, "b_U")))
    for kinds in (("ln2", "final"), ("final",)):
        assert audited(model, runs, kinds).passed


def test_a_gain_that_is_nowhere_is_found_under_every_name() -> None:
    model = random_model(replace(KINDS["llama"], n_layers=1), seed=1)
    plain = model.changed({"ln1_gain": np.ones_like(model.ln1_gain)})
    for kinds in (("ln1", "qk_in", "q"), ("qk_in", "q")):
        report = audited(model, plain, kinds)
        assert report.first_failure is not None
        assert kind_of(report.first_failure.hook_point) in ("ln1", "qk_in")


# What a common hook sees, of which model, and the mistake for which it could be taken.
def before_the_scale(places: Places) -> None:
    places["embed"] = places["embed"] / 3.0


def uncapped(places: Places) -> None:
    for layer in (0, 1):
        keys = places[f"k.{layer}"].swapaxes(-1, -2)
        places[f"scores.{layer}"] = places[f"q.{layer}"] @ keys * 0.3


def normed(places: Places) -> None:
    for layer in (0, 1):
        places[f"attn_out.{layer}"] = places[f"ln1_post.{layer}"]
        places[f"mlp_out.{layer}"] = places[f"ln2_post.{layer}"]


@pytest.mark.parametrize(
    ("kind", "kinds", "change", "says"),
    [
        ("gemma2", ("embed", "resid_pre"), before_the_scale, "before the embedding is scaled"),
        ("gemma2", ("q", "k", "scores", "pattern"), uncapped, "before they are capped"),
        ("gemma2", ("attn_out", "mlp_out", "resid_post"), normed, "after the norm that follows"),
    ],
)
def test_recorded_before_or_after_a_step(
    kind: str, kinds: tuple[str, ...], change: Callable[[Places], None], says: str
) -> None:
    model = random_model(MODERN[kind], seed=1)
    report = audited(model, model, kinds, change)
    assert report.passed
    assert says in str(report)


def test_queries_recorded_before_their_norm() -> None:
    model = random_model(MODERN["qwen3"], seed=1)

    def change(places: Places) -> None:
        for layer in (0, 1):
            for name, weight, bias in (("q", model.W_Q, model.b_Q), ("k", model.W_K, model.b_K)):
                rows = places[f"qk_in.{layer}"] @ weight[layer] + bias[layer][:, None]
                places[f"{name}.{layer}"] = rows

    report = audited(model, model, ("q", "k", "scores", "z"), change)
    assert report.passed
    assert "before the norm" in str(report)


def test_a_step_that_is_left_out_is_no_convention() -> None:
    model = random_model(MODERN["gemma2"], seed=1)
    for fields, place in (({"embed_scale": 1.0}, "embed"), ({"score_cap": 0.0}, "scores.0")):
        runs = model.changed({}, replace(model.config, **fields))
        report = audited(model, runs, ("embed", "resid_pre", "q", "k", "scores", "pattern"))
        assert report.first_failure is not None
        assert report.first_failure.hook_point == place
