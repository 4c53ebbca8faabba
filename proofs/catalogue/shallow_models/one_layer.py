"""Chapter 5: what a model with no layer, and with one layer, computes."""

from __future__ import annotations

from sympy import Identity, MatrixSymbol

from algebra.language import HeadSum, kron, matadd, matmul, vec_rows
from numeric.binding import Source
from proofs.catalogue.symbols import H, V, column, d, h, heads, n
from proofs.claims import Statement
from proofs.theorem import theorem

FRAMEWORK = "Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”"


@theorem(
    title="A zero-layer transformer is one table, W_U W_E",
    chapter=5,
    convention="column",
    source=f"{FRAMEWORK}, “Zero-layer transformers”",
    covers=("S0-38", "S4-16"),
)
def zero_layer_logits() -> Statement:
    """Embed, then unembed: at each position the logits are a row of one fixed table of vocabulary
    by vocabulary, looked up by the token there. The best such a model can do is to learn which
    token follows which.

    The identity on the left of ⊗ says that positions do not hear of each other. On a model with
    layers the same product is the direct path, one term of its logits.
    """
    T = MatrixSymbol("T", n, V)
    embedded = matmul(kron(Identity(n), column.W_E), vec_rows(T))
    logits = matmul(kron(Identity(n), column.W_U), kron(Identity(n), column.W_E), vec_rows(T))
    return Statement(
        logits,
        matmul(kron(Identity(n), matmul(column.W_U, column.W_E)), vec_rows(T)),
        places={"embed": embedded, "logits": logits},
        depth=0,
    )


@theorem(
    title="A one-layer transformer is the direct path and one term a head",
    chapter=5,
    convention="column",
    source=f"{FRAMEWORK}, “One-layer attention-only transformers”",
    covers=("S4-13", "S4-14", "S2-03"),
)
def one_layer_expansion() -> Statement:
    """The product of unembedding, layer and embedding multiplies out into 1 + H terms: the direct
    path, which knows only the present token, and for each head its pattern ⊗ a table
    W_U W_OV W_E, which says how attending to a source token changes the logits.

    H is a symbol here: the equation holds for every number of heads. The patterns are those of the
    prompt; they are no table of the vocabulary, since the softmax couples all tokens.
    """
    T = MatrixSymbol("T", n, V)
    A, W_V, W_O = heads.A[h], heads.column.W_V[h], heads.column.W_O[h]
    W_E, W_U = column.W_E, column.W_U
    layer = matadd(kron(Identity(n), Identity(d)), HeadSum(kron(A, matmul(W_O, W_V)), (h, H)))
    logits = matmul(kron(Identity(n), W_U), layer, kron(Identity(n), W_E), vec_rows(T))
    return Statement(
        logits,
        matmul(
            matadd(
                kron(Identity(n), matmul(W_U, W_E)),
                HeadSum(kron(A, matmul(W_U, W_O, W_V, W_E)), (h, H)),
            ),
            vec_rows(T),
        ),
        places={"logits": logits},
        depth=1,
        bind=(
            {
                "A": Source("pattern", layer=0),
                "W_V": Source("W_V", layer=0),
                "W_O": Source("W_O", layer=0),
            },
        ),
    )
