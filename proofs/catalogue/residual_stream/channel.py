"""Chapter 2: the stream as a channel: what is written into it, who reads it, what is taken out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sympy import BlockMatrix, Identity, MatrixSymbol, Min, Trace, Transpose, ZeroMatrix

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import Family, HeadSum, StackHeads, matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import A, H, L, X, column, d, d_head, h, l, n, r, row, s, size
from otimes.proofs.claims import Definition, Property, Statement
from otimes.proofs.theorem import theorem

CHANNEL = f"{FRAMEWORK}, “Virtual weights and the residual stream as a communication channel”"
BANDWIDTH = f"{FRAMEWORK}, “Subspaces and residual stream bandwidth”"
d_mlp = size("d_mlp")
W_in, W_out = MatrixSymbol("W_in", d, d_mlp), MatrixSymbol("W_out", d_mlp, d)
WRITERS = {"Z": Source("z", layer=0), "W_O": Source("W_O", layer=0)}


@theorem(
    title="Virtual weights: each writer is connected directly to each later reader",
    chapter=2,
    convention="row",
    source=CHANNEL,
    covers=("S2-07", "S2-11"),
)
def virtual_weights() -> Statement:
    """Reading the stream is a multiplication by W_Q, W_K, W_V or W_in, and writing is adding
    something times W_O or W_out: both are linear. So what a later reader finds is a sum over all
    writers, and from each of them it gets the written numbers times one matrix, W_O W_Q (here for
    queries): the virtual weights from the one to the other.

    They belong to a pair of a writer and a reader. They are no weights of any layer, and not the
    sum of all that was written; however many layers are in between, none of them is passed.
    """
    Z, W_O = Family("Z", (H,), n, d_head)[h], Family("W_O", (H,), d_head, d)[h]
    read = matmul(matadd(X, HeadSum(matmul(Z, W_O), (h, H))), row.W_Q)
    virtual = HeadSum(matmul(Z, matmul(W_O, row.W_Q)), (h, H))
    bind = {**WRITERS, "X": Source("resid_pre", layer=0), "W_Q": Source("W_Q", layer=1)}
    return Statement(read, matadd(matmul(X, row.W_Q), virtual), bind=(bind,))


@theorem(
    title="Virtual weights in the column convention: W_read W_write",
    chapter=2,
    convention="column",
    source=CHANNEL,
    covers=("S2-11",),
)
def virtual_weights_column() -> Statement:
    """With positions as columns, the reader stands on the left: W_Q W_O. The later component comes
    first in the product, as in every composition of maps that act on columns. What is read from a
    head of the layer before is W_Q W_O times its values, and from the stream before that W_Q X.
    """
    Z, W_O = Family("Z", (H,), d_head, n)[h], Family("W_O", (H,), d, d_head)[h]
    X = MatrixSymbol("X", d, n)
    read = matmul(column.W_Q, matadd(X, HeadSum(matmul(W_O, Z), (h, H))))
    virtual = HeadSum(matmul(matmul(column.W_Q, W_O), Z), (h, H))
    bind = {**WRITERS, "X": Source("resid_pre", layer=0), "W_Q": Source("W_Q", layer=1)}
    return Statement(read, matadd(matmul(column.W_Q, X), virtual), bind=(bind,))


@theorem(
    title="The output of a head spans at most d_head directions",
    chapter=2,
    convention="column",
    source=BANDWIDTH,
    covers=("S1-04",),
)
def head_writes_few_directions() -> Property:
    """Take what a head writes at all positions of a prompt, side by side: the rank is at most
    d_head, however long the prompt is. All of it lies in the columns of W_O, and all that it
    depends on is read through the rows of W_V: two small subspaces of the stream, and two different
    ones.

    They are of dimension d_head or less; a hyperplane would have d − 1.
    """
    X = MatrixSymbol("X", d, n)
    written = matmul(column.W_O, column.W_V, X, Transpose(A))
    streams = {
        "X": Source("W_E", rows=48, transposed=True),  # more positions than d_head
        "A": Source("W_E", rows=48, cols=48),
    }
    return Property(Fact("rank_at_most", written, Min(n, d, d_head)), bind=(streams,))


@theorem(
    title="A head reads one subspace of the stream and writes another",
    chapter=2,
    convention="column",
    source=BANDWIDTH,
    covers=("S1-04",),
)
def head_reads_and_writes_subspaces() -> Statement:
    """Let the rows of R be an orthonormal basis of the rows of W_V, and the columns of S one of the
    columns of W_O. Projecting the stream on the first before the head reads it, and what the head
    writes on the second, changes nothing: W_O W_V = SSᵀ W_O W_V RᵀR.

    So the rest of the stream, d − d_head dimensions or more, may hold anything: this head neither
    sees it nor touches it.
    """
    R, S = MatrixSymbol("R", r, d), MatrixSymbol("S", d, s)
    C, E = MatrixSymbol("C", d_head, r), MatrixSymbol("E", s, d_head)
    return Statement(
        matmul(S, Transpose(S), column.W_O, column.W_V, Transpose(R), R),
        matmul(column.W_O, column.W_V),
        given=(
            (column.W_V, matmul(C, R)),
            (matmul(R, Transpose(R)), Identity(r)),
            (column.W_O, matmul(S, E)),
            (matmul(Transpose(S), S), Identity(s)),
        ),
        on_models=False,
    )


@theorem(
    title="What components write lies in the rows of W_O and W_out",
    chapter=2,
    convention="row",
    source=f"{PRIMER}, “Residual stream”; {BANDWIDTH}",
    covers=("S3-120",),
)
def writes_lie_in_row_spaces() -> Statement:
    """In the row convention everything that a head writes is a sum of rows of its W_O, and
    everything that an MLP writes a sum of rows of its W_out, whatever patterns and activations are.
    Let the rows of B be an orthonormal basis of all those rows: a projection on them (BᵀB) leaves
    the update as it is.

    This is why one can look for what a later component reads in weights alone: it can only find
    what lies in these spaces, and the embedding.
    """
    B = MatrixSymbol("B", r, d)
    C, E = MatrixSymbol("C", d_head, r), MatrixSymbol("E", d_mlp, r)
    head = matmul(A, X, row.W_V, row.W_O)
    update = matadd(head, matmul(Activation("g", matmul(X, W_in)), W_out))
    return Statement(
        matmul(update, Transpose(B), B),
        update,
        given=(
            (row.W_O, matmul(C, B)),
            (W_out, matmul(E, B)),
            (matmul(B, Transpose(B)), Identity(r)),
        ),
        on_models=False,
    )


@theorem(
    title=(
        "Two components communicate only where what one writes overlaps with what the other reads"
    ),
    chapter=2,
    convention="column",
    source=CHANNEL,
    covers=("S1-05",),
)
def no_overlap_no_communication() -> Statement:
    """If W_V of a later head times W_O of an earlier one is zero, the later head's values are the
    same whatever the earlier one wrote (Z). The same holds for queries, keys and MLPs, with W_Q,
    W_K or W_in in place of W_V.

    And only then (`communication_needs_overlap`). Both share one stream, but two components whose
    subspaces are orthogonal do not hear each other.
    """
    W_V, W_O = column.W_V, column.W_O
    X, Z = MatrixSymbol("X", d, n), MatrixSymbol("Z", d_head, n)
    return Statement(
        matmul(W_V, matadd(X, matmul(W_O, Z))),
        matmul(W_V, X),
        given=((matmul(W_V, W_O), ZeroMatrix(d_head, d_head)),),
        on_models=False,
    )


@theorem(
    title="If nothing that one component writes changes what another reads, W_read W_write is zero",
    chapter=2,
    convention="column",
    source=CHANNEL,
    covers=("S1-05",),
)
def communication_needs_overlap() -> Statement:
    """The converse. Let the later head find the same with and without what the earlier one wrote,
    for values Z that are rich enough: as many independent columns as it has dimensions, so that Z
    has a right inverse R. Then W_V W_O is zero. So “they do not communicate” is a statement about
    two weight matrices, and one prompt of d_head different values decides it.

    A prompt with fewer values proves nothing: what was not said cannot be heard.
    """
    W_V, W_O = column.W_V, column.W_O
    X, Z = MatrixSymbol("X", d, n), MatrixSymbol("Z", d_head, n)
    R = MatrixSymbol("R", n, d_head)
    return Statement(
        matmul(W_V, W_O),
        ZeroMatrix(d_head, d_head),
        given=(
            (matmul(W_V, matadd(X, matmul(W_O, Z))), matmul(W_V, X)),
            (matmul(Z, R), Identity(d_head)),
        ),
        on_models=False,
    )


def _demand(d: int, d_mlp: int, d_head: int, H: int, L: int, **_: Any) -> Fraction:
    """Return how many vectors are written into the stream, over its dimension."""
    written = 0
    for _layer in range(L):
        written += d_mlp
        for _head in range(H):
            written += d_head
    return Fraction(written, d)


@theorem(
    title="Bandwidth of the residual stream: how many values are written for each dimension",
    chapter=2,
    source=BANDWIDTH,
    covers=("S2-12",),
)
def bandwidth_demand() -> Definition:
    """Each layer can write d_mlp neurons and H · d_head values, and all of them write into the same
    d dimensions. β = Σ_l (d_mlp + H d_head) / d counts how many are asked for each that there is.
    It grows with depth: 12 layers of GPT-2 ask 60 times for what the stream has.

    Embedding and unembedding ask for V more. The sum is written with traces of identities: tr Id is
    the number of its dimensions.
    """
    neurons = HeadSum(matmul(1 / d, Identity(d_mlp)), (l, L))
    values = HeadSum(matmul(1 / d, Identity(d_head)), (l, L), (h, H))
    return Definition(
        "the demand for bandwidth",
        Trace(neurons) + Trace(values),
        _demand,
        obeys=("all_writes_rank_at_most_d",),
        on_models=False,
    )


@theorem(
    title="All writes to the residual stream together have rank at most d_model",
    chapter=2,
    convention="row",
    source=BANDWIDTH,
    covers=("S2-12",),
)
def all_writes_rank_at_most_d() -> Property:
    """Stack the W_O of all heads of all layers and the W_out of all MLPs: many more rows than d,
    and still a matrix of rank at most d. So when more is written than there are dimensions, the
    rows depend on each other, and reading one of them exactly means reading some of others.
    """
    heads = StackHeads(Family("W_O", (L, H), d_head, d)[l, h], (l, L), (h, H))
    mlps = StackHeads(Family("W_out", (L,), d_mlp, d)[l], (l, L))
    most = Min(d, L * H * d_head + L * d_mlp)
    return Property(Fact("rank_at_most", BlockMatrix([[heads], [mlps]]), most), on_models=False)


@theorem(
    title="A head can delete a subspace: W_OV = −BBᵀ",
    chapter=2,
    convention="row",
    source=BANDWIDTH,
    covers=("S2-15",),
)
def head_deletes_subspace() -> Statement:
    """Some heads clear memory. Where a position attends to itself only (e A = e, for the one-hot
    row e of that position) and W_OV is −BBᵀ, what the head writes is minus the projection of the
    stream on the columns of B, and the stream becomes x (Id − BBᵀ).

    The stream is a sum and nothing is taken out of the sum. To delete is to add the opposite; a
    head that attends elsewhere adds the opposite of another position's vector instead.
    """
    B, e = MatrixSymbol("B", d, r), MatrixSymbol("e", 1, n)
    minus = matmul(-1, B, Transpose(B))
    return Statement(
        matmul(e, matadd(X, matmul(A, X, row.W_V, row.W_O))),
        matmul(e, X, matadd(Identity(d), minus)),
        given=((matmul(e, A), e), (matmul(row.W_V, row.W_O), minus)),
        on_models=False,
    )


@theorem(
    title="After a subspace is deleted, readers see zero in it and no change outside it",
    chapter=2,
    source=BANDWIDTH,
    covers=("S2-15",),
)
def deleted_subspace_reads_zero() -> Statement:
    """If the columns of B are orthonormal, x (Id − BBᵀ) holds nothing along B any more, and along
    every direction orthogonal to B it is what it was.

    With columns that are not of length one, or not orthogonal, −BBᵀ deletes too much or too little:
    BᵀB = Id is what makes BBᵀ a projection.
    """
    B, C = MatrixSymbol("B", d, r), MatrixSymbol("C", d, s)
    left = matmul(X, matadd(Identity(d), matmul(-1, B, Transpose(B))))
    return Statement(
        matmul(left, BlockMatrix([[B, C]])),
        BlockMatrix([[ZeroMatrix(n, r), matmul(X, C)]]),
        given=(
            (matmul(Transpose(B), B), Identity(r)),
            (matmul(Transpose(B), C), ZeroMatrix(r, s)),
        ),
        on_models=False,
    )


@theorem(
    title="Reading a subspace is a projection",
    chapter=2,
    source=BANDWIDTH,
    covers=("S2-13",),
)
def reading_a_subspace_is_a_projection() -> Property:
    """A probe reads one number along a direction, x u, or the part of x in a subspace, x BBᵀ. With
    orthonormal columns of B, BBᵀ is a projection: what was read once is read the same again, and
    nothing outside the subspace enters.

    That is all the algebra there is in “this direction carries that attribute”. Whether it does is
    an empirical question.
    """
    B = MatrixSymbol("B", d, r)
    return Property(
        Fact("projection", matmul(B, Transpose(B))),
        given=(Fact("orthonormal_columns", B),),
        on_models=False,
    )
