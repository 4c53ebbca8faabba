"""Pages without the spaces that nothing shows: the theme's templates are indented."""

from __future__ import annotations

import re

VERBATIM = re.compile(r"(<(pre|textarea|script|style)\b.*?</\2>)", re.DOTALL)
BLOCKS = (
    "article|aside|body|br|dd|details|div|dl|dt|figcaption|figure|footer|form|h[1-6]|head|header"
    "|hr|html|li|link|main|meta|nav|ol|p|section|summary|table|tbody|td|tfoot|th|thead|title|tr|ul"
)
SPACES = re.compile(r"\s+")
LABEL_OPENS = '<span class="md-ellipsis">'
NAMESPACE = re.compile(r'(<svg\b[^<>]*?) xmlns="http://www\.w3\.org/2000/svg"')
BESIDE_BLOCK = re.compile(rf"\s+(?=</?(?:{BLOCKS})\b)|(</?(?:{BLOCKS})\b[^<>]*>)\s+")
EXCLUDED = re.compile(r" data-search-exclude(?:=\"\")?(?=[\s>])")


TAG = re.compile(r"<[a-zA-Z][^<>]*>")
QUOTED = re.compile(r" ([\w:-]+)=\"([^\s\"'`=<>]+)\"(?=[ >])")


def page(html: str) -> str:
    """Return a page of HTML in fewer bytes; it looks the same."""
    pieces = VERBATIM.split(html)
    shown = []
    for number in range(0, len(pieces), 3):  # text, then a verbatim element and its name
        shown.append(_text(pieces[number]))
        shown += pieces[number + 1 : number + 2]
    return "".join(shown)


def _text(html: str) -> str:
    html = re.sub(r"<!--(?!\[).*?-->", "", html, flags=re.DOTALL)
    html = EXCLUDED.sub("", SPACES.sub(" ", html))
    html = NAMESPACE.sub(r"\1", html).replace(' <span class="md-ellipsis"> ', LABEL_OPENS)
    html = BESIDE_BLOCK.sub(lambda match: match.group(1) or "", html)
    html = html.replace(" </span> </a>", "</span></a>")
    return TAG.sub(lambda tag: QUOTED.sub(r" \1=\2", tag.group()), html)
