"""The document in a file, by the ending of its name."""

from __future__ import annotations

from pathlib import Path

from otimes.proofs.documents.containers.einsum import with_einsum
from otimes.proofs.documents.containers.markdown import read_markdown
from otimes.proofs.documents.containers.notebook import read_notebook
from otimes.proofs.documents.containers.source import LARGEST, Document, DocumentError
from otimes.proofs.documents.containers.tex import read_tex


def read_document(path: Path) -> Document:
    """Return the document in a file. Raises DocumentError for one that cannot be read."""
    return with_einsum(_document(path, _text_of(path)))


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise DocumentError(f"{path} is larger than {LARGEST:,} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror}") from None
    if b"\0" in data[:10_000]:
        raise DocumentError(f"cannot read {path}: it is a binary file and not text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DocumentError(f"{path} is not UTF-8: line {line}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _document(path: Path, text: str) -> Document:
    suffix = path.suffix.lower()
    if suffix in (".md", ".markdown", ".txt", ".qmd", ".rmd", ".mdx"):
        return read_markdown(str(path), text)
    if suffix in (".tex", ".ltx", ".latex"):
        return read_tex(str(path), text)
    if suffix == ".ipynb":
        return read_notebook(str(path), text)
    raise DocumentError(f"{path}: .md, .tex and .ipynb files are read, not {suffix or 'this'}")
