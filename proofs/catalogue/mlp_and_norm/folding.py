"""Chapter 4: what can be moved from norms and biases into the weights beside them, and what not.

Each function of `numeric/processing.py` that rewrites a model rests on one of these.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy import (
    BlockMatrix,
    Identity,
    ImmutableMatrix,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Transpose,
    ZeroMatrix,
)

from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RowSoftmax
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.mlp_and_norm.parts import (
    WITH_LAYER_NORM,
    W_out,
    bias,
    centring,
    diagonal,
    eps,
    everywhere,
    gained,
    of_vocabulary,
)
from otimes.proofs.catalogue.sources import (
    FRAMEWORK,
    PRESS_WOLF,
    ROFORMER,
    ROLE_OF_BIAS,
    TRANSFORMER_LENS,
)
from otimes.proofs.catalogue.symbols import H, X, d, d_head, d_mlp, h, heads, n, row
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

NOTES = f"{FRAMEWORK}, “Model simplifications”"
NORMS = f"{FRAMEWORK}, “Handling layer normalization”"

A = MatrixSymbol("A", n, n)
ones = OneMatrix(n, 1)
N = MatrixSymbol("N", n, d)  # rows that were normalised, before the gain
NORMED = ({"N": Source("resid_pre")},)


def pattern(query: object, key: object) -> RowSoftmax:
    """Return softmax(Q Kᵀ/√d_head) over what a query sees."""
    scores = matmul(1 / sympy.sqrt(d_head), query, Transpose(key))
    return RowSoftmax(scores, CausalMask(n))


@theorem(
    title="Folding LayerNorm: the gain and bias of a norm fold into the weights that read it",
    chapter=4,
    convention="row",
    source=f"{NORMS}; {TRANSFORMER_LENS}",
    covers=("S0-03", "S2-06"),
)
def norm_gain_and_bias_fold() -> Statement:
    """A reader W with bias b that follows a norm with gain γ and bias β is the reader diag(γ)W with
    bias βW + b that follows the bare norm. It is done for every reader of the norm: queries, keys,
    values, the MLP, the unembedding.

    The weights that one sees in a file are therefore not what the circuits are made of: compare
    W_QK or W_OV after folding, or the same function looks different in two models. And fold the
    bias before the gain is forgotten: what is folded is βW with the W of before.
    """
    W_Q = row.W_Q
    gain, shift = MatrixSymbol("ln1_gain", 1, d), MatrixSymbol("ln1_bias", 1, d)
    before = matadd(matmul(gained("ln1", N), W_Q), everywhere(bias.b_Q))
    folded = matadd(matmul(shift, W_Q), bias.b_Q)
    return Statement(
        before,
        matadd(matmul(N, matmul(diagonal(gain), W_Q)), everywhere(folded)),
        places={
            "q": matadd(matmul(gained("ln1", LayerNorm(X, eps)), W_Q), everywhere(bias.b_Q)),
        },
        bind=NORMED,
        bare=False,
        config=WITH_LAYER_NORM | {"positions": "learned"},
    )


@theorem(
    title="Centring folds into the weights that write to the stream",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("S0-05",),
)
def centring_folds_into_writers() -> Statement:
    """The stream is a sum of what the embedding, the heads and the MLPs wrote, and centring is one
    matrix P on the right of all of it. So P may be multiplied onto each writer (W_E P, W_O P,
    W_out P): the new stream is the centred one, and the LayerNorm that follows is an RMSNorm of it
    (`layer_norm_is_rms_norm_of_centred`).

    All writers must be centred, biases and positions too; one that is left out puts its mean back.
    """
    written = HeadSum(matmul(heads.Z[h], heads.row.W_O[h]), (h, H))
    centred = HeadSum(matmul(heads.Z[h], matmul(heads.row.W_O[h], centring)), (h, H))
    post = MatrixSymbol("mlp_post", n, d_mlp)
    return Statement(
        matmul(matadd(X, written, matmul(post, W_out)), centring),
        matadd(matmul(X, centring), centred, matmul(post, matmul(W_out, centring))),
        bind=({"Z": Source("z")},),
    )


@theorem(
    title="Centred writers keep the mean of the stream at zero",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("S0-05",),
)
def centred_writers_keep_mean_zero() -> Statement:
    """Whatever a head reads and wherever it looks, what it writes through W_O P has mean zero, the
    rows of W_O P having sum zero. The stream of a model with centred writers so stays at a right
    angle to 1 at every layer.
    """
    z_h = MatrixSymbol("z", n, d_head)
    written = matmul(z_h, matmul(row.W_O, centring))
    return Statement(matmul(written, OneMatrix(d, 1)), ZeroMatrix(n, 1))


@theorem(
    title="Centring folds into the weights that read a LayerNorm",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("S0-05",),
)
def centring_folds_into_readers() -> Statement:
    """What a LayerNorm gives, before gain and bias, has mean zero; so the part of a reader that
    sees the mean never counts, and W may be replaced by PW, whose columns sum to zero. The gain has
    to be folded first: after it the mean need not be zero.
    """
    W_V = row.W_V
    return Statement(
        matmul(LayerNorm(X, eps), matmul(centring, W_V)), matmul(LayerNorm(X, eps), W_V)
    )


@theorem(
    title="Weights behind a gain cannot be centred before it is folded",
    chapter=4,
    convention="row",
    source="follows from the definition of the gain",
    covers=("S2-06",),
)
def centred_readers_need_folded_gain() -> NonIdentity:
    """With a gain between the norm and the reader, N diag(γ) PW is another thing than N diag(γ) W:
    the gained row need not have mean zero, and its mean is something the reader sees. The order is
    bias, gain, centring; each step makes the next one right.
    """
    gain = diagonal(MatrixSymbol("ln1_gain", 1, d))
    normed = matmul(LayerNorm(X, eps), gain)
    return NonIdentity(matmul(normed, matmul(centring, row.W_V)), matmul(normed, row.W_V))


@theorem(
    title="A bias is a weight from a dimension that is always 1",
    chapter=4,
    convention="row",
    source=NOTES,
    covers=("S0-06",),
)
def bias_is_weight_from_constant_dimension() -> Statement:
    """Append a 1 to each row, and the affine map x ↦ xW + b is one matrix, which hands the 1 on. So
    a chain of affine maps is a product of matrices, and all that is proved of models without biases
    holds for models with them.

    The constant must stay 1. Nothing may write to that dimension, and no norm may see it: after a
    LayerNorm of the whole row it is some number, another at each position. That trick and “norms
    left as they are” exclude each other.
    """
    W, b = MatrixSymbol("W_V", d, d_head), bias.b_V
    before = BlockMatrix([[X, ones]])
    augmented = BlockMatrix([[W, ZeroMatrix(d, 1)], [b, Identity(1)]])
    after = BlockMatrix([[matadd(matmul(X, W), everywhere(b)), ones]])
    last = BlockMatrix([[ZeroMatrix(d, 1)], [Identity(1)]])
    return Statement(
        matmul(before, augmented),
        after,
        printed={"E38": (matmul(LayerNorm(before), last), ones)},
    )


# -- biases of attention ---------------------------------------------------------------------------


@theorem(
    title="The value bias passes through attention unchanged",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("S0-07", "B7"),
)
def value_bias_passes_through() -> Statement:
    """A row of a pattern sums to one, so the average of values that all contain b_V contains b_V:
    the head adds the constant b_V W_O at every position, wherever it looks. All that is needed of
    the pattern is A1 = 1; any row-stochastic pattern will do, whatever it depends on.
    """
    W_V, W_O = row.W_V, row.W_O
    values = matadd(matmul(X, W_V), everywhere(bias.b_V))
    moved = matadd(matmul(A, X, matmul(W_V, W_O)), everywhere(matmul(bias.b_V, W_O)))
    return Statement(matmul(A, values, W_O), moved, given=[(matmul(A, ones), ones)])


@theorem(
    title="All value biases of a layer fold into its output bias",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("S0-07", "B7"),
)
def value_biases_fold_into_output_bias() -> Statement:
    """A layer with value biases is a layer without them, whose output bias is b_O + Σ_h b_V W_O,
    for any number of heads. “Whose is it” is a matter of bookkeeping: count it with its head or
    with b_O, never with both, or the components of the logits sum to more than the logits.
    """
    A_h, W_V, W_O = heads.A[h], heads.row.W_V[h], heads.row.W_O[h]
    b_V = Family("b_V", (H,), 1, d_head)[h]
    stream = MatrixSymbol("ln1", n, d)
    values = matadd(matmul(stream, W_V), everywhere(b_V))
    with_biases = HeadSum(matmul(A_h, values, W_O), (h, H))
    without = HeadSum(matmul(A_h, stream, W_V, W_O), (h, H))
    folded = matadd(bias.b_O, HeadSum(matmul(b_V, W_O), (h, H)))
    layer = matadd(with_biases, everywhere(bias.b_O))
    return Statement(
        layer,
        matadd(without, everywhere(folded)),
        given=[(matmul(A_h, ones), ones)],
        places={"attn_out": layer},
        bare=False,
    )


query = matadd(matmul(X, row.W_Q), everywhere(bias.b_Q))
bare_query, bare_key = matmul(X, row.W_Q), matmul(X, row.W_K)
READS = ({"X": Source("qk_in")},)
NOT_ROTARY = {"positions": "learned"}


@theorem(
    title="The key bias does not change the attention pattern",
    chapter=4,
    convention="row",
    source=ROLE_OF_BIAS,
    covers=("S0-08", "B7"),
)
def key_bias_is_irrelevant() -> Statement:
    """b_K adds q_i · b_K to all scores of query i, the same number for every key, and a softmax
    does not see what is added to its whole row. So a model may be trained with a key bias for ever:
    its gradient is zero, and its value means nothing. The scores do change; the pattern does not.

    Not so with rotary positions, see `key_bias_matters_when_turned`.
    """
    with_bias = matadd(bare_key, everywhere(bias.b_K))
    return Statement(
        pattern(query, with_bias),
        pattern(query, bare_key),
        places={"pattern": pattern(query, with_bias)},
        bind=READS,
        unchanged_by=dict.fromkeys(
            (
                "b_Q for b_K",
                "b_V for b_K",
                "b_K of another layer",
                "b_K of another head",
                "b_K with its columns shifted",
            ),
            "no key bias changes the pattern, which is the theorem",
        ),
        bare=False,
        config=NOT_ROTARY,
    )


@theorem(
    title="The query bias adds one number to the score of each key, the same for all queries",
    chapter=4,
    convention="row",
    source=ROLE_OF_BIAS,
    covers=("S0-08", "B7"),
)
def query_bias_is_a_preference_for_keys() -> Statement:
    """The query bias adds b_Q W_Kᵀ x_j to the score of key j, for every query alike: some tokens
    are looked at more, by whoever looks. It is the only one of the three biases of attention that
    cannot be moved or dropped: it matters through the one row b_Q W_Kᵀ, a reader of the stream.
    (Here with both biases, of which b_K falls away.)
    """
    with_bias = matadd(bare_key, everywhere(bias.b_K))
    preference = matmul(bias.b_Q, Transpose(row.W_K), Transpose(X))
    scores = matadd(
        matmul(X, matmul(row.W_Q, Transpose(row.W_K)), Transpose(X)), everywhere(preference)
    )
    return Statement(
        pattern(query, with_bias),
        RowSoftmax(matmul(1 / sympy.sqrt(d_head), scores), CausalMask(n)),
        bind=READS,
        config=NOT_ROTARY,
    )


@theorem(
    title="The query bias changes the attention pattern",
    chapter=4,
    convention="row",
    source=ROLE_OF_BIAS,
    covers=("S0-08", "B7"),
)
def query_bias_matters() -> NonIdentity:
    """Queries and keys look alike in the formula and are not: the softmax runs over keys. What is
    constant along them falls away, what is constant along queries stays. So of two biases that look
    the same, one may be dropped and the other may not.
    """
    return NonIdentity(
        pattern(query, bare_key), pattern(bare_query, bare_key), bind=READS, on_models=True
    )


POSITIONS = sympy.symbols("i j q", integer=True)


def _turned(rows: object, rotations: Any) -> MatrixExpr:
    """Return rows, each turned by the rotation of its position."""
    q = POSITIONS[2]
    at = OneHot(q, n)
    return HeadSum(matmul(at, Transpose(at), rows, rotations(q)), (q, n))


@theorem(
    title="With rotary positions the key bias adds a function of the distance to each score",
    chapter=4,
    convention="row",
    source=f"{ROFORMER}, §3.2",
    covers=("S0-08", "B7", "B11"),
)
def rotary_key_bias_prefers_distances() -> Statement:
    """Rotary positions turn each query and each key, its bias too, by R of the position. Of a score
    the bias b_K adds q_i R_i R_jᵀ b_Kᵀ, and for rotations R_i R_jᵀ is R of the difference i - j. So
    it is a preference of each query for some distances, and not one number for all keys.
    """
    i, j, _ = POSITIONS
    R = Family("R", (n,), d_head, d_head)

    def scores(key: object) -> MatrixExpr:
        return matmul(
            _turned(query, R.__getitem__), Transpose(_turned(key, R.__getitem__)), OneHot(j, n)
        )

    with_bias = scores(matadd(bare_key, everywhere(bias.b_K)))
    here = Transpose(OneHot(i, n))
    return Statement(
        matmul(here, matadd(with_bias, matmul(-1, scores(bare_key)))),
        matmul(here, query, matmul(R[i], Transpose(R[j])), Transpose(bias.b_K)),
        on_models=False,
    )


@theorem(
    title="With rotary positions the key bias changes the attention pattern",
    chapter=4,
    source=f"{ROFORMER}, §3.2; Bai et al. 2023, “Qwen Technical Report”, on biases of Q, K and V",
    covers=("S0-08", "B7"),
)
def key_bias_matters_when_turned() -> NonIdentity:
    """One plane of a rotary head: d_head is 2, and R of a position is c I + s J with the quarter
    turn J and c² + s² = 1, a rotation by any angle. Queries and keys are turned by it, and no other
    bias than zero can be dropped from the keys: the pattern is another one. (A scale 1/√d_head is
    in the queries.)
    """
    i = POSITIONS[0]
    c, s = Family("c", (n,), 1, 1), Family("s", (n,), 1, 1)
    quarter = ImmutableMatrix([[0, 1], [-1, 0]])
    W_Q, W_K = MatrixSymbol("W_Q", d, 2), MatrixSymbol("W_K", d, 2)
    b_Q, b_K = MatrixSymbol("b_Q", 1, 2), MatrixSymbol("b_K", 1, 2)

    def rotation(at: object) -> MatrixExpr:
        return matadd(kron(c[at], Identity(2)), kron(s[at], quarter))

    queries = _turned(matadd(matmul(X, W_Q), everywhere(b_Q)), rotation)
    keys = matmul(X, W_K)
    with_bias = matadd(keys, everywhere(b_K))

    def attended(each: MatrixExpr) -> RowSoftmax:
        return RowSoftmax(matmul(queries, Transpose(_turned(each, rotation))), CausalMask(n))

    unit = matadd(matmul(c[i], c[i]), matmul(s[i], s[i]))
    return NonIdentity(attended(with_bias), attended(keys), given=[(unit, Identity(1))])


# -- the unembedding -------------------------------------------------------------------------------


@theorem(
    title="Centring the unembedding leaves the probabilities",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("B7",),
)
def centred_unembedding_keeps_probabilities() -> Statement:
    """Take the mean over the vocabulary off each row of W_U, and all logits of a position change by
    the same number: the softmax stays as it is, and with it every loss. The logits differ, and so
    does a direct logit attribution to one token; a difference of two logits does not.

    So “the logits differ after loading” is no bug where probabilities agree.
    """
    W_U, final = row.W_U, MatrixSymbol("ln_final", n, d)
    return Statement(
        RowSoftmax(matmul(final, matmul(W_U, of_vocabulary))),
        RowSoftmax(matmul(final, W_U)),
        bare=False,
    )


@theorem(
    title="Centring the unembedding changes logits",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("B7",),
)
def centred_unembedding_changes_logits() -> NonIdentity:
    """Only what ignores a shift common to all tokens may be computed from centred logits: softmax,
    log-softmax, differences of two logits. A single logit, its sign, or a mean of logits is another
    number than before, and comparing it with that of an unprocessed model says nothing.
    """
    W_U, final = row.W_U, MatrixSymbol("ln_final", n, d)
    return NonIdentity(
        matmul(final, matmul(W_U, of_vocabulary)), matmul(final, W_U), on_models=True
    )


@theorem(
    title="Under a soft cap the unembedding cannot be centred",
    chapter=4,
    convention="row",
    source="Gemma Team 2024, “Gemma 2”, §2 (logit soft-capping)",
    covers=("B7",),
)
def soft_cap_needs_whole_unembedding() -> NonIdentity:
    """A model that caps its logits, c tanh(x/c), does not see a shift common to all tokens as one:
    it moves large logits less than small ones, and so changes probabilities. There the mean of W_U
    counts, and may not be taken off.
    """
    W_U, final = row.W_U, MatrixSymbol("ln_final", n, d)

    def capped(weights: object) -> RowSoftmax:
        return RowSoftmax(Activation("tanh", matmul(final, weights)))

    return NonIdentity(capped(matmul(W_U, of_vocabulary)), capped(W_U))


@theorem(
    title="A tied unembedding is the transposed embedding",
    chapter=4,
    convention="row",
    source=PRESS_WOLF,
)
def tied_unembedding_is_transpose() -> Statement:
    """Tied weights are one matrix with two uses. As soon as one of the two is folded or centred and
    the other is not, they are two, and a model has to be untied first.
    """
    W_E, final = row.W_E, MatrixSymbol("ln_final", n, d)
    logits = matmul(final, row.W_U)
    return Statement(
        logits,
        matmul(final, Transpose(W_E)),
        given=[(row.W_U, Transpose(W_E))],
        places={"logits": logits},
        unchanged_by={
            "W_E with its columns shifted": "the logits are made of W_U, which is given as tied"
        },
        bare=False,
        config={"tied": True, "biases": ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out")},
    )
