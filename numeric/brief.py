"""Records of arrays that print the types and shapes of their arrays, and not the numbers."""

from dataclasses import fields
from typing import Any

import numpy as np

MOST = 8
"""The number of entries that are printed of a tuple or list."""


class Brief:
    """A base of dataclasses (with `repr=False`) whose fields are arrays.

    >>> from dataclasses import dataclass
    >>> @dataclass(repr=False)
    ... class Line(Brief):
    ...     slope: np.ndarray
    ...     name: str = ""
    >>> Line(np.ones((2, 3)), "a")
    <Line: slope float64[2, 3], name 'a'>
    """

    __slots__ = ()

    def __repr__(self) -> str:
        shown = (
            f"{each.name} {_brief(getattr(self, each.name))}"
            for each in fields(self)  # type: ignore[arg-type]  # the subclasses are dataclasses
            if each.repr
        )
        return f"<{type(self).__name__}: {', '.join(shown)}>"


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list | tuple):
        arrays = all(isinstance(each, np.ndarray) for each in value)
        return (
            f"({', '.join(map(_brief, value))})" if arrays or len(value) <= MOST else _many(value)
        )
    return repr(value)


def _many(value: Any) -> str:
    return f"({', '.join(map(_brief, value[:2]))}, … {len(value)} in all)"
