"""What stands around an equation: a condition, another case, what a word means, an example.

Each text is right, and was accused by a reading that did not look around; the same equation is
still found where nothing of the kind stands beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sympy import MatrixSymbol

from otimes.algebra.budget import STEPS, steps_done
from otimes.proofs.documents.check import check_document, check_text
from otimes.proofs.documents.containers.markdown import read_markdown
from otimes.proofs.documents.proving.questions import decide
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.verdicts.judge import Judge

ACCUSING = {"refuted", "shape"}
RIGHT = [
    (
        r"Let $A \in \mathbb{R}^{n \times n}$ and $u, v \in \mathbb{R}^{n}$. "
        r"$u^\top v = v^\top A v$ whenever $u \ne v$."
    ),
    (
        "Let $q, k \\in \\mathbb{R}^d$. The scores are $e = q^\\top k$.\n\nWe rescale them:\n\n"
        "$$e = q^\\top k / \\sqrt{d}.$$"
    ),
    r"Let $P \in \mathbb{R}^{n \times n}$. $(I - P)(I - P) = I - P$",
    (
        r"$\begin{bmatrix} 2 & 1 \\ 2 & 3 \end{bmatrix} \begin{bmatrix} x \\ y \end{bmatrix} = "
        r"\begin{bmatrix} x \\ y \end{bmatrix}$"
    ),
    "| operation | gradient |\n|---|---|\n| $Z = X Y$ | a |\n| $Z = X + Y$ | b |\n",
    (
        "Let $X \\in \\mathbb{R}^{n \\times m}$.\n\n"
        "Symmetric matrices equal their transposes: $X = X^\\top$."
    ),
    (
        r"- $\lambda = 0$: it collapses. Let $A \in \mathbb{R}^{n \times n}$. "
        r"$(A - \lambda I) v = v - A$"
    ),
    (
        r"$W = \begin{bmatrix} 1 & 1 \\ -1 & 2 \end{bmatrix}$, $A \in \mathbb{R}^{2 \times 2}$. "
        r"By definition, $A W = W A$."
    ),
    (
        r"Let $A \in \mathbb{R}^{2^{10} \times 2^{16}}$ and $B \in \mathbb{R}^{2^{16} \times 2}$. "
        "We compute $A B$.\nLet $A, B \\in \\mathbb{R}^{100 \\times 200}$."
    ),
    r"Let $U, S \in \mathbb{R}^{m \times n}$. Cut to rank, $S_r = S[:r, :r]$ and $U_r S_r = U_r$.",
    r"Let $Q, K \in \mathbb{R}^{n \times d}$. Replace $\mathbf{QK}^\top + K K^\top$.",
    "## One\n\n$$x = (A^T A)^{-1} A^T b$$\n\n## Two\n\n$$R^T R x = A^T b$$",
    "$N = 110\\text{M}$\n\n$N = 340\\text{M}$",
    (
        "Let $l, x, y \\in \\mathbb{R}^d$ and $a \\in \\mathbb{R}^n$. "
        "$$\\text{input to layer } l = x + y - l$$\n\n$$\\text{row of } l = a$$"
    ),
    r"$\begin{bmatrix} L(x) & L(y) \end{bmatrix} = \begin{bmatrix} 1 & 1 \\ 1 & 0 \end{bmatrix}$",
]


@pytest.mark.parametrize("text", RIGHT)
def test_what_the_text_around_explains_is_not_accused(text: str) -> None:
    found = check_text(text).equations
    assert not ACCUSING & {each.verdict for each in found}, [(e.tex, e.why) for e in found]


WRONG = [
    r"Let $A, B \in \mathbb{R}^{n \times n}$. $(A B)^\top = A^\top B^\top$ for all matrices.",
    r"Let $J = \begin{bmatrix} 0 & -1 \\ 1 & 0 \end{bmatrix}$. We get $J J = I$.",
    r"Let $X \in \mathbb{R}^{n \times m}$. Thus $X = X^\top$.",
    "$$x = (A^T A)^{-1} A^T b$$\n\nThen:\n\n$$R^T R x = A^T b$$",
    r"Let $X \in \mathbb{R}^{n \times m}$. $\text{and thus } X = X^\top$",
    r"Let $P \in \mathbb{R}^{n \times n}$. $(I - P)(I - P) = I + 2 P + P^2$",
    r"Let $A \in \mathbb{R}^{m \times n}$ and $v \in \mathbb{R}^m$. $v^\top A v = 1$",
]


@pytest.mark.parametrize("text", WRONG)
def test_what_nothing_explains_is_accused(text: str) -> None:
    assert check_text(text).equations[-1].verdict in ACCUSING


NOT_PROVED = [
    "Let $X, Y \\in \\mathbb{R}^{n \\times n}$. $d(X Y) = d(X) Y$",  # d is no number
    "It is unitary: $A^* = A^{-1}$. Others are normal: $A^* A = A A^*$.",  # a property of one
    "The ends are fixed, $y(0) = 0$ and $y(1) = 0$. Others repeat: $y(0) = y(1)$.",
    r"With $a^\top b = 1$, $a b a = a a b$",  # a is no number
]


@pytest.mark.parametrize("text", NOT_PROVED)
def test_what_is_read_in_another_sense_is_not_proved(text: str) -> None:
    assert check_text(text).equations[-1].verdict not in ("proved", "refuted")


def test_a_row_that_code_repeats_is_no_error_but_a_hypothesis() -> None:
    text = (
        r"Let $X \in \mathbb{R}^{n \times d}$ and $b \in \mathbb{R}^{1 \times d}$. $X + b = b + X$"
    )
    (*_, found) = check_text(text).equations
    assert found.verdict == "needs-hypothesis"
    assert "b is added to every row" in found.why


def test_formulas_between_two_backslashes_and_in_old_fonts_are_read() -> None:
    document = read_markdown("", "We set \\\\(\\Delta = 1\\\\), and\n\n\\\\[x = y\\\\]\n")
    assert [(f.tex, f.display) for f in document.formulas] == [
        (r"\Delta = 1", False),
        ("x = y", True),
    ]
    found = check_text(r"$$\label{a_b} y = \mbox{\bf f}(x), \quad n{-}1 = n - 1$$").equations
    assert [each.verdict for each in found] == ["definition", "proved"]


def test_a_later_declaration_counts_only_in_its_paragraph_where_there_is_an_earlier_one() -> None:
    text = (
        r"1. Let $A \in \mathbb{R}^{m \times n}$. We compute $A + A^\top$."
        "\n"
        r"2. Let $A \in \mathbb{R}^{n \times n}$. We compute $A + A^\top$."
        "\n\n"
        r"And $B + B^\top$, where $B \in \mathbb{R}^{m \times n}$."
    )
    assert [e.line for e in check_text(text).equations if e.verdict == "shape"] == [1, 4]


def test_long_documents_are_bounded_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "$(A B)^\\top = B^\\top A^\\top$\n\n" * 4
    monkeypatch.setattr("otimes.proofs.documents.prose.items.MOST", 2)
    unread = [each for each in check_text(text).equations if each.verdict == "unread"]
    assert [each.line for each in unread] == [5, 7]
    assert "4 formulas: the first 2 are read" in unread[0].why
    monkeypatch.undo()
    monkeypatch.setattr("otimes.proofs.documents.verdicts.links.MOST_WORK", 1e-9)
    found = check_text(text).equations
    assert [each.verdict for each in found] == ["proved", "undecided", "undecided", "undecided"]
    assert "used up" in found[-1].why


def test_a_stray_sign_of_a_display_does_not_turn_the_text_after_it_into_formulas() -> None:
    text = "$$\nx = y\n$$\n\\begin{stray}\n$$\n\nWords, and then:\n\n$$\nA = A\n$$\n"
    assert [f.tex.strip() for f in read_markdown("", text).formulas] == ["x = y", "A = A"]


def test_starred_matrices_and_rounding_are_read() -> None:
    text = r"$\begin{pmatrix*}[r] 1 & -2 \end{pmatrix*} = \begin{pmatrix} 1 & -2 \end{pmatrix}$"
    assert check_text(text).equations[0].verdict == "proved"
    assert check_text(r"$q = \left\lfloor x / s \right\rceil$").equations[0].verdict != "unread"


def test_an_edit_is_proposed_in_the_spelling_of_the_author(tmp_path: Path) -> None:
    text = (
        r"\newcommand{\OV}{W_{OV}} Let $A, X, \OV, B \in \mathbb{R}^{n \times n}$. "
        r"$(\OV^1 B)^\top = {\OV^1}^\top B^\top$"
    )
    (tmp_path / "a.tex").write_text(text)
    found = check_document(tmp_path / "a.tex").equations[-1]
    assert (found.verdict, found.suggestion) == (
        "refuted",
        r"(\OV^1 B)^\top = B^\top {\OV^1}^\top",
    )


def test_places_in_other_cells_are_named_in_full(tmp_path: Path) -> None:
    cells = [r"$A \in \mathbb{R}^{m \times n}$", r"$B \in \mathbb{R}^{m \times n}$", "$A B$"]
    content = {"cells": [{"cell_type": "markdown", "source": each} for each in cells]}
    (tmp_path / "a.ipynb").write_text(json.dumps(content))
    found = check_document(tmp_path / "a.ipynb").equations[-1]
    assert found.why.endswith("(shapes from line 1 of cell 1, line 1 of cell 2)")


def test_definitions_that_grow_beyond_bounds_are_not_put_in_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("otimes.proofs.documents.symbols.context.LONGEST", 12)
    calls: list[int] = []
    decided = Judge._decided

    def counted(judge: Judge, *how: object) -> Found:
        calls.append(1)
        return decided(judge, *how)  # type: ignore[arg-type]

    monkeypatch.setattr(Judge, "_decided", counted)
    text = (
        r"Let $A, B, C, D, E \in \mathbb{R}^{n \times n}$. $B = A + A$. $C = B + B$. $D = C + C$. "
    )
    found = check_text(f"{text} $E = D + D$. Then $E = 16 A$.").equations[-1]
    assert found.verdict not in ("refuted", "shape"), found.why
    assert len(calls) < 20


def test_the_work_for_all_edits_of_an_equation_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "proving.attempts.BUDGET",
        "verdicts.judge.BUDGET",
        "proving.attempts.TRIAL",
        "verdicts.suggestions.TRIAL",
    ):
        monkeypatch.setattr(f"otimes.proofs.documents.{name}", 0.04)
    monkeypatch.setattr("otimes.proofs.documents.verdicts.suggestions.MOST_WORK", 0.1)
    begun = steps_done()
    text = r"Let $A, B \in \mathbb{R}^{n \times n}$. Then $" + "(A + B)" * 20 + " = A$"
    assert check_text(text).equations[-1].verdict != "proved"
    assert steps_done() - begun < 0.4 * STEPS
    monkeypatch.setattr("otimes.proofs.documents.verdicts.suggestions.MOST_WORK", -1)
    text = text.replace("(A + B)" * 20 + " = A", r"(A B)^\top = A^\top B^\top")
    assert not check_text(text).equations[-1].suggestion


def test_bars_around_a_matrix_may_be_absolute_values() -> None:
    text = (
        r"Let $X \in \mathbb{R}^{n \times d}$. Then $|X| = \mathrm{relu}(X) + \mathrm{relu}(-X)$."
    )
    found = check_text(text).equations[-1]
    assert found.verdict == "undecided"
    assert found.why.endswith("“| X |” may be taken entry by entry")


def test_an_answer_that_is_kept_counts_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So no verdict depends on what was asked before: limits count steps."""
    A, B = MatrixSymbol("A", 3, 3), MatrixSymbol("B", 3, 3)
    begun = steps_done()
    first = decide(A * B, B * A, budget=0.4)
    steps = steps_done() - begun
    monkeypatch.setattr("otimes.algebra.verdict.decide", None)  # it is not asked again
    again = decide(A * B, B * A, budget=0.4)
    assert steps > 0
    assert steps_done() - begun == 2 * steps
    assert (first.status, again.status) == ("refuted", "refuted")
    with pytest.raises(TypeError):
        decide(A * B, B * A, budget=0.5)


