# ruff: noqa: E501 (a document is one line of a table here)
"""Slices, axes, recurrences and tables of symbols in documents, and correct equations not accused."""

from __future__ import annotations

import numpy as np
import pytest

from otimes.proofs.documents.check import check_document, check_text

HEAD = "$M \\in \\mathbb{R}^{p \\times q}$, $N \\in \\mathbb{R}^{q \\times r}$, $S \\in \\mathbb{R}^{p \\times p}$.\n\n"
# A claim in LaTeX, and its sides in NumPy, with i = 1 and j = 2 counted from 0.
SLICES = [
    ("(M N)_{:,j} = M N_{:,j}", "(M @ N)[:, 2]", "M @ N[:, 2]"),
    ("(M N)_{i,:} = M_{i,:} N", "(M @ N)[1]", "M[1] @ N"),
    ("(M N)_{ij} = M_{i,:} N_{:,j}", "(M @ N)[1, 2]", "M[1] @ N[:, 2]"),
    (r"M N = \sum_{k=1}^q M_{:,k} N_{k,:}", "M @ N", "sum(np.outer(M[:, k], N[k]) for k in range(4))"),
    (r"M_{i,\cdot} N = (N^\top (M_{i,\cdot})^\top)^\top", "M[1] @ N", "N.T @ M[1]"),
    (r"(M^\top)_{:,i} = (M_{i,:})^\top", "M.T[:, 1]", "M[1]"),
    ("(S M)_{i,:} = S_{:,i}^\\top M", "(S @ M)[1]", "S[:, 1] @ M"),
    ("(S M)_{i,:} = S_{i,:} M_{i,:}", "(S @ M)[1]", "S[1] * M[1]"),
    ("(S M)_{i,:} = S_{:,i} M", "(S @ M)[1]", "S[:, 1] @ M"),
    ("(S S)_{:,j} = S_{:,j} S_{j,:}", "(S @ S)[:, 2]", "S[:, 2]"),
    ("(M N)[:, :k] = M N[:, :k]", "(M @ N)[:, :2]", "M @ N[:, :2]"),
    ("(S M)[:k, :] = S[:k, :] M", "(S @ M)[:2]", "S[:2] @ M"),
]  # fmt: skip


def found(text: str) -> list[str]:
    return [each.verdict for each in check_text(text).equations]


def is_equal(left: str, right: str) -> bool:
    """Return whether the sides have one shape and are equal at random numbers."""
    draw = np.random.default_rng(0).integers
    arrays = {"M": draw(1, 9, (5, 4)), "N": draw(1, 9, (4, 3)), "S": draw(1, 9, (5, 5))}
    try:
        a, b = (eval(side, {"np": np, **arrays}) for side in (left, right))
    except ValueError:
        return False
    return np.shape(a) == np.shape(b) and bool((a == b).all())


@pytest.mark.parametrize(("claim", "left", "right"), SLICES)
def test_slices_are_as_numpy_has_them(claim: str, left: str, right: str) -> None:
    verdict = found(f"{HEAD}${claim}$")[-1]
    assert verdict == "proved" if is_equal(left, right) else verdict in ("refuted", "shape")


@pytest.mark.parametrize(
    "claim",
    [
        "$x_i \\in \\mathbb{R}^q$. $x_i = M_{i,:}$.",  # an array of one axis has no direction
        "$s_{ij} = M_{i,:}^\\top M_{j,:}$.",
        "$y = X_{i,:}$, $y \\in \\mathbb{R}^q$.",
        "$(M N)[:, :k] = M N[:, :k]^\\top$ may be anything: $V[:, :k] = U[:, :k]$.",
    ],
)
def test_slices_whose_direction_is_open_are_not_accused(claim: str) -> None:
    assert "refuted" not in found(HEAD + claim.replace("^\\top$ may", "$ may"))
    assert "shape" not in found(HEAD + claim.replace("^\\top$ may", "$ may"))


@pytest.mark.parametrize(
    ("softmax", "verdict"),
    [
        ("\\mathrm{softmax}(S + c \\mathbf{1}^\\top, \\mathrm{axis}=-1) = \\mathrm{softmax}(S, \\mathrm{axis}=-1)", "proved"),
        ("\\mathrm{softmax}(S + c \\mathbf{1}^\\top, \\mathrm{axis}=0) = \\mathrm{softmax}(S, \\mathrm{axis}=0)", "refuted"),
        ("\\mathrm{softmax}_{\\mathrm{dim}=0}(S + \\mathbf{1} c^\\top) = \\mathrm{softmax}_{\\mathrm{dim}=0}(S)", "proved"),
        ("\\mathrm{softmax}(S + c \\mathbf{1}^\\top, \\mathrm{dim}=2) = \\mathrm{softmax}(S, \\mathrm{dim}=2)", "undecided"),
    ],
)  # fmt: skip
def test_a_softmax_runs_along_the_axis_that_is_named(softmax: str, verdict: str) -> None:
    assert found(f"{HEAD}$c \\in \\mathbb{{R}}^p$. ${softmax}$")[-1] == verdict


STEP = (
    "The states are $x^{l} \\in \\mathbb{R}^{n \\times d}$, with weights $W^{l} \\in \\mathbb{R}^{d \\times d}$.\n\n"
    "$$x^{l+1} = x^l + x^l W^l$$\n\n"
)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("x^{l+1} - x^l = x^l W^l", "proved"),
        ("x^{l+2} = x^{l+1} + x^{l+1} W^{l+1}", "proved"),
        ("x^{l+2} = x^l + x^l W^l + x^l W^{l+1} + x^l W^l W^{l+1}", "proved"),
        ("x^{2} = x^{0} (I + W^{0}) (I + W^{1})", "proved"),
        # open as long as nothing says that the weights of two layers differ
        ("x^{l+2} = x^l + x^l W^l + x^l W^{l+1} + x^l W^{l+1} W^l", "needs-hypothesis"),
        ("x^{2} = x^{0} (I + W^{1}) (I + W^{0})", "refuted"),
        ("x^{0} = E", "definition"),  # a recurrence does not say where it begins
        ("x^{l} = x^{l-1} + x^{l-1} V", "definition"),
    ],
)
def test_a_recurrence_counts_for_other_layers(claim: str, verdict: str) -> None:
    assert found(f"{STEP}Then ${claim}$.")[3:] == [verdict]


