# ruff: noqa: E501 (a document has long lines)
"""What a text says in two ways is asked about, where it stands, and nothing else is."""

from __future__ import annotations

import sys

import pytest

from otimes.proofs.documents.check import check_text

LAYERS = r"""$y^l = \sum_{u=1}^m n_u^l w_{out_u}^l$ is the output.

The effect is $c^l = \sum_{u=1}^m n_u^l w_{out_u}^{%s} b$.
"""
NORM = r"""Let $\gamma \in \mathbb{R}^d$ and $\beta \in \mathbb{R}^d$.

The norm is $\frac{z - \mu}{s} %s \gamma + \beta$.
"""
STEER = r"The edit is $x^{%s} \leftarrow x^{l} - \alpha u$."
STACK = r"""A head is $h(x) = (A \otimes W_O W_V) x$.

%s
"""
WIDTH = r"""The stream is $X \in \mathbb{R}^{n \times d}$.

$W_Q$ is $d \times %s$ and vice versa for $W_K$.
"""
SINGULAR = r"""The logits are $x W_U$.

Split the %s singular matrix of $W_U$ into bands. One can project representations onto them.
"""


def asked(text: str) -> list[tuple[int, str]]:
    return [(e.line, e.why) for e in check_text(text).equations if e.why.endswith("?")]


@pytest.mark.parametrize(
    ("text", "wrong", "right", "line", "says"),
    [
        (LAYERS, "l-1", "l", 3, "of two layers here, and of one layer on line 1"),
        (NORM, r"\cdot", r"\odot", 3, "a product with a dot of two vectors is a number"),
        (STEER, "l'", "l", 1, "the index l' is on the left side only"),
        (STACK, "The scores are $x^T W_Q^T W_K x$.", "Then $v_i = W_V x_i$.", 1, "stacks all"),
        (WIDTH, "n", "k", 3, "does n stand for two sizes?"),
    ],
)
def test_what_is_said_in_two_ways_is_asked_about_and_only_that(
    text: str, wrong: str, right: str, line: int, says: str
) -> None:
    ((found, why),) = asked(text % wrong)
    assert found == line
    assert says in why
    assert asked(text % right) == []
    assert check_text(text % wrong).passed  # a question, no accusation


def test_states_are_projected_onto_the_singular_vectors_of_their_side() -> None:
    verdicts = {
        side: [e.verdict for e in check_text(SINGULAR % side).equations if "singular" in e.tex]
        for side in ("right", "left")
    }
    assert verdicts == {"right": ["shape"], "left": []}
    column = (SINGULAR % "right").replace("x W_U", "W_U x")
    assert check_text(column).passed


def test_a_scalar_with_a_dot_is_not_asked_about() -> None:
    assert (
        asked(r"Let $g, b \in \mathbb{R}^d$. Then $y = a \cdot g + b$ and $z = 2 \cdot g + b$.")
        == []
    )


def test_numbers_of_an_example_accuse_no_equation() -> None:
    text = r"""Let $A \in \mathbb{R}^{d \times r}$ and $B \in \mathbb{R}^{r \times k}$.

Take $W \in \mathbb{R}^{5 \times 3}$. Then $W' = W + AB$ and $AB \in \mathbb{R}^{5 \times 3}$.
"""
    assert check_text(text).passed


def test_a_rounded_product_of_numbers_is_not_refuted_and_a_whole_one_is() -> None:
    text = (
        r"$\begin{bmatrix} %s & 1 \\ 0 & 1 \end{bmatrix} \begin{bmatrix} 3 \\ 1 \end{bmatrix} = "
        r"\begin{bmatrix} %s \\ 1 \end{bmatrix}$"
    )
    assert check_text(text % ("0.333", "2")).passed
    assert not check_text(text % ("2", "8")).passed
    assert check_text(text % ("2", "7")).passed


def test_two_symbols_that_are_equated_are_not_refuted() -> None:
    text = r"Let $A, B \in \mathbb{R}^{n \times n}$. At the optimum $A = B$, and again $A = B$."
    assert check_text(text).passed


def test_a_letter_of_another_section_and_sizes_of_an_example_accuse_nothing() -> None:
    text = r"""# Data

Let $A \in \mathbb{R}^{m \times n}$ with $v \in \mathbb{R}^{n}$ and $y = A v$. We define $A = B C$.

# Eigenvalues

An eigenvector satisfies $A v = \lambda v$, so $(A - \lambda I) v = 0$.

# Sizes

Take $d = 512$ and $h = 8$, with $X \in \mathbb{R}^{n \times d}$ and $Y \in \mathbb{R}^{n \times h}$.

A larger model has $d / h = 128$.
"""
    assert [e.tex for e in check_text(text).equations if e.is_wrong] == []


