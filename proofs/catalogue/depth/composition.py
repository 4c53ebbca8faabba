"""Chapter 6: how heads of different layers meet: virtual heads, composition scores, chance."""

from __future__ import annotations

from typing import Any

from sympy import (
    Identity,
    MatrixSymbol,
    Min,
    Rational,
    Trace,
    Transpose,
    symbols,
)

from otimes.algebra.facts import Fact, attention_pattern
from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul
from otimes.algebra.language.nonlinear import RSQRT, Activation
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.residual_stream.chance import QUATERNIONS, UNIFORM, WEINGARTEN, G
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import alpha, beta, d, d_head, n, p, q, row, size
from otimes.proofs.claims import Bound, Definition, NonIdentity, Property, Square, Statement
from otimes.proofs.theorem import theorem

A_1, A_2 = MatrixSymbol("A_1", n, n), MatrixSymbol("A_2", n, n)
X_0 = MatrixSymbol("X_0", n, d)  # what the first layer reads
e = size("e")  # the size of the later head, where it may be another

# The earlier and the later head, as any two circuits through the stream.
W_1, W_2 = MatrixSymbol("W_1", p, d), MatrixSymbol("W_2", d, q)

PATTERNS = {
    "A_1": Source("pattern", 0, "earlier head"),
    "A_2": Source("pattern", 1, "later head"),
}
FACTORS = {
    f"{name}{k}": Source(f"W_{letter}", k - 1, f"{which} head")
    for k, which in ((1, "earlier"), (2, "later"))
    for name, letter in (("V_", "V"), ("O_", "O"))
}
READ_AND_WRITTEN = {
    "W_1": Source("W_O", 0, "earlier head", rows=2),
    "W_2": Source("W_V", 1, "later head", cols=2),
}


def _head(k: int, inner: Any = d_head) -> tuple[MatrixSymbol, MatrixSymbol]:
    return MatrixSymbol(f"V_{k}", d, inner), MatrixSymbol(f"O_{k}", inner, d)


def _squared(matrix: Any) -> Any:
    """Return ‖matrix‖², the sum of the squares of the entries."""
    return Trace(matmul(matrix, Transpose(matrix)))


@theorem(
    title="Two heads in sequence, in the row convention",
    chapter=6,
    convention="row",
    source=f"{PRIMER}, “Prediction head and transformer decompositions”; {FRAMEWORK}, "
    "“Two-layer attention-only transformers”",
    covers=("S3-018",),
)
def virtual_head_row() -> Statement:
    """What a later head makes of what an earlier head wrote, in the row convention: the patterns
    multiply on the left, the later one first, and the OV circuits on the right, the earlier one
    first.

    The order of the weights is the other way round than in the column convention, where everything
    stands on the left. To write the weights in the order of the patterns is the usual slip. The
    two heads need not be of one size.
    """
    (V_1, O_1), (V_2, O_2) = _head(1), _head(2, e)
    written = matmul(A_1, X_0, V_1, O_1)
    return Statement(
        matmul(A_2, written, V_2, O_2),
        matmul(matmul(A_2, A_1), X_0, matmul(matmul(V_1, O_1), matmul(V_2, O_2))),
        bind=({**PATTERNS, **FACTORS, "X_0": Source("embed")},),
    )


@theorem(
    title="The pattern of a virtual head is causal",
    chapter=6,
    source=f"{FRAMEWORK}, “Virtual attention heads”; Golub and Van Loan, §1.2",
    covers=("S0-49",),
)
def virtual_pattern_is_causal() -> Property:
    """A product of lower triangular matrices is lower triangular: if neither head looks ahead, the
    two together do not either. Each entry of the product is a sum over the positions in between.
    """
    given = (Fact("lower_triangular", A_1), Fact("lower_triangular", A_2))
    return Property(Fact("causal", matmul(A_2, A_1)), given, bind=(PATTERNS,))


@theorem(
    title="The pattern of a virtual head has rows that sum to one",
    chapter=6,
    source=f"{FRAMEWORK}, “Virtual attention heads”; Horn and Johnson, §8.7",
    covers=("S0-49",),
)
def virtual_pattern_is_stochastic() -> Property:
    """The rows of A₂A₁ have no negative entry and sum to one, so the pattern of a virtual head can
    be read like that of a head: it says how much of a position comes from which other. Averages of
    averages are averages.

    It is not the softmax of anything the model computes, and it moves weight to earlier positions
    the more heads are in a row.
    """
    given = (*attention_pattern(A_1, causal=False), *attention_pattern(A_2, causal=False))
    return Property(Fact("row_stochastic", matmul(A_2, A_1)), given, bind=(PATTERNS,))


