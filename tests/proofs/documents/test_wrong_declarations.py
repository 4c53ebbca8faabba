"""A declaration is called wrong where one edit of it makes all equations with its symbol right."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

LORA = r"""Let $X$ be $n \times d$ and $W \in \mathbb{R}^{d \times m}$.

Two thin matrices are $A \in \mathbb{R}^{r \times d}$ and $B \in \mathbb{R}^{m \times r}$:

$$W' = W + A B.$$

The layer computes $X W' = X W + X A B$."""
CENTRED = r"""Let $X \in \mathbb{R}^{d \times n}$.

Let $C = I - \frac{1}{d} \mathbf{1}\mathbf{1}^\top$ be the
$n \times n$ centering matrix. Then $C^\top = C$ and

$$C \mathbf{1} = 0.$$

For $d = 2$ it is $C = \begin{bmatrix} 1/2 & -1/2 \\ -1/2 & 1/2 \end{bmatrix}$."""
HEAD = r"""Let $X \in \mathbb{R}^{n \times d}$ and $A \in \mathbb{R}^{n \times n}$.

The weights are $W_V \in \mathbb{R}^{d \times k}$ and $W_O \in \mathbb{R}^{d \times k}$.

$$Y = X + A X W_V W_O$$

$$(I + A) X W_V W_O = X W_V W_O + A X W_V W_O$$"""


RIGHT = LORA.replace(r"\mathbb{R}^{r \times d}", r"\mathbb{R}^{d \times r}")
CASES = [
    (LORA, [(3, "A"), (3, "B")]),
    (RIGHT, [(3, "B")]),
    (RIGHT.replace(r"{m \times r}", r"{r \times m}"), []),
    (CENTRED, [(4, "C")]),
    (CENTRED.replace(r"n \times n", r"d \times d"), []),
    (HEAD, [(3, "W_O")]),
    (HEAD.replace(r"$$Y = X + A X W_V W_O$$", ""), [(3, "W_O")]),
    (HEAD.replace(r"W_O \in \mathbb{R}^{d \times k}", r"W_O \in \mathbb{R}^{k \times d}"), []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_declaration_that_all_equations_contradict_is_called_wrong(
    text: str, expected: list[tuple[int, str]]
) -> None:
    found = [each for each in check_text(text).equations if each.verdict == "shape"]
    declared = [each for each in found if each.why.startswith("the shape declared for")]
    assert [(each.line, each.why.split()[4]) for each in declared] == expected
