"""`assert` in a user's tests: what failed does not pass because it is an object."""

from __future__ import annotations

from pathlib import Path

import pytest
from sympy import MatrixSymbol, Symbol

import otimes as ot

n = Symbol("n", integer=True, positive=True)
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)


@pytest.mark.parametrize("other", [A * B, B * A])
def test_a_verdict_has_no_truth_value(other: MatrixSymbol) -> None:
    verdict = ot.decide(A * B, other)
    with pytest.raises(ot.OtimesError, match=f"{verdict.status}': a verdict has no truth value"):
        assert verdict


def test_names_that_are_typed_at_first() -> None:
    with pytest.raises(AttributeError, match=r"no attribute rank: use \.rank_at_most"):
        ot.facts(A * B).rank  # noqa: B018  # as one may guess
    with pytest.raises(AttributeError, match=r"no attribute proved: use \.status == 'proved'"):
        ot.decide(A, A).proved  # noqa: B018  # as one may guess
    assert not hasattr(ot.decide(A, A), "nonsense")


def test_chains_and_reports_have_that_of_passed(tmp_path: Path) -> None:
    assert ot.check_chain([A * B, A * B])
    assert not ot.check_chain([A * B, B * A])
    assert ot.check_chain([A * B, A]).passed is False
    model = ot.random_model()
    assert ot.audit(model, [1, 2, 3], weights=model)
    assert not ot.audit(model.changed({"W_O": 2 * model.W_O}), [1, 2, 3], weights=model)
    assert ot.verify("kron_mul_kron", quick=True)
    page = tmp_path / "page.md"
    for text, right in (("$(AB)^T = B^T A^T$", True), ("$(AB)^T = A^T B^T$", False)):
        page.write_text(f"A, B are $n \\times n$ matrices: $A, B \\in R^{{n \\times n}}$. {text}")
        assert bool(ot.check_document(page)) is right