@theorem(
    title="The rank of a virtual head is at most that of each of its heads",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Virtual attention heads”; Horn and Johnson, §0.4",
    covers=("S0-49",),
)
def virtual_ov_rank() -> Property:
    """What goes through two heads goes through the smaller of them: the OV circuit of a virtual
    head has rank at most d_head of either. A model has as many virtual heads as pairs of heads, but
    each is as narrow as a head, and usually narrower, as the two rarely fit.
    """
    (V_1, O_1), (V_2, O_2) = _head(1), _head(2, e)
    circuit = matmul(matmul(V_1, O_1), matmul(V_2, O_2))
    return Property(Fact("rank_at_most", circuit, Min(d, d_head, e)), bind=(FACTORS,))


@theorem(
    title="Two layers with one head each have four paths",
    chapter=6,
    convention="row",
    source=f"{PRIMER}, “Prediction as an ensemble of shallow networks”",
    covers=("S3-016",),
)
def two_heads_four_paths() -> Statement:
    """A model of two layers with one head each has four paths from the embedding to the logits:
    past both heads, through either, and through both.

    In print one also finds the sum without the patterns, x W_U + x W_OV¹ W_U + …; it holds only
    where every position attends to itself alone. Each OV circuit comes with the pattern that moves
    what it carries, and the two of a virtual head come in the other order than the weights.
    """
    (V_1, O_1), (V_2, O_2) = _head(1), _head(2)
    W_U = row.W_U
    OV_1, OV_2 = matmul(V_1, O_1), matmul(V_2, O_2)
    middle = matadd(X_0, matmul(A_1, X_0, OV_1))
    logits = matmul(matadd(middle, matmul(A_2, middle, OV_2)), W_U)
    no_patterns = matadd(
        matmul(X_0, W_U),
        matmul(X_0, OV_1, W_U),
        matmul(X_0, OV_1, OV_2, W_U),
        matmul(X_0, OV_2, W_U),
    )
    return Statement(
        logits,
        matadd(
            matmul(X_0, W_U),
            matmul(A_1, X_0, OV_1, W_U),
            matmul(A_2, A_1, X_0, OV_1, OV_2, W_U),
            matmul(A_2, X_0, OV_2, W_U),
        ),
        bind=(
            {
                "X_0": Source("embed"),
                "A_1": Source("pattern", 0, "earlier head"),
                "V_1": Source("W_V", 0, "earlier head"),
                "O_1": Source("W_O", 0, "earlier head"),
                "A_2": Source("pattern", 1, "later head"),
                "V_2": Source("W_V", 1, "later head"),
                "O_2": Source("W_O", 1, "later head"),
                "W_U": Source("W_U", cols=16),
            },
        ),
        printed={"E46": (logits, no_patterns)},
    )


@theorem(
    title="The full OV circuit",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Splitting attention head terms into query-key and output-value "
    f"circuits”; {PRIMER}, “Prediction head and transformer decompositions”",
    covers=("S3-017",),
)
def full_ov_circuit() -> Definition:
    """The path through one OV circuit, from token to logit: W_E W_OV W_U, a table of vocabulary by
    vocabulary. Row s says what attending fully to token s adds to each logit.

    Its rank is at most d_head, however large the vocabulary is. On a stream X in place of the
    embedding the same path is X W_OV W_U.
    """

    def plain(**given: Any) -> Any:
        W_E, W_V, W_O, W_U = (given[name] for name in ("W_E", "W_V", "W_O", "W_U"))
        found = []
        for source in W_E:
            row_of = list(source)
            for W in (W_V, W_O, W_U):
                row_of = [sum(row_of[a] * W[a][b] for a in range(len(W))) for b in range(len(W[0]))]
            found.append(row_of)
        return found

    return Definition(
        "full OV circuit",
        matmul(row.W_E, matmul(row.W_V, row.W_O), row.W_U),
        plain,
        bind=({"W_E": Source("W_E", rows=2), "W_U": Source("W_U", cols=2)},),
        obeys=("one_layer_expansion", "full_ov_trace"),
    )


