"""Proving and refuting where NumPy cannot be imported, as in a browser, and floats that ask for it.

Each test runs a process of its own, in which NumPy, SciPy, opt_einsum and torch are not found.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "README.md"

BLOCKED = """
import sys, time

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "scipy", "opt_einsum", "torch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
del time.thread_time  # a browser has no such clock
"""

STATED = """
import otimes as ot
from sympy import *
from sympy import KroneckerProduct as kron
from otimes.algebra.language.linear import matadd, matmul
from sympy.matrices.expressions.diagonal import DiagMatrix

n, d, k, H, L = symbols("n d k H L", integer=True, positive=True)
h, l, i, j = symbols("h l i j", integer=True)
c = symbols("c")
A, B, P = (MatrixSymbol(name, n, n) for name in "ABP")
X, W_V, W_O = MatrixSymbol("X", n, d), MatrixSymbol("W_V", k, d), MatrixSymbol("W_O", d, k)
W, b, one = MatrixSymbol("W", d, d), MatrixSymbol("b", 1, d), OneMatrix(n, 1)
F, G, V = ot.Family("F", (H,), n, n), ot.Family("G", (L,), n, n), ot.Family("V", (H,), d, k)
O = ot.Family("O", (H,), k, d)
U, S, T = (MatrixSymbol(name, 2, 2) for name in "UST")
pattern = ot.RowSoftmax(X * W * X.T, ot.CausalMask(n))

CLAIMS = {
    "three steps of a head": (
        kron(Identity(n), W_O) * kron(A, Identity(k)) * kron(Identity(n), W_V), kron(A, W_O * W_V)
    ),
    "a transpose too many": (kron(A, W_O * W_V), kron(A.T, W_O * W_V)),
    "a commutator": (A * B, B * A),
    "heads side by side": (
        ot.ConcatHeads(F[h] * X * V[h], (h, H)) * ot.StackHeads(O[h], (h, H)),
        ot.HeadSum(F[h] * X * V[h] * O[h], (h, H)),
    ),
    "a head counted twice": (ot.HeadSum(F[h], (h, H)), matmul(2, ot.HeadSum(F[h], (h, H)))),
    "rows that sum to one": (P * (X + one * b), P * X + one * b, [(P * one, one)]),
    "rows that sum to anything": (P * (X + one * b), P * X + one * b),
    "a projection": (P**3, P, [(P * P, P)]),
    "a projection is no identity": (P, Identity(n), [(P * P, P)]),
    "an orthogonal matrix": (P.T, P.inverse(), [(P.T * P, Identity(n))]),
    "projections need not commute": (A * P, P * A, [(P * P, P), (A * A, A), (A.T, A)]),
    "an inverse": ((A * B).inverse(), B.inverse() * A.inverse()),
    "an inverse in the wrong order": ((A * B).inverse(), A.inverse() * B.inverse()),
    "a hypothesis on scalars": (c * A, A, [(c, Integer(1))]),
    "a trace": (Trace(A * B), Trace(A) * Trace(B)),
    "a root": (A / sqrt(d), A / d),
    "a softmax": (pattern * (X + one * b), pattern * X + one * b),
    "scores transposed": (pattern, ot.RowSoftmax(X * W.T * X.T, ot.CausalMask(n))),
    "a norm": (ot.RMSNorm(X), ot.LayerNorm(X)),
    "an activation": (ot.Activation("gelu", A + B), ot.Activation("gelu", B + A)),
    "an activation is not linear": (ot.Activation("relu", A + B),
        ot.Activation("relu", A) + ot.Activation("relu", B)),
    "any function": (ot.Activation("g", A.T), ot.Activation("g", A)),
    "every depth": (
        ot.LayerProduct(G[l], (l, L)).T, ot.LayerProduct(G[l].T, (l, L), reverse=True)
    ),
    "layers in the wrong order": (
        ot.LayerProduct(G[l], (l, L)).T, ot.LayerProduct(G[l].T, (l, L))
    ),
    "order two": (ot.OrderSum(G[l], (l, L), 2), ot.OrderSum(G[l], (l, L), 2, reverse=True)),
    "Cayley and Hamilton": (
        S * S, matadd(matmul(Trace(S), S), matmul((Trace(S * S) - Trace(S) ** 2) / 2, Identity(2)))
    ),
    "not at another size": (
        A * A, matadd(matmul(Trace(A), A), matmul((Trace(A * A) - Trace(A) ** 2) / 2, Identity(n)))
    ),
    "two sizes, two hypotheses": (S * T, T * S, [(S, matmul(2, U)), (T, matmul(3, U))]),
    "blocks": (
        BlockMatrix([[A, B]]) * BlockMatrix([[P], [P]]), matmul(matadd(A, B), P)
    ),
    "blocks on a diagonal": (BlockDiagMatrix(A, B), BlockDiagMatrix(B, A)),
    "an explicit matrix": (Matrix([[1, 2], [0, 1]]) * S, S),
    "entries": (Sum(A[i, j] * B[j, i], (i, 0, n - 1), (j, 0, n - 1)), Trace(A * B)),
    "a diagonal": (DiagMatrix(X * b.T), HadamardProduct(Identity(n), X * b.T * one.T)),
    "one-hot": (ot.OneHot(i, n).T * A * ot.OneHot(j, n), ot.OneHot(j, n).T * A * ot.OneHot(i, n)),
    "vectors of rows": (ot.vec_rows(A * X * W), kron(A, W.T) * ot.vec_rows(X)),
    "vectors of columns": (ot.vec_cols(A * X * W), kron(A, W.T) * ot.vec_rows(X)),
}
"""

VERDICTS = """
for name, (lhs, rhs, *given) in CLAIMS.items():
    verdict = ot.decide(lhs, rhs, *given)
    print(name, verdict.status, verdict.reason, verdict.counterexample, sep=" | ")
    print(verdict.steps)
    print(verdict.certificate)
    print(verdict.used)
