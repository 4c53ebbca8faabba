"""The pages of a user's theorems in HTML: what they have, and what is refused."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
pytest.importorskip("py_mini_racer")

import own_pages
import theorem_pages
from otimes import OtimesError, _pages, load_theorems
from otimes.proofs.verification import verify

FILE = '''
from sympy import KroneckerProduct as kron, MatrixSymbol, symbols
from otimes import Statement, theorem

n, d = symbols("n d", integer=True, positive=True)
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
V, W = MatrixSymbol("V", d, d), MatrixSymbol("W", d, d)

@theorem
def kron_factors():
    """Kronecker products multiply factor by factor."""
    return Statement(kron(A, V) * kron(B, W), kron(A * B, V * W))

@theorem(source="Nobody 2020, A false claim")
def swapped():
    """The factors in the other order."""
    return Statement(kron(A, V) * kron(B, W), kron(B * A, V * W))

@theorem
def broken():
    """Sizes that do not fit."""
    return Statement(A * V, A)
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A file with a true, a false and an impossible theorem."""
    path = tmp_path_factory.mktemp("own") / "mine.py"
    path.write_text(FILE)
    return path


def test_pages_have_what_those_of_the_catalogue_have(file):
    report = verify(load_theorems(file), quick=True)
    texts = dict(theorem_pages.pages(report))
    page = texts["theorems/kron_factors.md"]
    for section in ("Diagram", "Derivation", "Symbols", "Check it here", "Code to run", "Evidence"):
        assert f"## {section}" in page
    assert 'data-kind="certificate"' in page
    assert 'data-kind="claim"' in page
    assert f'load_theorems("{file.name}")' in page
    assert "refuted" in texts["theorems/swapped.md"]
    assert "Nobody 2020" in texts["theorems/swapped.md"]
    broken = texts["theorems/broken.md"]
    assert "could not be checked" in broken
    assert broken.count("cannot multiply A (n × n) by V (d × d)") == 1
    assert "Passed" not in broken
    assert "## Source\n\nName" in page  # it cites nothing
    front = own_pages.front(report)
    assert re.findall(r"theorems/(\w+)\.md", front) == ["kron_factors", "swapped", "broken"]


def test_a_folder_with_other_files_is_not_emptied(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OtimesError, match="has files that `otimes pages --html` did not write"):
        _pages.build_site(["kron_mul_kron"], None, tmp_path, True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(_pages, "NEEDS", ("no_such_module",))
    with pytest.raises(OtimesError, match="need the extra `docs`, and no_such_module"):
        _pages.build_site(["kron_mul_kron"], None, tmp_path, True)
    monkeypatch.setattr(_pages, "BUILDER", tmp_path / "none.py")
    with pytest.raises(OtimesError, match="in a clone of the repository"):
        _pages.build_site(["kron_mul_kron"], None, tmp_path, True)


@pytest.mark.skipif(not os.environ.get("OTIMES_LONG"), reason="builds a site: OTIMES_LONG=1")
def test_the_site_of_a_file_is_built(file, tmp_path):
    command = [sys.executable, "-m", "otimes", "pages", str(file), "--html", "--quick"]
    ran = subprocess.run(
        [*command, "--out", str(tmp_path / "site")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1, ran.stderr  # two of the three do not hold
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in tmp_path.rglob("*.html")}
    assert {"index.html", "theorems/kron_factors.html", "map.html", "rules.html"} <= pages
    assert not any(page.startswith(("learn/", "python/")) for page in pages)
    for page in pages:
        html = Path(tmp_path, "site", page).read_text("utf-8")
        for link in re.findall(r'<a [^>]*?href="?(?!https?:|#)([^"\s>#]+\.html)', html):
            assert (tmp_path / "site" / page).parent.joinpath(link).resolve().is_file(), link
