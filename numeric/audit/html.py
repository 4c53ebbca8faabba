"""The report as one page: a map of the places, layers down and places across, by error/bound."""

from html import escape
from math import isfinite, log10

from numeric.audit.findings import Report
from numeric.rounding.places import kind_of

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; max-width: 75rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; }
th { font-weight: 500; font-size: 12px; padding: .2rem .4rem; text-align: left; }
td { width: 3.2rem; height: 1.6rem; text-align: center; font-size: 11px; border: 1px solid #fff; }
li { margin: .3rem 0; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; }
  td { border-color: #111; color: #111; } }
"""


def page(report: Report) -> str:
    """Return the report as an HTML page that needs nothing else."""
    verdict = "computes the reference" if report.passed else "does not compute the reference"
    lines = [f"<li><b>{escape(str(each))}</b></li>" for each in report.findings]
    lines += [f"<li>gauge: {escape(str(each))}</li>" for each in report.gauges]
    lines += [f"<li>{escape(note)}</li>" for note in report.notes]
    title = f"{escape(report.name)} {verdict}"
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
        f"<style>{STYLE}</style><h1>{title}</h1>"
        f"<p>{escape(report.looked())}; "
        "each is coloured by its error over its bound: green below 1, red above.</p>"
        f"{_map(report)}<ul>{''.join(lines)}</ul></html>"
    )


def _map(report: Report) -> str:
    kinds = list(dict.fromkeys(kind_of(place) for place in report.ratios if "." in place))
    layers = sorted({int(place.rpartition(".")[2]) for place in report.ratios if "." in place})
    head = "".join(f"<th>{escape(kind)}</th>" for kind in kinds)
    rows = [f"<tr><th>layer</th>{head}</tr>"]
    for layer in layers:
        cells = "".join(_cell(report, f"{kind}.{layer}") for kind in kinds)
        rows.append(f"<tr><th>{layer}</th>{cells}</tr>")
    ends = [place for place in report.ratios if "." not in place]
    if ends:
        cells = "".join(f"<th>{escape(place)}</th>{_cell(report, place)}" for place in ends)
        rows.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _cell(report: Report, place: str) -> str:
    if place not in report.ratios:
        return "<td></td>"
    ratio = report.ratios[place]
    said = f"{ratio:.2g}" if isfinite(ratio) else "∞"
    if ratio <= 1:
        colour = f"hsl(140 55% {90 - 30 * ratio:.0f}%)"
    else:
        far = min(log10(ratio) / 8, 1.0) if isfinite(ratio) else 1.0
        colour = f"hsl(8 75% {78 - 25 * far:.0f}%)"
    return f"<td style='background:{colour}' title='{escape(place)}'>{said}</td>"
