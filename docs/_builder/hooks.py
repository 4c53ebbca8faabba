"""The MkDocs hooks of the site.

They generate the pages of the theorems from the catalogue and its verification report, typeset all
formulas, insert the generated sections into their pages, and make the pages small.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable
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
import induction_story
import judge_files
import lessons
import minified
import model_cards
import paper_derivations
import prose
import rendering
import rule_list
import search_entries
import shared
import theorem_map
import theorem_pages
from doctests import Doctests
from mathematics import Mathematics, Typesetter

log = logging.getLogger("mkdocs.hooks.otimes")

# Titles in the navigation have subscripts; a label that is read aloud must not spell their tags.
TAGS_IN_LABEL = re.compile(r"&lt;/?(?:i|sub)&gt;")

# The generated sections, by the comment that they replace.
GENERATED: dict[str, Callable[[], str]] = {
    "<!-- the cards of the bundled models -->": model_cards.text,
    "<!-- the story of the induction model -->": induction_story.text,
    "<!-- the axioms -->": axiom_list.text,
    "<!-- the derivations of papers -->": paper_derivations.text,
    "<!-- the rules -->": rule_list.text,
    "<!-- the map -->": lambda: theorem_map.text(evidence.report()),
    "<!-- the glossary -->": lambda: glossary.text(evidence.report()),
}
MADE_ANEW = ("<!-- the map -->", "<!-- the glossary -->", "<!-- the derivations of papers -->")
"""Those that depend on the report, or are kept in parts."""

UNUSED = ("**/*.map", "assets/javascripts/lunr")
"""Files of the theme that no page asks for: source maps, and search in other languages."""

mathematics = Mathematics(Typesetter())
pages: dict[str, rendering.Rendered] = {}
"""The pages of the theorems by path."""


@event_priority(100)  # before mkdocstrings takes its copy of the extensions
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the Markdown extensions; the whole build uses one V8 context."""
    config.markdown_extensions += [mathematics, Doctests()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Run the checks and add a page for each theorem, numbered, and their index."""
    report = evidence.report()
    texts = dict(theorem_pages.pages(report))
    pages.clear()
    pages.update(rendering.rendered(texts, config.markdown_extensions, config.mdx_configs))
    book = theorem_pages.numbered(report)
    titles = {e.path: prose.heading(e.theorem.title) for e in theorem_pages.entries(book)}
    titles |= {chapter.path: f"{chapter.number} {chapter.title}" for chapter in book}
    for path in texts:
        files.append(File.generated(config, path, content=f"# {titles.get(path, 'Theorems')}\n"))
    theorem_pages.place_in(config.nav, book)
    for short in theorem_pages.shortcomings(report):
        # Failed checks are shown on the page; with --strict they also fail the build.
        log.warning(short)
    _check_links(files)
    search_entries.add(config, book)
    return files


def _check_links(files: Files) -> None:
    """Warn of links on the pages of theorems that lead to no page."""
    known = {file.src_uri for file in files}
    for path, each in pages.items():
        for link in each["links"]:
            target = Path(path).parent.joinpath(link)
            if str(Path("/", target).resolve().relative_to("/")) not in known:
                log.warning(f"{path} links to {link}, and there is no such page")


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Set the page name for error messages, and insert the generated sections."""
    mathematics.page = page.file.src_uri
    if page.file.src_uri in pages or page.file.src_uri == "glossary.md":
        page.meta["search"] = {"exclude": True}  # there are entries for its parts
    if page.file.src_uri.startswith("learn/"):
        markdown = evidence.kept(
            page.file.src_uri, markdown, make=lambda: lessons.made(markdown, page.file.src_uri)
        )
    for mark, text in GENERATED.items():
        if mark in markdown:
            shown = text() if mark in MADE_ANEW else evidence.kept(mark, make=text)
            markdown = markdown.replace(mark, shown)
    return markdown


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Give the page of a theorem its content, and link the terms on the others."""
    made = pages.get(page.file.src_uri)
    if made is None:
        if page.file.src_uri.startswith("learn/"):
            html = lessons.unbroken(html)
        return glossary.linked(html, page.url)
    page.toc = get_toc(made["toc"])
    page.present_anchor_ids = set(made["anchors"])
    page.links_to_anchors = None  # those of the line that this replaces
    return str(made["html"])


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Remove tags from ARIA labels, the spaces that nothing shows, and what pages share."""
    return shared.cut(minified.page(TAGS_IN_LABEL.sub("", output)), page.url)


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
