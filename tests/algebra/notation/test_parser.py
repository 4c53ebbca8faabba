"""Formulas are read as they are written: printed back they are the same, or they are refused."""

from __future__ import annotations

import pickle

import pytest

from otimes.algebra.notation.parser import parse_formula, printed_back
from otimes.algebra.notation.tokens import LONGEST, NotationError, tokenize
from otimes.algebra.notation.tree import (
    Grid,
    Indexed,
    Name,
    Power,
    Product,
    Slot,
    Tensor,
    latex,
    mapped,
    walk,
)

FIELD = [
    r"(I_n \otimes W_O)(A \otimes I)(I \otimes W_V) = A \otimes W_O W_V",
    r"\text{Attn}^{l,h}(\mathbf{X}_{\leq i}^{l-1}) = \sum_{j \leq i} a_{i,j}^{l,h} \mathbf{x}_j",
    r"\Sigma_{j \leq i} a_{i,j}^{l,h}x_j^{l-1}W_V^{l,h}W_O^{l,h}",
    r"\frac{x_i^{l-1}W_Q^{l,h} (X_{\leq i}^{l-1}W_K^{l,h})^T}{\sqrt{d_h}}",
    r"QK^T = QEE'K^T = QE(KE'^T)^T",
    r"A = \mathrm{softmax}\left( x^{\mathsf{T}} W_Q^\top W_K x \right)",
    r"\frac{\|W_{OV}^1 W_{OV}^2\|_F}{\|W_{OV}^1\|_F \|W_{OV}^2\|_F}",
    r"L(z) = ||z - SAE(z)||^2_2 + \alpha ||h(z)||_1",
    r"\begin{bmatrix} A & 0 \\ 0 & B \end{bmatrix}^{-1}",
    r"\hat{A} = AE \in \mathbb{R}^{N \times \mathcal{V}}",
    r"W_V^{l,h}, W_O^{l,h} \in \mathbb{R}^{d_h \times d}",
    r"\prod_{l=1}^{L} \left(I + \sum_{h \in H} A^{l,h} \otimes W_{OV}^{l,h}\right)",
    r"\nabla_{x} f(x) \cdot x",
    r"W_{U[:,w]}",
    r"(AB)_{ij} = \sum_k A_{ik} B_{kj}",
    r"\underbrace{A \otimes W}_{\text{head}} x",
    r"[x; 1]",
    r"\text{Gain:} \quad g(x) = 1 \pm \epsilon \newline n : \text{length}",
    r"h = D(p \vert\vert q)",
    r"{\textstyle\begin{aligned} A &= B \end{aligned}}",
    "QK^T \\in \\mathbb{R}^{n \\times d_{ff}}\nS_{ij} = 1",
    r"= B C",
    r"x_{i}^{\text{mid},l} = x_i^{l-1} + \operatorname{Attn}^l(X)",
]  # fmt: skip


@pytest.mark.parametrize("formula", FIELD)
def test_the_notation_of_the_field_is_printed_back_to_the_same_tree(formula: str) -> None:
    statements = parse_formula(formula)
    assert statements
    assert printed_back(statements)


def shape(node: object) -> str:
    """Return how a formula is bracketed, by a printer of this test's own."""
    match node:
        case Name(base=base):
            return base
        case Product(factors=factors):
            return "(" + " ".join(map(shape, factors)) + ")"
        case Tensor(mark=mark, factors=factors):
            return "(" + mark.join(map(shape, factors)) + ")"
        case Power(base=base, exponent=str(exponent)):
            return f"{shape(base)}^{exponent}"
        case Indexed(body=body):
            return f"sum{shape(body)}"
        case _:
            return shape(node.inner) if hasattr(node, "inner") else latex(node)


@pytest.mark.parametrize(
    ("formula", "bracketed"),
    [
        (r"A \otimes B C", r"(A\otimes(B C))"),
        (r"A B \otimes C", r"((A B)\otimesC)"),
        (r"A B^T", "(A B^T)"),
        (r"(A B)^T", "(A B)^T"),
        (r"AB", "(A B)"),
        (r"\sum_h A^h \otimes B^h", r"sum(A\otimesB)"),
        (r"A \cdot B \cdot C", "(A B C)"),
        (r"A \otimes B \cdot C \otimes D", r"((A\otimesB) (C\otimesD))"),
        ("A ⊗ B C", r"(A\otimes(B C))"),
        ("AᵀB", "(A^T B)"),
    ],
)
def test_operations_bind_as_in_the_papers(formula: str, bracketed: str) -> None:
    assert shape(parse_formula(formula)[0].terms[0]) == bracketed


def test_a_run_of_letters_is_a_word_where_it_is_known_and_else_a_product() -> None:
    (run,) = parse_formula("VE")
    assert shape(run.terms[0]) == "(V E)"
    (word,) = parse_formula("FFN(X)")
    assert latex(word) == r"\mathrm{FFN}(X)"


def test_plain_text_takes_a_whole_word_below_and_latex_one_letter() -> None:
    assert latex(parse_formula("W_OV X", plain=True)[0]) == r"W_{\mathrm{OV}} X"
    assert latex(parse_formula("W_OV X")[0]) == "W_{O} V X"


