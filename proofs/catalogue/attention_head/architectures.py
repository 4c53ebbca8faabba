"""Chapter 3: what newer architectures change in a head: distances, norms of outputs, gains."""

from __future__ import annotations

import sympy
from sympy import MatrixSymbol, OneMatrix, Transpose
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.linear import HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.proofs.catalogue.symbols import H, X, d, d_head, h, heads, m, n, p, r
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

ALIBI = "Press, Smith and Lewis 2022, “Train Short, Test Long”, §3"
GEMMA_2 = "Gemma Team 2024, “Gemma 2: Improving Open Language Models at a Practical Size”, §2"

S, MASK = MatrixSymbol("S", n, n), CausalMask(n)
place = MatrixSymbol("p", n, 1)
slope = sympy.Symbol("m", real=True)
ONES = OneMatrix(n, 1)


@theorem(
    title="The distances of ALiBi are slopes along the keys",
    chapter=3,
    convention="row",
    source=ALIBI,
    covers=("B26",),
)
def alibi_distances_are_key_slopes() -> Statement:
    """ALiBi gives a model positions by lowering each attention score in proportion to the distance
    from query to key: m (p_j − p_i), with slope m and positions p. The part that depends on the
    query i is constant along a row, and softmax ignores it. So adding m p_j alone gives the same
    pattern. S (n × n) are the scores without positions, and p (n × 1) is the column of positions.

    Code such as that of BLOOM does so. It also shows that padding on the left, which shifts all
    positions by one number, changes no pattern.
    """
    keys = matmul(slope, ONES, Transpose(place))
    queries = matmul(-slope, place, Transpose(ONES))
    return Statement(
        RowSoftmax(matadd(S, keys, queries), MASK),
        RowSoftmax(matadd(S, keys), MASK),
        on_models=False,
    )


@theorem(
    title="A slope along the queries is not ALiBi",
    chapter=3,
    convention="row",
    source=ALIBI,
    covers=("B26",),
)
def alibi_is_not_a_query_slope() -> NonIdentity:
    """If the position bias of ALiBi is added along the wrong axis, so that it depends on the query
    and not on the key, it has no effect at all: softmax ignores what is constant along a row. The
    model then has no position information and raises no error. The inequality says that this
    pattern differs from that of ALiBi. The bias is m p_i for query i instead of m p_j for key j,
    with a slope m and the column of positions p; S are the other scores.
    """
    wrong = matmul(slope, place, Transpose(ONES))
    right = matmul(slope, ONES, Transpose(place))
    return NonIdentity(RowSoftmax(matadd(S, wrong), MASK), RowSoftmax(matadd(S, right), MASK))


@theorem(
    title="With its scale held constant, the norm of an output folds into patterns and W_O",
    chapter=3,
    convention="row",
    source=f"{GEMMA_2}; OLMo Team 2024, “2 OLMo 2 Furious”, §3.2",
)
def output_norm_folds_into_heads() -> Statement:
    """Some models (OLMo 2, Gemma 2) normalise the output of attention before adding it to the
    stream. With the scale of that norm held constant, the heads still write a sum of independent
    terms: the norm multiplies row i by a number t_i, which scales row i of every pattern, and the
    columns by the gain g, which scales the columns of every W_O.

    So paths add up as in other models. Rows of the scaled patterns no longer sum to 1.
    """
    W_V, W_O = heads.row.W_V[h], heads.row.W_O[h]
    scale = DiagMatrix(MatrixSymbol("t", n, 1))
    gain = DiagMatrix(Transpose(MatrixSymbol("g", 1, d)))
    written = HeadSum(matmul(heads.A[h], X, W_V, W_O), (h, H))
    folded = HeadSum(matmul(scale, heads.A[h], X, W_V, W_O, gain), (h, H))
    return Statement(matmul(scale, written, gain), folded, on_models=False)


@theorem(
    title="A gain stored minus 1, as in Gemma, adds the normalised rows themselves",
    chapter=3,
    convention="row",
    source="Gemma Team 2024, “Gemma: Open Models Based on Gemini Research and Technology”",
)
def gain_offset_adds_the_rows() -> Statement:
    """Gemma stores the gain of its norms minus 1: normalised rows N are multiplied by 1 + w, where
    w (1 × d) is what the file holds. So the result is N plus N times w. Reading w as the gain, as
    in Llama, loses the first term and gives a wrong model without any error.
    """
    N, w = MatrixSymbol("N", n, d), MatrixSymbol("w", 1, d)
    whole = DiagMatrix(Transpose(matadd(OneMatrix(1, d), w)))
    added = matmul(N, DiagMatrix(Transpose(w)))
    return Statement(matmul(N, whole), matadd(N, added), on_models=False)


@theorem(
    title="The scores of latent attention are scores of latents plus those of a rotary part",
    chapter=3,
    convention="row",
    source="DeepSeek-AI 2024, “DeepSeek-V2”, §2.1.2 and §2.1.3",
)
def latent_scores_absorb_the_up_projections() -> Statement:
    """In multi-head latent attention (DeepSeek) a score is the sum of a rotary part and a latent
    part: Q_R K_Rᵀ + D (W_UQ W_UKᵀ) Cᵀ. D and C are small vectors for each position (latents), from
    which queries and keys are made by the up-projections W_UQ and W_UK; Q_R and K_R are the parts
    with rotary positions, and K_R is shared by all heads.

    The two up-projections combine to one matrix. So a cache of C and K_R is all that decoding
    needs, and W_UQ W_UKᵀ is the head's QK circuit between latents.

    The rotary part cannot be combined in this way, since a rotation that depends on positions
    stands between its factors. Latents are normalised, so this circuit reads normalised latents and
    not the stream.
    """
    latents, asked = MatrixSymbol("C", n, r), MatrixSymbol("D", n, p)
    Q_R, K_R = MatrixSymbol("Q_R", n, m), MatrixSymbol("K_R", n, m)
    W_UQ, W_UK = MatrixSymbol("W_UQ", p, d_head), MatrixSymbol("W_UK", r, d_head)
    queries = sympy.BlockMatrix([[Q_R, matmul(asked, W_UQ)]])
    keys = sympy.BlockMatrix([[K_R, matmul(latents, W_UK)]])
    between = matmul(W_UQ, Transpose(W_UK))
    return Statement(
        matmul(queries, Transpose(keys)),
        matadd(matmul(Q_R, Transpose(K_R)), matmul(asked, between, Transpose(latents))),
        on_models=False,
    )
