# ruff: noqa: E501 (a text is one line)
"""Equations about symbols that a text does not declare: what all their readings have in common."""

from __future__ import annotations

import pytest

from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.symbols import Symbols
from otimes.proofs.documents.check import check_text
from otimes.proofs.documents.proving.every_reading import readings

WEIGHTS = r"Let $M, N \in \mathbb{R}^{d \times d}$, $W_Q, W_K, W_V \in \mathbb{R}^{d \times k}$, $W_O \in \mathbb{R}^{k \times d}$."
CLAIMS = [
    # false for columns, rows and numbers alike
    (r"Then $x_i M x_j^\top = x_j M x_i^\top$.", "refuted"),
    (r"Then $x_i M x_j^\top = x_j M^\top x_i^\top$.", "proved"),
    (r"Then $(x + y)^\top M (x + y) = x^\top M x + x^\top M y + x^\top M y + y^\top M y$.", "refuted"),
    (r"Then $(x + y)^\top M (x + y) = x^\top M x + x^\top M y + y^\top M x + y^\top M y$.", "proved"),
    (r"Then $\sum_{j \le i} a_{ij} x_j M = \sum_{j \le i} a_{ji} x_j M$.", "refuted"),
    # the text may assume something that is not read
    (r"For symmetric patterns, $\sum_{j \le i} a_{ij} x_j M = \sum_{j \le i} a_{ji} x_j M$.", "undecided"),
    # no reading of x and y conforms
    (r"Then $x W_Q W_K^\top y = x W_Q^\top W_K y$.", "shape"),
    (r"Then $x W_Q^\top = x W_Q^\top$.", "proved"),
    # the only reading that conforms has a small letter for a matrix
    (r"Then $\mathbf{u} \mathbf{v}^\top = \mathbf{u}^\top \mathbf{v}$.", "undecided"),
    # the product of the weights of a head maps states to states
    (r"Then $W_{OV} = W_V W_O$.", "definition"),
    (r"Then $W_{OV} = W_O W_V$.", "shape"),
    (r"Then $W_{QK} = W_Q W_K^\top$.", "definition"),
    (r"Then $W_{QK} = W_Q^\top W_K$.", "shape"),
    # whole numbers are not rounded
    (r"There are $2^3 = 8$ paths.", "proved"),
    (r"There are $2^3 = 6$ paths.", "refuted"),
    (r"It is $2^{0.5} = 1.41$.", "undecided"),
    # true for no sizes but some
    (r"Let $P = I - \frac{1}{d} \mathbf{1} \mathbf{1}^\top$. Then $\mathrm{tr}(P) = d - 1$.", "proved"),
    (r"Let $P = I - \frac{1}{d} \mathbf{1} \mathbf{1}^\top$. Then $\mathrm{tr}(P) = 1$.", "refuted"),
    (r"Let $P = I - \frac{1}{d} \mathbf{1} \mathbf{1}^\top$. Then $P \mathbf{1} = \mathbf{1}$.", "refuted"),
    # a condition under which the sides are defined says nothing more
    (r"If $M$ and $N$ are invertible, $(M N)^{-1} = M^{-1} N^{-1}$.", "refuted"),
    (r"Then $\langle x, M y \rangle = \langle M x, y \rangle$.", "refuted"),
    (r"Then $\langle x, M y \rangle = \langle M^\top x, y \rangle$.", "proved"),
]  # fmt: skip
CORRECT = [
    r"With a gain $\gamma \in \mathbb{R}^d$ and $W \in \mathbb{R}^{d \times k}$ we fold $W' = \mathrm{diag}(\gamma) W$.",
    r"Let $x \in \mathbb{R}^{1 \times d}$. Then $\mathrm{RMS}(x) = \sqrt{\frac{1}{d} x x^\top}$.",
    r"Let $W_{enc} \in \mathbb{R}^{m \times d}$, $W_{dec} \in \mathbb{R}^{d \times m}$. Then $W_{enc}^2 W_{dec}^1 \in \mathbb{R}^{m \times m}$.",
    r"Let $W_O^h \in \mathbb{R}^{k \times d}$. We stack $W_O = \begin{bmatrix} W_O^1 \\ W_O^2 \end{bmatrix}$.",
    """Let $W \\in \\mathbb{R}^{d \\times m}$, $A \\in \\mathbb{R}^{n \\times n}$ and $X \\in \\mathbb{R}^{n \\times d}$.

The layer is $(I + A \\otimes W) x = x + (A \\otimes W) x$.""",
]  # fmt: skip


