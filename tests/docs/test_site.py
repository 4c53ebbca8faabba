"""A whole site, built from a report at hand: strict, self-contained, no scripts for formulas."""

import json
import logging
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
pytest.importorskip("material")
pytest.importorskip("mkdocstrings")
pytest.importorskip("py_mini_racer")

from mkdocs.commands.build import build
from mkdocs.config import load_config

import evidence
import judge_files
import paper_derivations
from otimes.proofs.catalogue import catalogue
from otimes.proofs.paper_derivations import DERIVATIONS
from tests.docs.reports import report

ROOT = Path(__file__).parents[2]
NAMES = ("kron_mul_kron", "head_is_kron", "two_layer_paths")

# Deprecations inside MkDocs and its plugins are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site, and what MkDocs warned of on the way."""
    folder = tmp_path_factory.mktemp("site")
    warnings = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger("mkdocs").addHandler(handler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "report", lambda: report(*NAMES))
        patch.setattr(judge_files, "write", lambda site: None)
        patch.setattr(judge_files, "begin", lambda: None)
        patch.setattr(paper_derivations, "DERIVATIONS", {"lora": DERIVATIONS["lora"]})
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=False)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        config.plugins.on_shutdown()
    logging.getLogger("mkdocs").removeHandler(handler)
    # Strict but for this: the lessons link to theorems that this small site leaves out.
    left_out = {f"theorems/{each.name}.md" for each in catalogue() if each.name not in NAMES}
    assert [w for w in warnings if not any(name in w for name in left_out)] == []
    return folder


class Loaded(HTMLParser):
    """What a browser fetches by itself when it shows a page; a link to follow is not."""

    # The relations of <link> that only say something.
    SAYING = frozenset({"canonical", "prev", "next", "alternate", "license", "author"})

    def __init__(self, html):
        super().__init__()
        self.addresses = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "link" and attributes.get("rel") not in self.SAYING:
            self.addresses.append(attributes["href"])
        for name in ("src", "srcset", "data", "poster", "background"):
            if attributes.get(name):
                self.addresses.append(attributes[name])
        self.addresses += re.findall(r"url\(([^)]*)\)", attributes.get("style") or "")
        if tag in {"image", "use"}:
            self.addresses.append(attributes.get("href") or attributes.get("xlink:href") or "")


def test_nothing_comes_from_another_host(site):
    for page in site.rglob("*.html"):
        outside = [a for a in Loaded(page.read_text("utf-8")).addresses if "//" in a]
        assert not outside, f"{page.relative_to(site)} loads {outside}"
    for sheet in site.rglob("*.css"):
        text = sheet.read_text("utf-8")
        loaded = re.findall(r"url\(([^)]*)\)|@import\s+([^;]*)", text)
        outside = [a for pair in loaded for a in pair if "//" in a and "data:" not in a]
        assert not outside, f"{sheet.relative_to(site)} loads {outside}"


def test_scripts_know_few_hosts_and_have_no_cause_to_ask_them(site):
    """The theme's script names hosts for diagrams, a polyfill and the facts of a repository."""
    hosts = set()
    for script in site.rglob("*.js"):
        if script.name != "search_index.js":
            hosts |= set(re.findall(r"[\"'`]https?://([\w.-]+)", script.read_text("utf-8")))
    assert hosts <= {"unpkg.com", "api.github.com", "gitlab.com", "www.w3.org"}
    for page in site.rglob("*.html"):
        html = page.read_text("utf-8")
        assert not re.search('class="?mermaid', html)
        assert not re.search('data-md-component="?source', html)


def test_formulas_need_no_script_and_find_their_fonts(site):
    html = (site / "theorems" / "head_is_kron.html").read_text("utf-8")
    assert "<div class=formula><tex-math" in html
    assert "$$" not in html
    assert "<svg class=otimes-diagram" in html
    assert not list(site.rglob("katex*.js"))
    sheet = site / "assets" / "katex" / "katex.min.css"
    fonts = re.findall(r"url\(([^)]*)\)", sheet.read_text("utf-8"))
    assert len(fonts) == 20
    assert all((sheet.parent / font).is_file() for font in fonts)
    assert (sheet.parent / "LICENSE").is_file()


def test_what_builds_the_site_is_not_in_it(site):
    assert not list(site.rglob("*.py"))
    assert not (site / "_builder").exists()


def test_pages_follow_one_another(site):
    html = (site / "theorems" / "head_is_kron.html").read_text("utf-8")
    assert 'aria-label="Previous: 3 The attention head"' in html
    assert 'aria-label="Next: 6 Depth' in html


def test_labels_that_are_read_aloud_hold_no_tags(site):
    for page in site.rglob("*.html"):
        assert not re.search(r'aria-label="[^"]*&lt;', page.read_text("utf-8"))


@pytest.mark.parametrize(
    "page",
    sorted(
        path.relative_to(ROOT / "docs").as_posix()
        for pattern in ("*.md", "*/index.md")
        for path in (ROOT / "docs").glob(pattern)
    ),
)
def test_python_on_the_pages_runs(page):
    names = {}  # a block goes on where the one before it stopped
    for block in re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL
    ):
        exec(compile(block, page, "exec"), names)


def test_pages_are_light(site):
    sizes = {path.name: path.stat().st_size for path in site.rglob("*.html")}
    assert max(sizes.values()) < 150_000, sizes
    assert not list(site.rglob("*.map"))


def test_what_pages_share_is_written_once_and_found(site):
    written = {path.name: path.read_text("utf-8") for path in site.glob("assets/shared/*.js")}
    used = set()
    for name in NAMES:
        html = (site / "theorems" / f"{name}.html").read_text("utf-8")
        scripts = re.findall(r"<script src=\.\./assets/shared/(\w+\.js)", html)
        assert len(scripts) == 7
        (navigation,) = re.findall(rf"shared/(\w+\.js) data-page={name}\.html>", html)
        assert "__config" not in html
        assert "__md_scope=" not in html
        assert "md-tabs__list" not in html
        used |= set(scripts)
        shown = "".join(written[script] for script in scripts)
        assert "md-search__input" in shown
        assert "md-tabs__link" in shown
        assert "6 Depth" in shown
        assert f"href={name}.html class=md-nav__link" in written[navigation]
    assert used == set(written)


def test_the_map_has_every_entry_and_use(site):
    text = (site / "assets" / "map" / "data.js").read_text("utf-8")
    found = json.loads(text.removeprefix("window.otimesMap = ").rstrip(";\n"))
    names = [entry[0] for chapter in found["chapters"] for entry in chapter["entries"]]
    assert names == list(NAMES)
    assert [names.index("head_is_kron"), names.index("kron_mul_kron")] in found["uses"]


def test_theorems_are_found_by_one_entry_each(site):
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    found = [doc["location"] for doc in index["docs"] if doc["location"].startswith("theorems/")]
    assert sorted(found) == sorted(f"theorems/{name}.html" for name in NAMES)
