"""Chapter 3: keys and values that heads share (GQA, MQA) or compress (MLA)."""

from __future__ import annotations

import sympy
from sympy import Identity, MatrixSymbol, Min, OneMatrix, Transpose

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import ConcatHeads, Family, kron, matadd, matmul
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.symbols import A, X, d, d_head, r, row, size
from otimes.proofs.claims import NonIdentity, Property, Statement
from otimes.proofs.theorem import theorem

GQA = "Ainslie et al. 2023, “GQA: Training Generalized Multi-Query Transformer Models from "
GQA += "Multi-Head Checkpoints”"
DEEPSEEK = "DeepSeek-AI 2024, “DeepSeek-V2”, §2.1"

g, e = sympy.symbols("g e", integer=True)
G, R = size("G"), size("R")
W_Q, W_K = Family("W_Q", (G, R), d, d_head), Family("W_K", (G,), d, d_head)
W_V, W_O = Family("W_V", (G,), d, d_head), Family("W_O", (G, R), d_head, d)
C, D = Family("C", (G,), d_head, d_head), Family("D", (G,), d_head, d_head)


@theorem(
    title="All heads of a grouped-query layer together read at most G · d_head directions",
    chapter=3,
    convention="row",
    source=f"{GQA}, §2.2",
    covers=("B30",),
)
def grouped_heads_read_few_directions() -> Property:
    """Put the keys of all query heads side by side: each of the G key matrices R times. However
    many query heads there are, the rank of what they read from the stream is at most min(d,
    G·d_head). The same holds of values. Plain attention may read H·d_head directions, R times as
    many; multi-query attention, with G = 1, reads d_head in all.

    The saving of memory is this bound: the cache holds G·d_head numbers a position.
    """
    spread = ConcatHeads(kron(OneMatrix(1, R), W_K[g]), (g, G))
    return Property(Fact("rank_at_most", spread, Min(d, G * d_head)), on_models=False)


@theorem(
    title="The heads of a group share one change of basis of their keys",
    chapter=3,
    convention="row",
    source=f"{GQA}, §2.2; linear algebra",
    covers=("B30",),
)
def grouped_keys_gauge() -> Statement:
    """Multiply the key matrix of a group by an invertible C_g, and every query matrix of that group
    by its inverse transpose: no score changes. There is one such freedom for each group, and not
    one for each query head. A tool that normalises the factors of each head by itself, as one may
    with plain attention, breaks a grouped-query model.
    """
    changed = matmul(matmul(W_Q[g, e], Transpose(D[g])), Transpose(matmul(W_K[g], C[g])))
    return Statement(
        matmul(X, changed, Transpose(X)),
        matmul(X, W_Q[g, e], Transpose(W_K[g]), Transpose(X)),
        given=[(matmul(C[g], D[g]), Identity(d_head))],
        on_models=False,
    )


@theorem(
    title="When a multi-head layer can be turned into a grouped-query layer without loss",
    chapter=3,
    convention="row",
    source=f"{GQA}, §2.1, which averages the heads of a group",
    covers=("B30",),
)
def grouping_is_exact_for_keys_of_one_span() -> Statement:
    """Let the key matrices of the heads of a group differ by a change of basis only: head (g, r)
    has W_K[g] C[g, r]. Then its scores are those of a grouped-query head with the key matrix W_K[g]
    and the query matrix W_Q[g, r] C[g, r]ᵀ. So the conversion is exact where the keys of a group
    span one space. No condition is needed on the queries.
    """
    inside = Family("C", (G, R), d_head, d_head)
    own = matmul(W_Q[g, e], Transpose(matmul(W_K[g], inside[g, e])))
    shared = matmul(matmul(W_Q[g, e], Transpose(inside[g, e])), Transpose(W_K[g]))
    return Statement(matmul(X, own, Transpose(X)), matmul(X, shared, Transpose(X)), on_models=False)


@theorem(
    title="Averaging the keys of a group changes scores",
    chapter=3,
    convention="row",
    source=f"{GQA}, §2.1",
    covers=("B30",),
)
def mean_of_keys_is_not_exact() -> NonIdentity:
    """The usual conversion replaces the key matrices of a group by their mean. Even for two heads
    whose keys span one space, that is not the layer one began with: the mean forgets the bases. It
    is why such models are trained on after the conversion.
    """
    first, other = MatrixSymbol("W_K1", d, d_head), MatrixSymbol("W_K2", d, d_head)
    basis = MatrixSymbol("C", d_head, d_head)
    mean = matmul(sympy.Rational(1, 2), matadd(first, other))
    return NonIdentity(
        matmul(row.W_Q, Transpose(mean)),
        matmul(row.W_Q, Transpose(first)),
        given=[(other, matmul(first, basis))],
    )


