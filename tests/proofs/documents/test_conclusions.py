"""What a text concludes by “then” from equations: false under these, or left alone."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SHAPES = (
    r"Let $A, B, C, W \in \mathbb{R}^{n \times n}$, $X \in \mathbb{R}^{n \times d}$ and "
    r"$U, V \in \mathbb{R}^{n \times r}$."
)
FALSE = [
    r"Assume that $U^\top U = I$. Then $$U U^\top = I.$$",
    r"Suppose $W^\top C W = I$ with $C = C^\top$. Hence $W^\top W = I$.",
    r"Suppose that $A B = 0$. It follows that $B A = 0$.",
    r"Assume $U^\top U = I$ and $V^\top V = I$. Therefore $U^\top V = I$.",
    r"Let $A^2 = 0$ and $B^2 = 0$. Then $(A + B)^2 = 0$.",
    r"Assume $A \mathbf{1} = \mathbf{1}$. Then $\mathbf{1}^\top A = \mathbf{1}^\top$.",
]
RIGHT = [
    r"Assume that $U^\top U = I$. We also assume $U U^\top = I$.",
    r"Assume that $U^\top U = I$ and that $U$ is square. Then $U U^\top = I$.",
    r"Assume that $U^\top U = I$. Then $U U^\top = I$ whenever $n = r$.",
    r"Assume that $U^\top U = I$. In the square case, then $U U^\top = I$.",
    r"Suppose that $A B = 0$ with symmetric $A$ and $B$. Then $B A = 0$.",
    r"Suppose that $A B = 0$, $A = A^\top$ and $B = B^\top$. Then $B A = 0$.",
    r"Assume $W^\top W = I$. Then $W W^\top = I$.",
    r"Assume $A^2 = 0$, $B^2 = 0$ and $A B = - B A$. Then $(A + B)^2 = 0$.",
    r"Let $A \mathbf{1} = \mathbf{1}$, $A$ symmetric. Then $\mathbf{1}^\top A = \mathbf{1}^\top$.",
    r"Choose $U$ so that $U^\top U = I$, and $r \ge n$. Then $U U^\top = I$.",
    "The matrices $A$ and $B$ commute.\n\nAssume $A B = 0$. Then $B A = 0$.",
]


@pytest.mark.parametrize("text", FALSE)
def test_a_false_conclusion_is_refuted(text: str) -> None:
    last = check_text(f"{SHAPES}\n\n{text}\n").equations[-1]
    assert last.verdict == "refuted"


@pytest.mark.parametrize("text", RIGHT)
def test_what_may_be_right_is_not_accused(text: str) -> None:
    found = check_text(f"{SHAPES}\n\n{text}\n").equations
    assert not [each for each in found if each.verdict in ("refuted", "shape")]


def test_a_second_statement_of_a_definition_conforms() -> None:
    said = (
        r"Let $W_E \in \mathbb{R}^{d \times v}$, $W_U \in \mathbb{R}^{v \times d}$ and "
        r"$W = W_O W_V$ with $W_V \in \mathbb{R}^{k \times d}$, $W_O \in \mathbb{R}^{d \times k}$."
        "\n\n"
        r"The model is $T = (I \otimes W_U)(I \otimes I + A \otimes W)(I \otimes W_E)$, "
        r"and multiplying out gives $T = I \otimes W_U W_E + A \otimes W_U W%s$."
    )
    verdicts = [check_text(said % last).equations[-1].verdict for last in (" W_E", "")]
    assert verdicts == ["proved", "shape"]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (r"so that $\sum_i A_{ij} = 1$.", "refuted"),
        (r"so that $\sum_j A_{ij} = 1$.", "proved"),
        ("as usual.\n\nHence $\\sum_i A_{ij} = 1$.", "refuted"),
        (r"as usual. We choose $S$ so that $\sum_i A_{ij} = 1$.", "needs-hypothesis"),
        (r"as usual. If also $\sum_i A_{ij} = 1$, it is doubly stochastic.", "definition"),
    ],
)
def test_a_conclusion_from_a_definition_assumes_nothing(text: str, verdict: str) -> None:
    said = r"Let $S \in \mathbb{R}^{n \times n}$. The pattern is $A = \mathrm{softmax}(S)$, "
    assert check_text(said + text).equations[-1].verdict == verdict


def test_factors_that_would_be_the_identity_are_asked_for() -> None:
    said = r"Let $A$ be $m \times n$, $U$ be $m \times m$ and $V$ be $n \times n$. "
    found = check_text(said + r"In action: $2 A = 2 U U^\top A V V^\top$.").equations[-1]
    assert (found.verdict, found.why.count("= I")) == ("needs-hypothesis", 2)
