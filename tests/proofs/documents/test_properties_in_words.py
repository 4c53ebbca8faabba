"""Definitions that do not have the property that words say of what they define."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SAID = r"""Let $W \in \mathbb{R}^{d \times d}$, $M \in \mathbb{R}^{m \times d}$ and
$u \in \mathbb{R}^d$ with $u^\top u = 1$. """


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        ("Its symmetric part is $S = %s$.", r"\frac12 (W + W^\top)", r"\frac12 (W - W^\top)"),
        ("We set $S = %s$, which is symmetric.", "W + W^\\top", "W - W^\\top"),
        ("Let $A = %s$. It is antisymmetric.", "W - W^\\top", "W + W^\\top"),
        (r"Let $C = %s$ be the $d \times d$ centering matrix. It is idempotent.",
         r"I - \frac1d 1 1^\top", r"I + \frac1d 1 1^\top"),
        (r"We center with $C = %s$, a $d \times d$ projection.",
         r"I - \frac1d 1 1^\top", r"I - 1 1^\top"),
        ("We set $P = %s$, which projects out $u$.", "I - u u^\\top", "I + u u^\\top"),
        (r"With $C = I - \frac1d 1 1^\top$ we set $F = %s$, whose rows sum to zero.",
         "M W C", "M C W"),
    ],
)  # fmt: skip
def test_words_contradict_a_definition(text: str, right: str, wrong: str) -> None:
    assert not [each for each in check_text(SAID + text % right).equations if each.is_wrong]
    (found,) = [each for each in check_text(SAID + text % wrong).equations if each.is_wrong]
    assert (found.tex.endswith(wrong), found.verdict) == (True, "refuted")
    assert "what the words say" in found.why


@pytest.mark.parametrize(
    "text",
    [
        "We set $S = W - W^\\top$, which is not symmetric.",
        "We set $S = W - W^\\top$, which is symmetric only if $W = 0$.",
        "Let $W$ be symmetric. We set $S = W W$, which is symmetric.",
        "We set $H = M W$, a projection of the input.",
        "Let $B \\in \\mathbb{R}^{d \\times d}$. We set $K = W B$, a learned projection.",
        "We set $S = W + W^\\top$. It is positive. Its rows are symmetric in a sense.",
    ],
)
def test_words_that_say_less_contradict_nothing(text: str) -> None:
    assert not [each for each in check_text(SAID + text).equations if each.is_wrong]
