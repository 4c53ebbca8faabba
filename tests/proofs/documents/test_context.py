# ruff: noqa: E501 (a document is one line of a table here)
"""What a document says of its symbols counts where it should: other indices, words, sections."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text
from otimes.proofs.documents.containers.tex import read_tex

HEAD = (
    "$W_V \\in \\mathbb{R}^{d \\times k}$, $W_O \\in \\mathbb{R}^{k \\times d}$, "
    "$A \\in \\mathbb{R}^{n \\times n}$, $X \\in \\mathbb{R}^{n \\times d}$.\n\n"
)
FACTORED = (
    "Write $M = U \\Sigma V^\\top$, $U^\\top U = I$, $V^\\top V = I$, with $\\Sigma$ diagonal.\n\n"
)


def found(text: str) -> list[str]:
    return [each.verdict for each in check_text(text).equations]


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        # a definition with indices, for others and for none
        ("$W_{OV}^{l,h} = W_V^{l,h} W_O^{l,h}$. $X W_{OV}^{2} = X W_V^2 W_O^2$.", ["proved"]),
        ("$W_{OV}^{l,h} = W_V^{l,h} W_O^{l,h}$. $X W_{OV} = X W_V W_O$.", ["proved"]),
        ("$W_{OV}^{l,h} = W_V^{l,h} W_O^{l,h}$. $X W_{OV}^2 = X W_V^1 W_O^2$.", ["refuted"]),
        ("$W_{OV}^{l} = W_V^{l} W_O^{l-1}$. $X W_{OV}^2 = X W_V^2 W_O^2$.", ["refuted"]),
        ("$C = I_n - A$. Then $A C^2 = A (I_n - A)(I_n - A)$.", ["proved"]),
        # ones of one size
        (
            "Put $C = I - \\frac1n \\mathbf{1}\\mathbf{1}^\\top$, an $n \\times n$ matrix. $C A = A - \\frac1n \\mathbf{1} \\mathbf{1}^\\top A$ and $C \\mathbf{1} = 0$.",
            ["proved", "proved"],
        ),
    ],
)
def test_definitions_count_for_other_indices(text: str, verdicts: list[str]) -> None:
    assert found(HEAD + text)[5:] == verdicts


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [
        ("M V = U \\Sigma", "proved"),
        ("M^\\top M = V \\Sigma^\\top \\Sigma V^\\top", "proved"),
        ("M^\\top M = V \\Sigma^2 V^\\top", "needs-hypothesis"),
        ("V \\Sigma^\\top \\Sigma V^\\top = V \\Sigma^2 V^\\top", "needs-hypothesis"),
        ("M V = V \\Sigma", "refuted"),
    ],
)
def test_a_factorization_introduces_its_factors(equation: str, verdict: str) -> None:
    verdicts = found(f"{FACTORED}Then ${equation}$.")
    assert verdicts == ["definition"] * 3 + [verdict]


GENERAL = "For $A \\in \\mathbb{R}^{m \\times n}$ and $B \\in \\mathbb{R}^{n \\times p}$: $(AB)^T = B^T A^T$."


def test_a_letter_of_one_section_means_something_else_in_another() -> None:
    later = "$(AB)^{-1} = B^{-1}A^{-1}$ and $\\mathrm{tr}(A) = \\mathrm{tr}(A^T)$ and $A = A^T$."
    text = f"# Start\n\n$x + y = y + x$\n\n# Products\n\n{GENERAL}\n\n\n\n\n\n# Inverses\n\n{later}"
    assert not {"refuted", "shape"} & {*found(text)}
    assert "shape" in found(
        f"# Notation\n\n{GENERAL.replace('For', 'We have')}\n\n# Other\n\n{later}"
    )


def test_a_product_whose_space_is_given_says_nothing_of_sizes_that_stay_open() -> None:
    text = "$Q K^\\top \\in \\mathbb{R}^{n \\times n}$, $S_{ij} = \\sum_{k=1}^{d} Q_{ik} K_{jk}$"
    assert "shape" not in found(text)


def test_a_law_of_indices_is_used_for_other_indices() -> None:
    text = "$R_m \\in \\mathbb{R}^{d \\times d}$, $q, k \\in \\mathbb{R}^{d}$. $R_m^\\top R_n = R_{n-m}$. "
    right = "$(R_i q)^\\top (R_j k) = q^\\top R_{j-i} k$"
    assert found(text + right)[3:] == ["proved"]
    assert found(text + right.replace("j-i", "i-j"))[3:] == ["undecided"]


def test_sums_without_an_index_and_examples_in_numbers_accuse_nothing() -> None:
    assert "shape" not in found("The cost is $\\prod R_n + \\sum I_n R_n$.")
    text = "$Q, K \\in \\mathbb{R}^{n \\times d}$. $Q K^\\top = \\begin{bmatrix} 1 & 0 \\\\ 0 & 1 \\end{bmatrix} \\begin{bmatrix} 1 & 1 \\\\ 1 & 0 \\end{bmatrix}$"
    assert "shape" not in found(text)


def test_a_symbol_whose_definition_is_said_again_counts_as_declared_there() -> None:
    text = r"""# Logits

