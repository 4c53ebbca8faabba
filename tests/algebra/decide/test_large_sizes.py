"""False claims at real sizes: each counterexample is evaluated by NumPy, with no code of ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import BlockMatrix, Identity, MatrixSymbol, OneMatrix, Symbol, Trace, ZeroMatrix

from otimes.algebra.decide import decide as judge
from otimes.algebra.decide import large_sizes
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    vec_rows,
)
from otimes.algebra.verdict import decide

d, heads, d_head, d_vocab = 768, 12, 64, 50_257
h, k = Symbol("h", integer=True), Symbol("k", integer=True)
n = Symbol("n", integer=True, positive=True)
a = Symbol("a", real=True)
M, N = MatrixSymbol("M", d, d), MatrixSymbol("N", d, d)
A, W = MatrixSymbol("A", heads, heads), MatrixSymbol("W", d_head, d_head)
X = MatrixSymbol("X", n, d)
W_E, W_U = MatrixSymbol("W_E", d_vocab, d), MatrixSymbol("W_U", d, d_vocab)
Q, R = Family("Q", (heads,), d, d_head), Family("R", (heads,), d_head, d)
V = Family("V", (heads,), d_head, d_head)


Evaluated = Callable[[dict[str, Any], dict[str, Any]], tuple[Any, Any]]

# The claim, and both sides in NumPy from the arrays and the numbers of the counterexample.
FALSE: dict[str, tuple[Any, Any, Evaluated]] = {
    "product": (M * N, N * M, lambda c, _: (c["M"] @ c["N"], c["N"] @ c["M"])),
    "identity added": (M + Identity(d), M, lambda c, _: (c["M"] + np.eye(d, dtype=int), c["M"])),
    "trace": (
        Trace(M * N),
        Trace(M) * Trace(N),
        lambda c, _: (np.trace(c["M"] @ c["N"]), np.trace(c["M"]) * np.trace(c["N"])),
    ),
    "column means": (
        OneMatrix(d, d) * M,
        M * OneMatrix(d, d),
        lambda c, _: (
            np.ones((d, d), int) @ c["M"],
            c["M"] @ np.ones((d, d), int),
        ),
    ),
    "a factor of a size": (
        (OneMatrix(1, d) * OneMatrix(d, 1))[0, 0] * M,
        (d - 1) * M,
        lambda c, _: (d * c["M"], (d - 1) * c["M"]),
    ),
    "tensor product": (
        kron(A, W) * M,
        M * kron(A, W),
        lambda c, _: (np.kron(c["A"], c["W"]) @ c["M"], c["M"] @ np.kron(c["A"], c["W"])),
    ),
    "order of a tensor product": (
        vec_rows(M),
        vec_rows(M.T),
        lambda c, _: (c["M"].reshape(-1, 1), c["M"].T.reshape(-1, 1)),
    ),
    "block": (
        BlockMatrix([[M, N], [N, M]]).T * BlockMatrix([[M], [N]]),
        BlockMatrix([[M.T * M + N.T * N], [N.T * M + M * N]]),
        lambda c, _: (
            np.block([[c["M"], c["N"]], [c["N"], c["M"]]]).T @ np.block([[c["M"]], [c["N"]]]),
            np.block(
                [[c["M"].T @ c["M"] + c["N"].T @ c["N"]], [c["N"].T @ c["M"] + c["M"] @ c["N"]]]
            ),
        ),
    ),
    "heads": (
        X * HeadSum(Q[h] * V[h] * R[h], (h, heads)),
        X * HeadSum(Q[h] * V[h].T * R[h], (h, heads)),
        lambda c, _: (
            sum(c["X"] @ c["Q"][i] @ c["V"][i] @ c["R"][i] for i in range(heads)),
            sum(c["X"] @ c["Q"][i] @ c["V"][i].T @ c["R"][i] for i in range(heads)),
        ),
    ),
    "heads side by side": (
        ConcatHeads(Q[h], (h, heads)) * StackHeads(R[h], (h, heads)),
        HeadSum(Q[h] * R[0], (h, heads)),
        lambda c, _: (
            np.concatenate(list(c["Q"]), axis=1) @ np.concatenate(list(c["R"]), axis=0),
            sum(c["Q"][i] @ c["R"][0] for i in range(heads)),
        ),
    ),
    "a given head": (
        Q[11] * R[11],
        Q[11] * R[10],
        lambda c, _: (
            c["Q"][11] @ c["R"][11],
            c["Q"][11] @ c["R"][10],
        ),
    ),
    "an entry": (M[3, 700], M[700, 3], lambda c, _: (c["M"][3, 700], c["M"][700, 3])),
    "a row": (
        OneHot(5, d).T * M,
        OneHot(6, d).T * M,
        lambda c, _: (c["M"][5:6], c["M"][6:7]),
    ),
    "a free head": (
        Q[k] * R[k],
        ZeroMatrix(d, d),
        lambda c, i: (c["Q"][i["k"]] @ c["R"][i["k"]], np.zeros((d, d), int)),
    ),
    "a scalar": (a * M, a**2 * M, lambda c, i: (i["a"] * c["M"], i["a"] ** 2 * c["M"])),
}


@pytest.mark.parametrize("name", FALSE)
def test_false_at_real_sizes(name: str) -> None:
    lhs, rhs, evaluated = FALSE[name]
    verdict = decide(lhs, rhs)
    assert verdict.status == "refuted"
    found = verdict.counterexample
    assert found is not None
    numbers = {s.name: v for s, v in {**found.sizes, **found.indices, **found.scalars}.items()}
    # products of these small integers are exact in floating point
    arrays = {each: array.astype(float) for each, array in found.arrays.items()}
    left, right = evaluated(arrays, numbers)
    at = (left[found.entry], right[found.entry]) if found.entry else (left, right)
    assert at == (found.lhs, found.rhs)
    assert found.lhs != found.rhs
    pasted: dict[str, Any] = {"np": np}
    exec(str(found), pasted)
    for array, value in found.arrays.items():
        assert np.array_equal(pasted[array], value)


def test_the_largest_matrices_of_a_model() -> None:
    """50,257 × 768: no array is filled, and no product is formed."""
    verdict = decide(W_E * W_U, (W_E * W_U).T)
    assert verdict.status == "refuted"
    found = verdict.counterexample
    assert found is not None
    assert found.entry is not None
    i, j = found.entry
    W_e, W_u = found.arrays["W_E"], found.arrays["W_U"]
    assert (W_e[i] @ W_u[:, j], W_e[j] @ W_u[:, i]) == (found.lhs, found.rhs)
    assert verdict.work < 10_000


def test_a_sum_takes_in_the_entries_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the trace one over the first rows only, it would differ from the 40 entries it sums."""
    tried = [pair for pair in judge.STRATEGIES if pair[0] == "exact trials"]
    monkeypatch.setattr(judge, "STRATEGIES", tuple(tried))
    few = MatrixSymbol("M", 40, 40)
    entries = [few[i, i] for i in range(40)]
    assert decide(Trace(few), sympy.Add(*entries), budget=1).status == "undecided"
    found = decide(Trace(few), sympy.Add(*entries[1:]), budget=20).counterexample
    assert found is not None
    array = np.array(found.arrays["M"]).astype(int)
    assert (np.trace(array), np.trace(array) - array[0, 0]) == (found.lhs, found.rhs)


