"""`otimes list`, `search` and `show`: what they find, and that it is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otimes._catalogue import index, search
from otimes.proofs.cache import Cache
from tests.forked import otimes

LONG = os.environ.get("OTIMES_LONG") == "1"
Entries = list[dict[str, Any]]


@pytest.fixture(scope="module")
def entries() -> Entries:
    return index(Cache())


@pytest.mark.parametrize(
    ("query", "name", "among"),
    [
        ("layer norm fold", "norm_gain_and_bias_fold", 1),
        ("folding LayerNorm", "norm_gain_and_bias_fold", 1),
        ("RoPE shift", "rotary_scores_ignore_a_shift", 1),
        ("rotary offset", "rotary_scores_ignore_a_shift", 1),
        ("mixed product", "kron_mul_kron", 1),
        ("kronecker transpose", "kron_transpose", 1),
        ("softmax translation", "softmax_ignores_row_constants", 1),
        ("value bias", "value_bias_passes_through", 1),
        ("GQA keys", "grouped_keys_are_repeated", 2),
        ("FFN neurons", "feed_forward_is_sum_over_neurons", 3),
        ("tied unembedding", "tied_unembedding_is_transpose", 1),
        ("integrated gradients completeness", "integrated_gradients_are_complete", 1),
        ("Welch", "welch_bound", 2),
        ("Eckart Young", "eckart_young", 1),
        ("gauge QK rotary", "rotary_qk_gauge", 1),
        ("RoPE", "rotary_scores_by_distance", 1),
        ("OV", "ov_circuit", 5),
        ("KV cache", "kv_cache_is_last_row", 1),
    ],
)
def test_words_of_the_field_find_the_theorem(
    entries: Entries, query: str, name: str, among: int
) -> None:
    found = [each["name"] for each in search(entries, query.split())]
    assert name in found[:among], found[:5]


@pytest.mark.parametrize("query", ["zzzz", "", "the of"])
def test_words_about_nothing_find_nothing(entries: Entries, query: str) -> None:
    assert search(entries, query.split()) == []


def test_a_theorem_is_found_by_its_name(entries: Entries) -> None:
    for each in entries if LONG else entries[::8]:
        best = search(entries, each["name"].split("_"))
        assert each["name"] in [found["name"] for found in best[:6]], each["name"]


def started(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "otimes", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"OTIMES_CACHE": str(cache), "PATH": "", "COLUMNS": "100"},
    )


def test_what_is_kept_needs_no_catalogue(tmp_path: Path) -> None:
    """The second time, nothing that takes long is imported."""
    cache = tmp_path / "cache"
    cold = started(cache, "list")
    assert "sympy" in cold.stderr
    for arguments in (("list",), ("search", "rope"), ("show", "kron_mul_kron")):
        environment = {"OTIMES_CACHE": str(cache), "COLUMNS": "100"}
        first = cold if arguments[0] == "list" else otimes(*arguments, env=environment)
        again = started(cache, *arguments)
        assert first.returncode == again.returncode == 0
        note = "checks      from the cache (--fresh runs them again)\n"
        assert again.stdout.replace(note, "") == first.stdout
        assert "sympy" not in again.stderr
        assert "otimes.proofs.catalogue" not in again.stderr


def test_json(tmp_path: Path) -> None:
    environment = {"OTIMES_CACHE": str(tmp_path)}
    found = json.loads(otimes("search", "fold", "--json", env=environment).stdout)
    assert found["schema"] == 1
    assert {"name", "title", "text", "latex", "prose", "source"} <= found["theorems"][0].keys()
    found = json.loads(otimes("list", "-k", "kron and transpose", "--json", env=environment).stdout)
    assert [each["name"] for each in found["theorems"]] == ["kron_transpose"]
    ran = otimes("list", "-k", "zzzz", env=environment)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "no theorem matches 'zzzz', of " in ran.stderr
    ran = otimes("search", "zzzz", env=environment)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "no theorem is about 'zzzz'" in ran.stderr
