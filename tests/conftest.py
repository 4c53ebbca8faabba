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
    "algebra/decide/test_hostile.py",
    "numeric/audit/test_plain.py",
    "proofs/test_derivations.py",
    "numeric/audit/test_catalogue.py",
    "docs/test_site.py",
    "numeric/audit/test_in_float64.py",
    "algebra/explain/test_explain.py",
    "proofs/test_replay.py",
    "otimes/test_wheel.py",
    "algebra/decide/test_adversarial.py",
    "proofs/test_own_theorems.py",
    "proofs/test_replay_functions.py",
    "numeric/audit/test_analyses_mistakes.py",
    "numeric/audit/test_mistakes.py",
    "algebra/decide/test_positions.py",
    "algebra/evaluate/test_without_numpy.py",
    "proofs/test_cache.py",
    "proofs/test_on_models.py",
    "algebra/decide/test_depth_claims.py",
    "algebra/decide/test_generated.py",
    "algebra/decide/test_indices.py",
    "numeric/audit/test_second_names.py",
    "algebra/facts/test_facts.py",
    "algebra/decide/test_suite.py",
    "numeric/audit/test_fitted.py",
    "proofs/test_author.py",
    "proofs/test_replay_guards.py",
    "algebra/decide/test_powers_at_an_index.py",
    "docs/test_mathematics.py",
    "test_doctests.py",
    "numeric/audit/test_torch_layers.py",
    "otimes/test_ends.py",
    "numeric/test_strategies.py",
    "test_annotations.py",
    "proofs/documents/test_members.py",
    "proofs/documents/test_recurrences.py",
    "proofs/documents/test_applications.py",
    "otimes/test_cli.py",
    "otimes/test_catalogue_commands.py",
    "algebra/decide/test_axioms.py",
    "proofs/test_catalogue.py",
)
"""Files that take about eight seconds or more. They go first: no worker waits at the end."""


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
