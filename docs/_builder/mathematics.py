r"""Mathematics in Markdown, typeset while the site is built.

`$...$` is a formula in the line and `$$...$$` one on its own; both become HTML and MathML by
KaTeX, which runs here in an embedded V8, so that a reader's browser runs no script for them, and
then compact.py shortens them.
Code is left alone, `\$` is a dollar sign, and a formula that TeX would refuse stops the build
with the page and the formula named.
"""

from __future__ import annotations

import atexit
import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.util import AtomicString
from mkdocs.exceptions import PluginError
from py_mini_racer import MiniRacer

import compact

KATEX = Path(__file__).parent / "katex" / "katex.min.js"

# KaTeX's strict mode also refuses what it would typeset and LaTeX would not.
TYPESET = """
function typeset(tex, display) {
    try {
        return JSON.stringify({html: katex.renderToString(
            tex, {displayMode: display, throwOnError: true, strict: "error"})});
    } catch (error) {
        return JSON.stringify({error: String(error.rawMessage || error.message || error)});
    }
}
"""

LETTER = re.compile("[A-Za-z]")
# A formula in the line of at most so many characters of TeX is not broken at the line's end.
LONGEST_UNBROKEN = 30

DISPLAY_OPENS = re.compile(r"(?:^|\n) {0,3}\$\$")
DISPLAY_CLOSES = re.compile(r"(?<!\\)\$\$")
# A formula in the line starts and ends with something that is not a blank, as in Pandoc.
DISPLAY_IN_LINE = r"(?<!\\)\$\$((?:\\.|[^\\$])+?)\$\$"
INLINE = r"(?<!\\)\$(?![\s$])((?:\\.|[^\\$])*?(?:\\.|[^\\$\s]))\$(?!\d)"


class FormulaError(PluginError):
    """A formula that cannot be typeset; the message names the page, the formula and the error."""


class Typesetter:
    """KaTeX in one V8 context; each formula is typeset once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], str] = {}

    @cached_property
    def _v8(self) -> MiniRacer:
        """V8 with KaTeX, started at the first formula, after the checks have forked processes."""
        v8 = MiniRacer()
        # Left to the interpreter's own end, V8 waits for a thread that is already gone.
        atexit.register(v8.close)
        v8.eval(KATEX.read_text(encoding="utf-8") + TYPESET)
        return v8

    def html(self, tex: str, display: bool) -> str:
        """Return the HTML of a formula, or raise ValueError with KaTeX's reason."""
        key = (tex.strip(), display)
        if key not in self._known:
            answer = json.loads(self._v8.call("typeset", *key))
            if "error" in answer:
                raise ValueError(answer["error"])
            # The element has a name of its own so that the search index can leave it out whole.
            letter = not display and LETTER.fullmatch(key[0])
            html = compact.formula(answer["html"], letter=bool(letter))
            if display:
                self._known[key] = f"<tex-math data-search-exclude>{html}</tex-math>"
            else:
                classes = "katex short" if len(key[0]) <= LONGEST_UNBROKEN else "katex"
                inside = compact.unwrapped(html)
                self._known[key] = (
                    f'<tex-math class="{classes}" data-search-exclude>{inside}</tex-math>'
                )
        return self._known[key]


class Mathematics(Extension):
    """The Python-Markdown extension; `page` names the page in messages."""

    def __init__(self, typesetter: Typesetter) -> None:
        super().__init__()
        self.typesetter = typesetter
        self.page = "?"

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the readers: after code (80 and 190), before everything that would read TeX."""
        md.ESCAPED_CHARS.append("$")
        md.parser.blockprocessors.register(DisplayBlock(md, self), "display-formula", 78)
        md.inlinePatterns.register(Inline(DISPLAY_IN_LINE, md, self, True), "display-in-line", 187)
        md.inlinePatterns.register(Inline(INLINE, md, self, False), "formula", 186)
        # After the escapes (180), which now take `\$`.
        md.inlinePatterns.register(StrayDollar(r"\$", md, self), "stray-dollar", 179)

    def placeholder(self, md: Markdown, tex: str, display: bool) -> str:
        """Typeset a formula and stash its HTML, so that Markdown does not process it."""
        try:
            html = self.typesetter.html(tex, display)
        except ValueError as why:
            raise FormulaError(
                f"{self.page}: the formula {tex.strip()!r} is not TeX: {why}"
            ) from None
        placeholder: str = md.htmlStash.store(html)
        return placeholder


class DisplayBlock(BlockProcessor):
    """A displayed formula `$$ ... $$` at the start of a line; it may contain blank lines."""

    def __init__(self, md: Markdown, mathematics: Mathematics) -> None:
        super().__init__(md.parser)
        self.md = md
        self.mathematics = mathematics

    def test(self, parent: Element, block: str) -> bool:
        """Return whether a line of the block opens a formula."""
        return DISPLAY_OPENS.search(block) is not None

    def run(self, parent: Element, blocks: list[str]) -> None:
        """Consume the formula, over any number of blocks; return the text around it."""
        block = blocks.pop(0)
        opens = DISPLAY_OPENS.search(block)
        assert opens is not None
        before, rest = block[: opens.start()], block[opens.end() :]
        while (closes := DISPLAY_CLOSES.search(rest)) is None:
            if not blocks:
                page = self.mathematics.page
                raise FormulaError(f"{page}: the formula {rest.strip()[:60]!r} has no closing $$")
            rest += "\n\n" + blocks.pop(0)
        if before.strip():
            self.parser.parseBlocks(parent, [before])
        holder = SubElement(parent, "div", {"class": "formula"})
        tex = rest[: closes.start()]
        holder.text = AtomicString(self.mathematics.placeholder(self.md, tex, True))
        if after := rest[closes.end() :].strip("\n"):
            blocks.insert(0, after)


class Inline(InlineProcessor):
    """A formula inside a paragraph, a list item, a heading or a table cell."""

    def __init__(self, pattern: str, md: Markdown, mathematics: Mathematics, display: bool) -> None:
        super().__init__(pattern, md)
        self.mathematics = mathematics
        self.display = display

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Any, int, int]:
        """Replace the formula by its placeholder."""
        return self.mathematics.placeholder(self.md, m.group(1), self.display), m.start(), m.end()


class StrayDollar(InlineProcessor):
    """An unpaired dollar sign: usually a formula that was split (by a `|` in a table)."""

    def __init__(self, pattern: str, md: Markdown, mathematics: Mathematics) -> None:
        super().__init__(pattern, md)
        self.mathematics = mathematics

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Any, int, int]:
        """Raise FormulaError."""
        around = data[max(0, m.start() - 30) : m.end() + 30]
        raise FormulaError(
            f"{self.mathematics.page}: the dollar sign in {around!r} pairs with no other; "
            r"write \$ for a dollar sign and \vert for a bar inside a table"
        )
