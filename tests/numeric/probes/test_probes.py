"""Probes by their first-order conditions, erasure by its closed form, steering by a plain pass."""

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.interventions.hooks import hook
from otimes.numeric.probes.erasure import erase_directions, leace
from otimes.numeric.probes.probe import (
    control_labels,
    description_length,
    fit_probe,
    selectivity,
)
from otimes.numeric.probes.steering import mean_difference, steer
from tests.numeric.interventions.plain import plain
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model


def data(count: int = 90, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    labels = np.array(["b", "a", "c"])[rng.integers(3, size=count)]
    rows = rng.standard_normal((count, d)) @ rng.standard_normal((d, d))
    rows[labels == "a", :2] += 1.5
    return rows + 4.0, labels


def test_a_ridge_probe_solves_its_normal_equations() -> None:
    rows, labels = data()
    probe = fit_probe(rows, labels, "ridge", penalty=0.7)
    target = np.array([[float(label == each) for each in ("a", "b", "c")] for label in labels])
    rest = rows @ probe.W + probe.b - target
    assert list(probe.classes) == ["a", "b", "c"]
    assert np.abs(rows.T @ rest + 0.7 * probe.W).max() < 1e-9
    assert np.abs(rest.sum(axis=0)).max() < 1e-10


def test_a_logistic_probe_has_no_gradient_and_beats_its_neighbours() -> None:
    rows, labels = data()
    probe = fit_probe(rows, labels, penalty=0.5)
    scores = rows @ probe.W + probe.b
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    target = np.array([[float(label == each) for each in probe.classes] for label in labels])
    gradient = rows.T @ (chances - target) + 0.5 * probe.W
    # The loss is flat to sqrt(u) around its minimum: what a minimiser of its values can reach.
    assert np.abs(gradient).max() < 1e-4
    plainly = -np.log((chances * target).sum(axis=1)).mean()
    assert abs(probe.log_loss(rows, labels) - plainly) < 1e-12
    right = sum(probe.classes[row.argmax()] == z for row, z in zip(scores, labels, strict=True))
    assert probe.accuracy(rows, labels) == right / len(rows)


def test_any_labels_fit_in_enough_dimensions() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((12, 11)), rng.integers(3, size=12)
    for kind in ("ridge", "logistic"):
        assert fit_probe(rows, labels, kind, penalty=1e-6).accuracy(rows, labels) == 1.0


def test_a_control_task_has_one_label_for_each_type() -> None:
    types, labels = np.array([4, 4, 9, 9, 4, 7]), np.array([0, 1, 0, 1, 1, 1])
    control = control_labels(types, labels, seed=2)
    assert all(len({*control[types == each]}) == 1 for each in types)
    rng = np.random.default_rng(1)
    tokens = rng.integers(200, size=1000)
    table = rng.standard_normal((200, 8))
    found = selectivity(table[tokens], table[tokens, 0] > 0, tokens)
    assert found.task > 0.95
    assert found.control < 0.75
    assert found.selectivity == found.task - found.control


def test_description_length_is_that_of_uniform_codes_for_random_labels() -> None:
    rng = np.random.default_rng(5)
    rows, labels = rng.standard_normal((240, 3)), rng.integers(4, size=240)
    assert abs(description_length(rows, labels, penalty=50.0) - 480) < 30
    assert description_length(rows, (rows[:, 0] > 0) * 1, penalty=0.1) < 100
    only = description_length(rows, labels, blocks=[1.0])
    assert abs(only - 480) < 1e-9


def test_a_projection_removes_a_span_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    U, rows = rng.standard_normal((2, 5)), rng.standard_normal((7, 5))
    eraser = erase_directions(np.concatenate([U, U[:1] + U[1:]]))
    plainly = rows - rows @ U.T @ np.linalg.inv(U @ U.T) @ U
    assert eraser.rank == 2
    assert np.abs(eraser(rows) - plainly).max() < 1e-12
    assert np.abs(eraser(eraser(rows)) - eraser(rows)).max() < 1e-12


def test_leace_is_its_closed_form_and_moves_less_than_other_erasers() -> None:
    rows, labels = data()
    Z = np.array([[float(label == each) for each in ("a", "b", "c")] for label in labels])
    X, Z = rows - rows.mean(axis=0), Z - Z.mean(axis=0)
    eraser = leace(rows, labels)
    clean = eraser(rows)
    assert eraser.rank == 2
    assert np.abs((clean - clean.mean(axis=0)).T @ Z).max() < 1e-10
    # Σ_XZ (Σ_ZX Σ⁺ Σ_XZ)⁺ Σ_ZX Σ⁺, without any whitening
    S, C = X.T @ X, X.T @ Z
    taken = C @ np.linalg.pinv(C.T @ np.linalg.inv(S) @ C, rcond=1e-10) @ C.T @ np.linalg.inv(S)
    assert np.abs(clean - (rows - X @ taken.T)).max() < 1e-9
    moved = ((rows - clean) ** 2).sum()
    basis = np.linalg.svd(C)[0][:, :2]  # the projection on the orthogonal complement erases, too
    other = X - X @ basis @ basis.T
    assert np.abs(other.T @ Z).max() < 1e-10
    assert moved < ((X - other) ** 2).sum()
    probe = fit_probe(clean, labels, "ridge", penalty=1e-9)
    assert np.abs(probe.scores(clean) - probe.b - clean.mean(axis=0) @ probe.W).max() < 1e-6


def test_leace_takes_numbers_and_constant_directions() -> None:
    rows, _ = data()
    wide = np.concatenate([rows, np.ones((len(rows), 1)), rows[:, :1]], axis=1)
    concept = rows[:, 0] ** 2
    clean = leace(wide, concept)(wide)
    centred = clean - clean.mean(axis=0)
    assert np.abs(centred.T @ (concept - concept.mean())).max() < 1e-7
    assert leace(wide, np.zeros(len(rows))).rank == 0


def test_steering_adds_a_direction_at_the_chosen_positions() -> None:
    model = random_model(KINDS["gpt2"])
    direction = np.arange(9.0)

    def edit(name: str, value: np.ndarray) -> np.ndarray:
        if name == "resid_pre.1":
            value[[0, 5]] = value[[0, 5]] - 0.3 * direction
        return value

    at = hook("resid_pre.1", positions=[0, -1])
    found = steer(model, TINY_TOKENS, at, direction, -0.3, record=["logits"])
    assert np.abs(found["logits"] - plain(model, TINY_TOKENS, edit)["logits"]).max() < 1e-10
    assert mean_difference([[1.0, 4.0]], [[0.0, 1.0], [2.0, 1.0]]).tolist() == [0.0, 3.0]


def test_bad_input_is_refused_in_a_sentence() -> None:
    rows, labels = data()
    for call, error, message in (
        (lambda: fit_probe(rows[0], labels), ShapeError, r"the shape \(examples, d\), got \(6,\)"),
        (lambda: fit_probe(rows, labels[1:]), ShapeError, r"must have the shape \(90,\), got"),
        (lambda: fit_probe(rows, ["a"] * 90), OtimesError, "at least two classes, got only"),
        (lambda: fit_probe(rows, labels, "svm"), OtimesError, "kind must be 'ridge' or"),
        (lambda: fit_probe(rows, labels, penalty=0), OtimesError, "penalty must be a positive"),
        (lambda: fit_probe(rows * np.nan, labels), OtimesError, "activations must be finite"),
        (lambda: erase_directions([0.0, 0.0]), OtimesError, "all zero: there is nothing"),
        (lambda: leace(rows, labels)(rows[:, 1:]), ShapeError, "eraser is for 6 dimensions"),
        (lambda: description_length(rows, labels, blocks=[0.5]), OtimesError, "that end at 1"),
        (lambda: selectivity(rows, labels, labels, held_out=1.5), OtimesError, "between 0 and 1"),
        (lambda: steer(random_model(), [1, 2], "z.0", [1.0]), ShapeError, "has 1 entries, and z"),
    ):
        with pytest.raises(error, match=message):
            call()
