"""Keyword expressions, as in the option -k of pytest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from otimes.algebra.errors import OtimesError


def matches(keyword: str, text: str) -> bool:
    """Return whether a keyword expression matches a text.

    A word matches where it occurs, in either case; `and`, `or`, `not` and parentheses combine words
    as in the option -k of pytest. Raises: OtimesError for an expression that cannot be read.

    >>> matches("KRON and not (trace or mul)", "kron_transpose")
    True
    """
    tokens = re.findall(r"[()]|[^\s()]+", keyword)
    value, rest = _either(tokens, text.lower(), keyword)
    if rest:
        raise _unreadable(keyword)
    return value


def _either(tokens: Sequence[str], text: str, whole: str) -> tuple[bool, Sequence[str]]:
    value, tokens = _both(tokens, text, whole)
    while tokens[:1] == ["or"]:
        other, tokens = _both(tokens[1:], text, whole)
        value = value or other
    return value, tokens


def _both(tokens: Sequence[str], text: str, whole: str) -> tuple[bool, Sequence[str]]:
    value, tokens = _one(tokens, text, whole)
    while tokens[:1] == ["and"]:
        other, tokens = _one(tokens[1:], text, whole)
        value = value and other
    return value, tokens


def _one(tokens: Sequence[str], text: str, whole: str) -> tuple[bool, Sequence[str]]:
    first, rest = (tokens[0], tokens[1:]) if tokens else ("", [])
    if first == "not":
        value, rest = _one(rest, text, whole)
        return not value, rest
    if first == "(":
        value, rest = _either(rest, text, whole)
        if rest[:1] != [")"]:
            raise _unreadable(whole)
        return value, rest[1:]
    if first in ("", ")", "and", "or"):
        raise _unreadable(whole)
    return first.lower() in text, rest


def _unreadable(keyword: str) -> OtimesError:
    return OtimesError(
        f"cannot read -k {keyword!r}: it combines words by and, or, not and parentheses"
    )
