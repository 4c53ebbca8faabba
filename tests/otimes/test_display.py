"""Answers to look at: what a notebook shows of verdicts, reports, tables and theorems."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from sympy import MatrixSymbol, Symbol

import otimes as ot
from otimes.algebra.decide.display import counterexample_latex
from otimes.numeric.circuits.result import Named

n = Symbol("n", integer=True, positive=True)
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)


class Balanced(HTMLParser):
    """Fails unless every element that is opened is closed, in order."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(content)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def entries(tex: str) -> list[np.ndarray]:
    """Return the matrices of a TeX formula, without the marks."""
    plain = tex.replace(r"\boxed{", "").replace("}", "")
    found = re.findall(r"begin\{bmatrix(.*?)\\end", plain, flags=re.DOTALL)
    return [
        np.array([[int(x) for x in row.split("&")] for row in each.split(r"\\")]) for each in found
    ]


def test_a_counterexample_is_multiplied_out() -> None:
    verdict = ot.decide(A * B, B * A)
    found = verdict.counterexample
    tex = counterexample_latex(found)
    a, b, left, right = entries(tex)
    assert np.array_equal(left, a @ b)
    assert np.array_equal(right, b @ a)
    (row, column) = found.entry
    assert left[row, column] != right[row, column]
    assert tex.count(rf"\boxed{{{left[row, column]}}}") >= 1
    assert tex.count(r"\boxed") == 2
    shown = Balanced(verdict._repr_html_()).text
    assert shown.startswith("refuted: ")
    assert tex in shown
    assert r"A \, B \neq B \, A" in verdict._repr_latex_()


def test_numbers_of_every_kind_are_shown() -> None:
    x = Symbol("x", positive=True)
    H = Symbol("H", integer=True, positive=True)
    W, h = ot.Family("W", (H,), n, n), Symbol("h", integer=True, nonnegative=True)
    for lhs, rhs in (
        (x * A, A),
        (ot.Activation("g", A), A),
        (ot.RowSoftmax(A), A),
        (ot.HeadSum(W[h], (h, H)), A),
        (A.inverse(), A),
    ):
        verdict = ot.decide(lhs, rhs)
        assert verdict.status == "refuted"
        assert r"\boxed" in Balanced(verdict._repr_html_()).text


def test_a_large_matrix_is_cut_and_its_entry_kept() -> None:
    from otimes.algebra.decide.display import _array

    rows = [[10 * i + j for j in range(20)] for i in range(20)]
    tex = _array(rows, (15, 17))
    assert r"\boxed{167}" in tex
    assert tex.count(r"\\") == 7


def test_a_proof_shows_its_steps() -> None:
    verdict = ot.decide((A * B).T * A, B.T * A.T * A)
    shown = Balanced(verdict._repr_html_()).text
    assert shown.startswith("proved: ")
    assert verdict._repr_latex_().startswith("$$")
    twice = ot.decide("(A B)^T A = B^T A^T A")
    assert twice.latex() == twice.steps.latex()
    undecided = ot.decide(A**9 * B, B * A**9, [(A * A, A), (A * B * A, B)], budget=0.001)
    if undecided.status == "undecided":
        assert Balanced(undecided._repr_html_()).text.startswith("undecided: ")


def test_the_catalogue_prints_a_list() -> None:
    text = repr(ot.catalogue())
    assert len(text) < 100 * len(ot.catalogue())
    assert "\n1 Tensor products and conventions\n" in text
    assert "  kron_mul_kron: Kronecker products multiply factor by factor" in text
    assert len(text.splitlines()) < 2 * len(ot.catalogue())
    assert "kron_mul_kron" in Balanced(ot.catalogue()._repr_html_()).text
    theorem = ot.catalogue()[0]
    assert theorem.title in Balanced(theorem._repr_html_()).text
    assert len(repr(theorem)) < 200


def test_a_report_is_a_table() -> None:
    report = ot.verify(["kron_mul_kron", "kron_transpose"], quick=True)
    assert "kron_mul_kron: proved" in str(report)
    shown = Balanced(report._repr_html_()).text
    assert "kron_transpose" in shown
    assert [row["theorem"] for row in report.rows()] == ["kron_mul_kron", "kron_transpose"]


