"""The symbols that the suite is written in, and constructors that do not evaluate.

Operators (`A * B`, `A.T`) evaluate as SymPy does; `mul`, `add`, `kron`, `had` and `tr` only state.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy import Basic, HadamardProduct, Identity, MatAdd, MatMul, MatrixSymbol, Symbol
from sympy import KroneckerProduct as Kron
from sympy import OneMatrix as Ones
from sympy import Trace as tr  # noqa: N813 (as it is written on paper)
from sympy import Transpose as t  # noqa: N813
from sympy import ZeroMatrix as Zero

__all__ = ["Kron", "Ones", "Zero", "t", "tr"]


def mul(*factors: Any) -> Any:
    return MatMul(*factors, evaluate=False)


def add(*terms: Any) -> Any:
    return MatAdd(*terms, evaluate=False)


def minus(left: Any, right: Any) -> Any:
    return MatAdd(left, MatMul(-1, right, evaluate=False), evaluate=False)


def kron(*factors: Any) -> Any:
    return Basic.__new__(Kron, *factors)


def had(*factors: Any) -> Any:
    return HadamardProduct(*factors, evaluate=False)


def commutator(left: Any, right: Any) -> Any:
    return left * right - right * left


n, m, p, q, d, k, H, L, e = (
    Symbol(name, positive=True, integer=True)
    for name in ["n", "m", "p", "q", "d", "k", "H", "L", "e"]
)
a, b, c = sympy.symbols("a b c")
i, j, l, u, v_, h = sympy.symbols("i j l u v h", integer=True)  # noqa: E741 (indices have one letter)

A, B, C, D = (MatrixSymbol(name, n, n) for name in "ABCD")
E, F, G = (MatrixSymbol(name, m, m) for name in "EFG")
W, V, U = (MatrixSymbol(name, d, d) for name in "WVU")
P, P2, Q, R = (
    MatrixSymbol("P", n, m),
    MatrixSymbol("P2", n, m),
    MatrixSymbol("Q", m, p),
    MatrixSymbol("R", p, q),
)
Y = MatrixSymbol("Y", m, n)
X = MatrixSymbol("X", n, d)
x, y, z = (MatrixSymbol(name, n, 1) for name in "xyz")
s, w = MatrixSymbol("s", d, 1), MatrixSymbol("w", d, 1)
r = MatrixSymbol("r", m, 1)
I_n, I_m, I_d, I_k = (Identity(size) for size in (n, m, d, k))
one, one_m, one_d = Ones(n, 1), Ones(m, 1), Ones(d, 1)
