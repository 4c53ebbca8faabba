# ruff: noqa: E501 (a text is one line)
"""Functions of numbers, and conditions that only declare a symbol."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SCORES = r"Let $Q, K \in \mathbb{R}^{N \times k}$ and $T = Q K^\top$. If every query is shifted by the same row $u \in \mathbb{R}^{1 \times k}$, then "
CLAIMS = [
    (r"$\mathrm{ReLU}(a) = \max(0, a)$", "proved"),
    (r"$\mathrm{ReLU}(a) - \mathrm{ReLU}(-a) = a$", "proved"),
    (r"$\mathrm{ReLU}(a) + \mathrm{ReLU}(-a) = a$", "refuted"),
    (r"Let $a \in \mathbb{R}$. $\mathrm{ReLU}(2 a) = 2 \max(a, 0)$", "proved"),
    (r"Let $a \in \mathbb{R}$. $\mathrm{GELU}(a) + \mathrm{GELU}(-a) = a$", "refuted"),
    (r"Let $a \in \mathbb{R}$. $\mathrm{ReLU}(a) + \mathrm{ReLU}(-a) = |a|$", "proved"),
    (r"Let $a \in \mathbb{R}$. $\mathrm{ReLU}(a) - \mathrm{ReLU}(-a) = |a|$", "refuted"),
    (SCORES + r"$(Q + \mathbf{1} u) K^\top = T + \mathbf{1} (K u^\top)^\top$.", "proved"),
    (SCORES + r"$(Q + \mathbf{1} u) K^\top = T + (K u^\top) \mathbf{1}^\top$.", "refuted"),
]  # fmt: skip


INVERTIBLE = r"""Let $P, Q \in \mathbb{R}^{d \times k}$. For any invertible $M \in \mathbb{R}^{k \times k}$
nothing changes, because
\[
  (P M)(M^{-1} Q^\top)
  = P Q^\top ,
\]
and in the same way,
as one sees,
"""


@pytest.mark.parametrize(("text", "verdict"), CLAIMS)
def test_an_equation_of_numbers_has_the_verdict(text: str, verdict: str) -> None:
    assert check_text(text).equations[-1].verdict == verdict


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [(r"$(P M)(Q M^{-\top})^\top = P Q^\top$.", "proved"),
     (r"$(P M)(Q M^{-1})^\top = P Q^\top$.", "refuted")],
)  # fmt: skip
def test_a_declaration_for_a_paragraph_counts_after_its_displays(claim: str, verdict: str) -> None:
    assert check_text(INVERTIBLE + claim).equations[-1].verdict == verdict


def test_an_assumption_that_no_text_makes_excuses_no_product() -> None:
    text = r"Let $P, Q \in \mathbb{R}^{m \times d}$ and let $R \in \mathbb{R}^{d \times d}$ be orthogonal, "
    text += r"$R^\top R = I_d$. Then $P R R Q^\top = P Q^\top$."
    last = check_text(text).equations[-1]
    assert last.verdict == "refuted"
    assert "given R^{T} R = I_{d}" in last.why


GRIDS = (
    r"Let $X \in \mathbb{R}^{n \times d}$ and $w \in \mathbb{R}^{d \times k}$. Take "
    r"$X = \begin{bmatrix} 1 & 2 \\ 0 & 1 \end{bmatrix}$, $w = \begin{bmatrix} 1 \\ 1 \end{bmatrix}$"
    r" and $v = \begin{bmatrix} 1 & 2 \end{bmatrix}$. "
)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"X w = \begin{bmatrix} 3 \\ 1 \end{bmatrix}", "proved"),
        (r"w X = \begin{bmatrix} 3 \\ 1 \end{bmatrix}", "shape"),
        ("v w = 3", "proved"),
        ("w v = 3", "shape"),
    ],
)
def test_numbers_conform_or_not_whatever_sizes_are_declared(claim: str, verdict: str) -> None:
    found = check_text(f"{GRIDS} Then ${claim}$.").equations[-1]
    assert found.verdict == verdict, found.why


def test_the_square_of_a_size_is_a_number() -> None:
    text = r"Let $e \in \mathbb{R}^d$ be the column of ones. Then $e e^\top e e^\top = d^2 e e$."
    assert check_text(text).equations[-1].verdict == "shape"


def test_a_capital_up_to_which_a_sum_runs_is_a_number_below_a_fraction() -> None:
    text = r"""Let $x_1, \dots, x_N \in \mathbb{R}^d$ have the mean $\mu = \frac1N \sum_{i=1}^N x_i$ and the covariance
