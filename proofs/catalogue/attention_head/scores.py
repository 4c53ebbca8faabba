"""Chapter 3: what scores are, and what W_QK has of its own: rank, symmetry, gauge, scale."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, Rational, Trace, Transpose, sqrt
from sympy.matrices.expressions.diagonal import DiagonalOf

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    kron,
    matadd,
    matmul,
)
from otimes.algebra.language.nonlinear import Activation
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER, VASWANI
from otimes.proofs.catalogue.symbols import X, alpha, beta, d, d_head, m, n, p, row, size
from otimes.proofs.claims import Definition, NonIdentity, Property, Statement
from otimes.proofs.theorem import theorem

READS = {"X": Source("qk_in")}  # queries and keys read this place, which may have positions added

W_QK = matmul(row.W_Q, Transpose(row.W_K))
g, e, r, i, j, k, l = sympy.symbols("g e r i j k l", integer=True)  # noqa: E741 (indices)
G, E, R = size("G"), size("E"), size("R")


def less(a: Any, b: Any) -> Any:
    """Return a - b as stated."""
    return matadd(a, matmul(-1, b))


def squared_norm(a: Any) -> Any:
    """Return the sum of the squares of the entries of a matrix."""
    return Trace(matmul(a, Transpose(a)))


@theorem(
    title="A score is linear in the query's vector and linear in the key's vector",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("S1-31", "S0-28"),
)
def score_is_bilinear() -> Statement:
    """Take one vector x that asks and one vector y that is asked: the score is the number x W_QK
    yᵀ. Mix two askers, and the score is the same mixture of their scores; likewise for y.

    So a score can be split over everything that was added into the stream on either side, which is
    what composition scores and path expansions of a pattern start from. A score is not linear in
    the stream as a whole: when x and y both are parts of one stream it is quadratic.
    """
    x, z = MatrixSymbol("x", 1, d), MatrixSymbol("z", 1, d)
    y, token = MatrixSymbol("y", 1, d), Source("W_E", rows=1)
    return Statement(
        matmul(matadd(matmul(alpha, x), matmul(beta, z)), W_QK, Transpose(y)),
        matadd(matmul(alpha, x, W_QK, Transpose(y)), matmul(beta, z, W_QK, Transpose(y))),
        bind=({"x": token, "z": Source("W_pos", rows=1), "y": token},),
    )


@theorem(
    title="W_QK has rank at most d_head",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}, “Observations about attention heads”",
    covers=("S0-29",),
)
def qk_rank_at_most_d_head() -> Property:
    """W_QK is d × d, and a product through d_head dimensions: its rank is at most min(d, d_head). A
    head compares d_head numbers of each of two tokens and no more.

    This is why W_Q and W_K are kept apart though only their product matters: stored as one matrix
    it would cost d² numbers instead of 2·d·d_head, and multiplying by it would hide how small the
    subspace is that a head looks at. The factorisation is exact; nothing is being approximated.
    """
    return Property(Fact("rank_at_most", W_QK, sympy.Min(d, d_head)))


@theorem(
    title="Scores before the mask have rank at most d_head",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”; Bhojanapalli et al. 2020, "
    "“Low-Rank Bottleneck in Multi-head Attention Models”",
    covers=("S0-29",),
)
def scores_rank_at_most_d_head() -> Property:
    """The table of all scores, queries × keys, has rank at most min(n, d, d_head). On a prompt much
    longer than d_head, most scores follow from a few: a head cannot give every pair of positions a
    score of its own.

    Said of scores as they leave the product. Mask and softmax act on single entries and on rows,
    and either may raise the rank: a causal pattern has rank n, as its diagonal is nowhere zero.
    """
    scores = matmul(1 / sqrt(d_head), X, W_QK, Transpose(X))
    longer = {"X": Source("W_E", rows=48)}  # more than d_head
    return Property(Fact("rank_at_most", scores, sympy.Min(n, d, d_head)), bind=(longer,))


@theorem(
    title="The rank of W_QK has nothing to do with the length of the prompt",
    chapter=3,
    convention="row",
    source="class notes on the formulation of transformers, where the rank is given as at most n",
    covers=("S0-29",),
)
def qk_rank_is_not_length() -> NonIdentity:
    """One letter n for the length of the prompt and for the head dimension, and a text says that
    the rank of W_QK is at most the length. On a prompt of one token the rank would then be one:
    every 2 × 2 minor of W_QK would vanish. It does not, as soon as d and d_head are at least two.

    W_QK is a weight. It knows of no prompt.
    """
    return NonIdentity(W_QK[i, k] * W_QK[j, l], W_QK[i, l] * W_QK[j, k])


@theorem(
    title="W_QK is the sum of a symmetric and an antisymmetric matrix",
    chapter=3,
    convention="row",
    source="linear algebra: the symmetric and the antisymmetric part of a bilinear form",
    covers=("S0-30",),
)
def W_QK_symmetric_split() -> Statement:
    """Every square matrix is half its sum with its transpose plus half the difference. The first
    part scores a pair the same whichever of the two asks; the second turns its sign when query and
    key change places.

    A head that looks for tokens like the one at hand lives in the symmetric part; one that makes
    verbs look at subjects but not subjects at verbs needs the antisymmetric part.
    """
    half, turned = Rational(1, 2), Transpose(W_QK)
    return Statement(
        W_QK,
        matadd(matmul(half, matadd(W_QK, turned)), matmul(half, less(W_QK, turned))),
    )


@theorem(
    title="The squared norm of W_QK is the sum of those of its symmetric and antisymmetric parts",
    chapter=3,
    convention="row",
    source="linear algebra: symmetric and antisymmetric matrices are orthogonal in the trace form",
    covers=("S0-30",),
)
def W_QK_symmetric_split_norms() -> Statement:
    """Symmetric and antisymmetric matrices are orthogonal to each other, so the squares of the two
    norms add up to the square of the whole. That makes “what share of a head is antisymmetric” a
    number between 0 and 1. For a random W_QK it is near a half.
    """
    half, turned = Rational(1, 2), Transpose(W_QK)
    return Statement(
        squared_norm(W_QK),
        squared_norm(matmul(half, matadd(W_QK, turned)))
        + squared_norm(matmul(half, less(W_QK, turned))),
    )


@theorem(
    title="The asymmetry of the scores is that of W_QK",
    chapter=3,
    convention="row",
    source="linear algebra: a congruence keeps symmetry",
    covers=("S0-30",),
)
def scores_less_their_transpose() -> Statement:
    """The scores less their transpose are X (W_QK - W_QKᵀ) Xᵀ. So a symmetric W_QK gives symmetric
    scores on every prompt: i scores j as j scores i.

    Only the scores. A pattern is not symmetric even then: each row is divided by its own sum, and
    the mask removes one of each pair.
    """
    scores = matmul(X, W_QK, Transpose(X))
    return Statement(
        less(scores, Transpose(scores)),
        matmul(X, less(W_QK, Transpose(W_QK)), Transpose(X)),
        bind=(READS,),
    )


@theorem(
    title="If the scores of a rich enough prompt are symmetric, W_QK is symmetric",
    chapter=3,
    convention="row",
    source="linear algebra: a bilinear form is known from its values on a spanning set",
    covers=("S0-30",),
)
def W_QK_from_scores() -> Statement:
    """The way back. If the vectors at the positions of a prompt span the model space, then X has a
    left inverse Y, and Y (S - Sᵀ) Yᵀ gives W_QK - W_QKᵀ back. Together with the theorem before:
    scores are symmetric on all prompts exactly when W_QK is symmetric.

    A prompt shorter than d shows nothing of the sort: on one token any W_QK has symmetric scores.
    """
    W, Y = MatrixSymbol("W", d, d), MatrixSymbol("Y", d, n)
    scores = matmul(X, W, Transpose(X))
    return Statement(
        matmul(Y, less(scores, Transpose(scores)), Transpose(Y)),
        less(W, Transpose(W)),
        given=[(matmul(Y, X), Identity(d))],
        on_models=False,
    )


@theorem(
    title="The score of a token with itself depends on the symmetric part of W_QK only",
    chapter=3,
    convention="row",
    source="linear algebra: the quadratic form of an antisymmetric matrix is zero",
    covers=("S0-30",),
)
def self_scores_see_symmetric_part() -> Statement:
    """On the diagonal of the scores a position asks about itself: a quadratic form, in which the
    antisymmetric part of W_QK cancels. A head with a purely antisymmetric W_QK scores every
    position zero with itself.
    """
    half = Rational(1, 2)
    return Statement(
        DiagonalOf(matmul(X, W_QK, Transpose(X))),
        DiagonalOf(matmul(half, X, matadd(W_QK, Transpose(W_QK)), Transpose(X))),
        bind=(READS,),
    )


@theorem(
    title="W_Q and W_K are known only up to a change of basis inside the head",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("B8", "S1-29", "S2-28"),
)
def qk_gauge() -> Statement:
    """Multiply W_Q by any invertible C inside the head and W_K by the inverse transpose Dᵀ of C:
    W_QK, and with it every score, stays. So single coordinates of queries and keys mean nothing by
    themselves; what can be compared between models or heads is W_QK.

    With rotary positions less is free: C must commute with the rotations.
    """
    C, D = MatrixSymbol("C", d_head, d_head), MatrixSymbol("D", d_head, d_head)
    return Statement(
        matmul(matmul(row.W_Q, C), Transpose(matmul(row.W_K, Transpose(D)))),
        W_QK,
        given=[(matmul(C, D), Identity(d_head))],
        on_models=False,
    )


@theorem(
    title="Dot products of d_head independent numbers of variance one have variance d_head",
    chapter=3,
    source=f"{VASWANI}, §3.2.1, note 4",
    covers=("S0-25",),
)
def scores_have_variance_d_head() -> Statement:
    """Let queries run through any finite collection with mean square one in each coordinate and no
    correlation between coordinates, and keys through another, every query meeting every key. Then
    the mean of (q·k)² is exactly d_head. That is the reason for the 1/√d_head: it brings scores
    back to variance one, so that the softmax starts neither flat nor saturated.

    It is a statement about initialisation. Nothing keeps trained queries and keys uncorrelated, and
    trained scores are often much larger.
    """
    q, kk = Family("q", (G,), 1, d_head), Family("k", (E,), 1, d_head)
    score = matmul(q[g], Transpose(kk[e]))
    of_q = matmul(1 / G, HeadSum(matmul(Transpose(q[g]), q[g]), (g, G)))
    of_k = matmul(1 / E, HeadSum(matmul(Transpose(kk[e]), kk[e]), (e, E)))
    return Statement(
        matmul(1 / (G * E), HeadSum(matmul(score, Transpose(score)), (g, G), (e, E))),
        matmul(d_head, Identity(1)),
        given=[(of_q, Identity(d_head)), (of_k, Identity(d_head))],
        on_models=False,
    )


@theorem(
    title="If queries have mean zero, so have their scores",
    chapter=3,
    source=f"{VASWANI}, §3.2.1, note 4",
    covers=("S0-25",),
)
def scores_have_mean_zero() -> Statement:
    """The mean score over all pairs of a query and a key is the mean query times the mean key. One
    of them zero is enough. Then the mean of the squares is the variance, and with unit variances it
    is d_head.
    """
    q, kk = Family("q", (G,), 1, d_head), Family("k", (E,), 1, d_head)
    score = matmul(q[g], Transpose(kk[e]))
    return Statement(
        matmul(1 / (G * E), HeadSum(score, (g, G), (e, E))),
        sympy.ZeroMatrix(1, 1),
        given=[(HeadSum(q[g], (g, G)), sympy.ZeroMatrix(1, d_head))],
        on_models=False,
    )


W_KG = Family("W_K", (G,), d, d_head)
SHARED = ConcatHeads(matmul(X, W_KG[g]), (g, G))  # the keys of all groups side by side
EACH = ConcatHeads(kron(OneMatrix(1, R), matmul(X, W_KG[g])), (g, G))  # each R times, in a row


@theorem(
    title="In grouped-query attention each key is repeated for neighbouring queries",
    chapter=3,
    convention="row",
    source="Ainslie et al. 2023, “GQA: Training Generalized Multi-Query Transformer Models from "
    "Multi-Head Checkpoints”",
)
def grouped_keys_are_repeated() -> Statement:
    """With G key heads and R query heads to each, query head h = g·R + r uses key head g: the keys
    stand as 0 0 0 1 1 1 … As a matrix on the keys side by side that is I_G ⊗ 1_1×R ⊗ I_d_head, what
    libraries call repeat_interleave. With the keys so repeated, everything said of plain heads
    holds, head by head: W_QK of head h is W_Q[h] times W_K[g]ᵀ.
    """
    spread = kron(Identity(G), OneMatrix(1, R), Identity(d_head))
    return Statement(EACH, matmul(SHARED, spread), on_models=False)


@theorem(
    title="Tiling the keys of grouped-query attention pairs them wrongly",
    chapter=3,
    convention="row",
    source="Ainslie et al. 2023, “GQA”, as implemented; a recurring porting bug",
)
def grouped_keys_are_not_tiled() -> NonIdentity:
    """Repeating the whole block of keys, 0 1 2 0 1 2 …, is 1_1×R ⊗ I_G ⊗ I_d_head: the two factors
    of ⊗ swapped. The shapes fit, the model runs, and most query heads meet a foreign key. The two
    agree only if there is one group, or one query head to each.
    """
    tiled = kron(OneMatrix(1, R), Identity(G), Identity(d_head))
    return NonIdentity(EACH, matmul(SHARED, tiled))


def _additive_plainly(
    H_d: Any, H_e: Any, W: Any, U: Any, v: Any, n: int, m: int, d: int, p: int
) -> Any:
    import math

    scores = []
    for query in range(n):
        for key in range(m):
            total = 0.0
            for unit in range(p):
                inside = sum(H_d[query, a] * W[a, unit] for a in range(d))
                inside += sum(H_e[key, a] * U[a, unit] for a in range(d))
                total += v[unit, 0] * math.tanh(inside)
            scores.append(total)
    return scores


@theorem(
    title="Additive attention: an alignment score that is no dot product",
    chapter=3,
    source="Bahdanau, Cho and Bengio 2015, “Neural Machine Translation by Jointly Learning to "
    "Align and Translate”, §3.1",
    covers=("S4-03",),
)
def additive_alignment_scores() -> Definition:
    """Attention began with scores e_ij = a(h_i, h_j) from any function a of the state that asks and
    the state that is asked. The first was a small network: v · tanh(h_i W + h_j U). Self-attention
    is the same with both states from one sequence (`self_alignment_scores`).

    Everything said of patterns holds whatever the scores come from. What is particular to
    transformers is that a is bilinear, x_i W_QK x_jᵀ, so that it can be computed for all pairs by
    one product, and that there is a matrix W_QK to read.
    """
    looks = {
        "H_d": Source("qk_in", rows=3),
        "H_e": Source("embed", rows=4),
        "W": Source("W_Q", cols=5),
        "U": Source("W_K", cols=5),
        "v": Source("W_V", rows=5, cols=1),
    }
    scores = _additive(MatrixSymbol("H_d", n, d), MatrixSymbol("H_e", m, d))
    return Definition("e", scores, _additive_plainly, bind=(looks,))


def _additive(asks: Any, asked: Any) -> Any:
    """Return v · tanh(h_i W + h_j U) for each row h_i of one sequence and h_j of another."""
    W, U = MatrixSymbol("W", d, p), MatrixSymbol("U", d, p)
    v, unit = MatrixSymbol("v", p, 1), OneHot(k, p)
    rows, cols = asks.shape[0], asked.shape[0]
    queries = matmul(asks, W, unit, OneMatrix(1, cols))
    keys = matmul(OneMatrix(rows, 1), Transpose(matmul(asked, U, unit)))
    weighted = matmul(v[k, 0], Activation("tanh", matadd(queries, keys)))
    return HeadSum(weighted, (k, p))


def _self_plainly(H: Any, W: Any, U: Any, v: Any, n: int, d: int, p: int) -> Any:
    return _additive_plainly(H, H, W, U, v, n, n, d, p)


@theorem(
    title="Self-attention: queries and keys come from the same states",
    chapter=3,
    source=f"Lin et al. 2017, “A Structured Self-attentive Sentence Embedding”; {VASWANI}, §3.2.3",
    covers=("S4-05",),
)
def self_alignment_scores() -> Definition:
    """e_ij = a(h_i, h_j), with i and j two positions of one sequence h: set h^d = h^e in
    `additive_alignment_scores`. The table of scores is then square, and position i scores itself
    too, on the diagonal. It need not be symmetric: how i scores j and how j scores i differ unless
    a says otherwise, as a reads its two arguments by different weights.
    """
    H = MatrixSymbol("H", n, d)
    looks = {
        "H": Source("qk_in", rows=4),
        "W": Source("W_Q", cols=5),
        "U": Source("W_K", cols=5),
        "v": Source("W_V", rows=5, cols=1),
    }
    return Definition("e", _additive(H, H), _self_plainly, bind=(looks,))
