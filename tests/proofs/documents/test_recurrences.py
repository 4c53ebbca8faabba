# ruff: noqa: E501 (a text is one line)
"""Sums up to an index in documents: states, their recurrences, and decay."""

from __future__ import annotations

import pytest

from otimes.algebra.notation.affine import Affine, difference, moved
from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.tree import Slot, latex
from otimes.proofs.documents.check import check_text

HEAD = r"Let $k_i, v_i \in \mathbb{R}^m$ be columns and $\gamma \in \mathbb{R}$. "
TO_I = r"We set $S_i = \sum_{j \le i} v_j k_j^\top$. "
FROM_ONE = r"We set $S_i = \sum_{j=1}^{i} v_j k_j^\top$. "
FROM_ZERO = r"We set $S_i = \sum_{j=0}^{i} v_j k_j^\top$. "
BEFORE_I = r"We set $S_i = \sum_{j<i} v_j k_j^\top$. "
HERE = r"Then $S_i = S_{i-1} + v_i k_i^\top$."
NEXT = r"Then $S_{i+1} = S_i + v_{i+1} k_{i+1}^\top$."
LATE = r"Then $S_{i+1} = S_i + v_i k_i^\top$."
CLAIMS = [
    (TO_I + HERE, "proved"),
    (TO_I + NEXT, "proved"),
    (TO_I + LATE, "refuted"),
    (FROM_ONE + HERE, "proved"),
    (FROM_ONE + NEXT, "proved"),
    (FROM_ONE + r"Then $S_{i+2} = S_i + v_{i+1} k_{i+1}^\top + v_{i+2} k_{i+2}^\top$.", "proved"),
    (FROM_ZERO + HERE, "proved"),
    (FROM_ZERO + LATE, "refuted"),
    (BEFORE_I + HERE, "refuted"),
    (BEFORE_I + NEXT, "refuted"),
    (BEFORE_I + LATE, "proved"),
    (BEFORE_I + r"The output is $S_t k_t$, so $S_t k_t = \sum_{j<t} v_j (k_j^\top k_t)$.", "proved"),
    (BEFORE_I + r"The output is $S_t k_t$, so $S_t k_t = \sum_{j<t} v_j (k_t^\top v_j)$.", "refuted"),
    (r"Then $\sum_{j=0}^{i} v_j = \sum_{j=0}^{i-1} v_j + v_i$.", "proved"),
    (r"Then $\sum_{j \le i} \gamma^{i-j} v_j = \gamma \sum_{j<i} \gamma^{i-1-j} v_j + v_i$.", "proved"),
    (r"Then $\sum_{j \le i} \gamma^{i-j} v_j = \gamma \sum_{j<i} \gamma^{i-j} v_j + v_i$.", "refuted"),
]  # fmt: skip
FIRST_CASE = r"We have $x_n = \frac{b_n}{a_{nn}}, \quad x_j = \frac{1}{a_{jj}} \left(b_j - \sum_{k>j} a_{jk} x_k\right)$."
# It is not said what these count from together, or whether a 0 is a first index.
OPEN = [
    r"Then $\sum_{j=0}^{i} v_j = \sum_{j=1}^{i} v_j + v_0$.",
    r"Then $\sum_{j=0}^{i} v_j - v_0 = \sum_{j=1}^{i} v_j$.",
]


@pytest.mark.parametrize(("text", "verdict"), CLAIMS)
def test_the_last_equation_has_the_verdict(text: str, verdict: str) -> None:
    assert check_text(HEAD + text).equations[-1].verdict == verdict


@pytest.mark.parametrize("text", OPEN)
def test_an_unclear_first_index_is_left_open(text: str) -> None:
    assert check_text(HEAD + text).equations[-1].verdict not in ("proved", "refuted")


