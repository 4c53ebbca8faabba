"""What is large, deep or symmetric: an answer, or `undecided` with its reason, within the budget.

Never a wrong verdict, never an exception of Python's, never the machine's whole memory, and never
another answer because the machine is slow or busy: what a budget limits is work.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    Rational,
    Symbol,
    Trace,
    Transpose,
)

from otimes.algebra.budget import LEAST, STEPS, Budget
from otimes.algebra.decide import satisfy
from otimes.algebra.decide.matrix_families import permutation
from otimes.algebra.errors import LanguageError
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, kron, matadd, matmul
from otimes.algebra.verdict import Verdict, decide

n = Symbol("n", integer=True, positive=True)
a = Symbol("a")
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
U, V = MatrixSymbol("U", 2, 2), MatrixSymbol("V", 2, 2)
MOST_MEGABYTES = 400
EVERY = os.environ.get("OTIMES_LONG") == "1"
MANY = 100_000 if EVERY else 20_000
BUDGETS = [0, 0.5 if EVERY else 0.1]
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
    "sums in one another": lambda: (nested(around(MatAdd), MANY), matmul(MANY + 1, A)),
    "products in one another": lambda: (nested(around(MatMul), MANY), A),
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
    """Return the status, having checked the work, the memory, the reason and the counterexample."""
    before = megabytes()
    verdict = decide(*sides, budget=budget)
    assert verdict.work <= max(budget, LEAST) * STEPS, verdict
    assert "guard" not in verdict.reason
    assert megabytes() - before < MOST_MEGABYTES
    assert "\n" not in verdict.reason
    if verdict.status == "refuted":
        assert str(verdict.counterexample)
    return verdict.status


def with_budgets(table: dict[str, Any]) -> list[tuple[str, float]]:
    """Return each case with one of the budgets, which take turns, or with all of them."""
    if EVERY:
        return [(name, budget) for name in table for budget in BUDGETS]
    return [(name, BUDGETS[number % len(BUDGETS)]) for number, name in enumerate(table)]


@pytest.mark.parametrize(("name", "budget"), with_budgets(TRUE))
def test_what_is_true_is_proved_or_undecided(name: str, budget: float) -> None:
    assert answered(TRUE[name](), budget) in ("proved", "undecided")


@pytest.mark.parametrize(("name", "budget"), with_budgets(FALSE))
def test_what_is_false_is_refuted_or_undecided(name: str, budget: float) -> None:
    assert answered(FALSE[name](), budget) in ("refuted", "undecided")


SOON = ["60 Kronecker factors", "60 factors", "trace of a 40th power", "12-fold Hadamard power"]
SOON += ["complete graph", "Petersen", "200th power", "power of a sum", "201 free indices"]
SOON += ["a coefficient of 5,000 digits"]


@pytest.mark.parametrize("name", SOON)
def test_a_quarter_of_the_usual_budget_is_enough_for_most(name: str) -> None:
    assert answered(TRUE[name](), 5) == "proved"


def test_each_member_of_a_family_that_is_drawn_counts_as_work() -> None:
    with Budget(1) as budget:
        satisfy._members(permutation, (96, 2, 2), random.Random(0))
    assert budget.spent == 96 * (2 * satisfy.CANDIDATE + 2**3 // 4)  # rows, and products


def test_numbers_that_cannot_be_factored_are_named() -> None:
    product = Integer(10**30 + 57) * Integer(10**31 + 33)
    with pytest.raises(LanguageError, match="is not quickly factored"):
        decide(matmul(sympy.sqrt(product), A), A)
    with pytest.raises(LanguageError, match="the power 1000000000 of a number or a sum"):
        decide(matmul(Pow(1 + a, 10**9, evaluate=False), A), A)


# -- whatever the machine does --------------------------------------------------------------------

L = Symbol("L", integer=True, positive=True)
l = Symbol("l", integer=True)  # noqa: E741 (a layer)
LAYERS = Family("W", (L,), n, n)
TWENTY = Family("W", (20,), n, n)
CENTRED = matadd(Identity(768), matmul(Rational(-1, 767), OneMatrix(768, 768)))


def orders(reverse: bool) -> Sides:
    """Return two sums of 184,756 products each, equal where the second has the layers reversed."""
    turned = OrderSum(Transpose(TWENTY[l]), (l, 20), 10, reverse)
    return Transpose(OrderSum(TWENTY[l], (l, 20), 10)), turned


def layers(reverse: bool, count: int = 1000) -> Sides:
    many = Family("W", (count,), n, n)
    turned = LayerProduct(Transpose(many[l]), (l, count), reverse)
    return Transpose(LayerProduct(many[l], (l, count))), turned


def from_depth(depth: int) -> Sides:
    """Return two sides that are equal up to that depth, and differ from there on."""
    vanishing = Mul(*[L - k for k in range(1, depth)])
    product, turned = (LayerProduct(LAYERS[l], (l, L), reverse) for reverse in (False, True))
    return matmul(vanishing, product), matmul(vanishing, turned)


LONG: dict[str, tuple[Callable[[], Sides], str]] = {  # with what 2 units of work decide
    "paths of order 10 of 20": (lambda: orders(True), "proved"),
    "other paths of order 10 of 20": (lambda: orders(False), "refuted"),
    "1,000 layers": (lambda: layers(True), "proved"),
    "1,000 layers in another order": (lambda: layers(False), "refuted"),
    "3,000 layers": (lambda: layers(True, 3000), "proved"),
    "a square of width 768": (lambda: (MatPow(CENTRED, 2, evaluate=False), CENTRED), "refuted"),
    "false from 4 layers": (lambda: from_depth(4), "refuted"),
    "false from 5 layers": (lambda: from_depth(5), "refuted"),
    "false from 7 layers": (lambda: from_depth(7), "refuted"),
    "graphs": (FALSE["graphs alike in every count of walks"], "undecided"),
}


@pytest.mark.parametrize("name", LONG)
def test_what_takes_long_ends_with_the_budget(name: str) -> None:
    sides, status = LONG[name]
    assert answered(sides(), 1 if status == "undecided" and not EVERY else 2) == status


@contextmanager
def under_load() -> Iterator[None]:
    """Keep another thread busy meanwhile: each step takes twice as long, and is still one step."""
    done = threading.Event()

    def busy() -> None:
        while not done.is_set():
            sum(range(1000))

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def told(verdict: Verdict) -> tuple[str, str, int, str]:
    return verdict.status, verdict.reason, verdict.work, str(verdict.counterexample)


CLOCKS = ("thread_time", "process_time", "monotonic", "perf_counter", "time")
AGAIN = [*TRUE.values(), *FALSE.values(), *[sides for sides, _ in LONG.values()]]


@pytest.mark.parametrize("case", AGAIN[:: 1 if EVERY else 12])
def test_the_answer_does_not_depend_on_load_or_clock(
    case: Callable[[], Sides], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides, budget = case(), 0.2
    alone = told(decide(*sides, budget=budget))
    draw = random.Random(7)
    for clock in CLOCKS:  # which jumps to and fro, by less than the guard allows
        monkeypatch.setattr(time, clock, lambda: draw.uniform(0, 25))
    with under_load():
        assert told(decide(*sides, budget=budget)) == alone


SCRIPT = """
from tests.algebra.decide.test_hostile import FALSE, LONG, decide, from_depth, told
for sides in (from_depth(5), FALSE["complete graph"](), LONG["other paths of order 10 of 20"][0]()):
    print(told(decide(*sides, budget=0.5)))
"""


def test_the_answer_does_not_depend_on_the_hashes_of_the_process() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert "refuted" in said.pop()


def test_the_guard_says_that_it_struck(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(time, "thread_time", lambda: next(now))
    verdict = decide(*TRUE["2^30 words"](), budget=1)
    assert verdict.status == "undecided"
    assert verdict.reason.endswith(
        "the limit of 30 seconds was reached: the verdict depends on the machine"
    )


def test_a_counterexample_says_that_the_guard_struck(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = decide(*FALSE["201 free indices"]())
    assert verdict.status == "refuted"
    assert "guard" not in verdict.reason
    now = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(time, "thread_time", lambda: next(now))
    monkeypatch.setattr("otimes.algebra.budget.LOOK", 100)
    said = "# the limit of 150 seconds was reached: how small this is depends on the machine"
    assert str(verdict.counterexample).endswith(said)


def test_no_clock_of_the_processor_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for clock in CLOCKS[:2]:  # Pyodide has neither
        monkeypatch.delattr(time, clock)
    assert decide(*TRUE["60 factors"]()).status == "proved"
    assert decide(*FALSE["60 factors"]()).counterexample is not None
