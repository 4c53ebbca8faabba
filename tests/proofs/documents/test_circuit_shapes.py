"""Products of an embedding and an unembedding that sum over the vocabulary."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SHAPES = (
    r"Let $W_E \in \mathbb{R}^{d \times v}$, $W_U \in \mathbb{R}^{v \times d}$, "
    r"$W_V \in \mathbb{R}^{k \times d}$, $W_O \in \mathbb{R}^{d \times k}$. "
)


@pytest.mark.parametrize(
    ("definition", "verdict"),
    [
        (r"$m = W_E W_U$", "shape"),
        (r"$m = W_U W_E$", "definition"),
        (r"$m = W_V W_E W_U W_O$", "definition"),  # the weights of a head fit in no other order
        (r"$m = W_V W_U W_E W_O$", "shape"),
    ],
)
def test_a_product_sums_over_the_vocabulary_where_it_fits_so_only(
    definition: str, verdict: str
) -> None:
    assert check_text(f"{SHAPES}We set {definition}.").equations[-1].verdict == verdict
