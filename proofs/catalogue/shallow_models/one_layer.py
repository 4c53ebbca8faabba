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
    """The product of unembedding, layer and embedding multiplies out into 1 + H terms: the direct
    path, which knows only the present token, and for each head its pattern ⊗ a table W_U W_OV W_E,
    which says how attending to a source token changes the logits.

    H is a symbol here: the equation holds for every number of heads. The patterns are those of the
    prompt; they are no table of the vocabulary, since the softmax couples all tokens.
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
    """With the one-hot tokens as the rows of T, n × V, the factor on the left of ⊗ multiplies T
    from the left, and the one on its right from the right, transposed: the direct path is T (W_U
    W_E)ᵀ and each head A_h T (W_U W_OV W_E)ᵀ. All terms are n × V, a row of logits for each
    position. Write one of them as W_U W_E Tᵀ, and it is V × n: it cannot be added.
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
    """W_U W_E Tᵀ and T (W_U W_E)ᵀ hold the same numbers, one with positions as columns, the other
    as rows. Where n = V, as in a toy example of four tokens, both are square, the sum of the two
    exists, and nothing complains; it is still wrong.
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
    """With row weights no transposes are needed: the direct path is T W_E W_U, and each head is A_h
    T W_E W_V W_O W_U. Rows of the table W_E W_OV W_U are source tokens and its columns outputs; in
    the column convention it is the other way round.
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
    """The logits at position i are the row of the bigram table for the token there, and for each
    head h and each source j ≤ i the number a_ij^h times the row of W_E W_OV^h W_U for the source
    token: skip-trigrams, [source] … [destination] → [output]. Here m_ij is 1 for j ≤ i and 0
    elsewhere.

    Nothing else links two tokens: the direct path and every table look at one token at a time, and
    only the a_ij know of two.
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
    """A transformer of L layers with attention only, no norms and no biases: (Id ⊗ W_U) ∏_l (Id +
    Σ_h A^{l,h} ⊗ W_OV^{l,h}) (Id ⊗ W_E), the later layer on the left. Its logits are a sum over
    paths (`paths_by_order`): the bigram table, skip-trigrams, virtual heads.

    It is the model of most theorems here, for every number of layers and heads. Real models have
    norms and MLPs besides; what of it survives there is said where it is used.
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
    """The patterns are functions of the prompt: the scores have the tokens in them twice, and the
    softmax takes exponentials. Compute them anew for x + y, and the head's term is not the sum of
    the terms for x and for y. What “T is linear” means is: with A^h kept as the numbers they were.
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
    """Let every head attend δ_h more from position i to position j, and the logits at i change by
    Σ_h δ_h times the row of W_E W_OV^h W_U for the token at j, and at no other position. For one
    head: ∂T_io/∂a_ij = (W_E W_OV W_U)_{t_j, o}. The logits are linear in the patterns, so this is
    exact for a change of any size.

    A says where, and the table what comes of it. Softmax does not let one weight grow alone: others
    shrink, and their rows of the table count as well.
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
    """W_U W_O W_V W_E is a table of vocabulary by vocabulary: entry (o, s) is what attending to
    source token s adds to the logit of output o. It passes through d_head numbers, so its rank is
    at most d_head, however large the vocabulary. A head cannot have a mind of its own about each of
    a million pairs.
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
    """In a first layer without positions, the score of the tokens at i and j is an entry of one
    table, W_Eᵀ W_Qᵀ W_K W_E: row t_i, column t_j. T picks rows and columns of it. Whatever else is
    in the prompt, the score of a pair is the same; the weight that it becomes is not.

    Rotary positions make one such table for each distance, and positions added to what queries and
    keys read add terms of their own.
    """
    stream = matmul(T, Transpose(column.W_E))
    queries, keys = (matmul(stream, Transpose(w)) for w in (column.W_Q, column.W_K))
    table = matmul(Transpose(column.W_E), Transpose(column.W_Q), column.W_K, column.W_E)
    return Statement(
        matmul(1 / sqrt(d_head), queries, Transpose(keys)),
        matmul(1 / sqrt(d_head), T, table, Transpose(T)),
        bind=({"W_Q": Source("W_Q", layer=0), "W_K": Source("W_K", layer=0)},),
    )


@theorem(
    title="The full QK circuit has rank at most d_head",
    chapter=5,
    convention="column",
    source=CIRCUITS,
    covers=("S4-20",),
)
def full_qk_rank() -> Property:
    """W_Eᵀ W_Qᵀ W_K W_E is a table of which token's query likes which token's key, of rank at most
    d_head. Computed as a table of V × V it takes a million entries for a thousand tokens; kept as
    two factors V × d_head it takes a fraction of that, and nothing is lost.
    """
    table = matmul(Transpose(column.W_E), Transpose(column.W_Q), column.W_K, column.W_E)
    return Property(Fact("rank_at_most", table, Min(V, d, d_head)), on_models=False)
