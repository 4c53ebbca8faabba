"""Norms, activations, softmax and rotation against torch's own, SciPy's, and mpmath."""

from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import torch
from torch.nn import functional

from otimes.algebra.errors import OtimesError
from otimes.numeric.functions import (
    ACTIVATION,
    causal_mask,
    gelu,
    gelu_tanh,
    masked_softmax,
    norm_scale,
    normalise,
    quick_gelu,
    relu,
    relu2,
    rotary_frequencies,
    rotate,
    silu,
)
from tests.numeric.loops import ramped

ULP = 2.0**-52
X = np.concatenate([np.linspace(-40, 40, 1001), [0.0, 1e-300, -1e-300, 1e3, -1e3]])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (gelu, functional.gelu),
        (gelu_tanh, lambda x: functional.gelu(x, approximate="tanh")),
        (relu, functional.relu),
        (silu, functional.silu),
        (relu2, lambda x: functional.relu(x).square()),
        (quick_gelu, lambda x: x * torch.sigmoid(1.702 * x)),
    ],
)
def test_activations_are_torch_s(ours, theirs) -> None:
    # torch adds 1 to an erf or tanh near -1: absolute, not relative, accuracy of x · a few ulp.
    difference = np.abs(ours(X) - theirs(torch.tensor(X)).numpy())
    assert (difference <= 4 * ULP * np.abs(X)).all()


@pytest.mark.parametrize(
    ("ours", "exact", "least"),
    [
        (gelu, lambda x: x * mpmath.ncdf(x), -30),
        (silu, lambda x: x / (1 + mpmath.exp(-x)), -700),
    ],
)
def test_gelu_and_silu_are_accurate_where_they_are_small(ours, exact, least) -> None:
    """Relative to the value: ncdf's condition is x², exp's is x; both a few ulp."""
    with mpmath.workdps(40):
        for x in np.linspace(least, 5, 200):
            value = exact(mpmath.mpf(float(x)))
            error = abs((mpmath.mpf(float(ours(x))) - value) / value)
            assert error < 4 * ULP * max(1, x * x)


def test_no_activation_overflows_on_large_input() -> None:
    large = np.array([-1e100, -800.0, 800.0, 1e100])
    for name, activate in ACTIVATION.items():
        found = activate(large)
        expected = [0.0, 0.0, 6.4e5, 1e200] if name == "relu2" else [0.0, 0.0, 800.0, 1e100]
        assert np.array_equal(np.abs(found), expected), name


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_norms_are_torch_s(scale: float) -> None:
    draw = np.random.default_rng(0)
    rows = scale * draw.standard_normal((20, 7)) + scale
    gain, bias = draw.standard_normal(7), draw.standard_normal(7)
    as_torch = [torch.tensor(each) for each in (rows, gain, bias)]
    layer = functional.layer_norm(as_torch[0], (7,), as_torch[1], as_torch[2], 1e-5).numpy()
    rms = functional.rms_norm(as_torch[0], (7,), as_torch[1], 1e-5).numpy()
    # Rows of order one after the norm; taking off a mean as large as the rows loses a few digits
    # of the smallest deviations: 7 + 10 roundings, enlarged by |row| / deviation below 20.
    assert np.abs(normalise(rows, "layer", 1e-5, gain, bias) - layer).max() < 17 * 20 * ULP
    assert np.abs(normalise(rows, "rms", 1e-5, gain, 0 * bias) - rms).max() < 17 * 3 * ULP


def test_the_scale_is_the_root_of_the_mean_square() -> None:
    rows = np.array([[3.0, 4.0], [1.0, 1.0]])
    assert norm_scale(rows, "rms", 0.0).tolist() == [[12.5**0.5], [1.0]]
    assert norm_scale(rows, "layer", 0.0).tolist() == [[0.5], [0.0]]
    assert norm_scale(rows, "layer", 4.0)[1, 0] == 2.0
    assert norm_scale(rows, "none", 1.0).tolist() == [[1.0], [1.0]]


def test_a_large_hidden_score_changes_nothing() -> None:
    """With the maximum over the whole row, the visible entries would all underflow to 0 / 0."""
    scores = np.array([[1.0, 5000.0], [2.0, 3.0]])
    pattern = masked_softmax(scores, causal_mask(2))
    assert pattern[0].tolist() == [1.0, 0.0]
    assert np.isfinite(pattern).all()


def test_large_scores_do_not_overflow() -> None:
    pattern = masked_softmax(np.array([[0.0, 0.0], [1e4, -1e4]]), causal_mask(2))
    assert pattern.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_a_query_that_sees_nothing() -> None:
    with pytest.raises(
        OtimesError, match="all keys of query 1 are masked: its softmax is undefined"
    ):
        masked_softmax(np.zeros((2, 3)), np.array([[True, True, False], [False] * 3]))


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_rotation_by_a_matrix(layout: str) -> None:
    """The first 4 of 6 dimensions, each pair turned by a 2×2 rotation matrix."""
    rows = np.random.default_rng(0).standard_normal((5, 6))
    turned = rotate(rows, 4, 100.0, layout)
    pairs = [(0, 2), (1, 3)] if layout == "half" else [(0, 1), (2, 3)]
    for position in range(5):
        for i, pair in enumerate(pairs):
            angle = position * 100.0 ** (-2 * i / 4)
            matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            expected = matrix @ rows[position, list(pair)]
            assert np.abs(turned[position, list(pair)] - expected).max() < 10 * 4 * ULP
    assert np.array_equal(turned[:, 4:], rows[:, 4:])
    assert np.array_equal(turned[0], rows[0])


def test_stretched_frequencies() -> None:
    """Pair by pair, by wavelengths, as Meta's code for Llama 3.1 has them."""
    factor, low, high, context = 8.0, 1.0, 4.0, 8192.0
    found = rotary_frequencies(128, 500000.0, (factor, low, high, context))
    for i in range(64):
        plain = 500000.0 ** (-2 * i / 128)
        wavelength = 2 * np.pi / plain
        if wavelength < context / high:
            expected = plain
        elif wavelength > context / low:
            expected = plain / factor
        else:
            smooth = (context / wavelength - low) / (high - low)
            expected = (1 - smooth) * plain / factor + smooth * plain
        assert abs(found[i] - expected) <= 40 * ULP * expected
    assert found[0] == 1.0
    config = SimpleNamespace(rotary_stretch=(8.0, 1.0, 32.0, 2048.0, 1.2), rotary_dims=128)
    config.rotary_base = 10000.0
    yarn = rotary_frequencies(128, 10000.0, config.rotary_stretch)
    for i in range(64):
        expected = ramped(config, i, 10000.0 ** (-2 * i / 128))
        assert abs(yarn[i] - expected) <= 60 * ULP * expected
    assert np.array_equal(rotary_frequencies(4, 100.0, (4.0,)), np.array([0.25, 0.025]))
