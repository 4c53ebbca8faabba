"""What is large, deep or symmetric: an answer, or `undecided` with its reason, within the budget.

Never a wrong verdict, never an exception of Python's, never the machine's whole memory. The budget
is kept up to the time that one step of the work takes, for which SLACK_SECONDS stand.
"""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
import sympy
from sympy import (
    Add,
    Basic,
    HadamardPower,
    HadamardProduct,
    Identity,
    Integer,
    MatAdd,
    MatMul,
    MatPow,
    MatrixSymbol,
    Mul,
    OneMatrix,
    Pow,
    Symbol,
    Trace,
    Transpose,
)

from algebra.decide import decide
from algebra.errors import LanguageError
from algebra.language import LayerProduct, kron, matadd, matmul

n = Symbol("n", integer=True, positive=True)
a = Symbol("a")
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
U, V = MatrixSymbol("U", 2, 2), MatrixSymbol("V", 2, 2)
SLACK_SECONDS = 3.0
MOST_MEGABYTES = 400
MANY = 100_000
HUGE = Integer(10) ** 5000

Edges = list[tuple[int, int]]


def nested(wrap: Callable[[Any], Any], levels: int) -> Any:
    """Return A within so many levels, built past SymPy's checks, which follow every level."""
    e: Any = A
    for _ in range(levels):
        e = wrap(e)
    return e


def around(kind: type) -> Callable[[Any], Any]:
    return lambda e: Basic.__new__(kind, e, A)


def counted(edges: Edges) -> Any:
    """Return the number of homomorphisms of an undirected graph, with A for its edges."""
    index = {v: Symbol(f"i{v}", integer=True) for edge in edges for v in edge}
    both = [A[index[p], index[q]] for p, q in edges] + [A[index[q], index[p]] for p, q in edges]
    return sympy.Sum(Mul(*both, evaluate=False), *[(i, 0, n - 1) for i in index.values()])


def shuffled(edges: Edges) -> Edges:
    draw = random.Random(1)
    names = sorted({v for edge in edges for v in edge})
    new = dict(zip(names, draw.sample(names, len(names)), strict=True))
    return draw.sample([(new[p], new[q]) for p, q in edges], len(edges))


def rook(size: int) -> Edges:
    squares = [(i, j) for i in range(size) for j in range(size)]
    pairs = combinations(squares, 2)
    return [
        (p[0] * size + p[1], q[0] * size + q[1])
        for p, q in pairs
        if (p[0] == q[0]) != (p[1] == q[1])
    ]


CYCLE = [(k, (k + 1) % 40) for k in range(40)]
PETERSEN = [(k, (k + 1) % 5) for k in range(5)] + [(k, k + 5) for k in range(5)]
PETERSEN += [(k + 5, (k + 2) % 5 + 5) for k in range(5)]
COMPLETE = list(combinations(range(8), 2))
SHRIKHANDE = [
    (4 * i + j, 4 * ((i + s) % 4) + (j + t) % 4)
    for i in range(4)
    for j in range(4)
    for s, t in ((0, 1), (1, 0), (1, 1))
]  # as regular as the 4 × 4 rook graph, and another graph


def chain(turned: bool) -> Any:
    """Return a product of entries with 201 free indices."""
    i = [Symbol(f"i{k}", integer=True) for k in range(201)]
    entries = [A[i[k + 1], i[k]] if turned else A[i[k], i[k + 1]] for k in range(200)]
    return Mul(*entries, evaluate=False)


