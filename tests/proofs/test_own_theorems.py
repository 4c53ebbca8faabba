"""Theorems of users: declared in files, selected, proved, tried and mutated as ours are."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from sympy import MatrixSymbol, Symbol

import otimes as ot
from otimes.proofs.keywords import matches
from otimes.proofs.selection import selected
from tests.forked import otimes, run_pytest

HEAD = """
from sympy import Eq, KroneckerProduct as kron, MatrixSymbol, symbols
from otimes import NonIdentity, Statement, theorem

n, d, dh = symbols("n d d_head", integer=True, positive=True)
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
S, W = MatrixSymbol("S", d, d), MatrixSymbol("W", d, d)
"""
TRUE = '''
@theorem
def mixed_product():
    """Two Kronecker products."""
    return Statement(kron(A, S) * kron(B, W), kron(A * B, S * W))
'''
FALSE = """
@theorem(title="Factors change places", source="a slip")
def swapped_factors():
    return kron(A, W), kron(W, A)
"""
NOT = """
@theorem
def products_do_not_commute():
    return NonIdentity(A * B, B * A)
"""
ON_MODELS = """
from sympy import Transpose
x = MatrixSymbol("ln1", n, d)
W_Q, W_K = MatrixSymbol("W_Q", d, dh), MatrixSymbol("W_K", d, dh)

@theorem(convention="row")
def scores_by_W_QK():
    return (x * W_Q) * (x * W_K).T, x * (W_Q * W_K.T) * x.T
"""
CRASHES = """
@theorem
def crashes():
    return Statement(A * Q, A)
"""
RETURNS = """
@theorem
def returns_what_sympy_made():
    return Eq(A.T.T, A)
"""


def write(folder: Path, name: str = "my_theorems.py", *parts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(HEAD + "".join(parts))
    return folder / name


def test_a_file_is_verified_as_the_catalogue_is(tmp_path: Path) -> None:
    file = write(tmp_path, "my_theorems.py", TRUE, FALSE, NOT)
    report = ot.verify(file)
    right, wrong, different = report.theorems
    assert (right.theorem.name, right.passed, right.proof.status) == (
        "mixed_product",
        True,
        "proved",
    )
    assert right.exact is not None
    assert right.exact.examples > 10
    assert right.mutants is not None
    assert right.mutants.refuted > 5
    assert (wrong.theorem.title, wrong.passed) == ("Factors change places", False)
    assert wrong.proof.status == "refuted"
    assert "np.array" in wrong.proof.detail
    assert (different.kind, different.passed) == ("counterexample", True)
    assert not report.passed
    assert ot.verify(str(file), quick=True).theorems[0].models == ()


STRINGS = r"""
@theorem(shapes="P: n n, V[H]: d d, b: 1 d, X: n d")
def heads_add():
    return r"\sum_{h=1}^H P \otimes V_h = P \otimes \sum_{h=1}^H V_h"

@theorem(shapes="P: n n, b: 1 d, X: n d")
def shift_passes():
    return Statement("P (X + 𝟏 b)", "P X + 𝟏 b", given=["P 𝟏 = 𝟏"])

@theorem(shapes="P: n n, b: 1 d, X: n d")
def shift_may_not_pass():
    return NonIdentity("P (X + 𝟏 b)", "P X + 𝟏 b")

@theorem(shapes="P: n n, Q: n n")
def commute():
    return "P Q", "Q P"

@theorem(shapes="P: n n, b: 1 d")
def does_not_fit():
    return Statement("P b", "b")
