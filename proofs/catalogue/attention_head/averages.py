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
    """c_i = Σ_j α_ij h_j, the weights α_ij being the softmax over j of the alignment scores e_ij.
    Queries and states may come from two sequences of different lengths, as in translation: then the
    pattern is n × m and there is nothing causal about it. In self-attention both are one sequence.
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
    """What arrives at position i is Σ_j A_ij v_j: the row index of A is where it goes (the query),
    the column index where it comes from (key and value). Every token is both, in its row and in its
    column. Given A, the result is linear in the values.

    With values as rows it is A V, with values as columns V Aᵀ. A V for values as columns, found in
    a text that changes layout half way, does not even fit unless d_head = n.
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
    """Let all states lie on one side of a plane: h_j · u ≤ b for every j. Then so does every mean
    of them with weights that are not negative and sum to one. As this holds for every direction u,
    the context vector lies in the convex hull of the states: a head can pick out or blend values,
    but before W_O it cannot leave the region they span.
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
    """Let κ be at least ‖h_j‖² for every j, as the largest of them is. Then ‖c‖² ≤ κ. What is lost
    is exact: κ - ‖c‖² is the mean of κ - ‖h_j‖² plus the mean of ‖h_j - c‖². So the result is as
    long as the longest only if all the weight is on states that are equal and of that length:
    mixing unlike vectors always shortens.
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
    """Let u be one on some of the keys and zero on the others, or anything between. The weight that
    a query puts on them is at most one, and what is missing is the weight on the rest. For a single
    key: a_ij ≤ 1, at every length of the prompt. The bound does not fall with the length: a head
    can put almost all it has on one key among a thousand. All of it, a_ij = 1, takes a mask that
    hides the other keys (`weights_lie_between_zero_and_one`).
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
    """Weights over m keys sum to one, so their mean is 1/m. Let c be at least every weight, as the
    largest is: then m·c ≥ 1. Together with a_ij ≤ 1: 1/m ≤ max ≤ 1 for every length, and both ends
    are reached, by equal scores and, in the limit, by one score far above the rest.
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
    """One row of scores s. Let e be their exponentials, z the sum of these, and p = e/z the
    weights. When the scores move by ds, e moves by e ∘ ds and z by eᵀ ds. So z p = e,
    differentiated, says z dp + p eᵀ ds = e ∘ ds, from which z dp = z (diag(p) - p pᵀ) ds; and z is
    never zero. Entry by entry: ∂a_ij/∂s_ik = a_ij (δ_jk - a_ik).

    Raising one score raises its own weight and lowers every other one of the row, in proportion to
    both weights. Where a weight is 1 the whole row stands still: saturated heads do not learn.
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
    """One row of scores s, as a column, and its weights a. How weight j moves with score k is the
    entry (j, k) of diag(a) − a aᵀ: a_j (1 − a_j) on the diagonal, −a_j a_k off it. The matrix is
    symmetric, its rows sum to zero, and it vanishes where one weight is 1: a saturated head does
    not learn.

    The left side is the derivative itself, entry by entry, by the rules of calculus.
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
    """xᵀ (diag(a) - a aᵀ) x is the variance of the numbers x under the weights a, half the mean of
    (x_j - x_k)² over pairs drawn by the weights. So it is never negative, and zero when x is the
    same at all keys with weight: adding a constant to all scores changes nothing.

    It is also the second derivative of the cross-entropy -Σ_b P_b log softmax(t)_b in the logits t.
    So this loss is convex, and has no local minimum besides the one where the prediction is right.
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
