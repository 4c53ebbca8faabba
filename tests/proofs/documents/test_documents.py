# ruff: noqa: E501 (a document is one line of a table here)
"""Documents: what is right is never accused, what is wrong is found on its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otimes.algebra.errors import OtimesError
from otimes.proofs.documents.check import check_document, check_text
from otimes.proofs.documents.reporting.report import (
    DocumentReport,
    Equation,
    github_annotations,
    to_json,
    to_sarif,
)

SHAPES = (
    "$A \\in \\mathbb{R}^{n \\times n}$, $W_V \\in \\mathbb{R}^{k \\times d}$, "
    "$W_O \\in \\mathbb{R}^{d \\times k}$."
)


def verdicts(text: str, **how: str) -> list[tuple[int, str]]:
    return [(e.line, e.verdict) for e in check_text(text, **how).equations]


def last(text: str) -> Equation:
    return check_text(text).equations[-1]


def test_every_link_of_a_chain_has_its_line_and_verdict() -> None:
    text = f"""{SHAPES}

$$
\\begin{{aligned}}
(I \\otimes W_O)(A \\otimes W_V) &= A \\otimes W_O W_V \\\\
 &= (A \\otimes W_O)(I \\otimes W_V) \\\\
 &= (A^\\top \\otimes W_O)(I \\otimes W_V)
\\end{{aligned}}
$$
"""
    assert verdicts(text)[3:] == [(5, "proved"), (6, "proved"), (7, "refuted")]


def test_a_refuted_equation_has_its_counterexample_and_the_smallest_edit() -> None:
    found = last(f"{SHAPES} So $(W_O W_V)^T = W_O^T W_V^T$.")
    assert found.verdict == "shape"
    assert found.suggestion == "(W_O W_V)^T = W_V^T W_O^T"
    found = last(f"{SHAPES} So $(A A^T A)^T = A A^T A$.")
    assert found.verdict == "refuted"
    assert found.counterexample is not None
    assert found.counterexample.lhs != found.counterexample.rhs


def test_the_first_equation_defines_and_a_later_one_is_proved_from_it() -> None:
    text = f"""{SHAPES} Here $x \\in \\mathbb{{R}}^{{nd \\times 1}}$.

Let $h(x) = (I \\otimes W_O)(A \\otimes I)(I \\otimes W_V)x$. Then $h(x) = (A \\otimes W_O W_V) x$.

