"""Python files in which theorems are declared: finding and importing them."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from otimes.algebra.errors import OtimesError

PREFIX = "otimes_theorems_"
"""How the names of the modules of such files begin, in `sys.modules`."""


def theorem_files(path: Path) -> list[Path]:
    """Return the file, or the files of a folder that declare theorems, in the order of their paths.

    Other files of a folder are not imported. Raises: OtimesError if there is no such file.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise OtimesError(f"there is no file or folder {path}")
    found = [
        file
        for file in sorted(path.rglob("*.py"))
        if not any(part.startswith((".", "__pycache__")) for part in file.relative_to(path).parts)
        and _declares(file)
    ]
    if not found:
        raise OtimesError(
            f"{path} has no file that declares a theorem: decorate a function with otimes.theorem"
        )
    return found


def _declares(file: Path) -> bool:
    """Return whether a function of a file has a decorator called `theorem`."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return False
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    names = {
        ast.unparse(each.func if isinstance(each, ast.Call) else each)
        for function in functions
        for each in function.decorator_list
    }
    return any(name.rpartition(".")[2] == "theorem" for name in names)


def import_file(path: Path) -> ModuleType:
    """Return the module of a Python file, which can import its neighbours; imported once.

    Raises: OtimesError, with the line, for a file that cannot be read or imported.
    """
    path = path.resolve()
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    name = f"{PREFIX}{digest}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OtimesError(f"{path} is not a Python file: theorems are declared in files *.py")
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except OtimesError:
        del sys.modules[name]
        raise
    except SyntaxError as error:
        del sys.modules[name]
        line = f", line {error.lineno}" if error.lineno else ""
        raise OtimesError(f"{error.filename or path}{line}: {error.msg}") from None
    except (Exception, SystemExit) as error:  # the code of a user may raise anything, or exit
        del sys.modules[name]
        raise OtimesError(f"{path}{line_of(error, path)}: {described(error)}") from error
    return module


def line_of(error: BaseException, path: Path) -> str:
    """Return where in a file an error was raised, as `, line 3`; empty if it was elsewhere."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path]
    return f", line {lines[-1]}" if lines else ""


def described(error: BaseException) -> str:
    """Return an error of foreign code in one line."""
    first = str(error).strip().partition("\n")[0]
    return type(error).__name__ + (f": {first}" if first else "")


def from_file(path: str, name: str) -> Any:
    """Return what a file calls `name`; a theorem is pickled as these two."""
    return getattr(import_file(Path(path)), name)
