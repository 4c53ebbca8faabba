"""Chapter 7: eigenvalues of circuits: copying, and how to have them from small matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sympy import (
    HadamardProduct,
    Identity,
    ImmutableMatrix,
    MatrixExpr,
    MatrixSymbol,
    Min,
    OneMatrix,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.facts import Fact
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.numeric.binding import Source
from otimes.numeric.circuits.copying import copying_scores, ov_eigenvalues
from otimes.numeric.model import Model
from otimes.proofs.catalogue.recorded import of_ends, of_OV
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import L, V, d, d_head, l, n, p, q, row, size
from otimes.proofs.claims import (
    Definition,
    Load,
    Method,
    NonIdentity,
    Observation,
    Observed,
    Property,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

COPYING = f"{FRAMEWORK}, “Detecting copying behavior”"
SPECTRUM = "Horn and Johnson, §1.3: AB and BA"
MCDOUGALL = "McDougall et al. 2023, “Copy Suppression”"
GOULD = "Gould et al. 2023, “Successor Heads”"
ROUNDOFF = np.finfo(float).eps / 2

A, B = MatrixSymbol("A", p, q), MatrixSymbol("B", q, p)
FULL = matmul(row.W_E, matmul(row.W_V, row.W_O), row.W_U)


@theorem(
    title="A (BA)^k = (AB)^k A: products pass through powers",
    chapter=7,
    source=SPECTRUM,
    covers=("B13",),
)
def powers_of_AB_and_BA() -> Statement:
    """A product of two matrices in one order determines the powers of the product in the other
    order: (AB)^L A = A (BA)^L for every L, by moving brackets. A is p × q and B is q × p.

    So a large matrix AB that passes through a small dimension can be studied through the small
    matrix BA. For the full OV circuit of a head, AB is V × V and BA is d_head × d_head.
    """
    return Statement(
        matmul(LayerProduct(matmul(A, B), (l, L)), A),
        matmul(A, LayerProduct(matmul(B, A), (l, L))),
        on_models=False,
    )


@theorem(
    title="AB and BA have the same power sums, all at once",
    chapter=7,
    source=SPECTRUM,
    covers=("S3-102", "B13"),
)
def power_sums_of_AB_and_BA() -> Statement:
    """AB and BA have the same nonzero eigenvalues, each as often. The equation says it for all
    power sums at once: as a series in z the two sides are Σ z^k tr (AB)^{k+1} and Σ z^k tr
    (BA)^{k+1}, and traces of powers are sums of powers of the eigenvalues. R_p and R_q are the
    inverses of I − zAB and I − zBA. A is p × q and B is q × p.

    So the eigenvalues of a head's V × V circuit are those of a d_head × d_head matrix, and zeros.
    """
    z = Symbol("z", real=True)
    R_p, R_q = MatrixSymbol("R_p", p, p), MatrixSymbol("R_q", q, q)
    large = matadd(Identity(p), matmul(-1 * z, A, B))
    small = matadd(Identity(q), matmul(-1 * z, B, A))
    return Statement(
        Trace(matmul(A, B, R_p)),
        Trace(matmul(B, A, R_q)),
        given=((matmul(large, R_p), Identity(p)), (matmul(small, R_q), Identity(q))),
        on_models=False,
    )


@theorem(
    title="The traces of powers of AB and of BA are equal",
    chapter=7,
    source=SPECTRUM,
    covers=("S3-102", "B13"),
)
def traces_of_AB_and_BA() -> Statement:
    """The traces of (AB)^k and (BA)^k are equal for every k ≥ 1. P and Q stand for the powers one
    lower, which satisfy P A = A Q (`powers_of_AB_and_BA`). A is p × q and B is q × p.

    Traces of powers are sums of powers of eigenvalues. So the large and the small matrix have the
    same sums of eigenvalues, of their squares, and so on.
    """
    P, Q = MatrixSymbol("P", p, p), MatrixSymbol("Q", q, q)
    return Statement(
        Trace(matmul(P, A, B)),
        Trace(matmul(Q, B, A)),
        given=((matmul(P, A), matmul(A, Q)),),
        on_models=False,
    )


@theorem(
    title="Eigenvectors of BA give those of AB",
    chapter=7,
    source=SPECTRUM,
    covers=("S3-102", "B13"),
)
def eigenvectors_of_small() -> Statement:
    """Each eigenvector of the small product BA gives one of the large product AB: if BA v = λ v,
    then A v satisfies AB (A v) = λ (A v), and A v ≠ 0 if λ ≠ 0. A is p × q, B is q × p and v is q
    × 1.

    For a head's full OV circuit v has d_head entries, and A v has one entry for each token of the
    vocabulary. So nothing large has to be decomposed.
    """
    v, value = MatrixSymbol("v", q, 1), Symbol("lambda", real=True)
    return Statement(
        matmul(matmul(A, B), matmul(A, v)),
        matmul(value, matmul(A, v)),
        given=((matmul(B, A, v), matmul(value, v)),),
        on_models=False,
    )


@theorem(
    title="The trace of the full OV circuit is the sum of what tokens do to their own logits",
    chapter=7,
    convention="row",
    source=COPYING,
    covers=("S3-101", "S3-102"),
)
def full_ov_trace() -> Statement:
    """The sum over all tokens of what attending to a token adds to its own logit is the trace of
    the full OV circuit W_E W_OV W_U. It equals the trace of the small matrix W_O W_U W_E W_V
    (d_head × d_head).

    The trace is the sum of the eigenvalues. This sum is all that ties eigenvalues to copying
    (`positive_eigenvalues_without_copying`).
    """
    t = Symbol("t", integer=True)
    token = OneHot(t, V)
    own = HeadSum(matmul(Transpose(token), FULL, token), (t, V))
    small = matmul(row.W_O, matmul(row.W_U, row.W_E), row.W_V)
    return Statement(Trace(own), Trace(small), places={**of_OV(), **of_ends()})


@theorem(
    title="The trace is the sum of the eigenvalues",
    chapter=7,
    source="Horn and Johnson, §1.2",
    covers=("S3-101",),
)
def trace_is_sum_of_eigenvalues() -> Statement:
    """The trace of a matrix is the sum of its eigenvalues. It is proved here for a matrix M with a
    basis of eigenvectors, the columns of S; it is true for all square matrices. The eigenvalues are
    the entries of λ, and S_back is the inverse of S.

    Only the sums agree. An eigenvalue of the full OV circuit is not the effect of some token on
    itself.
    """
    M, S, S_back = (MatrixSymbol(name, n, n) for name in ("M", "S", "S_back"))
    values = MatrixSymbol("lambda", n, 1)
    return Statement(
        Trace(M),
        Trace(DiagMatrix(values)),
        given=(
            (matmul(M, S), matmul(S, DiagMatrix(values))),
            (matmul(S, S_back), Identity(n)),
        ),
        printed={"E14": (DiagonalOf(M), values)},
        on_models=False,
    )


@theorem(
    title="Positive eigenvalues of the full OV circuit do not make every token copy itself",
    chapter=7,
    source=f"{COPYING}; {PRIMER}, “Copying heads”",
    covers=("S3-101",),
)
def positive_eigenvalues_without_copying() -> Statement:
    """A matrix can have positive eigenvalues only and still have a negative diagonal entry. `[[−1,
    5], [−1, 4]]` satisfies M² − 3M + I = 0, so its eigenvalues are the roots of λ² − 3λ + 1, both
    positive (about 2.62 and 0.38), but its first diagonal entry is −1.

    In print, positive eigenvalues of a head's full OV circuit are said to mean that tokens raise
    their own logits. Read as a statement about each token this is false: here token 0 lowers its
    own. Only the sum of the diagonal is fixed by the eigenvalues.
    """
    M = ImmutableMatrix([[-1, 5], [-1, 4]])
    return Statement(
        matadd(matmul(M, M), matmul(-3, M), Identity(2)), ZeroMatrix(2, 2), on_models=False
    )


@theorem(
    title="copying_scores: eigenvalues of the full OV circuit from a small matrix",
    chapter=7,
    source=COPYING,
    covers=("S3-101", "S3-102", "B13"),
)
def copying_scores_method() -> Method:
    """The copying score of a head says whether it tends to raise the logits of the tokens that it
    attends to: Σ Re λ/Σ |λ| over the eigenvalues λ of its full OV circuit M = W_E W_OV W_U. It is
    between −1 and 1, and 1 if all eigenvalues are positive. `ot.copying_scores` computes it from a
    d_head × d_head matrix with the same nonzero eigenvalues.

    The check compares Σ λ and Σ λ² with the traces of M and M², by loops. Eigenvalues of a matrix
    that is far from symmetric are sensitive to rounding; these sums are not.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers or model.config.norm != "none":
            return
        found = ov_eigenvalues(model).values[0, 0]
        W_V, W_O = model.W_V[0, 0], model.W_O[0, 0]
        large_left, large_right = model.W_E @ W_V, W_O @ model.W_U
        size = np.linalg.norm(large_left) * np.linalg.norm(large_right)
        roundings = 16 * (model.d_vocab + model.d_model) * ROUNDOFF
        trace = sum(
            float(a * b)
            for left, right in zip(large_left, large_right.T, strict=True)
            for a, b in zip(left.tolist(), right.tolist(), strict=True)
        )
        yield Trial("Σ λ", float(found.sum().real), trace, roundings * size)
        square = float(
            np.einsum(
                "vk,kw,wl,lv->", large_left, large_right, large_left, large_right, optimize=True
            )
        )
        yield Trial("Σ λ²", float((found**2).sum().real), square, roundings * size**2)
        score = copying_scores(model).values[0, 0]
        plain = sum(value.real for value in found.tolist()) / sum(map(abs, found.tolist()))
        yield Trial("score", float(score), float(plain), roundings)

    return Method(
        "ot.copying_scores",
        ("full_ov_trace", "power_sums_of_AB_and_BA"),
        trials,
        law=r"\sum \mathrm{Re}\, \lambda / \sum |\lambda|",
    )


