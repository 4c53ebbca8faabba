"""Pictures of named arrays, of circuits and attributions: `plot` (extra `plot`: matplotlib).

    eigenvalues     dots in the complex plane, one panel a head; the unit of copying is to the right
    composition     a matrix of pairs of heads for each kind, in units of its value by chance
    one axis        a bar for each label, in order: attributions by token or component
    anything else   tables as coloured matrices: patterns, scores, lenses, attributions by source

No global state of matplotlib is touched: a figure is returned, and the caller shows or saves it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from algebra.errors import OtimesError
from numeric.circuits.result import Named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 36


def plot(result: Named) -> "Figure":
    """Return a figure of a result: eigenvalues in the plane, bars for one axis, else matrices.

    Raises: OtimesError if matplotlib is missing, or there is too much to show at once.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise OtimesError("pictures need matplotlib: pip install 'otimes[plot]'") from None
    if not isinstance(result, Named):
        raise OtimesError(
            f"cannot plot {type(result).__name__}; it takes named arrays,"
            " as the functions of circuits and attribution return them"
        )
    if not result.values.size:
        raise OtimesError(f"there is nothing to plot: {result!r}")
    panels = list(result._tables())
    complex_plane = np.iscomplexobj(result.values)
    if complex_plane:
        named = [(title, rows, entries) for title, rows, _, entries in panels]
        flat = [
            (", ".join(filter(None, (title, rows[i]))), entries[i])
            for title, rows, entries in named
            for i in range(len(entries))
        ]
        _few(len(flat), result)
        return _planes(Figure, result, flat)
    if len(result.axes) == 1:
        return _bars(Figure, result)
    _few(len(panels), result)
    return _matrices(Figure, result, panels)


def _planes(figure_of: Any, result: Named, panels: list[tuple[str, np.ndarray]]) -> "Figure":
    """Return eigenvalues in the complex plane, a panel each with its own scale."""
    figure, axes = _grid(figure_of, len(panels))
    for axis, (title, found) in zip(axes, panels, strict=True):
        reach = 1.1 * float(np.abs(found).max(initial=0.0)) or 1.0
        axis.axhline(0, color="0.8", linewidth=0.8)
        axis.axvline(0, color="0.8", linewidth=0.8)
        axis.scatter(found.real, found.imag, s=12)
        size = np.abs(found).sum()
        score = f"  Σλ/Σ|λ| = {found.real.sum() / size:.2f}" if size else ""
        axis.set(title=title + score, xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    figure.suptitle(result.kind)
    return figure


def _bars(figure_of: Any, result: Named) -> "Figure":
    """Return a bar for each entry, from top to bottom in its order, what it is about above."""
    figure = figure_of(figsize=(5.6, 0.9 + 0.24 * len(result.values)), layout="constrained")
    axis = figure.add_subplot()
    places = np.arange(len(result.values))
    colours = np.where(result.values < 0, "#c2410c", "#00857a")
    axis.barh(places, result.values, color=colours)
    axis.axvline(0, color="0.6", linewidth=0.8)
    axis.set_yticks(places, _plain(result._names(result.axes[0])), fontsize=8)
    axis.invert_yaxis()
    axis.set(xlabel=result.kind, ylabel=result.axes[0])
    axis.set_title(*_plain([result.about]), fontsize=9)
    return figure


def _matrices(figure_of: Any, result: Named, panels: list[Any]) -> "Figure":
    """Return tables as images; with a baseline, in units of it, white where it is met."""
    figure, axes = _grid(figure_of, len(panels), side=4.2)
    unit = result.baseline
    shown = result.values if unit is None else result.values / unit
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    if unit is not None:
        reach = max(high - 1, 1 - low, 1e-9)
        scale: dict[str, Any] = {"cmap": "RdBu_r", "vmin": 1 - reach, "vmax": 1 + reach}
    elif low < 0:
        scale = {"cmap": "RdBu_r", "vmin": -max(high, -low), "vmax": max(high, -low)}
    else:
        scale = {"cmap": "viridis", "vmin": low, "vmax": high}
    for axis, (title, rows, columns, entries) in zip(axes, panels, strict=True):
        image = axis.imshow(entries if unit is None else entries / unit, aspect="auto", **scale)
        axis.set_title(title)
        axis.set(xlabel=result.axes[-1], ylabel=result.axes[-2] if len(result.axes) > 1 else "")
        for ticks, labels in ((axis.set_xticks, columns), (axis.set_yticks, rows)):
            every = max(1, len(labels) // 24)
            ticks(range(0, len(labels), every), _plain(labels[::every]), fontsize=7)
        axis.tick_params(axis="x", rotation=90)
    figure.colorbar(image, ax=axes, label=result.kind + ("" if unit is None else " / by chance"))
    return figure


def _plain(labels: Sequence[str]) -> list[str]:
    """Return labels as they are: the texts of tokens are no mathematics, a dollar is a dollar."""
    return [label.replace("$", r"\$") for label in labels]


def _grid(figure_of: Any, count: int, side: float = 2.8) -> tuple["Figure", list[Any]]:
    """Return a figure with that many panels, in rows of at most six."""
    across = min(count, 6)
    down = -(-count // across)
    figure = figure_of(figsize=(side * across + 1, side * down + 0.6), layout="constrained")
    return figure, [figure.add_subplot(down, across, at + 1) for at in range(count)]


def _few(count: int, result: Named) -> None:
    if count > MOST_PANELS:
        raise OtimesError(
            f"{result!r} would take {count} panels, more than {MOST_PANELS};"
            f" choose a part first, as result.at({result.axes[0].replace(' ', '_')}=0)"
        )
