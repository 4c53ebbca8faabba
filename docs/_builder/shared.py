"""What is the same on all pages of theorems, written once: navigation, tabs, palette and search.

They are most of a short page. Each is cut out of the page and put into a script, which inserts it
at the same place while the page is read, before the script of the theme; it works from disk too.
The navigation is one for each topic: what a page says of itself in it stays on the page.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

FOLDER = "assets/shared"

SHARED = (
    "<form class=md-header__option data-md-component=palette>",
    "<div class=md-search data-md-component=search",
    "<nav class=md-tabs ",
    '<script id="__config" ',
)
"""How the elements begin that are the same on all pages of theorems."""

PROGRAMS = ("<script>__md_scope=", "<script>var palette=")
"""How the scripts begin that are the same there, and run where they stand."""

LIST = "</label><ul class=md-nav__list data-md-scrollfix>"
OWN = '<li class="md-nav__item md-nav__item--active"><input'
LINK = re.compile(r'<a href=(\S+) class="md-nav__link md-nav__link--active">(.*?)</a>', re.DOTALL)

INSERT = "document.currentScript.insertAdjacentHTML('beforebegin',{})"
NAVIGATE = """(() => {
const script = document.currentScript, own = script.previousElementSibling;
const list = document.createElement("template");
list.innerHTML = {};
const link = [...list.content.querySelectorAll(".md-nav__item:not(.md-nav__item--nested) > a")]
  .find((each) => each.getAttribute("href") === script.dataset.page);
link.parentElement.replaceWith(own.firstElementChild);
own.replaceWith(list.content);
})();
"""

scripts: dict[str, str] = {}
"""The scripts by their names, for `write`."""


def cut(html: str, url: str) -> str:
    """Return the page of a theorem with scripts for what it shares; other pages as they are."""
    folder, _, name = url.rpartition("/")
    if folder != "theorems" or name == "index.html":
        return html
    for begin in SHARED:
        if (start := html.find(begin)) >= 0:
            part = _element(html, start)
            html = html.replace(part, _inserted(part), 1)
    for begin in PROGRAMS:
        if (start := html.find(begin)) >= 0:
            program = html[start:].partition("</script>")[0]
            source = _script(program.removeprefix("<script>"))
            html = html.replace(program, f"<script src={source}>", 1)
    start = html.find(LIST)
    if start < 0:
        return html
    part = _element(html, start + len("</label>"))
    return html.replace(part, _navigation(part), 1)


def _element(html: str, start: int) -> str:
    """Return the element that begins at a place, with what is in it."""
    name = html[start + 1 :].split(maxsplit=1)[0]
    depth = 0
    for tag in re.finditer(rf"<(/?){name}\b", html[start:]):
        depth += -1 if tag.group(1) else 1
        if depth == 0:
            return html[start : start + html[start + tag.end() :].index(">") + tag.end() + 1]
    raise ValueError(f"an element {name} is not closed")


def _inserted(part: str) -> str:
    return f"<script src={_script(INSERT.format(json.dumps(part)))}></script>"


def _navigation(whole: str) -> str:
    """Return what a page says of itself in its navigation, and the script for the rest."""
    start = whole.find(OWN)
    link = LINK.search(whole, start) if start >= 0 else None
    if link is None:
        return whole
    own = _element(whole, start)
    address, label = link.groups()
    plain = f"<li class=md-nav__item><a href={address} class=md-nav__link>{label}</a></li>"
    rest = whole[:start] + plain + whole[start + len(own) :]
    source = _script(NAVIGATE.replace("{}", json.dumps(rest, ensure_ascii=False)))
    return (
        f"<ul class=md-nav__list data-md-scrollfix>{own}</ul>"
        f"<script src={source} data-page={address}></script>"
    )


def _script(text: str) -> str:
    """Return the address of a script with this text, from the page of a theorem."""
    name = f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.js"
    scripts[name] = text
    return f"../{FOLDER}/{name}"


def write(site: Path) -> None:
    """Write the scripts."""
    folder = site / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in scripts.items():
        (folder / name).write_text(text, "utf-8")
