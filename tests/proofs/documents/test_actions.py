r"""`A ⊗ W` on a matrix of states: texts with rows, with columns and with weights on the right."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

ROWS = r"""
| symbol | size |
|---|---|
| $x$ | $n \times d$ |
| $A$, $B$ | $n \times n$ |
| $W_V$, $V_2$ | $k \times d$ |
| $W_O$, $O_2$ | $d \times k$ |
| $W_U$ | $m \times d$ |
| $W_E$ | $d \times m$ |
| $t$ | $n \times m$ |

+ (A \otimes W_O W_V) x = A x (W_O W_V)^T
+ h(x) = (\mathrm{Id} \otimes W_O)(A \otimes \mathrm{Id})(\mathrm{Id} \otimes W_V) x
+ h(x) = (A \otimes W_O W_V) x
- h(x) = A x W_O^T W_V^T
+ (B \otimes O_2 V_2)(A \otimes W_O W_V) x = B A x W_V^T W_O^T V_2^T O_2^T
- (B \otimes O_2 V_2)(A \otimes W_O W_V) x = (A B \otimes O_2 V_2 W_O W_V) x
+ (I \otimes W_U)(A \otimes W_O W_V)(I \otimes W_E) t = A t (W_U W_O W_V W_E)^T
- (I \otimes W_U)(A \otimes W_O W_V)(I \otimes W_E) t = A t W_U^T W_O^T W_V^T W_E^T
- (W_O W_V \otimes A) x = A x (W_O W_V)^T
- (I + A \otimes W_O W_V) x = x + A x W_O W_V
"""

COLUMNS = r"""
Sizes: $X \in \mathbb{R}^{d \times n}$, $A, P \in \mathbb{R}^{n \times n}$,
$W, M \in \mathbb{R}^{d \times d}$, $u \in \mathbb{R}^{r \times d}$.

+ (A \otimes W) X = W X A^\top
- (A \otimes W) X = A X W^\top
+ (P \otimes M)(A \otimes W) X = M W X A^\top P^\top
- (P \otimes M)(A \otimes W) X = M W X P^\top A^\top
+ (\mathrm{Id} \otimes W) X = W X
- (A \otimes \mathrm{Id}) X = X A
+ (A \otimes W)^\top X = W^\top X A
- (A \otimes W + P \otimes M) X = W X A^\top + M X P
+ (\mathrm{Id} \otimes u)(A \otimes W) X = u W X A^\top
- (\mathrm{Id} \otimes u)(A \otimes W) X = W u X A^\top
"""

SUMS = r"""
Sizes: $T \in \mathbb{R}^{N \times V}$, $X^0, X^1 \in \mathbb{R}^{N \times D}$,
$A^g, A^h \in \mathbb{R}^{N \times N}$,
$W_E \in \mathbb{R}^{D \times V}$, $W_U \in \mathbb{R}^{V \times D}$,
$M^g, M^h \in \mathbb{R}^{D \times D}$.

+ X^0 = (\mathrm{Id} \otimes W_E) T
+ X^0 = T W_E^\top
+ X^1 = X^0 + \sum_h (A^h \otimes M^h) X^0
+ X^1 = X^0 + \sum_h A^h X^0 (M^h)^\top
- X^1 = X^0 + \sum_h A^h X^0 M^h
+ (I \otimes W_U) X^1 = (I \otimes W_U W_E) T + \sum_h (A^h \otimes W_U M^h W_E) T
- (I \otimes W_U) X^1 = (I \otimes W_U W_E) T + \sum_h (A^h \otimes W_E M^h W_U) T
- (A^g \otimes M^g)(A^h \otimes M^h) X^0 = A^g A^h X^0 (M^g)^\top (M^h)^\top
+ H = A^h \otimes M^h
+ H X^0 = A^h X^0 (M^h)^\top
"""

ON_THE_RIGHT = r"""
Let $x \in \mathbb{R}^{n \times d}$, $A, B \in \mathbb{R}^{n \times n}$,
$W_V, V \in \mathbb{R}^{d \times k}$ and
$W_O, O \in \mathbb{R}^{k \times d}$.

+ (A \otimes W_V W_O) x = A x W_V W_O
+ (\mathrm{Id} \otimes W_V) x = x W_V
+ (B \otimes V O)(A \otimes W_V W_O) x = B A x W_V W_O V O
- (B \otimes V O)(A \otimes W_V W_O) x = B A x V O W_V W_O
"""


TEXTS = {"rows": ROWS, "columns": COLUMNS, "sums": SUMS, "on the right": ON_THE_RIGHT}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_right_equations_are_proved_and_wrong_ones_found(text: str) -> None:
    said, *claims = text.strip().replace("\n- ", "\n+ - ").split("\n+ ")
    document = "\n\n".join([said, *(f"$${claim.removeprefix('- ')}$$" for claim in claims)])
    found = check_text(document).equations[-len(claims) :]
    for claim, each in zip(claims, found, strict=True):
        wrong = claim.startswith("- ")
        assert each.verdict in (("refuted", "shape") if wrong else ("proved", "definition")), claim


def test_a_single_use_does_not_say_on_which_side_weights_stand() -> None:
    said = (
        r"Let $x \in \mathbb{R}^{n \times d}$, $A \in \mathbb{R}^{n \times n}$ and "
        r"$W \in \mathbb{R}^{d \times d}$."
    )
    (found,) = check_text(rf"{said} Then $(A \otimes W) x = A x W$.").equations[3:]
    assert found.verdict == "needs-hypothesis"
    used = rf"{said} A head is $(A \otimes W) x = A x W^\top$, and not"
    found = check_text(rf"{used} otherwise. Then $(A \otimes W) x = A x W$.").equations[-1]
    assert found.verdict == "refuted"
