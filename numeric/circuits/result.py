"""Arrays with named axes, which the functions of circuits and attribution return.

A `Named` array is displayed as an HTML table in a notebook; `otimes.numeric.plot` plots it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.tables import text_table, to_pandas

if TYPE_CHECKING:
    from pandas import DataFrame

SHOWN_ROWS, SHOWN_COLUMNS = 24, 16
"""The number of rows and columns displayed of a table."""


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """An array with a name for each axis and, optionally, labels along it.

    `kind` is the name of the quantity (`composition`, `eigenvalues`, `pattern`, …), `baseline` its
    expected value for random weights, if known, and `whole` the total that the entries should sum
    to, if any: `missing` is the difference. Undefined entries are NaN.

    >>> scores = Named("copying", np.array([[1.0, -0.5]]), ("layer", "head"))
    >>> scores.top(1)
    [({'layer': 0, 'head': 0}, 1.0)]

    Raises: ShapeError if the number of axes or labels does not fit the array.
    """

    kind: str
    values: np.ndarray
    axes: tuple[str, ...]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    baseline: float | None = None
    about: str = ""
    whole: float | None = None

    def __post_init__(self) -> None:
        """Make the array read-only and check the axes."""
        if len(self.axes) != self.values.ndim:
            raise ShapeError(
                f"{self.kind}: {len(self.axes)} axis names {self.axes} for an array of shape"
                f" {self.values.shape}"
            )
        for axis, labels in self.labels.items():
            size = self.values.shape[self._number(axis)]
            if len(labels) != size:
                raise ShapeError(
                    f"{self.kind}: the axis {axis!r} has {size} entries and {len(labels)} labels"
                )
        view = self.values.view()
        view.flags.writeable = False
        object.__setattr__(self, "values", view)
        object.__setattr__(self, "labels", MappingProxyType(dict(self.labels)))

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        """Return the values, for NumPy functions."""
        return np.array(self.values, dtype=dtype, copy=copy)  # type: ignore[call-overload]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of entries along each axis."""
        return self.values.shape

    def __getitem__(self, index: Any) -> Any:
        """Return entries as NumPy does: `scores[1, 2]` is a number, `scores[1]` an array."""
        return self.values[index]

    @property
    def missing(self) -> float | None:
        """`whole` minus the sum of all entries; None without `whole`."""
        return None if self.whole is None else self.whole - float(self.values.sum())

    def at(self, **where: int | str) -> "Named":
        """Return the part at the given index or label of some axes, which are dropped.

        `about` says which part it is. Raises: OtimesError for an unknown axis, index or label.
        """
        index: list[int | slice] = [slice(None)] * self.values.ndim
        for axis, place in where.items():
            number = self._number(axis)
            size = self.values.shape[number]
            labels = list(self.labels.get(axis, ()))
            if isinstance(place, str) and place in labels:
                place = labels.index(place)
            if isinstance(place, str) or not -size <= place < size:
                raise OtimesError(
                    f"{self.kind}: unknown {axis} {place!r}; the axis has {size} entries, from 0"
                    + (f", labelled {labels[0]!r} to {labels[-1]!r}" if labels else "")
                )
            index[number] = place
        left = tuple(axis for axis in self.axes if axis not in where)
        kept = {axis: each for axis, each in self.labels.items() if axis in left}
        part = np.asarray(self.values[tuple(index)])
        chosen = (
            f"{axis} {self.labels[axis][i] if axis in self.labels else i}"
            for axis, i in zip(self.axes, index, strict=True)
            if isinstance(i, int | np.integer)
        )
        about = "; ".join(filter(None, (self.about, ", ".join(chosen))))
        return Named(self.kind, part, left, kept, self.baseline, about)

    def top(self, k: int) -> list[tuple[dict[str, int | str], float]]:
        """Return the k largest entries, the largest first, each with its index; NaN is ignored.

        An index maps each axis to the label, or the number where the axis has no labels. Complex
        numbers are ordered by absolute value.
        """
        flat = self.values.ravel()
        order = np.abs(flat) if np.iscomplexobj(flat) else flat
        there = np.flatnonzero(~np.isnan(order))
        best = there[np.argsort(-order[there], kind="stable")[:k]]
        return [(self._place(int(each)), flat[each].item()) for each in best]

    def _place(self, flat: int) -> dict[str, int | str]:
        index = [int(i) for i in np.unravel_index(flat, self.values.shape)]
        return {
            axis: self.labels[axis][i] if axis in self.labels else i
            for axis, i in zip(self.axes, index, strict=True)
        }

    def _number(self, axis: str) -> int:
        if axis not in self.axes:
            raise OtimesError(f"{self.kind} has no axis {axis!r}; it has {', '.join(self.axes)}")
        return self.axes.index(axis)

    def _names(self, axis: str) -> Sequence[str]:
        size = self.values.shape[self.axes.index(axis)]
        prefix = "" if axis == "token" else f"{axis} "  # of a vocabulary, the ids
        return self.labels.get(axis) or [f"{prefix}{i}" for i in range(size)]

    def _panels(self) -> Iterator[tuple[str, Sequence[str], Sequence[str], np.ndarray]]:
        """Yield the array as tables over its last two axes: title, rows, columns, entries."""
        whole = self.values.reshape((1,) * (2 - self.values.ndim) + self.values.shape)
        columns = self._names(self.axes[-1]) if self.axes else [""]
        rows = self._names(self.axes[-2]) if len(self.axes) > 1 else [""]
        for outer in np.ndindex(whole.shape[:-2]):
            named = zip(self.axes[:-2], outer, strict=True)
            yield ", ".join(self._names(axis)[i] for axis, i in named), rows, columns, whole[outer]

    def _largest_tokens(self, entries: np.ndarray) -> list[int]:
        """Return the columns to show of a vocabulary, the largest first; none if all are shown."""
        if self.axes[-1:] != ("token",) or entries.shape[-1] <= SHOWN_COLUMNS or not entries.size:
            return []
        order = np.argsort(-np.nan_to_num(entries, nan=-np.inf).max(axis=0), kind="stable")
        return [int(each) for each in order[:SHOWN_COLUMNS]]

    def _tables(self) -> Iterator[tuple[str, list[list[str]], str]]:
        """Yield the tables as text: title, lines of cells, and what is cut off.

        The first line has the names of the columns. Rows and columns without an entry are left out.
        Of a vocabulary, the tokens with the largest entries are shown, and of any other axis the
        first entries.
        """
        for title, rows, columns, entries in self._panels():
            there = ~np.isnan(entries)
            lines = np.flatnonzero(there.any(axis=1))
            across = np.flatnonzero(there.any(axis=0))
            if not lines.size:
                lines, across = np.arange(len(rows)), np.arange(len(columns))
            cut = ""
            if lines.size > SHOWN_ROWS or across.size > SHOWN_COLUMNS:
                cut = f"the first entries of {lines.size} × {across.size}"
            lines, across = lines[:SHOWN_ROWS], across[:SHOWN_COLUMNS]
            if largest := self._largest_tokens(entries[lines]):
                across = np.array(largest)
                cut = f"the tokens with the largest entries, of {len(columns)}"
            head = [self._corner(), *(visible(columns[int(i)]) for i in across)]
            body = [
                [visible(rows[int(i)]), *map(_number, entries[i, across].tolist())] for i in lines
            ]
            yield title, [head, *body], cut

    def _corner(self) -> str:
        """Return the axes of rows and columns, where the names of the columns do not say theirs."""
        axes = self.axes[-2:]
        labelled = axes[-1:] == ("token",) or all(axis in self.labels for axis in axes)
        return f"{axes[0]} \\ {axes[1]}" if len(axes) == 2 and labelled else ""

    def __repr__(self) -> str:
        sizes = ", ".join(f"{a} {n}" for a, n in zip(self.axes, self.values.shape, strict=True))
        chance = "" if self.baseline is None else f", random baseline {self.baseline:.4g}"
        sum_of = "" if self.whole is None else f", {self._sum()}"
        return f"<{self.kind} [{sizes}] {self.values.dtype}{chance}{sum_of}>"

    def _sum(self) -> str:
        return f"sum {self.values.sum():.4g} of {self.whole:.4g}"

    def __str__(self) -> str:
        """Return the values as tables over the last two axes, cut as in a notebook."""
        parts = [f"{self.kind}{f' ({self.about})' if self.about else ''}"]
        if self.baseline is not None:
            parts[0] += f", random baseline {self.baseline:.4g}"
        if self.whole is not None:
            parts[0] += f", {self._sum()}"
        for count, (title, (head, *lines), cut) in enumerate(self._tables()):
            if count == SHOWN_ROWS:
                parts.append("and more")
                break
            table = [text_table(head, lines)] if lines else []
            parts += [*([title] if title and table else []), *table, *([cut] if cut else [])]
        return "\n".join(parts)

    def to_pandas(self) -> "DataFrame":
        """Return a pandas DataFrame with a row for each entry: the axes, then the value.

        Axes with labels hold the label, others the number. Raises: OtimesError without pandas.
        """
        rows = (
            {**self._place(flat), self.kind: value.item()}
            for flat, value in enumerate(self.values.ravel())
        )
        return to_pandas(rows, [*self.axes, self.kind])

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{escape(self.kind)}</b> {escape(self.about)}</p>"]
        if self.baseline is not None:
            parts.append(f"<p>random baseline {self.baseline:.4g}</p>")
        if self.whole is not None:
            parts.append(f"<p>{self._sum()}</p>")
        for count, (title, (head, *lines), cut) in enumerate(self._tables()):
            if count == SHOWN_ROWS:
                parts.append("<p>and more</p>")
                break
            corner, *names = map(escape, head)
            rows = "".join(
                f"<tr><th>{escape(name)}</th>{''.join(f'<td>{x}</td>' for x in line)}</tr>"
                for name, *line in lines
            )
            columns = "".join(f"<th>{name}</th>" for name in names)
            parts.append(
                f"<p>{escape(title)}</p><table><tr><th>{corner}</th>{columns}</tr>{rows}</table>"
                f"{escape(cut)}"
            )
        return f'<div class="otimes-named">{"".join(parts)}</div>'


def visible_text(label: str) -> str:
    """Return a label as HTML, with visible characters for white space."""
    return f"<code>{escape(visible(label))}</code>"


def visible(label: str) -> str:
    """Return a label with the white space at its ends, and all but spaces inside it, visible."""
    inner = label.strip(" ")
    before, after = len(label) - len(label.lstrip(" ")), len(label) - len(label.rstrip(" "))
    shown = "·" * before + inner + "·" * (after if inner else 0)
    return shown.replace("\n", "⏎").replace("\t", "⇥")


def _number(value: float | complex) -> str:
    return "" if value != value else f"{value:.3g}"  # NaN is not equal to itself
