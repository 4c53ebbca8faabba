"""Powers of a matrix whose exponent is an index: geometric sums."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import Identity, MatPow, MatrixSymbol

import otimes as ot
from otimes.algebra.errors import LanguageError
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import rejected

n, m, p, r = sympy.symbols("n m p r", integer=True, positive=True)
i, j, k, s = sympy.symbols("i j k s", integer=True)
A, one = MatrixSymbol("A", n, n), Identity(n)
Q, K = (ot.Family(name, (m,), n, 1) for name in "QK")


def power(exponent: Any) -> Any:
    return MatPow(A, exponent)


def total(body: Any, count: Any = m) -> Any:
    return ot.HeadSum(body, (k, count))


B, X = MatrixSymbol("B", n, n), MatrixSymbol("X", n, p)
TRUE = {
    "of one matrix": (total(power(k) * X), total(power(k)) * X),
    "transposed": (total(power(k)).T, total(MatPow(A.T, k))),
    "what commutes with A": (total(power(k)) * B, B * total(power(k)), [(A * B, B * A)]),
    "in another basis": (total(MatPow(B * A * B.I, k)), B * total(power(k)) * B.I),
    "geometric": ((one - A) * total(power(k)), one - power(m)),
    "on the right": (total(power(k)) * (one - A), one - power(m)),
    "from one": ((one - A) * total(power(k + 1)), A - power(m + 1)),
    "even": ((one - A * A) * total(power(2 * k)), one - power(2 * m)),
    "shifted rotations": (
        MatPow(A.T, m + r) * power(m + p),
        MatPow(A.T, r) * power(p),
        [(A.T * A, one)],
    ),
    "rotations of a key and a query": (
        (power(i + s) * Q[i]).T * power(j + s) * K[j],
        (power(i) * Q[i]).T * power(j) * K[j],
        [(A.T * A, one)],
    ),
    "a rotation between others": (
        MatPow(A.T, i) * MatPow(A.T, m) * power(m) * power(j),
        MatPow(A.T, i) * power(j),
        [(A.T * A, one)],
    ),
    "one rotation undone": (Q[i].T * power(i).T * power(i) * K[i], Q[i].T * K[i], [(A.T * A, one)]),
    "a power of a power": (MatPow(power(m), p), MatPow(power(p), m)),
    "a power of a square": (total(MatPow(power(2), k)) * (one - A * A), one - power(2 * m)),
    "the same at two indices": (
        Q[i].T * power(i) * power(j) * K[j],
        Q[i].T * power(j) * power(i) * K[j],
    ),
}
FALSE = {
    "one too many": ((one - A) * total(power(k), m + 1), one - power(m)),
    "from one to less": ((one - A) * total(power(k + 1)), A - power(m)),
    "shifted": (total(power(k)), total(power(k + 1))),
    "all even": ((one - A) * total(power(2 * k)), one - power(2 * m)),
}
ROTATED = {
    "of the query alone": (
        (power(i + s) * Q[i]).T * power(j) * K[j],
        (power(i) * Q[i]).T * power(j) * K[j],
        [(A.T * A, one)],
    ),
    "without rotations": (
        (power(i + s) * Q[i]).T * power(j + s) * K[j],
        (power(i) * Q[i]).T * power(j) * K[j],
    ),
    "of one at another index": (Q[i].T * power(i) * K[j], Q[i].T * power(j) * K[j]),
}


@pytest.mark.parametrize("claim", TRUE.values(), ids=TRUE)
def test_it_is_proved_with_a_certificate(claim: Any) -> None:
    verdict = decide(*claim)
    assert verdict.status == "proved"
    assert rejected(verdict) is None


@pytest.mark.parametrize("claim", FALSE.values(), ids=FALSE)
def test_a_near_miss_is_refuted_at_its_numbers(claim: Any) -> None:
    """Both sides of a 1 × 1 counterexample are computed here."""
    verdict = decide(*claim)
    assert verdict.status == "refuted"
    found = verdict.counterexample
    assert found is not None
    sizes = {"n": 1} | {size.name: number for size, number in found.sizes.items()}
    assert sizes["n"] == 1
    a, stop = int(found.arrays["A"][0][0]), sizes["m"]
    sums = {
        "one too many": ((1 - a) * sum(a**i for i in range(stop + 1)), 1 - a**stop),
        "from one to less": ((1 - a) * sum(a ** (i + 1) for i in range(stop)), a - a**stop),
        "a power of a power": (a ** (stop * sizes.get("p", 1)), a ** (stop + sizes.get("p", 1))),
        "shifted": (sum(a**i for i in range(stop)), sum(a ** (i + 1) for i in range(stop))),
        "all even": ((1 - a) * sum(a ** (2 * i) for i in range(stop)), 1 - a ** (2 * stop)),
    }
    name = next(name for name, other in FALSE.items() if other == claim)
    assert sums[name][0] != sums[name][1]
    assert (found.lhs, found.rhs) == sums[name]


def test_sums_of_other_matrices_are_others() -> None:
    assert decide(total(power(k)), total(MatPow(A.T, k))).status == "refuted"
    assert decide(total(power(k)) * B, B * total(power(k))).status == "refuted"


def test_a_negative_index_is_refused() -> None:
    with pytest.raises(LanguageError, match="sizes and of indices"):
        decide(total(power(-k)), total(power(k)))


@pytest.mark.parametrize("claim", ROTATED.values(), ids=ROTATED)
def test_a_wrong_rotation_is_refuted(claim: Any) -> None:
    verdict = decide(*claim)
    assert verdict.status == "refuted"
    found = verdict.counterexample
    assert found is not None
    a, at = int(found.arrays["A"][0][0]), {x.name: v for x, v in found.indices.items()}
    at |= {size.name: number for size, number in found.sizes.items()}
    ends = int(found.arrays["Q"][at["i"]][0][0]) * int(found.arrays["K"][at["j"]][0][0])
    i, j, s = at["i"], at["j"], at.get("s", 0)
    powers = (i, j) if claim == ROTATED["of one at another index"] else (i + s + j, i + j)
    powers = (i + j + 2 * s, i + j) if claim == ROTATED["without rotations"] else powers
    assert at["n"] == 1
    assert (found.lhs, found.rhs) == tuple(ends * a**power for power in powers)
    assert found.lhs != found.rhs
