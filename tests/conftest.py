"""What every test shares: one thread, a cache of checks that starts empty, how Hypothesis draws.

And how two workers divide the tests: a file goes to one worker, which makes its fixtures and fills
its caches once; tests of several files that share more have a mark `xdist_group` in common.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The arrays are small, and the tests run in two processes, so BLAS threads only slow them down.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# No test may be answered by what an earlier run or a command of the user has stored.
os.environ["OTIMES_CACHE"] = tempfile.mkdtemp(prefix="otimes-cache-")
atexit.register(shutil.rmtree, os.environ["OTIMES_CACHE"], ignore_errors=True)

# The same examples on every run and every machine, so that a red test is red for everybody; no
# deadline, because the machines that run this are shared and a slow example proves nothing.
settings.register_profile("otimes", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("otimes")

# What is imported and collected stays, so the garbage collector need not look at it often.
gc.set_threshold(20_000, 10, 10)

TESTS = Path(__file__).parent
LONGEST = (
    "proofs/test_elaborated.py",
    "algebra/explain/test_explain.py",
    "proofs/test_replay.py",
    "algebra/decide/test_hostile.py",
    "numeric/audit/test_plain.py",
    "algebra/decide/test_adversarial.py",
    "numeric/audit/test_catalogue.py",
    "numeric/audit/test_mistakes.py",
    "algebra/rules/test_rules.py",
    "proofs/test_own_theorems.py",
    "proofs/test_catalogue.py",
    "proofs/test_cache.py",
    "numeric/audit/test_fitted.py",
    "algebra/decide/test_indices.py",
    "algebra/language/test_binders.py",
    "algebra/decide/test_adversarial_cases.py",
    "algebra/decide/test_depth_claims.py",
    "algebra/facts/test_facts.py",
    "proofs/test_derivations.py",
    "proofs/test_replay_functions.py",
    "algebra/decide/test_suite.py",
    "algebra/decide/test_generated.py",
    "proofs/test_paper_derivations.py",
    "algebra/decide/test_functions_suite.py",
    "algebra/decide/test_axioms.py",
    "algebra/evaluate/test_without_numpy.py",
    "otimes/test_wheel.py",
    "docs/test_site.py",
    "docs/test_mathematics.py",
    "test_doctests.py",
    "test_annotations.py",
    "numeric/audit/test_analyses_mistakes.py",
    "numeric/audit/test_in_float64.py",
    "proofs/test_claims.py",
    "otimes/test_cli.py",
    "proofs/test_verification.py",
    "numeric/audit/test_torch_layers.py",
    "numeric/test_strategies.py",
)
"""Files that take ten seconds or more. They go first: no worker waits for another at the end."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    first = {TESTS / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: first.get(item.path, len(first)))


def pytest_collection_finish() -> None:
    """Keep what was imported and collected from the garbage collector, which would find none.

    It visits again and again the caches of SymPy and ours, which stay, so it runs less often.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a worker all tests of a group, or of a file, at a time."""
    from xdist.scheduler import LoadGroupScheduling

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group: str = super()._split_scope(nodeid)  # without a group the test itself
            return group.partition("::")[0]

    return ByFile(config, log) if config.getoption("dist") == "loadgroup" else None
