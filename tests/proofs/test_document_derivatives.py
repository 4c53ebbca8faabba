# ruff: noqa: E501 (a text is one line)
"""Derivatives of numbers at matrices: their shapes, and the chain rule."""

from __future__ import annotations

import pytest

from otimes.algebra.notation.parser import parse_formula, printed_back
from otimes.algebra.notation.tree import Derivative
from otimes.proofs.documents.check import check_text

LAYER = r"Let $Y = X W + \mathbf{1} b$ with $X \in \mathbb{R}^{n \times d}$, $W \in \mathbb{R}^{d \times m}$, $b \in \mathbb{R}^{1 \times m}$, and $G = \partial \ell / \partial Y \in \mathbb{R}^{n \times m}$. "
SQUARE = (
    r"Let $Y = X W$ with $X, W, Y \in \mathbb{R}^{d \times d}$ and $G = \nabla_Y \mathcal{L}$. "
)
HEADS = r"Let $Q = X W_Q$ and $K = X W_K$ with $X \in \mathbb{R}^{n \times d}$, $W_Q, W_K \in \mathbb{R}^{d \times k}$, $P = \nabla_Q L$ and $R = \nabla_K L$. "
LORA = r"Let $X$ be $n \times d$, $W$ be $d \times m$, $A$ be $d \times r$, $B$ be $r \times m$, $s$ a number, $Y = X (W + s A B)$ and $G = \partial \ell / \partial Y$. "
THIN = r"Let $W \in \mathbb{R}^{m \times d}$, $B \in \mathbb{R}^{m \times r}$, $A \in \mathbb{R}^{r \times d}$, a number $s$, $y = W x + s B A x$ and $g = \partial \ell / \partial y$. "
MAP = r"Let $W \in \mathbb{R}^{m \times d}$, $x \in \mathbb{R}^d$, $y \in \mathbb{R}^m$. "
CLAIMS = [
    (LAYER + r"$$\frac{\partial \ell}{\partial W} = X^\top G$$", "proved"),
    (LAYER + r"$$\nabla_X \ell = G W^\top$$", "proved"),
    (LAYER + r"$$\nabla_b \ell = \mathbf{1}^\top G$$", "proved"),
    (LAYER + r"$$\frac{\partial \ell}{\partial W} = G^\top X$$", "shape"),
    (LAYER + r"$$\frac{\partial \ell}{\partial X} = W^\top G$$", "shape"),
    (LAYER + r"$$\nabla_W \ell = X^\top G + \lambda W$$", "definition"),  # of another number
    (LORA + r"$$\nabla_B \ell = s A^\top X^\top G$$", "proved"),
    (LORA + r"$$\nabla_B \ell = A^\top X^\top G$$", "refuted"),
    (LORA + r"$$\nabla_A \ell = 2 s X^\top G B^\top$$", "refuted"),
    (THIN + r"$$\nabla_A \ell = s B^\top g x^\top$$", "proved"),
    (THIN + r"$$\nabla_B \ell = s g (A x)^\top$$", "proved"),  # g is no function
    (THIN + r"$$\nabla_A \ell = s g x^\top B^\top$$", "shape"),
    (THIN.replace("and $g =", "and the row $g =") + r"$$\nabla_A \ell = s x g B$$", "definition"),
    (SQUARE + r"$$\nabla_X \mathcal{L} = G W$$", "refuted"),
    (SQUARE + r"$$\nabla_X \mathcal{L} = W G^\top$$", "refuted"),
    (HEADS + r"$$\nabla_X L = P W_Q^\top + R W_K^\top$$", "proved"),
    (HEADS + r"$$\nabla_X L = P W_Q^\top - R W_K^\top$$", "refuted"),
    (MAP + r"$$\frac{\partial}{\partial W} \frac12 \|W x - y\|^2 = (W x - y) x^\top$$", "proved"),
    (MAP + r"$$\frac{\partial}{\partial W} \frac12 \|W x - y\|^2 = x (W x - y)^\top$$", "proved"),
    (MAP + r"$$\nabla_W \tfrac12 \|W x - y\|^2 = (W x - y) x^\top$$", "proved"),
    (MAP + r"$$\nabla_W \tfrac12 \|W x - y\|^2 = 2 (W x - y) x^\top$$", "refuted"),
    (MAP + r"$$\nabla_W \|W x - y\|^2 = (W x - y) x^\top$$", "refuted"),
    (MAP + r"$$\nabla_x \|W x - y\|^2 = 2 W (W x - y)$$", "shape"),
    (MAP + r"The loss is $\ell(W) = \frac12 \|W x - y\|^2$. $$\nabla_W \ell = (W x - y) x^\top$$", "proved"),
    (MAP + r"The loss is $\ell(W) = \frac12 \|W x - y\|^2$. $$\nabla_W \ell = (y - W x) x^\top$$", "refuted"),
    (MAP + r"Let $\ell = \|W x - y\|^2$. $$\nabla_x \ell = 2 W^\top (W x - y)$$", "proved"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "verdict"), CLAIMS)
def test_a_derivative_has_the_verdict(text: str, verdict: str) -> None:
    assert check_text(text).equations[-1].verdict == verdict


@pytest.mark.parametrize(
    "tex",
    [r"\frac{\partial \ell}{\partial W}", r"\partial \ell / \partial W", r"\nabla_W \ell",
     r"\frac{\partial}{\partial W} \frac12 \|W x\|^2", r"\nabla_W L(W)"],
)  # fmt: skip
def test_a_derivative_is_read_and_printed_back(tex: str) -> None:
    statements = parse_formula(tex)
    assert isinstance(statements[0].terms[0], Derivative)
    assert printed_back(statements)


def test_a_symbol_of_another_section_is_declared_anew_by_its_definition() -> None:
    text = r"Let $Y, X \in \mathbb{R}^{n \times d}$."
    text += "\n\n# Layers\n\n"
    text += r"Let $Y = X W$ with $X \in \mathbb{R}^{n \times d}$, $W \in \mathbb{R}^{d \times m}$."
    assert check_text(text).equations[2].verdict == "definition"