"""


def test_claims_may_be_strings(tmp_path: Path) -> None:
    report = ot.verify(write(tmp_path, "in_latex.py", STRINGS), quick=True)
    assert [each.proof.status for each in report.theorems] == [
        *("proved", "proved", "fails", "refuted", "error")
    ]
    assert report.theorems[1].proof.used == ("hypothesis 1",)
    assert report.theorems[1].theorem.text() == (
        "P (X + 1_n×1 b) = P X + 1_n×1 b\n    where P 1_n×1 = 1_n×1"
    )
    assert report.theorems[3].proof.detail.endswith("or if Q times P is the identity")
    assert "cannot multiply P (n × n) by b (1 × d)" in report.theorems[4].proof.detail


PROPERTIES = """
from sympy import OneMatrix, Q
from otimes import Fact, attention_pattern
X, one = MatrixSymbol("X", n, d), OneMatrix(n, 1)

@theorem
def patterns_average():
    return Statement(A * B * one, one, given=[attention_pattern(A), Fact("rows_sum_to_one", B)])

@theorem
def rotations_keep_scores():
    return Statement(X * S * (X * S).T, X * X.T, given=Q.orthogonal(S))

@theorem
def columns_sum_to_one_too():
    return Statement(A.T * one, one, given=attention_pattern(A))

@theorem
def patterns_are_not_projections():
    return NonIdentity(A * A, A, given=[Fact("row_stochastic", A)])

@theorem
def a_size_is_no_hypothesis():
    return Statement(A, A.T, given=[n > 2])
