"""The examples in docstrings run, module by module, under the names that users import."""

from __future__ import annotations

import doctest
import importlib
import linecache
import pkgutil

import pytest

import otimes


def modules() -> list[str]:
    """Return the dotted names of all modules of otimes, itself included."""
    packages = [
        importlib.import_module(f"otimes.{name}") for name in ("algebra", "numeric", "proofs")
    ]
    found = ["otimes", *[package.__name__ for package in packages]]
    for package in (otimes, *packages):
        prefix = package.__name__ + "."
        found += [module.name for module in pkgutil.walk_packages(package.__path__, prefix)]
    return sorted({name for name in found if not name.endswith("__main__")})


@pytest.mark.parametrize("name", modules())
def test_the_examples_in_docstrings_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The debugger of each example asks for the dates of all files that were read so far.
    monkeypatch.setattr(linecache, "checkcache", lambda filename=None: None)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        pytest.skip(f"{missing.name} is not installed")
    results = doctest.testmod(module, optionflags=doctest.FAIL_FAST)
    assert not results.failed, f"an example in {name} fails: see the captured output"


def test_modules_of_every_package_are_found() -> None:
    found = set(modules())
    assert {
        "otimes.cli",
        "otimes.algebra.decide.induction",
        "otimes.numeric.audit.capture.hooks",
        "otimes.proofs.replay",
    } <= found