def test_what_is_true_for_all_sizes_is_proved_at_real_ones() -> None:
    assert decide((M * N).T, N.T * M.T).status == "proved"
    assert decide(M**96, M**48 * M**48).status == "proved"


def test_functions_are_told_apart_by_classes_of_rows() -> None:
    from otimes.algebra.language.nonlinear import RowSoftmax

    found = decide(RowSoftmax(M), RowSoftmax(N)).counterexample
    assert found is not None
    m, other = (np.exp(np.array(found.arrays[name], dtype=float)) for name in "MN")
    apart = m / m.sum(1, keepdims=True) - other / other.sum(1, keepdims=True)
    assert abs(apart[found.entry]) > 1e-6


def test_without_numpy_a_small_array_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    from otimes.algebra.evaluate import exact_arrays

    monkeypatch.setattr(exact_arrays, "is_installed", lambda _: False)
    found = decide(M * N, N * M).counterexample
    assert found is not None
    assert type(found.arrays["M"]) is exact_arrays.ExactArray
    assert d >= large_sizes.LARGE


def test_few_of_many_layers_are_not_zero_in_a_counterexample() -> None:
    F, layers = Family("F", (96,), d, d), range(96)

    def stack(last: int) -> Any:
        return LayerProduct(Identity(d) + F[k], (k, last))

    example = decide(stack(96), stack(95) * (Identity(d) + F[95])).counterexample
    assert example is not None
    few = {at[0] for at in example.nonzero["F"]}
    assert len(few) <= 2
    corner = [np.eye(4, dtype=object) + example.arrays["F"][layer, :4, :4] for layer in layers]
    assert max(max(at[1:]) for at in example.nonzero["F"]) < 4  # beyond, all is the identity
    right = reduce(lambda product, layer: layer @ product, corner[:95]) @ corner[95]
    left = reduce(lambda product, layer: layer @ product, corner)
    assert example.entry is not None
    assert (left[example.entry], right[example.entry]) == (example.lhs, example.rhs)
