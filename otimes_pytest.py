"""The pytest plugin: a fixture `otimes_audit`, which fails a test in one sentence.

    def test_my_model(otimes_audit):
        otimes_audit(my_model, tokens, weights=checkpoint)

pytest loads it in every project where otimes is installed, so it imports nothing before its use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def otimes_audit() -> Callable[..., Any]:
    """Return `otimes.audit`, made to fail the test with a sentence when it finds something."""
    import otimes

    def check(implementation: Any, tokens: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        report = otimes.audit(implementation, tokens, **options)
        if not report.passed:
            pytest.fail(f"{report.name}: {report.first_failure}", pytrace=False)
        return report

    return check
