"""Rows of results as plain text and as pandas tables; pandas is needed for the latter only."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from otimes.algebra.errors import OtimesError

if TYPE_CHECKING:
    from pandas import DataFrame


def to_pandas(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> "DataFrame":
    """Return rows as a pandas DataFrame. Raises: OtimesError if pandas is not installed."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise OtimesError("to_pandas() needs pandas: pip install pandas") from None
    return DataFrame(list(rows), columns=list(columns))


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as aligned text: the first column to the left, the others to the right.

    >>> print(text_table(["", "x", "y"], [["first", "1", "-2.5"]]))
           x     y
    first  1  -2.5
    """
    every = [head, *rows]
    widths = [max(len(line[column]) for line in every) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in every
    )
