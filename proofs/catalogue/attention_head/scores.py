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
from otimes.proofs.catalogue.recorded import of_QK
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
    """An attention score is linear in the query's vector and linear in the key's vector: for x on
    the query side and y on the key side it is x W_QK yᵀ. If x is a sum, the score is the sum of the
    scores of its parts, and likewise for y. In the formula two queries x and z are mixed with
    factors α and β.

    So a score can be split over everything that was added to the stream on either side. Composition
    and the path expansion of patterns start from this.

    A score is not linear in the stream as a whole. If x and y are parts of the same stream it is
    quadratic: twice the stream gives four times the score.
    """
    x, z = MatrixSymbol("x", 1, d), MatrixSymbol("z", 1, d)
    y, token = MatrixSymbol("y", 1, d), Source("W_E", rows=1, example=True)
    return Statement(
        matmul(matadd(matmul(alpha, x), matmul(beta, z)), W_QK, Transpose(y)),
        matadd(matmul(alpha, x, W_QK, Transpose(y)), matmul(beta, z, W_QK, Transpose(y))),
        bind=({"x": token, "z": Source("W_pos", rows=1, example=True), "y": token},),
        places=of_QK(),
    )


@theorem(
    title="W_QK has rank at most d_head",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}, “Observations about attention heads”",
    covers=("S0-29",),
)
def qk_rank_at_most_d_head() -> Property:
    """The matrix W_QK = W_Q W_Kᵀ, whose bilinear form is the attention score, is d × d with rank at
    most d_head: a head compares d_head numbers of one token with d_head numbers of another.

    That is why W_Q and W_K are kept apart although only their product matters. Two thin factors
    take 2 d d_head numbers, the product d², which for GPT-2 small is 98,304 against 589,824.

    The factorisation is exact; nothing is being approximated.
    """
    return Property(Fact("rank_at_most", W_QK, sympy.Min(d, d_head)), places=of_QK())


@theorem(
    title="Scores before the mask have rank at most d_head",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”; Bhojanapalli et al. 2020, "
    "“Low-Rank Bottleneck in Multi-head Attention Models”",
    covers=("S0-29",),
)
def scores_rank_at_most_d_head() -> Property:
    """The table of all scores of a head, queries × keys, has rank at most d_head, however long the
    prompt. So on a prompt much longer than d_head a head cannot give every pair of positions a
    score of its own.

    This is about scores before mask and softmax. Both act on single entries or rows and can raise
    the rank: a causal pattern always has full rank n, since its diagonal has no zero.
    """
    scores = matmul(1 / sqrt(d_head), X, W_QK, Transpose(X))
    longer = {"X": Source("W_E", rows=48, example=True)}  # more than d_head
    return Property(
        Fact("rank_at_most", scores, sympy.Min(n, d, d_head)), bind=(longer,), places=of_QK()
    )


@theorem(
    title="The rank of W_QK has nothing to do with the length of the prompt",
    chapter=3,
    convention="row",
    source="class notes on the formulation of transformers, where the rank is given as at most n",
    covers=("S0-29",),
)
def qk_rank_is_not_length() -> NonIdentity:
    """The rank of W_QK has nothing to do with the length of the prompt, although a text that uses
    one letter n for the head dimension and for the number of positions seems to say so. On a prompt
    of one token the rank would then be one, and every 2 × 2 minor of W_QK would vanish. The
    inequality shows that such a minor need not.

    W_QK is made of weights, which no prompt changes. Its rank is at most d_head.
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
    """The matrix W_QK of a head is the sum of a symmetric part, ½ (W_QK + W_QKᵀ), and an
    antisymmetric part, ½ (W_QK − W_QKᵀ), as every square matrix is. For `[[1, 4], [0, 1]]` they are
    `[[1, 2], [2, 1]]` and `[[0, 2], [−2, 0]]`.

    The symmetric part scores a pair of vectors the same whichever of the two is the query; the
    antisymmetric part changes sign. A head that looks for tokens like its own uses the first. A
    head in which verbs attend to subjects, but not subjects to verbs, needs the second.
    """
    half, turned = Rational(1, 2), Transpose(W_QK)
    return Statement(
        W_QK,
        matadd(matmul(half, matadd(W_QK, turned)), matmul(half, less(W_QK, turned))),
        places=of_QK(),
    )


@theorem(
    title="The squared norm of W_QK is the sum of those of its symmetric and antisymmetric parts",
    chapter=3,
    convention="row",
    source="linear algebra: symmetric and antisymmetric matrices are orthogonal in the trace form",
    covers=("S0-30",),
)
def W_QK_symmetric_split_norms() -> Statement:
    """The squared norm of W_QK (the sum of its squared entries) is the sum of those of its
    symmetric and antisymmetric parts, since these two are orthogonal as vectors of entries. So
    “what share of this head is antisymmetric” is a number between 0 and 1.

    For a d × d matrix of independent normal entries it is (d − 1)/(2d) on average, so nearly one
    half is what chance gives.
    """
    half, turned = Rational(1, 2), Transpose(W_QK)
    return Statement(
        squared_norm(W_QK),
        squared_norm(matmul(half, matadd(W_QK, turned)))
        + squared_norm(matmul(half, less(W_QK, turned))),
        places=of_QK(),
    )


@theorem(
    title="The asymmetry of the scores is that of W_QK",
    chapter=3,
    convention="row",
    source="linear algebra: a congruence keeps symmetry",
    covers=("S0-30",),
)
def scores_less_their_transpose() -> Statement:
    """The difference between “i scores j” and “j scores i” comes from the antisymmetric part of
    W_QK alone: the scores less their transpose are X (W_QK − W_QKᵀ) Xᵀ. So a symmetric W_QK gives
    symmetric scores on every prompt.

    The attention pattern is not symmetric even then. The softmax divides each row by a sum of its
    own, and the mask removes one of each pair.
    """
    scores = matmul(X, W_QK, Transpose(X))
    return Statement(
        less(scores, Transpose(scores)),
        matmul(X, less(W_QK, Transpose(W_QK)), Transpose(X)),
        bind=(READS,),
        places={"scores": matmul(1 / sqrt(d_head), scores)},
    )


@theorem(
    title="If the scores of a rich enough prompt are symmetric, W_QK is symmetric",
    chapter=3,
    convention="row",
    source="linear algebra: a bilinear form is known from its values on a spanning set",
    covers=("S0-30",),
)
def W_QK_from_scores() -> Statement:
    """If the scores of one prompt are symmetric and its vectors span the whole residual stream,
    then W_QK is symmetric. A left inverse Y of X exists for such a prompt, and Y (S − Sᵀ) Yᵀ
    recovers W_QK − W_QKᵀ from the scores S = X W Xᵀ.

    It is the converse of `scores_less_their_transpose`. A prompt with fewer than d independent
    vectors shows nothing of the kind: on one token every W_QK has symmetric scores.
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
    """The score of a position with itself depends only on the symmetric part of W_QK: x W xᵀ is a
    quadratic form, in which the antisymmetric part cancels.

    So a head whose W_QK is antisymmetric gives every position the score zero with itself.
    """
    half = Rational(1, 2)
    return Statement(
        DiagonalOf(matmul(X, W_QK, Transpose(X))),
        DiagonalOf(matmul(half, X, matadd(W_QK, Transpose(W_QK)), Transpose(X))),
        bind=(READS,),
        places=of_QK(),
    )


