"""The files of the judge in the browser: Pyodide, and its memory when the judge has been imported.

They are copied into the site, and a page loads them only when its reader asks the judge. Beside
them are zip archives of the sources, of which the memory was made: a browser reads them where it
cannot start from the memory, and for modules that were not imported. Making it takes a quarter of a
minute of one core after a change, beside what MkDocs does by itself (`begin`).
"""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import pyodide

ROOT = Path(__file__).parents[2]
BROWSER = Path(__file__).parent / "browser"
LEFT_OUT = frozenset(
    (
        "__pycache__",
        "autolev",
        "benchmarks",
        "c",
        "categories",
        "codegen",
        "crypto",
        "diffgeom",
        "fortran",
        "holonomic",
        "latex",
        "liealgebras",
        "physics",
        "sandbox",
        "stats",
        "testing",
        "tests",
        "vector",
    )
)
"""Folders of SymPy and mpmath that the prover does not import."""

WHEN = (1980, 1, 1, 0, 0, 0)  # the date of all files in an archive, so that equal ones are equal

NOTICE = f"""\
The judge in the browser consists of

Pyodide {pyodide.VERSION}, Mozilla Public License 2.0 (https://mozilla.org/MPL/2.0/): the files \
pyodide*,
    unchanged, from the package `pyodide` of the npm registry. Its source is at
    https://github.com/pyodide/pyodide. SHA-256 of the package: {pyodide.SHA256}
Python, Python Software Foundation License 2 (https://docs.python.org/3/license.html):
    python_stdlib.zip and a part of pyodide.asm.wasm, as Pyodide builds them
SymPy {version("sympy")} (BSD-3-Clause) and mpmath {version("mpmath")} (BSD-3-Clause): \
libraries-*.zip, without
    their tests, what the prover does not import, and docstrings; with their licences
otimes (MIT): prover-*.zip, and otimes-*.zip with the checker
All of these: memory-*.gz, the memory of Pyodide after they have been imported
"""


_begun: list[Future[dict[str, bytes]]] = []
"""The files of a build that are being made."""


def begin() -> None:
    """Start to make the files in another thread, if Pyodide has been fetched."""
    if pyodide.there() and not _begun:
        thread = ThreadPoolExecutor(1)
        _begun.append(thread.submit(_made))
        thread.shutdown(wait=False)


def write(site: Path) -> None:
    """Write the files into a built site; nothing where Pyodide has not been fetched."""
    begin()
    if not _begun:
        return
    made = _begun.pop().result()
    folder = site / "assets" / "judge"
    folder.mkdir(parents=True, exist_ok=True)
    for name in pyodide.FILES:
        shutil.copyfile(pyodide.FOLDER / name, folder / name)
    named = {}
    for name, content in made.items():
        stem, _, ending = name.rpartition(".")
        named[stem] = f"{stem}-{_digest(content)}.{ending}"
        (folder / named[stem]).write_bytes(content)
    (folder / "files.json").write_text(json.dumps(named) + "\n", "utf-8")
    (folder / "NOTICE.txt").write_text(NOTICE, "utf-8")


def _made() -> dict[str, bytes]:
    """Return the contents of the files by name."""
    sources = {"libraries.zip": _libraries(), "prover.zip": archive(_prover())}
    sources["otimes.zip"] = archive(_checker())
    return {"memory.gz": _memory(sources), **sources}


