"""Chapter 3: who sees whom: the causal mask, prefixes, what is linear, chains of patterns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sympy import (
    BlockMatrix,
    Identity,
    MatrixSymbol,
    OneMatrix,
    Transpose,
    ZeroMatrix,
    sqrt,
)

from otimes.algebra.facts import Fact, attention_pattern
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.patterns import MASK, PATTERN, W_QK, S_n, entrywise
from otimes.proofs.catalogue.attention_head.scores import READS, less
from otimes.proofs.catalogue.recorded import of_OV, of_QK
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER, VASWANI
from otimes.proofs.catalogue.symbols import (
    H,
    L,
    X,
    alpha,
    beta,
    d,
    d_head,
    h,
    heads,
    l,
    layers,
    m,
    n,
    row,
)
from otimes.proofs.claims import ErrorLaw, Property, Statement
from otimes.proofs.theorem import theorem

DONG = (
    "Dong, Cordonnier and Loukas 2021, “Attention is Not All You Need: Pure Attention Loses Rank "
    "Doubly Exponentially with Depth”, arXiv:2103.03404"
)
W_OV = matmul(row.W_V, row.W_O)


@theorem(
    title="A masked pattern is lower triangular",
    chapter=3,
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-27", "S0-44", "S1-24"),
)
def pattern_is_causal() -> Property:
    """In a language model no position attends to a later one: with the causal mask, the pattern is
    lower triangular, with zero weights for j > i. A position may attend to itself and to every
    earlier one, however far back. S (n × n) are arbitrary scores.

    So a head that attends to the next token cannot exist in a decoder. In contrast, a convolution
    of width k reaches k positions only.
    """
    return Property(
        Fact("causal", RowSoftmax(S_n, MASK)),
        bind=({"S": Source("scores")},),
        places={"pattern": RowSoftmax(S_n, MASK)},
        bare=False,
    )


@theorem(
    title="The output of a causal head at i is a weighted mean of W_OV x_j over j ≤ i",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Attention heads as information movement”; class notes on the "
    "formulation of transformers",
    covers=("S0-44", "S3-007", "S1-25"),
)
def head_reads_what_it_sees() -> Statement:
    """At position i a head writes a weighted mean of the vectors x_j W_OV over the visible
    positions j ≤ i. The equation says that multiplying the pattern by the causal mask once more,
    which is what “j ≤ i” under a sum means, changes nothing.

    The QK circuit, inside the pattern, decides from where; the OV circuit W_V W_O decides what.
    X_QK is what queries and keys read, in a shortformer the stream with positions added.

    Three slips are common. The mean is of x_j W_OV and not of the x_j. It includes j = i. And the
    two circuits do not act through the product W_QK W_OV.
    """
    asks = MatrixSymbol("X_QK", n, d)
    scores = matmul(1 / sqrt(d_head), asks, W_QK, Transpose(asks))
    pattern, strictly = RowSoftmax(scores, MASK), less(MASK, Identity(n))
    written = matmul(pattern, X, row.W_V, row.W_O)
    return Statement(
        written,
        matmul(entrywise(pattern, MASK), X, W_OV),
        places={"pattern": pattern, "head_out": written},
        bind=({"X_QK": Source("qk_in")},),
        printed={
            "E15": (written, matmul(pattern, X)),
            "E30": (written, matmul(entrywise(pattern, Transpose(strictly)), X, W_OV)),
            "E35": (written, matmul(entrywise(pattern, strictly), X, W_OV)),
            "E61": (written, matmul(entrywise(pattern, strictly), X, W_OV)),
            "E21": (written, matmul(X, W_QK, W_OV)),
        },
    )


@theorem(
    title="With its pattern held constant, the output of a head is linear in W_OV",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S1-26", "S1-25"),
)
def head_is_linear_in_W_OV() -> Statement:
    """The output of a head is linear in its OV circuit: for a mixture of two OV matrices U and V (d
    × d) it is the same mixture of two outputs. The pattern is computed from queries and keys alone,
    so exchanging W_OV does not change where the head attends. The factors are two numbers α and β.

    So QK and OV are independent parts of a head. This holds within one layer; what a head writes
    does change the patterns of later layers.
    """
    U, V = MatrixSymbol("U", d, d), MatrixSymbol("V", d, d)

    def written(circuit: object) -> object:
        return matmul(PATTERN, X, circuit)

    return Statement(
        written(matadd(matmul(alpha, U), matmul(beta, V))),
        matadd(matmul(alpha, written(U)), matmul(beta, written(V))),
        bind=(
            READS
            | {
                "U": Source("W_E", rows=128, example=True),
                "V": Source("W_U", cols=128, example=True),
            },
        ),
        places={"pattern": PATTERN},
    )


@theorem(
    title="Without softmax a head is cubic in the stream",
    chapter=3,
    convention="row",
    source="class notes on the formulation of transformers, corrected; Katharopoulos et al. 2020, "
    "“Transformers are RNNs”, on attention without softmax",
    covers=("S0-46", "S0-45"),
)
def head_without_softmax_is_cubic() -> Statement:
    """If the softmax is left out, a head is still not linear. It is cubic: the stream occurs as
    query, as key and as value, so twice the stream gives eight times the result. In the formula the
    stream is multiplied by α, and the result by α³.

    So it is wrong that everything in an attention layer but the softmax is linear. A head is linear
    only with its pattern held constant (`frozen_attention_is_linear`).
    """

    def head(stream: object) -> object:
        return matmul(matmul(stream, W_QK, Transpose(stream)), stream, W_OV)

    scaled = head(matmul(alpha, X))
    return Statement(
        scaled,
        matmul(alpha**3, head(X)),
        printed={"E06": (scaled, matmul(alpha, head(X)))},
        places={**of_OV(), **of_QK()},
    )


Y = MatrixSymbol("Y", m, d)  # what comes after the prefix X
WHOLE = BlockMatrix([[X], [Y]])
SEEN = BlockMatrix([[CausalMask(n), ZeroMatrix(n, m)]])  # the rows of the mask for the prefix


def _attends(W_Q: object, W_K: object) -> tuple[object, object]:
    """Return the pattern of the prefix among all positions, and that of the prefix alone."""
    reads = matmul(X, W_Q, Transpose(W_K))
    scale = 1 / sqrt(d_head)
    return (
        RowSoftmax(matmul(scale, reads, Transpose(WHOLE)), SEEN),
        RowSoftmax(matmul(scale, reads, Transpose(X)), CausalMask(n)),
    )


@theorem(
    title="The attention pattern of a prefix does not depend on what follows it",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {VASWANI}, §3.2.3",
    covers=("S1-15", "S3-009", "S0-44", "S2-20"),
)
def prefix_sees_no_later_keys() -> Statement:
    """The attention pattern on the first n positions of a prompt is the same whether or not the
    prompt goes on. X holds these n positions and Y the m that follow; the rows of X in the pattern
    are those for X alone, followed by zeros.

    The later tokens do not even enter the denominator of the softmax. They would, if the mask were
    applied after the softmax instead of before.
    """
    whole, alone = _attends(row.W_Q, row.W_K)
    return Statement(whole, BlockMatrix([[alone, ZeroMatrix(n, m)]]), on_models=False)


@theorem(
    title="A causal layer computes a prefix independently of what follows it",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Attention heads as information movement”; Pope et al. 2022, "
    "“Efficiently Scaling Transformer Inference”, on key-value caches",
    covers=("S2-20", "S0-44"),
)
def prefix_is_computed_alone() -> Statement:
    """What a causal attention layer computes for a prefix X does not depend on the tokens Y that
    follow. MLPs and norms act on each position by itself, so the prefix stays a prefix for the next
    layer (`prefix_is_computed_alone_every_depth`).

    Two things in practice rest on this. Training predicts every next token of a text in one pass,
    and generation keeps the keys and values of what has been read (`kv_cache_is_last_row`).
    """
    W_Q, W_K = (Family(name, (H,), d, d_head)[h] for name in ("W_Q", "W_K"))
    W_V, W_O = Family("W_V", (H,), d, d_head)[h], Family("W_O", (H,), d_head, d)[h]

    def layer(pattern: object, sources: object) -> object:
        return matadd(X, HeadSum(matmul(pattern, sources, W_V, W_O), (h, H)))

    whole, alone = _attends(W_Q, W_K)
    return Statement(layer(whole, WHOLE), layer(alone, X), on_models=False)


@theorem(
    title="At every depth a causal model computes a prefix independently of what follows it",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Path expansion of logits”; Pope et al. 2022, “Efficiently Scaling "
    "Transformer Inference”, on key-value caches",
    covers=("S2-20",),
)
def prefix_is_computed_alone_every_depth() -> Statement:
    """In a causal model of any depth, what is computed for a prefix does not depend on what follows
    it. P picks the m positions of the prefix out of n. For each head, A is the pattern on the whole
    prompt and B the pattern on the prefix alone, and P A = B P says that they agree there
    (`prefix_sees_no_later_keys`). Then picking the prefix after all layers equals running the
    layers on the prefix.

    MLPs and norms act on each position by itself (`everything_else_is_positionwise`), so they may
    stand between the layers. Without the causal mask the hypothesis fails in the first layer.
    """
    P, B = MatrixSymbol("P", m, n), Family("B", (L, H), m, m)[l, h]
    W_OV = matmul(layers.column.W_O[l, h], layers.column.W_V[l, h])

    def model(positions: Any, pattern: Any) -> LayerProduct:
        past = Identity(positions * d)
        return LayerProduct(matadd(past, HeadSum(kron(pattern, W_OV), (h, H))), (l, L))

    pick = kron(P, Identity(d))
    return Statement(
        matmul(pick, model(n, layers.A[l, h])),
        matmul(model(m, B), pick),
        given=[(matmul(P, layers.A[l, h]), matmul(B, P))],
        on_models=False,
    )


patterns = Family("A", (L,), n, n)


@theorem(
    title="A product of attention patterns has rows that sum to one",
    chapter=3,
    source=f"{FRAMEWORK}, “Virtual attention heads”",
    covers=("B15",),
)
def product_of_patterns_is_stochastic() -> Property:
    """The product of any number of attention patterns again has non-negative entries and rows that
    sum to one: a weighted mean of weighted means is a weighted mean.

    Such a product is the pattern of a virtual head, heads in several layers that read from each
    other. It can therefore be read as a distribution over source positions.
    """
    return Property(
        Fact("row_stochastic", LayerProduct(patterns[l], (l, L))),
        given=attention_pattern(patterns[l], causal=False),
    )


@theorem(
    title="A product of causal patterns is causal",
    chapter=3,
    source=f"{FRAMEWORK}, “Virtual attention heads”",
    covers=("B15",),
)
def product_of_patterns_is_causal() -> Property:
    """A product of causal attention patterns, over any number of layers, is causal: products of
    lower triangular matrices are lower triangular. So a chain of heads, like a single head, moves
    information only from earlier positions to later ones.
    """
    return Property(
        Fact("causal", LayerProduct(patterns[l], (l, L))),
        given=[Fact("causal", patterns[l])],
    )


def _absorbing(rest: object) -> object:
    """Return the pattern of which the first position sees itself only, by its other positions."""
    one = OneMatrix(m, 1)
    first = less(one, matmul(rest, one))
    return BlockMatrix([[OneMatrix(1, 1), ZeroMatrix(1, m)], [first, rest]])


@theorem(
    title="Under products of causal patterns, weight on the first position stays there",
    chapter=3,
    source="Markov chains with an absorbing state: Kemeny and Snell 1960, “Finite Markov Chains”, "
    "chapter 3",
    covers=("B15",),
)
def first_position_absorbs() -> Statement:
    """In a product of causal patterns, the weight that has reached the first position stays there.
    Write a pattern as blocks: the first position attends only to itself, the others give it what
    their rows of B leave over. The product of two such patterns, with B and C, has the same form,
    with BC.

    So when patterns are multiplied over many layers, more and more weight collects on the first
    token (`powers_concentrate_on_first_position`). It says nothing about meaning: that token need
    not matter.
    """
    B, C = MatrixSymbol("B", m, m), MatrixSymbol("C", m, m)
    return Statement(
        matmul(_absorbing(B), _absorbing(C)),
        _absorbing(matmul(B, C)),
        bind=({"B": Source("pattern"), "C": Source("pattern", layer=0, example=True)},),
        places={"pattern": B},
        bare=False,
    )


@theorem(
    title="Powers of a causal pattern concentrate on the first position",
    chapter=3,
    source="Markov chains with an absorbing state: Kemeny and Snell 1960, “Finite Markov Chains”, "
    "chapter 3",
    covers=("B15",),
)
def powers_concentrate_on_first_position() -> ErrorLaw:
    """Applying the same causal pattern again and again moves all weight to the first token. The
    other positions form a triangular matrix whose eigenvalues are the diagonal weights A_ii. If all
    of these are below 1, its powers go to zero like the largest of them to the power of the depth
    L. Here the largest is 1/2, and the remaining weight falls like 2^{−L}.

    Skip connections prevent this in transformers, since the identity path keeps each position's own
    vector.
    """
    pattern = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.3, 0.5, 0.2, 0], [0.25, 0.25, 0.4, 0.1]])

    def off_the_first(step: float) -> float:
        power = np.linalg.matrix_power(pattern, round(-math.log2(step)))
        return float(np.abs(power[:, 1:]).max())

    return ErrorLaw(
        r"\max_{i,\, j > 0} (A^L)_{ij}",
        off_the_first,
        order=1.0,
        start=2.0**-10,
        halvings=6,
        small="2^{-L}",
    )


@theorem(
    title="Rows of the stream that are equal stay equal under any attention pattern",
    chapter=3,
    convention="row",
    source=DONG,
    covers=("B15",),
)
def equal_rows_stay_equal() -> Statement:
    """If all positions hold the same vector x, an attention layer gives all of them the same
    result, whatever its patterns: every weighted mean of x is x. Without skip connections this
    holds in each following layer too. S[h] (n × n) are arbitrary scores of head h.

    It is the state in which deep attention without skips gets stuck (`pure_attention_loses_rank`).
    """
    x, everywhere = MatrixSymbol("x", 1, d), OneMatrix(n, 1)
    A = RowSoftmax(Family("S", (H,), n, n)[h], MASK)
    W_OV = matmul(heads.row.W_V[h], heads.row.W_O[h])
    return Statement(
        HeadSum(matmul(A, everywhere, x, W_OV), (h, H)),
        matmul(everywhere, HeadSum(matmul(x, W_OV), (h, H))),
        bind=({"S": Source("scores"), "x": Source("W_E", rows=1)},),
    )


_RNG = np.random.default_rng(20211222)
_COMMON, _APART = _RNG.standard_normal((1, 4)), _RNG.standard_normal((5, 4))
_FORM = _RNG.standard_normal((4, 4))


SPREAD = r"\lVert \operatorname{res}(X) \rVert"  # of the rows of a stream


def _unequal_after(step: float, skip: bool) -> float:
    """Return how unequal rows are after attention, when they were so by `step` before."""
    stream = _COMMON + step * _APART
    scores = stream @ _FORM @ stream.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    result = weights / weights.sum(axis=1, keepdims=True) @ stream + (stream if skip else 0)
    return float(np.linalg.norm(result - result.mean(axis=0)))


@theorem(
    title="Without skip connections attention cubes the differences between positions",
    chapter=3,
    source=DONG,
    covers=("B15",),
)
def pure_attention_loses_rank() -> ErrorLaw:
    """Attention without skip connections makes positions alike very fast: if they differ from a
    common vector by something of size h, then after one head they differ by something of size h³.
    (The scores of two queries differ, up to a constant in each row, by h² only; the weights are
    then nearly equal, and they mix differences of size h.)

    Repeated over layers, the differences fall doubly exponentially with depth, which is called rank
    collapse. res(X) is X less the mean of its rows.

    `skip_keeps_rank` is why transformers do not suffer from it.
    """
    return ErrorLaw(
        r"\lVert \operatorname{res}(A(X) X) \rVert",
        lambda h: _unequal_after(h, skip=False),
        order=3.0,
        start=0.02,
        small=SPREAD,
    )


@theorem(
    title="With a skip connection the differences between positions remain",
    chapter=3,
    source=DONG,
    covers=("B15",),
)
def skip_keeps_rank() -> ErrorLaw:
    """A skip connection keeps positions different: after X + A(X) X, an attention layer whose input
    X is added to its result, differences between positions of size h are still of size h, because
    the skip carries them unchanged. Without it they shrink to size h³
    (`pure_attention_loses_rank`). res(X) is X less the mean of its rows.

    In the expansion into paths this is the identity path, which passes through no pattern.
    """
    return ErrorLaw(
        r"\lVert \operatorname{res}(X + A(X) X) \rVert",
        lambda h: _unequal_after(h, skip=True),
        order=1.0,
        start=0.02,
        small=SPREAD,
    )
