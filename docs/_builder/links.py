"""Checks the links on the generated pages, which MkDocs does not see: to pages, and to anchors."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

ANCHOR = re.compile(r'\bid=(?:"([^"]+)"|([^\s">]+))')

DRAWN = ("map.md",)
"""Pages on which a script makes what the anchors lead to."""


def anchors(html: str) -> set[str]:
    """Return the anchors in some HTML.

    >>> sorted(anchors('<h2 id="a-b"><dt id=c>'))
    ['a-b', 'c']
    """
    return {quoted or plain for quoted, plain in ANCHOR.findall(html)}


def wrong(
    links: Mapping[str, Iterable[str]], known: Mapping[str, Collection[str]]
) -> Iterator[str]:
    """Yield a sentence for each link to a page or an anchor that is not there.

    `links` has the links of each page, and `known` the anchors of each page of the site.

    >>> list(wrong({"a/b.md": ["../c.md#d"]}, {"c.md": ["e"]}))
    ['a/b.md links to ../c.md#d, and c.md has no such anchor']
    """
    for page, targets in links.items():
        for link in targets:
            path, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
            if target not in known:
                yield f"{page} links to {link}, and there is no such page"
            elif anchor and target not in DRAWN and anchor not in known[target]:
                yield f"{page} links to {link}, and {target} has no such anchor"


LINK = re.compile(
    r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\(((?!https?:)[^()\s#]+\.md)(#[^()\s]*)?\)(\{[^{}]*\})?"
)


def unlinked(markdown: str, page: str, known: Collection[str]) -> str:
    """Return a page without those of its links that lead to pages which are not known.

    >>> unlinked("See [a](../a.md#x) and [b](b.md).", "c/d.md", ["a.md"])
    'See [a](../a.md#x) and b.'
    """

    def kept(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link.group(2)))
        return link.group() if target in known else link.group(1)

    return LINK.sub(kept, markdown)
