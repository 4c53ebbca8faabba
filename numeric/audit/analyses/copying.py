"""The copying score of a head, Σ Re λ / Σ |λ| of W_E W_V W_O W_U, and known mistakes.

The circuit is A Bᵀ with A = W_E W_V and Bᵀ = W_O W_U, both in the language and as narrow as a head;
its eigenvalues that are not zero are those of Bᵀ A. The steps that a mistake may replace are the
"values" (eigenvalues) and the "score". Source: Elhage et al. 2021.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import sympy
from sympy import HadamardProduct, Identity, OneMatrix, Transpose

from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import RSQRT, Activation
from otimes.algebra.mutations import Swap
from otimes.numeric.audit.analyses.question import (
    Array,
    Asked,
    Replaced,
    d,
    gain,
    m,
    row_scaled,
    symbol,
    weight,
)

W_E, W_U = symbol("W_E", m, d), symbol("W_U", d, m)
W_Q, W_K, W_V, W_O = map(weight, ("W_Q", "W_K", "W_V", "W_O"))
READ, WRITTEN = matmul(W_E, W_V), matmul(W_O, W_U)
"""The factors of the full OV circuit of the head in question."""

DENSE = 1024
"""The largest vocabulary for which mistakes that need the dense circuit are tried."""


def copying_score(asked: Asked, replaced: Replaced) -> Array:
    """Return Σ Re λ / Σ |λ| of the full OV circuit of a head, or of all heads."""
    model = asked.model
    if asked.layer is None and asked.head is None:
        table = np.full((model.n_layers, model.n_heads), np.nan)
        for layer, head in np.ndindex(table.shape):
            table[layer, head] = copying_score(asked.of(layer, head), replaced).item()
            if asked.screening:
                break
        return table
    whole = replace(asked, screening=False)
    nodes = {node: new for node, new in replaced.items() if isinstance(node, sympy.Basic)}
    A, B = whole.value(READ.xreplace(nodes)), whole.value(WRITTEN.xreplace(nodes)).T
    with np.errstate(all="ignore"):
        values = replaced.get("values", _eigenvalues)(A, B)
        if asked.rng is not None and "values" not in replaced:
            values = _as_if_dense(asked.rng, asked.unit, A, B)
        if "count" in replaced:
            return np.asarray(replaced["count"] / len(A))
        return np.asarray(replaced.get("score", _score)(values, A, B))


def _eigenvalues(A: Array, B: Array) -> Array:
    return np.linalg.eigvals(B.T @ A)


def _symmetric(A: Array, B: Array) -> Array:
    """Return the nonzero eigenvalues of (A Bᵀ + B Aᵀ) / 2."""
    both = np.concatenate((A, B), axis=1)
    swapped = np.concatenate((B, A), axis=1)
    return np.asarray(np.linalg.eigvals(swapped.T @ both / 2))


def singular_values(A: Array, B: Array) -> Array:
    """Return the nonzero singular values of A Bᵀ."""
    inner = triangle(A) @ triangle(B).T
    return np.asarray(np.linalg.svd(inner, compute_uv=False))


def triangle(A: Array) -> Array:
    """Return the small R of A = Q R, so that ‖A M‖ is ‖R M‖."""
    return np.asarray(np.linalg.qr(A, mode="r"))


def _as_if_dense(rng: np.random.Generator, unit: float, A: Array, B: Array) -> Array:
    """Return the eigenvalues, perturbed as if computed from the full matrix A Bᵀ.

    Computed eigenvalues of M are those of M + E, with ‖E‖ of the size of a rounding of ‖M‖.
    In coordinates of the range of A the small matrix Bᵀ A then changes by (Bᵀ A)⁻¹ Bᵀ E A, which
    for a random E is of the triangles of B and A alone. The eigenvalues that are zero become those
    of P E, P being the projection beside the range, and as many as n of them add up to about
    √n ‖P‖ ‖E‖; and ‖P‖ is the norm of the projection A (Bᵀ A)⁻¹ Bᵀ onto it.
    """
    n = min(len(A), DENSE)
    small, R, S = B.T @ A, triangle(A), triangle(B)
    size = 2 * unit * float(np.linalg.norm(R @ S.T))
    inverse = np.linalg.pinv(small)
    change = rng.standard_normal((len(S), len(R))) * size / np.sqrt(n)
    beside = np.linalg.norm(R @ inverse @ S.T, 2) * size * np.sqrt(n)
    of_range = np.linalg.eigvals(small + inverse @ S.T @ change @ R)
    return np.append(of_range, [0.5j * beside, -0.5j * beside])


def _positive(values: Array) -> Array:
    return values.real[values.real > 0]


def _mean(A: Array, B: Array) -> float:
    """Return the mean entry of A Bᵀ."""
    return float(A.mean(0) @ B.mean(0))


Values = Callable[[Array, Array], Array]
Score = Callable[[Array, Array, Array], Any]


def _divided(divisor: Score, values: Array, A: Array, B: Array) -> float:
    return values.real.sum() / divisor(values, A, B)


def _share(part: Callable[[Array], Array], values: Array, A: Array, B: Array) -> float:
    return part(values) / np.abs(values).sum()


_score = partial(_share, lambda values: values.real.sum())
_size_of_sum = partial(_share, lambda values: np.abs(values.sum()))


def _lower(A: Array, B: Array) -> Array:
    return np.linalg.eigvalsh(A @ B.T)


DIVISORS: dict[str, Score] = {
    "the absolute values of real parts, Σ |Re λ|, for Σ |λ|": lambda v, A, B: np.abs(v.real).sum(),
    "the trace alone: not divided by Σ |λ| (not normalised)": lambda v, A, B: 1.0,
    "the mean eigenvalue: not divided by Σ |λ| (not normalised)": lambda v, A, B: len(v),
    "the mean of the diagonal: not divided by Σ |λ| (not normalised)": lambda v, A, B: len(A),
    "the 2-norm of the eigenvalues, √Σ |λ|², for Σ |λ|": lambda v, A, B: np.linalg.norm(v),
    "the trace divided by the Frobenius norm and not by Σ |λ|": lambda v, A, B: np.linalg.norm(
        singular_values(A, B)
    ),
    "singular values for the sizes of eigenvalues (the nuclear norm for Σ |λ|)": lambda v, A, B: (
        singular_values(A, B).sum()
    ),
    "the spectral norm for Σ |λ|": lambda v, A, B: singular_values(A, B).max(),
    "the largest |λ| for Σ |λ|": lambda v, A, B: np.abs(v).max(),
    "the absolute values of the diagonal for Σ |λ|": lambda v, A, B: np.abs(
        np.einsum("ij,ij->i", A, B)
    ).sum(),
}
"""The denominators of Σ Re λ."""

PARTS: dict[str, Callable[[Array], Array]] = {
    "the positive eigenvalues only, for all": lambda v: _positive(v).sum(),
    "the largest eigenvalue only, over Σ |λ|": lambda v: v[np.abs(v).argmax()].real,
    "the imaginary parts for the real ones": lambda v: np.abs(v.imag).sum(),
    "the negative eigenvalues only, for all": lambda v: -v.real[v.real < 0].sum(),
}
"""The numerators over Σ |λ|."""

SCORES: dict[str, Score] = {
    **{says: partial(_divided, divisor) for says, divisor in DIVISORS.items()},
    **{says: partial(_share, part) for says, part in PARTS.items()},
    "the absolute value |Σ λ| for Σ Re λ: its sign is lost": _size_of_sum,
    "the fraction of positive eigenvalues: a count": lambda v, A, B: (v.real > 0).mean(),
    "the count of positive eigenvalues less that of negative ones": lambda v, A, B: np.sign(
        v.real
    ).mean(),
    "the positive share of Σ |Re λ|": lambda v, A, B: _positive(v).sum() / np.abs(v.real).sum(),
    "the mean of the diagonal less the mean of all entries": lambda v, A, B: (
        v.real.sum() / len(A) - _mean(A, B)
    ),
    "the reciprocal, Σ |λ| / Σ Re λ": lambda v, A, B: 1 / _score(v, A, B),
    "the reciprocal with the sign lost, Σ |λ| / |Σ λ|": lambda v, A, B: 1 / _size_of_sum(v, A, B),
    "the mean of Re λ / |λ| for the ratio of sums": lambda v, A, B: (v.real / np.abs(v)).mean(),
    "squares, Σ (Re λ)² / Σ |λ|²": lambda v, A, B: (v.real**2).sum() / (np.abs(v) ** 2).sum(),
    "squares, Σ Re λ² / Σ |λ|²": lambda v, A, B: (v**2).real.sum() / (np.abs(v) ** 2).sum(),
    "the largest eigenvalue only": lambda v, A, B: v[np.abs(v).argmax()].real / np.abs(v).max(),
    "the score moved to between 0 and 1, (1 + s) / 2": lambda v, A, B: (1 + _score(v, A, B)) / 2,
    "one less the score, 1 - s": lambda v, A, B: 1 - _score(v, A, B),
    "Σ |λ| alone": lambda v, A, B: np.abs(v).sum(),
}
DENSE_SCORES: dict[str, Score] = {
    "the fraction of tokens whose diagonal entry is the largest of its row": lambda v, A, B: (
        np.argmax(A @ B.T, axis=1) == np.arange(len(A))
    ).mean(),
    "the absolute values of all entries for Σ |λ|": partial(
        _divided, lambda v, A, B: np.abs(A @ B.T).sum()
    ),
    "the mean of the diagonal in standard deviations of all entries": partial(
        _divided, lambda v, A, B: len(A) * (A @ B.T).std()
    ),
    "the mean of the diagonal above that of all entries, in their standard deviations": (
        lambda v, A, B: (v.real.sum() / len(A) - _mean(A, B)) / (A @ B.T).std()
    ),
}
SMALL = "eigvalsh for eigvals: only the lower triangle is read, as if it were symmetric"
VALUES: dict[str, Values] = {
    "singular values for eigenvalues": singular_values,
    "the eigenvalues of the symmetric part of the circuit": _symmetric,
    SMALL: lambda A, B: np.linalg.eigvalsh(B.T @ A),
    "singular values of the small matrix W_O W_U W_E W_V for its eigenvalues": lambda A, B: (
        np.linalg.svd(B.T @ A, compute_uv=False)
    ),
    "the diagonal of the circuit for its eigenvalues": lambda A, B: np.einsum("ij,ij->i", A, B),
}
DENSE_VALUES: dict[str, Values] = {
    SMALL: _lower,
    SMALL.replace("lower", "upper"): lambda A, B: np.linalg.eigvalsh(A @ B.T, UPLO="U"),
}


def copying_mistakes(asked: Asked, shape: tuple[int, ...]) -> Iterator[Swap]:
    """Yield the known mistakes of a copying score: other scores, other values, other circuits."""
    scores, values = dict(SCORES), [*VALUES.items()]
    if asked.model.d_vocab <= DENSE:
        scores |= DENSE_SCORES
        values += DENSE_VALUES.items()
    for says, score in scores.items():
        yield Swap(says, {"score": score})
    for says, taken in values:
        yield Swap(says, {"values": taken})
        both = {"values": taken, "score": _size_of_sum}
        yield Swap(f"{says}, and |Σ λ| for Σ Re λ", both)
    bare: Replaced = {W_E: Identity(d), W_U: Identity(d)}
    yield Swap("the circuit on the stream and not on the vocabulary (bare)", bare)
    on_stream = "the circuit on the stream and not on the vocabulary, and"
    for says, score in SCORES.items():
        yield Swap(f"{on_stream} {says}", {**bare, "score": score})
    for says, taken in VALUES.items():
        taken = _lower if says == SMALL else taken
        yield Swap(f"{on_stream} {says}", {**bare, "values": taken})
    tied, QK = {W_U: Transpose(W_E)}, {W_V: W_Q, W_O: Transpose(W_K)}
    yield Swap("W_Eᵀ for W_U, the embedding on both sides (as if tied)", tied)
    yield Swap("W_Uᵀ for W_E, the unembedding on both sides (as if tied)", {W_E: Transpose(W_U)})
    turned = {W_V: Transpose(W_O), W_O: Transpose(W_V)}
    yield Swap("the circuit transposed, W_Oᵀ W_Vᵀ for W_V W_O", turned)
    yield Swap("the QK circuit for the OV circuit", {**QK, **tied})
    yield Swap("W_Q W_Kᵀ for W_V W_O", QK)
    yield Swap("W_K for W_V", {W_V: W_K})
    yield Swap("W_Q for W_V", {W_V: W_Q})
    yield from _with_norms()
    if asked.layer is not None:
        yield from _counts(asked)
        for head in asked.other_heads():
            named = f"of another head, {head[0]}.{head[1]}"
            yield Swap(f"W_V {named}", {W_V: weight("W_V", *head)})
            yield Swap(f"W_O {named}", {W_O: weight("W_O", *head)})


def _counts(asked: Asked) -> Iterator[Swap]:
    """Yield scores that count positive eigenvalues of the full circuit.

    All but d_head eigenvalues are zero, and rounding gives these either sign.
    """
    size = asked.model.d_vocab
    if size > DENSE:
        return
    positive = int(copying_score(asked, {"score": lambda v, A, B: (v.real > 0).sum()}))
    for count in range(positive, size - asked.model.d_head + positive + 1):
        says = f"the fraction of positive eigenvalues, a count: {count} of {size}"
        yield Swap(f"{says}, zeros that rounding made positive among them", {"count": count})


def _with_norms() -> Iterator[Swap]:
    """Yield circuits with folded gains of norms, or with a centred vocabulary."""
    folded = {W_V: row_scaled(gain("ln1"), W_V)}
    final = {W_U: row_scaled(gain("ln_final"), W_U)}
    yield Swap("W_V with the gain of ln1 folded in", folded)
    yield Swap("W_U with the gain of the final norm folded in", final)
    yield Swap("the gains of ln1 and of the final norm folded in", {**folded, **final})
    for name, matrix, tokens in (("W_E", W_E, W_E), ("W_U", W_U, Transpose(W_U))):
        mean = matmul(-1 / m, OneMatrix(m, 1), OneMatrix(1, m), tokens)
        row_mean = matmul(-1 / d, tokens, OneMatrix(d, 1), OneMatrix(1, d))
        lengths = matmul(HadamardProduct(tokens, tokens), OneMatrix(d, 1))
        for says, made in (
            ("centred over the vocabulary", matadd(tokens, mean)),
            ("with each token's vector centred", matadd(tokens, row_mean)),
            ("with each token's vector normalised", row_scaled(Activation(RSQRT, lengths), tokens)),
        ):
            yield Swap(f"{name} {says}", {matrix: made if matrix == tokens else Transpose(made)})
