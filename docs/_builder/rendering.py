"""The pages of the theorems as HTML: Markdown is converted in several processes, and kept.

MkDocs gets a page of one line for each theorem, for its place in the navigation, and the HTML when
it has converted that line. Other pages are converted by MkDocs itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from markdown import Markdown

import minified
from doctests import Doctests
from evidence import CACHE, builder, kept_all
from glossary import digest, linked
from mathematics import Mathematics, Typesetter
from packed import fold

LINK = re.compile(r'(<a [^>]*?href=")((?!https?:)[^"#]*)\.md(#[^"]*)?"')
ANCHOR = re.compile(r'\bid="([^"]+)"')

Rendered = dict[str, Any]
"""The HTML of a page, its table of contents as MkDocs has it, its anchors, and where it links."""


def rendered(
    texts: Mapping[str, str], extensions: Sequence[Any], configs: Mapping[str, Any]
) -> dict[str, Rendered]:
    """Return the pages with these Markdown texts, by their paths."""
    used = [each for each in extensions if isinstance(each, str) and each != "mkdocstrings"]
    chosen = json.dumps([used, {name: configs[name] for name in used if name in configs}])
    keys = {
        path: CACHE.key("html", builder("rendering"), digest(), chosen, path, _digest(text))
        for path, text in texts.items()
    }
    asked = {path: (path, text, chosen) for path, text in texts.items()}
    return kept_all("pages written", keys, page, asked)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def page(asked: tuple[str, str, str]) -> Rendered:
    """Return one page: of its path, its Markdown and the extensions as JSON.

    That of a theorem, which the search leaves out, is minified at once.
    """
    path, text, chosen = asked
    markdown, mathematics = _converter(chosen)
    mathematics.page = path
    markdown.reset()
    html = markdown.convert(text)
    anchors = ANCHOR.findall(html)
    links = [f"{to}.md{anchor}" for _, to, anchor in LINK.findall(html)]
    html = fold(linked(LINK.sub(r'\1\2.html\3"', html), path))
    return {
        "html": minified.page(html) if path.startswith("theorems/") else html,
        "toc": getattr(markdown, "toc_tokens", []),
        "anchors": anchors,
        "links": sorted(set(links)),
    }


@cache
def _converter(chosen: str) -> tuple[Markdown, Mathematics]:
    names, configs = json.loads(chosen)
    mathematics = Mathematics(Typesetter())
    extensions = [*names, mathematics, Doctests()]
    return Markdown(extensions=extensions, extension_configs=configs), mathematics
