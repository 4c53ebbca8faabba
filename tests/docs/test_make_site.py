"""A site is built again when what it is made of or the site itself differs, and only then."""

import os
import sys
from pathlib import Path

import pytest

import make_site

BUILD = """
from pathlib import Path
page = Path("site", "index.html")
page.parent.mkdir(exist_ok=True)
page.write_text(Path("docs", "index.md").read_text())
Path("built").write_text(Path("built").read_text() + "x")
"""


@pytest.fixture
def root(tmp_path):
    """A repository with one page."""
    for folder in ("algebra", "docs", ".venv"):
        (tmp_path / folder).mkdir()
    (tmp_path / "docs" / "index.md").write_text("a page")
    (tmp_path / "algebra" / "one.py").write_text("ONE = 1")
    (tmp_path / "built").write_text("")
    return tmp_path


def made(root):
    """Make the site, and return how often it has been built so far."""
    assert make_site.make(root, [sys.executable, "-c", BUILD]) == 0
    return len((root / "built").read_text())


def test_a_site_is_built_once(root, capsys):
    assert made(root) == 1
    assert made(root) == 1
    assert "as the last build left it" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "docs" / "index.md").write_text("A page"),
        lambda root: (root / "docs" / "more.md").write_text(""),
        lambda root: (root / "algebra" / "one.py").rename(root / "algebra" / "two.py"),
        lambda root: (root / "site" / "index.html").write_text("another page"),
        lambda root: (root / "site" / "index.html").unlink(),
        lambda root: (root / "site" / "more.html").write_text(""),
        lambda root: (root / ".venv" / "site.json").write_text("{"),
    ],
)
def test_it_is_built_again_when_something_differs(root, change):
    assert made(root) == 1
    change(root)
    assert made(root) == 2
    (root / "site" / "more.html").unlink(missing_ok=True)


def test_a_date_is_no_difference(root):
    assert made(root) == 1
    os.utime(root / "docs" / "index.md")
    assert made(root) == 1


def test_versions_and_variables_count(root, monkeypatch):
    before = make_site.made_of(root)
    monkeypatch.setenv("OTIMES_LONG", "1")
    assert make_site.made_of(root) != before
    monkeypatch.delenv("OTIMES_LONG")
    monkeypatch.setattr(make_site, "distributions", list)
    assert make_site.made_of(root) != before


@pytest.mark.parametrize(
    "code", ["import sys; sys.exit(3)", f"{BUILD}\nPath('docs/new.md').touch()"]
)
def test_a_build_that_failed_or_was_overtaken_is_not_kept(root, code):
    make_site.make(root, [sys.executable, "-c", code])
    assert not Path(root, make_site.STAMP).exists()
