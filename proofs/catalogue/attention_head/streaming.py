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
    """Write one more token. Its row of the causal pattern sees all positions, so what the head
    reads there is softmax(q [K; k]ᵀ/√d_head) [V; v], with q, k and v from the new row of the stream
    and K and V from the rows before. K and V are what the cache holds: they were computed when
    those tokens were new, and a causal model never changes them (`prefix_is_computed_alone`).

    Here the last row of attention over the whole prompt, mask included, equals attention of one
    query without a mask over the cached keys and the new one.
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
    """Read the keys in blocks. For each block keep a reference m for each query (in practice its
    largest score, so that no exp overflows), and o, the sum of exp(s − m) v over the keys. Two
    blocks merge by exp(m_1 − m) o_1 + exp(m_2 − m) o_2. The result is what one pass over all keys
    gives, for every choice of references. With ones for the values it is ℓ, the sum of weights,
    that merges so; and o/ℓ is attention (`online_softmax_is_attention`).
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
    """Let o_1, o_2 and o_3 be what three blocks of keys have summed, each with its references m_k.
    Merge the first two and then the third, or the last two and then the first: the result is the
    same, with any references in between. So keys may be split over blocks, devices or a tree in any
    way, which is what FlashAttention and ring attention do. In floating point the order still
    decides the last bits.
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
    """O = ℓ · softmax(S) V, for any references m: the sums that are kept while keys are read, one
    divided by the other, are attention. The references cancel.
    """
    S, V, reference = BLOCKS[0]
    weights = _weights(S, reference)
    total = matmul(weights, OneMatrix(S.shape[1], 1))
    return Statement(
        matmul(weights, V),
        matmul(DiagMatrix(total), RowSoftmax(S), V),
        bind=(
            {
                "S_1": Source("q", cols=6),
                "V_1": Source("v", rows=6),
                "m_1": Source("q", cols=1),
            },
        ),
    )


@theorem(
    title="Softmax with 1 added to its sum is a key of score 0 whose value is 0",
    chapter=3,
    source=MILLER,
    covers=("B33",),
)
def softmax_plus_one_is_a_null_key() -> Statement:
    """Weights exp(s_j)/(1 + Σ_k exp(s_k)) let a head attend to nothing: they sum to less than one.
    Exactly the same is read by the usual softmax with one more key, which every query scores 0 and
    whose value is the zero vector. A sink token is that key made by training: attention goes there,
    and next to nothing is read. A learned sink, with a score b in place of 0, puts exp(b) for 1.

    Stated times the denominator: (exp(b) + Σ exp(s)) · softmax([b, S]) [0; V] = exp(S) V.
    """
    S, V, b = MatrixSymbol("S", n, m), MatrixSymbol("V", m, d_head), MatrixSymbol("b", n, 1)
    with_sink = RowSoftmax(BlockMatrix([[b, S]]))
    values = BlockMatrix([[ZeroMatrix(1, d_head)], [V]])
    total = matadd(exp(b), matmul(exp(S), OneMatrix(m, 1)))
    return Statement(
        matmul(DiagMatrix(total), with_sink, values),
        matmul(exp(S), V),
        bind=({"S": Source("q", cols=6), "V": Source("v", rows=6), "b": Source("k", cols=1)},),
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
    """Replace exp(q·k) by φ(q)·φ(k). Under the causal mask, position i reads
    Σ_{j ≤ i} (φ(q_i)·φ(k_j)) v_j = φ(q_i) S_i, where S_i = S_{i−1} + φ(k_i)ᵀ v_i: one matrix, of a
    size that does not grow with the prompt, in place of a cache of all keys and values.

    One step is the matrix I + U φ(k)ᵀ v Wᵀ on the state with a 1 beside it, here
    [[I, φ(k)ᵀ v], [0, I]]. L steps in a row, whatever L is, put Σ φ(k_l)ᵀ v_l in its corner.
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
    """(M ∘ φ(Q) φ(K)ᵀ) V, row i, is φ(q_i) times the state Σ_j M_ij φ(k_j)ᵀ v_j, the sum over the
    positions that i may see. The left side costs n² scores, for training in parallel; the right
    side is the recurrence, for generating token by token.
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
    )


@theorem(
    title="State-space duality: a gated recurrence is attention with a decay mask",
    chapter=3,
    convention="row",
    source=MAMBA_2,
    covers=("B35",),
)
def state_space_duality() -> Statement:
    """A state space model with one gate a_i a position keeps h_i = a_i h_{i−1} + b_iᵀ x_i, a matrix
    of r rows, and puts out y_i = c_i h_i. With Z the shift by one position, row s of the states of
    all positions solves h_s = diag(a) Z h_s + diag(B_s) X. So Y = (Λ ∘ C Bᵀ) X with
    Λ = (I − diag(a) Z)⁻¹, whose entry (i, j) is a_i a_{i−1} … a_{j+1} for j ≤ i: linear attention
    with queries C, keys B, values X, and the decay Λ in place of the causal mask. With all gates 1,
    Λ is that mask.
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
    """M (I − Z) = I, for the shift Z by one position and the causal mask M: the decay mask
    (I − diag(a) Z)⁻¹ is M when all gates are 1. What a position adds then stays in the state for
    ever, and the state space model is linear attention.
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
    """Let a prompt hold examples (x_j, y_j) and a query x. A linear model W predicts x W; its
    squared error on the examples is ½ Σ_j ‖x_j W − y_j‖². After one gradient step of size η it
    predicts x W + η Σ_j (x·x_j)(y_j − x_j W): attention without softmax, whose queries and keys are
    the inputs and whose values are the errors made so far.

    The gradient is taken of the loss itself, not put in by hand. That a trained transformer does
    this is another claim, which needs evidence of its own.
    """
    return Statement(
        matmul(x, matadd(W, matmul(-eta, gradient(Trace(LOSS), W)))),
        matadd(matmul(x, W), matmul(eta, matmul(x, Transpose(X)), less(Y, matmul(X, W)))),
        on_models=False,
    )