Sides = tuple[Any, Any]
POWER, OTHER = matadd(A, B), matadd(B, A)
TRUE: dict[str, Callable[[], Sides]] = {
    "flat sum": lambda: (MatAdd(*[A] * MANY, evaluate=False), matmul(MANY, A)),
    "flat product": lambda: (matmul(*[A] * 5000), MatPow(A, 5000, evaluate=False)),
    "flat sum of traces": lambda: (
        Add(*[Trace(A)] * MANY, evaluate=False),
        Mul(MANY, Trace(A), evaluate=False),
    ),
    "5,000 transposes": lambda: (nested(Transpose, 5000), A),
    "100,000 sums in one another": lambda: (nested(around(MatAdd), MANY), matmul(MANY + 1, A)),
    "100,000 products in one another": lambda: (nested(around(MatMul), MANY), A),
    "60 Kronecker factors": lambda: (
        matmul(kron(*[A] * 60), kron(*[B] * 60)),
        kron(*[matmul(A, B)] * 60),
    ),
    "60 factors": lambda: (matmul(*[A] * 60), MatPow(A, 60, evaluate=False)),
    "trace of a 40th power": lambda: (
        Trace(MatPow(A, 40, evaluate=False)),
        Trace(matmul(*[Transpose(A)] * 40)),
    ),
    "12-fold Hadamard power": lambda: (
        HadamardPower(A, 12),
        HadamardProduct(*[A] * 12, evaluate=False),
    ),
    "complete graph": lambda: (counted(COMPLETE), counted(shuffled(COMPLETE))),
    "cycle": lambda: (counted(CYCLE), counted(shuffled(CYCLE))),
    "cycle times ones": lambda: (
        matmul(counted(CYCLE), OneMatrix(n, n)),
        matmul(OneMatrix(n, 1), counted(shuffled(CYCLE)), OneMatrix(1, n)),
    ),
    "Petersen": lambda: (counted(PETERSEN), counted(shuffled(PETERSEN))),
    "Shrikhande": lambda: (counted(SHRIKHANDE), counted(shuffled(SHRIKHANDE))),
    "5 × 5 rook": lambda: (counted(rook(5)), counted(shuffled(rook(5)))),
    "200th power": lambda: (
        MatPow(A, 200, evaluate=False),
        matmul(*[MatPow(A, 100, evaluate=False)] * 2),
    ),
    "power of a sum": lambda: (
        MatPow(matadd(Identity(n), A), 30, evaluate=False),
        matmul(*[MatPow(matadd(A, Identity(n)), 15, evaluate=False)] * 2),
    ),
    "2^30 words": lambda: (
        MatPow(POWER, 30, evaluate=False),
        MatPow(OTHER, 30, evaluate=False),
    ),
    "2^30 Kronecker products": lambda: (kron(*[POWER] * 30), kron(*[OTHER] * 30)),
    "a coefficient of 5,000 digits": lambda: (matadd(matmul(HUGE, A), A), matmul(HUGE + 1, A)),
    "201 free indices": lambda: (chain(False), chain(False)),
    "explicit": lambda: (
        matmul(*[sympy.ImmutableMatrix(20, 20, lambda i, j: i + j)] * 2),
        sympy.ImmutableMatrix(20, 20, lambda i, j: sum((i + k) * (k + j) for k in range(20))),
    ),
}
FALSE: dict[str, Callable[[], Sides]] = {
    "flat sum": lambda: (MatAdd(*[A] * MANY, evaluate=False), matmul(MANY - 1, A)),
    "flat product": lambda: (matmul(*[A] * 5000), matmul(*[A] * 4999)),
    "60 Kronecker factors": lambda: (kron(*[A] * 60), kron(*[A] * 59, B)),
    "60 Kronecker factors of size 2": lambda: (kron(*[U] * 60), kron(*[U] * 59, V)),
    "60 factors": lambda: (matmul(*[A] * 30, B, *[A] * 30), matmul(*[A] * 31, B, *[A] * 29)),
    "complete graph": lambda: (counted(COMPLETE), counted(COMPLETE[1:])),
    "graphs alike in every count of walks": lambda: (counted(SHRIKHANDE), counted(rook(4))),
    "200th power": lambda: (MatPow(A, 200, evaluate=False), MatPow(A, 199, evaluate=False)),
    "millionth power": lambda: (MatPow(A, 10**6, evaluate=False), A),
    "millionth Hadamard power": lambda: (HadamardPower(A, 10**6), A),
    "a million layers": lambda: (LayerProduct(A, (Symbol("l"), 10**6)), A),
    "huge power of a trace": lambda: (Pow(Trace(A), 10**6, evaluate=False), Trace(A)),
    "huge power of a scalar": lambda: (matmul(Pow(a, 10**9, evaluate=False), A), A),
    "300th power of a sum of scalars": lambda: (matmul(Pow(1 + a, 300), A), A),
    "2^30 words": lambda: (
        MatPow(POWER, 30, evaluate=False),
        MatPow(matadd(A, matmul(2, B)), 30, evaluate=False),
    ),
    "a coefficient of 5,000 digits": lambda: (matmul(HUGE, A), matmul(HUGE + 1, A)),
    "201 free indices": lambda: (chain(False), chain(True)),
    "1000 × 1000": lambda: (MatrixSymbol("Y", 1000, 1000), MatrixSymbol("Z", 1000, 1000)),
    "entry 10^9": lambda: (MatrixSymbol("x", n, 1)[10**9, 0], Integer(0)),
}


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def answered(sides: Sides, budget: float) -> str:
    """Return the status, having checked the time, the memory, the reason and the counterexample."""
    before, start = megabytes(), time.process_time()
    verdict = decide(*sides, budget=budget)
    assert time.process_time() - start < budget + SLACK_SECONDS, verdict
    assert megabytes() - before < MOST_MEGABYTES
    assert "\n" not in verdict.reason
    if verdict.status == "refuted":
        assert str(verdict.counterexample)
    return verdict.status


@pytest.mark.parametrize("budget", [0, 0.5])
@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_is_proved_or_undecided(name: str, budget: float) -> None:
    assert answered(TRUE[name](), budget) in ("proved", "undecided")


@pytest.mark.parametrize("budget", [0, 0.5])
@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_is_refuted_or_undecided(name: str, budget: float) -> None:
    assert answered(FALSE[name](), budget) in ("refuted", "undecided")


SOON = ["60 Kronecker factors", "60 factors", "trace of a 40th power", "12-fold Hadamard power"]
SOON += ["complete graph", "Petersen", "200th power", "power of a sum", "201 free indices"]
SOON += ["a coefficient of 5,000 digits"]


@pytest.mark.parametrize("name", SOON)
def test_five_seconds_are_enough_for_most(name: str) -> None:
    assert answered(TRUE[name](), 5) == "proved"


def test_numbers_that_cannot_be_factored_are_named() -> None:
    product = Integer(10**30 + 57) * Integer(10**31 + 33)
    with pytest.raises(LanguageError, match="is not quickly factored"):
        decide(matmul(sympy.sqrt(product), A), A)
    with pytest.raises(LanguageError, match="the power 1000000000 of a number or a sum"):
        decide(matmul(Pow(1 + a, 10**9, evaluate=False), A), A)