@theorem(
    title="At most d_head eigenvalues of the full OV circuit are not zero",
    chapter=7,
    convention="row",
    source=COPYING,
    covers=("S3-102",),
)
def full_ov_rank() -> Property:
    """The full OV circuit W_E W_V W_O W_U of a head is V × V with rank at most d_head, so at least
    V − d_head of its eigenvalues are zero.

    Statistics of its eigenvalues, such as the share that is positive, make sense for the d_head
    others only (`counting_is_a_trap`).
    """
    return Property(
        Fact("rank_at_most", FULL, Min(V, d, d_head)),
        bind=({"W_E": Source("W_E", rows=60), "W_U": Source("W_U", cols=60)},),
    )


@theorem(
    title="The trace of W_OV is not the trace of the full OV circuit",
    chapter=7,
    convention="row",
    source=COPYING,
    covers=("B12",),
)
def bare_trace_is_not_full_trace() -> NonIdentity:
    """The trace of W_OV and the trace of the full OV circuit W_E W_OV W_U are different numbers and
    may have different signs. The first asks whether directions of the stream are written back as
    they were read, the second whether tokens raise their own logits.

    So a copying score has to say of which of the two it is.
    """
    return NonIdentity(Trace(matmul(row.W_V, row.W_O)), Trace(FULL), on_models=True)


