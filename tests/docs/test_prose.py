"""Formulas found in Unicode prose, and words that are none."""

import doctest

import pytest

import equations
import notation
import prose
import words


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("(AB)ᵀ = BᵀAᵀ holds", r"$(A B)^{\top} = B^{\top}A^{\top}$ holds"),
        ("for A, C and X:", "for $A$, $C$ and $X$:"),
        ("mixes positions by A and", "mixes positions by $A$ and"),
        ("unless d_head = d.", r"unless $d_{\mathrm{head}} = d$."),
        ("into 1 + H terms", "into $1 + H$ terms"),
        ("pattern ⊗ table", r"pattern $\otimes$ table"),
        ("the layer’s `A ⊗ W` and $A$", "the layer’s `A ⊗ W` and $A$"),
        ("above σ_{r+1} and σ_i²", r"above $σ_{r+1}$ and $σ_{i}^{2}$"),
        ("of W_{name}: x_{i+1}", r"of $W_{\mathrm{name}}$: $x_{i+1}$"),
        ("of Σ_{j ≤ i} a_ij x_j, all", r"of $\sum_{j \le i} a_{ij} x_{j}$, all"),
        ("weight 2^{−L} H^{−k} times", "weight $2^{-L}H^{-k}$ times"),
        ("W_K (C⁻¹)ᵀ is free", r"$W_{K} (C^{-1})^{\top}$ is free"),
        ("that ‖A‖² + ‖B‖² ≥ 0.5.", r"that $\Vert A \Vert^{2} + \Vert B \Vert^{2} \ge 0.5$."),
        ("so softmax(β Y) V is", r"so $\operatorname{softmax}(β Y) V$ is"),
        ("Σ_j a_ij v_j is", r"$\sum_{j} a_{ij} v_{j}$ is"),
        ("Σ_k P_k ⊗ S^k", r"$\sum_{k} P_{k} \otimes S^{k}$"),
        ("S^(k-1), W_in and x_i^0", r"$S^{k-1}$, $W_{\mathrm{in}}$ and $x_{i}^{0}$"),
        ("Σ over heads", "Σ over heads"),
        ("x_jᵀ / √d_head, so", r"$x_{j}^{\top} / \sqrt{d_{\mathrm{head}}}$, so"),
        ("r rows, x + δ and δ M_r u", r"$r$ rows, $x + δ$ and $δ M_{r} u$"),
        ("the weights t XᵀZ of a, b", r"the weights $t X^{\top}Z$ of $a$, $b$"),
    ],
)
def test_formulas_are_found(text, result):
    assert prose.markdown(text) == result


@pytest.mark.parametrize(
    "text",
    [
        "A head reads.",
        "It moves. A sum stays.",
        "the OV circuit, Q- and K-composition",
        "I say so",
        "“A bare word”",
        "layer 1 wrote e.g. that",
        "c(i, o), Q(x + y) and the head’s x-axis, i.e. t-SNE",
        "A",
    ],
)
def test_words_stay(text):
    expected = "$A$" if text == "A" else text
    assert prose.markdown(text) == expected


@pytest.mark.parametrize("module", [words, prose, equations, notation])
def test_examples_in_docstrings(module):
    results = doctest.testmod(module)
    assert results.attempted
    assert not results.failed


SUM = r"A + \sum_{h=1}^{H} B^{h} - \left(C + D\right) \, E"


def test_a_short_equation_stays_in_one_line():
    assert equations.equation("A", SUM) == f"A = {SUM}"


def test_a_long_sum_is_broken_between_its_terms():
    assert equations.lines_of(SUM, 8) == [
        r"A + \sum_{h=1}^{H} B^{h}",
        r"- \left(C + D\right) \, E",
    ]


def test_a_long_bracket_is_broken_inside():
    (line,) = equations.lines_of(rf"\left({SUM}\right) \, x", 9)
    assert line.startswith(r"\left(\begin{aligned} & A + ")
    assert line.endswith(r"\end{aligned}\right) \, x")


def test_layout_loses_nothing():
    """Whatever the width, the same signs are there in the same order."""
    left, right = rf"\left({SUM}\right) \, x", rf"y \, \left({SUM}\right) \, \left({SUM}\right)"

    def signs(tex):
        for layout in (r"\begin{aligned}", r"\end{aligned}", r"\qquad", r"\quad", "\\\\", "&", " "):
            tex = tex.replace(layout, "")
        return tex

    for widest in range(1, 90, 4):
        assert signs(equations.equation(left, right, widest)) == signs(f"{left} = {right}")
