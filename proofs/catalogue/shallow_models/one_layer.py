"""Chapter 5: what a model with one layer computes, and what its tables say."""

from __future__ import annotations

from typing import Any

from sympy import HadamardProduct, Identity, MatrixSymbol, Min, S, Symbol, Transpose, sqrt
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.facts import Fact
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import HeadSum, OneHot, kron, matadd, matmul, vec_rows
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.algebra.language.trees import stated
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.recorded import of_QK
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.catalogue.symbols import (
    H,
    L,
    V,
    column,
    d,
    d_head,
    h,
    heads,
    l,
    layers,
    n,
    row,
)
from otimes.proofs.claims import Definition, NonIdentity, Property, Statement
from otimes.proofs.theorem import theorem

CIRCUITS = f"{FRAMEWORK}, “Splitting attention head terms into query-key and output-value circuits”"
ONE_LAYER = f"{FRAMEWORK}, “One-layer attention-only transformers”"
T = MatrixSymbol("T", n, V)  # one-hot rows: the tokens of a prompt
FIRST = {
    name: Source(place, layer=0)
    for name, place in (("A", "pattern"), ("W_V", "W_V"), ("W_O", "W_O"))
}
i, j, k = (Symbol(name, integer=True) for name in "ijk")


@theorem(
    title="A one-layer transformer is the direct path and one term a head",
    chapter=5,
    convention="column",
    source=ONE_LAYER,
    covers=("S4-13",),
)
def one_layer_expansion() -> Statement:
    """A one-layer attention-only transformer is a sum of 1 + H terms: the direct path W_U W_E,
    which uses the current token only, and for each head its pattern ⊗ the table W_U W_OV W_E, which
    says how attending to a source token changes the logits. This comes from multiplying out
    unembedding, layer and embedding.

    It is the first example of a path expansion, and holds for every number of heads H.

    The tables are fixed, but the patterns A[h] are those of the prompt. They are no table of token
    pairs, since the softmax couples all tokens.
    """
    A, W_V, W_O = heads.A[h], heads.column.W_V[h], heads.column.W_O[h]
    W_E, W_U = column.W_E, column.W_U
    layer = matadd(kron(Identity(n), Identity(d)), HeadSum(kron(A, matmul(W_O, W_V)), (h, H)))
    logits = matmul(kron(Identity(n), W_U), layer, kron(Identity(n), W_E), vec_rows(T))
    return Statement(
        logits,
        matmul(
            matadd(
                kron(Identity(n), matmul(W_U, W_E)),
                HeadSum(kron(A, matmul(W_U, W_O, W_V, W_E)), (h, H)),
            ),
            vec_rows(T),
        ),
        places={"logits": logits},
        depth=1,
        bind=(FIRST,),
    )


@theorem(
    title="A one-layer transformer in matrix form, tokens as rows",
    chapter=5,
    convention="column",
    source=ONE_LAYER,
    covers=("S4-14",),
)
def one_layer_in_matrix_form() -> Statement:
    """With the one-hot tokens as rows of T (n × V), the logits of a one-layer model are T (W_U
    W_E)ᵀ + Σ_h A[h] T (W_U W_OV W_E)ᵀ. The left factor of ⊗ multiplies T from the left, the right
    factor from the right, transposed.

    All terms are n × V, one row of logits for each position. A term written as W_U W_E Tᵀ is V × n
    and cannot be added to the others.
    """
    A, W_V, W_O = heads.A[h], heads.column.W_V[h], heads.column.W_O[h]
    W_E, W_U = column.W_E, column.W_U
    stream = matmul(T, Transpose(W_E))
    written = HeadSum(matmul(A, stream, Transpose(matmul(W_O, W_V))), (h, H))
    logits = matmul(matadd(stream, written), Transpose(W_U))
    return Statement(
        logits,
        matadd(
            matmul(T, Transpose(matmul(W_U, W_E))),
            HeadSum(matmul(A, T, Transpose(matmul(W_U, W_O, W_V, W_E))), (h, H)),
        ),
        places={"embed": stream, "logits": logits},
        depth=1,
        bind=(FIRST,),
        unchanged_by={
            f"{name} of another layer": "the logits are compared on models of one layer"
            for name in ("pattern", "W_O", "W_V")
        },
    )


@theorem(
    title="With as many positions as tokens a missing transpose goes unnoticed",
    chapter=5,
    source=ONE_LAYER,
    covers=("S4-14",),
)
def positions_are_not_the_vocabulary() -> NonIdentity:
    """W Tᵀ and T Wᵀ hold the same numbers, one with positions as columns and one with positions as
    rows. If there happen to be as many positions as tokens in the vocabulary, as in a small
    example, both are square, and adding one to the other raises no error but is wrong.

    So test formulas with all sizes different.
    """
    tokens, table = MatrixSymbol("T", n, n), MatrixSymbol("W", n, n)
    return NonIdentity(matmul(table, Transpose(tokens)), matmul(tokens, Transpose(table)))


