"""The names that the pages on Python document, as a list with links: it stands before them."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "python"
DOCUMENTED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
LINKED = re.compile(r"python/(\w+)\.md")


def text() -> str:
    """Return a section for each page, in the order of the navigation, with its names."""
    order = LINKED.findall((FOLDER.parents[1] / "mkdocs.yml").read_text("utf-8"))
    return "\n\n".join(_section(page) for page in order if page != "index")


def _section(page: str) -> str:
    written = (FOLDER / f"{page}.md").read_text("utf-8")
    title = written.partition("\n")[0].removeprefix("# Python: ")
    names = [
        f"[`{name.rpartition('.')[2]}`]({page}.md#{name})" for name in DOCUMENTED.findall(written)
    ]
    return f"## [{title[0].upper()}{title[1:]}]({page}.md)\n\n{' · '.join(names)}"
