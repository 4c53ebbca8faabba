"""Chapter 10: linear probes, what they show and what they do not."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, Trace, Transpose, ZeroMatrix

from otimes.algebra.language.linear import matadd, matmul
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import d, size
from otimes.proofs.claims import Bound, Definition, Square, Statement
from otimes.proofs.theorem import theorem

PROBING = f"{PRIMER}, “Probing”"
HEWITT = "Hewitt and Liang 2019, “Designing and Interpreting Probes with Control Tasks”"

N, k = size("N"), size("k")  # examples, classes
X, Z = MatrixSymbol("X", N, d), MatrixSymbol("Z", N, k)
W, D = MatrixSymbol("W", d, k), MatrixSymbol("D", d, k)
penalty = sympy.Symbol("lambda", positive=True)


def squared(matrix: Any) -> Any:
    """Return the sum of the squares of the entries."""
    return Trace(matmul(matrix, Transpose(matrix)))


@theorem(
    title="A linear probe",
    chapter=10,
    convention="row",
    source=f"{PROBING}; Alain and Bengio 2017",
    covers=("S3-063",),
)
def linear_probe() -> Definition:
    """A linear probe predicts a property from activations: scores X W + b for k classes, from N
    examples as rows of X (N × d), and the class with the largest score as prediction. The model
    itself is not changed or trained.

    It shows what can be read from an activation by a linear map. Whether the model reads it is
    another question (`unread_direction_is_decodable`).
    """
    b = MatrixSymbol("b", 1, k)

    def plain(X: Any, W: Any, b: Any, N: int, d: int, k: int, **_: Any) -> list[list[Any]]:
        return [
            [sum(X[i][a] * W[a][c] for a in range(d)) + b[0][c] for c in range(k)] for i in range(N)
        ]

    return Definition(
        "the scores of a linear probe",
        matadd(matmul(X, W), matmul(OneMatrix(N, 1), b)),
        plain,
        on_models=False,
        obeys=("ridge_probe_is_the_minimum", "enough_dimensions_fit_any_labels"),
    )


@theorem(
    title="The ridge probe is the minimum of its loss",
    chapter=10,
    convention="row",
    source="Hoerl and Kennard 1970, “Ridge Regression”; Belinkov 2022, “Probing Classifiers”",
    covers=("S3-063",),
)
def ridge_probe_is_the_minimum() -> Bound:
    """The ridge probe, a linear predictor of labels Z from activations X, is the unique minimum of
    its loss, the squared error plus λ‖W‖². Its weights W solve (XᵀX + λI)W = XᵀZ. Any other weights
    W + D have a larger loss, by ‖XD‖² + λ‖D‖².

    So with λ > 0 the result does not depend on how the probe is trained, and probes on two
    activations can be compared.
    """

    def loss(weights: Any) -> Any:
        return squared(minus(matmul(X, weights), Z)) + penalty * squared(weights)

    gram = matadd(matmul(Transpose(X), X), matmul(penalty, Identity(d)))
    return Bound(
        loss(W),
        loss(matadd(W, D)),
        because=(Square(matmul(X, D)), Square(D, penalty)),
        given=((matmul(gram, W), matmul(Transpose(X), Z)),),
        tight={"X": [[1]], "Z": [[2]], "W": [[1]], "D": [[0]], "lambda": 1},
        on_models=False,
    )


@theorem(
    title="With enough dimensions any labels fit",
    chapter=10,
    convention="row",
    source=f"{PROBING}; Cover 1965; {HEWITT}",
    covers=("S3-065",),
)
def enough_dimensions_fit_any_labels() -> Statement:
    """With at least as many dimensions as examples, a linear probe can fit any labels at all,
    meaningful or random: if the N rows of X are linearly independent, X has a right inverse R, and
    the weights R Z give exactly Z.

    So accuracy on the training examples shows nothing. Use held-out examples and a control task
    (`selectivity_score`).
    """
    right = MatrixSymbol("R", d, N)
    return Statement(
        matmul(X, right, Z),
        Z,
        given=((matmul(X, right), Identity(N)),),
        on_models=False,
    )


x, z = MatrixSymbol("S", N, d), MatrixSymbol("z", N, 1)
direction = MatrixSymbol("u", 1, d)
reader = MatrixSymbol("W_r", d, k)


@theorem(
    title="Writing in a direction that no weight reads has no effect",
    chapter=10,
    convention="row",
    source=PROBING,
    covers=("S3-064",),
)
def unread_direction_has_no_effect() -> Statement:
    """Writing a property z into the residual stream along a direction u that no later weight reads
    (u W_r = 0) has no effect on what the model computes, although a probe would find it with
    perfect accuracy (`unread_direction_is_decodable`).

    S is the rest of the stream and W_r stands for all later readers.
    """
    return Statement(
        matmul(matadd(x, matmul(z, direction)), reader),
        matmul(x, reader),
        given=((matmul(direction, reader), ZeroMatrix(1, k)),),
        on_models=False,
    )


@theorem(
    title="A probe can read a direction that the model does not use",
    chapter=10,
    convention="row",
    source=PROBING,
    covers=("S3-064",),
)
def unread_direction_is_decodable() -> Statement:
    """A probe can read a property from the stream although the model does not use it. If the
    property z is written along a unit row u and nothing else lies along u, the probe with weights
    uᵀ returns z exactly, also if all later weights ignore u (`unread_direction_has_no_effect`). S
    is the rest of the stream.

    So a probe that works does not show use. An intervention along u does.
    """
    given = (
        (matmul(direction, Transpose(direction)), Identity(1)),
        (matmul(x, Transpose(direction)), ZeroMatrix(N, 1)),
    )
    return Statement(
        matmul(matadd(x, matmul(z, direction)), Transpose(direction)),
        z,
        given=given,
        on_models=False,
    )


@theorem(
    title="Selectivity: the accuracy less that on a control task",
    chapter=10,
    source=f"{PROBING}; {HEWITT}",
    covers=("S3-066",),
)
def selectivity_score() -> Definition:
    """Selectivity is the accuracy of a probe minus its accuracy on a control task with random
    labels. In a control task each type of input, such as each token, gets a random label. P and Q
    are the one-hot predictions, Z and C the one-hot labels of the real and the control task, so
    tr(PᵀZ)/N is the accuracy.

    The difference separates what is in the activations from what the probe can memorise.
    """
    P, Q, C = (MatrixSymbol(name, N, k) for name in ("P", "Q", "C"))

    def plain(P: Any, Z: Any, Q: Any, C: Any, N: int, k: int, **_: Any) -> Any:
        right = sum(P[i][c] * Z[i][c] for i in range(N) for c in range(k))
        remembered = sum(Q[i][c] * C[i][c] for i in range(N) for c in range(k))
        return sympy.Rational(1, N) * (right - remembered)

    right = Trace(matmul(Transpose(P), Z))
    remembered = Trace(matmul(Transpose(Q), C))
    return Definition("selectivity", (right - remembered) / N, plain, on_models=False)
