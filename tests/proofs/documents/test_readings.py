# ruff: noqa: E501 (a text is one line here)
"""Correct mathematics that looks like an error is not accused, and what is read newly is decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from otimes.proofs.documents.check import check_document, check_text

CORRECT = [
    r"Let $A \in \mathbb{R}^{n \times n}$ and $v \in \mathbb{R}^n$ with $A v = \lambda v$. Then $A A v = \lambda A v$ and $\lambda^2 v = A A v$.",
    r"For probabilities $p + q = 1$ and $A, B \in \mathbb{R}^{n \times n}$: $p A B + q A B = A B$, $p A + q A = A$.",
    r"Let $W \in \mathbb{R}^{m \times d}$, $x \in \mathbb{R}^d$. We write $h = W x$; in code `x @ W.T`, so $h^\top = x^\top W^\top$ and $h = x W^\top$.",
    r"Let $Q, K \in \mathbb{R}^{n \times d}$, $q \in \mathbb{R}^d$. The scores are $K q$; batch: $Q K^\top$. For one query $s = q K^\top$.",
    r"Let $J = \begin{bmatrix} 0 & 1 \\ 1 & 0 \end{bmatrix}$. $J^2 = I$, $J A J = J A J$ and $J J^\top = I$, $J^\top = J$.",
    r"Take $A = \begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}$ and $B = \begin{bmatrix} 0 & 1 \\ 1 & 0 \end{bmatrix}$. Then $AB = \begin{bmatrix} 2 & 1 \\ 4 & 3 \end{bmatrix}$ and $\operatorname{tr}(A) = 5$. Now let $A = \begin{bmatrix} 2 & 0 \\ 0 & 2 \end{bmatrix}$. Then $A B = B A$ and $\operatorname{tr}(A) = 4$.",
    r"With $d = 4$ and $P = I - \frac{1}{d}\mathbf{1}\mathbf{1}^\top$ in $\mathbb{R}^{4 \times 4}$, $\operatorname{tr}(P) = 3$.",
    r"Let $P = I - \frac{1}{d}\mathbf{1}\mathbf{1}^\top \in \mathbb{R}^{d \times d}$. Then $\operatorname{tr}(P) = d - 1$ and $P \mathbf{1} = 0$; $P^2 = P$; $\mathbf{1}^\top P = 0^\top$.",
    r"Let $\mathbf{1} \in \mathbb{R}^n$. $X \in \mathbb{R}^{n \times d}$. The mean is $\mu = \frac{1}{n} X^\top \mathbf{1}$ and $\mathbf{1}^\top \mathbf{1} = n$. Also $X \mathbf{1} = X \mathbf{1}$ with the ones of the other size.",
    r"Let $C = W_Q W_K^\top$ with $W_Q, W_K \in \mathbb{R}^{d \times k}$. Then $C_{ab} = \sum_{e=1}^k (W_Q)_{ae} (W_K)_{be}$ and $C_{ab} = \sum_{e} W_{Q,ae} W_{K,be}$.",
    r"Let $a_{ij}$ be weights with $\sum_j a_{ij} = 1$, $x_j, b \in \mathbb{R}^d$. Then $\sum_j a_{ij} (x_j + b) = \sum_j a_{ij} x_j + b$.",
    r"Let $A \in \mathbb{R}^{n\times n}$ be row-stochastic and $\eta > 0$. $\eta A \mathbf{1} = \eta \mathbf{1}$.",
    r"Let $N \in \mathbb{R}^{n \times n}$ with $N^2 = 0$. Then $\operatorname{tr}(N) = 0$ and $\operatorname{rank}(N) \le n/2$.",
    r"Let $U \in \mathbb{R}^{n \times r}$, $U^\top U = I$, $P = U U^\top$. Then $\operatorname{rank}(P) \le r$, $P P = P$, $P U = U$ and $\|P x\|^2 \le \|x\|^2$.",
    r"Let $q_i, k_j \in \mathbb{R}^{d}$, then $s_{ij} = q_i \cdot k_j = q_i^\top k_j = k_j^\top q_i$.",
    r"Let $x_i \in \mathbb{R}^{1 \times d}$ and $W \in \mathbb{R}^{d \times d}$. $s_{ij} = x_i W x_j^\top$, and with $M = W^\top$, $s_{ji} = x_i M x_j^\top$.",
    r"A gain $\gamma \in \mathbb{R}^d$, $x \in \mathbb{R}^d$: $\gamma \odot x = \operatorname{diag}(\gamma) x$; $c (\gamma \odot x) = \gamma \odot (c x)$.",
    r"If $\alpha$ commutes with everything, $\alpha A B = A \alpha B$; $\alpha (A+B) = \alpha A + \alpha B$ for $A,B \in \mathbb{R}^{n \times n}$.",
    r"Let $\Lambda$ be diagonal and $A \in \mathbb{R}^{n \times n}$ such that $A \Lambda = \Lambda A$. Then $\theta A \Lambda = \theta \Lambda A$.",
    r"$S \in \mathbb{R}^{n \times n}$, $A = \mathrm{softmax}(S)$; $A \mathbf{1} = \mathbf{1}$; columns: $P = \mathrm{softmax}(S^\top)^\top$, $\mathbf{1}^\top P = \mathbf{1}^\top$.",
    r"$c \in \mathbb{R}^{n}$, $S \in \mathbb{R}^{n\times n}$. Attention over columns: $\mathrm{softmax}(S + \mathbf{1} c^\top) = \mathrm{softmax}(S)$.",
    r"$x \in \mathbb{R}^{nd}$, $x_i \in \mathbb{R}^d$, $A \in \mathbb{R}^{n \times n}$, $W \in \mathbb{R}^{d \times d}$: $y = (A \otimes W) x$ and $y_i = \sum_j A_{ij} W x_j$; $((A \otimes W) x)_i = \sum_j A_{ij} W x_j$.",
    r"$X \in \mathbb{R}^{n \times d}$, $W \in \mathbb{R}^{d \times m}$: $(X W)_i = X_i W$ and $(XW)_{ij} = X_i W_j$.",
    r"$\|A\|_F = \sqrt{\operatorname{tr}(A^\top A)}$, $\|A\|_F = \|A^\top\|_F$, $\|2 A\|_F = 2 \|A\|_F$ for $A \in \mathbb{R}^{n \times n}$.",
    r"Let $R \in \mathbb{R}^{2 \times 2}$ be $R = \begin{bmatrix} c & -s \\ s & c \end{bmatrix}$ with $c^2 + s^2 = 1$. $R^\top R = I$.",
    r"For $W_V \in \mathbb{R}^{d \times k}$ and $W_O \in \mathbb{R}^{k \times d}$, $r = x W_V$ and $o = r W_O$, with $x \in \mathbb{R}^{d}$, so $o = x W_V W_O$, that is $o^\top = W_O^\top W_V^\top x^\top$.",
    r"For $W_V \in \mathbb{R}^{d \times k}$ and $W_O \in \mathbb{R}^{k \times d}$, and columns $x \in \mathbb{R}^{d}$: $o = W_O^\top W_V^\top x$; numpy writes $x W_V W_O$.",
    r"$W_E \in \mathbb{R}^{v \times d}$. The token $t$ has the one-hot vector $e_t \in \mathbb{R}^v$ and the embedding $e_t^\top W_E$, or $W_E^\top e_t$, or $W_E[t]$, $x_t = W_E[t,:]$.",
    r"Let $f(x) = A x$ for $A \in \mathbb{R}^{n\times n}$ then $f(x + y) = f(x) + f(y)$ and $f(\alpha x) = \alpha f(x)$.",
    r"LayerNorm: $\mathrm{LN}(x) = \gamma \odot \frac{x - \mu}{\sigma} + \beta$. $\mathrm{LN}(x + c \mathbf{1}) = \mathrm{LN}(x)$. $\mathrm{LN}(a x) = \mathrm{LN}(x)$ for $a > 0$.",
]


def test_nothing_that_is_correct_is_accused() -> None:
    accused = [
        (each.tex, each.why)
        for text in CORRECT
        for each in check_text(text).equations
        if each.verdict in ("refuted", "shape", "unread")
    ]
    assert accused == []


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (r"Let $P = I - \frac{1}{d} \mathbf{1}\mathbf{1}^\top$, $X \in \mathbb{R}^{n \times d}$. $P P = P$", "proved"),
        (r"Let $P = I - \frac{1}{d} \mathbf{1}\mathbf{1}^\top$, $X \in \mathbb{R}^{n \times d}$. $\operatorname{tr}(P) = d$", "refuted"),
        (r"Let $A \in \mathbb{R}^{n \times n}$. $\sum_{j} A_{ij} = (A \mathbf{1})_i$", "proved"),
        (r"Let $A \in \mathbb{R}^{n \times n}$. $\sum_{i} A_{ij} = (A \mathbf{1})_j$", "refuted"),
        (r"Let $A \in \mathbb{R}^{n \times n}$, $u, v \in \mathbb{R}^{n \times 1}$. $(1 + v^\top A u) A = A + A (v^\top A u)$", "proved"),
        (r"Let $A, B \in \mathbb{R}^{n \times n}$. $-\eta A B = -\eta B A$", "refuted"),
        (r"Let $A, B \in \mathbb{R}^{n \times n}$. $-\eta A B = - A B \eta$", "proved"),
        (r"Let $J = \begin{bmatrix} 0 & -1 \\ 1 & 0 \end{bmatrix}$. $J J = -I$", "proved"),
        (r"Let $J = \begin{bmatrix} 0 & -1 \\ 1 & 0 \end{bmatrix}$. $J^\top J = -I$", "refuted"),
        (r"Let $U \in \mathbb{R}^{n \times r}$, $U^\top U = I$, $P = U U^\top$. $P P = P$", "needs-hypothesis"),
        (r"Let $x_i \in \mathbb{R}^d$, $W_Q, W_K \in \mathbb{R}^{k \times d}$. $s_{ij} = x_i^\top W_Q W_K^\top x_j$", "shape"),
        (r"Let $S, C \in \mathbb{R}^{n \times n}$. $\mathrm{softmax}(S + C) = \mathrm{softmax}(S)$", "refuted"),
        (r"Let $S, C \in \mathbb{R}^{n \times n}$. $\mathrm{softmax}_{\text{rows}}(S C) = \mathrm{softmax}_{\text{rows}}(S) C$", "refuted"),
        (r"For position $m$, $R_m = R(m \theta)$, $q \in \mathbb{R}^{2 \times 1}$. $R_m^\top R_n = R_{n-m}$. $q^\top R_m R_n q = q^\top R_{n-m} q$", "refuted"),
    ],
)  # fmt: skip
def test_what_is_read_is_decided(text: str, verdict: str) -> None:
    assert check_text(text).equations[-1].verdict == verdict


def test_a_comment_may_stand_at_the_end_of_a_line_and_give_several_hypotheses(
    tmp_path: Path,
) -> None:
    text = r"""\begin{document}
