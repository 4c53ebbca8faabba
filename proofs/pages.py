"""Pages of verified theorems: Markdown with TeX formulas, and SVG pictures, in a folder.

The pages need no other file and no program: GitHub, Jupyter, VS Code and static site generators
show them. The site of this project has pages of the same content (`docs/_builder`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from otimes.algebra.errors import LanguageError
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.normal_form import NormalForm, normal_form
from otimes.numeric.files import check_writable, write_whole
from otimes.proofs.claims import Statement
from otimes.proofs.evidence import FALLEN_SHORT, Report, TheoremReport

MOST_DIAGRAMS = 12
"""A normal form with more diagrams is not drawn."""


def write_pages(report: Report, folder: str | Path) -> list[Path]:
    """Write a page for each theorem, its diagrams, and an index; return the files.

    Two theorems of one name get pages with numbers. Raises: OtimesError if the folder cannot be
    written.
    """
    out = Path(folder)
    check_writable(out, folder=True)
    names = _page_names(report)
    written = []
    for name, each in zip(names, report.theorems, strict=True):
        files = dict(_files(name, each))
        for file, content in files.items():
            write_whole(out / file, content.encode())
            written.append(out / file)
    write_whole(out / "index.md", _index(names, report).encode())
    return [*written, out / "index.md"]


def _page_names(report: Report) -> list[str]:
    met: Counter[str] = Counter()
    names = []
    for each in report.theorems:
        name = each.theorem.name
        met[name] += 1
        names.append(name if met[name] == 1 else f"{name}_{met[name]}")
    return names


def _index(names: list[str], report: Report) -> str:
    rows = [
        f"- [{each.theorem.title}]({name}.md): {each.state}"
        for name, each in zip(names, report.theorems, strict=True)
    ]
    return "\n".join(["# Theorems", "", report.summary(), "", *rows, ""])


def _files(name: str, report: TheoremReport) -> Iterator[tuple[str, str]]:
    """Yield the pictures of a theorem, then its page."""
    pictures = _pictures(report)
    sides = ["left", "right"] if len(pictures) > 1 else ["diagrams"]
    files = [f"{name}.{side}.svg" for side in sides]
    for file, form in zip(files, pictures, strict=False):
        yield file, form._repr_svg_()
    shown = [f"![{file}]({file})" for file, _ in zip(files, pictures, strict=False)]
    yield f"{name}.md", page(report, shown)


def page(report: TheoremReport, pictures: list[str] | None = None) -> str:
    """Return the page of one theorem as Markdown; `pictures` are links to its diagrams."""
    theorem, stated = report.theorem, report.proof.status != "error"
    parts = [f"# {theorem.title}"]
    if stated:
        parts += [f"$$\n{theorem.latex()}\n$$", theorem.prose]
        symbols = [f"- `{name}`: {shape}" for name, shape in theorem.symbols().items()]
        parts += ["## Symbols", "\n".join(symbols)] if symbols else []
    chain = theorem.steps() if report.proof.status == "proved" else None
    if chain is not None and len(chain):
        parts += ["## Step by step", chain.markdown()]
    if pictures:
        heading = "Both sides" if len(pictures) == 1 else "The left side, then the right side,"
        parts += ["## As diagrams", f"{heading} as a sum of diagrams:", "\n\n".join(pictures)]
    parts += ["## Evidence", "\n".join(_evidence(report))]
    if report.proof.status in FALLEN_SHORT:
        parts.append(f"```python\n{report.proof.detail}\n```")
    parts += ["## Source", theorem.source] if theorem.source else []
    return "\n\n".join(filter(None, parts)) + "\n"


def _evidence(report: TheoremReport) -> Iterator[str]:
    """Yield the results of the checks, an item each."""
    yield f"- proof, for all sizes: **{report.proof.status}**"
    if report.exact is not None:
        passed = "all agree" if report.exact.passed else f"failed: {report.exact.detail}"
        yield f"- exact numbers: {report.exact.examples} examples, {passed}"
    for model in report.models:
        if model.applies:
            passed = "" if model.passed else f", failed: {model.why}"
            yield f"- model `{model.model}`: error/bound {model.ratio:.2g}{passed}"
    if report.mutants is not None:
        counts = f"{report.mutants.refuted} refuted, {len(report.mutants.still_true)} still true"
        escaped = f", {len(report.mutants.escaped)} escaped" if report.mutants.escaped else ""
        yield f"- mutants: {counts}{escaped}"
    for check in report.more:
        yield f"- {check.name}: {'passed' if check.passed else 'failed'}. {check.seen}"


def _pictures(report: TheoremReport) -> list[NormalForm]:
    """Return the normal forms to draw: one for both sides if they are equal without hypotheses."""
    if report.proof.status == "error":
        return []
    claim = report.theorem.claim()
    if not isinstance(claim, Statement) or claim.given:
        return []
    sides = [claim.lhs, claim.rhs][: 1 if report.proof.status == "proved" else 2]
    if any(side.has(LayerProduct, OrderSum) for side in sides):
        return []
    forms: list[NormalForm] = []
    with suppress(LanguageError):  # a side that has no finite normal form
        forms = [normal_form(side) for side in sides]
    return forms if all(len(form) <= MOST_DIAGRAMS for form in forms) else []
