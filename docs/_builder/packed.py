"""Folded parts of a page, compressed: what a reader opens is unpacked by the page itself.

A long chain of steps is most of a page, and few open it. Its HTML is compressed into an attribute;
assets/pages.js puts it in its place when it is opened. Nothing is fetched for it.
"""

from __future__ import annotations

import base64
import gzip
import re

OPENS, CLOSES = "<!-- packed -->", "<!-- /packed -->"
"""In Markdown, the lines around what is compressed."""

LEAST = 2_000
"""Shorter parts stay as they are."""

PART = re.compile(re.escape(OPENS) + "(.*?)" + re.escape(CLOSES), re.DOTALL)


def packed(text: str) -> str:
    """Return text compressed and encoded for an attribute of HTML.

    >>> len(packed("ab" * 1000)) < 80
    True
    """
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def fold(html: str) -> str:
    """Return a page with its marked parts compressed, those that are long enough."""
    return PART.sub(_part, html)


def _part(match: re.Match[str]) -> str:
    inside = match.group(1).strip()
    if len(inside) < LEAST:
        return inside
    return f'<div data-packed="{packed(inside)}"></div>'
