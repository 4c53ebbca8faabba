"""Chapter 2: mean squares of what random embeddings and random signs do, at all sizes."""

from __future__ import annotations

from sympy import HadamardProduct, Identity, MatrixSymbol, OneMatrix, Symbol, Trace, Transpose
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul
from otimes.proofs.catalogue.residual_stream.chance import (
    FLAT,
    LINDENSTRAUSS,
    PAIRS,
    G,
    K,
    _mean,
    a,
    b,
    g,
    i,
    j,
)
from otimes.proofs.catalogue.symbols import d
from otimes.proofs.claims import Example, Statement
from otimes.proofs.theorem import theorem

y = Family("y", (G, K), d, 1)
FIRST, SECOND = (matmul(y[g, e], Transpose(y[g, e])) for e in (a, b))
E_I, E_J = OneHot(i, d), OneHot(j, d)
SAME = MatrixElement(Identity(K), a, b)
SWAP = HeadSum(kron(matmul(E_I, Transpose(E_J)), matmul(E_J, Transpose(E_I))), (i, d), (j, d))
APART = kron(Identity(d), Identity(d))
NORMAL = matadd(matmul(SAME, FLAT, Transpose(FLAT)), matmul(SAME, SWAP))


@theorem(
    title="The Gram matrix of a random embedding is off the identity by d(d + 1)/V in mean square",
    chapter=2,
    source=f"{LINDENSTRAUSS}; Wishart 1928",
    covers=("S0-54", "S0-69"),
)
def gram_of_random_columns() -> Statement:
    """How near is the transpose of a random embedding to an inverse? Let E be d × k, one column y
    for each token, with independent entries of mean square one and moments up to the fourth as in a
    normal distribution. The mean of ‖E Eᵀ/k − I‖² is d(d + 1)/k, exactly. It falls with the number
    of tokens and grows with the square of the dimension.

    With k = V tokens this is how far the transpose of a random embedding is from an inverse: for d
    = 768 and V = 50257 the root is 3.4, against a norm of 27.7 of the identity.

    In the hypotheses y[g, a] is column a in case g of G equally likely ones, and the sums over i
    and j exchange the two factors of a Kronecker product.
    """
    off = matadd(matmul(1 / K, HeadSum(FIRST, (a, K))), matmul(-1, Identity(d)))
    return Statement(
        _mean(matmul(Trace(matmul(off, Transpose(off))), Identity(1))),
        matmul(d * (d + 1) / K, Identity(1)),
        given=(
            (_mean(FIRST), Identity(d)),
            (_mean(kron(FIRST, SECOND)), matadd(APART, NORMAL)),
            Example({"y": [[[[x]], [[z]]] for x, z in PAIRS]}),
            Example({"y": [[[[x], [sign * z]]] for x, z in PAIRS for sign in (1, -1)]}),
            Example({"y": 3 * [[[[2]]]] + 13 * [[[[0]]]]}),
        ),
        on_models=False,
    )


u, v = MatrixSymbol("u", d, 1), MatrixSymbol("v", d, 1)
E, square = MatrixSymbol("E", G, K), Symbol("s", real=True)
row = Family("y", (G,), d, 1)[g]
OUTER = matmul(row, Transpose(row))
SPIKE = HeadSum(kron(matmul(E_I, Transpose(E_I)), matmul(E_I, Transpose(E_I))), (i, d))


@theorem(
    title="Rows of random signs disturb a dot product less than rows of normal entries",
    chapter=2,
    source=f"{LINDENSTRAUSS}; Achlioptas 2003, “Database-friendly random projections”",
    covers=("S1-11",),
)
def interference_of_signs() -> Statement:
    """Estimate the dot product of u and v through one random row y of entries ±1, by ⟨u, y⟩⟨y, v⟩.
    It is right on average, and its mean square error is ‖u‖²‖v‖² + ⟨u, v⟩² − 2 Σ_i u_i² v_i²,
    exactly. For u = v = (1, 0) there is no error at all.

    The last term is what signs have over normal numbers (`projection_interference`): a coordinate
    that u and v share is not disturbed by itself, as y_i² = 1. The mean over k independent rows has
    this error divided by k (`error_of_mean_of_rows`).

    The hypotheses ask for entries of mean square one that are uncorrelated, and for fourth moments
    as of independent signs; y[g] is the row in case g of G equally likely ones.
    """
    off = matadd(matmul(Transpose(u), OUTER, v), matmul(-1, Transpose(u), v))
    dot, lengths = matmul(Transpose(u), v), matmul(Transpose(u), u, Transpose(v), v)
    squares = [HadamardProduct(each, each, evaluate=False) for each in (u, v)]
    fourth = matadd(APART, matmul(FLAT, Transpose(FLAT)), SWAP, matmul(-2, SPIKE))
    return Statement(
        _mean(matmul(off, off)),
        matadd(lengths, matmul(dot, dot), matmul(-2, Transpose(squares[0]), squares[1])),
        given=(
            (_mean(OUTER), Identity(d)),
            (_mean(kron(OUTER, OUTER)), fourth),
            Example({"y": [[[1], [1]], [[1], [-1]]]}),
            Example({"y": [[[1]]]}),
            Example({"y": [[[2]], *15 * [[[0]]]]}),  # mean square 1/4, mean fourth power 1
            Example({"y": [[[p], [sign * q]] for p, q in PAIRS for sign in (1, -1)]}),
        ),
        on_models=False,
    )


@theorem(
    title="The mean of k uncorrelated errors has the variance of one, divided by k",
    chapter=2,
    source=LINDENSTRAUSS,
    covers=("S1-11",),
)
def error_of_mean_of_rows() -> Statement:
    """Averaging k estimates divides their mean square error by k, if the errors of different
    estimates are uncorrelated. Row g of E (G × k) holds the errors of the k estimates in case g of
    G equally likely ones, and s is the mean square of each, which the hypothesis says: EᵀE/G is s
    times the identity. Then E1/k holds the errors of the mean.

    With it the error of one row of a random projection (`interference_of_signs`) becomes that of k
    rows, which falls like 1/k.
    """
    total = matmul(1 / K, E, OneMatrix(K, 1))
    return Statement(
        matmul(1 / G, Transpose(total), total),
        matmul(square / K, Identity(1)),
        given=((matmul(1 / G, Transpose(E), E), matmul(square, Identity(K))),),
        on_models=False,
    )
