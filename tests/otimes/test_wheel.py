"""The wheel holds the folders, and works beside other people's packages of the same names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

pytest.importorskip("setuptools", "77", reason="the extra `test` has it")

ROOT = Path(__file__).parents[2]
PACKAGES = ("otimes", "algebra", "numeric", "proofs")
OTHERS = "raise RuntimeError('the package of somebody else')\n"
LONG = os.environ.get("OTIMES_LONG") == "1"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """The wheel, built from a copy: the build leaves files behind."""
    source, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for package in PACKAGES:
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, source / package, ignore=leave)
    for name in ("pyproject.toml", "setup.py", "otimes_pytest.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(made), str(source)],
        check=True,
    )
    (path,) = made.glob("otimes-*.whl")
    return ZipFile(path)


def test_the_wheel_holds_what_the_folders_hold(wheel: ZipFile) -> None:
    expected = {"otimes_pytest.py": ROOT / "otimes_pytest.py"}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                within = path.relative_to(ROOT)
                name = within if package == "otimes" else Path("otimes") / within
                expected[name.as_posix()] = path
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert sorted(held ^ expected.keys()) == []
    assert all(wheel.read(name) == path.read_bytes() for name, path in expected.items())


@pytest.fixture(scope="module")
def ran(
    wheel: ZipFile, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Python with the wheel installed beside `algebra` and `numeric`; `proofs.py` lies about."""
    # Hypothesis parses all modules that are not in a folder of this name.
    site = tmp_path_factory.mktemp("python") / "site-packages"
    work = tmp_path_factory.mktemp("work")
    wheel.extractall(site)
    for package in ("algebra", "numeric"):
        (site / package).mkdir()
        (site / package / "__init__.py").write_text(OTHERS)
    (work / "proofs.py").write_text(OTHERS)
    (work / "test_mine.py").write_text(
        "def test_mine(otimes_audit):\n"
        "    import otimes\n"
        f"    assert otimes.__file__.startswith({str(site)!r})\n"
        "    model = otimes.load_model('zero_layer')\n"
        "    otimes_audit(lambda tokens: model.forward(tokens[0])['logits'][None],\n"
        "        [[1, 2, 3]], weights=model)\n"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=work,
            env={**os.environ, "PYTHONPATH": str(site), "OTIMES_CACHE": str(work / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_the_command_works_beside_other_packages(ran: Run) -> None:
    found = ran("-m", "otimes", "verify", *([] if LONG else ["kron_transpose"]), "--quick")
    assert (found.returncode, found.stderr) == (0, "")
    assert "proved" in found.stdout.splitlines()[-1]
    covered = ran("-m", "otimes", "coverage", "--chapter", "1", "--quick", "--json")
    assert '"items"' in covered.stdout, covered.stderr


def test_the_pytest_plugin_works_beside_other_packages(ran: Run) -> None:
    found = ran("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py")
    assert found.returncode == 0, found.stdout
