"""Chapter 10: a direction removed, a concept erased, a vector added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    """X (I - uᵀu) has the inner product 0 with u, for u of length one: a probe with the weights uᵀ
    reads the same number from every example. It does not follow that another probe reads nothing
    (`projection_is_not_erasure`).
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
    """(I - uᵀu)² = I - uᵀu for u of length one: a projection finds nothing to remove in what it has
    left. An eraser that changes its own output is not a projection, and has mixed something in.
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
    """After x ↦ x (I - uᵀu) the cross-covariance with the concept, (I - uᵀu) XᵀZ, is zero only if
    all of XᵀZ lies along u. Otherwise some other direction still tells.
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
    """X and Z have their means subtracted, and XᵀZ = 0. Then ‖X B - Z‖² = ‖Z‖² + ‖X B‖² for all
    weights B: the best are those that read nothing. So once the cross-covariance is zero, linear
    information is gone, for every linear regression at once.
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
    """Try the weights t XᵀZ. The squared error changes by t² ‖X XᵀZ‖² - 2 t ‖XᵀZ‖², which is
    negative for a small positive t unless XᵀZ = 0. With the bound before: the best predictor is
    constant exactly if the cross-covariance is zero.
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
    """W whitens X, V undoes it (V W is the identity on what X and Z have in common, V W XᵀZ = XᵀZ),
    and P is the projection on the columns of W XᵀZ. After x ↦ x - x W P V, the cross-covariance
    with the concept is zero.
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
    """In whitened coordinates, XᵀX = I, what LEACE takes away is X P, with P the projection on the
    columns of XᵀZ: P is XᵀZ K for some K. Another map, x ↦ x - x (P + D), erases as well if
    Dᵀ XᵀZ = 0. Then X P and X D are orthogonal.
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
    """Let X E be what LEACE takes away, and X (E + D) what another eraser does. The two parts are
    orthogonal (`leace_is_orthogonal`), so ‖X (E + D)‖² = ‖X E‖² + ‖X D‖²: the mean squared change
    of the activations is the least possible.
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
    """Add α u to every row of the last stream: each logit moves by α u W_U, at every position
    alike. Earlier in the model this is the direct part, and later layers add what they make of it.
    The sign is a plus; with a minus, as it is found in print, u points away from the concept.
    """
    alpha = sympy.Symbol("alpha", real=True)
    final, W_U = MatrixSymbol("X_L", n, d), MatrixSymbol("W_U", d, V)
    everywhere = matmul(OneMatrix(n, 1), u)
    return Statement(
        matmul(matadd(final, matmul(alpha, everywhere)), W_U),
        matadd(matmul(final, W_U), matmul(alpha, everywhere, W_U)),
        bind=({"X_L": Source("final"), "u": Source("ln_final_gain")},),
        on_models=False,
    )


@theorem(
    title="leace and steer: zero covariance, and logits moved by a product",
    chapter=10,
    convention="row",
    source=f"{BELROSE}; {ERASING}",
    covers=("S3-070", "S3-071"),
)
def leace_method() -> Method:
    """The rows of a model's embedding, with the parity of the token as concept: afterwards the sum
    over the examples of row times concept is zero, by a loop. And in models without a final norm,
    the logits of a pass in which a direction is added to the last stream.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        few = min(4 * model.d_model, model.d_vocab // 2 * 2)  # as many even tokens as odd ones
        rows = model.W_E[:few, : model.d_model // 3]
        labels = np.arange(len(rows)) % 2
        clean = leace(rows, labels)(rows)
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
