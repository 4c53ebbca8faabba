"""Formulas in fewer bytes: KaTeX's markup with short class names, and MathML without TeX.

KaTeX nests a `<span>` with long class names for every sign, about fifty bytes for each of TeX. The
elements become `<i>`, the classes have one or two letters, the common inline styles are classes
too, and `stylesheet` returns KaTeX's style sheet for these. What is drawn does not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

STYLES = Path(__file__).parents[1] / "assets" / "katex" / "katex.min.css"

KEPT = frozenset({"katex", "katex-display"})
"""Classes that the site's own style sheet names."""

FREQUENT = [
    "mathnormal",
    "mspace",
    "vlist",
    "vlist-t",
    "vlist-r",
    "vlist-t2",
    "vlist-s",
    "msupsub",
    "pstrut",
    "katex-sizing",
    "reset-size6",
    "size3",
    "katex-html",
    "katex-base",
    "katex-strut",
    "mathrm",
    "delimcenter",
]
"""The classes that get one letter."""

UNSEEN = (
    "tex-math>math{clip-path:inset(50%);height:1px;overflow:hidden;position:absolute;width:1px}"
)
"""The MathML of a formula in the line is read aloud and not shown, as in KaTeX's own wrapper."""

STYLE_LIST = Path(__file__).parent / "katex" / "styles.txt"
"""The inline styles that KaTeX writes most, the most frequent first; each becomes a class."""

CLASS = re.compile(r"\.(?=[a-zA-Z])([\w-]+)")
ELEMENT = re.compile(r'<span((?: [\w-]+="[^"]*")*)>')
ATTRIBUTE = re.compile(r' ([\w-]+)="([^"]*)"')
ANNOTATION = re.compile(r"<annotation.*?</annotation>", re.DOTALL)
MATHML = re.compile(r'<span class="katex-mathml">.*?</math></span>', re.DOTALL)
NEVER_QUOTED = re.compile(r"[^\s\"'`=<>]+")


@cache
def names() -> dict[str, str]:
    """Return the short name of each class of KaTeX's style sheet."""
    selectors = re.sub(r"\{[^}]*\}", " ", STYLES.read_text("utf-8"))
    others = sorted({*CLASS.findall(selectors)} - KEPT - {*FREQUENT})
    return dict(zip([*FREQUENT, *others], _letters(), strict=False))


def _letters() -> Iterator[str]:
    """Yield names: the letters, then pairs with a digit, that nothing else on a page has."""
    yield from ascii_lowercase
    for letter, digit in product(ascii_lowercase, "0123456789"):
        yield letter + digit


@cache
def styles() -> dict[str, str]:
    """Return the class of each inline style of the list: a capital, then a letter or nothing."""
    listed = STYLE_LIST.read_text("utf-8").split("\n")
    short = [*ascii_uppercase, *map("".join, product(ascii_uppercase, ascii_lowercase))]
    return dict(zip(filter(None, listed), short, strict=False))


def stylesheet() -> str:
    """Return KaTeX's style sheet for formulas that are compact."""
    rules = re.split(r"(\{[^{}]*\})", STYLES.read_text("utf-8"))
    renamed = "".join(rule if rule.startswith("{") else _selectors(rule) for rule in rules)
    # As strong as an inline style would be: stronger than any of KaTeX's rules.
    inline = "".join(
        f".katex .{names()['katex-html']} .{name}{{{style}}}" for style, name in styles().items()
    )
    return f"{renamed}.katex i{{font-style:inherit}}{inline}{UNSEEN}\n"


def _selectors(text: str) -> str:
    short = CLASS.sub(lambda match: f".{names().get(match.group(1), match.group(1))}", text)
    return re.sub(r"\bspan\b", "i", short)


def formula(html: str, letter: bool = False) -> str:
    """Return a formula of KaTeX in fewer bytes.

    A single `letter` is read aloud as it stands, so that it needs no MathML.
    """
    if letter:
        html = MATHML.sub("", html).replace(' aria-hidden="true"', "")
    html = ANNOTATION.sub("", html)
    html = re.sub(r"</?semantics>", "", html).replace(
        ' xmlns="http://www.w3.org/1998/Math/MathML"', ""
    )
    return ELEMENT.sub(_element, html).replace("</span>", "</i>")


def unwrapped(html: str) -> str:
    """Return a compact formula in the line without its outer elements, for `<tex-math>`.

    >>> unwrapped("<i class=katex><i class=o>x</i></i>")
    '<i class=o>x</i>'
    """
    html = html.removeprefix("<i class=katex>").removesuffix("</i>")
    return re.sub(rf"<i class={names()['katex-mathml']}>(<math.*?</math>)</i>", r"\1", html)


def _element(match: re.Match[str]) -> str:
    given = dict(ATTRIBUTE.findall(match.group(1)))
    classes = [_class(each) for each in given.pop("class", "").split()]
    if style := _style(given.pop("style", "")):
        known = styles().get(style)
        classes.append(known or "")
        if known is None:
            given["style"] = style
    if any(classes):
        given = {"class": " ".join(filter(None, classes)), **given}
    return f"<i{''.join(_attribute(name, value) for name, value in given.items())}>"


def _style(style: str) -> str:
    return re.sub(r"(?<![\d.])0\.(?=\d)", ".", style).rstrip(";").replace(": ", ":")


def _attribute(name: str, value: str) -> str:
    return f" {name}={value}" if NEVER_QUOTED.fullmatch(value) else f' {name}="{value}"'


def _class(name: str) -> str:
    """Return the short name of a class; none for one that no rule of the style sheet names."""
    return name if name in KEPT else names().get(name, "")