@theorem(
    title="W_Q and W_K are known only up to a change of basis inside the head",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("B8", "S1-29", "S2-28"),
)
def qk_gauge() -> Statement:
    """W_Q and W_K are determined by what a head computes only up to a change of basis. Multiply W_Q
    by an invertible C and W_K by Dᵀ, the inverse transpose of C: W_Q W_Kᵀ, and so every score, is
    unchanged. C and D are d_head × d_head with CD = I.

    So single coordinates of queries and keys have no meaning by themselves; compare heads through
    W_QK.

    With rotary positions there is less freedom, since C has to commute with the rotations
    (`rotary_qk_gauge`).
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
    """The dot product of two independent vectors of d_head entries, each of variance one, has
    variance d_head. Dividing by √d_head brings it back to one, which is why attention scores are
    divided by √d_head: at initialisation the softmax is then neither flat nor saturated.

    In the formula queries q[g] and keys k[e] run through two finite collections, each with
    uncorrelated coordinates of mean square one, and every query meets every key.

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
    """The mean score over all pairs of a query and a key is the dot product of the mean query with
    the mean key, so it is zero if the queries have mean zero. The mean square of the scores in
    `scores_have_variance_d_head` is then their variance. The rows q[g] are G queries and the rows
    k[e] are E keys, every query meeting every key.

    It is enough that one of the two means is zero.
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
    """In grouped-query attention several query heads share one key head, which saves memory. With G
    key heads and R query heads for each, query head g·R + r uses key head g, so the keys of
    neighbouring query heads repeat: 0 0 0 1 1 1 … for R = 3. As a matrix on the keys side by side
    this is I_G ⊗ 1_{1×R} ⊗ I_{d_head}; libraries call it `repeat_interleave`.

    With keys repeated in this way everything known of ordinary heads applies: W_QK of a query head
    is its W_Q times W_K[g]ᵀ.
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
    """In grouped-query attention the keys must be repeated as 0 0 1 1 2 2, not as 0 1 2 0 1 2. The
    second order swaps two factors of ⊗. Shapes fit and the model runs, but most query heads meet a
    key head of another group.

    The two agree only if there is one group, or one query head for each.
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
    """Attention scores need not be dot products. The first attention mechanism, for translation,
    scored a pair of states by a small neural network, e_ij = v · tanh(h_i W + h_j U). Here H_d and
    H_e hold the states of the two sentences as rows, and v (the weights of the output) has one
    entry for each hidden unit k.

    All facts about patterns hold wherever the scores come from. The bilinear score of transformers
    has two advantages: one matrix product gives all pairs, and there is a matrix W_QK to read.
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
    """Self-attention means that queries and keys come from the same sequence of states H: e_ij
    scores position j for position i, both in one text. The table of scores is square, and position
    i also scores itself. The weights W and U read the two states, and v weighs the hidden units.

    It is `additive_alignment_scores` with both sequences equal. The scores need not be symmetric,
    since the two arguments are read by different weights W and U.
    """
    H = MatrixSymbol("H", n, d)
    looks = {
        "H": Source("qk_in", rows=4),
        "W": Source("W_Q", cols=5),
        "U": Source("W_K", cols=5),
        "v": Source("W_V", rows=5, cols=1),
    }
    return Definition("e", _additive(H, H), _self_plainly, bind=(looks,))
