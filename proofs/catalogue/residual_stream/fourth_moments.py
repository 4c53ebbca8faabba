"""Chapter 2: the mean square of what random embeddings miss of orthogonality, at all sizes."""

from __future__ import annotations

from sympy import Identity, Trace, Transpose
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