$\Sigma = \frac1N \sum_{i=1}^N (x_i - \mu)(x_i - \mu)^\top$. Then $\Sigma = \frac1N \sum_{i=1}^N x_i x_i^\top - \mu \mu^\top$."""
    assert check_text(text).equations[-1].verdict == "proved"


def test_what_is_computed_in_numbers_follows_from_these() -> None:
    text = r"Let $A = \begin{pmatrix} 2 & 0 \\ 1 & 1 \end{pmatrix}$ and $x = \begin{pmatrix} 1 \\ 3 \end{pmatrix}$. We get $A x = \begin{pmatrix} 2 \\ 3 \end{pmatrix}$."
    assert check_text(text).equations[-1].verdict == "refuted"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (r"$\rho = \sqrt{x^\top x / d}$ and $y = \frac{1}{\rho} x$, so $\|y\|^2 = d$", "proved"),
        (r"$\rho = \sqrt{x^\top x}$ and $y = \frac{1}{\rho} x$, so $\|y\|^2 = d$", "refuted"),
        (r"$\rho^2 = x^\top x$ and $y = \frac{1}{\rho} x$, so $\|y\|^2 = d$", "refuted"),
        (r"$r = \frac{1}{\sqrt{d}} \|x\|$ and $y = \frac{1}{r} x$. Then $\|y\| = \sqrt{d}$", "undecided"),
        (r"$r = \|x\|$ and $y = x / r$. Then $\|y\|^2 = 1$", "needs-hypothesis"),
        (r"$\|x\|^2 = d$", "definition"),
    ],
)  # fmt: skip
def test_a_norm_that_is_a_size_is_a_claim_about_its_vector(text: str, verdict: str) -> None:
    found = check_text(rf"Let $x \in \mathbb{{R}}^{{d \times 1}}$. Let {text}.").equations[-1]
    assert found.verdict == verdict, found.why


LISTS = r"Let $W_V = (1, 2, 0)^\top$ and $W_O = (3, -1, 4)$. Then "


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"W_O W_V = 3 \cdot 1 + (-1) \cdot 2 + 4 \cdot 0", "proved"),
        ("W_O W_V = 2", "refuted"),
        (
            r"W_V W_O = \begin{pmatrix} 3 & -1 & 4 \\ 6 & -2 & 8 \\ 0 & 0 & 0 \end{pmatrix}",
            "proved",
        ),
        (
            r"W_V W_O = \begin{pmatrix} 3 & -1 & 4 \\ 6 & -2 & 4 \\ 0 & 0 & 0 \end{pmatrix}",
            "refuted",
        ),
    ],
)
def test_a_list_is_a_row_where_only_a_row_conforms(claim: str, verdict: str) -> None:
    assert check_text(LISTS + f"${claim}$.").equations[-1].verdict == verdict


def test_what_a_product_was_computed_as_counts_in_its_section() -> None:
    text = r"""Let $W_{OV} = W_V W_O$ with $W_V \in \mathbb{R}^{d \times k}$ and
    $W_O \in \mathbb{R}^{k \times d}$.

    ## Numbers

    """
    text = text.replace("    ", "") + LISTS
    text += r"$W_{OV} = \begin{pmatrix} 3 & -1 & 4 \\ 6 & -2 & 8 \\ 0 & 0 & 0 \end{pmatrix}$ and "
    for claim, verdict in ((r"\mathrm{tr}(W_{OV}) = 3 - 2", "proved"), ("W_{OV}^2 = 0", "refuted")):
        found = check_text(text + f"${claim}$.").equations
        assert [each.verdict for each in found[-2:]] == ["proved", verdict]
