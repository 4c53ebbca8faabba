"""What a text declares as a column is never read as a row, and the reverse."""

from __future__ import annotations

import pytest

from otimes.algebra.notation.symbols import key_of
from otimes.proofs.documents.check import check_text
from otimes.proofs.documents.containers.markdown import read_markdown
from otimes.proofs.documents.prose.declared_in_words import Prose
from otimes.proofs.documents.prose.sides import every_side, sides_in

OUTER = r"Then $\mathrm{tr}(x x^\top) = x x^\top$."  # true of a row, and of no column
INNER = r"Then $\mathrm{tr}(x^\top x) = x^\top x$."  # true of a column, and of no row
COLUMN = [
    r"Let a column $x \in \mathbb{R}^d$ be given.",
    r"For the column vector $x \in \mathbb{R}^d$ we compute.",
    r"Here $x$ is a column vector.",
    r"$x \in \mathbb{R}^d$ is treated as a column.",
    r"Let $x, y \in \mathbb{R}^d$ be column vectors.",
    r"Take $x \in \mathbb{R}^d$ (a column vector).",
    r"All vectors are columns. Let $x \in \mathbb{R}^d$.",
    r"We write vectors as column vectors. Let $\mathbf{y}, x \in \mathbb{R}^d$.",
    "| symbol | meaning |\n|---|---|\n| $x \\in \\mathbb{R}^d$ | column vector |\n\n",
    r"A vector $x \in \mathbb{R}^{d \times 1}$.",
    r"The vector $x$ ($d \times 1$) is given.",
    "| symbol | shape |\n|---|---|\n| $x$ | $d \\times 1$ |\n\n",
]
ROW = [
    *[said.replace("column", "row") for said in COLUMN if r"\times" not in said],
    r"A vector $x \in \mathbb{R}^{1 \times d}$.",
    r"The vector $x$ ($1 \times d$) is given.",
]


def verdict(text: str) -> str:
    return check_text(text).equations[-1].verdict


@pytest.mark.parametrize("said", COLUMN)
def test_a_column_is_never_read_as_a_row(said: str) -> None:
    assert verdict(f"{said} {OUTER}") in ("undecided", "shape")
    assert verdict(f"{said} {INNER}") == "proved"


@pytest.mark.parametrize("said", ROW)
def test_a_row_is_never_read_as_a_column(said: str) -> None:
    assert verdict(f"{said} {INNER}") in ("undecided", "shape")
    assert verdict(f"{said} {OUTER}") == "proved"


def test_a_shape_that_is_declared_is_not_turned_to_prove_an_equation() -> None:
    found = check_text(rf"A vector $x \in \mathbb{{R}}^{{d \times 1}}$. {OUTER}").equations
    assert [each.verdict for each in found] == ["definition", "shape"]
    text = r"$A, B \in \mathbb{R}^{n \times k}$. Then $\mathrm{tr}(A B) = \mathrm{tr}(B A)$."
    assert "not with the shape of A on line 1" in check_text(text).equations[-1].why


def test_a_side_that_is_declared_below_or_restated_without_it_counts() -> None:
    assert (
        verdict(r"$$\mathrm{tr}(x x^\top) = x x^\top$$ where $x$ is a column vector.") != "proved"
    )
    again = (
        r"Let $x \in \mathbb{R}^d$ be a column." + "\n\n" + r"Now $x \in \mathbb{R}^d$ is fixed. "
    )
    assert verdict(again + OUTER) == "undecided"


def test_a_vector_of_unknown_length_is_not_taken_as_one_number() -> None:
    assert verdict(r"Here $x$ is a column vector. Then $x^\top x = x x^\top$.") == "undecided"
    text = r"We use column vectors. Then $\mathbf{u} \mathbf{v}^\top = \mathbf{u}^\top \mathbf{v}$."
    assert verdict(text) == "undecided"