@theorem(
    title="A one-layer transformer in the row convention",
    chapter=5,
    convention="row",
    source=ONE_LAYER,
    covers=("S4-13", "S4-14"),
)
def one_layer_row() -> Statement:
    """In the row convention a one-layer transformer is T W_E W_U + Σ_h A[h] T W_E W_V W_O W_U: a
    direct path, and for each head its pattern times a table. No transposes are needed.

    Rows of the table W_E W_OV W_U are source tokens and columns are outputs. In the column
    convention it is the other way round.
    """
    A, W_V, W_O = heads.A[h], heads.row.W_V[h], heads.row.W_O[h]
    stream = matmul(T, row.W_E)
    logits = matmul(matadd(stream, HeadSum(matmul(A, stream, W_V, W_O), (h, H))), row.W_U)
    return Statement(
        logits,
        matadd(
            matmul(T, matmul(row.W_E, row.W_U)),
            HeadSum(matmul(A, T, matmul(row.W_E, W_V, W_O, row.W_U)), (h, H)),
        ),
        places={"logits": logits},
        depth=1,
        bind=(FIRST,),
    )


@theorem(
    title=(
        "A one-layer transformer at one position: a bigram term, and a term "
        "for each head and source"
    ),
    chapter=5,
    convention="row",
    source=ONE_LAYER,
    covers=("S2-03", "S4-16", "S4-18"),
)
def one_layer_at_one_position() -> Statement:
    """The logits of a one-layer model at position i are a row of the bigram table, for the token at
    i, plus one term for each head h and each earlier position j: the attention weight a_ij^h times
    the row of W_E W_OV W_U that belongs to the token at j. The hypothesis says that patterns are
    zero outside the causal mask M_n.

    These terms are called skip-trigrams: source token … current token → output.

    Each table looks at one token at a time. Only the attention weights depend on two tokens or
    more.
    """
    A, W_V, W_O = heads.A[h], heads.row.W_V[h], heads.row.W_O[h]
    bigrams = matmul(row.W_E, row.W_U)
    table = (row.W_E, W_V, W_O, row.W_U)
    mask, here = CausalMask(n), Transpose(OneHot(i, n))
    token = matmul(Transpose(OneHot(j, n)), T)
    weight = stated(MatrixElement, mask, i, j) * stated(MatrixElement, A, i, j)
    return Statement(
        matmul(here, matadd(matmul(T, bigrams), HeadSum(matmul(A, T, *table), (h, H)))),
        matadd(
            matmul(here, T, bigrams),
            HeadSum(matmul(weight, token, *table), (h, H), (j, n)),
        ),
        given=((HadamardProduct(mask, A, evaluate=False), A),),
        bind=(FIRST,),
    )


@theorem(
    title="An attention-only transformer",
    chapter=5,
    convention="column",
    source=f"{FRAMEWORK}, “Model simplifications”",
    covers=("S2-05",),
)
def attention_only_transformer() -> Definition:
    """An attention-only transformer consists of an embedding, L attention layers and an
    unembedding, without MLPs, norms and biases. On the stream as one column it is the product (I ⊗
    W_U) ∏_l (I + Σ_h A ⊗ W_OV) (I ⊗ W_E), with the later layer on the left.

    It is the model of most theorems here, for every number of layers and heads. Its logits are a
    sum over paths (`paths_by_order`).

    Real models also have norms and MLPs. Each theorem that carries over to them says under which
    conditions.
    """
    A, W_V, W_O = layers.A[l, h], layers.column.W_V[l, h], layers.column.W_O[l, h]
    written = HeadSum(kron(A, matmul(W_O, W_V)), (h, H))
    stack = LayerProduct(matadd(kron(Identity(n), Identity(d)), written), (l, L))
    embed, unembed = kron(Identity(n), column.W_E), kron(Identity(n), column.W_U)
    return Definition(
        "the logits",
        matmul(unembed, stack, embed, vec_rows(T)),
        _logits_by_loops,
        places=("logits",),
        obeys=("paths_by_order", "layers_write", "one_layer_expansion", "two_layer_paths"),
    )


def _logits_by_loops(
    A: Any, W_V: Any, W_O: Any, W_E: Any, W_U: Any, T: Any, **_: Any
) -> list[list[Any]]:
    """Return the logits of all positions, one below the other, layer by layer."""
    stream = [[_dot(line, tokens) for line in W_E] for tokens in T]
    for layer in range(len(A)):
        after = [list(x) for x in stream]
        for pattern, into, out in zip(A[layer], W_V[layer], W_O[layer], strict=True):
            values = [[_dot(line, x) for line in into] for x in stream]
            for i, weights in enumerate(pattern):
                mixed = [_dot(weights, column) for column in zip(*values, strict=True)]
                for k, line in enumerate(out):
                    after[i][k] += _dot(line, mixed)
        stream = after
    return [[_dot(line, x)] for x in stream for line in W_U]


def _dot(a: Any, b: Any) -> Any:
    return sum(x * y for x, y in zip(a, b, strict=True))


