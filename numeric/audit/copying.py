"""The copying score of a head, Σ Re λ / Σ |λ| of W_E W_V W_O W_U, and what people compute instead.

Ingredients: the four factors of the circuit, the values taken of it (eigenvalues or others) and
the score made of them. The circuit is A Bᵀ with A = W_E W_V and B = (W_O W_U)ᵀ, both as narrow as a
head, and its eigenvalues that are not zero are those of Bᵀ A. Source: Elhage et al. 2021.
"""

from collections.abc import Callable, Iterator

import numpy as np

from numeric.audit.asked import Array, Asked, Replaced
from numeric.audit.circuits import OV, factors

DENSE = 1024
"""Up to this vocabulary the mistakes that need the whole circuit, made dense, are tried."""


def copying_score(asked: Asked, replaced: Replaced) -> Array:
    """Return Σ Re λ / Σ |λ| of the full OV circuit of a head, or of all."""
    model = asked.model
    if asked.layer is None and asked.head is None:
        table = np.full((model.n_layers, model.n_heads), np.nan)
        for layer, head in np.ndindex(table.shape):
            table[layer, head] = copying_score(asked.of(layer, head), replaced).item()
            if asked.screening:
                break
        return table
    left, right = factors(asked, replaced.get("letters", OV), replaced)
    A = _vocabulary(asked, replaced.get("embed", "W_E"), replaced) @ left
    B = _vocabulary(asked, replaced.get("unembed", "W_U"), replaced) @ right
    if replaced.get("order") == "transposed":
        A, B = B, A
    if replaced.get("order") == "within":
        A, B = (_vocabulary(asked, name, replaced) for name in ("W_E", "W_U"))
        A, B = A @ right, B @ left
    with np.errstate(all="ignore"):
        values = VALUES[replaced.get("values", "")](A, B)
        if asked.rng is not None and "values" not in replaced:
            values = _as_if_dense(asked.rng, asked.unit, A, B)
        if "count" in replaced:
            return np.asarray(replaced["count"] / len(A))
        return np.asarray(SCORES[replaced.get("score", "")](values, A, B))


def _vocabulary(asked: Asked, name: str, replaced: Replaced) -> Array:
    """Return W_E or W_Uᵀ [d_vocab, d_model], or the identity for "none"."""
    model = asked.model
    if name == "none":
        return np.eye(model.d_model)
    array = asked.moved(model.part("W_E") if name == "W_E" else model.part("W_U").T)
    made = replaced.get(f"{name}_made", "")
    if made == "gain":
        array = array * model.part("ln_final_gain")
    if made == "ln1":
        array = array * model.part("ln1_gain", asked.one_head()[0])
    if made == "centred":
        array = array - array.mean(0)
    if made == "rows_centred":
        array = array - array.mean(1, keepdims=True)
    if made == "normalised":
        array = array / np.linalg.norm(array, axis=1, keepdims=True)
    return np.asarray(array)


def _symmetric(A: Array, B: Array) -> Array:
    """Return the eigenvalues that are not zero of (A Bᵀ + B Aᵀ) / 2."""
    both = np.concatenate((A, B), axis=1)
    swapped = np.concatenate((B, A), axis=1)
    return np.asarray(np.linalg.eigvals(swapped.T @ both / 2))


def singular_values(A: Array, B: Array) -> Array:
    """Return the singular values that are not zero of A Bᵀ."""
    inner = triangle(A) @ triangle(B).T
    return np.asarray(np.linalg.svd(inner, compute_uv=False))


def triangle(A: Array) -> Array:
    """Return the small R of A = Q R, so that ‖A M‖ is ‖R M‖."""
    return np.asarray(np.linalg.qr(A, mode="r"))


VALUES: dict[str, Callable[[Array, Array], Array]] = {
    "": lambda A, B: np.linalg.eigvals(B.T @ A),
    "singular": singular_values,
    "symmetric": _symmetric,
    "lower": lambda A, B: np.linalg.eigvalsh(A @ B.T),
    "upper": lambda A, B: np.linalg.eigvalsh(A @ B.T, UPLO="U"),
    "small_lower": lambda A, B: np.linalg.eigvalsh(B.T @ A),
    "small_singular": lambda A, B: np.linalg.svd(B.T @ A, compute_uv=False),
    "diagonal": lambda A, B: np.einsum("ij,ij->i", A, B),
}


