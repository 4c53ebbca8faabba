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
    """When the input at one position changes, the output of a head changes for two reasons: the
    vectors that it moves change, and its attention pattern changes. Let row j of X move by u (1 ×
    d). The first term is A e_j u, the moved vector with the old weights. The second is the change
    of the weights a_ik (ds_ik − Σ_l a_il ds_il) times X, where ds = e_j u W Xᵀ + X W uᵀ e_jᵀ is the
    change of the scores and W = W_QK/√d_head.

    With the pattern frozen only the first term is left, and linear attributions see only that.

    The second term has no bound that holds for all inputs, since ds grows with X: a head is not
    Lipschitz. The result is before W_OV, which is linear. (`head_jacobian_of_earlier_token` is
    compared on models.)
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
    """How does a small change u of an earlier token's vector act on a head's output at a later
    query x? Along two ways: through the value, a_j u W_OV, and through the key, a_j (x W_QK
    uᵀ/√d_head)(x_j − z) W_OV. Here a_j is the attention weight on that token and z = Σ_k a_k x_k
    the mean vector that the head reads; the tokens are the rows of Y.

    Both ways have the factor a_j, so a token that is not attended to has no first-order effect. A
    token that equals the mean z acts through its value only.
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
    """The gradient with respect to an attention score is the weight times how much better that
    value is than the mean: ∂f/∂s_ij = a_ij (v_j − z_i)·g_i. Here f is a function of what the head
    reads, z = A V, and g_i = ∂f/∂z_i is its gradient (g is n × d_head). S (n × m) is the table of
    scores, A its softmax.

    So training raises a score if its value helps f more than what the query reads now, in
    proportion to the present weight. A key with weight near zero gets almost no gradient, however
    useful it would be. The gradients of a row sum to zero.
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
        bind=({"S": Source("scores"), "V": Source("v"), "g": Source("z", example=True)},),
        places={"scores": S, "v": V},
        bare=False,
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
    """Among all weights p of a query, softmax(s) maximises the expected score plus the entropy: ⟨p,
    s⟩ + H(p) = log Σ exp s − KL(p ‖ softmax(s)), with H(p) = −Σ p log p. The last term is never
    negative and is zero only for p = softmax(s) (`kl_is_nonnegative`). The maximum is the logsumexp
    of the scores.

    This is why logsumexp is called a free energy and a factor on the scores an inverse temperature:
    it sets how much the score counts against the entropy.

    In the formula p is written as softmax(t). Every row of positive weights has this form, with t
    its logarithm.
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
    """Multiplying all scores of a query by a larger β makes its attention sharper: the entropy of
    the weights changes at the rate −β Var(s), where Var(s) = Σ a s² − (Σ a s)² is the variance of
    the scores s (1 × m) under the weights a. A variance is not negative, so entropy never rises
    with β. For equal scores it stays the same.

    In the formula b is β, and the entropy is written as log Σ exp(βs) − Σ a βs
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
    """The Kullback–Leibler divergence between two distributions, KL(a ‖ b) = Σ a (log a − log b),
    is never negative, and zero only if they agree. Here both are softmaxes, a of scores s and b of
    scores t. The proof writes it as Σ a (exp(x) − x − 1) with x = log b − log a, and exp(x) is
    never below its tangent 1 + x. For (1/2, 1/2) and (1/4, 3/4) it is 0.144 nats.

    So the cross-entropy H(a) + KL(a ‖ b) is smallest at b = a. A model trained to predict the next
    token is pushed to the true distribution, and its loss cannot fall below the entropy of that.
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
    """One step of attention to stored patterns never raises a certain energy. Store patterns as the
    rows of Y and let a state ξ move to ξ′ = softmax(β ξ Yᵀ) Y, which is attention with query ξ and
    with Y as keys and values. The energy E(ξ) = ½ ‖ξ‖² − (1/β) log Σ exp(β ξ Yᵀ) falls by ½ ‖ξ′ −
    ξ‖² plus κ/β, where κ is how far the logsumexp of the new scores lies above its tangent at the
    old ones. κ is a KL divergence, so it is not negative (`kl_is_nonnegative`).

    This is the link between attention and Hopfield networks, which retrieve stored memories by
    lowering an energy.

    A transformer makes one such step in a layer, with learned maps in between. No energy is known
    that a whole model lowers.
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
