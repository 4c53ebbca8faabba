"""The rules of derivations, each with its equation."""

from __future__ import annotations

from html import escape

from otimes.algebra.rules import RULES


def text() -> str:
    """Return the rules as a list of definitions, in alphabetical order, each with an anchor."""
    return "\n".join(["<dl>", *[_entry(name) for name in sorted(RULES)], "</dl>"])


def _entry(name: str) -> str:
    reading = escape(RULES[name].reading()).replace("$", "&#36;")
    return f'<dt id="{name}"><code>{name}</code></dt><dd><code>{reading}</code></dd>'
