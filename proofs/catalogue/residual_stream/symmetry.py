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
    """In a model without norms, the coordinates of the residual stream have no meaning of their
    own. Replace the stream X by XM, for any invertible M (d × d), let all weights that read begin
    with M⁻¹ and all that write end with M: the layer computes the same, times M. Scores, patterns
    and values are unchanged. The equation shows a whole attention layer, with softmax and causal
    mask, for any number of heads.

    So “dimension 17 of the residual stream” is not a property of what the model computes. Patterns
    and MLP neurons are not free in this way: their coordinates are positions and neurons.

    Training can still favour some axes, since optimisers and norms treat coordinates differently.
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
    """The residual stream may be given another basis around an MLP and the unembedding too: W_in
    and W_U begin with M⁻¹, W_out ends with M, and the logits are unchanged, for every activation
    function g.

    The neurons keep their basis. The activation is applied to each neuron by itself, so neurons
    cannot be mixed without changing the function. This is why single neurons may have a meaning
    where single coordinates of the stream need not.
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
    """A change of basis of the residual stream can be absorbed by the weights of any number of
    attention layers. With the patterns A[l, h] kept, L layers with weights M W_O and W_V M⁻¹ are
    the original L layers with M⁻¹ before them and M after them. The embedding M W_E and the
    unembedding W_U M⁻¹ then cancel both, and the logits are the same.

    So no function of the weights that changes under such an M, such as a single entry of W_O, can
    matter to what the model computes. In the formula I_n ⊗ M applies M at each of the n positions.
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
    """In a model with RMSNorm the residual stream may be rotated, if the readers are changed to
    match. A rotation Q keeps the length of each row, so RMSNorm(XQ) = RMSNorm(X) Q. Between the
    norm and a reading matrix W stands the gain g, and diag(g) does not commute with Q. The reader
    must therefore become diag(g)⁻¹ Qᵀ diag(g) W; in the formula r holds the reciprocals of the
    gains.

    It is simpler to fold the gain into W first. Then the new reader is QᵀW.

    This answers “may I rotate the residual stream?”: yes, by an orthogonal matrix, with all readers
    and writers changed to match.
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
    """Rotating the residual stream of a model with RMSNorm and changing its readers by Qᵀ alone
    changes what they read, unless all gains are equal. The gain diag(g) stands between the norm and
    the reader W, and it does not commute with the rotation Q.

    `rms_norm_rotation` has the correct replacement. Folding the gains into the weights before a
    rotation avoids the problem.
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
    """Permuting the features of the residual stream and flipping the signs of some of them is
    compatible with a norm and its gain. With Q = diag(s) P, where s has entries ±1 and P is a
    permutation, the reader W becomes QᵀW, and the gains are only listed in another order, Pᵀg.

    The hypotheses say in equations that P is a permutation: each row sums to one, and the outer
    product of a column P e_k with itself is that column on a diagonal.

    For other rotations the gain has to be folded first (`rotation_needs_the_gain`).
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
    """If the gains of a norm are all different, the only rotations that leave the gain a diagonal
    matrix are permutations of the features with changes of sign. Suppose diag(g) Q = Q diag(f) for
    some other gain f. Then for each column q of Q the matrix qqᵀ commutes with diag(g), which says
    (g_i − g_j) q_i q_j = 0 entry by entry. So each column of Q has at most one nonzero entry.

    It is the converse of `signed_permutation_passes_gain`, and shows how little freedom a model has
    while its gains are not folded into the weights.
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
    """LayerNorm, without gain, commutes with every rotation that keeps the direction (1, …, 1) up
    to sign, and ignores anything that is added along this direction. In the formula Q is such a
    rotation (Q 1_{d×d} Qᵀ = 1_{d×d}), and v (n × 1) holds an arbitrary number for each position.

    So of the d dimensions of the stream one has no effect at all, and the other d − 1 may be
    rotated among themselves. Once the gains are folded into the weights, that is the freedom of the
    residual stream; with eps = 0 its scale is free as well.
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
    """LayerNorm does not commute with an arbitrary rotation Q of the features. It subtracts the
    mean over features, so it treats the direction (1, …, 1) differently from all others, and a
    rotation that moves this direction changes the result.

    The rotations that are allowed are in `layer_norm_rotation`. RMSNorm, which subtracts no mean,
    allows all of them.
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
    """RMSNorm divides each row by its length, so it commutes with rotations but not with a general
    invertible matrix M, which changes lengths unequally.

    So the freedom to choose a basis of the residual stream is smaller with norms: all invertible
    matrices in a model without norms (`stream_has_no_basis`), rotations only with RMSNorm.
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
    """A norm with eps = 0 does not depend on the scale of what it reads: RMSNorm(cX) = RMSNorm(X)
    for every number c > 0. So all components may write c times as much, and every reader behind a
    norm receives the same.

    Real models have a small eps > 0, so they depend on the scale a little. The absolute size of the
    residual stream therefore says almost nothing; sizes relative to the stream at the same place
    do.
    """
    c = Symbol("c", positive=True)
    W_in = MatrixSymbol("W_in", d, d_mlp)
    return Statement(
        Activation("g", matmul(RMSNorm(matmul(c, X)), W_in)),
        Activation("g", matmul(RMSNorm(X), W_in)),
        on_models=False,
    )
