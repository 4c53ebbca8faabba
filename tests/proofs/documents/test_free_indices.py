"""Hypotheses with free indices, which are used for all values of these."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

M = r"Let $M_i, N \in \mathbb{R}^{d \times d}$. "
W = r"Let $W^l \in \mathbb{R}^{d \times d}$. "
HEADS = r"Let $A^h \in \mathbb{R}^{n \times n}$, $M^h \in \mathbb{R}^{d \times d}$. "
CIRCUITS = r"Let $A^h \in \mathbb{R}^{n \times n}$, $W_{OV}^h \in \mathbb{R}^{d \times d}$. "


@pytest.mark.parametrize(
    ("said", "given", "claim"),
    [
        (M, "M_i = B_i C_i", r"\sum_i M_i M_j = \sum_i M_j M_i"),
        (M, "M_i = c_i I", r"\sum_i M_i M_i = \sum_i M_i M_j"),
        (M, "M_i N = P_{i-1}", r"\sum_i M_i N M_j N = \sum_i M_i N M_i N"),
        (W, "W^{l+1} = U W^l", r"\sum_l U W^l W^l = \sum_l U W^k W^l"),
        (HEADS, "M^h = B^h C^h", r"\sum_g \sum_h A^h A^g \otimes (M^h M^g - M^g M^h) = 0"),
        (
            CIRCUITS,
            "W_{OV}^h = W_V^h W_O^h",
            r"\sum_g \sum_h A^h A^g \otimes (W_{OV}^h W_{OV}^g - W_{OV}^g W_{OV}^h) = 0",
        ),
    ],
)
def test_no_symbol_is_the_same_for_all_values_of_its_index(
    said: str, given: str, claim: str
) -> None:
    last = check_text(f"{said}<!-- otimes: given: {given} --> Then ${claim}$.").equations[-1]
    assert last.verdict not in ("proved", "needs-hypothesis"), last.why


@pytest.mark.parametrize(
    ("given", "claim"),
    [
        ("M_i = c_i I", r"\sum_i M_i N = \sum_i c_i N"),
        ("M_i N = P_i", r"\sum_i M_i N = \sum_i P_i"),
        ("M_i = B_i C_i", r"\sum_i M_i N M_j = \sum_i B_i C_i N B_j C_j"),
    ],
)
def test_what_has_the_index_of_a_member_is_a_member(given: str, claim: str) -> None:
    last = check_text(f"{M}<!-- otimes: given: {given} --> Then ${claim}$.").equations[-1]
    assert last.verdict == "proved", last.why


def test_the_expansion_of_two_layers_with_two_factors_swapped_is_refuted() -> None:
    claim = (
        r"$(I + \sum_h A^h \otimes W_{OV}^h)(I + \sum_g A^g \otimes W_{OV}^g) = I + \sum_g A^g "
        r"\otimes W_{OV}^g + \sum_h A^h \otimes W_{OV}^h + \sum_g \sum_h A^h A^g \otimes "
    )
    right = check_text(f"{CIRCUITS}{claim}W_{{OV}}^h W_{{OV}}^g$.").equations[-1]
    wrong = check_text(f"{CIRCUITS}{claim}W_{{OV}}^g W_{{OV}}^h$.").equations[-1]
    assert (right.verdict, wrong.verdict) == ("proved", "refuted"), wrong.why