def test_rows_and_columns_of_a_matrix_declare_nothing() -> None:
    texts = (
        r"The row $x_i \in \mathbb{R}^d$ of $X$.",
        r"Let $x_i \in \mathbb{R}^d$ be the rows of $X$.",
        r"where $i$ is a row and $j$ a column",
        r"the column vectors $u_i$ of $U$",
    )
    for text in texts:
        found = [key_of(each.name) for each in sides_in(Prose(read_markdown("text", text)))]
        assert not {"x", "u"} & {*found}, text
    text = r"where $i$ is a row and $j$ a column: $\sum_j A_{ij} B_{jk} = (AB)_{ik}$."
    assert verdict(text) == "proved"
    assert every_side("Vectors are rows of X. Later, vectors are columns of Y.") == ""
    assert every_side("Vectors are rows. Vectors are columns.") == ""


def test_what_conforms_as_declared_is_decided_as_before() -> None:
    row = r"Let $x \in \mathbb{R}^d$ be a row vector and $W \in \mathbb{R}^{d \times d}$."
    texts = (
        rf"{row} $\|x W\|^2 = x W W^\top x^\top$",
        r"Let $u, v \in \mathbb{R}^d$ be columns. Then $u v^\top u v^\top = (u v^\top)^2$.",
        r"$x_i \in \mathbb{R}^d$ are columns. $(\sum_i x_i x_i^\top)^\top = \sum_i x_i x_i^\top$",
    )
    for text in texts:
        assert verdict(text) == "proved", text


OPEN = r"Let $x \in \mathbb{R}^d$ and $v_1 \in \mathbb{R}^d$ be vectors. "
WEIGHTS = r"The weights are $W \in \mathbb{R}^{d \times k}$ and $U \in \mathbb{R}^{k \times d}$. "


@pytest.mark.parametrize(
    ("text", "verdict", "words"),
    [
        (OPEN + r"$\mathrm{tr}(x x^\top) = x x^\top$.", "undecided", "x is a row (1 × d)"),
        (OPEN + r"$\mathrm{tr}(v_1 v_1^\top) = v_1 v_1^\top$.", "undecided", "v_1 is a row"),
        (OPEN + r"$\mathrm{tr}(x x^\top) = x^\top x$.", "proved", ""),
        (OPEN + WEIGHTS + "$(x W) U = x W U$.", "proved", "where x is a row (1 × d)"),
    ],
)
def test_a_vector_is_no_row_unless_something_says_so(text: str, verdict: str, words: str) -> None:
    *_, last = check_text(text).equations
    assert last.verdict == verdict
    assert words in last.why


def test_the_squared_length_of_a_vector_says_that_it_is_a_column() -> None:
    sizes = r"Q \in \mathbb{R}^{n \times n}$ and $u \in \mathbb{R}^{n}"
    found = check_text(rf"Let ${sizes}$ with $u^\top u = 1$. Then $Q = u^\top u \, Q$.").equations
    assert found[-1].verdict == "proved"
    assert found[-1].hypotheses


PROJECTION = r"""Let $p \in \mathbb{R}^d$ be a column with $p^\top p = 1$, $P = p p^\top$ and
$X \in \mathbb{R}^{n \times d}$. """


@pytest.mark.parametrize(
    ("equation", "found"),
    [
        (r"X (I - P) = X - X p p^\top", "proved"),
        (r"X (I - P) = X - p p^\top X", "shape"),
        (r"X (I - P) = X - p \cdot p^\top X", "undecided"),  # a dot joins vectors as they are
    ],
)
def test_a_column_is_no_row_in_its_own_section(equation: str, found: str) -> None:
    assert verdict(f"{PROJECTION}Then ${equation}$.") == found
    elsewhere = f"# A\n\n{PROJECTION}\n\n# B\n\nThen ${equation}$."
    assert (verdict(elsewhere) == "proved") == (found == "proved")
    assert verdict(elsewhere) != "shape"