@theorem(
    title="Copying scores of W_OV and of the full OV circuit differ",
    chapter=7,
    source=COPYING,
    covers=("B12",),
)
def bare_and_full_scores() -> Observation:
    """Do the copying scores of W_OV and of the full OV circuit agree in trained models? Both are
    computed for every head of the bundled models without norms.

    They can differ if embedding and unembedding are not transposes of each other
    (`bare_trace_is_not_full_trace`). Where they do, one must not be quoted for the other.
    """

    def observe(load: Load) -> Observed:
        pairs = []
        for name in ("one_layer", "two_layer", "induction"):
            model = load(name)
            scores = [copying_scores(model, circuit).values for circuit in ("full", "bare")]
            pairs += list(zip(*(each.ravel().tolist() for each in scores), strict=True))
        opposite = [(full, bare) for full, bare in pairs if full * bare < 0]
        far = max(opposite or pairs, key=lambda pair: abs(pair[0] - pair[1]))
        figure = (
            f"{len(opposite)} of {len(pairs)} heads have scores of opposite signs; furthest apart "
            f"full {far[0]:+.2f}, bare {far[1]:+.2f}"
        )
        return Observed(figure, {"heads with opposite signs": len(opposite)})

    return Observation(
        "some head has scores of opposite signs",
        observe,
        {"heads with opposite signs": 0},
        outcome="seen at random too",
    )


