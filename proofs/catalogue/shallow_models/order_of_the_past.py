"""Chapter 5: what one layer without positions cannot know: the order of what came before."""

from __future__ import annotations

from typing import Any

from sympy import BlockMatrix, Identity, MatrixSymbol, Transpose

from otimes.algebra.language.linear import Family, HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.algebra.language.positions import OneHotLast
from otimes.proofs.catalogue.attention_head.patterns import entrywise
from otimes.proofs.catalogue.sources import FRAMEWORK, OLSSON
from otimes.proofs.catalogue.symbols import H, V, d, d_head, h, heads, n, row
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

T, P = MatrixSymbol("T", n, V), MatrixSymbol("P", n, n)
t = MatrixSymbol("t", 1, V)  # the last token, as a one-hot row
IS_PERMUTATION = [(entrywise(P, P), P), (matmul(P, Transpose(P)), Identity(n))]
W_Q, W_K = (Family(f"W_{name}", (H,), d, d_head)[h] for name in "QK")
W_OV = matmul(heads.row.W_V[h], heads.row.W_O[h])


def last_logits(*tokens: Any) -> Any:
    """Return the logits of the last token, whose heads read these tokens (factors of a product)."""
    turned = [Transpose(factor) for factor in reversed(tokens)]
    query = matmul(t, row.W_E)
    pattern = RowSoftmax(matmul(query, W_Q, Transpose(W_K), Transpose(row.W_E), *turned))
    read = HeadSum(matmul(pattern, *tokens, row.W_E, W_OV), (h, H))
    return matmul(matadd(query, read), row.W_U)


@theorem(
    title="What one layer without positions computes at the last position of a prompt",
    chapter=5,
    convention="row",
    source=f"{FRAMEWORK}, “One-layer attention-only transformers”",
    covers=("B24",),
)
def last_position_sees_all() -> Statement:
    """At the last position of a prompt the causal mask hides nothing: its logits are those of one
    query, the last token t, whose heads attend without a mask to all tokens [T; t]. The left side
    is the last row of a whole one-layer model, mask included.

    This simplifies everything that is said about predictions at the last position
    (`one_layer_forgets_the_order`).
    """
    tokens = BlockMatrix([[T], [t]])
    stream = matmul(tokens, row.W_E)
    scores = matmul(stream, W_Q, Transpose(W_K), Transpose(stream))
    heads_write = HeadSum(matmul(RowSoftmax(scores, CausalMask(n + 1)), stream, W_OV), (h, H))
    last = Transpose(OneHotLast(n + 1))
    return Statement(
        matmul(last, matadd(stream, heads_write), row.W_U), last_logits(tokens), on_models=False
    )


@theorem(
    title="One layer without positions cannot tell in which order the past tokens came",
    chapter=5,
    convention="row",
    source=f"{FRAMEWORK}, “One-layer attention-only transformers”; {OLSSON}, on one-layer models",
    covers=("B24",),
)
def one_layer_forgets_the_order() -> Statement:
    """A one-layer model without position information cannot tell in which order the earlier tokens
    came: shuffle the past tokens T by a permutation P, and the logits at the last token t stay
    exactly the same, for any weights. Each past token gets an attention weight that depends on it
    and on t only, and a sum does not depend on order.

    So such a model cannot do induction, which completes “A B … A” by B because B followed A. It
    needs position information or a second layer (`two_layers_see_the_order`).
    """
    return Statement(last_logits(P, T), last_logits(T), given=IS_PERMUTATION, on_models=False)


def two_layers(*tokens: Any) -> Any:
    """Return the streams after two causal layers without positions, on these tokens."""
    stream = matmul(*tokens, row.W_E)
    for number in (1, 2):
        of_Q, of_K, of_V = (Family(f"W_{x}{number}", (H,), d, d_head)[h] for x in "QKV")
        out = Family(f"W_O{number}", (H,), d_head, d)[h]
        scores = matmul(stream, of_Q, Transpose(of_K), Transpose(stream))
        pattern = RowSoftmax(scores, CausalMask(n))
        stream = matadd(stream, HeadSum(matmul(pattern, stream, of_V, out), (h, H)))
    return stream


@theorem(
    title="Two layers without positions see the order through the causal mask",
    chapter=5,
    convention="row",
    source="Haviv et al. 2022, “Transformer Language Models without Positional Encodings Still "
    "Learn Positional Information”",
    covers=("B24",),
)
def two_layers_see_the_order() -> NonIdentity:
    """With two layers, a model without position vectors can see the order of earlier tokens. In the
    first layer the causal mask lets each position read only what came before it, so its result
    depends on the order; the second layer reads these results. The inequality says that the last
    logits change when the past is shuffled by P. The weights of the layers are numbered 1 and 2,
    and T are the past tokens with the last one.

    In one layer the mask alone is not enough (`one_layer_forgets_the_order`).
    """
    last = Transpose(OneHotLast(n))
    return NonIdentity(
        matmul(last, two_layers(P, T), row.W_U),
        matmul(last, two_layers(T), row.W_U),
        given=[*IS_PERMUTATION, (matmul(last, P), last)],
    )
