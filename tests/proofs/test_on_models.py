"""The check on models: it holds on every bundled model, and it notices what it should.

The disturbances are small on purpose: 1e-9 relative, of one entry of one recorded place, or of one
line of the reference pass. A check that lets one pass is not worth its name.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import otimes.numeric.forward
from otimes.numeric.binding import Run, run_from_places, run_of
from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue import catalogue, find
from otimes.proofs.claims import Statement
from otimes.proofs.on_models import check_on_model
from otimes.proofs.theorem import Theorem
from otimes.proofs.verification import check_definition

TOKENS = [int(token) for token in sample_tokens(12)]
SLIGHTLY = 1 + 1e-9
SENSITIVE_ENOUGH = 1e-8  # what the project promises of its float64 checks
# Scores of composed heads: two streams and up to eight weights, so longer sums and smaller shares.
COMPOSED = {"scores_by_composition": 2e-7, "qk_six_index": 2e-7}
# The score of the null key is in both factors of one side, and the product does not depend on it.
COMPOSED["softmax_plus_one_is_a_null_key"] = 0.05
# What is added to all scores of a row makes no difference, which is the theorem.
COMPOSED["softmax_ignores_row_constants"] = float("inf")

# Those that form the whole path from tokens to logits come last: they cost the most.
EQUATIONS = [t for t in catalogue() if isinstance(t.claim(), Statement) and t.claim().on_models]
OF_PLACES = sorted(
    (t for t in EQUATIONS if t.statement().places), key=lambda t: t.statement().depth is not None
)


@pytest.fixture(scope="module")
def two_layer() -> Model:
    return load_model("two_layer")


@pytest.mark.parametrize("theorem", OF_PLACES, ids=lambda theorem: theorem.name)
def test_what_speaks_of_places_is_sensitive(theorem: Theorem, two_layer: Model) -> None:
    evidence = check_on_model(theorem.statement(), run_of(two_layer, TOKENS))
    assert evidence.passed, evidence.why
    if evidence.applies:
        assert evidence.sensitivity <= COMPOSED.get(theorem.name, SENSITIVE_ENOUGH)


@pytest.fixture(scope="module")
def small() -> Model:
    """A model of the kind of two_layer on which all comparisons together take little work.

    It has as many tokens as features: some statements bind a square part of `W_U`.
    """
    return random_model(n_layers=2, n_heads=2, d_model=12, d_head=5, d_vocab=12, n_ctx=16)


SMALL_TOKENS = [token % 12 for token in TOKENS[:7]]
PLACES = sorted(load_model("two_layer").forward(TOKENS))


def _noticed(run: Run) -> bool:
    """Return whether the definition or some theorem sees that something is wrong."""
    definition = check_definition(run)
    if definition is not None and not definition.passed:
        return True
    return not all(check_on_model(theorem.statement(), run).passed for theorem in OF_PLACES)


def test_nothing_is_noticed_on_a_clean_run(small: Model, two_layer: Model) -> None:
    assert sorted(small.forward(SMALL_TOKENS)) == PLACES
    assert not _noticed(run_of(small, SMALL_TOKENS))
    assert not _noticed(run_of(two_layer, TOKENS))


@pytest.mark.parametrize("place", PLACES)
def test_a_disturbed_place_is_noticed(small: Model, place: str) -> None:
    places = small.forward(SMALL_TOKENS)
    assert _noticed(
        run_from_places(small, SMALL_TOKENS, {**places, place: places[place] * SLIGHTLY})
    )


@pytest.mark.parametrize("place", PLACES)
def test_one_disturbed_entry_is_noticed(small: Model, place: str) -> None:
    """The largest entry of a place; a tiny one can hide below the rounding of its neighbours."""
    places = small.forward(SMALL_TOKENS)
    disturbed = places[place].copy()
    largest = np.unravel_index(np.argmax(np.abs(disturbed)), disturbed.shape)
    disturbed[largest] *= SLIGHTLY
    assert _noticed(run_from_places(small, SMALL_TOKENS, {**places, place: disturbed}))


def _with_line(changed: str, by: Callable[[np.ndarray], np.ndarray]) -> Callable:
    original = otimes.numeric.forward.one_head

    def one_head(*arguments: np.ndarray) -> Mapping[str, np.ndarray]:
        places = dict(original(*arguments))
        places[changed] = by(places[changed])
        return places

    return one_head


@pytest.mark.parametrize("line", ["q", "k", "v", "scores", "pattern", "z", "head_out"])
def test_a_changed_line_of_the_pass_is_noticed(
    small: Model, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        otimes.numeric.forward, "one_head", _with_line(line, lambda array: array * SLIGHTLY)
    )
    assert _noticed(run_of(small, SMALL_TOKENS))


@pytest.mark.parametrize(
    "mistake",
    [
        lambda visible: np.tri(len(visible), k=-1) + np.eye(len(visible)) * 0 > 0,
        lambda visible: np.ones_like(visible),
    ],
    ids=["strictly causal", "not causal"],
)
def test_another_mask_is_noticed(
    small: Model, mistake: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = otimes.numeric.forward.masked_softmax

    def masked_softmax(scores: np.ndarray, visible: np.ndarray) -> np.ndarray:
        wrong = mistake(visible)
        wrong[0, 0] = True  # a first query that sees nothing would not be finite
        return original(scores, wrong)

    monkeypatch.setattr(otimes.numeric.forward, "masked_softmax", masked_softmax)
    assert _noticed(run_of(small, SMALL_TOKENS))


def test_what_failed_is_named(two_layer: Model) -> None:
    places = two_layer.forward(TOKENS)
    disturbed = {**places, "z.1": places["z.1"] * SLIGHTLY}
    evidence = check_on_model(
        find("head_is_kron").statement(), run_from_places(two_layer, TOKENS, disturbed)
    )
    assert not evidence.passed
    assert evidence.model == "two_layer"
    assert evidence.ratio > 1
    assert "recorded z" in evidence.why
    assert "layer 1" in evidence.where
