"""Every entry of the catalogue is declared in full; all checks of some pass on all models.

`make verify` makes all checks of all entries: here those of one in 50, and with OTIMES_LONG=1
of all.
"""

import os
import pickle

import pytest

from otimes._table import block, shortcomings
from otimes.numeric.load import bundled_models
from otimes.proofs.catalogue import CHAPTERS, catalogue, find
from otimes.proofs.claims import Bound, Example, Lemma, Statement
from otimes.proofs.evidence import Report
from otimes.proofs.mutants import wrong_claims
from otimes.proofs.theorem import Theorem
from otimes.proofs.verification import verify_theorem

THEOREMS = catalogue()
NAMES = [theorem.name for theorem in THEOREMS]
CHECKED = THEOREMS[:: 1 if os.environ.get("OTIMES_LONG") == "1" else 50]


@pytest.fixture(params=THEOREMS, ids=NAMES)
def theorem(request: pytest.FixtureRequest) -> Theorem:
    return request.param


def test_every_bound_is_attained_or_says_why_not() -> None:
    bounds = [each.claim() for each in THEOREMS if each.state.__annotations__["return"] == "Bound"]
    assert len(bounds) >= 30
    for bound in bounds:
        assert isinstance(bound, Bound)
        assert (bound.tight is None) == bool(bound.not_attained)


def test_the_first_theorems_are_there() -> None:
    assert set(NAMES) >= {
        "kron_mul_kron",
        "kron_bilinear",
        "kron_transpose",
        "vec_rows_mul",
        "vec_cols_mul",
        "heads_concat_is_sum",
        "head_is_kron",
        "head_is_kron_row",
        "scores_through_W_QK",
        "scores_through_W_QK_column",
        "frozen_attention_is_linear",
        "residual_update",
        "logits_are_sum_of_components",
        "zero_layer_logits",
        "one_layer_expansion",
        "heads_compose",
        "two_layer_paths",
        "paths_by_order",
        "paths_count",
        "layers_write",
        "adjoint_of_layers",
        "virtual_heads_at_once",
        "orders_by_recursion",
        "replay_by_order",
        "shapley_two_layers",
        "scores_by_composition",
        "qk_six_index",
    }
    assert len(set(NAMES)) == len(NAMES)


def test_a_theorem_says_what_it_is(theorem: Theorem) -> None:
    title, folder, files = CHAPTERS[theorem.chapter]
    assert title
    assert theorem.state.__module__ in {
        f"otimes.proofs.catalogue.{folder}.{file}" for file in files
    }
    assert theorem.title
    assert theorem.source
    assert len(theorem.prose.split()) > 20, "a paragraph a student can follow"
    if isinstance(theorem.claim(), Statement):
        assert "=" in theorem.latex()


@pytest.mark.parametrize("theorem", CHECKED, ids=lambda theorem: theorem.name)
def test_it_passes_all_its_checks_on_all_models(theorem: Theorem) -> None:
    report = verify_theorem(theorem, bundled_models())
    found = "\n".join(block(*each) for each in shortcomings(Report((report,))))
    assert report.passed, found
    claim = theorem.claim()
    if isinstance(claim, Statement) and report.mutants is not None:
        made = sum(1 for _ in wrong_claims(claim.lhs, claim.rhs))
        fewer = sum(not isinstance(each, Lemma | Example) for each in claim.given)
        seen = report.mutants
        assert seen.refuted + len(seen.still_true) + seen.ill_shaped == made + fewer


def test_find_names_what_is_near() -> None:
    assert find("kron_mul_kron") is THEOREMS[NAMES.index("kron_mul_kron")]
    from otimes.algebra.errors import OtimesError

    with pytest.raises(OtimesError, match=r"no theorem 'kron_mul'.*kron_mul_kron"):
        find("kron_mul")


def test_a_theorem_is_pickled_by_reference(theorem: Theorem) -> None:
    assert pickle.loads(pickle.dumps(theorem)) is theorem
