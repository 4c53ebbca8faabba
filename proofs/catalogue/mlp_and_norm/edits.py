"""Chapter 4: changed weights: LoRA, rank-one edits, merged models, curvature, quantisation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy
from sympy import (
    Identity,
    Inverse,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Trace,
    Transpose,
)

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul, vec_cols
from otimes.algebra.language.nonlinear import Activation
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.symbols import X, d, d_head, n, q, r, size
from otimes.proofs.claims import Bound, Entries, Example, NonIdentity, Property, Square, Statement
from otimes.proofs.theorem import theorem

LORA = "Hu et al. 2022, “LoRA: Low-Rank Adaptation of Large Language Models”, §4"
ROME = "Meng et al. 2022, “Locating and Editing Factual Associations in GPT”, §3.1"
MERGING = "Wortsman et al. 2022, “Model soups”; linear algebra"
KFAC = "Martens and Grosse 2015, “Optimizing Neural Networks with Kronecker-factored Approximate "
KFAC += "Curvature”, §3"
QUAROT = "Ashkboos et al. 2024, “QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs”, §3"

half = Rational(1, 2)
W = MatrixSymbol("W", d, q)


# -- LoRA ------------------------------------------------------------------------------------------


def adapted(name: str, rows: Any, cols: Any) -> tuple[Any, Any, Any]:
    """Return a weight and the two factors of its low-rank change."""
    return (
        MatrixSymbol(name, rows, cols),
        MatrixSymbol(f"A_{name[-1]}", rows, r),
        MatrixSymbol(f"B_{name[-1]}", r, cols),
    )


W_Q, A_Q, B_Q = adapted("W_Q", d, d_head)
W_K, A_K, B_K = adapted("W_K", d, d_head)
W_V, A_V, B_V = adapted("W_V", d, d_head)
W_O, A_O, B_O = adapted("W_O", d_head, d)


@theorem(
    title="A LoRA adapter merges into its weight",
    chapter=4,
    convention="row",
    source=LORA,
    covers=("B41",),
)
def lora_merges() -> Statement:
    """A LoRA adapter, which fine-tunes a weight W by adding two thin matrices, can be merged into
    the weight: X W + (X A_W) B_W = X (W + A_W B_W). A_W has r columns and B_W has r rows, so the
    change has rank at most r.

    After training the adapter costs nothing. Merging works because nothing nonlinear stands
    between; an adapter around an activation function cannot be merged.
    """
    A, B = MatrixSymbol("A_W", d, r), MatrixSymbol("B_W", r, q)
    return Statement(
        matadd(matmul(X, W), matmul(matmul(X, A), B)),
        matmul(X, matadd(W, matmul(A, B))),
        on_models=False,
    )


@theorem(
    title="LoRA on queries and keys changes W_QK by three terms",
    chapter=4,
    convention="row",
    source=LORA,
    covers=("B41",),
)
def lora_on_QK() -> Statement:
    """LoRA adapters on W_Q and on W_K change the circuit W_QK by three terms: a changed query
    against old keys, an old query against changed keys, and a changed query against changed keys.
    Each adapter adds a product A B of rank at most r. These are A_Q B_Q for W_Q and A_K B_K for
    W_K.

    The last term involves both adapters. Reading the two adapters one at a time misses it.
    """
    return Statement(
        matmul(matadd(W_Q, matmul(A_Q, B_Q)), Transpose(matadd(W_K, matmul(A_K, B_K)))),
        matadd(
            matmul(W_Q, Transpose(W_K)),
            matmul(A_Q, B_Q, Transpose(W_K)),
            matmul(W_Q, Transpose(B_K), Transpose(A_K)),
            matmul(matmul(A_Q, B_Q), matmul(Transpose(B_K), Transpose(A_K))),
        ),
        on_models=False,
    )


@theorem(
    title="LoRA on values and outputs changes W_OV by three terms",
    chapter=4,
    convention="row",
    source=LORA,
    covers=("B41",),
)
def lora_on_OV() -> Statement:
    """LoRA adapters on W_V and on W_O change the circuit W_OV by three terms: reading new
    directions and writing as before, reading as before and writing new directions, and both
    together. The adapters are the products A_V B_V and A_O B_O of thin matrices.

    The last term is of second order in the adapters, so it matters most where they are large.
    """
    return Statement(
        matmul(matadd(W_V, matmul(A_V, B_V)), matadd(W_O, matmul(A_O, B_O))),
        matadd(
            matmul(W_V, W_O),
            matmul(A_V, B_V, W_O),
            matmul(W_V, A_O, B_O),
            matmul(matmul(A_V, B_V), matmul(A_O, B_O)),
        ),
        on_models=False,
    )


@theorem(
    title="Two adapters of rank r change a circuit by rank 2r at most",
    chapter=4,
    convention="row",
    source=LORA,
    covers=("B41",),
)
def lora_rank_at_most_2r() -> Property:
    """Two LoRA adapters of rank r, on W_V and on W_O, change W_OV by a matrix of rank at most 2r,
    not 3r as a count of the three terms suggests (`lora_on_OV`): grouped as in the formula, they
    are two products through r dimensions. The adapters are the products A_V B_V and A_O B_O,
    through r dimensions each.

    So all that fine-tuning changed in such a circuit can be read from 2r singular directions. The
    same holds for W_QK.
    """
    change = matadd(
        matmul(A_V, matmul(B_V, matadd(W_O, matmul(A_O, B_O)))), matmul(matmul(W_V, A_O), B_O)
    )
    return Property(
        Fact("rank_at_most", change, sympy.Min(d, 2 * r, d_head + r, 2 * d_head)), on_models=False
    )


# -- rank-one edits --------------------------------------------------------------------------------

k, v = MatrixSymbol("k", 1, d), MatrixSymbol("v", 1, q)
K, V = MatrixSymbol("K", n, d), MatrixSymbol("V", n, q)
u = MatrixSymbol("u", d, 1)
length = MatrixSymbol("G", 1, 1)
EDITED = matadd(W, matmul(u, less(v, matmul(k, W))))
# W fits the old pairs by least squares; u is C⁻¹kᵀ, scaled so that k u = 1.
OLD_FIT = (matmul(Transpose(K), K, W), matmul(Transpose(K), V))
DIRECTION = (matmul(Transpose(K), K, u), matmul(Transpose(k), length))
SCALED = (matmul(k, u), Identity(1))
MEMORIES = (
    {
        "K": [[1, 0], [0, 2], [0, 0]],
        "W": [[1, 2], [-1, 3]],
        "V": [[1, 2], [-2, 6], [3, -1]],
        "k": [[1, 4]],
        "v": [[7, -2]],
        "u": [[Fraction(1, 5)], [Fraction(1, 5)]],
        "G": [[Fraction(1, 5)]],
        "Wprime": [[3, 2], [1, -1]],
    },
    {
        "K": [[1, 1], [0, 1], [1, 0]],
        "W": [[1, 0], [2, -1]],
        "V": [[4, 1], [1, -3], [0, -2]],
        "k": [[3, 0]],
        "v": [[6, 3]],
        "u": [[Fraction(1, 3)], [Fraction(-1, 6)]],
        "G": [[Fraction(1, 6)]],
        "Wprime": [[2, 1], [1, 4]],
    },
    {
        "K": [[1, 0], [0, 2]],
        "W": [[1, 2], [-1, 3]],
        "V": [[1, 2], [-2, 6]],
        "k": [[1, 4]],
        "v": [[7, -2]],
        "u": [[Fraction(1, 5)], [Fraction(1, 5)]],
        "G": [[Fraction(1, 5)]],
        "Wprime": [[3, 2], [1, -1]],
    },
)
OTHERS_DRAWN = {name: value for name, value in MEMORIES[0].items() if name != "Wprime"}
EXAMPLES = [Example(values) for values in (*MEMORIES, OTHERS_DRAWN)]


@theorem(
    title="A rank-one edit stores exactly the pair it is given",
    chapter=4,
    convention="row",
    source=ROME,
    covers=("B42",),
)
def rome_stores_the_pair() -> Statement:
    """A weight matrix that maps keys to values can be given one new pair by a change of rank one. W
    answers key k (a row) with k W; with u any column such that k u = 1, the weight W + u (v − k W)
    answers k with v, exactly.

    ROME edits a fact in an MLP in this way. The choice of u decides what happens to all other keys
    (`rome_is_the_best_edit`).
    """
    return Statement(matmul(k, EDITED), v, given=[SCALED], on_models=False)


@theorem(
    title="Among all edits that store a pair, ROME's disturbs the old memories least",
    chapter=4,
    convention="row",
    source=ROME,
    covers=("B42",),
)
def rome_is_the_best_edit() -> Bound:
    """Of all changes that make a weight map key k to value v, the one used by ROME disturbs its old
    pairs least in the sense of squared error. W fits old keys K to old values V by least squares; u
    has the direction C⁻¹kᵀ with C = KᵀK. Any other W′ with k W′ = v has a squared error larger by
    exactly ‖K(W′ − W″)‖², where W″ is the edited weight. W′ is Wprime in the formula, and the
    number G is 1/(k C⁻¹kᵀ).

    So the method is least squares with one constraint, and C is why it needs activations on
    ordinary text.

    The statement is about one matrix. It says nothing about what later layers make of the new
    value.
    """
    other = MatrixSymbol("Wprime", d, q)

    def error(weight: Any) -> Any:
        rest = less(matmul(K, weight), V)
        return Trace(matmul(rest, Transpose(rest)))

    return Bound(
        error(EDITED),
        error(other),
        [Square(matmul(K, less(other, EDITED)))],
        given=[OLD_FIT, DIRECTION, SCALED, (matmul(k, other), v), *EXAMPLES],
        tight={
            "W": [[2]],
            "K": [[1]],
            "V": [[2]],
            "k": [[1]],
            "v": [[5]],
            "u": [[1]],
            "G": [[1]],
            "Wprime": [[5]],
        },
        on_models=False,
    )


# -- merging ---------------------------------------------------------------------------------------


@theorem(
    title="Averaging two models averages W_V and W_O, not W_OV",
    chapter=4,
    convention="row",
    source=MERGING,
    covers=("B43",),
)
def averaged_factors_miss_a_term() -> Statement:
    """Averaging the weights of two models does not average their circuits: the product of the mean
    factors is the mean of the two circuits minus ¼ ΔV ΔO, where ΔV and ΔO are the differences of
    the factors of W_OV. The models are numbered 1 and 2, with factors W_V1 and W_O1, W_V2 and W_O2.

    So merging is exact for a circuit in which one factor is the same in both models. For two
    fine-tunings of one model the error is small. For two models trained apart, whose heads use
    different bases, it can be arbitrarily large.
    """
    V_1, V_2 = (MatrixSymbol(f"W_V{i}", d, d_head) for i in (1, 2))
    O_1, O_2 = (MatrixSymbol(f"W_O{i}", d_head, d) for i in (1, 2))
    whole = matmul(half, matadd(matmul(V_1, O_1), matmul(V_2, O_2)))
    gap = matmul(less(V_1, V_2), less(O_1, O_2))
    two = {f"W_{name}{i + 1}": Source(f"W_{name}", head=i) for name in "VO" for i in (0, 1)}
    return Statement(
        matmul(matmul(half, matadd(V_1, V_2)), matmul(half, matadd(O_1, O_2))),
        matadd(whole, matmul(-Rational(1, 4), gap)),
        bind=(two,),
    )


# -- curvature -------------------------------------------------------------------------------------

N, M = size("N"), size("M")
i, j = sympy.symbols("i j", integer=True)
a, g = Family("a", (N,), d, 1), Family("g", (M,), q, 1)


def second_moment(family: Any, index: Any, count: Any) -> Any:
    """Return the mean of x xᵀ over the members of a family of columns."""
    each = matmul(family[index], Transpose(family[index]))
    return matmul(1 / count, HeadSum(each, (index, count)))


@theorem(
    title="K-FAC: with inputs and gradients independent, the Fisher matrix is a Kronecker product",
    chapter=4,
    source=KFAC,
    covers=("B44",),
)
def kfac_fisher_factors() -> Statement:
    """The Fisher matrix of a layer's weights, the mean of the outer products of gradients over
    examples, is a Kronecker product if the layer's inputs a and the gradients g of its outputs are
    independent. For one example the gradient of the weight is g aᵀ, as a column a ⊗ g, so the
    Fisher matrix is the mean of (a aᵀ) ⊗ (g gᵀ). Under independence, here every a[i] meeting every
    g[j], that is the product of the two means.

    K-FAC uses this as an approximation for second-order optimisation and influence functions,
    because two small matrices can be inverted where a large one cannot.
    """
    outer = matmul(g[j], Transpose(a[i]))
    column = vec_cols(outer)
    return Statement(
        matmul(1 / (N * M), HeadSum(matmul(column, Transpose(column)), (i, N), (j, M))),
        kron(second_moment(a, i, N), second_moment(g, j, M)),
        on_models=False,
    )


@theorem(
    title="K-FAC is an approximation: inputs and gradients of one example are not independent",
    chapter=4,
    source=KFAC,
    covers=("B44",),
)
def kfac_is_not_exact() -> NonIdentity:
    """In a real batch each input comes with its own gradient, so the mean of (a_i a_iᵀ) ⊗ (g_i
    g_iᵀ) is not the product of the two means. The difference is the covariance of the two factors.

    K-FAC leaves it out. An optimiser or an influence function that uses K-FAC inherits this error.
    """
    paired = Family("g", (N,), q, 1)
    column = vec_cols(matmul(paired[i], Transpose(a[i])))
    return NonIdentity(
        matmul(1 / N, HeadSum(matmul(column, Transpose(column)), (i, N))),
        kron(second_moment(a, i, N), second_moment(paired, i, N)),
    )


@theorem(
    title="A K-FAC step needs two small inverses instead of a large one",
    chapter=4,
    source=KFAC,
    covers=("B44",),
)
def kfac_step() -> Statement:
    """The Fisher matrix describes how the predictions of a model react to its weights, and its
    inverse times the gradient is called the natural gradient. If it is a Kronecker product A ⊗ G,
    the natural gradient needs two small inverses instead of a large one: it is vec(G⁻¹ D A⁻¹),
    where D is the gradient of the weight as a matrix (A is symmetric). A, the second moment of the
    inputs, is A_in in the formula.

    For a layer of 768 × 3072 the two matrices have 768 and 3072 rows; the Fisher matrix would have
    2.4 million.
    """
    A, G = MatrixSymbol("A_in", d, d), MatrixSymbol("G", q, q)
    D = MatrixSymbol("D", q, d)
    return Statement(
        matmul(kron(A, G), vec_cols(matmul(Inverse(G), D, Inverse(Transpose(A))))),
        vec_cols(D),
        on_models=False,
    )


# -- quantisation ----------------------------------------------------------------------------------

E = MatrixSymbol("E", d, q)


@theorem(
    title="Rounding weights by at most Δ/2 moves a logit by at most Σ|x| Δ/2",
    chapter=4,
    convention="row",
    source="the triangle inequality; " + QUAROT,
    covers=("B45",),
)
def quantisation_error() -> Bound:
    """Rounding each weight to a grid of step Δ changes an output by at most Σ_k |x_k| Δ/2: each
    rounding error e_k is between −Δ/2 and Δ/2, and the output moves by x·e. In the formula |x| is
    relu(x) + relu(−x). For x = (3, −1) and Δ = 0.1 the bound is 0.2. It is reached when every error
    has the sign of its input.

    So precision suffers from large activations and from large weights, which need a coarse grid.
    Spreading outliers by a rotation helps (`rotation_leaves_product`).
    """
    x, e = MatrixSymbol("x", 1, d), MatrixSymbol("e", d, 1)
    step = sympy.Symbol("Delta", nonnegative=True)
    plus, minus = (Activation("relu", matmul(sign, x)) for sign in (1, -1))
    grid = matmul(half * step, OneMatrix(d, 1))
    above, below = less(grid, e), matadd(grid, e)
    return Bound(
        Trace(matmul(x, e)),
        half * step * Trace(matmul(matadd(plus, minus), OneMatrix(d, 1))),
        [Entries(matmul(plus, above)), Entries(matmul(minus, below))],
        given=[Fact("nonnegative", above), Fact("nonnegative", below)],
        tight={"x": [[1, -2]], "e": [[1], [-1]], "Delta": 2},
        on_models=False,
    )


@theorem(
    title="Rotating activations and weights leaves their product",
    chapter=4,
    convention="row",
    source=QUAROT,
    covers=("B45",),
)
def rotation_leaves_product() -> Statement:
    """Rotating activations and counter-rotating weights leaves their product unchanged: (X Q)(QᵀW)
    = X W. A rotation such as a Hadamard matrix spreads a large entry over all coordinates, so
    rounding after it loses less.

    Quantisation methods use this. If Q acts on the residual stream, all readers and writers must
    take part, and the gain of an RMSNorm is folded first (`rms_norm_rotation`).
    """
    Q = MatrixSymbol("Q", d, d)
    return Statement(
        matmul(matmul(X, Q), matmul(Transpose(Q), W)),
        matmul(X, W),
        given=[(matmul(Q, Transpose(Q)), Identity(d))],
        on_models=False,
    )
