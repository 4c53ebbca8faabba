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
    """Whatever has rows on the stream can be written over the vocabulary, Â = A E, and with a right
    inverse of E nothing is lost: Â E' = A. So any product in the model may have E E' inserted.

    There is such an E' exactly when the rows of E are independent, which needs at least as many
    tokens as directions.
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
    """Where E has independent rows, E Eᵀ can be inverted and Eᵀ(E Eᵀ)⁻¹ is a right inverse. It
    takes one d × d inverse; nothing of vocabulary by vocabulary is formed.
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
    """With the pseudo-inverse, E'E = Eᵀ(E Eᵀ)⁻¹E is an orthogonal projection: PᵀP = P says at once
    that it is symmetric and that P² = P. It projects what is written over the vocabulary onto the
    row space of E. With another right inverse P² = P still holds, and the symmetry is lost.
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
    """To a right inverse anything may be added that E does not see: E' + (I − E'E) Z is another
    one, for every Z. So what a weight looks like over the vocabulary, E'W, depends on a choice,
    though the products in the model do not.
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
    """Any two right inverses differ by some N with E N = 0, and the pseudo-inverse, EᵀG with the
    d × d matrix G = (E Eᵀ)⁻¹, is orthogonal to all of these, as it would be with any other G. So
    any other right inverse is larger by ‖N‖²: that is a reason to choose the pseudo-inverse, and
    there is only one smallest.
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
    """E takes d numbers to as many as there are tokens. It can be undone; what it undoes cannot:
    from the vocabulary to the stream and back, all but d dimensions are lost. One reads “the
    inverse of the embedding matrix”: there is none, as there are more tokens than directions.
    """
    return NonIdentity(matmul(E_back, E), Identity(V), given=(RIGHT_INVERSE,))


@theorem(
    title="Mapping the vocabulary to the stream and back is a projection",
    chapter=7,
    source="Horn and Johnson, §0.9",
    covers=("S0-53",),
)
def right_inverse_projects() -> Property:
    """Going to the stream and back twice is no different from going once: E'E is a projection on d
    of the dimensions of the vocabulary, orthogonal for the pseudo-inverse only.
    """
    return Property(Fact("projection", matmul(E_back, E)), given=(RIGHT_INVERSE,), on_models=False)


@theorem(
    title="Mapping the vocabulary to the stream and back has rank d",
    chapter=7,
    source="Horn and Johnson, §0.4",
    covers=("S0-53",),
)
def right_inverse_rank() -> Statement:
    """The rank of a projection is its trace, and the trace of E'E is d. So of the dimensions of the
    vocabulary d are kept, and the rest, nearly all, are not.
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
    """Were the rows of E orthogonal and of one squared length c, then Eᵀ would be c times a right
    inverse: inner products over the vocabulary, with E on both sides, would be c times those on
    the stream. It is what one hopes for with E' ≈ Eᵀ; a trained embedding is not like that.
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
    """With entries drawn at random, E Eᵀ/V comes near the identity as tokens are added: the error
    falls like one over the square root of their number. The step is 1/√V, with d = 16, and the
    error the root mean square of thirty draws.

    That is the case for E' ≈ Eᵀ: many more tokens than directions. Trained embeddings are not
    random; their error is measured, see the figure on the bundled models.
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
    """‖E E' − I‖/√d for three choices of E': 0 is a right inverse, 1 no better than E' = 0. For the
    transpose the best factor is allowed. Beside it, how many of the ten tokens that weigh most in a
    row of E'ᵀ are the same for transpose and pseudo-inverse.
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
    """A matrix that reads the stream becomes E'W, a table with a row for each token, and acts on
    the stream written over the vocabulary: X W = (X E)(E' W).
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
    """Keys K stand as rows, a vector of the stream each, but they are *compared* with the stream
    and so transform as what reads it: queries by E, keys by E'ᵀ. To take E for both multiplies with
    E Eᵀ, which is not the identity.

    Q K may be those of attention, or the stream and the keys of a feed-forward layer.
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
    """The inner product of two vectors of the stream is a sum over tokens, one of the vectors taken
    there by E and the other by E'ᵀ: Σ_t (x E)_t (y E'ᵀ)_t. So each inner product in a model is an
    interaction of vocabulary items, one of which is read as what asks and one as what is asked.
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
    """A head's OV circuit becomes a table of tokens by tokens, E'W_OV E, and acts on the stream
    written over the vocabulary; another E' brings the result back. Its rank is still d_head at
    most, as it is the product of a V × d_head and a d_head × V matrix.
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
    """Scores are bilinear in the stream, so the circuit takes an E' on each side: E'W_QK E'ᵀ, a
    table of how much a query token asks for a key token.
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
    """A table of vocabulary by vocabulary made of a head has rank d_head at most. Millions of
    entries say no more than d_head rows and columns do, and can be searched without being formed.
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
    """The output vector of each neuron, read by the unembedding: W_out E, d_mlp × V, a row of
    logits for each neuron. One finds it written as an element of ℝ; it is a table.
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
    """Read by the unembedding, the output of a feed-forward layer is the sum over neurons of their
    activation times their row of W_out W_U. The table is fixed; a prompt decides only how much of
    each row is added. With an activation of one the row is the neuron's direct effect on the
    logits.

    A norm before the unembedding scales all that; the output bias is left out. In print W_out E is
    once an element of ℝ, and once multiplied with the embedding as it was declared, V × d; it takes
    the transpose of that, or the unembedding.
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
    """The keys of a feed-forward layer are compared with the stream in the middle of the block, so
    attention's output is a query for them, and so is the stream that attention was added to. In
    print the second term is sometimes missing: what the layer sees is not attention alone.

    Here without a norm in between; with one, its scale multiplies both terms alike.
    """
    before, attended = MatrixSymbol("X", n, d), MatrixSymbol("attn_out", n, d)
    keys = MatrixSymbol("K", d_mlp, d)
    asked = matmul(matadd(before, attended), Transpose(keys))
    return Statement(
        asked,
        matadd(matmul(before, Transpose(keys)), matmul(attended, Transpose(keys))),
        bind=(
            {"K": Source("W_in", transposed=True)},
            {"K": Source("W_U", cols=64, transposed=True)},
        ),
        printed={"E32": (asked, matmul(attended, Transpose(keys)))},
    )


@theorem(
    title="projected: weights over the vocabulary, without a forward pass",
    chapter=7,
    source=f"{DAR}, “zero-pass”",
    covers=("S0-59", "S0-51", "S0-57"),
)
def projected_method() -> Method:
    """`ot.projected` gives a weight over the vocabulary in factored form; it never sees a prompt,
    so nothing about it changes from prompt to prompt. Compared here with products formed by loops.

    What a model does with its weights still depends on the prompt: a table says what would happen
    *if* a token were attended to.
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