def _as_if_dense(rng: np.random.Generator, unit: float, A: Array, B: Array) -> Array:
    """Return the eigenvalues as they are off where A Bᵀ was made before they were taken.

    Taking those of a matrix M is off like changing it by some E of the size of a rounding of ‖M‖.
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


Score = Callable[[Array, Array, Array], float]
SCORES: dict[str, Score] = {
    "": lambda v, A, B: v.real.sum() / np.abs(v).sum(),
    "fraction": lambda v, A, B: (v.real > 0).mean(),
    "balance": lambda v, A, B: np.sign(v.real).mean(),
    "real_sizes": lambda v, A, B: v.real.sum() / np.abs(v.real).sum(),
    "size_of_sum": lambda v, A, B: np.abs(v.sum()) / np.abs(v).sum(),
    "positive_share": lambda v, A, B: _positive(v).sum() / np.abs(v).sum(),
    "positive_of_real": lambda v, A, B: _positive(v).sum() / np.abs(v.real).sum(),
    "trace": lambda v, A, B: v.real.sum(),
    "mean": lambda v, A, B: v.real.mean(),
    "mean_of_all": lambda v, A, B: v.real.sum() / len(A),
    "above_mean": lambda v, A, B: v.real.sum() / len(A) - _mean(A, B),
    "two_norm": lambda v, A, B: v.real.sum() / np.sqrt((np.abs(v) ** 2).sum()),
    "over_frobenius": lambda v, A, B: v.real.sum() / np.linalg.norm(singular_values(A, B)),
    "over_singular": lambda v, A, B: v.real.sum() / singular_values(A, B).sum(),
    "over_spectral": lambda v, A, B: v.real.sum() / singular_values(A, B).max(),
    "over_radius": lambda v, A, B: v.real.sum() / np.abs(v).max(),
    "reciprocal": lambda v, A, B: np.abs(v).sum() / v.real.sum(),
    "reciprocal_size": lambda v, A, B: np.abs(v).sum() / np.abs(v.sum()),
    "ratios": lambda v, A, B: (v.real / np.abs(v)).mean(),
    "squares": lambda v, A, B: (v.real**2).sum() / (np.abs(v) ** 2).sum(),
    "of_squares": lambda v, A, B: (v**2).real.sum() / (np.abs(v) ** 2).sum(),
    "largest": lambda v, A, B: v[np.abs(v).argmax()].real / np.abs(v).max(),
    "largest_share": lambda v, A, B: v[np.abs(v).argmax()].real / np.abs(v).sum(),
    "half": lambda v, A, B: (1 + v.real.sum() / np.abs(v).sum()) / 2,
    "less": lambda v, A, B: 1 - v.real.sum() / np.abs(v).sum(),
    "sizes": lambda v, A, B: np.abs(v).sum(),
    "positives": lambda v, A, B: (v.real > 0).sum(),
    "imaginary": lambda v, A, B: np.abs(v.imag).sum() / np.abs(v).sum(),
    "negative_share": lambda v, A, B: -v.real[v.real < 0].sum() / np.abs(v).sum(),
    "over_diagonal": lambda v, A, B: v.real.sum() / np.abs(np.einsum("ij,ij->i", A, B)).sum(),
    "over_entries": lambda v, A, B: v.real.sum() / np.abs(A @ B.T).sum(),
    "in_spreads": lambda v, A, B: v.real.sum() / len(A) / (A @ B.T).std(),
    "above_mean_in_spreads": lambda v, A, B: (
        (v.real.sum() / len(A) - _mean(A, B)) / (A @ B.T).std()
    ),
    "diagonal_wins": lambda v, A, B: (np.argmax(A @ B.T, axis=1) == np.arange(len(A))).mean(),
}

_SCORES = {
    "fraction": "the fraction of positive eigenvalues: a count",
    "balance": "the count of positive eigenvalues less that of negative ones",
    "real_sizes": "the absolute values of real parts, Σ |Re λ|, for Σ |λ|",
    "size_of_sum": "the absolute value |Σ λ| for Σ Re λ: its sign is lost",
    "positive_share": "the positive eigenvalues only, for all",
    "positive_of_real": "the positive share of Σ |Re λ|",
    "trace": "the trace alone: not divided by Σ |λ| (not normalised)",
    "mean": "the mean eigenvalue: not divided by Σ |λ| (not normalised)",
    "mean_of_all": "the mean of the diagonal: not divided by Σ |λ| (not normalised)",
    "above_mean": "the mean of the diagonal less the mean of all entries",
    "two_norm": "the 2-norm of the eigenvalues, √Σ |λ|², for Σ |λ|",
    "over_frobenius": "the trace divided by the Frobenius norm and not by Σ |λ|",
    "over_singular": "singular values for the sizes of eigenvalues (the nuclear norm for Σ |λ|)",
    "over_spectral": "the spectral norm for Σ |λ|",
    "over_radius": "the largest |λ| for Σ |λ|",
    "reciprocal": "the reciprocal, Σ |λ| / Σ Re λ",
    "reciprocal_size": "the reciprocal with the sign lost, Σ |λ| / |Σ λ|",
    "ratios": "the mean of Re λ / |λ| for the ratio of sums",
    "squares": "squares, Σ (Re λ)² / Σ |λ|²",
    "of_squares": "squares, Σ Re λ² / Σ |λ|²",
    "largest": "the largest eigenvalue only",
    "largest_share": "the largest eigenvalue only, over Σ |λ|",
    "half": "the score moved to between 0 and 1, (1 + s) / 2",
    "less": "one less the score, 1 - s",
    "sizes": "Σ |λ| alone",
    "imaginary": "the imaginary parts for the real ones",
    "negative_share": "the negative eigenvalues only, for all",
    "over_diagonal": "the absolute values of the diagonal for Σ |λ|",
}
_DENSE_SCORES = {
    "diagonal_wins": "the fraction of tokens whose diagonal entry is the largest of its row",
    "over_entries": "the absolute values of all entries for Σ |λ|",
    "in_spreads": "the mean of the diagonal in standard deviations of all entries",
    "above_mean_in_spreads": "the mean of the diagonal above that of all entries, in their "
    "standard deviations",
}
_VALUES = {
    "singular": "singular values for eigenvalues",
    "symmetric": "the eigenvalues of the symmetric part of the circuit",
    "small_lower": "eigvalsh for eigvals: only the lower triangle is read, as if it were symmetric",
    "small_singular": "singular values of the small matrix W_O W_U W_E W_V for its eigenvalues",
    "diagonal": "the diagonal of the circuit for its eigenvalues",
}
_DENSE_VALUES = {
    "lower": "eigvalsh for eigvals: only the lower triangle is read, as if it were symmetric",
    "upper": "eigvalsh for eigvals: only the upper triangle is read, as if it were symmetric",
}


def copying_mistakes(asked: Asked, shape: tuple[int, ...]) -> Iterator[tuple[str, Replaced]]:
    """Yield the known mistakes of a copying score: other scores, other values, other circuits."""
    dense = asked.model.d_vocab <= DENSE
    for score, says in {**_SCORES, **(_DENSE_SCORES if dense else {})}.items():
        yield says, {"score": score}
    for values, says in {**_VALUES, **(_DENSE_VALUES if dense else {})}.items():
        yield says, {"values": values}
        yield f"{says}, and |Σ λ| for Σ Re λ", {"values": values, "score": "size_of_sum"}
    bare: Replaced = {"embed": "none", "unembed": "none"}
    yield "the circuit on the stream and not on the vocabulary (bare)", bare
    for score, says in _SCORES.items():
        yield (
            f"the circuit on the stream and not on the vocabulary, and {says}",
            {**bare, "score": score},
        )
    for values, says in _VALUES.items():
        yield (
            f"the circuit on the stream and not on the vocabulary, and {says}",
            {**bare, "values": "lower" if values == "small_lower" else values},
        )
    yield "W_Eᵀ for W_U, the embedding on both sides (as if tied)", {"unembed": "W_E"}
    yield "W_Uᵀ for W_E, the unembedding on both sides (as if tied)", {"embed": "W_U"}
    yield "the circuit transposed, W_Oᵀ W_Vᵀ for W_V W_O", {"order": "within"}
    yield "the QK circuit for the OV circuit", {"letters": ("W_Q", "W_K"), "unembed": "W_E"}
    yield "W_Q W_Kᵀ for W_V W_O", {"letters": ("W_Q", "W_K")}
    yield "W_K for W_V", {"letters": ("W_K", "W_O")}
    yield "W_Q for W_V", {"letters": ("W_Q", "W_O")}
    yield from _with_norms()
    if asked.layer is not None:
        yield from _counts(asked)
        for layer, head in asked.other_heads():
            yield f"W_V of another head, {layer}.{head}", {"left": ("W_V", layer, head)}
            yield f"W_O of another head, {layer}.{head}", {"right": ("W_O", layer, head)}


def _counts(asked: Asked) -> Iterator[tuple[str, Replaced]]:
    """Yield the counts of positive eigenvalues of the whole circuit.

    All but d_head of them are zero, and rounding gives these any sign.
    """
    n = asked.model.d_vocab
    if n > DENSE:
        return
    positive = int(copying_score(asked, {"score": "positives"}))
    for count in range(positive, n - asked.model.d_head + positive + 1):
        says = f"the fraction of positive eigenvalues, a count: {count} of {n}"
        yield f"{says}, zeros that rounding made positive among them", {"count": count}


def _with_norms() -> Iterator[tuple[str, Replaced]]:
    """Yield circuits with gains of norms in them, or with vocabularies that are centred."""
    gain: Replaced = {"W_U_made": "gain"}
    yield "W_V with the gain of ln1 folded in", {"left_gain": ("ln1", 1)}
    yield "W_U with the gain of the final norm folded in", gain
    yield "the gains of ln1 and of the final norm folded in", {"left_gain": ("ln1", 1), **gain}
    for name in ("W_E", "W_U"):
        yield f"{name} centred over the vocabulary", {f"{name}_made": "centred"}
        yield f"{name} with each token's vector centred", {f"{name}_made": "rows_centred"}
        yield f"{name} with each token's vector normalised", {f"{name}_made": "normalised"}
