"""The last word of a run of these tests is what the bounds have seen."""

import pytest

from tests.numeric.rounding import seen


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the line, if there is one."""
    if line := seen.summary():
        terminalreporter.write_line(line)