@theorem(
    title="Counting positive eigenvalues of a rank-deficient matrix counts rounding errors",
    chapter=7,
    source=f"{COPYING}; Trefethen and Embree 2005, “Spectra and Pseudospectra”",
    covers=("S3-101", "S3-102"),
)
def counting_is_a_trap() -> Observation:
    """Counting the positive eigenvalues of a full OV circuit as a V × V matrix mostly counts
    rounding errors. Nearly all of its eigenvalues are zero, and numerical libraries return them as
    tiny numbers of either sign.

    From the d_head × d_head matrix there are d_head eigenvalues to count. A score weighted by size,
    such as Σ Re λ/Σ |λ|, is hardly affected.
    """

    def observe(load: Load) -> Observed:
        model = load("one_layer")
        few = 300  # tokens: a smaller vocabulary, in which the large matrix is soon decomposed
        left = model.W_E[:few] @ model.W_V[0, 0]
        right = model.W_O[0, 0] @ model.W_U[:, :few]
        large, small = np.linalg.eigvals(left @ right), np.linalg.eigvals(right @ left)
        counted, true = int((large.real > 0).sum()), int((small.real > 0).sum())
        figure = (
            f"head 0.0 of one_layer on {few} tokens: {counted} of {few} eigenvalues of the large "
            f"matrix have a positive real part, {true} of {len(small)} of the small one"
        )
        return Observed(figure, {"counted over true": counted / true})

    return Observation(
        "the large matrix shows more than twice as many eigenvalues with a positive real part as "
        "the small one",
        observe,
        {"counted over true": 2.0},
        outcome="seen at random too",
    )


@theorem(
    title="The diagonal of the full OV circuit: copying and copy suppression",
    chapter=7,
    convention="row",
    source=f"{MCDOUGALL}; {PRIMER}, “Copy suppression heads”",
    covers=("S3-108",),
)
def own_logit() -> Definition:
    """The diagonal of the full OV circuit says what attending to a token does to that token's own
    logit. A head with a mostly positive diagonal copies; with a mostly negative one it suppresses
    what it attends to.

    Copy suppression is the second case together with queries that ask for the token that is about
    to be predicted: the head then takes back a naive copy.
    """

    def plain(**given: Any) -> Any:
        W_E, W_V, W_O, W_U = (given[name] for name in ("W_E", "W_V", "W_O", "W_U"))
        found = []
        for token, source in enumerate(W_E):
            vector = list(source)
            for W in (W_V, W_O):
                vector = [sum(vector[a] * W[a][b] for a in range(len(W))) for b in range(len(W[0]))]
            found.append([sum(vector[a] * W_U[a][token] for a in range(len(W_U)))])
        return found

    return Definition(
        "effect on the own logit",
        DiagonalOf(FULL),
        plain,
        bind=({"W_E": Source("W_E", rows=6), "W_U": Source("W_U", cols=6)},),
        obeys=("own_logit_is_moved", "full_ov_trace"),
    )


@theorem(
    title="The diagonal of the full OV circuit is the effect of attention on a token's own logit",
    chapter=7,
    convention="row",
    source=MCDOUGALL,
    covers=("S3-108",),
)
def own_logit_is_moved() -> Statement:
    """If a head attends to token t with weight a, it adds a times entry (t, t) of its full OV
    circuit to the logit of t. So the sign of that entry says whether attention raises or lowers the
    token attended to.

    It does not say whether the head attends to t; that is a matter of its QK circuit.
    """
    t, weight = Symbol("t", integer=True), Symbol("a", real=True)
    token = OneHot(t, V)
    embedded = matmul(Transpose(token), row.W_E)
    head = matmul(weight, embedded, row.W_V, row.W_O)
    return Statement(
        matmul(head, row.W_U, token),
        matmul(weight, Transpose(token), FULL, token),
        on_models=False,
    )


