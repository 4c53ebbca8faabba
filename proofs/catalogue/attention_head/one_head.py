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
    """Positions are the columns of X. A head computes a value v_j = W_V x_j at each position, mixes
    the values with the weights of its pattern, r_i = Σ_j a_ij v_j, and writes h_i = W_O r_i, which
    is then added to the stream.

    The pattern stands on the right and transposed, because positions are columns here: W_O W_V X
    Aᵀ. Its rows are queries in both conventions. With values laid out as columns, “A times V” does
    not even have shapes that fit.
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
    """At position i a head writes Σ_{j ≤ i} a_ij x_j W_OV: it reads the stream at source positions
    and writes to its own. Here m_ij is the causal mask, 1 for j ≤ i and 0 elsewhere; the hypothesis
    says that the pattern has no weight beyond it.

    So nothing after i is read. The sum includes j = i, the position itself. And what is mixed are
    the vectors x_j W_OV and not the x_j: with a single position the head writes x_1 W_OV, which is
    no multiple of x_1.
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
    )


@theorem(
    title="W_OV of a weighted mean is the weighted mean of W_OV of each source",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”",
    covers=("S0-20",),
)
def map_of_mean_is_mean_of_maps() -> Statement:
    """Σ_j (a_ij x_j) W_OV = (Σ_j a_ij x_j) W_OV: one may send each source through the head's matrix
    and then take the weighted mean, or take the mean of the sources and send that. The number a_ij
    may stand before, between or after, which is the third form, Σ_j a_ij (x_j W_OV).

    The second order is what makes heads cheap, and the first is what makes them readable: it gives
    each source its own share of what is written.
    """
    weight = stated(MatrixElement, any_head.A, i, j)
    source = matmul(Transpose(OneHot(j, m)), any_head.X)
    W_OV = matmul(row.W_V, row.W_O)
    return Statement(
        HeadSum(matmul(matmul(weight, source), W_OV), (j, m)),
        matmul(HeadSum(matmul(weight, source), (j, m)), W_OV),
    )


