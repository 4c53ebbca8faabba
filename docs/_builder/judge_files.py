"""The files of the judge in the browser: Pyodide, and zip archives of the prover and of SymPy.

They are copied into the site, and a page loads them only when its reader asks the judge. Compiling
them takes half a minute of one core after a change, beside the writing of the pages (`begin`).
"""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

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
    their tests and what the prover does not import, compiled without docstrings;
    with their licences
otimes (MIT): prover-*.zip, compiled, and otimes-*.zip, with the source of the checker
"""


_begun: list[Future[dict[str, bytes]]] = []
"""The archives of a build that are being made."""


def begin() -> None:
    """Start to make the archives in another thread, if Pyodide has been fetched."""
    if pyodide.there() and not _begun:
        thread = ThreadPoolExecutor(1)
        _begun.append(thread.submit(_archives))
        thread.shutdown(wait=False)


def write(site: Path) -> None:
    """Write the files into a built site; nothing where Pyodide has not been fetched."""
    begin()
    if not _begun:
        return
    archives = _begun.pop().result()
    folder = site / "assets" / "judge"
    folder.mkdir(parents=True, exist_ok=True)
    for name in pyodide.FILES:
        shutil.copyfile(pyodide.FOLDER / name, folder / name)
    named = {name: f"{name}-{_digest(content)}.zip" for name, content in archives.items()}
    for name, file in named.items():
        (folder / file).write_bytes(archives[name])
    (folder / "files.json").write_text(json.dumps(named) + "\n", "utf-8")
    (folder / "NOTICE.txt").write_text(NOTICE, "utf-8")


def _archives() -> dict[str, bytes]:
    return {
        "libraries": _compiled("libraries", _library_files(), undocumented),
        "prover": _compiled("prover", _prover()),
        "otimes": archive(_checker()),
    }


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


def _compiled(
    name: str,
    files: Iterable[tuple[str, bytes]],
    change: Callable[[bytes], bytes] = bytes,
) -> bytes:
    """Return the archive of compiled modules, kept beside Pyodide by the digest of the sources.

    `change` is made to each source before.
    """
    sources = sorted(files)
    kept = pyodide.FOLDER / f"{name}-{_digest_of(sources)}.zip"
    if not kept.is_file():
        for old in pyodide.FOLDER.glob(f"{name}-*.zip"):
            old.unlink()
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "in.zip", Path(folder) / "out.zip"
            changed = ((at, change(x) if at.endswith(".py") else x) for at, x in sources)
            given.write_bytes(archive(changed, level=1))
            command = ["node", *map(str, (BROWSER / "compile.mjs", pyodide.FOLDER, given, made))]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
            shutil.copyfile(made, kept)
    return kept.read_bytes()


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def undocumented(source: bytes) -> bytes:
    r"""Return a module with empty docstrings; those that use them find a text.

    >>> undocumented(b'def f():\n    "Return 1."\n    return 1')
    b'def f():\n    ""\n    return 1'
    """
    lines = source.splitlines(keepends=True)
    found = [
        node.body[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None
    ]
    for text in sorted(found, key=lambda node: node.lineno, reverse=True):
        first, last = text.lineno - 1, (text.end_lineno or text.lineno) - 1
        before, after = lines[first][: text.col_offset], lines[last][text.end_col_offset :]
        lines[first : last + 1] = [before + b'""' + after]
    return b"".join(lines)


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
    """Return the digest of the files of an archive, and of what compiles them."""
    makers = [("", path.read_bytes()) for path in (BROWSER / "compile.mjs", Path(__file__))]
    every = [[name, _digest(content)] for name, content in [*makers, *sources]]
    return _digest(json.dumps(every).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
