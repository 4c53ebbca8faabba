"""Chapter 3: what newer architectures change in a head: distances, norms of outputs, gains."""

from __future__ import annotations

import sympy
from sympy import MatrixSymbol, OneMatrix, Transpose
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.linear import HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.proofs.catalogue.mlp_and_norm.parts import diagonal
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
    """ALiBi lowers a score by m times the distance from query i to key j, which is m (p_j − p_i)
    with the positions p. The part m p_i is the same for a whole row, and softmax ignores it: code
    that adds m p_j alone, as BLOOM does, computes the same pattern.

    It also shows what padding on the left does: it shifts every p_j by one number, which changes no
    pattern either.
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
    """A bias that depends on the query only, as from an added m p_i in the wrong axis, is ignored
    by softmax: such a model has no positions at all.
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
    """Where the output of attention is normalised before it is added (OLMo 2, Gemma 2), the norm
    divides row i by one number and multiplies columns by the gain. Held constant, the divisor
    scales row i of every pattern, and the gain scales the columns of every W_O: the heads still
    write a sum of independent terms, and paths add up as in a pre-norm model.

    The rows of such a pattern no longer sum to 1.
    """
    W_V, W_O = heads.row.W_V[h], heads.row.W_O[h]
    scale = DiagMatrix(MatrixSymbol("t", n, 1))
    gain = diagonal(MatrixSymbol("g", 1, d))
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
    """Gemma multiplies normalised rows by 1 + w: that is the rows, plus the rows times w. Reading w
    for the gain, as for Llama, loses the first term.
    """
    N, w = MatrixSymbol("N", n, d), MatrixSymbol("w", 1, d)
    whole = diagonal(matadd(OneMatrix(1, d), w))
    return Statement(matmul(N, whole), matadd(N, matmul(N, diagonal(w))), on_models=False)


@theorem(
    title="The scores of latent attention are scores of latents plus those of a rotary part",
    chapter=3,
    convention="row",
    source="DeepSeek-AI 2024, “DeepSeek-V2”, §2.1.2 and §2.1.3",
)
def latent_scores_absorb_the_up_projections() -> Statement:
    """A head's query is a rotated part Q_R and D W_UQ, made of a latent D; its key is a rotated
    part K_R, which all heads share, and C W_UK, made of a latent C. The scores are the sum of two
    terms. In the second, both up-projections are one matrix between the latents: a cache of C and
    K_R is all that decoding needs, and the same matrix is the head's QK circuit between latents.

    The rotated part cannot be absorbed so: a rotation that depends on the positions stands between
    its factors, which is why it is decoupled. C and D are normalised, so that the circuit is one of
    normed latents and not of the stream.
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