@pytest.mark.parametrize(("claim", "verdict"), CLAIMS)
def test_a_claim_about_undeclared_symbols_has_the_verdict_of_all_readings(
    claim: str, verdict: str
) -> None:
    found = check_text(f"{WEIGHTS}\n\n{claim}").equations[-1]
    assert found.verdict == verdict, found.why


def test_no_correct_equation_is_accused() -> None:
    found = [e for text in CORRECT for e in check_text(text).equations]
    assert [(e.tex, e.why) for e in found if e.verdict in ("refuted", "shape")] == []


def test_a_pattern_that_is_one_number_proves_nothing_of_matrices() -> None:
    text = r"""The pattern is $A = \mathrm{softmax}(x^T W x)$.

Then $\mathrm{tr}(A \otimes B) = \mathrm{tr}(A B)$."""
    assert check_text(text).equations[-1].verdict == "refuted"


def test_a_reading_has_columns_or_rows_and_what_is_transposed_is_no_number() -> None:
    (statement,) = parse_formula(r"u^\top M v = c")
    kinds = [kinds for kinds, _ in readings(*statement.terms, Symbols())]
    assert {each["u"] for each in kinds} == {"column", "row", "matrix"}
    assert {each["v"] for each in kinds} == {"column", "row", "matrix", "scalar"}


ROTARY = [
    (r"Then $R_m^\top R_n = R_{n-m}$.", False),
    (r"Then $R_m^\top R_n = R_{m-n}$.", True),
    (r"Then $R_\alpha R_\beta = R_{\alpha+\beta}$.", False),
    (r"Then $R_\alpha R_\beta = R_{\alpha-\beta}$.", True),
    (r"Then $(R_m q)^\top (R_n k) = q^\top R_{n-m} k$.", False),
    (r"Then $(R_m q)^\top (R_n k) = q^\top R_{m-n} k$.", True),
    (r"Then $R_\theta^\top R_\theta = I$ and $R_\theta^\top = R_{-\theta}$.", False),
    (r"Then $R_1 R_2 = R_3$ and $R_i R_j = R_k$.", False),  # the indices may be labels
    (r"Then $e^{im\theta} e^{-in\theta} = e^{i(m-n)\theta}$.", False),
    (r"Then $e^{im\theta} e^{-in\theta} = e^{i(n-m)\theta}$.", True),
    (r"$$R = \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}$$", False),
    (r"$$R = \begin{pmatrix} \cos\theta & \sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}$$", True),
    (r"$$R_m = \begin{pmatrix} \cos m\theta & \sin m\theta \\ -\sin m\theta & \cos m\theta \end{pmatrix}$$", False),
    (r"$$R_m = \begin{pmatrix} \cos m\theta & \sin m\theta \\ \sin m\theta & \cos m\theta \end{pmatrix}$$", True),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "wrong"), ROTARY)
def test_rotations_add_their_angles(claim: str, wrong: bool) -> None:
    found = check_text(f"Rotary embeddings turn queries and keys.\n\n{claim}").equations
    assert any(e.verdict == "refuted" for e in found) == wrong