"""


def test_properties_of_matrices_are_hypotheses(tmp_path: Path) -> None:
    report = ot.verify(write(tmp_path, "properties.py", PROPERTIES), [])
    average, rotation, wrong, different, unread = report.theorems
    assert [each.proof.status for each in report.theorems] == [
        *("proved", "proved", "refuted", "fails", "error")
    ]
    assert (average.passed, rotation.passed, different.passed) == (True, True, True)
    assert average.exact is not None
    assert average.exact.examples > 10
    assert average.proof.used == ("“A has rows that sum to one”", "“B has rows that sum to one”")
    for numbers in (wrong.proof.detail, different.proof.detail):  # of a pattern
        values: dict[str, Any] = {}
        exec(numbers.partition("#")[0], {"np": np, "Fraction": Fraction}, values)  # its own text
        assert (values["A"] >= 0).all()
        assert (values["A"].sum(1) == 1).all()
    assert "the hypothesis n > 2 is not understood: a theorem has as" in unread.proof.detail
    assert "where A is lower triangular, A has rows that sum to one" in average.theorem.text()


def test_symbols_of_a_model_are_checked_on_it(tmp_path: Path) -> None:
    report = ot.verify(write(tmp_path, "on_models.py", ON_MODELS), ["gpt2_tiny"])
    (found,) = report.theorems[0].models
    assert (found.applies, found.passed) == (True, True)
    other = write(tmp_path, "swapped.py", ON_MODELS.replace("x * (W_Q", "2 * x * (W_Q"))
    report = ot.verify(other, ["gpt2_tiny"])
    (found,) = report.theorems[0].models
    assert (found.applies, found.passed) == (True, False)
    assert found.ratio > 1


def test_what_is_no_quantity_of_a_model_does_not_apply(tmp_path: Path) -> None:
    (theorem,) = ot.load_theorems(write(tmp_path, "mine.py", TRUE))
    report = ot.verify([theorem], ["gpt2_tiny"])
    (found,) = report.theorems[0].models
    assert report.passed
    assert "the symbol W is bound to no array" in found.why or "symbol S" in found.why


def test_theorems_and_names_together(tmp_path: Path) -> None:
    (theorem,) = ot.load_theorems(write(tmp_path, "mine.py", TRUE))
    report = ot.verify([theorem, "kron_transpose", theorem], quick=True)
    assert [each.theorem.name for each in report.theorems] == ["mixed_product", "kron_transpose"]


def test_a_folder_has_its_files_that_declare_theorems(tmp_path: Path) -> None:
    write(tmp_path, "b.py", TRUE)
    write(tmp_path / "inner", "a.py", NOT)
    (tmp_path / "script.py").write_text("raise SystemExit('a script is not imported')")
    (tmp_path / ".hidden").mkdir()
    write(tmp_path / ".hidden", "c.py", FALSE)
    names = [theorem.name for theorem in ot.load_theorems(tmp_path)]
    assert names == ["mixed_product", "products_do_not_commute"]
    chosen = selected(f"{tmp_path / 'inner' / 'a.py'}::products_do_not_commute")
    assert [theorem.name for theorem in chosen] == ["products_do_not_commute"]


def test_a_file_imports_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_theorems.py").write_text(HEAD)
    file = tmp_path / "uses_it.py"
    file.write_text(f"from neighbour_of_theorems import *\n{TRUE}")
    assert ot.verify(file, quick=True).passed


def test_two_files_may_use_one_name(tmp_path: Path) -> None:
    first = write(tmp_path / "one", "mine.py", TRUE)
    second = write(tmp_path / "two", "mine.py", TRUE.replace("S * W", "W * S"))
    report = ot.verify([first, second], quick=True)
    assert [each.passed for each in report.theorems] == [True, False]


def test_a_theorem_of_a_file_reaches_a_process_that_has_not_read_it(tmp_path: Path) -> None:
    (theorem,) = ot.load_theorems(write(tmp_path, "mine.py", TRUE))
    assert pickle.loads(pickle.dumps(theorem)) is theorem
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        report = ot.verify([theorem, "kron_transpose"], executor=pool, quick=True)
    assert report.passed


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (HEAD + "@theorem\ndef f(:\n", r"mine\.py, line 9: "),
        ("import nowhere_at_all\n", r"mine\.py, line 1: ModuleNotFoundError: No module named 'now"),
        ("x = 1\n\ny = x / 0\n", r"mine\.py, line 3: ZeroDivisionError: division by zero"),
        (HEAD, r"mine\.py declares no theorem: decorate a function with otimes\.theorem"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(
    content: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(content)
    with pytest.raises(ot.OtimesError, match=says):
        ot.load_theorems(tmp_path / "mine.py")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("nowhere.py", r"there is no file or folder nowhere\.py"),
        ("kron_mul_kro", "there is no theorem 'kron_mul_kro'; similar names are kron_mul_kron"),
        ("zzzzzz", "there is no theorem 'zzzzzz'; `otimes search` finds theorems"),
    ],
)
def test_what_does_not_exist_is_named(asked: str, says: str) -> None:
    with pytest.raises(ot.OtimesError, match=says):
        ot.verify([asked])


def test_a_folder_without_theorems(tmp_path: Path) -> None:
    with pytest.raises(ot.OtimesError, match="has no file that declares a theorem"):
        ot.load_theorems(tmp_path)
    file = write(tmp_path, "mine.py", TRUE)
    with pytest.raises(ot.OtimesError, match="declares no theorem 'other'; it declares mixed_pro"):
        ot.verify(f"{file}::other")


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (CRASHES, r"crashes cannot be stated, line 11: NameError: name 'Q' is not defined"),
        (RETURNS, "not a claim: SymPy evaluates Eq.* at once; return otimes.Statement"),
    ],
)
def test_a_claim_that_cannot_be_built_fails_by_itself(part: str, says: str, tmp_path: Path) -> None:
    report = ot.verify(write(tmp_path, "mine.py", part, TRUE), quick=True)
    first, second = report.theorems
    assert (first.proof.status, second.passed) == ("error", True)
    with pytest.raises(ot.OtimesError, match=says):
        first.theorem.claim()


def test_a_theorem_may_use_those_before_it() -> None:
    n = Symbol("n", integer=True, positive=True)
    P, Q = MatrixSymbol("P", n, n), MatrixSymbol("Q", n, n)

    @ot.theorem
    def by_the_catalogue() -> object:
        return ot.Statement(P, Q, given=(ot.lemma("kron_mul_kron"),))

    assert by_the_catalogue.statement().given[0].name == "kron_mul_kron"


@pytest.mark.parametrize(
    ("keyword", "names"),
    [
        ("MIXED", ["mixed_product"]),
        ("not mixed", ["swapped_factors", "products_do_not_commute"]),
        ("product and not (mixed or swapped)", ["products_do_not_commute"]),
        ("places or commute", ["swapped_factors", "products_do_not_commute"]),
    ],
)
def test_words_select_by_name_and_title(keyword: str, names: list[str], tmp_path: Path) -> None:
    file = write(tmp_path, "mine.py", TRUE, FALSE, NOT)
    assert [theorem.name for theorem in selected(file, keyword)] == names
    with pytest.raises(ot.OtimesError, match="no theorem matches 'nothing', of 3"):
        selected(file, "nothing")


@pytest.mark.parametrize("keyword", ["", "and", "a or", "(a", "a b", "not", "a)"])
def test_an_expression_that_cannot_be_read(keyword: str) -> None:
    with pytest.raises(ot.OtimesError, match=r"cannot read -k .*: it combines words"):
        matches(keyword, "a b")


# --- the command, and pytest


def test_the_command_verifies_a_file(tmp_path: Path) -> None:
    file = write(tmp_path, "mine.py", TRUE, FALSE)
    ran = otimes("verify", str(file), "--quick")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout.splitlines()[-1].startswith("2 theorems: 1 proved, 1 refuted")
    ran = otimes("verify", str(tmp_path), "-k", "mixed", "--quick")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1].startswith("1 theorem: 1 proved")
    ran = otimes("show", f"{file}::mixed_product")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "(A ⊗ S) (B ⊗ W) = A B ⊗ S W" in ran.stdout
    ran = otimes("list", str(file))
    assert "  swapped_factors: Factors change places\n" in ran.stdout


def test_pages_have_the_statement_the_steps_and_the_evidence(tmp_path: Path) -> None:
    file, out = write(tmp_path, "mine.py", TRUE, FALSE, CRASHES), tmp_path / "pages"
    ran = otimes("pages", str(file), "--out", str(out), "--quick")
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, f"{out / 'index.md'}\n", "")
    assert {each.name for each in out.iterdir()} == {
        "index.md", "mixed_product.md", "mixed_product.diagrams.svg", "crashes.md",
        "swapped_factors.md", "swapped_factors.left.svg", "swapped_factors.right.svg",
    }  # fmt: skip
    right, wrong = (
        (out / f"{name}.md").read_text() for name in ("mixed_product", "swapped_factors")
    )
    assert right.startswith("# Mixed product\n\n$$\n\\left(A \\otimes S\\right)")
    for part in ("Two Kronecker products.", "by `kron_mul_kron`", "**proved**", "- `A`: n × n"):
        assert part in right
    assert "np.array" in wrong
    assert "a slip" in wrong
    for picture in out.glob("*.svg"):
        assert ET.parse(picture).getroot().tag.endswith("svg")
        assert picture.name in right + wrong
    index = (out / "index.md").read_text()
    assert "- [Factors change places](swapped_factors.md): failed" in index
    ran = otimes("pages", str(file), "--out", str(file))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"cannot write {file}")


def test_pytest_collects_theorems(tmp_path: Path) -> None:
    write(tmp_path, "mine.py", TRUE, FALSE)
    (tmp_path / "test_else.py").write_text("def test_else():\n    pass\n")
    asked = ("-p", "no:cacheprovider", "-v", "--otimes-quick", "--otimes", "mine.py")
    ran = run_pytest(*asked, cwd=tmp_path)
    assert ran.returncode == 1
    assert "mine.py::mixed_product PASSED" in ran.stdout
    assert "mine.py::swapped_factors FAILED" in ran.stdout
    assert "swapped_factors: proof refuted" in ran.stdout
    assert "test_else" not in ran.stdout
    ran = run_pytest(*asked, "test_else.py", "-k", "mixed or else", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout
    assert "2 passed, 1 deselected" in ran.stdout
    ran = run_pytest("--otimes", "nowhere.py", cwd=tmp_path)
    assert ran.returncode == 4
    assert "--otimes: there is no file or folder nowhere.py" in ran.stderr