def archive(files: Iterable[tuple[str, bytes]], level: int = 9) -> bytes:
    """Return a zip archive of files; the same files make the same bytes."""
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as out:
        for name, content in sorted(files):
            out.writestr(zipfile.ZipInfo(name, WHEN), content, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def _prover() -> Iterator[tuple[str, bytes]]:
    """Yield the prover, and what the browser asks of it."""
    for path in _files(ROOT / "algebra"):
        yield f"otimes/algebra/{path.relative_to(ROOT / 'algebra').as_posix()}", path.read_bytes()
    for name in ("answers.py", "typed.py"):
        yield name, (BROWSER / name).read_bytes()


def _checker() -> Iterator[tuple[str, bytes]]:
    """Yield the checker, as its source."""
    yield "otimes/proofs/replay.py", (ROOT / "proofs" / "replay.py").read_bytes()
    yield "otimes/proofs/__init__.py", b""
    yield "otimes/__init__.py", b""


def _libraries() -> bytes:
    """Return the archive of SymPy and mpmath without docstrings."""
    files = sorted(_library_files())

    def make() -> bytes:
        return archive((at, undocumented(x) if at.endswith(".py") else x) for at, x in files)

    return _kept("libraries", ".zip", files, make)


def _memory(sources: Mapping[str, bytes]) -> bytes:
    """Return the memory of Pyodide after the modules of these archives have been imported."""

    def make() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in sources.items():
                Path(folder, name).write_bytes(content)
            out = Path(folder, "memory.gz")
            paths = [BROWSER / "snapshot.mjs", pyodide.FOLDER, out]
            command = ["node", *map(str, paths), *[str(Path(folder, name)) for name in sources]]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
            return out.read_bytes()

    version_of = ("pyodide", pyodide.SHA256.encode())
    return _kept("memory", ".gz", [version_of, *sources.items()], make)


def _kept(
    name: str, ending: str, sources: Sequence[tuple[str, bytes]], make: Callable[[], bytes]
) -> bytes:
    """Return a file that is kept beside Pyodide by the digest of what it is made of."""
    kept = pyodide.FOLDER / f"{name}-{_digest_of(sources)}{ending}"
    if not kept.is_file():
        for old in pyodide.FOLDER.glob(f"{name}-*"):
            old.unlink()
        kept.write_bytes(make())
    return kept.read_bytes()


HOLDING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def undocumented(source: bytes) -> bytes:
    r"""Return a module with empty docstrings; those that use them find a text.

    >>> undocumented(b'def f():\n    "Return 1."\n    return 1')
    b'def f():\n    ""\n    return 1'
    """
    lines = source.splitlines(keepends=True)
    found = list(_docstrings(ast.parse(source)))
    for text in sorted(found, key=lambda node: node.lineno, reverse=True):
        first, last = text.lineno - 1, (text.end_lineno or text.lineno) - 1
        before, after = lines[first][: text.col_offset], lines[last][text.end_col_offset :]
        lines[first : last + 1] = [before + b'""' + after]
    return b"".join(lines)


def _docstrings(node: Any) -> Iterator[ast.expr]:
    """Yield the docstrings of a module, class or function, and of those in it."""
    if isinstance(node, HOLDING) and node.body:
        match node.body[0]:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                yield text
    for name in ("body", "orelse", "handlers", "finalbody"):
        for inside in getattr(node, name, ()):
            if isinstance(inside, ast.stmt | ast.excepthandler):
                yield from _docstrings(inside)


def _library_files() -> Iterator[tuple[str, bytes]]:
    for name in ("sympy", "mpmath"):
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        for path in _files(package):
            yield f"{name}/{path.relative_to(package).as_posix()}", path.read_bytes()
        for path in package.parent.glob(f"{name}-*.dist-info/**/LICENSE*"):
            yield f"{name}/{path.name}", path.read_bytes()


def _files(folder: Path) -> Iterator[Path]:
    """Yield the modules and data of a package, without what is left out."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.suffix in (".py", ".json") and not LEFT_OUT.intersection(inside):
            yield path


def _digest_of(sources: Iterable[tuple[str, bytes]]) -> str:
    """Return the digest of some files, and of what makes another one of them."""
    makers = [("", path.read_bytes()) for path in (BROWSER / "snapshot.mjs", Path(__file__))]
    every = [[name, _digest(content)] for name, content in [*makers, *sources]]
    return _digest(json.dumps(every).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
