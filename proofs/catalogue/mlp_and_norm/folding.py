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
    b_out,
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
    """The gain and the bias of a norm can be moved into the weights that read it: a matrix W with
    bias b behind gain γ and bias β is the matrix diag(γ) W with bias βW + b behind the bare norm. N
    are the normalised rows. All readers of the norm change in this way: queries, keys, values, the
    MLP, and the unembedding behind the last norm.

    Circuits such as W_QK and W_OV should be compared after folding, or the same function looks
    different in two models.

    The bias is folded with the original W, before the gain is multiplied in: βW, not β diag(γ) W.
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
    """The mean subtraction of LayerNorm can be moved into the weights that write to the stream. The
    stream is the sum of what embedding, heads and MLPs wrote, and centring multiplies this sum by P
    = I − 11ᵀ/d on the right, so each writer may be multiplied by P (W_O P, W_out P, W_E P). The
    norm that follows is then an RMSNorm (`layer_norm_is_rms_norm_of_centred`). Z[h] (n × d_head) is
    what head h has mixed, and `mlp_post` the activations of the neurons.

    Libraries call it centring the writing weights. Biases and position vectors have to be centred
    too; one writer that is left out brings its mean back.
    """
    written = HeadSum(matmul(heads.Z[h], heads.row.W_O[h]), (h, H))
    centred = HeadSum(matmul(heads.Z[h], matmul(heads.row.W_O[h], centring)), (h, H))
    post = MatrixSymbol("mlp_post", n, d_mlp)
    return Statement(
        matmul(matadd(X, written, matmul(post, W_out)), centring),
        matadd(matmul(X, centring), centred, matmul(post, matmul(W_out, centring))),
        bind=({"Z": Source("z")},),
        places={
            "resid_mid": matadd(X, written, everywhere(bias.b_O)),
            "mlp_out": matadd(matmul(post, W_out), everywhere(b_out)),
        },
        bare=False,
    )


@theorem(
    title="Centred writers keep the mean of the stream at zero",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("S0-05",),
)
def centred_writers_keep_mean_zero() -> Statement:
    """If the output weights of a head are centred, W_O P with P = I − 11ᵀ/d, then everything that
    it writes has mean zero, whatever it reads (z, 1 × d_head) and wherever it attends. The rows of
    W_O P sum to zero.

    If all writers are centred, the residual stream has mean zero at every layer, and LayerNorm has
    nothing to subtract.
    """
    z_h = MatrixSymbol("z", n, d_head)
    written = matmul(z_h, matmul(row.W_O, centring))
    return Statement(
        matmul(written, OneMatrix(d, 1)),
        ZeroMatrix(n, 1),
        places={"head_out": matmul(z_h, row.W_O)},
        bare=False,
    )


@theorem(
    title="Centring folds into the weights that read a LayerNorm",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("S0-05",),
)
def centring_folds_into_readers() -> Statement:
    """The output of LayerNorm before gain and bias has mean zero, so a matrix W that reads it may
    be replaced by PW, whose columns sum to zero. The part of W that would read the mean never
    counts.

    This gives weights a standard form before they are compared.

    The gain has to be folded into W first. Behind a gain the rows need not have mean zero
    (`centred_readers_need_folded_gain`).
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
    """If weights are centred while the gain of the norm is still in place, the model changes: a row
    that has been multiplied by a gain need not have mean zero, and W reads that mean.

    The order for LayerNorm is therefore: fold the bias, fold the gain, then centre.
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
    """A bias can be written as a weight: append an entry 1 to each row, and x ↦ xW + b becomes one
    matrix, which also passes the 1 on. So a chain of affine maps is a product of matrices, and
    theorems about models without biases apply to models with them.

    The entry must stay 1. Nothing may write to that dimension and no norm may include it, since
    after a LayerNorm of the whole row it would be another number at each position.
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
        places={"v": matadd(matmul(X, W), everywhere(b))},
        bind=({"X": Source("ln1")},),
        bare=False,
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
    """A bias on the values of a head adds the constant vector b_V W_O to its output at every
    position, wherever the head attends. The weights of a row sum to one (A1 = 1, the only
    hypothesis), so a weighted mean of values that all contain b_V contains b_V.

    It is the reason why value biases can be moved into the output bias
    (`value_biases_fold_into_output_bias`).
    """
    W_V, W_O = row.W_V, row.W_O
    values = matadd(matmul(X, W_V), everywhere(bias.b_V))
    moved = matadd(matmul(A, X, matmul(W_V, W_O)), everywhere(matmul(bias.b_V, W_O)))
    return Statement(
        matmul(A, values, W_O),
        moved,
        given=[(matmul(A, ones), ones)],
        places={"v": values, "head_out": matmul(A, values, W_O)},
        bind=({"X": Source("ln1")},),
        bare=False,
    )