# -- multi-head latent attention -------------------------------------------------------------------

W_D = MatrixSymbol("W_D", d, r)  # to the latent vector, which is what is cached
U_K, U_V = MatrixSymbol("U_K", r, d_head), MatrixSymbol("U_V", r, d_head)
LATENT = matmul(X, W_D)


@theorem(
    title="Latent attention never needs its keys: the up-projection goes into the queries",
    chapter=3,
    convention="row",
    source=DEEPSEEK,
    covers=("B29",),
)
def latent_keys_are_absorbed() -> Statement:
    """In multi-head latent attention (MLA) keys are C U_K, where C = X W_D holds r numbers a
    position and is all that is cached. The scores are X (W_Q U_Kᵀ) Cᵀ: with W_Q U_Kᵀ computed once,
    queries meet the latent vectors themselves, and keys are never formed. It is a head whose W_QK
    is W_Q U_Kᵀ W_Dᵀ, of rank at most min(r, d_head).
    """
    return Statement(
        matmul(matmul(X, row.W_Q), Transpose(matmul(LATENT, U_K))),
        matmul(X, matmul(row.W_Q, Transpose(U_K)), Transpose(LATENT)),
        bind=(
            {
                "X": Source("qk_in"),
                "W_D": Source("W_K"),
                "U_K": Source("W_O", cols=16),
                "W_Q": Source("W_Q", cols=16),
            },
        ),
    )


@theorem(
    title="Latent attention never needs its values: the up-projection goes into the output",
    chapter=3,
    convention="row",
    source=DEEPSEEK,
    covers=("B29",),
)
def latent_values_are_absorbed() -> Statement:
    """Values are C U_V, and what a head writes is A C U_V W_O = (A C)(U_V W_O): the pattern mixes
    latent vectors, and one matrix r × d takes the result to the stream. So W_OV = W_D U_V W_O, and
    all that is said of OV circuits holds, with at most r directions read by all heads together.
    """
    return Statement(
        matmul(A, matmul(LATENT, U_V), row.W_O),
        matmul(matmul(A, LATENT), matmul(U_V, row.W_O)),
        bind=({"X": Source("qk_in"), "W_D": Source("W_K"), "U_V": Source("W_Q", rows=16)},),
        on_models=False,
    )


@theorem(
    title="Rotary positions block the absorption of latent keys",
    chapter=3,
    convention="row",
    source=DEEPSEEK,
    covers=("B29",),
)
def rotary_blocks_absorption() -> NonIdentity:
    """A rotation stands between query and key: the score at distance Δ is x W_Q R_Δ U_Kᵀ cᵀ. A
    matrix that is computed once for distance zero is wrong at every other distance, and there is
    none that serves all. So MLA keeps a few extra dimensions of queries and keys that are rotated,
    and the latent part without positions.
    """
    turned = MatrixSymbol("R_delta", d_head, d_head)
    return NonIdentity(
        matmul(row.W_Q, turned, Transpose(U_K)),
        matmul(row.W_Q, Transpose(U_K)),
        given=[(matmul(turned, Transpose(turned)), Identity(d_head))],
    )


@theorem(
    title="Only a rotation that does nothing can be absorbed",
    chapter=3,
    convention="row",
    source=f"{DEEPSEEK}; linear algebra",
    covers=("B29",),
)
def absorbed_rotation_is_identity() -> Statement:
    """Take the circuit at distance Δ less that at distance zero, W_Q R_Δ U_Kᵀ − W_Q U_Kᵀ. Where the
    columns of W_Q and of U_K are independent, as they are in practice, both have left inverses, and
    through them the difference is R_Δ − I. So one matrix serves two distances only if the rotation
    between them is none: there is nothing to compute once.
    """
    turned, U = MatrixSymbol("R_delta", d_head, d_head), MatrixSymbol("U_K", r, d_head)
    of_Q, of_K = MatrixSymbol("L_Q", d_head, d), MatrixSymbol("L_K", d_head, r)
    change = less(matmul(row.W_Q, turned, Transpose(U)), matmul(row.W_Q, Transpose(U)))
    return Statement(
        matmul(of_Q, change, Transpose(of_K)),
        less(turned, Identity(d_head)),
        given=[(matmul(of_Q, row.W_Q), Identity(d_head)), (matmul(of_K, U), Identity(d_head))],
        on_models=False,
    )
