r"""The formulas of a Markdown document.

markdown-it finds the blocks; inside a paragraph, where it gives no positions, formulas are found
here: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`, with one backslash or two, blocks of the language math,
and code spans in Unicode mathematics. A dollar sign before a digit that a price has is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from otimes.proofs.documents.containers.macros import with_macros
from otimes.proofs.documents.containers.source import Document, Formula, comments_in

PARTS = re.compile(
    r"""(?P<comment><!--.*?(?:-->|\Z))
      | (?P<code>(?<!`)(?P<ticks>`+)(?!`)(?P<inside>.+?)(?<!`)(?P=ticks)(?!`))
      | (?P<jekyll>\\\\\((?P<i3>(?:(?!\\\\\(|\n\s*\n).)*?)\\\\\)
        | \\\\\[(?P<i4>(?:(?!\\\\\[).)*?)\\\\\])
      | (?P<escaped>\\[$`\\](?![(\[]))
      | (?P<display>\$\$(?![ \t]*\n[ \t]*\n[^$\\=]*\$\$)\$?(?P<d1>.*?)\$\$\$?
        | \\\[(?P<d2>(?:\\\\|(?!\\\[).)*?)\\\])
      | (?P<inline>\\\((?P<i2>(?:\\\\|(?!\\\().)*?)\\\)
        | \$(?![\s$])(?P<i1>(?:[^$\n]|\n(?!\s*\n))*?)(?<![\s\\])\$(?!\d)
        | \$(?!\$)(?P<i5>(?=[^$]*\\[A-Za-z])(?:[^$\n]|\n(?!\s*\n))+?)(?<!\\)\$(?!\d))
      | (?P<env>\\begin\{(?P<name>equation|align|gather|multline|eqnarray)(?P<star>\*?)\}
            (?P<e1>(?:(?!\\begin\{(?P=name)).)*?)\\end\{(?P=name)(?P=star)\})
    """,
    re.VERBOSE | re.DOTALL,
)
FRONT_MATTER = re.compile(r"\A---\s*\n.*?\n---\s*(?:\n|\Z)", re.DOTALL)
UNICODE = re.compile("[⊗⊙ᵀ∘]")


def read_markdown(name: str, text: str) -> Document:
    """Return a Markdown document with its formulas."""
    return with_macros(read_unexpanded(name, text))


def read_unexpanded(name: str, text: str) -> Document:
    """Return a Markdown document with its formulas as they are, with macros in them."""
    document = Document(name, text)
    document.comments = comments_in(text)
    at = 0
    for start, end, language in _code_blocks(text):
        _read_text(document, at, start)
        if language == "math":
            first = text.find("\n", start) + 1
            last = text.rfind("\n", first, end - 1)
            document.formulas.append(Formula(text[first:last], first, last, True))
        document.hidden.append((start, end))
        at = end
    _read_text(document, at, len(text))
    return document


def _code_blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the offsets of front matter and of blocks of code, with their languages."""
    from markdown_it import MarkdownIt

    front = FRONT_MATTER.match(text)
    skipped = front.end() if front else 0
    if front:
        yield 0, skipped, "front matter"
    body = text[skipped:]
    lines = [0, *[match.end() for match in re.finditer("\n", body)], len(body)]
    parser = MarkdownIt("commonmark", {"maxNesting": 20}).disable(["inline"], ignoreInvalid=True)
    for token in parser.parse(body):
        if token.type == "fence" and token.map and token.content.count("$$") < 2:
            start, end = (lines[min(line, len(lines) - 1)] for line in token.map)
            yield skipped + start, skipped + end, token.info.strip().split(" ")[0]


def _read_text(document: Document, start: int, end: int) -> None:
    for match in PARTS.finditer(document.text, start, end):
        kind = match.lastgroup and next(
            k
            for k in ("comment", "code", "jekyll", "escaped", "display", "inline", "env")
            if match[k]
        )
        if kind == "comment":
            document.hidden.append(match.span())
        elif kind == "code":
            if UNICODE.search(match["inside"]) and "\n" not in match["inside"]:
                document.formulas.append(
                    Formula(
                        match["inside"], match.start("inside"), match.end("inside"), False, True
                    )
                )
        elif kind in ("display", "inline", "jekyll", "env"):
            groups = ("d1", "d2", "i1", "i2", "i3", "i4", "i5", "e1")
            group = next(g for g in groups if match[g] is not None)
            inside = _without_backticks(document.text, *match.span(group))
            tex = _unquoted(document.text[slice(*inside)])
            document.formulas.append(
                Formula(tex, *inside, display=group[0] != "i" or group == "i4")
            )


def _without_backticks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the formula of `$`…`$` stands, as some sites write it."""
    inside = text[start:end]
    quoted = len(inside) > 2 and inside[0] == inside[-1] == "`" and inside.count("`") == 2
    return (start + 1, end - 1) if quoted else (start, end)


def _unquoted(tex: str) -> str:
    """Return a formula without the `>` of a block quotation."""
    return re.sub(r"(?m)^(\s*)>", r"\1 ", tex)
