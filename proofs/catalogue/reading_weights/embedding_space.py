"""Chapter 7: weights over the vocabulary: projection and back, and models compared there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum, sqrt
from typing import Any

import numpy as np
from sympy import (
    Identity,
    Inverse,
    MatrixSymbol,
    Min,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
    symbols,
)

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import HeadSum, OneHot, matadd, matmul
from otimes.numeric.binding import Source
from otimes.numeric.circuits.embedding_space import (
    inverse_defects,
    projected,
    vocabulary,
)
from otimes.numeric.model import Model
from otimes.proofs.catalogue.mlp_and_norm.parts import (
    WITH_LAYER_NORM,
    WITH_PLAIN_MLP,
    b_in,
    everywhere,
    layer_norm,
)
from otimes.proofs.catalogue.sources import DAR, GEVA
from otimes.proofs.catalogue.symbols import V, X, d, d_head, m, n, row, size
from otimes.proofs.claims import (
    Bound,
    Definition,
    ErrorLaw,
    Load,
    Method,
    NonIdentity,
    Observation,
    Observed,
    Property,
    Square,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

CONCEPTS = (
    "Geva et al. 2022, “Transformer Feed-Forward Layers Build Predictions by Promoting Concepts”"
)
ROUNDOFF = np.finfo(float).eps / 2

E = MatrixSymbol("E", d, V)  # from the stream to the vocabulary: W_U, or W_E transposed
E_back = MatrixSymbol("E_back", V, d)  # any E' with E E' = I
RIGHT_INVERSE = (matmul(E, E_back), Identity(d))
W_OV, W_QK = MatrixSymbol("W_OV", d, d), MatrixSymbol("W_QK", d, d)
d_mlp = size("d_mlp")
values = MatrixSymbol("W_out", d_mlp, d)
activations = MatrixSymbol("mlp_post", n, d_mlp)


def _squared(matrix: Any) -> Any:
    return Trace(matmul(matrix, Transpose(matrix)))


GRAM = matmul(E, Transpose(E))  # of the rows of E; it has an inverse where they are independent
PSEUDO_INVERSE = matmul(Transpose(E), Inverse(GRAM))
G = MatrixSymbol("G", d, d)  # any d × d matrix, such as that inverse


@theorem(
    title="Projecting to the vocabulary and back loses nothing",
    chapter=7,
    convention="row",
    source=DAR,
    covers=("S0-52",),
)
def projection_and_back() -> Statement:
    """Vectors of the residual stream can be written over the vocabulary and taken back without
    loss: Â = A E has one entry for each token, and with a right inverse E′ of the embedding, Â E′ =
    A. So E E′ can be inserted into any product of a model. In the formulas of this chapter E′ is
    written E_back.

    This is the basis of reading weights in “embedding space”. A right inverse exists if the rows of
    E (d × V) are independent, which requires at least as many tokens as dimensions.
    """
    A = MatrixSymbol("A", m, d)
    return Statement(matmul(matmul(A, E), E_back), A, given=(RIGHT_INVERSE,), on_models=False)


@theorem(
    title="The pseudo-inverse of an embedding of full rank is a right inverse",
    chapter=7,
    source=f"{DAR}; Golub and Van Loan, §5.5",
    covers=("S0-53", "S0-52"),
)
def pseudo_inverse_is_inverse() -> Statement:
    """If the rows of an embedding E (d × V) are independent, Eᵀ(E Eᵀ)⁻¹ is a right inverse of it: E
    times this matrix is the identity. It is the pseudo-inverse of E.

    It needs one d × d inverse. Nothing of size V × V is formed.
    """
    return Statement(
        matmul(E, PSEUDO_INVERSE),
        Identity(d),
        on_models=False,
        printed={"E08": (matmul(PSEUDO_INVERSE, E), Identity(V))},
    )


@theorem(
    title="The pseudo-inverse gives an orthogonal projection on the vocabulary",
    chapter=7,
    source="Golub and Van Loan, §5.5; Penrose 1956",
    covers=("S0-53",),
)
def pseudo_inverse_projects_orthogonally() -> Statement:
    """Going from the vocabulary to the stream and back with the pseudo-inverse E′ = Eᵀ(E Eᵀ)⁻¹ is
    an orthogonal projection, onto the row space of E: the matrix P = E′E satisfies PᵀP = P, so it
    is symmetric and P² = P.

    With another right inverse it is still a projection, but not an orthogonal one
    (`right_inverse_projects`).
    """
    projection = matmul(PSEUDO_INVERSE, E)
    return Statement(matmul(Transpose(projection), projection), projection, on_models=False)


@theorem(
    title="An embedding has many right inverses",
    chapter=7,
    source="Horn and Johnson, §0.3; generalised inverses",
    covers=("S0-53",),
)
def right_inverses_are_many() -> Statement:
    """A wide matrix has many right inverses: to one of them, E′, anything of the form (I − E′E) Z
    may be added, which E maps to zero. In the formula E′ is E_back, and Z is any V × d matrix.

    So what a weight looks like over the vocabulary, E′W, depends on a choice, although the products
    in the model do not. A text should say which right inverse it uses.
    """
    Z = MatrixSymbol("Z", V, d)
    unseen = matadd(Identity(V), matmul(-1, E_back, E))
    return Statement(
        matmul(E, matadd(E_back, matmul(unseen, Z))),
        Identity(d),
        given=(RIGHT_INVERSE,),
        on_models=False,
    )


@theorem(
    title="The pseudo-inverse is the right inverse of least norm",
    chapter=7,
    source="Golub and Van Loan, §5.5; Penrose 1956",
    covers=("S0-53",),
)
def pseudo_inverse_is_smallest() -> Bound:
    """Among all right inverses of E, the pseudo-inverse has the least norm. Any other one differs
    from it by some N with E N = 0, and is larger by exactly ‖N‖² (sum of squares). In the formula
    the pseudo-inverse is EᵀG with G = (E Eᵀ)⁻¹.

    That is a reason to choose it when weights are read over the vocabulary.
    """
    N = MatrixSymbol("N", V, d)
    return Bound(
        _squared(matmul(Transpose(E), G)),
        _squared(matadd(matmul(Transpose(E), G), N)),
        because=(Square(N),),
        given=((matmul(E, N), ZeroMatrix(d, d)),),
        tight={"E": [[1, 0]], "G": [[1]], "N": [[0], [0]]},
        on_models=False,
    )


@theorem(
    title="The embedding has no inverse: E'E is not the identity",
    chapter=7,
    source=f"{DAR}, where E' is called the inverse",
    covers=("S0-53",),
)
def right_inverse_is_no_left_inverse() -> NonIdentity:
    """An embedding with more tokens than dimensions has no inverse on the other side: E E′ = I on
    the stream, but E′E is not the identity on the vocabulary. From the vocabulary to the stream and
    back only d of the V dimensions survive. In the formula the right inverse E′ is E_back.

    “The inverse of the embedding matrix”, as found in print, does not exist; there are only right
    inverses.
    """
    return NonIdentity(matmul(E_back, E), Identity(V), given=(RIGHT_INVERSE,))


@theorem(
    title="Mapping the vocabulary to the stream and back is a projection",
    chapter=7,
    source="Horn and Johnson, §0.9",
    covers=("S0-53",),
)
def right_inverse_projects() -> Property:
    """Mapping the vocabulary to the stream and back, E′E, is a projection for every right inverse
    E′: doing it twice is doing it once. It is orthogonal for the pseudo-inverse only. In the
    formula E′ is E_back.

    So numbers over the vocabulary that come from a model lie in a subspace of d dimensions.
    """
    return Property(Fact("projection", matmul(E_back, E)), given=(RIGHT_INVERSE,), on_models=False)


@theorem(
    title="Mapping the vocabulary to the stream and back has rank d",
    chapter=7,
    source="Horn and Johnson, §0.4",
    covers=("S0-53",),
)
def right_inverse_rank() -> Statement:
    """The map from the vocabulary to the stream and back, E′E, keeps d of the V dimensions: it is a
    projection, and its rank is its trace, which is d. In the formula the right inverse E′ is
    E_back.

    For GPT-2 small that is 768 of 50,257.
    """
    return Statement(Trace(matmul(E_back, E)), d, given=(RIGHT_INVERSE,), on_models=False)


@theorem(
    title=(
        "The transpose of an embedding with orthogonal rows of one length is "
        "its inverse, up to scale"
    ),
    chapter=7,
    source=f"{DAR}, E' ≈ Eᵀ",
    covers=("S0-54",),
)
def transpose_of_orthogonal_rows() -> Statement:
    """If the rows of an embedding E were orthogonal and all of the same squared length c, its
    transpose would be its inverse up to the factor c: inner products over the vocabulary would be c
    times those in the stream. In the formula x and y are two rows of the stream.

    Many texts use E′ ≈ Eᵀ in this way. Trained embeddings do not satisfy the hypothesis; how far
    off they are is measured (`transpose_measured`).
    """
    x, y, c = MatrixSymbol("x", m, d), MatrixSymbol("y", n, d), Symbol("c", real=True)
    return Statement(
        matmul(matmul(x, E), Transpose(matmul(y, E))),
        matmul(c, x, Transpose(y)),
        given=((matmul(E, Transpose(E)), matmul(c, Identity(d))),),
        on_models=False,
    )


@theorem(
    title="How the transpose of a random embedding approaches an inverse as tokens are added",
    chapter=7,
    source=f"{DAR}; Vershynin 2018, “High-Dimensional Probability”, §4.7",
    covers=("S0-54",),
)
def transpose_of_random_rows() -> ErrorLaw:
    """For a random embedding E with many more tokens V than dimensions, the transpose is nearly an
    inverse: E Eᵀ/V approaches the identity, with an error that falls like 1/√V. Measured with d =
    16 and independent entries, as the root mean square over thirty draws.

    It is the case for E′ ≈ Eᵀ. Trained embeddings are not random (`transpose_measured`).
    """

    def error(step: float) -> float:
        n_tokens, draw, squares = round(step**-2), np.random.default_rng(0), 0.0
        for _ in range(30):
            rows = draw.standard_normal((16, n_tokens))
            squares += float(((rows @ rows.T / n_tokens - np.eye(16)) ** 2).sum())
        return sqrt(squares / 30)

    return ErrorLaw(r"\lVert E E^\top / V - I \rVert_F", error, 1.0, 0.1, 3, small="V^{-1/2}")


@theorem(
    title="How far the transpose of a trained unembedding is from an inverse",
    chapter=7,
    source=f"{DAR} and appendix",
    covers=("S0-54",),
)
def transpose_measured() -> Observation:
    """How far is the transpose of a trained unembedding from a right inverse? Measured is ‖E E′ −
    I‖/√d for three choices of E′: 0 means a right inverse, and 1 is no better than E′ = 0. For the
    transpose the best factor is allowed.

    Also shown is how many of the ten tokens with the largest weight in a row agree between
    transpose and pseudo-inverse, since such lists of tokens are what people read.
    """

    def observe(load: Load) -> Observed:
        model = load("one_layer")
        pseudo, _, _, best = inverse_defects(model).values
        table = vocabulary(model)
        plus = np.linalg.solve(table @ table.T, table)
        top = [np.argsort(-rows, axis=1, kind="stable")[:, :10] for rows in (table, plus)]
        same = np.mean([len({*a} & {*b}) for a, b in zip(*(t.tolist() for t in top), strict=True)])
        figure = (
            f"one_layer: pseudo-inverse {pseudo:.0e}, transpose with its best factor {best:.2f}; "
            f"of ten top tokens {same:.1f} are the same"
        )
        return Observed(figure, {"1 minus the distance": 1 - float(best)})

    return Observation(
        "with its best factor the transpose of W_U is within 0.1 of a right inverse",
        observe,
        {"1 minus the distance": 0.9},
        outcome="not seen",
    )


@theorem(
    title="A matrix that reads the stream, expressed over the vocabulary",
    chapter=7,
    convention="row",
    source=DAR,
    covers=("S0-57",),
)
def embedding_space_reads() -> Statement:
    """A matrix W that reads the stream becomes, over the vocabulary, the table E′W with one row for
    each token: X W = (X E)(E′W), where X E is the stream written over the vocabulary and E′ is a
    right inverse of E. In the formula W is W_in, and E′ is E_back.

    So one can say which tokens a neuron or a head reads.
    """
    W = MatrixSymbol("W_in", d, d_mlp)
    return Statement(
        matmul(matmul(X, E), matmul(E_back, W)),
        matmul(X, W),
        given=(RIGHT_INVERSE,),
        on_models=False,
    )


@theorem(
    title="Keys are projected to the vocabulary by the transposed right inverse",
    chapter=7,
    convention="row",
    source=DAR,
    covers=("S0-56",),
)
def embedding_space_keys() -> Statement:
    """When a dot product of queries and keys is written over the vocabulary, one side is multiplied
    by E and the other by the transposed right inverse E′ᵀ: Q Kᵀ = (Q E)(K E′ᵀ)ᵀ. In the formula E′
    is E_back.

    Using E on both sides inserts E Eᵀ, which is not the identity.

    Q and K may be those of attention, or the stream and the keys of an MLP seen as a key-value
    memory.
    """
    Q, K = MatrixSymbol("Q", n, d), MatrixSymbol("K", m, d)
    return Statement(
        matmul(Q, Transpose(K)),
        matmul(matmul(Q, E), Transpose(matmul(K, Transpose(E_back)))),
        given=(RIGHT_INVERSE,),
        on_models=False,
    )


@theorem(
    title="An inner product of the stream as a sum over the vocabulary",
    chapter=7,
    convention="row",
    source=DAR,
    covers=("S0-60",),
)
def inner_products_over_vocabulary() -> Statement:
    """A dot product in the residual stream is a sum over tokens, x yᵀ = Σ_t (x E)_t (y E′ᵀ)_t: one
    vector is written over the vocabulary with E, the other with the transposed right inverse. In
    the formula E′ is E_back.

    So every score in a model can be read as an interaction of vocabulary items, one on the side
    that asks and one on the side that is asked.
    """
    t = symbols("t", integer=True)
    x, y = MatrixSymbol("x", 1, d), MatrixSymbol("y", 1, d)
    token = OneHot(t, V)
    return Statement(
        matmul(x, Transpose(y)),
        HeadSum(matmul(x, E, token, Transpose(token), E_back, Transpose(y)), (t, V)),
        given=(RIGHT_INVERSE,),
        on_models=False,
    )


@theorem(
    title="An OV circuit expressed over the vocabulary",
    chapter=7,
    convention="row",
    source=DAR,
    covers=("S0-57",),
)
def embedding_space_OV() -> Statement:
    """A head's OV circuit becomes, over the vocabulary, the V × V table E′W_OV E. It acts on the
    stream written over the vocabulary, X E, and a right inverse E′ brings the result back. In the
    formula E′ is E_back.

    The table says which tokens are promoted when the head attends to which. It can be kept as two
    factors, V × d_head and d_head × V, since its rank is at most d_head.
    """
    return Statement(
        matmul(matmul(X, E), matmul(E_back, W_OV, E), E_back),
        matmul(X, W_OV),
        given=(RIGHT_INVERSE,),
        on_models=False,
    )


@theorem(
    title="A QK circuit expressed over the vocabulary",
    chapter=7,
    convention="row",
    source=DAR,
    covers=("S0-57",),
)
def embedding_space_QK() -> Statement:
    """A head's QK circuit becomes, over the vocabulary, the table E′W_QK E′ᵀ: how much a query
    token asks for a key token. Scores are bilinear in the stream, so a right inverse E′ stands on
    each side. In the formula E′ is E_back.

    It gives the same scores as W_QK for every stream X. Different right inverses give different
    tables with the same scores.
    """
    return Statement(
        matmul(matmul(X, E), matmul(E_back, W_QK, Transpose(E_back)), Transpose(matmul(X, E))),
        matmul(X, W_QK, Transpose(X)),
        given=(RIGHT_INVERSE,),
        on_models=False,
    )


@theorem(
    title="A circuit expressed over the vocabulary has no larger rank",
    chapter=7,
    source=f"{DAR}; Horn and Johnson, §0.4",
    covers=("S0-57",),
)
def embedding_space_rank() -> Property:
    """A circuit written over the vocabulary, a V × V table, has rank at most d_head. With V =
    50,257 it has 2.5 billion entries, but it is a product of a V × d_head and a d_head × V matrix
    and can be searched without being formed. In the formula E′, a right inverse of the embedding,
    is E_back, and E (d × V) maps the stream to the vocabulary.
    """
    table = matmul(matmul(E_back, row.W_V), matmul(row.W_O, E))
    return Property(Fact("rank_at_most", table, Min(V, d, d_head)), on_models=False)


@theorem(
    title="The values of a feed-forward layer expressed over the vocabulary",
    chapter=7,
    convention="row",
    source=f"{CONCEPTS}; {DAR}",
    covers=("S0-55", "S0-51"),
)
def projected_values() -> Definition:
    """What each neuron of an MLP writes, read by the unembedding, is a row of logits: W_out E, a
    table of d_mlp × V. The largest entries of a row are the tokens that the neuron promotes.

    Such lists of tokens are a common way to label neurons. They describe what a neuron writes, not
    when it is active. In print the table is sometimes called an element of ℝ, which is a single
    number.
    """

    def plain(**given: Any) -> Any:
        W_out, table = given["W_out"], given["E"]
        return [
            [sum(line[a] * table[a][t] for a in range(len(table))) for t in range(len(table[0]))]
            for line in W_out
        ]

    return Definition(
        "projected values",
        matmul(values, E),
        plain,
        bind=({"E": Source("W_U", cols=3), "W_out": Source("W_out", rows=3)},),
        obeys=("neurons_write_their_values",),
    )


@theorem(
    title="The logits of a feed-forward layer: the rows of its neurons, weighted by activation",
    chapter=7,
    convention="row",
    source=CONCEPTS,
    covers=("S0-51",),
)
def neurons_write_their_values() -> Statement:
    """The logits that an MLP contributes are a sum over its neurons: each adds its row of W_out W_U
    times its activation. The table W_out W_U is fixed; the prompt decides only how much of each row
    is added.

    So a neuron with activation 1 has its row as its direct effect on the logits.

    A final norm scales all of it, and the output bias is left out. In print W_out E is also
    multiplied with an embedding of shape V × d, which does not fit; it must be the transpose, or
    the unembedding.
    """
    u = symbols("u", integer=True)
    neuron = OneHot(u, d_mlp)
    each = matmul(matmul(activations, neuron), matmul(Transpose(neuron), matmul(values, row.W_U)))
    return Statement(
        matmul(matmul(activations, values), row.W_U),
        HeadSum(each, (u, d_mlp)),
        printed={"E31": _a_number, "E54": _by_rows_of_the_embedding},
        bare=False,
        bind=(
            {
                "W_U": Source("W_U", cols=20),
                "W_out": Source("W_out", rows=8),
                "mlp_post": Source("mlp_post", cols=8),
            },
        ),
    )


@theorem(
    title="The query of a key-value memory: the stream with the output of attention",
    chapter=7,
    convention="row",
    source=f"{DAR}; {GEVA}",
    covers=("S0-58",),
)
def attention_as_query() -> Statement:
    """If an MLP is seen as a key-value memory, its query is the residual stream after attention:
    the old stream plus what attention wrote, each multiplied by the keys Kᵀ. X is the old stream
    and `attn_out` what attention wrote, both n × d.

    In print the query is sometimes the attention output alone. The old stream is read as well.

    There is no norm here. With one, its scale multiplies both terms alike.
    """
    before, attended = MatrixSymbol("X", n, d), MatrixSymbol("attn_out", n, d)
    keys = MatrixSymbol("K", d_mlp, d)
    asked = matmul(matadd(before, attended), Transpose(keys))
    return Statement(
        asked,
        matadd(matmul(before, Transpose(keys)), matmul(attended, Transpose(keys))),
        places={
            "resid_mid": matadd(before, attended),
            "mlp_pre": matadd(
                matmul(layer_norm("ln2", matadd(before, attended)), Transpose(keys)),
                everywhere(b_in),
            ),
        },
        bind=({"K": Source("W_in", transposed=True)},),
        bare=False,
        config=WITH_LAYER_NORM | WITH_PLAIN_MLP,
        printed={"E32": (asked, matmul(attended, Transpose(keys)))},
    )


@theorem(
    title="projected: weights over the vocabulary, without a forward pass",
    chapter=7,
    source=f"{DAR}, “zero-pass”",
    covers=("S0-59", "S0-51", "S0-57"),
)
def projected_method() -> Method:
    """`ot.projected` gives a weight of a model over the vocabulary, in factored form. No prompt is
    used, so the result is a property of the weights. It is compared with products formed by loops.

    A table of this kind says what would happen if a token were attended to. What does happen
    depends on the prompt.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers or model.config.norm != "none":
            return
        W_U, few = model.W_U, 5
        d_model = model.d_model
        found = projected(model, "W_O", 0, 0).dense()[:few, :few]
        W_O = model.W_O[0, 0][:few].tolist()
        columns = W_U[:, :few].T.tolist()
        plain = [[fsum(a * b for a, b in zip(w, c, strict=True)) for c in columns] for w in W_O]
        most = np.abs(W_O) @ np.abs(W_U[:, :few])
        yield Trial("W_O E", found, np.array(plain), (d_model + 2) * ROUNDOFF * most)
        # E' W, taken back by E, must be W: the error of a solution is that of its residual.
        back = W_U @ projected(model, "W_Q", 0, 0).dense()[:, :few]
        condition = np.linalg.cond(W_U @ W_U.T)  # the square of that of W_U
        bound = 8 * d_model * ROUNDOFF * condition * np.linalg.norm(model.W_Q[0, 0])
        yield Trial("E (E' W_Q)", back, model.W_Q[0, 0][:, :few], bound)

    return Method(
        "ot.projected",
        ("embedding_space_reads", "embedding_space_OV", "embedding_space_QK"),
        trials,
        law=r"\hat W = E' W",
    )


def _a_number() -> tuple[Any, Any]:
    return matmul(values, E), Identity(1)


def _by_rows_of_the_embedding() -> tuple[Any, Any]:
    return matmul(activations, values, row.W_E), matmul(activations, values, row.W_U)
