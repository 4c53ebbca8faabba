"""Rooms import downwards only, and the front door is light.

Read off the syntax trees, not off what happens to be imported, so that an import inside a function
or under TYPE_CHECKING counts as well.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("algebra", "numeric", "proofs", "otimes")
"""From the bottom up: each may import itself and those before it."""

FILES = [(room, path) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def imported(source: str, package: tuple[str, ...]) -> set[str]:
    """Return the top-level packages that a module of `package` imports, by any kind of import."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            found.add((*above, *(node.module or "").split("."))[0])
        elif (
            isinstance(node, ast.Call)
            and "import" in ast.unparse(node.func)
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            found.add(str(node.args[0].value).partition(".")[0])
    return found


def upward(room: str, source: str, package: tuple[str, ...]) -> set[str]:
    """Return the rooms above `room`, and the tests, that such a module would import."""
    above = {*ROOMS[ROOMS.index(room) + 1 :], "tests"}
    return imported(source, package) & above


@pytest.mark.parametrize(
    ("room", "path"), FILES, ids=[str(path.relative_to(ROOT)) for _, path in FILES]
)
def test_a_room_imports_downwards_only(room: str, path: Path) -> None:
    package = path.relative_to(ROOT).parent.parts
    found = upward(room, path.read_text(encoding="utf-8"), package)
    assert not found, f"{path.relative_to(ROOT)} is in {room} and imports {sorted(found)}"


@pytest.mark.parametrize(
    "line",
    [
        "import proofs",
        "import proofs.catalogue as c",
        "from proofs.theorem import Theorem",
        "def later():\n    from otimes import verify",
        "import_module('proofs.verification')",
        "importlib.import_module('otimes')",
        "from tests.conftest import anything",
    ],
)
def test_the_walk_sees_every_kind_of_upward_import(line: str) -> None:
    assert upward("numeric", line, ("numeric",))


@pytest.mark.parametrize(
    "line", ["import algebra.decide", "from . import model", "from .model import Model"]
)
def test_the_walk_lets_downward_imports_through(line: str) -> None:
    assert not upward("numeric", line, ("numeric",))


def test_every_room_is_walked_and_carries_its_mark() -> None:
    assert {room for room, _ in FILES} == set(ROOMS)
    for room in ROOMS:
        source = (ROOT / room / "__init__.py").read_text(encoding="utf-8")
        assert f'__otimes__ = "{room}"' in source


def test_the_numbers_do_not_lean_on_the_algebra_they_are_compared_with() -> None:
    """The reference pass is the other side of every model check, so it is written on its own."""
    tree = ast.parse((ROOT / "numeric" / "forward.py").read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    ours = {m for m in modules | names if m and m.partition(".")[0] == "algebra"}
    assert ours <= {"algebra.errors"}


@pytest.mark.parametrize("module", ["otimes", "otimes.cli"])
def test_the_front_door_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"sympy", "numpy", "scipy", "torch", "hypothesis", "rich", "safetensors"}
    assert not heavy & set(run.stdout.split())
