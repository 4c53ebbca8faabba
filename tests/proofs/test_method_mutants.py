"""Trials that do not look at what a function returns are found out by breaking the function."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from otimes.numeric import processing
from otimes.numeric.model import Model
from otimes.numeric.processing import centre_unembedding
from otimes.numeric.random_weights import random_model
from otimes.proofs.claims import Method, Trial
from otimes.proofs.method_mutants import Case, check_broken

SMALL = random_model(n_layers=2, n_heads=2, d_model=6, d_head=3, d_vocab=11, n_ctx=8)
CASES: list[Case] = [(SMALL, [1, 2, 3, 4])]
NAME = "otimes.numeric.processing.centre_unembedding"


def of_all_weights(
    rewritten: Callable[[Model], Model], model: Model, tokens: Sequence[int]
) -> Iterator[Trial]:
    new = rewritten(model)
    plain = model.W_U - np.array([[sum(row) / len(row)] for row in model.W_U])
    yield Trial("W_U", new.W_U, plain, 1e-15 * np.abs(model.W_U).sum())
    for name in ("W_E", "W_Q", "W_K", "W_V", "W_O"):
        yield Trial(name, getattr(new, name), getattr(model, name), 0.0)


def of_the_unembedding(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    yield next(of_all_weights(centre_unembedding, model, tokens))


def of_itself(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    new = processing.centre_unembedding(model)
    yield Trial("W_U", new.W_U, new.W_U, 0.0)


def of_nothing(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    yield Trial("W_U", model.W_U, model.W_U, 0.0)


def test_a_function_broken_in_any_way_fails_honest_trials() -> None:
    found = check_broken(Method(NAME, (), partial(of_all_weights, centre_unembedding)), CASES, ())
    assert found.passed
    assert found.refuted == 8
    assert "another head" in found.still_true  # it has no such argument


def test_trials_are_found_out_that_compare_part_of_it_or_itself_or_nothing() -> None:
    part = check_broken(Method(NAME, (), of_the_unembedding), CASES, ())
    assert "W_O of another head" in str(part.escaped)
    assert "W_U with its columns shifted" not in str(part.escaped)
    itself = check_broken(Method(NAME, (), of_itself), CASES, ())
    assert "W_U with its columns shifted" in str(itself.escaped)
    nothing = check_broken(Method(NAME, (), of_nothing), (), CASES)
    assert nothing.escaped == (f"any: no trial calls {NAME}",)


def test_a_change_that_is_explained_must_pass_the_trials() -> None:
    method = Method(NAME, (), partial(of_all_weights, centre_unembedding))
    explained = replace(method, unchanged_by={"W_K for W_Q": "no reason"})
    assert "it is said to change nothing" in str(check_broken(explained, CASES, ()).escaped)
    part = Method(NAME, (), of_the_unembedding, unchanged_by={"W_K for W_Q": "only W_U is seen"})
    assert "W_K for W_Q (only W_U is seen)" in check_broken(part, CASES, ()).still_true
