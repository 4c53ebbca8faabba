"""Chapter 2: the stream as a channel: what is written into it, who reads it, what is taken out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sympy import BlockMatrix, Identity, MatrixSymbol, Min, Trace, Transpose, ZeroMatrix

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import Family, HeadSum, StackHeads, matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.recorded import asked
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import A, H, L, X, column, d, d_head, h, l, n, r, row, s, size
from otimes.proofs.claims import Definition, Property, Statement
from otimes.proofs.theorem import theorem

CHANNEL = f"{FRAMEWORK}, “Virtual weights and the residual stream as a communication channel”"
BANDWIDTH = f"{FRAMEWORK}, “Subspaces and residual stream bandwidth”"
d_mlp = size("d_mlp")
W_in, W_out = MatrixSymbol("W_in", d, d_mlp), MatrixSymbol("W_out", d_mlp, d)
LATER = {"qk_in": Source("qk_in", layer=1)}
WRITERS = {"Z": Source("z", layer=0), "W_O": Source("W_O", layer=0)}


@theorem(
    title="Virtual weights: each writer is connected directly to each later reader",
    chapter=2,
    convention="row",
    source=CHANNEL,
    covers=("S2-07", "S2-11"),
)
def virtual_weights() -> Statement:
    """A component that writes to the residual stream and a later one that reads from it are
    connected by the product of their weights. The writer adds Z W_O, the reader multiplies by W_Q,
    so the reader receives Z (W_O W_Q). The matrix W_O W_Q is called the virtual weights between the
    two; Z[h] (n × d_head) are the numbers that head h passes to its W_O.

    They let one ask which components can communicate from the weights alone, however many layers
    lie between.

    Virtual weights belong to a pair. The reader multiplies the sum of everything that was written,
    so what it receives is a sum of such terms, one for each earlier writer. W_K, W_V and W_in read
    in the same way, and W_out writes as W_O does. A norm before the reader has to be folded into it
    first.
    """
    Z, W_O = Family("Z", (H,), n, d_head)[h], Family("W_O", (H,), d_head, d)[h]
    stream = matadd(X, HeadSum(matmul(Z, W_O), (h, H)))
    read = matmul(stream, row.W_Q)
    virtual = HeadSum(matmul(Z, matmul(W_O, row.W_Q)), (h, H))
    bind = {**WRITERS, "X": Source("resid_pre", layer=0), "W_Q": Source("W_Q", layer=1), **LATER}
    return Statement(
        read,
        matadd(matmul(X, row.W_Q), virtual),
        bind=(bind,),
        places={Source("resid_post", 0): stream, Source("q", 1): matmul(asked, row.W_Q)},
    )


@theorem(
    title="Virtual weights in the column convention: W_read W_write",
    chapter=2,
    convention="column",
    source=CHANNEL,
    covers=("S2-11",),
)
def virtual_weights_column() -> Statement:
    """With positions as columns, a reader stands on the left of what it reads, so the virtual
    weights from a writer to a later reader are W_Q W_O: the later component comes first in the
    product, as in every composition of maps on columns. W_Q reads W_Q X from the earlier stream and
    (W_Q W_O) Z[h] from head h, whose mixed values are Z[h] (d_head × n).

    In the row convention the same product is W_O W_Q (`virtual_weights`).
    """
    Z, W_O = Family("Z", (H,), d_head, n)[h], Family("W_O", (H,), d, d_head)[h]
    X = MatrixSymbol("X", d, n)
    stream = matadd(X, HeadSum(matmul(W_O, Z), (h, H)))
    read = matmul(column.W_Q, stream)
    virtual = HeadSum(matmul(matmul(column.W_Q, W_O), Z), (h, H))
    bind = {**WRITERS, "X": Source("resid_pre", layer=0), "W_Q": Source("W_Q", layer=1), **LATER}
    return Statement(
        read,
        matadd(matmul(column.W_Q, X), virtual),
        bind=(bind,),
        places={
            Source("resid_post", 0): stream,
            Source("q", 1): matmul(asked, Transpose(column.W_Q)),
        },
    )


@theorem(
    title="The output of a head spans at most d_head directions",
    chapter=2,
    convention="column",
    source=BANDWIDTH,
    covers=("S1-04",),
)
def head_writes_few_directions() -> Property:
    """Whatever the prompt, what one attention head adds to the residual stream lies in a subspace
    of at most d_head dimensions, the span of the columns of W_O. Likewise all that it reads passes
    through the d_head rows of W_V. In GPT-2 small d_head is 64, and the stream has d = 768
    dimensions.

    So a head moves information between two small subspaces, which in general differ.

    Some texts say that a head writes to a hyperplane. A hyperplane has d − 1 dimensions; this space
    has d_head or fewer.
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
    """A head reads one subspace of the residual stream and writes another. Let the rows of R be an
    orthonormal basis of the row space of W_V, and the columns of S an orthonormal basis of the
    column space of W_O. Then projecting the stream onto the first before the head, and its output
    onto the second after it, changes nothing: S Sᵀ W_O W_V Rᵀ R = W_O W_V.

    So at least d − d_head dimensions of the stream are neither seen nor changed by this head, and
    can hold information for other components. C and E are the coordinates of W_V and W_O in these
    bases.
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
    """In the row convention, everything that a head writes is a combination of the rows of its W_O,
    and everything that an MLP writes a combination of the rows of W_out, whatever the patterns and
    activations are. In the equation the rows of B are an orthonormal basis that contains all these
    rows, and the projection BᵀB leaves the layer's update unchanged. W_O = C B and W_out = E B say
    that all their rows are combinations of the rows of B.

    This is why the weights alone can say what a later component may receive from this layer. A bias
    adds a fixed vector besides.
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
    """A later head receives nothing from an earlier one if the product of the later head's reading
    matrix and the earlier head's writing matrix is zero. If W_V W_O = 0, the later head's values
    are the same whatever the earlier one wrote (W_O Z, with any Z). For queries, keys and MLPs the
    same holds with W_Q, W_K or W_in in place of W_V.

    The converse is `communication_needs_overlap`. Two components share one stream, but if their
    subspaces are orthogonal they do not affect each other directly.
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
    """If nothing that one component writes changes what another one reads, then the product of
    their weights is zero: W_V W_O = 0. It is the converse of `no_overlap_no_communication`. So
    “these two components do not communicate” is a statement about two weight matrices.

    The test has to be rich enough. The written values Z (d_head × n) must have d_head independent
    columns, which is what the right inverse R says. A prompt with fewer independent values can
    leave a connection unnoticed.
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
    """How crowded is the residual stream? Each layer writes d_mlp neuron values and H · d_head head
    values, and all layers write to the same d dimensions. The ratio β = Σ_l (d_mlp + H d_head)/d
    counts how many values are written for each dimension. For the 12 layers of GPT-2 small (d =
    768, d_mlp = 3072, H d_head = 768) it is 60.

    A high ratio is the reason to expect superposition: the values cannot all have dimensions of
    their own (`all_writes_rank_at_most_d`).

    Tokens come on top of this count. The formula uses traces of identities, since tr Id is the
    number of dimensions.
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
    """Stack the output weights of all heads and all MLPs of a model, one row for each value that is
    written. There are many more rows than d, but the rank of this matrix is at most d, since each
    row has d entries.

    So the directions in which a deep model writes are linearly dependent. No linear reader can
    recover every written value exactly from the stream: reading one picks up others as well.
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
    """An attention head can delete a subspace of the residual stream, by writing the negative of
    what is there. Suppose that position e attends only to itself (eA = e, where the row e is
    one-hot) and that W_V W_O = −BBᵀ. Then the head adds minus the projection of the stream on the
    columns of B, and x becomes x (Id − BBᵀ).

    Heads of this kind have been observed, and are said to manage memory in the stream.

    Nothing is removed from the sum of writes: deleting is adding the opposite. A head that attends
    elsewhere adds the opposite of another position's vector instead.
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
    """After the subspace spanned by the columns of B is deleted, x (Id − BBᵀ), every reader finds
    zero along B and finds directions orthogonal to B unchanged. In the equation C holds such
    orthogonal directions.

    The columns of B must be orthonormal (BᵀB = I), which is what makes BBᵀ a projection. For a
    column of length 2, for example, −BBᵀ subtracts four times the projection.
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
    """If the columns of B are orthonormal, BBᵀ is the orthogonal projection onto the subspace that
    they span: applied twice it gives the same as once, and it is symmetric. A probe that reads the
    part of the stream in a subspace computes x BBᵀ; with one direction u of length one it computes
    the number x u.

    This is all the algebra behind “this direction carries that attribute”. Whether the direction
    carries it is an empirical question (`direction_carries_attribute`).
    """
    B = MatrixSymbol("B", d, r)
    return Property(
        Fact("projection", matmul(B, Transpose(B))),
        given=(Fact("orthonormal_columns", B),),
        on_models=False,
    )
