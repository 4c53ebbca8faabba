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

PALETTE = re.compile(
    r"<form class=md-header__option data-md-component=palette>.*?</form>", re.DOTALL
)
SEARCH = re.compile(
    r"<label class=\"md-header__button md-icon\" for=__search>.*?"
    r"<div class=md-search data-md-component=search.*?(?=</nav>)",
    re.DOTALL,
)
TABS = re.compile(r"<nav class=md-tabs .*?</nav>", re.DOTALL)
LIST = re.compile(
    r"(?<=</label>)<ul class=md-nav__list data-md-scrollfix>.*?</ul>(?=</nav></div>)", re.DOTALL
)
OWN = '<li class="md-nav__item md-nav__item--active"><input'
ITEM = re.compile(r"<li\b|</li>")
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
    for pattern in (PALETTE, SEARCH, TABS):
        html = pattern.sub(_inserted, html, count=1)
    return LIST.sub(_navigation, html, count=1)


def _inserted(match: re.Match[str]) -> str:
    return f"<script src={_script(INSERT.format(json.dumps(match.group())))}></script>"


def _navigation(match: re.Match[str]) -> str:
    """Return what a page says of itself in its navigation, and the script for the rest."""
    whole = match.group()
    start = whole.find(OWN)
    link = LINK.search(whole, start) if start >= 0 else None
    if link is None:
        return whole
    own = _item(whole, start)
    address, label = link.groups()
    plain = f"<li class=md-nav__item><a href={address} class=md-nav__link>{label}</a></li>"
    rest = whole[:start] + plain + whole[start + len(own) :]
    source = _script(NAVIGATE.replace("{}", json.dumps(rest, ensure_ascii=False)))
    return (
        f"<ul class=md-nav__list data-md-scrollfix>{own}</ul>"
        f"<script src={source} data-page={address}></script>"
    )


def _item(html: str, start: int) -> str:
    """Return the list item that starts at a place, with the items inside it."""
    depth = 0
    for tag in ITEM.finditer(html, start):
        depth += -1 if tag.group() == "</li>" else 1
        if depth == 0:
            return html[start : tag.end()]
    raise ValueError("a list item of the navigation is not closed")


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
