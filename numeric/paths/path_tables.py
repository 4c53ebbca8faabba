"""Paths with their contributions to one logit, as a sequence that is shown as a table."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from otimes.numeric.circuits.result import Named
from otimes.numeric.paths.orders import Heads, path_name
from otimes.numeric.tables import text_table, to_pandas

if TYPE_CHECKING:
    from pandas import DataFrame

SHOWN = 24
"""The number of paths displayed of a table."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path, its heads as (layer, head), the earliest first, and its contribution to the logit."""

    heads: Heads
    value: float

    @property
    def order(self) -> int:
        """The number of its heads."""
        return len(self.heads)

    def __str__(self) -> str:
        return f"{path_name(self.heads)}: {self.value:+.4g}"


@dataclass(frozen=True, slots=True, repr=False)
class PathTable:
    """Paths, those with the largest absolute contributions first.

    A sequence of `Path`: `.heads`, `.order` and `.value`, the contribution to the logit. `about`
    says which paths they are.
    """

    paths: tuple[Path, ...]
    about: str = ""

    def __iter__(self) -> Iterator[Path]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Path:
        return self.paths[index]

    def __repr__(self) -> str:
        number = "1 path" if len(self) == 1 else f"{len(self)} paths"
        return f"<{': '.join(filter(None, (number, self._about())))}>"

    def __str__(self) -> str:
        """Return the paths as a table, the largest if there are many, and which they are."""
        rows = [
            [path_name(path.heads), str(path.order), f"{path.value:+.4f}"]
            for path in self.paths[:SHOWN]
        ]
        return "\n".join([text_table(["path", "order", "logit"], rows), *self._below()])

    def to_pandas(self) -> "DataFrame":
        """Return a pandas DataFrame with a row for each path: its name, heads, order and logit.

        Raises: OtimesError if pandas is not installed.
        """
        rows = (
            {
                "path": path_name(path.heads),
                "heads": path.heads,
                "order": path.order,
                "logit": path.value,
            }
            for path in self
        )
        return to_pandas(rows, ["path", "heads", "order", "logit"])

    def shown(self) -> Named:
        """Return the largest paths as an array with their names, for a plot."""
        shown = self.paths[:SHOWN]
        names = [path_name(path.heads) for path in shown]
        about = "; ".join(self._below())
        values = np.array([path.value for path in shown])
        return Named("contribution of a path", values, ("path",), {"path": names}, about=about)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(path_name(path.heads))}</th><td>{path.order}</td>"
            f"<td>{path.value:+.4f}</td></tr>"
            for path in self.paths[:SHOWN]
        )
        head = "<tr><th>path</th><th>order</th><th>logit</th></tr>"
        below = "".join(f"<p>{escape(line)}</p>" for line in self._below())
        return f"<table>{head}{rows}</table>{below}"

    def _below(self) -> Iterator[str]:
        if len(self) > SHOWN:
            yield f"and {len(self) - SHOWN} smaller ones: iterate, or .to_pandas()"
        if about := self._about():
            yield about

    def _about(self) -> str:
        return self.about


def largest_first(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return paths by the size of their contributions; equal ones keep their order."""
    return tuple(sorted(paths, key=lambda path: -abs(path.value)))
