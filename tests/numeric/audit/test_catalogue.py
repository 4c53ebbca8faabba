"""Every mistake is found at its first place and named; no rewrite is accused.

By default each once, in an architecture and a type that take turns; with OTIMES_LONG=1 all in all.
"""

import os

import numpy as np
import pytest
import torch

from otimes.numeric.audit.audit import audit_call
from otimes.numeric.audit.report import Report
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.catalogue import BUGS, KINDS, REWRITES
from tests.numeric.audit.foreign import Foreign

LONG = os.environ.get("OTIMES_LONG") == "1"
TOKENS = np.random.default_rng(0).integers(0, 29, (1, 14))
DTYPES = (torch.float32, torch.float64)


def turns(entries: list[tuple[object, tuple[str, ...]]]) -> list[tuple[object, str, torch.dtype]]:
    """Return each entry with an architecture and a type, or with all of them."""
    if LONG:
        return [(each, kind, d) for each, kinds in entries for kind in kinds for d in DTYPES]
    return [
        (each, kinds[number % len(kinds)], DTYPES[number // 3 % 2])
        for number, (each, kinds) in enumerate(entries)
    ]


def report_on(kind: str, dtype: torch.dtype, words: tuple[str, ...], **options: object) -> Report:
    model = random_model(KINDS[kind], seed=3)
    return audit_call(Foreign(model, dtype, words, **options), TOKENS, model)


@pytest.mark.parametrize(
    ("bug", "kind", "dtype"), turns([(bug, kinds) for bug, (_, _, kinds) in BUGS.items()])
)
def test_a_mistake_is_found_where_it_first_shows_and_named(
    bug: str, kind: str, dtype: torch.dtype
) -> None:
    first, says, _ = BUGS[bug]
    report = report_on(kind, dtype, (bug,))
    assert not report.passed
    assert report.first_failure.place == first
    assert any(said in report.first_failure.diagnosis for said in says.split("|")), str(report)


@pytest.mark.parametrize(("words", "kind", "dtype"), turns(list(REWRITES.items())))
def test_a_rewrite_is_not_accused(words: tuple[str, ...], kind: str, dtype: torch.dtype) -> None:
    report = report_on(kind, dtype, words)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("fold",), "folded into what reads it"),
        (("centre_writers",), "the residual stream is centred"),
        (("rotated",), "the residual stream is rotated"),
        (("rotated", "permuted_features"), "are permuted, or have other signs"),
        (("fold_value_bias",), "b_V is moved into b_O"),
        (("drop_key_bias",), "b_K is dropped"),
        (("permuted_heads",), "heads are permuted: "),
        (("basis_qk",), "queries and keys are in another basis"),
        (("basis_vo",), "values are in another basis"),
        (("permuted_neurons",), "neurons of the MLP are permuted"),
        (("centre_unembed",), "all logits of a position are shifted by the same number"),
        (("scale_in_q",), "queries carry the scale"),
    ],
)
def test_other_coordinates_are_reported_by_name(words: tuple[str, ...], says: str) -> None:
    report = report_on("gpt2", torch.float32, words)
    assert report.passed
    assert any(says in str(gauge) for gauge in report.gauges), str(report)


GAUGES = [
    ("fold",),
    ("fold_value_bias",),
    ("permuted_heads",),
    ("basis_qk",),
    ("basis_vo",),
    ("permuted_neurons",),
    ("rotated",),
    ("centre_writers",),
]
BESIDE = ["no_mask", "wrong_gelu", "no_b_out", "scale_d_model", "heads_reversed", "half_softmax"]


@pytest.mark.parametrize(
    ("gauge", "bug"),
    [
        (gauge, bug)
        for number, gauge in enumerate(GAUGES)
        for bug in (BESIDE if LONG else BESIDE[number % 2 :: 3])
        # the bias that was moved into b_O went through W_O before its heads were reversed
        if (gauge, bug) != (("fold_value_bias",), "heads_reversed")
    ],
)
def test_no_gauge_hides_a_mistake(gauge: tuple[str, ...], bug: str) -> None:
    report = report_on("gpt2", torch.float32, (*gauge, bug))
    assert not report.passed
    assert report.first_failure.place == BUGS[bug][0], str(report)


def test_a_mistake_in_one_head_names_the_head() -> None:
    report = report_on("gpt2", torch.float32, ("bad_head",))
    assert (report.first_failure.place, report.first_failure.head) == ("k.1", 2)


@pytest.mark.parametrize("hide", [("scores", "pattern"), ("q", "k", "v", "scores", "pattern")])
def test_hidden_places_are_bridged(hide: tuple[str, ...]) -> None:
    for kind in KINDS:
        assert report_on(kind, torch.float32, (), hide=hide).passed
        report = report_on(kind, torch.float32, ("mask_one_more",), hide=hide)
        assert report.first_failure.place == "z.0"
        assert "off by one" in report.first_failure.diagnosis


def test_places_of_the_stream_alone_are_enough_to_find_a_mistake() -> None:
    hide = ("ln1", "q", "k", "v", "scores", "pattern", "z", "ln2", "mlp_pre", "mlp_post")
    assert report_on("llama", torch.float64, (), hide=hide).passed
    report = report_on("llama", torch.float64, ("rotary_layout",), hide=hide)
    assert report.first_failure.place == "attn_out.0"
    assert report.first_failure.estimated
    assert "layout" in report.first_failure.diagnosis


LOGITS_ONLY = ["no_mask", "eps6", "act_relu", "no_b_Q", "half_softmax"]


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug != "no_b_K"] if LONG else LOGITS_ONLY)
def test_logits_alone_show_a_mistake_in_float64(bug: str) -> None:
    kind = BUGS[bug][2][0]
    report = report_on(kind, torch.float64, (bug,), only_logits=True)
    assert not report.passed
    assert report.first_failure.estimated


@pytest.mark.parametrize("words", list(REWRITES) if LONG else [(), ("fold",), ("sdpa",)])
def test_logits_alone_accuse_no_rewrite(words: tuple[str, ...]) -> None:
    kind = REWRITES[words][0]
    assert report_on(kind, torch.float64, words, only_logits=True).passed


def test_what_is_not_a_number_is_said_so() -> None:
    model = random_model(KINDS["gpt2"], seed=3)
    right = Foreign(model, torch.float32)

    def call(tokens):
        logits, places = right(tokens)
        places["z.1"][0, 2, 3, 0] = torch.nan
        return logits, places

    report = audit_call(call, TOKENS, model)
    assert report.first_failure.place == "z.1"
    assert report.first_failure.diagnosis == "is not a number (NaN)"


def test_a_wrong_shape_is_said_so() -> None:
    model = random_model(KINDS["gpt2"], seed=3)
    right = Foreign(model, torch.float32)

    def call(tokens):
        logits, places = right(tokens)
        return logits, {**places, "q.0": places["q.0"].transpose(1, 2)}

    report = audit_call(call, TOKENS, model)
    assert str(report.first_failure) == (
        "q.0 has the shape (1, 14, 4, 6), and (4, 14, 6) is expected"
    )
