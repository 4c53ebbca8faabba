"""Replacements in words, and the equation after them that says what they leave unchanged."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SAID = (
    r"Let $W_Q, W_K, W_V \in \mathbb{R}^{d \times k}$, $W_O \in \mathbb{R}^{k \times d}$ and let "
    r"$R \in \mathbb{R}^{k \times k}$ be invertible. Set $W_{QK} = W_Q W_K^\top$. "
)
KEYS = r"Then $(W_Q R)(W_K R^{-\top})^\top = W_Q R R^{-1} W_K^\top = W_{QK}$."
VALUES = r"changes nothing: $W_V R R^{-1} W_O = W_V W_O$."
WORDS = [
    (r"Replace $W_Q$ by $W_Q R$ and $W_K$ by $W_K R^{%s}$. " + KEYS, r"-\top", "-1"),
    (r"Replacing $W_V$ by $W_V R$ and $W_O$ by $R^{%s} W_O$ " + VALUES, "-1", r"-\top"),
    (r"The map $(W_Q, W_K) \mapsto (W_Q R, W_K R^{%s})$ is one. " + KEYS, r"-\top", "-1"),
    (r"The change $W_V \to W_V R$, $W_O \to %s$ " + VALUES, "R^{-1} W_O", "W_O R^{-1}"),
    (r"The change $W_O \to R^{-1} W_O$, $W_V \to %s$ " + VALUES, "W_V R", "R W_V"),
]


@pytest.mark.parametrize(("words", "true", "false"), WORDS)
def test_words_replace_what_the_equation_replaces(words: str, true: str, false: str) -> None:
    right, wrong = (check_text(SAID + words % each).equations for each in (true, false))
    assert not [each for each in right if each.verdict in ("refuted", "shape")]
    (found,) = (each for each in wrong if each.verdict in ("refuted", "shape"))
    assert false in found.tex
    assert found.suggestion


@pytest.mark.parametrize(
    "words",
    [
        r"It is tempting to replace $W_Q$ by $W_Q R$ and $W_K$ by $W_K R^{-1}$. ",
        r"If we replace $W_Q$ by $W_Q R$, then $W_K$ must become $W_K R^{-1}$ or another one. ",
        r"Replace $W_Q$ by $W_Q R$. ",  # the equation is about more
    ],
)
def test_words_of_another_replacement_are_not_accused(words: str) -> None:
    found = check_text(SAID + words + KEYS).equations
    assert not [each for each in found if each.verdict in ("refuted", "shape")]
