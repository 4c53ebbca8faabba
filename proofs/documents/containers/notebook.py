"""The formulas of a Jupyter notebook: those of its Markdown cells. No cell is run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from otimes.proofs.documents.containers.macros import with_macros
from otimes.proofs.documents.containers.markdown import read_unexpanded
from otimes.proofs.documents.containers.source import Comment, Document, DocumentError


def read_notebook(name: str, text: str) -> Document:
    """Return a notebook as one document; lines are counted within each cell.

    Raises DocumentError for what is not a notebook.
    """
    try:
        content = json.loads(text)
    except RecursionError:
        raise DocumentError(f"{name} is not a notebook: it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DocumentError(f"{name} is not a notebook: {error}") from None
    cells = _cells(content)
    if cells is None:
        raise DocumentError(f"{name} is not a notebook: it has no list of cells")
    document = Document(name, "")
    begins: list[int] = []
    at = 0
    pieces = []
    for kind, source in cells:
        begins.append(at)
        if kind == "markdown":
            part = read_unexpanded(name, source)
            document.formulas += [_moved(formula, at) for formula in part.formulas]
            document.hidden += [(start + at, end + at) for start, end in part.hidden]
            document.comments += [Comment(c.text, c.start + at, c.end + at) for c in part.comments]
        else:
            document.hidden.append((at, at + len(source)))
        pieces.append(source)
        at += len(source) + 2
    document.text = "\n\n".join(pieces)
    document.cells = begins
    return with_macros(document)  # those of one cell are known in all


def _cells(content: Any) -> list[tuple[str, str]] | None:
    """Return the type and the source of each cell, None for another format."""
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        return None
    found = []
    for cell in cells:
        source = cell.get("source", "") if isinstance(cell, dict) else ""
        parts = source if isinstance(source, list) else [source]
        kind = cell.get("cell_type", "") if isinstance(cell, dict) else ""
        found.append((str(kind), "".join(map(str, parts))))
    return found


def _moved(formula: Any, by: int) -> Any:
    offsets = tuple(offset + by for offset in formula.offsets)
    return replace(formula, start=formula.start + by, end=formula.end + by, offsets=offsets)