def test_a_symbol_that_is_defined_by_its_own_powers_is_not_put_in_again() -> None:
    text = r"Let $X$ be $n \times n$. At a fixed point $X = A X^2 + B$, and $X^2 C = X D$."
    assert check_text(text).equations[-1].verdict in ("undecided", "needs-hypothesis")


LORA = r"Let $B \in \mathbb{R}^{p \times r}$ and $A \in \mathbb{R}^{r \times d}$. "


@pytest.mark.parametrize(
    ("said", "accused"),
    [
        (r"With $W' = W + B A$ the update has rank at most $r$.", 0),  # and not W'
        (r"$$W' = W + B A.$$ The update has rank at most $r$.", 0),
        (r"The update is $U = B A$, which has rank at most $r$.", 0),
        (r"Suppose that $W$ has rank at most $r$.", 0),
        (r"The update is $U = B A$, a matrix of rank at most $n$.", 1),
    ],
)
def test_a_rank_is_that_of_the_subject(said: str, accused: int) -> None:
    found = check_text(LORA + r"Let $W \in \mathbb{R}^{p \times d}$. " + said).equations
    assert sum("rank" in each.why for each in found) == accused


STREAM = r"""Let $x \in \mathbb{R}^{n \times d}$ and $A^1, A^2 \in \mathbb{R}^{n \times n}$.
Heads have $W_{OV}^l = W_O^l W_V^l$ with $W_V^l \in \mathbb{R}^{k \times d}$ and
$W_O^l \in \mathbb{R}^{d \times k}$.

"""


def test_a_chain_may_say_what_a_state_within_it_is() -> None:
    chain = r"""$x^2 = (I + A^2 \otimes W_{OV}^2) x^1
    = (I + A^2 \otimes W_{OV}^2)(I + A^1 \otimes W_{OV}^1) x^0$."""
    found = check_text(STREAM + "With both layers " + chain).equations[-1]
    assert (found.verdict, "may say what" in found.why) == ("needs-hypothesis", True)


def test_a_state_that_is_defined_is_what_it_is() -> None:
    said = r"The first layer writes $x^1 = (I + A^1 \otimes W_{OV}^1) x^0$, the second "
    chain = r"""$x^2 = (I + A^2 \otimes W_{OV}^2) x^1
    = (I + A^2 \otimes W_{OV}^2)(I + A^{} \otimes W_{OV}^1) x^0$."""
    for number, verdict in (("1", "proved"), ("2", "refuted")):
        text = STREAM + said + chain.replace("A^{}", f"A^{number}")
        assert check_text(text).equations[-1].verdict == verdict
