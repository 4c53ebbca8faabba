"""Gradients of a loss that a text writes as marked symbols, by the chain rule."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

LINEAR = r"Let $X \in \mathbb{R}^{n \times n}$, $W \in \mathbb{R}^{n \times n}$ and $Y = X W$. "
WAYS = [
    (r"Write $\bar{M}$ for the derivative of the loss by a matrix $M$. ", r"\bar{%s}"),
    (r"A bar denotes the gradient of the loss. ", r"\overline{%s}"),
    (r"Let $G_M$ be the gradient of the loss $L$ with respect to $M$. ", "G_%s"),
    (r"Here $\hat{Y}$ denotes $\partial \ell / \partial Y$. ", r"\hat{%s}"),
]


@pytest.mark.parametrize(("words", "sign"), WAYS)
def test_a_marked_symbol_is_the_gradient_that_the_text_says(words: str, sign: str) -> None:
    w, x, y = (sign % letter for letter in "WXY")
    true = rf"${w} = X^\top {y}$ and ${x} = {y} W^\top$"
    *_, one, two = check_text(f"{LINEAR}{words}Then {true}.").equations
    assert [one.verdict, two.verdict] == ["proved", "proved"]
    false = rf"${w} = {y} X^\top$ and ${x} = {y} W$"
    *_, one, two = check_text(f"{LINEAR}{words}Then {false}.").equations
    assert [one.verdict, two.verdict] == ["refuted", "refuted"]
    assert two.suggestion in (rf"{x} = {y} W^{{T}}", rf"{x} = {y} W^\top")


NAMED = [
    r"Let $G \in \mathbb{R}^{n \times n}$ be the gradient of the loss $L$ with respect to $Y$. ",
    r"Denote the gradient of the loss with respect to the output $Y$ by $G$. ",
    r"If $G$ is the gradient of the loss by $Y$, the gradients are these: ",
]


@pytest.mark.parametrize("words", NAMED)
def test_a_gradient_that_words_name_counts_in_the_chain_rule(words: str) -> None:
    for sign in (r"\nabla_%s L", "G_%s"):
        w, x = (sign % letter for letter in "WX")
        if ("these" in words) != ("G" in w):
            continue
        true, false = rf"${w} = X^\top G$ and ${x} = G W^\top$", rf"${w} = G X^\top$, ${x} = W G$"
        for claims, verdict in ((true, "proved"), (false, "refuted")):
            *_, one, two = check_text(f"{LINEAR}{words}{claims}.").equations
            assert [one.verdict, two.verdict] == [verdict, verdict]


def test_the_loss_of_one_example_is_another_number() -> None:
    words = r"Let $G$ be the gradient of the per-example loss with respect to $Y$. "
    found = check_text(rf"{LINEAR}{words}$\nabla_W L = \frac{{1}}{{n}} X^\top G$.").equations
    assert found[-1].verdict == "definition"


def test_a_mark_that_is_no_gradient_stays_a_mark() -> None:
    words = r"Write $\bar{x}$ for the mean of $x$, and $\dot{y}$ for the derivative of $y$ by $t$. "
    *_, mean, speed = check_text(rf"{words}$\bar{{x}} = B x$, $\dot{{y}} = A y$.").equations
    assert [mean.verdict, speed.verdict] == ["definition", "definition"]


def test_a_matrix_used_twice_has_both_terms() -> None:
    said = LINEAR + WAYS[0][0] + r"With $Z = Y W$, $\bar{W} = X^\top \bar{Y} + Y^\top \bar{Z}$."
    assert check_text(said).equations[-1].verdict == "proved"


def test_a_section_may_define_the_same_symbols_in_the_other_convention() -> None:
    text = (
        "## Rows\nLet $X \\in \\mathbb{R}^{n \\times d}$ and $W \\in \\mathbb{R}^{d \\times m}$. "
        "For $Y = X W$, $\\nabla_W L = X^T \\nabla_Y L$.\n"
        "\n## Columns\nLet $X \\in \\mathbb{R}^{d \\times n}$, $W \\in \\mathbb{R}^{m \\times d}$. "
        "For $Y = W X$, $\\nabla_W L = \\nabla_Y L X^T$.\n"
    )
    verdicts = [each.verdict for each in check_text(text).equations]
    assert verdicts == ["definition", "definition", "definition", "proved"] * 2


LEAST = (
    r"Let $W \in \mathbb{R}^{p \times d}$, $x \in \mathbb{R}^d$, $y \in \mathbb{R}^p$ and "
    r"$\ell = \frac12 \|W x - y\|^2$. "
)
AS_W, AS_ITS_TRANSPOSE = r"(W x - y) x^\top", r"x (W x - y)^\top"


def test_a_gradient_has_the_shape_of_its_variable() -> None:
    for number in (r"\ell", r"\frac12 \|W x - y\|^2"):
        for value, verdict in ((AS_W, "proved"), (AS_ITS_TRANSPOSE, "shape")):
            found = check_text(rf"{LEAST} Then $\nabla_W {number} = {value}$.").equations[-1]
            assert found.verdict == verdict, found.why


def test_derivatives_of_one_text_have_one_layout() -> None:
    for first, second in ((AS_W, AS_ITS_TRANSPOSE), (AS_ITS_TRANSPOSE, AS_W)):
        one, other = (
            rf"$\frac{{\partial \ell}}{{\partial W}} = {value}$." for value in (first, second)
        )
        found = check_text(f"{LEAST} {one}\n\n{one}\n\n{other}\n\n{other}").equations[-4:]
        verdicts = [each.verdict for each in found]
        assert verdicts == ["proved", "proved", "needs-hypothesis", "needs-hypothesis"]


def test_another_layout_may_be_said_in_words() -> None:
    text = (
        r"Let $y = W x$ for $W \in \mathbb{R}^{m \times d}$, $x \in \mathbb{R}^d$. For a loss "
        r"$\ell$ with $g = \partial \ell / \partial y$, $\partial \ell / \partial W = g x^\top$."
    )
    for said, verdict in (("Also", "shape"), ("In the row convention", "needs-hypothesis")):
        last = check_text(rf"{text} {said}, $\frac{{\partial \ell}}{{\partial x}} = g^\top W$.")
        assert last.equations[-1].verdict == verdict


@pytest.mark.parametrize(
    ("gradient", "verdict"),
    [
        (r"\nabla_{W} \ell = (p - y) h^\top", "needs-hypothesis"),  # if y is a distribution
        (r"\nabla_{W} \ell = h (p - y)^\top", "shape"),
        (r"\nabla_{h} \ell = W^\top (p - y)", "needs-hypothesis"),
    ],
)
def test_the_gradient_of_the_cross_entropy_has_the_shape_of_its_variable(
    gradient: str, verdict: str
) -> None:
    text = (
        r"Let $y, z \in \mathbb{R}^v$, $p = \mathrm{softmax}(z)$, $\ell = -y^\top \log p$, and "
        r"$z = W h$ with $W \in \mathbb{R}^{v \times d}$ and $h \in \mathbb{R}^d$. Then "
    )
    assert check_text(f"{text}${gradient}$.").equations[-1].verdict == verdict