@theorem(
    title="All value biases of a layer fold into its output bias",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("S0-07", "B7"),
)
def value_biases_fold_into_output_bias() -> Statement:
    """An attention layer with value biases is the same as a layer without them whose output bias is
    b_O + Σ_h b_V[h] W_O[h]. So biases of attention reduce to one vector for each layer.

    Whether that vector belongs to the heads or to the layer is bookkeeping. Count it with its head
    or with b_O, but not with both, or the components of the logits sum to more than the logits.
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
ANY_KEY_BIAS = dict.fromkeys(
    (
        "b_Q for b_K",
        "b_V for b_K",
        "b_K of another layer",
        "b_K of another head",
        "b_K with its columns shifted",
    ),
    "no key bias changes the pattern, see `key_bias_is_irrelevant`",
)
NOT_ROTARY = {"positions": "learned"}


@theorem(
    title="The key bias does not change the attention pattern",
    chapter=4,
    convention="row",
    source=ROLE_OF_BIAS,
    covers=("S0-08", "B7"),
)
def key_bias_is_irrelevant() -> Statement:
    """A bias on the keys does not change the attention pattern: it adds q_i · b_K to all scores of
    query i, the same number for every key, which softmax ignores. The scores change, the pattern
    does not.

    So b_K can be set to zero in analysis, and its gradient is zero in training.

    With rotary positions this is false (`key_bias_matters_when_turned`).
    """
    with_bias = matadd(bare_key, everywhere(bias.b_K))
    return Statement(
        pattern(query, with_bias),
        pattern(query, bare_key),
        places={"pattern": pattern(query, with_bias)},
        bind=READS,
        unchanged_by=ANY_KEY_BIAS,
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
    """A bias on the queries adds to the score of each key the number b_Q W_Kᵀ x_j/√d_head, the same
    for all queries. So it makes some tokens more attended to, whoever attends. The right-hand side
    has the scores through W_QK plus this one row; the key bias has dropped out
    (`key_bias_is_irrelevant`).

    Of the biases of attention it is the one that can be neither dropped nor moved to the end.
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
        places={"pattern": pattern(query, with_bias)},
        bare=False,
        unchanged_by=ANY_KEY_BIAS,
    )


@theorem(
    title="The query bias changes the attention pattern",
    chapter=4,
    convention="row",
    source=ROLE_OF_BIAS,
    covers=("S0-08", "B7"),
)
def query_bias_matters() -> NonIdentity:
    """A bias on the queries changes the attention pattern, unlike a bias on the keys. The softmax
    runs over keys: what is constant along the keys of a row drops out, and the query bias, which
    adds another number for each key, does not.

    So of two biases that look alike in the formula one may be removed and the other may not.
    """
    return NonIdentity(
        pattern(query, bare_key),
        pattern(bare_query, bare_key),
        bind=READS,
        on_models=True,
        places={"pattern": pattern(query, matadd(bare_key, everywhere(bias.b_K)))},
        unchanged_by=ANY_KEY_BIAS,
        bare=False,
        config=NOT_ROTARY,
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
    """With rotary positions, a key bias makes each query prefer certain distances. Queries and
    keys, with their biases, are multiplied by rotations R of their positions, so b_K adds q_i R[i]
    R[j]ᵀ b_Kᵀ to the score. R[i] R[j]ᵀ is the rotation by the distance i − j.

    Without rotations this number is the same for all keys and has no effect
    (`key_bias_is_irrelevant`).
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
    """In a head with rotary positions the key bias changes the attention pattern. The example is a
    head with d_head = 2, in which position q is a rotation c I + s J by an angle with cosine c[q]
    and sine s[q]; J = `[[0, 1], [−1, 0]]` is the quarter turn. The factor 1/√d_head is taken into
    the queries.

    So tools that drop key biases have to check for rotary positions first.
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
    """Subtracting from each row of the unembedding W_U its mean over the vocabulary changes no
    probability: all logits of a position change by the same number, which softmax ignores.

    Libraries do this when they load a model. So logits that differ after loading are no error if
    the probabilities agree. The direct contribution to one logit changes too; that to a difference
    of two logits does not.
    """
    W_U, final = row.W_U, MatrixSymbol("ln_final", n, d)
    return Statement(
        RowSoftmax(matmul(final, matmul(W_U, of_vocabulary))),
        RowSoftmax(matmul(final, W_U)),
        bare=False,
        places={"logits": matmul(final, W_U)},
    )


@theorem(
    title="Centring the unembedding changes logits",
    chapter=4,
    convention="row",
    source=TRANSFORMER_LENS,
    covers=("B7",),
)
def centred_unembedding_changes_logits() -> NonIdentity:
    """Centring the unembedding over the vocabulary changes the logits themselves. Softmax,
    log-softmax and differences of two logits stay the same
    (`centred_unembedding_keeps_probabilities`); a single logit, its sign, or a mean of logits does
    not.

    Do not compare such numbers between a processed and an unprocessed model.
    """
    W_U, final = row.W_U, MatrixSymbol("ln_final", n, d)
    return NonIdentity(
        matmul(final, matmul(W_U, of_vocabulary)),
        matmul(final, W_U),
        on_models=True,
        places={"logits": matmul(final, W_U)},
        bare=False,
    )


@theorem(
    title="Under a soft cap the unembedding cannot be centred",
    chapter=4,
    convention="row",
    source="Gemma Team 2024, “Gemma 2”, §2 (logit soft-capping)",
    covers=("B7",),
)
def soft_cap_needs_whole_unembedding() -> NonIdentity:
    """In a model with a soft cap on its logits, c tanh(x/c), the unembedding cannot be centred. The
    cap reduces large logits more than small ones, so adding the same number to all of them changes
    their differences and thus the probabilities. The formula has c = 1.

    Gemma 2 has such a cap.
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
    """Tied weights mean that one matrix is used twice: the unembedding is the transposed embedding,
    W_U = W_Eᵀ.

    As soon as one of the two uses is changed, by folding a gain into W_U or by centring, they are
    no longer the same matrix. A model has to be untied before such a step.
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
