"""Networks that add modulo p: gradients, the network by hand, the bundled run."""

import numpy as np
import pytest

import otimes as ot
from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.behaviours.modular_addition import (
    AdditionNetwork,
    AdditionRecipe,
    loss_and_gradients,
    save_addition,
    share_of_the_sum,
)

SMALL = AdditionRecipe(p=5, hidden=6, steps=30, every=10, memorised_at=10)


def test_the_network_by_hand_adds_and_its_logits_are_cosines() -> None:
    network, found = ot.fourier_addition(13, [1, 5]), ot.fourier_addition(13, [1, 5]).logits()
    for a, b, c in ((0, 0, 0), (3, 12, 1), (7, 9, 4)):
        angle = 2 * np.pi * (a + b - c) / 13
        assert found[a, b, c] == pytest.approx(np.cos(angle) + np.cos(5 * angle), abs=1e-13)
    assert network.right().all()
    assert share_of_the_sum(network) == pytest.approx(1, abs=1e-12)
    shares = ot.fourier_shares(network)
    assert shares[:8, 1] == pytest.approx(1, abs=1e-12)
    assert shares[8:, 5] == pytest.approx(1, abs=1e-12)
    for p, frequencies in ((2, [1]), (7, []), (7, [4])):
        with pytest.raises(OtimesError, match="modulus|frequencies"):
            ot.fourier_addition(p, frequencies)


def test_gradients_are_differences_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape) for shape in ((5, 6), (5, 6), (6, 5))]
    chosen = rng.random((5, 5)) < 0.6
    for number, gradient in enumerate(loss_and_gradients(weights, chosen)[1]):
        at = tuple(rng.integers(size) for size in gradient.shape)
        ends = []
        for sign in (1, -1):
            moved = [each.copy() for each in weights]
            moved[number][at] += sign * 1e-5
            ends.append(loss_and_gradients(moved, chosen)[0])
        assert gradient[at] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-8)


def test_a_run_repeats_itself_and_is_read_as_it_was_written(tmp_path) -> None:
    one, other = ot.train_addition(SMALL, seed=3), ot.train_addition(SMALL, seed=3)
    assert (one.curve == other.curve).all()
    assert not (one.curve == ot.train_addition(SMALL, seed=4).curve).all()
    read = ot.load_addition(save_addition(one, tmp_path / "run"))
    assert read.recipe == SMALL
    assert np.allclose(read.generalises.A, one.generalises.A, rtol=1e-6)
    assert (read.trained_on == one.trained_on).all()
    with pytest.raises(OtimesError, match="trains on 0 of 25 pairs"):
        ot.train_addition(AdditionRecipe(p=5, share=0.0))


def test_the_bundled_run_is_what_its_curve_says() -> None:
    run = ot.load_addition()
    curve = {int(row[0]): row[2:] for row in run.curve}
    for network, step in ((run.memorises, run.recipe.memorised_at), (run.generalises, 6000)):
        right = network.right()
        shares = right[run.trained_on].mean(), right[~run.trained_on].mean()
        assert shares == pytest.approx(curve[step], abs=2e-3)  # one pair of 577, stored as float32
    early, late = (
        ot.circuit_efficiency(each, run.trained_on) for each in (run.memorises, run.generalises)
    )
    assert late > 1.5 * early


def test_efficiency_does_not_depend_on_the_scale() -> None:
    network = ot.fourier_addition(7, [1, 2])
    larger = AdditionNetwork(3 * network.A, 3 * network.B, 3 * network.C)
    assert ot.circuit_efficiency(larger) == pytest.approx(ot.circuit_efficiency(network), rel=1e-12)
    with pytest.raises(ShapeError, match="7 × 7"):
        ot.circuit_efficiency(network, np.ones((3, 3)))
    with pytest.raises(ShapeError, match="B must have that shape"):
        AdditionNetwork(network.A, network.A[:3], network.C)
