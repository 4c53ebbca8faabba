"""The formulas of a LaTeX document. No file that it names is read, and nothing is run."""

from __future__ import annotations

import re

from otimes.proofs.documents.containers.macros import with_macros
from otimes.proofs.documents.containers.source import Document, Formula, comments_in

VERBATIM = "verbatim|Verbatim|lstlisting|minted|comment|filecontents|alltt"
DISPLAYS = (
    "equation|align|gather|multline|eqnarray|displaymath|math|flalign|alignat|split|aligned|dmath"
)
PARTS = re.compile(
    r"""(?P<verbatim>\\begin\{(?P<v>"""
    + VERBATIM
    + r""")\*?\}.*?(?:\\end\{(?P=v)\*?\}|\Z))
      | (?P<verb>\\verb\*?(?P<bar>[^\sA-Za-z*]).*?(?P=bar))
      | (?P<escaped>\\[$\\%](?![(\[])|\\\\(?=\[))
      | (?P<comment>%[^\n]*)
      | (?P<display>\$\$(?P<d1>.*?)\$\$ | \\\[(?P<d2>(?:\\\\|(?!\\\[).)*?)\\\]
        | \\begin\{(?P<name>"""
    + DISPLAYS
    + r""")(?P<star>\*?)\}(?P<d3>(?:(?!\\begin\{(?P=name)\*?\}).)*?)\\end\{(?P=name)(?P=star)\})
      | (?P<inline>\\\((?P<i1>(?:\\\\|(?!\\\().)*?)\\\) | \$(?P<i2>(?:\\.|[^$\\])*?)\$)
    """,
    re.VERBOSE | re.DOTALL,
)
BODY = re.compile(r"\\begin\{document\}")


def read_tex(name: str, text: str) -> Document:
    """Return a LaTeX document with its formulas; the preamble has macros and no formulas."""
    document = Document(name, text)
    document.comments = comments_in(text)
    body = BODY.search(text)
    start = body.end() if body else 0
    if start:
        document.hidden.append((0, start))
    for match in PARTS.finditer(text, start):
        kind = next(
            k for k in ("verbatim", "verb", "escaped", "comment", "display", "inline") if match[k]
        )
        if kind in ("verbatim", "verb", "comment"):
            document.hidden.append(match.span())
        elif kind in ("display", "inline"):
            group = next(g for g in ("d1", "d2", "d3", "i1", "i2") if match[g] is not None)
            inside = match.span(group)
            if match["name"] in ("alignat", "flalign"):
                columns = re.match(r"\s*\{\d+\}", match[group])
                inside = (inside[0] + (columns.end() if columns else 0), inside[1])
            document.formulas.append(
                Formula(text[slice(*inside)], *inside, display=kind == "display")
            )
    return with_macros(document)
