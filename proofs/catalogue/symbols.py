"""The symbols that statements are written in, named once.

Sizes: n positions (queries), m positions (keys), d the model, d_head a head, V the vocabulary, H
heads, L layers, d_mlp the neurons of a layer. A pattern `A` is queries × keys. Weights have one
name in both conventions and the shape of the convention: `row` acts on the right (`W_V` is
d × d_head), `column` on the left.
"""

from __future__ import annotations

from types import SimpleNamespace

import sympy
from sympy import MatrixSymbol

from otimes.algebra.language.linear import Family


def size(name: str) -> sympy.Symbol:
    """Return a size: a positive integer of which nothing else is known."""
    return sympy.Symbol(name, positive=True, integer=True)


n, m, p, q, r, s, d, d_head, V, H, L = map(
    size, ["n", "m", "p", "q", "r", "s", "d", "d_head", "V", "H", "L"]
)
h, l = sympy.symbols("h l", integer=True)  # noqa: E741 (a head and a layer, as in the papers)
d_mlp = size("d_mlp")
alpha, beta = sympy.symbols("alpha beta", real=True)

# One head. Its pattern is square; the stream that the layer reads has positions as rows.
A = MatrixSymbol("A", n, n)
X = MatrixSymbol("X", n, d)

row = SimpleNamespace(
    W_E=MatrixSymbol("W_E", V, d),
    W_U=MatrixSymbol("W_U", d, V),
    W_Q=MatrixSymbol("W_Q", d, d_head),
    W_K=MatrixSymbol("W_K", d, d_head),
    W_V=MatrixSymbol("W_V", d, d_head),
    W_O=MatrixSymbol("W_O", d_head, d),
)
column = SimpleNamespace(
    W_E=MatrixSymbol("W_E", d, V),
    W_U=MatrixSymbol("W_U", V, d),
    W_Q=MatrixSymbol("W_Q", d_head, d),
    W_K=MatrixSymbol("W_K", d_head, d),
    W_V=MatrixSymbol("W_V", d_head, d),
    W_O=MatrixSymbol("W_O", d, d_head),
)

# A head whose queries and keys are positions of two sequences, or of one: n queries, m keys.
any_head = SimpleNamespace(A=MatrixSymbol("A", n, m), X=MatrixSymbol("X", m, d))

# All heads of one layer, and all heads of all layers.
heads = SimpleNamespace(
    A=Family("A", (H,), n, n),
    Z=Family("Z", (H,), n, d_head),
    row=SimpleNamespace(
        W_V=Family("W_V", (H,), d, d_head),
        W_O=Family("W_O", (H,), d_head, d),
    ),
    column=SimpleNamespace(
        W_V=Family("W_V", (H,), d_head, d),
        W_O=Family("W_O", (H,), d, d_head),
    ),
)
layers = SimpleNamespace(
    A=Family("A", (L, H), n, n),
    column=SimpleNamespace(
        W_V=Family("W_V", (L, H), d_head, d),
        W_O=Family("W_O", (L, H), d, d_head),
    ),
    row=SimpleNamespace(
        W_V=Family("W_V", (L, H), d, d_head),
        W_O=Family("W_O", (L, H), d_head, d),
    ),
)
