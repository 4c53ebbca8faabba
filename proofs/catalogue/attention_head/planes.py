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
    """Rotary position embeddings turn pairs of coordinates of queries and keys by angles
    proportional to the position: plane k by iθ_k at position i. The score of a query at i and a key
    at j is then Σ_k [(q·k)_k cos (i − j)θ_k + (q × k)_k sin (i − j)θ_k]. Here (q·k)_k is the dot
    product within plane k, and (q × k)_k = q_2 k_1 − q_1 k_2 in the coordinates of the formula.

    So positions enter a score only through the distance i − j, with one frequency θ_k for each
    plane.
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
    """With rotary positions, a score is a sum of cosine waves in the distance between query and
    key, one for each plane of two coordinates. In plane k, write the query by its length ρ_k and
    angle ψ_k and the key by σ_k and χ_k. The wave has amplitude ρ_k σ_k, frequency θ_k and phase
    χ_k − ψ_k. The query is at position i and the key at j.

    What the tokens are decides amplitudes and phases; where they are moves along the waves. A head
    that always attends to the previous token needs waves that agree at distance 1, with some
    frequency high enough to tell 1 from 2.
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
    """Sinusoidal position vectors have the property that moving by a fixed number of positions is
    one fixed rotation. The vector of position i has sin iθ and cos iθ for each frequency in θ; that
    of i + j is the vector of i times a matrix which depends on j only.

    So a head can ask for “j positions earlier” with one bilinear form. Vaswani et al. chose
    sinusoids for this reason.
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
    """The dot product of two sinusoidal position vectors depends on the distance of the positions
    only: it is the sum of cos((i − j)θ) over the P frequencies. It is largest, namely P, at
    distance zero.

    This holds for the position vectors themselves. A head puts its W_QK between them, and its
    scores need not have this form.
    """

    def place(position: Any) -> Any:
        angle = matmul(position, Transpose(theta))
        return BlockMatrix([[sin(angle), cos(angle)]])

    return Statement(
        matmul(place(a), Transpose(place(b))),
        matmul(cos(matmul(a - b, Transpose(theta))), Transpose(ROW)),
        on_models=False,
    )