It does $h(x) = (A^T \\otimes W_O W_V) x$.
"""
    assert [v for _, v in verdicts(text)[4:]] == ["definition", "proved", "refuted"]


RIGHT = [
    # a hypothesis in words, in an equation, and in a sentence that assumes it
    "Let $Q \\in \\mathbb{R}^{d \\times d}$ be orthogonal. Then $Q^T Q X = X$.",
    "The matrix $P \\in \\mathbb{R}^{n \\times n}$ is idempotent, so $P P X = P X$.",
    "Suppose $E F = I$. Then $A E F B = A B$.",
    "Here $A, B \\in \\mathbb{R}^{n \\times n}$ commute: $A B = B A$.",
    "$A \\in \\mathbb{R}^{n \\times n}$, a pattern: $A \\mathbf{1} = \\mathbf{1}$.",
    "Each $P^2 = P$ and $S^T = S$.",
    # small letters of which nothing is said
    "$a b = b a$ and $x y = y x$ and $f(x) = x f$.",
    "$A B = B A$ for numbers $A$ and $B$.",
    "$A + 1 = B$.",
    # what is said to be false
    "$A, B \\in \\mathbb{R}^{n \\times n}$. In general it is not true that $(A B)^T = A^T B^T$.",
    # an approximation
    "$A \\in \\mathbb{R}^{n \\times n}$ and $A \\approx A^T$.",
    # a new letter for a product, in either direction
    "$W_V W_O = W_{OV}$, $x W_{OV} = x W_V W_O$.",
    # labels and powers
    "$(A^2 \\otimes W^2)(A^1 \\otimes W^1) = A^2 A^1 \\otimes W^2 W^1$.",
    "$A \\in \\mathbb{R}^{n \\times n}$: $A^2 = A A$.",
    # both conventions
    "$h = W x$ and $h^T = x^T W^T$.",
    # declared after its use, and declared for one sentence only
    "$X W_V$ is $Y = X W_V$ where $W_V \\in \\mathbb{R}^{d \\times k}$.",
    "For any $A \\in \\mathbb{R}^{m \\times d}$, $AI = A$.\n\n$(A \\otimes B)(A \\otimes B) = A^2 \\otimes B^2$.",
    # a condition, in the formula or in the sentence
    "$A, B \\in \\mathbb{R}^{n \\times n}$. $(AB)^T = A^T B^T \\text{ if } AB = BA$.",
    "$A, B \\in \\mathbb{R}^{n \\times n}$. When both are diagonal, $(AB)^T = A^T B^T$.",
    "$A \\in \\mathbb{R}^{n \\times n}$. $A = A^T \\implies A A^T A = A^T A A$.",
    # sums over two sets, and over a part of the rows
    "$(\\sum_{h \\in H_2} A^h)(\\sum_{h \\in H_1} A^h) = \\sum_{h \\in H_2} A^h \\sum_{h \\in H_1} A^h$.",
    "$A \\in \\mathbb{R}^{n \\times n}$ is causal: $(AX)_{ij} = \\sum_{k \\le i} A_{ik} X_{kj}$.",
    # sums that share no index
    "$\\sum_i a_i x_i + \\sum_j b_j x_j = \\sum_j b_j x_j + \\sum_i a_i x_i$.",
    "$\\sum_{j \\le i} a_{ij} v_j = \\sum_j a_{ij} v_j$ by causality.",
    "$\\|x\\|^2 = x^T x$.",
]  # fmt: skip


@pytest.mark.parametrize("text", RIGHT)
def test_what_is_right_or_open_is_never_accused(text: str) -> None:
    for each in check_text(text).equations:
        assert each.verdict not in ("refuted", "shape"), (each.tex, each.why)


NOT_PROVED = [
    "$\\sum_i \\sum_{j \\le i} a_j = \\sum_{j \\le i} \\sum_i a_j$",
    "$\\sum_{i=1}^n \\sum_{j=1}^i a_j = \\sum_{j=1}^i \\sum_{i=1}^n a_j$",
    "$(A \\otimes W) X = A X W^T$",
    "$A B = B A$",
    "$x y = y x$",
    "$f(x + y) = f(x) + f(y)$",
    "$A^2 B^1 = A A B^1$ and $A^1 = I$",
    "$\\varepsilon A = \\epsilon A$",
    "$A \\approx A$",
    "$X_{\\le i} W = X W$",
    "$\\mathrm{softmax}(X)^T \\mathbf{1} = \\mathbf{1}$",
    "$A^{-1} A X = X$ where $A \\in \\mathbb{R}^{n \\times d}$",
]


@pytest.mark.parametrize("text", NOT_PROVED)
def test_what_is_not_so_in_general_is_never_proved(text: str) -> None:
    assert check_text(text).equations[0].verdict != "proved", check_text(text).equations[0].reading


def test_a_hypothesis_in_words_is_offered_by_name_and_used_when_it_is_declared() -> None:
    text = "Let $Q \\in \\mathbb{R}^{d \\times d}$ be orthogonal. Then $Q^T Q X = X$."
    found = last(text)
    assert found.verdict == "needs-hypothesis"
    assert "orthogonal" in found.why
    found = last(f"<!-- otimes: given: Q^T Q = I -->\n{text}")
    assert found.verdict == "proved"
    assert len(found.hypotheses) == 1
    assert "Q^{T} Q = I" in found.hypotheses[0]


WRONG = [
    ("(A \\otimes W_O)(A \\otimes W_V) = A A \\otimes W_V W_O", "shape"),
    ("(A \\otimes W_O)(A \\otimes W_V) = A \\otimes W_O W_V", "refuted"),
    ("\\mathrm{tr}(A \\otimes W_O W_V) = \\mathrm{tr}(A)", "refuted"),
    ("(A \\otimes W_O)^T = W_O^T \\otimes A^T", "shape"),
    ("W_O W_V + A = A + W_O W_V", "shape"),
    ("A^{-1} W_O = W_O A^{-1}", "shape"),
    ("(A W)_{ij} = \\sum_k A_{ik} A_{jk}", "refuted"),
    ("A A^T A = A^T A A^T", "refuted"),
    ("A A^T \\mathbf{1} = A \\mathbf{1}", "refuted"),
]


@pytest.mark.parametrize(("equation", "verdict"), WRONG)
def test_what_is_wrong_is_found(equation: str, verdict: str) -> None:
    text = f"{SHAPES} $W \\in \\mathbb{{R}}^{{n \\times n}}$.\n\nNow ${equation}$."
    found = last(text)
    assert (found.line, found.verdict) == (3, verdict), found.why


def test_a_declaration_that_a_proved_equation_contradicts_is_blamed_instead_of_the_equation() -> (
    None
):
    text = """$W_V, W_O \\in \\mathbb{R}^{k \\times d}$ are weights.

