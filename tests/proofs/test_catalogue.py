"""Every theorem of the catalogue: declared in full, and all its checks pass."""

import pytest

from proofs.catalogue import CHAPTERS, catalogue, find
from proofs.checks import check
from proofs.claims import Lemma, Statement
from proofs.evidence import FALLEN_SHORT
from proofs.mutants import mutants
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
    if isinstance(theorem.claim(), Statement):
        assert "=" in theorem.latex()
        assert theorem.symbols() or theorem.name == "paths_count"  # which speaks of numbers only


def test_its_checks_pass_without_a_model(theorem: Theorem) -> None:
    found = check(theorem, ())
    assert found.proof.status not in FALLEN_SHORT, found.proof.detail
    assert found.exact is None or found.exact.passed, found.exact.detail
    assert found.mutants is None or found.mutants.passed, found.mutants.escaped
    assert [each for each in found.more if not each.passed] == []
    stated = theorem.claim()
    if isinstance(stated, Statement) and found.mutants is not None:
        made = sum(1 for _ in mutants(stated.lhs, stated.rhs))
        lost = sum(not isinstance(each, Lemma) for each in stated.given)
        seen = found.mutants
        assert seen.refuted + len(seen.still_true) + seen.ill_shaped == made + lost


def test_find_names_what_is_near() -> None:
    assert find("kron_mul_kron") is THEOREMS[NAMES.index("kron_mul_kron")]
    from algebra.errors import OtimesError

    with pytest.raises(OtimesError, match=r"no theorem 'kron_mul'.*kron_mul_kron"):
        find("kron_mul")
