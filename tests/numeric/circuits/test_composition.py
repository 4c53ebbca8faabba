"""Composition scores of all pairs, against norms of the whole circuits by loops, and chance."""

from dataclasses import replace

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, RuleError
from otimes.numeric.circuits.composition import composition_scores
from otimes.numeric.processing import centre_readers, centre_writers, fold_norm_biases
from otimes.numeric.random_weights import random_model as drawn
from tests.numeric.circuits.plainly import MODELS, across, heads, mul, near, norm, ov, qk
from tests.numeric.random_models import KINDS, random_model


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("distance", [0, 4])
def test_scores_are_norms_of_products(model, distance: int) -> None:
    where = distance if model.positions == "rotary" else None
    found = composition_scores(model, distance=where, centred=False)
    assert found.axes == ("kind", "writer", "reader")
    every = list(heads(model))
    for i, early in enumerate(every):
        for j, late in enumerate(every):
            if early[0] >= late[0]:
                assert np.isnan(found.values[:, i, j]).all()
                continue
            A, reads = ov(model, *early), qk(model, *late, where)
            for kind, B in zip("QKV", (reads, across(reads), ov(model, *late)), strict=True):
                expected = norm(mul(A, B)) / norm(A) / norm(B)
                score = float(found.at(kind=kind, writer=i, reader=j).values)
                assert near(score, expected), (kind, early, late)


def test_some_kinds_are_those_of_all() -> None:
    model = MODELS["attention only"]
    every = composition_scores(model)
    for kinds in ("Q", "VK"):
        some = composition_scores(model, kinds)
        for kind in kinds:
            assert np.array_equal(
                some.at(kind=kind).values, every.at(kind=kind).values, equal_nan=True
            )


def test_centred_scores_are_those_of_centred_weights() -> None:
    model = fold_norm_biases(MODELS["gpt2"])
    centred = centre_writers(centre_readers(model))
    found, of_centred = composition_scores(model), composition_scores(centred, centred=True)
    plain = composition_scores(centred, centred=False)
    for other in (of_centred, plain):
        assert near(np.nan_to_num(found.values), np.nan_to_num(other.values))
    assert found.baseline == of_centred.baseline == (model.d_model - 1) ** -0.5
    assert plain.baseline == model.d_model**-0.5


def random_rotation(rng: np.random.Generator, size: int) -> np.ndarray:
    Q, R = np.linalg.qr(rng.standard_normal((size, size)))
    return Q * np.sign(np.diag(R))


@pytest.mark.parametrize("centred", [False, True])
def test_by_chance_the_mean_square_is_one_in_d(centred: bool) -> None:
    """Against the mean over rotations drawn uniformly; with the mean kept apart, one in d − 1.

    The score squared of one pair lies in [0, 1]; over 20 000 independent draws its mean has a
    standard error that is measured, and the mean must lie within five of them.
    """
    rng = np.random.default_rng(0)
    d, n_draws = 6, 20_000
    A, B = rng.standard_normal((3, d)), rng.standard_normal((d, 2)) * [1, 10]
    basis = np.eye(d)
    if centred:
        A, B = A - A.mean(axis=1, keepdims=True), B - B.mean(axis=0)
        _, _, Vh = np.linalg.svd(np.ones((1, d)))
        basis = Vh[1:]
    A, B = A / np.linalg.norm(A), B / np.linalg.norm(B)
    draws = np.array([
        np.linalg.norm(A @ basis.T @ random_rotation(rng, len(basis)) @ basis @ B) ** 2
        for _ in range(n_draws)
    ])  # fmt: skip
    chance = 1 / (d - centred)
    error = draws.std() / n_draws**0.5
    # Five standard errors are well below what tells 1/d from 1/(d − 1).
    assert abs(draws.mean() - chance) < 5 * error < (1 / (d - 1) - 1 / d) / 2
    model = drawn(d_model=d, d_head=2)
    assert composition_scores(model, centred=centred).baseline == pytest.approx(
        chance**0.5, rel=1e-15
    )


