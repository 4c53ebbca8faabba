"""The derivation of a theorem: at most eight lines for people, and every step as text, folded."""

from __future__ import annotations

import re
from html import escape

from equations import aligned, lines_of
from evidence import Kept
from otimes.algebra.rules import RULES
from packed import CLOSES, OPENS
from words import count

MOST_LINES = 8
"""Of the derivation for people."""
LONGEST = 650
"""Characters of TeX in it, at most; the longest expressions are left out first."""
MOST_RULES = 4
"""That one line names; the others are counted."""


NOT_FOUND = (
    "## Derivation\n\nA build gives the search for named rules a limited time, and it has found no"
    " chain in it. The proof does not need one: the prover compares"
    " [normal forms](../normal-form.md), and its certificate is checked by itself."
    " `theorem.steps()` searches longer."
)


def text(found: Kept, expected: bool = False) -> str:
    """Return the section for a derivation as `derived` has it.

    Where there is none, it says so if one was `expected`, and is empty otherwise.
    """
    if not found["steps"]:
        return NOT_FOUND if expected else ""
    parts = ["## Derivation", found["preface"]]
    lines = shortened(found["lines"])
    if len(found["first"]) + sum(len(line["tex"]) for line in lines) <= 2 * LONGEST:
        parts.append(f"$$\n{_in_lines(found['first'])}\n$$")
        parts += [_shown(line) for line in lines]
    parts.append(_every_step(found))
    return "\n\n".join(filter(None, parts))


def shortened(given: list[Kept]) -> list[Kept]:
    """Return the lines of a chain, joined until they are few and short; the last one stays."""
    lines = [{**line, "rules": dict(line["rules"])} for line in given]
    while len(lines) > 1 and (
        len(lines) > MOST_LINES or sum(len(line["tex"]) for line in lines) > LONGEST
    ):
        # A line goes whose next step is bookkeeping; or else the longest.
        place = max(range(len(lines) - 1), key=lambda k: (lines[k + 1]["moves"], _length(lines[k])))
        gone = lines.pop(place)
        then = lines[place]
        for rule, times in then["rules"].items():
            gone["rules"][rule] = gone["rules"].get(rule, 0) + times
        then["rules"] = gone["rules"]
        ideas = f"{gone.get('idea', '')}, {then.get('idea', '')}".split(", ")
        then["idea"] = ", ".join(dict.fromkeys(filter(None, ideas)))
        then["moves"] = then["moves"] and gone["moves"]
    return lines


def _length(line: Kept) -> int:
    return len(line["tex"])


def _shown(line: Kept) -> str:
    """Return a line as Markdown: what it does, the rules that matter, linked, and the formula."""
    telling = [rule for rule in line["rules"] if not _moves(rule)]
    named = telling or list(line["rules"])
    links = ", ".join(rule_link(rule) for rule in named[:MOST_RULES])
    if (more := len(named) - MOST_RULES) > 0:
        links += f" and {count(more, 'more rule')}"
    elif telling and len(telling) < len(line["rules"]):
        links += ", and rearranging"
    said = {rule_link(rule) for rule in named if rule not in RULES}  # hypotheses
    ideas = [each for each in line.get("idea", "").split(", ") if each not in said]
    idea = f"{', '.join(ideas)}, " if any(ideas) else ""
    return f"{idea}by {links}\n{{ .rule }}\n\n$$\n= {_in_lines(line['tex'])}\n$$"


def _moves(rule: str) -> bool:
    return rule in RULES and RULES[rule].bookkeeping


def rule_link(rule: str) -> str:
    """Return the name of a rule, which leads to its equation and shows it."""
    if match := re.fullmatch(r"given_(\d+)", rule):
        return f"hypothesis {match.group(1)}"
    if rule not in RULES:
        return rule.replace("_", r"\_")
    reading = escape(RULES[rule].reading()).replace("$", "&#36;")
    return f'<a href="../rules.html#{rule}" title="{reading}">{rule}</a>'


def _every_step(found: Kept) -> str:
    said = f"Every step, with the equations of the rules: {count(found['steps'], 'step')}"
    shown = escape(f"{found['text']}\n\n" + "\n".join(found["readings"])).replace("$", "&#36;")
    return (
        f"<details><summary>{said}</summary>\n{OPENS}\n"
        f'<pre class="chain" tabindex="0">{shown}</pre>\n{CLOSES}\n</details>'
    )


def _in_lines(tex: str) -> str:
    first, *more = lines_of(tex)
    return first if not more else aligned([f"& {first}", *[f"& {line}" for line in more]])
