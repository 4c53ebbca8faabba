"""What MkDocs calls while it builds the site.

The pages of the theorems are made here from the catalogue and from one run of its checks; the
formulas of every page are typeset here; the cards of the models and the axioms are put into their
pages here.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import axiom_list
import evidence
import induction_story
import model_cards
import theorem_pages
from doctests import Doctests
from mathematics import Mathematics, Typesetter

log = logging.getLogger("mkdocs.hooks.otimes")

# Titles in the navigation have subscripts; a label that is read aloud must not spell their tags.
TAGS_IN_LABEL = re.compile(r"&lt;/?(?:i|sub)&gt;")

# What is put into a page where it says so.
GENERATED = {
    "<!-- the cards of the bundled models -->": model_cards.text,
    "<!-- the story of the induction model -->": induction_story.text,
    "<!-- the axioms -->": axiom_list.text,
}
mathematics = Mathematics(Typesetter())


@event_priority(100)  # before mkdocstrings takes its copy of the extensions
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add our Markdown extensions; one V8 serves the whole build."""
    config.markdown_extensions += [mathematics, Doctests()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Run the checks and add a page for each theorem, numbered, and their index."""
    report = evidence.report()
    for path, text in theorem_pages.pages(report):
        files.append(File.generated(config, path, content=text))
    theorem_pages.place_in(config.nav, theorem_pages.numbered(report))
    for short in theorem_pages.shortcomings(report):
        # A page says what was found, good or bad; under --strict a bad finding stops the build.
        log.warning(short)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Tell the typesetter which page it is on, and fill in what is generated."""
    mathematics.page = page.file.src_uri
    for mark, text in GENERATED.items():
        if mark in markdown:
            markdown = markdown.replace(mark, text())
    return markdown


def on_post_page(output: str, **_: Any) -> str:
    """Take the tags out of the labels."""
    return TAGS_IN_LABEL.sub("", output)
