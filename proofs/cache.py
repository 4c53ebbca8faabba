"""Results of checks, kept from one command to the next by the content that they depend on.

The key of a result is a digest of the source files and bundled models of the packages, of the
entry's own file and those of the catalogue that it refers to, of the models that were asked for,
and of the versions of Python and of the libraries. This module imports none of these packages, so
that a command can take the digest before it loads the code that the digest is of. A result is
stored only if no file has changed since.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

PACKAGES = ("algebra", "numeric", "proofs")
NOT_USED = ("numeric/audit",)
"""Folders that no check imports."""
CATALOGUE = "proofs/catalogue"
LIBRARIES = ("hypothesis", "mpmath", "numpy", "opt_einsum", "safetensors", "scipy", "sympy")
FOLDER = "OTIMES_CACHE"
"""The environment variable that names another folder than the user's cache folder."""
DAYS = 60
"""How long a result is kept."""


class Cache:
    """Plain data by key, one file each; made before what the keys depend on is imported.

    `fresh` ignores what is stored. `root` is the folder with the three packages. `notes` has a
    sentence for each file that is damaged or cannot be written; what it held is computed again.

    >>> Cache().key("kron_mul_kron") == Cache().key("kron_transpose")
    False
    """

    def __init__(
        self, folder: Path | None = None, fresh: bool = False, root: Path | None = None
    ) -> None:
        chosen = folder or os.environ.get(FOLDER) or user_cache_path("otimes")
        self.folder = Path(chosen).absolute() / "checks"
        self.fresh = fresh
        self.root = Path(__file__).parents[1] if root is None else root
        self.notes: dict[str, None] = {}
        self._files: dict[Path, tuple[tuple[int, ...], str]] = {}
        for package in PACKAGES:
            self._read(self.root / package)
        self._code = self._digest_of_code()

    def key(self, *asked: Any, module: str = "", models: tuple[str, ...] = ()) -> str:
        """Return the key of what was asked about an entry of a module, on models or paths."""
        files = [self._modules[each] for each in self._referred_to(module)] if module else []
        for folder in {Path(name).absolute() for name in models}:
            if folder.is_dir():
                files += self._read(folder)
            elif folder.is_file():
                files += self._take([folder, folder.with_name("config.json")])
        digests = [self._files[path][1] for path in sorted(files)]
        return _sha(self._code, repr((asked, models)), *digests)

    def load(self, key: str) -> dict[str, Any] | None:
        """Return what is stored under a key; None if there is nothing, or if it is damaged."""
        path = self.folder / key
        if self.fresh or not path.is_file():
            return None
        try:
            digest, _, body = path.read_text(encoding="utf-8").partition("\n")
        except (OSError, UnicodeDecodeError):
            digest = body = ""
        if digest != _sha(key, body):
            self._note(f"{path} is damaged: what it held is computed again")
            return None
        content: dict[str, Any] = json.loads(body)
        return content

    def store(self, key: str, content: Mapping[str, Any]) -> None:
        """Store plain data, unless a file that keys depend on has changed since the start."""
        body = json.dumps(content)
        try:
            if any(_stamp(path) != stamp for path, (stamp, _) in self._files.items()):
                self._note("files changed while the checks ran: the results are not stored")
                return
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, unfinished = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(f"{_sha(key, body)}\n{body}")
            Path(unfinished).replace(self.folder / key)
        except OSError as error:
            self._note(f"results cannot be stored in {self.folder}: {error}")

    def prune(self) -> None:
        """Remove what was written more than `DAYS` days ago."""
        oldest = time.time() - DAYS * 86_400
        for path in self.folder.glob("*"):
            with suppress(OSError):  # another process may be quicker
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _note(self, sentence: str) -> None:
        self.notes[sentence] = None

    def _read(self, folder: Path) -> list[Path]:
        """Take the digests of all files in a folder that were not read yet; return the files."""
        skipped = {self.root / each for each in NOT_USED}
        found = []
        for at, inner, names in os.walk(folder):
            inner[:] = [n for n in inner if n != "__pycache__" and Path(at, n) not in skipped]
            found += [Path(at, name) for name in names]
        return self._take(found)

    def _take(self, paths: list[Path]) -> list[Path]:
        """Take the digests of those files that exist and were not read yet; return these files."""
        found = [path for path in paths if path.is_file()]
        for path in sorted(found):
            if path not in self._files:
                stamp = _stamp(path)
                self._files[path] = (stamp, hashlib.sha256(path.read_bytes()).hexdigest())
        return found

    def _digest_of_code(self) -> str:
        """Return the digest of everything that all results depend on."""
        versions = [f"{name} {version(name)}" for name in LIBRARIES]
        return _sha(
            sys.version,
            str(sys.flags.optimize),
            platform.platform(),
            *versions,
            *[
                f"{path.relative_to(self.root).as_posix()} {digest}"
                for path, (_, digest) in self._files.items()
                if path.name == "__init__.py" or not path.is_relative_to(self.root / CATALOGUE)
            ],
        )

    @cached_property
    def _modules(self) -> dict[str, Path]:
        """The modules of the catalogue by dotted name."""
        found = {}
        for path in self._files:
            if path.suffix == ".py" and path.is_relative_to(self.root / CATALOGUE):
                parts = ("otimes", *path.relative_to(self.root).with_suffix("").parts)
                found[".".join(parts).removesuffix(".__init__")] = path
        return found

    @cached_property
    def _references(self) -> dict[str, set[str]]:
        """The modules that each module of the catalogue imports, or whose entries it names."""
        named = {
            module: _entries_and_names(path.read_text(encoding="utf-8"))
            for module, path in self._modules.items()
        }
        home = {entry: module for module, (entries, _) in named.items() for entry in entries}
        return {
            module: {home.get(name, name) for name in names} & named.keys()
            for module, (_, names) in named.items()
        }

    def _referred_to(self, module: str) -> set[str]:
        """Return a module of the catalogue with all that it refers to, directly or not."""
        met, waiting = set(), [module]
        while waiting:
            each = waiting.pop()
            if each not in met:
                met.add(each)
                waiting += self._references[each]
        return met


@cache
def _entries_and_names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the functions of a module, and the names of `_names_in`."""
    tree = ast.parse(source)
    entries = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(entries), frozenset(_names_in(tree))


def _names_in(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module imports, and its strings: entries are referred to by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *[f"{node.module}.{alias.name}" for alias in node.names])
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _stamp(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _sha(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