"""

SUITE = """
from otimes.algebra.verdict import decide
from tests.algebra.decide.suite import SUITE
for identity in SUITE[::24]:
    verdict = decide(identity.lhs, identity.rhs, identity.given)
    print(identity.name, verdict.status, verdict.reason, verdict.counterexample, sep=" | ")
"""


def printed(*code: str) -> str:
    """Return what a program prints in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, env=environment
    )
    assert not run.returncode, run.stderr
    return run.stdout


@pytest.mark.parametrize("claims", [STATED + VERDICTS, SUITE], ids=["a spread", "the suite"])
def test_verdicts_proofs_and_counterexamples_are_the_same(claims: str) -> None:
    without = printed(BLOCKED, claims)
    assert without == printed(claims)
    assert without.count("| proved |") >= 10
    assert without.count("| refuted |") >= 10
    assert "| undecided |" not in without


def test_a_counterexample_is_printed_and_its_arrays_can_be_read() -> None:
    code = """
found = ot.decide(A * B, B * A).counterexample
print(found)
for name, array in found.arrays.items():
    print(type(array).__name__, name, array.shape, array.tolist(), array[1, 0])
try:
    ot.prove(A * B, B * A)
except ot.Refuted as refuted:
    print(refuted)
print([module for module in ("numpy", "scipy", "opt_einsum", "torch") if module in sys.modules])
"""
    shown = """\
n = 2
A = np.array([[0, 0], [0, 1]])
B = np.array([[0, 0], [1, 0]])
# left side 1, right side 0 at row 1, column 0
"""
    expected = f"""\
{shown}\
ExactArray A (2, 2) [[0, 0], [0, 1]] 0
ExactArray B (2, 2) [[0, 0], [1, 0]] 1
false:
{shown}\
it holds if A is diagonal and B is diagonal, or if A commutes with B, \
or if A times B is the identity, or if B times A is the identity
[]
"""
    assert printed(BLOCKED, STATED, code) == expected