TABLE = r"""\documentclass{article}
\begin{document}
\begin{tabular}{ccl} \toprule
symbol & shape & meaning \\ \midrule
$W_Q, W_K$ & $d \times k$ & queries and keys \\
$x$ & $\mathbb{R}^{d}$ & a state \\ \bottomrule
\end{tabular}

$x^\top W_Q W_K^\top x = (W_Q^\top x)^\top (W_K^\top x)$ and $W_Q W_K = W_K W_Q$.
\end{document}
"""


def test_a_table_in_latex_declares_several_symbols(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "a.tex").write_text(TABLE)
    verdicts = [each.verdict for each in check_document(tmp_path / "a.tex").equations]
    assert verdicts == ["proved", "shape"]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        # defined by what can be read only one way
        ("Let $\\mathbf{u} \\in \\mathbb{R}^n$, $\\mathbf{P} = \\mathbf{I} - \\frac{1}{\\mathbf{u}^T\\mathbf{u}} \\mathbf{u} \\mathbf{u}^T$. $\\mathbf{P} \\mathbf{u} = \\mathbf{0}$", "proved"),
        # defined by what is not in the language
        ("Let $B \\in \\mathbb{R}^{n \\times n}$, $P = \\lim_{k} B^k$. $P B = P$", "undecided"),
        # a pattern, by the words
        ("Patterns $A, B \\in \\mathbb{R}^{n \\times n}$ have rows that sum to one. $B A \\mathbf{1} = B \\mathbf{1}$", "needs-hypothesis"),
        # a power is no layer: the factorization is of W and not of “W with a 2 above”
        ("Let $W \\in \\mathbb{R}^{n \\times n}$. Write $W = U S V^\\top$ with $S$ diagonal, $U^\\top U = I$, $V^\\top V = I$. $W W^\\top = U S^2 U^\\top$", "needs-hypothesis"),
        ("Let $A, B \\in \\mathbb{R}^{n \\times n}$. $\\mathrm{tr}(A^\\top B) = \\mathrm{vec}(A)^\\top \\mathrm{vec}(B)$", "proved"),
        # a root of an inner product is a number
        ("$x \\in \\mathbb{R}^d$, $W \\in \\mathbb{R}^{m \\times d}$, $r = \\sqrt{x^\\top x / d}$. $W (x / r) = \\frac{1}{r} W x$", "proved"),
        # nobody writes a zeroth power
        ("The layers have $V^{l} \\in \\mathbb{R}^{d \\times d}$. $(V^{0} V^{1})^\\top = (V^{0})^\\top (V^{1})^\\top$", "refuted"),
        ("Let $A, B \\in \\mathbb{R}^{n \\times n}$. $\\mathrm{tr}(A B) = \\mathrm{vec}(A)^\\top \\mathrm{vec}(B)$", "refuted"),
    ],
)  # fmt: skip
def test_a_claim_is_judged_with_what_the_text_says(text: str, verdict: str) -> None:
    assert found(text)[-1] == verdict


SMALL = "Let $A, B, M \\in \\mathbb{R}^{n \\times n}$ and let $\\epsilon$ be a scalar. "


@pytest.mark.parametrize(
    ("claim", "verdict", "why"),
    [
        ("(I + \\epsilon A)(I + \\epsilon B) \\approx I + \\epsilon (A + B)", "undecided", "first order in \\epsilon; left − right is \\epsilon^{2} (A B)"),
        ("(I + \\epsilon A)(I + \\epsilon B) = I + \\epsilon (A + B) + O(\\epsilon^2)", "proved", "the error is \\epsilon^{2} (A B), exactly"),
        ("(I + \\epsilon A)(I + \\epsilon B) = I + \\epsilon (A + B) + O(\\epsilon^3)", "needs-hypothesis", "to the power 2"),
        ("(A + \\epsilon M)^2 = A^2 + 2 \\epsilon A M + O(\\epsilon^2)", "refuted", "to the power 1"),
        ("A \\approx B", "undecided", "it is an approximation"),
        ("(m \\times n) \\cdot (n \\times p) = (m \\times p)", "definition", "shapes"),
    ],
)  # fmt: skip
def test_an_approximation_has_its_order_and_its_error(claim: str, verdict: str, why: str) -> None:
    last = check_text(f"{SMALL}${claim}$").equations[-1]
    assert last.verdict == verdict
    assert why in last.why


def test_a_condition_of_an_expansion_is_not_forgotten() -> None:
    claim = "(A + \\epsilon M)^2 = A^2 + 2 \\epsilon A M + O(\\epsilon^2)"
    assert found(f"{SMALL}If these two commute, ${claim}$.")[-1] == "undecided"


@pytest.mark.parametrize(
    ("end", "verdict"),
    [(",", "shape"), (":", "shape"), (". Now comes another one.", "undecided")],
)
def test_a_display_goes_on_with_the_sentence_that_declares_its_letters(
    end: str, verdict: str
) -> None:
    text = f"{HEAD}# One\n\nFor any $R \\in \\mathbb{{R}}^{{q \\times q}}${end}\n\n$$M R = M N$$"
    assert found(text)[-1] == verdict
