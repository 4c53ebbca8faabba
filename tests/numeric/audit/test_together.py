"""Rewrites of the weights made together, of which each hides what another is known by."""

import pytest

from tests.numeric.audit.plain_post_norm import biases_passed_on
from tests.numeric.audit.plain_rewrites_weights import (
    REWRITES,
    basis_qk,
    basis_v,
    both,
    center_ln,
    drop_bk,
    perm_heads,
    perm_neurons,
    rotate,
    scale_in_wq,
    up_scaled,
)
from tests.numeric.audit.test_plain import report_on

UNSCALED = REWRITES["scale folded into W_Q"][2]


@pytest.mark.parametrize(
    ("mode", "family", "rewrites", "steps", "says"),
    [
        ("float32", "l", (rotate, perm_heads, basis_v, perm_neurons), {}, "stream is rotated"),
        ("float64", "g", (center_ln, basis_v, perm_neurons), {}, "stream is centred"),
        ("float32", "p", (drop_bk, basis_qk, scale_in_wq), UNSCALED, "carry the scale 1/√d_head"),
        ("float64", "n", (perm_heads, scale_in_wq), UNSCALED, "heads are permuted"),
        ("float32", "l", (perm_neurons, up_scaled), {}, "neurons of the MLP are scaled"),
        ("float32", "p", (biases_passed_on, drop_bk), {}, "into what reads it, and into what is"),
    ],
)
def test_rewrites_made_together_are_not_accused(mode, family, rewrites, steps, says):
    report = report_on(family, mode, both(*rewrites), n_pos=48, **steps)
    assert report.passed, str(report)
    assert any(says in str(gauge) for gauge in report.gauges), str(report)


def test_a_scale_that_is_in_another_basis_of_queries_and_divided_by_again_is_found():
    report = report_on("g", "float32", both(basis_qk, scale_in_wq), n_pos=12)
    assert not report.passed
    assert report.first_failure.place in ("q.0", "scores.0"), str(report)


def test_a_bias_of_a_norm_on_the_stream_that_is_passed_on_to_its_readers_alone_is_found():
    report = report_on("p", "float32", lambda w, c: biases_passed_on(w, c, in_sum=False), n_pos=12)
    assert not report.passed
    assert report.first_failure.place == "mlp_out.0", str(report)
