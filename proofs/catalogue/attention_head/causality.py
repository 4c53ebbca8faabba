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
    """Under the causal mask A_ij = 0 for j > i: no position reads a later one, itself included
    among those it may read. A head that attends to the next position does not exist in a decoder.
    Every earlier position can have weight, however far: one layer of attention reaches the whole
    prefix, where a convolution of width k reaches k positions.
    """
    return Property(Fact("causal", RowSoftmax(S_n, MASK)), bind=({"S": Source("scores")},))


@theorem(
    title="The output of a causal head at i is a weighted mean of W_OV x_j over j ≤ i",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Attention heads as information movement”; class notes on the "
    "formulation of transformers",
    covers=("S0-44", "S3-007", "S1-25"),
)
def head_reads_what_it_sees() -> Statement:
    """h(x)_i = Σ_{j ≤ i} a_ij x_j W_OV. Multiplying the pattern by the mask once more, which is
    what the j ≤ i under the sum does, changes nothing. QK, inside the pattern, decides from where
    (X_QK is the stream, in a shortformer with positions added); OV, behind it, decides what.

    Three slips are common. The sum is of x_j W_OV and not of the states x_j themselves. It includes
    i: with “every other token” the first position would have nothing to read. And QK and OV do not
    act by a product W_QK W_OV, which has the right shape and no position in it.
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
    """Put a mixture of two OV circuits into a head, its pattern computed as always: the result is
    the same mixture of two results. For W_OV does not occur in the pattern, so that exchanging it
    cannot move where the head looks. QK and OV are independent parts of a head, within its layer:
    what a head writes does change the patterns of later layers.
    """
    U, V = MatrixSymbol("U", d, d), MatrixSymbol("V", d, d)

    def written(circuit: object) -> object:
        return matmul(PATTERN, X, circuit)

    return Statement(
        written(matadd(matmul(alpha, U), matmul(beta, V))),
        matadd(matmul(alpha, written(U)), matmul(beta, written(V))),
        bind=(READS | {"U": Source("W_E", rows=128), "V": Source("W_U", cols=128)},),
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
    """Take the softmax away, and a head is X W_QK Xᵀ times X W_OV: the stream occurs three times,
    as query, as key and as value. Twice the stream gives eight times the result. So it is wrong
    that all is linear apart from the softmax. A head is linear in the values when its pattern is
    frozen, and in nothing else.
    """

    def head(stream: object) -> object:
        return matmul(matmul(stream, W_QK, Transpose(stream)), stream, W_OV)

    scaled = head(matmul(alpha, X))
    return Statement(
        scaled,
        matmul(alpha**3, head(X)),
        printed={"E06": (scaled, matmul(alpha, head(X)))},
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
    """Let the prompt go on: n positions X, then m more, Y. The rows of the pattern that belong to X
    are the pattern of X alone, beside zeros. Y stands on the left only: later tokens change nothing
    for earlier ones, not even through the denominator of the softmax, as they would if masking were
    done after it. For n positions ending at i this is softmax over j ≤ i, the X_≤i of the papers.
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
    """A layer with any number of heads: the rows of the prefix X come out as they do when X is all
    there is. MLPs and norms act on each row by itself, so the rows of X are again a prefix for the
    next layer: `prefix_is_computed_alone_every_depth`.

    It is why training can predict every next token in one pass, and why generation may keep the
    keys and values of what was read: nothing that comes later changes them.
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
    """Let P pick the m positions of a prefix out of n. What is asked of each head of each layer is
    that its pattern, on the rows of the prefix, is the pattern B of the prefix alone, beside zeros:
    P A = B P (`prefix_sees_no_later_keys`). Then the same holds of all layers together, for any
    number of them and of heads: pick the prefix after the model, or run the model on the prefix.

    MLPs and norms act on each position by itself (`everything_else_is_positionwise`), so they can
    stand between the layers without changing this. Without the mask P A = B P fails in the first
    layer, and every later token changes everything.
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
    """Attend in one layer to what attended in the layer before: A² A¹. Means of means are means, so
    the product of any number of patterns has non-negative entries and rows that sum to one. It is
    the pattern of a virtual head.
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
    """What cannot be seen in one step cannot be seen in several: products of lower triangular
    matrices are lower triangular, at every depth. So virtual heads too read only what came before.
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
    """The first position sees only itself. Split a causal pattern into the first position and the
    others, B: the weight that row i gives the first position is one minus the sum of its row of B.
    A product of two such patterns is of the same form, with B² B¹: weight that has reached the
    first position never leaves, and what has not is what B² B¹ still holds.
    """
    B, C = MatrixSymbol("B", m, m), MatrixSymbol("C", m, m)
    return Statement(
        matmul(_absorbing(B), _absorbing(C)),
        _absorbing(matmul(B, C)),
        bind=({"B": Source("pattern"), "C": Source("scores")},),
    )


@theorem(
    title="Powers of a causal pattern concentrate on the first position",
    chapter=3,
    source="Markov chains with an absorbing state: Kemeny and Snell 1960, “Finite Markov Chains”, "
    "chapter 3",
    covers=("B15",),
)
def powers_concentrate_on_first_position() -> ErrorLaw:
    """Apply one causal pattern again and again. Its other positions form a triangular matrix whose
    eigenvalues are its diagonal, the weights A_ii that positions give themselves. If all are less
    than one, its powers vanish as the largest of them to the power of the depth, and all weight
    ends on the first token. Here the largest is a half; with h = 2^-depth the rest falls like h.

    Skip connections are what prevents it: there the identity path always keeps its weight.
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
    """When all positions hold the same vector x, every mean of them is x again: no pattern can tell
    them apart. A layer of attention without a skip gives all of them the same Σ_h x W_OV, so they
    are equal again for the next layer, and so on at every depth. That is the trap which pure
    attention falls into, and no pattern leads out of it.
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
    """Let positions differ from a common vector by something of size h. Then the scores of two
    queries differ, up to a constant along the row, by h² only, so that all rows of the pattern are
    nearly the same; the pattern mixes differences of size h; and what differs after the head is of
    size h³. Cubed in each layer, differences fall doubly exponentially with depth: rank collapse.
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
    """The same with the stream added: X + A(X) X. The skip carries the differences over as they
    are, so what is left is of size h and not h³. In the sum over paths this is the identity path,
    which passes no pattern at all.
    """
    return ErrorLaw(
        r"\lVert \operatorname{res}(X + A(X) X) \rVert",
        lambda h: _unequal_after(h, skip=True),
        order=1.0,
        start=0.02,
        small=SPREAD,
    )