@theorem(
    title="The composition score",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Three kinds of composition”; {PRIMER}, "
    "“Prediction head and transformer decompositions”",
    covers=("S3-019",),
)
def composition_score() -> Definition:
    """How much of what one matrix writes another reads: the norm of the product over the product of
    the norms. W₁ is the W_OV of the earlier head; W₂ is the W_QK of the later head for
    Q-composition, its transpose for K-composition, its W_OV for V-composition. The earlier matrix
    stands on the left here, as rows are multiplied from the right; in the column convention the
    same score is that of W₂ W₁.

    The score has no patterns in it, so it says what *could* be passed on and not what is; see what
    it is by chance before reading it.
    """

    def plain(**given: Any) -> Any:
        W_1, W_2 = given["W_1"], given["W_2"]
        product = [
            [sum(line[k] * W_2[k][j] for k in range(len(W_2))) for j in range(len(W_2[0]))]
            for line in W_1
        ]
        norms = [
            sum(entry * entry for line in each for entry in line) ** 0.5
            for each in (product, W_1, W_2)
        ]
        return [[norms[0] / (norms[1] * norms[2])]]

    product = matmul(W_1, W_2)
    return Definition(
        "composition score",
        matmul(_squared(product), _one_over(product), _one_over(W_1), _one_over(W_2)),
        plain,
        bind=(READ_AND_WRITTEN,),
        obeys=(
            "norm_of_product",
            "composition_score_invariant",
            "composition_by_chance",
            "composition_core",
        ),
    )


@theorem(
    title="The composition score is at most one",
    chapter=6,
    source="Golub and Van Loan, §2.3: the Frobenius norm is submultiplicative; Lagrange 1773",
    covers=("S3-019",),
)
def norm_of_product() -> Bound:
    """‖AB‖ ≤ ‖A‖ ‖B‖ for Frobenius norms. What is missing is a sum of squares, that of all
    a_ij b_kl − a_ik b_jl: Lagrange's identity, for every row of A and column of B.

    So the score lies between 0 and 1. It is 1 only if all rows of A and all columns of B point
    along one direction of the stream, so a score of 1 needs rank one; full circuits stay far below.
    """
    j, k = symbols("j k", integer=True)
    pair = kron(OneHot(j, d), OneHot(k, d))
    turned = kron(OneHot(k, d), OneHot(j, d))
    swap = HeadSum(matmul(pair, Transpose(turned)), (j, d), (k, d))
    both = kron(W_1, Transpose(W_2))
    crossed = matadd(both, matmul(-1, both, swap))
    return Bound(
        _squared(matmul(W_1, W_2)),
        _squared(W_1) * _squared(W_2),
        because=(Square(crossed, Rational(1, 2)),),
        tight={"W_1": [[2, 1]], "W_2": [[2], [1]]},
        bind=(
            {
                "W_1": Source("W_O", 0, "earlier head", rows=3, cols=8),
                "W_2": Source("W_V", 1, "later head", rows=8, cols=3),
            },
        ),
    )


@theorem(
    title="The composition score is invariant under scaling and under rotations of the stream",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Three kinds of composition”; Golub and Van Loan, §2.3",
    covers=("S3-019",),
)
def composition_score_invariant() -> Statement:
    """Scaling either matrix and rotating the stream between them leave the score as it is: norms of
    the product and of the factors change by the same factors. A gauge of a head leaves its circuit
    and so the score.

    It is rotations that are free, QQᵀ = I. Another change of basis of the stream keeps the product
    and changes the norms, and with them the score.
    """
    Q = MatrixSymbol("Q", d, d)
    first, second = matmul(alpha, W_1, Q), matmul(beta, Transpose(Q), W_2)
    return Statement(
        _squared(matmul(first, second)) * _squared(W_1) * _squared(W_2),
        _squared(matmul(W_1, W_2)) * _squared(first) * _squared(second),
        given=((matmul(Q, Transpose(Q)), Identity(d)),),
        on_models=False,
    )


@theorem(
    title="The mean of a rotated matrix is a multiple of the identity",
    chapter=6,
    source=WEINGARTEN,
    covers=("S3-020",),
)
def mean_of_rotated() -> Statement:
    """Turn a matrix M by rotations that are drawn uniformly: the mean of Q M Qᵀ is (tr M / d) I,
    and nothing is left of M but its trace. Of the rotations this uses second moments only, the mean
    of Q ⊗ Q being vec(I) vec(I)ᵀ/d; finite sets of rotations have the same, such as all signed
    permutations.

    With M = W_2 W_2ᵀ it is what makes the composition score of chance (`composition_by_chance`).
    """
    M, g = MatrixSymbol("M", d, d), symbols("g", integer=True)
    Q = Family("Q", (G,), d, d)[g]
    return Statement(
        matmul(1 / G, HeadSum(matmul(Q, M, Transpose(Q)), (g, G))),
        matmul(Trace(M) / d, Identity(d)),
        given=(UNIFORM, QUATERNIONS),
        on_models=False,
    )