Let $A, B \in \mathbb{R}^{n \times n}$. % otimes: given: A 1 = 1; B 1 = 1
Half of it is 50\% otimes: $A B \mathbf{1} = \mathbf{1}$.
\end{document}
"""
    (tmp_path / "a.tex").write_text(text)
    (last,) = [e for e in check_document(tmp_path / "a.tex").equations if e.line == 3]
    assert last.verdict == "proved"
    assert len(last.hypotheses) == 2


VECTOR = r"Let $x \in \mathbb{R}^d$. "
SCALED = r"$\mathrm{ReLU}(\alpha x) = \alpha\, \mathrm{ReLU}(x)$."


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (r"Let $\alpha > 0$. Then ", "proved"),
        (r"Let $\alpha \in \mathbb{R}_{>0}$. Then ", "proved"),
        (r"With $\alpha \in (0, 1)$, ", "proved"),
        (r"If $0 \le \alpha < 1$, then ", "proved"),
        ("If $\\alpha \\ge 0$, then this vanishes.\n\nIn general, ", "refuted"),
        (r"Let $\alpha < 1$. Then ", "refuted"),
        (r"Let $\alpha \ne 0$. Then ", "refuted"),
        (
            "If $\\beta$ is known, this is near.\n\n# Later\n\nLet $\\alpha > 0$.\n\n# Last\n\n",
            "refuted",
        ),
        (r"If $\alpha > 0$, it stays. If $\alpha < 0$, then ", "undecided"),
        (r"Let $\alpha > -1$. Then ", "refuted"),
        (r"The entries are small, hence $\alpha > 0$. And ", "undecided"),
    ],
)
def test_the_sign_of_a_number_is_used_where_it_is_declared(said: str, verdict: str) -> None:
    equation = check_text(VECTOR + said + SCALED).equations[-1]
    assert equation.verdict == verdict
    assert ("(line 1)" in equation.why) == (verdict == "proved")


EIGEN = (
    r"Suppose that $\Sigma = E \Lambda E^\top$, where $E \in \mathbb{R}^{p \times p}$ is orthogonal, "
    r"$E^\top E = E E^\top = I_p$, and $\Lambda$ is diagonal with positive entries. "
    r"We set $Z = E \Lambda^{-1/2} E^\top$. "
)
CENTRED = (
    r"Let $x \in \mathbb{R}^{1 \times d}$ and $J^\top = J$. The mean is subtracted by a linear map:"
    r" $$x - \frac{1}{d} x \mathbf{1} \mathbf{1}^\top = x J, \qquad J = I_d - \frac{1}{d} "
    r"\mathbf{1} \mathbf{1}^\top.$$"
)
UNIT = (
    r"Let $x \in \mathbb{R}^d$ and let $r \in \mathbb{R}^d$ be a direction. "
    r"Let $r$ have unit norm, $r^\top r = 1$; "
)
ROTATED = (
    r"To see this, suppose $\vec{R}$ is an arbitrary orthogonal rotation matrix, satisfying "
    r"$\vec{R} \vec{R}^T = \vec{I}$. Then $\vec{W} \vec{R} \vec{R}^T \vec{W}^T = \vec{W} \vec{W}^T$."
)
LAYERS = (
    r"Let $X^1 = X^0 + A^1 X^0 W^1$ with $X^0 \in \mathbb{R}^{n \times d}$. Let $S = X^0 M (X^0)^\top$."
    r" The scores of layer 2 are $S^2 = X^1 M (X^1)^\top$."
)


@pytest.mark.parametrize(
    ("text", "at", "verdict"),
    [
        (EIGEN, 2, "definition"),
        (EIGEN + r"Then $Z E = E \Lambda^{-1/2}$.", -1, "proved"),
        (EIGEN + r"Then $Z Z = E \Lambda^{-1} E^\top$.", -1, "proved"),
        (EIGEN + r"Then $Z Z = E \Lambda E^\top$.", -1, "undecided"),
        (CENTRED, 2, "proved"),
        (UNIT + r"then $x - r r^\top x = (I_d - r r^\top) x$.", -1, "proved"),
        (ROTATED, 0, "definition"),
        (ROTATED, -1, "proved"),
        (LAYERS, -1, "definition"),
        (r"Since $\Phi(-a) = 1 - \Phi(a)$, the sum is 1.", -1, "definition"),
    ],
)
def test_what_a_text_says_of_symbols_is_used(text: str, at: int, verdict: str) -> None:
    assert check_text(text).equations[at].verdict == verdict


COLUMNS = (
    r"Activations are columns $x \in \mathbb{R}^{d}$. Writing $d_k$ for the columns of "
    r"$W_d \in \mathbb{R}^{d \times m}$, $\hat{x} = \sum_{k=1}^m f_k d_k$. "
    r"Let $W_U \in \mathbb{R}^{v \times d}$. "
)
UPDATE = (
    r"Replace $M \in \mathbb{R}^{d \times d}$ by $M + s P Q^\top$ with "
    r"$P, Q \in \mathbb{R}^{d \times q}$ and a number $s$. "
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (COLUMNS + r"Then $W_U (x + \alpha d_k) - W_U x = \alpha W_U d_k$.", "proved"),
        (COLUMNS + r"Then $W_U (x + \alpha d_k) - W_U x = \alpha d_k$.", "shape"),
        (UPDATE + r"Then $(M + s P Q^\top) P - M P = s P Q^\top P$.", "proved"),
        (UPDATE + r"Then $(M + s P Q^\top) P - M P = P Q^\top P$.", "refuted"),
    ],
)
def test_a_missing_factor_is_found_where_the_kinds_are_said(text: str, verdict: str) -> None:
    assert check_text(text).equations[-1].verdict == verdict


def test_a_table_of_notation_counts_in_every_section() -> None:
    table = (
        "| symbol | shape |\n|---|---|\n| $X$ | $n \\times d$ |\n| $W_Q, W_K$ | $d \\times k$ |\n"
    )
    claim = r"Then $X W_Q^\top W_K X^\top$ has one entry for each pair."
    text = f"# {{}}\n\n{table}\n# A head\n\n{claim}\n"
    assert check_text(text.format("Conventions")).equations[-1].verdict == "shape"
    intro = "# Introduction\n\nLet $n > 0$.\n\n" + text.format("An example")
    assert check_text(intro).equations[-1].verdict == "undecided"


def test_the_sign_of_a_number_counts_from_where_it_is_declared() -> None:
    text = VECTOR + SCALED + "\n\nNow let $\\alpha > 0$."
    assert check_text(text).equations[1].verdict == "refuted"
    where = VECTOR + SCALED.rstrip(".") + r", where $\alpha > 0$."
    assert check_text(where).equations[1].verdict == "proved"


def test_many_formulas_before_an_equation_are_read_once() -> None:
    """A pattern with two ways to pass each formula would take 2^n steps."""
    assert check_text("Let " + "$a$ " * 40 + "be so $A = B$.").equations


@pytest.mark.parametrize(
    "said",
    [
        r"With rows $b$ and $c$ in $\mathbb{R}^{1 \times k}$ we have",
        r"Let $b$, $c \in \mathbb{R}^{1 \times k}$. Then",
        r"For two rows $b, c \in \mathbb{R}^{1 \times k}$ we have",
    ],
)
def test_every_symbol_of_a_list_is_declared(said: str) -> None:
    text = rf"Let $W \in \mathbb{{R}}^{{k \times d}}$. {said} $(b + c) W = b W - c W$."
    report = check_text(text)
    assert report.equations[-1].verdict == "refuted"
    assert not report.undeclared


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"q^\top R_m^\top R_m q = q^\top q", "needs-hypothesis"),
        (r"q^\top R_m^\top R_{m+p} q = q^\top R_p q", "needs-hypothesis"),
        (r"q^\top R_m^\top R_p q = q^\top R_{m-p} q", "refuted"),
    ],
)
def test_rotations_add_their_angles(claim: str, verdict: str) -> None:
    text = r"These matrices are rotations: $R_m^\top R_p = R_{p-m}$. Let $q \in \mathbb{R}^2$. "
    assert check_text(f"{text}\n\n${claim}$").equations[-1].verdict == verdict


def test_words_for_matrices_say_nothing_of_vectors_and_a_projection_is_not_orthogonal() -> None:
    text = r"Let $q \in \mathbb{R}^d$ be of an orthogonal matrix. Then $q^\top q = 1$."
    assert "orthogonal" not in check_text(text).equations[-1].why
    text = r"Let $P \in \mathbb{R}^{d \times d}$ be an orthogonal projection. Then $P^2 = P$."
    found = check_text(text).equations[-1]
    assert (found.verdict, "“idempotent”" in found.why) == ("needs-hypothesis", True)


@pytest.mark.parametrize(
    ("bias", "verdict"), [("b W", "proved"), (r"b \operatorname{diag}(g) W", "refuted")]
)
def test_a_diagonal_matrix_of_members_blocks_no_refutation(bias: str, verdict: str) -> None:
    text = r"""Let $X$ be $n \times d$, $W$ be $d \times m$, and let $g, b \in \mathbb{R}^{1 \times d}$.
