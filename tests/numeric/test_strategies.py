"""The public strategies, used the way a stranger's tests would."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import find, given, settings
from hypothesis import strategies as st

from otimes.algebra.evaluate.exact import tree_value
from otimes.algebra.language.linear import kron, matadd, matmul
from otimes.algebra.language.shapes import inspect
from otimes.algebra.verdict import decide
from otimes.numeric import strategies as ots
from otimes.numeric.strategies.expressions import as_assignment

n, d = sympy.symbols("n d", integer=True, positive=True)
A, X = sympy.MatrixSymbol("A", n, n), sympy.MatrixSymbol("X", n, d)
W = sympy.MatrixSymbol("W", d, d)


@given(ots.integer_matrices(2, 3), ots.float_matrices(4, 1))
def test_matrices_have_the_shape_that_was_asked_for(whole: np.ndarray, real: np.ndarray) -> None:
    assert whole.shape == (2, 3)
    assert whole.dtype == np.int64
    assert real.shape == (4, 1)
    assert np.isfinite(real).all()


@given(ots.patterns())
def test_patterns_are_causal_and_row_stochastic(pattern: np.ndarray) -> None:
    assert (pattern.sum(axis=1) == 1).all()
    assert (pattern >= 0).all()
    assert all(pattern[i, j] == 0 for i in range(len(pattern)) for j in range(i + 1, len(pattern)))


@pytest.mark.parametrize("convention", ["row", "column"])
@given(data=st.data())
def test_heads_stand_as_their_convention_says(convention: str, data: st.DataObject) -> None:
    head = data.draw(ots.heads(d_model=3, d_head=2, convention=convention))
    assert head.W_V.shape == ((3, 2) if convention == "row" else (2, 3))
    assert head.W_O.shape == head.W_V.shape[::-1]
    assert head.W_OV.shape == (3, 3)


@given(ots.models(n_layers=2), st.data())
def test_models_run(model, data: st.DataObject) -> None:
    tokens = data.draw(ots.tokens(model.d_vocab, longest=model.n_ctx))
    assert model.forward(tokens)["logits"].shape == (len(tokens), model.d_vocab)


@given(ots.models(norm="rms", d_mlp=3, positions="rotary", n_layers=1))
def test_models_have_the_fields_that_are_given(model) -> None:
    kind = model.config
    assert (kind.norm, kind.d_mlp, kind.positions, kind.n_layers) == ("rms", 3, "rotary", 1)
    assert (kind.biases, kind.tied, kind.norm_order) == ((), False, "pre")
    folded = model.fold_norms().forward([0])["logits"]
    # Some ten products of numbers up to 16, of which those of one row are added.
    assert np.abs(folded - model.forward([0])["logits"]).max() < 1e-9
    assert np.isfinite(model.forward([0])["logits"]).all()


@given(ots.configs(n_layers=1), st.data())
def test_models_of_any_kind_run(config, data: st.DataObject) -> None:
    model = data.draw(ots.models(config=config))
    assert model.config == config
    tokens = data.draw(ots.tokens(model.d_vocab, longest=model.n_ctx))
    assert model.forward(tokens)["logits"].shape == (len(tokens), model.d_vocab)


@given(ots.configs(positions="rotary", d_mlp=2, gated=True, norm="rms", tied=True))
def test_what_is_given_of_a_config_is_kept(config) -> None:
    assert (config.positions, config.d_mlp, config.norm) == ("rotary", 2, "rms")
    assert config.gated
    assert config.tied


@given(ots.configs(n_heads=3), ots.configs(n_kv_heads=3))
def test_groups_of_heads_come_out_even(three_heads, three_groups) -> None:
    assert three_heads.kv_heads in (1, 3)
    assert three_groups.n_heads % 3 == 0


@settings(max_examples=50)
@given(ots.identities())
def test_identities_are_proved(identity) -> None:
    assert decide(identity.lhs, identity.rhs).status == "proved"


@settings(max_examples=50)
@given(ots.near_misses())
def test_near_misses_are_refuted(miss) -> None:
    verdict = decide(miss.lhs, miss.rhs)
    assert verdict.status == "refuted"
    assert verdict.counterexample is not None


@settings(max_examples=60)
@given(st.data())
def test_assignments_fit_the_expressions_they_are_drawn_for(data: st.DataObject) -> None:
    identity = data.draw(ots.identities())
    values = data.draw(ots.assignments(identity.lhs, identity.rhs))
    numbers = as_assignment(values, inspect(identity.lhs, identity.rhs))
    left, right = tree_value(identity.lhs, numbers), tree_value(identity.rhs, numbers)
    assert np.all(left == right)


def test_hypothesis_is_loaded_only_with_the_strategies() -> None:
    code = "import sys, numeric, otimes; print('hypothesis' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


DRAWS = """
from hypothesis import HealthCheck, given, seed, settings
from otimes.numeric import strategies as ots

@seed(1)
@settings(database=None, max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(ots.near_misses(), ots.models())
def test(miss, model):
    print(miss, model.config, miss.trial.lhs)

test()
"""


def test_the_same_seed_draws_the_same_in_every_process() -> None:
    def drawn(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = [sys.executable, "-c", DRAWS]
        return subprocess.run(
            run, capture_output=True, text=True, check=True, env=environment
        ).stdout

    assert drawn("1") == drawn("2") != ""


@pytest.mark.parametrize(
    ("rhs", "sizes"), [(matmul(2, A, X), (1, 1)), (matmul(A.T, X), (2, 1))], ids=["1", "2"]
)
def test_numbers_that_show_a_difference_shrink_to_the_least_sizes(
    rhs: Any, sizes: tuple[int, int]
) -> None:
    lhs = matmul(A, X)

    def differ(values: dict[str, Any]) -> bool:
        numbers = as_assignment(values, inspect(lhs, rhs))
        return not np.all(tree_value(lhs, numbers) == tree_value(rhs, numbers))

    least = find(ots.assignments(lhs, rhs, smallest=0), differ)
    assert (least["n"], least["d"]) == sizes
    assert sum(abs(least["A"]).flat) == sum(abs(least["X"]).flat) == 1


def test_what_sympy_cannot_print_has_a_repr() -> None:
    cursed = matmul(kron(A, matmul(W, W)), kron(matadd(A, A), matmul(sympy.Transpose(X), X)))
    assert repr(ots.Equation(cursed, A, ("commute",))) == (
        "<true: (A ⊗ W W) ((A + A) ⊗ Xᵀ X) = A (commute)>"
    )