@theorem(
    title="A one-layer model is linear in its tokens only with its patterns frozen",
    chapter=5,
    convention="row",
    source=ONE_LAYER,
    covers=("S4-15",),
)
def live_patterns_are_not_linear() -> NonIdentity:
    """“A one-layer transformer is linear in its tokens” is true only if its attention patterns are
    held constant. With patterns computed anew, the result for x + y is not the sum of the results
    for x and for y: the scores contain the tokens twice, and the softmax takes exponentials.
    """
    x, y = MatrixSymbol("x", n, V), MatrixSymbol("y", n, V)
    return NonIdentity(_live(matadd(x, y)), matadd(_live(x), _live(y)))


def _live(tokens: Any) -> Any:
    queries, keys = matmul(tokens, row.W_E, row.W_Q), matmul(tokens, row.W_E, row.W_K)
    pattern = RowSoftmax(matmul(queries, Transpose(keys)))
    return matmul(pattern, tokens, row.W_E, row.W_V, row.W_O, row.W_U)


@theorem(
    title="The effect of attending a little more: an entry of the full OV circuit",
    chapter=5,
    convention="row",
    source=CIRCUITS,
    covers=("S4-17", "S4-19"),
)
def effect_of_attending() -> Statement:
    """If a head attends a little more from position i to position j, the logits at i change by that
    amount times a row of the table W_E W_OV W_U, the row of the token at j; no other position
    changes. In the formula δ (H × 1) holds the change for each head.

    So this table, the full OV circuit, says what attending to a token does to the logits. The
    effect is exact for changes of any size, since logits are linear in the patterns.

    Softmax cannot raise one weight alone. Others shrink, and their rows count too.
    """
    A, W_V, W_O = heads.A[h], heads.row.W_V[h], heads.row.W_O[h]
    more = stated(MatrixElement, MatrixSymbol("delta", H, 1), h, S.Zero)
    there, here = OneHot(i, n), Transpose(OneHot(j, n))
    stream = matmul(T, row.W_E)

    def logits(pattern: Any) -> Any:
        return matmul(matadd(stream, HeadSum(matmul(pattern, stream, W_V, W_O), (h, H))), row.W_U)

    changed = logits(matadd(A, matmul(more, there, here)))
    table = matmul(row.W_E, W_V, W_O, row.W_U)
    return Statement(
        matadd(changed, matmul(-1, logits(A))),
        matmul(there, HeadSum(matmul(more, here, T, table), (h, H))),
        on_models=False,
    )


@theorem(
    title="The full OV circuit has rank at most d_head",
    chapter=5,
    convention="column",
    source=CIRCUITS,
    covers=("S4-19",),
)
def full_ov_rank_column() -> Property:
    """The full OV circuit W_U W_O W_V W_E is a table of vocabulary × vocabulary: entry (o, s) says
    how much attending to source token s raises the logit of output token o. It passes through
    d_head dimensions, so its rank is at most d_head, however large the vocabulary is.

    So a head cannot treat every pair of tokens independently. Its effects on different pairs are
    tied together (`skip_trigrams_rank_one`).
    """
    table = matmul(column.W_U, column.W_O, column.W_V, column.W_E)
    return Property(Fact("rank_at_most", table, Min(V, d, d_head)), on_models=False)


@theorem(
    title="The full QK circuit gives the scores of tokens",
    chapter=5,
    convention="column",
    source=CIRCUITS,
    covers=("S4-20",),
)
def full_qk_gives_scores() -> Statement:
    """In the first layer of a model without position information, the score of two tokens is an
    entry of a fixed table, the full QK circuit W_Eᵀ W_Qᵀ W_K W_E (V × V): row of the query's token,
    column of the key's token. T picks rows and columns.

    So where a head wants to attend can be read for all pairs of tokens, without any prompt. The
    score of a pair does not depend on the rest of the prompt; the attention weight does.

    Rotary positions make one such table for each distance. Added positions give extra terms.
    """
    stream = matmul(T, Transpose(column.W_E))
    queries, keys = (matmul(stream, Transpose(w)) for w in (column.W_Q, column.W_K))
    table = matmul(Transpose(column.W_E), Transpose(column.W_Q), column.W_K, column.W_E)
    return Statement(
        matmul(1 / sqrt(d_head), queries, Transpose(keys)),
        matmul(1 / sqrt(d_head), T, table, Transpose(T)),
        bind=(
            {
                "qk_in": Source("qk_in", layer=0),
                "W_Q": Source("W_Q", layer=0),
                "W_K": Source("W_K", layer=0),
            },
        ),
        places={"embed": stream, **of_QK(Transpose(column.W_Q), Transpose(column.W_K), 0)},
    )


@theorem(
    title="The full QK circuit has rank at most d_head",
    chapter=5,
    convention="column",
    source=CIRCUITS,
    covers=("S4-20",),
)
def full_qk_rank() -> Property:
    """The full QK circuit W_Eᵀ W_Qᵀ W_K W_E, the table of scores for all pairs of tokens, has rank
    at most d_head. For a vocabulary of 50,000 the table would have 2.5 billion entries; kept as two
    factors of 50,000 × d_head it is small, and nothing is lost.

    So a head matches tokens by at most d_head features.
    """
    table = matmul(Transpose(column.W_E), Transpose(column.W_Q), column.W_K, column.W_E)
    return Property(Fact("rank_at_most", table, Min(V, d, d_head)), on_models=False)
