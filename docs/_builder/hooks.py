"""The MkDocs hooks of the site.

They generate the pages of the theorems from the catalogue and its verification report, typeset all
formulas, and insert the model cards and the axioms into their pages.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import evidence  # first: it takes the digest of the code that the others import

# isort: split
import axiom_list
import induction_story
import judge_files
import lessons
import model_cards
import paper_derivations
import theorem_pages
from doctests import Doctests
from mathematics import Mathematics, Typesetter

log = logging.getLogger("mkdocs.hooks.otimes")

# Titles in the navigation have subscripts; a label that is read aloud must not spell their tags.
TAGS_IN_LABEL = re.compile(r"&lt;/?(?:i|sub)&gt;")

# The generated sections, by the comment that they replace.
GENERATED = {
    "<!-- the cards of the bundled models -->": model_cards.text,
    "<!-- the story of the induction model -->": induction_story.text,
    "<!-- the axioms -->": axiom_list.text,
    "<!-- the derivations of papers -->": paper_derivations.text,
}
mathematics = Mathematics(Typesetter())


@event_priority(100)  # before mkdocstrings takes its copy of the extensions
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the Markdown extensions; the whole build uses one V8 context."""
    config.markdown_extensions += [mathematics, Doctests()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Run the checks and add a page for each theorem, numbered, and their index."""
    report = evidence.report()
    for path, text in theorem_pages.pages(report):
        files.append(File.generated(config, path, content=text))
    theorem_pages.place_in(config.nav, theorem_pages.numbered(report))
    for short in theorem_pages.shortcomings(report):
        # Failed checks are shown on the page; with --strict they also fail the build.
        log.warning(short)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Set the page name for error messages, and insert the generated sections."""
    mathematics.page = page.file.src_uri
    if page.file.src_uri.startswith("learn/"):
        markdown = lessons.made(markdown, page.file.src_uri)
    for mark, text in GENERATED.items():
        if mark in markdown:
            markdown = markdown.replace(mark, text())
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Add the judge that runs in a reader's browser."""
    judge_files.write(Path(config.site_dir))


def on_post_page(output: str, **_: Any) -> str:
    """Remove HTML tags from ARIA labels."""
    return TAGS_IN_LABEL.sub("", output)
