"""Why each attribution is right: an equation, proved for all sizes, and a slip, refuted."""

import pytest
from sympy import (
    Expr,
    Identity,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Trace,
    symbols,
)  # fmt: skip

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, OneHot
from otimes.algebra.verdict import decide

n, d, k, v, m = symbols("n d d_head d_vocab d_mlp", integer=True, positive=True)
H, L = symbols("H L", integer=True, positive=True)
h, g, i, j, u, w, o = symbols("h g i j u w o", integer=True)
layer = symbols("l", integer=True)
X, Y, G = (MatrixSymbol(name, n, d) for name in "XYG")
S, P = MatrixSymbol("S", n, n), MatrixSymbol("P", n, n)
C, Q = MatrixSymbol("C", d, d), MatrixSymbol("Q", d, d)
W_U, b, shift = MatrixSymbol("W_U", d, v), MatrixSymbol("b", 1, d), MatrixSymbol("b_U", 1, v)
W_V, W_O, M = MatrixSymbol("W_V", d, k), MatrixSymbol("W_O", k, d), MatrixSymbol("M", k, k)
N, W_out, r = MatrixSymbol("N", n, m), MatrixSymbol("W_out", m, d), MatrixSymbol("r", d, 1)
x, y, c, noise = (MatrixSymbol(name, d, 1) for name in ("x", "y", "c", "ε"))
a, W, s = MatrixSymbol("a", m, 1), MatrixSymbol("W", m, d), MatrixSymbol("s", d, 1)
A, V, O = Family("A", (H,), n, n), Family("V", (H,), d, k), Family("O", (H,), k, d)  # noqa: E741
A1, A2 = Family("A1", (H,), n, n), Family("A2", (H,), n, n)
B = Family("B", (L,), n, n)
one, I, half = OneMatrix(n, 1), Identity(n), Rational(1, 2)  # noqa: E741


def at(index: Expr, size: Expr) -> MatrixExpr:
    """Return $e_i e_i^T$, which keeps one entry."""
    return OneHot(index, size) * OneHot(index, size).T


def heads(rows: MatrixExpr = I) -> MatrixExpr:
    return HeadSum(A[h] * rows * Y * V[h] * O[h], (h, H))


def logits(stream: MatrixExpr, scale: MatrixExpr = S) -> MatrixExpr:
    """Return a stream through the frozen final norm, scale S and C = centring and gain, and W_U."""
    return scale * stream * C * W_U


after = one * b * W_U + one * shift
STATEMENTS = {
    "the final scale is one for all parts": (
        logits(X + heads() + G) + after,
        logits(X) + HeadSum(logits(A[h] * Y * V[h] * O[h]), (h, H)) + logits(G) + after,
        logits(X, P) + HeadSum(logits(A[h] * Y * V[h] * O[h]), (h, H)) + logits(G) + after,
    ),
    "a head is a sum over its sources": (
        P * Y * W_V * W_O * r,
        HeadSum(P * at(j, n) * Y * W_V * W_O * r, (j, n)),
        HeadSum(at(j, n) * P * at(j, n) * Y * W_V * W_O * r, (j, n)),
    ),
    "an MLP is a sum over its neurons": (
        N * W_out * r,
        HeadSum(N * at(u, m) * W_out * r, (u, m)),
        m * HeadSum(N * at(u, m) * W_out * r, (u, m)),
    ),
    "a contrast is a difference": (
        X * (W_U * OneHot(w, v) - W_U * OneHot(o, v)),
        X * W_U * OneHot(w, v) - X * W_U * OneHot(o, v),
        X * W_U * OneHot(o, v) - X * W_U * OneHot(w, v),
    ),
    "a lead does not see what all tokens have": (
        (W_U + c * OneMatrix(1, v)) * (OneHot(w, v) - OneHot(o, v)),
        W_U * (OneHot(w, v) - OneHot(o, v)),
        W_U * (OneHot(w, v) + OneHot(o, v)),
    ),
    "the basis of values does not matter to what is written": (
        P * Y * (W_V * M) * (M.I * W_O),
        P * Y * W_V * W_O,
        P * Y * W_V * M * W_O,
    ),
    "the parts of a layer make up the stream": (
        X + heads(),
        HeadSum(at(j, n) * X + heads(at(j, n)), (j, n)),
        HeadSum(X + heads(at(j, n)), (j, n)),
    ),
    "relevance is kept where z = Wᵀa": (
        a.T * (W * s),
        (W.T * a).T * s,
        a.T * a * (W.T * a).T * s,
    ),
    "integrated gradients of a quadratic are complete": (
        half * (x - y).T * (Q + Q.T) * (x + y),
        x.T * Q * x - y.T * Q * y,
        x.T * Q * x - x.T * Q * y,
    ),
    "gradient × input counts a quadratic twice": (
        x.T * (Q + Q.T) * x,
        2 * x.T * Q * x,
        x.T * Q * x,
    ),
    "noise leaves the gradient of a quadratic": (
        half * ((Q + Q.T) * (x + noise) + (Q + Q.T) * (x - noise)),
        (Q + Q.T) * x,
        Q * x,
    ),
    "occlusion of a linear f is the token's part": (
        Trace(G.T * X) - Trace(G.T * (I - at(i, n)) * X),
        Trace(G.T * at(i, n) * X),
        Trace(G.T * X),
    ),
    "rollout of two layers is a sum over paths": (
        half * half * (I + HeadSum(A2[h], (h, H)) / H) * (I + HeadSum(A1[h], (h, H)) / H),
        half * half * (I + HeadSum(A2[h] + A1[h], (h, H)) / H)
        + half * half * HeadSum(HeadSum(A2[h] * A1[g], (h, H)), (g, H)) / H**2,
        half * half * (I + HeadSum(A2[h] + A1[h], (h, H)) / H)
        + half * half * HeadSum(A2[h] * A1[h], (h, H)) / H,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_statement_is_proved_and_a_slip_refuted(name: str) -> None:
    left, right, slip = STATEMENTS[name]
    assert decide(left, right).status == "proved"
    assert decide(left, slip).status == "refuted"


def test_rollout_of_any_depth_has_rows_that_sum_to_one() -> None:
    rolled = LayerProduct(half * (I + B[layer]), (layer, L)) * one
    assert decide(rolled, one, given=[(B[layer] * one, one)]).status == "proved"
    without = LayerProduct(I + B[layer], (layer, L)) * one
    assert decide(without, one, given=[(B[layer] * one, one)]).status == "refuted"
