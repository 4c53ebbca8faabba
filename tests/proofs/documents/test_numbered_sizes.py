# ruff: noqa: E501 (a text is one line here)
"""Sizes that depend on the index of a symbol, and symbols that a number or label tells apart."""

from __future__ import annotations

from otimes.proofs.documents.check import check_text

LAYERS = r"Let $W^{(l)} \in \mathbb{R}^{d_l \times d_{l-1}}$ and $A^{(l)} \in \mathbb{R}^{d_l \times N}$. "
BELOW = r"Let $W_l \in \mathbb{R}^{n_l \times n_{l-1}}$ and $b_l, x_l \in \mathbb{R}^{n_l}$. "


def last(text: str) -> str:
    """Return the verdict on the last equation of a text."""
    return check_text(text).equations[-1].verdict


def test_a_layer_has_the_sizes_of_its_index() -> None:
    turned = r"$(W^{(l)} A^{(l-1)})^\top = A^{(l-1)\top} W^{(l)\top}$"
    assert last(LAYERS + turned) == "proved"
    assert last(BELOW + r"Then $x_{l+1} = W_{l+1} x_l + b_{l+1}$.") == "definition"
    assert last(LAYERS + r"$W^{(2)} A^{(1)} + W^{(2)} A^{(1)} = 2 W^{(2)} A^{(1)}$") == "proved"


def test_a_layer_of_another_index_does_not_conform() -> None:
    assert last(LAYERS + r"Then $Z = W^{(l)} A^{(l)}$.") == "shape"
    assert last(BELOW + r"Then $y = W_l x_l$.") == "shape"


def test_what_stands_above_weights_tells_them_apart() -> None:
    heads = (
        r"- $W^{q,i} \in \mathbb{R}^{d \times k}$ for queries."
        "\n"
        r"- $W^{o} \in \mathbb{R}^{h \times d}$ for outputs."
        "\n"
        r"- $X \in \mathbb{R}^{n \times d}$."
        "\n\n"
    )
    assert last(heads + r"$Q = X W^{q,i}$") == "definition"
    assert last(heads + r"$X W^{o}$") == "shape"
    numbered = r"Let $X \in \mathbb{R}^{n \times d}$. It is $(X W^1) W^2$, where $W^1 \in \mathbb{R}^{d \times m}$."
    assert "shape" not in [each.verdict for each in check_text(numbered).equations]


def test_the_size_of_a_symbol_in_a_sentence_is_no_symbol() -> None:
    text = r"The number of columns in $A$ equals the number of rows in $B$. Then $A(B + C) = A B + A C$."
    assert last(text) == "proved"
    product = r"The product of an $m \times n$ matrix $A$ and an $n \times p$ matrix $B$ is an $m \times p$ matrix. "
    assert last(product + r"Then $(A B)^\top = B^\top A^\top$.") == "proved"
    assert last(product + r"Then $(A B)^\top = A^\top B^\top$.") == "shape"
