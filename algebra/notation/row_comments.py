r"""Comments at the ends of rows: `(A B)^\top &= B^\top A^\top && \text{reverse the order} \\`.

A chain goes on in the next row as if they were not there.

>>> from otimes.algebra.notation.tokens import tokenize
>>> [token.text for token in tokenize(r"x &= y && \text{by (3)} \tag{4} \\ &= z")]
['x', '&', '=', 'y', '\\\\', '&', '=', 'z']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from otimes.algebra.notation.vocabulary import JOINING

REASONS = frozenset(("since", "because"))  # after which a formula may follow in a comment
WITH_CELLS = ("cases", "array", "matrix", "tabular")  # in which text is an entry
COLUMN, SPACE, ROW = "&", r"\quad", r"\\"
AROUND = frozenset((COLUMN, SPACE, ",", ".", ";", ":"))


class Token(Protocol):
    """What is read of a token."""

    @property
    def kind(self) -> str:
        """Its kind, "word" for text."""

    @property
    def text(self) -> str:
        """Its text."""


def kept(tokens: Sequence[Token]) -> list[int]:
    """Return the indices of the tokens that are no comment at the end of a row, and no tag."""
    texts = [token.text for token in tokens]
    if ROW not in texts or any(name in "".join(texts) for name in WITH_CELLS):
        return [*range(len(tokens))]
    dropped = {k for at in range(len(texts)) for k in _tag(texts, at)}
    for row in _rows(texts):
        own = [k for k in row if k not in dropped]
        dropped |= {*_comment(tokens, own)}
    return [k for k in range(len(texts)) if k not in dropped]


def _tag(texts: Sequence[str], at: int) -> range:
    r"""Return the indices of `\tag{…}` that begins at an index, none of another token."""
    if texts[at] != r"\tag" or texts[at + 1 : at + 2] != ["{"]:
        return range(0)
    end = next((k for k in range(at + 1, len(texts)) if texts[k] == "}"), at)
    return range(at, end + 1)


def _rows(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the indices of each row, without the line break after it."""
    row: list[int] = []
    for k, text in enumerate(texts):
        if text in (ROW, r"\end"):
            yield row
            row = []
        else:
            row.append(k)
    yield row


def _comment(tokens: Sequence[Token], row: Sequence[int]) -> Sequence[int]:
    """Return the indices of the comment at the end of a row: words after `&` or a space.

    In a column of its own, after `&&`, it may have formulas as well.
    """
    texts = [tokens[k].text for k in row]
    words = [tokens[k].kind == "word" for k in row]
    plain = len(row)  # where words and what may stand around them begin
    while plain > 1 and (words[plain - 1] or texts[plain - 1] in AROUND):
        plain -= 1
    first = [""] * (len(row) + 1)  # the first word from each token on
    for n in reversed(range(len(row))):
        first[n] = texts[n] if words[n] else first[n + 1]
    for n in range(1, len(row)):
        if texts[n] not in (COLUMN, SPACE):
            continue
        apart = texts[n : n + 2] == [COLUMN, COLUMN] and any(words[n + 2 : n + 3])
        if not apart and n < plain:
            continue
        opening = first[n].lstrip("([ ").split()[:1]
        joins = bool(JOINING.intersection(map(str.lower, opening)))
        reason = apart and bool(REASONS.intersection(map(str.lower, opening)))
        if opening and (reason or not joins):
            return row[n:]
    return ()
