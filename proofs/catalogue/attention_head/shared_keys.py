"""Chapter 3: keys and values that heads share (GQA, MQA) or compress (MLA)."""

from __future__ import annotations

import sympy
from sympy import Identity, MatrixSymbol, Min, OneMatrix, Transpose

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    StackHeads,
    kron,
    matadd,
    matmul,
)
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.symbols import A, X, d, d_head, n, r, row, size
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
    """In grouped-query attention all query heads together read at most G · d_head directions of the
    stream through their keys, since only G key matrices exist, each used by R heads. The same holds
    for values. Plain attention could read R times as many.

    This limit is the price of the saved memory: the cache holds G · d_head numbers for keys at each
    position instead of H · d_head.
    """
    spread = ConcatHeads(kron(OneMatrix(1, R), W_K[g]), (g, G))
    return Property(Fact("rank_at_most", spread, Min(d, G * d_head)), on_models=False)


@theorem(
    title="In grouped-query attention the heads of a group mix the same values",
    chapter=3,
    convention="row",
    source=f"{GQA}, §2.2",
    covers=("B30",),
)
def grouped_heads_mix_shared_values() -> Statement:
    """The R heads of a group have one value matrix: query head g·R + r mixes the values X V[g] with
    its own pattern A[g, r] and writes them with its own O[g, r]. So what a group writes is its
    patterns side by side with the values, times its output weights stacked. X is what attention
    reads, and the sum over g runs over the G groups.

    The values of a group are computed, and kept in the cache, once. That the number of a head is
    g·R + r and not r·G + g matters to whoever loads a checkpoint: `llama_tiny` has two groups of
    two heads, and with the other order the equation does not give what its layers write.
    """
    shared, own = Family("V", (G,), d, d_head), Family("O", (G, R), d_head, d)
    pattern = Family("A", (G, R), n, n)
    mixed = matmul(pattern[g, e], X, shared[g])
    written = HeadSum(matmul(mixed, own[g, e]), (g, G), (e, R))
    stacked = matmul(ConcatHeads(mixed, (e, R)), StackHeads(own[g, e], (e, R)))
    names = {"V": "grouped_W_V", "O": "grouped_W_O", "A": "grouped_pattern", "X": "ln1"}
    return Statement(
        written,
        HeadSum(stacked, (g, G)),
        places={"attn_out": written},
        bind=({symbol: Source(name) for symbol, name in names.items()},),
        bare=False,
    )


@theorem(
    title="The heads of a group share one change of basis of their keys",
    chapter=3,
    convention="row",
    source=f"{GQA}, §2.2; linear algebra",
    covers=("B30",),
)
def grouped_keys_gauge() -> Statement:
    """In grouped-query attention the heads of one group share their key matrix, so they also share
    the freedom to change its basis. Multiply the keys of group g by an invertible C[g] and all
    query matrices of the group by its inverse transpose: no score changes. D[g] is the inverse of
    C[g].

    A tool that chooses a basis for each head separately, as is allowed in plain attention, breaks
    such a model.
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
    """Ordinary attention can be converted to grouped-query attention without loss if the key
    matrices of the heads in a group differ only by a change of basis, W_K[g] C[g, e]. The query
    matrices take over these changes of basis, W_Q[g, e] C[g, e]ᵀ, and the scores are the same.

    No condition on the queries is needed. In trained models the condition on the keys does not
    hold, and the conversion is an approximation.
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
    """The usual conversion to grouped-query attention replaces the key matrices of a group by their
    mean. This changes the scores even if the keys of both heads span the same space, because
    averaging ignores that they are in different bases. W_K1 and W_K2 are the key matrices of two
    heads, and C is the change of basis between them.

    That is why converted models are trained further. Where an exact conversion exists, it changes
    the queries as well (`grouping_is_exact_for_keys_of_one_span`).
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
    """In multi-head latent attention only a short latent vector C = X W_D (r numbers for each
    position) is cached, and keys would be C U_K. The keys never have to be computed: the scores are
    X (W_Q U_Kᵀ) Cᵀ, so the up-projection U_K is multiplied into the queries once.

    In circuit terms such a head has W_QK = W_Q U_Kᵀ W_Dᵀ, of rank at most min(r, d_head).
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
    """In multi-head latent attention the values are C U_V, made from the cached latents C = X W_D.
    They never have to be computed: the pattern mixes the latents, A C, and the product U_V W_O
    takes the result to the stream.

    So W_OV = W_D U_V W_O, and all that is known of OV circuits applies. All heads together read at
    most r directions.
    """
    return Statement(
        matmul(A, matmul(LATENT, U_V), row.W_O),
        matmul(matmul(A, LATENT), matmul(U_V, row.W_O)),
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
    """With rotary positions the up-projection of latent attention cannot be multiplied into the
    queries: between W_Q and U_Kᵀ stands a rotation R_Δ that depends on the distance, so a product
    computed once, for distance zero, is wrong at other distances.

    DeepSeek's models therefore have a few extra dimensions with rotary positions, and leave the
    latent part without.
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
    """If one matrix W_Q U_Kᵀ is to give the scores of latent attention at a distance Δ too, the
    rotation R_Δ must be the identity. L_Q and L_K are left inverses of W_Q and U_K, which exist if
    their columns are independent, as they usually are. Seen through them, the difference of the two
    circuits is R_Δ − I.

    So the obstacle in `rotary_blocks_absorption` cannot be avoided by a clever choice of weights.
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
