"""Softmax that a text writes by entries, as a quotient of exponentials."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SCORES = r"Let $S \in \mathbb{R}^{n \times n}$ and $A = \mathrm{softmax}(S)$%s. Then "
ROWS = ", where the softmax is applied to each row"


@pytest.mark.parametrize(
    ("said", "claim", "verdict"),
    [
        (ROWS, r"A_{ij} = \frac{\exp(S_{ij})}{\sum_{k=1}^{n} \exp(S_{ik})}", "proved"),
        (ROWS, r"A_{ij} = \frac{e^{S_{ij}}}{\sum_k e^{S_{ik}}}", "proved"),
        (ROWS, r"A_{ij} = e^{S_{ij}} / \sum_k e^{S_{ik}}", "proved"),
        (ROWS, r"A_{ij} = \frac{\exp(S_{ij})}{\sum_{k=1}^{n} \exp(S_{kj})}", "refuted"),
        ("", r"A_{ij} = \frac{\exp(S_{ij})}{\sum_{k=1}^{n} \exp(S_{kj})}", "needs-hypothesis"),
        ("", r"A_{ij} = \frac{\exp(S_{ji})}{\sum_{k=1}^{n} \exp(S_{jk})}", "refuted"),
        ("", r"A_{ij} = \frac{\exp(-S_{ij})}{\sum_{k=1}^{n} \exp(S_{ik})}", "refuted"),
        ("", r"A_{ij} = \frac{\exp(2 S_{ij})}{\sum_{k=1}^{n} \exp(2 S_{ik})}", "refuted"),
        ("", r"A_{ij} = \frac{\exp(S_{ij} - S_{i1})}{\sum_k \exp(S_{ik} - S_{i1})}", "definition"),
        # Of the causal mask nothing is said.
        ("", r"A_{ij} = \frac{\exp(S_{ij})}{\sum_{k \le i} \exp(S_{ik})}", "definition"),
        ("", r"\mathrm{softmax}(S)_{ij} = \frac{\exp(S_{ij})}{\sum_k \exp(S_{ik})}", "proved"),
    ],
)
def test_a_pattern_by_entries(said: str, claim: str, verdict: str) -> None:
    last = check_text(f"{SCORES % said}${claim}$.").equations[-1]
    assert last.verdict == verdict, last.why


def test_a_pattern_that_is_defined_by_entries_is_a_softmax() -> None:
    text = (
        r"Let $S \in \mathbb{R}^{n \times n}$ and $$A_{ij} = \frac{\exp(S_{ij} / \sqrt{d})}"
        r"{\sum_{k=1}^{n} \exp(S_{ik} / \sqrt{d})}.$$ Then $A \mathbf{1} = \mathbf{1}$, but "
        r"$\mathbf{1}^\top A = \mathbf{1}^\top$."
    )
    found = check_text(text).equations[1:]
    assert [each.verdict for each in found] == ["definition", "proved", "needs-hypothesis"]


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"$p_i = \frac{e^{z_i}}{\sum_{j=1}^n e^{z_j}}$", "proved"),
        (r"$p_i = \frac{e^{z_i}}{\sum_{j=1}^n e^{-z_j}}$", "refuted"),
        (r"$\sum_i p_i = 1$", "proved"),
        (r"$\sum_{i=1}^n p_i = 2$", "refuted"),
        (r"$\sum_i \mathrm{softmax}(z)_i = 1$", "proved"),
        (r"If $z = 0$, $p_i = \frac{e^{z_i}}{\sum_{j=1}^n e^{-z_j}}$", "undecided"),
    ],
)
def test_a_distribution_by_entries(claim: str, verdict: str) -> None:
    text = r"Let $z \in \mathbb{R}^n$ and $p = \mathrm{softmax}(z)$. "
    last = check_text(f"{text}{claim}.").equations[-1]
    assert last.verdict == verdict, last.why
