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
    """Scores X W + 1 b of k classes from the activations of N examples, a row each; the prediction
    is the class with the largest score. A probe is trained beside the model, which stays as it is.
    It says what can be read off an activation, by a reader of its kind.
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
    """Let (XᵀX + λI) W = XᵀZ. Any other weights W + D have the loss of W plus ‖XD‖² + λ‖D‖², so
    there is one minimum, and solving these equations finds it.
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
    """If the N rows of X are linearly independent (so N ≤ d, or d + 1 with an intercept), X has a
    right inverse R, X R = I. The weights R Z then give exactly the labels Z, whichever they are:
    meaningful, random, or those of a control task. A probe that is right about its training
    examples has shown nothing.
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
    """Write a property z into the stream along u, and let every later reader be blind to it, u W =
    0. What is read is the same, whatever z is. Yet a probe finds z (`unread_direction_is_decodable`
    says how), with an accuracy of one.
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
    """U is of length one, and nothing else is written along it. The probe with weights uᵀ then
    returns z itself. So a probe that works does not show that the model uses what it finds; an
    intervention on that direction would.
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
    """With predictions and labels as one-hot rows, tr(PᵀZ)/N is the share of examples that are
    right. In a control task each type of input, such as each token, has a random label; its
    predictions are Q and its labels C. The difference is what the probe has found rather than
    remembered.
    """
    P, Q, C = (MatrixSymbol(name, N, k) for name in ("P", "Q", "C"))

    def plain(P: Any, Z: Any, Q: Any, C: Any, N: int, k: int, **_: Any) -> Any:
        right = sum(P[i][c] * Z[i][c] for i in range(N) for c in range(k))
        remembered = sum(Q[i][c] * C[i][c] for i in range(N) for c in range(k))
        return sympy.Rational(1, N) * (right - remembered)

    right = Trace(matmul(Transpose(P), Z))
    remembered = Trace(matmul(Transpose(Q), C))
    return Definition("selectivity", (right - remembered) / N, plain, on_models=False)
