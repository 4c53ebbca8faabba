"""Claims whose symbols are bound to wrong arrays of a model: noticed, explained, or reported."""

from dataclasses import replace

import numpy as np
import pytest
from sympy import Pow, Rational, Transpose

from otimes.algebra.language.linear import matmul
from otimes.numeric.binding import Run, run_of
from otimes.numeric.random_weights import random_model
from otimes.proofs.catalogue.symbols import X, d_head, row
from otimes.proofs.claims import Definition, Statement
from otimes.proofs.rebound import check_bindings, wrong_runs
from otimes.proofs.theorem import Theorem
from otimes.proofs.verification import verify_on_runs

SCALE = Pow(d_head, Rational(-1, 2))
SCORES = matmul(SCALE, X, row.W_Q, Transpose(matmul(X, row.W_K)))
TIED = Statement(
    matmul(X, row.W_Q, Transpose(matmul(X, row.W_K))),
    matmul(X, row.W_Q, Transpose(row.W_K), Transpose(X)),
    places={"scores": SCORES},
)


@pytest.fixture(scope="module")
def run() -> Run:
    model = random_model(n_layers=2, n_heads=2, d_model=12, d_head=5, d_vocab=12, n_ctx=16)
    return run_of(model, [1, 7, 3, 3, 9])


def test_every_wrong_binding_of_the_scores_is_noticed(run: Run) -> None:
    found = check_bindings(TIED, [run])
    assert found is not None
    assert found.passed
    assert found.noticed > 10


def test_a_claim_without_places_is_compared_with_nothing_recorded(run: Run) -> None:
    assert check_bindings(replace(TIED, places={}), [run]) is None


def test_a_symbol_that_no_place_depends_on_is_reported(run: Run) -> None:
    """With places for the queries only, the keys may be anything."""
    loose = replace(TIED, places={"q": matmul(X, row.W_Q)})
    found = check_bindings(loose, [run])
    assert found is not None
    assert not found.passed
    assert {"W_K of another layer", "W_Q for W_K"} <= {*found.unnoticed}
    explained = replace(loose, unchanged_by=dict.fromkeys(found.unnoticed, "an example"))
    again = check_bindings(explained, [run])
    assert again is not None
    assert again.passed


def test_an_explanation_of_what_is_noticed_is_reported(run: Run) -> None:
    found = check_bindings(replace(TIED, unchanged_by={"W_K for W_Q": "no reason"}), [run])
    assert found is not None
    assert found.stale == ("W_K for W_Q",)
    assert not found.passed


def test_a_definition_is_held_to_its_places(run: Run) -> None:
    scores = Definition("scores", SCORES, lambda **_: None, places=("scores",))
    found = check_bindings(scores, [run])
    assert found is not None
    assert found.passed
    loose = replace(scores, value=matmul(X, row.W_Q), places=())
    assert check_bindings(loose, [run]) is None


def test_wrong_arrays_differ_from_the_right_ones(run: Run) -> None:
    for change, wrong in wrong_runs(TIED, run):
        differing = [n for n in run.arrays if not np.array_equal(run.arrays[n], wrong.arrays[n])]
        assert len(differing) == 1, change


def test_the_report_fails_with_an_unnoticed_binding(run: Run) -> None:
    loose = replace(TIED, places={"q": matmul(X, row.W_Q)})
    found = check_bindings(loose, [run])
    assert found is not None
    explained = replace(loose, unchanged_by=dict.fromkeys(found.unnoticed, "an example"))
    for claim, passes in ((TIED, True), (loose, False), (explained, True)):
        entry = Theorem("mine", "Mine", 0, "row", "", (), "", lambda claim=claim: claim)
        report = verify_on_runs(entry, [run])
        assert report.passed is passes
        assert report.bindings_passed is passes
