"""Pictures of what `numeric.circuits` returns: one function, `plot` (extra `plot`: matplotlib).

    eigenvalues     dots in the complex plane, one panel a head; the unit of copying is to the right
    composition     a matrix of pairs of heads for each kind, in units of its value by chance
    anything else   tables as coloured matrices: patterns, scores, lenses

No global state of matplotlib is touched: a figure is returned, and the caller shows or saves it.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from algebra.errors import OtimesError
from numeric.circuits.result import Named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 36


def plot(result: Named) -> "Figure":
    """Return a figure of a result: eigenvalues in the plane, everything else as matrices.

    Raises: OtimesError if matplotlib is missing, or there is too much to show at once.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise OtimesError("pictures need matplotlib: pip install 'otimes[plot]'") from None
    if not isinstance(result, Named):
        raise OtimesError(f"cannot plot {type(result).__name__}; it takes what circuits return")
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
            ticks(range(0, len(labels), every), labels[::every], fontsize=7)
        axis.tick_params(axis="x", rotation=90)
    figure.colorbar(image, ax=axes, label=result.kind + ("" if unit is None else " / by chance"))
    return figure


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
