r"""States of all positions under one small letter, `x \in ℝ^{nd}` or `ℝ^{n × d}`, and one `x_i`."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

WEIGHTS = r"Let $A \in \mathbb{R}^{n \times n}$ and $N, M \in \mathbb{R}^{d \times d}$."


@pytest.mark.parametrize("space", [r"\mathbb{R}^{n d}", r"\mathbb{R}^{n \times d}"])
def test_a_state_is_not_as_large_as_all(space: str) -> None:
    said = rf"{WEIGHTS} An activation $x \in {space}$ has a state for each token."
    right = r"$x_i^\top N M x_{j-1} = (N^\top x_i)^\top M x_{j-1}$"
    wrong = r"$x_i^\top N M x_j = x_i^\top M N x_j$"
    found = check_text(f"{said} The score is $x_i^\\top N x_j$. Then {right}, and {wrong}.")
    assert [each.verdict for each in found.equations[-2:]] == ["proved", "refuted"]
    assert sum(each.is_wrong for each in found.equations) == 1


def test_a_tensor_product_may_act_on_a_matrix() -> None:
    said = rf"{WEIGHTS} An activation is $x \in \mathbb{{R}}^{{n \times d}}$."
    for claim in (r"(A \otimes N) x = A x N^\top", r"(A A \otimes N M) x = A A x M^\top N^\top"):
        assert not any(e.is_wrong for e in check_text(f"{said} Then ${claim}$.").equations)


def test_a_size_is_one_beside_rows_of_the_same_letter() -> None:
    text = (
        r"Let $Q, K \in \mathbb{R}^{n \times k}$. It costs $n k^2$ instead of $n^2 k$. With rows "
        r"$q_i, k_i \in \mathbb{R}^{1 \times k}$, $q_i k_j^\top = k_j q_i^\top$."
    )
    found = check_text(text).equations
    assert not any(each.is_wrong for each in found)
    assert found[-1].verdict == "proved"


def test_what_is_wanted_defines_nothing() -> None:
    text = (
        r"Let $W, V \in \mathbb{R}^{m \times d}$, $C \in \mathbb{R}^{m \times m}$ and "
        r"$k, u \in \mathbb{R}^{1 \times m}$. We want $k_* \widehat{W} = v_*$ with "
        r"$k_* \in \mathbb{R}^{1 \times m}$, $v_* \in \mathbb{R}^{1 \times d}$. Let "
        r"$\lambda = v_* - k_* W$. Then $$\widehat{W} = W + u^\top \lambda .$$"
    )
    assert not any(each.is_wrong for each in check_text(text).equations)


def test_a_state_and_all_of_them_are_related() -> None:
    text = (
        r"An activation is $x \in \mathbb{R}^{n \times d}$, and $P \in \mathbb{R}^{n \times n}$ is "
        r"the shift. As $x_i$ is a row of $x$ written as a column, $(P x)_{i,:} = x_{i-1}^\top$."
    )
    assert not check_text(text).equations[-1].is_wrong
