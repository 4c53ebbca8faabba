"""Examples in docstrings: a paragraph that starts with `>>>` is a Python session."""

from __future__ import annotations

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor


class Doctests(Extension):
    """The Python-Markdown extension."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the reader: after line ends are settled (30), before code is fenced off (25)."""
        md.preprocessors.register(Sessions(md), "python-sessions", 28)


class Sessions(Preprocessor):
    """Fences every session, from its first prompt to the next blank line."""

    def run(self, lines: list[str]) -> list[str]:
        """Return the lines with fences added."""
        fenced: list[str] = []
        in_session = in_code = False
        for line in lines:
            if line.startswith(("```", "~~~")):
                in_code = not in_code
            if in_session and not line.strip():
                fenced.append("```")
                in_session = False
            elif not in_session and not in_code and line.startswith(">>> "):
                fenced.append("```pycon")
                in_session = True
            fenced.append(line)
        return [*fenced, "```"] if in_session else fenced
