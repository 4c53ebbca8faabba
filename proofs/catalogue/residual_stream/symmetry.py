"""Chapter 2: which changes of basis of the stream a model cannot notice, under each norm."""

from __future__ import annotations

from typing import Any

from sympy import (
    HadamardProduct,
    Identity,
    Inverse,
    MatrixSymbol,
    OneMatrix,
    Symbol,
    Transpose,
    sqrt,
    symbols,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.catalogue.symbols import H, L, X, d, d_head, h, l, layers, m, n, row, size
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

PRIVILEGED = "Elhage, Lasenby and Olah 2023, “Privileged Bases in the Transformer Residual Stream”"
SLICE = "Ashkboos et al. 2024, “SliceGPT”, §3"
d_mlp, k = size("d_mlp"), symbols("k", integer=True)
M, Q = MatrixSymbol("M", d, d), MatrixSymbol("Q", d, d)
W, gain = MatrixSymbol("W", d, m), MatrixSymbol("g", d, 1)
eps = Symbol("eps", positive=True)
ROTATION = (matmul(Q, Transpose(Q)), Identity(d))


@theorem(
    title="Without norms the residual stream has no privileged basis",
    chapter=2,
    convention="row",
    source=f"{FRAMEWORK}, “Virtual weights and the residual stream as a communication channel”",
    covers=("S2-10", "S4-10", "B8"),
)
def stream_has_no_basis() -> Statement:
    """Give an attention layer the stream XM instead of X, let everything that reads begin with M⁻¹
    and everything that writes end with M, and it returns what it did before, times M. Scores,
    patterns and values are the very same numbers. This is the whole layer, softmax and mask
    included, for every number of heads and every invertible M.

    So a direction of the stream means nothing by itself, and “neuron 17 of the residual stream” is
    no object of the model: rotate the stream, and nothing can be measured that changes. Queries,
    keys, patterns and MLP neurons do have a basis. Optimisers and norms may still prefer axes.
    """
    W_Q, W_K, W_V = (Family(f"W_{name}", (H,), d, d_head)[h] for name in "QKV")
    W_O = Family("W_O", (H,), d_head, d)[h]

    def layer(stream: Any, reads: Any, writes: Any) -> Any:
        queries, keys = matmul(stream, reads(W_Q)), matmul(stream, reads(W_K))
        scores = matmul(1 / sqrt(d_head), queries, Transpose(keys))
        pattern = RowSoftmax(scores, CausalMask(n))
        return matadd(stream, HeadSum(matmul(pattern, stream, reads(W_V), writes(W_O)), (h, H)))

    turned = layer(matmul(X, M), lambda W: matmul(Inverse(M), W), lambda W: matmul(W, M))
    plain = layer(X, lambda W: W, lambda W: W)
    return Statement(turned, matmul(plain, M), on_models=False)


@theorem(
    title="An MLP has no privileged basis in the stream, but one in its neurons",
    chapter=2,
    convention="row",
    source=f"{FRAMEWORK}, “Activation properties”; {PRIVILEGED}",
    covers=("S2-10", "S4-10", "B8"),
)
def mlp_has_no_stream_basis() -> Statement:
    """The same change of basis passes an MLP and the unembedding after it: W_in and W_U begin with
    M⁻¹, W_out ends with M, and the logits are what they were, whatever the activation.

    The neurons themselves stay where they are. The activation is applied to each of them, so their
    basis is not free: this is why neurons, unlike directions of the stream, may mean something.
    """
    W_in, W_out = MatrixSymbol("W_in", d, d_mlp), MatrixSymbol("W_out", d_mlp, d)
    back, stream = Inverse(M), matmul(X, M)
    hidden = Activation("g", matmul(stream, matmul(back, W_in)))
    turned = matadd(stream, matmul(hidden, matmul(W_out, M)))
    plain = matadd(X, matmul(Activation("g", matmul(X, W_in)), W_out))
    return Statement(matmul(turned, matmul(back, row.W_U)), matmul(plain, row.W_U), on_models=False)


@theorem(
    title="A change of basis of the stream is absorbed by the weights at every depth",
    chapter=2,
    convention="column",
    source=f"{FRAMEWORK}, “Virtual weights and the residual stream as a communication channel”",
    covers=("S2-10", "B8"),
)
def change_of_basis_every_depth() -> Statement:
    """With the patterns as they are, L layers in the new basis are the same L layers, with M after
    them and M⁻¹ before. Embedding (M W_E) and unembedding (W_U M⁻¹) take both away, so the logits
    are the same for every depth and every number of heads.
    """
    W_O, W_V = layers.column.W_O[l, h], layers.column.W_V[l, h]
    past, back = Identity(n * d), Inverse(M)
    new = matadd(past, HeadSum(kron(layers.A[l, h], matmul(M, W_O, W_V, back)), (h, H)))
    old = matadd(past, HeadSum(kron(layers.A[l, h], matmul(W_O, W_V)), (h, H)))
    return Statement(
        LayerProduct(new, (l, L)),
        matmul(kron(Identity(n), M), LayerProduct(old, (l, L)), kron(Identity(n), back)),
        on_models=False,
    )


@theorem(
    title="Under RMSNorm the stream may be rotated, if the gain is folded into the readers",
    chapter=2,
    convention="row",
    source=SLICE,
    covers=("S2-10", "B8"),
)
def rms_norm_rotation() -> Statement:
    """A rotation keeps the length of each row, so RMSNorm(XQ) = RMSNorm(X) Q. Between the norm and
    a reader W stands the gain g, and diag(g) does not commute with Q: the reader has to become
    diag(g)⁻¹ Qᵀ diag(g) W, here with r the reciprocals of the gains.

    It is simpler to fold the gain into the readers first; then W becomes QᵀW. May one rotate the
    residual stream? Yes, by an orthogonal matrix and with all readers and writers changed to match.
    """
    r = MatrixSymbol("r", d, 1)
    reader = matmul(DiagMatrix(r), Transpose(Q), DiagMatrix(gain), W)
    return Statement(
        matmul(RMSNorm(matmul(X, Q), eps), DiagMatrix(gain), reader),
        matmul(RMSNorm(X, eps), DiagMatrix(gain), W),
        given=(ROTATION, (HadamardProduct(gain, r, evaluate=False), OneMatrix(d, 1))),
        on_models=False,
    )


@theorem(
    title="With a gain that is not folded, a rotation of the stream changes the model",
    chapter=2,
    convention="row",
    source=SLICE,
    covers=("B8",),
)
def rotation_needs_the_gain() -> NonIdentity:
    """Rotating the stream and changing the reader by Qᵀ alone is not enough: with the gain left
    where it is, the reader finds something else, unless all gains are equal.
    """
    return NonIdentity(
        matmul(RMSNorm(matmul(X, Q)), DiagMatrix(gain), Transpose(Q), W),
        matmul(RMSNorm(X), DiagMatrix(gain), W),
        given=(ROTATION,),
    )


@theorem(
    title="Signed permutations of the features commute with a norm, if its gain is permuted too",
    chapter=2,
    convention="row",
    source=SLICE,
    covers=("B8",),
)
def signed_permutation_passes_gain() -> Statement:
    """Let Q permute the features and flip some signs: Q = diag(s) P, s of ±1, P a permutation. Then
    the reader changes by Qᵀ alone, and the gain is only written in another order, Pᵀg.

    That P has a single one in each row and each column is said by P1 = 1 and by: the outer product
    of a column of P with itself is that column on a diagonal.
    """
    P, s = MatrixSymbol("P", d, d), MatrixSymbol("s", d, 1)
    Q, p_k = matmul(DiagMatrix(s), P), matmul(P, OneHot(k, d))
    return Statement(
        matmul(RMSNorm(matmul(X, Q), eps), DiagMatrix(matmul(Transpose(P), gain)), Transpose(Q), W),
        matmul(RMSNorm(X, eps), DiagMatrix(gain), W),
        given=(
            (matmul(p_k, Transpose(p_k)), DiagMatrix(p_k)),
            (matmul(P, OneMatrix(d, 1)), OneMatrix(d, 1)),
            (HadamardProduct(s, s, evaluate=False), OneMatrix(d, 1)),
        ),
        on_models=False,
    )


@theorem(
    title="Only signed permutations commute with a gain whose entries differ",
    chapter=2,
    source=SLICE,
    covers=("B8",),
)
def only_signed_permutations_pass_gain() -> Statement:
    """Suppose Q passes a gain, diag(g) Q = Q diag(f) for some other gain f. Then for each column q
    of Q, qqᵀ commutes with diag(g): entry by entry, (g_i − g_j) q_i q_j = 0. If no two gains are
    equal, each column has one entry at most that is not zero, and an orthogonal Q of this kind is a
    signed permutation.
    """
    f, q = MatrixSymbol("f", d, 1), matmul(Q, OneHot(k, d))
    return Statement(
        matmul(DiagMatrix(gain), q, Transpose(q)),
        matmul(q, Transpose(q), DiagMatrix(gain)),
        given=((matmul(DiagMatrix(gain), Q), matmul(Q, DiagMatrix(f))),),
        on_models=False,
    )


@theorem(
    title="LayerNorm allows rotations that keep the mean direction, and any shift along it",
    chapter=2,
    source=f"{SLICE}; {PRIVILEGED}",
    covers=("S2-10", "B8"),
)
def layer_norm_rotation() -> Statement:
    """LayerNorm without gain takes the mean off and scales. It passes an orthogonal Q that takes
    the vector 1 to itself or to its opposite (Q 11ᵀ Qᵀ = 11ᵀ), and it does not see what is added
    along 1 at all: LayerNorm(XQ + v1ᵀ) = LayerNorm(X) Q, whatever number v_i is at position i.

    So of d dimensions one is free to do anything and the others may be rotated among themselves. In
    a folded model, that is the whole freedom.
    """
    v, ones = MatrixSymbol("v", n, 1), OneMatrix(d, d)
    return Statement(
        LayerNorm(matadd(matmul(X, Q), matmul(v, OneMatrix(1, d))), eps),
        matmul(LayerNorm(X, eps), Q),
        given=(ROTATION, (matmul(Q, ones, Transpose(Q)), ones)),
        on_models=False,
    )


@theorem(
    title="LayerNorm does not commute with a generic rotation",
    chapter=2,
    source=f"{SLICE}; {PRIVILEGED}",
    covers=("S2-10", "B8"),
)
def generic_rotation_fails_layer_norm() -> NonIdentity:
    """LayerNorm takes the mean of the features, so it knows one direction of the stream, 1, and a
    rotation that moves this direction changes what it computes.
    """
    return NonIdentity(
        LayerNorm(matmul(X, Q)),
        matmul(LayerNorm(X), Q),
        given=(ROTATION,),
    )


@theorem(
    title="RMSNorm does not commute with a change of basis that is no rotation",
    chapter=2,
    source=SLICE,
    covers=("S2-10", "B8"),
)
def general_basis_fails_rms_norm() -> NonIdentity:
    """RMSNorm measures lengths, and a matrix that is invertible but not orthogonal changes them.
    The freedom of a model without norms, all invertible matrices, shrinks to the orthogonal ones.
    """
    return NonIdentity(RMSNorm(matmul(X, M)), matmul(RMSNorm(X), M))


@theorem(
    title="Without ε a norm does not depend on the scale of the stream",
    chapter=2,
    convention="row",
    source=SLICE,
    covers=("B8",),
)
def stream_scale_is_free() -> Statement:
    """If eps is zero, the stream at every position may be multiplied by a positive number c and
    every reader behind a norm finds the same. So writers may all be scaled by c: with eps = 0 the
    scale of the whole stream is one more thing that means nothing.
    """
    c = Symbol("c", positive=True)
    W_in = MatrixSymbol("W_in", d, d_mlp)
    return Statement(
        Activation("g", matmul(RMSNorm(matmul(c, X)), W_in)),
        Activation("g", matmul(RMSNorm(X), W_in)),
        on_models=False,
    )
