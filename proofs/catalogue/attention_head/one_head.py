"""Chapter 3: what one head moves, where it reads and where it writes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import HadamardProduct, Identity, MatrixSymbol, Min, Symbol, Trace, Transpose, ZeroMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import (
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_rows,
)
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.language.trees import stated
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.recorded import of_OV, of_QK
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import (
    A,
    X,
    alpha,
    any_head,
    column,
    d,
    d_head,
    m,
    n,
    row,
    size,
)
from otimes.proofs.claims import Definition, NonIdentity, Property, Statement
from otimes.proofs.theorem import theorem

i, j = Symbol("i", integer=True), Symbol("j", integer=True)


@theorem(
    title="A head is three steps: value, weighted mean, output",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-40", "S2-26"),
)
def head_in_three_steps() -> Definition:
    """A head computes a value v_j = W_V x_j at each position, takes weighted means of them, r_i =
    Σ_j a_ij v_j, and writes h_i = W_O r_i, which is added to the stream. Here positions are the
    columns of X (d × n), and row i of the pattern A holds the weights of query i.

    The pattern stands on the right, transposed, because positions are columns: W_O W_V X Aᵀ. The
    product “A times V”, which is right for values in rows, does not even fit here.
    """
    pattern, stream = any_head.A, MatrixSymbol("X", d, m)
    values = matmul(column.W_V, stream)
    return Definition(
        "h",
        matmul(column.W_O, matmul(values, Transpose(pattern))),
        plain=_three_steps,
        places=("head_out",),
        bind=({"X": Source("resid_pre", transposed=True)},),
        obeys=("head_is_kron", "row_to_column"),
    )


def _three_steps(A: Any, X: Any, W_V: Any, W_O: Any, **sizes: int) -> np.ndarray:
    queries, keys = A.shape
    width, inner = W_O.shape
    values = [
        [sum(W_V[k, e] * X[e, key] for e in range(width)) for k in range(inner)]
        for key in range(keys)
    ]
    written = np.zeros((width, queries), dtype=A.dtype)
    for query in range(queries):
        result = [sum(A[query, key] * values[key][k] for key in range(keys)) for k in range(inner)]
        for e in range(width):
            written[e, query] = sum(W_O[e, k] * result[k] for k in range(inner))
    return written


@theorem(
    title="What a head writes at one position",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”",
    covers=("S0-19", "S2-18", "S3-008"),
)
def head_at_one_position() -> Statement:
    """At position i a head writes a weighted sum over the positions it can see: Σ_{j ≤ i} a_ij x_j
    W_OV, with W_OV = W_V W_O. So it reads the stream at the source positions j and writes at its
    own. M_n is the causal mask, and the hypothesis says that the pattern is zero outside it.

    The sum includes j = i. What is mixed are the vectors x_j W_OV and not the x_j: in a prompt of
    one token the head writes x_1 W_OV, which is in general no multiple of x_1.
    """
    mask, pattern = CausalMask(n), A
    at = OneHot(i, n)
    weight = stated(MatrixElement, mask, i, j) * stated(MatrixElement, pattern, i, j)
    W_OV = matmul(row.W_V, row.W_O)
    source = matmul(Transpose(OneHot(j, n)), X)
    written = matmul(Transpose(at), pattern, X, row.W_V, row.W_O)
    return Statement(
        written,
        HeadSum(matmul(weight, source, W_OV), (j, n)),
        given=((HadamardProduct(mask, pattern, evaluate=False), pattern),),
        printed={"E15": (written, HeadSum(matmul(weight, source), (j, n)))},
        places={"head_out": matmul(A, X, W_OV)},
    )


@theorem(
    title="W_OV of a weighted mean is the weighted mean of W_OV of each source",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”",
    covers=("S0-20",),
)
def map_of_mean_is_mean_of_maps() -> Statement:
    """Mapping a weighted mean of vectors gives the same as taking the weighted mean of the mapped
    vectors: Σ_j a_ij (x_j W_OV) = (Σ_j a_ij x_j) W_OV. So the OV circuit of a head may be applied
    to each source or to their mean.

    Implementations use the mean, which is cheaper. For interpretation one uses the sources, since
    this gives each source token its own share of what is written.
    """
    weight = stated(MatrixElement, any_head.A, i, j)
    source = matmul(Transpose(OneHot(j, m)), any_head.X)
    W_OV = matmul(row.W_V, row.W_O)
    return Statement(
        HeadSum(matmul(matmul(weight, source), W_OV), (j, m)),
        matmul(HeadSum(matmul(weight, source), (j, m)), W_OV),
        places={"head_out": matmul(any_head.A, any_head.X, W_OV)},
    )


@theorem(
    title="A head may compute values of width d_head or of width d_model",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}",
    covers=("S1-17", "S1-18"),
)
def full_width_values() -> Statement:
    """A head can compute its values at full width, X W_OV with d numbers for each position, or at
    width d_head, X W_V, and widen at the end with W_O. The results are the same, by moving
    brackets.

    Papers write the first form, implementations compute the second, which is cheaper.

    The wide matrix W_OV = W_V W_O has rank at most d_head. Replacing it by an arbitrary d × d
    matrix gives a different kind of model.
    """
    narrow = matmul(matmul(any_head.A, matmul(any_head.X, row.W_V)), row.W_O)
    wide = matmul(any_head.A, matmul(any_head.X, matmul(row.W_V, row.W_O)))
    free = matmul(any_head.A, matmul(any_head.X, MatrixSymbol("W", d, d)))
    return Statement(
        narrow,
        wide,
        places={"head_out": narrow},
        printed={"E20": (narrow, free)},
    )


@theorem(
    title="Moving information between positions and mapping features commute",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("S2-27", "S1-27"),
)
def moving_and_mapping_commute() -> Statement:
    """Moving information between positions (by the pattern A) and mapping features (by W_OV) act on
    different axes, so they can be done in either order: (A ⊗ Id)(Id ⊗ W_OV) = (Id ⊗ W_OV)(A ⊗ Id) =
    A ⊗ W_OV.

    This is the precise meaning of “multiplying the two circuits of a head”.

    It is not the matrix product W_QK W_OV. That product has shapes that fit, but no index of
    positions; the QK circuit enters through A only.
    """
    W_OV, stream = matmul(column.W_O, column.W_V), vec_rows(any_head.X)
    W_QK = matmul(Transpose(column.W_Q), column.W_K)
    return Statement(
        matmul(kron(any_head.A, Identity(d)), matmul(kron(Identity(m), W_OV), stream)),
        matmul(kron(Identity(n), W_OV), matmul(kron(any_head.A, Identity(d)), stream)),
        bind=({"X": Source("resid_pre")},),
        printed={"E21": (kron(A, W_OV), kron(Identity(n), matmul(W_QK, W_OV)))},
        places={"head_out": matmul(any_head.A, any_head.X, Transpose(W_OV))},
    )


@theorem(
    title="Row-convention weights in the ⊗ formula of the column convention",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}; {PRIMER}, “Attention block”",
)
def head_bridge() -> Statement:
    """To use row-convention weights in the formula A ⊗ W_OV of the column convention, put W_OV =
    (W_V W_O)ᵀ. X has positions as rows, and vec stacks these rows to one column.

    Stacking the columns instead exchanges the two factors (`head_is_kron_row`). Most wrong results
    with ⊗ come from this: the left factor is the slow index, and stacking rows makes the position
    slow.
    """
    stacked = vec_rows(matmul(any_head.A, any_head.X, row.W_V, row.W_O))
    W_OV = matmul(row.W_V, row.W_O)
    return Statement(
        stacked,
        matmul(kron(any_head.A, Transpose(W_OV)), vec_rows(any_head.X)),
        bind=({"X": Source("resid_pre")},),
        places={"head_out": matmul(any_head.A, any_head.X, W_OV)},
    )


@theorem(
    title="W_O W_V is not W_V W_O",
    chapter=3,
    source=f"{FRAMEWORK}; {PRIMER}, “Attention block”",
)
def ov_order_matters() -> NonIdentity:
    """W_O W_V and W_V W_O are different matrices, even where both products have shapes that fit, as
    for d_head = d. Which one is W_OV depends on the side on which weights act: W_V always meets the
    stream first, so it is W_V W_O on the right and W_O W_V on the left.

    With d_head < d the wrong order is a d_head × d_head matrix and is noticed at once. A toy model
    with one full-width head gives no warning.
    """
    W_V, W_O = MatrixSymbol("W_V", d, d), MatrixSymbol("W_O", d, d)
    return NonIdentity(matmul(X, W_V, W_O), matmul(X, W_O, W_V))


@theorem(
    title="The OV circuit",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”; {PRIMER}, “Attention block”",
    covers=("S1-32",),
)
def ov_circuit() -> Definition:
    """The OV circuit of a head is the linear map x ↦ x W_V W_O: it takes what a source position
    holds to what the head writes if it attends to that position with weight 1. It is d × d and
    fixed by the weights.

    It says what a head moves, not from where: the pattern, which depends on the prompt, decides
    that.
    """
    return Definition(
        "x W_OV",
        matmul(X, matmul(row.W_V, row.W_O)),
        plain=_through_ov,
        obeys=("ov_circuit_is_linear", "ov_rank_at_most_d_head"),
        places=of_OV(),
    )


def _through_ov(X: Any, W_V: Any, W_O: Any, **sizes: int) -> np.ndarray:
    width, inner = W_V.shape
    out = np.zeros((len(X), width), dtype=X.dtype)
    for position, vector in enumerate(X):
        value = [sum(vector[e] * W_V[e, k] for e in range(width)) for k in range(inner)]
        for to in range(width):
            out[position, to] = sum(value[k] * W_O[k, to] for k in range(inner))
    return out


@theorem(
    title="The OV circuit is linear",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("S1-32",),
)
def ov_circuit_is_linear() -> Statement:
    """What a head writes for a sum of two vectors is the sum of what it writes for each, and
    factors are carried through: the OV circuit W_V W_O is linear. So a single direction of the
    residual stream, such as a feature, can be followed through a head whatever else is present,
    with the pattern given. In the formula X and Y are two streams and α is a number.
    """
    Y = MatrixSymbol("Y", n, d)
    W_OV = matmul(row.W_V, row.W_O)
    return Statement(
        matmul(matadd(matmul(alpha, X), Y), W_OV),
        matadd(matmul(alpha, X, W_OV), matmul(Y, W_OV)),
        bind=({"Y": Source("embed", example=True)},),
        places=of_OV(),
    )


@theorem(
    title="W_OV has rank at most d_head",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”; {PRIMER}, “Attention block”",
    covers=("S0-21", "S1-28"),
)
def ov_rank_at_most_d_head() -> Property:
    """The OV circuit W_V W_O is a d × d matrix, but it passes through d_head dimensions, so its
    rank is at most the smaller of d and d_head. In GPT-2 small it is 768 × 768 with rank at
    most 64.

    So a head moves little information at a time, and W_OV should be analysed through its d_head
    singular directions.

    The factorisation is exact; it is not a low-rank approximation of some full matrix. The length
    of the prompt has no part in it.
    """
    return Property(Fact("rank_at_most", matmul(row.W_V, row.W_O), Min(d, d_head)), places=of_OV())


@theorem(
    title="W_QK has rank at most d_head, in the column convention",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("S1-28",),
)
def qk_rank_at_most_d_head_column() -> Property:
    """The matrix W_QK = W_Qᵀ W_K, which compares queries with keys, is d × d and has rank at most
    d_head. That is why W_Q and W_K are stored apart: two thin matrices take less memory than one
    square one.

    It is `qk_rank_at_most_d_head` in the column convention.
    """
    return Property(
        Fact("rank_at_most", matmul(Transpose(column.W_Q), column.W_K), Min(d, d_head)),
        places=of_QK(Transpose(column.W_Q), Transpose(column.W_K)),
    )


@theorem(
    title="A head can use all d_head dimensions, however short the prompt",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”",
    covers=("S0-21",),
)
def ov_rank_is_attained() -> Statement:
    """The bound d_head on the rank of an OV circuit is reached. Let the columns of W_V be d_head
    orthonormal directions and W_O = W_Vᵀ: the head reads these directions and writes them back,
    W_OV is a projection, and its rank is its trace, d_head.

    Two wrong statements are in print. One bounds the rank by the number of positions n, but W_OV is
    fixed by the weights and does not know the prompt. The other says that a head writes to a
    hyperplane, which would have d − 1 dimensions.
    """
    trace = Trace(matmul(row.W_V, row.W_O))
    given = (
        (matmul(Transpose(row.W_V), row.W_V), Identity(d_head)),
        (row.W_O, Transpose(row.W_V)),
    )
    return Statement(
        trace,
        d_head,
        given=given,
        on_models=False,
        printed={"E05": (trace, n), "E36": (trace, d - 1)},
    )


@theorem(
    title="The output of a head has rank at most d_head",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Subspaces and residual stream bandwidth”",
    covers=("S2-14",),
)
def head_output_rank() -> Property:
    """The outputs of a head at all positions of a prompt lie in a subspace of at most d_head
    dimensions. A head cannot copy a whole residual vector; it copies d_head numbers of it at most.

    This is sometimes called the bandwidth of a head. With n < d_head positions the rank is at most
    n.
    """
    written = matmul(any_head.A, any_head.X, row.W_V, row.W_O)
    longer = {  # than d_head: mixtures of the embeddings of 40 tokens
        "A": Source("W_U", rows=40, cols=48, transposed=True, example=True),
        "X": Source("W_E", rows=40, example=True),
    }
    return Property(
        Fact("rank_at_most", written, Min(n, m, d, d_head)), bind=(longer,), places=of_OV()
    )


@theorem(
    title="On all prompts together, a head writes into d_head dimensions",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Subspaces and residual stream bandwidth”",
    covers=("S2-14", "S0-22"),
)
def head_outputs_of_all_prompts() -> Property:
    """The outputs of a head on all prompts together still lie in at most d_head dimensions. In the
    formula the outputs for P prompts (with patterns A[p] and streams X[p]) are stacked, and their
    rank is bounded by d_head.

    So the subspace belongs to the head and not to the prompt: every output is a combination of the
    d_head rows of W_O.
    """
    prompts, prompt = size("P"), Symbol("p", integer=True)
    patterns = Family("A", (prompts,), n, m)[prompt]
    streams = Family("X", (prompts,), m, d)[prompt]
    mixed = StackHeads(matmul(patterns, streams, row.W_V), (prompt, prompts))
    most = Min(prompts * n, prompts * m, d, d_head)
    return Property(Fact("rank_at_most", matmul(mixed, row.W_O), most), on_models=False)


@theorem(
    title="A head does not read what W_V maps to zero",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Subspaces and residual stream bandwidth”",
    covers=("S0-22",),
)
def head_reads_columns_of_W_V() -> Statement:
    """Adding to the stream anything that W_V maps to zero does not change what a head writes, if
    its pattern is kept. So a head reads a subspace of at most d_head dimensions only, the one
    spanned by the columns of W_V, and information at right angles to it passes unseen. The addition
    is Δ (n × d).

    The columns of W_OV span what is read and its rows what is written: two subspaces, in general
    different.
    """
    change = MatrixSymbol("Delta", m, d)
    W_OV = matmul(row.W_V, row.W_O)
    return Statement(
        matmul(any_head.A, matadd(any_head.X, change), W_OV),
        matmul(any_head.A, any_head.X, W_OV),
        given=((matmul(change, row.W_V), ZeroMatrix(m, d_head)),),
        on_models=False,
    )


@theorem(
    title="A head writes into the rows of W_O",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Subspaces and residual stream bandwidth”",
    covers=("S0-22",),
)
def head_writes_rows_of_W_O() -> Statement:
    """Everything that a head writes, for every prompt, lies in the span of the rows of W_O. The
    equation says so with a matrix P that leaves these rows unchanged, such as the projection onto
    their span: it leaves the output unchanged.

    So one can ask from the weights alone how much of this subspace a later component reads.
    """
    P = MatrixSymbol("P", d, d)
    written = matmul(any_head.A, any_head.X, row.W_V, row.W_O)
    return Statement(
        matmul(written, P),
        written,
        given=((matmul(row.W_O, P), row.W_O),),
        on_models=False,
    )
