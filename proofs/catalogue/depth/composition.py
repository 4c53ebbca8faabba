"""Chapter 6: how heads of different layers meet: virtual heads, composition scores, chance."""

from __future__ import annotations

from collections.abc import Sequence
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
from otimes.proofs.catalogue.recorded import of_QK
from otimes.proofs.catalogue.residual_stream.chance import QUATERNIONS, UNIFORM, WEINGARTEN, G
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import alpha, beta, d, d_head, n, p, q, row, size
from otimes.proofs.claims import Bound, Definition, NonIdentity, Place, Property, Square, Statement
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


X_1 = MatrixSymbol("X_1", n, d)  # the stream that the later head reads
TWO_HEADS = {
    **PATTERNS,
    **FACTORS,
    "X_0": Source("embed"),
    "X_1": Source("resid_pre", layer=1),
}


def of_two_heads(earlier: Sequence[Any], later: Sequence[Any]) -> dict[Place, Any]:
    """Return what two heads write, each from the stream that it reads, as it is recorded."""
    return {
        Source("head_out", 0, "earlier head"): matmul(A_1, X_0, *earlier),
        Source("head_out", 1, "later head"): matmul(A_2, X_1, *later),
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
    """In the row convention, the output of a second head that reads a first head's output is A_2
    A_1 X (V_1 O_1)(V_2 O_2), with X the stream X_0: the later pattern stands first on the left, and
    the earlier OV circuit first on the right.

    In the column convention all factors stand on the left, so the weights have the other order
    (`heads_compose`). Writing them in the order of the patterns is the usual slip. The two heads
    may have different widths.
    """
    (V_1, O_1), (V_2, O_2) = _head(1), _head(2, e)
    written = matmul(A_1, X_0, V_1, O_1)
    return Statement(
        matmul(A_2, written, V_2, O_2),
        matmul(matmul(A_2, A_1), X_0, matmul(matmul(V_1, O_1), matmul(V_2, O_2))),
        bind=(TWO_HEADS,),
        places=of_two_heads(_head(1), _head(2, e)),
    )


@theorem(
    title="The pattern of a virtual head is causal",
    chapter=6,
    source=f"{FRAMEWORK}, “Virtual attention heads”; Golub and Van Loan, §1.2",
    covers=("S0-49",),
)
def virtual_pattern_is_causal() -> Property:
    """If two heads look at no later positions, their composition does not either: the product of
    two lower triangular matrices is lower triangular. An entry of A_2 A_1 is a sum over all
    positions in between.
    """
    given = (Fact("lower_triangular", A_1), Fact("lower_triangular", A_2))
    return Property(
        Fact("causal", matmul(A_2, A_1)),
        given,
        bind=(TWO_HEADS,),
        places=of_two_heads(_head(1), _head(2)),
    )


@theorem(
    title="The pattern of a virtual head has rows that sum to one",
    chapter=6,
    source=f"{FRAMEWORK}, “Virtual attention heads”; Horn and Johnson, §8.7",
    covers=("S0-49",),
)
def virtual_pattern_is_stochastic() -> Property:
    """The pattern A_2 A_1 of a virtual head, a later head that reads an earlier one, has
    non-negative entries and rows that sum to one. So it can be read like the pattern of a head: how
    much of what arrives at one position came from another.

    It is not a softmax of any scores. With more heads in a row it moves weight to earlier
    positions.
    """
    given = (*attention_pattern(A_1, causal=False), *attention_pattern(A_2, causal=False))
    return Property(
        Fact("row_stochastic", matmul(A_2, A_1)),
        given,
        bind=(TWO_HEADS,),
        places=of_two_heads(_head(1), _head(2)),
    )


@theorem(
    title="The rank of a virtual head is at most that of each of its heads",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Virtual attention heads”; Horn and Johnson, §0.4",
    covers=("S0-49",),
)
def virtual_ov_rank() -> Property:
    """What passes through two heads in sequence passes through the narrower of them: the OV circuit
    of a virtual head has rank at most the smaller of the two widths, d_head and e. The circuits are
    V_1 O_1 and V_2 O_2, value times output weights of the two heads.

    So a model has many virtual heads, but each can carry at most what one head can, and usually
    less, since what one writes is seldom what the other reads.
    """
    (V_1, O_1), (V_2, O_2) = _head(1), _head(2, e)
    circuit = matmul(matmul(V_1, O_1), matmul(V_2, O_2))
    return Property(
        Fact("rank_at_most", circuit, Min(d, d_head, e)),
        bind=(TWO_HEADS,),
        places=of_two_heads(_head(1), _head(2, e)),
    )


@theorem(
    title="Two layers with one head each have four paths",
    chapter=6,
    convention="row",
    source=f"{PRIMER}, “Prediction as an ensemble of shallow networks”",
    covers=("S3-016",),
)
def two_heads_four_paths() -> Statement:
    """A two-layer model with one head in each layer has four paths from the embedding to the
    logits: past both heads, through the first, through the second, and through both.

    It is the smallest example of a path expansion with a virtual head.

    In print one also finds this sum without the patterns A_1 and A_2. That holds only if every
    position attends to itself alone. In the row convention the weights of the virtual head stand in
    the order V_1 O_1 V_2 O_2, the patterns in the order A_2 A_1.
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
                "X_1": Source("resid_pre", layer=1),
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
        places=of_two_heads(_head(1), _head(2)),
        unchanged_by={"W_U with its columns shifted": "the paths are those to any token"},
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
    """The full OV circuit of a head is the table W_E (W_V W_O) W_U from tokens to tokens: row s
    says how attending fully to source token s changes each logit. It is V × V, of rank at most
    d_head.

    It is what one reads to see what a head copies or suppresses, without any prompt. Applied to a
    stream X in place of the embedding, the same path is X W_OV W_U.

    It is not W_OV alone, which acts on the stream (`bare_trace_is_not_full_trace`).
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
    """The composition score measures how much of what one component writes another one reads: ‖W_1
    W_2‖/(‖W_1‖ ‖W_2‖), with norms that are roots of sums of squares. W_1 is the OV circuit of the
    earlier head. W_2 is the later head's W_QK for Q-composition, its transpose for K-composition,
    and its W_OV for V-composition. The score is between 0 and 1.

    It finds pairs of heads that may work together, such as those that do induction.

    It contains no patterns, so it says what could be passed on and not what is. By chance it is
    1/√d (`composition_by_chance`). In the column convention the product is W_2 W_1.
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
    """The norm of a product is at most the product of the norms, ‖AB‖ ≤ ‖A‖ ‖B‖, so a composition
    score is at most one. Norms are roots of sums of squares; the difference of the two sides is a
    sum of squares (Lagrange's identity). In the formula A and B are W_1 and W_2, and norms are
    squared.

    The score is 1 only if both matrices have rank one and meet in the same direction of the stream.
    Scores of real heads are far smaller.
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
    """The composition score does not change when either matrix is multiplied by a number, or when
    the stream between them is rotated: W_1 Q and QᵀW_2 have the same product and the same norms.
    The equation states it without roots and divisions. In the formula the numbers are α and β and
    the rotation is Q.

    So it does not depend on arbitrary choices in how a model stores its weights.

    Only rotations are free. Another invertible change of basis of the stream keeps the product but
    changes the norms, and so the score.
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
    """The mean of Q M Qᵀ over uniformly random rotations Q is (tr M/d) I: all that is left of a
    matrix M is its trace.

    With M = W_2 W_2ᵀ it gives the composition score that unrelated components have by chance
    (`composition_by_chance`).

    Only second moments of the rotations are used, which is the hypothesis. Uniformly random
    rotations have them (`moments_of_random_rotations`), and so have some finite sets, such as all
    permutations with signs.
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
    """The norm of the product of two circuits can be computed from d_head × d_head matrices: the
    Gram matrices V_1ᵀV_1 and O_2O_2ᵀ, and the product O_1V_2 in the middle. Nothing of size d × d
    is formed. V_1 and O_1 are the value and output weights of the earlier head, V_2 and O_2 those
    of the later.

    So composition scores of all pairs of heads in a large model take seconds. Under a trace factors
    may be moved from the end to the front, but never exchanged.
    """
    (V_1, O_1), (V_2, O_2) = _head(1), _head(2, e)
    dense = matmul(matmul(V_1, O_1), matmul(V_2, O_2))
    core = matmul(O_1, V_2)
    small = matmul(matmul(Transpose(V_1), V_1), core, matmul(O_2, Transpose(O_2)), Transpose(core))
    return Statement(
        _squared(dense), Trace(small), bind=(TWO_HEADS,), places=of_two_heads(_head(1), _head(2, e))
    )


@theorem(
    title="The K-composition term of a score",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Induction heads”, K-composition; {PRIMER}, “Induction heads”",
    covers=("S3-105",),
)
def k_composition_term() -> Statement:
    """If an earlier head contributes to the keys of a later head, the scores change by X W_QK W_OVᵀ
    Xᵀ A_1ᵀ (X is X_0, W_OV = V_1 O_1). The queries come straight from the embedding; the earlier
    pattern stands transposed on the right, since it moves what the keys are made of.

    If A_1 attends to the previous token, the query is compared with the token before each key. That
    is how induction heads work: by K-composition, neither by Q- nor by V-composition.
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
                "qk_in": Source("qk_in", layer=1),
                "A_1": Source("pattern", 0, "earlier head"),
                "V_1": Source("W_V", 0, "earlier head"),
                "O_1": Source("W_O", 0, "earlier head"),
                "W_Q": Source("W_Q", 1, "later head"),
                "W_K": Source("W_K", 1, "later head"),
            },
        ),
        places={
            Source("head_out", 0, "earlier head"): matmul(A_1, X_0, OV),
            **of_QK(layer=1, head="later head"),
        },
    )


@theorem(
    title="A virtual head is no OV circuit of one head times the QK circuit of another",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Three kinds of composition”",
)
def virtual_head_is_not_ov_times_qk() -> NonIdentity:
    """A later head that reads an earlier one through its values multiplies the two OV circuits. It
    does not multiply the earlier OV circuit by the later QK circuit. The earlier head has the
    pattern A_1 and the circuit V_1 O_1, the later A_2 and V_2 O_2.

    The second product is also d × d, so shapes do not show the mistake. It belongs to a score, as a
    Q-composition term, and moves nothing.
    """
    (V_1, O_1), (V_2, O_2) = _head(1), _head(2)
    OV = matmul(V_1, O_1)
    return NonIdentity(
        matmul(A_2, A_1, X_0, OV, matmul(V_2, O_2)),
        matmul(A_2, A_1, X_0, OV, matmul(row.W_Q, Transpose(row.W_K))),
        bind=(
            {
                "X_0": Source("embed", example=True),
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
    """On a stream that is equally strong in all directions, XᵀX = α I, the composition score
    measures what is really passed on: ‖X M_1 M_2‖² = α ‖M_1 M_2‖², for circuits M_1 and M_2.

    The streams of trained models are not like that; a few directions carry most of them. A pair of
    heads can have a high score on directions that are never used, or a low score and pass on much
    along one direction.
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