@pytest.mark.parametrize(
    "said",
    [
        r"$W_Q$, $W_K$ and $W_V$ of shape $k \times d$",
        r"$W_Q, W_K, W_V$ are $k \times d$",
        r"The weights $W_Q$, $W_K$, $W_V$ all have shape $k \times d$",
        r"The shape of $W_Q$ is $k \times d$, the shape of $W_K$ is $k \times d$, and $W_V$ is $k \times d$",
    ],
)
def test_shapes_are_said_in_several_ways(said: str) -> None:
    claims = r"Then $W_Q W_K^\top = W_V W_K^\top$ and $W_Q W_K = W_V W_K$."
    right, wrong = check_text(f"{said}.\n\n{claims}").equations[-2:]
    assert right.verdict != "shape"
    assert wrong.verdict == "shape", wrong.why


READ_IN_THE_TEXT = [
    # a condition that defines a symbol, and nothing more
    (r"If $X = E + P$ with $E, P \in \mathbb{R}^{n \times d}$, then $X M X^\top = E M E^\top + E M P^\top + P M P^\top$.", "refuted"),
    (r"If $E$ and $P$ commute, then $E P M = P E M$.", "needs-hypothesis"),
    # a chain that ends with a membership
    (r"Let $Y = [y_1, \dots, y_n] \in \mathbb{R}^{d \times n}$. Then $Y M + M Y = 2 M Y$.", "shape"),
    # the code and the function that computes it have one name
    (r"The code $f \in \mathbb{R}^k$ is $f(z) = W_V^\top z$ for $z \in \mathbb{R}^d$. Then $W_O^\top f(z) = W_O^\top W_V^\top z$.", "proved"),
    # a member of a family that is declared with its index is no row of a matrix
    (r"Let $A_\ell \in \mathbb{R}^{d \times d}$ and $W_U \in \mathbb{R}^{v \times d}$. Then $W_U A_\ell h = A_\ell W_U h$.", "shape"),
    # a bound of a rank after a definition
    (r"Let $N = W_V W_O$, a matrix of rank at most $n$.", "refuted"),
    # two symbols that a number tells apart
    (r"For square $F_1$ and $F_2$, $(I + F_2)(I + F_1) = I + F_1 + F_2 + F_1 F_2$.", "refuted"),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "verdict"), READ_IN_THE_TEXT)
def test_what_the_text_says_before_an_equation_is_used(claim: str, verdict: str) -> None:
    given = r"Let $X \in \mathbb{R}^{n \times d}$."
    found = check_text(f"{WEIGHTS} {given}\n\n{claim}").equations[-1]
    assert found.verdict == verdict, found.why


def test_a_space_after_an_equation_is_no_condition() -> None:
    text = (
        WEIGHTS + "\n\n" + r"Then $(M N)^\top = M^\top N^\top$ for $N \in \mathbb{R}^{d \times d}$."
    )
    assert [e.verdict for e in check_text(text).equations[-2:]] == ["refuted", "definition"]


CACHE = r"Let $K_t \in \mathbb{R}^{h \times t}$, $B \in \mathbb{R}^{h \times d}$, $C \in \mathbb{R}^{h \times h}$, $w \in \mathbb{R}^h$ and $v \in \mathbb{R}^d$. "


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [
        (r"K_{t+1} = \begin{bmatrix} K_t & w \end{bmatrix}", "definition"),
        (r"K_{t+1} = \begin{bmatrix} K_t \\ w \end{bmatrix}", "shape"),
        (r"K_{t+1} = \begin{bmatrix} K_t & B x \end{bmatrix}", "definition"),
        ("y = B x + w", "definition"),
        ("C (B x + w) = C B x + C w", "proved"),
        ("C (B x + v) = C B x + C v", "shape"),  # whatever x is
    ],
)
def test_a_term_that_conforms_in_no_reading_is_a_shape_error(equation: str, verdict: str) -> None:
    assert check_text(f"{CACHE}${equation}$.").equations[-1].verdict == verdict


