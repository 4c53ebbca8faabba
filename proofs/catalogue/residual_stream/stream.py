"""Chapter 2: every component adds to the stream, and the logits add up the same way."""

from __future__ import annotations

from sympy import MatrixSymbol

from algebra.language import Family, HeadSum, matadd, matmul
from numeric.binding import Source
from proofs.catalogue.symbols import H, L, V, X, d, h, heads, l, n, row
from proofs.claims import Statement
from proofs.theorem import theorem


@theorem(
    title="The stream after a layer: what was there, and what each head read from it",
    chapter=2,
    convention="row",
    source="Ferrando et al. 2024, “A Primer on the Inner Workings of Transformer-based Language "
    "Models”, §2.1; Elhage et al. 2021, “The residual stream”",
    covers=("S1-01", "S3-010", "S0-18", "S4-07"),
)
def residual_update() -> Statement:
    """All heads of a layer read the same stream, and each adds what it has to say. Whether one
    sums the results or the factors A X W_V before the common W_O is a matter of brackets.

    Nothing is overwritten: what a later layer finds is the sum of everything written before it.
    """
    A, W_V, W_O = heads.A[h], heads.row.W_V[h], heads.row.W_O[h]
    after = matadd(X, HeadSum(matmul(matmul(A, matmul(X, W_V)), W_O), (h, H)))
    return Statement(
        after,
        matadd(X, HeadSum(matmul(A, X, matmul(W_V, W_O)), (h, H))),
        places={"resid_mid": after, "resid_post": after},
    )


@theorem(
    title="The logits are a sum of components",
    chapter=2,
    convention="row",
    source="Ferrando et al. 2024, §2.1, eq. 10; Elhage et al. 2021, “The residual stream”",
    covers=("S0-09", "S0-10", "S0-11", "S2-08", "S3-014", "S4-09"),
)
def logits_are_sum_of_components() -> Statement:
    """The unembedding is linear, so it may be moved inside the sum: the logits are the embedding's
    part and one part for each head of each layer. This is what makes direct logit attribution and
    the logit lens possible.

    Here the outputs of the heads are taken as the model computed them; that each depends on what
    earlier ones wrote is the matter of the path expansion. Without a final norm the sum closes
    exactly; with one it closes after the norm's scale is fixed.
    """
    x_0 = MatrixSymbol("X_0", n, d)
    out = Family("H_out", (L, H), n, d)[l, h]
    stream = matadd(x_0, HeadSum(out, (l, L), (h, H)))
    return Statement(
        matmul(stream, row.W_U),
        matadd(matmul(x_0, row.W_U), HeadSum(matmul(out, row.W_U), (l, L), (h, H))),
        places={"final": stream, "logits": matmul(stream, row.W_U)},
        bind=({"X_0": Source("embed"), "H_out": Source("head_out")},),
    )


@theorem(
    title="The token embedding is a product with one-hot rows",
    chapter=2,
    convention="row",
    source="Ferrando et al. 2024, §2",
    covers=("S0-14",),
)
def embedding_then_reader() -> Statement:
    """Looking up the row of W_E for each token is the product T W_E, with one one-hot row for each
    position. So anything that reads the embedding linearly can be applied to the whole vocabulary
    first and looked up after: T (W_E W_U) takes rows of one fixed table.
    """
    T = MatrixSymbol("T", n, V)
    return Statement(
        matmul(matmul(T, row.W_E), row.W_U),
        matmul(T, matmul(row.W_E, row.W_U)),
        places={"embed": matmul(T, row.W_E)},
    )
