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
    for n in range(1, len(row)):
        if tokens[row[n]].text not in (COLUMN, SPACE):
            continue
        rest = [tokens[k] for k in row[n:]]
        words = [token.text.lstrip("([ ").split() for token in rest if token.kind == "word"]
        first = words[0][0].lower() if words and words[0] else ""
        plain = all(token.kind == "word" or token.text in AROUND for token in rest)
        apart = [token.text for token in rest[:2]] == [COLUMN, COLUMN]
        apart = apart and len(rest) > 2 and rest[2].kind == "word"
        joins = first in JOINING and not (apart and first in REASONS)
        if first and not joins and (plain or apart):
            return row[n:]
    return ()