SECTIONS = r"""# Weights

Let $W \in \mathbb{R}^{m \times n}$ and $x \in \mathbb{R}^d$.

# Blocks

Let $Q_l \in \mathbb{R}^{d \times k}$. The block is $V = Q_l^\top W Q_l$, and $f(x) = \sigma(Q_l x)$.
"""


@pytest.mark.parametrize(
    "text",
    [
        # letters that another section declares
        SECTIONS,
        r"Let $u \in \mathbb{R}^n$. The reflection is $H_u = I - 2 u u^*$.",
        r"Let $q, k \in \mathbb{R}^d$. $q^\top k = \begin{bmatrix} q_1^\top k_1 & q_1^\top k_2 \end{bmatrix}$.",
    ],
)
def test_a_definition_in_other_letters_is_not_accused(text: str) -> None:
    assert check_text("Text on $n$.\n\n" + text).passed


def test_a_function_of_which_nothing_is_said_may_have_values_of_several_shapes() -> None:
    text = r"""Let $W_1 \in \mathbb{R}^{q \times d}$ and $W_2 \in \mathbb{R}^{d \times q}$. If $r_k^\top$ denotes
the $k$-th row of $W_1$ and $w_k$ denotes the $k$-th column of $W_2$, this is
$W_2 \, \phi(W_1 x) = \sum_{k=1}^{q} \phi(r_k^\top x) \, w_k$."""
    assert check_text(text).equations[-1].verdict not in ("shape", "refuted")


def test_columns_that_sum_to_one_are_a_hypothesis() -> None:
    text = r"Let $A \in \mathbb{R}^{n \times n}$, where $e \in \mathbb{R}^n$ denotes the column of ones. "
    claim = r"Every column of $A$ sums to one, $e^\top A = e^\top$."
    found = check_text(text + claim).equations[-1]
    assert (found.verdict, "column-stochastic" in found.why) == ("needs-hypothesis", True)


def test_plain_ones_have_as_many_entries_as_they_are_averaged_over() -> None:
    text = r"We set $P = I - \frac{1}{d} 1 1^\top$ with $x \in \mathbb{R}^d$. Then $P^2 = P$."
    assert check_text(text).equations[-1].verdict == "proved"


NEURONS = r"Let $W \in \mathbb{R}^{f \times d}$, $M \in \mathbb{R}^{d \times f}$, $x \in \mathbb{R}^d$, and let $w_k^\top$ be the $k$-th row of $W$ and $v_k$ the $k$-th column of $M$. "
AS_SUM = r"$$M \phi(W x) = \sum_{k=1}^{f} \phi(w_k^\top x) v_k$$"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (NEURONS + AS_SUM, "proved"),  # it is a function of vectors and of numbers
        (NEURONS + r"Let $\phi$ act on each entry. " + AS_SUM, "proved"),
        (NEURONS + r"Here $\phi$ is the activation. " + AS_SUM.replace("v_k", "w_k"), "refuted"),
        (NEURONS + r"A neuron writes $v_k$. " + AS_SUM.replace("v_k", "w_k"), "refuted"),
        (NEURONS + r"The feature map is $\phi$. " + AS_SUM.replace("v_k", "w_k"), "undecided"),
    ],
)
def test_a_function_of_a_vector_and_of_numbers_acts_on_each_entry(text: str, verdict: str) -> None:
    assert check_text(text).equations[-1].verdict == verdict


CENTRED = r"Let $C = I - \frac{1}{d} \mathbf{1}\mathbf{1}^\top$ be the $d \times d$ centering matrix. Then $$C^2 = I - \frac{K}{d} \mathbf{1}\mathbf{1}^\top + \frac{1}{d^2} \mathbf{1}\mathbf{1}^\top\mathbf{1}\mathbf{1}^\top$$"


@pytest.mark.parametrize(("factor", "verdict"), [("2", "proved"), ("1", "refuted")])
def test_columns_of_ones_beside_others_are_as_long(factor: str, verdict: str) -> None:
    assert check_text(CENTRED.replace("K", factor)).equations[-1].verdict == verdict