$$(I \\otimes W_O)(A \\otimes W_V) = A \\otimes W_O W_V$$
"""
    assert verdicts(text) == [(1, "shape"), (3, "proved")]


def test_shapes_come_from_sentences_tables_and_comments() -> None:
    wrong = "$A B = B A$"
    for said in (
        "$A$ is $n \\times d$. $B$ is $d \\times n$.",
        "$A$ has $n$ rows and $d$ columns, and $B$ has $d$ rows and $n$ columns.",
        "| symbol | shape |\n|---|---|\n| $A$ | $n \\times d$ |\n| $B$ | $d \\times n$ |",
        "<!-- otimes: A: n d, B: d n -->",
    ):
        assert last(f"{said}\n\n{wrong}").verdict == "shape", said


def test_a_notation_file_declares_what_the_document_does_not(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('convention = "row"\n[shapes]\nW = "d k"\nx = "1 d"\n')
    assert check_text("$x W = W x$", notation=str(file)).equations[0].verdict == "shape"
    assert check_text("$x W_V W_O = x W_{OV}$", notation="primer").equations[0].verdict == "proved"
    with pytest.raises(OtimesError, match="TOML"):
        check_text("", notation=str(Path(__file__)))
    with pytest.raises(OtimesError, match="cannot read the notation nothing"):
        check_text("", notation="nothing")


def test_an_equation_is_ignored_with_a_reason_and_counted() -> None:
    text = f"{SHAPES}\n\n<!-- otimes: ignore: a classical mistake -->\n$(A A)^T = A A$\n"
    report = check_text(text)
    assert report.equations[-1].ignored == "a classical mistake"
    assert report.passed
    assert "(1 ignored)" in report.summary()


TEX = r"""\documentclass{article}
\newcommand{\R}[2]{\mathbb{R}^{#1 \times #2}}
\newcommand{\T}{^{\mathsf T}}
\DeclareMathOperator{\softmax}{softmax}
\begin{document}
% $wrong = comment$
Let $X \in \R{n}{d}$ and $W_Q, W_K \in \R{d}{k}$.
\begin{align}
  (X W_Q)(X W_K)\T &= X W_Q W_K\T X\T \label{eq:one} \\
                   &= X W_K W_Q\T X\T .
\end{align}
\verb|$a = b$| \begin{verbatim} $c = d$ \end{verbatim}
% otimes: ignore: on purpose
\[ (W_Q W_K\T)\T = W_Q W_K\T \]
\input{/etc/passwd}
\end{document}
"""


def test_latex_with_macros(tmp_path: Path) -> None:
    file = tmp_path / "a.tex"
    file.write_text(TEX)
    report = check_document(file)
    found = [(e.line, e.verdict, bool(e.ignored)) for e in report.equations]
    assert found == [
        (7, "definition", False),
        (7, "definition", False),
        (9, "proved", False),
        (10, "refuted", False),
        (14, "refuted", True),
    ]


def test_a_notebook(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["$A, B \\in \\mathbb{R}^{n \\times n}$\n", "text"]},
        {"cell_type": "code", "source": "raise SystemExit('$x = y$')"},
        {"cell_type": "markdown", "source": "one\n\n$$(A B)^T = A^T B^T$$"},
    ]
    file = tmp_path / "a.ipynb"
    file.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}))
    found = check_document(file).equations
    assert [(e.cell, e.line, e.verdict) for e in found] == [(1, 1, "definition"), (3, 3, "refuted")]


HOSTILE = [
    "$" * 1001,
    "$" + "(" * 3000 + "$",
    "$" + "{" * 3000 + "}" * 3000 + "$",
    "$$" + "A + " * 4000 + "A = B$$",
    "$$" + "A" * 100_000 + "$$",
    "\\newcommand{\\a}{\\b\\b}\\newcommand{\\b}{\\a\\a} $\\a = 1$",
    "\\def\\x{\\x x} $\\x = y$",
    "<!-- " * 100 + "$A = B$",
    "<!-- otimes: ignore -->",
    "$$\n\\begin{align}\n$$",
    "`" * 99 + "$A$",
    "> " * 200 + "$A = B$",
    "$" + "A^" * 500 + "A = B$",
    "$" + "\\sum_i " * 200 + "x_i = y$",
    "[" * 2000,
    "| " * 3000 + "|",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_leaves_the_rest_to_be_checked(text: str) -> None:
    after = "\n\n$B, C \\in \\mathbb{R}^{n \\times n}$\n\n$(B C)^T = C^T B^T$\n"
    report = check_text(text + after)
    if text.startswith("<!-- <!--") or text in ("$$\n\\begin{align}\n$$", "`" * 99 + "$A$"):
        return  # what follows an open comment or a formula that is not closed is part of it
    assert report.equations[-1].verdict == "proved", [e.why for e in report.equations]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.md", b"\xff\xfe$A$", "not UTF-8"),
        ("a.md", b"\x00\x01\x02", "not text"),
        ("a.ipynb", b"{", "not a notebook"),
        ("a.ipynb", b"[1, 2]", "no list of cells"),
        ("a.ipynb", b'{"cells": 3}', "no list of cells"),
        ("a.ipynb", b"[" * 100_000, "nested too deeply"),
        ("a.pdf", b"text", r"\.md, \.tex and \.ipynb"),
    ],
)
def test_what_is_no_document_is_refused(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(OtimesError, match=message):
        check_document(tmp_path / name)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(OtimesError, match="cannot read"):
        check_document("/nowhere/a.md")


@pytest.fixture(scope="module")
def report() -> DocumentReport:
    text = f"{SHAPES}\n\n$(A A)^T = A A$ and $A A = A A$.\n\n$\\foo = 1$ & <b>\n"
    return check_text(text)


def test_json_has_its_schema_and_every_equation(report: DocumentReport) -> None:
    content = json.loads(json.dumps(to_json([report])))
    assert content["schema"] == 1
    assert content["passed"] is False
    (document,) = content["documents"]
    found = [each["verdict"] for each in document["equations"]]
    assert found == ["definition"] * 3 + ["refuted", "proved", "unread"]
    assert document["counts"] == {"proved": 1, "refuted": 1, "definition": 3, "unread": 1}


def test_sarif_has_a_result_for_each_finding(report: DocumentReport) -> None:
    (run,) = to_sarif([report], "0")["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        region = result["locations"][0]["physicalLocation"]["region"]
        assert region["startLine"] >= 1
        assert region["startColumn"] >= 1
    assert [result["level"] for result in run["results"]] == ["error", "note"]


def test_annotations_are_one_line_each(report: DocumentReport) -> None:
    (line,) = github_annotations([report])
    assert line.startswith("::error file=text,line=3,col=2,title=otimes refuted::")
    assert "\n" not in line
    assert "%0A" in line


def test_the_html_has_every_line_escaped_and_no_link_to_elsewhere(report: DocumentReport) -> None:
    page = report.html()
    assert "&lt;b&gt;" in page
    assert '<mark class="refuted"' in page
    assert "http" not in page
    assert "<script" not in page