def test_biases_that_an_index_tells_apart_have_shapes_of_their_own() -> None:
    text = r"""Let $X \in \mathbb{R}^{n \times d}$, $W_1 \in \mathbb{R}^{d \times m}$, $W_2 \in \mathbb{R}^{m \times d}$,
$b_1 \in \mathbb{R}^{1 \times m}$ and $b_2 \in \mathbb{R}^{1 \times d}$.

Then $(X W_1 + \mathbf{1} b_1) W_2 + \mathbf{1} b_2 = X W_1 W_2 + \mathbf{1} (b_1 W_2 + b_2)$, and not
$(X W_1 + \mathbf{1} b_1) W_2 = X W_1 W_2 + \mathbf{1} b_1$.
"""
    found = [e for e in check_text(text).equations if e.verdict != "definition"]
    assert [e.verdict for e in found] == ["proved", "shape"]


def test_a_definition_that_goes_round_in_a_circle_is_a_claim() -> None:
    text = r"""Let $X, Y, R \in \mathbb{R}^{n \times d}$. We define $R = X - Y$. So $X = Y %s R$."""
    verdicts = [check_text(text % sign).equations[-1].verdict for sign in "+-"]
    assert verdicts == ["proved", "refuted"]


def test_a_letter_declared_as_a_vector_is_no_function() -> None:
    text = r"Let $g \in \mathbb{R}^d$ and $x \in \mathbb{R}^k$. Then $g (2 x)^\top = 2 g x^\top$."
    assert check_text(text).equations[-1].verdict == "proved"


def test_what_a_comment_says_wrongly_is_reported_and_the_rest_is_checked() -> None:
    text = "<!-- otimes: 1_d: d 1; given: A B; A: n n -->\n\n$A$ is square: $(A A)^\\top = A^\\top A^\\top$."
    verdicts = [(e.verdict, e.tex) for e in check_text(text).equations]
    assert [verdict for verdict, _ in verdicts] == ["unread", "unread", "proved"]
    assert "1_d" in verdicts[0][1]


GOOD = "\n\nLet $A, B \\in \\mathbb{R}^{n \\times n}$. Then $(A B)^T = B^T A^T$.\n"


@pytest.mark.parametrize(
    "hostile",
    [
        "\\[" * 5000,
        "<!-- otimes: " * 5000 + "-->",
        "\\begin{align}" * 5000,
        "$x$, " * 5000 + "are matrices",
        "$W$ has rank " * 5000,
        "$(" + "| x " * 1001 + ") = 1$",
        "$" + r"\boxed{" * 1500 + "x" + "}" * 1500 + " = 1$",
        r"$\text{" + "$x$ " * 1000 + "} = 1$",
        r"$\text{" * 500,
        "$" + r"\begin{cases} a & " * 500 + "x = 1$",
        "$" + r"\hat" * 4000 + " x = 1$",
    ],
    ids=lambda text: text[:12],
)
def test_what_opens_and_never_closes_costs_little_and_the_rest_is_checked(hostile: str) -> None:
    steps = 0

    def counted(frame: object, event: str, arg: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(counted)
    try:
        report = check_text(hostile + GOOD)
    finally:
        sys.setprofile(None)
    assert report.equations[-1].verdict == "proved"
    assert steps < 3_000_000


@pytest.mark.parametrize(
    "text",
    [
        r"""Let $X \in \mathbb{R}^{n \times d}$ and $W \in \mathbb{R}^{d \times m}$, with $Y = X W$.

# Columns

Now $x \in \mathbb{R}^{d}$ and $y = W^\top x$. Some write $y = W x$ with $W \in \mathbb{R}^{m \times d}$.""",
        r"""Let $W \in \mathbb{R}^{m \times d}$, $x \in \mathbb{R}^{d}$, $b \in \mathbb{R}^m$. In code this is
$y = x W + b$, that is $y = W x + b$.""",
        r"""Let $X \in \mathbb{R}^{n \times d}$, $W \in \mathbb{R}^{d \times m}$ and $b \in \mathbb{R}^{m}$. The layer
is $Y = X W + b$, with $b$ added to each row.""",
        r"""Let $p, q \in \mathbb{R}^v$. The entropy is $D_{KL}(p \| q) = H(p, q) - H(p)$.""",
        r"""$W_E \in \mathbb{R}^{d \times V}$ and $W_U \in \mathbb{R}^{V \times d}$ are tied, $W_U = W_E^\top$. With
$t \in \mathbb{R}^V$ the logits are $W_U W_E t = W_E^\top W_E t$.""",
        r"""With $n = d = 4$, $X \in \mathbb{R}^{4 \times 4}$ and $W \in \mathbb{R}^{4 \times 4}$, we get
$(X W)^\top = W^\top X^\top$.""",
    ],
)
def test_ways_of_writing_that_are_not_wrong_are_not_accused(text: str) -> None:
    assert [(e.tex, e.why) for e in check_text(text).equations if e.is_wrong] == []