def test_letters_move_in_indices_exponents_and_ends_of_sums() -> None:
    (sum_,) = parse_formula(r"\sum_{j=1}^{i+1} \gamma^{i-j} v_j")[0].terms
    assert latex(moved(sum_, {"i": Affine("t", -1)})) == (r"\sum_{j=1}^{t} \gamma^{t-j-1} v_{j}")
    assert difference(Slot("expression", "i+j")) is None


def test_a_first_case_is_no_definition_of_the_others() -> None:
    assert check_text(FIRST_CASE).equations[-1].verdict == "definition"


def test_a_difference_above_a_rectangular_matrix_is_no_power() -> None:
    """It is the layer of a member, of which nothing else is said."""
    text = (
        r"Let $W \in \mathbb{R}^{m \times d}$. Then "
        r"$\sum_{k \le l} W^{l-k} W_k^\top = \sum_{k<l} W^{l-k} W_k^\top + W^0 W_l^\top$."
    )
    assert check_text(text).equations[-1].verdict == "undecided"


@pytest.mark.parametrize(
    ("recurrence", "written_out", "verdict"),
    [
        ("x^{l+1} = x^l + f^l(x^l)", r"x^L = x^0 + \sum_{l=0}^{L-1} f^l(x^l)", "definition"),
        ("x^{l+1} = x^l + f^l(x^l)", r"x^L = x^0 + \sum_{l=0}^{L} f^l(x^l)", "refuted"),
        ("x^{l+1} = x^l + f^l(x^l)", r"x^L = x^0 + \sum_{l=1}^{L} f^l(x^l)", "refuted"),
        ("x^{l+1} = x^l + f^l(x^l)", r"x^L = x^1 + \sum_{l=1}^{L-1} f^l(x^l)", "definition"),
        ("x_{t} = x_{t-1} + W u_t", r"x_n = x_0 + \sum_{t=1}^{n} W u_t", "definition"),
        ("x_{t} = x_{t-1} + W u_t", r"x_n = x_0 + \sum_{s=1}^{n-1} W u_s", "refuted"),
        ("x_{t} = x_{t-1} + W u_t", r"x_n = x_0 + \sum_{t=0}^{n-1} W u_{t+1}", "definition"),
        ("x_{t} = x_{t-1} + W u_t", r"x_n = x_0 + \sum_{t=0}^{n} V u_t", "definition"),  # another
    ],
)
def test_a_sum_that_unrolls_a_recurrence_ends_where_it_must(
    recurrence: str, written_out: str, verdict: str
) -> None:
    found = check_text(f"The states are ${recurrence}$.\n\nSo ${written_out}$.").equations[-1]
    assert found.verdict == verdict
    if verdict == "refuted":
        again = check_text(f"The states are ${recurrence}$.\n\nSo ${found.suggestion}$.")
        assert again.equations[-1].verdict == "definition"


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"S_2 = \gamma v_1 k_1^\top + v_2 k_2^\top", "proved"),
        (r"S_2 = v_1 k_1^\top + \gamma v_2 k_2^\top", "refuted"),
        (r"S_1 = v_1 k_1^\top", "proved"),
    ],
)
def test_a_recurrence_is_unrolled_to_where_it_starts(claim: str, verdict: str) -> None:
    said = r"The state is $S_i = \gamma S_{i-1} + v_i k_i^\top$ with $S_0 = 0$. "
    assert check_text(f"{HEAD}{said}Then ${claim}$.").equations[-1].verdict == verdict


@pytest.mark.parametrize(("index", "verdict"), [("j", "proved"), ("i", "refuted")])
def test_an_index_that_nothing_binds_has_one_range(index: str, verdict: str) -> None:
    said = r"Let $x_i \in \mathbb{R}^d$ and let $W$ be $d \times d$. "
    claim = rf"$W \sum_{{j \le i}} A_{{ij}} x_j = \sum_{{j \le i}} A_{{ij}} W x_{index}$"
    assert check_text(said + claim).equations[-1].verdict == verdict


