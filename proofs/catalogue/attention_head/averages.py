"""Chapter 3: a pattern takes weighted means: what that bounds, and how weights follow scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy
from sympy import HadamardPower, MatrixSymbol, OneMatrix, Trace, Transpose
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.facts import Fact, attention_pattern
from otimes.algebra.language.derivative import jacobian
from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import RowSoftmax
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.patterns import BAHDANAU
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.catalogue.symbols import A, d, d_head, m, n
from otimes.proofs.claims import Bound, Definition, Entries, Statement
from otimes.proofs.theorem import theorem

a = MatrixSymbol("a", 1, m)  # the weights of one query
H_e = MatrixSymbol("H_e", m, d)  # the states that are attended to, one a row
ONE, ONES = OneMatrix(m, 1), OneMatrix(1, m)
WEIGHTS = (*attention_pattern(a, causal=False), (matmul(a, ONE), OneMatrix(1, 1)))
CONTEXT = matmul(a, H_e)


def _context_plainly(E: Any, H_e: Any, n: int, m: int, d: int) -> Any:
    found = np.zeros((n, d))
    for query in range(n):
        weights = [math.exp(E[query, key]) for key in range(m)]
        for key in range(m):
            for c in range(d):
                found[query, c] += weights[key] / sum(weights) * H_e[key, c]
    return found


@theorem(
    title="The context vector: a weighted mean of the states that are attended to",
    chapter=3,
    source=BAHDANAU,
    covers=("S4-01", "S4-05"),
)
def context_vector() -> Definition:
    """Attention computes, for each query, a weighted mean of vectors, the context vector c_i = Σ_j
    α_ij h_j. The states h_j are the rows of H_e (m × d), and the weights α_ij are the softmax over
    j of the alignment scores e_ij. E (n × m) is the table of alignment scores.

    This is attention in its first form, for translation: queries and states come from two sentences
    of different lengths, so the weights are n × m and nothing is causal. In self-attention both are
    the same sequence.
    """
    E = MatrixSymbol("E", n, m)
    return Definition(
        "c",
        matmul(RowSoftmax(E), H_e),
        _context_plainly,
        bind=({"E": Source("q", cols=6), "H_e": Source("W_E", rows=6)},),
        obeys=("context_in_convex_hull", "context_no_longer_than_the_longest"),
    )


@theorem(
    title="A pattern moves values: rows are destinations, columns are sources",
    chapter=3,
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S1-14", "S1-16"),
)
def attention_moves_values() -> Statement:
    """In an attention pattern A, rows are destinations and columns are sources: what arrives at
    position i is Σ_j a_ij v_j, a weighted mean of the values v_j. Given A, the result is linear in
    the values.

    With values as the rows of a matrix this is A V, with values as columns it is V Aᵀ. “A V” for
    values in columns does not fit unless the number of values equals their width.
    """
    V = MatrixSymbol("V", d_head, n)
    moved = matmul(V, Transpose(A))
    return Statement(
        moved,
        Transpose(matmul(A, Transpose(V))),
        places={"z": moved},
        bind=({"V": Source("v")},),
        bare=False,
        printed={"E41": (moved, matmul(A, V))},
    )


@theorem(
    title="A weighted mean of values lies in their convex hull",
    chapter=3,
    source="linear algebra: a convex set is cut out by half-spaces",
    covers=("S4-04",),
)
def context_in_convex_hull() -> Bound:
    """A weighted mean of vectors lies in their convex hull, the region that they span: if every
    state satisfies h_j · u ≤ b for some direction u, the mean does too. Here a is a row of weights
    that are not negative and sum to one, and the rows of H_e are the states.

    So a head can select or blend the values it sees, but before W_O it cannot leave the region
    between them.
    """
    u, b = MatrixSymbol("u", d, 1), sympy.Symbol("b", real=True)
    slack = less(matmul(b, ONE), matmul(H_e, u))
    return Bound(
        Trace(matmul(CONTEXT, u)),
        b,
        [Entries(matmul(a, slack))],
        given=[*WEIGHTS, Fact("nonnegative", slack)],
        tight={"a": [[1]], "H_e": [[2]], "u": [[3]], "b": 6},
        on_models=False,
    )


@theorem(
    title="A weighted mean of values is no longer than the longest of them",
    chapter=3,
    source="Jensen's inequality for the square of the norm",
    covers=("S4-04",),
)
def context_no_longer_than_the_longest() -> Bound:
    """A weighted mean of vectors is no longer than the longest of them: if κ ≥ ‖h_j‖² for every
    state, then ‖c‖² ≤ κ for c = Σ_j a_j h_j. The difference is κ minus the mean of ‖h_j‖², plus the
    mean of ‖h_j − c‖². The states h_j are the rows of H_e, and a (1 × m) holds the weights.

    So mixing unlike vectors shortens. For example, the mean of (1, 0) and (0, 1) has squared length
    1/2. Equality requires that all weight is on equal vectors of the greatest length.
    """
    kappa = sympy.Symbol("kappa", real=True)
    slack = less(matmul(kappa, ONE), matmul(HadamardPower(H_e, 2), OneMatrix(d, 1)))
    spread = HadamardPower(less(H_e, matmul(ONE, CONTEXT)), 2)
    return Bound(
        Trace(matmul(CONTEXT, Transpose(CONTEXT))),
        kappa,
        [Entries(matmul(a, slack)), Entries(matmul(a, spread, OneMatrix(d, 1)))],
        given=[*WEIGHTS, Fact("nonnegative", slack)],
        tight={"a": [[1]], "H_e": [[2]], "kappa": 4},
        on_models=False,
    )


@theorem(
    title="The attention weight on any set of keys is at most one",
    chapter=3,
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-26", "S2-25"),
)
def weight_on_a_set_at_most_one() -> Bound:
    """A query gives any set of keys a total weight of at most one. u is 1 on the keys of the set
    and 0 on the others, or anything between, and a is the row of weights.

    For a single key this says a_ij ≤ 1 for prompts of every length: a head can put almost all its
    weight on one key among thousands. Exactly 1 is reached only if a mask hides all other keys
    (`weights_lie_between_zero_and_one`).
    """
    u = MatrixSymbol("u", m, 1)
    return Bound(
        Trace(matmul(a, u)),
        sympy.Integer(1),
        [Entries(matmul(a, less(ONE, u)))],
        given=[*WEIGHTS, Fact("nonnegative", less(ONE, u))],
        tight={"a": [[1]], "u": [[1]]},
        on_models=False,
    )


@theorem(
    title="The largest attention weight is at least one over the number of keys",
    chapter=3,
    source="the pigeonhole principle",
    covers=("S2-25",),
)
def largest_weight_at_least_mean() -> Bound:
    """The largest attention weight of a query over m keys is at least 1/m, since the weights sum to
    one and so have mean 1/m. In the formula c is any number that is at least every weight.

    So the largest weight lies between 1/m and 1. Equal scores reach the lower end; the upper end is
    approached when one score is far above the others.
    """
    c = sympy.Symbol("c", real=True)
    slack = less(matmul(c, ONES), a)
    return Bound(
        sympy.Integer(1),
        m * c,
        [Entries(slack)],
        given=[WEIGHTS[-1], Fact("nonnegative", slack)],
        tight={"a": [[1]], "c": 1, "m": 1},
        on_models=False,
    )


@theorem(
    title="The differential of softmax: da = (diag(a) - a aᵀ) ds",
    chapter=3,
    source="the quotient rule; Martins and Astudillo 2016, “From Softmax to Sparsemax”",
    covers=("S0-24",),
)
def softmax_differential() -> Statement:
    """How do attention weights change when scores change? If the scores of one query move by ds (m
    × 1), its weights p move by dp = (diag(p) − p pᵀ) ds. The hypotheses are the definition of
    softmax, z p = e with e the exponentials of the scores and z their sum, and its derivative.

    Raising one score raises its own weight and lowers every other weight of the row. Weights (1/2,
    1/2), for example, move by (+ds/4, −ds/4) when the first score moves by ds.

    Where one weight is 1 nothing moves. A saturated head gets no gradient through its scores.
    """
    e, p, dp, ds = (MatrixSymbol(name, m, 1) for name in ("e", "p", "dp", "ds"))
    z = sympy.Symbol("z", positive=True)
    differentiated = matadd(matmul(z, dp), matmul(p, Transpose(e), ds))
    jacobian = less(DiagMatrix(p), matmul(p, Transpose(p)))
    return Statement(
        matmul(z, dp),
        matmul(z, jacobian, ds),
        given=[(matmul(z, p), e), (differentiated, matmul(DiagMatrix(e), ds))],
        on_models=False,
    )


@theorem(
    title="The Jacobian of softmax is diag(a) - a aᵀ",
    chapter=3,
    source="Martins and Astudillo 2016, “From Softmax to Sparsemax”",
    covers=("S0-24",),
)
def softmax_jacobian() -> Statement:
    """The derivative of softmax for one row of scores s (m × 1) with weights a is the matrix
    diag(a) − a aᵀ: a_j (1 − a_j) on the diagonal and −a_j a_k elsewhere. For two equal scores it is
    `[[1/4, −1/4], [−1/4, 1/4]]`.

    It is the matrix behind every gradient through attention. It is symmetric, its rows sum to zero,
    and it vanishes where one weight is 1, so a saturated head does not learn through its scores.

    The left side of the equation is the derivative itself, entry by entry.
    """
    s = MatrixSymbol("s", m, 1)
    weights = Transpose(RowSoftmax(Transpose(s)))
    return Statement(
        jacobian(weights, s),
        less(DiagMatrix(weights), matmul(weights, Transpose(weights))),
        bind=({"s": Source("q", rows=6, cols=1)},),
    )


@theorem(
    title="The Jacobian of softmax is positive semidefinite: its quadratic form is a variance",
    chapter=3,
    source="folklore: a variance is half the mean square of the difference of two draws; Boyd and "
    "Vandenberghe 2004, “Convex Optimization”, §3.1.5, on log-sum-exp",
    covers=("S0-24", "S2-01"),
)
def softmax_jacobian_is_a_variance() -> Bound:
    """The derivative of softmax, diag(a) − a aᵀ, is positive semidefinite: its quadratic form
    xᵀ(diag(a) − a aᵀ)x is the variance of the numbers x under the weights a, which cannot be
    negative. It is zero when x is the same at all keys with weight; adding a constant to all scores
    changes nothing.

    The same matrix is the second derivative of the cross-entropy in the logits. So this loss is
    convex in the logits, and has no local minimum that is not a global one.
    """
    x = MatrixSymbol("x", m, 1)
    jacobian = less(DiagMatrix(Transpose(a)), matmul(Transpose(a), a))
    gaps = HadamardPower(less(matmul(x, ONES), matmul(ONE, Transpose(x))), 2)
    return Bound(
        sympy.Integer(0),
        Trace(matmul(Transpose(x), jacobian, x)),
        [Entries(matmul(a, gaps, Transpose(a)), times=sympy.Rational(1, 2))],
        given=WEIGHTS,
        tight={"a": [[1]], "x": [[3]]},
        on_models=False,
    )