@theorem(
    title="The composition score from d_head × d_head matrices",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Working with low-rank matrices”",
    covers=("S3-022", "S3-019"),
)
def composition_core() -> Statement:
    """The norm of the product of two circuits from matrices of d_head × d_head only: the Gram
    matrices of W_V¹ and of W_O², and the product W_O¹ W_V² in the middle.

    Nothing of d × d is formed, so all pairs of heads of a large model take seconds. Under a trace
    factors may be moved round in a circle, never exchanged.
    """
    (V_1, O_1), (V_2, O_2) = _head(1), _head(2, e)
    dense = matmul(matmul(V_1, O_1), matmul(V_2, O_2))
    core = matmul(O_1, V_2)
    small = matmul(matmul(Transpose(V_1), V_1), core, matmul(O_2, Transpose(O_2)), Transpose(core))
    return Statement(_squared(dense), Trace(small), bind=(FACTORS,))


@theorem(
    title="The K-composition term of a score",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Induction heads”, K-composition; {PRIMER}, “Induction heads”",
    covers=("S3-105",),
)
def k_composition_term() -> Statement:
    """What a head of the first layer changes in the scores of one of the second, if it writes for
    the keys only: X W_QK W_OVᵀ Xᵀ Aᵀ. The queries come straight from the embedding, and the
    earlier pattern stands transposed on the right: it moves what the *keys* are made of.

    With A a look one token back, the score of a query against key j compares the query with token
    j − 1. That is induction, which is K-composition and neither Q- nor V-composition.
    """
    V_1, O_1 = _head(1)
    circuit = matmul(row.W_Q, Transpose(row.W_K))
    OV = matmul(V_1, O_1)
    keys = matadd(X_0, matmul(A_1, X_0, OV))
    return Statement(
        matadd(
            matmul(X_0, row.W_Q, Transpose(matmul(keys, row.W_K))),
            matmul(-1, X_0, row.W_Q, Transpose(matmul(X_0, row.W_K))),
        ),
        matmul(X_0, circuit, Transpose(OV), Transpose(X_0), Transpose(A_1)),
        bind=(
            {
                "X_0": Source("embed"),
                "A_1": Source("pattern", 0, "earlier head"),
                "V_1": Source("W_V", 0, "earlier head"),
                "O_1": Source("W_O", 0, "earlier head"),
                "W_Q": Source("W_Q", 1, "later head"),
                "W_K": Source("W_K", 1, "later head"),
            },
        ),
    )


@theorem(
    title="A virtual head is no OV circuit of one head times the QK circuit of another",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Three kinds of composition”",
)
def virtual_head_is_not_ov_times_qk() -> NonIdentity:
    """A head that reads another through its *values* is a virtual head: its weights are the product
    of two OV circuits. The product of the earlier W_OV and the later W_QK also is d × d, so shapes
    do not tell, but it belongs to a score, as the Q-composition term, and moves nothing.
    """
    (V_1, O_1), (V_2, O_2) = _head(1), _head(2)
    OV = matmul(V_1, O_1)
    return NonIdentity(
        matmul(A_2, A_1, X_0, OV, matmul(V_2, O_2)),
        matmul(A_2, A_1, X_0, OV, matmul(row.W_Q, Transpose(row.W_K))),
        bind=(
            {
                "X_0": Source("embed"),
                "A_1": Source("pattern", 0, "earlier head"),
                "V_1": Source("W_V", 0, "earlier head"),
                "O_1": Source("W_O", 0, "earlier head"),
                "A_2": Source("pattern", 1, "later head"),
                "V_2": Source("W_V", 1, "later head"),
                "O_2": Source("W_O", 1, "later head"),
                "W_Q": Source("W_Q", 1, "later head"),
                "W_K": Source("W_K", 1, "later head"),
            },
        ),
        on_models=True,
    )


@theorem(
    title=(
        "On a stream without structure the composition score measures the size of what is passed on"
    ),
    chapter=6,
    source=f"{FRAMEWORK}, “Three kinds of composition”; the Frobenius norm as an average",
)
def composition_of_white_stream() -> Statement:
    """If what the earlier head reads is equally strong in all directions, XᵀX = c I, then the norm
    of the product of the circuits is, up to c, the size of what the two really pass on.

    A trained stream is nothing of the kind: a few directions carry most of it. A pair may have a
    high score on directions that are never used, or pass on much along one direction and have a low
    score. The score is a fact about weights; what is passed on takes X, and the patterns.
    """
    X = MatrixSymbol("X", n, d)
    M_1, M_2 = MatrixSymbol("M_1", d, d), MatrixSymbol("M_2", d, d)
    return Statement(
        _squared(matmul(X, M_1, M_2)),
        alpha * _squared(matmul(M_1, M_2)),
        given=((matmul(Transpose(X), X), matmul(alpha, Identity(d))),),
        on_models=False,
    )


def _one_over(matrix: Any) -> Any:
    """Return 1/‖matrix‖, as a matrix of one entry."""
    return Activation(RSQRT, matmul(_squared(matrix), Identity(1)))