LOGITS = r"""# Logits

The logits are $L = W M$, with $W \in \mathbb{R}^{v \times d}$ and $M \in \mathbb{R}^{d \times n}$.

# States

Let $x^l \in \mathbb{R}^d$ and $a^l \in \mathbb{R}^d$, with $x^L = x^0 + \sum_{l=1}^L a^l$. Hence
"""


@pytest.mark.parametrize(
    ("right", "verdict"),
    [
        (r"W x^0 + \sum_{l=1}^L W a^l", "proved"),
        (r"W x^0 + \sum_{l=1}^{L-1} W a^l", "refuted"),
        (r"W x^0 + \sum_{l=1}^{L-1} W a^l + W a^L", "proved"),
        (r"W x^0 + \sum_{l=1}^{L-1} W a^l - W a^L", "refuted"),
    ],
)
def test_a_sum_up_to_a_capital_letter_has_that_many_terms(right: str, verdict: str) -> None:
    """What the letter stands for in another section is no end of a sum."""
    assert check_text(f"{LOGITS}$W x^L = {right}$.").equations[-1].verdict == verdict


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"y_j = \sum_k A_{jk} x_k", "proved"),
        (r"y_j = \sum_k A_{kj} x_k", "refuted"),
        (r"x_i^\top y_j = \sum_k A_{jk} x_i^\top x_k", "proved"),
    ],
)
def test_a_definition_binds_no_index_of_the_claim(claim: str, verdict: str) -> None:
    said = r"Let $x_i \in \mathbb{R}^d$, let $A$ be $n \times n$ and $y_i = \sum_j A_{ij} x_j$. "
    assert check_text(f"{said}Then ${claim}$.").equations[-1].verdict == verdict


DECAY = r"""
Keys $k_j$ are in $\mathbb{R}^k$, values $v_j$ in $\mathbb{R}^p$, and $\lambda \in \mathbb{R}$. Let $Z_0 = 0$ and
$Z_t = \lambda Z_{t-1} + v_t k_t^\top$.
"""


@pytest.mark.parametrize(
    ("words", "claim", "verdict"),
    [
        ("Then", r"\sum_{j=1}^{t} \lambda^{t-j} v_j k_j^\top", "proved"),
        ("Then", r"\sum_{j=1}^{t-1} \lambda^{t-j} v_j k_j^\top", "refuted"),
        ("Then", r"\sum_{j=1}^{t} \lambda^{t-j+1} v_j k_j^\top", "refuted"),
        ("Then", r"\sum_{j=1}^{t} v_j k_j^\top", "refuted"),
        ("It is not", r"\sum_{j=1}^{t} v_j k_j^\top", "needs-hypothesis"),
    ],
)
def test_a_closed_sum_is_compared_with_its_recurrence(words: str, claim: str, verdict: str) -> None:
    assert check_text(f"{DECAY} {words} $Z_t = {claim}$.").equations[-1].verdict == verdict


def test_the_sizes_of_an_example_hold_in_its_paragraph_only() -> None:
    text = r"""
As an example take $n = 3$, $d = k = 2$.

Let $e \in \mathbb{R}^d$ be the column of ones, $C = I - \frac{1}{d} e e^\top$ and $x \in \mathbb{R}^d$. Then
$\| C x \|^2 = x^\top C x$.
"""
    assert check_text(text).equations[-1].verdict == "proved"


@pytest.mark.parametrize(("last", "verdict"), [("L-1", "definition"), ("L", "refuted")])
def test_a_layer_below_a_capital_is_no_label(last: str, verdict: str) -> None:
    text = (
        r"Let $F_l \in \mathbb{R}^{n \times d}$ and $X_{l+1} = X_l + F_l$. Then "
        rf"$X_L = X_0 + \sum_{{l=0}}^{{{last}}} F_l$."
    )
    assert check_text(text).equations[-1].verdict == verdict
