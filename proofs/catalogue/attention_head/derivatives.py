"""Chapter 3: how a head moves when its input or its scores move: Jacobians, entropy and energy."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import (
    HadamardPower,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Trace,
    Transpose,
    sqrt,
)

from otimes.algebra.facts import Fact
from otimes.algebra.language.defined import LogSumExp
from otimes.algebra.language.derivative import differential, gradient, jacobian
from otimes.algebra.language.linear import OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, RowSoftmax
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.patterns import entrywise
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.symbols import X, d, d_head, m, n, row
from otimes.proofs.claims import Bound, Entries, Square, Statement
from otimes.proofs.theorem import theorem

KIM = "Kim, Papamakarios and Mnih 2021, “The Lipschitz Constant of Self-Attention”, §3"
HOPFIELD = "Ramsauer et al. 2020, “Hopfield Networks is All You Need”, §2 and appendix A"

i, j = sympy.symbols("i j", integer=True)
W_QK = matmul(row.W_Q, Transpose(row.W_K))
W_OV = matmul(row.W_V, row.W_O)
change = MatrixSymbol("u", 1, d)


@theorem(
    title="The Jacobian of an attention head: moved values plus a moved pattern",
    chapter=3,
    convention="row",
    source=KIM,
    covers=("B21",),
)
def head_jacobian() -> Statement:
    """Change the input of position j by a small row u. What a head reads, A X, changes for two
    reasons, and W_OV takes both to the stream. The vectors that are moved change: position i gets
    a_ij u more. And the pattern changes, as u takes part in scores: as a query, in row j, and as a
    key, in column j. With the change of the scores, ds = e_j u W Xᵀ + X W uᵀ e_jᵀ for W =
    W_QK/√d_head, each weight moves by a_ik (ds_ik − Σ_l a_il ds_il).

    Here A is the causal pattern itself, softmax of its scores, and the derivative is taken through
    it. With the pattern frozen only the first term is left, and that is what linear attributions of
    a head see. The second has no bound that holds for all inputs, since ds grows with X: a head is
    not Lipschitz. (`head_jacobian_of_earlier_token` is compared on models.)
    """
    unit, W = OneHot(j, n), MatrixSymbol("W", d, d)
    moved = matmul(unit, change)
    pattern = RowSoftmax(matmul(X, W, Transpose(X)), CausalMask(n))
    ds = matadd(matmul(moved, W, Transpose(X)), matmul(X, W, Transpose(moved)))
    mean = matmul(entrywise(pattern, ds), OneMatrix(n, n))
    da = less(entrywise(pattern, ds), entrywise(pattern, mean))
    return Statement(
        differential(matmul(pattern, X), X, moved),
        matadd(matmul(pattern, moved), matmul(da, X)),
        on_models=False,
    )


@theorem(
    title="An earlier token acts on a head's output along its value and through its key",
    chapter=3,
    convention="row",
    source=KIM,
    covers=("B21",),
)
def head_jacobian_of_earlier_token() -> Statement:
    """The same derivative for one query x that is not itself changed. Moving key j by u gives a_j u
    W_OV + a_j (x W_QK uᵀ/√d_head) (x_j − z) W_OV, where z = Σ_k a_k x_k is what the head reads on
    average. Both terms carry the weight a_j: what is not attended to has no first-order effect,
    neither by its value nor by its key. And a key that is already equal to the average z moves the
    output only by its value.
    """
    x, unit = MatrixSymbol("x", 1, d), OneHot(j, m)
    keys = MatrixSymbol("Y", m, d)
    weights = RowSoftmax(matmul(1 / sqrt(d_head), x, W_QK, Transpose(keys)))
    read = matmul(weights, keys)
    weight = matmul(weights, unit)
    score = matmul(1 / sqrt(d_head), x, W_QK, Transpose(change))
    gap = less(matmul(Transpose(unit), keys), read)
    return Statement(
        differential(matmul(weights, keys, W_OV), keys, matmul(unit, change)),
        matadd(matmul(weight, change, W_OV), matmul(weight, score, gap, W_OV)),
        bind=(
            {
                "x": Source("qk_in", rows=1),
                "Y": Source("qk_in", rows=6),
                "u": Source("W_E", rows=1),
            },
        ),
    )


@theorem(
    title="The gradient in a score is the weight times how far that value is from the mean",
    chapter=3,
    convention="row",
    source="the chain rule through softmax; Martins and Astudillo 2016, “From Softmax to "
    "Sparsemax”",
    covers=("B22",),
)
def score_gradient() -> Statement:
    """Let a number f depend on what a head reads, z = A V, with gradients g_i = ∂f/∂z_i. Then
    ∂f/∂s_ij = a_ij (v_j − z_i)·g_i. A score is pushed up where its value serves f better than the
    mean of the values that the query reads now, and in proportion to the weight it has already. So
    a key that is not attended to gets no gradient, however useful it would be; and the gradients of
    a row sum to zero.

    g is held constant, as a gradient at a point is: f is its linear part, tr(gᵀ z).
    """
    S, V = MatrixSymbol("S", n, m), MatrixSymbol("V", m, d_head)
    g = MatrixSymbol("g", n, d_head)
    weights = RowSoftmax(S)
    z = matmul(weights, V)
    along = matmul(g, Transpose(V))
    mean = matmul(entrywise(g, z), OneMatrix(d_head, m))
    return Statement(
        gradient(Trace(matmul(Transpose(g), z)), S),
        entrywise(weights, less(along, mean)),
        bind=({"S": Source("q", cols=6), "V": Source("v", rows=6), "g": Source("q")},),
    )


s = MatrixSymbol("s", 1, m)
ONE = OneMatrix(m, 1)


def _log(e: Any) -> Any:
    return Activation("log", e)


def _kl(one: Any, other: Any) -> Any:
    """Return KL(one ‖ other) of two rows of weights, 1 × 1."""
    return matmul(entrywise(one, less(_log(one), _log(other))), ONE)


@theorem(
    title="Softmax maximises expected score plus entropy: the gap is a KL divergence",
    chapter=3,
    source="Gibbs' variational principle; Boyd and Vandenberghe 2004, “Convex Optimization”, "
    "§3.3.1",
    covers=("B37",),
)
def softmax_maximises_score_plus_entropy() -> Statement:
    """For weights p of one query, ⟨p, s⟩ is the mean score and H(p) = −Σ p log p the entropy. Their
    sum is log Σ exp s − KL(p ‖ softmax s), whatever p is. A KL divergence is never negative and
    zero only at p = softmax(s) (`kl_is_nonnegative`), so softmax is the one maximiser, and the
    maximum is the logsumexp of the scores.

    It is the reason to call logsumexp a free energy, and 1/√d_head an inverse temperature: with
    scores βs, the mean score is weighed against entropy by β. (Here p is the softmax of other
    scores t, as every row of positive weights is, of its logarithms.)
    """
    p = RowSoftmax(MatrixSymbol("t", 1, m))
    return Statement(
        less(matmul(p, Transpose(s)), matmul(entrywise(p, _log(p)), ONE)),
        less(LogSumExp(s), _kl(p, RowSoftmax(s))),
        on_models=False,
    )


@theorem(
    title="Entropy falls with sharper scores: dH/dβ = −β Var(s)",
    chapter=3,
    source="statistical mechanics: the heat capacity is a variance; Martins and Astudillo 2016, "
    "“From Softmax to Sparsemax”",
    covers=("B37",),
)
def entropy_falls_with_sharpness() -> Statement:
    """Multiply all scores by β. The entropy of the weights changes at the rate −β times the
    variance of the scores under the weights, Σ a s² − (Σ a s)². As a variance is not negative,
    scaling scores up never makes a head more diffuse; and for a row of equal scores nothing
    changes at all.

    H = −Σ a log a is written as log Σ exp βs − Σ a βs here, which it is at its maximum
    (`softmax_maximises_score_plus_entropy`).
    """
    b = MatrixSymbol("b", 1, 1)
    scores = matmul(b, s)
    weights = RowSoftmax(scores)
    entropy = less(LogSumExp(scores), matmul(weights, Transpose(scores)))
    mean = matmul(weights, Transpose(s))
    variance = less(matmul(weights, Transpose(HadamardPower(s, 2))), matmul(mean, mean))
    return Statement(
        jacobian(entropy, b),
        matmul(-1, b, variance),
        on_models=False,
    )


def surplus(gap: Any) -> Any:
    """Return exp(t) − t − 1 of each entry, which is never negative."""
    return matadd(Activation("exp", gap), matmul(-1, gap), matmul(-1, OneMatrix(*gap.shape)))


@theorem(
    title="The KL divergence is non-negative",
    chapter=3,
    source="Gibbs' inequality; Cover and Thomas 2006, “Elements of Information Theory”, §2.6",
    covers=("B37", "S2-01"),
)
def kl_is_nonnegative() -> Bound:
    """For two rows of weights a and b, both softmaxes, KL(a ‖ b) = Σ a (log a − log b). With
    t = log b − log a it is Σ a (exp(t) − t − 1), as both rows sum to one; and exp lies above its
    tangent 1 + t. It is zero only where t is, where the two rows agree.

    So cross-entropy CE(a, b) = H(a) + KL(a ‖ b) is least at b = a: a model that is trained to
    predict the next token is pushed to the true distribution, and its loss cannot fall below the
    entropy of that.
    """
    a, b = RowSoftmax(s), RowSoftmax(MatrixSymbol("t", 1, m))
    gap = less(_log(b), _log(a))
    return Bound(
        sympy.Integer(0),
        Trace(_kl(a, b)),
        [Entries(matmul(a, Transpose(surplus(gap))))],
        tight={"s": [[1]], "t": [[1]]},
        on_models=False,
    )


@theorem(
    title="A Hopfield update never raises its energy",
    chapter=3,
    convention="row",
    source=HOPFIELD,
    covers=("B38",),
)
def hopfield_update_lowers_energy() -> Bound:
    """Store patterns as the rows of Y, and let the state ξ move to ξ′ = softmax(β ξ Yᵀ) Y: that is
    attention with the query ξ and the stored patterns as keys and values. The energy E(ξ) = −log Σ
    exp(β ξ Yᵀ)/β + ½ ‖ξ‖² does not rise. It falls by ½ ‖ξ′ − ξ‖², plus κ/β, where κ is how far the
    logsumexp of the new scores lies above its tangent at the old ones: the KL divergence of the old
    weights from the new, which is not negative (`kl_is_nonnegative`). So the states settle, and
    where ξ no longer moves it is a weighted mean of stored patterns.

    A transformer takes one such step a layer, with learned maps for queries, keys and values in
    between, and no energy is known that a whole model lowers.
    """
    state, stored = MatrixSymbol("xi", 1, d), MatrixSymbol("Y", m, d)
    inverse = sympy.Symbol("beta", positive=True)
    old = matmul(inverse, state, Transpose(stored))
    after = matmul(RowSoftmax(old), stored)
    new = matmul(inverse, after, Transpose(stored))
    tangent = matadd(LogSumExp(old), matmul(RowSoftmax(old), Transpose(less(new, old))))
    kappa = less(LogSumExp(new), tangent)

    def energy(point: Any, scores: Any) -> Any:
        square = Rational(1, 2) * Trace(matmul(point, Transpose(point)))
        return square - Trace(LogSumExp(scores)) / inverse

    return Bound(
        energy(after, new),
        energy(state, old),
        [
            Square(less(after, state), times=Rational(1, 2)),
            Entries(kappa, times=1 / inverse),
        ],
        given=[Fact("nonnegative", kappa)],
        tight={"xi": [[0]], "Y": [[0]], "beta": 1},
        on_models=False,
    )
