"""What is kept between commands: never anything of other content than the files have now."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from otimes.numeric.load import bundled_models
from otimes.proofs import cache as caching
from otimes.proofs import verification
from otimes.proofs.cache import NOT_USED, PACKAGES, Cache
from otimes.proofs.catalogue import catalogue, find
from otimes.proofs.evidence import TheoremReport
from otimes.proofs.verification import verify
from tests.otimes.reports import SHORT, WELL
from tests.test_imports import ROOT, arrows

NAME = "kron_transpose"
KEY = "k" * 64


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages as they are installed, to be changed."""
    # Hypothesis parses all modules that are not in a folder of this name.
    folder = tmp_path_factory.mktemp("python") / "site-packages" / "otimes"
    for package in PACKAGES:
        leave = shutil.ignore_patterns("audit", "importers")  # with what is compiled already
        shutil.copytree(ROOT / package, folder / package, ignore=leave)
    for path in (ROOT / "otimes").glob("*.py*"):
        shutil.copy(path, folder)
    return folder


def key_of(root: Path, name: str = NAME, **asked: tuple[str, ...]) -> str:
    module = find(name).state.__module__
    return Cache(root=root).key(name, module=module, **asked)


@pytest.fixture(scope="module")
def key(installed: Path) -> str:
    return key_of(installed)


@contextmanager
def appended(path: Path) -> Iterator[None]:
    """Add a line to a file for a while."""
    before = path.read_bytes()
    path.write_bytes(before + b"\n# changed\n")
    yield
    path.write_bytes(before)


# -- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        "algebra/rules/products.py",
        "algebra/axioms.json",
        "numeric/rounding/functions.py",
        "numeric/bundled/two_layer/weights.safetensors",
        "proofs/replay.py",
        "proofs/catalogue/symbols.py",
        "proofs/catalogue/__init__.py",
        "proofs/catalogue/tensor_products/products.py",
    ],
)
def test_a_change_of_what_an_entry_depends_on_changes_its_key(
    installed: Path, key: str, changed: str
) -> None:
    with appended(installed / changed):
        assert key_of(installed) != key


def test_a_change_of_another_topic_leaves_the_key(installed: Path, key: str) -> None:
    with appended(installed / "proofs/catalogue/residual_stream/superposition.py"):
        assert key_of(installed) == key


def test_the_same_content_has_the_same_key(installed: Path, key: str) -> None:
    with appended(installed / "proofs/replay.py"):
        pass
    assert key_of(installed) == key


