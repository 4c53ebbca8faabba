"""Fine-tuning, context and memory, recall, signals and EigenScore against loops."""

import numpy as np
import pytest

import otimes as ot
from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.behaviours.training import last_loss, weight_gradients
from otimes.numeric.random_weights import KINDS, random_model

TINY = {"n_heads": 2, "d_model": 8, "d_head": 3, "d_vocab": 11, "n_ctx": 8}
ROWS = np.array([[1, 4, 2, 7, 3], [9, 0, 8, 5, 5], [3, 3, 1, 10, 6]])


@pytest.mark.parametrize("kind", ["none", "shortformer", "gpt2", "bloom"])
def test_gradients_of_weights_are_differences_of_the_loss(kind: str) -> None:
    more = {**KINDS[kind], "d_mlp": 10} if kind in KINDS else {}
    slopes = {"alibi_slopes": (0.5, 0.25)} if kind == "bloom" else {}
    shortformer = {"positions": "shortformer"} if kind == "shortformer" else {}
    model = random_model(**{**more, **TINY, **slopes, **shortformer})
    rng = np.random.default_rng(2)
    for name, gradient in weight_gradients(model, ROWS).items():
        at, ends = tuple(rng.integers(size) for size in gradient.shape), []
        for sign in (1, -1):
            moved = model.part(name).copy()
            moved[at] += sign * 1e-5
            ends.append(last_loss(model.changed({name: moved}), ROWS))
        assert gradient[at] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-9), name


def test_a_step_has_the_length_that_is_asked_for_and_lowers_the_loss() -> None:
    model = random_model(**TINY)
    tuned = ot.fine_tune(model, ROWS, steps=1, size=0.01)
    names = ("W_Q", "W_K", "W_V", "W_O")
    moved = sum(np.square(tuned.part(name) - model.part(name)).sum() for name in names)
    whole = sum(np.square(model.part(name)).sum() for name in names)
    assert (moved / whole) ** 0.5 == pytest.approx(0.01, rel=1e-9)
    assert last_loss(tuned, ROWS) < last_loss(model, ROWS)
    with pytest.raises(OtimesError, match="rotary positions or a gated MLP"):
        ot.fine_tune(random_model(**KINDS["llama"]), [1, 2, 3])
    with pytest.raises(OtimesError, match="has no layers"):
        ot.fine_tune("zero_layer", [1, 2, 3])


def test_overlap_counts_the_heads_that_two_models_share() -> None:
    model = random_model(**TINY)
    clean, corrupt = [1, 2, 3, 1], [1, 5, 3, 1]
    other = random_model(seed=1, **TINY)
    effects = [
        ot.activation_patching(each, clean, corrupt, normalised=False).values.ravel()
        for each in (model, other)
    ]
    tops = [set(np.argsort(-np.abs(each))[:2]) for each in effects]
    found = ot.circuit_overlap(model, other, clean, corrupt, k=2)
    assert found.shared == len(tops[0] & tops[1]) / 2
    cosine = sum(effects[0] * effects[1]) / np.sqrt(sum(effects[0] ** 2) * sum(effects[1] ** 2))
    assert found.cosine == pytest.approx(cosine, rel=1e-12)
    with pytest.raises(OtimesError, match="k must be 1 to 4"):
        ot.circuit_overlap(model, other, clean, corrupt, k=5)


def test_a_planted_head_copies_the_context_and_the_embedding_remembers() -> None:
    """Token t attends to what it equals before it, and copies; W_E W_U says t + 1 is usual."""
    d = 6
    W_U = np.roll(np.eye(d), 1, axis=1)  # memory: the next token
    W_V, W_O = np.eye(d)[None, None], (2 * W_U.T)[None, None]  # token j raises logit j
    zero = np.zeros((1, 1, d, d))
    weights = {"W_E": np.eye(d), "W_U": W_U, "W_Q": zero, "W_K": zero, "W_V": W_V, "W_O": W_O}
    model = ot.load_model(weights, {"positions": "none"})
    found = ot.context_or_memory(model, [4, 4, 4, 0], context=4, memory=1)
    values = dict(zip(found.labels["component"], found.values, strict=True))
    assert values == pytest.approx({"embed": -1.0, "head 0.0": 2 * 3 / 4})
    both = ot.context_or_memory(model, [[4, 4, 4, 0], [4, 4, 4, 1]], [4, 4], [1, 2])
    assert both.values == pytest.approx(found.values)
    with pytest.raises(OtimesError, match="no conflict"):
        ot.context_or_memory(model, [4, 0], 1, 1)
    with pytest.raises(ShapeError, match="2 prompts and 1 tokens"):
        ot.context_or_memory(model, [[4, 0], [4, 1]], [4], [1, 2])


def test_recall_effects_are_interventions() -> None:
    model = random_model(**{**KINDS["gpt2"], **TINY, "d_mlp": 9})
    clean, corrupt = [1, 2, 3, 4], [1, 7, 3, 4]
    found = ot.recall_effects(model, clean, corrupt, 1, target=5, foil=6)
    at = model.forward(clean)

    def difference(logits: np.ndarray) -> float:
        return float(logits[-1, 5] - logits[-1, 6])

    ends = difference(model.forward(corrupt)["logits"]), difference(at["logits"])
    for part, (kind, where) in enumerate([("mlp_out", 1), ("attn_out", 1), ("mlp_out", 3)]):
        edit = {ot.hook(f"{kind}.1", positions=[where]): at[f"{kind}.1"][[where]]}
        moved = difference(ot.intervene(model, corrupt, edit)["logits"])
        plain = (moved - ends[0]) / (ends[1] - ends[0])
        assert found.values[part, 1] == pytest.approx(plain, abs=1e-10)
    with pytest.raises(OtimesError, match="has no MLPs"):
        ot.recall_effects("two_layer", "x = 1", "y = 1", 0)


def test_areas_and_scores_by_counting() -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.integers(5, size=30) / 4, rng.random(30) < 0.4
    pairs = [(a > b) + (a == b) / 2 for a in scores[labels] for b in scores[~labels]]
    assert ot.area_under_curve(scores, labels) == pytest.approx(sum(pairs) / len(pairs))
    assert ot.area_under_curve([0.1, 0.2], [False, True]) == 1
    with pytest.raises(OtimesError, match="both kinds"):
        ot.area_under_curve([0.1, 0.2], [True, True])
    rows = rng.standard_normal((4, 9))
    centred = rows - rows.mean(axis=1, keepdims=True)
    _, whole = np.linalg.slogdet(centred @ centred.T + 0.1 * np.eye(4))
    assert ot.eigenscore(rows, 0.1) == pytest.approx(whole / 4, rel=1e-12)
    same = ot.eigenscore(np.tile(rows[0], (4, 1)), 0.1)
    assert same < ot.eigenscore(rows, 0.1)
    assert same == pytest.approx((3 * np.log(0.1) + np.log(0.1 + 4 * centred[0] @ centred[0])) / 4)
    with pytest.raises(OtimesError, match="alpha must be a positive number"):
        ot.eigenscore(rows, 0.0)


def test_the_last_signal_is_the_confidence_of_the_model() -> None:
    found = ot.lens_correctness("gpt2_tiny", "for i in range(10):\n    x = i")
    assert found.values.shape == (5,)
    assert found.baseline == 0.5
    with pytest.raises(OtimesError, match="both kinds"):
        ot.lens_correctness("zero_layer", [5, 900])
