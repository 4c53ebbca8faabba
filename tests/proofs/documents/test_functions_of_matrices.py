# ruff: noqa: E501 (a text is one line here)
"""Letters before brackets, compositions, exponentials and left sides that are no products."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text


def verdicts(text: str) -> list[str]:
    """Return the verdicts on the equations of a text."""
    return [each.verdict for each in check_text(text).equations]


@pytest.mark.parametrize(
    "text",
    [
        r"The condition number of $G$ is squared: $\kappa(G^T G) = \kappa(G)^2$.",
        r"For the spread we have $S[(Y - S[Y])^2] = S[Y^2] - S[Y]^2$.",
        r"A turn by the negative angle: $\mathbf{T}(\phi)^T = \mathbf{T}(-\phi)$.",
        r"We write $H = H(\theta_0)$ for the Hessian here.",
        r"A straight path is $\mathbf{z}(t) = (1 - t) \mathbf{a} + t \mathbf{b}$.",
        r"Let $A \in \mathbb{R}^{n \times n}$. With $P = e^{A t}$ an eigenvector has $P v = e^{\lambda t} v$.",
        r"In both notations, $D_i f = D_{x_i} f$.",
        r"Two linear layers are one linear layer, $M_1 M_2 x = M x$.",
    ],
)
def test_what_may_be_a_function_or_another_symbol_is_not_refuted(text: str) -> None:
    assert not {"refuted", "shape"} & {*verdicts(text)}


def test_a_map_may_have_no_matrix() -> None:
    text = r"Let $u, v \in \mathbb{R}^n$. It is not linear, as $T(u + v) \ne T u + T v$ shows."
    assert verdicts(text)[-1] == "undecided"
    text = (
        r"Let $T \in \mathbb{R}^{n \times n}$, $u, v \in \mathbb{R}^n$. $T(u + v) \ne T u + T v$."
    )
    assert verdicts(text)[-1] == "refuted"


def test_declared_matrices_before_brackets_are_still_multiplied() -> None:
    text = r"Let $M, B, C \in \mathbb{R}^{n \times n}$. Then $M(B + C) = M(B - C)$."
    assert verdicts(text)[-1] == "refuted"


def test_a_ring_composes_maps_or_joins_entries() -> None:
    maps = r"For maps $T_1$, $T_2$ we have $T_1 \circ T_2 = T_2 \circ T_1$."
    assert verdicts(maps) == ["needs-hypothesis"]
    functions = r"With $f(x) = W x$ and $g(x) = V x$ we get $g \circ f = f \circ g$."
    assert "proved" not in verdicts(functions)
    entries = r"The Hadamard product commutes, $A \circ B = B \circ A$."
    assert verdicts(entries) == ["proved"]
    both = r"The Hadamard product is $A \odot B$. Maps have $S \circ T = T \circ S$."
    assert verdicts(both)[-1] == "needs-hypothesis"
    assert verdicts(r"$A \circ (B + C) = A \circ B + A \circ C$") == ["proved"]


def test_an_inner_product_with_a_matrix_is_not_the_usual_one() -> None:
    vectors = r"Let $z \in \mathbb{R}^n$. "
    assert verdicts(vectors + r"$\langle z, z \rangle_M = z^\top z$.")[-1] == "undecided"
    assert verdicts(vectors + r"$\langle z, z \rangle = z^\top z$.")[-1] == "proved"


def test_bars_around_a_matrix_are_its_determinant() -> None:
    text = r"$\begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix} = -2$ and $\begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix} = 2$"
    assert verdicts(text) == ["proved", "refuted"]


def test_a_trace_without_brackets_is_of_the_whole_product() -> None:
    matrices = r"Let $A, B, C \in \mathbb{R}^{n \times n}$. "
    assert verdicts(matrices + r"$\mathrm{tr}\, A B = \mathrm{tr}\, B A$.")[-1] == "proved"
    assert verdicts(matrices + r"$\mathrm{tr} A B C = \mathrm{tr} A C B$.")[-1] == "refuted"
    assert (
        verdicts(matrices + r"$\mathrm{tr} A + \mathrm{tr} B = \mathrm{tr}(A + B)$.")[-1]
        == "proved"
    )
