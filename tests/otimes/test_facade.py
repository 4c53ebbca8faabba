"""The public API: every promised name exists, and packages of other people do not matter."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import sympy

import otimes as ot

STUB = Path(ot.__file__).with_suffix(".pyi")


@pytest.mark.parametrize("name", ot.__all__)
def test_every_name_exists(name: str) -> None:
    assert getattr(ot, name) is getattr(ot, name)
    assert name in dir(ot)


def test_each_name_is_loaded_from_the_module_that_defines_it() -> None:
    for node in ast.walk(ast.parse(STUB.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                named = getattr(ot, alias.name)
                if isinstance(named, sympy.Symbol):
                    continue  # pi, whose class is not ours
                home = getattr(named, "__module__", None)
                package = f"otimes.{node.module}"
                assert home is None or home == package or home.startswith(package + ".")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="prive"):
        _ = ot.prive


def test_packages_of_the_same_names_change_nothing(tmp_path: Path) -> None:
    for name in ("algebra", "numeric", "proofs"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('the package of somebody else')\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import otimes as ot\n"
        "from sympy import MatrixSymbol\n"
        "A = MatrixSymbol('A', 2, 2)\n"
        "print(ot.decide(A.T.T, A).status, ot.load_model('zero_layer').config.n_layers)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "proved 0\n", run.stderr
