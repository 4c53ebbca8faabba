"""Chapter 3: a head as a tensor product, heads as a sum, scores through one matrix."""

from __future__ import annotations

from sympy import Identity, MatrixSymbol, Transpose, sqrt

from otimes.algebra.language.linear import (
    ConcatHeads,
    HeadSum,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import (
    A,
    H,
    X,
    alpha,
    beta,
    column,
    d,
    d_head,
    h,
    heads,
    n,
    row,
)
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import theorem


@theorem(
    title="A head is its pattern ⊗ its OV circuit",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-40", "S0-41", "S0-42", "S1-27", "S2-22", "S2-26", "S2-27", "S4-12"),
)
def head_is_kron() -> Statement:
    """A head works in three steps: it computes a value at every position (Id ⊗ W_V), moves values
    between positions (A ⊗ Id), and writes the result back to the residual stream (Id ⊗ W_O). On the
    stream as one long column, the mixed-product property (`kron_mul_kron`) joins the three into one
    matrix, A ⊗ W_O W_V.

    So where a head reads and writes (its pattern A) and what it reads and writes (W_O W_V, its OV
    circuit) are two separate factors that act on two separate axes.

    The second factor is not W_QK times W_OV. The query and key weights enter only through the
    pattern A.
    """
    W_V, W_O = column.W_V, column.W_O
    values = matmul(kron(Identity(n), W_V), vec_rows(X))
    moved = matmul(kron(A, Identity(d_head)), kron(Identity(n), W_V), vec_rows(X))
    written = matmul(
        kron(Identity(n), W_O), kron(A, Identity(d_head)), kron(Identity(n), W_V), vec_rows(X)
    )
    return Statement(
        written,
        matmul(kron(A, matmul(W_O, W_V)), vec_rows(X)),
        places={"v": values, "z": moved, "head_out": written},
    )


@theorem(
    title="A head in the row convention: (W_V W_O)ᵀ ⊗ A on the stacked columns",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}",
    covers=("S1-18", "S1-17", "S3-008", "S0-20"),
)
def head_is_kron_row() -> Statement:
    """In the row convention an attention head computes values X W_V, takes weighted means of them
    over positions, A (X W_V), and writes the result times W_O. As a matrix on the stream as one
    column, here with columns stacked, it is (W_V W_O)ᵀ ⊗ A.

    The two factors of ⊗ stand the other way round than in `head_is_kron`, because columns are
    stacked and not rows.

    In this convention W_OV is W_V W_O. The commonest mistake is to write W_O W_V, the product of
    the column convention; those shapes do not even fit unless d_head = d.
    """
    W_V, W_O = row.W_V, row.W_O
    written = matmul(matmul(A, matmul(X, W_V)), W_O)
    return Statement(
        vec_cols(written),
        matmul(kron(Transpose(matmul(W_V, W_O)), A), vec_cols(X)),
        places={"v": matmul(X, W_V), "z": matmul(A, X, W_V), "head_out": written},
        printed={"E04": lambda: (matmul(A, X, MatrixSymbol("W_V", d_head, d), W_O), written)},
    )


@theorem(
    title="Heads side by side times W_O are a sum over heads",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}, "
    "“Attention heads are independent and additive”",
    covers=("S0-66", "S1-19", "S2-17", "S4-11", "S1-13"),
)
def heads_concat_is_sum() -> Statement:
    """Putting the results of all heads side by side and multiplying by one tall matrix W_O is the
    same as multiplying each head's result by its own block of W_O and adding. Z[h] (n × d_head) is
    what head h has mixed from its values; W_O has H blocks of d_head rows.

    Implementations use the first form, and the mathematics of circuits the second: an attention
    layer is a sum over heads.

    So the statement that W_O mixes the heads is wrong. Each head has an output matrix of its own,
    and they are stored as one.
    """
    Z, W_O = heads.Z[h], heads.row.W_O[h]
    together = matmul(ConcatHeads(Z, (h, H)), StackHeads(W_O, (h, H)))
    return Statement(
        together,
        HeadSum(matmul(Z, W_O), (h, H)),
        places={"attn_out": together},
        bind=({"Z": Source("z")},),
    )


