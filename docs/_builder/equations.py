"""Line breaking of long equations: before `=`, then between the terms of a sum."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

WIDEST = 46  # signs in a line of a statement, by the estimate below
OPENS, CLOSES = r"\left(", r"\right)"
TOKEN = re.compile(r"\\left\(|\\right\)|\\begin\{\w+\}|\\end\{\w+\}|\\[a-zA-Z]+|\\,|[{}]| [+-] |.")


def equation(left: str, right: str, widest: float = WIDEST, sign: str = "=") -> str:
    """Return the TeX of `left = right`, or with another sign, in as few lines as fit."""
    if width(left) + width(right) <= widest:
        return f"{left} {sign} {right}"
    # A short left side shares the first line; a long one has a line of its own.
    if width(left) <= widest / 4:
        first, *more = lines_of(right, widest - width(left))
        return aligned([f"{left} &{sign} {first}", *[f"& {line}" for line in more]])
    start, *on = lines_of(left, widest)
    first, *more = lines_of(right, widest - 2)
    return aligned(
        [
            f"& {start}",
            *[rf"& \qquad {line}" for line in on],
            rf"& \quad {sign} {first}",
            *[rf"& \qquad {line}" for line in more],
        ]
    )


def lines_of(tex: str, widest: float = WIDEST) -> list[str]:
    """Return a sum broken into lines between its terms, or a product between its factors.

    A product with one long bracket keeps its line, and the bracket is broken inside.
    """
    if width(tex) <= widest:
        return [tex]
    terms = split_sum(tex)
    if len(terms) == 1:
        bracket = max(_brackets(tex), key=lambda ends: width(tex[slice(*ends)]), default=(0, 0))
        if width(tex[slice(*bracket)]) > widest / 2:
            return [_bracket_broken(tex, bracket, widest)]
        terms = _split(tex, {r"\,"})
    lines = [terms[0]]
    for term in terms[1:]:
        if width(lines[-1] + term) <= widest:
            lines[-1] += term
        else:
            lines.append(term.strip())
    return lines


def split_sum(tex: str) -> list[str]:
    r"""Return the terms of a sum, each but the first with its sign.

    >>> split_sum(r"A + \left(B + C\right) D - E")
    ['A', ' + \\left(B + C\\right) D', ' - E']
    """
    return _split(tex, {" + ", " - "})


def width(tex: str) -> float:
    """Return the estimated width of a formula in characters; an index counts half."""
    plain = re.sub(r"\\(?:left|right|operatorname|mathrm|begin|end|,|!)|\\quad", "", tex)
    plain = re.sub(r"\\sum_\{[^}]*\}\^\{[^}]*\}", "SS", plain)
    plain = re.sub(r"\\(?:otimes|cdots|circ)", "xx", plain)
    plain = re.sub(r"\\[a-zA-Z]+", "x", plain)
    indices = sum(len(index) for index in re.findall(r"[_^]\{([^{}]*)\}", plain))
    plain = re.sub(r"[_^]\{[^{}]*\}", "", plain)
    return len(re.sub(r"[\s{}\\&!]", "", plain)) + indices / 2


def _split(tex: str, separators: set[str]) -> list[str]:
    """Return the pieces of a formula, cut before each separator that is in no bracket."""
    starts, depth, position = [0], 0, 0
    for token in TOKEN.findall(tex):
        depth += _step(token)
        if depth == 0 and token in separators:
            starts.append(position)
        position += len(token)
    return [tex[a:b] for a, b in pairwise([*starts, len(tex)])]


def _bracket_broken(tex: str, bracket: tuple[int, int], widest: float) -> str:
    """Return a product with the sum in one of its brackets set in lines."""
    a, b = bracket
    inside = [f"& {line}" for line in lines_of(tex[a:b], widest * 2 / 3)]
    return tex[:a] + aligned(inside) + tex[b:]


def _brackets(tex: str) -> list[tuple[int, int]]:
    """Return where the outermost brackets start and end, inside."""
    found, depth, position, start = [], 0, 0, 0
    for token in TOKEN.findall(tex):
        before, depth = depth, depth + _step(token)
        if token == OPENS and before == 0:
            start = position + len(token)
        if token == CLOSES and depth == 0:
            found.append((start, position))
        position += len(token)
    return found


def _step(token: str) -> int:
    """Return how a token changes the depth: in a bracket, a group or an environment."""
    if token in {OPENS, "{"} or token.startswith(r"\begin"):
        return 1
    return -1 if token in {CLOSES, "}"} or token.startswith(r"\end") else 0


def aligned(lines: Iterable[str]) -> str:
    """Return lines below one another, aligned at their `&`."""
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"
