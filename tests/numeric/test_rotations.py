"""The matrices of rotary positions turn what the forward pass turns; others are noticed."""

from dataclasses import replace

import numpy as np
import pytest

from otimes.numeric.binding import run_of
from otimes.numeric.config import Config, llama_config
from otimes.numeric.functions import rotate
from otimes.numeric.random_weights import random_model
from otimes.numeric.rotations import rotation_matrices
from otimes.proofs.catalogue import find
from otimes.proofs.on_models import check_on_model

SIZES = {"n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "d_model": 12, "d_head": 6, "d_vocab": 29}
LLAMA = llama_config(
    **SIZES, d_mlp=20, n_ctx=16, rotary_base=10000.0, rotary_dims=6, rotary_stretch=()
)
TOKENS = list(range(9))


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("dims", [2, 4, 6])
def test_a_row_times_its_matrix_is_the_turned_row(layout: str, dims: int) -> None:
    config = replace(LLAMA, rotary_layout=layout, rotary_dims=dims)
    rows = np.random.default_rng(0).normal(size=(9, 6))
    matrices = rotation_matrices(config, 9)
    assert matrices is not None
    turned = np.einsum("pi,pij->pj", rows, matrices)
    assert np.abs(turned - rotate(rows, *config.rotation)).max() < 1e-14


@pytest.mark.parametrize(
    "config",
    [
        replace(LLAMA, rotary_stretch=(2.0,)),
        replace(LLAMA, positions="none", rotary_dims=0),
        random_model(kind="deepseek2").config,
    ],
)
def test_where_no_single_matrix_turns_all_there_is_none(config: Config) -> None:
    assert rotation_matrices(config, 9) is None


@pytest.mark.parametrize(
    "name", ["rotary_scores_by_distance", "swiglu_is_bilinear_with_frozen_gates"]
)
def test_the_parts_of_llama_are_held_to_what_is_recorded(name: str) -> None:
    run = run_of(random_model(LLAMA), TOKENS)
    stated = find(name).statement()
    right = check_on_model(stated, run)
    assert (right.applies, right.passed, right.recorded) == (True, True, True), right.why
    for array, wrong in {
        "rotation": rotation_matrices(replace(LLAMA, rotary_base=10001.0), len(TOKENS)),
        "W_K": np.roll(run.arrays["W_K"], 1, axis=1),  # repeated 1 0 0 1 for 0 0 1 1
        "W_gate": run.arrays["W_in"],
    }.items():
        if (array != "W_gate") == (name == "rotary_scores_by_distance"):
            assert not check_on_model(
                stated, replace(run, arrays={**run.arrays, array: wrong})
            ).passed
