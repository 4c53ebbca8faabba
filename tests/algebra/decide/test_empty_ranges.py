"""What a claim says of the values at which it is defined, where it evaluates nothing.

Each false claim fails where a sum or a product has no term at which log, √ or an inverse of a
matrix is evaluated: the matrix may be negative, or singular, there.
"""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import Identity, MatrixSymbol, Sum, Trace, ZeroMatrix

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.verdict import decide
from otimes.proofs.replay import check
from tests.algebra.decide.attack import proof_alone

n, d = sympy.symbols("n d", integer=True, positive=True)
i, j, l = sympy.symbols("i j l", integer=True)  # noqa: E741 (the layer)
K, S = Family("K", (n,), d, d), Family("S", (n + 1,), d, d)
X, P, x = MatrixSymbol("X", d, d), MatrixSymbol("P", d, d), MatrixSymbol("x", n, 1)
NONE = ZeroMatrix(d, d)


def log(e: Any) -> Any:
    return Activation("log", e)


def relu(e: Any) -> Any:
    return Activation("relu", e)


def beside(e: Any) -> tuple[Any, Any]:
    """Return a claim that is true where all members are nonnegative, with a term on both sides."""
    return matadd(e, HeadSum(relu(K[j]), (j, n))), matadd(e, HeadSum(K[j], (j, n)))


def singular(e: Any, y: Any = X) -> tuple[Any, Any, list[Any]]:
    """Return a claim that is true where a matrix is invertible, with a term on both sides."""
    return matadd(e, y), e, [(matmul(X, X, P), NONE)]


def entries(e: Any) -> tuple[Any, Any]:
    return e + Sum(relu(x)[j, 0], (j, 0, n - 1)), e + Sum(x[j, 0], (j, 0, n - 1))


SQUARE = S[j + 1] * S[j + 1] * P, NONE
PATHS = OrderSum(S[j + 1].I, (j, n), 2)
FALSE: dict[str, tuple[Any, ...]] = {
    "logarithms up to an index": beside(HeadSum(log(K[j]), (j, i + 1))),
    "logarithms in a product, up to an index": beside(HeadSum(log(K[j]) * K[j], (j, i))),
    "logarithms of entries before an index": entries(Sum(log(x)[j, 0], (j, 0, i - 1))),
    "logarithms of entries from 1": entries(Sum(log(x)[j, 0], (j, 1, n - 1))),
    "logarithms in paths of two layers": beside(OrderSum(log(K[j]), (j, n), 2)),
    "an inverse before an index": singular(HeadSum(X.I * K[j], (j, i)), X * P),
    "an inverse in an entry": singular(Sum(Trace(X.I) * x[j, 0], (j, 0, i - 1)) * P, X * P),
    "an inverse in paths of two layers": singular(OrderSum(X.I * K[j], (j, n), 2), X * P),
    "inverses of members in paths of two layers": (
        matadd(PATHS, HeadSum(S[j + 1] * P, (j, n))),
        PATHS,
        [SQUARE],
    ),
}
# A case of the index evaluates what it has at all values, or at none.
IN_CASES = {
    "logarithms up to an index",
    "logarithms in a product, up to an index",
    "an inverse before an index",
    "logarithms of entries before an index",
    "an inverse in an entry",
}

TRUE: dict[str, tuple[Any, ...]] = {
    "logarithms of exponentials up to an index": (
        HeadSum(log(Activation("exp", K[j])), (j, i + 1)),
        HeadSum(K[j], (j, i + 1)),
    ),
    "an inverse that the other side evaluates": (
        HeadSum(X.I * K[j], (j, i)),
        X.I * HeadSum(K[j], (j, i)),
    ),
    "an inverse up to an index": singular(HeadSum(X.I * K[j], (j, i + 1)), X * P),
    "a gauge of paths": (
        OrderSum(X.I * K[j] * X, (j, n), 2),
        X.I * OrderSum(K[j], (j, n), 2) * X,
    ),
    "logarithms in all layers": beside(LayerProduct(log(K[j]), (j, n))),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_not_evaluated_says_nothing(name: str) -> None:
    if "paths" in name and "members" not in name:
        with proof_alone():
            assert decide(*FALSE[name]).status == "undecided"
        return
    if name in IN_CASES:
        assert decide(*FALSE[name]).status == "refuted"
        return
    with pytest.raises(OtimesError, match="may have no value|not in the language"):
        decide(*FALSE[name])


@pytest.mark.parametrize("name", TRUE)
def test_what_is_evaluated_is_used(name: str) -> None:
    verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict.reason
    assert check(verdict.certificate)


@pytest.mark.parametrize("function", ["log", "sqrt", "reciprocal", "rsqrt"])
def test_a_lemma_says_nothing_of_where_it_is_defined(function: str) -> None:
    lemma = Activation(function, X), Activation(function, X)
    verdict = decide(relu(X), X, lemma=lemma)
    assert verdict.status != "proved"
    assert "presupposes that" in verdict.reason


def test_members_at_fixed_affine_indices_have_signs() -> None:
    """A member S[n] has a range without an index: its parts are no limits of a sum."""
    given = [(S[l + 1] * P, S[l])]
    verdict = decide(S[n] * P, S[n - 1] * Identity(d), given)
    assert verdict.status in ("proved", "undecided")
    with proof_alone():
        assert decide(S[n], S[0], given).status == "undecided"


def test_a_free_index_below_the_number_of_layers() -> None:
    """The claim for n layers is for an index below n, the step for one below n + 1."""
    V, T = Family("V", (n,), d, d), Family("T", (n + 1,), d, d)
    layers = LayerProduct(T[i], (j, n))
    verdict = decide(matmul(K[i], layers), matmul(V[0], layers), [(K[i], V[0])])
    assert verdict.status == "proved"
    assert check(verdict.certificate)


def test_a_lemma_may_have_members_at_affine_indices() -> None:
    verdict = decide(S[n], S[0], [(S[l + 1], S[l])], lemma=(S[1], S[0]))
    assert verdict.status == "proved"
    assert check(verdict.certificate)


def test_a_count_of_terms_that_may_be_none_is_named() -> None:
    """Σ_{j < i} c = c i holds for i ≥ 1, and i = 0 is not decided; a positive i needs no words."""
    c = sympy.Symbol("c")
    for count, words in ((i, "it presupposes i >= 1"), (n, None)):
        verdict = decide(Sum(c, (j, 1, count - 1)), c * (count - 1))
        assert verdict.status == "proved"
        assert words is None or verdict.reason.endswith(words)
        assert bool(verdict.presupposes) == bool(words)
