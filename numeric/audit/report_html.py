"""A report as an HTML page, with a map of error/bound: layers down, hook points across."""

from collections.abc import Iterable, Mapping
from html import escape
from math import isfinite, log10

from otimes.numeric.block import kind_of

FAR = 1e6
"""An error/bound above which it is not told in figures."""
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; max-width: 75rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; }
th { font-weight: 500; font-size: 12px; padding: .2rem .4rem; text-align: left; }
td { width: 3.2rem; height: 1.6rem; text-align: center; font-size: 11px; border: 1px solid #fff; }
.map { overflow-x: auto; }
li { margin: .3rem 0; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; }
  td { border-color: #111; color: #111; } }
"""


def page(
    title: str,
    compared: str,
    findings: Iterable[object],
    remarks: Iterable[object],
    ratios: Mapping[str, float],
) -> str:
    """Return a self-contained HTML page: the findings, remarks, and a map of error/bound."""
    items = [f"<b>{escape(str(each))}</b>" for each in findings]
    items += [escape(str(each)) for each in remarks]
    title = escape(title)
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
        f"<style>{STYLE}</style><h1>{title}</h1>"
        f"<p>{escape(compared)}; "
        "each is coloured by its error over its bound: green below 1, red above.</p>"
        f"{_map(ratios)}<ul>{''.join(f'<li>{each}</li>' for each in items)}</ul></html>"
    )


def _map(ratios: Mapping[str, float]) -> str:
    kinds = list(dict.fromkeys(kind_of(place) for place in ratios if "." in place))
    layers = sorted({int(place.rpartition(".")[2]) for place in ratios if "." in place})
    head = "".join(f"<th>{escape(kind)}</th>" for kind in kinds)
    rows = [f"<tr><th>layer</th>{head}</tr>"]
    for layer in layers:
        cells = "".join(_cell(ratios, f"{kind}.{layer}") for kind in kinds)
        rows.append(f"<tr><th>{layer}</th>{cells}</tr>")
    ends = [place for place in ratios if "." not in place]
    if ends:
        cells = "".join(f"<th>{escape(place)}</th>{_cell(ratios, place)}" for place in ends)
        rows.append(f"<tr>{cells}</tr>")
    return f"<div class='map'><table>{''.join(rows)}</table></div>"


def _cell(ratios: Mapping[str, float], place: str) -> str:
    if place not in ratios:
        return "<td></td>"
    ratio = ratios[place]
    said = "∞" if not isfinite(ratio) else f"{ratio:.2g}" if ratio < FAR else "> 10⁶"
    if ratio <= 1:
        colour = f"hsl(140 55% {90 - 30 * ratio:.0f}%)"
    else:
        far = min(log10(ratio) / 8, 1.0) if isfinite(ratio) else 1.0
        colour = f"hsl(8 75% {78 - 25 * far:.0f}%)"
    return f"<td style='background:{colour}' title='{escape(place)}'>{said}</td>"
