"""The symbols of the examples that show the rules.

A, B, C, D and M are n × n, X is n × d, u and v are columns, w is a row, As and Bs are families
with an n × n matrix for each of H heads, Cs for each of
n positions; a, b, c, p and q are numbers.
"""

from __future__ import annotations

import sympy
from sympy import MatrixSymbol

from otimes.algebra.language.linear import Family

n, d, G, H = sympy.symbols("n d G H", integer=True, positive=True)
g, h, row, col, other = sympy.symbols("g h i j k", integer=True)
a, b, c, p, q = sympy.symbols("a b c p q", real=True)
positive = sympy.Symbol("c", positive=True)
A, B, C, D, M = (MatrixSymbol(name, n, n) for name in "ABCDM")
X, u, v = MatrixSymbol("X", n, d), MatrixSymbol("u", n, 1), MatrixSymbol("v", n, 1)
w, A2 = MatrixSymbol("w", 1, n), MatrixSymbol("A", 2, 2)
row_ab, row_pq = sympy.ImmutableDenseMatrix([[a, b]]), sympy.ImmutableDenseMatrix([[p, q]])
As, Bs, pair = (Family(name, (count,), n, n) for name, count in (("A", H), ("B", H), ("A", 2)))
Cs = Family("A", (n,), n, n)
Ags = Family("A", (G, H), n, n)