@pytest.mark.parametrize(
    ("formula", "message", "part"),
    [
        (r"\Sigma_h=1^H Attn(X)", "nothing is summed", r"\Sigma_h"),
        ("f(x", "not closed", "("),
        ("A B)", "not expected", ")"),
        (r"A \otimes B \odot C", "brackets", r"\odot"),
        (r"A \text{ is monotonic with } B", "has words where", r"\text{ is monotonic with }"),
        (r"A \foo B", "not expected", r"\foo"),
        ("x^{}", "empty", "}"),
    ],
)
def test_what_is_not_clear_is_refused_with_its_place(formula: str, message: str, part: str) -> None:
    with pytest.raises(NotationError, match=message) as refused:
        parse_formula(formula)
    start, end = refused.value.span
    assert formula[start:end] == part


@pytest.mark.parametrize(
    "formula",
    [
        "(" * 500,
        "{" * 500,
        "^" * 50,
        "_" * 50,
        "\\",
        "&&&",
        r"\frac",
        r"\begin{bmatrix}",
        "\x00",
        "||",
    ],
)
def test_hostile_formulas_are_refused_or_empty(formula: str) -> None:
    with pytest.raises(NotationError):
        _read_something(formula)


def _read_something(formula: str) -> None:
    if not parse_formula(formula):
        raise NotationError("nothing was read")


def test_a_formula_that_is_far_too_long_is_refused() -> None:
    with pytest.raises(NotationError, match="characters"):
        tokenize("A" * (LONGEST + 1))


def test_every_token_has_its_offsets() -> None:
    formula = r"\hat{A} \otimes  W_{OV}^{l} % a comment"
    for token in tokenize(formula):
        if token.kind != "word":
            assert formula[token.start : token.end] == token.text


def test_a_sign_after_an_ampersand_begins_the_next_entry_of_a_matrix() -> None:
    (statement,) = parse_formula(r"R = \begin{bmatrix} 1 & -1 \\ 1 & 1 \end{bmatrix}")
    grid = statement.terms[1]
    assert isinstance(grid, Grid)
    assert [len(row) for row in grid.rows] == [2, 2]


@pytest.mark.parametrize(
    "formula",
    [
        r"p(x \mid z) = \frac{p(z | x) p(x)}{p(z)}",
        r"D_{KL}(p \| q) = \mathbb{E}_{x \sim p}[\log p(x)]",
        r"f = \begin{cases} 0 & \text{if } x \le 0 \\ x & \text{otherwise} \end{cases}",
        r"x \in [0, 1)",
        r"S = \{x : x > 0\}",
        r"\lambda \in \mathbb{R}^+",
        r"\int_0^1 f(x) dx = 1",
        r"f(\cdot) = g(\cdot, x)",
        r"\mathrm{rank}(AB) \le \min(\mathrm{rank}(A), \mathrm{rank}(B))",
        r"t = T / \Delta t",
        r"\Sigma_r = \Sigma_g",
        r"[C(x)]_y = (A^2)_{ij}",
        r"30^\circ + a = 2",
        r"x \not= y",
        r"\text{avg\_time} = \text{total time} / n",
        r"\sum_{(x, y) \in D} f(x) = \sum_{i \in S, i \ne j} x_i",
    ],
)
def test_what_is_no_algebra_of_matrices_is_read_and_printed_back(formula: str) -> None:
    assert printed_back(parse_formula(formula, ["f"]), ["f"])


def test_a_change_of_a_matrix_is_one_symbol_unless_delta_stands_alone() -> None:
    assert parse_formula(r"\Delta W")[0].terms[0] == Name("W", marks=("Delta",))
    assert isinstance(parse_formula(r"\Delta W + \Delta")[0].terms[0].terms[0], Product)


def test_words_with_formulas_among_them_are_no_symbol() -> None:
    statements = parse_formula(r"y = x \text{ for all $x > 0$ in the set } S")
    assert [latex(each) for each in statements] == ["y = x", "x > 0", "S"]


def test_a_thousand_is_one_number() -> None:
    assert latex(parse_formula("N = 1,024,000")[0]) == "N = 1024000"
    assert latex(parse_formula("f(1,024) = g(1{,}024)", ["f", "g"])[0]) == "f(1, 024) = g(1024)"


def test_a_changed_tree_has_the_parts_that_it_has_now() -> None:
    (tree,) = parse_formula(r"(A + B_i)^T C = C")
    parts = [*walk(tree)]
    changed = mapped(tree, {Name("A"): Name("D")}.get)
    assert [*walk(tree)] == parts
    assert [each for each in walk(changed) if isinstance(each, Name)] == [
        *(Name("D"), Name("B", sub=(Slot("index", "i"),)), Name("C"), Name("C"))
    ]
    assert mapped(tree, {Name("D"): Name("A")}.get) is tree
    assert mapped(tree, {Slot("index", "i"): Slot("index", "j")}.get) != tree
    assert pickle.loads(pickle.dumps(changed)) == changed


@pytest.mark.parametrize(
    "written",
    [
        r"T = {} A + B",
        r"\begin{aligned} T = {} & A \\ {} & + B \end{aligned}",
        r"{} T = A + {} B",
    ],
)
def test_empty_braces_beside_a_sign_mean_nothing(written: str) -> None:
    assert parse_formula(written) == parse_formula("T = A + B")
