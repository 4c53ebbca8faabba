"""The MkDocs hooks of the site.

They generate the pages of the theorems from the catalogue and its verification report, typeset all
formulas, insert the generated sections into their pages, and make the pages small.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

import evidence  # first: it takes the digest of the code that the others import

# isort: split
import axiom_list
import compact
import glossary
import glossary_page
import induction_story
import judge_files
import lessons
import links
import minified
import model_cards
import own_pages
import paper_derivations
import prose
import python_names
import rendering
import rule_list
import search_entries
import shared
import theorem_map
import theorem_pages
from doctests import Doctests
from mathematics import Mathematics, Typesetter
from otimes.proofs.evidence import Report

log = logging.getLogger("mkdocs.hooks.otimes")

# Titles in the navigation have subscripts; a label that is read aloud must not spell their tags.
TAGS_IN_LABEL = re.compile(r"&lt;/?(?:i|sub)&gt;")

CONTENT = "<div>the content</div>"
"""What stands for the content of a page while the rest of it is minified."""

# The generated sections, by the comment that they replace.
GENERATED: dict[str, Callable[[], str]] = {
    "<!-- the cards of the bundled models -->": model_cards.text,
    "<!-- the story of the induction model -->": induction_story.text,
    "<!-- the axioms -->": axiom_list.text,
    "<!-- the derivations of papers -->": paper_derivations.text,
    "<!-- the rules -->": rule_list.text,
    "<!-- the names -->": python_names.text,
    "<!-- the map -->": lambda: theorem_map.text(evidence.report()),
    "<!-- the glossary -->": lambda: glossary_page.text(evidence.report()),
}
MADE_ANEW = tuple(mark for mark in GENERATED if re.search("map|glossary|names|papers", mark))
"""Those that depend on the report or on other pages, or are made at once."""

UNUSED = ("**/*.map", "assets/javascripts/lunr")
"""Files of the theme that no page asks for: source maps, and search in other languages."""

mathematics = Mathematics(Typesetter())
pages: dict[str, rendering.Rendered] = {}
"""The generated pages by path: of theorems, axioms and derivations."""
page_titles: dict[str, str] = {}
"""The titles of those that have none in the navigation."""
replaced: dict[str, str] = {}
"""The Markdown of lessons by path, with their numbers and figures, and of other pages."""
written: list[str] = []
expected: list[str] = []
"""The pages that have been written so far, and all: how far the build is."""
known: set[str] = set()
"""The pages of a site of theorems of a user, outside of which nothing is linked; else empty."""


@event_priority(100)  # before mkdocstrings takes its copy of the extensions
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the Markdown extensions; the whole build uses one V8 context."""
    config.markdown_extensions += [mathematics, Doctests()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Run the checks and add a page for each theorem, numbered, and their index."""
    report = evidence.report()
    book = theorem_pages.numbered(report)
    numbered = {each.path for each in theorem_pages.entries(book)}
    titles, texts = _generated(report, config.nav)
    replaced.clear()
    replaced.update(lessons.texts(files.documentation_pages()))
    known.clear()
    if config.extra.get("own"):
        replaced["index.md"] = own_pages.front(report)
        known.update(texts, (file.src_uri for file in files.documentation_pages()))
        texts = {path: links.unlinked(text, path, known) for path, text in texts.items()}
    page_titles.clear()
    page_titles.update((path, titles[path]) for path in texts if path not in numbered)
    pages.clear()
    pages.update(rendering.rendered(texts, config.markdown_extensions, config.mdx_configs))
    for path in texts:
        files.append(File.generated(config, path, content=f"# {titles[path]}\n"))
    for short in theorem_pages.shortcomings(report):
        # Failed checks are shown on the page; with --strict they also fail the build.
        log.warning(short)
    search_entries.add(config, book)
    judge_files.begin()  # one process makes the rest, and the other core is free
    return files


def _generated(report: Report, nav: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Return the titles and the Markdown of the generated pages, and put them into `nav`."""
    book = theorem_pages.numbered(report)
    titles = {e.path: prose.heading(e.theorem.title) for e in theorem_pages.entries(book)}
    titles |= {chapter.path: chapter.label for chapter in book} | {"theorems/index.md": "Theorems"}
    texts = dict(theorem_pages.pages(report))
    theorem_pages.place_in(nav, book)
    others = {"Axioms": axiom_list.pages, "Derivations of papers": paper_derivations.pages}
    for title, make in others.items():
        section = _section(nav, title)
        if section is None:
            continue
        for path, (called, text) in make().items():
            section.append(path)
            titles[path], texts[path] = called, text
    return titles, texts


def _section(nav: Any, title: str) -> list[Any] | None:
    """Return the pages of a section of the navigation, wherever it is; None if it has none."""
    waiting = list(nav)
    while waiting:
        item = waiting.pop()
        for name, inside in item.items() if isinstance(item, dict) else ():
            if name == title and isinstance(inside, list):
                return inside
            waiting += inside if isinstance(inside, list) else []
    return None


def on_pre_page(page: Page, **_: Any) -> Page:
    """Let MkDocs take the HTML of a generated page as it is, without converting its line."""
    if page.file.src_uri in pages:
        page.render = partial(_take, page)
    return page


def _take(page: Page, *_: Any) -> None:
    made = pages[page.file.src_uri]
    page.content = str(made["html"])
    if page.file.src_uri in page_titles:
        page.title = page_titles[page.file.src_uri]
    page.toc = get_toc(made["toc"])
    page.present_anchor_ids = set(made["anchors"])
    page.links_to_anchors = None  # `links` checks them


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Set the page name for error messages, and insert the generated sections."""
    mathematics.page = page.file.src_uri
    if page.file.src_uri.startswith("theorems/") or page.file.src_uri == "glossary.md":
        page.meta["search"] = {"exclude": True}  # there are entries for its parts
    markdown = replaced.get(page.file.src_uri, markdown)
    for mark, text in GENERATED.items():
        if mark in markdown:
            shown = text() if mark in MADE_ANEW else evidence.kept(text.__module__, mark, make=text)
            markdown = markdown.replace(mark, shown)
    return links.unlinked(markdown, page.file.src_uri, known) if known else markdown


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Link the terms on the pages that are not generated."""
    if page.file.src_uri in pages:
        return html
    if page.file.src_uri.startswith("learn/"):
        html = lessons.unbroken(html)
    return glossary.linked(html, page.url)


def on_post_page(output: str, page: Page, **__: Any) -> str:
    """Remove tags from ARIA labels, the spaces that nothing shows, and what pages share.

    The content of the page of a theorem has been minified before.
    """
    written.append(page.file.src_uri)
    evidence.tell("pages in the site", len(written), len(expected))
    ready = page.file.src_uri in pages and page.file.src_uri.startswith("theorems/")
    content = (page.content or "") if ready else ""
    if not content or content not in output:
        return shared.cut(minified.page(TAGS_IN_LABEL.sub("", output)), page.url)
    before, _, after = output.partition(content)
    outside = minified.page(TAGS_IN_LABEL.sub("", f"{before}{CONTENT}{after}"))
    return shared.cut(outside, page.url).replace(CONTENT, content, 1)


def on_env(env: Any, files: Files, **_: Any) -> None:
    """Warn of links on the generated pages that lead to no page or anchor."""
    known = {
        file.src_uri: links.anchors(file.page.content or "")
        for file in files.documentation_pages()
        if file.page is not None
    }
    written.clear()
    expected[:] = known
    known |= {path: set(made["anchors"]) for path, made in pages.items()}
    for sentence in links.wrong({path: made["links"] for path, made in pages.items()}, known):
        log.warning(sentence)


@event_priority(-150)  # after the theme has been copied and the search index written
def on_post_build(config: MkDocsConfig) -> None:
    """Write the style sheet of compact formulas and the judge, and remove what is not used."""
    site = Path(config.site_dir)
    (site / "assets" / "katex" / "katex.min.css").write_text(compact.stylesheet(), "utf-8")
    for pattern in UNUSED:
        for path in site.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (site / "assets" / "glossary.js").write_text(glossary.script(), "utf-8")
    shared.write(site)
    theorem_map.write(site, evidence.report())
    judge_files.write(site)
