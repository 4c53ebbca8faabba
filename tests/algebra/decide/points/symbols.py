"""The symbols of the claims of a referee, and short names for what they are written with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from sympy import BlockMatrix, Identity, MatrixSymbol, OneMatrix, ZeroMatrix

from otimes.algebra.language.linear import Family
from otimes.algebra.language.named_matrices import selection
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from tests.algebra.decide.shorthand import f, had


def table(rows: list[list[Any]]) -> Any:
    """Return blocks by their rows."""
    return BlockMatrix(rows)


def col(*parts: Any) -> Any:
    """Return blocks one below the other."""
    return BlockMatrix([[part] for part in parts])


def row(*parts: Any) -> Any:
    """Return blocks side by side."""
    return BlockMatrix([list(parts)])


def ones(*shape: Any) -> Any:
    """Return a matrix of ones."""
    return OneMatrix(*shape)


def zeros(*shape: Any) -> Any:
    """Return a matrix of zeros."""
    return ZeroMatrix(*shape)


def eye(size: Any) -> Any:
    """Return an identity."""
    return Identity(size)


class Claims:
    """Claims by name, true and false, each (left side, right side, hypotheses)."""

    def __init__(self) -> None:
        self.true: dict[str, tuple[Any, ...]] = {}
        self.false: dict[str, tuple[Any, ...]] = {}

    def pair(self, name: str, lhs: Any, right: Any, *wrong: Any, given: Sequence[Any] = ()) -> None:
        """State an equation, and what it is easily taken for."""
        self.holds(name, lhs, right, *given)
        for k, other in enumerate(wrong):
            self.fails(name + "'" * (k + 1), lhs, other, *given)

    def holds(self, name: str, lhs: Any, rhs: Any, *given: Any) -> None:
        """State what is true."""
        assert name not in self.true
        self.true[name] = (lhs, rhs, [*given])

    def fails(self, name: str, lhs: Any, rhs: Any, *given: Any) -> None:
        """State what is false."""
        assert name not in self.false
        self.false[name] = (lhs, rhs, [*given])


n, m, d, k, H = sympy.symbols("n m d k H", integer=True, positive=True)
i, j, h, g = sympy.symbols("i j h g", integer=True)
a, b = sympy.symbols("a b", real=True)
c, tau, eps = sympy.symbols("c tau epsilon", positive=True)

S11, S12, S21, S22 = (
    MatrixSymbol("S11", n, n),
    MatrixSymbol("S12", n, m),
    MatrixSymbol("S21", m, n),
    MatrixSymbol("S22", m, m),
)
SB = table([[S11, S12], [S21, S22]])
s0, s1 = selection((n, m), 0), selection((n, m), 1)
X1, X2, W, V = (
    MatrixSymbol("X1", n, d),
    MatrixSymbol("X2", m, d),
    MatrixSymbol("W", d, d),
    MatrixSymbol("V", d, d),
)
XX = col(X1, X2)
x0 = MatrixSymbol("x0", 1, d)
Xr = MatrixSymbol("Xr", n, d)
X01 = col(x0, Xr)
A, Bm, C, D = (MatrixSymbol(x, n, n) for x in "ABCD")
S, T = MatrixSymbol("S", n, m), MatrixSymbol("T", n, k)
V1, V2 = MatrixSymbol("V1", m, d), MatrixSymbol("V2", k, d)
w_, bb, xx = MatrixSymbol("w_", k, d), MatrixSymbol("b_", k, 1), MatrixSymbol("x", d, 1)
X, bias, W2 = MatrixSymbol("X", n, d), MatrixSymbol("bias", k, 1), MatrixSymbol("W2", d, k)
aff1 = table([[W, xx], [zeros(1, d), eye(1)]])
v_ = MatrixSymbol("v", d, 1)
aff2 = table([[V, v_], [zeros(1, d), eye(1)]])
AD, DD = MatrixSymbol("F", d, d), MatrixSymbol("E", d, d)
z, WO = Family("z", (H,), n, k), Family("W_O", (H,), k, d)
K1, K2 = MatrixSymbol("K1", m, d), MatrixSymbol("K2", k, d)
qq = MatrixSymbol("q", n, d)
sl = MatrixSymbol("s", 1, n)
slast = MatrixSymbol("e", 1, 1)
St = MatrixSymbol("S_", n, n)
sc_ = MatrixSymbol("u", n, 1)
Y = MatrixSymbol("Y", m, d)
Xk = MatrixSymbol("Z", n, k)
xd, yk = MatrixSymbol("xd", d, 1), MatrixSymbol("yk", k, 1)
Z1 = MatrixSymbol("Zf", n + m, d)
TT, T2 = MatrixSymbol("P", n, d), MatrixSymbol("P2", m, d)
masked = had(CausalMask(n + m), SB)
P = table([[zeros(1, d), eye(1)], [eye(d), zeros(d, 1)]])
Wd1 = MatrixSymbol("Wd1", d + 1, k)
nd = MatrixSymbol("Y2", n * d, k)
G = MatrixSymbol("G", n, d)
Bd, Cd = MatrixSymbol("Bd", d, k), MatrixSymbol("Cd", d, k)
On = zeros(n, n)
P_, Q_ = Family("P", (H,), d, d), Family("Q", (H,), d, d)
Ah = Family("A", (H,), n, n)
Wd, Rr = MatrixSymbol("Wd", d, k), MatrixSymbol("Rr", k, d)
Q1 = MatrixSymbol("Q1", d, d)
orth = [(Q1.T * Q1, eye(d))]
Gk = MatrixSymbol("Gk", d, n)
xn, yn = MatrixSymbol("x_", n, 1), MatrixSymbol("y_", n, 1)
pi1, pi2 = MatrixSymbol("A1", d, n), MatrixSymbol("A2", d, n)
Yk = MatrixSymbol("Yk", n, k)
hat = X * (X.T * X).I * X.T
E_, F_, K_ = MatrixSymbol("E", n, m), MatrixSymbol("F", n, m), MatrixSymbol("K", n, m)
ym = MatrixSymbol("ym", m, 1)
Tt = MatrixSymbol("T_", n, m)
rs1 = [(Tt * ones(m, 1), ones(n, 1))]
xv, tv = MatrixSymbol("xv", m, 1), MatrixSymbol("tv", m, 1)
pv = RowSoftmax(xv.T).T
PE = RowSoftmax(E_)
kl = had(PE, f("log", PE) - f("log", RowSoftmax(F_))) * ones(m, 1)
rr = f("rsqrt", xd.T * xd / d)
Xs, Us = MatrixSymbol("Xs", n, n), MatrixSymbol("Us", n, n)
Pm = MatrixSymbol("Pm", m, m)
Pn = MatrixSymbol("Pn", n, n)
Pd = MatrixSymbol("Pd", d, d)
th, ph = MatrixSymbol("theta", m, 1), MatrixSymbol("phi", m, 1)
qv, kv = MatrixSymbol("qv", 2 * m, 1), MatrixSymbol("kv", 2 * m, 1)
mu, M2 = MatrixSymbol("mu", d, 1), MatrixSymbol("M2", d, d)
gg = MatrixSymbol("gain", d, 1)
x1, y1 = MatrixSymbol("x1", n, 1), MatrixSymbol("y1", n, 1)
