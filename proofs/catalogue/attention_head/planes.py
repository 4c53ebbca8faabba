"""Chapter 3: positions as angles: rotary scores plane by plane, sinusoids moved by a matrix."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import BlockMatrix, MatrixSymbol, OneMatrix, Transpose

from otimes.algebra.language.defined import Rotation
from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.proofs.catalogue.attention_head.patterns import entrywise
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.sources import ROFORMER, VASWANI
from otimes.proofs.catalogue.symbols import size
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import theorem

P = size("P")  # planes
theta = MatrixSymbol("theta", P, 1)  # the frequency of each plane, as a column
a, b = sympy.symbols("i j", real=True)  # positions, as numbers
ROW = OneMatrix(1, P)


def cos(e: Any) -> Any:
    """Return the cosine of each entry."""
    return Activation("cos", e)


def sin(e: Any) -> Any:
    """Return the sine of each entry."""
    return Activation("sin", e)


def turned(name: str, position: Any) -> Any:
    """Return a row vector of 2P entries, turned in plane k by position · theta_k."""
    vector = BlockMatrix([[MatrixSymbol(f"{name}_1", 1, P), MatrixSymbol(f"{name}_2", 1, P)]])
    return matmul(vector, Rotation(matmul(position, theta)))


@theorem(
    title="A rotary score is a sum over planes of a cosine and a sine of the distance",
    chapter=3,
    convention="row",
    source=f"{ROFORMER}, §3.2",
    covers=("B27",),
)
def rotary_score_by_planes() -> Statement:
    """Rotary positions turn plane k of a query at position i by the angle iθ_k, and of a key at j
    by jθ_k. Their score is Σ_k [(q·k)_k cos (i − j)θ_k + (q × k)_k sin (i − j)θ_k], where (q·k)_k
    is the dot product inside the plane and (q × k)_k = q_1 k_2 − q_2 k_1 the signed area. Positions
    enter by the distance alone, and each plane has one frequency.
    """
    q_1, q_2, k_1, k_2 = (MatrixSymbol(f"{v}_{k}", 1, P) for v in "qk" for k in (1, 2))
    angle = matmul(a - b, Transpose(theta))
    dot = matadd(entrywise(q_1, k_1), entrywise(q_2, k_2))
    area = less(entrywise(q_2, k_1), entrywise(q_1, k_2))
    each = matadd(entrywise(dot, cos(angle)), entrywise(area, sin(angle)))
    return Statement(
        matmul(turned("q", a), Transpose(turned("k", b))),
        matmul(each, Transpose(ROW)),
        on_models=False,
    )


@theorem(
    title="A rotary score is a sum of waves in the distance",
    chapter=3,
    convention="row",
    source=f"{ROFORMER}, §3.2",
    covers=("B27",),
)
def rotary_score_is_a_sum_of_waves() -> Statement:
    """Write the part of a query in plane k by its length and its angle, and so the key's. Then the
    score is a sum of waves in the distance Δ = i − j: the amplitude of wave k is the product of the
    two lengths, its frequency θ_k, and its phase φ_k the angle between query and key. Content sets
    amplitudes and phases, position moves along the waves.

    So a head that attends to the token before, whatever it is, has waves that agree at Δ = 1, and
    planes with a high frequency to tell 1 from 2. No choice of content makes a score depend on
    i and j otherwise.
    """
    long_q, long_k, at_q, at_k = (MatrixSymbol(s, 1, P) for s in ("rho", "sigma", "psi", "chi"))
    query = BlockMatrix([[entrywise(long_q, cos(at_q)), entrywise(long_q, sin(at_q))]])
    key = BlockMatrix([[entrywise(long_k, cos(at_k)), entrywise(long_k, sin(at_k))]])
    phase = less(at_k, at_q)
    wave = cos(matadd(matmul(a - b, Transpose(theta)), phase))
    return Statement(
        matmul(
            matmul(query, Rotation(matmul(a, theta))),
            Transpose(matmul(key, Rotation(matmul(b, theta)))),
        ),
        matmul(entrywise(long_q, long_k, wave), Transpose(ROW)),
        on_models=False,
    )


@theorem(
    title="Sinusoidal positions: moving by k positions is one rotation",
    chapter=3,
    convention="row",
    source=f"{VASWANI}, §3.5",
    covers=("B28",),
)
def sinusoids_move_by_a_matrix() -> Statement:
    """The position vector of i has sin iθ and cos iθ for each frequency θ. That of i + k is the one
    of i times a matrix R_k, which turns each pair by kθ and does not depend on i: by the addition
    theorems. So a head can ask for “k positions earlier” with one bilinear form, which is why
    Vaswani et al. chose sinusoids.
    """

    def place(position: Any) -> Any:
        angle = matmul(position, Transpose(theta))
        return BlockMatrix([[sin(angle), cos(angle)]])

    return Statement(
        place(a + b),
        matmul(place(a), Rotation(matmul(b, theta))),
        on_models=False,
    )


@theorem(
    title="Dot products of sinusoidal positions depend on the distance only",
    chapter=3,
    convention="row",
    source=f"{VASWANI}, §3.5",
    covers=("B28",),
)
def sinusoids_score_by_distance() -> Statement:
    """The dot product of the position vectors of i and j is Σ cos((i − j)θ) over the frequencies:
    largest, and equal to their number, at i = j. It holds of the vectors themselves. Between them a
    head has W_QK, and may make of positions what it likes.
    """

    def place(position: Any) -> Any:
        angle = matmul(position, Transpose(theta))
        return BlockMatrix([[sin(angle), cos(angle)]])

    return Statement(
        matmul(place(a), Transpose(place(b))),
        matmul(cos(matmul(a - b, Transpose(theta))), Transpose(ROW)),
        on_models=False,
    )
