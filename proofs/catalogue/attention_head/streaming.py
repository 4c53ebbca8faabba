"""Chapter 3: attention one token at a time: caches, blocks of keys, sinks, linear recurrences."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import (
    BlockMatrix,
    Identity,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Trace,
    Transpose,
    ZeroMatrix,
    sqrt,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.derivative import gradient
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, RowSoftmax
from otimes.algebra.language.positions import OneHotLast, Shift
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.patterns import entrywise
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.symbols import L, X, d, d_head, l, m, n, p, q, r, row, s
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import theorem

MILAKOV = "Milakov and Gimelshein 2018, “Online normalizer calculation for softmax”"
DAO = "Dao et al. 2022, “FlashAttention”, §3.1"
MILLER = "Miller 2023, “Attention is off by one”; Xiao et al. 2024, “Efficient Streaming Language "
MILLER += "Models with Attention Sinks”"
KATHAROPOULOS = "Katharopoulos et al. 2020, “Transformers are RNNs”, §3.3"
MAMBA_2 = "Dao and Gu 2024, “Transformers are SSMs”, §3"
OSWALD = "von Oswald et al. 2023, “Transformers Learn In-Context by Gradient Descent”, §2"

i, t = sympy.symbols("i t", integer=True)
W_Q, W_K, W_V = row.W_Q, row.W_K, row.W_V


def exp(e: Any) -> Any:
    """Return exp of each entry."""
    return Activation("exp", e)


@theorem(
    title="A KV cache computes the new position's row and nothing else",
    chapter=3,
    convention="row",
    source="Shazeer 2019, “Fast Transformer Decoding: One Write-Head is All You Need”, §2.2",
    covers=("B31",),
)
def kv_cache_is_last_row() -> Statement:
    """Generating one more token needs only the new row of attention: the query of the new position
    x against the keys and values of all earlier positions X, which were computed before and are
    kept in a cache. The left side is the last row of causal attention over the whole prompt [X; x];
    the right side uses the cached keys X W_K and values X W_V.

    Generation therefore costs n scores a token and not n². It is exact because later tokens never
    change what was computed for earlier ones (`prefix_is_computed_alone`).
    """
    past, new = MatrixSymbol("X", m, d), MatrixSymbol("x", 1, d)
    whole = BlockMatrix([[past], [new]])
    scores = matmul(1 / sqrt(d_head), whole, W_Q, Transpose(matmul(whole, W_K)))
    pattern = RowSoftmax(scores, CausalMask(m + 1))
    cache_K = BlockMatrix([[matmul(past, W_K)], [matmul(new, W_K)]])
    cache_V = BlockMatrix([[matmul(past, W_V)], [matmul(new, W_V)]])
    alone = RowSoftmax(matmul(1 / sqrt(d_head), new, W_Q, Transpose(cache_K)))
    return Statement(
        matmul(Transpose(OneHotLast(m + 1)), pattern, whole, W_V),
        matmul(alone, cache_V),
        bind=({"X": Source("qk_in", rows=5), "x": Source("qk_in", rows=1)},),
    )


# Scores of n queries with three blocks of keys, each with its values; a column of references each.
BLOCKS = tuple(
    (
        MatrixSymbol(f"S_{k}", n, size_),
        MatrixSymbol(f"V_{k}", size_, d),
        MatrixSymbol(f"m_{k}", n, 1),
    )
    for k, size_ in ((1, p), (2, q), (3, r))
)


def _weights(scores: Any, reference: Any) -> Any:
    """Return exp of the scores less a reference for each query."""
    return exp(less(scores, matmul(reference, OneMatrix(1, scores.shape[1]))))


Part = tuple[Any, Any]  # the reference of each query, and what was summed with it


def _merged(one: Part, other: Part, reference: Any) -> Part:
    """Return the sums of two blocks of keys as one, with a new reference."""
    scales = [DiagMatrix(exp(less(part[0], reference))) for part in (one, other)]
    return reference, matadd(matmul(scales[0], one[1]), matmul(scales[1], other[1]))


@theorem(
    title="Attention over two blocks of keys merges exactly, whatever was subtracted in each",
    chapter=3,
    source=f"{MILAKOV}; {DAO}",
    covers=("B32",),
)
def online_softmax_merges() -> Statement:
    """Attention can be computed over blocks of keys and merged exactly. For each block keep, for
    each query, a reference number m (in practice the block's largest score, so that exp does not
    overflow) and o, the sum of exp(s − m) v over its keys. Two blocks merge to exp(m_1 − m) o_1 +
    exp(m_2 − m) o_2, which is what one pass over all keys gives. In the formula S_1 and S_2 are the
    scores of two blocks of keys (n × p and n × q), V_1 and V_2 their values.

    FlashAttention is built on this. The sums ℓ of the weights merge in the same way, with ones in
    place of the values, and o/ℓ is attention (`online_softmax_is_attention`).

    In the formula the new reference is m_3. It may be chosen freely.
    """
    (S_1, V_1, m_1), (S_2, V_2, m_2), (_, _, m_3) = BLOCKS
    one, two = (
        (m, matmul(_weights(scores, m), values))
        for scores, values, m in ((S_1, V_1, m_1), (S_2, V_2, m_2))
    )
    both = matmul(_weights(BlockMatrix([[S_1, S_2]]), m_3), BlockMatrix([[V_1], [V_2]]))
    return Statement(_merged(one, two, m_3)[1], both, on_models=False)


@theorem(
    title="Merging blocks of keys is associative",
    chapter=3,
    source=f"{MILAKOV}; {DAO}",
    covers=("B32",),
)
def online_softmax_is_associative() -> Statement:
    """When attention is computed in blocks of keys, the order in which blocks are merged does not
    matter: merging the first two and then the third gives the same as merging the last two first.
    o_k is the weighted sum of values of block k, m_k its reference scores
    (`online_softmax_merges`). In the formula m_12 and m_23 are the references between, and m the
    last.

    So keys may be divided over blocks, devices or a tree in any way, as in FlashAttention and ring
    attention. In floating point the order still decides the last bits.
    """
    one, two, three = (
        (reference, MatrixSymbol(f"o_{k + 1}", n, d)) for k, (_, _, reference) in enumerate(BLOCKS)
    )
    c, e, f = (MatrixSymbol(name, n, 1) for name in ("m_12", "m_23", "m"))
    return Statement(
        _merged(_merged(one, two, c), three, f)[1],
        _merged(one, _merged(two, three, e), f)[1],
        on_models=False,
    )


@theorem(
    title="The running sums of online softmax are attention",
    chapter=3,
    source=f"{MILAKOV}; {DAO}",
    covers=("B32",),
)
def online_softmax_is_attention() -> Statement:
    """The running sums that a blockwise computation keeps, divided by each other, are attention: Σ
    exp(s − m) v equals ℓ · softmax(S) V, where ℓ = Σ exp(s − m) is the sum of weights for each
    query. The reference m cancels in the quotient, so every choice gives the same result. In the
    formula S_1 (n × p) are the scores, m_1 the references and V_1 the values.

    In exact arithmetic m could be zero. In floating point one takes the largest score, to avoid
    overflow.
    """
    S, V, reference = BLOCKS[0]
    weights = _weights(S, reference)
    total = matmul(weights, OneMatrix(S.shape[1], 1))
    return Statement(
        matmul(weights, V),
        matmul(DiagMatrix(total), RowSoftmax(S), V),
        places={"scores": S, "v": V},
        bind=(
            {
                "S_1": Source("scores"),
                "V_1": Source("v"),
                "m_1": Source("scores", cols=1, example=True),
            },
        ),
        bare=False,
    )


@theorem(
    title="Softmax with 1 added to its sum is a key of score 0 whose value is 0",
    chapter=3,
    source=MILLER,
    covers=("B33",),
)
def softmax_plus_one_is_a_null_key() -> Statement:
    """Adding 1 to the denominator of a softmax lets a head attend to nothing: the weights
    exp(s_j)/(1 + Σ_k exp(s_k)) sum to less than one. It is the same as ordinary softmax with one
    more key, of score 0 and value 0. The equation has a score b in place of 0, as in models with
    learned sinks, and then exp(b) takes the place of 1; it is multiplied by the denominator. S (n ×
    m) are the scores of the other keys and V their values.

    An attention sink in a trained model, a first token with high weight and a small value, plays
    the same part.
    """
    S, V, b = MatrixSymbol("S", n, m), MatrixSymbol("V", m, d_head), MatrixSymbol("b", n, 1)
    with_sink = RowSoftmax(BlockMatrix([[b, S]]))
    values = BlockMatrix([[ZeroMatrix(1, d_head)], [V]])
    total = matadd(exp(b), matmul(exp(S), OneMatrix(m, 1)))
    return Statement(
        matmul(DiagMatrix(total), with_sink, values),
        matmul(exp(S), V),
        bind=(
            {
                "S": Source("embed", cols=6, example=True),
                "V": Source("v", rows=6),
                "b": Source("embed", cols=1, example=True),
            },
        ),
        places={Source("v", rows=6): V},
        bare=False,
    )


# -- without softmax -------------------------------------------------------------------------------

PHI_Q, PHI_K = MatrixSymbol("Phi_Q", n, r), MatrixSymbol("Phi_K", n, r)
V_n = MatrixSymbol("V", n, d_head)


@theorem(
    title="Linear attention is a recurrence with a matrix as its state",
    chapter=3,
    convention="row",
    source=KATHAROPOULOS,
    covers=("B34",),
)
def linear_attention_is_a_recurrence() -> Statement:
    """If the exponential in attention is replaced by a product of features, φ(q)·φ(k), attention
    can be computed step by step with a state of fixed size: S_i = S_{i−1} + φ(k_i)ᵀ v_i, an r ×
    d_head matrix, and position i reads φ(q_i) S_i. No cache of keys and values is needed. In the
    formula k[l] stands for the features φ(k_l).

    The update adds a matrix, so it is written as a product with `[[I, φ(k)ᵀ v], [0, I]]`. L such
    steps in a row leave Σ φ(k_l)ᵀ v_l in the corner, for every L.
    """
    k, v = Family("k", (L,), 1, r)[l], Family("v", (L,), 1, d_head)[l]
    eye = [Identity(r), Identity(d_head)]

    def state(written: Any) -> Any:
        return BlockMatrix([[eye[0], written], [ZeroMatrix(d_head, r), eye[1]]])

    return Statement(
        LayerProduct(state(matmul(Transpose(k), v)), (l, L)),
        state(HeadSum(matmul(Transpose(k), v), (l, L))),
        on_models=False,
    )


@theorem(
    title="Each row of masked linear attention is a query times a running state",
    chapter=3,
    convention="row",
    source=KATHAROPOULOS,
    covers=("B34",),
)
def linear_attention_reads_its_state() -> Statement:
    """Linear attention has two equal forms: a table of scores under the causal mask, (M ∘
    φ(Q)φ(K)ᵀ) V, and a running state, in which row i is φ(q_i) Σ_{j ≤ i} φ(k_j)ᵀ v_j. Φ_Q and Φ_K
    hold the features of queries and keys as rows.

    The first form computes n² scores in parallel, for training; the second goes from token to
    token, for generation.
    """
    here, there = OneHot(i, n), OneHot(t, n)
    seen = matmul(Transpose(here), CausalMask(n), there)
    key, value = matmul(Transpose(PHI_K), there), matmul(Transpose(there), V_n)
    state = HeadSum(matmul(Trace(seen), key, value), (t, n))
    scores = entrywise(CausalMask(n), matmul(PHI_Q, Transpose(PHI_K)))
    return Statement(
        matmul(Transpose(here), scores, V_n),
        matmul(Transpose(here), PHI_Q, state),
        bind=({"Phi_Q": Source("q"), "Phi_K": Source("k"), "V": Source("v")},),
        places={"q": PHI_Q, "k": PHI_K, "v": V_n},
        bare=False,
    )


@theorem(
    title="State-space duality: a gated recurrence is attention with a decay mask",
    chapter=3,
    convention="row",
    source=MAMBA_2,
    covers=("B35",),
)
def state_space_duality() -> Statement:
    """A state space model, a recurrence with a gate at each position, is attention with a decaying
    mask. Its state h_i = a_i h_{i−1} + b_iᵀ x_i (r × d) is read by y_i = c_i h_i. Written for all
    positions, Y = (Λ ∘ C Bᵀ) X: linear attention with queries C, keys B and values X, where the
    entry (i, j) of Λ is the product of the gates a_i … a_{j+1} for j ≤ i.

    This is the duality on which Mamba-2 rests: the same layer as a recurrence and as a matrix
    product.

    In the hypotheses h[t] is row t of the states of all positions, and Λ is given as the inverse of
    I − diag(a) Shift_n. With all gates 1 it is the causal mask.
    """
    a, B, C = MatrixSymbol("a", n, 1), MatrixSymbol("B", n, r), MatrixSymbol("C", n, r)
    states = Family("h", (r,), n, d)
    decay = less(Identity(n), matmul(DiagMatrix(a), Shift(n)))
    solved = MatrixSymbol("Lambda", n, n)
    unit = OneHot(t, r)
    written = matmul(DiagMatrix(matmul(B, unit)), X)
    out = HeadSum(matmul(DiagMatrix(matmul(C, unit)), states[t]), (t, r))
    return Statement(
        out,
        matmul(entrywise(solved, matmul(C, Transpose(B))), X),
        given=[
            (matmul(solved, decay), Identity(n)),
            (states[t], matadd(matmul(DiagMatrix(a), Shift(n), states[t]), written)),
        ],
        on_models=False,
    )


@theorem(
    title="With all gates open the decay mask is the causal mask",
    chapter=3,
    source=MAMBA_2,
    covers=("B35",),
)
def open_gates_give_the_causal_mask() -> Statement:
    """If all gates of a state space model are 1, so that nothing in its state decays, its decay
    mask is the ordinary causal mask M_n. The equation says that M_n is the inverse of I − Shift_n,
    which is what the decay mask becomes (`state_space_duality`).

    The model is then linear attention: the state keeps the sum of everything that was written to
    it.
    """
    return Statement(
        matmul(CausalMask(n), less(Identity(n), Shift(n))), Identity(n), on_models=False
    )


x, W, Y = MatrixSymbol("x", 1, d), MatrixSymbol("W", d, s), MatrixSymbol("Y", n, s)
eta = sympy.Symbol("eta", real=True)
LOSS = matmul(Rational(1, 2), Transpose(less(matmul(X, W), Y)), less(matmul(X, W), Y))


@theorem(
    title="One step of gradient descent on examples in the prompt is a linear attention head",
    chapter=3,
    convention="row",
    source=OSWALD,
    covers=("B36",),
)
def linear_attention_is_a_gradient_step() -> Statement:
    """One step of gradient descent on examples in a prompt can be computed by one attention head
    without softmax. The prompt holds inputs X and targets Y as rows, and a query x; a linear model
    predicts x W. After one step of size η on the squared error its prediction is x W + η Σ_j
    (x·x_j)(y_j − x_j W). The sum is attention with x as query, the inputs as keys and the errors as
    values.

    It is one proposed account of in-context learning. That trained transformers do this is a
    separate claim, which needs evidence of its own.

    The left side takes the gradient of the loss itself.
    """
    return Statement(
        matmul(x, matadd(W, matmul(-eta, gradient(Trace(LOSS), W)))),
        matadd(matmul(x, W), matmul(eta, matmul(x, Transpose(X)), less(Y, matmul(X, W)))),
        on_models=False,
    )