@theorem(
    title="The scores depend on W_Q and W_K only through W_QK",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}, “Observations about attention heads”",
    covers=("S0-28", "S1-31"),
)
def scores_through_W_QK() -> Statement:
    """The attention score of a query and a key is a bilinear form of the two vectors in the
    residual stream: x_i W_QK x_jᵀ/√d_head, with W_QK = W_Q W_Kᵀ (d × d). So the scores depend on
    W_Q and W_K through their product only, and W_QK is what one reads to learn where a head
    attends.

    In practice the two thin factors are stored. This is exact: W_QK has rank at most d_head, and
    there is no full matrix that it would approximate.

    X is what queries and keys read: the stream, behind a norm if there is one, and in a shortformer
    with positions added.
    """
    W_Q, W_K = row.W_Q, row.W_K
    scores = matmul(1 / sqrt(d_head), matmul(X, W_Q), Transpose(matmul(X, W_K)))
    return Statement(
        scores,
        matmul(1 / sqrt(d_head), X, matmul(W_Q, Transpose(W_K)), Transpose(X)),
        places={"q": matmul(X, W_Q), "k": matmul(X, W_K), "scores": scores},
        bind=({"X": Source("qk_in")},),
        printed={
            "E22": (scores, matmul(1 / sqrt(d_head), X, MatrixSymbol("W", d, d), Transpose(X)))
        },
    )


@theorem(
    title="The scores through W_QK, in the column convention",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("S0-28", "S2-22", "S2-28", "S4-12"),
)
def scores_through_W_QK_column() -> Statement:
    """In the column convention, with positions as the columns of X, queries are W_Q X and keys W_K
    X. The scores are Xᵀ W_QK X/√d_head with W_QK = W_Qᵀ W_K.

    It is the matrix of `scores_through_W_QK`, but the transpose has moved from W_K to W_Q. A
    product W_Q W_Kᵀ copied from a text with rows is d_head × d_head here and means something else.
    """
    W_Q, W_K = column.W_Q, column.W_K
    X = MatrixSymbol("X", d, n)
    scores = matmul(1 / sqrt(d_head), Transpose(matmul(W_Q, X)), matmul(W_K, X))
    return Statement(
        scores,
        matmul(1 / sqrt(d_head), Transpose(X), matmul(Transpose(W_Q), W_K), X),
        places={"q": matmul(W_Q, X), "k": matmul(W_K, X), "scores": scores},
        bind=({"X": Source("qk_in")},),
    )


@theorem(
    title="With positions added to what is read, the scores have four terms",
    chapter=3,
    convention="row",
    source=f"Press, Smith and Lewis 2021, “Shortformer”; {FRAMEWORK}, “Model simplifications”",
)
def scores_with_positions() -> Statement:
    """If position vectors P are added to what queries and keys read, the scores split into four
    tables: token with token, token with position, position with token, and position with position.
    A bilinear form of two sums has four terms.

    The last table is the same for every prompt. A head that always attends to the previous position
    needs nothing else.

    The equation is that of a shortformer, in which the residual stream carries no positions and
    only queries and keys see them. In GPT-2, where positions are added to the embedding, the first
    layer's scores split in the same way.
    """
    P = MatrixSymbol("P", n, d)
    W_Q, W_K = row.W_Q, row.W_K
    read = matadd(X, P)
    W_QK = matmul(W_Q, Transpose(W_K))
    scores = matmul(1 / sqrt(d_head), matmul(read, W_Q), Transpose(matmul(read, W_K)))
    terms = [matmul(a, W_QK, Transpose(b)) for a in (X, P) for b in (X, P)]
    return Statement(
        scores,
        matmul(1 / sqrt(d_head), matadd(*terms)),
        places={"qk_in": read, "q": matmul(read, W_Q), "scores": scores},
        bind=({"P": Source("W_pos")},),
    )


@theorem(
    title="With the patterns frozen, an attention layer is linear",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Attention heads are independent and additive”",
    covers=("S0-45",),
)
def frozen_attention_is_linear() -> Statement:
    """If the attention patterns are held constant, an attention layer is a linear function of the
    residual stream: a weighted sum of two streams goes to the same weighted sum of the two results.
    All that is nonlinear in the layer is how the patterns are computed. X and Y are two streams (n
    × d), α and β two numbers.

    Path expansions of transformers start from this fact.

    The condition matters. Patterns computed from αX + βY are not those of X or of Y, so with live
    patterns the equation fails.
    """
    Y = MatrixSymbol("Y", n, d)
    A, W_V, W_O = heads.A[h], heads.row.W_V[h], heads.row.W_O[h]

    def layer(stream: object) -> object:
        return matadd(stream, HeadSum(matmul(A, stream, W_V, W_O), (h, H)))

    mixed = matadd(matmul(alpha, X), matmul(beta, Y))
    return Statement(
        layer(mixed),
        matadd(matmul(alpha, layer(X)), matmul(beta, layer(Y))),
        places={"resid_mid": layer(X)},
        bind=({"Y": Source("embed")},),
        unchanged_by=dict.fromkeys(
            ("W_pos for embed", "final for embed", "embed with its columns shifted"),
            "Y is any other stream: the embedding is an example",
        ),
    )
