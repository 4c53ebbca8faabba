"""The pytest plugin: a fixture `otimes_audit`, which fails a test with a one-sentence message.

    def test_my_model(otimes_audit):
        otimes_audit(my_model, tokens, weights=checkpoint)

pytest loads the plugin wherever otimes is installed, so otimes is imported only on use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


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
