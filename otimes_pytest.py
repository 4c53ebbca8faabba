"""The pytest plugin: a fixture for audits, and theorems as tests.

    def test_my_model(otimes_audit):
        otimes_audit(my_model, tokens, weights=checkpoint)

fails with one sentence if the audit does not pass. `pytest --otimes my_theorems.py` (or a folder)
makes a test of each theorem that is declared with `otimes.theorem`, beside the tests that are asked
for otherwise.

pytest loads the plugin wherever otimes is installed, so otimes is imported only on use.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from otimes.proofs.theorem import Theorem


@pytest.fixture
def otimes_audit() -> Callable[..., Any]:
    """Return a function like `otimes.audit` that fails the test if the audit does not pass."""
    import otimes

    def check(implementation: Any, tokens: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        report = otimes.audit(implementation, tokens, **options)
        if not report.passed:
            pytest.fail(f"{report.name}: {report.first_failure}", pytrace=False)
        return report

    return check


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("otimes")
    group.addoption(
        "--otimes",
        action="append",
        default=[],
        metavar="FILE",
        help="make a test of each theorem that a Python file, or a folder, declares",
    )
    group.addoption(
        "--otimes-quick",
        action="store_true",
        help="proofs and exact numbers only: theorems are not checked on models, nor are mutants",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Ask for the files with theorems, and for nothing else if nothing else is named."""
    asked = config.getoption("--otimes")
    if not asked:
        return
    from otimes import OtimesError
    from otimes.proofs.theorem_files import theorem_files

    try:
        files = [file.resolve() for path in asked for file in theorem_files(Path(path))]
    except OtimesError as error:
        raise pytest.UsageError(f"--otimes: {error}") from None
    config.stash[FILES] = frozenset(files)
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    config.args = [*(config.args if named else []), *map(str, files)]


FILES = pytest.StashKey[frozenset[Path]]()


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Collector | None:
    """Collect theorems, and not functions, from a file that --otimes names."""
    if module_path.resolve() not in parent.config.stash.get(FILES, frozenset()):
        return None
    file: pytest.Collector = TheoremFile.from_parent(parent, path=module_path)
    return file


class TheoremFile(pytest.File):
    """A file that declares theorems."""

    def collect(self) -> Iterator[TheoremItem]:
        """Yield a test for each theorem."""
        from otimes import OtimesError, load_theorems

        try:
            theorems = load_theorems(self.path)
        except OtimesError as error:
            raise self.CollectError(str(error)) from None
        for theorem in theorems:
            yield TheoremItem.from_parent(self, name=theorem.name, theorem=theorem)


class TheoremItem(pytest.Item):
    """The checks of one theorem."""

    def __init__(self, theorem: Theorem, **options: Any) -> None:
        super().__init__(**options)
        self.theorem = theorem

    def runtest(self) -> None:
        """Fail unless the theorem passes all checks."""
        import otimes
        from otimes._table import block, shortcomings

        quick = self.config.getoption("--otimes-quick")
        report = otimes.verify([self.theorem], quick=quick)
        if not report.passed:
            found = "\n".join(block(*each) for each in shortcomings(report))
            pytest.fail(found, pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file, the line and the name of the theorem."""
        return self.path, self.theorem.state.__code__.co_firstlineno - 1, self.name
