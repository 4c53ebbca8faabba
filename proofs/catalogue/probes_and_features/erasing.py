"""Chapter 10: a direction removed, a concept erased, a vector added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

import numpy as np
import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, Transpose, ZeroMatrix

from otimes.algebra.language.linear import matadd, matmul
from otimes.numeric.binding import Source
from otimes.numeric.model import Model
from otimes.numeric.probes.erasure import leace
from otimes.numeric.probes.steering import steer
from otimes.numeric.rounding import gamma
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.probes_and_features.reading import N, k, squared
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import V, d, n
from otimes.proofs.claims import Bound, Method, NonIdentity, Square, Statement, Trial
from otimes.proofs.theorem import theorem

ERASING = f"{PRIMER}, “Probe interventions”"
BELROSE = "Belrose et al. 2023, “LEACE: Perfect linear concept erasure in closed form”"
RAVFOGEL = "Ravfogel et al. 2020, “Null It Out”"
UNIT = 2.0**-53

X, Z = MatrixSymbol("X", N, d), MatrixSymbol("Z", N, k)  # both with their means subtracted
u = MatrixSymbol("u", 1, d)
weights = MatrixSymbol("B", d, k)
unit = (matmul(u, Transpose(u)), Identity(1))
left = minus(Identity(d), matmul(Transpose(u), u))
crossed = matmul(Transpose(X), Z)


@theorem(
    title="A projection removes everything along its direction",
    chapter=10,
    convention="row",
    source=f"{ERASING}; {RAVFOGEL}",
    covers=("S3-069",),
)
def projection_erases_direction() -> Statement:
    """Projecting activations X on the complement of a unit row u, X(I − uᵀu), makes their dot
    product with u zero. So a probe with the weights uᵀ reads the same number from every example.

    Another probe may still read the concept (`projection_is_not_erasure`).
    """
    return Statement(
        matmul(X, left, Transpose(u)), ZeroMatrix(N, 1), given=(unit,), on_models=False
    )


@theorem(
    title="Erasing a direction twice is erasing it once",
    chapter=10,
    convention="row",
    source=f"{ERASING}; {RAVFOGEL}",
    covers=("S3-069",),
)
def projection_erases_once() -> Statement:
    """Removing a direction twice is the same as removing it once: (I − uᵀu)² = I − uᵀu for u of
    length one.

    An eraser whose second application changes its output is not a projection. If u is not of length
    one, for instance, too much or too little is subtracted.
    """
    return Statement(matmul(left, left), left, given=(unit,), on_models=False)


@theorem(
    title="A projection on a probe's direction does not erase the concept",
    chapter=10,
    convention="row",
    source=f"{ERASING}; {RAVFOGEL}; {BELROSE}",
    covers=("S3-069", "S3-070"),
)
def projection_is_not_erasure() -> NonIdentity:
    """Removing the direction of one probe does not remove the concept. After the projection I −
    uᵀu, the covariance of the activations with the concept Z is (I − uᵀu)XᵀZ, which is zero only if
    XᵀZ lies along u. Otherwise another direction still predicts the concept.

    LEACE chooses the projection from XᵀZ itself and so avoids this (`leace_erases`).
    """
    return NonIdentity(matmul(left, crossed), ZeroMatrix(d, k), given=(unit,))


@theorem(
    title="Without covariance no linear predictor is better than a constant",
    chapter=10,
    convention="row",
    source=f"{ERASING}; {BELROSE}",
    covers=("S3-070",),
)
def no_covariance_no_linear_information() -> Bound:
    """If the activations X and a concept Z (both with their means subtracted) have covariance zero,
    XᵀZ = 0, then no linear predictor of Z from X is better than a constant: ‖XB − Z‖² = ‖Z‖² +
    ‖XB‖² for all weights B.

    So erasing linear information means making this one matrix zero, and it works against every
    linear regression at once. A nonlinear predictor may still succeed.
    """
    return Bound(
        squared(Z),
        squared(minus(matmul(X, weights), Z)),
        because=(Square(matmul(X, weights)),),
        given=((crossed, ZeroMatrix(d, k)),),
        tight={"X": [[1], [-1]], "Z": [[1], [1]], "B": [[0]]},
        on_models=False,
    )


@theorem(
    title="With nonzero covariance some linear predictor is better than a constant",
    chapter=10,
    convention="row",
    source=f"{ERASING}; {BELROSE}",
    covers=("S3-070",),
)
def covariance_is_linear_information() -> Statement:
    """If activations X and a concept Z have nonzero covariance XᵀZ, some linear predictor is better
    than a constant. The weights t XᵀZ change the squared error by t²‖X XᵀZ‖² − 2t‖XᵀZ‖², which is
    negative for small positive t.

    With `no_covariance_no_linear_information`: linear information is absent exactly if the
    covariance is zero.
    """
    t = sympy.Symbol("t", real=True)
    tried = minus(matmul(t, X, crossed), Z)
    return Statement(
        squared(tried) - squared(Z),
        t**2 * squared(matmul(X, crossed)) - 2 * t * squared(crossed),
        on_models=False,
    )


whiten, colour, onto = (MatrixSymbol(name, d, d) for name in ("W", "V", "P"))
symmetric = tuple((Transpose(each), each) for each in (whiten, colour, onto))
moved = matmul(whiten, onto, colour)


@theorem(
    title="LEACE makes the cross-covariance zero",
    chapter=10,
    convention="row",
    source=BELROSE,
    covers=("S3-070",),
)
def leace_erases() -> Statement:
    """LEACE removes a concept Z from activations X so that no linear predictor can find it, X − X W
    P V with covariance zero. Here W whitens X, V undoes the whitening, and P is the orthogonal
    projection onto the columns of W XᵀZ; the hypotheses say so as far as the proof needs it.

    Unlike removing one probe's direction, this works against all linear probes
    (`no_covariance_no_linear_information`).
    """
    given = (
        *symmetric,
        (matmul(onto, whiten, crossed), matmul(whiten, crossed)),
        (matmul(colour, whiten, crossed), crossed),
    )
    return Statement(
        matmul(Transpose(minus(X, matmul(X, moved))), Z),
        ZeroMatrix(d, k),
        given=given,
        on_models=False,
    )


E, D = MatrixSymbol("E", d, d), MatrixSymbol("D", d, d)


@theorem(
    title="What LEACE removes is orthogonal to what any other eraser removes besides",
    chapter=10,
    convention="row",
    source=BELROSE,
    covers=("S3-070",),
)
def leace_is_orthogonal() -> Statement:
    """What LEACE removes is orthogonal to whatever else another eraser removes. In coordinates
    where XᵀX = I, LEACE removes X P with P of the form XᵀZ K. Another linear map that also erases
    the concept removes X(P + D) with DᵀXᵀZ = 0, and then X P and X D are orthogonal.

    It is the step from which LEACE's optimality follows (`leace_moves_least`).
    """
    K = MatrixSymbol("K", k, d)
    given = (
        (matmul(Transpose(X), X), Identity(d)),
        (matmul(Transpose(D), crossed), ZeroMatrix(d, k)),
    )
    return Statement(
        matmul(Transpose(matmul(X, D)), X, crossed, K),
        ZeroMatrix(d, d),
        given=given,
        on_models=False,
    )


@theorem(
    title="No affine eraser moves the activations less than LEACE",
    chapter=10,
    convention="row",
    source=BELROSE,
    covers=("S3-070",),
)
def leace_moves_least() -> Bound:
    """Among all linear maps that erase a concept, LEACE changes the activations least in mean
    square: another eraser removes X(E + D) where LEACE removes X E, and ‖X(E + D)‖² = ‖XE‖² +
    ‖XD‖², since the two parts are orthogonal (`leace_is_orthogonal`).

    So as much as possible of what is unrelated to the concept is kept.
    """
    return Bound(
        squared(matmul(X, E)),
        squared(matmul(X, matadd(E, D))),
        because=(Square(matmul(X, D)),),
        given=((matmul(Transpose(matmul(X, D)), X, E), ZeroMatrix(d, d)),),
        tight={"X": [[1]], "E": [[1]], "D": [[0]]},
        on_models=False,
    )


@theorem(
    title="Steering shifts logits by the logits of the steering vector",
    chapter=10,
    convention="row",
    source=f"{ERASING}; Turner et al. 2023, “Activation Addition”",
    covers=("S3-071",),
)
def steering_shifts_logits() -> Statement:
    """Adding a steering vector αu to the final stream adds α u W_U to the logits at every position.
    Added at an earlier layer it has this direct part, and later layers add what they make of it.
    With a final norm the stream here is the one behind it.

    The sign is plus: u points towards the concept. In print a minus is found, with which u points
    away from it.
    """
    alpha = sympy.Symbol("alpha", real=True)
    final, W_U = MatrixSymbol("X_L", n, d), MatrixSymbol("W_U", d, V)
    everywhere = matmul(OneMatrix(n, 1), u)
    return Statement(
        matmul(matadd(final, matmul(alpha, everywhere)), W_U),
        matadd(matmul(final, W_U), matmul(alpha, everywhere, W_U)),
        places={"logits": matmul(final, W_U)},
        bind=({"X_L": Source("final"), "u": Source("W_E", rows=1, example=True)},),
    )


@theorem(
    title="leace and steer: zero covariance, and logits moved by a product",
    chapter=10,
    convention="row",
    source=f"{BELROSE}; {ERASING}",
    covers=("S3-070", "S3-071"),
)
def leace_method() -> Method:
    """`leace` erases a concept from activations, here the parity of the token number from the rows
    of an embedding, and the check is that the covariance with the concept is zero afterwards, by
    loops. `steer` adds a direction to the stream; in models without a final norm the logits must
    move by its product with W_U.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        few = min(4 * model.d_model, model.d_vocab // 2 * 2)  # as many even tokens as odd ones
        rows = model.W_E[:few, : model.d_model // 3]
        labels = np.arange(len(rows)) % 2
        eraser = leace(rows, labels)
        clean = eraser(rows)
        mean = np.array([fsum(column) / len(rows) for column in rows.T])
        few = gamma(len(rows) + 2, UNIT) * np.abs(rows).mean(axis=0)
        yield Trial("the mean", eraser.mean, mean, 2 * few)
        yield Trial("dimensions that are removed", float(eraser.rank), 1.0, 0.0)
        plain = np.zeros(rows.shape[1])
        for row, label in zip(clean, labels, strict=True):
            plain += row * (label - 0.5)
        gap = clean[labels == 1].sum(axis=0) - clean[labels == 0].sum(axis=0)
        yield Trial("means of the classes", gap / 2 + 1.0, plain + 1.0, _rounding(rows))
        yield Trial("covariance", plain + 1.0, np.ones_like(plain), _rounding(rows))
        if model.config.final_norm or model.config.logit_cap:
            return
        direction = model.part("W_U", (slice(None), 5))
        found = steer(model, list(tokens), "final", direction, 0.25)["logits"][-1, :8]
        logits = model.forward(tokens)["logits"][-1, :8]
        shift = [sum(0.25 * float(a * b) for a, b in zip(direction, column, strict=True))
                 for column in model.W_U[:, :8].T]  # fmt: skip
        last = np.abs(model.forward(tokens)["final"][-1]) + np.abs(direction)
        bound = gamma(4 * model.d_model + 8, UNIT) * (last @ np.abs(model.W_U[:, :8]))
        yield Trial("steered logits", found, logits + np.array(shift), bound)

    rests = ("leace_erases", "leace_moves_least", "steering_shifts_logits")
    return Method("ot.leace", rests, trials)


def _rounding(rows: np.ndarray) -> float:
    """Return a bound on the covariance that rounding leaves: that of whitening is its condition."""
    values = np.linalg.eigvalsh(np.cov(rows.T))
    few = gamma(8 * len(rows) * rows.shape[1], UNIT)
    return float(few * np.abs(rows).sum() * np.sqrt(values[-1] / values[0]) + few)
