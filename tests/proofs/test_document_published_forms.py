r"""Forms of published notes that were read as something else: `X^t`, `\mu^+`, `1 - p`."""

from __future__ import annotations

from pathlib import Path

import pytest

from otimes.proofs.documents.check import check_document

SIZES = r"Let $W, M \in \mathbb{R}^{d \times k}$ and $X \in \mathbb{R}^{n \times d}$. "
POINTS = r"Let $\mu_i \in \mathbb{R}^d$, $S_i, O_{ij} \in \mathbb{R}^{d \times d}$. "
SQUARES = r"Matrices $A \in \mathbb{R}^{m \times n}$ have a transpose $A^\top$. "

NOT_ACCUSED = {
    "an entry of a glossary": SQUARES + r"**Symmetric** $A = A^\top$; **normal**: $A^2 = A$.",
    "a function that is 1 where": r"With $z \in \mathbb{R}^m$: "
    r"$J = \mathrm{diag}(\mathbb{1}_{z > 0}) \in \mathbb{R}^{m \times m}$.",
    "a function of which nothing is said": r"Then $\sigma'(z) = \sigma(z) \odot (1 - \sigma(z))$.",
    "a residual with two indices": POINTS + r"The residual is $e_{ij} \equiv \mu_i - O_{ij}\mu_j$.",
    "a matrix with one more index": POINTS + r"Then $S_i^{-1} = \frac{1}{2} (S_{p,i}^{-1} + C)$.",
    "the next value of a vector": POINTS + r"Then $\mu_i^+ = 0.25 \mu_i + 0.75 \mu_i^\ast$.",
    "an entry that is called a number": SIZES
    + r"Differentiate each scalar $Y_{ij}$. Let $Y = X \odot X$.",
    "transposes by t": SIZES
    + r"Scores are $S = (X W)(X M)^t$. We write $B = W M^t$, $R = X B X^t$.",
    "an assumption about covariances": r"We assume $\Sigma_i = \Sigma_j = \sigma^2 I$. Then "
    r"$\mathrm{Tr}(\Sigma_j^{-1} \Sigma_i) = \mathrm{Tr}(I)$.",
}


def verdicts(text: str, folder: Path) -> list[str]:
    path = folder / "note.md"
    path.write_text(text)
    return [each.verdict for each in check_document(path).equations]


@pytest.mark.parametrize("text", NOT_ACCUSED.values(), ids=NOT_ACCUSED)
def test_a_form_of_published_notes_is_not_accused(text: str, tmp_path: Path) -> None:
    assert not {*verdicts(text, tmp_path)} & {"refuted", "shape", "unread"}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (SIZES + r"$(X W)(X M)^t = X W M^t X^t$", "proved"),
        (SIZES + r"$(X W)(X M)^t = X M W^t X^t$", "refuted"),
        (SIZES + r"$X \odot (1 - X) = X - X \odot X$", "proved"),
        (SIZES + r"$X \odot (1 - X) = X \odot X - X$", "refuted"),
        (r"Let $\Sigma_i \in \mathbb{R}^{d \times d}$. $\Sigma_i^{-1} \Sigma_i = I$", "proved"),
    ],
)
def test_what_it_states_is_decided(text: str, verdict: str, tmp_path: Path) -> None:
    assert verdicts(text, tmp_path)[-1] == verdict


def test_a_power_t_is_no_transpose_where_t_is_a_step(tmp_path: Path) -> None:
    text = r"After $t$ steps $x_t = (I - \eta H)^t x_0$, and $(A B)^t = B^t A^t$."
    assert "proved" not in verdicts(text, tmp_path)


def test_a_sum_beside_a_recurrence_of_states_with_other_indices_is_judged(tmp_path: Path) -> None:
    text = r"$x^{l+1} = x^l + f(x^l)$, and $s_i = s_0 + \sum_{j=1}^{n} a_j$ for the others."
    assert len(verdicts(text, tmp_path)) == 2


def test_definitions_of_macros_are_no_equations(tmp_path: Path) -> None:
    text = "$$\n\\newcommand{\\Att}{\\mathrm{Att}}\n$$\n\nLet $A \\in \\mathbb{R}^{n \\times n}$."
    assert verdicts(text, tmp_path) == ["definition"]