def test_the_first_example_of_the_readme_needs_numpy_for_its_floats_only() -> None:
    first = README.read_text(encoding="utf-8").split("```python\n")[1]
    example, after = first.split("```", 1)
    asked = example.replace("import numpy as np\n", "").partition("arrays = ")[0]
    assert "np." not in asked
    shown = after.split("```")[1].strip().splitlines()
    assert printed(BLOCKED, asked).splitlines() == shown[:-1]  # the last is a shape of floats


def test_what_else_is_said_of_an_expression() -> None:
    """Normal forms, paths, facts and pictures are the same, 60 wires and their letters included."""
    code = """
form = ot.normal_form(kron(A, W_O * W_V) + kron(B, W))
print(form.einsum(), form.latex(), form._repr_svg_())
print(ot.normal_form(kron(*[MatrixSymbol(f"A{q}", n, n) for q in range(30)])).einsum())
layers = ot.Family("layers", (12,), n, n)
paths = ot.expand_paths(ot.LayerProduct(Identity(n) + layers[l], (l, 12)))
print(paths.count, next(paths.order(2)).latex())
print(ot.facts(A * A.T))
"""
    assert printed(BLOCKED, STATED, code) == printed(STATED, code)


def test_integers_are_evaluated() -> None:
    code = """
X_, A_ = [[1], [2]], [[2, 0], [1, 3]]
print(ot.evaluate(A * X, {"A": A_, X: X_}))
print(ot.evaluate(A.inverse() * X / d, {"A": A_, "X": X_}))
print(ot.evaluate(Trace(A) * c, {"A": A_, "c": 3}), ot.evaluate(n * c, {"n": 2, "c": 5}))
print(ot.evaluate(F[h] * X, {"F": [A_, [[0, 1], [1, 0]]], "X": X_, "h": 1}))
print(ot.evaluate(ot.RowSoftmax(A), {"A": [[1, 0], [2, 2]]}))
exact = ot.evaluate(A * A, {"A": A_})
print(ot.evaluate(A * X, {"A": exact, "X": X_}))
def refused(expression, arrays):
    try:
        ot.evaluate(expression, arrays)
    except ot.OtimesError as error:
        print(type(error).__name__, error)
refused(A * X, {"A": A_, "X": [[0.5], [1]]})
refused(A * c, {"A": A_, "c": 0.5})
refused(A * X, {"A": [[1, 2], [3]], "X": X_})
refused(A * X, {"A": A_, "X": [[1, 2, 3]]})
refused(F[h] * X, {"F": [A_], "X": X_})
"""
    expected = [
        "ExactArray([[2], [7]])",
        "ExactArray([[Fraction(1, 2)], [Fraction(1, 2)]])",
        "15 10",
        "ExactArray([[2], [1]])",
        "ExactArray([[0.73105857863, 0.26894142137], [Fraction(1, 2), Fraction(1, 2)]])",
        "ExactArray([[4], [23]])",
        "OtimesError an exact array holds integers and Fractions, and 0.5 was given",
        "OtimesError floating-point arrays need NumPy, which cannot be imported here",
        "OtimesError the nested lists of an array have different lengths",
        "ShapeError the size n is 2 in one array and 1 in another (X (1, 3))",
        "OtimesError the expression has a free index h: give its value, as in {'h': 0}",
    ]
    lines = printed(BLOCKED, STATED, code).splitlines()
    assert [line[: len(start)] for line, start in zip(lines, expected, strict=True)] == expected


def test_deciding_loads_nothing_that_counts_in_floats() -> None:
    code = """
import sys
from otimes.algebra.verdict import decide
from otimes.algebra.normal_form import normal_form
from otimes.algebra.paths.ensemble import expand_paths
from otimes.algebra.evaluate.arrays import evaluate
from sympy import MatrixSymbol, Symbol
n = Symbol("n")
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
print(decide((A * B).T, B.T * A.T).certificate is not None, decide(A * B, B * A).status)
print([name for name in ("numpy", "scipy", "opt_einsum", "torch") if name in sys.modules])
"""
    assert printed(code) == "True refuted\n[]\n"