def test_random_weights_compose_by_chance() -> None:
    model = drawn(n_layers=3, n_heads=8, d_model=64, d_head=8)
    scores = composition_scores(model)
    mean_square = np.nanmean(scores.values**2, axis=(1, 2)) ** 0.5
    assert (np.abs(mean_square / scores.baseline - 1) < 0.02).all()


def test_gauge_rotation_and_scale_do_not_matter() -> None:
    model = MODELS["attention only"]
    rng = np.random.default_rng(0)
    G, F = rng.standard_normal((2, model.d_head, model.d_head))
    Q = random_rotation(rng, model.d_model)
    changes = {
        "OV gauge": {"W_V": model.W_V @ G, "W_O": np.linalg.inv(G) @ model.W_O},
        "QK gauge": {"W_Q": model.W_Q @ F, "W_K": model.W_K @ np.linalg.inv(F).T},
        "bad gauge": {"W_V": model.W_V * [1, 1e9], "W_O": model.W_O / np.array([[1], [1e9]])},
        "rotation": {
            "W_Q": Q.T @ model.W_Q, "W_K": Q.T @ model.W_K, "W_V": Q.T @ model.W_V,
            "W_O": model.W_O @ Q,
        },
        "scale": {"W_Q": 1e-9 * model.W_Q, "W_O": 1e7 * model.W_O},
    }  # fmt: skip
    before = np.nan_to_num(composition_scores(model).values)
    for name, weights in changes.items():
        after = np.nan_to_num(composition_scores(model.changed(weights)).values)
        assert near(after, before), name


def test_special_cases() -> None:
    """A reader of just what is written scores as high as can be, one of nothing else scores 0."""
    model = drawn(n_layers=2, n_heads=1, d_model=4, d_head=2)
    first, last = np.eye(4)[:, :2], np.eye(4)[:, 2:]
    W_O = np.stack([first.T, first.T])[:, None]
    W_Q, W_K = np.stack([first, first])[:, None], np.stack([last, last])[:, None]
    changed = model.changed({"W_V": W_Q, "W_O": W_O, "W_Q": W_Q, "W_K": W_K})
    scores = composition_scores(changed).values[:, 0, 1]
    # Projections of rank 2: ‖P P‖ / ‖P‖² = √2 / 2, the largest for rank 2 of equal values.
    assert near(scores, [0.5**0.5, 0.0, 0.5**0.5], 1e-14)
    silent = changed.changed({"W_O": 0 * W_O})
    assert composition_scores(silent).values[:, 0, 1].tolist() == [0.0, 0.0, 0.0]


def test_single_precision_is_near_double() -> None:
    model = drawn(n_layers=2, n_heads=4, d_model=64, d_head=8, dtype=np.float32)
    single = composition_scores(model, dtype=np.float32).values
    double = composition_scores(model).values
    assert single.dtype == np.float32
    # Sums of 64 products, then of 64 squares: far below 10⁴ roundings.
    assert np.nanmax(np.abs(single - double) / double) < 1e4 * 2**-24


def test_wrong_use() -> None:
    plain, llama = MODELS["attention only"], MODELS["llama"]
    for kinds in ("", "QQ", "O", "q"):
        with pytest.raises(OtimesError, match="kinds must be distinct letters out of 'QKV'"):
            composition_scores(plain, kinds)
    with pytest.raises(OtimesError, match="depend on the distance"):
        composition_scores(llama)
    assert composition_scores(llama, "V").values.shape == (1, 8, 8)
    with pytest.raises(OtimesError, match="only with rotary positions"):
        composition_scores(plain, distance=2)
    with pytest.raises(RuleError, match="composition needs norm gains of 1"):
        composition_scores(random_model(KINDS["gpt2"]))
    one = random_model(replace(KINDS["attention only"], n_layers=1))
    assert np.isnan(composition_scores(one).values).all()
