"""Queries and keys that are recorded before the rotation: right, rewritten, and wrong."""

import pytest

from tests.numeric.audit.plain import Net
from tests.numeric.audit.plain_rewrites_weights import (
    REWRITES,
    C,
    both,
    interleaved_perm,
    perm_heads,
    rope_basis,
    scale_in_wq,
)
from tests.numeric.audit.test_plain import report_on

META = REWRITES["interleaved rotary with permuted weights (Meta)"][2]
UNSCALED = REWRITES["scale folded into W_Q"][2]


def before_rotation(**steps):
    """Return the steps of a net that turns queries and keys only where scores are made of them."""
    turn, scores = steps.get("turn", Net.turn), steps.get("scores", Net.scores)

    def turned_first(n, q, k, lay):
        return scores(n, turn(n, q, "q", lay), turn(n, k, "k", lay), lay)

    return {**steps, "turn": lambda n, x, what, lay: x, "scores": turned_first}


@pytest.mark.parametrize(
    ("mode", "family", "rewritten", "steps", "says"),
    [
        (
            "float32",
            "n",
            interleaved_perm,
            META,
            "inside the heads, recorded before",
        ),
        ("float64", "l", both(perm_heads, rope_basis), {}, "heads are permuted"),
        (
            "float32",
            "n",
            scale_in_wq,
            UNSCALED,
            "carry the scale 1/√d_head, recorded before",
        ),
    ],
)
def test_no_rewrite_is_accused(mode, family, rewritten, steps, says):
    report = report_on(family, mode, rewritten, **before_rotation(**steps))
    assert report.passed, str(report)
    assert any(says in str(gauge) for gauge in report.gauges), str(report)


def without_key_bias(w, c):
    return {**w, "b_K": 0 * w["b_K"]}, c


def test_keys_that_are_wrong_do_not_make_queries_wrong():
    report = report_on("n", "float64", without_key_bias, **before_rotation())
    assert report.first_failure.place == "k.0", str(report)
    assert "without b_K" in report.first_failure.diagnosis
    assert "recorded before the rotation" in str(report.gauges[0])


def test_rotary_positions_that_are_missing_are_missed():
    report = report_on("l", "float32", turn=lambda n, x, what, lay: x)
    assert report.first_failure.place == "q.0"
    assert "without rotary positions" in report.first_failure.diagnosis


def of_queries_only(rewrite):
    def half(w, c):
        other, _ = rewrite(C(w), c)
        return {**w, **{name: other[name] for name in ("W_Q", "b_Q") if name in w}}, c

    return half


@pytest.mark.parametrize(
    ("rewritten", "steps", "first"),
    [
        (interleaved_perm, {}, "scores.0"),  # turned in the plain layout all the same
        (of_queries_only(interleaved_perm), META, "q.0"),
    ],
)
def test_what_is_no_rewrite_is_not_taken_for_one(rewritten, steps, first):
    report = report_on("n", "float32", rewritten, n_pos=12, **before_rotation(**steps))
    assert not report.passed
    assert report.first_failure.place == first, str(report)
