"""What is not finite, or so large that nothing is left of it, passes under no rewrite and no bound.

Nor does anything pass because nothing is known of it.

The places are those of an implementation that is right, one of them spoilt afterwards: so each case
has one fault, at that place, and what reads it elsewhere is right.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from otimes.numeric.audit.audit import audit, audit_call
from otimes.numeric.audit.diagnose import judged
from otimes.numeric.audit.reference.comparison import Recording, bounded, compare
from otimes.numeric.audit.symmetries.candidate import Rewrite
from otimes.numeric.audit.symmetries.search import confirmed
from otimes.numeric.random_weights import random_model
from otimes.numeric.rounding.linear import Near
from tests.numeric.audit.catalogue import KINDS
from tests.numeric.audit.foreign import Foreign

TOKENS = np.random.default_rng(0).integers(0, 29, (1, 14))
INF, NAN = float("inf"), float("nan")
WHERE = {
    "one": lambda each: (0,) * each.ndim,
    "row": lambda each: (..., 2, slice(None)),
    "column": lambda each: (..., 0),
    "all": lambda each: ...,
}
SPOILT = [
    (kind, place, bad, where)
    for kind, place, bads in (
        ("gpt2", "logits", (INF, -INF, NAN, 1e30)),
        ("gpt2", "scores.0", (INF, -INF, 1e30)),
        ("gpt2", "k.0", (1e30,)),
        ("llama", "mlp_post.0", (INF,)),
        ("llama", "resid_post.0", (NAN,)),
        ("gpt2", "resid_pre.0", (NAN,)),
    )
    for bad in bads
    for where in (("one", "row", "all") if place in ("logits", "scores.0") else ("row", "column"))
]


MODELS = {kind: random_model(KINDS[kind], seed=3) for kind in ("gpt2", "llama")}
DTYPES = {"gpt2": torch.float32, "llama": torch.float64}
RIGHT = {kind: Foreign(model, DTYPES[kind])(TOKENS) for kind, model in MODELS.items()}


@pytest.mark.parametrize(("kind", "place", "bad", "where"), SPOILT)
def test_what_is_not_finite_is_a_fault_where_it_is_and_nowhere_else(
    kind: str, place: str, bad: float, where: str
) -> None:
    logits, places = RIGHT[kind]
    every = {**places, "logits": logits}
    every[place] = every[place].clone()
    every[place][WHERE[where](every[place])] = bad
    report = audit_call(lambda tokens: every, TOKENS, MODELS[kind])
    assert not report.passed
    assert report.first_failure.place == place
    if not np.isfinite(bad):
        assert [each.place for each in report.findings] == [place]
        says = "is not a number (NaN)" if np.isnan(bad) else "is infinite"
        assert report.first_failure.diagnosis == says


@pytest.mark.parametrize("hide", [(), ("mlp_pre", "mlp_post"), ("attn_out", "resid_mid")])
def test_of_what_is_computed_from_what_is_not_finite_only_the_first_is_said(hide) -> None:
    first = Foreign(MODELS["gpt2"], torch.float32, hide=hide)
    first.w["W_O"][0, 1, 2, 3] = torch.nan
    report = audit_call(first, TOKENS, MODELS["gpt2"])
    expected = "ln2.0" if "attn_out" in hide else "attn_out.0"
    assert [each.place for each in report.findings] == [expected]
    assert report.findings[0].diagnosis == "is not a number (NaN)"


def test_one_head_of_one_prompt_that_is_not_finite_is_named() -> None:
    right = Foreign(MODELS["gpt2"], torch.float32)

    def call(tokens):
        logits, places = right(tokens)
        places["z.1"][1, 2, 3, 0] = -torch.inf
        return logits, places

    report = audit_call(call, np.concatenate([TOKENS, TOKENS[:, ::-1]]), MODELS["gpt2"])
    (found,) = report.findings
    assert (found.place, found.layer, found.head, found.entry) == ("z.1", 1, 2, (2, 3, 0))
    assert found.diagnosis == "is infinite"


def test_scores_that_the_mask_hides_may_be_anything() -> None:
    right = Foreign(MODELS["gpt2"], torch.float32)
    hidden = torch.ones(14, 14).triu(1).bool()
    for value in (-torch.inf, torch.nan, -1e9, torch.finfo(torch.float32).min):

        def call(tokens, value=value):
            logits, places = right(tokens)
            return logits, {**places, "scores.0": places["scores.0"].masked_fill(hidden, value)}

        assert audit_call(call, TOKENS, MODELS["gpt2"]).passed


def test_what_is_not_finite_in_the_reference_either_is_no_fault() -> None:
    model = MODELS["gpt2"]
    large = model.changed({"W_out": np.asarray(model.weights["W_out"]) * 1e300})
    shown = large.forward(TOKENS[0])
    with np.errstate(all="ignore"):
        report = audit_call(lambda tokens: {"mlp_out.0": shown["mlp_out.0"]}, TOKENS, large)
    assert report.passed


def test_what_is_not_finite_on_further_prompts_is_a_fault() -> None:
    rotated = Foreign(MODELS["gpt2"], torch.float32, ("rotated",))

    def call(tokens):
        logits, places = rotated(tokens)
        if not np.array_equal(tokens, TOKENS):
            places["z.1"][0, 2, 3, 0] = torch.nan
        return logits, places

    report = audit_call(call, TOKENS, MODELS["gpt2"])
    assert [each.place for each in report.findings] == ["z.1"]


# -- where nothing is known ------------------------------------------------------------------------


def with_stream_off_zero(mean: float, **sizes: int):
    """Return a model whose stream has that mean, which costs a variance in one pass its digits."""
    model = random_model(replace(KINDS["gpt2"], **sizes), seed=3)
    return model.changed({"W_E": np.asarray(model.weights["W_E"]) + mean})


def test_a_share_of_a_sum_is_at_most_one_however_large_the_scores() -> None:
    model = MODELS["gpt2"]
    sharp = model.changed({"W_Q": np.asarray(model.weights["W_Q"]) * 1e10})
    right = Foreign(sharp, torch.float32)

    def call(tokens):
        logits, places = right(tokens)
        places["pattern.0"][0, 0, 5, 2] = 7.0
        return logits, places

    assert audit_call(right, TOKENS, sharp).passed
    assert audit_call(call, TOKENS, sharp).first_failure.place == "pattern.0"


def test_what_rounding_may_undo_is_not_judged_and_said_so() -> None:
    model = with_stream_off_zero(1e4)
    report = audit_call(Foreign(model, torch.float32), TOKENS, model)
    assert report.passed
    assert "not judged: 336 entries of ln1.0, which rounding may undo" in report.notes
    report = audit_call(Foreign(MODELS["gpt2"], torch.float32), TOKENS, MODELS["gpt2"])
    assert not any("not judged" in note for note in report.notes)


def test_a_guaranteed_bound_that_is_larger_than_the_place_makes_nothing_marginal() -> None:
    model = with_stream_off_zero(100.0, d_model=512, n_layers=1)
    _, places = Foreign(model, torch.float32)(TOKENS[:, :1])
    for drawn, passed in (
        (None, True),
        (np.random.default_rng(1).standard_normal((1, 512)), False),
    ):
        right = {n: Near.exactly(places[n][0].double().numpy()) for n in ("resid_pre.0", "ln1.0")}
        shown = right if drawn is None else {**right, "ln1.0": Near.exactly(drawn)}
        compared = compare(model, [Recording(TOKENS[0, :1], shown)], "float32")
        assert not np.isfinite(bounded(compared, "ln1.0")[0].error).any()
        assert (not judged(compared, first_only=True).findings) == passed


@pytest.mark.parametrize(("error", "says"), [(0.0, True), (1e6, False), (np.inf, False)])
def test_a_place_that_cannot_be_wrong_confirms_no_reading(error: float, says: bool) -> None:
    _, places = RIGHT["gpt2"]
    v, z = (places[name][0].double().numpy() for name in ("v.0", "z.0"))
    shown = {"v.0": Near(v, np.full(v.shape, error)), "z.0": Near.exactly(z)}
    hidden = {"q.0", "k.0", "scores.0", "pattern.0"}
    rest = {n: Near.exactly(each[0].double().numpy()) for n, each in places.items() if n in hidden}
    compared = compare(MODELS["gpt2"], [Recording(TOKENS[0], {**rest, **shown})], "float32")
    rewrite = Rewrite("is said otherwise", [compared.recorded], frozenset({"v.0"}))
    assert compared.ratio("z.0") <= 1
    assert confirmed(compared, rewrite) == says


def test_what_is_no_number_is_said_so_with_its_place_and_entry() -> None:
    model = random_model(d_model=24, n_layers=1)

    def call(tokens):
        places = {name: each.copy() for name, each in model.forward(tokens).items()}
        places["resid_mid.0"][1, 3] = np.nan
        return places["logits"], places

    first = audit(call, [1, 2, 3], weights=model).first_failure
    assert str(first) == "resid_mid.0 is not a number (NaN), first at [1, 3]"


def test_of_what_has_another_shape_nothing_is_compared() -> None:
    model = random_model(d_model=24, n_layers=1)
    report = audit(lambda tokens: model.forward(tokens)["logits"][:, :5], [1, 2], weights=model)
    assert str(report).splitlines()[0].endswith("the reference: nothing could be compared")