Let $D = \operatorname{diag}(s_1, \dots, s_n)$ and $N(X) = D X \operatorname{diag}(g) + 1_n b$, where
$1_n$ is the column of $n$ ones. Then """
    claim = rf"$N(X) W = D X \operatorname{{diag}}(g) W + 1_n {bias}$."
    assert check_text(text + claim).equations[-1].verdict == verdict


@pytest.mark.parametrize(
    ("factors", "verdict"), [(r"W \operatorname{diag}(g)", "proved"), ("W", "refuted")]
)
def test_a_letter_whose_square_is_a_number_is_one(factors: str, verdict: str) -> None:
    text = (
        r"Let $x, g \in \mathbb{R}^d$, $W$ be $k \times d$ and $r^2 = \frac{1}{d} x^\top x$. Then "
    )
    claim = rf"$W (\frac{{1}}{{r}} \operatorname{{diag}}(g) x) = \frac{{1}}{{r}} ({factors}) x$."
    assert check_text(text + claim).equations[-1].verdict == verdict


def test_the_image_of_a_matrix_in_a_space_declares_no_matrix() -> None:
    text = (
        r"Let $A$ be $m \times n$ and $V$ be $n \times n$. The image of $A$ in $\mathbb{R}^m$ is "
    )
    found = check_text(text + r"that of $A V$, and $(A V)^\top = V^\top A^\top$.").equations
    assert found[-1].verdict == "proved"


@pytest.mark.parametrize(
    "said",
    [
        r"Let $C = I - \frac{1}{d} \mathbf{1}\mathbf{1}^\top$ be the $n \times n$ centering matrix.",
        r"Let $C$ be the $n \times n$ matrix $C = I - \frac{1}{d} \mathbf{1}\mathbf{1}^\top$.",
        r"We use the $n \times n$ matrix $C = I - \frac{1}{d} \mathbf{1}\mathbf{1}^\top$.",
    ],
)
def test_the_shape_of_a_matrix_beside_its_definition_counts(said: str) -> None:
    sizes = r"Let $X \in \mathbb{R}^{d \times n}$. "
    assert (
        check_text(rf"{sizes}{said} Then $C \mathbf{{1}} = 0$.").equations[-1].verdict != "proved"
    )
    turned = said.replace(r"n \times n", r"d \times d")
    found = check_text(rf"{sizes}{turned} Then $C \mathbf{{1}} = 0$.").equations[-1]
    assert found.verdict == "proved"


def test_numbers_below_tell_matrices_of_different_shapes_apart() -> None:
    text = r"""Let $W_E$ be $d \times v$, $W_U$ be $v \times d$, $A$ be $n \times n$ and $M$ be $d \times d$.
Without layers, $T_0 = W_U W_E$. With one layer, $T_1 = (Id \otimes W_U)(A \otimes M)(Id \otimes W_E)$."""
    assert [each.verdict for each in check_text(text).equations] == ["definition", "definition"]


def test_a_letter_before_brackets_may_be_a_function() -> None:
    text = (
        r"Let $A \in \mathbb{R}^{m \times n}$. Then $\mathsf{N}(A^\top A) = \mathsf{N}(A)$. "
        r"For $M \in \mathbb{R}^{n \times n}$, $M (A^\top A) = M (A)$."
    )
    *_, first, _, last = check_text(text).equations
    assert (first.verdict, last.is_wrong) == ("undecided", True), first.why


def test_the_softmax_of_a_number_runs_over_an_index_that_is_not_said() -> None:
    text = (
        r"Let $q, k_i \in \mathbb{R}^d$ and $a(q, k_i) = q^\top k_i$. Then "
        r"$\mathrm{softmax}(a(q, k_i)) = \frac{\exp(q^\top k_i)}{\sum_{j=1} \exp(q^\top k_j)}$."
    )
    assert check_text(text).equations[-1].verdict == "undecided"
