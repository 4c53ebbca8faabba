"""Products of a claim join what a head or an MLP joins: each slip here is true of all matrices."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import MatrixSymbol, Symbol, Transpose

from otimes.algebra.language.linear import Family, kron, matadd, matmul
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.symbols import H, L, X, d, d_head, d_mlp, layers, m, n, p, row
from otimes.proofs.checks.wiring import miswired
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import Theorem
from otimes.proofs.verification import verify_on_runs

i, g, h = (Symbol(name, integer=True) for name in "igh")
values, outputs = layers.row.W_V, layers.row.W_O
Q, K = Family("W_Q", (L, H), d, d_head), Family("W_K", (L, H), d, d_head)
shared = Family("W_K", (p,), d, d_head)  # keys of groups of heads
other = MatrixSymbol("W_K2", d, d_head)
neurons, pre = MatrixSymbol("mlp_post", n, d_mlp), MatrixSymbol("mlp_pre", n, d_mlp)
W_out, V = MatrixSymbol("W_out", d_mlp, d), MatrixSymbol("V", m, d_head)


def head(pattern: tuple[Any, ...], weights: tuple[Any, ...]) -> Any:
    return matmul(layers.A[pattern], X, values[weights], outputs[weights])


RIGHT: dict[str, Any] = {
    "values": matmul(X, row.W_V, row.W_O),
    "scores": matmul(X, row.W_Q, Transpose(row.W_K), Transpose(X)),
    "a Gram matrix": matmul(Transpose(row.W_Q), row.W_Q),
    "a composition": matmul(row.W_O, row.W_K),
    "a head": head((i, h), (i, h)),
    "two heads": matmul(layers.A[1, g], layers.A[0, h], X, values[0, h], outputs[0, h]),
    "keys of a group": matmul(Q[i, h], Transpose(shared[g])),
    "a product of sums": matmul(
        matadd(values[0, 0], values[0, 1]), matadd(outputs[0, 0], outputs[0, 1])
    ),
    "neurons": matmul(neurons, W_out),
}
WRONG: dict[str, tuple[Any, str]] = {
    "W_K for W_V": (matmul(X, row.W_K, row.W_O), "W_K and W_O"),
    "W_V for W_K": (matmul(row.W_Q, Transpose(row.W_V)), "W_Q and W_V"),
    "in a sum": (matmul(matadd(row.W_V, row.W_Q), row.W_O), "W_Q and W_O"),
    "another head": (matmul(values[i, h], outputs[i, g]), "of two heads"),
    "another layer": (matmul(Q[0, h], Transpose(K[1, h])), "of two heads"),
    "the pattern of another head": (head((i, g), (i, h)), "a pattern"),
    "the pattern of another layer": (
        kron(layers.A[0, h], Transpose(matmul(values[1, h], outputs[1, h]))),
        "a pattern",
    ),
    "before the activation": (matmul(pre, W_out), "before the activation"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_model_joins_is_accepted(name: str) -> None:
    assert not miswired(Statement(RIGHT[name], RIGHT[name]))


@pytest.mark.parametrize("name", WRONG)
def test_what_no_model_joins_is_named(name: str) -> None:
    expression, said = WRONG[name]
    assert said in miswired(Statement(expression, expression))


def test_a_binding_decides_what_a_symbol_is() -> None:
    scores = matmul(row.W_Q, Transpose(other))
    bind = ({"W_Q": Source("W_Q", layer=0), "W_K2": Source("W_K", layer=1)},)
    assert "two heads" in miswired(Statement(scores, scores, bind=bind))
    moved = matmul(MatrixSymbol("B", n, m), V, row.W_O)
    assert not miswired(Statement(moved, moved, bind=({"V": Source("v")},)))
    assert "k and W_O" in miswired(Statement(moved, moved, bind=({"V": Source("k")},)))


def test_a_claim_that_joins_the_wrong_weights_fails() -> None:
    """It is an identity all the same."""
    sides = matmul(X, matmul(row.W_K, row.W_O)), matmul(matmul(X, row.W_K), row.W_O)
    stated = Statement(*sides, on_models=False)
    entry = Theorem("mine", "Mine", 1, "row", "here", (), "prose", lambda: stated)
    found = verify_on_runs(entry, [], quick=True)
    assert not found.passed
    assert "W_K and W_O do not meet" in found.proof.detail