For a row $z \in \mathbb{R}^{1 \times v}$ let $p = \mathrm{softmax}(z)$.

# Gradients

"""
    wrong = r"we have $p^\top - p (p \mathbf{1}) = 0$."
    again = r"For the softmax $p = \mathrm{softmax}(z)$"
    said = [check_text(f"{text}{words} {wrong}").equations[-1] for words in ("Here", again)]
    assert [each.verdict for each in said] == ["shape", "shape"]
    assert ["shapes from line 3" in each.why for each in said] == [True, False]


CENTRED = r"""Let $X \in \mathbb{R}^{n \times d}$, $C = I - \frac1n \mathbf{1} \mathbf{1}^\top$ and
$\mathbf{1}^\top \mathbf{1} = n$. Then $\frac1n X^\top C X = \frac1n X^\top X - """


@pytest.mark.parametrize(
    ("term", "verdict"), [(r"\mu^\top \mu", "proved"), (r"\mu \mu^\top", "shape")]
)
def test_a_definition_after_where_decides_what_is_not_declared(term: str, verdict: str) -> None:
    text = rf"{CENTRED}{term}$, where $\mu = \frac1n \mathbf{{1}}^\top X$."
    assert found(text)[3:] == [verdict, "definition"]


def test_a_section_has_its_title_after_a_blank_line() -> None:
    document = read_tex("text", "A\n\n\\section{Conventions}\n\nB\n\n\\section{Layers}\n\nC\n")
    assert document.headings == [(3, 2), (7, 2)]
    assert [document.is_about_notation(row) for row in (5, 9)] == [True, False]


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [(r"(A \otimes M) \mathrm{vec}(X)", "proved"), (r"(M \otimes A) \mathrm{vec}(X)", "refuted")],
)
def test_a_definition_below_with_which_nothing_conforms_excuses_nothing(
    equation: str, verdict: str
) -> None:
    text = (
        r"Let $W \in \mathbb{R}^{d \times k}$, $V \in \mathbb{R}^{k \times d}$ and "
        r"$A \in \mathbb{R}^{n \times n}$, and let $X = [x_1, \dots, x_n]$ be $d \times n$. "
        "Stacking the columns of $X$ into one vector we get\n\n"
    )
    claim = rf"$$\mathrm{{vec}}(M X A^\top) = {equation}, \qquad M = W V .$$"
    assert found(text + claim)[-2:] == [verdict, "definition"]


NORMED = r"""Let $X \in \mathbb{R}^{n \times d}$, $W \in \mathbb{R}^{d \times m}$ and
$N = \mathrm{diag}(\rho_1, \dots, \rho_n)$. With $G \in \mathbb{R}^{d \times d}$ let
$Y = N^{-1} X G$. For an orthogonal $R \in \mathbb{R}^{d \times d}$ norms do not change, and """


@pytest.mark.parametrize(
    ("product", "verdict"), [(r"R^\top G W", "needs-hypothesis"), (r"G R^\top W", "refuted")]
)
def test_what_is_defined_with_dots_stands_for_itself(product: str, verdict: str) -> None:
    """Nor does what does not change deny anything."""
    assert found(f"{NORMED}$N^{{-1}} (X R) ({product}) = Y W$.")[-1] == verdict


@pytest.mark.parametrize("style", ["b", r"\mathbf{b}", r"\boldsymbol{b}"])
def test_two_biases_are_told_apart_by_their_indices_in_any_style(style: str) -> None:
    text = (
        r"Let $r \in \mathbb{R}^{1 \times e}$, $C \in \mathbb{R}^{e \times F}$, "
        rf"${style}_e \in \mathbb{{R}}^{{1 \times F}}$ and ${style}_d \in "
        rf"\mathbb{{R}}^{{1 \times e}}$. Then $f = (r - {style}_d) C + {style}_e$, and "
        rf"$g = (r - {style}_e) C + {style}_d$."
    )
    verdicts = [each.verdict for each in check_text(text).equations[-2:]]
    assert verdicts == ["definition", "shape"]