@theorem(
    title="A head may compute values of width d_head or of width d_model",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}",
    covers=("S1-17", "S1-18"),
)
def full_width_values() -> Statement:
    """Multiply the stream by W_OV = W_V W_O first, and values live in the stream's own space: out =
    A (X W_OV). Implementations multiply by the narrow W_V, mix, and widen at the end. Both are one
    product with other brackets.

    The wide matrix is no free d × d matrix. Only one that is such a product, of rank at most
    d_head, can be had from a head; replacing it by any W is another model.
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
    """A acts on positions and W_OV on features, two different axes, so it does not matter which is
    applied first: (A ⊗ Id)(Id ⊗ W_OV) = (Id ⊗ W_OV)(A ⊗ Id), and either is A ⊗ W_OV.

    This is what “multiplying the two circuits of a head” means. The QK circuit comes in through A
    only; the plain product W_QK W_OV has shapes that fit and no index of positions at all.
    """
    W_OV, stream = matmul(column.W_O, column.W_V), vec_rows(any_head.X)
    W_QK = matmul(Transpose(column.W_Q), column.W_K)
    return Statement(
        matmul(kron(any_head.A, Identity(d)), matmul(kron(Identity(m), W_OV), stream)),
        matmul(kron(Identity(n), W_OV), matmul(kron(any_head.A, Identity(d)), stream)),
        bind=({"X": Source("resid_pre")},),
        printed={"E21": (kron(A, W_OV), kron(Identity(n), matmul(W_QK, W_OV)))},
    )


@theorem(
    title="Row-convention weights in the ⊗ formula of the column convention",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}; {PRIMER}, “Attention block”",
)
def head_bridge() -> Statement:
    """Stack the rows of the stream, position after position, and a head with row weights is A ⊗
    (W_V W_O)ᵀ: the formula A ⊗ W_OV of the column convention, with its W_OV written in row weights.
    Stack the columns instead and the factors change places.

    The left factor of ⊗ is the slow index. With positions as rows, stacking rows makes the position
    slow, and A is the left factor; most wrong results with ⊗ come from stacking the other way.
    """
    stacked = vec_rows(matmul(any_head.A, any_head.X, row.W_V, row.W_O))
    W_OV = matmul(row.W_V, row.W_O)
    return Statement(
        stacked,
        matmul(kron(any_head.A, Transpose(W_OV)), vec_rows(any_head.X)),
        bind=({"X": Source("resid_pre")},),
    )


@theorem(
    title="W_O W_V is not W_V W_O",
    chapter=3,
    source=f"{FRAMEWORK}; {PRIMER}, “Attention block”",
)
def ov_order_matters() -> NonIdentity:
    """Take d_head = d, so that both products have shapes that fit, and they are still different
    matrices. Which one is W_OV depends on the side on which weights act: the factor that meets the
    stream first is always W_V. On the right that is W_V W_O, on the left W_O W_V.

    With d_head < d the wrong order is d_head × d_head and no reader can miss it; on a toy model
    with one wide head nothing complains.
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
    """The OV circuit takes what a source position holds, x_j, to what the head writes if it attends
    there with all its weight: x_j W_V W_O. It is a linear map from vectors to vectors, fixed by the
    weights, and knows nothing of where or how much the head attends.
    """
    return Definition(
        "x W_OV",
        matmul(X, matmul(row.W_V, row.W_O)),
        plain=_through_ov,
        obeys=("ov_circuit_is_linear", "ov_rank_at_most_d_head"),
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
    """What a head moves of αx + y is α times what it moves of x, plus what it moves of y. So a
    direction in the stream can be followed through a head by itself, whatever else is there.
    """
    Y = MatrixSymbol("Y", n, d)
    W_OV = matmul(row.W_V, row.W_O)
    return Statement(
        matmul(matadd(matmul(alpha, X), Y), W_OV),
        matadd(matmul(alpha, X, W_OV), matmul(Y, W_OV)),
        bind=({"Y": Source("embed")},),
    )


@theorem(
    title="W_OV has rank at most d_head",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Observations about attention heads”; {PRIMER}, “Attention block”",
    covers=("S0-21", "S1-28"),
)
def ov_rank_at_most_d_head() -> Property:
    """W_OV is a d × d matrix, and it is a product through a space of d_head dimensions, so its rank
    is at most the smaller of d and d_head. That is an exact factorisation: nothing is approximated,
    unlike in a low-rank approximation of some full matrix. The length of the sequence has no part
    in it.
    """
    return Property(Fact("rank_at_most", matmul(row.W_V, row.W_O), Min(d, d_head)))


@theorem(
    title="W_QK has rank at most d_head, in the column convention",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Observations about attention heads”",
    covers=("S1-28",),
)
def qk_rank_at_most_d_head_column() -> Property:
    """The same for queries and keys: W_QK, here W_Qᵀ W_K, is d × d and of rank at most d_head.
    This, and no reason of principle, is why W_Q and W_K are stored apart: two thin matrices are
    smaller than one square one. In either convention a transpose changes no rank.
    """
    return Property(
        Fact("rank_at_most", matmul(Transpose(column.W_Q), column.W_K), Min(d, d_head)),
    )


@theorem(
    title="A head can use all d_head dimensions, however short the prompt",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”",
    covers=("S0-21",),
)
def ov_rank_is_attained() -> Statement:
    """Let the head read d_head orthonormal directions and write them back: W_Vᵀ W_V = I and W_O =
    W_Vᵀ. Then W_OV is a projection, and its trace, which is its rank, is d_head. So the bound
    d_head is sharp.

    A bound by the number of positions n, which is in print, is wrong: W_OV is fixed by the weights
    and does not know the prompt. So is “hyperplane”, also in print: that would be d - 1 dimensions.
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
    """The outputs of a head at all positions lie in a subspace of d_head dimensions: its bandwidth.
    A head cannot copy a whole residual vector, only what passes through its d_head numbers.
    """
    written = matmul(any_head.A, any_head.X, row.W_V, row.W_O)
    longer = {  # than d_head: mixtures of the embeddings of 40 tokens
        "A": Source("W_U", rows=40, cols=48, transposed=True),
        "X": Source("W_E", rows=40),
    }
    return Property(Fact("rank_at_most", written, Min(n, m, d, d_head)), bind=(longer,))


@theorem(
    title="On all prompts together, a head writes into d_head dimensions",
    chapter=3,
    convention="row",
    source=f"{FRAMEWORK}, “Subspaces and residual stream bandwidth”",
    covers=("S2-14", "S0-22"),
)
def head_outputs_of_all_prompts() -> Property:
    """Put the outputs of a head on any number of prompts one below the other, and the rank is still
    at most d_head. The subspace is the head's own and not the prompt's: every output is a mixture
    of the d_head rows of W_O.
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
    """Add to the stream anything that W_V sends to zero, and with its pattern kept the head writes
    the same. So a head reads a fixed subspace of at most d_head dimensions, the column space of
    W_V; what others write at right angles to it passes by unnoticed.

    The columns of W_OV are what is read and the rows are what is written: two subspaces, and of
    dimension d_head, where “hyperplane” would mean d - 1.
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
    """Let P be a map that leaves the rows of W_O as they are, such as the projection onto the space
    they span. Then it leaves everything the head writes as it is, for every prompt: all of it lies
    in the row space of W_O.

    Each later component can therefore be asked how much of this subspace it reads, from the weights
    alone.
    """
    P = MatrixSymbol("P", d, d)
    written = matmul(any_head.A, any_head.X, row.W_V, row.W_O)
    return Statement(
        matmul(written, P),
        written,
        given=((matmul(row.W_O, P), row.W_O),),
        on_models=False,
    )
