"""Chains for reading: few lines of the full chain, each named by what it does."""

from __future__ import annotations

import pytest
from sympy import Identity

from otimes.algebra.explain.outline import IDEAS, MOST_LINES, OF_RULE, idea_of, outlined
from otimes.algebra.explain.search import explain
from otimes.algebra.language.linear import kron, matadd, matmul
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.rules import RULES
from otimes.proofs.catalogue import find
from tests.algebra.expressions import A, W, d, n


def test_every_idea_is_of_rules_that_exist_and_no_rule_has_two() -> None:
    rules = [rule for text in IDEAS.values() for rule in text.split()]
    assert set(rules) <= set(RULES)
    assert len(rules) == len(set(rules)) == len(OF_RULE)


def test_every_rule_has_an_idea_but_those_that_only_move_things() -> None:
    assert idea_of("mul_assoc") == idea_of("one_mul") == idea_of("index_rename") == ""
    assert idea_of("given_2") == "hypothesis 2"
    assert all(rule in OF_RULE for rule in RULES if idea_of(rule))


@pytest.mark.parametrize("name", ["taylor_of_quadratic", "one_layer_expansion", "two_layer_paths"])
def test_an_outline_is_a_part_of_the_chain_in_few_lines(name: str) -> None:
    chain = find(name).steps()
    assert chain is not None
    lines = chain.outline().lines
    assert 1 <= len(lines) <= min(MOST_LINES, len(chain.lines))
    assert tuple(step for line in lines for step in line.steps) == chain.steps
    assert [line.expression for line in lines] == [line.steps[-1].after for line in lines]
    assert lines[-1].expression == chain.rhs
    assert all(line.idea for line in lines)
    assert chain.outline().check()
    text = chain.outline().text()
    assert all(line.idea.split(",")[0] in text for line in lines)


def test_the_mixed_product_is_one_line() -> None:
    chain = explain(matmul(kron(A, Identity(d)), kron(Identity(n), W)), kron(A, W))
    assert chain is not None
    assert [line.idea for line in chain.outline().lines] == ["mixed product"]


def test_an_identity_of_n_times_d_is_not_shown_on_the_way() -> None:
    once = matmul(kron(Identity(n), Identity(d)), kron(A, W))
    chain = explain(matadd(once, once), matmul(2, kron(A, W)))
    assert chain is not None
    for line in chain.outline().lines:
        assert "I_(" not in unicode_text(line.expression)


def test_no_steps_are_no_lines() -> None:
    assert outlined(()) == ()
