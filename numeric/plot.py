"""Plots of the results of circuits and attributions: `plot` (extra `plot`: matplotlib).

    eigenvalues     a scatter plot in the complex plane, one panel per head
    composition     a heat map over pairs of heads, relative to the baseline of random weights
    one axis        a bar chart: attributions by token or component
    anything else   heat maps: patterns, scores, lenses, attributions by source

The global state of matplotlib is not changed: a figure is returned, to be saved, or shown by a
notebook, which needs no `%matplotlib`.
"""

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.direct import DirectLogits
from otimes.numeric.circuits.result import Named, visible
from otimes.numeric.paths.path_tables import PathTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 36

UNITS = {
    "direct logit": "logits",
    "path": "logits",
    "logit lens": "logits",
    "input": "logits",
    "integrated": "logits",
    "occlusion": "logits",
    "relevance": "logits",
    "perturbation": "logits",
    "pattern": "attention, sums to 1",
    "rollout": "share",
}
"""The units of quantities, by a word in their kind; the others have none."""


def plot(result: Named | DirectLogits | PathTable) -> "Figure":
    """Return a figure of a result: a scatter plot of eigenvalues, a bar chart, or heat maps.

    Direct logit attribution is plotted by component, with the heads of each layer, and a table of
    paths by path, the largest of many.

    Raises: OtimesError if matplotlib is missing, or for more than 36 panels.
    """
    figure_of = _figure_class()
    if isinstance(result, DirectLogits):
        result = result.by_component(heads=True)
    if isinstance(result, PathTable):
        result = result.shown()
    if not isinstance(result, Named):
        raise OtimesError(
            f"cannot plot {type(result).__name__}: plot takes tables of scores, such as those of"
            " head_behaviour, logit_lens and integrated_gradients"
        )
    if not result.values.size:
        raise OtimesError(f"there is nothing to plot, the array is empty: {result!r}")
    panels = list(result._panels())
    complex_plane = np.iscomplexobj(result.values)
    if complex_plane:
        named = [(title, rows, entries) for title, rows, _, entries in panels]
        flat = [
            (", ".join(filter(None, (title, rows[i]))), entries[i])
            for title, rows, entries in named
            for i in range(len(entries))
        ]
        _few(len(flat), result)
        return _planes(figure_of, result, flat)
    if len(result.axes) == 1:
        return _bars(figure_of, result)
    _few(len(panels), result)
    return _matrices(figure_of, result, panels)


@cache
def _figure_class() -> Any:
    """Return a class of figures that a notebook shows by itself."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise OtimesError("plots need matplotlib: pip install 'otimes[plot]'") from None

    class Plot(Figure):
        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png", dpi=110)
            return buffer.getvalue()

    return Plot


def _planes(figure_of: Any, result: Named, panels: list[tuple[str, np.ndarray]]) -> "Figure":
    """Return eigenvalues in the complex plane; each panel has its own scale."""
    figure, axes = _grid(figure_of, len(panels))
    for axis, (title, found) in zip(axes, panels, strict=True):
        reach = 1.1 * float(np.abs(found).max(initial=0.0)) or 1.0
        axis.axhline(0, color="0.8", linewidth=0.8)
        axis.axvline(0, color="0.8", linewidth=0.8)
        axis.scatter(found.real, found.imag, s=12)
        size = np.abs(found).sum()
        score = f"  Σλ/Σ|λ| = {found.real.sum() / size:.2f}" if size else ""
        axis.set_title(title + score, fontsize=9)
        axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axis.set(xlabel="Re λ", ylabel="Im λ")
    _title(figure, result)
    return figure


def _title(figure: "Figure", result: Named) -> None:
    """Name a figure of several panels by its quantity, and what it is about."""
    figure.suptitle(*_plain([": ".join(filter(None, (result.kind, result.about)))]), fontsize=10)


def _bars(figure_of: Any, result: Named) -> "Figure":
    """Return a horizontal bar for each entry, in order from the top."""
    figure = figure_of(figsize=(5.6, 0.9 + 0.24 * len(result.values)), layout="constrained")
    axis = figure.add_subplot()
    places = np.arange(len(result.values))
    colours = np.where(result.values < 0, "#c2410c", "#00857a")
    axis.barh(places, result.values, color=colours)
    if (result.values < 0).any() and (result.values > 0).any():
        from matplotlib.patches import Patch

        handles = [
            Patch(color="#00857a", label="positive"),
            Patch(color="#c2410c", label="negative"),
        ]
        axis.legend(handles=handles, fontsize=8)
    axis.axvline(0, color="0.6", linewidth=0.8)
    axis.set_yticks(places, _plain(result._names(result.axes[0])), fontsize=8)
    axis.invert_yaxis()
    axis.set(xlabel=_with_unit(result.kind), ylabel=result.axes[0])
    axis.set_title(*_plain([result.about]), fontsize=9)
    return figure


def _matrices(figure_of: Any, result: Named, panels: list[Any]) -> "Figure":
    """Return heat maps; with a baseline, entries are divided by it and 1 is white."""
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
    for axis, (title, rows, names, every) in zip(axes, panels, strict=True):
        largest = result._largest_tokens(every) or [*range(len(names))]
        columns, entries = [names[i] for i in largest], every[:, largest]
        image = axis.imshow(entries if unit is None else entries / unit, aspect="auto", **scale)
        axis.set_title(title)
        axis.set(xlabel=result.axes[-1], ylabel=result.axes[-2] if len(result.axes) > 1 else "")
        for ticks, labels in ((axis.set_xticks, columns), (axis.set_yticks, rows)):
            every = max(1, len(labels) // 24)
            ticks(range(0, len(labels), every), _plain(labels[::every]), fontsize=7)
        axis.tick_params(axis="x", rotation=90)
    figure.colorbar(
        image,
        ax=axes,
        label=_with_unit(result.kind) if unit is None else f"{result.kind} / random baseline",
    )
    _title(figure, result)
    return figure


def _with_unit(kind: str) -> str:
    """Return the name of a quantity with its unit, for an axis."""
    unit = next((unit for word, unit in UNITS.items() if word in kind), "")
    return f"{kind} ({unit})" if unit else kind


def _plain(labels: Sequence[str]) -> list[str]:
    """Return labels with visible white space, and with what matplotlib reads as math escaped."""
    return [visible(label).replace("$", r"\$") for label in labels]


def _grid(figure_of: Any, count: int, side: float = 2.8) -> tuple["Figure", list[Any]]:
    """Return a figure with `count` panels, at most six in a row."""
    across = min(count, 6)
    down = -(-count // across)
    figure = figure_of(figsize=(side * across + 1, side * down + 0.6), layout="constrained")
    return figure, [figure.add_subplot(down, across, at + 1) for at in range(count)]


def _few(count: int, result: Named) -> None:
    if count > MOST_PANELS:
        raise OtimesError(
            f"{result!r} needs {count} panels, more than {MOST_PANELS};"
            f" select a part first, as in result.at({result.axes[0].replace(' ', '_')}=0)"
        )
