r"""Derivatives of what a document composes are claims: right ones hold, wrong ones are found.

The oracle is forward differentiation in dual numbers a + b ε with exact fractions, by plain loops.
`exp` of a number is a fraction w that is given, and its derivative is w times that of the number;
`log` keeps only its derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from otimes.proofs.documents.check import check_text

FINE = ("proved", "needs-hypothesis")


class Dual:
    """A number with its derivative in one direction."""

    def __init__(self, a: Any, b: Any = 0) -> None:
        self.a, self.b = Fraction(a), Fraction(b)

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.a + other.a, self.b + other.b)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.a * other.a, self.a * other.b + self.b * other.a)

    def __truediv__(self, other: Dual) -> Dual:
        return self * Dual(1 / other.a, -other.b / other.a**2)


Row = Sequence[Fraction]


def softmax(powers: Row, moved: Row) -> list[Dual]:
    """Return the softmax of numbers of which the powers of e and the derivatives are given."""
    parts = [Dual(w, w * d) for w, d in zip(powers, moved, strict=True)]
    total = sum(parts, Dual(0))
    return [part / total for part in parts]


def of_softmax(w: Row, d: Row) -> list[Fraction]:
    return [p.b for p in softmax(w, d)]


def of_entropy(w: Row, d: Row) -> Fraction:
    """Return the derivative of -y·log p for a one-hot y, the first."""
    first = softmax(w, d)[0]
    return -first.b / first.a


def of_norm(x: Row, d: Row) -> list[Fraction]:
    """Return the derivative of x / sqrt(x·x / 3), for an x whose norm over sqrt(3) is 3."""
    square = sum((Dual(a, b) * Dual(a, b) for a, b in zip(x, d, strict=True)), Dual(0))
    assert square.a / 3 == 9
    root = Dual(3, square.b / 3 / 6)  # the derivative of the root of s is s' / (2 root)
    return [(Dual(a, b) / root).b for a, b in zip(x, d, strict=True)]


def dot(a: Row, b: Row) -> Fraction:
    return sum((s * t for s, t in zip(a, b, strict=True)), Fraction(0))


def _p(w: Row) -> list[Fraction]:
    return [a / sum(w) for a in w]


W, X, Y = ([*map(Fraction, row)] for row in ((2, 3, 5), (1, 1, 5), (1, 0, 0)))
SOFT = r"Let $z \in \mathbb{R}^n$ and $p = \mathrm{softmax}(z)$. "
LOSS = rf"{SOFT}For a one-hot $y \in \mathbb{{R}}^n$ the loss is $\ell = -y^\top \log p$. "
ROWS = r"Let $S \in \mathbb{R}^{n \times n}$ and $P = \mathrm{softmax}(S)$, softmax of each row. "
NORM = r"Let $x \in \mathbb{R}^d$, $r = \sqrt{x^\top x / d}$ and $\hat x = x / r$. "


def times(of: Callable[[int, int], Fraction], d: Row) -> list[Fraction]:
    return [sum((of(i, j) * d[j] for j in range(3)), Fraction(0)) for i in range(3)]


def eq(i: int, j: int) -> int:
    return int(i == j)


def soft(i: int, j: int, sign: int = -1) -> Fraction:
    return P[i] * (eq(i, j) + sign * P[j])


P = _p(W)
XH = [x / 3 for x in X]
JACOBIANS: list[tuple[str, str, Row, Any, list[tuple[str, Any]]]] = [
    (
        SOFT, r"\frac{\partial p}{\partial z}", W, of_softmax,
        [(r"\mathrm{diag}(p) - p p^\top", lambda d: times(soft, d)),
         (r"\mathrm{diag}(p) + p p^\top", lambda d: times(lambda i, j: soft(i, j, 1), d)),
         (r"I - p p^\top", lambda d: times(lambda i, j: eq(i, j) - P[i] * P[j], d))],
    ),
    (
        LOSS, r"\nabla_z \ell", W, of_entropy,
        [("p - y", lambda d: dot(P, d) - dot(Y, d)), ("y - p", lambda d: dot(Y, d) - dot(P, d)),
         ("p + y", lambda d: dot(Y, d) + dot(P, d))],
    ),
    (  # of one row
        ROWS, "dP", W, of_softmax,
        [(r"P \odot (dS - (P \odot dS) \mathbf{1} \mathbf{1}^\top)", lambda d: times(soft, d)),
         (r"P \odot (dS + (P \odot dS) \mathbf{1} \mathbf{1}^\top)",
          lambda d: times(lambda i, j: soft(i, j, 1), d))],
    ),
    (
        NORM, r"\frac{\partial \hat x}{\partial x}", X, of_norm,
        [(r"\frac{1}{r} (I - \frac{1}{d} \hat x \hat x^\top)",
          lambda d: times(lambda i, j: (eq(i, j) - XH[i] * XH[j] / 3) / 3, d))],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "left", "at", "moved", "claims"), JACOBIANS)
def test_a_derivative_is_right_where_dual_numbers_say_so(
    text: str, left: str, at: Row, moved: Any, claims: list[tuple[str, Any]]
) -> None:
    units = [[Fraction(eq(i, j)) for j in range(3)] for i in range(3)]
    for claim, value in claims:
        true = all(moved(at, d) == value(d) for d in units)
        found = check_text(f"{text}Then\n$${left} = {claim}$$").equations[-1]
        assert true == (found.verdict in FINE), (claim, found.why)
        assert true or found.verdict == "refuted", (claim, found.why)


CASES = [
    (  # the forward pass in one section, the backward pass in the next
        ("## Forward\nLet $V \\in \\mathbb{R}^{n \\times d}$, $W_O \\in \\mathbb{R}^{d "
        "\\times m}$, $A \\in \\mathbb{R}^{n \\times n}$. The output is $O = A V W_O$.\n\n"
        "## Backward\nLet $E = \\partial \\ell / \\partial O$. Then $$@$$"),
        [r"\frac{\partial \ell}{\partial A} = E W_O^\top V^\top",
         r"\frac{\partial \ell}{\partial V} = A^\top E W_O^\top"],
        [r"\frac{\partial \ell}{\partial V} = A E W_O^\top"],
    ),
    (  # a condition that says what the gradient is assumes nothing
        ("The scores are $S = X W_Q W_K^\\top X^\\top$, $X \\in \\mathbb{R}^{n \\times d}$, $W_Q, "
        "W_K \\in \\mathbb{R}^{d \\times k}$. If $G = \\partial \\ell / \\partial S$, then $$@$$"),
        [r"\frac{\partial \ell}{\partial W_Q} = X^\top G X W_K"],
        [r"\frac{\partial \ell}{\partial W_Q} = X^\top G^\top X W_K"],
    ),
    (
        ("Let $z = W_U x$ with $W_U \\in \\mathbb{R}^{v \\times d}$, $x \\in \\mathbb{R}^d$; "
        "$p = \\mathrm{softmax}(z)$ and $\\ell = -\\log p_y$ with the one-hot vector $e_y$. $$@$$"),
        [r"\frac{\partial \ell}{\partial z} = p - e_y", r"\nabla_{W_U} \ell = (p - e_y) x^\top"],
        [r"\nabla_x \ell = W_U^\top (e_y - p)"],
    ),
    (
        ("Let $y = V u$ with $u = W x$, $x \\in \\mathbb{R}^d$, $W \\in \\mathbb{R}^{m "
        "\\times d}$, $V \\in \\mathbb{R}^{d \\times m}$, and $z = x + y$. Then $$@$$"),
        [r"\frac{\partial z}{\partial x} = I + V W",
         (r"\frac{\partial y}{\partial x} = \frac{\partial y}{\partial u} \frac{\partial u}"
         r"{\partial x}")],
        [r"\frac{\partial z}{\partial x} = I - V W"],
    ),
    (
        ("Let $h = W x$ and $y = V \\sigma(h)$ with $x \\in \\mathbb{R}^d$, $W \\in \\mathbb{R}^{m "
        "\\times d}$, $V \\in \\mathbb{R}^{k \\times m}$; $\\sigma$ acts on each entry. Let "
        "$\\delta = \\partial \\ell / \\partial y$. $$@$$"),
        [r"\frac{\partial \ell}{\partial W} = (\sigma'(h) \odot V^\top \delta) x^\top"],
        [r"\frac{\partial \ell}{\partial h} = \sigma(h) \odot V^\top \delta"],
    ),
    (
        ("For $X \\in \\mathbb{R}^{n \\times d}$, $w \\in \\mathbb{R}^d$, $y \\in \\mathbb{R}^n$ "
        "let $L(w) = \\|X w - y\\|^2$. $$@$$"),
        [r"\nabla L(w) = 2 X^\top (X w - y)", r"\nabla L = 2 X^\top (X w - y)"],
        [r"\nabla L(w) = X^\top (X w - y)"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "right", "wrong"), CASES)
def test_the_derivative_of_what_is_composed_is_a_claim(
    text: str, right: list[str], wrong: list[str]
) -> None:
    for claims, verdicts in ((right, FINE), (wrong, ("refuted",))):
        for claim in claims:
            found = check_text(text.replace("@", claim)).equations[-1]
            assert found.verdict in verdicts, (claim, found.verdict, found.why)


def test_the_derivative_by_what_is_not_composed_is_a_definition() -> None:
    for left in (r"\frac{\partial \ell}{\partial Y}", r"\nabla_Y \ell"):
        text = rf"Let $Y \in \mathbb{{R}}^{{n \times m}}$ be the output. ${left} = G$."
        assert check_text(text).equations[-1].verdict == "definition"


def test_what_another_section_defines_may_be_constant() -> None:
    text = (
        "## A head\nLet $X \\in \\mathbb{R}^{n \\times d}$, $M, W \\in \\mathbb{R}^{d \\times d}$. "
        "The pattern is $A = \\mathrm{softmax}(X M X^\\top)$.\n\n## Gradients\nLet $Y = A X W$ and "
        "$G = \\partial L / \\partial Y$. $$\\frac{\\partial L}{\\partial X} = A^\\top G W^\\top$$"
    )
    found = check_text(text).equations[-1]
    assert (found.verdict, "A does not depend on X" in found.why) == ("needs-hypothesis", True)


ATTENTION = (
    "## Forward\nLet $Q, K, V \\in \\mathbb{R}^{n \\times k}$, $S = Q K^\\top$, $A = "
    "\\mathrm{softmax}(S)$ for each row, and $Z = A V$.\n\n## Backward\n"
)
NAMES = [
    ("Write $dM$ for $\\partial \\ell / \\partial M$. ", "d%s"),
    ("These are the gradients of the loss. ", "d%s"),
    ("Let $\\delta_M = \\partial \\ell / \\partial M$ for every $M$. ", "\\delta_%s"),
    ("Denote by $G_Z$ the gradient of the loss with respect to $Z$. ", "G_%s"),
]


@pytest.mark.parametrize(("words", "sign"), NAMES)
def test_gradients_of_attention_in_any_name(words: str, sign: str) -> None:
    q, v, s, z = (sign % letter for letter in "QVSZ")
    claims = [
        (rf"{v} = A^\top {z}", rf"{v} = A {z}"),
        (rf"{q} = {s} K", rf"{q} = {s}^\top K"),
    ]
    for verdict, which in (("proved", 0), ("refuted", 1)):
        text = " ".join(f"$${each[which]}$$" for each in claims)
        found = check_text(f"{ATTENTION}{words}{text}").equations[-2:]
        assert [each.verdict for each in found] == [verdict] * 2, [each.why for each in found]


def test_differentials_follow_from_definitions() -> None:
    text = (
        "Let $X \\in \\mathbb{R}^{n \\times d}$, $W \\in \\mathbb{R}^{d \\times m}$, an invertible "
        "$A \\in \\mathbb{R}^{n \\times n}$, $Y = X W$, and $G = \\partial L / \\partial Y$. $$@$$"
    )
    claims = {
        r"dY = dX\, W + X\, dW": "proved",
        r"dY = dX\, W - X\, dW": "refuted",
        r"dY = X\, dW": "needs-hypothesis",  # where X is constant
        r"dL = \mathrm{tr}(G^\top dX\, W) + \mathrm{tr}(G^\top X\, dW)": "proved",
        r"dL = \mathrm{tr}(G^\top dX\, W) - \mathrm{tr}(G^\top X\, dW)": "refuted",
        r"\mathrm{d}(A^{-1}) = -A^{-1} (\mathrm{d} A) A^{-1}": "proved",
        r"\mathrm{d}(A^{-1}) = A^{-1} (\mathrm{d} A) A^{-1}": "refuted",
        r"d\,\mathrm{tr}(A^2) = 2\,\mathrm{tr}(A\, dA)": "proved",
        r"dZ = dX\, W": "undecided",  # Z is not composed
    }
    for claim, verdict in claims.items():
        found = check_text(text.replace("@", claim)).equations[-1]
        assert found.verdict == verdict, (claim, found.why)


def test_a_size_before_a_vector_is_no_differential() -> None:
    text = (
        r"Let $a = U x$, $b = V x$ and $U, V \in \mathbb{R}^{m \times d}$, $x \in \mathbb{R}^d$. "
    )
    found = check_text(rf"{text}For $h = a \odot b$, $d h = d (U x \odot b)$.").equations[-1]
    assert found.verdict not in ("refuted", "shape")


def test_the_matrix_of_a_derivative_is_compared_with_all_definitions() -> None:
    text = (
        r"Let $P = I - \frac1d \mathbf{1}\mathbf{1}^\top$ and $c = P x$ for $x \in \mathbb{R}^d$. "
        r"$$\frac{\partial c}{\partial x} = @ \frac{1}{d} \mathbf{1}\mathbf{1}^\top$$"
    )
    verdicts = [check_text(text.replace("@", e)).equations[-1].verdict for e in ("I -", "I +")]
    assert verdicts == ["proved", "refuted"]


def test_a_small_letter_that_is_defined_as_a_vector_has_a_gradient() -> None:
    text = (
        r"Let $f = U x$ for $x \in \mathbb{R}^d$ and $U \in \mathbb{R}^{m \times d}$. For $y \in "
        r"\mathbb{R}^d$, $W \in \mathbb{R}^{d \times m}$ let $\ell = \frac12 \|y - W f\|^2$. $$@$$"
    )
    for claim, verdict in ((r"-W^\top (y - W f)", "proved"), (r"W^\top (y - W f)", "refuted")):
        found = check_text(text.replace("@", rf"\nabla_f \ell = {claim}")).equations[-1]
        assert found.verdict == verdict, found.why