def test_a_chain_shows_its_links_and_what_refutes_them() -> None:
    chain = ot.check_chain([A * B, B * A, B * A])
    assert [link.found for link in chain][1] == "proved, the same expression"
    shown = Balanced(chain._repr_html_()).text
    assert r"$ A \, B = B \, A $" in shown
    assert shown.count(r"\begin{aligned}") == 1  # of the first link only
    assert shown.endswith("2 links: link 1 is not proved")


def test_an_audit_shows_its_findings() -> None:
    model = ot.random_model()

    def unmasked(tokens: Any) -> Any:
        recorded = model.forward(tokens)
        weights = np.exp(recorded["scores.1"])
        recorded["pattern.1"] = weights / weights.sum(-1, keepdims=True)
        return recorded["logits"], recorded

    found = ot.audit(unmasked, [5, 6, 7, 8], weights=model)
    shown = Balanced(found._repr_html_()).text
    assert shown.startswith("unmasked does not compute the reference: ")
    assert f"first{found.first_failure}" in shown
    passed = ot.audit(model, [5, 6, 7, 8], weights=model)
    assert "error/bound at most" in Balanced(passed._repr_html_()).text


def test_a_printed_table_shows_its_values() -> None:
    values = np.arange(6.0).reshape(2, 3) / 4
    scores = Named("copying", values, ("layer", "head"), {"head": ["a b", "c", "d"]}, 0.1)
    assert str(scores).splitlines() == [
        "copying, random baseline 0.1",
        "          a b     c     d",
        "layer 0     0  0.25   0.5",
        "layer 1  0.75     1  1.25",
    ]
    one = Named("x", np.array(2.5), ())
    assert "2.5" in str(one)
    assert str(Named("none", np.zeros((0, 3)), ("a", "b"))).startswith("none")
    assert "the first entries of 40 × 50" in str(Named("big", np.zeros((40, 50)), ("a", "b")))


def test_paths_are_a_table() -> None:
    paths = ot.paths("two_layer", [5, 6, 7, 8]).top(3, -1, 9)
    text = str(paths).splitlines()
    assert text[0].split() == ["path", "order", "logit"]
    assert len(text) == 5
    assert f"{paths[0].value:+.4f}" in Balanced(paths._repr_html_()).text


def test_rows_become_pandas_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    scores = ot.copying_scores("two_layer")
    table = scores.to_pandas()
    assert list(table.columns) == ["layer", "head", scores.kind]
    row = table[(table["layer"] == 1) & (table["head"] == 2)]
    assert row[scores.kind].item() == scores.values[1, 2]
    top = ot.paths("two_layer", [5, 6, 7, 8]).top(3, -1, 9)
    assert top.to_pandas()["logit"].tolist() == [path.value for path in top]
    report = ot.verify(["kron_mul_kron"], quick=True).to_pandas()
    assert isinstance(report, pandas.DataFrame)
    assert report["passed"].tolist() == [True]


def test_without_pandas_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ot.OtimesError, match=r"to_pandas\(\) needs pandas: pip install pandas"):
        ot.copying_scores("two_layer").to_pandas()


@pytest.mark.parametrize("kind", ["bars", "heat map", "complex plane"])
def test_a_notebook_shows_a_plot_by_itself(kind: str) -> None:
    pytest.importorskip("matplotlib")
    result = {
        "bars": Named("direct logit", np.array([1.0, -2.0]), ("component",)),
        "heat map": Named("attention pattern", np.eye(3), ("query", "key")),
        "complex plane": Named("eigenvalues", np.array([[1 + 1j, 2]]), ("head", "eigenvalue")),
    }[kind]
    result = replace(result, about="of two heads")
    figure = ot.plot(result)
    assert figure._repr_png_().startswith(b"\x89PNG")
    first = figure.axes[0]
    assert first.get_xlabel()
    assert first.get_ylabel()
    if kind != "bars":
        assert figure.get_suptitle() == f"{result.kind}: of two heads"
    if kind == "bars":
        assert first.get_xlabel() == "direct logit (logits)"
        labels = [text.get_text() for text in first.get_legend().get_texts()]
        assert labels == ["positive", "negative"]
