"""Imports go down only: from package to package, and from module to module without a circle.

Read off the syntax trees, not off what happens to be loaded, so that an import inside a function
or under TYPE_CHECKING counts as well.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = {
    "otimes": ("algebra", "numeric", "proofs", "otimes"),
    "otimes.algebra": (
        "errors",
        "hints",
        "budget",
        "language",
        "notation",
        "mutations",
        "diagrams",
        "reading",
        "draw",
        "normal_form",
        "evaluate",
        "decide",
        "rules",
        "facts",
        "paths",
        "explain",
        "verdict",
        "written",
        "chain",
    ),
    "otimes.numeric.audit": (
        "findings",
        "reference",
        "precision",
        "capture",
        "mistakes",
        "symmetries",
        "diagnosis",
        "judge",
        "diagnose",
        "precision_findings",
        "report_html",
        "report",
        "audit",
        "decoding",
        "padding",
        "checkpoint",
        "analyses",
    ),
    "otimes.proofs.documents": (
        "containers",
        "reporting",
        "formulas",
        "symbols",
        "proving",
        "prose",
        "verdicts",
        "check",
    ),
}
"""The parts of a package from the bottom up: each may import itself and those before it."""


def modules() -> dict[str, Path]:
    """Return every module by its dotted name."""
    found = {}
    for folder in ("algebra", "numeric", "proofs", "otimes"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts if folder == "otimes" else ("otimes", *parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(source: str, module: str, is_package: bool = False) -> set[str]:
    """Return the dotted names that a module imports, by any kind of import."""
    found = set()
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *(node.module or "").split(".")]).strip(".")
            found |= {f"{base}.{alias.name}" for alias in node.names}
        elif (
            isinstance(node, ast.Call)
            and "import" in ast.unparse(node.func)
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            found.add(str(node.args[0].value))
    return found


def of_ours(name: str) -> str | None:
    """Return the module of ours that an imported name is, or lies in."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name or None


@cache
def names_in(module: str) -> frozenset[str]:
    """Return the names that a module imports."""
    path = MODULES[module]
    text = path.read_text(encoding="utf-8")
    return frozenset(imported(text, module, path.name == "__init__.py"))


def arrows(module: str) -> set[str]:
    """Return the modules that a module imports."""
    return {found for name in names_in(module) if (found := of_ours(name)) and found != module}


def part_of(module: str, package: str) -> str:
    """Return the part of a package that a module belongs to."""
    rest = module.removeprefix(package).strip(".").split(".")[0]
    if package == "otimes":
        return rest if rest in LAYERS["otimes"] else "otimes"
    return rest


def upward(module: str, targets: set[str]) -> set[str]:
    """Return the targets that lie above a module, in any package that both belong to."""
    found = {target for target in targets if target.split(".")[0] == "tests"}
    for package, order in LAYERS.items():
        within = [t for t in targets if (t + ".").startswith(package + ".")]
        if (module + ".").startswith(package + ".") and part_of(module, package) in order:
            floor = order.index(part_of(module, package))
            found |= {t for t in within if part_of(t, package) in order[floor + 1 :]}
    return found


def test_every_module_imports_downwards_only() -> None:
    wrong = [
        f"{module} imports {sorted(found)}, which lie above it"
        for module in MODULES
        if (found := upward(module, {of_ours(name) or name for name in names_in(module)}))
    ]
    assert not wrong, "\n".join(wrong)


def test_there_is_no_circle_of_imports() -> None:
    try:
        TopologicalSorter({module: arrows(module) for module in MODULES}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_there_is_no_circle_of_packages(depth: int) -> None:
    """Cut off at a depth, names are packages, of which one may not need another and be needed."""
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        package = ".".join(module.split(".")[:depth])
        below = {".".join(name.split(".")[:depth]) for name in arrows(module)}
        graph.setdefault(package, set()).update(below - {package, "otimes"})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_a_circle_is_seen() -> None:
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"c"}, "c": {"a"}}).prepare()


@pytest.mark.parametrize("package", LAYERS)
def test_every_part_of_a_package_has_its_layer(package: str) -> None:
    inside = {m for m in MODULES if (m + ".").startswith(package + ".") and m != package}
    assert {part_of(module, package) for module in inside} <= set(LAYERS[package])


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("otimes.numeric.model", "import otimes.proofs.replay"),
        ("otimes.numeric.model", "import otimes.proofs.catalogue as c"),
        ("otimes.numeric.model", "from otimes.proofs.theorem import Theorem"),
        ("otimes.numeric.model", "def later():\n    from otimes.cli import verify"),
        ("otimes.numeric.model", "import_module('otimes.proofs.verification')"),
        ("otimes.numeric.model", "importlib.import_module('otimes.cli')"),
        ("otimes.numeric.model", "from tests.conftest import anything"),
        ("otimes.algebra.language.linear", "from otimes.algebra.decide import axioms"),
        ("otimes.algebra.language.linear", "from ..decide import axioms"),
        ("otimes.numeric.audit.capture.hooks", "import otimes.numeric.audit.mistakes.mlp"),
    ],
)
def test_every_kind_of_upward_import_is_seen(module: str, line: str) -> None:
    names = imported(line, module)
    assert upward(module, {of_ours(name) or name for name in names})


@pytest.mark.parametrize(
    "line", ["import otimes.algebra.errors", "from . import forward", "from .model import Model"]
)
def test_downward_imports_are_let_through(line: str) -> None:
    names = imported(line, "otimes.numeric.layer")
    assert not upward("otimes.numeric.layer", {of_ours(name) or name for name in names})


def test_the_reference_pass_does_not_depend_on_the_algebra_it_is_compared_with() -> None:
    algebra = {m for m in arrows("otimes.numeric.forward") if m.startswith("otimes.algebra")}
    assert algebra <= {"otimes.algebra.errors"}


@pytest.mark.parametrize("module", ["otimes", "otimes.cli"])
def test_importing_the_api_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"sympy", "numpy", "scipy", "torch", "hypothesis", "rich", "safetensors"}
    assert not heavy & set(run.stdout.split())


def test_the_build_installs_every_package() -> None:
    """`setup.py` finds the packages by their folders; one without `__init__.py` would be lost."""
    for path in MODULES.values():
        assert (path.parent / "__init__.py").exists(), f"{path.parent} has no __init__.py"
