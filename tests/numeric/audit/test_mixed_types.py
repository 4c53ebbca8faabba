"""Places of several types in one answer: each is known as far as its own type goes, and no further.

Logits are cast for a loss, patterns kept in half precision, one place looked at in float32.
"""

import numpy as np
import pytest
import torch

from otimes.numeric.audit.audit import audit, audit_call
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.catalogue import KINDS
from tests.numeric.audit.foreign import Foreign
from tests.numeric.audit.plain import FAMILIES, Net, config, weights

TOKENS = np.random.default_rng(0).integers(0, 29, (1, 14))
MODELS = {kind: random_model(KINDS[kind], seed=3) for kind in ("gpt2", "llama")}
F64, F32, BF16 = torch.float64, torch.float32, torch.bfloat16


def report_on(kind, dtype, other, cast, words=(), hide=(), off=None, times=1.0, only=()):
    """Audit an implementation that shows some kinds of places in another type than the rest."""
    right = Foreign(MODELS[kind], dtype, words, hide=hide)

    def call(tokens):
        logits, places = right(tokens)
        every = {**places, "logits": logits}
        if off is not None:
            every[off] = every[off] * times
        every = {n: v for n, v in every.items() if not only or n in only}
        return {n: v.to(other) if n.split(".")[0] in cast else v for n, v in every.items()}

    return audit_call(call, TOKENS, MODELS[kind])


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    ("dtype", "other", "cast"),
    [
        (F64, F32, ("logits",)),
        (F64, F32, ("resid_pre", "z")),
        (F64, F32, ("ln1", "pattern", "mlp_out", "resid_post")),
        (F32, BF16, ("logits", "q")),
        (F32, BF16, ("resid_pre", "attn_out", "ln_final")),
        (F32, F64, ("embed", "k", "resid_mid", "logits")),
    ],
)
def test_a_place_in_another_type_is_not_accused_and_the_coarser_one_named(kind, dtype, other, cast):
    report = report_on(kind, dtype, other, cast)
    assert report.passed, str(report)
    assert not report.gauges
    assert report.dtype == str(dtype).removeprefix("torch.")
    said = [note for note in report.notes if note.startswith("precision: recorded in ")]
    assert len(said) == (other != F64)
    assert all(
        note.startswith(f"precision: recorded in {str(other)[6:]}, the rest") for note in said
    )


@pytest.mark.parametrize(
    ("words", "cast", "hide", "says"),
    [
        (("rotated",), ("resid_pre", "mlp_out"), (), "the residual stream is rotated"),
        (("centre_writers",), ("z", "mlp_post"), (), "the residual stream is centred"),
        (("basis_vo",), ("v",), (), "values are in another basis"),
        ((), ("resid_mid",), ("ln2", "mlp_pre", "mlp_post", "mlp_out"), ""),
    ],
)
def test_other_coordinates_and_hidden_places_are_read_beside_a_coarser_type(
    words, cast, hide, says
):
    report = report_on("gpt2", F32, BF16, cast, words, hide)
    assert report.passed, str(report)
    assert any(says in str(gauge) for gauge in report.gauges) or not words, str(report)


@pytest.mark.parametrize(
    ("dtype", "other", "cast", "off", "times"),
    [
        (F64, F32, ("logits",), "z.1", 1 + 1e-9),
        (F64, F32, ("logits",), "logits", 1 + 1e-5),
        (F64, F32, ("z", "q"), "mlp_post.0", 1 + 1e-9),
        (F32, BF16, ("pattern",), "pattern.0", 1.05),
        (F32, BF16, ("ln1", "pattern"), "mlp_post.0", 1.001),
    ],
)
def test_a_type_that_is_coarser_elsewhere_hides_no_fault(dtype, other, cast, off, times):
    report = report_on("gpt2", dtype, other, cast, off=off, times=times)
    assert report.first_failure.place == off, str(report)


def test_logits_say_what_a_pass_computes_in_only_where_nothing_else_does() -> None:
    assert report_on("gpt2", F64, F32, ("logits",), only=("z.1", "logits")).dtype == "float64"
    assert report_on("gpt2", F32, F64, ("logits",), only=("z.1", "logits")).dtype == "float32"
    assert report_on("gpt2", F64, F32, ("logits",), only=("logits",)).dtype == "float32"


def softmax_in(dtype):
    """Return the step of rounding the pattern to a type, and going on from it in float32."""
    return lambda net, scores, layer: Net.softmax(net, scores, layer).to(dtype).float()


@pytest.mark.parametrize("family", ["g", "l"])
@pytest.mark.parametrize("dtype", [torch.float16, BF16])
def test_a_step_in_half_precision_is_a_mistake_though_it_is_shown_in_that_type(family, dtype):
    """Not so where it is only kept in it: what reads it was computed from other numbers."""
    c = FAMILIES[family]
    held = {name: w.astype(np.float32) for name, w in weights(c, 0, 1.0).items()}
    own = {name: w.astype(np.float64) for name, w in held.items()}

    def report_of(step):
        net = Net(own, c, F32, **({"softmax": softmax_in(dtype)} if step else {}))

        def call(tokens):
            with torch.no_grad():
                places = net.forward(torch.as_tensor(tokens))
            kept = {n: p.to(dtype) for n, p in places.items() if n.startswith("pattern")}
            return places["logits"], {**places, **kept}

        return audit(call, TOKENS[0], weights=held, config=config(c))

    assert report_of(step=False).passed
    first = report_of(step=True).first_failure
    assert first.place == "pattern.0"
    assert "half-precision step" in first.diagnosis
