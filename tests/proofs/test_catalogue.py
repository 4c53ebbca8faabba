"""Every theorem of the catalogue: declared in full, and each of its four checks passes."""

import pytest

from algebra.decide import decide
from proofs.catalogue import CHAPTERS, catalogue, find
from proofs.exact import check_exactly
from proofs.mutants import check_mutants, mutants
from proofs.theorem import Theorem

THEOREMS = catalogue()
NAMES = [theorem.name for theorem in THEOREMS]


@pytest.fixture(params=THEOREMS, ids=NAMES)
def theorem(request: pytest.FixtureRequest) -> Theorem:
    return request.param


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
        "replay_by_order",
        "shapley_two_layers",
        "scores_by_composition",
        "qk_six_index",
    }
    assert len(set(NAMES)) == len(NAMES)


def test_a_theorem_says_what_it_is(theorem: Theorem) -> None:
    assert theorem.chapter in CHAPTERS
    assert theorem.title
    assert theorem.source
    assert len(theorem.prose.split()) > 30, "a paragraph a student can follow"
    assert "=" in theorem.latex()
    assert theorem.symbols() or theorem.name == "paths_count"  # which speaks of numbers only


def test_it_is_proved(theorem: Theorem) -> None:
    stated = theorem.statement()
    assert stated.lhs != stated.rhs, "a theorem says something"
    assert decide(stated.lhs, stated.rhs).status == "proved"


def test_it_is_exact(theorem: Theorem) -> None:
    stated = theorem.statement()
    evidence = check_exactly(stated.lhs, stated.rhs)
    assert evidence.passed, evidence.detail
    assert evidence.examples >= 40


def test_its_mutants_are_accounted_for(theorem: Theorem) -> None:
    stated = theorem.statement()
    evidence = check_mutants(stated.lhs, stated.rhs)
    made = sum(1 for _ in mutants(stated.lhs, stated.rhs))
    assert not evidence.escaped
    assert evidence.refuted > evidence.ill_shaped
    assert evidence.refuted + len(evidence.still_true) + evidence.ill_shaped == made


def test_find_names_what_is_near() -> None:
    assert find("kron_mul_kron") is THEOREMS[NAMES.index("kron_mul_kron")]
    from algebra.errors import OtimesError

    with pytest.raises(OtimesError, match=r"no theorem 'kron_mul'.*kron_mul_kron"):
        find("kron_mul")