@theorem(
    title="Whether a query made from a predicted token asks for that token",
    chapter=7,
    convention="row",
    source=f"{MCDOUGALL}; {PRIMER}, “Copy suppression heads”",
    covers=("S3-108",),
)
def prediction_asks_for_its_token() -> Definition:
    """A head that suppresses copies must attend to the token that is about to be predicted. The
    stream then points along that token's column of W_U, so take this column as the query and the
    token's embedding as the key: their dot products, the diagonal of W_Uᵀ W_Q W_Kᵀ W_Eᵀ, say for
    each token how much its prediction asks for it. W_Q and W_K are the query and key weights of the
    head.

    Copy suppression is a large entry here together with a negative one in the full OV circuit
    (`own_logit`). A score means something only in comparison with the other entries of its row,
    those of other tokens.
    """

    def plain(**given: Any) -> Any:
        W_E, W_Q, W_K, W_U = (given[name] for name in ("W_E", "W_Q", "W_K", "W_U"))
        found = []
        for token, embedded in enumerate(W_E):
            column = [row_of_U[token] for row_of_U in W_U]
            query, key = (
                [sum(vector[a] * W[a][b] for a in range(len(W))) for b in range(len(W[0]))]
                for vector, W in ((column, W_Q), (embedded, W_K))
            )
            found.append([sum(q * k for q, k in zip(query, key, strict=True))])
        return found

    queries, keys = matmul(Transpose(row.W_U), row.W_Q), matmul(row.W_E, row.W_K)
    asked = matmul(HadamardProduct(queries, keys, evaluate=False), OneMatrix(d_head, 1))
    return Definition(
        "how much a prediction asks for its token",
        asked,
        plain,
        bind=({"W_E": Source("W_E", rows=6), "W_U": Source("W_U", cols=6)},),
        obeys=("score_is_bilinear", "scores_through_W_QK"),
    )


@theorem(
    title="Copy suppression in the bundled models",
    chapter=7,
    source=MCDOUGALL,
    covers=("S3-108",),
)
def copy_suppression_seen() -> Observation:
    """Do the bundled models have heads that suppress copies, as GPT-2 has? For each head two things
    are computed: the share of tokens whose diagonal entry in the full OV circuit is negative, and
    whether a query made from a token's unembedding column asks for that token more than for nine
    tenths of the others.
    """

    def observe(load: Load) -> Observed:
        best: tuple[float, float, str] = (0.0, 0.0, "none")
        for name in ("one_layer", "two_layer", "induction"):
            model = load(name)
            for layer in range(model.n_layers):
                for head in range(model.n_heads):
                    wrote = model.W_E @ model.W_V[layer, head] @ model.W_O[layer, head]
                    own = np.einsum("td,dt->t", wrote, model.W_U)
                    queries = model.W_U.T @ model.W_Q[layer, head]
                    scores = queries @ (model.W_E @ model.W_K[layer, head]).T
                    above = (scores < scores.diagonal()[:, None]).mean(axis=1)
                    found = float((own < 0).mean()), float((above > 0.9).mean())
                    best = max(best, (*found, f"{name} {layer}.{head}"))
        figure = (
            f"the most suppressing head is {best[2]}: {best[0]:.0%} of tokens lower their own "
            f"logit and for {best[1]:.0%} the query made of the prediction asks for the token"
        )
        return Observed(figure, {"lowered": best[0], "asked for": best[1]})

    return Observation(
        "one head lowers more than nine tenths of the tokens, and for more than half of them its "
        "query matches the predicted token",
        observe,
        {"lowered": 0.9, "asked for": 0.5},
        outcome="not seen",
    )


@theorem(
    title="The effective OV circuit of a successor head",
    chapter=7,
    convention="row",
    source=f"{GOULD}; {PRIMER}, “Successor heads”",
    covers=("S3-110",),
)
def effective_ov() -> Statement:
    """In real models tokens pass through the first MLP before later heads read them. The effective
    OV circuit is the table whose row t says what attending to token t does to the logits, with the
    token's embedding replaced by the output of that MLP: g(e_t W_E W_in) W_out W_OV W_U.

    It is used to find successor heads, which map Monday to Tuesday or 1 to 2: their largest entry
    in a row is the next item.

    In print the formula ends in W_V instead of W_U, which is V × d_head and no table of tokens.
    """
    d_mlp, t = size("d_mlp"), Symbol("t", integer=True)
    W_in, W_out = MatrixSymbol("W_in", d, d_mlp), MatrixSymbol("W_out", d_mlp, d)
    token = OneHot(t, V)

    def through(rows: MatrixExpr) -> MatrixExpr:
        return matmul(Activation("g", matmul(rows, W_in)), W_out)

    circuit = matmul(through(row.W_E), matmul(row.W_V, row.W_O), row.W_U)

    def into_values() -> tuple[Any, Any]:
        return circuit, matmul(through(row.W_E), matmul(row.W_V, row.W_O), row.W_V)

    return Statement(
        matmul(Transpose(token), circuit),
        matmul(through(matmul(Transpose(token), row.W_E)), row.W_V, row.W_O, row.W_U),
        on_models=False,
        printed={"E03": into_values},
    )