def test_a_key_depends_on_what_is_asked_and_on_the_versions(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(root=installed)
    shutil.copytree(ROOT / "numeric/bundled/zero_layer", tmp_path / "mine")
    mine = str(tmp_path / "mine")
    keys = [cache.key(NAME), cache.key(NAME, True), cache.key("kron_mul_kron")]
    keys += [cache.key(NAME, models=("one_layer",)), cache.key(NAME, models=(mine,))]
    with appended(tmp_path / "mine" / "weights.safetensors"):
        keys.append(Cache(root=installed).key(NAME, models=(mine,)))
    monkeypatch.setattr(caching, "version", lambda name: "0")
    keys.append(Cache(root=installed).key(NAME))
    assert len(set(keys)) == len(keys)


def test_a_key_covers_the_entries_that_a_claim_is_made_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`lemma` finds an entry by name: its file must be among those that the key is made of."""
    cache, met = Cache(), 0
    for theorem in catalogue():
        used: list[str] = []
        found = lambda name, used=used: used.append(name) or find(name)  # noqa: E731
        with monkeypatch.context() as patch:
            patch.setattr("otimes.proofs.catalogue.find", found)
            claim = theorem.claim()
        used += [*getattr(claim, "obeys", ()), *getattr(claim, "rests_on", ())]
        met += len(used)
        modules = {find(name).state.__module__ for name in used}
        assert modules <= cache._referred_to(theorem.state.__module__), theorem.name
    assert met > 50


def test_no_check_imports_the_folders_that_are_left_out() -> None:
    unused = tuple(f"otimes.{folder.replace('/', '.')}" for folder in NOT_USED)
    met: set[str] = set()
    waiting = ["otimes.proofs.verification", *{t.state.__module__ for t in catalogue()}]
    while waiting:
        module = waiting.pop()
        if module not in met:
            met.add(module)
            waiting += arrows(module)
    assert "otimes.algebra.rules.products" in met
    assert not {module for module in met if module.startswith(unused)}


# -- files ----------------------------------------------------------------------------------------


def test_what_is_stored_is_loaded(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.load(KEY) is None
    cache.store(KEY, {"a": [1, 0.5, None, float("inf")]})
    assert Cache(tmp_path).load(KEY) == {"a": [1, 0.5, None, float("inf")]}
    assert Cache(tmp_path, fresh=True).load(KEY) is None
    assert not cache.notes
    assert [path.name for path in (tmp_path / "checks").iterdir()] == [KEY]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-1],
        lambda text: text[:70],
        lambda text: b"",
        lambda text: text.replace(b"false", b"true"),
        lambda text: text.replace(b"false", b"\xff"),
    ],
)
def test_a_damaged_file_is_not_loaded(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    cache = Cache(tmp_path)
    cache.store(KEY, {"passed": False})
    path = tmp_path / "checks" / KEY
    path.write_bytes(damage(path.read_bytes()))
    assert cache.load(KEY) is None
    (note,) = cache.notes
    assert note.endswith("is damaged: what it held is computed again")
    cache.store(KEY, {"passed": False})
    assert cache.load(KEY) == {"passed": False}


def test_what_is_stored_under_another_key_is_not_loaded(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store(KEY, {"passed": True})
    (tmp_path / "checks" / KEY).rename(tmp_path / "checks" / "other")
    assert cache.load("other") is None


def test_nothing_is_stored_once_a_file_has_changed(installed: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path, root=installed)
    with appended(installed / "algebra" / "errors.py"):
        cache.store(KEY, {})
    assert cache.load(KEY) is None
    assert [*cache.notes] == ["files changed while the checks ran: the results are not stored"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file")
    cache.store(KEY, {})
    assert cache.load(KEY) is None
    (note,) = cache.notes
    assert note.startswith(f"results cannot be stored in {tmp_path / 'file' / 'checks'}: ")


def test_old_results_are_removed(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for key in ("old", "new"):
        cache.store(key, {})
    old = time.time() - (caching.DAYS + 1) * 86_400
    os.utime(tmp_path / "checks" / "old", (old, old))
    cache.prune()
    assert [path.name for path in (tmp_path / "checks").iterdir()] == ["new"]


# -- reports --------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", [WELL, SHORT])
def test_a_report_survives_as_plain_data(report: TheoremReport) -> None:
    data = json.loads(json.dumps(report.to_json()))
    assert TheoremReport.from_json(report.theorem, data) == report


def test_reports_are_read_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [NAME, "kron_mul_kron"]
    first = verify(names[:1], ["one_layer"], cache=Cache(tmp_path))
    assert (first.passed, first.from_cache) == (True, 0)
    told: list[tuple[int, int, str]] = []
    report = verify(names, ["one_layer"], lambda *each: told.append(each), cache=Cache(tmp_path))
    assert [each.from_cache for each in report.theorems] == [True, False]
    assert [each.theorem.name for each in report.theorems] == names
    assert [each[:2] for each in told] == [(1, 2), (2, 2)]
    monkeypatch.setattr(verification, "check", None)
    again = verify(names, ["one_layer"], cache=Cache(tmp_path))
    assert (again.passed, again.from_cache) == (True, 2)
    assert again.summary() == report.summary()
    with pytest.raises(TypeError):
        verify(names[:1], ["one_layer"], cache=Cache(tmp_path, fresh=True))
    with pytest.raises(TypeError):
        verify(names[:1], [], cache=Cache(tmp_path))


def test_what_failed_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "verify_theorem", lambda *_: SHORT)
    verify(["heads_compose"], ["zero_layer"], cache=Cache(tmp_path))
    assert Cache(tmp_path).load(Cache().key("definition", models=("zero_layer",)))
    assert len([*(tmp_path / "checks").iterdir()]) == 1


def test_a_theorem_made_false_is_refuted_and_no_report_on_it_is_kept(
    installed: Path, tmp_path: Path
) -> None:
    """The whole command, on a copy of the packages: proved, kept, made false, refuted."""
    path = installed / "proofs/catalogue/tensor_products/products.py"
    code = path.read_text(encoding="utf-8")
    right = "kron(Transpose(A), Transpose(B)),\n        bind="
    assert code.count(right) == 1

    def ran() -> tuple[int, bool]:
        run = subprocess.run(
            [sys.executable, "-P", "-m", "otimes", "verify", NAME, "--quick", "--json"],
            env={**os.environ, "PYTHONPATH": str(installed.parent), "OTIMES_CACHE": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.stderr == ""
        (theorem,) = json.loads(run.stdout)["theorems"]
        return run.returncode, theorem["from_cache"]

    assert ran() == (0, False)
    module = find(NAME).state.__module__
    kept = Cache(tmp_path, root=installed)  # whose key is the same in this process as in that
    assert kept.load(kept.key(NAME, True, module=module, models=tuple(bundled_models())))
    path.write_text(
        code.replace(right, right.replace("(A), Transpose(B)", "(B), Transpose(A)")), "utf-8"
    )
    assert ran() == (1, False)
    path.write_text(code, encoding="utf-8")
